/* cpu.h - what the files of the native CPU backend share; nobody else includes it, except its own test.
 *
 * Kernels are C texts that the system's compiler makes into shared objects (cpu_compile.c), found again in the disk cache
 * (cpu_cache.c). One thread of the device executes submissions in order (cpu_queue.c) and splits each command over the
 * pool's threads (cpu_pool.c). Device memory is host memory: an address is a pointer. Submissions are numbered from 1;
 * the number is the ticket. Locks: queue.lock and recent_lock, never one inside the
 * other, nor held while a kernel runs or is compiled. */
#ifndef FX_BACKEND_CPU_CPU_H
#define FX_BACKEND_CPU_CPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/cache.h"
#include "fornax/backend.h"

enum {
    CPU_CC_WORDS = 8,     /* words of FORNAX_CC: launcher, compiler, options */
    CPU_MAX_THREADS = 256,
    CPU_RECENT = 256,     /* kernels that stay loaded for the next who asks for them */
    CPU_SYMBOL = 36       /* "k_", 32 hexadecimal digits, terminator */
};

/* Runs the workgroups first to last - 1, counted along x, then y, then z, of a grid. */
typedef void (*cpu_entry)(const uint64_t *args, const uint32_t groups[3], uint32_t first, uint32_t last);

/* ---- cpu_probe.c: facts about this machine and process ---- */
/* The processor's name, and a hash of what code for it may use. */
void fx_cpu_model(char *name, size_t size, uint64_t *features);
/* Processors that this process may use: affinity and cgroup limits. */
int fx_cpu_processors(void);
/* FORNAX_CPU_THREADS, else as many as there are processors. */
int fx_cpu_threads(void);
/* Bytes of memory that this process may have, and bytes of them free now. */
uint64_t fx_cpu_memory(void);
uint64_t fx_cpu_memory_free(void);

/* ---- cpu_process.c: running a compiler ---- */
typedef enum cpu_end {
    CPU_END_GOOD,
    CPU_END_BAD,     /* ended with a failure status; its output says why */
    CPU_END_KILLED,  /* by a signal */
    CPU_END_HUNG,    /* took too long, and was ended */
    CPU_END_NOT_RUN, /* could not be started: errno */
    CPU_END_UNKNOWN  /* the program's own handling of SIGCHLD took its status away */
} cpu_end;
/* Runs argv[0], a path, with its output going to the file `log` and no input; *code: exit status, signal or errno. */
cpu_end fx_cpu_run(char *const *argv, const char *log, double seconds, int *code);
/* Seconds that a compiler may take. */
double fx_cpu_patience(void);

/* ---- cpu_compiler.c: which compiler ---- */
typedef struct cpu_compiler {
    char *words[CPU_CC_WORDS]; /* words[0] is a path */
    int n_words;
    char version[96];  /* first line of its --version */
    uint64_t identity; /* hash of path, size, time and version */
} cpu_compiler;
/* Finds the compiler; FX_UNSUPPORTED with a text that names what was tried. The result is the caller's. */
fx_status fx_cpu_compiler_find(cpu_compiler *out);
void fx_cpu_compiler_finish(cpu_compiler *c);

/* ---- cpu_pool.c: threads ---- */
typedef struct cpu_pool cpu_pool;
/* Starts nothing. n_threads counts the caller of fx_cpu_pool_dispatch. */
cpu_pool *fx_cpu_pool_create(int n_threads);
void fx_cpu_pool_destroy(cpu_pool *p);
/* Starts threads that do not run yet; with fewer than wanted the pool works all the same. */
void fx_cpu_pool_start(cpu_pool *p);
/* Runs all workgroups and returns when they are done. One caller at a time. *group_ns: an estimate of the time of a
 * workgroup, kept between calls for the same kernel; 0: unknown. */
void fx_cpu_pool_dispatch(cpu_pool *p, cpu_entry entry, const uint64_t *args, const uint32_t groups[3], uint32_t total,
                          float *group_ns);
/* Stack, floating-point state and signal mask for a thread that runs kernels. */
int fx_cpu_thread_start(pthread_t *t, void *(*run)(void *), void *user);
void fx_cpu_thread_prepare(void);

/* ---- cpu_queue.c: order ---- */
typedef struct cpu_item { /* a submission: a list, or bytes for memory */
    struct cpu_item *next;
    fx_cmds *list; /* NULL: a copy of `bytes` held bytes to `to` */
    void *to;
    uint64_t bytes, ticket;
    unsigned char held[];
} cpu_item;

typedef struct cpu_queue {
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* CLOCK_MONOTONIC */
    cpu_item *first, *last;
    uint64_t submitted;         /* last ticket given out */
    atomic_uint_fast64_t finished;
    bool started, stop;
    pthread_t thread;
} cpu_queue;

typedef struct cpu_injection { /* FORNAX_INJECT: the N-th allocation or compilation fails, counted from 1 */
    uint64_t oom, compile;
} cpu_injection;

/* A loaded shared object; closed with its last kernel. */
typedef struct cpu_object {
    void *handle;
    atomic_int users;
} cpu_object;

typedef struct cpu_recent { /* a user of its object */
    fx_cache_key key;
    cpu_entry entry;
    cpu_object *object;
} cpu_recent;

