/* test_simplify.c - every rule of rules.def fires on its example, and no rewrite changes what a graph computes: results before
 * and after are compared bit for bit on inputs full of NaN, infinities, signed zeros and extreme integers. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "core/graph/rules.h"
#include "op_examples.h"

static const struct {
    fx_rule_id rule;
    const char *text;
} examples[] = {
#define F1(name, body) {FX_RULE_##name, "graph(%x: f32[64]) { " body " }"}
#define F2(name, body) {FX_RULE_##name, "graph(%x: f32[64], %y: f32[64]) { " body " }"}
#define S1(name, body) {FX_RULE_##name, "graph(%x: s32[64]) { " body " }"}
#define S2(name, body) {FX_RULE_##name, "graph(%x: s32[64], %y: s32[64]) { " body " }"}
#define B1(name, body) {FX_RULE_##name, "graph(%x: bool[64]) { " body " }"}
#define P2(name, body) {FX_RULE_##name, "graph(%p: bool[64], %x: f32[64], %y: f32[64], %z: f32[64]) { " body " }"}
#define C(type, v) "constant() {dtype=" type ", shape=[64], value=[" v "]} "
    F1(mul_one, "%c = " C("f32", "1") "%r = mul(%c, %x) return %r"),
    S1(mul_one, "%c = " C("s32", "1") "%r = mul(%x, %c) return %r"),
    F1(div_one, "%c = " C("f32", "1") "%r = div(%x, %c) return %r"),
    F1(mul_minus_one, "%c = " C("f32", "-1") "%r = mul(%x, %c) return %r"),
    S1(div_minus_one, "%c = " C("s32", "-1") "%r = div(%x, %c) return %r"),
    F1(add_minus_zero, "%c = " C("f32", "-0") "%r = add(%x, %c) return %r"),
    S1(add_minus_zero, "%c = " C("s32", "0") "%r = add(%x, %c) return %r"),
    F1(add_zero, "%c = " C("f32", "0") "%a = abs(%x) %b = add(%x, %a) %d = mul(%x, %x) %e = concatenate(%b, %d) {dim=0} "
                 "%f = slice(%e) {start=[32], limit=[96]} %r = add(%c, %f) return %r"),
    F1(sub_zero, "%c = " C("f32", "0") "%r = sub(%x, %c) return %r"),
    F1(zero_sub, "%c = " C("f32", "-0") "%r = sub(%c, %x) return %r"),
    S1(mul_zero, "%c = " C("s32", "0") "%r = mul(%x, %c) return %r"),
    S1(sub_self, "%r = sub(%x, %x) return %r"),
    F1(neg_neg, "%a = neg(%x) %r = neg(%a) return %r"),
    F2(sub_neg, "%a = neg(%y) %r = sub(%x, %a) return %r"),
    F2(add_neg, "%a = neg(%y) %r = add(%a, %x) return %r"),
    F2(mul_neg_neg, "%a = neg(%y) %b = neg(%x) %r = mul(%a, %b) return %r"),
    F1(abs_neg, "%a = neg(%x) %r = abs(%a) return %r"),
    S1(abs_abs, "%a = abs(%x) %r = abs(%a) return %r"),
    F1(max_self, "%r = max(%x, %x) return %r"),
    F1(min_self, "%r = min(%x, %x) return %r"),
    F1(pow_one, "%c = " C("f32", "1") "%r = pow(%x, %c) return %r"),
    F1(pow_two, "%c = " C("f32", "2") "%r = pow(%x, %c) return %r"),
    F1(pow_zero, "%c = " C("f32", "0") "%r = pow(%x, %c) return %r"),
    F1(div_power_of_two, "%c = " C("f32", "-8") "%r = div(%x, %c) return %r"),
    S1(not_not, "%a = not(%x) %r = not(%a) return %r"),
    S1(and_self, "%r = and(%x, %x) return %r"),
    S1(or_self, "%r = or(%x, %x) return %r"),
    S1(xor_self, "%r = xor(%x, %x) return %r"),
    S1(and_zero, "%c = " C("s32", "0") "%r = and(%x, %c) return %r"),
    S1(or_zero, "%c = " C("s32", "0") "%r = or(%x, %c) return %r"),
    S1(xor_zero, "%c = " C("s32", "0") "%r = xor(%x, %c) return %r"),
    B1(and_true, "%c = " C("bool", "true") "%r = and(%x, %c) return %r"),
    B1(or_true, "%c = " C("bool", "true") "%r = or(%x, %c) return %r"),
    B1(xor_true, "%c = " C("bool", "true") "%r = xor(%x, %c) return %r"),
    S1(shl_zero, "%c = " C("s32", "0") "%r = shl(%x, %c) return %r"),
    S1(shr_l_zero, "%c = " C("s32", "0") "%r = shr_l(%x, %c) return %r"),
    S1(shr_a_zero, "%c = " C("s32", "0") "%r = shr_a(%x, %c) return %r"),
    S1(eq_self, "%r = eq(%x, %x) return %r"),
    S1(ne_self, "%r = ne(%x, %x) return %r"),
    F1(lt_self, "%r = lt(%x, %x) return %r"),
    F1(gt_self, "%r = gt(%x, %x) return %r"),
    S1(le_self, "%r = le(%x, %x) return %r"),
    S1(ge_self, "%r = ge(%x, %x) return %r"),
    F2(not_eq, "%a = eq(%x, %y) %r = not(%a) return %r"),
    F2(not_ne, "%a = ne(%x, %y) %r = not(%a) return %r"),
    S2(not_lt, "%a = lt(%x, %y) %r = not(%a) return %r"),
    S2(not_le, "%a = le(%x, %y) %r = not(%a) return %r"),
    S2(not_gt, "%a = gt(%x, %y) %r = not(%a) return %r"),
    S2(not_ge, "%a = ge(%x, %y) %r = not(%a) return %r"),
    P2(select_true, "%c = " C("bool", "true") "%r = select(%c, %x, %y) return %r"),
    P2(select_false, "%c = " C("bool", "false") "%r = select(%c, %x, %y) return %r"),
    P2(select_same, "%r = select(%p, %x, %x) return %r"),
    P2(select_not, "%n = not(%p) %r = select(%n, %x, %y) return %r"),
    P2(select_outer, "%a = select(%p, %x, %y) %r = select(%p, %a, %z) return %r"),
    P2(select_inner, "%a = select(%p, %x, %y) %r = select(%p, %z, %a) return %r"),
    B1(select_itself, "%t = " C("bool", "true") "%f = " C("bool", "false") "%r = select(%x, %t, %f) return %r"),
    B1(select_inverse, "%t = " C("bool", "true") "%f = " C("bool", "false") "%r = select(%x, %f, %t) return %r"),
    {FX_RULE_convert_of_convert, "graph(%x: f16[64]) { %a = convert(%x) {dtype=f32} %r = convert(%a) {dtype=f16} return %r }"},
    {FX_RULE_convert_of_convert, "graph(%x: s16[64]) { %a = convert(%x) {dtype=s32} %r = convert(%a) {dtype=f16} return %r }"},
    {FX_RULE_convert_of_convert, "graph(%x: bf16[64]) { %a = convert(%x) {dtype=f64} %r = convert(%a) {dtype=s8} return %r }"},
    {FX_RULE_slice_of_slice, "graph(%x: f32[20,9]) { %a = slice(%x) {start=[1,2], limit=[19,9], strides=[2,1]} "
                             "%r = slice(%a) {start=[1,0], limit=[9,7], strides=[3,2]} return %r }"},
    {FX_RULE_slice_of_concatenate, "graph(%x: f32[4], %y: f32[6]) { %a = concatenate(%x, %y) {dim=0} "
                                   "%r = slice(%a) {start=[5], limit=[10], strides=[2]} return %r }"},
    {FX_RULE_slice_of_pad, "graph(%x: f32[6], %v: f32[]) { %a = pad(%x, %v) {low=[3], high=[2]} "
                           "%r = slice(%a) {start=[4], limit=[9], strides=[2]} return %r }"},
    {FX_RULE_reverse_of_reverse, "graph(%x: f32[3,4,5]) { %a = reverse(%x) {dims=[0,1]} %r = reverse(%a) {dims=[1,2]} return %r }"},
    {FX_RULE_transpose_of_broadcast, "graph(%x: f32[3,1]) { %a = broadcast_in_dim(%x) {shape=[2,3,4], dims=[1,2]} "
                                     "%r = transpose(%a) {permutation=[2,0,1]} return %r }"},
    {FX_RULE_broadcast_of_reshape, "graph(%x: f32[3]) { %a = reshape(%x) {shape=[3,1]} "
                                   "%r = broadcast_in_dim(%a) {shape=[2,3,4], dims=[1,2]} return %r }"},
    {FX_RULE_reshape_of_broadcast, "graph(%x: f32[3]) { %a = broadcast_in_dim(%x) {shape=[2,3], dims=[1]} "
                                   "%r = reshape(%a) {shape=[2,1,3,1]} return %r }"},
    {FX_RULE_broadcast_of_ones, "graph(%x: f32[3,2]) { %r = broadcast_in_dim(%x) {shape=[3,1,2,1], dims=[0,2]} return %r }"},
    {FX_RULE_elementwise_of_reshape, "graph(%x: f32[3,4], %y: f32[3,4]) { %a = reshape(%x) {shape=[3,1,4]} "
                                     "%b = reshape(%y) {shape=[3,1,4]} %c = lt(%a, %b) "
                                     "%d = constant() {dtype=f32, shape=[3,1,4], value=[2]} %e = select(%c, %a, %d) "
                                     "%r = convert(%e) {dtype=f16} return %r }"},
    {FX_RULE_add_of_pads, "graph(%x: s32[3,2], %y: s32[3,1], %w: s32[3,3]) { %z = constant() {dtype=s32, shape=[], value=[0]} "
                          "%a = pad(%x, %z) {low=[0,6], high=[0,1]} %b = pad(%y, %z) {low=[0,1], high=[0,7]} "
                          "%e = pad(%w, %z) {low=[0,3], high=[0,3]} %c = add(%a, %b) %r = add(%e, %a) return %c, %r }"},
    {FX_RULE_concatenate_of_empty, "graph(%x: f32[3], %y: f32[0]) { %r = concatenate(%y, %x, %y, %x) {dim=0} return %r }"},
    {FX_RULE_concatenate_of_concatenate, "graph(%x: f32[3], %y: f32[2]) { %a = concatenate(%x, %y) {dim=0} "
                                         "%r = concatenate(%y, %a, %x) {dim=0} return %r }"},
    {FX_RULE_dynamic_slice_constant, "graph(%x: f32[5,4]) { %i = constant() {dtype=s32, shape=[], value=[4]} "
                                     "%j = constant() {dtype=s32, shape=[], value=[-4]} "
                                     "%r = dynamic_slice(%x, %i, %j) {shape=[2,3]} return %r }"},
    {FX_RULE_dynamic_update_whole, "graph(%x: f32[5], %u: f32[5], %i: s32[]) { %r = dynamic_update_slice(%x, %u, %i) return %r }"},
    {FX_RULE_reduce_of_reduce, "graph(%x: f32[3,4,5]) { %a = reduce(%x) {kind=max, dims=[1]} "
                               "%r = reduce(%a) {kind=max, dims=[1]} return %r }"},
    {FX_RULE_reduce_of_reduce, "graph(%x: s32[3,4,5]) { %a = reduce(%x) {kind=sum, dims=[0]} "
                               "%r = reduce(%a) {kind=sum, dims=[1]} return %r }"},
    {FX_RULE_reduce_of_unit_dims, "graph(%x: f32[3,1,5]) { %r = reduce(%x) {kind=min, dims=[0,1]} return %r }"},
    {FX_RULE_reduce_of_transpose, "graph(%x: s32[3,4,5]) { %a = transpose(%x) {permutation=[2,0,1]} "
                                  "%r = reduce(%a) {kind=sum, dims=[0]} return %r }"},
    {FX_RULE_reduce_of_neg, "graph(%x: s32[3,4]) { %a = neg(%x) %r = reduce(%a) {kind=sum, dims=[0]} return %r }"},
    {FX_RULE_cumulative_of_unit_dim, "graph(%x: f32[3,1]) { %r = cumulative(%x) {kind=max, dim=1} return %r }"},
    {FX_RULE_dot_of_transpose, "graph(%x: s32[2,3,4], %y: s32[2,5,4]) { %a = transpose(%x) {permutation=[0,2,1]} "
                               "%b = transpose(%y) {permutation=[1,0,2]} %r = dot_general(%a, %b) {lhs_batch=[0], "
                               "rhs_batch=[1], lhs_contract=[1], rhs_contract=[2]} return %r }"},
    {FX_RULE_transpose_of_dot, "graph(%x: s32[2,3,4], %y: s32[2,4,5]) { %a = dot_general(%x, %y) {lhs_batch=[0], rhs_batch=[0], "
                               "lhs_contract=[2], rhs_contract=[1]} %r = transpose(%a) {permutation=[0,2,1]} return %r }"},
    {FX_RULE_call_inline, "graph(%x: f32[4]) { %t = call(%x, graph(%a: f32[4]) { %b = exp(%a) return %a, %b }) "
                          "%r = project(%t) {index=1} return %r }"},
    {FX_RULE_cond_constant, "graph(%x: f32[4]) { %i = constant() {dtype=s32, shape=[], value=[7]} "
                            "%t = cond(%i, %x, graph(%a: f32[4]) { return %a }, graph(%a: f32[4]) { %b = neg(%a) return %b }) "
                            "%r = project(%t) {index=0} return %r }"},
    {FX_RULE_while_never, "graph(%x: f32[4]) { %t = while(%x, graph(%a: f32[4]) { %f = constant() {dtype=bool, shape=[], "
                          "value=[false]} return %f }, graph(%a: f32[4]) { %b = neg(%a) return %b }) "
                          "%r = project(%t) {index=0} return %r }"},
    {FX_RULE_scan_of_length_zero, "graph(%c: f32[4]) { %t = scan(%c, graph(%a: f32[4]) { %b = neg(%a) return %b }) "
                                  "{n_carry=1, length=0} %r = project(%t) {index=0} return %r }"},
};

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t random64(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

static void *special_values(const fx_spec *s) {
    static const double floats[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -1, 1e-41, -1e-41, 1e38, 0.3, 65504, 2, -7};
    static const double ints[] = {0, 1, -1, 2, 127, -128, 2147483647.0, -2147483648.0, 31, 32};
    size_t n = (size_t)fx_spec_count(s), size = fx_dtype_size(s->dtype);
    unsigned char *p = malloc(n * size + 1);
    for (size_t i = 0; i < n; i++) {
        double v = fx_dtype_is_float(s->dtype) ? floats[random64() % 14] : ints[random64() % 10];
        if (random64() % 2)
            v = (double)(int64_t)(random64() % 2001) / (fx_dtype_is_float(s->dtype) ? 64 : 1) - 15;
        fx_element_store(s->dtype, p + i * size, v);
    }
    return p;
}

/* Equal bits, or both NaN; float sums and products of f32 may differ a little when `loose`. */
static bool agree(const fx_spec *s, const unsigned char *a, const unsigned char *b, bool loose) {
    size_t size = fx_dtype_size(s->dtype);
    for (int64_t i = 0; i < fx_spec_count(s); i++) {
        double x = fx_element_load(s->dtype, a + (size_t)i * size), y = fx_element_load(s->dtype, b + (size_t)i * size);
        bool same = !memcmp(a + (size_t)i * size, b + (size_t)i * size, size) || (x != x && y != y);
        if (!same && !(loose && fabs(x - y) <= 1e-6 * fabs(x)))
            return false;
    }
    return true;
}

