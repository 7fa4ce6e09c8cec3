/* parse.c - text to graph. Made for hostile text: every name, number and shape is checked, nesting is bounded, and
 * what the text asks for goes through fx_build like everything else.
 *
 *   graph  = "graph" "(" [ %name ":" type { "," %name ":" type } ] ")" "{" { node } "return" [ %name { "," %name } ] "}"
 *   node   = %name "=" op "(" [ arg { "," arg } ] ")" [ "{" attr { "," attr } "}" ] [ ":" type | ":" "(" types ")" ] [ "@" string ]
 *   arg    = %name | graph            operands, then regions
 *   attr   = name "=" ( integer | word | type name | "[" values "]" )
 *   type   = name "[" [ size { "," size } ] "]"
 * "#" starts a comment that ends with the line. A constant's value follows its dtype. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "core/graph/node.h"

enum { MAX_DEPTH = 40, NAME = 64 };

typedef struct names { /* of one graph: open addressing, at most half full */
    struct name {
        const char *s;
        size_t n;
        fx_node *node;
    } *slot;
    size_t n, cap;
} names;

typedef struct parser {
    const char *start, *p, *end;
    fx_status status;
    int depth;
    const char *counted; /* lines before this one: line - 1 */
    int line;
} parser;

/* ---- words ---- */

static bool fail(parser *s, const char *expected) {
    if (s->status != FX_OK)
        return false;
    int line = 1, column = 1;
    for (const char *q = s->start; q < s->p; q++) {
        column = *q == '\n' ? 1 : column + 1;
        line += *q == '\n';
    }
    char got[24] = "the end";
    size_t n = (size_t)(s->end - s->p) < 16 ? (size_t)(s->end - s->p) : 16;
    if (n) {
        memcpy(got, s->p, n);
        got[n] = '\0';
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)got[i] < 32 || (unsigned char)got[i] > 126)
                got[i] = ' ';
    }
    s->status = fx_fail(FX_BAD_DATA, "graph text, line %d, column %d; expected %s; got \"%s\"", line, column, expected, got);
    return false;
}

static bool no_memory(parser *s) {
    s->status = fx_fail(FX_OUT_OF_MEMORY, "graph text: host memory ran out");
    return false;
}

static void skip(parser *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r' || *s->p == '#'))
        if (*s->p == '#')
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        else
            s->p++;
}

static bool peek(parser *s, char c) {
    skip(s);
    return s->p < s->end && *s->p == c;
}

static bool take(parser *s, char c) {
    if (!peek(s, c))
        return false;
    s->p++;
    return true;
}

static bool want(parser *s, char c) { return take(s, c) || fail(s, (char[]){'\'', c, '\'', '\0'}); }

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word(parser *s, const char **w) {
    skip(s);
    *w = s->p;
    while (s->p < s->end && word_char(*s->p))
        s->p++;
    return (size_t)(s->p - *w);
}

/* A word of at most NAME - 1 characters. */
static bool want_word(parser *s, char out[NAME], const char *expected) {
    const char *w;
    size_t n = word(s, &w);
    if (!n || n >= NAME) {
        s->p = w;
        return fail(s, expected);
    }
    memcpy(out, w, n);
    out[n] = '\0';
    return true;
}

static bool take_word(parser *s, const char *w) {
    const char *at;
    size_t n = word(s, &at);
    if (n == strlen(w) && !memcmp(at, w, n))
        return true;
    s->p = at;
    return false;
}

static bool want_int(parser *s, int64_t *v) {
    char buf[32], *end;
    skip(s);
    size_t n = 0;
    while (s->p + n < s->end && n < sizeof buf - 1 && (word_char(s->p[n]) || (!n && s->p[n] == '-')))
        n++;
    memcpy(buf, s->p, n);
    buf[n] = '\0';
    errno = 0;
    *v = strtoll(buf, &end, 10);
    if (!n || *end || errno || buf[n - 1] == '-')
        return fail(s, "an integer of 64 bits");
    s->p += n;
    return true;
}

