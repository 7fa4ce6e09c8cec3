/* plan.c - lifetimes, in-place sharing, then best fit by offset: the largest buffers are placed first, each
 * at the lowest gap among the placed ones that live at the same time (Pisarchyk & Lee 2020, "greedy by
 * size"). */
#include "core/compile/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

enum { ALIGN = 256 };

typedef struct life {
    int first, last; /* steps; first is -1 when nothing writes it */
    int slot;        /* buffer that stands for the memory (itself, or one it took over) */
    bool result;
} life;

/* A buffer to place, as qsort compares it. */
typedef struct item {
    uint64_t bytes;
    int buffer;
} item;

typedef struct planner {
    const fx_program *p;
    life *life;
    item *items;
    int *order; /* buffers, largest first */
    fx_plan *plan;
} planner;

static void touch(life *l, int step) {
    if (l->first < 0)
        l->first = step;
    l->last = step;
}

static int root(const planner *pl, int b) {
    while (pl->life[b].slot != b)
        b = pl->life[b].slot;
    return b;
}

static void lifetimes(planner *pl) {
    const fx_program *p = pl->p;
    for (int b = 0; b < p->n_buffer; b++)
        pl->life[b] = (life){-1, -1, b, false};
    for (int s = 0; s < p->n_step; s++)
        for (int a = 0; a < p->steps[s].n_arg; a++)
            touch(&pl->life[p->steps[s].args[a].buffer], s);
    for (int r = 0; r < p->n_result; r++) {
        life *l = &pl->life[p->results[r]];
        l->result = true;
        l->last = p->n_step; /* read after the last step */
    }
}

/* The one result that names buffer b, or -1 when none or several do. */
static int sole_result(const fx_program *p, int b) {
    int found = -1;
    for (int r = 0; r < p->n_result; r++)
        if (p->results[r] == b) {
            if (found >= 0)
                return -1;
            found = r;
        }
    return found;
}

/* Gives results the memory of donated parameters: written in place where a step allows it. */
static void donate_in_place(planner *pl, const bool *donated, bool *taken) {
    const fx_program *p = pl->p;
    for (int s = 0; s < p->n_step; s++)
        for (int a = 0; a < p->steps[s].n_arg; a++) {
            const fx_step_arg *arg = &p->steps[s].args[a];
            if (!(arg->access & FX_WRITE) || arg->in_place_of < 0)
                continue;
            int out = arg->buffer, in = p->steps[s].args[arg->in_place_of].buffer, r = sole_result(p, out);
            const fx_buffer *bi = &p->buffers[in], *bo = &p->buffers[out];
            if (bo->kind != FX_BUFFER_TEMP || pl->life[out].first != s || bi->bytes != bo->bytes)
                continue;
            if (bi->kind == FX_BUFFER_PARAM && donated && donated[bi->index] && !taken[bi->index] && r >= 0 &&
                pl->life[in].last == s) {
                taken[bi->index] = true;
                pl->plan->donor[r] = bi->index;
                pl->plan->in_place[r] = true;
            } else if (bi->kind == FX_BUFFER_TEMP && !pl->life[in].result && !pl->life[out].result && pl->life[in].last == s &&
                       root(pl, in) != root(pl, out)) {
                int to = root(pl, in);
                pl->life[out].slot = to;
                if (pl->life[out].last > pl->life[to].last)
                    pl->life[to].last = pl->life[out].last;
            }
        }
}

/* The other results may take over a donated parameter that nothing reads from their first write on. */
static void donate_later(planner *pl, const bool *donated, bool *taken) {
    const fx_program *p = pl->p;
    for (int r = 0; donated && r < p->n_result; r++) {
        const fx_buffer *out = &p->buffers[p->results[r]];
        if (out->kind != FX_BUFFER_TEMP || pl->plan->donor[r] >= 0 || sole_result(p, p->results[r]) != r)
            continue;
        for (int b = 0; b < p->n_buffer && pl->plan->donor[r] < 0; b++) {
            const fx_buffer *in = &p->buffers[b];
            if (in->kind == FX_BUFFER_PARAM && donated[in->index] && !taken[in->index] && fx_spec_equal(&in->spec, &out->spec) &&
                !pl->life[b].result && pl->life[b].last < pl->life[p->results[r]].first) {
                taken[in->index] = true;
                pl->plan->donor[r] = in->index;
            }
        }
    }
}

static int larger_first(const void *x, const void *y) {
    const item *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->buffer - b->buffer;
}

static uint64_t rounded(uint64_t bytes) { return bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN; }

static bool meet(const life *a, const life *b) { return a->first <= b->last && b->first <= a->last; }

