/* prepare.h - passes on the graph before fusion. */
#ifndef FX_COMPILE_PREPARE_H
#define FX_COMPILE_PREPARE_H

#include "core/graph/graph.h"

/* A graph equal to g with every call replaced by its region 0, simplified, dead nodes dropped. */
fx_status fx_prepare(const fx_graph *g, fx_graph **out);

#endif
