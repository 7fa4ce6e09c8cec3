/* context.c - finding devices, choosing the standard one, and where caches live. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/env.h"
#include "core/base/error.h"
#include "core/runtime/profile.h"
#include "core/runtime/runtime.h"

enum { MOST_DEVICES = 64 };

static bool wanted(const fx_options *opt, const char *backend) {
    if (!opt || !opt->backends)
        return true;
    for (const char *const *b = opt->backends; *b; b++)
        if (!strcmp(*b, backend))
            return true;
    return false;
}

static fx_status add(fx_context *cx, const fx_backend *backend, int index, const fx_device_info *info) {
    fx_device *d = calloc(1, sizeof *d);
    fx_device **list = realloc(cx->devices, sizeof *list * (size_t)(cx->n_device + 1));
    if (list)
        cx->devices = list;
    if (!d || !list || pthread_mutex_init(&d->lock, NULL)) {
        free(d);
        return fx_fail_oom(sizeof *d);
    }
    d->context = cx;
    d->backend = backend;
    d->index = index;
    d->info = *info;
    if (backend)
        snprintf(d->uri, sizeof d->uri, "%s:%d", backend->name, index);
    else
        snprintf(d->uri, sizeof d->uri, "reference");
    cx->devices[cx->n_device++] = d;
    return FX_OK;
}

/* Is the device in FORNAX_VISIBLE_DEVICES? "vulkan" names all of a backend. */
static bool visible(const char *backend, const char *uri) {
    return !fx_env_text(FX_ENV_visible_devices) || fx_env_has(FX_ENV_visible_devices, uri) ||
           fx_env_has(FX_ENV_visible_devices, backend);
}

static void note(fx_context *cx, const char *backend, const char *reason) {
    char *text = NULL;
    if (asprintf(&text, "%s%s%s: %s", cx->missing ? cx->missing : "", cx->missing ? "; " : "", backend, reason) < 0)
        return;
    free(cx->missing);
    cx->missing = text;
}

static fx_status enumerate(fx_context *cx, const fx_options *opt) {
    fx_device_info *infos = calloc(MOST_DEVICES, sizeof *infos);
    if (!infos)
        return fx_fail_oom(sizeof *infos * MOST_DEVICES);
    fx_status st = FX_OK;
    for (int b = 0; b < fx_backend_registry_count && st == FX_OK; b++) {
        const char *reason = NULL, *name = fx_backend_registry[b].name;
        int count = 0;
        if (!wanted(opt, name))
            continue;
        const fx_backend *backend = fx_backend_registry[b].get(&reason);
        if (!backend) {
            note(cx, name, reason ? reason : "not available");
            continue;
        }
        if (backend->abi_version != FX_BACKEND_ABI) {
            note(cx, name, "built for another version of Fornax");
            continue;
        }
        st = backend->enumerate(infos, MOST_DEVICES, &count, &reason);
        if (st == FX_OK && !count)
            note(cx, name, reason ? reason : "no device");
        for (int i = 0; i < count && i < MOST_DEVICES && st == FX_OK; i++) {
            char uri[32];
            snprintf(uri, sizeof uri, "%s:%d", name, i);
            if (visible(name, uri))
                st = add(cx, backend, i, &infos[i]);
        }
    }
    free(infos);
    return st;
}

/* Order of kinds among which the default is chosen: the native device comes after software ones, for its schedules are
 * young yet. */
static int rank(fx_device_kind kind) {
    return kind == FX_DEVICE_CPU ? 2 * FX_DEVICE_SOFTWARE + 1 : 2 * (int)kind;
}

static fx_status choose(fx_context *cx) {
    const char *uri = fx_env_text(FX_ENV_device);
    if (uri)
        return fx_device_find(cx, uri, &cx->standard);
    for (int i = 0; i < cx->n_device; i++) {
        fx_device *d = cx->devices[i];
        const fx_device_info *best = cx->standard ? &cx->standard->info : NULL;
        if (d->info.usable && (!best || rank(d->info.kind) < rank(best->kind) ||
                               (d->info.kind == best->kind && d->info.features > best->features)))
            cx->standard = d;
    }
    return FX_OK;
}

