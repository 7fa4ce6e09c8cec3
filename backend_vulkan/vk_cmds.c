/* vk_cmds.c - command lists: recorded once, submitted any number of times.
 *
 * A list owns a command pool, the memory of its argument tables and its timestamp queries. It starts
 * with a barrier against everything earlier and ends with one towards the host. Kernels take their
 * arguments as push constants, or, when there are more than caps.max_args, as the address of a table
 * in memory of the list. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_vulkan/vk.h"

enum { QUERIES = 256, FIRST_TABLE = 4096 };

typedef struct table_block {
    struct table_block *next;
    fx_mem mem;
    uint64_t used;
} table_block;

typedef struct query_block {
    struct query_block *next;
    VkQueryPool pool;
    uint32_t n;
} query_block;

struct fx_cmds {
    fx_bdevice *d;
    VkCommandPool pool;
    VkCommandBuffer buffer;
    VkPipeline bound;
    table_block *tables;                 /* newest first */
    query_block *queries, *last_queries; /* oldest first */
    uint32_t n_dispatches, n_queries;
    bool ended, labelled;
    char text[VK_SUMMARY]; /* names of the kernels, for the text of a lost device */
    const char *last_name;
    size_t text_used;
    atomic_uint_fast64_t ticket; /* last submission */
};

VkCommandBuffer fx_vk_cmds_buffer(const fx_cmds *c) {
    return c->ended ? c->buffer : VK_NULL_HANDLE;
}
const char *fx_vk_cmds_text(const fx_cmds *c) {
    return c->text;
}
void fx_vk_cmds_submitted(fx_cmds *c, uint64_t ticket) {
    atomic_store(&c->ticket, ticket);
}

static fx_status take_pool(fx_bdevice *d, VkCommandPool *out) {
    *out = VK_NULL_HANDLE;
    pthread_mutex_lock(&d->pool_lock);
    if (d->n_pools)
        *out = d->pools[--d->n_pools];
    pthread_mutex_unlock(&d->pool_lock);
    if (*out)
        return fx_vk_check(d, d->vk.vkResetCommandPool(d->handle, *out, 0), "resetting a command pool");
    VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .queueFamilyIndex = d->families[VK_QUEUE_COMPUTE]};
    return fx_vk_check(d, d->vk.vkCreateCommandPool(d->handle, &info, NULL, out), "making a command pool");
}

static void give_pool(fx_bdevice *d, VkCommandPool pool) {
    pthread_mutex_lock(&d->pool_lock);
    bool keep = d->n_pools < VK_POOLS_KEPT;
    if (keep)
        d->pools[d->n_pools++] = pool;
    pthread_mutex_unlock(&d->pool_lock);
    if (!keep)
        d->vk.vkDestroyCommandPool(d->handle, pool, NULL);
}

static void barrier(fx_cmds *c, VkPipelineStageFlags to, VkAccessFlags to_access) {
    static const VkPipelineStageFlags work = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier b = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                         .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                         .dstAccessMask = to_access};
    c->d->vk.vkCmdPipelineBarrier(c->buffer, work, to, 0, 1, &b, 0, NULL, 0, NULL);
}

static void work_barrier(fx_cmds *c) {
    barrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                VK_ACCESS_TRANSFER_WRITE_BIT);
}

fx_status fx_vk_cmds_begin(fx_bdevice *d, fx_cmds **out) {
    *out = NULL;
    FX_TRY(fx_vk_alive(d));
    fx_cmds *c = calloc(1, sizeof *c);
    if (!c)
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for a command list; free memory");
    c->d = d;
    fx_status st = take_pool(d, &c->pool);
    if (st == FX_OK) {
        VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = c->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
        st = fx_vk_check(d, d->vk.vkAllocateCommandBuffers(d->handle, &info, &c->buffer), "making a command buffer");
    }
    if (st == FX_OK) {
        VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                          .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
        st = fx_vk_check(d, d->vk.vkBeginCommandBuffer(c->buffer, &begin), "beginning a command buffer");
    }
    if (st != FX_OK) {
        fx_vk_cmds_destroy(c);
        return st;
    }
    work_barrier(c);
    *out = c;
    return FX_OK;
}

static fx_status check_recording(const fx_cmds *c, const char *what) {
    if (!c->ended)
        return FX_OK;
    return fx_backend_fail(FX_INVALID_ARGUMENT, "%s: the command list was ended already; begin a new one", what);
}

