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
} fx_builder;

int fx_builder_buffer(fx_builder *b, fx_buffer_kind kind, const fx_spec *spec); /* -1: out of memory */
fx_step *fx_builder_step(fx_builder *b);                                        /* NULL: out of memory */
/* The buffer that holds v; FX_INTERNAL when nothing does. */
fx_status fx_builder_value(fx_builder *b, fx_value v, int *buffer);
/* Emits one group by the first schedule that matches, or as a control-flow step. */
fx_status fx_emit_group(fx_builder *b, const fx_group *g);
/* An empty kernel for g; the caller finishes the arena. */
void fx_emit_begin(fx_emit *e, fx_builder *b, const fx_group *g, fx_arena *arena);
/* Emits pointwise groups that nothing reads; those that do the same work on arrays of different sizes (an optimizer's
 * parameters) share one launch. */
fx_status fx_emit_sinks(fx_builder *b, int n, const fx_group *const *groups);
fx_status fx_emit_control(fx_builder *b, const fx_group *g);

/* "dot_general+add+gelu"-like name of a group, in the program's arena. */
const char *fx_group_name(fx_builder *b, const fx_group *g);

#endif
