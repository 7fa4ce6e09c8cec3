/* test_bad_base.c - every public function of base.h with arguments that make no sense: an answer that says so, no
 * crash. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

static const fx_dtype strange[] = {FX_TUPLE, (fx_dtype)(FX_TUPLE + 1), (fx_dtype)1000, (fx_dtype)-1};
enum { N_STRANGE = sizeof strange / sizeof *strange };

START_TEST(statuses_outside_the_enum_have_a_name) {
    static const int values[] = {-1, FX_INTERNAL + 1, 1 << 30};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ck_assert_ptr_nonnull(fx_status_name((fx_status)values[i]));
        ck_assert(fx_status_name((fx_status)values[i])[0]);
    }
    for (int s = FX_OK; s <= FX_INTERNAL; s++)
        ck_assert_int_eq(strncmp(fx_status_name((fx_status)s), "FX_", 3), 0);
    ck_assert_ptr_nonnull(fx_last_error());
    ck_assert_int_gt((int)strlen(fx_version()), 4);
}
END_TEST

START_TEST(types_outside_the_enum_are_none_of_the_kinds) {
    for (int i = 0; i < N_STRANGE; i++) {
        ck_assert_uint_eq(fx_dtype_size(strange[i]), 0);
        ck_assert_ptr_nonnull(fx_dtype_name(strange[i]));
        ck_assert(!fx_dtype_is_float(strange[i]) && !fx_dtype_is_signed(strange[i]));
        ck_assert(!fx_dtype_is_unsigned(strange[i]) && !fx_dtype_is_int(strange[i]));
    }
    ck_assert_str_eq(fx_dtype_name((fx_dtype)-1), "?");
}
END_TEST

START_TEST(type_names_that_are_none_are_refused_by_name) {
    static const char *const names[] = {"", " f32", "f32 ", "F32", "float", "i", "i1", "s64x", "tuple", "?"};
    fx_dtype d = FX_U8;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(fx_dtype_parse(names[i], &d), FX_INVALID_ARGUMENT);
        ck_assert_msg(strstr(fx_last_error(), names[i]) != NULL, "%s", fx_last_error());
    }
    ck_assert_int_eq(fx_dtype_parse(NULL, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dtype_parse("f32", NULL), FX_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "fx_dtype_parse"));
    ck_assert_int_eq(fx_dtype_parse(NULL, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(d, FX_U8);
    char *long_name = malloc(100000);
    memset(long_name, 'f', 99999);
    long_name[99999] = '\0';
    ck_assert_int_eq(fx_dtype_parse(long_name, &d), FX_INVALID_ARGUMENT);
    free(long_name);
}
END_TEST

START_TEST(shapes_that_are_none_have_no_count_and_equal_nothing) {
    fx_spec good = FX_SPEC(FX_F32, 2, 3), rank = good, negative = FX_SPEC(FX_F32, -2, -3),
            overflow = FX_SPEC(FX_F32, INT64_MAX, 2), both = FX_SPEC(FX_F32, -1, 0);
    ck_assert_int_eq(fx_spec_count(NULL), -1);
    ck_assert_int_eq(fx_spec_count(&negative), -1);
    ck_assert_int_eq(fx_spec_count(&both), -1);
    ck_assert_int_eq(fx_spec_count(&overflow), -1);
    static const int ranks[] = {-1, FX_MAX_RANK + 1, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        char text[256];
        rank.rank = ranks[i];
        ck_assert_int_eq(fx_spec_count(&rank), -1);
        ck_assert(!fx_spec_equal(&rank, &rank));
        ck_assert_ptr_eq(fx_spec_format(&rank, text, sizeof text), text);
    }
    ck_assert(!fx_spec_equal(NULL, &good) && !fx_spec_equal(&good, NULL) && !fx_spec_equal(NULL, NULL));
}
END_TEST

START_TEST(a_shape_is_written_into_whatever_room_there_is) {
    fx_spec s = FX_SPEC(FX_BF16, INT64_MAX, INT64_MIN, 3);
    char text[64];
    for (size_t size = 0; size < sizeof text; size++) {
        memset(text, 'x', sizeof text);
        ck_assert_ptr_eq(fx_spec_format(&s, text, size), text);
        ck_assert(!size || strlen(text) < size);
        for (size_t i = size; i < sizeof text; i++)
            ck_assert_int_eq(text[i], 'x');
    }
    ck_assert_str_eq(text + strlen(text) - 3, ",3]");
    ck_assert_ptr_null(fx_spec_format(&s, NULL, 0));
    ck_assert_ptr_null(fx_spec_format(&s, NULL, 10));
    ck_assert_str_eq(fx_spec_format(NULL, text, sizeof text), "?");
    s.dtype = (fx_dtype)77;
    s.rank = 1;
    ck_assert_str_eq(fx_spec_format(&s, text, sizeof text), "?[9223372036854775807]");
}
END_TEST

START_TEST(what_is_no_number_stays_none_in_sixteen_bits) {
    ck_assert(isnan(fx_f16_to_f32(fx_f32_to_f16(NAN))) && isnan(fx_bf16_to_f32(fx_f32_to_bf16(NAN))));
    ck_assert(isnan(fx_f16_to_f32(fx_f64_to_f16((double)NAN))) && isnan(fx_bf16_to_f32(fx_f64_to_bf16((double)NAN))));
    ck_assert_uint_eq(fx_f32_to_f16(INFINITY), 0x7c00);
    ck_assert_uint_eq(fx_f32_to_bf16(-INFINITY), 0xff80);
    ck_assert_uint_eq(fx_f64_to_f16(-1e300), 0xfc00);
    ck_assert_uint_eq(fx_f64_to_bf16(1e300), 0x7f80);
}
END_TEST

int main(void) {
    Suite *s = suite_create("bad_base");
    TCase *c = tcase_create("calls");
    tcase_add_test(c, statuses_outside_the_enum_have_a_name);
    tcase_add_test(c, types_outside_the_enum_are_none_of_the_kinds);
    tcase_add_test(c, type_names_that_are_none_are_refused_by_name);
    tcase_add_test(c, shapes_that_are_none_have_no_count_and_equal_nothing);
    tcase_add_test(c, a_shape_is_written_into_whatever_room_there_is);
    tcase_add_test(c, what_is_no_number_stays_none_in_sixteen_bits);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
