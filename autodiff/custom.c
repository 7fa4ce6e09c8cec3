/* custom.c - functions with a derivative of their own: rematerialised, by a forward rule, by a reverse rule. Each is
 * one call node around the function. */
#include "autodiff/rules.h"
#include "core/base/error.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"

static fx_status wrap(const char *what, fx_symbol kind, int n_region, fx_graph *const *regions, int n_residual,
                      fx_func **out) {
    fx_graph *g = fx_graph_new(NULL);
    const fx_graph *f = regions[0];
    if (!g)
        return fx_fail_oom(sizeof *g);
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_param + 1),
            **results = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    if (!in || !results) {
        fx_graph_unref(g);
        return fx_fail_oom(sizeof *in);
    }
    for (int i = 0; i < f->n_param; i++)
        in[i] = fx_graph_param(g, &f->params[i]->spec);
    const fx_attr a[] = {FX_SYM_ATTR(kind, kind), FX_INT(n_residual, n_residual)};
    fx_node *call = fx_build(g, FX_OP_call, f->n_param, in, 2, a, n_region, regions);
    for (int i = 0; i < f->n_result; i++)
        results[i] = fx_result(call, i);
    fx_status st = fx_graph_finish(g, f->n_result, results, true);
    if (st != FX_OK) {
        fx_graph_unref(g);
        return fx_fail_context(st, "%s", what);
    }
    *out = fx_graph_func(g);
    return FX_OK;
}

static fx_status check(const char *what, int n, const fx_func *const *funcs, const char *const *names, fx_func **out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: out; expected an address for the new function; got NULL", what);
    *out = NULL;
    for (int i = 0; i < n; i++)
        if (!funcs[i])
            return fx_fail(FX_INVALID_ARGUMENT, "%s: %s; expected a function; got NULL; trace one with fx_trace_func",
                           what, names[i]);
    if (!fx_func_n_out(funcs[0]))
        return fx_fail(FX_INVALID_ARGUMENT, "%s: f; expected a function with results; got one without", what);
    return FX_OK;
}

/* Compares one parameter or result of a rule with what f makes of it. */
static fx_status same(const char *what, const char *rule, const char *part, int i, fx_spec want, fx_spec got) {
    char a[160], b[160];
    if (fx_spec_equal(&want, &got))
        return FX_OK;
    return fx_fail(FX_INVALID_ARGUMENT, "%s: %s's %s %d; expected %s; got %s; see the order in transform.h", what, rule,
                   part, i, fx_spec_format(&want, a, sizeof a), fx_spec_format(&got, b, sizeof b));
}

static fx_status counts(const char *what, const char *rule, const char *part, int want, int got) {
    return want == got ? FX_OK
                       : fx_fail(FX_INVALID_ARGUMENT, "%s: %s; expected %d %s; got %d; see the order in transform.h",
                                 what, rule, want, part, got);
}

static fx_status floats_only(const char *what, const fx_func *f) {
    char text[160];
    for (int i = 0; i < fx_func_n_in(f) + fx_func_n_out(f); i++) {
        bool in = i < fx_func_n_in(f);
        int k = in ? i : i - fx_func_n_in(f);
        fx_spec s = in ? fx_func_in_spec(f, k) : fx_func_out_spec(f, k);
        if (!fx_dtype_is_float(s.dtype))
            return fx_fail(FX_INVALID_ARGUMENT,
                           "%s: f's %s %d; expected floats; got %s; use it inside as a constant, or pass a float and "
                           "convert it inside",
                           what, in ? "argument" : "result", k, fx_spec_format(&s, text, sizeof text));
    }
    return FX_OK;
}

fx_status fx_remat(const fx_func *f, fx_func **out) {
    FX_TRY(check("fx_remat", 1, &f, (const char *const[]){"f"}, out));
    fx_graph *regions[] = {fx_func_graph(f)};
    return wrap("fx_remat", FX_SYM_remat, 1, regions, 0, out);
}

fx_status fx_custom_jvp(const fx_func *f, const fx_func *jvp, fx_func **out) {
    const char *what = "fx_custom_jvp";
    FX_TRY(check(what, 2, (const fx_func *const[]){f, jvp}, (const char *const[]){"f", "jvp"}, out));
    FX_TRY(floats_only(what, f));
    int n = fx_func_n_in(f), m = fx_func_n_out(f);
    FX_TRY(counts(what, "jvp", "arguments", 2 * n, fx_func_n_in(jvp)));
    FX_TRY(counts(what, "jvp", "results", 2 * m, fx_func_n_out(jvp)));
    for (int i = 0; i < 2 * n; i++)
        FX_TRY(same(what, "jvp", "argument", i, fx_func_in_spec(f, i % n), fx_func_in_spec(jvp, i)));
    for (int i = 0; i < 2 * m; i++)
        FX_TRY(same(what, "jvp", "result", i, fx_func_out_spec(f, i % m), fx_func_out_spec(jvp, i)));
    fx_graph *regions[] = {fx_func_graph(f), fx_func_graph(jvp)};
    return wrap(what, FX_SYM_custom_jvp, 2, regions, 0, out);
}

fx_status fx_custom_vjp(const fx_func *f, const fx_func *fwd, const fx_func *bwd, fx_func **out) {
    const char *what = "fx_custom_vjp";
    FX_TRY(check(what, 3, (const fx_func *const[]){f, fwd, bwd}, (const char *const[]){"f", "fwd", "bwd"}, out));
    int n = fx_func_n_in(f), m = fx_func_n_out(f), k = fx_func_n_out(fwd) - m;
    FX_TRY(counts(what, "fwd", "arguments", n, fx_func_n_in(fwd)));
    if (k < 0)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: fwd; expected f's %d results, then residuals; got %d results", what, m,
                       m + k);
    FX_TRY(counts(what, "bwd", "arguments (residuals, then a cotangent for each result)", k + m, fx_func_n_in(bwd)));
    FX_TRY(counts(what, "bwd", "results (a cotangent for each argument of f)", n, fx_func_n_out(bwd)));
    for (int i = 0; i < n; i++) {
        FX_TRY(same(what, "fwd", "argument", i, fx_func_in_spec(f, i), fx_func_in_spec(fwd, i)));
        FX_TRY(same(what, "bwd", "result", i, fx_func_in_spec(f, i), fx_func_out_spec(bwd, i)));
    }
    for (int i = 0; i < m; i++)
        FX_TRY(same(what, "fwd", "result", i, fx_func_out_spec(f, i), fx_func_out_spec(fwd, i)));
    for (int i = 0; i < k + m; i++)
        FX_TRY(same(what, "bwd", "argument", i, i < k ? fx_func_out_spec(fwd, m + i) : fx_func_out_spec(f, i - k),
                    fx_func_in_spec(bwd, i)));
    fx_graph *regions[] = {fx_func_graph(f), fx_func_graph(fwd), fx_func_graph(bwd)};
    return wrap(what, FX_SYM_custom_vjp, 3, regions, k, out);
}
