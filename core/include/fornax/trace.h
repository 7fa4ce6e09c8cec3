/* trace.h - values and the operations on them: how a program is written.
 *
 * An fx_val is a value inside a trace. Operations are plain calls that return new values; the first
 * error sticks to the trace, every later call on it returns NULL, and the error is reported once, with
 * the file and line of the offending call, by whatever ends the trace (fx_trace_func, fx_trace_end).
 * A trace and its values belong to the thread that made it; the fx_func that comes out may be shared.
 *
 * Arithmetic follows JAX and StableHLO. Binary and ternary operations broadcast as NumPy does
 * (missing leading dimensions and dimensions of 1 stretch); operands must have equal element types,
 * convert explicitly with fx_convert. Axes may be negative: they count from the end. */
#ifndef FORNAX_TRACE_H
#define FORNAX_TRACE_H

#include <fornax/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fx_trace fx_trace;     /* a function being written */
typedef struct fx_func fx_func;       /* a finished function: immutable, reference counted */
typedef struct fx_node *fx_val;       /* a value; NULL after an error */

/* A traced function: reads in[], writes out[]. `user` is passed through. */
typedef void (*fx_trace_fn)(fx_trace *t, const fx_val *in, fx_val *out, void *user);

/* Traces fn on n_in inputs of the given types. *out is owned by the caller (fx_func_unref). */
FX_API fx_status fx_trace_func(fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out,
                               fx_func **out);
/* The same without a callback: begin, fx_input..., operations, end. fx_trace_end destroys the trace,
 * also when it fails; fx_trace_abandon drops one that is not wanted any more. */
FX_API fx_status fx_trace_begin(fx_trace **out);
FX_API fx_val fx_input(fx_trace *t, fx_spec spec);
FX_API fx_status fx_trace_end(fx_trace *t, int n_out, const fx_val *out, fx_func **func);
FX_API void fx_trace_abandon(fx_trace *t);
FX_API fx_trace *fx_val_trace(fx_val v);
/* Records an error of the caller's own in the trace; returns NULL. */
FX_API fx_val fx_trace_fail(fx_trace *t, const char *fmt, ...) FX_PRINTF(2, 3);
FX_API bool fx_trace_failed(const fx_trace *t);
/* Names what is traced next ("layers.3.attn"), for profiles and dumps; nests with '.'. */
FX_API void fx_scope_push(fx_trace *t, const char *name);
FX_API void fx_scope_pop(fx_trace *t);

FX_API fx_func *fx_func_ref(fx_func *f);
FX_API void fx_func_unref(fx_func *f); /* NULL is fine */
/* Of NULL: 0, and the spec of nothing (dtype FX_TUPLE), as for a position past the end. */
FX_API int fx_func_n_in(const fx_func *f);
FX_API int fx_func_n_out(const fx_func *f);
FX_API fx_spec fx_func_in_spec(const fx_func *f, int i);
FX_API fx_spec fx_func_out_spec(const fx_func *f, int i);
/* Text of the graph, malloc'd; NULL when out of memory. Inverse: fx_func_parse. */
FX_API char *fx_func_print(const fx_func *f);
FX_API fx_status fx_func_parse(const char *text, size_t bytes, fx_func **out);

FX_API fx_spec fx_spec_of(fx_val v);          /* dtype FX_TUPLE, rank 0 for NULL */
FX_API int64_t fx_dim(fx_val v, int axis);    /* size of an axis; 0 for NULL or a bad axis (an error is recorded) */

/* Constants. fx_literal copies row-major host data of the spec. */
FX_API fx_val fx_literal(fx_trace *t, fx_spec spec, const void *data);
FX_API fx_val fx_full(fx_trace *t, fx_spec spec, double value);     /* every element; integers: exact up to 2^53 */
FX_API fx_val fx_scalar(fx_trace *t, fx_dtype dtype, double value);
FX_API fx_val fx_const_like(fx_val like, double value);             /* scalar of like's element type */
FX_API fx_val fx_zeros_like(fx_val like);
FX_API fx_val fx_iota(fx_trace *t, fx_spec spec, int axis);

