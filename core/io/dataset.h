/* dataset.h - how a data set is made of a source, for the readers of data sets and the loader.
 *
 * A source holds or makes samples and is shared; a data set is a source and a list of the samples it shows. Both are
 * immutable once made, so threads read them without locks. */
#ifndef FX_IO_DATASET_H
#define FX_IO_DATASET_H

#include <stdatomic.h>

#include "core/io/file.h"

typedef struct fx_source fx_source;
struct fx_source {
    atomic_int references;
    char *name;
    int64_t count;
    int channels, height, width, classes;
    fx_dtype dtype;     /* of a sample: FX_U8 or FX_F32 */
    float scale;        /* sample * scale is in [0, 1] */
    int32_t *labels;    /* [count] */
    char **label_names; /* [classes] or NULL */
    void *images;       /* [count][height][width][channels], or NULL: made by `read` */
    /* Makes sample i into dst, height * width * channels elements. Any thread. */
    fx_status (*read)(const fx_source *source, int64_t i, void *dst);
    void *state; /* of `read`, released by `finish` (may be NULL) */
    void (*finish)(void *state);
};

struct fx_dataset {
    atomic_int references;
    fx_source *source;
    int64_t *indices; /* [info.count] into the source; NULL: all, in order */
    fx_dataset_info info;
};

/* A source with memory for labels, and for images unless `lazy`. The caller fills it and passes it to fx_dataset_make.
 */
fx_status fx_source_create(const char *name, int64_t count, int channels, int height, int width, fx_dtype dtype,
                           bool lazy, fx_source **out);
void fx_source_release(fx_source *source); /* accepts NULL */
/* Checks that labels are in [0, classes), classes 0 becoming the largest + 1, then makes a data set of the whole
 * source. Takes the caller's reference, also on failure. */
fx_status fx_dataset_make(fx_source *source, int classes, fx_dataset **out);

/* Sample `index` as stored: *raw points into the data set or to `scratch`, which holds one sample. */
fx_status fx_dataset_raw(const fx_dataset *dataset, int64_t index, void *scratch, const void **raw, int32_t *label);
size_t fx_dataset_sample_elements(const fx_dataset *dataset);

/* A pair of IDX files; scale as in fx_dataset_from_arrays. */
fx_status fx_dataset_idx_scaled(const char *name, const char *images, const char *labels, int classes, float scale,
                                fx_dataset **out);
fx_status fx_dataset_cifar(const char *dir, int classes, fx_split split, fx_dataset **out);
/* Appends the records of one CIFAR file (label_bytes labels, of which the last counts, and 3 planes of 32x32) at sample
 * *at of the source. */
fx_status fx_cifar_parse(const unsigned char *data, size_t size, int label_bytes, int classes, fx_source *source,
                         int64_t *at);
/* dir: one folder a class. class_dir: the folder whose list of classes counts. */
fx_status fx_dataset_folder(const char *dir, const char *class_dir, const fx_dataset_options *o, fx_dataset **out);
fx_status fx_dataset_random(const fx_dataset_options *o, fx_dataset **out);

/* Counter-based randomness: a well mixed 64-bit word for each (seed, stream, counter). */
static inline uint64_t fx_mix64(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}
static inline uint64_t fx_counter_random(uint64_t seed, uint64_t stream, uint64_t counter) {
    return fx_mix64(fx_mix64(fx_mix64(seed) ^ stream) ^ counter);
}
/* A word scaled to [0, n). */
static inline uint64_t fx_random_below(uint64_t word, uint64_t n) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)word * n >> 64);
}

#endif
