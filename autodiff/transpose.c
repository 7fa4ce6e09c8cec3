/* transpose.c - reverse mode's second half: what a graph does linearly, run backwards.
 *
 * Nodes that depend on a linear parameter are linear in it; the others are copied. From the last linear node to the
 * first, each node's rule turns the cotangents of its results into cotangents of its linear operands; a
 * value's cotangents from all of its uses are summed before its own turn comes. */
#include <stdlib.h>

#include "autodiff/rules.h"
#include "core/base/error.h"

#define FX_UNARY(name, ...) [FX_OP_##name] = fx_transpose_elementwise,
#define FX_BINARY(name, ...) [FX_OP_##name] = fx_transpose_elementwise,
#define FX_TERNARY(name, ...) [FX_OP_##name] = fx_transpose_elementwise,
#define RULE_DIFF(name) [FX_OP_##name] = fx_transpose_##name,
#define RULE_NODIFF(name)
#define FX_STRUCTURAL(name, in, region, view, diff, doc) RULE_##diff(name)
static void (*const rules[FX_OP_COUNT])(fx_transpose_rule *) = {
#include "core/ops/ops.def"
};
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
#undef RULE_DIFF
#undef RULE_NODIFF

typedef struct state {
    fx_graph *g;
    int *slot;    /* first slot of each node's cotangents */
    fx_node **ct; /* by slot */
    fx_node **v;  /* by id: nonlinear nodes in g */
    bool *linear; /* by id */
    fx_node **in, **out;
    bool *in_linear;
} state;

static void forward(state *s, const fx_node *n) {
    bool linear = false;
    for (int i = 0; i < n->n_in; i++)
        linear |= s->linear[n->in[i]->id];
    s->linear[n->id] = linear;
    if (linear)
        return;
    for (int i = 0; i < n->n_in; i++)
        s->in[i] = s->v[n->in[i]->id];
    s->v[n->id] = fx_node_rebuild(s->g, n, s->in);
}

static void backward(state *s, const fx_node *n) {
    fx_node **ct = s->ct + s->slot[n->id];
    bool any = false;
    for (int i = 0; i < fx_result_count(n); i++)
        any |= ct[i] != NULL;
    if (!s->linear[n->id] || !any)
        return;
    if (n->op == FX_OP_project) {
        fx_node **to = &s->ct[s->slot[n->in[0]->id] + (int)FX_GET_INT(n, index)];
        *to = fx_ad_add(s->g, *to, ct[0]);
        return;
    }
    for (int i = 0; i < n->n_in; i++) {
        s->in_linear[i] = s->linear[n->in[i]->id];
        s->in[i] = s->in_linear[i] ? NULL : s->v[n->in[i]->id];
        s->out[i] = NULL;
    }
    fx_ad_place place = fx_ad_enter(s->g, n);
    if (rules[n->op]) {
        fx_transpose_rule r = {s->g, n, s->in, s->in_linear, ct, s->out};
        rules[n->op](&r);
    } else
        fx_rule_error(s->g, n, FX_UNSUPPORTED,
                      "reverse mode; expected a linear function of the tangents; got an op that isn't");
    for (int i = 0; i < n->n_in && s->g->status == FX_OK; i++)
        if (s->in_linear[i] && s->out[i]) {
            fx_node **to = &s->ct[s->slot[n->in[i]->id]];
            *to = fx_ad_add(s->g, *to, s->out[i]);
        }
    fx_ad_leave(s->g, place);
}

fx_status fx_ad_transpose(fx_graph *g, const fx_graph *f, const bool *linear, fx_node *const *args, fx_node *const *ct,
                          fx_node **results, fx_node **ct_in) {
    state s = {.g = g};
    size_t slots = 0, widest = 1, n = (size_t)f->n_node;
    for (int i = 0; i < f->n_node; i++) {
        slots += (size_t)fx_result_count(f->nodes[i]);
        widest = (size_t)f->nodes[i]->n_in > widest ? (size_t)f->nodes[i]->n_in : widest;
    }
    s.slot = calloc(n + 1, sizeof *s.slot);
    s.ct = calloc(slots + n + 2 * widest, sizeof *s.ct);
    s.linear = calloc(n + widest, sizeof *s.linear);
    if (s.slot && s.ct && s.linear) {
        s.v = s.ct + slots;
        s.in = s.v + n;
        s.out = s.in + widest;
        s.in_linear = s.linear + n;
        for (int i = 0, at = 0; i < f->n_node; at += fx_result_count(f->nodes[i]), i++)
            s.slot[i] = at;
        for (int i = 0; i < f->n_param; i++) {
            s.linear[f->params[i]->id] = linear[i];
            s.v[f->params[i]->id] = linear[i] ? NULL : args[i];
        }
        for (int i = 0; i < f->n_node && g->status == FX_OK; i++)
            if (f->nodes[i]->op != FX_OP_parameter)
                forward(&s, f->nodes[i]);
        for (int i = 0; i < f->n_result; i++) {
            const fx_node *m = f->results[i];
            if (results)
                results[i] = s.v[m->id];
            if (s.linear[m->id] && ct[i])
                s.ct[s.slot[m->id]] = fx_ad_add(g, s.ct[s.slot[m->id]], ct[i]);
        }
        for (int i = f->n_node - 1; i >= 0 && g->status == FX_OK; i--)
            if (f->nodes[i]->op != FX_OP_parameter)
                backward(&s, f->nodes[i]);
        for (int i = 0; i < f->n_param; i++)
            ct_in[i] = linear[i] ? s.ct[s.slot[f->params[i]->id]] : NULL;
    } else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    free(s.slot);
    free(s.ct);
    free(s.linear);
    return g->status == FX_OK ? FX_OK : fx_fail(g->status, "%s", g->error);
}

/* Tuples are taken apart where they are made: these only complete the table. */
void fx_transpose_project(fx_transpose_rule *r) {
    r->out[0] = NULL;
}
void fx_jvp_project(fx_jvp_rule *r) {
    r->dt[0] = r->t[FX_GET_INT(r->n, index)];
}
