/* schedule_contract_subgroup.c - products by subgroups without shared memory or barriers.
 *
 * A subgroup computes a tile of TM rows x TN vectors of columns in registers; lanes run along the columns. A step
 * of KU depth loads TM x KU elements of the rows' operand, spread over the lanes and broadcast from constant lanes,
 * and KU x TN vectors of the columns' operand. Everything inside a step is straight-line code: on software devices
 * a branch or inner loop costs more than the arithmetic. Loads past an edge are clamped to it, the depth's rest is
 * a second step of its own length, stores are guarded. Where neighbours in memory can be fetched together, indices
 * are arranged so that fx_kir_join_loads sees it.
 *
 * Sums go through a local array, so that the epilogue is a loop: its code exists once for each column. */
#include "core/compile/contract.h"
#include "core/compile/schedule.h"

enum { MOST_ROWS = 16, MOST_VECTORS = 4, MOST_STEP = 16 };

typedef struct shape {
    int tm, tn, ku;
    int64_t lanes, stacked;    /* subgroup size, subgroups of a workgroup (along the rows) */
    int row_depth, row_across; /* elements of one load of the rows' operand */
    bool row_order_depth;      /* lanes run along the depth first */
    int col_group;             /* neighbouring columns that a lane owns */
    int64_t row_tiles, col_tiles;
    bool rows_first; /* neighbouring workgroups differ in their rows */
} shape;

typedef struct work {
    fx_tile t;
    shape s;
    fx_kx *b, *row0, *col[MOST_VECTORS], *lane;
    fx_kx *acc[MOST_ROWS][MOST_VECTORS];
} work;

/* ---- choices ---- */

static double efficiency(int tm) {
    return tm >= 16 ? 1.0 : tm == 8 ? 0.85 : tm == 4 ? 0.6 : tm == 2 ? 0.35 : 0.2;
}

static void choose_tile(const fx_tile *t, shape *s) {
    double best = 0;
    bool wide = fx_dtype_size(t->acc) == 8; /* twice the registers */
    for (int tm = wide ? 8 : 16; tm >= 1; tm /= 2) {
        double rate = efficiency(tm) * (double)t->rows / (double)(fx_ceil_div(t->rows, tm) * tm);
        if (rate > best) {
            best = rate;
            s->tm = tm;
        }
    }
    s->tn = t->cols > s->lanes ? 2 : 1;
    s->ku = 8;
}

static void choose_loads(const fx_tile *t, shape *s) {
    s->row_depth = fx_tile_width(t, true, FX_TILE_DEPTH);
    s->row_across = s->row_depth > 1 ? 1 : fx_tile_width(t, true, FX_TILE_ACROSS);
    while (s->row_across > s->tm)
        s->row_across /= 2;
    s->row_order_depth = s->row_across == 1;
    if (s->row_depth == 1 && s->row_across == 1) {
        int64_t along = fx_tile_stride(t, true, FX_TILE_DEPTH), across = fx_tile_stride(t, true, FX_TILE_ACROSS);
        s->row_order_depth = !across || (along && along <= across);
    }
    s->col_group = s->tn % 2 == 0 && t->cols % 2 == 0 ? 2 : 1;
}

/* How many subgroups a workgroup stacks, and which tiles are neighbours: enough work in a workgroup to pay for
 * starting it, enough workgroups for all units, and the operand that is read again and again small. */
static void choose_grid(const fx_tile *t, shape *s) {
    const fx_device_caps *c = t->e->caps;
    s->row_tiles = fx_ceil_div(t->rows, s->tm);
    s->col_tiles = fx_ceil_div(t->cols, s->lanes * s->tn);
    int64_t fma = (int64_t)s->tm * s->tn * s->lanes * t->depth, want = 100000, units = c->units ? c->units : 8;
    int64_t most = (int64_t)c->max_invocations / s->lanes;
    most = most < 16 ? most : 16;
    s->stacked = fx_ceil_div(want, fma > 0 ? fma : 1);
    if (t->batch > 1 && s->row_tiles <= most)
        s->stacked = s->row_tiles;
    while (s->stacked > 1 && fx_ceil_div(s->row_tiles, s->stacked) * s->col_tiles * t->batch < 8 * units)
        s->stacked--;
    s->stacked = s->stacked < most ? s->stacked : most;
    s->stacked = s->stacked < s->row_tiles ? s->stacked : s->row_tiles;
    s->stacked = fx_ceil_div(s->row_tiles, fx_ceil_div(s->row_tiles, s->stacked));
    double a = (double)t->rows * (double)t->depth, b = (double)t->cols * (double)t->depth, cache = 262144;
    double by_cols = a + (b <= cache ? b : b * (double)s->row_tiles);
    double by_rows = b + (a <= cache ? a : a * (double)s->col_tiles);
    s->rows_first = by_rows < by_cols;
}

