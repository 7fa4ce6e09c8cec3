/* gen.c - the generator of random graphs. See gen.h for what it guarantees.
 *
 * A pool holds the values made so far, each with a bound on its magnitude and whether it is exact: made by selection,
 * moves and integer arithmetic only. Each step picks a random op and operands from the pool that suit it. */
#include "tests/gen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"

enum { POOL = 160, MOST_REGIONS = 2 };

typedef struct value {
    fx_node *n;
    double bound;
    bool exact;
} value;

typedef struct gen {
    fx_graph *g;
    uint64_t seed;
    gen_options o;
    value v[POOL];
    int n, depth;
} gen;

static uint64_t next(gen *t) {
    t->seed += 0x9e3779b97f4a7c15u;
    uint64_t z = t->seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t pick(gen *t, int64_t n) {
    return n > 0 ? (int64_t)(next(t) % (uint64_t)n) : 0;
}

static bool allowed(const gen *t, fx_op op, fx_dtype d) {
    return !t->o.allows || t->o.allows(op, d);
}

static bool is_float(const fx_node *n) {
    return fx_dtype_is_float(n->spec.dtype);
}

static void keep(gen *t, fx_node *n, double bound, bool exact) {
    if (n && t->n < POOL && fx_spec_count(&n->spec) <= 2000)
        t->v[t->n++] = (value){n, bound, exact};
}

static fx_spec random_spec(gen *t, fx_dtype d) {
    fx_spec s = {d, (int)pick(t, t->o.max_rank + 1), {0}};
    for (int i = 0; i < s.rank; i++)
        s.dims[i] = 1 + pick(t, t->o.max_dim);
    return s;
}

static fx_dtype random_dtype(gen *t) {
    return t->o.n_dtype ? t->o.dtypes[pick(t, t->o.n_dtype)] : (fx_dtype)pick(t, FX_DTYPE_COUNT);
}

/* Recent values are likelier, so that graphs grow deep. */
static value any(gen *t) {
    int64_t a = pick(t, t->n), b = pick(t, t->n);
    return t->v[a > b ? a : b];
}

static bool suits(value v, const fx_spec *s, bool exact) {
    return fx_spec_equal(&v.n->spec, s) && (v.exact || !exact);
}

/* A value of the spec: from the pool, or a constant. */
static value like(gen *t, const fx_spec *s, bool exact) {
    for (int tries = 0; tries < 12 && t->n; tries++) {
        value v = any(t);
        if (suits(v, s, exact))
            return v;
    }
    double c = s->dtype == FX_BOOL ? (double)pick(t, 2) : (double)pick(t, 4);
    return (value){fx_b_const_splat(t->g, s, c), 3, true};
}

/* x scaled so that it stays within limit. */
static value tame(gen *t, value x, double limit) {
    if (!is_float(x.n) || x.bound <= limit)
        return x;
    return (value){fx_b_binary_c(t->g, FX_OP_mul, x.n, limit / x.bound), limit, false};
}

/* |x| + 1/2 within about limit. */
static fx_node *positive(gen *t, value x, double limit) {
    return fx_b_binary_c(t->g, FX_OP_add, fx_b_unary(t->g, FX_OP_abs, tame(t, x, limit).n), 0.5);
}

static void float_unary(gen *t, fx_op op, value x) {
    double bound = 300;
    fx_node *n = x.n;
    switch (op) {
    case FX_OP_exp:
    case FX_OP_expm1:
        n = tame(t, x, 4).n, bound = 60;
        break;
    case FX_OP_tan:
        n = tame(t, x, 1).n, bound = 2;
        break;
    case FX_OP_erf_inv:
        n = tame(t, x, 0.9).n, bound = 2;
        break;
    case FX_OP_log:
    case FX_OP_log1p:
    case FX_OP_sqrt:
    case FX_OP_rsqrt:
    case FX_OP_cbrt:
    case FX_OP_lgamma:
    case FX_OP_digamma:
        n = positive(t, x, 4), bound = 5;
        break;
    case FX_OP_sin:
    case FX_OP_cos:
        n = tame(t, x, 8).n, bound = 1;
        break;
    case FX_OP_logistic:
    case FX_OP_tanh:
    case FX_OP_erf:
        bound = 1;
        break;
    case FX_OP_abs:
    case FX_OP_neg:
        keep(t, fx_b_unary(t->g, op, n), x.bound, x.exact);
        return;
    default: /* sign, floor, ceil, rounding: they jump */
        if (x.exact)
            keep(t, fx_b_unary(t->g, op, n), op == FX_OP_is_finite ? 1 : x.bound + 1, true);
        return;
    }
    keep(t, fx_b_unary(t->g, op, n), bound, false);
}

static void float_binary(gen *t, fx_op op, value x) {
    bool jumps = op == FX_OP_rem || fx_op_get(op)->bool_result, exact = false;
    value y = like(t, &x.n->spec, jumps);
    double bound = x.bound > y.bound ? x.bound : y.bound;
    if (jumps && !x.exact)
        return;
    if (op == FX_OP_div || op == FX_OP_atan2) {
        fx_node *d = positive(t, y, 8);
        keep(t, fx_b_binary(t->g, op, tame(t, x, 100).n, d), op == FX_OP_div ? 200 : 2, false);
        return;
    }
    if (op == FX_OP_pow) {
        keep(t, fx_b_binary(t->g, op, positive(t, x, 2), tame(t, y, 2).n), 7, false);
        return;
    }
    if (op == FX_OP_add || op == FX_OP_sub || op == FX_OP_mul) {
        x = tame(t, x, 15), y = tame(t, y, 15);
        bound = op == FX_OP_mul ? 225 : 30;
    } else if (op == FX_OP_rem) {
        y.n = fx_b_binary_c(t->g, FX_OP_add, fx_b_unary(t->g, FX_OP_abs, y.n), 1);
        exact = true;
    } else {
        exact = x.exact && y.exact;
    }
    keep(t, fx_b_binary(t->g, op, x.n, y.n), fx_op_get(op)->bool_result ? 1 : bound, exact || jumps);
}

static void elementwise(gen *t) {
    value x = any(t);
    fx_dtype d = x.n->spec.dtype;
    fx_op op = FX_OP_COUNT;
    for (int tries = 0; tries < 8 && (op == FX_OP_COUNT || !fx_op_takes(op, d)); tries++)
        op = (fx_op)pick(t, FX_OP_parameter); /* the rows before the structural ones */
    if (!fx_op_takes(op, d) || !allowed(t, op, fx_op_get(op)->bool_result ? FX_BOOL : d))
        return;
    int n_in = fx_op_get(op)->n_in;
    if (op == FX_OP_select) {
        fx_spec p = x.n->spec;
        p.dtype = FX_BOOL;
        value pred = like(t, &p, true), y = like(t, &x.n->spec, false);
        keep(t, fx_b_select(t->g, pred.n, x.n, y.n), fmax(x.bound, y.bound), x.exact && y.exact);
    } else if (op == FX_OP_clamp) {
        fx_node *in[] = {fx_b_like(x.n, fx_dtype_is_unsigned(d) ? 1 : -2), x.n, fx_b_like(x.n, 3)};
        keep(t, fx_b_elementwise(t->g, op, 3, in), 3, x.exact);
    } else if (is_float(x.n) && n_in == 1) {
        float_unary(t, op, x);
    } else if (is_float(x.n)) {
        float_binary(t, op, x);
    } else if (n_in == 1) {
        keep(t, fx_b_unary(t->g, op, x.n), 1e30, true);
    } else {
        keep(t, fx_b_binary(t->g, op, x.n, like(t, &x.n->spec, true).n), 1e30, true);
    }
}

static void convert(gen *t) {
    value x = any(t);
    fx_dtype d = random_dtype(t);
    if (!allowed(t, FX_OP_convert, d) || (is_float(x.n) && !fx_dtype_is_float(d) && !x.exact))
        return;
    if (!is_float(x.n) && fx_dtype_is_float(d) && x.n->spec.dtype != FX_BOOL) {
        bool s = fx_dtype_is_signed(x.n->spec.dtype);
        fx_node *in[] = {fx_b_like(x.n, s ? -8 : 0), x.n, fx_b_like(x.n, 8)};
        x = (value){fx_b_elementwise(t->g, FX_OP_clamp, 3, in), 8, true};
    }
    keep(t, fx_b_convert(t->g, x.n, d), fx_dtype_is_float(d) ? fmin(x.bound, 300) : 1e30, x.exact);
}

#define BUILD(t, name, n_in, in, ...)                                                                   \
    fx_build((t)->g, FX_OP_##name, n_in, in, (int)(sizeof((fx_attr[]){__VA_ARGS__}) / sizeof(fx_attr)), \
             (fx_attr[]){__VA_ARGS__}, 0, NULL)

static void layout(gen *t) {
    value x = any(t);
    const fx_spec s = x.n->spec;
    int r = s.rank;
    int64_t a[FX_MAX_RANK] = {0}, b[FX_MAX_RANK] = {0}, c[FX_MAX_RANK] = {0};
    fx_node *n = NULL;
    switch (pick(t, 9)) {
    case 0: /* broadcast: a new leading dim */
        for (int i = 0; i < r; i++)
            a[i + 1] = s.dims[i], b[i] = i + 1;
        a[0] = 1 + pick(t, t->o.max_dim);
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
            a[i] = pick(t, s.dims[i]);
            b[i] = a[i] + 1 + pick(t, s.dims[i] - a[i]);
            c[i] = 1 + pick(t, 2);
        }
        n = fx_b_slice(t->g, x.n, a, b, c);
        break;
    case 4:
        for (int i = 0; i < r; i++)
            a[i] = pick(t, 3) - (s.dims[i] > 2), b[i] = pick(t, 2), c[i] = pick(t, 2);
        n = fx_b_pad(t->g, x.n, fx_b_scalar(t->g, s.dtype, 1), a, b, c);
        break;
    case 5: {
        fx_node *in[] = {x.n, x.n};
        value y = like(t, &s, x.exact);
        in[pick(t, 2)] = y.n;
        x.bound = fmax(x.bound, y.bound);
        x.exact &= y.exact;
        n = r ? fx_b_concatenate(t->g, 2, in, pick(t, r)) : NULL;
        break;
    }
    case 6:
        for (int i = 0; i < r; i++)
            a[i] = i;
        n = r ? fx_b_reverse(t->g, x.n, 1 + (int)pick(t, r), a) : NULL;
        break;
    case 7:
        if (r && s.dtype != FX_BOOL && allowed(t, FX_OP_iota, s.dtype))
            keep(t, fx_b_iota(t->g, &s, pick(t, r)), (double)t->o.max_dim * 8, true);
        return;
    default: {
        fx_node *in[] = {x.n, fx_b_scalar(t->g, s.dtype, 1)};
        for (int i = 0; i < r; i++)
            a[i] = 1 + pick(t, s.dims[i]), b[i] = 1 + pick(t, 2), c[i] = pick(t, 2);
        if (r && r <= 2 && allowed(t, FX_OP_windows, s.dtype))
            n = BUILD(t, windows, 2, in, FX_LIST(window, r, a), FX_LIST(strides, r, b), FX_LIST(low, r, c),
                      FX_LIST(high, r, c));
    }
    }
    if (n && allowed(t, n->op, s.dtype))
        keep(t, n, x.bound, x.exact);
}

