/* shape_layout.c - shape rules of literals, type changes and of ops that only rename elements. */
#include <string.h>

#include "core/graph/node.h"

#define FAR ((int64_t)1 << 56) /* bound on padding and steps */

/* Leaves one element when all are equal; bool must be 0 or 1. An array without elements keeps one zero. */
bool fx_shape_constant(fx_rule *r) {
    static const char zeros[8];
    fx_dtype dtype;
    if (!fx_take_dtype(r, FX_TUPLE, &dtype) || !fx_take_shape(r, dtype, &r->spec))
        return false;
    const fx_attr *value = NULL;
    for (int i = 0; i < r->n_attr; i++)
        if (r->attr[i].id == FX_ATTR_value)
            value = &r->attr[i];
    if (!value)
        return fx_rule_fail(r, "attribute value; expected; got none");
    int64_t count = fx_spec_count(&r->spec), size = (int64_t)fx_dtype_size(dtype);
    if ((value->count != size && value->count != count * size) || (value->count && !value->u.data))
        return fx_rule_fail(r, "attribute value; expected %lld bytes (one element) or %lld (all); got %d",
                            (long long)size, (long long)(count * size), value->count);
    const unsigned char *p = count ? value->u.data : (const unsigned char *)zeros;
    int bytes = count ? value->count : (int)size;
    for (int i = 0; dtype == FX_BOOL && i < bytes; i++)
        if (p[i] > 1)
            return fx_rule_fail(r, "attribute value; expected bytes 0 or 1 for bool; got %d at %d", p[i], i);
    if (bytes > size && !memcmp(p, p + size, (size_t)(bytes - size))) /* each element equals the next */
        bytes = (int)size;
    r->out[r->n_out++] = (fx_attr){FX_ATTR_value, bytes, {.data = p}};
    return true;
}

bool fx_shape_iota(fx_rule *r) {
    fx_dtype dtype;
    int64_t dim;
    if (!fx_take_dtype(r, FX_TUPLE, &dtype) || !fx_take_shape(r, dtype, &r->spec))
        return false;
    if (dtype == FX_BOOL || !r->spec.rank)
        return fx_rule_fail(r, "result; expected a number type and a dimension; got %s", fx_spec_text(&r->spec));
    return fx_take_int(r, FX_ATTR_dim, 0, r->spec.rank - 1, &dim);
}

bool fx_shape_convert(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    fx_dtype dtype;
    return fx_take_dtype(r, FX_TUPLE, &dtype) && fx_rule_result(r, dtype, x->rank, x->dims);
}

bool fx_shape_bitcast_convert(fx_rule *r) {
    fx_dtype from = fx_rule_in(r, 0)->dtype, to;
    if (!fx_take_dtype(r, FX_TUPLE, &to))
        return false;
    r->spec = *fx_rule_in(r, 0);
    r->spec.dtype = to;
    return (fx_dtype_size(from) == fx_dtype_size(to) && (from == FX_BOOL) == (to == FX_BOOL)) ||
           fx_rule_fail(r, "attribute dtype; expected a type of the width of %s (bool only to bool); got %s",
                        fx_dtype_name(from), fx_dtype_name(to));
}

bool fx_shape_reduce_precision(fx_rule *r) {
    int64_t bits;
    if (!fx_dtype_is_float(fx_rule_in(r, 0)->dtype))
        return fx_rule_fail(r, "operand 0; expected float; got %s", fx_spec_text(fx_rule_in(r, 0)));
    return fx_take_int(r, FX_ATTR_exponent_bits, 1, 11, &bits) && fx_take_int(r, FX_ATTR_mantissa_bits, 0, 52, &bits) &&
           fx_rule_like(r, fx_rule_in(r, 0));
}

bool fx_shape_stop_gradient(fx_rule *r) {
    return fx_rule_like(r, fx_rule_in(r, 0));
}

bool fx_shape_broadcast_in_dim(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *dims;
    int n;
    if (!fx_take_shape(r, x->dtype, &r->spec) || !fx_take_dims(r, FX_ATTR_dims, r->spec.rank, FX_ORDER_KEPT, &n, &dims))
        return false;
    if (n != x->rank)
        return fx_rule_fail(r, "attribute dims; expected one entry per dimension of %s; got %d", fx_spec_text(x), n);
    for (int i = 0; i < n; i++)
        if (x->dims[i] != 1 && x->dims[i] != r->spec.dims[dims[i]])
            return fx_rule_fail(r, "operand dimension %d; expected 1 or the result's %lld; got %lld", i,
                                (long long)r->spec.dims[dims[i]], (long long)x->dims[i]);
    return true;
}

bool fx_shape_reshape(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    if (!fx_take_shape(r, x->dtype, &r->spec))
        return false;
    return fx_spec_count(x) == fx_spec_count(&r->spec) ||
           fx_rule_fail(r, "attribute shape; expected %lld elements as in %s; got %s", (long long)fx_spec_count(x),
                        fx_spec_text(x), fx_spec_text(&r->spec));
}

