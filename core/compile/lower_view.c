/* lower_view.c - views and indexed reads: where an element of the result comes from.
 *
 * Reads that may fall outside are clamped into the operand and their value is replaced by a select, so
 * that no lane ever reads out of bounds. */
#include "core/compile/lower.h"

fx_kx *fx_lower_clamp(fx_kir *k, fx_kx *x, int64_t n) {
    return fx_k_max(k, fx_k_min(k, x, fx_k_int(k, n > 0 ? n - 1 : 0)), fx_k_int(k, 0));
}

fx_kx *fx_lower_window(fx_kir *k, fx_kx *x, int64_t size, int64_t dilation, fx_kx **valid) {
    int64_t extent = size > 0 ? (size - 1) * dilation + 1 : 0;
    *valid = fx_k_and(k, fx_k_le(k, fx_k_int(k, 0), x), fx_k_lt(k, x, fx_k_int(k, extent)));
    fx_kx *inside = fx_lower_clamp(k, x, extent);
    if (dilation == 1)
        return inside;
    *valid = fx_k_and(k, *valid, fx_k_eq(k, fx_k_mod(k, inside, dilation), fx_k_int(k, 0)));
    return fx_k_div(k, inside, dilation);
}

static fx_kx *guarded(fx_lower *lo, fx_kx *valid, fx_node *n, fx_kx *const *index, fx_kx *otherwise) {
    if (fx_kx_is_int(valid, 0) || !fx_spec_count(&n->spec))
        return otherwise;
    return fx_k_select(lo->k, valid, fx_lower_node(lo, n, index), otherwise);
}

/* An operand of a concatenation that the index may fall into, and where it begins. */
typedef struct part {
    fx_node *x;
    int64_t off;
} part;

/* The element in operands `from` up to `to` (excluded): a tree of selects, for a chain of a hundred nests deeper than drivers'
 * compilers can follow. */
static fx_kx *one_of(fx_lower *lo, const part *parts, int from, int to, int dim, fx_kx *const *index) {
    fx_kir *k = lo->k;
    if (to - from == 1) {
        fx_kx *idx[FX_MAX_RANK];
        const fx_spec *s = &parts[from].x->spec;
        for (int d = 0; d < s->rank; d++)
            idx[d] = index[d];
        idx[dim] = fx_lower_clamp(k, fx_k_addc(k, index[dim], -parts[from].off), s->dims[dim]);
        return fx_lower_node(lo, parts[from].x, idx);
    }
    int middle = from + (to - from) / 2;
    fx_kx *first = one_of(lo, parts, from, middle, dim, index), *second = one_of(lo, parts, middle, to, dim, index);
    return fx_k_select(k, fx_k_lt(k, index[dim], fx_k_int(k, parts[middle].off)), first, second);
}

static fx_kx *concatenate(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    int dim = (int)FX_GET_INT(n, dim), count = 0;
    part *parts = FX_ARENA_ARRAY(lo->k->arena, part, n->n_in + 1);
    if (!parts)
        return fx_lower_fail(lo, FX_OUT_OF_MEMORY, "a concatenation of %d operands; expected memory; got none", n->n_in);
    for (int64_t j = 0, off = 0, size = 0; j < n->n_in; j++, off += size) {
        size = n->in[j]->spec.dims[dim];
        if (size && !fx_kx_is_int(fx_k_le(k, fx_k_int(k, off), index[dim]), 0) &&
            !fx_kx_is_int(fx_k_lt(k, index[dim], fx_k_int(k, off + size)), 0))
            parts[count++] = (part){n->in[j], off};
    }
    return count ? one_of(lo, parts, 0, count, dim, index) : fx_k_number(k, fx_kir_register(n->spec.dtype), 0);
}

static fx_kx *iota(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kx *i = index[FX_GET_INT(n, dim)];
    fx_dtype d = n->spec.dtype, reg = fx_kir_register(d);
    if (d == FX_F16 || d == FX_BF16)
        return fx_k_convert(lo->k, i, i->type, d);
    return fx_dtype_size(d) < 4 ? fx_k_convert(lo->k, i, i->type, d) : fx_k_cast(lo->k, i, reg);
}

