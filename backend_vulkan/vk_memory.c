/* vk_memory.c - device allocations: one VkBuffer and one VkDeviceMemory each, with an address.
 *
 * Core sub-allocates from large fx_mem, so the driver's limit on the number of allocations is far
 * away. Where device memory is host memory (integrated and software devices) it is mapped for good. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend_vulkan/vk.h"

enum {
    LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
    COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT
};

/* Memory types to try, best first; 0 ends the list. Unified device memory is mapped only when the host
 * can read it fast. */
static const VkMemoryPropertyFlags wanted[4][4] = {
    [VK_USE_DEVICE] = {LOCAL},
    [VK_USE_HOST] = {VISIBLE | COHERENT | CACHED, VISIBLE | COHERENT},
    [VK_USE_STAGE] = {VISIBLE | COHERENT},
    [VK_USE_TABLE] = {VISIBLE | COHERENT | LOCAL, VISIBLE | COHERENT},
};
static const VkMemoryPropertyFlags wanted_unified[4][4] = {
    [VK_USE_DEVICE] = {LOCAL | VISIBLE | COHERENT | CACHED, LOCAL},
    [VK_USE_HOST] = {VISIBLE | COHERENT | CACHED, VISIBLE | COHERENT},
    [VK_USE_STAGE] = {VISIBLE | COHERENT | CACHED, VISIBLE | COHERENT},
    [VK_USE_TABLE] = {VISIBLE | COHERENT},
};

static int find_type(const vk_gpu *g, uint32_t allowed, vk_memory_use use) {
    const VkMemoryPropertyFlags *list = g->unified ? wanted_unified[use] : wanted[use];
    for (; *list; list++)
        for (uint32_t i = 0; i < g->memory.memoryTypeCount; i++)
            if (allowed >> i & 1 && (g->memory.memoryTypes[i].propertyFlags & *list) == *list)
                return (int)i;
    return -1;
}

/* Largest heap of device memory: the one that statistics are about. */
static uint32_t device_heap(const vk_gpu *g) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < g->memory.memoryHeapCount; i++)
        if (g->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            g->memory.memoryHeaps[i].size == g->info.memory_bytes)
            best = i;
    return best;
}

void fx_vk_mem_stats(fx_bdevice *d, fx_mem_stats *out) {
    *out = (fx_mem_stats){.allocated = atomic_load(&d->allocated), .peak = atomic_load(&d->peak)};
    if (!d->gpu->memory_budget)
        return;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 props = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                               .pNext = &budget};
    vkGetPhysicalDeviceMemoryProperties2(d->gpu->handle, &props);
    uint32_t heap = device_heap(d->gpu);
    out->budget = budget.heapBudget[heap];
    out->driver_use = budget.heapUsage[heap];
}

static fx_status out_of_memory(fx_bdevice *d, uint64_t bytes, const char *why) {
    fx_mem_stats s;
    fx_vk_mem_stats(d, &s);
    char free_text[64] = "an unknown amount";
    uint64_t limit = s.budget ? s.budget : d->gpu->info.memory_bytes;
    uint64_t used = s.budget ? s.driver_use : s.allocated;
    if (limit)
        snprintf(free_text, sizeof free_text, "%" PRIu64 " bytes", limit > used ? limit - used : 0);
    return fx_backend_fail(FX_OUT_OF_MEMORY,
                           "memory of device \"%s\": %" PRIu64 " bytes asked (%s); free %s, %" PRIu64
                           " bytes allocated by this process; free arrays or use a smaller batch",
                           d->gpu->info.name, bytes, why, free_text, s.allocated);
}

static void destroy(fx_bdevice *d, vk_memory *m) {
    d->vk.vkDestroyBuffer(d->handle, m->buffer, NULL);
    d->vk.vkFreeMemory(d->handle, m->memory, NULL);
    free(m);
}

