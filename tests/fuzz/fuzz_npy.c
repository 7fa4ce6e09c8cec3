/* fuzz_npy.c - hostile .npy bytes are refused; accepted ones give an array of the size that it states. */
#include "fuzz.h"

#include <fornax/io.h>
#include <string.h>

void fuzz_one(const uint8_t *data, size_t size) {
    fx_host_array a = {0};
    if (fx_npy_parse(data, size, &a) != FX_OK) {
        fuzz_check(fx_last_error()[0] != '\0');
        return;
    }
    size_t bytes = (size_t)fx_spec_count(&a.spec) * fx_dtype_size(a.spec.dtype);
    fuzz_check(fx_spec_count(&a.spec) >= 0 && bytes <= size);
    volatile uint8_t last = bytes ? ((const uint8_t *)a.data)[bytes - 1] : 0;
    (void)last;
    fx_host_array_free(&a);
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    static const char *const headers[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", "{'descr': '<u8', 'fortran_order': False, 'shape': (), }"};
    if (i >= 8)
        return false;
    const char *text = headers[i % 4];
    size_t version = i < 4 ? 1 : 2, prefix = version == 1 ? 10 : 12, n = strlen(text);
    size_t header = (prefix + n + 1 + 63) / 64 * 64 - prefix;
    memcpy(buf, "\x93NUMPY", 6);
    buf[6] = (uint8_t)version, buf[7] = 0;
    memset(buf + 8, 0, 4);
    buf[8] = (uint8_t)header, buf[9] = (uint8_t)(header >> 8);
    memset(buf + prefix, ' ', header);
    memcpy(buf + prefix, text, n);
    buf[prefix + header - 1] = '\n';
    memset(buf + prefix + header, 1, 24);
    *size = prefix + header + (size_t)(i % 4 == 0 ? 24 : i % 4 == 1 ? 8 : i % 4 == 2 ? 3 : 8);
    return true;
}
