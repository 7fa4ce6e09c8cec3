/* trace.h - what the files of the trace API share. An fx_trace is a graph under construction and an
 * fx_func is a finished one: the casts are here and nowhere else. */
#ifndef FX_GRAPH_TRACE_H
#define FX_GRAPH_TRACE_H

#include "core/graph/graph.h"
#include "fornax/trace.h"

static inline fx_graph *fx_trace_graph(fx_trace *t) { return (fx_graph *)t; }
static inline fx_trace *fx_graph_trace(fx_graph *g) { return (fx_trace *)g; }
static inline fx_graph *fx_func_graph(const fx_func *f) { return (fx_graph *)f; }
static inline fx_func *fx_graph_func(fx_graph *g) { return (fx_func *)g; }

/* The graph in which an op on these operands is built: the innermost of theirs. NULL when an operand
 * is NULL (an error is recorded unless one is already). */
fx_graph *fx_trace_of(int n, const fx_val *in);
/* Records text as an error of g, or without one of the trace that was begun last; not when an enclosing trace has failed. */
void fx_trace_complain(fx_graph *g, const char *text);
/* Is the pointer there? If not, records "what; expected one; got NULL" in v's trace. */
bool fx_trace_given(fx_val v, const char *what, const void *pointer);
/* fx_trace_of, then fx_build. */
fx_val fx_trace_build(fx_op op, int n_in, const fx_val *in, int n_attr, const fx_attr *attrs);

/* Checks an axis (negative counts from the end) of a rank; false and an error in v's trace when bad. */
bool fx_trace_axis(fx_val v, const char *op, int rank, int *axis);
/* Normalises a list of axes to sorted unique ones; n < 0 or NULL means all. False on error. */
bool fx_trace_axes(fx_val v, const char *op, int n, const int *axes, int *n_out, int64_t out[FX_MAX_RANK]);

/* NumPy broadcasting of n values to their common shape; element types from `first` on must agree.
 * False on error. */
bool fx_trace_broadcast(const char *op, int first, int n, fx_val *v);

/* Traces fn as a region of `outer`. The result is finished; its trailing parameters stand for
 * region->captured. NULL on error, which is then recorded in outer. */
fx_graph *fx_trace_region(fx_graph *outer, fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out);

/* primal(x...) -> n_out results with the forward rule jvp(x..., tangents...) -> (results..., tangents...). */
void fx_trace_custom_jvp(int n_in, const fx_val *in, fx_trace_fn primal, fx_trace_fn jvp, void *user, int n_out,
                         fx_val *out);

#endif
