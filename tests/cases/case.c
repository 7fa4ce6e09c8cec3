/* case.c - what cases share: arrays, running three ways, comparing. */
#include "tests/cases/case.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 4096 }; /* inputs with fewer elements are also run as constants */

static fx_status evaluate(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    (void)self;
    return fx_graph_eval(g, args, results);
}

const executor case_evaluator = {"evaluator", evaluate, NULL, NULL, NULL};

const case_entry case_table[] = {
    {"A-001", case_a001_gelu_stays_finite, 3, {FX_BF16}},
    {"A-003", case_a003_unaries_saturate, 0, {0}},
    {"A-005", case_a005_softmax_of_masked_rows, 0, {0}},
    {"A-007", case_a007_layer_norm_far_from_zero, 0, {0}},
    {"A-009", case_a009_nan_propagates, 0, {0}},
    {"A-011", case_a011_arg_reduce_index_is_exact, 3, {FX_U8, FX_S16}},
    {"A-013", case_a013_integer_division, 0, {0}},
    {"A-015", case_a015_float_to_int_saturates, 9, {FX_S8, FX_U8, FX_S16}},
    {"A-017", case_a017_sixteen_bit_sums_are_wide, 10, {FX_F16, FX_BF16}},
    {"A-019", case_a019_accurate_near_zero, 0, {0}},
    {"A-021", case_a021_rounding, 0, {0}},
    {"A-023", case_a023_infinities_survive, 0, {0}},
    {"A-025", case_a025_gather_clamps_scatter_drops, 0, {0}},
    {"A-027", case_a027_updates_keep_value_semantics, 0, {0}},
    {"A-029", case_a029_views_in_a_chain, 0, {0}},
    {"A-031", case_a031_every_length, 0, {0}},
    {"A-033", case_a033_narrow_products, 0, {0}},
    {"A-035", case_a035_broadcast_batch, 0, {0}},
    {"A-037", case_a037_empty_arrays, 0, {0}},
    {"A-039", case_a039_many_workgroups, 0, {0}},
    {"A-041", case_a041_cumulative, 0, {0}},
    {"A-043", case_a043_convolution, 0, {0}},
    {"A-045", case_a045_pooling, 0, {0}},
    {"A-047", case_a047_limits_of_a_kernel, 0, {0}},
    {"A-049", case_a049_chains_of_dispatches, 0, {0}},
    {"A-051", case_a051_f16_scores_are_wide, 10, {FX_F16}},
    {"B-001", case_b001_select_keeps_the_other_branch_out, 0, {0}},
    {"B-003", case_b003_ties_share, 0, {0}},
    {"B-005", case_b005_max_pooling, 0, {0}},
    {"B-007", case_b007_products_with_zeros, 0, {0}},
    {"B-009", case_b009_second_derivatives, 0, {0}},
    {"B-011", case_b011_gather_derivative_follows_the_clamp, 0, {0}},
    {"B-013", case_b013_indexing_batches_along_any_axis, 0, {0}},
    {"B-015", case_b015_lanes_of_a_while_freeze, 0, {0}},
    {"B-017", case_b017_custom_rules_under_batching, 0, {0}},
    {"B-019", case_b019_shared_values_add_up, 0, {0}},
    {"B-021", case_b021_integers_have_no_derivative, 0, {0}},
    {"C-003", case_c003_adamw_steps, 0, {0}},
    {"C-005", case_c005_what_decays, 0, {0}},
    {"C-007", case_c007_accumulated_gradients, 0, {0}},
    {"C-009", case_c009_ignored_targets_and_smoothing, 0, {0}},
    {"C-013", case_c013_one_global_norm, 1, {FX_F16}},
};
const int case_count = sizeof case_table / sizeof *case_table;

static size_t bytes_of(const fx_spec *s) {
    return (size_t)fx_spec_count(s) * fx_dtype_size(s->dtype);
}

static case_array empty(fx_spec spec) {
    case_array x = {spec, malloc(bytes_of(&spec) + 1)};
    ck_assert_ptr_nonnull(x.data);
    return x;
}

