/* equal.c - are two finished graphs the same function, structurally? Dead nodes, locations and scopes don't count. */
#include <stdlib.h>

#include "core/graph/node.h"

static bool same_node(const fx_node *a, const fx_node *b) {
    if (a->hash != b->hash || a->op != b->op || a->n_in != b->n_in || a->n_attr != b->n_attr ||
        a->n_region != b->n_region || !fx_spec_equal(&a->spec, &b->spec))
        return false;
    for (int i = 0; i < a->n_attr; i++)
        if (!fx_attr_equal(&a->attr[i], &b->attr[i]))
            return false;
    for (int i = 0; i < a->n_region; i++)
        if (!fx_graph_equal(a->region[i], b->region[i]))
            return false;
    return true;
}

bool fx_graph_equal(const fx_graph *a, const fx_graph *b) {
    if (a == b)
        return true;
    if (a->hash != b->hash || a->n_param != b->n_param || a->n_result != b->n_result)
        return false;
    for (int i = 0; i < a->n_param; i++)
        if (!fx_spec_equal(&a->params[i]->spec, &b->params[i]->spec))
            return false;
    /* twin[id of a's node] is b's; a worklist pairs operands, so that depth doesn't matter. */
    const fx_node **twin = calloc((size_t)a->n_node + 1, sizeof *twin);
    const fx_node **todo = malloc(((size_t)a->n_node + 1) * sizeof *todo);
    bool equal = twin && todo;
    size_t n = 0;
    for (int i = 0; equal && i < a->n_result; i++) {
        const fx_node *x = a->results[i], *y = b->results[i];
        if (twin[x->id])
            equal = twin[x->id] == y;
        else {
            twin[x->id] = y;
            todo[n++] = x;
        }
    }
    while (equal && n) {
        const fx_node *x = todo[--n], *y = twin[x->id];
        equal = same_node(x, y);
        for (int i = 0; equal && i < x->n_in; i++) {
            const fx_node *u = x->in[i], *v = y->in[i];
            if (twin[u->id])
                equal = twin[u->id] == v;
            else {
                twin[u->id] = v;
                todo[n++] = u;
            }
        }
    }
    free(twin);
    free(todo);
    return equal;
}