static void check_same_results(const fx_graph *g, const fx_graph *h, const char *text, bool loose) {
    void *args[16] = {0}, *a[16] = {0}, *b[16] = {0};
    ck_assert(g->n_param <= 16 && g->n_result <= 16 && g->n_param == h->n_param && g->n_result == h->n_result);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < g->n_param; i++)
            args[i] = special_values(&g->params[i]->spec);
        for (int i = 0; i < g->n_result; i++) {
            const fx_spec *s = &g->results[i]->spec;
            ck_assert(fx_spec_equal(s, &h->results[i]->spec));
            a[i] = calloc((size_t)fx_spec_count(s) + 1, 8);
            b[i] = calloc((size_t)fx_spec_count(s) + 1, 8);
        }
        ck_assert_int_eq(fx_graph_eval(g, (const void *const *)args, a), FX_OK);
        ck_assert_int_eq(fx_graph_eval(h, (const void *const *)args, b), FX_OK);
        for (int i = 0; i < g->n_result; i++) {
            ck_assert_msg(agree(&g->results[i]->spec, a[i], b[i], loose), "result %d of %s", i, text);
            free(a[i]);
            free(b[i]);
        }
        for (int i = 0; i < g->n_param; i++)
            free(args[i]);
    }
}

static fx_graph *simplified(const char *text, fx_graph **before, int *fired) {
    fx_graph *out;
    ck_assert_msg(fx_graph_parse(text, strlen(text), before) == FX_OK, "%s\n%s", fx_last_error(), text);
    ck_assert_msg(fx_graph_simplify_counted(*before, &out, fired) == FX_OK, "%s\n%s", fx_last_error(), text);
    ck_assert_msg(fx_graph_verify(out) == FX_OK, "%s\n%s", fx_last_error(), text);
    return out;
}

