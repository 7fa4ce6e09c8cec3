/* session.c - see session.h. Parameters and state are donated to every step and come back updated in place. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes_of(const fx_spec *s) {
    return (size_t)fx_spec_count(s) * fx_dtype_size(s->dtype);
}

static int slots(const session *s) {
    return fx_optimizer_slots(&s->opt.optimizer);
}

/* Spec and name of array i, a parameter or a state. */
static fx_spec array_spec(const session *s, int i) {
    int p = i < s->n_param ? i : (i - s->n_param) / slots(s);
    fx_spec spec = fx_model_param_spec(s->model, p);
    if (i >= s->n_param)
        spec.dtype = FX_F32;
    return spec;
}

static void array_name(const session *s, int i, char *out, size_t size) {
    if (i < s->n_param)
        snprintf(out, size, "%s", fx_model_param_name(s->model, i));
    else
        snprintf(out, size, "optimizer.%s.%s", fx_optimizer_slot_name(&s->opt.optimizer, (i - s->n_param) % slots(s)),
                 fx_model_param_name(s->model, (i - s->n_param) / slots(s)));
}

/* Draws the parameters on the device. */
static fx_status draw(session *s) {
    uint32_t key[2] = {(uint32_t)(s->opt.seed >> 32), (uint32_t)s->opt.seed};
    fx_func *f = NULL;
    fx_exec *e = NULL;
    fx_array *k = NULL;
    fx_status st = fx_model_init_func(s->model, &f);
    if (st == FX_OK)
        st = fx_compile(f, s->device, NULL, &e);
    if (st == FX_OK)
        st = fx_array_create(s->device, FX_SPEC(FX_U32, 2), key, &k);
    if (st == FX_OK)
        st = fx_run(e, &k, s->arrays);
    fx_array_unref(k);
    fx_exec_destroy(e);
    fx_func_unref(f);
    return st;
}

/* Fills arrays from..to out of a file. */
static fx_status read_arrays(session *s, const char *path, int from, int to) {
    fx_safetensors *file;
    FX_TRY(fx_safetensors_open(path, &file));
    fx_status st = FX_OK;
    for (int i = from; i < to && st == FX_OK; i++) {
        char name[256];
        fx_spec spec = array_spec(s, i);
        void *data = malloc(bytes_of(&spec) + 1);
        array_name(s, i, name, sizeof name);
        if (!data)
            st = FX_OUT_OF_MEMORY;
        else
            st = i < s->n_param ? vit_read_param(file, name, spec, data) : fx_safetensors_read(file, name, &spec, data);
        if (st == FX_OK && s->arrays[i])
            st = fx_array_write(s->arrays[i], data, bytes_of(&spec));
        else if (st == FX_OK)
            st = fx_array_create(s->device, spec, data, &s->arrays[i]);
        free(data);
    }
    fx_safetensors_close(file);
    return st;
}

static fx_status compile(session *s, bool train) {
    fx_func *f = NULL;
    fx_exec_stats_t stats;
    fx_status st = FX_OK;
    if (train) {
        fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
        int *donate = malloc(sizeof *donate * (size_t)(s->n_param + s->n_state + 1));
        if (!donate)
            return FX_OUT_OF_MEMORY;
        fx_train_step_donate(s->model, &s->opt.optimizer, donate);
        opt.donate = donate;
        opt.n_donate = s->n_param + s->n_state;
        st = fx_train_step(s->model, &s->opt.optimizer, &f);
        if (st == FX_OK)
            st = fx_compile(f, s->device, &opt, &s->train);
        free(donate);
        fx_func_unref(f);
        if (st == FX_OK && (st = fx_exec_stats(s->train, &stats)) == FX_OK)
            s->compile_seconds += stats.compile_seconds;
    }
    return st;
}

/* Evaluation has no dropout and no smoothing: a model of its own with the same parameters. */
static fx_status compile_eval(session *s, const fx_spec *in) {
    fx_model_options opt = FX_MODEL_OPTIONS_INIT;
    vit_config plain = s->opt.model;
    fx_model *m = NULL;
    fx_exec_stats_t stats;
    opt.compute_dtype = s->opt.precision;
    plain.dropout = plain.smoothing = 0;
    FX_TRY(fx_model_create(vit_loss, &plain, &opt, 2, in, 2, &m));
    fx_status st = fx_compile(fx_model_func(m), s->device, NULL, &s->eval);
    if (st == FX_OK && (st = fx_exec_stats(s->eval, &stats)) == FX_OK)
        s->compile_seconds += stats.compile_seconds;
    fx_model_destroy(m);
    return st;
}

fx_status session_open(session *s, fx_device *d, const session_options *o, const char *weights, bool train) {
    fx_model_options opt = FX_MODEL_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    s->device = d;
    s->opt = *o;
    opt.compute_dtype = o->precision;
    opt.training = train && o->model.dropout > 0;
    fx_spec in[] = {FX_SPEC(FX_F32, o->batch, o->model.height, o->model.width_px, o->model.channels),
                    FX_SPEC(FX_S32, o->batch)};
    fx_status st = fx_model_create(vit_loss, &s->opt.model, &opt, 2, in, 2, &s->model);
    if (st != FX_OK)
        return st;
    s->n_param = fx_model_n_param(s->model);
    s->n_state = train ? fx_train_step_state_count(s->model, &s->opt.optimizer) : 0;
    s->arrays = calloc((size_t)(s->n_param + s->n_state) + 1, sizeof *s->arrays);
    s->scratch = calloc((size_t)(s->n_param + s->n_state + 8) * 2, sizeof *s->scratch);
    st = s->arrays && s->scratch ? FX_OK : FX_OUT_OF_MEMORY;
    if (st == FX_OK)
        st = weights ? read_arrays(s, weights, 0, s->n_param) : draw(s);
    for (int i = s->n_param; i < s->n_param + s->n_state && st == FX_OK; i++)
        st = fx_array_create(d, array_spec(s, i), NULL, &s->arrays[i]);
    if (st == FX_OK)
        st = compile(s, train);
    if (st == FX_OK)
        st = compile_eval(s, in);
    if (st != FX_OK)
        session_close(s);
    return st;
}

