/* profile.c - writes the trace as it comes: an array of events, valid for the viewers also when the program dies
 * before closing it. A device's clock is placed on the host's by pairs of instants, taken anew every ten
 * seconds since the clocks drift. */
#include "core/runtime/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/env.h"
#include "core/runtime/runtime.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static FILE *file;
static bool first = true;

static void complain(const char *effect) {
    const char *path = fx_env_text(FX_ENV_trace);
    fprintf(stderr, "%s: %s: %s; %s\n", fx_env_get(FX_ENV_trace)->name, path ? path : "", strerror(errno), effect);
}

static void finish(void) {
    pthread_mutex_lock(&lock);
    if (file) {
        fputs("\n]\n", file);
        bool bad = ferror(file);
        if (fclose(file) || bad)
            complain("the trace is not complete");
        file = NULL;
    }
    pthread_mutex_unlock(&lock);
}

static void start(void) {
    const char *path = fx_env_text(FX_ENV_trace);
    if (!path)
        return;
    file = fopen(path, "w");
    if (!file) {
        complain("nothing is traced");
        return;
    }
    fputs("[\n", file);
    atexit(finish);
}

void fx_profile_flush(void) {
    pthread_mutex_lock(&lock);
    if (file)
        fflush(file);
    pthread_mutex_unlock(&lock);
}

bool fx_profile_on(void) {
    pthread_once(&once, start);
    return file != NULL;
}

uint64_t fx_profile_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void put_text(const char *s) {
    fputc('"', file);
    for (; *s; s++)
        if ((unsigned char)*s < 32)
            fprintf(file, "\\u%04x", (unsigned)*s);
        else
            fprintf(file, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
    fputc('"', file);
}

/* With the lock held. Times in ns; the format wants microseconds. */
static void event(const char *name, long thread, uint64_t begin, uint64_t end) {
    fprintf(file, "%s{\"ph\":\"X\",\"pid\":1,\"tid\":%ld,\"ts\":%llu.%03u,\"dur\":%llu.%03u,\"name\":", first ? "" : ",\n", thread,
            (unsigned long long)(begin / 1000), (unsigned)(begin % 1000), (unsigned long long)((end - begin) / 1000),
            (unsigned)((end - begin) % 1000));
    put_text(name);
    fputc('}', file);
    first = false;
}

static void name_thread(const char *name, long thread) {
    fprintf(file, "%s{\"ph\":\"M\",\"pid\":1,\"tid\":%ld,\"name\":\"thread_name\",\"args\":{\"name\":", first ? "" : ",\n", thread);
    put_text(name);
    fputs("}}", file);
    first = false;
}

void fx_profile_host(const char *name, uint64_t begin) {
    static _Thread_local bool named;
    if (!fx_profile_on())
        return;
    uint64_t end = fx_profile_now();
    long thread = syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    if (file) {
        if (!named)
            name_thread("host", thread);
        named = true;
        event(name, thread, begin, end);
    }
    pthread_mutex_unlock(&lock);
}

/* The track of a device: no host thread has such a number. */
static long track(const fx_device *d) {
    long i = 0;
    while (d->context->devices[i] != d)
        i++;
    return 1000000000L + i;
}

/* Refreshes d's clock offset when it is old. With the lock held. */
static bool clock_offset(fx_device *d) {
    uint64_t now = fx_profile_now(), device, host;
    if (d->clock_taken && now - d->clock_taken < 10000000000u)
        return true;
    if (!d->backend->clock_pair || d->backend->clock_pair(d->open, &device, &host) != FX_OK)
        return d->clock_taken != 0;
    if (!d->clock_taken)
        name_thread(d->uri, track(d));
    d->clock_offset = (int64_t)(host - device);
    d->clock_taken = now;
    return true;
}

void fx_profile_device(fx_device *d, int n, const char *const *names, const uint64_t *instants) {
    pthread_mutex_lock(&lock);
    if (file && clock_offset(d))
        for (int i = 0; i < n; i++)
            if (instants[i + 1] >= instants[i])
                event(names[i], track(d), instants[i] + (uint64_t)d->clock_offset,
                      instants[i + 1] + (uint64_t)d->clock_offset);
    pthread_mutex_unlock(&lock);
}
