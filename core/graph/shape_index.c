/* shape_index.c - shape rules of dynamic slices, gather and scatter, with StableHLO's constraints. */
#include "core/graph/node.h"

/* Operands first.. are scalar integers of one type, one per dimension of operand 0. */
static bool index_scalars(fx_rule *r, int first) {
    int rank = r->n_in < 1 ? 0 : fx_rule_in(r, 0)->rank;
    if (r->n_in != first + rank)
        return fx_rule_fail(r, "operands; expected %d (an index for each dimension); got %d", first + rank, r->n_in);
    for (int i = first; i < r->n_in; i++) {
        const fx_spec *s = fx_rule_in(r, i);
        if (s->rank || !fx_dtype_is_int(s->dtype) || s->dtype != fx_rule_in(r, first)->dtype)
            return fx_rule_fail(r, "operand %d; expected an integer scalar like the other indices; got %s", i,
                                fx_spec_text(s));
    }
    return true;
}

bool fx_shape_dynamic_slice(fx_rule *r) {
    if (!index_scalars(r, 1))
        return false;
    const fx_spec *x = fx_rule_in(r, 0);
    if (!fx_take_shape(r, x->dtype, &r->spec))
        return false;
    bool fits = r->spec.rank == x->rank;
    for (int i = 0; fits && i < x->rank; i++)
        fits = r->spec.dims[i] <= x->dims[i];
    return fits || fx_rule_fail(r, "attribute shape; expected a window that fits in %s; got %s", fx_spec_text(x),
                                fx_spec_text(&r->spec));
}

bool fx_shape_dynamic_update_slice(fx_rule *r) {
    if (r->n_in < 2)
        return fx_rule_fail(r, "operands; expected an array, an update and indices; got %d", r->n_in);
    if (!index_scalars(r, 2))
        return false;
    const fx_spec *x = fx_rule_in(r, 0), *u = fx_rule_in(r, 1);
    bool fits = u->rank == x->rank && u->dtype == x->dtype;
    for (int i = 0; fits && i < x->rank; i++)
        fits = u->dims[i] <= x->dims[i];
    return (fits || fx_rule_fail(r, "operand 1; expected an update that fits in %s; got %s", fx_spec_text(x),
                                 fx_spec_text(u))) &&
           fx_rule_like(r, x);
}

