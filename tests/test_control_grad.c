/* test_control_grad.c - what differentiated control flow looks like, what is refused and how, and higher derivatives of
 * it. */
#include "tests/grad_examples.h"
#include "tests/gradcheck.h"

static fx_func *parse(const char *text) {
    fx_graph *g;
    fx_status st = fx_graph_parse(text, strlen(text), &g);
    ck_assert_msg(st == FX_OK, "%s\n%s", fx_last_error(), text);
    return fx_graph_func(g);
}

static int count(const fx_graph *g, fx_op op, bool inside) {
    int n = 0;
    for (int i = 0; i < g->n_node; i++) {
        n += g->nodes[i]->op == op;
        for (int r = 0; inside && r < g->nodes[i]->n_region; r++)
            n += count(g->nodes[i]->region[r], op, true);
    }
    return n;
}

static const fx_node *find(const fx_graph *g, fx_op op, int which) {
    for (int i = 0; i < g->n_node; i++)
        if (g->nodes[i]->op == op && which-- == 0)
            return g->nodes[i];
    return NULL;
}

/* h' = tanh(exp(w) h + x): exp(w) doesn't change, x is there already, tanh's result is the only new residual. */
static const char *const recurrence =
    "graph(%w: f64[], %h: f64[], %xs: f64[4]) { %t = scan(%w, %h, %xs, graph(%a: f64[], %b: f64[], %x: f64[]) { "
    "%e = exp(%a) %m = mul(%e, %b) %s = add(%m, %x) %n = tanh(%s) return %n }) {n_consts=1, n_carry=1, length=4} "
    "%y = project(%t) {index=0} return %y }";

START_TEST(scan_in_reverse_is_a_forward_and_a_backward_scan) {
    fx_func *f = parse(recurrence), *g;
    OK(fx_grad(f, FX_ARGS(0, 1, 2), &g));
    const fx_graph *graph = fx_func_graph(g);
    ck_assert_int_eq(count(graph, FX_OP_scan, true), 2);
    const fx_node *ahead = find(graph, FX_OP_scan, 0), *back = find(graph, FX_OP_scan, 1);
    ck_assert_int_eq(FX_GET_INT(ahead, reverse), 0);
    ck_assert_int_eq(FX_GET_INT(back, reverse), 1);
    ck_assert_int_eq(count(back->region[0], FX_OP_tanh, true), 0); /* nothing is computed twice */
    ck_assert_int_eq(count(back->region[0], FX_OP_exp, true), 0);
    ck_assert_int_eq(count(graph, FX_OP_exp, false), 1); /* hoisted: once, outside */
    ck_assert_int_ge((int)FX_GET_INT(back, n_consts), 1);
    for (int i = 0; i < back->n_in; i++) /* its value isn't stacked */
        ck_assert(back->in[i]->op != FX_OP_broadcast_in_dim);
    fx_func_unref(f), fx_func_unref(g);
}
END_TEST

START_TEST(slices_that_the_reverse_needs_are_not_copied) {
    fx_func *f = parse("graph(%h: f64[], %xs: f64[4]) { %t = scan(%h, %xs, graph(%b: f64[], %x: f64[]) { %m = mul(%b, "
                       "%x) return %m }) "
                       "{n_consts=0, n_carry=1, length=4} %y = project(%t) {index=0} return %y }"),
            *g;
    OK(fx_grad(f, FX_ARGS(0), &g));
    const fx_graph *graph = fx_func_graph(g);
    ck_assert_int_eq(count(graph, FX_OP_scan, true), 1); /* d h = ct * x: the forward scan isn't even needed */
    const fx_node *back = find(graph, FX_OP_scan, 0);
    bool direct = false;
    for (int i = 0; i < back->n_in; i++)
        direct |= back->in[i] == graph->params[1];
    ck_assert(direct);
    fx_func_unref(f), fx_func_unref(g);
}
END_TEST

