/* schedule_sort.c - sort and top_k, stable, by any comparator region.
 *
 * Short lines: each element counts how many come before it, which is its place; one kernel. Longer ones: blocks are
 * sorted so, as positions; then passes merge neighbouring runs, each element finding its place in the other run by
 * bisection; the last pass writes the operands' elements. */
#include "core/base/error.h"
#include "core/compile/schedule.h"

enum { BLOCK = 32, ONE_KERNEL = 1024 };

typedef struct lines {
    fx_node *node;
    const fx_spec *spec; /* of every operand */
    int dim, n_op;
    int64_t n, lines, kept;
} lines;

static bool match_sort(const fx_emit *e, const fx_group *g) {
    (void)e;
    return g->inner[0]->op == FX_OP_sort || g->inner[0]->op == FX_OP_top_k;
}

static fx_kx **room(fx_emit *e, int n) {
    fx_kx **x = fx_arena_alloc(e->k.arena, sizeof *x * (size_t)(n + 1));
    e->k.failed |= !x;
    return x;
}

/* Is line element a (values a[]) strictly before b? */
static fx_kx *before(fx_emit *e, const fx_node *n, fx_kx *const *a, fx_kx *const *b) {
    fx_kir *k = &e->k;
    if (n->op == FX_OP_top_k) { /* larger first, NaN first of all */
        fx_dtype d = n->in[0]->spec.dtype;
        fx_kx *gt = fx_k_op2(k, FX_OP_gt, d, a[0], b[0]), *x = a[0], *y = b[0];
        if (!fx_dtype_is_float(d))
            return gt;
        return fx_k_or(k, gt, fx_k_and(k, fx_k_fn(k, "is_nan", d, 1, &x), fx_k_not(k, fx_k_fn(k, "is_nan", d, 1, &y))));
    }
    fx_kx **args = room(e, 2 * n->n_in), *r;
    if (!args)
        return fx_k_bool(k, false);
    for (int j = 0; j < n->n_in; j++) {
        args[2 * j] = a[j];
        args[2 * j + 1] = b[j];
    }
    fx_lower_region(&e->lo, n->region[0], args, &r);
    return r;
}

/* Does `other` come before `mine` in a stable sort? earlier: it stands before it. */
static fx_kx *precedes(fx_emit *e, const lines *l, fx_kx *const *other, fx_kx *const *mine, fx_kx *earlier) {
    fx_kir *k = &e->k;
    fx_kx **a = room(e, 2 * l->n_op), **b = a + l->n_op;
    if (!a)
        return earlier;
    for (int j = 0; j < l->n_op; j++) {
        a[j] = fx_k_let(k, fx_k_select(k, earlier, mine[j], other[j]));
        b[j] = fx_k_let(k, fx_k_select(k, earlier, other[j], mine[j]));
    }
    fx_kx *r = fx_k_let(k, before(e, l->node, a, b));
    return fx_k_or(k, fx_k_and(k, earlier, fx_k_not(k, r)), fx_k_and(k, fx_k_not(k, earlier), r));
}

static void place(fx_kir *k, const lines *l, fx_kx *line, fx_kx *at, fx_kx **idx) {
    fx_k_delinearise_around(k, line, l->spec->rank, l->spec->dims, l->dim, at, idx);
}

static void values(fx_emit *e, const lines *l, fx_kx *line, fx_kx *at, fx_kx **x) {
    fx_kx *idx[FX_MAX_RANK];
    place(&e->k, l, line, at, idx);
    for (int j = 0; j < l->n_op; j++)
        x[j] = fx_k_let(&e->k, fx_lower_node(&e->lo, l->node->in[j], idx));
}

/* An element a lane: opens the guard, which the caller closes. */
static void open_lanes(fx_emit *e, const lines *l, fx_kx **line, fx_kx **at) {
    fx_kir *k = &e->k;
    int64_t count = l->lines * l->n, lanes = 64;
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *i = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, (count + lanes - 1) / lanes), lanes),
                        fx_k_builtin(k, FX_KB_LOCAL, lanes));
    fx_k_if(k, fx_k_lt(k, i, fx_k_int(k, count)));
    i = fx_k_bound(k, i, 0, count - 1);
    *line = fx_k_div(k, i, l->n);
    *at = fx_k_mod(k, i, l->n);
}

