/* test_lower.c - compiled programs against the evaluator on every Vulkan device: each op's examples, and elementwise
 * ops on several types. ctest: timeout 300 */
#include <math.h>

#include "op_examples.h"
#include "program_run.h"

static test_device devices[MOST_DEVICES];

static double number(const fx_spec *s, const void *p, int64_t i) {
    switch (s->dtype) {
    case FX_BOOL:
    case FX_U8:
        return ((const uint8_t *)p)[i];
    case FX_S8:
        return ((const int8_t *)p)[i];
    case FX_S16:
        return ((const int16_t *)p)[i];
    case FX_U16:
        return ((const uint16_t *)p)[i];
    case FX_S32:
        return ((const int32_t *)p)[i];
    case FX_U32:
        return ((const uint32_t *)p)[i];
    case FX_S64:
        return (double)((const int64_t *)p)[i];
    case FX_U64:
        return (double)((const uint64_t *)p)[i];
    case FX_F16:
        return (double)fx_f16_to_f32(((const uint16_t *)p)[i]);
    case FX_BF16:
        return (double)fx_bf16_to_f32(((const uint16_t *)p)[i]);
    case FX_F32:
        return (double)((const float *)p)[i];
    default:
        return ((const double *)p)[i];
    }
}

static uint32_t state = 1;
static uint32_t rnd(void) {
    return (state = state * 1664525u + 1013904223u) >> 8;
}

/* Values that meet edges: small numbers, zeros of both signs, ties, negative numbers, a few large ones. */
static void fill(const fx_spec *s, void *p) {
    static const double some[] = {0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 1.5, -2.5, 7, -7, 100, -128, 0.1};
    for (int64_t i = 0; i < fx_spec_count(s); i++) {
        double v = some[rnd() % (sizeof some / sizeof *some)];
        if (s->dtype == FX_F32)
            ((float *)p)[i] = (float)v;
        else if (s->dtype == FX_F64)
            ((double *)p)[i] = v;
        else if (s->dtype == FX_F16)
            ((uint16_t *)p)[i] = fx_f64_to_f16(v);
        else if (s->dtype == FX_BF16)
            ((uint16_t *)p)[i] = fx_f64_to_bf16(v);
        else if (s->dtype == FX_BOOL)
            ((uint8_t *)p)[i] = rnd() & 1;
        else {
            int64_t n = rnd() % 8 ? (int64_t)v : (int64_t)((uint64_t)rnd() << 40 | rnd());
            memcpy((char *)p + (size_t)i * fx_dtype_size(s->dtype), &n, fx_dtype_size(s->dtype));
        }
    }
}

static bool agree(const fx_spec *s, double want, double got, double ulp) {
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (want == got)
        return true;
    double eps = s->dtype == FX_F32    ? 1.2e-7
                 : s->dtype == FX_F64  ? 2.3e-16
                 : s->dtype == FX_F16  ? 9.8e-4
                 : s->dtype == FX_BF16 ? 7.9e-3
                                       : 0;
    return fabs(want - got) <= ulp * eps * (fabs(want) + 1e-3);
}

