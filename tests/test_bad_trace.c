/* test_bad_trace.c - wrong input in every call of trace.h: the trace ends with a status and a text that names the caller's
 * line; nothing crashes, and the next trace works. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "fornax/fornax.h"

static fx_trace *t;
static fx_val x, m, s, i, b, key, out[4]; /* f32[2,3], f32[3,2], f32[], s32[3], bool[2,3], u32[2] */
static int failures;

static void begin(void) {
    ck_assert_int_eq(fx_trace_begin(&t), FX_OK);
    x = fx_input(t, FX_SPEC(FX_F32, 2, 3));
    m = fx_input(t, FX_SPEC(FX_F32, 3, 2));
    s = fx_input(t, FX_SPEC0(FX_F32));
    i = fx_input(t, FX_SPEC(FX_S32, 3));
    b = fx_input(t, FX_SPEC(FX_BOOL, 2, 3));
    key = fx_input(t, FX_SPEC(FX_U32, 2));
    memset(out, 0, sizeof out);
}

/* Ends the trace with v, which must be refused. */
static void refuse(const char *what, int line, fx_val v) {
    fx_func *f = (fx_func *)&f;
    fx_status st = fx_trace_end(t, 1, &v, &f);
    const char *text = fx_last_error();
    if (st == FX_OK) {
        printf("%d: accepted: %s\n", line, what);
        failures++;
        fx_func_unref(f);
    } else if (f || st != FX_INVALID_ARGUMENT || strlen(text) < 16 || !strstr(text, "test_bad_trace.c")) {
        printf("%d: %s: %s: %s\n", line, what, fx_status_name(st), text);
        failures++;
    } else if (getenv("FX_SHOW")) {
        printf("%s\n    %s\n", what, text);
    }
}

