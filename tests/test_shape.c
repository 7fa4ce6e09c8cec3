/* test_shape.c - every op refuses operands and attributes that don't fit, with a text that names place, op, what was expected and
 * what was got. An op without a refused case here fails. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "op_examples.h"

#define BIG "72057594037927937" /* 2^56 + 1 */
#define N1 "graph(%a: f32[]) { %b = neg(%a) return %b }"
#define N2 "graph(%a: f32[], %b: f32[]) { %c = add(%a, %b) return %c }"

/* `body` is what follows "graph(%x: f32[2,3], %s: f32[], %i: s32[], %n: s32[4,1], %p: bool[2,3]) {". */
static const struct {
    fx_op op;
    const char *body, *error;
} cases[] = {
    {FX_OP_parameter, "%r = parameter() {index=0}", "place in the list"},
    {FX_OP_constant, "%r = constant() {dtype=f32, value=[1]}", "attribute shape; expected; got none"},
    {FX_OP_constant, "%r = constant() {dtype=f32, shape=[2]}", "attribute value; expected; got none"},
    {FX_OP_constant, "%r = constant() {dtype=s8, shape=[4], value=[1,2,3]}", "expected 1 bytes (one element) or 4 (all); got 3"},
    {FX_OP_constant, "%r = constant() {dtype=s8, shape=[2], value=[]}", "got 0"},
    {FX_OP_iota, "%r = iota() {dtype=s32, shape=[2], dim=1}", "attribute dim; expected 0 to 0; got 1"},
    {FX_OP_iota, "%r = iota() {dtype=bool, shape=[2], dim=0}", "number type"},
    {FX_OP_iota, "%r = iota() {dtype=f32, shape=[], dim=0}", "a dimension"},
    {FX_OP_iota, "%r = iota() {dtype=f32, shape=[4294967296,4294967296], dim=0}", "a size that a machine can address"},
    {FX_OP_iota, "%r = iota() {dtype=f32, shape=[0,4294967296,4294967296], dim=0}", "a size that a machine can address"},
    {FX_OP_convert, "%r = convert(%x)", "attribute dtype; expected; got none"},
    {FX_OP_bitcast_convert, "%r = bitcast_convert(%x) {dtype=f16}", "a type of the width of f32"},
    {FX_OP_bitcast_convert, "%r = bitcast_convert(%p) {dtype=u8}", "bool only to bool"},
    {FX_OP_reduce_precision, "%r = reduce_precision(%i) {exponent_bits=5, mantissa_bits=5}", "expected float"},
    {FX_OP_reduce_precision, "%r = reduce_precision(%x) {exponent_bits=0, mantissa_bits=5}", "expected 1 to 11; got 0"},
    {FX_OP_stop_gradient, "%r = stop_gradient(%x, %x)", "operands; expected 1; got 2"},
    {FX_OP_broadcast_in_dim, "%r = broadcast_in_dim(%x) {shape=[2,3,4], dims=[0]}", "one entry per dimension"},
    {FX_OP_broadcast_in_dim, "%r = broadcast_in_dim(%x) {shape=[2,4], dims=[0,1]}", "operand dimension 1; expected 1 or the result's 4; got 3"},
    {FX_OP_broadcast_in_dim, "%r = broadcast_in_dim(%x) {shape=[2,3], dims=[0,0]}", "distinct dimensions"},
    {FX_OP_broadcast_in_dim, "%r = broadcast_in_dim(%x) {shape=[2,3], dims=[0,2]}", "a dimension below 2"},
    {FX_OP_broadcast_in_dim, "%r = broadcast_in_dim(%x) {shape=[2,-3], dims=[0,1]}", "got -3"},
    {FX_OP_reshape, "%r = reshape(%x) {shape=[7]}", "expected 6 elements as in f32[2,3]; got f32[7]"},
    {FX_OP_transpose, "%r = transpose(%x) {permutation=[0]}", "expected 2 dimensions, each once; got 1"},
    {FX_OP_transpose, "%r = transpose(%x) {permutation=[1,1]}", "distinct"},
    {FX_OP_transpose, "%r = transpose(%x)", "attribute permutation; expected; got none"},
    {FX_OP_slice, "%r = slice(%x) {start=[0,2], limit=[2,1]}", "0 <= start <= limit <= 3; got 2 and 1"},
    {FX_OP_slice, "%r = slice(%x) {start=[0,0], limit=[2,4]}", "got 0 and 4"},
    {FX_OP_slice, "%r = slice(%x) {start=[0,0], limit=[2,3], strides=[1,0]}", "attribute strides[1]"},
    {FX_OP_slice, "%r = slice(%x) {start=[0], limit=[2,3]}", "attribute start; expected 2 values; got 1"},
    {FX_OP_pad, "%r = pad(%x, %i) {low=[0,0], high=[0,0]}", "operand 1; expected f32[]; got s32[]"},
    {FX_OP_pad, "%r = pad(%x, %s) {low=[-3,0], high=[0,0]}", "leaves a size of 0 or more; got -1"},
    {FX_OP_pad, "%r = pad(%x, %s) {low=[0,0], high=[0,0], interior=[0,-1]}", "attribute interior[1]"},
    {FX_OP_pad, "%r = pad(%x, %s) {low=[0,0], high=[0,0], interior=[0,50000000000000000]}", "below 2^56"},
    {FX_OP_pad, "%r = pad(%x, %s) {low=[36028797018963968,36028797018963968], high=[0,0]}", "a machine can address"},
    {FX_OP_concatenate, "%r = concatenate() {dim=0}", "at least one"},
    {FX_OP_concatenate, "%r = concatenate(%x, %n) {dim=0}", "operand 1; expected f32[2,3] but for dimension 0; got s32[4,1]"},
    {FX_OP_concatenate, "%r = concatenate(%s, %s) {dim=0}", "attribute dim"},
    {FX_OP_reverse, "%r = reverse(%x) {dims=[2]}", "a dimension below 2; got 2"},
    {FX_OP_windows, "%r = windows(%x, %s) {window=[2,0]}", "attribute window[1]"},
    {FX_OP_windows, "%r = windows(%x, %s) {window=[1," BIG "]}", "attribute window[1]"},
    {FX_OP_dynamic_slice, "%r = dynamic_slice(%x, %i) {shape=[1,1]}", "operands; expected 3"},
    {FX_OP_dynamic_slice, "%r = dynamic_slice(%x, %i, %s) {shape=[1,1]}", "operand 2; expected an integer scalar"},
    {FX_OP_dynamic_slice, "%r = dynamic_slice(%x, %i, %i) {shape=[1,4]}", "a window that fits in f32[2,3]"},
    {FX_OP_dynamic_update_slice, "%r = dynamic_update_slice(%x, %s, %i, %i)", "an update that fits"},
    {FX_OP_dynamic_update_slice, "%r = dynamic_update_slice(%x)", "an array, an update and indices"},
    {FX_OP_gather, "%r = gather(%x, %x) {index_vector_dim=1, slice_sizes=[1,1]}", "integer indices"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=3, slice_sizes=[1,1]}", "attribute index_vector_dim; expected 0 to 2"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0,1], slice_sizes=[1,1]}", "the length of an index vector; got 2"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0], collapsed_slice_dims=[0], offset_dims=[1], slice_sizes=[1,4]}",
     "attribute slice_sizes[1]; expected at most 3; got 4"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0], collapsed_slice_dims=[0], offset_dims=[1], slice_sizes=[2,3]}",
     "1 as the dimension is dropped"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0], collapsed_slice_dims=[0], slice_sizes=[1,3]}",
     "attribute offset_dims; expected 1"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0], collapsed_slice_dims=[1,0], slice_sizes=[1,1]}",
     "ascending"},
    {FX_OP_gather, "%r = gather(%x, %n) {index_vector_dim=1, start_index_map=[0], collapsed_slice_dims=[0], operand_batching_dims=[0], "
                   "indices_batching_dims=[0], slice_sizes=[1,1]}", "expected no dimension in both; got 0"},
    {FX_OP_scatter, "%r = scatter(%x, %n, %x) {kind=add, index_vector_dim=1, scatter_dims=[0], inserted_window_dims=[0], update_window_dims=[1]}",
     "operand 2 dimension 0; expected the indices' 4; got 2"},
    {FX_OP_scatter, "%r = scatter(%x, %n, %x) {kind=sum, index_vector_dim=1, scatter_dims=[0]}", "expected one of set, add, mul, min, max; got sum"},
    {FX_OP_scatter, "%r = scatter(%x, %n, %p) {kind=add, index_vector_dim=1, scatter_dims=[0]}", "one type of numbers"},
    {FX_OP_dot_general, "%r = dot_general(%x, %x) {lhs_contract=[0], rhs_contract=[1]}", "expected equal sizes"},
    {FX_OP_dot_general, "%r = dot_general(%x, %x) {lhs_contract=[0], rhs_contract=[]}", "as many of both; got 1 and 0"},
    {FX_OP_dot_general, "%r = dot_general(%x, %x) {lhs_contract=[0], rhs_contract=[0], lhs_batch=[0], rhs_batch=[0]}", "in batch or contract"},
    {FX_OP_dot_general, "%r = dot_general(%x, %p) {lhs_contract=[0], rhs_contract=[0]}", "one type of numbers"},
    {FX_OP_dot_general, "%r = dot_general(%x, %x) {lhs_contract=[0], rhs_contract=[0], dtype=s32}", "expected float for float"},
    {FX_OP_convolution, "%r = convolution(%x, %s)", "equal ranks of 2 or more"},
    {FX_OP_convolution, "%r = convolution(%x, %x) {feature_groups=2, batch_groups=2}", "feature_groups or batch_groups of 1"},
    {FX_OP_convolution, "%r = convolution(%x, %x) {feature_groups=2}", "groups that divide"},
    {FX_OP_convolution, "%r = convolution(%x, %x) {lhs_spec=[0,0]}", "distinct"},
    {FX_OP_reduce, "%r = reduce(%x) {kind=and, dims=[0]}", "expected bool or integers for and; got f32[2,3]"},
    {FX_OP_reduce, "%r = reduce(%p) {kind=sum, dims=[0]}", "expected numbers for sum"},
    {FX_OP_reduce, "%r = reduce(%x) {kind=sum, dims=[0,0]}", "distinct"},
    {FX_OP_reduce, "%r = reduce(%x) {dims=[0]}", "attribute kind; expected; got none"},
    {FX_OP_reduce_fn, "%r = reduce_fn(%x, %i, " N2 ") {dims=[0]}", "operand 1; expected f32[]; got s32[]"},
    {FX_OP_reduce_fn, "%r = reduce_fn(%x, %s, " N1 ") {dims=[0]}", "region parameters; expected 2 scalars and no captured values; got 1"},
    {FX_OP_arg_reduce, "%r = arg_reduce(%x) {kind=max, dim=2}", "attribute dim"},
    {FX_OP_arg_reduce, "%r = arg_reduce(%x) {kind=max, dim=1, dtype=f32}", "an integer type"},
    {FX_OP_arg_reduce, "%e = slice(%x) {start=[0,0], limit=[2,0]} %r = arg_reduce(%e) {kind=max, dim=1}", "elements along dimension 1"},
    {FX_OP_reduce_window, "%r = reduce_window(%x) {kind=max, window=[1]}", "attribute window; expected 2 values; got 1"},
    {FX_OP_reduce_window, "%r = reduce_window(%x) {kind=max, window=[1,1], low=[0,36028797018963968], high=[0,36028797018963968]}", "below 2^56"},
    {FX_OP_select_and_scatter, "%r = select_and_scatter(%x, %x) {kind=max, window=[2,2]}", "the shape of the windows, f32[1,2]"},
    {FX_OP_cumulative, "%r = cumulative(%x) {kind=sum, dim=0, reverse=2}", "attribute reverse; expected 0 to 1; got 2"},
    {FX_OP_sort, "%r = sort(%x, " N2 ") {dim=0}", "region results; expected one bool[]; got 1, first f32[]"},
    {FX_OP_sort, "%r = sort(%x, %n, " N2 ") {dim=0}", "expected equal shapes"},
    {FX_OP_top_k, "%r = top_k(%x) {k=4}", "attribute k; expected 0 to 3; got 4"},
    {FX_OP_top_k, "%r = top_k(%s) {k=0}", "numbers with a dimension"},
    {FX_OP_project, "%r = project(%x) {index=0}", "expected a tuple; got f32[2,3]"},
    {FX_OP_project, "%t = optimization_barrier(%x) %r = project(%t) {index=1}", "attribute index; expected 0 to 0; got 1"},
    {FX_OP_call, "%r = call(%x, " N1 ")", "region 0 parameter 0; expected f32[2,3]; got f32[]"},
    {FX_OP_call, "%r = call(%s)", "regions; expected 1"},
    {FX_OP_call, "%r = call(%s, " N1 ", " N1 ") {kind=custom_jvp}", "custom_jvp; expected 2 parameters and 2 results; got 1 and 1"},
    {FX_OP_call, "%r = call(%s, " N1 ", " N1 ", " N1 ") {kind=custom_vjp, n_residual=1}", "custom_vjp; expected 2 results forward"},
    {FX_OP_cond, "%r = cond(%s, " N1 ")", "operand 0; expected s32[]; got f32[]"},
    {FX_OP_cond, "%r = cond(%i, %s, " N1 ", " N2 ")", "region 1 parameters; expected 1; got 2"},
    {FX_OP_while, "%r = while(%s, " N1 ", " N1 ")", "region 0 result 0; expected bool[]; got f32[]"},
    {FX_OP_while, "%r = while(" N1 ", " N1 ")", "region 0 parameters; expected 0"},
    {FX_OP_scan, "%r = scan(%s, " N1 ") {n_carry=1}", "attribute length; expected; got none"},
    {FX_OP_scan, "%r = scan(%s, %s, " N2 ") {n_carry=1}", "operand 1; expected a dimension to scan over"},
    {FX_OP_scan, "%r = scan(%s, %x, " N2 ") {n_carry=1}", "region parameter 1; expected f32[3]; got f32[]"},
    {FX_OP_scan, "%r = scan(%s, " N1 ") {n_carry=1, length=-1}", "attribute length"},
    {FX_OP_optimization_barrier, "%r = optimization_barrier()", "results; expected at least one; got none"},
    {FX_OP_optimization_barrier, "%t = optimization_barrier(%x) %r = optimization_barrier(%t)", "expected an array; got the tuple"},
    {FX_OP_select, "%r = select(%x, %x, %x)", "operand 0; expected bool[2,3]; got f32[2,3]"},
    {FX_OP_select, "%r = select(%p, %x, %p)", "operands 1 and 2; expected equal types and shapes"},
    {FX_OP_clamp, "%r = clamp(%s, %x, %s)", "expected equal types and shapes"},
    {FX_OP_add, "%r = add(%x, %s)", "f32[2,3] and f32[]; broadcast one"},
    {FX_OP_add, "%r = add(%s, %i)", "convert one"},
    {FX_OP_add, "%r = add(%p, %p)", "operand 0; expected signed unsigned float; got bool[2,3]"},
    {FX_OP_and, "%r = and(%x, %x)", "expected bool signed unsigned; got f32[2,3]"},
    {FX_OP_exp, "%r = exp(%i)", "expected float; got s32[]; convert it"},
};

