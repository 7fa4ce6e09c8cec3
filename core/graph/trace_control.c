/* trace_control.c - ops with regions: cond, while, scan, reduce_fn, sort, custom rules, inlined calls.
 *
 * A callback may use values of the enclosing trace. Each becomes an extra parameter of its region; this
 * file gives all regions of an op the same parameters in the order that the op wants. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/trace.h"

/* The union of what several regions capture. */
typedef struct captures {
    int n;
    fx_val *v;
} captures;

static bool collect(fx_graph *g, int n, fx_graph *const *regions, captures *c) {
    int total = 0;
    for (int r = 0; r < n; r++) {
        if (!regions[r])
            return false;
        total += regions[r]->n_captured;
    }
    c->n = 0;
    c->v = FX_ARENA_ARRAY(&g->arena, fx_val, total + 1);
    for (int r = 0; c->v && r < n; r++)
        for (int i = 0; i < regions[r]->n_captured; i++) {
            int j = 0;
            while (j < c->n && c->v[j] != regions[r]->captured[i])
                j++;
            if (j == c->n)
                c->v[c->n++] = regions[r]->captured[i];
        }
    return c->v != NULL;
}

/* The region again, with parameters: own ones 0..lead-1, all captures when `captures_at` is lead, the other
 * own ones, or captures first when captures_at is 0. Takes over the old reference. NULL on error. */
static fx_graph *rewire(fx_graph *outer, fx_graph *region, const captures *c, int captures_at) {
    int own = region->n_param - region->n_captured;
    fx_graph *g = fx_graph_new(NULL);
    fx_val *args = calloc((size_t)(own + c->n + region->n_param + region->n_result) + 1, sizeof *args);
    fx_val *mapped = args ? args + own + c->n : NULL, *results = args ? mapped + region->n_param : NULL;
    fx_status st = g && args ? FX_OK : FX_OUT_OF_MEMORY;
    for (int i = 0, next_own = 0; st == FX_OK && i < own + c->n; i++) {
        bool captured = i >= captures_at && i < captures_at + c->n;
        args[i] = fx_graph_param(g, captured ? &c->v[i - captures_at]->spec : &region->params[next_own]->spec);
        if (!captured)
            mapped[next_own++] = args[i];
    }
    for (int i = 0; st == FX_OK && i < region->n_captured; i++) {
        int j = 0;
        while (c->v[j] != region->captured[i])
            j++;
        mapped[own + i] = args[captures_at + j];
    }
    if (st == FX_OK)
        st = fx_graph_inline(g, region, mapped, results);
    if (st == FX_OK)
        st = fx_graph_finish(g, region->n_result, results, true);
    free(args);
    fx_graph_unref(region);
    if (st == FX_OK)
        return g;
    fx_graph_unref(g);
    fx_graph_error(outer, st, "a region could not be built");
    return NULL;
}

/* Builds op with the regions (whose references it drops) and writes its results. */
static void finish(fx_graph *g, fx_op op, int n_in, const fx_val *in, int n_attr, const fx_attr *attrs, int n_region,
                   fx_graph **regions, int n_out, fx_val *out) {
    bool ok = g->status == FX_OK;
    for (int r = 0; r < n_region; r++)
        ok &= regions[r] != NULL;
    fx_val v = ok ? fx_build(g, op, n_in, in, n_attr, attrs, n_region, regions) : NULL;
    for (int i = 0; i < n_out; i++)
        out[i] = v ? fx_result(v, i) : NULL;
    for (int r = 0; r < n_region; r++)
        fx_graph_unref(regions[r]);
}

static void clear(int n, fx_val *out) {
    for (int i = 0; i < n && out; i++)
        out[i] = NULL;
}