#define BAD(...)                                  \
    do {                                          \
        begin();                                  \
        fx_val bad_ = (__VA_ARGS__);              \
        refuse(#__VA_ARGS__, __LINE__, bad_);     \
    } while (0)
/* A call that gives several values through `out`. */
#define BAD_OUT(...) BAD((__VA_ARGS__, out[0]))
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define AXES(...) ((const int[]){__VA_ARGS__})

typedef fx_val unary(fx_val);
typedef fx_val binary(fx_val, fx_val);

START_TEST(elementwise_ops_refuse_absent_operands_types_and_shapes) {
    static const struct {
        fx_op op;
        unary *fn1;
        binary *fn2;
    } ops[] = {
#define FX_UNARY(op, ...) {FX_OP_##op, fx_##op, NULL},
#define FX_BINARY(op, ...) {FX_OP_##op, NULL, fx_##op},
#define FX_TERNARY(...)
#define FX_STRUCTURAL(...)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
    };
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        unary *f = ops[k].fn1;
        binary *g = ops[k].fn2;
        int type = 0;
        while (type < FX_DTYPE_COUNT && fx_op_takes(ops[k].op, (fx_dtype)type))
            type++;
        fx_trace_here(__FILE__, __LINE__);
        if (f) {
            BAD(f(NULL));
            if (type < FX_DTYPE_COUNT)
                BAD(f(fx_input(t, (fx_spec){(fx_dtype)type, 0, {0}})));
            continue;
        }
        BAD(g(NULL, x));
        BAD(g(x, NULL));
        BAD(g(x, i));
        BAD(g(b, x));
        BAD(g(x, m));
        if (type < FX_DTYPE_COUNT)
            BAD(g(fx_input(t, (fx_spec){(fx_dtype)type, 0, {0}}), fx_input(t, (fx_spec){(fx_dtype)type, 0, {0}})));
    }
    BAD(fx_stop_gradient(NULL));
    BAD(fx_select(NULL, x, x));
    BAD(fx_select(x, x, x));
    BAD(fx_select(b, x, i));
    BAD(fx_select(b, x, NULL));
    BAD(fx_clamp(s, x, i));
    BAD(fx_clamp(b, b, b));
    BAD(fx_clamp(NULL, x, s));
    BAD(fx_convert(x, FX_TUPLE));
    BAD(fx_convert(x, (fx_dtype)99));
    BAD(fx_convert(NULL, FX_F32));
    BAD(fx_bitcast_convert(x, FX_U64));
    BAD(fx_bitcast_convert(NULL, FX_U32));
    BAD(fx_reduce_precision(i, 5, 10));
    BAD(fx_reduce_precision(x, 0, 10));
    BAD(fx_reduce_precision(x, 5, -1));
    BAD(fx_add_c(NULL, 1));
    BAD(fx_mul_c(NULL, 1));
    BAD(fx_max_c(NULL, 1));
    BAD(fx_pow_c(NULL, 1));
    BAD(fx_square(NULL));
    BAD(fx_relu(NULL));
    BAD(fx_gelu(i));
    BAD(fx_gelu_tanh(i));
    BAD(fx_silu(b));
    BAD(fx_softplus(NULL));
    BAD(fx_softplus(i));
    BAD(fx_log_sigmoid(i));
    BAD(fx_logaddexp(x, i));
    BAD(fx_is_nan(NULL));
    ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(constants_refuse_bad_specs) {
    const float data[6] = {0};
    fx_spec bad_rank = {FX_F32, 9, {0}}, negative = FX_SPEC(FX_F32, 2, -1), no_type = {FX_TUPLE, 1, {2}};
    fx_spec huge = FX_SPEC(FX_F32, INT64_MAX, 3), below = {FX_F32, -1, {0}};
    const fx_spec *specs[] = {&bad_rank, &negative, &no_type, &huge, &below};
    for (int k = 0; k < 5; k++) {
        BAD(fx_input(t, *specs[k]));
        BAD(fx_literal(t, *specs[k], data));
        BAD(fx_full(t, *specs[k], 1));
        BAD(fx_iota(t, *specs[k], 0));
        BAD(fx_random_bits(key, (fx_spec){specs[k]->dtype == FX_F32 ? FX_U32 : specs[k]->dtype, specs[k]->rank,
                                          {specs[k]->dims[0], specs[k]->dims[1], specs[k]->dims[2]}}));
        BAD(fx_random_uniform(key, *specs[k], 0, 1));
        BAD(fx_random_normal(key, *specs[k]));
        BAD(fx_random_truncated_normal(key, -2, 2, *specs[k]));
    }
    BAD(fx_literal(t, FX_SPEC(FX_F32, 2, 3), NULL));
    BAD(fx_scalar(t, FX_TUPLE, 1));
    BAD(fx_scalar(t, (fx_dtype)-1, 1));
    BAD(fx_iota(t, FX_SPEC(FX_S32, 3), 1));
    BAD(fx_iota(t, FX_SPEC(FX_BOOL, 3), 0));
    BAD(fx_const_like(NULL, 1));
    BAD(fx_zeros_like(NULL));
    ck_assert_ptr_null(fx_literal(NULL, FX_SPEC0(FX_F32), data));
    ck_assert_ptr_null(fx_full(NULL, FX_SPEC0(FX_F32), 1));
    ck_assert_ptr_null(fx_scalar(NULL, FX_F32, 1));
    ck_assert_ptr_null(fx_iota(NULL, FX_SPEC(FX_S32, 3), 0));
    ck_assert_ptr_null(fx_input(NULL, FX_SPEC0(FX_F32)));
    ck_assert_ptr_null(fx_random_key(NULL, 1));
    ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(shape_ops_refuse_what_does_not_fit) {
    BAD(fx_reshape(NULL, 0, NULL));
    BAD(fx_reshape(x, 2, DIMS(2, 4)));
    BAD(fx_reshape(x, 2, DIMS(-1, -1)));
    BAD(fx_reshape(x, 2, DIMS(-1, 4)));
    BAD(fx_reshape(x, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 2, 3)));
    BAD(fx_reshape(x, -1, NULL));
    BAD(fx_reshape(x, 2, NULL));
    BAD(fx_transpose(NULL, NULL));
    BAD(fx_transpose(x, AXES(0, 0)));
    BAD(fx_transpose(x, AXES(0, 2)));
    BAD(fx_broadcast_to(x, 2, DIMS(2, 4)));
    BAD(fx_broadcast_to(x, 1, DIMS(3)));
    BAD(fx_broadcast_to(x, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 2, 3)));
    BAD(fx_broadcast_to(x, 2, NULL));
    BAD(fx_broadcast_in_dim(x, 3, DIMS(2, 3, 4), AXES(0, 0)));
    BAD(fx_broadcast_in_dim(x, 3, DIMS(2, 3, 4), AXES(1, 2)));
    BAD(fx_broadcast_in_dim(x, 3, DIMS(2, 3, 4), AXES(0, 7)));
    BAD(fx_broadcast_in_dim(x, 3, NULL, AXES(0, 1)));
    BAD(fx_broadcast_in_dim(x, 3, DIMS(2, 3, 4), NULL));
    BAD(fx_expand_dims(x, 4));
    BAD(fx_expand_dims(NULL, 0));
    BAD(fx_squeeze(x, 0));
    BAD(fx_squeeze(x, 2));
    BAD(fx_slice(x, DIMS(0, 0), DIMS(2, 4), NULL));
    BAD(fx_slice(x, DIMS(1, 2), DIMS(0, 3), NULL));
    BAD(fx_slice(x, DIMS(0, 0), DIMS(2, 3), DIMS(1, 0)));
    BAD(fx_slice(x, NULL, DIMS(2, 3), NULL));
    BAD(fx_slice(x, DIMS(0, 0), NULL, NULL));
    BAD(fx_slice_axis(x, 2, 0, 1));
    BAD(fx_slice_axis(x, 0, -1, 1));
    BAD(fx_pad(x, x, DIMS(0, 0), DIMS(0, 0), NULL));
    BAD(fx_pad(x, s, DIMS(-2, 0), DIMS(-2, 0), NULL));
    BAD(fx_pad(x, s, DIMS(0, 0), DIMS(0, 0), DIMS(-1, 0)));
    BAD(fx_pad(x, s, NULL, DIMS(0, 0), NULL));
    BAD(fx_pad(x, NULL, DIMS(0, 0), DIMS(0, 0), NULL));
    BAD(fx_pad(x, s, DIMS(INT64_MAX, 0), DIMS(INT64_MAX, 0), NULL));
    BAD(fx_concatenate(0, NULL, 0));
    BAD(fx_concatenate(-1, NULL, 0));
    BAD(fx_concatenate(2, NULL, 0));
    BAD(fx_concatenate(2, (const fx_val[]){x, m}, 0));
    BAD(fx_concatenate(2, (const fx_val[]){x, x}, 2));
    BAD(fx_concatenate(2, (const fx_val[]){x, b}, 0));
    BAD(fx_concatenate(1, (const fx_val[]){s}, 0));
    BAD(fx_stack(0, NULL, 0));
    BAD(fx_stack(2, NULL, 0));
    BAD(fx_stack(2, (const fx_val[]){x, m}, 0));
    BAD(fx_stack(2, (const fx_val[]){x, NULL}, 0));
    BAD(fx_reverse(x, 1, AXES(2)));
    BAD(fx_reverse(x, 2, AXES(0, 0)));
    ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(indexing_refuses_what_does_not_fit) {
    const fx_gather_dims rows = {.n_offset = 1, .offset_dims = DIMS(1), .n_collapsed = 1, .collapsed_slice_dims = DIMS(0),
                                 .n_index_map = 1, .start_index_map = DIMS(0), .index_vector_dim = 1};
    fx_gather_dims broken = rows, empty = rows;
    broken.n_index_map = -1;
    empty.start_index_map = NULL;
    const fx_scatter_dims put = {.n_window = 1, .update_window_dims = DIMS(1), .n_inserted = 1, .inserted_window_dims = DIMS(0),
                                 .n_scatter = 1, .scatter_dims_to_operand_dims = DIMS(0), .index_vector_dim = 1};
    BAD(fx_dynamic_slice(x, NULL, DIMS(1, 1)));
    BAD(fx_dynamic_slice(x, (const fx_val[]){s, s}, DIMS(1, 1)));
    BAD(fx_dynamic_slice(x, (const fx_val[]){NULL, NULL}, DIMS(1, 1)));
    BAD(fx_dynamic_slice(x, (const fx_val[]){fx_scalar(t, FX_S32, 0), fx_scalar(t, FX_S32, 0)}, DIMS(3, 1)));
    BAD(fx_dynamic_slice(x, (const fx_val[]){fx_scalar(t, FX_S32, 0), fx_scalar(t, FX_S32, 0)}, NULL));
    BAD(fx_dynamic_slice(NULL, NULL, NULL));
    BAD(fx_dynamic_update_slice(x, m, (const fx_val[]){fx_scalar(t, FX_S32, 0), fx_scalar(t, FX_S32, 0)}));
    BAD(fx_dynamic_update_slice(x, x, NULL));
    BAD(fx_dynamic_update_slice(x, NULL, NULL));
    BAD(fx_gather(x, i, NULL, DIMS(1, 3)));
    BAD(fx_gather(x, i, &rows, NULL));
    BAD(fx_gather(x, x, &rows, DIMS(1, 3)));
    BAD(fx_gather(x, i, &rows, DIMS(3, 3)));
    BAD(fx_gather(x, i, &broken, DIMS(1, 3)));
    BAD(fx_gather(x, i, &empty, DIMS(1, 3)));
    BAD(fx_gather(x, NULL, &rows, DIMS(1, 3)));
    BAD(fx_scatter(x, i, x, NULL, FX_SCATTER_ADD));
    BAD(fx_scatter(x, i, x, &put, (fx_scatter_kind)9));
    BAD(fx_scatter(x, i, x, &put, FX_SCATTER_ADD));
    BAD(fx_scatter(x, i, b, &put, FX_SCATTER_SET));
    BAD(fx_scatter(x, i, NULL, &put, FX_SCATTER_SET));
    BAD(fx_take(x, x, 0));
    BAD(fx_take(x, i, 2));
    BAD(fx_take(s, i, 0));
    BAD(fx_take(NULL, i, 0));
    BAD(fx_take_along_axis(x, i, 0));
    BAD(fx_take_along_axis(x, x, 0));
    BAD(fx_take_along_axis(x, fx_zeros_like(m), 2));
    BAD(fx_one_hot(x, -1, FX_F32));
    BAD(fx_one_hot(i, 4, FX_TUPLE));
    BAD(fx_one_hot(NULL, 4, FX_F32));
    ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(contractions_and_reductions_refuse_what_does_not_fit) {
    const fx_dot_dims inner = {.n_contract = 1, .lhs_contract = DIMS(1), .rhs_contract = DIMS(0), .result = FX_TUPLE};
    fx_dot_dims twice = inner, outside = inner, none = inner, negative = inner, type = inner, precise = inner;
    twice.n_batch = 1, twice.lhs_batch = DIMS(1), twice.rhs_batch = DIMS(0);
    outside.lhs_contract = DIMS(5);
    none.rhs_contract = NULL;
    negative.n_contract = -1;
    type.result = FX_BOOL;
    precise.precision = (fx_precision)7;
    BAD(fx_dot_general(x, m, NULL));
    BAD(fx_dot_general(x, m, &twice));
    BAD(fx_dot_general(x, m, &outside));
    BAD(fx_dot_general(x, m, &none));
    BAD(fx_dot_general(x, m, &negative));
    BAD(fx_dot_general(x, m, &type));
    BAD(fx_dot_general(x, m, &precise));
    BAD(fx_dot_general(x, x, &inner));
    BAD(fx_dot_general(x, i, &inner));
    BAD(fx_dot_general(NULL, m, &inner));
    BAD(fx_matmul(x, x));
    BAD(fx_matmul(x, s));
    BAD(fx_matmul(x, i));
    BAD(fx_matmul(x, NULL));
    BAD(fx_convolution(x, m, NULL));
    BAD(fx_convolution(s, m, &(fx_conv_dims){0}));
    BAD(fx_convolution(x, m, &(fx_conv_dims){0}));
    BAD(fx_convolution(fx_zeros_like(fx_reshape(x, 3, DIMS(1, 2, 3))), fx_reshape(x, 3, DIMS(1, 2, 3)), &(fx_conv_dims){.feature_groups = -1}));
    BAD(fx_convolution(fx_reshape(x, 3, DIMS(1, 2, 3)), fx_reshape(x, 3, DIMS(1, 2, 3)), &(fx_conv_dims){.strides = DIMS(0)}));
    BAD(fx_reduce_sum(x, 1, AXES(2), false));
    BAD(fx_reduce_sum(x, 2, AXES(0, 0), false));
    BAD(fx_reduce_sum(b, -1, NULL, false));
    BAD(fx_reduce_prod(NULL, -1, NULL, false));
    BAD(fx_reduce_max(x, 1, AXES(-3), false));
    BAD(fx_reduce_min(NULL, -1, NULL, false));
    BAD(fx_reduce_and(x, -1, NULL, false));
    BAD(fx_reduce_or(x, -1, NULL, false));
    BAD(fx_reduce_mean(x, 1, AXES(2), false));
    BAD(fx_reduce_mean(NULL, -1, NULL, false));
    BAD(fx_reduce_var(NULL, -1, NULL, false));
    BAD(fx_argmax(x, 2, FX_S32));
    BAD(fx_argmax(x, 0, FX_F32));
    BAD(fx_argmin(s, 0, FX_S32));
    BAD(fx_argmin(NULL, 0, FX_S32));
    BAD(fx_logsumexp(x, 2, false));
    BAD(fx_logsumexp(NULL, 0, false));
    BAD(fx_softmax(x, 2));
    BAD(fx_softmax(i, 0));
    BAD(fx_log_softmax(s, 0));
    BAD(fx_cumulative(x, 2, FX_CUMSUM, false));
    BAD(fx_cumulative(x, 0, (fx_cumulative_kind)9, false));
    BAD(fx_cumulative(NULL, 0, FX_CUMSUM, false));
    BAD(fx_reduce_window(x, NULL, FX_WINDOW_SUM));
    BAD(fx_reduce_window(x, &(fx_window_dims){.window = DIMS(1, 0)}, FX_WINDOW_SUM));
    BAD(fx_reduce_window(x, &(fx_window_dims){.strides = DIMS(1, -1)}, FX_WINDOW_SUM));
    BAD(fx_reduce_window(x, &(fx_window_dims){0}, (fx_window_kind)9));
    BAD(fx_select_and_scatter(x, x, NULL, true));
    BAD(fx_select_and_scatter(x, m, &(fx_window_dims){0}, true));
    BAD(fx_select_and_scatter(x, NULL, &(fx_window_dims){0}, true));
    ck_assert_int_eq(failures, 0);
}
END_TEST

/* Regions: one that does as it should for one or two values, one that sets nothing, one of another type. */
static void same(fx_trace *r, const fx_val *in, fx_val *o, void *user) {
    (void)r, (void)user;
    o[0] = in[0];
}
static void nothing(fx_trace *r, const fx_val *in, fx_val *o, void *user) { (void)r, (void)in, (void)o, (void)user; }
static void less(fx_trace *r, const fx_val *in, fx_val *o, void *user) {
    (void)r, (void)user;
    o[0] = fx_lt(in[0], in[1]);
}
static void truth(fx_trace *r, const fx_val *in, fx_val *o, void *user) {
    (void)in, (void)user;
    o[0] = fx_scalar(r, FX_BOOL, 1);
}
static void outer_value(fx_trace *r, const fx_val *in, fx_val *o, void *user) {
    (void)r, (void)user;
    o[0] = fx_add(in[0], s);
}

START_TEST(control_flow_and_order_refuse_what_does_not_fit) {
    BAD(fx_sort(x, 2, false));
    BAD(fx_sort(NULL, 0, false));
    BAD(fx_sort(s, 0, false));
    BAD(fx_argsort(x, 2, false));
    BAD(fx_argsort(NULL, 0, false));
    BAD_OUT(fx_sort_by(1, NULL, 0, less, NULL, out));
    BAD_OUT(fx_sort_by(0, &x, 0, less, NULL, out));
    BAD_OUT(fx_sort_by(1, &x, 0, NULL, NULL, out));
    BAD_OUT(fx_sort_by(1, &x, 0, same, NULL, out));
    BAD_OUT(fx_sort_by(1, &x, 0, nothing, NULL, out));
    BAD_OUT(fx_sort_by(1, &x, 0, less, NULL, NULL));
    BAD_OUT(fx_sort_by(2, (const fx_val[]){x, m}, 0, less, NULL, out));
    BAD_OUT(fx_top_k(x, 4, &out[0], &out[1]));
    BAD_OUT(fx_top_k(x, -1, &out[0], &out[1]));
    BAD_OUT(fx_top_k(s, 1, &out[0], &out[1]));
    BAD_OUT(fx_top_k(NULL, 1, &out[0], &out[1]));
    BAD_OUT(fx_top_k(x, 1, NULL, &out[1]));
    BAD_OUT(fx_reduce_fn(1, &x, &s, 1, AXES(2), same, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, &x, -1, NULL, same, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, NULL, -1, NULL, same, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, &s, -1, NULL, NULL, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, &s, -1, NULL, nothing, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, &s, -1, NULL, outer_value, NULL, out));
    BAD_OUT(fx_reduce_fn(0, &x, &s, -1, NULL, same, NULL, out));
    BAD_OUT(fx_reduce_fn(1, &x, &s, -1, NULL, same, NULL, NULL));
    BAD_OUT(fx_cond(NULL, same, same, NULL, 1, &x, 1, out));
    BAD_OUT(fx_cond(x, same, same, NULL, 1, &x, 1, out));
    BAD_OUT(fx_cond(s, NULL, same, NULL, 1, &x, 1, out));
    BAD_OUT(fx_cond(s, same, nothing, NULL, 1, &x, 1, out));
    BAD_OUT(fx_cond(s, same, truth, NULL, 1, &x, 1, out));
    BAD_OUT(fx_cond(s, same, same, NULL, 1, NULL, 1, out));
    BAD_OUT(fx_cond(s, same, same, NULL, -1, &x, 1, out));
    BAD_OUT(fx_cond(s, same, same, NULL, 1, &x, 1, NULL));
    BAD_OUT(fx_switch(s, 1, (const fx_trace_fn[]){same}, NULL, 1, &x, 1, out));
    BAD_OUT(fx_switch(fx_scalar(t, FX_S32, 0), 0, (const fx_trace_fn[]){same}, NULL, 1, &x, 1, out));
    BAD_OUT(fx_switch(fx_scalar(t, FX_S32, 0), 1, NULL, NULL, 1, &x, 1, out));
    BAD_OUT(fx_while(truth, same, NULL, 1, NULL, out));
    BAD_OUT(fx_while(NULL, same, NULL, 1, &x, out));
    BAD_OUT(fx_while(truth, NULL, NULL, 1, &x, out));
    BAD_OUT(fx_while(same, same, NULL, 1, &x, out));
    BAD_OUT(fx_while(truth, truth, NULL, 1, &x, out));
    BAD_OUT(fx_while(truth, same, NULL, 0, &x, out));
    BAD_OUT(fx_while(truth, same, NULL, 1, &x, NULL));
    BAD_OUT(fx_scan(same, NULL, 1, &s, 1, &s, 0, 0, false, out));
    BAD_OUT(fx_scan(same, NULL, 1, &s, 1, &x, 0, 3, false, out));
    BAD_OUT(fx_scan(same, NULL, 1, &s, 1, NULL, 0, 0, false, out));
    BAD_OUT(fx_scan(same, NULL, 1, NULL, 1, &x, 0, 0, false, out));
    BAD_OUT(fx_scan(same, NULL, 1, &s, 0, NULL, 0, -1, false, out));
    BAD_OUT(fx_scan(NULL, NULL, 1, &s, 0, NULL, 0, 3, false, out));
    BAD_OUT(fx_scan(truth, NULL, 1, &s, 0, NULL, 0, 3, false, out));
    BAD_OUT(fx_scan(same, NULL, 1, &s, 0, NULL, 0, 3, false, NULL));
    BAD_OUT(fx_scan(same, NULL, -1, &s, 0, NULL, 0, 3, false, out));
    BAD_OUT(fx_optimization_barrier(1, NULL, out));
    BAD_OUT(fx_optimization_barrier(0, &x, out));
    BAD_OUT(fx_optimization_barrier(1, &x, NULL));
    ck_assert_int_eq(failures, 0);
}
END_TEST

START_TEST(random_numbers_refuse_what_does_not_fit) {
    BAD(fx_random_split(x, 2));
    BAD(fx_random_split(key, -1));
    BAD(fx_random_split(NULL, 2));
    BAD(fx_random_fold_in(key, NULL));
    BAD(fx_random_fold_in(key, x));
    BAD(fx_random_fold_in(i, fx_scalar(t, FX_U32, 1)));
    BAD(fx_random_bits(key, FX_SPEC(FX_F32, 2)));
    BAD(fx_random_bits(NULL, FX_SPEC(FX_U32, 2)));
    BAD(fx_random_uniform(key, FX_SPEC(FX_S32, 2), 0, 1));
    BAD(fx_random_uniform(x, FX_SPEC(FX_F32, 2), 0, 1));
    BAD(fx_random_uniform(NULL, FX_SPEC(FX_F32, 2), 0, 1));
    BAD(fx_random_normal(key, FX_SPEC(FX_S32, 2)));
    BAD(fx_random_normal(NULL, FX_SPEC(FX_F32, 2)));
    BAD(fx_random_bernoulli(key, 0.5, 9, DIMS(1, 1, 1, 1, 1, 1, 1, 1, 1)));
    BAD(fx_random_bernoulli(key, 0.5, 1, NULL));
    BAD(fx_random_bernoulli(NULL, 0.5, 0, NULL));
    BAD(fx_random_truncated_normal(x, -2, 2, FX_SPEC(FX_F32, 2)));
    BAD(fx_random_truncated_normal(NULL, -2, 2, FX_SPEC(FX_F32, 2)));
    BAD(fx_random_permutation(key, -1));
    BAD(fx_random_permutation(x, 4));
    BAD(fx_random_permutation(NULL, 4));
    ck_assert_int_eq(failures, 0);
}
END_TEST

/* The rest of trace.h: life of traces and functions. */
#define REFUSED(...)                                                                                      \
    do {                                                                                                  \
        fx_dtype d_;                                                                                      \
        (void)fx_dtype_parse("earlier error", &d_);                                                       \
        fx_status st_ = (__VA_ARGS__);                                                                    \
        ck_assert_msg(st_ != FX_OK, "accepted: %s", #__VA_ARGS__);                                        \
        ck_assert_msg(strlen(fx_last_error()) > 15 && !strstr(fx_last_error(), "earlier error"), "%s: %s", \
                      #__VA_ARGS__, fx_last_error());                                                     \
    } while (0)

static void add_one(fx_trace *r, const fx_val *in, fx_val *o, void *user) {
    (void)r, (void)user;
    o[0] = fx_add_c(in[0], 1);
}

START_TEST(traces_and_functions_refuse_what_is_absent) {
    fx_spec spec = FX_SPEC(FX_F32, 2), bad = {FX_F32, 9, {0}};
    fx_func *f = NULL;
    fx_val v = NULL;
    REFUSED(fx_trace_func(NULL, NULL, 1, &spec, 1, &f));
    REFUSED(fx_trace_func(add_one, NULL, -1, &spec, 1, &f));
    REFUSED(fx_trace_func(add_one, NULL, 1, NULL, 1, &f));
    REFUSED(fx_trace_func(add_one, NULL, 1, &bad, 1, &f));
    REFUSED(fx_trace_func(add_one, NULL, 1, &spec, 2, &f));
    REFUSED(fx_trace_func(add_one, NULL, 1, &spec, 1, NULL));
    REFUSED(fx_trace_begin(NULL));
    REFUSED(fx_trace_end(NULL, 0, NULL, &f));
    begin();
    REFUSED(fx_trace_end(t, 1, NULL, &f));
    begin();
    REFUSED(fx_trace_end(t, -1, &x, &f));
    begin();
    REFUSED(fx_trace_end(t, 1, &x, NULL));
    begin();
    v = x;
    fx_trace *old = t;
    begin();
    REFUSED(fx_trace_end(t, 1, &v, &f)); /* of another trace */
    fx_trace_abandon(old);
    fx_trace_abandon(NULL);
    BAD(fx_trace_fail(t, "%s is wrong with this", "something"));
    BAD((fx_scope_push(t, NULL), NULL));
    BAD((fx_dim(x, 2), NULL));
    ck_assert_ptr_null(fx_trace_fail(NULL, "nothing"));
    ck_assert(fx_trace_failed(NULL));
    ck_assert_ptr_null(fx_val_trace(NULL));
    ck_assert_int_eq(fx_dim(NULL, 0), 0);
    ck_assert_int_eq(fx_spec_of(NULL).dtype, FX_TUPLE);
    fx_scope_push(NULL, "a");
    fx_scope_pop(NULL);
    begin();
    fx_scope_pop(t);
    fx_trace_abandon(t);

    fx_func_unref(NULL);
    ck_assert_ptr_null(fx_func_ref(NULL));
    ck_assert_int_eq(fx_func_n_in(NULL), 0);
    ck_assert_int_eq(fx_func_n_out(NULL), 0);
    ck_assert_int_eq(fx_func_in_spec(NULL, 0).dtype, FX_TUPLE);
    ck_assert_int_eq(fx_func_out_spec(NULL, 0).dtype, FX_TUPLE);
    ck_assert_ptr_null(fx_func_print(NULL));
    REFUSED(fx_func_parse(NULL, 3, &f));
    REFUSED(fx_func_parse("graph", 5, &f));
    REFUSED(fx_func_parse("graph() { return }", 18, NULL));

    ck_assert_int_eq(fx_trace_func(add_one, NULL, 1, &spec, 1, &f), FX_OK);
    ck_assert_int_eq(fx_func_in_spec(f, 1).dtype, FX_TUPLE);
    ck_assert_int_eq(fx_func_out_spec(f, -1).dtype, FX_TUPLE);
    BAD_OUT(fx_call(t, NULL, &x, out));
    BAD_OUT(fx_call(t, f, NULL, out));
    BAD_OUT(fx_call(t, f, &x, out));
    BAD_OUT(fx_call(t, f, &x, NULL));
    fx_call(NULL, f, NULL, out);
    ck_assert_ptr_null(out[0]);
    fx_func_unref(f);
    ck_assert_int_eq(failures, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bad_trace");
    TCase *c = tcase_create("all");
    tcase_add_test(c, elementwise_ops_refuse_absent_operands_types_and_shapes);
    tcase_add_test(c, constants_refuse_bad_specs);
    tcase_add_test(c, shape_ops_refuse_what_does_not_fit);
    tcase_add_test(c, indexing_refuses_what_does_not_fit);
    tcase_add_test(c, contractions_and_reductions_refuse_what_does_not_fit);
    tcase_add_test(c, control_flow_and_order_refuse_what_does_not_fit);
    tcase_add_test(c, random_numbers_refuse_what_does_not_fit);
    tcase_add_test(c, traces_and_functions_refuse_what_is_absent);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
