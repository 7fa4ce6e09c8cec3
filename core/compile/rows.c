/* rows.c - chooses how rows are shared out.
 *
 * A dry run of one element of everything says which way memory runs and how much text an element makes.
 * Rows that are neighbours in memory, and short ones, get a lane each (two rows a lane where they pair up);
 * others a subgroup, on GPUs a workgroup when they are long; few and long ones are cut into parts. */
#include "core/compile/rows.h"

#include "core/compile/emit.h"

typedef struct probe {
    int n;
    fx_node *const *node;
    fx_node *busy;
} probe;

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    const probe *p = user;
    (void)index;
    for (int i = 0; i < p->n; i++)
        if (p->node[i] == v.node) {
            *x = fx_k_mut(lo->k, fx_k_number(lo->k, fx_kir_register(fx_value_spec(v)->dtype), 0));
            return true;
        }
    return false;
}

/* Loads that run along reduced and along kept dimensions. */
static void vote(fx_kir *k, fx_kx *const *var, const bool *reduced, int rank, int *along, int *across) {
    for (int b = 0; b < k->n_table; b++)
        for (fx_kx *x = k->table[b]; x; x = x->next) {
            int depends = 0, way = 0;
            if (x->kop != FX_K_LOAD)
                continue;
            for (int d = 0; d < rank; d++) {
                int64_t stride;
                if (!var[d] || var[d]->kop != FX_K_VAR || !fx_kx_depends(x->a[0], var[d]))
                    continue;
                depends |= reduced[d] ? 1 : 2;
                if (fx_kx_stride(k, x->a[0], var[d], &stride) && (stride == 1 || stride == -1))
                    way = reduced[d] ? 1 : 2;
            }
            if (depends & 1 && way) /* loads that serve all elements don't count */
                *(way == 1 ? along : across) += depends == 3 ? 8 : 1;
        }
}

static void examine(const fx_emit *e, int n, fx_node *const *node, int n_out, const fx_value *out, fx_row_plan *p) {
    fx_arena arena;
    fx_arena_init(&arena);
    int along = 0, across = 0, before;
    fx_kir k;
    fx_lower lo;
    probe pr = {n, node, NULL};
    fx_kir_init(&k, &arena);
    fx_lower_init(&lo, &k, e->caps, e->lo.values);
    lo.own = e->lo.own;
    lo.n_own = e->lo.n_own;
    lo.provide = provide;
    lo.user = &pr;
    before = k.n_expr;
    for (int i = 0; i < n && p->count; i++) {
        const fx_spec *x = &node[i]->in[0]->spec;
        int64_t dims[FX_MAX_RANK];
        bool reduced[FX_MAX_RANK] = {false};
        fx_kx *var[FX_MAX_RANK];
        int m = fx_reduction_dims(node[i], dims), loops = 0;
        for (int j = 0; j < m; j++)
            reduced[dims[j]] = true;
        for (int d = 0; d < x->rank; d++) {
            var[d] = fx_k_int(&k, 0);
            if (x->dims[d] > 1) {
                var[d] = fx_k_for(&k, fx_k_int(&k, 0), fx_k_int(&k, x->dims[d]), 1, false);
                loops++;
            }
        }
        int inputs = node[i]->op == FX_OP_reduce_fn ? fx_reduction_parts(node[i]) : 1;
        for (int j = 0; j < inputs; j++)
            fx_lower_node(&lo, node[i]->in[j], var);
        if (!k.failed)
            vote(&k, var, reduced, x->rank, &along, &across);
        while (loops--)
            fx_k_end(&k);
    }
    for (int i = 0; i < n_out; i++) {
        int64_t count = fx_spec_count(fx_value_spec(out[i]));
        bool inner = false;
        for (int j = 0; j < n; j++)
            inner |= node[j] == out[i].node;
        if (!inner && count)
            fx_lower_linear(&lo, out[i], fx_k_for(&k, fx_k_int(&k, 0), fx_k_int(&k, count), 1, false));
    }
    p->across = across > along;
    p->weight = k.n_expr - before;
    fx_arena_finish(&arena);
}

/* Cuts rows into parts so that about `want` teams have work, each with at least `least` elements; parts of
 * equal length where there is a way. */
static void cut(fx_row_plan *p, int64_t teams, int64_t want, int64_t least, int64_t unit) {
    int64_t parts = want / (teams > 0 ? teams : 1);
    if (parts > p->count / least)
        parts = p->count / least;
    p->parts = 1;
    p->part = p->count;
    if (parts < 2)
        return;
    int64_t units = fx_ceil_div(p->count, unit);
    for (int64_t q = parts; q > parts * 2 / 3 && q > 1; q--)
        if (p->count % unit == 0 && units % q == 0) {
            parts = q;
            break;
        }
    p->part = fx_ceil_div(units, parts) * unit;
    p->parts = fx_ceil_div(p->count, p->part);
}