/* ---- names ---- */

static struct name *find(const names *t, const char *s, size_t n) {
    size_t k = fx_hash_bytes(0, s, n) & (t->cap - 1);
    while (t->slot[k].s && (t->slot[k].n != n || memcmp(t->slot[k].s, s, n)))
        k = (k + 1) & (t->cap - 1);
    return &t->slot[k];
}

static bool reserve(names *t) {
    if (2 * (t->n + 1) <= t->cap)
        return true;
    names more = {calloc(t->cap ? 2 * t->cap : 64, sizeof *more.slot), t->n, t->cap ? 2 * t->cap : 64};
    if (!more.slot)
        return false;
    for (size_t i = 0; i < t->cap; i++)
        if (t->slot[i].s)
            *find(&more, t->slot[i].s, t->slot[i].n) = t->slot[i];
    free(t->slot);
    *t = more;
    return true;
}

/* The slot of a %name: of a new one when `define`, of a known one otherwise. */
static struct name *want_name(parser *s, names *t, bool define) {
    const char *w;
    if (!want(s, '%'))
        return NULL;
    size_t n = word(s, &w);
    if (!reserve(t)) {
        no_memory(s);
        return NULL;
    }
    struct name *slot = find(t, w, n);
    if (n && (define ? !slot->s : slot->node != NULL)) {
        if (define) {
            *slot = (struct name){w, n, NULL};
            t->n++;
        }
        return slot;
    }
    s->p = w;
    fail(s, !n ? "a name after '%'" : define ? "a new name" : "the name of an earlier value");
    return NULL;
}

/* ---- types and attributes ---- */

static bool want_dtype(parser *s, fx_dtype *d) {
    char name[NAME];
    skip(s);
    const char *at = s->p;
    if (!want_word(s, name, "an element type"))
        return false;
    if (fx_dtype_parse(name, d) == FX_OK)
        return true;
    s->p = at;
    return fail(s, "an element type");
}

static bool want_spec(parser *s, fx_spec *spec) {
    memset(spec, 0, sizeof *spec);
    if (!want_dtype(s, &spec->dtype) || !want(s, '['))
        return false;
    while (!peek(s, ']')) {
        if (spec->rank == FX_MAX_RANK)
            return fail(s, "']' (too many dimensions)");
        if ((spec->rank && !want(s, ',')) || !want_int(s, &spec->dims[spec->rank]))
            return false;
        spec->rank++;
    }
    return want(s, ']');
}

static bool want_element(parser *s, fx_dtype d, void *out) {
    char buf[64], *end = NULL;
    skip(s);
    size_t n = 0;
    while (s->p + n < s->end && n < sizeof buf - 1 && (word_char(s->p[n]) || strchr("+-.", s->p[n])) && s->p[n])
        n++;
    memcpy(buf, s->p, n);
    buf[n] = '\0';
    bool ok = n > 0;
    errno = 0;
    if (d == FX_BOOL) {
        ok = !strcmp(buf, "true") || !strcmp(buf, "false");
        *(unsigned char *)out = buf[0] == 't';
    } else if (fx_dtype_is_float(d) && buf[0] == '0' && (buf[1] == 'x' || buf[1] == 'X')) { /* the bits */
        uint64_t bits = strtoull(buf, &end, 16);
        size_t size = fx_dtype_size(d);
        ok = !*end && !errno && (size == 8 || bits >> 8 * size == 0);
        fx_element_store_bits(d, out, bits);
    } else if (fx_dtype_is_float(d)) {
        for (char *c = buf; *c; c++)
            if (*c == '.')
                *c = localeconv()->decimal_point[0];
        fx_element_store(d, out, strtod(buf, &end));
        ok = ok && !*end;
    } else if (fx_dtype_is_signed(d)) {
        int64_t v = strtoll(buf, &end, 10), high = v >> (8 * fx_dtype_size(d) - 1); /* all bits from the sign on */
        ok = ok && !*end && !errno && (high == 0 || high == -1);
        fx_element_store_bits(d, out, (uint64_t)v);
    } else {
        uint64_t v = strtoull(buf, &end, 10);
        ok = ok && buf[0] != '-' && !*end && !errno && (d == FX_U64 || v >> 8 * fx_dtype_size(d) == 0);
        fx_element_store_bits(d, out, v);
    }
    if (!ok)
        return fail(s, "an element of the constant's type");
    s->p += n;
    return true;
}

