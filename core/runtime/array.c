/* array.c - arrays: a shape and a piece of a device's memory, reference counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/runtime/profile.h"
#include "core/runtime/runtime.h"

fx_status fx_spec_check(const fx_spec *s, const char *what) {
    bool bad = !fx_dtype_size(s->dtype) || s->rank < 0 || s->rank > FX_MAX_RANK;
    for (int i = 0; !bad && i < s->rank; i++)
        bad = s->dims[i] < 0;
    if (bad)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: spec; expected an element type, rank 0 to %d and dimensions of 0 or more; got %s rank %d",
                       what, FX_MAX_RANK, fx_dtype_name(s->dtype), s->rank);
    int64_t n = fx_spec_count(s);
    if (n < 0 || n > INT64_MAX / 16)
        return fx_fail(FX_INVALID_ARGUMENT, "%s: the number of elements overflows", what);
    return FX_OK;
}

static uint64_t host_bytes(const fx_spec *s) { return (uint64_t)fx_spec_count(s) * fx_dtype_size(s->dtype); }

fx_status fx_array_new(fx_device *d, const fx_spec *spec, bool soon, fx_array **out) {
    char text[48];
    *out = NULL;
    FX_TRY(fx_spec_check(spec, "array"));
    FX_TRY(fx_device_supports(d, spec->dtype));
    fx_array *a = calloc(1, sizeof *a);
    if (!a)
        return fx_fail_oom(sizeof *a);
    atomic_init(&a->refs, 1);
    a->device = d;
    a->spec = *spec;
    fx_status st = FX_OK;
    if (d->backend) {
        a->bytes = fx_device_bytes(spec, &d->caps);
        fx_spec_format(spec, text, sizeof text);
        st = fx_pool_alloc(&d->pool, a->bytes, soon ? FX_USE_ARRAY_SOON : FX_USE_ARRAY, text, &a->piece);
    } else {
        a->bytes = host_bytes(spec);
        a->host = calloc(1, a->bytes ? a->bytes : 1);
        st = a->host ? FX_OK : fx_fail_oom(a->bytes);
        unsigned long long now = atomic_fetch_add(&d->host_in_use, a->bytes) + a->bytes, peak = atomic_load(&d->host_peak);
        while (now > peak && !atomic_compare_exchange_weak(&d->host_peak, &peak, now))
            ;
    }
    if (st != FX_OK) {
        if (!d->backend)
            atomic_fetch_sub(&d->host_in_use, a->bytes);
        free(a);
        return st;
    }
    *out = a;
    return FX_OK;
}

fx_array *fx_array_ref(fx_array *a) {
    if (a)
        atomic_fetch_add(&a->refs, 1);
    return a;
}

void fx_array_unref(fx_array *a) {
    if (!a || atomic_fetch_sub(&a->refs, 1) != 1)
        return;
    if (a->device->backend)
        fx_pool_free(&a->device->pool, &a->piece);
    else
        atomic_fetch_sub(&a->device->host_in_use, a->bytes);
    free(a->host);
    free(a);
}

fx_spec fx_array_spec(const fx_array *a) { return a ? a->spec : (fx_spec){FX_TUPLE, 0, {0}}; }
fx_device *fx_array_device(const fx_array *a) { return a ? a->device : NULL; }

static fx_status check_bytes(const fx_array *a, const void *data, size_t bytes, const char *what) {
    char s[128];
    if (!a || (!data && bytes))
        return fx_fail(FX_INVALID_ARGUMENT, "%s: %s is NULL", what, a ? "data" : "the array");
    if (bytes != host_bytes(&a->spec))
        return fx_fail(FX_INVALID_ARGUMENT, "%s: bytes; expected %llu for %s; got %zu", what,
                       (unsigned long long)host_bytes(&a->spec), fx_spec_format(&a->spec, s, sizeof s), bytes);
    return FX_OK;
}

/* Does the device store this array's elements as words where the host has bytes? */
static bool widened(const fx_array *a) { return a->device->backend && a->spec.dtype == FX_BOOL && a->device->caps.bool_is_word; }

