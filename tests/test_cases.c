/* test_cases.c - the shared cases on every device, fused and with a kernel a node. The evaluator's own run
 * is in test_eval.c. With an argument: only cases whose names begin so. FX_TRACE_CASES=1 prints how long each takes.
 *
 * ctest: slow */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program_run.h"
#include "tests/cases/device.h"

static device_set devices;
static const char *only = "";

START_TEST(devices_agree_with_the_cases) {
    const executor *e = &devices.executors[_i / case_count];
    const case_entry *c = &case_table[_i % case_count];
    int before = *e->skipped;
    if (strncmp(c->name, only, strlen(only)) != 0)
        return;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    c->run(e);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (getenv("FX_TRACE_CASES"))
        fprintf(stderr, "%s %s %.2f s\n", e->name, c->name,
                (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9);
    int skipped = *e->skipped - before;
    if (skipped) {
        fx_device *d = ((const device_self *)e->self)->device;
        bool lacks = false;
        for (int i = 0; i < CASE_RARE && c->rare[i]; i++)
            lacks = lacks || fx_device_supports(d, c->rare[i]) != FX_OK;
        printf("%s: %s: graphs skipped: %d\n", e->name, c->name, skipped);
        ck_assert_msg(lacks, "%s: %s: %d graphs refused, though the device has all types", e->name, c->name, skipped);
        ck_assert_msg(skipped <= c->most_skipped, "%s: %s: %d graphs refused, expected at most %d", e->name, c->name,
                      skipped, c->most_skipped);
    }
    ck_assert_int_eq(device_validation_messages(), 0);
}
END_TEST

static test_device least;

static fx_status run_least(void *self, const fx_graph *g, const void *const *args, void *const *results) {
    return run_graph(self, g, NULL, args, results);
}

/* as a device would run them that has no more than Vulkan requires of every one. */
START_TEST(the_least_limits_suffice) {
    int skipped = 0;
    const executor e = {"least limits", run_least, &least, &skipped, NULL};
    least.caps.max_invocations = least.caps.max_workgroup[0] = least.caps.max_workgroup[1] = 128;
    least.caps.max_workgroup[2] = 64;
    least.caps.shared_bytes = 16384;
    least.caps.max_args = 128 / 8;
    for (int i = 0; i < 3; i++)
        least.caps.max_groups[i] = 65535;
    if (!strncmp("A-047", only, strlen(only)))
        case_a047_limits_of_a_kernel(&e);
    if (!strncmp("A-039", only, strlen(only)))
        case_a039_many_workgroups(&e);
    ck_assert_int_eq(skipped, 0);
    ck_assert_int_eq(device_validation_messages(), 0);
}
END_TEST

int main(int argc, char **argv) {
    Suite *s = suite_create("cases");
    TCase *c = tcase_create("cases");
    if (argc > 1)
        only = argv[1];
    if (!device_set_open(&devices, false))
        return EXIT_FAILURE;
    if (!devices.n)
        return 77;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, devices_agree_with_the_cases, 0, devices.n * case_count);
    find_vulkan();
    for (int i = 0; i < n_devices && !least.d; i++)
        if (device_infos[i].usable && vk->open(i, "", &least.d, &least.caps) != FX_OK)
            fprintf(stderr, "%s\n", fx_last_error());
    if (least.d)
        tcase_add_test(c, the_least_limits_suffice);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    if (least.d)
        vk->close(least.d);
    device_set_close(&devices);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
