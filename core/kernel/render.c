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

static void indent(fx_render *r, fx_text *t, int depth) {
    (void)r;
    for (int d = 0; d <= depth; d++)
        fx_text_str(t, "    ");
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
            fx_text_str(t, r->dialect->builtin[x->var->which]);
        } else
            fx_text_fmt(t, "v%d", x->var->id);
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
        fx_text_str(t, "]");
        break;
    case FX_K_SUBGROUP:
        subgroup(r, t, x);
        break;
    }
}

static void expr(fx_render *r, fx_text *t, fx_kx *x) {
    state *s = r->state;
    bool name = arithmetic(x) && (x->uses > 1 || x->depth < s->depth);
    bool same_builtin = x->kop == FX_K_VAR && x->var->builtin && x->uses > 1;
    if (!name && !same_builtin) {
        raw(r, t, x);
        return;
    }
    if (s->named[x->id] != s->serial[x->depth]) {
        fx_text v = {0};
        raw(r, &v, x);
        indent(r, &s->block[x->depth], x->depth);
        fx_text_fmt(&s->block[x->depth], "%s%s x%d = %s;\n", r->dialect->const_, r->dialect->types[x->type], x->id,
                    v.s ? v.s : "");
        fx_text_free(&v);
        s->named[x->id] = s->serial[x->depth];
    }
    fx_text_fmt(t, "x%d", x->id);
}

/* ---- statements ---- */

static void block(fx_render *r, const fx_kblock *b);

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
    indent(r, out, d);
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
        indent(r, out, d);
        fx_text_fmt(out, "%s%s v%d = ", dl->const_, dl->types[st->vars[j]->x->type], st->vars[j]->id);
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
    indent(r, out, r->state->depth);
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
        indent(r, out, d);
        fx_text_fmt(out, "%s%s v%d = ", st->kind == FX_KS_LET ? dl->const_ : "", dl->types[st->var->x->type],
                    st->var->id);
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_ARRAY: {
        const char *type = dl->types[st->var->x->type];
        for (int j = 0; j < st->n; j++) {
            fx_text_str(&v, j ? ", " : "");
            expr(r, &v, st->xs[j]);
        }
        indent(r, out, d);
        fx_text_fmt(out, "%s v%d[%d] = ", type, st->var->id, st->n);
        fx_text_fmt(&w, "%s[](", type);
        fx_text_str(out, w.s ? w.s : "");
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ");\n");
        break;
    }
    case FX_KS_SET:
        expr(r, &v, st->x);
        indent(r, out, d);
        fx_text_fmt(out, "v%d = ", st->var->id);
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_LOADV:
        load_pack(r, out, st);
        break;
    case FX_KS_STORE:
        expr(r, &w, st->y);
        dl->element(r, &e, st->arg, w.s ? w.s : "", 0);
        stored(r, &v, st->elem, st->x);
        indent(r, out, d);
        fx_text_str(out, e.s ? e.s : "");
        fx_text_str(out, " = ");
        fx_text_str(out, v.s ? v.s : "");
        fx_text_str(out, ";\n");
        break;
    case FX_KS_STOREV:
        store_pack(r, out, st);
        break;
    case FX_KS_SHARED_STORE:
        expr(r, &w, st->y);
        expr(r, &v, st->x);
        indent(r, out, d);
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
        indent(r, out, d);
        fx_text_fmt(out, "%sfor (%s v%d = %s; v%d < %s; v%d += %lld) {\n",
                    st->unroll == FX_UNROLL_YES  ? dl->unroll
                    : st->unroll == FX_UNROLL_NO ? dl->dont_unroll
                                                 : "",
                    type, st->var->id, v.s ? v.s : "", st->var->id, w.s ? w.s : "", st->var->id, (long long)st->step);
        fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(r, out, d);
        fx_text_str(out, "}\n");
        break;
    }
    case FX_KS_WHILE:
        expr(r, &v, st->x);
        block(r, st->body);
        indent(r, out, d);
        fx_text_fmt(out, "while (%s) {\n", v.s ? v.s : "");
        fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(r, out, d);
        fx_text_str(out, "}\n");
        break;
    case FX_KS_IF: /* names that a branch hoists go before the if: print the branches first */
        expr(r, &v, st->x);
        block(r, st->body);
        if (st->orelse) {
            fx_text_str(&w, s->block[d + 1].n ? s->block[d + 1].s : "");
            block(r, st->orelse);
        }
        indent(r, out, d);
        if (fx_kx_is_int(st->x, 1) && !st->orelse) /* some compilers never finish on "if (true)" around loops */
            fx_text_str(out, "{\n");
        else
            fx_text_fmt(out, "if (%s) {\n", v.s ? v.s : "");
        fx_text_str(out, st->orelse ? (w.s ? w.s : "") : s->block[d + 1].n ? s->block[d + 1].s : "");
        indent(r, out, d);
        if (st->orelse) {
            fx_text_str(out, "} else {\n");
            fx_text_str(out, s->block[d + 1].n ? s->block[d + 1].s : "");
            indent(r, out, d);
        }
        fx_text_str(out, "}\n");
        break;
    case FX_KS_BARRIER:
        indent(r, out, d);
        fx_text_fmt(out, "%s;\n", dl->barrier);
        break;
    case FX_KS_SEGMENT:
        expr(r, &v, st->x);
        dl->segment(r, out, v.s ? v.s : "");
        break;
    case FX_KS_COMMENT:
        indent(r, out, d);
        fx_text_fmt(out, "/* %s */\n", st->text ? st->text : "");
        break;
    }
    fx_text_free(&v);
    fx_text_free(&w);
    fx_text_free(&e);
}

/* Prints b's statements into block[depth]; the text stays there until the next block of that depth. */
static void block(fx_render *r, const fx_kblock *b) {
    state *s = r->state;
    if (b->depth >= MAX_DEPTH) {
        s->status = fx_fail(FX_INTERNAL, "rendering a kernel; blocks nest more than %d deep", MAX_DEPTH);
        return;
    }
    int outer = s->depth;
    s->depth = b->depth;
    s->serial[b->depth] = ++s->next_serial;
    fx_text_clear(&s->block[b->depth]);
    for (const fx_kstmt *st = b->first; st; st = st->next)
        statement(r, st);
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
    fx_render r = {.k = k, .dialect = &fx_dialect_glsl, .caps = caps, .state = &st};
    (void)name;
    if (caps->language != FX_LANGUAGE_GLSL)
        return fx_fail(FX_UNSUPPORTED, "rendering a kernel; expected a device that takes GLSL; got language %d",
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
    for (int i = 0; i < st.n_defined; i++)
        free((void *)(uintptr_t)st.defined[i]);
    free(st.defined);
    free(st.named);
    return st.status;
}
