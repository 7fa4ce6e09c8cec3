/* test_fuse.c - how many kernels the patterns of a transformer become, and that the fused kernels compute what the
 * evaluator does where a Vulkan device is there. */
#include <math.h>

#include "core/graph/trace.h"
#include "fornax/transform.h"
#include "program_run.h"

static fx_device_caps caps = {.language = FX_LANGUAGE_GLSL,
                              .storage8 = true,
                              .storage16 = true,
                              .int64 = true,
                              .f64 = true,
                              .subgroup_size = 16,
                              .subgroup_min = 16,
                              .subgroup_max = 16,
                              .subgroup_shuffle = true,
                              .subgroup_arithmetic = true,
                              .subgroup_ballot = true,
                              .max_invocations = 1024,
                              .max_workgroup = {1024, 1024, 64},
                              .max_groups = {65535, 65535, 65535},
                              .shared_bytes = 32768,
                              .max_args = 16,
                              .units = 2,
                              .barrier_is_slow = true};
static test_device device;

static uint32_t state = 7;
static float rnd(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

/* Runs f fused on the device and on the evaluator, all inputs f32. */
static void compare(const fx_func *f, double tolerance) {
    const fx_graph *g = fx_func_graph(f);
    void *in[64], *want[64], *got[64];
    if (!device.d)
        return;
    for (int i = 0; i < g->n_param; i++) {
        int64_t n = fx_spec_count(&g->params[i]->spec);
        float *p = malloc((size_t)n * 4);
        for (int64_t e = 0; e < n; e++)
            p[e] = rnd();
        in[i] = p;
    }
    for (int i = 0; i < g->n_result; i++) {
        want[i] = calloc((size_t)fx_spec_count(&g->results[i]->spec) + 1, 4);
        got[i] = calloc((size_t)fx_spec_count(&g->results[i]->spec) + 1, 4);
    }
    OK(fx_graph_eval(g, (const void *const *)in, want));
    OK(run_graph(&device, g, NULL, (const void *const *)in, got));
    for (int i = 0; i < g->n_result; i++) {
        double worst = 0, scale = 0;
        for (int64_t e = 0; e < fx_spec_count(&g->results[i]->spec); e++) {
            double a = (double)((float *)want[i])[e], b = (double)((float *)got[i])[e];
            ck_assert(isfinite(a) && isfinite(b));
            worst = fmax(worst, fabs(a - b));
            scale = fmax(scale, fabs(a));
        }
        ck_assert_msg(worst <= tolerance * (scale + 1e-6), "result %d: error %g of %g", i, worst, scale);
    }
    for (int i = 0; i < g->n_param; i++)
        free(in[i]);
    for (int i = 0; i < g->n_result; i++) {
        free(want[i]);
        free(got[i]);
    }
}

static int kernels(const fx_func *f) {
    fx_program *p;
    OK(fx_program_create(fx_func_graph(f), &caps, NULL, &p));
    int n = p->n_step;
    if (getenv("FUSE_PRINT")) {
        char *text = fx_program_print(p);
        printf("%s", text);
        free(text);
    }
    fx_program_destroy(p);
    return n;
}

static fx_func *traced(fx_trace_fn fn, int n_in, const fx_spec *specs, int n_out) {
    fx_func *f;
    OK(fx_trace_func(fn, NULL, n_in, specs, n_out, &f));
    return f;
}

static void expect(fx_trace_fn fn, int n_in, const fx_spec *specs, int n_out, int most) {
    fx_func *f = traced(fn, n_in, specs, n_out);
    ck_assert_int_le(kernels(f), most);
    compare(f, 1e-5);
    fx_func_unref(f);
}

enum { LAST = -1 };
static const int last[1] = {LAST};

static void relu_sum(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(fx_mul_c(fx_relu(in[0]), 2), 1, last, false);
}
static void softmax(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_softmax(in[0], LAST);
}
static void log_softmax(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_log_softmax(in[0], LAST);
}
static fx_val norm(fx_val x, fx_val w, fx_val b) {
    fx_val c = fx_sub(x, fx_reduce_mean(x, 1, last, true));
    fx_val r = fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(c), 1, last, true), 1e-6));
    return fx_add(fx_mul(fx_mul(c, r), w), b);
}
static void layer_norm(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = norm(in[0], in[1], in[2]);
}
static void bias_gelu(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_gelu(fx_add(in[0], in[1]));
}

START_TEST(row_patterns_are_one_kernel) {
    fx_spec x = FX_SPEC(FX_F32, 4, 33, 48), v = FX_SPEC(FX_F32, 48), s[3] = {x, v, v};
    expect(relu_sum, 1, s, 1, 1);
    expect(softmax, 1, s, 1, 1);
    expect(log_softmax, 1, s, 1, 1);
    expect(layer_norm, 3, s, 1, 1);
    expect(bias_gelu, 2, s, 1, 1);
}
END_TEST

START_TEST(layer_norm_backward_is_two_kernels) {
    fx_spec x = FX_SPEC(FX_F32, 4, 33, 48), v = FX_SPEC(FX_F32, 48), s[3] = {x, v, v};
    fx_func *f = traced(layer_norm, 3, s, 1), *b;
    OK(fx_vjp(f, FX_ARGS(0, 1, 2), &b));
    ck_assert_int_le(kernels(b), 3); /* forward and backward */
    compare(b, 1e-5);
    fx_func_unref(b);
    fx_func_unref(f);
}
END_TEST

enum { BATCH = 2, TOKENS = 13, WIDTH = 48, HEADS = 3, HIDDEN = 4 * WIDTH };

