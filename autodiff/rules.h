/* rules.h - how a primitive is differentiated and batched: what a rule gets and what it leaves.
 *
 * A rule emits nodes into an open graph `g` for one node `n` of a finished graph. NULL stands for a symbolic
 * zero wherever a tangent or a cotangent is expected, so that what is zero costs nothing. Tangents and
 * cotangents have the spec of their value and exist for floats only. Rules are found by name; errors
 * stick to g. */
#ifndef FX_AUTODIFF_RULES_H
#define FX_AUTODIFF_RULES_H

#include "core/graph/build.h"
#include "core/graph/graph.h"

/* Forward mode. Operands of `project` are the results of the tuple. */
typedef struct fx_jvp_rule {
    fx_graph *g;
    const fx_node *n;
    fx_node *const *in; /* operands in g */
    fx_node *const *t;  /* their tangents; at least one isn't NULL */
    fx_node **out;      /* results in g: set before the call, but by the rule itself for ops with regions */
    fx_node **dt;       /* answer: tangents of the results, all NULL before */
    bool linearize;     /* the tangents will be transposed: custom_vjp is welcome */
} fx_jvp_rule;

/* Reverse mode: n is linear in some operands. */
typedef struct fx_transpose_rule {
    fx_graph *g;
    const fx_node *n;
    fx_node *const *in; /* operands in g, NULL for the linear ones */
    const bool *linear; /* for each operand */
    fx_node *const *ct; /* cotangents of the results; at least one isn't NULL */
    fx_node **out;      /* answer: cotangents of the linear operands, all NULL before */
} fx_transpose_rule;

/* Batching: a batched value has the batch as its dimension 0. */
typedef struct fx_batch_rule {
    fx_graph *g;
    const fx_node *n;
    fx_node *const *in;
    const bool *batched; /* for each operand; at least one is */
    int64_t size;
    fx_node **out;     /* answer: results in g, all batched ... */
    bool *out_batched; /* ... unless the rule says no; all true before */
} fx_batch_rule;

#define FX_UNARY(...)
#define FX_BINARY(...)
#define FX_TERNARY(...)
#define FX_NODIFF(name)
#define FX_DIFF(name)                   \
    void fx_jvp_##name(fx_jvp_rule *r); \
    void fx_transpose_##name(fx_transpose_rule *r);
#define FX_DIFF_DIFF(name) FX_DIFF(name)
#define FX_DIFF_NODIFF(name)
#define FX_STRUCTURAL(name, in, region, view, diff, doc) FX_DIFF_##diff(name) void fx_batch_##name(fx_batch_rule *r);
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
#undef FX_DIFF_DIFF
#undef FX_DIFF_NODIFF
#undef FX_DIFF
#undef FX_NODIFF
void fx_jvp_elementwise(fx_jvp_rule *r);
void fx_transpose_elementwise(fx_transpose_rule *r);
void fx_batch_elementwise(fx_batch_rule *r);

/* Records "op: text" as an error of the given status in g. */
void fx_rule_error(fx_graph *g, const fx_node *n, fx_status status, const char *fmt, ...) FX_PRINTF(4, 5);

/* Arithmetic that drops symbolic zeros (NULL) and factors of one. */
fx_node *fx_ad_add(fx_graph *g, fx_node *a, fx_node *b);
fx_node *fx_ad_sub(fx_graph *g, fx_node *a, fx_node *b);
fx_node *fx_ad_neg(fx_graph *g, fx_node *a);
fx_node *fx_ad_mul(fx_graph *g, fx_node *a, fx_node *b); /* NULL when an operand is */
fx_node *fx_ad_mul_c(fx_graph *g, fx_node *a, double c);
fx_node *fx_ad_zeros(fx_graph *g, fx_node *t, const fx_spec *spec); /* t, or zeros of the spec */

/* n again with its first operands replaced; the others as in `in`. Attributes and regions are n's. */
fx_node *fx_ad_rebuild(fx_graph *g, const fx_node *n, int n_first, fx_node *const *first, fx_node *const *in);
/* The inverse of a permutation. */
void fx_ad_inverse(int n, const int64_t *permutation, int64_t *inverse);
/* x without the named sorted dimensions -> x's shape `like`, constant along them. */
fx_node *fx_ad_spread(fx_graph *g, fx_node *x, const fx_spec *like, int n, const int64_t *dims);
/* x[..., index, ...]: indices have x's shape but along dim; the other dimensions go together. */
fx_node *fx_ad_take_along(fx_graph *g, fx_node *x, fx_node *index, int64_t dim);

/* Copies f into g, args for parameters, together with tangents. t and dt: NULL is zero. */
fx_status fx_ad_jvp(fx_graph *g, const fx_graph *f, fx_node *const *args, fx_node *const *t, bool linearize,
                    fx_node **results, fx_node **dt);