START_TEST(every_rule_fires_and_changes_no_value) {
    bool has[FX_RULE_COUNT] = {false};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        int fired[FX_RULE_COUNT] = {0};
        fx_graph *g, *h = simplified(examples[i].text, &g, fired);
        has[examples[i].rule] = true;
        ck_assert_msg(fired[examples[i].rule] > 0, "%s: %s", fx_rule_name(examples[i].rule), examples[i].text);
        check_same_results(g, h, examples[i].text, false);
        fx_graph_unref(g);
        fx_graph_unref(h);
    }
    for (int i = 0; i < FX_RULE_COUNT; i++)
        ck_assert_msg(has[i], "no example of rule %s", fx_rule_name((fx_rule_id)i));
}
END_TEST

START_TEST(examples_of_every_op_compute_the_same_simplified) {
    for (int i = 0; i < N_OP_EXAMPLES; i++) {
        fx_graph *g, *h = simplified(op_examples[i].text, &g, NULL);
        check_same_results(g, h, op_examples[i].text, false);
        fx_graph_unref(g);
        fx_graph_unref(h);
    }
}
END_TEST

START_TEST(floats_keep_what_ieee_demands) {
    static const char *const kept[] = {
        "graph(%x: f32[64]) { %c = " C("f32", "0") "%r = mul(%x, %c) return %r }",
        "graph(%x: f32[64]) { %r = sub(%x, %x) return %r }",
        "graph(%x: f32[64]) { %c = " C("f32", "0") "%r = add(%x, %c) return %r }",
        "graph(%x: f32[64]) { %r = eq(%x, %x) return %r }",
        "graph(%x: f32[64]) { %c = " C("f32", "3") "%r = div(%x, %c) return %r }",
        "graph(%x: f32[64], %y: f32[64]) { %a = lt(%x, %y) %r = not(%a) return %r }",
        "graph(%x: f32[64]) { %a = convert(%x) {dtype=f16} %r = convert(%a) {dtype=f32} return %r }",
        "graph(%x: s32[64]) { %a = convert(%x) {dtype=f64} %r = convert(%a) {dtype=s8} return %r }",
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        fx_graph *g, *h = simplified(kept[i], &g, NULL);
        ck_assert_msg(fx_graph_equal(g, h), "%s", kept[i]);
        fx_graph_unref(g);
        fx_graph_unref(h);
    }
}
END_TEST

