/* augment.c - crop, mirror and normalise one sample into a batch. */
#include "core/io/augment.h"

enum { STREAM = 0x61756721 }; /* keeps these draws apart from those of the order */

void fx_augment_init(fx_augment *a, const fx_dataset *dataset, const fx_loader_options *o) {
    const fx_dataset_info *info = &dataset->info;
    *a = (fx_augment){.channels = info->channels,
                      .height = info->height,
                      .width = info->width,
                      .padding = o->crop_padding,
                      .dtype = dataset->source->dtype,
                      .layout = o->layout,
                      .flip = o->flip,
                      .seed = o->seed};
    for (int c = 0; c < 4; c++) {
        double std = o->std[c] != 0 ? (double)o->std[c] : 1;
        a->scale[c] = (float)((double)info->scale / std);
        a->shift[c] = (float)(-(double)o->mean[c] / std);
        for (int v = 0; v < 256; v++)
            a->table[c][v] = (float)(((double)v * (double)info->scale - (double)o->mean[c]) / std);
    }
}

/* Value of channel c at row y, column x of the padded sample; black outside. */
static inline float value(const fx_augment *a, const void *raw, int y, int x, int c) {
    bool inside = y >= 0 && y < a->height && x >= 0 && x < a->width;
    size_t i = inside ? ((size_t)y * (size_t)a->width + (size_t)x) * (size_t)a->channels + (size_t)c : 0;
    if (a->dtype == FX_U8)
        return a->table[c][inside ? ((const uint8_t *)raw)[i] : 0];
    return (inside ? ((const float *)raw)[i] : 0) * a->scale[c] + a->shift[c];
}

void fx_augment_apply(const fx_augment *a, const void *raw, int64_t epoch, int64_t index, float *dst) {
    int dy = 0, dx = 0;
    bool mirror = false;
    if (a->flip || a->padding > 0) {
        uint64_t word = fx_counter_random(a->seed ^ STREAM, (uint64_t)epoch, (uint64_t)index);
        uint64_t places = 2 * (uint64_t)a->padding + 1;
        mirror = a->flip && word & 1;
        dy = (int)fx_random_below(fx_mix64(word + 1), places) - a->padding;
        dx = (int)fx_random_below(fx_mix64(word + 2), places) - a->padding;
    }
    int step = mirror ? -1 : 1, x0 = (mirror ? a->width - 1 : 0) + dx;
    if (a->layout == FX_LAYOUT_NHWC) {
        for (int y = 0; y < a->height; y++)
            for (int x = 0; x < a->width; x++)
                for (int c = 0; c < a->channels; c++)
                    *dst++ = value(a, raw, y + dy, x0 + step * x, c);
    } else {
        for (int c = 0; c < a->channels; c++)
            for (int y = 0; y < a->height; y++)
                for (int x = 0; x < a->width; x++)
                    *dst++ = value(a, raw, y + dy, x0 + step * x, c);
    }
}
