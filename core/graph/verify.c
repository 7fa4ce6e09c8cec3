/* verify.c - does a finished graph hold every invariant of graph.h? For use between passes and in tests. */
#include <stdlib.h>

#include "core/base/error.h"
#include "core/graph/node.h"

static fx_status defect(const fx_node *n, const char *what) {
    return fx_fail(FX_INTERNAL, "graph, node %%%u (%s): %s", n->id, fx_op_get(n->op)->name, what);
}

static fx_status verify_param(const fx_graph *g, const fx_node *n, uint32_t i) {
    if (n->op != FX_OP_parameter || g->params[i] != n || n->n_in || n->n_region || n->n_attr != 1)
        return defect(n, "parameters come first, in order");
    if (n->attr[0].id != FX_ATTR_index || n->attr[0].u.i != (int64_t)i)
        return defect(n, "a parameter's index is its place");
    if ((unsigned)n->spec.dtype >= FX_DTYPE_COUNT || !fx_spec_valid(&n->spec))
        return defect(n, "its type is out of range");
    return FX_OK;
}

/* Runs the shape rule again, with `scratch` for its errors and memory, and compares. */
static fx_status verify_rule(fx_graph *scratch, const fx_node *n) {
    fx_rule r = {.g = scratch,
                 .op = n->op,
                 .n_in = n->n_in,
                 .n_attr = n->n_attr,
                 .n_region = n->n_region,
                 .in = n->in,
                 .attr = n->attr,
                 .region = n->region};
    if (!fx_rule_run(&r)) {
        fx_fail(FX_INTERNAL, "%s", scratch->error);
        return fx_fail_context(FX_INTERNAL, "graph, node %%%u", n->id);
    }
    if (!fx_spec_equal(&r.spec, &n->spec) || (n->spec.dtype == FX_TUPLE && r.n_result != n->n_result))
        return defect(n, "its type isn't what its operands give");
    for (int i = 0; n->spec.dtype == FX_TUPLE && i < n->n_result; i++)
        if (!fx_spec_equal(&r.results[i], &n->results[i]))
            return defect(n, "a result's type isn't what its operands give");
    if (r.n_out != n->n_attr)
        return defect(n, "its attributes aren't canonical");
    for (int i = 0; i < r.n_out; i++)
        if (!fx_attr_equal(&r.out[i], &n->attr[i]))
            return defect(n, "its attributes aren't canonical");
    if (fx_rule_hash(&r) != n->hash)
        return defect(n, "its hash is stale");
    return FX_OK;
}

static int by_hash(const void *a, const void *b) {
    const fx_node *x = *(fx_node *const *)a, *y = *(fx_node *const *)b;
    return x->hash != y->hash ? (x->hash < y->hash ? -1 : 1) : x->id < y->id ? -1 : x->id > y->id;
}

/* Equal nodes are one: only neighbours of equal hash need a look. */
static fx_status verify_unique(const fx_graph *g) {
    fx_node **order = malloc(sizeof *order * ((size_t)g->n_node + 1));
    fx_status status = FX_OK;
    if (!order)
        return fx_fail_oom(sizeof *order * (size_t)g->n_node);
    for (int i = 0; i < g->n_node; i++)
        order[i] = g->nodes[i];
    qsort(order, (size_t)g->n_node, sizeof *order, by_hash);
    for (int i = 1; i < g->n_node && status == FX_OK; i++) {
        const fx_node *a = order[i - 1], *b = order[i];
        bool same = a->hash == b->hash && a->op == b->op && a->n_in == b->n_in;
        for (int j = 0; same && j < a->n_in; j++)
            same = a->in[j] == b->in[j];
        if (same) /* attributes and regions are in the hash */
            status = defect(b, "it equals an earlier node");
    }
    free(order);
    return status;
}

fx_status fx_graph_verify(const fx_graph *g) {
    if (!g->finished || g->status != FX_OK || __atomic_load_n(&g->refs, __ATOMIC_RELAXED) < 1 || g->parent)
        return fx_fail(FX_INTERNAL, "graph: it isn't finished");
    fx_graph *scratch = fx_graph_new(NULL);
    fx_status status = scratch ? FX_OK : fx_fail_oom(sizeof *scratch);
    for (int i = 0; i < g->n_node && status == FX_OK; i++) {
        const fx_node *n = g->nodes[i];
        if (!n || n->graph != g || n->id != (uint32_t)i)
            status = fx_fail(FX_INTERNAL, "graph: node %d isn't in its place", i);
        else if ((unsigned)n->op >= FX_OP_COUNT)
            status = fx_fail(FX_INTERNAL, "graph: node %d has an unknown op", i);
        for (int j = 0; status == FX_OK && j < n->n_in; j++)
            if (!n->in[j] || n->in[j]->graph != g || n->in[j]->id >= n->id)
                status = defect(n, "an operand isn't an earlier node");
        for (int j = 0; status == FX_OK && j < n->n_region; j++)
            status = fx_graph_verify(n->region[j]);
        if (status == FX_OK)
            status = i < g->n_param ? verify_param(g, n, (uint32_t)i) : verify_rule(scratch, n);
    }
    for (int i = 0; i < g->n_result && status == FX_OK; i++)
        if (!g->results[i] || g->results[i]->graph != g || g->results[i]->spec.dtype == FX_TUPLE)
            status = fx_fail(FX_INTERNAL, "graph: result %d isn't an array of it", i);
    if (status == FX_OK)
        status = verify_unique(g);
    fx_graph_unref(scratch);
    return status;
}
