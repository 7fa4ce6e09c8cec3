/* gen.h - random programs: a generator of typed graphs, a shrinker, inputs and a comparison.
 *
 * What it builds keeps comparisons between devices meaningful: floats stay within a few hundred, functions
 * are kept off their poles, and ops that jump (floor, compare, sort, convert to integer) only see values
 * that no rounding touched. Equal seeds and options give equal graphs. */
#ifndef FX_TESTS_GEN_H
#define FX_TESTS_GEN_H

#include "core/graph/graph.h"

typedef struct gen_options {
    int n_dtype; /* 0: all element types */
    const fx_dtype *dtypes;
    int steps;                                /* ops to add, about; 0: 12 */
    int64_t max_dim;                          /* 0: 5 */
    int max_rank;                             /* 0: 3 */
    bool no_regions;                          /* no control flow, sort, reduce_fn */
    bool (*allows)(fx_op op, fx_dtype dtype); /* NULL: everything; asked for op with its result's type */
} gen_options;

/* A finished graph, owned by the caller; NULL (with fx_last_error) only when memory is out. */
fx_graph *gen_graph(uint64_t seed, const gen_options *o);

/* A host array for parameter `index` of a generated graph: multiples of 1/4 within 4, or integers in the type's
 * small range. malloc'd. */
void *gen_input(const fx_spec *spec, uint64_t seed, int index);
/* Results are compared as |got - want| <= tolerance * (1 + largest finite |want|); integers and bool exactly.
 * Returns the index of the first element that differs, -1 when none does. */
int64_t gen_compare(const fx_spec *spec, const void *got, const void *want, double tolerance);
double gen_tolerance(fx_dtype dtype); /* for results of this type, whatever came before */

/* The smallest graph found for which `fails` still holds: results dropped, nodes replaced by operands,
 * parameters or zeros, sizes cut, unused parameters dropped. `g` itself when nothing smaller fails. The
 * caller owns the result (a reference of g in that case). */
typedef bool (*gen_predicate)(const fx_graph *g, void *user);
fx_graph *gen_shrink(fx_graph *g, gen_predicate fails, void *user);

/* Evaluates g and runs it through `run` on inputs of `seed`; NULL when they agree, else a malloc'd text that says what
 * differs. run has the signature of fx_graph_eval with the executor's own pointer before. */
typedef fx_status (*gen_run)(void *self, const fx_graph *g, const void *const *args, void *const *results);
char *gen_check(const fx_graph *g, uint64_t seed, gen_run run, void *self);

#endif
