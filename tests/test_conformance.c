/* test_conformance.c - every row of the op table with every element type on every device, fused and with a kernel a node,
 * inputs as run-time data (two runs) and as constants, against the evaluator; then the derivatives of them all.
 *
 * Elementwise f32 results may be off by the table's ulp column, narrow floats by one unit where that is not 0; integers,
 * bool and what only moves data are exact. Many small graphs are joined to one program, so that their kernels compile
 * together; a program that is refused is tried part by part. What a device can't do is counted and listed, and
 * the counts are asserted for the drivers that tests always have.
 *
 * ctest: slow, on cpu */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "core/graph/eval.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"
#include "tests/cases/device.h"
#include "tests/gen.h"
#include "tests/op_examples.h"

enum { MOST_ITEMS = 1200, JOINED = 24, MOST_ARGS = 8, ELEMENTS = 256 };

typedef struct item {
    fx_op op;
    fx_dtype dtype;
    fx_graph *g;
    double ulp;   /* units in the last place of each element; < 0: of the largest element */
    void *args[MOST_ARGS], *want[MOST_ARGS], *got[MOST_ARGS];
} item;

static device_set devices;
static item items[MOST_ITEMS];
static int n_items;

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

/* ---- values ---- */

static double special(fx_dtype d, int64_t i) {
    static const double floats[] = {0,    -0.0, 1,    -1,  0.5,  -2.5,     3,         1e-3,
                                    -7.25, 100, -1000, 0.1, 60000, INFINITY, -INFINITY, NAN};
    static const double ints[] = {0, 1, 2, 3, -1, -2, 7, 31, 32, 33, 63, 64, 100, -100, INFINITY, -INFINITY};
    return fx_dtype_is_float(d) ? floats[i % 16] : d == FX_BOOL ? (double)(i % 2) : ints[i % 16];
}

/* Operand `which` of an elementwise op: all pairs of special values; of a unary one, these and a range of others. */
static void *values(const fx_spec *s, int which, bool unary) {
    int64_t n = fx_spec_count(s);
    size_t size = fx_dtype_size(s->dtype);
    char *data = calloc((size_t)n + 1, size);
    uint64_t r = 88172645463325252u;
    for (int64_t i = 0; i < n; i++) {
        double v = special(s->dtype, which == 0 ? i : which == 1 ? i / 16 : i * 7 + 3);
        r ^= r << 13, r ^= r >> 7, r ^= r << 17;
        if (unary && i >= 16)
            v = (i % 2 ? -1 : 1) * pow(10, (double)(r % 1000) / 1000 * 6 - 3.5);
        if (unary && i >= 16 && !fx_dtype_is_float(s->dtype))
            v = (double)(int64_t)(r >> 11) * (s->dtype == FX_BOOL ? 1 : 1e-3);
        fx_element_store(s->dtype, data + (size_t)i * size, v);
    }
    return data;
}

/* Spacing of the type's numbers at v, at least that of its smallest normal one. */
static double unit(fx_dtype d, double v) {
    int digits = d == FX_F64 ? 53 : d == FX_F32 ? 24 : d == FX_F16 ? 11 : 8;
    int least = d == FX_F64 ? -1021 : d == FX_F16 ? -13 : -125, e;
    frexp(v, &e);
    return ldexp(1, (e < least ? least : e) - digits);
}

static double smallest_normal(fx_dtype d) {
    return d == FX_F64 ? DBL_MIN : d == FX_F16 ? 6.103515625e-5 : (double)FLT_MIN;
}

