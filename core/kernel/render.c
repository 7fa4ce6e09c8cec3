/* render.c - the one printer of kernels: loop IR in, text of a C-like language out, by a dialect's table.
 *
 * Index expressions that are used more than once, or that depend only on outer loops, become named
 * constants in the outermost block where their variables exist: each open block has a buffer of its own,
 * and a name may still be appended to an outer one because a loop's text joins it only when it closes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/kernel/dialect.h"
#include "core/kernel/lanes.h"
#include "core/kernel/render.h"

static void expr(fx_render *r, fx_text *t, fx_kx *x);

static bool arithmetic(const fx_kx *x) {
    return x->kop >= FX_K_ADD && x->kop <= FX_K_CAST && x->type != FX_F32 && x->type != FX_F64 && !x->pinned;
}

static void count(fx_kx *x) {
    if (x && x->uses++ == 0)
        for (int j = 0; j < x->n; j++)
            count(x->a[j]);
}

static void count_block(fx_render *r, const fx_kblock *b) {
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        count(s->x);
        count(s->y);
        for (int j = 0; j < s->n && s->xs; j++)
            count(s->xs[j]);
        r->barrier |= s->kind == FX_KS_BARRIER;
        count_block(r, s->body);
        count_block(r, s->orelse);
    }
}

static void indent(fx_text *t, int depth) {
    for (int d = 0; d <= depth; d++)
        fx_text_str(t, "    ");
}

/* Does the variable live across regions of lanes? */
static bool in_array(const fx_render *r, const fx_kvar *v) {
    return r->lanes && r->lanes->array[v->id];
}

/* The block where a name for x goes: the outermost one where its variables exist, yet inside the loop over lanes when
 * it differs between them. */
static int place(fx_render *r, const fx_kx *x) {
    if (!r->region)
        return x->depth;
    if (x->depth <= r->region_depth && !fx_lanes_varies(r->lanes, x))
        return x->depth;
    return (x->depth > r->region_depth ? x->depth : r->region_depth) + 1;
}

/* ---- expressions ---- */

static void op_expr(fx_render *r, fx_text *t, fx_kx *x) {
    fx_text a[3] = {{0}}, raw = {0};
    const char *arg[3] = {"", "", ""};
    for (int j = 0; j < x->n; j++) {
        expr(r, &a[j], x->a[j]);
        arg[j] = a[j].s ? a[j].s : "";
    }
    if (x->kop == FX_K_FN)
        fx_render_call(r, &raw, x->name, x->elem, x->n, arg);
    else {
        const fx_op_info *info = fx_op_get(x->op);
        const char *text = fx_dtype_is_float(x->elem) ? info->float_expr : info->int_expr;
        bool bare = text[0] == 'M' && text[1] == '(';
        if (!bare)
            fx_text_str(&raw, "(");
        fx_render_op(r, &raw, text, text + strlen(text), x->elem, arg);
        if (!bare)
            fx_text_str(&raw, ")");
    }
    if (raw.s && x->type != FX_BOOL)
        fx_render_wrapped(r, t, x->elem, raw.s);
    else if (raw.s)
        fx_text_str(t, raw.s);
    for (int j = 0; j < 3; j++)
        fx_text_free(&a[j]);
    fx_text_free(&raw);
}

