/* png.c - PNG files in memory, read and written by libpng.
 *
 * libpng reports errors by longjmp: everything that must survive lives in a struct outside the function that
 * calls setjmp. Chunks that do not change samples are skipped unread; any damage is an error. */
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/image.h"

typedef struct reader {
    png_structp png;
    png_infop info;
    const unsigned char *data;
    size_t size, at;
    fx_image image;
    png_bytep *rows;
    fx_status status; /* of our own checks; FX_OK when libpng failed */
    char error[160];
} reader;

static void on_error(png_structp png, png_const_charp text) {
    char *error = png_get_error_ptr(png);
    strncpy(error, text, 159);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}

static void on_read(png_structp png, png_bytep dst, size_t n) {
    reader *r = png_get_io_ptr(png);
    if (n > r->size - r->at)
        png_error(png, "the file ends too early");
    memcpy(dst, r->data + r->at, n);
    r->at += n;
}

static fx_status begin_image(reader *r) {
    png_uint_32 width = png_get_image_width(r->png, r->info), height = png_get_image_height(r->png, r->info);
    int depth = png_get_bit_depth(r->png, r->info), channels = png_get_channels(r->png, r->info);
    /* deflate gives at most 1032 bytes for one */
    FX_TRY(fx_image_check_size("PNG", width, height, r->size, 1040ul * 8 / (unsigned long)(depth * channels) + 1));
    png_set_expand(r->png); /* palettes, small samples, transparent colours */
    if (depth == 16)
        png_set_swap(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    FX_TRY(fx_image_make((int)width, (int)height, png_get_channels(r->png, r->info), depth == 16 ? FX_U16 : FX_U8,
                         &r->image));
    size_t row = (size_t)width * (size_t)r->image.channels * fx_dtype_size(r->image.dtype);
    if (png_get_rowbytes(r->png, r->info) != row)
        return fx_fail(FX_UNSUPPORTED, "PNG: unexpected sample layout");
    r->rows = malloc(height * sizeof *r->rows);
    if (!r->rows)
        return fx_fail_oom(height * sizeof *r->rows);
    for (png_uint_32 y = 0; y < height; y++)
        r->rows[y] = (png_bytep)r->image.data + y * row;
    return FX_OK;
}

/* False when libpng jumped out; nothing here lives across the jump but *r. */
static bool decode(reader *r) {
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, on_read);
    png_set_user_limits(r->png, FX_IMAGE_MAX_SIDE, FX_IMAGE_MAX_SIDE);
    png_set_crc_action(r->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_set_benign_errors(r->png, 0);
    png_read_info(r->png, r->info);
    if ((r->status = begin_image(r)) != FX_OK)
        return true;
    png_read_image(r->png, r->rows);
    png_read_end(r->png, NULL);
    return true;
}

fx_status fx_png_decode(const unsigned char *data, size_t size, fx_image *out) {
    reader r = {.data = data, .size = size};
    *out = (fx_image){.data = NULL};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r.error, on_error, on_warning);
    if (r.png)
        r.info = png_create_info_struct(r.png);
    fx_status status;
    if (!r.png || !r.info)
        status = fx_fail_oom(1 << 12);
    else if (!decode(&r))
        status = fx_fail(FX_BAD_DATA, "PNG: %s", r.error);
    else
        status = r.status;
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.rows);
    if (status == FX_OK)
        *out = r.image;
    else
        fx_image_free(&r.image);
    return status;
}

typedef struct writer {
    png_structp png;
    png_infop info;
    const fx_image *image;
    unsigned char *data;
    size_t size, room;
    char error[160];
} writer;

static void on_write(png_structp png, png_bytep src, size_t n) {
    writer *w = png_get_io_ptr(png);
    if (n > w->room - w->size) {
        size_t room = 2 * w->room + n + 4096;
        unsigned char *more = realloc(w->data, room);
        if (!more)
            png_error(png, "out of memory");
        w->data = more;
        w->room = room;
    }
    memcpy(w->data + w->size, src, n);
    w->size += n;
}

static void on_flush(png_structp png) {
    (void)png;
}

static bool encode(writer *w) {
    static const int colour[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(w->png)))
        return false;
    const fx_image *image = w->image;
    size_t sample = fx_dtype_size(image->dtype), row = (size_t)image->width * (size_t)image->channels * sample;
    png_set_write_fn(w->png, w, on_write, on_flush);
    png_set_IHDR(w->png, w->info, (png_uint_32)image->width, (png_uint_32)image->height, (int)sample * 8,
                 colour[image->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    if (sample == 2)
        png_set_swap(w->png);
    for (int y = 0; y < image->height; y++)
        png_write_row(w->png, (png_const_bytep)image->data + (size_t)y * row);
    png_write_end(w->png, NULL);
    return true;
}

fx_status fx_png_encode(const fx_image *image, unsigned char **data, size_t *size) {
    writer w = {.image = image};
    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, w.error, on_error, on_warning);
    if (w.png)
        w.info = png_create_info_struct(w.png);
    fx_status status = FX_OK;
    if (!w.png || !w.info)
        status = fx_fail_oom(1 << 12);
    else if (!encode(&w))
        status = fx_fail(FX_OUT_OF_MEMORY, "PNG: cannot encode: %s", w.error);
    png_destroy_write_struct(&w.png, &w.info);
    if (status != FX_OK)
        free(w.data);
    else {
        *data = w.data;
        *size = w.size;
    }
    return status;
}
