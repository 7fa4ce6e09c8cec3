/* batch_shape.c - batching of constants, type changes, views, dynamic slices, gather and scatter. */
#include "autodiff/batch.h"

/* A list with `first` in front and `add` added to the others. */
typedef struct list {
    int n;
    int64_t v[FX_MAX_RANK + 1];
} list;

static list prefixed(const fx_node *n, fx_attr_id id, int64_t first, int64_t add) {
    list l = {1, {first}};
    int count;
    const int64_t *v = fx_attr_list(n, id, &count);
    for (int i = 0; i < count && l.n <= FX_MAX_RANK; i++)
        l.v[l.n++] = v[i] + add;
    return l;
}

static list moved(const fx_node *n, fx_attr_id id, int64_t add) {
    list l = {0, {0}};
    int count;
    const int64_t *v = fx_attr_list(n, id, &count);
    for (int i = 0; i < count; i++)
        l.v[l.n++] = v[i] + add;
    return l;
}

#define ATTR(name, l) FX_LIST(name, (l).n, (l).v)

static fx_node *build(fx_batch_rule *r, int n_in, fx_node *const *in, int n_attr, const fx_attr *a) {
    return fx_build(r->g, r->n->op, n_in, in, n_attr, a, 0, NULL);
}

/* These have no operands: nothing to batch. */
static void no_operands(fx_batch_rule *r) {
    fx_rule_error(r->g, r->n, FX_INTERNAL, "batching an op without operands");
}
void fx_batch_parameter(fx_batch_rule *r) {
    no_operands(r);
}
void fx_batch_constant(fx_batch_rule *r) {
    no_operands(r);
}
void fx_batch_iota(fx_batch_rule *r) {
    no_operands(r);
}
void fx_batch_project(fx_batch_rule *r) {
    fx_rule_error(r->g, r->n, FX_INTERNAL, "batching a projection");
}

void fx_batch_convert(fx_batch_rule *r) {
    fx_batch_elementwise(r);
}
void fx_batch_bitcast_convert(fx_batch_rule *r) {
    fx_batch_elementwise(r);
}
void fx_batch_reduce_precision(fx_batch_rule *r) {
    fx_batch_elementwise(r);
}
void fx_batch_stop_gradient(fx_batch_rule *r) {
    fx_batch_elementwise(r);
}

void fx_batch_broadcast_in_dim(fx_batch_rule *r) {
    list shape = prefixed(r->n, FX_ATTR_shape, r->size, 0), dims = prefixed(r->n, FX_ATTR_dims, 0, 1);
    r->out[0] = build(r, 1, r->in, 2, (const fx_attr[]){ATTR(shape, shape), ATTR(dims, dims)});
}

void fx_batch_reshape(fx_batch_rule *r) {
    list shape = prefixed(r->n, FX_ATTR_shape, r->size, 0);
    r->out[0] = build(r, 1, r->in, 1, &ATTR(shape, shape));
}

void fx_batch_transpose(fx_batch_rule *r) {
    list permutation = prefixed(r->n, FX_ATTR_permutation, 0, 1);
    r->out[0] = build(r, 1, r->in, 1, &ATTR(permutation, permutation));
}

void fx_batch_slice(fx_batch_rule *r) {
    list start = prefixed(r->n, FX_ATTR_start, 0, 0), limit = prefixed(r->n, FX_ATTR_limit, r->size, 0);
    list strides = prefixed(r->n, FX_ATTR_strides, 1, 0);
    r->out[0] =
        build(r, 1, r->in, 3, (const fx_attr[]){ATTR(start, start), ATTR(limit, limit), ATTR(strides, strides)});
}

void fx_batch_reverse(fx_batch_rule *r) {
    list dims = moved(r->n, FX_ATTR_dims, 1);
    r->out[0] = build(r, 1, r->in, 1, &ATTR(dims, dims));
}

void fx_batch_concatenate(fx_batch_rule *r) {
    fx_node **in = FX_ARENA_ARRAY(&r->g->arena, fx_node *, r->n->n_in);
    for (int i = 0; in && i < r->n->n_in; i++)
        in[i] = fx_batch_in(r, i);
    r->out[0] = in ? build(r, r->n->n_in, in, 1, &FX_INT(dim, FX_GET_INT(r->n, dim) + 1)) : NULL;
}

/* The op with a scalar that differs from lane to lane: done with a fixed one, which a mask then replaces. `rule` does
 * the op for an unbatched scalar. */
