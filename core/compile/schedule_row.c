/* schedule_row.c - REDUCE groups, one invocation a row: right for any group, quick where neighbouring rows
 * are neighbours in memory (column sums) or rows are short. */
#include "core/compile/schedule.h"

typedef struct row_state {
    const fx_group *g;
    fx_kx *row;
    fx_kx **value; /* of each inner reduction, NULL before it is computed */
} row_state;

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    row_state *s = user;
    (void)lo;
    (void)index;
    for (int i = 0; i < s->g->n_inner; i++)
        if (s->g->inner[i] == v.node && s->value[i]) {
            *x = s->value[i];
            return true;
        }
    return false;
}

static fx_status emit_row(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    fx_lower *lo = &e->lo;
    int64_t lanes = g->rows >= 64 * 16 ? 64 : 16, groups = (g->rows + lanes - 1) / lanes;
    fx_kx *index[FX_MAX_RANK];
    row_state s = {.g = g, .value = fx_arena_alloc(k->arena, sizeof *s.value * (size_t)g->n_inner)};
    if (!s.value) {
        k->failed = true;
        return FX_OK;
    }
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *row = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, groups), lanes), fx_k_builtin(k, FX_KB_LOCAL, lanes));
    fx_k_if(k, fx_k_lt(k, row, fx_k_int(k, g->rows)));
    s.row = row = fx_k_bound(k, row, 0, g->rows - 1);
    lo->provide = provide;
    lo->user = &s;
    for (int i = 0; i < g->n_inner; i++) {
        const fx_spec *spec = &g->inner[i]->spec;
        fx_k_delinearise(k, row, spec->rank, spec->dims, index);
        s.value[i] = fx_lower_reduction(lo, (fx_value){g->inner[i], 0}, index);
    }
    for (int j = 0; j < g->n_out; j++) {
        fx_kx *at = row;
        if (g->out_cols[j] > 1)
            at = fx_k_add(k, fx_k_mulc(k, row, g->out_cols[j]),
                          fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, g->out_cols[j]), 1, false));
        fx_lower_store(lo, g->out[j], at, fx_k_let(k, fx_lower_linear(lo, g->out[j], at)));
        if (g->out_cols[j] > 1)
            fx_k_end(k);
    }
    fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_row = {"row.lane", FX_GROUP_REDUCE, NULL, emit_row};
