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

/* Error of `got` in ulp of the f32 (mant 24) or f64 (mant 53) grid at `want`; infinities, NaN and signs must agree. */
static double ulps(long double got, long double want, int mant) {
    int min_exp = mant == 24 ? -125 : -1021, max_exp = mant == 24 ? 128 : 1024, e;
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    if (isnan(got))
        return INFINITY;
    if (fabsl(want) >= ldexpl(1, max_exp) - ldexpl(1, max_exp - mant - 1))
        return isinf(got) && !signbit(got) == !signbit(want) ? 0 : (fabsl(got) >= ldexpl(1 - ldexpl(1, -mant), max_exp) ? 1 : INFINITY);
    if (isinf(got))
        return fabsl(want) > ldexpl(1 - ldexpl(1, 2 - mant), max_exp) ? 1 : INFINITY;
    if (want == 0)
        return got == 0 && !signbit(got) == !signbit(want) ? 0 : INFINITY;
    frexpl(want, &e);
    if (e < min_exp)
        e = min_exp;
    return (double)(fabsl(got - want) / ldexpl(1, e - mant));
}

static long double ref_logistic(long double x) {
    return 1 / (1 + expl(-x));
}
static long double ref_rsqrt(long double x) {
    return 1 / sqrtl(x);
}
typedef struct {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    long double (*ref)(long double);
    double lo, hi;    /* the sampled range, |x| for symmetric ones */
    double lo64, hi64; /* of f64 where it differs */
} unary_row;

static long double ref_round_even(long double x) {
    return nearbyintl(x);
}
static long double ref_fsign(long double x) {
    return x > 0 ? 1 : (x < 0 ? -1 : x);
}

#define ROW(name, ref) {#name, fx_##name##_f32, fx_##name##_f64, ref, -INFINITY, INFINITY, -INFINITY, INFINITY}
static const unary_row unary[] = {
    {"exp", fx_exp_f32, NULL, expl, -INFINITY, INFINITY, 0, 0},
    {"exp2", fx_exp2_f32, NULL, exp2l, -INFINITY, INFINITY, 0, 0},
    {"expm1", fx_expm1_f32, NULL, expm1l, -INFINITY, INFINITY, 0, 0},
    {"log", fx_log_f32, NULL, logl, -INFINITY, INFINITY, 0, 0},
    {"log2", fx_log2_f32, NULL, log2l, -INFINITY, INFINITY, 0, 0},
    {"log1p", fx_log1p_f32, NULL, log1pl, -INFINITY, INFINITY, 0, 0},
    {"logistic", fx_logistic_f32, NULL, ref_logistic, -INFINITY, INFINITY, 0, 0},
    {"tanh", fx_tanh_f32, NULL, tanhl, -INFINITY, INFINITY, 0, 0},
    {"erf", fx_erf_f32, NULL, erfl, -INFINITY, INFINITY, 0, 0},
    {"rsqrt", fx_rsqrt_f32, NULL, ref_rsqrt, -INFINITY, INFINITY, 0, 0},
    {"sqrt", fx_sqrt_f32, NULL, sqrtl, -INFINITY, INFINITY, 0, 0},
    {"round_even", fx_round_even_f32, NULL, ref_round_even, -INFINITY, INFINITY, 0, 0},
    {"round_afz", fx_round_afz_f32, NULL, roundl, -INFINITY, INFINITY, 0, 0},
    {"fsign", fx_fsign_f32, NULL, ref_fsign, -INFINITY, INFINITY, 0, 0},
};
enum { N_UNARY = sizeof unary / sizeof unary[0] };

START_TEST(f32_functions_stay_within_their_stated_error) {
    const unary_row *r = &unary[_i];
    const char *env = getenv("MATH_STRIDE");
    uint32_t stride = env ? (uint32_t)strtoul(env, NULL, 10) : 997;
    const fx_math_fn *fn = fx_math_find(r->name, FX_F32);
    ck_assert_ptr_nonnull(fn);
    double worst = 0;
    float at = 0;
    for (uint64_t u = 0; u < (UINT64_C(1) << 32); u += stride) {
        float x = f32_of((uint32_t)u);
        if (!isnan(x) && ((double)x < r->lo || (double)x > r->hi))
            continue;
        float y = r->f32(x);
        long double want = r->ref(x);
        double e = fn->max_ulp == 0 ? (isnan(want) ? !isnan(y) : (float)want != y || !signbit(want) != !signbit(y))
                                    : ulps(y, want, 24);
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    printf("%-10s f32 %8.3f ulp at %.9g (%a), stated %g\n", r->name, worst, (double)at, (double)at, fn->max_ulp);
    fflush(stdout);
    ck_assert_msg(worst <= fn->max_ulp, "%s f32: %g ulp at %.9g, got %.9g", r->name, worst, (double)at, (double)r->f32(at));
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
    fprintf(f, "#version 450\nlayout(local_size_x = 64) in;\nlayout(std430, binding = 0) buffer A { float a[]; };\n"
               "layout(std430, binding = 1) buffer B { double b[]; };\n%s", fx_math_prelude_glsl(true));
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

int main(void) {
    Suite *s = suite_create("math");
    TCase *t = tcase_create("math");
    tcase_set_timeout(t, 900);
    tcase_add_loop_test(t, f32_functions_stay_within_their_stated_error, 0, N_UNARY);
    tcase_add_test(t, every_need_names_an_earlier_function);
    tcase_add_test(t, glsl_texts_compile);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
