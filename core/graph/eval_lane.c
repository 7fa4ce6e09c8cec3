/* eval_lane.c - elements to and from lanes, and what reductions do with lanes. */
#include <math.h>

#include "core/graph/eval.h"

fx_lane_kind fx_lane_kind_of(fx_dtype d) {
    return fx_dtype_is_float(d) ? FX_LANE_F : fx_dtype_is_signed(d) ? FX_LANE_S : FX_LANE_U;
}

int fx_lane_width(fx_dtype d) {
    return d == FX_BOOL ? 1 : (int)fx_dtype_size(d) * 8;
}

#define LOAD(tag, type, field, value)                \
    case tag: {                                      \
        const type *p = (const type *)base + first;  \
        for (int64_t i = 0; i < n; i++, p += stride) \
            out[i].field = value;                    \
        break;                                       \
    }

void fx_lane_load(fx_dtype d, const void *base, int64_t first, int64_t stride, int64_t n, fx_lane *out) {
    switch (d) {
        LOAD(FX_BOOL, uint8_t, u, *p != 0)
        LOAD(FX_S8, int8_t, s, *p)
        LOAD(FX_S16, int16_t, s, *p)
        LOAD(FX_S32, int32_t, s, *p)
        LOAD(FX_S64, int64_t, s, *p)
        LOAD(FX_U8, uint8_t, u, *p)
        LOAD(FX_U16, uint16_t, u, *p)
        LOAD(FX_U32, uint32_t, u, *p)
        LOAD(FX_U64, uint64_t, u, *p)
        LOAD(FX_F16, uint16_t, f, (double)fx_f16_to_f32(*p))
        LOAD(FX_BF16, uint16_t, f, (double)fx_bf16_to_f32(*p))
        LOAD(FX_F32, float, f, (double)*p)
        LOAD(FX_F64, double, f, *p)
    case FX_TUPLE:
        break;
    }
}
#undef LOAD

#define STORE(tag, type, value)                      \
    case tag: {                                      \
        type *p = (type *)base + first;              \
        for (int64_t i = 0; i < n; i++, p += stride) \
            *p = (type)(value);                      \
        break;                                       \
    }

void fx_lane_store(fx_dtype d, void *base, int64_t first, int64_t stride, int64_t n, const fx_lane *in) {
    switch (d) {
        STORE(FX_BOOL, uint8_t, in[i].u != 0)
        STORE(FX_S8, uint8_t, in[i].u)
        STORE(FX_S16, uint16_t, in[i].u)
        STORE(FX_S32, uint32_t, in[i].u)
        STORE(FX_S64, uint64_t, in[i].u)
        STORE(FX_U8, uint8_t, in[i].u)
        STORE(FX_U16, uint16_t, in[i].u)
        STORE(FX_U32, uint32_t, in[i].u)
        STORE(FX_U64, uint64_t, in[i].u)
        STORE(FX_F16, uint16_t, fx_f64_to_f16(in[i].f))
        STORE(FX_BF16, uint16_t, fx_f64_to_bf16(in[i].f))
        STORE(FX_F32, float, in[i].f)
        STORE(FX_F64, double, in[i].f)
    case FX_TUPLE:
        break;
    }
}
#undef STORE

void fx_lane_load_nd(fx_dtype d, const void *base, int64_t first, int rank, const int64_t *dims, const int64_t *strides,
                     fx_lane *out) {
    int64_t index[FX_MAX_RANK] = {0}, inner = rank ? dims[rank - 1] : 1, step = rank ? strides[rank - 1] : 0;
    for (int i = 0; i < rank; i++)
        if (!dims[i])
            return;
    do {
        int64_t at = first;
        for (int i = 0; i + 1 < rank; i++)
            at += index[i] * strides[i];
        fx_lane_load(d, base, at, step, inner, out);
        out += inner;
    } while (fx_eval_step(rank - 1, dims, index));
}