static void put(case_array *x, int64_t i, double v) {
    switch (x->spec.dtype) {
    case FX_BOOL:
        ((uint8_t *)x->data)[i] = v != 0;
        break;
    case FX_S8:
        ((int8_t *)x->data)[i] = (int8_t)v;
        break;
    case FX_U8:
        ((uint8_t *)x->data)[i] = (uint8_t)v;
        break;
    case FX_S16:
        ((int16_t *)x->data)[i] = (int16_t)v;
        break;
    case FX_U16:
        ((uint16_t *)x->data)[i] = (uint16_t)v;
        break;
    case FX_S32:
        ((int32_t *)x->data)[i] = (int32_t)v;
        break;
    case FX_U32:
        ((uint32_t *)x->data)[i] = (uint32_t)v;
        break;
    case FX_S64:
        ((int64_t *)x->data)[i] = (int64_t)v;
        break;
    case FX_U64:
        ((uint64_t *)x->data)[i] = (uint64_t)v;
        break;
    case FX_F16:
        ((uint16_t *)x->data)[i] = fx_f64_to_f16(v);
        break;
    case FX_BF16:
        ((uint16_t *)x->data)[i] = fx_f64_to_bf16(v);
        break;
    case FX_F32:
        ((float *)x->data)[i] = (float)v;
        break;
    default:
        ((double *)x->data)[i] = v;
    }
}

double case_get(const case_array *x, int64_t i) {
    switch (x->spec.dtype) {
    case FX_BOOL:
    case FX_U8:
        return ((uint8_t *)x->data)[i];
    case FX_S8:
        return ((int8_t *)x->data)[i];
    case FX_S16:
        return ((int16_t *)x->data)[i];
    case FX_U16:
        return ((uint16_t *)x->data)[i];
    case FX_S32:
        return ((int32_t *)x->data)[i];
    case FX_U32:
        return ((uint32_t *)x->data)[i];
    case FX_S64:
        return (double)((int64_t *)x->data)[i];
    case FX_U64:
        return (double)((uint64_t *)x->data)[i];
    case FX_F16:
        return (double)fx_f16_to_f32(((uint16_t *)x->data)[i]);
    case FX_BF16:
        return (double)fx_bf16_to_f32(((uint16_t *)x->data)[i]);
    case FX_F32:
        return (double)((float *)x->data)[i];
    default:
        return ((double *)x->data)[i];
    }
}

case_array case_values(fx_spec spec, const double *values) {
    case_array x = empty(spec);
    for (int64_t i = 0; i < fx_spec_count(&spec); i++)
        put(&x, i, values[i]);
    return x;
}

case_array case_bytes(fx_spec spec, const void *bytes) {
    case_array x = empty(spec);
    memcpy(x.data, bytes, bytes_of(&spec));
    return x;
}

case_array case_full(fx_spec spec, double value) {
    case_array x = empty(spec);
    for (int64_t i = 0; i < fx_spec_count(&spec); i++)
        put(&x, i, value);
    return x;
}

case_array case_formula(fx_spec spec, int64_t a, int64_t m, int64_t b) {
    case_array x = empty(spec);
    for (int64_t i = 0; i < fx_spec_count(&spec); i++)
        put(&x, i, (double)(a * i % m + b));
    return x;
}

void case_free(case_array *x) {
    free(x->data);
    x->data = NULL;
}

fx_node *case_const(fx_graph *g, fx_dtype d, double value) {
    case_array x = case_full(FX_SPEC0(d), value);
    fx_node *n = OP(g, constant, NO_IN, ATTR(FX_INT(dtype, d), EMPTY(shape), FX_DATA(value, fx_dtype_size(d), x.data)));
    case_free(&x);
    return n;
}

/* Constants are folded by the evaluator, whose last digits a device needn't share. */
static bool near(const case_array *a, const case_array *b) {
    double largest = 0;
    for (int64_t i = 0; i < fx_spec_count(&a->spec); i++)
        largest = isfinite(case_get(a, i)) ? fmax(largest, fabs(case_get(a, i))) : largest;
    for (int64_t i = 0; i < fx_spec_count(&a->spec); i++) {
        double x = case_get(a, i), y = case_get(b, i);
        if (isfinite(x) ? !(fabs(x - y) <= 2e-6 * (fabs(x) + 1e-2 * largest)) : !(x == y || (isnan(x) && isnan(y))))
            return false;
    }
    return true;
}

/* What a device makes of these is its own, and not what constants are folded to. */
static bool has_subnormals(const case_array *x) {
    for (int64_t i = 0; x->spec.dtype == FX_F32 && i < fx_spec_count(&x->spec) && i < SMALL; i++)
        if (fpclassify(((const float *)x->data)[i]) == FP_SUBNORMAL)
            return true;
    return false;
}