static bool contains(int n, const int64_t *v, int64_t x) {
    for (int i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static bool disjoint(fx_rule *r, const char *a_name, int na, const int64_t *a, const char *b_name, int nb,
                     const int64_t *b) {
    for (int i = 0; i < na; i++)
        if (contains(nb, b, a[i]))
            return fx_rule_fail(r, "attributes %s and %s; expected no dimension in both; got %lld", a_name, b_name,
                                (long long)a[i]);
    return true;
}

/* What gather and scatter share: the index space. */
typedef struct index_dims {
    int n_gone, n_batch, n_index_batch, n_map, n_batch_sizes;
    const int64_t *gone, *batch, *index_batch, *map; /* gone: collapsed or inserted */
    int64_t vector_dim;
    int64_t batch_sizes[FX_MAX_RANK]; /* indices' dims without the index vector */
} index_dims;

static bool take_index_dims(fx_rule *r, fx_attr_id gone, fx_attr_id map, index_dims *d) {
    const fx_spec *x = fx_rule_in(r, 0), *indices = fx_rule_in(r, 1);
    if (!fx_dtype_is_int(indices->dtype))
        return fx_rule_fail(r, "operand 1; expected integer indices; got %s", fx_spec_text(indices));
    if (!fx_take_int(r, FX_ATTR_index_vector_dim, 0, indices->rank, &d->vector_dim) ||
        !fx_take_dims(r, gone, x->rank, FX_ORDER_MUST_BE_SORTED, &d->n_gone, &d->gone) ||
        !fx_take_dims(r, FX_ATTR_operand_batching_dims, x->rank, FX_ORDER_MUST_BE_SORTED, &d->n_batch, &d->batch) ||
        !fx_take_dims(r, FX_ATTR_indices_batching_dims, indices->rank, FX_ORDER_KEPT, &d->n_index_batch,
                      &d->index_batch) ||
        !fx_take_dims(r, map, x->rank, FX_ORDER_KEPT, &d->n_map, &d->map) ||
        !disjoint(r, fx_attr_name(gone), d->n_gone, d->gone, "operand_batching_dims", d->n_batch, d->batch) ||
        !disjoint(r, fx_attr_name(map), d->n_map, d->map, "operand_batching_dims", d->n_batch, d->batch) ||
        !disjoint(r, "indices_batching_dims", d->n_index_batch, d->index_batch, "index_vector_dim", 1, &d->vector_dim))
        return false;
    int64_t length = d->vector_dim < indices->rank ? indices->dims[d->vector_dim] : 1;
    if (length != d->n_map)
        return fx_rule_fail(r, "attribute %s; expected %lld entries, the length of an index vector; got %d",
                            fx_attr_name(map), (long long)length, d->n_map);
    if (d->n_batch != d->n_index_batch)
        return fx_rule_fail(r, "attribute indices_batching_dims; expected %d as for the operand; got %d", d->n_batch,
                            d->n_index_batch);
    for (int i = 0; i < d->n_batch; i++)
        if (x->dims[d->batch[i]] != indices->dims[d->index_batch[i]])
            return fx_rule_fail(r, "batching dimension %d; expected equal sizes; got %lld and %lld", i,
                                (long long)x->dims[d->batch[i]], (long long)indices->dims[d->index_batch[i]]);
    d->n_batch_sizes = 0;
    for (int i = 0; i < indices->rank; i++)
        if (i != d->vector_dim)
            d->batch_sizes[d->n_batch_sizes++] = indices->dims[i];
    return true;
}

bool fx_shape_gather(fx_rule *r) {
    const fx_spec *x = fx_rule_in(r, 0);
    index_dims d;
    int n_offset;
    const int64_t *offset, *sizes;
    if (!take_index_dims(r, FX_ATTR_collapsed_slice_dims, FX_ATTR_start_index_map, &d) ||
        !fx_take_list(r, FX_ATTR_slice_sizes, x->rank, 0, INT64_MAX, &sizes))
        return false;
    int kept = x->rank - d.n_gone - d.n_batch, rank = kept + d.n_batch_sizes;
    if (rank > FX_MAX_RANK)
        return fx_rule_fail(r, "result; expected at most %d dimensions; got %d", FX_MAX_RANK, rank);
    if (!fx_take_dims(r, FX_ATTR_offset_dims, rank, FX_ORDER_MUST_BE_SORTED, &n_offset, &offset))
        return false;
    if (n_offset != kept)
        return fx_rule_fail(
            r,
            "attribute offset_dims; expected %d, the operand's dimensions that are neither collapsed nor "
            "batching; got %d",
            kept, n_offset);
    int64_t dims[FX_MAX_RANK];
    for (int i = 0, o = 0, b = 0, k = 0; i < rank; i++) {
        if (o < n_offset && offset[o] == i) {
            while (contains(d.n_gone, d.gone, k) || contains(d.n_batch, d.batch, k))
                k++;
            dims[i] = sizes[k++];
            o++;
        } else
            dims[i] = d.batch_sizes[b++];
    }
    bool empty = false;
    for (int i = 0; i < rank; i++)
        empty |= dims[i] == 0;
    for (int i = 0; i < x->rank; i++) {
        bool single = contains(d.n_gone, d.gone, i) || contains(d.n_batch, d.batch, i);
        if (sizes[i] > x->dims[i] || (single && (sizes[i] > 1 || (!sizes[i] && !empty))))
            return fx_rule_fail(r, "attribute slice_sizes[%d]; expected at most %lld%s; got %lld", i,
                                (long long)x->dims[i], single ? ", and 1 as the dimension is dropped" : "",
                                (long long)sizes[i]);
    }
    return fx_rule_result(r, x->dtype, rank, dims);
}

bool fx_shape_scatter(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_set, FX_SYM_add, FX_SYM_mul, FX_SYM_min, FX_SYM_max, FX_SYM_COUNT};
    const fx_spec *x = fx_rule_in(r, 0), *u = fx_rule_in(r, 2);
    index_dims d;
    fx_symbol kind;
    int n_window;
    const int64_t *window;
    if (!fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_COUNT, &kind) ||
        !take_index_dims(r, FX_ATTR_inserted_window_dims, FX_ATTR_scatter_dims, &d) ||
        !fx_take_dims(r, FX_ATTR_update_window_dims, u->rank, FX_ORDER_MUST_BE_SORTED, &n_window, &window))
        return false;
    if (u->dtype != x->dtype || (x->dtype == FX_BOOL && (kind == FX_SYM_add || kind == FX_SYM_mul)))
        return fx_rule_fail(r, "operands 0 and 2; expected one type%s; got %s and %s",
                            kind == FX_SYM_add || kind == FX_SYM_mul ? " of numbers" : "", fx_spec_text(x),
                            fx_spec_text(u));
    if (n_window != x->rank - d.n_gone - d.n_batch)
        return fx_rule_fail(
            r,
            "attribute update_window_dims; expected %d, the operand's dimensions that are neither inserted "
            "nor batching; got %d",
            x->rank - d.n_gone - d.n_batch, n_window);
    if (u->rank != n_window + d.n_batch_sizes)
        return fx_rule_fail(r, "operand 2; expected rank %d; got %s", n_window + d.n_batch_sizes, fx_spec_text(u));
    for (int i = 0, w = 0, b = 0, k = 0; i < u->rank; i++) {
        if (w < n_window && window[w] == i) {
            while (contains(d.n_gone, d.gone, k) || contains(d.n_batch, d.batch, k))
                k++;
            if (u->dims[i] > x->dims[k])
                return fx_rule_fail(r, "operand 2 dimension %d; expected at most the operand's %lld; got %lld", i,
                                    (long long)x->dims[k], (long long)u->dims[i]);
            k++;
            w++;
        } else if (u->dims[i] != d.batch_sizes[b++])
            return fx_rule_fail(r, "operand 2 dimension %d; expected the indices' %lld; got %lld", i,
                                (long long)d.batch_sizes[b - 1], (long long)u->dims[i]);
    }
    return fx_rule_like(r, x);
}
