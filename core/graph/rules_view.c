/* rules_view.c - builders of rules.def for ops that move elements: views of views, parts of parts. */
#include <string.h>

#include "core/graph/rules_code.h"

fx_node *fx_make_slice_of_slice(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    const int64_t *s1 = FX_GET_LIST(inner, start, NULL), *t1 = FX_GET_LIST(inner, strides, NULL);
    const int64_t *s2 = FX_GET_LIST(outer, start, NULL), *t2 = FX_GET_LIST(outer, strides, NULL);
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK], strides[FX_MAX_RANK];
    for (int i = 0; i < outer->spec.rank; i++) {
        int64_t n = outer->spec.dims[i];
        start[i] = n ? s1[i] + s2[i] * t1[i] : 0;
        strides[i] = n > 1 ? t1[i] * t2[i] : 1; /* below the dimension's size */
        limit[i] = n ? start[i] + (n - 1) * strides[i] + 1 : 0;
    }
    return fx_b_slice(m->g, x_of(m), start, limit, strides);
}

/* A slice that reads one operand only. */
fx_node *fx_make_slice_of_concatenate(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    int64_t dim = FX_GET_INT(inner, dim), offset = 0, start[FX_MAX_RANK], limit[FX_MAX_RANK];
    int rank = outer->spec.rank;
    memcpy(start, FX_GET_LIST(outer, start, NULL), sizeof *start * (size_t)rank);
    memcpy(limit, FX_GET_LIST(outer, limit, NULL), sizeof *limit * (size_t)rank);
    for (int i = 0; i < inner->n_in && start[dim] < limit[dim]; i++) {
        int64_t end = offset + inner->in[i]->spec.dims[dim];
        if (start[dim] >= offset && limit[dim] <= end) {
            start[dim] -= offset;
            limit[dim] -= offset;
            return fx_b_slice(m->g, inner->in[i], start, limit, FX_GET_LIST(outer, strides, NULL));
        }
        offset = end;
    }
    return NULL;
}

/* A slice that reads none of the padding. */
fx_node *fx_make_slice_of_pad(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0], *x = x_of(m);
    const int64_t *s = FX_GET_LIST(outer, start, NULL), *e = FX_GET_LIST(outer, limit, NULL);
    const int64_t *low = FX_GET_LIST(inner, low, NULL), *between = FX_GET_LIST(inner, interior, NULL);
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK];
    for (int i = 0; i < outer->spec.rank; i++) {
        start[i] = s[i] - low[i];
        limit[i] = e[i] - low[i];
        if (between[i] || start[i] < 0 || limit[i] > x->spec.dims[i])
            return NULL;
    }
    return fx_b_slice(m->g, x_of(m), start, limit, FX_GET_LIST(outer, strides, NULL));
}

/* Dimensions reversed by one of the two. */
fx_node *fx_make_reverse_of_reverse(const fx_match *m) {
    int64_t dims[FX_MAX_RANK];
    int n = 0, na, nb;
    const int64_t *a = FX_GET_LIST(m->root, dims, &na), *b = FX_GET_LIST(m->root->in[0], dims, &nb);
    for (int i = 0; i < m->root->spec.rank; i++)
        if (contains(a, na, i) != contains(b, nb, i))
            dims[n++] = i;
    return fx_b_reverse(m->g, x_of(m), n, dims);
}

fx_node *fx_make_transpose_of_broadcast(const fx_match *m) {
    const fx_node *outer = m->root;
    const int64_t *p = FX_GET_LIST(outer, permutation, NULL);
    int n;
    const int64_t *d = FX_GET_LIST(outer->in[0], dims, &n);
    int64_t dims[FX_MAX_RANK] = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < outer->spec.rank; k++)
            if (p[k] == d[i])
                dims[i] = k;
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, dims);
}