/* Room for n words in the list's tables: their host pointer and device address. */
static fx_status table_room(fx_cmds *c, uint32_t n, uint64_t **host, uint64_t *address) {
    uint64_t bytes = ((uint64_t)n * 8 + 15) & ~(uint64_t)15;
    table_block *b = c->tables;
    if (!b || b->mem.bytes - b->used < bytes) {
        uint64_t size = b ? b->mem.bytes * 2 : FIRST_TABLE;
        while (size < bytes)
            size *= 2;
        b = calloc(1, sizeof *b);
        if (!b)
            return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for an argument table; free memory");
        fx_status st = fx_vk_memory_create(c->d, size, VK_USE_TABLE, &b->mem);
        if (st != FX_OK) {
            free(b);
            return st;
        }
        b->next = c->tables;
        c->tables = b;
    }
    *host = (uint64_t *)(void *)((char *)b->mem.host + b->used);
    *address = b->mem.address + b->used;
    b->used += bytes;
    return FX_OK;
}

/* Adds a kernel's name to the list's text unless it was the last one added. */
static void mention(fx_cmds *c, const char *name) {
    if (c->last_name && strcmp(c->last_name, name) == 0)
        return;
    c->last_name = name;
    size_t n = strlen(name), room = VK_SUMMARY - 24;
    if (c->text_used + n + 2 < room) {
        if (c->text_used) {
            memcpy(c->text + c->text_used, ", ", 2);
            c->text_used += 2;
        }
        memcpy(c->text + c->text_used, name, n);
        c->text_used += n;
    } else if (c->text_used < room && n + 6 < room) { /* too many to list: the first few and the last */
        size_t at = c->text_used + n + 6 < room ? c->text_used : room - n - 6;
        memcpy(c->text + at, " ... ", 5);
        memcpy(c->text + at + 5, name, n);
        c->text[at + 5 + n] = '\0';
    }
}

fx_status fx_vk_cmds_dispatch(fx_cmds *c, fx_kernel *k, const uint64_t *args, uint32_t n_args,
                              const uint32_t groups[3]) {
    fx_bdevice *d = c->d;
    FX_TRY(check_recording(c, "dispatch"));
    if (n_args != k->n_args)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "dispatch of %s: expected %u arguments; got %u", k->name, k->n_args,
                               n_args);
    const uint32_t *most = d->gpu->caps.max_groups;
    for (int i = 0; i < 3; i++)
        if (groups[i] > most[i])
            return fx_backend_fail(FX_INVALID_ARGUMENT,
                                   "dispatch of %s: %u workgroups in dimension %d; this device takes %u; split it",
                                   k->name, groups[i], i, most[i]);
    if (!groups[0] || !groups[1] || !groups[2])
        return FX_OK;
    uint64_t table = 0;
    if (n_args > d->gpu->caps.max_args) {
        uint64_t *words = NULL;
        FX_TRY(table_room(c, n_args, &words, &table));
        memcpy(words, args, n_args * sizeof *args);
    }
    if (c->bound != k->pipeline) {
        d->vk.vkCmdBindPipeline(c->buffer, VK_PIPELINE_BIND_POINT_COMPUTE, k->pipeline);
        c->bound = k->pipeline;
        mention(c, k->name);
    }
    if (k->push_bytes)
        d->vk.vkCmdPushConstants(c->buffer, k->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, k->push_bytes,
                                 table ? (const void *)&table : args);
    d->vk.vkCmdDispatch(c->buffer, groups[0], groups[1], groups[2]);
    c->n_dispatches++;
    return FX_OK;
}

fx_status fx_vk_cmds_copy(fx_cmds *c, const fx_mem *dst, uint64_t dst_offset, const fx_mem *src, uint64_t src_offset,
                          uint64_t bytes) {
    FX_TRY(check_recording(c, "copy"));
    FX_TRY(fx_backend_range_check(dst, dst_offset, bytes, "copy, destination"));
    FX_TRY(fx_backend_range_check(src, src_offset, bytes, "copy, source"));
    if (!bytes)
        return FX_OK;
    const vk_memory *from = src->handle, *to = dst->handle;
    if (from == to && dst_offset < src_offset + bytes && src_offset < dst_offset + bytes)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "copy: source and destination overlap; copy through another array");
    VkBufferCopy region = {src_offset, dst_offset, bytes};
    c->d->vk.vkCmdCopyBuffer(c->buffer, from->buffer, to->buffer, 1, &region);
    return FX_OK;
}