START_TEST(every_structural_op_refuses_what_does_not_fit) {
    bool has[FX_OP_COUNT] = {false};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048], prefix[64];
        snprintf(text, sizeof text, "graph(%%x: f32[2,3], %%s: f32[], %%i: s32[], %%n: s32[4,1], %%p: bool[2,3]) {\n%s return %%x }",
                 cases[i].body);
        snprintf(prefix, sizeof prefix, "graph text:2: %s: ", fx_op_get(cases[i].op)->name);
        fx_graph *g;
        ck_assert_msg(fx_graph_parse(text, strlen(text), &g) == FX_INVALID_ARGUMENT, "accepted: %s", cases[i].body);
        ck_assert_msg(!strncmp(fx_last_error(), prefix, strlen(prefix)), "%s: %s", cases[i].body, fx_last_error());
        ck_assert_msg(strstr(fx_last_error(), cases[i].error) != NULL, "%s: %s", cases[i].body, fx_last_error());
        has[cases[i].op] = true;
    }
    for (int op = 0; op < FX_OP_COUNT; op++)
        ck_assert_msg(has[op] || fx_op_get((fx_op)op)->op_class != FX_CLASS_STRUCTURAL, "no refused case of %s",
                      fx_op_get((fx_op)op)->name);
}
END_TEST

