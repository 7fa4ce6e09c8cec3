/* rules_call.c - derivatives of calls: inlined, rematerialised, or by rules of the user's own.
 *
 * A custom_vjp gives no tangent, only its transpose. While a function is linearised, its tangent is a call of the same
 * kind, (residuals..., tangents...) -> tangents, that exists to be transposed: it never reaches a finished transform.
 */
#include <stdlib.h>

#include "autodiff/rules.h"
#include "core/base/error.h"

static fx_node **nodes(fx_graph *g, int n) {
    return FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1);
}

static void pass_on(fx_graph *g, const fx_node *n, fx_status st) {
    if (st != FX_OK && g->status == FX_OK)
        fx_graph_error(g, st, "%s: %s", fx_op_get(n->op)->name, fx_last_error());
}

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
        if (some && zero && !p->n_region) /* all tangents it reads are zero; regions may compute more than tangents */
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

static void jvp_remat(fx_jvp_rule *r) {
    fx_graph *g = r->g, *f = NULL;
    const fx_node *n = r->n;
    int k = n->n_in;
    bool *has_in = FX_ARENA_ARRAY(&g->arena, bool, n->n_in + 1),
         *has_out = FX_ARENA_ARRAY(&g->arena, bool, n->n_result + 1);
    fx_node **in = nodes(g, 2 * n->n_in);
    if (g->arena.failed)
        return;
    for (int i = 0; i < n->n_in; i++)
        in[i] = r->in[i];
    for (int i = 0; i < n->n_in; i++)
        if ((has_in[i] = r->t[i] != NULL))
            in[k++] = r->t[i];
    fx_status st = fx_ad_jvp_graph(n->region[0], has_in, has_out, r->linearize, &f);
    const fx_attr a = FX_SYM(kind, remat);
    fx_node *c = st == FX_OK ? fx_build(g, FX_OP_call, k, in, 1, &a, 1, &f) : NULL;
    pass_on(g, n, st);
    for (int i = 0, j = n->n_result; i < n->n_result; i++) {
        r->out[i] = fx_result(c, i);
        r->dt[i] = has_out[i] ? fx_result(c, j++) : NULL;
    }
    fx_graph_unref(f);
}

/* Region `which` of a linear call: 0: (residuals, tangents) -> zeros; 1: the same and the residuals; 2: (residuals,
 * cotangents) -> zeros for the residuals, cotangents of the tangents. */
