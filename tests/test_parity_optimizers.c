/* test_parity_optimizers.c - each optimizer against the formulas of its paper in float64: twenty updates of a matrix, a
 * vector without weight decay and a scalar, on every device. */
#include "golden.h"

enum { ARRAYS = 3, STEPS = 20 };

static const fx_spec specs[ARRAYS] = {{FX_F32, 2, {5, 7}}, {FX_F32, 1, {13}}, {FX_F32, 0, {0}}};
static const bool decays[ARRAYS] = {true, false, true};

typedef struct setting {
    fx_optimizer o;
    int slots;
} setting;

/* params, gradients, state, step, lr -> params, state */
static void step(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const setting *s = user;
    (void)t;
    const fx_val *state = in + 2 * ARRAYS, *rest = state + ARRAYS * s->slots;
    fx_optimizer_update(&s->o, ARRAYS, in, in + ARRAYS, state, decays, rest[0], rest[1], out, out + ARRAYS);
}

/* The optimizer that golden/make_golden.py calls `name`. */
static setting setting_named(const fx_safetensors *file, const char *name) {
    static const char *const kinds[] = {"sgd", "adam", "adamw", "lion"};
    char key[64];
    double v[7];
    fx_spec spec = FX_SPEC(FX_F64, 7);
    setting s = {FX_OPTIMIZER_INIT, 0};
    snprintf(key, sizeof key, "%s/options", name);
    OK(fx_safetensors_read(file, key, &spec, v));
    for (int k = 0; k < 4; k++)
        if (strlen(kinds[k]) == strcspn(name, " ") && !strncmp(name, kinds[k], strlen(kinds[k])))
            s.o.kind = (fx_optimizer_kind)k;
    s.o.momentum = v[0];
    s.o.nesterov = v[1] != 0;
    s.o.beta1 = v[2];
    s.o.beta2 = v[3];
    s.o.eps = v[4];
    s.o.weight_decay = v[5];
    s.o.clip_norm = v[6];
    s.slots = fx_optimizer_slots(&s.o);
    return s;
}

static fx_array *noise_array(fx_device *d, fx_spec spec, uint32_t seed) {
    float x[64];
    fx_array *a;
    golden_noise(seed, fx_spec_count(&spec), x);
    OK(fx_array_create(d, spec, x, &a));
    return a;
}

static const char *const names[] = {"sgd",        "sgd decay", "sgd momentum", "sgd nesterov", "sgd clip",  "adam",
                                    "adam decay", "adamw",     "adamw clip",   "lion",         "lion decay"};

START_TEST(twenty_updates_follow_the_formulas) {
    const char *name = names[_i];
    fx_safetensors *file = golden_open("optimizers");
    setting s = setting_named(file, name);
    fx_spec in[2 * ARRAYS + 2 * ARRAYS + 2];
    int n_state = ARRAYS * s.slots, n_in = 2 * ARRAYS + n_state + 2, n_out = ARRAYS + n_state;
    for (int i = 0; i < ARRAYS; i++) {
        in[i] = in[ARRAYS + i] = specs[i];
        for (int k = 0; k < s.slots; k++)
            in[2 * ARRAYS + i * s.slots + k] = specs[i];
    }
    in[n_in - 2] = FX_SPEC0(FX_S32);
    in[n_in - 1] = FX_SPEC0(FX_F32);
    fx_func *f;
    OK(fx_trace_func(step, &s, n_in, in, n_out, &f));
    FOR_EACH_DEVICE(d) {
        fx_exec *e;
        fx_array *a[16], *out[16];
        OK(fx_compile(f, d, NULL, &e));
        for (int i = 0; i < ARRAYS; i++)
            a[i] = noise_array(d, specs[i], 100 + (uint32_t)i);
        for (int i = 0; i < n_state; i++)
            OK(fx_array_create(d, in[2 * ARRAYS + i], NULL, &a[2 * ARRAYS + i]));
        float lr = 0.05f;
        OK(fx_array_create(d, FX_SPEC0(FX_F32), &lr, &a[n_in - 1]));
        for (int32_t t = 0; t < STEPS; t++) {
            for (int i = 0; i < ARRAYS; i++)
                a[ARRAYS + i] = noise_array(d, specs[i], (uint32_t)(1000 * i + t + 1));
            OK(fx_array_create(d, FX_SPEC0(FX_S32), &t, &a[n_in - 2]));
            OK(fx_run(e, a, out));
            for (int i = 0; i < n_in - 1; i++)
                fx_array_unref(a[i]);
            memcpy(a, out, sizeof *a * ARRAYS);
            memcpy(a + 2 * ARRAYS, out + ARRAYS, sizeof *a * (size_t)n_state);
        }
        for (int i = 0; i < ARRAYS; i++) {
            char key[64];
            float got[64], want[64];
            double exact[64];
            fx_spec spec = specs[i];
            int64_t n = fx_spec_count(&spec);
            snprintf(key, sizeof key, "%s/%d", name, i);
            spec.dtype = FX_F64;
            OK(fx_safetensors_read(file, key, &spec, exact));
            OK(fx_array_read(a[i], got, (size_t)n * sizeof *got));
            for (int64_t k = 0; k < n; k++)
                want[k] = (float)exact[k];
            ck_close(key, got, want, n, 1e-5, 1e-5);
            fx_array_unref(a[i]);
        }
        for (int i = 0; i < n_state; i++)
            fx_array_unref(a[2 * ARRAYS + i]);
        fx_array_unref(a[n_in - 1]);
        fx_exec_destroy(e);
    }
    fx_func_unref(f);
    fx_safetensors_close(file);
}
END_TEST

int main(void) {
    Suite *s = suite_create("parity_optimizers");
    TCase *c = tcase_create("formulas");
    tcase_add_checked_fixture(c, golden_setup, golden_teardown);
    tcase_add_loop_test(c, twenty_updates_follow_the_formulas, 0, sizeof names / sizeof *names);
    suite_add_tcase(s, c);
    return golden_run(s);
}
