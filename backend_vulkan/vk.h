/* vk.h - what the files of the Vulkan backend share; nobody else includes it, except its own test.
 *
 * One process-wide instance (vk_instance.c), one fx_bdevice per open device (vk_device.c). Every
 * submission of a device, on either queue, has a number from one counter; each queue's timeline
 * semaphore is signalled with that queue's numbers. A ticket is number * 2 + queue. Locks, in the order in which they
 * may nest: staging.lock, readback.lock, queue_lock. No lock is held while a kernel is compiled. */
#ifndef FX_BACKEND_VULKAN_VK_H
#define FX_BACKEND_VULKAN_VK_H

#include <pthread.h>
#include <stdatomic.h>
#include <volk.h>

#include "backend_vulkan/vk_validation.h"
#include "core/base/cache.h"
#include "fornax/backend.h"

enum {
    VK_PUSH_ARGS = 32,     /* most arguments that travel as push constants */
    VK_SUMMARY = 192,      /* bytes of text that describe a submission */
    VK_RECENT = 16,        /* submissions remembered for the text of a lost device */
    VK_STAGE_SLOTS = 64,   /* uploads in flight */
    VK_READBACK_SLOTS = 2, /* parts of a download in flight */
    VK_POOLS_KEPT = 32     /* command pools kept for the next command list */
};
#define VK_STAGE_BYTES ((uint64_t)32 << 20)
#define VK_STAGE_CHUNK ((uint64_t)8 << 20)
#define VK_READBACK_CHUNK ((uint64_t)8 << 20)

/* Settings from the environment, read when the instance is made. */
typedef struct vk_settings {
    bool validate; /* FORNAX_VALIDATE */
    bool debug;    /* FORNAX_DEBUG: names for debuggers, unoptimised kernels with line numbers */
} vk_settings;

/* A physical device as probed: facts and what this backend makes of them. */
typedef struct vk_gpu {
    VkPhysicalDevice handle;
    uint32_t api; /* lower of the device's version and 1.3 */
    VkPhysicalDeviceProperties props;
    VkPhysicalDeviceMemoryProperties memory;
    VkPhysicalDeviceFloatControlsProperties floats;
    uint32_t compute_family, transfer_family; /* UINT32_MAX: none */
    uint32_t timestamp_bits;
    uint64_t max_allocation;
    uint32_t max_subgroups;                                               /* a workgroup, where a size is required */
    bool memory_budget, calibrated, portability_subset, size_control_ext; /* extensions to enable */
    bool size_control, full_subgroups, scalar_layout, extended_types, memory_model; /* features to enable */
    bool unified; /* device memory is host memory: map it */
    fx_device_caps caps;
    fx_device_info info;
} vk_gpu;

typedef struct vk_instance {
    VkInstance handle;
    vk_settings settings;
    bool names; /* debug-utils is on */
    vk_gpu *gpus;
    int n_gpus;
} vk_instance;

/* fx_mem.handle */
typedef struct vk_memory {
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint64_t bytes;
    bool counted; /* in the device's statistics */
} vk_memory;

typedef enum vk_memory_use {
    VK_USE_DEVICE, /* arrays */
    VK_USE_HOST,   /* fx_mem_kind FX_MEM_HOST: cached host memory, also staging for downloads */
    VK_USE_STAGE,  /* host memory, written by the host and copied by the device */
    VK_USE_TABLE   /* written by the host, read by kernels: near the device where that can be mapped */
} vk_memory_use;

typedef struct vk_recent {
    uint64_t number;
    char text[VK_SUMMARY];
} vk_recent;

typedef struct vk_slot {     /* an upload in flight */
    VkCommandBuffer cmds[2]; /* for the compute and the transfer queue; VK_QUEUES of them */
    uint64_t ticket, end;    /* end: ring position behind its bytes */
} vk_slot;

typedef struct vk_staging { /* ring of bytes for uploads; positions grow for ever, modulo VK_STAGE_BYTES */
    pthread_mutex_t lock;
    fx_mem mem;             /* made at the first use, as all of this */
    VkCommandPool pools[2]; /* by queue */
    vk_slot slots[VK_STAGE_SLOTS];
    uint32_t first, n; /* slots in flight, oldest first */
    uint64_t head, tail;
} vk_staging;

typedef struct vk_readback {
    pthread_mutex_t lock;
    fx_mem mem;
    VkCommandPool pool;
    VkCommandBuffer cmds[VK_READBACK_SLOTS];
} vk_readback;

