/* vit_step.h - the training step of a Vision Transformer of the examples, traced and compiled for benchmarks. A bench
 * includes examples/vit/vit.c, which defines its functions. */
#ifndef FX_BENCH_VIT_STEP_H
#define FX_BENCH_VIT_STEP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "examples/vit/vit.h"

#define OK(expr)                                                 \
    do {                                                         \
        if ((expr) != FX_OK) {                                   \
            fprintf(stderr, "%s: %s\n", #expr, fx_last_error()); \
            exit(1);                                             \
        }                                                        \
    } while (0)

typedef struct vit_step {
    const char *name; /* of the model */
    vit_config config;
    int64_t batch;
    fx_optimizer optimizer;
    fx_model *model;
    fx_func *func;
    fx_exec *exec;
    double trace_seconds, compile_seconds; /* differentiation belongs to the trace */
    double compile_cpu;                    /* seconds of all threads; holds on a busy machine too */
} vit_step;

static inline double vit_step_clock(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static inline double vit_step_now(void) {
    return vit_step_clock(CLOCK_MONOTONIC);
}

/* Images of `side` pixels, 3 channels, 1,000 labels. */
static inline void vit_step_open(vit_step *s, fx_device *d) {
    vit_config *c = &s->config;
    double start = vit_step_now();
    fx_spec in[] = {FX_SPEC(FX_F32, s->batch, c->height, c->width_px, c->channels), FX_SPEC(FX_S32, s->batch)};
    OK(fx_model_create(vit_loss, c, NULL, 2, in, 2, &s->model));
    OK(fx_train_step(s->model, &s->optimizer, &s->func));
    s->trace_seconds = vit_step_now() - start;
    int n = fx_model_n_param(s->model) + fx_train_step_state_count(s->model, &s->optimizer);
    fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
    int *donate = calloc((size_t)n + 1, sizeof *donate);
    fx_train_step_donate(s->model, &s->optimizer, donate);
    opt.donate = donate;
    opt.n_donate = n;
    double cpu = vit_step_clock(CLOCK_PROCESS_CPUTIME_ID);
    start = vit_step_now();
    OK(fx_compile(s->func, d, &opt, &s->exec));
    s->compile_seconds = vit_step_now() - start;
    s->compile_cpu = vit_step_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    free(donate);
}

static inline void vit_step_close(vit_step *s) {
    fx_exec_destroy(s->exec);
    fx_func_unref(s->func);
    fx_model_destroy(s->model);
}

static inline int64_t vit_step_number(const char *option, const char *text) {
    if (!text || !*text || strlen(text) > 6 || strspn(text, "0123456789") != strlen(text) || atoi(text) < 1) {
        fprintf(stderr, "%s: expected a whole number from 1 to 999999; got \"%s\"\n", option, text ? text : "");
        exit(2);
    }
    return atoi(text);
}

/* Takes argv[*i], and its value, when it is an option that says which step; false when it is another. */
static inline bool vit_step_option(vit_step *s, char **argv, int *i) {
    static const char *const optimizers[] = {"sgd", "adam", "adamw", "lion"};
    const char *name = argv[*i], *v = argv[*i + 1];
    if (!strcmp(name, "--batch-size")) {
        s->batch = vit_step_number(name, v);
    } else if (!strcmp(name, "--image")) {
        s->config.height = s->config.width_px = vit_step_number(name, v);
    } else if (!strcmp(name, "--patch")) {
        s->config.patch = vit_step_number(name, v);
    } else if (!strcmp(name, "--model") && v && vit_preset(v, &s->config)) {
        s->name = v;
    } else if (!strcmp(name, "--optimizer") && v) {
        for (int k = 0; k < 4; k++)
            if (!strcmp(v, optimizers[k])) {
                s->optimizer.kind = (fx_optimizer_kind)k;
                ++*i;
                return true;
            }
        return false;
    } else {
        return false;
    }
    ++*i;
    return true;
}

/* ViT-Base/16 at 224, batch 8, SGD. */
static inline void vit_step_defaults(vit_step *s) {
    *s = (vit_step){.name = "base", .batch = 8, .optimizer = FX_OPTIMIZER_INIT};
    s->config =
        (vit_config){.height = 224, .width_px = 224, .channels = 3, .patch = 16, .classes = 1000, .norm_eps = 1e-6};
    vit_preset("base", &s->config);
    s->optimizer.kind = FX_SGD;
}

#define VIT_STEP_USAGE "[--model NAME] [--image N] [--patch N] [--batch-size N] [--optimizer NAME]"

#endif
