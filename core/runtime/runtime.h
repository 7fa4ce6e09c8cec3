/* runtime.h - the objects behind device.h, shared by the files of core/runtime.
 *
 * Order of locks: executable, then device, then pool. Everything a device was given to do happens in the order
 * of the calls; nothing here waits for it unless a result is read, a predicate steers control flow, or
 * memory goes back to the driver. */
#ifndef FX_RUNTIME_RUNTIME_H
#define FX_RUNTIME_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/compile/plan.h"
#include "core/compile/program.h"
#include "core/runtime/pool.h"
#include "fornax/device.h"

struct fx_context {
    fx_device **devices;
    int n_device;
    fx_device *standard;
    char *cache_dir; /* NULL: no cache */
    char *missing;   /* why backends found no device, for error texts */
};

struct fx_device {
    fx_context *context;
    const fx_backend *backend; /* NULL: the reference device, whose arrays are host memory */
    int index;                 /* the backend's */
    char uri[32];
    fx_device_info info;
    pthread_mutex_t lock;      /* guards opening */
    fx_bdevice *open;
    fx_device_caps caps;
    fx_pool pool;
    int64_t clock_offset;      /* profile.c: host time - device time, ns, and when it was taken */
    uint64_t clock_taken;
    atomic_ullong host_in_use, host_peak; /* reference device */
};

struct fx_array {
    atomic_int refs;
    fx_device *device;
    fx_spec spec;
    uint64_t bytes; /* in device layout */
    fx_piece piece;
    void *host;     /* reference device */
};

/* Opens the device at its first use. Thread-safe. */
fx_status fx_device_open(fx_device *d);
void fx_device_close(fx_device *d);
/* Text that "expected one of ..." errors list. */
void fx_device_list(const fx_context *cx, char *text, size_t size);

/* An array without defined contents. soon: the host will fill it at once. */
fx_status fx_array_new(fx_device *d, const fx_spec *spec, bool soon, fx_array **out);
fx_status fx_spec_check(const fx_spec *spec, const char *what);

/* "/home/x/.cache/fornax", made with mode 0700; NULL when there is to be none. malloc'd. */
fx_status fx_cache_dir(const char *option, char **out);

/* --- executables --- */

/* A program made ready on a device: kernels, memory of its intermediates, and the same for its regions. */
typedef struct fx_loaded {
    fx_device *device;
    fx_program *program;       /* owned by the outermost one */
    fx_plan *plan;
    fx_kernel **kernels;
    fx_piece *arena;           /* a piece per chunk of the plan */
    int n_arena;
    fx_piece constants;
    uint64_t *constant_offset; /* per buffer */
    struct fx_loaded ***body;  /* per step: one per region, NULL for steps without */
    fx_piece *loop;            /* per step: what a loop carries from one turn to the next (loop.c) */
    bool host_control;         /* the host must look at values while it runs: cond or while inside */
} fx_loaded;

/* fx_compile with all that the compiler can be told, for tests and benchmarks. */
fx_status fx_compile_lowered(const fx_func *f, fx_device *d, int n_donate, const int *donate, const fx_lower_options *lower,
                             fx_exec **out);

/* donated: per parameter, or NULL. cached: adds the kernels found in the disk cache. */
fx_status fx_loaded_create(fx_device *d, fx_program *p, const bool *donated, int *cached, fx_loaded **out);
void fx_loaded_destroy(fx_loaded *l); /* NULL is fine; not its program */

/* Where a parameter or result of a program is: a range of a device allocation, 16-byte aligned. */
typedef struct fx_binding {
    const fx_mem *mem;
    uint64_t offset, bytes;
} fx_binding;

/* A stream of command lists that programs are recorded into, with barriers exactly where one step must see
 * or must not disturb another. Used by one thread at a time. */
typedef struct fx_stream fx_stream;
fx_status fx_stream_create(fx_device *d, fx_stream **out);
void fx_stream_destroy(fx_stream *s); /* waits for its submissions; NULL is fine */
fx_status fx_stream_dispatch(fx_stream *s, const fx_step *step, fx_kernel *k, const fx_binding *args);
fx_status fx_stream_copy(fx_stream *s, const fx_binding *dst, const fx_binding *src, uint64_t bytes);
fx_status fx_stream_fill(fx_stream *s, const fx_binding *dst, uint64_t bytes, uint32_t word);
/* Submits what has been recorded since the last call and waits; later recording goes on in new lists. */
fx_status fx_stream_flush(fx_stream *s);
/* Ends the last list; the stream may then be submitted any number of times (only what a flush has not). */
fx_status fx_stream_end(fx_stream *s);
fx_status fx_stream_submit(fx_stream *s, uint64_t *ticket);

/* Records all steps of l with its parameters and results bound. With host_control it flushes where the host
 * must look at a value. */
fx_status fx_emit(fx_stream *s, const fx_loaded *l, const fx_binding *params, const fx_binding *results);
/* The same for one control-flow step (loop.c). bind[i] is where the step's argument i is. */
fx_status fx_stream_control(fx_stream *s, const fx_loaded *l, int step, const fx_binding *bind);
/* Bytes of l->loop[step]. */
uint64_t fx_loop_bytes(const fx_device_caps *caps, const fx_program *p, const fx_step *step);

#endif
