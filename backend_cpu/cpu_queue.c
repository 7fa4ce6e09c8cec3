/* cpu_queue.c - the order of a device's work: one thread executes submissions one after another.
 *
 * The thread is started by the first submission. Uploads go straight to memory when nothing is in flight, else their bytes
 * wait in the queue. Everything submitted is finished before the device closes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend_cpu/cpu.h"

#define MOST_HELD ((uint64_t)64 << 20) /* larger uploads wait for their turn instead of being held */

fx_status fx_cpu_queue_init(cpu_queue *q) {
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic))
        return fx_backend_fail(FX_INTERNAL, "a condition variable could not be made");
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, &monotonic);
    pthread_cond_init(&q->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return FX_OK;
}

static void *run(void *user) {
    fx_bdevice *d = user;
    cpu_queue *q = &d->queue;
    fx_cpu_thread_prepare();
    fx_cpu_pool_start(d->pool);
    pthread_mutex_lock(&q->lock);
    for (;;) {
        cpu_item *item = q->first;
        if (!item) {
            if (q->stop)
                break;
            pthread_cond_wait(&q->work, &q->lock);
            continue;
        }
        pthread_mutex_unlock(&q->lock);
        if (item->list)
            fx_cpu_cmds_execute(item->list, d->pool);
        else
            memcpy(item->to, item->held, item->bytes);
        pthread_mutex_lock(&q->lock);
        q->first = item->next;
        if (!q->first)
            q->last = NULL;
        if (item->ticket) {
            atomic_store_explicit(&q->finished, item->ticket, memory_order_release);
            pthread_cond_broadcast(&q->done);
        }
        free(item);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

void fx_cpu_queue_finish(fx_bdevice *d) {
    cpu_queue *q = &d->queue;
    if (d->process != getpid()) /* its threads are in the process that opened it */
        return;
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    bool started = q->started;
    pthread_cond_signal(&q->work);
    pthread_mutex_unlock(&q->lock);
    if (started)
        pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->work);
    pthread_cond_destroy(&q->done);
}

static fx_status alive(fx_bdevice *d) {
    if (d->process == getpid())
        return FX_OK;
    return fx_backend_fail(FX_DEVICE_LOST, "device \"%s\" was opened before this process was forked, and its threads are in the "
                                           "other one; open devices after forking",
                           d->info.name);
}

/* Puts a chain of items at the end, its last one under a new ticket, which is returned; 0 when no thread can be had. The
 * lock is held. */
static uint64_t append(fx_bdevice *d, cpu_item *first, cpu_item *last) {
    cpu_queue *q = &d->queue;
    if (!q->started) {
        if (fx_cpu_thread_start(&q->thread, run, d))
            return 0;
        q->started = true;
    }
    last->ticket = ++q->submitted;
    if (q->last)
        q->last->next = first;
    else
        q->first = first;
    q->last = last;
    pthread_cond_signal(&q->work);
    return last->ticket;
}

static void drop(cpu_item *first) {
    for (cpu_item *next; first; first = next) {
        next = first->next;
        free(first);
    }
}

static fx_status no_memory(void) {
    return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to submit work; free memory");
}

static fx_status no_thread(void) {
    return fx_backend_fail(FX_OUT_OF_MEMORY, "no thread can be started to run kernels; the process has too many, or memory is short");
}

fx_status fx_cpu_submit(fx_bdevice *d, int n, fx_cmds *const *lists, uint64_t *ticket) {
    cpu_queue *q = &d->queue;
    cpu_item *first = NULL, **end = &first, *last = NULL;
    FX_TRY(alive(d));
    for (int i = 0; i < n; i++) {
        if (!fx_cpu_cmds_ready(lists[i])) {
            drop(first);
            return fx_backend_fail(FX_INVALID_ARGUMENT, "submit: list %d; expected one that was ended", i);
        }
        cpu_item *item = calloc(1, sizeof *item);
        if (!item) {
            drop(first);
            return no_memory();
        }
        item->list = lists[i];
        *end = last = item;
        end = &item->next;
    }
    pthread_mutex_lock(&q->lock);
    uint64_t t = n ? append(d, first, last) : q->submitted;
    for (int i = 0; i < n && t; i++)
        fx_cpu_cmds_submitted(lists[i], t);
    pthread_mutex_unlock(&q->lock);
    if (n && !t) {
        drop(first);
        return no_thread();
    }
    if (ticket)
        *ticket = t;
    return FX_OK;
}

fx_status fx_cpu_wait(fx_bdevice *d, uint64_t ticket, uint64_t timeout_ns, bool *done) {
    cpu_queue *q = &d->queue;
    bool unused;
    if (!done)
        done = &unused;
    *done = ticket <= atomic_load_explicit(&q->finished, memory_order_acquire);
    if (*done || !timeout_ns)
        return FX_OK;
    FX_TRY(alive(d));
    uint64_t now = fx_cpu_now(), end = timeout_ns > UINT64_MAX / 4 ? UINT64_MAX / 4 : now + timeout_ns;
    struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    pthread_mutex_lock(&q->lock);
    bool known = ticket <= q->submitted;
    for (int r = 0; known && !(*done = ticket <= atomic_load(&q->finished)) && r != ETIMEDOUT;)
        r = timeout_ns == UINT64_MAX ? pthread_cond_wait(&q->done, &q->lock)
                                     : pthread_cond_timedwait(&q->done, &q->lock, &until);
    pthread_mutex_unlock(&q->lock);
    if (known)
        return FX_OK;
    return fx_backend_fail(FX_INVALID_ARGUMENT, "wait: ticket %llu was never given out by this device",
                           (unsigned long long)ticket);
}

static fx_status wait_for_all(fx_bdevice *d) {
    uint64_t ticket;
    FX_TRY(fx_cpu_submit(d, 0, NULL, &ticket));
    return fx_cpu_wait(d, ticket, UINT64_MAX, NULL);
}

static void *at(const fx_mem *mem, uint64_t offset) { return (unsigned char *)mem->handle + offset; }

fx_status fx_cpu_upload(fx_bdevice *d, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes, uint64_t *ticket) {
    cpu_queue *q = &d->queue;
    uint64_t t;
    FX_TRY(fx_cpu_submit(d, 0, NULL, &t));
    if (ticket)
        *ticket = t;
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "upload"));
    if (t > atomic_load_explicit(&q->finished, memory_order_acquire)) {
        cpu_item *item = bytes <= MOST_HELD ? malloc(sizeof *item + bytes) : NULL;
        if (item) {
            *item = (cpu_item){.to = at(dst, offset), .bytes = bytes};
            memcpy(item->held, src, bytes);
            pthread_mutex_lock(&q->lock);
            t = append(d, item, item); /* work is in flight, so the thread runs */
            pthread_mutex_unlock(&q->lock);
            if (ticket)
                *ticket = t;
            return FX_OK;
        }
        FX_TRY(fx_cpu_wait(d, t, UINT64_MAX, NULL));
    }
    memcpy(at(dst, offset), src, bytes);
    return FX_OK;
}

fx_status fx_cpu_upload_after(fx_bdevice *d, uint64_t after, const fx_mem *dst, uint64_t offset, const void *src, uint64_t bytes,
                              uint64_t *ticket) {
    if (ticket)
        *ticket = after;
    FX_TRY(fx_cpu_wait(d, after, UINT64_MAX, NULL));
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_backend_range_check(dst, offset, bytes, "upload"));
    memcpy(at(dst, offset), src, bytes);
    return FX_OK;
}

fx_status fx_cpu_download(fx_bdevice *d, const fx_mem *src, uint64_t offset, void *dst, uint64_t bytes) {
    FX_TRY(wait_for_all(d));
    if (!bytes)
        return FX_OK;
    FX_TRY(fx_backend_range_check(src, offset, bytes, "download"));
    memcpy(dst, at(src, offset), bytes);
    return FX_OK;
}

fx_status fx_cpu_clock_pair(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns) {
    (void)d;
    *device_ns = *host_ns = fx_cpu_now();
    return FX_OK;
}