static void convert(fx_render *r, fx_text *t, fx_kx *x) {
    fx_text a = {0}, b = {0};
    fx_dtype from = x->elem, to = x->elem2, rf = fx_kir_register(from), rt = x->type;
    const char *const *types = r->dialect->types;
    expr(r, &a, x->a[0]);
    const char *v = a.s ? a.s : "";
    if (to == FX_BOOL) {
        fx_text_fmt(t, "(%s != ", v);
        r->dialect->constant(t, rf, 0, 0);
        fx_text_str(t, ")");
    } else if (fx_dtype_is_float(from) && fx_dtype_is_int(to))
        fx_render_call(r, t, rf == FX_F64 ? "from64" : "from32", to, 1, &v);
    else if (fx_dtype_is_float(to)) {
        if (rf != rt) {
            fx_text_fmt(&b, "%s(%s)", types[rt], v);
            v = b.s ? b.s : "";
        }
        if ((to == FX_F16 || to == FX_BF16) && !(from == FX_BOOL || from == FX_U8 || from == FX_S8))
            fx_render_call(r, t, "narrow", to, 1, &v);
        else
            fx_text_str(t, v);
    } else {
        fx_text_fmt(&b, rf == rt ? "%s" : "%s(%s)", rf == rt ? v : types[rt], v);
        fx_render_wrapped(r, t, to, b.s ? b.s : "");
    }
    fx_text_free(&a);
    fx_text_free(&b);
}

static void operand(fx_render *r, fx_text *t, fx_kx *x, fx_dtype type) {
    if (x->kop == FX_K_INT && x->type != type)
        r->dialect->constant(t, type, x->i, (double)x->i);
    else if (x->type != type) {
        fx_text_fmt(t, "%s(", r->dialect->types[type]);
        expr(r, t, x);
        fx_text_str(t, ")");
    } else
        expr(r, t, x);
}

static void binary(fx_render *r, fx_text *t, fx_kx *x, const char *before, const char *between) {
    fx_dtype type = x->a[0]->type;
    if (x->a[1] && x->a[0]->type != x->a[1]->type)
        type = FX_S64;
    if (x->type == FX_S64)
        type = FX_S64;
    bool narrow = type == FX_S64 && x->type == FX_S32; /* the range says that the result fits */
    if (narrow)
        fx_text_fmt(t, "%s(", r->dialect->types[FX_S32]);
    fx_text_str(t, before);
    operand(r, t, x->a[0], type);
    fx_text_str(t, between);
    if (x->a[1])
        operand(r, t, x->a[1], type);
    else
        r->dialect->constant(t, type, x->i, 0);
    fx_text_str(t, narrow ? "))" : ")");
}

static void bits(fx_render *r, fx_text *t, fx_kx *x) {
    fx_dtype from = x->a[0]->type, to = x->type;
    bool signs = (from == FX_S32 || from == FX_U32 || from == FX_S64 || from == FX_U64) && to != FX_F32 && to != FX_F64;
    const char *f = signs          ? r->dialect->types[to]
                    : to == FX_F32 ? (from == FX_S32 ? "intBitsToFloat" : "uintBitsToFloat")
                    : to == FX_F64 ? (from == FX_S64 ? "int64BitsToDouble" : "uint64BitsToDouble")
                    : to == FX_S32 ? "floatBitsToInt"
                    : to == FX_U32 ? "floatBitsToUint"
                    : to == FX_S64 ? "doubleBitsToInt64"
                                   : "doubleBitsToUint64";
    fx_text_fmt(t, "%s(", f);
    expr(r, t, x->a[0]);
    fx_text_str(t, ")");
}

static void load(fx_render *r, fx_text *t, fx_dtype e, const char *element) {
    fx_text wide = {0};
    fx_dtype reg = fx_kir_register(e);
    if (e == FX_BOOL)
        fx_text_fmt(t, "(uint(%s) != 0u)", element);
    else if (e == FX_F16 || e == FX_BF16) {
        fx_text_fmt(&wide, "uint(%s)", element);
        const char *v = wide.s ? wide.s : "";
        fx_render_call(r, t, "unbits", e, 1, &v);
    } else if (reg != e)
        fx_text_fmt(t, "%s(%s)", r->dialect->types[reg], element);
    else
        fx_text_str(t, element);
    fx_text_free(&wide);
}

