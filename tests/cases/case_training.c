/* case_training.c - training: the optimizer's formula and what it decays, gradients of split batches, losses with
 * ignored targets, clipping by the global norm. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cases/case_transform.h"

#define FN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
#define UNUSED (void)t, (void)user
#define F32(...) VALUES(FX_SPEC(FX_F32, CASE_COUNT(double, __VA_ARGS__)), __VA_ARGS__)
#define SCALAR FX_SPEC0(FX_F32)

/* ---- C-003 ---- */

/* w, the gradients of each step, rate -> w after each step. user: the weight decay. */
static void adamw_steps(int steps, double decay, const fx_val *in, fx_val *out) {
    fx_trace *t = fx_val_trace(in[0]);
    fx_optimizer o = FX_OPTIMIZER_INIT;
    o.kind = FX_ADAMW;
    o.weight_decay = decay;
    const bool decays = true;
    fx_val w = in[0], state[2] = {fx_zeros_like(w), fx_zeros_like(w)}, next[2];
    for (int i = 0; i < steps; i++) {
        fx_optimizer_update(&o, 1, &w, &in[1 + i], state, &decays, fx_scalar(t, FX_S32, i), in[1 + steps], &out[i],
                            next);
        w = out[i];
        memcpy(state, next, sizeof state);
    }
}
FN(decayed) {
    UNUSED;
    adamw_steps(3, 0.1, in, out);
}
FN(undecayed) {
    UNUSED;
    adamw_steps(3, 0, in, out);
}
FN(tiny) {
    UNUSED;
    adamw_steps(2, 0, in, out);
}

static void adamw(const executor *e, const char *what, fx_trace_fn fn, int steps, const double *g, const double *want) {
    fx_spec in[5];
    case_array args[5], out[3];
    for (int i = 0; i < steps + 2; i++) {
        in[i] = SCALAR;
        args[i] = case_full(SCALAR, i == 0 ? 1 : i <= steps ? g[i - 1] : 0.1);
    }
    case_call(e, case_trace(fn, steps + 2, in, steps), args, out);
    for (int i = 0; i < steps; i++)
        case_compare(e, what, &out[i], &want[i], 2e-7, 0);
    case_free_all(steps, out);
}

void case_c003_adamw_steps(const executor *e) {
    const double *g = WANT(0.5, -0.25, 0.125);
    adamw(e, "decay 0.1", decayed, 3, g, WANT(0.890000002, 0.8544662986878462, 0.8118787219097755));
    adamw(e, "no decay", undecayed, 3, g, WANT(0.900000002, 0.8733662987078462, 0.8393233849166539));
    adamw(e, "tiny gradients", tiny, 2, WANT(1e-9, 1e-9), WANT(0.990909090909091, 0.9818181818181818));
}

/* ---- C-005 ---- */

/* The layers of a Vision Transformer, with its own class token and position table. */
static void encoder(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    fx_initializer zeros = {FX_INIT_ZEROS, 0, 0, 0};
    fx_val patches = fx_reshape(fx_nn_conv2d(nn, "patches", in[0], 4, 2, 2, 0, true), 3, (const int64_t[]){1, 4, 4});
    fx_val token = fx_param(nn, "class_token", FX_SPEC(FX_F32, 1, 1, 4), zeros, false);
    fx_val places = fx_param(nn, "positions", FX_SPEC(FX_F32, 1, 5, 4), zeros, false);
    fx_val x = fx_add(fx_concatenate(2, (const fx_val[]){token, patches}, 1), places);
    x = fx_nn_transformer_block(nn, "block", x, 2, 8, 0, 1e-6);
    x = fx_nn_layer_norm(nn, "norm", x, 1e-6);
    out[0] = fx_nn_linear(nn, "head", x, 3, true);
}

typedef struct update_all {
    const fx_model *m;
    int n;
    bool decays[64];
} update_all;

FN(update_by_zero) { /* the parameters, rate -> parameters */
    const update_all *u = user;
    fx_optimizer o = FX_OPTIMIZER_INIT;
    o.kind = FX_ADAMW;
    o.weight_decay = 0.5;
    fx_val zeros[64], state[128], next[128];
    for (int i = 0; i < u->n; i++)
        zeros[i] = state[2 * i] = state[2 * i + 1] = fx_zeros_like(in[i]);
    fx_optimizer_update(&o, u->n, in, zeros, state, u->decays, fx_scalar(t, FX_S32, 0), in[u->n], out, next);
}