static void with_batched_scalar(fx_batch_rule *r, void (*rule)(fx_batch_rule *)) {
    fx_graph *g = r->g;
    fx_node *x = fx_batch_in(r, 0), *value = r->in[1], *out;
    if (!x || !value)
        return;
    fx_spec flags = x->spec;
    flags.dtype = FX_BOOL;
    fx_node *in[] = {x, fx_b_scalar(g, x->spec.dtype, 0)},
            *mask_in[] = {fx_b_const_splat(g, &flags, 1), fx_b_scalar(g, FX_BOOL, 0)};
    const bool batched[] = {true, false};
    fx_batch_rule inner = *r;
    inner.batched = batched;
    inner.in = in;
    rule(&inner);
    out = r->out[0];
    inner.in = mask_in;
    rule(&inner);
    if (out)
        r->out[0] = fx_b_select(g, r->out[0], out,
                                fx_b_broadcast(g, value, out->spec.rank, out->spec.dims, (const int64_t[]){0}));
}

void fx_batch_pad(fx_batch_rule *r) {
    if (r->batched[1]) {
        with_batched_scalar(r, fx_batch_pad);
        return;
    }
    list low = prefixed(r->n, FX_ATTR_low, 0, 0), high = prefixed(r->n, FX_ATTR_high, 0, 0),
         interior = prefixed(r->n, FX_ATTR_interior, 0, 0);
    r->out[0] = build(r, 2, r->in, 3, (const fx_attr[]){ATTR(low, low), ATTR(high, high), ATTR(interior, interior)});
}

void fx_batch_windows(fx_batch_rule *r) {
    if (r->batched[1]) {
        with_batched_scalar(r, fx_batch_windows);
        return;
    }
    list window = prefixed(r->n, FX_ATTR_window, 1, 0), strides = prefixed(r->n, FX_ATTR_strides, 1, 0);
    list low = prefixed(r->n, FX_ATTR_low, 0, 0), high = prefixed(r->n, FX_ATTR_high, 0, 0);
    list ld = prefixed(r->n, FX_ATTR_lhs_dilation, 1, 0), rd = prefixed(r->n, FX_ATTR_rhs_dilation, 1, 0);
    fx_node *w = build(r, 2, r->in, 6,
                       (const fx_attr[]){ATTR(window, window), ATTR(strides, strides), ATTR(low, low), ATTR(high, high),
                                         ATTR(lhs_dilation, ld), ATTR(rhs_dilation, rd)});
    int64_t shape[FX_MAX_RANK + 1] = {r->size}; /* drops the batch's own window of 1 */
    const fx_spec *y = &r->n->spec;
    for (int i = 0; i < y->rank; i++)
        shape[1 + i] = y->dims[i];
    r->out[0] = fx_b_reshape(r->g, w, y->rank + 1, shape);
}

/* Scalar indices first.. as rows of an index array s[size, rank]. */
static fx_node *index_rows(fx_batch_rule *r, int first, int rank) {
    fx_node *column[FX_MAX_RANK];
    for (int i = 0; i < rank; i++)
        column[i] = fx_b_reshape(r->g, fx_batch_in(r, first + i), 2, (const int64_t[]){r->size, 1});
    return fx_b_concatenate(r->g, rank, column, 1);
}

static bool any_batched(const fx_batch_rule *r, int first) {
    bool any = false;
    for (int i = first; i < r->n->n_in; i++)
        any |= r->batched[i];
    return any;
}

/* The op's operands with a zero index for the batch: the indices are the same for all lanes. */
static int with_zero_index(fx_batch_rule *r, int first, fx_node **in) {
    int n = r->n->n_in, k = first;
    in[k++] = fx_b_scalar(r->g, n > first ? r->n->in[first]->spec.dtype : FX_S32, 0);
    for (int i = first; i < n; i++)
        in[k++] = r->in[i];
    return k;
}

void fx_batch_dynamic_slice(fx_batch_rule *r) {
    int rank = r->n->spec.rank;
    if (!any_batched(r, 1)) {
        fx_node *in[FX_MAX_RANK + 2] = {r->in[0]};
        list shape = prefixed(r->n, FX_ATTR_shape, r->size, 0);
        int n = with_zero_index(r, 1, in);
        r->out[0] = build(r, n, in, 1, &ATTR(shape, shape));
        return;
    }
    int64_t count[FX_MAX_RANK + 1], zero = 0, b = r->batched[0] ? 1 : 0;
    for (int i = 0; i <= FX_MAX_RANK; i++)
        count[i] = i + 1;
    list sizes = b ? prefixed(r->n, FX_ATTR_shape, r->size ? 1 : 0, 0) : moved(r->n, FX_ATTR_shape, 0),
         map = {rank, {0}};
    for (int i = 0; i < rank; i++)
        map.v[i] = i + b;
    const fx_attr a[] = {FX_LIST(offset_dims, rank, count),
                         FX_LIST(collapsed_slice_dims, 0, &zero),
                         FX_LIST(operand_batching_dims, b, &zero),
                         FX_LIST(indices_batching_dims, b, &zero),
                         ATTR(start_index_map, map),
                         FX_INT(index_vector_dim, 1),
                         ATTR(slice_sizes, sizes)};
    r->out[0] = fx_build(r->g, FX_OP_gather, 2, (fx_node *[]){r->in[0], index_rows(r, 1, rank)}, 7, a, 0, NULL);
}

