/* cifar.c - the binary files of CIFAR-10 and CIFAR-100: records of labels and three planes of 32x32 bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/dataset.h"

enum { SIDE = 32, PLANE = SIDE * SIDE };

/* The names of the files of a part, at most 5. */
static int file_names(int classes, fx_split split, char names[5][32]) {
    if (classes == 100) {
        strcpy(names[0], split == FX_SPLIT_TRAIN ? "train.bin" : "test.bin");
        return 1;
    }
    if (split == FX_SPLIT_TEST) {
        strcpy(names[0], "test_batch.bin");
        return 1;
    }
    for (int i = 0; i < 5; i++)
        snprintf(names[i], sizeof names[i], "data_batch_%d.bin", i + 1);
    return 5;
}

static fx_status check_size(size_t size, size_t record) {
    if (size == 0 || size % record != 0)
        return fx_fail(FX_BAD_DATA, "CIFAR: %zu bytes; expected a positive multiple of %zu, the size of a record", size,
                       record);
    return FX_OK;
}

fx_status fx_cifar_parse(const unsigned char *data, size_t size, int label_bytes, int classes, fx_source *source,
                         int64_t *at) {
    size_t record = (size_t)label_bytes + 3 * PLANE;
    FX_TRY(check_size(size, record));
    if ((uint64_t)(source->count - *at) < size / record)
        return fx_fail(FX_INTERNAL, "CIFAR: more records than the source has room for");
    uint8_t *dst = (uint8_t *)source->images + (size_t)*at * 3 * PLANE;
    for (size_t i = 0; i < size / record; i++, data += record, dst += 3 * PLANE) {
        int label = data[label_bytes - 1];
        if (label >= classes)
            return fx_fail(FX_BAD_DATA, "CIFAR: label %d of record %zu; expected 0 to %d", label, i, classes - 1);
        source->labels[(*at)++] = label;
        const unsigned char *planes = data + label_bytes;
        for (size_t p = 0; p < PLANE; p++)
            for (size_t c = 0; c < 3; c++)
                dst[3 * p + c] = planes[c * PLANE + p];
    }
    return FX_OK;
}

/* Lines of a file of class names; leaves label_names NULL when the file is absent or has other than `classes` lines. */
static fx_status read_names(const char *dir, int classes, fx_source *source) {
    char *path = fx_path_join(dir, classes == 10 ? "batches.meta.txt" : "fine_label_names.txt");
    fx_file_map map;
    if (!path)
        return fx_fail_oom(strlen(dir));
    bool there = fx_file_exists(path) && fx_file_map_open(path, &map) == FX_OK;
    free(path);
    if (!there)
        return FX_OK;
    source->classes = classes;
    source->label_names = calloc((size_t)classes, sizeof *source->label_names);
    fx_status status = source->label_names ? FX_OK : fx_fail_oom((size_t)classes * sizeof(char *));
    const char *p = (const char *)map.data, *end = p + map.size;
    int n = 0;
    while (p < end && status == FX_OK) {
        const char *line = p;
        while (p < end && *p != '\n')
            p++;
        size_t length = (size_t)(p - line);
        if (length && line[length - 1] == '\r')
            length--;
        if (length && n < classes && !(source->label_names[n] = strndup(line, length)))
            status = fx_fail_oom(length);
        n += length > 0;
        p += p < end;
    }
    fx_file_map_close(&map);
    if (status == FX_OK && n != classes) {
        for (int i = 0; i < classes; i++)
            free(source->label_names[i]);
        free(source->label_names);
        source->label_names = NULL;
    }
    return status;
}

static char *find_dir(const char *dir, const char *first, const char *inner) {
    char *path = fx_path_join(dir, first), *below = fx_path_join(dir, inner), *found = NULL;
    if (path && below)
        found = !fx_file_exists(path) && fx_folder_exists(below) ? below : fx_strdup(dir);
    if (found != below)
        free(below);
    free(path);
    return found;
}

/* Maps n files, makes a source of their sizes and reads them. */
static fx_status read_files(const char *dir, int classes, char names[5][32], int n, fx_dataset **out) {
    fx_file_map maps[5];
    int label_bytes = classes == 100 ? 2 : 1, opened = 0;
    size_t record = (size_t)label_bytes + 3 * PLANE;
    int64_t count = 0, at = 0;
    fx_source *source = NULL;
    fx_status status = FX_OK;
    for (int i = 0; i < n && status == FX_OK; i++) {
        char *path = fx_path_join(dir, names[i]);
        status = path ? fx_file_map_open(path, &maps[i]) : fx_fail_oom(strlen(dir));
        if (status == FX_NOT_FOUND)
            fx_fail_context(status, "CIFAR-%d in its binary version (not the one for Python)", classes);
        if (status == FX_OK) {
            opened++;
            status = check_size(maps[i].size, record);
            if (status != FX_OK)
                fx_fail_context(status, "%s", FX_QUOTE(path));
            count += (int64_t)(maps[i].size / record);
        }
        free(path);
    }
    if (status == FX_OK)
        status = fx_source_create(classes == 10 ? "cifar10" : "cifar100", count, 3, SIDE, SIDE, FX_U8, false, &source);
    for (int i = 0; i < n && status == FX_OK; i++) {
        status = fx_cifar_parse(maps[i].data, maps[i].size, label_bytes, classes, source, &at);
        if (status != FX_OK)
            fx_fail_context(status, "%s/%s", FX_QUOTE(dir), names[i]);
    }
    if (status == FX_OK)
        status = read_names(dir, classes, source);
    for (int i = 0; i < opened; i++)
        fx_file_map_close(&maps[i]);
    if (status != FX_OK) {
        fx_source_release(source);
        return status;
    }
    return fx_dataset_make(source, classes, out);
}

fx_status fx_dataset_cifar(const char *dir, int classes, fx_split split, fx_dataset **out) {
    char names[5][32];
    int n = file_names(classes, split, names);
    *out = NULL;
    char *place = find_dir(dir, names[0], classes == 10 ? "cifar-10-batches-bin" : "cifar-100-binary");
    if (!place)
        return fx_fail_oom(strlen(dir));
    fx_status status = read_files(place, classes, names, n, out);
    free(place);
    return status;
}
