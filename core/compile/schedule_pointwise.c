/* schedule_pointwise.c - every element of the outputs computed on its own, several an invocation.
 *
 * A workgroup takes a contiguous block of elements; its lanes stride through it, so that neighbouring
 * lanes touch neighbouring elements. Also the fallback for whatever can be computed by element. */
#include "core/compile/schedule.h"

enum { LANES = 64, MOST_PER_LANE = 16 };

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    int64_t n = fx_spec_count(fx_value_spec(g->out[0]));
    int64_t lanes = e->caps->max_invocations < LANES ? (int64_t)e->caps->max_invocations : LANES;
    int64_t per = 1, units = e->caps->units ? (int64_t)e->caps->units : 8;
    while (per < MOST_PER_LANE && n / (lanes * per) > 8 * units)
        per *= 2;
    int64_t block = lanes * per, groups = (n + block - 1) / block;
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *base = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, groups), block), fx_k_builtin(k, FX_KB_LOCAL, lanes));
    fx_kx *i = base;
    if (per > 1)
        i = fx_k_add(k, base, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, block), lanes, false));
    bool guard = i->hi >= n;
    if (guard) {
        fx_k_if(k, fx_k_lt(k, i, fx_k_int(k, n)));
        i = fx_k_bound(k, i, 0, n - 1);
    }
    e->lo.in_place = i;
    fx_kx *x[64];
    for (int first = 0; first < g->n_out; first += 64) { /* all loads before the stores, for what runs in place */
        int count = g->n_out - first < 64 ? g->n_out - first : 64;
        for (int j = 0; j < count; j++)
            x[j] = fx_k_let(k, fx_lower_linear(&e->lo, g->out[first + j], i));
        for (int j = 0; j < count; j++)
            fx_lower_store(&e->lo, g->out[first + j], i, x[j]);
    }
    if (guard)
        fx_k_end(k);
    if (per > 1)
        fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_pointwise = {"pointwise", FX_GROUP_POINTWISE, NULL, emit};
