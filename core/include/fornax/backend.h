/* backend.h - what a backend provides; for implementers of a backend only.
 *
 * A backend is one folder that fills one fx_backend table. Core calls it; it calls nothing of
 * core but the error functions below. Rules for every entry:
 *   - fallible entries return fx_status and set the error text with fx_backend_fail;
 *   - a device's work is ordered: what is submitted or uploaded earlier happens earlier;
 *   - entries on one device may be called from any thread; the backend locks what needs it, except
 *     that one fx_cmds is used by one thread at a time;
 *   - an entry marked "may be NULL" has a default in core. */
#ifndef FORNAX_BACKEND_H
#define FORNAX_BACKEND_H

#include <fornax/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_BACKEND_ABI 1

typedef enum fx_device_kind {
    FX_DEVICE_DISCRETE_GPU,
    FX_DEVICE_INTEGRATED_GPU,
    FX_DEVICE_VIRTUAL_GPU,
    FX_DEVICE_CPU,      /* native code on the processor */
    FX_DEVICE_SOFTWARE, /* a graphics API implemented on the processor */
    FX_DEVICE_REFERENCE /* the plain evaluator */
} fx_device_kind;

typedef enum fx_language { FX_LANGUAGE_GLSL, FX_LANGUAGE_CUDA, FX_LANGUAGE_C } fx_language;

/* Facts about a device that the compiler and runtime decide by. Sizes in bytes. */
typedef struct fx_device_caps {
    fx_language language;
    bool bool_is_word;          /* a bool element takes 4 bytes in device memory (no 8-bit storage) */
    bool storage8, storage16;   /* buffers may hold 8-bit / 16-bit elements */
    bool int8, int16, int64;    /* arithmetic; without int8/int16 the kernel computes in 32 bits */
    bool f16, f64;              /* arithmetic; f16 without it computes in f32 */
    uint32_t subgroup_size;     /* size that kernels run with; 1: no subgroups */
    uint32_t subgroup_min, subgroup_max; /* sizes that a kernel may require; equal when fixed */
    bool subgroup_shuffle, subgroup_arithmetic, subgroup_ballot;
    uint32_t max_invocations;   /* per workgroup */
    uint32_t max_workgroup[3], max_groups[3];
    uint32_t shared_bytes;      /* per workgroup */
    uint32_t max_args;          /* 64-bit arguments that fit without a table; more are allowed, a little slower */
    uint64_t max_allocation;    /* largest fx_mem */
    uint32_t units;             /* compute units or processor cores, 0 unknown */
    bool barrier_is_slow;       /* software devices: prefer subgroup operations to shared memory */
    bool has_timestamps;
} fx_device_caps;

typedef struct fx_device_info {
    char name[128];
    char driver[128]; /* name and version, part of cache keys */
    uint8_t uuid[16]; /* all zero when unknown; the same GPU has the same one in every backend */
    uint32_t vendor_id, device_id;
    fx_device_kind kind;
    uint64_t memory_bytes; /* of the heap that arrays live in */
    int features;          /* how many of storage8, storage16, int64, f16, f64 it has: breaks ties of kind */
    bool usable;
    char reason[160]; /* why not usable */
} fx_device_info;

typedef struct fx_bdevice fx_bdevice; /* a backend's open device */
typedef struct fx_kernel fx_kernel;
typedef struct fx_cmds fx_cmds; /* a recorded command list, submitted any number of times */

/* A device allocation. `address` is what kernels see; `host` is its mapping, or NULL. */
typedef struct fx_mem {
    uint64_t address;
    void *host;
    uint64_t bytes;
    void *handle; /* backend's own */
} fx_mem;

typedef enum fx_mem_kind { FX_MEM_DEVICE, FX_MEM_HOST /* mapped and coherent, readable by kernels */ } fx_mem_kind;

typedef struct fx_kernel_source {
    const char *name;   /* for debuggers and profiles, e.g. "layer_norm.3" */
    const char *source; /* text in caps.language; entry point "main" in GLSL, `name` in CUDA; in C see below */
    size_t source_bytes;
    uint32_t n_args;         /* 64-bit words: addresses or scalars */
    uint32_t workgroup[3];
    uint32_t subgroup_size;  /* required size; 0: the device's own */
    uint64_t hash;           /* of source and everything else above: key of caches */
} fx_kernel_source;

/* A kernel in C is self-contained GNU C11 that includes nothing and defines
 *     void FX_KERNEL(const uint64_t *args, const uint32_t groups[3], uint32_t first, uint32_t last)
 * (with the types spelled out), which runs workgroups first to last - 1, counted along x, then y, then z; args holds the
 * n_args words whatever their number. The backend defines FX_KERNEL around each text as a name of its own and puts several
 * texts into one translation unit: every other name at file scope must not clash (static and prefixed, or under an include guard). */

typedef struct fx_mem_stats {
    uint64_t budget;     /* bytes this process may use now, as the driver says; 0 unknown */
    uint64_t driver_use; /* bytes in use as the driver says; 0 unknown */
    uint64_t allocated;  /* bytes in live fx_mem of this device */
    uint64_t peak;       /* largest `allocated` so far */
} fx_mem_stats;

