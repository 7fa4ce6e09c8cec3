/* sweep.c - the states of reductions, sweeps over elements, and how the lanes of a team join theirs.
 *
 * Small sweeps are plain text without a loop: a value asked again at the same element is then still in a
 * register. On software devices lanes read each other by constant broadcasts, which cost nothing there; on GPUs
 * by a butterfly of shuffles; subgroups of a workgroup through shared memory. */
#include "core/compile/sweep.h"

/* ---- reductions ---- */

bool fx_team_exchanges(const fx_device_caps *c, fx_dtype type) {
    bool can = c->barrier_is_slow ? c->subgroup_ballot || c->subgroup_shuffle : c->subgroup_shuffle;
    return c->subgroup_size > 1 && can && type != FX_S64 && type != FX_U64; /* 64-bit integers: an optional feature */
}

int fx_reduction_parts(const fx_node *n) {
    return n->op == FX_OP_reduce ? 1 : n->op == FX_OP_arg_reduce ? 2 : n->op == FX_OP_reduce_fn ? n->n_in / 2 : 0;
}

fx_dtype fx_reduction_type(const fx_node *n, int part) {
    if (n->op == FX_OP_arg_reduce)
        return part ? FX_S32 : fx_kir_register(n->in[0]->spec.dtype);
    return fx_kir_register(fx_result_spec(n, part)->dtype);
}

int fx_reduction_dims(const fx_node *n, int64_t *out) {
    int m = 1;
    if (n->op == FX_OP_arg_reduce)
        out[0] = FX_GET_INT(n, dim);
    else {
        const int64_t *dims = FX_GET_LIST(n, dims, &m);
        for (int j = 0; j < m; j++)
            out[j] = dims[j];
    }
    return m;
}

int64_t fx_reduction_count(const fx_node *n) {
    int64_t c = 1, dims[FX_MAX_RANK];
    int m = fx_reduction_dims(n, dims);
    for (int j = 0; j < m; j++)
        c *= n->in[0]->spec.dims[dims[j]];
    return c;
}

bool fx_reduction_commutes(const fx_node *n) {
    return n->op != FX_OP_reduce_fn;
}

bool fx_reduction_start(fx_emit *e, fx_node *n, fx_kx **out) {
    if (n->op == FX_OP_reduce_fn)
        return false;
    out[0] = fx_reduce_identity(&e->k, FX_GET_SYM(n), n->in[0]->spec.dtype);
    if (n->op == FX_OP_arg_reduce)
        out[1] = fx_k_const(&e->k, FX_S32, INT32_MAX);
    return true;
}

static fx_kx *is_nan(fx_kir *k, fx_dtype d, fx_kx *x) {
    return fx_k_fn(k, "is_nan", d, 1, &x);
}

void fx_reduction_join(fx_emit *e, fx_node *n, fx_kx *const *a, fx_kx *const *b, bool ordered, fx_kx **out) {
    fx_kir *k = &e->k;
    fx_dtype d = n->in[0]->spec.dtype;
    if (n->op == FX_OP_reduce) {
        out[0] = fx_k_let(k, fx_k_op2(k, fx_reduce_op(FX_GET_SYM(n)), n->spec.dtype, a[0], b[0]));
    } else if (n->op == FX_OP_arg_reduce) { /* the first NaN, else the first of the best */
        fx_kx *better = fx_k_op2(k, FX_GET_SYM(n) == FX_SYM_max ? FX_OP_gt : FX_OP_lt, d, b[0], a[0]), *same = NULL;
        if (!ordered)
            same = fx_k_op2(k, FX_OP_eq, d, b[0], a[0]);
        if (fx_dtype_is_float(d)) {
            fx_kx *an = fx_k_let(k, is_nan(k, d, a[0])), *bn = fx_k_let(k, is_nan(k, d, b[0]));
            better = fx_k_or(k, fx_k_and(k, better, fx_k_not(k, an)), fx_k_and(k, bn, fx_k_not(k, an)));
            same = same ? fx_k_or(k, same, fx_k_and(k, an, bn)) : NULL;
        }
        if (same)
            better = fx_k_or(k, better, fx_k_and(k, same, fx_k_op2(k, FX_OP_lt, FX_S32, b[1], a[1])));
        better = fx_k_let(k, better);
        fx_kx *v = fx_k_let(k, fx_k_select(k, better, b[0], a[0]));
        out[1] = fx_k_let(k, fx_k_select(k, better, b[1], a[1]));
        out[0] = v;
    } else {
        fx_kx *args[2 * FX_SWEEP_PARTS] = {0}, *r[FX_SWEEP_PARTS] = {0};
        int m = fx_reduction_parts(n);
        for (int j = 0; j < m; j++) {
            args[j] = a[j];
            args[m + j] = b[j];
        }
        fx_lower_region(&e->lo, n->region[0], args, r);
        for (int j = 0; j < m; j++)
            out[j] = fx_k_let(k, r[j]);
    }
}