/* Element `from` goes to `to` in the results. */
static void deliver(fx_emit *e, const lines *l, fx_kx *line, fx_kx *from, fx_kx *to, fx_kx *const *x) {
    fx_kir *k = &e->k;
    fx_kx *idx[FX_MAX_RANK];
    bool cut = l->kept < l->n;
    if (cut)
        fx_k_if(k, fx_k_lt(k, to, fx_k_int(k, l->kept)));
    place(k, l, line, fx_k_bound(k, to, 0, l->kept - 1), idx);
    for (int r = 0; r < l->node->n_result; r++) {
        const fx_spec *out = &l->node->results[r];
        fx_kx *v = l->node->op == FX_OP_top_k && r == 1 ? fx_k_let(k, fx_k_cast(k, from, FX_S32)) : x[r];
        fx_lower_store(&e->lo, (fx_value){l->node, r}, fx_k_linearise(k, out->rank, out->dims, idx), v);
    }
    if (cut)
        fx_k_end(k);
}

static fx_kx *row(fx_kir *k, const lines *l, fx_kx *line, fx_kx *at) {
    return fx_k_add(k, fx_k_mulc(k, line, l->n), at);
}

/* Sorts blocks of `block` elements; whole lines at once into the results, else positions into a buffer. */
static void count_places(fx_emit *e, const lines *l, int64_t block, int buffer) {
    fx_kir *k = &e->k;
    fx_kx *line, *at, **mine = room(e, 2 * l->n_op), **other = mine + l->n_op;
    if (!mine)
        return;
    open_lanes(e, l, &line, &at);
    values(e, l, line, at, mine);
    fx_kx *begin = fx_k_mulc(k, fx_k_div(k, at, block), block), *rank = fx_k_mut(k, fx_k_int(k, 0));
    fx_kx *i = fx_k_add(k, begin, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, block), 1, false));
    bool short_ = l->n % block != 0;
    values(e, l, line, short_ ? fx_k_min(k, i, fx_k_int(k, l->n - 1)) : i, other);
    fx_kx *yes = precedes(e, l, other, mine, fx_k_lt(k, i, at));
    if (short_)
        yes = fx_k_and(k, yes, fx_k_lt(k, i, fx_k_int(k, l->n)));
    fx_k_set(k, rank, fx_k_op2(k, FX_OP_add, FX_S32, rank, fx_k_select(k, yes, fx_k_int(k, 1), fx_k_int(k, 0))));
    fx_k_end(k);
    fx_kx *to = fx_k_add(k, begin, fx_k_bound(k, fx_k_read(k, rank), 0, block - 1));
    to = fx_k_bound(k, to, 0, l->n - 1);
    if (buffer < 0)
        deliver(e, l, line, at, to, mine);
    else
        fx_k_store(k, fx_lower_arg(&e->lo, buffer, FX_S32), row(k, l, line, to), fx_k_cast(k, at, FX_S32));
    fx_k_end(k);
}

