/* train.c - a model's training step as one function: loss, gradients, update. */
#include <stdlib.h>

#include "core/base/error.h"
#include "core/nn/nn.h"
#include "fornax/transform.h"

typedef struct plan {
    const fx_model *m;
    const fx_optimizer *o;
    const fx_func *grad; /* (params..., inputs...) -> (results..., gradients...) */
    bool *decays;
    int n_state, n_in, n_out;
} plan;

int fx_train_step_state_count(const fx_model *m, const fx_optimizer *o) { return m ? m->n_param * fx_optimizer_slots(o) : 0; }

void fx_train_step_donate(const fx_model *m, const fx_optimizer *o, int *list) {
    for (int i = 0; m && list && i < m->n_param + fx_train_step_state_count(m, o); i++)
        list[i] = i;
}

static void step(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const plan *p = user;
    int n = p->m->n_param, inputs = n + p->n_state + 2;
    fx_val *v = calloc((size_t)(n + p->n_in + p->n_out + n) + 1, sizeof *v), *results = v + n + p->n_in;
    if (!v) {
        fx_trace_fail(t, "no host memory for the training step");
        return;
    }
    for (int i = 0; i < n; i++)
        v[i] = in[i];
    for (int i = 0; i < p->n_in; i++)
        v[n + i] = in[inputs + i];
    fx_call(t, p->grad, v, results);
    fx_scope_push(t, "optimizer");
    fx_optimizer_update(p->o, n, in, results + p->n_out, in + n, p->decays, in[n + p->n_state], in[n + p->n_state + 1], out,
                        out + n);
    fx_scope_pop(t);
    for (int i = 0; i < p->n_out; i++)
        out[n + p->n_state + i] = results[i];
    free(v);
}

fx_status fx_train_step(const fx_model *m, const fx_optimizer *o, fx_func **out) {
    if (out)
        *out = NULL;
    if (!m || !o || !out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_train_step: %s; expected one; got NULL", !m ? "model" : !o ? "optimizer" : "address for the function");
    if (o->struct_size != sizeof *o || (unsigned)o->kind > FX_LION)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_train_step: optimizer; expected FX_OPTIMIZER_INIT with one of its kinds; got another version's size or kind %d",
                       (int)o->kind);
    int n = m->n_param, slots = fx_optimizer_slots(o), extra = m->n_in + m->opt.training;
    plan p = {m, o, NULL, NULL, n * slots, extra, fx_func_n_out(m->func)};
    int total = n + p.n_state + 2 + extra;
    fx_func *grad = NULL;
    int *wrt = calloc((size_t)n + 1, sizeof *wrt);
    fx_spec *specs = calloc((size_t)total + 1, sizeof *specs);
    p.decays = calloc((size_t)n + 1, sizeof *p.decays);
    fx_status st = wrt && specs && p.decays ? FX_OK : fx_fail_oom(sizeof *specs * (size_t)total);
    if (st == FX_OK) {
        for (int i = 0; i < n; i++) {
            wrt[i] = i;
            specs[i] = m->params[i].spec;
            p.decays[i] = m->params[i].decay;
            for (int k = 0; k < slots; k++) {
                specs[n + i * slots + k] = specs[i];
                specs[n + i * slots + k].dtype = FX_F32;
            }
        }
        specs[n + p.n_state] = FX_SPEC0(FX_S32);
        specs[n + p.n_state + 1] = FX_SPEC0(FX_F32);
        for (int i = 0; i < extra; i++)
            specs[n + p.n_state + 2 + i] = fx_func_in_spec(m->func, n + i);
        st = fx_value_and_grad(m->func, (fx_args){n, wrt}, &grad);
    }
    if (st == FX_OK) {
        p.grad = grad;
        st = fx_trace_func(step, &p, total, specs, n + p.n_state + p.n_out, out);
    }
    fx_func_unref(grad);
    free(p.decays);
    free(specs);
    free(wrt);
    return st;
}
