/* fuzz_image.c - hostile PNG and JPEG bytes are refused; accepted ones give every sample, at any size asked for. */
#include <fornax/io.h>
#include <string.h>

#include "fuzz.h"

void fuzz_one(const uint8_t *data, size_t size) {
    fx_image image;
    if (fx_image_decode(data, size, NULL, &image) != FX_OK) {
        fuzz_check(fx_last_error()[0] != '\0' && !image.data);
        return;
    }
    volatile unsigned sum = 0;
    fuzz_check(image.width > 0 && image.height > 0 && image.channels >= 1 && image.channels <= 4);
    for (size_t i = 0; i < (size_t)image.width * (size_t)image.height * (size_t)image.channels; i++)
        sum += ((const uint8_t *)image.data)[i];
    (void)sum; /* reading it all was the point */
    fx_image_free(&image);
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    o.channels = 1 + (int)(size & 3);
    o.width = 5;
    o.height = 7;
    o.fit = size & 4 ? FX_FIT_CROP : FX_FIT_STRETCH;
    o.dtype = FX_F32;
    fuzz_check(fx_image_decode(data, size, &o, &image) == FX_OK);
    for (size_t i = 0; i < 35 * (size_t)o.channels; i++)
        fuzz_check(((const float *)image.data)[i] >= 0 && ((const float *)image.data)[i] <= 1);
    fx_image_free(&image);
}

/* Four JPEG files in hexadecimal, as in the file cases E-013: grey, progressive colour, CMYK, RGB. */
static const char *const jpegs[] = {
    "ffd8ffdb00430008010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010101010101010101010101ffc0000b080010001801011100ffc4001f000000000c00000000000000"
    "0000000000000102030405060708090a0bffc40014100100000000000000000000000000000000ffda0008010100003f0071"
    "26c8d91b23646a1fffd9",
    "ffd8ffdb00430008010101010101010101010101010101010101010101010101010101010101010101010101010101010101"
    "010101010101010101010101010101010101010101ffc20011080010001003012200021100031100ffc4001f000000000c00"
    "0000000000000000000000000102030405060708090a0bffc40014100100000000000000000000000000000000ffda000c03"
    "01000200030000000051800332da7fffda0008010100013f000fffda0008010200013f007fffda0008010300013f007fffd9",
    "ffd8ffee000e41646f626500640000000000ffdb004300080101010101010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010101010101010101010101010101ffc00014080008000804011100"
    "021100031100041100ffc4001f000000000c000000000000000000000000000102030405060708090a0bffc4001410010000"
    "0000000000000000000000000000ffda000e040100020003000400003f00790519d89ffbffd9",
    "ffd8ffee000e41646f626500640000000000ffdb004300080101010101010101010101010101010101010101010101010101"
    "01010101010101010101010101010101010101010101010101010101010101010101010101ffc00011080008000803011100"
    "021100031100ffc4001f000000000c000000000000000000000000000102030405060708090a0bffc4001410010000000000"
    "0000000000000000000000ffda000c03010002000300003f00790519d8bfffd9",
};

static size_t decode_hex(const char *hex, uint8_t *buf) {
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned byte = 0;
        fuzz_check(sscanf(hex + 2 * i, "%2x", &byte) == 1);
        buf[i] = (uint8_t)byte;
    }
    return n;
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    uint8_t samples[5 * 3 * 4 * 2];
    for (size_t k = 0; k < sizeof samples; k++)
        samples[k] = (uint8_t)(k * 37);
    if (i < 4) {
        *size = decode_hex(jpegs[i], buf);
        return true;
    }
    if (i >= 12) /* 1 to 4 channels of 8 and of 16 bits */
        return false;
    fx_image image = {5, 3, 1 + i % 4, i < 8 ? FX_U8 : FX_U16, samples};
    fuzz_check(fx_image_write_png(fuzz_temporary(), &image) == FX_OK);
    return fuzz_take(buf, size);
}