/* What holds for signed integers need not hold for unsigned ones: |-x| there is -x. */
START_TEST(unsigned_values_keep_their_sign) {
    fx_graph *g = NULL, *s = NULL;
    const char *text = "graph(%x: u8[2]) { %y = neg(%x) %z = abs(%y) return %z }";
    ck_assert_int_eq(fx_graph_parse(text, strlen(text), &g), FX_OK);
    ck_assert_int_eq(fx_graph_simplify(g, &s), FX_OK);
    uint8_t x[2] = {1, 0}, r[2];
    const void *args[] = {x};
    void *results[] = {r};
    ck_assert_int_eq(fx_graph_eval(s, args, results), FX_OK);
    ck_assert_uint_eq(r[0], 255);
    ck_assert_uint_eq(r[1], 0);
    fx_graph_unref(g);
    fx_graph_unref(s);
}
END_TEST

START_TEST(constants_fold_while_they_are_small) {
    fx_graph *g, *h = simplified("graph() { %a = constant() {dtype=f32, shape=[1000,1000], value=[3]} %b = exp(%a) "
                                 "%c = mul(%b, %a) %d = convert(%c) {dtype=bf16} return %d }", &g, NULL);
    double v;
    ck_assert(fx_node_splat(h->results[0], &v));
    ck_assert_double_eq_tol(v, 3 * exp(3), 0.2);
    fx_graph_unref(g);
    fx_graph_unref(h);
    h = simplified("graph() { %a = constant() {dtype=s32, shape=[2,2], value=[1,2,3,4]} %b = transpose(%a) {permutation=[1,0]} "
                   "%c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[0]} return %c }", &g, NULL);
    ck_assert_int_eq(h->results[0]->op, FX_OP_constant);
    ck_assert_mem_eq(fx_attr_get(h->results[0], FX_ATTR_value)->u.data, ((int32_t[]){5, 11, 11, 25}), 16);
    check_same_results(g, h, "constants", false);
    fx_graph_unref(g);
    fx_graph_unref(h);
}
END_TEST