START_TEST(remat_recomputes_behind_a_barrier) {
    const char *text =
        "graph(%x: f64[3]) { %a = sin(%x) %b = sin(%a) %c = sin(%b) %s = reduce(%c) {kind=sum, dims=[0]} return %s }";
    fx_func *f = parse(text), *r, *g;
    OK(fx_grad(f, FX_ARGS(0), &g));
    int kept = count(fx_func_graph(g), FX_OP_sin, true);
    fx_func_unref(g);
    OK(fx_remat(f, &r));
    OK(fx_value_and_grad(r, FX_ARGS(0), &g));
    const fx_graph *graph = fx_func_graph(g);
    ck_assert_int_eq(kept, 2);
    ck_assert_int_eq(count(graph, FX_OP_optimization_barrier, false), 1);
    ck_assert_int_eq(count(graph, FX_OP_sin, false), 2); /* again, on what leaves the barrier */
    ck_assert_int_eq(count(graph, FX_OP_sin, true), 5);  /* and the primal in its call */
    values v = random_inputs(r, -2, 2);
    gradcheck("remat", r, &v, 2);
    values_free(v);
    fx_func_unref(f), fx_func_unref(r), fx_func_unref(g);
}
END_TEST

START_TEST(cond_takes_residuals_of_the_branch_taken) {
    fx_func *f = parse("graph(%i: s32[], %x: f64[2]) { %t = cond(%i, %x, graph(%a: f64[2]) { %b = exp(%a) return %b }, "
                       "graph(%a: f64[2]) { %b = sin(%a) return %b }) %y = project(%t) {index=0} return %y }"),
            *g;
    OK(fx_vjp(f, FX_ARGS(1), &g));
    const fx_graph *graph = fx_func_graph(g);
    ck_assert_int_eq(count(graph, FX_OP_cond, true), 2);
    const fx_node *back = find(graph, FX_OP_cond, 1);
    for (int b = 0; b < 2; b++)
        ck_assert_int_eq(count(back->region[b], FX_OP_exp, true) + count(back->region[b], FX_OP_sin, true), 0);
    fx_func_unref(f), fx_func_unref(g);
}
END_TEST

START_TEST(higher_derivatives_of_control_flow) {
    size_t n = sizeof grad_examples / sizeof *grad_examples;
    int seen = 0;
    for (size_t i = 0; i < n; i++)
        if (strstr(grad_examples[i], "scan(") || strstr(grad_examples[i], "cond(")) {
            fx_func *f = parse(grad_examples[i]);
            values v = random_inputs(f, -1, 1);
            gradcheck(grad_examples[i], f, &v, 2);
            values_free(v);
            fx_func_unref(f);
            seen++;
        }
    ck_assert_int_ge(seen, 6);
}
END_TEST

START_TEST(empty_loops_pass_the_carry) {
    fx_func *f = parse(
        "graph(%w: f64[], %h: f64[], %xs: f64[0]) { %t = scan(%w, %h, %xs, graph(%a: f64[], %b: f64[], %x: f64[]) { "
        "%m = mul(%a, %b) %s = add(%m, %x) return %s, %m }) {n_consts=1, n_carry=1, length=0} "
        "%y = project(%t) {index=0} %ys = project(%t) {index=1} return %y, %ys }");
    values v = random_inputs(f, -1, 1);
    gradcheck("empty scan", f, &v, 1);
    values_free(v);
    fx_func_unref(f);
}
END_TEST

static void refuses(fx_status st, fx_status want, const char *word, const char *remedy) {
    ck_assert_msg(st == want, "%s instead of %s: %s", fx_status_name(st), fx_status_name(want), fx_last_error());
    ck_assert_msg(strstr(fx_last_error(), word) != NULL, "no '%s' in: %s", word, fx_last_error());
    ck_assert_msg(strstr(fx_last_error(), remedy) != NULL, "no '%s' in: %s", remedy, fx_last_error());
}

