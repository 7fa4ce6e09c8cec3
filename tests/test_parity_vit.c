/* test_parity_vit.c - a small Vision Transformer whose weights come from a file with Hugging Face's names: logits,
 * loss, every gradient and twenty steps of training as PyTorch computes them in float64, on every device. ctest:
 * timeout 600 */
#include "parity_vit.h"

#include "examples/vit/vit.c"

static const vit_config config = {.height = 16,
                                  .width_px = 16,
                                  .channels = 3,
                                  .patch = 4,
                                  .width = 24,
                                  .depth = 2,
                                  .heads = 4,
                                  .mlp = 48,
                                  .classes = 10,
                                  .norm_eps = 1e-12};
enum { BATCH = 4, CLASSES = 10, STEPS = 20 };

static void loss_and_logits(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    fx_val loss[2];
    vit_loss(nn, in, loss, user);
    out[0] = loss[0];
    vit_logits(nn, in, &out[1], user);
}

static void read_doubles(const fx_safetensors *f, const char *name, int rank, int64_t rows, int64_t columns,
                         float *out) {
    fx_spec spec = {FX_F64, rank, {rows, columns}};
    double v[64];
    OK(fx_safetensors_read(f, name, &spec, v));
    for (int64_t i = 0; i < fx_spec_count(&spec); i++)
        out[i] = (float)v[i];
}

START_TEST(logits_loss_and_gradients_are_those_of_pytorch) {
    fx_safetensors *weights = golden_open("vit"), *golden = golden_open("vit_gradients");
    float want_logits[BATCH * CLASSES], logits[BATCH * CLASSES], want_loss, loss;
    read_doubles(golden, "logits", 2, BATCH, CLASSES, want_logits);
    read_doubles(golden, "loss", 0, 0, 0, &want_loss);
    FOR_EACH_DEVICE(d) {
        subject s;
        fx_model *m;
        fx_func *f;
        fx_exec *e;
        fx_array *in[64], *out[64];
        int wrt[64];
        subject_open(&s, d, &config, BATCH, NULL, weight_of_file, weights);
        fx_spec specs[] = {FX_SPEC(FX_F32, BATCH, 16, 16, 3), FX_SPEC(FX_S32, BATCH)};
        OK(fx_model_create(loss_and_logits, &s.config, NULL, 2, specs, 2, &m));
        ck_assert_int_eq(fx_model_n_param(m), s.n_param);
        for (int i = 0; i < s.n_param; i++) {
            in[i] = s.arrays[i];
            wrt[i] = i;
        }
        subject_batch(&s, 0, in + s.n_param);
        OK(fx_value_and_grad(fx_model_func(m), (fx_args){s.n_param, wrt}, &f));
        OK(fx_compile(f, d, NULL, &e));
        OK(fx_run(e, in, out));
        OK(fx_array_read(out[0], &loss, sizeof loss));
        OK(fx_array_read(out[1], logits, sizeof logits));
        ck_close("loss", &loss, &want_loss, 1, 1e-5, 0);
        ck_close("logits", logits, want_logits, BATCH * CLASSES, 1e-5, 1e-5);
        for (int i = 0; i < s.n_param; i++) {
            fx_spec spec = fx_model_param_spec(m, i);
            int64_t n = fx_spec_count(&spec);
            float *want = weight_of_file(m, i, golden), *got = malloc((size_t)n * sizeof *got);
            char what[320];
            snprintf(what, sizeof what, "%s: gradient of %s", fx_device_uri(d), fx_model_param_name(m, i));
            OK(fx_array_read(out[2 + i], got, (size_t)n * sizeof *got));
            ck_close(what, got, want, n, 1e-4, 1e-5);
            free(want);
            free(got);
        }
        for (int i = 0; i < 2 + s.n_param; i++)
            fx_array_unref(out[i]);
        fx_array_unref(in[s.n_param]);
        fx_array_unref(in[s.n_param + 1]);
        fx_exec_destroy(e);
        fx_func_unref(f);
        fx_model_destroy(m);
        subject_close(&s);
    }
    fx_safetensors_close(weights);
    fx_safetensors_close(golden);
}
END_TEST

static const struct {
    const char *golden;
    fx_optimizer o;
    float lr;
    double update_error; /* of a tensor's whole change, relative */
} runs[] = {
    {"vit_sgd", {sizeof(fx_optimizer), FX_SGD, 0, false, 0.9, 0.999, 1e-8, 0, 0}, 0.05f, 1e-4},
    {"vit_momentum", {sizeof(fx_optimizer), FX_SGD, 0.9, true, 0.9, 0.999, 1e-8, 0, 0}, 0.01f, 1e-4},
    /* Adam divides a gradient by its own size: where it is next to nothing, rounding counts in full */
    {"vit_adamw", {sizeof(fx_optimizer), FX_ADAMW, 0, false, 0.9, 0.999, 1e-8, 0.05, 0}, 1e-3f, 1e-3},
};

/* The middle third of qkv.bias shifts all scores of a query alike: softmax makes its gradient zero, and rounding
 * decides where Adam moves it. */
static bool without_effect(const char *name, int64_t i) {
    return strstr(name, "qkv.bias") && i >= config.width && i < 2 * config.width;
}

START_TEST(twenty_steps_go_where_pytorch_goes) {
    fx_safetensors *weights = golden_open("vit"), *golden = golden_open(runs[_i].golden);
    float losses[STEPS];
    read_doubles(golden, "losses", 1, STEPS, 0, losses);
    FOR_EACH_DEVICE(d) {
        subject s;
        subject_open(&s, d, &config, BATCH, &runs[_i].o, weight_of_file, weights);
        for (int t = 0; t < STEPS; t++) {
            float loss = (float)subject_step(&s, t, runs[_i].lr);
            ck_close("loss", &loss, &losses[t], 1, 1e-4, 0);
        }
        for (int i = 0; i < s.n_param; i++) {
            int64_t n;
            const char *name = fx_model_param_name(s.model, i);
            float *got = subject_read(&s, i, &n), *want = weight_of_file(s.model, i, golden),
                  *old = weight_of_file(s.model, i, weights);
            double off = 0, moved = 0;
            for (int64_t k = 0; k < n; k++) {
                if (without_effect(name, k))
                    continue;
                double w = (double)want[k] - (double)old[k], g = (double)got[k] - (double)want[k];
                off += g * g;
                moved += w * w;
            }
            ck_assert_msg(sqrt(off) <= runs[_i].update_error * sqrt(moved) + 1e-7 * norm_of(want, n),
                          "%s: %s: off by %.3g where it moved by %.3g", fx_device_uri(d), name, sqrt(off), sqrt(moved));
            free(got);
            free(want);
            free(old);
        }
        subject_close(&s);
    }
    fx_safetensors_close(weights);
    fx_safetensors_close(golden);
}
END_TEST

int main(void) {
    Suite *s = suite_create("parity_vit");
    TCase *c = tcase_create("pytorch");
    tcase_add_checked_fixture(c, golden_setup, golden_teardown);
    tcase_add_test(c, logits_loss_and_gradients_are_those_of_pytorch);
    tcase_add_loop_test(c, twenty_steps_go_where_pytorch_goes, 0, sizeof runs / sizeof *runs);
    suite_add_tcase(s, c);
    return golden_run(s);
}
