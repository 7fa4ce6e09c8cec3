/* nn.h - models on top of the traced operations: parameters by name, layers, losses, optimizers, schedules.
 *
 * A model is a C function that asks for its parameters by name with fx_param and calls layers. The same
 * function is traced to find out which parameters there are (names, shapes, initialisers) and what it
 * computes, so both can't disagree:
 *
 *     static void mlp(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
 *         fx_val h = fx_gelu(fx_nn_linear(nn, "hidden", in[0], 64, true));
 *         out[0] = fx_nn_linear(nn, "logits", h, 10, true);
 *     }
 *     fx_model *model;
 *     FX_TRY(fx_model_create(mlp, NULL, NULL, 1, &(fx_spec){FX_F32, 2, {32, 784}}, 1, &model));
 *
 * fx_model_func is then an ordinary fx_func, (parameters..., inputs...) -> results, open to every
 * transform. Initialisers, layers and optimizers follow JAX (jax.nn.initializers, optax) and PyTorch where
 * these agree; each says where they don't. Everything here is written with the public operations only. */
#ifndef FORNAX_NN_H
#define FORNAX_NN_H

#include <fornax/device.h>
#include <fornax/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- parameters --- */

typedef enum fx_init_kind {
    FX_INIT_ZEROS,
    FX_INIT_ONES,
    FX_INIT_CONSTANT,         /* scale */
    FX_INIT_NORMAL,           /* standard deviation scale */
    FX_INIT_TRUNCATED_NORMAL, /* scale times a normal cut at +-2 (not rescaled, as jax.nn.initializers.truncated_normal) */
    FX_INIT_UNIFORM,          /* [0, scale) */
    /* variance scaling by the fans below; the normal ones are cut at +-2 and rescaled, as in JAX */
    FX_INIT_GLOROT_UNIFORM,
    FX_INIT_GLOROT_NORMAL,
    FX_INIT_LECUN_UNIFORM,
    FX_INIT_LECUN_NORMAL,
    FX_INIT_HE_UNIFORM,
    FX_INIT_HE_NORMAL
} fx_init_kind;

typedef struct fx_initializer {
    fx_init_kind kind;
    double scale;
    int64_t fan_in, fan_out; /* 0: from the shape [out, in, window...] */
} fx_initializer;

/* A sample of an initialiser. */
FX_API fx_val fx_initialize(fx_val key, fx_initializer init, fx_spec spec);

typedef struct fx_nn fx_nn;       /* a model being traced */
typedef struct fx_model fx_model; /* immutable once created */
typedef void (*fx_model_fn)(fx_nn *nn, const fx_val *in, fx_val *out, void *user);

typedef struct fx_model_options {
    size_t struct_size;
    fx_dtype param_dtype;   /* element type of parameters: default FX_F32 */
    fx_dtype compute_dtype; /* layers convert inputs and parameters to it: FX_F32, FX_BF16, FX_F16 */
    bool training;          /* dropout is active; a key is then the last input: u32[2] */
} fx_model_options;
#define FX_MODEL_OPTIONS_INIT {sizeof(fx_model_options), FX_F32, FX_F32, false}

/* Traces fn. opt NULL: defaults. */
FX_API fx_status fx_model_create(fx_model_fn fn, void *user, const fx_model_options *opt, int n_in, const fx_spec *in,
                                 int n_out, fx_model **out);
FX_API void fx_model_destroy(fx_model *m); /* NULL is fine */
FX_API int fx_model_n_param(const fx_model *m);
FX_API const char *fx_model_param_name(const fx_model *m, int i); /* "encoder.layer.0.mlp.fc1.weight"; borrowed; NULL past the end */
FX_API fx_spec fx_model_param_spec(const fx_model *m, int i);
FX_API int fx_model_find_param(const fx_model *m, const char *name); /* -1 when there is none */
FX_API bool fx_model_param_decays(const fx_model *m, int i); /* weight decay applies: matrices and kernels of layers, not
                                                                biases, norm scales, or embeddings marked so */
FX_API int64_t fx_model_param_count(const fx_model *m); /* elements in all */
/* (parameters..., inputs...[, key]) -> results. Borrowed. */
FX_API const fx_func *fx_model_func(const fx_model *m);
/* key u32[2] -> parameters...: parameter i is drawn with fold_in(key, i). Owned by the caller. */
FX_API fx_status fx_model_init_func(const fx_model *m, fx_func **out);

FX_API fx_trace *fx_nn_trace(fx_nn *nn);
FX_API bool fx_nn_training(const fx_nn *nn);
/* The parameter `name` in the current scope, in the compute type. Asking twice gives the same one (shared
 * weights); with another shape it is an error. decay: weight decay applies to it. */
