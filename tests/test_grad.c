/* test_grad.c - every op's derivative, first and second, forward and reverse. */
#include "tests/grad_examples.h"
#include "tests/gradcheck.h"
#include "tests/op_examples.h"

/* Where an elementwise op is smooth; others anywhere in -2..2. */
typedef struct domain {
    fx_op op;
    double lo, hi;
} domain;
static const domain domains[] = {{FX_OP_log, 0.3, 3},        {FX_OP_log1p, -0.5, 3}, {FX_OP_sqrt, 0.3, 3},
                                 {FX_OP_rsqrt, 0.3, 3},      {FX_OP_cbrt, 0.3, 3},   {FX_OP_tan, -1, 1},
                                 {FX_OP_erf_inv, -0.8, 0.8}, {FX_OP_lgamma, 0.2, 4}, {FX_OP_digamma, 0.2, 9},
                                 {FX_OP_pow, 0.4, 2},        {FX_OP_div, 0.5, 2},    {FX_OP_rem, 0.5, 2}};

static void check_elementwise(fx_op op, double lo, double hi) {
    int n = fx_op_get(op)->op_class == FX_CLASS_UNARY ? 1 : fx_op_get(op)->op_class == FX_CLASS_BINARY ? 2 : 3;
    fx_graph *g = fx_graph_new(NULL);
    fx_node *in[3];
    for (int i = 0; i < n; i++)
        in[i] = fx_graph_param(g, &FX_SPEC(op == FX_OP_select && !i ? FX_BOOL : FX_F64, 5));
    fx_node *y = fx_b_elementwise(g, op, n, in);
    OK(fx_graph_finish(g, 1, &y, true));
    values v = random_inputs(fx_graph_func(g), lo, hi);
    gradcheck(fx_op_get(op)->name, fx_graph_func(g), &v, 2);
    values_free(v);
    fx_graph_unref(g);
}

START_TEST(elementwise_ops_have_right_derivatives) {
    for (int i = 0; i < FX_OP_COUNT; i++) {
        const fx_op_info *info = fx_op_get((fx_op)i);
        if (info->op_class == FX_CLASS_STRUCTURAL || (i != FX_OP_select && !(info->types & FX_TYPE_F)))
            continue;
        double lo = -2, hi = 2;
        for (size_t k = 0; k < sizeof domains / sizeof *domains; k++)
            if (domains[k].op == (fx_op)i) {
                lo = domains[k].lo;
                hi = domains[k].hi;
            }
        check_elementwise((fx_op)i, lo, hi);
    }
    check_elementwise(FX_OP_lgamma, -1.8, -1.2);
    check_elementwise(FX_OP_digamma, -1.8, -1.2);
}
END_TEST

START_TEST(structural_ops_have_right_derivatives) {
    bool seen[FX_OP_COUNT] = {false};
    for (size_t i = 0; i < sizeof op_examples / sizeof *op_examples; i++) {
        fx_op op = op_examples[i].op;
        if (!fx_op_get(op)->diff || op == FX_OP_reduce_precision /* a step function */)
            continue;
        fx_func *f = parse_f64(op_examples[i].text);
        values v = random_inputs(f, -2, 2);
        modes how = op == FX_OP_while                                ? FORWARD_ONLY
                    : strstr(op_examples[i].text, "kind=custom_vjp") ? REVERSE_ONLY
                                                                     : BOTH_MODES;
        gradcheck_modes(op_examples[i].text, f, &v, 1, how);
        seen[op] = true;
        values_free(v);
        fx_func_unref(f);
    }
    seen[FX_OP_reduce_precision] = true; /* below */
    for (int i = 0; i < FX_OP_COUNT; i++)
        if (fx_op_get((fx_op)i)->op_class == FX_CLASS_STRUCTURAL && fx_op_get((fx_op)i)->diff)
            ck_assert_msg(seen[i], "%s: no example", fx_op_get((fx_op)i)->name);
}
END_TEST

static void check_all(size_t n, const char *const *texts, int depth, modes how) {
    for (size_t i = 0; i < n; i++) {
        fx_func *f = parse_f64(texts[i]);
        values v = random_inputs(f, -2, 2);
        gradcheck_modes(texts[i], f, &v, depth, how);
        values_free(v);
        fx_func_unref(f);
    }
}

#define ALL(list, depth, how) check_all(sizeof list / sizeof *list, list, depth, how)
START_TEST(variants_have_right_derivatives) {
    ALL(grad_examples, 1, BOTH_MODES);
    ALL(grad_examples_while, 1, FORWARD_ONLY);
    ALL(grad_examples_custom_vjp, 1, REVERSE_ONLY);
}
END_TEST

int main(void) {
    Suite *s = suite_create("grad");
    TCase *c = tcase_create("grad");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, elementwise_ops_have_right_derivatives);
    tcase_add_test(c, structural_ops_have_right_derivatives);
    tcase_add_test(c, variants_have_right_derivatives);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
