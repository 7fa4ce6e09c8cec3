/* transform.h - functions to functions: differentiation, batching, rematerialisation.
 *
 * All take a finished fx_func and give a new one (owned by the caller); they nest in any order and to
 * any depth. Semantics are JAX's: ties of max and min share evenly (a window's first wins); the branch of fx_select that
 * is not taken gets a cotangent of zero, which times an infinite or NaN derivative is NaN, so make its argument safe first:
 * select(p, sqrt(select(p, x, 1)), y). Integer and bool inputs have no derivative: asking for one is an error
 * for fx_grad, and a zero for fx_vjp/fx_jvp of other arguments. */
#ifndef FORNAX_TRANSFORM_H
#define FORNAX_TRANSFORM_H

#include <fornax/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A list of argument positions: FX_ARGS(0, 2). */
typedef struct fx_args {
    int n;
    const int *index;
} fx_args;
#define FX_ARGS(...) ((fx_args){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (const int[]){__VA_ARGS__}})

/* f's result 0 must be a float scalar. Result: the gradients with respect to `wrt`, in that order. */
FX_API fx_status fx_grad(const fx_func *f, fx_args wrt, fx_func **out);
/* Results: all results of f, then the gradients of result 0. */
FX_API fx_status fx_value_and_grad(const fx_func *f, fx_args wrt, fx_func **out);
/* For both of these, an integer or bool argument among wrt has a cotangent of zeros of its own type, and takes a tangent of its own
 * type that is ignored; integer results have neither. */
/* (x..., cotangents of the float results...) -> (results of f..., cotangents of the wrt arguments...) */
FX_API fx_status fx_vjp(const fx_func *f, fx_args wrt, fx_func **out);
/* (x..., tangents of the wrt arguments...) -> (results of f..., tangents of the float results...) */
FX_API fx_status fx_jvp(const fx_func *f, fx_args wrt, fx_func **out);
/* Adds an axis of the given size (0 or more). in_axes[i]: where it is in input i, or FX_NOT_MAPPED; out_axes[j]: where it goes
 * in result j, FX_NOT_MAPPED only for results that are the same in all lanes. Axes count the new dimension; negative ones
 * count from the end. NULL: all 0. */
#define FX_NOT_MAPPED (-1000)
FX_API fx_status fx_vmap(const fx_func *f, const int *in_axes, const int *out_axes, int64_t size, fx_func **out);
/* The same function; its derivative recomputes f instead of keeping its intermediates. */
FX_API fx_status fx_remat(const fx_func *f, fx_func **out);
/* f with its own forward rule, from which the reverse rule follows by transposition. jvp: (x..., tangents of
 * all x...) -> (results of f..., their tangents...), linear in the tangents. All inputs and results are floats. */
FX_API fx_status fx_custom_jvp(const fx_func *f, const fx_func *jvp, fx_func **out);
/* f with its own reverse rule only: forward mode through it is an error. fwd: x... -> (results of f..., residuals...); bwd: (residuals...,
 * cotangents of all results...) -> cotangents of all x. */
FX_API fx_status fx_custom_vjp(const fx_func *f, const fx_func *fwd, const fx_func *bwd, fx_func **out);

#ifdef __cplusplus
}
#endif
#endif
