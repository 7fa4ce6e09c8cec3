/* stream.c - recording: command lists cut by a budget of work, barriers where ranges of memory conflict. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/runtime/profile.h"
#include "core/runtime/runtime.h"

typedef struct span {
    uint64_t begin, end;
    unsigned access;
} span;

/* While tracing: the names of a list's steps. A list then has one timestamp more than names. */
typedef struct marks {
    const char **names; /* borrowed from programs */
    int n, cap;
} marks;

struct fx_stream {
    fx_device *d;
    fx_cmds **lists;
    marks *marks, open_marks; /* parallel to lists; of the open list */
    bool traced;
    int n, cap, n_flushed;
    fx_cmds *open;
    int64_t work, budget; /* FLOPs and bytes in the open list; where it is cut */
    span *spans;          /* touched since the last barrier */
    int n_span, cap_span;
};

fx_status fx_stream_create(fx_device *d, fx_stream **out) {
    fx_stream *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return fx_fail_oom(sizeof *s);
    s->d = d;
    s->traced = fx_profile_on() && d->caps.has_timestamps && d->backend->cmds_timestamp;
    /* about a quarter of a second on a slow device of the kind: far below any watchdog */
    s->budget = d->info.kind == FX_DEVICE_DISCRETE_GPU ? (int64_t)500e9 : d->info.kind == FX_DEVICE_SOFTWARE ? (int64_t)10e9 : (int64_t)50e9;
    return FX_OK;
}

void fx_stream_destroy(fx_stream *s) {
    if (!s)
        return;
    const fx_backend *b = s->d->backend;
    if (s->open)
        b->cmds_destroy(s->open);
    for (int i = 0; i < s->n; i++) {
        b->cmds_destroy(s->lists[i]);
        free(s->marks[i].names);
    }
    free(s->open_marks.names);
    free(s->marks);
    free(s->lists);
    free(s->spans);
    free(s);
}

fx_status fx_stream_end(fx_stream *s) {
    if (!s->open)
        return FX_OK;
    if (s->n == s->cap) {
        int cap = s->cap ? 2 * s->cap : 8;
        fx_cmds **lists = realloc(s->lists, sizeof *lists * (size_t)cap);
        if (!lists)
            return fx_fail_oom(sizeof *lists * (size_t)cap);
        s->lists = lists;
        marks *m = realloc(s->marks, sizeof *m * (size_t)cap);
        if (!m)
            return fx_fail_oom(sizeof *m * (size_t)cap);
        s->marks = m;
        s->cap = cap;
    }
    FX_TRY(s->d->backend->cmds_end(s->open));
    s->marks[s->n] = s->open_marks;
    s->lists[s->n++] = s->open;
    s->open_marks = (marks){NULL, 0, 0};
    s->open = NULL;
    s->n_span = 0; /* a list starts with a barrier */
    s->work = 0;
    return FX_OK;
}

static fx_status begin(fx_stream *s, int64_t work) {
    if (s->open && s->work + work > s->budget)
        FX_TRY(fx_stream_end(s));
    if (!s->open) {
        FX_TRY(s->d->backend->cmds_begin(s->d->open, &s->open));
        if (s->traced)
            FX_TRY(s->d->backend->cmds_timestamp(s->open));
    }
    s->work += work;
    return FX_OK;
}

/* Ends a traced step: nothing else runs until it has finished, and the instant is taken. */
static fx_status mark(fx_stream *s, const char *name) {
    if (!s->traced)
        return FX_OK;
    marks *m = &s->open_marks;
    if (m->n == m->cap) {
        int cap = m->cap ? 2 * m->cap : 64;
        const char **names = realloc(m->names, sizeof *names * (size_t)cap);
        if (!names)
            return fx_fail_oom(sizeof *names * (size_t)cap);
        m->names = names;
        m->cap = cap;
    }
    FX_TRY(s->d->backend->cmds_barrier(s->open));
    s->n_span = 0;
    m->names[m->n++] = name;
    return s->d->backend->cmds_timestamp(s->open);
}

/* Reads the instants of the lists from..n that `ticket` stands for. */
static fx_status trace(fx_stream *s, int from, uint64_t ticket) {
    bool done;
    FX_TRY(s->d->backend->wait(s->d->open, ticket, UINT64_MAX, &done));
    for (int i = from; i < s->n; i++) {
        int n = s->marks[i].n, count = 0;
        uint64_t *instants = malloc(sizeof *instants * (size_t)(n + 1));
        if (!instants)
            return fx_fail_oom(sizeof *instants * (size_t)n);
        fx_status st = s->d->backend->cmds_read_timestamps(s->lists[i], instants, n + 1, &count);
        if (st == FX_OK && count == n + 1)
            fx_profile_device(s->d, n, s->marks[i].names, instants);
        free(instants);
        FX_TRY(st);
    }
    return FX_OK;
}