void case_c005_what_decays(const executor *e) {
    fx_spec image = FX_SPEC(FX_F32, 1, 4, 4, 1), in[65];
    update_all u = {0};
    OP_STATUS(fx_model_create(encoder, NULL, NULL, 1, &image, 1, (fx_model **)&u.m));
    u.n = fx_model_n_param(u.m);
    ck_assert_int_lt(u.n, 64);
    case_array args[65], out[64];
    int matrices = 0;
    for (int i = 0; i < u.n; i++) {
        in[i] = fx_model_param_spec(u.m, i);
        u.decays[i] = fx_model_param_decays(u.m, i);
        args[i] = case_full(in[i], 2);
        matrices += u.decays[i];
    }
    in[u.n] = SCALAR;
    args[u.n] = case_full(SCALAR, 0.1);
    ck_assert_int_eq(matrices, 6); /* patches, qkv, out, fc1, fc2, head */
    ck_assert_int_eq(u.n, 6 + 6 + 2 * 3 + 2);
    case_call(e, case_trace_with(update_by_zero, &u, u.n + 1, in, u.n), args, out);
    for (int i = 0; i < u.n; i++) {
        const char *name = fx_model_param_name(u.m, i);
        bool matrix = strstr(name, "weight") && !strstr(name, "norm");
        for (int64_t j = 0; j < fx_spec_count(&in[i]); j++)
            ck_assert_msg(fabs(case_get(&out[i], j) - (matrix ? 1.9 : 2)) <= (matrix ? 1e-6 : 0),
                          "%s: %s: got %g, want %g", e->name, name, case_get(&out[i], j), matrix ? 1.9 : 2);
    }
    case_free_all(u.n, out);
    fx_model_destroy((fx_model *)u.m);
}

/* ---- C-007 ---- */

/* Summed, not averaged: what a micro-batch contributes. */
FN(summed_loss) {
    UNUSED;
    out[0] = fx_reduce_sum(fx_square(fx_sub(fx_mul(in[0], in[1]), in[2])), -1, NULL, false);
}

/* w, then x and y of each part -> gradient of the mean over all samples, and of two-sample windows' means. */
typedef struct split {
    int n, size[4];
} split;

FN(accumulate) {
    const split *s = user;
    int64_t count = 0;
    fx_val sum = NULL;
    for (int i = 0; i < s->n; i++) {
        fx_spec specs[] = {SCALAR, FX_SPEC(FX_F32, s->size[i]), FX_SPEC(FX_F32, s->size[i])};
        fx_func *f = case_trace(summed_loss, 3, specs, 1), *g = NULL;
        g = case_take(fx_grad(f, FX_ARGS(0), &g), f, &g);
        fx_val d;
        fx_call(t, g, (const fx_val[]){in[0], in[1 + 2 * i], in[2 + 2 * i]}, &d);
        fx_func_unref(g);
        sum = sum ? fx_add(sum, d) : d;
        count += s->size[i];
    }
    out[0] = fx_mul_c(sum, 1.0 / (double)count);
}

/* Mean cross-entropy over the tokens that count, in two parts with 3 and 1 of them; whole, and as sums divided once. */
FN(token_losses) {
    UNUSED;
    fx_val whole = fx_cross_entropy_labels(in[0], in[1], 0, -100);
    fx_val a = fx_cross_entropy_labels(fx_slice_axis(in[0], 0, 0, 4), fx_slice_axis(in[1], 0, 0, 4), 0, -100);
    fx_val b = fx_cross_entropy_labels(fx_slice_axis(in[0], 0, 4, 8), fx_slice_axis(in[1], 0, 4, 8), 0, -100);
    out[0] = fx_sub(whole, fx_mul_c(fx_add(fx_mul_c(a, 3), b), 0.25));
}

void case_c007_accumulated_gradients(const executor *e) {
    static const split splits[] = {{2, {1, 3}}, {2, {2, 2}}, {1, {4}}, {4, {1, 1, 1, 1}}, {2, {3, 1}}};
    static const double x[] = {1, 2, 3, 4}, y[] = {0, 0, 0, 8};
    for (int k = 0; k < CASE_LENGTH(splits); k++) {
        split s = splits[k];
        fx_spec in[9] = {SCALAR};
        case_array args[9] = {case_full(SCALAR, 1)};
        for (int i = 0, at = 0; i < s.n; at += s.size[i++]) {
            in[1 + 2 * i] = in[2 + 2 * i] = FX_SPEC(FX_F32, s.size[i]);
            args[1 + 2 * i] = case_values(in[1 + 2 * i], x + at);
            args[2 + 2 * i] = case_values(in[2 + 2 * i], y + at);
        }
        case_check_func(e, "split", case_trace_with(accumulate, &s, 1 + 2 * s.n, in, 1), 0, args, WANT(-1), 0, 1e-6);
    }
    fx_spec logits = FX_SPEC(FX_F32, 8, 3), labels = FX_SPEC(FX_S32, 8);
    fx_func *f = TRACE(token_losses, 1, logits, labels);
    case_check_func(e, "tokens", f, 0,
                    ARGS(case_formula(logits, 5, 7, -3), VALUES(labels, 0, 2, -100, 1, -100, -100, 2, -100)), WANT(0),
                    1e-6, 0);
}

/* ---- C-009 ---- */

FN(plain_loss) {
    UNUSED;
    out[0] = fx_cross_entropy_labels(in[0], in[1], 0, -100);
}
FN(smooth_loss) {
    UNUSED;
    out[0] = fx_cross_entropy_labels(in[0], in[1], 0.1, -100);
}