START_TEST(while_in_reverse_is_refused_only_where_it_matters) {
    fx_func *f = parse(grad_examples_while[0]), *g = NULL;
    refuses(fx_vjp(f, FX_ARGS(1), &g), FX_UNSUPPORTED, "while", "fx_scan");
    ck_assert_ptr_null(g);
    fx_func_unref(f);
    /* a loop over integers next to a differentiated value; and a loop whose result isn't differentiated */
    const char *loop =
        "%one = constant() {dtype=s32, shape=[], value=[1]} %t = while(%n, %x, graph(%i: s32[], %a: f64[]) { "
        "%c = constant() {dtype=s32, shape=[], value=[7]} %p = lt(%i, %c) return %p }, graph(%i: s32[], %a: f64[]) { "
        "%o = constant() {dtype=s32, shape=[], value=[1]} %j = add(%i, %o) %b = sin(%a) return %j, %b }) {n_carry=2} ";
    char text[1024];
    snprintf(text, sizeof text,
             "graph(%%n: s32[], %%x: f64[]) { %s %%k = project(%%t) {index=0} %%f = convert(%%k) {dtype=f64} %%y = "
             "mul(%%x, %%f) "
             "%%z = project(%%t) {index=1} return %%y, %%z }",
             loop);
    f = parse(text);
    OK(fx_value_and_grad(f, FX_ARGS(1), &g));
    values in = values_new(2);
    values_set(&in, 0, FX_SPEC0(FX_S32)), values_set(&in, 1, FX_SPEC0(FX_F64));
    value_put(&in, 0, 0, 2), value_put(&in, 1, 0, 0.5);
    values out = run(g, &in);
    ck_assert(value_at(&out, 2, 0) == 7);
    values_free(in), values_free(out);
    fx_func_unref(f), fx_func_unref(g);
}
END_TEST

START_TEST(custom_rules_are_checked_and_used) {
    fx_func *f = parse("graph(%x: f64[2]) { %y = sin(%x) return %y }"), *out = NULL;
    fx_func *fwd = parse("graph(%x: f64[2]) { %y = sin(%x) %c = cos(%x) return %y, %c }");
    fx_func *bwd = parse("graph(%c: f64[2], %d: f64[2]) { %e = mul(%c, %d) return %e }");
    fx_func *jvp = parse("graph(%x: f64[2], %t: f64[2]) { %y = sin(%x) %c = cos(%x) %d = mul(%c, %t) return %y, %d }");
    fx_func *ints = parse("graph(%x: s32[2]) { return %x }");
    OK(fx_custom_vjp(f, fwd, bwd, &out));
    values v = random_inputs(out, -2, 2);
    gradcheck_modes("custom_vjp", out, &v, 2, REVERSE_ONLY);
    fx_func *g = NULL;
    refuses(fx_jvp(out, FX_ARGS(0), &g), FX_UNSUPPORTED, "custom_vjp", "fx_custom_jvp");
    fx_func_unref(out);
    OK(fx_custom_jvp(f, jvp, &out));
    gradcheck("custom_jvp", out, &v, 2);
    values_free(v);
    fx_func_unref(out);
    refuses(fx_custom_vjp(f, NULL, bwd, &out), FX_INVALID_ARGUMENT, "fwd", "fx_trace_func");
    refuses(fx_custom_vjp(f, fwd, bwd, NULL), FX_INVALID_ARGUMENT, "out", "address");
    refuses(fx_custom_vjp(f, f, bwd, &out), FX_INVALID_ARGUMENT, "bwd", "transform.h");
    refuses(fx_custom_vjp(f, fwd, jvp, &out), FX_INVALID_ARGUMENT, "bwd", "transform.h");
    refuses(fx_custom_vjp(f, bwd, bwd, &out), FX_INVALID_ARGUMENT, "fwd", "transform.h");
    refuses(fx_custom_jvp(f, fwd, &out), FX_INVALID_ARGUMENT, "jvp", "transform.h");
    refuses(fx_custom_jvp(ints, jvp, &out), FX_INVALID_ARGUMENT, "argument 0", "convert it inside");
    refuses(fx_remat(NULL, &out), FX_INVALID_ARGUMENT, "fx_remat", "fx_trace_func");
    ck_assert_ptr_null(out);
    fx_func_unref(f), fx_func_unref(fwd), fx_func_unref(bwd), fx_func_unref(jvp), fx_func_unref(ints);
}
END_TEST

