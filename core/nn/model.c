/* model.c - traces a model function once, collecting its parameters as they are asked for, and turns the
 * trace into a function with the parameters first. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/nn/nn.h"

fx_trace *fx_nn_trace(fx_nn *nn) { return nn ? nn->t : NULL; }
bool fx_nn_training(const fx_nn *nn) { return nn && nn->m->opt.training; }

void fx_nn_push(fx_nn *nn, const char *fmt, ...) {
    char name[128];
    va_list ap;
    if (!nn)
        return;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    size_t used = strlen(nn->scope);
    if (nn->depth == (int)(sizeof nn->cut / sizeof *nn->cut) || used + strlen(name) + 2 > sizeof nn->scope) {
        fx_trace_fail(nn->t, "fx_nn_push: scopes nest too deep at \"%s\"", nn->scope);
        return;
    }
    nn->cut[nn->depth++] = (int)used;
    snprintf(nn->scope + used, sizeof nn->scope - used, "%s%s", used ? "." : "", name);
    fx_scope_push(nn->t, name);
}

bool fx_nn_enter(fx_nn *nn, const char *layer, const char *name) {
    if (nn && name && *name) {
        fx_nn_push(nn, "%s", name);
        return true;
    }
    if (nn)
        fx_trace_fail(nn->t, "%s: name; expected text; got %s", layer, name ? "the empty text" : "NULL");
    return false;
}

void fx_nn_pop(fx_nn *nn) {
    if (nn && nn->depth) {
        nn->scope[nn->cut[--nn->depth]] = '\0';
        fx_scope_pop(nn->t);
    }
}

static int find(const fx_model *m, const char *name) {
    for (int i = 0; i < m->n_param; i++)
        if (!strcmp(m->params[i].name, name))
            return i;
    return -1;
}

fx_val fx_param(fx_nn *nn, const char *name, fx_spec spec, fx_initializer init, bool decay) {
    if (!nn)
        return NULL;
    if (!name || !*name)
        return fx_trace_fail(nn->t, "fx_param: name; expected text; got %s", name ? "the empty text" : "NULL");
    fx_model *m = nn->m;
    char full[640], a[128], b[128];
    snprintf(full, sizeof full, "%s%s%s", nn->scope, nn->scope[0] ? "." : "", name);
    spec.dtype = fx_dtype_is_float(spec.dtype) ? m->opt.param_dtype : spec.dtype;
    int at = find(m, full);
    if (at >= 0) {
        if (fx_spec_equal(&m->params[at].spec, &spec))
            return m->params[at].cast;
        return fx_trace_fail(nn->t, "parameter \"%s\"; expected the shape of its first use, %s; got %s", full,
                             fx_spec_format(&m->params[at].spec, a, sizeof a), fx_spec_format(&spec, b, sizeof b));
    }
    if (m->n_param == m->cap_param) {
        int cap = m->cap_param ? 2 * m->cap_param : 64;
        fx_param_info *p = realloc(m->params, sizeof *p * (size_t)cap);
        if (!p)
            return fx_trace_fail(nn->t, "no host memory for parameter \"%s\"", full);
        m->params = p;
        m->cap_param = cap;
    }
    fx_val value = fx_input(nn->t, spec);
    const char *copy = fx_arena_strdup(&m->arena, full);
    if (!value || !copy)
        return NULL;
    m->params[m->n_param] = (fx_param_info){copy, spec, init, decay, value, fx_nn_cast(nn, value)};
    return m->params[m->n_param++].cast;
}

fx_val fx_nn_cast(fx_nn *nn, fx_val x) {
    if (!nn)
        return NULL;
    fx_dtype want = nn->m->opt.compute_dtype;
    return x && fx_dtype_is_float(fx_spec_of(x).dtype) && fx_spec_of(x).dtype != want ? fx_convert(x, want) : x;
}

fx_val fx_nn_key(fx_nn *nn) {
    if (!nn)
        return NULL;
    if (!nn->key)
        return fx_trace_fail(nn->t, "fx_nn_key: a key is there only while training; set fx_model_options.training");
    return fx_random_fold_in(nn->key, fx_scalar(nn->t, FX_U32, nn->n_keys++));
}

/* Wraps (inputs..., key, parameters...) as (parameters..., inputs..., key). */
static fx_status reorder(fx_model *m, fx_func *f, int n_in) {
    int total = n_in + m->n_param;
    fx_trace *t;
    FX_TRY(fx_trace_begin(&t));
    fx_val *v = calloc((size_t)(total + fx_func_n_out(f)) + 1, sizeof *v);
    if (!v) {
        fx_trace_abandon(t);
        return fx_fail_oom(sizeof *v * (size_t)total);
    }
    for (int i = 0; i < m->n_param; i++)
        v[n_in + i] = fx_input(t, m->params[i].spec);
    for (int i = 0; i < n_in; i++)
        v[i] = fx_input(t, fx_func_in_spec(f, i));
    fx_call(t, f, v, v + total);
    fx_status st = fx_trace_end(t, fx_func_n_out(f), v + total, &m->func);
    free(v);
    return st;
}

