/* contract.c - the product seen as rows x columns x depth: operands, probes, epilogue. */
#include "core/compile/contract.h"

#include <stdlib.h>

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    fx_tile *t = user;
    (void)lo;
    (void)index; /* fusion saw to it that the product is asked where it is stored */
    if (v.node != t->c.node || !t->value)
        return false;
    *x = t->value;
    return true;
}

bool fx_tile_init(fx_tile *t, fx_emit *e, const fx_group *g, bool swap) {
    *t = (fx_tile){.e = e, .g = g, .swap = swap};
    if (g->n_inner != 1 || !fx_contraction_of(g->inner[0], &t->c))
        return false;
    t->rows = swap ? t->c.n : t->c.m;
    t->cols = swap ? t->c.m : t->c.n;
    t->depth = t->c.k;
    t->batch = t->c.batch;
    t->acc = fx_kir_register(t->c.out);
    return true;
}

fx_kx *fx_tile_row(fx_tile *t, fx_kx *b, fx_kx *row, fx_kx *depth) {
    fx_lower *lo = &t->e->lo;
    return t->swap ? fx_contraction_b(lo, &t->c, b, depth, row) : fx_contraction_a(lo, &t->c, b, row, depth);
}

fx_kx *fx_tile_col(fx_tile *t, fx_kx *b, fx_kx *depth, fx_kx *col) {
    fx_lower *lo = &t->e->lo;
    return t->swap ? fx_contraction_a(lo, &t->c, b, col, depth) : fx_contraction_b(lo, &t->c, b, depth, col);
}

void fx_tile_fma(fx_tile *t, fx_kx *acc, fx_kx *x, fx_kx *y) {
    fx_kir *k = &t->e->k;
    if (fx_dtype_is_float(t->c.out)) { /* the product first, in the order of the operands, then the sum */
        fx_kx *in[3] = {t->swap ? y : x, t->swap ? x : y, acc};
        fx_k_set(k, acc, fx_k_fn(k, "fma", t->c.out, 3, in));
        return;
    }
    fx_kx *p = t->swap ? fx_k_op2(k, FX_OP_mul, t->c.out, y, x) : fx_k_op2(k, FX_OP_mul, t->c.out, x, y);
    fx_k_set(k, acc, fx_k_op2(k, FX_OP_add, t->c.out, acc, p));
}

static fx_kx *position(fx_tile *t, fx_lower *lo, fx_kx *b, fx_kx *row, fx_kx *col) {
    fx_kx *index[FX_MAX_RANK], *m = t->swap ? col : row, *n = t->swap ? row : col;
    fx_kir *k = lo->k;
    const fx_spec *s = &t->c.node->spec;
    if (t->c.node->op == FX_OP_dot_general)
        return fx_k_add(k, fx_k_mulc(k, fx_k_add(k, fx_k_mulc(k, b, t->c.m), m), t->c.n), n);
    fx_contraction_index(lo, &t->c, b, m, n, index);
    return fx_k_linearise(k, s->rank, s->dims, index);
}

void fx_tile_store(fx_tile *t, fx_kx *b, fx_kx *row, int n, fx_kx *const *col, fx_kx *const *value) {
    fx_lower *lo = &t->e->lo;
    fx_kir *k = lo->k;
    enum { MOST = 4, MOST_OUT = 64 };
    fx_kx *at[MOST], *x[MOST_OUT][MOST];
    bool neighbours = n > 1;
    lo->provide = provide;
    lo->user = t;
    for (int j = 0; j < n; j++) {
        at[j] = position(t, lo, b, row, col[j]);
        neighbours &= at[j] == fx_k_addc(k, at[0], j);
        t->value = value[j];
        lo->in_place = at[j];
        for (int o = 0; o < t->g->n_out; o++)
            x[o][j] = fx_k_let(k, fx_lower_linear(lo, t->g->out[o], at[j]));
    }
    neighbours &= n > 1 && fx_kx_multiple(at[0]) % n == 0;
    for (int o = 0; o < t->g->n_out; o++) {
        if (neighbours && fx_lower_storev(lo, t->g->out[o], at[0], n, x[o]))
            continue;
        for (int j = 0; j < n; j++)
            fx_lower_store(lo, t->g->out[o], at[j], x[o][j]);
    }
    t->value = NULL;
}

/* ---- probes: the operand lowered in a scratch kernel at neighbouring positions ---- */

typedef struct probe {
    fx_arena arena;
    fx_emit e;
    fx_tile t;
    fx_kx *b, *across, *depth;
} probe;

