/* test_npy.c - the .npy reader and writer and .npz archives; E-007 and E-017 of the file cases. */
#include "case_files.h"

START_TEST(e007_types_and_headers_that_must_be_refused) {
    static const struct {
        const char *name, *says;
    } want[] = {{"object.npy", "never unpickled"},
                {"structured.npy", "structured"},
                {"unicode.npy", "<U5"},
                {"complex.npy", "<c8"},
                {"datetime.npy", "<M8[ns]"},
                {"longdouble.npy", "<f16"},
                {"subarray.npy", "sub-array"},
                {"data_short.npy", "expected 16"},
                {"data_long.npy", "8 data bytes; expected 4"},
                {"header_len_past_end.npy", "beyond the end"},
                {"shape_overflow.npy", "overflows"},
                {"shape_huge.npy", "expected 4000000000000"},
                {"negative.npy", "negative"},
                {"version_9.npy", "version 9"},
                {"code.npy", "not a tuple of integers"},
                {"missing_key.npy", "lacks fortran_order"},
                {"no_magic.npy", "magic"},
                {"zero.npy", "0 bytes"}};
    size_t n;
    case_file *files = case_files("E-007", &n);
    ck_assert_uint_eq(n, sizeof want / sizeof *want);
    long peak = peak_bytes();
    for (size_t i = 0; i < n; i++) {
        const case_file *file = case_file_named(files, n, want[i].name);
        const char *path = scratch_path("hostile.npy");
        write_file(path, file->data, file->size);
        fx_host_array a = {.data = &a};
        fx_status status = fx_npy_load(path, &a);
        ck_assert_msg(status == FX_BAD_DATA || status == FX_UNSUPPORTED, "%s: %s", file->name, fx_status_name(status));
        ck_assert_error_says(want[i].says);
        ck_assert_error_says("hostile.npy");
        ck_assert_ptr_null(a.data);
    }
    ck_assert_int_lt(peak_bytes() - peak, 50 << 20);
    case_files_free(files, n);
}
END_TEST

/* Builds a file by hand: `version`, dictionary, data. */
static unsigned char *make_npy(int version, const char *dict, const void *data, size_t bytes, size_t *size) {
    size_t length = strlen(dict) + 1, prefix = version == 1 ? 10 : 12;
    *size = prefix + length + bytes;
    unsigned char *p = calloc(*size, 1);
    memcpy(p, "\x93NUMPY", 6);
    p[6] = (unsigned char)version;
    p[8] = (unsigned char)length;
    p[9] = (unsigned char)(length >> 8);
    memcpy(p + prefix, dict, length - 1);
    p[prefix + length - 1] = '\n';
    if (bytes)
        memcpy(p + prefix + length, data, bytes);
    return p;
}

static fx_host_array parse(int version, const char *dict, const void *data, size_t bytes) {
    size_t size;
    unsigned char *file = make_npy(version, dict, data, bytes, &size);
    fx_host_array a;
    ck_assert_fx_ok(fx_npy_parse(file, size, &a));
    free(file);
    return a;
}

START_TEST(versions_byte_orders_and_fortran_order_read_as_numpy_reads_them) {
    static const float plain[6] = {0, 1, 2, 3, 4, 5}, fortran[6] = {0, 3, 1, 4, 2, 5};
    char text[64];
    for (int version = 1; version <= 3; version++) {
        fx_host_array a = parse(version, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", fortran, 24);
        ck_assert_str_eq(fx_spec_format(&a.spec, text, sizeof text), "f32[2,3]");
        ck_assert_mem_eq(a.data, plain, 24);
        fx_host_array_free(&a);
    }
    static const unsigned char be[] = {0xff, 0xfe, 0x01, 0x2c};
    fx_host_array a = parse(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,)}", be, 4);
    ck_assert_int_eq(((int16_t *)a.data)[0], -2);
    ck_assert_int_eq(((int16_t *)a.data)[1], 300);
    fx_host_array_free(&a);
    a = parse(1, "{\"shape\": (), \"fortran_order\": False, \"descr\": \"<f8\"}", &(double){-0.1}, 8);
    ck_assert_int_eq(a.spec.rank, 0);
    ck_assert(*(double *)a.data == -0.1);
    fx_host_array_free(&a);
    a = parse(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (0, 3L)}", NULL, 0);
    ck_assert_str_eq(fx_spec_format(&a.spec, text, sizeof text), "s64[0,3]");
    fx_host_array_free(&a);
    a = parse(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\0\1\2", 3);
    ck_assert_mem_eq(a.data, "\0\1\1", 3);
    fx_host_array_free(&a);
    /* three dimensions in Fortran order: element (i,j,k) holds 100 i + 10 j + k */
    int32_t src[24];
    for (int k = 0, n = 0; k < 4; k++)
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < 2; i++)
                src[n++] = 100 * i + 10 * j + k;
    a = parse(2, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", src, sizeof src);
    for (int i = 0, n = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++)
                ck_assert_int_eq(((int32_t *)a.data)[n++], 100 * i + 10 * j + k);
    fx_host_array_free(&a);
}
END_TEST

START_TEST(headers_that_numpy_would_not_write_are_refused) {
    static const char *const bad[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} junk",
        "{'descr': '|f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}",
        "",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t size;
        float x = 1;
        unsigned char *file = make_npy(1, bad[i], &x, 4, &size);
        fx_host_array a;
        fx_status status = fx_npy_parse(file, size, &a);
        ck_assert_msg(status == FX_BAD_DATA || status == FX_UNSUPPORTED, "accepted: %s", bad[i]);
        free(file);
    }
}
END_TEST

