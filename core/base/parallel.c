/* parallel.c - see parallel.h. */
#include "core/base/parallel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/base/error.h"

enum { MOST_THREADS = 32 };

typedef struct loop {
    int n;
    fx_status (*each)(void *user, int i);
    void *user;
    atomic_int next;
    atomic_bool failed;
    fx_status status; /* of the thread that set `failed`, as is the text; read after all have ended */
    char text[4096];
} loop;

static void *work(void *user) {
    loop *l = user;
    for (int i; !atomic_load(&l->failed) && (i = atomic_fetch_add(&l->next, 1)) < l->n;) {
        fx_status st = l->each(l->user, i);
        if (st != FX_OK && !atomic_exchange(&l->failed, true)) {
            l->status = st;
            snprintf(l->text, sizeof l->text, "%s", fx_last_error());
        }
    }
    return NULL;
}

fx_status fx_parallel(int n, int threads, fx_status (*each)(void *user, int i), void *user) {
    loop l = {.n = n, .each = each, .user = user};
    pthread_t others[MOST_THREADS];
    int started = 0;
    threads = threads < n ? threads : n;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    while (started < threads - 1 && !pthread_create(&others[started], NULL, work, &l))
        started++;
    work(&l);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    return l.status == FX_OK ? FX_OK : fx_fail(l.status, "%s", l.text);
}
