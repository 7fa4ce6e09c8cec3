/* test_gen.c - the engine of property tests: 2,000 random graphs are valid, evaluate, survive printing and parsing and
 * simplification, and are tame; the shrinker finds small graphs. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"
#include "tests/gen.h"

enum { GRAPHS = 2000 };

/* Evaluates what a graph's text parses to. */
static fx_status run_reparsed(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    (void)self;
    fx_graph *copy = NULL;
    char *text = fx_graph_print(g);
    ck_assert_ptr_nonnull(text);
    fx_status st = fx_graph_parse(text, strlen(text), &copy);
    free(text);
    if (st == FX_OK)
        st = fx_graph_equal(g, copy) ? fx_graph_eval(copy, args, results) : FX_INTERNAL;
    fx_graph_unref(copy);
    return st;
}

static fx_status run_simplified(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    (void)self;
    fx_graph *s = NULL;
    fx_status st = fx_graph_simplify(g, &s);
    if (st == FX_OK)
        st = fx_graph_eval(s, args, results);
    fx_graph_unref(s);
    return st;
}

typedef struct check {
    uint64_t seed;
    gen_run run;
} check;

static bool fails(const fx_graph *g, void *user) {
    check *c = user;
    char *text = gen_check(g, c->seed, c->run, NULL);
    free(text);
    return text != NULL;
}

static void expect_agreement(fx_graph *g, uint64_t seed, gen_run run) {
    char *text = gen_check(g, seed, run, NULL);
    if (!text)
        return;
    check c = {seed, run};
    fx_graph *small = gen_shrink(g, fails, &c);
    ck_abort_msg("seed %llu: %s\nshrunk:\n%s", (unsigned long long)seed, text, fx_graph_print(small));
}

static void count_ops(const fx_graph *g, int *count) {
    for (int i = 0; i < g->n_node; i++) {
        count[g->nodes[i]->op]++;
        for (int k = 0; k < g->nodes[i]->n_region; k++)
            count_ops(g->nodes[i]->region[k], count);
    }
}

START_TEST(random_graphs_run_and_survive_text_and_simplification) {
    int count[FX_OP_COUNT] = {0};
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        fx_graph *g = gen_graph(seed, NULL);
        ck_assert_msg(g, "seed %llu: %s", (unsigned long long)seed, fx_last_error());
        ck_assert_msg(fx_graph_verify(g) == FX_OK, "seed %llu: %s", (unsigned long long)seed, fx_last_error());
        expect_agreement(g, seed, run_reparsed);
        expect_agreement(g, seed, run_simplified);
        count_ops(g, count);
        fx_graph_unref(g);
    }
    for (int op = 0; op < FX_OP_COUNT; op++)
        ck_assert_msg(count[op], "no graph of %d has a %s", GRAPHS, fx_op_get((fx_op)op)->name);
}
END_TEST

START_TEST(generation_is_a_function_of_the_seed) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        fx_graph *a = gen_graph(seed, NULL), *b = gen_graph(seed, NULL);
        ck_assert(fx_graph_equal(a, b));
        fx_graph_unref(a);
        fx_graph_unref(b);
    }
}
END_TEST

/* Floats that are results stay finite: nothing runs away. */
START_TEST(float_results_stay_finite) {
    static const fx_dtype only[] = {FX_F32};
    gen_options o = {.n_dtype = 1, .dtypes = only, .steps = 20};
    int wild = 0, all = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        fx_graph *g = gen_graph(seed, &o);
        void *args[8], *results[8];
        for (int i = 0; i < g->n_param; i++)
            args[i] = gen_input(&g->params[i]->spec, seed, i);
        for (int i = 0; i < g->n_result; i++)
            results[i] = malloc(fx_eval_bytes(&g->results[i]->spec) + 1);
        ck_assert_int_eq(fx_graph_eval(g, (const void *const *)args, results), FX_OK);
        for (int i = 0; i < g->n_result; i++) {
            if (g->results[i]->spec.dtype == FX_F32)
                for (int64_t k = 0; k < fx_spec_count(&g->results[i]->spec); k++, all++)
                    wild += !isfinite(((float *)results[i])[k]);
            free(results[i]);
        }
        for (int i = 0; i < g->n_param; i++)
            free(args[i]);
        fx_graph_unref(g);
    }
    ck_assert_int_gt(all, 1000);
    ck_assert_msg(wild * 100 <= all, "%d of %d elements", wild, all); /* of nothing, a maximum is infinite */
}
END_TEST

static bool has_tanh(const fx_graph *g, void *user) {
    (void)user;
    for (int i = 0; i < g->n_node; i++)
        if (g->nodes[i]->op == FX_OP_tanh)
            return true;
    return false;
}

START_TEST(the_shrinker_finds_the_cause) {
    int found = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        fx_graph *g = gen_graph(seed, &(gen_options){.steps = 25});
        if (has_tanh(g, NULL)) {
            fx_graph *small = gen_shrink(g, has_tanh, NULL);
            ck_assert(has_tanh(small, NULL));
            ck_assert_msg(small->n_node == 2 && small->n_param == 1 && small->n_result == 1, "seed %llu:\n%s",
                          (unsigned long long)seed, fx_graph_print(small));
            ck_assert_int_eq(fx_spec_count(&small->params[0]->spec), 1);
            fx_graph_unref(small);
            found++;
        }
        fx_graph_unref(g);
    }
    ck_assert_int_gt(found, 5);
}
END_TEST

int main(void) {
    Suite *s = suite_create("gen");
    TCase *c = tcase_create("gen");
    suite_add_tcase(s, c);
    tcase_add_test(c, random_graphs_run_and_survive_text_and_simplification);
    tcase_add_test(c, generation_is_a_function_of_the_seed);
    tcase_add_test(c, float_results_stay_finite);
    tcase_add_test(c, the_shrinker_finds_the_cause);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
