/* lower_reduce.c - reductions and products as inner loops: correct anywhere, fast nowhere. Schedules that
 * know better provide these values themselves; what they share (identities, steps, the operands of a
 * contraction) is here too. */
#include <math.h>

#include "core/compile/lower.h"

fx_op fx_reduce_op(fx_symbol kind) {
    switch (kind) {
    case FX_SYM_prod:
    case FX_SYM_mul:
        return FX_OP_mul;
    case FX_SYM_max:
        return FX_OP_max;
    case FX_SYM_min:
        return FX_OP_min;
    case FX_SYM_and:
        return FX_OP_and;
    case FX_SYM_or:
        return FX_OP_or;
    case FX_SYM_xor:
        return FX_OP_xor;
    default:
        return FX_OP_add;
    }
}

/* Least (or greatest) value of an element type. */
static fx_kx *extreme(fx_kir *k, fx_dtype d, bool least) {
    fx_dtype reg = fx_kir_register(d);
    if (fx_dtype_is_float(d))
        return fx_k_float(k, reg, least ? -(double)INFINITY : (double)INFINITY);
    int w = (int)fx_dtype_size(d) * 8;
    if (d == FX_BOOL || !fx_dtype_is_signed(d))
        return fx_k_const(k, reg, least ? 0 : d == FX_BOOL ? 1 : w == 64 ? -1 : ((int64_t)1 << w) - 1);
    int64_t top = w == 64 ? INT64_MAX : ((int64_t)1 << (w - 1)) - 1;
    return fx_k_const(k, reg, least ? -top - 1 : top);
}

fx_kx *fx_reduce_identity(fx_kir *k, fx_symbol kind, fx_dtype elem) {
    fx_dtype reg = fx_kir_register(elem);
    switch (fx_reduce_op(kind)) {
    case FX_OP_mul:
        return fx_k_number(k, reg, 1);
    case FX_OP_max:
        return extreme(k, elem, true);
    case FX_OP_min:
        return extreme(k, elem, false);
    case FX_OP_and:
        return fx_dtype_is_signed(elem) ? fx_k_const(k, reg, -1) : extreme(k, elem, false);
    default:
        return fx_k_number(k, reg, 0);
    }
}

/* Opens a loop for each of n dimensions; index[dims[j]] gets the variable. */
static void open_loops(fx_kir *k, int n, const int64_t *dims, const int64_t *sizes, fx_kx **index) {
    for (int j = 0; j < n; j++)
        index[dims[j]] = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, sizes[dims[j]]), 1, false);
}
static void close_loops(fx_kir *k, int n) {
    while (n--)
        fx_k_end(k);
}

/* Ends n loops around the combination of acc with `value`, which ran at least once, and gives the total. A literal
 * that combining once or often makes no difference to stays out of the loops: drivers fold such loops wrongly
 * (SwiftShader gives 0 for x = max(x, 1) in two nested ones). */
static fx_kx *total(fx_kir *k, fx_symbol kind, fx_dtype dtype, fx_kx *acc, fx_kx *identity, fx_kx *value, int n) {
    bool once = kind == FX_SYM_max || kind == FX_SYM_min || kind == FX_SYM_and || kind == FX_SYM_or;
    if (once && fx_kx_is_const(value)) {
        close_loops(k, n);
        return fx_k_op2(k, fx_reduce_op(kind), dtype, identity, value);
    }
    fx_k_set(k, acc, fx_k_op2(k, fx_reduce_op(kind), dtype, acc, value));
    close_loops(k, n);
    return fx_k_read(k, acc);
}

static void spread(const fx_node *x, int n, const int64_t *gone, fx_kx *const *index, fx_kx **out) {
    for (int d = 0, o = 0; d < x->spec.rank; d++) {
        bool is_gone = false;
        for (int j = 0; j < n; j++)
            is_gone |= gone[j] == d;
        out[d] = is_gone ? NULL : index[o++];
    }
}

