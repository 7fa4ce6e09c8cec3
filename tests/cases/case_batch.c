/* case_batch.c - batching: indexing along any axis, loops whose lanes end at different times, custom rules, empty
 * batches. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define F32(...) VALUES(FX_SPEC(FX_F32, CASE_COUNT(double, __VA_ARGS__)), __VA_ARGS__)
#define F32_0(v) VALUES(FX_SPEC0(FX_F32), v)
#define S32(...) VALUES(FX_SPEC(FX_S32, CASE_COUNT(double, __VA_ARGS__)), __VA_ARGS__)
#define AXES(...) ((const int[]){__VA_ARGS__})
enum { NONE = FX_NOT_MAPPED };

static fx_func *vmap(fx_func *f, const int *in, const int *out, int64_t size) {
    fx_func *g;
    return case_take(fx_vmap(f, in, out, size, &g), f, &g);
}

/* ---- B-011 ---- */

FN(take_rows) {
    UNUSED;
    out[0] = fx_take(in[0], in[1], 0);
}
FN(take_rows_or_zero) { /* rows that aren't there read as zeros */
    UNUSED;
    fx_val i = in[1], ok = fx_and(fx_ge(i, fx_const_like(i, 0)), fx_lt(i, fx_const_like(i, 5)));
    fx_val rows = fx_take(in[0], i, 0);
    out[0] =
        fx_select(fx_broadcast_in_dim(ok, 2, fx_spec_of(rows).dims, (const int[]){0}), rows, fx_const_like(rows, 0));
}

void case_b011_gather_derivative_follows_the_clamp(const executor *e) {
    fx_spec table = FX_SPEC(FX_F32, 5, 2), index = FX_SPEC(FX_S32, 6), rows = FX_SPEC(FX_F32, 6, 2);
    for (int drop = 0; drop < 2; drop++) {
        fx_func *f = TRACE(drop ? take_rows_or_zero : take_rows, 1, table, index), *g;
        case_check_func(
            e, drop ? "drop" : "clip", case_take(fx_vjp(f, FX_ARGS(0), &g), f, &g), 1,
            ARGS(case_full(table, 1), S32(1, 1, 1, 3, 7, -2), VALUES(rows, 1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60)),
            drop ? WANT(0, 0, 6, 60, 0, 0, 4, 40, 0, 0) : WANT(6, 60, 6, 60, 0, 0, 4, 40, 5, 50), 0, 0);
    }
    /* a batch of index vectors: the shared table's cotangent is summed; a table each: one each */
    fx_spec two = FX_SPEC(FX_S32, 2);
    fx_func *f = vmap(TRACE(take_rows, 1, table, two), AXES(NONE, 0), NULL, 2), *g;
    case_array indices = VALUES(FX_SPEC(FX_S32, 2, 2), 1, 1, 4, 9);
    fx_spec ct = FX_SPEC(FX_F32, 2, 2, 2);
    case_check_func(e, "shared table", case_take(fx_vjp(f, FX_ARGS(0), &g), f, &g), 1,
                    ARGS(case_full(table, 1), case_copy(&indices), case_full(ct, 1)),
                    WANT(0, 0, 2, 2, 0, 0, 0, 0, 2, 2), 0, 0);
    f = vmap(TRACE(take_rows, 1, table, two), NULL, NULL, 2);
    case_check_func(e, "table each", case_take(fx_vjp(f, FX_ARGS(0), &g), f, &g), 1,
                    ARGS(case_full(FX_SPEC(FX_F32, 2, 5, 2), 1), indices, case_full(ct, 1)),
                    WANT(0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2), 0, 0);
}

/* ---- B-013 ---- */

static fx_val add_at(fx_val x, fx_val indices, fx_val updates, bool rows) {
    const int64_t zero[] = {0}, one[] = {1};
    fx_scatter_dims d = {.n_window = rows,
                         .n_inserted = 1,
                         .n_scatter = 1,
                         .update_window_dims = one,
                         .inserted_window_dims = zero,
                         .scatter_dims_to_operand_dims = zero,
                         .index_vector_dim = 1};
    return fx_scatter(x, indices, updates, &d, FX_SCATTER_ADD);
}
FN(add_rows) {
    UNUSED;
    out[0] = add_at(in[0], in[1], in[2], true);
}
FN(add_elements) {
    UNUSED;
    out[0] = add_at(in[0], in[1], in[2], false);
}
FN(pick) {
    UNUSED;
    out[0] = fx_take(in[0], in[1], 0);
}

