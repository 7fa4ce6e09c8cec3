/* trace_elementwise.c - constants, the elementwise operations of the table, and the usual functions
 * composed of them. Those whose composition has a wrong or unstable derivative carry their own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/trace.h"

fx_val fx_literal(fx_trace *t, fx_spec spec, const void *data) {
    if (!t)
        return NULL;
    fx_graph *g = fx_trace_graph(t);
    int64_t n = fx_spec_count(&spec);
    size_t size = fx_dtype_size(spec.dtype);
    if (n < 0 || !size || spec.rank < 0 || spec.rank > FX_MAX_RANK || (n && !data))
        return fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_literal: expected a valid spec and data; got %s",
                              data ? "a bad spec" : "NULL data");
    if (n > INT32_MAX / (int64_t)size)
        return fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_literal: at most 2 GiB; got %lld elements; pass an input instead",
                              (long long)n);
    fx_attr attrs[] = {{FX_ATTR_dtype, 1, {.i = spec.dtype}},
                       FX_LIST(shape, spec.rank, spec.dims),
                       FX_DATA(value, (size_t)n * size, data)};
    return fx_build(g, FX_OP_constant, 0, NULL, 3, attrs, 0, NULL);
}

/* Writes one element of any type. */
static void encode(fx_dtype dtype, double v, void *out) {
    int64_t i = isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v <= -0x1p63 ? INT64_MIN : (int64_t)v;
    uint64_t u = v >= 0x1p64 ? UINT64_MAX : v >= 0x1p63 ? (uint64_t)v : (uint64_t)i;
    float f = (float)v;
    uint16_t h = dtype == FX_F16 ? fx_f64_to_f16(v) : fx_f64_to_bf16(v);
    uint8_t b = v != 0;
    switch (dtype) {
    case FX_BOOL: memcpy(out, &b, 1); break;
    case FX_F16: case FX_BF16: memcpy(out, &h, 2); break;
    case FX_F32: memcpy(out, &f, 4); break;
    case FX_F64: memcpy(out, &v, 8); break;
    default: memcpy(out, &u, fx_dtype_size(dtype)); break; /* little-endian: the low bytes */
    }
}

fx_val fx_full(fx_trace *t, fx_spec spec, double value) {
    unsigned char element[8] = {0};
    if (!t)
        return NULL;
    size_t size = fx_dtype_size(spec.dtype);
    if (!size)
        return fx_graph_error(fx_trace_graph(t), FX_INVALID_ARGUMENT, "fx_full: bad element type %d", (int)spec.dtype);
    encode(spec.dtype, value, element);
    fx_attr attrs[] = {{FX_ATTR_dtype, 1, {.i = spec.dtype}},
                       FX_LIST(shape, spec.rank, spec.dims),
                       FX_DATA(value, size, element)};
    return fx_build(fx_trace_graph(t), FX_OP_constant, 0, NULL, 3, attrs, 0, NULL);
}

fx_val fx_scalar(fx_trace *t, fx_dtype dtype, double value) { return fx_full(t, (fx_spec){dtype, 0, {0}}, value); }

fx_val fx_const_like(fx_val like, double value) {
    return like ? fx_scalar(fx_val_trace(like), like->spec.dtype, value) : NULL;
}

fx_val fx_zeros_like(fx_val like) { return like ? fx_full(fx_val_trace(like), like->spec, 0) : NULL; }

fx_val fx_iota(fx_trace *t, fx_spec spec, int axis) {
    if (!t)
        return NULL;
    axis = axis < 0 ? axis + spec.rank : axis;
    fx_attr attrs[] = {{FX_ATTR_dtype, 1, {.i = spec.dtype}}, FX_LIST(shape, spec.rank, spec.dims), FX_INT(dim, axis)};
    return fx_build(fx_trace_graph(t), FX_OP_iota, 0, NULL, 3, attrs, 0, NULL);
}

#define FX_UNARY(op, ...) \
    fx_val fx_##op(fx_val x) { return fx_trace_build(FX_OP_##op, 1, &x, 0, NULL); }
#define FX_BINARY(op, ...)                                                                                           \
    fx_val fx_##op(fx_val x, fx_val y) {                                                                             \
        fx_val v[] = {x, y};                                                                                         \
        return fx_trace_broadcast("fx_" #op, 0, 2, v) ? fx_trace_build(FX_OP_##op, 2, v, 0, NULL) : NULL;            \
    }
#define FX_TERNARY(...)
#define FX_STRUCTURAL(...)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL

fx_val fx_stop_gradient(fx_val x) { return fx_trace_build(FX_OP_stop_gradient, 1, &x, 0, NULL); }

fx_val fx_select(fx_val pred, fx_val on_true, fx_val on_false) {
    fx_val v[] = {pred, on_true, on_false};
    return fx_trace_broadcast("fx_select", 1, 3, v) ? fx_trace_build(FX_OP_select, 3, v, 0, NULL) : NULL;
}

fx_val fx_clamp(fx_val lo, fx_val x, fx_val hi) {
    fx_val v[] = {lo, x, hi};
    return fx_trace_broadcast("fx_clamp", 0, 3, v) ? fx_trace_build(FX_OP_clamp, 3, v, 0, NULL) : NULL;
}

