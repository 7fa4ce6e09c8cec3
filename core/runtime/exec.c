/* exec.c - executables: a program compiled for a device, its recordings by where inputs and outputs are,
 * and runs. A run with the addresses of an earlier one replays that recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/runtime/profile.h"
#include "core/runtime/runtime.h"

enum { RECORDINGS = 4, FROM_POOL = -1 };

typedef struct recording {
    fx_stream *stream;
    fx_binding *bind; /* parameters, then results */
    uint64_t used;    /* run in which it was last used */
} recording;

struct fx_exec {
    pthread_mutex_t lock;
    fx_device *device;
    fx_graph *graph;
    bool *donated;       /* per parameter */
    fx_program *program; /* NULL on the reference device */
    fx_loaded *loaded;
    int *source;         /* per result: donated parameter whose memory it gets, or FROM_POOL */
    recording recordings[RECORDINGS];
    fx_stream *host_stream; /* of the last run, when the host steers */
    uint64_t runs, ticket;
    fx_exec_stats_t stats;
};

void fx_exec_destroy(fx_exec *e) {
    if (!e)
        return;
    for (int i = 0; i < RECORDINGS; i++) {
        fx_stream_destroy(e->recordings[i].stream);
        free(e->recordings[i].bind);
    }
    fx_stream_destroy(e->host_stream);
    if (e->ticket)
        fx_wait(e);
    fx_loaded_destroy(e->loaded);
    fx_program_destroy(e->program);
    fx_graph_unref(e->graph);
    pthread_mutex_destroy(&e->lock);
    free(e->donated);
    free(e->source);
    free(e);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void count(const fx_program *p, fx_exec_stats_t *s) {
    s->distinct_kernels += p->n_kernel;
    for (int i = 0; i < p->n_step; i++) {
        const fx_step *step = &p->steps[i];
        s->kernels += step->kind == FX_STEP_KERNEL;
        s->copies += step->kind == FX_STEP_COPY || step->kind == FX_STEP_FILL;
        s->flops += step->flops;
        s->bytes_read += step->bytes_read;
        s->bytes_written += step->bytes_written;
        for (int b = 0; b < step->n_body; b++)
            count(step->body[b], s);
    }
    for (int b = 0; b < p->n_buffer; b++)
        if (p->buffers[b].kind == FX_BUFFER_CONST)
            s->constant_bytes += p->buffers[b].bytes;
}

static uint64_t arena_bytes(const fx_loaded *l) {
    uint64_t n = l->plan->bytes;
    for (int i = 0; i < l->program->n_step; i++) {
        n += l->loop[i].bytes;
        for (int b = 0; b < l->program->steps[i].n_body; b++)
            n += arena_bytes(l->body[i][b]);
    }
    return n;
}

/* Which donated parameter's memory each result gets. */
static void give(fx_exec *e) {
    const fx_program *p = e->program;
    for (int r = 0; r < p->n_result; r++) {
        const fx_buffer *b = &p->buffers[p->results[r]];
        e->source[r] = e->loaded->plan->donor[r];
        if (b->kind == FX_BUFFER_PARAM && e->donated[b->index]) { /* passed through: the first such result keeps it */
            bool free_yet = true;
            for (int q = 0; q < r; q++)
                free_yet &= e->source[q] != b->index;
            e->source[r] = free_yet ? b->index : FROM_POOL;
        }
    }
}

static fx_status compile(fx_exec *e, const fx_lower_options *lower) {
    fx_device *d = e->device;
    double start = seconds();
    uint64_t began = fx_profile_now();
    int cached = 0;
    FX_TRY(fx_program_create(e->graph, &d->caps, lower, &e->program));
    if (fx_env_has(FX_ENV_dump, "program")) {
        char *text = fx_program_print(e->program);
        fprintf(stderr, "%s", text ? text : "");
        free(text);
    }
    FX_TRY(fx_loaded_create(d, e->program, e->donated, &cached, &e->loaded));
    give(e);
    count(e->program, &e->stats);
    e->stats.arena_bytes = arena_bytes(e->loaded);
    e->stats.cached_kernels = cached;
    for (int i = 0; i < e->graph->n_param; i++)
        e->stats.argument_bytes += fx_device_bytes(&e->graph->params[i]->spec, &d->caps);
    for (int r = 0; r < e->graph->n_result; r++)
        e->stats.result_bytes += fx_device_bytes(&e->graph->results[r]->spec, &d->caps);
    e->stats.compile_seconds = seconds() - start;
    fx_profile_host("compile", began);
    if (fx_env_has(FX_ENV_dump, "stats"))
        fprintf(stderr, "%d kernels (%d distinct), %d copies, %.3f GFLOP, %.1f MiB read, %.1f MiB written, arena %.1f MiB, %.3f s\n",
                e->stats.kernels, e->stats.distinct_kernels, e->stats.copies, (double)e->stats.flops * 1e-9,
                (double)e->stats.bytes_read / 1048576, (double)e->stats.bytes_written / 1048576,
                (double)e->stats.arena_bytes / 1048576, e->stats.compile_seconds);
    return FX_OK;
}

fx_status fx_compile(const fx_func *f, fx_device *d, const fx_compile_options *options, fx_exec **out) {
    static const fx_compile_options defaults = FX_COMPILE_OPTIONS_INIT;
    const fx_compile_options *opt = options ? options : &defaults;
    if (out)
        *out = NULL;
    if (!f || !out || opt->struct_size != sizeof *opt)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_compile; expected a function, a place for the result and FX_COMPILE_OPTIONS_INIT; got %s",
                       !f ? "no function" : !out ? "no place" : "options of another version");
    fx_lower_options lower = {.no_fusion = opt->no_fusion};
    return fx_compile_lowered(f, d, opt->n_donate, opt->donate, &lower, out);
}