START_TEST(every_type_survives_a_round_trip_through_npy_and_npz) {
    unsigned char data[48];
    for (int i = 0; i < 48; i++)
        data[i] = (unsigned char)(i * 7 % 251);
    fx_named_tensor t[FX_DTYPE_COUNT];
    char names[FX_DTYPE_COUNT][16];
    size_t n = 0;
    for (int d = 0; d < FX_DTYPE_COUNT; d++) {
        fx_spec spec = FX_SPEC((fx_dtype)d, 2, 1, 3);
        unsigned char bools[6] = {0, 1, 1, 0, 0, 1};
        const char *path = scratch_path("round.npy");
        if (d == FX_BF16) {
            ck_assert_int_eq(fx_npy_save(path, &spec, data), FX_UNSUPPORTED);
            continue;
        }
        const void *src = d == FX_BOOL ? bools : data;
        ck_assert_fx_ok(fx_npy_save(path, &spec, src));
        fx_host_array a;
        ck_assert_fx_ok(fx_npy_load(path, &a));
        ck_assert(fx_spec_equal(&a.spec, &spec));
        ck_assert_mem_eq(a.data, src, 6 * fx_dtype_size((fx_dtype)d));
        fx_host_array_free(&a);
        if (d != FX_BOOL) {
            snprintf(names[n], sizeof names[n], "w.%s", fx_dtype_name((fx_dtype)d));
            t[n] = (fx_named_tensor){names[n], spec, data, 6 * fx_dtype_size((fx_dtype)d), NULL};
            n++;
        }
    }
    const char *one = scratch_path("one.npz"), *two = scratch_path("two.npz");
    fx_npz *z;
#ifndef FX_HAVE_LIBZIP
    ck_assert_int_eq(fx_npz_write(one, t, n), FX_UNSUPPORTED);
    ck_assert_error_says("libzip-dev");
    ck_assert_int_eq(fx_npz_open(two, &z), FX_UNSUPPORTED);
#else
    ck_assert_fx_ok(fx_npz_write(one, t, n));
    sleep(2); /* the archive's clock ticks in steps of two seconds */
    ck_assert_fx_ok(fx_npz_write(two, t, n));
    size_t n1, n2;
    unsigned char *a = read_whole(one, &n1), *b = read_whole(two, &n2);
    ck_assert_uint_eq(n1, n2);
    ck_assert_mem_eq(a, b, n1);
    free(b);
    ck_assert_fx_ok(fx_npz_open(one, &z));
    ck_assert_uint_eq(fx_npz_count(z), n);
    for (size_t i = 0; i < n; i++) {
        fx_host_array r;
        ck_assert_str_eq(fx_npz_name(z, i), t[i].name);
        ck_assert_fx_ok(fx_npz_read(z, t[i].name, &r));
        ck_assert(fx_spec_equal(&r.spec, &t[i].spec));
        ck_assert_mem_eq(r.data, data, t[i].bytes);
        fx_host_array_free(&r);
    }
    fx_host_array r;
    ck_assert_ptr_null(fx_npz_name(z, n));
    ck_assert_int_eq(fx_npz_read(z, "absent", &r), FX_NOT_FOUND);
    fx_npz_close(z);
    /* damage: a flipped data byte fails the checksum; a cut or foreign file does not open */
    a[128 + 40] ^= 1;
    write_file(two, a, n1);
    ck_assert_fx_ok(fx_npz_open(two, &z));
    ck_assert_int_eq(fx_npz_read(z, t[0].name, &r), FX_BAD_DATA);
    ck_assert_ptr_null(r.data);
    fx_npz_close(z);
    for (size_t cut = 0; cut < n1; cut += 97) {
        write_file(two, a, cut);
        ck_assert_int_eq(fx_npz_open(two, &z), FX_BAD_DATA);
    }
    free(a);
    t[1].name = t[0].name;
    ck_assert_int_eq(fx_npz_write(two, t, n), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_npz_write("/dev/full", t, 1), FX_IO_ERROR);
    ck_assert_fx_ok(fx_npz_write(two, NULL, 0));
    ck_assert_fx_ok(fx_npz_open(two, &z));
    ck_assert_uint_eq(fx_npz_count(z), 0);
    fx_npz_close(z);
#endif
}
END_TEST

