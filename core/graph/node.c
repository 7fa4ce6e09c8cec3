/* node.c - hashing and interning of nodes, and reading their attributes.
 *
 * Two nodes of a graph are equal when op, operands (by pointer), attributes and regions (by structure) are. The hash of
 * a node covers the whole expression below it and doesn't depend on the graph that holds it. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/node.h"

struct fx_cons {
    size_t n, cap; /* cap: a power of two, at most half full */
    fx_node **slot;
};

uint64_t fx_hash_mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    return h ^ h >> 32;
}

uint64_t fx_hash_bytes(uint64_t h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    h = fx_hash_mix(h, bytes);
    while (bytes) {
        uint64_t x = 0;
        size_t k = bytes < 8 ? bytes : 8;
        for (size_t i = 0; i < k; i++) /* the same on either byte order */
            x |= (uint64_t)p[i] << 8 * i;
        h = fx_hash_mix(h, x);
        p += k;
        bytes -= k;
    }
    return h;
}

uint64_t fx_hash_spec(uint64_t h, const fx_spec *s) {
    h = fx_hash_mix(h, (uint64_t)s->dtype << 8 | (uint64_t)s->rank);
    for (int i = 0; i < s->rank; i++)
        h = fx_hash_mix(h, (uint64_t)s->dims[i]);
    return h;
}

bool fx_attr_equal(const fx_attr *a, const fx_attr *b) {
    if (a->id != b->id || a->count != b->count)
        return false;
    switch (fx_attr_kind_of(a->id)) {
    case FX_ATTR_LIST:
        return !a->count || !memcmp(a->u.list, b->u.list, sizeof *a->u.list * (size_t)a->count);
    case FX_ATTR_DATA:
        return !a->count || !memcmp(a->u.data, b->u.data, (size_t)a->count);
    default:
        return a->u.i == b->u.i;
    }
}

static uint64_t hash_attr(uint64_t h, const fx_attr *a) {
    h = fx_hash_mix(h, (uint64_t)a->id << 32 | (uint32_t)a->count);
    switch (fx_attr_kind_of(a->id)) {
    case FX_ATTR_LIST:
        for (int i = 0; i < a->count; i++)
            h = fx_hash_mix(h, (uint64_t)a->u.list[i]);
        return h;
    case FX_ATTR_DATA:
        return fx_hash_bytes(h, a->u.data, (size_t)a->count);
    default:
        return fx_hash_mix(h, (uint64_t)a->u.i);
    }
}

uint64_t fx_rule_hash(const fx_rule *r) {
    uint64_t h = fx_hash_mix((uint64_t)r->op, (uint64_t)r->n_in << 32 | (uint32_t)r->n_region);
    for (int i = 0; i < r->n_in; i++)
        h = fx_hash_mix(h, r->in[i]->hash);
    for (int i = 0; i < r->n_out; i++)
        h = hash_attr(h, &r->out[i]);
    for (int i = 0; i < r->n_region; i++)
        h = fx_hash_mix(h, r->region[i]->hash);
    return h;
}

static bool same(const fx_node *n, const fx_rule *r, uint64_t hash) {
    if (n->hash != hash || n->op != r->op || n->n_in != r->n_in || n->n_attr != r->n_out || n->n_region != r->n_region)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] != r->in[i])
            return false;
    for (int i = 0; i < n->n_attr; i++)
        if (!fx_attr_equal(&n->attr[i], &r->out[i]))
            return false;
    for (int i = 0; i < n->n_region; i++)
        if (n->region[i] != r->region[i] && !fx_graph_equal(n->region[i], r->region[i]))
            return false;
    return true;
}

