/* schedule_scatter.c - scatter without atomics, in the order of the updates whatever the timing.
 *
 * The operand is copied, then every lane owns a part of the result: certain elements of the window's dimensions
 * that span the operand's whole dimension, and a range of the positions along the others. It goes through all
 * updates in order and applies those that fall into its part. 16-bit floats add up in f32. */
#include "core/base/error.h"
#include "core/compile/schedule.h"

typedef struct shape {
    fx_node *node;
    const fx_spec *x, *i, *u;
    int n_win, n_ob, n_map, vec;
    const int64_t *win, *ob, *ib, *map;
    int window[FX_MAX_RANK];   /* dimension of the updates that runs along each of the operand's, -1 */
    int64_t size[FX_MAX_RANK]; /* window size along each dimension of the operand */
    bool full[FX_MAX_RANK];
    int64_t lanes, positions; /* elements of the full dimensions and of the others */
    int64_t updates;
} shape;

static bool match(const fx_emit *e, const fx_group *g) {
    (void)e;
    return g->inner[0]->op == FX_OP_scatter && fx_spec_count(&g->inner[0]->in[2]->spec) > 0;
}

static void read_shape(fx_node *n, shape *s) {
    int n_gone;
    *s = (shape){.node = n, .x = &n->in[0]->spec, .i = &n->in[1]->spec, .u = &n->in[2]->spec};
    s->win = FX_GET_LIST(n, update_window_dims, &s->n_win);
    const int64_t *gone = FX_GET_LIST(n, inserted_window_dims, &n_gone);
    s->ob = FX_GET_LIST(n, operand_batching_dims, &s->n_ob);
    s->ib = FX_GET_LIST(n, indices_batching_dims, NULL);
    s->map = FX_GET_LIST(n, scatter_dims, &s->n_map);
    s->vec = (int)FX_GET_INT(n, index_vector_dim);
    s->lanes = s->positions = s->updates = 1;
    for (int d = 0, w = 0; d < s->x->rank; d++) {
        bool dropped = false;
        for (int j = 0; j < n_gone; j++)
            dropped |= gone[j] == d;
        for (int j = 0; j < s->n_ob; j++)
            dropped |= s->ob[j] == d;
        s->window[d] = dropped ? -1 : (int)s->win[w++];
        s->size[d] = dropped ? 1 : s->u->dims[s->window[d]];
        s->full[d] = !dropped && s->size[d] == s->x->dims[d];
        *(s->full[d] ? &s->lanes : &s->positions) *= s->x->dims[d];
    }
    for (int d = 0; d < s->i->rank; d++)
        s->updates *= d == s->vec ? 1 : s->i->dims[d];
}

static fx_kx *block_lane(fx_emit *e, int64_t lanes, bool *guard) {
    fx_kir *k = &e->k;
    int64_t block = 64, units = e->caps->units ? (int64_t)e->caps->units : 8;
    while (block > 16 && (lanes + block - 1) / block < 4 * units)
        block /= 2;
    k->workgroup[0] = (uint32_t)block;
    fx_kx *id = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, (lanes + block - 1) / block), block),
                         fx_k_builtin(k, FX_KB_LOCAL, block));
    return fx_k_guard(k, id, lanes, guard);
}

/* Splits a linear number over the dimensions that are full or those that aren't. */
static void spread(fx_kir *k, const shape *s, bool full, fx_kx *linear, fx_kx **idx) {
    int64_t sizes[FX_MAX_RANK];
    fx_kx *part[FX_MAX_RANK];
    int m = 0;
    for (int d = 0; d < s->x->rank; d++)
        if (s->full[d] == full)
            sizes[m++] = s->x->dims[d];
    fx_k_delinearise(k, linear, m, sizes, part);
    for (int d = 0, o = 0; d < s->x->rank; d++)
        if (s->full[d] == full)
            idx[d] = part[o++];
}

static fx_kx *position(fx_kir *k, const shape *s, fx_kx *const *idx) {
    int64_t sizes[FX_MAX_RANK];
    fx_kx *part[FX_MAX_RANK];
    int m = 0;
    for (int d = 0; d < s->x->rank; d++)
        if (!s->full[d]) {
            sizes[m] = s->x->dims[d];
            part[m++] = idx[d];
        }
    return fx_k_linearise(k, m, sizes, part);
}