START_TEST(arrays_without_elements_are_not_computed) {
    fx_graph *g, *h = simplified("graph(%x: f32[0,4], %y: f32[4,3]) { %a = dot_general(%x, %y) {lhs_contract=[1], rhs_contract=[0]} "
                                 "%b = exp(%a) return %b }", &g, NULL);
    ck_assert_int_eq(h->results[0]->op, FX_OP_constant);
    fx_graph_unref(g);
    fx_graph_unref(h);
}
END_TEST

START_TEST(control_flow_drops_what_no_one_uses) {
    fx_graph *g, *h = simplified(
        "graph(%k: f32[], %c: f32[], %xs: f32[4], %ws: f32[4,1000]) { %t = scan(%k, %c, %xs, %ws, "
        "graph(%a: f32[], %b: f32[], %x: f32[], %w: f32[1000]) { %s = add(%b, %x) %e = exp(%w) %q = mul(%a, %x) return %s, %e, %q }) "
        "{n_consts=1, n_carry=1} %y = project(%t) {index=0} %q = project(%t) {index=2} return %y, %q }", &g, NULL);
    const fx_node *scan = h->results[0]->in[0];
    ck_assert_int_eq(scan->op, FX_OP_scan);
    ck_assert_int_eq(scan->n_result, 2);
    ck_assert_int_eq(scan->n_in, 3);
    check_same_results(g, h, "scan", false);
    fx_graph_unref(g);
    fx_graph_unref(h);
    h = simplified("graph(%i: s32[], %x: f32[4], %y: f32[4]) { %t = cond(%i, %x, %y, graph(%a: f32[4], %b: f32[4]) { %c = exp(%b) "
                   "return %a, %c }, graph(%a: f32[4], %b: f32[4]) { %c = neg(%a) return %c, %b }) "
                   "%r = project(%t) {index=0} return %r }", &g, NULL);
    const fx_node *cond = h->results[0]->in[0];
    ck_assert_int_eq(cond->n_result, 1);
    ck_assert_int_eq(cond->n_in, 2);
    check_same_results(g, h, "cond", false);
    fx_graph_unref(g);
    fx_graph_unref(h);
    h = simplified("graph(%x: f32[], %n: f32[], %m: f32[]) { %t = while(%x, %n, %m, graph(%a: f32[], %b: f32[], %c: f32[]) "
                   "{ %r = lt(%a, %b) return %r }, graph(%a: f32[], %b: f32[], %c: f32[]) "
                   "{ %h = constant() {dtype=f32, shape=[], value=[inf]} return %h }) {n_carry=1} "
                   "%r = project(%t) {index=0} return %r }", &g, NULL);
    ck_assert_int_eq(h->results[0]->in[0]->n_in, 2);
    check_same_results(g, h, "while", false);
    fx_graph_unref(g);
    fx_graph_unref(h);
}
END_TEST