/* Makes m->buffer; *requirements is what it needs. */
static VkResult make_buffer(fx_bdevice *d, vk_memory *m, VkMemoryRequirements *requirements) {
    bool both = d->queues[VK_QUEUE_TRANSFER] && d->families[0] != d->families[1];
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = m->bytes,
                               .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
                               .sharingMode = both ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
                               .queueFamilyIndexCount = both ? 2 : 0,
                               .pQueueFamilyIndices = d->families};
    VkResult r = d->vk.vkCreateBuffer(d->handle, &info, NULL, &m->buffer);
    if (r == VK_SUCCESS)
        d->vk.vkGetBufferMemoryRequirements(d->handle, m->buffer, requirements);
    else
        m->buffer = VK_NULL_HANDLE;
    return r;
}

fx_status fx_vk_memory_create(fx_bdevice *d, uint64_t bytes, vk_memory_use use, fx_mem *out) {
    *out = (fx_mem){0};
    FX_TRY(fx_vk_alive(d));
    if (bytes == 0)
        bytes = 4;
    if (d->inject.oom && atomic_fetch_add(&d->n_allocs, 1) + 1 == d->inject.oom)
        return out_of_memory(d, bytes, "injected by FORNAX_INJECT");
    if (bytes > d->gpu->max_allocation) {
        char why[96];
        snprintf(why, sizeof why, "one allocation may have %" PRIu64 " bytes", d->gpu->max_allocation);
        return out_of_memory(d, bytes, why);
    }
    vk_memory *m = calloc(1, sizeof *m);
    if (!m)
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to describe an allocation; free memory");
    m->bytes = (bytes + 3) & ~(uint64_t)3; /* fills and copies work in words */
    VkMemoryRequirements need;
    VkResult r = make_buffer(d, m, &need);
    int type = -1;
    if (r == VK_SUCCESS) {
        type = find_type(d->gpu, need.memoryTypeBits, use);
        VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
        VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .pNext = &flags,
                                     .allocationSize = need.size,
                                     .memoryTypeIndex = (uint32_t)type};
        r = type < 0 ? VK_ERROR_OUT_OF_DEVICE_MEMORY : d->vk.vkAllocateMemory(d->handle, &info, NULL, &m->memory);
        if (r != VK_SUCCESS)
            m->memory = VK_NULL_HANDLE;
    }
    if (r == VK_SUCCESS)
        r = d->vk.vkBindBufferMemory(d->handle, m->buffer, m->memory, 0);
    VkMemoryPropertyFlags has = type < 0 ? 0 : d->gpu->memory.memoryTypes[type].propertyFlags;
    bool map = use != VK_USE_DEVICE ||
               (d->gpu->unified && (has & (VISIBLE | COHERENT | CACHED)) == (VISIBLE | COHERENT | CACHED));
    if (r == VK_SUCCESS && map)
        r = d->vk.vkMapMemory(d->handle, m->memory, 0, VK_WHOLE_SIZE, 0, &out->host);
    if (r != VK_SUCCESS) {
        destroy(d, m);
        *out = (fx_mem){0};
        if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_TOO_MANY_OBJECTS || r == VK_ERROR_MEMORY_MAP_FAILED ||
            r == VK_ERROR_OUT_OF_HOST_MEMORY)
            return out_of_memory(d, bytes, fx_vk_result_name(r));
        return fx_vk_check(d, r, "allocating memory");
    }
    VkBufferDeviceAddressInfo address = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = m->buffer};
    out->address = d->vk.vkGetBufferDeviceAddress(d->handle, &address);
    out->bytes = bytes;
    out->handle = m;
    return FX_OK;
}

fx_status fx_vk_mem_alloc(fx_bdevice *d, uint64_t bytes, fx_mem_kind kind, fx_mem *out) {
    FX_TRY(fx_vk_memory_create(d, bytes, kind == FX_MEM_HOST ? VK_USE_HOST : VK_USE_DEVICE, out));
    vk_memory *m = out->handle;
    m->counted = true;
    uint64_t now = atomic_fetch_add(&d->allocated, m->bytes) + m->bytes;
    uint64_t peak = atomic_load(&d->peak);
    while (now > peak && !atomic_compare_exchange_weak(&d->peak, &peak, now))
        ;
    return FX_OK;
}

void fx_vk_mem_free(fx_bdevice *d, fx_mem *mem) {
    if (!mem || !mem->handle)
        return;
    vk_memory *m = mem->handle;
    if (m->counted)
        atomic_fetch_sub(&d->allocated, m->bytes);
    destroy(d, m);
    *mem = (fx_mem){0};
}