/* Index of the first element that differs more than allowed, or -1. Devices may flush subnormal results to 0. */
static int64_t differs(const item *it, const fx_spec *s, const void *got, const void *want) {
    size_t size = fx_dtype_size(s->dtype);
    double largest = 0;
    for (int64_t i = 0; i < fx_spec_count(s) && it->ulp < 0 && fx_dtype_is_float(s->dtype); i++) {
        double w = fabs(fx_element_load(s->dtype, (const char *)want + (size_t)i * size));
        largest = isfinite(w) && w > largest ? w : largest;
    }
    for (int64_t i = 0; i < fx_spec_count(s); i++) {
        const char *a = (const char *)got + (size_t)i * size, *b = (const char *)want + (size_t)i * size;
        if (!fx_dtype_is_float(s->dtype)) {
            if (memcmp(a, b, size))
                return i;
            continue;
        }
        double g = fx_element_load(s->dtype, a), w = fx_element_load(s->dtype, b);
        double bound = it->ulp < 0 ? -it->ulp * unit(s->dtype, largest) : it->ulp * unit(s->dtype, w);
        bool flushed = g == 0 && fabs(w) < smallest_normal(s->dtype);
        if (isnan(w) ? !isnan(g) : !(g == w || flushed || (isfinite(g) && isfinite(w) && fabs(g - w) <= bound)))
            return i;
    }
    return -1;
}

/* ---- what is tried ---- */

static item *add(fx_op op, fx_dtype dtype, fx_graph *g, double ulp) {
    ck_assert_int_lt(n_items, MOST_ITEMS);
    ck_assert_int_le(g->n_param, MOST_ARGS);
    ck_assert_int_le(g->n_result, MOST_ARGS);
    item *it = &items[n_items++];
    *it = (item){.op = op, .dtype = dtype, .g = g, .ulp = ulp};
    return it;
}

/* Once the arguments are there: what the evaluator makes of them. */
static void evaluate(item *it) {
    for (int i = 0; i < it->g->n_result; i++) {
        size_t bytes = fx_eval_bytes(&it->g->results[i]->spec) + 1;
        it->want[i] = malloc(bytes);
        it->got[i] = malloc(bytes);
    }
    OK(fx_graph_eval(it->g, (const void *const *)it->args, it->want));
}

static void elementwise_items(void) {
    for (int op = 0; op < FX_OP_COUNT; op++)
        for (int d = 0; d < FX_DTYPE_COUNT; d++) {
            const fx_op_info *info = fx_op_get((fx_op)op);
            fx_graph *g;
            fx_node *in[3];
            if (info->op_class == FX_CLASS_STRUCTURAL || !fx_op_takes((fx_op)op, (fx_dtype)d))
                continue;
            g = fx_graph_new(NULL);
            for (int i = 0; i < info->n_in; i++) {
                fx_spec s = FX_SPEC(op == FX_OP_select && i == 0 ? FX_BOOL : (fx_dtype)d, ELEMENTS);
                in[i] = fx_graph_param(g, &s);
            }
            fx_node *r = fx_b_elementwise(g, (fx_op)op, info->n_in, in);
            OK(fx_graph_finish(g, 1, &r, true));
            bool narrow = d == FX_F16 || d == FX_BF16;
            item *it = add((fx_op)op, (fx_dtype)d, g, narrow ? info->ulp != 0 : info->ulp);
            for (int i = 0; i < g->n_param; i++)
                it->args[i] = values(&g->params[i]->spec, i, info->n_in == 1);
            evaluate(it);
        }
}

/* The example with every f32 replaced by another type; NULL when that isn't valid. */
static fx_graph *retyped(const char *text, fx_dtype d) {
    char other[4096];
    size_t at = 0;
    fx_graph *g = NULL;
    for (const char *p = text; *p && at < sizeof other - 16;)
        if (!strncmp(p, "f32", 3)) {
            at += (size_t)snprintf(other + at, sizeof other - at, "%s", fx_dtype_name(d));
            p += 3;
        } else {
            other[at++] = *p++;
        }
    other[at] = '\0';
    return fx_graph_parse(other, at, &g) == FX_OK ? g : NULL;
}

static bool moves_data(fx_op op) {
    return fx_op_get(op)->view || op == FX_OP_gather || op == FX_OP_dynamic_slice || op == FX_OP_dynamic_update_slice ||
           op == FX_OP_sort || op == FX_OP_top_k || op == FX_OP_parameter || op == FX_OP_constant ||
           op == FX_OP_optimization_barrier || op == FX_OP_bitcast_convert || op == FX_OP_stop_gradient ||
           op == FX_OP_convert || op == FX_OP_reduce_precision;
}