START_TEST(barriers_stay) {
    fx_graph *g, *h = simplified("graph(%x: f32[4]) { %e = exp(%x) %t = optimization_barrier(%e) %r = project(%t) {index=0} "
                                 "%s = neg(%r) %u = neg(%s) return %u }", &g, NULL);
    ck_assert_int_eq(h->results[0]->op, FX_OP_project);
    ck_assert_int_eq(h->results[0]->in[0]->op, FX_OP_optimization_barrier);
    fx_graph_unref(g);
    fx_graph_unref(h);
}
END_TEST

/* Random expressions over a few ops with constants that rules look for. */
static char *random_graph(void) {
    static const char *const unary[] = {"neg", "abs"}, *const binary[] = {"add", "sub", "mul", "div", "max", "min", "pow"};
    static const char *const constant[] = {"0", "-0", "1", "-1", "2", "0.5", "inf"};
    char *text = malloc(8192);
    size_t n = (size_t)sprintf(text, "graph(%%0: f32[8], %%1: f32[8]) {");
    int next = 2;
    for (; next < 9; next++)
        n += (size_t)sprintf(text + n, "%%%d = constant() {dtype=f32, shape=[8], value=[%s]} ", next, constant[next - 2]);
    for (; next < 40; next++) {
        int a = (int)(random64() % (uint64_t)next), b = (int)(random64() % (uint64_t)next);
        if (random64() % 3)
            n += (size_t)sprintf(text + n, "%%%d = %s(%%%d, %%%d) ", next, binary[random64() % 7], a, b);
        else
            n += (size_t)sprintf(text + n, "%%%d = %s(%%%d) ", next, unary[random64() % 2], a);
    }
    sprintf(text + n, "return %%39, %%38, %%37, %%36 }");
    return text;
}

