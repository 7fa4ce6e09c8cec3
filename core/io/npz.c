/* npz.c - reads and writes NumPy's .npz archives: a zip of .npy files, handled by libzip.
 *
 * An entry is untrusted: its header is checked against the size that the archive declares, and that size against what
 * the compressed bytes can possibly hold, before memory for it is taken. Built without libzip, every call says so. */
#include <stdlib.h>
#include <string.h>

#include "core/io/npy.h"

#ifdef FX_HAVE_LIBZIP
#include <zip.h>

struct fx_npz {
    zip_t *zip;
    char **names; /* without ".npy" */
    zip_uint64_t *entries;
    size_t count;
};

enum { MAX_RATIO = 1040, PREFIX = 1 << 16 }; /* deflate's best ratio is 1032; more bytes than an .npy header has */

static fx_status fail_zip(const char *what, const char *name, zip_error_t *error) {
    return fx_fail(zip_error_code_zip(error) == ZIP_ER_MEMORY ? FX_OUT_OF_MEMORY : FX_BAD_DATA, "npz: cannot %s %s: %s",
                   what, FX_QUOTE(name), FX_QUOTE(zip_error_strerror(error)));
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static fx_status check_unique(const fx_npz *npz) {
    char **sorted = malloc((npz->count + 1) * sizeof *sorted);
    if (!sorted)
        return fx_fail_oom(npz->count * sizeof *sorted);
    fx_status status = FX_OK;
    if (npz->count) {
        memcpy(sorted, npz->names, npz->count * sizeof *sorted);
        qsort(sorted, npz->count, sizeof *sorted, compare_names);
    }
    for (size_t i = 1; i < npz->count && status == FX_OK; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = fx_fail(FX_BAD_DATA, "npz: two entries named %s", FX_QUOTE(sorted[i]));
    free(sorted);
    return status;
}

static fx_status list_entries(fx_npz *npz) {
    zip_int64_t n = zip_get_num_entries(npz->zip, 0);
    npz->names = calloc((size_t)n + 1, sizeof *npz->names);
    npz->entries = calloc((size_t)n + 1, sizeof *npz->entries);
    if (!npz->names || !npz->entries)
        return fx_fail_oom((size_t)n * sizeof *npz->names);
    for (zip_int64_t i = 0; i < n; i++) {
        const char *name = zip_get_name(npz->zip, (zip_uint64_t)i, ZIP_FL_ENC_GUESS);
        if (!name)
            return fail_zip("read the name of", "an entry", zip_get_error(npz->zip));
        size_t len = strlen(name);
        if (len < 4 || strcmp(name + len - 4, ".npy") != 0)
            continue; /* NumPy too leaves other entries alone */
        char *copy = fx_strdup(name);
        if (!copy)
            return fx_fail_oom(len);
        copy[len - 4] = '\0';
        npz->entries[npz->count] = (zip_uint64_t)i;
        npz->names[npz->count++] = copy;
    }
    return check_unique(npz);
}

fx_status fx_npz_open(const char *path, fx_npz **out) {
    FX_TRY(fx_need(out, "fx_npz_open: out"));
    *out = NULL;
    fx_file_map map; /* gives the system's own errors, and refuses what is no file */
    FX_TRY(fx_file_map_open(path, &map));
    bool is_zip = map.size >= 4 && memcmp(map.data, "PK", 2) == 0;
    fx_file_map_close(&map);
    if (!is_zip)
        return fx_fail(FX_BAD_DATA, "%s: not a zip archive; expected an .npz file", FX_QUOTE(path));
    fx_npz *npz = calloc(1, sizeof *npz);
    if (!npz)
        return fx_fail_oom(sizeof *npz);
    int code = 0;
    fx_status status;
    npz->zip = zip_open(path, ZIP_RDONLY | ZIP_CHECKCONS, &code);
    if (!npz->zip) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        status = fail_zip("open", path, &error);
        zip_error_fini(&error);
    } else if ((status = list_entries(npz)) != FX_OK) {
        fx_fail_context(status, "%s", FX_QUOTE(path));
    }
    if (status != FX_OK) {
        fx_npz_close(npz);
        return status;
    }
    *out = npz;
    return FX_OK;
}

void fx_npz_close(fx_npz *npz) {
    if (!npz)
        return;
    if (npz->zip)
        zip_discard(npz->zip);
    for (size_t i = 0; i < npz->count; i++)
        free(npz->names[i]);
    free(npz->names);
    free(npz->entries);
    free(npz);
}

size_t fx_npz_count(const fx_npz *npz) {
    return npz ? npz->count : 0;
}

const char *fx_npz_name(const fx_npz *npz, size_t i) {
    return npz && i < npz->count ? npz->names[i] : NULL;
}

/* Reads exactly n bytes; libzip checks the CRC at the end of the entry. */
static fx_status read_bytes(zip_file_t *file, const char *name, void *dst, size_t n) {
    unsigned char *p = dst;
    while (n > 0) {
        zip_int64_t got = zip_fread(file, p, n);
        if (got < 0)
            return fail_zip("read", name, zip_file_get_error(file));
        if (got == 0)
            return fx_fail(FX_BAD_DATA, "npz: entry %s is shorter than the archive says", FX_QUOTE(name));
        p += got;
        n -= (size_t)got;
    }
    return FX_OK;
}

static fx_status read_entry(fx_npz *npz, size_t i, fx_host_array *out) {
    const char *name = npz->names[i];
    zip_stat_t st;
    if (zip_stat_index(npz->zip, npz->entries[i], 0, &st) != 0)
        return fail_zip("examine", name, zip_get_error(npz->zip));
    if (!(st.valid & ZIP_STAT_SIZE) || !(st.valid & ZIP_STAT_COMP_SIZE) || st.size / MAX_RATIO > st.comp_size)
        return fx_fail(FX_BAD_DATA,
                       "npz: entry %s claims %llu bytes from %llu compressed ones, which no compression reaches",
                       FX_QUOTE(name), (unsigned long long)st.size, (unsigned long long)st.comp_size);
    zip_file_t *file = zip_fopen_index(npz->zip, npz->entries[i], 0);
    if (!file)
        return fail_zip("read", name, zip_get_error(npz->zip));
    size_t head = st.size < PREFIX ? (size_t)st.size : PREFIX;
    unsigned char *prefix = malloc(head + 1), extra;
    fx_npy_header h;
    fx_status status = prefix ? read_bytes(file, name, prefix, head) : fx_fail_oom(head);
    if (status == FX_OK)
        status = fx_npy_read_header(prefix, head, &h);
    if (status == FX_OK)
        status = fx_npy_check_size(&h, st.size);
    if (status == FX_OK)
        status = fx_host_array_make(&h.spec, out);
    if (status == FX_OK) {
        size_t have = head - h.data_offset;
        memcpy(out->data, prefix + h.data_offset, have);
        status = read_bytes(file, name, (unsigned char *)out->data + have, h.bytes - have);
    }
    if (status == FX_OK) {
        zip_int64_t more = zip_fread(file, &extra, 1); /* reaching the end checks the CRC */
        if (more < 0)
            status = fail_zip("read", name, zip_file_get_error(file));
        else if (more > 0)
            status = fx_fail(FX_BAD_DATA, "npz: entry %s is longer than the archive says", FX_QUOTE(name));
    }
    if (status == FX_OK)
        status = fx_npy_finish(&h, out);
    if (status != FX_OK)
        fx_host_array_free(out);
    free(prefix);
    zip_fclose(file);
    return status;
}

fx_status fx_npz_read(fx_npz *npz, const char *name, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_npz_read: out"));
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_need(npz, "fx_npz_read: npz"));
    FX_TRY(fx_need(name, "fx_npz_read: name"));
    for (size_t i = 0; i < npz->count; i++)
        if (strcmp(npz->names[i], name) == 0) {
            fx_status status = read_entry(npz, i, out);
            return status == FX_OK ? FX_OK : fx_fail_context(status, "npz entry %s", FX_QUOTE(name));
        }
    return fx_fail(FX_NOT_FOUND, "npz: no entry %s", FX_QUOTE(name));
}

