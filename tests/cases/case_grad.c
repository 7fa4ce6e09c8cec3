/* case_grad.c - derivatives at their hard places: branches, ties, pooling, products with zeros, second derivatives,
 * shared values, integers. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define F32(...) VALUES(FX_SPEC(FX_F32, CASE_COUNT(double, __VA_ARGS__)), __VA_ARGS__)
#define F32_0(v) VALUES(FX_SPEC0(FX_F32), v)

static fx_val total(fx_val x) {
    return fx_reduce_sum(x, -1, NULL, false);
}
static fx_val c(fx_val like, double v) {
    return fx_const_like(like, v);
}

/* ---- B-001 ---- */

FN(safe_sqrt) {
    UNUSED;
    fx_val x = in[0], p = fx_gt(x, c(x, 0));
    out[0] = total(fx_select(p, fx_sqrt(fx_select(p, x, c(x, 1))), x));
}
FN(safe_log) {
    UNUSED;
    fx_val x = in[0], p = fx_gt(x, c(x, 0));
    out[0] = total(fx_select(p, fx_log(fx_select(p, x, c(x, 1))), c(x, 0)));
}
FN(safe_exp) {
    UNUSED;
    fx_val x = in[0], p = fx_lt(x, c(x, 15));
    out[0] = total(fx_select(p, x, fx_exp(fx_exp(fx_select(p, c(x, 1), x)))));
}
FN(single_sqrt) {
    UNUSED;
    out[0] = total(fx_select(fx_gt(in[0], c(in[0], 0)), fx_sqrt(in[0]), in[0]));
}

void case_b001_select_keeps_the_other_branch_out(const executor *e) {
    CHECK_GRAD(e, "sqrt", safe_sqrt, WANT(1, 1, 1, 0.25), 0, 1e-6, F32(-1, -4, 0, 4));
    CHECK_GRAD(e, "log", safe_log, WANT(0, 0, 0.5), 0, 1e-6, F32(-1, 0, 2));
    /* reverse only: forward, the second element's infinite derivative times a tangent of zero is NaN */
    fx_func *f = TRACE(safe_exp, 1, FX_SPEC(FX_F32, 2)), *g;
    case_check_func(e, "exp", case_take(fx_grad(f, FX_ARGS(0), &g), f, &g), 0, ARGS(F32(10, 20)), WANT(1, INFINITY), 0,
                    1e-6);
    /* one select alone: in reverse, zero times the derivative of the branch not taken, as the header says; forward the
     * tangent is selected */
    f = TRACE(single_sqrt, 1, FX_SPEC(FX_F32, 4));
    case_check_func(e, "single", case_take(fx_grad(f, FX_ARGS(0), &g), f, &g), 0, ARGS(F32(-1, -4, 0, 4)),
                    WANT(NAN, NAN, NAN, 0.25), 0, 1e-6);
    f = TRACE(single_sqrt, 1, FX_SPEC(FX_F32, 4));
    case_check_func(e, "single", case_take(fx_jvp(f, FX_ARGS(0), &g), f, &g), 1,
                    ARGS(F32(-1, -4, 0, 4), F32(1, 1, 1, 1)), WANT(3.25), 0, 1e-6);
}

/* ---- B-003 ---- */

FN(top) {
    UNUSED;
    out[0] = fx_reduce_max(in[0], -1, NULL, false);
}
FN(bottom) {
    UNUSED;
    out[0] = fx_reduce_min(in[0], -1, NULL, false);
}
FN(row_tops) {
    UNUSED;
    out[0] = total(fx_reduce_max(in[0], 1, (const int[]){1}, false));
}
FN(maximum) {
    UNUSED;
    out[0] = total(fx_max(in[0], in[1]));
}
FN(maximum_itself) {
    UNUSED;
    out[0] = total(fx_max(in[0], in[0]));
}
FN(at_argmax) {
    UNUSED;
    out[0] = fx_take(in[0], fx_argmax(in[0], 0, FX_S32), 0);
}
FN(max_minus_min) {
    UNUSED;
    out[0] = fx_sub(fx_max(in[0], c(in[0], 0)), fx_min(in[0], c(in[0], 0)));
}
FN(relu) {
    UNUSED;
    out[0] = total(fx_relu(in[0]));
}

