/* rules_reduce.c - derivatives of reductions and running reductions.
 *
 * Products are differentiated without division: the factor of an element is the product of the others. Ties of max
 * and min share evenly. What has no closed form is decomposed into elementwise steps and these are differentiated. */
#include "autodiff/rules.h"

/* x with dimension dim cut to start..limit. */
static fx_node *cut(fx_graph *g, fx_node *x, int64_t dim, int64_t start, int64_t limit, int64_t stride) {
    int64_t s[FX_MAX_RANK] = {0}, l[FX_MAX_RANK], t[FX_MAX_RANK];
    if (!x)
        return NULL;
    for (int i = 0; i < x->spec.rank; i++) {
        l[i] = x->spec.dims[i];
        t[i] = 1;
    }
    s[dim] = start;
    l[dim] = limit;
    t[dim] = stride;
    return fx_b_slice(g, x, s, l, t);
}

static fx_node *running(fx_graph *g, fx_node *x, fx_symbol kind, int64_t dim, bool reverse) {
    const fx_attr a[] = {FX_SYM_ATTR(kind, kind), FX_INT(dim, dim), FX_INT(reverse, reverse)};
    return fx_build(g, FX_OP_cumulative, 1, &x, 3, a, 0, NULL);
}

/* Product of the elements before (or, reversed, after) each along dim. */
static fx_node *product_of_others(fx_graph *g, fx_node *x, int64_t dim, bool after) {
    int64_t n = x->spec.dims[dim];
    fx_spec edge = x->spec;
    edge.dims[dim] = 1;
    fx_node *one = fx_b_const_splat(g, &edge, 1), *rest = cut(g, x, dim, after, n - 1 + after, 1);
    fx_node *shifted = fx_b_concatenate(g, 2, after ? (fx_node *[]){rest, one} : (fx_node *[]){one, rest}, dim);
    return running(g, shifted, FX_SYM_prod, dim, after);
}

/* The reduced dimensions as one last dimension, kept ones first. */
static fx_node *merged(fx_graph *g, fx_node *x, int n, const int64_t *dims) {
    int64_t order[FX_MAX_RANK], shape[FX_MAX_RANK];
    int k = 0;
    if (!x)
        return NULL;
    for (int i = 0, d = 0; i < x->spec.rank; i++) {
        if (d < n && dims[d] == i)
            d++;
        else {
            order[k] = i;
            shape[k++] = x->spec.dims[i];
        }
    }
    shape[k] = 1;
    for (int i = 0; i < n; i++) {
        order[k + i] = dims[i];
        shape[k] *= x->spec.dims[dims[i]];
    }
    return fx_b_reshape(g, fx_b_transpose(g, x, order), k + 1, shape);
}

static fx_node *jvp_prod(fx_jvp_rule *r, int n, const int64_t *dims) {
    fx_graph *g = r->g;
    fx_node *x = r->in[0], *t = r->t[0];
    int64_t dim = n ? dims[0] : 0;
    if (n != 1) {
        x = merged(g, x, n, dims);
        t = merged(g, t, n, dims);
        dim = x ? x->spec.rank - 1 : 0;
    }
    if (!x || !t)
        return NULL;
    if (x->spec.dims[dim] > 1) {
        fx_node *before = product_of_others(g, x, dim, false), *after = product_of_others(g, x, dim, true);
        t = fx_ad_mul(g, t, fx_b_binary(g, FX_OP_mul, before, after));
    }
    return fx_b_reduce(g, t, FX_SYM_sum, 1, &dim);
}

