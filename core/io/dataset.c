/* dataset.c - data sets over shared sources: creation, splitting, reading, statistics. */
#include "core/io/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fx_status fx_source_create(const char *name, int64_t count, int channels, int height, int width, fx_dtype dtype,
                           bool lazy, fx_source **out) {
    *out = NULL;
    if (count < 1)
        return fx_fail(FX_BAD_DATA, "data set %s has no samples", name);
    if (channels < 1 || channels > 4 || height < 1 || width < 1)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "data set %s: images of %d x %d pixels and %d channels; expected 1 to 4 channels"
                       " and at least one pixel",
                       name, height, width, channels);
    fx_spec spec = FX_SPEC(dtype, lazy ? 1 : count, height, width, channels);
    size_t bytes;
    FX_TRY(fx_spec_bytes(&spec, &bytes));
    fx_source *s = calloc(1, sizeof *s);
    if (!s)
        return fx_fail_oom(sizeof *s);
    atomic_init(&s->references, 1);
    s->name = fx_strdup(name);
    s->count = count;
    s->channels = channels;
    s->height = height;
    s->width = width;
    s->dtype = dtype;
    s->scale = dtype == FX_U8 ? 1.0f / 255 : 1;
    s->labels = calloc((size_t)count, sizeof *s->labels);
    s->images = lazy ? NULL : malloc(bytes);
    if (!s->name || !s->labels || (!lazy && !s->images)) {
        fx_source_release(s);
        return fx_fail_oom(bytes);
    }
    *out = s;
    return FX_OK;
}

void fx_source_release(fx_source *s) {
    if (!s || atomic_fetch_sub(&s->references, 1) != 1)
        return;
    if (s->finish)
        s->finish(s->state);
    for (int i = 0; s->label_names && i < s->classes; i++)
        free(s->label_names[i]);
    free(s->label_names);
    free(s->images);
    free(s->labels);
    free(s->name);
    free(s);
}

/* A data set of `count` samples of the source; takes indices; keeps a reference of its own to the source. */
static fx_status show(fx_source *source, int64_t *indices, int64_t count, fx_dataset **out) {
    fx_dataset *d = calloc(1, sizeof *d);
    if (!d) {
        free(indices);
        return fx_fail_oom(sizeof *d);
    }
    atomic_init(&d->references, 1);
    atomic_fetch_add(&source->references, 1);
    d->source = source;
    d->indices = indices;
    d->info = (fx_dataset_info){.count = count,
                                .channels = source->channels,
                                .height = source->height,
                                .width = source->width,
                                .classes = source->classes,
                                .label_names = (const char *const *)source->label_names,
                                .scale = source->scale,
                                .name = source->name};
    *out = d;
    return FX_OK;
}

fx_status fx_dataset_make(fx_source *source, int classes, fx_dataset **out) {
    *out = NULL;
    int32_t most = -1;
    fx_status status = FX_OK;
    for (int64_t i = 0; i < source->count && status == FX_OK; i++) {
        int32_t label = source->labels[i];
        if (label < 0 || (classes > 0 && label >= classes))
            status = fx_fail(FX_BAD_DATA, "data set %s: label %d of sample %lld; expected 0 to %d", source->name, label,
                             (long long)i, (classes > 0 ? classes : INT32_MAX) - 1);
        most = label > most ? label : most;
    }
    if (status == FX_OK && most == INT32_MAX)
        status = fx_fail(FX_BAD_DATA, "data set %s: label %d is too large", source->name, most);
    if (status == FX_OK) {
        if (!source->label_names)
            source->classes = classes > 0 ? classes : most + 1;
        status = show(source, NULL, source->count, out);
    }
    fx_source_release(source);
    return status;
}

fx_dataset *fx_dataset_retain(fx_dataset *dataset) {
    if (dataset)
        atomic_fetch_add(&dataset->references, 1);
    return dataset;
}

void fx_dataset_destroy(fx_dataset *dataset) {
    if (!dataset || atomic_fetch_sub(&dataset->references, 1) != 1)
        return;
    fx_source_release(dataset->source);
    free(dataset->indices);
    free(dataset);
}

const fx_dataset_info *fx_dataset_get_info(const fx_dataset *dataset) {
    return dataset ? &dataset->info : NULL;
}

size_t fx_dataset_sample_elements(const fx_dataset *dataset) {
    return (size_t)dataset->info.height * (size_t)dataset->info.width * (size_t)dataset->info.channels;
}

fx_status fx_dataset_raw(const fx_dataset *dataset, int64_t index, void *scratch, const void **raw, int32_t *label) {
    const fx_source *s = dataset->source;
    if (index < 0 || index >= dataset->info.count)
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s: sample %lld; expected 0 to %lld", s->name, (long long)index,
                       (long long)dataset->info.count - 1);
    int64_t i = dataset->indices ? dataset->indices[index] : index;
    if (label)
        *label = s->labels[i];
    if (!raw)
        return FX_OK;
    if (s->images) {
        *raw = (const char *)s->images + (size_t)i * fx_dataset_sample_elements(dataset) * fx_dtype_size(s->dtype);
        return FX_OK;
    }
    *raw = scratch;
    return s->read(s, i, scratch);
}