/* Merges runs of `run` positions two by two. into -1: the results. */
static void merge_runs(fx_emit *e, const lines *l, int64_t run, int from, int into) {
    fx_kir *k = &e->k;
    fx_kx *line, *at, **mine = room(e, 2 * l->n_op), **other = mine + l->n_op, *zero = fx_k_int(k, 0);
    if (!mine)
        return;
    open_lanes(e, l, &line, &at);
    int arg = fx_lower_arg(&e->lo, from, FX_S32);
    fx_kx *me = fx_k_bound(k, fx_k_load(k, arg, row(k, l, line, at)), 0, l->n - 1);
    values(e, l, line, me, mine);
    fx_kx *pair = fx_k_mulc(k, fx_k_div(k, at, 2 * run), 2 * run), *in = fx_k_mod(k, at, 2 * run);
    fx_kx *right = fx_k_let(k, fx_k_le(k, fx_k_int(k, run), in));
    fx_kx *begin = fx_k_let(k, fx_k_add(k, pair, fx_k_select(k, right, zero, fx_k_int(k, run)))); /* of the other run */
    fx_kx *length = fx_k_max(k, zero, fx_k_min(k, fx_k_int(k, run), fx_k_sub(k, fx_k_int(k, l->n), begin)));
    fx_kx *low = fx_k_mut(k, zero), *high = fx_k_mut(k, fx_k_let(k, fx_k_add(k, length, zero)));
    int64_t steps = 1;
    while ((int64_t)1 << (steps - 1) < run)
        steps++;
    fx_k_for(k, zero, fx_k_int(k, steps), 1, false);
    fx_kx *a = fx_k_bound(k, fx_k_read(k, low), 0, run), *b = fx_k_bound(k, fx_k_read(k, high), 0, run);
    fx_kx *middle = fx_k_div(k, fx_k_add(k, a, b), 2);
    fx_kx *p = fx_k_min(k, fx_k_add(k, begin, middle), fx_k_int(k, l->n - 1));
    fx_kx *you = fx_k_bound(k, fx_k_load(k, arg, row(k, l, line, p)), 0, l->n - 1);
    values(e, l, line, you, other);
    fx_kx *yes = fx_k_let(k, precedes(e, l, other, mine, right)), *open = fx_k_let(k, fx_k_lt(k, a, b));
    fx_k_set(k, low, fx_k_select(k, fx_k_and(k, open, yes), fx_k_addc(k, middle, 1), a));
    fx_k_set(k, high, fx_k_select(k, fx_k_and(k, open, fx_k_not(k, yes)), middle, b));
    fx_k_end(k);
    fx_kx *own = fx_k_mod(k, in, run); /* its place in its own run */
    fx_kx *to = fx_k_add(k, fx_k_add(k, pair, own), fx_k_bound(k, fx_k_read(k, low), 0, run));
    to = fx_k_bound(k, to, 0, l->n - 1);
    if (into < 0)
        deliver(e, l, line, me, to, mine);
    else
        fx_k_store(k, fx_lower_arg(&e->lo, into, FX_S32), row(k, l, line, to), me);
    fx_k_end(k);
}

static fx_status emit_sort(fx_emit *e, const fx_group *g) {
    fx_node *n = g->inner[0];
    bool top = n->op == FX_OP_top_k;
    lines l = {.node = n, .spec = &n->in[0]->spec};
    l.dim = top ? l.spec->rank - 1 : (int)FX_GET_INT(n, dim);
    l.n_op = top ? 1 : n->n_in;
    l.n = l.spec->dims[l.dim];
    l.lines = fx_spec_count(l.spec) / l.n;
    l.kept = top ? FX_GET_INT(n, k) : l.n;
    if (l.n <= 2 * BLOCK || (l.n <= ONE_KERNEL && l.lines * l.n <= 8388608 / l.n)) {
        count_places(e, &l, l.n, -1);
        return FX_OK;
    }
    if (l.n > INT32_MAX)
        return fx_fail(FX_UNSUPPORTED, "sort along a dimension of %lld; at most 2147483647 elements can be numbered",
                       (long long)l.n);
    fx_spec spec = FX_SPEC(FX_S32, l.lines, l.n);
    int buffer[2] = {fx_emit_temp(e, &spec), fx_emit_temp(e, &spec)};
    if (buffer[0] < 0 || buffer[1] < 0)
        return fx_fail_oom(0);
    count_places(e, &l, BLOCK, buffer[0]);
    e->schedule = "sort.blocks";
    FX_TRY(fx_emit_kernel(e, g));
    e->schedule = "sort.merge";
    for (int64_t run = BLOCK, i = 0; run < l.n; run *= 2, i ^= 1) {
        bool last = 2 * run >= l.n;
        merge_runs(e, &l, run, buffer[i], last ? -1 : buffer[i ^ 1]);
        if (!last)
            FX_TRY(fx_emit_kernel(e, g));
    }
    return FX_OK;
}

const fx_schedule fx_schedule_sort = {"sort.count", FX_GROUP_SPECIAL, match_sort, emit_sort};
