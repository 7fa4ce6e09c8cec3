/* test_graph.c - building: interning, folds, captures, regions, sticky errors. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"

static fx_node *param(fx_graph *g, fx_spec s) { return fx_graph_param(g, &s); }

START_TEST(equal_nodes_are_one_node) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC(FX_F32, 2, 3)), *y = param(g, FX_SPEC(FX_F32, 2, 3));
    ck_assert_ptr_ne(x, y);
    ck_assert_ptr_eq(fx_b_binary(g, FX_OP_add, x, y), fx_b_binary(g, FX_OP_add, x, y));
    ck_assert_ptr_ne(fx_b_binary(g, FX_OP_add, x, y), fx_b_binary(g, FX_OP_add, y, x));
    ck_assert_ptr_eq(fx_b_like(x, 2), fx_b_like(x, 2));
    ck_assert_ptr_ne(fx_b_like(x, 0.0), fx_b_like(x, -0.0));
    float same[6] = {1, 1, 1, 1, 1, 1};
    ck_assert_ptr_eq(fx_b_const_data(g, &x->spec, same), fx_b_like(x, 1)); /* a splat is stored as one element */
    int64_t up[] = {0, 1}, down[] = {1, 0};
    ck_assert_ptr_eq(fx_b_reduce(g, x, FX_SYM_sum, 2, up), fx_b_reduce(g, x, FX_SYM_sum, 2, down));
    for (int i = 0; i < 1000; i++)
        ck_assert_ptr_nonnull(fx_b_binary_c(g, FX_OP_mul, x, i));
    ck_assert_ptr_eq(fx_b_binary_c(g, FX_OP_mul, x, 7), fx_b_binary_c(g, FX_OP_mul, x, 7));
    ck_assert_int_eq(g->status, FX_OK);
    fx_graph_unref(g);
}
END_TEST

START_TEST(views_that_change_nothing_vanish) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC(FX_F32, 2, 3)), *s = fx_b_scalar(g, FX_F32, 1);
    int64_t shape[] = {2, 3}, flat[] = {6}, id[] = {0, 1}, swap[] = {1, 0}, zero[] = {0, 0};
    ck_assert_ptr_eq(fx_b_reshape(g, x, 2, shape), x);
    ck_assert_ptr_eq(fx_b_reshape(g, fx_b_reshape(g, x, 1, flat), 2, shape), x);
    ck_assert_ptr_eq(fx_b_transpose(g, x, id), x);
    ck_assert_ptr_eq(fx_b_transpose(g, fx_b_transpose(g, x, swap), swap), x);
    ck_assert_ptr_eq(fx_b_broadcast(g, x, 2, shape, id), x);
    ck_assert_ptr_eq(fx_b_slice(g, x, zero, shape, NULL), x);
    ck_assert_ptr_eq(fx_b_pad(g, x, s, zero, zero, NULL), x);
    ck_assert_ptr_eq(fx_b_concatenate(g, 1, &x, 1), x);
    ck_assert_ptr_eq(fx_b_reverse(g, x, 0, NULL), x);
    ck_assert_ptr_eq(fx_b_reduce(g, x, FX_SYM_sum, 0, NULL), x);
    ck_assert_ptr_eq(fx_b_convert(g, x, FX_F32), x);
    ck_assert_ptr_eq(fx_b_broadcast_scalar(g, s, 2, shape), fx_b_like(x, 1));
    ck_assert_int_eq(g->status, FX_OK);
    fx_graph_unref(g);
}
END_TEST

START_TEST(the_first_error_sticks_and_names_the_line) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC(FX_F32, 2, 3)), *y = param(g, FX_SPEC(FX_F32, 3));
    fx_location_set("model.c", 42);
    ck_assert_ptr_null(fx_b_binary(g, FX_OP_add, x, y));
    fx_location_set("model.c", 43);
    ck_assert_ptr_null(fx_b_unary(g, FX_OP_not, x));
    fx_location_set(NULL, 0);
    ck_assert_int_eq(fx_graph_finish(g, 1, &x, true), FX_INVALID_ARGUMENT);
    ck_assert_str_eq(fx_last_error(), "model.c:42: add: operands 0 and 1; expected equal types and shapes; got f32[2,3] and "
                                      "f32[3]; broadcast one");
    fx_graph_unref(g);
}
END_TEST