/* FORNAX_INJECT, for tests: the N-th submission, allocation or compilation fails (counted from 1, 0: none);
 * `transfer_queue` runs transfers as if a device without a transfer queue had one. */
typedef struct vk_injection {
    uint64_t device_lost, oom, compile;
    bool transfer_queue;
} vk_injection;

typedef enum vk_queue_index { VK_QUEUE_COMPUTE, VK_QUEUE_TRANSFER, VK_QUEUES } vk_queue_index;

struct fx_bdevice {
    vk_instance *instance;
    const vk_gpu *gpu;
    VkDevice handle;
    struct VolkDeviceTable vk;
    PFN_vkSetDebugUtilsObjectNameEXT set_name;    /* NULL when names are off */
    PFN_vkCmdBeginDebugUtilsLabelEXT begin_label; /* these two: also NULL under the validation layer */
    PFN_vkCmdEndDebugUtilsLabelEXT end_label;

    pthread_mutex_t queue_lock; /* the queues, next, waited, recent, lost_text */
    uint32_t families[VK_QUEUES];
    VkQueue queues[VK_QUEUES]; /* [1] is VK_NULL_HANDLE without a transfer queue */
    VkSemaphore timelines[VK_QUEUES];
    atomic_uint_fast64_t submitted[VK_QUEUES]; /* last number given to a submission of each queue */
    atomic_uint_fast64_t finished[VK_QUEUES];  /* a number known to be reached: saves asking the driver */
    uint64_t waited;                           /* last transfer number that the compute queue waits for already */
    uint64_t next;                             /* number of the next submission, from 1 */
    vk_recent recent[VK_RECENT];
    uint32_t n_recent;
    atomic_bool lost;
    char lost_text[1024];

    pthread_mutex_t layout_lock;
    VkPipelineLayout layouts[VK_PUSH_ARGS + 1];
    VkPipelineCache pipelines;
    atomic_uint pipelines_made; /* since the pipeline cache was last written */
    char *cache_dir;            /* NULL: none */
    uint64_t pipelines_read;    /* checksum of the file that `pipelines` began with */

    pthread_mutex_t pool_lock;
    VkCommandPool pools[VK_POOLS_KEPT];
    int n_pools;

    vk_staging staging;
    vk_readback readback;
    atomic_uint_fast64_t allocated, peak;
    vk_injection inject;
    atomic_uint_fast64_t n_submits, n_allocs, n_compiles;
};

struct fx_kernel {
    VkPipeline pipeline;
    VkPipelineLayout layout; /* the device's */
    uint32_t n_args, push_bytes;
    char name[];
};

/* ---- vk_instance.c ---- */
/* The process's instance, made at the first call and kept. FX_NOT_FOUND when there is no driver,
 * FX_UNSUPPORTED without the validation layer that was asked for; *reason then holds the text as well. Any thread. */
fx_status fx_vk_instance_get(vk_instance **out, const char **reason);
const char *fx_vk_result_name(VkResult r);

/* ---- vk_probe.c ---- */
/* Fills `gpu` from its handle; an unfit device gets info.usable false and info.reason. */
void fx_vk_probe(const vk_instance *in, VkPhysicalDevice handle, vk_gpu *gpu);

/* ---- vk_device.c ---- */
fx_status fx_vk_open(int index, const char *cache_dir, fx_bdevice **out, fx_device_caps *caps);
void fx_vk_close(fx_bdevice *d);
/* Turns a VkResult into a status with text "what: VK_X; remedy"; a lost device becomes sticky. */
fx_status fx_vk_check(fx_bdevice *d, VkResult r, const char *what);
/* FX_DEVICE_LOST with its text when the device was lost before, otherwise FX_OK. */
fx_status fx_vk_alive(fx_bdevice *d);
fx_status fx_vk_mark_lost(fx_bdevice *d, const char *where);
/* Names an object for debuggers; nothing when names are off. */
void fx_vk_name(fx_bdevice *d, VkObjectType type, uint64_t object, const char *name);

/* ---- vk_memory.c ---- */
fx_status fx_vk_mem_alloc(fx_bdevice *d, uint64_t bytes, fx_mem_kind kind, fx_mem *out);
fx_status fx_vk_memory_create(fx_bdevice *d, uint64_t bytes, vk_memory_use use, fx_mem *out);
void fx_vk_mem_free(fx_bdevice *d, fx_mem *mem);
void fx_vk_mem_stats(fx_bdevice *d, fx_mem_stats *out);