START_TEST(elementwise_ops_take_their_types_and_one_shape) {
    for (int op = 0; op < FX_OP_COUNT; op++) {
        const fx_op_info *info = fx_op_get((fx_op)op);
        if (info->op_class == FX_CLASS_STRUCTURAL)
            continue;
        for (int d = 0; d < FX_DTYPE_COUNT; d++) {
            fx_graph *g = fx_graph_new(NULL);
            fx_spec s = FX_SPEC((fx_dtype)d, 2, 3), b = FX_SPEC(FX_BOOL, 2, 3), other = FX_SPEC((fx_dtype)d, 3, 2);
            fx_node *x = fx_graph_param(g, &s), *p = fx_graph_param(g, &b), *y = fx_graph_param(g, &other);
            fx_node *good[3] = {op == FX_OP_select ? p : x, x, x}, *bad[3] = {x, y, y};
            fx_node *n = fx_b_elementwise(g, (fx_op)op, info->n_in, good);
            ck_assert_int_eq(n != NULL, fx_op_takes((fx_op)op, (fx_dtype)d));
            if (n) {
                ck_assert_int_eq(n->spec.dtype, info->bool_result ? FX_BOOL : (fx_dtype)d);
                ck_assert_int_eq(n->spec.rank, 2);
                ck_assert(info->n_in == 1 || !fx_b_elementwise(g, (fx_op)op, info->n_in, bad));
            } else
                ck_assert_ptr_nonnull(strstr(g->error, info->name));
            fx_graph_unref(g);
        }
    }
}
END_TEST

