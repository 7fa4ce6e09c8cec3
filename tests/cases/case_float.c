/* case_float.c - floating-point behaviour of compositions: saturation, softmax of masked rows, layer norm of rows far
 * from 0, sums of 16-bit values, infinities in kernels, attention whose scores overflow f16. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define F32(...) VALUES(FX_SPEC(FX_F32, CASE_COUNT(double, __VA_ARGS__)), __VA_ARGS__)

/* ---- A-001 ---- */

FN(gelus) {
    UNUSED;
    out[0] = fx_gelu_tanh(in[0]);
    out[1] = fx_gelu(in[0]);
}

void case_a001_gelu_stays_finite(const executor *e) {
    static const double x[] = {-10000, -100, -30, -13.25, -13,   -10,       -6, -5,  -0.0,
                               0,      5,    10,  13,     13.25, 21.657723, 30, 100, 10000};
    static const double by_tanh[] = {0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     0,
                                     -8.439646700762297e-11,
                                     -2.291796196629506e-07,
                                     0,
                                     0,
                                     4.999999770820381,
                                     10,
                                     13,
                                     13.25,
                                     21.65772247314453,
                                     30,
                                     100,
                                     10000};
    static const double by_erf[] = {0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    0,
                                    -5.9195258702261885e-09,
                                    -1.4332578593959695e-06,
                                    0,
                                    0,
                                    4.999998566742141,
                                    10,
                                    13,
                                    13.25,
                                    21.65772247314453,
                                    30,
                                    100,
                                    10000};
    fx_spec s = FX_SPEC(FX_F32, 18), b = FX_SPEC(FX_BF16, 16);
    case_array out[2];
    case_call(e, TRACE(gelus, 2, s), ARGS(case_values(s, x)), out);
    case_compare(e, "tanh form", &out[0], by_tanh, 1e-6, 1e-5);
    case_compare(e, "erf form", &out[1], by_erf, 1e-6, 1e-5);
    for (int i = 0; i < 9; i++)
        ck_assert(case_get(&out[0], i) <= 0 && case_get(&out[1], i) <= 0);
    case_free_all(2, out);
    double halves[16];
    for (int i = 0; i < 16; i++)
        halves[i] = 8 + 0.5 * i;
    case_call(e, TRACE(gelus, 2, b), ARGS(case_values(b, halves)), out);
    case_compare(e, "bf16 tanh form", &out[0], halves, 0, 0);
    case_compare(e, "bf16 erf form", &out[1], halves, 0, 0);
    case_free_all(2, out);
}

/* ---- A-003 ---- */

FN(saturating) {
    UNUSED;
    out[0] = fx_tanh(in[0]);
    out[1] = fx_logistic(in[0]);
    out[2] = fx_softplus(in[0]);
    out[3] = fx_log_sigmoid(in[0]);
    out[4] = fx_silu(in[0]);
}
FN(tanh_of_fourth_power) {
    UNUSED;
    out[0] = fx_tanh(fx_square(fx_square(in[0])));
}

void case_a003_unaries_saturate(const executor *e) {
    static const double x[] = {-3e38, -10000, -104, -90, -45, -0.0, 45, 89, 90, 10000, 3e38};
    static const double want[5][11] = {
        {-1, -1, -1, -1, -1, 0, 1, 1, 1, 1, 1},
        {0, 0, 0, 0, 2.8625185805493937e-20, 0.5, 1, 1, 1, 1, 1},
        {0, 0, 0, 0, 2.8625185805493937e-20, 0.6931471805599453, 45, 89, 90, 10000, 3.0000000054977558e+38},
        {-3.0000000054977558e+38, -10000, -104, -90, -45, -0.6931471805599453, -2.8625185805493937e-20, 0, 0, 0, 0},
        {0, 0, 0, 0, -1.2881333612472272e-18, 0, 45, 89, 90, 10000, 3.0000000054977558e+38}};
    static const double ends[5][2] = {{1, -1}, {1, 0}, {INFINITY, 0}, {0, -INFINITY}, {INFINITY, 0}};
    static const char *const names[] = {"tanh", "logistic", "softplus", "log_sigmoid", "silu"};
    fx_spec s = FX_SPEC(FX_F32, 11), two = FX_SPEC(FX_F32, 2);
    case_array out[5];
    case_call(e, TRACE(saturating, 5, s), ARGS(case_values(s, x)), out);
    for (int i = 0; i < 5; i++)
        case_compare(e, names[i], &out[i], want[i], 1e-6, 2e-6);
    /* what the absolute bound would hide: values of 1e-20 are not 0 */
    for (int i = 1; i < 5; i++) {
        int at = i == 3 ? 6 : 4;
        case_array small = {FX_SPEC0(FX_F32), (float *)out[i].data + at};
        case_compare(e, names[i], &small, &want[i][at], 0, 1e-5);
    }
    case_free_all(5, out);
    case_call(e, TRACE(saturating, 5, two), ARGS(F32(INFINITY, -INFINITY)), out);
    for (int i = 0; i < 4; i++) /* silu of -inf is -inf * 0 in JAX too */
        case_compare(e, names[i], &out[i], ends[i], 1e-30, 0);
    case_free_all(5, out);
    case_check_func(e, "epilogue", TRACE(tanh_of_fourth_power, 1, FX_SPEC(FX_F32, 3)), 0, ARGS(F32(7, 40, -300)),
                    WANT(1, 1, 1), 1e-6, 0);
}