static fx_kx *reduce(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0];
    int n_dims;
    const int64_t *dims = FX_GET_LIST(n, dims, &n_dims);
    fx_symbol kind = FX_GET_SYM(n);
    fx_kx *idx[FX_MAX_RANK], *identity = fx_reduce_identity(k, kind, n->spec.dtype);
    if (!fx_spec_count(&x->spec))
        return identity;
    spread(x, n_dims, dims, index, idx);
    fx_kx *acc = fx_k_mut(k, identity);
    open_loops(k, n_dims, dims, x->spec.dims, idx);
    return total(k, kind, n->spec.dtype, acc, identity, fx_lower_node(lo, x, idx), n_dims);
}

static fx_kx *reduce_fn(fx_lower *lo, fx_value v, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *n = v.node, *x = n->in[0];
    int n_dims, m = n->n_in / 2;
    const int64_t *dims = FX_GET_LIST(n, dims, &n_dims);
    fx_kx *idx[FX_MAX_RANK];
    fx_kx **acc = fx_arena_alloc(k->arena, sizeof *acc * (size_t)m * 4);
    if (!acc) {
        k->failed = true;
        return fx_k_int(k, 0);
    }
    fx_kx **args = acc + m, **results = acc + 3 * m;
    for (int j = 0; j < m; j++)
        acc[j] = fx_k_mut(k, fx_lower_node(lo, n->in[m + j], NULL));
    if (fx_spec_count(&x->spec)) {
        spread(x, n_dims, dims, index, idx);
        open_loops(k, n_dims, dims, x->spec.dims, idx);
        for (int j = 0; j < m; j++) {
            args[j] = fx_k_read(k, acc[j]);
            args[m + j] = fx_lower_node(lo, n->in[j], idx);
        }
        fx_lower_region(lo, n->region[0], args, results);
        for (int j = 0; j < m; j++)
            fx_k_set(k, acc[j], results[j]);
        close_loops(k, n_dims);
    }
    return fx_k_read(k, acc[v.result]);
}

static fx_kx *is_nan(fx_kir *k, fx_dtype d, fx_kx *x) {
    return fx_k_fn(k, "is_nan", d, 1, &x);
}

static fx_kx *arg_reduce(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0];
    int64_t dim = FX_GET_INT(n, dim);
    fx_symbol kind = FX_GET_SYM(n);
    fx_dtype d = x->spec.dtype;
    fx_kx *idx[FX_MAX_RANK];
    spread(x, 1, &dim, index, idx);
    fx_kx *best = fx_k_mut(k, fx_reduce_identity(k, kind, d));
    fx_kx *at = fx_k_mut(k, fx_k_int(k, 0));
    open_loops(k, 1, &dim, x->spec.dims, idx);
    fx_kx *e = fx_lower_node(lo, x, idx);
    fx_kx *better = fx_k_op2(k, kind == FX_SYM_max ? FX_OP_gt : FX_OP_lt, d, e, best);
    if (fx_dtype_is_float(d))
        better = fx_k_or(k, better, fx_k_and(k, is_nan(k, d, e), fx_k_not(k, is_nan(k, d, best))));
    fx_k_if(k, better);
    fx_k_set(k, best, e);
    fx_k_set(k, at, fx_k_cast(k, idx[dim], FX_S32));
    fx_k_end(k);
    close_loops(k, 1);
    fx_kx *r = fx_k_read(k, at);
    fx_dtype out = n->spec.dtype;
    return fx_dtype_size(out) < 4 ? fx_k_convert(k, r, FX_S32, out) : fx_k_cast(k, r, out);
}

