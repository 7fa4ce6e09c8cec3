/* dialect_functions.c - names of types, functions and constants, in the subset that all kernel languages share: GLSL's spelling of casts
 * (T(x)) and builtins, which the C prelude defines. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/kernel/dialect.h"

#define B1 FX_BIT(FX_BOOL)
#define SI (FX_BIT(FX_S8) | FX_BIT(FX_S16) | FX_BIT(FX_S32) | FX_BIT(FX_S64))
#define UI (FX_BIT(FX_U8) | FX_BIT(FX_U16) | FX_BIT(FX_U32) | FX_BIT(FX_U64))
#define I64 (FX_BIT(FX_S64) | FX_BIT(FX_U64))
#define F32 (FX_BIT(FX_F16) | FX_BIT(FX_BF16) | FX_BIT(FX_F32))
#define F64 FX_BIT(FX_F64)

const fx_dialect_fn fx_dialect_fns[] = {
    {"iabs", SI, "abs($0)", NULL, NULL},
    {"iabs", UI, "$0", NULL, NULL},
    {"ineg", SI | UI, "(-$0)", NULL, NULL},
    {"isign", SI, "sign($0)", NULL, NULL},
    {"isign", UI, "min($0, $T(1))", NULL, NULL},
    {"bnot", B1, "!$0", NULL, NULL},
    {"bnot", SI | UI, "(~$0)", NULL, NULL},
    {"popcnt", I64, NULL, "$T fx_popcnt_$S($T x) { return $T(bitCount(uint($U(x))) + bitCount(uint($U(x) >> 32))); }",
     NULL},
    {"popcnt", SI | UI, "$T(bitCount($U($0) & $M))", NULL, NULL},
    {"clz", I64, NULL,
     "$T fx_clz_$S($T x) { uint h = uint($U(x) >> 32); return $T(h != 0u ? 31 - findMSB(h) : 63 - "
     "findMSB(uint($U(x)))); }",
     NULL},
    {"clz", SI | UI, "$T($W - 1 - findMSB($U($0) & $M))", NULL, NULL},
    {"iadd", SI | UI, "($0 + $1)", NULL, NULL},
    {"isub", SI | UI, "($0 - $1)", NULL, NULL},
    {"imul", SI | UI, "($0 * $1)", NULL, NULL},
    {"idiv", SI, NULL,
     "$T fx_idiv_$S($T x, $T y) {\n"
     "    $T d = y == $T(0) || y == $T(-1) ? $T(1) : y;\n"
     "    return y == $T(0) ? $T(-1) : y == $T(-1) ? -x : x / d;\n"
     "}",
     NULL},
    {"idiv", UI, NULL, "$T fx_idiv_$S($T x, $T y) { return y == $T(0) ? $M : x / max(y, $T(1)); }", NULL},
    {"irem", SI, NULL,
     "$T fx_irem_$S($T x, $T y) {\n"
     "    $T d = y == $T(0) || y == $T(-1) ? $T(1) : y;\n"
     "    return y == $T(0) ? x : x - x / d * d;\n"
     "}",
     NULL},
    {"irem", UI, NULL, "$T fx_irem_$S($T x, $T y) { return y == $T(0) ? x : x % max(y, $T(1)); }", NULL},
    {"ipow", SI, NULL,
     "$T fx_ipow_$S($T x, $T y) {\n"
     "    if (y < $T(0)) return x == $T(1) ? $T(1) : x == $T(-1) ? ((y & $T(1)) != $T(0) ? $T(-1) : $T(1)) : $T(0);\n"
     "    $T r = $T(1);\n"
     "    for (; y != $T(0); y >>= 1, x *= x) r *= (y & $T(1)) != $T(0) ? x : $T(1);\n"
     "    return r;\n"
     "}",
     NULL},
    {"ipow", UI, NULL,
     "$T fx_ipow_$S($T x, $T y) {\n"
     "    $T r = $T(1);\n"
     "    for (; y != $T(0); y >>= 1, x *= x) r *= (y & $T(1)) != $T(0) ? x : $T(1);\n"
     "    return r;\n"
     "}",
     NULL},
    {"imax", B1, "($0 || $1)", NULL, NULL},
    {"imin", B1, "($0 && $1)", NULL, NULL},
    {"imax", SI | UI, "max($0, $1)", NULL, NULL},
    {"imin", SI | UI, "min($0, $1)", NULL, NULL},
    {"iand", B1, "($0 && $1)", NULL, NULL},
    {"ior", B1, "($0 || $1)", NULL, NULL},
    {"ixor", B1, "($0 != $1)", NULL, NULL},
    {"iand", SI | UI, "($0 & $1)", NULL, NULL},
    {"ior", SI | UI, "($0 | $1)", NULL, NULL},
    {"ixor", SI | UI, "($0 ^ $1)", NULL, NULL},
    {"ilt", B1, "(!$0 && $1)", NULL, NULL},
    {"ile", B1, "(!$0 || $1)", NULL, NULL},
    {"ilt", SI | UI, "($0 < $1)", NULL, NULL},
    {"ile", SI | UI, "($0 <= $1)", NULL, NULL},
    {"clamp", SI | UI, "min(max($1, $0), $2)", NULL, NULL},
    {"shl", SI | UI, NULL,
     "$T fx_shl_$S($T x, $T y) { return y >= $T(0) && y < $T($W) ? x << (int(y) & ($W - 1)) : $T(0); }", NULL},
    {"shr_l", SI | UI, NULL,
     "$T fx_shr_l_$S($T x, $T y) { return y >= $T(0) && y < $T($W) ? $T(($U(x) & $M) >> (int(y) & ($W - 1))) : $T(0); "
     "}",
     NULL},
    {"shr_a", SI, NULL, "$T fx_shr_a_$S($T x, $T y) { return x >> (y >= $T(0) && y < $T($W) ? int(y) : $W - 1); }",
     NULL},
    {"shr_a", FX_BIT(FX_U8), NULL,
     "uint fx_shr_a_u8(uint x, uint y) { return uint(bitfieldExtract(int(x), 0, 8) >> int(min(y, 7u))); }", NULL},
    {"shr_a", FX_BIT(FX_U16), NULL,
     "uint fx_shr_a_u16(uint x, uint y) { return uint(bitfieldExtract(int(x), 0, 16) >> int(min(y, 15u))); }", NULL},
    {"shr_a", FX_BIT(FX_U32), NULL, "uint fx_shr_a_u32(uint x, uint y) { return uint(int(x) >> int(min(y, 31u))); }",
     NULL},
    {"shr_a", FX_BIT(FX_U64), NULL,
     "uint64_t fx_shr_a_u64(uint64_t x, uint64_t y) { return uint64_t(int64_t(x) >> int(min(y, uint64_t(63)))); }",
     NULL},
    {"wrap", FX_BIT(FX_S8), "bitfieldExtract($0, 0, 8)", NULL, NULL},
    {"wrap", FX_BIT(FX_S16), "bitfieldExtract($0, 0, 16)", NULL, NULL},
    {"wrap", FX_BIT(FX_U8) | FX_BIT(FX_U16), "($0 & $M)", NULL, NULL},

    {"fabs", F32 | F64, "abs($0)", NULL, NULL},
    {"floor", F32 | F64, "floor($0)", NULL, NULL},
    {"ceil", F32 | F64, "ceil($0)", NULL, NULL},
    {"fdiv", F32 | F64, "($0 / $1)", NULL, NULL},
    {"sqrt", F32 | F64, "sqrt($0)", NULL, NULL},
    {"is_nan", F32, "((floatBitsToUint($0) & 0x7fffffffu) > 0x7f800000u)", NULL, NULL},
    {"is_finite", F32, "((floatBitsToUint($0) & 0x7f800000u) != 0x7f800000u)", NULL, NULL},
    {"is_finite", F64, "((unpackDouble2x32($0).y & 0x7ff00000u) != 0x7ff00000u)", NULL, NULL},
    {"is_nan", F64, NULL,
     "bool fx_is_nan_f64(double x) {\n"
     "    uvec2 u = unpackDouble2x32(x);\n"
     "    return (u.y & 0x7ff00000u) == 0x7ff00000u && ((u.y & 0xfffffu) | u.x) != 0u;\n"
     "}",
     NULL},
    {"fmax_nan", F32, NULL,
     "float fx_fmax_nan_$S(float x, float y) {\n"
     "    uint a = floatBitsToUint(x), b = floatBitsToUint(y);\n"
     "    return x > y ? x : x == y ? uintBitsToFloat(a & b) : (a & 0x7fffffffu) > 0x7f800000u ? x : y;\n"
     "}",
     NULL},
    {"fmin_nan", F32, NULL,
     "float fx_fmin_nan_$S(float x, float y) {\n"
     "    uint a = floatBitsToUint(x), b = floatBitsToUint(y);\n"
     "    return x < y ? x : x == y ? uintBitsToFloat(a | b) : (a & 0x7fffffffu) > 0x7f800000u ? x : y;\n"
     "}",
     NULL},
    {"fmax_nan", F64, NULL,
     "double fx_fmax_nan_f64(double x, double y) {\n"
     "    uvec2 a = unpackDouble2x32(x), b = unpackDouble2x32(y);\n"
     "    return x > y ? x : x == y ? packDouble2x32(uvec2(a.x & b.x, a.y & b.y)) : fx_is_nan_f64(x) ? x : y;\n"
     "}",
     "is_nan"},
    {"fmin_nan", F64, NULL,
     "double fx_fmin_nan_f64(double x, double y) {\n"
     "    uvec2 a = unpackDouble2x32(x), b = unpackDouble2x32(y);\n"
     "    return x < y ? x : x == y ? packDouble2x32(uvec2(a.x | b.x, a.y | b.y)) : fx_is_nan_f64(x) ? x : y;\n"
     "}",
     "is_nan"},
    {"clamp", F32, NULL,
     "float fx_clamp_$S(float lo, float x, float hi) {\n"
     "    float m = x > lo || (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u ? x : lo;\n"
     "    return m < hi || (floatBitsToUint(m) & 0x7fffffffu) > 0x7f800000u ? m : hi;\n"
     "}",
     NULL},
    {"clamp", F64, NULL,
     "double fx_clamp_f64(double lo, double x, double hi) {\n"
     "    double m = x > lo || fx_is_nan_f64(x) ? x : lo;\n"
     "    return m < hi || fx_is_nan_f64(m) ? m : hi;\n"
     "}",
     "is_nan"},

    /* A float of f32 range to the bits of a 16-bit format and back, nearest even. */
    {"bits", FX_BIT(FX_BF16), NULL,
     "uint fx_bits_bf16(float x) {\n"
     "    uint b = floatBitsToUint(x);\n"
     "    return (b & 0x7fffffffu) > 0x7f800000u ? b >> 16 | 0x40u : (b + 0x7fffu + (b >> 16 & 1u)) >> 16;\n"
     "}",
     NULL},
    {"bits", FX_BIT(FX_F16), NULL,
     "uint fx_bits_f16(float x) {\n"
     "    uint b = floatBitsToUint(x), s = b >> 16 & 0x8000u, m = b & 0x7fffffffu;\n"
     "    if (m > 0x7f800000u) return s | 0x7e00u | m >> 13 & 0x3ffu;\n"
     "    if (m >= 0x477ff000u) return s | 0x7c00u;\n"
     "    if (m >= 0x38800000u) return s | (m - 0x38000000u + 0xfffu + (m >> 13 & 1u)) >> 13;\n"
     "    uint sh = min(126u - (m >> 23), 31u), f = m & 0x7fffffu | 0x800000u, q = f >> sh, r = f & (1u << sh) - 1u, h "
     "= 1u << sh - 1u;\n"
     "    return s | (m < 0x33000000u ? 0u : q + (r > h || r == h && (q & 1u) != 0u ? 1u : 0u));\n"
     "}",
     NULL},
    {"unbits", FX_BIT(FX_BF16), "uintBitsToFloat($0 << 16)", NULL, NULL},
    {"unbits", FX_BIT(FX_F16), NULL,
     "float fx_unbits_f16(uint h) {\n"
     "    uint s = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;\n"
     "    if (e == 0u) return uintBitsToFloat(floatBitsToUint(float(m) * 5.9604644775390625e-8f) | s);\n"
     "    return uintBitsToFloat(s | (e == 31u ? 0x7f800000u : e + 112u << 23) | m << 13);\n"
     "}",
     NULL},
    {"narrow", FX_BIT(FX_BF16), NULL,
     "float fx_narrow_bf16(float x) { return uintBitsToFloat(fx_bits_bf16(x) << 16); }", "bits"},
    {"narrow", FX_BIT(FX_F16), NULL, "float fx_narrow_f16(float x) { return fx_unbits_f16(fx_bits_f16(x)); }",
     "bits unbits"},

    /* A float to an integer: truncated, saturated, NaN to 0. from32, from64 by the float's type. */
    {"from32", SI | UI, NULL,
     "$T fx_from32_$S(float x) {\n"
     "    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u ? $T(0) : x <= float($I) ? $I : x >= float($A) ? $A "
     ": $T(x);\n"
     "}",
     NULL},
    {"from64", SI | UI, NULL,
     "$T fx_from64_$S(double x) {\n"
     "    return !(x == x) ? $T(0) : x <= double($I) ? $I : x >= double($A) ? $A : $T(x);\n"
     "}",
     NULL},
    /* Rounding to fewer exponent and mantissa bits. */
    {"round", F32, NULL,
     "float fx_round_$S(float x, int e, int m) {\n"
     "    uint b = floatBitsToUint(x), s = b & 0x80000000u, a = b ^ s;\n"
     "    if (a >= 0x7f800000u) return x;\n"
     "    if (m < 23) {\n"
     "        uint last = 1u << 23 - m;\n"
     "        a = a + (last >> 1) - 1u + (a >> 23 - m & 1u) & ~(last - 1u);\n"
     "    }\n"
     "    if (e < 8) {\n"
     "        uint bias = (1u << e - 1) - 1u, top = 127u + bias << 23, low = 128u - bias << 23;\n"
     "        if (a >= top + 0x800000u) a = 0x7f800000u;\n"
     "        else if (a < low) a = 0u;\n"
     "    }\n"
     "    return uintBitsToFloat(s | a);\n"
     "}",
     NULL},
    {"round", F64, NULL,
     "double fx_round_f64(double x, int e, int m) {\n"
     "    uint h = unpackDouble2x32(x).y, s = h & 0x80000000u, f = h >> 20 & 0x7ffu;\n"
     "    if (f == 0x7ffu) return x;\n"
     "    precise double r = x;\n"
     "    if (m == 0) {\n" /* the last bit kept, which a tie makes even, is the exponent's */
     "        uvec2 w = unpackDouble2x32(x);\n"
     "        uint part = w.y & 0xfffffu;\n"
     "        bool up = part > 0x80000u || part == 0x80000u && (w.x != 0u || (f & 1u) == 1u);\n"
     "        r = packDouble2x32(uvec2(0u, s | f + (up ? 1u : 0u) << 20));\n"
     "    } else if (m < 52) {\n" /* adding a power of two whose last place is the one to keep rounds to it */
     "        bool large = f > 1900u;\n"
     "        precise double y = large ? x * packDouble2x32(uvec2(0u, 823u << 20)) : x;\n"
     "        uint g = max(large ? f - 200u : f, 1u);\n"
     "        precise double big = packDouble2x32(uvec2(0u, s | g + 52u - uint(m) << 20));\n"
     "        precise double t = y + big;\n"
     "        precise double q = t - big;\n"
     "        r = large ? q * packDouble2x32(uvec2(0u, 1223u << 20)) : q;\n"
     "        if (r == double(0)) r = packDouble2x32(uvec2(0u, s));\n"
     "    }\n"
     "    if (e < 11) {\n"
     "        uint bias = (1u << e - 1) - 1u;\n"
     "        precise double a = abs(r);\n"
     "        if (a >= packDouble2x32(uvec2(0u, 1024u + bias << 20))) return packDouble2x32(uvec2(0u, s | "
     "0x7ff00000u));\n"
     "        if (a < packDouble2x32(uvec2(0u, 1024u - bias << 20))) return packDouble2x32(uvec2(0u, s));\n"
     "    }\n"
     "    return r;\n"
     "}",
     NULL},
    {NULL, 0, NULL, NULL, NULL},
};

