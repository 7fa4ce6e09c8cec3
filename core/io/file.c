/* file.c - maps, atomic writes and folder lists on POSIX. */
#include "core/io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

fx_quoted fx_quote(const char *s) {
    fx_quoted q;
    size_t n = 0, i = 0;
    q.text[n++] = '"';
    for (; i < 80 && s[i]; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c < 32 || c > 126)
            n += (size_t)snprintf(q.text + n, 5, "\\x%02x", c);
        else
            q.text[n++] = (char)c;
    }
    strcpy(q.text + n, s[i] ? "...\"" : "\"");
    return q;
}

static fx_status fail_errno(const char *what, const char *path, int code) {
    fx_status status = code == ENOENT || code == ENOTDIR ? FX_NOT_FOUND
                       : code == ENOMEM                  ? FX_OUT_OF_MEMORY
                                                         : FX_IO_ERROR;
    return fx_fail(status, "%s %s: %s", what, FX_QUOTE(path), strerror(code));
}

/* open() that survives signals and does not hang on a pipe. */
static int open_retry(const char *path, int flags, mode_t mode) {
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static fx_status map_contents(int fd, const char *path, size_t size, fx_file_map *out) {
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return fail_errno("cannot map", path, errno);
    *out = (fx_file_map){p, size, FX_FILE_MAPPED};
    return FX_OK;
}

static fx_status read_contents(int fd, const char *path, size_t size, fx_file_map *out) {
    unsigned char *p = malloc(size);
    if (!p)
        return fx_fail_oom(size);
    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, p + at, size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            free(p);
            return n < 0 ? fail_errno("cannot read", path, errno)
                         : fx_fail(FX_IO_ERROR, "cannot read %s: it was shortened meanwhile", FX_QUOTE(path));
        }
        at += (size_t)n;
    }
    *out = (fx_file_map){p, size, FX_FILE_ALLOCATED};
    return FX_OK;
}

static fx_status take_contents(const char *path, bool map, fx_file_map *out) {
    *out = (fx_file_map){(const unsigned char *)"", 0, FX_FILE_CONSTANT};
    if (!path || !*path)
        return fx_fail(FX_INVALID_ARGUMENT, "reading a file; expected a path; got an empty one");
    int fd = open_retry(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return fail_errno("cannot open", path, errno);
    fx_status status = FX_OK;
    struct stat st;
    if (fstat(fd, &st) != 0)
        status = fail_errno("cannot examine", path, errno);
    else if (!S_ISREG(st.st_mode))
        status = fx_fail(FX_IO_ERROR, "cannot read %s; expected a regular file; got %s", FX_QUOTE(path),
                         S_ISDIR(st.st_mode) ? "a folder" : "a pipe or device");
    else if ((uintmax_t)st.st_size > SIZE_MAX / 2)
        status = fx_fail(FX_IO_ERROR, "cannot read %s: too large for this machine", FX_QUOTE(path));
    else if (st.st_size > 0)
        status = (map ? map_contents : read_contents)(fd, path, (size_t)st.st_size, out);
    close(fd);
    return status;
}

fx_status fx_file_map_open(const char *path, fx_file_map *out) {
    return take_contents(path, true, out);
}

fx_status fx_file_read(const char *path, fx_file_map *out) {
    return take_contents(path, false, out);
}

void fx_file_map_close(fx_file_map *map) {
    if (map->kind == FX_FILE_MAPPED)
        munmap((void *)(uintptr_t)map->data, map->size);
    else if (map->kind == FX_FILE_ALLOCATED)
        free((void *)(uintptr_t)map->data);
    *map = (fx_file_map){(const unsigned char *)"", 0, FX_FILE_CONSTANT};
}

/* Is `name` what a writer of `base`, whose process no longer lives, calls its temporary file: "base.PID.N.tmp"? */
static bool is_stale(const char *name, const char *base) {
    static const char digits[] = "0123456789";
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || name[n] != '.')
        return false;
    const char *pid = name + n + 1;
    size_t pid_len = strspn(pid, digits);
    if (!pid_len || pid_len > 9 || pid[pid_len] != '.')
        return false;
    size_t count_len = strspn(pid + pid_len + 1, digits);
    if (!count_len || count_len > 3 || strcmp(pid + pid_len + 1 + count_len, ".tmp") != 0)
        return false;
    long id = strtol(pid, NULL, 10);
    return id > 0 && kill((pid_t)id, 0) != 0 && errno == ESRCH;
}

/* Removes what killed writers of `path` left beside it. A writer holds a lock on its file for as long as it lives,
 * which protects one in another container, whose process can't be seen. Failures don't matter. */
