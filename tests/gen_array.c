/* gen_array.c - the generator's steps on whole arrays: layout, reductions, contractions, indexing, order. */
#include <math.h>

#include "core/graph/build.h"
#include "tests/gen_pool.h"

void gen_layout(gen *t) {
    gen_value x = gen_any(t);
    const fx_spec s = x.n->spec;
    int r = s.rank;
    int64_t a[FX_MAX_RANK] = {0}, b[FX_MAX_RANK] = {0}, c[FX_MAX_RANK] = {0};
    fx_node *n = NULL;
    switch (gen_pick(t, 9)) {
    case 0: /* broadcast: a new leading dim */
        for (int i = 0; i < r; i++)
            a[i + 1] = s.dims[i], b[i] = i + 1;
        a[0] = 1 + gen_pick(t, t->o.max_dim);
        n = r < t->o.max_rank ? fx_b_broadcast(t->g, x.n, r + 1, a, b) : NULL;
        break;
    case 1:
        a[0] = fx_spec_count(&s);
        n = fx_b_reshape(t->g, x.n, 1, a);
        break;
    case 2:
        for (int i = 0; i < r; i++)
            a[i] = (i + 1) % r;
        n = fx_b_transpose(t->g, x.n, a);
        break;
    case 3:
        for (int i = 0; i < r; i++) {
            a[i] = gen_pick(t, s.dims[i]);
            b[i] = a[i] + 1 + gen_pick(t, s.dims[i] - a[i]);
            c[i] = 1 + gen_pick(t, 2);
        }
        n = fx_b_slice(t->g, x.n, a, b, c);
        break;
    case 4:
        for (int i = 0; i < r; i++)
            a[i] = gen_pick(t, 3) - (s.dims[i] > 2), b[i] = gen_pick(t, 2), c[i] = gen_pick(t, 2);
        n = fx_b_pad(t->g, x.n, fx_b_scalar(t->g, s.dtype, 1), a, b, c);
        break;
    case 5: {
        fx_node *in[] = {x.n, x.n};
        gen_value y = gen_like(t, &s, x.exact);
        in[gen_pick(t, 2)] = y.n;
        x.bound = fmax(x.bound, y.bound);
        x.exact &= y.exact;
        n = r ? fx_b_concatenate(t->g, 2, in, gen_pick(t, r)) : NULL;
        break;
    }
    case 6:
        for (int i = 0; i < r; i++)
            a[i] = i;
        n = r ? fx_b_reverse(t->g, x.n, 1 + (int)gen_pick(t, r), a) : NULL;
        break;
    case 7:
        if (r && s.dtype != FX_BOOL && gen_allowed(t, FX_OP_iota, s.dtype))
            gen_keep(t, fx_b_iota(t->g, &s, gen_pick(t, r)), (double)t->o.max_dim * 8, true);
        return;
    default: {
        fx_node *in[] = {x.n, fx_b_scalar(t->g, s.dtype, 1)};
        for (int i = 0; i < r; i++)
            a[i] = 1 + gen_pick(t, s.dims[i]), b[i] = 1 + gen_pick(t, 2), c[i] = gen_pick(t, 2);
        if (r && r <= 2 && gen_allowed(t, FX_OP_windows, s.dtype))
            n = BUILD(t, windows, 2, in, FX_LIST(window, r, a), FX_LIST(strides, r, b), FX_LIST(low, r, c),
                      FX_LIST(high, r, c));
    }
    }
    if (n && gen_allowed(t, n->op, s.dtype))
        gen_keep(t, n, x.bound, x.exact);
}