void case_b003_ties_share(const executor *e) {
    double thousandth[1000], ones[1000];
    for (int i = 0; i < 1000; i++)
        thousandth[i] = 0.001, ones[i] = 1;
    CHECK_GRAD(e, "max", top, WANT(0.5, 0.5, 0), 1e-6, 0, F32(0.6, 0.6, 0.3));
    CHECK_GRAD(e, "min", bottom, WANT(0, 1.0 / 3, 1.0 / 3, 1.0 / 3), 1e-6, 0, F32(2, 1, 1, 1));
    CHECK_GRAD(e, "rows", row_tops, WANT(0.5, 0.5, 0, 1), 1e-6, 0, VALUES(FX_SPEC(FX_F32, 2, 2), 1, 1, 2, 3));
    CHECK_GRAD(e, "maximum", maximum, WANT(0.5), 1e-6, 0, F32(1), F32(1));
    CHECK_GRAD(e, "maximum(x, x)", maximum_itself, WANT(1), 1e-6, 0, F32(1));
    CHECK_GRAD(e, "x[argmax(x)]", at_argmax, WANT(1, 0), 0, 0, F32(1, 1));
    CHECK_GRAD(e, "|x|", max_minus_min, WANT(0), 0, 0, F32_0(0));
    CHECK_GRAD(e, "relu", relu, WANT(0, 0), 0, 0, F32(-0.0, 0.0));
    case_array many = case_values(FX_SPEC(FX_F32, 1000), ones);
    case_check_func(e, "many", TRACE(top, 1, many.spec), 0, ARGS(case_copy(&many)), WANT(1), 0, 0);
    fx_func *f = TRACE(top, 1, many.spec), *g;
    case_check_func(e, "many", case_take(fx_grad(f, FX_ARGS(0), &g), f, &g), 0, &many, thousandth, 1e-6, 0);
}

/* ---- B-005 ---- */

static void check_pool(const executor *e, const char *what, fx_trace_fn pool, case_array x, case_array ct,
                       const double *want) {
    fx_func *f = case_trace(pool, 1, &x.spec, 1), *g;
    case_check_func(e, what, case_take(fx_vjp(f, FX_ARGS(0), &g), f, &g), 1, ARGS(x, ct), want, 0, 0);
}

FN(pool2) {
    UNUSED;
    out[0] = fx_reduce_window(in[0], &(fx_window_dims){.window = (const int64_t[]){2}}, FX_WINDOW_MAX);
}
FN(pool22) {
    UNUSED;
    const int64_t two[] = {2};
    out[0] = fx_reduce_window(in[0], &(fx_window_dims){.window = two, .strides = two}, FX_WINDOW_MAX);
}
static void pool3(const fx_val *in, fx_val *out, const int64_t *strides) {
    const int64_t three[] = {3, 3}, one[] = {1, 1};
    out[0] = fx_reduce_window(in[0], &(fx_window_dims){.window = three, .strides = strides, .low = one, .high = one},
                              FX_WINDOW_MAX);
}
FN(pool3_stride2) {
    UNUSED;
    pool3(in, out, (const int64_t[]){2, 2});
}
FN(pool3_stride1) {
    UNUSED;
    pool3(in, out, (const int64_t[]){1, 1});
}

