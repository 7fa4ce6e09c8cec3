/* vk_device.c - opens and closes devices, and turns Vulkan results into statuses.
 *
 * A lost device is sticky: from the first VK_ERROR_DEVICE_LOST on, every fallible entry answers
 * FX_DEVICE_LOST with the same text, which names what was running. Closing always works. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_vulkan/vk.h"
#include "core/base/env.h"

fx_status fx_vk_alive(fx_bdevice *d) {
    if (!atomic_load_explicit(&d->lost, memory_order_acquire))
        return FX_OK;
    pthread_mutex_lock(&d->queue_lock);
    fx_status st = fx_backend_fail(FX_DEVICE_LOST, "%s", d->lost_text);
    pthread_mutex_unlock(&d->queue_lock);
    return st;
}

/* The submissions that had not finished, newest last. Called with queue_lock held. */
static void describe_recent(fx_bdevice *d, char *text, size_t size) {
    uint64_t done = 0;
    if (d->vk.vkGetSemaphoreCounterValue(d->handle, d->timelines[VK_QUEUE_COMPUTE], &done) != VK_SUCCESS ||
        done >= d->next)
        done = 0; /* a lost device may answer with the largest number */
    uint32_t first = d->n_recent > VK_RECENT ? d->n_recent - VK_RECENT : 0;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = first; i < d->n_recent; i++) {
        const vk_recent *r = &d->recent[i % VK_RECENT];
        if (r->number <= done && i + 1 < d->n_recent)
            continue;
        int n = snprintf(text + used, size - used, "%s[%s]", used ? " " : "", r->text);
        if (n < 0 || (size_t)n >= size - used)
            return;
        used += (size_t)n;
    }
}

fx_status fx_vk_mark_lost(fx_bdevice *d, const char *where) {
    char recent[700];
    pthread_mutex_lock(&d->queue_lock);
    if (!atomic_load(&d->lost)) {
        describe_recent(d, recent, sizeof recent);
        snprintf(d->lost_text, sizeof d->lost_text,
                 "device \"%.64s\" was lost in %.32s; last submitted kernels: %s; its arrays are gone: "
                 "close the context and start again, with shorter kernels if a watchdog is the cause",
                 d->gpu->info.name, where, recent[0] ? recent : "none");
        atomic_store_explicit(&d->lost, true, memory_order_release);
    }
    pthread_mutex_unlock(&d->queue_lock);
    return fx_vk_alive(d);
}

fx_status fx_vk_check(fx_bdevice *d, VkResult r, const char *what) {
    switch (r) {
    case VK_SUCCESS:
        return FX_OK;
    case VK_ERROR_DEVICE_LOST:
        return fx_vk_mark_lost(d, what);
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: none left for %s; free memory", what);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_TOO_MANY_OBJECTS:
        return fx_backend_fail(FX_OUT_OF_MEMORY, "memory of device \"%s\": none left for %s (%s); free arrays",
                               d->gpu->info.name, what, fx_vk_result_name(r));
    default:
        return fx_backend_fail(FX_INTERNAL,
                               "Vulkan: %s failed with %s on device \"%s\"; run with FORNAX_VALIDATE=1 "
                               "and report what it prints",
                               what, fx_vk_result_name(r), d->gpu->info.name);
    }
}

void fx_vk_name(fx_bdevice *d, VkObjectType type, uint64_t object, const char *name) {
    if (!d->set_name)
        return;
    VkDebugUtilsObjectNameInfoEXT info = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                          .objectType = type,
                                          .objectHandle = object,
                                          .pObjectName = name};
    d->set_name(d->handle, &info);
}

