/* transform.c - the public derivative transforms: arguments checked, then linearise and transpose.
 *
 * Reverse mode: f with tangents as one graph (jvp); control flow split into what depends on the tangents and what
 * doesn't (unzip); then the tangents' part run backwards (transpose). */
#include <stdlib.h>

#include "autodiff/rules.h"
#include "core/base/error.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"

static fx_status check(const char *what, const fx_func *f, const fx_args *wrt, fx_func **out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: out; expected an address for the new function; got NULL", what);
    *out = NULL;
    if (!f)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: f; expected a function; got NULL; trace one with fx_trace_func", what);
    int n = fx_func_n_in(f);
    if (wrt->n < 1 || !wrt->index)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: wrt; expected at least one argument position; got %d; pass FX_ARGS(0)",
                       what, wrt->n);
    for (int i = 0; i < wrt->n; i++) {
        if (wrt->index[i] < 0 || wrt->index[i] >= n)
            return fx_fail(FX_INVALID_ARGUMENT, "%s: wrt[%d]; expected a position from 0 to %d; got %d", what, i, n - 1,
                           wrt->index[i]);
        for (int j = 0; j < i; j++)
            if (wrt->index[j] == wrt->index[i])
                return fx_fail(FX_INVALID_ARGUMENT,
                               "%s: wrt[%d]; expected each argument once; got %d twice; name it once", what, i,
                               wrt->index[i]);
    }
    return FX_OK;
}

/* f linearised: (x..., tangents of the float wrt...) -> (results..., tangents of the results that depend on them...).
 */
static fx_status linearize(const fx_graph *f, const bool *has_in, bool *has_out, fx_graph **out) {
    fx_graph *jvp = NULL;
    FX_TRY(fx_ad_jvp_graph(f, has_in, has_out, true, &jvp));
    bool *unknown = calloc((size_t)jvp->n_param + 1, sizeof *unknown);
    if (!unknown) {
        fx_graph_unref(jvp);
        return fx_fail_oom((size_t)jvp->n_param);
    }
    for (int i = f->n_param; i < jvp->n_param; i++)
        unknown[i] = true;
    fx_status st = fx_ad_unzip(jvp, unknown, out);
    free(unknown);
    fx_graph_unref(jvp);
    return st;
}

typedef enum mode { VJP, GRAD, VALUE_AND_GRAD } mode;

/* GRAD and VALUE_AND_GRAD start from 1 for result 0; VJP from parameters. Scratch lives in g's arena. */
static fx_status pull_back(fx_graph *g, const fx_graph *f, const fx_args *wrt, mode how) {
    int n = f->n_param, m = f->n_result, k = 0;
    bool *has_in = FX_ARENA_ARRAY(&g->arena, bool, n + 1), *has_out = FX_ARENA_ARRAY(&g->arena, bool, m + 1);
    bool *linear = FX_ARENA_ARRAY(&g->arena, bool, 2 * n + 1);
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * n + 1),
            **ct_in = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * n + 1);
    fx_node **ct = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * m + 1),
            **results = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * m + 1);
    fx_node **final = FX_ARENA_ARRAY(&g->arena, fx_node *, m + wrt->n + 1);
    fx_graph *lin = NULL;
    if (g->arena.failed)
        return fx_fail_oom(g->arena.bytes);
    for (int i = 0; i < wrt->n; i++)
        has_in[wrt->index[i]] = fx_dtype_is_float(f->params[wrt->index[i]]->spec.dtype);
    FX_TRY(linearize(f, has_in, has_out, &lin));
    for (int i = 0; i < n; i++)
        args[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = n; i < lin->n_param; i++)
        linear[i] = true;
    for (int i = 0, j = m; i < m; i++) {
        const fx_spec *s = &f->results[i]->spec;
        fx_node *seed = NULL;
        if (how == VJP && fx_dtype_is_float(s->dtype))
            seed = fx_graph_param(g, s);
        else if (how != VJP && i == 0)
            seed = fx_b_const_splat(g, s, 1);
        if (has_out[i])
            ct[j++] = seed;
    }
    fx_status st = fx_ad_transpose(g, lin, linear, args, ct, results, ct_in);
    fx_graph_unref(lin);
    if (st != FX_OK)
        return st;
    for (int i = 0; how != GRAD && i < m; i++)
        final[k++] = results[i];
    for (int i = 0; i < wrt->n; i++) {
        int at = n, w = wrt->index[i];
        for (int j = 0; j < w; j++)
            at += has_in[j];
        final[k++] = fx_ad_zeros(g, has_in[w] ? ct_in[at] : NULL, &f->params[w]->spec);
    }
    return fx_graph_finish(g, k, final, true);
}

