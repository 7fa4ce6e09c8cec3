/* schedule_contract_panels.c - products on a processor: panels packed first, then tiles in registers.
 *
 * A tile has TM rows and TN vectors of 16 columns. The columns' operand is copied, with whatever was fused into it, into
 * panels [batch][column tile][depth][TN * 16], so that the inner loop reads one stream; the rows' operand too, as
 * [batch][row tile][depth][TM], unless it is a plain load with neighbours along the rows or the depth. Edges repeat the
 * last column or row: only stores are guarded. Goto and van de Geijn 2008, "Anatomy of high-performance matrix
 * multiplication", is the source of the scheme; caches are large enough here for whole panels along the depth.
 *
 * Workgroups have 16 invocations, the lanes of a vector; neighbouring workgroups share a panel of columns. */
#include "core/base/error.h"
#include "core/compile/contract.h"
#include "core/compile/schedule.h"

enum { LANES = 16, MOST_ROWS = 12, MOST_VECTORS = 2, DEPTH_CHUNK = 256 };

typedef struct shape {
    int tm, tn;
    int64_t row_tiles, col_tiles, width; /* width: columns of a tile */
} shape;

/* Rows that waste little: most sums are kept in registers at 12 x 2 vectors of f32, half as many of f64. */
static void choose(const fx_tile *t, shape *s) {
    bool wide = fx_dtype_size(t->acc) == 8;
    s->tn = t->cols > LANES && !wide ? 2 : 1;
    double best = 0;
    for (int tm = wide ? 8 : MOST_ROWS; tm >= 1; tm--) {
        double rate = (double)tm / (tm + 2.0) * (double)t->rows / (double)(fx_ceil_div(t->rows, tm) * tm);
        if (rate > best) {
            best = rate;
            s->tm = tm;
        }
    }
    s->width = (int64_t)s->tn * LANES;
    s->row_tiles = fx_ceil_div(t->rows, s->tm);
    s->col_tiles = fx_ceil_div(t->cols, s->width);
}

/* ---- packing ---- */

/* Copies the operand into `temp`: [batch][tile][depth][wide], an element a lane, `wide` elements across. */
static fx_status pack(fx_emit *e, const fx_group *g, fx_tile *t, bool of_rows, int64_t tiles, int64_t wide, int temp) {
    fx_kir *k = &e->k;
    int64_t across = of_rows ? t->rows : t->cols, chunk = t->depth < DEPTH_CHUNK ? t->depth : DEPTH_CHUNK, chunks = fx_ceil_div(t->depth, chunk);
    int64_t groups = t->batch * tiles * chunks;
    bool guard, some;
    k->workgroup[0] = LANES;
    fx_kx *n = fx_k_guard(k, fx_emit_grid(e, groups), groups, &guard);
    fx_kx *part = fx_k_mulc(k, fx_k_mod(k, n, chunks), chunk), *rest = fx_k_div(k, n, chunks);
    fx_kx *tile = fx_k_mod(k, rest, tiles), *b = fx_k_div(k, rest, tiles), *lane = fx_k_builtin(k, FX_KB_LANE, LANES);
    fx_kx *end = fx_k_min(k, fx_k_addc(k, part, chunk), fx_k_int(k, t->depth));
    fx_kx *d = fx_k_bound(k, fx_k_for(k, part, end, 1, false), 0, t->depth - 1);
    int arg = fx_lower_arg(&e->lo, temp, t->acc);
    for (int64_t c = 0; c < wide; c += LANES) {
        fx_kx *in = fx_k_guard(k, fx_k_addc(k, lane, c), wide, &some);
        fx_kx *at = fx_k_min(k, fx_k_add(k, fx_k_mulc(k, tile, wide), in), fx_k_int(k, across - 1));
        fx_kx *x = fx_k_let(k, of_rows ? fx_tile_row(t, b, at, d) : fx_tile_col(t, b, d, at));
        fx_kx *row = fx_k_add(k, fx_k_mulc(k, fx_k_add(k, fx_k_mulc(k, b, tiles), tile), t->depth), d);
        fx_k_store(k, arg, fx_k_add(k, fx_k_mulc(k, row, wide), in), x);
        if (some)
            fx_k_end(k);
    }
    fx_k_end(k);
    if (guard)
        fx_k_end(k);
    e->schedule = "contract.pack";
    return fx_emit_kernel(e, g);
}

static int packed(fx_emit *e, const fx_tile *t, int64_t tiles, int64_t wide) {
    fx_spec spec = FX_SPEC(t->acc, t->batch * tiles * t->depth * wide);
    return fx_emit_temp(e, &spec);
}

/* ---- tiles ---- */

typedef struct work {
    fx_tile t;
    shape s;
    int rows, cols; /* packed operands' buffers, -1: read where it is */
    fx_kx *b, *row_tile, *col_tile, *row0, *col[MOST_VECTORS], *raw[MOST_VECTORS], *lane;
    fx_kx *acc[MOST_ROWS][MOST_VECTORS];
} work;

static fx_kx *from_panel(work *w, int buffer, fx_kx *tile, int64_t tiles, fx_kx *d, int64_t wide, fx_kx *in) {
    fx_kir *k = &w->t.e->k;
    fx_kx *row = fx_k_add(k, fx_k_mulc(k, fx_k_add(k, fx_k_mulc(k, w->b, tiles), tile), w->t.depth), d);
    return fx_k_load(k, fx_lower_arg(&w->t.e->lo, buffer, w->t.acc), fx_k_add(k, fx_k_mulc(k, row, wide), in));
}

