/* resize.c - brings an image to a size with a triangle filter, first along rows, then along columns.
 *
 * The filter is one output pixel wide, at least one input pixel: linear interpolation when enlarging, a weighted mean
 * over all covered pixels when shrinking, so that nothing is skipped. Weights of each output pixel sum to 1. */
#include <math.h>
#include <stdlib.h>

#include "core/io/image.h"

/* Which input pixels an output pixel is made of: `count` from `first`, weights at weights[i * stride]. */
typedef struct filter {
    int *first, *count;
    float *weights;
    int stride;
} filter;

static void filter_finish(filter *f) {
    free(f->first);
    free(f->count);
    free(f->weights);
}

/* Output pixels 0..out-1 cover [begin, begin + length) of an axis of `in` pixels. */
static fx_status filter_init(filter *f, int in, int out, double begin, double length) {
    double step = length / out, radius = step > 1 ? step : 1;
    f->stride = (int)ceil(2 * radius) + 1;
    if (f->stride > in)
        f->stride = in;
    f->first = malloc((size_t)out * sizeof *f->first);
    f->count = malloc((size_t)out * sizeof *f->count);
    f->weights = malloc((size_t)out * (size_t)f->stride * sizeof *f->weights);
    if (!f->first || !f->count || !f->weights)
        return fx_fail_oom((size_t)out * (size_t)f->stride * sizeof *f->weights);
    for (int i = 0; i < out; i++) {
        double centre = begin + (i + 0.5) * step, sum = 0;
        int lo = (int)floor(centre - radius + 0.5), hi = (int)floor(centre + radius + 0.5); /* [lo, hi) */
        lo = lo < 0 ? 0 : lo > in - 1 ? in - 1 : lo;
        hi = hi > in ? in : hi <= lo ? lo + 1 : hi;
        if (hi - lo > f->stride)
            hi = lo + f->stride;
        float *w = f->weights + (size_t)i * (size_t)f->stride;
        for (int j = lo; j < hi; j++) {
            double d = 1 - fabs(j + 0.5 - centre) / radius;
            w[j - lo] = d > 0 ? (float)d : 0;
            sum += (double)w[j - lo];
        }
        for (int j = lo; j < hi; j++)
            w[j - lo] = sum > 0 ? (float)((double)w[j - lo] / sum) : 1 / (float)(hi - lo);
        f->first[i] = lo;
        f->count[i] = hi - lo;
    }
    return FX_OK;
}

static float sample(const fx_image *image, size_t i) {
    return image->dtype == FX_U8 ? (float)((const uint8_t *)image->data)[i] : (float)((const uint16_t *)image->data)[i];
}

static void resize_rows(const fx_image *in, const filter *f, int out_width, int y0, int y1, float *dst) {
    size_t ch = (size_t)in->channels;
    for (int y = y0; y < y1; y++)
        for (int x = 0; x < out_width; x++) {
            const float *w = f->weights + (size_t)x * (size_t)f->stride;
            size_t src = ((size_t)y * (size_t)in->width + (size_t)f->first[x]) * ch;
            for (size_t c = 0; c < ch; c++) {
                float sum = 0;
                for (int j = 0; j < f->count[x]; j++)
                    sum += w[j] * sample(in, src + (size_t)j * ch + c);
                *dst++ = sum;
            }
        }
}

static void resize_columns(const float *rows, const filter *f, int y0, fx_image *out) {
    size_t width = (size_t)out->width * (size_t)out->channels;
    float most = out->dtype == FX_U8 ? 255 : 65535;
    for (int y = 0; y < out->height; y++) {
        const float *w = f->weights + (size_t)y * (size_t)f->stride, *src = rows + (size_t)(f->first[y] - y0) * width;
        for (size_t x = 0; x < width; x++) {
            float sum = 0;
            for (int j = 0; j < f->count[y]; j++)
                sum += w[j] * src[(size_t)j * width + x];
            sum = sum < 0 ? 0 : sum > most ? most : sum;
            if (out->dtype == FX_U8)
                ((uint8_t *)out->data)[(size_t)y * width + x] = (uint8_t)(sum + 0.5f);
            else
                ((uint16_t *)out->data)[(size_t)y * width + x] = (uint16_t)(sum + 0.5f);
        }
    }
}

fx_status fx_image_resize(fx_image *image, int width, int height, fx_fit fit) {
    if (image->width == width && image->height == height)
        return FX_OK;
    double w = image->width, h = image->height, box_w = w, box_h = h;
    if (fit == FX_FIT_CROP) { /* the largest centred box of the target's aspect ratio */
        double scale = fmin(w / width, h / height);
        box_w = width * scale;
        box_h = height * scale;
    }
    filter fx = {.stride = 0}, fy = {.stride = 0};
    float *rows = NULL;
    fx_image out = {.data = NULL};
    fx_status status = filter_init(&fx, image->width, width, (w - box_w) / 2, box_w);
    if (status == FX_OK)
        status = filter_init(&fy, image->height, height, (h - box_h) / 2, box_h);
    if (status == FX_OK)
        status = fx_image_make(width, height, image->channels, image->dtype, &out);
    if (status == FX_OK) {
        int y0 = fy.first[0], y1 = fy.first[height - 1] + fy.count[height - 1];
        size_t bytes = (size_t)(y1 - y0) * (size_t)width * (size_t)image->channels * sizeof *rows;
        rows = malloc(bytes);
        if (!rows) {
            status = fx_fail_oom(bytes);
        } else {
            resize_rows(image, &fx, width, y0, y1, rows);
            resize_columns(rows, &fy, y0, &out);
        }
    }
    free(rows);
    filter_finish(&fx);
    filter_finish(&fy);
    if (status != FX_OK) {
        fx_image_free(&out);
        return status;
    }
    fx_image_free(image);
    *image = out;
    return FX_OK;
}
