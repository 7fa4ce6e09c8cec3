/* contract_check.h - for tests of products: builds texts of graphs, runs them under each schedule on each device, and
 * compares with the evaluator.
 *
 * Operands are small multiples of 1/8, so that sums are exact in f32 whatever their order: results without further
 * functions must be equal, not close. */
#ifndef TESTS_CONTRACT_CHECK_H
#define TESTS_CONTRACT_CHECK_H

#include <math.h>
#include <stdarg.h>

#include "program_run.h"

static test_device devices[MOST_DEVICES];
static const char *const schedule_names[] = {"auto", "naive", "subgroup", "shared"};

static uint32_t contract_state = 1;
static inline uint32_t contract_random(uint32_t below) {
    contract_state = contract_state * 1664525u + 1013904223u;
    return (contract_state >> 8) % below;
}

static inline void set_number(const fx_spec *s, void *p, int64_t i, double v) {
    switch (s->dtype) {
    case FX_F32:
        ((float *)p)[i] = (float)v;
        break;
    case FX_F64:
        ((double *)p)[i] = v;
        break;
    case FX_F16:
        ((uint16_t *)p)[i] = fx_f64_to_f16(v);
        break;
    case FX_BF16:
        ((uint16_t *)p)[i] = fx_f64_to_bf16(v);
        break;
    default: {
        int64_t n = (int64_t)(v * 8);
        memcpy((char *)p + (size_t)i * fx_dtype_size(s->dtype), &n, fx_dtype_size(s->dtype));
    }
    }
}

static inline double get_number(const fx_spec *s, const void *p, int64_t i) {
    switch (s->dtype) {
    case FX_F32:
        return (double)((const float *)p)[i];
    case FX_F64:
        return ((const double *)p)[i];
    case FX_F16:
        return (double)fx_f16_to_f32(((const uint16_t *)p)[i]);
    case FX_BF16:
        return (double)fx_bf16_to_f32(((const uint16_t *)p)[i]);
    case FX_S8:
        return ((const int8_t *)p)[i];
    case FX_U8:
    case FX_BOOL:
        return ((const uint8_t *)p)[i];
    case FX_S64:
        return (double)((const int64_t *)p)[i];
    default:
        return ((const int32_t *)p)[i];
    }
}

/* Runs the graph under the schedule on the device. tolerance: of the largest result. expect: what the schedule of the
 * first step must contain, or NULL. */
static inline void contract_check(test_device *t, const char *text, fx_contract_choice choice, double tolerance,
                                  const char *expect) {
    fx_graph *g;
    fx_program *p;
    fx_lower_options opt = {.contract = choice};
    void *in[16], *want[16], *got[16];
    ck_assert_msg(fx_graph_parse(text, strlen(text), &g) == FX_OK, "%s\n%s", text, fx_last_error());
    fx_status st = fx_program_create(g, &t->caps, &opt, &p);
    ck_assert_msg(st == FX_OK || st == FX_UNSUPPORTED, "%s\n%s", text, fx_last_error());
    if (st != FX_OK) { /* a type that the device lacks */
        fx_graph_unref(g);
        return;
    }
    if (expect)
        ck_assert_msg(p->n_step == 1 && strstr(p->steps[0].schedule, expect), "%s\nscheduled as %s, expected %s", text,
                      p->n_step ? p->steps[0].schedule : "nothing", expect);
    fx_program_destroy(p);
    for (int i = 0; i < g->n_param; i++) {
        int64_t n = fx_spec_count(&g->params[i]->spec);
        in[i] = calloc(1, (size_t)n * 8 + 8);
        for (int64_t e = 0; e < n; e++)
            set_number(&g->params[i]->spec, in[i], e, ((double)contract_random(17) - 8) / 8);
    }
    for (int i = 0; i < g->n_result; i++) {
        size_t bytes = (size_t)fx_spec_count(&g->results[i]->spec) * 8 + 8;
        want[i] = calloc(1, bytes);
        got[i] = malloc(bytes);
        memset(got[i], 0xff, bytes);
    }
    OK(fx_graph_eval(g, (const void *const *)in, want));
    OK(run_graph(t, g, &opt, (const void *const *)in, got));
    for (int i = 0; i < g->n_result; i++) {
        const fx_spec *s = &g->results[i]->spec;
        double scale = 0;
        for (int64_t e = 0; e < fx_spec_count(s); e++)
            scale = fmax(scale, fabs(get_number(s, want[i], e)));
        for (int64_t e = 0; e < fx_spec_count(s); e++) {
            double a = get_number(s, want[i], e), b = get_number(s, got[i], e);
            ck_assert_msg(fabs(a - b) <= tolerance * scale,
                          "%s\n%s, subgroups of %u: result %d element %lld: expected %.9g, got %.9g", text,
                          schedule_names[choice], t->caps.subgroup_size, i, (long long)e, a, b);
        }
    }
    for (int i = 0; i < g->n_param; i++)
        free(in[i]);
    for (int i = 0; i < g->n_result; i++) {
        free(want[i]);
        free(got[i]);
    }
    fx_graph_unref(g);
}

/* The text of a batched product, either operand transposed; batch 0: none. share: the right operand has no batch of
 * its own but is broadcast. */
static inline void product_text(char *out, size_t size, const char *type, int batch, int m, int n, int k, bool ta,
                                bool tb, bool share) {
    int a0 = ta ? k : m, a1 = ta ? m : k, b0 = tb ? n : k, b1 = tb ? k : n;
    if (!batch)
        snprintf(out, size,
                 "graph(%%a: %s[%d,%d], %%b: %s[%d,%d]) { %%c = dot_general(%%a, %%b) {lhs_contract=[%d], "
                 "rhs_contract=[%d]} return %%c }",
                 type, a0, a1, type, b0, b1, ta ? 0 : 1, tb ? 1 : 0);
    else if (share)
        snprintf(
            out, size,
            "graph(%%a: %s[%d,%d,%d], %%w: %s[%d,%d]) { %%b = broadcast_in_dim(%%w) {shape=[%d,%d,%d], dims=[1,2]} "
            "%%c = dot_general(%%a, %%b) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[%d], rhs_contract=[%d]} "
            "return %%c }",
            type, batch, a0, a1, type, b0, b1, batch, b0, b1, ta ? 1 : 2, tb ? 2 : 1);
    else
        snprintf(out, size,
                 "graph(%%a: %s[%d,%d,%d], %%b: %s[%d,%d,%d]) { %%c = dot_general(%%a, %%b) {lhs_batch=[0], "
                 "rhs_batch=[0], lhs_contract=[%d], rhs_contract=[%d]} return %%c }",
                 type, batch, a0, a1, type, batch, b0, b1, ta ? 1 : 2, tb ? 2 : 1);
}

/* Finds the devices, runs the suite in this process, closes them. */
static inline int contract_main(const char *name, void (*add)(TCase *c, int devices_found)) {
    int usable = find_vulkan(), n = 0;
    if (!usable)
        return SKIPPED;
    Suite *s = suite_create(name);
    TCase *c = tcase_create(name);
    for (int i = 0; i < n_devices; i++)
        if (device_infos[i].usable && vk->open(i, getenv("FORNAX_CACHE_DIR"), &devices[n].d, &devices[n].caps) == FX_OK)
            n++;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 600);
    add(c, n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (int i = 0; i < n; i++)
        vk->close(devices[i].d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
