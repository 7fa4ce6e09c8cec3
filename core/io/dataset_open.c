/* dataset_open.c - finds the files of a data set that is named as on a command line, and the digits'. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/env.h"
#include "core/io/dataset.h"

/* dir/name if it is there, else dir/alternative; NULL when neither is. New memory. */
static char *find_file(const char *dir, const char *name, const char *alternative) {
    char *path = fx_path_join(dir, name);
    if (path && fx_file_exists(path))
        return path;
    free(path);
    path = fx_path_join(dir, alternative);
    if (path && fx_file_exists(path))
        return path;
    free(path);
    return NULL;
}

static fx_status find_idx(const char *dir, const char *part, const char *what, const char *idx, char **out) {
    char name[64], alternative[64], zipped[72];
    snprintf(name, sizeof name, "%s-%s-%s-ubyte", part, what, idx);
    snprintf(alternative, sizeof alternative, "%s-%s.%s-ubyte", part, what, idx); /* some archives spell it so */
    snprintf(zipped, sizeof zipped, "%s.gz", name);
    *out = find_file(dir, name, alternative);
    if (*out)
        return FX_OK;
    char *gz = find_file(dir, zipped, zipped);
    bool compressed = gz != NULL;
    free(gz);
    return fx_fail(FX_NOT_FOUND, "data set: no file %s in %s%s", name, FX_QUOTE(dir),
                   compressed ? "; there is a compressed one: gunzip it" : "");
}

static fx_status open_idx_part(const char *dir, const char *part, int classes, fx_dataset **out) {
    char *images = NULL, *labels = NULL;
    fx_status status = find_idx(dir, part, "images", "idx3", &images);
    if (status == FX_OK)
        status = find_idx(dir, part, "labels", "idx1", &labels);
    if (status == FX_OK)
        status = fx_dataset_idx(images, labels, classes, out);
    free(images);
    free(labels);
    return status;
}

/* The number of classes is the training set's also for the test set. */
static fx_status open_idx(const char *dir, fx_split split, const fx_dataset_options *o, fx_dataset **out) {
    int classes = o->classes;
    if (split == FX_SPLIT_TRAIN)
        return open_idx_part(dir, "train", classes, out);
    if (!classes) {
        char *labels = NULL;
        fx_host_array y = {.data = NULL};
        FX_TRY(find_idx(dir, "train", "labels", "idx1", &labels));
        fx_status status = fx_idx_load(labels, &y);
        free(labels);
        if (status != FX_OK)
            return status;
        if (y.spec.dtype == FX_U8)
            for (int64_t i = 0; i < fx_spec_count(&y.spec); i++)
                if (((uint8_t *)y.data)[i] >= classes)
                    classes = ((uint8_t *)y.data)[i] + 1;
        fx_host_array_free(&y);
    }
    return open_idx_part(dir, "t10k", classes, out);
}

static fx_status name_digits(fx_dataset *d) {
    fx_source *s = d->source;
    s->label_names = calloc(10, sizeof *s->label_names);
    if (!s->label_names)
        return fx_fail_oom(10 * sizeof *s->label_names);
    for (int i = 0; i < 10; i++)
        if (!(s->label_names[i] = fx_strdup((char[]){(char)('0' + i), '\0'})))
            return fx_fail_oom(2);
    d->info.label_names = (const char *const *)s->label_names;
    return FX_OK;
}

static fx_status open_digits(fx_dataset **out) {
    const char *places[] = {fx_env_text(FX_ENV_data_dir), FX_DATA_INSTALL_DIR, FX_DATA_SOURCE_DIR};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i] || !*places[i])
            continue;
        char *dir = fx_path_join(places[i], "digits");
        char *images = dir ? find_file(dir, "images-idx3-ubyte", "images-idx3-ubyte") : NULL;
        char *labels = dir ? fx_path_join(dir, "labels-idx1-ubyte") : NULL;
        fx_status status = FX_OK;
        bool found = images && labels;
        if (found && (status = fx_dataset_idx_scaled("digits", images, labels, 10, 1.0f / 16, out)) == FX_OK &&
            (status = name_digits(*out)) != FX_OK) {
            fx_dataset_destroy(*out);
            *out = NULL;
        }
        free(dir);
        free(images);
        free(labels);
        if (found)
            return status;
    }
    return fx_fail(
        FX_NOT_FOUND,
        "the digits' files are in none of $%s/digits, %s/digits and %s/digits; set that variable to the folder"
        " data of the sources",
        fx_env_get(FX_ENV_data_dir)->name, FX_DATA_INSTALL_DIR, FX_DATA_SOURCE_DIR);
}

/* Sources whose classes are given: another number of them is a mistake. */
static fx_status check_classes(const char *name, int own, int asked) {
    if (!asked || asked == own)
        return FX_OK;
    return fx_fail(FX_INVALID_ARGUMENT, "data set %s has %d classes; %d classes were asked for; ask for %d or 0", name,
                   own, asked, own);
}