static void loss(const executor *e, const char *what, fx_trace_fn fn, const double *labels, double want,
                 const double *grad) {
    fx_spec s = FX_SPEC(FX_F32, 4, 3), l = FX_SPEC(FX_S32, 4);
    case_array out[2];
    fx_func *f = TRACE(fn, 1, s, l), *g = NULL;
    g = case_take(fx_value_and_grad(f, FX_ARGS(0), &g), f, &g);
    case_call(e, g, ARGS(VALUES(s, 2, 1, 0, 0, 3, 0, 1, 1, 1, 0, 0, 4), case_values(l, labels)), out);
    case_compare(e, what, &out[0], &want, 1e-6, 0);
    if (grad)
        case_compare(e, what, &out[1], grad, 1e-6, 0);
    case_free_all(2, out);
}

void case_c009_ignored_targets_and_smoothing(const executor *e) {
    static const double grad[] = {-0.08936412585283715,
                                  0.07046504590715477,
                                  0.018899079945682375,
                                  0.003981722470098577,
                                  -0.007963444940197155,
                                  0.003981722470098577,
                                  0,
                                  0,
                                  0,
                                  -0.3052216371064284,
                                  -0.005221637106428428,
                                  0.31044327421285683};
    static const double zeros[12] = {0};
    loss(e, "ignored", plain_loss, WANT(0, 1, -100, 0), 1.5128350735378449, NULL);
    loss(e, "smoothed", smooth_loss, WANT(0, 1, -100, 0), 1.5683906290934004, grad);
    loss(e, "all ignored", smooth_loss, WANT(-100, -100, -100, -100), 0, zeros);
    loss(e, "label past the classes", smooth_loss, WANT(0, 1, 3, 0), NAN, NULL);
    loss(e, "label below them", plain_loss, WANT(0, 1, -1, 0), NAN, NULL);
}

/* ---- C-013 ---- */

/* a, b, their gradients, the factor that these carry -> a, b after a step of plain SGD at rate 1; the norm before. */
static void clip_to(double most, const fx_val *in, fx_val *out) {
    fx_trace *t = fx_val_trace(in[0]);
    fx_optimizer o = FX_OPTIMIZER_INIT;
    o.clip_norm = most;
    fx_val grads[] = {fx_mul(fx_convert(in[2], FX_F32), in[4]), fx_mul(fx_convert(in[3], FX_F32), in[4])};
    fx_optimizer_update(&o, 2, in, grads, NULL, NULL, fx_scalar(t, FX_S32, 0), fx_scalar(t, FX_F32, 1), out, NULL);
    out[2] = fx_global_norm(2, grads);
}
FN(clip_to_one) {
    UNUSED;
    clip_to(1, in, out);
}
FN(clip_to_fifty) {
    UNUSED;
    clip_to(50, in, out);
}
FN(two_halves) { /* the sum is clipped, not each half */
    fx_val sums[] = {in[0], in[1], fx_add(in[2], in[2]), fx_add(in[3], in[3]), in[4]};
    UNUSED;
    clip_to(1, sums, out);
}
FN(norm_of_f16) {
    UNUSED;
    out[0] = fx_global_norm(1, in);
}

static void clip(const executor *e, const char *what, fx_trace_fn fn, const double *a, double b, double factor,
                 const double *want, double norm) {
    fx_spec as = FX_SPEC(FX_F32, 2), bs = FX_SPEC(FX_F32, 1, 1);
    case_array out[3];
    case_call(e, TRACE(fn, 3, as, bs, as, bs, SCALAR),
              ARGS(case_full(as, 0), case_full(bs, 0), case_values(as, a), case_full(bs, b), case_full(SCALAR, factor)),
              out);
    const double got[] = {-case_get(&out[0], 0), -case_get(&out[0], 1), -case_get(&out[1], 0)};
    for (int i = 0; i < 3; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-5 * fabs(want[i]), "%s: %s: element %d: got %.9g, want %.9g",
                      e->name, what, i, got[i], want[i]);
    case_compare(e, what, &out[2], &norm, 0, 1e-5);
    case_free_all(3, out);
}

void case_c013_one_global_norm(const executor *e) {
    const double *clipped = WANT(0.23076923076923078, 0.3076923076923077, 0.9230769230769231), *zeros = WANT(0, 0, 0);
    clip(e, "plain", clip_to_one, WANT(3, 4), 12, 1, clipped, 13);
    clip(e, "scaled", clip_to_one, WANT(3072, 4096), 12288, 1.0 / 1024, clipped, 13);
    clip(e, "two halves", two_halves, WANT(1.5, 2), 6, 1, clipped, 13);
    clip(e, "zero", clip_to_one, WANT(0, 0), 0, 1, zeros, 0);
    clip(e, "infinite", clip_to_one, WANT(3, INFINITY), 12, 1, zeros, INFINITY); /* the step changes nothing */
    clip(e, "NaN", clip_to_one, WANT(3, NAN), 12, 1, zeros, NAN);
    clip(e, "below", clip_to_fifty, WANT(3, 4), 12, 1, WANT(3, 4, 12), 13);
    fx_spec many = FX_SPEC(FX_F16, 10000);
    case_check_func(e, "f16", TRACE(norm_of_f16, 1, many), 0, ARGS(case_full(many, 300)), WANT(30000), 0, 1e-5);
}
