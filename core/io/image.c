/* image.c - reading an image file whatever its format, and converting channels and sample types. */
#include "core/io/image.h"

#include <stdlib.h>
#include <string.h>

void fx_image_free(fx_image *image) {
    if (!image)
        return;
    free(image->data);
    *image = (fx_image){.data = NULL};
}

fx_status fx_image_check_size(const char *format, unsigned long width, unsigned long height, size_t size,
                              unsigned long pixels_per_byte) {
    if (width == 0 || height == 0)
        return fx_fail(FX_BAD_DATA, "%s: the picture is %lu x %lu pixels", format, width, height);
    if (width > FX_IMAGE_MAX_SIDE || height > FX_IMAGE_MAX_SIDE || width * height > FX_IMAGE_MAX_PIXELS)
        return fx_fail(FX_BAD_DATA,
                       "%s: %lu x %lu pixels; expected at most %u in all and %d on a side; shrink the picture", format,
                       width, height, FX_IMAGE_MAX_PIXELS, FX_IMAGE_MAX_SIDE);
    if (width * height / pixels_per_byte > size)
        return fx_fail(FX_BAD_DATA, "%s: %zu bytes are too few for %lu x %lu pixels", format, size, width, height);
    return FX_OK;
}

fx_status fx_image_make(int width, int height, int channels, fx_dtype dtype, fx_image *out) {
    size_t bytes = (size_t)width * (size_t)height * (size_t)channels * fx_dtype_size(dtype);
    *out = (fx_image){width, height, channels, dtype, calloc(bytes, 1)};
    return out->data ? FX_OK : fx_fail_oom(bytes);
}

static unsigned get(const void *data, fx_dtype dtype, size_t i) {
    return dtype == FX_U8 ? ((const uint8_t *)data)[i] : ((const uint16_t *)data)[i];
}

static void put(void *data, fx_dtype dtype, size_t i, unsigned v) {
    if (dtype == FX_U8)
        ((uint8_t *)data)[i] = (uint8_t)v;
    else
        ((uint16_t *)data)[i] = (uint16_t)v;
}

fx_status fx_image_set_channels(fx_image *image, int channels) {
    int from = image->channels;
    if (channels == from)
        return FX_OK;
    fx_image out;
    FX_TRY(fx_image_make(image->width, image->height, channels, image->dtype, &out));
    fx_dtype dtype = image->dtype;
    size_t pixels = (size_t)image->width * (size_t)image->height;
    for (size_t i = 0; i < pixels; i++) {
        size_t src = i * (size_t)from, dst = i * (size_t)channels;
        unsigned v[3];
        for (int c = 0; c < 3; c++)
            v[c] = get(image->data, dtype, src + (from >= 3 ? (size_t)c : 0));
        if (channels < 3 && from >= 3) /* luma of BT.601 with weights that sum to 65536 */
            v[0] = (v[0] * 19595u + v[1] * 38470u + v[2] * 7471u + 0x8000u) >> 16;
        for (int c = 0; c < (channels < 3 ? 1 : 3); c++)
            put(out.data, dtype, dst + (size_t)c, v[c]);
        if (channels % 2 == 0)
            put(out.data, dtype, dst + (size_t)channels - 1,
                from % 2 == 0    ? get(image->data, dtype, src + (size_t)from - 1)
                : dtype == FX_U8 ? 255
                                 : 65535);
    }
    fx_image_free(image);
    *image = out;
    return FX_OK;
}

fx_status fx_image_set_dtype(fx_image *image, fx_dtype dtype) {
    if (image->dtype == dtype)
        return FX_OK;
    fx_image out;
    FX_TRY(fx_image_make(image->width, image->height, image->channels, dtype, &out));
    size_t n = (size_t)image->width * (size_t)image->height * (size_t)image->channels;
    unsigned most = image->dtype == FX_U8 ? 255 : 65535;
    for (size_t i = 0; i < n; i++) {
        unsigned v = get(image->data, image->dtype, i);
        if (dtype == FX_F32)
            ((float *)out.data)[i] = (float)v / (float)most;
        else
            put(out.data, dtype, i, dtype == FX_U16 ? v * 257 : (v * 255 + 32767) / 65535);
    }
    fx_image_free(image);
    *image = out;
    return FX_OK;
}

