/* test_parity_base.c - ViT-Base/16 on one image of 224 x 224: a training step on the first Vulkan device, against the
 * loss, logits and gradient norms that PyTorch computes in float64. ctest: slow */
#include "parity_vit.h"

#include "examples/vit/vit.c"

enum { CLASSES = 1000, WIDTH = 768, DEPTH = 12, TOP = 4, LAYER = 16 };

static const vit_config config = {.height = 224,
                                  .width_px = 224,
                                  .channels = 3,
                                  .patch = 16,
                                  .width = WIDTH,
                                  .depth = DEPTH,
                                  .heads = 12,
                                  .mlp = 4 * WIDTH,
                                  .classes = CLASSES,
                                  .norm_eps = 1e-12};

/* The tensors of Hugging Face that make up a parameter: how many, and the first one's place in the list of
 * golden/make_golden.py; name: of each. */
static int parts_of(const char *param, int name_count, char names[][128], uint32_t *first) {
    static const char *const top[][2] = {
        {"embed.cls", "embeddings.cls_token"},
        {"embed.position", "embeddings.position_embeddings"},
        {"embed.patch.weight", "embeddings.patch_embeddings.projection.weight"},
        {"embed.patch.bias", "embeddings.patch_embeddings.projection.bias"},
    };
    static const char *const end[][2] = {
        {"norm.weight", "vit.layernorm.weight"},
        {"norm.bias", "vit.layernorm.bias"},
        {"head.weight", "classifier.weight"},
        {"head.bias", "classifier.bias"},
    };
    static const struct {
        const char *name, *part[3];
        uint32_t at;
    } layer[] = {
        {"norm1", {"layernorm_before"}, 0},
        {"attention.qkv", {"attention.attention.query", "attention.attention.key", "attention.attention.value"}, 2},
        {"attention.out", {"attention.output.dense"}, 8},
        {"norm2", {"layernorm_after"}, 10},
        {"mlp.fc1", {"intermediate.dense"}, 12},
        {"mlp.fc2", {"output.dense"}, 14},
    };
    int index, used = 0, n = 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (!strcmp(param, top[i][0]))
            return *first = i, snprintf(names[0], 128, "vit.%s", top[i][1]) > 0;
        if (!strcmp(param, end[i][0]))
            return *first = TOP + LAYER * DEPTH + i, snprintf(names[0], 128, "%s", end[i][1]) > 0;
    }
    ck_assert_msg(sscanf(param, "layer.%d.%n", &index, &used) == 1 && used, "%s", param);
    for (size_t i = 0; i < sizeof layer / sizeof *layer; i++) {
        size_t len = strlen(layer[i].name);
        if (strncmp(param + used, layer[i].name, len) || param[used + (int)len] != '.')
            continue;
        const char *kind = param + used + len + 1;
        *first = TOP + LAYER * (uint32_t)index + layer[i].at + !strcmp(kind, "bias");
        for (; n < name_count && layer[i].part[n]; n++)
            snprintf(names[n], 128, "vit.encoder.layer.%d.%s.%s", index, layer[i].part[n], kind);
    }
    ck_assert_msg(n > 0, "%s", param);
    return n;
}

static float *weight_of_noise(const fx_model *m, int i, void *user) {
    char names[3][128];
    uint32_t first;
    fx_spec s = fx_model_param_spec(m, i);
    const char *name = fx_model_param_name(m, i);
    int parts = parts_of(name, 3, names, &first);
    int64_t n = fx_spec_count(&s) / parts;
    float *x = malloc((size_t)(n * parts) * sizeof *x);
    bool scale = strstr(name, "norm") && strstr(name, ".weight");
    (void)user;
    for (int k = 0; k < parts; k++)
        golden_noise(20000 + first + 2 * (uint32_t)k, n, x + k * n);
    for (int64_t k = 0; k < n * parts; k++)
        x[k] = scale ? 1 + x[k] * 0.125f : x[k] * 0.035f;
    return x;
}

static double golden_scalar(const fx_safetensors *f, const char *name) {
    fx_spec spec = FX_SPEC0(FX_F64);
    double v;
    OK(fx_safetensors_read(f, name, &spec, &v));
    return v;
}

/* With momentum, the optimizer's state after the first step is the gradient. */
START_TEST(a_training_step_of_vit_base_is_that_of_pytorch) {
    fx_optimizer o = FX_OPTIMIZER_INIT;
    fx_device *d = fx_device_at(cx, 0);
    fx_safetensors *golden = golden_open("base");
    subject s;
    o.momentum = 0.9;
    subject_open(&s, d, &config, 1, &o, weight_of_noise, NULL);
    double loss = subject_step(&s, 0, 1e-3f), want = golden_scalar(golden, "loss");
    printf("%s: loss %.7f, PyTorch's %.7f\n", fx_device_uri(d), loss, want);
    ck_assert_msg(fabs(loss - want) <= 1e-5 * want, "loss %.9g, want %.9g", loss, want);
    double worst = 0;
    for (int i = 0; i < s.n_param; i++) {
        char names[3][128];
        uint32_t first;
        const char *name = fx_model_param_name(s.model, i);
        int parts = parts_of(name, 3, names, &first);
        int64_t n;
        float *g = subject_read(&s, s.n_param + i, &n), *p = subject_read(&s, i, &n),
              *old = weight_of_noise(s.model, i, NULL);
        for (int64_t k = 0; k < n; k++)
            ck_assert_msg(fabsf(p[k] - (old[k] - 1e-3f * g[k])) <= 1e-6f * fabsf(old[k]) + 1e-7f,
                          "%s: element %lld is not old - lr * gradient", name, (long long)k);
        for (int k = 0; k < parts; k++) {
            double norm = norm_of(g + k * (n / parts), n / parts), exact = golden_scalar(golden, names[k]);
            /* a shift of all keys changes nothing: that gradient is rounding alone */
            bool nothing = strstr(names[k], "key.bias") != NULL;
            worst = nothing ? worst : fmax(worst, fabs(norm / exact - 1));
            ck_assert_msg(nothing ? norm < 1e-5 : fabs(norm - exact) <= 1e-4 * exact,
                          "%s: norm of the gradient %.9g, want %.9g", names[k], norm, exact);
        }
        free(g);
        free(p);
        free(old);
    }
    printf("gradient norms: at most %.2g off, relative\n", worst);
    subject_close(&s);
    fx_safetensors_close(golden);
}
END_TEST

int main(void) {
    if (fx_init(NULL, &cx) != FX_OK) {
        fprintf(stderr, "%s\n", fx_last_error());
        return 1;
    }
    bool vulkan = !strncmp(fx_device_uri(fx_device_at(cx, 0)), "vulkan", 6);
    fx_shutdown(cx);
    if (!vulkan) {
        printf("SKIPPED: no Vulkan device\n");
        return 77;
    }
    Suite *s = suite_create("parity_base");
    TCase *c = tcase_create("pytorch");
    tcase_add_checked_fixture(c, golden_setup, golden_teardown);
    tcase_add_test(c, a_training_step_of_vit_base_is_that_of_pytorch);
    suite_add_tcase(s, c);
    return golden_run(s);
}
