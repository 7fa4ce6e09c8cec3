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

enum { LANES = 256, PER_LANE = 8, MOST_SEGMENTS = 4096 };

typedef struct body {
    const fx_group *g;
    uint64_t hash;
    size_t bytes;
    int64_t count;
    int width, n_arg;
    int *args; /* buffers, in order of first use */
    bool done;
} body;

/* Lowers g's work on one element and hashes the text. hash 0: not for sharing. */
static fx_status describe(fx_builder *b, const fx_group *g, body *out) {
    fx_arena arena;
    fx_emit e;
    fx_text text = {0};
    fx_emit_begin(&e, b, g, &arena);
    *out = (body){.g = g, .count = fx_spec_count(fx_value_spec(g->out[0]))};
    out->width = out->count % 2 == 0 ? 2 : 1;
    if (out->count / out->width < 2 || out->count > INT32_MAX) {
        fx_arena_finish(&arena);
        return FX_OK;
    }
    fx_kx *half = fx_k_builtin(&e.k, FX_KB_GROUP_X, out->count / out->width), *i[2];
    i[0] = fx_k_mulc(&e.k, half, out->width);
    i[1] = fx_k_addc(&e.k, i[0], 1);
    fx_pointwise_elements(&e, g, out->width, i);
    fx_status st = e.lo.status;
    if (st == FX_OK)
        st = fx_kir_render(&e.k, b->caps, "", &text);
    if (st == FX_OK) {
        out->hash = XXH3_64bits(text.s, text.n) | 1;
        out->bytes = text.n;
        out->n_arg = e.lo.n_arg;
        out->args = fx_arena_copy(&b->p->arena, e.lo.arg_buffer, sizeof(int) * (size_t)e.lo.n_arg);
        if (!out->args)
            st = fx_fail_oom(0);
    }
    fx_text_free(&text);
    fx_arena_finish(&arena);
    return st;
}

/* s32[n + 1] first workgroups, then s32[n] sizes in units of the width. */
static fx_status make_table(fx_builder *b, int n, body *const *list, int64_t unit, int *buffer, int64_t *groups) {
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
static fx_kx *bisect(fx_kir *k, int table, int n, fx_kx *w) {
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

static fx_status emit_segments(fx_builder *b, int n, body *const *list) {
    fx_arena arena;
    fx_emit e;
    const fx_group *g = list[0]->g;
    int width = list[0]->width, m = list[0]->n_arg, table;
    int64_t lanes = b->caps->max_invocations < LANES ? (int64_t)b->caps->max_invocations : LANES, groups = 0;
    int64_t unit = lanes * PER_LANE, most = 0;
    FX_TRY(make_table(b, n, list, unit, &table, &groups));
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
    fx_kx *segment = bisect(k, arg, n, w);
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
    fx_step *s = &b->p->steps[b->p->n_step - 1];
    fx_step_arg *args = FX_ARENA_ARRAY(&b->p->arena, fx_step_arg, 1 + n * m);
    if (!args)
        return fx_fail_oom(0);
    args[0] = s->args[0];
    s->bytes_read = (int64_t)b->p->buffers[table].bytes;
    s->bytes_written = 0;
    s->flops = s->flops / list[0]->count;
    int64_t elements = 0;
    for (int j = 0; j < n; j++) {
        elements += list[j]->count;
        for (int a = 0; a < m; a++) {
            fx_step_arg *to = &args[1 + j * m + a];
            *to = s->args[1 + a];
            to->buffer = list[j]->args[a];
            if (to->in_place_of >= 0)
                to->in_place_of += j * m;
            int64_t bytes = (int64_t)b->p->buffers[to->buffer].bytes;
            s->bytes_read += to->access & FX_READ ? bytes : 0;
            s->bytes_written += to->access & FX_WRITE ? bytes : 0;
        }
    }
    s->flops *= elements;
    s->args = args;
    s->n_arg = 1 + n * m;
    return FX_OK;
}

fx_status fx_emit_sinks(fx_builder *b, int n, const fx_group *const *groups) {
    body *all = calloc((size_t)n + 1, sizeof *all), **list = calloc((size_t)n + 1, sizeof *list);
    fx_status st = all && list ? FX_OK : fx_fail_oom((size_t)n * sizeof *all);
    for (int i = 0; i < n && st == FX_OK; i++)
        st = describe(b, groups[i], &all[i]);
    for (int i = 0; i < n && st == FX_OK; i++) {
        int m = 0;
        if (all[i].done)
            continue;
        for (int j = i; j < n && m < MOST_SEGMENTS && all[i].hash && !b->opt->no_fusion; j++)
            if (!all[j].done && all[j].hash == all[i].hash && all[j].bytes == all[i].bytes &&
                all[j].width == all[i].width && all[j].n_arg == all[i].n_arg) {
                all[j].done = true;
                list[m++] = &all[j];
            }
        st = m > 1 ? emit_segments(b, m, list) : fx_emit_group(b, all[i].g);
    }
    free(list);
    free(all);
    return st;
}