bool fx_shape_transpose(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *p;
    if (!fx_take_permutation(r, FX_ATTR_permutation, x->rank, &p))
        return false;
    r->spec = *x;
    for (int i = 0; i < x->rank; i++)
        r->spec.dims[i] = x->dims[p[i]];
    return true;
}

bool fx_shape_slice(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *start, *limit, *step;
    if (!fx_take_list(r, FX_ATTR_start, x->rank, 0, FAR, &start) ||
        !fx_take_list(r, FX_ATTR_limit, x->rank, 0, FAR, &limit) ||
        !fx_take_list_or(r, FX_ATTR_strides, x->rank, 1, FAR, 1, &step))
        return false;
    r->spec = *x;
    for (int i = 0; i < x->rank; i++) {
        if (start[i] > limit[i] || limit[i] > x->dims[i])
            return fx_rule_fail(r, "dimension %d; expected 0 <= start <= limit <= %lld; got %lld and %lld", i,
                                (long long)x->dims[i], (long long)start[i], (long long)limit[i]);
        r->spec.dims[i] = (limit[i] - start[i] + step[i] - 1) / step[i];
    }
    return true;
}

bool fx_shape_pad(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *low, *high, *interior;
    if (!fx_rule_scalar(r, 1, x->dtype) || !fx_take_list(r, FX_ATTR_low, x->rank, -FAR, FAR, &low) ||
        !fx_take_list(r, FX_ATTR_high, x->rank, -FAR, FAR, &high) ||
        !fx_take_list_or(r, FX_ATTR_interior, x->rank, 0, FAR, 0, &interior))
        return false;
    fx_spec out = *x;
    for (int i = 0; i < x->rank; i++) {
        int64_t n = 0;
        if ((x->dims[i] && __builtin_mul_overflow(x->dims[i] - 1, interior[i], &n)) || n > FAR)
            return fx_rule_fail(r, "dimension %d; expected a size below 2^56; got %lld with %lld between", i,
                                (long long)x->dims[i], (long long)interior[i]);
        out.dims[i] = n + x->dims[i] + low[i] + high[i]; /* each term is within 2^56 */
        if (out.dims[i] < 0)
            return fx_rule_fail(r, "dimension %d; expected padding that leaves a size of 0 or more; got %lld", i,
                                (long long)out.dims[i]);
    }
    return fx_rule_result(r, x->dtype, x->rank, out.dims);
}

bool fx_shape_concatenate(fx_rule *r) {
    int64_t dim, total = 0;
    if (r->n_in < 1)
        return fx_rule_fail(r, "operands; expected at least one; got none");
    const fx_spec *x = fx_rule_in(r, 0);
    if (!fx_take_int(r, FX_ATTR_dim, 0, x->rank - 1, &dim))
        return false;
    for (int i = 0; i < r->n_in; i++) {
        const fx_spec *y = fx_rule_in(r, i);
        bool same = y->dtype == x->dtype && y->rank == x->rank;
        for (int d = 0; same && d < x->rank; d++)
            same = d == dim || y->dims[d] == x->dims[d];
        if (!same)
            return fx_rule_fail(r, "operand %d; expected %s but for dimension %lld; got %s", i, fx_spec_text(x),
                                (long long)dim, fx_spec_text(y));
        if (__builtin_add_overflow(total, y->dims[dim], &total))
            return fx_rule_fail(r, "dimension %lld; expected a total below 2^56", (long long)dim);
    }
    fx_spec out = *x;
    out.dims[dim] = total;
    return fx_rule_result(r, x->dtype, x->rank, out.dims);
}

bool fx_shape_reverse(fx_rule *r) {
    int n;
    const int64_t *dims;
    return fx_take_dims(r, FX_ATTR_dims, fx_rule_in(r, 0)->rank, FX_ORDER_SORTED, &n, &dims) &&
           fx_rule_like(r, fx_rule_in(r, 0));
}

bool fx_shape_windows(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    const int64_t *window, *strides, *low, *high, *ld, *rd;
    int64_t dims[2 * FX_MAX_RANK];
    if (!fx_rule_scalar(r, 1, x->dtype) || !fx_take_list(r, FX_ATTR_window, x->rank, 1, FAR, &window) ||
        !fx_take_list_or(r, FX_ATTR_strides, x->rank, 1, FAR, 1, &strides) ||
        !fx_take_list_or(r, FX_ATTR_low, x->rank, -FAR, FAR, 0, &low) ||
        !fx_take_list_or(r, FX_ATTR_high, x->rank, -FAR, FAR, 0, &high) ||
        !fx_take_list_or(r, FX_ATTR_lhs_dilation, x->rank, 1, FAR, 1, &ld) ||
        !fx_take_list_or(r, FX_ATTR_rhs_dilation, x->rank, 1, FAR, 1, &rd))
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (!fx_window_positions(r, x->dims[i], window[i], strides[i], low[i], high[i], ld[i], rd[i], &dims[i]))
            return false;
        dims[x->rank + i] = window[i];
    }
    return fx_rule_result(r, x->dtype, 2 * x->rank, dims);
}
