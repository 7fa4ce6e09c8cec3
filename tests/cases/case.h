/* case.h - cases with known answers, to be run by any executor: the evaluator, a device, fused or not.
 *
 * A case builds small graphs, runs them and compares with Check's assertions. Every graph with little
 * input is run twice with run-time arguments and once with its inputs as constants; all three must
 * give the same bits (f32 and f64 constants on a device: nearly). Result buffers are filled with a NaN pattern first, so that unwritten elements show. */
#ifndef FX_TESTS_CASE_H
#define FX_TESTS_CASE_H

#include "core/graph/graph.h"

/* Runs a finished graph on host buffers; `self` is the executor's own. With `skipped`, graphs for which run gives
 * FX_UNSUPPORTED are counted there, and their results are the evaluator's. */
typedef struct executor {
    const char *name;
    fx_status (*run)(void *self, const fx_graph *g, const void *const *args, void *const *results);
    void *self;
    int *skipped;
    /* The same where the memory of these arguments may become results'; NULL: as run. */
    fx_status (*run_donating)(void *self, const fx_graph *g, int n_donate, const int *donate, const void *const *args,
                              void *const *results);
} executor;

enum { CASE_RARE = 3, CASE_ARRAYS = 512 }; /* most arguments, and most results, of a graph */

extern const executor case_evaluator; /* fx_graph_eval */

/* Each fails the current test when the executor disagrees. Named after the shared cases. */
void case_a001_gelu_stays_finite(const executor *e);
void case_a003_unaries_saturate(const executor *e);
void case_a005_softmax_of_masked_rows(const executor *e);
void case_a007_layer_norm_far_from_zero(const executor *e);
void case_a009_nan_propagates(const executor *e);
void case_a011_arg_reduce_index_is_exact(const executor *e); /* takes 64 MiB */
void case_a013_integer_division(const executor *e);
void case_a015_float_to_int_saturates(const executor *e);
void case_a017_sixteen_bit_sums_are_wide(const executor *e);
void case_a019_accurate_near_zero(const executor *e);
void case_a021_rounding(const executor *e);
void case_a023_infinities_survive(const executor *e);
void case_a025_gather_clamps_scatter_drops(const executor *e);
void case_a027_updates_keep_value_semantics(const executor *e);
void case_a029_views_in_a_chain(const executor *e);
void case_a031_every_length(const executor *e);
void case_a033_narrow_products(const executor *e);
void case_a035_broadcast_batch(const executor *e);
void case_a037_empty_arrays(const executor *e);
void case_a039_many_workgroups(const executor *e); /* takes 128 MiB */
void case_a041_cumulative(const executor *e);
void case_a043_convolution(const executor *e);
void case_a045_pooling(const executor *e);
void case_a047_limits_of_a_kernel(const executor *e);
void case_a049_chains_of_dispatches(const executor *e);
void case_a051_f16_scores_are_wide(const executor *e);
void case_b001_select_keeps_the_other_branch_out(const executor *e);
void case_b003_ties_share(const executor *e);
void case_b005_max_pooling(const executor *e);
void case_b007_products_with_zeros(const executor *e);
void case_b009_second_derivatives(const executor *e);
void case_b011_gather_derivative_follows_the_clamp(const executor *e);
void case_b013_indexing_batches_along_any_axis(const executor *e);
void case_b015_lanes_of_a_while_freeze(const executor *e);
void case_b017_custom_rules_under_batching(const executor *e);
void case_b019_shared_values_add_up(const executor *e);
void case_b021_integers_have_no_derivative(const executor *e);
void case_c003_adamw_steps(const executor *e);
void case_c005_what_decays(const executor *e);
void case_c007_accumulated_gradients(const executor *e);
void case_c009_ignored_targets_and_smoothing(const executor *e);
void case_c013_one_global_norm(const executor *e);

/* All of the above with their names. */
typedef struct case_entry {
    const char *name;
    void (*run)(const executor *e);
    int most_skipped;        /* runs that a device may refuse, and only when it lacks one of: */
    fx_dtype rare[CASE_RARE]; /* element types that not every device has; then FX_BOOL */
} case_entry;
extern const case_entry case_table[];
extern const int case_count;

/* ---- for writing cases ---- */

/* An array on the host; data is malloc'd and freed by case_run when it is an argument. */
typedef struct case_array {
    fx_spec spec;
    void *data;
} case_array;

case_array case_values(fx_spec spec, const double *values); /* converted to the type, exactly where it can be */
case_array case_bytes(fx_spec spec, const void *bytes);     /* copied */
case_array case_full(fx_spec spec, double value);
case_array case_formula(fx_spec spec, int64_t a, int64_t m, int64_t b); /* ((a*i) mod m) + b over the flat index */
double case_get(const case_array *x, int64_t i);
void case_free(case_array *x);

#define CASE_COUNT(type, ...) (int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type))
/* Operands, attributes, lists for fx_build. */
#define CASE_LENGTH(array) (int)(sizeof(array) / sizeof *(array))
#define IN(...)                                         \
    CASE_COUNT(fx_node *, __VA_ARGS__), (fx_node *[]) { \
        __VA_ARGS__                                     \
    }
#define ATTR(...)                                   \
    CASE_COUNT(fx_attr, __VA_ARGS__), (fx_attr[]) { \
        __VA_ARGS__                                 \
    }
#define NO_IN 0, NULL
#define NO_ATTR 0, NULL
#define LIST(name, ...) FX_LIST(name, CASE_COUNT(int64_t, __VA_ARGS__), ((const int64_t[]){__VA_ARGS__}))
#define EMPTY(name) FX_LIST(name, 0, NULL)
#define OP(g, name, in, ...) fx_build((g), FX_OP_##name, in, __VA_ARGS__, 0, NULL)
#define VALUES(spec, ...) case_values((spec), (const double[]){__VA_ARGS__})

fx_node *case_const(fx_graph *g, fx_dtype d, double value); /* a scalar */

/* Finishes g with the results, runs it with the arguments (its parameters, in order) and stores one
 * array a result in out. Frees the graph and the arguments. */
void case_run(const executor *e, fx_graph *g, int n_out, fx_node *const *results, int n_arg, case_array *args,
              case_array *out);
/* One result, compared and freed: |got - want| <= abs + rel |want|; NaN equals NaN; zeros must agree in
 * sign when both bounds are 0. */
void case_check(const executor *e, const char *what, fx_graph *g, fx_node *result, int n_arg, case_array *args,
                const double *want, double abs, double rel);
void case_compare(const executor *e, const char *what, const case_array *got, const double *want, double abs,
                  double rel);
/* S1: sum of all; S2: sum of ((flat index mod 97) + 1) times the element. */
void case_sums(const executor *e, const char *what, const case_array *got, double s1, double s2);

#endif