START_TEST(random_expressions_compute_the_same_simplified) {
    for (int i = 0; i < 300; i++) {
        char *text = random_graph();
        fx_graph *g, *h = simplified(text, &g, NULL);
        check_same_results(g, h, text, false);
        fx_graph_unref(g);
        fx_graph_unref(h);
        free(text);
    }
}
END_TEST

static int64_t below(int64_t n) { return (int64_t)(random64() % (uint64_t)n); }

/* One random op that moves, reduces, multiplies or converts, on nodes of v[0..n-1]; NULL when the draw doesn't fit. */
static fx_node *random_op(fx_graph *g, fx_node *const *v, int n) {
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_max, FX_SYM_xor, FX_SYM_prod};
    static const fx_dtype dtypes[] = {FX_S32, FX_S8, FX_U16, FX_F32, FX_F16, FX_BF16, FX_S64};
    fx_node *x = v[below(n)], *y = v[below(n)];
    const fx_spec s = x->spec;
    int64_t a[FX_MAX_RANK] = {0}, b[FX_MAX_RANK] = {0}, c[FX_MAX_RANK] = {0}, d[FX_MAX_RANK];
    int k = 0;
    for (int i = 0; i < s.rank; i++)
        d[i] = i;
    for (int i = s.rank - 1; i > 0; i--) { /* a random order */
        int64_t j = below(i + 1), t = d[i];
        d[i] = d[j];
        d[j] = t;
    }
    switch (below(14)) {
    case 0: return fx_b_transpose(g, x, d);
    case 1:
        for (int i = 0; i < s.rank; i++) {
            a[i] = below(s.dims[i] + 1);
            b[i] = a[i] + below(s.dims[i] - a[i] + 1);
            c[i] = 1 + below(3);
        }
        return fx_b_slice(g, x, a, b, c);
    case 2:
        for (int i = 0; i < s.rank; i++) {
            a[i] = below(4) ? 0 : below(3);
            b[i] = below(4) ? 0 : below(3);
        }
        return fx_b_pad(g, x, fx_b_scalar(g, s.dtype, (double)below(2)), a, b, below(4) ? NULL : c);
    case 3: return s.rank ? fx_b_reverse(g, x, (int)below(s.rank + 1), d) : NULL;
    case 4: /* ones come and go */
        for (int i = 0; i < s.rank && s.rank < 4; i++) {
            if (s.dims[i] != 1 || below(2))
                a[k++] = s.dims[i];
            if (!below(3))
                a[k++] = 1;
        }
        return s.rank < 4 ? fx_b_reshape(g, x, k, a) : NULL;
    case 5: /* flattened */
        a[0] = fx_spec_count(&s);
        return fx_b_reshape(g, x, 1, a);
    case 6:
        for (int i = 0; i < s.rank && s.rank < 4; i++) {
            if (!below(3))
                a[k++] = 1 + below(3);
            b[i] = k;
            a[k++] = s.dims[i] == 1 ? 1 + below(3) : s.dims[i];
        }
        return s.rank < 4 ? fx_b_broadcast(g, x, k, a, b) : NULL;
    case 7: return fx_dtype_is_float(s.dtype) ? NULL : fx_b_reduce(g, x, kinds[below(4)], (int)below(s.rank + 1), d);
    case 8:
        for (int i = 0; i < s.rank; i++)
            if (s.rank != y->spec.rank || s.dtype != y->spec.dtype || (i && s.dims[i] != y->spec.dims[i]))
                return NULL;
        return s.rank ? fx_b_concatenate(g, 3, (fx_node *[]){x, y, x}, 0) : NULL;
    case 9: return fx_b_convert(g, x, dtypes[below(7)]);
    case 10: return fx_spec_equal(&s, &y->spec) ? fx_b_binary(g, below(2) ? FX_OP_add : FX_OP_mul, x, y) : NULL;
    case 11: return fx_b_binary_c(g, below(2) ? FX_OP_add : FX_OP_mul, x, (double)below(3));
    case 12: return fx_b_unary(g, FX_OP_neg, x);
    default: {
        fx_dot_numbers dot = {0, 1, NULL, NULL, a, b, FX_SYM_default, s.dtype};
        a[0] = s.rank ? below(s.rank) : 0;
        b[0] = y->spec.rank ? below(y->spec.rank) : 0;
        bool fits = s.dtype == y->spec.dtype && fx_dtype_is_int(s.dtype) && s.rank && y->spec.rank && s.rank + y->spec.rank < 7 &&
                    s.dims[a[0]] == y->spec.dims[b[0]];
        return fits ? fx_b_dot(g, x, y, &dot) : NULL;
    }
    }
}