static const fx_node *last_of(const char *text, fx_graph **g) {
    ck_assert_msg(fx_graph_parse(text, strlen(text), g) == FX_OK, "%s\n%s", fx_last_error(), text);
    return (*g)->results[0];
}

START_TEST(defaults_are_written_out) {
    fx_graph *g;
    const fx_node *n = last_of("graph(%x: f32[2,3]) { %r = slice(%x) {start=[0,0], limit=[1,2]} return %r }", &g);
    ck_assert_int_eq(FX_GET_LIST(n, strides, NULL)[1], 1);
    fx_graph_unref(g);
    n = last_of("graph(%x: f32[2,3], %y: f32[4,5]) { %r = dot_general(%x, %y) return %r }", &g);
    ck_assert_int_eq(n->spec.rank, 4);
    ck_assert_int_eq(FX_GET_INT(n, precision), FX_SYM_default);
    ck_assert_int_eq(FX_GET_INT(n, dtype), FX_F32);
    ck_assert_ptr_nonnull(fx_attr_get(n, FX_ATTR_lhs_batch));
    fx_graph_unref(g);
    n = last_of("graph(%x: f32[1,2,8,9], %w: f32[3,2,3,3]) { %r = convolution(%x, %w) {strides=[2,1]} return %r }", &g);
    ck_assert_int_eq(n->spec.dims[2], 3);
    ck_assert_int_eq(n->spec.dims[3], 7);
    ck_assert_int_eq(FX_GET_LIST(n, rhs_dilation, NULL)[1], 1);
    ck_assert_int_eq(FX_GET_LIST(n, out_spec, NULL)[3], 3);
    fx_graph_unref(g);
}
END_TEST

