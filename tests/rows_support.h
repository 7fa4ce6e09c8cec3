/* rows_support.h - for tests of kernels: runs graphs as text or traced patterns on a device and on the evaluator. */
#ifndef TESTS_ROWS_SUPPORT_H
#define TESTS_ROWS_SUPPORT_H

#include <math.h>
#include <stdarg.h>

#include "core/graph/trace.h"
#include "fornax/transform.h"
#include "program_run.h"

static uint32_t rows_state = 1;
static inline uint32_t rows_random(void) {
    return (rows_state = rows_state * 1664525u + 1013904223u) >> 8;
}

static inline double rows_number(const fx_spec *s, const void *p, int64_t i) {
    switch (s->dtype) {
#define ROW(type, ctype) \
    case type:           \
        return (double)((const ctype *)p)[i];
        ROW(FX_BOOL, uint8_t)
        ROW(FX_U8, uint8_t)
        ROW(FX_S8, int8_t)
        ROW(FX_S16, int16_t)
        ROW(FX_U16, uint16_t)
        ROW(FX_S32, int32_t)
        ROW(FX_U32, uint32_t)
        ROW(FX_S64, int64_t)
        ROW(FX_U64, uint64_t)
        ROW(FX_F32, float)
        ROW(FX_F64, double)
#undef ROW
    case FX_F16:
        return (double)fx_f16_to_f32(((const uint16_t *)p)[i]);
    default:
        return (double)fx_bf16_to_f32(((const uint16_t *)p)[i]);
    }
}

/* Numbers near 1 in size, so that products of hundreds stay finite; sums of integers are exact. */
static inline void rows_fill(const fx_spec *s, void *p) {
    for (int64_t i = 0; i < fx_spec_count(s); i++) {
        double v = 1 + ((double)rows_random() / 16777216.0 - 0.5) * (rows_random() % 4 ? 0.5 : 0.01);
        if (rows_random() % 8 < 3)
            v = -v;
        int64_t n = (int64_t)(rows_random() % 2001) - 1000;
        switch (s->dtype) {
        case FX_F32:
            ((float *)p)[i] = (float)v;
            break;
        case FX_F64:
            ((double *)p)[i] = v;
            break;
        case FX_F16:
            ((uint16_t *)p)[i] = fx_f64_to_f16(v);
            break;
        case FX_BF16:
            ((uint16_t *)p)[i] = fx_f64_to_bf16(v);
            break;
        case FX_BOOL:
            ((uint8_t *)p)[i] = rows_random() & 1;
            break;
        default:
            memcpy((char *)p + (size_t)i * fx_dtype_size(s->dtype), &n, fx_dtype_size(s->dtype));
        }
    }
}

static inline bool has_types(const test_device *t, int n, const fx_spec *in) {
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= t->caps.storage16 || (in[i].dtype != FX_BF16 && in[i].dtype != FX_F16);
    return all;
}

static inline int kernels_of(const test_device *t, const fx_graph *g) {
    fx_program *p;
    int n = 0;
    OK(fx_program_create(g, &t->caps, NULL, &p));
    for (int i = 0; i < p->n_step; i++)
        n += p->steps[i].kind == FX_STEP_KERNEL;
    fx_program_destroy(p);
    return n;
}

/* Runs g on random input on both; results of floats may differ by `tolerance` of the largest magnitude (0: a default
 * for the type). in[] not NULL: these inputs. */
