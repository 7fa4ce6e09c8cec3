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
    seen[FX_OP_reduce_precision] = true; /* in grad_examples.h */
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

/* ---- functions composed of ops ---- */

#define COMPOSED(name, expr)                                                   \
    static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user) { \
        (void)t, (void)user;                                                   \
        fx_val x = in[0], y = in[1];                                           \
        (void)y;                                                               \
        out[0] = expr;                                                         \
    }
static const int last[] = {-1};
COMPOSED(gelu, fx_gelu(x))
COMPOSED(gelu_tanh, fx_gelu_tanh(x))
COMPOSED(silu, fx_silu(x))
COMPOSED(softplus, fx_softplus(x))
COMPOSED(log_sigmoid, fx_log_sigmoid(x))
COMPOSED(logaddexp, fx_logaddexp(x, y))
COMPOSED(logaddexp_constant, fx_logaddexp(x, fx_const_like(x, 0.3)))
COMPOSED(softmax, fx_softmax(x, -1))
COMPOSED(log_softmax, fx_log_softmax(x, 0))
COMPOSED(logsumexp, fx_logsumexp(x, 1, false))
COMPOSED(variance, fx_reduce_var(x, 1, last, true))
COMPOSED(normalized,
         fx_mul(fx_sub(x, fx_reduce_mean(x, 1, last, true)), fx_rsqrt(fx_add_c(fx_reduce_var(x, 1, last, true), 1e-5))))
COMPOSED(attention, fx_matmul(fx_softmax(fx_matmul(x, fx_transpose(y, NULL)), -1), y))
COMPOSED(sorted, fx_sort(fx_mul(x, y), 0, true))
COMPOSED(cubed, fx_pow_c(x, 3))
COMPOSED(squared_norm, fx_sqrt(fx_add_c(fx_reduce_sum(fx_square(x), -1, NULL, false), 1)))

START_TEST(composed_functions_have_right_derivatives) {
    static const struct {
        const char *name;
        fx_trace_fn fn;
    } functions[] = {
#define ROW(f) {#f, f}
        ROW(gelu),         ROW(gelu_tanh),          ROW(silu),      ROW(softplus),    ROW(log_sigmoid),
        ROW(logaddexp),    ROW(logaddexp_constant), ROW(softmax),   ROW(log_softmax), ROW(logsumexp),
        ROW(variance),     ROW(normalized),         ROW(attention), ROW(sorted),      ROW(cubed),
        ROW(squared_norm),
#undef ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        fx_func *f;
        OK(fx_trace_func(functions[i].fn, NULL, 2, (const fx_spec[]){FX_SPEC(FX_F64, 3, 4), FX_SPEC(FX_F64, 3, 4)}, 1,
                         &f));
        values v = random_inputs(f, -2, 2);
        gradcheck(functions[i].name, f, &v, 2);
        values_free(v);
        fx_func_unref(f);
    }
}
END_TEST

/* One derivative of an elementwise op at one point. */
static void at(fx_op op, int n, double x, double y, double z, double d0, double d1, double d2) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *in[3], *r;
    const double point[] = {x, y, z}, want[] = {d0, d1, d2};
    for (int i = 0; i < n; i++)
        in[i] = fx_graph_param(g, &FX_SPEC0(FX_F64));
    r = fx_b_elementwise(g, op, n, in);
    OK(fx_graph_finish(g, 1, &r, true));
    values v = values_new(n);
    for (int i = 0; i < n; i++) {
        values_set(&v, i, FX_SPEC0(FX_F64));
        value_put(&v, i, 0, point[i]);
    }
    for (int i = 0; i < n; i++) {
        fx_func *d;
        OK(fx_grad(fx_graph_func(g), FX_ARGS(i), &d));
        values out = run(d, &v);
        double got = value_at(&out, 0, 0);
        ck_assert_msg(got == want[i] || (isnan(got) && isnan(want[i])), "%s(%g, %g, %g), operand %d: got %g, want %g",
                      fx_op_get(op)->name, x, y, z, i, got, want[i]);
        values_free(out);
        fx_func_unref(d);
    }
    values_free(v);
    fx_graph_unref(g);
}

