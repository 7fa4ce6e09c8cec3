/* vk_cache.c - the driver's pipeline cache: read from the disk cache when a device is opened, merged with what others
 * wrote meanwhile and written back after kernels were made. */
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_vulkan/vk.h"

static fx_cache_key pipelines_key(const vk_gpu *g) {
    struct {
        uint32_t vendor, device, driver, api;
        uint8_t cache[VK_UUID_SIZE], uuid[VK_UUID_SIZE];
    } facts = {g->props.vendorID, g->props.deviceID, g->props.driverVersion, g->props.apiVersion, {0}, {0}};
    memcpy(facts.cache, g->props.pipelineCacheUUID, VK_UUID_SIZE);
    memcpy(facts.uuid, g->info.uuid, VK_UUID_SIZE);
    XXH128_hash_t h = XXH3_128bits(&facts, sizeof facts);
    return (fx_cache_key){h.low64, h.high64};
}

static VkResult make_cache(fx_bdevice *d, const void *data, size_t bytes, VkPipelineCache *out) {
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = bytes, .pInitialData = data};
    *out = VK_NULL_HANDLE;
    return d->vk.vkCreatePipelineCache(d->handle, &info, NULL, out);
}

fx_status fx_vk_pipeline_cache_open(fx_bdevice *d) {
    size_t bytes;
    void *data = fx_cache_read(d->cache_dir, "pipelines", pipelines_key(d->gpu), &bytes, &d->pipelines_read);
    VkResult r = make_cache(d, data, bytes, &d->pipelines);
    if (r != VK_SUCCESS && data)
        r = make_cache(d, NULL, 0, &d->pipelines);
    free(data);
    return fx_vk_check(d, r, "making a pipeline cache");
}

/* A new cache of what this device compiled and of what others wrote since it was opened; NULL on failure. */
static VkPipelineCache merged(fx_bdevice *d, fx_cache_key key) {
    size_t bytes;
    uint64_t checksum = 0;
    VkPipelineCache out = VK_NULL_HANDLE;
    void *data = fx_cache_read(d->cache_dir, "pipelines", key, &bytes, &checksum);
    if (data && checksum != d->pipelines_read && make_cache(d, data, bytes, &out) == VK_SUCCESS &&
        d->vk.vkMergePipelineCaches(d->handle, out, 1, &d->pipelines) != VK_SUCCESS) {
        d->vk.vkDestroyPipelineCache(d->handle, out, NULL);
        out = VK_NULL_HANDLE;
    }
    free(data);
    return out;
}

void fx_vk_pipeline_cache_flush(fx_bdevice *d) {
    if (!d || !d->cache_dir || atomic_load(&d->lost) || !atomic_exchange(&d->pipelines_made, 0))
        return;
    fx_cache_key key = pipelines_key(d->gpu);
    VkPipelineCache other = merged(d, key), from = other ? other : d->pipelines;
    size_t bytes = 0;
    void *data = NULL;
    if (d->vk.vkGetPipelineCacheData(d->handle, from, &bytes, NULL) == VK_SUCCESS && bytes && (data = malloc(bytes)) &&
        d->vk.vkGetPipelineCacheData(d->handle, from, &bytes, data) == VK_SUCCESS)
        fx_cache_write(d->cache_dir, "pipelines", key, data, bytes);
    free(data);
    d->vk.vkDestroyPipelineCache(d->handle, other, NULL);
    fx_cache_prune(d->cache_dir);
}
