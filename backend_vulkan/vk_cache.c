/* vk_cache.c - the disk cache: SPIR-V and the driver's pipeline cache, one file an entry.
 *
 * An entry has a header of ours with length and checksum; what does not match in every byte is treated
 * as absent. Files appear by renaming a finished temporary one, so that any number of processes may share
 * the folder. The folder is kept below a size by removing what was not used for longest. No failure here is
 * an error: without a cache kernels are compiled again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_vulkan/vk.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 64, DAY = 24 * 3600, STALE = 3600, MOST_FILES = 16384 };
#define MOST_BYTES ((off_t)512 << 20)
#define LARGEST_ENTRY ((off_t)1 << 30)

typedef struct header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t key_lo, key_hi;
    uint64_t bytes, checksum; /* of the payload */
    uint64_t header_checksum; /* of all above */
} header;

static header make_header(vk_key key, const void *data, size_t bytes) {
    header h = {.magic = {'F', 'X', 'C', 'A', 'C', 'H', 'E', '\n'},
                .version = 2,
                .header_bytes = sizeof h,
                .key_lo = key.lo,
                .key_hi = key.hi,
                .bytes = bytes,
                .checksum = XXH64(data, bytes, 0)};
    h.header_checksum = XXH64(&h, offsetof(header, header_checksum), 0);
    return h;
}

static bool make_folders(char *path) {
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char c = *p;
        *p = '\0';
        bool ok = mkdir(path, 0700) == 0 || errno == EEXIST;
        *p = c;
        if (!ok && c == '\0')
            return false;
        if (c == '\0')
            return true;
    }
}

char *fx_vk_cache_dir_make(const char *cache_dir) {
    char path[PATH_SIZE];
    struct stat s;
    if (!cache_dir || !*cache_dir)
        return NULL;
    int n = snprintf(path, sizeof path, "%s/vulkan", cache_dir);
    if (n < 0 || (size_t)n >= sizeof path - 128 || !make_folders(path))
        return NULL;
    /* A folder that others can write to may hold anything. */
    if (stat(path, &s) != 0 || !S_ISDIR(s.st_mode) || (s.st_mode & 0022) || (s.st_uid != geteuid() && s.st_uid != 0))
        return NULL;
    return strdup(path);
}

static void entry_path(char *path, const char *dir, const char *kind, vk_key key) {
    snprintf(path, PATH_SIZE, "%s/%s-%016llx%016llx", dir, kind, (unsigned long long)key.hi,
             (unsigned long long)key.lo);
}