int64_t fx_eval_index(fx_dtype d, const void *base, int64_t i) {
    fx_lane v = {.u = 0};
    fx_lane_load(d, base, i, 1, 1, &v);
    return fx_lane_kind_of(d) == FX_LANE_U && v.u > INT64_MAX ? INT64_MAX : v.s;
}

#define EACH(field, expr)                                \
    {                                                    \
        for (int64_t i = 0; i < n; i++, acc += acc_step) \
            acc->field = (expr);                         \
        return;                                          \
    }
#define BY_KIND(if_f, if_s, if_u) \
    {                             \
        if (k == FX_LANE_F)       \
            EACH(f, if_f)         \
        if (k == FX_LANE_S)       \
            EACH(s, if_s)         \
        EACH(u, if_u)             \
    }

static double max_nan(double a, double b) {
    return a > b || isnan(a) ? a : b > a || isnan(b) ? b : signbit(a) ? b : a;
}
static double min_nan(double a, double b) {
    return a < b || isnan(a) ? a : b < a || isnan(b) ? b : signbit(a) ? a : b;
}

void fx_lane_combine(fx_symbol kind, fx_lane_kind k, fx_lane *acc, int64_t acc_step, const fx_lane *x, int64_t n) {
    switch (kind) {
    case FX_SYM_sum:
    case FX_SYM_add:
        if (k == FX_LANE_F)
            EACH(f, acc->f + x[i].f)
        EACH(u, acc->u + x[i].u)
    case FX_SYM_prod:
    case FX_SYM_mul:
        if (k == FX_LANE_F)
            EACH(f, acc->f * x[i].f)
        EACH(u, acc->u * x[i].u)
    case FX_SYM_max:
        BY_KIND(max_nan(acc->f, x[i].f), acc->s > x[i].s ? acc->s : x[i].s, acc->u > x[i].u ? acc->u : x[i].u)
    case FX_SYM_min:
        BY_KIND(min_nan(acc->f, x[i].f), acc->s < x[i].s ? acc->s : x[i].s, acc->u < x[i].u ? acc->u : x[i].u)
    case FX_SYM_and:
        EACH(u, acc->u & x[i].u)
    case FX_SYM_or:
        EACH(u, acc->u | x[i].u)
    case FX_SYM_xor:
        EACH(u, acc->u ^ x[i].u)
    default: /* set */
        EACH(u, x[i].u)
    }
}
#undef EACH
#undef BY_KIND

fx_lane fx_lane_identity(fx_symbol kind, fx_dtype d) {
    fx_lane_kind k = fx_lane_kind_of(d);
    uint64_t ones = UINT64_MAX >> (64 - fx_lane_width(d));
    fx_lane v = {.u = 0};
    if (kind == FX_SYM_and)
        v.u = ones;
    else if (kind == FX_SYM_prod || kind == FX_SYM_mul) {
        if (k == FX_LANE_F)
            v.f = 1;
        else
            v.u = 1;
    } else if (kind == FX_SYM_max) {
        if (k == FX_LANE_F)
            v.f = -INFINITY;
        else if (k == FX_LANE_S)
            v.s = -(int64_t)(ones >> 1) - 1;
    } else if (kind == FX_SYM_min) {
        if (k == FX_LANE_F)
            v.f = INFINITY;
        else
            v.u = k == FX_LANE_S ? ones >> 1 : ones;
    }
    return v;
}

bool fx_lane_better(bool want_max, fx_lane_kind k, fx_lane x, fx_lane best) {
    if (k == FX_LANE_F) {
        if (isnan(x.f) || isnan(best.f))
            return isnan(x.f) && !isnan(best.f);
        return want_max ? x.f > best.f : x.f < best.f;
    }
    if (k == FX_LANE_S)
        return want_max ? x.s > best.s : x.s < best.s;
    return want_max ? x.u > best.u : x.u < best.u;
}