/* Keeps the part of `whole` that is asked for; takes `whole`. */
static fx_status take_part(fx_dataset *whole, fx_split split, double fraction, uint64_t seed, fx_dataset **out) {
    if (split == FX_SPLIT_ALL) {
        *out = whole;
        return FX_OK;
    }
    fx_dataset *train = NULL, *test = NULL;
    fx_status status = fx_dataset_split(whole, fraction, seed, &train, &test);
    fx_dataset_destroy(whole);
    fx_dataset_destroy(split == FX_SPLIT_TRAIN ? test : train);
    *out = split == FX_SPLIT_TRAIN ? train : test;
    return status;
}

static fx_status check_split(fx_split split) {
    if (split != FX_SPLIT_TRAIN && split != FX_SPLIT_TEST && split != FX_SPLIT_ALL)
        return fx_fail(FX_INVALID_ARGUMENT, "data set: split %d; expected one of fx_split", (int)split);
    return FX_OK;
}

fx_status fx_dataset_digits(fx_split split, fx_dataset **out) {
    FX_TRY(fx_need(out, "fx_dataset_digits: out"));
    fx_dataset *whole;
    *out = NULL;
    FX_TRY(check_split(split));
    FX_TRY(open_digits(&whole));
    return take_part(whole, split, 0.2, 0, out);
}

static fx_status open_folder(const char *dir, fx_split split, const fx_dataset_options *o, fx_dataset **out) {
    static const char *const names[] = {"test", "val", "valid"};
    char *train = fx_path_join(dir, "train"), *test = NULL;
    bool has_train = train && fx_folder_exists(train);
    for (size_t i = 0; i < 3 && has_train; i++) {
        test = fx_path_join(dir, names[i]);
        if (test && fx_folder_exists(test))
            break;
        free(test);
        test = NULL;
    }
    fx_status status;
    fx_dataset *whole;
    if (!has_train || !test) {
        status = fx_dataset_folder(dir, dir, o, &whole);
        if (status == FX_OK)
            status = take_part(whole, split, o->test_fraction, o->seed, out);
    } else if (split == FX_SPLIT_ALL) {
        status =
            fx_fail(FX_INVALID_ARGUMENT, "data set folder:%s has a train and a test part; ask for one of them", dir);
    } else {
        status = fx_dataset_folder(split == FX_SPLIT_TRAIN ? train : test, train, o, out);
    }
    free(train);
    free(test);
    return status;
}

static fx_status open_random(fx_split split, const fx_dataset_options *o, fx_dataset **out) {
    fx_dataset_options part = *o;
    if (split == FX_SPLIT_TEST) {
        part.count = (int64_t)fmax(1, floor((double)o->count * o->test_fraction + 0.5));
        part.seed = fx_mix64(o->seed + 1); /* other images than the training set's */
    }
    return fx_dataset_random(&part, out);
}

static fx_status check_options(const fx_dataset_options *o) {
    if (o->classes < 0 || o->count < 1 || o->height < 1 || o->width < 1 || (o->channels != 1 && o->channels != 3) ||
        !(o->test_fraction >= 0 && o->test_fraction <= 1))
        return fx_fail(FX_INVALID_ARGUMENT,
                       "data set options: classes %d, count %lld, %d x %d x %d, test fraction %g; expected"
                       " classes of at least 0, a positive count and size, 1 or 3 channels, a fraction of 0 to 1",
                       o->classes, (long long)o->count, o->channels, o->height, o->width, o->test_fraction);
    return FX_OK;
}

fx_status fx_dataset_open(const char *uri, fx_split split, const fx_dataset_options *options, fx_dataset **out) {
    FX_TRY(fx_need(out, "fx_dataset_open: out"));
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    *out = NULL;
    FX_TRY(fx_options_take(&o, sizeof o, options, "fx_dataset_options"));
    FX_TRY(check_options(&o));
    FX_TRY(check_split(split));
    const char *colon = uri ? strchr(uri, ':') : NULL, *dir = colon ? colon + 1 : "";
    size_t n = colon ? (size_t)(colon - uri) : uri ? strlen(uri) : 0;
#define NAMED(s) (n == strlen(s) && memcmp(uri, s, n) == 0)
    if (NAMED("digits") && !colon) {
        FX_TRY(check_classes("digits", 10, o.classes));
        return fx_dataset_digits(split, out);
    }
    if (NAMED("random") && !colon)
        return open_random(split, &o, out);
    if (*dir && split == FX_SPLIT_ALL && !NAMED("folder"))
        return fx_fail(FX_INVALID_ARGUMENT, "data set %s has a train and a test part; ask for one of them",
                       FX_QUOTE(uri));
    if (NAMED("idx") && *dir)
        return open_idx(dir, split, &o, out);
    if ((NAMED("cifar10") || NAMED("cifar100")) && *dir) {
        int own = NAMED("cifar10") ? 10 : 100;
        FX_TRY(check_classes(own == 10 ? "cifar10" : "cifar100", own, o.classes));
        return fx_dataset_cifar(dir, own, split, out);
    }
    if (NAMED("folder") && *dir)
        return open_folder(dir, split, &o, out);
#undef NAMED
    return fx_fail(FX_INVALID_ARGUMENT,
                   "unknown data set %s; expected digits, random, idx:DIR, cifar10:DIR, cifar100:DIR or"
                   " folder:DIR",
                   FX_QUOTE(uri ? uri : ""));
}
