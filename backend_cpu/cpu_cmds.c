/* cpu_cmds.c - recorded commands and their execution.
 *
 * Commands run one after another, each finished before the next begins, which is more than a barrier asks for. Arguments
 * lie in one array of the list. Copies and fills of many bytes are dispatches too, of a function of ours. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/cpu.h"

enum { PIECE = 256 << 10 /* bytes of a copy or fill that one thread takes */ };

typedef enum cmd_kind { CMD_DISPATCH, CMD_COPY, CMD_FILL, CMD_TIMESTAMP } cmd_kind;

typedef struct cmd {
    cmd_kind kind;
    uint32_t groups[3], total;
    fx_kernel *kernel;
    size_t args; /* index; of copies: destination, source, bytes; of fills: destination, word, bytes */
} cmd;

struct fx_cmds {
    fx_bdevice *device;
    cmd *cmds;
    uint64_t *args, *stamps;
    size_t n_cmds, room_cmds, n_args, room_args, n_stamps;
    float copy_ns, fill_ns; /* of a piece */
    uint64_t ticket;        /* of the last submission; written under the queue's lock */
    bool ended;
};

static fx_status no_memory(void) {
    return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for a command list; free memory");
}

fx_status fx_cpu_cmds_begin(fx_bdevice *d, fx_cmds **out) {
    fx_cmds *c = calloc(1, sizeof *c);
    *out = c;
    if (!c)
        return no_memory();
    c->device = d;
    return FX_OK;
}

/* Makes room for one command and n arguments. */
static fx_status grow(fx_cmds *c, size_t n, const char *what) {
    if (c->ended)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "%s: the command list was ended already; begin a new one", what);
    if (c->n_cmds == c->room_cmds) {
        size_t room = c->room_cmds ? c->room_cmds * 2 : 32;
        cmd *more = realloc(c->cmds, room * sizeof *more);
        if (!more)
            return no_memory();
        c->cmds = more;
        c->room_cmds = room;
    }
    if (c->room_args - c->n_args < n) {
        size_t room = (c->room_args + n) * 2 + 64;
        uint64_t *more = realloc(c->args, room * sizeof *more);
        if (!more)
            return no_memory();
        c->args = more;
        c->room_args = room;
    }
    return FX_OK;
}

static void append(fx_cmds *c, cmd command, const uint64_t *args, size_t n) {
    command.args = c->n_args;
    if (n)
        memcpy(c->args + c->n_args, args, n * sizeof *args);
    c->n_args += n;
    c->cmds[c->n_cmds++] = command;
}

fx_status fx_cpu_cmds_dispatch(fx_cmds *c, fx_kernel *k, const uint64_t *args, uint32_t n_args, const uint32_t groups[3]) {
    const uint32_t *most = c->device->caps.max_groups;
    uint64_t plane = (uint64_t)groups[0] * groups[1], total = plane * groups[2];
    if (n_args != k->n_args)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "dispatch of %s: arguments; expected %" PRIu32 "; got %" PRIu32, k->name,
                               k->n_args, n_args);
    if (groups[0] > most[0] || groups[1] > most[1] || groups[2] > most[2] || plane > UINT32_MAX || total > UINT32_MAX)
        return fx_backend_fail(FX_UNSUPPORTED,
                               "dispatch of %s: %" PRIu32 " x %" PRIu32 " x %" PRIu32 " workgroups; this device takes %" PRIu32
                               " x %" PRIu32 " x %" PRIu32 ", together below 2^32",
                               k->name, groups[0], groups[1], groups[2], most[0], most[1], most[2]);
    FX_TRY(grow(c, n_args, "dispatch"));
    if (total)
        append(c, (cmd){.kind = CMD_DISPATCH, .groups = {groups[0], groups[1], groups[2]}, .total = (uint32_t)total, .kernel = k},
               args, n_args);
    return FX_OK;
}

/* Appends a command on bytes, a piece a workgroup. */
static void append_pieces(fx_cmds *c, cmd_kind kind, const uint64_t args[3]) {
    uint64_t pieces = (args[2] + PIECE - 1) / PIECE;
    append(c, (cmd){.kind = kind, .groups = {1, 1, 1}, .total = pieces > UINT32_MAX ? UINT32_MAX : (uint32_t)pieces}, args, 3);
}

static uint64_t address(const fx_mem *mem, uint64_t offset) { return (uint64_t)(uintptr_t)mem->handle + offset; }

