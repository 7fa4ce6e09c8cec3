/* random_images.c - a data set of noise, made when a sample is read: what benchmarks train on.
 *
 * A sample's bytes and label depend on the seed and its index alone. */
#include <stdlib.h>
#include <string.h>

#include "core/io/dataset.h"

static fx_status read_noise(const fx_source *source, int64_t i, void *dst) {
    uint64_t seed = *(const uint64_t *)source->state;
    size_t n = (size_t)source->height * (size_t)source->width * (size_t)source->channels;
    unsigned char *p = dst;
    uint64_t base = fx_counter_random(seed, 1, (uint64_t)i);
    for (size_t k = 0; k < n; k += 8) {
        uint64_t word = fx_mix64(base + k);
        memcpy(p + k, &word, n - k < 8 ? n - k : 8);
    }
    return FX_OK;
}

fx_status fx_dataset_random(const fx_dataset_options *o, fx_dataset **out) {
    int classes = o->classes ? o->classes : 10;
    fx_source *source;
    uint64_t *seed;
    *out = NULL;
    FX_TRY(fx_source_create("random", o->count, o->channels, o->height, o->width, FX_U8, true, &source));
    if (!(seed = malloc(sizeof *seed))) {
        fx_source_release(source);
        return fx_fail_oom(sizeof *seed);
    }
    *seed = o->seed;
    source->read = read_noise;
    source->state = seed;
    source->finish = free;
    for (int64_t i = 0; i < source->count; i++)
        source->labels[i] = (int32_t)fx_random_below(fx_counter_random(o->seed, 2, (uint64_t)i), (uint64_t)classes);
    return fx_dataset_make(source, classes, out);
}
