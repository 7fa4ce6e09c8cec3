/* test_repeat.c - a group like one before gives the very steps and kernels that lowering it again would give, and a
 * model of many layers alike is lowered in little more than one layer's time. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/compile/program.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"
#include "gen.h"

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

enum { FULL, MODEST, PROCESSOR, KINDS };

/* A device with everything, one with little (bool is a word), one that is programmed in C. */
static fx_device_caps plain(int kind) {
    bool full = kind != MODEST;
    uint32_t size = kind == FULL ? 16 : kind == MODEST ? 4 : 1;
    return (fx_device_caps){.language = kind == PROCESSOR ? FX_LANGUAGE_C : FX_LANGUAGE_GLSL,
                            .bool_is_word = !full,
                            .storage8 = full,
                            .storage16 = full,
                            .int64 = full,
                            .f64 = full,
                            .subgroup_size = size,
                            .subgroup_min = size,
                            .subgroup_max = size,
                            .subgroup_shuffle = kind == FULL,
                            .subgroup_arithmetic = kind == FULL,
                            .subgroup_ballot = kind == FULL,
                            .max_invocations = full ? 1024 : 256,
                            .max_workgroup = {full ? 1024 : 256, full ? 1024 : 256, 64},
                            .max_groups = {65535, 65535, 65535},
                            .shared_bytes = 32768,
                            .max_args = full ? 32 : 16,
                            .max_allocation = (uint64_t)1 << 31,
                            .units = 2,
                            .barrier_is_slow = true};
}

/* Both programs as text, kernels included. */
static void expect_same(const fx_graph *g, const fx_device_caps *caps, bool no_fusion) {
    fx_lower_options once = {.no_fusion = no_fusion}, anew = {.no_fusion = no_fusion, .no_repeats = true};
    fx_program *p = NULL, *q = NULL;
    fx_status a = fx_program_create(g, caps, &once, &p), b = fx_program_create(g, caps, &anew, &q);
    ck_assert_int_eq(a, b);
    if (a != FX_OK)
        return; /* a type that the device lacks */
    char *x = fx_program_print(p), *y = fx_program_print(q), *graph = fx_graph_print(g);
    ck_assert_msg(!strcmp(x, y), "%s\nonce:\n%s\nanew:\n%s", graph, x, y);
    ck_assert_int_eq(p->n_buffer, q->n_buffer);
    ck_assert_int_eq(p->n_kernel, q->n_kernel);
    for (int i = 0; i < p->n_buffer; i++) {
        ck_assert_int_eq(p->buffers[i].kind, q->buffers[i].kind);
        ck_assert_int_eq(p->buffers[i].index, q->buffers[i].index);
        ck_assert_int_eq((int64_t)p->buffers[i].bytes, (int64_t)q->buffers[i].bytes);
        if (p->buffers[i].kind == FX_BUFFER_CONST)
            ck_assert(!memcmp(p->buffers[i].data, q->buffers[i].data, p->buffers[i].bytes));
    }
    for (int i = 0; i < p->n_kernel; i++)
        ck_assert_str_eq(p->kernels[i].source.source, q->kernels[i].source.source);
    for (int i = 0; i < p->n_step; i++)
        for (int j = 0; j < p->steps[i].n_arg; j++) {
            ck_assert_int_eq(p->steps[i].args[j].access, q->steps[i].args[j].access);
            ck_assert_int_eq(p->steps[i].args[j].offset, q->steps[i].args[j].offset);
            ck_assert_int_eq(p->steps[i].args[j].in_place_of, q->steps[i].args[j].in_place_of);
        }
    free(x);
    free(y);
    free(graph);
    fx_program_destroy(p);
    fx_program_destroy(q);
}

enum { WIDTH = 48, ROWS = 26 };

/* x, then w1 and w2 of each layer -> a number; layers are alike but for the third, which adds other things. */
static void layers(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    int n = *(const int *)user;
    int last = -1;
    fx_val x = in[0];
    (void)t;
    for (int i = 0; i < n; i++) {
        fx_val c = fx_sub(x, fx_reduce_mean(x, 1, &last, true));
        fx_val r = fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(c), 1, &last, true), i == 2 ? 1e-3 : 1e-6));
        fx_val h = fx_gelu(fx_matmul(fx_mul(c, r), in[1 + 2 * i]));
        x = fx_add(x, fx_matmul(i == 2 ? h : fx_softmax(h, -1), in[2 + 2 * i]));
        if (i % 2)
            x = fx_cumulative(x, 0, FX_CUMSUM, false);
    }
    out[0] = fx_reduce_sum(fx_square(x), -1, NULL, false);
}

static fx_func *trained(int n) {
    fx_spec specs[64] = {FX_SPEC(FX_F32, ROWS, WIDTH)};
    int wrt[64];
    fx_func *f, *g;
    for (int i = 0; i < 2 * n; i++)
        specs[1 + i] = FX_SPEC(FX_F32, WIDTH, WIDTH);
    for (int i = 0; i <= 2 * n; i++)
        wrt[i] = i;
    OK(fx_trace_func(layers, &n, 1 + 2 * n, specs, 1, &f));
    OK(fx_value_and_grad(f, (fx_args){1 + 2 * n, wrt}, &g));
    fx_func_unref(f);
    return g;
}

START_TEST(repeated_layers_give_the_program_that_lowering_each_gives) {
    for (int kind = 0; kind < KINDS; kind++)
        for (int n = 1; n < 8; n += 3) {
            fx_device_caps caps = plain(kind);
            fx_func *f = trained(n);
            expect_same(fx_func_graph(f), &caps, false);
            expect_same(fx_func_graph(f), &caps, true);
            fx_func_unref(f);
        }
}
END_TEST

START_TEST(random_programs_are_the_same_with_and_without) {
    for (uint64_t seed = 1; seed <= 400; seed++) {
        gen_options o = {.steps = 10 + (int)(seed % 30), .max_dim = seed % 5 ? 5 : 2};
        fx_device_caps caps = plain((int)(seed % KINDS));
        fx_graph *g = gen_graph(seed, &o);
        ck_assert_ptr_nonnull(g);
        expect_same(g, &caps, seed % 4 < 2);
        fx_graph_unref(g);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("repeat");
    TCase *c = tcase_create("repeat");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, repeated_layers_give_the_program_that_lowering_each_gives);
    tcase_add_test(c, random_programs_are_the_same_with_and_without);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