static void stored(fx_render *r, fx_text *t, fx_dtype e, fx_kx *x) {
    const char *memory = r->dialect->memory[e];
    fx_text v = {0};
    expr(r, &v, x);
    const char *s = v.s ? v.s : "";
    if (e == FX_BOOL)
        fx_text_fmt(t, r->caps->bool_is_word ? "uint(%s)" : "uint8_t(uint(%s))", s);
    else if (e == FX_F16 || e == FX_BF16) {
        fx_text_fmt(t, "%s(", memory);
        fx_render_call(r, t, "bits", e, 1, &s);
        fx_text_str(t, ")");
    } else if (fx_kir_register(e) != e)
        fx_text_fmt(t, "%s(%s)", memory, s);
    else
        fx_text_str(t, s);
    fx_text_free(&v);
}

static void subgroup(fx_render *r, fx_text *t, fx_kx *x) {
    fx_text a = {0}, b = {0};
    r->subgroup = true;
    r->shuffle |= x->sub >= FX_SUB_SHUFFLE && x->sub <= FX_SUB_SHUFFLE_XOR;
    r->arithmetic |= x->sub >= FX_SUB_ADD;
    expr(r, &a, x->a[0]);
    if (x->a[1])
        expr(r, &b, x->a[1]);
    const char *arg[2] = {a.s ? a.s : "", b.s ? b.s : ""};
    fx_render_expand(r, t, r->dialect->subgroup[x->sub], FX_F32, arg);
    fx_text_free(&a);
    fx_text_free(&b);
}

static void raw(fx_render *r, fx_text *t, fx_kx *x) {
    r->types |= FX_BIT(x->type);
    switch (x->kop) {
    case FX_K_INT:
    case FX_K_FLOAT:
        r->dialect->constant(t, x->type, x->i, x->f);
        break;
    case FX_K_VAR:
        if (x->var->builtin) {
            r->subgroup |= x->var->which == FX_KB_LANE || x->var->which == FX_KB_SUBGROUP;
            bool apart = r->lanes && x->var->which == FX_KB_SUBGROUP && fx_lanes_varies(r->lanes, x);
            fx_text_str(t, apart ? "(l / FX_SUBGROUP)" : r->dialect->builtin[x->var->which]);
        } else
            fx_text_fmt(t, in_array(r, x->var) ? "v%d[l]" : "v%d", x->var->id);
        break;
    case FX_K_ADD:
        if (x->a[1]->kop == FX_K_INT && x->a[1]->i < 0 && x->a[1]->i > INT32_MIN && x->type == FX_S32 &&
            x->a[0]->type == FX_S32) {
            fx_text_str(t, "(");
            expr(r, t, x->a[0]);
            fx_text_fmt(t, " - %lld)", (long long)-x->a[1]->i);
        } else
            binary(r, t, x, "(", " + ");
        break;
    case FX_K_MUL:
        binary(r, t, x, "(", " * ");
        break;
    case FX_K_DIV:
    case FX_K_MOD: { /* never negative: unsigned division is cheaper */
        fx_kx *a = x->a[0];
        bool wide = a->type == FX_S64;
        fx_text_fmt(t, "%s(%s(", r->dialect->types[x->type], r->dialect->unsigned_[wide ? FX_S64 : FX_S32]);
        expr(r, t, a);
        fx_text_fmt(t, ") %c ", x->kop == FX_K_DIV ? '/' : '%');
        r->dialect->constant(t, wide ? FX_U64 : FX_U32, x->i, 0);
        fx_text_str(t, ")");
        break;
    }
    case FX_K_MIN:
    case FX_K_MAX:
        binary(r, t, x, x->kop == FX_K_MIN ? "min(" : "max(", ", ");
        break;
    case FX_K_LT:
        binary(r, t, x, "(", " < ");
        break;
    case FX_K_LE:
        binary(r, t, x, "(", " <= ");
        break;
    case FX_K_EQ:
        binary(r, t, x, "(", " == ");
        break;
    case FX_K_AND:
        binary(r, t, x, "(", " && ");
        break;
    case FX_K_OR:
        binary(r, t, x, "(", " || ");
        break;
    case FX_K_NOT:
        fx_text_str(t, "!");
        expr(r, t, x->a[0]);
        break;
    case FX_K_SELECT:
        fx_text_str(t, "(");
        expr(r, t, x->a[0]);
        fx_text_str(t, " ? ");
        operand(r, t, x->a[1], x->type);
        fx_text_str(t, " : ");
        operand(r, t, x->a[2], x->type);
        fx_text_str(t, ")");
        break;
    case FX_K_CAST:
        fx_text_fmt(t, "%s(", r->dialect->types[x->type]);
        expr(r, t, x->a[0]);
        fx_text_str(t, ")");
        break;
    case FX_K_BITS:
        bits(r, t, x);
        break;
    case FX_K_OP:
    case FX_K_FN:
        op_expr(r, t, x);
        break;
    case FX_K_CONVERT:
        convert(r, t, x);
        break;
    case FX_K_ROUND: {
        fx_text a = {0};
        char e[8], m[8];
        expr(r, &a, x->a[0]);
        snprintf(e, sizeof e, "%d", (int)(x->i >> 8));
        snprintf(m, sizeof m, "%d", (int)(x->i & 255));
        const char *arg[3] = {a.s ? a.s : "", e, m};
        fx_render_call(r, t, "round", x->elem, 3, arg);
        fx_text_free(&a);
        break;
    }
    case FX_K_LOAD: {
        fx_text i = {0}, e = {0};
        expr(r, &i, x->a[0]);
        r->dialect->element(r, &e, (int)x->i, i.s ? i.s : "", 0);
        load(r, t, x->elem, e.s ? e.s : "");
        fx_text_free(&i);
        fx_text_free(&e);
        break;
    }
    case FX_K_SHARED:
        fx_text_fmt(t, "s%d[", (int)x->i);
        expr(r, t, x->a[0]);
        fx_text_str(t, "]");
        break;
    case FX_K_ELEMENT:
        fx_text_fmt(t, "v%d[", x->var->id);
        expr(r, t, x->a[0]);
        fx_text_str(t, in_array(r, x->var) ? "][l]" : "]");
        break;
    case FX_K_SUBGROUP:
        subgroup(r, t, x);
        break;
    }
}