FX_API fx_val fx_param(fx_nn *nn, const char *name, fx_spec spec, fx_initializer init, bool decay);
FX_API void fx_nn_push(fx_nn *nn, const char *fmt, ...) FX_PRINTF(2, 3); /* a scope: "layer.%d" */
FX_API void fx_nn_pop(fx_nn *nn);
FX_API fx_val fx_nn_key(fx_nn *nn); /* a fresh key for each call; NULL and an error unless training */
/* x in the compute type. */
FX_API fx_val fx_nn_cast(fx_nn *nn, fx_val x);

/* --- layers: x is [..., features] unless said otherwise; parameters live in the scope `name` --- */

/* y = x W^T + b; weight [out, in] (PyTorch's layout), Glorot uniform; bias [out], zeros. */
FX_API fx_val fx_nn_linear(fx_nn *nn, const char *name, fx_val x, int64_t features, bool bias);
/* x [B, H, W, C] by weight [out, kh, kw, C], padding on all sides: [B, H', W', out]. He normal; bias zeros. */
FX_API fx_val fx_nn_conv2d(fx_nn *nn, const char *name, fx_val x, int64_t features, int64_t window, int64_t stride,
                           int64_t padding, bool bias);
/* Rows of weight [count, features], normal 0.02; indices clamp. */
FX_API fx_val fx_nn_embedding(fx_nn *nn, const char *name, fx_val indices, int64_t count, int64_t features);
/* (x - mean) / sqrt(var + eps) * weight + bias over the last axis, statistics in f32. */
FX_API fx_val fx_nn_layer_norm(fx_nn *nn, const char *name, fx_val x, double eps);
/* x / sqrt(mean(x^2) + eps) * weight over the last axis, statistics in f32. */
FX_API fx_val fx_nn_rms_norm(fx_nn *nn, const char *name, fx_val x, double eps);
/* Zeroes with probability p and scales by 1/(1-p) while training; else the identity. */
FX_API fx_val fx_nn_dropout(fx_nn *nn, fx_val x, double p);
/* softmax(q k^T / sqrt(d) + mask) v on [B, L, heads, d]; scores and softmax in f32. mask: bool, true keeps,
 * broadcast to [B, heads, Lq, Lk], or NULL. */
FX_API fx_val fx_nn_attention(fx_nn *nn, fx_val q, fx_val k, fx_val v, fx_val mask, double dropout);
/* Self attention: one projection "qkv" [3 width, width], heads, projection "out". x [B, L, width]. */
FX_API fx_val fx_nn_multi_head_attention(fx_nn *nn, const char *name, fx_val x, int64_t heads, fx_val mask, double dropout);
/* fc1, GELU, fc2. */
FX_API fx_val fx_nn_mlp(fx_nn *nn, const char *name, fx_val x, int64_t hidden, double dropout);
/* Pre-norm: x + attention(norm1(x)), then x + mlp(norm2(x)); dropout on what is added and inside the MLP. */
FX_API fx_val fx_nn_transformer_block(fx_nn *nn, const char *name, fx_val x, int64_t heads, int64_t hidden, double dropout,
                                      double eps);

/* --- losses: scalars in f32; shapes must agree exactly, nothing is broadcast --- */

/* Mean of -log softmax(logits)[label] over the rows whose label is not `ignore` (pass a value no label has, such
 * as -1, for none); label smoothing mixes in the uniform distribution. logits [..., classes], labels [...] integers. All
 * rows ignored: 0. */
FX_API fx_val fx_cross_entropy_labels(fx_val logits, fx_val labels, double smoothing, int64_t ignore);
/* Mean over rows of -sum(target * log softmax(logits)). */
FX_API fx_val fx_cross_entropy(fx_val logits, fx_val target);
FX_API fx_val fx_mse(fx_val prediction, fx_val target); /* mean of squared differences */
/* Number of rows whose arg max is the label, s32. */
FX_API fx_val fx_count_correct(fx_val logits, fx_val labels);

/* --- learning-rate schedules: the rate at a step, a host function and the same as a traced one --- */

typedef enum fx_schedule_kind { FX_SCHEDULE_CONSTANT, FX_SCHEDULE_COSINE, FX_SCHEDULE_LINEAR, FX_SCHEDULE_STEP } fx_schedule_kind;
typedef struct fx_schedule {
    fx_schedule_kind kind;
    double peak;         /* rate after the warm-up */
    int64_t warmup;      /* steps from 0 (excluded) up to peak, linear: step s has peak * (s + 1) / warmup */
    int64_t total;       /* COSINE, LINEAR: steps in all, warm-up included; later steps keep `end` */
    double end;          /* COSINE, LINEAR: rate at the end */
    int64_t period;      /* STEP: multiply by factor every `period` steps after the warm-up */
    double factor;
} fx_schedule;
FX_API double fx_schedule_at(const fx_schedule *s, int64_t step); /* 0 for NULL */

