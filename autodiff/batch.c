/* batch.c - vmap: a graph copied so that some of its parameters have one more dimension, the batch, in front.
 *
 * Inside, a batched value has the batch as dimension 0, and only what depends on a batched parameter is batched. */
#include <stdlib.h>
#include <string.h>

#include "autodiff/batch.h"
#include "core/base/error.h"

#define FX_UNARY(name, ...) [FX_OP_##name] = fx_batch_elementwise,
#define FX_BINARY(name, ...) [FX_OP_##name] = fx_batch_elementwise,
#define FX_TERNARY(name, ...) [FX_OP_##name] = fx_batch_elementwise,
#define FX_STRUCTURAL(name, ...) [FX_OP_##name] = fx_batch_##name,
static void (*const rules[FX_OP_COUNT])(fx_batch_rule *) = {
#include "core/ops/ops.def"
};
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL

fx_node *fx_batch_broadcast(fx_graph *g, fx_node *x, int64_t size) {
    int64_t shape[FX_MAX_RANK + 1] = {size}, dims[FX_MAX_RANK];
    if (!x)
        return NULL;
    for (int i = 0; i < x->spec.rank; i++) {
        shape[1 + i] = x->spec.dims[i];
        dims[i] = 1 + i;
    }
    return fx_b_broadcast(g, x, x->spec.rank + 1, shape, dims);
}

fx_node *fx_batch_in(fx_batch_rule *r, int i) {
    return r->batched[i] ? r->in[i] : fx_batch_broadcast(r->g, r->in[i], r->size);
}

fx_node *fx_batch_move(fx_graph *g, fx_node *x, int from, int to) {
    int64_t order[FX_MAX_RANK];
    if (!x || from == to)
        return x;
    for (int i = 0, k = 0; i < x->spec.rank; i++) {
        k += k == from;
        order[i] = i == to ? from : k++;
    }
    return fx_b_transpose(g, x, order);
}

void fx_batch_elementwise(fx_batch_rule *r) {
    fx_node *in[3];
    for (int i = 0; i < r->n->n_in; i++)
        in[i] = fx_batch_in(r, i);
    r->out[0] = fx_node_rebuild(r->g, r->n, in);
}

static void visit(fx_graph *g, const fx_node *n, const int *slot, fx_node **v, bool *b, int scratch, int64_t size) {
    int at = slot[n->id], m = fx_result_count(n);
    if (n->op == FX_OP_project) {
        int from = slot[n->in[0]->id] + (int)FX_GET_INT(n, index);
        v[at] = v[from];
        b[at] = b[from];
        return;
    }
    bool any = false;
    for (int j = 0; j < n->n_in; j++) {
        v[scratch + j] = v[slot[n->in[j]->id]];
        b[scratch + j] = b[slot[n->in[j]->id]];
        any |= b[scratch + j];
    }
    fx_ad_place place = fx_ad_enter(g, n);
    if (any) {
        for (int i = 0; i < m; i++)
            b[at + i] = true;
        fx_batch_rule r = {g, n, v + scratch, b + scratch, size, v + at, b + at};
        rules[n->op](&r);
    } else {
        fx_node *c = fx_node_rebuild(g, n, v + scratch);
        for (int i = 0; i < m; i++)
            v[at + i] = fx_result(c, i);
    }
    fx_ad_leave(g, place);
}

fx_status fx_ad_batch(fx_graph *g, const fx_graph *f, fx_node *const *args, const bool *batched, int64_t size,
                      fx_node **results, bool *out_batched) {
    int slots = 0, widest = 1;
    for (int i = 0; i < f->n_node; i++) {
        slots += fx_result_count(f->nodes[i]);
        widest = f->nodes[i]->n_in > widest ? f->nodes[i]->n_in : widest;
    }
    int *slot = calloc((size_t)f->n_node + 1, sizeof *slot);
    fx_node **v = calloc((size_t)slots + (size_t)widest, sizeof *v);
    bool *b = calloc((size_t)slots + (size_t)widest, sizeof *b);
    if (slot && v && b) {
        for (int i = 0, at = 0; i < f->n_node && g->status == FX_OK; at += fx_result_count(f->nodes[i]), i++) {
            const fx_node *n = f->nodes[i];
            slot[i] = at;
            if (n->op == FX_OP_parameter) {
                v[at] = args[FX_GET_INT(n, index)];
                b[at] = batched[FX_GET_INT(n, index)];
            } else
                visit(g, n, slot, v, b, slots, size);
        }
    } else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    for (int i = 0; i < f->n_result && g->status == FX_OK; i++) {
        int at = slot[f->results[i]->id];
        results[i] = out_batched[i] && !b[at] ? fx_batch_broadcast(g, v[at], size) : v[at];
        out_batched[i] |= b[at];
    }
    free(slot);
    free(v);
    free(b);
    return g->status == FX_OK ? FX_OK : fx_fail(g->status, "%s", g->error);
}

fx_node *fx_batch_param(fx_graph *g, const fx_spec *spec, bool batched, int64_t size) {
    fx_spec s = *spec;
    if (batched) {
        if (s.rank == FX_MAX_RANK)
            return fx_graph_error(g, FX_INVALID_ARGUMENT,
                                  "batching; expected at most %d dimensions with the batch; got %d; reshape "
                                  "the value to fewer",
                                  FX_MAX_RANK, FX_MAX_RANK + 1);
        memmove(s.dims + 1, s.dims, sizeof *s.dims * (size_t)s.rank);
        s.dims[0] = size;
        s.rank++;
    }
    return fx_graph_param(g, &s);
}

fx_status fx_ad_batch_graph(const fx_graph *f, const bool *batched, int64_t size, bool *out_batched, fx_graph **out) {
    fx_graph *g = fx_graph_new(NULL);
    *out = NULL;
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_param + 1),
            **results = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    fx_status st = args && results ? FX_OK : fx_fail_oom(sizeof *args);
    for (int i = 0; st == FX_OK && i < f->n_param; i++)
        args[i] = fx_batch_param(g, &f->params[i]->spec, batched[i], size);
    if (st == FX_OK)
        st = fx_ad_batch(g, f, args, batched, size, results, out_batched);
    if (st == FX_OK)
        st = fx_graph_finish(g, f->n_result, results, true);
    if (st == FX_OK)
        *out = g;
    else
        fx_graph_unref(g);
    return st;
}
