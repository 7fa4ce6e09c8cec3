/* cpu_memory.c - device allocations: host memory, aligned to 64 bytes or, in large blocks, to huge pages. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "backend_cpu/cpu.h"

#define HUGE ((uint64_t)2 << 20)
#define LARGE (2 * HUGE) /* from here on whole huge pages are mapped */

static fx_status out_of_memory(fx_bdevice *d, uint64_t bytes, const char *why) {
    uint64_t used = atomic_load(&d->allocated), limit = d->info.memory_bytes;
    return fx_backend_fail(FX_OUT_OF_MEMORY,
                           "memory of device \"%s\": %" PRIu64 " bytes asked (%s); free %" PRIu64 " bytes, %" PRIu64
                           " bytes allocated by this device; free arrays or use a smaller batch",
                           d->info.name, bytes, why, limit > used ? limit - used : 0, used);
}

/* `bytes` of anonymous memory at a multiple of the huge page size. */
static void *map(uint64_t bytes) {
    unsigned char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    uint64_t before = -(uint64_t)(uintptr_t)p & (HUGE - 1);
    if (before)
        munmap(p, before);
    munmap(p + before + bytes, HUGE - before);
    madvise(p + before, bytes, MADV_HUGEPAGE); /* a hint: small pages work too */
    return p + before;
}

static uint64_t rounded(uint64_t bytes) {
    uint64_t unit = bytes >= LARGE ? HUGE : 64;
    return bytes ? (bytes + unit - 1) & ~(unit - 1) : 64;
}

fx_status fx_cpu_mem_alloc(fx_bdevice *d, uint64_t bytes, fx_mem_kind kind, fx_mem *out) {
    (void)kind; /* both kinds are the same memory */
    *out = (fx_mem){0};
    if (d->inject.oom && atomic_fetch_add(&d->n_allocs, 1) + 1 == d->inject.oom)
        return out_of_memory(d, bytes, "injected by FORNAX_INJECT");
    if (bytes > d->caps.max_allocation)
        return out_of_memory(d, bytes, "more than this process may have");
    uint64_t size = rounded(bytes), now = atomic_fetch_add(&d->allocated, size) + size;
    const char *why = NULL;
    void *p = NULL;
    if (now > d->info.memory_bytes)
        why = "with the rest more than this process may have";
    else if (size >= LARGE && size > fx_cpu_memory_free())
        why = "more than the machine has free";
    else if (!(p = size >= LARGE ? map(size) : aligned_alloc(64, size)))
        why = "refused by the system";
    if (why) {
        atomic_fetch_sub(&d->allocated, size);
        return out_of_memory(d, bytes, why);
    }
    uint64_t peak = atomic_load(&d->peak);
    while (now > peak && !atomic_compare_exchange_weak(&d->peak, &peak, now))
        ;
    *out = (fx_mem){.address = (uint64_t)(uintptr_t)p, .host = p, .bytes = bytes ? bytes : 4, .handle = p};
    return FX_OK;
}

void fx_cpu_mem_free(fx_bdevice *d, fx_mem *mem) {
    if (!mem || !mem->handle)
        return;
    uint64_t size = rounded(mem->bytes);
    atomic_fetch_sub(&d->allocated, size);
    if (size >= LARGE)
        munmap(mem->handle, size);
    else
        free(mem->handle);
    *mem = (fx_mem){0};
}

void fx_cpu_mem_stats(fx_bdevice *d, fx_mem_stats *out) {
    uint64_t used = atomic_load(&d->allocated), more = fx_cpu_memory_free();
    uint64_t budget = used + more;
    *out = (fx_mem_stats){.budget = more && budget < d->info.memory_bytes ? budget : d->info.memory_bytes,
                          .driver_use = used,
                          .allocated = used,
                          .peak = atomic_load(&d->peak)};
}