/* Several lists of values as one, in g's arena. NULL, with an error, when one is absent. */
static fx_val *join(fx_graph *g, int n1, const fx_val *a, int n2, const fx_val *b, int n3, const fx_val *c) {
    if (n1 < 0 || n2 < 0 || n3 < 0 || (n1 && !a) || (n2 && !b) || (n3 && !c)) {
        fx_trace_complain(g, "list of operands; expected as many values as its number says; got NULL or a negative number");
        return NULL;
    }
    fx_val *v = FX_ARENA_ARRAY(&g->arena, fx_val, n1 + n2 + n3 + 1);
    if (!v)
        return NULL;
    if (n1)
        memcpy(v, a, sizeof *v * (size_t)n1);
    if (n2)
        memcpy(v + n1, b, sizeof *v * (size_t)n2);
    if (n3)
        memcpy(v + n1 + n2, c, sizeof *v * (size_t)n3);
    return v;
}

static fx_spec *specs_of(fx_graph *g, int n, const fx_val *v) {
    fx_spec *s = FX_ARENA_ARRAY(&g->arena, fx_spec, n + 1);
    for (int i = 0; s && i < n; i++)
        s[i] = v[i]->spec;
    return s;
}

/* The graph that an op on these operands belongs to. *in becomes a copy of the list, since callers may pass one
 * list as operands and results; the results are then NULL until the op is built. */
static fx_graph *home(int n, const fx_val **in, int n_out, fx_val *out) {
    fx_graph *g = fx_trace_of(n, *in);
    if (!n || n_out < 0 || (n_out && !out))
        fx_trace_complain(g, n ? "results; expected a list for them; got NULL or a negative number"
                               : "operands; expected 1 or more; got none");
    if (n_out < 0 || (n_out && !out))
        g = NULL;
    fx_val *copy = g ? join(g, n, *in, 0, NULL, 0, NULL) : NULL;
    clear(n_out, out);
    *in = copy;
    return copy ? g : NULL;
}

void fx_switch(fx_val index, int n_branch, const fx_trace_fn *branches, void *user, int n_in, const fx_val *in, int n_out,
               fx_val *out) {
    fx_graph *g = fx_trace_of(1, &index);
    if (g && (n_branch < 1 || !branches)) {
        fx_trace_complain(g, "fx_switch: branches; expected 1 or more; got none");
        g = NULL;
    }
    const fx_val *operands = g ? join(g, 1, &index, n_in, in, 0, NULL) : NULL;
    if (operands)
        g = home(1 + n_in, &operands, n_out, out);
    else
        clear(n_out, out);
    if (!operands || !g)
        return;
    in = operands + 1;
    fx_spec *specs = specs_of(g, n_in, in);
    fx_graph **regions = FX_ARENA_ARRAY(&g->arena, fx_graph *, n_branch + 1);
    if (!specs || !regions)
        return;
    for (int b = 0; b < n_branch; b++)
        regions[b] = fx_trace_region(g, branches[b], user, n_in, specs, n_out);
    captures c = {0, NULL};
    bool ok = collect(g, n_branch, regions, &c);
    for (int b = 0; ok && b < n_branch; b++)
        regions[b] = rewire(g, regions[b], &c, n_in);
    fx_val *all = ok ? join(g, 1 + n_in, operands, c.n, c.v, 0, NULL) : NULL;
    finish(g, FX_OP_cond, all ? 1 + n_in + c.n : 0, all, 0, NULL, n_branch, regions, n_out, out);
}

void fx_cond(fx_val pred, fx_trace_fn on_true, fx_trace_fn on_false, void *user, int n_in, const fx_val *in, int n_out,
             fx_val *out) {
    const fx_trace_fn branches[] = {on_false, on_true};
    if (!fx_trace_of(1, &pred)) {
        clear(n_out, out);
        return;
    }
    fx_switch(fx_convert(fx_ne(pred, fx_const_like(pred, 0)), FX_S32), 2, branches, user, n_in, in, n_out, out);
}