void fx_jvp_reduce(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    int n;
    const int64_t *dims = FX_GET_LIST(r->n, dims, &n);
    fx_symbol kind = FX_GET_SYM(r->n);
    fx_node *x = r->in[0];
    if (!fx_spec_count(&r->n->in[0]->spec))
        return; /* of nothing: a constant */
    if (kind == FX_SYM_sum)
        r->dt[0] = fx_b_reduce(g, r->t[0], kind, n, dims);
    else if (kind == FX_SYM_prod)
        r->dt[0] = jvp_prod(r, n, dims);
    else if (x) {
        fx_node *top = fx_b_binary(g, FX_OP_eq, x, fx_ad_spread(g, r->out[0], &x->spec, n, dims)),
                *zero = fx_b_like(x, 0);
        fx_node *count = fx_b_reduce(g, fx_b_select(g, top, fx_b_like(x, 1), zero), FX_SYM_sum, n, dims);
        fx_node *t = fx_b_reduce(g, fx_b_select(g, top, r->t[0], zero), FX_SYM_sum, n, dims);
        r->dt[0] = fx_b_binary(g, FX_OP_div, t, count);
    }
}

void fx_transpose_reduce(fx_transpose_rule *r) {
    int n;
    const int64_t *dims = FX_GET_LIST(r->n, dims, &n);
    if (FX_GET_SYM(r->n) == FX_SYM_sum)
        r->out[0] = fx_ad_spread(r->g, r->ct[0], &r->n->in[0]->spec, n, dims);
    else
        fx_rule_error(
            r->g, r->n, FX_INVALID_ARGUMENT,
            "reverse mode; expected kind sum on tangents; got %s; a custom rule must be linear in its tangents",
            fx_symbol_name(FX_GET_SYM(r->n)));
}

/* The running reduction in log2(n) elementwise steps, as a graph. */
static fx_graph *doubling(const fx_spec *spec, fx_symbol kind, int64_t dim, bool reverse) {
    fx_op op = kind == FX_SYM_prod ? FX_OP_mul : kind == FX_SYM_max ? FX_OP_max : FX_OP_min;
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, spec);
    int64_t n = spec->dims[dim];
    for (int64_t d = 1; g && d < n; d *= 2) {
        fx_node *y = fx_b_binary(g, op, cut(g, x, dim, 0, n - d, 1), cut(g, x, dim, d, n, 1));
        fx_node *edge = reverse ? cut(g, x, dim, n - d, n, 1) : cut(g, x, dim, 0, d, 1);
        x = fx_b_concatenate(g, 2, reverse ? (fx_node *[]){y, edge} : (fx_node *[]){edge, y}, dim);
    }
    if (g && fx_graph_finish(g, 1, &x, true) != FX_OK) {
        fx_graph_unref(g);
        return NULL;
    }
    return g;
}

void fx_jvp_cumulative(fx_jvp_rule *r) {
    fx_symbol kind = FX_GET_SYM(r->n);
    if (kind == FX_SYM_sum) {
        r->dt[0] = fx_node_rebuild(r->g, r->n, r->t);
        return;
    }
    fx_graph *f = doubling(&r->n->spec, kind, FX_GET_INT(r->n, dim), FX_GET_INT(r->n, reverse));
    fx_node *value;
    if (f)
        fx_ad_jvp(r->g, f, r->in, r->t, r->linearize, &value, r->dt);
    else
        fx_rule_error(r->g, r->n, FX_OUT_OF_MEMORY, "host memory ran out");
    fx_graph_unref(f);
}

void fx_transpose_cumulative(fx_transpose_rule *r) {
    if (FX_GET_SYM(r->n) == FX_SYM_sum)
        r->out[0] = running(r->g, r->ct[0], FX_SYM_sum, FX_GET_INT(r->n, dim), !FX_GET_INT(r->n, reverse));
    else
        fx_rule_error(
            r->g, r->n, FX_INVALID_ARGUMENT,
            "reverse mode; expected kind sum on tangents; got %s; a custom rule must be linear in its tangents",
            fx_symbol_name(FX_GET_SYM(r->n)));
}

/* ---- reductions by a region ---- */

/* The scalar region applied to arrays of one shape, element by element. */
static void lift(fx_graph *g, const fx_graph *region, int n, fx_node *const *acc, fx_node *const *x, fx_node **out) {
    fx_node **flat = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * n);
    bool *batched = FX_ARENA_ARRAY(&g->arena, bool, 2 * n);
    if (g->arena.failed || !x[0])
        return;
    int64_t count = fx_spec_count(&x[0]->spec);
    fx_spec shape = x[0]->spec;
    for (int i = 0; i < 2 * n; i++) {
        flat[i] = fx_b_reshape(g, i < n ? acc[i] : x[i - n], 1, &count);
        batched[i] = true;
    }
    if (fx_ad_batch(g, region, flat, batched, count, out, batched) == FX_OK)
        for (int i = 0; i < n; i++)
            out[i] = fx_b_reshape(g, out[i], shape.rank, shape.dims);
}

