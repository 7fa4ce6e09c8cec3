/* vk_staging.c - host bytes to device memory and back.
 *
 * Mapped memory is copied by the processor when nothing in flight can touch it. Otherwise bytes go
 * through a ring of host memory and a copy on a queue, in chunks, several in flight; the caller's
 * bytes are free as soon as the call returns. Downloads use two buffers in turn. */
#include <string.h>

#include "backend_vulkan/vk.h"

static fx_status make_pool(fx_bdevice *d, uint32_t family, VkCommandPool *pool) {
    VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT |
                                             VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                    .queueFamilyIndex = family};
    return fx_vk_check(d, d->vk.vkCreateCommandPool(d->handle, &info, NULL, pool), "making a command pool");
}

static fx_status make_buffers(fx_bdevice *d, VkCommandPool pool, uint32_t n, VkCommandBuffer *out) {
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = n};
    return fx_vk_check(d, d->vk.vkAllocateCommandBuffers(d->handle, &info, out), "making command buffers");
}

/* Each step is taken once, so that a failed attempt can be repeated. */
static fx_status prepare_staging(fx_bdevice *d, vk_queue_index queue) {
    vk_staging *s = &d->staging;
    if (!s->mem.handle) {
        FX_TRY(fx_vk_memory_create(d, VK_STAGE_BYTES, VK_USE_STAGE, &s->mem));
        fx_vk_name(d, VK_OBJECT_TYPE_BUFFER, (uint64_t)((vk_memory *)s->mem.handle)->buffer, "upload ring");
    }
    if (!s->pools[queue]) {
        VkCommandBuffer cmds[VK_STAGE_SLOTS];
        VkCommandPool pool;
        FX_TRY(make_pool(d, d->families[queue], &pool));
        fx_status st = make_buffers(d, pool, VK_STAGE_SLOTS, cmds);
        if (st != FX_OK) {
            d->vk.vkDestroyCommandPool(d->handle, pool, NULL);
            return st;
        }
        s->pools[queue] = pool;
        for (int i = 0; i < VK_STAGE_SLOTS; i++)
            s->slots[i].cmds[queue] = cmds[i];
    }
    return FX_OK;
}

static fx_status prepare_readback(fx_bdevice *d) {
    vk_readback *b = &d->readback;
    if (!b->mem.handle) {
        FX_TRY(fx_vk_memory_create(d, VK_READBACK_CHUNK * VK_READBACK_SLOTS, VK_USE_HOST, &b->mem));
        fx_vk_name(d, VK_OBJECT_TYPE_BUFFER, (uint64_t)((vk_memory *)b->mem.handle)->buffer, "download buffers");
    }
    if (!b->pool) {
        VkCommandPool pool;
        FX_TRY(make_pool(d, d->families[VK_QUEUE_COMPUTE], &pool));
        fx_status st = make_buffers(d, pool, VK_READBACK_SLOTS, b->cmds);
        if (st != FX_OK) {
            d->vk.vkDestroyCommandPool(d->handle, pool, NULL);
            return st;
        }
        b->pool = pool;
    }
    return FX_OK;
}

/* Records a copy between barriers: after all that the queue did before, and visible to host and queue. */
static fx_status record_copy(fx_bdevice *d, VkCommandBuffer cmds, vk_queue_index queue, VkBuffer from, uint64_t from_at,
                             VkBuffer to, uint64_t to_at, uint64_t bytes) {
    VkPipelineStageFlags work = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier before = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                              .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT};
    if (queue == VK_QUEUE_COMPUTE) {
        work |= VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
        before.srcAccessMask |= VK_ACCESS_SHADER_WRITE_BIT;
    }
    VkMemoryBarrier after = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                             .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                             .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkBufferCopy region = {from_at, to_at, bytes};
    FX_TRY(fx_vk_check(d, d->vk.vkBeginCommandBuffer(cmds, &begin), "beginning a copy"));
    d->vk.vkCmdPipelineBarrier(cmds, work, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &before, 0, NULL, 0, NULL);
    d->vk.vkCmdCopyBuffer(cmds, from, to, 1, &region);
    d->vk.vkCmdPipelineBarrier(cmds, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &after, 0, NULL,
                               0, NULL);
    return fx_vk_check(d, d->vk.vkEndCommandBuffer(cmds), "ending a copy");
}

/* Releases finished slots, then waits for the oldest until a slot and `bytes` contiguous bytes are free.
 * Moves head to the start of these bytes. */
static fx_status ring_room(fx_bdevice *d, uint64_t bytes) {
    vk_staging *s = &d->staging;
    uint64_t at = s->head % VK_STAGE_BYTES;
    uint64_t start = at + bytes > VK_STAGE_BYTES ? s->head + VK_STAGE_BYTES - at : s->head;
    while (s->n) {
        const vk_slot *oldest = &s->slots[s->first];
        if (!fx_vk_ticket_done(d, oldest->ticket)) {
            if (s->n < VK_STAGE_SLOTS && start + bytes - s->tail <= VK_STAGE_BYTES)
                break;
            FX_TRY(fx_vk_wait(d, oldest->ticket, UINT64_MAX, NULL));
        }
        s->tail = oldest->end;
        s->first = (s->first + 1) % VK_STAGE_SLOTS;
        s->n--;
    }
    if (!s->n)
        s->tail = start;
    s->head = start;
    return FX_OK;
}

