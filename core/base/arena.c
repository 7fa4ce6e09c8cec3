/* arena.c - blocks double up to 1 MiB; a bigger request gets a block of its own. */
#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct fx_arena_block {
    struct fx_arena_block *next;
    size_t size;
    _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

void fx_arena_init(fx_arena *a) { memset(a, 0, sizeof *a); }

void fx_arena_finish(fx_arena *a) {
    for (struct fx_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    fx_arena_init(a);
}

void *fx_arena_alloc(fx_arena *a, size_t bytes) {
    if (bytes > SIZE_MAX / 2) {
        a->failed = true;
        return NULL;
    }
    bytes = (bytes + 15) & ~(size_t)15;
    if (!a->head || a->head->size - a->used < bytes) {
        size_t size = a->head ? a->head->size * 2 : FIRST_BLOCK;
        if (size > LARGEST_BLOCK)
            size = LARGEST_BLOCK;
        if (size < bytes)
            size = bytes;
        struct fx_arena_block *b = calloc(1, sizeof *b + size);
        if (!b) {
            a->failed = true;
            return NULL;
        }
        b->size = size;
        b->next = a->head;
        a->head = b;
        a->used = 0;
        a->bytes += sizeof *b + size;
    }
    void *p = a->head->data + a->used;
    a->used += bytes;
    return p;
}

void *fx_arena_copy(fx_arena *a, const void *data, size_t bytes) {
    void *p = fx_arena_alloc(a, bytes);
    if (p && bytes)
        memcpy(p, data, bytes);
    return p;
}

char *fx_arena_strdup(fx_arena *a, const char *s) { return s ? fx_arena_copy(a, s, strlen(s) + 1) : NULL; }
