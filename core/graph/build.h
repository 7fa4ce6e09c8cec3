/* build.h - short forms of fx_build for code that writes graphs: transforms, the trace interface, passes.
 *
 * All propagate NULL operands and record errors in the graph, like fx_build. Lists are copied. `g` is the graph that
 * gets the node; operands may belong to an ancestor (they are captured). */
#ifndef FX_GRAPH_BUILD_H
#define FX_GRAPH_BUILD_H

#include "core/graph/graph.h"

/* Literals. A double is rounded to the element type (integers: truncated, saturated; NaN 0; bool: != 0). */
fx_node *fx_b_const_splat(fx_graph *g, const fx_spec *spec, double value);
fx_node *fx_b_const_data(fx_graph *g, const fx_spec *spec, const void *data);       /* all elements, row-major */
fx_node *fx_b_const_element(fx_graph *g, const fx_spec *spec, const void *element); /* one element, repeated */
fx_node *fx_b_scalar(fx_graph *g, fx_dtype dtype, double value);
fx_node *fx_b_zeros(fx_graph *g, const fx_spec *spec);
fx_node *fx_b_like(fx_node *n, double value); /* constant of n's spec in n's graph */
fx_node *fx_b_iota(fx_graph *g, const fx_spec *spec, int64_t dim);
/* Is n a constant with all elements equal? Its value as a double (64-bit integers beyond 2^53 are rounded). */
bool fx_node_splat(const fx_node *n, double *value);
/* Is n a constant whose elements all have this value exactly? -0 isn't 0. */
bool fx_node_is_splat(const fx_node *n, double value);
/* Element conversion from and to a double in memory. */
void fx_element_store(fx_dtype dtype, void *element, double value);
double fx_element_load(fx_dtype dtype, const void *element);
/* The same as bits, in the low end of a word, zero-extended. */
void fx_element_store_bits(fx_dtype dtype, void *element, uint64_t bits);
uint64_t fx_element_bits(fx_dtype dtype, const void *element);

/* Elementwise, shapes equal. */
fx_node *fx_b_unary(fx_graph *g, fx_op op, fx_node *x);
fx_node *fx_b_binary(fx_graph *g, fx_op op, fx_node *x, fx_node *y);
fx_node *fx_b_elementwise(fx_graph *g, fx_op op, int n, fx_node *const *in); /* unary, binary, ternary */
fx_node *fx_b_binary_c(fx_graph *g, fx_op op, fx_node *x, double c);         /* y is a splat of x's spec */
fx_node *fx_b_select(fx_graph *g, fx_node *pred, fx_node *on_true, fx_node *on_false);
fx_node *fx_b_convert(fx_graph *g, fx_node *x, fx_dtype dtype);

/* Shape. */
fx_node *fx_b_broadcast(fx_graph *g, fx_node *x, int rank, const int64_t *shape, const int64_t *dims);
fx_node *fx_b_broadcast_scalar(fx_graph *g, fx_node *x, int rank, const int64_t *shape);
fx_node *fx_b_reshape(fx_graph *g, fx_node *x, int rank, const int64_t *shape);
fx_node *fx_b_transpose(fx_graph *g, fx_node *x, const int64_t *permutation);
fx_node *fx_b_slice(fx_graph *g, fx_node *x, const int64_t *start, const int64_t *limit,
                    const int64_t *strides /* or NULL */);
fx_node *fx_b_pad(fx_graph *g, fx_node *x, fx_node *value, const int64_t *low, const int64_t *high,
                  const int64_t *interior /* or NULL */);
fx_node *fx_b_concatenate(fx_graph *g, int n, fx_node *const *x, int64_t dim);
fx_node *fx_b_reverse(fx_graph *g, fx_node *x, int n, const int64_t *dims);

/* Reduction and contraction. */
fx_node *fx_b_reduce(fx_graph *g, fx_node *x, fx_symbol kind, int n, const int64_t *dims);
typedef struct fx_dot_numbers {
    int n_batch, n_contract;
    const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
    fx_symbol precision; /* FX_SYM_default, ... */
    fx_dtype dtype;      /* of the result */
} fx_dot_numbers;
fx_node *fx_b_dot(fx_graph *g, fx_node *lhs, fx_node *rhs, const fx_dot_numbers *d);
void fx_dot_numbers_get(const fx_node *dot, fx_dot_numbers *d); /* borrowed from the node */

#endif
