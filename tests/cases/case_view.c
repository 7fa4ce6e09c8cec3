/* case_view.c - index arithmetic: views in a chain, every length through reductions, narrow products. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define DIMS(...) ((const int64_t[]){__VA_ARGS__})
#define AXES(...) ((const int[]){__VA_ARGS__})

/* ---- A-029 ---- */

/* user: relu before step *user, or after the last one; -1: nowhere. */
FN(chain) {
    (void)t;
    int at = *(int *)user, step = 0;
    fx_val x = in[0];
#define STEP(expr) x = at == step++ ? fx_relu(x) : x, x = (expr)
    STEP(fx_transpose(x, AXES(2, 0, 3, 1)));
    STEP(fx_slice(x, DIMS(1, 0, 0, 0), DIMS(4, 2, 5, 3), DIMS(2, 1, 2, 1)));
    STEP(fx_reverse(x, 2, AXES(1, 2)));
    STEP(fx_pad(x, fx_const_like(x, -7), DIMS(0, 1, 0, -1), DIMS(1, 0, -1, 2), DIMS(1, 0, 1, 0)));
    STEP(fx_reshape(x, 2, DIMS(12, 16)));
    out[0] = x;
    STEP(fx_reshape(fx_transpose(x, NULL), 2, DIMS(12, 16)));
    out[2] = at == step ? fx_relu(x) : x;
    x = out[0];
    if (at == step - 1)
        x = fx_relu(x);
    out[1] = fx_reduce_sum(x, 1, AXES(0), false);
#undef STEP
}

void case_a029_views_in_a_chain(const executor *e) {
    static const struct {
        int row, col, value;
    } inside[] = {{1, 0, 89}, {1, 1, 109}, {1, 8, 87}, {1, 9, 107}, {2, 0, 29}, {2, 1, 49}, {2, 8, 27}, {2, 9, 47},
                  {7, 0, 99}, {7, 1, 119}, {7, 8, 97}, {7, 9, 117}, {8, 0, 39}, {8, 1, 59}, {8, 8, 37}, {8, 9, 57}};
    for (int at = -1; at <= 6; at++)
        for (int k = 0; k < 2; k++) {
            if (k != (at & 1) && at >= 0) /* both types without a relu, then by turns */
                continue;
            /* a relu before the pad leaves -7; one behind it makes it 0 in what follows */
            double z[12 * 16], w[12 * 16], sums[16] = {0};
            for (int i = 0; i < 12 * 16; i++)
                z[i] = at == 4 ? 0 : -7;
            for (int i = 0; i < 16; i++)
                z[inside[i].row * 16 + inside[i].col] = inside[i].value;
            for (int i = 0; i < 12 * 16; i++) {
                double v = z[i];
                sums[i % 16] += at == 5 && v < 0 ? 0 : v;
            }
            for (int i = 0; i < 12 * 16; i++) {
                double v = z[i % 12 * 16 + i / 12]; /* element i of the [16,12] transpose */
                w[i] = at >= 5 && v < 0 ? 0 : v;
            }
            fx_spec s = FX_SPEC(k ? FX_F32 : FX_S32, 2, 3, 4, 5);
            case_array out[3];
            case_call(e, case_trace_with(chain, &at, 1, &s, 3), ARGS(case_formula(s, 1, 120, 0)), out);
            case_compare(e, "z", &out[0], z, 0, 0);
            case_compare(e, "r", &out[1], sums, 0, 0);
            case_compare(e, "w", &out[2], w, 0, 0);
            case_free_all(3, out);
            if (at == -1)
                ck_assert(sums[0] == 200 && sums[9] == 272 && sums[15] == -84);
        }
}

/* ---- A-031 ---- */

FN(lengths) {
    UNUSED;
    fx_val counting = in[0], hops = in[1], x = fx_convert(counting, FX_F32);
    out[0] = fx_reduce_sum(counting, -1, NULL, false);
    out[1] = fx_reduce_sum(x, -1, NULL, false);
    out[2] = fx_cumulative(counting, 0, FX_CUMSUM, false);
    out[3] = fx_reduce_max(hops, -1, NULL, false);
    out[4] = fx_argmax(hops, 0, FX_S32);
    out[5] = fx_reduce_sum(
        fx_convert(fx_eq(fx_rem(fx_add_c(counting, -1), fx_const_like(counting, 3)), fx_const_like(counting, 0)),
                   FX_S32),
        -1, NULL, false);
    out[6] = fx_reduce_sum(in[2], 1, AXES(1), false);
    out[7] = fx_softmax(fx_mul_c(x, 0), -1);
}