void fx_while(fx_trace_fn cond, fx_trace_fn body, void *user, int n, const fx_val *init, fx_val *out) {
    fx_graph *g = home(n, &init, n, out);
    fx_spec *specs = g ? specs_of(g, n, init) : NULL;
    if (!specs)
        return;
    fx_graph *regions[2] = {fx_trace_region(g, cond, user, n, specs, 1), NULL};
    regions[1] = fx_trace_region(g, body, user, n, specs, n);
    captures c = {0, NULL};
    bool ok = collect(g, 2, regions, &c);
    for (int r = 0; ok && r < 2; r++)
        regions[r] = rewire(g, regions[r], &c, n);
    fx_val *all = ok ? join(g, n, init, c.n, c.v, 0, NULL) : NULL;
    fx_attr a = FX_INT(n_carry, n);
    finish(g, FX_OP_while, all ? n + c.n : 0, all, 1, &a, 2, regions, n, out);
}

void fx_scan(fx_trace_fn body, void *user, int n_carry, const fx_val *init, int n_x, const fx_val *xs, int n_y,
             int64_t length, bool reverse, fx_val *out) {
    const fx_val *lead = n_carry > 0 ? init : xs;
    bool absent = n_carry < 0 || n_x < 0 || n_y < 0 || length < 0 || n_carry + n_x == 0 || (n_carry && !init) || (n_x && !xs);
    if (absent)
        fx_trace_complain(NULL, "fx_scan; expected numbers of 0 or more, a carry or xs, and the lists of both; got NULL or a negative number");
    fx_graph *g = absent ? NULL : fx_trace_of(1, lead);
    const fx_val *in = g ? join(g, n_carry, init, n_x, xs, 0, NULL) : NULL;
    g = in ? home(n_carry + n_x, &in, n_carry + n_y, out) : NULL;
    if (!g) {
        clear(n_carry + n_y, out);
        return;
    }
    init = in;
    xs = in + n_carry;
    fx_spec *specs = specs_of(g, n_carry + n_x, in);
    for (int i = 0; specs && i < n_x; i++) {
        fx_spec *s = &specs[n_carry + i];
        if (s->rank < 1 || (i && xs[i]->spec.dims[0] != xs[0]->spec.dims[0]) || (length && length != s->dims[0])) {
            fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_scan: xs[%d]; expected leading dimension %lld as the others; got %lld", i,
                           (long long)(length ? length : xs[0]->spec.rank ? xs[0]->spec.dims[0] : 0),
                           (long long)(s->rank ? s->dims[0] : -1));
            return;
        }
        s->rank--;
        memmove(s->dims, s->dims + 1, sizeof s->dims[0] * (size_t)s->rank);
        s->dims[s->rank] = 0;
    }
    if (!specs)
        return;
    length = n_x ? xs[0]->spec.dims[0] : length;
    fx_graph *region = fx_trace_region(g, body, user, n_carry + n_x, specs, n_carry + n_y);
    captures c = {0, NULL};
    bool ok = collect(g, 1, &region, &c);
    if (ok)
        region = rewire(g, region, &c, 0);
    fx_val *all = ok ? join(g, c.n, c.v, n_carry, init, n_x, xs) : NULL;
    fx_attr a[] = {FX_INT(n_consts, c.n), FX_INT(n_carry, n_carry), FX_INT(length, length), FX_INT(reverse, reverse)};
    finish(g, FX_OP_scan, all ? c.n + n_carry + n_x : 0, all, 4, a, 1, &region, n_carry + n_y, out);
}

/* A region of scalars that may capture nothing: a combination or a comparison. */
static fx_graph *scalar_region(fx_graph *g, const char *op, fx_trace_fn fn, void *user, int n, const fx_val *x,
                               bool interleave, int n_out) {
    fx_spec *specs = FX_ARENA_ARRAY(&g->arena, fx_spec, 2 * n + 1);
    if (!specs)
        return NULL;
    for (int i = 0; i < 2 * n; i++)
        specs[i] = (fx_spec){x[interleave ? i / 2 : i % n]->spec.dtype, 0, {0}};
    fx_graph *region = fx_trace_region(g, fn, user, 2 * n, specs, n_out);
    if (region && region->n_captured) {
        fx_graph_error(g, FX_INVALID_ARGUMENT, "%s: its function may only use its own arguments and constants", op);
        fx_graph_unref(region);
        return NULL;
    }
    return region;
}

