/* bench.c - `fornax bench`: rates of the kernels a training step is made of, beside what the processor does
 * (memcpy, OpenBLAS when it is installed). Samples of all rows alternate, so that a machine that slows down
 * slows all of them; medians are printed. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/runtime/runtime.h"
#include "core/tools/tool.h"

enum { MOST_ROWS = 16, MOST_SAMPLES = 200 };

typedef struct row {
    char name[64];
    const char *unit;   /* of `work` a nanosecond: "GFLOP/s", "GB/s"; or "us" for time itself */
    double work;        /* FLOPs or bytes a run */
    double per;         /* "us": runs' time is divided by this */
    fx_exec *exec;      /* NULL: `host` is called */
    fx_array *in[4];
    int n_in, n_out;
    void (*host)(struct row *r);
    void *a, *b, *c;    /* host buffers */
    int64_t dims[4];    /* batch, m, n, k */
    double samples[MOST_SAMPLES];
    int n;
} row;

typedef struct bench {
    fx_context *cx;
    fx_device *d;
    row rows[MOST_ROWS];
    int n;
} bench;

static row *add(bench *b, const char *name, const char *unit, double work) {
    row *r = &b->rows[b->n++];
    snprintf(r->name, sizeof r->name, "%s", name);
    r->unit = unit;
    r->work = work;
    r->per = 1;
    return r;
}

static fx_status add_device(bench *b, const char *name, const char *unit, double work, fx_trace_fn fn, void *user, int n_in,
                            const fx_spec *in, const fx_lower_options *lower) {
    static const fx_lower_options defaults = {.no_fusion = false};
    row *r = add(b, name, unit, work);
    fx_func *f;
    FX_TRY(fx_trace_func(fn, user, n_in, in, 1, &f));
    fx_status st = fx_compile_lowered(f, b->d, 0, NULL, lower ? lower : &defaults, &r->exec);
    fx_func_unref(f);
    r->n_out = 1;
    for (int i = 0; i < n_in && st == FX_OK; i++) {
        size_t count = (size_t)fx_spec_count(&in[i]);
        float *x = malloc(count * sizeof *x + 1);
        for (size_t k = 0; x && k < count; k++)
            x[k] = (float)((k * 2654435761u >> 8) & 0xffff) * 1e-5f - 0.3f;
        st = x ? fx_array_create(b->d, in[i], x, &r->in[r->n_in++]) : FX_OUT_OF_MEMORY;
        free(x);
    }
    return st;
}

