/* host_array.c - arrays in host memory, and the option structs of io.h. */
#include <stdlib.h>
#include <string.h>

#include "core/io/file.h"

void fx_host_array_free(fx_host_array *array) {
    if (!array)
        return;
    free(array->data);
    *array = (fx_host_array){.data = NULL};
}

fx_status fx_spec_bytes(const fx_spec *spec, size_t *bytes) {
    size_t size = fx_dtype_size(spec->dtype);
    if (size == 0)
        return fx_fail(FX_INVALID_ARGUMENT, "array: unknown element type %d; expected one of fx_dtype",
                       (int)spec->dtype);
    if (spec->rank < 0 || spec->rank > FX_MAX_RANK)
        return fx_fail(FX_INVALID_ARGUMENT, "array: rank %d; expected 0 to %d", spec->rank, FX_MAX_RANK);
    for (int i = 0; i < spec->rank; i++)
        if (spec->dims[i] < 0)
            return fx_fail(FX_INVALID_ARGUMENT, "array: dimension %d is %lld; expected 0 or more", i,
                           (long long)spec->dims[i]);
    int64_t count = fx_spec_count(spec);
    if (count < 0 || !fx_mul_size((size_t)count, size, bytes) || *bytes > PTRDIFF_MAX)
        return fx_fail(FX_INVALID_ARGUMENT, "array: its size overflows; use fewer elements");
    return FX_OK;
}

fx_status fx_host_array_make(const fx_spec *spec, fx_host_array *out) {
    size_t bytes = 0;
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_spec_bytes(spec, &bytes));
    void *data = calloc(bytes ? bytes : 1, 1);
    if (!data)
        return fx_fail_oom(bytes);
    *out = (fx_host_array){*spec, data};
    return FX_OK;
}

fx_status fx_options_take(void *dst, size_t size, const void *src, const char *type) {
    if (!src)
        return FX_OK;
    size_t given;
    memcpy(&given, src, sizeof given);
    if (given < sizeof given || given > size)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "%s: struct_size is %zu; expected at most %zu; initialise it with its _INIT", type, given, size);
    memcpy(dst, src, given);
    return FX_OK;
}