typedef struct attrs {
    int n;
    fx_attr a[FX_RULE_ATTRS];
    int64_t list[FX_RULE_ATTRS][FX_MAX_RANK];
    unsigned char *data;
} attrs;

static bool want_data(parser *s, attrs *out, fx_attr *a) {
    int dtype = -1;
    size_t cap = 0, used = 0;
    for (int i = 0; i < out->n; i++)
        if (out->a[i].id == FX_ATTR_dtype)
            dtype = (int)out->a[i].u.i;
    if (dtype < 0 || out->data)
        return fail(s, "one value, after dtype");
    size_t size = fx_dtype_size((fx_dtype)dtype);
    if (!want(s, '['))
        return false;
    for (bool first = true; !peek(s, ']'); first = false) {
        if (!first && !want(s, ','))
            return false;
        if (used + size > cap) {
            cap = 2 * cap + 64;
            unsigned char *more = cap > INT32_MAX ? NULL : realloc(out->data, cap);
            if (!more)
                return no_memory(s);
            out->data = more;
        }
        uint64_t element = 0;
        if (!want_element(s, (fx_dtype)dtype, &element))
            return false;
        memcpy(out->data + used, &element, size);
        used += size;
    }
    a->u.data = out->data;
    a->count = (int)used;
    return want(s, ']');
}

static bool want_attr(parser *s, attrs *out) {
    char name[NAME];
    skip(s);
    const char *at = s->p;
    if (!want_word(s, name, "an attribute"))
        return false;
    fx_attr a = {.id = fx_attr_find(name), .count = 1};
    if (a.id == FX_ATTR_COUNT || out->n == FX_RULE_ATTRS) {
        s->p = at;
        return fail(s, out->n == FX_RULE_ATTRS ? "fewer attributes" : "the name of an attribute");
    }
    if (!want(s, '='))
        return false;
    skip(s);
    at = s->p;
    switch (fx_attr_kind_of(a.id)) {
    case FX_ATTR_INT:
        if (!want_int(s, &a.u.i))
            return false;
        break;
    case FX_ATTR_SYMBOL:
        if (!want_word(s, name, "a word"))
            return false;
        a.u.i = (int64_t)fx_symbol_find(name);
        if (a.u.i == FX_SYM_COUNT) {
            s->p = at;
            return fail(s, "a word of symbols.def");
        }
        break;
    case FX_ATTR_DTYPE: {
        fx_dtype d;
        if (!want_dtype(s, &d))
            return false;
        a.u.i = d;
        break;
    }
    case FX_ATTR_LIST:
        if (!want(s, '['))
            return false;
        for (a.count = 0; !peek(s, ']'); a.count++) {
            if (a.count == FX_MAX_RANK)
                return fail(s, "']' (too many values)");
            if ((a.count && !want(s, ',')) || !want_int(s, &out->list[out->n][a.count]))
                return false;
        }
        a.u.list = out->list[out->n];
        if (!want(s, ']'))
            return false;
        break;
    case FX_ATTR_DATA:
        if (!want_data(s, out, &a))
            return false;
    }
    out->a[out->n++] = a;
    return true;
}

/* ---- nodes and graphs ---- */

static fx_graph *want_graph(parser *s);

/* Line of the text that the parser stands at. */
static int line_of(parser *s) {
    for (; s->counted < s->p; s->counted++)
        s->line += *s->counted == '\n';
    return s->line;
}

