/* schedule_cumulative.c - running sums, products, maxima and minima along an axis: a lane walks a line.
 *
 * Few and long lines are cut into parts: one kernel reduces every part but the last, a second one walks each part
 * on from what the parts before it give. The order of operations is fixed by the shape. */
#include "core/base/error.h"
#include "core/compile/schedule.h"

enum { UNROLL = 8, LEAST = 64 /* elements of a part */ };

typedef struct lines {
    fx_node *node;
    const fx_spec *spec;
    int dim;
    bool reverse;
    fx_op op;
    int64_t n, lines, parts, part;
} lines;

static bool match(const fx_emit *e, const fx_group *g) {
    (void)e;
    return g->inner[0]->op == FX_OP_cumulative;
}

/* Element `at` (in the order of the walk) of a line, as an index of the array. */
static void place(fx_kir *k, const lines *l, fx_kx *line, fx_kx *at, fx_kx **idx) {
    at = l->reverse ? fx_k_sub(k, fx_k_int(k, l->n - 1), at) : at;
    fx_k_delinearise_around(k, line, l->spec->rank, l->spec->dims, l->dim, at, idx);
}

/* Opens lanes for `parts` parts of all lines; false: no guard to close. */
static bool open_lanes(fx_emit *e, const lines *l, int64_t parts, fx_kx **line, fx_kx **part) {
    fx_kir *k = &e->k;
    int64_t lanes = l->lines * parts, block = 64, units = e->caps->units ? (int64_t)e->caps->units : 8;
    while (block > 16 && (lanes + block - 1) / block < 4 * units)
        block /= 2;
    k->workgroup[0] = (uint32_t)block;
    fx_kx *id = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, (lanes + block - 1) / block), block),
                         fx_k_builtin(k, FX_KB_LOCAL, block));
    bool guard = id->hi >= lanes;
    if (guard) {
        fx_k_if(k, fx_k_lt(k, id, fx_k_int(k, lanes)));
        id = fx_k_bound(k, id, 0, lanes - 1);
    }
    *line = fx_k_mod(k, id, l->lines);
    *part = fx_k_div(k, id, l->lines);
    return guard;
}

static fx_kx *element(fx_emit *e, const lines *l, fx_kx *line, fx_kx *at) {
    fx_kx *idx[FX_MAX_RANK];
    place(&e->k, l, line, at, idx);
    return fx_k_let(&e->k, fx_lower_node(&e->lo, l->node->in[0], idx));
}

static fx_kx *join(fx_emit *e, const lines *l, fx_kx *a, fx_kx *b) {
    return fx_k_let(&e->k, fx_k_op2(&e->k, l->op, l->node->spec.dtype, a, b));
}

/* What each part but the last gives, into a buffer at part * lines + line. */
static fx_status totals(fx_emit *e, const fx_group *g, const lines *l, int *temp, fx_dtype reg) {
    fx_kir *k = &e->k;
    fx_kx *line, *part;
    bool guard = open_lanes(e, l, l->parts - 1, &line, &part);
    fx_kx *acc = fx_k_mut(k, fx_reduce_identity(k, FX_GET_SYM(l->node), l->node->spec.dtype));
    fx_kx *j = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, l->part), UNROLL, false), *x = NULL;
    for (int u = 0; u < UNROLL; u++) {
        fx_kx *y = element(e, l, line, fx_k_addc(k, fx_k_add(k, fx_k_mulc(k, part, l->part), j), u));
        x = x ? join(e, l, x, y) : y;
    }
    fx_k_set(k, acc, join(e, l, fx_k_read(k, acc), x));
    fx_k_end(k);
    fx_spec spec = FX_SPEC(reg, l->parts - 1, l->lines);
    *temp = fx_emit_temp(e, &spec);
    if (*temp < 0)
        return fx_fail_oom(0);
    fx_k_store(k, fx_lower_arg(&e->lo, *temp, reg), fx_k_add(k, fx_k_mulc(k, part, l->lines), line), fx_k_read(k, acc));
    if (guard)
        fx_k_end(k);
    e->schedule = "cumulative.totals";
    return fx_emit_kernel(e, g);
}