void gen_reduction(gen *t) {
    gen_value x = gen_any(t);
    const fx_spec s = x.n->spec;
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_max, FX_SYM_min, FX_SYM_prod,
                                      FX_SYM_and, FX_SYM_or,  FX_SYM_xor};
    fx_symbol kind = kinds[gen_pick(t, gen_is_float(x.n) ? 3 : 7)];
    bool adds = kind == FX_SYM_sum || kind == FX_SYM_prod, bits = kind >= FX_SYM_and && kind <= FX_SYM_xor;
    int r = s.rank;
    int64_t a[FX_MAX_RANK], b[FX_MAX_RANK], dim = gen_pick(t, r);
    fx_attr how = FX_INT(kind, kind);
    if (!r || (s.dtype == FX_BOOL && adds))
        return;
    for (int i = 0; i < r; i++)
        a[i] = 1 + gen_pick(t, s.dims[i]), b[i] = 1 + gen_pick(t, 2);
    double bound = gen_is_float(x.n) && adds ? x.bound * (double)fx_spec_count(&s) : x.bound;
    bool exact = x.exact && (!gen_is_float(x.n) || !adds);
    switch (gen_pick(t, 5)) {
    case 0:
        if (gen_allowed(t, FX_OP_reduce, s.dtype))
            gen_keep(t, fx_b_reduce(t->g, x.n, kind, 1, &dim), bound, exact);
        break;
    case 1:
        if (!bits && s.dtype != FX_BOOL && gen_allowed(t, FX_OP_cumulative, s.dtype))
            gen_keep(t, BUILD(t, cumulative, 1, &x.n, how, FX_INT(dim, dim), FX_INT(reverse, gen_pick(t, 2))), bound,
                     exact);
        break;
    case 2:
        if (!bits && s.dtype != FX_BOOL && gen_allowed(t, FX_OP_reduce_window, s.dtype))
            gen_keep(t, BUILD(t, reduce_window, 1, &x.n, how, FX_LIST(window, r, a), FX_LIST(strides, r, b)), bound,
                     exact);
        break;
    case 3:
        if (x.exact && s.dtype != FX_BOOL && gen_allowed(t, FX_OP_arg_reduce, FX_S32))
            gen_keep(t, BUILD(t, arg_reduce, 1, &x.n, FX_SYM(kind, max), FX_INT(dim, dim), FX_INT(dtype, FX_S32)), 1e30,
                     true);
        break;
    default:
        if (x.exact && s.dtype != FX_BOOL && gen_allowed(t, FX_OP_select_and_scatter, s.dtype)) {
            fx_node *w =
                BUILD(t, reduce_window, 1, &x.n, FX_SYM(kind, max), FX_LIST(window, r, a), FX_LIST(strides, r, b));
            fx_node *in[] = {x.n, w};
            gen_keep(
                t,
                BUILD(t, select_and_scatter, 2, in, FX_SYM(kind, max), FX_LIST(window, r, a), FX_LIST(strides, r, b)),
                x.bound * (double)fx_spec_count(&s), !gen_is_float(x.n));
        }
    }
}

void gen_contraction(gen *t) {
    gen_value x = gen_tame(t, gen_any(t), 8);
    fx_spec s = x.n->spec;
    int64_t last = s.rank - 1, zero = 0;
    if (!s.rank || s.dtype == FX_BOOL)
        return;
    fx_spec ys = {s.dtype, 2, {s.dims[last], 1 + gen_pick(t, t->o.max_dim)}};
    double bound = 64 * (double)s.dims[last];
    if (gen_pick(t, 3)) {
        gen_value y = gen_tame(t, gen_like(t, &ys, false), 8);
        fx_node *in[] = {x.n, y.n};
        if (gen_allowed(t, FX_OP_dot_general, s.dtype))
            gen_keep(t, BUILD(t, dot_general, 2, in, FX_LIST(lhs_contract, 1, &last), FX_LIST(rhs_contract, 1, &zero)),
                     bound, !gen_is_float(x.n));
    } else if (s.rank >= 3 && gen_allowed(t, FX_OP_convolution, s.dtype)) { /* batch, feature, spatial... */
        fx_spec ws = {s.dtype, s.rank, {1 + gen_pick(t, 3), s.dims[1]}};
        int64_t one[FX_MAX_RANK], stride[FX_MAX_RANK];
        bound = 64 * (double)s.dims[1];
        for (int i = 2; i < s.rank; i++) {
            ws.dims[i] = 1 + gen_pick(t, 3);
            bound *= (double)ws.dims[i];
            one[i - 2] = 1;
            stride[i - 2] = 1 + gen_pick(t, 2);
        }
        gen_value w = gen_tame(t, gen_like(t, &ws, false), 8);
        fx_node *in[] = {x.n, w.n};
        gen_keep(t,
                 BUILD(t, convolution, 2, in, FX_LIST(low, s.rank - 2, one), FX_LIST(high, s.rank - 2, one),
                       FX_LIST(strides, s.rank - 2, stride)),
                 bound, !gen_is_float(x.n));
    }
}

