/* file.h - the operating system's files for the readers and writers: maps, atomic writes, folder lists.
 *
 * The only place in core/io that calls the operating system. Paths and names in messages pass through
 * fx_quote, so that a hostile name cannot drive a terminal. */
#ifndef FX_IO_FILE_H
#define FX_IO_FILE_H

#include "core/base/error.h"
#include "fornax/io.h"

/* Text for a message: at most 80 bytes of s in double quotes, control and non-ASCII bytes as \xNN. One buffer a call.
 */
typedef struct fx_quoted {
    char text[384];
} fx_quoted;
fx_quoted fx_quote(const char *s);
#define FX_QUOTE(s) (fx_quote(s).text)

/* A file's bytes, read-only. data is never NULL. */
typedef struct fx_file_map {
    const unsigned char *data;
    size_t size;
    enum { FX_FILE_CONSTANT, FX_FILE_MAPPED, FX_FILE_ALLOCATED } kind; /* constant: an empty file */
} fx_file_map;
/* Regular files only: folders, pipes and devices are refused. A mapped file must not be shortened while it is open. */
fx_status fx_file_map_open(const char *path, fx_file_map *out);
/* The same by reading into memory: for small files that others may replace at any time. */
fx_status fx_file_read(const char *path, fx_file_map *out);
void fx_file_map_close(fx_file_map *map);

/* Atomic replacement of `path`. After begin, exactly one of commit and abort must be called; commit aborts when it
 * fails. A path that names a device is written directly. begin removes the temporary files that killed processes left
 * when they wrote the same path. */
typedef struct fx_file_writer {
    int fd;
    char *path, *temp; /* temp NULL: written directly */
} fx_file_writer;
fx_status fx_file_begin(const char *path, fx_file_writer *w);
fx_status fx_file_write(fx_file_writer *w, const void *data, size_t size); /* does not abort */
fx_status fx_file_commit(fx_file_writer *w);
void fx_file_abort(fx_file_writer *w);
/* All of it in one call. */
fx_status fx_file_replace(const char *path, const void *data, size_t size);

/* Entries of a folder, without those that begin with ".", in byte order of their names. Links are followed.
 * Free with fx_entries_free. */
typedef struct fx_entry {
    char *name;
    bool folder;
} fx_entry;
typedef struct fx_entries {
    fx_entry *items;
    size_t count;
} fx_entries;
fx_status fx_folder_list(const char *path, fx_entries *out);
void fx_entries_free(fx_entries *entries);
bool fx_file_exists(const char *path); /* a regular file */
bool fx_folder_exists(const char *path);

/* "dir/name" in new memory, NULL when out of memory. */
char *fx_path_join(const char *dir, const char *name);
char *fx_strdup(const char *s);

/* FX_INVALID_ARGUMENT when an argument is NULL; what: "function: argument". */
static inline fx_status fx_need(const void *argument, const char *what) {
    return argument ? FX_OK : fx_fail(FX_INVALID_ARGUMENT, "%s; expected an address; got NULL", what);
}

/* The same for bytes that are read: none need no address. */
static inline fx_status fx_need_bytes(const void *data, size_t size, const char *what) {
    return size ? fx_need(data, what) : FX_OK;
}

/* a * b into *out; false on overflow. */
static inline bool fx_mul_size(size_t a, size_t b, size_t *out) {
    return !__builtin_mul_overflow(a, b, out);
}

/* Fills dst from a caller's option struct, of which only struct_size bytes are there; the rest keeps the defaults
 * already in dst. src NULL: all defaults. */
fx_status fx_options_take(void *dst, size_t size, const void *src, const char *type);

/* Bytes of an array, with FX_INVALID_ARGUMENT for a bad type, rank, dimension or an overflow. */
fx_status fx_spec_bytes(const fx_spec *spec, size_t *bytes);
/* Allocates zeroed data for spec (at least one byte). */
fx_status fx_host_array_make(const fx_spec *spec, fx_host_array *out);

#endif