static void expr(fx_render *r, fx_text *t, fx_kx *x) {
    state *s = r->state;
    int d = place(r, x);
    bool name = arithmetic(x) && (x->uses > 1 || d < s->depth);
    bool same_builtin = x->kop == FX_K_VAR && x->var->builtin && x->uses > 1;
    if (!name && !same_builtin) {
        raw(r, t, x);
        return;
    }
    if (s->named[x->id] != s->serial[d]) {
        fx_text v = {0};
        raw(r, &v, x);
        indent(&s->block[d], d);
        fx_text_fmt(&s->block[d], "%s%s x%d = %s;\n", r->dialect->const_, r->dialect->types[x->type], x->id,
                    v.s ? v.s : "");
        fx_text_free(&v);
        s->named[x->id] = s->serial[d];
    }
    fx_text_fmt(t, "x%d", x->id);
}

/* ---- statements ---- */

static void block(fx_render *r, const fx_kblock *b);

/* "const T v = ", or "v[l] = " for what lives across regions. */
static void declare(fx_render *r, fx_text *out, const fx_kvar *v, bool constant) {
    if (in_array(r, v))
        fx_lanes_declare(r, v, 0);
    indent(out, r->state->depth);
    if (in_array(r, v))
        fx_text_fmt(out, "v%d[l] = ", v->id);
    else
        fx_text_fmt(out, "%s%s v%d = ", constant ? r->dialect->const_ : "", r->dialect->types[v->x->type], v->id);
}

