/* safetensors_write.c - writes safetensors files: equal tensors give equal bytes, and a failure leaves the old file.
 *
 * Order in the file: widest element type first, then by name. So every tensor is aligned to its own type,
 * the header is padded with spaces to a multiple of 8, and nothing depends on the order of the arguments. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/file.h"
#include "core/io/safetensors.h"

static int compare_tensors(const void *a, const void *b, void *tensors) {
    const fx_named_tensor *x = (const fx_named_tensor *)tensors + *(const size_t *)a;
    const fx_named_tensor *y = (const fx_named_tensor *)tensors + *(const size_t *)b;
    size_t sx = fx_dtype_size(x->spec.dtype), sy = fx_dtype_size(y->spec.dtype);
    return sx != sy ? (sx > sy ? -1 : 1) : strcmp(x->name, y->name);
}

/* Takes `value`. */
static fx_status set_new(json_t *object, const char *key, json_t *value, const char *what) {
    if (json_object_get(object, key)) {
        json_decref(value);
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: two %s named %s; names must be unique", what, FX_QUOTE(key));
    }
    if (json_object_set_new(object, key, value) != 0) /* also when value is NULL */
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: the %s %s is not valid UTF-8", what, FX_QUOTE(key));
    return FX_OK;
}

static fx_status check_tensor(const fx_named_tensor *t, bool may_fetch) {
    size_t bytes;
    if (!t->name)
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: a tensor without a name");
    if (strcmp(t->name, FX_SAFETENSORS_METADATA) == 0)
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: the tensor name " FX_SAFETENSORS_METADATA " is reserved");
    fx_status status = fx_spec_bytes(&t->spec, &bytes);
    if (status != FX_OK)
        return fx_fail_context(status, "safetensors: tensor %s", FX_QUOTE(t->name));
    if (bytes != t->bytes)
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: tensor %s has %zu bytes; expected %zu by its shape",
                       FX_QUOTE(t->name), t->bytes, bytes);
    if (bytes && !t->data && !may_fetch)
        return fx_fail(FX_INVALID_ARGUMENT, "safetensors: tensor %s has no data", FX_QUOTE(t->name));
    return FX_OK;
}

/* Fills `header`; order[] gets the order of the file. */
static fx_status build_header(json_t *header, const fx_named_tensor *tensors, size_t n, const fx_text_pair *metadata,
                              size_t m, const size_t *order) {
    if (m) {
        json_t *object = json_object();
        FX_TRY(set_new(header, FX_SAFETENSORS_METADATA, object, "entry"));
        for (size_t i = 0; i < m; i++) {
            if (!metadata[i].key || !metadata[i].value)
                return fx_fail(FX_INVALID_ARGUMENT, "safetensors: metadata pair %zu has no key or no value", i);
            FX_TRY(set_new(object, metadata[i].key, json_string(metadata[i].value), "metadata value"));
        }
    }
    uint64_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const fx_named_tensor *t = &tensors[order[i]];
        uint64_t end;
        if (__builtin_add_overflow(at, t->bytes, &end) || end > INT64_MAX)
            return fx_fail(FX_INVALID_ARGUMENT, "safetensors: the tensors together are too large");
        json_t *shape = json_array();
        for (int d = 0; d < t->spec.rank; d++)
            if (json_array_append_new(shape, json_integer(t->spec.dims[d])) != 0) {
                json_decref(shape);
                return fx_fail_oom(256);
            }
        json_t *info = json_pack("{s:s, s:o, s:[I, I]}", "dtype", fx_safetensors_type_of(t->spec.dtype)->name, "shape",
                                 shape, "data_offsets", (json_int_t)at, (json_int_t)end);
        if (!info)
            return fx_fail_oom(256);
        FX_TRY(set_new(header, t->name, info, "tensor name"));
        at = end;
    }
    return FX_OK;
}

static int compare_pairs(const void *a, const void *b) {
    const fx_text_pair *x = a, *y = b;
    return strcmp(x->key ? x->key : "", y->key ? y->key : "");
}

static fx_status write_file(const char *path, const char *text, const fx_named_tensor *tensors, size_t n,
                            const size_t *order, const fx_safetensors_options *options) {
    size_t length = strlen(text), padded = (length + 7) & ~(size_t)7;
    if (padded > FX_SAFETENSORS_MAX_HEADER)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "safetensors: the header takes %zu bytes; at most %u can be read back; use fewer"
                       " or shorter names",
                       padded, FX_SAFETENSORS_MAX_HEADER);
    unsigned char prefix[8];
    for (int i = 0; i < 8; i++)
        prefix[i] = (unsigned char)((uint64_t)padded >> (8 * i));
    fx_file_writer w;
    FX_TRY(fx_file_begin(path, &w));
    fx_status status = fx_file_write(&w, prefix, 8);
    if (status == FX_OK)
        status = fx_file_write(&w, text, length);
    if (status == FX_OK)
        status = fx_file_write(&w, "       ", padded - length);
    for (size_t i = 0; i < n && status == FX_OK; i++) {
        const fx_named_tensor *t = &tensors[order[i]];
        const void *data = t->data;
        if (!data && t->bytes)
            status = options->fetch(options->user, order[i], &data);
        if (status == FX_OK)
            status = fx_need_bytes(data, t->bytes, "fx_safetensors_write: what fetch gave");
        if (status == FX_OK && t->bytes)
            status = fx_file_write(&w, data, t->bytes);
    }
    if (status == FX_OK)
        return fx_file_commit(&w);
    fx_file_abort(&w);
    return status;
}

/* New memory, NULL when there is none. json_dumps would cut keys out when it runs out of memory (jansson 2.14). */
static char *header_text(const json_t *header) {
    size_t n = json_dumpb(header, NULL, 0, JSON_COMPACT);
    char *text = n ? malloc(n + 1) : NULL;
    if (text && json_dumpb(header, text, n, JSON_COMPACT) != n) {
        free(text);
        return NULL;
    }
    if (text)
        text[n] = '\0';
    return text;
}

fx_status fx_safetensors_write(const char *path, const fx_named_tensor *tensors, size_t n, const fx_text_pair *metadata,
                               size_t m, const fx_safetensors_options *options) {
    fx_safetensors_options opt = FX_SAFETENSORS_OPTIONS_INIT;
    FX_TRY(fx_options_take(&opt, sizeof opt, options, "fx_safetensors_options"));
    if (n)
        FX_TRY(fx_need(tensors, "fx_safetensors_write: tensors"));
    if (m)
        FX_TRY(fx_need(metadata, "fx_safetensors_write: metadata"));
    for (size_t i = 0; i < n; i++)
        FX_TRY(check_tensor(&tensors[i], opt.fetch != NULL));
    fx_status status;
    char *text = NULL;
    json_t *header = json_object();
    size_t *order = malloc((n + 1) * sizeof *order);
    fx_text_pair *pairs = malloc((m + 1) * sizeof *pairs);
    if (!header || !order || !pairs) {
        status = fx_fail_oom(n * sizeof *order);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    if (n)
        qsort_r(order, n, sizeof *order, compare_tensors, (void *)(uintptr_t)tensors);
    if (m) {
        memcpy(pairs, metadata, m * sizeof *pairs);
        qsort(pairs, m, sizeof *pairs, compare_pairs);
    }
    if ((status = build_header(header, tensors, n, pairs, m, order)) != FX_OK)
        goto done;
    if (!(text = header_text(header))) {
        status = fx_fail_oom(1 << 16);
        goto done;
    }
    status = write_file(path, text, tensors, n, order, &opt);
done:
    free(text);
    free(order);
    free(pairs);
    json_decref(header);
    return status;
}