fx_status fx_vk_cmds_fill(fx_cmds *c, const fx_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word) {
    FX_TRY(check_recording(c, "fill"));
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "fill"));
    if ((offset | bytes) & 3)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "fill: offset and size must be multiples of 4 bytes");
    if (bytes)
        c->d->vk.vkCmdFillBuffer(c->buffer, ((const vk_memory *)dst->handle)->buffer, offset, bytes, word);
    return FX_OK;
}

fx_status fx_vk_cmds_barrier(fx_cmds *c) {
    FX_TRY(check_recording(c, "barrier"));
    work_barrier(c);
    return FX_OK;
}

static void end_label(fx_cmds *c) {
    if (c->labelled)
        c->d->end_label(c->buffer);
    c->labelled = false;
}

fx_status fx_vk_cmds_label(fx_cmds *c, const char *name) {
    FX_TRY(check_recording(c, "label"));
    if (!c->d->begin_label)
        return FX_OK;
    end_label(c);
    VkDebugUtilsLabelEXT label = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = name};
    c->d->begin_label(c->buffer, &label);
    c->labelled = true;
    return FX_OK;
}

fx_status fx_vk_cmds_timestamp(fx_cmds *c) {
    fx_bdevice *d = c->d;
    FX_TRY(check_recording(c, "timestamp"));
    if (!d->gpu->caps.has_timestamps)
        return fx_backend_fail(FX_UNSUPPORTED, "timestamps: device \"%s\" has none on its compute queue",
                               d->gpu->info.name);
    uint32_t at = c->n_queries % QUERIES;
    if (at == 0) {
        query_block *b = calloc(1, sizeof *b);
        if (!b)
            return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for timestamps; free memory");
        VkQueryPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                      .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                      .queryCount = QUERIES};
        fx_status st = fx_vk_check(d, d->vk.vkCreateQueryPool(d->handle, &info, NULL, &b->pool), "making queries");
        if (st != FX_OK) {
            free(b);
            return st;
        }
        if (c->last_queries)
            c->last_queries->next = b;
        else
            c->queries = b;
        c->last_queries = b;
        d->vk.vkCmdResetQueryPool(c->buffer, b->pool, 0, QUERIES);
    }
    query_block *b = c->last_queries;
    d->vk.vkCmdWriteTimestamp(c->buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->pool, at);
    b->n = at + 1;
    c->n_queries++;
    return FX_OK;
}

fx_status fx_vk_cmds_end(fx_cmds *c) {
    FX_TRY(check_recording(c, "end"));
    end_label(c);
    barrier(c, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    size_t used = strlen(c->text);
    snprintf(c->text + used, sizeof c->text - used, "%s%u dispatches", used ? "; " : "", c->n_dispatches);
    FX_TRY(fx_vk_check(c->d, c->d->vk.vkEndCommandBuffer(c->buffer), "ending a command list"));
    c->ended = true;
    return FX_OK;
}

void fx_vk_cmds_destroy(fx_cmds *c) {
    if (!c)
        return;
    fx_bdevice *d = c->d;
    fx_vk_wait(d, atomic_load(&c->ticket), UINT64_MAX, NULL); /* ends early only when the device is lost */
    while (c->tables) {
        table_block *b = c->tables;
        c->tables = b->next;
        fx_vk_mem_free(d, &b->mem);
        free(b);
    }
    while (c->queries) {
        query_block *b = c->queries;
        c->queries = b->next;
        d->vk.vkDestroyQueryPool(d->handle, b->pool, NULL);
        free(b);
    }
    if (c->buffer)
        d->vk.vkFreeCommandBuffers(d->handle, c->pool, 1, &c->buffer);
    if (c->pool)
        give_pool(d, c->pool);
    free(c);
}

fx_status fx_vk_cmds_read_timestamps(fx_cmds *c, uint64_t *ns, int capacity, int *count) {
    fx_bdevice *d = c->d;
    int n = 0;
    *count = 0;
    if (!c->ticket)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "timestamps: the list was never submitted; submit it first");
    FX_TRY(fx_vk_wait(d, atomic_load(&c->ticket), UINT64_MAX, NULL));
    for (query_block *b = c->queries; b && n < capacity; b = b->next) {
        uint64_t ticks[QUERIES];
        FX_TRY(fx_vk_check(d,
                           d->vk.vkGetQueryPoolResults(d->handle, b->pool, 0, b->n, sizeof ticks, ticks, sizeof *ticks,
                                                       VK_QUERY_RESULT_64_BIT),
                           "reading timestamps"));
        for (uint32_t i = 0; i < b->n && n < capacity; i++)
            ns[n++] = fx_vk_ticks_to_ns(d, ticks[i]);
    }
    *count = n;
    return FX_OK;
}
