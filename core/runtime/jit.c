/* jit.c - a function with its executables, one a device. Shapes are part of a traced function, so the device
 * is all there is to choose by. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/runtime/runtime.h"

struct fx_jit {
    pthread_mutex_t lock;
    fx_func *func;
    fx_compile_options opt;
    int *donate;
    fx_exec **execs; /* parallel to devices */
    fx_device **devices;
    int n;
};

fx_status fx_jit_create(const fx_func *f, const fx_compile_options *opt, fx_jit **out) {
    static const fx_compile_options defaults = FX_COMPILE_OPTIONS_INIT;
    if (out)
        *out = NULL;
    if (!f || !out || (opt && (opt->struct_size != sizeof *opt || opt->n_donate < 0 || (opt->n_donate && !opt->donate))))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_jit_create: expected a function, a place for the result and FX_COMPILE_OPTIONS_INIT");
    fx_jit *j = calloc(1, sizeof *j);
    if (!j || pthread_mutex_init(&j->lock, NULL)) {
        free(j);
        return fx_fail_oom(sizeof *j);
    }
    j->func = fx_func_ref((fx_func *)(uintptr_t)f);
    j->opt = opt ? *opt : defaults;
    if (j->opt.n_donate > 0) {
        j->donate = malloc(sizeof *j->donate * (size_t)j->opt.n_donate);
        if (!j->donate) {
            fx_jit_destroy(j);
            return fx_fail_oom(sizeof *j->donate * (size_t)j->opt.n_donate);
        }
        memcpy(j->donate, j->opt.donate, sizeof *j->donate * (size_t)j->opt.n_donate);
        j->opt.donate = j->donate;
    }
    *out = j;
    return FX_OK;
}

void fx_jit_destroy(fx_jit *j) {
    if (!j)
        return;
    for (int i = 0; i < j->n; i++)
        fx_exec_destroy(j->execs[i]);
    fx_func_unref(j->func);
    pthread_mutex_destroy(&j->lock);
    free(j->execs);
    free(j->devices);
    free(j->donate);
    free(j);
}

static fx_status executable(fx_jit *j, fx_device *d, fx_exec **out) {
    for (int i = 0; i < j->n; i++)
        if (j->devices[i] == d) {
            *out = j->execs[i];
            return FX_OK;
        }
    fx_exec **execs = realloc(j->execs, sizeof *execs * (size_t)(j->n + 1));
    if (execs)
        j->execs = execs;
    fx_device **devices = realloc(j->devices, sizeof *devices * (size_t)(j->n + 1));
    if (devices)
        j->devices = devices;
    if (!execs || !devices)
        return fx_fail_oom(sizeof *execs);
    FX_TRY(fx_compile(j->func, d, &j->opt, out));
    j->execs[j->n] = *out;
    j->devices[j->n++] = d;
    return FX_OK;
}

fx_status fx_jit_run(fx_jit *j, fx_array *const *inputs, fx_array **outputs) {
    if (!j || !inputs || (fx_func_n_in(j->func) && !inputs[0]))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_jit_run: expected a function and inputs; got NULL");
    if (!fx_func_n_in(j->func))
        return fx_fail(FX_INVALID_ARGUMENT, "fx_jit_run: the function has no input that says on which device; use fx_compile");
    fx_exec *e = NULL;
    pthread_mutex_lock(&j->lock);
    fx_status st = executable(j, inputs[0]->device, &e);
    pthread_mutex_unlock(&j->lock);
    return st == FX_OK ? fx_run(e, inputs, outputs) : st;
}
