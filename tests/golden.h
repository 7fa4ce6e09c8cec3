/* golden.h - for the tests against golden files: reads them, makes the same noise as golden/make_golden.py, walks over
 * devices and compares tensors. */
#ifndef FX_TESTS_GOLDEN_H
#define FX_TESTS_GOLDEN_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fornax/fornax.h"

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

static fx_context *cx;

static inline void golden_setup(void) {
    OK(fx_init(NULL, &cx));
}

static inline void golden_teardown(void) {
    fx_shutdown(cx);
    cx = NULL;
}

#define FOR_EACH_DEVICE(d)                           \
    for (int i_ = 0; i_ < fx_device_count(cx); i_++) \
        for (fx_device *d = fx_device_at(cx, i_); d; d = NULL)

static inline fx_safetensors *golden_open(const char *name) {
    char path[512];
    fx_safetensors *f;
    snprintf(path, sizeof path, "%s/golden/%s.safetensors", FX_TESTS_DIR, name);
    OK(fx_safetensors_open(path, &f));
    return f;
}

/* Multiples of 2^-23 in [-1, 1). */
static inline void golden_noise(uint32_t seed, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = (uint32_t)i * 0x9E3779B1u + seed * 0x85EBCA77u;
        x = (x ^ x >> 16) * 0x7FEB352Du;
        x = (x ^ x >> 15) * 0x846CA68Bu;
        x ^= x >> 16;
        out[i] = (float)(x >> 8) * 0x1p-23f - 1;
    }
}

static inline double norm_of(const float *x, int64_t n) {
    double s = 0;
    for (int64_t i = 0; i < n; i++)
        s += (double)x[i] * (double)x[i];
    return sqrt(s);
}

/* got agrees with want: their distance is at most `relative` times want's norm, and no element is further off than
 * `relative` times itself plus `floor` times want's largest. */
static inline void ck_close(const char *what, const float *got, const float *want, int64_t n, double relative,
                            double floor) {
    double distance = 0, largest = 0, norm = norm_of(want, n);
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)want[i]));
    for (int64_t i = 0; i < n; i++) {
        double off = fabs((double)got[i] - (double)want[i]);
        ck_assert_msg(off <= relative * fabs((double)want[i]) + floor * largest,
                      "%s: element %lld: got %.9g, want %.9g (largest %.3g)", what, (long long)i, (double)got[i],
                      (double)want[i], largest);
        distance += off * off;
    }
    ck_assert_msg(sqrt(distance) <= relative * norm, "%s: off by %.3g of its norm", what, sqrt(distance) / norm);
}

static inline int golden_run(Suite *s) {
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK); /* devices do not survive fork */
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