/* ---- A-005 ---- */

FN(softmax_and_lse) {
    UNUSED;
    for (int i = 0; i < 3; i++) {
        out[2 * i] = fx_softmax(in[i], -1);
        out[2 * i + 1] = fx_logsumexp(in[i], -1, false);
    }
}

void case_a005_softmax_of_masked_rows(const executor *e) {
    static const int widths[] = {1, 2, 3, 31, 33, 64, 65, 257, 1023, 1025, 4097};
    for (int k = 0; k < 11; k++) {
        int w = widths[k];
        fx_spec s = FX_SPEC(FX_F32, w);
        case_array out[6], x[3] = {case_full(s, -INFINITY), case_full(s, -INFINITY), case_full(s, 2.5)};
        ((float *)x[0].data)[w - 1] = ((float *)x[1].data)[0] = 2.5f;
        case_call(e, TRACE(softmax_and_lse, 6, s, s, s), x, out);
        for (int i = 0; i < 3; i++) {
            double *want = calloc((size_t)w, sizeof *want), lse = i < 2 ? 2.5 : 2.5 + log(w);
            for (int j = 0; j < w && i == 2; j++)
                want[j] = 1.0 / w;
            if (i < 2)
                want[i ? 0 : w - 1] = 1;
            case_compare(e, "softmax", &out[2 * i], want, i < 2 ? 0 : 2e-6, i < 2 ? 0 : 2e-6);
            case_compare(e, "logsumexp", &out[2 * i + 1], &lse, 2e-6, 2e-6);
            free(want);
        }
        case_free_all(6, out);
    }
}

/* ---- A-007 ---- */

static fx_val standardised(fx_val x, int axis) {
    fx_val d = fx_sub(x, fx_reduce_mean(x, 1, &axis, true));
    return fx_mul(d, fx_rsqrt(fx_add_c(fx_reduce_var(x, 1, &axis, true), 1e-5)));
}
static void layer_norm(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    out[0] = fx_nn_layer_norm(nn, "norm", in[0], 1e-5);
    out[1] = standardised(in[0], -1);
    out[2] = standardised(fx_transpose(in[0], NULL), 0);                         /* over the batch */
    out[3] = standardised(fx_reshape(in[0], 3, (const int64_t[]){2, 2, 16}), 2); /* over groups */
}

void case_a007_layer_norm_far_from_zero(const executor *e) {
    static const double means[] = {0, 128, 1024, 2048};
    static const double row[] = {-1.6024558242705507, -1.388795047701144,  -1.1751342711317372,  -0.9614734945623304,
                                 -0.7478127179929237, -0.5341519414235169, -0.32049116485411017, -0.10683038828470338,
                                 0.10683038828470338, 0.32049116485411017, 0.5341519414235169,   0.7478127179929237,
                                 0.9614734945623304,  1.1751342711317372,  1.388795047701144,    1.6024558242705507};
    double x[64], want[64], across[64];
    for (int i = 0; i < 64; i++) {
        x[i] = means[i / 16] + i % 16 / 256.0;
        want[i] = row[i % 16];
        across[i] = row[i / 4];
    }
    fx_spec s = FX_SPEC(FX_F32, 4, 16);
    fx_model *m;
    OP_STATUS(fx_model_create(layer_norm, NULL, NULL, 1, &s, 4, &m));
    fx_func *f = fx_func_ref((fx_func *)fx_model_func(m));
    case_array out[4], args[3] = {[2] = case_values(s, x)};
    for (int i = 0; i < 2; i++) /* weight 1, bias 0 */
        args[i] = case_full(fx_model_param_spec(m, i), strstr(fx_model_param_name(m, i), "weight") != NULL);
    case_call(e, f, args, out);
    for (int i = 0; i < 4; i++)
        case_compare(e, i ? "by hand" : "layer norm", &out[i], i == 2 ? across : want, 1e-4, 0);
    case_free_all(4, out);
    fx_model_destroy(m);
}

/* ---- A-017 ---- */

