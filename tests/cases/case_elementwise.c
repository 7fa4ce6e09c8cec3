/* case_elementwise.c - special values of elementwise ops: NaN, zeros, integer limits, rounding, accuracy near 0. */
#include <math.h>

#include "tests/cases/case.h"

/* op(x) or op(x, y) on arrays of type d against want. */
static void unary(const executor *e, fx_op op, fx_dtype d, int n, const double *x, const double *want, double rel) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(d, n);
    fx_node *a = fx_graph_param(g, &s);
    case_array args[] = {case_values(s, x)};
    case_check(e, fx_op_get(op)->name, g, fx_build(g, op, IN(a), NO_ATTR, 0, NULL), 1, args, want, 0, rel);
}

static void binary(const executor *e, fx_op op, fx_dtype d, int n, const double *x, const double *y,
                   const double *want) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(d, n);
    fx_node *a = fx_graph_param(g, &s), *b = fx_graph_param(g, &s);
    case_array args[] = {case_values(s, x), case_values(s, y)};
    case_check(e, fx_op_get(op)->name, g, fx_build(g, op, IN(a, b), NO_ATTR, 0, NULL), 2, args, want, 0, 0);
}

/* clamp(lo, x, hi) where lo, x or hi may be given as one number. */
static void clamp(const executor *e, int n, const double *lo, const double *x, const double *hi, const double *want) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, n);
    fx_node *a = fx_graph_param(g, &s), *b = fx_graph_param(g, &s), *c = fx_graph_param(g, &s);
    case_array args[] = {case_values(s, lo), case_values(s, x), case_values(s, hi)};
    case_check(e, "clamp", g, OP(g, clamp, IN(a, b, c), NO_ATTR), 3, args, want, 0, 0);
}

/* A reduction of x[i] = i with one NaN gives NaN wherever that is. */
static void reduce_nan(const executor *e, int n, int at) {
    static const double nan[] = {NAN, NAN};
    fx_spec s = FX_SPEC(FX_F32, n);
    case_array args[] = {case_formula(s, 1, INT64_MAX, 0)}, out[2];
    ((float *)args[0].data)[at] = NAN;
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &s);
    fx_node *r[] = {OP(g, reduce, IN(x), ATTR(FX_SYM(kind, max), LIST(dims, 0))),
                    OP(g, reduce, IN(x), ATTR(FX_SYM(kind, min), LIST(dims, 0)))};
    case_run(e, g, 2, r, 1, args, out);
    for (int i = 0; i < 2; i++) {
        case_compare(e, i ? "reduce min" : "reduce max", &out[i], nan, 0, 0);
        case_free(&out[i]);
    }
}

void case_a009_nan_propagates(const executor *e) {
    static const double a[] = {NAN, 1.0, NAN, 0, -0.0, -INFINITY};
    static const double b[] = {1.0, NAN, NAN, -0.0, 0, INFINITY};
    static const double maximum[] = {NAN, NAN, NAN, 0, 0, INFINITY};
    static const double minimum[] = {NAN, NAN, NAN, -0.0, -0.0, -INFINITY};
    static const double relu[] = {NAN, 1.0, NAN, 0, 0, 0};
    static const double zero[6] = {0}, one[] = {1, 1, 1, 1, 1, 1}, half[] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    static const double low_nan[] = {NAN, 1, NAN, 0.5, 0.5, 0.5};
    binary(e, FX_OP_max, FX_F32, 6, a, b, maximum);
    binary(e, FX_OP_min, FX_F32, 6, a, b, minimum);
    binary(e, FX_OP_max, FX_F32, 6, a, zero, relu);
    clamp(e, 6, zero, a, one, relu);
    clamp(e, 6, a, half, one, low_nan);
    for (int at = 0; at < 67; at++)
        reduce_nan(e, 67, at);
    reduce_nan(e, 1, 0);
    reduce_nan(e, 33, 32);
    reduce_nan(e, 257, 256);
    reduce_nan(e, 1025, 1024);
}

/* NumPy's floor_divide and floor_mod out of the truncating ones. */
static void floor_forms(const executor *e, int n, const double *x, const double *y, const double *quotient,
                        const double *remainder) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_S32, n);
    fx_node *a = fx_graph_param(g, &s), *b = fx_graph_param(g, &s);
    fx_node *q = OP(g, div, IN(a, b), NO_ATTR), *r = OP(g, rem, IN(a, b), NO_ATTR);
    fx_node *zero = OP(g, broadcast_in_dim, IN(case_const(g, FX_S32, 0)), ATTR(LIST(shape, n), EMPTY(dims)));
    fx_node *one = OP(g, broadcast_in_dim, IN(case_const(g, FX_S32, 1)), ATTR(LIST(shape, n), EMPTY(dims)));
    fx_node *apart = OP(g, ne, IN(OP(g, lt, IN(r, zero), NO_ATTR), OP(g, lt, IN(b, zero), NO_ATTR)), NO_ATTR);
    fx_node *fix = OP(g, and, IN(apart, OP(g, ne, IN(r, zero), NO_ATTR)), NO_ATTR);
    fx_node *results[] = {OP(g, select, IN(fix, OP(g, sub, IN(q, one), NO_ATTR), q), NO_ATTR),
                          OP(g, select, IN(fix, OP(g, add, IN(r, b), NO_ATTR), r), NO_ATTR)};
    case_array args[] = {case_values(s, x), case_values(s, y)}, out[2];
    case_run(e, g, 2, results, 2, args, out);
    case_compare(e, "floor_divide", &out[0], quotient, 0, 0);
    case_compare(e, "floor_mod", &out[1], remainder, 0, 0);
    case_free(&out[0]);
    case_free(&out[1]);
}

