/* unzip.c - partial evaluation: what of a linearised graph depends on the tangents, set apart from what doesn't.
 *
 * Only control flow needs work, as one such node computes values of both kinds. Values that the linear part reads
 * (residuals) are passed as they are when they are operands, hoisted when a loop doesn't change them, and else
 * become results of the known part. Constants, iotas and broadcasts are cheaper made again. */
#include <stdlib.h>

#include "autodiff/rules.h"
#include "core/base/error.h"

static fx_status failed(const fx_graph *g) {
    return fx_fail(g->status, "%s", g->error);
}

static void rebuild(fx_unzip_rule *r) {
    fx_node *m = fx_node_rebuild(r->g, r->n, r->in);
    bool any = false;
    for (int i = 0; i < r->n->n_in; i++)
        any |= r->unknown[i];
    for (int i = 0; i < fx_result_count(r->n); i++) {
        r->out[i] = fx_result(m, i);
        r->out_unknown[i] = any;
    }
}

static void visit(fx_unzip_rule *r) {
    bool any = false;
    for (int i = 0; i < r->n->n_in; i++)
        any |= r->unknown[i];
    fx_ad_place place = fx_ad_enter(r->g, r->n);
    if (!any)
        rebuild(r);
    else if (r->n->op == FX_OP_scan)
        fx_unzip_scan(r);
    else if (r->n->op == FX_OP_cond)
        fx_unzip_cond(r);
    else if (r->n->op == FX_OP_while)
        fx_unzip_while(r);
    else if (r->n->op == FX_OP_call && FX_GET_SYM(r->n) == FX_SYM_remat)
        fx_unzip_call(r);
    else
        rebuild(r);
    fx_ad_leave(r->g, place);
}

/* f inlined into g, split; by result slot. */
static void unzip_into(fx_graph *g, const fx_graph *f, const bool *unknown, fx_node **results, bool *result_unknown) {
    int slots = 0, widest = 1;
    for (int i = 0; i < f->n_node; i++) {
        slots += fx_result_count(f->nodes[i]);
        widest = f->nodes[i]->n_in > widest ? f->nodes[i]->n_in : widest;
    }
    int *slot = FX_ARENA_ARRAY(&g->arena, int, f->n_node + 1);
    fx_node **v = FX_ARENA_ARRAY(&g->arena, fx_node *, slots + widest);
    bool *u = FX_ARENA_ARRAY(&g->arena, bool, slots + widest);
    if (!slot || !v || !u) {
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
        return;
    }
    for (int i = 0, at = 0; i < f->n_node && g->status == FX_OK; at += fx_result_count(f->nodes[i]), i++) {
        const fx_node *n = f->nodes[i];
        slot[i] = at;
        if (n->op == FX_OP_parameter) {
            v[at] = fx_graph_param(g, &n->spec);
            u[at] = unknown[FX_GET_INT(n, index)];
            continue;
        }
        if (n->op == FX_OP_project) {
            v[at] = v[slot[n->in[0]->id] + FX_GET_INT(n, index)];
            u[at] = u[slot[n->in[0]->id] + FX_GET_INT(n, index)];
            continue;
        }
        for (int j = 0; j < n->n_in; j++) {
            v[slots + j] = v[slot[n->in[j]->id]];
            u[slots + j] = u[slot[n->in[j]->id]];
        }
        fx_unzip_rule r = {g, n, v + slots, u + slots, v + at, u + at};
        visit(&r);
    }
    for (int i = 0; i < f->n_result && g->status == FX_OK; i++) {
        results[i] = v[slot[f->results[i]->id]];
        if (result_unknown)
            result_unknown[i] |= u[slot[f->results[i]->id]];
    }
}

fx_status fx_ad_unzip(const fx_graph *f, const bool *unknown, fx_graph **out) {
    fx_graph *g = *out = fx_graph_new(NULL);
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_node **results = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    if (!results)
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    else
        unzip_into(g, f, unknown, results, NULL);
    fx_status st = g->status == FX_OK ? fx_graph_finish(g, f->n_result, results, true) : failed(g);
    if (st != FX_OK) {
        fx_graph_unref(g);
        *out = NULL;
    }
    return st;
}

