/* parse.c - text to graph. Made for hostile text: every name, number and shape is checked, nesting is bounded, and
 * what the text asks for goes through fx_build like everything else.
 *
 *   graph  = "graph" "(" [ %name ":" type { "," %name ":" type } ] ")" "{" { node } "return" [ %name { "," %name } ]
 * "}" node   = %name "=" op "(" [ arg { "," arg } ] ")" [ "{" attr { "," attr } "}" ] [ ":" type | ":" "(" types ")" ]
 * [ "@" string ] arg    = %name | graph            operands, then regions attr   = name "=" ( integer | word | type
 * name | "[" values "]" ) type   = name "[" [ size { "," size } ] "]"
 * "#" starts a comment that ends with the line. A constant's value follows its dtype. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "core/graph/node.h"
#include "core/graph/text.h"

enum { MAX_DEPTH = 40 };

typedef struct names { /* of one graph: open addressing, at most half full */
    struct name {
        const char *s;
        size_t n;
        fx_node *node;
    } * slot;
    size_t n, cap;
} names;

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
static struct name *want_name(fx_text *s, names *t, bool define) {
    const char *w;
    if (!fx_text_want(s, '%'))
        return NULL;
    size_t n = fx_text_word(s, &w);
    if (!reserve(t)) {
        fx_text_no_memory(s);
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
    fx_text_fail(s, !n ? "a name after '%'" : define ? "a new name" : "the name of an earlier value");
    return NULL;
}

/* ---- types and attributes ---- */

static bool want_dtype(fx_text *s, fx_dtype *d) {
    char name[FX_TEXT_WORD];
    fx_text_skip(s);
    const char *at = s->p;
    if (!fx_text_want_word(s, name, "an element type"))
        return false;
    if (fx_dtype_parse(name, d) == FX_OK)
        return true;
    s->p = at;
    return fx_text_fail(s, "an element type");
}

static bool want_spec(fx_text *s, fx_spec *spec) {
    memset(spec, 0, sizeof *spec);
    if (!want_dtype(s, &spec->dtype) || !fx_text_want(s, '['))
        return false;
    while (!fx_text_peek(s, ']')) {
        if (spec->rank == FX_MAX_RANK)
            return fx_text_fail(s, "']' (too many dimensions)");
        if ((spec->rank && !fx_text_want(s, ',')) || !fx_text_want_int(s, &spec->dims[spec->rank]))
            return false;
        spec->rank++;
    }
    return fx_text_want(s, ']');
}

typedef struct attrs {
    int n;
    fx_attr a[FX_RULE_ATTRS];
    int64_t list[FX_RULE_ATTRS][FX_MAX_RANK];
    unsigned char *data;
} attrs;

static bool want_data(fx_text *s, attrs *out, fx_attr *a) {
    int dtype = -1;
    size_t cap = 0, used = 0;
    for (int i = 0; i < out->n; i++)
        if (out->a[i].id == FX_ATTR_dtype)
            dtype = (int)out->a[i].u.i;
    if (dtype < 0 || out->data)
        return fx_text_fail(s, "one value, after dtype");
    size_t size = fx_dtype_size((fx_dtype)dtype);
    if (!fx_text_want(s, '['))
        return false;
    for (bool first = true; !fx_text_peek(s, ']'); first = false) {
        if (!first && !fx_text_want(s, ','))
            return false;
        if (used + size > cap) {
            cap = 2 * cap + 64;
            unsigned char *more = cap > INT32_MAX ? NULL : realloc(out->data, cap);
            if (!more)
                return fx_text_no_memory(s);
            out->data = more;
        }
        uint64_t element = 0;
        if (!fx_text_want_element(s, (fx_dtype)dtype, &element))
            return false;
        memcpy(out->data + used, &element, size);
        used += size;
    }
    a->u.data = out->data;
    a->count = (int)used;
    return fx_text_want(s, ']');
}

static bool want_attr(fx_text *s, attrs *out) {
    char name[FX_TEXT_WORD];
    fx_text_skip(s);
    const char *at = s->p;
    if (!fx_text_want_word(s, name, "an attribute"))
        return false;
    fx_attr a = {.id = fx_attr_find(name), .count = 1};
    if (a.id == FX_ATTR_COUNT || out->n == FX_RULE_ATTRS) {
        s->p = at;
        return fx_text_fail(s, out->n == FX_RULE_ATTRS ? "fewer attributes" : "the name of an attribute");
    }
    if (!fx_text_want(s, '='))
        return false;
    fx_text_skip(s);
    at = s->p;
    switch (fx_attr_kind_of(a.id)) {
    case FX_ATTR_INT:
        if (!fx_text_want_int(s, &a.u.i))
            return false;
        break;
    case FX_ATTR_SYMBOL:
        if (!fx_text_want_word(s, name, "a word"))
            return false;
        a.u.i = (int64_t)fx_symbol_find(name);
        if (a.u.i == FX_SYM_COUNT) {
            s->p = at;
            return fx_text_fail(s, "a word of symbols.def");
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
        if (!fx_text_want(s, '['))
            return false;
        for (a.count = 0; !fx_text_peek(s, ']'); a.count++) {
            if (a.count == FX_MAX_RANK)
                return fx_text_fail(s, "']' (too many values)");
            if ((a.count && !fx_text_want(s, ',')) || !fx_text_want_int(s, &out->list[out->n][a.count]))
                return false;
        }
        a.u.list = out->list[out->n];
        if (!fx_text_want(s, ']'))
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

static fx_graph *want_graph(fx_text *s);

typedef struct node_text {
    fx_node **in;
    fx_graph **region;
    int n_in, n_region, cap_in, cap_region;
    attrs attrs;
} node_text;

static bool want_args(fx_text *s, names *t, node_text *n) {
    if (!fx_text_want(s, '('))
        return false;
    while (!fx_text_peek(s, ')')) {
        if ((n->n_in || n->n_region) && !fx_text_want(s, ','))
            return false;
        if (fx_text_peek(s, '%') && !n->n_region) {
            struct name *name = want_name(s, t, false);
            if (!name)
                return false;
            if (n->n_in == n->cap_in) {
                int cap = 2 * n->cap_in + 8;
                fx_node **more = realloc(n->in, sizeof *more * (size_t)cap);
                if (!more)
                    return fx_text_no_memory(s);
                n->in = more;
                n->cap_in = cap;
            }
            n->in[n->n_in++] = name->node;
        } else {
            if (n->n_region == n->cap_region) {
                int cap = 2 * n->cap_region + 4;
                fx_graph **more = realloc(n->region, sizeof(fx_graph *) * (size_t)cap);
                if (!more)
                    return fx_text_no_memory(s);
                n->region = more;
                n->cap_region = cap;
            }
            fx_graph *g = want_graph(s);
            if (!g)
                return false;
            n->region[n->n_region++] = g;
        }
    }
    return fx_text_want(s, ')');
}

/* The type after ':' must be what the op's rule says. */
static bool want_type_of(fx_text *s, const fx_node *n) {
    fx_spec spec;
    bool same = true;
    fx_text_skip(s);
    const char *at = s->p;
    if (n->spec.dtype != FX_TUPLE) {
        if (!want_spec(s, &spec))
            return false;
        same = fx_spec_equal(&spec, &n->spec);
    } else {
        if (!fx_text_want(s, '('))
            return false;
        for (int i = 0; i < n->n_result && same; i++) {
            if ((i && !fx_text_want(s, ',')) || !want_spec(s, &spec))
                return false;
            same = fx_spec_equal(&spec, &n->results[i]);
        }
        if (same && !fx_text_want(s, ')'))
            return false;
    }
    if (same)
        return true;
    s->p = at;
    return fx_text_fail(s, "the type that the operation has");
}

static bool want_scope(fx_text *s, fx_graph *g, const char **scope) {
    if (!fx_text_want(s, '"'))
        return false;
    const char *close = s->p;
    while (close < s->end && *close != '"')
        close += *close == '\\' && close + 1 < s->end ? 2 : 1;
    if (close >= s->end)
        return fx_text_fail(s, "a string that ends");
    char *out = fx_arena_alloc(&g->arena, (size_t)(close - s->p) + 1), *o = out;
    if (!out)
        return fx_text_no_memory(s);
    while (s->p < close) {
        char c = *s->p++;
        if (c == '\\') {
            c = *s->p++;
            if (c == 'x') {
                char hex[3] = {s->p < close ? s->p[0] : '\0', close - s->p > 1 ? s->p[1] : '\0', '\0'}, *end;
                c = (char)strtoul(hex, &end, 16);
                if (strlen(hex) != 2 || *end || hex[0] == '+' || hex[0] == '-' || hex[0] == ' ')
                    return fx_text_fail(s, "two hexadecimal digits");
                s->p += 2;
            }
        }
        if (!c)
            return fx_text_fail(s, "no NUL in a string");
        *o++ = c;
    }
    *scope = out;
    s->p = close + 1;
    return true;
}

static bool build_node(fx_text *s, fx_graph *g, names *t, node_text *n, fx_op op, struct name name, int line) {
    fx_location_set("graph text", line);
    int before = g->n_node;
    fx_node *made = fx_build(g, op, n->n_in, n->in, n->attrs.n, n->attrs.a, n->n_region, n->region);
    fx_location_set(NULL, 0);
    if (!made) {
        s->status = fx_fail(g->status, "%s", g->error);
        return false;
    }
    find(t, name.s, name.n)->node = made;
    if (fx_text_take(s, ':') && !want_type_of(s, made))
        return false;
    const char *scope = NULL;
    if (fx_text_take(s, '@') && !want_scope(s, g, &scope))
        return false;
    for (int i = before; scope && i < g->n_node; i++)
        g->nodes[i]->scope = scope;
    return true;
}

static bool want_node(fx_text *s, fx_graph *g, names *t) {
    char op_name[FX_TEXT_WORD];
    fx_text_skip(s);
    int line = fx_text_line(s);
    node_text n = {0};
    struct name *slot = want_name(s, t, true);
    if (!slot)
        return false;
    struct name name = *slot;
    bool ok = fx_text_want(s, '=');
    fx_text_skip(s);
    const char *at = s->p;
    ok = ok && fx_text_want_word(s, op_name, "an operation");
    fx_op op = ok ? fx_op_find(op_name) : FX_OP_COUNT;
    if (ok && op == FX_OP_COUNT) {
        s->p = at;
        ok = fx_text_fail(s, "the name of an operation");
    }
    ok = ok && want_args(s, t, &n);
    if (ok && fx_text_take(s, '{')) {
        for (bool first = true; ok && !fx_text_peek(s, '}'); first = false)
            ok = (first || fx_text_want(s, ',')) && want_attr(s, &n.attrs);
        ok = ok && fx_text_want(s, '}');
    }
    ok = ok && build_node(s, g, t, &n, op, name, line);
    for (int i = 0; i < n.n_region; i++)
        fx_graph_unref(n.region[i]);
    free(n.in);
    free(n.region);
    free(n.attrs.data);
    return ok;
}

static bool want_params(fx_text *s, fx_graph *g, names *t) {
    if (!fx_text_want(s, '('))
        return false;
    while (!fx_text_peek(s, ')')) {
        fx_spec spec;
        if (g->n_param && !fx_text_want(s, ','))
            return false;
        struct name *name = want_name(s, t, true);
        if (!name || !fx_text_want(s, ':') || !want_spec(s, &spec))
            return false;
        name->node = fx_graph_param(g, &spec);
        if (!name->node) {
            s->status = fx_fail(g->status, "%s", g->error);
            return false;
        }
    }
    return fx_text_want(s, ')');
}

static bool want_results(fx_text *s, fx_graph *g, names *t) {
    fx_node **results = NULL;
    int n = 0, cap = 0;
    bool ok = true;
    while (ok && !fx_text_peek(s, '}')) {
        struct name *name = !n || fx_text_want(s, ',') ? want_name(s, t, false) : NULL;
        if (n == cap) {
            cap = 2 * cap + 8;
            fx_node **more = realloc(results, sizeof *more * (size_t)cap);
            ok = more || fx_text_no_memory(s);
            results = more ? more : results;
        }
        ok = ok && name;
        if (ok)
            results[n++] = name->node;
    }
    ok = ok && fx_text_want(s, '}');
    if (ok)
        s->status = fx_graph_finish(g, n, results, false);
    free(results);
    return ok && s->status == FX_OK;
}

static fx_graph *want_graph(fx_text *s) {
    names t = {0};
    if (s->depth == MAX_DEPTH) {
        fx_text_fail(s, "regions nested less deeply");
        return NULL;
    }
    if (!fx_text_take_word(s, "graph")) {
        fx_text_fail(s, "\"graph\"");
        return NULL;
    }
    fx_graph *g = fx_graph_new(NULL);
    if (!g) {
        fx_text_no_memory(s);
        return NULL;
    }
    s->depth++;
    bool ok = want_params(s, g, &t) && fx_text_want(s, '{');
    while (ok && fx_text_peek(s, '%'))
        ok = want_node(s, g, &t);
    ok = ok && (fx_text_take_word(s, "return") || fx_text_fail(s, "a node or \"return\"")) && want_results(s, g, &t);
    s->depth--;
    free(t.slot);
    if (!ok) {
        fx_graph_unref(g);
        return NULL;
    }
    return g;
}

fx_status fx_graph_parse(const char *text, size_t bytes, fx_graph **out) {
    fx_text s = {.start = text, .p = text, .end = text + bytes, .counted = text, .line = 1};
    const char *file;
    int line;
    fx_location_get(&file, &line);
    fx_graph *g = want_graph(&s);
    fx_location_set(file, line);
    fx_text_skip(&s);
    if (g && s.p < s.end) {
        fx_text_fail(&s, "the end");
        fx_graph_unref(g);
        g = NULL;
    }
    *out = g;
    return s.status;
}