/* Elementwise: fx_abs(x), fx_add(x, y) and the other unary and binary rows of core/ops/ops.def, which trace_ops.h is
 * generated from; docs/ops.md has their types and edge cases. */
#include <fornax/trace_ops.h>
FX_API fx_val fx_stop_gradient(fx_val x); /* identity whose derivative is zero */
FX_API fx_val fx_select(fx_val pred, fx_val on_true, fx_val on_false);
FX_API fx_val fx_clamp(fx_val lo, fx_val x, fx_val hi);
FX_API fx_val fx_convert(fx_val x, fx_dtype dtype);
FX_API fx_val fx_bitcast_convert(fx_val x, fx_dtype dtype);
FX_API fx_val fx_reduce_precision(fx_val x, int exponent_bits, int mantissa_bits);
/* With a scalar constant of x's element type. */
FX_API fx_val fx_add_c(fx_val x, double c);
FX_API fx_val fx_mul_c(fx_val x, double c);
FX_API fx_val fx_max_c(fx_val x, double c);
FX_API fx_val fx_pow_c(fx_val x, double c);
/* Compositions of the primitives. */
FX_API fx_val fx_square(fx_val x);
FX_API fx_val fx_relu(fx_val x);
FX_API fx_val fx_gelu(fx_val x);      /* exact: x/2 (1 + erf(x/sqrt 2)) */
FX_API fx_val fx_gelu_tanh(fx_val x); /* the tanh approximation */
FX_API fx_val fx_silu(fx_val x);
FX_API fx_val fx_softplus(fx_val x);  /* log(1+exp(x)), stable */
FX_API fx_val fx_log_sigmoid(fx_val x);
FX_API fx_val fx_logaddexp(fx_val x, fx_val y);
FX_API fx_val fx_is_nan(fx_val x); /* bool */

/* Shape. */
FX_API fx_val fx_reshape(fx_val x, int rank, const int64_t *dims); /* one dimension may be -1: inferred */
FX_API fx_val fx_transpose(fx_val x, const int *permutation);      /* rank entries; NULL reverses the axes */
FX_API fx_val fx_broadcast_to(fx_val x, int rank, const int64_t *dims); /* NumPy rules */
FX_API fx_val fx_broadcast_in_dim(fx_val x, int rank, const int64_t *shape, const int *dims);
FX_API fx_val fx_expand_dims(fx_val x, int axis); /* a new axis of size 1 at this position of the result */
FX_API fx_val fx_squeeze(fx_val x, int axis);
FX_API fx_val fx_slice(fx_val x, const int64_t *start, const int64_t *limit, const int64_t *strides /* NULL: 1 */);
FX_API fx_val fx_slice_axis(fx_val x, int axis, int64_t start, int64_t limit);
FX_API fx_val fx_pad(fx_val x, fx_val value, const int64_t *low, const int64_t *high, const int64_t *interior /* NULL: 0 */);
FX_API fx_val fx_concatenate(int n, const fx_val *x, int axis);
FX_API fx_val fx_stack(int n, const fx_val *x, int axis);
FX_API fx_val fx_reverse(fx_val x, int n_axes, const int *axes);