/* *bytes_of_file: new memory that must live until the archive is closed. */
static fx_status add_entry(zip_t *zip, const fx_named_tensor *t, unsigned char **bytes_of_file) {
    char header[FX_NPY_HEADER_SIZE];
    size_t length, bytes, name_size = t->name ? strlen(t->name) + 5 : 0;
    if (!t->name || !*t->name)
        return fx_fail(FX_INVALID_ARGUMENT, "npz: a tensor without a name");
    for (const char *c = t->name; *c; c++)
        if ((unsigned char)*c < 32) /* libzip could not read them back */
            return fx_fail(FX_INVALID_ARGUMENT,
                           "npz: the name %s has control characters; rename it or write safetensors",
                           FX_QUOTE(t->name));
    FX_TRY(fx_npy_write_header(&t->spec, header, &length));
    FX_TRY(fx_spec_bytes(&t->spec, &bytes));
    if (bytes != t->bytes || (bytes && !t->data))
        return fx_fail(FX_INVALID_ARGUMENT, "npz: tensor %s has %zu bytes; expected %zu by its shape",
                       FX_QUOTE(t->name), t->data ? t->bytes : 0, bytes);
    char *name = malloc(name_size);
    unsigned char *all = malloc(length + bytes);
    *bytes_of_file = all;
    if (!name || !all) {
        free(name);
        return fx_fail_oom(length + bytes);
    }
    strcpy(stpcpy(name, t->name), ".npy");
    memcpy(all, header, length);
    if (bytes)
        memcpy(all + length, t->data, bytes);
    fx_status status = FX_OK;
    zip_source_t *source = zip_source_buffer(zip, all, length + bytes, 0);
    zip_int64_t i = source ? zip_file_add(zip, name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (i < 0) {
        int code = zip_error_code_zip(zip_get_error(zip));
        status = code != ZIP_ER_EXISTS && code != ZIP_ER_INVAL
                     ? fail_zip("add", t->name, zip_get_error(zip))
                     : fx_fail(FX_INVALID_ARGUMENT, "npz: the name %s is %s; names must be unique UTF-8",
                               FX_QUOTE(t->name), code == ZIP_ER_EXISTS ? "there twice" : "not valid UTF-8");
        if (source)
            zip_source_free(source);
    } else if (zip_set_file_compression(zip, (zip_uint64_t)i, ZIP_CM_STORE, 0) != 0 ||
               zip_file_set_dostime(zip, (zip_uint64_t)i, 0, (1 << 5) | 1, 0) != 0) { /* 1980-01-01: no clock's bytes */
        status = fail_zip("add", t->name, zip_get_error(zip));
    }
    free(name);
    return status;
}

/* Closes the archive, which is in `memory`, and writes its bytes to the file. */
static fx_status write_archive(zip_t *zip, zip_source_t *memory, const char *path) {
    if (zip_close(zip) != 0) {
        fx_status failed = fail_zip("write", path, zip_get_error(zip));
        zip_discard(zip);
        return failed;
    }
    zip_stat_t st;
    if (zip_source_stat(memory, &st) != 0 || zip_source_open(memory) != 0)
        return fail_zip("write", path, zip_source_error(memory));
    fx_status status;
    char *bytes = malloc((size_t)st.size + 1);
    if (!bytes)
        status = fx_fail_oom((size_t)st.size);
    else if (zip_source_read(memory, bytes, st.size) != (zip_int64_t)st.size)
        status = fail_zip("write", path, zip_source_error(memory));
    else
        status = fx_file_replace(path, bytes, (size_t)st.size);
    free(bytes);
    zip_source_close(memory);
    return status;
}

fx_status fx_npz_write(const char *path, const fx_named_tensor *tensors, size_t n) {
    FX_TRY(fx_need(path, "fx_npz_write: path"));
    if (n)
        FX_TRY(fx_need(tensors, "fx_npz_write: tensors"));
    if (n == 0) /* libzip makes no empty archive; its bytes are known */
        return fx_file_replace(path, "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    unsigned char **entries = calloc(n, sizeof *entries);
    if (!entries)
        return fx_fail_oom(n * sizeof *entries);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *memory = zip_source_buffer_create(NULL, 0, 0, &error);
    zip_t *zip = memory ? zip_open_from_source(memory, ZIP_CREATE | ZIP_TRUNCATE, &error) : NULL;
    fx_status status = FX_OK;
    if (!zip) {
        status = fail_zip("create", path, &error);
    } else {
        zip_source_keep(memory); /* closing the archive gives one reference back */
        for (size_t i = 0; i < n && status == FX_OK; i++)
            status = add_entry(zip, &tensors[i], &entries[i]);
        if (status == FX_OK)
            status = write_archive(zip, memory, path);
        else
            zip_discard(zip);
    }
    zip_source_free(memory);
    zip_error_fini(&error);
    for (size_t i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return status;
}

#else

static fx_status no_libzip(void) {
    return fx_fail(FX_UNSUPPORTED, "npz: this build has no libzip; install libzip-dev and build again");
}

fx_status fx_npz_open(const char *path, fx_npz **out) {
    FX_TRY(fx_need(out, "fx_npz_open: out"));
    (void)path;
    *out = NULL;
    return no_libzip();
}

fx_status fx_npz_read(fx_npz *npz, const char *name, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_npz_read: out"));
    (void)npz;
    (void)name;
    *out = (fx_host_array){.data = NULL};
    return no_libzip();
}

fx_status fx_npz_write(const char *path, const fx_named_tensor *tensors, size_t n) {
    (void)path;
    (void)tensors;
    (void)n;
    return no_libzip();
}

void fx_npz_close(fx_npz *npz) {
    (void)npz;
}
size_t fx_npz_count(const fx_npz *npz) {
    (void)npz;
    return 0;
}
const char *fx_npz_name(const fx_npz *npz, size_t i) {
    (void)npz;
    (void)i;
    return NULL;
}
#endif