fx_status fx_model_create(fx_model_fn fn, void *user, const fx_model_options *opt, int n_in, const fx_spec *in, int n_out,
                          fx_model **out) {
    static const fx_model_options defaults = FX_MODEL_OPTIONS_INIT;
    if (out)
        *out = NULL;
    if (opt && opt->struct_size == sizeof *opt && (!fx_dtype_is_float(opt->param_dtype) || !fx_dtype_is_float(opt->compute_dtype)))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_model_create: param_dtype and compute_dtype; expected floats; got %s and %s",
                       fx_dtype_name(opt->param_dtype), fx_dtype_name(opt->compute_dtype));
    if (!out || (n_in > 0 && !in))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_model_create: %s; expected one; got NULL", out ? "list of the inputs' types" : "address for the model");
    if (!fn || n_in < 0 || n_out < 1 || (opt && opt->struct_size != sizeof *opt))
        return fx_fail(FX_INVALID_ARGUMENT,
                       "fx_model_create; expected a function, results and FX_MODEL_OPTIONS_INIT; got %s, %d, %s",
                       fn ? "a function" : "NULL", n_out, opt && opt->struct_size != sizeof *opt ? "other options" : "options");
    fx_model *m = calloc(1, sizeof *m);
    fx_val *v = calloc((size_t)(n_in + n_out) + 1, sizeof *v);
    if (!m || !v) {
        free(m);
        free(v);
        return fx_fail_oom(sizeof *m);
    }
    fx_arena_init(&m->arena);
    m->opt = opt ? *opt : defaults;
    m->n_in = n_in;
    fx_nn nn = {.m = m};
    fx_func *f = NULL;
    fx_status st = fx_trace_begin(&nn.t);
    if (st == FX_OK) {
        for (int i = 0; i < n_in; i++)
            v[i] = fx_input(nn.t, in[i]);
        if (m->opt.training)
            nn.key = fx_input(nn.t, FX_SPEC(FX_U32, 2));
        fn(&nn, v, v + n_in, user);
        st = fx_trace_end(nn.t, n_out, v + n_in, &f);
    }
    if (st == FX_OK)
        st = reorder(m, f, n_in + m->opt.training);
    fx_func_unref(f);
    free(v);
    if (st == FX_OK)
        *out = m;
    else
        fx_model_destroy(m);
    return st;
}

void fx_model_destroy(fx_model *m) {
    if (!m)
        return;
    fx_func_unref(m->func);
    free(m->params);
    fx_arena_finish(&m->arena);
    free(m);
}

int fx_model_n_param(const fx_model *m) { return m ? m->n_param : 0; }

static bool has(const fx_model *m, int i) { return m && i >= 0 && i < m->n_param; }

const char *fx_model_param_name(const fx_model *m, int i) { return has(m, i) ? m->params[i].name : NULL; }
fx_spec fx_model_param_spec(const fx_model *m, int i) { return has(m, i) ? m->params[i].spec : (fx_spec){FX_TUPLE, 0, {0}}; }
int fx_model_find_param(const fx_model *m, const char *name) { return m && name ? find(m, name) : -1; }
bool fx_model_param_decays(const fx_model *m, int i) { return has(m, i) && m->params[i].decay; }
const fx_func *fx_model_func(const fx_model *m) { return m ? m->func : NULL; }

int64_t fx_model_param_count(const fx_model *m) {
    int64_t n = 0;
    for (int i = 0; m && i < m->n_param; i++)
        n += fx_spec_count(&m->params[i].spec);
    return n;
}

static void init_all(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const fx_model *m = user;
    for (int i = 0; i < m->n_param; i++)
        out[i] = fx_initialize(fx_random_fold_in(in[0], fx_scalar(t, FX_U32, i)), m->params[i].init, m->params[i].spec);
}

fx_status fx_model_init_func(const fx_model *m, fx_func **out) {
    fx_spec key = FX_SPEC(FX_U32, 2);
    if (!m || !out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_model_init_func: %s; expected one; got NULL", m ? "address for the function" : "model");
    return fx_trace_func(init_all, (void *)(uintptr_t)m, 1, &key, m->n_param, out);
}
