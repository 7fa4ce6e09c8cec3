/* cache.c - the disk cache: a folder a backend, one file an entry.
 *
 * An entry has a header of ours with length and checksum, or a name that is the hash of its bytes; what does not
 * match in every byte is treated as absent. Files appear by renaming a finished temporary one, so that any number of processes may share
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

#include "core/base/cache.h"

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

static header make_header(fx_cache_key key, const void *data, size_t bytes) {
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

char *fx_cache_dir_make(const char *cache_dir, const char *backend) {
    char path[PATH_SIZE];
    struct stat s;
    if (!cache_dir || !*cache_dir)
        return NULL;
    int n = snprintf(path, sizeof path, "%s/%s", cache_dir, backend);
    if (n < 0 || (size_t)n >= sizeof path - 128 || !make_folders(path))
        return NULL;
    /* A folder that others can write to may hold anything. */
    if (stat(path, &s) != 0 || !S_ISDIR(s.st_mode) || (s.st_mode & 0022) || (s.st_uid != geteuid() && s.st_uid != 0))
        return NULL;
    return strdup(path);
}

static void entry_path(char *path, const char *dir, const char *kind, fx_cache_key key) {
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

/* The bytes of an open file, malloc'd; NULL when it is not a regular file of at least one byte. */
static void *contents(int fd, size_t *bytes) {
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size < 1 || s.st_size > LARGEST_ENTRY)
        return NULL;
    *bytes = (size_t)s.st_size;
    void *data = malloc(*bytes);
    if (data && !read_all(fd, data, *bytes)) {
        free(data);
        data = NULL;
    }
    return data;
}

void *fx_file_bytes(const char *path, size_t *bytes) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NULL;
    void *data = contents(fd, bytes);
    close(fd);
    return data;
}

/* Marks a file as used, once a day. */
static void touch(int fd) {
    struct stat s;
    if (fstat(fd, &s) == 0 && s.st_mtime < time(NULL) - DAY)
        futimens(fd, NULL);
}

/* -1 when it is not there. */
static int open_entry(char *path, const char *dir, const char *kind, fx_cache_key key) {
    if (!dir)
        return -1;
    entry_path(path, dir, kind, key);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

void *fx_cache_read(const char *dir, const char *kind, fx_cache_key key, size_t *bytes, uint64_t *checksum) {
    char path[PATH_SIZE];
    size_t n = 0;
    *bytes = 0;
    int fd = open_entry(path, dir, kind, key);
    if (fd < 0)
        return NULL;
    char *data = contents(fd, &n);
    header right;
    if (data && n > sizeof right) {
        right = make_header(key, data + sizeof right, n - sizeof right);
        if (memcmp(&right, data, sizeof right) == 0)
            *bytes = n - sizeof right;
    }
    if (*bytes)
        touch(fd);
    close(fd);
    if (!*bytes) {
        free(data);
        return NULL;
    }
    memmove(data, data + sizeof right, *bytes);
    if (checksum)
        *checksum = right.checksum;
    return data;
}

/* Two parts into a new file that then takes the name `path`. */
static bool write_file(const char *dir, const char *path, const void *first, size_t n_first, const void *data, size_t bytes) {
    char temporary[PATH_SIZE];
    snprintf(temporary, sizeof temporary, "%.*s/temporary-XXXXXX", PATH_SIZE - 32, dir);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = write_all(fd, first, n_first) && write_all(fd, data, bytes);
    good &= close(fd) == 0;
    good = good && rename(temporary, path) == 0;
    if (!good)
        unlink(temporary);
    return good;
}

void fx_cache_write(const char *dir, const char *kind, fx_cache_key key, const void *data, size_t bytes) {
    char path[PATH_SIZE];
    if (!dir || !bytes)
        return;
    entry_path(path, dir, kind, key);
    header h = make_header(key, data, bytes);
    write_file(dir, path, &h, sizeof h, data, bytes);
}

fx_cache_key fx_cache_hash(const void *data, size_t bytes) {
    XXH128_hash_t h = XXH3_128bits(data, bytes);
    return (fx_cache_key){h.low64, h.high64};
}

char *fx_cache_file(const char *dir, const char *kind, fx_cache_key key) {
    char path[PATH_SIZE];
    size_t n = 0;
    int fd = open_entry(path, dir, kind, key);
    if (fd < 0)
        return NULL;
    void *data = contents(fd, &n);
    fx_cache_key is = data ? fx_cache_hash(data, n) : (fx_cache_key){0, 0};
    bool good = data && is.lo == key.lo && is.hi == key.hi;
    if (good)
        touch(fd);
    close(fd);
    free(data);
    return good ? strdup(path) : NULL;
}

char *fx_cache_file_write(const char *dir, const char *kind, const void *data, size_t bytes, fx_cache_key *key) {
    char path[PATH_SIZE];
    if (!dir || !bytes)
        return NULL;
    *key = fx_cache_hash(data, bytes);
    entry_path(path, dir, kind, *key);
    return write_file(dir, path, NULL, 0, data, bytes) ? strdup(path) : NULL;
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

void fx_cache_prune(const char *dir) {
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