static fx_graph *linear_region(int which, int n_residual, fx_node *const *in, int n_t, int m, const fx_spec *specs,
                               const fx_graph *bwd) {
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    int k = 0;
    fx_node **args = nodes(g, n_residual + m), **out = nodes(g, n_residual + m + n_t);
    bool ok = !g->arena.failed;
    for (int i = 0; ok && i < n_residual; i++)
        args[i] = fx_graph_param(g, &in[i]->spec);
    for (int i = 0; ok && which < 2 && i < n_t; i++)
        fx_graph_param(g, &in[n_residual + i]->spec);
    for (int i = 0; ok && which < 2 && i < m; i++)
        out[k++] = fx_b_zeros(g, &specs[i]);
    for (int i = 0; ok && which && i < n_residual; i++)
        out[k++] = which == 1 ? args[i] : fx_b_zeros(g, &in[i]->spec);
    if (ok && which == 2) {
        for (int i = 0; i < m; i++)
            args[n_residual + i] = fx_graph_param(g, &specs[i]);
        ok = fx_graph_inline(g, bwd, args, out + k) == FX_OK;
        k += n_t;
    }
    if (ok && fx_graph_finish(g, k, out, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_ad_linear_call(fx_graph *g, int n_residual, int n_t, fx_node *const *in, int m, const fx_spec *specs,
                       const fx_graph *bwd, fx_node **dt) {
    fx_graph *region[3] = {NULL, NULL, NULL};
    bool ok = true;
    for (int i = 0; i < n_residual + n_t; i++)
        if (!in[i])
            return;
    for (int i = 0; i < 3; i++)
        ok &= (region[i] = linear_region(i, n_residual, in, n_t, m, specs, bwd)) != NULL;
    if (!ok)
        fx_graph_error(g, FX_OUT_OF_MEMORY, "a linear call; %s", fx_last_error());
    const fx_attr a[] = {FX_SYM(kind, custom_vjp), FX_INT(n_residual, n_residual)};
    fx_node *c = ok ? fx_build(g, FX_OP_call, n_residual + n_t, in, 2, a, 3, region) : NULL;
    for (int i = 0; i < m; i++)
        dt[i] = fx_result(c, i);
    for (int i = 0; i < 3; i++)
        fx_graph_unref(region[i]);
}

static void jvp_custom_vjp(fx_jvp_rule *r) {
    fx_graph *g = r->g, *bwd = NULL;
    const fx_node *n = r->n;
    int m = n->n_result, n_residual = (int)FX_GET_INT(n, n_residual), n_t = 0;
    if (!r->linearize) {
        fx_rule_error(g, n, FX_UNSUPPORTED,
                      "forward mode; expected functions with a forward rule; got a custom_vjp, which has a reverse "
                      "rule only; use fx_vjp or fx_grad, or give it its rule with fx_custom_jvp");
        return;
    }
    fx_node **results = nodes(g, m + n_residual), **in = nodes(g, n_residual + n->n_in);
    int *params = FX_ARENA_ARRAY(&g->arena, int, n_residual + m + 1),
        *chosen = FX_ARENA_ARRAY(&g->arena, int, n->n_in + 1);
    if (g->arena.failed || fx_graph_inline(g, n->region[1], r->in, results) != FX_OK)
        return;
    for (int i = 0; i < m; i++)
        r->out[i] = results[i];
    for (int i = 0; i < n_residual; i++)
        in[i] = results[m + i];
    for (int i = 0; i < n_residual + m; i++)
        params[i] = i;
    for (int i = 0; i < n->n_in; i++)
        if (r->t[i]) {
            chosen[n_t] = i;
            in[n_residual + n_t++] = r->t[i];
        }
    fx_status st = fx_ad_arrange(n->region[2], n_residual + m, params, NULL, n_t, chosen, &bwd);
    pass_on(g, n, st);
    if (st == FX_OK)
        fx_ad_linear_call(g, n_residual, n_t, in, m, n->results, bwd, r->dt);
    fx_graph_unref(bwd);
}

void fx_jvp_call(fx_jvp_rule *r) {
    switch (FX_GET_SYM(r->n)) {
    case FX_SYM_remat:
        jvp_remat(r);
        return;
    case FX_SYM_custom_jvp:
        jvp_custom_jvp(r);
        return;
    case FX_SYM_custom_vjp:
        jvp_custom_vjp(r);
        return;
    default:
        fx_ad_jvp(r->g, r->n->region[0], r->in, r->t, r->linearize, r->out, r->dt);
        return;
    }
}

/* Drops *f's parameters that it doesn't read, and their operands. */
static fx_status drop_unused(fx_graph **f, int *n_in, fx_node **in) {
    fx_graph *old = *f;
    int k = 0, *params = FX_ARENA_ARRAY(&old->arena, int, old->n_param + 1),
        *results = FX_ARENA_ARRAY(&old->arena, int, old->n_result + 1);
    bool *used = FX_ARENA_ARRAY(&old->arena, bool, old->n_node + 1);
    if (old->arena.failed)
        return fx_fail_oom(old->arena.bytes);
    for (int i = 0; i < old->n_node; i++)
        for (int j = 0; j < old->nodes[i]->n_in; j++)
            used[old->nodes[i]->in[j]->id] = true;
    for (int i = 0; i < old->n_result; i++) {
        used[old->results[i]->id] = true;
        results[i] = i;
    }
    for (int i = 0; i < old->n_param; i++)
        if (used[old->params[i]->id]) {
            params[k] = i;
            in[k++] = in[i];
        }
    if (k == *n_in)
        return FX_OK;
    *n_in = k;
    FX_TRY(fx_ad_arrange(old, k, params, NULL, old->n_result, results, f));
    fx_graph_unref(old);
    return FX_OK;
}

/* A rematerialised call: its known results as they were; the others from a call that recomputes what it needs. */
void fx_unzip_call(fx_unzip_rule *r) {
    fx_graph *g = r->g, *flat = NULL, *part[2] = {NULL, NULL};
    const fx_node *n = r->n;
    int m = n->n_result, count[2] = {0, 0}, n_known = 0;
    int *params = FX_ARENA_ARRAY(&g->arena, int, n->n_in + 1), *results = FX_ARENA_ARRAY(&g->arena, int, m + 1);
    fx_node **in = nodes(g, n->n_in), *call[2] = {NULL, NULL};
    if (g->arena.failed)
        return;
    fx_ad_split s = {0};
    fx_status st =
        fx_ad_split_region(n->region[0], r->unknown, r->out_unknown, r->unknown, NULL, &s); /* which results depend */
    fx_ad_split_free(&s);
    if (st == FX_OK)
        st = fx_ad_unzip(n->region[0], r->unknown, &flat);
    for (int u = 0; u < 2 && st == FX_OK; u++) {
        for (int i = 0; i < m; i++)
            if (r->out_unknown[i] == (u == 1))
                results[count[u]++] = i;
        n_known = 0;
        for (int i = 0; i < n->n_in; i++)
            if (u || !r->unknown[i]) {
                params[n_known] = i;
                in[n_known++] = r->in[i];
            }
        if (!count[u])
            continue;
        st = fx_ad_arrange(u ? flat : n->region[0], n_known, params, NULL, count[u], results, &part[u]);
        if (st == FX_OK)
            st = drop_unused(&part[u], &n_known, in);
        const fx_attr a = FX_SYM(kind, remat);
        call[u] = st == FX_OK ? fx_build(g, FX_OP_call, n_known, in, 1, &a, 1, &part[u]) : NULL;
    }
    pass_on(g, n, st);
    for (int i = 0, k[2] = {0, 0}; i < m; i++) {
        int u = r->out_unknown[i];
        r->out[i] = fx_result(call[u], k[u]++);
    }
    fx_graph_unref(flat);
    fx_graph_unref(part[0]);
    fx_graph_unref(part[1]);
}

/* The barrier keeps the recomputation apart from the first one, and waits for the cotangents. */
static void transpose_remat(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    const fx_graph *f = n->region[0];
    int k = 0;
    fx_node **all = nodes(g, n->n_in + n->n_result), **args = nodes(g, n->n_in), **ct = nodes(g, n->n_result);
    if (g->arena.failed)
        return;
    for (int i = 0; i < n->n_in; i++)
        if (!r->linear[i])
            all[k++] = r->in[i];
    for (int i = 0; i < n->n_result; i++)
        if (r->ct[i])
            all[k++] = r->ct[i];
    fx_node *b = fx_build(g, FX_OP_optimization_barrier, k, all, 0, NULL, 0, NULL);
    k = 0;
    for (int i = 0; i < n->n_in; i++)
        if (!r->linear[i])
            args[i] = fx_result(b, k++);
    for (int i = 0; i < n->n_result; i++)
        if (r->ct[i])
            ct[i] = fx_result(b, k++);
    if (b)
        fx_ad_transpose(g, f, r->linear, args, ct, NULL, r->out);
}

void fx_transpose_call(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_residual = (int)FX_GET_INT(n, n_residual);
    bool residuals_known = true;
    switch (FX_GET_SYM(n)) {
    case FX_SYM_remat:
        transpose_remat(r);
        return;
    case FX_SYM_inline:
        fx_ad_transpose(g, n->region[0], r->linear, r->in, r->ct, NULL, r->out);
        return;
    case FX_SYM_custom_vjp: {
        fx_node **args = nodes(g, n_residual + n->n_result), **out = nodes(g, n->n_in);
        for (int i = 0; i < n->n_in; i++)
            residuals_known &= r->linear[i] == (i >= n_residual);
        if (!residuals_known || g->arena.failed)
            break;
        for (int i = 0; i < n_residual; i++)
            args[i] = r->in[i];
        for (int i = 0; i < n->n_result; i++)
            args[n_residual + i] = fx_ad_zeros(g, r->ct[i], fx_result_spec(n, i));
        if (fx_graph_inline(g, n->region[2], args, out) == FX_OK)
            for (int i = n_residual; i < n->n_in; i++)
                r->out[i] = out[i];
        return;
    }
    default:
        break;
    }
    fx_rule_error(g, n, FX_UNSUPPORTED,
                  "reverse mode; expected a linear function of the tangents; got a %s; a custom rule must be linear "
                  "in its tangents",
                  fx_symbol_name(FX_GET_SYM(n)));
}
