# Programs.cmake - the fornax tool and the examples.
#
# core/tools/*.c is the program "fornax", which may look inside the library. Each examples/NAME.c
# is a program NAME; a folder examples/NAME/ gives one program for each *_train.c, *_infer.c or
# *_main.c in it, which share the folder's other sources. Examples see public headers only.
# The target "programs" builds them all, without the tests.
add_custom_target(programs)
add_dependencies(programs fornax)
file(GLOB sources CONFIGURE_DEPENDS core/tools/*.c)
if(sources)
  add_executable(fornax_tool ${sources})
  set_target_properties(fornax_tool PROPERTIES OUTPUT_NAME fornax)
  target_link_libraries(fornax_tool PRIVATE fornax_internal)
  target_compile_definitions(fornax_tool PRIVATE ${FX_CORE_DEFINITIONS})
  add_dependencies(programs fornax_tool)
endif()

# What examples may link besides the library: JSON (jansson).
function(fx_example name)
  add_executable(${name} ${ARGN})
  add_dependencies(programs ${name})
  target_link_libraries(${name} PRIVATE fornax Threads::Threads PkgConfig::JANSSON m)
  target_compile_definitions(${name} PRIVATE FX_EXAMPLES_DIR="${CMAKE_SOURCE_DIR}/examples")
endfunction()

file(GLOB sources CONFIGURE_DEPENDS examples/*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  fx_example(${name} ${source})
endforeach()
file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true examples/*)
foreach(folder ${folders})
  if(NOT IS_DIRECTORY ${folder})
    continue()
  endif()
  file(GLOB mains CONFIGURE_DEPENDS ${folder}/*_train.c ${folder}/*_infer.c ${folder}/*_main.c)
  file(GLOB shared CONFIGURE_DEPENDS ${folder}/*.c)
  if(mains)
    list(REMOVE_ITEM shared ${mains})
  endif()
  foreach(source ${mains})
    get_filename_component(name ${source} NAME_WE)
    fx_example(${name} ${source} ${shared})
  endforeach()
endforeach()