START_TEST(windows_count_positions_as_stablehlo_does) {
    fx_graph *g;
    const fx_node *n = last_of("graph(%x: f32[5,2]) { %r = reduce_window(%x) {kind=sum, window=[3,3], strides=[2,1], low=[1,0], "
                               "high=[0,0], lhs_dilation=[2,1], rhs_dilation=[2,1]} return %r }", &g);
    ck_assert_int_eq(n->spec.dims[0], 3); /* (9 + 1 - 5) / 2 + 1 */
    ck_assert_int_eq(n->spec.dims[1], 0); /* the window doesn't fit */
    fx_graph_unref(g);
    n = last_of("graph(%x: f32[0,2]) { %r = reduce_window(%x) {kind=sum, window=[1,1], low=[1,0], high=[1,-2]} return %r }", &g);
    ck_assert_int_eq(n->spec.dims[0], 2);
    ck_assert_int_eq(n->spec.dims[1], 0);
    fx_graph_unref(g);
}
END_TEST

int main(void) {
    Suite *s = suite_create("shape");
    TCase *c = tcase_create("shape");
    suite_add_tcase(s, c);
    tcase_add_test(c, every_structural_op_refuses_what_does_not_fit);
    tcase_add_test(c, elementwise_ops_take_their_types_and_one_shape);
    tcase_add_test(c, defaults_are_written_out);
    tcase_add_test(c, windows_count_positions_as_stablehlo_does);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
