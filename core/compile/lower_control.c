/* lower_control.c - control flow of scalars inside a kernel, as regions of reduce_fn and sort may hold it: calls,
 * cond and while become statements around mutable variables. Control flow of arrays is a step of its own. */
#include "core/compile/lower.h"

static bool scalars(const fx_node *n) {
    for (int j = 0; j < n->n_in; j++)
        if (n->in[j]->spec.rank)
            return false;
    for (int j = 0; j < n->n_result; j++)
        if (n->results[j].rank)
            return false;
    return true;
}

static fx_kx **list(fx_lower *lo, int n) {
    fx_kx **p = FX_ARENA_ARRAY(lo->k->arena, fx_kx *, n + 1);
    lo->k->failed |= !p;
    return p;
}

static void set_all(fx_kir *k, int n, fx_kx *const *mut, fx_kx *const *x) {
    for (int j = 0; j < n; j++)
        fx_k_set(k, mut[j], x[j]);
}

/* Branches as a chain of ifs; the index is clamped, so the last branch needs no test. */
static void branches(fx_lower *lo, fx_node *n, fx_kx *const *in, fx_kx **results) {
    fx_kir *k = lo->k;
    fx_kx **x = list(lo, n->n_result);
    if (!x)
        return;
    for (int j = 0; j < n->n_result; j++) {
        const fx_spec *s = &n->results[j];
        results[j] = fx_k_mut(k, fx_k_number(k, fx_kir_register(s->dtype), 0));
    }
    int open = 0;
    for (int r = 0; r < n->n_region; r++) {
        if (r + 1 < n->n_region) {
            fx_k_if(k, fx_k_le(k, in[0], fx_k_int(k, r)));
            open++;
        }
        fx_lower_region(lo, n->region[r], in + 1, x);
        set_all(k, n->n_result, results, x);
        if (r + 1 < n->n_region)
            fx_k_else(k);
    }
    while (open--)
        fx_k_end(k);
}

static void loop(fx_lower *lo, fx_node *n, fx_kx *const *in, fx_kx **results) {
    fx_kir *k = lo->k;
    int n_carry = (int)FX_GET_INT(n, n_carry);
    fx_kx **now = list(lo, n->n_in), **next = list(lo, n_carry), *go = fx_k_mut(k, fx_k_bool(k, true)), *test;
    if (!now || !next)
        return;
    for (int j = 0; j < n_carry; j++)
        results[j] = fx_k_mut(k, in[j]);
    fx_k_while(k, go);
    for (int j = 0; j < n->n_in; j++)
        now[j] = j < n_carry ? fx_k_read(k, results[j]) : in[j];
    fx_lower_region(lo, n->region[0], now, &test);
    fx_k_if(k, test);
    fx_lower_region(lo, n->region[1], now, next);
    set_all(k, n_carry, results, next);
    fx_k_else(k);
    fx_k_set(k, go, fx_k_bool(k, false));
    fx_k_end(k);
    fx_k_end(k);
}

fx_kx *fx_lower_control(fx_lower *lo, fx_value v) {
    fx_node *n = v.node;
    fx_kir *k = lo->k;
    bool known = n->op == FX_OP_cond || n->op == FX_OP_while || n->op == FX_OP_call;
    if (!known || !scalars(n))
        return NULL;
    fx_kx **in = list(lo, n->n_in), **results = list(lo, n->n_result);
    if (!in || !results)
        return fx_k_int(k, 0);
    for (int j = 0; j < n->n_in; j++)
        in[j] = fx_lower_node(lo, n->in[j], NULL);
    if (n->op == FX_OP_call) {
        fx_lower_region(lo, n->region[0], in, results);
        return results[v.result];
    }
    if (n->op == FX_OP_cond)
        branches(lo, n, in, results);
    else
        loop(lo, n, in, results);
    return k->failed ? fx_k_int(k, 0) : fx_k_read(k, results[v.result]);
}