/* Does `wide` have the dimensions of `x` in order, with ones between? place[i]: where x's dimension i is. */
static bool inserts_ones(const fx_spec *x, const fx_spec *wide, int64_t *place) {
    int k = 0;
    for (int i = 0; i < x->rank; i++, k++) {
        while (k < wide->rank && wide->dims[k] != x->dims[i] && wide->dims[k] == 1)
            k++;
        if (k == wide->rank || wide->dims[k] != x->dims[i])
            return false;
        place[i] = k;
    }
    for (; k < wide->rank; k++)
        if (wide->dims[k] != 1)
            return false;
    return true;
}

fx_node *fx_make_broadcast_of_reshape(const fx_match *m) {
    const fx_node *outer = m->root;
    const int64_t *d = FX_GET_LIST(outer, dims, NULL);
    int64_t place[FX_MAX_RANK];
    if (!inserts_ones(&x_of(m)->spec, &outer->in[0]->spec, place))
        return NULL;
    for (int i = 0; i < x_of(m)->spec.rank; i++)
        place[i] = d[place[i]];
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, place);
}

/* A broadcast, then ones inserted: one broadcast. */
fx_node *fx_make_reshape_of_broadcast(const fx_match *m) {
    const fx_node *outer = m->root;
    int n;
    const int64_t *d = FX_GET_LIST(outer->in[0], dims, &n);
    int64_t place[FX_MAX_RANK], dims[FX_MAX_RANK];
    if (!inserts_ones(&outer->in[0]->spec, &outer->spec, place))
        return NULL;
    for (int i = 0; i < n; i++)
        dims[i] = place[d[i]];
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, dims);
}

/* A broadcast that adds nothing but ones. */
fx_node *fx_make_broadcast_of_ones(const fx_match *m) {
    int n;
    const int64_t *d = FX_GET_LIST(m->root, dims, &n);
    if (fx_spec_count(&x_of(m)->spec) != fx_spec_count(&m->root->spec) || !ascending(d, n))
        return NULL;
    return fx_b_reshape(m->g, x_of(m), m->root->spec.rank, m->root->spec.dims);
}

/* Ones that come or go before an elementwise op do so after it: they then meet the broadcast or reshape that wants
 * them. */
fx_node *fx_make_elementwise_of_reshape(const fx_match *m) {
    const fx_node *n = m->root, *first = NULL;
    fx_node *in[3];
    int64_t place[FX_MAX_RANK];
    if (n->n_in > 3)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->op == FX_OP_reshape) {
            const fx_spec *from = &n->in[i]->in[0]->spec, *to = &n->in[i]->spec;
            if (!inserts_ones(from, to, place) && !inserts_ones(to, from, place))
                return NULL;
            fx_spec like = *from;
            like.dtype = first ? first->spec.dtype : from->dtype;
            if (first && !fx_spec_equal(&like, &first->spec))
                return NULL;
            first = n->in[i]->in[0];
        }
    if (!first)
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        fx_spec spec = first->spec;
        double v;
        spec.dtype = n->in[i]->spec.dtype;
        if (n->in[i]->op == FX_OP_reshape)
            in[i] = n->in[i]->in[0];
        else if (fx_node_splat(n->in[i], &v))
            in[i] = fx_b_const_element(m->g, &spec, fx_attr_get(n->in[i], FX_ATTR_value)->u.data);
        else
            return NULL;
    }
    fx_node *y = fx_build(m->g, n->op, n->n_in, in, n->n_attr, n->attr, 0, NULL);
    return fx_b_reshape(m->g, y, n->spec.rank, n->spec.dims);
}

/* The one dimension that a pad of zeros widens, without gaps; -1 when it does more. */
static int padded_dim(const fx_node *pad) {
    const int64_t *low = FX_GET_LIST(pad, low, NULL), *high = FX_GET_LIST(pad, high, NULL);
    const int64_t *between = FX_GET_LIST(pad, interior, NULL);
    int dim = -1;
    if (!fx_node_is_splat(pad->in[1], 0) && !fx_node_is_splat(pad->in[1], -0.0))
        return -1;
    for (int i = 0; i < pad->spec.rank; i++) {
        if (between[i] || low[i] < 0 || high[i] < 0 || ((low[i] || high[i]) && dim >= 0))
            return -1;
        if (low[i] || high[i])
            dim = i;
    }
    return dim;
}

