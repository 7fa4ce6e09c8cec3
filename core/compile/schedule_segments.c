/* schedule_segments.c - pointwise groups that do the same work on arrays of different sizes, in one launch.
 *
 * Two groups are alike when their bodies, lowered at a nameless position, print the same text. The kernel
 * finds by bisection in a small table which group ("segment") its workgroup belongs to, and takes that
 * group's pointers from the argument table. This is how an optimizer updates all parameters at once. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/error.h"
#include "core/compile/emit.h"
#include "core/kernel/dialect.h"

enum { LANES = 256, PER_LANE = 8, MOST_SEGMENTS = 4096, LARGE_TOTAL = 16384 };

/* Lowers g's work on one element and hashes the text. hash 0: not for sharing. */
fx_status fx_body_describe(fx_builder *b, const fx_group *g, fx_value v, fx_body *out) {
    fx_arena arena;
    fx_emit e;
    fx_text text = {0};
    fx_emit_begin(&e, b, g, &arena);
    *out = (fx_body){.g = g, .v = v, .count = fx_spec_count(fx_value_spec(v.node ? v : g->out[0]))};
    out->width = out->count % 2 == 0 ? 2 : 1;
    if (out->count / out->width < 2 || out->count > INT32_MAX) {
        fx_arena_finish(&arena);
        return FX_OK;
    }
    fx_kx *half = fx_k_builtin(&e.k, FX_KB_GROUP_X, out->count / out->width), *i[2];
    i[0] = fx_k_mulc(&e.k, half, out->width);
    i[1] = fx_k_addc(&e.k, i[0], 1);
    int skip = v.node ? 1 : 0; /* a place to store to, so that the text has the value */
    if (v.node) {
        int sink = fx_lower_arg(&e.lo, -2, fx_kir_register(fx_value_spec(v)->dtype));
        fx_k_store(&e.k, sink, half, fx_total_elements(&e, g, out->width, i));
    } else
        fx_pointwise_elements(&e, g, out->width, i);
    fx_status st = e.lo.status;
    if (st == FX_OK)
        st = fx_kir_render(&e.k, b->caps, "", &text);
    if (st == FX_OK) {
        out->hash = XXH3_64bits(text.s, text.n) | 1;
        out->bytes = text.n;
        out->n_arg = e.lo.n_arg - skip;
        out->args = fx_arena_copy(&b->p->arena, e.lo.arg_buffer + skip, sizeof(int) * (size_t)out->n_arg);
        if (!out->args)
            st = fx_fail_oom(0);
    }
    fx_text_free(&text);
    fx_arena_finish(&arena);
    return st;
}

/* s32[n + 1] first workgroups, then s32[n] sizes in units of the width. */
fx_status fx_segment_table(fx_builder *b, int n, fx_body *const *list, int64_t unit, int *buffer, int64_t *groups) {
    fx_spec spec = FX_SPEC(FX_S32, 2 * n + 1);
    int32_t *t = FX_ARENA_ARRAY(&b->p->arena, int32_t, 2 * n + 1);
    *buffer = t ? fx_builder_buffer(b, FX_BUFFER_CONST, &spec) : -1;
    if (*buffer < 0)
        return fx_fail_oom(0);
    b->p->buffers[*buffer].data = t;
    *groups = 0;
    for (int j = 0; j < n; j++) {
        int64_t size = list[j]->count / list[j]->width;
        t[j] = (int32_t)*groups;
        t[n + 1 + j] = (int32_t)size;
        *groups += (size + unit - 1) / unit;
    }
    t[n] = (int32_t)*groups;
    return FX_OK;
}

/* The last j in [0, n) with table[j] <= w. */
fx_kx *fx_segment_bisect(fx_kir *k, int table, int n, fx_kx *w) {
    fx_kx *lo = fx_k_mut(k, fx_k_int(k, 0)), *hi = fx_k_mut(k, fx_k_int(k, n)), *one = fx_k_int(k, 1);
    fx_k_while(k, fx_k_op2(k, FX_OP_lt, FX_S32, fx_k_op2(k, FX_OP_add, FX_S32, lo, one), hi));
    fx_kx *sum = fx_k_op2(k, FX_OP_add, FX_S32, lo, hi);
    fx_kx *mid = fx_k_let(k, fx_k_op2(k, FX_OP_shr_a, FX_S32, sum, one));
    fx_kx *start = fx_k_load(k, table, mid);
    fx_k_if(k, fx_k_op2(k, FX_OP_le, FX_S32, start, w));
    fx_k_set(k, lo, mid);
    fx_k_else(k);
    fx_k_set(k, hi, mid);
    fx_k_end(k);
    fx_k_end(k);
    return fx_k_bound(k, fx_k_read(k, lo), 0, n - 1);
}

