/* test_runtime.c - arrays, runs, donation, control flow and errors through the public interface, on every
 * device that is usable. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fornax/fornax.h"

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

static fx_context *cx;

static void setup(void) {
    fx_options opt = FX_OPTIONS_INIT;
    opt.cache_dir = "";
    OK(fx_init(&opt, &cx));
}

static void teardown(void) {
    fx_shutdown(cx);
    cx = NULL;
}

#define FOR_EACH_DEVICE(d)                                            \
    for (int i_ = 0; i_ < fx_device_count(cx); i_++)                  \
        for (fx_device *d = fx_device_at(cx, i_); d; d = NULL)

static fx_exec *make(fx_device *d, fx_trace_fn fn, int n_in, const fx_spec *in, int n_out, const fx_compile_options *opt) {
    fx_func *f;
    fx_exec *e;
    OK(fx_trace_func(fn, NULL, n_in, in, n_out, &f));
    OK(fx_compile(f, d, opt, &e));
    fx_func_unref(f);
    return e;
}

static fx_array *array(fx_device *d, fx_spec s, const void *data) {
    fx_array *a;
    OK(fx_array_create(d, s, data, &a));
    return a;
}

START_TEST(arrays_keep_what_is_written_to_them) {
    FOR_EACH_DEVICE(d) {
        uint8_t flags[5] = {1, 0, 1, 1, 0}, back[5];
        float x[3] = {1, 2, 3}, y[3];
        fx_array *a = array(d, FX_SPEC(FX_BOOL, 5), flags), *b = array(d, FX_SPEC(FX_F32, 3), x), *z = array(d, FX_SPEC(FX_F32, 3), NULL);
        OK(fx_array_read(a, back, 5));
        ck_assert_mem_eq(flags, back, 5);
        OK(fx_array_read(z, y, sizeof y));
        ck_assert_float_eq(y[0] + y[1] + y[2], 0);
        OK(fx_array_write(z, x, sizeof x));
        OK(fx_array_read(z, y, sizeof y));
        ck_assert_mem_eq(x, y, sizeof x);
        ck_assert_int_eq(fx_array_read(b, y, 4), FX_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(fx_last_error(), "expected 12"));
        fx_array_unref(a);
        fx_array_unref(b);
        fx_array_unref(z);
        fx_memory_stats m;
        OK(fx_device_memory(d, &m));
        ck_assert_uint_eq(m.in_use, 0);
        ck_assert_uint_gt(m.peak, 0);
    }
}
END_TEST

static void product(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_matmul(fx_matmul(in[0], fx_transpose(in[1], (int[]){1, 0})), in[1]);
}

/* x w^T w. Where operands are packed, 24 columns in panels of 32, 48 deep, take as many bytes as the 64 x 24 elements of
 * x w^T, which must not be put over them. */
START_TEST(a_result_lies_over_nothing_that_is_still_read) {
    enum { M = 64, N = 24, K = 48 };
    static float x[M * K], w[N * K], first[M * N], y[M * K];
    for (int i = 0; i < M * K; i++)
        x[i] = (float)(i % 7 - 3);
    for (int i = 0; i < N * K; i++)
        w[i] = (float)(i % 5 - 2);
    for (int i = 0; i < M * N; i++)
        for (int k = 0; k < K; k++)
            first[i] += x[i / N * K + k] * w[i % N * K + k];
    FOR_EACH_DEVICE(d) {
        const fx_spec specs[] = {FX_SPEC(FX_F32, M, K), FX_SPEC(FX_F32, N, K)};
        fx_exec *e = make(d, product, 2, specs, 1, NULL);
        fx_array *in[] = {array(d, specs[0], x), array(d, specs[1], w)}, *out[1];
        OK(fx_run(e, in, out));
        OK(fx_array_read(out[0], y, sizeof y));
        for (int i = 0; i < M; i++)
            for (int k = 0; k < K; k++) {
                float want = 0;
                for (int n = 0; n < N; n++)
                    want += first[i * N + n] * w[n * K + k];
                ck_assert_msg(y[i * K + k] == want, "%s: element %d, %d: %g, not %g", fx_device_uri(d), i, k,
                              (double)y[i * K + k], (double)want);
            }
        fx_array_unref(out[0]);
        fx_array_unref(in[0]);
        fx_array_unref(in[1]);
        fx_exec_destroy(e);
    }
}
END_TEST