void gen_indexing(gen *t) {
    gen_value x = gen_any(t);
    fx_spec s = x.n->spec, is = {FX_S32, 1, {1 + gen_pick(t, 4)}}, us = s, scalar = {FX_S32, 0, {0}};
    int r = s.rank;
    int64_t sizes[FX_MAX_RANK], rest[FX_MAX_RANK], zero = 0;
    if (!r)
        return;
    fx_node *in[2 + FX_MAX_RANK] = {x.n, gen_like(t, &is, true).n};
    us.dims[0] = is.dims[0];
    for (int i = 0; i < r; i++)
        sizes[i] = i ? s.dims[i] : 1, rest[i] = i + 1;
    switch (gen_pick(t, 4)) {
    case 0: /* rows of x */
        if (gen_allowed(t, FX_OP_gather, s.dtype))
            gen_keep(t,
                     BUILD(t, gather, 2, in, FX_LIST(offset_dims, r - 1, rest), FX_LIST(collapsed_slice_dims, 1, &zero),
                           FX_LIST(start_index_map, 1, &zero), FX_INT(index_vector_dim, 1),
                           FX_LIST(slice_sizes, r, sizes)),
                     x.bound, x.exact);
        break;
    case 1: {
        gen_value u = gen_like(t, &us, x.exact);
        bool add = s.dtype != FX_BOOL && gen_pick(t, 2);
        fx_attr kind = add ? FX_SYM(kind, add) : FX_SYM(kind, set);
        in[2] = u.n;
        if (gen_allowed(t, FX_OP_scatter, s.dtype))
            gen_keep(t,
                     BUILD(t, scatter, 3, in, kind, FX_LIST(update_window_dims, r - 1, rest),
                           FX_LIST(inserted_window_dims, 1, &zero), FX_LIST(scatter_dims, 1, &zero),
                           FX_INT(index_vector_dim, 1)),
                     x.bound + u.bound * (double)is.dims[0], x.exact && u.exact && (!add || !gen_is_float(x.n)));
        break;
    }
    default: {
        bool update = gen_pick(t, 2);
        for (int i = 0; i < r; i++) {
            sizes[i] = us.dims[i] = 1 + gen_pick(t, s.dims[i]);
            in[i + 1 + update] = gen_like(t, &scalar, true).n;
        }
        gen_value u = update ? gen_like(t, &us, false) : x;
        if (update) {
            in[1] = u.n;
            if (gen_allowed(t, FX_OP_dynamic_update_slice, s.dtype))
                gen_keep(t, fx_build(t->g, FX_OP_dynamic_update_slice, r + 2, in, 0, NULL, 0, NULL),
                         fmax(x.bound, u.bound), x.exact && u.exact);
        } else if (gen_allowed(t, FX_OP_dynamic_slice, s.dtype)) {
            gen_keep(t, BUILD(t, dynamic_slice, r + 1, in, FX_LIST(shape, r, sizes)), x.bound, x.exact);
        }
    }
    }
}

void gen_ordering(gen *t) {
    gen_value x = gen_any(t);
    fx_spec s = x.n->spec, e = {s.dtype, 0, {0}}, params[] = {e, e};
    if (!s.rank || !x.exact || s.dtype == FX_BOOL)
        return;
    int64_t last = s.rank - 1, dim = gen_pick(t, s.rank);
    if (gen_pick(t, 2) && gen_allowed(t, FX_OP_top_k, s.dtype)) {
        fx_node *k = BUILD(t, top_k, 1, &x.n, FX_INT(k, 1 + gen_pick(t, s.dims[last])));
        gen_keep(t, fx_result(k, 0), x.bound, true);
        gen_keep(t, fx_result(k, 1), 1e30, true);
    } else if (!t->o.no_regions && gen_allowed(t, FX_OP_sort, s.dtype)) {
        fx_graph *less = fx_graph_new(NULL);
        fx_node *a = fx_graph_param(less, &params[0]), *b = fx_graph_param(less, &params[1]);
        fx_node *lt = fx_b_binary(less, gen_pick(t, 2) ? FX_OP_lt : FX_OP_gt, a, b);
        if (fx_graph_finish(less, 1, &lt, true) == FX_OK)
            gen_keep(t, fx_result(fx_build(t->g, FX_OP_sort, 1, &x.n, 1, &FX_INT(dim, dim), 1, &less), 0), x.bound,
                     true);
        fx_graph_unref(less);
    }
}

void gen_other(gen *t) {
    gen_value x = gen_any(t);
    fx_dtype d = x.n->spec.dtype;
    switch (gen_pick(t, 4)) {
    case 0:
        if (gen_allowed(t, FX_OP_stop_gradient, d))
            gen_keep(t, fx_build(t->g, FX_OP_stop_gradient, 1, &x.n, 0, NULL, 0, NULL), x.bound, x.exact);
        break;
    case 1:
        if (x.exact && d == FX_F32 && gen_allowed(t, FX_OP_bitcast_convert, FX_U32))
            gen_keep(t, BUILD(t, bitcast_convert, 1, &x.n, FX_INT(dtype, FX_U32)), 1e30, true);
        break;
    case 2:
        if (x.exact && gen_is_float(x.n) && gen_allowed(t, FX_OP_reduce_precision, d))
            gen_keep(
                t, BUILD(t, reduce_precision, 1, &x.n, FX_INT(exponent_bits, 5), FX_INT(mantissa_bits, gen_pick(t, 7))),
                x.bound * 2, true);
        break;
    default: {
        gen_value y = gen_any(t);
        fx_node *in[] = {x.n, y.n};
        fx_node *b = gen_allowed(t, FX_OP_optimization_barrier, d)
                         ? fx_build(t->g, FX_OP_optimization_barrier, 2, in, 0, NULL, 0, NULL)
                         : NULL;
        gen_keep(t, b ? fx_result(b, 0) : NULL, x.bound, x.exact);
    }
    }
}
