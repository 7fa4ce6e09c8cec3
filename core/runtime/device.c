/* device.c - opening a device, its facts, its memory. */
#include <stdio.h>
#include <string.h>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/runtime/runtime.h"

static fx_status open_locked(fx_device *d) {
    if (d->open || !d->backend)
        return FX_OK;
    if (!d->info.usable)
        return fx_fail(FX_UNSUPPORTED, "device %s (%s) is not usable: %s", d->uri, d->info.name, d->info.reason);
    FX_TRY(d->backend->open(d->index, d->context->cache_dir, &d->open, &d->caps));
    uint64_t limit = (uint64_t)((double)d->info.memory_bytes * fx_env_number(FX_ENV_mem_fraction, 0.8));
    fx_status st = fx_pool_init(&d->pool, d->backend, d->open, limit, d->caps.max_allocation);
    if (st == FX_OK && fx_env_flag(FX_ENV_preallocate))
        st = fx_pool_preallocate(&d->pool);
    if (st != FX_OK) {
        fx_pool_finish(&d->pool);
        d->backend->close(d->open);
        d->open = NULL;
    }
    return st;
}

fx_status fx_device_open(fx_device *d) {
    if (!d)
        return fx_fail(FX_INVALID_ARGUMENT, "device; expected one of the context's; got NULL");
    pthread_mutex_lock(&d->lock);
    fx_status st = open_locked(d);
    pthread_mutex_unlock(&d->lock);
    return st;
}

void fx_device_close(fx_device *d) {
    if (!d->open)
        return;
    if (d->backend->flush_cache)
        d->backend->flush_cache(d->open);
    fx_device_wait(d);
    fx_pool_finish(&d->pool);
    d->backend->close(d->open);
    d->open = NULL;
}

const char *fx_device_uri(const fx_device *d) { return d ? d->uri : ""; }
const char *fx_device_name(const fx_device *d) { return d ? d->info.name : ""; }
const char *fx_device_driver(const fx_device *d) { return d ? d->info.driver : ""; }

const char *fx_device_kind_name(const fx_device *d) {
    static const char *const names[] = {"discrete GPU", "integrated GPU", "virtual GPU", "CPU", "software", "reference"};
    return d && (unsigned)d->info.kind < sizeof names / sizeof *names ? names[d->info.kind] : "?";
}

fx_status fx_device_supports(fx_device *d, fx_dtype t) {
    FX_TRY(fx_device_open(d));
    size_t size = fx_dtype_size(t);
    const char *feature = NULL;
    if (!size)
        return fx_fail(FX_INVALID_ARGUMENT, "element type; expected one of fx_dtype; got %d", (int)t);
    if (!d->backend)
        return FX_OK;
    if (t == FX_F64 && !d->caps.f64)
        feature = "64-bit floats (shaderFloat64)";
    else if (t != FX_BOOL && size == 8 && !fx_dtype_is_float(t) && !d->caps.int64)
        feature = "64-bit integers (shaderInt64)";
    else if (t != FX_BOOL && size == 1 && !d->caps.storage8)
        feature = "8-bit storage";
    else if (size == 2 && !d->caps.storage16)
        feature = "16-bit storage";
    if (feature)
        return fx_fail(FX_UNSUPPORTED, "element type %s on %s (%s): the device lacks %s; convert to another type",
                       fx_dtype_name(t), d->uri, d->info.name, feature);
    return FX_OK;
}

fx_status fx_device_memory(fx_device *d, fx_memory_stats *out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_device_memory: out; expected an address for the figures; got NULL");
    memset(out, 0, sizeof *out);
    FX_TRY(fx_device_open(d));
    if (!d->backend) {
        out->in_use = out->arrays = atomic_load(&d->host_in_use);
        out->peak = atomic_load(&d->host_peak);
        return FX_OK;
    }
    pthread_mutex_lock(&d->pool.lock);
    *out = (fx_memory_stats){d->pool.limit,    d->pool.in_use,             d->pool.peak,
                             d->pool.reserved, d->pool.use[FX_USE_ARRAY],  d->pool.use[FX_USE_ARENA]};
    pthread_mutex_unlock(&d->pool.lock);
    return FX_OK;
}

fx_status fx_device_wait(fx_device *d) {
    uint64_t ticket;
    bool done;
    if (!d)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_device_wait: device; expected one of the context's; got NULL");
    if (!d->open)
        return FX_OK;
    FX_TRY(d->backend->submit(d->open, 0, NULL, &ticket));
    return d->backend->wait(d->open, ticket, UINT64_MAX, &done);
}
