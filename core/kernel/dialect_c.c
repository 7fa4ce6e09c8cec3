/* dialect_c.c - C for the processor: gcc's C11 (clang's too), in which a kernel is a function over a range of workgroups.
 *
 *   void FX_KERNEL(const uint64_t *a, const uint *groups, uint first, uint last)
 *
 * a: the arguments; groups: the grid's sizes, x fastest; [first, last): linear numbers of the workgroups to run, in any
 * split. The text includes nothing and may stand in one translation unit with others, each under its own FX_KERNEL. It
 * must be compiled without contraction and fast math (mathlib.h). The prelude gives C the spelling of casts and builtins
 * that the shared texts use: function-like macros named as types act only before a parenthesis. */
#include <stdio.h>

#include "core/kernel/dialect.h"
#include "core/kernel/lanes.h"
#include "core/kernel/mathlib.h"

#define FLOATS (FX_BIT(FX_F16) | FX_BIT(FX_BF16) | FX_BIT(FX_F32))

#define SIGNED (FX_BIT(FX_S8) | FX_BIT(FX_S16) | FX_BIT(FX_S32) | FX_BIT(FX_S64))

/* Data wraps: signed arithmetic is done on the unsigned partner. (-fwrapv would do it too, but then indices count as
 * wrapping, and gcc 12 keeps the sums of a product in memory: 30 instead of 126 GFLOP/s.) */
