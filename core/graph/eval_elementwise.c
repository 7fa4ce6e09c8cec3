/* eval_elementwise.c - the scalar expressions of ops.def, compiled as C for lanes of double, int64_t and uint64_t.
 *
 * M(f, ...) of an expression becomes d_f, s_f or u_f below; the integer ones also get the width in
 * bits of the element type, since lanes are wider. Operands of one element serve every element. */
#include "core/graph/eval.h"

#include <math.h>

/* Floats: all in double. */
#define LIBM1(name, call)                     \
    static inline double d_##name(double x) { \
        return call(x);                       \
    }
LIBM1(fabs, fabs)
LIBM1(exp, exp)
LIBM1(expm1, expm1)
LIBM1(log, log)
LIBM1(log1p, log1p)
LIBM1(tanh, tanh)
LIBM1(sqrt, sqrt)
LIBM1(cbrt, cbrt)
LIBM1(sin, sin)
LIBM1(cos, cos)
LIBM1(tan, tan)
LIBM1(floor, floor)
LIBM1(ceil, ceil)
LIBM1(round_even, rint) /* in the default rounding mode */
LIBM1(round_afz, round)
LIBM1(erf, erf)
LIBM1(erf_inv, fx_eval_erf_inv)
LIBM1(lgamma, fx_eval_lgamma)
LIBM1(digamma, fx_eval_digamma)
#undef LIBM1

static inline double d_fsign(double x) {
    return x > 0 ? 1 : x < 0 ? -1 : x;
}
static inline double d_rsqrt(double x) {
    return 1 / sqrt(x);
}
static inline double d_is_finite(double x) {
    return isfinite(x) ? 1 : 0;
}
static inline double d_fdiv(double x, double y) {
    return x / y;
}
static inline double d_frem(double x, double y) {
    return fmod(x, y);
}
static inline double d_pow(double x, double y) {
    return pow(x, y);
}
static inline double d_atan2(double x, double y) {
    return atan2(x, y);
}

static inline double d_logistic(double x) {
    double e = exp(-fabs(x)); /* never overflows */
    return x >= 0 ? 1 / (1 + e) : x < 0 ? e / (1 + e) : x;
}
static inline double d_fmax_nan(double x, double y) {
    return x > y || isnan(x) ? x : y > x || isnan(y) ? y : signbit(x) ? y : x;
}
static inline double d_fmin_nan(double x, double y) {
    return x < y || isnan(x) ? x : y < x || isnan(y) ? y : signbit(x) ? x : y;
}
static inline double d_clamp(double lo, double x, double hi) {
    return d_fmin_nan(d_fmax_nan(x, lo), hi);
}

/* Integers, unsigned: results may exceed the width, storing wraps them. Bool is a width of 1. */
static inline uint64_t ones(int w) {
    return UINT64_MAX >> (64 - w);
}
static inline uint64_t u_iabs(uint64_t x, int w) {
    return (void)w, x;
}
static inline uint64_t u_ineg(uint64_t x, int w) {
    return (void)w, 0 - x;
}
static inline uint64_t u_isign(uint64_t x, int w) {
    return (void)w, x != 0;
}
static inline uint64_t u_bnot(uint64_t x, int w) {
    return ~x & ones(w);
}
static inline uint64_t u_popcnt(uint64_t x, int w) {
    return (uint64_t)__builtin_popcountll(x & ones(w));
}
static inline uint64_t u_clz(uint64_t x, int w) {
    return (uint64_t)(x & ones(w) ? __builtin_clzll(x & ones(w)) - (64 - w) : w);
}
static inline uint64_t u_iadd(uint64_t x, uint64_t y, int w) {
    return (void)w, x + y;
}
static inline uint64_t u_isub(uint64_t x, uint64_t y, int w) {
    return (void)w, x - y;
}
static inline uint64_t u_imul(uint64_t x, uint64_t y, int w) {
    return (void)w, x * y;
}
static inline uint64_t u_idiv(uint64_t x, uint64_t y, int w) {
    return (void)w, y ? x / y : UINT64_MAX;
}
static inline uint64_t u_irem(uint64_t x, uint64_t y, int w) {
    return (void)w, y ? x % y : x;
}
static inline uint64_t u_ipow(uint64_t x, uint64_t y, int w) {
    uint64_t r = 1;
    (void)w;
    for (; y; y >>= 1, x *= x)
        r *= y & 1 ? x : 1;
    return r;
}
static inline uint64_t u_imax(uint64_t x, uint64_t y, int w) {
    return (void)w, x > y ? x : y;
}
static inline uint64_t u_imin(uint64_t x, uint64_t y, int w) {
    return (void)w, x < y ? x : y;
}
static inline uint64_t u_iand(uint64_t x, uint64_t y, int w) {
    return (void)w, x & y;
}
static inline uint64_t u_ior(uint64_t x, uint64_t y, int w) {
    return (void)w, x | y;
}
static inline uint64_t u_ixor(uint64_t x, uint64_t y, int w) {
    return (void)w, x ^ y;
}
static inline uint64_t u_shl(uint64_t x, uint64_t y, int w) {
    return y < (uint64_t)w ? x << y : 0;
}
static inline uint64_t u_shr_l(uint64_t x, uint64_t y, int w) {
    return y < (uint64_t)w ? (x & ones(w)) >> y : 0;
}
static inline uint64_t u_shr_a(uint64_t x, uint64_t y, int w) {
    int64_t wide = (int64_t)(x << (64 - w)) >> (64 - w); /* the top bit is taken for a sign */
    return (uint64_t)(wide >> (y < (uint64_t)w ? y : 63));
}
static inline uint64_t u_ilt(uint64_t x, uint64_t y, int w) {
    return (void)w, x < y;
}
static inline uint64_t u_ile(uint64_t x, uint64_t y, int w) {
    return (void)w, x <= y;
}
static inline uint64_t u_clamp(uint64_t lo, uint64_t x, uint64_t hi, int w) {
    return u_imin(u_imax(x, lo, w), hi, w);
}