static fx_status create_device(fx_bdevice *d) {
    const vk_gpu *g = d->gpu;
    const fx_device_caps *c = &g->caps;
    const char *extensions[4];
    uint32_t n = 0;
    if (g->memory_budget)
        extensions[n++] = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    if (g->calibrated)
        extensions[n++] = VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME;
    if (g->portability_subset)
        extensions[n++] = "VK_KHR_portability_subset";
    if (g->size_control_ext)
        extensions[n++] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME;
    VkPhysicalDeviceSubgroupSizeControlFeatures size = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES,
        .subgroupSizeControl = g->size_control,
        .computeFullSubgroups = g->full_subgroups};
    VkPhysicalDeviceVulkan12Features v12 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .pNext = g->size_control || g->full_subgroups ? &size : NULL,
                                            .bufferDeviceAddress = VK_TRUE,
                                            .timelineSemaphore = VK_TRUE,
                                            .storageBuffer8BitAccess = c->storage8,
                                            .shaderInt8 = c->int8,
                                            .shaderFloat16 = c->f16,
                                            .shaderSubgroupExtendedTypes = g->extended_types,
                                            .scalarBlockLayout = g->scalar_layout,
                                            .vulkanMemoryModel = g->memory_model,
                                            .vulkanMemoryModelDeviceScope = g->memory_model};
    VkPhysicalDeviceVulkan11Features v11 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            .pNext = &v12,
                                            .storageBuffer16BitAccess = c->storage16};
    VkPhysicalDeviceFeatures2 base = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &v11,
        .features = {.shaderInt16 = c->int16, .shaderInt64 = c->int64, .shaderFloat64 = c->f64}};
    float priority = 1;
    VkDeviceQueueCreateInfo queues[2] = {{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                          .queueFamilyIndex = g->compute_family,
                                          .queueCount = 1,
                                          .pQueuePriorities = &priority},
                                         {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                          .queueFamilyIndex = g->transfer_family,
                                          .queueCount = 1,
                                          .pQueuePriorities = &priority}};
    bool transfer = g->transfer_family != UINT32_MAX;
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &base,
                               .queueCreateInfoCount = transfer ? 2 : 1,
                               .pQueueCreateInfos = queues,
                               .enabledExtensionCount = n,
                               .ppEnabledExtensionNames = extensions};
    VkResult r = vkCreateDevice(g->handle, &info, NULL, &d->handle);
    if (r != VK_SUCCESS) {
        d->handle = VK_NULL_HANDLE;
        return fx_backend_fail(r == VK_ERROR_OUT_OF_HOST_MEMORY || r == VK_ERROR_OUT_OF_DEVICE_MEMORY ? FX_OUT_OF_MEMORY
                                                                                                      : FX_UNSUPPORTED,
                               "device \"%s\": the driver could not open it (%s); another process may hold it, "
                               "or the driver needs an update",
                               g->info.name, fx_vk_result_name(r));
    }
    volkLoadDeviceTable(&d->vk, d->handle);
    if (d->instance->names)
        d->set_name = (PFN_vkSetDebugUtilsObjectNameEXT)vkGetDeviceProcAddr(d->handle, "vkSetDebugUtilsObjectNameEXT");
    /* No labels under the validation layer: it keeps those of all devices in one table, from which 1.3.239 erases
     * without a lock when a command buffer goes, so that two devices on two threads crash in it. A table that stays
     * empty is safe. */
    if (d->instance->names && !d->instance->settings.validate) {
        PFN_vkVoidFunction begin = vkGetDeviceProcAddr(d->handle, "vkCmdBeginDebugUtilsLabelEXT");
        PFN_vkVoidFunction end = vkGetDeviceProcAddr(d->handle, "vkCmdEndDebugUtilsLabelEXT");
        d->begin_label = end ? (PFN_vkCmdBeginDebugUtilsLabelEXT)begin : NULL;
        d->end_label = (PFN_vkCmdEndDebugUtilsLabelEXT)end;
    }
    d->vk.vkGetDeviceQueue(d->handle, g->compute_family, 0, &d->queues[VK_QUEUE_COMPUTE]);
    d->families[VK_QUEUE_COMPUTE] = g->compute_family;
    if (transfer) {
        d->families[VK_QUEUE_TRANSFER] = g->transfer_family;
        d->vk.vkGetDeviceQueue(d->handle, g->transfer_family, 0, &d->queues[VK_QUEUE_TRANSFER]);
    } else if (d->inject.transfer_queue) {
        d->families[VK_QUEUE_TRANSFER] = g->compute_family;
        d->queues[VK_QUEUE_TRANSFER] = d->queues[VK_QUEUE_COMPUTE];
    }
    return FX_OK;
}

