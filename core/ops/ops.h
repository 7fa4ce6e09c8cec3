/* ops.h - the tables of ops.def, attrs.def and symbols.def as enums and rows to look things up in. */
#ifndef FX_OPS_OPS_H
#define FX_OPS_OPS_H

#include "fornax/base.h"

typedef enum fx_op {
#define FX_UNARY(name, ...) FX_OP_##name,
#define FX_BINARY(name, ...) FX_OP_##name,
#define FX_TERNARY(name, ...) FX_OP_##name,
#define FX_STRUCTURAL(name, ...) FX_OP_##name,
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
    FX_OP_COUNT
} fx_op;

typedef enum fx_attr_id {
#define FX_ATTRIBUTE(name, kind) FX_ATTR_##name,
#include "core/ops/attrs.def"
#undef FX_ATTRIBUTE
    FX_ATTR_COUNT
} fx_attr_id;

typedef enum fx_attr_kind { FX_ATTR_INT, FX_ATTR_LIST, FX_ATTR_SYMBOL, FX_ATTR_DTYPE, FX_ATTR_DATA } fx_attr_kind;

typedef enum fx_symbol {
#define FX_SYMBOL(name) FX_SYM_##name,
#include "core/ops/symbols.def"
#undef FX_SYMBOL
    FX_SYM_COUNT
} fx_symbol;

typedef enum fx_op_class { FX_CLASS_UNARY, FX_CLASS_BINARY, FX_CLASS_TERNARY, FX_CLASS_STRUCTURAL } fx_op_class;

/* Masks for fx_op_info.types. */
enum { FX_TYPE_B = 1, FX_TYPE_I = 2, FX_TYPE_U = 4, FX_TYPE_F = 8 };

typedef struct fx_op_info {
    const char *name;
    fx_op_class op_class;
    int n_in, n_region;     /* -1: any number */
    unsigned types;         /* elementwise: allowed operand types */
    bool bool_result;       /* elementwise: result is bool */
    bool view, diff;        /* structural */
    const char *float_expr; /* elementwise: text, or NULL when the class of types is not allowed */
    const char *int_expr;
    int ulp;
    const char *doc;
} fx_op_info;

const fx_op_info *fx_op_get(fx_op op);           /* never NULL for op < FX_OP_COUNT */
fx_op fx_op_find(const char *name);              /* FX_OP_COUNT when there is none */
bool fx_op_takes(fx_op op, fx_dtype dtype);      /* elementwise: is dtype in its mask? */
bool fx_op_is_elementwise(fx_op op);             /* unary, binary, ternary, convert, bitcast_convert, reduce_precision, stop_gradient */
const char *fx_attr_name(fx_attr_id id);
fx_attr_kind fx_attr_kind_of(fx_attr_id id);
fx_attr_id fx_attr_find(const char *name);       /* FX_ATTR_COUNT when there is none */
const char *fx_symbol_name(fx_symbol s);
fx_symbol fx_symbol_find(const char *name);      /* FX_SYM_COUNT when there is none */

#endif
