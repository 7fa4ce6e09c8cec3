/* case_transform.c - running traced and transformed functions. */
#include "tests/cases/case_transform.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/trace.h"

fx_func *case_trace_with(fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out) {
    fx_func *f;
    fx_status st = fx_trace_func(fn, user, n_in, in, n_out, &f);
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    return f;
}

fx_func *case_trace(fx_trace_fn fn, int n_in, const fx_spec *in, int n_out) {
    return case_trace_with(fn, NULL, n_in, in, n_out);
}

void case_free_all(int n, case_array *out) {
    for (int i = 0; i < n; i++)
        case_free(&out[i]);
}

fx_func *case_take(fx_status st, fx_func *from, fx_func *const *to) {
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    fx_func_unref(from);
    return *to;
}

case_array case_copy(const case_array *x) {
    return case_bytes(x->spec, x->data);
}

void case_call(const executor *e, fx_func *f, case_array *args, case_array *out) {
    const fx_graph *src = fx_func_graph(f);
    fx_graph *g = fx_graph_new(NULL);
    fx_node *in[CASE_ARRAYS], *results[CASE_ARRAYS];
    ck_assert_int_le(src->n_param, CASE_ARRAYS);
    ck_assert_int_le(src->n_result, CASE_ARRAYS);
    for (int i = 0; i < src->n_param; i++)
        in[i] = fx_graph_param(g, &src->params[i]->spec);
    fx_status st = fx_graph_inline(g, src, in, results);
    ck_assert_msg(st == FX_OK, "%s", fx_last_error());
    case_run(e, g, src->n_result, results, src->n_param, args, out);
    fx_func_unref(f);
}

typedef struct donating {
    const executor *e;
    int n, *donate;
} donating;

static fx_status run_donating(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    const donating *d = self;
    if (!d->e->run_donating || !g->n_param) /* constants have nothing to give */
        return d->e->run(d->e->self, g, args, results);
    return d->e->run_donating(d->e->self, g, d->n, d->donate, args, results);
}

void case_call_donating(const executor *e, fx_func *f, int n_donate, const int *donate, case_array *args,
                        case_array *out) {
    donating d = {e, n_donate, (int *)donate};
    const executor with = {e->name, run_donating, &d, e->skipped, NULL};
    case_call(&with, f, args, out);
}

void case_check_func(const executor *e, const char *what, fx_func *f, int which, case_array *args, const double *want,
                     double abs, double rel) {
    case_array out[2 * CASE_MAX];
    int n = fx_func_n_out(f);
    case_call(e, f, args, out);
    case_compare(e, what, &out[which], want, abs, rel);
    for (int i = 0; i < n; i++)
        case_free(&out[i]);
}

void case_check_grad(const executor *e, const char *what, fx_trace_fn fn, int n_in, const case_array *args,
                     const double *want, double abs, double rel) {
    fx_spec specs[CASE_MAX];
    case_array in[CASE_MAX + 1];
    for (int i = 0; i < n_in; i++)
        specs[i] = args[i].spec;
    fx_func *f = case_trace(fn, n_in, specs, 1), *reverse = NULL, *forward = NULL, *all = NULL;
    fx_func_ref(f);
    reverse = case_take(fx_grad(f, FX_ARGS(0), &reverse), f, &reverse);
    forward = case_take(fx_jvp(f, FX_ARGS(0), &forward), f, &forward);
    /* all unit tangents as one batch: x isn't mapped, its tangent is the identity */
    int64_t n = fx_spec_count(&specs[0]);
    int axes[CASE_MAX + 1];
    for (int i = 0; i < n_in; i++) {
        in[i] = case_copy(&args[i]);
        axes[i] = FX_NOT_MAPPED;
    }
    axes[n_in] = 0;
    case_check_func(e, what, reverse, 0, in, want, abs, rel);
    all = case_take(fx_vmap(forward, axes, NULL, n, &all), forward, &all);
    double *unit = calloc((size_t)(n * n) + 1, sizeof *unit);
    for (int64_t i = 0; i < n; i++)
        unit[i * n + i] = 1;
    for (int i = 0; i < n_in; i++)
        in[i] = args[i];
    in[n_in] = case_values(fx_func_in_spec(all, n_in), unit);
    case_check_func(e, what, all, 1, in, want, abs, rel);
    free(unit);
}
