/* test_cases.c - the shared cases on every device, fused and with a kernel a node. The evaluator's own run
 * is in test_eval.c. FX_TRACE_CASES=1 prints how long each takes.
 *
 * ctest: slow */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/cases/device.h"

static device_set devices;

START_TEST(devices_agree_with_the_cases) {
    const executor *e = &devices.executors[_i / case_count];
    const case_entry *c = &case_table[_i % case_count];
    int before = *e->skipped;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    c->run(e);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (getenv("FX_TRACE_CASES"))
        fprintf(stderr, "%s %s %.2f s\n", e->name, c->name,
                (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9);
    if (*e->skipped != before)
        printf("%s: %s: graphs skipped: %d\n", e->name, c->name, *e->skipped - before);
    ck_assert_int_eq(device_validation_messages(), 0);
}
END_TEST

int main(void) {
    Suite *s = suite_create("cases");
    TCase *c = tcase_create("cases");
    if (!device_set_open(&devices, false))
        return EXIT_FAILURE;
    if (!devices.n)
        return 77;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, devices_agree_with_the_cases, 0, devices.n * case_count);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    device_set_close(&devices);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
