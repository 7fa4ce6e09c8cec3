/* safetensors_read.c - opens safetensors files: an 8-byte little-endian header length, a JSON header, tensor bytes.
 *
 * Invariant: a file that opened is wholly valid. Every tensor's byte range has the size that its shape and type
 * give, and the ranges tile the data exactly, so no later call needs to check anything. Tensor bytes are not
 * copied; the format promises no alignment. */
#include "core/io/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/io/file.h"

typedef struct range {
    uint64_t begin, end;
    size_t index;
} range;

struct fx_safetensors {
    fx_file_map map;
    fx_arena arena; /* names, metadata, tables */
    fx_named_tensor *tensors;
    size_t *by_name; /* indices of tensors, sorted by name */
    fx_text_pair *metadata;
    size_t n_tensors, n_metadata;
};

static const fx_safetensors_type types[] = {
    {"BOOL", 8, FX_BOOL},         {"I8", 8, FX_S8},
    {"I16", 16, FX_S16},          {"I32", 32, FX_S32},
    {"I64", 64, FX_S64},          {"U8", 8, FX_U8},
    {"U16", 16, FX_U16},          {"U32", 32, FX_U32},
    {"U64", 64, FX_U64},          {"F16", 16, FX_F16},
    {"BF16", 16, FX_BF16},        {"F32", 32, FX_F32},
    {"F64", 64, FX_F64},          {"F8_E4M3", 8, FX_TUPLE},
    {"F8_E5M2", 8, FX_TUPLE},     {"F8_E8M0", 8, FX_TUPLE},
    {"F8_E4M3FNUZ", 8, FX_TUPLE}, {"F8_E5M2FNUZ", 8, FX_TUPLE},
    {"F6_E2M3", 6, FX_TUPLE},     {"F6_E3M2", 6, FX_TUPLE},
    {"F4", 4, FX_TUPLE},          {"C64", 64, FX_TUPLE},
};
enum { N_TYPES = sizeof types / sizeof *types };

const fx_safetensors_type *fx_safetensors_type_named(const char *name) {
    for (int i = 0; i < N_TYPES; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

const fx_safetensors_type *fx_safetensors_type_of(fx_dtype dtype) {
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype && dtype != FX_TUPLE)
            return &types[i];
    return NULL;
}

/* A non-negative JSON integer. */
static bool get_size(const json_t *v, int64_t *out) {
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = json_integer_value(v);
    return true;
}

static fx_status read_shape(const json_t *shape, const char *name, fx_spec *spec) {
    if (!json_is_array(shape))
        return fx_fail(FX_BAD_DATA, "tensor %s has no \"shape\" array", FX_QUOTE(name));
    size_t rank = json_array_size(shape);
    if (rank > FX_MAX_RANK)
        return fx_fail(FX_UNSUPPORTED, "tensor %s has rank %zu; at most %d is supported", FX_QUOTE(name), rank,
                       FX_MAX_RANK);
    spec->rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        if (!get_size(json_array_get(shape, i), &spec->dims[i]))
            return fx_fail(FX_BAD_DATA, "tensor %s: dimension %zu of its shape is not a non-negative integer",
                           FX_QUOTE(name), i);
    return FX_OK;
}

static fx_status read_tensor(fx_safetensors *f, const char *name, const json_t *info, const unsigned char *base,
                             uint64_t data_size, range *r) {
    if (!json_is_object(info))
        return fx_fail(FX_BAD_DATA, "header entry %s is not an object with dtype, shape and data_offsets",
                       FX_QUOTE(name));
    fx_named_tensor *t = &f->tensors[r->index];
    const json_t *dtype = json_object_get(info, "dtype"), *offsets = json_object_get(info, "data_offsets");
    if (!json_is_string(dtype))
        return fx_fail(FX_BAD_DATA, "tensor %s has no \"dtype\" string", FX_QUOTE(name));
    const fx_safetensors_type *type = fx_safetensors_type_named(json_string_value(dtype));
    if (!type)
        return fx_fail(FX_UNSUPPORTED, "tensor %s has the unknown dtype %s", FX_QUOTE(name),
                       FX_QUOTE(json_string_value(dtype)));
    t->type_name = type->name;
    t->spec.dtype = type->dtype;
    FX_TRY(read_shape(json_object_get(info, "shape"), name, &t->spec));
    int64_t begin, end, count = fx_spec_count(&t->spec);
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !get_size(json_array_get(offsets, 0), &begin) ||
        !get_size(json_array_get(offsets, 1), &end))
        return fx_fail(FX_BAD_DATA, "tensor %s has no \"data_offsets\" of two non-negative integers", FX_QUOTE(name));
    if (begin > end || (uint64_t)end > data_size)
        return fx_fail(FX_BAD_DATA,
                       "tensor %s has data_offsets [%lld, %lld]; expected a range within the %llu data bytes",
                       FX_QUOTE(name), (long long)begin, (long long)end, (unsigned long long)data_size);
    int64_t bits;
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)type->bits, &bits))
        return fx_fail(FX_BAD_DATA, "tensor %s: the size of its shape overflows", FX_QUOTE(name));
    if (bits % 8 != 0 || bits / 8 != end - begin)
        return fx_fail(FX_BAD_DATA, "tensor %s: %lld elements of %s take %lld.%d bytes; its data_offsets give %lld",
                       FX_QUOTE(name), (long long)count, type->name, (long long)(bits / 8), (int)(bits % 8 * 10 / 8),
                       (long long)(end - begin));
    t->bytes = (size_t)(end - begin);
    t->data = t->bytes ? base + begin : NULL;
    if (type->dtype == FX_BOOL)
        for (size_t i = 0; i < t->bytes; i++)
            if (base[(size_t)begin + i] > 1)
                return fx_fail(FX_BAD_DATA, "tensor %s: element %zu of type BOOL is %d; expected 0 or 1",
                               FX_QUOTE(name), i, base[(size_t)begin + i]);
    r->begin = (uint64_t)begin;
    r->end = (uint64_t)end;
    t->name = fx_arena_strdup(&f->arena, name);
    return t->name ? FX_OK : fx_fail_oom(strlen(name) + 1);
}

