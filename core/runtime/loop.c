/* loop.c - control flow on a stream. scan is unrolled into the recording, its carry going back and forth
 * between two copies; cond and while stop the recording to look at a scalar. Slices that don't start at a
 * multiple of 16 bytes go through an aligned slot, since kernels may rely on alignment. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/runtime/runtime.h"

enum { ALIGN = 256, SLICE_ALIGN = 16 };

static uint64_t rounded(uint64_t bytes) { return bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN; }

/* Bytes of one slice along dimension 0, not rounded: slices lie side by side. */
static uint64_t slice_bytes(const fx_device_caps *caps, const fx_spec *s) {
    fx_spec one = *s;
    uint64_t element = s->dtype == FX_BOOL && caps->bool_is_word ? 4 : fx_dtype_size(s->dtype);
    one.dims[0] = 1;
    return (uint64_t)fx_spec_count(&one) * element;
}

static const fx_buffer *arg_buffer(const fx_program *p, const fx_step *step, int a) { return &p->buffers[step->args[a].buffer]; }

/* First argument that is a result. */
static int first_result(const fx_step *step) { return step->n_arg - step->n_results; }

uint64_t fx_loop_bytes(const fx_device_caps *caps, const fx_program *p, const fx_step *step) {
    uint64_t bytes = 0;
    int carry = step->kind == FX_STEP_SCAN ? step->n_consts : 0;
    if (step->kind == FX_STEP_COND)
        return 0;
    for (int k = 0; k < step->n_carry; k++)
        bytes += 2 * rounded(arg_buffer(p, step, carry + k)->bytes);
    if (step->kind == FX_STEP_WHILE)
        return bytes + ALIGN; /* the predicate */
    for (int k = 0; k < step->n_xs; k++)
        bytes += rounded(slice_bytes(caps, &arg_buffer(p, step, carry + step->n_carry + k)->spec));
    for (int k = step->n_carry; k < step->n_results; k++)
        bytes += rounded(slice_bytes(caps, &arg_buffer(p, step, first_result(step) + k)->spec));
    return bytes;
}

/* The next piece of a step's loop memory. */
static fx_binding take(const fx_piece *loop, uint64_t *at, uint64_t bytes) {
    fx_binding b = {loop->mem, loop->offset + *at, bytes};
    *at += rounded(bytes);
    return b;
}

/* Reads a scalar of up to 4 bytes that the stream makes. */
static fx_status look(fx_stream *s, const fx_loaded *l, const fx_binding *b, uint32_t bytes, int32_t *out) {
    uint8_t raw[4] = {0};
    FX_TRY(fx_stream_flush(s));
    FX_TRY(l->device->backend->download(l->device->open, b->mem, b->offset, raw, bytes));
    memcpy(out, raw, 4);
    return FX_OK;
}

static fx_status emit_cond(fx_stream *s, const fx_loaded *l, int i, const fx_binding *bind) {
    const fx_step *step = &l->program->steps[i];
    int32_t index;
    FX_TRY(look(s, l, &bind[0], 4, &index));
    index = index < 0 ? 0 : index >= step->n_body ? step->n_body - 1 : index;
    return fx_emit(s, l->body[i][index], bind + 1, bind + first_result(step));
}

static fx_status emit_while(fx_stream *s, const fx_loaded *l, int i, const fx_binding *bind, fx_binding *params,
                            fx_binding *copies) {
    const fx_step *step = &l->program->steps[i];
    int n = step->n_carry, n_param = first_result(step);
    uint64_t at = 0;
    memcpy(params, bind, sizeof *params * (size_t)n_param);
    for (int k = 0; k < 2 * n; k++)
        copies[k] = take(&l->loop[i], &at, bind[k % n].bytes);
    fx_binding predicate = take(&l->loop[i], &at, 4);
    uint32_t bool_bytes = l->device->caps.bool_is_word ? 4 : 1;
    for (int turn = 0;; turn = !turn) {
        int32_t go;
        FX_TRY(fx_emit(s, l->body[i][0], params, &predicate));
        FX_TRY(look(s, l, &predicate, bool_bytes, &go));
        if (!go)
            break;
        FX_TRY(fx_emit(s, l->body[i][1], params, copies + turn * n));
        memcpy(params, copies + turn * n, sizeof *params * (size_t)n);
    }
    for (int k = 0; k < n; k++)
        FX_TRY(fx_stream_copy(s, &bind[n_param + k], &params[k], bind[n_param + k].bytes));
    return FX_OK;
}

/* A scan's memory while it is emitted; arrays live in one allocation. */
typedef struct scan {
    fx_binding *params, *results, *copies, *x_slot, *y_slot;
    int turn;
} scan;