fx_row_plan fx_row_plan_of(const fx_emit *e, int n, fx_node *const *node, int n_out, const fx_value *out,
                           const int64_t *cols) {
    const fx_device_caps *c = e->caps;
    bool soft = c->barrier_is_slow, exchange = true, regions = false;
    int64_t units = c->units ? (int64_t)c->units : 8, most = c->max_invocations ? (int64_t)c->max_invocations : 128;
    int64_t S = c->subgroup_size > 1 ? (int64_t)c->subgroup_size : 1, wide = 1;
    fx_row_plan p = {.rows = fx_spec_count(fx_result_spec(node[0], 0)), .n_row = 1, .width = 1, .parts = 1, .teams = 1};
    for (int i = 0; i < n; i++) {
        int64_t m = fx_reduction_count(node[i]);
        p.count = m > p.count ? m : p.count;
        regions |= !fx_reduction_commutes(node[i]);
        for (int j = 0; j < fx_reduction_parts(node[i]); j++)
            exchange &= fx_team_exchanges(c, fx_reduction_type(node[i], j));
    }
    for (int j = 0; j < n_out; j++)
        wide = cols[j] > wide ? cols[j] : wide;
    examine(e, n, node, n_out, out, &p);
    p.part = p.count;
    bool even = true;
    for (int i = 0; i < n; i++)
        even &= fx_reduction_count(node[i]) % 2 == 0;
    for (int j = 0; j < n_out; j++)
        even &= cols[j] == 1 || cols[j] % 2 == 0;
    int weight = p.weight > 0 ? p.weight : 1;
    int64_t keep = 4000 / weight, target = 4 * units; /* elements that may stand in the text */
    keep = keep > 64 ? 64 : keep < 8 ? 8 : keep;
    p.unroll = 200 / weight > 8 ? 8 : 200 / weight < 2 ? 2 : 200 / weight;
    int64_t small = soft ? 2 * S : S / 2;
    bool shared = !soft && c->shared_bytes >= 4096;
    bool alone = regions || (p.across && wide == 1) || p.count <= small || (!exchange && (soft || !shared));
    if (alone) {
        p.lanes = p.subgroup = 1;
        if (p.across || !even || p.count > small)
            p.n_row = p.rows % 2 == 0 && p.across ? 2 : 1;
        else
            p.width = 2;
        if (regions)
            p.width = p.n_row = 1;
        int64_t lanes = p.rows / p.n_row, block = soft ? 8 * S : 4 * S > 128 ? 4 * S : 128;
        block = block < 64 ? 64 : block;
        block = block > most ? most : block;
        while (block > 16 && block > S && fx_ceil_div(lanes, block) < target)
            block /= 2;
        p.teams = block;
        if (p.count <= keep / p.n_row && p.count <= 32)
            p.unroll = (int)(p.count / p.width) + 1;
        if (wide == 1)
            cut(&p, fx_ceil_div(lanes, block), soft ? target : 8 * units, soft ? 256 : 64, p.width);
    } else {
        p.width = even ? 2 : 1;
        int64_t L = S;
        p.subgroup = exchange ? S : 1;
        if (shared && (!exchange || p.count >= 1024)) { /* a workgroup a row */
            L = most < 256 ? most : 256;
            while (L > 64 && L > S && L * p.width * 2 > p.count)
                L /= 2;
            L = L / S * S;
        }
        p.lanes = L;
        if (L <= S) {
            p.lanes = S;
            int64_t w = soft ? 4096 / (p.count > 0 ? p.count : 1) : 128 / S;
            w = w > (soft ? 8 : 16) ? (soft ? 8 : 16) : w < 1 ? 1 : w;
            w = w > most / S ? most / S : w;
            while (w > 1 && fx_ceil_div(p.rows, w) < target)
                w /= 2;
            for (int64_t q = w; q > w / 2; q--)
                if (p.rows % q == 0) {
                    w = q;
                    break;
                }
            p.teams = w < 1 ? 1 : w;
        }
        int64_t steps = fx_ceil_div(p.count, p.lanes * p.width);
        if (steps * p.width <= keep)
            p.unroll = (int)steps;
        if (wide == 1)
            cut(&p, p.rows, soft ? 64 * units : 4 * units, soft ? 8192 : 4096, p.lanes * p.width);
    }
    return p;
}

void fx_row_open(fx_emit *e, const fx_row_plan *p, fx_team *t, fx_kx **row, fx_kx **part, bool *guard) {
    fx_kir *k = &e->k;
    int64_t units = p->rows / p->n_row, teams = units * p->parts, block = p->lanes * p->teams;
    int64_t groups = (teams + p->teams - 1) / p->teams;
    bool alone = p->lanes == 1, one = p->lanes > p->subgroup;
    k->workgroup[0] = (uint32_t)block;
    fx_kx *g = fx_emit_grid(e, groups), *id;
    *t = (fx_team){.lanes = p->lanes, .subgroup = p->subgroup, .lane = fx_k_int(k, 0)};
    if (alone)
        id = fx_k_add(k, fx_k_mulc(k, g, p->teams), fx_k_builtin(k, FX_KB_LOCAL, block));
    else if (one) {
        id = g;
        t->lane = fx_k_builtin(k, FX_KB_LOCAL, block);
        k->subgroup_size = p->subgroup > 1 ? (uint32_t)p->subgroup : 0;
    } else {
        id = fx_k_add(k, fx_k_mulc(k, g, p->teams), fx_k_builtin(k, FX_KB_SUBGROUP, p->teams));
        t->lane = fx_k_builtin(k, FX_KB_LANE, p->lanes);
        k->subgroup_size = (uint32_t)p->subgroup;
    }
    id = fx_k_guard(k, id, teams, guard);
    fx_kx *unit = id;
    if (part)
        *part = fx_k_int(k, 0);
    if (p->parts > 1) { /* neighbouring lanes take neighbouring rows; subgroups, neighbouring parts */
        *part = alone ? fx_k_div(k, id, units) : fx_k_mod(k, id, p->parts);
        unit = alone ? fx_k_mod(k, id, units) : fx_k_div(k, id, p->parts);
    }
    for (int r = 0; r < p->n_row; r++)
        row[r] = fx_k_addc(k, fx_k_mulc(k, unit, p->n_row), r);
    e->lo.pairs = true;
}
