/* weights.h - what a file of weights says about its model. */
#ifndef VIT_WEIGHTS_H
#define VIT_WEIGHTS_H

#include "vit.h"

typedef struct vit_description {
    vit_config model;
    float mean[4], std[4]; /* of the images in [0, 1] that it was trained on */
    char *labels;          /* names, each ended by a zero byte; NULL when there are none. Owned. */
    size_t labels_size;
} vit_description;

/* From the configuration in the metadata of a checkpoint of vit_train; else from the shapes of Hugging Face's tensors,
 * with heads of 64 and images normalised to [-1, 1]. heads > 0: that many. FX_BAD_DATA says what is missing. */
fx_status vit_describe(const fx_safetensors *file, int64_t heads, vit_description *out);
void vit_description_free(vit_description *d);
/* Name of a label, NULL when it has none. Borrowed. */
const char *vit_label_name(const vit_description *d, int64_t label);

/* The metadata that vit_describe reads back, beside "config": mean, std and names as JSON text. Caller frees; NULL
 * without memory, or (labels) without names. */
char *vit_numbers_text(const float *v, int n);
char *vit_labels_text(const char *const *names, int n);

#endif
