/* render.h - what the files of the renderer share: its state and the printing of named functions. */
#ifndef FX_KERNEL_RENDER_H
#define FX_KERNEL_RENDER_H

#include "core/kernel/dialect.h"

enum { MAX_DEPTH = 64 }; /* of nested blocks */

struct fx_render_state {
    fx_text block[MAX_DEPTH]; /* statements of the open blocks */
    int serial[MAX_DEPTH], next_serial, depth;
    int *named; /* by expression id: serial of the block that names it, 0: none */
    fx_text functions;
    const char **defined; /* names of functions already printed */
    int n_defined, cap_defined;
    fx_status status;
};

typedef struct fx_render_state state;

/* A dialect's pattern with its $ replaced, for element type e; arg may be NULL when it has no operands. */
void fx_render_expand(fx_render *r, fx_text *t, const char *p, fx_dtype e, const char *const *arg);
/* M(name, arg...) of element type e; defines the function when the language needs it. */
void fx_render_call(fx_render *r, fx_text *t, const char *name, fx_dtype e, int n, const char *const *arg);
/* The scalar text [p, end) of ops.def: x y z are operands, T(v) a constant of the type, M(f, ...) a call. */
void fx_render_op(fx_render *r, fx_text *t, const char *p, const char *end, fx_dtype e, const char *const *arg);
/* `text`, an integer in its register type, wrapped to the element type's range. */
void fx_render_wrapped(fx_render *r, fx_text *t, fx_dtype e, const char *text);

/* Regions of lanes (lanes.h). open starts the text of a region that stands in a block of that depth, close puts it as
 * a loop into that block; declare puts a variable's array there (of n elements a lane, 0: one). exchange, in an open
 * region, prints the let of a subgroup operation, whose operands have these texts, and closes the region. */
void fx_lanes_open(fx_render *r, int region, int depth);
void fx_lanes_close(fx_render *r);
void fx_lanes_declare(fx_render *r, const fx_kvar *v, int n);
void fx_lanes_exchange(fx_render *r, const fx_kstmt *st, const char *x, const char *lane);

#endif
