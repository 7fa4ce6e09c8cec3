/* case_memory.c - memory and launches: updates in place, many workgroups, kernels beyond a device's limits, long
 * chains of small dispatches. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define AXES(...) ((const int[]){__VA_ARGS__})

/* x with the update written at `at` of its first axis. */
static fx_val put(fx_val x, fx_val update, int64_t at) {
    fx_val zero = fx_scalar(fx_val_trace(x), FX_S32, 0),
           start[] = {fx_scalar(fx_val_trace(x), FX_S32, (double)at), zero};
    return fx_dynamic_update_slice(x, update, start);
}

/* ---- A-027 ---- */

/* fn of one iota, whose memory the run may take; compared with want, or with the formula ((a*i) mod m) + b. */
static void in_place(const executor *e, const char *what, fx_trace_fn fn, fx_spec s, const double *want) {
    static const int first[] = {0};
    case_array out[2];
    case_call_donating(e, TRACE(fn, 1, s), 1, first, ARGS(case_formula(s, 1, INT64_MAX, 0)), out);
    case_compare(e, what, &out[0], want, 0, 0);
    case_free(&out[0]);
    case_call(e, TRACE(fn, 1, s), ARGS(case_formula(s, 1, INT64_MAX, 0)), out);
    case_compare(e, what, &out[0], want, 0, 0);
    case_free(&out[0]);
}

FN(shift_up) {
    UNUSED;
    fx_val b = fx_add_c(in[0], 1);
    out[0] = fx_reshape(put(b, fx_slice_axis(b, 0, 0, 3), 1), 3, DIMS(1, 4, 1));
}
FN(shift_down) {
    UNUSED;
    fx_val b = fx_add_c(in[0], 1);
    out[0] = put(b, fx_slice_axis(b, 0, 1, 4), 0);
}
FN(shift_all) { /* every row but the last one, one further */
    UNUSED;
    out[0] = put(in[0], fx_slice_axis(in[0], 0, 0, fx_dim(in[0], 0) - 1), 1);
}
FN(swap_halves) {
    UNUSED;
    fx_val halves[] = {fx_slice_axis(in[0], 0, 500, 1000), fx_slice_axis(in[0], 0, 0, 500)};
    out[0] = put(in[0], fx_concatenate(2, halves, 0), 0);
}
FN(add_reverse) {
    UNUSED;
    out[0] = fx_add(in[0], fx_reverse(in[0], 1, AXES(0)));
}
FN(double_next) {
    UNUSED;
    fx_val x = in[0], i = in[1];
    fx_val next = fx_mul_c(fx_dynamic_slice(x, &i, DIMS(1)), 2), at = fx_add_c(i, 1);
    out[0] = fx_dynamic_update_slice(x, next, &at);
    out[1] = at;
}
FN(ten_doublings) {
    UNUSED;
    fx_val carry[] = {in[0], fx_scalar(t, FX_S32, 0)}, last[2];
    fx_scan(double_next, NULL, 2, carry, 0, NULL, 0, 10, false, last);
    out[0] = last[0];
}

