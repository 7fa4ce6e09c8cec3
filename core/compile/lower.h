/* lower.h - from graph nodes to loop IR, pulled: the value of a node at an index, as an expression.
 *
 * fx_lower_value computes whatever the value needs, recursively: views are index arithmetic, elementwise ops
 * expressions, reductions and products inner loops; it stops at stored values, which become loads, and at
 * values that the schedule provides. A value asked twice at the same index, while the block that computed
 * it is open, is computed once. A schedule opens loops, asks for values at indices made of its loop
 * variables, and stores them.
 *
 * f16 and bf16: operands are widened to f32, chains of operations compute in f32 and round where a value is
 * stored or explicitly converted, not after each op. Integers narrower than 32 bits wrap after each op. */
#ifndef FX_COMPILE_LOWER_H
#define FX_COMPILE_LOWER_H

#include "core/graph/graph.h"
#include "core/kernel/kir.h"
#include "fornax/backend.h"

/* A value: one result of a node. Projections and barriers are other names of the same value. */
typedef struct fx_value {
    fx_node *node;
    int result;
} fx_value;

fx_value fx_value_of(fx_node *n); /* n itself or what a projection (of a barrier, ...) stands for */
const fx_spec *fx_value_spec(fx_value v);

/* Numbers all values of a graph: result r of node n is base[n->id] + r. */
typedef struct fx_values {
    const fx_graph *graph;
    int *base, count;
    int *buffer; /* by value: index of the program's buffer, -1: not stored */
} fx_values;

static inline int fx_value_id(const fx_values *vs, fx_value v) {
    return vs->base[v.node->id] + v.result;
}

typedef struct fx_lower fx_lower;
struct fx_lower {
    fx_kir *k;
    const fx_device_caps *caps;
    const fx_values *values;
    fx_status status; /* first failure */
    /* Values that the schedule supplies instead of stored or computed ones; false: not this one. May be NULL. */
    bool (*provide)(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **out);
    void *user;
    const fx_value *own; /* the values that this kernel makes: computed, though they are stored */
    int n_own;
    int *arg_buffer, n_arg, cap_arg;         /* the buffer of each kernel argument */
    bool pairs;                              /* load two neighbours at once where the first one's position is even */
    bool (*aligned)(void *user, int buffer); /* may this buffer be accessed in words of 8 bytes? NULL: yes */
    void *aligned_user;
    struct fx_pair *pair;
    fx_kx *in_place, *in_place2; /* linear indices at which this invocation stores, or NULL: loads by fx_lower_load there
                                    don't count as elsewhere (fx_karg) */
    struct fx_memo **memo;
    int n_memo, n_env;
    struct fx_env *env;
};

/* Lowers into k; memory comes from k's arena. */
void fx_lower_init(fx_lower *lo, fx_kir *k, const fx_device_caps *caps, const fx_values *values);

/* Forgets what has been computed so far. */
void fx_lower_forget(fx_lower *lo);

/* Value v at `index` (one expression a dimension). Never NULL; failures stick to lo->status. */
fx_kx *fx_lower_value(fx_lower *lo, fx_value v, fx_kx *const *index);
/* The same for a node that is not a tuple. */
fx_kx *fx_lower_node(fx_lower *lo, fx_node *n, fx_kx *const *index);
/* At a row-major position. */
fx_kx *fx_lower_linear(fx_lower *lo, fx_value v, fx_kx *linear);

/* The kernel argument for a program buffer; appended when new. */
int fx_lower_arg(fx_lower *lo, int buffer, fx_dtype elem);
/* Is the position of a stored value of `count` elements fit for a pair: even, the count too, and the type small? */
bool fx_lower_pairable(fx_lower *lo, int buffer, fx_dtype elem, int64_t count, fx_kx *linear);
/* Load from and store to a stored value at a row-major position. */
fx_kx *fx_lower_load(fx_lower *lo, fx_value v, fx_kx *linear);
void fx_lower_store(fx_lower *lo, fx_value v, fx_kx *linear, fx_kx *x);
/* n elements as one word, from a position that n divides; false, and nothing stored, when they are not a word or the
 * buffer isn't aligned. */
bool fx_lower_storev(fx_lower *lo, fx_value v, fx_kx *linear, int n, fx_kx *const *x);

/* Applies a region of scalars to arguments; writes its results. */
void fx_lower_region(fx_lower *lo, fx_graph *region, fx_kx *const *args, fx_kx **results);

/* Reductions as data, for schedules. op of a kind; the identity of op on elem; one step. */
fx_op fx_reduce_op(fx_symbol kind);
fx_kx *fx_reduce_identity(fx_kir *k, fx_symbol kind, fx_dtype elem);

/* A contraction's operands seen as A[batch, m, k] and B[batch, k, n], each dimension group linear.
 * dot_general and convolution (implicit GEMM over windows) both give one. */
typedef struct fx_contraction {
    fx_node *node;
    int64_t batch, m, n, k;
    fx_dtype in, out; /* element types */
} fx_contraction;
bool fx_contraction_of(fx_node *n, fx_contraction *c); /* false when n is neither */
/* Operand elements at linear indices; guarded where a convolution reads its padding. */
fx_kx *fx_contraction_a(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *m, fx_kx *kk);
fx_kx *fx_contraction_b(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *kk, fx_kx *n);
/* The result's index (node's rank expressions) of (b, m, n). */
void fx_contraction_index(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *m, fx_kx *n, fx_kx **index);

/* Within lower*.c */
fx_kx *fx_lower_view(fx_lower *lo, fx_node *n, fx_kx *const *index);
fx_kx *fx_lower_index_op(fx_lower *lo, fx_node *n, fx_kx *const *index);
fx_kx *fx_lower_control(fx_lower *lo, fx_value v);                        /* of scalars; NULL: not that */
fx_kx *fx_lower_reduction(fx_lower *lo, fx_value v, fx_kx *const *index); /* NULL: not a reduction */
fx_kx *fx_lower_fail(fx_lower *lo, fx_status status, const char *fmt, ...) FX_PRINTF(3, 4);
fx_kx *fx_lower_clamp(fx_kir *k, fx_kx *x, int64_t n); /* into [0, n) */
/* Position x of a padded, dilated dimension -> element of [0, size), clamped; *valid false in padding. */
fx_kx *fx_lower_window(fx_kir *k, fx_kx *x, int64_t size, int64_t dilation, fx_kx **valid);
fx_kx *fx_lower_index_data(fx_lower *lo, fx_node *n, fx_kx *const *index, int64_t lo_,
                           int64_t hi); /* clamped data as index */

#endif
