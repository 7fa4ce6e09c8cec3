/* selftest.c - `fornax selftest`: a few programs of each kind on a device against the evaluator. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/tools/tool.h"

static void pointwise(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_gelu(fx_add(in[0], fx_mul_c(in[1], 0.5)));
}

static void product(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_matmul(in[0], fx_transpose(in[1], NULL));
}

static void softmax(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_softmax(fx_add(in[0], in[1]), -1);
}

static void columns(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    int axis = 0;
    out[0] = fx_reduce_sum(fx_mul(in[0], in[1]), 1, &axis, false);
}

static void running(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_cumulative(in[0], 1, FX_CUMSUM, false);
}

static void sorted(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_sort(in[0], -1, false);
}

static void gathered(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val rows = fx_convert(fx_mul_c(fx_abs(fx_slice_axis(in[1], 1, 0, 1)), 20), FX_S32);
    out[0] = fx_take(in[0], fx_squeeze(rows, 1), 0);
}

static void image(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    static const int64_t one[] = {1, 1};
    fx_conv_dims d = {.low = one, .high = one};
    fx_val x = fx_reshape(in[0], 4, (int64_t[]){1, 3, 33, 67}), w = fx_slice_axis(fx_reshape(in[1], 4, (int64_t[]){67, 11, 3, 3}), 1, 0, 3);
    out[0] = fx_convolution(x, w, &d);
}

static void random_bits(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)in, (void)user;
    out[0] = fx_random_uniform(fx_random_key(t, 7), FX_SPEC(FX_F32, 1000), 0, 1);
}

static void norm_loss(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    int axis = -1;
    fx_val d = fx_sub(in[0], fx_reduce_mean(in[0], 1, &axis, true));
    fx_val y = fx_mul(d, fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(d), 1, &axis, true), 1e-5)));
    out[0] = fx_reduce_sum(fx_mul(y, fx_tanh(in[1])), -1, NULL, false);
}

typedef struct program {
    const char *name;
    fx_trace_fn fn;
    bool grad;
} program;

static const program programs[] = {
    {"pointwise", pointwise, false}, {"product", product, false}, {"softmax", softmax, false},   {"column sums", columns, false},
    {"running sum", running, false}, {"sort", sorted, false},     {"gather", gathered, false},   {"convolution", image, false},
    {"random", random_bits, false},  {"gradient", norm_loss, true},
};

/* Inputs between -2 and 2 that no symmetry of a program hides. */
static void fill(float *x, int64_t n, unsigned seed) {
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * (4.0f / 16777216) - 2;
    }
}

static fx_status run_on(fx_device *d, const fx_func *f, const fx_spec *in, float **x, float *y) {
    fx_exec *e = NULL;
    fx_array *a[2] = {NULL, NULL}, *r = NULL;
    fx_spec s = fx_func_out_spec(f, 0);
    fx_status st = fx_compile(f, d, NULL, &e);
    for (int i = 0; i < 2 && st == FX_OK; i++)
        st = fx_array_create(d, in[i], x[i], &a[i]);
    if (st == FX_OK)
        st = fx_run(e, a, &r);
    if (st == FX_OK)
        st = fx_array_read(r, y, (size_t)fx_spec_count(&s) * sizeof *y);
    fx_array_unref(a[0]);
    fx_array_unref(a[1]);
    fx_array_unref(r);
    fx_exec_destroy(e);
    return st;
}

/* Largest difference relative to max(1, |want|); infinite for a NaN. */
static fx_status compare(fx_device *d, fx_device *reference, const program *p, double *worst) {
    const fx_spec in[] = {FX_SPEC(FX_F32, 33, 201), FX_SPEC(FX_F32, 33, 201)};
    int64_t n = fx_spec_count(&in[0]);
    float *x[2] = {malloc(sizeof(float) * (size_t)n), malloc(sizeof(float) * (size_t)n)};
    float *y = NULL, *want = NULL;
    fx_func *f = NULL, *g = NULL;
    fx_status st = x[0] && x[1] ? FX_OK : FX_OUT_OF_MEMORY;
    if (st == FX_OK) {
        fill(x[0], n, 1);
        fill(x[1], n, 2);
        st = fx_trace_func(p->fn, NULL, 2, in, 1, &f);
    }
    if (st == FX_OK && p->grad) {
        st = fx_grad(f, FX_ARGS(0), &g);
        fx_func_unref(f);
        f = g;
    }
    fx_spec s = f ? fx_func_out_spec(f, 0) : FX_SPEC0(FX_F32);
    if (st == FX_OK) {
        y = calloc((size_t)fx_spec_count(&s), sizeof *y);
        want = calloc((size_t)fx_spec_count(&s), sizeof *want);
        st = y && want ? run_on(reference, f, in, x, want) : FX_OUT_OF_MEMORY;
    }
    if (st == FX_OK)
        st = run_on(d, f, in, x, y);
    *worst = 0;
    for (int64_t i = 0; st == FX_OK && i < fx_spec_count(&s); i++) {
        double e = fabs((double)y[i] - (double)want[i]) / fmax(1, fabs((double)want[i]));
        *worst = isnan(e) ? INFINITY : fmax(*worst, e);
    }
    fx_func_unref(f);
    free(x[0]);
    free(x[1]);
    free(y);
    free(want);
    return st;
}

static int run(const tool_options *o) {
    fx_context *cx = NULL;
    fx_device *d, *reference;
    int failed = 0, n = (int)(sizeof programs / sizeof *programs);
    const double allowed = 1e-4;
    if (tool_open(o, &cx, &d) != FX_OK || fx_device_find(cx, "reference", &reference) != FX_OK) {
        fx_shutdown(cx);
        return tool_fail();
    }
    if (o->json)
        printf("{\"device\": \"%s\", \"tests\": [\n", fx_device_uri(d));
    else
        printf("%s (%s) against the evaluator\n", fx_device_uri(d), fx_device_name(d));
    for (int i = 0; i < n; i++) {
        double worst, start = tool_now();
        fx_status st = compare(d, reference, &programs[i], &worst);
        bool ok = st == FX_OK && worst <= allowed;
        failed += !ok;
        if (o->json) {
            printf("  {\"name\": \"%s\", \"ok\": %s, \"error\": %.3g", programs[i].name, ok ? "true" : "false",
                   st == FX_OK && isfinite(worst) ? worst : -1.0);
            if (st != FX_OK) {
                printf(", \"text\": ");
                tool_json_text(stdout, fx_last_error());
            }
            printf("}%s\n", i + 1 < n ? "," : "");
        } else if (st != FX_OK) {
            printf("  %-14s FAILED: %s\n", programs[i].name, fx_last_error());
        } else {
            printf("  %-14s %s  largest error %.1e  %.2f s\n", programs[i].name, ok ? "ok    " : "FAILED", worst, tool_now() - start);
        }
    }
    if (o->json)
        printf("], \"failed\": %d}\n", failed);
    else
        printf("%d of %d right\n", n - failed, n);
    fx_shutdown(cx);
    return failed > 0;
}

const tool_command tool_selftest = {"selftest", "runs small programs on a device and compares with the evaluator",
                                    "usage: fornax selftest [--device URI] [--json]\n\nExit status 1 when a result differs by more than 1e-4.", run};
