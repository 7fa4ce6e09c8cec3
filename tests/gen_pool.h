/* gen_pool.h - inside the generator: the pool of values and what its parts share. */
#ifndef FX_TESTS_GEN_POOL_H
#define FX_TESTS_GEN_POOL_H

#include "tests/gen.h"

enum { GEN_POOL = 160, GEN_DEPTH = 2 };

typedef struct gen_value {
    fx_node *n;
    double bound;
    bool exact;
} gen_value;

typedef struct gen {
    fx_graph *g;
    uint64_t seed;
    gen_options o;
    gen_value v[GEN_POOL];
    int n, depth;
} gen;

uint64_t gen_next(gen *t);
int64_t gen_pick(gen *t, int64_t n);
bool gen_allowed(const gen *t, fx_op op, fx_dtype d);
bool gen_is_float(const fx_node *n);
void gen_keep(gen *t, fx_node *n, double bound, bool exact);
/* Recent values are likelier, so that graphs grow deep. */
gen_value gen_any(gen *t);
bool gen_suits(gen_value v, const fx_spec *s, bool exact);
/* A value of the spec: from the pool, or a constant. */
gen_value gen_like(gen *t, const fx_spec *s, bool exact);
/* x scaled so that it stays within limit. */
gen_value gen_tame(gen *t, gen_value x, double limit);

/* Each adds a value or two to the pool, or none when the dice don't fit. */
void gen_layout(gen *t);
void gen_reduction(gen *t);
void gen_contraction(gen *t);
void gen_indexing(gen *t);
void gen_ordering(gen *t);
void gen_other(gen *t);
void gen_control(gen *t);
void gen_fold(gen *t);
/* Adds about this many values. */
void gen_grow(gen *t, int steps);

/* fx_build with attributes listed. */
#define BUILD(t, name, n_in, in, ...)                                                                   \
    fx_build((t)->g, FX_OP_##name, n_in, in, (int)(sizeof((fx_attr[]){__VA_ARGS__}) / sizeof(fx_attr)), \
             (fx_attr[]){__VA_ARGS__}, 0, NULL)

#endif
