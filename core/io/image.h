/* image.h - the image decoders behind fx_image_decode, and the helpers they share. */
#ifndef FX_IO_IMAGE_H
#define FX_IO_IMAGE_H

#include "core/io/file.h"

/* Decode to u8 or u16 with the file's own channels. On failure *out stays empty. */
fx_status fx_png_decode(const unsigned char *data, size_t size, fx_image *out);
fx_status fx_jpeg_decode(const unsigned char *data, size_t size, fx_image *out);
/* Encodes a u8 or u16 image into new memory, which the caller frees. */
fx_status fx_png_encode(const fx_image *image, unsigned char **data, size_t *size);

enum { FX_IMAGE_MAX_SIDE = 65535 };
/* FX_BAD_DATA unless width x height is within the limits and `size` bytes of a file could hold so many pixels, of which
 * one byte describes at most `pixels_per_byte`. */
fx_status fx_image_check_size(const char *format, unsigned long width, unsigned long height, size_t size,
                              unsigned long pixels_per_byte);
/* Allocates data for an image whose size was checked. */
fx_status fx_image_make(int width, int height, int channels, fx_dtype dtype, fx_image *out);

/* u8 or u16 images. Converts the channels in place, by way of a new allocation. */
fx_status fx_image_set_channels(fx_image *image, int channels);
/* u8, u16 and f32. */
fx_status fx_image_set_dtype(fx_image *image, fx_dtype dtype);
fx_status fx_image_resize(fx_image *image, int width, int height, fx_fit fit);

#endif