fx_status fx_ad_arrange(const fx_graph *f, int n_param, const int *params, const fx_spec *extra, int n_result,
                        const int *results, fx_graph **out) {
    fx_graph *g = fx_graph_new(NULL);
    *out = NULL;
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_param + 1);
    fx_node **all = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    fx_node **chosen = FX_ARENA_ARRAY(&g->arena, fx_node *, n_result + 1);
    fx_status st = args && all && chosen ? FX_OK : fx_fail_oom(sizeof *args);
    for (int j = 0; st == FX_OK && j < n_param; j++) {
        fx_node *p = fx_graph_param(g, params[j] < 0 ? &extra[-1 - params[j]] : &f->params[params[j]]->spec);
        if (params[j] >= 0)
            args[params[j]] = p;
    }
    for (int i = 0; st == FX_OK && i < f->n_param; i++)
        if (!args[i])
            args[i] = fx_b_zeros(g, &f->params[i]->spec);
    if (st == FX_OK)
        st = fx_graph_inline(g, f, args, all);
    for (int j = 0; st == FX_OK && j < n_result; j++)
        chosen[j] = all[results[j]];
    if (st == FX_OK)
        st = fx_graph_finish(g, n_result, chosen, true);
    if (st == FX_OK)
        *out = g;
    else
        fx_graph_unref(g);
    return st;
}

/* ---- a region in two ---- */

typedef struct splitter {
    const fx_graph *f; /* unzipped */
    fx_graph *linear;
    bool *unknown, *steady; /* by id */
    const bool *direct;
    fx_node **v; /* by id, in linear */
    const fx_node **residual;
    int n_residual;
    fx_node **value; /* parameters of linear that stand for residuals */
} splitter;

/* Can the linear part make this itself? */
static bool remade(const fx_node *n) {
    return n->op == FX_OP_constant || n->op == FX_OP_iota || n->op == FX_OP_broadcast_in_dim;
}

/* Marks what known node n stands on as residuals. */
static void need(splitter *s, const fx_node *n, bool *needed) {
    if (needed[n->id])
        return;
    needed[n->id] = true;
    if (remade(n)) {
        for (int i = 0; i < n->n_in; i++)
            need(s, n->in[i], needed);
    } else
        s->residual[s->n_residual++] = n;
}

static fx_node *known_value(splitter *s, const fx_node *n) {
    if (!s->v[n->id]) {
        fx_node *x = n->n_in ? known_value(s, n->in[0]) : NULL;
        s->v[n->id] = fx_node_rebuild(s->linear, n, &x);
    }
    return s->v[n->id];
}

