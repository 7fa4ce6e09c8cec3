/* schedule_row.c - REDUCE groups: a team of lanes computes a row's reductions, then the values that depend on them.
 *
 * Reductions that don't depend on each other are swept side by side. In rows that fit the text without loops every
 * phase asks for the same elements at the same places, so each is loaded and computed once and stays in a register.
 * Rows too few and too long for that go through parts: a kernel a level of dependence for the parts' states, and
 * another one that joins them. */
#include "core/compile/rows.h"

#include <string.h>

#include "core/base/error.h"

enum { MAX_INNER = 32 };

typedef struct state {
    const fx_group *g;
    int level[MAX_INNER], n_level;
    fx_kx *value[MAX_INNER][FX_SWEEP_ROWS][FX_SWEEP_PARTS]; /* of each inner reduction's result at the team's rows */
    bool known[MAX_INNER];
    int stored[MAX_INNER]; /* buffer that holds the values from an earlier kernel, -1 */
    int n_row;
    fx_kx *row[FX_SWEEP_ROWS];
} state;

static bool provide(fx_lower *lo, void *user, fx_value v, fx_kx *const *index, fx_kx **x) {
    state *s = user;
    for (int i = 0; i < s->g->n_inner; i++) {
        if (s->g->inner[i] != v.node || (!s->known[i] && s->stored[i] < 0))
            continue;
        const fx_spec *spec = fx_value_spec(v);
        fx_kx *at = s->n_row > 1 || !s->known[i] ? fx_k_linearise(lo->k, spec->rank, spec->dims, index) : s->row[0];
        if (!s->known[i]) {
            *x = fx_k_load(lo->k, fx_lower_arg(lo, s->stored[i], fx_kir_register(spec->dtype)), at);
            return true;
        }
        for (int r = 0; r < s->n_row; r++)
            if (s->row[r] == at) {
                *x = s->value[i][r][v.result];
                return true;
            }
        *x = fx_lower_fail(lo, FX_INTERNAL, "lowering; a reduction is asked at another row than the one at hand");
        return true;
    }
    return false;
}

/* ---- which reductions need which ---- */

static bool needs(const fx_lower *lo, fx_node *n, const fx_node *what, bool *seen) {
    fx_value v = fx_value_of(n);
    if (v.node == what)
        return true;
    if (v.node->graph != lo->values->graph || seen[v.node->id])
        return false;
    seen[v.node->id] = true;
    bool own = lo->values->buffer[fx_value_id(lo->values, v)] < 0;
    for (int i = 0; i < lo->n_own && !own; i++)
        own = lo->own[i].node == v.node && lo->own[i].result == v.result;
    for (int j = 0; j < v.node->n_in && own; j++)
        if (needs(lo, v.node->in[j], what, seen))
            return true;
    return false;
}

static bool find_levels(fx_emit *e, state *s) {
    const fx_group *g = s->g;
    size_t n = (size_t)e->lo.values->graph->n_node + 1;
    bool *seen = fx_arena_alloc(e->arena, n);
    if (!seen)
        return false;
    for (int i = 0; i < g->n_inner; i++)
        for (int j = 0; j < i; j++) {
            memset(seen, 0, n);
            for (int a = 0; a < g->inner[i]->n_in; a++)
                if (needs(&e->lo, g->inner[i]->in[a], g->inner[j], seen) && s->level[i] <= s->level[j])
                    s->level[i] = s->level[j] + 1;
            s->n_level = s->level[i] + 1 > s->n_level ? s->level[i] + 1 : s->n_level;
        }
    return true;
}

/* ---- phases ---- */

/* The reductions of a level that reduce as many elements as the first one which isn't known yet. */
static int pick(const state *s, int level, fx_node **node, int *which) {
    int n = 0, parts = 0;
    for (int i = 0; i < s->g->n_inner; i++) {
        fx_node *x = s->g->inner[i];
        if (s->level[i] != level || s->known[i] || s->stored[i] >= 0)
            continue;
        if (n &&
            (fx_reduction_count(x) != fx_reduction_count(node[0]) || parts + fx_reduction_parts(x) > FX_SWEEP_PARTS))
            continue;
        parts += fx_reduction_parts(x);
        which[n] = i;
        node[n++] = x;
    }
    return n;
}

