/* rows.h - the plan of a reduction over rows: which lanes work on a row, how they step, what is in the text. */
#ifndef FX_COMPILE_ROWS_H
#define FX_COMPILE_ROWS_H

#include "core/compile/sweep.h"

typedef struct fx_row_plan {
    int64_t rows, count;     /* count: the most elements that a reduction of the group reduces a row */
    bool across;             /* neighbouring rows are neighbours in memory (column sums) */
    int weight;              /* expressions an element, of all phases */
    int64_t lanes, subgroup; /* a row's team */
    int64_t teams;           /* a workgroup's */
    int n_row, width, unroll;
    int64_t parts, part; /* > 1: a row is reduced in so many parts of `part` elements, joined by a second kernel */
} fx_row_plan;

/* Decides for n reductions and, when outs > 0, values of cols[] elements a row. */
fx_row_plan fx_row_plan_of(const fx_emit *e, int n, fx_node *const *node, int n_out, const fx_value *out,
                           const int64_t *cols);
/* Sets up the workgroup, the grid and the team, and opens the guard (closed by fx_row_close) when teams surplus;
 * row[]: the plan's n_row rows of this team. part: NULL, or the number of the part that it works on. */
void fx_row_open(fx_emit *e, const fx_row_plan *p, fx_team *t, fx_kx **row, fx_kx **part, bool *guard);

#endif