/* ---- the kernel ---- */

/* One step of ku depth from position k0: ku is even wherever loads bring two along the depth. */
static void step(work *w, fx_kx *k0, int ku) {
    fx_kir *k = &w->t.e->k;
    const shape *s = &w->s;
    int pk = s->row_depth, pr = s->row_across, tm = s->tm;
    while (ku % pk)
        pk /= 2;
    int units_k = ku / pk, units_r = tm / pr, units = units_k * units_r;
    int64_t lanes = s->lanes;
    fx_kx *spread[MOST_ROWS * MOST_STEP][4]; /* [vector of units][element of the unit] */
    for (int v = 0; v * lanes < units; v++) {
        int64_t first = v * lanes;
        fx_kx *f = fx_k_addc(k, w->lane, first), *r, *d;
        f = fx_k_min(k, f, fx_k_int(k, units - 1));
        int64_t inner = s->row_order_depth ? units_k : units_r;
        fx_kx *in = fx_k_mod(k, f, inner), *out = fx_k_div(k, f, inner);
        r = fx_k_mulc(k, s->row_order_depth ? out : in, pr);
        d = fx_k_add(k, k0, fx_k_mulc(k, s->row_order_depth ? in : out, pk));
        r = fx_k_min(k, fx_k_add(k, w->row0, r), fx_k_int(k, w->t.rows - pr));
        for (int i = 0; i < pr; i++)
            for (int j = 0; j < pk; j++)
                spread[v][i * pk + j] = fx_k_let(k, fx_tile_row(&w->t, w->b, fx_k_addc(k, r, i), fx_k_addc(k, d, j)));
    }
    for (int j = 0; j < ku; j++) {
        fx_kx *y[MOST_VECTORS];
        for (int c = 0; c < s->tn; c++)
            y[c] = fx_k_let(k, fx_tile_col(&w->t, w->b, fx_k_addc(k, k0, j), w->col[c]));
        for (int i = 0; i < tm; i++) {
            int in = s->row_order_depth ? j / pk : i / pr, out = s->row_order_depth ? i / pr : j / pk;
            int unit = out * (s->row_order_depth ? units_k : units_r) + in;
            fx_kx *from = spread[unit / (int)lanes][i % pr * pk + j % pk];
            fx_kx *x =
                fx_kx_is_const(from) ? from : fx_k_subgroup(k, FX_SUB_BROADCAST, from, fx_k_int(k, unit % (int)lanes));
            for (int c = 0; c < s->tn; c++)
                fx_tile_fma(&w->t, w->acc[i][c], x, y[c]);
        }
    }
}

static void sums(work *w) {
    fx_kir *k = &w->t.e->k;
    const shape *s = &w->s;
    fx_kx *zero = fx_k_number(k, w->t.acc, 0);
    for (int i = 0; i < s->tm; i++)
        for (int c = 0; c < s->tn; c++)
            w->acc[i][c] = fx_k_mut(k, zero);
    int64_t steps = w->t.depth / s->ku, rest = w->t.depth % s->ku;
    if (steps == 1)
        step(w, fx_k_int(k, 0), s->ku);
    else if (steps) {
        fx_kx *i = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, steps), 1, false);
        step(w, fx_k_mulc(k, i, s->ku), s->ku);
        fx_k_end(k);
    }
    if (rest)
        step(w, fx_k_int(k, steps * s->ku), (int)rest);
}

