/* batch.h - what batching rules share. */
#ifndef FX_AUTODIFF_BATCH_H
#define FX_AUTODIFF_BATCH_H

#include "autodiff/rules.h"

fx_node *fx_batch_broadcast(fx_graph *g, fx_node *x, int64_t size);
/* Operand i, batched even if it wasn't. */
fx_node *fx_batch_in(fx_batch_rule *r, int i);
/* Dimension `from` of x becomes dimension `to`; the others keep their order. */
fx_node *fx_batch_move(fx_graph *g, fx_node *x, int from, int to);
/* A parameter for a value of the spec, with the batch in front. */
fx_node *fx_batch_param(fx_graph *g, const fx_spec *spec, bool batched, int64_t size);

#endif
