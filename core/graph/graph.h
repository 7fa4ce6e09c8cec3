/* graph.h - the program as data: SSA nodes in an arena, hash-consed, in topological order.
 *
 * A graph is a function: parameters -> results. A node has one type; an op with several results has
 * type FX_TUPLE and `project` nodes pick them. Equal nodes of one graph are one node. A graph is
 * built by one thread, then finished and never changed again; finished graphs are shared between
 * threads by reference count, also as regions of other graphs. Transforms build new graphs.
 *
 * Building never fails loudly: the first error sticks to the graph (`status`, `error`), every later
 * call returns NULL, and whoever finishes the graph reports it. NULL operands propagate.
 *
 * Nested tracing: a region under construction has a `parent`; an operand that belongs to an
 * ancestor is captured: it becomes an extra parameter of the region, and the op that takes the
 * region passes it as an extra operand (fx_graph_captures). */
#ifndef FX_GRAPH_GRAPH_H
#define FX_GRAPH_GRAPH_H

#include "core/base/arena.h"
#include "core/ops/ops.h"

typedef struct fx_graph fx_graph;
typedef struct fx_node fx_node;

typedef struct fx_attr {
    fx_attr_id id;
    int count; /* LIST: elements; DATA: bytes; else 1 */
    union {
        int64_t i; /* INT, SYMBOL, DTYPE */
        const int64_t *list;
        const void *data;
    } u;
} fx_attr;

struct fx_node {
    fx_graph *graph;
    uint32_t id; /* index in graph->nodes; operands have smaller ids */
    fx_op op;
    fx_spec spec; /* dtype FX_TUPLE: see results */
    int n_in, n_attr, n_region, n_result;
    fx_node *const *in;
    const fx_attr *attr; /* sorted by id */
    fx_graph *const *region;
    const fx_spec *results; /* of a tuple */
    uint64_t hash;          /* structural, of the whole expression below it; parameters by index */
    const char *file;       /* user's location, or NULL; not part of equality */
    int line;
    const char *scope; /* user's name scope ("layers.3.attn"), or NULL; not part of equality */
};

struct fx_graph {
    int refs; /* atomic */
    fx_arena arena;
    fx_node **nodes;
    int n_node, cap_node;
    fx_node **params;
    int n_param, cap_param;
    fx_node **results;
    int n_result;
    fx_graph *parent;   /* while tracing a region, else NULL */
    fx_node **captured; /* ancestors' nodes that parameters n_own.. stand for */
    int n_captured;
    bool finished;
    uint64_t hash; /* of the whole function; set when finished */
    fx_status status;
    char *error;
    struct fx_cons *cons; /* hash-cons table, freed when finished */
    const char *scope;         /* of nodes made now */
    const char *scope_stack[32]; /* outer ones, while tracing */
    int scope_depth;
};

/* Life. A new graph is open for building; the caller owns one reference. NULL when out of memory. */
fx_graph *fx_graph_new(fx_graph *parent);
fx_graph *fx_graph_ref(fx_graph *g);
void fx_graph_unref(fx_graph *g);                          /* NULL is fine */
fx_node *fx_graph_param(fx_graph *g, const fx_spec *spec); /* appends a parameter */
/* Sets the results and closes the graph; drops nodes that no result needs when `prune`. Returns and
 * reports the sticky error, if any. Parameters are kept even when unused. */
fx_status fx_graph_finish(fx_graph *g, int n, fx_node *const *results, bool prune);
/* What g uses for the value of n, a node of g or of one of its ancestors (else an error is recorded): n itself, a copy
 * when n is a constant or an iota, or the extra parameter that stands for it. fx_build and fx_graph_finish
 * do this to every operand and result. A region's own parameters come before its first capture. */
fx_node *fx_graph_capture(fx_graph *g, fx_node *n);
/* The parent's nodes that a region's last n parameters stand for. Valid while both graphs live. */
fx_node *const *fx_graph_captures(const fx_graph *region, int *n);
/* Regions of one op that captured different nodes -> regions with the same parameters: own parameters 0..at-1, all
 * captures of all regions, the other own parameters. The caller owns out[0..n-1]; *captured lives in the parent. */
fx_status fx_graph_share_captures(int n, fx_graph *const *regions, int at, fx_graph **out, int *n_captured,
                                  fx_node *const **captured);
/* Records an error (the first wins) with the current location; returns NULL for the caller to return. */
fx_node *fx_graph_error(fx_graph *g, fx_status status, const char *fmt, ...) FX_PRINTF(3, 4);

