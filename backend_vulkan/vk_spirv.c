/* vk_spirv.c - GLSL text to SPIR-V words with shaderc, without a Vulkan call. Any thread, in parallel.
 *
 * One compiler object stays alive for the process: the first use costs about 100 ms, and releasing the
 * last one would throw that away. */
#include <pthread.h>
#include <shaderc/shaderc.h>
#include <spirv-tools/libspirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_vulkan/vk.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static shaderc_compiler_t compiler;

static char versions[256];

static void start(void) {
    unsigned version = 0, revision = 0;
    compiler = shaderc_compiler_initialize();
    shaderc_get_spv_version(&version, &revision);
    snprintf(versions, sizeof versions, "%u.%u %s", version, revision, spvSoftwareVersionDetailsString());
}

const char *fx_vk_spirv_versions(void) {
    pthread_once(&once, start);
    return versions;
}

/* ---- float modes ---- */

enum { W16, W32, W64, WIDTHS };

/* Which of the widths in use get a mode that the device offers for `offered`, by how independent they are. */
static void choose(const bool used[WIDTHS], const bool offered[WIDTHS], VkShaderFloatControlsIndependence independence,
                   bool out[WIDTHS]) {
    bool group[WIDTHS][WIDTHS] = {{true, false, false}, {false, true, false}, {false, false, true}};
    if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY)
        group[W16][W64] = group[W64][W16] = true;
    else if (independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE)
        memset(group, true, sizeof group);
    for (int i = 0; i < WIDTHS; i++) {
        out[i] = used[i];
        for (int j = 0; j < WIDTHS; j++)
            if (group[i][j] && used[j] && !offered[j])
                out[i] = false;
    }
}

/* Writes GLSL statements that ask for NaN, infinities, signed zeros and denormals to be kept and for rounding
 * to even. They are in the text, not added to the SPIR-V, because the optimiser must see them too. */
static void write_modes(char *text, size_t size, const char *source, const VkPhysicalDeviceFloatControlsProperties *f) {
    static const int bits[WIDTHS] = {16, 32, 64};
    const struct {
        int mode, capability; /* of SPIR-V */
        VkShaderFloatControlsIndependence independence;
        bool offered[WIDTHS];
    } kinds[] = {
        {4459,
         4464,
         f->denormBehaviorIndependence, /* DenormPreserve */
         {f->shaderDenormPreserveFloat16, f->shaderDenormPreserveFloat32, f->shaderDenormPreserveFloat64}},
        {4461,
         4466,
         VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL, /* SignedZeroInfNanPreserve */
         {f->shaderSignedZeroInfNanPreserveFloat16, f->shaderSignedZeroInfNanPreserveFloat32,
          f->shaderSignedZeroInfNanPreserveFloat64}},
        {4462,
         4467,
         f->roundingModeIndependence, /* RoundingModeRTE */
         {f->shaderRoundingModeRTEFloat16, f->shaderRoundingModeRTEFloat32, f->shaderRoundingModeRTEFloat64}},
    };
    bool used[WIDTHS] = {strstr(source, "float16_t") || strstr(source, "f16vec"), true,
                         strstr(source, "double") || strstr(source, "float64_t") || strstr(source, "dvec")};
    size_t at = 0;
    text[0] = '\0';
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool set[WIDTHS];
        choose(used, kinds[k].offered, kinds[k].independence, set);
        for (int i = 0; i < WIDTHS; i++)
            if (set[i] && at < size)
                at += (size_t)snprintf(text + at, size - at, "spirv_execution_mode(capabilities = [%d], %d, %d);\n",
                                       kinds[k].capability, kinds[k].mode, bits[i]);
    }
}

/* The source with the extension behind its #version line and the modes at its end, malloc'd. */
static char *with_modes(const char *source, size_t bytes, const VkPhysicalDeviceFloatControlsProperties *f) {
    static const char extension[] = "#extension GL_EXT_spirv_intrinsics : require\n#line 2\n";
    char modes[1024];
    char *text = malloc(bytes + sizeof extension + sizeof modes);
    if (!text)
        return NULL;
    memcpy(text, source, bytes);
    text[bytes] = '\0';
    write_modes(modes, sizeof modes, text, f);
    const char *newline = strncmp(text, "#version", 8) == 0 ? strchr(text, '\n') : NULL;
    if (!modes[0] || !newline)
        return text;
    size_t first = (size_t)(newline - text) + 1;
    sprintf(text + first, "%s%.*s\n%s", extension, (int)(bytes - first), source + first, modes);
    return text;
}

bool fx_vk_spirv_compile(const char *name, const char *source, size_t bytes, bool debug,
                         const VkPhysicalDeviceFloatControlsProperties *floats, uint32_t **words, size_t *n_words,
                         char *log, size_t log_size) {
    pthread_once(&once, start);
    *words = NULL;
    char *text = bytes <= INT32_MAX ? with_modes(source, bytes, floats) : NULL;
    shaderc_compile_options_t options = compiler ? shaderc_compile_options_initialize() : NULL;
    if (!options || !text) {
        snprintf(log, log_size, "host memory: no room for the GLSL compiler; free memory");
        shaderc_compile_options_release(options);
        free(text);
        return false;
    }
    shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
    shaderc_compile_options_set_target_spirv(options, shaderc_spirv_version_1_5);
    /* Drivers optimise as well without it (measured on lavapipe), it takes most of the compile time, and the optimiser
     * that Debian 12 ships folds a loop such as `for (...) x = max(x, 1u)` to x's value before it. */
    shaderc_compile_options_set_optimization_level(options, shaderc_optimization_level_zero);
    if (debug)
        shaderc_compile_options_set_generate_debug_info(options);
    shaderc_compilation_result_t result =
        shaderc_compile_into_spv(compiler, text, strlen(text), shaderc_glsl_compute_shader, name, "main", options);
    if (shaderc_result_get_compilation_status(result) == shaderc_compilation_status_success) {
        size_t length = shaderc_result_get_length(result);
        *n_words = length / 4;
        *words = malloc(length ? length : 4);
        if (*words)
            memcpy(*words, shaderc_result_get_bytes(result), length);
        else
            snprintf(log, log_size, "host memory: no room for %zu bytes of SPIR-V", length);
    } else {
        snprintf(log, log_size, "%s", shaderc_result_get_error_message(result));
    }
    shaderc_result_release(result);
    shaderc_compile_options_release(options);
    free(text);
    return *words != NULL;
}

bool fx_vk_spirv_validate(const uint32_t *words, size_t n_words, char *log, size_t log_size) {
    spv_context context = spvContextCreate(SPV_ENV_VULKAN_1_2);
    spv_validator_options options = spvValidatorOptionsCreate();
    spv_diagnostic diagnostic = NULL;
    spv_const_binary_t binary = {words, n_words};
    spvValidatorOptionsSetScalarBlockLayout(options, true);
    spv_result_t r = spvValidateWithOptions(context, options, &binary, &diagnostic);
    if (r != SPV_SUCCESS)
        snprintf(log, log_size, "invalid SPIR-V: %s", diagnostic && diagnostic->error ? diagnostic->error : "no text");
    spvDiagnosticDestroy(diagnostic);
    spvValidatorOptionsDestroy(options);
    spvContextDestroy(context);
    return r == SPV_SUCCESS;
}