fx_kx *fx_reduction_finish(fx_emit *e, fx_node *n, int r, fx_kx *const *state) {
    fx_kir *k = &e->k;
    if (n->op == FX_OP_arg_reduce) {
        fx_dtype out = n->spec.dtype;
        return fx_dtype_size(out) < 4 ? fx_k_convert(k, state[1], FX_S32, out)
                                      : fx_k_let(k, fx_k_cast(k, state[1], out));
    }
    if (n->op == FX_OP_reduce)
        return state[0];
    fx_kx *start[FX_SWEEP_PARTS], *out[FX_SWEEP_PARTS];
    int m = fx_reduction_parts(n);
    for (int j = 0; j < m; j++)
        start[j] = fx_lower_node(&e->lo, n->in[m + j], NULL);
    if (!fx_spec_count(&n->in[0]->spec))
        return start[r];
    fx_reduction_join(e, n, start, state, true, out);
    return out[r];
}

/* ---- teams ---- */

static void tree(fx_emit *e, fx_node *n, int64_t count, fx_kx *(*x)[FX_SWEEP_PARTS], fx_kx **out) {
    int m = fx_reduction_parts(n);
    for (; count > 1; count = (count + 1) / 2)
        for (int64_t i = 0; 2 * i < count; i++) {
            if (2 * i + 1 < count)
                fx_reduction_join(e, n, x[2 * i], x[2 * i + 1], false, x[i]);
            else
                for (int j = 0; j < m; j++)
                    x[i][j] = x[2 * i][j];
        }
    for (int j = 0; j < m; j++)
        out[j] = x[0][j];
}

static void join_subgroup(fx_emit *e, int64_t lanes, fx_node *n, fx_kx **state) {
    fx_kir *k = &e->k;
    int m = fx_reduction_parts(n);
    if (e->caps->barrier_is_slow && e->caps->subgroup_ballot) {
        fx_kx *(*x)[FX_SWEEP_PARTS] = fx_arena_alloc(k->arena, sizeof *x * (size_t)lanes);
        if (!x) {
            k->failed = true;
            return;
        }
        for (int64_t i = 0; i < lanes; i++)
            for (int j = 0; j < m; j++)
                x[i][j] = fx_k_subgroup(k, FX_SUB_BROADCAST, state[j], fx_k_int(k, i));
        tree(e, n, lanes, x, state);
        return;
    }
    for (int64_t d = lanes / 2; d; d /= 2) {
        fx_kx *other[FX_SWEEP_PARTS];
        for (int j = 0; j < m; j++)
            other[j] = fx_k_subgroup(k, FX_SUB_SHUFFLE_XOR, state[j], fx_k_int(k, d));
        fx_reduction_join(e, n, state, other, false, state);
    }
}