static void update(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add(in[0], in[1]);
    out[1] = fx_reduce_sum(in[0], -1, NULL, false);
}

START_TEST(a_donated_input_becomes_the_result) {
    fx_spec in[] = {FX_SPEC(FX_F32, 1000), FX_SPEC0(FX_F32)};
    static const int donate[] = {0};
    fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
    opt.donate = donate;
    opt.n_donate = 1;
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, update, 2, in, 2, &opt);
        float one = 1, y[1000], sum;
        fx_array *x = array(d, in[0], NULL), *inc = array(d, in[1], &one), *out[2];
        fx_memory_stats before, after;
        for (int i = 0; i < 5; i++) {
            OK(fx_device_memory(d, &before));
            OK(fx_run(e, (fx_array *[]){x, inc}, out));
            OK(fx_array_read(out[1], &sum, sizeof sum));
            ck_assert_float_eq(sum, 1000.0f * (float)i);
            fx_array_unref(out[1]);
            x = out[0];
            OK(fx_device_memory(d, &after));
            ck_assert_uint_eq(before.in_use, after.in_use);
        }
        /* somebody else holds it: it must not change */
        fx_array *kept = fx_array_ref(x);
        OK(fx_run(e, (fx_array *[]){x, inc}, out));
        OK(fx_array_read(kept, y, sizeof y));
        ck_assert_float_eq(y[999], 5);
        OK(fx_array_read(out[0], y, sizeof y));
        ck_assert_float_eq(y[999], 6);
        fx_array_unref(out[0]);
        fx_array_unref(out[1]);
        fx_array_unref(kept);
        fx_array_unref(inc);
        fx_exec_destroy(e);
    }
}
END_TEST

static void sum_and_difference(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add(in[0], in[1]);
    out[1] = fx_sub(in[0], in[1]);
}

/* f(x, x). */
START_TEST(a_donated_input_may_be_passed_twice) {
    const fx_spec in[] = {FX_SPEC(FX_F32, 3), FX_SPEC(FX_F32, 3)};
    static const int donate[] = {0, 1};
    FOR_EACH_DEVICE(d)
        for (int n = 1; n <= 2; n++) {
            fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
            opt.donate = donate;
            opt.n_donate = n;
            fx_exec *e = make(d, sum_and_difference, 2, in, 2, &opt);
            float y[3];
            fx_array *x = array(d, in[0], (float[]){1, 2, 3}), *out[2];
            if (n == 2) { /* donated in two places, one reference to give */
                ck_assert_int_eq(fx_run(e, (fx_array *[]){x, x}, out), FX_INVALID_ARGUMENT);
                ck_assert_ptr_nonnull(strstr(fx_last_error(), "fx_array_ref"));
                fx_array_ref(x);
            }
            OK(fx_run(e, (fx_array *[]){x, x}, out));
            OK(fx_array_read(out[0], y, sizeof y));
            ck_assert(y[0] == 2 && y[1] == 4 && y[2] == 6);
            OK(fx_array_read(out[1], y, sizeof y));
            ck_assert(y[0] == 0 && y[1] == 0 && y[2] == 0);
            fx_array_unref(out[0]);
            fx_array_unref(out[1]);
            fx_exec_destroy(e);
            fx_memory_stats m;
            OK(fx_device_memory(d, &m));
            ck_assert_uint_eq(m.in_use, 0);
        }
}
END_TEST

static void twice_plus_index(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    fx_val y = fx_add(fx_mul_c(in[0], 2), fx_iota(t, fx_spec_of(in[0]), 0));
    out[0] = fx_reduce_sum(y, -1, NULL, false); /* needs an intermediate in the arena */
    out[1] = fx_add(fx_reverse(y, 1, (int[]){0}), out[0]);
}