void case_a031_every_length(const executor *e) {
    /* All lengths on the evaluator, which compiles nothing; on devices, where test_rows and test_scan try many more,
     * one within a subgroup, at its end, past it, and at the edges of a workgroup. */
    static const int edges[] = {1, 7, 32, 33, 129, 257};
    for (int i = 0; i < (e->skipped ? CASE_LENGTH(edges) : 257); i++) {
        int n = e->skipped ? edges[i] : i + 1;
        fx_spec s = FX_SPEC(FX_S32, n), f = FX_SPEC(FX_F32, n), m = FX_SPEC(FX_F32, 5, n);
        case_array out[8], rows = case_full(m, 0);
        double running[257], row_sums[5], share[257], at = 0, top = 0, all = n * (n + 1) / 2.0, thirds = (n + 2) / 3;
        for (int j = 0; j < n; j++) {
            running[j] = (j + 1) * (j + 2) / 2.0;
            share[j] = 1.0 / n;
            if (j * 37 % n > top)
                top = j * 37 % n, at = j;
        }
        for (int j = 0; j < 5 * n; j++)
            ((float *)rows.data)[j] = (float)(j / n * 1000 + j % n);
        for (int j = 0; j < 5; j++)
            row_sums[j] = j * 1000.0 * n + n * (n - 1) / 2.0;
        ck_assert(top == (n % 37 ? n - 1 : n - 37));
        const double *want[] = {&all, &all, running, &top, &at, &thirds, row_sums, share};
        char what[32];
        snprintf(what, sizeof what, "length %d", n);
        case_call(e, TRACE(lengths, 8, s, f, m),
                  ARGS(case_formula(s, 1, INT64_MAX, 1), case_formula(f, 37, n, 0), rows), out);
        for (int j = 0; j < 8; j++)
            case_compare(e, what, &out[j], want[j], 0, j == 7 ? 1e-6 : 0);
        case_free_all(8, out);
    }
}

/* ---- A-033 ---- */

FN(product) {
    UNUSED;
    out[0] = fx_matmul(in[0], in[1]);
}
FN(product_with_transposed) {
    UNUSED;
    out[0] = fx_matmul(in[0], fx_transpose(in[1], NULL));
}

/* A[m,k] = (7m + 3k) mod 11 - 5, B[k,n] = (5k + 2n) mod 13 - 6 */
static void narrow(const executor *e, int m, int k, int n, bool transposed, int first, int last, double s1, double s2) {
    fx_spec as = FX_SPEC(FX_F32, m, k), bs = transposed ? FX_SPEC(FX_F32, n, k) : FX_SPEC(FX_F32, k, n);
    case_array a = case_full(as, 0), b = case_full(bs, 0), out;
    for (int i = 0; i < m * k; i++)
        ((float *)a.data)[i] = (float)((7 * (i / k) + 3 * (i % k)) % 11 - 5);
    for (int i = 0; i < k * n; i++) {
        int row = transposed ? i % k : i / n, col = transposed ? i / k : i % n;
        ((float *)b.data)[i] = (float)((5 * row + 2 * col) % 13 - 6);
    }
    case_call(e, TRACE(transposed ? product_with_transposed : product, 1, as, bs), ARGS(a, b), &out);
    char what[48];
    snprintf(what, sizeof what, "[%d,%d] x [%d,%d]", m, k, k, n);
    ck_assert_msg(case_get(&out, 0) == first && case_get(&out, m * n - 1) == last, "%s: %s: got %g and %g", e->name,
                  what, case_get(&out, 0), case_get(&out, m * n - 1));
    case_sums(e, what, &out, s1, s2);
    case_free(&out);
}

void case_a033_narrow_products(const executor *e) {
    static const int last[] = {-49, -29, -9, 24, 44, -27, 6, 0, -71};
    static const int s1[] = {6, 21, 32, 26, 29, -63, -42, 27, 1};
    static const int s2[] = {-495, -7246, -2020, -1722, -992, 4134, -4420, -17219, -32755};
    for (int n = 1; n <= 9; n++)
        narrow(e, 64, 256, n, false, 54, last[n - 1], s1[n - 1], s2[n - 1]);
    narrow(e, 16, 1024, 150, false, 63, -45, 4, 12011);
    static const int period[] = {68, -42, 46, -31, -31, 46, -42, 68, 13, -108, 13};
    double sum = 0, weighted = 0;
    for (int i = 0; i < 64; i++) {
        sum += period[i % 11];
        weighted += (i + 1) * period[i % 11];
    }
    narrow(e, 64, 32, 1, true, 68, 13, sum, weighted);
}