static void remove_stale(const char *path) {
    const char *slash = strrchr(path, '/');
    char *dir = slash == path ? fx_strdup("/") : slash ? strndup(path, (size_t)(slash - path)) : fx_strdup(".");
    DIR *open_dir = dir ? opendir(dir) : NULL;
    for (struct dirent *e; open_dir && (e = readdir(open_dir));) {
        struct stat st;
        if (!is_stale(e->d_name, slash ? slash + 1 : path))
            continue;
        int fd = openat(dirfd(open_dir), e->d_name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
            unlinkat(dirfd(open_dir), e->d_name, 0);
        close(fd);
    }
    if (open_dir)
        closedir(open_dir);
    free(dir);
}

/* Locks a temporary file just made; false when somebody took it for stale before it was locked. */
static bool lock_temporary(int fd) {
    struct stat st;
    flock(fd, LOCK_EX | LOCK_NB); /* file systems without locks do without */
    return fstat(fd, &st) != 0 || st.st_nlink > 0;
}

fx_status fx_file_begin(const char *path, fx_file_writer *w) {
    *w = (fx_file_writer){-1, NULL, NULL};
    if (!path || !*path)
        return fx_fail(FX_INVALID_ARGUMENT, "writing a file; expected a path; got an empty one");
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return fx_fail(FX_IO_ERROR, "cannot write %s: it is a folder; give a file name", FX_QUOTE(path));
    w->path = exists ? realpath(path, NULL) : fx_strdup(path); /* a link keeps being a link: its target is replaced */
    if (!w->path)
        return fail_errno("cannot write", path, errno);
    if (exists && !S_ISREG(st.st_mode)) {
        w->fd = open_retry(path, O_WRONLY, 0);
    } else {
        size_t size = strlen(w->path) + 48;
        if (!(w->temp = malloc(size))) {
            fx_file_abort(w);
            return fx_fail_oom(size);
        }
        remove_stale(w->path);
        for (unsigned i = 0; i < 1000; i++) {
            snprintf(w->temp, size, "%s.%ld.%u.tmp", w->path, (long)getpid(), i);
            w->fd = open_retry(w->temp, O_WRONLY | O_CREAT | O_EXCL, exists ? (st.st_mode & 0777) | S_IWUSR : 0666);
            if (w->fd >= 0 ? lock_temporary(w->fd) : errno != EEXIST)
                break;
            if (w->fd >= 0) {
                close(w->fd);
                w->fd = -1;
                errno = EEXIST;
            }
        }
    }
    if (w->fd < 0) {
        fx_status status = fail_errno("cannot write", path, errno);
        free(w->temp); /* not ours to unlink */
        w->temp = NULL;
        fx_file_abort(w);
        return status;
    }
    return FX_OK;
}

fx_status fx_file_write(fx_file_writer *w, const void *data, size_t size) {
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(w->fd, p, size < (1u << 30) ? size : 1u << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno("cannot write", w->path, errno);
        p += n;
        size -= (size_t)n;
    }
    return FX_OK;
}

/* Makes a rename durable. Some file systems cannot sync a folder; that is no error. */
static void sync_folder_of(const char *path) {
    char *dir = fx_strdup(path);
    if (!dir)
        return;
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    int fd = open_retry(slash ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(dir);
}

fx_status fx_file_commit(fx_file_writer *w) {
    fx_status status = FX_OK;
    if (w->temp && fsync(w->fd) != 0)
        status = fail_errno("cannot flush", w->path, errno);
    int failed = close(w->fd);
    w->fd = -1;
    if (status == FX_OK && failed)
        status = fail_errno("cannot write", w->path, errno);
    if (status == FX_OK && w->temp) {
        if (rename(w->temp, w->path) != 0) {
            status = fail_errno("cannot replace", w->path, errno);
        } else {
            sync_folder_of(w->path);
            free(w->temp);
            w->temp = NULL;
        }
    }
    fx_file_abort(w);
    return status;
}

void fx_file_abort(fx_file_writer *w) {
    if (w->fd >= 0)
        close(w->fd);
    if (w->temp)
        unlink(w->temp);
    free(w->temp);
    free(w->path);
    *w = (fx_file_writer){-1, NULL, NULL};
}

fx_status fx_file_replace(const char *path, const void *data, size_t size) {
    fx_file_writer w;
    FX_TRY(fx_file_begin(path, &w));
    fx_status status = fx_file_write(&w, data, size);
    if (status == FX_OK)
        return fx_file_commit(&w);
    fx_file_abort(&w);
    return status;
}

static bool has_type(const char *path, mode_t type) {
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

bool fx_file_exists(const char *path) {
    return has_type(path, S_IFREG);
}
bool fx_folder_exists(const char *path) {
    return has_type(path, S_IFDIR);
}

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const fx_entry *)a)->name, ((const fx_entry *)b)->name);
}

fx_status fx_folder_list(const char *path, fx_entries *out) {
    *out = (fx_entries){NULL, 0};
    DIR *dir = opendir(path);
    if (!dir)
        return fail_errno("cannot open folder", path, errno);
    fx_status status = FX_OK;
    size_t room = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e) {
            if (errno)
                status = fail_errno("cannot list folder", path, errno);
            break;
        }
        if (e->d_name[0] == '.')
            continue;
        if (out->count == room) {
            room = room ? 2 * room : 64;
            fx_entry *more = realloc(out->items, room * sizeof *more);
            if (!more) {
                status = fx_fail_oom(room * sizeof *more);
                break;
            }
            out->items = more;
        }
        struct stat st;
        bool folder = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
        char *name = fx_strdup(e->d_name);
        if (!name) {
            status = fx_fail_oom(strlen(e->d_name));
            break;
        }
        out->items[out->count++] = (fx_entry){name, folder};
    }
    closedir(dir);
    if (status != FX_OK)
        fx_entries_free(out);
    else if (out->count)
        qsort(out->items, out->count, sizeof *out->items, compare_entries);
    return status;
}

void fx_entries_free(fx_entries *entries) {
    for (size_t i = 0; i < entries->count; i++)
        free(entries->items[i].name);
    free(entries->items);
    *entries = (fx_entries){NULL, 0};
}

char *fx_strdup(const char *s) {
    size_t size = strlen(s) + 1;
    char *copy = malloc(size);
    return copy ? memcpy(copy, s, size) : NULL;
}

char *fx_path_join(const char *dir, const char *name) {
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/%s", dir, name);
    return path;
}