static fx_kx *reduce_window(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0];
    int rank = x->spec.rank, loops = 0;
    const int64_t *low = FX_GET_LIST(n, low, NULL), *step = FX_GET_LIST(n, strides, NULL),
                  *win = FX_GET_LIST(n, window, NULL);
    const int64_t *ld = FX_GET_LIST(n, lhs_dilation, NULL), *rd = FX_GET_LIST(n, rhs_dilation, NULL);
    fx_symbol kind = FX_GET_SYM(n);
    fx_kx *idx[FX_MAX_RANK], *w[FX_MAX_RANK], *valid = fx_k_bool(k, true), *ok;
    fx_kx *identity = fx_reduce_identity(k, kind, n->spec.dtype), *acc = fx_k_mut(k, identity);
    for (int d = 0; d < rank; d++) {
        w[d] = fx_k_int(k, 0);
        if (win[d] > 1) {
            w[d] = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, win[d]), 1, false);
            loops++;
        }
    }
    for (int d = 0; d < rank; d++) {
        fx_kx *p = fx_k_add(k, fx_k_mulc(k, index[d], step[d]), fx_k_mulc(k, w[d], rd[d]));
        idx[d] = fx_lower_window(k, fx_k_addc(k, p, -low[d]), x->spec.dims[d], ld[d], &ok);
        valid = fx_k_and(k, valid, ok);
    }
    if (fx_spec_count(&x->spec)) {
        fx_kx *e = fx_k_select(k, valid, fx_lower_node(lo, x, idx), identity);
        return total(k, kind, n->spec.dtype, acc, identity, e, loops);
    }
    close_loops(k, loops);
    return fx_k_read(k, acc);
}

/* Each element sums the sources of the windows whose chosen element it is; windows in ascending order. */
static fx_kx *select_and_scatter(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0], *src = n->in[1];
    int rank = x->spec.rank, loops = 0, inner = 0;
    const int64_t *low = FX_GET_LIST(n, low, NULL), *step = FX_GET_LIST(n, strides, NULL),
                  *win = FX_GET_LIST(n, window, NULL);
    fx_dtype d0 = x->spec.dtype;
    fx_symbol kind = FX_GET_SYM(n);
    fx_kx *pos[FX_MAX_RANK], *base[FX_MAX_RANK], *idx[FX_MAX_RANK], *valid = fx_k_bool(k, true), *ok;
    fx_kx *acc = fx_k_mut(k, fx_k_number(k, fx_kir_register(d0), 0));
    if (!fx_spec_count(&src->spec))
        return fx_k_read(k, acc);
    for (int d = 0; d < rank; d++) { /* candidates: windows p with p*step - low <= i < p*step - low + win */
        int64_t candidates = (win[d] - 1) / step[d] + 1;
        fx_kx *c = fx_k_int(k, 0);
        if (candidates > 1) {
            c = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, candidates), 1, false);
            loops++;
        }
        fx_kx *top = fx_k_addc(k, index[d], low[d]), *zero = fx_k_int(k, 0);
        fx_kx *last = fx_k_div(k, fx_k_max(k, top, zero), step[d]);
        fx_kx *p = fx_k_add(k, fx_k_addc(k, last, 1 - candidates), c);
        valid = fx_k_and(k, valid,
                         fx_k_and(k, fx_k_le(k, zero, top),
                                  fx_k_and(k, fx_k_le(k, zero, p), fx_k_lt(k, p, fx_k_int(k, src->spec.dims[d])))));
        pos[d] = fx_lower_clamp(k, p, src->spec.dims[d]);
        base[d] = fx_k_addc(k, fx_k_mulc(k, pos[d], step[d]), -low[d]);
        valid = fx_k_and(k, valid, fx_k_lt(k, index[d], fx_k_addc(k, base[d], win[d])));
    }
    fx_k_if(k, valid);
    fx_kx *best = fx_k_mut(k, fx_k_number(k, fx_kir_register(d0), 0)), *any = fx_k_mut(k, fx_k_bool(k, false));
    fx_kx *mine = fx_k_mut(k, fx_k_bool(k, false)), *inside = fx_k_bool(k, true), *same = fx_k_bool(k, true);
    for (int d = 0; d < rank; d++) {
        fx_kx *w = fx_k_int(k, 0);
        if (win[d] > 1) {
            w = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, win[d]), 1, false);
            inner++;
        }
        fx_kx *p = fx_k_add(k, base[d], w);
        idx[d] = fx_lower_window(k, p, x->spec.dims[d], 1, &ok);
        inside = fx_k_and(k, inside, ok);
        same = fx_k_and(k, same, fx_k_eq(k, p, index[d]));
    }
    fx_kx *e = fx_lower_node(lo, x, idx);
    fx_kx *first = fx_k_not(k, any);
    fx_kx *better = fx_k_op2(k, kind == FX_SYM_max ? FX_OP_gt : FX_OP_lt, d0, e, best);
    fx_k_if(k, fx_k_and(k, inside, fx_k_or(k, first, better)));
    fx_k_set(k, best, e);
    fx_k_set(k, any, fx_k_bool(k, true));
    fx_k_set(k, mine, same);
    fx_k_end(k);
    close_loops(k, inner);
    fx_k_if(k, mine);
    fx_k_set(k, acc, fx_k_op2(k, FX_OP_add, d0, acc, fx_lower_node(lo, src, pos)));
    fx_k_end(k);
    fx_k_end(k);
    close_loops(k, loops);
    return fx_k_read(k, acc);
}

