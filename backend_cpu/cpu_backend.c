/* cpu_backend.c - the table through which core uses the processor; listing, opening and closing the device. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_cpu/cpu.h"
#include "core/base/env.h"

const fx_backend *fx_cpu_backend(const char **reason);

static void describe(fx_device_info *info, const cpu_compiler *compiler) {
    uint64_t features;
    *info = (fx_device_info){.kind = FX_DEVICE_CPU, .features = 4, .memory_bytes = fx_cpu_memory(), .usable = true};
    fx_cpu_model(info->name, sizeof info->name, &features);
    if (compiler)
        snprintf(info->driver, sizeof info->driver, "%s, -O3, native", compiler->version);
}

static fx_status enumerate(fx_device_info *infos, int capacity, int *count, const char **reason) {
    cpu_compiler c = {0};
    *count = 1;
    if (reason)
        *reason = NULL;
    if (capacity < 1)
        return FX_OK;
    fx_status st = fx_cpu_compiler_find(&c);
    describe(infos, st == FX_OK ? &c : NULL);
    if (st != FX_OK) {
        infos->usable = false;
        snprintf(infos->reason, sizeof infos->reason, "%s", fx_last_error());
    }
    fx_cpu_compiler_finish(&c);
    return FX_OK;
}

static fx_device_caps make_caps(const fx_device_info *info) {
    return (fx_device_caps){.language = FX_LANGUAGE_C,
                            .storage8 = true,
                            .storage16 = true,
                            .int8 = true,
                            .int16 = true,
                            .int64 = true,
                            .f64 = true,
                            .subgroup_size = 16,
                            .subgroup_min = 16,
                            .subgroup_max = 16,
                            .subgroup_shuffle = true,
                            .subgroup_arithmetic = true,
                            .subgroup_ballot = true,
                            .max_invocations = 1024,
                            .max_workgroup = {1024, 1024, 64},
                            .max_groups = {INT32_MAX, 65535, 65535},
                            .shared_bytes = 64 << 10,
                            .max_args = 1 << 20,
                            .max_allocation = info->memory_bytes,
                            .units = (uint32_t)fx_cpu_threads(),
                            .barrier_is_slow = true,
                            .has_timestamps = true};
}

static void close_device(fx_bdevice *d) {
    if (!d)
        return;
    bool ours = d->process == getpid();
    fx_cpu_queue_finish(d);
    if (ours)
        fx_cpu_pool_destroy(d->pool);
    fx_cpu_recent_finish(d);
    pthread_mutex_destroy(&d->recent_lock);
    if (d->cache_dir && atomic_load(&d->cache_grown))
        fx_cache_prune(d->cache_dir);
    fx_cpu_compiler_finish(&d->compiler);
    free(d->cache_dir);
    free(d);
}

static fx_status open_device(int index, const char *cache_dir, fx_bdevice **out, fx_device_caps *caps) {
    *out = NULL;
    if (index != 0)
        return fx_backend_fail(FX_NOT_FOUND, "device cpu:%d; expected cpu:0, the only one", index);
    fx_bdevice *d = calloc(1, sizeof *d);
    if (!d)
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to open device cpu:0; free memory");
    char name[sizeof d->info.name];
    d->process = getpid();
    pthread_mutex_init(&d->recent_lock, NULL);
    fx_status st = fx_cpu_queue_init(&d->queue);
    if (st != FX_OK) {
        free(d);
        return st;
    }
    st = fx_cpu_compiler_find(&d->compiler);
    if (st == FX_OK) {
        fx_cpu_model(name, sizeof name, &d->features);
        describe(&d->info, &d->compiler);
        d->caps = make_caps(&d->info);
        d->cache_dir = fx_cache_dir_make(cache_dir, "cpu");
        d->inject = (cpu_injection){fx_env_injection("oom"), fx_env_injection("compile")};
        d->pool = fx_cpu_pool_create((int)d->caps.units);
        if (!d->pool)
            st = fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for the threads of device cpu:0; free memory");
    }
    if (st != FX_OK) {
        close_device(d);
        return st;
    }
    if (caps)
        *caps = d->caps;
    *out = d;
    return FX_OK;
}

static void flush_cache(fx_bdevice *d) {
    if (d && d->cache_dir && atomic_exchange(&d->cache_grown, false))
        fx_cache_prune(d->cache_dir);
}

static const fx_backend table = {
    .abi_version = FX_BACKEND_ABI,
    .struct_size = sizeof(fx_backend),
    .name = "cpu",
    .enumerate = enumerate,
    .open = open_device,
    .close = close_device,
    .mem_alloc = fx_cpu_mem_alloc,
    .mem_free = fx_cpu_mem_free,
    .mem_stats = fx_cpu_mem_stats,
    .upload = fx_cpu_upload,
    .upload_after = fx_cpu_upload_after,
    .download = fx_cpu_download,
    .kernels_create = fx_cpu_kernels_create,
    .kernel_destroy = fx_cpu_kernel_destroy,
    .cmds_begin = fx_cpu_cmds_begin,
    .cmds_dispatch = fx_cpu_cmds_dispatch,
    .cmds_copy = fx_cpu_cmds_copy,
    .cmds_fill = fx_cpu_cmds_fill,
    .cmds_barrier = fx_cpu_cmds_barrier,
    .cmds_timestamp = fx_cpu_cmds_timestamp,
    .cmds_end = fx_cpu_cmds_end,
    .cmds_destroy = fx_cpu_cmds_destroy,
    .cmds_read_timestamps = fx_cpu_cmds_read_timestamps,
    .submit = fx_cpu_submit,
    .wait = fx_cpu_wait,
    .clock_pair = fx_cpu_clock_pair,
    .flush_cache = flush_cache,
};

const fx_backend *fx_cpu_backend(const char **reason) {
    if (reason)
        *reason = NULL;
    return &table;
}
