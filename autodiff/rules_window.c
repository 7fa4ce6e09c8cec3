/* rules_window.c - derivatives of reductions over windows.
 *
 * A sum's transpose is a sum over windows again. Of a max or min, the tangent comes from the first of the equals; its
 * transpose is select_and_scatter. What has no op of its own is unrolled: one dimension after another, from the
 * last to the first, one step for each place in the window. */
#include <math.h>

#include "autodiff/rules.h"

typedef struct windows {
    int rank;
    const int64_t *window, *strides, *low, *high, *ld, *rd;
} windows;

static const int64_t ones[FX_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};

static windows windows_of(const fx_node *n) {
    windows w;
    w.window = FX_GET_LIST(n, window, &w.rank);
    w.strides = FX_GET_LIST(n, strides, NULL);
    w.low = FX_GET_LIST(n, low, NULL);
    w.high = FX_GET_LIST(n, high, NULL);
    w.ld = FX_GET_LIST(n, lhs_dilation, NULL);
    w.rd = FX_GET_LIST(n, rhs_dilation, NULL);
    if (!w.ld)
        w.ld = w.rd = ones;
    return w;
}

static int64_t dilated(int64_t size, int64_t dilation) {
    return size ? (size - 1) * dilation + 1 : 0;
}

static fx_node *padded(fx_graph *g, fx_node *x, const windows *w, fx_node *value) {
    int64_t interior[FX_MAX_RANK];
    for (int i = 0; i < w->rank; i++)
        interior[i] = w->ld[i] - 1;
    return fx_b_pad(g, x, value, w->low, w->high, interior);
}

/* Element k of each window along dimension d. */
static fx_node *place(fx_graph *g, fx_node *x, const windows *w, int d, int64_t k, int64_t positions) {
    int64_t start[FX_MAX_RANK] = {0}, limit[FX_MAX_RANK], strides[FX_MAX_RANK];
    if (!x)
        return NULL;
    for (int i = 0; i < w->rank; i++) {
        limit[i] = x->spec.dims[i];
        strides[i] = 1;
    }
    start[d] = k * w->rd[d];
    limit[d] = start[d] + (positions - 1) * w->strides[d] + 1;
    strides[d] = w->strides[d];
    return fx_b_slice(g, x, start, limit, strides);
}

/* What v holds where x has each window's first max or min. */
static fx_node *pick(fx_graph *g, fx_node *x, fx_node *v, const windows *w, bool max, const fx_spec *out) {
    if (!x || !v)
        return NULL;
    fx_spec flags = x->spec;
    flags.dtype = FX_BOOL;
    bool pads = false;
    for (int i = 0; i < w->rank; i++)
        pads |= w->low[i] > 0 || w->high[i] > 0 || w->ld[i] > 1;
    fx_node *real = pads ? padded(g, fx_b_const_splat(g, &flags, 1), w, fx_b_scalar(g, FX_BOOL, 0)) : NULL;
    x = padded(g, x, w, fx_b_scalar(g, x->spec.dtype, max ? -(double)INFINITY : (double)INFINITY));
    v = padded(g, v, w, fx_b_scalar(g, v->spec.dtype, 0));
    for (int d = w->rank - 1; d >= 0; d--) {
        fx_node *bx = place(g, x, w, d, 0, out->dims[d]), *bv = place(g, v, w, d, 0, out->dims[d]);
        fx_node *br = real ? place(g, real, w, d, 0, out->dims[d]) : NULL;
        for (int64_t k = 1; k < w->window[d]; k++) {
            fx_node *kx = place(g, x, w, d, k, out->dims[d]), *kv = place(g, v, w, d, k, out->dims[d]);
            fx_node *better = fx_b_binary(g, max ? FX_OP_gt : FX_OP_lt, kx, bx);
            fx_node *nan =
                fx_b_binary(g, FX_OP_and, fx_b_binary(g, FX_OP_ne, kx, kx), fx_b_binary(g, FX_OP_eq, bx, bx));
            better = fx_b_binary(g, FX_OP_or, better, nan);
            if (real) {
                fx_node *kr = place(g, real, w, d, k, out->dims[d]);
                better = fx_b_binary(g, FX_OP_and, kr, fx_b_binary(g, FX_OP_or, better, fx_b_unary(g, FX_OP_not, br)));
                br = fx_b_binary(g, FX_OP_or, br, kr);
            }
            bx = fx_b_select(g, better, kx, bx);
            bv = fx_b_select(g, better, kv, bv);
        }
        x = bx, v = bv, real = br;
    }
    return v;
}

/* The product over windows as elementwise products. */
static fx_graph *unrolled_product(const fx_spec *spec, const windows *w, const fx_spec *out) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, spec);
    if (x)
        x = padded(g, x, w, fx_b_scalar(g, spec->dtype, 1));
    for (int d = w->rank - 1; d >= 0 && x; d--) {
        fx_node *p = place(g, x, w, d, 0, out->dims[d]);
        for (int64_t k = 1; k < w->window[d]; k++)
            p = fx_b_binary(g, FX_OP_mul, p, place(g, x, w, d, k, out->dims[d]));
        x = p;
    }
    if (g && fx_graph_finish(g, 1, &x, true) != FX_OK) {
        fx_graph_unref(g);
        return NULL;
    }
    return g;
}

