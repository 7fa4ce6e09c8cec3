/* rules_index.c - derivatives of gather and scatter.
 *
 * A gather clamps its start indices, a scatter drops windows that don't fit: the transposes keep to what was
 * computed, by clamping the indices of the scatter or masking the result of the gather. */
#include "autodiff/rules.h"

/* The dimension numbers of both ops under one set of names. window: offset_dims or update_window_dims. */
typedef struct index_numbers {
    int n_window, n_gone, n_batch, n_map;
    const int64_t *window, *gone, *batch, *index_batch, *map;
    int64_t vector_dim;
} index_numbers;

static index_numbers numbers_of(const fx_node *n) {
    bool gather = n->op == FX_OP_gather;
    index_numbers d;
    d.window = fx_attr_list(n, gather ? FX_ATTR_offset_dims : FX_ATTR_update_window_dims, &d.n_window);
    d.gone = fx_attr_list(n, gather ? FX_ATTR_collapsed_slice_dims : FX_ATTR_inserted_window_dims, &d.n_gone);
    d.map = fx_attr_list(n, gather ? FX_ATTR_start_index_map : FX_ATTR_scatter_dims, &d.n_map);
    d.batch = FX_GET_LIST(n, operand_batching_dims, &d.n_batch);
    d.index_batch = FX_GET_LIST(n, indices_batching_dims, NULL);
    d.vector_dim = FX_GET_INT(n, index_vector_dim);
    return d;
}

static fx_node *gather(fx_graph *g, fx_node *x, fx_node *indices, const index_numbers *d, const int64_t *sizes) {
    if (!x)
        return NULL;
    const fx_attr a[] = {FX_LIST(offset_dims, d->n_window, d->window),
                         FX_LIST(collapsed_slice_dims, d->n_gone, d->gone),
                         FX_LIST(operand_batching_dims, d->n_batch, d->batch),
                         FX_LIST(indices_batching_dims, d->n_batch, d->index_batch),
                         FX_LIST(start_index_map, d->n_map, d->map),
                         FX_INT(index_vector_dim, d->vector_dim),
                         FX_LIST(slice_sizes, x->spec.rank, sizes)};
    return fx_build(g, FX_OP_gather, 2, (fx_node *[]){x, indices}, sizeof a / sizeof *a, a, 0, NULL);
}

static fx_node *scatter(fx_graph *g, fx_node *x, fx_node *indices, fx_node *u, const index_numbers *d, fx_symbol kind) {
    const fx_attr a[] = {FX_LIST(update_window_dims, d->n_window, d->window),
                         FX_LIST(inserted_window_dims, d->n_gone, d->gone),
                         FX_LIST(operand_batching_dims, d->n_batch, d->batch),
                         FX_LIST(indices_batching_dims, d->n_batch, d->index_batch),
                         FX_LIST(scatter_dims, d->n_map, d->map),
                         FX_INT(index_vector_dim, d->vector_dim),
                         FX_SYM_ATTR(kind, kind)};
    return fx_build(g, FX_OP_scatter, 3, (fx_node *[]){x, indices, u}, sizeof a / sizeof *a, a, 0, NULL);
}

/* Sizes of a scatter's windows in the operand, as a gather's slice_sizes. */
static void window_sizes(const fx_node *n, const index_numbers *d, int64_t *sizes) {
    int rank = n->in[0]->spec.rank, w = 0;
    bool single[FX_MAX_RANK] = {false};
    for (int i = 0; i < d->n_gone; i++)
        single[d->gone[i]] = true;
    for (int i = 0; i < d->n_batch; i++)
        single[d->batch[i]] = true;
    for (int i = 0; i < rank; i++)
        sizes[i] = single[i] ? 1 : n->in[2]->spec.dims[d->window[w++]];
}

/* Per index component the largest start that fits, in the shape of the indices. */
static fx_node *largest_starts(fx_graph *g, const fx_spec *x, const fx_node *indices, const index_numbers *d,
                               const int64_t *sizes) {
    const fx_spec *s = &indices->spec;
    int64_t bound[FX_MAX_RANK];
    unsigned char data[FX_MAX_RANK * 8];
    size_t size = fx_dtype_size(s->dtype);
    for (int i = 0; i < d->n_map; i++) {
        bound[i] = x->dims[d->map[i]] - sizes[d->map[i]];
        fx_element_store(s->dtype, data + (size_t)i * size, (double)bound[i]);
    }
    fx_spec line = {s->dtype, 1, {d->n_map}};
    fx_node *c = fx_b_const_data(g, &line, data);
    if (d->vector_dim == s->rank)
        return fx_b_broadcast_scalar(g, fx_b_reshape(g, c, 0, NULL), s->rank, s->dims);
    return fx_b_broadcast(g, c, s->rank, s->dims, &d->vector_dim);
}