static span span_of(const fx_binding *b, uint64_t bytes, unsigned access) {
    uint64_t begin = b->mem->address + b->offset;
    return (span){begin, begin + bytes, access};
}

/* A barrier when one of the new spans conflicts with an old one; then remembers them. */
static fx_status order(fx_stream *s, int n, const span *fresh) {
    bool conflict = false;
    for (int i = 0; i < n && !conflict; i++)
        for (int j = 0; j < s->n_span && !conflict; j++)
            conflict = ((fresh[i].access | s->spans[j].access) & FX_WRITE) && fresh[i].begin < s->spans[j].end &&
                       s->spans[j].begin < fresh[i].end;
    if (conflict) {
        FX_TRY(s->d->backend->cmds_barrier(s->open));
        s->n_span = 0;
    }
    if (s->n_span + n > s->cap_span) {
        int cap = 2 * (s->n_span + n);
        span *spans = realloc(s->spans, sizeof *spans * (size_t)cap);
        if (!spans)
            return fx_fail_oom(sizeof *spans * (size_t)cap);
        s->spans = spans;
        s->cap_span = cap;
    }
    memcpy(s->spans + s->n_span, fresh, sizeof *fresh * (size_t)n);
    s->n_span += n;
    return FX_OK;
}

fx_status fx_stream_dispatch(fx_stream *s, const fx_step *step, fx_kernel *k, const fx_binding *args) {
    if (!step->groups[0] || !step->groups[1] || !step->groups[2])
        return FX_OK;
    span few[32], *spans = step->n_arg <= 32 ? few : malloc(sizeof *spans * (size_t)step->n_arg);
    uint64_t few_words[32], *words = step->n_arg <= 32 ? few_words : malloc(sizeof *words * (size_t)step->n_arg);
    fx_status st = spans && words ? FX_OK : fx_fail_oom(sizeof *spans * (size_t)step->n_arg);
    for (int i = 0; i < step->n_arg && st == FX_OK; i++) {
        spans[i] = span_of(&args[i], args[i].bytes, step->args[i].access);
        words[i] = spans[i].begin;
    }
    if (st == FX_OK)
        st = begin(s, step->flops + step->bytes_read + step->bytes_written);
    if (st == FX_OK)
        st = order(s, step->n_arg, spans);
    if (st == FX_OK && s->d->backend->cmds_label)
        st = s->d->backend->cmds_label(s->open, step->name);
    if (st == FX_OK)
        st = s->d->backend->cmds_dispatch(s->open, k, words, (uint32_t)step->n_arg, step->groups);
    if (st == FX_OK)
        st = mark(s, step->name);
    if (spans != few)
        free(spans);
    if (words != few_words)
        free(words);
    return st;
}

fx_status fx_stream_copy(fx_stream *s, const fx_binding *dst, const fx_binding *src, uint64_t bytes) {
    if (!bytes || (dst->mem == src->mem && dst->offset == src->offset))
        return FX_OK;
    span spans[] = {span_of(dst, bytes, FX_WRITE), span_of(src, bytes, FX_READ)};
    FX_TRY(begin(s, (int64_t)bytes));
    FX_TRY(order(s, 2, spans));
    FX_TRY(s->d->backend->cmds_copy(s->open, dst->mem, dst->offset, src->mem, src->offset, bytes));
    return mark(s, "copy");
}

fx_status fx_stream_fill(fx_stream *s, const fx_binding *dst, uint64_t bytes, uint32_t word) {
    if (!bytes)
        return FX_OK;
    span one = span_of(dst, bytes, FX_WRITE);
    FX_TRY(begin(s, (int64_t)bytes));
    FX_TRY(order(s, 1, &one));
    FX_TRY(s->d->backend->cmds_fill(s->open, dst->mem, dst->offset, bytes, word));
    return mark(s, "fill");
}

fx_status fx_stream_submit(fx_stream *s, uint64_t *ticket) {
    int from = s->n_flushed;
    FX_TRY(s->d->backend->submit(s->d->open, s->n - from, s->lists + from, ticket));
    return s->traced ? trace(s, from, *ticket) : FX_OK;
}

fx_status fx_stream_flush(fx_stream *s) {
    uint64_t ticket;
    bool done;
    FX_TRY(fx_stream_end(s));
    FX_TRY(fx_stream_submit(s, &ticket));
    s->n_flushed = s->n;
    return s->d->backend->wait(s->d->open, ticket, UINT64_MAX, &done);
}