static void structural_items(void) {
    for (int e = 0; e < N_OP_EXAMPLES; e++) {
        bool typed = strstr(op_examples[e].text, "f32") != NULL;
        for (int d = 0; d < FX_DTYPE_COUNT; d++) {
            fx_graph *g = typed || d == FX_F32 ? retyped(op_examples[e].text, (fx_dtype)d) : NULL;
            if (!g)
                continue;
            item *it = add(op_examples[e].op, (fx_dtype)d, g, moves_data(op_examples[e].op) ? 0 : -4);
            for (int i = 0; i < g->n_param; i++)
                it->args[i] = gen_input(&g->params[i]->spec, (uint64_t)e, i);
            evaluate(it);
        }
    }
}

/* From each type to each. */
static void conversion_items(void) {
    for (int from = 0; from < FX_DTYPE_COUNT; from++)
        for (int to = 0; to < FX_DTYPE_COUNT; to++) {
            fx_graph *g = fx_graph_new(NULL);
            fx_spec s = FX_SPEC((fx_dtype)from, ELEMENTS);
            fx_node *r = fx_b_convert(g, fx_graph_param(g, &s), (fx_dtype)to);
            OK(fx_graph_finish(g, 1, &r, true));
            item *it = add(FX_OP_convert, fx_dtype_size((fx_dtype)to) == 8 ? (fx_dtype)to : (fx_dtype)from, g, 0);
            it->args[0] = values(&s, 0, true);
            evaluate(it);
        }
}

static void rounding_items(void) {
    static const int bits[][2] = {{8, 7}, {5, 10}, {5, 2}, {4, 3}, {11, 19}, {6, 20}};
    for (int d = FX_F16; d <= FX_F64; d++)
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
            fx_graph *g = fx_graph_new(NULL);
            fx_spec s = FX_SPEC((fx_dtype)d, ELEMENTS);
            fx_attr attrs[] = {FX_INT(exponent_bits, bits[b][0]), FX_INT(mantissa_bits, bits[b][1])};
            fx_node *x = fx_graph_param(g, &s), *r = fx_build(g, FX_OP_reduce_precision, 1, &x, 2, attrs, 0, NULL);
            OK(fx_graph_finish(g, 1, &r, true));
            item *it = add(FX_OP_reduce_precision, (fx_dtype)d, g, 0);
            it->args[0] = values(&s, 0, true);
            evaluate(it);
        }
}

/* Cotangents of results -> cotangents of operands, for what has any. */
static void derivative_items(void) {
    int n = n_items;
    for (int i = 0; i < n; i++) {
        const item *of = &items[i];
        int wrt[MOST_ARGS], n_wrt = 0;
        fx_func *f = NULL;
        if (of->dtype != FX_F32 || of->g->n_result > 3)
            continue;
        for (int k = 0; k < of->g->n_param; k++)
            if (fx_dtype_is_float(of->g->params[k]->spec.dtype))
                wrt[n_wrt++] = k;
        if (!n_wrt || fx_vjp(fx_graph_func((fx_graph *)of->g), (fx_args){n_wrt, wrt}, &f) != FX_OK)
            continue; /* while loops */
        fx_graph *g = fx_func_graph(f);
        if (g->n_param > MOST_ARGS || g->n_result > MOST_ARGS) {
            fx_func_unref(f);
            continue;
        }
        item *it = add(of->op, FX_F32, g, -16);
        for (int k = 0; k < g->n_param; k++)
            it->args[k] = gen_input(&g->params[k]->spec, (uint64_t)i, k);
        evaluate(it);
    }
}