static fx_kx *cumulative(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_node *x = n->in[0];
    int dim = (int)FX_GET_INT(n, dim);
    bool rev = FX_GET_INT(n, reverse) != 0;
    fx_symbol kind = FX_GET_SYM(n);
    fx_kx *idx[FX_MAX_RANK], *acc = fx_k_mut(k, fx_reduce_identity(k, kind, n->spec.dtype));
    for (int d = 0; d < x->spec.rank; d++)
        idx[d] = index[d];
    fx_kx *steps = rev ? fx_k_sub(k, fx_k_int(k, x->spec.dims[dim]), index[dim]) : fx_k_addc(k, index[dim], 1);
    fx_kx *j = fx_k_for(k, fx_k_int(k, 0), steps, 1, false);
    idx[dim] = rev ? fx_lower_clamp(k, fx_k_sub(k, fx_k_int(k, x->spec.dims[dim] - 1), j), x->spec.dims[dim]) : j;
    fx_k_set(k, acc, fx_k_op2(k, fx_reduce_op(kind), n->spec.dtype, acc, fx_lower_node(lo, x, idx)));
    fx_k_end(k);
    return fx_k_read(k, acc);
}

/* ---- contractions ---- */

static bool listed(const int64_t *list, int n, int64_t d) {
    for (int j = 0; j < n; j++)
        if (list[j] == d)
            return true;
    return false;
}

static int64_t product(const int64_t *dims, const int64_t *list, int n) {
    int64_t p = 1;
    for (int j = 0; j < n; j++)
        p *= dims[list[j]];
    return p;
}

bool fx_contraction_of(fx_node *n, fx_contraction *c) {
    *c = (fx_contraction){.node = n, .batch = 1, .m = 1, .n = 1, .k = 1};
    if (n->op != FX_OP_dot_general && n->op != FX_OP_convolution)
        return false;
    const fx_spec *a = &n->in[0]->spec, *b = &n->in[1]->spec;
    c->in = a->dtype;
    c->out = n->spec.dtype;
    if (n->op == FX_OP_dot_general) {
        int nb, nk;
        const int64_t *lb = FX_GET_LIST(n, lhs_batch, &nb), *lk = FX_GET_LIST(n, lhs_contract, &nk);
        const int64_t *rb = FX_GET_LIST(n, rhs_batch, NULL), *rk = FX_GET_LIST(n, rhs_contract, NULL);
        c->batch = product(a->dims, lb, nb);
        c->k = product(a->dims, lk, nk);
        for (int d = 0; d < a->rank; d++)
            c->m *= listed(lb, nb, d) || listed(lk, nk, d) ? 1 : a->dims[d];
        for (int d = 0; d < b->rank; d++)
            c->n *= listed(rb, nb, d) || listed(rk, nk, d) ? 1 : b->dims[d];
        return true;
    }
    /* convolution: batch = groups, m = batch x positions, n = output features of a group, k = input features x window
     */
    const int64_t *rs = FX_GET_LIST(n, rhs_spec, NULL), *os = FX_GET_LIST(n, out_spec, NULL);
    int64_t fg = FX_GET_INT(n, feature_groups), bg = FX_GET_INT(n, batch_groups);
    c->batch = fg * bg;
    c->m = n->spec.dims[os[0]];
    c->n = n->spec.dims[os[1]] / c->batch;
    c->k = b->dims[rs[1]];
    for (int d = 2; d < a->rank; d++) {
        c->m *= n->spec.dims[os[d]];
        c->k *= b->dims[rs[d]];
    }
    return true;
}

