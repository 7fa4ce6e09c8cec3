/* dialect.h - how a kernel language says what the renderer asks for: a table a language.
 *
 * The renderer knows C-like expressions and statements; everything that languages spell differently is
 * a row here. Patterns and function texts may use
 *   $0 $1 $2  operands (already in parentheses where needed)
 *   $T register type, $U its unsigned partner, $S element type's name, $W its width in bits,
 *   $M mask of its bits, $B the memory type, $I least and $A greatest value (integers) */
#ifndef FX_KERNEL_DIALECT_H
#define FX_KERNEL_DIALECT_H

#include "core/kernel/kir.h"
#include "core/kernel/text.h"
#include "fornax/backend.h"

#define FX_BIT(dtype) (1u << (dtype))

/* A row: M(name, ...) on the element types of the mask. With a pattern it is an expression; with a text, a
 * call of the function fx_NAME_TYPE that the text defines, once a kernel. */
typedef struct fx_dialect_fn {
    const char *name;
    uint32_t types;
    const char *pattern;
    const char *text;
    const char *needs; /* another row's name of the same type, or a function of mathlib by symbol, or NULL */
} fx_dialect_fn;

typedef struct fx_render fx_render;

typedef struct fx_dialect {
    fx_language language;
    const char *const *types, *const *unsigned_; /* by register type: names */
    const char *const *memory;                   /* by element type, in buffers */
    const char *const_;                 /* qualifier of locals */
    const char *builtin[FX_KB_COUNT];
    const char *subgroup[FX_SUB_EXSCAN_ADD + 1]; /* patterns; with lanes, of statements */
    const char *barrier;
    const char *unroll, *dont_unroll; /* before a loop; may be "" */
    const char *array[2];             /* around the initial values of a local array of type $T */
    bool lanes;                       /* invocations are iterations of loops: lanes.h */
    bool no_words;                    /* several elements are several accesses: the compiler joins them */
    const fx_dialect_fn *own, *fns;   /* each ends with name NULL; the first row that matches counts, own ones first */
    bool math_first;                  /* the elementary functions of mathlib even where a row exists */
    void (*constant)(fx_text *t, fx_dtype type, int64_t i, double f);
    /* Everything around the statements: version, extensions, arguments, shared arrays. `uses` tells what
     * occurs in the kernel; the functions asked for are in functions, the statements in body. */
    void (*kernel)(fx_render *r, fx_text *out, const char *functions, const char *body);
    /* Declares the arguments of a segment. */
    void (*segment)(fx_render *r, fx_text *out, const char *segment);
    /* Element `index` of argument arg as an lvalue of memory type; word 4 or 8: word `index` of that many bytes. */
    void (*element)(fx_render *r, fx_text *out, int arg, const char *index, int word);
    /* Words of 8 bytes: as a 64-bit integer, or split in two where the device has none. half: patterns for the lower
     * and upper 32 bits of word $0; make: a word of halves $0, $1. */
    const char *word8, *word8_split, *half[2], *half_split[2], *make8, *make8_split;
    const char *unpack[FX_DTYPE_COUNT]; /* memory value of an element at bit $1 of the 32-bit $0 */
    const char *pack[FX_DTYPE_COUNT];   /* memory value $0 moved to bit $1 of 32 */
} fx_dialect;

extern const fx_dialect fx_dialect_glsl, fx_dialect_c;

/* What the languages share: names of types; rows in GLSL's spelling, whose casts and builtins the preludes of others define, and
 * constants; f64 is the suffix of doubles. */
extern const char *const fx_dialect_types[], *const fx_dialect_unsigned[], *const fx_dialect_memory[];
extern const fx_dialect_fn fx_dialect_fns[];
void fx_dialect_constant(fx_text *t, fx_dtype type, int64_t i, double f, const char *f64);

/* What the renderer found in a kernel, for the dialect's head. */
struct fx_render {
    const fx_kir *k;
    const fx_dialect *dialect;
    const fx_device_caps *caps;
    uint32_t elems;    /* FX_BIT of element types in arguments */
    bool pack4, pack8; /* words of 4 or 8 bytes in use */
    uint32_t types;    /* of register types in use */
    bool subgroup, arithmetic, shuffle, barrier, math;
    struct fx_lanes *lanes; /* or NULL */
    int region, region_depth; /* number of the open region, 0: none; depth of the block where it stands */
    struct fx_render_state *state;
};

/* The text of a kernel, in *out (the caller frees it). name: for languages that name their entry.
 * FX_UNSUPPORTED names a type that the device lacks. */
fx_status fx_kir_render(const fx_kir *k, const fx_device_caps *caps, const char *name, fx_text *out);

/* Does the device store elements of this type, and compute with its register type? FX_UNSUPPORTED if not;
 * `what` names the user of the type. */
fx_status fx_dtype_check(const fx_device_caps *caps, fx_dtype dtype, const char *what);

#endif