fx_status fx_cpu_cmds_copy(fx_cmds *c, const fx_mem *dst, uint64_t dst_offset, const fx_mem *src, uint64_t src_offset,
                           uint64_t bytes) {
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_backend_range_check(dst, dst_offset, bytes, "copy, destination"));
    FX_TRY(fx_backend_range_check(src, src_offset, bytes, "copy, source"));
    uint64_t to = address(dst, dst_offset), from = address(src, src_offset);
    if (to < from + bytes && from < to + bytes)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "copy: source and destination overlap; copy through another array");
    FX_TRY(grow(c, 3, "copy"));
    append_pieces(c, CMD_COPY, (uint64_t[3]){to, from, bytes});
    return FX_OK;
}

fx_status fx_cpu_cmds_fill(fx_cmds *c, const fx_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word) {
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "fill"));
    if (offset % 4 || bytes % 4)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "fill: %" PRIu64 " bytes at %" PRIu64 "; expected multiples of 4", bytes, offset);
    FX_TRY(grow(c, 3, "fill"));
    append_pieces(c, CMD_FILL, (uint64_t[3]){address(dst, offset), word, bytes});
    return FX_OK;
}

fx_status fx_cpu_cmds_barrier(fx_cmds *c) { return grow(c, 0, "barrier"); /* every command is one */ }

fx_status fx_cpu_cmds_timestamp(fx_cmds *c) {
    FX_TRY(grow(c, 0, "timestamp"));
    append(c, (cmd){.kind = CMD_TIMESTAMP}, NULL, 0);
    c->n_stamps++;
    return FX_OK;
}

fx_status fx_cpu_cmds_end(fx_cmds *c) {
    FX_TRY(grow(c, 0, "end"));
    c->stamps = calloc(c->n_stamps + 1, sizeof *c->stamps);
    if (!c->stamps)
        return no_memory();
    c->ended = true;
    return FX_OK;
}

void fx_cpu_cmds_destroy(fx_cmds *c) {
    if (!c)
        return;
    if (c->ticket)
        fx_cpu_wait(c->device, c->ticket, UINT64_MAX, NULL);
    free(c->cmds);
    free(c->args);
    free(c->stamps);
    free(c);
}

fx_status fx_cpu_cmds_read_timestamps(fx_cmds *c, uint64_t *ns, int capacity, int *count) {
    if (!c->ticket)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "timestamps: the command list was never submitted; submit it first");
    FX_TRY(fx_cpu_wait(c->device, c->ticket, UINT64_MAX, NULL));
    int n = c->n_stamps < (size_t)capacity ? (int)c->n_stamps : capacity;
    for (int i = 0; i < n; i++)
        ns[i] = c->stamps[i];
    *count = n;
    return FX_OK;
}

bool fx_cpu_cmds_ready(const fx_cmds *c) { return c->ended; }

void fx_cpu_cmds_submitted(fx_cmds *c, uint64_t ticket) { c->ticket = ticket; }

/* ---- execution ---- */

/* The bytes of pieces first to last - 1; the last piece that can be counted takes the rest. */
static uint64_t range(const uint64_t *args, uint32_t first, uint32_t last, uint64_t *begin) {
    uint64_t end = last == UINT32_MAX ? args[2] : (uint64_t)last * PIECE;
    *begin = (uint64_t)first * PIECE;
    return (end < args[2] ? end : args[2]) - *begin;
}

static void copy(const uint64_t *args, const uint32_t groups[3], uint32_t first, uint32_t last) {
    uint64_t begin, bytes = range(args, first, last, &begin);
    (void)groups;
    memcpy((unsigned char *)(uintptr_t)args[0] + begin, (const unsigned char *)(uintptr_t)args[1] + begin, bytes);
}

static void fill(const uint64_t *args, const uint32_t groups[3], uint32_t first, uint32_t last) {
    uint64_t begin, bytes = range(args, first, last, &begin);
    uint32_t *p = (uint32_t *)(uintptr_t)(args[0] + begin), word = (uint32_t)args[1];
    (void)groups;
    for (uint64_t i = 0; i < bytes / 4; i++)
        p[i] = word;
}

void fx_cpu_cmds_execute(fx_cmds *c, cpu_pool *pool) {
    uint64_t *stamp = c->stamps;
    for (size_t i = 0; i < c->n_cmds; i++) {
        const cmd *m = &c->cmds[i];
        const uint64_t *args = c->args + m->args;
        switch (m->kind) {
        case CMD_DISPATCH:
            fx_cpu_pool_dispatch(pool, m->kernel->entry, args, m->groups, m->total, &m->kernel->group_ns);
            break;
        case CMD_COPY:
            fx_cpu_pool_dispatch(pool, copy, args, m->groups, m->total, &c->copy_ns);
            break;
        case CMD_FILL:
            fx_cpu_pool_dispatch(pool, fill, args, m->groups, m->total, &c->fill_ns);
            break;
        case CMD_TIMESTAMP:
            *stamp++ = fx_cpu_now();
            break;
        }
    }
}