/* Writes the operand into the buffer (elements of type `type`). */
static fx_status copy(fx_emit *e, const fx_group *g, const shape *s, int buffer, fx_dtype type) {
    fx_kir *k = &e->k;
    int64_t n = fx_spec_count(s->x), width = n % 2 ? 1 : 2, block = 256, per = 8;
    while (per > 1 && n / (block * width * per) < 8)
        per /= 2;
    int64_t most = e->caps->max_invocations ? (int64_t)e->caps->max_invocations : 128, share;
    block = block > most ? most : block;
    share = block * per;
    k->workgroup[0] = (uint32_t)block;
    fx_kx *h = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, (n / width + share - 1) / share), share),
                        fx_k_builtin(k, FX_KB_LOCAL, block)),
          *x[2];
    if (per > 1)
        h = fx_k_add(k, h, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, share), block, false));
    bool guard = h->hi >= n / width;
    if (guard) {
        fx_k_if(k, fx_k_lt(k, h, fx_k_int(k, n / width)));
        h = fx_k_bound(k, h, 0, n / width - 1);
    }
    fx_kx *at = fx_k_mulc(k, h, width);
    e->lo.pairs = width == 2;
    e->lo.in_place = at;
    e->lo.in_place2 = fx_k_addc(k, at, width - 1);
    for (int w = 0; w < width; w++)
        x[w] = fx_k_let(k, fx_lower_linear(&e->lo, fx_value_of(s->node->in[0]), fx_k_addc(k, at, w)));
    int arg = fx_lower_arg(&e->lo, buffer, type);
    if (width == 2 && fx_lower_pairable(&e->lo, buffer, type, n, at))
        fx_k_storev(k, arg, at, 2, x);
    else
        for (int w = 0; w < width; w++)
            fx_k_store(k, arg, fx_k_addc(k, at, w), x[w]);
    if (guard)
        fx_k_end(k);
    if (per > 1)
        fx_k_end(k);
    e->schedule = "scatter.copy";
    return fx_emit_kernel(e, g);
}

