/* test_random.c - random programs on every device, fused and with a kernel a node, against the evaluator.
 *
 * FX_RANDOM_SEED gives the first seed (else the date does), FX_RANDOM_COUNT the number of programs for a driver on the
 * processor with a quick compiler (2000; with the argument "brief" 1000); other devices take a fraction. Each driver
 * has several contexts, each with a thread: kernels then compile at the same time. What fails is shrunk and printed as
 * text with its seed.
 *
 * ctest: slow, on cpu */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/cases/device.h"
#include "tests/gen.h"

enum { MOST_FAILURES = 5, THREADS = 2 };

typedef struct job {
    int executor; /* of each thread's device set */
    uint64_t first;
    int count;
    gen_options options;
    atomic_int next, skipped, failed;
} job;

typedef struct worker {
    pthread_t thread;
    device_set devices;
    job *job;
} worker;

static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

/* Runs g, or says that the device can't. */
typedef struct attempt {
    executor *e;
    uint64_t seed;
    bool unsupported;
} attempt;

static fx_status run(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    attempt *a = self;
    fx_status st = a->e->run(a->e->self, g, args, results);
    a->unsupported = st == FX_UNSUPPORTED;
    return st;
}

static bool fails(const fx_graph *g, void *user) {
    attempt *a = user;
    char *text = gen_check(g, a->seed, run, a);
    free(text);
    return text && !a->unsupported;
}

static void report(executor *e, fx_graph *g, uint64_t seed, const char *difference) {
    attempt a = {e, seed, false};
    fx_graph *small = gen_shrink(g, fails, &a);
    char *again = gen_check(small, seed, run, &a), *text = fx_graph_print(small);
    pthread_mutex_lock(&print_lock);
    printf("FAILED on %s, seed %llu: %s\nshrunk (%s):\n%s\n", e->name, (unsigned long long)seed, difference,
           again ? again : "now passes", text ? text : "");
    fflush(stdout);
    pthread_mutex_unlock(&print_lock);
    free(again);
    free(text);
    fx_graph_unref(small);
}

static void *work(void *user) {
    worker *w = user;
    job *j = w->job;
    executor *e = &w->devices.executors[j->executor];
    for (int i; atomic_load(&j->failed) < MOST_FAILURES && (i = atomic_fetch_add(&j->next, 1)) < j->count;) {
        uint64_t seed = j->first + (uint64_t)i;
        fx_graph *g = gen_graph(seed, &j->options);
        attempt a = {e, seed, false};
        char *difference = g ? gen_check(g, seed, run, &a) : NULL;
        if (a.unsupported) {
            atomic_fetch_add(&j->skipped, 1);
        } else if (difference || !g) {
            atomic_fetch_add(&j->failed, 1);
            if (g)
                report(e, g, seed, difference);
        }
        free(difference);
        fx_graph_unref(g);
    }
    return NULL;
}

static worker workers[THREADS];
static uint64_t first_seed;
static int count = 2000;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

START_TEST(random_programs_agree_with_the_evaluator) {
    static fx_dtype types[FX_DTYPE_COUNT];
    device_set *d = &workers[0].devices;
    fx_device *device = d->selves[_i].device;
    job j = {.executor = _i, .first = first_seed, .count = count, .options = {.steps = 8}};
    if (!device_is(device, "llvmpipe"))
        j.count = count / 4;
    j.options.dtypes = types;
    for (int t = 0; t < FX_DTYPE_COUNT; t++)
        if (fx_device_supports(device, (fx_dtype)t) == FX_OK)
            types[j.options.n_dtype++] = (fx_dtype)t;
    double start = seconds();
    for (int i = 0; i < THREADS; i++) {
        workers[i].job = &j;
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    printf("%s: %d programs from seed %llu in %.1f s, %d unsupported\n", d->names[_i], j.count,
           (unsigned long long)first_seed, seconds() - start, j.skipped);
    fflush(stdout);
    ck_assert_msg(!j.failed, "%d programs fail; run again with FX_RANDOM_SEED=%llu", j.failed,
                  (unsigned long long)first_seed);
    ck_assert_msg(j.skipped * 50 <= j.count, "%d of %d programs are unsupported", j.skipped, j.count);
    ck_assert_int_eq(device_validation_messages(), 0);
}
END_TEST

int main(int argc, char **argv) {
    const char *seed = getenv("FX_RANDOM_SEED"), *number = getenv("FX_RANDOM_COUNT");
    first_seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) / 86400 * 1000000;
    count = number ? atoi(number) : argc > 1 && !strcmp(argv[1], "brief") ? count / 2 : count;
    for (int i = 0; i < THREADS; i++)
        if (!device_set_open(&workers[i].devices, false))
            return EXIT_FAILURE;
    printf("FX_RANDOM_SEED=%llu\n", (unsigned long long)first_seed);
    if (!workers[0].devices.n)
        return 77;
    Suite *s = suite_create("random");
    TCase *c = tcase_create("random");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 1500);
    tcase_add_loop_test(c, random_programs_agree_with_the_evaluator, 0, workers[0].devices.n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (int i = 0; i < THREADS; i++)
        device_set_close(&workers[i].devices);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
