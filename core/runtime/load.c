/* load.c - a program made ready to run: kernels compiled, arena, constants and loop memory in place, regions
 * likewise. emit: its steps put on a stream. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/runtime/runtime.h"

enum { ALIGN = 256 };
static uint64_t rounded(uint64_t bytes) { return bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN; }

void fx_loaded_destroy(fx_loaded *l) {
    if (!l)
        return;
    const fx_program *p = l->program;
    fx_device *d = l->device;
    for (int i = 0; l->body && i < p->n_step; i++) {
        for (int b = 0; l->body[i] && b < p->steps[i].n_body; b++)
            fx_loaded_destroy(l->body[i][b]);
        free(l->body[i]);
    }
    for (int i = 0; l->kernels && i < p->n_kernel; i++)
        if (l->kernels[i])
            d->backend->kernel_destroy(d->open, l->kernels[i]);
    for (int i = 0; i < l->n_arena; i++)
        fx_pool_free(&d->pool, &l->arena[i]);
    for (int i = 0; l->loop && i < p->n_step; i++)
        fx_pool_free(&d->pool, &l->loop[i]);
    fx_pool_free(&d->pool, &l->constants);
    fx_plan_destroy(l->plan);
    free(l->body);
    free(l->kernels);
    free(l->arena);
    free(l->loop);
    free(l->constant_offset);
    free(l);
}

static fx_status load_kernels(fx_loaded *l, int *cached) {
    const fx_program *p = l->program;
    if (!p->n_kernel)
        return FX_OK;
    fx_kernel_source *sources = calloc((size_t)p->n_kernel, sizeof *sources);
    if (!sources)
        return fx_fail_oom(sizeof *sources * (size_t)p->n_kernel);
    for (int i = 0; i < p->n_kernel; i++)
        sources[i] = p->kernels[i].source;
    int found = 0;
    fx_status st = l->device->backend->kernels_create(l->device->open, p->n_kernel, sources, l->kernels, &found);
    *cached += found;
    free(sources);
    return st;
}

static fx_status load_constants(fx_loaded *l) {
    const fx_program *p = l->program;
    fx_device *d = l->device;
    uint64_t bytes = 0;
    for (int b = 0; b < p->n_buffer; b++)
        if (p->buffers[b].kind == FX_BUFFER_CONST) {
            l->constant_offset[b] = bytes;
            bytes += rounded(p->buffers[b].bytes);
        }
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_pool_alloc(&d->pool, bytes, FX_USE_ARENA, "constants", &l->constants));
    for (int b = 0; b < p->n_buffer; b++)
        if (p->buffers[b].kind == FX_BUFFER_CONST && p->buffers[b].bytes)
            FX_TRY(d->backend->upload(d->open, l->constants.mem, l->constants.offset + l->constant_offset[b], p->buffers[b].data,
                                      p->buffers[b].bytes, NULL));
    return FX_OK;
}

static fx_status load_arena(fx_loaded *l, const bool *donated) {
    fx_device *d = l->device;
    FX_TRY(fx_plan_create(l->program, donated, d->caps.max_allocation, &l->plan));
    int n = (int)((l->plan->bytes + l->plan->chunk - 1) / l->plan->chunk);
    l->arena = calloc((size_t)n + 1, sizeof *l->arena);
    if (!l->arena)
        return fx_fail_oom(sizeof *l->arena * (size_t)n);
    for (uint64_t left = l->plan->bytes; l->n_arena < n; l->n_arena++) {
        uint64_t bytes = left < l->plan->chunk ? left : l->plan->chunk;
        FX_TRY(fx_pool_alloc(&d->pool, bytes, FX_USE_ARENA, "intermediates", &l->arena[l->n_arena]));
        left -= bytes;
    }
    return FX_OK;
}

static fx_status load_bodies(fx_loaded *l, int *cached) {
    const fx_program *p = l->program;
    for (int i = 0; i < p->n_step; i++) {
        const fx_step *step = &p->steps[i];
        if (!step->n_body)
            continue;
        l->body[i] = calloc((size_t)step->n_body, sizeof *l->body[i]);
        if (!l->body[i])
            return fx_fail_oom(sizeof *l->body[i] * (size_t)step->n_body);
        for (int b = 0; b < step->n_body; b++) {
            FX_TRY(fx_loaded_create(l->device, step->body[b], NULL, cached, &l->body[i][b]));
            l->host_control |= l->body[i][b]->host_control;
        }
        l->host_control |= step->kind != FX_STEP_SCAN;
        uint64_t bytes = fx_loop_bytes(&l->device->caps, p, step);
        if (bytes)
            FX_TRY(fx_pool_alloc(&l->device->pool, bytes, FX_USE_ARENA, "a loop's state", &l->loop[i]));
    }
    return FX_OK;
}

fx_status fx_loaded_create(fx_device *d, fx_program *p, const bool *donated, int *cached, fx_loaded **out) {
    *out = NULL;
    fx_loaded *l = calloc(1, sizeof *l);
    if (!l)
        return fx_fail_oom(sizeof *l);
    l->device = d;
    l->program = p;
    l->kernels = calloc((size_t)p->n_kernel + 1, sizeof *l->kernels);
    l->body = calloc((size_t)p->n_step + 1, sizeof *l->body);
    l->loop = calloc((size_t)p->n_step + 1, sizeof *l->loop);
    l->constant_offset = calloc((size_t)p->n_buffer + 1, sizeof *l->constant_offset);
    fx_status st = l->kernels && l->body && l->loop && l->constant_offset ? FX_OK : fx_fail_oom(sizeof *l);
    if (st == FX_OK)
        st = load_kernels(l, cached);
    if (st == FX_OK)
        st = load_arena(l, donated);
    if (st == FX_OK)
        st = load_constants(l);
    if (st == FX_OK)
        st = load_bodies(l, cached);
    if (st == FX_OK)
        *out = l;
    else
        fx_loaded_destroy(l);
    return st;
}

static fx_binding of_piece(const fx_piece *piece, uint64_t offset, uint64_t bytes) {
    return (fx_binding){piece->mem, piece->offset + offset, bytes};
}

/* Where each buffer of the program is. */
static void locate(const fx_loaded *l, const fx_binding *params, const fx_binding *results, fx_binding *where) {
    const fx_program *p = l->program;
    for (int b = 0; b < p->n_buffer; b++) {
        const fx_buffer *buf = &p->buffers[b];
        if (buf->kind == FX_BUFFER_PARAM)
            where[b] = params[buf->index];
        else if (buf->kind == FX_BUFFER_CONST)
            where[b] = of_piece(&l->constants, l->constant_offset[b], buf->bytes);
        else if (l->plan->offset[b] != FX_PLAN_NONE)
            where[b] = of_piece(&l->arena[(uint64_t)l->plan->offset[b] / l->plan->chunk],
                                (uint64_t)l->plan->offset[b] % l->plan->chunk, buf->bytes);
    }
    for (int r = p->n_result - 1; r >= 0; r--) /* the first result that names a buffer is where it is made */
        if (p->buffers[p->results[r]].kind == FX_BUFFER_TEMP)
            where[p->results[r]] = results[r];
}

