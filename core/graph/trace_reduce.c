/* trace_reduce.c - reductions, what is composed of them (mean, softmax, ...), windows, running sums, order. */
#include <math.h>

#include "core/graph/trace.h"

/* The shape of x with the axes of size 1, for keep. */
static fx_val restore(fx_val r, fx_val x, int n, const int64_t *dims, bool keep) {
    if (!keep || !r)
        return r;
    int64_t shape[FX_MAX_RANK];
    for (int i = 0; i < x->spec.rank; i++)
        shape[i] = x->spec.dims[i];
    for (int i = 0; i < n; i++)
        shape[dims[i]] = 1;
    return fx_reshape(r, x->spec.rank, shape);
}

static fx_val reduce(fx_val x, fx_symbol kind, const char *name, int n_axes, const int *axes, bool keep) {
    int64_t dims[FX_MAX_RANK];
    int n;
    if (!fx_trace_of(1, &x) || !fx_trace_axes(x, name, n_axes, axes, &n, dims))
        return NULL;
    fx_attr a[] = {{FX_ATTR_kind, 1, {.i = kind}}, FX_LIST(dims, n, dims)};
    return restore(fx_trace_build(FX_OP_reduce, 1, &x, 2, a), x, n, dims, keep);
}

#define DEFINE(kind)                                                              \
    fx_val fx_reduce_##kind(fx_val x, int n, const int *axes, bool keep) {        \
        return reduce(x, FX_SYM_##kind, "fx_reduce_" #kind, n, axes, keep);       \
    }
FX_REDUCTIONS(DEFINE)
DEFINE(and)
DEFINE(or)
#undef DEFINE

/* What is composed of sums is computed in f32 for f16 and bf16 and rounded once: the sum of 100000 ones is no f16. */
static fx_val widened(fx_val x) {
    return x && (x->spec.dtype == FX_F16 || x->spec.dtype == FX_BF16) ? fx_convert(x, FX_F32) : x;
}

static fx_val rounded(fx_val r, fx_val x) { return r && r->spec.dtype != x->spec.dtype ? fx_convert(r, x->spec.dtype) : r; }

static fx_val mean(fx_val x, int n, const int *axes, bool keep) {
    fx_val s = fx_reduce_sum(x, n, axes, keep);
    if (!s)
        return NULL;
    int64_t all = fx_spec_count(&x->spec), left = fx_spec_count(&s->spec);
    return fx_div(s, fx_const_like(s, left ? (double)(all / left) : 1)); /* of nothing: 0/0 */
}

fx_val fx_reduce_mean(fx_val x, int n, const int *axes, bool keep) { return rounded(mean(widened(x), n, axes, keep), x); }

fx_val fx_reduce_var(fx_val x, int n, const int *axes, bool keep) {
    fx_val w = widened(x), d = fx_sub(w, mean(w, n, axes, true));
    return rounded(mean(fx_square(d), n, axes, keep), x);
}

static fx_val arg_reduce(fx_val x, fx_symbol kind, int axis, fx_dtype index_dtype) {
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_argmax/fx_argmin", x->spec.rank, &axis))
        return NULL;
    fx_attr a[] = {{FX_ATTR_kind, 1, {.i = kind}}, FX_INT(dim, axis), {FX_ATTR_dtype, 1, {.i = index_dtype}}};
    return fx_trace_build(FX_OP_arg_reduce, 1, &x, 3, a);
}

fx_val fx_argmax(fx_val x, int axis, fx_dtype d) { return arg_reduce(x, FX_SYM_max, axis, d); }
fx_val fx_argmin(fx_val x, int axis, fx_dtype d) { return arg_reduce(x, FX_SYM_min, axis, d); }

fx_val fx_logsumexp(fx_val narrow, int axis, bool keep) {
    fx_val x = widened(narrow), m = fx_reduce_max(x, 1, &axis, true);
    /* shifting by an infinite maximum would give inf - inf */
    m = fx_stop_gradient(fx_select(fx_is_finite(m), m, fx_const_like(m, 0)));
    fx_val r = fx_add(fx_log(fx_reduce_sum(fx_exp(fx_sub(x, m)), 1, &axis, true)), m);
    return rounded(keep || !r ? r : fx_squeeze(r, axis), narrow);
}

fx_val fx_softmax(fx_val narrow, int axis) {
    fx_val x = widened(narrow), e = fx_exp(fx_sub(x, fx_stop_gradient(fx_reduce_max(x, 1, &axis, true))));
    return rounded(fx_div(e, fx_reduce_sum(e, 1, &axis, true)), narrow);
}

fx_val fx_log_softmax(fx_val narrow, int axis) {
    fx_val x = widened(narrow), s = fx_sub(x, fx_stop_gradient(fx_reduce_max(x, 1, &axis, true)));
    return rounded(fx_sub(s, fx_log(fx_reduce_sum(fx_exp(s), 1, &axis, true))), narrow);
}