static fx_status read_metadata(fx_safetensors *f, json_t *object) {
    if (!json_is_object(object))
        return fx_fail(FX_BAD_DATA, "__metadata__ is not an object of strings");
    f->metadata = FX_ARENA_ARRAY(&f->arena, fx_text_pair, json_object_size(object));
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        if (!json_is_string(value))
            return fx_fail(FX_BAD_DATA, "__metadata__ entry %s is not a string", FX_QUOTE(key));
        if (!f->arena.failed)
            f->metadata[f->n_metadata++] =
                (fx_text_pair){fx_arena_strdup(&f->arena, key), fx_arena_strdup(&f->arena, json_string_value(value))};
    }
    return FX_OK;
}

static int compare_ranges(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static fx_status check_tiling(const fx_safetensors *f, range *ranges, uint64_t data_size) {
    uint64_t at = 0;
    if (f->n_tensors)
        qsort(ranges, f->n_tensors, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < f->n_tensors; i++) {
        const char *name = f->tensors[ranges[i].index].name;
        if (ranges[i].begin != at)
            return fx_fail(FX_BAD_DATA, "tensor %s begins at byte %llu of the data, %s; expected byte %llu",
                           FX_QUOTE(name), (unsigned long long)ranges[i].begin,
                           ranges[i].begin < at ? "inside another tensor" : "after a gap", (unsigned long long)at);
        at = ranges[i].end;
    }
    if (at != data_size)
        return fx_fail(FX_BAD_DATA, "%llu bytes after the last tensor belong to none",
                       (unsigned long long)(data_size - at));
    return FX_OK;
}

static int compare_by_name(const void *a, const void *b, void *tensors) {
    const fx_named_tensor *t = tensors;
    return strcmp(t[*(const size_t *)a].name, t[*(const size_t *)b].name);
}

static fx_status read_header(fx_safetensors *f, json_t *header, const unsigned char *base, uint64_t data_size) {
    json_t *metadata = json_object_get(header, FX_SAFETENSORS_METADATA);
    size_t n = json_object_size(header) - (metadata != NULL);
    f->tensors = FX_ARENA_ARRAY(&f->arena, fx_named_tensor, n);
    f->by_name = FX_ARENA_ARRAY(&f->arena, size_t, n);
    range *ranges = FX_ARENA_ARRAY(&f->arena, range, n);
    if (f->arena.failed)
        return fx_fail_oom(n * sizeof(fx_named_tensor));
    if (metadata)
        FX_TRY(read_metadata(f, metadata));
    const char *name;
    json_t *info;
    json_object_foreach(header, name, info) {
        if (info == metadata)
            continue;
        size_t i = f->n_tensors;
        f->by_name[i] = ranges[i].index = i;
        FX_TRY(read_tensor(f, name, info, base, data_size, &ranges[i]));
        f->n_tensors++;
    }
    if (f->arena.failed)
        return fx_fail_oom(n * sizeof(fx_named_tensor));
    if (n)
        qsort_r(f->by_name, n, sizeof *f->by_name, compare_by_name, f->tensors);
    return check_tiling(f, ranges, data_size);
}

/* Refuses, before any memory is taken for it, JSON that no valid header can be: nested deeper than name -> tensor ->
 * shape, or made of more brackets and commas than valid entries of so many bytes have (at least 49 bytes with 3
 * brackets; 64 bytes with 14 of both at rank 8). */
static fx_status check_density(const unsigned char *p, size_t n) {
    size_t brackets = 0, commas = 0, depth = 0;
    bool text = false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '"')
            text = !text;
        else if (text)
            i += p[i] == '\\'; /* an escaped character */
        else if (p[i] == '{' || p[i] == '[')
            brackets++, depth++;
        else if (p[i] == '}' || p[i] == ']')
            depth -= depth > 0;
        else
            commas += p[i] == ',';
        if (depth > 3)
            return fx_fail(FX_BAD_DATA, "the header is not valid: its JSON is nested too deeply");
    }
    if (brackets > n / 16 + 16 || brackets + commas > n / 4 + 16)
        return fx_fail(FX_BAD_DATA, "the header is not valid: %zu brackets and %zu commas in %zu bytes", brackets,
                       commas, n);
    return FX_OK;
}

