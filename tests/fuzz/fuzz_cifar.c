/* fuzz_cifar.c - hostile CIFAR bytes are refused; accepted ones give records whose labels are classes. */
#include <string.h>

#include "core/io/dataset.h"
#include "fuzz.h"

void fuzz_one(const uint8_t *data, size_t size) {
    for (int label_bytes = 1; label_bytes <= 2; label_bytes++) {
        int classes = label_bytes == 1 ? 10 : 100;
        int64_t count = (int64_t)(size / ((size_t)label_bytes + 3072)), at = 0;
        fx_source *source;
        fuzz_check(fx_source_create("cifar", count ? count : 1, 3, 32, 32, FX_U8, false, &source) == FX_OK);
        if (fx_cifar_parse(data, size, label_bytes, classes, source, &at) == FX_OK) {
            fuzz_check(at == count);
            for (int64_t i = 0; i < at; i++)
                fuzz_check(source->labels[i] >= 0 && source->labels[i] < classes);
        }
        fx_source_release(source);
    }
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    if (i > 3)
        return false;
    *size = (size_t)(i / 2 + 1) * (i % 2 ? 3074 : 3073);
    memset(buf, 7, *size);
    return true;
}