/* Splits a linear position over the listed dimensions. */
static void place(fx_kir *k, fx_kx *linear, const int64_t *dims, const int64_t *list, int n, fx_kx **idx) {
    int64_t sizes[FX_MAX_RANK];
    fx_kx *part[FX_MAX_RANK];
    for (int j = 0; j < n; j++)
        sizes[j] = dims[list[j]];
    fx_k_delinearise(k, linear, n, sizes, part);
    for (int j = 0; j < n; j++)
        idx[list[j]] = part[j];
}

static int free_dims(const fx_spec *s, const int64_t *b, int nb, const int64_t *kk, int nk, int64_t *out) {
    int n = 0;
    for (int d = 0; d < s->rank; d++)
        if (!listed(b, nb, d) && !listed(kk, nk, d))
            out[n++] = d;
    return n;
}

/* An operand's element in the type that products are computed in. */
static fx_kx *factor(fx_lower *lo, const fx_contraction *c, fx_node *x, fx_kx *const *idx) {
    fx_kx *v = fx_lower_node(lo, x, idx);
    return c->in == c->out || (fx_dtype_is_float(c->in) && c->out != FX_F64 && c->in != FX_F64) ? v
           : fx_dtype_is_float(c->in) ? fx_k_cast(lo->k, v, fx_kir_register(c->out))
                                      : fx_k_convert(lo->k, v, c->in, c->out);
}