void case_b005_max_pooling(const executor *e) {
    double image[24], ramp[24];
    for (int i = 0; i < 24; i++)
        image[i] = ramp[i] = i + 1;
    image[7] = 88;
    fx_spec s = FX_SPEC(FX_F32, 4, 6);
    check_pool(e, "a", pool2, F32(5, 3, 1, 2, 5), F32(1, 1, 1, 1), WANT(1, 1, 0, 1, 1));
    check_pool(e, "b", pool3_stride2, case_values(s, image), case_full(FX_SPEC(FX_F32, 2, 3), 1),
               WANT(0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
    check_pool(e, "c", pool3_stride1, case_values(s, image), case_values(s, ramp),
               WANT(0, 0, 0, 0, 0, 0, 0, 72, 0, 0, 4, 11, 0, 0, 0, 0, 10, 23, 0, 19, 20, 21, 38, 82));
    check_pool(e, "d", pool2, F32(2, 2, 2, 1, 2, 2), F32(1, 1, 1, 1, 1), WANT(1, 1, 1, 0, 2, 0));
    check_pool(e, "e", pool22, F32(-INFINITY, -INFINITY, -INFINITY, -INFINITY), F32(1, 1), WANT(1, 0, 1, 0));
}

/* ---- B-007 ---- */

FN(product) {
    UNUSED;
    out[0] = fx_reduce_prod(in[0], -1, NULL, false);
}
FN(row_products) {
    UNUSED;
    out[0] = total(fx_reduce_prod(in[0], 1, (const int[]){1}, false));
}
FN(running_product) {
    UNUSED;
    out[0] = total(fx_cumulative(in[0], 0, FX_CUMPROD, false));
}
FN(weighted_running_product) {
    UNUSED;
    out[0] = total(fx_mul(fx_cumulative(in[0], 0, FX_CUMPROD, false), in[1]));
}

void case_b007_products_with_zeros(const executor *e) {
    CHECK_GRAD(e, "prod 1", product, WANT(0, 24, 0, 0), 0, 0, F32(2, 0, 3, 4));
    CHECK_GRAD(e, "prod 2", product, WANT(0, 0, 0, 0), 0, 0, F32(0, 0, 3, 4));
    CHECK_GRAD(e, "prod 3", product, WANT(60, 24, 40, 30), 0, 0, F32(2, 5, 3, 4));
    CHECK_GRAD(e, "prod 4", product, WANT(1), 0, 0, F32(0));
    /* -0 and 0 are both right: compare with a bound of the least positive number */
    CHECK_GRAD(e, "prod 5", product, WANT(0, 0, -3), 1e-45, 0, F32(1.5, -2, 0));
    CHECK_GRAD(e, "cumprod 1", running_product, WANT(1, 8, 0), 0, 0, F32(2, 0, 3));
    CHECK_GRAD(e, "cumprod 2", running_product, WANT(1, 4.5 / 3, 0, 0), 0, 0, F32(1.5, 0, 0, 2));
    CHECK_GRAD(e, "cumprod 3", running_product, WANT(19, 0, 0), 0, 0, F32(0, 3, 5));
    CHECK_GRAD(e, "cumprod 4", running_product, WANT(3, 1, 50, 0, 0), 0, 0, F32(1, 2, 0, 4, 5));
    CHECK_GRAD(e, "weighted", weighted_running_product, WANT(1, 630, 0), 0, 0, F32(3, 0, 2), F32(1, 10, 100));
    CHECK_GRAD(e, "rows", row_products, WANT(0, 1, 3, 2), 0, 0, VALUES(FX_SPEC(FX_F32, 2, 2), 1, 0, 2, 3));
}

/* ---- B-009 ---- */

FN(sum_softplus) {
    UNUSED;
    out[0] = total(fx_softplus(in[0]));
}
FN(sum_tanh) {
    UNUSED;
    out[0] = total(fx_tanh(in[0]));
}
FN(logaddexp_of_pair) {
    UNUSED;
    out[0] = total(fx_logaddexp(fx_slice_axis(in[0], 0, 0, 1), fx_slice_axis(in[0], 0, 1, 2)));
}
FN(sum_exp_log) {
    UNUSED;
    out[0] = fx_logsumexp(in[0], 0, false);
}

/* The Hessian of fn at x in three ways. */
static void check_hessian(const executor *e, const char *what, fx_trace_fn fn, const case_array *x,
                          const double *want) {
    int n = (int)fx_spec_count(&x->spec);
    fx_func *f = case_trace(fn, 1, &x->spec, 1), *g, *h;
    double *unit = calloc((size_t)(n * n), sizeof *unit);
    for (int i = 0; i < n; i++)
        unit[i * n + i] = 1;
    case_array eye = case_values(FX_SPEC(FX_F32, n, n), unit);
    OP_STATUS(fx_grad(f, FX_ARGS(0), &g));
    for (int how = 0; how < 2; how++) {
        OP_STATUS(how ? fx_jvp(g, FX_ARGS(0), &h) : fx_vjp(g, FX_ARGS(0), &h));
        fx_func *all;
        all = case_take(fx_vmap(h, (const int[]){FX_NOT_MAPPED, 0}, NULL, n, &all), h, &all);
        case_check_func(e, what, all, 1, ARGS(case_copy(x), case_copy(&eye)), want, 1e-6, 0);
    }
    fx_func_unref(g);
    OP_STATUS(fx_jvp(f, FX_ARGS(0), &g));
    h = case_take(fx_jvp(g, FX_ARGS(0), &h), g, &h); /* (x, v, w) -> (y, dy v, dy w, second) */
    fx_func *rows, *all;
    rows = case_take(fx_vmap(h, (const int[]){FX_NOT_MAPPED, FX_NOT_MAPPED, 0}, NULL, n, &rows), h, &rows);
    all = case_take(fx_vmap(rows, (const int[]){FX_NOT_MAPPED, 0, FX_NOT_MAPPED}, NULL, n, &all), rows, &all);
    case_check_func(e, what, all, 3, ARGS(case_copy(x), case_copy(&eye), eye), want, 1e-6, 0);
    fx_func_unref(f);
    free(unit);
}

void case_b009_second_derivatives(const executor *e) {
    static const double at[] = {-1000, -90, -30, -1, 0, 1, 30, 90, 1000};
    static const double second[] = {0,    8.194012623990515e-40, 9.357622968838423e-14, 0.19661193324148185,
                                    0.25, 0.19661193324148185,   9.357622968838423e-14, 8.194012623990515e-40,
                                    0};
    double diagonal[81] = {0};
    for (int i = 0; i < 9; i++)
        diagonal[i * 9 + i] = second[i];
    case_array x = case_values(FX_SPEC(FX_F32, 9), at);
    check_hessian(e, "softplus", sum_softplus, &x, diagonal);
    case_check_grad(e, "softplus", sum_softplus, 1, &x,
                    WANT(0, 8.194012623990515e-40, 9.357622968839299e-14, 0.2689414213699951, 0.5, 0.7310585786300049,
                         0.9999999999999064, 1, 1),
                    1e-6, 0);
    static const double pairs[4][2] = {{1000, 1000}, {0, -1000}, {-800, 1600}, {-INFINITY, 2}};
    static const double first[4][2] = {{0.5, 0.5}, {1, 0}, {0, 1}, {0, 1}};
    for (int i = 0; i < 4; i++) {
        double s = i ? 0 : 0.25;
        x = case_values(FX_SPEC(FX_F32, 2), pairs[i]);
        check_hessian(e, "logaddexp", logaddexp_of_pair, &x, WANT(s, -s, -s, s));
        case_check_grad(e, "logaddexp", logaddexp_of_pair, 1, &x, first[i], 1e-6, 0);
    }
    x = F32(0, 0);
    check_hessian(e, "logsumexp", sum_exp_log, &x, WANT(0.25, -0.25, -0.25, 0.25));
    case_free(&x);
    x = F32(1000, 1000);
    check_hessian(e, "logsumexp", sum_exp_log, &x, WANT(0.25, -0.25, -0.25, 0.25));
    case_free(&x);
    x = F32(0, -200, 0);
    check_hessian(e, "logsumexp", sum_exp_log, &x, WANT(0.25, 0, -0.25, 0, 0, 0, -0.25, 0, 0.25));
    case_free(&x);
    x = F32(0, 0.5, 100);
    check_hessian(e, "tanh", sum_tanh, &x, WANT(0, 0, 0, 0, -0.7268619813835873, 0, 0, 0, 0));
    case_free(&x);
}

/* ---- B-019 ---- */

FN(sum_of_two) {
    UNUSED;
    out[0] = fx_add(in[0], in[1]);
}
FN(two_matrices) {
    UNUSED;
    out[0] = fx_add(fx_matmul(in[0], in[2]), fx_mul_c(fx_matmul(in[1], in[2]), 2));
}
FN(fan_out) {
    UNUSED;
    fx_val y = fx_mul_c(in[0], 3);
    out[0] = fx_add(fx_mul_c(y, 2), fx_mul_c(y, 5));
}
FN(same_three_times) {
    UNUSED;
    fx_val x = in[0], one = c(x, 1);
    out[0] = fx_add(fx_add(fx_mul(x, fx_mul(x, one)), fx_mul(x, fx_mul(x, one))), fx_mul(fx_mul(x, x), one));
}
FN(residual_chain) {
    UNUSED;
    fx_val x = in[0];
    for (int i = 0; i < 100; i++)
        x = fx_add(x, fx_mul_c(fx_tanh(x), 0.01));
    out[0] = x;
}
FN(ladder) {
    UNUSED;
    fx_val a = in[0], b = in[0];
    for (int i = 1; i < 40; i++) {
        fx_val next = fx_add(a, b);
        a = b;
        b = next;
    }
    out[0] = b;
}
FN(many_relus) {
    UNUSED;
    fx_val sum = NULL;
    for (int k = 0; k < 600; k++) {
        fx_val y = fx_relu(fx_add_c(in[0], k - 300));
        sum = sum ? fx_add(sum, y) : y;
    }
    out[0] = sum;
}

void case_b019_shared_values_add_up(const executor *e) {
    fx_func *f = TRACE(sum_of_two, 1, FX_SPEC0(FX_F32), FX_SPEC0(FX_F32)), *g;
    case_array out[4];
    case_call(e, case_take(fx_grad(f, FX_ARGS(0, 1), &g), f, &g), ARGS(F32_0(3), F32_0(3)), out);
    case_compare(e, "w1", &out[0], WANT(1), 0, 0);
    case_compare(e, "w2", &out[1], WANT(1), 0, 0);
    case_free(&out[0]), case_free(&out[1]);
    fx_spec m = FX_SPEC(FX_F32, 4, 4);
    f = TRACE(two_matrices, 1, m, m, FX_SPEC(FX_F32, 4));
    case_call(e, case_take(fx_vjp(f, FX_ARGS(0, 1), &g), f, &g),
              ARGS(case_full(m, 0), case_full(m, 0), F32(1, 2, 3, 4), F32(1, 1, 1, 1)), out);
    case_compare(e, "W1", &out[1], WANT(1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4), 0, 0);
    case_compare(e, "W2", &out[2], WANT(2, 4, 6, 8, 2, 4, 6, 8, 2, 4, 6, 8, 2, 4, 6, 8), 0, 0);
    for (int i = 0; i < 3; i++)
        case_free(&out[i]);
    CHECK_GRAD(e, "fan-out", fan_out, WANT(21), 0, 0, F32_0(2));
    CHECK_GRAD(e, "three times", same_three_times, WANT(6), 0, 0, F32_0(1));
    CHECK_GRAD(e, "residual chain", residual_chain, WANT(1.770110069), 0, 2e-5, F32_0(0.5));
    CHECK_GRAD(e, "ladder", ladder, WANT(165580141), 0, 1e-6, F32_0(1));
    CHECK_GRAD(e, "relus", many_relus, WANT(300), 0, 0, F32_0(0.5));
}

/* ---- B-021 ---- */

FN(twice_an_integer) {
    UNUSED;
    out[0] = fx_mul_c(fx_convert(in[0], FX_F32), 2);
}
FN(times_an_integer) {
    UNUSED;
    out[0] = fx_mul(in[0], fx_convert(in[1], FX_F32));
}
FN(times_truncated) {
    UNUSED;
    out[0] = fx_mul(in[0], fx_convert(fx_convert(in[0], FX_S32), FX_F32));
}
FN(floor_plus) {
    UNUSED;
    out[0] = fx_add(fx_floor(in[0]), in[0]);
}
FN(steps_plus) {
    UNUSED;
    fx_val x = in[0];
    out[0] = fx_add(fx_add(fx_add(fx_round_even(x), fx_sign(x)), fx_add(fx_ceil(x), fx_round_afz(x))), x);
}
FN(times_stopped) {
    UNUSED;
    out[0] = fx_mul(in[0], fx_stop_gradient(in[0]));
}
FN(ignores) {
    UNUSED;
    out[0] = in[1];
}
FN(argmax_as_float) {
    UNUSED;
    out[0] = fx_convert(fx_argmax(in[0], 0, FX_S32), FX_F32);
}
FN(masked) {
    UNUSED;
    out[0] = total(fx_mul(in[0], fx_convert(fx_gt(in[0], c(in[0], 0)), FX_F32)));
}
FN(float_and_integer) {
    UNUSED;
    out[0] = fx_convert(in[0], FX_S32);
    out[1] = fx_mul(in[0], fx_convert(in[1], FX_F32));
}

void case_b021_integers_have_no_derivative(const executor *e) {
    fx_func *f = TRACE(twice_an_integer, 1, FX_SPEC0(FX_S32)), *g = NULL;
    ck_assert_int_eq(fx_grad(f, FX_ARGS(0), &g), FX_INVALID_ARGUMENT);
    ck_assert_ptr_null(g);
    ck_assert(strstr(fx_last_error(), "argument 0") && strstr(fx_last_error(), "s32"));
    fx_func_unref(f);
    CHECK_GRAD(e, "x n", times_an_integer, WANT(5), 0, 0, F32_0(2), VALUES(FX_SPEC0(FX_S32), 5));
    CHECK_GRAD(e, "x trunc(x)", times_truncated, WANT(2), 0, 0, F32_0(2.7));
    CHECK_GRAD(e, "floor", floor_plus, WANT(1), 0, 0, F32_0(1.5));
    CHECK_GRAD(e, "steps", steps_plus, WANT(1), 0, 0, F32_0(1.5));
    CHECK_GRAD(e, "stop_gradient", times_stopped, WANT(3), 0, 0, F32_0(3));
    CHECK_GRAD(e, "ignored", ignores, WANT(0), 0, 0, F32_0(3), F32_0(4));
    CHECK_GRAD(e, "argmax", argmax_as_float, WANT(0, 0, 0), 0, 0, F32(3, 5, 4));
    CHECK_GRAD(e, "mask", masked, WANT(0, 1), 0, 0, F32(-1, 2));
    /* an integer result takes no cotangent; an integer argument has one of zeros and its tangent is ignored */
    f = TRACE(float_and_integer, 2, FX_SPEC0(FX_F32), FX_SPEC0(FX_S32));
    OP_STATUS(fx_vjp(f, FX_ARGS(0, 1), &g));
    ck_assert_int_eq(fx_func_n_in(g), 3);
    case_array out[4];
    case_call(e, g, ARGS(F32_0(2.5), VALUES(FX_SPEC0(FX_S32), 4), F32_0(10)), out);
    case_compare(e, "vjp", &out[2], WANT(40), 0, 0);
    ck_assert_int_eq(out[3].spec.dtype, FX_S32);
    case_compare(e, "vjp", &out[3], WANT(0), 0, 0);
    for (int i = 0; i < 4; i++)
        case_free(&out[i]);
    OP_STATUS(fx_jvp(f, FX_ARGS(0, 1), &g));
    ck_assert_int_eq(fx_func_n_out(g), 3);
    case_call(e, g, ARGS(F32_0(2.5), VALUES(FX_SPEC0(FX_S32), 4), F32_0(1), VALUES(FX_SPEC0(FX_S32), 7)), out);
    case_compare(e, "jvp", &out[2], WANT(4), 0, 0);
    for (int i = 0; i < 3; i++)
        case_free(&out[i]);
    fx_func_unref(f);
}
