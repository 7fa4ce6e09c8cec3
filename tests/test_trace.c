/* test_trace.c - the trace API: errors with file and line, broadcasting, captures in regions, random streams
 * bit for bit as jax.random, and the composed functions at their difficult points. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/trace.h"
#include "fornax/fornax.h"

/* Runs fn on the evaluator. */
static void eval(fx_trace_fn fn, int n_in, const fx_spec *in, const void *const *args, int n_out, void **results) {
    fx_func *f = NULL;
    fx_status st = fx_trace_func(fn, NULL, n_in, in, n_out, &f);
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    ck_assert_msg(fx_graph_verify(fx_func_graph(f)) == FX_OK, "%s", fx_last_error());
    st = fx_graph_eval(fx_func_graph(f), args, results);
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    fx_func_unref(f);
}

static int wrong_line;

static void wrong(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    wrong_line = __LINE__ + 1;
    fx_val bad = fx_add(in[0], in[1]);
    fx_val later = fx_matmul(bad, in[0]);
    out[0] = fx_exp(later);
}

START_TEST(the_first_error_is_reported_with_its_place) {
    fx_spec in[] = {FX_SPEC(FX_F32, 2, 3), FX_SPEC(FX_F32, 4)};
    fx_func *f = (fx_func *)&f;
    char place[64];
    ck_assert_int_eq(fx_trace_func(wrong, NULL, 2, in, 1, &f), FX_INVALID_ARGUMENT);
    ck_assert_ptr_null(f);
    snprintf(place, sizeof place, "test_trace.c:%d", wrong_line);
    ck_assert_msg(strstr(fx_last_error(), place) != NULL, "%s", fx_last_error());
    ck_assert_msg(strstr(fx_last_error(), "f32[2,3]") != NULL, "%s", fx_last_error());
}
END_TEST

static void forgets(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)in, (void)out, (void)user;
}

START_TEST(a_result_that_was_not_set_is_an_error) {
    fx_func *f;
    ck_assert_int_eq(fx_trace_func(forgets, NULL, 0, NULL, 1, &f), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_trace_func(NULL, NULL, 0, NULL, 1, &f), FX_INVALID_ARGUMENT);
}
END_TEST

static void random_all(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)in, (void)user;
    fx_val key = fx_random_key(t, 42);
    out[0] = fx_random_split(key, 3);
    out[1] = fx_random_fold_in(key, fx_scalar(t, FX_U32, 7));
    out[2] = fx_random_bits(key, FX_SPEC(FX_U32, 5));
    out[3] = fx_random_uniform(key, FX_SPEC(FX_F32, 2, 2), 0, 1);
    out[4] = fx_random_normal(key, FX_SPEC(FX_F32, 3));
    out[5] = fx_random_permutation(key, 10);
    out[6] = fx_random_bits(key, FX_SPEC(FX_U8, 4));
    out[7] = fx_random_truncated_normal(key, -2, 2, FX_SPEC(FX_F32, 3));
    out[8] = fx_random_bernoulli(key, 0.3, 1, (int64_t[]){8});
}