/* --- optimizers --- */

typedef enum fx_optimizer_kind { FX_SGD, FX_ADAM, FX_ADAMW, FX_LION } fx_optimizer_kind;
typedef struct fx_optimizer {
    size_t struct_size;
    fx_optimizer_kind kind;
    double momentum;      /* SGD: 0 for none */
    bool nesterov;
    double beta1, beta2, eps;
    double weight_decay;  /* ADAMW, LION: decoupled, lr * decay * old weight; SGD, ADAM: added to the gradient */
    double clip_norm;     /* gradients are scaled so that their global norm is at most this; 0: no clipping */
} fx_optimizer;
/* SGD 1e-3-style defaults: momentum 0, betas 0.9 0.999 (Lion: set 0.9 0.99), eps 1e-8. */
#define FX_OPTIMIZER_INIT {sizeof(fx_optimizer), FX_SGD, 0.0, false, 0.9, 0.999, 1e-8, 0.0, 0.0}
/* State arrays per parameter: 0 (plain SGD), 1 (momentum, Lion) or 2 (Adam: first and second moment). */
FX_API int fx_optimizer_slots(const fx_optimizer *o);
FX_API const char *fx_optimizer_slot_name(const fx_optimizer *o, int slot); /* "momentum", "m", "v"; else "" */
/* One update. state: n * slots values, parameter by parameter, f32 of the parameter's shape, zeros at the start.
 * step: s32 scalar, 0 at the first update (bias correction uses step + 1). lr: f32 scalar. decays: n flags.
 * Formulas: SGD/momentum as PyTorch (v = m v + g; p -= lr v, Nesterov p -= lr (g + m v)); Adam Kingma & Ba 2015;
 * AdamW Loshchilov & Hutter 2019; Lion Chen et al. 2023. */
FX_API void fx_optimizer_update(const fx_optimizer *o, int n, const fx_val *params, const fx_val *grads, const fx_val *state,
                                const bool *decays, fx_val step, fx_val lr, fx_val *new_params, fx_val *new_state);
/* sqrt of the sum of squares of all elements, f32. */
FX_API fx_val fx_global_norm(int n, const fx_val *v);

/* The whole step as one function, from a model whose function ends in a loss (its result 0, scalar):
 * (parameters..., state..., step s32, lr f32, inputs...[, key]) ->
 * (parameters..., state..., loss and other results of the model...). Compile it with parameters and state
 * donated (fx_train_step_donate fills the list) and they are updated in place. */
FX_API fx_status fx_train_step(const fx_model *m, const fx_optimizer *o, fx_func **out);
FX_API int fx_train_step_state_count(const fx_model *m, const fx_optimizer *o);
FX_API void fx_train_step_donate(const fx_model *m, const fx_optimizer *o, int *list /* n_param + state_count */);

#ifndef FORNAX_NO_LOCATIONS
#define fx_param(...) FX_HERE((fx_param)(__VA_ARGS__))
#define fx_nn_linear(...) FX_HERE((fx_nn_linear)(__VA_ARGS__))
#define fx_nn_conv2d(...) FX_HERE((fx_nn_conv2d)(__VA_ARGS__))
#define fx_nn_embedding(...) FX_HERE((fx_nn_embedding)(__VA_ARGS__))
#define fx_nn_layer_norm(...) FX_HERE((fx_nn_layer_norm)(__VA_ARGS__))
#define fx_nn_rms_norm(...) FX_HERE((fx_nn_rms_norm)(__VA_ARGS__))
#define fx_nn_dropout(...) FX_HERE((fx_nn_dropout)(__VA_ARGS__))
#define fx_nn_attention(...) FX_HERE((fx_nn_attention)(__VA_ARGS__))
#define fx_nn_multi_head_attention(...) FX_HERE((fx_nn_multi_head_attention)(__VA_ARGS__))
#define fx_nn_mlp(...) FX_HERE((fx_nn_mlp)(__VA_ARGS__))
#define fx_nn_transformer_block(...) FX_HERE((fx_nn_transformer_block)(__VA_ARGS__))
#define fx_cross_entropy_labels(...) FX_HERE((fx_cross_entropy_labels)(__VA_ARGS__))
#define fx_cross_entropy(...) FX_HERE((fx_cross_entropy)(__VA_ARGS__))
#define fx_mse(...) FX_HERE((fx_mse)(__VA_ARGS__))
#define fx_count_correct(...) FX_HERE((fx_count_correct)(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
