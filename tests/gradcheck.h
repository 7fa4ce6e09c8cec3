/* gradcheck.h - derivatives against central differences in f64 on the evaluator, forward and reverse against each
 * other, and the same for the derivatives themselves. */
#ifndef TESTS_GRADCHECK_H
#define TESTS_GRADCHECK_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "core/graph/trace.h"
#include "fornax/transform.h"

#define OK(e)                                                                                      \
    do {                                                                                           \
        fx_status ok_status_ = (e);                                                                \
        ck_assert_msg(ok_status_ == FX_OK, "%s: %s", fx_status_name(ok_status_), fx_last_error()); \
    } while (0)

/* Values of a function's inputs or results, f64 where they are floats. */
typedef struct values {
    int n;
    fx_spec *spec;
    void **data;
} values;

static inline size_t bytes_of(const fx_spec *s) {
    return (size_t)fx_spec_count(s) * fx_dtype_size(s->dtype);
}

static inline values values_new(int n) {
    values v = {n, calloc((size_t)n + 1, sizeof(fx_spec)), calloc((size_t)n + 1, sizeof(void *))};
    return v;
}

static inline void values_set(values *v, int i, fx_spec s) {
    v->spec[i] = s;
    v->data[i] = calloc(bytes_of(&s) + 1, 1);
}

static inline void values_free(values v) {
    for (int i = 0; i < v.n; i++)
        free(v.data[i]);
    free(v.spec);
    free(v.data);
}

static inline double value_at(const values *v, int i, int64_t k) {
    return fx_element_load(v->spec[i].dtype, (char *)v->data[i] + (size_t)k * fx_dtype_size(v->spec[i].dtype));
}

static inline void value_put(values *v, int i, int64_t k, double x) {
    fx_element_store(v->spec[i].dtype, (char *)v->data[i] + (size_t)k * fx_dtype_size(v->spec[i].dtype), x);
}

static uint64_t random_state = 1;
static inline double random_real(double lo, double hi) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * ((double)(random_state >> 11) / 9007199254740992.0);
}

/* Floats in lo..hi, integers in 0..3, bools either. */
static inline values random_inputs(const fx_func *f, double lo, double hi) {
    values v = values_new(fx_func_n_in(f));
    for (int i = 0; i < v.n; i++) {
        values_set(&v, i, fx_func_in_spec(f, i));
        for (int64_t k = 0; k < fx_spec_count(&v.spec[i]); k++) {
            fx_dtype d = v.spec[i].dtype;
            value_put(&v, i, k,
                      fx_dtype_is_float(d) ? random_real(lo, hi) : floor(random_real(0, d == FX_BOOL ? 2 : 4)));
        }
    }
    return v;
}

static inline values run(const fx_func *f, const values *in) {
    values out = values_new(fx_func_n_out(f));
    for (int i = 0; i < out.n; i++)
        values_set(&out, i, fx_func_out_spec(f, i));
    ck_assert_int_eq(in->n, fx_func_n_in(f));
    OK(fx_graph_eval(fx_func_graph(f), (const void *const *)in->data, out.data));
    return out;
}

/* a's values followed by those of b that are chosen. Copies. */
static inline values join(const values *a, const values *b) {
    values v = values_new(a->n + b->n);
    for (int i = 0; i < v.n; i++) {
        const values *from = i < a->n ? a : b;
        int k = i < a->n ? i : i - a->n;
        values_set(&v, i, from->spec[k]);
        memcpy(v.data[i], from->data[k], bytes_of(&v.spec[i]));
    }
    return v;
}

static inline values random_like(int n, const fx_spec *specs) {
    values v = values_new(n);
    for (int i = 0; i < n; i++) {
        values_set(&v, i, specs[i]);
        for (int64_t k = 0; k < fx_spec_count(&specs[i]); k++)
            value_put(&v, i, k, random_real(-1, 1));
    }
    return v;
}

static inline int floats(int n, const values *v, int *index, fx_spec *specs) {
    int k = 0;
    for (int i = 0; i < n; i++)
        if (fx_dtype_is_float(v->spec[i].dtype)) {
            index[k] = i;
            specs[k++] = v->spec[i];
        }
    return k;
}

#define GRADCHECK_MAX 64

/* FORWARD_ONLY: while; REVERSE_ONLY: custom_vjp. */
typedef enum modes { BOTH_MODES, FORWARD_ONLY, REVERSE_ONLY } modes;