/* Indexing. */
FX_API fx_val fx_dynamic_slice(fx_val x, const fx_val *start /* rank scalars */, const int64_t *sizes);
FX_API fx_val fx_dynamic_update_slice(fx_val x, fx_val update, const fx_val *start);
typedef struct fx_gather_dims { /* StableHLO's gather dimension numbers; lists are borrowed */
    int n_offset, n_collapsed, n_batch, n_index_map;
    const int64_t *offset_dims, *collapsed_slice_dims, *operand_batching_dims, *indices_batching_dims, *start_index_map;
    int64_t index_vector_dim;
} fx_gather_dims;
typedef struct fx_scatter_dims {
    int n_window, n_inserted, n_batch, n_scatter;
    const int64_t *update_window_dims, *inserted_window_dims, *operand_batching_dims, *indices_batching_dims,
        *scatter_dims_to_operand_dims;
    int64_t index_vector_dim;
} fx_scatter_dims;
typedef enum fx_scatter_kind { FX_SCATTER_SET, FX_SCATTER_ADD, FX_SCATTER_MUL, FX_SCATTER_MIN, FX_SCATTER_MAX } fx_scatter_kind;
FX_API fx_val fx_gather(fx_val x, fx_val indices, const fx_gather_dims *dims, const int64_t *slice_sizes);
FX_API fx_val fx_scatter(fx_val x, fx_val indices, fx_val updates, const fx_scatter_dims *dims, fx_scatter_kind kind);
FX_API fx_val fx_take(fx_val x, fx_val indices, int axis);             /* jnp.take with clamping */
FX_API fx_val fx_take_along_axis(fx_val x, fx_val indices, int axis);
FX_API fx_val fx_one_hot(fx_val labels, int64_t classes, fx_dtype dtype); /* last axis; out of range: zeros */

/* Contraction. */
typedef enum fx_precision { FX_PRECISION_DEFAULT, FX_PRECISION_HIGH, FX_PRECISION_HIGHEST } fx_precision;
typedef struct fx_dot_dims {
    int n_batch, n_contract;
    const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
    fx_precision precision;
    fx_dtype result; /* element type of the result; FX_TUPLE: that of the operands */
} fx_dot_dims;
FX_API fx_val fx_dot_general(fx_val lhs, fx_val rhs, const fx_dot_dims *dims);
FX_API fx_val fx_matmul(fx_val a, fx_val b); /* NumPy's matmul: vectors, matrices, broadcast batches */
typedef struct fx_conv_dims { /* StableHLO's convolution; spatial lists have rank-2 entries, NULL means 1 (padding, reversal: 0) */
    const int64_t *strides, *low, *high, *lhs_dilation, *rhs_dilation, *window_reversal;
    const int64_t *lhs_spec, *rhs_spec, *out_spec; /* NULL: NCHW, OIHW, NCHW */
    int64_t feature_groups, batch_groups;          /* 0 means 1 */
    fx_precision precision;
} fx_conv_dims;
FX_API fx_val fx_convolution(fx_val lhs, fx_val rhs, const fx_conv_dims *dims);

/* Reductions over n axes (n < 0 or axes NULL: all), which vanish unless keep. Sums of f16 and bf16 accumulate in f32; means,
 * variances, softmax and what goes with it are computed in f32 for these types and rounded once. */
#define FX_REDUCTIONS(X) X(sum) X(prod) X(max) X(min)
#define FX_DECLARE_REDUCTION(kind) FX_API fx_val fx_reduce_##kind(fx_val x, int n, const int *axes, bool keep);
FX_REDUCTIONS(FX_DECLARE_REDUCTION)
#undef FX_DECLARE_REDUCTION
FX_API fx_val fx_reduce_and(fx_val x, int n, const int *axes, bool keep);
FX_API fx_val fx_reduce_or(fx_val x, int n, const int *axes, bool keep);
FX_API fx_val fx_reduce_mean(fx_val x, int n, const int *axes, bool keep);
FX_API fx_val fx_reduce_var(fx_val x, int n, const int *axes, bool keep); /* population variance, two passes */
FX_API fx_val fx_argmax(fx_val x, int axis, fx_dtype index_dtype);
FX_API fx_val fx_argmin(fx_val x, int axis, fx_dtype index_dtype);
FX_API fx_val fx_logsumexp(fx_val x, int axis, bool keep);
FX_API fx_val fx_softmax(fx_val x, int axis);
FX_API fx_val fx_log_softmax(fx_val x, int axis);
typedef enum fx_cumulative_kind { FX_CUMSUM, FX_CUMPROD, FX_CUMMAX, FX_CUMMIN } fx_cumulative_kind;
FX_API fx_val fx_cumulative(fx_val x, int axis, fx_cumulative_kind kind, bool reverse);
typedef struct fx_window_dims { /* rank entries each; NULL: 1 (padding: 0) */
    const int64_t *window, *strides, *low, *high, *lhs_dilation, *rhs_dilation;
} fx_window_dims;
typedef enum fx_window_kind { FX_WINDOW_SUM, FX_WINDOW_PROD, FX_WINDOW_MAX, FX_WINDOW_MIN } fx_window_kind;
FX_API fx_val fx_reduce_window(fx_val x, const fx_window_dims *dims, fx_window_kind kind);
FX_API fx_val fx_select_and_scatter(fx_val operand, fx_val source, const fx_window_dims *dims, bool select_max);
/* n operands reduced together by a traced combination: fn(acc..., x...) -> acc..., associative and commutative with init
 * as its identity: elements are combined in any grouping. */