/* n consecutive elements one by one. */
static void load_each(fx_render *r, fx_text *out, const fx_kstmt *st) {
    fx_text index = {0}, at = {0}, e = {0};
    expr(r, &index, st->x);
    for (int j = 0; j < st->n; j++) {
        fx_text_clear(&at);
        fx_text_clear(&e);
        fx_text_fmt(&at, "%s * %dL + %d", index.s ? index.s : "", st->n, j);
        r->dialect->element(r, &e, st->arg, at.s ? at.s : "", 0);
        declare(r, out, st->vars[j], true);
        r->types |= FX_BIT(st->vars[j]->x->type);
        load(r, out, st->elem, e.s ? e.s : "");
        fx_text_str(out, ";\n");
    }
    fx_text_free(&index);
    fx_text_free(&at);
    fx_text_free(&e);
}

static void store_each(fx_render *r, fx_text *out, const fx_kstmt *st) {
    fx_text index = {0}, at = {0};
    expr(r, &index, st->y);
    for (int j = 0; j < st->n; j++) {
        fx_text v = {0};
        stored(r, &v, st->elem, st->xs[j]);
        fx_text_clear(&at);
        fx_text_fmt(&at, "%s * %dL + %d", index.s ? index.s : "", st->n, j);
        indent(out, r->state->depth);
        r->dialect->element(r, out, st->arg, at.s ? at.s : "", 0);
        fx_text_fmt(out, " = %s;\n", v.s ? v.s : "");
        fx_text_free(&v);
    }
    fx_text_free(&index);
    fx_text_free(&at);
}

/* Several consecutive elements in one word of 4 or 8 bytes: half `h` (0 or 1) of 32 bits, bit `shift` in it. */
static void load_pack(fx_render *r, fx_text *out, const fx_kstmt *st) {
    const fx_dialect *dl = r->dialect;
    int size = (int)fx_dtype_size(st->elem), wide = size * st->n == 8, d = r->state->depth;
    bool split = wide && !r->caps->int64; /* a word of two halves */
    fx_text v = {0}, half = {0}, part = {0};
    char word[24];
    *(wide ? &r->pack8 : &r->pack4) = true;
    r->types |= wide && !split ? FX_BIT(FX_U64) : 0;
    snprintf(word, sizeof word, "w%d", st->vars[0]->id);
    expr(r, &v, st->x);
    indent(out, d);
    fx_text_fmt(out, "%s%s %s = ", dl->const_, wide ? split ? dl->word8_split : dl->word8 : dl->types[FX_U32], word);
    dl->element(r, out, st->arg, v.s ? v.s : "", wide ? 8 : 4);
    fx_text_str(out, ";\n");
    for (int j = 0; j < st->n; j++) {
        char shift[8];
        const char *arg[2] = {word, shift};
        int h = j * size / 4;
        snprintf(shift, sizeof shift, "%d", j * size % 4 * 8);
        fx_text_clear(&half);
        fx_text_clear(&part);
        fx_render_expand(r, &half, !wide ? "$0" : split ? dl->half_split[h] : dl->half[h], FX_U32, arg);
        arg[0] = half.s ? half.s : "";
        fx_render_expand(r, &part, dl->unpack[st->elem], st->elem, arg);
        declare(r, out, st->vars[j], true);
        r->types |= FX_BIT(st->vars[j]->x->type);
        load(r, out, st->elem, part.s ? part.s : "");
        fx_text_str(out, ";\n");
    }
    fx_text_free(&v);
    fx_text_free(&half);
    fx_text_free(&part);
}