static fx_status create_timelines(fx_bdevice *d) {
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    for (int q = 0; q < VK_QUEUES; q++)
        if (d->queues[q])
            FX_TRY(fx_vk_check(d, d->vk.vkCreateSemaphore(d->handle, &info, NULL, &d->timelines[q]),
                               "making a semaphore"));
    return FX_OK;
}

static void init_locks(fx_bdevice *d) {
    pthread_mutex_t *const locks[] = {&d->queue_lock, &d->layout_lock, &d->pool_lock, &d->staging.lock,
                                      &d->readback.lock};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_init(locks[i], NULL);
}

fx_status fx_vk_open(int index, const char *cache_dir, fx_bdevice **out, fx_device_caps *caps) {
    vk_instance *in;
    *out = NULL;
    FX_TRY(fx_vk_instance_get(&in, NULL));
    if (index < 0 || index >= in->n_gpus)
        return fx_backend_fail(FX_NOT_FOUND, "device vulkan:%d; expected an index below %d; run `fornax devices`",
                               index, in->n_gpus);
    const vk_gpu *g = &in->gpus[index];
    if (!g->info.usable)
        return fx_backend_fail(FX_UNSUPPORTED, "device vulkan:%d \"%s\" can't be used: %s", index, g->info.name,
                               g->info.reason);
    fx_bdevice *d = calloc(1, sizeof *d);
    if (!d)
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to open device vulkan:%d; free memory", index);
    d->instance = in;
    d->gpu = g;
    d->next = 1;
    init_locks(d);
    d->inject = (vk_injection){.device_lost = fx_env_injection("device_lost"),
                               .oom = fx_env_injection("oom"),
                               .compile = fx_env_injection("compile"),
                               .transfer_queue = fx_env_has(FX_ENV_inject, "transfer_queue")};
    fx_status st = create_device(d);
    if (st == FX_OK)
        st = create_timelines(d);
    if (st == FX_OK) {
        d->cache_dir = fx_cache_dir_make(cache_dir, "vulkan");
        st = fx_vk_pipeline_cache_open(d);
    }
    if (st != FX_OK) {
        fx_vk_close(d);
        return st;
    }
    if (caps)
        *caps = g->caps;
    *out = d;
    return FX_OK;
}

void fx_vk_close(fx_bdevice *d) {
    if (!d)
        return;
    if (d->handle) {
        d->vk.vkDeviceWaitIdle(d->handle); /* a lost device answers at once */
        if (d->pipelines) {
            fx_vk_pipeline_cache_flush(d);
            d->vk.vkDestroyPipelineCache(d->handle, d->pipelines, NULL);
        }
        fx_vk_staging_finish(d);
        for (int i = 0; i < d->n_pools; i++)
            d->vk.vkDestroyCommandPool(d->handle, d->pools[i], NULL);
        for (int i = 0; i <= VK_PUSH_ARGS; i++)
            d->vk.vkDestroyPipelineLayout(d->handle, d->layouts[i], NULL);
        for (int q = 0; q < VK_QUEUES; q++)
            d->vk.vkDestroySemaphore(d->handle, d->timelines[q], NULL);
        d->vk.vkDestroyDevice(d->handle, NULL);
    }
    pthread_mutex_t *const locks[] = {&d->queue_lock, &d->layout_lock, &d->pool_lock, &d->staging.lock,
                                      &d->readback.lock};
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        pthread_mutex_destroy(locks[i]);
    free(d->cache_dir);
    free(d);
}