/* Copies device-layout bytes in. fresh: only work that had the memory before may still use it, not the array's own. */
static fx_status upload(fx_array *a, const void *data, uint64_t bytes, bool fresh) {
    const fx_backend *b = a->device->backend;
    const fx_piece *p = &a->piece;
    uint64_t began = fx_profile_now();
    fx_status st = fresh && b->upload_after ? b->upload_after(a->device->open, p->after, p->mem, p->offset, data, bytes, NULL)
                                            : b->upload(a->device->open, p->mem, p->offset, data, bytes, NULL);
    fx_profile_host("upload", began);
    return st;
}

static fx_status write(fx_array *a, const void *data, size_t bytes, bool fresh) {
    if (!bytes)
        return FX_OK;
    if (!a->device->backend) {
        memcpy(a->host, data, bytes);
        return FX_OK;
    }
    if (!widened(a))
        return upload(a, data, bytes, fresh);
    uint32_t *words = malloc(bytes * 4);
    if (!words)
        return fx_fail_oom(bytes * 4);
    for (size_t i = 0; i < bytes; i++)
        words[i] = ((const uint8_t *)data)[i] != 0;
    fx_status st = upload(a, words, bytes * 4, fresh);
    free(words);
    return st;
}

fx_status fx_array_write(fx_array *a, const void *data, size_t bytes) {
    FX_TRY(check_bytes(a, data, bytes, "fx_array_write"));
    return write(a, data, bytes, false);
}

static fx_status download(fx_array *a, void *data, uint64_t bytes) {
    uint64_t began = fx_profile_now();
    fx_status st = a->device->backend->download(a->device->open, a->piece.mem, a->piece.offset, data, bytes);
    fx_profile_host("download", began);
    return st;
}

fx_status fx_array_read(fx_array *a, void *data, size_t bytes) {
    FX_TRY(check_bytes(a, data, bytes, "fx_array_read"));
    if (!bytes)
        return FX_OK;
    if (!a->device->backend) {
        memcpy(data, a->host, bytes);
        return FX_OK;
    }
    if (!widened(a))
        return download(a, data, bytes);
    uint32_t *words = malloc(bytes * 4);
    if (!words)
        return fx_fail_oom(bytes * 4);
    fx_status st = download(a, words, bytes * 4);
    for (size_t i = 0; i < bytes && st == FX_OK; i++)
        ((uint8_t *)data)[i] = words[i] != 0;
    free(words);
    return st;
}

fx_status fx_array_create(fx_device *d, fx_spec spec, const void *data, fx_array **out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_array_create: out; expected an address for the array; got NULL");
    *out = NULL;
    FX_TRY(fx_device_open(d));
    FX_TRY(fx_spec_check(&spec, "fx_array_create"));
    fx_array *a;
    FX_TRY(fx_array_new(d, &spec, true, &a));
    size_t bytes = host_bytes(&spec);
    void *zeros = data || !bytes ? NULL : calloc(1, bytes);
    fx_status st = data || zeros || !bytes ? FX_OK : fx_fail_oom(bytes);
    if (st == FX_OK && bytes)
        st = write(a, data ? data : zeros, bytes, true);
    free(zeros);
    if (st == FX_OK)
        *out = a;
    else
        fx_array_unref(a);
    return st;
}

fx_status fx_array_to(fx_array *a, fx_device *d, fx_array **out) {
    if (out)
        *out = NULL;
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_array_to: out; expected an address for the array; got NULL");
    if (!a || !d)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_array_to: %s is NULL", a ? "the device" : "the array");
    if (a->device == d) {
        *out = fx_array_ref(a);
        return FX_OK;
    }
    size_t bytes = host_bytes(&a->spec);
    void *data = malloc(bytes ? bytes : 1);
    if (!data)
        return fx_fail_oom(bytes);
    fx_status st = fx_array_read(a, data, bytes);
    if (st == FX_OK)
        st = fx_array_create(d, a->spec, data, out);
    free(data);
    return st;
}