static fx_val dense(fx_val x, fx_val w, fx_val b) {
    return fx_add(fx_matmul(x, w), b);
}

/* x, ln1 w b, qkv w b, proj w b, ln2 w b, fc1 w b, fc2 w b -> sum of squares of the block's result */
static void block_loss(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val x = in[0], h = dense(norm(x, in[1], in[2]), in[3], in[4]), part[3];
    int perm[4] = {0, 2, 1, 3}, transposed[4] = {0, 1, 3, 2};
    for (int i = 0; i < 3; i++) {
        fx_val p = fx_slice_axis(h, 2, i * WIDTH, (i + 1) * WIDTH);
        p = fx_reshape(p, 4, (int64_t[]){BATCH, TOKENS, HEADS, WIDTH / HEADS});
        part[i] = fx_transpose(p, perm);
    }
    fx_val s = fx_mul_c(fx_matmul(part[0], fx_transpose(part[1], transposed)), 0.25);
    fx_val o = fx_transpose(fx_matmul(fx_softmax(s, LAST), part[2]), perm);
    x = fx_add(x, dense(fx_reshape(o, 3, (int64_t[]){BATCH, TOKENS, WIDTH}), in[5], in[6]));
    fx_val m = fx_gelu(dense(norm(x, in[7], in[8]), in[9], in[10]));
    x = fx_add(x, dense(m, in[11], in[12]));
    out[0] = fx_reduce_sum(fx_square(x), -1, NULL, false);
}

START_TEST(a_transformer_block_trains_in_few_kernels) {
    fx_spec v = FX_SPEC(FX_F32, WIDTH);
    fx_spec s[13] = {FX_SPEC(FX_F32, BATCH, TOKENS, WIDTH),
                     v,
                     v,
                     FX_SPEC(FX_F32, WIDTH, 3 * WIDTH),
                     FX_SPEC(FX_F32, 3 * WIDTH),
                     FX_SPEC(FX_F32, WIDTH, WIDTH),
                     v,
                     v,
                     v,
                     FX_SPEC(FX_F32, WIDTH, HIDDEN),
                     FX_SPEC(FX_F32, HIDDEN),
                     FX_SPEC(FX_F32, HIDDEN, WIDTH),
                     v};
    fx_func *f = traced(block_loss, 13, s, 1), *g;
    OK(fx_value_and_grad(f, FX_ARGS(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), &g));
    int n = kernels(g);
    printf("transformer block, forward and backward: %d kernels\n", n);
    compare(g, 2e-5);
    ck_assert_int_le(n, 34);
    fx_func_unref(g);
    fx_func_unref(f);
}
END_TEST

/* p, m, v, g of each array -> Adam's new p, m, v */
enum { ARRAYS = 7 };
static void adam(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val norm2 = NULL;
    for (int i = 0; i < ARRAYS; i++) {
        fx_val s = fx_reduce_sum(fx_square(in[4 * i + 3]), -1, NULL, false);
        norm2 = norm2 ? fx_add(norm2, s) : s;
    }
    fx_val clip = fx_div(fx_const_like(norm2, 1), fx_add_c(fx_sqrt(norm2), 1));
    for (int i = 0; i < ARRAYS; i++) {
        fx_val p = in[4 * i], g = fx_mul(in[4 * i + 3], clip);
        fx_val m = fx_add(fx_mul_c(in[4 * i + 1], 0.9), fx_mul_c(g, 0.1));
        fx_val v = fx_add(fx_mul_c(fx_square(in[4 * i + 2]), 0.99), fx_mul_c(fx_square(g), 0.01));
        out[3 * i] = fx_sub(p, fx_mul_c(fx_add(fx_div(m, fx_add_c(fx_sqrt(v), 1e-3)), fx_mul_c(p, 0.01)), 0.1));
        out[3 * i + 1] = m;
        out[3 * i + 2] = v;
    }
}

START_TEST(an_optimizer_updates_all_arrays_in_one_launch) {
    fx_spec s[4 * ARRAYS];
    for (int i = 0; i < ARRAYS; i++)
        for (int j = 0; j < 4; j++)
            s[4 * i + j] = i % 3 == 0 ? FX_SPEC(FX_F32, 10 + 2 * i) : FX_SPEC(FX_F32, 30 + i, 40 * i);
    fx_func *f = traced(adam, 4 * ARRAYS, s, 3 * ARRAYS);
    fx_program *p;
    int updates = 0;
    OK(fx_program_create(fx_func_graph(f), &caps, NULL, &p));
    for (int i = 0; i < p->n_step; i++)
        updates += !strncmp(p->steps[i].schedule, "pointwise", 9) && p->steps[i].n_arg > 4;
    ck_assert_int_le(p->n_step, 6); /* the norm: two launches for what is alike, and a few small sums */
    fx_program_destroy(p);
    ck_assert_int_eq(updates, 1);
    kernels(f);
    compare(f, 1e-5);
    fx_func_unref(f);
}
END_TEST

int main(void) {
    int open = -1;
    if (find_vulkan())
        for (int i = 0; i < n_devices && open < 0; i++)
            if (device_infos[i].usable && vk->open(i, getenv("FORNAX_CACHE_DIR"), &device.d, &device.caps) == FX_OK)
                open = i;
    Suite *s = suite_create("fuse");
    TCase *c = tcase_create("fuse");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, row_patterns_are_one_kernel);
    tcase_add_test(c, layer_norm_backward_is_two_kernels);
    tcase_add_test(c, an_optimizer_updates_all_arrays_in_one_launch);
    tcase_add_test(c, a_transformer_block_trains_in_few_kernels);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    if (device.d)
        vk->close(device.d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
