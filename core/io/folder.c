/* folder.c - a data set of image files, one folder a class; files are decoded when a sample is read. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/arena.h"
#include "core/io/dataset.h"

typedef struct file_list {
    fx_arena arena; /* paths */
    const char **paths;
    int32_t *labels; /* owned until they move to the source */
    size_t count, room;
    fx_fit fit;
} file_list;

static void finish_list(void *state) {
    file_list *list = state;
    if (!list)
        return;
    fx_arena_finish(&list->arena);
    free(list->paths);
    free(list->labels);
    free(list);
}

static fx_status read_file(const fx_source *source, int64_t i, void *dst) {
    const file_list *list = source->state;
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    o.channels = source->channels;
    o.width = source->width;
    o.height = source->height;
    o.fit = list->fit;
    fx_image image;
    FX_TRY(fx_image_load(list->paths[i], &o, &image));
    memcpy(dst, image.data, (size_t)source->height * (size_t)source->width * (size_t)source->channels);
    fx_image_free(&image);
    return FX_OK;
}

static bool is_image_name(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".png") == 0 || strcasecmp(dot, ".jpg") == 0 || strcasecmp(dot, ".jpeg") == 0);
}

static fx_status append(file_list *list, const char *dir, const char *name, int32_t label) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        const char **paths = realloc(list->paths, list->room * sizeof *paths);
        if (!paths)
            return fx_fail_oom(list->room * sizeof *paths);
        list->paths = paths;
        int32_t *labels = realloc(list->labels, list->room * sizeof *labels);
        if (!labels)
            return fx_fail_oom(list->room * sizeof *labels);
        list->labels = labels;
    }
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = fx_arena_alloc(&list->arena, size);
    if (!path)
        return fx_fail_oom(size);
    strcat(strcat(strcpy(path, dir), "/"), name);
    list->paths[list->count] = path;
    list->labels[list->count++] = label;
    return FX_OK;
}

/* Appends the images of one class; a class of the training set must have some. */
static fx_status list_class(file_list *list, const char *dir, const char *name, int32_t label, bool required) {
    fx_entries entries;
    char *path = fx_path_join(dir, name);
    if (!path)
        return fx_fail_oom(strlen(dir));
    size_t before = list->count;
    fx_status status = FX_OK;
    if (required || fx_folder_exists(path)) {
        status = fx_folder_list(path, &entries);
        if (status == FX_OK) {
            for (size_t i = 0; i < entries.count && status == FX_OK; i++)
                if (!entries.items[i].folder && is_image_name(entries.items[i].name))
                    status = append(list, path, entries.items[i].name, label);
            fx_entries_free(&entries);
        }
    }
    if (status == FX_OK && required && list->count == before)
        status = fx_fail(FX_BAD_DATA, "data set: class folder %s has no .png, .jpg or .jpeg file", FX_QUOTE(path));
    free(path);
    return status;
}

/* The test set may not have classes that the training set has not. */
static fx_status check_classes(const char *dir, const fx_entries *classes) {
    fx_entries own;
    FX_TRY(fx_folder_list(dir, &own));
    fx_status status = FX_OK;
    for (size_t i = 0; i < own.count && status == FX_OK; i++) {
        bool known = !own.items[i].folder;
        for (size_t k = 0; k < classes->count && !known; k++)
            known = classes->items[k].folder && strcmp(classes->items[k].name, own.items[i].name) == 0;
        if (!known)
            status = fx_fail(FX_BAD_DATA, "data set: class %s in %s is not in the training set",
                             FX_QUOTE(own.items[i].name), FX_QUOTE(dir));
    }
    fx_entries_free(&own);
    return status;
}

/* Moves labels and class names to the source. */
static fx_status fill_source(fx_source *source, file_list *list, const fx_entries *classes, int n_classes) {
    memcpy(source->labels, list->labels, list->count * sizeof *list->labels);
    source->classes = n_classes;
    source->label_names = calloc((size_t)n_classes, sizeof *source->label_names);
    if (!source->label_names)
        return fx_fail_oom((size_t)n_classes * sizeof(char *));
    int n = 0;
    for (size_t i = 0; i < classes->count; i++)
        if (classes->items[i].folder && !(source->label_names[n++] = fx_strdup(classes->items[i].name)))
            return fx_fail_oom(strlen(classes->items[i].name));
    return FX_OK;
}

fx_status fx_dataset_folder(const char *dir, const char *class_dir, const fx_dataset_options *o, fx_dataset **out) {
    fx_entries classes;
    fx_source *source = NULL;
    *out = NULL;
    FX_TRY(fx_folder_list(class_dir, &classes));
    file_list *list = calloc(1, sizeof *list);
    fx_status status = list ? FX_OK : fx_fail_oom(sizeof *list);
    int n_classes = 0;
    bool training = strcmp(dir, class_dir) == 0;
    if (status == FX_OK) {
        fx_arena_init(&list->arena);
        list->fit = o->fit;
        if (!training)
            status = check_classes(dir, &classes);
    }
    for (size_t i = 0; i < classes.count && status == FX_OK; i++)
        if (classes.items[i].folder)
            status = list_class(list, dir, classes.items[i].name, n_classes++, training);
    if (status == FX_OK && (n_classes == 0 || list->count == 0))
        status = fx_fail(FX_BAD_DATA, "data set: %s has no class folders with images; expected DIR/CLASS/*.png or .jpg",
                         FX_QUOTE(dir));
    if (status == FX_OK && o->classes && o->classes != n_classes)
        status = fx_fail(FX_INVALID_ARGUMENT, "data set: %s has %d class folders; %d classes were asked for",
                         FX_QUOTE(class_dir), n_classes, o->classes);
    if (status == FX_OK)
        status =
            fx_source_create("folder", (int64_t)list->count, o->channels, o->height, o->width, FX_U8, true, &source);
    if (status == FX_OK)
        status = fill_source(source, list, &classes, n_classes);
    if (status == FX_OK) {
        source->read = read_file;
        source->state = list;
        source->finish = finish_list;
        list = NULL;
        status = fx_dataset_make(source, n_classes, out); /* takes the source */
        source = NULL;
    }
    fx_source_release(source);
    finish_list(list);
    fx_entries_free(&classes);
    return status;
}
