/* test_math.c - the elementary functions of generated kernels, compiled as C, against libm in a wider type: worst
 * error in ulp over dense samples, C99's special values, and the GLSL texts through a GLSL compiler when one is
 * there. MATH_STRIDE=1 in the environment samples every f32. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/kernel/mathlib.h"
#include "core/kernel/mathlib_c.h"

static float f32_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static double f64_of(uint64_t u) {
    double f;
    memcpy(&f, &u, 8);
    return f;
}

/* Error of `got` in ulp of the f32 (mant 24) or f64 (mant 53) grid at `want`; infinities, NaN and signs must agree. */
static double ulps_above(long double got, long double want, int mant, double least) {
    int min_exp = mant == 24 ? -125 : -1021, max_exp = mant == 24 ? 128 : 1024, e;
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isnan(got))
        return INFINITY;
    if (fabsl(want) >= ldexpl(1, max_exp) - ldexpl(1, max_exp - mant - 1))
        return isinf(got) && !signbit(got) == !signbit(want)
                   ? 0
                   : (fabsl(got) >= ldexpl(1 - ldexpl(1, -mant), max_exp) ? 1 : INFINITY);
    if (isinf(got))
        return fabsl(want) > ldexpl(1 - ldexpl(1, 2 - mant), max_exp) ? 1 : INFINITY;
    if (want == 0)
        return got == 0 && !signbit(got) == !signbit(want) ? 0 : INFINITY;
    frexpl(fabsl(want) < least ? (long double)least : want, &e);
    if (e < min_exp)
        e = min_exp;
    return (double)(fabsl(got - want) / ldexpl(1, e - mant));
}

static double ulps(long double got, long double want, int mant) {
    return ulps_above(got, want, mant, 0);
}

/* Independent references that libm lacks. */
static long double ref_digamma(long double x) {
    if (x <= 0 && x == floorl(x))
        return NAN;
    if (x < 0)
        return ref_digamma(1 - x) - M_PIl / tanl(M_PIl * (x - roundl(x)));
    long double s = 0;
    for (; x < 40; x += 1)
        s -= 1 / x;
    long double w = 1 / (x * x);
    return s + logl(x) - 0.5L / x -
           w * (1 / 12.0L -
                w * (1 / 120.0L - w * (1 / 252.0L - w * (1 / 240.0L - w * (1 / 132.0L - w * (691 / 32760.0L))))));
}

static long double ref_erf_inv(long double x) {
    if (fabsl(x) > 1)
        return NAN;
    if (fabsl(x) == 1)
        return x * (long double)INFINITY;
    if (fabsl(x) < 1e-12L)
        return x * 0.886226925452758013649083741670572591L;
    long double a = fabsl(x), w = -logl((1 - a) * (1 + a)), y = sqrtl(w) * 0.9L;
    if (a < 0.5L)
        y = a * 0.9L;
    for (int i = 0; i < 60; i++) {
        long double e = a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y);
        long double d = e / (1.12837916709551257390L * expl(-y * y));
        y -= d / (1 + y * d);
        if (fabsl(d) < 1e-19L * y)
            break;
    }
    return copysignl(y, x);
}

static long double ref_logistic(long double x) {
    return 1 / (1 + expl(-x));
}
static long double ref_rsqrt(long double x) {
    return 1 / sqrtl(x);
}
static long double ref_lgamma(long double x) {
    return lgammal(x);
}

static long double ref_round_even(long double x) {
    return nearbyintl(x);
}
static long double ref_fsign(long double x) {
    return x > 0 ? 1 : (x < 0 ? -1 : x);
}

/* least: errors are measured in ulp of this value where the result is smaller (functions with zeros between). */
typedef struct {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    long double (*ref)(long double);
    double least, least_negative; /* for x >= 0 and x < 0 */
} unary_row;