/* Lowest offset at which `bytes` fit among the placed buffers alive with b. */
static uint64_t fit(const planner *pl, int b, int n_placed, uint64_t bytes) {
    uint64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        if (at / pl->plan->chunk != (at + bytes - 1) / pl->plan->chunk) { /* would cross into the next allocation */
            at = (at / pl->plan->chunk + 1) * pl->plan->chunk;
            moved = true;
        }
        for (int i = 0; i < n_placed; i++) {
            int o = pl->order[i];
            uint64_t start = (uint64_t)pl->plan->offset[o], end = start + rounded(pl->p->buffers[o].bytes);
            if (meet(&pl->life[o], &pl->life[b]) && start < at + bytes && at < end) {
                at = end;
                moved = true;
            }
        }
    }
    return at;
}

static fx_status place(planner *pl) {
    const fx_program *p = pl->p;
    fx_plan *plan = pl->plan;
    int n = 0;
    for (int b = 0; b < p->n_buffer; b++)
        if (p->buffers[b].kind == FX_BUFFER_TEMP && pl->life[b].first >= 0 && root(pl, b) == b && !pl->life[b].result)
            pl->items[n++] = (item){p->buffers[b].bytes, b};
    qsort(pl->items, (size_t)n, sizeof *pl->items, larger_first);
    for (int i = 0; i < n; i++)
        pl->order[i] = pl->items[i].buffer;
    for (int i = 0; i < n; i++) {
        int b = pl->order[i];
        uint64_t bytes = rounded(p->buffers[b].bytes);
        if (bytes > plan->chunk)
            return fx_fail(FX_OUT_OF_MEMORY, "an intermediate of %llu bytes; expected at most the device's largest allocation of %llu; "
                                             "use a smaller batch",
                           (unsigned long long)bytes, (unsigned long long)plan->chunk);
        uint64_t at = fit(pl, b, i, bytes);
        plan->offset[b] = (int64_t)at;
        if (at + bytes > plan->bytes)
            plan->bytes = at + bytes;
    }
    for (int b = 0; b < p->n_buffer; b++)
        if (root(pl, b) != b)
            plan->offset[b] = plan->offset[root(pl, b)];
    for (int s = 0; s < p->n_step; s++) {
        uint64_t live = 0;
        for (int i = 0; i < n; i++)
            if (pl->life[pl->order[i]].first <= s && s <= pl->life[pl->order[i]].last)
                live += rounded(p->buffers[pl->order[i]].bytes);
        plan->live_peak = live > plan->live_peak ? live : plan->live_peak;
    }
    return FX_OK;
}

fx_status fx_plan_create(const fx_program *p, const bool *donated, uint64_t chunk, fx_plan **out) {
    planner pl = {.p = p};
    *out = NULL;
    pl.plan = calloc(1, sizeof *pl.plan);
    pl.life = calloc((size_t)p->n_buffer + 1, sizeof *pl.life);
    pl.order = calloc((size_t)p->n_buffer + 1, sizeof *pl.order);
    pl.items = calloc((size_t)p->n_buffer + 1, sizeof *pl.items);
    bool *taken = calloc((size_t)p->n_param + 1, sizeof *taken);
    fx_status st = FX_OUT_OF_MEMORY;
    if (pl.plan) {
        pl.plan->chunk = chunk / ALIGN * ALIGN;
        pl.plan->offset = malloc(sizeof *pl.plan->offset * ((size_t)p->n_buffer + 1));
        pl.plan->donor = malloc(sizeof *pl.plan->donor * ((size_t)p->n_result + 1));
        pl.plan->in_place = calloc((size_t)p->n_result + 1, sizeof *pl.plan->in_place);
    }
    if (pl.plan && pl.plan->offset && pl.plan->donor && pl.plan->in_place && pl.life && pl.order && pl.items && taken) {
        for (int b = 0; b < p->n_buffer; b++)
            pl.plan->offset[b] = FX_PLAN_NONE;
        for (int r = 0; r < p->n_result; r++)
            pl.plan->donor[r] = FX_PLAN_NONE;
        lifetimes(&pl);
        donate_in_place(&pl, donated, taken);
        donate_later(&pl, donated, taken);
        st = place(&pl);
    } else {
        fx_fail_oom(sizeof *pl.plan);
    }
    free(taken);
    free(pl.items);
    free(pl.order);
    free(pl.life);
    if (st == FX_OK)
        *out = pl.plan;
    else
        fx_plan_destroy(pl.plan);
    return st;
}

void fx_plan_destroy(fx_plan *plan) {
    if (!plan)
        return;
    free(plan->offset);
    free(plan->donor);
    free(plan->in_place);
    free(plan);
}
