/* mathlib.c - the function texts of mathlib_f32.inc and mathlib_f64.inc as a table, and the preludes.
 *
 * A .inc file is a list of FX_MATH(name, dtype, arity, strict, ulp, needs, symbol, text); mathlib_c.h compiles the
 * same lists. FX_D(x) marks a double constant: x in C, x with the suffix lf in GLSL; it is expanded before the
 * text becomes a string. */
#include "core/kernel/mathlib.h"

#include <string.h>

#define TEXT(...) TEXT_(__VA_ARGS__)
#define TEXT_(...) #__VA_ARGS__

/* Texts for C, one literal each. */
#define FX_D(x) x
#define FX_MATH(name, dtype, arity, strict, ulp, needs, symbol, ...) \
    static const char c_##symbol[] = TEXT(__VA_ARGS__);
#include "core/kernel/mathlib_f32.inc"
#include "core/kernel/mathlib_f64.inc"
#undef FX_MATH
#undef FX_D

/* Texts for GLSL; those without double constants are equal, and the linker may merge them. */
#define FX_D(x) x##lf
#define FX_MATH(name, dtype, arity, strict, ulp, needs, symbol, ...) \
    static const char glsl_##symbol[] = TEXT(__VA_ARGS__);
#include "core/kernel/mathlib_f32.inc"
#include "core/kernel/mathlib_f64.inc"
#undef FX_MATH
#undef FX_D

#define NONE                                                                                                       \
    { NULL }
#define NEEDS(...)                                                                                                 \
    { __VA_ARGS__, NULL }
#define FX_MATH(name, dtype, arity, strict, ulp, needs, symbol, ...) \
    {#name, FX_##dtype, arity, strict, #symbol, c_##symbol, glsl_##symbol, needs, ulp},
static const fx_math_fn functions[] = {
#include "core/kernel/mathlib_f32.inc"
#include "core/kernel/mathlib_f64.inc"
};
#undef FX_MATH
#undef NONE
#undef NEEDS

enum { N_FUNCTIONS = sizeof functions / sizeof functions[0] };

const fx_math_fn *fx_math_at(int i) {
    return i >= 0 && i < N_FUNCTIONS ? &functions[i] : NULL;
}

const fx_math_fn *fx_math_find(const char *name, fx_dtype dtype) {
    for (int i = 0; i < N_FUNCTIONS && name[0]; i++)
        if (functions[i].dtype == dtype && strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

const fx_math_fn *fx_math_by_symbol(const char *symbol) {
    for (int i = 0; i < N_FUNCTIONS; i++)
        if (strcmp(functions[i].symbol, symbol) == 0)
            return &functions[i];
    return NULL;
}

const char *fx_math_prelude_c(void) {
#define FX_PRELUDE(...) TEXT_(__VA_ARGS__)
    return
#include "core/kernel/mathlib_prelude.inc"
        "\n";
#undef FX_PRELUDE
}

#define GLSL_F32                                                                                              \
    "#define fx_f32 float\n"                                                                                  \
    "#define fx_p32 precise float\n"                                                                          \
    "#define fx_s32 int\n"                                                                                    \
    "#define fx_u32 uint\n"                                                                                   \
    "#define fx_bool bool\n"                                                                                  \
    "struct fx_pair_f32 { float hi; float lo; int n; };\n"                                                    \
    "#define fx_bits(x) floatBitsToUint(x)\n"                                                                 \
    "#define fx_from_bits(u) uintBitsToFloat(u)\n"                                                            \
    "#define fx_u2s(u) int(u)\n"                                                                              \
    "#define fx_s2u(i) uint(i)\n"                                                                             \
    "#define fx_s2f(i) float(i)\n"                                                                            \
    "#define fx_f2s(x) int(x)\n"                                                                              \
    "#define fx_abs32(x) abs(x)\n"                                                                            \
    "#define fx_root32(x) sqrt(x)\n"                                                                          \
    "#define fx_floor32(x) floor(x)\n"                                                                        \
    "uint fx_mulhi(uint a, uint b) { uint h, l; umulExtended(a, b, h, l); return h; }\n"

static const char glsl_f64[] =
    GLSL_F32
    "#define fx_f64 double\n"
    "#define fx_p64 precise double\n"
    "struct fx_pair_f64 { double hi; double lo; int n; };\n"
    "#define fx_hi(v) unpackDouble2x32(v).y\n"
    "#define fx_lo(v) unpackDouble2x32(v).x\n"
    "#define fx_make(hi, lo) packDouble2x32(uvec2(lo, hi))\n"
    "#define fx_s2d(i) double(i)\n"
    "#define fx_d2s(x) int(x)\n"
    "#define fx_abs64(x) abs(x)\n"
    "#define fx_root64(x) sqrt(x)\n"
    "#define fx_floor64(x) floor(x)\n";

const char *fx_math_prelude_glsl(bool f64) {
    return f64 ? glsl_f64 : GLSL_F32;
}
