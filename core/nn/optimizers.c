/* optimizers.c - SGD, Adam, AdamW, Lion as one traced update of all parameters, and learning-rate schedules. */
#include <math.h>

#include "fornax/nn.h"

int fx_optimizer_slots(const fx_optimizer *o) {
    if (!o)
        return 0;
    switch (o->kind) {
    case FX_SGD: return o->momentum != 0;
    case FX_LION: return 1;
    default: return 2;
    }
}

const char *fx_optimizer_slot_name(const fx_optimizer *o, int slot) {
    if (!o || slot < 0 || slot >= fx_optimizer_slots(o))
        return "";
    if (o->kind == FX_SGD)
        return "momentum";
    return slot ? "v" : "m";
}

fx_val fx_global_norm(int n, const fx_val *v) {
    fx_val total = NULL;
    for (int i = 0; i < n && v; i++) {
        if (!v[i])
            return NULL;
        fx_val s = fx_reduce_sum(fx_square(fx_convert(v[i], FX_F32)), -1, NULL, false);
        total = total ? fx_add(total, s) : s;
    }
    return total ? fx_sqrt(total) : NULL;
}

/* a*x + b*y with constants */
static fx_val blend(double a, fx_val x, double b, fx_val y) { return fx_add(fx_mul_c(x, a), fx_mul_c(y, b)); }

/* 1 - beta^t without cancellation: -expm1(t log beta). */
static fx_val bias_correction(double beta, fx_val t) { return fx_neg(fx_expm1(fx_mul_c(t, log(beta)))); }

void fx_optimizer_update(const fx_optimizer *o, int n, const fx_val *params, const fx_val *grads, const fx_val *state,
                         const bool *decays, fx_val step, fx_val lr, fx_val *new_params, fx_val *new_state) {
    int slots = fx_optimizer_slots(o);
    fx_trace *t0 = fx_val_trace(step ? step : lr);
    bool bad = !o || o->struct_size != sizeof *o || (unsigned)o->kind > FX_LION;
    if (bad || n < 1 || !params || !grads || (slots && (!state || !new_state)) || !new_params || !step || !lr) {
        fx_trace_fail(t0, "fx_optimizer_update; expected %s; got %s",
                      bad ? "options from FX_OPTIMIZER_INIT with one of its kinds" : "1 or more parameters, and every list and value", bad ? "others" : "NULL");
        return;
    }
    fx_val scale = NULL, ok = NULL;
    if (o->clip_norm > 0) {
        fx_val norm = fx_global_norm(n, grads);
        if (!norm)
            return;
        ok = fx_is_finite(norm); /* an overflowed step changes nothing */
        scale = fx_select(fx_gt(norm, fx_const_like(norm, o->clip_norm)), fx_div(fx_const_like(norm, o->clip_norm), norm),
                          fx_const_like(norm, 1));
    }
    fx_val t = fx_convert(fx_add_c(step, 1), FX_F32), c1 = NULL, c2 = NULL;
    if (o->kind == FX_ADAM || o->kind == FX_ADAMW) {
        c1 = bias_correction(o->beta1, t);
        c2 = bias_correction(o->beta2, t);
    }
    for (int i = 0; i < n; i++) {
        fx_val p = fx_convert(params[i], FX_F32), g = fx_convert(grads[i], FX_F32), d = NULL;
        double decay = decays && decays[i] ? o->weight_decay : 0;
        const fx_val *s = state + i * slots;
        fx_val *ns = new_state + i * slots;
        if (!p || !g)
            return;
        if (scale)
            g = fx_mul(g, scale);
        if (decay != 0 && (o->kind == FX_SGD || o->kind == FX_ADAM))
            g = fx_add(g, fx_mul_c(p, decay));
        switch (o->kind) {
        case FX_SGD:
            d = g;
            if (slots) {
                ns[0] = fx_add(fx_mul_c(s[0], o->momentum), g);
                d = o->nesterov ? fx_add(g, fx_mul_c(ns[0], o->momentum)) : ns[0];
            }
            break;
        case FX_ADAM:
        case FX_ADAMW:
            ns[0] = blend(o->beta1, s[0], 1 - o->beta1, g);
            ns[1] = blend(o->beta2, s[1], 1 - o->beta2, fx_square(g));
            d = fx_div(fx_div(ns[0], c1), fx_add_c(fx_sqrt(fx_div(ns[1], c2)), o->eps));
            break;
        case FX_LION:
            d = fx_sign(blend(o->beta1, s[0], 1 - o->beta1, g));
            ns[0] = blend(o->beta2, s[0], 1 - o->beta2, g);
            break;
        }
        if (decay != 0 && (o->kind == FX_ADAMW || o->kind == FX_LION))
            d = fx_add(d, fx_mul_c(p, decay));
        fx_val np = fx_sub(p, fx_mul(lr, d));
        if (ok) {
            np = fx_select(ok, np, p);
            for (int k = 0; k < slots; k++)
                ns[k] = fx_select(ok, ns[k], s[k]);
        }
        new_params[i] = np ? fx_convert(np, fx_spec_of(params[i]).dtype) : NULL;
    }
}

double fx_schedule_at(const fx_schedule *s, int64_t step) {
    if (!s)
        return 0;
    if (step < s->warmup)
        return s->peak * (double)(step + 1) / (double)s->warmup;
    int64_t after = step - s->warmup, span = s->total - s->warmup;
    double f = span > 0 ? fmin((double)after / (double)span, 1) : 1;
    switch (s->kind) {
    case FX_SCHEDULE_COSINE: return s->end + (s->peak - s->end) * 0.5 * (1 + cos(3.14159265358979323846 * f));
    case FX_SCHEDULE_LINEAR: return s->peak + (s->end - s->peak) * f;
    case FX_SCHEDULE_STEP: return s->period > 0 ? s->peak * pow(s->factor, (double)(after / s->period)) : s->peak;
    default: return s->peak;
    }
}