#ifdef FX_HAVE_LIBZIP
START_TEST(e017_npz_keeps_odd_names_and_exact_bits_and_refuses_names_it_could_not_read_back) {
    static const uint32_t bits[2] = {0x7fc00001, 0x80000000};
    static const double d = 0.1;
    fx_named_tensor t[] = {{"quote\"back\\slash\xc3\xa9", FX_SPEC(FX_F32, 2), bits, 8, NULL},
                           {"../../x", FX_SPEC(FX_F32, 1, 2), bits, 8, NULL},
                           {"z", FX_SPEC(FX_F32, 0, 5), NULL, 0, NULL},
                           {"d", FX_SPEC0(FX_F64), &d, 8, NULL}};
    const char *path = scratch_path("odd.npz");
    fx_npz *z;
    fx_host_array a;
    ck_assert_fx_ok(fx_npz_write(path, t, 4));
    ck_assert_fx_ok(fx_npz_open(path, &z));
    for (int i = 0; i < 4; i++) {
        ck_assert_fx_ok(fx_npz_read(z, t[i].name, &a));
        ck_assert(fx_spec_equal(&a.spec, &t[i].spec));
        ck_assert(memcmp(a.data, t[i].data ? t[i].data : "", t[i].bytes) == 0);
        fx_host_array_free(&a);
    }
    fx_npz_close(z);
    t[1].name = "a\x01";
    ck_assert_int_eq(fx_npz_write(path, t, 2), FX_INVALID_ARGUMENT);
    ck_assert_error_says("control characters");
    t[1].name = "\xff\xfe";
    ck_assert_int_eq(fx_npz_write(path, t, 2), FX_INVALID_ARGUMENT);
    t[1].name = "";
    ck_assert_int_eq(fx_npz_write(path, t, 2), FX_INVALID_ARGUMENT);
}
END_TEST

START_TEST(an_npz_entry_that_claims_gigabytes_takes_no_memory) {
    static float x[64];
    fx_named_tensor t = {"x", FX_SPEC(FX_F32, 64), x, sizeof x, NULL};
    const char *path = scratch_path("bomb.npz");
    ck_assert_fx_ok(fx_npz_write(path, &t, 1));
    size_t n;
    unsigned char *file = read_whole(path, &n);
    int patched = 0;
    for (size_t i = 0; i + 30 < n; i++) { /* the uncompressed size in the local and the central header */
        size_t at = memcmp(file + i, "PK\3\4", 4) == 0 ? i + 22 : memcmp(file + i, "PK\1\2", 4) == 0 ? i + 24 : 0;
        if (at) {
            memcpy(file + at, "\xff\xff\xff\x7f", 4);
            patched++;
        }
    }
    ck_assert_int_eq(patched, 2);
    write_file(path, file, n);
    free(file);
    long peak = peak_bytes();
    fx_npz *z;
    fx_host_array a;
    if (fx_npz_open(path, &z) == FX_OK) {
        ck_assert_int_eq(fx_npz_read(z, "x", &a), FX_BAD_DATA);
        fx_npz_close(z);
    }
    ck_assert_int_lt(peak_bytes() - peak, 20 << 20);
}
END_TEST
#endif

int main(void) {
    Suite *s = suite_create("npy");
    TCase *c = tcase_create("npy");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, e007_types_and_headers_that_must_be_refused);
    tcase_add_test(c, versions_byte_orders_and_fortran_order_read_as_numpy_reads_them);
    tcase_add_test(c, headers_that_numpy_would_not_write_are_refused);
    tcase_add_test(c, every_type_survives_a_round_trip_through_npy_and_npz);
#ifdef FX_HAVE_LIBZIP
    tcase_add_test(c, e017_npz_keeps_odd_names_and_exact_bits_and_refuses_names_it_could_not_read_back);
    tcase_add_test(c, an_npz_entry_that_claims_gigabytes_takes_no_memory);
#endif
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