static void check_text(test_device *t, const char *text, double ulp) {
    for (int fused = 0; fused < 2; fused++) {
        fx_graph *g;
        fx_lower_options opt = {.no_fusion = !fused};
        void *in[64], *want[64], *got[64];
        OK(fx_graph_parse(text, strlen(text), &g));
        for (int i = 0; i < g->n_param; i++) {
            in[i] = calloc(1, (size_t)fx_spec_count(&g->params[i]->spec) * 8 + 8);
            fill(&g->params[i]->spec, in[i]);
        }
        for (int i = 0; i < g->n_result; i++) {
            want[i] = calloc(1, (size_t)fx_spec_count(&g->results[i]->spec) * 8 + 8);
            got[i] = calloc(1, (size_t)fx_spec_count(&g->results[i]->spec) * 8 + 8);
        }
        OK(fx_graph_eval(g, (const void *const *)in, want));
        fx_status st = run_graph(t, g, &opt, (const void *const *)in, got);
        ck_assert_msg(st == FX_OK || st == FX_UNSUPPORTED, "%s\n%s", text, fx_last_error());
        for (int i = 0; i < g->n_result && st == FX_OK; i++) {
            const fx_spec *s = &g->results[i]->spec;
            for (int64_t e = 0; e < fx_spec_count(s); e++) {
                double a = number(s, want[i], e), b = number(s, got[i], e);
                ck_assert_msg(agree(s, a, b, ulp), "%s\nresult %d element %lld: expected %.9g, got %.9g (fused %d)",
                              text, i, (long long)e, a, b, fused);
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
}

START_TEST(examples_of_structural_ops_agree_with_the_evaluator) {
    for (int i = 0; i < N_OP_EXAMPLES; i++)
        check_text(&devices[_i], op_examples[i].text, 16);
}
END_TEST

/* What the examples of ops don't meet: found by random programs. */
START_TEST(combinations_agree_with_the_evaluator) {
    static const char *const texts[] = {
        "graph(%x: f64[40]) { %y = reduce_precision(%x) {exponent_bits=5, mantissa_bits=1} return %y }",
        "graph(%x: f64[40]) { %y = reduce_precision(%x) {exponent_bits=11, mantissa_bits=51} return %y }",
        "graph(%x: f32[40]) { %y = reduce_precision(%x) {exponent_bits=8, mantissa_bits=3} return %y }",
        "graph(%x: u8[5,4], %i: u8[]) { %t = reduce_fn(%x, %i, graph(%a: u8[], %b: u8[]) { "
        "%n = constant() {shape=[], dtype=s32, value=[4]} %w = while(%n, %b, graph(%i: s32[], %v: u8[]) { "
        "%z = constant() {shape=[], dtype=s32, value=[0]} %c = gt(%i, %z) return %c }, graph(%i: s32[], %v: u8[]) { "
        "%o = constant() {shape=[], dtype=s32, value=[1]} %j = sub(%i, %o) %u = not(%v) return %j, %u }) "
        "{n_carry=2} "
        "%p = project(%w) {index=1} %r = add(%p, %a) return %r }) {dims=[0]} %y = project(%t) {index=0} return %y }",
        "graph(%x: s32[64,300]) { %y = reduce(%x) {kind=sum, dims=[0,1]} %z = reduce(%x) {kind=max, dims=[0,1]} "
        "%m = reduce(%x) {kind=sum, dims=[0]} return %y, %z, %m }",
        "graph(%x: u32[5,1]) { %c = constant() {shape=[], dtype=u32, value=[1]} %w = windows(%x, %c) {strides=[2,2], "
        "low=[1,1], "
        "high=[1,1], window=[3,1]} %y = reduce_window(%w) {strides=[2,1,2,1], window=[3,1,2,1], kind=max} return %y }",
        "graph(%x: bf16[33,64], %y: bf16[64]) { %b = broadcast_in_dim(%y) {shape=[33,64], dims=[1]} %z = add(%x, %b) "
        "return %z }",
        "graph(%x: s16[33,64], %y: u8[33,64]) { %z = convert(%y) {dtype=s16} %r = mul(%x, %z) return %r }"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(&devices[_i], texts[i], 64);
}
END_TEST

START_TEST(elementwise_ops_agree_with_the_evaluator) {
    static const fx_dtype quick[] = {FX_F32, FX_S32, FX_U8, FX_BF16, FX_BOOL};
    bool all = getenv("LOWER_ALL_TYPES") != NULL;
    for (int op = 0; op < FX_OP_COUNT; op++)
        for (int d = 0; d < (all ? FX_DTYPE_COUNT : (int)(sizeof quick / sizeof *quick)); d++) {
            char text[256];
            fx_dtype type = all ? (fx_dtype)d : quick[d];
            if (op_example_elementwise((fx_op)op, type, text, sizeof text))
                check_text(&devices[_i], text, 4 + fx_op_get((fx_op)op)->ulp);
        }
}
END_TEST

int main(void) {
    int usable = find_vulkan(), n = 0;
    if (!usable)
        return 77;
    Suite *s = suite_create("lower");
    TCase *c = tcase_create("lower");
    for (int i = 0; i < n_devices; i++)
        if (device_infos[i].usable && vk->open(i, getenv("FORNAX_CACHE_DIR"), &devices[n].d, &devices[n].caps) == FX_OK)
            n++;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, examples_of_structural_ops_agree_with_the_evaluator, 0, n);
    tcase_add_loop_test(c, combinations_agree_with_the_evaluator, 0, n);
    tcase_add_loop_test(c, elementwise_ops_agree_with_the_evaluator, 0, n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (int i = 0; i < n; i++)
        vk->close(devices[i].d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
