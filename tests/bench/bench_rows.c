/* bench_rows.c - how fast kernels that are bound by memory run: copies, pointwise, rows, sums, transposes.
 *
 * usage: bench_rows [DEVICE] [NAME]      e.g. bench_rows vulkan:0 softmax
 * A line each: name, medians of wall time and of CPU time (both cores of software devices count), bytes moved (each
 * array once) a second by the wall clock and by half the CPU time, kernels, compile time (by the compiler + CPU time of
 * the first run beyond a later one, where drivers compile). CPU figures of software devices hold when other programs
 * use the machine, wall figures don't. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fornax/fornax.h"
#include "fornax/transform.h"

#define OK(expr)                                                 \
    do {                                                         \
        if ((expr) != FX_OK) {                                   \
            fprintf(stderr, "%s: %s\n", #expr, fx_last_error()); \
            exit(1);                                             \
        }                                                        \
    } while (0)

static double seconds(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define CASE(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)in, (void)user

CASE(pointwise) {
    UNUSED;
    out[0] = fx_add(fx_mul_c(in[0], 1.5), in[1]);
}
CASE(softmax) {
    UNUSED;
    out[0] = fx_softmax(in[0], -1);
}
static fx_val normalised(fx_val x, fx_val scale, fx_val shift) {
    int axis = -1;
    fx_val mean = fx_reduce_mean(x, 1, &axis, true), c = fx_sub(x, mean);
    fx_val var = fx_reduce_mean(fx_mul(c, c), 1, &axis, true);
    return fx_add(fx_mul(fx_mul(c, fx_rsqrt(fx_add_c(var, 1e-6))), scale), shift);
}
CASE(layer_norm) {
    UNUSED;
    out[0] = normalised(in[0], in[1], in[2]);
}
CASE(layer_norm_loss) {
    UNUSED;
    out[0] = fx_reduce_sum(fx_mul(normalised(in[0], in[1], in[2]), in[3]), -1, NULL, false);
}
CASE(column_sum) {
    UNUSED;
    out[0] = fx_reduce_sum(in[0], 1, (int[]){0}, false);
}
CASE(row_sum) {
    UNUSED;
    out[0] = fx_reduce_sum(in[0], 1, (int[]){1}, false);
}
CASE(full_sum) {
    UNUSED;
    out[0] = fx_reduce_sum(in[0], -1, NULL, false);
}
CASE(transpose) {
    UNUSED;
    out[0] = fx_transpose(in[0], NULL);
}
CASE(argmax) {
    UNUSED;
    out[0] = fx_argmax(in[0], -1, FX_S32);
}
CASE(cumsum) {
    UNUSED;
    out[0] = fx_cumulative(in[0], 1, FX_CUMSUM, false);
}
CASE(sort) {
    UNUSED;
    out[0] = fx_sort(in[0], 1, false);
}
CASE(embedding) {
    UNUSED;
    static const int64_t update[] = {1}, inserted[] = {0}, scatter[] = {0};
    fx_scatter_dims d = {.n_window = 1,
                         .n_inserted = 1,
                         .n_scatter = 1,
                         .update_window_dims = update,
                         .inserted_window_dims = inserted,
                         .scatter_dims_to_operand_dims = scatter,
                         .index_vector_dim = 1};
    out[0] = fx_scatter(fx_full(t, FX_SPEC(FX_F32, 50000, 768), 0), in[0], in[1], &d, FX_SCATTER_ADD);
}

static const char *only;

static void run(fx_device *d, const char *name, fx_func *f, int n, const fx_spec *in) {
    if (only && !strstr(name, only))
        return;
    fx_exec *e;
    fx_array *a[4], *out[8];
    double wall[40], cpu[40];
    int reps = 0, n_out = fx_func_n_out(f);
    OK(fx_compile(f, d, NULL, &e));
    for (int i = 0; i < n; i++) {
        int64_t count = fx_spec_count(&in[i]);
        float *x = malloc((size_t)count * 4);
        for (int64_t j = 0; j < count; j++)
            if (in[i].dtype == FX_F32)
                x[j] = (float)(j * 7919 % 1000003) / 1e6f + 0.1f;
            else
                ((int32_t *)x)[j] = (int32_t)(j * 7919 % 50000);
        OK(fx_array_create(d, in[i], x, &a[i]));
        free(x);
    }
    double first = seconds(CLOCK_PROCESS_CPUTIME_ID); /* drivers may compile when a kernel first runs */
    OK(fx_run(e, a, out));
    OK(fx_wait(e));
    first = seconds(CLOCK_PROCESS_CPUTIME_ID) - first;
    for (int i = 0; i < n_out; i++)
        fx_array_unref(out[i]);
    for (double begin = seconds(CLOCK_MONOTONIC); reps < 40 && (reps < 6 || seconds(CLOCK_MONOTONIC) - begin < 1.5);) {
        double w = seconds(CLOCK_MONOTONIC), c = seconds(CLOCK_PROCESS_CPUTIME_ID);
        OK(fx_run(e, a, out));
        OK(fx_wait(e));
        wall[reps] = seconds(CLOCK_MONOTONIC) - w;
        cpu[reps++] = seconds(CLOCK_PROCESS_CPUTIME_ID) - c;
        for (int i = 0; i < n_out; i++)
            fx_array_unref(out[i]);
    }
    fx_exec_stats_t s;
    OK(fx_exec_stats(e, &s));
    double bytes = (double)(s.argument_bytes + s.result_bytes);
    qsort(wall, (size_t)reps, sizeof *wall, by_value);
    qsort(cpu, (size_t)reps, sizeof *cpu, by_value);
    printf("%-28s %9.3f ms %9.3f ms cpu %7.1f GB/s %7.1f GB/s cpu  %d kernels, compiled in %.0f + %.0f ms\n", name,
           wall[reps / 2] * 1e3, cpu[reps / 2] * 1e3, bytes / wall[reps / 2] * 1e-9, bytes / (cpu[reps / 2] / 2) * 1e-9,
           s.kernels, s.compile_seconds * 1e3, (first - cpu[reps / 2]) * 1e3);
    fflush(stdout);
    if (getenv("BENCH_DESCRIBE")) {
        char *text = fx_exec_describe(e);
        fputs(text, stdout);
        free(text);
    }
    for (int i = 0; i < n; i++)
        fx_array_unref(a[i]);
    fx_exec_destroy(e);
}