static fx_status emit_turn(fx_stream *s, const fx_loaded *l, int i, const fx_binding *bind, scan *c, int64_t t) {
    const fx_program *p = l->program;
    const fx_step *step = &p->steps[i];
    const fx_device_caps *caps = &l->device->caps;
    int x0 = step->n_consts + step->n_carry, r0 = first_result(step), n_y = step->n_results - step->n_carry;
    uint64_t slice = (uint64_t)(step->reverse ? step->length - 1 - t : t);
    for (int k = 0; k < step->n_xs; k++) {
        uint64_t bytes = slice_bytes(caps, &arg_buffer(p, step, x0 + k)->spec);
        fx_binding from = {bind[x0 + k].mem, bind[x0 + k].offset + slice * bytes, bytes};
        c->params[x0 + k] = bytes % SLICE_ALIGN ? c->x_slot[k] : from;
        if (bytes % SLICE_ALIGN)
            FX_TRY(fx_stream_copy(s, &c->x_slot[k], &from, bytes));
    }
    bool last = t + 1 == step->length;
    for (int k = 0; k < step->n_carry; k++)
        c->results[k] = last ? bind[r0 + k] : c->copies[c->turn * step->n_carry + k];
    for (int k = 0; k < n_y; k++) {
        uint64_t bytes = slice_bytes(caps, &arg_buffer(p, step, r0 + step->n_carry + k)->spec);
        const fx_binding *y = &bind[r0 + step->n_carry + k];
        c->results[step->n_carry + k] =
            bytes % SLICE_ALIGN ? c->y_slot[k] : (fx_binding){y->mem, y->offset + slice * bytes, bytes};
    }
    FX_TRY(fx_emit(s, l->body[i][0], c->params, c->results));
    for (int k = 0; k < n_y; k++) {
        uint64_t bytes = slice_bytes(caps, &arg_buffer(p, step, r0 + step->n_carry + k)->spec);
        const fx_binding *y = &bind[r0 + step->n_carry + k];
        fx_binding to = {y->mem, y->offset + slice * bytes, bytes};
        if (bytes % SLICE_ALIGN)
            FX_TRY(fx_stream_copy(s, &to, &c->y_slot[k], bytes));
    }
    memcpy(c->params + step->n_consts, c->results, sizeof *c->results * (size_t)step->n_carry);
    c->turn = !c->turn;
    return FX_OK;
}

static fx_status emit_scan(fx_stream *s, const fx_loaded *l, int i, const fx_binding *bind, fx_binding *memory) {
    const fx_program *p = l->program;
    const fx_step *step = &p->steps[i];
    int n_param = first_result(step), r0 = n_param, x0 = step->n_consts + step->n_carry, n = step->n_carry;
    scan c = {memory, memory + n_param, memory + n_param + step->n_results, NULL, NULL, 0};
    uint64_t at = 0;
    c.x_slot = c.copies + 2 * n;
    c.y_slot = c.x_slot + step->n_xs;
    memcpy(c.params, bind, sizeof *bind * (size_t)n_param);
    if (step->length == 0) {
        for (int k = 0; k < n; k++)
            FX_TRY(fx_stream_copy(s, &bind[r0 + k], &bind[step->n_consts + k], bind[r0 + k].bytes));
        return FX_OK;
    }
    for (int k = 0; k < 2 * n; k++)
        c.copies[k] = take(&l->loop[i], &at, bind[step->n_consts + k % n].bytes);
    for (int k = 0; k < step->n_xs; k++)
        c.x_slot[k] = take(&l->loop[i], &at, slice_bytes(&l->device->caps, &arg_buffer(p, step, x0 + k)->spec));
    for (int k = 0; k < step->n_results - n; k++)
        c.y_slot[k] = take(&l->loop[i], &at, slice_bytes(&l->device->caps, &arg_buffer(p, step, r0 + n + k)->spec));
    for (int64_t t = 0; t < step->length; t++)
        FX_TRY(emit_turn(s, l, i, bind, &c, t));
    return FX_OK;
}

fx_status fx_stream_control(fx_stream *s, const fx_loaded *l, int i, const fx_binding *bind) {
    const fx_step *step = &l->program->steps[i];
    if (step->kind == FX_STEP_COND)
        return emit_cond(s, l, i, bind);
    size_t n = (size_t)(step->n_arg + 2 * step->n_carry + step->n_xs + step->n_results) + 1;
    fx_binding *memory = calloc(n, sizeof *memory);
    if (!memory)
        return fx_fail_oom(sizeof *memory * n);
    fx_status st = step->kind == FX_STEP_WHILE ? emit_while(s, l, i, bind, memory, memory + step->n_arg)
                                               : emit_scan(s, l, i, bind, memory);
    free(memory);
    return st;
}