FN(sum) {
    UNUSED;
    out[0] = fx_reduce_sum(in[0], -1, NULL, false);
}
FN(mean) {
    UNUSED;
    out[0] = fx_reduce_mean(in[0], -1, NULL, false);
}
FN(variance) {
    UNUSED;
    out[0] = fx_reduce_var(in[0], -1, NULL, false);
}
FN(inner) {
    UNUSED;
    out[0] = fx_matmul(in[0], in[1]);
}
FN(inner_f32) {
    UNUSED;
    const int64_t one = 1, zero = 0;
    out[0] = fx_dot_general(
        in[0], in[1], &(fx_dot_dims){.n_contract = 1, .lhs_contract = &one, .rhs_contract = &zero, .result = FX_F32});
}
FN(softmax) {
    UNUSED;
    out[0] = fx_softmax(in[0], -1);
    out[1] = fx_logsumexp(in[0], -1, false);
    out[2] = fx_log_softmax(in[0], -1);
}

static void of_ones(const executor *e, const char *what, fx_trace_fn fn, fx_dtype d, int64_t n, double want) {
    fx_spec s = FX_SPEC(d, n);
    case_check_func(e, what, TRACE(fn, 1, s), 0, ARGS(case_full(s, 1)), &want, 0, 0);
}

static void softmax_of_zeros(const executor *e, fx_dtype d) {
    enum { N = 70000 };
    fx_spec s = FX_SPEC(d, N);
    case_array out[3];
    double *p = malloc(N * sizeof *p), *q = malloc(N * sizeof *q), lse = log(N);
    for (int i = 0; i < N; i++)
        p[i] = 1.0 / N, q[i] = -lse;
    case_call(e, TRACE(softmax, 3, s), ARGS(case_full(s, 0)), out);
    case_compare(e, "softmax", &out[0], p, 0, d == FX_BF16 ? 4e-3 : 2e-3); /* as an f16, 1/70000 has 8 bits */
    case_compare(e, "logsumexp", &out[1], &lse, 0, 4e-3);
    case_compare(e, "log softmax", &out[2], q, 0, 4e-3);
    case_free_all(3, out);
    free(p);
    free(q);
}

void case_a017_sixteen_bit_sums_are_wide(const executor *e) {
    of_ones(e, "sum of 4096 f16", sum, FX_F16, 4096, 4096);
    of_ones(e, "sum of 20000 f16", sum, FX_F16, 20000, 20000);
    of_ones(e, "mean of 100000 f16", mean, FX_F16, 100000, 1);
    of_ones(e, "sum of 70000 bf16", sum, FX_BF16, 70000, 70144);
    of_ones(e, "mean of 70000 bf16", mean, FX_BF16, 70000, 1);
    double *x = malloc(4096 * sizeof *x);
    for (int i = 0; i < 4096; i++)
        x[i] = i % 2 ? -200 : 200;
    fx_spec v = FX_SPEC(FX_F16, 4096), a = FX_SPEC(FX_F16, 1, 8192), b = FX_SPEC(FX_F16, 8192, 1);
    case_check_func(e, "variance", TRACE(variance, 1, v), 0, ARGS(case_values(v, x)), WANT(40000), 0, 0);
    case_check_func(e, "dot", TRACE(inner, 1, v, v), 0, ARGS(case_full(v, 1), case_full(v, 1)), WANT(4096), 0, 0);
    case_check_func(e, "matmul", TRACE(inner_f32, 1, a, b), 0, ARGS(case_full(a, 1), case_full(b, 1)), WANT(8192), 0,
                    0);
    softmax_of_zeros(e, FX_BF16);
    softmax_of_zeros(e, FX_F16);
    free(x);
}

/* ---- A-023 ---- */

FN(special) {
    UNUSED;
    fx_val x = in[0], v = in[1];
    const fx_val y[] = {fx_is_finite(x), fx_ne(x, x),      fx_lt(x, fx_const_like(x, 1)),
                        fx_mul(x, v),    fx_mul(x, in[2]), fx_div(fx_const_like(x, 1), x),
                        fx_sub(x, x),    fx_exp(x),        fx_log(x),
                        fx_sqrt(x),      fx_rsqrt(x),      fx_eq(fx_abs(x), fx_const_like(x, INFINITY))};
    memcpy(out, y, sizeof y);
}