/* `count` states, one a lane below count, through shared memory to all lanes. */
static void join_shared(fx_emit *e, fx_team *t, int64_t count, fx_kx *writer, fx_kx *slot, fx_node *n, fx_kx **state) {
    fx_kir *k = &e->k;
    int m = fx_reduction_parts(n), array[FX_SWEEP_PARTS];
    fx_kx *mut[FX_SWEEP_PARTS];
    for (int j = 0; j < m; j++) {
        fx_dtype type = fx_reduction_type(n, j);
        bool again = false; /* two parts of one type need two arrays */
        for (int i = 0; i < j; i++)
            again |= array[i] == t->shared[type] - 1;
        if (again || !t->shared[type])
            array[j] = fx_k_shared(k, type, count);
        else
            array[j] = t->shared[type] - 1;
        if (!again)
            t->shared[type] = array[j] + 1;
        if (array[j] < 0) {
            fx_lower_fail(&e->lo, FX_UNSUPPORTED,
                          "a reduction of %d values at once; the kernel has too few shared arrays", m);
            return;
        }
    }
    if (writer)
        fx_k_if(k, writer);
    for (int j = 0; j < m; j++)
        fx_k_shared_store(k, array[j], slot, state[j]);
    if (writer)
        fx_k_end(k);
    fx_k_barrier(k);
    for (int j = 0; j < m; j++)
        mut[j] = fx_k_mut(k, fx_k_shared_load(k, array[j], fx_k_int(k, 0)));
    fx_kx *i = fx_k_for(k, fx_k_int(k, 1), fx_k_int(k, count), 1, false), *a[FX_SWEEP_PARTS] = {0},
          *b[FX_SWEEP_PARTS] = {0};
    for (int j = 0; j < m; j++) {
        a[j] = fx_k_read(k, mut[j]);
        b[j] = fx_k_shared_load(k, array[j], i);
    }
    fx_reduction_join(e, n, a, b, false, a);
    for (int j = 0; j < m; j++)
        fx_k_set(k, mut[j], a[j]);
    fx_k_end(k);
    for (int j = 0; j < m; j++)
        state[j] = fx_k_read(k, mut[j]);
    fx_k_barrier(k); /* the arrays may be written again */
}

void fx_team_join(fx_emit *e, fx_team *t, fx_node *n, fx_kx **state) {
    fx_kir *k = &e->k;
    if (t->lanes <= 1)
        return;
    if (t->subgroup > 1)
        join_subgroup(e, t->subgroup, n, state);
    if (t->lanes > t->subgroup) {
        fx_kx *slot = t->subgroup > 1 ? fx_k_builtin(k, FX_KB_SUBGROUP, t->lanes / t->subgroup) : t->lane;
        fx_kx *first = t->subgroup > 1 ? fx_k_eq(k, fx_k_builtin(k, FX_KB_LANE, t->subgroup), fx_k_int(k, 0)) : NULL;
        join_shared(e, t, t->lanes / t->subgroup, first, slot, n, state);
    }
}

/* ---- sweeps ---- */