START_TEST(random_views_compute_the_same_simplified) {
    for (int round = 0; round < 400; round++) {
        fx_graph *g = fx_graph_new(NULL), *h;
        fx_spec p = FX_SPEC(FX_S32, 2, 3, 1), q = FX_SPEC(FX_S32, 3, 4);
        fx_node *v[40] = {fx_graph_param(g, &p), fx_graph_param(g, &q), fx_b_iota(g, &q, 1)};
        int n = 3;
        for (int tries = 0; tries < 60 && n < 24; tries++) {
            fx_node *made = random_op(g, v, n);
            ck_assert_msg(g->status == FX_OK, "%s", g->error);
            if (made && fx_spec_count(&made->spec) < 2000)
                v[n++] = made;
        }
        ck_assert_int_eq(fx_graph_finish(g, 6, &v[n - 6], true), FX_OK);
        char *text = fx_graph_print(g);
        ck_assert_msg(fx_graph_simplify(g, &h) == FX_OK && fx_graph_verify(h) == FX_OK, "%s\n%s", fx_last_error(), text);
        check_same_results(g, h, text, false);
        free(text);
        fx_graph_unref(g);
        fx_graph_unref(h);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("simplify");
    TCase *c = tcase_create("simplify");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, every_rule_fires_and_changes_no_value);
    tcase_add_test(c, examples_of_every_op_compute_the_same_simplified);
    tcase_add_test(c, floats_keep_what_ieee_demands);
    tcase_add_test(c, unsigned_values_keep_their_sign);
    tcase_add_test(c, constants_fold_while_they_are_small);
    tcase_add_test(c, arrays_without_elements_are_not_computed);
    tcase_add_test(c, control_flow_drops_what_no_one_uses);
    tcase_add_test(c, barriers_stay);
    tcase_add_test(c, random_expressions_compute_the_same_simplified);
    tcase_add_test(c, random_views_compute_the_same_simplified);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