static void reduction(gen *t) {
    value x = any(t);
    const fx_spec s = x.n->spec;
    static const fx_symbol kinds[] = {FX_SYM_sum, FX_SYM_max, FX_SYM_min, FX_SYM_prod,
                                      FX_SYM_and, FX_SYM_or,  FX_SYM_xor};
    fx_symbol kind = kinds[pick(t, is_float(x.n) ? 3 : 7)];
    bool adds = kind == FX_SYM_sum || kind == FX_SYM_prod, bits = kind >= FX_SYM_and && kind <= FX_SYM_xor;
    int r = s.rank;
    int64_t a[FX_MAX_RANK], b[FX_MAX_RANK], dim = pick(t, r);
    fx_attr how = FX_INT(kind, kind);
    if (!r || (s.dtype == FX_BOOL && adds))
        return;
    for (int i = 0; i < r; i++)
        a[i] = 1 + pick(t, s.dims[i]), b[i] = 1 + pick(t, 2);
    double bound = is_float(x.n) && adds ? x.bound * (double)fx_spec_count(&s) : x.bound;
    bool exact = x.exact && (!is_float(x.n) || !adds);
    switch (pick(t, 5)) {
    case 0:
        if (allowed(t, FX_OP_reduce, s.dtype))
            keep(t, fx_b_reduce(t->g, x.n, kind, 1, &dim), bound, exact);
        break;
    case 1:
        if (!bits && s.dtype != FX_BOOL && allowed(t, FX_OP_cumulative, s.dtype))
            keep(t, BUILD(t, cumulative, 1, &x.n, how, FX_INT(dim, dim), FX_INT(reverse, pick(t, 2))), bound, exact);
        break;
    case 2:
        if (!bits && s.dtype != FX_BOOL && allowed(t, FX_OP_reduce_window, s.dtype))
            keep(t, BUILD(t, reduce_window, 1, &x.n, how, FX_LIST(window, r, a), FX_LIST(strides, r, b)), bound, exact);
        break;
    case 3:
        if (x.exact && s.dtype != FX_BOOL && allowed(t, FX_OP_arg_reduce, FX_S32))
            keep(t, BUILD(t, arg_reduce, 1, &x.n, FX_SYM(kind, max), FX_INT(dim, dim), FX_INT(dtype, FX_S32)), 1e30,
                 true);
        break;
    default:
        if (x.exact && s.dtype != FX_BOOL && allowed(t, FX_OP_select_and_scatter, s.dtype)) {
            fx_node *w =
                BUILD(t, reduce_window, 1, &x.n, FX_SYM(kind, max), FX_LIST(window, r, a), FX_LIST(strides, r, b));
            fx_node *in[] = {x.n, w};
            keep(t,
                 BUILD(t, select_and_scatter, 2, in, FX_SYM(kind, max), FX_LIST(window, r, a), FX_LIST(strides, r, b)),
                 x.bound * (double)fx_spec_count(&s), !is_float(x.n));
        }
    }
}