fx_kx *fx_lower_view(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->n_in ? n->in[0] : NULL;
    int rank = x ? x->spec.rank : 0;
    const int64_t *dims = x ? x->spec.dims : NULL;
    fx_kx *idx[FX_MAX_RANK], *valid = fx_k_bool(k, true), *ok;
    switch (n->op) {
    case FX_OP_iota:
        return iota(lo, n, index);
    case FX_OP_broadcast_in_dim: {
        const int64_t *to = FX_GET_LIST(n, dims, NULL);
        for (int d = 0; d < rank; d++)
            idx[d] = dims[d] == 1 ? fx_k_int(k, 0) : index[to[d]];
        return fx_lower_node(lo, x, idx);
    }
    case FX_OP_reshape:
        fx_k_delinearise(k, fx_k_linearise(k, n->spec.rank, n->spec.dims, index), rank, dims, idx);
        return fx_lower_node(lo, x, idx);
    case FX_OP_transpose: {
        const int64_t *perm = FX_GET_LIST(n, permutation, NULL);
        for (int d = 0; d < rank; d++)
            idx[perm[d]] = index[d];
        return fx_lower_node(lo, x, idx);
    }
    case FX_OP_slice: {
        const int64_t *start = FX_GET_LIST(n, start, NULL), *step = FX_GET_LIST(n, strides, NULL);
        for (int d = 0; d < rank; d++)
            idx[d] = fx_k_addc(k, fx_k_mulc(k, index[d], step[d]), start[d]);
        return fx_lower_node(lo, x, idx);
    }
    case FX_OP_reverse: {
        int n_dims;
        const int64_t *rev = FX_GET_LIST(n, dims, &n_dims);
        for (int d = 0; d < rank; d++)
            idx[d] = index[d];
        for (int j = 0; j < n_dims; j++)
            idx[rev[j]] = fx_k_sub(k, fx_k_int(k, dims[rev[j]] - 1), index[rev[j]]);
        return fx_lower_node(lo, x, idx);
    }
    case FX_OP_pad: {
        const int64_t *low = FX_GET_LIST(n, low, NULL), *interior = FX_GET_LIST(n, interior, NULL);
        for (int d = 0; d < rank; d++) {
            idx[d] = fx_lower_window(k, fx_k_addc(k, index[d], -low[d]), dims[d], interior[d] + 1, &ok);
            valid = fx_k_and(k, valid, ok);
        }
        return guarded(lo, valid, x, idx, fx_lower_node(lo, n->in[1], NULL));
    }
    case FX_OP_windows: {
        const int64_t *low = FX_GET_LIST(n, low, NULL), *step = FX_GET_LIST(n, strides, NULL);
        const int64_t *ld = FX_GET_LIST(n, lhs_dilation, NULL), *rd = FX_GET_LIST(n, rhs_dilation, NULL);
        for (int d = 0; d < rank; d++) {
            fx_kx *p = fx_k_add(k, fx_k_mulc(k, index[d], step[d]), fx_k_mulc(k, index[rank + d], rd[d]));
            idx[d] = fx_lower_window(k, fx_k_addc(k, p, -low[d]), dims[d], ld[d], &ok);
            valid = fx_k_and(k, valid, ok);
        }
        return guarded(lo, valid, x, idx, fx_lower_node(lo, n->in[1], NULL));
    }
    case FX_OP_concatenate:
        return concatenate(lo, n, index);
    default:
        return NULL;
    }
}

/* Integer data of any type as an index in [lo_, hi]. */
fx_kx *fx_lower_index_data(fx_lower *lo, fx_node *n, fx_kx *const *index, int64_t lo_, int64_t hi) {
    fx_kir *k = lo->k;
    fx_kx *x = fx_lower_node(lo, n, index);
    if (x->type == FX_U32 || x->type == FX_U64) { /* unsigned: compare unsigned, then it fits */
        fx_kx *top = fx_k_const(k, x->type, hi > 0 ? hi : 0);
        fx_kx *small = fx_k_op2(k, FX_OP_min, x->type, x, top);
        fx_kx *i = fx_k_cast(k, fx_k_let(k, small), hi > INT32_MAX ? FX_S64 : FX_S32);
        return fx_k_max(k, fx_k_min(k, i, fx_k_int(k, hi)), fx_k_int(k, lo_));
    }
    fx_kx *c = fx_k_max(k, fx_k_min(k, x, fx_k_int(k, hi)), fx_k_int(k, lo_));
    return c;
}

