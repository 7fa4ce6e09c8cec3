/* pool.c - blocks of at least 32 MiB, each a list of ranges in address order. */
#include "core/runtime/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

enum { ALIGN = 256 };
static const uint64_t least_block = 32ull << 20;

typedef struct fx_range {
    struct fx_range *prev, *next;
    struct fx_block *block;
    uint64_t offset, bytes;
    uint64_t after; /* free: ticket of the last work submitted before it was freed */
    bool used;
    fx_piece_use use;
    char label[48];
} range;

typedef struct fx_block {
    struct fx_block *next;
    fx_mem mem;
    range *first;
} block;

fx_status fx_pool_init(fx_pool *p, const fx_backend *backend, fx_bdevice *device, uint64_t limit, uint64_t max_allocation) {
    memset(p, 0, sizeof *p);
    p->backend = backend;
    p->device = device;
    p->limit = limit;
    p->max_allocation = max_allocation;
    if (pthread_mutex_init(&p->lock, NULL))
        return fx_fail(FX_INTERNAL, "a mutex could not be made");
    return FX_OK;
}

static void drop(fx_pool *p, block *b) {
    for (range *r = b->first, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    p->reserved -= b->mem.bytes;
    p->backend->mem_free(p->device, &b->mem);
    free(b);
}

void fx_pool_finish(fx_pool *p) {
    if (!p->backend)
        return;
    for (block *b = p->blocks, *next; b; b = next) {
        next = b->next;
        drop(p, b);
    }
    pthread_mutex_destroy(&p->lock);
    memset(p, 0, sizeof *p);
}

static bool empty(const block *b) { return !b->first->used && !b->first->next; }

/* Gives empty blocks back to the driver, after the device has finished with them. */
static bool trim(fx_pool *p) {
    bool any = false;
    for (block **at = &p->blocks; *at;) {
        block *b = *at;
        if (!empty(b)) {
            at = &b->next;
            continue;
        }
        uint64_t ticket;
        bool done;
        if (!any && (p->backend->submit(p->device, 0, NULL, &ticket) != FX_OK ||
                     p->backend->wait(p->device, ticket, UINT64_MAX, &done) != FX_OK))
            return false;
        *at = b->next;
        drop(p, b);
        any = true;
    }
    return any;
}

static fx_status add_block(fx_pool *p, uint64_t bytes) {
    block *b = calloc(1, sizeof *b);
    range *r = calloc(1, sizeof *r);
    if (!b || !r) {
        free(b);
        free(r);
        return fx_fail_oom(sizeof *b);
    }
    fx_status st = p->backend->mem_alloc(p->device, bytes, FX_MEM_DEVICE, &b->mem);
    if (st != FX_OK) {
        free(b);
        free(r);
        return st;
    }
    *r = (range){.block = b, .bytes = bytes};
    b->first = r;
    b->next = p->blocks;
    p->blocks = b;
    p->reserved += bytes;
    return FX_OK;
}

/* Has the work that may use a free range finished? Remembers a yes. */
static bool idle(const fx_pool *p, range *r) {
    bool done = true;
    if (r->after && p->backend->wait(p->device, r->after, 0, &done) == FX_OK && done)
        r->after = 0;
    return !r->after;
}

static range *best(const fx_pool *p, uint64_t bytes, bool want_idle) {
    range *found = NULL;
    for (block *b = p->blocks; b; b = b->next)
        for (range *r = b->first; r; r = r->next)
            if (!r->used && r->bytes >= bytes && (!found || r->bytes < found->bytes) && (!want_idle || idle(p, r)))
                found = r;
    return found;
}

/* The largest users, for the text of an error. */
static void consumers(const fx_pool *p, char *text, size_t size) {
    const range *top[3] = {NULL, NULL, NULL};
    for (const block *b = p->blocks; b; b = b->next)
        for (const range *r = b->first; r; r = r->next) {
            if (!r->used)
                continue;
            const range *x = r;
            for (int i = 0; i < 3; i++)
                if (!top[i] || x->bytes > top[i]->bytes) {
                    const range *t = top[i];
                    top[i] = x;
                    x = t;
                    if (!x)
                        break;
                }
        }
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < 3 && top[i] && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s %.1f MiB", i ? ", " : "", top[i]->label,
                                 (double)top[i]->bytes / 1048576);
}

