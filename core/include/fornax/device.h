/* device.h - contexts, devices, arrays, executables: where programs run.
 *
 * Threads: a context and everything made from it may be used from any thread; runs of one executable
 * are ordered. Runs are asynchronous: fx_run returns when the work is queued, reads wait. */
#ifndef FORNAX_DEVICE_H
#define FORNAX_DEVICE_H

#include <fornax/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fx_context fx_context; /* devices and caches */
typedef struct fx_device fx_device; /* borrowed from its context */
typedef struct fx_array fx_array;   /* reference counted */
typedef struct fx_exec fx_exec;

typedef struct fx_options {
    size_t struct_size;
    const char *cache_dir;  /* NULL: FORNAX_CACHE_DIR, else $XDG_CACHE_HOME/fornax, else ~/.cache/fornax; "": none */
    const char *const *backends; /* NULL-terminated names to consider; NULL: all that are built */
} fx_options;
#define FX_OPTIONS_INIT {sizeof(fx_options), NULL, NULL}

/* Finds devices; opens none yet. opt NULL: defaults. A machine without any driver still has the device
 * "reference" (the plain evaluator). */
FX_API fx_status fx_init(const fx_options *opt, fx_context **out);
FX_API void fx_shutdown(fx_context *cx); /* after everything made from it is released; NULL is fine */

FX_API int fx_device_count(const fx_context *cx);
FX_API fx_device *fx_device_at(fx_context *cx, int i);
/* Best device: discrete GPU, integrated GPU, virtual GPU, native CPU, software driver, reference; among equals
 * the one with more element types; or what FORNAX_DEVICE (a URI) says. */
FX_API fx_device *fx_default_device(fx_context *cx);
/* "vulkan:0", "vulkan" (its first), "reference"; FX_NOT_FOUND lists what there is. */
FX_API fx_status fx_device_find(fx_context *cx, const char *uri, fx_device **out);
/* Texts about a device: borrowed, "" or "?" for NULL. */
FX_API const char *fx_device_uri(const fx_device *d);
FX_API const char *fx_device_name(const fx_device *d);
FX_API const char *fx_device_driver(const fx_device *d);
FX_API const char *fx_device_kind_name(const fx_device *d); /* "discrete GPU", "software", ... */
/* Can arrays of this type live and be computed with there? On no, the error text names what is missing. */
FX_API fx_status fx_device_supports(fx_device *d, fx_dtype dtype);

typedef struct fx_memory_stats { /* bytes */
    uint64_t limit;     /* what Fornax may take: FORNAX_MEM_FRACTION of the device's memory */
    uint64_t in_use;    /* by live arrays and arenas */
    uint64_t peak;      /* largest in_use so far */
    uint64_t reserved;  /* taken from the driver */
    uint64_t arrays, arenas; /* parts of in_use */
} fx_memory_stats;
FX_API fx_status fx_device_memory(fx_device *d, fx_memory_stats *out);
/* Waits for all work queued on the device. */
FX_API fx_status fx_device_wait(fx_device *d);

/* Arrays. Host data is row-major, bool one byte. */
FX_API fx_status fx_array_create(fx_device *d, fx_spec spec, const void *data, fx_array **out); /* data NULL: zeros */
FX_API fx_array *fx_array_ref(fx_array *a);
FX_API void fx_array_unref(fx_array *a); /* NULL is fine */
FX_API fx_spec fx_array_spec(const fx_array *a); /* dtype FX_TUPLE for NULL */
FX_API fx_device *fx_array_device(const fx_array *a);
/* Waits, then copies all elements; bytes must be the array's size on the host. */
FX_API fx_status fx_array_read(fx_array *a, void *data, size_t bytes);
FX_API fx_status fx_array_write(fx_array *a, const void *data, size_t bytes);
FX_API fx_status fx_array_to(fx_array *a, fx_device *d, fx_array **out); /* a copy on another device; same device: a reference */

typedef struct fx_compile_options {
    size_t struct_size;
    const int *donate; /* inputs whose memory may become results'; they are consumed by fx_run */
    int n_donate;
    bool no_fusion;    /* every node a kernel: for debugging and tests */
} fx_compile_options;
#define FX_COMPILE_OPTIONS_INIT {sizeof(fx_compile_options), NULL, 0, false}

/* Compiles f for a device. */
FX_API fx_status fx_compile(const fx_func *f, fx_device *d, const fx_compile_options *opt, fx_exec **out);
FX_API void fx_exec_destroy(fx_exec *e); /* waits for its runs; NULL is fine */
/* Queues a run. inputs: n_in arrays on the executable's device, of the traced specs. outputs: receives
 * n_out new arrays, owned by the caller. A donated input's reference is consumed (and the entry in
 * `inputs` must not be used again) when the call succeeds; on failure nothing is consumed. An array may be passed
 * in several places; each place that is donated consumes a reference. */
FX_API fx_status fx_run(fx_exec *e, fx_array *const *inputs, fx_array **outputs);
FX_API fx_status fx_wait(fx_exec *e); /* for its last run */

typedef struct fx_exec_stats_t {
    int kernels;            /* dispatches in a run without control flow; loops count their body once */
    int distinct_kernels;   /* compiled programs */
    int copies;             /* copies and fills */
    int64_t bytes_read, bytes_written; /* by the kernels, each operand once */
    int64_t flops;          /* multiply-add counts 2 */
    uint64_t arena_bytes;   /* intermediates */
    uint64_t argument_bytes, result_bytes, constant_bytes;
    double compile_seconds;
    int cached_kernels;     /* of distinct_kernels, found in the disk cache */
} fx_exec_stats_t;
FX_API fx_status fx_exec_stats(const fx_exec *e, fx_exec_stats_t *out);
/* A line a kernel: name, schedule, grid, bytes, FLOPs, fused ops. malloc'd. */
FX_API char *fx_exec_describe(const fx_exec *e); /* NULL when e is, or when memory is out */

/* A function with a cache of executables per device: fx_jit_run compiles at first use. */
typedef struct fx_jit fx_jit;
FX_API fx_status fx_jit_create(const fx_func *f, const fx_compile_options *opt, fx_jit **out);
FX_API void fx_jit_destroy(fx_jit *j);
FX_API fx_status fx_jit_run(fx_jit *j, fx_array *const *inputs, fx_array **outputs); /* on inputs[0]'s device */

#ifdef __cplusplus
}
#endif
#endif