fx_kx *fx_contraction_a(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *m, fx_kx *kk) {
    fx_kir *k = lo->k;
    fx_node *n = c->node, *x = n->in[0];
    const fx_spec *s = &x->spec;
    fx_kx *idx[FX_MAX_RANK];
    int64_t rest[FX_MAX_RANK];
    if (n->op == FX_OP_dot_general) {
        int nb, nk;
        const int64_t *lb = FX_GET_LIST(n, lhs_batch, &nb), *lk = FX_GET_LIST(n, lhs_contract, &nk);
        int nm = free_dims(s, lb, nb, lk, nk, rest);
        place(k, b, s->dims, lb, nb, idx);
        place(k, m, s->dims, rest, nm, idx);
        place(k, kk, s->dims, lk, nk, idx);
        return factor(lo, c, x, idx);
    }
    int sp = s->rank - 2;
    const int64_t *ls = FX_GET_LIST(n, lhs_spec, NULL), *rs = FX_GET_LIST(n, rhs_spec, NULL),
                  *os = FX_GET_LIST(n, out_spec, NULL);
    const int64_t *low = FX_GET_LIST(n, low, NULL), *step = FX_GET_LIST(n, strides, NULL),
                  *rev = FX_GET_LIST(n, window_reversal, NULL);
    const int64_t *ld = FX_GET_LIST(n, lhs_dilation, NULL), *rd = FX_GET_LIST(n, rhs_dilation, NULL);
    int64_t fg = FX_GET_INT(n, feature_groups), bg = FX_GET_INT(n, batch_groups), msizes[FX_MAX_RANK],
            ksizes[FX_MAX_RANK];
    fx_kx *mi[FX_MAX_RANK], *ki[FX_MAX_RANK], *valid = fx_k_bool(k, true), *ok;
    msizes[0] = n->spec.dims[os[0]];
    ksizes[sp] = n->in[1]->spec.dims[rs[1]]; /* input features innermost: (window..., feature) */
    for (int d = 0; d < sp; d++) {
        msizes[1 + d] = n->spec.dims[os[2 + d]];
        ksizes[d] = n->in[1]->spec.dims[rs[2 + d]];
    }
    fx_k_delinearise(k, m, sp + 1, msizes, mi);
    fx_k_delinearise(k, kk, sp + 1, ksizes, ki);
    idx[ls[0]] = bg > 1 ? fx_k_add(k, fx_k_mulc(k, b, msizes[0]), mi[0]) : mi[0];
    idx[ls[1]] = fg > 1 ? fx_k_add(k, fx_k_mulc(k, b, ksizes[sp]), ki[sp]) : ki[sp];
    for (int d = 0; d < sp; d++) { /* ki counts along the input; B reads the reversed window */
        (void)rev;
        fx_kx *p = fx_k_add(k, fx_k_mulc(k, mi[1 + d], step[d]), fx_k_mulc(k, ki[d], rd[d]));
        idx[ls[2 + d]] = fx_lower_window(k, fx_k_addc(k, p, -low[d]), s->dims[ls[2 + d]], ld[d], &ok);
        valid = fx_k_and(k, valid, ok);
    }
    fx_kx *zero = fx_k_number(k, fx_kir_register(c->out), 0);
    if (fx_kx_is_int(valid, 0) || !fx_spec_count(s))
        return zero;
    return fx_k_select(k, valid, factor(lo, c, x, idx), zero);
}

fx_kx *fx_contraction_b(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *kk, fx_kx *nn) {
    fx_kir *k = lo->k;
    fx_node *n = c->node, *x = n->in[1];
    const fx_spec *s = &x->spec;
    fx_kx *idx[FX_MAX_RANK];
    int64_t rest[FX_MAX_RANK];
    if (n->op == FX_OP_dot_general) {
        int nb, nk;
        const int64_t *rb = FX_GET_LIST(n, rhs_batch, &nb), *rk = FX_GET_LIST(n, rhs_contract, &nk);
        int nf = free_dims(s, rb, nb, rk, nk, rest);
        place(k, b, s->dims, rb, nb, idx);
        place(k, nn, s->dims, rest, nf, idx);
        place(k, kk, s->dims, rk, nk, idx);
        return factor(lo, c, x, idx);
    }
    int sp = s->rank - 2;
    const int64_t *rs = FX_GET_LIST(n, rhs_spec, NULL), *rev = FX_GET_LIST(n, window_reversal, NULL);
    int64_t ksizes[FX_MAX_RANK];
    fx_kx *ki[FX_MAX_RANK];
    ksizes[sp] = s->dims[rs[1]];
    for (int d = 0; d < sp; d++)
        ksizes[d] = s->dims[rs[2 + d]];
    fx_k_delinearise(k, kk, sp + 1, ksizes, ki);
    idx[rs[0]] = fx_k_add(k, fx_k_mulc(k, b, c->n), nn);
    idx[rs[1]] = ki[sp];
    for (int d = 0; d < sp; d++)
        idx[rs[2 + d]] = rev[d] ? fx_k_sub(k, fx_k_int(k, ksizes[d] - 1), ki[d]) : ki[d];
    return factor(lo, c, x, idx);
}