/* Runs the body of a transform on a new graph and hands it over, or drops it. */
static fx_status deliver(fx_graph *g, fx_status st, fx_func **out) {
    if (st != FX_OK)
        fx_graph_unref(g);
    else
        *out = fx_graph_func(g);
    return st;
}

static fx_status reverse(const char *what, const fx_func *func, fx_args wrt, mode how, fx_func **out) {
    FX_TRY(check(what, func, &wrt, out));
    const fx_graph *f = fx_func_graph(func);
    char text[160];
    if (how != VJP) {
        const fx_spec *s = f->n_result ? &f->results[0]->spec : NULL;
        if (!s || s->rank || !fx_dtype_is_float(s->dtype))
            return fx_fail(FX_INVALID_ARGUMENT,
                           "%s: f's result 0; expected a float scalar; got %s; reduce it to a scalar or use fx_vjp",
                           what, s ? fx_spec_format(s, text, sizeof text) : "no results");
        for (int i = 0; i < wrt.n; i++) {
            const fx_spec *p = &f->params[wrt.index[i]]->spec;
            if (!fx_dtype_is_float(p->dtype))
                return fx_fail(FX_INVALID_ARGUMENT,
                               "%s: argument %d; expected floats, which have derivatives; got %s; leave it out of "
                               "wrt or convert it to a float before",
                               what, wrt.index[i], fx_spec_format(p, text, sizeof text));
        }
    }
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_status st = deliver(g, pull_back(g, f, &wrt, how), out);
    return st == FX_OK ? st : fx_fail_context(st, "%s", what);
}

fx_status fx_grad(const fx_func *f, fx_args wrt, fx_func **out) {
    return reverse("fx_grad", f, wrt, GRAD, out);
}

fx_status fx_value_and_grad(const fx_func *f, fx_args wrt, fx_func **out) {
    return reverse("fx_value_and_grad", f, wrt, VALUE_AND_GRAD, out);
}

fx_status fx_vjp(const fx_func *f, fx_args wrt, fx_func **out) {
    return reverse("fx_vjp", f, wrt, VJP, out);
}

static fx_status push_forward(fx_graph *g, const fx_graph *f, const fx_args *wrt) {
    int n = f->n_param, m = f->n_result, k = m;
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1), **t = FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1);
    fx_node **results = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * m + 1),
            **dt = FX_ARENA_ARRAY(&g->arena, fx_node *, m + 1);
    if (g->arena.failed)
        return fx_fail_oom(g->arena.bytes);
    for (int i = 0; i < n; i++)
        args[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = 0; i < wrt->n; i++)
        t[wrt->index[i]] = fx_graph_param(g, &f->params[wrt->index[i]]->spec);
    FX_TRY(fx_ad_jvp(g, f, args, t, false, results, dt));
    for (int i = 0; i < m; i++)
        if (fx_dtype_is_float(f->results[i]->spec.dtype))
            results[k++] = fx_ad_zeros(g, dt[i], &f->results[i]->spec);
    return fx_graph_finish(g, k, results, true);
}

fx_status fx_jvp(const fx_func *f, fx_args wrt, fx_func **out) {
    FX_TRY(check("fx_jvp", f, &wrt, out));
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_status st = deliver(g, push_forward(g, fx_func_graph(f), &wrt), out);
    return st == FX_OK ? st : fx_fail_context(st, "fx_jvp");
}