/* Arrays put side by side by adding: what the gradient of taking slices looks like. */
fx_node *fx_make_add_of_pads(const fx_match *m) {
    const fx_node *a = m->root->in[0], *b = m->root->in[1];
    int dim = padded_dim(a);
    if (dim < 0 || dim != padded_dim(b))
        return NULL;
    if (FX_GET_LIST(a, low, NULL)[dim] > FX_GET_LIST(b, low, NULL)[dim]) {
        const fx_node *t = a;
        a = b;
        b = t;
    }
    int64_t start = FX_GET_LIST(a, low, NULL)[dim], end = start + a->in[0]->spec.dims[dim];
    int64_t next = FX_GET_LIST(b, low, NULL)[dim], zeros[FX_MAX_RANK] = {0}, low[FX_MAX_RANK] = {0},
            high[FX_MAX_RANK] = {0};
    if (next < end)
        return NULL;
    fx_spec gap = a->in[0]->spec;
    gap.dims[dim] = next - end;
    fx_node *in[3] = {a->in[0], fx_b_zeros(m->g, &gap), b->in[0]};
    if (next == end)
        in[1] = b->in[0];
    low[dim] = start;
    high[dim] = FX_GET_LIST(b, high, NULL)[dim];
    fx_node *row = fx_b_concatenate(m->g, next == end ? 2 : 3, in, dim);
    return fx_b_pad(m->g, row, fx_b_scalar(m->g, a->spec.dtype, 0), low, high, zeros);
}

enum { MAX_CONCATENATED = 64 };

fx_node *fx_make_concatenate_of_empty(const fx_match *m) {
    fx_node *in[MAX_CONCATENATED];
    int64_t dim = FX_GET_INT(m->root, dim);
    int n = 0;
    if (m->root->n_in > MAX_CONCATENATED)
        return NULL;
    for (int i = 0; i < m->root->n_in; i++)
        if (m->root->in[i]->spec.dims[dim])
            in[n++] = m->root->in[i];
    return n && n < m->root->n_in ? fx_b_concatenate(m->g, n, in, dim) : NULL;
}

fx_node *fx_make_concatenate_of_concatenate(const fx_match *m) {
    fx_node *in[MAX_CONCATENATED];
    int64_t dim = FX_GET_INT(m->root, dim);
    int n = 0;
    bool nested = false;
    for (int i = 0; i < m->root->n_in; i++) {
        fx_node *x = m->root->in[i];
        bool inner = x->op == FX_OP_concatenate && FX_GET_INT(x, dim) == dim;
        if (n + (inner ? x->n_in : 1) > MAX_CONCATENATED)
            return NULL;
        nested |= inner;
        for (int j = 0; j < (inner ? x->n_in : 1); j++)
            in[n++] = inner ? x->in[j] : x;
    }
    return nested ? fx_b_concatenate(m->g, n, in, dim) : NULL;
}

/* Constant indices, clamped: a plain slice; of the whole: the operand. */
fx_node *fx_make_dynamic_slice_constant(const fx_match *m) {
    fx_node *n = m->root, *x = n->in[0];
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK];
    for (int i = 0; i < x->spec.rank; i++) {
        int64_t room = x->spec.dims[i] - n->spec.dims[i];
        double v = 0;
        if (room && !fx_node_splat(n->in[1 + i], &v))
            return NULL;
        start[i] = v <= 0 ? 0 : v >= (double)room ? room : imin((int64_t)v, room);
        limit[i] = start[i] + n->spec.dims[i];
    }
    return fx_b_slice(m->g, x, start, limit, NULL);
}

fx_node *fx_make_dynamic_update_whole(const fx_match *m) {
    return fx_spec_equal(&m->root->in[1]->spec, &m->root->spec) ? m->root->in[1] : NULL;
}
