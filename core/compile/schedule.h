/* schedule.h - how a group becomes kernels: a table of schedules, a file each.
 *
 * fx_schedules is tried from the top; the first whose `match` accepts the group for the device emits it.
 * emit builds the kernel in e->k with values from e->lo and sets the grid; it may call fx_emit_kernel
 * itself for every kernel but the last (temporaries: fx_emit_temp). */
#ifndef FX_COMPILE_SCHEDULE_H
#define FX_COMPILE_SCHEDULE_H

#include "core/compile/fuse.h"

typedef struct fx_emit {
    struct fx_builder *builder; /* the program being made */
    const fx_device_caps *caps;
    const fx_fusion *fusion;
    fx_arena *arena; /* of this kernel */
    fx_kir k;
    fx_lower lo;
    int64_t groups[3];    /* workgroups in x; y and z are free for the schedule when it needs them */
    const char *schedule; /* name, set by fx_emit_group; a schedule may refine it ("contract.tile") */
} fx_emit;

typedef struct fx_schedule {
    const char *name;
    fx_group_kind kind;
    bool (*match)(const fx_emit *e, const fx_group *g); /* NULL: always */
    fx_status (*emit)(fx_emit *e, const fx_group *g);
} fx_schedule;

extern const fx_schedule *const fx_schedules[]; /* ends with NULL */

extern const fx_schedule fx_schedule_pointwise;
extern const fx_schedule fx_schedule_sort;
extern const fx_schedule fx_schedule_row;
extern const fx_schedule fx_schedule_arg_reduce;
extern const fx_schedule fx_schedule_cumulative;
extern const fx_schedule fx_schedule_scatter;
extern const fx_schedule fx_schedule_contract_panels;
extern const fx_schedule fx_schedule_contract_subgroup;
extern const fx_schedule fx_schedule_contract_shared;
extern const fx_schedule fx_schedule_contract;

/* The linear number of the workgroup when the grid has n of them: sets e->groups, folding what exceeds the
 * device's limit into y. Where n doesn't fill the folded grid, surplus workgroups get numbers >= n: guard. */
fx_kx *fx_emit_grid(fx_emit *e, int64_t n);
/* Pointwise: stores all outputs at the elements i[0..width), width 1 or 2 (neighbours, the first at an even place). */
void fx_pointwise_elements(fx_emit *e, const fx_group *g, int width, fx_kx *const *i);
/* Closes the kernel that e holds, appends its step, and starts an empty one. */
fx_status fx_emit_kernel(fx_emit *e, const fx_group *g);
/* A buffer of the program between kernels of one group; use with fx_lower_arg. */
int fx_emit_temp(fx_emit *e, const fx_spec *spec);

#endif
