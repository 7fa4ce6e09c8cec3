/* vk_kernel.c - kernels: source text to pipelines, several at once on threads, through the disk cache.
 *
 * A kernel's cache key covers its text and everything that shapes its SPIR-V: compiler versions, debug
 * mode, the device's float modes. Either all kernels of a call are made or none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_vulkan/vk.h"
#include "core/base/parallel.h"

enum { MAX_THREADS = 16, LOG_SIZE = 3000 };

/* One call of kernels_create, shared by its threads. */
typedef struct batch {
    fx_bdevice *d;
    const fx_kernel_source *sources;
    fx_kernel **out;
    atomic_int cached;
} batch;

static fx_cache_key key_of(const fx_bdevice *d, const fx_kernel_source *s) {
    XXH3_state_t state;
    const VkPhysicalDeviceFloatControlsProperties *f = &d->gpu->floats;
    uint32_t facts[] = {1 /* version of the translation */,
                        d->instance->settings.debug,
                        f->denormBehaviorIndependence,
                        f->roundingModeIndependence,
                        f->shaderSignedZeroInfNanPreserveFloat16,
                        f->shaderSignedZeroInfNanPreserveFloat32,
                        f->shaderSignedZeroInfNanPreserveFloat64,
                        f->shaderDenormPreserveFloat16,
                        f->shaderDenormPreserveFloat32,
                        f->shaderDenormPreserveFloat64,
                        f->shaderRoundingModeRTEFloat16,
                        f->shaderRoundingModeRTEFloat32,
                        f->shaderRoundingModeRTEFloat64};
    const char *compilers = fx_vk_spirv_versions();
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, facts, sizeof facts);
    XXH3_128bits_update(&state, compilers, strlen(compilers) + 1);
    XXH3_128bits_update(&state, s->source, s->source_bytes);
    XXH128_hash_t h = XXH3_128bits_digest(&state);
    return (fx_cache_key){h.low64, h.high64};
}

/* The kernel's SPIR-V from the cache or the compiler, malloc'd. */
static fx_status get_spirv(fx_bdevice *d, const fx_kernel_source *s, uint32_t **words, size_t *n_words, bool *cached) {
    fx_cache_key key = key_of(d, s);
    size_t bytes = 0;
    bool validate = d->instance->settings.validate;
    char log[LOG_SIZE];
    *words = fx_cache_read(d->cache_dir, "spirv", key, &bytes, NULL);
    *cached = *words != NULL && bytes >= 20 && bytes % 4 == 0;
    *n_words = bytes / 4;
    if (!*cached) {
        free(*words);
        if (!fx_vk_spirv_compile(s->name, s->source, s->source_bytes, d->instance->settings.debug, &d->gpu->floats,
                                 words, n_words, log, sizeof log))
            return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: the GLSL compiler refused it: %s", s->name, log);
    }
    if (validate && !fx_vk_spirv_validate(*words, *n_words, log, sizeof log)) {
        free(*words);
        return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: %s", s->name, log);
    }
    if (!*cached)
        fx_cache_write(d->cache_dir, "spirv", key, *words, *n_words * 4);
    return FX_OK;
}

/* The device's layout for `words` 64-bit words of push constants. */
static fx_status get_layout(fx_bdevice *d, uint32_t words, VkPipelineLayout *out) {
    fx_status st = FX_OK;
    pthread_mutex_lock(&d->layout_lock);
    if (!d->layouts[words]) {
        VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, words * 8};
        VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                           .pushConstantRangeCount = words ? 1 : 0,
                                           .pPushConstantRanges = &range};
        st = fx_vk_check(d, d->vk.vkCreatePipelineLayout(d->handle, &info, NULL, &d->layouts[words]),
                         "making a pipeline layout");
    }
    *out = d->layouts[words];
    pthread_mutex_unlock(&d->layout_lock);
    return st;
}

/* Decides on the subgroup size to require; 0: none. */
static fx_status required_size(const fx_bdevice *d, const fx_kernel_source *s, uint32_t *size) {
    const fx_device_caps *c = &d->gpu->caps;
    uint32_t asked = s->subgroup_size;
    *size = 0;
    if (asked && (asked < c->subgroup_min || asked > c->subgroup_max || asked & (asked - 1)))
        return fx_backend_fail(FX_UNSUPPORTED,
                               "kernel %s: subgroup size %u; device \"%s\" offers powers of two from "
                               "%u to %u",
                               s->name, asked, d->gpu->info.name, c->subgroup_min, c->subgroup_max);
    if (d->gpu->size_control && c->subgroup_min != c->subgroup_max)
        *size = asked ? asked : c->subgroup_size;
    uint64_t invocations = (uint64_t)s->workgroup[0] * s->workgroup[1] * s->workgroup[2];
    if (*size && invocations > (uint64_t)*size * d->gpu->max_subgroups) {
        if (asked)
            return fx_backend_fail(FX_UNSUPPORTED,
                                   "kernel %s: %" PRIu64 " invocations in subgroups of %u; device \"%s\" takes %u "
                                   "subgroups a workgroup",
                                   s->name, invocations, asked, d->gpu->info.name, d->gpu->max_subgroups);
        *size = 0;
    }
    return FX_OK;
}