static fx_status fail(const fx_pool *p, uint64_t bytes, const char *label, const char *why) {
    char top[256];
    consumers(p, top, sizeof top);
    return fx_fail(FX_OUT_OF_MEMORY,
                   "device memory for %s: %.1f MiB asked; %.1f MiB of %.1f MiB free; in use: arrays %.1f MiB, arenas %.1f MiB; "
                   "largest: %s%s%s; use a smaller batch or model, or release arrays",
                   label, (double)bytes / 1048576, (double)(p->limit > p->in_use ? p->limit - p->in_use : 0) / 1048576,
                   (double)p->limit / 1048576, (double)p->use[FX_USE_ARRAY] / 1048576, (double)p->use[FX_USE_ARENA] / 1048576,
                   *top ? top : "none", *why ? "; driver: " : "", why);
}

/* A free range of at least `bytes`: found, made, or made after giving empty blocks back. */
static fx_status obtain(fx_pool *p, uint64_t bytes, bool want_idle, const char *label, range **out) {
    *out = want_idle ? best(p, bytes, true) : NULL;
    if (!*out)
        *out = best(p, bytes, false);
    for (int attempt = 0; !*out; attempt++) {
        uint64_t size = bytes > least_block ? bytes : least_block, room = p->limit > p->reserved ? p->limit - p->reserved : 0;
        if (size > room && bytes <= room)
            size = room / ALIGN * ALIGN;
        if (size > p->max_allocation && bytes <= p->max_allocation)
            size = p->max_allocation / ALIGN * ALIGN;
        fx_status st = bytes > room || bytes > p->max_allocation ? FX_OUT_OF_MEMORY : add_block(p, size);
        if (st == FX_OK) {
            *out = best(p, bytes, false);
        } else if (st != FX_OUT_OF_MEMORY || attempt || !trim(p)) {
            char why[512];
            snprintf(why, sizeof why, "%s", bytes > room || bytes > p->max_allocation ? "" : fx_last_error());
            return st == FX_OUT_OF_MEMORY ? fail(p, bytes, label, why) : st;
        }
    }
    return FX_OK;
}

fx_status fx_pool_alloc(fx_pool *p, uint64_t bytes, fx_piece_use use, const char *label, fx_piece *out) {
    if (bytes > UINT64_MAX / 2)
        return fx_fail(FX_OUT_OF_MEMORY, "device memory for %s: more than the address space", label);
    uint64_t size = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    memset(out, 0, sizeof *out);
    range *r = NULL;
    bool soon = use == FX_USE_ARRAY_SOON;
    use = soon ? FX_USE_ARRAY : use;
    pthread_mutex_lock(&p->lock);
    fx_status st = obtain(p, size, soon, label, &r);
    range *rest = st == FX_OK && r->bytes > size ? calloc(1, sizeof *rest) : NULL;
    if (rest) {
        *rest = (range){.prev = r, .next = r->next, .block = r->block, .offset = r->offset + size, .bytes = r->bytes - size, .after = r->after};
        if (r->next)
            r->next->prev = rest;
        r->next = rest;
        r->bytes = size;
    }
    if (st == FX_OK) {
        r->used = true;
        r->use = use;
        snprintf(r->label, sizeof r->label, "%s", label);
        p->in_use += r->bytes;
        p->use[use] += r->bytes;
        p->peak = p->in_use > p->peak ? p->in_use : p->peak;
        *out = (fx_piece){&r->block->mem, r->offset, bytes, r->after, r};
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}

static void merge_next(range *r) {
    range *n = r->next;
    if (!n || n->used)
        return;
    r->bytes += n->bytes;
    r->after = n->after > r->after ? n->after : r->after;
    r->next = n->next;
    if (n->next)
        n->next->prev = r;
    free(n);
}

void fx_pool_free(fx_pool *p, fx_piece *piece) {
    range *r = piece->range;
    if (!r)
        return;
    pthread_mutex_lock(&p->lock);
    p->in_use -= r->bytes;
    p->use[r->use] -= r->bytes;
    r->used = false;
    if (p->backend->submit(p->device, 0, NULL, &r->after) != FX_OK)
        r->after = 0; /* a lost device does no work any more */
    merge_next(r);
    if (r->prev && !r->prev->used)
        merge_next(r->prev);
    pthread_mutex_unlock(&p->lock);
    memset(piece, 0, sizeof *piece);
}

fx_status fx_pool_preallocate(fx_pool *p) {
    fx_status st = FX_OK;
    pthread_mutex_lock(&p->lock);
    while (st == FX_OK && p->reserved + least_block <= p->limit) {
        uint64_t room = p->limit - p->reserved;
        st = add_block(p, (room < p->max_allocation ? room : p->max_allocation) / ALIGN * ALIGN);
    }
    pthread_mutex_unlock(&p->lock);
    return st;
}
