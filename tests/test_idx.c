/* test_idx.c - the IDX reader; the files of E-009 (its pairs are in test_dataset.c). */
#include "case_files.h"

static fx_host_array load(const case_file *files, size_t n, const char *name, const char *spec) {
    const case_file *f = case_file_named(files, n, name);
    fx_host_array a;
    char text[64];
    ck_assert_fx_ok(fx_idx_parse(f->data, f->size, &a));
    ck_assert_str_eq(fx_spec_format(&a.spec, text, sizeof text), spec);
    return a;
}

START_TEST(e009_every_element_type_reads_in_native_order) {
    size_t n;
    case_file *files = case_files("E-009", &n);
    const struct {
        const char *name, *spec;
        const void *want;
        size_t bytes;
    } cases[] = {
        {"u8", "u8[2,2]", (uint8_t[]){0, 255, 7, 8}, 4},
        {"i8", "s8[2]", (int8_t[]){-128, 127}, 2},
        {"i16", "s16[2]", (int16_t[]){-2, 300}, 4},
        {"i32", "s32[2]", (int32_t[]){-70000, 1}, 8},
        {"f32", "f32[2]", (float[]){1.5f, -2}, 8},
        {"f64", "f64[1]", (double[]){0.1}, 8},
        {"rank0", "u8[]", (uint8_t[]){5}, 1},
        {"zero", "u8[0,28,28]", "", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fx_host_array a = load(files, n, cases[i].name, cases[i].spec);
        ck_assert(memcmp(a.data, cases[i].want, cases[i].bytes) == 0);
        fx_host_array_free(&a);
    }
    case_files_free(files, n);
}
END_TEST

START_TEST(e009_damaged_and_hostile_files_are_refused_with_the_reason) {
    static const struct {
        const char *name, *says;
    } want[] = {{"gz (u8)", "gzip"},
                {"truncated_data", "3 data bytes; expected 4"},
                {"truncated_dims", "dimensions"},
                {"trailing", "3 data bytes; expected 2"},
                {"dims_overflow", "overflows"},
                {"dims_huge", "expected 4294967295"},
                {"bad_type", "element type 0x0a"},
                {"bad_magic", "magic number"},
                {"little_endian_dims", "expected 50331648"},
                {"rank_255", "dimensions"},
                {"empty_file", "too short"}};
    size_t n;
    case_file *files = case_files("E-009", &n);
    ck_assert_uint_eq(n, sizeof want / sizeof *want + 8);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const case_file *f = case_file_named(files, n, want[i].name);
        fx_host_array a = {.data = &a};
        const char *path = scratch_path("hostile-idx");
        write_file(path, f->data, f->size);
        ck_assert_msg(fx_idx_load(path, &a) == FX_BAD_DATA, "%s was accepted", f->name);
        ck_assert_error_says(want[i].says);
        ck_assert_error_says("hostile-idx");
        ck_assert_ptr_null(a.data);
    }
    case_files_free(files, n);
}
END_TEST

int main(void) {
    Suite *s = suite_create("idx");
    TCase *c = tcase_create("idx");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, e009_every_element_type_reads_in_native_order);
    tcase_add_test(c, e009_damaged_and_hostile_files_are_refused_with_the_reason);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
