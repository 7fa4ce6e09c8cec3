/* pool.h - a device's memory, taken from the backend in blocks and handed out in pieces.
 *
 * Pieces are 256-byte aligned; best fit among free pieces, neighbours merge when freed. A freed piece may be
 * handed out at once, also while earlier work still uses it: the device's work is ordered, so whoever gets
 * it comes later. Empty blocks are kept for reuse and returned when another request would fail. Thread-safe. */
#ifndef FX_RUNTIME_POOL_H
#define FX_RUNTIME_POOL_H

#include <pthread.h>

#include "fornax/backend.h"

typedef struct fx_piece {
    const fx_mem *mem;   /* the block's memory */
    uint64_t offset, bytes;
    uint64_t after;      /* ticket of the last work that may still use these bytes; 0: none */
    struct fx_range *range;
} fx_piece;

typedef enum fx_piece_use { FX_USE_ARRAY, FX_USE_ARENA, FX_USE_COUNT, FX_USE_ARRAY_SOON } fx_piece_use;

typedef struct fx_pool {
    pthread_mutex_t lock;
    const fx_backend *backend;
    fx_bdevice *device;
    uint64_t limit, max_allocation, reserved, in_use, peak, use[FX_USE_COUNT];
    struct fx_block *blocks;
} fx_pool;

fx_status fx_pool_init(fx_pool *p, const fx_backend *backend, fx_bdevice *device, uint64_t limit, uint64_t max_allocation);
void fx_pool_finish(fx_pool *p);
/* FX_USE_ARRAY_SOON is an array that the host fills at once: memory that no unfinished work uses is preferred, so
 * that the copy need not wait. label: what it is for, in the text of an out-of-memory error; copied. bytes 0 takes the least piece. */
fx_status fx_pool_alloc(fx_pool *p, uint64_t bytes, fx_piece_use use, const char *label, fx_piece *out);
void fx_pool_free(fx_pool *p, fx_piece *piece); /* NULL range is fine; clears it */
/* Takes the whole limit from the driver now. */
fx_status fx_pool_preallocate(fx_pool *p);

static inline uint64_t fx_piece_address(const fx_piece *p) { return p->mem->address + p->offset; }

#endif
