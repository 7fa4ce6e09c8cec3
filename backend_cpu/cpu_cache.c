/* cpu_cache.c - kernels in the disk cache: an entry for each kernel names the object file that holds it.
 *
 * An object is named by the hash of its bytes, which is compared before it is loaded, so that processes that write the
 * same kernels at once do no harm, and an object that was shortened or changed counts as absent. */
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/cpu.h"

bool fx_cpu_cache_find(fx_bdevice *d, fx_cache_key kernel, fx_cache_key *file) {
    size_t bytes;
    void *entry = fx_cache_read(d->cache_dir, "kernel", kernel, &bytes, NULL);
    bool found = entry && bytes == sizeof *file;
    if (found)
        memcpy(file, entry, sizeof *file);
    free(entry);
    return found;
}

char *fx_cpu_cache_object(fx_bdevice *d, fx_cache_key file) { return fx_cache_file(d->cache_dir, "object", file); }

char *fx_cpu_cache_keep(fx_bdevice *d, const char *object, int n, const cpu_text *const *texts) {
    size_t bytes = 0;
    fx_cache_key file;
    void *data = d->cache_dir ? fx_file_bytes(object, &bytes) : NULL;
    char *path = data ? fx_cache_file_write(d->cache_dir, "object", data, bytes, &file) : NULL;
    free(data);
    for (int i = 0; i < n && path; i++)
        fx_cache_write(d->cache_dir, "kernel", texts[i]->key, &file, sizeof file);
    if (path)
        atomic_store(&d->cache_grown, true);
    return path;
}
