/* test_contract.c - products under each schedule: a few shapes of every transposition, views as operands, epilogues,
 * convolutions, empty extents. test_contract_shapes.c has the many. */
#include "contract_check.h"

static void each(int device, const char *text, double tolerance) {
    contract_check(&devices[device], text, FX_CONTRACT_NAIVE, tolerance, NULL);
    contract_check(&devices[device], text, FX_CONTRACT_SUBGROUP, tolerance, NULL);
}

/* Also in shared memory, which software devices compile slowly. */
static void each_shared(int device, const char *text, double tolerance) {
    each(device, text, tolerance);
    contract_check(&devices[device], text, FX_CONTRACT_SHARED, tolerance, NULL);
}

START_TEST(transpositions_agree) {
    char text[400];
    for (int t = 0; t < 4; t++) {
        product_text(text, sizeof text, "f32", 0, 33, 34, 20, t & 1, t & 2, false);
        each(_i, text, 0);
    }
    product_text(text, sizeof text, "f32", 3, 17, 31, 13, true, false, false);
    each_shared(_i, text, 0);
    product_text(text, sizeof text, "bf16", 2, 18, 40, 22, false, true, true);
    each(_i, text, 0);
}
END_TEST

START_TEST(empty_extents_agree) {
    static const int sizes[][3] = {{0, 4, 3}, {4, 0, 3}, {5, 6, 0}};
    char text[400];
    for (int i = 0; i < 3; i++) {
        product_text(text, sizeof text, "f32", 0, sizes[i][0], sizes[i][1], sizes[i][2], false, false, false);
        each(_i, text, 0);
    }
}
END_TEST

START_TEST(views_as_operands_agree) {
    /* attention's queries and keys, sliced from one projection; a concatenation; a padded, reversed operand */
    each(_i,
         "graph(%x: f32[2,19,72]) { %r = reshape(%x) {shape=[2,19,3,3,8]} "
         "%q0 = slice(%r) {start=[0,0,0,0,0], limit=[2,19,1,3,8], strides=[1,1,1,1,1]} "
         "%k0 = slice(%r) {start=[0,0,1,0,0], limit=[2,19,2,3,8], strides=[1,1,1,1,1]} "
         "%q = reshape(%q0) {shape=[2,19,3,8]} %k = reshape(%k0) {shape=[2,19,3,8]} "
         "%c = dot_general(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} return %c }",
         0);
    each(_i,
         "graph(%x: f32[9,10], %y: f32[9,7], %w: f32[17,21]) { %a = concatenate(%x, %y) {dim=1} "
         "%c = dot_general(%a, %w) {lhs_contract=[1], rhs_contract=[0]} return %c }",
         0);
    each(_i,
         "graph(%x: f32[12,10], %w: f32[2,7,20], %f: f32[]) { %p = pad(%x, %f) {low=[1,2], high=[0,2], interior=[0,0]} "
         "%z = reverse(%p) {dims=[0,1]} %a = reshape(%z) {shape=[13,2,7]} "
         "%c = dot_general(%a, %w) {lhs_contract=[1,2], rhs_contract=[0,1]} return %c }",
         0);
}
END_TEST

START_TEST(epilogues_agree) {
    for (int n = 33; n <= 34; n++) {
        char text[1200];
        snprintf(text, sizeof text,
                 "graph(%%a: f32[21,16], %%b: f32[16,%d], %%v: f32[%d], %%r: f32[21,%d]) { "
                 "%%c = dot_general(%%a, %%b) {lhs_contract=[1], rhs_contract=[0]} "
                 "%%w = broadcast_in_dim(%%v) {shape=[21,%d], dims=[1]} %%h = add(%%c, %%w) "
                 "%%t = tanh(%%h) %%s = add(%%t, %%r) return %%h, %%s }",
                 n, n, n, n);
        each(_i, text, 1e-6);
        snprintf(text, sizeof text,
                 "graph(%%a: f16[21,16], %%b: f16[16,%d], %%r: f32[21,%d]) { "
                 "%%c = dot_general(%%a, %%b) {lhs_contract=[1], rhs_contract=[0]} "
                 "%%w = convert(%%c) {dtype=f32} %%s = add(%%w, %%r) %%z = convert(%%s) {dtype=bf16} return %%z }",
                 n, n);
        each(_i, text, 0);
    }
}
END_TEST

START_TEST(convolutions_agree) {
    each(_i,
         "graph(%x: f32[2,3,7,6], %w: f32[18,3,3,2]) { %y = convolution(%x, %w) {strides=[2,1], low=[1,0], "
         "high=[1,1]} return %y }",
         0);
    each(_i,
         "graph(%x: f32[2,7,6,4], %w: f32[3,3,4,20]) { %y = convolution(%x, %w) {lhs_spec=[0,3,1,2], "
         "rhs_spec=[3,2,0,1], out_spec=[0,3,1,2], low=[1,1], high=[1,1]} return %y }",
         0);
    each(_i,
         "graph(%x: f32[1,5,4], %w: f32[3,2,4]) { %y = convolution(%x, %w) {lhs_spec=[0,2,1], "
         "rhs_spec=[2,1,0], out_spec=[0,2,1], feature_groups=2, lhs_dilation=[2], rhs_dilation=[2], "
         "window_reversal=[1]} return %y }",
         0);
}
END_TEST

static void add(TCase *c, int n) {
    tcase_add_loop_test(c, transpositions_agree, 0, n);
    tcase_add_loop_test(c, empty_extents_agree, 0, n);
    tcase_add_loop_test(c, views_as_operands_agree, 0, n);
    tcase_add_loop_test(c, epilogues_agree, 0, n);
    tcase_add_loop_test(c, convolutions_agree, 0, n);
}

int main(void) {
    return contract_main("contract", add);
}