static fx_status split(splitter *s, const bool *result_unknown, const bool *param_unknown, bool has_steady,
                       fx_ad_split *out) {
    const fx_graph *f = s->f;
    fx_arena *a = &s->linear->arena;
    bool *needed = FX_ARENA_ARRAY(a, bool, f->n_node + 1);
    s->v = FX_ARENA_ARRAY(a, fx_node *, f->n_node + 1);
    s->residual = FX_ARENA_ARRAY(a, const fx_node *, f->n_node + 1);
    fx_node **results = FX_ARENA_ARRAY(a, fx_node *, f->n_result + f->n_node + 1);
    int *params = FX_ARENA_ARRAY(a, int, f->n_param + 1), *chosen = FX_ARENA_ARRAY(a, int, f->n_result + f->n_node + 1);
    out->kind = FX_ARENA_ARRAY(a, fx_residual_kind, f->n_node + 1);
    out->param = FX_ARENA_ARRAY(a, int, f->n_node + 1);
    if (a->failed)
        return fx_fail_oom(a->bytes);
    for (int i = 0; i < f->n_node; i++)
        for (int j = 0; s->unknown[i] && j < f->nodes[i]->n_in; j++)
            if (!s->unknown[f->nodes[i]->in[j]->id])
                need(s, f->nodes[i]->in[j], needed);
    for (int i = 0; i < f->n_result; i++)
        if (result_unknown[i] && !s->unknown[f->results[i]->id])
            need(s, f->results[i], needed);
    /* the linear graph */
    for (int i = 0; i < s->n_residual; i++)
        s->v[s->residual[i]->id] = fx_graph_param(s->linear, &s->residual[i]->spec);
    for (int i = 0; i < f->n_param; i++)
        if (param_unknown[i])
            s->v[f->params[i]->id] = fx_graph_param(s->linear, &f->params[i]->spec);
    for (int i = 0; i < f->n_node && s->linear->status == FX_OK; i++) {
        const fx_node *n = f->nodes[i];
        if (!s->unknown[i] || n->op == FX_OP_parameter)
            continue;
        fx_node **in = FX_ARENA_ARRAY(a, fx_node *, n->n_in + 1);
        for (int j = 0; in && j < n->n_in; j++)
            in[j] = s->unknown[n->in[j]->id] ? s->v[n->in[j]->id] : known_value(s, n->in[j]);
        s->v[i] = in ? fx_node_rebuild(s->linear, n, in) : NULL;
    }
    int k = 0;
    for (int i = 0; i < f->n_result; i++)
        if (result_unknown[i])
            results[k++] = s->unknown[f->results[i]->id] ? s->v[f->results[i]->id] : known_value(s, f->results[i]);
    FX_TRY(fx_graph_finish(s->linear, k, results, true));
    /* the known graph and the invariants: f with the residuals as results */
    fx_graph *all = fx_graph_new(NULL);
    if (!all)
        return fx_fail_oom(sizeof *all);
    fx_node **v = FX_ARENA_ARRAY(&all->arena, fx_node *, f->n_node + 1);
    for (int i = 0; v && i < f->n_node && all->status == FX_OK; i++) {
        const fx_node *n = f->nodes[i];
        if (n->op == FX_OP_parameter) {
            v[i] = fx_graph_param(all, &n->spec);
            continue;
        }
        if (s->unknown[i])
            continue;
        fx_node **in = FX_ARENA_ARRAY(&all->arena, fx_node *, n->n_in + 1);
        for (int j = 0; in && j < n->n_in; j++)
            in[j] = v[n->in[j]->id];
        v[i] = in ? fx_node_rebuild(all, n, in) : NULL;
    }
    int n_param = 0, n_known = 0, n_invariant = 0;
    for (int i = 0; i < f->n_param; i++)
        if (!param_unknown[i])
            params[n_param++] = i;
    k = 0;
    for (int i = 0; i < f->n_result; i++)
        if (!result_unknown[i])
            results[k++] = v ? v[f->results[i]->id] : NULL;
    out->n_residual = s->n_residual;
    n_known = k;
    for (int i = 0; i < s->n_residual; i++) {
        const fx_node *n = s->residual[i];
        out->param[i] = n->op == FX_OP_parameter ? (int)FX_GET_INT(n, index) : -1;
        out->kind[i] = out->param[i] >= 0 && s->direct[out->param[i]] ? FX_RESIDUAL_PARAM
                       : has_steady && s->steady[n->id]               ? FX_RESIDUAL_INVARIANT
                                                                      : FX_RESIDUAL_RESULT;
        if (out->kind[i] == FX_RESIDUAL_RESULT)
            results[k++] = v ? v[n->id] : NULL;
    }
    n_known = k;
    for (int i = 0; i < s->n_residual; i++)
        if (out->kind[i] == FX_RESIDUAL_INVARIANT)
            results[k++] = v ? v[s->residual[i]->id] : NULL;
    n_invariant = k - n_known;
    fx_status st = fx_graph_finish(all, k, results, true);
    for (int i = 0; i < k; i++)
        chosen[i] = i;
    if (st == FX_OK)
        st = fx_ad_arrange(all, n_param, params, NULL, n_known, chosen, &out->known);
    if (st == FX_OK && n_invariant)
        st = fx_ad_arrange(all, n_param, params, NULL, n_invariant, chosen + n_known, &out->invariant);
    fx_graph_unref(all);
    return st;
}

fx_status fx_ad_split_region(const fx_graph *given, const bool *unknown, bool *result_unknown, const bool *direct,
                             const bool *steady, fx_ad_split *out) {
    fx_graph *f = NULL;
    *out = (fx_ad_split){0};
    FX_TRY(fx_ad_unzip(given, unknown, &f));
    splitter s = {.f = f, .linear = fx_graph_new(NULL), .direct = direct};
    fx_status st = FX_OK;
    if (s.linear) {
        out->linear = s.linear;
        s.unknown = FX_ARENA_ARRAY(&s.linear->arena, bool, f->n_node + 1);
        s.steady = FX_ARENA_ARRAY(&s.linear->arena, bool, f->n_node + 1);
    }
    if (!s.linear || !s.unknown || !s.steady)
        st = fx_fail_oom(sizeof *s.linear);
    for (int i = 0; st == FX_OK && i < f->n_node; i++) {
        const fx_node *n = f->nodes[i];
        if (n->op == FX_OP_parameter) {
            s.unknown[i] = unknown[FX_GET_INT(n, index)];
            s.steady[i] = steady && steady[FX_GET_INT(n, index)] && !s.unknown[i];
            continue;
        }
        s.steady[i] = true;
        for (int j = 0; j < n->n_in; j++) {
            s.unknown[i] |= s.unknown[n->in[j]->id];
            s.steady[i] &= s.steady[n->in[j]->id];
        }
    }
    for (int i = 0; st == FX_OK && i < f->n_result; i++)
        result_unknown[i] |= s.unknown[f->results[i]->id];
    if (st == FX_OK)
        st = split(&s, result_unknown, unknown, steady != NULL, out);
    fx_graph_unref(f);
    if (st != FX_OK)
        fx_ad_split_free(out);
    return st;
}

void fx_ad_split_free(fx_ad_split *s) {
    fx_graph_unref(s->known);
    fx_graph_unref(s->linear);
    fx_graph_unref(s->invariant);
    *s = (fx_ad_split){0};
}
