/* eval_convert.c - changes of element type: convert, bitcast_convert, reduce_precision; literals. */
#include <math.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/eval.h"

/* Truncates and saturates to an integer of `width` bits; NaN gives 0. */
static fx_lane float_to_int(double x, bool is_signed, int width) {
    double limit = ldexp(1, is_signed ? width - 1 : width); /* the least value too large */
    uint64_t top = UINT64_MAX >> (is_signed ? 65 - width : 64 - width);
    fx_lane r = {.u = 0};
    if (isnan(x))
        return r;
    if (x >= limit)
        r.u = top;
    else if (is_signed)
        r.s = x < -limit ? -(int64_t)top - 1 : (int64_t)x;
    else
        r.u = x <= 0 ? 0 : (uint64_t)x;
    return r;
}

/* To a double that rounds to any narrower type as the integer itself would: where bits are lost, the
 * last one kept is made odd, so that no tie arises by accident. */
static double sticky(uint64_t magnitude, bool negative) {
    if (magnitude >> 53) {
        int drop = 64 - 53 - __builtin_clzll(magnitude);
        uint64_t lost = magnitude & ((1ull << drop) - 1);
        magnitude = (magnitude & ~((1ull << drop) - 1)) | (lost ? 1ull << drop : 0);
    }
    return negative ? -(double)magnitude : (double)magnitude;
}

static fx_lane convert(fx_lane v, fx_lane_kind from, fx_dtype to) {
    fx_lane r = v;
    if (to == FX_BOOL) {
        r.u = from == FX_LANE_F ? v.f != 0 : v.u != 0;
    } else if (fx_dtype_is_float(to)) {
        bool negative = from == FX_LANE_S && v.s < 0;
        if (from != FX_LANE_F && to == FX_F64)
            r.f = from == FX_LANE_S ? (double)v.s : (double)v.u;
        else if (from != FX_LANE_F)
            r.f = sticky(negative ? 0 - v.u : v.u, negative);
    } else if (from == FX_LANE_F) {
        r = float_to_int(v.f, fx_dtype_is_signed(to), fx_lane_width(to));
    }
    return r;
}

fx_status fx_eval_convert(const fx_eval_args *c) {
    fx_dtype from = c->node->in[0]->spec.dtype, to = c->node->spec.dtype;
    fx_lane x[FX_LANE_CHUNK];
    int64_t count = fx_spec_count(&c->node->spec);
    for (int64_t at = 0; at < count; at += FX_LANE_CHUNK) {
        int64_t n = count - at < FX_LANE_CHUNK ? count - at : FX_LANE_CHUNK;
        fx_lane_load(from, c->in[0], at, 1, n, x);
        for (int64_t i = 0; i < n; i++)
            x[i] = convert(x[i], fx_lane_kind_of(from), to);
        fx_lane_store(to, c->out[0], at, 1, n, x);
    }
    return FX_OK;
}

static fx_status same_bytes(const fx_eval_args *c, int result, int operand) {
    size_t bytes = fx_eval_bytes(fx_eval_result(c->node, result));
    if (bytes)
        memcpy(c->out[result], c->in[operand], bytes);
    return FX_OK;
}

fx_status fx_eval_bitcast_convert(const fx_eval_args *c) {
    return same_bytes(c, 0, 0);
}
fx_status fx_eval_stop_gradient(const fx_eval_args *c) {
    return same_bytes(c, 0, 0);
}
fx_status fx_eval_reshape(const fx_eval_args *c) {
    return same_bytes(c, 0, 0);
}
fx_status fx_eval_project(const fx_eval_args *c) {
    return same_bytes(c, 0, (int)FX_GET_INT(c->node, index));
}
fx_status fx_eval_optimization_barrier(const fx_eval_args *c) {
    for (int i = 0; i < c->node->n_in; i++)
        FX_TRY(same_bytes(c, i, i));
    return FX_OK;
}

fx_status fx_eval_parameter(const fx_eval_args *c) {
    return fx_fail(FX_INTERNAL, "evaluation; expected a value for parameter %lld; got none; evaluate its graph",
                   (long long)FX_GET_INT(c->node, index));
}

fx_status fx_eval_constant(const fx_eval_args *c) {
    const fx_attr *value = fx_attr_get(c->node, FX_ATTR_value);
    size_t size = fx_dtype_size(c->node->spec.dtype), bytes = fx_eval_bytes(&c->node->spec);
    if (!bytes)
        return FX_OK;
    if (!value || ((size_t)value->count != bytes && (size_t)value->count != size))
        return fx_fail(FX_INTERNAL, "constant; expected %zu or %zu bytes; got %d", size, bytes,
                       value ? value->count : 0);
    for (size_t at = 0; at < bytes; at += (size_t)value->count)
        memcpy((char *)c->out[0] + at, value->u.data, (size_t)value->count);
    return FX_OK;
}

/* Rounds the pattern of a float with e exponent and m mantissa bits to `to_e` and `to_m` bits, in place.
 * What is below the least normal number of the narrower exponent becomes zero. */
static uint64_t narrow(uint64_t bits, int e, int m, int64_t to_e, int64_t to_m) {
    uint64_t sign = bits & 1ull << (e + m), x = bits & ~sign, inf = ((1ull << e) - 1) << m;
    if (x > inf) /* NaN */
        return bits;
    if (to_m < m) {
        int drop = m - (int)to_m;
        x += ((1ull << (drop - 1)) - 1) + (x >> drop & 1);
        x &= ~((1ull << drop) - 1);
    }
    if (to_e < e) {
        uint64_t bias = (1ull << (e - 1)) - 1, to_bias = (1ull << (to_e - 1)) - 1, exponent = x >> m;
        if (exponent > bias + to_bias)
            x = inf;
        else if (exponent <= bias - to_bias)
            x = 0;
    }
    return sign | x;
}

fx_status fx_eval_reduce_precision(const fx_eval_args *c) {
    fx_dtype d = c->node->spec.dtype;
    int e = d == FX_F16 ? 5 : d == FX_F64 ? 11 : 8, m = d == FX_F16 ? 10 : d == FX_BF16 ? 7 : d == FX_F32 ? 23 : 52;
    int64_t to_e = FX_GET_INT(c->node, exponent_bits), to_m = FX_GET_INT(c->node, mantissa_bits);
    int64_t count = fx_spec_count(&c->node->spec);
    fx_dtype raw = d == FX_F64 ? FX_U64 : d == FX_F32 ? FX_U32 : FX_U16;
    fx_lane x[FX_LANE_CHUNK];
    for (int64_t at = 0; at < count; at += FX_LANE_CHUNK) {
        int64_t n = count - at < FX_LANE_CHUNK ? count - at : FX_LANE_CHUNK;
        fx_lane_load(raw, c->in[0], at, 1, n, x);
        for (int64_t i = 0; i < n; i++)
            x[i].u = narrow(x[i].u, e, m, to_e, to_m);
        fx_lane_store(raw, c->out[0], at, 1, n, x);
    }
    return FX_OK;
}