START_TEST(edges_are_those_of_the_field) {
    at(FX_OP_abs, 1, 0, 0, 0, 1, 0, 0);
    at(FX_OP_abs, 1, -0.0, 0, 0, 1, 0, 0);
    at(FX_OP_sign, 1, 0, 0, 0, 0, 0, 0);
    at(FX_OP_cbrt, 1, 0, 0, 0, INFINITY, 0, 0);
    at(FX_OP_sqrt, 1, 0, 0, 0, INFINITY, 0, 0);
    at(FX_OP_max, 2, 1, 1, 0, 0.5, 0.5, 0);
    at(FX_OP_min, 2, 1, 1, 0, 0.5, 0.5, 0);
    at(FX_OP_min, 2, 1, 2, 0, 1, 0, 0);
    at(FX_OP_clamp, 3, 0, 0, 1, 0, 0, 0); /* lo, x, hi: nothing passes where x is on a bound */
    at(FX_OP_clamp, 3, 0, 1, 1, 0, 0, 0);
    at(FX_OP_clamp, 3, 0, 0.5, 1, 0, 1, 0);
    at(FX_OP_clamp, 3, 0, -1, 1, 1, 0, 0);
    at(FX_OP_clamp, 3, 0, -1, 0, 0, 0, 0);
    at(FX_OP_clamp, 3, 1, 2, 0, 0, 0, 1);
    at(FX_OP_pow, 2, 0, 0, 0, 0, 0, 0);
    at(FX_OP_pow, 2, 0, 1, 0, 1, 0, 0);
    at(FX_OP_pow, 2, 0, 2, 0, 0, 0, 0);
    at(FX_OP_pow, 2, 0, 0.5, 0, INFINITY, 0, 0);
    at(FX_OP_pow, 2, -1, 2, 0, -2, NAN, 0);
    at(FX_OP_pow, 2, -2, 3, 0, 12, NAN, 0);
    at(FX_OP_rem, 2, -5.5, 2, 0, 1, 2, 0);
}
END_TEST

START_TEST(narrow_types_keep_their_types) {
    const char *text =
        "graph(%a: bf16[3,4], %b: bf16[4,2], %s: f32[]) { %c = dot_general(%a, %b) {lhs_contract=[1], "
        "rhs_contract=[0], "
        "dtype=f32} %h = convert(%c) {dtype=f16} %k = convert(%h) {dtype=f32} %r = reduce(%k) {kind=sum, dims=[0,1]} "
        "%y = mul(%r, %s) return %y }";
    fx_graph *g;
    fx_func *d;
    OK(fx_graph_parse(text, strlen(text), &g));
    OK(fx_grad(fx_graph_func(g), FX_ARGS(0, 1), &d));
    for (int i = 0; i < 2; i++) {
        fx_spec s = fx_func_out_spec(d, i);
        ck_assert(fx_spec_equal(&s, &g->params[i]->spec));
    }
    values in = random_inputs(d, 0, 0);
    for (int i = 0; i < 12; i++)
        value_put(&in, 0, i, i);
    for (int i = 0; i < 8; i++)
        value_put(&in, 1, i, i - 2);
    value_put(&in, 2, 0, 2);
    values out = run(d, &in);
    for (int i = 0; i < 12; i++)
        ck_assert(value_at(&out, 0, i) == 2 * (value_at(&in, 1, i % 4 * 2) + value_at(&in, 1, i % 4 * 2 + 1)));
    for (int i = 0; i < 8; i++)
        ck_assert(value_at(&out, 1, i) ==
                  2 * (value_at(&in, 0, i / 2) + value_at(&in, 0, i / 2 + 4) + value_at(&in, 0, i / 2 + 8)));
    values_free(in), values_free(out);
    fx_func_unref(d);
    fx_graph_unref(g);
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
    tcase_add_test(c, composed_functions_have_right_derivatives);
    tcase_add_test(c, edges_are_those_of_the_field);
    tcase_add_test(c, narrow_types_keep_their_types);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