static void contraction(gen *t) {
    value x = tame(t, any(t), 8);
    fx_spec s = x.n->spec;
    int64_t last = s.rank - 1, zero = 0;
    if (!s.rank || s.dtype == FX_BOOL)
        return;
    fx_spec ys = {s.dtype, 2, {s.dims[last], 1 + pick(t, t->o.max_dim)}};
    double bound = 64 * (double)s.dims[last];
    if (pick(t, 3)) {
        value y = tame(t, like(t, &ys, false), 8);
        fx_node *in[] = {x.n, y.n};
        if (allowed(t, FX_OP_dot_general, s.dtype))
            keep(t, BUILD(t, dot_general, 2, in, FX_LIST(lhs_contract, 1, &last), FX_LIST(rhs_contract, 1, &zero)),
                 bound, !is_float(x.n));
    } else if (s.rank >= 3 && allowed(t, FX_OP_convolution, s.dtype)) { /* batch, feature, spatial... */
        fx_spec ws = {s.dtype, s.rank, {1 + pick(t, 3), s.dims[1]}};
        int64_t one[FX_MAX_RANK], stride[FX_MAX_RANK];
        bound = 64 * (double)s.dims[1];
        for (int i = 2; i < s.rank; i++) {
            ws.dims[i] = 1 + pick(t, 3);
            bound *= (double)ws.dims[i];
            one[i - 2] = 1;
            stride[i - 2] = 1 + pick(t, 2);
        }
        value w = tame(t, like(t, &ws, false), 8);
        fx_node *in[] = {x.n, w.n};
        keep(t,
             BUILD(t, convolution, 2, in, FX_LIST(low, s.rank - 2, one), FX_LIST(high, s.rank - 2, one),
                   FX_LIST(strides, s.rank - 2, stride)),
             bound, !is_float(x.n));
    }
}

