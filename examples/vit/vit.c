/* vit.c - the model, and the names of its tensors in Hugging Face's files. */
#include "vit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool vit_preset(const char *name, vit_config *c) {
    static const struct {
        const char *name;
        int64_t width, depth, heads;
    } presets[] = {{"micro", 64, 2, 4},
                   {"tiny", 192, 12, 3},
                   {"small", 384, 12, 6},
                   {"base", 768, 12, 12},
                   {"large", 1024, 24, 16}};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(name, presets[i].name)) {
            c->width = presets[i].width;
            c->depth = presets[i].depth;
            c->heads = presets[i].heads;
            c->mlp = 4 * c->width;
            c->position_std = i ? 0.02 : 0.5;
            return true;
        }
    return false;
}

fx_status vit_check(const vit_config *c) {
    const char *wrong = NULL;
    if (c->patch < 1 || c->height % c->patch || c->width_px % c->patch)
        wrong = "the image's sides must be multiples of the patch";
    else if (c->heads < 1 || c->width % c->heads)
        wrong = "the width must be a multiple of the heads";
    else if (c->depth < 1 || c->classes < 1 || c->mlp < 1 || c->channels < 1)
        wrong = "depth, classes, MLP width and channels must be at least 1";
    if (!wrong)
        return FX_OK;
    fprintf(stderr,
            "model: %s; got image %lldx%lldx%lld, patch %lld, width %lld, depth %lld, heads %lld, classes %lld\n",
            wrong, (long long)c->height, (long long)c->width_px, (long long)c->channels, (long long)c->patch,
            (long long)c->width, (long long)c->depth, (long long)c->heads, (long long)c->classes);
    return FX_INVALID_ARGUMENT;
}

/* [B, H, W, C] -> [B, patches, C * p * p], a patch in the order of a convolution's weight [.., C, p, p]. */
static fx_val patches(fx_val x, const vit_config *c) {
    int64_t b = fx_dim(x, 0), rows = c->height / c->patch, cols = c->width_px / c->patch, p = c->patch;
    x = fx_reshape(x, 6, (int64_t[]){b, rows, p, cols, p, c->channels});
    x = fx_transpose(x, (int[]){0, 1, 3, 5, 2, 4});
    return fx_reshape(x, 3, (int64_t[]){b, rows * cols, c->channels * p * p});
}

void vit_logits(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    const vit_config *c = user;
    int64_t b = fx_dim(in[0], 0), d = c->width;
    fx_nn_push(nn, "embed");
    fx_val x = fx_nn_linear(nn, "patch", patches(fx_nn_cast(nn, in[0]), c), d, true);
    fx_val cls = fx_param(nn, "cls", FX_SPEC(FX_F32, 1, 1, d), (fx_initializer){FX_INIT_ZEROS, 0, 0, 0}, false);
    fx_val joined[] = {fx_broadcast_to(cls, 3, (int64_t[]){b, 1, d}), x};
    x = fx_concatenate(2, joined, 1);
    fx_initializer positions = {FX_INIT_TRUNCATED_NORMAL, c->position_std > 0 ? c->position_std : 0.02, 0, 0};
    x = fx_add(x, fx_param(nn, "position", FX_SPEC(FX_F32, 1, fx_dim(x, 1), d), positions, false));
    x = fx_nn_dropout(nn, x, c->dropout);
    fx_nn_pop(nn);
    for (int64_t i = 0; i < c->depth; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer.%lld", (long long)i);
        x = fx_nn_transformer_block(nn, name, x, c->heads, c->mlp, c->dropout, c->norm_eps);
    }
    /* the head looks at the class token only, so the last norm is taken of that alone */
    x = fx_reshape(fx_slice_axis(x, 1, 0, 1), 2, (int64_t[]){b, d});
    x = fx_nn_linear(nn, "head", fx_nn_layer_norm(nn, "norm", x, c->norm_eps), c->classes, true);
    out[0] = fx_convert(x, FX_F32);
}

void vit_loss(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    const vit_config *c = user;
    fx_val logits = NULL;
    vit_logits(nn, in, &logits, user);
    out[0] = fx_cross_entropy_labels(logits, in[1], c->smoothing, -1);
    out[1] = fx_count_correct(logits, in[1]);
}

double vit_flops(const vit_config *c) {
    double n = (double)(c->height / c->patch * (c->width_px / c->patch)), t = n + 1, d = (double)c->width;
    double block = 2 * t * d * (4 * d + 2 * (double)c->mlp) + 4 * t * t * d;
    return 2 * n * d * (double)(c->channels * c->patch * c->patch) + (double)c->depth * block +
           2 * d * (double)c->classes;
}

/* Hugging Face's name of a parameter with an own counterpart there; false for others. */
static bool hf_name(const char *name, char *out, size_t size) {
    static const char *const whole[][2] = {
        {"embed.cls", "vit.embeddings.cls_token"},
        {"embed.position", "vit.embeddings.position_embeddings"},
        {"embed.patch.weight", "vit.embeddings.patch_embeddings.projection.weight"},
        {"embed.patch.bias", "vit.embeddings.patch_embeddings.projection.bias"},
        {"norm.weight", "vit.layernorm.weight"},
        {"norm.bias", "vit.layernorm.bias"},
        {"head.weight", "classifier.weight"},
        {"head.bias", "classifier.bias"},
    };
    static const char *const layer[][2] = {
        {"norm1.", "layernorm_before."},
        {"norm2.", "layernorm_after."},
        {"attention.out.", "attention.output.dense."},
        {"mlp.fc1.", "intermediate.dense."},
        {"mlp.fc2.", "output.dense."},
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (!strcmp(name, whole[i][0]))
            return snprintf(out, size, "%s", whole[i][1]) < (int)size;
    int index, used = 0;
    if (sscanf(name, "layer.%d.%n", &index, &used) != 1 || !used)
        return false;
    for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
        size_t n = strlen(layer[i][0]);
        if (!strncmp(name + used, layer[i][0], n))
            return snprintf(out, size, "vit.encoder.layer.%d.%s%s", index, layer[i][1], name + used + n) < (int)size;
    }
    return false;
}

/* query, key and value one after another. */
static fx_status read_qkv(const fx_safetensors *file, int layer, const char *part, fx_spec spec, void *dst) {
    static const char *const names[] = {"query", "key", "value"};
    char name[160];
    spec.dims[0] /= 3;
    size_t bytes = (size_t)fx_spec_count(&spec) * fx_dtype_size(spec.dtype);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "vit.encoder.layer.%d.attention.attention.%s.%s", layer, names[i], part);
        FX_TRY(fx_safetensors_read(file, name, &spec, (char *)dst + (size_t)i * bytes));
    }
    return FX_OK;
}

fx_status vit_read_param(const fx_safetensors *file, const char *name, fx_spec spec, void *dst) {
    char other[160], part[32];
    int layer;
    if (fx_safetensors_find(file, name))
        return fx_safetensors_read(file, name, &spec, dst);
    if (sscanf(name, "layer.%d.attention.qkv.%31s", &layer, part) == 2)
        return read_qkv(file, layer, part, spec, dst);
    if (!hf_name(name, other, sizeof other))
        return fx_safetensors_read(file, name, &spec, dst); /* reports that it is missing */
    const fx_named_tensor *t = fx_safetensors_find(file, other);
    /* the patch kernel is [D, C, p, p] there: the same elements in the same order */
    if (t && t->spec.rank == 4 && fx_spec_count(&t->spec) == fx_spec_count(&spec) && t->spec.dims[0] == spec.dims[0])
        spec = t->spec;
    return fx_safetensors_read(file, other, &spec, dst);
}