fx_status fx_compile_lowered(const fx_func *f, fx_device *d, int n_donate, const int *donate, const fx_lower_options *lower,
                             fx_exec **out) {
    *out = NULL;
    FX_TRY(fx_device_open(d));
    const fx_graph *g = (const fx_graph *)f;
    if (n_donate < 0 || (n_donate && !donate))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_compile: donate; expected a list of n_donate inputs; got %d and %s", n_donate,
                       donate ? "a list" : "NULL");
    for (int i = 0; i < n_donate; i++)
        if (donate[i] < 0 || donate[i] >= g->n_param)
            return fx_fail(FX_INVALID_ARGUMENT, "fx_compile: donate[%d]; expected 0 to %d; got %d", i, g->n_param - 1, donate[i]);
    fx_exec *e = calloc(1, sizeof *e);
    if (!e || pthread_mutex_init(&e->lock, NULL)) {
        free(e);
        return fx_fail_oom(sizeof *e);
    }
    e->device = d;
    e->graph = fx_graph_ref((fx_graph *)(uintptr_t)g);
    e->donated = calloc((size_t)g->n_param + 1, sizeof *e->donated);
    e->source = calloc((size_t)g->n_result + 1, sizeof *e->source);
    fx_status st = e->donated && e->source ? FX_OK : fx_fail_oom(sizeof *e);
    for (int i = 0; st == FX_OK && i < n_donate; i++)
        e->donated[donate[i]] = true;
    if (st == FX_OK && d->backend)
        st = compile(e, lower);
    if (st == FX_OK)
        *out = e;
    else
        fx_exec_destroy(e);
    return st;
}

static fx_status check_inputs(const fx_exec *e, fx_array *const *inputs) {
    char a[128], b[128];
    for (int i = 0; i < e->graph->n_param; i++) {
        const fx_spec *want = &e->graph->params[i]->spec;
        if (!inputs || !inputs[i])
            return fx_fail(FX_INVALID_ARGUMENT, "fx_run: input %d; expected %s; got NULL", i, fx_spec_format(want, a, sizeof a));
        if (inputs[i]->device != e->device)
            return fx_fail(FX_INVALID_ARGUMENT, "fx_run: input %d; expected an array on %s; got one on %s; copy it with fx_array_to", i,
                           e->device->uri, inputs[i]->device->uri);
        if (!fx_spec_equal(&inputs[i]->spec, want))
            return fx_fail(FX_INVALID_ARGUMENT, "fx_run: input %d; expected %s; got %s", i, fx_spec_format(want, a, sizeof a),
                           fx_spec_format(&inputs[i]->spec, b, sizeof b));
    }
    return FX_OK;
}