static fx_status sample(row *r, double *seconds) {
    fx_array *out = NULL;
    double start = tool_now();
    if (!r->exec) {
        r->host(r);
    } else {
        FX_TRY(fx_run(r->exec, r->in, &out));
        fx_status st = fx_wait(r->exec);
        fx_array_unref(out);
        FX_TRY(st);
    }
    *seconds = tool_now() - start;
    return FX_OK;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static fx_status measure(bench *b, double seconds) {
    double unused;
    for (int warm = 0; warm < 2; warm++)
        for (int i = 0; i < b->n; i++)
            FX_TRY(sample(&b->rows[i], &unused));
    double end = tool_now() + seconds * b->n;
    while (b->rows[0].n < 3 || (tool_now() < end && b->rows[0].n < MOST_SAMPLES))
        for (int i = 0; i < b->n; i++) {
            row *r = &b->rows[i];
            FX_TRY(sample(r, &r->samples[r->n]));
            r->n++;
        }
    for (int i = 0; i < b->n; i++)
        qsort(b->rows[i].samples, (size_t)b->rows[i].n, sizeof(double), ascending);
    return FX_OK;
}

static void print(const bench *b, const char *what, bool json) {
    if (json)
        printf("{\"bench\": \"%s\", \"device\": \"%s\", \"rows\": [\n", what, fx_device_uri(b->d));
    else
        printf("%s on %s (%s); medians, samples alternating\n", what, fx_device_uri(b->d), fx_device_name(b->d));
    for (int i = 0; i < b->n; i++) {
        const row *r = &b->rows[i];
        double median = r->samples[r->n / 2], best = r->samples[0];
        bool time = !strcmp(r->unit, "us");
        double value = time ? median * 1e6 / r->per : r->work / median * 1e-9, top = time ? best * 1e6 / r->per : r->work / best * 1e-9;
        if (json)
            printf("  {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"best\": %.4f, \"samples\": %d}%s\n", r->name, r->unit, value,
                   top, r->n, i + 1 < b->n ? "," : "");
        else
            printf("  %-36s %10.2f %-8s best %10.2f  (%d samples, median %.3f ms)\n", r->name, value, r->unit, top, r->n, median * 1e3);
    }
    if (json)
        printf("]}\n");
}

static void finish(bench *b) {
    for (int i = 0; i < b->n; i++) {
        row *r = &b->rows[i];
        for (int k = 0; k < r->n_in; k++)
            fx_array_unref(r->in[k]);
        fx_exec_destroy(r->exec);
        free(r->a);
        free(r->b);
        free(r->c);
    }
    fx_shutdown(b->cx);
}

/* --- matmul --- */

/* A product's transpositions: [m,k]x[k,n], [m,k]x[n,k], [k,m]x[k,n]. */
typedef enum form { FORM_NN, FORM_NT, FORM_TN } form;

static void product(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t;
    form f = *(const form *)user;
    int64_t batch = 0, lc = f == FORM_TN ? 1 : 2, rc = f == FORM_NT ? 2 : 1;
    fx_dot_dims d = {1, 1, &batch, &batch, &lc, &rc, FX_PRECISION_DEFAULT, FX_TUPLE};
    out[0] = fx_dot_general(in[0], in[1], &d);
}

static fx_status add_product(bench *b, int64_t batch, int64_t m, int64_t n, int64_t k, form f, const fx_lower_options *lower,
                             const char *note) {
    static const char *const names[] = {"A B", "A B^T", "A^T B"};
    char name[64];
    fx_spec in[] = {f == FORM_TN ? FX_SPEC(FX_F32, batch, k, m) : FX_SPEC(FX_F32, batch, m, k),
                    f == FORM_NT ? FX_SPEC(FX_F32, batch, n, k) : FX_SPEC(FX_F32, batch, k, n)};
    if (batch > 1)
        snprintf(name, sizeof name, "%lld x %lldx%lldx%lld %s%s", (long long)batch, (long long)m, (long long)n, (long long)k, names[f], note);
    else
        snprintf(name, sizeof name, "%lldx%lldx%lld %s%s", (long long)m, (long long)n, (long long)k, names[f], note);
    return add_device(b, name, "GFLOP/s", 2.0 * (double)batch * (double)m * (double)n * (double)k, product, &f, 2, in, lower);
}

typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                         float beta, float *c, int ldc);
static sgemm_fn sgemm;

static void openblas(row *r) {
    enum { ROW_MAJOR = 101, NO_TRANS = 111 };
    int m = (int)r->dims[1], n = (int)r->dims[2], k = (int)r->dims[3];
    sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, m, n, k, 1, r->a, k, r->b, n, 0, r->c, n);
}

static void add_openblas(bench *b, int64_t m, int64_t n, int64_t k) {
    void *lib = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    char name[64];
    if (lib)
        *(void **)&sgemm = dlsym(lib, "cblas_sgemm");
    if (!sgemm)
        return;
    snprintf(name, sizeof name, "%lldx%lldx%lld OpenBLAS", (long long)m, (long long)n, (long long)k);
    row *r = add(b, name, "GFLOP/s", 2.0 * (double)m * (double)n * (double)k);
    r->host = openblas;
    r->a = calloc((size_t)(m * k), sizeof(float));
    r->b = calloc((size_t)(k * n), sizeof(float));
    r->c = calloc((size_t)(m * n), sizeof(float));
    r->dims[1] = m;
    r->dims[2] = n;
    r->dims[3] = k;
}