void fx_reduce_fn(int n, const fx_val *x, const fx_val *init, int n_axes, const int *axes, fx_trace_fn fn, void *user,
                  fx_val *out) {
    int64_t dims[FX_MAX_RANK];
    int nd;
    fx_graph *g = home(n, &x, n, out);
    if (!g || !fx_trace_axes(x[0], "fx_reduce_fn", n_axes, axes, &nd, dims) || !fx_trace_given(x[0], "fx_reduce_fn: list of initial values", init))
        return;
    fx_graph *region = scalar_region(g, "fx_reduce_fn", fn, user, n, x, false, n);
    fx_val *all = join(g, n, x, n, init, 0, NULL);
    fx_attr a = FX_LIST(dims, nd, dims);
    finish(g, FX_OP_reduce_fn, all ? 2 * n : 0, all, 1, &a, 1, &region, n, out);
}

void fx_sort_by(int n, const fx_val *x, int axis, fx_trace_fn before, void *user, fx_val *out) {
    fx_graph *g = home(n, &x, n, out);
    if (!g || !fx_trace_axis(x[0], "fx_sort_by", x[0]->spec.rank, &axis))
        return;
    fx_graph *region = scalar_region(g, "fx_sort_by", before, user, n, x, true, 1);
    fx_attr a = FX_INT(dim, axis);
    finish(g, FX_OP_sort, n, x, 1, &a, 1, &region, n, out);
}

void fx_optimization_barrier(int n, const fx_val *in, fx_val *out) {
    fx_graph *g = home(n, &in, n, out);
    if (g)
        finish(g, FX_OP_optimization_barrier, n, in, 0, NULL, 0, NULL, n, out);
}

void fx_call(fx_trace *t, const fx_func *f, const fx_val *in, fx_val *out) {
    if (!f || !out) {
        fx_trace_complain(t ? fx_trace_graph(t) : NULL, f ? "fx_call: results; expected a list for them; got NULL" : "fx_call: function; expected one; got NULL");
        return;
    }
    const fx_graph *callee = fx_func_graph(f);
    clear(callee->n_result, out);
    if (!t || (callee->n_param && !fx_trace_of(callee->n_param, in)))
        return;
    fx_graph *g = callee->n_param ? fx_trace_of(callee->n_param, in) : fx_trace_graph(t);
    char a[128], b[128];
    for (int i = 0; i < callee->n_param; i++)
        if (!fx_spec_equal(&in[i]->spec, &callee->params[i]->spec)) {
            fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_call: argument %d; expected %s; got %s", i,
                           fx_spec_format(&callee->params[i]->spec, a, sizeof a), fx_spec_format(&in[i]->spec, b, sizeof b));
            return;
        }
    fx_graph_inline(g, callee, in, out);
}

void fx_trace_custom_jvp(int n_in, const fx_val *in, fx_trace_fn primal, fx_trace_fn jvp, void *user, int n_out, fx_val *out) {
    fx_graph *g = home(n_in, &in, n_out, out);
    fx_val *twice = g ? join(g, n_in, in, n_in, in, 0, NULL) : NULL;
    fx_spec *specs = twice ? specs_of(g, 2 * n_in, twice) : NULL;
    if (!specs)
        return;
    fx_graph *regions[2] = {fx_trace_region(g, primal, user, n_in, specs, n_out),
                            fx_trace_region(g, jvp, user, 2 * n_in, specs, 2 * n_out)};
    fx_attr a = FX_SYM(kind, custom_jvp);
    finish(g, FX_OP_call, n_in, in, 1, &a, 2, regions, n_out, out);
}
