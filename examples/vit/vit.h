/* vit.h - the Vision Transformer of Dosovitskiy et al. 2021 ("An Image is Worth 16x16 Words") on Fornax:
 * pre-norm encoder, class token, learned positions; the tensors of Hugging Face's ViTForImageClassification. */
#ifndef VIT_H
#define VIT_H

#include <fornax/fornax.h>

typedef struct vit_config {
    int64_t height, width_px, channels; /* of an image */
    int64_t patch, width, depth, heads, mlp, classes;
    double dropout, smoothing, norm_eps;
    double position_std; /* of the positions at the start; 0: 0.02 */
} vit_config;

/* Fills width, depth, heads and mlp: "micro" (64, 2, 4), "tiny" (192, 12, 3), "small" (384, 12, 6), "base" (768, 12,
 * 12), "large" (1024, 24, 16); "micro" starts from larger positions, as its runs are short. False for another name. */
bool vit_preset(const char *name, vit_config *c);
/* FX_INVALID_ARGUMENT when sizes don't fit together. */
fx_status vit_check(const vit_config *c);

/* images f32 [B, H, W, C] -> logits [B, classes] f32. A model function; user is the vit_config. */
void vit_logits(fx_nn *nn, const fx_val *in, fx_val *out, void *user);
/* images, labels s32 [B] -> loss (rows with label -1 don't count), number of correct predictions s32. */
void vit_loss(fx_nn *nn, const fx_val *in, fx_val *out, void *user);

/* Multiply-adds times 2 of one image's forward pass (matrix products only). A training step takes 3 times that. */
double vit_flops(const vit_config *c);

/* Reads parameter `name` of a model out of a file: under its own name, or put together from Hugging Face's
 * tensors. dst holds the parameter. */
fx_status vit_read_param(const fx_safetensors *file, const char *name, fx_spec spec, void *dst);

#endif