/* A run consumes one reference for each place that an array is donated in: the caller must have that many. */
static fx_status check_donated(const fx_exec *e, fx_array *const *inputs) {
    for (int i = 0; i < e->graph->n_param; i++) {
        int times = 1;
        for (int j = 0; e->donated[i] && j < i; j++)
            times += e->donated[j] && inputs[j] == inputs[i];
        if (times > 1 && times > atomic_load(&inputs[i]->refs))
            return fx_fail(FX_INVALID_ARGUMENT,
                           "fx_run: input %d; expected an array of its own, since it is donated; got one that is donated %d "
                           "times and has fewer references; copy it, or take references with fx_array_ref",
                           i, times);
    }
    return FX_OK;
}

static fx_binding binding_of(const fx_array *a) { return (fx_binding){a->piece.mem, a->piece.offset, a->bytes}; }

/* May this run overwrite input i? Not when somebody else holds the array, or it is passed twice. */
static bool exclusive(const fx_exec *e, fx_array *const *inputs, int i) {
    for (int j = 0; j < e->graph->n_param; j++)
        if (j != i && inputs[j] == inputs[i])
            return false;
    return atomic_load(&inputs[i]->refs) == 1;
}

static fx_status find_recording(fx_exec *e, const fx_binding *bind, int n_bind, fx_stream **out) {
    recording *oldest = &e->recordings[0];
    for (int i = 0; i < RECORDINGS; i++) {
        recording *r = &e->recordings[i];
        if (r->stream && !memcmp(r->bind, bind, sizeof *bind * (size_t)n_bind)) {
            r->used = e->runs;
            *out = r->stream;
            return FX_OK;
        }
        if (!r->stream || (oldest->stream && r->used < oldest->used))
            oldest = r;
    }
    fx_stream_destroy(oldest->stream);
    free(oldest->bind);
    memset(oldest, 0, sizeof *oldest);
    oldest->bind = malloc(sizeof *bind * (size_t)(n_bind + 1));
    if (!oldest->bind)
        return fx_fail_oom(sizeof *bind * (size_t)n_bind);
    memcpy(oldest->bind, bind, sizeof *bind * (size_t)n_bind);
    fx_status st = fx_stream_create(e->device, &oldest->stream);
    if (st == FX_OK)
        st = fx_emit(oldest->stream, e->loaded, bind, bind + e->graph->n_param);
    if (st == FX_OK)
        st = fx_stream_end(oldest->stream);
    if (st != FX_OK) {
        fx_stream_destroy(oldest->stream);
        free(oldest->bind);
        memset(oldest, 0, sizeof *oldest);
        return st;
    }
    oldest->used = e->runs;
    *out = oldest->stream;
    return FX_OK;
}

/* Copies donated inputs that must not be overwritten, on the device. */
static fx_status copy_inputs(fx_exec *e, const fx_binding *to, const fx_binding *from, int n) {
    fx_stream *s;
    FX_TRY(fx_stream_create(e->device, &s));
    fx_status st = FX_OK;
    for (int i = 0; i < n && st == FX_OK; i++)
        st = fx_stream_copy(s, &to[i], &from[i], from[i].bytes);
    if (st == FX_OK)
        st = fx_stream_flush(s);
    fx_stream_destroy(s);
    return st;
}

static fx_status submit(fx_exec *e, const fx_binding *bind, int n_bind) {
    if (!e->loaded->host_control) {
        fx_stream *s = NULL;
        FX_TRY(find_recording(e, bind, n_bind, &s));
        return fx_stream_submit(s, &e->ticket);
    }
    fx_stream_destroy(e->host_stream);
    e->host_stream = NULL;
    FX_TRY(fx_stream_create(e->device, &e->host_stream));
    FX_TRY(fx_emit(e->host_stream, e->loaded, bind, bind + e->graph->n_param));
    FX_TRY(fx_stream_end(e->host_stream));
    return fx_stream_submit(e->host_stream, &e->ticket);
}