/* The state of element `col` alone. */
static void element(fx_emit *e, const fx_sweep *s, fx_node *n, const int *source, fx_kx *row, fx_kx *col, fx_kx **out) {
    fx_kir *k = &e->k;
    fx_lower *lo = &e->lo;
    if (source) {
        fx_kx *at = fx_k_add(k, fx_k_mulc(k, row, s->count), col);
        for (int j = 0; j < fx_reduction_parts(n); j++)
            out[j] = fx_k_load(k, fx_lower_arg(lo, source[j], fx_reduction_type(n, j)), at);
        return;
    }
    const fx_spec *x = &n->in[0]->spec, *r = fx_result_spec(n, 0);
    int64_t dims[FX_MAX_RANK], sizes[FX_MAX_RANK];
    int m = fx_reduction_dims(n, dims);
    fx_kx *kept[FX_MAX_RANK], *gone[FX_MAX_RANK], *idx[FX_MAX_RANK] = {0};
    for (int j = 0; j < m; j++)
        sizes[j] = x->dims[dims[j]];
    fx_k_delinearise(k, row, r->rank, r->dims, kept);
    fx_k_delinearise(k, col, m, sizes, gone);
    for (int j = 0; j < m; j++)
        idx[dims[j]] = gone[j];
    for (int d = 0, o = 0; d < x->rank; d++)
        if (!idx[d])
            idx[d] = kept[o++];
    if (n->op == FX_OP_arg_reduce) {
        out[0] = fx_lower_node(lo, n->in[0], idx);
        out[1] = fx_k_let(k, fx_k_cast(k, col, FX_S32));
    } else
        for (int j = 0; j < fx_reduction_parts(n); j++)
            out[j] = fx_lower_node(lo, n->in[j], idx);
}

/* Twice the same element changes nothing? */
static bool idempotent(const fx_node *n) {
    fx_op op = n->op == FX_OP_reduce ? fx_reduce_op(FX_GET_SYM(n)) : FX_OP_max;
    return op == FX_OP_max || op == FX_OP_min || op == FX_OP_and || op == FX_OP_or;
}

/* The states of one step, whose first pair (or element) is number h: of row r into out, all nodes. Returns whether
 * that is below count (NULL: always), which matters to regions; others get what changes nothing. */
static fx_kx *step(fx_emit *e, const fx_sweep *s, fx_kx *h, fx_kx *(*out)[FX_SWEEP_PARTS]) {
    fx_kir *k = &e->k;
    int64_t pairs = s->count / s->width;
    fx_kx *valid = NULL;
    if (h->hi >= pairs) {
        valid = fx_k_lt(k, h, fx_k_int(k, pairs));
        h = fx_k_min(k, h, fx_k_int(k, pairs - 1));
    }
    for (int i = 0, at = 0; i < s->n; at += fx_reduction_parts(s->node[i++])) {
        fx_node *n = s->node[i];
        int m = fx_reduction_parts(n);
        fx_kx *x[2][FX_SWEEP_ROWS][FX_SWEEP_PARTS];
        for (int w = 0; w < s->width; w++)
            for (int r = 0; r < s->n_row; r++)
                element(e, s, n, s->source ? s->source + at : NULL, s->row[r],
                        fx_k_addc(k, fx_k_mulc(k, h, s->width), w), x[w][r]);
        for (int r = 0; r < s->n_row; r++) {
            fx_kx **y = x[0][r], *none[FX_SWEEP_PARTS];
            if (s->width == 2)
                fx_reduction_join(e, n, x[0][r], x[1][r], true, y);
            bool mask = valid && !idempotent(n) && fx_reduction_start(e, n, none);
            for (int j = 0; j < m; j++)
                out[r][at + j] = mask ? fx_k_let(k, fx_k_select(k, valid, y[j], none[j])) : y[j];
        }
    }
    return valid;
}

/* a then b, where valid (NULL: everywhere). */
static void join_all(fx_emit *e, const fx_sweep *s, fx_kx *valid, fx_kx *(*a)[FX_SWEEP_PARTS],
                     fx_kx *(*b)[FX_SWEEP_PARTS]) {
    fx_kir *k = &e->k;
    for (int r = 0; r < s->n_row; r++)
        for (int i = 0, at = 0; i < s->n; at += fx_reduction_parts(s->node[i++])) {
            fx_kx *both[FX_SWEEP_PARTS];
            fx_node *n = s->node[i];
            fx_reduction_join(e, n, a[r] + at, b[r] + at, true, both);
            for (int j = 0; j < fx_reduction_parts(n); j++)
                a[r][at + j] = valid && n->op == FX_OP_reduce_fn
                                   ? fx_k_let(k, fx_k_select(k, valid, both[j], a[r][at + j]))
                                   : both[j];
        }
}