/* Checks first derivatives at `in`; then those of the derivatives, `depth` times. */
static inline void gradcheck_modes(const char *name, const fx_func *f, const values *in, int depth, modes how) {
    int wrt[GRADCHECK_MAX], outs[GRADCHECK_MAX];
    fx_spec in_specs[GRADCHECK_MAX], out_specs[GRADCHECK_MAX];
    values y = run(f, in);
    int n = floats(in->n, in, wrt, in_specs), m = floats(y.n, &y, outs, out_specs);
    ck_assert_int_le(in->n, GRADCHECK_MAX);
    ck_assert_int_le(y.n, GRADCHECK_MAX);
    if (!n || !m) {
        values_free(y);
        return;
    }
    fx_func *jvp = NULL, *vjp = NULL;
    fx_status st = how == REVERSE_ONLY ? FX_OK : fx_jvp(f, (fx_args){n, wrt}, &jvp);
    ck_assert_msg(st == FX_OK, "%s: %s", name, fx_last_error());
    st = how == FORWARD_ONLY ? FX_OK : fx_vjp(f, (fx_args){n, wrt}, &vjp);
    ck_assert_msg(st == FX_OK, "%s: %s", name, fx_last_error());
    values v = random_like(n, in_specs), ct = random_like(m, out_specs);
    values jvp_in = join(in, &v), vjp_in = join(in, &ct);
    values jy = jvp ? run(jvp, &jvp_in) : values_new(0), vy = vjp ? run(vjp, &vjp_in) : values_new(0);
    /* central differences along v */
    const double h = 1e-5;
    values lo = join(in, &(values){0, NULL, NULL}), hi = join(in, &(values){0, NULL, NULL});
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < fx_spec_count(&v.spec[i]); k++) {
            value_put(&lo, wrt[i], k, value_at(in, wrt[i], k) - h * value_at(&v, i, k));
            value_put(&hi, wrt[i], k, value_at(in, wrt[i], k) + h * value_at(&v, i, k));
        }
    values ylo = run(f, &lo), yhi = run(f, &hi);
    double forward = 0, backward = 0, size = 1;
    ck_assert_int_eq(jy.n, jvp ? y.n + m : 0);
    ck_assert_int_eq(vy.n, vjp ? y.n + n : 0);
    for (int i = 0; i < y.n; i++)
        ck_assert_msg((!jvp || !memcmp(y.data[i], jy.data[i], bytes_of(&y.spec[i]))) &&
                          (!vjp || !memcmp(y.data[i], vy.data[i], bytes_of(&y.spec[i]))),
                      "%s: result %d changed under differentiation", name, i);
    for (int i = 0; i < m; i++)
        for (int64_t k = 0; k < fx_spec_count(&out_specs[i]); k++) {
            double want = (value_at(&yhi, outs[i], k) - value_at(&ylo, outs[i], k)) / (2 * h);
            double got = jvp ? value_at(&jy, y.n + i, k) : want;
            ck_assert_msg(fabs(got - want) <= 1e-6 * (1 + fabs(want) + fabs(value_at(&y, outs[i], k))),
                          "%s: tangent of result %d[%lld]: got %.10g, differences give %.10g", name, outs[i],
                          (long long)k, got, want);
            forward += got * value_at(&ct, i, k);
            size += fabs(got * value_at(&ct, i, k));
        }
    for (int i = 0; vjp && i < n; i++) {
        ck_assert(fx_spec_equal(&vy.spec[y.n + i], &in_specs[i]));
        for (int64_t k = 0; k < fx_spec_count(&in_specs[i]); k++)
            backward += value_at(&vy, y.n + i, k) * value_at(&v, i, k);
    }
    ck_assert_msg(!vjp || fabs(forward - backward) <= (jvp ? 1e-10 : 1e-6) * size,
                  "%s: forward gives %.12g, reverse %.12g", name, forward, backward);
    if (depth > 0) {
        char text[256];
        snprintf(text, sizeof text, "%s, vjp", name);
        if (vjp)
            gradcheck_modes(text, vjp, &vjp_in, depth - 1, BOTH_MODES);
        snprintf(text, sizeof text, "%s, jvp", name);
        if (jvp)
            gradcheck_modes(text, jvp, &jvp_in, depth - 1, how);
    }
    values_free(y), values_free(v), values_free(ct), values_free(jvp_in), values_free(vjp_in), values_free(jy),
        values_free(vy);
    values_free(lo), values_free(hi), values_free(ylo), values_free(yhi);
    fx_func_unref(jvp);
    fx_func_unref(vjp);
}

static inline void gradcheck(const char *name, const fx_func *f, const values *in, int depth) {
    gradcheck_modes(name, f, in, depth, BOTH_MODES);
}

/* Text of a graph with every float type made f64. */
static inline fx_func *parse_f64(const char *text) {
    char *s = calloc(strlen(text) * 2 + 1, 1), *q = s;
    for (const char *p = text; *p;) {
        size_t skip = !strncmp(p, "bf16", 4) ? 4 : !strncmp(p, "f32", 3) || !strncmp(p, "f16", 3) ? 3 : 0;
        if (skip) {
            memcpy(q, "f64", 3);
            q += 3;
            p += skip;
        } else
            *q++ = *p++;
    }
    fx_graph *g;
    fx_status st = fx_graph_parse(s, strlen(s), &g);
    ck_assert_msg(st == FX_OK, "%s\n%s", fx_last_error(), s);
    free(s);
    return fx_graph_func(g);
}

#endif
