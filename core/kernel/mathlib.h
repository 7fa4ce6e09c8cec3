/* mathlib.h - the elementary functions that generated kernels call, as text and as C.
 *
 * Each function is written once, in mathlib_f32.inc and mathlib_f64.inc, in a subset that is both C11 and
 * GLSL 4.50 (later CUDA C): straight-line arithmetic, ?:, a few loops, no fma, no double in f32 versions.
 * A dialect's prelude supplies type names, bit casts and roots. Invariant: a text uses the prelude and the
 * functions listed in `needs` only, so that every dialect computes the same operations in the same order.
 *
 * Texts don't survive "fast math": GLSL marks their variables `precise`; C and CUDA must be compiled without
 * contraction and re-association (-ffp-contract=off, --fmad=false). Loops that call the C versions are vectorised by
 * gcc with -O3 -fno-trapping-math -fno-math-errno, by clang with -O3 -fno-math-errno (except frem). */
#ifndef FX_MATHLIB_H
#define FX_MATHLIB_H

#include <stdbool.h>

#include "fornax/base.h"

typedef struct fx_math_fn {
    const char *name;      /* as in M(name, ...) of the op table: "exp", "fdiv"; "" for helpers of other functions */
    fx_dtype dtype;        /* FX_F32 or FX_F64 */
    int arity;             /* 1 or 2 */
    bool strict;           /* a correctly rounded builtin, where the dialect has one, may be used instead */
    const char *symbol;    /* the function that a kernel calls: "fx_exp_f32" */
    const char *text;      /* its definition without storage qualifiers ("static inline", "__device__"), C and CUDA */
    const char *glsl;      /* the same for GLSL (double constants have a suffix there) */
    const char *needs[12]; /* symbols, direct and indirect, to be defined before it, in this order; NULL-terminated */
    double max_ulp;        /* worst error that the test admits, in ulp of the result; 0: exact or correctly rounded */
} fx_math_fn;

/* The function `name` for a type, or NULL: then the dialect's builtin does. */
const fx_math_fn *fx_math_find(const char *name, fx_dtype dtype);
const fx_math_fn *fx_math_by_symbol(const char *symbol);

/* The i-th function, NULL past the end. The order is such that what is needed comes first. */
const fx_math_fn *fx_math_at(int i);

/* Definitions to be printed once before any text; f64 adds what needs shaderFloat64. */
const char *fx_math_prelude_glsl(bool f64);
const char *fx_math_prelude_c(void);

#endif
