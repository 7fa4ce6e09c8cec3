/* schedule_contract.c - CONTRACT groups, one element of the product an invocation: right for any type and shape. */
#include "core/compile/schedule.h"

typedef struct dot_state {
    fx_node *dot;
    fx_kx *value;
} dot_state;

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    dot_state *s = user;
    (void)lo;
    (void)index;
    if (v.node != s->dot || !s->value)
        return false;
    *x = s->value;
    return true;
}

static fx_status emit_contract(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    const fx_spec *spec = &g->inner[0]->spec;
    int64_t n = fx_spec_count(spec), lanes = 64, groups = (n + lanes - 1) / lanes;
    fx_kx *index[FX_MAX_RANK];
    dot_state s = {g->inner[0], NULL};
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *i = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, groups), lanes), fx_k_builtin(k, FX_KB_LOCAL, lanes));
    fx_k_if(k, fx_k_lt(k, i, fx_k_int(k, n)));
    i = fx_k_bound(k, i, 0, n - 1);
    fx_k_delinearise(k, i, spec->rank, spec->dims, index);
    e->lo.provide = provide;
    e->lo.user = &s;
    s.value = fx_lower_reduction(&e->lo, (fx_value){s.dot, 0}, index);
    for (int j = 0; j < g->n_out; j++)
        fx_lower_store(&e->lo, g->out[j], i, fx_k_let(k, fx_lower_linear(&e->lo, g->out[j], i)));
    fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_contract = {"contract.naive", FX_GROUP_CONTRACT, NULL, emit_contract};