const char *const fx_dialect_types[FX_DTYPE_COUNT] = {
    [FX_BOOL] = "bool",    [FX_S32] = "int",       [FX_U32] = "uint",  [FX_S64] = "int64_t",
    [FX_U64] = "uint64_t", [FX_F32] = "float",     [FX_F64] = "double"};
const char *const fx_dialect_unsigned[FX_DTYPE_COUNT] = {
    [FX_S32] = "uint", [FX_U32] = "uint", [FX_S64] = "uint64_t", [FX_U64] = "uint64_t"};
const char *const fx_dialect_memory[FX_DTYPE_COUNT] = {
    [FX_BOOL] = "uint8_t", [FX_S8] = "int8_t",    [FX_U8] = "uint8_t",   [FX_S16] = "int16_t", [FX_U16] = "uint16_t",
    [FX_S32] = "int",      [FX_U32] = "uint",     [FX_S64] = "int64_t",  [FX_U64] = "uint64_t", [FX_F16] = "uint16_t",
    [FX_BF16] = "uint16_t", [FX_F32] = "float",   [FX_F64] = "double"};

void fx_dialect_constant(fx_text *t, fx_dtype type, int64_t i, double f, const char *f64) {
    switch (type) {
    case FX_BOOL:
        fx_text_str(t, i ? "true" : "false");
        return;
    case FX_S32:
        if (i == INT32_MIN)
            fx_text_str(t, "int(0x80000000u)");
        else
            fx_text_fmt(t, i < 0 ? "(%lld)" : "%lld", (long long)i);
        return;
    case FX_U32:
        fx_text_fmt(t, "%uu", (unsigned)i);
        return;
    case FX_S64:
        if (i == INT64_MIN)
            fx_text_str(t, "int64_t(0x8000000000000000UL)");
        else
            fx_text_fmt(t, i < 0 ? "(%lldL)" : "%lldL", (long long)i);
        return;
    case FX_U64:
        fx_text_fmt(t, "%lluUL", (unsigned long long)i);
        return;
    case FX_F64: {
        uint64_t u;
        memcpy(&u, &f, 8);
        if (isfinite(f) && (f == 0 ? !signbit(f) : fabs(f) >= 2.3e-308)) {
            char buf[40];
            snprintf(buf, sizeof buf, "%.17g", f);
            fx_text_fmt(t, f < 0 ? "(%s%s%s)" : "%s%s%s", buf, strpbrk(buf, ".e") ? "" : ".0", f64);
        } else
            fx_text_fmt(t, "packDouble2x32(uvec2(0x%xu, 0x%xu))", (unsigned)u, (unsigned)(u >> 32));
        return;
    }
    default: {
        float v = (float)f;
        uint32_t u;
        memcpy(&u, &v, 4);
        if (isfinite(v) && (v == 0 ? !signbit(v) : fabsf(v) >= 1.2e-38f)) {
            char buf[40];
            snprintf(buf, sizeof buf, "%.9g", (double)v);
            fx_text_fmt(t, v < 0 ? "(%s%sf)" : "%s%sf", buf, strpbrk(buf, ".e") ? "" : ".0");
        } else
            fx_text_fmt(t, "uintBitsToFloat(0x%08xu)", (unsigned)u);
    }
    }
}
