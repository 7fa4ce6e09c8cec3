/* shape_contract.c - shape rules of dot_general and convolution, with StableHLO's constraints. */
#include "core/graph/node.h"

static const fx_symbol precisions[] = {FX_SYM_default, FX_SYM_high, FX_SYM_highest, FX_SYM_COUNT};

static bool same_type(fx_rule *r) {
    const fx_spec *a = fx_rule_in(r, 0), *b = fx_rule_in(r, 1);
    return (a->dtype == b->dtype && a->dtype != FX_BOOL) ||
           fx_rule_fail(r, "operands; expected one type of numbers; got %s and %s; convert one", fx_spec_text(a),
                        fx_spec_text(b));
}

/* Pairs of dimensions of equal size; marks them. */
static bool pairs(fx_rule *r, fx_attr_id left, fx_attr_id right, unsigned *a_used, unsigned *b_used, int *n,
                  const int64_t **ad) {
    const fx_spec *a = fx_rule_in(r, 0), *b = fx_rule_in(r, 1);
    const int64_t *bd;
    int m;
    if (!fx_take_dims(r, left, a->rank, FX_ORDER_KEPT, n, ad) ||
        !fx_take_dims(r, right, b->rank, FX_ORDER_KEPT, &m, &bd))
        return false;
    if (*n != m)
        return fx_rule_fail(r, "attributes %s and %s; expected as many of both; got %d and %d", fx_attr_name(left),
                            fx_attr_name(right), *n, m);
    for (int i = 0; i < m; i++) {
        if (*a_used & 1u << (*ad)[i] || *b_used & 1u << bd[i])
            return fx_rule_fail(r, "attributes; expected each dimension in batch or contract; got %lld or %lld in both",
                                (long long)(*ad)[i], (long long)bd[i]);
        if (a->dims[(*ad)[i]] != b->dims[bd[i]])
            return fx_rule_fail(r, "%s %lld and %s %lld; expected equal sizes; got %s and %s", fx_attr_name(left),
                                (long long)(*ad)[i], fx_attr_name(right), (long long)bd[i], fx_spec_text(a),
                                fx_spec_text(b));
        *a_used |= 1u << (*ad)[i];
        *b_used |= 1u << bd[i];
    }
    return true;
}

bool fx_shape_dot_general(fx_rule *r) {
    const fx_spec *a = fx_rule_in(r, 0), *b = fx_rule_in(r, 1);
    unsigned a_used = 0, b_used = 0;
    int n_batch, n_contract, rank = 0;
    const int64_t *batch, *contract;
    fx_dtype dtype;
    fx_symbol precision;
    if (!same_type(r) || !pairs(r, FX_ATTR_lhs_batch, FX_ATTR_rhs_batch, &a_used, &b_used, &n_batch, &batch) ||
        !pairs(r, FX_ATTR_lhs_contract, FX_ATTR_rhs_contract, &a_used, &b_used, &n_contract, &contract) ||
        !fx_take_symbol(r, FX_ATTR_precision, precisions, FX_SYM_default, &precision) ||
        !fx_take_dtype(r, a->dtype, &dtype))
        return false;
    if (fx_dtype_is_float(dtype) != fx_dtype_is_float(a->dtype) ||
        fx_dtype_is_signed(dtype) != fx_dtype_is_signed(a->dtype) || dtype == FX_BOOL)
        return fx_rule_fail(r,
                            "attribute dtype; expected float for float, signed for signed, unsigned for unsigned "
                            "operands; got %s for %s",
                            fx_dtype_name(dtype), fx_dtype_name(a->dtype));
    int64_t dims[3 * FX_MAX_RANK];
    for (int i = 0; i < n_batch; i++)
        dims[rank++] = a->dims[batch[i]];
    for (int i = 0; i < a->rank; i++)
        if (!(a_used & 1u << i))
            dims[rank++] = a->dims[i];
    for (int i = 0; i < b->rank; i++)
        if (!(b_used & 1u << i))
            dims[rank++] = b->dims[i];
    return fx_rule_result(r, dtype, rank, dims);
}

/* A permutation of the dimensions that may be left out: identity. */
static bool take_spec(fx_rule *r, fx_attr_id id, int rank, const int64_t **values) {
    for (int i = 0; i < r->n_attr; i++)
        if (r->attr[i].id == id)
            return fx_take_permutation(r, id, rank, values);
    int64_t *v = r->list[r->n_out];
    for (int i = 0; i < rank; i++)
        v[i] = i;
    r->out[r->n_out++] = (fx_attr){id, rank, {.list = v}};
    *values = v;
    return true;
}

bool fx_shape_convolution(fx_rule *r) {
    const int64_t far = (int64_t)1 << 56;
    const fx_spec *a = fx_rule_in(r, 0), *b = fx_rule_in(r, 1);
    const int64_t *strides, *low, *high, *ld, *rd, *reversal, *as, *bs, *os;
    int64_t groups, batches;
    fx_symbol precision;
    int n = a->rank - 2;
    if (!same_type(r))
        return false;
    if (a->rank != b->rank || n < 0)
        return fx_rule_fail(r, "operands; expected equal ranks of 2 or more; got %s and %s", fx_spec_text(a),
                            fx_spec_text(b));
    if (!fx_take_list_or(r, FX_ATTR_strides, n, 1, far, 1, &strides) ||
        !fx_take_list_or(r, FX_ATTR_low, n, -far, far, 0, &low) ||
        !fx_take_list_or(r, FX_ATTR_high, n, -far, far, 0, &high) ||
        !fx_take_list_or(r, FX_ATTR_lhs_dilation, n, 1, far, 1, &ld) ||
        !fx_take_list_or(r, FX_ATTR_rhs_dilation, n, 1, far, 1, &rd) ||
        !fx_take_list_or(r, FX_ATTR_window_reversal, n, 0, 1, 0, &reversal) ||
        !take_spec(r, FX_ATTR_lhs_spec, a->rank, &as) || !take_spec(r, FX_ATTR_rhs_spec, b->rank, &bs) ||
        !take_spec(r, FX_ATTR_out_spec, a->rank, &os) ||
        !fx_take_int_or(r, FX_ATTR_feature_groups, 1, far, 1, &groups) ||
        !fx_take_int_or(r, FX_ATTR_batch_groups, 1, far, 1, &batches) ||
        !fx_take_symbol(r, FX_ATTR_precision, precisions, FX_SYM_default, &precision))
        return false;
    int64_t batch = a->dims[as[0]], feature = a->dims[as[1]], out = b->dims[bs[0]], in = b->dims[bs[1]];
    if (groups > 1 && batches > 1)
        return fx_rule_fail(r, "attributes; expected feature_groups or batch_groups of 1; got %lld and %lld",
                            (long long)groups, (long long)batches);
    if (batch % batches || feature % groups || in != feature / groups || out % batches || out % groups)
        return fx_rule_fail(
            r,
            "operands; expected lhs features = rhs input features x %lld, and %lld groups that divide batch "
            "and output features; got %s and %s",
            (long long)groups, (long long)(groups > batches ? groups : batches), fx_spec_text(a), fx_spec_text(b));
    int64_t dims[FX_MAX_RANK];
    dims[os[0]] = batch / batches;
    dims[os[1]] = out;
    for (int i = 0; i < n; i++)
        if (!fx_window_positions(r, a->dims[as[2 + i]], b->dims[bs[2 + i]], strides[i], low[i], high[i], ld[i], rd[i],
                                 &dims[os[2 + i]]))
            return false;
    return fx_rule_result(r, a->dtype, a->rank, dims);
}
