/* fold.c - trivial cases that fx_build answers with another node: views that change nothing, views of views, views of
 * splat constants, elementwise ops on them. A fold never changes a value, whatever the elements are (NaN included). */
#include <string.h>

#include "core/graph/node.h"

static const int64_t *list_of(const fx_rule *r, fx_attr_id id) {
    return fx_rule_attr(r, id)->u.list;
}

static bool all(const int64_t *v, int n, int64_t x) {
    for (int i = 0; i < n; i++)
        if (v[i] != x)
            return false;
    return true;
}

static bool counting(const int64_t *v, int n) {
    for (int i = 0; i < n; i++)
        if (v[i] != i)
            return false;
    return true;
}

/* Does the op return its only operand unchanged? */
static bool is_identity(const fx_rule *r) {
    const fx_spec *x = &r->in[0]->spec;
    switch (r->op) {
    case FX_OP_convert:
    case FX_OP_bitcast_convert:
    case FX_OP_reshape:
        return fx_spec_equal(x, &r->spec);
    case FX_OP_transpose:
        return counting(list_of(r, FX_ATTR_permutation), x->rank);
    case FX_OP_broadcast_in_dim:
        return fx_spec_equal(x, &r->spec) && counting(list_of(r, FX_ATTR_dims), x->rank);
    case FX_OP_slice:
        return fx_spec_equal(x, &r->spec); /* a smaller range or larger step is a smaller shape */
    case FX_OP_pad:
        return all(list_of(r, FX_ATTR_low), x->rank, 0) && all(list_of(r, FX_ATTR_high), x->rank, 0) &&
               all(list_of(r, FX_ATTR_interior), x->rank, 0);
    case FX_OP_concatenate:
        return r->n_in == 1;
    case FX_OP_reverse:
    case FX_OP_reduce:
        return fx_rule_attr(r, FX_ATTR_dims)->count == 0;
    case FX_OP_stop_gradient:
        return r->in[0]->op == FX_OP_stop_gradient;
    default:
        return false;
    }
}

/* A view of a view of the same kind as one view. */
static fx_node *merge(const fx_rule *r) {
    fx_node *x = r->in[0], *y = x->n_in ? x->in[0] : NULL;
    int64_t list[FX_MAX_RANK];
    if (x->op != r->op)
        return NULL;
    switch (r->op) {
    case FX_OP_reshape:
        return fx_build(r->g, FX_OP_reshape, 1, &y, 1, &FX_LIST(shape, r->spec.rank, r->spec.dims), 0, NULL);
    case FX_OP_transpose: {
        const int64_t *outer = list_of(r, FX_ATTR_permutation), *inner = FX_GET_LIST(x, permutation, NULL);
        for (int i = 0; i < r->spec.rank; i++)
            list[i] = inner[outer[i]];
        return fx_build(r->g, FX_OP_transpose, 1, &y, 1, &FX_LIST(permutation, r->spec.rank, list), 0, NULL);
    }
    case FX_OP_broadcast_in_dim: {
        const int64_t *outer = list_of(r, FX_ATTR_dims), *inner = FX_GET_LIST(x, dims, NULL);
        for (int i = 0; i < y->spec.rank; i++)
            list[i] = outer[inner[i]];
        const fx_attr attrs[] = {FX_LIST(shape, r->spec.rank, r->spec.dims), FX_LIST(dims, y->spec.rank, list)};
        return fx_build(r->g, FX_OP_broadcast_in_dim, 1, &y, 2, attrs, 0, NULL);
    }
    default:
        return NULL;
    }
}

static const fx_attr *splat(const fx_node *n) {
    const fx_attr *value = n->op == FX_OP_constant ? fx_attr_get(n, FX_ATTR_value) : NULL;
    return value && (size_t)value->count == fx_dtype_size(n->spec.dtype) ? value : NULL;
}

/* An op that only moves elements, applied to a splat: the same splat in another shape. */
static fx_node *moved_splat(const fx_rule *r) {
    const fx_attr *value = splat(r->in[0]);
    bool moves = r->op == FX_OP_reshape || r->op == FX_OP_transpose || r->op == FX_OP_broadcast_in_dim ||
                 r->op == FX_OP_slice || r->op == FX_OP_reverse || r->op == FX_OP_stop_gradient ||
                 (value && r->op == FX_OP_pad && splat(r->in[1]) && fx_attr_equal(value, splat(r->in[1])));
    if (!value || !moves)
        return NULL;
    bool source_empty =
        fx_spec_count(&r->in[0]->spec) == 0 && fx_spec_count(&r->spec) != 0; /* its value says nothing */
    if (source_empty)
        value = r->op == FX_OP_pad ? splat(r->in[1]) : NULL;
    if (!value)
        return NULL;
    const fx_attr attrs[] = {*value, FX_LIST(shape, r->spec.rank, r->spec.dims), FX_DTYPE_ATTR(r->spec.dtype)};
    return fx_build(r->g, FX_OP_constant, 0, NULL, 3, attrs, 0, NULL);
}

fx_node *fx_fold(const fx_rule *r) {
    if (!r->n_in)
        return NULL;
    if (is_identity(r))
        return r->in[0];
    fx_node *n = merge(r);
    if (!n)
        n = moved_splat(r);
    return n ? n : fx_fold_splat(r);
}