START_TEST(a_custom_rule_that_is_not_linear_is_refused) {
    fx_func *f = parse("graph(%x: f64[]) { %y = sin(%x) return %y }"), *out, *g = NULL;
    fx_func *jvp = parse("graph(%x: f64[], %t: f64[]) { %y = sin(%x) %d = mul(%t, %t) return %y, %d }");
    OK(fx_custom_jvp(f, jvp, &out));
    refuses(fx_grad(out, FX_ARGS(0), &g), FX_INVALID_ARGUMENT, "mul", "linear");
    fx_func_unref(f), fx_func_unref(jvp), fx_func_unref(out);
}
END_TEST

START_TEST(wrong_arguments_are_named) {
    fx_func *f = parse("graph(%x: f32[2], %n: s32[]) { %s = reduce(%x) {kind=sum, dims=[0]} return %s, %x }"),
            *g = NULL;
    fx_func *vector = parse("graph(%x: f32[2]) { return %x }"), *none = parse("graph(%x: f32[2]) { return }");
    refuses(fx_grad(NULL, FX_ARGS(0), &g), FX_INVALID_ARGUMENT, "fx_grad: f", "fx_trace_func");
    refuses(fx_grad(f, FX_ARGS(0), NULL), FX_INVALID_ARGUMENT, "out", "address");
    refuses(fx_grad(f, (fx_args){0, NULL}, &g), FX_INVALID_ARGUMENT, "wrt", "FX_ARGS(0)");
    refuses(fx_grad(f, FX_ARGS(2), &g), FX_INVALID_ARGUMENT, "wrt[0]", "0 to 1");
    refuses(fx_grad(f, FX_ARGS(0, -1), &g), FX_INVALID_ARGUMENT, "wrt[1]", "0 to 1");
    refuses(fx_grad(f, FX_ARGS(0, 0), &g), FX_INVALID_ARGUMENT, "wrt[1]", "once");
    refuses(fx_grad(f, FX_ARGS(1), &g), FX_INVALID_ARGUMENT, "argument 1", "convert");
    refuses(fx_grad(vector, FX_ARGS(0), &g), FX_INVALID_ARGUMENT, "f32[2]", "fx_vjp");
    refuses(fx_value_and_grad(none, FX_ARGS(0), &g), FX_INVALID_ARGUMENT, "no results", "fx_vjp");
    refuses(fx_vjp(f, FX_ARGS(7), &g), FX_INVALID_ARGUMENT, "fx_vjp: wrt[0]", "0 to 1");
    refuses(fx_jvp(f, FX_ARGS(7), &g), FX_INVALID_ARGUMENT, "fx_jvp: wrt[0]", "0 to 1");
    ck_assert_ptr_null(g);
    OK(fx_jvp(none, FX_ARGS(0), &g));
    fx_func_unref(g), fx_func_unref(f), fx_func_unref(vector), fx_func_unref(none);
}
END_TEST

int main(void) {
    Suite *s = suite_create("control_grad");
    TCase *c = tcase_create("control_grad");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 60);
    tcase_add_test(c, scan_in_reverse_is_a_forward_and_a_backward_scan);
    tcase_add_test(c, slices_that_the_reverse_needs_are_not_copied);
    tcase_add_test(c, remat_recomputes_behind_a_barrier);
    tcase_add_test(c, cond_takes_residuals_of_the_branch_taken);
    tcase_add_test(c, higher_derivatives_of_control_flow);
    tcase_add_test(c, empty_loops_pass_the_carry);
    tcase_add_test(c, while_in_reverse_is_refused_only_where_it_matters);
    tcase_add_test(c, custom_rules_are_checked_and_used);
    tcase_add_test(c, a_custom_rule_that_is_not_linear_is_refused);
    tcase_add_test(c, wrong_arguments_are_named);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