void case_a027_updates_keep_value_semantics(const executor *e) {
    static const int first[] = {0};
    double want[4097];
    in_place(e, "up", shift_up, FX_SPEC(FX_F32, 4), WANT(1, 1, 2, 3));
    in_place(e, "down", shift_down, FX_SPEC(FX_F32, 4), WANT(2, 3, 4, 4));
    for (int i = 0; i < 128; i++)
        want[i] = i < 16 ? i : i - 16;
    in_place(e, "rows", shift_all, FX_SPEC(FX_S32, 8, 16), want);
    for (int i = 0; i < 4097; i++)
        want[i] = i ? i - 1 : 0;
    in_place(e, "across workgroups", shift_all, FX_SPEC(FX_S32, 4097), want);
    for (int i = 0; i < 1000; i++)
        want[i] = (i + 500) % 1000;
    in_place(e, "halves", swap_halves, FX_SPEC(FX_S32, 1000), want);
    for (int i = 0; i < 1025; i++)
        want[i] = 1024;
    in_place(e, "reverse", add_reverse, FX_SPEC(FX_F32, 1025), want);
    fx_spec s = FX_SPEC(FX_S32, 11);
    for (int i = 0; i < 11; i++)
        want[i] = 1 << i;
    case_array out;
    case_call_donating(e, TRACE(ten_doublings, 1, s), 1, first, ARGS(VALUES(s, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), &out);
    case_compare(e, "loop", &out, want, 0, 0);
    case_free(&out);
}

/* ---- A-039 ---- */

enum { MANY = 70001 };

FN(affine) {
    UNUSED;
    out[0] = fx_add_c(fx_mul_c(in[0], 2), 1);
}
FN(sums_of_long) {
    UNUSED;
    fx_val wide = fx_transpose(in[0], NULL);
    out[0] = fx_reduce_sum(in[0], 1, AXES(1), false);
    out[1] = fx_reduce_sum(in[0], 1, AXES(0), false);
    out[2] = fx_reduce_sum(fx_add_c(wide, 0), 1, AXES(1), false);
    out[3] = wide;
}
FN(running_sums) {
    UNUSED;
    out[0] = fx_cumulative(in[0], 0, FX_CUMSUM, false);
    out[1] = fx_cumulative(in[0], 1, FX_CUMSUM, false);
}
FN(many_products) {
    UNUSED;
    out[0] = fx_matmul(in[0], in[1]);
}
FN(convolve_one) {
    UNUSED;
    out[0] = fx_convolution(in[0], in[1], &(fx_conv_dims){0});
}
FN(take_rows) {
    UNUSED;
    out[0] = fx_take(in[0], in[1], 0);
}

static void many_elements(const executor *e) {
    enum { N = 16777217 };
    fx_spec s = FX_SPEC(FX_F32, N);
    case_array out;
    case_call(e, TRACE(affine, 1, s), ARGS(case_formula(s, 1, 1024, 0)), &out);
    double sum = 0;
    const float *y = out.data;
    for (int i = 0; i < N; i++)
        sum += (double)y[i];
    ck_assert_msg(y[0] == 1 && y[16776959] == 1535 && y[16776960] == 1537 && y[N - 1] == 1 && sum == 17179869185.0,
                  "%s: 2x+1: %g %g %g %g, sum %.17g", e->name, (double)y[0], (double)y[16776959], (double)y[16776960],
                  (double)y[N - 1], sum);
    case_free(&out);
}

static void check_last(const executor *e, const char *what, const case_array *got, double (*want)(int64_t)) {
    int64_t n = fx_spec_count(&got->spec);
    for (int64_t i = 0; i < n; i += i < n - 5000 ? 97 : 1)
        ck_assert_msg(case_get(got, i) == want(i), "%s: %s: element %lld: got %g, want %g", e->name, what, (long long)i,
                      case_get(got, i), want(i));
}

static double row_sum(int64_t i) {
    return (double)(3 * (i % 1000) + 3);
}
static double transposed(int64_t i) {
    return (double)(i % MANY % 1000 + i / MANY);
}
static double row_number(int64_t i) {
    return (double)(i / MANY + 1);
}
static double place(int64_t i) {
    return (double)(i % MANY + 1);
}
static double product_at(int64_t b) {
    return (double)(2 * (b % 7) + b % 5);
}
static double tripled(int64_t i) {
    return (double)(3 * (i % 1000));
}
static double looked_up(int64_t i) {
    return (double)(i % 10 + 100);
}

void case_a039_many_workgroups(const executor *e) {
    static const double columns[] = {34965000, 35035001, 35105002};
    many_elements(e);
    fx_spec s = FX_SPEC(FX_S32, MANY, 3), ones = FX_SPEC(FX_F32, 2, MANY);
    case_array out[4], x = case_full(s, 0), a, b;
    for (int i = 0; i < 3 * MANY; i++)
        ((int32_t *)x.data)[i] = i / 3 % 1000 + i % 3;
    case_call(e, TRACE(sums_of_long, 4, s), &x, out);
    check_last(e, "row sums", &out[0], row_sum);
    case_compare(e, "column sums", &out[1], columns, 0, 0);
    case_compare(e, "row sums of the transpose", &out[2], columns, 0, 0);
    check_last(e, "transpose", &out[3], transposed);
    case_free_all(4, out);

    case_call(e, TRACE(running_sums, 2, ones), ARGS(case_full(ones, 1)), out);
    check_last(e, "running sum of axis 0", &out[0], row_number);
    check_last(e, "running sum of axis 1", &out[1], place);
    case_free_all(2, out);

    fx_spec as = FX_SPEC(FX_F32, MANY - 1, 1, 2), bs = FX_SPEC(FX_F32, MANY - 1, 2, 1);
    a = case_full(as, 1), b = case_full(bs, 2);
    for (int i = 0; i < MANY - 1; i++) {
        ((float *)a.data)[2 * i] = (float)(i % 7);
        ((float *)b.data)[2 * i + 1] = (float)(i % 5);
    }
    case_call(e, TRACE(many_products, 1, as, bs), ARGS(a, b), out);
    check_last(e, "products", &out[0], product_at);
    case_free(&out[0]);

    fx_spec line = FX_SPEC(FX_F32, 1, 1, 1, MANY), one = FX_SPEC(FX_F32, 1, 1, 1, 1);
    case_call(e, TRACE(convolve_one, 1, line, one), ARGS(case_formula(line, 1, 1000, 0), case_full(one, 3)), out);
    check_last(e, "convolution", &out[0], tripled);
    case_free(&out[0]);

    fx_spec table = FX_SPEC(FX_F32, 10, 1), index = FX_SPEC(FX_S32, MANY);
    case_call(e, TRACE(take_rows, 1, table, index),
              ARGS(case_formula(table, 1, 10, 100), case_formula(index, 1, 10, 0)), out);
    check_last(e, "gather", &out[0], looked_up);
    case_free(&out[0]);
}

/* ---- A-047 ---- */

FN(sum_of_forty) {
    UNUSED;
    out[0] = in[0];
    for (int k = 1; k < 40; k++)
        out[0] = fx_add(out[0], fx_mul_c(in[k], k + 1));
}
FN(twenty_results) {
    UNUSED;
    for (int k = 0; k < 20; k++)
        out[k] = fx_add_c(in[0], k);
}
FN(join_hundred) {
    UNUSED;
    out[0] = fx_concatenate(100, in, 0);
}
enum { UPDATED = 30 };
FN(update_many) { /* parameters, gradients, step and rate */
    UNUSED;
    fx_optimizer o = FX_OPTIMIZER_INIT;
    fx_optimizer_update(&o, UPDATED, in, in + UPDATED, NULL, NULL, in[2 * UPDATED], in[2 * UPDATED + 1], out, NULL);
}
FN(deep) {
    UNUSED;
    out[0] = in[0];
    for (int i = 0; i < 250; i++)
        out[0] = fx_mul(fx_add(out[0], in[1]), in[1]);
}
FN(rank_seven) {
    UNUSED;
    fx_val y = fx_transpose(in[0], AXES(6, 2, 4, 0, 5, 1, 3));
    out[0] = fx_slice(y, DIMS(0, 1, 0, 0, 0, 0, 0), DIMS(2, 3, 3, 2, 3, 2, 3), DIMS(1, 1, 2, 1, 2, 1, 2));
}
FN(long_softmax) {
    UNUSED;
    out[0] = fx_softmax(in[0], -1);
}

static void optimizer_of_many(const executor *e) {
    enum { STEP = 2 * UPDATED, RATE };
    fx_spec in[RATE + 1];
    case_array args[RATE + 1], out[UPDATED];
    for (int i = 0; i < UPDATED; i++) {
        in[i] = in[UPDATED + i] = FX_SPEC(FX_F32, 14 * i + 1);
        args[i] = case_formula(in[i], 3, 17, i);
        args[UPDATED + i] = case_formula(in[i], 5, 13, -6);
    }
    in[STEP] = FX_SPEC0(FX_S32), in[RATE] = FX_SPEC0(FX_F32);
    args[STEP] = case_full(in[STEP], 0), args[RATE] = case_full(in[RATE], 0.5);
    case_call(e, case_trace(update_many, RATE + 1, in, UPDATED), args, out);
    for (int i = 0; i < UPDATED; i++) {
        double want[14 * UPDATED];
        for (int j = 0; j < 14 * i + 1; j++)
            want[j] = 3 * j % 17 + i - 0.5 * (5 * j % 13 - 6);
        case_compare(e, "update of many arrays", &out[i], want, 0, 0);
    }
    case_free_all(UPDATED, out);
}

void case_a047_limits_of_a_kernel(const executor *e) {
    fx_spec in[100], s = FX_SPEC(FX_F32, 1000);
    case_array args[100], out[20];
    double *want = calloc(20000, sizeof *want);
    for (int k = 0; k < 40; k++) {
        in[k] = s;
        args[k] = case_full(s, 0);
        for (int i = 0; i < 1000; i++) {
            ((float *)args[k].data)[i] = (float)((i + k) % 17);
            want[i] += (k + 1) * ((i + k) % 17);
        }
    }
    ck_assert(want[0] == 6156 && want[1] == 6109 && want[999] == 6854);
    case_check_func(e, "40 inputs", case_trace(sum_of_forty, 40, in, 1), 0, args, want, 0, 0);
    case_call(e, TRACE(twenty_results, 20, s), ARGS(case_formula(s, 1, 1000, 0)), out);
    for (int k = 0; k < 20; k++) {
        for (int i = 0; i < 1000; i++)
            want[i] = i + k;
        case_compare(e, "20 results", &out[k], want, 0, 0);
    }
    case_free_all(20, out);
    for (int k = 0; k < 100; k++) {
        in[k] = FX_SPEC(FX_S32, 3);
        args[k] = case_formula(in[k], 1, 3, k);
        for (int i = 0; i < 3; i++)
            want[3 * k + i] = k + i;
    }
    case_check_func(e, "100 joined", case_trace(join_hundred, 100, in, 1), 0, args, want, 0, 0);
    optimizer_of_many(e);
    for (int i = 0; i < 1000; i++)
        want[i] = i + 250;
    case_check_func(e, "500 ops", TRACE(deep, 1, s, FX_SPEC0(FX_F32)), 0,
                    ARGS(case_formula(s, 1, 1000, 0), case_full(FX_SPEC0(FX_F32), 1)), want, 0, 0);

    fx_spec seven = FX_SPEC(FX_S32, 2, 2, 3, 3, 3, 3, 2);
    static const int64_t size[] = {2, 2, 2, 2, 2, 2, 2}, from[] = {0, 1, 0, 0, 0, 0, 0}, by[] = {1, 1, 2, 1, 2, 1, 2};
    static const int64_t stride[] = {1, 54, 6, 324, 2, 162, 18}; /* of the operand's axes 6, 2, 4, 0, 5, 1, 3 */
    for (int i = 0; i < 128; i++) {
        want[i] = 0;
        for (int d = 6, rest = i; d >= 0; rest /= (int)size[d], d--)
            want[i] += (double)((from[d] + rest % size[d] * by[d]) * stride[d]);
    }
    case_check_func(e, "rank 7", TRACE(rank_seven, 1, seven), 0, ARGS(case_formula(seven, 1, INT64_MAX, 0)), want, 0,
                    0);

    fx_spec row = FX_SPEC(FX_F32, 2, 10000);
    double sum = 0;
    for (int i = 0; i < 10000; i++)
        sum += exp(i % 7 - 6);
    for (int i = 0; i < 20000; i++)
        want[i] = exp(i % 10000 % 7 - 6) / sum;
    case_array x = case_full(row, 0);
    for (int i = 0; i < 20000; i++)
        ((float *)x.data)[i] = (float)(i % 10000 % 7);
    case_check_func(e, "long softmax", TRACE(long_softmax, 1, row), 0, &x, want, 0, 1e-5);
    free(want);
}

/* ---- A-049 ---- */

static fx_val barrier(fx_val x) {
    fx_val y;
    fx_optimization_barrier(1, &x, &y);
    return y;
}

FN(affine_200_times) {
    UNUSED;
    out[0] = in[0];
    for (int i = 0; i < 200; i++)
        out[0] = barrier(fx_add_c(fx_mul_c(out[0], 5), 3));
}
FN(rotate_100_times) {
    UNUSED;
    fx_val x = in[0];
    for (int i = 0; i < 100; i++)
        x = barrier(fx_concatenate(2, (const fx_val[]){fx_slice_axis(x, 0, 1, 101), fx_slice_axis(x, 0, 0, 1)}, 0));
    out[0] = x;
}
FN(alternate_500_times) {
    UNUSED;
    fx_val a, b = in[0];
    for (int i = 0; i < 500; i++) {
        a = barrier(fx_add_c(b, 1));
        b = barrier(fx_mul_c(a, 1));
    }
    out[0] = b;
}
/* Adds u at i (mod 7), then reads the place back as the next u, 50 times: Fibonacci-like growth that any stale read
 * spoils. */
FN(scatter_and_gather) {
    UNUSED;
    const int64_t zero = 0, one = 1;
    fx_val x = in[0], u = in[1];
    for (int i = 0; i < 50; i++) {
        int32_t at = (i * 3) % 7;
        fx_val index = fx_literal(t, FX_SPEC(FX_S32, 1, 1), &at);
        x = fx_scatter(x, index, u,
                       &(fx_scatter_dims){.n_inserted = 1,
                                          .inserted_window_dims = &zero,
                                          .n_scatter = 1,
                                          .scatter_dims_to_operand_dims = &zero,
                                          .index_vector_dim = 1},
                       FX_SCATTER_ADD);
        x = barrier(x);
        u = fx_gather(x, index,
                      &(fx_gather_dims){.n_collapsed = 1,
                                        .collapsed_slice_dims = &zero,
                                        .n_index_map = 1,
                                        .start_index_map = &zero,
                                        .index_vector_dim = 1},
                      &one);
        u = barrier(fx_rem(fx_add_c(u, 1), fx_const_like(u, 1009)));
    }
    out[0] = x;
}

void case_a049_chains_of_dispatches(const executor *e) {
    static const int sizes[] = {1, 64, 65537};
    double *want = malloc(65537 * sizeof *want);
    for (int k = 0; k < 6; k++) {
        fx_spec s = FX_SPEC(FX_S32, sizes[k / 2]);
        for (int i = 0; i < sizes[k / 2]; i++)
            want[i] = k % 2 ? -1767953841 : 709163273;
        case_check_func(e, "5x+3", TRACE(affine_200_times, 1, s), 0, ARGS(case_full(s, k % 2 ? 7 : 1)), want, 0, 0);
    }
    fx_spec s = FX_SPEC(FX_S32, 101);
    for (int i = 0; i < 101; i++)
        want[i] = (i + 100) % 101;
    case_check_func(e, "rotate", TRACE(rotate_100_times, 1, s), 0, ARGS(case_formula(s, 1, 101, 0)), want, 0, 0);
    s = FX_SPEC(FX_F32, 33);
    for (int i = 0; i < 33; i++)
        want[i] = 500;
    case_check_func(e, "alternate", TRACE(alternate_500_times, 1, s), 0, ARGS(case_full(s, 0)), want, 0, 0);
    fx_spec seven = FX_SPEC(FX_S32, 7), one = FX_SPEC(FX_S32, 1);
    int x[7] = {0}, u = 1;
    for (int i = 0; i < 50; i++) {
        x[i * 3 % 7] += u;
        u = (x[i * 3 % 7] + 1) % 1009;
    }
    for (int i = 0; i < 7; i++)
        want[i] = x[i];
    case_check_func(e, "scatter, gather", TRACE(scatter_and_gather, 1, seven, one), 0,
                    ARGS(case_full(seven, 0), case_full(one, 1)), want, 0, 0);
    free(want);
}