/* The one way to make a node: checks operands and attributes by the op's shape rule, folds trivial
 * cases (see fold.c), finds an equal node or appends one. `attrs` in any order, copied. Regions must
 * be finished; a reference is taken. */
fx_node *fx_build(fx_graph *g, fx_op op, int n_in, fx_node *const *in, int n_attr, const fx_attr *attrs, int n_region,
                  fx_graph *const *regions);
/* Result i of n: a projection of a tuple, or n itself when i is 0 and n is no tuple. */
fx_node *fx_result(fx_node *n, int i);
/* Number of results: 1 for a plain node. */
int fx_result_count(const fx_node *n);
const fx_spec *fx_result_spec(const fx_node *n, int i);

/* Attributes for fx_build: FX_INT(dim, 1), FX_LIST(dims, count, pointer), FX_SYM(kind, sum), ... */
#define FX_INT(name, value) ((fx_attr){FX_ATTR_##name, 1, {.i = (value)}})
#define FX_LIST(name, n, pointer) ((fx_attr){FX_ATTR_##name, (int)(n), {.list = (pointer)}})
#define FX_SYM(name, symbol) ((fx_attr){FX_ATTR_##name, 1, {.i = FX_SYM_##symbol}})
#define FX_DTYPE_ATTR(type) ((fx_attr){FX_ATTR_dtype, 1, {.i = (type)}})
#define FX_SYM_ATTR(name, symbol) ((fx_attr){FX_ATTR_##name, 1, {.i = (symbol)}}) /* a computed symbol */
#define FX_DATA(name, bytes, pointer) ((fx_attr){FX_ATTR_##name, (int)(bytes), {.data = (pointer)}})

const fx_attr *fx_attr_get(const fx_node *n, fx_attr_id id); /* NULL when absent */
int64_t fx_attr_int(const fx_node *n, fx_attr_id id, int64_t otherwise);
const int64_t *fx_attr_list(const fx_node *n, fx_attr_id id, int *count); /* count may be NULL; NULL, 0 when absent */
#define FX_GET_INT(n, name) fx_attr_int((n), FX_ATTR_##name, 0)
#define FX_GET_SYM(n) ((fx_symbol)fx_attr_int((n), FX_ATTR_kind, FX_SYM_COUNT))
#define FX_GET_LIST(n, name, count) fx_attr_list((n), FX_ATTR_##name, (count))

/* Inlines `callee` into g: its parameters replaced by args, its nodes rebuilt with fx_build. Writes
 * callee->n_result nodes. Locations and scopes are kept. */
fx_status fx_graph_inline(fx_graph *g, const fx_graph *callee, fx_node *const *args, fx_node **results);
/* Rebuilds one node of another graph in g with new operands (same op, attributes, regions). */
fx_node *fx_node_rebuild(fx_graph *g, const fx_node *n, fx_node *const *in);
bool fx_graph_equal(const fx_graph *a, const fx_graph *b); /* structural */
uint64_t fx_graph_hash(const fx_graph *g);

/* Location and scope given to nodes that this thread makes from now on. Strings are kept by pointer
 * (file) or copied (scope). */
void fx_location_set(const char *file, int line);
void fx_location_get(const char **file, int *line);

/* Text form: printing and parsing are inverse. print returns a malloc'd string, NULL when out of memory.
 *   graph(%0: f32[2,3], %1: f32[3]) {
 *     %2 = broadcast_in_dim(%1) {dims=[1], shape=[2,3]} : f32[2,3]
 *     ...
 *     return %5
 *   }
 * Regions are printed inside the node's parentheses as nested graphs. */
char *fx_graph_print(const fx_graph *g);
fx_status fx_graph_parse(const char *text, size_t bytes, fx_graph **out);
/* Checks every invariant above and re-runs shape rules: a defect of Fornax when it fails. */
fx_status fx_graph_verify(const fx_graph *g);

/* Simplification by rules.def (pattern -> replacement), constant folding, dead code: a new graph. */
fx_status fx_graph_simplify(const fx_graph *g, fx_graph **out);

/* The evaluator: any graph on the CPU, unfused, in plain loops; host layout, row-major. Floats are
 * computed in f64 and rounded to the node's type after each op (reductions, dot_general and convolution
 * accumulate in f64). `results` are caller's buffers of the results' sizes. */
fx_status fx_graph_eval(const fx_graph *g, const void *const *args, void *const *results);

#endif
