/* vmap.c - fx_vmap: checks axes, moves them to the front, batches, moves them where they are wanted. */
#include <string.h>

#include "autodiff/batch.h"
#include "core/base/error.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"

/* An axis of an array of `rank` dimensions with the new one among them. */
static fx_status take_axis(const char *list, int i, int rank, const int *axes, int *axis) {
    *axis = axes ? axes[i] : 0;
    if (axes && axes[i] == FX_NOT_MAPPED)
        return FX_OK;
    int given = *axis;
    *axis = given < 0 ? given + rank : given;
    if (*axis < 0 || *axis >= rank)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "fx_vmap: %s[%d]; expected %d to %d, or FX_NOT_MAPPED; got %d; the axis counts the new "
                       "dimension",
                       list, i, -rank, rank - 1, given);
    if (rank > FX_MAX_RANK)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "fx_vmap: %s[%d]; expected at most %d dimensions with the new one; got %d; reshape to fewer",
                       list, i, FX_MAX_RANK, rank);
    return FX_OK;
}

static fx_status build(fx_graph *g, const fx_graph *f, const int *in_axes, const int *out_axes, int64_t size) {
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_param + 1),
            **out = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    bool *batched = FX_ARENA_ARRAY(&g->arena, bool, f->n_param + 1),
         *is = FX_ARENA_ARRAY(&g->arena, bool, f->n_result + 1);
    int axis;
    if (g->arena.failed)
        return fx_fail_oom(g->arena.bytes);
    for (int i = 0; i < f->n_param; i++) {
        fx_spec s = f->params[i]->spec;
        FX_TRY(take_axis("in_axes", i, s.rank + 1, in_axes, &axis));
        batched[i] = axis != FX_NOT_MAPPED;
        if (batched[i]) {
            memmove(s.dims + axis + 1, s.dims + axis, sizeof *s.dims * (size_t)(s.rank - axis));
            s.dims[axis] = size;
            s.rank++;
        }
        args[i] = fx_graph_param(g, &s);
        if (batched[i])
            args[i] = fx_batch_move(g, args[i], axis, 0);
    }
    for (int i = 0; i < f->n_result; i++) {
        FX_TRY(take_axis("out_axes", i, f->results[i]->spec.rank + 1, out_axes, &axis));
        is[i] = axis != FX_NOT_MAPPED;
    }
    FX_TRY(fx_ad_batch(g, f, args, batched, size, out, is));
    for (int i = 0; i < f->n_result; i++) {
        FX_TRY(take_axis("out_axes", i, f->results[i]->spec.rank + 1, out_axes, &axis));
        if (axis == FX_NOT_MAPPED && is[i])
            return fx_fail(FX_INVALID_ARGUMENT,
                           "fx_vmap: out_axes[%d]; expected an axis, as result %d differs from lane to lane; got "
                           "FX_NOT_MAPPED; name an axis or reduce over it",
                           i, i);
        if (is[i])
            out[i] = fx_batch_move(g, out[i], 0, axis);
    }
    return fx_graph_finish(g, f->n_result, out, true);
}

fx_status fx_vmap(const fx_func *f, const int *in_axes, const int *out_axes, int64_t size, fx_func **out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_vmap: out; expected an address for the new function; got NULL");
    *out = NULL;
    if (!f)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_vmap: f; expected a function; got NULL; trace one with fx_trace_func");
    if (size < 0)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_vmap: size; expected the length of the new axis, 0 or more; got %lld",
                       (long long)size);
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_status st = build(g, fx_func_graph(f), in_axes, out_axes, size);
    if (st == FX_OK)
        *out = fx_graph_func(g);
    else
        fx_graph_unref(g);
    return st;
}