static fx_kx *gather(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0], *indices = n->in[1];
    int n_off, n_gone, n_ob, n_map;
    const int64_t *off = FX_GET_LIST(n, offset_dims, &n_off), *gone = FX_GET_LIST(n, collapsed_slice_dims, &n_gone);
    const int64_t *ob = FX_GET_LIST(n, operand_batching_dims, &n_ob), *ib = FX_GET_LIST(n, indices_batching_dims, NULL);
    const int64_t *map = FX_GET_LIST(n, start_index_map, &n_map), *sizes = FX_GET_LIST(n, slice_sizes, NULL);
    int vec = (int)FX_GET_INT(n, index_vector_dim);
    fx_kx *batch[FX_MAX_RANK], *idx[FX_MAX_RANK], *at[FX_MAX_RANK];
    int nb = 0;
    for (int d = 0; d < n->spec.rank; d++) {
        bool is_off = false;
        for (int j = 0; j < n_off; j++)
            is_off |= off[j] == d;
        if (!is_off)
            batch[nb++] = index[d];
    }
    for (int d = 0, b = 0; d < indices->spec.rank; d++) /* the batch position in indices */
        at[d] = d == vec ? fx_k_int(k, 0) : batch[b++];
    for (int d = 0, o = 0; d < x->spec.rank; d++) {
        bool dropped = false;
        for (int j = 0; j < n_gone; j++)
            dropped |= gone[j] == d;
        for (int j = 0; j < n_ob; j++)
            dropped |= ob[j] == d;
        idx[d] = dropped ? fx_k_int(k, 0) : index[off[o++]];
    }
    for (int j = 0; j < n_map; j++) {
        int d = (int)map[j];
        if (vec < indices->spec.rank)
            at[vec] = fx_k_int(k, j);
        idx[d] = fx_k_add(k, idx[d], fx_lower_index_data(lo, indices, at, 0, x->spec.dims[d] - sizes[d]));
    }
    for (int j = 0; j < n_ob; j++) {
        int d = (int)ib[j];
        idx[ob[j]] = at[d];
    }
    return fx_lower_node(lo, x, idx);
}

static fx_kx *dynamic_slice(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_node *x = n->in[0];
    fx_kx *idx[FX_MAX_RANK];
    for (int d = 0; d < x->spec.rank; d++)
        idx[d] = fx_k_add(lo->k, index[d],
                          fx_lower_index_data(lo, n->in[1 + d], NULL, 0, x->spec.dims[d] - n->spec.dims[d]));
    return fx_lower_node(lo, x, idx);
}

static fx_kx *dynamic_update_slice(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0], *u = n->in[1];
    fx_kx *idx[FX_MAX_RANK], *valid = fx_k_bool(k, true), *ok;
    for (int d = 0; d < x->spec.rank; d++) {
        fx_kx *start = fx_lower_index_data(lo, n->in[2 + d], NULL, 0, x->spec.dims[d] - u->spec.dims[d]);
        idx[d] = fx_lower_window(k, fx_k_sub(k, index[d], start), u->spec.dims[d], 1, &ok);
        valid = fx_k_and(k, valid, ok);
    }
    return guarded(lo, valid, u, idx, fx_lower_node(lo, x, index));
}