/* A run on a device. An output that takes over an input's memory is that array; fx_run drops the input's reference. */
static fx_status run(fx_exec *e, fx_array *const *inputs, fx_array **outputs) {
    const fx_graph *g = e->graph;
    int n_in = g->n_param, n_out = g->n_result, n_copy = 0;
    fx_binding *bind = calloc((size_t)(n_in + n_out) * 3 + 1, sizeof *bind);
    if (!bind)
        return fx_fail_oom(sizeof *bind * (size_t)(n_in + n_out));
    fx_binding *to = bind + n_in + n_out, *from = to + n_in + n_out;
    fx_status st = FX_OK;
    for (int i = 0; i < n_in; i++)
        bind[i] = binding_of(inputs[i]);
    for (int r = 0; r < n_out && st == FX_OK; r++) {
        int source = e->source[r];
        if (source >= 0 && exclusive(e, inputs, source)) {
            outputs[r] = fx_array_ref(inputs[source]);
        } else {
            st = fx_array_new(e->device, &g->results[r]->spec, false, &outputs[r]);
            if (st == FX_OK && source >= 0) { /* the program writes in place: on a copy */
                to[n_copy] = binding_of(outputs[r]);
                from[n_copy++] = bind[source];
                bind[source] = to[n_copy - 1];
            }
        }
        if (st == FX_OK)
            bind[n_in + r] = binding_of(outputs[r]);
    }
    if (st == FX_OK && n_copy)
        st = copy_inputs(e, to, from, n_copy);
    if (st == FX_OK)
        st = submit(e, bind, n_in + n_out);
    free(bind);
    return st;
}

static fx_status run_reference(fx_exec *e, fx_array *const *inputs, fx_array **outputs) {
    const fx_graph *g = e->graph;
    const void **in = calloc((size_t)(g->n_param + g->n_result) + 1, sizeof *in);
    if (!in)
        return fx_fail_oom(sizeof *in * (size_t)g->n_param);
    void **out = (void **)(in + g->n_param);
    fx_status st = FX_OK;
    for (int i = 0; i < g->n_param; i++)
        in[i] = inputs[i]->host;
    for (int r = 0; r < g->n_result && st == FX_OK; r++) {
        st = fx_array_new(e->device, &g->results[r]->spec, false, &outputs[r]);
        out[r] = st == FX_OK ? outputs[r]->host : NULL;
    }
    if (st == FX_OK)
        st = fx_graph_eval(g, in, out);
    free(in);
    return st;
}

fx_status fx_run(fx_exec *e, fx_array *const *inputs, fx_array **outputs) {
    if (!e || (!outputs && e->graph->n_result))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_run: %s is NULL", e ? "outputs" : "the executable");
    FX_TRY(check_inputs(e, inputs));
    FX_TRY(check_donated(e, inputs));
    const fx_graph *g = e->graph;
    for (int r = 0; r < g->n_result; r++)
        outputs[r] = NULL;
    uint64_t began = fx_profile_now();
    pthread_mutex_lock(&e->lock);
    e->runs++;
    fx_status st = e->device->backend ? run(e, inputs, outputs) : run_reference(e, inputs, outputs);
    pthread_mutex_unlock(&e->lock);
    fx_profile_host("run", began);
    for (int r = 0; r < g->n_result && st != FX_OK; r++) {
        fx_array_unref(outputs[r]);
        outputs[r] = NULL;
    }
    for (int i = 0; i < g->n_param && st == FX_OK; i++)
        if (e->donated[i])
            fx_array_unref(inputs[i]);
    return st;
}

fx_status fx_wait(fx_exec *e) {
    bool done;
    if (!e)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_wait: the executable is NULL");
    pthread_mutex_lock(&e->lock);
    uint64_t ticket = e->ticket;
    pthread_mutex_unlock(&e->lock);
    return e->device->backend && ticket ? e->device->backend->wait(e->device->open, ticket, UINT64_MAX, &done) : FX_OK;
}

fx_status fx_exec_stats(const fx_exec *e, fx_exec_stats_t *out) {
    if (!e || !out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_exec_stats: %s is NULL", e ? "the result" : "the executable");
    *out = e->stats;
    return FX_OK;
}

char *fx_exec_describe(const fx_exec *e) {
    if (!e)
        return NULL;
    return e->program ? fx_program_print(e->program) : fx_graph_print(e->graph);
}
