/* mathlib_c.h - the function texts compiled as C: static inline fx_exp_f32(x) and so on. Its includer must be
 * compiled without contraction and fast math. */
#ifndef FX_MATHLIB_C_H
#define FX_MATHLIB_C_H

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#define FX_PRELUDE(...) __VA_ARGS__
#include "core/kernel/mathlib_prelude.inc"
#undef FX_PRELUDE
#define FX_D(x) x
#define FX_MATH(name, dtype, arity, strict, ulp, needs, symbol, ...) static inline __VA_ARGS__
#include "core/kernel/mathlib_f32.inc"
#include "core/kernel/mathlib_f64.inc"
#undef FX_MATH
#undef FX_D
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