static void epilogue(work *w, fx_kx *const *col_raw) {
    fx_kir *k = &w->t.e->k;
    const shape *s = &w->s;
    fx_kx *flat[MOST_ROWS * MOST_VECTORS];
    for (int i = 0; i < s->tm; i++)
        for (int c = 0; c < s->tn; c++)
            flat[i * s->tn + c] = fx_k_read(k, w->acc[i][c]);
    fx_kx *array = fx_k_array(k, s->tm * s->tn, flat), *zero = fx_k_int(k, 0);
    fx_kx *rows = fx_k_min(k, fx_k_int(k, s->tm), fx_k_sub(k, fx_k_int(k, w->t.rows), w->row0));
    for (int c = 0; c < s->tn; c += s->col_group) {
        fx_kx *inside = fx_k_lt(k, col_raw[c], fx_k_int(k, w->t.cols));
        bool guard = !fx_kx_is_const(inside);
        if (guard)
            fx_k_if(k, inside);
        fx_kx *i = zero, *value[2];
        if (s->tm > 1) {
            i = fx_k_for(k, zero, rows, 1, false);
            fx_k_keep_loop(k);
        }
        for (int j = 0; j < s->col_group; j++)
            value[j] = fx_k_element(k, array, fx_k_addc(k, fx_k_mulc(k, i, s->tn), c + j));
        fx_kx *row = fx_k_bound(k, fx_k_add(k, w->row0, i), 0, w->t.rows - 1);
        fx_tile_store(&w->t, w->b, row, s->col_group, &w->col[c], value);
        if (s->tm > 1)
            fx_k_end(k);
        if (guard)
            fx_k_end(k);
    }
}

static bool match(const fx_emit *e, const fx_group *g) {
    fx_contraction c;
    const fx_device_caps *caps = e->caps;
    int forced = e->builder->opt ? e->builder->opt->contract : FX_CONTRACT_AUTO;
    if (forced ? forced != FX_CONTRACT_SUBGROUP : !caps->barrier_is_slow)
        return false;
    if (!caps->subgroup_ballot || caps->subgroup_size < 4 || caps->subgroup_size > 64 || g->n_inner != 1 ||
        !fx_contraction_of(g->inner[0], &c) || c.out == FX_BOOL || c.in == FX_S64 || c.in == FX_U64 || c.out == FX_S64 || c.out == FX_U64)
        return false; /* subgroup operations on 64-bit integers need an extension */
    return c.batch > 0 && c.m > 0 && c.n > 0 && c.k > 0 && (forced || c.m * c.n >= caps->subgroup_size);
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    work w = {.s.lanes = e->caps->subgroup_size};
    shape *s = &w.s;
    fx_tile_init(&w.t, e, g, fx_tile_swapped(e, g, s->lanes));
    choose_tile(&w.t, s);
    choose_loads(&w.t, s);
    choose_grid(&w.t, s);
    k->workgroup[0] = (uint32_t)s->lanes;
    k->workgroup[1] = (uint32_t)s->stacked;
    if (e->caps->subgroup_min != e->caps->subgroup_max)
        k->subgroup_size = e->caps->subgroup_size;

    int64_t row_groups = fx_ceil_div(s->row_tiles, s->stacked), groups = row_groups * s->col_tiles * w.t.batch;
    bool folded, idle;
    fx_kx *grid = fx_k_guard(k, fx_emit_grid(e, groups), groups, &folded);
    int64_t first = s->rows_first ? row_groups : s->col_tiles, second = s->rows_first ? s->col_tiles : row_groups;
    fx_kx *g0 = fx_k_mod(k, grid, first), *g1 = fx_k_mod(k, fx_k_div(k, grid, first), second);
    w.b = fx_k_div(k, grid, first * second);
    fx_kx *tile =
        fx_k_add(k, fx_k_mulc(k, s->rows_first ? g0 : g1, s->stacked), fx_k_builtin(k, FX_KB_SUBGROUP, s->stacked));
    tile = fx_k_guard(k, tile, s->row_tiles, &idle);
    w.row0 = fx_k_mulc(k, tile, s->tm);
    w.lane = fx_k_builtin(k, FX_KB_LANE, s->lanes);
    fx_kx *col0 = fx_k_mulc(k, s->rows_first ? g1 : g0, s->lanes * s->tn), *raw[MOST_VECTORS];
    for (int c = 0; c < s->tn; c++) {
        int q = s->col_group, in = c % q;
        fx_kx *lane = fx_k_addc(k, fx_k_mulc(k, w.lane, q), s->lanes * q * (c / q));
        fx_kx *base = fx_k_add(k, col0, lane);
        raw[c] = base;
        w.col[c] = fx_k_addc(k, fx_k_min(k, base, fx_k_int(k, w.t.cols - q)), in);
    }
    sums(&w);
    epilogue(&w, raw);
    if (idle)
        fx_k_end(k);
    if (folded)
        fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_contract_subgroup = {"contract.subgroup", FX_GROUP_CONTRACT, match, emit};