static void bench(fx_device *d, const char *name, fx_trace_fn fn, int n, const fx_spec *in) {
    fx_func *f;
    OK(fx_trace_func(fn, NULL, n, in, 1, &f));
    run(d, name, f, n, in);
    fx_func_unref(f);
}

int main(int argc, char **argv) {
    fx_context *cx;
    fx_options opt = FX_OPTIONS_INIT;
    fx_device *d;
    opt.cache_dir = "";
    OK(fx_init(&opt, &cx));
    if (argc > 1)
        OK(fx_device_find(cx, argv[1], &d));
    else
        d = fx_default_device(cx);
    only = argc > 2 ? argv[2] : NULL;
    printf("%s: %s, %s\n", fx_device_uri(d), fx_device_name(d), fx_device_driver(d));
    if (!only || strstr("memcpy", only)) {
        size_t bytes = 16 << 20;
        char *x = calloc(1, bytes), *y = calloc(1, bytes);
        double w[21];
        for (int i = 0; i < 21; i++) {
            w[i] = seconds(CLOCK_MONOTONIC);
            x[i] = (char)i;
            memcpy(y, x, bytes);
            __asm__ volatile("" ::"r"(y) : "memory");
            w[i] = seconds(CLOCK_MONOTONIC) - w[i];
        }
        qsort(w, 21, sizeof *w, by_value);
        printf("%-28s %9.3f ms %34.1f GB/s  one thread\n", "memcpy 16 MiB", w[10] * 1e3,
               2 * (double)bytes / w[10] * 1e-9);
        free(x);
        free(y);
    }
    fx_spec v = FX_SPEC(FX_F32, 768), m = FX_SPEC(FX_F32, 1576, 768), c = FX_SPEC(FX_F32, 192);
    bench(d, "pointwise 16 MiB", pointwise, 2, (fx_spec[]){FX_SPEC(FX_F32, 4194304), FX_SPEC(FX_F32, 4194304)});
    bench(d, "softmax 16384x256", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 16384, 256)});
    bench(d, "softmax 4096x1024", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4096, 1024)});
    bench(d, "softmax 4728x197", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4728, 197)});
    bench(d, "softmax 419430x10", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 419430, 10)});
    bench(d, "softmax 4x1000000", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4, 1000000)});
    bench(d, "softmax 64x65536", softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 64, 65536)});
    bench(d, "layer_norm 1576x192", layer_norm, 3, (fx_spec[]){FX_SPEC(FX_F32, 1576, 192), c, c});
    bench(d, "layer_norm 1576x768", layer_norm, 3, (fx_spec[]){m, v, v});
    {
        fx_func *f, *g;
        fx_spec in[] = {m, v, v, m};
        OK(fx_trace_func(layer_norm_loss, NULL, 4, in, 1, &f));
        OK(fx_grad(f, FX_ARGS(0, 1, 2), &g));
        run(d, "layer_norm grad 1576x768", g, 4, in);
        fx_func_unref(f);
        fx_func_unref(g);
    }
    bench(d, "column_sum 1576x192", column_sum, 1, (fx_spec[]){FX_SPEC(FX_F32, 1576, 192)});
    bench(d, "column_sum 1576x768", column_sum, 1, &m);
    bench(d, "column_sum 100000x40", column_sum, 1, (fx_spec[]){FX_SPEC(FX_F32, 100000, 40)});
    bench(d, "row_sum 16384x256", row_sum, 1, (fx_spec[]){FX_SPEC(FX_F32, 16384, 256)});
    bench(d, "row_sum 4x1000000", row_sum, 1, (fx_spec[]){FX_SPEC(FX_F32, 4, 1000000)});
    bench(d, "full_sum 16 MiB", full_sum, 1, (fx_spec[]){FX_SPEC(FX_F32, 4194304)});
    bench(d, "transpose 1576x768", transpose, 1, &m);
    bench(d, "argmax 4096x1000", argmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4096, 1000)});
    bench(d, "argmax 4000000", argmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4000000)});
    bench(d, "cumsum 4096x1024", cumsum, 1, (fx_spec[]){FX_SPEC(FX_F32, 4096, 1024)});
    bench(d, "cumsum 2x524288", cumsum, 1, (fx_spec[]){FX_SPEC(FX_F32, 2, 524288)});
    bench(d, "sort 1024x256", sort, 1, (fx_spec[]){FX_SPEC(FX_F32, 1024, 256)});
    bench(d, "sort 1x65536", sort, 1, (fx_spec[]){FX_SPEC(FX_F32, 1, 65536)});
    bench(d, "embedding 50000x768 8192", embedding, 2,
          (fx_spec[]){FX_SPEC(FX_S32, 8192, 1), FX_SPEC(FX_F32, 8192, 768)});
    fx_shutdown(cx);
    return 0;
}