static fx_node *select_and_scatter(fx_graph *g, fx_node *x, fx_node *source, const windows *w, fx_symbol kind) {
    const fx_attr a[] = {FX_LIST(window, w->rank, w->window), FX_LIST(strides, w->rank, w->strides),
                         FX_LIST(low, w->rank, w->low), FX_LIST(high, w->rank, w->high), FX_SYM_ATTR(kind, kind)};
    return fx_build(g, FX_OP_select_and_scatter, 2, (fx_node *[]){x, source}, 5, a, 0, NULL);
}

/* (x, cotangent of the windows) -> cotangent of x. */
static fx_graph *extremum_back(const fx_node *n, const windows *w) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &n->in[0]->spec), *ct = fx_graph_param(g, &n->spec);
    fx_node *out = g ? select_and_scatter(g, x, ct, w, FX_GET_SYM(n)) : NULL;
    if (g && fx_graph_finish(g, 1, &out, true) != FX_OK) {
        fx_graph_unref(g);
        return NULL;
    }
    return g;
}

void fx_jvp_reduce_window(fx_jvp_rule *r) {
    fx_graph *g = r->g, *f = NULL;
    const fx_node *n = r->n;
    windows w = windows_of(n);
    fx_symbol kind = FX_GET_SYM(n);
    bool dilations = false;
    for (int i = 0; i < w.rank; i++)
        dilations |= w.ld[i] > 1 || w.rd[i] > 1;
    if (!fx_spec_count(&n->spec) || !fx_spec_count(&n->in[0]->spec))
        return;
    if (kind == FX_SYM_sum)
        r->dt[0] = fx_node_rebuild(g, n, r->t);
    else if (kind == FX_SYM_prod) {
        fx_node *value;
        f = unrolled_product(&n->in[0]->spec, &w, &n->spec);
        if (f)
            fx_ad_jvp(g, f, r->in, r->t, r->linearize, &value, r->dt);
        else
            fx_rule_error(g, n, FX_OUT_OF_MEMORY, "%s", fx_last_error());
    } else if (r->linearize && !dilations) {
        f = extremum_back(n, &w);
        if (f)
            fx_ad_linear_call(g, 1, 1, (fx_node *[]){r->in[0], r->t[0]}, 1, &n->spec, f, r->dt);
        else
            fx_rule_error(g, n, FX_OUT_OF_MEMORY, "%s", fx_last_error());
    } else
        r->dt[0] = pick(g, r->in[0], r->t[0], &w, kind == FX_SYM_max, &n->spec);
    fx_graph_unref(f);
}

void fx_transpose_reduce_window(fx_transpose_rule *r) {
    const fx_node *n = r->n;
    const fx_spec *x = &n->in[0]->spec;
    windows w = windows_of(n);
    int64_t low[FX_MAX_RANK], high[FX_MAX_RANK];
    if (FX_GET_SYM(n) != FX_SYM_sum) {
        fx_rule_error(r->g, n, FX_INVALID_ARGUMENT,
                      "reverse mode; expected kind sum on tangents; got %s; a custom rule must be linear in "
                      "its tangents",
                      fx_symbol_name(FX_GET_SYM(n)));
        return;
    }
    if (!fx_spec_count(&n->spec) || !fx_spec_count(x))
        return;
    for (int i = 0; i < w.rank; i++) {
        int64_t window = dilated(w.window[i], w.rd[i]);
        low[i] = window - 1 - w.low[i];
        high[i] = dilated(x->dims[i], w.ld[i]) + window - 1 - dilated(n->spec.dims[i], w.strides[i]) - low[i];
    }
    const fx_attr a[] = {FX_SYM(kind, sum),
                         FX_LIST(window, w.rank, w.window),
                         FX_LIST(strides, w.rank, w.ld),
                         FX_LIST(low, w.rank, low),
                         FX_LIST(high, w.rank, high),
                         FX_LIST(lhs_dilation, w.rank, w.strides),
                         FX_LIST(rhs_dilation, w.rank, w.rd)};
    r->out[0] = fx_build(r->g, FX_OP_reduce_window, 1, r->ct, 7, a, 0, NULL);
}

/* Which element is chosen doesn't change nearby: the operand's tangent plays no part. */
void fx_jvp_select_and_scatter(fx_jvp_rule *r) {
    if (r->t[1])
        r->dt[0] = fx_node_rebuild(r->g, r->n, (fx_node *[]){r->in[0], r->t[1]});
}

void fx_transpose_select_and_scatter(fx_transpose_rule *r) {
    windows w = windows_of(r->n);
    if (r->linear[0])
        fx_rule_error(r->g, r->n, FX_INVALID_ARGUMENT,
                      "reverse mode; expected an operand that doesn't depend on the tangents; a custom "
                      "rule must be linear in its tangents");
    else if (fx_spec_count(&r->n->in[1]->spec))
        r->out[1] = pick(r->g, r->in[0], r->ct[0], &w, FX_GET_SYM(r->n) == FX_SYM_max, &r->n->in[1]->spec);
}