typedef struct node_text {
    fx_node **in;
    fx_graph **region;
    int n_in, n_region, cap_in, cap_region;
    attrs attrs;
} node_text;

static bool want_args(parser *s, names *t, node_text *n) {
    if (!want(s, '('))
        return false;
    while (!peek(s, ')')) {
        if ((n->n_in || n->n_region) && !want(s, ','))
            return false;
        if (peek(s, '%') && !n->n_region) {
            struct name *name = want_name(s, t, false);
            if (!name)
                return false;
            if (n->n_in == n->cap_in) {
                int cap = 2 * n->cap_in + 8;
                fx_node **more = realloc(n->in, sizeof *more * (size_t)cap);
                if (!more)
                    return no_memory(s);
                n->in = more;
                n->cap_in = cap;
            }
            n->in[n->n_in++] = name->node;
        } else {
            if (n->n_region == n->cap_region) {
                int cap = 2 * n->cap_region + 4;
                fx_graph **more = realloc(n->region, sizeof(fx_graph *) * (size_t)cap);
                if (!more)
                    return no_memory(s);
                n->region = more;
                n->cap_region = cap;
            }
            fx_graph *g = want_graph(s);
            if (!g)
                return false;
            n->region[n->n_region++] = g;
        }
    }
    return want(s, ')');
}

/* The type after ':' must be what the op's rule says. */
static bool want_type_of(parser *s, const fx_node *n) {
    fx_spec spec;
    bool same = true;
    skip(s);
    const char *at = s->p;
    if (n->spec.dtype != FX_TUPLE) {
        if (!want_spec(s, &spec))
            return false;
        same = fx_spec_equal(&spec, &n->spec);
    } else {
        if (!want(s, '('))
            return false;
        for (int i = 0; i < n->n_result && same; i++) {
            if ((i && !want(s, ',')) || !want_spec(s, &spec))
                return false;
            same = fx_spec_equal(&spec, &n->results[i]);
        }
        if (same && !want(s, ')'))
            return false;
    }
    if (same)
        return true;
    s->p = at;
    return fail(s, "the type that the operation has");
}

static bool want_scope(parser *s, fx_graph *g, const char **scope) {
    if (!want(s, '"'))
        return false;
    const char *close = s->p;
    while (close < s->end && *close != '"')
        close += *close == '\\' && close + 1 < s->end ? 2 : 1;
    if (close >= s->end)
        return fail(s, "a string that ends");
    char *out = fx_arena_alloc(&g->arena, (size_t)(close - s->p) + 1), *o = out;
    if (!out)
        return no_memory(s);
    while (s->p < close) {
        char c = *s->p++;
        if (c == '\\') {
            c = *s->p++;
            if (c == 'x') {
                char hex[3] = {s->p < close ? s->p[0] : '\0', close - s->p > 1 ? s->p[1] : '\0', '\0'}, *end;
                c = (char)strtoul(hex, &end, 16);
                if (strlen(hex) != 2 || *end || hex[0] == '+' || hex[0] == '-' || hex[0] == ' ')
                    return fail(s, "two hexadecimal digits");
                s->p += 2;
            }
        }
        if (!c)
            return fail(s, "no NUL in a string");
        *o++ = c;
    }
    *scope = out;
    s->p = close + 1;
    return true;
}

static bool build_node(parser *s, fx_graph *g, names *t, node_text *n, fx_op op, struct name name, int line) {
    fx_location_set("graph text", line);
    int before = g->n_node;
    fx_node *made = fx_build(g, op, n->n_in, n->in, n->attrs.n, n->attrs.a, n->n_region, n->region);
    fx_location_set(NULL, 0);
    if (!made) {
        s->status = fx_fail(g->status, "%s", g->error);
        return false;
    }
    find(t, name.s, name.n)->node = made;
    if (take(s, ':') && !want_type_of(s, made))
        return false;
    const char *scope = NULL;
    if (take(s, '@') && !want_scope(s, g, &scope))
        return false;
    for (int i = before; scope && i < g->n_node; i++)
        g->nodes[i]->scope = scope;
    return true;
}