static void drop_items(void) {
    for (int i = 0; i < n_items; i++) {
        for (int k = 0; k < MOST_ARGS; k++) {
            free(items[i].args[k]);
            free(items[i].want[k]);
            free(items[i].got[k]);
        }
        fx_graph_unref(items[i].g);
    }
    n_items = 0;
}

/* ---- running ---- */

/* One graph that does what items of the list do; constants: without parameters. */
static fx_graph *join(item *const *list, int n, bool constants, const void **args, void **results) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *out[JOINED * MOST_ARGS];
    int n_arg = 0, n_out = 0;
    for (int i = 0; i < n; i++) {
        fx_node *in[MOST_ARGS];
        for (int k = 0; k < list[i]->g->n_param; k++) {
            const fx_spec *s = &list[i]->g->params[k]->spec;
            in[k] = constants ? fx_b_const_data(g, s, list[i]->args[k]) : fx_graph_param(g, s);
            args[n_arg++] = list[i]->args[k];
        }
        OK(fx_graph_inline(g, list[i]->g, in, out + n_out));
        for (int k = 0; k < list[i]->g->n_result; k++) {
            memset(list[i]->got[k], 0xa5, fx_eval_bytes(&list[i]->g->results[k]->spec));
            results[n_out++] = list[i]->got[k];
        }
    }
    OK(fx_graph_finish(g, n_out, out, true));
    return g;
}

static int failures;

static void compare(const executor *e, item *const *list, int n, const char *how) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < list[i]->g->n_result; k++) {
            const item *it = list[i];
            const fx_spec *s = &it->g->results[k]->spec;
            int64_t at = differs(it, s, it->got[k], it->want[k]);
            if (at < 0)
                continue;
            size_t size = fx_dtype_size(s->dtype);
            printf("FAILED on %s, %s, %s: %s result %d element %lld: got %.17g, want %.17g", e->name, how,
                   fx_op_get(it->op)->name, fx_dtype_name(it->dtype), k, (long long)at,
                   fx_element_load(s->dtype, (char *)it->got[k] + (size_t)at * size),
                   fx_element_load(s->dtype, (char *)it->want[k] + (size_t)at * size));
            for (int j = 0; j < it->g->n_param && fx_op_is_elementwise(it->op); j++)
                if (fx_spec_count(&it->g->params[j]->spec) == fx_spec_count(s))
                    printf("%s%.17g", j ? ", " : " of ",
                           fx_element_load(it->g->params[j]->spec.dtype,
                                           (char *)it->args[j] + (size_t)at * fx_dtype_size(it->g->params[j]->spec.dtype)));
            char *text = fx_graph_print(it->g);
            printf("\n%s\n", text);
            free(text);
            failures++;
        }
}

static int skipped_ops;
static char skip_list[8000];

static void run(const executor *e, item *const *list, int n) {
    const void *args[JOINED * MOST_ARGS];
    void *results[JOINED * MOST_ARGS];
    for (int constants = 0; constants < 2; constants++) {
        fx_graph *g = join(list, n, constants, args, results);
        fx_status st = device_run_times(e->self, g, constants ? NULL : args, results, constants ? 1 : 2);
        fx_graph_unref(g);
        if (st == FX_OK) {
            compare(e, list, n, constants ? "with constants" : "with data");
        } else if (n > 1) {
            for (int i = 0; i < n; i++)
                run(e, list + i, 1);
            return;
        } else if (st == FX_UNSUPPORTED) {
            size_t at = strlen(skip_list);
            snprintf(skip_list + at, sizeof skip_list - at, "%s: %s: %s\n", fx_op_get(list[0]->op)->name,
                     fx_dtype_name(list[0]->dtype), fx_last_error());
            skipped_ops++;
            return;
        } else {
            printf("FAILED on %s: %s %s: %s: %s\n", e->name, fx_op_get(list[0]->op)->name, fx_dtype_name(list[0]->dtype),
                   fx_status_name(st), fx_last_error());
            failures++;
            return;
        }
    }
}