fx_status fx_dataset_read(const fx_dataset *dataset, int64_t index, float *image, int32_t *label) {
    FX_TRY(fx_need(dataset, "fx_dataset_read: dataset"));
    if (!image)
        return fx_dataset_raw(dataset, index, NULL, NULL, label);
    size_t n = fx_dataset_sample_elements(dataset);
    const fx_source *s = dataset->source;
    void *scratch = s->images ? NULL : malloc(n * fx_dtype_size(s->dtype));
    if (!s->images && !scratch)
        return fx_fail_oom(n * fx_dtype_size(s->dtype));
    const void *raw;
    fx_status status = fx_dataset_raw(dataset, index, scratch, &raw, label);
    for (size_t i = 0; i < n && status == FX_OK; i++)
        image[i] = s->scale * (s->dtype == FX_U8 ? (float)((const uint8_t *)raw)[i] : ((const float *)raw)[i]);
    free(scratch);
    return status;
}

fx_status fx_dataset_statistics(const fx_dataset *dataset, int64_t limit, float *mean, float *std) {
    FX_TRY(fx_need(dataset, "fx_dataset_statistics: dataset"));
    FX_TRY(fx_need(mean, "fx_dataset_statistics: mean"));
    FX_TRY(fx_need(std, "fx_dataset_statistics: std"));
    int64_t count = dataset->info.count, used = limit > 0 && limit < count ? limit : count;
    size_t n = fx_dataset_sample_elements(dataset), channels = (size_t)dataset->info.channels;
    float *image = malloc(n * sizeof *image);
    if (!image)
        return fx_fail_oom(n * sizeof *image);
    double sum[4] = {0}, square[4] = {0};
    fx_status status = FX_OK;
    for (int64_t k = 0; k < used && status == FX_OK; k++) {
        int64_t index = (int64_t)((double)k * (double)count / (double)used);
        status = fx_dataset_read(dataset, index, image, NULL);
        for (size_t i = 0; i < n && status == FX_OK; i++) {
            double v = (double)image[i];
            sum[i % channels] += v;
            square[i % channels] += v * v;
        }
    }
    free(image);
    double pixels = (double)used * (double)(n / channels);
    for (size_t c = 0; c < channels && status == FX_OK; c++) {
        double m = sum[c] / pixels, variance = square[c] / pixels - m * m;
        mean[c] = (float)m;
        std[c] = (float)sqrt(variance > 0 ? variance : 0);
    }
    return status;
}

typedef struct ranked {
    uint64_t key;
    int64_t index;
} ranked;

static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Marks in test[] the samples of every class that are held out: those with the smallest random keys. */
static void choose(const fx_dataset *d, double fraction, uint64_t seed, ranked *order, bool *test) {
    for (int32_t label = 0; label < d->info.classes; label++) {
        int64_t n = 0;
        for (int64_t i = 0; i < d->info.count; i++)
            if (d->source->labels[d->indices ? d->indices[i] : i] == label)
                order[n++] = (ranked){fx_counter_random(seed, 0, (uint64_t)i), i};
        if (n)
            qsort(order, (size_t)n, sizeof *order, compare_ranked);
        int64_t held = (int64_t)floor(fraction * (double)n + 0.5);
        for (int64_t i = 0; i < held; i++)
            test[order[i].index] = true;
    }
}

fx_status fx_dataset_split(fx_dataset *dataset, double test_fraction, uint64_t seed, fx_dataset **train,
                           fx_dataset **test) {
    FX_TRY(fx_need(train, "fx_dataset_split: train"));
    FX_TRY(fx_need(test, "fx_dataset_split: test"));
    *train = *test = NULL;
    FX_TRY(fx_need(dataset, "fx_dataset_split: dataset"));
    if (!(test_fraction >= 0 && test_fraction <= 1))
        return fx_fail(FX_INVALID_ARGUMENT, "splitting a data set: test fraction %g; expected 0 to 1", test_fraction);
    size_t count = (size_t)dataset->info.count;
    ranked *order = malloc(count * sizeof *order);
    bool *held = calloc(count, sizeof *held);
    int64_t *parts[2] = {malloc(count * sizeof(int64_t)), malloc(count * sizeof(int64_t))}, n[2] = {0, 0};
    fx_status status = FX_OK;
    if (!order || !held || !parts[0] || !parts[1]) {
        status = fx_fail_oom(count * sizeof *order);
    } else {
        choose(dataset, test_fraction, seed, order, held);
        for (size_t i = 0; i < count; i++)
            parts[held[i]][n[held[i]]++] = dataset->indices ? dataset->indices[i] : (int64_t)i;
        if (!n[0] || !n[1])
            status = fx_fail(FX_INVALID_ARGUMENT, "splitting a data set of %zu samples at %g leaves one part empty",
                             count, test_fraction);
    }
    for (int p = 0; p < 2 && status == FX_OK; p++) {
        status = show(dataset->source, parts[p], n[p], p ? test : train); /* takes the list */
        parts[p] = NULL;
    }
    free(parts[0]);
    free(parts[1]);
    free(order);
    free(held);
    if (status != FX_OK) {
        fx_dataset_destroy(*train);
        *train = NULL;
    }
    return status;
}

