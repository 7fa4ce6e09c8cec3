/* inline.c - copies the live nodes of one graph into another, parameters replaced by arguments. */
#include <stdlib.h>

#include "core/base/error.h"
#include "core/graph/node.h"

static fx_status copy_nodes(fx_graph *g, const fx_graph *callee, fx_node *const *args, fx_node **map,
                            unsigned char *live) {
    fx_node **in = NULL;
    int cap = 0;
    for (int i = 0; i < callee->n_result; i++)
        live[callee->results[i]->id] = 1;
    for (int i = callee->n_node - 1; i >= 0; i--)
        for (int j = 0; live[i] && j < callee->nodes[i]->n_in; j++)
            live[callee->nodes[i]->in[j]->id] = 1;
    for (int i = 0; i < callee->n_param; i++)
        map[callee->params[i]->id] = args[i];
    for (int i = 0; i < callee->n_node && g->status == FX_OK; i++) {
        const fx_node *n = callee->nodes[i];
        if (!live[i] || n->op == FX_OP_parameter)
            continue;
        if (n->n_in > cap) {
            fx_node **more = realloc(in, sizeof *in * (size_t)n->n_in);
            if (!more) {
                fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
                break;
            }
            in = more;
            cap = n->n_in;
        }
        for (int j = 0; j < n->n_in; j++)
            in[j] = map[n->in[j]->id];
        map[i] = fx_node_rebuild(g, n, in);
    }
    free(in);
    return g->status;
}

fx_status fx_graph_inline(fx_graph *g, const fx_graph *callee, fx_node *const *args, fx_node **results) {
    if (g->status != FX_OK)
        return fx_fail(g->status, "%s", g->error);
    if (!callee->finished || callee->status != FX_OK) {
        fx_graph_error(g, FX_INVALID_ARGUMENT, "inlining a graph; expected a finished one without errors");
        return g->status;
    }
    for (int i = 0; i < callee->n_param; i++) {
        const fx_spec *want = &callee->params[i]->spec;
        if (!args[i] || !fx_spec_equal(want, &args[i]->spec)) {
            fx_graph_error(g, FX_INVALID_ARGUMENT, "calling a function: argument %d; expected %s; got %s", i,
                           fx_spec_text(want), args[i] ? fx_spec_text(&args[i]->spec) : "none");
            return g->status;
        }
    }
    fx_node **map = calloc((size_t)callee->n_node + 1, sizeof *map);
    unsigned char *live = calloc((size_t)callee->n_node + 1, 1);
    if (map && live)
        copy_nodes(g, callee, args, map, live);
    else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    for (int i = 0; i < callee->n_result; i++)
        results[i] = g->status == FX_OK ? map[callee->results[i]->id] : NULL;
    free(map);
    free(live);
    return g->status == FX_OK ? FX_OK : fx_fail(g->status, "%s", g->error);
}