void fx_contraction_index(fx_lower *lo, const fx_contraction *c, fx_kx *b, fx_kx *m, fx_kx *nn, fx_kx **index) {
    fx_kir *k = lo->k;
    fx_node *n = c->node;
    if (n->op == FX_OP_dot_general) {
        fx_kx *linear = fx_k_add(k, fx_k_mulc(k, fx_k_add(k, fx_k_mulc(k, b, c->m), m), c->n), nn);
        fx_k_delinearise(k, linear, n->spec.rank, n->spec.dims, index);
        return;
    }
    const int64_t *os = FX_GET_LIST(n, out_spec, NULL);
    int sp = n->spec.rank - 2;
    int64_t msizes[FX_MAX_RANK];
    fx_kx *mi[FX_MAX_RANK];
    msizes[0] = n->spec.dims[os[0]];
    for (int d = 0; d < sp; d++)
        msizes[1 + d] = n->spec.dims[os[2 + d]];
    fx_k_delinearise(k, m, sp + 1, msizes, mi);
    index[os[0]] = mi[0];
    index[os[1]] = fx_k_add(k, fx_k_mulc(k, b, c->n), nn);
    for (int d = 0; d < sp; d++)
        index[os[2 + d]] = mi[1 + d];
}

/* The inverse of fx_contraction_index. */
static void position(fx_lower *lo, const fx_contraction *c, fx_kx *const *index, fx_kx **b, fx_kx **m, fx_kx **nn) {
    fx_kir *k = lo->k;
    fx_node *n = c->node;
    if (n->op == FX_OP_dot_general) {
        fx_kx *linear = fx_k_linearise(k, n->spec.rank, n->spec.dims, index);
        *nn = fx_k_mod(k, linear, c->n);
        *m = fx_k_mod(k, fx_k_div(k, linear, c->n), c->m);
        *b = fx_k_div(k, linear, c->n * c->m);
        return;
    }
    const int64_t *os = FX_GET_LIST(n, out_spec, NULL);
    int sp = n->spec.rank - 2;
    int64_t msizes[FX_MAX_RANK];
    fx_kx *mi[FX_MAX_RANK];
    msizes[0] = n->spec.dims[os[0]];
    mi[0] = index[os[0]];
    for (int d = 0; d < sp; d++) {
        msizes[1 + d] = n->spec.dims[os[2 + d]];
        mi[1 + d] = index[os[2 + d]];
    }
    *m = fx_k_linearise(k, sp + 1, msizes, mi);
    *b = fx_k_div(k, index[os[1]], c->n);
    *nn = fx_k_mod(k, index[os[1]], c->n);
}

static fx_kx *contraction(fx_lower *lo, const fx_contraction *c, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_kx *b, *m, *n, *zero = fx_k_number(k, fx_kir_register(c->out), 0);
    if (!c->k)
        return zero;
    position(lo, c, index, &b, &m, &n);
    fx_kx *acc = fx_k_mut(k, zero);
    fx_kx *kk = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, c->k), 1, false);
    fx_kx *p = fx_k_op2(k, FX_OP_mul, c->out, fx_contraction_a(lo, c, b, m, kk), fx_contraction_b(lo, c, b, kk, n));
    fx_k_set(k, acc, fx_k_op2(k, FX_OP_add, c->out, acc, p));
    fx_k_end(k);
    return fx_k_read(k, acc);
}

fx_kx *fx_lower_reduction(fx_lower *lo, fx_value v, fx_kx *const *index) {
    fx_contraction c;
    switch (v.node->op) {
    case FX_OP_reduce:
        return reduce(lo, v.node, index);
    case FX_OP_reduce_fn:
        return reduce_fn(lo, v, index);
    case FX_OP_arg_reduce:
        return arg_reduce(lo, v.node, index);
    case FX_OP_reduce_window:
        return reduce_window(lo, v.node, index);
    case FX_OP_select_and_scatter:
        return select_and_scatter(lo, v.node, index);
    case FX_OP_cumulative:
        return cumulative(lo, v.node, index);
    default:
        return fx_contraction_of(v.node, &c) ? contraction(lo, &c, index) : NULL;
    }
}