static fx_node *clamped(fx_graph *g, const fx_spec *x, fx_node *indices, const index_numbers *d, const int64_t *sizes) {
    if (!d->n_map || !indices)
        return indices;
    fx_node *in[] = {fx_b_like(indices, 0), indices, largest_starts(g, x, indices, d, sizes)};
    return fx_b_elementwise(g, FX_OP_clamp, 3, in);
}

/* bool in the shape of the updates: does the window fit? */
static fx_node *fits(fx_transpose_rule *r, const index_numbers *d, const int64_t *sizes) {
    fx_graph *g = r->g;
    fx_node *indices = r->in[1];
    const fx_spec *u = &r->n->in[2]->spec;
    if (!indices)
        return NULL;
    fx_node *ok = NULL;
    if (d->n_map) {
        fx_node *low = fx_b_binary_c(g, FX_OP_ge, indices, 0);
        fx_node *high = fx_b_binary(g, FX_OP_le, indices, largest_starts(g, &r->n->in[0]->spec, indices, d, sizes));
        ok = fx_b_binary(g, FX_OP_and, low, high);
        if (d->vector_dim < indices->spec.rank)
            ok = fx_b_reduce(g, ok, FX_SYM_and, 1, &d->vector_dim);
    } else
        return fx_b_const_splat(g,
                                &(fx_spec){FX_BOOL,
                                           u->rank,
                                           {u->dims[0], u->dims[1], u->dims[2], u->dims[3], u->dims[4], u->dims[5],
                                            u->dims[6], u->dims[7]}},
                                1);
    return fx_ad_spread(g, ok, u, d->n_window, d->window);
}

void fx_jvp_gather(fx_jvp_rule *r) {
    r->dt[0] = fx_node_rebuild(r->g, r->n, (fx_node *[]){r->t[0], r->in[1]});
}

void fx_transpose_gather(fx_transpose_rule *r) {
    const fx_spec *x = &r->n->in[0]->spec;
    index_numbers d = numbers_of(r->n);
    fx_node *indices = clamped(r->g, x, r->in[1], &d, FX_GET_LIST(r->n, slice_sizes, NULL));
    r->out[0] = scatter(r->g, fx_b_zeros(r->g, x), indices, r->ct[0], &d, FX_SYM_add);
}

/* d(x * product of updates): factors of zero are set apart so that nothing is divided by zero. */
static fx_node *jvp_scatter_mul(fx_jvp_rule *r, const index_numbers *d, const int64_t *sizes) {
    fx_graph *g = r->g;
    fx_node *x = r->in[0], *indices = r->in[1], *u = r->in[2], *t = NULL;
    if (r->t[0])
        t = scatter(g, r->t[0], indices, u, d, FX_SYM_mul);
    if (r->t[2] && u) {
        fx_node *is_zero = fx_b_binary_c(g, FX_OP_eq, u, 0), *one = fx_b_like(u, 1), *none = fx_b_like(u, 0);
        fx_node *safe = fx_b_select(g, is_zero, one, u);
        fx_node *zeros_at = scatter(g, fx_b_like(x, 0), indices, fx_b_select(g, is_zero, one, none), d, FX_SYM_add);
        fx_node *product = gather(g, scatter(g, x, indices, safe, d, FX_SYM_mul), indices, d, sizes);
        fx_node *others =
            fx_b_binary(g, FX_OP_sub, gather(g, zeros_at, indices, d, sizes), fx_b_select(g, is_zero, one, none));
        fx_node *factor =
            fx_b_select(g, fx_b_binary(g, FX_OP_eq, others, none), fx_b_binary(g, FX_OP_div, product, safe), none);
        t = fx_ad_add(g, t, scatter(g, fx_b_like(x, 0), indices, fx_ad_mul(g, r->t[2], factor), d, FX_SYM_add));
    }
    return t;
}