static void indexing(gen *t) {
    value x = any(t);
    fx_spec s = x.n->spec, is = {FX_S32, 1, {1 + pick(t, 4)}}, us = s, scalar = {FX_S32, 0, {0}};
    int r = s.rank;
    int64_t sizes[FX_MAX_RANK], rest[FX_MAX_RANK], zero = 0;
    if (!r)
        return;
    fx_node *in[2 + FX_MAX_RANK] = {x.n, like(t, &is, true).n};
    us.dims[0] = is.dims[0];
    for (int i = 0; i < r; i++)
        sizes[i] = i ? s.dims[i] : 1, rest[i] = i + 1;
    switch (pick(t, 4)) {
    case 0: /* rows of x */
        if (allowed(t, FX_OP_gather, s.dtype))
            keep(t,
                 BUILD(t, gather, 2, in, FX_LIST(offset_dims, r - 1, rest), FX_LIST(collapsed_slice_dims, 1, &zero),
                       FX_LIST(start_index_map, 1, &zero), FX_INT(index_vector_dim, 1), FX_LIST(slice_sizes, r, sizes)),
                 x.bound, x.exact);
        break;
    case 1: {
        value u = like(t, &us, x.exact);
        bool add = s.dtype != FX_BOOL && pick(t, 2);
        fx_attr kind = add ? FX_SYM(kind, add) : FX_SYM(kind, set);
        in[2] = u.n;
        if (allowed(t, FX_OP_scatter, s.dtype))
            keep(t,
                 BUILD(t, scatter, 3, in, kind, FX_LIST(update_window_dims, r - 1, rest),
                       FX_LIST(inserted_window_dims, 1, &zero), FX_LIST(scatter_dims, 1, &zero),
                       FX_INT(index_vector_dim, 1)),
                 x.bound + u.bound * (double)is.dims[0], x.exact && u.exact && (!add || !is_float(x.n)));
        break;
    }
    default: {
        bool update = pick(t, 2);
        for (int i = 0; i < r; i++) {
            sizes[i] = us.dims[i] = 1 + pick(t, s.dims[i]);
            in[i + 1 + update] = like(t, &scalar, true).n;
        }
        value u = update ? like(t, &us, false) : x;
        if (update) {
            in[1] = u.n;
            if (allowed(t, FX_OP_dynamic_update_slice, s.dtype))
                keep(t, fx_build(t->g, FX_OP_dynamic_update_slice, r + 2, in, 0, NULL, 0, NULL), fmax(x.bound, u.bound),
                     x.exact && u.exact);
        } else if (allowed(t, FX_OP_dynamic_slice, s.dtype)) {
            keep(t, BUILD(t, dynamic_slice, r + 1, in, FX_LIST(shape, r, sizes)), x.bound, x.exact);
        }
    }
    }
}