void case_a013_integer_division(const executor *e) {
    static const double a[] = {7, -7, 7, -7, 1, -2147483648.0, -2147483648.0, 2147483647, 0, -6};
    static const double b[] = {2, 2, -2, -2, -2147483648.0, 2097152, 3, -1, 5, -2147483648.0};
    static const double divide[] = {3, -3, -3, 3, 0, -1024, -715827882, -2147483647, 0, 0};
    static const double remainder[] = {1, -1, 1, -1, 1, 0, -2, 0, 0, -6};
    static const double floor_divide[] = {3, -4, -4, 3, -1, -1024, -715827883, -2147483647, 0, 0};
    static const double floor_mod[] = {1, 1, -1, -1, -2147483647, 0, 1, 0, 0, -6};
    static const double x[] = {-2147483648.0, 5, -5, 5, -2147483648.0}, y[] = {-1, 0, 0, 0, -1};
    static const double quotient[] = {-2147483648.0, -1, -1, -1, -2147483648.0}, rest[] = {0, 5, -5, 5, 0};
    static const double ux[] = {4294967295.0, 5}, uy[] = {2, 0}, uq[] = {2147483647, 4294967295.0}, ur[] = {1, 5};
    binary(e, FX_OP_div, FX_S32, 10, a, b, divide);
    binary(e, FX_OP_rem, FX_S32, 10, a, b, remainder);
    floor_forms(e, 10, a, b, floor_divide, floor_mod);
    binary(e, FX_OP_div, FX_S32, 5, x, y, quotient);
    binary(e, FX_OP_rem, FX_S32, 5, x, y, rest);
    binary(e, FX_OP_div, FX_U32, 2, ux, uy, uq);
    binary(e, FX_OP_rem, FX_U32, 2, ux, uy, ur);
}

static void convert(const executor *e, fx_dtype to, int n, const double *x, const double *want) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, n);
    fx_node *a = fx_graph_param(g, &s);
    case_array args[] = {case_values(s, x)};
    case_check(e, fx_dtype_name(to), g, OP(g, convert, IN(a), ATTR(FX_INT(dtype, to))), 1, args, want, 0, 0);
}

void case_a015_float_to_int_saturates(const executor *e) {
    static const double x[] = {NAN,          INFINITY,     -INFINITY,    300.0,         -300.0,        255.9,
                               -0.9,         2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0,
                               4294967296.0, 1e+20,        -1e+20,       0.99999994,    -1.5,          2.5};
    static const double s32[] = {0,
                                 2147483647,
                                 -2147483648.0,
                                 300,
                                 -300,
                                 255,
                                 0,
                                 2147483520,
                                 2147483647,
                                 -2147483648.0,
                                 -2147483648.0,
                                 2147483647,
                                 2147483647,
                                 2147483647,
                                 -2147483648.0,
                                 0,
                                 -1,
                                 2};
    static const double u32[] = {0,
                                 4294967295.0,
                                 0,
                                 300,
                                 0,
                                 255,
                                 0,
                                 2147483520,
                                 2147483648.0,
                                 0,
                                 0,
                                 4294967040.0,
                                 4294967295.0,
                                 4294967295.0,
                                 0,
                                 0,
                                 0,
                                 2};
    static const double s8[] = {0, 127, -128, 127, -128, 127, 0, 127, 127, -128, -128, 127, 127, 127, -128, 0, -1, 2};
    static const double u8[] = {0, 255, 0, 255, 0, 255, 0, 255, 255, 0, 0, 255, 255, 255, 0, 0, 0, 2};
    static const double s16[] = {0,      32767,  -32768, 300,   -300,  255,    0, 32767, 32767,
                                 -32768, -32768, 32767,  32767, 32767, -32768, 0, -1,    2};
    convert(e, FX_S32, 18, x, s32);
    convert(e, FX_U32, 18, x, u32);
    convert(e, FX_S8, 18, x, s8);
    convert(e, FX_U8, 18, x, u8);
    convert(e, FX_S16, 18, x, s16);
}