void session_close(session *s) {
    fx_exec_destroy(s->train);
    fx_exec_destroy(s->eval);
    for (int i = 0; s->arrays && i < s->n_param + s->n_state; i++)
        fx_array_unref(s->arrays[i]);
    fx_model_destroy(s->model);
    free(s->arrays);
    free(s->scratch);
    memset(s, 0, sizeof *s);
}

/* Uploads images and labels into in[0], in[1]. */
static fx_status upload(session *s, const float *images, const int32_t *labels, fx_array **in) {
    const vit_config *c = &s->opt.model;
    FX_TRY(
        fx_array_create(s->device, FX_SPEC(FX_F32, s->opt.batch, c->height, c->width_px, c->channels), images, &in[0]));
    return fx_array_create(s->device, FX_SPEC(FX_S32, s->opt.batch), labels, &in[1]);
}

/* A bijection of 64-bit words in which every bit of the result depends on every bit of x. */
static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

/* Dropout's key of a step: all of the seed and all of the step count. */
static void dropout_key(uint64_t seed, int64_t step, uint32_t key[2]) {
    uint64_t k = mixed(mixed(seed + 1) + (uint64_t)step);
    key[0] = (uint32_t)(k >> 32);
    key[1] = (uint32_t)k;
}

fx_status session_train(session *s, const float *images, const int32_t *labels, double lr, fx_array **loss) {
    int n = s->n_param + s->n_state, n_in = n + 4;
    fx_array **in = s->scratch, **out = in + n + 8;
    int32_t step = (int32_t)s->step;
    float rate = (float)lr;
    uint32_t key[2];
    dropout_key(s->opt.seed, s->step, key);
    memcpy(in, s->arrays, sizeof *in * (size_t)n);
    memset(in + n, 0, sizeof *in * 8);
    fx_status st = fx_array_create(s->device, FX_SPEC0(FX_S32), &step, &in[n]);
    if (st == FX_OK)
        st = fx_array_create(s->device, FX_SPEC0(FX_F32), &rate, &in[n + 1]);
    if (st == FX_OK)
        st = upload(s, images, labels, in + n + 2);
    if (st == FX_OK && s->opt.model.dropout > 0)
        st = fx_array_create(s->device, FX_SPEC(FX_U32, 2), key, &in[n_in++]);
    if (st == FX_OK)
        st = fx_run(s->train, in, out);
    for (int i = n; i < n_in; i++)
        fx_array_unref(in[i]);
    if (st != FX_OK)
        return st;
    memcpy(s->arrays, out, sizeof *out * (size_t)n);
    *loss = out[n];
    fx_array_unref(out[n + 1]);
    s->step++;
    return FX_OK;
}

fx_status session_eval(session *s, const float *images, const int32_t *labels, float *loss, int32_t *correct) {
    fx_array **in = s->scratch, *out[2] = {NULL, NULL};
    memcpy(in, s->arrays, sizeof *in * (size_t)s->n_param);
    in[s->n_param] = in[s->n_param + 1] = NULL;
    fx_status st = upload(s, images, labels, in + s->n_param);
    if (st == FX_OK)
        st = fx_run(s->eval, in, out);
    if (st == FX_OK)
        st = fx_array_read(out[0], loss, sizeof *loss);
    if (st == FX_OK)
        st = fx_array_read(out[1], correct, sizeof *correct);
    for (int i = 0; i < 2; i++) {
        fx_array_unref(out[i]);
        fx_array_unref(in[s->n_param + i]);
    }
    return st;
}

typedef struct fetching {
    session *s;
    void *data;
    size_t size;
} fetching;

static fx_status fetch(void *user, size_t i, const void **data) {
    fetching *f = user;
    fx_spec spec = array_spec(f->s, (int)i);
    size_t bytes = bytes_of(&spec);
    if (bytes > f->size) {
        void *p = realloc(f->data, bytes);
        if (!p)
            return FX_OUT_OF_MEMORY;
        f->data = p;
        f->size = bytes;
    }
    *data = f->data;
    return fx_array_read(f->s->arrays[i], f->data, bytes);
}

fx_status session_save(session *s, const char *path, const fx_text_pair *meta, int n_meta) {
    int n = s->n_param + s->n_state;
    fx_named_tensor *t = calloc((size_t)n + 1, sizeof *t);
    char(*names)[256] = calloc((size_t)n + 1, sizeof *names);
    fetching f = {s, NULL, 0};
    fx_safetensors_options opt = FX_SAFETENSORS_OPTIONS_INIT;
    fx_status st = t && names ? FX_OK : FX_OUT_OF_MEMORY;
    for (int i = 0; i < n && st == FX_OK; i++) {
        array_name(s, i, names[i], sizeof names[i]);
        t[i].name = names[i];
        t[i].spec = array_spec(s, i);
        t[i].bytes = bytes_of(&t[i].spec);
    }
    opt.fetch = fetch;
    opt.user = &f;
    if (st == FX_OK)
        st = fx_safetensors_write(path, t, (size_t)n, meta, (size_t)n_meta, &opt);
    free(f.data);
    free(names);
    free(t);
    return st;
}

fx_status session_load(session *s, const char *path) {
    return read_arrays(s, path, 0, s->n_param + s->n_state);
}
