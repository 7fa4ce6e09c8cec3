/* device.c - devices as executors. See device.h. */
#include "tests/cases/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"
#include "core/graph/trace.h"

/* Absent from a build without the backend. */
__attribute__((weak)) int fx_vulkan_validation_messages(void);

int device_validation_messages(void) {
    return fx_vulkan_validation_messages ? fx_vulkan_validation_messages() : 0;
}

bool device_is(const fx_device *d, const char *word) {
    return strstr(fx_device_name(d), word) || strstr(fx_device_driver(d), word);
}

/* Does the run look at this device? The native one has runs of its own: its compiler takes long. */
static bool asked_for(const fx_device *d) {
    const char *name = getenv("FX_TEST_BACKEND");
    bool native = !strncmp(fx_device_uri(d), "cpu:", 4);
    return native == (name && !strcmp(name, "cpu"));
}

bool device_set_open(device_set *s, bool reference) {
    fx_options opt = FX_OPTIONS_INIT;
    memset(s, 0, sizeof *s);
    opt.cache_dir = "";
    if (fx_init(&opt, &s->cx) != FX_OK) {
        fprintf(stderr, "fx_init: %s\n", fx_last_error());
        return false;
    }
    for (int i = 0; i < fx_device_count(s->cx); i++) {
        fx_device *d = fx_device_at(s->cx, i);
        bool is_reference = !strcmp(fx_device_uri(d), "reference");
        if ((is_reference && !reference) || (!is_reference && !asked_for(d)) || fx_device_supports(d, FX_F32) != FX_OK || s->n + 2 > DEVICE_EXECUTORS)
            continue;
        for (int unfused = 0; unfused < 2 - is_reference; unfused++) {
            s->selves[s->n] = (device_self){d, unfused};
            snprintf(s->names[s->n], sizeof s->names[s->n], "%s %s, %s", fx_device_uri(d), fx_device_name(d),
                     unfused ? "unfused" : "fused");
            s->executors[s->n] = (executor){s->names[s->n], device_run, &s->selves[s->n], &s->skipped[s->n],
                                             device_run_donating};
            printf("%s\n", s->names[s->n]);
            s->n++;
        }
    }
    fflush(stdout);
    return true;
}

void device_set_close(device_set *s) {
    fx_shutdown(s->cx);
    s->cx = NULL;
    s->n = 0;
}

/* times: 1 where arguments are donated. */
static fx_status run(const device_self *me, const fx_graph *g, int n_donate, const int *donate, const void *const *args,
                     void *const *results, int times) {
    fx_compile_options opt = FX_COMPILE_OPTIONS_INIT;
    fx_exec *e = NULL;
    opt.no_fusion = me->no_fusion;
    opt.n_donate = n_donate;
    opt.donate = donate;
    FX_TRY(fx_compile(fx_graph_func((fx_graph *)g), me->device, &opt, &e));
    fx_array **in = calloc((size_t)(g->n_param + g->n_result) + 1, sizeof *in), **out = in + g->n_param;
    fx_status st = in ? FX_OK : FX_OUT_OF_MEMORY;
    for (int i = 0; i < g->n_param && st == FX_OK; i++)
        st = fx_array_create(me->device, g->params[i]->spec, args[i], &in[i]);
    for (int turn = 0; turn < times && st == FX_OK; turn++) {
        for (int i = 0; i < g->n_result; i++) {
            fx_array_unref(out[i]);
            out[i] = NULL;
        }
        st = fx_run(e, in, out);
    }
    for (int i = 0; i < n_donate && st == FX_OK; i++)
        in[donate[i]] = NULL;
    for (int i = 0; i < g->n_result && st == FX_OK; i++)
        st = fx_array_read(out[i], results[i], fx_eval_bytes(&g->results[i]->spec));
    for (int i = 0; in && i < g->n_param + g->n_result; i++)
        fx_array_unref(in[i]);
    free(in);
    fx_exec_destroy(e);
    return st;
}

fx_status device_run_times(void *self, const fx_graph *g, const void *const *args, void *const *results, int times) {
    return run(self, g, 0, NULL, args, results, times);
}

fx_status device_run_donating(void *self, const fx_graph *g, int n_donate, const int *donate, const void *const *args,
                              void *const *results) {
    return run(self, g, n_donate, donate, args, results, 1);
}

fx_status device_run(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    return device_run_times(self, g, args, results, 1);
}