/* Runs g once; results are checked to agree with `first` unless that is being filled. */
static void run(const executor *e, const fx_graph *g, const void *const *args, case_array *first, bool fill) {
    case_array out[CASE_ARRAYS];
    void *results[CASE_ARRAYS];
    ck_assert_int_le(g->n_result, CASE_ARRAYS);
    for (int i = 0; i < g->n_result; i++) {
        out[i] = empty(g->results[i]->spec);
        for (size_t at = 0; at < bytes_of(&out[i].spec); at++)
            ((unsigned char *)out[i].data)[at] = (unsigned char)(0x7fc0deadu >> 8 * (at % 4));
        results[i] = out[i].data;
    }
    fx_status st = e->run(e->self, g, args, results);
    if (st == FX_UNSUPPORTED && e->skipped) {
        (*e->skipped)++;
        st = fx_graph_eval(g, args, results);
    }
    ck_assert_msg(st == FX_OK, "%s: %s: %s", e->name, fx_status_name(st), fx_last_error());
    for (int i = 0; i < g->n_result; i++) {
        if (fill) {
            first[i] = out[i];
            continue;
        }
        bool folded = e->skipped && !args && fx_dtype_is_float(out[i].spec.dtype) && fx_dtype_size(out[i].spec.dtype) >= 4;
        ck_assert_msg(folded ? near(&first[i], &out[i]) : !memcmp(out[i].data, first[i].data, bytes_of(&out[i].spec)),
                      "%s: result %d differs between runs, or with constants: %g and %g", e->name, i, case_get(&first[i], 0),
                      case_get(&out[i], 0));
        case_free(&out[i]);
    }
}

/* g with its parameters replaced by constants. */
static fx_graph *with_constants(const fx_graph *g, const case_array *args) {
    fx_graph *c = fx_graph_new(NULL);
    fx_node *in[CASE_ARRAYS], *out[CASE_ARRAYS];
    ck_assert_int_le(g->n_param, CASE_ARRAYS);
    for (int i = 0; i < g->n_param; i++)
        in[i] = OP(c, constant, NO_IN,
                   ATTR(FX_INT(dtype, args[i].spec.dtype), FX_LIST(shape, args[i].spec.rank, args[i].spec.dims),
                        FX_DATA(value, bytes_of(&args[i].spec), args[i].data)));
    ck_assert_msg(fx_graph_inline(c, g, in, out) == FX_OK, "%s", fx_last_error());
    ck_assert_msg(fx_graph_finish(c, g->n_result, out, true) == FX_OK, "%s", fx_last_error());
    return c;
}

void case_run(const executor *e, fx_graph *g, int n_out, fx_node *const *results, int n_arg, case_array *args,
              case_array *out) {
    const void *pointers[CASE_ARRAYS];
    int64_t total = 0;
    bool constants = true;
    fx_status st = fx_graph_finish(g, n_out, results, true);
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    ck_assert_int_eq(g->n_param, n_arg);
    for (int i = 0; i < n_arg; i++) {
        pointers[i] = args[i].data;
        total += fx_spec_count(&args[i].spec);
        constants = constants && !(e->skipped && has_subnormals(&args[i]));
    }
    run(e, g, pointers, out, true);
    if (total < SMALL) {
        run(e, g, pointers, out, false);
    }
    if (total < SMALL && constants) {
        fx_graph *c = with_constants(g, args);
        run(e, c, NULL, out, false);
        fx_graph_unref(c);
    }
    for (int i = 0; i < n_arg; i++)
        case_free(&args[i]);
    fx_graph_unref(g);
}

static bool agrees(double got, double want, double abs_bound, double rel) {
    if (isnan(want))
        return isnan(got);
    if (isinf(want) || (abs_bound == 0 && rel == 0))
        return got == want && (got != 0 || signbit(got) == signbit(want));
    return fabs(got - want) <= abs_bound + rel * fabs(want);
}

void case_compare(const executor *e, const char *what, const case_array *got, const double *want, double abs,
                  double rel) {
    for (int64_t i = 0; i < fx_spec_count(&got->spec); i++)
        ck_assert_msg(agrees(case_get(got, i), want[i], abs, rel), "%s: %s: element %lld: got %.17g, want %.17g",
                      e->name, what, (long long)i, case_get(got, i), want[i]);
}

void case_check(const executor *e, const char *what, fx_graph *g, fx_node *result, int n_arg, case_array *args,
                const double *want, double abs, double rel) {
    case_array got;
    ck_assert_msg(result, "%s: %s", what, g->error ? g->error : "no node");
    case_run(e, g, 1, &result, n_arg, args, &got);
    case_compare(e, what, &got, want, abs, rel);
    case_free(&got);
}

void case_sums(const executor *e, const char *what, const case_array *got, double s1, double s2) {
    double a = 0, b = 0;
    for (int64_t i = 0; i < fx_spec_count(&got->spec); i++) {
        a += case_get(got, i);
        b += (double)(i % 97 + 1) * case_get(got, i);
    }
    ck_assert_msg(a == s1 && b == s2, "%s: %s: sums %.17g and %.17g, want %.17g and %.17g", e->name, what, a, b, s1,
                  s2);
}