static void store_pack(fx_render *r, fx_text *out, const fx_kstmt *st) {
    const fx_dialect *dl = r->dialect;
    int size = (int)fx_dtype_size(st->elem), wide = size * st->n == 8;
    bool split = wide && !r->caps->int64;
    fx_text index = {0}, v = {0}, half[2] = {{0}, {0}}, e = {0};
    *(wide ? &r->pack8 : &r->pack4) = true;
    r->types |= wide && !split ? FX_BIT(FX_U64) : 0;
    for (int j = 0; j < st->n; j++) {
        char shift[8];
        int h = j * size / 4;
        snprintf(shift, sizeof shift, "%d", j * size % 4 * 8);
        fx_text_clear(&v);
        stored(r, &v, st->elem, st->xs[j]);
        const char *arg[2] = {v.s ? v.s : "", shift};
        if (half[h].n)
            fx_text_str(&half[h], " | ");
        fx_render_expand(r, &half[h], dl->pack[st->elem], st->elem, arg);
    }
    expr(r, &index, st->y);
    dl->element(r, &e, st->arg, index.s ? index.s : "", wide ? 8 : 4);
    indent(out, r->state->depth);
    fx_text_str(out, e.s ? e.s : "");
    fx_text_str(out, " = ");
    const char *arg[2] = {half[0].s ? half[0].s : "", half[1].s ? half[1].s : ""};
    fx_render_expand(r, out, !wide ? "$0" : split ? dl->make8_split : dl->make8, FX_U32, arg);
    fx_text_str(out, ";\n");
    fx_text_free(&index);
    fx_text_free(&v);
    fx_text_free(&half[0]);
    fx_text_free(&half[1]);
    fx_text_free(&e);
}