static fx_status matmul(bench *b, const tool_options *o) {
    int64_t batch = o->batch ? o->batch : 1;
    if (o->m || o->n || o->k) {
        int64_t m = o->m ? o->m : 512, n = o->n ? o->n : m, k = o->k ? o->k : n;
        for (int f = 0; f < 3; f++)
            FX_TRY(add_product(b, batch, m, n, k, (form)f, NULL, ""));
        if (batch == 1)
            add_openblas(b, m, n, k);
        return FX_OK;
    }
    static const fx_lower_options naive = {.contract = FX_CONTRACT_NAIVE};
    FX_TRY(add_product(b, 1, 512, 512, 512, FORM_NN, &naive, ", one output an invocation"));
    FX_TRY(add_product(b, 1, 512, 512, 512, FORM_NN, NULL, ""));
    FX_TRY(add_product(b, 1, 512, 512, 512, FORM_NT, NULL, ""));
    FX_TRY(add_product(b, 1, 1576, 768, 192, FORM_NT, NULL, ""));
    FX_TRY(add_product(b, 1, 1576, 192, 768, FORM_NN, NULL, " (gradient)"));
    FX_TRY(add_product(b, 1, 768, 192, 1576, FORM_TN, NULL, " (gradient)"));
    FX_TRY(add_product(b, 24, 197, 197, 64, FORM_NT, NULL, ""));
    FX_TRY(add_product(b, 24, 197, 64, 197, FORM_NN, NULL, ""));
    add_openblas(b, 512, 512, 512);
    return FX_OK;
}

/* --- pointwise, row, copy --- */

static const int64_t mib16 = 16 << 20;

static void scaled(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_add_c(fx_mul_c(in[0], 1.5), 0.25);
}

static void gelu(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_gelu(in[0]);
}

static void softmax(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_softmax(in[0], -1);
}

static void layer_norm(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    int axis = -1;
    fx_val d = fx_sub(in[0], fx_reduce_mean(in[0], 1, &axis, true));
    out[0] = fx_mul(d, fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(d), 1, &axis, true), 1e-6)));
}

static void columns(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    int axis = 0;
    out[0] = fx_reduce_sum(in[0], 1, &axis, false);
}

static void total(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(in[0], -1, NULL, false);
}

static void transposed(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_transpose(in[0], NULL);
}

static void host_copy(row *r) { memcpy(r->b, r->a, (size_t)r->dims[0]); }

static void add_memcpy(bench *b) {
    row *r = add(b, "memcpy 16 MiB, one thread", "GB/s", 2.0 * (double)mib16);
    r->host = host_copy;
    r->dims[0] = mib16;
    r->a = calloc(1, (size_t)mib16);
    r->b = calloc(1, (size_t)mib16);
}

static fx_status pointwise(bench *b) {
    fx_spec in = FX_SPEC(FX_F32, mib16 / 4);
    add_memcpy(b);
    FX_TRY(add_device(b, "a*x + b, 16 MiB", "GB/s", 2.0 * (double)mib16, scaled, NULL, 1, &in, NULL));
    return add_device(b, "gelu, 16 MiB", "GB/s", 2.0 * (double)mib16, gelu, NULL, 1, &in, NULL);
}

static fx_status rows(bench *b) {
    static const int64_t widths[] = {192, 197, 768, 1024};
    for (int i = 0; i < 4; i++) {
        int64_t n = mib16 / 4 / widths[i];
        fx_spec in = FX_SPEC(FX_F32, n, widths[i]);
        double bytes = 4.0 * (double)(n * widths[i]);
        char name[64];
        snprintf(name, sizeof name, "softmax, rows of %lld", (long long)widths[i]);
        FX_TRY(add_device(b, name, "GB/s", 2 * bytes, softmax, NULL, 1, &in, NULL));
        snprintf(name, sizeof name, "layer norm, rows of %lld", (long long)widths[i]);
        FX_TRY(add_device(b, name, "GB/s", 2 * bytes, layer_norm, NULL, 1, &in, NULL));
    }
    fx_spec in = FX_SPEC(FX_F32, mib16 / 4 / 768, 768), flat = FX_SPEC(FX_F32, mib16 / 4);
    FX_TRY(add_device(b, "column sums, 768 columns", "GB/s", (double)mib16, columns, NULL, 1, &in, NULL));
    FX_TRY(add_device(b, "sum", "GB/s", (double)mib16, total, NULL, 1, &flat, NULL));
    return add_device(b, "a*x + b", "GB/s", 2.0 * (double)mib16, scaled, NULL, 1, &flat, NULL);
}