static const fx_dialect_fn own[] = {
    {"iadd", SIGNED, "$T($U($0) + $U($1))", NULL, NULL},
    {"isub", SIGNED, "$T($U($0) - $U($1))", NULL, NULL},
    {"imul", SIGNED, "$T($U($0) * $U($1))", NULL, NULL},
    {"ineg", SIGNED, "$T(-$U($0))", NULL, NULL},
    {"idiv", SIGNED, NULL,
     "$T fx_idiv_$S($T x, $T y) {\n"
     "    $T d = y == $T(0) || y == $T(-1) ? $T(1) : y;\n"
     "    return y == $T(0) ? $T(-1) : y == $T(-1) ? $T(-$U(x)) : x / d;\n"
     "}",
     NULL},
    {"ipow", SIGNED, NULL,
     "$T fx_ipow_$S($T x, $T y) {\n"
     "    if (y < $T(0)) return x == $T(1) ? $T(1) : x == $T(-1) ? ((y & $T(1)) != $T(0) ? $T(-1) : $T(1)) : $T(0);\n"
     "    $U r = $U(1), p = $U(x);\n"
     "    for (; y != $T(0); y >>= 1, p *= p) r *= (y & $T(1)) != $T(0) ? p : $U(1);\n"
     "    return $T(r);\n"
     "}",
     NULL},
    {"shl", SIGNED, NULL,
     "$T fx_shl_$S($T x, $T y) { return y >= $T(0) && y < $T($W) ? $T($U(x) << (int(y) & ($W - 1))) : $T(0); }", NULL},
    {"fma", FLOATS, "fx_fma32($0, $1, $2)", NULL, NULL},
    {"fma", FX_BIT(FX_F64), "fx_fma64($0, $1, $2)", NULL, NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static const char prelude[] =
    "#ifndef FX_PRELUDE_C\n"
    "#define FX_PRELUDE_C\n"
    "typedef __INT8_TYPE__ int8_t; typedef __UINT8_TYPE__ uint8_t;\n"
    "typedef __INT16_TYPE__ int16_t; typedef __UINT16_TYPE__ uint16_t;\n"
    "typedef unsigned int uint; typedef _Bool bool;\n"
    "typedef long int64_t; typedef unsigned long uint64_t;\n"
    "typedef struct { uint x, y; } uvec2;\n"
    "#define FX_ALIGNED __attribute__((aligned(64)))\n"
    "#ifdef __clang__\n"
    "#define FX_LANES _Pragma(\"clang loop vectorize(assume_safety)\")\n"
    "#else\n"
    "#define FX_LANES _Pragma(\"GCC ivdep\")\n"
    "#endif\n"
    "static inline float uintBitsToFloat(uint u) { union { uint u; float f; } v; v.u = u; return v.f; }\n"
    "static inline float intBitsToFloat(int u) { union { int u; float f; } v; v.u = u; return v.f; }\n"
    "static inline uint floatBitsToUint(float f) { union { uint u; float f; } v; v.f = f; return v.u; }\n"
    "static inline int floatBitsToInt(float f) { union { int u; float f; } v; v.f = f; return v.u; }\n"
    "static inline double uint64BitsToDouble(uint64_t u) { union { uint64_t u; double f; } v; v.u = u; return v.f; }\n"
    "static inline double int64BitsToDouble(int64_t u) { union { int64_t u; double f; } v; v.u = u; return v.f; }\n"
    "static inline uint64_t doubleBitsToUint64(double f) { union { uint64_t u; double f; } v; v.f = f; return v.u; }\n"
    "static inline int64_t doubleBitsToInt64(double f) { union { int64_t u; double f; } v; v.f = f; return v.u; }\n"
    "static inline uvec2 unpackDouble2x32(double f) {\n"
    "    uint64_t u = doubleBitsToUint64(f); uvec2 v = {(uint)u, (uint)(u >> 32)}; return v;\n"
    "}\n"
    "static inline double packDouble2x32(uvec2 v) { return uint64BitsToDouble((uint64_t)v.y << 32 | v.x); }\n"
    "static inline int bitfieldExtract(int x, int at, int n) { return (int)((uint)x << (32 - at - n)) >> (32 - n); }\n"
    "static inline int bitCount(uint x) { return __builtin_popcount(x); }\n"
    "static inline int findMSB(uint x) { return x ? 31 - __builtin_clz(x) : -1; }\n"
    "static inline int fx_iabs(int x) { return x < 0 ? (int)-(uint)x : x; }\n"
    "static inline int64_t fx_labs(int64_t x) { return x < 0 ? (int64_t)-(uint64_t)x : x; }\n"
    "static inline int fx_isgn(int x) { return (x > 0) - (x < 0); }\n"
    "static inline int64_t fx_lsgn(int64_t x) { return (x > 0) - (x < 0); }\n"
    "#define abs(x) _Generic((x), float: __builtin_fabsf, double: __builtin_fabs, int64_t: fx_labs, default: fx_iabs)(x)\n"
    "#define sign(x) _Generic((x), int64_t: fx_lsgn, default: fx_isgn)(x)\n"
    "#define floor(x) _Generic((x), float: __builtin_floorf, default: __builtin_floor)(x)\n"
    "#define ceil(x) _Generic((x), float: __builtin_ceilf, default: __builtin_ceil)(x)\n"
    "#define sqrt(x) _Generic((x), float: __builtin_sqrtf, default: __builtin_sqrt)(x)\n"
    "#define min(x, y) ({ __auto_type a_ = (x); __auto_type b_ = (y); a_ < b_ ? a_ : b_; })\n"
    "#define max(x, y) ({ __auto_type a_ = (x); __auto_type b_ = (y); a_ > b_ ? a_ : b_; })\n"
    "#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)\n"
    "#define fx_fma32(x, y, z) __builtin_fmaf(x, y, z)\n"
    "#define fx_fma64(x, y, z) __builtin_fma(x, y, z)\n"
    "#else\n"
    "#define fx_fma32(x, y, z) ((x) * (y) + (z))\n"
    "#define fx_fma64(x, y, z) ((x) * (y) + (z))\n"
    "#endif\n"
    "#define FX_REDUCE(T, v, g, f) \\\n" /* in each subgroup, by halves */
    "    for (int s = 0; s < FX_WIDTH; s += FX_SUBGROUP) { \\\n"
    "        for (int h = FX_SUBGROUP / 2; h > 0; h /= 2) \\\n"
    "            for (int l = s; l < s + h && l + h < FX_WIDTH; l++) { const T a = g[l], b = g[l + h]; g[l] = f; } \\\n"
    "        for (int l = s; l < s + FX_SUBGROUP && l < FX_WIDTH; l++) v[l] = g[s]; \\\n"
    "    }\n"
    "#define precise\n"
    "#define true ((bool)1)\n"
    "#define false ((bool)0)\n"
    "#endif\n";

/* After the mathlib's prelude, which spells casts as C does. */
static const char casts[] =
    "#ifndef FX_CASTS_C\n"
    "#define FX_CASTS_C\n"
    "#define int(x) ((int)(x))\n"
    "#define uint(x) ((uint)(x))\n"
    "#define bool(x) ((bool)(x))\n"
    "#define float(x) ((float)(x))\n"
    "#define double(x) ((double)(x))\n"
    "#define int8_t(x) ((int8_t)(x))\n"
    "#define uint8_t(x) ((uint8_t)(x))\n"
    "#define int16_t(x) ((int16_t)(x))\n"
    "#define uint16_t(x) ((uint16_t)(x))\n"
    "#define int64_t(x) ((int64_t)(x))\n"
    "#define uint64_t(x) ((uint64_t)(x))\n"
    "#define uvec2(a, b) ((uvec2){(a), (b)})\n"
    "#endif\n";

static void constant(fx_text *t, fx_dtype type, int64_t i, double f) {
    fx_dialect_constant(t, type, i, f, "");
}

static void pointer(fx_render *r, fx_text *o, int j, const char *at) {
    const fx_karg *a = &r->k->args[j];
    fx_text_fmt(o, "    %s%s *p%d = (%s%s *)a[%s];\n", a->writes ? "" : "const ", r->dialect->memory[a->elem], j,
                a->writes ? "" : "const ", r->dialect->memory[a->elem], at);
}

static void segment(fx_render *r, fx_text *o, const char *which) {
    const fx_ksegment *s = &r->k->segment;
    fx_text_fmt(o, "    const int segment = %d + %d * %s;\n", s->fixed, r->k->n_arg - s->fixed, which);
    for (int j = s->fixed; j < r->k->n_arg; j++) {
        char at[32];
        snprintf(at, sizeof at, "segment + %d", j - s->fixed);
        pointer(r, o, j, at);
    }
}

static void element(fx_render *r, fx_text *out, int arg, const char *index, int word) {
    (void)r;
    (void)word;
    fx_text_fmt(out, "p%d[", arg);
    fx_text_str(out, index);
    fx_text_str(out, "]");
}

static void kernel(fx_render *r, fx_text *o, const char *functions, const char *body) {
    const fx_kir *k = r->k;
    const fx_lanes *l = r->lanes;
    fx_text_str(o, prelude);
    fx_text_fmt(o, "#ifndef FX_MATH_C\n#define FX_MATH_C\n%s#endif\n", fx_math_prelude_c());
    fx_text_str(o, casts);
    fx_text_str(o, functions);
    fx_text_str(o, "void FX_KERNEL(const uint64_t *a, const uint *groups, uint first, uint last) {\n");
    for (int j = 0; j < (k->segment.count ? k->segment.fixed : k->n_arg); j++) {
        char at[16];
        snprintf(at, sizeof at, "%d", j);
        pointer(r, o, j, at);
    }
    for (int s = 0; s < k->n_shared; s++)
        fx_text_fmt(o, "    FX_ALIGNED %s s%d[%lld];\n", r->dialect->types[k->shared[s].elem], s,
                    (long long)k->shared[s].count);
    fx_text_fmt(o,
                "    for (uint g = first; g < last; g++) {\n"
                "    const int gx = int(g %% groups[0]), gy = int(g / groups[0] %% groups[1]), gz = int(g / groups[0] / "
                "groups[1]);\n"
                "    for (int sg = 0; sg < %lld; sg++) {\n"
                "    enum { FX_WIDTH = %lld, FX_SUBGROUP = %lld, FX_WX = %u, FX_WY = %u };\n",
                (long long)l->subgroups, (long long)l->width, (long long)l->subgroup, k->workgroup[0], k->workgroup[1]);
    fx_text_str(o, body);
    fx_text_str(o, "    }\n    }\n}\n");
}

/* Exchanges between lanes are statements: from array $1 of all lanes' operands to array $0; $2 is a lane, delta or mask. */
#define EACH "FX_LANES for (int l = 0; l < FX_WIDTH; l++) $0[l] = "

const fx_dialect fx_dialect_c = {
    .language = FX_LANGUAGE_C,
    .types = fx_dialect_types,
    .unsigned_ = fx_dialect_unsigned,
    .memory = fx_dialect_memory,
    .const_ = "const ",
    .builtin = {[FX_KB_GROUP_X] = "gx",
                [FX_KB_GROUP_Y] = "gy",
                [FX_KB_GROUP_Z] = "gz",
                [FX_KB_LOCAL] = "(sg * FX_SUBGROUP + l)",
                [FX_KB_LOCAL_X] = "((sg * FX_SUBGROUP + l) % FX_WX)",
                [FX_KB_LOCAL_Y] = "((sg * FX_SUBGROUP + l) / FX_WX % FX_WY)",
                [FX_KB_LANE] = "(l % FX_SUBGROUP)",
                [FX_KB_SUBGROUP] = "sg"},
    .subgroup = {[FX_SUB_BROADCAST] = EACH "$1[l - l % FX_SUBGROUP + ($2)];",
                 [FX_SUB_SHUFFLE] = EACH "$1[l - l % FX_SUBGROUP + ($2)];",
                 [FX_SUB_SHUFFLE_DOWN] =
                     EACH "$1[l % FX_SUBGROUP + ($2) < FX_SUBGROUP && l + ($2) < FX_WIDTH ? l + ($2) : l];",
                 [FX_SUB_SHUFFLE_XOR] = EACH "$1[(l ^ ($2)) < FX_WIDTH ? l ^ ($2) : l];",
                 [FX_SUB_ADD] = "FX_REDUCE($T, $0, $1, a + b)",
                 [FX_SUB_MUL] = "FX_REDUCE($T, $0, $1, a * b)",
                 [FX_SUB_MAX] = "FX_REDUCE($T, $0, $1, a > b ? a : b)",
                 [FX_SUB_MIN] = "FX_REDUCE($T, $0, $1, a < b ? a : b)",
                 [FX_SUB_AND] = "FX_REDUCE($T, $0, $1, a & b)",
                 [FX_SUB_OR] = "FX_REDUCE($T, $0, $1, a | b)",
                 [FX_SUB_XOR] = "FX_REDUCE($T, $0, $1, a ^ b)",
                 [FX_SUB_SCAN_ADD] = "for (int l = 0; l < FX_WIDTH; l++) $0[l] = l % FX_SUBGROUP ? $0[l - 1] + $1[l] : $1[l];",
                 [FX_SUB_EXSCAN_ADD] =
                     "for (int l = 0; l < FX_WIDTH; l++) $0[l] = l % FX_SUBGROUP ? $0[l - 1] + $1[l - 1] : 0;"},
    .array = {"{", "}"},
    .lanes = true,
    .no_words = true,
    .unroll = "",
    .dont_unroll = "",
    .own = own,
    .fns = fx_dialect_fns,
    .constant = constant,
    .kernel = kernel,
    .segment = segment,
    .element = element,
};
