/* schedule_totals.c - reductions of large arrays to scalars, any number of like ones in two launches.
 *
 * First launch: every lane reduces a fixed set of elements of its segment and stores one partial result.
 * Second: one workgroup a segment reduces its partial results, lane by lane, then lane 0 those of the lanes
 * through shared memory. No atomics, so the order of summation is fixed by the shapes. */
#include "core/base/error.h"
#include "core/compile/emit.h"

enum { LANES = 64, PER_LANE = 32, SECOND_LANES = 32, LEAST = 256 };

bool fx_is_total(const fx_group *g) {
    return g->kind == FX_GROUP_REDUCE && g->n_inner == 1 && g->n_out == 1 && g->out[0].node == g->inner[0] &&
           g->rows == 1 && fx_spec_count(&g->inner[0]->in[0]->spec) >= LEAST;
}

fx_status fx_emit_totals(fx_builder *b, int n, const fx_group *const *groups) {
    return fx_emit_classes(b, n, groups, true);
}

static fx_kx *combine(fx_kir *k, const fx_group *g, fx_kx *a, fx_kx *x) {
    const fx_node *n = g->inner[0];
    return fx_k_op2(k, fx_reduce_op(FX_GET_SYM(n)), n->spec.dtype, a, x);
}

fx_kx *fx_total_elements(fx_emit *e, const fx_group *g, int width, fx_kx *const *i) {
    fx_value v = fx_value_of(g->inner[0]->in[0]);
    e->lo.pairs = width == 2;
    fx_kx *x = fx_k_let(&e->k, fx_lower_linear(&e->lo, v, i[0]));
    return width == 1 ? x : fx_k_let(&e->k, combine(&e->k, g, x, fx_k_let(&e->k, fx_lower_linear(&e->lo, v, i[1]))));
}

static fx_status first(fx_builder *b, int n, fx_body *const *list, int *table, int *partial, int64_t *lanes) {
    fx_arena arena;
    fx_emit e;
    const fx_group *g = list[0]->g;
    int width = list[0]->width, m = list[0]->n_arg;
    int64_t groups = 0, most = 0, elements = 0;
    *lanes = b->caps->max_invocations < LANES ? (int64_t)b->caps->max_invocations : LANES;
    FX_TRY(fx_segment_table(b, n, list, *lanes * PER_LANE, table, &groups));
    fx_spec spec = FX_SPEC(fx_kir_register(g->inner[0]->spec.dtype), groups * *lanes);
    *partial = fx_builder_buffer(b, FX_BUFFER_TEMP, &spec);
    int *args = FX_ARENA_ARRAY(&b->p->arena, int, n *m + 1);
    if (*partial < 0 || !args)
        return fx_fail_oom(0);
    for (int j = 0; j < n; j++) {
        elements += list[j]->count;
        most = most > list[j]->count / width ? most : list[j]->count / width;
        for (int a = 0; a < m; a++)
            args[j * m + a] = list[j]->args[a];
    }
    fx_emit_begin(&e, b, g, &arena);
    fx_kir *k = &e.k;
    e.schedule = "totals.partial";
    k->workgroup[0] = (uint32_t)*lanes;
    fx_kx *w = fx_emit_grid(&e, groups), *i[2], *lane = fx_k_builtin(k, FX_KB_LOCAL, *lanes);
    int t = fx_lower_arg(&e.lo, *table, FX_S32), p = fx_lower_arg(&e.lo, *partial, spec.dtype);
    k->args[p].writes = true;
    fx_k_if(k, fx_k_lt(k, w, fx_k_int(k, groups)));
    w = fx_k_bound(k, w, 0, groups - 1);
    fx_kx *segment = fx_segment_bisect(k, t, n, w);
    fx_k_segment(k, segment, n);
    fx_kx *start = fx_k_load(k, t, segment), *size = fx_k_load(k, t, fx_k_addc(k, segment, n + 1));
    int64_t unit = *lanes * PER_LANE;
    fx_kx *block = fx_k_bound(k, fx_k_sub(k, w, fx_k_bound(k, start, 0, groups)), 0, (most + unit - 1) / unit - 1);
    fx_kx *acc = fx_k_mut(k, fx_reduce_identity(k, FX_GET_SYM(g->inner[0]), g->inner[0]->spec.dtype));
    fx_kx *at = fx_k_add(k, fx_k_mulc(k, block, unit), lane);
    at = fx_k_add(k, at, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, unit), *lanes, false));
    fx_k_if(k, fx_k_lt(k, at, fx_k_bound(k, size, 0, most)));
    fx_kx *half = fx_k_rename(k, at, 0, list[0]->count / width - 1);
    i[0] = fx_k_mulc(k, half, width);
    i[1] = fx_k_addc(k, i[0], 1);
    fx_k_set(k, acc, combine(k, g, acc, fx_total_elements(&e, g, width, i)));
    fx_k_end(k);
    fx_k_end(k);
    fx_k_store(k, p, fx_k_add(k, fx_k_mulc(k, w, *lanes), lane), fx_k_read(k, acc));
    fx_k_end(k);
    fx_status st = e.lo.n_arg == m + 2
                       ? fx_emit_kernel(&e, g)
                       : fx_fail(FX_INTERNAL, "emitting totals; expected %d arguments; got %d", m + 2, e.lo.n_arg);
    fx_arena_finish(&arena);
    FX_TRY(st);
    fx_step *s = &b->p->steps[b->p->n_step - 1];
    s->flops = s->flops / list[0]->count * elements;
    return fx_segment_arguments(b, 2, n, m, args);
}