/* Integers, signed: lanes are sign-extended. */
static inline int64_t s_ineg(int64_t x, int w) {
    return (int64_t)u_ineg((uint64_t)x, w);
}
static inline int64_t s_iabs(int64_t x, int w) {
    return x < 0 ? s_ineg(x, w) : x;
}
static inline int64_t s_isign(int64_t x, int w) {
    return (void)w, (x > 0) - (x < 0);
}
static inline int64_t s_bnot(int64_t x, int w) {
    return (void)w, ~x;
}
static inline int64_t s_popcnt(int64_t x, int w) {
    return (int64_t)u_popcnt((uint64_t)x, w);
}
static inline int64_t s_clz(int64_t x, int w) {
    return (int64_t)u_clz((uint64_t)x, w);
}
static inline int64_t s_iadd(int64_t x, int64_t y, int w) {
    return (int64_t)u_iadd((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_isub(int64_t x, int64_t y, int w) {
    return (int64_t)u_isub((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_imul(int64_t x, int64_t y, int w) {
    return (int64_t)u_imul((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_idiv(int64_t x, int64_t y, int w) {
    return y == 0 ? -1 : y == -1 ? s_ineg(x, w) : x / y;
}
static inline int64_t s_irem(int64_t x, int64_t y, int w) {
    return (void)w, y == 0 ? x : y == -1 ? 0 : x % y;
}
static inline int64_t s_ipow(int64_t x, int64_t y, int w) {
    if (y < 0) /* 1/x^|y| truncated */
        return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    return (int64_t)u_ipow((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_imax(int64_t x, int64_t y, int w) {
    return (void)w, x > y ? x : y;
}
static inline int64_t s_imin(int64_t x, int64_t y, int w) {
    return (void)w, x < y ? x : y;
}
static inline int64_t s_iand(int64_t x, int64_t y, int w) {
    return (void)w, x & y;
}
static inline int64_t s_ior(int64_t x, int64_t y, int w) {
    return (void)w, x | y;
}
static inline int64_t s_ixor(int64_t x, int64_t y, int w) {
    return (void)w, x ^ y;
}
static inline int64_t s_shl(int64_t x, int64_t y, int w) {
    return (int64_t)u_shl((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_shr_l(int64_t x, int64_t y, int w) {
    return (int64_t)u_shr_l((uint64_t)x, (uint64_t)y, w);
}
static inline int64_t s_shr_a(int64_t x, int64_t y, int w) {
    return x >> (y >= 0 && y < w ? y : 63);
}
static inline int64_t s_ilt(int64_t x, int64_t y, int w) {
    return (void)w, x < y;
}
static inline int64_t s_ile(int64_t x, int64_t y, int w) {
    return (void)w, x <= y;
}
static inline int64_t s_clamp(int64_t lo, int64_t x, int64_t hi, int w) {
    return s_imin(s_imax(x, lo, w), hi, w);
}

/* A row: n lanes of up to three operands to n lanes. Results of type bool are written as u. */
typedef void (*row_fn)(const fx_lane *a, const fx_lane *b, const fx_lane *c, fx_lane *r, int64_t n, int w);

#define NONE 0
#define PUT_SAME(field, type, expr) r[i].field = (type)(expr)
#define PUT_BOOL(field, type, expr) r[i].u = (expr) != 0
#define ROW(prefix, name, field, type, result, expr)                                                             \
    static void prefix##_row_##name(const fx_lane *a, const fx_lane *b, const fx_lane *c, fx_lane *r, int64_t n, \
                                    int w) {                                                                     \
        (void)w;                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                        \
            type x = a[i].field, y = b[i].field, z = c[i].field;                                                 \
            (void)x, (void)y, (void)z;                                                                           \
            PUT_##result(field, type, expr);                                                                     \
        }                                                                                                        \
    }

#define T(v) ((double)(v))
#define M(f, ...) d_##f(__VA_ARGS__)
#define FX_UNARY(name, types, result, fexpr, iexpr, d0, ulp, doc) ROW(d, name, f, double, result, fexpr)
#define FX_BINARY(name, types, result, fexpr, iexpr, d0, d1, ulp, doc) ROW(d, name, f, double, result, fexpr)
#define FX_TERNARY(name, types, result, expr, doc) ROW(d, name, f, double, result, expr)
#define FX_STRUCTURAL(...)
#pragma GCC diagnostic push /* select's predicate is a number here */
#pragma GCC diagnostic ignored "-Wfloat-conversion"
#include "core/ops/ops.def"
#pragma GCC diagnostic pop
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef T
#undef M

#define T(v) ((int64_t)(v))
#define M(f, ...) s_##f(__VA_ARGS__, w)
#define FX_UNARY(name, types, result, fexpr, iexpr, d0, ulp, doc) ROW(s, name, s, int64_t, result, iexpr)
#define FX_BINARY(name, types, result, fexpr, iexpr, d0, d1, ulp, doc) ROW(s, name, s, int64_t, result, iexpr)
#define FX_TERNARY(name, types, result, expr, doc) ROW(s, name, s, int64_t, result, expr)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef T
#undef M

#define T(v) ((uint64_t)(v))
#define M(f, ...) u_##f(__VA_ARGS__, w)
#define FX_UNARY(name, types, result, fexpr, iexpr, d0, ulp, doc) ROW(u, name, u, uint64_t, result, iexpr)
#define FX_BINARY(name, types, result, fexpr, iexpr, d0, d1, ulp, doc) ROW(u, name, u, uint64_t, result, iexpr)
#define FX_TERNARY(name, types, result, expr, doc) ROW(u, name, u, uint64_t, result, expr)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef T
#undef M
#undef NONE
#undef PUT_SAME
#undef PUT_BOOL
#undef ROW

static const row_fn rows[FX_OP_COUNT][3] = {
#define ENTRY(name) [FX_OP_##name] = {d_row_##name, s_row_##name, u_row_##name},
#define FX_UNARY(name, ...) ENTRY(name)
#define FX_BINARY(name, ...) ENTRY(name)
#define FX_TERNARY(name, ...) ENTRY(name)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
#undef ENTRY
};

/* Operand k of `n`, elements from `first` on, as lanes of kind `want` (select's predicate is widened). */
static void load(const fx_eval_args *c, int k, bool one, int64_t first, int64_t n, fx_lane_kind want, fx_lane *out) {
    fx_dtype d = c->node->in[k]->spec.dtype;
    fx_lane_load(d, c->in[k], one ? 0 : first, one ? 0 : 1, n, out);
    if (want == FX_LANE_F && d == FX_BOOL)
        for (int64_t i = 0; i < n; i++)
            out[i].f = (double)out[i].u;
}

fx_status fx_eval_elementwise(const fx_eval_args *c) {
    const fx_node *n = c->node;
    fx_lane lanes[3][FX_LANE_CHUNK], r[FX_LANE_CHUNK];
    fx_dtype d = n->in[n->op == FX_OP_select ? 1 : 0]->spec.dtype;
    fx_lane_kind kind = fx_lane_kind_of(d);
    int64_t count = fx_spec_count(&n->spec);
    bool one[3] = {false, false, false};
    for (int k = 0; k < n->n_in; k++)
        one[k] = fx_spec_count(&n->in[k]->spec) == 1;
    for (int64_t at = 0; at < count; at += FX_LANE_CHUNK) {
        int64_t m = count - at < FX_LANE_CHUNK ? count - at : FX_LANE_CHUNK;
        for (int k = 0; k < n->n_in; k++)
            load(c, k, one[k], at, m, kind, lanes[k]);
        for (int k = n->n_in; k < 3; k++) /* rows read three operands, whatever they use */
            for (int64_t i = 0; i < m && at == 0; i++)
                lanes[k][i].u = 0;
        rows[n->op][kind](lanes[0], lanes[1], lanes[2], r, m, fx_lane_width(d));
        fx_lane_store(n->spec.dtype, c->out[0], at, 1, m, r);
    }
    return FX_OK;
}
