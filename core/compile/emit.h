/* emit.h - a program in the making: buffers, kernels shared by their text, steps. */
#ifndef FX_COMPILE_EMIT_H
#define FX_COMPILE_EMIT_H

#include "core/compile/schedule.h"

typedef struct fx_builder {
    fx_program *p;
    const fx_device_caps *caps;
    fx_fusion *fusion;
    const fx_lower_options *opt;
    int cap_buffer, cap_kernel, cap_step;
    struct fx_repeats *repeats; /* NULL: every group is lowered anew */
} fx_builder;

static inline int64_t fx_ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

int fx_builder_buffer(fx_builder *b, fx_buffer_kind kind, const fx_spec *spec); /* -1: out of memory */
fx_step *fx_builder_step(fx_builder *b);                                        /* NULL: out of memory */
/* The buffer that holds v; FX_INTERNAL when nothing does. */
fx_status fx_builder_value(fx_builder *b, fx_value v, int *buffer);
/* Emits one group by the first schedule that matches, or as a control-flow step. */
fx_status fx_emit_group(fx_builder *b, const fx_group *g);
/* An empty kernel for g; the caller finishes the arena. */
void fx_emit_begin(fx_emit *e, fx_builder *b, const fx_group *g, fx_arena *arena);
/* Is g one reduction of a large array to a scalar? Those are collected and share two launches. */
bool fx_is_total(const fx_group *g);
fx_status fx_emit_totals(fx_builder *b, int n, const fx_group *const *groups);
/* Emits pointwise groups that nothing reads; those that do the same work on arrays of different sizes (an optimizer's
 * parameters) share one launch. */
fx_status fx_emit_sinks(fx_builder *b, int n, const fx_group *const *groups);
fx_status fx_emit_control(fx_builder *b, const fx_group *g);

/* ---- work over segments: schedule_segments.c, schedule_totals.c ---- */

/* What a group does to one element (or pair), as a text's hash; groups with equal ones can share a launch. */
typedef struct fx_body {
    const fx_group *g;
    fx_value v;    /* totals: what is summed */
    uint64_t hash; /* 0: not for sharing */
    size_t bytes;
    int64_t count;
    int width, n_arg;
    int *args; /* buffers, in order of first use */
    bool done;
} fx_body;

/* v.node NULL: the stores of g's outputs; else the reduction of v's elements. */
fx_status fx_body_describe(fx_builder *b, const fx_group *g, fx_value v, fx_body *out);
fx_status fx_emit_classes(fx_builder *b, int n, const fx_group *const *groups, bool totals);
/* A literal s32[2n + 1]: first workgroups of the segments, n + 1 of them, then sizes in units of the width. */
fx_status fx_segment_table(fx_builder *b, int n, fx_body *const *list, int64_t unit, int *buffer, int64_t *groups);
/* The last j in [0, n) with table[j] <= w. */
fx_kx *fx_segment_bisect(fx_kir *k, int table, int n, fx_kx *w);
/* The elements i[0..width) of what total g sums, combined. */
fx_kx *fx_total_elements(fx_emit *e, const fx_group *g, int width, fx_kx *const *i);
fx_status fx_emit_total_segments(fx_builder *b, int n, fx_body *const *list);
/* Replaces the last step's arguments `fixed`.. by those of the segments: per of them each, from args[j * per]. */
fx_status fx_segment_arguments(fx_builder *b, int fixed, int n, int per, const int *args);

/* "dot_general+add+gelu"-like name of a group, in the program's arena. */
const char *fx_group_name(fx_builder *b, const fx_group *g);

#endif
