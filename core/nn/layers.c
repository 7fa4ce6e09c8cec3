/* layers.c - linear, convolution, embedding, norms, dropout, MLP. */
#include <string.h>

#include "core/nn/nn.h"

static int64_t last(fx_val x) {
    fx_spec s = fx_spec_of(x);
    return s.rank > 0 ? s.dims[s.rank - 1] : 0;
}

fx_val fx_nn_linear(fx_nn *nn, const char *name, fx_val x, int64_t features, bool bias) {
    if (!nn || !x)
        return NULL;
    if (fx_spec_of(x).rank < 1)
        return fx_trace_fail(nn->t, "fx_nn_linear \"%s\": expected [..., features]; got a scalar", name);
    if (!fx_nn_enter(nn, "fx_nn_linear", name))
        return NULL;
    fx_val w = fx_param(nn, "weight", FX_SPEC(FX_F32, features, last(x)), (fx_initializer){FX_INIT_GLOROT_UNIFORM, 1, 0, 0}, true);
    int64_t lc = fx_spec_of(x).rank - 1, rc = 1;
    fx_dot_dims d = {.n_contract = 1, .lhs_contract = &lc, .rhs_contract = &rc, .result = FX_TUPLE};
    fx_val y = fx_dot_general(fx_nn_cast(nn, x), w, &d);
    if (bias)
        y = fx_add(y, fx_param(nn, "bias", FX_SPEC(FX_F32, features), (fx_initializer){FX_INIT_ZEROS, 0, 0, 0}, false));
    fx_nn_pop(nn);
    return y;
}

fx_val fx_nn_conv2d(fx_nn *nn, const char *name, fx_val x, int64_t features, int64_t window, int64_t stride, int64_t padding,
                    bool bias) {
    if (!nn || !x)
        return NULL;
    if (fx_spec_of(x).rank != 4)
        return fx_trace_fail(nn->t, "fx_nn_conv2d \"%s\": expected [batch, height, width, channels]; got rank %d", name,
                             fx_spec_of(x).rank);
    int64_t c = last(x), area, fan_in, fan_out, strides[] = {stride, stride}, pad[] = {padding, padding};
    if (window < 1 || features < 1 || __builtin_mul_overflow(window, window, &area) || __builtin_mul_overflow(area, c, &fan_in) ||
        __builtin_mul_overflow(area, features, &fan_out))
        return fx_trace_fail(nn->t, "fx_nn_conv2d \"%s\": expected a window and features of 1 or more that fit 64 bits; got %lld and %lld", name,
                             (long long)window, (long long)features);
    static const int64_t image[] = {0, 3, 1, 2};
    if (!fx_nn_enter(nn, "fx_nn_conv2d", name))
        return NULL;
    fx_val w = fx_param(nn, "weight", FX_SPEC(FX_F32, features, window, window, c),
                        (fx_initializer){FX_INIT_HE_NORMAL, 1, fan_in, fan_out}, true);
    fx_conv_dims d = {.strides = strides, .low = pad, .high = pad, .lhs_spec = image, .rhs_spec = image, .out_spec = image};
    fx_val y = fx_convolution(fx_nn_cast(nn, x), w, &d);
    if (bias)
        y = fx_add(y, fx_param(nn, "bias", FX_SPEC(FX_F32, features), (fx_initializer){FX_INIT_ZEROS, 0, 0, 0}, false));
    fx_nn_pop(nn);
    return y;
}

fx_val fx_nn_embedding(fx_nn *nn, const char *name, fx_val indices, int64_t count, int64_t features) {
    if (!fx_nn_enter(nn, "fx_nn_embedding", name))
        return NULL;
    fx_val w = fx_param(nn, "weight", FX_SPEC(FX_F32, count, features), (fx_initializer){FX_INIT_NORMAL, 0.02, 0, 0}, false);
    fx_val y = fx_take(w, indices, 0);
    fx_nn_pop(nn);
    return y;
}

/* A parameter over the last axis of x, in f32. */
static fx_val vector(fx_nn *nn, const char *name, fx_val x, fx_init_kind kind) {
    fx_val p = fx_param(nn, name, FX_SPEC(FX_F32, last(x)), (fx_initializer){kind, 0, 0, 0}, false);
    return p ? fx_convert(p, FX_F32) : NULL;
}

fx_val fx_nn_layer_norm(fx_nn *nn, const char *name, fx_val x, double eps) {
    if (!nn || !x)
        return NULL;
    int axis = -1;
    fx_dtype type = fx_spec_of(x).dtype;
    if (!fx_nn_enter(nn, "fx_nn_layer_norm", name))
        return NULL;
    x = fx_convert(x, FX_F32);
    fx_val d = fx_sub(x, fx_reduce_mean(x, 1, &axis, true));
    fx_val inv = fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(d), 1, &axis, true), eps));
    fx_val weight = vector(nn, "weight", x, FX_INIT_ONES), bias = vector(nn, "bias", x, FX_INIT_ZEROS);
    fx_val y = fx_add(fx_mul(fx_mul(d, inv), weight), bias);
    fx_nn_pop(nn);
    return fx_convert(y, type);
}

fx_val fx_nn_rms_norm(fx_nn *nn, const char *name, fx_val x, double eps) {
    if (!nn || !x)
        return NULL;
    int axis = -1;
    fx_dtype type = fx_spec_of(x).dtype;
    if (!fx_nn_enter(nn, "fx_nn_rms_norm", name))
        return NULL;
    x = fx_convert(x, FX_F32);
    fx_val inv = fx_rsqrt(fx_add_c(fx_reduce_mean(fx_square(x), 1, &axis, true), eps));
    fx_val y = fx_mul(fx_mul(x, inv), vector(nn, "weight", x, FX_INIT_ONES));
    fx_nn_pop(nn);
    return fx_convert(y, type);
}

fx_val fx_nn_dropout(fx_nn *nn, fx_val x, double p) {
    if (!nn || !x)
        return NULL;
    if (!nn->m->opt.training || p == 0)
        return x;
    if (!(p > 0 && p < 1))
        return fx_trace_fail(nn->t, "fx_nn_dropout: probability; expected 0 or more and less than 1; got %g", p);
    fx_spec s = fx_spec_of(x);
    fx_val keep = fx_random_bernoulli(fx_nn_key(nn), 1 - p, s.rank, s.dims);
    return fx_select(keep, fx_mul_c(x, 1 / (1 - p)), fx_const_like(x, 0));
}

fx_val fx_nn_mlp(fx_nn *nn, const char *name, fx_val x, int64_t hidden, double dropout) {
    if (!nn || !x)
        return NULL;
    if (!fx_nn_enter(nn, "fx_nn_mlp", name))
        return NULL;
    fx_val h = fx_nn_dropout(nn, fx_gelu(fx_nn_linear(nn, "fc1", x, hidden, true)), dropout);
    fx_val y = fx_nn_dropout(nn, fx_nn_linear(nn, "fc2", h, last(x), true), dropout);
    fx_nn_pop(nn);
    return y;
}