static bool want_node(parser *s, fx_graph *g, names *t) {
    char op_name[NAME];
    skip(s);
    int line = line_of(s);
    node_text n = {0};
    struct name *slot = want_name(s, t, true);
    if (!slot)
        return false;
    struct name name = *slot;
    bool ok = want(s, '=');
    skip(s);
    const char *at = s->p;
    ok = ok && want_word(s, op_name, "an operation");
    fx_op op = ok ? fx_op_find(op_name) : FX_OP_COUNT;
    if (ok && op == FX_OP_COUNT) {
        s->p = at;
        ok = fail(s, "the name of an operation");
    }
    ok = ok && want_args(s, t, &n);
    if (ok && take(s, '{')) {
        for (bool first = true; ok && !peek(s, '}'); first = false)
            ok = (first || want(s, ',')) && want_attr(s, &n.attrs);
        ok = ok && want(s, '}');
    }
    ok = ok && build_node(s, g, t, &n, op, name, line);
    for (int i = 0; i < n.n_region; i++)
        fx_graph_unref(n.region[i]);
    free(n.in);
    free(n.region);
    free(n.attrs.data);
    return ok;
}

static bool want_params(parser *s, fx_graph *g, names *t) {
    if (!want(s, '('))
        return false;
    while (!peek(s, ')')) {
        fx_spec spec;
        if (g->n_param && !want(s, ','))
            return false;
        struct name *name = want_name(s, t, true);
        if (!name || !want(s, ':') || !want_spec(s, &spec))
            return false;
        name->node = fx_graph_param(g, &spec);
        if (!name->node) {
            s->status = fx_fail(g->status, "%s", g->error);
            return false;
        }
    }
    return want(s, ')');
}

static bool want_results(parser *s, fx_graph *g, names *t) {
    fx_node **results = NULL;
    int n = 0, cap = 0;
    bool ok = true;
    while (ok && !peek(s, '}')) {
        struct name *name = !n || want(s, ',') ? want_name(s, t, false) : NULL;
        if (n == cap) {
            cap = 2 * cap + 8;
            fx_node **more = realloc(results, sizeof *more * (size_t)cap);
            ok = more || no_memory(s);
            results = more ? more : results;
        }
        ok = ok && name;
        if (ok)
            results[n++] = name->node;
    }
    ok = ok && want(s, '}');
    if (ok)
        s->status = fx_graph_finish(g, n, results, false);
    free(results);
    return ok && s->status == FX_OK;
}

static fx_graph *want_graph(parser *s) {
    names t = {0};
    if (s->depth == MAX_DEPTH) {
        fail(s, "regions nested less deeply");
        return NULL;
    }
    if (!take_word(s, "graph")) {
        fail(s, "\"graph\"");
        return NULL;
    }
    fx_graph *g = fx_graph_new(NULL);
    if (!g) {
        no_memory(s);
        return NULL;
    }
    s->depth++;
    bool ok = want_params(s, g, &t) && want(s, '{');
    while (ok && peek(s, '%'))
        ok = want_node(s, g, &t);
    ok = ok && (take_word(s, "return") || fail(s, "a node or \"return\"")) && want_results(s, g, &t);
    s->depth--;
    free(t.slot);
    if (!ok) {
        fx_graph_unref(g);
        return NULL;
    }
    return g;
}

fx_status fx_graph_parse(const char *text, size_t bytes, fx_graph **out) {
    parser s = {.start = text, .p = text, .end = text + bytes, .counted = text, .line = 1};
    const char *file;
    int line;
    fx_location_get(&file, &line);
    fx_graph *g = want_graph(&s);
    fx_location_set(file, line);
    skip(&s);
    if (g && s.p < s.end) {
        fail(&s, "the end");
        fx_graph_unref(g);
        g = NULL;
    }
    *out = g;
    return s.status;
}