/* Room for one more; false when memory is out. */
static bool reserve(fx_graph *g) {
    struct fx_cons *c = g->cons;
    if (!c && !(c = g->cons = calloc(1, sizeof *c)))
        return false;
    if (2 * (c->n + 1) <= c->cap)
        return true;
    size_t cap = c->cap ? 2 * c->cap : 64;
    fx_node **slot = calloc(cap, sizeof(fx_node *));
    if (!slot)
        return false;
    for (size_t i = 0; i < c->cap; i++)
        if (c->slot[i]) {
            size_t k = c->slot[i]->hash & (cap - 1);
            while (slot[k])
                k = (k + 1) & (cap - 1);
            slot[k] = c->slot[i];
        }
    free(c->slot);
    c->slot = slot;
    c->cap = cap;
    return true;
}

void fx_cons_free(struct fx_cons *c) {
    if (c)
        free(c->slot);
    free(c);
}

static bool copy_attrs(fx_graph *g, fx_node *n, const fx_rule *r) {
    fx_attr *a = fx_arena_copy(&g->arena, r->out, sizeof *a * (size_t)r->n_out);
    if (!a)
        return false;
    for (int i = 0; i < r->n_out; i++) {
        fx_attr_kind kind = fx_attr_kind_of(a[i].id);
        if (kind == FX_ATTR_LIST)
            a[i].u.list = fx_arena_copy(&g->arena, a[i].u.list, sizeof *a[i].u.list * (size_t)a[i].count);
        else if (kind == FX_ATTR_DATA)
            a[i].u.data = fx_arena_copy(&g->arena, a[i].u.data, (size_t)a[i].count);
    }
    n->attr = a;
    n->n_attr = r->n_out;
    return !g->arena.failed;
}

fx_node *fx_node_intern(const fx_rule *r) {
    fx_graph *g = r->g;
    uint64_t hash = fx_rule_hash(r);
    if (!reserve(g))
        return fx_graph_error(g, FX_OUT_OF_MEMORY, "%s: host memory ran out", fx_op_get(r->op)->name);
    size_t k = hash & (g->cons->cap - 1);
    for (; g->cons->slot[k]; k = (k + 1) & (g->cons->cap - 1))
        if (same(g->cons->slot[k], r, hash))
            return g->cons->slot[k];
    fx_node *n = fx_node_append(g, r->op, &r->spec);
    if (!n)
        return NULL;
    n->hash = hash;
    fx_node **in = fx_arena_copy(&g->arena, r->in, sizeof *in * (size_t)r->n_in);
    fx_graph **region = fx_arena_copy(&g->arena, r->region, sizeof *region * (size_t)r->n_region);
    if (!in || !region || !copy_attrs(g, n, r))
        return fx_graph_error(g, FX_OUT_OF_MEMORY, "%s: host memory ran out", fx_op_get(r->op)->name);
    n->in = in;
    n->n_in = r->n_in;
    n->region = region;
    n->n_region = r->n_region;
    for (int i = 0; i < n->n_region; i++)
        fx_graph_ref(region[i]);
    n->results = r->results;
    n->n_result = r->n_result;
    g->cons->slot[k] = n;
    g->cons->n++;
    return n;
}

int fx_result_count(const fx_node *n) {
    return n->spec.dtype == FX_TUPLE ? n->n_result : 1;
}

const fx_spec *fx_result_spec(const fx_node *n, int i) {
    return n->spec.dtype == FX_TUPLE ? &n->results[i] : &n->spec;
}

const fx_attr *fx_attr_get(const fx_node *n, fx_attr_id id) {
    for (int i = 0; i < n->n_attr; i++)
        if (n->attr[i].id == id)
            return &n->attr[i];
    return NULL;
}

int64_t fx_attr_int(const fx_node *n, fx_attr_id id, int64_t otherwise) {
    const fx_attr *a = fx_attr_get(n, id);
    return a ? a->u.i : otherwise;
}

const int64_t *fx_attr_list(const fx_node *n, fx_attr_id id, int *count) {
    const fx_attr *a = fx_attr_get(n, id);
    if (count)
        *count = a ? a->count : 0;
    return a ? a->u.list : NULL;
}