static probe *probe_begin(const fx_tile *t, bool of_rows, int64_t across_step, int64_t depth_step) {
    probe *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    fx_arena_init(&p->arena);
    p->e.caps = t->e->caps;
    p->e.arena = &p->arena;
    fx_kir_init(&p->e.k, &p->arena);
    fx_lower_init(&p->e.lo, &p->e.k, t->e->caps, t->e->lo.values);
    p->e.lo.own = t->e->lo.own;
    p->e.lo.n_own = t->e->lo.n_own;
    p->e.lo.aligned = t->e->lo.aligned;
    p->e.lo.aligned_user = t->e->lo.aligned_user;
    p->t = *t;
    p->t.e = &p->e;
    fx_kir *k = &p->e.k;
    int64_t across = of_rows ? t->rows : t->cols;
    p->b = fx_k_builtin(k, FX_KB_GROUP_Z, t->batch);
    p->across = fx_k_mulc(k, fx_k_builtin(k, FX_KB_GROUP_X, across / across_step), across_step);
    p->depth = fx_k_mulc(k, fx_k_builtin(k, FX_KB_GROUP_Y, t->depth / depth_step), depth_step);
    return p;
}

static void probe_end(probe *p) {
    if (p)
        fx_arena_finish(&p->arena);
    free(p);
}

static void ask(probe *p, bool of_rows, fx_kx *across, fx_kx *depth) {
    if (of_rows)
        fx_k_let(&p->e.k, fx_tile_row(&p->t, p->b, across, depth));
    else
        fx_k_let(&p->e.k, fx_tile_col(&p->t, p->b, depth, across));
}

int fx_tile_width(const fx_tile *t, bool of_rows, fx_tile_axis axis) {
    int64_t across = of_rows ? t->rows : t->cols, extent = axis == FX_TILE_DEPTH ? t->depth : across;
    for (int width = 4; width > 1; width /= 2) {
        if (extent < width || (axis == FX_TILE_ACROSS && extent % width))
            continue;
        int single = 0, joined = 0;
        bool ok = true;
        for (int pass = 0; pass < 2; pass++) { /* loads of one element; of `width` of them, joined */
            probe *p = probe_begin(t, of_rows, axis == FX_TILE_ACROSS ? width : 1, axis == FX_TILE_DEPTH ? width : 1);
            if (!p)
                return 1;
            for (int j = 0; j < (pass ? width : 1); j++)
                ask(p, of_rows, axis == FX_TILE_ACROSS ? fx_k_addc(&p->e.k, p->across, j) : p->across,
                    axis == FX_TILE_DEPTH ? fx_k_addc(&p->e.k, p->depth, j) : p->depth);
            if (pass)
                fx_kir_join_loads(&p->e.k);
            *(pass ? &joined : &single) = fx_kir_count_loads(&p->e.k);
            ok &= !p->e.k.failed && p->e.lo.status == FX_OK;
            probe_end(p);
        }
        if (ok && single > 0 && joined <= single)
            return width;
    }
    return 1;
}

static fx_kx *widest_load(const fx_kblock *b) {
    fx_kx *best = NULL;
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        fx_kx *x = s->kind == FX_KS_LET && s->x->kop == FX_K_LOAD ? s->x->a[0] : NULL, *in = widest_load(s->body);
        x = x ? x : in;
        if (x && (!best || x->hi > best->hi))
            best = x;
    }
    return best;
}

int64_t fx_tile_stride(const fx_tile *t, bool of_rows, fx_tile_axis axis) {
    int64_t stride = 0;
    probe *p = probe_begin(t, of_rows, 1, 1);
    if (!p)
        return 0;
    ask(p, of_rows, p->across, p->depth);
    fx_kx *x = widest_load(&p->e.k.body), *v = axis == FX_TILE_DEPTH ? p->depth : p->across;
    if (!x || !fx_kx_stride(&p->e.k, x, v, &stride))
        stride = 0;
    probe_end(p);
    return stride < 0 ? -stride : stride;
}

bool fx_tile_plain(const fx_tile *t, bool of_rows) {
    probe *p = probe_begin(t, of_rows, 1, 1);
    if (!p)
        return false;
    ask(p, of_rows, p->across, p->depth);
    const fx_kstmt *only = p->e.k.body.first;
    bool yes = only && !only->next && only->kind == FX_KS_LET && only->x->kop == FX_K_LOAD && p->e.lo.status == FX_OK;
    probe_end(p);
    return yes;
}

bool fx_tile_cols_contiguous(const fx_tile *t) {
    int64_t stride = 0;
    probe *p = probe_begin(t, false, 1, 1);
    if (!p)
        return true;
    fx_kx *row = fx_k_builtin(&p->e.k, FX_KB_LOCAL_X, t->rows);
    fx_kx *at = position(&p->t, &p->e.lo, p->b, row, p->across);
    bool yes = t->cols > 1 && fx_kx_stride(&p->e.k, at, p->across, &stride) && stride == 1;
    probe_end(p);
    return yes;
}

bool fx_tile_swapped(fx_emit *e, const fx_group *g, int64_t lanes) {
    fx_tile t;
    fx_tile_init(&t, e, g, false);
    if (!fx_tile_cols_contiguous(&t) && t.rows >= lanes) {
        fx_tile u;
        fx_tile_init(&u, e, g, true);
        if (fx_tile_cols_contiguous(&u))
            return true;
    }
    return t.cols < lanes && t.rows > t.cols;
}
