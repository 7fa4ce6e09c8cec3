/* fuse.h - which values are stored, and which of them one kernel computes together.
 *
 * A group is one kernel (or one step of control flow). Values that are neither parameters, literals nor a
 * group's outputs are recomputed wherever they are used, inside the kernels that use them. */
#ifndef FX_COMPILE_FUSE_H
#define FX_COMPILE_FUSE_H

#include "core/compile/lower.h"
#include "core/compile/program.h"

typedef enum fx_group_kind {
    FX_GROUP_POINTWISE, /* outputs of one element count, each element computed on its own */
    FX_GROUP_REDUCE,    /* reductions over rows, then values that depend on them: see below */
    FX_GROUP_CONTRACT,  /* one dot_general or convolution and elementwise values of its result */
    FX_GROUP_SPECIAL,   /* one node with a schedule of its own: sort, top_k, cumulative, scatter, ... */
    FX_GROUP_CONTROL    /* cond, while, scan: a step, no kernel */
} fx_group_kind;

/* A REDUCE group has `rows` rows. Each of its `inner` reductions has `rows` results and is asked only at the
 * row being worked on, so one team of lanes can compute a row: first the reductions, in order, then the
 * outputs. An output is a reduction or any value with `rows` x something elements whose row is the leading
 * part of its row-major position when `out_cols` > 1. */
typedef struct fx_group {
    fx_group_kind kind;
    int n_out, n_inner;
    fx_value *out;     /* stored values */
    int64_t *out_cols; /* REDUCE: elements of each output a row */
    fx_node **inner;   /* REDUCE: reductions in order of dependence; CONTRACT: the contraction; else the node */
    int64_t rows;
    bool sink; /* no other group reads its outputs: it may run last */
    int order; /* position among the groups */
} fx_group;

typedef struct fx_fusion {
    fx_values values; /* buffer[]: 0 where stored (as an output, parameter or literal), -1 elsewhere */
    fx_group *groups; /* in an order in which they can run */
    int n_group;
} fx_fusion;

/* Decides for a graph without calls. Memory from the arena. */
fx_status fx_fuse(fx_graph *g, const fx_device_caps *caps, const fx_lower_options *opt, fx_arena *arena,
                  fx_fusion *out);

#endif