static fx_status decode(const unsigned char *data, size_t size, fx_image *out) {
    if (size >= 4 && memcmp(data, "\x89PNG", 4) == 0)
        return fx_png_decode(data, size, out);
    if (size >= 2 && data[0] == 0xff && data[1] == 0xd8)
        return fx_jpeg_decode(data, size, out);
    static const struct {
        const char *magic;
        size_t size;
        const char *what;
    } known[] = {{"GIF8", 4, "a GIF image"},     {"RIFF", 4, "a WebP image"},
                 {"BM", 2, "a BMP image"},       {"II*\0", 4, "a TIFF image"},
                 {"MM\0*", 4, "a TIFF image"},   {"<", 1, "a web page or SVG"},
                 {"\x1f\x8b", 2, "a gzip file"}, {"version https", 13, "a Git LFS pointer"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (size >= known[i].size && memcmp(data, known[i].magic, known[i].size) == 0)
            return fx_fail(FX_UNSUPPORTED, "image: expected PNG or JPEG; got %s", known[i].what);
    return fx_fail(FX_BAD_DATA, "image: expected PNG or JPEG; got %zu bytes of something else", size);
}

static fx_status check_options(const fx_image_options *o) {
    if (o->channels < 0 || o->channels > 4)
        return fx_fail(FX_INVALID_ARGUMENT, "image: %d channels asked; expected 0 to 4", o->channels);
    if (o->dtype != FX_U8 && o->dtype != FX_U16 && o->dtype != FX_F32)
        return fx_fail(FX_INVALID_ARGUMENT, "image: element type %s asked; expected u8, u16 or f32",
                       fx_dtype_name(o->dtype));
    if (o->fit != FX_FIT_CROP && o->fit != FX_FIT_STRETCH)
        return fx_fail(FX_INVALID_ARGUMENT, "image: fit %d asked; expected FX_FIT_CROP or FX_FIT_STRETCH", (int)o->fit);
    if ((o->width == 0) != (o->height == 0) || o->width < 0 || o->height < 0 || o->width > FX_IMAGE_MAX_SIDE ||
        o->height > FX_IMAGE_MAX_SIDE || (size_t)o->width * (size_t)o->height > FX_IMAGE_MAX_PIXELS)
        return fx_fail(FX_INVALID_ARGUMENT, "image: size %d x %d asked; expected 0 x 0 or at most %u pixels", o->width,
                       o->height, FX_IMAGE_MAX_PIXELS);
    return FX_OK;
}

fx_status fx_image_decode(const void *data, size_t size, const fx_image_options *options, fx_image *out) {
    FX_TRY(fx_need(out, "fx_image_decode: out"));
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    *out = (fx_image){.data = NULL};
    FX_TRY(fx_options_take(&o, sizeof o, options, "fx_image_options"));
    FX_TRY(check_options(&o));
    FX_TRY(fx_need_bytes(data, size, "fx_image_decode: data"));
    fx_image image;
    FX_TRY(decode(data, size, &image));
    fx_status status = FX_OK;
    if (o.channels)
        status = fx_image_set_channels(&image, o.channels);
    if (status == FX_OK && o.width)
        status = fx_image_resize(&image, o.width, o.height, o.fit);
    if (status == FX_OK)
        status = fx_image_set_dtype(&image, o.dtype);
    if (status == FX_OK)
        *out = image;
    else
        fx_image_free(&image);
    return status;
}

fx_status fx_image_load(const char *path, const fx_image_options *options, fx_image *out) {
    FX_TRY(fx_need(out, "fx_image_load: out"));
    fx_file_map map;
    *out = (fx_image){.data = NULL};
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    FX_TRY(fx_options_take(&o, sizeof o, options, "fx_image_options"));
    FX_TRY(check_options(&o));
    FX_TRY(fx_file_read(path, &map)); /* a training set may change under a running program */
    fx_status status = fx_image_decode(map.data, map.size, options, out);
    if (status != FX_OK)
        fx_fail_context(status, "%s", FX_QUOTE(path));
    fx_file_map_close(&map);
    return status;
}

fx_status fx_image_write_png(const char *path, const fx_image *image) {
    FX_TRY(fx_need(image, "fx_image_write_png: image"));
    if (image->width < 1 || image->height < 1 || image->width > FX_IMAGE_MAX_SIDE ||
        image->height > FX_IMAGE_MAX_SIDE || image->channels < 1 || image->channels > 4 || !image->data)
        return fx_fail(FX_INVALID_ARGUMENT, "writing a PNG file; got an image of %d x %d pixels and %d channels",
                       image->width, image->height, image->channels);
    if (image->dtype != FX_U8 && image->dtype != FX_U16)
        return fx_fail(FX_INVALID_ARGUMENT, "writing a PNG file; expected u8 or u16 samples; got %s",
                       fx_dtype_name(image->dtype));
    unsigned char *data;
    size_t size;
    FX_TRY(fx_png_encode(image, &data, &size));
    fx_status status = fx_file_replace(path, data, size);
    free(data);
    return status;
}
