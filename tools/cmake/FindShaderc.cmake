# FindShaderc.cmake - finds shaderc and proves that it works.
#
# Distributions pack shaderc in forms that link differently, and some do not link at all in the
# form that their pkg-config file states. So each form is tried: a program that compiles one
# compute shader is linked and run, and the same objects are linked as a shared library, which
# is what libfornax is. The first form that passes both becomes the target Shaderc::shaderc.
# Sets Shaderc_FOUND, Shaderc_INCLUDE_DIR, Shaderc_FORM (the form's name) and Shaderc_REASON.
include(FindPackageHandleStandardArgs)

find_path(Shaderc_INCLUDE_DIR shaderc/shaderc.h)
mark_as_advanced(Shaderc_INCLUDE_DIR)

set(_shaderc_probe [[
#include <shaderc/shaderc.h>
#include <string.h>
int fx_probe(void);
int fx_probe(void) {
    const char *text = "#version 450\nlayout(local_size_x = 1) in;\n"
                       "layout(set = 0, binding = 0) buffer B { float x[]; };\nvoid main() { x[0] = 1.0; }\n";
    shaderc_compiler_t compiler = shaderc_compiler_initialize();
    shaderc_compile_options_t options = shaderc_compile_options_initialize();
    if (!compiler || !options)
        return 2;
    shaderc_compile_options_set_optimization_level(options, shaderc_optimization_level_performance);
    shaderc_compilation_result_t result =
        shaderc_compile_into_spv(compiler, text, strlen(text), shaderc_compute_shader, "probe", "main", options);
    int bad = shaderc_result_get_compilation_status(result) != shaderc_compilation_status_success ||
              shaderc_result_get_length(result) < 20;
    shaderc_result_release(result);
    shaderc_compile_options_release(options);
    shaderc_compiler_release(compiler);
    return bad;
}
#ifndef FX_PROBE_LIBRARY
int main(void) { return fx_probe(); }
#endif
]])

# The forms: what the linker is given. A form is skipped at once when its first library is absent.
set(_shaderc_glslang -lglslang -lSPIRV -lMachineIndependent -lOSDependent -lGenericCodeGen)
set(_shaderc_form_shared shaderc_shared)
set(_shaderc_form_plain shaderc)
set(_shaderc_form_combined shaderc_combined -lstdc++ -lm)
set(_shaderc_form_combined_glslang # everything apart, glslang before 14
    shaderc_combined -Wl,--start-group ${_shaderc_glslang} -lOGLCompiler -lSPIRV-Tools-opt -lSPIRV-Tools -Wl,--end-group
    -lstdc++ -lm)
set(_shaderc_form_combined_glslang14 # the same, where OGLCompiler is gone
    shaderc_combined -Wl,--start-group ${_shaderc_glslang} -lSPIRV-Tools-opt -lSPIRV-Tools -Wl,--end-group -lstdc++ -lm)
set(_shaderc_form_combined_glslang15 # OSDependent is gone too
    shaderc_combined -Wl,--start-group -lglslang -lSPIRV -lMachineIndependent -lGenericCodeGen -lSPIRV-Tools-opt
    -lSPIRV-Tools -Wl,--end-group -lstdc++ -lm)
set(_shaderc_forms shared plain combined combined_glslang combined_glslang14 combined_glslang15)

if(NOT Shaderc_INCLUDE_DIR)
  set(Shaderc_REASON "shaderc/shaderc.h was not found")
elseif(NOT Shaderc_FORM OR NOT Shaderc_LINK)
  unset(Shaderc_FORM CACHE)
  set(Shaderc_REASON "no form of shaderc links and runs")
  foreach(form ${_shaderc_forms})
    list(GET _shaderc_form_${form} 0 first)
    find_library(_shaderc_${form}_library ${first})
    mark_as_advanced(_shaderc_${form}_library)
    if(NOT _shaderc_${form}_library)
      continue()
    endif()
    set(link ${_shaderc_form_${form}})
    list(POP_FRONT link)
    list(PREPEND link ${_shaderc_${form}_library})
    message(VERBOSE "shaderc: trying the form \"${form}\"")
    set(dir ${CMAKE_BINARY_DIR}/CMakeFiles/shaderc_${form})
    file(WRITE ${dir}/probe.c "${_shaderc_probe}")
    try_run(ran built ${dir} ${dir}/probe.c
            CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${Shaderc_INCLUDE_DIR}
            LINK_LIBRARIES ${link} COMPILE_OUTPUT_VARIABLE built_log)
    if(NOT built OR NOT ran EQUAL 0)
      continue()
    endif()
    try_compile(shared ${dir}_so ${dir}/probe.c
                CMAKE_FLAGS -DINCLUDE_DIRECTORIES=${Shaderc_INCLUDE_DIR}
                COMPILE_DEFINITIONS -DFX_PROBE_LIBRARY -fPIC LINK_OPTIONS -shared LINK_LIBRARIES ${link}
                OUTPUT_VARIABLE shared_log)
    if(NOT shared)
      continue()
    endif()
    set(Shaderc_FORM ${form} CACHE INTERNAL "how shaderc links here")
    set(Shaderc_LINK "${link}" CACHE INTERNAL "what the linker is given for shaderc")
    break()
  endforeach()
endif()

find_package_handle_standard_args(Shaderc REQUIRED_VARS Shaderc_INCLUDE_DIR Shaderc_FORM
                                  REASON_FAILURE_MESSAGE "${Shaderc_REASON}")
if(Shaderc_FOUND AND NOT TARGET Shaderc::shaderc)
  add_library(Shaderc::shaderc INTERFACE IMPORTED)
  target_include_directories(Shaderc::shaderc INTERFACE ${Shaderc_INCLUDE_DIR})
  target_link_libraries(Shaderc::shaderc INTERFACE ${Shaderc_LINK})
endif()