void case_b013_indexing_batches_along_any_axis(const executor *e) {
    double ramp[36];
    for (int i = 0; i < 36; i++)
        ramp[i] = i;
    fx_func *f = vmap(TRACE(add_rows, 1, FX_SPEC(FX_F32, 2, 3), FX_SPEC(FX_S32, 3), FX_SPEC(FX_F32, 3, 3)),
                      AXES(2, NONE, 2), AXES(2), 4);
    double updates[36];
    for (int i = 0; i < 36; i++)
        updates[i] = i + 1;
    case_check_func(
        e, "a", f, 0,
        ARGS(case_values(FX_SPEC(FX_F32, 2, 3, 4), ramp), S32(1, 0, 1), case_values(FX_SPEC(FX_F32, 3, 3, 4), updates)),
        WANT(13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 38, 41, 44, 47, 50, 53, 56, 59, 62, 65, 68, 71), 0, 0);
    fx_spec pair = FX_SPEC(FX_S32, 2);
    f = vmap(TRACE(add_elements, 1, FX_SPEC(FX_F32, 2), pair, FX_SPEC(FX_F32, 2)), AXES(0, 0, NONE), NULL, 4);
    case_check_func(e, "b", f, 0,
                    ARGS(VALUES(FX_SPEC(FX_F32, 4, 2), 0, 1, 10, 11, 20, 21, 30, 31),
                         VALUES(FX_SPEC(FX_S32, 4, 2), 0, 1, 1, 1, 0, 0, 1, 5), F32(1, 2)),
                    WANT(1, 3, 10, 14, 23, 21, 30, 32), 0, 0);
    f = vmap(TRACE(pick, 1, FX_SPEC(FX_F32, 3), pair), AXES(1, NONE), AXES(1), 4);
    case_check_func(e, "c", f, 0, ARGS(case_values(FX_SPEC(FX_F32, 3, 4), ramp), S32(2, 0)),
                    WANT(8, 9, 10, 11, 0, 1, 2, 3), 0, 0);
    f = vmap(TRACE(pick, 1, FX_SPEC(FX_F32, 3), pair), AXES(1, NONE), AXES(0), 4);
    case_check_func(e, "c moved", f, 0, ARGS(case_values(FX_SPEC(FX_F32, 3, 4), ramp), S32(2, 0)),
                    WANT(8, 0, 9, 1, 10, 2, 11, 3), 0, 0);
    for (int64_t size = 0; size < 2; size++) { /* nobody, and one alone */
        f = vmap(TRACE(add_elements, 1, FX_SPEC(FX_F32, 2), pair, FX_SPEC(FX_F32, 2)), NULL, NULL, size);
        fx_spec out = fx_func_out_spec(f, 0);
        ck_assert(fx_spec_equal(&out, &FX_SPEC(FX_F32, size, 2)));
        case_check_func(e, "d", f, 0,
                        ARGS(case_full(FX_SPEC(FX_F32, size, 2), 5), case_full(FX_SPEC(FX_S32, size, 2), 1),
                             case_full(FX_SPEC(FX_F32, size, 2), 2)),
                        WANT(5, 9), 0, 0);
        f = vmap(TRACE(pick, 1, FX_SPEC(FX_F32, 3), pair), NULL, NULL, size);
        case_check_func(e, "d", f, 0,
                        ARGS(case_full(FX_SPEC(FX_F32, size, 3), 5), case_full(FX_SPEC(FX_S32, size, 2), 9)),
                        WANT(5, 5), 0, 0);
    }
    /* nested: x of the outer batch (2), indices of the inner one (3) */
    f = vmap(TRACE(pick, 1, FX_SPEC(FX_F32, 3), pair), AXES(NONE, 0), NULL, 3);
    f = vmap(f, AXES(0, NONE), NULL, 2);
    case_check_func(e, "nested", f, 0,
                    ARGS(case_values(FX_SPEC(FX_F32, 2, 3), ramp), VALUES(FX_SPEC(FX_S32, 3, 2), 0, 1, 2, 0, 9, -1)),
                    WANT(0, 1, 2, 0, 2, 0, 3, 4, 5, 3, 5, 3), 0, 0);
}

/* ---- B-015 ---- */