static void sums(work *w) {
    fx_kir *k = &w->t.e->k;
    const shape *s = &w->s;
    fx_kx *zero = fx_k_number(k, w->t.acc, 0), *y[MOST_VECTORS];
    for (int i = 0; i < s->tm; i++)
        for (int c = 0; c < s->tn; c++)
            w->acc[i][c] = fx_k_mut(k, zero);
    fx_kx *d = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, w->t.depth), 1, false);
    fx_k_keep_loop(k);
    for (int c = 0; c < s->tn; c++)
        y[c] = w->cols >= 0 ? from_panel(w, w->cols, w->col_tile, s->col_tiles, d, s->width,
                                         fx_k_addc(k, w->lane, (int64_t)c * LANES))
                            : fx_k_let(k, fx_tile_col(&w->t, w->b, d, w->col[c]));
    for (int i = 0; i < s->tm; i++) {
        fx_kx *row = fx_k_min(k, fx_k_addc(k, w->row0, i), fx_k_int(k, w->t.rows - 1));
        fx_kx *x = w->rows >= 0 ? from_panel(w, w->rows, w->row_tile, s->row_tiles, d, s->tm, fx_k_int(k, i))
                                : fx_k_let(k, fx_tile_row(&w->t, w->b, row, d));
        for (int c = 0; c < s->tn; c++)
            fx_tile_fma(&w->t, w->acc[i][c], x, y[c]);
    }
    fx_k_end(k);
}

static void epilogue(work *w) {
    fx_kir *k = &w->t.e->k;
    const shape *s = &w->s;
    fx_kx *flat[MOST_ROWS * MOST_VECTORS], *zero = fx_k_int(k, 0), *i = zero;
    for (int r = 0; r < s->tm; r++)
        for (int c = 0; c < s->tn; c++)
            flat[r * s->tn + c] = fx_k_read(k, w->acc[r][c]);
    fx_kx *array = fx_k_array(k, s->tm * s->tn, flat);
    fx_kx *rows = fx_k_min(k, fx_k_int(k, s->tm), fx_k_sub(k, fx_k_int(k, w->t.rows), w->row0));
    if (s->tm > 1) {
        i = fx_k_for(k, zero, rows, 1, false);
        fx_k_keep_loop(k);
    }
    for (int c = 0; c < s->tn; c++) {
        fx_kx *inside = fx_k_lt(k, w->raw[c], fx_k_int(k, w->t.cols));
        bool guard = !fx_kx_is_const(inside);
        if (guard)
            fx_k_if(k, inside);
        fx_kx *value = fx_k_element(k, array, fx_k_addc(k, fx_k_mulc(k, i, s->tn), c));
        fx_kx *row = fx_k_bound(k, fx_k_add(k, w->row0, i), 0, w->t.rows - 1);
        fx_tile_store(&w->t, w->b, row, 1, &w->col[c], &value);
        if (guard)
            fx_k_end(k);
    }
    if (s->tm > 1)
        fx_k_end(k);
}

/* ---- choice ---- */

static bool match(const fx_emit *e, const fx_group *g) {
    fx_contraction c;
    int forced = e->builder->opt ? e->builder->opt->contract : FX_CONTRACT_AUTO;
    return e->caps->language == FX_LANGUAGE_C && forced == FX_CONTRACT_AUTO && g->n_inner == 1 &&
           fx_contraction_of(g->inner[0], &c) && c.out != FX_BOOL && c.batch > 0 && c.m > 0 && c.n > 0 && c.k > 0 &&
           c.m * c.n >= 4 * LANES;
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    work w = {.rows = -1, .cols = -1};
    shape *s = &w.s;
    bool guard;
    fx_tile_init(&w.t, e, g, fx_tile_swapped(e, g, LANES));
    choose(&w.t, s);
    int64_t across = fx_tile_stride(&w.t, false, FX_TILE_ACROSS);
    bool cols_plain = fx_tile_plain(&w.t, false) && across == 1, rows_plain = fx_tile_plain(&w.t, true);
    if (!cols_plain || s->row_tiles > 1) {
        w.cols = packed(e, &w.t, s->col_tiles, s->width);
        if (w.cols < 0)
            return fx_fail_oom(0);
        FX_TRY(pack(e, g, &w.t, false, s->col_tiles, s->width, w.cols));
    }
    if (!rows_plain && s->col_tiles > 1) {
        w.rows = packed(e, &w.t, s->row_tiles, s->tm);
        if (w.rows < 0)
            return fx_fail_oom(0);
        FX_TRY(pack(e, g, &w.t, true, s->row_tiles, s->tm, w.rows));
    }
    e->schedule = "contract.panels";
    k->workgroup[0] = LANES;
    int64_t groups = w.t.batch * s->row_tiles * s->col_tiles;
    fx_kx *n = fx_k_guard(k, fx_emit_grid(e, groups), groups, &guard);
    w.row_tile = fx_k_mod(k, n, s->row_tiles);
    w.col_tile = fx_k_mod(k, fx_k_div(k, n, s->row_tiles), s->col_tiles);
    w.b = fx_k_div(k, n, s->row_tiles * s->col_tiles);
    w.lane = fx_k_builtin(k, FX_KB_LANE, LANES);
    w.row0 = fx_k_mulc(k, w.row_tile, s->tm);
    for (int c = 0; c < s->tn; c++) {
        w.raw[c] = fx_k_add(k, fx_k_mulc(k, w.col_tile, s->width), fx_k_addc(k, w.lane, (int64_t)c * LANES));
        w.col[c] = fx_k_min(k, w.raw[c], fx_k_int(k, w.t.cols - 1));
    }
    sums(&w);
    epilogue(&w);
    if (guard)
        fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_contract_panels = {"contract.panels", FX_GROUP_CONTRACT, match, emit};
