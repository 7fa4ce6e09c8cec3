/* fuzz_npz.c - a hostile .npz archive is refused; no entry of an accepted one reads past its own data. */
#include "fuzz.h"

#include <fornax/io.h>

void fuzz_one(const uint8_t *data, size_t size) {
    fx_npz *npz;
    if (fx_npz_open(fuzz_file(data, size), &npz) != FX_OK) {
        fuzz_check(fx_last_error()[0] != '\0');
        return;
    }
    for (size_t i = 0; i < fx_npz_count(npz); i++) {
        fx_host_array a = {0};
        fuzz_check(fx_npz_name(npz, i));
        if (fx_npz_read(npz, fx_npz_name(npz, i), &a) == FX_OK) {
            fuzz_check(fx_spec_count(&a.spec) >= 0);
            fx_host_array_free(&a);
        }
    }
    fx_npz_close(npz);
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    fx_named_tensor tensors[] = {
        {.name = "x", .spec = FX_SPEC(FX_F32, 2, 3), .data = x, .bytes = 24},
        {.name = "step", .spec = FX_SPEC0(FX_S64), .data = x, .bytes = 8},
    };
    if (i > 1)
        return false;
    fuzz_check(fx_npz_write(fuzz_temporary(), tensors, (size_t)i + 1) == FX_OK);
    return fuzz_take(buf, size);
}
