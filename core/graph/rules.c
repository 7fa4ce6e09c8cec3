/* rules.c - parses the patterns of rules.def, matches them and builds replacements. */
#include "core/graph/rules.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/node.h"

typedef bool (*where_fn)(const fx_match *m);
typedef fx_node *(*build_fn)(const fx_match *m);

#define FX_RULE(name, pattern, where, replacement) bool fx_is_##where(const fx_match *m);
#define FX_RULE_CODE(name, pattern, builder) fx_node *fx_make_##builder(const fx_match *m);
#include "core/graph/rules.def"
#undef FX_RULE
#undef FX_RULE_CODE

static const struct row {
    const char *name, *pattern, *replacement;
    where_fn where;
    build_fn build;
} rows[FX_RULE_COUNT] = {
#define FX_RULE(name, pattern, where, replacement) \
    [FX_RULE_##name] = {#name, pattern, replacement, fx_is_##where, NULL},
#define FX_RULE_CODE(name, pattern, builder) [FX_RULE_##name] = {#name, pattern, NULL, NULL, fx_make_##builder},
#include "core/graph/rules.def"
#undef FX_RULE
#undef FX_RULE_CODE
};

typedef enum term_kind { TERM_VAR, TERM_SPLAT, TERM_NUMBER, TERM_OP } term_kind;

enum { MAX_ARGS = 3, MAX_TERMS = 8 * FX_RULE_COUNT, FUEL = 100 };

typedef struct term {
    term_kind kind;
    int var;
    double number;
    fx_op op;
    int n; /* operands; -1: any */
    int arg[MAX_ARGS];
} term;

struct fx_rules {
    int n_term;
    term terms[MAX_TERMS];
    int pattern[FX_RULE_COUNT], replacement[FX_RULE_COUNT];
    int first[FX_OP_COUNT + 1],
        next[FX_RULE_COUNT]; /* rules by the op of their root; the last list: of any elementwise op */
};

const char *fx_rule_name(fx_rule_id id) {
    return rows[id].name;
}

/* ---- reading ---- */

static int read_term(fx_rules *r, const char **s);

static size_t read_word(const char **s, const char **w) {
    *s += strspn(*s, " ");
    *w = *s;
    *s += strcspn(*s, " ()");
    return (size_t)(*s - *w);
}

static int read_op(fx_rules *r, const char **s, term t) {
    const char *w;
    char name[32];
    size_t n = read_word(s, &w);
    if (n >= sizeof name)
        return -1;
    memcpy(name, w, n);
    name[n] = '\0';
    t.kind = TERM_OP;
    t.op = fx_op_find(name);
    if (t.op == FX_OP_COUNT && strcmp(name, "elementwise"))
        return -1;
    for (;;) {
        *s += strspn(*s, " ");
        if (**s == ')')
            break;
        if (!strncmp(*s, "...", 3)) {
            *s += 3;
            t.n = -1;
            continue;
        }
        if (t.n < 0 || t.n == MAX_ARGS || (t.arg[t.n++] = read_term(r, s)) < 0)
            return -1;
    }
    ++*s;
    r->terms[r->n_term] = t;
    return r->n_term++;
}

/* Index of the term read; -1 when ill-formed. */
static int read_term(fx_rules *r, const char **s) {
    term t = {TERM_VAR, 0, 0, FX_OP_COUNT, 0, {0}};
    *s += strspn(*s, " ");
    if (r->n_term == MAX_TERMS)
        return -1;
    if (**s == '(') {
        ++*s;
        return read_op(r, s, t);
    }
    const char *w;
    size_t n = read_word(s, &w);
    if (n == 1 && *w >= 'a' && *w <= 'z')
        t.var = *w - 'a';
    else if (n == 1 && *w >= 'A' && *w <= 'Z') {
        t.kind = TERM_SPLAT;
        t.var = 26 + *w - 'A';
    } else {
        char *end;
        t.kind = TERM_NUMBER;
        bool yes = n == 4 && !memcmp(w, "true", 4), no = n == 5 && !memcmp(w, "false", 5);
        t.number = yes ? 1 : 0;
        if (!yes && !no) {
            t.number = strtod(w, &end);
            if (!n || end != w + n)
                return -1;
        }
    }
    r->terms[r->n_term] = t;
    return r->n_term++;
}

static int read_all(fx_rules *r, const char *s) {
    int t = read_term(r, &s);
    return *s ? -1 : t;
}

fx_status fx_rules_create(fx_rules **out) {
    fx_rules *r = *out = calloc(1, sizeof *r);
    if (!r)
        return fx_fail_oom(sizeof *r);
    for (int op = 0; op <= FX_OP_COUNT; op++)
        r->first[op] = -1; /* ends a list */
    for (int i = FX_RULE_COUNT - 1; i >= 0; i--) {
        int p = r->pattern[i] = read_all(r, rows[i].pattern);
        int q = r->replacement[i] = rows[i].replacement ? read_all(r, rows[i].replacement) : 0;
        if (p < 0 || q < 0 || r->terms[p].kind != TERM_OP) {
            fx_rules_destroy(r);
            *out = NULL;
            return fx_fail(FX_INTERNAL, "rules.def: row %s can't be read", rows[i].name);
        }
        r->next[i] = r->first[r->terms[p].op];
        r->first[r->terms[p].op] = i;
    }
    return FX_OK;
}

void fx_rules_destroy(fx_rules *r) {
    free(r);
}

/* ---- matching ---- */

static bool commutative(fx_op op) {
    switch (op) {
    case FX_OP_add:
    case FX_OP_mul:
    case FX_OP_max:
    case FX_OP_min:
    case FX_OP_and:
    case FX_OP_or:
    case FX_OP_xor:
    case FX_OP_eq:
    case FX_OP_ne:
        return true;
    default:
        return false;
    }
}

static bool match(const fx_rules *r, int p, fx_node *n, fx_match *m) {
    const term *t = &r->terms[p];
    double v;
    if (t->kind == TERM_NUMBER)
        return fx_node_is_splat(n, t->number);
    if (t->kind != TERM_OP) {
        if (m->var[t->var])
            return m->var[t->var] == n;
        if (t->kind == TERM_SPLAT && !fx_node_splat(n, &v))
            return false;
        m->var[t->var] = n;
        return true;
    }
    bool op = t->op == FX_OP_COUNT ? fx_op_is_elementwise(n->op) : n->op == t->op;
    if (!op || (t->n >= 0 && n->n_in != t->n))
        return false;
    fx_match saved = *m;
    bool ok = true;
    for (int i = 0; ok && i < t->n; i++)
        ok = match(r, t->arg[i], n->in[i], m);
    if (!ok && t->n == 2 && commutative(t->op)) {
        *m = saved;
        ok = match(r, t->arg[0], n->in[1], m) && match(r, t->arg[1], n->in[0], m);
    }
    if (!ok)
        *m = saved;
    return ok;
}

/* ---- replacing ---- */

static fx_node *rewrite(const fx_rules *r, fx_graph *g, fx_node *n, int *fired, int *fuel);

static fx_node *replace(const fx_rules *r, int p, const fx_match *m, int *fired, int *fuel) {
    const term *t = &r->terms[p];
    if (t->kind == TERM_NUMBER)
        return fx_b_const_splat(m->g, &m->root->spec, t->number);
    if (t->kind != TERM_OP)
        return m->var[t->var];
    fx_node *in[MAX_ARGS];
    for (int i = 0; i < t->n; i++)
        in[i] = replace(r, t->arg[i], m, fired, fuel);
    fx_node *n = fx_b_elementwise(m->g, t->op, t->n, in);
    return n ? rewrite(r, m->g, n, fired, fuel) : NULL;
}

/* What the first rule of a list that fires makes of n; NULL when none does. */
static fx_node *fire(const fx_rules *r, int list, fx_graph *g, fx_node *n, int *fired, int *fuel) {
    for (int i = r->first[list]; i >= 0 && *fuel > 0 && g->status == FX_OK; i = r->next[i]) {
        fx_match m = {.g = g, .root = n};
        fx_node *to = NULL;
        if (!match(r, r->pattern[i], n, &m))
            continue;
        if (rows[i].build)
            to = rows[i].build(&m);
        else if (rows[i].where(&m))
            to = replace(r, r->replacement[i], &m, fired, fuel);
        if (!to || to == n)
            continue;
        if (!fx_spec_equal(&to->spec, &n->spec))
            return fx_graph_error(g, FX_INTERNAL, "rule %s; expected %s; got %s", rows[i].name, fx_spec_text(&n->spec),
                                  fx_spec_text(&to->spec));
        if (fired)
            fired[i]++;
        --*fuel;
        return to;
    }
    return NULL;
}

static fx_node *rewrite(const fx_rules *r, fx_graph *g, fx_node *n, int *fired, int *fuel) {
    for (fx_node *to = n; to;) {
        n = to;
        to = fire(r, (int)n->op, g, n, fired, fuel);
        if (!to)
            to = fire(r, FX_OP_COUNT, g, n, fired, fuel);
    }
    return n;
}

fx_node *fx_rules_apply(const fx_rules *r, fx_graph *g, fx_node *n, int *fired) {
    const char *file, *scope = g->scope;
    int line, fuel = FUEL;
    fx_location_get(&file, &line);
    fx_location_set(n->file, n->line);
    g->scope = n->scope; /* a node of g: the text lives there */
    fx_node *to = rewrite(r, g, n, fired, &fuel);
    g->scope = scope;
    fx_location_set(file, line);
    return to;
}