/* ---- vk_staging.c ---- */
fx_status fx_vk_upload(fx_bdevice *d, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
                       uint64_t *ticket);
fx_status fx_vk_upload_after(fx_bdevice *d, uint64_t after, const fx_mem *dst, uint64_t offset, const void *src,
                             uint64_t bytes, uint64_t *ticket);
fx_status fx_vk_download(fx_bdevice *d, const fx_mem *src, uint64_t offset, void *dst, uint64_t bytes);
void fx_vk_staging_finish(fx_bdevice *d);

/* ---- vk_queue.c ---- */
/* Submits a command buffer to a queue. On the compute queue it comes after all earlier uploads; on the
 * transfer queue after the ticket `after` (0: at once). */
fx_status fx_vk_submit_one(fx_bdevice *d, vk_queue_index queue, VkCommandBuffer cmds, uint64_t after, const char *text,
                           uint64_t *ticket);
fx_status fx_vk_submit(fx_bdevice *d, int n, fx_cmds *const *lists, uint64_t *ticket);
fx_status fx_vk_wait(fx_bdevice *d, uint64_t ticket, uint64_t timeout_ns, bool *done);
/* True when `ticket` has happened; never blocks. */
bool fx_vk_ticket_done(fx_bdevice *d, uint64_t ticket);
/* True when nothing is in flight; never blocks. */
bool fx_vk_idle(fx_bdevice *d);
/* Waits for everything submitted so far. */
fx_status fx_vk_wait_idle(fx_bdevice *d);

/* ---- vk_cmds.c ---- */
fx_status fx_vk_cmds_begin(fx_bdevice *d, fx_cmds **out);
fx_status fx_vk_cmds_dispatch(fx_cmds *c, fx_kernel *k, const uint64_t *args, uint32_t n_args,
                              const uint32_t groups[3]);
fx_status fx_vk_cmds_copy(fx_cmds *c, const fx_mem *dst, uint64_t dst_offset, const fx_mem *src, uint64_t src_offset,
                          uint64_t bytes);
fx_status fx_vk_cmds_fill(fx_cmds *c, const fx_mem *dst, uint64_t offset, uint64_t bytes, uint32_t word);
fx_status fx_vk_cmds_barrier(fx_cmds *c);
fx_status fx_vk_cmds_label(fx_cmds *c, const char *name);
fx_status fx_vk_cmds_timestamp(fx_cmds *c);
fx_status fx_vk_cmds_end(fx_cmds *c);
void fx_vk_cmds_destroy(fx_cmds *c);
fx_status fx_vk_cmds_read_timestamps(fx_cmds *c, uint64_t *ns, int capacity, int *count);
/* For vk_queue.c. */
VkCommandBuffer fx_vk_cmds_buffer(const fx_cmds *c); /* VK_NULL_HANDLE while it is being recorded */
const char *fx_vk_cmds_text(const fx_cmds *c);
void fx_vk_cmds_submitted(fx_cmds *c, uint64_t ticket);

/* ---- vk_kernel.c ---- */
fx_status fx_vk_kernels_create(fx_bdevice *d, int n, const fx_kernel_source *sources, fx_kernel **out, int *cached);
void fx_vk_kernel_destroy(fx_bdevice *d, fx_kernel *k);

/* ---- vk_spirv.c: GLSL text to SPIR-V words, no Vulkan calls ---- */
/* Versions of the compilers in this build, part of cache keys. */
const char *fx_vk_spirv_versions(void);
/* Compiles; *words is malloc'd, *n_words its length. On failure `log` holds the compiler's messages. The kernel asks
 * for IEEE arithmetic (NaN, infinities, signed zeros, denormals kept; round to even) as far as the device offers it. */
bool fx_vk_spirv_compile(const char *name, const char *source, size_t bytes, bool debug,
                         const VkPhysicalDeviceFloatControlsProperties *floats, uint32_t **words, size_t *n_words,
                         char *log, size_t log_size);
/* Runs the SPIR-V validator. */
bool fx_vk_spirv_validate(const uint32_t *words, size_t n_words, char *log, size_t log_size);

/* ---- vk_cache.c ---- */
fx_status fx_vk_pipeline_cache_open(fx_bdevice *d);
void fx_vk_pipeline_cache_flush(fx_bdevice *d);

/* ---- vk_profile.c ---- */
fx_status fx_vk_clock_pair(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns);
uint64_t fx_vk_ticks_to_ns(const fx_bdevice *d, uint64_t ticks);

#endif
