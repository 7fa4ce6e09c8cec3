/* arena.h - bump allocator: memory that lives and dies together (a graph, one compilation).
 *
 * Allocations are 16-byte aligned and zeroed. There is no free of one object; fx_arena_finish
 * frees all. Not thread-safe: an arena belongs to one object. Returns NULL when the host is out
 * of memory; `failed` then stays set, so that a builder may check once at its end. */
#ifndef FX_BASE_ARENA_H
#define FX_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct fx_arena {
    struct fx_arena_block *head;
    size_t used, bytes; /* bytes: total taken from the host */
    bool failed;
} fx_arena;

void fx_arena_init(fx_arena *a); /* allocates nothing */
void fx_arena_finish(fx_arena *a);
void *fx_arena_alloc(fx_arena *a, size_t bytes);
void *fx_arena_copy(fx_arena *a, const void *data, size_t bytes); /* data may be NULL when bytes is 0 */
char *fx_arena_strdup(fx_arena *a, const char *s);
#define FX_ARENA_NEW(a, type) ((type *)fx_arena_alloc((a), sizeof(type)))
#define FX_ARENA_ARRAY(a, type, n) ((type *)fx_arena_alloc((a), sizeof(type) * (size_t)(n)))

#endif