/* Scatter pulled: each element takes, in the order of the updates, those whose window covers it. */
static fx_kx *scatter(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0], *indices = n->in[1], *u = n->in[2];
    int n_win, n_gone, n_ob, n_map;
    const int64_t *win = FX_GET_LIST(n, update_window_dims, &n_win),
                  *gone = FX_GET_LIST(n, inserted_window_dims, &n_gone);
    const int64_t *ob = FX_GET_LIST(n, operand_batching_dims, &n_ob), *ib = FX_GET_LIST(n, indices_batching_dims, NULL);
    const int64_t *map = FX_GET_LIST(n, scatter_dims, &n_map);
    int vec = (int)FX_GET_INT(n, index_vector_dim), loops = 0;
    fx_kx *old = fx_lower_node(lo, x, index);
    if (!fx_spec_count(&u->spec))
        return old;
    fx_kx *acc = fx_k_mut(k, old), *at[FX_MAX_RANK], *uidx[FX_MAX_RANK], *start[FX_MAX_RANK];
    for (int d = 0; d < indices->spec.rank; d++) { /* loop over the positions in order */
        at[d] = fx_k_int(k, 0);
        if (d == vec)
            continue;
        int batch = -1;
        for (int j = 0; j < n_ob; j++)
            if (ib[j] == d)
                batch = (int)ob[j];
        if (batch >= 0)
            at[d] = index[batch];
        else {
            at[d] = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, indices->spec.dims[d]), 1, false);
            loops++;
        }
    }
    for (int d = 0; d < x->spec.rank; d++)
        start[d] = fx_k_int(k, 0);
    fx_kx *hit = fx_k_bool(k, true);
    int64_t size[FX_MAX_RANK];
    bool dropped[FX_MAX_RANK] = {false};
    for (int d = 0; d < x->spec.rank; d++)
        size[d] = 1;
    for (int j = 0; j < n_gone; j++)
        dropped[gone[j]] = true;
    for (int j = 0; j < n_ob; j++)
        dropped[ob[j]] = true;
    for (int d = 0, w = 0; d < x->spec.rank; d++)
        if (!dropped[d])
            size[d] = u->spec.dims[win[w++]];
    for (int j = 0; j < n_map; j++) {
        int d = (int)map[j];
        if (vec < indices->spec.rank)
            at[vec] = fx_k_int(k, j);
        fx_kx *s = fx_lower_index_data(lo, indices, at, -1, x->spec.dims[d] - size[d] + 1);
        hit = fx_k_and(
            k, hit, fx_k_and(k, fx_k_le(k, fx_k_int(k, 0), s), fx_k_le(k, s, fx_k_int(k, x->spec.dims[d] - size[d]))));
        start[d] = s;
    }
    for (int j = 0; j < n_ob; j++)
        start[ob[j]] = index[ob[j]];
    for (int d = 0, w = 0; d < x->spec.rank; d++) {
        fx_kx *o = fx_k_sub(k, index[d], start[d]);
        hit = fx_k_and(k, hit, fx_k_and(k, fx_k_le(k, fx_k_int(k, 0), o), fx_k_lt(k, o, fx_k_int(k, size[d]))));
        if (!dropped[d])
            uidx[win[w++]] = fx_lower_clamp(k, o, size[d]);
    }
    for (int d = 0, b = 0; d < u->spec.rank; d++) {
        bool is_win = false;
        for (int j = 0; j < n_win; j++)
            is_win |= win[j] == d;
        if (is_win)
            continue;
        if (b == vec)
            b++;
        uidx[d] = at[b++];
    }
    fx_k_if(k, hit);
    fx_kx *v = fx_lower_node(lo, u, uidx);
    fx_symbol kind = FX_GET_SYM(n);
    fx_k_set(k, acc, kind == FX_SYM_set ? v : fx_k_op2(k, fx_reduce_op(kind), n->spec.dtype, acc, v));
    fx_k_end(k);
    for (int j = 0; j < loops; j++)
        fx_k_end(k);
    return fx_k_read(k, acc);
}

fx_kx *fx_lower_index_op(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    switch (n->op) {
    case FX_OP_gather:
        return gather(lo, n, index);
    case FX_OP_dynamic_slice:
        return dynamic_slice(lo, n, index);
    case FX_OP_dynamic_update_slice:
        return dynamic_update_slice(lo, n, index);
    case FX_OP_scatter:
        return scatter(lo, n, index);
    default:
        return NULL;
    }
}