static inline void check_graph(test_device *t, const fx_graph *g, const void *const *given, double tolerance,
                               const char *what) {
    void *in[16], *want[16], *got[16];
    for (int i = 0; i < g->n_param; i++) {
        size_t bytes = (size_t)fx_spec_count(&g->params[i]->spec) * fx_dtype_size(g->params[i]->spec.dtype);
        in[i] = calloc(1, bytes + 8);
        if (given)
            memcpy(in[i], given[i], bytes);
        else
            rows_fill(&g->params[i]->spec, in[i]);
    }
    for (int i = 0; i < g->n_result; i++) {
        want[i] = calloc(1, (size_t)fx_spec_count(&g->results[i]->spec) * 8 + 8);
        got[i] = calloc(1, (size_t)fx_spec_count(&g->results[i]->spec) * 8 + 8);
    }
    OK(fx_graph_eval(g, (const void *const *)in, want));
    fx_status st = run_graph(t, g, NULL, (const void *const *)in, got);
    ck_assert_msg(st == FX_OK || st == FX_UNSUPPORTED, "%s\n%s", what, fx_last_error());
    for (int i = 0; i < g->n_result && st == FX_OK; i++) {
        const fx_spec *s = &g->results[i]->spec;
        double scale = 1e-3, tol = tolerance > 0                  ? tolerance
                                   : !fx_dtype_is_float(s->dtype) ? 0
                                   : s->dtype == FX_F16           ? 2e-3
                                   : s->dtype == FX_BF16          ? 1.6e-2
                                   : s->dtype == FX_F64           ? 1e-12
                                                                  : 1e-5;
        for (int64_t e = 0; e < fx_spec_count(s); e++) {
            double a = fabs(rows_number(s, want[i], e));
            scale = isfinite(a) && a > scale ? a : scale;
        }
        for (int64_t e = 0; e < fx_spec_count(s); e++) {
            double a = rows_number(s, want[i], e), b = rows_number(s, got[i], e);
            bool same = isnan(a) ? isnan(b) : a == b || fabs(a - b) <= tol * scale;
            ck_assert_msg(same, "%s\nresult %d element %lld: expected %.9g, got %.9g", what, i, (long long)e, a, b);
        }
    }
    for (int i = 0; i < g->n_param; i++)
        free(in[i]);
    for (int i = 0; i < g->n_result; i++) {
        free(want[i]);
        free(got[i]);
    }
}

static inline FX_PRINTF(3, 4) void check_rows(test_device *t, const void *const *in, const char *fmt, ...) {
    char text[1024];
    fx_graph *g;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    OK(fx_graph_parse(text, strlen(text), &g));
    check_graph(t, g, in, 0, text);
    fx_graph_unref(g);
}

/* One input, one result. */
static inline FX_PRINTF(4, 5) void run_text(test_device *t, void *out, const void *in, const char *fmt, ...) {
    char text[1024];
    fx_graph *g;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    OK(fx_graph_parse(text, strlen(text), &g));
    OK(run_graph(t, g, NULL, &in, &out));
    fx_graph_unref(g);
}

/* kernels: how many the function (or its gradient, by all inputs but the last) must become at most; 0: any number. */
static inline void check_pattern(test_device *t, fx_trace_fn fn, int n, const fx_spec *in, int kernels, bool gradient) {
    fx_func *f, *d;
    char what[96], spec[64];
    if (!has_types(t, n, in))
        return;
    OK(fx_trace_func(fn, NULL, n, in, 1, &f));
    if (gradient) {
        OK(fx_grad(f, FX_ARGS(0, 1, 2), &d));
        fx_func_unref(f);
        f = d;
    }
    snprintf(what, sizeof what, "pattern of %s", fx_spec_format(in, spec, sizeof spec));
    int have = kernels_of(t, fx_func_graph(f));
    if (kernels)
        ck_assert_msg(have <= kernels, "%s: %d kernels, at most %d wanted", what, have, kernels);
    check_graph(t, fx_func_graph(f), NULL, in[0].dtype == FX_F32 ? 2e-5 : 0, what);
    fx_func_unref(f);
}

static inline void rows_compose(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_mul(in[0], in[2]);
    out[1] = fx_add(fx_mul(in[1], in[2]), in[3]);
}

typedef struct compose_shape {
    int64_t rows, cols;
    int axis;
} compose_shape;

static inline void rows_composition(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const compose_shape *s = user;
    fx_val init[2] = {fx_full(t, FX_SPEC0(FX_F32), 1), fx_full(t, FX_SPEC0(FX_F32), 0.25)};
    fx_reduce_fn(2, in, init, 1, &s->axis, rows_compose, NULL, out);
}

/* Composes maps x -> p x + q along an axis: a region of two results that does not commute. */
static inline void compose_case(test_device *t, int64_t rows, int64_t cols, int axis) {
    compose_shape s = {rows, cols, axis};
    fx_spec in[2] = {FX_SPEC(FX_F32, rows, cols), FX_SPEC(FX_F32, rows, cols)};
    fx_func *f;
    char what[64];
    OK(fx_trace_func(rows_composition, &s, 2, in, 2, &f));
    size_t count = (size_t)(rows * cols);
    float *p = malloc(count * 4), *q = malloc(count * 4);
    for (size_t i = 0; i < count; i++) {
        p[i] = rows_random() % 2 ? 1.0f : -1.0f;
        q[i] = (float)(rows_random() % 9) - 4;
    }
    snprintf(what, sizeof what, "composition over axis %d of [%lld,%lld]", axis, (long long)rows, (long long)cols);
    check_graph(t, fx_func_graph(f), (const void *const[]){p, q}, 1e-6, what);
    free(p);
    free(q);
    fx_func_unref(f);
}

#endif