/* f as a new graph: (x..., tangents of the x that have one...) -> (results..., tangents of the results that have
 * one...). has_out: in: those to give in any case (as zeros when they are); out: those given. Integers never have one.
 */
fx_status fx_ad_jvp_graph(const fx_graph *f, const bool *has_in, bool *has_out, bool linearize, fx_graph **out);
/* Evaluates f's nonlinear part in g and transposes the rest. linear: parameters in which f is linear; args: values of
 * the others. ct: cotangents of the results that are linear (ignored for others); results: values of
 * the others, NULL for linear ones (may itself be NULL). ct_in: cotangents of the linear parameters. */
fx_status fx_ad_transpose(fx_graph *g, const fx_graph *f, const bool *linear, fx_node *const *args, fx_node *const *ct,
                          fx_node **results, fx_node **ct_in);
/* f with every control-flow op that mixes values which depend on the unknown parameters with others split in two. */
fx_status fx_ad_unzip(const fx_graph *f, const bool *unknown, fx_graph **out);
/* Tangents dt of m results that are known by their transpose only: in: residuals, then n_t tangents; bwd:
 * (residuals..., cotangents of the results...) -> cotangents of the tangents. Only while linearising. */
void fx_ad_linear_call(fx_graph *g, int n_residual, int n_t, fx_node *const *in, int m, const fx_spec *specs,
                       const fx_graph *bwd, fx_node **dt);

/* Splitting one control-flow node whose operands are partly unknown into a known and a linear node. */
typedef struct fx_unzip_rule {
    fx_graph *g;
    const fx_node *n;
    fx_node *const *in;
    const bool *unknown; /* for each operand; at least one is */
    fx_node **out;       /* answer: results in g */
    bool *out_unknown;   /* answer; all false before */
} fx_unzip_rule;
void fx_unzip_scan(fx_unzip_rule *r);
void fx_unzip_cond(fx_unzip_rule *r);
void fx_unzip_while(fx_unzip_rule *r);
void fx_unzip_call(fx_unzip_rule *r);

/* Where the linear part of a region takes a value of the known part from. */
typedef enum fx_residual_kind { FX_RESIDUAL_PARAM, FX_RESIDUAL_INVARIANT, FX_RESIDUAL_RESULT } fx_residual_kind;
/* A region in two: known: known params... -> known results..., FX_RESIDUAL_RESULTs...; linear: residuals..., unknown
 * params... -> unknown results...; invariant: known params... -> FX_RESIDUAL_INVARIANTs.... Lists live in linear. */
typedef struct fx_ad_split {
    fx_graph *known, *linear, *invariant;
    int n_residual;
    fx_residual_kind *kind;
    int *param; /* FX_RESIDUAL_PARAM: position in the region's parameters */
} fx_ad_split;
/* result_unknown: in: results that are unknown in any case; out: those that are. direct: parameters that may be
 * residuals themselves; steady: parameters of which FX_RESIDUAL_INVARIANTs are made (NULL: none). */
fx_status fx_ad_split_region(const fx_graph *f, const bool *unknown, bool *result_unknown, const bool *direct,
                             const bool *steady, fx_ad_split *out);
void fx_ad_split_free(fx_ad_split *s);
/* f with other parameters and results: new parameter j is f's params[j], or unused of type extra[-1 - params[j]] when
 * that is negative; f's that aren't named must be unused. New result j is f's results[j]. */
fx_status fx_ad_arrange(const fx_graph *f, int n_param, const int *params, const fx_spec *extra, int n_result,
                        const int *results, fx_graph **out);

/* f as a new graph in which batched parameters and results have a leading dimension. out_batched: in: those to be
 * batched in any case; out: those that are. */
fx_status fx_ad_batch_graph(const fx_graph *f, const bool *batched, int64_t size, bool *out_batched, fx_graph **out);
/* The same, inlined into g. */
fx_status fx_ad_batch(fx_graph *g, const fx_graph *f, fx_node *const *args, const bool *batched, int64_t size,
                      fx_node **results, bool *out_batched);

/* reduce_fn as a tree of elementwise steps. init[i]: a scalar, or an array of the result's leading dimensions. */
void fx_ad_fold_tree(fx_graph *g, const fx_graph *region, int n, fx_node *const *x, fx_node *const *init, int n_dims,
                     const int64_t *dims, fx_node **out);

/* The location and scope of n for what is built next; leave restores. */
typedef struct fx_ad_place {
    const char *file, *scope;
    int line;
} fx_ad_place;
fx_ad_place fx_ad_enter(fx_graph *g, const fx_node *n);
void fx_ad_leave(fx_graph *g, fx_ad_place place);

#endif