/* The tangent of an extremum is shared evenly by all that attain it. */
static fx_node *jvp_scatter_extremum(fx_jvp_rule *r, const index_numbers *d, const int64_t *sizes) {
    fx_graph *g = r->g;
    fx_node *x = r->in[0], *indices = r->in[1], *u = r->in[2], *y = r->out[0];
    fx_node *mine = fx_b_binary(g, FX_OP_eq, x, y),
            *theirs = fx_b_binary(g, FX_OP_eq, u, gather(g, y, indices, d, sizes));
    fx_node *no = fx_b_like(x, 0), *none = fx_b_like(u, 0);
    fx_node *count = scatter(g, fx_b_select(g, mine, fx_b_like(x, 1), no), indices,
                             fx_b_select(g, theirs, fx_b_like(u, 1), none), d, FX_SYM_add);
    count = fx_b_binary_c(g, FX_OP_max, count, 1);
    fx_node *tx = r->t[0] ? fx_b_select(g, mine, r->t[0], no) : no;
    fx_node *sum = r->t[2] ? scatter(g, tx, indices, fx_b_select(g, theirs, r->t[2], none), d, FX_SYM_add) : tx;
    return fx_b_binary(g, FX_OP_div, sum, count);
}

void fx_jvp_scatter(fx_jvp_rule *r) {
    index_numbers d = numbers_of(r->n);
    fx_symbol kind = FX_GET_SYM(r->n);
    int64_t sizes[FX_MAX_RANK];
    window_sizes(r->n, &d, sizes);
    if (kind == FX_SYM_mul)
        r->dt[0] = jvp_scatter_mul(r, &d, sizes);
    else if (kind == FX_SYM_min || kind == FX_SYM_max)
        r->dt[0] = jvp_scatter_extremum(r, &d, sizes);
    else if (kind == FX_SYM_add && !r->t[2])
        r->dt[0] = r->t[0];
    else
        r->dt[0] = fx_node_rebuild(r->g, r->n,
                                   (fx_node *[]){fx_ad_zeros(r->g, r->t[0], &r->n->in[0]->spec), r->in[1],
                                                 fx_ad_zeros(r->g, r->t[2], &r->n->in[2]->spec)});
}

void fx_transpose_scatter(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    index_numbers d = numbers_of(r->n);
    fx_symbol kind = FX_GET_SYM(r->n);
    fx_node *ct = r->ct[0], *indices = r->in[1];
    const fx_spec *u = &r->n->in[2]->spec;
    int64_t sizes[FX_MAX_RANK];
    window_sizes(r->n, &d, sizes);
    if (kind == FX_SYM_mul && r->linear[0] && !r->linear[2]) {
        r->out[0] = scatter(g, ct, indices, r->in[2], &d, FX_SYM_mul);
        return;
    }
    if (kind != FX_SYM_add && kind != FX_SYM_set) {
        fx_rule_error(g, r->n, FX_INVALID_ARGUMENT,
                      "reverse mode; expected a linear function of the tangents; got kind %s; a custom "
                      "rule must be linear in its tangents",
                      fx_symbol_name(kind));
        return;
    }
    if (r->linear[0])
        r->out[0] = kind == FX_SYM_add ? ct : scatter(g, ct, indices, fx_b_zeros(g, u), &d, FX_SYM_set);
    if (!r->linear[2])
        return;
    fx_node *keep = fits(r, &d, sizes);
    if (kind == FX_SYM_set) { /* of several windows on one element the last wins: find whose number stays */
        fx_spec ids = {FX_S32, 1, {1}}, shape = *u;
        shape.dtype = FX_S32;
        int64_t batch[FX_MAX_RANK];
        ids.rank = 0;
        for (int i = 0, w = 0; i < u->rank; i++) {
            if (w < d.n_window && d.window[w] == i) {
                w++;
                continue;
            }
            batch[ids.rank] = u->dims[i];
            ids.rank++;
        }
        fx_spec line = {FX_S32, 1, {1}};
        for (int i = 0; i < ids.rank; i++)
            line.dims[0] *= batch[i];
        fx_node *id = fx_b_reshape(g, fx_b_iota(g, &line, 0), ids.rank, batch);
        id = fx_ad_spread(g, id, &shape, d.n_window, d.window);
        fx_spec where = r->n->in[0]->spec;
        where.dtype = FX_S32;
        fx_node *winner = scatter(g, fx_b_const_splat(g, &where, -1), indices, id, &d, FX_SYM_set);
        keep = fx_b_binary(g, FX_OP_and, keep, fx_b_binary(g, FX_OP_eq, gather(g, winner, indices, &d, sizes), id));
    }
    r->out[2] = fx_b_select(g, keep, gather(g, ct, indices, &d, sizes), fx_b_zeros(g, u));
}