FX_API void fx_reduce_fn(int n, const fx_val *x, const fx_val *init, int n_axes, const int *axes, fx_trace_fn fn,
                         void *user, fx_val *out);

/* Order. */
FX_API fx_val fx_sort(fx_val x, int axis, bool descending); /* NaN last; -0 and 0 equal; stable */
FX_API fx_val fx_argsort(fx_val x, int axis, bool descending);
/* fn(a0, b0, a1, b1, ...) -> bool: does a come before b? */
FX_API void fx_sort_by(int n, const fx_val *x, int axis, fx_trace_fn before, void *user, fx_val *out);
FX_API void fx_top_k(fx_val x, int64_t k, fx_val *values, fx_val *indices);

/* Control flow. Callbacks may use values of the enclosing trace: they are captured. */
FX_API void fx_cond(fx_val pred, fx_trace_fn on_true, fx_trace_fn on_false, void *user, int n_in, const fx_val *in,
                    int n_out, fx_val *out);
FX_API void fx_switch(fx_val index, int n_branch, const fx_trace_fn *branches, void *user, int n_in, const fx_val *in,
                      int n_out, fx_val *out);
/* carry = body(carry) while cond(carry); cond writes out[0], a bool scalar. */
FX_API void fx_while(fx_trace_fn cond, fx_trace_fn body, void *user, int n, const fx_val *init, fx_val *out);
/* body(carry..., x slices...) -> (carry..., y slices...); out: final carry..., stacked ys.... length is
 * needed when there are no xs (else pass 0 or the xs' leading dimension). */
FX_API void fx_scan(fx_trace_fn body, void *user, int n_carry, const fx_val *init, int n_x, const fx_val *xs, int n_y,
                    int64_t length, bool reverse, fx_val *out);
FX_API void fx_optimization_barrier(int n, const fx_val *in, fx_val *out);
/* Inlines f (which may come out of any transform). Writes fx_func_n_out(f) values. */
FX_API void fx_call(fx_trace *t, const fx_func *f, const fx_val *in, fx_val *out);

/* Random numbers: jax.random's streams (threefry2x32, partitionable), bit for bit. A key is u32[2]. */
FX_API fx_val fx_random_key(fx_trace *t, uint64_t seed);
FX_API fx_val fx_random_split(fx_val key, int64_t n);            /* u32[n,2] */
FX_API fx_val fx_random_fold_in(fx_val key, fx_val data);        /* data: an integer scalar, taken as u32 */
FX_API fx_val fx_random_bits(fx_val key, fx_spec spec);          /* u8, u16, u32 or u64 */
FX_API fx_val fx_random_uniform(fx_val key, fx_spec spec, double lo, double hi);
FX_API fx_val fx_random_normal(fx_val key, fx_spec spec);
FX_API fx_val fx_random_bernoulli(fx_val key, double p, int rank, const int64_t *dims); /* bool */
FX_API fx_val fx_random_truncated_normal(fx_val key, double lo, double hi, fx_spec spec);
FX_API fx_val fx_random_permutation(fx_val key, int64_t n);      /* s32[n] */

/* Every call above also records its file and line, for error texts: trace_location.h wraps each in a macro that calls
 * this. Thread-local. `file` must live as long as the program, as __FILE__ does. */
FX_API void fx_trace_here(const char *file, int line);
#ifndef FORNAX_NO_LOCATIONS
#include <fornax/trace_location.h>
#endif

#ifdef __cplusplus
}
#endif
#endif