static fx_status upload_staged(fx_bdevice *d, vk_queue_index queue, uint64_t after, const fx_mem *dst, uint64_t offset,
                               const char *src, uint64_t bytes, uint64_t *ticket) {
    vk_staging *s = &d->staging;
    pthread_mutex_lock(&s->lock);
    fx_status st = prepare_staging(d, queue);
    while (st == FX_OK && bytes) {
        uint64_t n = bytes < VK_STAGE_CHUNK ? bytes : VK_STAGE_CHUNK;
        st = ring_room(d, n);
        if (st != FX_OK)
            break;
        vk_slot *slot = &s->slots[(s->first + s->n) % VK_STAGE_SLOTS];
        uint64_t at = s->head % VK_STAGE_BYTES;
        memcpy((char *)s->mem.host + at, src, n);
        st = record_copy(d, slot->cmds[queue], queue, ((vk_memory *)s->mem.handle)->buffer, at,
                         ((vk_memory *)dst->handle)->buffer, offset, n);
        if (st == FX_OK)
            st = fx_vk_submit_one(d, queue, slot->cmds[queue], after, "upload", ticket);
        if (st == FX_OK) {
            slot->ticket = *ticket;
            s->head += (n + 63) & ~(uint64_t)63;
            slot->end = s->head;
            s->n++;
            src += n;
            offset += n;
            bytes -= n;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static uint64_t last_compute(fx_bdevice *d) {
    return atomic_load(&d->submitted[VK_QUEUE_COMPUTE]) * 2;
}

fx_status fx_vk_upload(fx_bdevice *d, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
                       uint64_t *ticket) {
    uint64_t t = last_compute(d);
    FX_TRY(fx_vk_alive(d));
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "upload"));
    if (bytes && dst->host && fx_vk_idle(d))
        memcpy((char *)dst->host + offset, src, bytes);
    else if (bytes)
        FX_TRY(upload_staged(d, VK_QUEUE_COMPUTE, 0, dst, offset, src, bytes, &t));
    if (ticket)
        *ticket = t;
    return FX_OK;
}

fx_status fx_vk_upload_after(fx_bdevice *d, uint64_t after, const fx_mem *dst, uint64_t offset, const void *src,
                             uint64_t bytes, uint64_t *ticket) {
    uint64_t t = after;
    FX_TRY(fx_vk_alive(d));
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "upload"));
    if (bytes && dst->host && fx_vk_ticket_done(d, after))
        memcpy((char *)dst->host + offset, src, bytes);
    else if (bytes)
        FX_TRY(upload_staged(d, d->queues[VK_QUEUE_TRANSFER] ? VK_QUEUE_TRANSFER : VK_QUEUE_COMPUTE, after, dst, offset,
                             src, bytes, &t));
    if (ticket)
        *ticket = t;
    return FX_OK;
}

static fx_status download_staged(fx_bdevice *d, VkBuffer from, uint64_t offset, char *dst, uint64_t bytes) {
    vk_readback *b = &d->readback;
    VkBuffer to = ((vk_memory *)b->mem.handle)->buffer;
    uint64_t tickets[VK_READBACK_SLOTS], asked = 0, got = 0;
    int in_flight = 0, next = 0;
    while (got < bytes) {
        while (in_flight < VK_READBACK_SLOTS && asked < bytes) {
            uint64_t n = bytes - asked < VK_READBACK_CHUNK ? bytes - asked : VK_READBACK_CHUNK;
            int slot = (next + in_flight) % VK_READBACK_SLOTS;
            fx_status st = record_copy(d, b->cmds[slot], VK_QUEUE_COMPUTE, from, offset + asked, to,
                                       (uint64_t)slot * VK_READBACK_CHUNK, n);
            if (st == FX_OK)
                st = fx_vk_submit_one(d, VK_QUEUE_COMPUTE, b->cmds[slot], 0, "download", &tickets[slot]);
            if (st != FX_OK) {
                fx_vk_wait_idle(d); /* the other buffer's copy must not outlive this call */
                return st;
            }
            asked += n;
            in_flight++;
        }
        uint64_t n = bytes - got < VK_READBACK_CHUNK ? bytes - got : VK_READBACK_CHUNK;
        FX_TRY(fx_vk_wait(d, tickets[next], UINT64_MAX, NULL));
        memcpy(dst + got, (char *)b->mem.host + (uint64_t)next * VK_READBACK_CHUNK, n);
        got += n;
        next = (next + 1) % VK_READBACK_SLOTS;
        in_flight--;
    }
    return FX_OK;
}

fx_status fx_vk_download(fx_bdevice *d, const fx_mem *src, uint64_t offset, void *dst, uint64_t bytes) {
    FX_TRY(fx_backend_range_check(src, offset, bytes, "download"));
    FX_TRY(fx_vk_wait_idle(d));
    if (!bytes)
        return FX_OK;
    if (src->host) {
        memcpy(dst, (const char *)src->host + offset, bytes);
        return FX_OK;
    }
    pthread_mutex_lock(&d->readback.lock);
    fx_status st = prepare_readback(d);
    if (st == FX_OK)
        st = download_staged(d, ((const vk_memory *)src->handle)->buffer, offset, dst, bytes);
    pthread_mutex_unlock(&d->readback.lock);
    return st;
}

void fx_vk_staging_finish(fx_bdevice *d) {
    for (int q = 0; q < VK_QUEUES; q++)
        d->vk.vkDestroyCommandPool(d->handle, d->staging.pools[q], NULL);
    d->vk.vkDestroyCommandPool(d->handle, d->readback.pool, NULL);
    fx_vk_mem_free(d, &d->staging.mem);
    fx_vk_mem_free(d, &d->readback.mem);
}