/* What a file that is no safetensors file seems to be; "" when unknown. */
static const char *guess_format(const unsigned char *p, size_t size) {
    static const struct {
        const char *magic;
        size_t size;
        const char *hint;
    } known[] = {
        {"PK\3\4", 4, "; this is a zip archive (a PyTorch or NumPy file?), not a safetensors file"},
        {"\x80\2", 2, "; this looks like a pickle, not a safetensors file"},
        {"\x93NUMPY", 6, "; this is a .npy file, not a safetensors file"},
        {"\x89HDF", 4, "; this is an HDF5 file, not a safetensors file"},
        {"GGUF", 4, "; this is a GGUF file, not a safetensors file"},
        {"\x1f\x8b", 2, "; this is compressed with gzip, decompress it first"},
        {"version https", 13, "; this is a Git LFS pointer, fetch the file itself"},
        {"<", 1, "; this looks like a web page, not a safetensors file"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].size && memcmp(p, known[i].magic, known[i].size) == 0)
            return known[i].hint;
    return "";
}

static fx_status parse(fx_safetensors *f, const unsigned char *p, size_t size) {
    if (size < 8)
        return fx_fail(FX_BAD_DATA, "too short for a safetensors file: %zu bytes; expected at least 8", size);
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | p[i];
    if (n > size - 8)
        return fx_fail(FX_BAD_DATA, "header length %llu reaches beyond the end of the file (%zu bytes)%s",
                       (unsigned long long)n, size, guess_format(p, size));
    if (n > FX_SAFETENSORS_MAX_HEADER)
        return fx_fail(FX_BAD_DATA, "header length %llu is over the limit of %u bytes", (unsigned long long)n,
                       FX_SAFETENSORS_MAX_HEADER);
    if (n == 0 || p[8] != '{')
        return fx_fail(FX_BAD_DATA, "the header does not begin with \"{\"%s", guess_format(p, size));
    FX_TRY(check_density(p + 8, (size_t)n));
    json_error_t error;
    json_t *header = json_loadb((const char *)p + 8, (size_t)n, JSON_REJECT_DUPLICATES, &error);
    if (!header)
        return json_error_code(&error) == json_error_out_of_memory
                   ? fx_fail_oom((size_t)n)
                   : fx_fail(FX_BAD_DATA, "the header is not valid JSON: %s", FX_QUOTE(error.text));
    fx_status status = read_header(f, header, p + 8 + n, size - 8 - n);
    json_decref(header);
    return status;
}