void case_a023_infinities_survive(const executor *e) {
    enum { N = 8, OPS = 12 };
    static const char *const names[] = {"is_finite", "x != x", "x < 1", "x * 2", "x * 0", "1 / x",
                                        "x - x",     "exp",    "log",   "sqrt",  "rsqrt", "|x| == inf"};
    static const double x[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1, 3.4028235e+38, 1.4e-45};
    static const double want[OPS][N] = {
        {0, 0, 0, 1, 1, 1, 1, 1},
        {1, 0, 0, 0, 0, 0, 0, 0},
        {0, 0, 1, 1, 1, 0, 0, 1},
        {NAN, INFINITY, -INFINITY, 0, -0.0, 2, INFINITY, 2.802596928649634e-45},
        {NAN, NAN, NAN, 0, -0.0, 0, 0, 0},
        {NAN, 0, -0.0, INFINITY, -INFINITY, 1, 2.938736e-39, INFINITY},
        {NAN, NAN, NAN, 0, 0, 0, 0, 0},
        {NAN, INFINITY, 0, 1, 1, 2.718281828459045, INFINITY, 1},
        {NAN, INFINITY, NAN, -INFINITY, -INFINITY, 0, 88.72283905206835, -103.27892990343184},
        {NAN, INFINITY, NAN, 0, -0.0, 1, 1.844674352395373e+19, 3.743392130574644e-23},
        {NAN, 0, NAN, INFINITY, -INFINITY, 1, 5.421011023986243e-20, 2.671373890628154e+22},
        {0, 1, 1, 0, 0, 0, 0, 0}};
    /* the last column where subnormal numbers count as 0 */
    static const double flushed[OPS] = {1, 0, 1, 0, 0, INFINITY, 0, 1, -INFINITY, 0, INFINITY, 0};
    fx_spec s = FX_SPEC(FX_F32, N), one = FX_SPEC0(FX_F32);
    case_array out[OPS];
    case_call(e, TRACE(special, OPS, s, one, one), ARGS(case_values(s, x), case_full(one, 2), case_full(one, 0)), out);
    for (int i = 0; i < OPS; i++)
        for (int j = 0; j < N; j++) {
            double got = case_get(&out[i], j), w = want[i][j];
            bool right = isnan(w)             ? isnan(got)
                         : isinf(w) || w == 0 ? got == w && (w != 0 || j == 7 || signbit(got) == signbit(w))
                                              : fabs(got - w) <= 4e-6 * fabs(w);
            if (j == 7)
                right = right || got == flushed[i];
            if (i == 5 && j == 6) /* a subnormal result */
                right = right || got == 0;
            if (i == 10 && j == 4) /* rsqrt(-0): either infinity */
                right = isinf(got);
            ck_assert_msg(right, "%s: %s of %g: got %g, want %g", e->name, names[i], x[j], got, w);
        }
    case_free_all(OPS, out);
}

/* ---- A-051 ---- */

typedef struct attention_setting {
    int64_t keys;
    bool causal;
} attention_setting;

static void attention(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    const attention_setting *s = user;
    fx_spec shape = FX_SPEC(FX_S32, 5, s->keys);
    fx_trace *t = fx_nn_trace(nn);
    fx_val mask = s->causal ? fx_le(fx_iota(t, shape, 1), fx_iota(t, shape, 0)) : NULL;
    out[0] = fx_nn_attention(nn, in[0], in[1], in[2], mask, 0);
}

static void attend(const executor *e, int64_t keys, bool causal, const double *want) {
    attention_setting set = {keys, causal};
    fx_spec in[] = {FX_SPEC(FX_F16, 1, 5, 1, 64), FX_SPEC(FX_F16, 1, keys, 1, 64), FX_SPEC(FX_F16, 1, keys, 1, 64)};
    fx_model_options opt = FX_MODEL_OPTIONS_INIT;
    opt.compute_dtype = FX_F16;
    fx_model *m;
    OP_STATUS(fx_model_create(attention, &set, &opt, 3, in, 1, &m));
    fx_func *f = fx_func_ref((fx_func *)fx_model_func(m));
    case_array out, v = case_full(in[2], 0);
    for (int64_t i = 0; i < keys * 64; i++)
        ((uint16_t *)v.data)[i] = fx_f64_to_f16((double)(i / 64 % 7));
    case_call(e, f, ARGS(case_full(in[0], 40), case_full(in[1], 40), v), &out);
    for (int64_t i = 0; i < 5 * 64; i++)
        ck_assert_msg(fabs(case_get(&out, i) - want[i / 64]) <= 2e-3, "%s: %lld keys%s: query %lld: got %g, want %g",
                      e->name, (long long)keys, causal ? ", causal" : "", (long long)i / 64, case_get(&out, i),
                      want[i / 64]);
    case_free(&out);
    fx_model_destroy(m);
}

void case_a051_f16_scores_are_wide(const executor *e) {
    const double many = 2.9941463414634146;
    attend(e, 7, false, WANT(3, 3, 3, 3, 3));
    attend(e, 7, true, WANT(0, 0.5, 1, 1.5, 2));
    attend(e, 1, false, WANT(0, 0, 0, 0, 0));
    attend(e, 1025, false, WANT(many, many, many, many, many));
}