/* One update: `i` its number, idx[] the lane's full coordinates, [low, high) its range of positions. */
static void update(fx_emit *e, const shape *s, int arg, fx_kx *i, fx_kx **idx, fx_kx *low, fx_kx *high) {
    fx_kir *k = &e->k;
    fx_lower *lo = &e->lo;
    fx_kx *at[FX_MAX_RANK], *start[FX_MAX_RANK], *uidx[FX_MAX_RANK], *hit = fx_k_bool(k, true), *zero = fx_k_int(k, 0);
    int loops = 0;
    fx_k_delinearise_around(k, i, s->i->rank, s->i->dims, s->vec, zero, at);
    for (int d = 0; d < s->x->rank; d++)
        start[d] = zero;
    for (int j = 0; j < s->n_map; j++) {
        int d = (int)s->map[j];
        int64_t last = s->x->dims[d] - s->size[d];
        if (s->vec < s->i->rank)
            at[s->vec] = fx_k_int(k, j);
        start[d] = fx_k_let(k, fx_lower_index_data(lo, s->node->in[1], at, -1, last + 1));
        hit = fx_k_and(k, hit, fx_k_and(k, fx_k_le(k, zero, start[d]), fx_k_le(k, start[d], fx_k_int(k, last))));
    }
    bool one = true; /* a single position: its range is part of the condition */
    for (int d = 0; d < s->x->rank; d++)
        one &= s->full[d] || s->size[d] == 1;
    for (int j = 0; j < s->n_ob; j++)
        start[s->ob[j]] = at[s->ib[j]];
    fx_kx *where = one ? position(k, s, start) : NULL;
    if (one)
        hit = fx_k_and(k, hit, fx_k_and(k, fx_k_le(k, low, where), fx_k_lt(k, where, high)));
    fx_k_if(k, hit);
    for (int d = 0; d < s->x->rank; d++) {
        fx_kx *o = zero;
        if (s->full[d]) {
            uidx[s->window[d]] = idx[d];
            continue;
        }
        if (s->size[d] > 1) {
            o = fx_k_for(k, zero, fx_k_int(k, s->size[d]), 1, false);
            loops++;
        }
        if (s->window[d] >= 0)
            uidx[s->window[d]] = o;
        idx[d] = fx_k_add(k, fx_k_bound(k, start[d], 0, s->x->dims[d] - s->size[d]), o);
    }
    for (int d = 0, b = 0; d < s->u->rank; d++) {
        bool is_win = false;
        for (int j = 0; j < s->n_win; j++)
            is_win |= s->win[j] == d;
        if (is_win)
            continue;
        b += b == s->vec;
        uidx[d] = at[b++];
    }
    if (!one) {
        where = position(k, s, idx);
        fx_k_if(k, fx_k_and(k, fx_k_le(k, low, where), fx_k_lt(k, where, high)));
    }
    fx_symbol kind = FX_GET_SYM(s->node);
    fx_kx *linear = fx_k_linearise(k, s->x->rank, s->x->dims, idx), *v = fx_lower_node(lo, s->node->in[2], uidx);
    if (kind != FX_SYM_set)
        v = fx_k_op2(k, fx_reduce_op(kind), s->node->spec.dtype, fx_k_load(k, arg, linear), v);
    fx_k_store(k, arg, linear, fx_k_let(k, v));
    if (!one)
        fx_k_end(k);
    while (loops--)
        fx_k_end(k);
    fx_k_end(k);
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    shape s;
    read_shape(g->inner[0], &s);
    fx_dtype d = s.node->spec.dtype, type = d == FX_F16 || d == FX_BF16 ? FX_F32 : d;
    int64_t units = e->caps->units ? (int64_t)e->caps->units : 8;
    bool widen = type != d;
    int buffer = e->lo.values->buffer[fx_value_id(e->lo.values, g->out[0])];
    if (widen) {
        fx_spec spec = *s.x;
        spec.dtype = type;
        buffer = fx_emit_temp(e, &spec);
        if (buffer < 0)
            return fx_fail_oom(0);
    }
    FX_TRY(copy(e, g, &s, buffer, type));
    /* parts of the positions: as few as fill the device, since each goes through all updates */
    int64_t want = (e->caps->barrier_is_slow ? 256 : 1024) * units, parts = want / (s.lanes < want ? s.lanes : want);
    parts = parts > s.positions ? s.positions : parts < 1 ? 1 : parts;
    int64_t part = (s.positions + parts - 1) / parts;
    parts = (s.positions + part - 1) / part;
    bool guard;
    fx_kx *id = block_lane(e, s.lanes * parts, &guard), *idx[FX_MAX_RANK];
    spread(k, &s, true, fx_k_mod(k, id, s.lanes), idx);
    fx_kx *low = fx_k_mulc(k, fx_k_div(k, id, s.lanes), part), *high = fx_k_addc(k, low, part);
    int arg = fx_lower_arg(&e->lo, buffer, type);
    k->args[arg].writes = true; /* what it reads there it may have written */
    fx_kx *i = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, s.updates), 1, false);
    update(e, &s, arg, i, idx, low, high);
    fx_k_end(k);
    if (widen) { /* to the result's type, what this lane owns */
        fx_kx *p = fx_k_add(k, low, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, part), 1, false));
        fx_k_if(k, fx_k_lt(k, p, fx_k_int(k, s.positions)));
        spread(k, &s, false, fx_k_bound(k, p, 0, s.positions - 1), idx);
        fx_kx *linear = fx_k_linearise(k, s.x->rank, s.x->dims, idx);
        fx_lower_store(&e->lo, g->out[0], linear, fx_k_load(k, arg, linear));
        fx_k_end(k);
        fx_k_end(k);
    }
    if (guard)
        fx_k_end(k);
    e->schedule = "scatter";
    return FX_OK;
}

const fx_schedule fx_schedule_scatter = {"scatter", FX_GROUP_SPECIAL, match, emit};