START_TEST(finishing_drops_dead_nodes_and_puts_parameters_first) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC(FX_F32, 4)), *dead = fx_b_unary(g, FX_OP_exp, x), *y = fx_b_unary(g, FX_OP_sin, x);
    fx_node *unused = param(g, FX_SPEC0(FX_S32));
    ck_assert_ptr_nonnull(dead);
    ck_assert_int_eq(fx_graph_finish(g, 1, &y, true), FX_OK);
    ck_assert_int_eq(g->n_node, 3);
    ck_assert_ptr_eq(g->nodes[1], unused);
    ck_assert_uint_eq(y->id, 2);
    ck_assert_ptr_null(fx_b_unary(g, FX_OP_exp, x)); /* a finished graph takes no more nodes, and isn't spoilt */
    ck_assert_int_eq(g->status, FX_OK);
    fx_graph_unref(g);
}
END_TEST

START_TEST(regions_capture_values_of_enclosing_graphs) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC0(FX_F32)), *w = param(g, FX_SPEC0(FX_F32)), *i = param(g, FX_SPEC0(FX_S32));
    fx_node *two = fx_b_like(x, 2);
    fx_graph *a = fx_graph_new(g), *b = fx_graph_new(g), *inner = fx_graph_new(a);
    fx_node *ax = param(a, FX_SPEC0(FX_F32)), *bx = param(b, FX_SPEC0(FX_F32));
    fx_node *deep = fx_b_binary(inner, FX_OP_mul, ax, w); /* captures from a, and through a from g */
    ck_assert_int_eq(fx_graph_finish(inner, 1, &deep, true), FX_OK);
    int n;
    fx_node *const *caught = fx_graph_captures(inner, &n);
    ck_assert_int_eq(n, 2);
    ck_assert_ptr_eq(caught[0], ax);
    ck_assert_ptr_eq(caught[1], a->params[1]);
    fx_node *called = fx_result(fx_build(a, FX_OP_call, n, caught, 0, NULL, 1, &inner), 0);
    ck_assert_int_eq(fx_graph_finish(a, 1, &called, true), FX_OK);
    fx_node *by = fx_b_binary(b, FX_OP_add, fx_b_binary(b, FX_OP_mul, bx, two), x); /* the constant is copied */
    ck_assert_int_eq(fx_graph_finish(b, 1, &by, true), FX_OK);
    ck_assert_int_eq(a->n_captured, 1);
    ck_assert_int_eq(b->n_captured, 1);
    fx_graph *branch[2], *shared[2] = {a, b};
    int n_caught;
    ck_assert_int_eq(fx_graph_share_captures(2, shared, 1, branch, &n_caught, &caught), FX_OK);
    ck_assert_int_eq(n_caught, 2);
    fx_node *in[] = {i, x, caught[0], caught[1]};
    fx_node *r = fx_result(fx_build(g, FX_OP_cond, 4, in, 0, NULL, 2, branch), 0);
    ck_assert_int_eq(fx_graph_finish(g, 1, &r, true), FX_OK);
    ck_assert_ptr_eq(in[2], w);
    ck_assert_ptr_eq(in[3], x);
    fx_graph_unref(branch[0]);
    fx_graph_unref(branch[1]);
    fx_graph_unref(a);
    fx_graph_unref(b);
    fx_graph_unref(inner);
    fx_graph_unref(g);
}
END_TEST

START_TEST(values_of_a_stranger_are_refused) {
    fx_graph *g = fx_graph_new(NULL), *h = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC0(FX_F32));
    ck_assert_ptr_null(fx_b_unary(h, FX_OP_exp, x));
    ck_assert_ptr_nonnull(strstr(h->error, "another trace"));
    fx_graph_unref(g);
    fx_graph_unref(h);
}
END_TEST

START_TEST(equality_is_structural_across_graphs) {
    fx_graph *g[3];
    for (int k = 0; k < 3; k++) {
        g[k] = fx_graph_new(NULL);
        fx_node *x = param(g[k], FX_SPEC(FX_F32, 5));
        if (k == 1)
            fx_b_unary(g[k], FX_OP_tanh, x); /* dead */
        fx_node *y = fx_b_binary(g[k], FX_OP_add, fx_b_unary(g[k], FX_OP_exp, x), fx_b_like(x, k == 2 ? 2 : 1));
        ck_assert_int_eq(fx_graph_finish(g[k], 1, &y, false), FX_OK);
    }
    ck_assert(fx_graph_equal(g[0], g[1]));
    ck_assert_uint_eq(fx_graph_hash(g[0]), fx_graph_hash(g[1]));
    ck_assert(!fx_graph_equal(g[0], g[2]));
    for (int k = 0; k < 3; k++)
        fx_graph_unref(g[k]);
}
END_TEST