static fx_status copies(bench *b) {
    fx_spec square = FX_SPEC(FX_F32, 2048, 2048);
    add_memcpy(b);
    return add_device(b, "transpose 2048x2048", "GB/s", 2.0 * (double)mib16, transposed, NULL, 1, &square, NULL);
}

/* --- dispatch: host time of a replayed executable of 100 tiny kernels --- */

enum { TINY = 100 };

static void chain(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val x = in[0];
    for (int i = 0; i < TINY; i++)
        x = fx_mul(x, x); /* nothing to simplify */
    out[0] = x;
}

static int dispatch(bench *b, const tool_options *o) {
    fx_spec in = FX_SPEC(FX_F32, 16);
    fx_exec_stats_t stats;
    fx_lower_options opt = {.no_fusion = true}; /* a kernel an operation */
    double submit[MOST_SAMPLES], whole[MOST_SAMPLES], least = o->seconds;
    int n = 0;
    if (add_device(b, "100 tiny kernels", "us", 0, chain, NULL, 1, &in, &opt) != FX_OK || fx_exec_stats(b->rows[0].exec, &stats) != FX_OK)
        return tool_fail();
    for (double start = tool_now(); n < 20 || (n < MOST_SAMPLES && tool_now() - start < least); n++) {
        fx_array *out;
        double t0 = tool_now();
        if (fx_run(b->rows[0].exec, b->rows[0].in, &out) != FX_OK)
            return tool_fail();
        submit[n] = tool_now() - t0;
        if (fx_wait(b->rows[0].exec) != FX_OK)
            return tool_fail();
        whole[n] = tool_now() - t0;
        fx_array_unref(out);
    }
    qsort(submit, (size_t)n, sizeof *submit, ascending);
    qsort(whole, (size_t)n, sizeof *whole, ascending);
    double host = submit[n / 2] * 1e6 / stats.kernels, all = whole[n / 2] * 1e6 / stats.kernels;
    if (o->json)
        printf("{\"bench\": \"dispatch\", \"device\": \"%s\", \"kernels\": %d, \"host_us_per_kernel\": %.4f, \"us_per_kernel\": %.4f}\n",
               fx_device_uri(b->d), stats.kernels, host, all);
    else
        printf("dispatch on %s (%s): %d kernels replayed; host %.3f us a kernel, until done %.3f us a kernel (medians of %d)\n",
               fx_device_uri(b->d), fx_device_name(b->d), stats.kernels, host, all, n);
    return 0;
}

static int run(const tool_options *o) {
    static const char *const names[] = {"matmul", "pointwise", "row", "copy", "dispatch"};
    bench *b = calloc(1, sizeof *b);
    int which = 0, status = 0;
    fx_status st;
    while (which < 5 && (!o->action || strcmp(o->action, names[which])))
        which++;
    if (which == 5 || !b) {
        fprintf(stderr, "fornax: bench: expected matmul, pointwise, row, copy or dispatch; got \"%s\"\n", o->action ? o->action : "");
        free(b);
        return 2;
    }
    st = tool_open(o, &b->cx, &b->d);
    if (st == FX_OK && which == 4) {
        status = dispatch(b, o);
    } else if (st == FX_OK) {
        st = which == 0 ? matmul(b, o) : which == 1 ? pointwise(b) : which == 2 ? rows(b) : copies(b);
        if (st == FX_OK)
            st = measure(b, o->seconds);
        if (st == FX_OK)
            print(b, names[which], o->json);
    }
    if (st != FX_OK)
        status = tool_fail();
    finish(b);
    free(b);
    return status;
}

const tool_command tool_bench = {"bench", "measures kernels: matmul, pointwise, row, copy, dispatch",
                                 "usage: fornax bench matmul [--m M --n N --k K --batch B] [--seconds S]\n"
                                 "       fornax bench pointwise|row|copy|dispatch [--seconds S]\n\n"
                                 "S seconds a row (default 0.5). On lavapipe set LP_NATIVE_VECTOR_WIDTH=512 where the processor has AVX-512.",
                                 run};