static void grow(gen *t, int steps);

/* A region: parameters of these specs, results of the `want` specs, made from values within it (bounded by 4). */
static fx_graph *region(gen *t, int n, const fx_spec *params, int n_want, const fx_spec *want, bool exact,
                        int scalar_steps) {
    gen *sub = calloc(1, sizeof *sub);
    fx_node *results[8];
    if (!sub)
        return NULL;
    sub->g = fx_graph_new(NULL);
    sub->seed = next(t);
    sub->o = t->o;
    sub->depth = t->depth + 1;
    for (int i = 0; i < n; i++)
        keep(sub, fx_graph_param(sub->g, &params[i]), 4, exact || !fx_dtype_is_float(params[i].dtype));
    grow(sub, scalar_steps);
    for (int i = 0; i < n_want; i++) {
        value v = {NULL, 0, false};
        for (int k = sub->n; k-- > 0 && !v.n;)
            if (suits(sub->v[k], &want[i], exact || !fx_dtype_is_float(want[i].dtype)))
                v = sub->v[k];
        if (!v.n)
            v = like(sub, &want[i], true);
        if (v.bound > 4 && is_float(v.n)) {
            fx_node *in[] = {fx_b_like(v.n, -4), v.n, fx_b_like(v.n, 4)};
            v.n = fx_b_elementwise(sub->g, FX_OP_clamp, 3, in);
        }
        results[i] = v.n;
    }
    fx_graph *g = sub->g;
    if (fx_graph_finish(g, n_want, results, true) != FX_OK) {
        fx_graph_unref(g);
        g = NULL;
    }
    free(sub);
    return g;
}

