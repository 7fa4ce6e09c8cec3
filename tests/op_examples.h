/* op_examples.h - a small valid graph or more for every op, as text: what tests of printing, evaluation, derivatives and
 * devices iterate. A structural op without an example here fails tests/test_print.c. Inputs of any finite values
 * are fine. Elementwise ops get theirs from the table: op_example_elementwise. */
#ifndef TESTS_OP_EXAMPLES_H
#define TESTS_OP_EXAMPLES_H

#include <stdio.h>
#include <string.h>

#include "core/graph/graph.h"

typedef struct op_example {
    fx_op op;
    const char *text;
} op_example;

#define SUM2 "graph(%a: f32[], %b: f32[]) { %c = add(%a, %b) return %c }"
#define LESS2 "graph(%a: f32[], %b: f32[], %i: s32[], %j: s32[]) { %c = lt(%a, %b) return %c }"
static const op_example op_examples[] = {
    {FX_OP_parameter, "graph(%x: f32[2,3], %y: s8[]) { return %y, %x, %y }"},
    {FX_OP_constant, "graph() { %c = constant() {dtype=f32, shape=[2,2], value=[1, -2.5, 3e-20, 0.1]} return %c }"},
    {FX_OP_constant, "graph() { %c = constant() {dtype=s64, shape=[], value=[-9223372036854775808]} return %c }"},
    {FX_OP_constant, "graph() { %c = constant() {dtype=bool, shape=[3], value=[true, false, true]} return %c }"},
    {FX_OP_iota, "graph() { %i = iota() {dim=1, shape=[2,3], dtype=s32} return %i }"},
    {FX_OP_iota, "graph() { %i = iota() {dim=0, shape=[5], dtype=f32} return %i }"},
    {FX_OP_convert, "graph(%x: f32[4]) { %y = convert(%x) {dtype=s8} return %y }"},
    {FX_OP_convert, "graph(%x: f32[4]) { %y = convert(%x) {dtype=bf16} return %y }"},
    {FX_OP_convert, "graph(%x: s32[4]) { %y = convert(%x) {dtype=bool} return %y }"},
    {FX_OP_bitcast_convert, "graph(%x: f32[4]) { %y = bitcast_convert(%x) {dtype=u32} return %y }"},
    {FX_OP_reduce_precision, "graph(%x: f32[4]) { %y = reduce_precision(%x) {exponent_bits=5, mantissa_bits=10} return %y }"},
    {FX_OP_stop_gradient, "graph(%x: f32[4]) { %y = stop_gradient(%x) return %y }"},
    {FX_OP_broadcast_in_dim, "graph(%x: f32[3,1]) { %y = broadcast_in_dim(%x) {shape=[2,3,4], dims=[1,2]} return %y }"},
    {FX_OP_broadcast_in_dim, "graph(%x: f32[]) { %y = broadcast_in_dim(%x) {shape=[2,2], dims=[]} return %y }"},
    {FX_OP_reshape, "graph(%x: f32[2,3]) { %y = reshape(%x) {shape=[3,2,1]} return %y }"},
    {FX_OP_transpose, "graph(%x: f32[2,3,4]) { %y = transpose(%x) {permutation=[2,0,1]} return %y }"},
    {FX_OP_slice, "graph(%x: f32[5,6]) { %y = slice(%x) {start=[1,0], limit=[4,6], strides=[1,4]} return %y }"},
    {FX_OP_pad, "graph(%x: f32[2,3], %v: f32[]) { %y = pad(%x, %v) {low=[1,-1], high=[0,2], interior=[2,1]} return %y }"},
    {FX_OP_concatenate, "graph(%x: f32[2,3], %y: f32[2,1]) { %z = concatenate(%x, %y, %x) {dim=1} return %z }"},
    {FX_OP_reverse, "graph(%x: f32[2,3]) { %y = reverse(%x) {dims=[0,1]} return %y }"},
    {FX_OP_windows, "graph(%x: f32[6], %v: f32[]) { %y = windows(%x, %v) {window=[3], strides=[2], low=[1], high=[1]} return %y }"},
    {FX_OP_dynamic_slice, "graph(%x: f32[5,6], %i: s32[], %j: s32[]) { %y = dynamic_slice(%x, %i, %j) {shape=[2,3]} return %y }"},
    {FX_OP_dynamic_update_slice,
     "graph(%x: f32[5], %u: f32[2], %i: s32[]) { %y = dynamic_update_slice(%x, %u, %i) return %y }"},
    {FX_OP_gather, "graph(%x: f32[5,3], %i: s32[4,1]) { %y = gather(%x, %i) {offset_dims=[1], collapsed_slice_dims=[0], "
                   "start_index_map=[0], index_vector_dim=1, slice_sizes=[1,3]} return %y }"},
    {FX_OP_gather, "graph(%x: f32[2,5], %i: s32[2,3]) { %y = gather(%x, %i) {collapsed_slice_dims=[1], start_index_map=[1], "
                   "operand_batching_dims=[0], indices_batching_dims=[0], index_vector_dim=2, slice_sizes=[1,1]} return %y }"},
    {FX_OP_scatter, "graph(%x: f32[5,3], %i: s32[4,1], %u: f32[4,3]) { %y = scatter(%x, %i, %u) {kind=add, "
                    "update_window_dims=[1], inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1} return %y }"},
    {FX_OP_scatter, "graph(%x: f32[2,5], %i: s32[2,3], %u: f32[2,3]) { %y = scatter(%x, %i, %u) {kind=set, "
                    "inserted_window_dims=[1], scatter_dims=[1], operand_batching_dims=[0], indices_batching_dims=[0], "
                    "index_vector_dim=2} return %y }"},
    {FX_OP_dot_general, "graph(%a: f32[2,3,4], %b: f32[2,4,5]) { %c = dot_general(%a, %b) {lhs_batch=[0], rhs_batch=[0], "
                        "lhs_contract=[2], rhs_contract=[1]} return %c }"},
    {FX_OP_dot_general, "graph(%a: bf16[3,4], %b: bf16[5,4]) { %c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[1], "
                        "dtype=f32, precision=highest} return %c }"},
    {FX_OP_convolution, "graph(%x: f32[1,2,5,6], %w: f32[3,2,3,2]) { %y = convolution(%x, %w) {strides=[2,1], low=[1,0], "
                        "high=[1,1]} return %y }"},
    {FX_OP_convolution, "graph(%x: f32[1,5,4], %w: f32[3,2,4]) { %y = convolution(%x, %w) {lhs_spec=[0,2,1], rhs_spec=[2,1,0], "
                        "out_spec=[0,2,1], feature_groups=2, lhs_dilation=[2], rhs_dilation=[2], window_reversal=[1]} return %y }"},
    {FX_OP_reduce, "graph(%x: f32[2,3,4]) { %y = reduce(%x) {kind=sum, dims=[0,2]} return %y }"},
    {FX_OP_reduce, "graph(%x: bool[2,3]) { %y = reduce(%x) {kind=and, dims=[1]} return %y }"},
    {FX_OP_reduce, "graph(%x: s32[2,3]) { %y = reduce(%x) {kind=max, dims=[0]} return %y }"},
    {FX_OP_reduce_fn, "graph(%x: f32[2,3], %i: f32[]) { %t = reduce_fn(%x, %i, " SUM2 ") {dims=[1]} : (f32[2]) "
                      "%y = project(%t) {index=0} return %y }"},
    {FX_OP_arg_reduce, "graph(%x: f32[2,3]) { %y = arg_reduce(%x) {kind=max, dim=1, dtype=s32} return %y }"},
    {FX_OP_reduce_window, "graph(%x: f32[6]) { %y = reduce_window(%x) {kind=max, window=[3], strides=[2], low=[1], high=[0]} return %y }"},
    {FX_OP_reduce_window, "graph(%x: f32[4,6]) { %y = reduce_window(%x) {kind=sum, window=[2,2], lhs_dilation=[1,2], "
                          "rhs_dilation=[2,1]} return %y }"},
    {FX_OP_select_and_scatter, "graph(%x: f32[4,6], %s: f32[2,3]) { %y = select_and_scatter(%x, %s) {kind=max, window=[2,2], "
                               "strides=[2,2]} return %y }"},
    {FX_OP_cumulative, "graph(%x: f32[2,5]) { %y = cumulative(%x) {kind=sum, dim=1, reverse=1} return %y }"},
    {FX_OP_cumulative, "graph(%x: f32[2,5]) { %y = cumulative(%x) {kind=max, dim=0} return %y }"},
    {FX_OP_sort, "graph(%x: f32[2,5], %i: s32[2,5]) { %t = sort(%x, %i, " LESS2 ") {dim=1} "
                 "%y = project(%t) {index=0} %j = project(%t) {index=1} return %y, %j }"},
    {FX_OP_top_k, "graph(%x: f32[2,5]) { %t = top_k(%x) {k=3} : (f32[2,3], s32[2,3]) %y = project(%t) {index=0} "
                  "%i = project(%t) {index=1} return %y, %i }"},
    {FX_OP_project, "graph(%x: f32[2], %y: s8[]) { %t = optimization_barrier(%x, %y) %a = project(%t) {index=1} return %a }"},
    {FX_OP_call, "graph(%x: f32[2]) { %t = call(%x, graph(%a: f32[2]) { %b = exp(%a) return %b, %a }) {kind=remat} "
                 "%y = project(%t) {index=0} return %y }"},
    {FX_OP_call, "graph(%x: f32[]) { %t = call(%x, graph(%a: f32[]) { %b = mul(%a, %a) return %b }, "
                 "graph(%a: f32[], %t: f32[]) { %b = mul(%a, %a) %c = mul(%a, %t) %d = add(%c, %c) return %b, %d }) {kind=custom_jvp} "
                 "%y = project(%t) {index=0} return %y }"},
    {FX_OP_call, "graph(%x: f32[]) { %t = call(%x, graph(%a: f32[]) { %b = sin(%a) return %b }, "
                 "graph(%a: f32[]) { %b = sin(%a) %c = cos(%a) return %b, %c }, "
                 "graph(%r: f32[], %d: f32[]) { %e = mul(%r, %d) return %e }) {kind=custom_vjp, n_residual=1} "
                 "%y = project(%t) {index=0} return %y }"},
    {FX_OP_cond, "graph(%i: s32[], %x: f32[2]) { %t = cond(%i, %x, graph(%a: f32[2]) { %b = exp(%a) return %b }, "
                 "graph(%a: f32[2]) { %b = neg(%a) return %b }) %y = project(%t) {index=0} return %y }"},
    {FX_OP_while, "graph(%x: f32[], %n: s32[]) { %zero = constant() {dtype=s32, shape=[], value=[0]} "
                  "%five = constant() {dtype=s32, shape=[], value=[5]} %t = while(%zero, %x, %five, "
                  "graph(%i: s32[], %a: f32[], %m: s32[]) { %c = lt(%i, %m) return %c }, "
                  "graph(%i: s32[], %a: f32[], %m: s32[]) { %one = constant() {dtype=s32, shape=[], value=[1]} "
                  "%j = add(%i, %one) %b = sin(%a) return %j, %b }) {n_carry=2} "
                  "%y = project(%t) {index=1} return %y }"},
    {FX_OP_scan, "graph(%k: f32[], %c: f32[], %xs: f32[4]) { %t = scan(%k, %c, %xs, "
                 "graph(%a: f32[], %b: f32[], %x: f32[]) { %m = mul(%a, %x) %s = add(%b, %m) return %s, %m }) "
                 "{n_consts=1, n_carry=1, length=4, reverse=1} : (f32[], f32[4]) "
                 "%y = project(%t) {index=0} %ys = project(%t) {index=1} return %y, %ys }"},
    {FX_OP_optimization_barrier,
     "graph(%x: f32[2], %y: s8[]) { %t = optimization_barrier(%x, %y) %a = project(%t) {index=0} return %a }"},
};
#undef SUM2
#undef LESS2
enum { N_OP_EXAMPLES = sizeof op_examples / sizeof *op_examples };

/* Writes a graph that applies an elementwise op to parameters x, y, z of [2,3]; false when the op doesn't take the type. */
static inline bool op_example_elementwise(fx_op op, fx_dtype dtype, char *text, size_t size) {
    const fx_op_info *info = fx_op_get(op);
    const char *d = fx_dtype_name(dtype), *first = op == FX_OP_select ? "bool" : d;
    if (info->op_class == FX_CLASS_STRUCTURAL || !fx_op_takes(op, dtype))
        return false;
    if (info->n_in == 1)
        snprintf(text, size, "graph(%%x: %s[2,3]) { %%r = %s(%%x) return %%r }", d, info->name);
    else if (info->n_in == 2)
        snprintf(text, size, "graph(%%x: %s[2,3], %%y: %s[2,3]) { %%r = %s(%%x, %%y) return %%r }", d, d, info->name);
    else
        snprintf(text, size, "graph(%%x: %s[2,3], %%y: %s[2,3], %%z: %s[2,3]) { %%r = %s(%%x, %%y, %%z) return %%r }", first, d,
                 d, info->name);
    return true;
}

#endif