struct fx_bdevice {
    cpu_compiler compiler;
    uint64_t features;       /* of the processor, in cache keys */
    atomic_bool plain;       /* the compiler refuses to compile for this machine: it compiles for all */
    char *cache_dir;         /* NULL: none */
    atomic_bool cache_grown; /* since it was last pruned */
    fx_device_caps caps;
    fx_device_info info;
    pid_t process; /* threads do not survive fork */
    cpu_pool *pool;
    cpu_queue queue;
    pthread_mutex_t recent_lock; /* the two below */
    cpu_recent recent[CPU_RECENT];
    unsigned n_recent; /* ever noted; the oldest is overwritten */
    atomic_uint_fast64_t allocated, peak, n_allocs, n_compiles;
    cpu_injection inject;
};

struct fx_kernel {
    cpu_entry entry;
    cpu_object *object;
    uint32_t n_args;
    float group_ns; /* estimate, used by the queue's thread alone */
    char name[];
};

/* ---- cpu_memory.c ---- */
fx_status fx_cpu_mem_alloc(fx_bdevice *d, uint64_t bytes, fx_mem_kind kind, fx_mem *out);
void fx_cpu_mem_free(fx_bdevice *d, fx_mem *mem);
void fx_cpu_mem_stats(fx_bdevice *d, fx_mem_stats *out);

/* ---- cpu_kernel.c: kernels from sources ---- */
fx_status fx_cpu_kernels_create(fx_bdevice *d, int n, const fx_kernel_source *sources, fx_kernel **out, int *cached);
void fx_cpu_kernel_destroy(fx_bdevice *d, fx_kernel *k);
void fx_cpu_recent_finish(fx_bdevice *d);

/* ---- cpu_compile.c: a translation unit ---- */
typedef struct cpu_text { /* a kernel to compile: its key names its function, "k_" and the key in hexadecimal */
    const fx_kernel_source *source;
    fx_cache_key key;
} cpu_text;
void fx_cpu_symbol(char symbol[CPU_SYMBOL], fx_cache_key key);
/* Compiles n texts together into the file `object`. `stem` is a path without suffix for what the compiler needs beside it. */
fx_status fx_cpu_compile(fx_bdevice *d, int n, const cpu_text *const *texts, const char *stem, const char *object);
/* Hash of all that shapes code but the kernel's text. */
uint64_t fx_cpu_code_identity(const fx_bdevice *d);

/* ---- cpu_cache.c: kernels in the disk cache ---- */
/* The object file that holds the kernel, checked: its path, malloc'd, or NULL. *file names it. */
bool fx_cpu_cache_find(fx_bdevice *d, fx_cache_key kernel, fx_cache_key *file);
char *fx_cpu_cache_object(fx_bdevice *d, fx_cache_key file);
/* Keeps the file `object` with an entry for each kernel in it; its path in the cache, malloc'd, or NULL. */
char *fx_cpu_cache_keep(fx_bdevice *d, const char *object, int n, const cpu_text *const *texts);

/* ---- cpu_queue.c, cpu_cmds.c ---- */
fx_status fx_cpu_queue_init(cpu_queue *q);
void fx_cpu_queue_finish(fx_bdevice *d);
fx_status fx_cpu_submit(fx_bdevice *d, int n, fx_cmds *const *lists, uint64_t *ticket);
fx_status fx_cpu_wait(fx_bdevice *d, uint64_t ticket, uint64_t timeout_ns, bool *done);
fx_status fx_cpu_upload(fx_bdevice *d, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes, uint64_t *ticket);
fx_status fx_cpu_upload_after(fx_bdevice *d, uint64_t after, const fx_mem *dst, uint64_t offset, const void *src,
                              uint64_t bytes, uint64_t *ticket);
fx_status fx_cpu_download(fx_bdevice *d, const fx_mem *src, uint64_t offset, void *dst, uint64_t bytes);
fx_status fx_cpu_clock_pair(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns);
uint64_t fx_cpu_now(void);

fx_status fx_cpu_cmds_begin(fx_bdevice *d, fx_cmds **out);
fx_status fx_cpu_cmds_dispatch(fx_cmds *c, fx_kernel *k, const uint64_t *args, uint32_t n_args, const uint32_t groups[3]);
fx_status fx_cpu_cmds_copy(fx_cmds *c, const fx_mem *dst, uint64_t dst_offset, const fx_mem *src, uint64_t src_offset,
                           uint64_t bytes);
fx_status fx_cpu_cmds_fill(fx_cmds *c, const fx_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word);
fx_status fx_cpu_cmds_barrier(fx_cmds *c);
fx_status fx_cpu_cmds_timestamp(fx_cmds *c);
fx_status fx_cpu_cmds_end(fx_cmds *c);
void fx_cpu_cmds_destroy(fx_cmds *c);
fx_status fx_cpu_cmds_read_timestamps(fx_cmds *c, uint64_t *ns, int capacity, int *count);
/* For cpu_queue.c: whether recording has ended; notes a submission; executes, on the queue's thread. */
bool fx_cpu_cmds_ready(const fx_cmds *c);
void fx_cpu_cmds_submitted(fx_cmds *c, uint64_t ticket);
void fx_cpu_cmds_execute(fx_cmds *c, cpu_pool *pool);

#endif
