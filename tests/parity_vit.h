/* parity_vit.h - a Vision Transformer of the examples on a device, fed as golden/make_golden.py feeds its own: weights,
 * images, labels, training steps. */
#ifndef FX_TESTS_PARITY_VIT_H
#define FX_TESTS_PARITY_VIT_H

#include "examples/vit/vit.h"
#include "golden.h"

typedef struct subject {
    vit_config config;
    fx_device *device;
    fx_model *model; /* vit_loss on a batch of images and labels */
    int64_t batch;
    int n_param, n_state;
    fx_array **arrays; /* parameters, then the optimizer's state: zeros */
    fx_exec *exec;     /* a training step */
} subject;

/* The parameter's elements; owned by the caller. */
typedef float *(*weight_source)(const fx_model *m, int param, void *user);

/* user: an fx_safetensors with Hugging Face's names. */
static inline float *weight_of_file(const fx_model *m, int i, void *user) {
    fx_spec s = fx_model_param_spec(m, i);
    float *data = malloc((size_t)fx_spec_count(&s) * sizeof *data);
    OK(vit_read_param(user, fx_model_param_name(m, i), s, data));
    return data;
}

static inline void subject_open(subject *s, fx_device *d, const vit_config *c, int64_t batch, const fx_optimizer *o,
                                weight_source source, void *user) {
    *s = (subject){.config = *c, .device = d, .batch = batch};
    fx_spec in[] = {FX_SPEC(FX_F32, batch, c->height, c->width_px, c->channels), FX_SPEC(FX_S32, batch)};
    OK(fx_model_create(vit_loss, &s->config, NULL, 2, in, 2, &s->model));
    s->n_param = fx_model_n_param(s->model);
    s->n_state = o ? fx_train_step_state_count(s->model, o) : 0;
    s->arrays = calloc((size_t)(s->n_param + s->n_state) + 1, sizeof *s->arrays);
    for (int i = 0; i < s->n_param; i++) {
        float *data = source(s->model, i, user);
        OK(fx_array_create(d, fx_model_param_spec(s->model, i), data, &s->arrays[i]));
        free(data);
    }
    for (int i = 0; i < s->n_state; i++)
        OK(fx_array_create(d, fx_model_param_spec(s->model, i / (s->n_state / s->n_param)), NULL,
                           &s->arrays[s->n_param + i]));
    if (!o)
        return;
    fx_func *f;
    fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
    int *donate = calloc((size_t)(s->n_param + s->n_state) + 1, sizeof *donate);
    fx_train_step_donate(s->model, o, donate);
    opt.donate = donate;
    opt.n_donate = s->n_param + s->n_state;
    OK(fx_train_step(s->model, o, &f));
    OK(fx_compile(f, d, &opt, &s->exec));
    fx_func_unref(f);
    free(donate);
}

static inline void subject_close(subject *s) {
    fx_exec_destroy(s->exec);
    for (int i = 0; i < s->n_param + s->n_state; i++)
        fx_array_unref(s->arrays[i]);
    fx_model_destroy(s->model);
    free(s->arrays);
}

/* Images and labels of a step. */
static inline void subject_batch(const subject *s, int step, fx_array **in) {
    const vit_config *c = &s->config;
    fx_spec spec = FX_SPEC(FX_F32, s->batch, c->height, c->width_px, c->channels);
    float *x = malloc((size_t)fx_spec_count(&spec) * sizeof *x);
    int32_t labels[64];
    golden_noise(5000 + (uint32_t)step, fx_spec_count(&spec), x);
    for (int i = 0; i < (int)s->batch; i++)
        labels[i] = (int32_t)((step * s->batch + i) * 7 % c->classes);
    OK(fx_array_create(s->device, spec, x, &in[0]));
    OK(fx_array_create(s->device, FX_SPEC(FX_S32, s->batch), labels, &in[1]));
    free(x);
}

/* One training step; returns the loss. */
static inline double subject_step(subject *s, int32_t step, float lr) {
    int n = s->n_param + s->n_state;
    fx_array **in = calloc((size_t)n + 4, sizeof *in), **out = calloc((size_t)n + 4, sizeof *out);
    float loss;
    memcpy(in, s->arrays, sizeof *in * (size_t)n);
    OK(fx_array_create(s->device, FX_SPEC0(FX_S32), &step, &in[n]));
    OK(fx_array_create(s->device, FX_SPEC0(FX_F32), &lr, &in[n + 1]));
    subject_batch(s, step, in + n + 2);
    OK(fx_run(s->exec, in, out));
    OK(fx_array_read(out[n], &loss, sizeof loss));
    memcpy(s->arrays, out, sizeof *out * (size_t)n);
    for (int i = 0; i < 4; i++)
        fx_array_unref(in[n + i]);
    fx_array_unref(out[n]);
    fx_array_unref(out[n + 1]);
    free(in);
    free(out);
    return (double)loss;
}

/* Array i on the host; owned by the caller. */
static inline float *subject_read(const subject *s, int i, int64_t *n) {
    fx_spec spec = fx_array_spec(s->arrays[i]);
    *n = fx_spec_count(&spec);
    float *x = malloc((size_t)*n * sizeof *x);
    OK(fx_array_read(s->arrays[i], x, (size_t)*n * sizeof *x));
    return x;
}

#endif
