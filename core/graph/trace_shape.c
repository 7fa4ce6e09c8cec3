/* trace_shape.c - operations that only move elements: reshape, transpose, broadcast, slice, pad, join. */
#include <string.h>

#include "core/graph/trace.h"

fx_val fx_reshape(fx_val x, int rank, const int64_t *dims) {
    if (!fx_trace_of(1, &x))
        return NULL;
    int64_t shape[FX_MAX_RANK], known = 1, count = fx_spec_count(&x->spec);
    int infer = -1;
    if (rank < 0 || rank > FX_MAX_RANK)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_reshape: rank; expected 0 to %d; got %d", FX_MAX_RANK, rank);
    if (rank && !fx_trace_given(x, "fx_reshape: list of dimensions", dims))
        return NULL;
    for (int i = 0; i < rank; i++) {
        shape[i] = dims[i];
        if (dims[i] == -1 && infer < 0)
            infer = i;
        else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
            return fx_graph_error(x->graph, FX_INVALID_ARGUMENT,
                                  "fx_reshape: dimension %d; expected 0 or more, or one -1; got %lld", i, (long long)dims[i]);
    }
    if (infer >= 0) {
        if (known == 0 || count % known)
            return fx_graph_error(x->graph, FX_INVALID_ARGUMENT,
                                  "fx_reshape: cannot infer dimension %d: %lld elements over %lld", infer, (long long)count,
                                  (long long)known);
        shape[infer] = count / known;
    }
    fx_attr a = FX_LIST(shape, rank, shape);
    return fx_trace_build(FX_OP_reshape, 1, &x, 1, &a);
}

fx_val fx_transpose(fx_val x, const int *permutation) {
    if (!fx_trace_of(1, &x))
        return NULL;
    int64_t p[FX_MAX_RANK];
    int rank = x->spec.rank;
    for (int i = 0; i < rank; i++) {
        int axis = permutation ? permutation[i] : rank - 1 - i;
        if (!fx_trace_axis(x, "fx_transpose", rank, &axis))
            return NULL;
        p[i] = axis;
    }
    fx_attr a = FX_LIST(permutation, rank, p);
    return fx_trace_build(FX_OP_transpose, 1, &x, 1, &a);
}

fx_val fx_broadcast_in_dim(fx_val x, int rank, const int64_t *shape, const int *dims) {
    if (!fx_trace_of(1, &x) || (x->spec.rank && !fx_trace_given(x, "fx_broadcast_in_dim: list of dimensions", dims)))
        return NULL;
    int64_t d[FX_MAX_RANK];
    for (int i = 0; i < x->spec.rank; i++)
        d[i] = dims[i];
    fx_attr a[] = {FX_LIST(shape, rank, shape), FX_LIST(dims, x->spec.rank, d)};
    return fx_trace_build(FX_OP_broadcast_in_dim, 1, &x, 2, a);
}

fx_val fx_broadcast_to(fx_val x, int rank, const int64_t *dims) {
    if (!fx_trace_of(1, &x) || (rank > 0 && !fx_trace_given(x, "fx_broadcast_to: list of dimensions", dims)))
        return NULL;
    int64_t keep[FX_MAX_RANK];
    int map[FX_MAX_RANK], n = 0, lead = rank - x->spec.rank;
    char a[128], b[128];
    fx_spec to = {x->spec.dtype, rank, {0}};
    bool ok = rank >= 0 && rank <= FX_MAX_RANK && lead >= 0;
    for (int i = 0; ok && i < rank; i++)
        to.dims[i] = dims[i];
    for (int i = 0; ok && i < x->spec.rank; i++) {
        int64_t size = x->spec.dims[i];
        ok = size == dims[lead + i] || size == 1;
        if (size == dims[lead + i]) { /* stretched axes of 1 are dropped, then broadcast */
            keep[n] = size;
            map[n++] = lead + i;
        }
    }
    if (!ok)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT,
                              "fx_broadcast_to: expected a shape that %s stretches to (axes equal or 1 from the last back); got %s",
                              fx_spec_format(&x->spec, a, sizeof a),
                              rank > FX_MAX_RANK || rank < 0 ? "a bad rank" : fx_spec_format(&to, b, sizeof b));
    if (fx_spec_equal(&to, &x->spec))
        return x;
    if (n < x->spec.rank)
        x = fx_reshape(x, n, keep);
    return fx_broadcast_in_dim(x, rank, dims, map);
}