static void finish(fx_emit *e, state *s, const fx_sweep *w, const int *which) {
    for (int r = 0; r < s->n_row; r++)
        for (int i = 0, at = 0; i < w->n; at += fx_reduction_parts(w->node[i++]))
            for (int j = 0; j < w->node[i]->n_result || !j; j++)
                s->value[which[i]][r][j] = fx_reduction_finish(e, w->node[i], j, w->state[r] + at);
    for (int i = 0; i < w->n; i++)
        s->known[which[i]] = true;
}

static void sweep(fx_emit *e, const fx_row_plan *p, state *s, fx_team *t, int level) {
    fx_node *node[MAX_INNER];
    int which[MAX_INNER], n;
    while ((n = pick(s, level, node, which))) {
        int64_t count = fx_reduction_count(node[0]);
        fx_sweep w = {.n = n,
                      .node = node,
                      .n_row = p->n_row,
                      .count = count,
                      .from = fx_k_int(&e->k, 0),
                      .length = count,
                      .width = p->width,
                      .unroll = p->unroll,
                      .team = t};
        for (int r = 0; r < p->n_row; r++)
            w.row[r] = s->row[r];
        fx_sweep_run(e, &w);
        finish(e, s, &w, which);
    }
}

static void store(fx_emit *e, fx_value v, fx_kx *at, int width, fx_kx *const *x) {
    fx_lower *lo = &e->lo;
    const fx_spec *s = fx_value_spec(v);
    int buffer = lo->values->buffer[fx_value_id(lo->values, v)];
    if (width == 2 && fx_lower_pairable(lo, buffer, s->dtype, fx_spec_count(s), at))
        fx_k_storev(lo->k, fx_lower_arg(lo, buffer, s->dtype), at, 2, x);
    else
        for (int w = 0; w < width; w++)
            fx_lower_store(lo, v, fx_k_addc(lo->k, at, w), x[w]);
}

/* Outputs of one element a row. */
static void store_rows(fx_emit *e, const fx_row_plan *p, state *s, fx_team *t) {
    fx_kir *k = &e->k;
    const fx_group *g = s->g;
    for (int j = 0; j < g->n_out; j++) {
        fx_kx *x[FX_SWEEP_ROWS];
        if (g->out_cols[j] != 1)
            continue;
        for (int r = 0; r < p->n_row; r++)
            x[r] = fx_k_let(k, fx_lower_linear(&e->lo, g->out[j], s->row[r]));
        if (t->lanes > 1)
            fx_k_if(k, fx_k_eq(k, t->lane, fx_k_int(k, 0)));
        store(e, g->out[j], s->row[0], p->n_row, x);
        if (t->lanes > 1)
            fx_k_end(k);
    }
}

/* Element number h (a pair, by width) of the outputs of `cols` elements a row, at all rows. */
static void store_step(fx_emit *e, const fx_row_plan *p, state *s, int64_t cols, int width, fx_kx *h) {
    fx_kir *k = &e->k;
    const fx_group *g = s->g;
    fx_kx *valid = NULL, *x[64][2];
    int64_t pairs = cols / width;
    if (h->hi >= pairs) {
        valid = fx_k_lt(k, h, fx_k_int(k, pairs));
        h = fx_k_min(k, h, fx_k_int(k, pairs - 1));
    }
    for (int r = 0; r < p->n_row; r++) {
        fx_kx *at = fx_k_add(k, fx_k_mulc(k, s->row[r], cols), fx_k_mulc(k, h, width));
        for (int j = 0; j < g->n_out && j < 64; j++)
            for (int w = 0; w < width && g->out_cols[j] == cols; w++)
                x[j][w] = fx_k_let(k, fx_lower_linear(&e->lo, g->out[j], fx_k_addc(k, at, w)));
        if (valid)
            fx_k_if(k, valid);
        for (int j = 0; j < g->n_out && j < 64; j++)
            if (g->out_cols[j] == cols)
                store(e, g->out[j], at, width, x[j]);
        if (valid)
            fx_k_end(k);
    }
}

static void store_wide(fx_emit *e, const fx_row_plan *p, state *s, fx_team *t) {
    fx_kir *k = &e->k;
    const fx_group *g = s->g;
    for (int j = 0; j < g->n_out; j++) {
        int64_t cols = g->out_cols[j];
        bool again = cols == 1;
        for (int i = 0; i < j && !again; i++)
            again = g->out_cols[i] == cols;
        if (again)
            continue;
        int width = cols % 2 ? 1 : p->width;
        int64_t share = t->lanes * width, steps = (cols + share - 1) / share, safe = cols / share, u = p->unroll;
        int64_t loop = steps <= u ? 0 : safe / u * u;
        if (loop) {
            fx_kx *i = fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, loop), u, false);
            for (int64_t a = 0; a < u; a++)
                store_step(e, p, s, cols, width, fx_k_add(k, fx_k_mulc(k, fx_k_addc(k, i, a), t->lanes), t->lane));
            fx_k_end(k);
        }
        for (int64_t a = loop; a < steps; a++)
            store_step(e, p, s, cols, width, fx_k_addc(k, t->lane, a * t->lanes));
    }
}

