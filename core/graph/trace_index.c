/* trace_index.c - slices at run-time positions, gather, scatter, and the usual ways to index with arrays. */
#include "core/graph/trace.h"

/* The operands of a dynamic slice in one list. */
static fx_val dynamic(fx_op op, fx_val x, fx_val update, const fx_val *start, int n_attr, const fx_attr *attrs) {
    fx_val in[FX_MAX_RANK + 2] = {x, update};
    int n = update ? 2 : 1;
    if (x->spec.rank && !fx_trace_given(x, "list of start indices", start))
        return NULL;
    for (int i = 0; i < x->spec.rank; i++)
        in[n++] = start[i];
    return fx_trace_build(op, n, in, n_attr, attrs);
}

fx_val fx_dynamic_slice(fx_val x, const fx_val *start, const int64_t *sizes) {
    if (!fx_trace_of(1, &x))
        return NULL;
    fx_attr a = FX_LIST(shape, x->spec.rank, sizes);
    return dynamic(FX_OP_dynamic_slice, x, NULL, start, 1, &a);
}

fx_val fx_dynamic_update_slice(fx_val x, fx_val update, const fx_val *start) {
    fx_val in[] = {x, update};
    return fx_trace_of(2, in) ? dynamic(FX_OP_dynamic_update_slice, x, update, start, 0, NULL) : NULL;
}

fx_val fx_gather(fx_val x, fx_val indices, const fx_gather_dims *d, const int64_t *slice_sizes) {
    fx_val in[] = {x, indices};
    if (!fx_trace_of(2, in) || !fx_trace_given(x, "fx_gather: dimension numbers", d))
        return NULL;
    fx_attr a[] = {FX_LIST(offset_dims, d->n_offset, d->offset_dims),
                   FX_LIST(collapsed_slice_dims, d->n_collapsed, d->collapsed_slice_dims),
                   FX_LIST(operand_batching_dims, d->n_batch, d->operand_batching_dims),
                   FX_LIST(indices_batching_dims, d->n_batch, d->indices_batching_dims),
                   FX_LIST(start_index_map, d->n_index_map, d->start_index_map),
                   FX_INT(index_vector_dim, d->index_vector_dim),
                   FX_LIST(slice_sizes, x->spec.rank, slice_sizes)};
    return fx_trace_build(FX_OP_gather, 2, in, 7, a);
}

fx_val fx_scatter(fx_val x, fx_val indices, fx_val updates, const fx_scatter_dims *d, fx_scatter_kind kind) {
    static const fx_symbol kinds[] = {FX_SYM_set, FX_SYM_add, FX_SYM_mul, FX_SYM_min, FX_SYM_max};
    fx_val in[] = {x, indices, updates};
    if (!fx_trace_of(3, in) || !fx_trace_given(x, "fx_scatter: dimension numbers", d))
        return NULL;
    if ((unsigned)kind > FX_SCATTER_MAX)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_scatter: kind; expected FX_SCATTER_SET to _MAX; got %d", (int)kind);
    fx_attr a[] = {FX_LIST(update_window_dims, d->n_window, d->update_window_dims),
                   FX_LIST(inserted_window_dims, d->n_inserted, d->inserted_window_dims),
                   FX_LIST(operand_batching_dims, d->n_batch, d->operand_batching_dims),
                   FX_LIST(indices_batching_dims, d->n_batch, d->indices_batching_dims),
                   FX_LIST(scatter_dims, d->n_scatter, d->scatter_dims_to_operand_dims),
                   FX_INT(index_vector_dim, d->index_vector_dim),
                   {FX_ATTR_kind, 1, {.i = kinds[kind]}}};
    return fx_trace_build(FX_OP_scatter, 3, in, 7, a);
}

fx_val fx_take(fx_val x, fx_val indices, int axis) {
    fx_val in[] = {x, indices};
    if (!fx_trace_of(2, in) || !fx_trace_axis(x, "fx_take", x->spec.rank, &axis))
        return NULL;
    int64_t offset[FX_MAX_RANK * 2], sizes[FX_MAX_RANK], collapsed = axis;
    int rank = x->spec.rank, n = 0, ni = indices->spec.rank;
    if (rank - 1 + ni > FX_MAX_RANK)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_take: rank of the result; expected at most %d; got %d",
                              FX_MAX_RANK, rank - 1 + ni);
    for (int i = 0; i < rank; i++) {
        sizes[i] = i == axis ? 1 : x->spec.dims[i];
        if (i != axis)
            offset[n++] = i < axis ? i : i - 1 + ni;
    }
    fx_gather_dims d = {.n_offset = n, .offset_dims = offset, .n_collapsed = 1, .collapsed_slice_dims = &collapsed,
                        .n_index_map = 1, .start_index_map = &collapsed, .index_vector_dim = ni};
    return fx_gather(x, indices, &d, sizes);
}

fx_val fx_take_along_axis(fx_val x, fx_val indices, int axis) {
    fx_val in[] = {x, indices};
    if (!fx_trace_of(2, in))
        return NULL;
    int rank = x->spec.rank, n = 0;
    if (rank < 1 || indices->spec.rank != rank)
        return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_take_along_axis: ranks; expected equal ones of 1 or more; got %d and %d",
                              rank, indices->spec.rank);
    if (!fx_trace_axis(x, "fx_take_along_axis", rank, &axis))
        return NULL;
    int64_t batch[FX_MAX_RANK], ones[FX_MAX_RANK], dim = axis;
    for (int i = 0; i < rank; i++) {
        ones[i] = 1;
        if (i == axis)
            continue;
        if (x->spec.dims[i] != indices->spec.dims[i])
            return fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "fx_take_along_axis: axis %d; expected equal sizes; got %lld and %lld",
                                  i, (long long)x->spec.dims[i], (long long)indices->spec.dims[i]);
        batch[n++] = i;
    }
    fx_gather_dims d = {.n_collapsed = 1, .collapsed_slice_dims = &dim, .n_batch = n, .operand_batching_dims = batch,
                        .indices_batching_dims = batch, .n_index_map = 1, .start_index_map = &dim, .index_vector_dim = rank};
    return fx_gather(x, indices, &d, ones);
}

fx_val fx_one_hot(fx_val labels, int64_t classes, fx_dtype dtype) {
    if (!fx_trace_of(1, &labels))
        return NULL;
    fx_spec s = labels->spec;
    if (s.rank == FX_MAX_RANK)
        return fx_graph_error(labels->graph, FX_INVALID_ARGUMENT, "fx_one_hot: rank; expected at most %d; got %d",
                              FX_MAX_RANK - 1, s.rank);
    s.dims[s.rank++] = classes;
    fx_val hit = fx_eq(fx_expand_dims(labels, -1), fx_iota(fx_val_trace(labels), s, -1));
    return fx_convert(hit, dtype);
}