typedef struct fx_backend {
    uint32_t abi_version, struct_size;
    const char *name; /* "vulkan": the scheme of device URIs, vulkan:0 */

    /* Fills up to `capacity` infos, sets *count to the number of devices. A missing driver is not an
     * error: count 0, and *reason (static or thread-local text) says what is missing. */
    fx_status (*enumerate)(fx_device_info *infos, int capacity, int *count, const char **reason);
    /* cache_dir: folder for compiled kernels, NULL for none. */
    fx_status (*open)(int index, const char *cache_dir, fx_bdevice **out, fx_device_caps *caps);
    void (*close)(fx_bdevice *d); /* waits for its work first; NULL is fine */

    fx_status (*mem_alloc)(fx_bdevice *d, uint64_t bytes, fx_mem_kind kind, fx_mem *out);
    void (*mem_free)(fx_bdevice *d, fx_mem *mem); /* the caller knows that no work uses it */
    void (*mem_stats)(fx_bdevice *d, fx_mem_stats *out);

    /* Copies host bytes into device memory after all work submitted so far. The source may be reused
     * when the call returns (a staging ring holds it). *ticket: when the copy has happened; may be NULL. */
    fx_status (*upload)(fx_bdevice *d, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
                        uint64_t *ticket);
    /* As upload, but the copy waits only for `after` (a ticket; 0: for nothing) and runs beside other work where
     * the device can; the caller knows that no work after `after` uses these bytes. Work submitted later
     * comes after the copy. May be NULL: core uses upload. */
    fx_status (*upload_after)(fx_bdevice *d, uint64_t after, const fx_mem *dst, uint64_t offset, const void *src,
                              uint64_t bytes, uint64_t *ticket);
    /* Waits for all work submitted so far, then copies device bytes to the host. */
    fx_status (*download)(fx_bdevice *d, const fx_mem *src, uint64_t offset, void *dst, uint64_t bytes);

    /* Compiles n kernels (in parallel where the backend can). On failure none is created and the text
     * names the kernel. stats: number found in the on-disk cache; may be NULL. */
    fx_status (*kernels_create)(fx_bdevice *d, int n, const fx_kernel_source *sources, fx_kernel **out, int *cached);
    void (*kernel_destroy)(fx_bdevice *d, fx_kernel *k);

    /* Recording. Nothing is implied between commands: core places a barrier where one command must see
     * another's writes (or must not overwrite what another still reads). A list starts with a barrier
     * against all earlier work of the device. */
    fx_status (*cmds_begin)(fx_bdevice *d, fx_cmds **out);
    fx_status (*cmds_dispatch)(fx_cmds *c, fx_kernel *k, const uint64_t *args, uint32_t n_args, const uint32_t groups[3]);
    fx_status (*cmds_copy)(fx_cmds *c, const fx_mem *dst, uint64_t dst_offset, const fx_mem *src, uint64_t src_offset,
                           uint64_t bytes);
    fx_status (*cmds_fill)(fx_cmds *c, const fx_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word); /* 4-byte units */
    fx_status (*cmds_barrier)(fx_cmds *c);
    fx_status (*cmds_label)(fx_cmds *c, const char *name);   /* names what follows, for debuggers; may be NULL */
    fx_status (*cmds_timestamp)(fx_cmds *c);                 /* appends a timestamp; may be NULL */
    fx_status (*cmds_end)(fx_cmds *c);
    void (*cmds_destroy)(fx_cmds *c); /* waits until its last submission has finished */
    /* Nanoseconds of the list's timestamps on the device's clock, after its last submission has finished. */
    fx_status (*cmds_read_timestamps)(fx_cmds *c, uint64_t *ns, int capacity, int *count);

    /* Queues the lists in order. *ticket: grows by submission; with no list, the ticket of all work so far. */
    fx_status (*submit)(fx_bdevice *d, int n, fx_cmds *const *lists, uint64_t *ticket);
    /* Waits until `ticket` has happened. timeout_ns UINT64_MAX: for ever (but device loss ends it).
     * *done false after a time-out. */
    fx_status (*wait)(fx_bdevice *d, uint64_t ticket, uint64_t timeout_ns, bool *done);

    /* A pair of instants (device clock, host CLOCK_MONOTONIC) in ns, for the profiler; may be NULL. */
    fx_status (*clock_pair)(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns);
    /* Writes caches to disk; may be NULL. */
    void (*flush_cache)(fx_bdevice *d);
} fx_backend;

/* A row of the generated registry: `get` returns the table, or NULL with *reason when the backend
 * can't run in this process. */
typedef struct fx_backend_entry {
    const char *name;
    const fx_backend *(*get)(const char **reason);
} fx_backend_entry;
extern const fx_backend_entry fx_backend_registry[]; /* ends with name NULL */
extern const int fx_backend_registry_count;

/* For backends: records the error text and returns `status`. */
FX_API fx_status fx_backend_fail(fx_status status, const char *fmt, ...) FX_PRINTF(2, 3);
/* Do the bytes lie in the allocation? FX_INVALID_ARGUMENT if not; `what` names the use. */
FX_API fx_status fx_backend_range_check(const fx_mem *mem, uint64_t offset, uint64_t bytes, const char *what);

#ifdef __cplusplus
}
#endif
#endif
