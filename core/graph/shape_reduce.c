/* shape_reduce.c - shape rules of reductions, windows, running reductions and order. */
#include "core/graph/node.h"

#define FAR ((int64_t)1 << 56)

static bool fits_kind(fx_rule *r, fx_symbol kind) {
    fx_dtype d = fx_rule_in(r, 0)->dtype;
    bool bits = kind == FX_SYM_and || kind == FX_SYM_or || kind == FX_SYM_xor;
    bool order = kind == FX_SYM_max || kind == FX_SYM_min;
    if (bits ? !fx_dtype_is_float(d) : (order || d != FX_BOOL))
        return true;
    return fx_rule_fail(r, "operand 0; expected %s for %s; got %s", bits ? "bool or integers" : "numbers",
                        fx_symbol_name(kind), fx_spec_text(fx_rule_in(r, 0)));
}

static bool drop_dims(fx_rule *r, fx_dtype dtype, const fx_spec *x, int n, const int64_t *dims) {
    int64_t out[FX_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->rank; i++) {
        bool gone = false;
        for (int k = 0; k < n; k++)
            gone |= dims[k] == i;
        if (!gone)
            out[rank++] = x->dims[i];
    }
    return fx_rule_result(r, dtype, rank, out);
}

bool fx_shape_reduce(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_prod, FX_SYM_max, FX_SYM_min,
                                      FX_SYM_and, FX_SYM_or,   FX_SYM_xor, FX_SYM_COUNT};
    const fx_spec *x = fx_rule_in(r, 0);
    fx_symbol kind;
    int n;
    const int64_t *dims;
    return fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) && fits_kind(r, kind) &&
           fx_take_dims(r, FX_ATTR_dims, x->rank, FX_ORDER_SORTED, &n, &dims) && drop_dims(r, x->dtype, x, n, dims);
}

/* The region takes 2 scalars for each of n operands: in the order a..., b... or a0, b0, a1, b1... when `paired`. */
static bool scalar_region(fx_rule *r, int n, bool paired) {
    const fx_graph *f = r->region[0];
    if (f->n_param != 2 * n)
        return fx_rule_fail(r, "region parameters; expected %d scalars and no captured values; got %d", 2 * n,
                            f->n_param);
    for (int i = 0; i < 2 * n; i++) {
        fx_dtype d = fx_rule_in(r, paired ? i / 2 : i % n)->dtype;
        if (f->params[i]->spec.rank || f->params[i]->spec.dtype != d)
            return fx_rule_fail(r, "region parameter %d; expected %s[]; got %s", i, fx_dtype_name(d),
                                fx_spec_text(&f->params[i]->spec));
    }
    return true;
}

static bool same_shapes(fx_rule *r, int n) {
    for (int i = 1; i < n; i++) {
        fx_spec s = *fx_rule_in(r, i);
        s.dtype = fx_rule_in(r, 0)->dtype;
        if (!fx_spec_equal(&s, fx_rule_in(r, 0)))
            return fx_rule_fail(r, "operands 0 and %d; expected equal shapes; got %s and %s", i,
                                fx_spec_text(fx_rule_in(r, 0)), fx_spec_text(fx_rule_in(r, i)));
    }
    return true;
}

bool fx_shape_reduce_fn(fx_rule *r) {
    int n = r->n_in / 2, n_dims;
    const int64_t *dims;
    if (r->n_in < 2 || r->n_in % 2)
        return fx_rule_fail(r, "operands; expected arrays and as many initial values; got %d", r->n_in);
    if (!same_shapes(r, n) || !scalar_region(r, n, false) ||
        !fx_take_dims(r, FX_ATTR_dims, fx_rule_in(r, 0)->rank, FX_ORDER_SORTED, &n_dims, &dims))
        return false;
    const fx_graph *f = r->region[0];
    if (f->n_result != n)
        return fx_rule_fail(r, "region results; expected %d; got %d", n, f->n_result);
    fx_spec *results = fx_rule_tuple(r, n);
    for (int i = 0; results && i < n; i++) {
        fx_dtype d = fx_rule_in(r, i)->dtype;
        if (!fx_rule_scalar(r, n + i, d))
            return false;
        if (f->results[i]->spec.rank || f->results[i]->spec.dtype != d)
            return fx_rule_fail(r, "region result %d; expected %s[]; got %s", i, fx_dtype_name(d),
                                fx_spec_text(&f->results[i]->spec));
        if (!drop_dims(r, d, fx_rule_in(r, i), n_dims, dims))
            return false;
        results[i] = r->spec;
    }
    r->spec = FX_SPEC0(FX_TUPLE);
    return results;
}