void fx_batch_dynamic_update_slice(fx_batch_rule *r) {
    fx_graph *g = r->g;
    int rank = r->n->spec.rank;
    fx_node *in[FX_MAX_RANK + 3] = {fx_batch_in(r, 0), fx_batch_in(r, 1)};
    if (!any_batched(r, 2)) {
        r->out[0] = build(r, with_zero_index(r, 2, in), in, 0, NULL);
        return;
    }
    int64_t count[FX_MAX_RANK + 1], zero = 0;
    unsigned char bound[FX_MAX_RANK * 8];
    fx_dtype d = r->n->in[2]->spec.dtype;
    for (int i = 0; i < rank; i++) {
        count[i] = i + 1;
        fx_element_store(d, bound + (size_t)i * fx_dtype_size(d),
                         (double)(r->n->spec.dims[i] - r->n->in[1]->spec.dims[i]));
    }
    fx_node *rows = index_rows(r, 2, rank); /* a scatter drops what doesn't fit: clamp first */
    const int64_t shape[] = {r->size, rank}, one = 1;
    fx_node *most = fx_b_broadcast(g, fx_b_const_data(g, &FX_SPEC(d, rank), bound), 2, shape, &one);
    rows = rows ? fx_b_elementwise(g, FX_OP_clamp, 3, (fx_node *[]){fx_b_like(rows, 0), rows, most}) : NULL;
    const fx_attr a[] = {FX_LIST(update_window_dims, rank, count),
                         FX_LIST(inserted_window_dims, 0, &zero),
                         FX_LIST(operand_batching_dims, 1, &zero),
                         FX_LIST(indices_batching_dims, 1, &zero),
                         FX_LIST(scatter_dims, rank, count),
                         FX_INT(index_vector_dim, 1),
                         FX_SYM(kind, set)};
    r->out[0] = fx_build(g, FX_OP_scatter, 3, (fx_node *[]){in[0], rows, in[1]}, 7, a, 0, NULL);
}

void fx_batch_gather(fx_batch_rule *r) {
    const fx_node *n = r->n;
    bool x = r->batched[0], i = r->batched[1];
    list offset = x && !i ? prefixed(n, FX_ATTR_offset_dims, 0, 1) : moved(n, FX_ATTR_offset_dims, 1);
    list collapsed = moved(n, FX_ATTR_collapsed_slice_dims, x), map = moved(n, FX_ATTR_start_index_map, x);
    list batch = x && i ? prefixed(n, FX_ATTR_operand_batching_dims, 0, 1) : moved(n, FX_ATTR_operand_batching_dims, x);
    list index_batch =
        x && i ? prefixed(n, FX_ATTR_indices_batching_dims, 0, 1) : moved(n, FX_ATTR_indices_batching_dims, i);
    list sizes = !x ? moved(n, FX_ATTR_slice_sizes, 0)
                    : prefixed(n, FX_ATTR_slice_sizes,
                               !i        ? r->size
                               : r->size ? 1
                                         : 0,
                               0);
    const fx_attr a[] = {ATTR(offset_dims, offset),
                         ATTR(collapsed_slice_dims, collapsed),
                         ATTR(operand_batching_dims, batch),
                         ATTR(indices_batching_dims, index_batch),
                         ATTR(start_index_map, map),
                         FX_INT(index_vector_dim, FX_GET_INT(n, index_vector_dim) + i),
                         ATTR(slice_sizes, sizes)};
    r->out[0] = build(r, 2, r->in, 7, a);
}

/* Indices for all lanes: the batch is a dimension of the windows. Indices of each lane: a batching dimension. */
void fx_batch_scatter(fx_batch_rule *r) {
    const fx_node *n = r->n;
    bool i = r->batched[1];
    fx_node *in[] = {fx_batch_in(r, 0), r->in[1], fx_batch_in(r, 2)};
    list window = i ? moved(n, FX_ATTR_update_window_dims, 1) : prefixed(n, FX_ATTR_update_window_dims, 0, 1);
    list inserted = moved(n, FX_ATTR_inserted_window_dims, 1), map = moved(n, FX_ATTR_scatter_dims, 1);
    list batch = i ? prefixed(n, FX_ATTR_operand_batching_dims, 0, 1) : moved(n, FX_ATTR_operand_batching_dims, 1);
    list index_batch =
        i ? prefixed(n, FX_ATTR_indices_batching_dims, 0, 1) : moved(n, FX_ATTR_indices_batching_dims, 0);
    const fx_attr a[] = {ATTR(update_window_dims, window),
                         ATTR(inserted_window_dims, inserted),
                         ATTR(operand_batching_dims, batch),
                         ATTR(indices_batching_dims, index_batch),
                         ATTR(scatter_dims, map),
                         FX_INT(index_vector_dim, FX_GET_INT(n, index_vector_dim) + i),
                         FX_SYM_ATTR(kind, FX_GET_SYM(n))};
    r->out[0] = build(r, 3, in, 7, a);
}