/* each download sees its own upload, with freed arrays' memory taken again at once and no waiting in between. */
START_TEST(every_download_sees_its_upload) {
    enum { N = 257, ROUNDS = 300 };
    fx_spec in = FX_SPEC(FX_S32, N);
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, twice_plus_index, 1, &in, 2, NULL);
        fx_array *last[2] = {NULL, NULL};
        int32_t x[N], y[N], last_sum = 0;
        for (int32_t k = 0; k < ROUNDS; k++) {
            fx_array *a, *out[2];
            int32_t sum = 0;
            for (int32_t i = 0; i < N; i++) {
                x[i] = k * 31 + i;
                sum += 2 * x[i] + i;
            }
            a = array(d, in, x);
            OK(fx_run(e, &a, out));
            fx_array_unref(a);
            if (last[1]) { /* the results before, once more work is queued behind them */
                OK(fx_array_read(last[1], y, sizeof y));
                ck_assert_int_eq(y[0], last_sum + 2 * ((k - 1) * 31 + N - 1) + N - 1);
                ck_assert_int_eq(y[N - 1], last_sum + 2 * (k - 1) * 31);
            }
            fx_array_unref(last[0]);
            fx_array_unref(last[1]);
            memcpy(last, out, sizeof last);
            last_sum = sum;
            if (k % 3 == 0) {
                OK(fx_array_read(last[0], y, 4));
                ck_assert_int_eq(y[0], sum);
            }
        }
        fx_array_unref(last[0]);
        fx_array_unref(last[1]);
        fx_exec_destroy(e);
    }
}
END_TEST

static void pass_through(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    out[0] = out[1] = in[0];
    out[2] = out[3] = fx_neg(in[0]);
    out[4] = fx_literal(t, FX_SPEC(FX_F32, 2), (float[]){7, 8});
    out[5] = fx_full(t, FX_SPEC(FX_F32, 2), 5);
    out[6] = fx_reshape(out[5], 2, (int64_t[]){1, 2});
}

START_TEST(inputs_constants_and_repeats_may_be_results) {
    fx_spec in = FX_SPEC(FX_F32, 2);
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, pass_through, 1, &in, 7, NULL);
        fx_array *x = array(d, in, (float[]){1, 2}), *out[7];
        OK(fx_run(e, &x, out));
        static const float want[7][2] = {{1, 2}, {1, 2}, {-1, -2}, {-1, -2}, {7, 8}, {5, 5}, {5, 5}};
        for (int i = 0; i < 7; i++) {
            float y[2];
            OK(fx_array_read(out[i], y, sizeof y));
            ck_assert_mem_eq(y, want[i], sizeof y);
            OK(fx_array_write(out[i], (float[]){-9, -9}, sizeof y)); /* results are separate arrays */
            fx_array_unref(out[i]);
        }
        fx_array_unref(x);
        fx_exec_destroy(e);
    }
}
END_TEST

static void accumulate(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add(fx_mul_c(in[0], 0.5), in[1]);
    out[1] = in[0];
}

static void scans(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_scan(accumulate, NULL, 1, &in[1], 1, &in[0], 1, 0, false, out);
    fx_scan(accumulate, NULL, 1, &in[1], 1, &in[0], 1, 0, true, out + 2);
}

START_TEST(scan_carries_and_stacks_in_both_directions) {
    fx_spec in[] = {FX_SPEC(FX_F32, 4, 3), FX_SPEC(FX_F32, 3)}; /* slices of 12 bytes: not aligned */
    float x[12], init[3] = {1, 2, 3};
    for (int i = 0; i < 12; i++)
        x[i] = (float)i;
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, scans, 2, in, 4, NULL);
        fx_array *a[] = {array(d, in[0], x), array(d, in[1], init)}, *out[4];
        for (int again = 0; again < 2; again++) {
            OK(fx_run(e, a, out));
            for (int reverse = 0; reverse < 2; reverse++) {
                float carry[3], ys[12], c[3] = {1, 2, 3};
                OK(fx_array_read(out[2 * reverse], carry, sizeof carry));
                OK(fx_array_read(out[2 * reverse + 1], ys, sizeof ys));
                for (int t = 0; t < 4; t++)
                    for (int k = 0; k < 3; k++) {
                        int row = reverse ? 3 - t : t;
                        ck_assert_float_eq(ys[row * 3 + k], c[k]);
                        c[k] = c[k] * 0.5f + x[row * 3 + k];
                    }
                ck_assert_mem_eq(c, carry, sizeof c);
            }
            for (int i = 0; i < 4; i++)
                fx_array_unref(out[i]);
        }
        fx_array_unref(a[0]);
        fx_array_unref(a[1]);
        fx_exec_destroy(e);
    }
}
END_TEST