FN(not_one) {
    UNUSED;
    out[0] = fx_ne(in[0], fx_const_like(in[0], 1));
}
FN(collatz_step) {
    UNUSED;
    fx_val x = in[0], two = fx_const_like(x, 2), odd = fx_ne(fx_rem(x, two), fx_const_like(x, 0));
    out[0] = fx_select(odd, fx_add_c(fx_mul_c(x, 3), 1), fx_div(x, two));
    out[1] = fx_add_c(in[1], 1);
}
FN(collatz) {
    (void)user;
    fx_val init[] = {in[0], fx_scalar(t, FX_S32, 0)}, end[2];
    fx_while(not_one, collatz_step, NULL, 2, init, end);
    out[0] = end[1];
}
FN(small) {
    UNUSED;
    out[0] = fx_le(in[0], fx_const_like(in[0], 100));
}
FN(double_it) {
    UNUSED;
    out[0] = fx_mul_c(in[0], 2);
}
FN(until_large) {
    UNUSED;
    fx_while(small, double_it, NULL, 1, in, out);
}
FN(below) {
    UNUSED;
    out[0] = fx_lt(in[0], in[2]);
}
FN(count_step) {
    UNUSED;
    out[0] = fx_add_c(in[0], 1);
    out[1] = fx_add(in[1], in[3]);
    out[2] = in[2];
    out[3] = in[3];
}
FN(count) {
    (void)user;
    fx_val zero = fx_scalar(t, FX_S32, 0), init[] = {zero, zero, in[0], in[1]}, end[4];
    fx_while(below, count_step, NULL, 4, init, end);
    out[0] = end[1];
}
FN(harmonic_step) { /* n - i is 0 once a lane is done */
    UNUSED;
    fx_val left = fx_convert(fx_sub(in[2], in[0]), FX_F32);
    out[0] = fx_add_c(in[0], 1);
    out[1] = fx_add(in[1], fx_div(left, left));
    out[2] = in[2];
}
FN(harmonic) {
    (void)user;
    fx_val init[] = {fx_scalar(t, FX_S32, 0), fx_scalar(t, FX_F32, 0), in[0]}, end[3];
    fx_while(below, harmonic_step, NULL, 3, init, end);
    out[0] = end[1];
}
FN(never) {
    UNUSED;
    out[0] = fx_lt(in[1], fx_const_like(in[1], 0));
}
FN(grow) {
    UNUSED;
    out[0] = fx_add_c(in[0], 1), out[1] = fx_add_c(in[1], 1);
}
FN(zero_trips) {
    UNUSED;
    fx_while(never, grow, NULL, 2, in, out);
}

void case_b015_lanes_of_a_while_freeze(const executor *e) {
    case_check_func(e, "a", vmap(TRACE(collatz, 1, FX_SPEC0(FX_S32)), NULL, NULL, 5), 0, ARGS(S32(1, 6, 7, 27, 97)),
                    WANT(0, 8, 16, 111, 118), 0, 0);
    case_check_func(e, "b", vmap(TRACE(until_large, 1, FX_SPEC0(FX_F32)), NULL, NULL, 4), 0, ARGS(F32(1, 3, 101, 0.5)),
                    WANT(128, 192, 101, 128), 0, 0);
    fx_func *f = TRACE(until_large, 1, FX_SPEC0(FX_F32)), *g;
    g = case_take(fx_jvp(f, FX_ARGS(0), &g), f, &g);
    case_check_func(e, "b, tangent", vmap(g, NULL, NULL, 4), 1, ARGS(F32(1, 3, 101, 0.5), F32(1, 1, 1, 1)),
                    WANT(128, 64, 1, 256), 0, 0);
    f = vmap(TRACE(until_large, 1, FX_SPEC0(FX_F32)), NULL, NULL, 4);
    case_check_func(e, "b, tangent of the batch", case_take(fx_jvp(f, FX_ARGS(0), &g), f, &g), 1,
                    ARGS(F32(1, 3, 101, 0.5), F32(1, 1, 1, 1)), WANT(128, 64, 1, 256), 0, 0);
    f = vmap(TRACE(count, 1, FX_SPEC0(FX_S32), FX_SPEC0(FX_S32)), AXES(NONE, 0), NULL, 3);
    case_check_func(e, "c", vmap(f, AXES(0, NONE), NULL, 3), 0, ARGS(S32(0, 2, 5), S32(10, 20, 30)),
                    WANT(0, 0, 0, 20, 40, 60, 50, 100, 150), 0, 0);
    case_check_func(e, "d", vmap(TRACE(harmonic, 1, FX_SPEC0(FX_S32)), NULL, NULL, 4), 0, ARGS(S32(0, 1, 4, 2)),
                    WANT(0, 1, 4, 2), 0, 0);
    case_array out[2];
    case_call(e, TRACE(zero_trips, 2, FX_SPEC(FX_F32, 2, 3), FX_SPEC0(FX_F32)),
              ARGS(VALUES(FX_SPEC(FX_F32, 2, 3), 1, 2, 3, 4, 5, 6), F32_0(7)), out);
    case_compare(e, "e", &out[0], WANT(1, 2, 3, 4, 5, 6), 0, 0);
    case_compare(e, "e", &out[1], WANT(7), 0, 0);
    case_free(&out[0]), case_free(&out[1]);
}

