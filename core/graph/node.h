/* node.h - inside of core/graph: how nodes are hashed, compared, made and checked.
 *
 * A shape rule (fx_shape_NAME) reads operands, attributes and regions from an fx_rule, checks them completely,
 * leaves the canonical attributes (all of them, defaults written out) in `out` and the result's spec
 * in `spec` or `results`. A rule that returns false has recorded the error. What passes a rule can't make a later
 * stage overflow or read out of bounds. */
#ifndef FX_GRAPH_NODE_H
#define FX_GRAPH_NODE_H

#include "core/graph/graph.h"

enum { FX_RULE_ATTRS = 20 };

typedef struct fx_rule {
    fx_graph *g;
    fx_op op;
    int n_in, n_attr, n_region;
    fx_node *const *in;
    const fx_attr *attr; /* as given, sorted by id, each once */
    fx_graph *const *region;
    int n_out; /* the rule's answer from here on */
    fx_attr out[FX_RULE_ATTRS];
    int64_t list[FX_RULE_ATTRS][FX_MAX_RANK]; /* backs the lists of out */
    fx_spec spec;
    int n_result;     /* > 0: a tuple */
    fx_spec *results; /* in the graph's arena */
} fx_rule;

/* Runs the rule of r->op; checks arity, attribute kinds and leftovers around it; sorts out by id. */
bool fx_rule_run(fx_rule *r);
/* Records "op: text" as FX_INVALID_ARGUMENT; false. */
bool fx_rule_fail(fx_rule *r, const char *fmt, ...) FX_PRINTF(2, 3);

/* Attributes, each checked, copied to out and returned. Those without a default are required. */
bool fx_take_int(fx_rule *r, fx_attr_id id, int64_t lo, int64_t hi, int64_t *value);
bool fx_take_int_or(fx_rule *r, fx_attr_id id, int64_t lo, int64_t hi, int64_t otherwise, int64_t *value);
bool fx_take_dtype(fx_rule *r, fx_dtype otherwise /* FX_TUPLE: required */, fx_dtype *value);
/* `allowed`: symbols ending with FX_SYM_COUNT; otherwise: FX_SYM_COUNT when required. */
bool fx_take_symbol(fx_rule *r, fx_attr_id id, const fx_symbol *allowed, fx_symbol otherwise, fx_symbol *value);
/* n values in lo..hi. */
bool fx_take_list(fx_rule *r, fx_attr_id id, int n, int64_t lo, int64_t hi, const int64_t **values);
bool fx_take_list_or(fx_rule *r, fx_attr_id id, int n, int64_t lo, int64_t hi, int64_t otherwise,
                     const int64_t **values);
/* Distinct values in 0..rank-1, in any order, any number (absent: none); sorted when `sorted`. */
typedef enum fx_order { FX_ORDER_KEPT, FX_ORDER_SORTED, FX_ORDER_MUST_BE_SORTED } fx_order;
bool fx_take_dims(fx_rule *r, fx_attr_id id, int rank, fx_order order, int *n, const int64_t **values);
bool fx_take_permutation(fx_rule *r, fx_attr_id id, int rank, const int64_t **values);
/* The shape attribute as a spec's dims. */
bool fx_take_shape(fx_rule *r, fx_dtype dtype, fx_spec *spec);

/* Answers. */
bool fx_rule_result(fx_rule *r, fx_dtype dtype, int rank, const int64_t *dims);
bool fx_rule_like(fx_rule *r, const fx_spec *spec);
fx_spec *fx_rule_tuple(fx_rule *r, int n); /* NULL (recorded) when n is 0 or memory is out */
/* Rank, dims and byte size within limits? Also for parameters. */
bool fx_spec_valid(const fx_spec *spec);

/* Operand i's spec, and checks on it. */
const fx_spec *fx_rule_in(const fx_rule *r, int i);
bool fx_rule_scalar(fx_rule *r, int i, fx_dtype dtype);
const char *fx_spec_text(const fx_spec *s); /* one of a few thread-local buffers: for error texts */

/* Windows of reduce_window, select_and_scatter, convolution, windows: number of positions; false (recorded) on
 * overflow. */
bool fx_window_positions(fx_rule *r, int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                         int64_t lhs_dilation, int64_t rhs_dilation, int64_t *out);

#define FX_UNARY(...)
#define FX_BINARY(...)
#define FX_TERNARY(...)
#define FX_STRUCTURAL(name, ...) bool fx_shape_##name(fx_rule *r);
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL

/* The node that r stands for when that is trivial; NULL when not. Operands are nodes of r->g. */
fx_node *fx_fold(const fx_rule *r);

/* An elementwise op on constants that are the same everywhere, as such a constant; else NULL. */
fx_node *fx_fold_splat(const fx_rule *r);

/* Finds the node that a checked rule describes or appends it. */
fx_node *fx_node_intern(const fx_rule *r);
uint64_t fx_rule_hash(const fx_rule *r);
fx_node *fx_node_append(fx_graph *g, fx_op op, const fx_spec *spec);
void fx_cons_free(struct fx_cons *cons);
bool fx_attr_equal(const fx_attr *a, const fx_attr *b);
uint64_t fx_hash_mix(uint64_t h, uint64_t x);
uint64_t fx_hash_bytes(uint64_t h, const void *data, size_t bytes);
uint64_t fx_hash_spec(uint64_t h, const fx_spec *s);
const fx_attr *fx_rule_attr(const fx_rule *r, fx_attr_id id); /* of out */

#endif