static void small(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_lt(fx_reduce_max(in[0], -1, NULL, false), fx_const_like(in[0], 100));
}

static void grow(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_mul_c(in[0], 3);
}

static void shrink(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_mul_c(in[0], 0.5);
}

static void steered(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_while(small, grow, NULL, 1, &in[0], out);
    fx_cond(fx_gt(fx_reduce_sum(in[0], -1, NULL, false), fx_scalar(t, FX_F32, 10)), grow, shrink, NULL, 1, &in[0], 1, out + 1);
}

START_TEST(while_and_cond_follow_values_on_the_device) {
    fx_spec in = FX_SPEC(FX_F32, 2);
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, steered, 1, &in, 2, NULL);
        static const float x[2][2] = {{1, 2}, {200, 3}}, want[2][2][2] = {{{81, 162}, {0.5f, 1}}, {{200, 3}, {600, 9}}};
        for (int i = 0; i < 2; i++) {
            float y[2];
            fx_array *a = array(d, in, x[i]), *out[2];
            OK(fx_run(e, &a, out));
            for (int k = 0; k < 2; k++) {
                OK(fx_array_read(out[k], y, sizeof y));
                ck_assert_mem_eq(y, want[i][k], sizeof y);
                fx_array_unref(out[k]);
            }
            fx_array_unref(a);
        }
        fx_exec_destroy(e);
    }
}
END_TEST

START_TEST(wrong_inputs_are_refused_and_nothing_is_lost) {
    fx_spec in[] = {FX_SPEC(FX_F32, 4), FX_SPEC0(FX_F32)}, other = FX_SPEC(FX_F32, 5);
    FOR_EACH_DEVICE(d) {
        fx_exec *e = make(d, update, 2, in, 2, NULL);
        fx_array *x = array(d, in[0], NULL), *s = array(d, in[1], NULL), *bad = array(d, other, NULL), *out[2];
        ck_assert_int_eq(fx_run(e, (fx_array *[]){bad, s}, out), FX_INVALID_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(fx_last_error(), "expected f32[4]; got f32[5]"));
        ck_assert_int_eq(fx_run(e, (fx_array *[]){x, NULL}, out), FX_INVALID_ARGUMENT);
        OK(fx_run(e, (fx_array *[]){x, s}, out));
        fx_array_unref(out[0]);
        fx_array_unref(out[1]);
        fx_array_unref(x);
        fx_array_unref(s);
        fx_array_unref(bad);
        fx_exec_destroy(e);
    }
    fx_device *none;
    ck_assert_int_eq(fx_device_find(cx, "vulkan:99", &none), FX_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "reference"));
    ck_assert_ptr_null(none);
    fx_array *a;
    ck_assert_int_eq(fx_array_create(fx_default_device(cx), FX_SPEC(FX_F32, -1), NULL, &a), FX_INVALID_ARGUMENT);
}
END_TEST

START_TEST(more_memory_than_there_is_is_an_error_with_figures) {
    FOR_EACH_DEVICE(d) {
        fx_array *a, *small_one;
        if (!strcmp(fx_device_uri(d), "reference"))
            continue;
        ck_assert_int_eq(fx_array_create(d, FX_SPEC(FX_F32, (int64_t)1 << 42), (void *)1, &a), FX_OUT_OF_MEMORY);
        ck_assert_msg(strstr(fx_last_error(), "MiB asked") != NULL, "%s", fx_last_error());
        small_one = array(d, FX_SPEC(FX_F32, 10), NULL);
        fx_array_unref(small_one);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("runtime");
    TCase *c = tcase_create("runtime");
    suite_add_tcase(s, c);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, arrays_keep_what_is_written_to_them);
    tcase_add_test(c, a_result_lies_over_nothing_that_is_still_read);
    tcase_add_test(c, a_donated_input_becomes_the_result);
    tcase_add_test(c, a_donated_input_may_be_passed_twice);
    tcase_add_test(c, every_download_sees_its_upload);
    tcase_add_test(c, inputs_constants_and_repeats_may_be_results);
    tcase_add_test(c, scan_carries_and_stacks_in_both_directions);
    tcase_add_test(c, while_and_cond_follow_values_on_the_device);
    tcase_add_test(c, wrong_inputs_are_refused_and_nothing_is_lost);
    tcase_add_test(c, more_memory_than_there_is_is_an_error_with_figures);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
