/* render_functions.c - functions by name in a kernel's text: rows of the dialect, elementary functions of mathlib, and
 * the scalar expressions of ops.def that call them. Each function is defined once a kernel, after what it needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/kernel/mathlib.h"
#include "core/kernel/render.h"

static int width_of(fx_dtype e) {
    return (int)fx_dtype_size(e) * 8;
}

static void limits(fx_render *r, fx_text *t, fx_dtype e, char which) {
    int w = width_of(e);
    fx_dtype reg = fx_kir_register(e);
    bool sign = fx_dtype_is_signed(e);
    if (which == 'M') { /* of the unsigned partner */
        fx_dtype u = reg == FX_S32 ? FX_U32 : reg == FX_S64 ? FX_U64 : reg;
        r->dialect->constant(t, u, w == 64 ? -1 : (int64_t)(UINT64_MAX >> (64 - w)), 0);
    } else if (which == 'I')
        r->dialect->constant(t, reg, sign ? (w == 64 ? INT64_MIN : -((int64_t)1 << (w - 1))) : 0, 0);
    else if (w == 64)
        r->dialect->constant(t, reg, sign ? INT64_MAX : -1, 0);
    else
        r->dialect->constant(t, reg, sign ? ((int64_t)1 << (w - 1)) - 1 : ((int64_t)1 << w) - 1, 0);
}

void fx_render_expand(fx_render *r, fx_text *t, const char *p, fx_dtype e, const char *const *arg) {
    fx_dtype reg = e < FX_DTYPE_COUNT ? fx_kir_register(e) : FX_F32;
    for (; *p; p++) {
        if (*p != '$') {
            fx_text_put(t, p, 1);
            continue;
        }
        char c = *++p;
        if (c >= '0' && c <= '9')
            fx_text_str(t, arg[c - '0']);
        else if (c == 'T')
            fx_text_str(t, r->dialect->types[reg]);
        else if (c == 'U')
            fx_text_str(t, r->dialect->unsigned_[reg]);
        else if (c == 'S')
            fx_text_str(t, fx_dtype_name(e));
        else if (c == 'W')
            fx_text_fmt(t, "%d", width_of(e));
        else
            limits(r, t, e, c);
    }
}

static bool define_once(fx_render *r, const char *symbol) {
    state *s = r->state;
    for (int i = 0; i < s->n_defined; i++)
        if (!strcmp(s->defined[i], symbol))
            return false;
    if (s->n_defined == s->cap_defined) {
        int cap = s->cap_defined ? 2 * s->cap_defined : 16;
        const char **p = realloc(s->defined, sizeof *p * (size_t)cap);
        if (!p) {
            s->status = FX_OUT_OF_MEMORY;
            return false;
        }
        s->defined = p;
        s->cap_defined = cap;
    }
    char *copy = strdup(symbol);
    if (!copy) {
        s->status = FX_OUT_OF_MEMORY;
        return false;
    }
    s->defined[s->n_defined++] = copy;
    return true;
}

/* Several kernels may share a translation unit: their functions are defined once. */
static void guard(fx_render *r, const char *symbol, bool begin) {
    if (r->dialect->language != FX_LANGUAGE_GLSL)
        fx_text_fmt(&r->state->functions, begin ? "#ifndef D_%s\n#define D_%s\n" : "#endif\n", symbol, symbol);
}

static void define_math(fx_render *r, const fx_math_fn *f) {
    r->math = true;
    if (!define_once(r, f->symbol))
        return;
    for (int i = 0; f->needs[i]; i++) {
        const fx_math_fn *n = fx_math_by_symbol(f->needs[i]);
        if (n)
            define_math(r, n);
    }
    bool glsl = r->dialect->language == FX_LANGUAGE_GLSL;
    guard(r, f->symbol, true);
    fx_text_fmt(&r->state->functions, "%s%s\n", glsl ? "" : "static inline ", glsl ? f->glsl : f->text);
    guard(r, f->symbol, false);
}

static const fx_dialect_fn *find_row(const fx_render *r, const char *name, fx_dtype e) {
    for (int j = 0; j < 2; j++)
        for (const fx_dialect_fn *f = j ? r->dialect->fns : r->dialect->own; f && f->name; f++)
            if (f->types & FX_BIT(e) && !strcmp(f->name, name))
                return f;
    return NULL;
}

