/* batch_control.c - batching of calls and control flow.
 *
 * Lanes that would choose differently: a cond runs every branch and selects; a while runs until the last lane is done
 * and keeps the values of those that are. A carry is batched when its start or its next value is. */
#include <string.h>

#include "autodiff/batch.h"

static void pass_on(fx_graph *g, const fx_node *n, fx_status st) {
    if (st != FX_OK && g->status == FX_OK)
        fx_graph_error(g, st, "%s: %s", fx_op_get(n->op)->name, fx_last_error());
}

static bool *flags(fx_graph *g, int n, bool value) {
    bool *b = FX_ARENA_ARRAY(&g->arena, bool, n + 1);
    for (int i = 0; b && i < n; i++)
        b[i] = value;
    return b;
}

static fx_node **nodes(fx_graph *g, int n) {
    return FX_ARENA_ARRAY(&g->arena, fx_node *, n + 1);
}

/* ---- calls ---- */

static void batch_remat(fx_batch_rule *r) {
    fx_graph *f = NULL;
    memset(r->out_batched, 0, sizeof(bool) * (size_t)r->n->n_result);
    fx_status st = fx_ad_batch_graph(r->n->region[0], r->batched, r->size, r->out_batched, &f);
    const fx_attr a = FX_SYM(kind, remat);
    fx_node *c = st == FX_OK ? fx_build(r->g, FX_OP_call, r->n->n_in, r->in, 1, &a, 1, &f) : NULL;
    pass_on(r->g, r->n, st);
    for (int i = 0; i < r->n->n_result; i++)
        r->out[i] = fx_result(c, i);
    fx_graph_unref(f);
}

/* Results and tangents are all batched; a tangent is batched as its value is. */
static void batch_custom_jvp(fx_batch_rule *r) {
    fx_graph *g = r->g, *f[2] = {NULL, NULL};
    const fx_node *n = r->n;
    int n_in = n->n_in, m = n->n_result;
    bool *in = flags(g, 2 * n_in, false), *out = flags(g, 2 * m, true);
    if (!in || !out)
        return;
    for (int i = 0; i < 2 * n_in; i++)
        in[i] = r->batched[i % n_in];
    fx_status st = fx_ad_batch_graph(n->region[0], in, r->size, out, &f[0]);
    if (st == FX_OK)
        st = fx_ad_batch_graph(n->region[1], in, r->size, out, &f[1]);
    const fx_attr a = FX_SYM(kind, custom_jvp);
    fx_node *c = st == FX_OK ? fx_build(g, FX_OP_call, n_in, r->in, 1, &a, 2, f) : NULL;
    pass_on(g, n, st);
    for (int i = 0; i < m; i++)
        r->out[i] = fx_result(c, i);
    fx_graph_unref(f[0]);
    fx_graph_unref(f[1]);
}

