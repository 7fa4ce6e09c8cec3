/* rules_contract.c - derivatives of dot_general and convolution: bilinear, so each transpose is one more of the same.
 */
#include "autodiff/rules.h"

/* n with the tangents in place of one operand at a time. */
static void bilinear(fx_jvp_rule *r) {
    fx_node *a = r->t[0] ? fx_node_rebuild(r->g, r->n, (fx_node *[]){r->t[0], r->in[1]}) : NULL;
    fx_node *b = r->t[1] ? fx_node_rebuild(r->g, r->n, (fx_node *[]){r->in[0], r->t[1]}) : NULL;
    r->dt[0] = fx_ad_add(r->g, a, b);
}

void fx_jvp_dot_general(fx_jvp_rule *r) {
    bilinear(r);
}
void fx_jvp_convolution(fx_jvp_rule *r) {
    bilinear(r);
}

static bool both_linear(fx_transpose_rule *r) {
    if (!r->linear[0] || !r->linear[1])
        return false;
    fx_rule_error(
        r->g, r->n, FX_INVALID_ARGUMENT,
        "reverse mode; expected one operand that depends on the tangents; got two; a custom rule must be linear in its "
        "tangents");
    return true;
}

static bool contains(int n, const int64_t *v, int64_t x) {
    for (int i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static bool is_identity(int n, const int64_t *v) {
    for (int i = 0; i < n; i++)
        if (v[i] != i)
            return false;
    return true;
}

/* The cotangent of operand k is a product of ct and the other operand over the other's free dimensions. Its factors
 * are put in the order that needs no transpose afterwards, if there is one. */
void fx_transpose_dot_general(fx_transpose_rule *r) {
    if (both_linear(r))
        return;
    fx_dot_numbers d;
    fx_dot_numbers_get(r->n, &d);
    int k = r->linear[0] ? 0 : 1, nb = d.n_batch, nc = d.n_contract;
    fx_node *other = r->in[1 - k];
    if (!other)
        return;
    const fx_spec *x = &r->n->in[k]->spec, *o = &other->spec;
    const int64_t *x_batch = k ? d.rhs_batch : d.lhs_batch, *x_contract = k ? d.rhs_contract : d.lhs_contract;
    const int64_t *o_batch = k ? d.lhs_batch : d.rhs_batch, *o_contract = k ? d.lhs_contract : d.rhs_contract;
    int x_free = x->rank - nb - nc, o_free = o->rank - nb - nc;
    int64_t ct_batch[FX_MAX_RANK], ct_contract[FX_MAX_RANK], o_frees[FX_MAX_RANK];
    int64_t from_ct[FX_MAX_RANK],
        from_o[FX_MAX_RANK]; /* operand dimensions that the free dimensions of ct and other are */
    int n_ct = 0, n_o = 0;
    for (int i = 0; i < nb; i++)
        ct_batch[i] = i;
    for (int i = 0, f = 0; i < o->rank; i++)
        if (!contains(nb, o_batch, i) && !contains(nc, o_contract, i)) {
            ct_contract[f] = nb + (k ? f : x_free + f);
            o_frees[f++] = i;
        }
    for (int i = 0; i < x->rank; i++)
        if (!contains(nb, x_batch, i) && !contains(nc, x_contract, i))
            from_ct[n_ct++] = i;
    for (int i = 0; i < o->rank; i++)
        for (int c = 0; c < nc; c++)
            if (o_contract[c] == i)
                from_o[n_o++] = x_contract[c];
    int64_t permutation[2][FX_MAX_RANK]; /* result dimension -> dimension of the product, for both orders of factors */
    for (int order = 0; order < 2; order++) {
        for (int i = 0; i < nb; i++)
            permutation[order][x_batch[i]] = i;
        for (int i = 0; i < n_ct; i++)
            permutation[order][from_ct[i]] = nb + (order ? n_o : 0) + i;
        for (int i = 0; i < n_o; i++)
            permutation[order][from_o[i]] = nb + (order ? 0 : n_ct) + i;
    }
    int order = is_identity(x->rank, permutation[0]) ? 0 : is_identity(x->rank, permutation[1]) ? 1 : k;
    fx_node *ct = fx_b_convert(r->g, r->ct[0], o->dtype);
    fx_dot_numbers back = {nb,
                           o_free,
                           order ? o_batch : ct_batch,
                           order ? ct_batch : o_batch,
                           order ? o_frees : ct_contract,
                           order ? ct_contract : o_frees,
                           d.precision,
                           x->dtype};
    fx_node *product = fx_b_dot(r->g, order ? other : ct, order ? ct : other, &back);
    r->out[k] = fx_b_transpose(r->g, product, permutation[order]);
}

/* ---- convolution ---- */

typedef struct conv {
    int n; /* spatial dimensions */
    const int64_t *strides, *low, *high, *ld, *rd, *reversal, *ls, *rs, *os;
    int64_t groups, batches, precision;
} conv;

static conv conv_of(const fx_node *n) {
    conv c;
    c.strides = FX_GET_LIST(n, strides, &c.n);
    c.low = FX_GET_LIST(n, low, NULL);
    c.high = FX_GET_LIST(n, high, NULL);
    c.ld = FX_GET_LIST(n, lhs_dilation, NULL);
    c.rd = FX_GET_LIST(n, rhs_dilation, NULL);
    c.reversal = FX_GET_LIST(n, window_reversal, NULL);
    c.ls = FX_GET_LIST(n, lhs_spec, NULL);
    c.rs = FX_GET_LIST(n, rhs_spec, NULL);
    c.os = FX_GET_LIST(n, out_spec, NULL);
    c.groups = FX_GET_INT(n, feature_groups);
    c.batches = FX_GET_INT(n, batch_groups);
    c.precision = FX_GET_INT(n, precision);
    return c;
}

static fx_node *convolve(fx_graph *g, fx_node *lhs, fx_node *rhs, const conv *c) {
    const fx_attr a[] = {FX_LIST(strides, c->n, c->strides), FX_LIST(low, c->n, c->low),
                         FX_LIST(high, c->n, c->high),       FX_LIST(lhs_dilation, c->n, c->ld),
                         FX_LIST(rhs_dilation, c->n, c->rd), FX_LIST(window_reversal, c->n, c->reversal),
                         FX_LIST(lhs_spec, c->n + 2, c->ls), FX_LIST(rhs_spec, c->n + 2, c->rs),
                         FX_LIST(out_spec, c->n + 2, c->os), FX_INT(feature_groups, c->groups),
                         FX_INT(batch_groups, c->batches),   FX_SYM_ATTR(precision, c->precision)};
    return fx_build(g, FX_OP_convolution, 2, (fx_node *[]){lhs, rhs}, sizeof a / sizeof *a, a, 0, NULL);
}

static int64_t dilated(int64_t size, int64_t dilation) {
    return size ? (size - 1) * dilation + 1 : 0;
}

/* Takes `groups` out of dimension `from` and puts it in front of dimension `to`: from = groups x rest, to' = groups x
 * to. */
static fx_node *move_groups(fx_graph *g, fx_node *x, int64_t from, int64_t to, int64_t groups) {
    if (!x || groups == 1)
        return x;
    int rank = x->spec.rank, k = 0;
    int64_t split[FX_MAX_RANK + 1], order[FX_MAX_RANK + 1], merged[FX_MAX_RANK];
    if (rank == FX_MAX_RANK) /* no room for one more dimension: one slice a group */
    {
        fx_node **part = FX_ARENA_ARRAY(&g->arena, fx_node *, groups);
        int64_t start[FX_MAX_RANK] = {0}, limit[FX_MAX_RANK];
        for (int i = 0; i < rank; i++)
            limit[i] = x->spec.dims[i];
        for (int64_t j = 0; part && j < groups; j++) {
            start[from] = j * (x->spec.dims[from] / groups);
            limit[from] = start[from] + x->spec.dims[from] / groups;
            part[j] = fx_b_slice(g, x, start, limit, NULL);
        }
        return part ? fx_b_concatenate(g, (int)groups, part, to) : NULL;
    }
    for (int i = 0; i < rank; i++) {
        if (i == from)
            split[k++] = groups;
        split[k++] = i == from ? x->spec.dims[i] / groups : x->spec.dims[i];
    }
    k = 0;
    for (int i = 0; i < rank; i++) {
        if (i == to)
            order[k++] = from;
        order[k++] = i < from ? i : i + 1;
        merged[i] = i == from ? x->spec.dims[i] / groups : i == to ? x->spec.dims[i] * groups : x->spec.dims[i];
    }
    return fx_b_reshape(g, fx_b_transpose(g, fx_b_reshape(g, x, rank + 1, split), order), rank, merged);
}

/* ct convolved with the reversed window, its features exchanged. */
static fx_node *transpose_lhs(fx_transpose_rule *r, const conv *c) {
    const fx_spec *x = &r->n->in[0]->spec, *w = &r->n->in[1]->spec, *y = &r->n->spec;
    int64_t low[FX_MAX_RANK], high[FX_MAX_RANK], reversal[FX_MAX_RANK], rs[FX_MAX_RANK];
    for (int i = 0; i < c->n; i++) {
        int64_t window = dilated(w->dims[c->rs[2 + i]], c->rd[i]);
        low[i] = window - 1 - c->low[i];
        high[i] = dilated(x->dims[c->ls[2 + i]], c->ld[i]) + window - 1 -
                  dilated(y->dims[c->os[2 + i]], c->strides[i]) - low[i];
        reversal[i] = !c->reversal[i];
        rs[2 + i] = c->rs[2 + i];
    }
    rs[0] = c->rs[1];
    rs[1] = c->rs[0];
    int64_t groups = c->groups * c->batches; /* one of them is 1 */
    fx_node *rhs = move_groups(r->g, r->in[1], c->rs[0], c->rs[1], groups);
    conv back = {c->n, c->ld, low, high, c->strides, c->rd, reversal, c->os, rs, c->ls, groups, 1, c->precision};
    return move_groups(r->g, convolve(r->g, r->ct[0], rhs, &back), c->ls[1], c->ls[0], c->batches);
}

/* lhs convolved with ct as its window: batch and features exchanged. */
static fx_node *transpose_rhs(fx_transpose_rule *r, const conv *c) {
    const fx_spec *x = &r->n->in[0]->spec, *w = &r->n->in[1]->spec, *y = &r->n->spec;
    int64_t low[FX_MAX_RANK], high[FX_MAX_RANK], none[FX_MAX_RANK] = {0}, reversed[FX_MAX_RANK];
    int64_t ls[FX_MAX_RANK], rs[FX_MAX_RANK], os[FX_MAX_RANK];
    int n_reversed = 0;
    for (int i = 0; i < c->n + 2; i++) {
        ls[i] = c->ls[i];
        rs[i] = c->os[i];
        os[i] = c->rs[i];
    }
    ls[0] = c->ls[1], ls[1] = c->ls[0];
    rs[0] = c->os[1], rs[1] = c->os[0];
    os[0] = c->rs[1], os[1] = c->rs[0];
    for (int i = 0; i < c->n; i++) {
        low[i] = c->low[i];
        high[i] = dilated(y->dims[c->os[2 + i]], c->strides[i]) - dilated(x->dims[c->ls[2 + i]], c->ld[i]) +
                  dilated(w->dims[c->rs[2 + i]], c->rd[i]) - c->low[i] - 1;
        if (c->reversal[i])
            reversed[n_reversed++] = c->rs[2 + i];
    }
    conv back = {c->n, c->rd, low, high, c->ld, c->strides, none, ls, rs, os, c->batches, c->groups, c->precision};
    return fx_b_reverse(r->g, convolve(r->g, r->in[0], r->ct[0], &back), n_reversed, reversed);
}

void fx_transpose_convolution(fx_transpose_rule *r) {
    if (both_linear(r))
        return;
    conv c = conv_of(r->n);
    int k = r->linear[0] ? 0 : 1;
    if (!fx_spec_count(&r->n->spec) || !fx_spec_count(&r->n->in[1 - k]->spec))
        return; /* no sum has a term: zero */
    r->out[k] = k ? transpose_rhs(r, &c) : transpose_lhs(r, &c);
}