/* ---- B-017 ---- */

FN(mul_plain) {
    UNUSED;
    out[0] = fx_mul(in[0], in[1]);
}
FN(mul_fwd) {
    UNUSED;
    out[0] = fx_mul(in[0], in[1]), out[1] = in[0], out[2] = in[1];
}
FN(mul_bwd) {
    UNUSED;
    out[0] = fx_mul(in[2], in[1]), out[1] = fx_reduce_sum(fx_mul(in[0], in[2]), -1, NULL, false);
}

static fx_func *custom_mul(void) {
    fx_spec v = FX_SPEC(FX_F32, 2), s = FX_SPEC0(FX_F32);
    fx_func *f = TRACE(mul_plain, 1, v, s), *fwd = TRACE(mul_fwd, 3, v, s), *bwd = TRACE(mul_bwd, 2, v, s, v), *out;
    OP_STATUS(fx_custom_vjp(f, fwd, bwd, &out));
    fx_func_unref(f), fx_func_unref(fwd), fx_func_unref(bwd);
    return out;
}

static fx_func *shared_mul; /* what times_cubed calls; set around tracing */
static fx_val shared_c;
FN(times_once) {
    (void)user;
    fx_call(t, shared_mul, (const fx_val[]){in[0], shared_c}, out);
}
FN(times_cubed) { /* c is closed over by the loop's body */
    UNUSED;
    shared_c = in[1];
    fx_scan(times_once, NULL, 1, in, 0, NULL, 0, 3, false, out);
}
FN(add_to_shared) {
    UNUSED;
    out[0] = fx_logaddexp(in[0], fx_add(fx_reduce_sum(in[1], -1, NULL, false), in[0]));
}

static fx_func *whole; /* the function that summed calls */
FN(summed) {
    (void)user;
    fx_val y;
    fx_call(t, whole, in, &y);
    out[0] = fx_reduce_sum(y, -1, NULL, false);
}

void case_b017_custom_rules_under_batching(const executor *e) {
    case_array out[3];
    fx_spec x = FX_SPEC(FX_F32, 3, 2);
    for (int custom = 1; custom >= 0; custom--) {
        shared_mul = custom ? custom_mul() : TRACE(mul_plain, 1, FX_SPEC(FX_F32, 2), FX_SPEC0(FX_F32));
        fx_func *f = vmap(TRACE(times_cubed, 1, FX_SPEC(FX_F32, 2), FX_SPEC0(FX_F32)), AXES(0, NONE), NULL, 3), *g;
        case_call(e, case_take(fx_vjp(f, FX_ARGS(0, 1), &g), f, &g),
                  ARGS(VALUES(x, 1, 2, 3, 4, 5, 6), F32_0(2), case_full(x, 1)), out);
        case_compare(e, "dx", &out[1], WANT(8, 8, 8, 8, 8, 8), 0, 1e-5);
        ck_assert_int_eq(out[2].spec.rank, 0);
        case_compare(e, "dc", &out[2], WANT(252), 0, 1e-5);
        for (int i = 0; i < 3; i++)
            case_free(&out[i]);
        fx_func_unref(shared_mul);
    }
    whole = vmap(TRACE(add_to_shared, 1, FX_SPEC0(FX_F32), FX_SPEC(FX_F32, 2)), AXES(NONE, 0), NULL, 3);
    fx_func *f = TRACE(summed, 1, FX_SPEC0(FX_F32), x), *g;
    fx_func_unref(whole);
    g = case_take(fx_value_and_grad(f, FX_ARGS(0), &g), f, &g);
    case_call(e, g, ARGS(F32_0(0.1), case_full(x, 1)), out);
    case_compare(e, "value", &out[0], WANT(6.680784033128917), 0, 1e-5);
    case_compare(e, "gradient", &out[1], WANT(3), 0, 1e-5);
    ck_assert_int_eq(out[1].spec.rank, 0);
    case_free(&out[0]), case_free(&out[1]);
}