/* The reverse rule for all lanes: cotangents of shared operands are summed over the batch. */
static fx_graph *batch_backward(fx_batch_rule *r, const fx_graph *bwd) {
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    fx_node **args = nodes(g, bwd->n_param), **out = nodes(g, bwd->n_result);
    bool *in = flags(g, bwd->n_param, true), *is = flags(g, bwd->n_result, true);
    bool ok = !g->arena.failed;
    for (int i = 0; ok && i < bwd->n_param; i++)
        args[i] = fx_batch_param(g, &bwd->params[i]->spec, true, r->size);
    ok = ok && fx_ad_batch(g, bwd, args, in, r->size, out, is) == FX_OK;
    for (int i = 0; ok && i < bwd->n_result; i++)
        if (!r->batched[i])
            out[i] = fx_b_reduce(g, out[i], fx_dtype_is_float(out[i]->spec.dtype) ? FX_SYM_sum : FX_SYM_max, 1,
                                 (const int64_t[]){0});
    if (ok && fx_graph_finish(g, bwd->n_result, out, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

static void batch_custom_vjp(fx_batch_rule *r) {
    fx_graph *g = r->g, *f[3] = {NULL, NULL, NULL};
    const fx_node *n = r->n;
    bool *out = flags(g, n->region[1]->n_result, true);
    if (!out)
        return;
    fx_status st = fx_ad_batch_graph(n->region[0], r->batched, r->size, out, &f[0]);
    if (st == FX_OK)
        st = fx_ad_batch_graph(n->region[1], r->batched, r->size, out, &f[1]);
    if (st == FX_OK && !(f[2] = batch_backward(r, n->region[2])))
        st = FX_INVALID_ARGUMENT;
    const fx_attr a[] = {FX_SYM(kind, custom_vjp), FX_INT(n_residual, FX_GET_INT(n, n_residual))};
    fx_node *c = st == FX_OK ? fx_build(g, FX_OP_call, n->n_in, r->in, 2, a, 3, f) : NULL;
    pass_on(g, n, st);
    for (int i = 0; i < n->n_result; i++)
        r->out[i] = fx_result(c, i);
    for (int i = 0; i < 3; i++)
        fx_graph_unref(f[i]);
}

void fx_batch_call(fx_batch_rule *r) {
    switch (FX_GET_SYM(r->n)) {
    case FX_SYM_remat:
        batch_remat(r);
        return;
    case FX_SYM_custom_jvp:
        batch_custom_jvp(r);
        return;
    case FX_SYM_custom_vjp:
        batch_custom_vjp(r);
        return;
    default:
        memset(r->out_batched, 0, sizeof(bool) * (size_t)r->n->n_result);
        fx_ad_batch(r->g, r->n->region[0], r->in, r->batched, r->size, r->out, r->out_batched);
        return;
    }
}

/* ---- cond ---- */

static fx_node *spread_lanes(fx_graph *g, fx_node *flags_of_lanes, const fx_spec *shape) {
    return fx_b_broadcast(g, flags_of_lanes, shape->rank, shape->dims, (const int64_t[]){0});
}

static void select_branches(fx_batch_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int m = n->n_result;
    for (int b = 0; b < n->n_region && g->status == FX_OK; b++) {
        fx_node **results = nodes(g, m);
        bool *is = flags(g, m, true);
        if (!results || !is || fx_ad_batch(g, n->region[b], r->in + 1, r->batched + 1, r->size, results, is) != FX_OK)
            return;
        /* the index clamps: branch 0 for all below, the last for all above */
        fx_node *mine = fx_b_binary_c(g, FX_OP_ge, r->in[0], b);
        for (int i = 0; i < m && g->status == FX_OK; i++)
            r->out[i] =
                b ? fx_b_select(g, spread_lanes(g, mine, &results[i]->spec), results[i], r->out[i]) : results[i];
    }
}

void fx_batch_cond(fx_batch_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    if (r->batched[0]) {
        select_branches(r);
        return;
    }
    fx_graph **branch = FX_ARENA_ARRAY(&g->arena, fx_graph *, n->n_region);
    if (!branch)
        return;
    memset(r->out_batched, 0, sizeof(bool) * (size_t)n->n_result);
    fx_status st = FX_OK;
    for (int pass = 0; pass < 2; pass++) /* first what any branch batches, then all that in every branch */
        for (int b = 0; b < n->n_region && st == FX_OK; b++) {
            fx_graph_unref(branch[b]);
            st = fx_ad_batch_graph(n->region[b], r->batched + 1, r->size, r->out_batched, &branch[b]);
        }
    fx_node *c = st == FX_OK ? fx_build(g, FX_OP_cond, n->n_in, r->in, 0, NULL, n->n_region, branch) : NULL;
    pass_on(g, n, st);
    for (int i = 0; i < n->n_result; i++)
        r->out[i] = fx_result(c, i);
    for (int b = 0; b < n->n_region; b++)
        fx_graph_unref(branch[b]);
}

/* ---- while ---- */

/* The condition of a loop whose lanes end at different times: does any go on? */
static fx_graph *any_lane(const fx_graph *cond) {
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    fx_node **args = nodes(g, cond->n_param), *go = NULL;
    for (int i = 0; args && i < cond->n_param; i++)
        args[i] = fx_graph_param(g, &cond->params[i]->spec);
    if (args && fx_graph_inline(g, cond, args, &go) == FX_OK)
        go = fx_b_reduce(g, go, FX_SYM_or, 1, (const int64_t[]){0});
    if (args && fx_graph_finish(g, 1, &go, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

/* Its body: lanes that are done keep their carry. */
static fx_graph *frozen(const fx_graph *cond, const fx_graph *body, int n_carry) {
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    fx_node **args = nodes(g, body->n_param), **out = nodes(g, n_carry), *go = NULL;
    bool ok = !g->arena.failed;
    for (int i = 0; ok && i < body->n_param; i++)
        args[i] = fx_graph_param(g, &body->params[i]->spec);
    ok = ok && fx_graph_inline(g, cond, args, &go) == FX_OK && fx_graph_inline(g, body, args, out) == FX_OK;
    for (int i = 0; ok && i < n_carry; i++)
        out[i] = fx_b_select(g, spread_lanes(g, go, &args[i]->spec), out[i], args[i]);
    if (ok && fx_graph_finish(g, n_carry, out, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_batch_while(fx_batch_rule *r) {
    fx_graph *g = r->g, *region[2] = {NULL, NULL}, *lanes[2] = {NULL, NULL};
    const fx_node *n = r->n;
    int n_carry = (int)FX_GET_INT(n, n_carry);
    bool *in = flags(g, n->n_in, false), per_lane = false, grown = true;
    fx_node **args = nodes(g, n->n_in);
    if (!in || !args)
        return;
    memcpy(in, r->batched, sizeof *in * (size_t)n->n_in);
    memcpy(r->out_batched, in, sizeof *in * (size_t)n_carry);
    fx_status st = FX_OK;
    while (grown && st == FX_OK) {
        fx_graph_unref(region[0]);
        fx_graph_unref(region[1]);
        region[1] = NULL;
        st = fx_ad_batch_graph(n->region[0], in, r->size, &per_lane, &region[0]);
        for (int i = 0; i < n_carry; i++) /* a lane's own end makes all of its carry its own */
            r->out_batched[i] = in[i] || per_lane;
        if (st == FX_OK)
            st = fx_ad_batch_graph(n->region[1], in, r->size, r->out_batched, &region[1]);
        grown = memcmp(in, r->out_batched, sizeof *in * (size_t)n_carry) != 0;
        memcpy(in, r->out_batched, sizeof *in * (size_t)n_carry);
    }
    if (st == FX_OK && per_lane) {
        lanes[0] = any_lane(region[0]);
        lanes[1] = frozen(region[0], region[1], n_carry);
        if (!lanes[0] || !lanes[1])
            st = FX_OUT_OF_MEMORY;
    }
    for (int i = 0; i < n->n_in; i++)
        args[i] = in[i] ? fx_batch_in(r, i) : r->in[i];
    const fx_attr a = FX_INT(n_carry, n_carry);
    fx_node *w = st == FX_OK ? fx_build(g, FX_OP_while, n->n_in, args, 1, &a, 2, per_lane ? lanes : region) : NULL;
    pass_on(g, n, st);
    for (int i = 0; i < n_carry; i++)
        r->out[i] = fx_result(w, i);
    for (int i = 0; i < 2; i++) {
        fx_graph_unref(region[i]);
        fx_graph_unref(lanes[i]);
    }
}

/* ---- scan ---- */

void fx_batch_scan(fx_batch_rule *r) {
    fx_graph *g = r->g, *body = NULL;
    const fx_node *n = r->n;
    int n_consts = (int)FX_GET_INT(n, n_consts), n_carry = (int)FX_GET_INT(n, n_carry), first = n_consts + n_carry,
        m = n->n_result;
    bool *in = flags(g, n->n_in, false), grown = true;
    fx_node **args = nodes(g, n->n_in);
    if (!in || !args)
        return;
    memcpy(in, r->batched, sizeof *in * (size_t)n->n_in);
    fx_status st = FX_OK;
    while (grown && st == FX_OK) {
        fx_graph_unref(body);
        memset(r->out_batched, 0, sizeof *in * (size_t)m);
        memcpy(r->out_batched, in + n_consts, sizeof *in * (size_t)n_carry);
        st = fx_ad_batch_graph(n->region[0], in, r->size, r->out_batched, &body);
        grown = memcmp(in + n_consts, r->out_batched, sizeof *in * (size_t)n_carry) != 0;
        memcpy(in + n_consts, r->out_batched, sizeof *in * (size_t)n_carry);
    }
    for (int i = 0; i < n->n_in; i++) /* slices are taken along dimension 0: the batch steps behind it */
        args[i] = !in[i] ? r->in[i] : i < first ? fx_batch_in(r, i) : fx_batch_move(g, r->in[i], 1, 0);
    fx_node *s = st == FX_OK ? fx_build(g, FX_OP_scan, n->n_in, args, n->n_attr, n->attr, 1, &body) : NULL;
    pass_on(g, n, st);
    for (int i = 0; i < m; i++) {
        r->out[i] = fx_result(s, i);
        if (i >= n_carry && r->out_batched[i])
            r->out[i] = fx_batch_move(g, r->out[i], 1, 0);
    }
    fx_graph_unref(body);
}