/* Of the four of fx_cumulative_kind and fx_window_kind? */
static bool kind_valid(fx_val x, const char *op, unsigned kind) {
    if (kind > 3)
        fx_graph_error(x->graph, FX_INVALID_ARGUMENT, "%s: kind; expected a sum, product, maximum or minimum; got number %u", op, kind);
    return kind <= 3;
}

fx_val fx_cumulative(fx_val x, int axis, fx_cumulative_kind kind, bool reverse) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_prod, FX_SYM_max, FX_SYM_min};
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_cumulative", x->spec.rank, &axis) || !kind_valid(x, "fx_cumulative", (unsigned)kind))
        return NULL;
    fx_attr a[] = {{FX_ATTR_kind, 1, {.i = kinds[kind]}}, FX_INT(dim, axis), FX_INT(reverse, reverse)};
    return fx_trace_build(FX_OP_cumulative, 1, &x, 3, a);
}

static const int64_t ones[FX_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1}, zeros[FX_MAX_RANK];
#define OR(list, otherwise) (d->list ? d->list : (otherwise))

fx_val fx_reduce_window(fx_val x, const fx_window_dims *d, fx_window_kind kind) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_prod, FX_SYM_max, FX_SYM_min};
    if (!fx_trace_of(1, &x) || !fx_trace_given(x, "fx_reduce_window: dimensions", d) || !kind_valid(x, "fx_reduce_window", (unsigned)kind))
        return NULL;
    int n = x->spec.rank;
    fx_attr a[] = {{FX_ATTR_kind, 1, {.i = kinds[kind]}},
                   FX_LIST(window, n, OR(window, ones)),
                   FX_LIST(strides, n, OR(strides, ones)),
                   FX_LIST(low, n, OR(low, zeros)),
                   FX_LIST(high, n, OR(high, zeros)),
                   FX_LIST(lhs_dilation, n, OR(lhs_dilation, ones)),
                   FX_LIST(rhs_dilation, n, OR(rhs_dilation, ones))};
    return fx_trace_build(FX_OP_reduce_window, 1, &x, 7, a);
}

fx_val fx_select_and_scatter(fx_val operand, fx_val source, const fx_window_dims *d, bool select_max) {
    fx_val in[] = {operand, source};
    if (!fx_trace_of(2, in) || !fx_trace_given(operand, "fx_select_and_scatter: dimensions", d))
        return NULL;
    int n = operand->spec.rank;
    fx_attr a[] = {{FX_ATTR_kind, 1, {.i = select_max ? FX_SYM_max : FX_SYM_min}},
                   FX_LIST(window, n, OR(window, ones)),
                   FX_LIST(strides, n, OR(strides, ones)),
                   FX_LIST(low, n, OR(low, zeros)),
                   FX_LIST(high, n, OR(high, zeros))};
    return fx_trace_build(FX_OP_select_and_scatter, 2, in, 5, a);
}
#undef OR

/* NaN last, -0 equal to 0; a descending sort keeps NaN last as well. user: the direction. */
static void before(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t;
    fx_val less = *(const bool *)user ? fx_gt(in[0], in[1]) : fx_lt(in[0], in[1]);
    if (in[0] && fx_dtype_is_float(fx_spec_of(in[0]).dtype)) {
        fx_val real = fx_and(fx_not(fx_is_nan(in[0])), fx_is_nan(in[1]));
        less = fx_or(less, real);
    }
    out[0] = less;
}

fx_val fx_sort(fx_val x, int axis, bool descending) {
    fx_val out = NULL;
    fx_sort_by(1, &x, axis, before, &descending, &out);
    return out;
}

fx_val fx_argsort(fx_val x, int axis, bool descending) {
    if (!fx_trace_of(1, &x) || !fx_trace_axis(x, "fx_argsort", x->spec.rank, &axis))
        return NULL;
    fx_spec s = x->spec;
    s.dtype = FX_S32;
    fx_val in[] = {x, fx_iota(fx_val_trace(x), s, axis)}, out[2] = {NULL, NULL};
    fx_sort_by(2, in, axis, before, &descending, out);
    return out[1];
}

void fx_top_k(fx_val x, int64_t k, fx_val *values, fx_val *indices) {
    fx_attr a = FX_INT(k, k);
    bool places = fx_trace_given(x, "fx_top_k: address for the values", values) && fx_trace_given(x, "fx_top_k: address for the indices", indices);
    fx_val r = places ? fx_trace_build(FX_OP_top_k, 1, &x, 1, &a) : NULL;
    if (values)
        *values = r ? fx_result(r, 0) : NULL;
    if (indices)
        *indices = r ? fx_result(r, 1) : NULL;
}