bool fx_shape_arg_reduce(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_max, FX_SYM_min, FX_SYM_COUNT};
    const fx_spec *x = fx_rule_in(r, 0);
    fx_symbol kind;
    fx_dtype dtype;
    int64_t dim;
    if (!fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) ||
        !fx_take_int(r, FX_ATTR_dim, 0, x->rank - 1, &dim) || !fx_take_dtype(r, FX_S32, &dtype))
        return false;
    if (!fx_dtype_is_int(dtype))
        return fx_rule_fail(r, "attribute dtype; expected an integer type; got %s", fx_dtype_name(dtype));
    if (!x->dims[dim])
        return fx_rule_fail(r, "operand 0; expected elements along dimension %lld; got %s", (long long)dim,
                            fx_spec_text(x));
    return drop_dims(r, dtype, x, 1, &dim);
}

/* The window attributes on every dimension of operand 0 -> shape of the positions. */
static bool window_shape(fx_rule *r, bool dilations, int64_t *out) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *window, *strides, *low, *high, *ld = NULL, *rd = NULL;
    if (!fx_take_list(r, FX_ATTR_window, x->rank, 1, FAR, &window) ||
        !fx_take_list_or(r, FX_ATTR_strides, x->rank, 1, FAR, 1, &strides) ||
        !fx_take_list_or(r, FX_ATTR_low, x->rank, -FAR, FAR, 0, &low) ||
        !fx_take_list_or(r, FX_ATTR_high, x->rank, -FAR, FAR, 0, &high))
        return false;
    if (dilations && (!fx_take_list_or(r, FX_ATTR_lhs_dilation, x->rank, 1, FAR, 1, &ld) ||
                      !fx_take_list_or(r, FX_ATTR_rhs_dilation, x->rank, 1, FAR, 1, &rd)))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (!fx_window_positions(r, x->dims[i], window[i], strides[i], low[i], high[i], ld ? ld[i] : 1, rd ? rd[i] : 1,
                                 &out[i]))
            return false;
    return true;
}

bool fx_shape_reduce_window(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_prod, FX_SYM_max, FX_SYM_min, FX_SYM_COUNT};
    fx_symbol kind;
    int64_t dims[FX_MAX_RANK];
    return fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) && fits_kind(r, kind) &&
           window_shape(r, true, dims) && fx_rule_result(r, fx_rule_in(r, 0)->dtype, fx_rule_in(r, 0)->rank, dims);
}

bool fx_shape_select_and_scatter(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_max, FX_SYM_min, FX_SYM_COUNT};
    const fx_spec *x = fx_rule_in(r, 0);
    fx_symbol kind;
    int64_t dims[FX_MAX_RANK];
    if (x->dtype == FX_BOOL)
        return fx_rule_fail(r, "operand 0; expected numbers; got %s", fx_spec_text(x));
    if (!fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) || !window_shape(r, false, dims) ||
        !fx_rule_result(r, x->dtype, x->rank, dims))
        return false;
    if (!fx_spec_equal(&r->spec, fx_rule_in(r, 1)))
        return fx_rule_fail(r, "operand 1; expected the shape of the windows, %s; got %s", fx_spec_text(&r->spec),
                            fx_spec_text(fx_rule_in(r, 1)));
    return fx_rule_like(r, x);
}

bool fx_shape_cumulative(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_prod, FX_SYM_max, FX_SYM_min, FX_SYM_COUNT};
    fx_symbol kind;
    int64_t dim, reverse;
    return fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) && fits_kind(r, kind) &&
           fx_take_int(r, FX_ATTR_dim, 0, fx_rule_in(r, 0)->rank - 1, &dim) &&
           fx_take_int_or(r, FX_ATTR_reverse, 0, 1, 0, &reverse) && fx_rule_like(r, fx_rule_in(r, 0));
}

bool fx_shape_sort(fx_rule *r) {
    int64_t dim;
    if (r->n_in < 1)
        return fx_rule_fail(r, "operands; expected at least one; got none");
    if (!same_shapes(r, r->n_in) || !scalar_region(r, r->n_in, true) ||
        !fx_take_int(r, FX_ATTR_dim, 0, fx_rule_in(r, 0)->rank - 1, &dim))
        return false;
    const fx_graph *f = r->region[0];
    if (f->n_result != 1 || f->results[0]->spec.rank || f->results[0]->spec.dtype != FX_BOOL)
        return fx_rule_fail(r, "region results; expected one bool[]; got %d%s%s", f->n_result,
                            f->n_result ? ", first " : "", f->n_result ? fx_spec_text(&f->results[0]->spec) : "");
    fx_spec *results = fx_rule_tuple(r, r->n_in);
    for (int i = 0; results && i < r->n_in; i++)
        results[i] = *fx_rule_in(r, i);
    return results;
}

bool fx_shape_top_k(fx_rule *r) {
    fx_spec x = *fx_rule_in(r, 0);
    int64_t k;
    if (x.rank < 1 || x.dtype == FX_BOOL)
        return fx_rule_fail(r, "operand 0; expected numbers with a dimension; got %s", fx_spec_text(&x));
    if (!fx_take_int(r, FX_ATTR_k, 0, x.dims[x.rank - 1], &k))
        return false;
    fx_spec *results = fx_rule_tuple(r, 2);
    if (!results)
        return false;
    x.dims[x.rank - 1] = k;
    results[0] = x;
    x.dtype = FX_S32;
    results[1] = x;
    return true;
}
