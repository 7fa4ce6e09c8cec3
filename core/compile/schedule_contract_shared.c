/* schedule_contract_shared.c - products by workgroups that stage both operands in shared memory.
 *
 * A workgroup computes a tile of BM x BN; a block of BK depth of each operand is staged, then every invocation adds to
 * its TM x TN sums. Needs no subgroup operations and no particular subgroup size. Positions past an edge are clamped,
 * past the depth's end both operands are staged as 0; stores are guarded. Invocations fetch units of neighbours along
 * whichever axis lies contiguous in memory, as words where possible, and consecutive invocations consecutive units. */
#include "core/compile/contract.h"
#include "core/compile/schedule.h"

enum { BK = 16, MOST_PER = 4, PAD = 1 };

typedef struct side { /* one operand's share */
    int64_t block;    /* rows or columns of the tile */
    int64_t extent;   /* of the product */
    int width;        /* elements of a unit */
    bool along_depth; /* units run along the depth */
    int shared;
} side;

typedef struct work {
    fx_tile t;
    side row, col;
    int per; /* rows, and columns, of an invocation */
    int64_t threads;
    fx_kx *b, *row0, *col0, *local;
    fx_kx *acc[MOST_PER][MOST_PER];
} work;

static void choose_loads(const work *w, side *s, bool of_rows) {
    int depth = fx_tile_width(&w->t, of_rows, FX_TILE_DEPTH), across = fx_tile_width(&w->t, of_rows, FX_TILE_ACROSS);
    while (w->t.depth % depth)
        depth /= 2;
    s->width = depth > across ? depth : across;
    s->along_depth = depth > across;
    if (s->width == 1) {
        int64_t d = fx_tile_stride(&w->t, of_rows, FX_TILE_DEPTH), a = fx_tile_stride(&w->t, of_rows, FX_TILE_ACROSS);
        s->along_depth = d && (!a || d < a);
    }
}

/* Stages the block of depth that starts at k0. Element (depth k, position p) is at k * (block + PAD) + p. */
static void stage(work *w, const side *s, bool of_rows, fx_kx *k0) {
    fx_kir *k = &w->t.e->k;
    int64_t pk = s->along_depth ? s->width : 1, pp = s->along_depth ? 1 : s->width;
    int64_t units_k = BK / pk, units_p = s->block / pp, units = units_k * units_p;
    fx_kx *zero = fx_k_number(k, w->t.acc, 0), *base = of_rows ? w->row0 : w->col0;
    for (int64_t first = 0; first < units; first += w->threads) {
        fx_kx *f = fx_k_addc(k, w->local, first);
        bool rest = units - first < w->threads;
        if (rest) {
            fx_k_if(k, fx_k_lt(k, f, fx_k_int(k, units)));
            f = fx_k_bound(k, f, 0, units - 1);
        }
        int64_t inner = s->along_depth ? units_k : units_p;
        fx_kx *in = fx_k_mod(k, f, inner), *out = fx_k_div(k, f, inner);
        fx_kx *uk = fx_k_mulc(k, s->along_depth ? in : out, pk), *up = fx_k_mulc(k, s->along_depth ? out : in, pp);
        fx_kx *kk = fx_k_add(k, k0, uk), *valid = fx_k_lt(k, kk, fx_k_int(k, w->t.depth)), *x[4];
        fx_kx *ck = fx_k_min(k, kk, fx_k_int(k, w->t.depth - pk));
        fx_kx *cp = fx_k_min(k, fx_k_add(k, base, up), fx_k_int(k, s->extent - pp));
        for (int j = 0; j < s->width; j++) {
            fx_kx *dk = fx_k_addc(k, ck, s->along_depth ? j : 0), *dp = fx_k_addc(k, cp, s->along_depth ? 0 : j);
            x[j] = of_rows ? fx_tile_row(&w->t, w->b, dp, dk) : fx_tile_col(&w->t, w->b, dk, dp);
        }
        for (int j = 0; j < s->width; j++) {
            fx_kx *sk = fx_k_addc(k, uk, s->along_depth ? j : 0), *sp = fx_k_addc(k, up, s->along_depth ? 0 : j);
            fx_k_shared_store(k, s->shared, fx_k_add(k, fx_k_mulc(k, sk, s->block + PAD), sp),
                              fx_k_select(k, valid, x[j], zero));
        }
        if (rest)
            fx_k_end(k);
    }
}

static void sums(work *w, fx_kx *tr, fx_kx *tc) {
    fx_kir *k = &w->t.e->k;
    for (int i = 0; i < w->per; i++)
        for (int j = 0; j < w->per; j++)
            w->acc[i][j] = fx_k_mut(k, fx_k_number(k, w->t.acc, 0));
    int64_t blocks = fx_ceil_div(w->t.depth, BK);
    fx_kx *zero = fx_k_int(k, 0), *step = fx_k_for(k, zero, fx_k_int(k, blocks), 1, false);
    fx_kx *k0 = fx_k_mulc(k, step, BK);
    stage(w, &w->row, true, k0);
    stage(w, &w->col, false, k0);
    fx_k_barrier(k);
    fx_kx *kk = fx_k_for(k, zero, fx_k_int(k, BK), 1, !w->t.e->caps->barrier_is_slow), *x[MOST_PER], *y[MOST_PER];
    for (int i = 0; i < w->per; i++) {
        x[i] =
            fx_k_shared_load(k, w->row.shared, fx_k_add(k, fx_k_mulc(k, kk, w->row.block + PAD), fx_k_addc(k, tr, i)));
        y[i] =
            fx_k_shared_load(k, w->col.shared, fx_k_add(k, fx_k_mulc(k, kk, w->col.block + PAD), fx_k_addc(k, tc, i)));
    }
    for (int i = 0; i < w->per; i++)
        for (int j = 0; j < w->per; j++)
            fx_tile_fma(&w->t, w->acc[i][j], x[i], y[j]);
    fx_k_end(k);
    fx_k_barrier(k);
    fx_k_end(k);
}

