/* eval.h - inside the evaluator: how one node is computed from its operands' bytes.
 *
 * Every op computes on lanes: an element widened to double (floats), int64_t (signed) or uint64_t
 * (unsigned and bool), so that an op is written once for all element types. Storing a lane rounds a
 * float once to the element type and wraps an integer to its width. The evaluator holds no global
 * state: any number of threads may evaluate the same finished graph. */
#ifndef FX_GRAPH_EVAL_H
#define FX_GRAPH_EVAL_H

#include "core/graph/graph.h"

typedef union fx_lane {
    double f;
    int64_t s;
    uint64_t u;
} fx_lane;

typedef enum fx_lane_kind { FX_LANE_F, FX_LANE_S, FX_LANE_U } fx_lane_kind;

enum { FX_LANE_CHUNK = 256 }; /* elements that loops over lanes take at a time */

fx_lane_kind fx_lane_kind_of(fx_dtype d);
int fx_lane_width(fx_dtype d); /* bits: 1 for bool */
/* n elements of `base` from element `first` on, `stride` elements apart. */
void fx_lane_load(fx_dtype d, const void *base, int64_t first, int64_t stride, int64_t n, fx_lane *out);
void fx_lane_store(fx_dtype d, void *base, int64_t first, int64_t stride, int64_t n, const fx_lane *in);
/* An array with any strides into lanes, row-major over dims. */
void fx_lane_load_nd(fx_dtype d, const void *base, int64_t first, int rank, const int64_t *dims, const int64_t *strides,
                     fx_lane *out);
/* Element i of an integer array as an index; what int64_t cannot hold becomes INT64_MAX. */
int64_t fx_eval_index(fx_dtype d, const void *base, int64_t i);

/* acc[i] = acc[i] OP x[i * x_step], in order, for a reduction kind (sum or add, prod or mul, max, min,
 * and, or, xor); all into acc[0] when acc_step is 0. */
void fx_lane_combine(fx_symbol kind, fx_lane_kind k, fx_lane *acc, int64_t acc_step, const fx_lane *x, int64_t n);
/* What a reduction of nothing gives. */
fx_lane fx_lane_identity(fx_symbol kind, fx_dtype d);
/* max and min choose between candidates: does x come strictly before best? A NaN beats all but a NaN. */
bool fx_lane_better(bool want_max, fx_lane_kind k, fx_lane x, fx_lane best);

/* A graph's values while it runs; reused by a region's next run. */
typedef struct fx_eval_frame fx_eval_frame;

/* One node to compute. `in` holds the operands' buffers, `out` one buffer a result. */
typedef struct fx_eval_args {
    const fx_node *node;
    const void *const *in;
    void *const *out;
    fx_eval_frame **frames; /* one a region, made on first use */
} fx_eval_args;

/* Runs region r. args: its parameters, results: its results; they do not overlap. */
fx_status fx_eval_region(const fx_eval_args *c, int r, const void *const *args, void *const *results);

/* Computes one node from its operands' bytes: what constant folding needs. Not for parameters. A tuple
 * operand (of project) stands for the operand buffers of all its results. */
fx_status fx_eval_node(const fx_node *n, const void *const *in, void *const *out);

/* Every elementwise row of ops.def. */
fx_status fx_eval_elementwise(const fx_eval_args *c);
/* fx_eval_NAME for every structural row. */
#define FX_UNARY(...)
#define FX_BINARY(...)
#define FX_TERNARY(...)
#define FX_STRUCTURAL(name, ...) fx_status fx_eval_##name(const fx_eval_args *c);
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL

/* Helpers. */
const fx_spec *fx_eval_result(const fx_node *n, int i);
void fx_eval_strides(const fx_spec *s, int64_t *strides); /* row-major, in elements */
size_t fx_eval_bytes(const fx_spec *s);                   /* of an array that exists, so it fits */
/* Memory for n things; NULL and an error text when that overflows or the host has none. Free with free. */
void *fx_eval_alloc(int64_t n, size_t size);
/* Steps a row-major index of `rank` dims; false after the last one (then all are 0 again). */
bool fx_eval_step(int rank, const int64_t *dims, int64_t *index);

/* A copy between two strided arrays, prepared once and run at any pair of places. */
typedef struct fx_eval_copy {
    size_t esize;
    int rank; /* of the loop nest: dims of 1 dropped, neighbours merged */
    bool empty;
    int64_t dims[FX_MAX_RANK], to[FX_MAX_RANK], from[FX_MAX_RANK]; /* strides in bytes */
} fx_eval_copy;
void fx_eval_copy_init(fx_eval_copy *c, size_t esize, int rank, const int64_t *dims, const int64_t *to,
                       const int64_t *from); /* strides in elements */
void fx_eval_copy_run(const fx_eval_copy *c, char *to, const char *from);

/* Element functions that the C library lacks; computed in long double. */
double fx_eval_erf_inv(double x);
double fx_eval_digamma(double x);
double fx_eval_lgamma(double x);

#endif
