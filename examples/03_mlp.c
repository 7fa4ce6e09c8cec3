/* 03_mlp.c - a model by name, its training step as one function, and a loop: learns the two spirals. */
#include <fornax/fornax.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 256, STEPS = 400 };

static void mlp(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    fx_val h = fx_tanh(fx_nn_linear(nn, "hidden1", in[0], 32, true));
    h = fx_tanh(fx_nn_linear(nn, "hidden2", h, 32, true));
    fx_val logits = fx_nn_linear(nn, "logits", h, 2, true);
    out[0] = fx_cross_entropy_labels(logits, in[1], 0, -1);
    out[1] = fx_count_correct(logits, in[1]);
}

static void spirals(float *xy, int32_t *label) {
    for (int i = 0; i < POINTS; i++) {
        float r = (float)(i / 2) / (POINTS / 2) * 0.9f + 0.1f, a = 8 * r + (i % 2 ? 3.14159265f : 0);
        xy[2 * i] = r * cosf(a);
        xy[2 * i + 1] = r * sinf(a);
        label[i] = i % 2;
    }
}

static fx_status learn(fx_device *d) {
    fx_spec in[] = {FX_SPEC(FX_F32, POINTS, 2), FX_SPEC(FX_S32, POINTS)};
    fx_optimizer opt = FX_OPTIMIZER_INIT;
    opt.kind = FX_ADAM;
    fx_model *model;
    fx_func *init, *step;
    fx_exec *init_exe, *step_exe;
    FX_TRY(fx_model_create(mlp, NULL, NULL, 2, in, 2, &model));
    FX_TRY(fx_model_init_func(model, &init));
    FX_TRY(fx_train_step(model, &opt, &step));

    /* parameters and moments are donated: the step updates them in place */
    int n = fx_model_n_param(model), n_state = fx_train_step_state_count(model, &opt), donate[64];
    fx_compile_options co = FX_COMPILE_OPTIONS_INIT;
    fx_train_step_donate(model, &opt, donate);
    co.donate = donate;
    co.n_donate = n + n_state;
    FX_TRY(fx_compile(init, d, NULL, &init_exe));
    FX_TRY(fx_compile(step, d, &co, &step_exe));

    float xy[2 * POINTS], rate = 1e-2f, loss = 0;
    int32_t labels[POINTS], correct = 0;
    uint32_t seed[] = {0, 1};
    fx_array *v[64] = {NULL}, *key, *x, *y, *lr;
    spirals(xy, labels);
    FX_TRY(fx_array_create(d, FX_SPEC(FX_U32, 2), seed, &key));
    FX_TRY(fx_run(init_exe, &key, v));
    for (int i = 0; i < n_state; i++)
        FX_TRY(fx_array_create(d, fx_func_in_spec(step, n + i), NULL, &v[n + i]));
    FX_TRY(fx_array_create(d, in[0], xy, &x));
    FX_TRY(fx_array_create(d, in[1], labels, &y));
    FX_TRY(fx_array_create(d, FX_SPEC0(FX_F32), &rate, &lr));

    for (int32_t s = 0; s < STEPS; s++) {
        fx_array *inputs[64], *outputs[64], *number;
        FX_TRY(fx_array_create(d, FX_SPEC0(FX_S32), &s, &number));
        for (int i = 0; i < n + n_state; i++)
            inputs[i] = v[i];
        inputs[n + n_state] = number;
        inputs[n + n_state + 1] = lr;
        inputs[n + n_state + 2] = x;
        inputs[n + n_state + 3] = y;
        FX_TRY(fx_run(step_exe, inputs, outputs));
        for (int i = 0; i < n + n_state; i++)
            v[i] = outputs[i];
        if (s % 50 == 49) {
            FX_TRY(fx_array_read(outputs[n + n_state], &loss, sizeof loss));
            FX_TRY(fx_array_read(outputs[n + n_state + 1], &correct, sizeof correct));
            printf("step %3d  loss %.4f  %d of %d right\n", s + 1, (double)loss, correct, POINTS);
        }
        fx_array_unref(outputs[n + n_state]);
        fx_array_unref(outputs[n + n_state + 1]);
        fx_array_unref(number);
    }

    for (int i = 0; i < n + n_state; i++)
        fx_array_unref(v[i]);
    fx_array_unref(key);
    fx_array_unref(x);
    fx_array_unref(y);
    fx_array_unref(lr);
    fx_exec_destroy(init_exe);
    fx_exec_destroy(step_exe);
    fx_func_unref(init);
    fx_func_unref(step);
    fx_model_destroy(model);
    return FX_OK;
}

int main(void) {
    fx_context *cx = NULL;
    fx_status st = fx_init(NULL, &cx);
    if (st == FX_OK)
        st = learn(fx_default_device(cx));
    if (st != FX_OK)
        fprintf(stderr, "03_mlp: %s\n", fx_last_error());
    fx_shutdown(cx);
    return st != FX_OK;
}
