/* prepare.c - inlines calls and simplifies: what fusion gets has structural ops, elementwise ops and control flow. */
#include "core/compile/prepare.h"

#include <stdlib.h>

#include "core/base/env.h"
#include "core/base/error.h"

/* Rebuilds g in `out` with args for parameters; results[i] is the counterpart of g->results[i]. */
static fx_status expand(fx_graph *out, const fx_graph *g, fx_node *const *args, fx_node **results) {
    fx_node **map = calloc((size_t)g->n_node + 1, sizeof *map), ***tuple = calloc((size_t)g->n_node + 1, sizeof *tuple);
    fx_status st = map && tuple ? FX_OK : fx_fail_oom((size_t)g->n_node * sizeof *map);
    for (int i = 0; i < g->n_node && st == FX_OK; i++) {
        const fx_node *n = g->nodes[i];
        fx_node **in = calloc((size_t)n->n_in + 1, sizeof *in);
        if (!in) {
            st = fx_fail_oom(sizeof *in);
            break;
        }
        for (int j = 0; j < n->n_in; j++)
            in[j] = map[n->in[j]->id];
        if (n->op == FX_OP_parameter)
            map[i] = args[FX_GET_INT(n, index)];
        else if (n->op == FX_OP_call) {
            tuple[i] = calloc((size_t)n->n_result + 1, sizeof *tuple[i]);
            st = tuple[i] ? expand(out, n->region[0], in, tuple[i]) : fx_fail_oom(sizeof *tuple[i]);
        } else if (n->op == FX_OP_project && n->in[0]->op == FX_OP_call)
            map[i] = tuple[n->in[0]->id][FX_GET_INT(n, index)];
        else {
            map[i] = fx_node_rebuild(out, n, in);
            if (!map[i])
                st = fx_graph_finish(out, 0, NULL, false); /* reports the graph's own error */
            if (!map[i] && st == FX_OK)
                st = fx_fail(FX_INTERNAL, "compiling; node %%%u can't be rebuilt", n->id);
        }
        free(in);
    }
    for (int i = 0; i < g->n_result && st == FX_OK; i++)
        results[i] = map[g->results[i]->id];
    for (int i = 0; i < g->n_node && tuple; i++)
        free(tuple[i]);
    free(tuple);
    free(map);
    return st;
}

/* With FORNAX_DEBUG=1, every invariant of a graph after a pass. */
static fx_status check(const fx_graph *g) { return fx_env_flag(FX_ENV_debug) ? fx_graph_verify(g) : FX_OK; }

fx_status fx_prepare(const fx_graph *g, fx_graph **out) {
    fx_graph *flat = fx_graph_new(NULL);
    fx_node **args = calloc((size_t)g->n_param + 1, sizeof *args),
            **results = calloc((size_t)g->n_result + 1, sizeof *results);
    fx_status st = flat && args && results ? FX_OK : fx_fail_oom(sizeof *flat);
    for (int i = 0; i < g->n_param && st == FX_OK; i++)
        args[i] = fx_graph_param(flat, &g->params[i]->spec);
    if (st == FX_OK)
        st = expand(flat, g, args, results);
    if (st == FX_OK)
        st = fx_graph_finish(flat, g->n_result, results, true);
    if (st == FX_OK)
        st = check(flat);
    free(args);
    free(results);
    if (st != FX_OK) {
        fx_graph_unref(flat);
        return st;
    }
    st = fx_graph_simplify(flat, out);
    if (st == FX_OK && (st = check(*out)) != FX_OK) {
        fx_graph_unref(*out);
        *out = NULL;
    }
    fx_graph_unref(flat);
    return st;
}
