/* print.c - a graph as text, the exact inverse of parse.c.
 *
 * Nodes are numbered as in nodes[]. Constants: integers and finite floats as decimals that read back to the same bits,
 * infinities as inf, NaNs as the hexadecimal bits. Locations aren't printed; scopes are. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "core/graph/node.h"

typedef struct text {
    char *s;
    size_t n, cap;
    bool failed;
} text;

static void put(text *t, const char *fmt, ...) FX_PRINTF(2, 3);
static void put(text *t, const char *fmt, ...) {
    for (int try = 0; try < 2 && !t->failed; try++) {
        va_list ap;
        va_start(ap, fmt);
        int k = vsnprintf(t->s ? t->s + t->n : NULL, t->cap - t->n, fmt, ap);
        va_end(ap);
        if (k >= 0 && (size_t)k < t->cap - t->n) {
            t->n += (size_t)k;
            return;
        }
        size_t cap = 2 * t->cap + (k > 0 ? (size_t)k : 0) + 256;
        char *s = k < 0 ? NULL : realloc(t->s, cap);
        t->failed = !s;
        if (s) {
            t->s = s;
            t->cap = cap;
        }
    }
}

static void put_float(text *t, fx_dtype d, const unsigned char *element) {
    double v = fx_element_load(d, element);
    if (isnan(v)) {
        put(t, "0x%" PRIx64, fx_element_bits(d, element));
    } else if (isinf(v))
        put(t, v < 0 ? "-inf" : "inf");
    else {
        char s[40];
        snprintf(s, sizeof s, "%.*g", d == FX_F64 ? 17 : 9, v);
        if (d == FX_F64 && strtod(s, NULL) == v) /* the short form when it is exact */
            for (int digits = 1; digits < 17; digits++) {
                char shorter[40];
                snprintf(shorter, sizeof shorter, "%.*g", digits, v);
                if (strtod(shorter, NULL) == v) {
                    memcpy(s, shorter, sizeof s);
                    break;
                }
            }
        for (char *p = s; *p; p++) /* whatever the locale's decimal point is */
            if (!strchr("0123456789+-e", *p))
                *p = '.';
        put(t, "%s", s);
    }
}

static void put_element(text *t, fx_dtype d, const unsigned char *element) {
    if (fx_dtype_is_float(d)) {
        put_float(t, d, element);
        return;
    }
    uint64_t u = fx_element_bits(d, element), sign = (uint64_t)1 << (8 * fx_dtype_size(d) - 1);
    if (d == FX_BOOL)
        put(t, "%s", u ? "true" : "false");
    else if (fx_dtype_is_signed(d))
        put(t, "%" PRId64, (int64_t)((u ^ sign) - sign)); /* the sign bit, extended */
    else
        put(t, "%" PRIu64, u);
}

static void put_attr(text *t, const fx_node *n, const fx_attr *a) {
    put(t, "%s=", fx_attr_name(a->id));
    size_t size = fx_dtype_size(n->spec.dtype);
    switch (fx_attr_kind_of(a->id)) {
    case FX_ATTR_INT:
        put(t, "%" PRId64, a->u.i);
        break;
    case FX_ATTR_SYMBOL:
        put(t, "%s", fx_symbol_name((fx_symbol)a->u.i));
        break;
    case FX_ATTR_DTYPE:
        put(t, "%s", fx_dtype_name((fx_dtype)a->u.i));
        break;
    case FX_ATTR_LIST:
        for (int i = 0; i < a->count; i++)
            put(t, "%s%" PRId64, i ? "," : "[", a->u.list[i]);
        put(t, a->count ? "]" : "[]");
        break;
    case FX_ATTR_DATA:
        for (size_t i = 0; i * size < (size_t)a->count; i++) {
            put(t, i ? "," : "[");
            put_element(t, n->spec.dtype, (const unsigned char *)a->u.data + i * size);
        }
        put(t, "]");
    }
}

static void put_scope(text *t, const char *scope) {
    put(t, " @\"");
    for (const unsigned char *p = (const unsigned char *)scope; *p; p++)
        if (*p == '"' || *p == '\\')
            put(t, "\\%c", *p);
        else if (*p < 32)
            put(t, "\\x%02x", *p);
        else
            put(t, "%c", *p);
    put(t, "\"");
}

static void put_graph(text *t, const fx_graph *g, int indent);

static void put_node(text *t, const fx_node *n, int indent) {
    put(t, "%*s%%%u = %s(", indent, "", n->id, fx_op_get(n->op)->name);
    for (int i = 0; i < n->n_in; i++)
        put(t, "%s%%%u", i ? ", " : "", n->in[i]->id);
    for (int i = 0; i < n->n_region; i++) {
        put(t, i || n->n_in ? ", " : "");
        put_graph(t, n->region[i], indent + 2);
    }
    put(t, ")");
    bool literal = n->op == FX_OP_constant; /* its value comes last: it is read with the type known */
    if (n->n_attr)
        put(t, " {");
    for (int i = 0, first = 1; i < n->n_attr; i++)
        if (!literal || n->attr[i].id != FX_ATTR_value) {
            put(t, first ? "" : ", ");
            put_attr(t, n, &n->attr[i]);
            first = 0;
        }
    if (literal) {
        put(t, ", ");
        put_attr(t, n, fx_attr_get(n, FX_ATTR_value));
    }
    put(t, n->n_attr ? "} : " : " : ");
    if (n->spec.dtype != FX_TUPLE)
        put(t, "%s", fx_spec_text(&n->spec));
    else
        for (int i = 0; i < n->n_result; i++)
            put(t, "%s%s%s", i ? ", " : "(", fx_spec_text(&n->results[i]), i + 1 == n->n_result ? ")" : "");
    if (n->scope)
        put_scope(t, n->scope);
    put(t, "\n");
}

static void put_graph(text *t, const fx_graph *g, int indent) {
    put(t, "graph(");
    for (int i = 0; i < g->n_param; i++)
        put(t, "%s%%%u: %s", i ? ", " : "", g->params[i]->id, fx_spec_text(&g->params[i]->spec));
    put(t, ") {\n");
    for (int i = 0; i < g->n_node; i++)
        if (g->nodes[i]->op != FX_OP_parameter) /* an open graph has them anywhere */
            put_node(t, g->nodes[i], indent + 2);
    put(t, "%*sreturn", indent + 2, "");
    for (int i = 0; i < g->n_result; i++)
        put(t, "%s %%%u", i ? "," : "", g->results[i]->id);
    put(t, "\n%*s}", indent, "");
}

char *fx_graph_print(const fx_graph *g) {
    text t = {0};
    put_graph(&t, g, 0);
    put(&t, "\n");
    if (t.failed) {
        free(t.s);
        return NULL;
    }
    return t.s;
}