static void ordering(gen *t) {
    value x = any(t);
    fx_spec s = x.n->spec, e = {s.dtype, 0, {0}}, params[] = {e, e};
    if (!s.rank || !x.exact || s.dtype == FX_BOOL)
        return;
    int64_t last = s.rank - 1, dim = pick(t, s.rank);
    if (pick(t, 2) && allowed(t, FX_OP_top_k, s.dtype)) {
        fx_node *k = BUILD(t, top_k, 1, &x.n, FX_INT(k, 1 + pick(t, s.dims[last])));
        keep(t, fx_result(k, 0), x.bound, true);
        keep(t, fx_result(k, 1), 1e30, true);
    } else if (!t->o.no_regions && allowed(t, FX_OP_sort, s.dtype)) {
        fx_graph *less = fx_graph_new(NULL);
        fx_node *a = fx_graph_param(less, &params[0]), *b = fx_graph_param(less, &params[1]);
        fx_node *lt = fx_b_binary(less, pick(t, 2) ? FX_OP_lt : FX_OP_gt, a, b);
        if (fx_graph_finish(less, 1, &lt, true) == FX_OK)
            keep(t, fx_result(fx_build(t->g, FX_OP_sort, 1, &x.n, 1, &FX_INT(dim, dim), 1, &less), 0), x.bound, true);
        fx_graph_unref(less);
    }
}

static void control(gen *t) {
    if (t->depth >= MOST_REGIONS || t->o.no_regions)
        return;
    value x = tame(t, any(t), 4), y = tame(t, any(t), 4);
    fx_spec specs[] = {x.n->spec, y.n->spec}, index = {FX_S32, 0, {0}};
    bool exact = x.exact && y.exact;
    fx_graph *r[3] = {NULL};
    fx_node *in[4] = {like(t, &index, true).n, x.n, y.n}, *n = NULL;
    switch (pick(t, 4)) {
    case 0:
        r[0] = region(t, 2, specs, 1, specs, exact, 4);
        if (r[0])
            n = fx_build(t->g, FX_OP_call, 2, in + 1, 1, &FX_SYM(kind, inline), 1, r);
        break;
    case 1:
        r[0] = region(t, 2, specs, 1, specs, exact, 3);
        r[1] = region(t, 2, specs, 1, specs, exact, 3);
        if (r[0] && r[1])
            n = fx_build(t->g, FX_OP_cond, 3, in, 0, NULL, 2, r);
        break;
    case 2: { /* y is the carry, x is scanned */
        if (!specs[0].rank)
            return;
        fx_spec slice = {specs[0].dtype, specs[0].rank - 1, {0}};
        memcpy(slice.dims, specs[0].dims + 1, sizeof *slice.dims * (size_t)slice.rank);
        fx_spec params[] = {specs[1], slice}, want[] = {specs[1], specs[1]};
        in[0] = y.n;
        r[0] = region(t, 2, params, 2, want, exact, 4);
        if (r[0])
            n = fx_build(t->g, FX_OP_scan, 2, in, 4,
                         (fx_attr[]){FX_INT(n_consts, 0), FX_INT(n_carry, 1), FX_INT(length, specs[0].dims[0]),
                                     FX_INT(reverse, pick(t, 2))},
                         1, r);
        if (n && specs[1].rank < t->o.max_rank)
            keep(t, fx_result(n, 1), 4, exact);
        break;
    }
    default: { /* a few rounds, counted by carry 0 */
        fx_spec params[] = {index, specs[0]};
        fx_graph *test = fx_graph_new(NULL), *body = NULL, *step = region(t, 1, specs, 1, specs, exact, 3);
        fx_node *i = fx_graph_param(test, &params[0]), *go = fx_b_binary_c(test, FX_OP_gt, i, 0), *out[2];
        fx_graph_param(test, &params[1]);
        body = fx_graph_new(NULL);
        i = fx_graph_param(body, &params[0]);
        fx_node *v = fx_graph_param(body, &params[1]);
        out[0] = fx_b_binary_c(body, FX_OP_sub, i, 1);
        if (step && fx_graph_inline(body, step, &v, &out[1]) == FX_OK && fx_graph_finish(test, 1, &go, true) == FX_OK &&
            fx_graph_finish(body, 2, out, true) == FX_OK) {
            fx_node *carry[] = {fx_b_scalar(t->g, FX_S32, (double)pick(t, 4)), x.n};
            n = fx_build(t->g, FX_OP_while, 2, carry, 1, &FX_INT(n_carry, 2), 2, (fx_graph *[]){test, body});
        }
        fx_graph_unref(test);
        fx_graph_unref(body);
        fx_graph_unref(step);
        keep(t, n ? fx_result(n, 1) : NULL, 4, exact);
        return;
    }
    }
    for (int k = 0; k < 2; k++)
        fx_graph_unref(r[k]);
    keep(t, n ? fx_result(n, 0) : NULL, 4, exact);
}

