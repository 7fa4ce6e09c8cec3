/* rules_shape.c - derivatives of type changes and of ops that only move elements: all linear. */
#include "autodiff/rules.h"

static const int64_t zeros[FX_MAX_RANK];

/* The same op on the tangents. */
static void linear(fx_jvp_rule *r) {
    r->dt[0] = fx_node_rebuild(r->g, r->n, r->t);
}

void fx_jvp_convert(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_reduce_precision(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_broadcast_in_dim(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_reshape(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_transpose(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_slice(fx_jvp_rule *r) {
    linear(r);
}
void fx_jvp_reverse(fx_jvp_rule *r) {
    linear(r);
}

void fx_transpose_convert(fx_transpose_rule *r) {
    r->out[0] = fx_b_convert(r->g, r->ct[0], r->n->in[0]->spec.dtype);
}
void fx_transpose_reduce_precision(fx_transpose_rule *r) {
    r->out[0] = fx_node_rebuild(r->g, r->n, r->ct);
}
void fx_transpose_reverse(fx_transpose_rule *r) {
    r->out[0] = fx_node_rebuild(r->g, r->n, r->ct);
}

void fx_transpose_reshape(fx_transpose_rule *r) {
    const fx_spec *x = &r->n->in[0]->spec;
    r->out[0] = fx_b_reshape(r->g, r->ct[0], x->rank, x->dims);
}

void fx_transpose_transpose(fx_transpose_rule *r) {
    int64_t inverse[FX_MAX_RANK];
    fx_ad_inverse(r->n->spec.rank, FX_GET_LIST(r->n, permutation, NULL), inverse);
    r->out[0] = fx_b_transpose(r->g, r->ct[0], inverse);
}

/* Sum over what the broadcast made: new dimensions and stretched ones; then the operand's order of dimensions. */
void fx_transpose_broadcast_in_dim(fx_transpose_rule *r) {
    const fx_spec *x = &r->n->in[0]->spec, *y = &r->n->spec;
    const int64_t *dims = FX_GET_LIST(r->n, dims, NULL);
    int64_t sum[FX_MAX_RANK], order[FX_MAX_RANK], rank_of[FX_MAX_RANK];
    int n_sum = 0, n_kept = 0, k = 0;
    bool kept[FX_MAX_RANK] = {false};
    for (int i = 0; i < x->rank; i++)
        kept[dims[i]] = x->dims[i] == y->dims[dims[i]];
    for (int i = 0; i < y->rank; i++) {
        rank_of[i] = n_kept;
        if (kept[i])
            n_kept++;
        else
            sum[n_sum++] = i;
    }
    fx_node *ct = fx_b_reduce(r->g, r->ct[0], FX_SYM_sum, n_sum, sum);
    for (int i = 0; i < x->rank; i++)
        if (kept[dims[i]])
            order[k++] = rank_of[dims[i]];
    ct = fx_b_transpose(r->g, ct, order);
    r->out[0] = fx_b_reshape(r->g, ct, x->rank, x->dims);
}

void fx_transpose_slice(fx_transpose_rule *r) {
    const fx_spec *x = &r->n->in[0]->spec, *y = &r->n->spec;
    const int64_t *start = FX_GET_LIST(r->n, start, NULL), *strides = FX_GET_LIST(r->n, strides, NULL);
    int64_t low[FX_MAX_RANK], high[FX_MAX_RANK], interior[FX_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        int64_t used = y->dims[i] ? (y->dims[i] - 1) * strides[i] + 1 : 0;
        low[i] = y->dims[i] ? start[i] : 0;
        high[i] = x->dims[i] - low[i] - used;
        interior[i] = strides[i] - 1;
    }
    r->out[0] = fx_b_pad(r->g, r->ct[0], fx_b_scalar(r->g, y->dtype, 0), low, high, interior);
}

void fx_jvp_pad(fx_jvp_rule *r) {
    fx_node *t[2] = {fx_ad_zeros(r->g, r->t[0], &r->n->in[0]->spec), fx_ad_zeros(r->g, r->t[1], &r->n->in[1]->spec)};
    r->dt[0] = fx_node_rebuild(r->g, r->n, t);
}

void fx_transpose_pad(fx_transpose_rule *r) {
    const fx_spec *x = &r->n->in[0]->spec;
    const int64_t *low = FX_GET_LIST(r->n, low, NULL), *high = FX_GET_LIST(r->n, high, NULL);
    const int64_t *interior = FX_GET_LIST(r->n, interior, NULL);
    int64_t minus_low[FX_MAX_RANK], minus_high[FX_MAX_RANK], limit[FX_MAX_RANK], strides[FX_MAX_RANK], all[FX_MAX_RANK];
    fx_graph *g = r->g;
    for (int i = 0; i < x->rank; i++) {
        minus_low[i] = -low[i];
        minus_high[i] = -high[i];
        strides[i] = interior[i] + 1;
        limit[i] = x->dims[i] ? (x->dims[i] - 1) * strides[i] + 1 : 0;
        all[i] = i;
    }
    fx_node *inner = fx_b_pad(g, r->ct[0], fx_b_scalar(g, x->dtype, 0), minus_low, minus_high, NULL);
    inner = fx_b_slice(g, inner, zeros, limit, strides);
    if (r->linear[0])
        r->out[0] = inner;
    if (r->linear[1]) /* all that isn't the operand's */
        r->out[1] = fx_ad_sub(g, fx_b_reduce(g, r->ct[0], FX_SYM_sum, x->rank, all),
                              fx_b_reduce(g, inner, FX_SYM_sum, x->rank, all));
}

void fx_jvp_concatenate(fx_jvp_rule *r) {
    fx_node **t = FX_ARENA_ARRAY(&r->g->arena, fx_node *, r->n->n_in);
    for (int i = 0; t && i < r->n->n_in; i++)
        t[i] = fx_ad_zeros(r->g, r->t[i], &r->n->in[i]->spec);
    r->dt[0] = t ? fx_node_rebuild(r->g, r->n, t) : NULL;
}

void fx_transpose_concatenate(fx_transpose_rule *r) {
    int64_t start[FX_MAX_RANK] = {0}, limit[FX_MAX_RANK], dim = FX_GET_INT(r->n, dim);
    for (int i = 0; i < r->n->spec.rank; i++)
        limit[i] = r->n->spec.dims[i];
    limit[dim] = 0;
    for (int i = 0; i < r->n->n_in; i++) {
        start[dim] = limit[dim];
        limit[dim] += r->n->in[i]->spec.dims[dim];
        if (r->linear[i])
            r->out[i] = fx_b_slice(r->g, r->ct[0], start, limit, NULL);
    }
}

void fx_jvp_dynamic_slice(fx_jvp_rule *r) {
    r->dt[0] = fx_ad_rebuild(r->g, r->n, 1, r->t, r->in);
}

void fx_transpose_dynamic_slice(fx_transpose_rule *r) {
    int rank = r->n->spec.rank;
    fx_node *in[2 + FX_MAX_RANK] = {fx_b_zeros(r->g, &r->n->in[0]->spec), r->ct[0]};
    for (int i = 0; i < rank; i++)
        in[2 + i] = r->in[1 + i];
    r->out[0] = fx_build(r->g, FX_OP_dynamic_update_slice, 2 + rank, in, 0, NULL, 0, NULL);
}

void fx_jvp_dynamic_update_slice(fx_jvp_rule *r) {
    fx_node *t[2] = {fx_ad_zeros(r->g, r->t[0], &r->n->in[0]->spec), fx_ad_zeros(r->g, r->t[1], &r->n->in[1]->spec)};
    r->dt[0] = fx_ad_rebuild(r->g, r->n, 2, t, r->in);
}

void fx_transpose_dynamic_update_slice(fx_transpose_rule *r) {
    const fx_spec *u = &r->n->in[1]->spec;
    fx_node *in[2 + FX_MAX_RANK] = {r->ct[0], fx_b_zeros(r->g, u)};
    for (int i = 0; i < u->rank; i++)
        in[2 + i] = r->in[2 + i];
    if (r->linear[0])
        r->out[0] = fx_build(r->g, FX_OP_dynamic_update_slice, 2 + u->rank, in, 0, NULL, 0, NULL);
    in[1] = r->ct[0];
    if (r->linear[1])
        r->out[1] =
            fx_build(r->g, FX_OP_dynamic_slice, 1 + u->rank, in + 1, 1, &FX_LIST(shape, u->rank, u->dims), 0, NULL);
}

/* The barrier holds for the tangents, too: both go through one. */
void fx_jvp_optimization_barrier(fx_jvp_rule *r) {
    int n = r->n->n_in, k = 0;
    fx_node **t = FX_ARENA_ARRAY(&r->g->arena, fx_node *, n);
    for (int i = 0; t && i < n; i++)
        if (r->t[i])
            t[k++] = r->t[i];
    fx_node *b = t ? fx_build(r->g, FX_OP_optimization_barrier, k, t, 0, NULL, 0, NULL) : NULL;
    for (int i = 0, j = 0; b && i < n; i++)
        if (r->t[i])
            r->dt[i] = fx_result(b, j++);
}

void fx_transpose_optimization_barrier(fx_transpose_rule *r) {
    int n = r->n->n_in, k = 0;
    fx_node **ct = FX_ARENA_ARRAY(&r->g->arena, fx_node *, n);
    for (int i = 0; ct && i < n; i++)
        if (r->ct[i])
            ct[k++] = r->ct[i];
    fx_node *b = ct ? fx_build(r->g, FX_OP_optimization_barrier, k, ct, 0, NULL, 0, NULL) : NULL;
    for (int i = 0, j = 0; b && i < n; i++)
        if (r->ct[i])
            r->out[i] = fx_result(b, j++);
}
