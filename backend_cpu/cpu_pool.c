/* cpu_pool.c - threads that share the workgroups of one dispatch at a time.
 *
 * A range of workgroups is cut into pieces that threads take from a counter; what a workgroup computes does not depend on
 * who runs it. A thread may touch the job only while it counts itself in `inside`, and only after seeing it open; the
 * caller closes the job and waits for `inside` to be 0 before it changes anything. Threads without work spin for some
 * microseconds, then sleep on a futex. A short dispatch is run by the caller alone: waking takes longer. */
#include <errno.h>
#include <fenv.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend_cpu/cpu.h"

enum {
    STACK_BYTES = 8 << 20,
    SPIN_NS = 30000,     /* before a thread sleeps */
    ALONE_NS = 6000,     /* dispatches below are not shared */
    PIECES = 8,          /* a thread, in a dispatch */
    PIECE_NS = 2000      /* pieces below are not worth taking */
};

struct cpu_pool {
    int n_threads; /* with the caller */
    int n_started;
    pthread_t threads[CPU_MAX_THREADS];
    /* The job; written by the caller while it is closed and nobody is inside. */
    cpu_entry entry;
    const uint64_t *args;
    const uint32_t *groups;
    uint32_t total, piece;
    _Alignas(64) atomic_uint_fast64_t next; /* first workgroup that nobody took */
    _Alignas(64) atomic_uint inside;        /* threads that may touch the job; a futex of the caller */
    atomic_bool caller_sleeps;
    _Alignas(64) atomic_bool open;
    atomic_uint serial; /* counts jobs; a futex of the threads */
    atomic_int sleeping;
    atomic_bool stop;
};

static void futex_wait(atomic_uint *word, unsigned seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0); }

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void work(cpu_pool *p) {
    for (;;) {
        uint64_t first = atomic_fetch_add_explicit(&p->next, p->piece, memory_order_relaxed);
        if (first >= p->total)
            return;
        uint64_t last = first + p->piece < p->total ? first + p->piece : p->total;
        p->entry(p->args, p->groups, (uint32_t)first, (uint32_t)last);
    }
}

/* Takes part in the open job, if there is one. */
static void join(cpu_pool *p) {
    atomic_fetch_add(&p->inside, 1);
    if (atomic_load(&p->open))
        work(p);
    if (atomic_fetch_sub(&p->inside, 1) == 1 && atomic_load(&p->caller_sleeps))
        futex_wake(&p->inside, 1);
}

/* The i-th turn of a wait that began with *end = 0: true while it is too early to sleep. */
static bool spin(int i, uint64_t *end) {
    relax();
    if (i % 64)
        return true;
    uint64_t now = fx_cpu_now();
    if (!*end)
        *end = now + SPIN_NS;
    return now < *end;
}

/* Waits for a job after number `seen`; false: stop. */
static bool await(cpu_pool *p, unsigned seen) {
    uint64_t end = 0;
    for (int i = 1; atomic_load_explicit(&p->serial, memory_order_acquire) == seen && !atomic_load(&p->stop); i++) {
        if (spin(i, &end))
            continue;
        atomic_fetch_add(&p->sleeping, 1);
        while (atomic_load(&p->serial) == seen && !atomic_load(&p->stop))
            futex_wait(&p->serial, seen);
        atomic_fetch_sub(&p->sleeping, 1);
    }
    return !atomic_load(&p->stop);
}

static void *run(void *user) {
    cpu_pool *p = user;
    unsigned seen = 0;
    fx_cpu_thread_prepare();
    while (await(p, seen)) {
        seen = atomic_load(&p->serial);
        join(p);
    }
    return NULL;
}

void fx_cpu_thread_prepare(void) { fesetenv(FE_DFL_ENV); /* denormals kept, round to nearest, whatever the program set */ }

int fx_cpu_thread_start(pthread_t *t, void *(*start)(void *), void *user) {
    pthread_attr_t attributes;
    sigset_t all, old;
    int r = pthread_attr_init(&attributes);
    if (r)
        return r;
    r = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are for the program's threads */
    if (!r)
        r = pthread_create(t, &attributes, start, user);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

cpu_pool *fx_cpu_pool_create(int n_threads) {
    cpu_pool *p = aligned_alloc(_Alignof(cpu_pool), sizeof *p);
    if (p)
        *p = (cpu_pool){.n_threads = n_threads};
    return p;
}

void fx_cpu_pool_start(cpu_pool *p) {
    while (p->n_started < p->n_threads - 1 && fx_cpu_thread_start(&p->threads[p->n_started], run, p) == 0)
        p->n_started++;
}

void fx_cpu_pool_destroy(cpu_pool *p) {
    if (!p)
        return;
    atomic_store(&p->stop, true);
    atomic_fetch_add(&p->serial, 1);
    futex_wake(&p->serial, INT_MAX);
    for (int i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
    free(p);
}

/* Waits until no thread is inside. */
static void finish(cpu_pool *p) {
    uint64_t end = 0;
    unsigned inside;
    for (int i = 1; (inside = atomic_load(&p->inside)) != 0; i++) {
        if (spin(i, &end))
            continue;
        atomic_store(&p->caller_sleeps, true);
        while ((inside = atomic_load(&p->inside)) != 0)
            futex_wait(&p->inside, inside);
        atomic_store(&p->caller_sleeps, false);
    }
}

static void share(cpu_pool *p, uint32_t first, float group_ns) {
    uint32_t left = p->total - first, threads = (uint32_t)p->n_started + 1;
    uint32_t piece = left / (threads * PIECES), least = group_ns > 0 ? (uint32_t)(PIECE_NS / group_ns) : 0;
    if (piece < least)
        piece = least < left / threads ? least : left / threads;
    p->piece = piece ? piece : 1;
    atomic_store_explicit(&p->next, first, memory_order_relaxed);
    uint32_t pieces = (left + p->piece - 1) / p->piece, helpers = pieces - 1 < threads - 1 ? pieces - 1 : threads - 1;
    atomic_store(&p->open, true);
    atomic_fetch_add(&p->serial, 1);
    int sleeping = atomic_load(&p->sleeping);
    if (sleeping > 0)
        futex_wake(&p->serial, (int)helpers);
    work(p);
    atomic_store(&p->open, false);
    finish(p);
}

void fx_cpu_pool_dispatch(cpu_pool *p, cpu_entry entry, const uint64_t *args, const uint32_t groups[3], uint32_t total,
                          float *group_ns) {
    if (total <= 1 || p->n_started == 0) {
        if (total)
            entry(args, groups, 0, total);
        return;
    }
    uint64_t start = fx_cpu_now();
    uint32_t first = 0;
    float threads = 1;
    if (*group_ns <= 0) { /* the first time: see how long one takes */
        entry(args, groups, 0, first = 1);
        *group_ns = (float)(fx_cpu_now() - start + 1);
    }
    if (*group_ns * (float)(total - first) < ALONE_NS) {
        entry(args, groups, first, total);
    } else {
        p->entry = entry;
        p->args = args;
        p->groups = groups;
        p->total = total;
        share(p, first, *group_ns);
        threads = (float)(p->n_started + 1);
    }
    float took = (float)(fx_cpu_now() - start + 1) * threads / (float)total;
    *group_ns += (took - *group_ns) / 4;
}
