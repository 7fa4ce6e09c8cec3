/* schedule_sort.c - sort and top_k by counting: each element finds how many come before it, which is its place.
 *
 * One kernel, stable, any comparator region, n comparisons an element. For lines of some thousands
 * elements; longer ones want a merge sort. */
#include "core/compile/schedule.h"

static bool match_sort(const fx_emit *e, const fx_group *g) {
    (void)e;
    return g->inner[0]->op == FX_OP_sort || g->inner[0]->op == FX_OP_top_k;
}

/* Is line element a (values xa) strictly before b? */
static fx_kx *before(fx_emit *e, const fx_node *n, fx_kx *const *a, fx_kx *const *b) {
    fx_kir *k = &e->k;
    if (n->op == FX_OP_top_k) { /* larger first, NaN first of all */
        fx_dtype d = n->in[0]->spec.dtype;
        fx_kx *gt = fx_k_op2(k, FX_OP_gt, d, a[0], b[0]), *x = a[0], *y = b[0];
        if (!fx_dtype_is_float(d))
            return gt;
        return fx_k_or(k, gt, fx_k_and(k, fx_k_fn(k, "is_nan", d, 1, &x), fx_k_not(k, fx_k_fn(k, "is_nan", d, 1, &y))));
    }
    fx_kx **args = fx_arena_alloc(k->arena, sizeof *args * 2 * (size_t)n->n_in), *r;
    if (!args) {
        k->failed = true;
        return fx_k_bool(k, false);
    }
    for (int j = 0; j < n->n_in; j++) {
        args[2 * j] = a[j];
        args[2 * j + 1] = b[j];
    }
    fx_lower_region(&e->lo, n->region[0], args, &r);
    return r;
}

static fx_status emit_sort(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    fx_node *n = g->inner[0];
    const fx_spec *s = &n->in[0]->spec;
    int dim = n->op == FX_OP_top_k ? s->rank - 1 : (int)FX_GET_INT(n, dim), n_op = n->op == FX_OP_top_k ? 1 : n->n_in;
    int64_t count = fx_spec_count(s), lanes = 64, groups = (count + lanes - 1) / lanes;
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *i = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, groups), lanes), fx_k_builtin(k, FX_KB_LOCAL, lanes)),
          *idx[FX_MAX_RANK];
    fx_kx **mine = fx_arena_alloc(k->arena, sizeof *mine * 2 * (size_t)n_op), **other = mine ? mine + n_op : NULL;
    if (!mine)
        k->failed = true;
    if (k->failed)
        return FX_OK;
    fx_k_if(k, fx_k_lt(k, i, fx_k_int(k, count)));
    i = fx_k_bound(k, i, 0, count - 1);
    fx_k_delinearise(k, i, s->rank, s->dims, idx);
    fx_kx *me = idx[dim];
    for (int j = 0; j < n_op; j++)
        mine[j] = fx_k_let(k, fx_lower_node(&e->lo, n->in[j], idx));
    fx_kx *rank = fx_k_mut(k, fx_k_int(k, 0));
    fx_kx *at = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, s->dims[dim]), 1, false);
    idx[dim] = at;
    for (int j = 0; j < n_op; j++)
        other[j] = fx_k_let(k, fx_lower_node(&e->lo, n->in[j], idx));
    fx_kx *first = before(e, n, other, mine), *after = before(e, n, mine, other);
    fx_k_if(k, fx_k_or(k, first, fx_k_and(k, fx_k_not(k, after), fx_k_lt(k, at, me))));
    fx_k_set(k, rank, fx_k_op2(k, FX_OP_add, FX_S32, rank, fx_k_int(k, 1)));
    fx_k_end(k);
    fx_k_end(k);
    int64_t kept = n->op == FX_OP_top_k ? FX_GET_INT(n, k) : s->dims[dim];
    fx_kx *place = fx_k_read(k, rank);
    if (kept < s->dims[dim])
        fx_k_if(k, fx_k_lt(k, place, fx_k_int(k, kept)));
    idx[dim] = fx_k_bound(k, place, 0, kept - 1);
    for (int r = 0; r < n->n_result; r++) {
        const fx_spec *out = &n->results[r];
        fx_kx *x = n->op == FX_OP_top_k && r == 1 ? fx_k_let(k, fx_k_cast(k, me, FX_S32)) : mine[r];
        fx_lower_store(&e->lo, (fx_value){n, r}, fx_k_linearise(k, out->rank, out->dims, idx), x);
    }
    if (kept < s->dims[dim])
        fx_k_end(k);
    fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_sort = {"sort.count", FX_GROUP_SPECIAL, match_sort, emit_sort};