static fx_status copy_labels(const fx_spec *spec, const void *labels, fx_source *s) {
    for (int64_t i = 0; i < s->count; i++) {
        uint64_t value = 0;
        size_t size = fx_dtype_size(spec->dtype);
        memcpy(&value, (const char *)labels + (size_t)i * size, size); /* little-endian */
        bool negative = fx_dtype_is_signed(spec->dtype) && value >> (8 * size - 1) & 1;
        if (negative || value >= INT32_MAX)
            return fx_fail(FX_BAD_DATA, "data set %s: the label of sample %lld is %s", s->name, (long long)i,
                           negative ? "negative" : "too large");
        s->labels[i] = (int32_t)value;
    }
    return FX_OK;
}

static fx_status from_arrays(const char *name, const fx_spec *images_spec, const void *images,
                             const fx_spec *labels_spec, const void *labels, int classes, float scale,
                             fx_dataset **out) {
    char text[128], text2[128];
    *out = NULL;
    FX_TRY(fx_need(images_spec, "data set: images_spec"));
    FX_TRY(fx_need(labels_spec, "data set: labels_spec"));
    if (classes < 0 || !(scale >= 0 && scale <= 3e38f))
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s: %d classes, scale %g; expected 0 or more, finite", name,
                       classes, (double)scale);
    if ((images_spec->dtype != FX_U8 && images_spec->dtype != FX_F32) ||
        (images_spec->rank != 3 && images_spec->rank != 4))
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s: images %s; expected u8 or f32, [N,H,W] or [N,H,W,C]", name,
                       fx_spec_format(images_spec, text, sizeof text));
    if (!fx_dtype_is_int(labels_spec->dtype) || labels_spec->rank != 1)
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s: labels %s; expected integers [N]", name,
                       fx_spec_format(labels_spec, text, sizeof text));
    if (images_spec->dims[0] != labels_spec->dims[0])
        return fx_fail(FX_INVALID_ARGUMENT,
                       "data set %s: %lld images but %lld labels (%s and %s); the files do not belong"
                       " together",
                       name, (long long)images_spec->dims[0], (long long)labels_spec->dims[0],
                       fx_spec_format(images_spec, text, sizeof text),
                       fx_spec_format(labels_spec, text2, sizeof text2));
    for (int d = 1; d < images_spec->rank; d++)
        if (images_spec->dims[d] > INT32_MAX)
            return fx_fail(FX_INVALID_ARGUMENT, "data set %s: image dimension %d is too large", name, d);
    size_t bytes;
    fx_source *s;
    FX_TRY(fx_spec_bytes(images_spec, &bytes));
    FX_TRY(fx_need_bytes(images, bytes, "data set: images"));
    FX_TRY(fx_need_bytes(labels, (size_t)labels_spec->dims[0], "data set: labels"));
    FX_TRY(fx_source_create(name, images_spec->dims[0], images_spec->rank == 4 ? (int)images_spec->dims[3] : 1,
                            (int)images_spec->dims[1], (int)images_spec->dims[2], images_spec->dtype, false, &s));
    memcpy(s->images, images, bytes);
    if (scale != 0)
        s->scale = scale;
    fx_status status = copy_labels(labels_spec, labels, s);
    if (status != FX_OK) {
        fx_source_release(s);
        return status;
    }
    return fx_dataset_make(s, classes, out);
}

fx_status fx_dataset_from_arrays(const fx_spec *images_spec, const void *images, const fx_spec *labels_spec,
                                 const void *labels, int classes, float scale, fx_dataset **out) {
    FX_TRY(fx_need(out, "fx_dataset_from_arrays: out"));
    return from_arrays("arrays", images_spec, images, labels_spec, labels, classes, scale, out);
}

fx_status fx_dataset_idx_scaled(const char *name, const char *images, const char *labels, int classes, float scale,
                                fx_dataset **out) {
    fx_host_array x = {.data = NULL}, y = {.data = NULL};
    *out = NULL;
    if (classes < 0)
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s: %d classes; expected 0 or more", name, classes);
    fx_status status = fx_idx_load(images, &x);
    if (status == FX_OK)
        status = fx_idx_load(labels, &y);
    if (status == FX_OK) {
        status = from_arrays(name, &x.spec, x.data, &y.spec, y.data, classes, scale, out);
        if (status != FX_OK)
            fx_fail_context(status, "%s and %s", FX_QUOTE(images), FX_QUOTE(labels));
    }
    fx_host_array_free(&x);
    fx_host_array_free(&y);
    return status;
}

fx_status fx_dataset_idx(const char *images, const char *labels, int classes, fx_dataset **out) {
    FX_TRY(fx_need(out, "fx_dataset_idx: out"));
    *out = NULL;
    FX_TRY(fx_need(images, "fx_dataset_idx: images"));
    FX_TRY(fx_need(labels, "fx_dataset_idx: labels"));
    return fx_dataset_idx_scaled("idx", images, labels, classes, 0, out);
}