void fx_ad_fold_tree(fx_graph *g, const fx_graph *region, int n, fx_node *const *given, fx_node *const *init,
                     int n_dims, const int64_t *dims, fx_node **out) {
    fx_arena *arena = &g->arena;
    fx_node **x = FX_ARENA_ARRAY(arena, fx_node *, n), **a = FX_ARENA_ARRAY(arena, fx_node *, n),
            **b = FX_ARENA_ARRAY(arena, fx_node *, n);
    if (arena->failed) {
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
        return;
    }
    for (int i = 0; i < n; i++)
        if (!(x[i] = merged(g, given[i], n_dims, dims)))
            return;
    int dim = x[0]->spec.rank - 1;
    int64_t length = x[0]->spec.dims[dim];
    while (length > 1 && g->status == FX_OK) { /* neighbours in pairs: the order is kept */
        int64_t even = length / 2 * 2;
        for (int i = 0; i < n; i++) {
            a[i] = cut(g, x[i], dim, 0, even, 2);
            b[i] = cut(g, x[i], dim, 1, even, 2);
        }
        lift(g, region, n, a, b, a);
        for (int i = 0; i < n; i++)
            x[i] = even == length
                       ? a[i]
                       : fx_b_concatenate(g, 2, (fx_node *[]){a[i], cut(g, x[i], dim, even, length, 1)}, dim);
        length = (length + 1) / 2;
    }
    for (int i = 0; i < n && g->status == FX_OK; i++) { /* initial values follow the result's leading dimensions */
        a[i] = fx_b_broadcast(g, init[i], dim, x[i]->spec.dims, (const int64_t[]){0, 1, 2, 3, 4, 5, 6, 7});
        x[i] = length ? fx_b_reshape(g, x[i], dim, x[i]->spec.dims) : a[i];
    }
    if (g->status != FX_OK)
        return;
    if (length)
        lift(g, region, n, a, x, x);
    for (int i = 0; i < n; i++)
        out[i] = x[i];
}

/* Differentiated as a tree of elementwise steps. */
void fx_jvp_reduce_fn(fx_jvp_rule *r) {
    const fx_node *n = r->n;
    fx_graph *g = fx_graph_new(NULL);
    int m = n->n_in / 2, n_dims;
    const int64_t *dims = FX_GET_LIST(n, dims, &n_dims);
    fx_node *value = fx_node_rebuild(r->g, n, r->in);
    fx_node **in = g ? FX_ARENA_ARRAY(&g->arena, fx_node *, n->n_in) : NULL,
            **out = g ? FX_ARENA_ARRAY(&g->arena, fx_node *, m) : NULL;
    bool ok = in && out;
    for (int i = 0; ok && i < n->n_in; i++)
        in[i] = fx_graph_param(g, &n->in[i]->spec);
    if (ok)
        fx_ad_fold_tree(g, n->region[0], m, in, in + m, n_dims, dims, out);
    ok = ok && fx_graph_finish(g, m, out, true) == FX_OK;
    if (ok)
        fx_ad_jvp(r->g, g, r->in, r->t, r->linearize, r->out, r->dt);
    else
        fx_rule_error(r->g, n, FX_INTERNAL, "%s", fx_last_error());
    for (int i = 0; i < m; i++)
        r->out[i] = fx_result(value, i);
    fx_graph_unref(g);
}

void fx_transpose_reduce_fn(fx_transpose_rule *r) {
    fx_rule_error(r->g, r->n, FX_INVALID_ARGUMENT,
                  "reverse mode; expected a linear function of the tangents; got a reduction by a "
                  "function; a custom rule must be linear in its tangents: use fx_reduce_sum");
}
