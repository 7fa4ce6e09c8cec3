/* rules_call.c - derivatives of calls: inlined, rematerialised, or by rules of the user's own. */
#include <stdlib.h>

#include "autodiff/rules.h"

static fx_node **nodes(fx_graph *g, int n) { return FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1); }

/* Inlines the rule (x..., dx...) -> (y..., dy...), which is linear in dx, leaving out what is multiplied by zero. */
static void jvp_custom_jvp(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    const fx_graph *f = r->n->region[1];
    int n = r->n->n_in, m = r->n->n_result;
    fx_node **v = nodes(g, f->n_node), **in = NULL;
    bool *linear = FX_ARENA_ARRAY(&g->arena, bool, f->n_node + 1);
    if (!v || !linear)
        return;
    for (int i = 0; i < 2 * n; i++) {
        v[f->params[i]->id] = i < n ? r->in[i] : r->t[i - n];
        linear[f->params[i]->id] = i >= n;
    }
    for (int i = 0; i < f->n_node && g->status == FX_OK; i++) {
        const fx_node *p = f->nodes[i];
        bool some = false, zero = true;
        if (p->op == FX_OP_parameter)
            continue;
        if (!(in = nodes(g, p->n_in)))
            return;
        for (int j = 0; j < p->n_in; j++) {
            in[j] = v[p->in[j]->id];
            linear[i] |= linear[p->in[j]->id];
            some |= linear[p->in[j]->id];
            zero &= !linear[p->in[j]->id] || !in[j];
        }
        if (some && zero) /* all tangents it reads are zero */
            continue;
        if (some && p->op == FX_OP_add && (!in[0] || !in[1])) {
            v[i] = in[0] ? in[0] : in[1];
            continue;
        }
        for (int j = 0; j < p->n_in; j++)
            if (!in[j])
                in[j] = fx_b_zeros(g, &p->in[j]->spec);
        v[i] = fx_node_rebuild(g, p, in);
    }
    for (int i = 0; i < m; i++) {
        r->out[i] = v[f->results[i]->id];
        if (!r->out[i]) /* a result that is a zero tangent */
            r->out[i] = fx_b_zeros(g, &f->results[i]->spec);
        r->dt[i] = v[f->results[m + i]->id];
    }
}

void fx_jvp_call(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    switch (FX_GET_SYM(n)) {
    case FX_SYM_inline: fx_ad_jvp(g, n->region[0], r->in, r->t, r->linearize, r->out, r->dt); return;
    case FX_SYM_custom_jvp: jvp_custom_jvp(r); return;
    default: fx_rule_error(g, n, FX_UNSUPPORTED, "not yet");
    }
}

void fx_transpose_call(fx_transpose_rule *r) { fx_rule_error(r->g, r->n, FX_UNSUPPORTED, "not yet"); }
