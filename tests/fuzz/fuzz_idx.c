/* fuzz_idx.c - hostile IDX bytes are refused; accepted ones hold as many elements as they state. */
#include "fuzz.h"

#include <fornax/io.h>
#include <string.h>

void fuzz_one(const uint8_t *data, size_t size) {
    fx_host_array a = {0};
    if (fx_idx_parse(data, size, &a) != FX_OK) {
        fuzz_check(fx_last_error()[0] != '\0');
        return;
    }
    size_t bytes = (size_t)fx_spec_count(&a.spec) * fx_dtype_size(a.spec.dtype);
    fuzz_check(fx_spec_count(&a.spec) >= 0 && bytes <= size);
    fx_host_array_free(&a);
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    static const uint8_t types[] = {0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e};
    static const size_t widths[] = {1, 1, 2, 4, 4, 8};
    if (i >= 12)
        return false;
    size_t rank = i < 6 ? 3 : 1, count = i < 6 ? 2 * 3 * 4 : 2;
    memset(buf, 0, 16);
    buf[2] = types[i % 6], buf[3] = (uint8_t)rank;
    for (size_t k = 0; k < rank; k++)
        buf[4 + 4 * k + 3] = (uint8_t)(2 + k);
    memset(buf + 4 + 4 * rank, 1, count * widths[i % 6]);
    *size = 4 + 4 * rank + count * widths[i % 6];
    return true;
}