/* `steps` steps from number h on, every `lanes`, joined into out; appended to out when `more`. */
static void text(fx_emit *e, const fx_sweep *s, fx_kx *h, int64_t steps, bool more, fx_kx *(*out)[FX_SWEEP_PARTS]) {
    for (int64_t i = 0; i < steps; i++) {
        fx_kx *x[FX_SWEEP_ROWS][FX_SWEEP_PARTS];
        fx_kx *valid = step(e, s, fx_k_addc(&e->k, h, i * s->team->lanes), i || more ? x : out);
        if (i || more)
            join_all(e, s, valid, out, x);
    }
}

void fx_sweep_run(fx_emit *e, fx_sweep *s) {
    fx_kir *k = &e->k;
    fx_team *t = s->team;
    int parts = 0;
    for (int i = 0; i < s->n; i++)
        parts += fx_reduction_parts(s->node[i]);
    bool starts = true;
    for (int r = 0; r < s->n_row; r++)
        for (int i = 0, at = 0; i < s->n; at += fx_reduction_parts(s->node[i++]))
            starts &= fx_reduction_start(e, s->node[i], s->state[r] + at);
    if (s->count && s->length) {
        int64_t share = t->lanes * s->width, steps = (s->length + share - 1) / share, u = s->unroll;
        fx_kx *first = fx_k_add(k, fx_k_div(k, s->from, s->width), t->lane);
        /* steps that stay below count for every lane and every start need no mask */
        int64_t pairs = s->count / s->width, safe = first->hi < pairs ? (pairs - 1 - first->hi) / t->lanes + 1 : 0;
        if (s->from->lo == s->from->hi || safe >= steps)
            safe = safe < steps ? safe : steps;
        else
            safe = steps; /* masks everywhere */
        if (steps <= u)
            text(e, s, first, steps, false, s->state);
        else {
            int64_t begin = starts ? 0 : u, loop = (safe - begin) / u * u; /* a region begins with elements */
            if (begin)
                text(e, s, first, begin, false, s->state);
            if (loop > 0) {
                fx_kx *mut[FX_SWEEP_ROWS][FX_SWEEP_PARTS], *x[FX_SWEEP_ROWS][FX_SWEEP_PARTS];
                for (int r = 0; r < s->n_row; r++)
                    for (int j = 0; j < parts; j++)
                        mut[r][j] = fx_k_mut(k, s->state[r][j]);
                fx_kx *i = fx_k_for(k, fx_k_int(k, begin), fx_k_int(k, begin + loop), u, false);
                fx_kx *h = fx_k_add(k, first, fx_k_mulc(k, i, t->lanes));
                if (starts) /* one use of the state a turn: it may live in memory */
                    text(e, s, h, u, false, x);
                for (int r = 0; r < s->n_row; r++)
                    for (int j = 0; j < parts; j++)
                        s->state[r][j] = fx_k_read(k, mut[r][j]);
                if (starts)
                    join_all(e, s, NULL, s->state, x);
                else
                    text(e, s, h, u, true, s->state);
                for (int r = 0; r < s->n_row; r++)
                    for (int j = 0; j < parts; j++)
                        fx_k_set(k, mut[r][j], s->state[r][j]);
                fx_k_end(k);
                for (int r = 0; r < s->n_row; r++)
                    for (int j = 0; j < parts; j++)
                        s->state[r][j] = fx_k_read(k, mut[r][j]);
            } else
                loop = 0;
            text(e, s, fx_k_addc(k, first, (begin + loop) * t->lanes), steps - begin - loop, begin + loop > 0,
                 s->state);
        }
    }
    for (int r = 0; r < s->n_row; r++)
        for (int i = 0, at = 0; i < s->n; at += fx_reduction_parts(s->node[i++]))
            fx_team_join(e, t, s->node[i], s->state[r] + at);
}
