/* trace_contract.c - dot_general, NumPy's matmul on top of it, and convolution. */
#include "core/graph/trace.h"

static fx_attr precision_attr(fx_precision p) {
    static const fx_symbol names[] = {FX_SYM_default, FX_SYM_high, FX_SYM_highest};
    return (fx_attr){FX_ATTR_precision, 1, {.i = names[p]}};
}

static bool precision_valid(fx_val v, fx_precision p) {
    if ((unsigned)p <= FX_PRECISION_HIGHEST)
        return true;
    fx_graph_error(v->graph, FX_INVALID_ARGUMENT, "precision; expected FX_PRECISION_DEFAULT to _HIGHEST; got %d", (int)p);
    return false;
}

fx_val fx_dot_general(fx_val lhs, fx_val rhs, const fx_dot_dims *d) {
    fx_val in[] = {lhs, rhs};
    if (!fx_trace_of(2, in) || !fx_trace_given(lhs, "fx_dot_general: dimension numbers", d) || !precision_valid(lhs, d->precision))
        return NULL;
    fx_attr a[] = {FX_LIST(lhs_batch, d->n_batch, d->lhs_batch),
                   FX_LIST(rhs_batch, d->n_batch, d->rhs_batch),
                   FX_LIST(lhs_contract, d->n_contract, d->lhs_contract),
                   FX_LIST(rhs_contract, d->n_contract, d->rhs_contract),
                   precision_attr(d->precision),
                   {FX_ATTR_dtype, 1, {.i = d->result == FX_TUPLE ? lhs->spec.dtype : d->result}}};
    return fx_trace_build(FX_OP_dot_general, 2, in, 6, a);
}

fx_val fx_matmul(fx_val a, fx_val b) {
    fx_val in[] = {a, b};
    if (!fx_trace_of(2, in))
        return NULL;
    int ra = a->spec.rank, rb = b->spec.rank;
    char sa[128], sb[128];
    int64_t ka = ra ? a->spec.dims[ra - 1] : -1, kb = rb ? b->spec.dims[rb > 1 ? rb - 2 : 0] : -1;
    if (ra < 1 || rb < 1 || ka != kb)
        return fx_graph_error(fx_trace_of(2, in), FX_INVALID_ARGUMENT,
                              "fx_matmul: expected the first's last axis to equal the second's second last; got %s and %s",
                              fx_spec_format(&a->spec, sa, sizeof sa), fx_spec_format(&b->spec, sb, sizeof sb));
    if (rb <= 2) { /* no batch on the right: one contraction */
        int64_t lc = ra - 1, rc = rb == 2 ? 0 : 0;
        fx_dot_dims d = {.n_contract = 1, .lhs_contract = &lc, .rhs_contract = &rc, .result = FX_TUPLE};
        return fx_dot_general(a, b, &d);
    }
    if (ra == 1) { /* [k] x [..., k, n]: as [1, k], then the axis goes */
        fx_val r = fx_matmul(fx_expand_dims(a, 0), b);
        return r ? fx_squeeze(r, -2) : NULL;
    }
    /* broadcast the batch axes, which become dot_general's batch */
    int nb = (ra > rb ? ra : rb) - 2;
    int64_t da[FX_MAX_RANK], db[FX_MAX_RANK], batch[FX_MAX_RANK];
    for (int i = 0; i < nb; i++) {
        int ia = i - (nb - (ra - 2)), ib = i - (nb - (rb - 2));
        int64_t x = ia < 0 ? 1 : a->spec.dims[ia], y = ib < 0 ? 1 : b->spec.dims[ib];
        if (x != y && x != 1 && y != 1)
            return fx_graph_error(fx_trace_of(2, in), FX_INVALID_ARGUMENT, "fx_matmul: batch axes do not broadcast; got %s and %s",
                                  fx_spec_format(&a->spec, sa, sizeof sa), fx_spec_format(&b->spec, sb, sizeof sb));
        da[i] = db[i] = x == 1 ? y : x;
        batch[i] = i;
    }
    for (int i = 0; i < 2; i++) {
        da[nb + i] = a->spec.dims[ra - 2 + i];
        db[nb + i] = b->spec.dims[rb - 2 + i];
    }
    int64_t lc = nb + 1, rc = nb;
    fx_dot_dims d = {nb, 1, batch, batch, &lc, &rc, FX_PRECISION_DEFAULT, FX_TUPLE};
    return fx_dot_general(fx_broadcast_to(a, nb + 2, da), fx_broadcast_to(b, nb + 2, db), &d);
}

fx_val fx_convolution(fx_val lhs, fx_val rhs, const fx_conv_dims *d) {
    static const int64_t ones[] = {1, 1, 1, 1, 1, 1}, zeros[6], identity[] = {0, 1, 2, 3, 4, 5, 6, 7};
    fx_val in[] = {lhs, rhs};
    if (!fx_trace_of(2, in) || !fx_trace_given(lhs, "fx_convolution: dimension numbers", d) || !precision_valid(lhs, d->precision))
        return NULL;
    int rank = lhs->spec.rank, ns = rank - 2;
    if (ns < 0)
        return fx_graph_error(lhs->graph, FX_INVALID_ARGUMENT, "fx_convolution: rank; expected 2 or more; got %d", rank);
#define OR(list, otherwise) (d->list ? d->list : (otherwise))
    fx_attr a[] = {FX_LIST(strides, ns, OR(strides, ones)),
                   FX_LIST(low, ns, OR(low, zeros)),
                   FX_LIST(high, ns, OR(high, zeros)),
                   FX_LIST(lhs_dilation, ns, OR(lhs_dilation, ones)),
                   FX_LIST(rhs_dilation, ns, OR(rhs_dilation, ones)),
                   FX_LIST(window_reversal, ns, OR(window_reversal, zeros)),
                   FX_LIST(lhs_spec, rank, OR(lhs_spec, identity)),
                   FX_LIST(rhs_spec, rank, OR(rhs_spec, identity)),
                   FX_LIST(out_spec, rank, OR(out_spec, identity)),
                   FX_INT(feature_groups, d->feature_groups ? d->feature_groups : 1),
                   FX_INT(batch_groups, d->batch_groups ? d->batch_groups : 1),
                   precision_attr(d->precision)};
#undef OR
    return fx_trace_build(FX_OP_convolution, 2, in, 12, a);
}