static fx_status emit_step(fx_stream *s, const fx_loaded *l, int i, const fx_binding *where, fx_binding *bind) {
    const fx_step *step = &l->program->steps[i];
    for (int a = 0; a < step->n_arg; a++) {
        bind[a] = where[step->args[a].buffer];
        bind[a].offset += (uint64_t)step->args[a].offset;
        bind[a].bytes -= (uint64_t)step->args[a].offset < bind[a].bytes ? (uint64_t)step->args[a].offset : bind[a].bytes;
    }
    switch (step->kind) {
    case FX_STEP_KERNEL: return fx_stream_dispatch(s, step, l->kernels[step->kernel], bind);
    case FX_STEP_COPY: return fx_stream_copy(s, &bind[0], &bind[1], step->bytes);
    case FX_STEP_FILL: return fx_stream_fill(s, &bind[0], step->bytes, step->word);
    default: return fx_stream_control(s, l, i, bind);
    }
}

fx_status fx_emit(fx_stream *s, const fx_loaded *l, const fx_binding *params, const fx_binding *results) {
    const fx_program *p = l->program;
    int most = 0;
    for (int i = 0; i < p->n_step; i++)
        most = p->steps[i].n_arg > most ? p->steps[i].n_arg : most;
    fx_binding *where = calloc((size_t)(p->n_buffer + most) + 1, sizeof *where);
    if (!where)
        return fx_fail_oom(sizeof *where * (size_t)p->n_buffer);
    locate(l, params, results, where);
    fx_status st = FX_OK;
    for (int i = 0; i < p->n_step && st == FX_OK; i++)
        st = emit_step(s, l, i, where, where + p->n_buffer);
    for (int r = 0; r < p->n_result && st == FX_OK; r++) /* parameters, constants and repeats as results */
        st = fx_stream_copy(s, &results[r], &where[p->results[r]], p->buffers[p->results[r]].bytes);
    free(where);
    return st;
}
