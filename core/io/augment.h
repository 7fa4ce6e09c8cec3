/* augment.h - turns a stored sample into the floats of a batch: crop, mirror, scale, normalise, lay out. */
#ifndef FX_IO_AUGMENT_H
#define FX_IO_AUGMENT_H

#include "core/io/dataset.h"

/* Fixed for a loader's life; read by all its workers. */
typedef struct fx_augment {
    int channels, height, width, padding;
    fx_dtype dtype;
    fx_layout layout;
    bool flip;
    uint64_t seed;
    float scale[4], shift[4]; /* stored value * scale + shift */
    float table[4][256];      /* the same for every u8 value */
} fx_augment;

void fx_augment_init(fx_augment *a, const fx_dataset *dataset, const fx_loader_options *options);
/* Writes height * width * channels floats. What is drawn depends on the seed, the epoch and the index alone. */
void fx_augment_apply(const fx_augment *a, const void *raw, int64_t epoch, int64_t index, float *dst);

#endif