static void statement(fx_render *r, const fx_kstmt *st) {
    state *s = r->state;
    int d = s->depth;
    fx_text *out = &s->block[d];
    fx_text v = {0}, w = {0}, e = {0};
    const fx_dialect *dl = r->dialect;
    switch (st->kind) {
    case FX_KS_LET:
    case FX_KS_MUT:
        expr(r, &v, st->x);
        declare(r, out, st->var, st->kind == FX_KS_LET);
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_ARRAY: {
        const char *type = dl->types[st->var->x->type];
        if (in_array(r, st->var)) {
            fx_lanes_declare(r, st->var, st->n);
            for (int j = 0; j < st->n; j++) {
                fx_text_clear(&v);
                expr(r, &v, st->xs[j]);
                indent(out, d);
                fx_text_fmt(out, "v%d[%d][l] = ", st->var->id, j);
                fx_text_str(out, v.s ? v.s : "");
                fx_text_str(out, ";\n");
            }
            break;
        }
        for (int j = 0; j < st->n; j++) {
            fx_text_str(&v, j ? ", " : "");
            expr(r, &v, st->xs[j]);
        }
        indent(out, d);
        fx_text_fmt(out, "%s v%d[%d] = ", type, st->var->id, st->n);
        fx_render_expand(r, out, dl->array[0], st->var->x->type, NULL);
        fx_text_str(out, v.s ? v.s : "");
        fx_text_fmt(out, "%s;\n", dl->array[1]);
        break;
    }
    case FX_KS_SET:
        expr(r, &v, st->x);
        indent(out, d);
        fx_text_fmt(out, in_array(r, st->var) ? "v%d[l] = " : "v%d = ", st->var->id);
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_LOADV:
        (dl->no_words ? load_each : load_pack)(r, out, st);
        break;
    case FX_KS_STORE:
        expr(r, &w, st->y);
        dl->element(r, &e, st->arg, w.s ? w.s : "", 0);
        stored(r, &v, st->elem, st->x);
        indent(out, d);
        fx_text_str(out, e.s ? e.s : "");
        fx_text_str(out, " = ");
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_STOREV:
        (dl->no_words ? store_each : store_pack)(r, out, st);
        break;
    case FX_KS_SHARED_STORE:
        expr(r, &w, st->y);
        expr(r, &v, st->x);
        indent(out, d);
        fx_text_fmt(out, "s%d[%s] = ", st->arg, w.s ? w.s : "");
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_FOR: {
        fx_kx *var = st->var->x;
        const char *type = dl->types[var->type];
        r->types |= FX_BIT(var->type);
        operand(r, &v, st->x, var->type);
        operand(r, &w, st->y, st->y->type == FX_S64 ? FX_S64 : var->type);
        block(r, st->body);
        indent(out, d);
        fx_text_fmt(out, "%sfor (%s v%d = %s; v%d < %s; v%d += %lld) {\n",
                    st->unroll == FX_UNROLL_YES  ? dl->unroll
                    : st->unroll == FX_UNROLL_NO ? dl->dont_unroll
                                                 : "",
                    type, st->var->id, v.s ? v.s : "", st->var->id, w.s ? w.s : "", st->var->id, (long long)st->step);
        fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(out, d);
        fx_text_str(out, "}\n");
        break;
    }
    case FX_KS_WHILE:
        expr(r, &v, st->x);
        block(r, st->body);
        indent(out, d);
        fx_text_fmt(out, "while (%s) {\n", v.s ? v.s : "");
        fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(out, d);
        fx_text_str(out, "}\n");
        break;
    case FX_KS_IF: /* names that a branch hoists go before the if: print the branches first */
        expr(r, &v, st->x);
        block(r, st->body);
        if (st->orelse) {
            fx_text_str(&w, s->block[d + 1].n ? s->block[d + 1].s : "");
            block(r, st->orelse);
        }
        indent(out, d);
        if (fx_kx_is_int(st->x, 1) && !st->orelse) /* some compilers never finish on "if (true)" around loops */
            fx_text_str(out, "{\n");
        else
            fx_text_fmt(out, "if (%s) {\n", v.s ? v.s : "");
        fx_text_str(out, st->orelse ? (w.s ? w.s : "") : s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(out, d);
        if (st->orelse) {
            fx_text_str(out, "} else {\n");
            fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
            indent(out, d);
        }
        fx_text_str(out, "}\n");
        break;
    case FX_KS_BARRIER:
        if (dl->barrier) {
            indent(out, d);
            fx_text_fmt(out, "%s;\n", dl->barrier);
        }
        break;
    case FX_KS_SEGMENT:
        expr(r, &v, st->x);
        dl->segment(r, out, v.s ? v.s : "");
        break;
    case FX_KS_COMMENT:
        indent(out, d);
        fx_text_fmt(out, "/* %s */\n", st->text ? st->text : "");
        break;
    }
    fx_text_free(&v);
    fx_text_free(&w);
    fx_text_free(&e);
}

/* A statement of a block outside regions: opens and closes them. */
static void lane_statement(fx_render *r, const fx_kstmt *st, int depth) {
    int open = r->region;
    if (st->region == 0 && open && fx_lanes_early(r->lanes, st)) { /* the same for all: before the region */
        r->region = 0;
        r->state->depth = depth;
        statement(r, st);
        r->region = open;
        r->state->depth = depth + 1;
        return;
    }
    if (open && st->region != open)
        fx_lanes_close(r);
    if (st->kind == FX_KS_LET && st->x->kop == FX_K_SUBGROUP) {
        fx_text x = {0}, lane = {0};
        fx_lanes_open(r, st->region, depth);
        expr(r, &x, st->x->a[0]);
        if (st->x->a[1])
            expr(r, &lane, st->x->a[1]);
        fx_lanes_exchange(r, st, x.s ? x.s : "", lane.s ? lane.s : "");
        fx_text_free(&x);
        fx_text_free(&lane);
        return;
    }
    if (st->region && !r->region)
        fx_lanes_open(r, st->region, depth);
    statement(r, st);
}

/* Prints b's statements into block[depth]; the text stays there until the next block of that depth. */
static void block(fx_render *r, const fx_kblock *b) {
    state *s = r->state;
    if (b->depth + 1 >= MAX_DEPTH) {
        s->status = fx_fail(FX_INTERNAL, "rendering a kernel; blocks nest more than %d deep", MAX_DEPTH);
        return;
    }
    int outer = s->depth;
    s->depth = b->depth + (r->region != 0);
    s->serial[s->depth] = ++s->next_serial;
    fx_text_clear(&s->block[s->depth]);
    for (const fx_kstmt *st = b->first; st; st = st->next)
        if (r->lanes && !(r->region && r->region_depth < b->depth))
            lane_statement(r, st, b->depth);
        else
            statement(r, st);
    if (r->region && r->region_depth == b->depth)
        fx_lanes_close(r);
    s->depth = outer;
}

fx_status fx_dtype_check(const fx_device_caps *c, fx_dtype d, const char *what) {
    const char *missing = NULL;
    if ((d == FX_S8 || d == FX_U8) && !c->storage8)
        missing = "8-bit storage";
    if ((d == FX_S16 || d == FX_U16 || d == FX_F16 || d == FX_BF16) && !c->storage16)
        missing = "16-bit storage";
    if ((d == FX_S64 || d == FX_U64) && !c->int64)
        missing = "64-bit integers";
    if (d == FX_F64 && !c->f64)
        missing = "64-bit floats";
    if (!missing)
        return FX_OK;
    return fx_fail(FX_UNSUPPORTED, "%s on element type %s; the device lacks %s; convert to a type that it has", what,
                   fx_dtype_name(d), missing);
}

fx_status fx_kir_render(const fx_kir *k, const fx_device_caps *caps, const char *name, fx_text *out) {
    state st = {.status = FX_OK};
    fx_render r = {
        .k = k, .dialect = caps->language == FX_LANGUAGE_C ? &fx_dialect_c : &fx_dialect_glsl, .caps = caps, .state = &st};
    fx_lanes lanes = {0};
    if (caps->language != FX_LANGUAGE_GLSL && caps->language != FX_LANGUAGE_C)
        return fx_fail(FX_UNSUPPORTED, "rendering a kernel; expected a device that takes GLSL or C; got language %d",
                       (int)caps->language);
    if (k->failed)
        return fx_fail_oom(0);
    st.named = calloc((size_t)k->n_expr + 1, sizeof *st.named);
    if (!st.named)
        return fx_fail_oom((size_t)k->n_expr * sizeof *st.named);
    for (int b = 0; b < k->n_table; b++)
        for (fx_kx *x = k->table[b]; x; x = x->next)
            x->uses = 0;
    count_block(&r, &k->body);
    for (int j = 0; j < k->n_arg; j++)
        r.elems |= FX_BIT(k->args[j].elem);
    if (r.dialect->lanes) {
        r.lanes = &lanes;
        if (!fx_lanes_init(&lanes, k, caps->subgroup_size ? caps->subgroup_size : 1))
            st.status = lanes.defect ? fx_fail(FX_INTERNAL, "rendering kernel %s; %s", name, lanes.defect) : fx_fail_oom(0);
    }
    if (st.status == FX_OK)
        block(&r, &k->body);
    if (st.status == FX_OK && r.types & (FX_BIT(FX_S64) | FX_BIT(FX_U64)) && !caps->int64)
        st.status = fx_fail(
            FX_UNSUPPORTED,
            "kernel %s; its index range needs 64-bit integers, which the device lacks; use smaller arrays", name);
    if (st.status == FX_OK && r.types & FX_BIT(FX_F64) && !caps->f64)
        st.status = fx_fail(FX_UNSUPPORTED, "kernel %s; the device lacks 64-bit floats; use f32", name);
    bool failed = st.functions.failed || out->failed;
    for (int d = 0; d < MAX_DEPTH; d++)
        failed |= st.block[d].failed;
    if (st.status == FX_OK && !failed)
        r.dialect->kernel(&r, out, st.functions.s ? st.functions.s : "", st.block[0].n ? st.block[0].s : "");
    if (st.status == FX_OK && (failed || out->failed))
        st.status = fx_fail_oom(0);
    for (int d = 0; d < MAX_DEPTH; d++)
        fx_text_free(&st.block[d]);
    fx_text_free(&st.functions);
    fx_lanes_free(&lanes);
    for (int i = 0; i < st.n_defined; i++)
        free((void *)(uintptr_t)st.defined[i]);
    free(st.defined);
    free(st.named);
    return st.status;
}