static fx_status make_pipeline(fx_bdevice *d, const fx_kernel_source *s, const uint32_t *words, size_t n_words,
                               fx_kernel *k) {
    uint32_t size;
    VkShaderModule module;
    FX_TRY(required_size(d, s, &size));
    FX_TRY(get_layout(d, k->push_bytes / 8, &k->layout));
    VkShaderModuleCreateInfo module_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = n_words * 4, .pCode = words};
    FX_TRY(fx_vk_check(d, d->vk.vkCreateShaderModule(d->handle, &module_info, NULL, &module), "loading a kernel"));
    VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
        .requiredSubgroupSize = size};
    uint32_t step = size ? size : d->gpu->caps.subgroup_max;
    bool full = d->gpu->full_subgroups && step > 1 && s->workgroup[0] % step == 0;
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = size ? &required : NULL,
                  .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = k->layout};
    VkResult r = d->vk.vkCreateComputePipelines(d->handle, d->pipelines, 1, &info, NULL, &k->pipeline);
    d->vk.vkDestroyShaderModule(d->handle, module, NULL);
    if (r != VK_SUCCESS) {
        k->pipeline = VK_NULL_HANDLE;
        if (r == VK_ERROR_DEVICE_LOST || r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY)
            return fx_vk_check(d, r, "compiling a kernel");
        return fx_backend_fail(FX_COMPILE_ERROR,
                               "kernel %s: the driver of \"%s\" refused it (%s); update the driver or "
                               "report the kernel's text",
                               s->name, d->gpu->info.name, fx_vk_result_name(r));
    }
    atomic_fetch_add(&d->pipelines_made, 1);
    fx_vk_name(d, VK_OBJECT_TYPE_PIPELINE, (uint64_t)k->pipeline, k->name);
    return FX_OK;
}

static fx_status make_kernel(void *user, int i) {
    batch *b = user;
    fx_bdevice *d = b->d;
    const fx_kernel_source *s = &b->sources[i];
    const char *name = s->name ? s->name : "kernel";
    uint32_t *words;
    size_t n_words;
    bool cached;
    FX_TRY(fx_vk_alive(d));
    if (d->inject.compile && atomic_fetch_add(&d->n_compiles, 1) + 1 == d->inject.compile)
        return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: failure injected by FORNAX_INJECT", name);
    fx_kernel *k = calloc(1, sizeof *k + strlen(name) + 1);
    if (!k)
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for kernel %s; free memory", name);
    strcpy(k->name, name);
    k->n_args = s->n_args;
    k->push_bytes = s->n_args > d->gpu->caps.max_args ? 8 : s->n_args * 8;
    fx_status st = get_spirv(d, s, &words, &n_words, &cached);
    if (st == FX_OK) {
        st = make_pipeline(d, s, words, n_words, k);
        free(words);
    }
    if (st != FX_OK) {
        fx_vk_kernel_destroy(d, k);
        return st;
    }
    if (cached)
        atomic_fetch_add(&b->cached, 1);
    b->out[i] = k;
    return FX_OK;
}

fx_status fx_vk_kernels_create(fx_bdevice *d, int n, const fx_kernel_source *sources, fx_kernel **out, int *cached) {
    batch b = {.d = d, .sources = sources, .out = out};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    FX_TRY(fx_vk_alive(d));
    for (int i = 0; i < n; i++)
        out[i] = NULL;
    fx_status st = fx_parallel(n, cores < 2 ? 2 : cores > MAX_THREADS ? MAX_THREADS : (int)cores, make_kernel, &b);
    if (cached)
        *cached = atomic_load(&b.cached);
    for (int i = 0; i < n && st != FX_OK; i++) {
        fx_vk_kernel_destroy(d, out[i]);
        out[i] = NULL;
    }
    return st;
}

void fx_vk_kernel_destroy(fx_bdevice *d, fx_kernel *k) {
    if (!k)
        return;
    d->vk.vkDestroyPipeline(d->handle, k->pipeline, NULL);
    free(k);
}
