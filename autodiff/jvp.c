/* jvp.c - forward mode: a graph copied into another one together with the tangents of its values.
 *
 * Slots: an array node has one, a tuple node one for each result. Symbolic zeros are NULL; nodes without a tangent
 * are copied as they are. */
#include <stdlib.h>
#include <string.h>

#include "autodiff/rules.h"
#include "core/base/error.h"

#define FX_UNARY(name, ...) [FX_OP_##name] = fx_jvp_elementwise,
#define FX_BINARY(name, ...) [FX_OP_##name] = fx_jvp_elementwise,
#define FX_TERNARY(name, ...) [FX_OP_##name] = fx_jvp_elementwise,
#define RULE_DIFF(name) [FX_OP_##name] = fx_jvp_##name,
#define RULE_NODIFF(name)
#define FX_STRUCTURAL(name, in, region, view, diff, doc) RULE_##diff(name)
static void (*const rules[FX_OP_COUNT])(fx_jvp_rule *) = {
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
    int *slot;        /* first slot of each node */
    fx_node **v, **t; /* by slot */
    fx_node **in, **in_t;
    bool linearize;
} state;

/* Results of node `from` of the source, copied: into the slots from s. */
static void copy(state *s, const fx_node *n, int at) {
    fx_node *m = fx_node_rebuild(s->g, n, s->in);
    for (int i = 0; i < fx_result_count(n); i++)
        s->v[at + i] = fx_result(m, i);
}

static void visit(state *s, const fx_node *n) {
    int at = s->slot[n->id], results = fx_result_count(n);
    bool any = false, some_float = false;
    if (n->op == FX_OP_project) {
        int from = s->slot[n->in[0]->id] + (int)FX_GET_INT(n, index);
        s->v[at] = s->v[from];
        s->t[at] = s->t[from];
        return;
    }
    for (int i = 0; i < n->n_in; i++) {
        s->in[i] = s->v[s->slot[n->in[i]->id]];
        s->in_t[i] = s->t[s->slot[n->in[i]->id]];
        any |= s->in_t[i] != NULL;
    }
    for (int i = 0; i < results; i++)
        some_float |= fx_dtype_is_float(fx_result_spec(n, i)->dtype);
    if (!any || !some_float || !rules[n->op]) {
        copy(s, n, at);
        return;
    }
    if (!n->n_region)
        copy(s, n, at);
    fx_jvp_rule r = {s->g, n, s->in, s->in_t, s->v + at, s->t + at, s->linearize};
    fx_ad_place place = fx_ad_enter(s->g, n);
    if (s->g->status == FX_OK)
        rules[n->op](&r);
    for (int i = 0; i < results; i++)
        if (!fx_dtype_is_float(fx_result_spec(n, i)->dtype))
            s->t[at + i] = NULL;
    fx_ad_leave(s->g, place);
}

fx_status fx_ad_jvp(fx_graph *g, const fx_graph *f, fx_node *const *args, fx_node *const *t, bool linearize,
                    fx_node **results, fx_node **dt) {
    state s = {.g = g, .linearize = linearize};
    int slots = 0, widest = 1;
    for (int i = 0; i < f->n_node; i++) {
        slots += fx_result_count(f->nodes[i]);
        widest = f->nodes[i]->n_in > widest ? f->nodes[i]->n_in : widest;
    }
    s.slot = calloc((size_t)f->n_node + 1, sizeof *s.slot);
    s.v = calloc(2 * ((size_t)slots + (size_t)widest), sizeof *s.v);
    if (s.slot && s.v) {
        s.t = s.v + slots;
        s.in = s.t + slots;
        s.in_t = s.in + widest;
        for (int i = 0, at = 0; i < f->n_node; at += fx_result_count(f->nodes[i]), i++)
            s.slot[i] = at;
        for (int i = 0; i < f->n_param; i++) {
            s.v[s.slot[f->params[i]->id]] = args[i];
            s.t[s.slot[f->params[i]->id]] = fx_dtype_is_float(f->params[i]->spec.dtype) ? t[i] : NULL;
        }
        for (int i = 0; i < f->n_node && g->status == FX_OK; i++)
            if (f->nodes[i]->op != FX_OP_parameter)
                visit(&s, f->nodes[i]);
    } else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    for (int i = 0; i < f->n_result; i++) {
        results[i] = g->status == FX_OK ? s.v[s.slot[f->results[i]->id]] : NULL;
        dt[i] = g->status == FX_OK ? s.t[s.slot[f->results[i]->id]] : NULL;
    }
    free(s.slot);
    free(s.v);
    return g->status == FX_OK ? FX_OK : fx_fail(g->status, "%s", g->error);
}

fx_status fx_ad_jvp_graph(const fx_graph *f, const bool *has_in, bool *has_out, bool linearize, fx_graph **out) {
    int n = f->n_param, m = f->n_result, k = m;
    *out = NULL;
    fx_graph *g = fx_graph_new(NULL);
    fx_node **list = calloc(2 * (size_t)(n + m) + 1, sizeof *list);
    if (!g || !list) {
        fx_graph_unref(g);
        free(list);
        return fx_fail_oom(sizeof *list);
    }
    fx_node **args = list, **t = list + n, **results = t + n, **dt = results + m;
    for (int i = 0; i < n; i++)
        args[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = 0; i < n; i++)
        t[i] = has_in[i] && fx_dtype_is_float(args[i] ? args[i]->spec.dtype : FX_BOOL)
                   ? fx_graph_param(g, &f->params[i]->spec)
                   : NULL;
    fx_status status = fx_ad_jvp(g, f, args, t, linearize, results, dt);
    for (int i = 0; status == FX_OK && i < m; i++) {
        has_out[i] = fx_dtype_is_float(results[i]->spec.dtype) && (has_out[i] || dt[i]);
        if (has_out[i])
            results[k++] = fx_ad_zeros(g, dt[i], &results[i]->spec); /* k <= m + i, so that dt[i] was read */
    }
    if (status == FX_OK)
        status = fx_graph_finish(g, k, results, true);
    free(list);
    if (status != FX_OK)
        fx_graph_unref(g);
    else
        *out = g;
    return status;
}