/* Makes a folder and its parents, the last one private. */
static int make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool failed = mkdir(path, 0755) && errno != EEXIST;
        *slash = '/';
        if (failed)
            return -1;
    }
    return mkdir(path, 0700) && errno != EEXIST ? -1 : 0;
}

fx_status fx_cache_dir(const char *option, char **out) {
    const char *env = fx_env_text(FX_ENV_cache_dir), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    int n = 0;
    *out = NULL;
    if (option ? !*option : env && !strcmp(env, "none"))
        return FX_OK;
    if (option || env)
        n = asprintf(&path, "%s", option ? option : env);
    else if (xdg && *xdg == '/')
        n = asprintf(&path, "%s/fornax", xdg);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/.cache/fornax", home);
    else
        return FX_OK;
    if (n < 0)
        return fx_fail_oom(4096);
    if (make_folders(path)) { /* a cache that can't be had is no reason not to run */
        free(path);
        return FX_OK;
    }
    *out = path;
    return FX_OK;
}

fx_status fx_init(const fx_options *opt, fx_context **out) {
    static const fx_device_info reference = {
        .name = "reference evaluator", .driver = "Fornax", .kind = FX_DEVICE_REFERENCE, .usable = true};
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_init: out; expected an address for the context; got NULL");
    *out = NULL;
    if (opt && opt->struct_size != sizeof *opt)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_init: options; expected FX_OPTIONS_INIT of this version; got another size");
    FX_TRY(fx_env_check());
    fx_context *cx = calloc(1, sizeof *cx);
    if (!cx)
        return fx_fail_oom(sizeof *cx);
    fx_status st = fx_cache_dir(opt ? opt->cache_dir : NULL, &cx->cache_dir);
    if (st == FX_OK)
        st = enumerate(cx, opt);
    if (st == FX_OK && (visible("reference", "reference") || !cx->n_device))
        st = add(cx, NULL, 0, &reference);
    if (st == FX_OK)
        st = choose(cx);
    if (st == FX_OK)
        *out = cx;
    else
        fx_shutdown(cx);
    return st;
}

void fx_shutdown(fx_context *cx) {
    if (!cx)
        return;
    for (int i = 0; i < cx->n_device; i++) {
        fx_device_close(cx->devices[i]);
        pthread_mutex_destroy(&cx->devices[i]->lock);
        free(cx->devices[i]);
    }
    fx_profile_flush();
    free(cx->devices);
    free(cx->cache_dir);
    free(cx->missing);
    free(cx);
}

int fx_device_count(const fx_context *cx) { return cx ? cx->n_device : 0; }
fx_device *fx_device_at(fx_context *cx, int i) { return cx && i >= 0 && i < cx->n_device ? cx->devices[i] : NULL; }
fx_device *fx_default_device(fx_context *cx) { return cx ? cx->standard : NULL; }

void fx_device_list(const fx_context *cx, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < cx->n_device && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s%s%s)", i ? ", " : "", cx->devices[i]->uri,
                                 cx->devices[i]->info.name, cx->devices[i]->info.usable ? "" : ", not usable: ",
                                 cx->devices[i]->info.usable ? "" : cx->devices[i]->info.reason);
    if (cx->missing && used < size)
        snprintf(text + used, size - used, "; %s", cx->missing);
}

fx_status fx_device_find(fx_context *cx, const char *uri, fx_device **out) {
    char list[2048];
    if (out)
        *out = NULL;
    if (!cx || !out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_device_find: %s; expected one; got NULL", cx ? "address for the device" : "context");
    for (int i = 0; uri && i < cx->n_device; i++) {
        fx_device *d = cx->devices[i];
        if (strcmp(uri, d->uri) && strcmp(uri, d->backend ? d->backend->name : "reference"))
            continue;
        if (!d->info.usable && !strcmp(uri, d->uri))
            return fx_fail(FX_UNSUPPORTED, "device %s (%s) is not usable: %s", uri, d->info.name, d->info.reason);
        if (d->info.usable) {
            *out = d;
            return FX_OK;
        }
    }
    fx_device_list(cx, list, sizeof list);
    return fx_fail(FX_NOT_FOUND, "device; expected one of %s; got \"%s\"", list, uri ? uri : "(null)");
}
