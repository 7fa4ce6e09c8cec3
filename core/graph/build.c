/* build.c - fx_build, the one way to make a node: resolve operands, check, fold, intern. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/node.h"

enum { SMALL = 32 };

/* Copies attributes sorted by id; false when one is given twice or isn't well formed. */
static bool sort_attrs(fx_rule *r, int n, const fx_attr *given, fx_attr *sorted) {
    if (n > FX_RULE_ATTRS)
        return fx_rule_fail(r, "attributes; expected at most %d; got %d", FX_RULE_ATTRS, n);
    for (int i = 0; i < n; i++) {
        int k = i;
        if ((unsigned)given[i].id >= FX_ATTR_COUNT)
            return fx_rule_fail(r, "attribute %d; expected an id below %d; got %d", i, FX_ATTR_COUNT, (int)given[i].id);
        fx_attr_kind kind = fx_attr_kind_of(given[i].id);
        bool pointer = kind == FX_ATTR_LIST ? given[i].u.list != NULL : kind != FX_ATTR_DATA || given[i].u.data;
        if (given[i].count < 0 || (given[i].count && !pointer))
            return fx_rule_fail(r, "attribute %s; expected values; got none", fx_attr_name(given[i].id));
        for (; k > 0 && sorted[k - 1].id > given[i].id; k--)
            sorted[k] = sorted[k - 1];
        if (k > 0 && sorted[k - 1].id == given[i].id)
            return fx_rule_fail(r, "attribute %s; expected once; got twice", fx_attr_name(given[i].id));
        sorted[k] = given[i];
    }
    r->attr = sorted;
    r->n_attr = n;
    return true;
}

static bool check_regions(fx_rule *r) {
    for (int i = 0; i < r->n_region; i++) {
        const fx_graph *region = r->region[i];
        if (!region || !region->finished)
            return fx_rule_fail(r, "region %d; expected a finished graph; got %s", i, region ? "an open one" : "none");
        if (region->status != FX_OK) {
            fx_graph_error(r->g, region->status, "%s", region->error);
            return false;
        }
    }
    return true;
}

static fx_node *build(fx_rule *r, int n_attr, const fx_attr *attrs) {
    fx_attr sorted[FX_RULE_ATTRS];
    if (!sort_attrs(r, n_attr, attrs, sorted) || !check_regions(r) || !fx_rule_run(r))
        return NULL;
    fx_node *n = fx_fold(r);
    if (n || r->g->status != FX_OK)
        return n;
    return fx_node_intern(r);
}

fx_node *fx_build(fx_graph *g, fx_op op, int n_in, fx_node *const *in, int n_attr, const fx_attr *attrs, int n_region,
                  fx_graph *const *regions) {
    if (!g || g->status != FX_OK)
        return NULL;
    if ((unsigned)op >= FX_OP_COUNT || n_in < 0 || n_attr < 0 || n_region < 0)
        return fx_graph_error(g, FX_INTERNAL, "building a node; expected a known op; got number %d", (int)op);
    if (g->finished)
        return fx_graph_error(g, FX_INVALID_ARGUMENT, "%s: expected an open graph; got a finished one",
                              fx_op_get(op)->name);
    fx_rule r = {.g = g, .op = op, .n_in = n_in, .n_region = n_region, .region = regions};
    fx_node *small[SMALL], *n = NULL;
    fx_node **own = n_in <= SMALL ? small : malloc(sizeof *own * (size_t)n_in);
    if (!own)
        return fx_graph_error(g, FX_OUT_OF_MEMORY, "%s: host memory ran out", fx_op_get(op)->name);
    int i = 0;
    for (; i < n_in; i++) {
        own[i] = fx_graph_capture(g, in[i]);
        if (!own[i])
            break;
    }
    r.in = own;
    if (i < n_in)
        fx_rule_fail(&r, "operand %d; expected a value; got none", i);
    else
        n = build(&r, n_attr, attrs);
    if (own != small)
        free(own);
    return n;
}

fx_node *fx_result(fx_node *n, int i) {
    if (!n)
        return NULL;
    if (n->spec.dtype == FX_TUPLE)
        return fx_build(n->graph, FX_OP_project, 1, &n, 1, &FX_INT(index, i), 0, NULL);
    if (i == 0)
        return n;
    return fx_graph_error(n->graph, FX_INVALID_ARGUMENT, "%s: result %d; expected 0, the only one",
                          fx_op_get(n->op)->name, i);
}

fx_node *fx_node_rebuild(fx_graph *g, const fx_node *n, fx_node *const *in) {
    const char *file, *scope = g->scope;
    int line;
    fx_location_get(&file, &line);
    fx_location_set(n->file, n->line);
    if (n->scope && (!scope || strcmp(scope, n->scope))) {
        const fx_node *last = g->n_node ? g->nodes[g->n_node - 1] : NULL;
        g->scope =
            last && last->scope && !strcmp(last->scope, n->scope) ? last->scope : fx_arena_strdup(&g->arena, n->scope);
    }
    fx_node *m = fx_build(g, n->op, n->n_in, in, n->n_attr, n->attr, n->n_region, n->region);
    g->scope = scope;
    fx_location_set(file, line);
    return m;
}
