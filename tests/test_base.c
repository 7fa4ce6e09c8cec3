/* test_base.c - status names, shapes as values, and the 16-bit conversions, exhaustively where that is cheap. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/error.h"

START_TEST(every_f16_survives_a_round_trip) {
    for (uint32_t h = 0; h < 65536; h++) {
        float f = fx_f16_to_f32((uint16_t)h), b = fx_bf16_to_f32((uint16_t)h);
        if (isnan(f))
            ck_assert(isnan(fx_f16_to_f32(fx_f32_to_f16(f))));
        else
            ck_assert_uint_eq(fx_f32_to_f16(f), h);
        if (isnan(b))
            ck_assert(isnan(fx_bf16_to_f32(fx_f32_to_bf16(b))));
        else {
            ck_assert_uint_eq(fx_f32_to_bf16(b), h);
            ck_assert_uint_eq(fx_f64_to_bf16((double)b), h);
        }
    }
}
END_TEST

START_TEST(halfway_values_round_to_even) {
    for (uint32_t h = 0; h + 1 < 0x7c00; h++) { /* between neighbouring positive f16 values */
        double lo = (double)fx_f16_to_f32((uint16_t)h), hi = (double)fx_f16_to_f32((uint16_t)(h + 1));
        if (isinf(hi))
            hi = 65536;
        double mid = (lo + hi) / 2;
        ck_assert_uint_eq(fx_f64_to_f16(mid), h & 1 ? h + 1 : h);
        ck_assert_uint_eq(fx_f64_to_f16(nextafter(mid, 0)), h);
        ck_assert_uint_eq(fx_f64_to_f16(nextafter(mid, 1e9)), h + 1);
    }
    ck_assert_uint_eq(fx_f32_to_f16(1e9f), 0x7c00);
    ck_assert_uint_eq(fx_f32_to_f16(-1e-9f), 0x8000);
}
END_TEST

START_TEST(specs_count_compare_and_print) {
    fx_spec s = FX_SPEC(FX_F32, 2, 3), t = FX_SPEC0(FX_S8), z = FX_SPEC(FX_F32, INT64_MAX, INT64_MAX, 0);
    fx_spec big = FX_SPEC(FX_F32, INT64_MAX, 2);
    char buf[64];
    ck_assert_int_eq(fx_spec_count(&s), 6);
    ck_assert_int_eq(fx_spec_count(&t), 1);
    ck_assert_int_eq(fx_spec_count(&z), 0);
    ck_assert_int_eq(fx_spec_count(&big), -1);
    ck_assert_str_eq(fx_spec_format(&s, buf, sizeof buf), "f32[2,3]");
    ck_assert_str_eq(fx_spec_format(&t, buf, sizeof buf), "s8[]");
    ck_assert(!fx_spec_equal(&s, &t));
}
END_TEST

START_TEST(type_names_are_inverse_to_parsing) {
    fx_dtype d;
    for (int i = 0; i < FX_DTYPE_COUNT; i++) {
        ck_assert_int_eq(fx_dtype_parse(fx_dtype_name((fx_dtype)i), &d), FX_OK);
        ck_assert_int_eq(d, i);
    }
    ck_assert_int_eq(fx_dtype_parse("i64", &d), FX_OK);
    ck_assert_int_eq(d, FX_S64);
    ck_assert_int_eq(fx_dtype_parse("float", &d), FX_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "\"float\""));
    ck_assert_int_eq(fx_fail_context(FX_IO_ERROR, "reading %s", "x"), FX_IO_ERROR);
    ck_assert_int_eq(strncmp(fx_last_error(), "reading x: element type", 23), 0);
}
END_TEST

START_TEST(arena_memory_is_zeroed_aligned_and_large_when_asked) {
    fx_arena a;
    fx_arena_init(&a);
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = fx_arena_alloc(&a, n);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p & 15, 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, n);
    }
    ck_assert_ptr_nonnull(fx_arena_alloc(&a, 5 << 20));
    ck_assert_ptr_null(fx_arena_alloc(&a, SIZE_MAX - 4));
    ck_assert(a.failed);
    fx_arena_finish(&a);
}
END_TEST

int main(void) {
    Suite *s = suite_create("base");
    TCase *c = tcase_create("base");
    suite_add_tcase(s, c);
    tcase_add_test(c, every_f16_survives_a_round_trip);
    tcase_add_test(c, halfway_values_round_to_even);
    tcase_add_test(c, specs_count_compare_and_print);
    tcase_add_test(c, type_names_are_inverse_to_parsing);
    tcase_add_test(c, arena_memory_is_zeroed_aligned_and_large_when_asked);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