fx_val fx_convert(fx_val x, fx_dtype dtype) {
    fx_attr a = {FX_ATTR_dtype, 1, {.i = dtype}};
    return fx_trace_build(FX_OP_convert, 1, &x, 1, &a);
}

fx_val fx_bitcast_convert(fx_val x, fx_dtype dtype) {
    fx_attr a = {FX_ATTR_dtype, 1, {.i = dtype}};
    return fx_trace_build(FX_OP_bitcast_convert, 1, &x, 1, &a);
}

fx_val fx_reduce_precision(fx_val x, int exponent_bits, int mantissa_bits) {
    fx_attr a[] = {FX_INT(exponent_bits, exponent_bits), FX_INT(mantissa_bits, mantissa_bits)};
    return fx_trace_build(FX_OP_reduce_precision, 1, &x, 2, a);
}

fx_val fx_add_c(fx_val x, double c) { return fx_add(x, fx_const_like(x, c)); }
fx_val fx_mul_c(fx_val x, double c) { return fx_mul(x, fx_const_like(x, c)); }
fx_val fx_max_c(fx_val x, double c) { return fx_max(x, fx_const_like(x, c)); }
fx_val fx_pow_c(fx_val x, double c) {
    if (c == 2)
        return fx_mul(x, x);
    return fx_pow(x, fx_const_like(x, c));
}

fx_val fx_square(fx_val x) { return fx_mul(x, x); }
fx_val fx_is_nan(fx_val x) { return fx_ne(x, x); }

/* x <= 0 ? 0 : x keeps NaN, and its derivative at 0 is 0 as in JAX and PyTorch. */
fx_val fx_relu(fx_val x) { return fx_select(fx_le(x, fx_const_like(x, 0)), fx_const_like(x, 0), x); }

/* x erfc(-x/sqrt 2)/2 would be relatively accurate in the left tail; this is the usual form (Hendrycks &
 * Gimpel 2016). -inf would give -inf * 0: the select makes it the limit, 0. */
static fx_val gate(fx_val x, fx_val cdf) {
    fx_val y = fx_mul(x, cdf);
    return fx_select(fx_eq(x, fx_const_like(x, -INFINITY)), fx_const_like(x, 0), y);
}

fx_val fx_gelu(fx_val x) {
    return gate(x, fx_mul_c(fx_add_c(fx_erf(fx_mul_c(x, 0.70710678118654752440)), 1), 0.5));
}

fx_val fx_gelu_tanh(fx_val x) {
    fx_val cube = fx_mul(x, fx_mul(x, x));
    fx_val inner = fx_mul_c(fx_add(x, fx_mul_c(cube, 0.044715)), 0.79788456080286535588); /* sqrt(2/pi) */
    return gate(x, fx_mul_c(fx_add_c(fx_tanh(inner), 1), 0.5));
}

fx_val fx_silu(fx_val x) { return gate(x, fx_logistic(x)); }

/* log(e^x + e^y) = max + log1p(e^-|x-y|). The composition's derivatives are wrong at x = y from the second
 * on (|.| has none there), so the rule is given: dx logistic(x-y) + dy logistic(y-x). */
static void logaddexp_primal(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val x = in[0], y = in[1], d = fx_sub(x, y);
    fx_val r = fx_add(fx_max(x, y), fx_log1p(fx_exp(fx_neg(fx_abs(d)))));
    out[0] = fx_select(fx_is_nan(d), fx_add(x, y), r); /* inf - inf: the sum is inf, -inf or NaN as it should */
}

static void logaddexp_jvp(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    logaddexp_primal(t, in, out, user);
    /* e^(x-r) = logistic(x-y): smooth, so that derivatives of this rule are right too */
    fx_val d = fx_sub(in[0], in[1]);
    d = fx_select(fx_is_nan(d), fx_const_like(d, 0), d); /* two equal infinities share evenly */
    out[1] = fx_add(fx_mul(in[2], fx_logistic(d)), fx_mul(in[3], fx_logistic(fx_neg(d))));
}

fx_val fx_logaddexp(fx_val x, fx_val y) {
    fx_val v[] = {x, y}, out = NULL;
    if (fx_trace_broadcast("fx_logaddexp", 0, 2, v))
        fx_trace_custom_jvp(2, v, logaddexp_primal, logaddexp_jvp, NULL, 1, &out);
    return out;
}

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|), with derivative logistic(x). */
static void softplus_primal(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add(fx_max_c(in[0], 0), fx_log1p(fx_exp(fx_neg(fx_abs(in[0])))));
}

static void softplus_jvp(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    softplus_primal(t, in, out, user);
    out[1] = fx_mul(in[1], fx_logistic(in[0]));
}

fx_val fx_softplus(fx_val x) {
    fx_val out = NULL;
    fx_trace_custom_jvp(1, &x, softplus_primal, softplus_jvp, NULL, 1, &out);
    return out;
}

fx_val fx_log_sigmoid(fx_val x) { return fx_neg(fx_softplus(fx_neg(x))); }
