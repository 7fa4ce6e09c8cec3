/* batch_math.c - batching of contractions, reductions, windows and order. */
#include "autodiff/batch.h"

static const int64_t none;

static void shift(const fx_node *n, fx_attr_id id, int64_t add, int *count, int64_t *out) {
    const int64_t *v = fx_attr_list(n, id, count);
    for (int i = 0; i < *count; i++)
        out[i] = v[i] + add;
}

/* n's list with `first` in front. */
static const fx_attr *prefixed(const fx_node *n, fx_attr_id id, int64_t first, int64_t *out, fx_attr *a) {
    int count;
    const int64_t *v = fx_attr_list(n, id, &count);
    out[0] = first;
    for (int i = 0; i < count && i < FX_MAX_RANK; i++)
        out[1 + i] = v[i];
    *a = (fx_attr){id, count + 1, {.list = out}};
    return a;
}

void fx_batch_dot_general(fx_batch_rule *r) {
    const fx_node *n = r->n;
    bool a = r->batched[0], b = r->batched[1];
    int64_t lb[FX_MAX_RANK + 1] = {0}, rb[FX_MAX_RANK + 1] = {0}, lc[FX_MAX_RANK], rc[FX_MAX_RANK];
    int nb, nc, both = a && b;
    shift(n, FX_ATTR_lhs_batch, a, &nb, lb + both);
    shift(n, FX_ATTR_rhs_batch, b, &nb, rb + both);
    shift(n, FX_ATTR_lhs_contract, a, &nc, lc);
    shift(n, FX_ATTR_rhs_contract, b, &nc, rc);
    fx_dot_numbers d = {nb + both, nc, lb, rb, lc, rc, (fx_symbol)FX_GET_INT(n, precision), n->spec.dtype};
    fx_node *y = fx_b_dot(r->g, r->in[0], r->in[1], &d);
    /* a batch of one operand is one of its free dimensions: the first of those */
    int at = both ? 0 : a ? nb : n->in[0]->spec.rank - nc;
    r->out[0] = fx_batch_move(r->g, y, at, 0);
}

/* The batch (dimension 0) of x goes into dimension k (of the rest), between `groups` and what is in a group. */
static fx_node *fold(fx_graph *g, fx_node *x, int64_t k, int64_t groups) {
    int64_t split[FX_MAX_RANK + 1], merged[FX_MAX_RANK];
    if (!x)
        return NULL;
    int rank = x->spec.rank - 1;
    for (int i = 0; i < rank; i++)
        merged[i] = x->spec.dims[1 + i] * (i == k ? x->spec.dims[0] : 1);
    if (groups > 1) {
        int m = 0;
        for (int i = 0; i <= rank; i++) {
            if (i == k + 1)
                split[m++] = groups;
            split[m++] = i == k + 1 ? x->spec.dims[i] / groups : x->spec.dims[i];
        }
        x = fx_b_reshape(g, x, m, split);
    }
    x = fx_batch_move(g, x, 0, (int)k + (groups > 1));
    return fx_b_reshape(g, x, rank, merged);
}

/* The inverse: dimension k is groups x size x rest. */
static fx_node *unfold(fx_graph *g, fx_node *x, int64_t k, int64_t groups, int64_t size) {
    int64_t split[FX_MAX_RANK + 2], merged[FX_MAX_RANK + 1] = {size};
    if (!x)
        return NULL;
    int rank = x->spec.rank, m = 0;
    for (int i = 0; i < rank; i++) {
        if (i != k) {
            split[m++] = merged[1 + i] = x->spec.dims[i];
            continue;
        }
        if (groups > 1)
            split[m++] = groups;
        split[m++] = size;
        split[m++] = x->spec.dims[i] / (groups * size);
        merged[1 + i] = x->spec.dims[i] / size;
    }
    x = fx_batch_move(g, fx_b_reshape(g, x, m, split), (int)k + (groups > 1), 0);
    return fx_b_reshape(g, x, rank + 1, merged);
}

void fx_batch_convolution(fx_batch_rule *r) {
    const fx_node *n = r->n;
    fx_graph *g = r->g;
    const int64_t *ls = FX_GET_LIST(n, lhs_spec, NULL), *rs = FX_GET_LIST(n, rhs_spec, NULL),
                  *os = FX_GET_LIST(n, out_spec, NULL);
    int64_t features = FX_GET_INT(n, feature_groups), batches = FX_GET_INT(n, batch_groups), size = r->size;
    bool a = r->batched[0], b = r->batched[1];
    fx_spec out = n->spec;
    if (!size) { /* no group can be empty */
        r->out[0] = fx_batch_broadcast(g, fx_b_zeros(g, &out), 0);
        return;
    }
    fx_node *lhs = r->in[0], *rhs = r->in[1];
    int64_t groups = 1, k = os[1];
    if (a && b) { /* every lane is a group of its own */
        lhs = fold(g, lhs, batches > 1 ? ls[0] : ls[1], 1);
        rhs = fold(g, rhs, rs[0], 1);
        features *= batches > 1 ? 1 : size;
        batches *= batches > 1 ? size : 1;
    } else if (a) { /* lanes share the window: more batch */
        lhs = fold(g, lhs, ls[0], batches);
        k = os[0];
    } else { /* lanes share the input: more output features */
        groups = features * batches;
        rhs = fold(g, rhs, rs[0], groups);
    }
    fx_attr attrs[16];
    int count = 0;
    for (int i = 0; i < n->n_attr; i++) {
        attrs[count] = n->attr[i];
        if (attrs[count].id == FX_ATTR_feature_groups)
            attrs[count].u.i = features;
        if (attrs[count].id == FX_ATTR_batch_groups)
            attrs[count].u.i = batches;
        count++;
    }
    fx_node *y = fx_build(g, FX_OP_convolution, 2, (fx_node *[]){lhs, rhs}, count, attrs, 0, NULL);
    r->out[0] = unfold(g, y, k, groups, size);
}