/* ---- rows in parts ---- */

/* A kernel that writes the states of all parts, and the beginning of one that reads them: returns the plan of that. */
static fx_status parts_kernel(fx_emit *e, const fx_row_plan *p, state *s, int n, fx_node **node, int *temp) {
    fx_kir *k = &e->k;
    fx_team t;
    fx_kx *part;
    bool guard;
    fx_sweep w = {.n = n,
                  .node = node,
                  .n_row = p->n_row,
                  .count = p->count,
                  .length = p->part,
                  .width = p->width,
                  .unroll = p->unroll,
                  .team = &t};
    fx_row_open(e, p, &t, w.row, &part, &guard);
    s->n_row = p->n_row;
    for (int r = 0; r < p->n_row; r++)
        s->row[r] = w.row[r];
    w.from = fx_k_mulc(k, part, p->part);
    fx_sweep_run(e, &w);
    for (int i = 0, at = 0; i < n; at += fx_reduction_parts(node[i++]))
        for (int j = 0; j < fx_reduction_parts(node[i]); j++) {
            fx_dtype d = fx_reduction_type(node[i], j);
            fx_spec spec = FX_SPEC(d, p->rows, p->parts);
            temp[at + j] = fx_emit_temp(e, &spec);
            if (temp[at + j] < 0)
                return fx_fail_oom(0);
            int arg = fx_lower_arg(&e->lo, temp[at + j], d);
            if (t.lanes > 1)
                fx_k_if(k, fx_k_eq(k, t.lane, fx_k_int(k, 0)));
            for (int r = 0; r < p->n_row; r++)
                fx_k_store(k, arg, fx_k_add(k, fx_k_mulc(k, w.row[r], p->parts), part), w.state[r][at + j]);
            if (t.lanes > 1)
                fx_k_end(k);
        }
    if (guard)
        fx_k_end(k);
    e->schedule = p->lanes == 1 ? "reduce.parts" : "row.parts";
    return fx_emit_kernel(e, s->g);
}

/* Lanes for joining `parts` states a row. */
static fx_row_plan join_plan(const fx_emit *e, const fx_row_plan *p, int n, fx_node *const *node) {
    bool team = e->caps->subgroup_size > 1 && p->parts >= 8;
    for (int i = 0; i < n; i++) {
        team &= fx_reduction_commutes(node[i]);
        for (int j = 0; j < fx_reduction_parts(node[i]); j++)
            team &= fx_team_exchanges(e->caps, fx_reduction_type(node[i], j));
    }
    fx_row_plan q = {.rows = p->rows, .count = p->parts, .n_row = 1, .width = 1, .unroll = 4, .parts = 1};
    q.lanes = q.subgroup = team ? (int64_t)e->caps->subgroup_size : 1;
    q.teams = team ? 4 : 64;
    while (q.teams > 1 && q.teams > p->rows)
        q.teams /= 2;
    q.part = q.count;
    return q;
}

