/* test_eval.c - the evaluator: cases with known answers. */
#include <check.h>
#include <stdlib.h>

#include "tests/cases/case.h"

START_TEST(shared_case) {
    case_table[_i].run(&case_evaluator);
}
END_TEST

int main(void) {
    Suite *s = suite_create("eval");
    TCase *c = tcase_create("cases");
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, shared_case, 0, case_count);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