void case_a019_accurate_near_zero(const executor *e) {
    static const double x[] = {1e-08, -1e-08, 1e-05, -1e-05, 0.001, 0.5, -0.5, 1e-30};
    static const double want_expm1[] = {9.99999998922529e-09,   -9.999999889225291e-09, 1.0000049747542893e-05,
                                        -9.999949747547945e-06, 0.0010005002142533142,  0.6487212707001282,
                                        -0.3934693402873666,    1.0000000031710769e-30};
    static const double want_log1p[] = {9.999999889225291e-09,  -9.99999998922529e-09, 9.999949747714609e-06,
                                        -1.000004974770956e-05, 0.0009995003805335345, 0.4054651081081644,
                                        -0.6931471805599453,    1.0000000031710769e-30};
    static const double want_tanh[] = {9.99999993922529e-09,   -9.99999993922529e-09, 9.999999747045419e-06,
                                       -9.999999747045419e-06, 0.0009999997141642038, 0.46211715726000974,
                                       -0.46211715726000974,   1.0000000031710769e-30};
    static const double want_sin[] = {9.99999993922529e-09,   -9.99999993922529e-09, 9.999999747212084e-06,
                                      -9.999999747212084e-06, 0.0009999998808307693, 0.479425538604203,
                                      -0.479425538604203,     1.0000000031710769e-30};
    static const double want_erf[] = {1.1283791602378209e-08,  -1.1283791602378209e-08, 1.1283791385526445e-05,
                                      -1.1283791385526445e-05, 0.0011283788445643173,   0.5204998778130465,
                                      -0.5204998778130465,     1.1283791706736896e-30};
    static const double expm1_in[] = {-0.0, -200, 89}, expm1_out[] = {-0.0, -1, INFINITY};
    static const double log1p_in[] = {-0.0, -1, -2}, log1p_out[] = {-0.0, -INFINITY, NAN};
    unary(e, FX_OP_expm1, FX_F32, 8, x, want_expm1, 4e-6);
    unary(e, FX_OP_log1p, FX_F32, 8, x, want_log1p, 4e-6);
    unary(e, FX_OP_tanh, FX_F32, 8, x, want_tanh, 4e-6);
    unary(e, FX_OP_sin, FX_F32, 8, x, want_sin, 4e-6);
    unary(e, FX_OP_erf, FX_F32, 8, x, want_erf, 4e-6);
    unary(e, FX_OP_expm1, FX_F32, 3, expm1_in, expm1_out, 0);
    unary(e, FX_OP_log1p, FX_F32, 3, log1p_in, log1p_out, 0);
}

void case_a021_rounding(const executor *e) {
    static const double x[] = {-2.5,
                               -1.5,
                               -0.5,
                               -0.0,
                               0,
                               0.5,
                               1.5,
                               2.5,
                               0.4999999701976776,
                               -0.4999999701976776,
                               8388609.0,
                               -8388609.0,
                               16777216.0,
                               -0.20000000298023224,
                               3.0000000054977558e+38,
                               INFINITY,
                               NAN};
    static const double round_nearest_even[] = {-2.0,      -2.0,       -0.0,       -0.0, 0,
                                                0,         2.0,        2.0,        0,    -0.0,
                                                8388609.0, -8388609.0, 16777216.0, -0.0, 3.0000000054977558e+38,
                                                INFINITY,  NAN};
    static const double round_nearest_afz[] = {-3.0,      -2.0,       -1.0,       -0.0, 0,
                                               1.0,       2.0,        3.0,        0,    -0.0,
                                               8388609.0, -8388609.0, 16777216.0, -0.0, 3.0000000054977558e+38,
                                               INFINITY,  NAN};
    static const double want_floor[] = {-3.0,      -2.0,       -1.0,       -0.0, 0,
                                        0,         1.0,        2.0,        0,    -1.0,
                                        8388609.0, -8388609.0, 16777216.0, -1.0, 3.0000000054977558e+38,
                                        INFINITY,  NAN};
    static const double want_ceil[] = {-2.0,      -1.0,       -0.0,       -0.0, 0,
                                       1.0,       2.0,        3.0,        1.0,  -0.0,
                                       8388609.0, -8388609.0, 16777216.0, -0.0, 3.0000000054977558e+38,
                                       INFINITY,  NAN};
    static const double sign[] = {-1.0, -1.0, -1.0, -0.0, 0,    1.0, 1.0, 1.0, 1.0,
                                  -1.0, 1.0,  -1.0, 1.0,  -1.0, 1.0, 1.0, NAN};
    unary(e, FX_OP_round_even, FX_F32, 17, x, round_nearest_even, 0);
    unary(e, FX_OP_round_afz, FX_F32, 17, x, round_nearest_afz, 0);
    unary(e, FX_OP_floor, FX_F32, 17, x, want_floor, 0);
    unary(e, FX_OP_ceil, FX_F32, 17, x, want_ceil, 0);
    unary(e, FX_OP_sign, FX_F32, 17, x, sign, 0);
}