/* Values: jax.random in JAX 0.10.2 with its defaults, key(42); tests/golden/make_golden.py makes larger ones. */
START_TEST(random_streams_are_those_of_jax) {
    uint32_t split[6], folded[2], bits[5];
    float uniform[4], normal[3], truncated[3];
    int32_t permutation[10];
    uint8_t bytes[4], coin[8];
    void *out[] = {split, folded, bits, uniform, normal, permutation, bytes, truncated, coin};
    eval(random_all, 0, NULL, NULL, 9, out);
#include "random_jax.inc"
    for (int i = 0; i < 6; i++)
        ck_assert_uint_eq(split[i], want_split[i]);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(folded[i], want_folded[i]);
    for (int i = 0; i < 5; i++)
        ck_assert_uint_eq(bits[i], want_bits[i]);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(bytes[i], want_bytes[i]);
        ck_assert(uniform[i] == want_uniform[i]);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_float_eq_tol(normal[i], want_normal[i], 2e-6f);
        ck_assert_float_eq_tol(truncated[i], want_truncated[i], 2e-6f);
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(permutation[i], want_permutation[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(coin[i], want_coin[i]);
}
END_TEST

static void add_scaled(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t;
    out[0] = fx_add(in[0], fx_mul(in[1], *(fx_val *)user)); /* the scale is captured */
    out[1] = in[0];
}

static void scanning(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val scale = in[1], init = fx_const_like(scale, 0);
    fx_scan(add_scaled, &scale, 1, &init, 1, &in[0], 1, 0, false, out);
}

static void below(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t;
    out[0] = fx_lt(in[0], *(fx_val *)user);
}

static void twice(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add(in[0], in[0]);
}

static void double_until(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val limit = in[1];
    fx_while(below, twice, &limit, 1, &in[0], out);
}

static void negated(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_neg(in[0]);
}

static void choosing(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_cond(fx_gt(in[0], fx_const_like(in[0], 1)), twice, negated, NULL, 1, &in[0], 1, out);
}

START_TEST(regions_capture_values_of_the_enclosing_trace) {
    float xs[] = {1, 2, 3}, scale = 10, sum, ys[3], one = 1, limit = 100, r, two = 2, c1, c2;
    fx_spec in[] = {FX_SPEC(FX_F32, 3), FX_SPEC0(FX_F32)}, scalars[] = {FX_SPEC0(FX_F32), FX_SPEC0(FX_F32)};
    eval(scanning, 2, in, (const void *[]){xs, &scale}, 2, (void *[]){&sum, ys});
    ck_assert_float_eq(sum, 60);
    ck_assert_float_eq(ys[2], 30);
    eval(double_until, 2, scalars, (const void *[]){&one, &limit}, 1, (void *[]){&r});
    ck_assert_float_eq(r, 128);
    eval(choosing, 1, scalars, (const void *[]){&one}, 1, (void *[]){&c1});
    eval(choosing, 1, scalars, (const void *[]){&two}, 1, (void *[]){&c2});
    ck_assert_float_eq(c1, -1);
    ck_assert_float_eq(c2, 4);
}
END_TEST

static void composed(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_relu(in[0]);
    out[1] = fx_gelu(in[0]);
    out[2] = fx_gelu_tanh(in[0]);
    out[3] = fx_softplus(in[0]);
    out[4] = fx_silu(in[0]);
    out[5] = fx_log_sigmoid(in[0]);
}

START_TEST(composed_functions_saturate_and_keep_nan) {
    float x[] = {-INFINITY, -3e38f, -1, -0.0f, 2, 3e38f, INFINITY, NAN}, y[6][8];
    fx_spec in = FX_SPEC(FX_F32, 8);
    eval(composed, 1, &in, (const void *[]){x}, 6, (void *[]){y[0], y[1], y[2], y[3], y[4], y[5]});
    for (int f = 0; f < 6; f++) {
        ck_assert(isnan(y[f][7]));
        for (int i = 0; i < 7; i++)
            ck_assert_msg(!isnan(y[f][i]), "function %d at %g", f, (double)x[i]);
        if (f < 5) {
            ck_assert_float_eq(y[f][0], 0);
            ck_assert_float_eq(y[f][6], INFINITY);
            ck_assert(y[f][5] == x[5]);
        }
    }
    ck_assert_float_eq_tol(y[1][4], 1.9544997f, 1e-6f);
    ck_assert_float_eq_tol(y[2][4], 1.9545977f, 1e-6f);
    ck_assert_float_eq_tol(y[3][4], 2.1269281f, 1e-6f);
}
END_TEST

int main(void) {
    Suite *s = suite_create("trace");
    TCase *c = tcase_create("trace");
    suite_add_tcase(s, c);
    tcase_add_test(c, the_first_error_is_reported_with_its_place);
    tcase_add_test(c, a_result_that_was_not_set_is_an_error);
    tcase_add_test(c, random_streams_are_those_of_jax);
    tcase_add_test(c, regions_capture_values_of_the_enclosing_trace);
    tcase_add_test(c, composed_functions_saturate_and_keep_nan);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