static void other(gen *t) {
    value x = any(t);
    fx_dtype d = x.n->spec.dtype;
    switch (pick(t, 4)) {
    case 0:
        if (allowed(t, FX_OP_stop_gradient, d))
            keep(t, fx_build(t->g, FX_OP_stop_gradient, 1, &x.n, 0, NULL, 0, NULL), x.bound, x.exact);
        break;
    case 1:
        if (x.exact && d == FX_F32 && allowed(t, FX_OP_bitcast_convert, FX_U32))
            keep(t, BUILD(t, bitcast_convert, 1, &x.n, FX_INT(dtype, FX_U32)), 1e30, true);
        break;
    case 2:
        if (x.exact && is_float(x.n) && allowed(t, FX_OP_reduce_precision, d))
            keep(t, BUILD(t, reduce_precision, 1, &x.n, FX_INT(exponent_bits, 5), FX_INT(mantissa_bits, pick(t, 7))),
                 x.bound * 2, true);
        break;
    default: {
        value y = any(t);
        fx_node *in[] = {x.n, y.n};
        fx_node *b = allowed(t, FX_OP_optimization_barrier, d)
                         ? fx_build(t->g, FX_OP_optimization_barrier, 2, in, 0, NULL, 0, NULL)
                         : NULL;
        keep(t, b ? fx_result(b, 0) : NULL, x.bound, x.exact);
    }
    }
}

static void fold(gen *t) {
    value x = any(t);
    fx_spec s = x.n->spec, e = {s.dtype, 0, {0}}, params[] = {e, e};
    int64_t dim = 0;
    if (!s.rank || t->o.no_regions || t->depth >= MOST_REGIONS || !allowed(t, FX_OP_reduce_fn, s.dtype) || x.bound > 4)
        return;
    fx_graph *f = region(t, 2, params, 1, params, x.exact, 3);
    fx_node *in[] = {x.n, fx_b_scalar(t->g, s.dtype, 1)};
    if (f)
        keep(t, fx_result(fx_build(t->g, FX_OP_reduce_fn, 2, in, 1, &FX_LIST(dims, 1, &dim), 1, &f), 0), 4, x.exact);
    fx_graph_unref(f);
}

static void grow(gen *t, int steps) {
    for (int tries = 0, start = t->n; t->n - start < steps && tries < 20 * steps && t->n && t->g->status == FX_OK;
         tries++)
        switch (pick(t, 20)) {
        case 0:
            convert(t);
            break;
        case 1:
        case 2:
        case 3:
            layout(t);
            break;
        case 4:
        case 5:
            reduction(t);
            break;
        case 6:
            contraction(t);
            break;
        case 7:
            indexing(t);
            break;
        case 8:
            ordering(t);
            break;
        case 9:
            control(t);
            break;
        case 10:
            other(t);
            break;
        case 11:
            fold(t);
            break;
        default:
            elementwise(t);
        }
}

fx_graph *gen_graph(uint64_t seed, const gen_options *o) {
    gen *t = calloc(1, sizeof *t);
    fx_node *results[3];
    if (!t)
        return NULL;
    if (o)
        t->o = *o;
    t->o.steps = t->o.steps ? t->o.steps : 12;
    t->o.max_dim = t->o.max_dim ? t->o.max_dim : 5;
    t->o.max_rank = t->o.max_rank ? t->o.max_rank : 3;
    t->seed = seed * 0x2545f4914f6cdd1du + 1;
    t->g = fx_graph_new(NULL);
    int params = 1 + (int)pick(t, 4), n = 1 + (int)pick(t, 3);
    for (int i = 0; i < params; i++) {
        fx_spec s = random_spec(t, random_dtype(t));
        keep(t, fx_graph_param(t->g, &s), 4, true);
    }
    grow(t, t->o.steps);
    for (int i = 0; i < n; i++)
        results[i] = i ? any(t).n : t->n ? t->v[t->n - 1].n : NULL;
    fx_graph *g = t->g;
    if (fx_graph_finish(g, n, results, true) != FX_OK) {
        fx_graph_unref(g);
        g = NULL;
    }
    free(t);
    return g;
}