static void epilogue(work *w, fx_kx *tr, fx_kx *tc) {
    fx_kir *k = &w->t.e->k;
    int group = w->per % 2 == 0 && w->t.cols % 2 == 0 ? 2 : 1;
    fx_kx *row0 = fx_k_add(k, w->row0, tr), *col0 = fx_k_add(k, w->col0, tc);
    for (int i = 0; i < w->per; i++) {
        fx_kx *row = fx_k_addc(k, row0, i), *inside = fx_k_lt(k, row, fx_k_int(k, w->t.rows));
        if (fx_kx_is_int(inside, 0))
            continue;
        bool guard_row = !fx_kx_is_const(inside);
        if (guard_row) {
            fx_k_if(k, inside);
            row = fx_k_bound(k, row, 0, w->t.rows - 1);
        }
        for (int j = 0; j < w->per; j += group) {
            fx_kx *col = fx_k_addc(k, col0, j), *pair[2], *value[2];
            inside = fx_k_lt(k, col, fx_k_int(k, w->t.cols));
            if (fx_kx_is_int(inside, 0))
                continue;
            bool guard = !fx_kx_is_const(inside);
            if (guard)
                fx_k_if(k, inside);
            col = fx_k_min(k, col, fx_k_int(k, w->t.cols - group)); /* the same value here, with its range */
            for (int q = 0; q < group; q++) {
                pair[q] = fx_k_addc(k, col, q);
                value[q] = fx_k_read(k, w->acc[i][j + q]);
            }
            fx_tile_store(&w->t, w->b, row, group, pair, value);
            if (guard)
                fx_k_end(k);
        }
        if (guard_row)
            fx_k_end(k);
    }
}

/* The largest tile that leaves work for every unit and isn't mostly beyond the edges; 0 when the device has too few
 * invocations or too little shared memory for the smallest. */
static int64_t choose_block(const fx_device_caps *caps, const fx_tile *t, int *per) {
    int64_t units = caps->units ? caps->units : 32;
    for (int64_t block = 64; block >= 16; block /= 2) {
        int64_t threads = (block / 4) * (block / 4), bytes = 2 * BK * (block + PAD) * (int64_t)fx_dtype_size(t->acc);
        *per = 4;
        if (threads > (int64_t)caps->max_invocations || threads > (int64_t)caps->max_workgroup[0] ||
            bytes > (int64_t)caps->shared_bytes)
            continue;
        bool fills = fx_ceil_div(t->rows, block) * fx_ceil_div(t->cols, block) * t->batch >= 2 * units;
        bool fits = t->rows > block / 2 && t->cols > block / 2;
        if (block == 16 || (fills && fits))
            return block;
    }
    return 0;
}

static bool match(const fx_emit *e, const fx_group *g) {
    fx_tile t;
    int per;
    int forced = e->builder->opt ? (int)e->builder->opt->contract : FX_CONTRACT_AUTO;
    if (forced ? forced != FX_CONTRACT_SHARED : e->caps->barrier_is_slow)
        return false;
    if (!fx_tile_init(&t, (fx_emit *)(uintptr_t)e, g, false) || t.c.out == FX_BOOL)
        return false;
    bool any = t.batch > 0 && t.rows > 0 && t.cols > 0 && t.depth > 0;
    return any && (forced || (t.rows >= 8 && t.cols >= 8)) && choose_block(e->caps, &t, &per);
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    work w = {.per = 4};
    fx_tile_init(&w.t, e, g, false);
    if (!fx_tile_cols_contiguous(&w.t)) { /* neighbouring invocations store neighbouring elements */
        fx_tile other;
        fx_tile_init(&other, e, g, true);
        if (fx_tile_cols_contiguous(&other))
            w.t = other;
    }
    int64_t block = choose_block(e->caps, &w.t, &w.per), lanes = block / w.per;
    w.row = (side){.block = block, .extent = w.t.rows};
    w.col = (side){.block = block, .extent = w.t.cols};
    choose_loads(&w, &w.row, true);
    choose_loads(&w, &w.col, false);
    w.row.shared = fx_k_shared(k, w.t.acc, BK * (block + PAD));
    w.col.shared = fx_k_shared(k, w.t.acc, BK * (block + PAD));
    w.threads = lanes * lanes;
    k->workgroup[0] = (uint32_t)w.threads;

    int64_t row_tiles = fx_ceil_div(w.t.rows, block), col_tiles = fx_ceil_div(w.t.cols, block);
    int64_t groups = row_tiles * col_tiles * w.t.batch;
    bool folded; /* the same for the whole workgroup: barriers inside are fine */
    fx_kx *grid = fx_k_guard(k, fx_emit_grid(e, groups), groups, &folded);
    w.local = fx_k_builtin(k, FX_KB_LOCAL, w.threads);
    w.b = fx_k_div(k, grid, row_tiles * col_tiles);
    w.row0 = fx_k_mulc(k, fx_k_mod(k, fx_k_div(k, grid, col_tiles), row_tiles), block);
    w.col0 = fx_k_mulc(k, fx_k_mod(k, grid, col_tiles), block);
    fx_kx *tr = fx_k_mulc(k, fx_k_div(k, w.local, lanes), w.per),
          *tc = fx_k_mulc(k, fx_k_mod(k, w.local, lanes), w.per);
    sums(&w, tr, tc);
    epilogue(&w, tr, tc);
    if (folded)
        fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_contract_shared = {"contract.shared", FX_GROUP_CONTRACT, match, emit};