static fx_status emit_parts(fx_emit *e, const fx_row_plan *p, state *s) {
    const fx_group *g = s->g;
    for (int level = 0; level < s->n_level; level++) {
        fx_node *node[MAX_INNER];
        int which[MAX_INNER], temp[FX_SWEEP_PARTS], n;
        while ((n = pick(s, level, node, which))) {
            bool last = true; /* does anything remain after these? */
            for (int i = 0; i < g->n_inner; i++) {
                bool now = s->known[i] || s->stored[i] >= 0;
                for (int j = 0; j < n; j++)
                    now |= which[j] == i;
                last &= now;
            }
            fx_row_plan part = fx_row_plan_of(e, n, node, 0, NULL, NULL);
            e->lo.provide = provide;
            e->lo.user = s;
            if (part.parts < 2) {
                part.parts = 2; /* rows differ in length: cut this one all the same */
                part.part = (part.count + 1) / 2 + 1;
                part.part -= part.part % part.width;
                part.parts = (part.count + part.part - 1) / part.part;
            }
            FX_TRY(parts_kernel(e, &part, s, n, node, temp));
            fx_row_plan q = join_plan(e, &part, n, node);
            fx_team t;
            bool guard;
            fx_sweep w = {.n = n,
                          .node = node,
                          .n_row = 1,
                          .count = q.count,
                          .length = q.count,
                          .width = 1,
                          .unroll = 4,
                          .team = &t,
                          .source = temp,
                          .from = fx_k_int(&e->k, 0)};
            e->lo.provide = provide;
            e->lo.user = s;
            fx_row_open(e, &q, &t, w.row, NULL, &guard);
            s->n_row = 1;
            s->row[0] = w.row[0];
            fx_sweep_run(e, &w);
            finish(e, s, &w, which);
            if (last) {
                store_rows(e, &q, s, &t);
                store_wide(e, &q, s, &t);
            } else if (t.lanes > 1)
                fx_k_if(&e->k, fx_k_eq(&e->k, t.lane, fx_k_int(&e->k, 0)));
            for (int i = 0; i < n && !last; i++) {
                fx_spec spec = FX_SPEC(fx_kir_register(node[i]->spec.dtype), p->rows);
                s->known[which[i]] = false;
                s->stored[which[i]] = fx_emit_temp(e, &spec);
                if (s->stored[which[i]] < 0)
                    return fx_fail_oom(0);
                fx_k_store(&e->k, fx_lower_arg(&e->lo, s->stored[which[i]], spec.dtype), s->row[0],
                           s->value[which[i]][0][0]);
            }
            if (!last && t.lanes > 1)
                fx_k_end(&e->k);
            if (guard)
                fx_k_end(&e->k);
            e->schedule = "reduce.join";
            if (!last)
                FX_TRY(fx_emit_kernel(e, g));
        }
    }
    return FX_OK;
}

static fx_status emit_group(fx_emit *e, const fx_group *g) {
    state *s = fx_arena_alloc(e->arena, sizeof *s);
    if (!s)
        return fx_fail_oom(sizeof *s);
    if (g->n_inner > MAX_INNER)
        return fx_fail(FX_INTERNAL, "compiling; a group of %d reductions; at most %d fit", g->n_inner, (int)MAX_INNER);
    s->g = g;
    s->n_level = 1;
    for (int i = 0; i < g->n_inner; i++)
        s->stored[i] = -1;
    if (!find_levels(e, s))
        return fx_fail_oom(0);
    fx_row_plan p = fx_row_plan_of(e, g->n_inner, g->inner, g->n_out, g->out, g->out_cols);
    if (p.parts > 1)
        return emit_parts(e, &p, s);
    fx_team t;
    bool guard;
    e->lo.provide = provide;
    e->lo.user = s;
    fx_row_open(e, &p, &t, s->row, NULL, &guard);
    s->n_row = p.n_row;
    for (int level = 0; level < s->n_level; level++)
        sweep(e, &p, s, &t, level);
    store_rows(e, &p, s, &t);
    store_wide(e, &p, s, &t);
    if (guard)
        fx_k_end(&e->k);
    e->schedule = p.lanes == 1           ? p.across ? "reduce.columns" : "row.lane"
                  : p.lanes > p.subgroup ? "row.workgroup"
                                         : "row.subgroup";
    return FX_OK;
}

/* arg_reduce and reduce_fn: a group of one. */
static bool match_special(const fx_emit *e, const fx_group *g) {
    (void)e;
    fx_node *n = g->inner[0];
    int parts = fx_reduction_parts(n);
    return parts && parts <= FX_SWEEP_PARTS && n->op != FX_OP_reduce &&
           !(n->op == FX_OP_arg_reduce && fx_reduction_count(n) > INT32_MAX);
}

static fx_status emit_special(fx_emit *e, const fx_group *g) {
    int64_t ones[FX_SWEEP_PARTS];
    fx_group as_rows = *g;
    for (int j = 0; j < g->n_out && j < FX_SWEEP_PARTS; j++)
        ones[j] = 1;
    as_rows.out_cols = ones;
    as_rows.rows = fx_spec_count(fx_result_spec(g->inner[0], 0));
    return emit_group(e, &as_rows);
}

const fx_schedule fx_schedule_row = {"row", FX_GROUP_REDUCE, NULL, emit_group};
const fx_schedule fx_schedule_arg_reduce = {"row", FX_GROUP_SPECIAL, match_special, emit_special};
