/* fuse_check.c - dry runs: lower a candidate group into a scratch kernel and watch who asks for what, where.
 *
 * Index functions are hash-consed and simplified, so "the same row" is equality of two pointers; reshapes,
 * transposes and broadcasts between the parts of a group need no rules of their own. */
#include "core/compile/fuse_graph.h"

typedef struct watch {
    int n_inner;
    fx_node *const *inner;
    int n_out;
    const fx_value *out;
    fx_kx *at;     /* where inner values (and, pointwise, outputs) may be asked */
    fx_value busy; /* what is being computed: asking for it starts the computation */
    bool started, bad, seen;
    bool pointwise, reducing;
    fx_kx *row; /* rows: the row */
    int64_t rows;
} watch;

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    watch *w = user;
    const fx_spec *s = fx_value_spec(v);
    bool inner = false, out = false;
    for (int i = 0; i < w->n_inner && !inner; i++)
        inner = w->inner[i] == v.node;
    for (int i = 0; i < w->n_out && !out; i++)
        out = w->out[i].node == v.node && w->out[i].result == v.result;
    bool self = v.node == w->busy.node && v.result == w->busy.result && !w->started;
    if (self) {
        w->started = true;
        return false;
    }
    if (w->bad) { /* the answer is known: don't descend further */
        *x = fx_k_number(lo->k, fx_kir_register(s->dtype), 0);
        return true;
    }
    if (out && !inner && w->row && w->reducing) { /* an output that a reduction sums over: in the order it is written */
        fx_kx *linear = fx_k_linearise(lo->k, s->rank, s->dims, index);
        int64_t stride = 0, cols = fx_spec_count(s) / w->rows;
        if (w->row->kop != FX_K_INT && (!fx_kx_stride(lo->k, linear, w->row, &stride) || stride != cols))
            w->bad = true;
        return false;
    }
    if (inner || (out && w->pointwise)) {
        if (fx_k_linearise(lo->k, s->rank, s->dims, index) != w->at)
            w->bad = true;
        w->seen = true;
        if (!inner)
            return false;
        *x = fx_k_mut(lo->k, fx_k_number(lo->k, fx_kir_register(s->dtype), 0));
        return true;
    }
    return false;
}

/* Values stored in memory are of no interest: a plain name instead of a load. */
static void begin(fx_arena *arena, fx_kir *k, fx_lower *lo, const fx_values *vs, const fx_device_caps *caps, watch *w) {
    fx_arena_init(arena);
    fx_kir_init(k, arena);
    fx_lower_init(lo, k, caps, vs);
    lo->provide = provide;
    lo->user = w;
    lo->own = w->out;
    lo->n_own = w->n_out;
}

static bool finish(fx_arena *arena, const fx_kir *k, const fx_lower *lo, const watch *w) {
    bool ok = !w->bad && !k->failed && lo->status == FX_OK;
    fx_arena_finish(arena);
    return ok;
}

bool fx_fuse_fits_pointwise(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out) {
    fx_arena arena;
    fx_kir k;
    fx_lower lo;
    watch w = {.n_out = n_out, .out = out, .pointwise = true};
    int64_t count = fx_spec_count(fx_value_spec(out[0]));
    for (int i = 1; i < n_out; i++)
        if (fx_spec_count(fx_value_spec(out[i])) != count)
            return false;
    begin(&arena, &k, &lo, vs, caps, &w);
    w.at = fx_k_builtin(&k, FX_KB_GROUP_X, count);
    for (int i = 0; i < n_out && !w.bad; i++) {
        w.busy = out[i];
        w.started = false;
        fx_lower_linear(&lo, out[i], w.at);
    }
    return finish(&arena, &k, &lo, &w);
}

bool fx_fuse_fits_contract(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out,
                           fx_node *dot) {
    fx_arena arena;
    fx_kir k;
    fx_lower lo;
    watch w = {.n_inner = 1, .inner = &dot, .n_out = n_out, .out = out, .pointwise = true};
    int64_t count = fx_spec_count(&dot->spec);
    for (int i = 0; i < n_out; i++)
        if (fx_spec_count(fx_value_spec(out[i])) != count)
            return false;
    begin(&arena, &k, &lo, vs, caps, &w);
    w.at = fx_k_builtin(&k, FX_KB_GROUP_X, count);
    bool all = true;
    for (int i = 0; i < n_out && !w.bad; i++) {
        if (out[i].node == dot)
            continue;
        w.busy = out[i];
        w.started = w.seen = false;
        fx_lower_forget(&lo); /* else what an earlier output asked for is not asked again */
        fx_lower_linear(&lo, out[i], w.at);
        all &= w.seen;
    }
    return finish(&arena, &k, &lo, &w) && all;
}

bool fx_fuse_fits_rows(const fx_values *vs, const fx_device_caps *caps, int n_out, const fx_value *out, int n_inner,
                       fx_node *const *inner, int64_t *out_cols) {
    fx_arena arena;
    fx_kir k;
    fx_lower lo;
    watch w = {.n_inner = n_inner, .inner = inner, .n_out = n_out, .out = out};
    int64_t rows = fx_spec_count(&inner[0]->spec);
    for (int i = 0; i < n_inner; i++)
        if (fx_spec_count(&inner[i]->spec) != rows)
            return false;
    for (int i = 0; i < n_out; i++) {
        int64_t count = fx_spec_count(fx_value_spec(out[i]));
        if (!rows || !count || count % rows)
            return false;
        out_cols[i] = count / rows;
    }
    begin(&arena, &k, &lo, vs, caps, &w);
    fx_kx *row = w.at = fx_k_builtin(&k, FX_KB_GROUP_X, rows);
    w.row = row;
    w.rows = rows;
    w.reducing = true;
    for (int i = 0; i < n_inner && !w.bad; i++) {
        fx_kx *index[FX_MAX_RANK];
        const fx_spec *s = &inner[i]->spec;
        fx_k_delinearise(&k, row, s->rank, s->dims, index);
        w.busy = (fx_value){inner[i], 0};
        w.started = false;
        fx_lower_value(&lo, w.busy, index);
    }
    w.reducing = false;
    for (int i = 0; i < n_out && !w.bad; i++) {
        bool is_inner = false;
        for (int j = 0; j < n_inner; j++)
            is_inner |= inner[j] == out[i].node;
        if (is_inner)
            continue;
        w.busy = (fx_value){NULL, 0};
        fx_kx *at = row;
        if (out_cols[i] > 1)
            at = fx_k_add(&k, fx_k_mulc(&k, row, out_cols[i]), fx_k_builtin(&k, FX_KB_LOCAL, out_cols[i]));
        k.builtin[FX_KB_LOCAL] = NULL; /* the next output's columns may be as many or not */
        fx_lower_linear(&lo, out[i], at);
    }
    return finish(&arena, &k, &lo, &w);
}