static fx_status second(fx_builder *b, int n, fx_body *const *list, int table, int partial, int64_t lanes) {
    fx_arena arena;
    fx_emit e;
    const fx_group *g = list[0]->g;
    const fx_node *r = g->inner[0];
    int *args = FX_ARENA_ARRAY(&b->p->arena, int, n);
    fx_dtype reg = fx_kir_register(r->spec.dtype);
    int64_t groups = fx_spec_count(&b->p->buffers[partial].spec) / lanes;
    int64_t team = b->caps->max_invocations < SECOND_LANES ? (int64_t)b->caps->max_invocations : SECOND_LANES;
    if (!args)
        return fx_fail_oom(0);
    for (int j = 0; j < n; j++)
        FX_TRY(fx_builder_value(b, list[j]->g->out[0], &args[j]));
    fx_emit_begin(&e, b, g, &arena);
    fx_kir *k = &e.k;
    e.schedule = "totals.final";
    k->workgroup[0] = (uint32_t)team;
    fx_kx *segment = fx_k_builtin(k, FX_KB_GROUP_X, n), *lane = fx_k_builtin(k, FX_KB_LOCAL, team);
    e.groups[0] = n;
    int t = fx_lower_arg(&e.lo, table, FX_S32), p = fx_lower_arg(&e.lo, partial, reg);
    fx_k_segment(k, segment, n);
    int o = fx_lower_arg(&e.lo, args[0], r->spec.dtype), shared = fx_k_shared(k, reg, team);
    k->args[o].writes = true;
    fx_kx *from = fx_k_bound(k, fx_k_load(k, t, segment), 0, groups);
    fx_kx *to = fx_k_bound(k, fx_k_load(k, t, fx_k_addc(k, segment, 1)), 0, groups);
    fx_kx *acc = fx_k_mut(k, fx_reduce_identity(k, FX_GET_SYM(r), r->spec.dtype));
    fx_kx *j = fx_k_for(k, fx_k_add(k, fx_k_mulc(k, from, lanes), lane), fx_k_mulc(k, to, lanes), team, false);
    fx_k_set(k, acc, combine(k, g, acc, fx_k_load(k, p, j)));
    fx_k_end(k);
    fx_k_shared_store(k, shared, lane, fx_k_read(k, acc));
    fx_k_barrier(k);
    fx_k_if(k, fx_k_eq(k, lane, fx_k_int(k, 0)));
    fx_kx *all = fx_k_mut(k, fx_k_read(k, acc));
    fx_kx *l = fx_k_for(k, fx_k_int(k, 1), fx_k_int(k, team), 1, false);
    fx_k_set(k, all, combine(k, g, all, fx_k_shared_load(k, shared, l)));
    fx_k_end(k);
    fx_k_store(k, o, fx_k_int(k, 0), fx_k_read(k, all));
    fx_k_end(k);
    fx_status st = fx_emit_kernel(&e, g);
    fx_arena_finish(&arena);
    FX_TRY(st);
    b->p->steps[b->p->n_step - 1].flops = groups * lanes;
    return fx_segment_arguments(b, 2, n, 1, args);
}

fx_status fx_emit_total_segments(fx_builder *b, int n, fx_body *const *list) {
    int table = 0, partial = 0;
    int64_t lanes = 0;
    FX_TRY(first(b, n, list, &table, &partial, &lanes));
    return second(b, n, list, table, partial, lanes);
}