fx_val fx_expand_dims(fx_val x, int axis) {
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_expand_dims", x->spec.rank + 1, &axis))
        return NULL;
    int64_t dims[FX_MAX_RANK + 1];
    for (int i = 0; i <= x->spec.rank; i++)
        dims[i] = i == axis ? 1 : x->spec.dims[i < axis ? i : i - 1];
    return fx_reshape(x, x->spec.rank + 1, dims);
}

fx_val fx_squeeze(fx_val x, int axis) {
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_squeeze", x->spec.rank, &axis))
        return NULL;
    int64_t dims[FX_MAX_RANK];
    if (x->spec.dims[axis] != 1)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_squeeze: axis %d; expected size 1; got %lld", axis,
                              (long long)x->spec.dims[axis]);
    for (int i = 0; i + 1 < x->spec.rank; i++)
        dims[i] = x->spec.dims[i < axis ? i : i + 1];
    return fx_reshape(x, x->spec.rank - 1, dims);
}

fx_val fx_slice(fx_val x, const int64_t *start, const int64_t *limit, const int64_t *strides) {
    if (!fx_trace_of(1, &x))
        return NULL;
    static const int64_t ones[FX_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int rank = x->spec.rank;
    fx_attr a[] = {FX_LIST(start, rank, start), FX_LIST(limit, rank, limit), FX_LIST(strides, rank, strides ? strides : ones)};
    return fx_trace_build(FX_OP_slice, 1, &x, 3, a);
}

fx_val fx_slice_axis(fx_val x, int axis, int64_t start, int64_t limit) {
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_slice_axis", x->spec.rank, &axis))
        return NULL;
    int64_t from[FX_MAX_RANK] = {0}, to[FX_MAX_RANK];
    memcpy(to, x->spec.dims, sizeof to);
    from[axis] = start;
    to[axis] = limit;
    return fx_slice(x, from, to, NULL);
}

fx_val fx_pad(fx_val x, fx_val value, const int64_t *low, const int64_t *high, const int64_t *interior) {
    fx_val in[] = {x, value};
    if (!fx_trace_of(2, in))
        return NULL;
    static const int64_t zeros[FX_MAX_RANK];
    int rank = x->spec.rank;
    fx_attr a[] = {FX_LIST(low, rank, low), FX_LIST(high, rank, high), FX_LIST(interior, rank, interior ? interior : zeros)};
    return fx_trace_build(FX_OP_pad, 2, in, 3, a);
}

fx_val fx_concatenate(int n, const fx_val *x, int axis) {
    if (n < 1)
        fx_trace_complain(NULL, "fx_concatenate: number of operands; expected 1 or more");
    if (n < 1 || !fx_trace_of(n, x) || !fx_trace_axis(x[0], "fx_concatenate", x[0]->spec.rank, &axis))
        return NULL;
    fx_attr a = FX_INT(dim, axis);
    return fx_trace_build(FX_OP_concatenate, n, x, 1, &a);
}

fx_val fx_stack(int n, const fx_val *x, int axis) {
    if (n < 1)
        fx_trace_complain(NULL, "fx_stack: number of operands; expected 1 or more");
    fx_graph *g = n < 1 ? NULL : fx_trace_of(n, x);
    if (!g || !fx_trace_axis(x[0], "fx_stack", x[0]->spec.rank + 1, &axis))
        return NULL;
    fx_val *v = FX_ARENA_ARRAY(&g->arena, fx_val, n);
    for (int i = 0; v && i < n; i++)
        v[i] = fx_expand_dims(x[i], axis);
    return v ? fx_concatenate(n, v, axis) : NULL;
}

fx_val fx_reverse(fx_val x, int n_axes, const int *axes) {
    int64_t dims[FX_MAX_RANK];
    int n;
    if (!fx_trace_of(1, &x) || !fx_trace_axes(x, "fx_reverse", n_axes, axes, &n, dims))
        return NULL;
    fx_attr a = FX_LIST(dims, n, dims);
    return fx_trace_build(FX_OP_reverse, 1, &x, 1, &a);
}