void fx_batch_reduce(fx_batch_rule *r) {
    int64_t dims[FX_MAX_RANK];
    int n;
    shift(r->n, FX_ATTR_dims, 1, &n, dims);
    r->out[0] = fx_b_reduce(r->g, r->in[0], FX_GET_SYM(r->n), n, dims);
}

void fx_batch_arg_reduce(fx_batch_rule *r) {
    const fx_attr a[] = {FX_SYM_ATTR(kind, FX_GET_SYM(r->n)), FX_INT(dim, FX_GET_INT(r->n, dim) + 1),
                         FX_DTYPE_ATTR(r->n->spec.dtype)};
    r->out[0] = fx_build(r->g, FX_OP_arg_reduce, 1, r->in, 3, a, 0, NULL);
}

void fx_batch_cumulative(fx_batch_rule *r) {
    const fx_attr a[] = {FX_SYM_ATTR(kind, FX_GET_SYM(r->n)), FX_INT(dim, FX_GET_INT(r->n, dim) + 1),
                         FX_INT(reverse, FX_GET_INT(r->n, reverse))};
    r->out[0] = fx_build(r->g, FX_OP_cumulative, 1, r->in, 3, a, 0, NULL);
}

void fx_batch_reduce_window(fx_batch_rule *r) {
    int64_t v[6][FX_MAX_RANK + 1];
    fx_attr a[7];
    prefixed(r->n, FX_ATTR_window, 1, v[0], &a[0]);
    prefixed(r->n, FX_ATTR_strides, 1, v[1], &a[1]);
    prefixed(r->n, FX_ATTR_low, 0, v[2], &a[2]);
    prefixed(r->n, FX_ATTR_high, 0, v[3], &a[3]);
    prefixed(r->n, FX_ATTR_lhs_dilation, 1, v[4], &a[4]);
    prefixed(r->n, FX_ATTR_rhs_dilation, 1, v[5], &a[5]);
    a[6] = FX_SYM_ATTR(kind, FX_GET_SYM(r->n));
    r->out[0] = fx_build(r->g, FX_OP_reduce_window, 1, r->in, 7, a, 0, NULL);
}

void fx_batch_select_and_scatter(fx_batch_rule *r) {
    int64_t v[4][FX_MAX_RANK + 1];
    fx_attr a[5];
    prefixed(r->n, FX_ATTR_window, 1, v[0], &a[0]);
    prefixed(r->n, FX_ATTR_strides, 1, v[1], &a[1]);
    prefixed(r->n, FX_ATTR_low, 0, v[2], &a[2]);
    prefixed(r->n, FX_ATTR_high, 0, v[3], &a[3]);
    a[4] = FX_SYM_ATTR(kind, FX_GET_SYM(r->n));
    r->out[0] =
        fx_build(r->g, FX_OP_select_and_scatter, 2, (fx_node *[]){fx_batch_in(r, 0), fx_batch_in(r, 1)}, 5, a, 0, NULL);
}

void fx_batch_top_k(fx_batch_rule *r) {
    fx_node *t = fx_node_rebuild(r->g, r->n, r->in);
    r->out[0] = fx_result(t, 0);
    r->out[1] = fx_result(t, 1);
}

static fx_node **all_batched(fx_batch_rule *r) {
    fx_node **in = FX_ARENA_ARRAY(&r->g->arena, fx_node *, r->n->n_in + 1);
    for (int i = 0; in && i < r->n->n_in; i++)
        in[i] = fx_batch_in(r, i);
    return in;
}

void fx_batch_sort(fx_batch_rule *r) {
    fx_node **in = all_batched(r);
    const fx_attr a = FX_INT(dim, FX_GET_INT(r->n, dim) + 1);
    fx_node *t = in ? fx_build(r->g, FX_OP_sort, r->n->n_in, in, 1, &a, 1, r->n->region) : NULL;
    for (int i = 0; i < r->n->n_in; i++)
        r->out[i] = fx_result(t, i);
}

void fx_batch_reduce_fn(fx_batch_rule *r) {
    int n = r->n->n_in / 2, n_dims;
    int64_t dims[FX_MAX_RANK];
    bool inits = false;
    fx_node **in = all_batched(r);
    if (!in)
        return;
    shift(r->n, FX_ATTR_dims, 1, &n_dims, dims);
    for (int i = n; i < 2 * n; i++)
        inits |= r->batched[i];
    if (inits) { /* an initial value a lane */
        fx_ad_fold_tree(r->g, r->n->region[0], n, in, in + n, n_dims, dims, r->out);
        return;
    }
    for (int i = n; i < 2 * n; i++)
        in[i] = r->in[i];
    const fx_attr a = FX_LIST(dims, n_dims, n_dims ? dims : &none);
    fx_node *t = fx_build(r->g, FX_OP_reduce_fn, 2 * n, in, 1, &a, 1, r->n->region);
    for (int i = 0; i < n; i++)
        r->out[i] = fx_result(t, i);
}

void fx_batch_optimization_barrier(fx_batch_rule *r) {
    fx_node *t = fx_node_rebuild(r->g, r->n, r->in);
    for (int i = 0; i < r->n->n_in; i++) {
        r->out[i] = fx_result(t, i);
        r->out_batched[i] = r->batched[i];
    }
}