static void walk(fx_emit *e, const fx_group *g, const lines *l, int temp, fx_dtype reg) {
    fx_kir *k = &e->k;
    fx_kx *line, *part, *idx[FX_MAX_RANK];
    bool guard = open_lanes(e, l, l->parts, &line, &part);
    fx_kx *acc = fx_k_mut(k, fx_reduce_identity(k, FX_GET_SYM(l->node), l->node->spec.dtype));
    if (l->parts > 1) {
        fx_kx *q = fx_k_for(k, fx_k_int(k, 0), part, 1, false);
        fx_kx *before = fx_k_load(k, fx_lower_arg(&e->lo, temp, reg), fx_k_add(k, fx_k_mulc(k, q, l->lines), line));
        fx_k_set(k, acc, join(e, l, fx_k_read(k, acc), before));
        fx_k_end(k);
    }
    int64_t u = l->part < UNROLL ? l->part : UNROLL, turns = (l->part + u - 1) / u;
    fx_kx *j = fx_k_mulc(k, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, turns), 1, false), u), *x[UNROLL], *at[UNROLL], *a;
    for (int i = 0; i < u; i++) { /* loads first */
        at[i] = fx_k_addc(k, fx_k_add(k, fx_k_mulc(k, part, l->part), j), i);
        x[i] = element(e, l, line, fx_k_min(k, at[i], fx_k_int(k, l->n - 1)));
    }
    a = fx_k_read(k, acc);
    for (int i = 0; i < u; i++) {
        a = join(e, l, a, x[i]);
        bool edge = at[i]->hi >= l->n;
        if (edge)
            fx_k_if(k, fx_k_lt(k, at[i], fx_k_int(k, l->n)));
        place(k, l, line, edge ? fx_k_min(k, at[i], fx_k_int(k, l->n - 1)) : at[i], idx);
        fx_lower_store(&e->lo, g->out[0], fx_k_linearise(k, l->spec->rank, l->spec->dims, idx), a);
        if (edge)
            fx_k_end(k);
    }
    fx_k_set(k, acc, a);
    fx_k_end(k);
    if (guard)
        fx_k_end(k);
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_node *n = g->inner[0];
    lines l = {.node = n, .spec = &n->spec, .dim = (int)FX_GET_INT(n, dim), .reverse = FX_GET_INT(n, reverse) != 0};
    fx_dtype reg = fx_kir_register(n->spec.dtype);
    int temp = -1;
    l.op = fx_reduce_op(FX_GET_SYM(n));
    l.n = l.part = n->spec.dims[l.dim];
    l.lines = fx_spec_count(&n->spec) / l.n;
    l.parts = 1;
    int64_t units = e->caps->units ? (int64_t)e->caps->units : 8,
            want = (e->caps->barrier_is_slow ? 128 : 1024) * units;
    int64_t parts = want / l.lines < l.n / LEAST ? want / l.lines : l.n / LEAST;
    while (parts > 1 && parts * parts > 4 * l.n) /* a part reads what all before it give */
        parts /= 2;
    if (parts > 1) {
        l.part = (l.n + parts - 1) / parts;
        l.part = (l.part + UNROLL - 1) / UNROLL * UNROLL;
        l.parts = (l.n + l.part - 1) / l.part;
        if (l.parts > 1)
            FX_TRY(totals(e, g, &l, &temp, reg));
    }
    e->schedule = l.parts > 1 ? "cumulative.parts" : "cumulative.lane";
    walk(e, g, &l, temp, reg);
    return FX_OK;
}

const fx_schedule fx_schedule_cumulative = {"cumulative", FX_GROUP_SPECIAL, match, emit};
