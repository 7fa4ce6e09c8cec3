/* weights.c - see weights.h. Nothing in the file is trusted: sizes are bounded before they are multiplied. */
#include "weights.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fx_status refuse(const char *what) {
    fprintf(stderr, "weights: %s\n", what);
    return FX_BAD_DATA;
}

static bool sane(const vit_config *c) {
    const int64_t v[] = {c->height, c->width_px, c->channels, c->patch,  c->width,
                         c->depth,  c->heads,    c->mlp,      c->classes};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (v[i] < 1 || v[i] > 1 << 20)
            return false;
    return c->channels <= 4 && c->depth <= 1024;
}

/* The number after " key=" in a configuration. */
static bool number(const char *config, const char *key, int64_t *out) {
    char pattern[32];
    long long v;
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *p = strstr(config, pattern);
    if (!p || sscanf(p + strlen(pattern), "%lld", &v) != 1)
        return false;
    *out = v;
    return true;
}

static bool of_config(const char *config, vit_config *c) {
    long long h, w, channels;
    const char *image = strstr(config, " image=");
    if (!image || sscanf(image, " image=%lldx%lldx%lld", &h, &w, &channels) != 3)
        return false;
    c->height = h;
    c->width_px = w;
    c->channels = channels;
    c->norm_eps = 1e-6;
    return number(config, "patch", &c->patch) && number(config, "width", &c->width) &&
           number(config, "depth", &c->depth) && number(config, "heads", &c->heads) && number(config, "mlp", &c->mlp) &&
           number(config, "classes", &c->classes);
}

/* Tensor `name` of that rank, NULL when it is not there. */
static const fx_spec *shape(const fx_safetensors *f, const char *name, int rank) {
    const fx_named_tensor *t = fx_safetensors_find(f, name);
    return t && t->spec.rank == rank ? &t->spec : NULL;
}

static fx_status of_tensors(const fx_safetensors *f, vit_config *c) {
    const fx_spec *patch = shape(f, "vit.embeddings.patch_embeddings.projection.weight", 4),
                  *positions = shape(f, "vit.embeddings.position_embeddings", 3),
                  *mlp = shape(f, "vit.encoder.layer.0.intermediate.dense.weight", 2),
                  *head = shape(f, "classifier.weight", 2);
    if (!patch || !positions || !mlp)
        return refuse("neither a checkpoint of vit_train nor a file with the tensors of Hugging Face's "
                      "ViTForImageClassification");
    if (!head)
        return refuse("no classifier.weight: the file holds no classification head");
    c->width = patch->dims[0];
    c->channels = patch->dims[1];
    c->patch = patch->dims[2];
    c->mlp = mlp->dims[0];
    c->classes = head->dims[0];
    c->norm_eps = 1e-12;
    int64_t side = (int64_t)sqrt((double)(positions->dims[1] - 1) + 0.5);
    if (side < 1 || side * side + 1 != positions->dims[1] || patch->dims[3] != c->patch || c->patch > 1 << 12 ||
        side > 1 << 12)
        return refuse("the positions are not those of a square image and a class token");
    c->height = c->width_px = side * c->patch;
    for (c->depth = 0;; c->depth++) {
        char name[96];
        snprintf(name, sizeof name, "vit.encoder.layer.%lld.layernorm_before.weight", (long long)c->depth);
        if (!fx_safetensors_find(f, name))
            break;
    }
    c->heads = c->width / 64;
    return FX_OK;
}

static fx_status read_numbers(const char *text, float *out) {
    json_t *a = json_loads(text, 0, NULL);
    size_t n = json_array_size(a);
    for (size_t i = 0; i < n && i < 4; i++)
        out[i] = (float)json_number_value(json_array_get(a, i));
    json_decref(a);
    return n < 1 || n > 4 ? refuse("the metadata's mean or std is not a list of 1 to 4 numbers") : FX_OK;
}

static fx_status read_labels(const char *text, vit_description *d) {
    json_t *a = json_loads(text, 0, NULL);
    size_t n = json_array_size(a), size = 0;
    fx_status st = (int64_t)n == d->model.classes
                       ? FX_OK
                       : refuse("the metadata's labels are not a list of as many names as classes");
    for (size_t i = 0; i < n && st == FX_OK; i++)
        if (!json_is_string(json_array_get(a, i)))
            st = refuse("the metadata's labels are not all text");
        else
            size += json_string_length(json_array_get(a, i)) + 1;
    if (st == FX_OK && (d->labels = malloc(size + 1)) != NULL)
        for (size_t i = 0; i < n; i++) {
            const char *s = json_string_value(json_array_get(a, i));
            memcpy(d->labels + d->labels_size, s, strlen(s) + 1);
            d->labels_size += strlen(s) + 1;
        }
    json_decref(a);
    return st;
}

fx_status vit_describe(const fx_safetensors *file, int64_t heads, vit_description *out) {
    const char *config = fx_safetensors_metadata(file, "config"), *mean = fx_safetensors_metadata(file, "mean"),
               *std = fx_safetensors_metadata(file, "std"), *labels = fx_safetensors_metadata(file, "labels");
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 4; i++)
        out->mean[i] = out->std[i] = 0.5f;
    if (!config || !of_config(config, &out->model)) {
        FX_TRY(of_tensors(file, &out->model));
        if (!heads && out->model.width % 64)
            return refuse("the number of heads is not in the file; give it with --heads");
    }
    if (heads > 0)
        out->model.heads = heads;
    if (!sane(&out->model))
        return refuse("the file's sizes are out of range");
    FX_TRY(vit_check(&out->model));
    if (mean && std) {
        FX_TRY(read_numbers(mean, out->mean));
        FX_TRY(read_numbers(std, out->std));
    }
    return labels ? read_labels(labels, out) : FX_OK;
}

void vit_description_free(vit_description *d) {
    free(d->labels);
    d->labels = NULL;
}

const char *vit_label_name(const vit_description *d, int64_t label) {
    const char *p = d->labels, *end = p ? p + d->labels_size : NULL;
    for (; p && p < end && label > 0; label--)
        p += strlen(p) + 1;
    return p && p < end ? p : NULL;
}

char *vit_numbers_text(const float *v, int n) {
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_real((double)v[i]));
    char *text = json_dumps(a, JSON_COMPACT);
    json_decref(a);
    return text;
}

char *vit_labels_text(const char *const *names, int n) {
    if (!names)
        return NULL;
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_string(names[i] ? names[i] : "")); /* fails for what is not UTF-8 */
    char *text = json_array_size(a) == (size_t)n ? json_dumps(a, JSON_COMPACT) : NULL;
    json_decref(a);
    return text;
}