#define ROW(name, ref, ...) \
    { #name, fx_##name##_f32, fx_##name##_f64, ref, __VA_ARGS__ }
static const unary_row unary[] = {
    ROW(exp, expl, 0, 0),
    ROW(exp2, exp2l, 0, 0),
    ROW(expm1, expm1l, 0, 0),
    ROW(log, logl, 0, 0),
    ROW(log2, log2l, 0, 0),
    ROW(log1p, log1pl, 0, 0),
    ROW(logistic, ref_logistic, 0, 0),
    ROW(tanh, tanhl, 0, 0),
    ROW(erf, erfl, 0, 0),
    ROW(erf_inv, ref_erf_inv, 0, 0),
    ROW(lgamma, ref_lgamma, 0.5, 16),
    ROW(digamma, ref_digamma, 1, 16),
    ROW(sin, sinl, 0, 0),
    ROW(cos, cosl, 0, 0),
    ROW(tan, tanl, 0, 0),
    ROW(cbrt, cbrtl, 0, 0),
    ROW(rsqrt, ref_rsqrt, 0, 0),
    ROW(sqrt, sqrtl, 0, 0),
    ROW(round_even, ref_round_even, 0, 0),
    ROW(round_afz, roundl, 0, 0),
    ROW(fsign, ref_fsign, 0, 0),
};
#undef ROW
enum { N_UNARY = sizeof unary / sizeof unary[0] };

/* Limits, values near 0 where results vanish, saturation, ties of rounding, neighbours of 1. */
static const double special[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    INFINITY,
    -INFINITY,
    NAN,
    1e-45,
    -1e-45,
    1e-40,
    -1e-40,
    1.1754943508e-38,
    3.4028234664e38,
    -3.4028234664e38,
    3e38,
    -3e38,
    8388607.5,
    8388609.0,
    -8388609.0,
    16777215.0,
    16777216.0,
    -16777217.0,
    4294967295.0,
    1e30,
    -1e30,
    0.999999940395,
    1.00000011921,
    7.0,
    0.1,
    1e-20,
    1e-8,
    -1e-8,
    1e-5,
    -1e-5,
    1e-3,
    1e-30,
    -104.0,
    -90.0,
    -45.0,
    45.0,
    89.0,
    90.0,
    1e4,
    -1e4,
    -200.0,
    0.4999999701976776,
    -0.4999999701976776,
    -0.2,
    1e-10,
    4503599627370497.5,
    9007199254740991.0,
    /* close to multiples of pi/2 */
    3777911.25,
    1415127810.0,
    16367173.0 * 4722366482869645213696.0,
    1.5707963267948966,
};
enum { N_SPECIAL = sizeof special / sizeof special[0] };

START_TEST(f32_functions_stay_within_their_stated_error) {
    const unary_row *r = &unary[_i];
    const char *env = getenv("MATH_STRIDE");
    uint32_t stride = env ? (uint32_t)strtoul(env, NULL, 10) : 4999;
    const fx_math_fn *fn = fx_math_find(r->name, FX_F32);
    ck_assert_ptr_nonnull(fn);
    double worst = 0;
    float at = 0;
    for (uint64_t k = 0; k < N_SPECIAL + (UINT64_C(1) << 32) / stride; k++) {
        float x = k < N_SPECIAL ? (float)special[k] : f32_of((uint32_t)((k - N_SPECIAL) * stride));
        float y = r->f32(x);
        long double want = r->ref(x);
        double e = fn->max_ulp == 0 ? (isnan(want) ? !isnan(y) : (float)want != y || !signbit(want) != !signbit(y))
                                    : ulps_above(y, want, 24, x < 0 ? r->least_negative : r->least);
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    printf("%-10s f32 %8.3f ulp at %.9g (%a), stated %g\n", r->name, worst, (double)at, (double)at, fn->max_ulp);
    fflush(stdout);
    ck_assert_msg(worst <= fn->max_ulp, "%s f32: %g ulp at %.9g, got %.9g", r->name, worst, (double)at,
                  (double)r->f32(at));
}
END_TEST

typedef struct {
    const char *name;
    float (*f32)(float, float);
    double (*f64)(double, double);
    long double (*ref)(long double, long double);
} binary_row;

static long double ref_div(long double x, long double y) {
    return x / y;
}

#define ROW(name, ref) \
    { #name, fx_##name##_f32, fx_##name##_f64, ref }
static const binary_row binary[] = {
    ROW(pow, powl),
    ROW(atan2, atan2l),
    ROW(frem, fmodl),
    ROW(fdiv, ref_div),
};
#undef ROW
enum { N_BINARY = sizeof binary / sizeof binary[0] };

static uint64_t random_state = 88172645463325252u;
static uint64_t random_bits(void) { /* xorshift64 */
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}

/* The k-th pair of operands: all pairs of special values, then random ones of several spreads. */
static void f32_pair(int k, float *x, float *y) {
    if (k < N_SPECIAL * N_SPECIAL) {
        *x = (float)special[k / N_SPECIAL];
        *y = (float)special[k % N_SPECIAL];
        return;
    }
    uint64_t b = random_bits();
    uint32_t u = (uint32_t)b, v = (uint32_t)(b >> 32);
    if (k % 3 == 1) { /* moderate sizes */
        u = (u & 0x87ffffffu) + 0x3c000000u;
        v = (v & 0x87ffffffu) + 0x3c000000u;
    } else if (k % 3 == 2) { /* near one another; bases near 1 */
        u = (u & 0x00ffffffu) + 0x3f000000u;
        v = (v & 0x83ffffffu) + 0x42000000u;
    }
    *x = f32_of(u);
    *y = f32_of(v);
}

START_TEST(f32_functions_of_two_stay_within_their_stated_error) {
    const binary_row *r = &binary[_i];
    const fx_math_fn *fn = fx_math_find(r->name, FX_F32);
    ck_assert_ptr_nonnull(fn);
    double worst = 0;
    float ax = 0, ay = 0;
    for (int k = 0; k < 300000; k++) {
        float x, y;
        f32_pair(k, &x, &y);
        float z = r->f32(x, y);
        long double want = r->ref(x, y);
        if (fn->max_ulp == 0)
            want = fn->strict ? (long double)(x / y) : want;
        double e = fn->max_ulp == 0 ? (isnan(want) ? !isnan(z) : (float)want != z || !signbit(want) != !signbit(z))
                                    : ulps(z, want, 24);
        if (!(e <= worst)) {
            worst = e;
            ax = x;
            ay = y;
        }
    }
    printf("%-10s f32 %8.3f ulp at (%.9g, %.9g), stated %g\n", r->name, worst, (double)ax, (double)ay, fn->max_ulp);
    fflush(stdout);
    ck_assert_msg(worst <= fn->max_ulp, "%s f32: %g ulp at (%.9g, %.9g), got %.9g", r->name, worst, (double)ax,
                  (double)ay, (double)r->f32(ax, ay));
}
END_TEST

/* f64 samples: every exponent with random fractions, and the neighbourhoods of small integers and of 1. */
static double f64_sample(int k) {
    if (k < N_SPECIAL)
        return special[k];
    uint64_t u = random_bits();
    if (k % 4 == 1)
        u = (u & 0x80ffffffffffffffu) + 0x3f80000000000000u;
    else if (k % 4 == 2)
        u = (u & 0x807fffffffffffffu) + 0x3fd0000000000000u;
    double x = f64_of(u);
    if (k % 4 == 3)
        x = (double)((int64_t)(u >> 59) - 15) * (1 + ldexp((double)(u & 0xffff) - 32768, -20));
    return x;
}

START_TEST(f64_functions_stay_within_their_stated_error) {
    if (LDBL_MANT_DIG < 64) {
        printf("long double is no wider than double: f64 functions not compared\n");
        return;
    }
    const unary_row *r = &unary[_i];
    const fx_math_fn *fn = fx_math_find(r->name, FX_F64);
    ck_assert_ptr_nonnull(fn);
    double worst = 0, at = 0;
    bool angle = strcmp(r->name, "sin") == 0 || strcmp(r->name, "cos") == 0 || strcmp(r->name, "tan") == 0;
    for (int k = 0; k < 400000; k++) {
        double x = f64_sample(k);
        if (angle && fabs(x) > 1.7e12 && isfinite(x)) /* beyond the range of full relative accuracy */
            continue;
        double y = r->f64(x);
        long double want = r->ref(x);
        double e = fn->max_ulp == 0 ? (isnan(want) ? !isnan(y) : (double)want != y || !signbit(want) != !signbit(y))
                                    : ulps_above(y, want, 53, x < 0 ? r->least_negative : r->least);
        if (fn->strict)
            e = isnan(want) ? !isnan(y) : y != sqrt(x);
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    printf("%-10s f64 %8.3f ulp at %.17g, stated %g\n", r->name, worst, at, fn->max_ulp);
    fflush(stdout);
    ck_assert_msg(worst <= fn->max_ulp, "%s f64: %g ulp at %.17g, got %.17g", r->name, worst, at, r->f64(at));
}
END_TEST

START_TEST(f64_functions_of_two_stay_within_their_stated_error) {
    if (LDBL_MANT_DIG < 64)
        return;
    const binary_row *r = &binary[_i];
    const fx_math_fn *fn = fx_math_find(r->name, FX_F64);
    ck_assert_ptr_nonnull(fn);
    double worst = 0, ax = 0, ay = 0;
    for (int k = 0; k < 300000; k++) {
        double x, y;
        if (k < N_SPECIAL * N_SPECIAL) {
            x = special[k / N_SPECIAL];
            y = special[k % N_SPECIAL];
        } else {
            x = f64_sample(k);
            y = f64_sample(k + (k >> 4));
            if (k % 3 == 0) /* powers of moderate size */
                y = ldexp(y, (int)(random_bits() % 20) - 4);
        }
        double z = r->f64(x, y), e;
        long double want = r->ref(x, y);
        if (fn->strict)
            want = x / y;
        if (isnan(want) || fn->max_ulp > 0)
            e = ulps(z, want, 53);
        else if (fn->strict &&
                 fabsl(want) < (long double)DBL_MIN) /* documented: 1 ulp where the quotient is subnormal */
            e = fabs((double)want - z) > ldexp(1, -1074);
        else
            e = (double)want != z || !signbit(want) != !signbit(z);
        if (!(e <= worst)) {
            worst = e;
            ax = x;
            ay = y;
        }
    }
    printf("%-10s f64 %8.3f ulp at (%.17g, %.17g), stated %g\n", r->name, worst, ax, ay, fn->max_ulp);
    fflush(stdout);
    ck_assert_msg(worst <= fn->max_ulp, "%s f64: %g ulp at (%.17g, %.17g), got %.17g", r->name, worst, ax, ay,
                  r->f64(ax, ay));
}
END_TEST

START_TEST(every_need_names_an_earlier_function) {
    for (int i = 0; fx_math_at(i); i++) {
        const fx_math_fn *fn = fx_math_at(i);
        ck_assert_ptr_eq(fx_math_by_symbol(fn->symbol), fn);
        ck_assert_msg(strstr(fn->text, fn->symbol) != NULL, "%s", fn->symbol);
        for (int n = 0; fn->needs[n]; n++)
            ck_assert_msg(fx_math_by_symbol(fn->needs[n]) && fx_math_by_symbol(fn->needs[n]) < fn, "%s needs %s",
                          fn->symbol, fn->needs[n]);
        /* whatever fx_..._f32( it calls must be itself or be reachable through needs listed */
        for (int j = 0; fx_math_at(j); j++) {
            const char *other = fx_math_at(j)->symbol, *p = fn->text;
            size_t len = strlen(other);
            bool calls = false, listed = strcmp(other, fn->symbol) == 0;
            while (!calls && (p = strstr(p, other))) {
                calls = p[len] == '(';
                p += len;
            }
            for (int n = 0; fn->needs[n]; n++)
                listed = listed || strcmp(fn->needs[n], other) == 0;
            ck_assert_msg(!calls || listed, "%s calls %s, which its needs don't list", fn->symbol, other);
        }
    }
    ck_assert_ptr_null(fx_math_find("", FX_F32));
    ck_assert_ptr_null(fx_math_find("exp", FX_S32));
}
END_TEST

/* Writes a shader that calls every function and runs glslangValidator on it. */
START_TEST(glsl_texts_compile) {
    if (system("command -v glslangValidator >/dev/null 2>&1") != 0) {
        printf("glslangValidator is absent: GLSL texts not compiled\n");
        return;
    }
    char path[] = "/tmp/fx_math_XXXXXX", cmd[128];
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    FILE *f = fdopen(fd, "w");
    fprintf(f,
            "#version 450\nlayout(local_size_x = 64) in;\nlayout(std430, binding = 0) buffer A { float a[]; };\n"
            "layout(std430, binding = 1) buffer B { double b[]; };\n%s",
            fx_math_prelude_glsl(true));
    for (int i = 0; fx_math_at(i); i++)
        fprintf(f, "%s\n", fx_math_at(i)->glsl);
    fprintf(f, "void main() { uint i = gl_GlobalInvocationID.x; float x = a[i]; double y = b[i];\n");
    for (int i = 0; fx_math_at(i); i++) {
        const fx_math_fn *fn = fx_math_at(i);
        const char *t = fn->dtype == FX_F32 ? "float" : "double", *v = fn->dtype == FX_F32 ? "x" : "y";
        if (fn->name[0])
            fprintf(f, "%s[i + %d] = %s(%s(%s%s%s));\n", fn->dtype == FX_F32 ? "a" : "b", i, t, fn->symbol, v,
                    fn->arity == 2 ? ", " : "", fn->arity == 2 ? v : "");
    }
    fprintf(f, "}\n");
    fclose(f);
    snprintf(cmd, sizeof cmd, "glslangValidator -V -S comp -o /dev/null %s", path);
    int rc = system(cmd);
    unlink(path);
    ck_assert_int_eq(rc, 0);
}
END_TEST

/* The C texts as strings, as a backend will hand them to a compiler. */
START_TEST(c_texts_compile) {
    if (system("command -v cc >/dev/null 2>&1") != 0) {
        printf("cc is absent: C texts not compiled\n");
        return;
    }
    FILE *f = popen("cc -std=c11 -Wall -Werror -Wno-unused-function -fsyntax-only -x c -", "w");
    ck_assert_ptr_nonnull(f);
    fputs(fx_math_prelude_c(), f);
    for (int i = 0; fx_math_at(i); i++)
        fprintf(f, "static inline %s\n", fx_math_at(i)->text);
    ck_assert_int_eq(pclose(f), 0);
}
END_TEST

int main(void) {
    Suite *s = suite_create("math");
    TCase *t = tcase_create("math");
    tcase_set_timeout(t, 900);
    tcase_add_loop_test(t, f32_functions_stay_within_their_stated_error, 0, N_UNARY);
    tcase_add_loop_test(t, f32_functions_of_two_stay_within_their_stated_error, 0, N_BINARY);
    tcase_add_loop_test(t, f64_functions_stay_within_their_stated_error, 0, N_UNARY);
    tcase_add_loop_test(t, f64_functions_of_two_stay_within_their_stated_error, 0, N_BINARY);
    tcase_add_test(t, every_need_names_an_earlier_function);
    tcase_add_test(t, c_texts_compile);
    tcase_add_test(t, glsl_texts_compile);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
