/* initializers.c - how parameters start, as in jax.nn.initializers: Glorot & Bengio 2010, LeCun et al. 1998,
 * He et al. 2015. */
#include <math.h>

#include "fornax/nn.h"

/* Fans of a weight [out, in, window...]: each times the window's size. */
static void fans(const fx_initializer *init, const fx_spec *s, double *in, double *out) {
    double window = 1;
    for (int i = 2; i < s->rank; i++)
        window *= (double)s->dims[i];
    *in = s->rank > 1 ? (double)s->dims[1] * window : s->rank ? (double)s->dims[0] : 1;
    *out = s->rank ? (double)s->dims[0] * window : 1;
    if (init->fan_in)
        *in = (double)init->fan_in;
    if (init->fan_out)
        *out = (double)init->fan_out;
}

fx_val fx_initialize(fx_val key, fx_initializer init, fx_spec spec) {
    if (!key)
        return NULL;
    double in, out, variance = 0;
    fans(&init, &spec, &in, &out);
    switch (init.kind) {
    case FX_INIT_ZEROS: return fx_full(fx_val_trace(key), spec, 0);
    case FX_INIT_ONES: return fx_full(fx_val_trace(key), spec, 1);
    case FX_INIT_CONSTANT: return fx_full(fx_val_trace(key), spec, init.scale);
    case FX_INIT_NORMAL: return fx_mul_c(fx_random_normal(key, spec), init.scale);
    case FX_INIT_TRUNCATED_NORMAL: return fx_mul_c(fx_random_truncated_normal(key, -2, 2, spec), init.scale);
    case FX_INIT_UNIFORM: return fx_random_uniform(key, spec, 0, init.scale);
    case FX_INIT_GLOROT_UNIFORM:
    case FX_INIT_GLOROT_NORMAL: variance = 2 / (in + out); break;
    case FX_INIT_LECUN_UNIFORM:
    case FX_INIT_LECUN_NORMAL: variance = 1 / in; break;
    case FX_INIT_HE_UNIFORM:
    case FX_INIT_HE_NORMAL: variance = 2 / in; break;
    default: return fx_trace_fail(fx_val_trace(key), "fx_initialize: unknown kind %d", (int)init.kind);
    }
    if (init.kind == FX_INIT_GLOROT_UNIFORM || init.kind == FX_INIT_LECUN_UNIFORM || init.kind == FX_INIT_HE_UNIFORM)
        return fx_mul_c(fx_random_uniform(key, spec, -1, 1), sqrt(3 * variance));
    /* standard deviation of a normal cut at +-2 */
    return fx_mul_c(fx_random_truncated_normal(key, -2, 2, spec), sqrt(variance) / .87962566103423978);
}
