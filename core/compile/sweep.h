/* sweep.h - reductions by a team of lanes: each lane takes its share of the reduced elements, then the lanes
 * put their shares together. Shared by the schedules of rows, reductions and scans.
 *
 * A reduction's state has one or more parts: the value of `reduce`, value and position of `arg_reduce`, each
 * result of `reduce_fn`. Orders are fixed by the program text, never by timing. */
#ifndef FX_COMPILE_SWEEP_H
#define FX_COMPILE_SWEEP_H

#include "core/compile/schedule.h"

enum { FX_SWEEP_ROWS = 2, FX_SWEEP_PARTS = 16 };

/* The lanes that work on one row together. */
typedef struct fx_team {
    int64_t lanes;    /* 1: a lane works alone; a subgroup; a workgroup: several subgroups with shared memory */
    int64_t subgroup; /* lanes of a subgroup; 1: no subgroup operations, shared memory only */
    fx_kx *lane;      /* in [0, lanes) */
    int shared[FX_DTYPE_COUNT]; /* 1 + the shared array of a register type; 0: none yet */
} fx_team;

/* May lanes of a subgroup exchange values of this register type on the device? */
bool fx_team_exchanges(const fx_device_caps *caps, fx_dtype type);

int fx_reduction_parts(const fx_node *n);               /* 0: not a reduction this file knows */
fx_dtype fx_reduction_type(const fx_node *n, int part); /* register type of a part */
int fx_reduction_dims(const fx_node *n, int64_t *dims); /* the reduced dimensions; returns how many */
int64_t fx_reduction_count(const fx_node *n);           /* elements that one result reduces */
bool fx_reduction_commutes(const fx_node *n);           /* false: a region, whose elements keep their order */
/* a then b as one; b's elements come later, or, unless `ordered`, anywhere. out may be a or b. */
void fx_reduction_join(fx_emit *e, fx_node *n, fx_kx *const *a, fx_kx *const *b, bool ordered, fx_kx **out);
/* Writes the state of no elements; false when there is none (regions). */
bool fx_reduction_start(fx_emit *e, fx_node *n, fx_kx **out);
/* The result `r` of a complete state. */
fx_kx *fx_reduction_finish(fx_emit *e, fx_node *n, int r, fx_kx *const *state);

typedef struct fx_sweep fx_sweep;
struct fx_sweep {
    int n; /* reductions that are computed side by side, of equally many elements, independent */
    fx_node **node;
    int n_row; /* rows that a lane works on at once */
    fx_kx *row[FX_SWEEP_ROWS];
    int64_t count; /* elements of a row */
    fx_kx *from;   /* covers elements [from, from + length) below count; from is a multiple of width */
    int64_t length;
    int width;  /* consecutive elements that a lane takes at a time, 1 or 2; divides count */
    int unroll; /* steps in the text of a loop's body; a sweep of so many steps or less has no loop */
    fx_team *team;
    const int *source; /* buffers with states to be joined instead of the graph's elements, one a part of each node in
                          order, of count x rows elements: element c of row r at r * count + c, or NULL */
    fx_kx *state[FX_SWEEP_ROWS][FX_SWEEP_PARTS]; /* result: the parts of each node in order */
};

/* Sweeps. All lanes of the team get the whole state. Regions need a team of one lane, or 1 <= length. */
void fx_sweep_run(fx_emit *e, fx_sweep *s);
/* Joins the states of all lanes of a team; every lane gets the result. */
void fx_team_join(fx_emit *e, fx_team *t, fx_node *n, fx_kx **state);

#endif