/* What drivers that every test machine has must skip: no more and no less. */
typedef struct expected {
    const char *driver, *what;
    int by_type, by_op;
} expected;
static const expected skips[] = {
    {"llvmpipe", "elementwise", 0, 0},
    {"llvmpipe", "structural", 0, 0},
    {"llvmpipe", "conversions", 0, 0},
    {"llvmpipe", "rounding", 0, 0},
    {"llvmpipe", "derivatives", 0, 0},
    {"SwiftShader", "elementwise", 291, 0}, /* it has bool, s32, u32 and f32 */
    {"SwiftShader", "structural", 354, 22},
    {"SwiftShader", "conversions", 129, 24},
    {"SwiftShader", "rounding", 18, 0},
    {"SwiftShader", "derivatives", 0, 6},
};

static void run_all(const executor *e, const char *what) {
    const fx_device *d = ((device_self *)e->self)->device;
    item *list[JOINED];
    int n = 0, by_type = 0;
    failures = skipped_ops = 0;
    skip_list[0] = '\0';
    for (int i = 0; i < n_items; i++) {
        if (fx_device_supports((fx_device *)d, items[i].dtype) != FX_OK)
            by_type++;
        else
            list[n++] = &items[i];
        if (n == JOINED || (n && i == n_items - 1) || (n && items[i + 1].dtype != items[i].dtype && n > JOINED / 2)) {
            run(e, list, n);
            n = 0;
        }
    }
    printf("%s: %s: %d tried, %d skipped for their type, %d for their op\n%s", e->name, what, n_items - by_type, by_type,
           skipped_ops, skip_list);
    fflush(stdout);
    ck_assert_msg(!failures, "%d failures on %s", failures, e->name);
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++)
        if (device_is(d, skips[i].driver) && !strcmp(skips[i].what, what)) {
            ck_assert_int_eq(by_type, skips[i].by_type);
            ck_assert_int_eq(skipped_ops, skips[i].by_op);
        }
    ck_assert_int_eq(device_validation_messages(), 0);
}

START_TEST(elementwise_ops_agree_with_the_evaluator) {
    elementwise_items();
    run_all(&devices.executors[_i], "elementwise");
}
END_TEST

START_TEST(structural_ops_agree_with_the_evaluator) {
    structural_items();
    run_all(&devices.executors[_i], "structural");
}
END_TEST

START_TEST(conversions_agree_with_the_evaluator) {
    conversion_items();
    run_all(&devices.executors[_i], "conversions");
}
END_TEST

START_TEST(rounding_agrees_with_the_evaluator) {
    rounding_items();
    run_all(&devices.executors[_i], "rounding");
}
END_TEST

START_TEST(derivatives_agree_with_the_evaluator) {
    elementwise_items();
    structural_items();
    int n = n_items;
    derivative_items();
    for (int i = 0; i < n; i++) /* only the derivatives */
        items[i].dtype = FX_TUPLE;
    item kept[MOST_ITEMS];
    int n_kept = n_items - n;
    memcpy(kept, items + n, sizeof *kept * (size_t)n_kept);
    n_items = n;
    drop_items();
    memcpy(items, kept, sizeof *kept * (size_t)n_kept);
    n_items = n_kept;
    run_all(&devices.executors[_i], "derivatives");
}
END_TEST

int main(void) {
    Suite *s = suite_create("conformance");
    TCase *c = tcase_create("conformance");
    if (!device_set_open(&devices, false))
        return EXIT_FAILURE;
    if (!devices.n)
        return 77;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, NULL, drop_items);
    tcase_add_loop_test(c, elementwise_ops_agree_with_the_evaluator, 0, devices.n);
    tcase_add_loop_test(c, structural_ops_agree_with_the_evaluator, 0, devices.n);
    tcase_add_loop_test(c, conversions_agree_with_the_evaluator, 0, devices.n);
    tcase_add_loop_test(c, rounding_agrees_with_the_evaluator, 0, devices.n);
    tcase_add_loop_test(c, derivatives_agree_with_the_evaluator, 0, devices.n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    device_set_close(&devices);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
