# Tests.cmake - registers the tests with ctest.
#
# Every tests/test_NAME.c is a Check program of its own and a ctest of that name. A source says
# in a comment what ctest should know: "ctest: slow" gives the label slow (over 10 s), "ctest:
# timeout N" a limit in seconds other than 300 (1800 for slow ones), "ctest: serial" runs it alone.
# "ctest: vector widths" adds short runs, with the argument "brief", at each vector width of lavapipe, which
# decides its subgroup size (LP_NATIVE_VECTOR_WIDTH 128, 256, 512: 4, 8, 16). "on cpu" adds a run, NAME_cpu, on
# the native CPU device instead.
# A program that can't try anything, since no device is there, ends with status 77: ctest counts it
# as skipped, and tools/test fails when there are skips though drivers were found.
# Tests write caches only below the build folder, and run with Vulkan validation where the
# layer is installed.
pkg_check_modules(CHECK QUIET IMPORTED_TARGET check)
if(NOT CHECK_FOUND)
  fx_table_row(libraries check no "-" "no tests are built: apt-get install check")
  return()
endif()
fx_table_row(libraries check yes "${CHECK_VERSION}" "")
pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)

find_file(FX_VALIDATION_LAYER VkLayer_khronos_validation.json
          PATHS /usr/share/vulkan/explicit_layer.d /usr/local/share/vulkan/explicit_layer.d /etc/vulkan/explicit_layer.d)
mark_as_advanced(FX_VALIDATION_LAYER)
set(FX_TEST_ENVIRONMENT FORNAX_CACHE_DIR=${CMAKE_BINARY_DIR}/test_cache FX_SOURCE_DIR=${CMAKE_SOURCE_DIR}
    FX_BINARY_DIR=${CMAKE_BINARY_DIR})
if(FX_VALIDATION_LAYER)
  list(APPEND FX_TEST_ENVIRONMENT FORNAX_VALIDATE=1)
  fx_table_row(libraries "validation layer" yes "" "tests run with FORNAX_VALIDATE=1")
else()
  fx_table_row(libraries "validation layer" no "-" "apt-get install vulkan-validationlayers")
endif()
if(FX_SANITIZE)
  # Drivers allocate what they never free; their own libraries are named in the list.
  list(APPEND FX_TEST_ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0"
       "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/tsan.supp:second_deadlock_stack=1:ignore_noninstrumented_modules=1")
endif()

# What tests share: cases with known answers, generators.
file(GLOB support CONFIGURE_DEPENDS tests/cases/*.c tests/gen*.c)
add_library(fornax_testing STATIC ${support})
target_link_libraries(fornax_testing PUBLIC fornax_internal PkgConfig::CHECK)

file(GLOB sources CONFIGURE_DEPENDS tests/test_*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE fornax_testing)
  target_compile_definitions(${name} PRIVATE ${FX_CORE_DEFINITIONS} FX_TESTS_DIR="${CMAKE_SOURCE_DIR}/tests")
  if(OPENBLAS_FOUND)
    file(STRINGS ${source} blas REGEX "cblas\\.h" LIMIT_COUNT 1)
    if(blas)
      target_link_libraries(${name} PRIVATE PkgConfig::OPENBLAS)
    endif()
  endif()
  add_test(NAME ${name} COMMAND ${name})
  file(STRINGS ${source} marks REGEX "ctest: (slow|serial|timeout|vector|on cpu)")
  set(timeout 300)
  if("${marks}" MATCHES "ctest: slow")
    set_property(TEST ${name} APPEND PROPERTY LABELS slow)
    set(timeout 1800)
  endif()
  if("${marks}" MATCHES "ctest: timeout ([0-9]+)")
    set(timeout ${CMAKE_MATCH_1})
  endif()
  if("${marks}" MATCHES "ctest: serial")
    set_property(TEST ${name} PROPERTY RUN_SERIAL ON)
  endif()
  set_property(TEST ${name} PROPERTY TIMEOUT ${timeout})
  set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
  set_property(TEST ${name} PROPERTY ENVIRONMENT ${FX_TEST_ENVIRONMENT} CK_TIMEOUT_MULTIPLIER=20)
  if("${marks}" MATCHES "vector widths")
    foreach(width 128 256 512)
      add_test(NAME ${name}_${width} COMMAND ${name} brief)
      set_property(TEST ${name}_${width} PROPERTY TIMEOUT 300)
      set_property(TEST ${name}_${width} PROPERTY SKIP_RETURN_CODE 77)
      set_property(TEST ${name}_${width} PROPERTY ENVIRONMENT ${FX_TEST_ENVIRONMENT} CK_TIMEOUT_MULTIPLIER=20
                   LP_NATIVE_VECTOR_WIDTH=${width})
    endforeach()
  endif()
  if("${marks}" MATCHES "on cpu" AND "cpu" IN_LIST FX_BACKENDS)
    add_test(NAME ${name}_cpu COMMAND ${name} brief)
    set_property(TEST ${name}_cpu PROPERTY TIMEOUT 1200)
    set_property(TEST ${name}_cpu PROPERTY LABELS slow)
    set_property(TEST ${name}_cpu PROPERTY SKIP_RETURN_CODE 77)
    set_property(TEST ${name}_cpu PROPERTY ENVIRONMENT ${FX_TEST_ENVIRONMENT} CK_TIMEOUT_MULTIPLIER=20
                 FX_TEST_BACKEND=cpu)
  endif()
endforeach()

# tests/bench/bench_NAME.c are programs to run by hand.
file(GLOB sources CONFIGURE_DEPENDS tests/bench/bench_*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE fornax_testing)
  target_compile_definitions(${name} PRIVATE ${FX_CORE_DEFINITIONS})
  if(OPENBLAS_FOUND)
    target_link_libraries(${name} PRIVATE PkgConfig::OPENBLAS)
    target_compile_definitions(${name} PRIVATE FX_HAVE_CBLAS)
  endif()
endforeach()

# tests/check_NAME.sh looks at the tree or the build instead of running code: exit 0 passes, 77 skips.
file(GLOB scripts CONFIGURE_DEPENDS tests/check_*.sh)
foreach(script ${scripts})
  get_filename_component(name ${script} NAME_WE)
  add_test(NAME ${name} COMMAND bash ${script} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_property(TEST ${name} PROPERTY ENVIRONMENT ${FX_TEST_ENVIRONMENT} CC=${CMAKE_C_COMPILER} CMAKE=${CMAKE_COMMAND})
  set_property(TEST ${name} PROPERTY SKIP_RETURN_CODE 77)
  set_property(TEST ${name} PROPERTY TIMEOUT 300)
  file(STRINGS ${script} marks REGEX "ctest: slow" LIMIT_COUNT 1)
  if(marks)
    set_property(TEST ${name} APPEND PROPERTY LABELS slow)
  endif()
endforeach()