static void define_row(fx_render *r, const fx_dialect_fn *f, fx_dtype e) {
    char symbol[64];
    snprintf(symbol, sizeof symbol, "fx_%s_%s", f->name, fx_dtype_name(e));
    if (!define_once(r, symbol))
        return;
    for (const char *p = f->needs; p && *p;) {
        char name[32];
        size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        const fx_dialect_fn *need = find_row(r, name, e);
        if (need && need->text)
            define_row(r, need, e);
        p += n + (p[n] == ' ');
    }
    guard(r, symbol, true);
    fx_render_expand(r, &r->state->functions, r->dialect->language == FX_LANGUAGE_GLSL ? "" : "static inline ", e, NULL);
    fx_render_expand(r, &r->state->functions, f->text, e, NULL);
    fx_text_str(&r->state->functions, "\n");
    guard(r, symbol, false);
}

void fx_render_call(fx_render *r, fx_text *t, const char *name, fx_dtype e, int n, const char *const *arg) {
    fx_dtype reg = fx_kir_register(e);
    const fx_math_fn *m = reg == FX_F32 || reg == FX_F64 ? fx_math_find(name, reg) : NULL;
    const fx_dialect_fn *f = find_row(r, name, e);
    if (f && !(m && r->dialect->math_first)) {
        if (f->pattern) {
            fx_render_expand(r, t, f->pattern, e, arg);
            return;
        }
        define_row(r, f, e);
        fx_text_fmt(t, "fx_%s_%s(", name, fx_dtype_name(e));
    } else if (m) {
        define_math(r, m);
        fx_text_fmt(t, "%s(", m->symbol);
    } else { /* a row of ops.def without a text in this language: a defect */
        r->state->status = fx_fail(FX_INTERNAL, "rendering a kernel; no text for %s of %s", name, fx_dtype_name(e));
        return;
    }
    for (int i = 0; i < n; i++)
        fx_text_fmt(t, "%s%s", i ? ", " : "", arg[i]);
    fx_text_str(t, ")");
}

void fx_render_op(fx_render *r, fx_text *t, const char *p, const char *end, fx_dtype e, const char *const *arg) {
    while (p < end) {
        bool word = p[0] == '_' || (p[0] >= 'a' && p[0] <= 'z') || (p[0] >= 'A' && p[0] <= 'Z');
        if (!word) {
            fx_text_put(t, p++, 1);
            continue;
        }
        const char *q = p;
        while (q < end &&
               (*q == '_' || (*q >= 'a' && *q <= 'z') || (*q >= 'A' && *q <= 'Z') || (*q >= '0' && *q <= '9')))
            q++;
        if (q - p == 1 && *p >= 'x' && *p <= 'z') {
            fx_text_str(t, arg[*p - 'x']);
            p = q;
            continue;
        }
        if (q - p != 1 || (*p != 'M' && *p != 'T') || q == end || *q != '(') {
            fx_text_put(t, p, (size_t)(q - p));
            p = q;
            continue;
        }
        /* split the parenthesised list at its top-level commas */
        const char *from[5], *to[5], *s = q + 1;
        int n = 0, depth = 0;
        from[0] = s;
        for (;; s++) {
            if (*s == '(')
                depth++;
            if ((*s == ',' && !depth) || (*s == ')' && !depth)) {
                to[n++] = s;
                if (*s == ')' || n == 5)
                    break;
                from[n] = s[1] == ' ' ? s + 2 : s + 1;
            }
            if (*s == ')')
                depth--;
        }
        if (*p == 'T') {
            char number[64];
            snprintf(number, sizeof number, "%.*s", (int)(to[0] - from[0]), from[0]);
            r->dialect->constant(t, fx_kir_register(e), (int64_t)strtod(number, NULL), strtod(number, NULL));
        } else {
            fx_text args[4] = {{0}};
            const char *strings[4] = {"", "", "", ""};
            char name[32];
            snprintf(name, sizeof name, "%.*s", (int)(to[0] - from[0]), from[0]);
            for (int i = 1; i < n && i <= 4; i++) {
                fx_render_op(r, &args[i - 1], from[i], to[i], e, arg);
                strings[i - 1] = args[i - 1].s ? args[i - 1].s : "";
            }
            fx_render_call(r, t, name, e, n - 1, strings);
            for (int i = 0; i < 4; i++)
                fx_text_free(&args[i]);
        }
        p = s + 1;
    }
}

void fx_render_wrapped(fx_render *r, fx_text *t, fx_dtype e, const char *text) {
    const fx_dialect_fn *f = find_row(r, "wrap", e);
    if (f)
        fx_render_expand(r, t, f->pattern, e, &text);
    else
        fx_text_str(t, text);
}
