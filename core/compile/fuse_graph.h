/* fuse_graph.h - what the parts of fusion share: users, costs and the dry runs that decide what fits together. */
#ifndef FX_COMPILE_FUSE_GRAPH_H
#define FX_COMPILE_FUSE_GRAPH_H

#include "core/compile/fuse.h"

/* How a node takes part in fusion. */
typedef enum fx_fuse_class {
    FX_FUSE_LEAF,    /* parameter, literal: never computed */
    FX_FUSE_VIEW,    /* index arithmetic */
    FX_FUSE_EW,      /* one element from few: elementwise, gather, dynamic slices */
    FX_FUSE_REDUCE,  /* reduce */
    FX_FUSE_DOT,     /* dot_general, convolution */
    FX_FUSE_LOOP,    /* other inner loops: arg_reduce, reduce_fn, windows, cumulative, scatter */
    FX_FUSE_OPAQUE,  /* sort, top_k */
    FX_FUSE_CONTROL, /* cond, while, scan */
    FX_FUSE_ALIAS    /* project, optimization_barrier: other names */
} fx_fuse_class;

fx_fuse_class fx_fuse_classify(const fx_node *n);
/* Are all elements one value that kernels write as a literal? */
bool fx_fuse_is_splat(const fx_node *n);

/* Work of computing one element of n from its operands, in reads of memory. */
double fx_fuse_work(const fx_node *n);

/* Marks in values->buffer (0 stored, -1 not) what is stored before groups merge. needed: by node, must be stored. */
fx_status fx_fuse_choose(fx_graph *g, fx_values *vs, const bool *needed, fx_arena *arena);

/* Could one kernel compute these outputs (and inner reductions) in the way of the kind? Decided by lowering
 * them into a scratch kernel and watching the indices at which they ask for each other.
 * pointwise: every output that another one asks for is asked at its own linear index only. */
bool fx_fuse_fits_pointwise(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out);
/* reduce: every inner reduction is asked at the current row only. Fills out_cols. */
bool fx_fuse_fits_rows(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out, int n_inner,
                       fx_node *const *inner, int64_t *out_cols);
/* contract: the product is asked at the output's own linear index only, and by every output. */
bool fx_fuse_fits_contract(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out,
                           fx_node *dot);

#endif