static void *use_shared(void *graph) {
    for (int i = 0; i < 50; i++) {
        fx_graph *g = fx_graph_ref(graph), *h = NULL, *outer = fx_graph_new(NULL);
        fx_node *x = fx_graph_param(outer, &g->params[0]->spec), *y;
        bool ok = fx_graph_simplify(g, &h) == FX_OK && fx_graph_equal(g, h) && fx_graph_verify(g) == FX_OK;
        ok = ok && (y = fx_result(fx_build(outer, FX_OP_call, 1, &x, 0, NULL, 1, &g), 0)) &&
             fx_graph_finish(outer, 1, &y, true) == FX_OK;
        fx_graph_unref(g);
        fx_graph_unref(h);
        fx_graph_unref(outer);
        if (!ok)
            return graph;
    }
    return NULL;
}

START_TEST(threads_share_a_finished_graph) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = param(g, FX_SPEC(FX_F32, 8)), *y = x;
    for (int i = 0; i < 50; i++)
        y = fx_b_binary(g, FX_OP_mul, fx_b_unary(g, FX_OP_sin, y), x);
    ck_assert_int_eq(fx_graph_finish(g, 1, &y, true), FX_OK);
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, use_shared, g), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_int_eq(g->refs, 1);
    fx_graph_unref(g);
}
END_TEST

START_TEST(an_error_in_a_region_reaches_the_graph_that_uses_it) {
    fx_graph *g = fx_graph_new(NULL), *r = fx_graph_new(g);
    fx_node *x = param(g, FX_SPEC0(FX_F32)), *a = param(r, FX_SPEC0(FX_F32));
    fx_location_set("loop.c", 7);
    fx_node *b = fx_b_unary(r, FX_OP_popcnt, a);
    fx_location_set(NULL, 0);
    ck_assert_int_eq(fx_graph_finish(r, 1, &b, true), FX_INVALID_ARGUMENT);
    ck_assert_ptr_null(fx_build(g, FX_OP_call, 1, &x, 0, NULL, 1, &r));
    ck_assert_int_eq(fx_graph_finish(g, 1, &x, true), FX_INVALID_ARGUMENT);
    ck_assert_str_eq(fx_last_error(), "loop.c:7: popcnt: operand 0; expected signed unsigned; got f32[]; convert it");
    fx_graph_unref(r);
    fx_graph_unref(g);
}
END_TEST

START_TEST(inlining_keeps_locations_and_scopes) {
    fx_graph *f = fx_graph_new(NULL), *g = fx_graph_new(NULL);
    f->scope = "block";
    fx_location_set("f.c", 3);
    fx_node *y = fx_b_unary(f, FX_OP_exp, param(f, FX_SPEC0(FX_F32)));
    fx_location_set("g.c", 9);
    ck_assert_int_eq(fx_graph_finish(f, 1, &y, true), FX_OK);
    fx_node *x = param(g, FX_SPEC0(FX_F32)), *z, *wrong = param(g, FX_SPEC0(FX_S32));
    ck_assert_int_eq(fx_graph_inline(g, f, &x, &z), FX_OK);
    ck_assert_str_eq(z->file, "f.c");
    ck_assert_int_eq(z->line, 3);
    ck_assert_str_eq(z->scope, "block");
    ck_assert_ptr_eq(fx_b_unary(g, FX_OP_exp, x), z);
    ck_assert_int_eq(fx_graph_inline(g, f, &wrong, &z), FX_INVALID_ARGUMENT);
    ck_assert_str_eq(g->error, "g.c:9: calling a function: argument 0; expected f32[]; got s32[]");
    fx_location_set(NULL, 0);
    fx_graph_unref(f);
    fx_graph_unref(g);
}
END_TEST

START_TEST(absent_expressions_are_null) {
    ck_assert_ptr_null(fx_op_get(FX_OP_exp)->int_expr);
    ck_assert_ptr_null(fx_op_get(FX_OP_popcnt)->float_expr);
    ck_assert_str_eq(fx_op_get(FX_OP_add)->float_expr, "x + y");
}
END_TEST

int main(void) {
    Suite *s = suite_create("graph");
    TCase *c = tcase_create("graph");
    suite_add_tcase(s, c);
    tcase_add_test(c, equal_nodes_are_one_node);
    tcase_add_test(c, views_that_change_nothing_vanish);
    tcase_add_test(c, the_first_error_sticks_and_names_the_line);
    tcase_add_test(c, finishing_drops_dead_nodes_and_puts_parameters_first);
    tcase_add_test(c, regions_capture_values_of_enclosing_graphs);
    tcase_add_test(c, values_of_a_stranger_are_refused);
    tcase_add_test(c, equality_is_structural_across_graphs);
    tcase_add_test(c, threads_share_a_finished_graph);
    tcase_add_test(c, an_error_in_a_region_reaches_the_graph_that_uses_it);
    tcase_add_test(c, inlining_keeps_locations_and_scopes);
    tcase_add_test(c, absent_expressions_are_null);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
