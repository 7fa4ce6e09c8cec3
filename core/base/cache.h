/* cache.h - the disk cache that backends keep compiled kernels in: a private folder a backend, files that are whole or
 * absent. Any number of processes may share a folder. No failure is an error: without a cache kernels are compiled again. */
#ifndef FX_BASE_CACHE_H
#define FX_BASE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fx_cache_key {
    uint64_t lo, hi;
} fx_cache_key;

/* Makes the private folder `backend` under `cache_dir`. Its path, malloc'd; NULL: no cache (none asked for, or the folder
 * belongs to others or can be written to by them). */
char *fx_cache_dir_make(const char *cache_dir, const char *backend);
/* The payload of an entry, malloc'd, or NULL: absent, damaged, foreign. checksum may be NULL. */
void *fx_cache_read(const char *dir, const char *kind, fx_cache_key key, size_t *bytes, uint64_t *checksum);
/* Writes an entry atomically. Failure (full disk, no permission) leaves the cache as it was. */
void fx_cache_write(const char *dir, const char *kind, fx_cache_key key, const void *data, size_t bytes);

/* Files without a header, for what others than we must be able to open. `key` is the hash of the bytes, by which they are
 * found and checked. The path, malloc'd; NULL: absent, damaged, or not to be written. */
fx_cache_key fx_cache_hash(const void *data, size_t bytes);
char *fx_cache_file(const char *dir, const char *kind, fx_cache_key key);
char *fx_cache_file_write(const char *dir, const char *kind, const void *data, size_t bytes, fx_cache_key *key);
/* A file's bytes, malloc'd, or NULL. Regular files only, no links. */
void *fx_file_bytes(const char *path, size_t *bytes);

/* Removes temporary files that a dead process left, and, when the folder has grown too large, what was not used for
 * longest, down to half. */
void fx_cache_prune(const char *dir);

#endif
