/* ops.c - the rows of ops.def as a table, with text of the scalar expressions for the renderer. */
#include "core/ops/ops.h"

#include <string.h>

#define B FX_TYPE_B
#define I FX_TYPE_I
#define U FX_TYPE_U
#define F FX_TYPE_F
#define IS_SAME false
#define IS_BOOL true
#define IS_DIFF true
#define IS_NODIFF false
#define NONE /* an absent expression becomes the empty text, which TEXT turns into NULL */
#define TEXT(...) (sizeof(#__VA_ARGS__) == 1 ? NULL : #__VA_ARGS__)

static const fx_op_info ops[FX_OP_COUNT] = {
#define FX_UNARY(name, types, result, fexpr, iexpr, d0, ulp, doc)                                                 \
    [FX_OP_##name] = {#name, FX_CLASS_UNARY, 1, 0, types, IS_##result, false, true, TEXT(fexpr), TEXT(iexpr), ulp, doc},
#define FX_BINARY(name, types, result, fexpr, iexpr, d0, d1, ulp, doc)                                            \
    [FX_OP_##name] = {#name, FX_CLASS_BINARY, 2, 0, types, IS_##result, false, true, TEXT(fexpr), TEXT(iexpr), ulp, doc},
#define FX_TERNARY(name, types, result, expr, doc)                                                                \
    [FX_OP_##name] = {#name, FX_CLASS_TERNARY, 3, 0, types, IS_##result, false, true, TEXT(expr), TEXT(expr), 0, doc},
#define FX_STRUCTURAL(name, n_in, n_region, view, diff, doc)                                                      \
    [FX_OP_##name] = {#name, FX_CLASS_STRUCTURAL, n_in, n_region, 0, false, view, IS_##diff, NULL, NULL, 0, doc},
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
};

static const char *const attr_names[FX_ATTR_COUNT] = {
#define FX_ATTRIBUTE(name, kind) #name,
#include "core/ops/attrs.def"
#undef FX_ATTRIBUTE
};

static const unsigned char attr_kinds[FX_ATTR_COUNT] = {
#define FX_ATTRIBUTE(name, kind) FX_ATTR_##kind,
#include "core/ops/attrs.def"
#undef FX_ATTRIBUTE
};

static const char *const symbol_names[FX_SYM_COUNT] = {
#define FX_SYMBOL(name) #name,
#include "core/ops/symbols.def"
#undef FX_SYMBOL
};

const fx_op_info *fx_op_get(fx_op op) { return &ops[op]; }

fx_op fx_op_find(const char *name) {
    int op = 0;
    while (op < FX_OP_COUNT && strcmp(ops[op].name, name))
        op++;
    return (fx_op)op;
}

bool fx_op_takes(fx_op op, fx_dtype d) {
    unsigned bit = d == FX_BOOL ? B : fx_dtype_is_signed(d) ? I : fx_dtype_is_unsigned(d) ? U : F;
    return d < FX_DTYPE_COUNT && (ops[op].types & bit);
}

bool fx_op_is_elementwise(fx_op op) {
    return ops[op].op_class != FX_CLASS_STRUCTURAL || op == FX_OP_convert || op == FX_OP_bitcast_convert ||
           op == FX_OP_reduce_precision || op == FX_OP_stop_gradient;
}

const char *fx_attr_name(fx_attr_id id) { return attr_names[id]; }
fx_attr_kind fx_attr_kind_of(fx_attr_id id) { return (fx_attr_kind)attr_kinds[id]; }

static int find(const char *const *names, int n, const char *name) {
    int i = 0;
    while (i < n && strcmp(names[i], name))
        i++;
    return i;
}

fx_attr_id fx_attr_find(const char *name) { return (fx_attr_id)find(attr_names, FX_ATTR_COUNT, name); }
const char *fx_symbol_name(fx_symbol s) { return symbol_names[s]; }
fx_symbol fx_symbol_find(const char *name) { return (fx_symbol)find(symbol_names, FX_SYM_COUNT, name); }
