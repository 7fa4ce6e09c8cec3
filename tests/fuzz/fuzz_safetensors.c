/* fuzz_safetensors.c - a hostile safetensors file is refused; an accepted one lies wholly within its bytes. */
#include "fuzz.h"

#include <fornax/io.h>
#include <string.h>

void fuzz_one(const uint8_t *data, size_t size) {
    fx_safetensors *file;
    if (fx_safetensors_parse(data, size, &file) != FX_OK) {
        fuzz_check(fx_last_error()[0] != '\0');
        return;
    }
    size_t total = 0;
    for (size_t i = 0; i < fx_safetensors_count(file); i++) {
        const fx_named_tensor *t = fx_safetensors_get(file, i);
        const uint8_t *bytes = t->data;
        fuzz_check(t->bytes == 0 || (bytes >= data && t->bytes <= size && bytes + t->bytes <= data + size));
        if (t->spec.dtype != FX_TUPLE)
            fuzz_check(fx_spec_count(&t->spec) >= 0 &&
                       (uint64_t)fx_spec_count(&t->spec) * fx_dtype_size(t->spec.dtype) == t->bytes);
        fuzz_check(fx_safetensors_find(file, t->name) == t);
        total += t->bytes;
    }
    fuzz_check(total <= size);
    for (size_t i = 0; i < fx_safetensors_metadata_count(file); i++) {
        fx_text_pair pair = fx_safetensors_metadata_get(file, i);
        fuzz_check(fx_safetensors_metadata(file, pair.key) == pair.value);
    }
    fx_safetensors_close(file);
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    fx_named_tensor tensors[] = {
        {.name = "layer.weight", .spec = FX_SPEC(FX_F32, 2, 3), .data = x, .bytes = 24},
        {.name = "layer.bias", .spec = FX_SPEC(FX_BF16, 3), .data = x, .bytes = 6},
        {.name = "step", .spec = FX_SPEC0(FX_S64), .data = x, .bytes = 8},
    };
    fx_text_pair metadata[] = {{"format", "pt"}, {"note", "a \"quoted\" word"}};
    if (i == 2) { /* written by hand: other types, an empty tensor, padding */
        static const char text[] = "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]},"
                                   "\"b\":{\"dtype\":\"U16\",\"shape\":[0,7],\"data_offsets\":[3,3]}}   ";
        memset(buf, 0, 8);
        buf[0] = sizeof text - 1;
        memcpy(buf + 8, text, sizeof text - 1);
        memcpy(buf + 8 + sizeof text - 1, "xyz", 3);
        *size = 8 + sizeof text - 1 + 3;
        return true;
    }
    if (i > 2)
        return false;
    fuzz_check(fx_safetensors_write(fuzz_temporary(), tensors, i ? 3 : 1, metadata, i ? 2 : 0, NULL) == FX_OK);
    return fuzz_take(buf, size);
}
