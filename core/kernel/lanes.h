/* lanes.h - kernels for one processor: the invocations of a workgroup become iterations of loops.
 *
 * A statement that is the same for all invocations is printed once. The others are gathered into regions, runs of
 * statements without a barrier or an exchange between lanes: `for (int l = 0; l < W; l++) { ... }`, plain scalar code
 * inside, which the C compiler vectorises. A variable that a later region reads is an array of W elements.
 * The method is that of work-item loops (Jaaskelainen et al. 2015, "pocl: a performance-portable OpenCL
 * implementation"). Where lanes exchange values and nothing waits at barriers, the subgroups of a workgroup run one
 * after the other, W is a subgroup, and what is equal in a subgroup counts as the same for all. */
#ifndef FX_KERNEL_LANES_H
#define FX_KERNEL_LANES_H

#include "core/kernel/kir.h"

typedef struct fx_lanes {
    const fx_kir *k;
    int64_t width, subgroup, subgroups; /* lanes of a region; of a subgroup; subgroups run one after the other, 1: none */
    bool exchange, barrier;             /* what occurs in the kernel */
    bool *varying;                      /* by variable id: differs between lanes */
    bool *array;                        /* by variable id: lives across regions */
    int *home;                          /* by variable id: region that sets it first */
    signed char *memo;                  /* by expression id: 1 varying, 2 uniform, 0 not known */
    int n_region;
    const char *defect; /* what can't be printed: a barrier or an exchange where lanes go different ways */
} fx_lanes;

/* Finds what varies and numbers the regions (fx_kstmt.region). false: out of memory, or a defect. */
bool fx_lanes_init(fx_lanes *l, const fx_kir *k, int64_t subgroup);
void fx_lanes_free(fx_lanes *l);
bool fx_lanes_varies(fx_lanes *l, const fx_kx *x);
/* May this statement, the same for all lanes, be printed before the region that is open? */
bool fx_lanes_early(const fx_lanes *l, const fx_kstmt *s);

#endif