static fx_status create(fx_safetensors **out) {
    *out = calloc(1, sizeof **out);
    if (!*out)
        return fx_fail_oom(sizeof **out);
    (*out)->map = (fx_file_map){(const unsigned char *)"", 0, FX_FILE_CONSTANT};
    fx_arena_init(&(*out)->arena);
    return FX_OK;
}

fx_status fx_safetensors_parse(const void *data, size_t size, fx_safetensors **out) {
    FX_TRY(fx_need(out, "fx_safetensors_parse: out"));
    *out = NULL;
    FX_TRY(fx_need_bytes(data, size, "fx_safetensors_parse: data"));
    FX_TRY(create(out));
    fx_status status = parse(*out, data, size);
    if (status != FX_OK) {
        fx_safetensors_close(*out);
        *out = NULL;
    }
    return status;
}

fx_status fx_safetensors_open(const char *path, fx_safetensors **out) {
    FX_TRY(fx_need(out, "fx_safetensors_open: out"));
    FX_TRY(create(out));
    fx_safetensors *f = *out;
    fx_status status = fx_file_map_open(path, &f->map);
    if (status == FX_OK && (status = parse(f, f->map.data, f->map.size)) != FX_OK)
        fx_fail_context(status, "%s", FX_QUOTE(path));
    if (status != FX_OK) {
        fx_safetensors_close(f);
        *out = NULL;
    }
    return status;
}

void fx_safetensors_close(fx_safetensors *file) {
    if (!file)
        return;
    fx_arena_finish(&file->arena);
    fx_file_map_close(&file->map);
    free(file);
}

size_t fx_safetensors_count(const fx_safetensors *file) {
    return file ? file->n_tensors : 0;
}

const fx_named_tensor *fx_safetensors_get(const fx_safetensors *file, size_t i) {
    return file && i < file->n_tensors ? &file->tensors[i] : NULL;
}

const fx_named_tensor *fx_safetensors_find(const fx_safetensors *file, const char *name) {
    size_t lo = 0, hi = file && name ? file->n_tensors : 0;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const fx_named_tensor *t = &file->tensors[file->by_name[mid]];
        int order = strcmp(name, t->name);
        if (order == 0)
            return t;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

fx_status fx_safetensors_read(const fx_safetensors *file, const char *name, const fx_spec *spec, void *dst) {
    FX_TRY(fx_need(file, "fx_safetensors_read: file"));
    FX_TRY(fx_need(name, "fx_safetensors_read: name"));
    FX_TRY(fx_need(spec, "fx_safetensors_read: spec"));
    const fx_named_tensor *t = fx_safetensors_find(file, name);
    char want[128], got[128];
    if (!t)
        return fx_fail(FX_NOT_FOUND, "the safetensors file has no tensor %s", FX_QUOTE(name));
    if (t->spec.dtype == FX_TUPLE)
        return fx_fail(FX_UNSUPPORTED, "tensor %s has element type %s, which cannot be computed with; convert the file",
                       FX_QUOTE(name), t->type_name);
    if (!fx_spec_equal(&t->spec, spec))
        return fx_fail(FX_INVALID_ARGUMENT, "tensor %s; expected %s; the file has %s", FX_QUOTE(name),
                       fx_spec_format(spec, want, sizeof want), fx_spec_format(&t->spec, got, sizeof got));
    if (t->bytes)
        FX_TRY(fx_need(dst, "fx_safetensors_read: dst"));
    if (t->bytes)
        memcpy(dst, t->data, t->bytes);
    return FX_OK;
}

size_t fx_safetensors_metadata_count(const fx_safetensors *file) {
    return file ? file->n_metadata : 0;
}

fx_text_pair fx_safetensors_metadata_get(const fx_safetensors *file, size_t i) {
    return file && i < file->n_metadata ? file->metadata[i] : (fx_text_pair){NULL, NULL};
}

const char *fx_safetensors_metadata(const fx_safetensors *file, const char *key) {
    for (size_t i = 0; file && key && i < file->n_metadata; i++)
        if (strcmp(file->metadata[i].key, key) == 0)
            return file->metadata[i].value;
    return NULL;
}