static bool read_all(int fd, void *data, size_t bytes) {
    for (char *p = data; bytes;) {
        ssize_t n = read(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_all(int fd, const void *data, size_t bytes) {
    for (const char *p = data; bytes;) {
        ssize_t n = write(fd, p, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

void *fx_vk_cache_read(const char *dir, const char *kind, vk_key key, size_t *bytes, uint64_t *checksum) {
    char path[PATH_SIZE];
    struct stat s;
    header h;
    void *data = NULL;
    *bytes = 0;
    if (!dir)
        return NULL;
    entry_path(path, dir, kind, key);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size >= (off_t)sizeof h && s.st_size <= LARGEST_ENTRY &&
        read_all(fd, &h, sizeof h)) {
        size_t n = (size_t)s.st_size - sizeof h;
        data = malloc(n ? n : 1);
        if (data && read_all(fd, data, n)) {
            header right = make_header(key, data, n);
            if (memcmp(&right, &h, sizeof h) == 0)
                *bytes = n;
        }
    }
    if (*bytes && s.st_mtime < time(NULL) - DAY)
        futimens(fd, NULL); /* used again: keep it */
    close(fd);
    if (!*bytes) {
        free(data);
        return NULL;
    }
    if (checksum)
        *checksum = h.checksum;
    return data;
}

void fx_vk_cache_write(const char *dir, const char *kind, vk_key key, const void *data, size_t bytes) {
    char path[PATH_SIZE], temporary[PATH_SIZE];
    if (!dir || !bytes)
        return;
    entry_path(path, dir, kind, key);
    snprintf(temporary, sizeof temporary, "%.*s/temporary-XXXXXX", PATH_SIZE - 32, dir);
    header h = make_header(key, data, bytes);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return;
    bool good = write_all(fd, &h, sizeof h) && write_all(fd, data, bytes);
    good &= close(fd) == 0;
    if (!good || rename(temporary, path) != 0)
        unlink(temporary);
}

/* ---- size of the folder ---- */

typedef struct file {
    char name[NAME_SIZE];
    time_t used;
    off_t bytes;
} file;

static int older_first(const void *a, const void *b) {
    time_t x = ((const file *)a)->used, y = ((const file *)b)->used;
    return (x > y) - (x < y);
}

/* Removes temporary files that a dead process left, and, when the folder has grown too large, the entries that were
 * not used for longest, down to half. */
static void prune(const char *dir) {
    file *files = NULL;
    size_t n = 0, room = 0;
    off_t total = 0;
    DIR *open_dir = opendir(dir);
    if (!open_dir)
        return;
    for (struct dirent *e; (e = readdir(open_dir));) {
        struct stat s;
        bool temporary = strncmp(e->d_name, "temporary-", 10) == 0;
        if (e->d_name[0] == '.' || strlen(e->d_name) >= NAME_SIZE ||
            fstatat(dirfd(open_dir), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode))
            continue;
        if (temporary) {
            if (s.st_mtime < time(NULL) - STALE)
                unlinkat(dirfd(open_dir), e->d_name, 0);
            continue;
        }
        if (n == room) {
            size_t more = room ? room * 2 : 256;
            file *moved = realloc(files, more * sizeof *files);
            if (!moved)
                break;
            files = moved;
            room = more;
        }
        files[n] = (file){.used = s.st_mtime, .bytes = s.st_size};
        memcpy(files[n++].name, e->d_name, strlen(e->d_name) + 1);
        total += s.st_size;
    }
    if (n > MOST_FILES || total > MOST_BYTES) {
        size_t left = n;
        qsort(files, n, sizeof *files, older_first);
        for (size_t i = 0; i < n && (left > MOST_FILES / 2 || total > MOST_BYTES / 2); i++, left--) {
            unlinkat(dirfd(open_dir), files[i].name, 0);
            total -= files[i].bytes;
        }
    }
    closedir(open_dir);
    free(files);
}

/* ---- the driver's pipeline cache ---- */

static vk_key pipelines_key(const vk_gpu *g) {
    struct {
        uint32_t vendor, device, driver, api;
        uint8_t cache[VK_UUID_SIZE], uuid[VK_UUID_SIZE];
    } facts = {g->props.vendorID, g->props.deviceID, g->props.driverVersion, g->props.apiVersion, {0}, {0}};
    memcpy(facts.cache, g->props.pipelineCacheUUID, VK_UUID_SIZE);
    memcpy(facts.uuid, g->info.uuid, VK_UUID_SIZE);
    XXH128_hash_t h = XXH3_128bits(&facts, sizeof facts);
    return (vk_key){h.low64, h.high64};
}

static VkResult make_cache(fx_bdevice *d, const void *data, size_t bytes, VkPipelineCache *out) {
    VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = bytes, .pInitialData = data};
    *out = VK_NULL_HANDLE;
    return d->vk.vkCreatePipelineCache(d->handle, &info, NULL, out);
}

fx_status fx_vk_pipeline_cache_open(fx_bdevice *d) {
    size_t bytes;
    void *data = fx_vk_cache_read(d->cache_dir, "pipelines", pipelines_key(d->gpu), &bytes, &d->pipelines_read);
    VkResult r = make_cache(d, data, bytes, &d->pipelines);
    if (r != VK_SUCCESS && data)
        r = make_cache(d, NULL, 0, &d->pipelines);
    free(data);
    return fx_vk_check(d, r, "making a pipeline cache");
}

/* A new cache of what this device compiled and of what others wrote since it was opened; NULL on failure. */
static VkPipelineCache merged(fx_bdevice *d, vk_key key) {
    size_t bytes;
    uint64_t checksum = 0;
    VkPipelineCache out = VK_NULL_HANDLE;
    void *data = fx_vk_cache_read(d->cache_dir, "pipelines", key, &bytes, &checksum);
    if (data && checksum != d->pipelines_read && make_cache(d, data, bytes, &out) == VK_SUCCESS &&
        d->vk.vkMergePipelineCaches(d->handle, out, 1, &d->pipelines) != VK_SUCCESS) {
        d->vk.vkDestroyPipelineCache(d->handle, out, NULL);
        out = VK_NULL_HANDLE;
    }
    free(data);
    return out;
}

void fx_vk_pipeline_cache_flush(fx_bdevice *d) {
    if (!d || !d->cache_dir || atomic_load(&d->lost) || !atomic_exchange(&d->pipelines_made, 0))
        return;
    vk_key key = pipelines_key(d->gpu);
    VkPipelineCache other = merged(d, key), from = other ? other : d->pipelines;
    size_t bytes = 0;
    void *data = NULL;
    if (d->vk.vkGetPipelineCacheData(d->handle, from, &bytes, NULL) == VK_SUCCESS && bytes && (data = malloc(bytes)) &&
        d->vk.vkGetPipelineCacheData(d->handle, from, &bytes, data) == VK_SUCCESS)
        fx_vk_cache_write(d->cache_dir, "pipelines", key, data, bytes);
    free(data);
    d->vk.vkDestroyPipelineCache(d->handle, other, NULL);
    prune(d->cache_dir);
}