static fx_status emit_segments(fx_builder *b, int n, fx_body *const *list) {
    fx_arena arena;
    fx_emit e;
    const fx_group *g = list[0]->g;
    int width = list[0]->width, m = list[0]->n_arg, table;
    int64_t lanes = b->caps->max_invocations < LANES ? (int64_t)b->caps->max_invocations : LANES, groups = 0;
    int64_t unit = lanes * PER_LANE, most = 0;
    FX_TRY(fx_segment_table(b, n, list, unit, &table, &groups));
    for (int j = 0; j < n; j++)
        most = most > list[j]->count / width ? most : list[j]->count / width;
    fx_emit_begin(&e, b, g, &arena);
    fx_kir *k = &e.k;
    e.schedule = "pointwise.segments";
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *w = fx_emit_grid(&e, groups), *i[2];
    int arg = fx_lower_arg(&e.lo, table, FX_S32);
    fx_k_if(k, fx_k_lt(k, w, fx_k_int(k, groups)));
    w = fx_k_bound(k, w, 0, groups - 1);
    fx_kx *segment = fx_segment_bisect(k, arg, n, w);
    fx_k_segment(k, segment, n);
    fx_kx *start = fx_k_load(k, arg, segment);
    fx_kx *size = fx_k_load(k, arg, fx_k_addc(k, segment, n + 1));
    fx_kx *first = fx_k_bound(k, fx_k_sub(k, w, fx_k_bound(k, start, 0, groups)), 0, (most + unit - 1) / unit - 1);
    fx_kx *at = fx_k_add(k, fx_k_mulc(k, first, unit), fx_k_builtin(k, FX_KB_LOCAL, lanes));
    at = fx_k_add(k, at, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, unit), lanes, false));
    fx_k_if(k, fx_k_lt(k, at, fx_k_bound(k, size, 0, most)));
    /* the positions of the first segment stand for those of all: the texts are equal */
    fx_kx *half = fx_k_rename(k, at, 0, list[0]->count / width - 1);
    i[0] = fx_k_mulc(k, half, width);
    i[1] = fx_k_addc(k, i[0], 1);
    fx_pointwise_elements(&e, g, width, i);
    fx_k_end(k);
    fx_k_end(k);
    fx_k_end(k);
    fx_status st = e.lo.n_arg == m + 1
                       ? fx_emit_kernel(&e, g)
                       : fx_fail(FX_INTERNAL, "emitting segments; expected %d arguments; got %d", m + 1, e.lo.n_arg);
    fx_arena_finish(&arena);
    FX_TRY(st);
    int *args = FX_ARENA_ARRAY(&b->p->arena, int, n *m);
    int64_t elements = 0;
    for (int j = 0; j < n && args; j++) {
        elements += list[j]->count;
        memcpy(args + j * m, list[j]->args, sizeof *args * (size_t)m);
    }
    if (!args)
        return fx_fail_oom(0);
    fx_step *s = &b->p->steps[b->p->n_step - 1];
    s->flops = s->flops / list[0]->count * elements;
    return fx_segment_arguments(b, 1, n, m, args);
}

fx_status fx_segment_arguments(fx_builder *b, int fixed, int n, int per, const int *buffers) {
    fx_step *s = &b->p->steps[b->p->n_step - 1];
    fx_step_arg *args = FX_ARENA_ARRAY(&b->p->arena, fx_step_arg, fixed + n * per);
    if (!args)
        return fx_fail_oom(0);
    memcpy(args, s->args, sizeof *args * (size_t)fixed);
    for (int j = 0; j < n; j++)
        for (int a = 0; a < per; a++) {
            fx_step_arg *to = &args[fixed + j * per + a];
            *to = s->args[fixed + a];
            to->buffer = buffers[j * per + a];
            if (to->in_place_of >= fixed)
                to->in_place_of += j * per;
        }
    s->args = args;
    s->n_arg = fixed + n * per;
    s->bytes_read = s->bytes_written = 0;
    for (int a = 0; a < s->n_arg; a++) {
        int64_t bytes = (int64_t)b->p->buffers[args[a].buffer].bytes;
        s->bytes_read += args[a].access & FX_READ ? bytes : 0;
        s->bytes_written += args[a].access & FX_WRITE ? bytes : 0;
    }
    return FX_OK;
}

fx_status fx_emit_sinks(fx_builder *b, int n, const fx_group *const *groups) {
    return fx_emit_classes(b, n, groups, false);
}

fx_status fx_emit_classes(fx_builder *b, int n, const fx_group *const *groups, bool totals) {
    fx_body *all = calloc((size_t)n + 1, sizeof *all), **list = calloc((size_t)n + 1, sizeof *list);
    fx_status st = all && list ? FX_OK : fx_fail_oom((size_t)n * sizeof *all);
    for (int i = 0; i < n && st == FX_OK; i++) {
        fx_value v = totals ? fx_value_of(groups[i]->inner[0]->in[0]) : (fx_value){NULL, 0};
        st = fx_body_describe(b, groups[i], v, &all[i]);
    }
    for (int i = 0; i < n && st == FX_OK; i++) {
        int m = 0;
        if (all[i].done)
            continue;
        for (int j = i; j < n && m < MOST_SEGMENTS && all[i].hash && (j == i || !b->opt->no_fusion); j++)
            if (!all[j].done && all[j].hash == all[i].hash && all[j].bytes == all[i].bytes &&
                all[j].width == all[i].width && all[j].n_arg == all[i].n_arg) {
                all[j].done = true;
                list[m++] = &all[j];
            }
        if (totals && m && (m > 1 || all[i].count >= LARGE_TOTAL))
            st = fx_emit_total_segments(b, m, list);
        else
            st = m > 1 ? emit_segments(b, m, list) : fx_emit_group(b, all[i].g);
    }
    free(list);
    free(all);
    return st;
}
