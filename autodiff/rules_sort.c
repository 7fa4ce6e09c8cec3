/* rules_sort.c - derivatives of sort and top_k: the tangents go where the values went. */
#include <stdlib.h>

#include "autodiff/rules.h"

/* The comparison with one more pair of (unused) parameters, for the positions. */
static fx_graph *with_positions(const fx_graph *before) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node **p = calloc((size_t)before->n_param + 1, sizeof *p), *result;
    bool ok = g && p;
    for (int i = 0; ok && i < before->n_param; i++)
        p[i] = fx_graph_param(g, &before->params[i]->spec);
    for (int i = 0; ok && i < 2; i++)
        fx_graph_param(g, &FX_SPEC0(FX_S32));
    ok = ok && fx_graph_inline(g, before, p, &result) == FX_OK && fx_graph_finish(g, 1, &result, true) == FX_OK;
    free(p);
    if (ok)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_jvp_sort(fx_jvp_rule *r) {
    fx_graph *g = r->g, *before = with_positions(r->n->region[0]);
    int n = r->n->n_in;
    int64_t dim = FX_GET_INT(r->n, dim);
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1);
    if (!before || !in) {
        fx_rule_error(g, r->n, FX_OUT_OF_MEMORY, "host memory ran out");
        fx_graph_unref(before);
        return;
    }
    fx_spec position = r->n->in[0]->spec;
    position.dtype = FX_S32;
    for (int i = 0; i < n; i++)
        in[i] = r->in[i];
    in[n] = fx_b_iota(g, &position, dim);
    fx_node *sorted = fx_build(g, FX_OP_sort, n + 1, in, 1, &FX_INT(dim, dim), 1, &before);
    fx_node *from = fx_result(sorted, n);
    for (int i = 0; i < n; i++) {
        r->out[i] = fx_result(sorted, i);
        r->dt[i] = fx_ad_take_along(g, r->t[i], from, dim);
    }
    fx_graph_unref(before);
}

void fx_jvp_top_k(fx_jvp_rule *r) {
    r->dt[0] = fx_ad_take_along(r->g, r->t[0], r->out[1], r->n->in[0]->spec.rank - 1);
}

static void not_linear(fx_transpose_rule *r) {
    fx_rule_error(r->g, r->n, FX_INVALID_ARGUMENT,
                  "reverse mode; expected a linear function of the tangents; got an op that isn't; a "
                  "custom rule must be linear in its tangents");
}

void fx_transpose_sort(fx_transpose_rule *r) {
    not_linear(r);
}
void fx_transpose_top_k(fx_transpose_rule *r) {
    not_linear(r);
}
