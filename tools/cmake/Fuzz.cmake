# Fuzz.cmake - the fuzz targets: each tests/fuzz/fuzz_NAME.c with the driver is a program of that name.
#
# In every build they are ctests that try some thousand mutations of valid inputs. With -DFX_FUZZ=ON
# (preset fuzz: with sanitizers) the library reports its coverage, nothing else is built, and
# tools/test --fuzz runs each for a minute.
set(driver tests/fuzz/fuzz_main.c tests/fuzz/fuzz_files.c)
file(GLOB targets CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
list(REMOVE_ITEM targets ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_main.c ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_files.c)
if(NOT LIBZIP_FOUND) # the reader is not built
  list(REMOVE_ITEM targets ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_npz.c)
endif()
add_library(fuzz_driver OBJECT ${driver})
add_custom_target(fuzzers)
foreach(source ${targets})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source} $<TARGET_OBJECTS:fuzz_driver>)
  target_link_libraries(${name} PRIVATE fornax_internal)
  add_dependencies(fuzzers ${name})
  if(BUILD_TESTING)
    add_test(NAME ${name} COMMAND ${name} -runs 3000)
    set_property(TEST ${name} PROPERTY LABELS fuzz)
    set_property(TEST ${name} PROPERTY TIMEOUT 300)
    set_property(TEST ${name} PROPERTY ENVIRONMENT ${FX_TEST_ENVIRONMENT})
  endif()
endforeach()
