/* test_safetensors.c - the safetensors reader and writer; E-001, E-003, E-005 and E-017 of the file cases. */
#include <signal.h>

#include "case_files.h"

static const void *data_of(const fx_safetensors *f, const char *name, const char *type, const char *spec,
                           size_t bytes) {
    const fx_named_tensor *t = fx_safetensors_find(f, name);
    char text[64];
    ck_assert_msg(t != NULL, "no tensor %s", name);
    ck_assert_str_eq(t->type_name, type);
    ck_assert_str_eq(fx_spec_format(&t->spec, text, sizeof text), spec);
    ck_assert_uint_eq(t->bytes, bytes);
    return t->data;
}

static void check_unusual(const fx_safetensors *f) {
    static const uint32_t w[] = {0x3f800000, 0xc0000000, 0x40600000, 0x3dcccccd, 0x000116c2, 0x7f7fffff};
    static const int64_t i64[] = {INT64_MIN, 9007199254740993};
    static const uint16_t u16[] = {0, 65535, 258}, bf[] = {0x3f80, 0xff80}, h[] = {0x7bff, 0x8000};
    static const uint8_t mask[] = {1, 0, 1}, e4[] = {0x7e, 0x01, 0xb8, 0x00}, e5[] = {0x7b, 0x3c}, i8[] = {0x80};
    double scalar;
    uint16_t nan;
    ck_assert_uint_eq(fx_safetensors_count(f), 13);
    ck_assert_mem_eq(data_of(f, "w", "F32", "f32[2,3]", 24), w, 24);
    ck_assert_ptr_null(data_of(f, "empty", "F32", "f32[0,4]", 0));
    ck_assert_ptr_null(data_of(f, "empty2", "U8", "u8[3,0]", 0));
    memcpy(&scalar, data_of(f, "scalar", "F64", "f64[]", 8), 8);
    ck_assert(scalar == -0.1);
    ck_assert_mem_eq(data_of(f, "i64", "I64", "s64[2]", 16), i64, 16);
    ck_assert_mem_eq(data_of(f, "u16", "U16", "u16[3]", 6), u16, 6);
    ck_assert_mem_eq(data_of(f, "mask", "BOOL", "bool[3]", 3), mask, 3);
    ck_assert_mem_eq(data_of(f, "bf", "BF16", "bf16[3]", 6), bf, 4);
    memcpy(&nan, (const char *)fx_safetensors_find(f, "bf")->data + 4, 2);
    ck_assert(fx_bf16_to_f32(nan) != fx_bf16_to_f32(nan));
    ck_assert_mem_eq(data_of(f, "h", "F16", "f16[2]", 4), h, 4);
    ck_assert_mem_eq(fx_safetensors_find(f, "e4")->data, e4, 4);
    ck_assert_mem_eq(fx_safetensors_find(f, "e5")->data, e5, 2);
    ck_assert_str_eq(fx_safetensors_find(f, "e4")->type_name, "F8_E4M3");
    ck_assert_int_eq(fx_safetensors_find(f, "e5")->spec.dtype, FX_TUPLE);
    ck_assert_mem_eq(data_of(f, "i8", "I8", "s8[1]", 1), i8, 1);
    ck_assert_uint_eq(*(const uint8_t *)data_of(f, "weird name \xc3\xa9\"\\/", "U8", "u8[1]", 1), 7);
    ck_assert_uint_eq(fx_safetensors_metadata_count(f), 2);
    ck_assert_str_eq(fx_safetensors_metadata(f, "format"), "pt");
    ck_assert_str_eq(fx_safetensors_metadata(f, "note"), "caf\xc3\xa9");
    ck_assert_ptr_null(fx_safetensors_metadata(f, "absent"));
    ck_assert_ptr_null(fx_safetensors_find(f, "absent"));
    ck_assert_ptr_null(fx_safetensors_get(f, 13));
    fx_spec spec = FX_SPEC(FX_F32, 4);
    float dst[4];
    ck_assert_int_eq(fx_safetensors_read(f, "e4", &spec, dst), FX_UNSUPPORTED);
    ck_assert_error_says("F8_E4M3");
    ck_assert_int_eq(fx_safetensors_read(f, "w", &spec, dst), FX_INVALID_ARGUMENT);
    ck_assert_error_says("expected f32[4]; the file has f32[2,3]");
    ck_assert_int_eq(fx_safetensors_read(f, "absent", &spec, dst), FX_NOT_FOUND);
}

START_TEST(e001_unusual_legal_files_read_the_same_aligned_or_not) {
    size_t n;
    case_file *files = case_files("E-001", &n);
    ck_assert_uint_eq(n, 2);
    for (size_t i = 0; i < n; i++) {
        fx_safetensors *f;
        ck_assert_fx_ok(fx_safetensors_parse(files[i].data, files[i].size, &f));
        check_unusual(f);
        fx_safetensors_close(f);
        const char *path = scratch_path("unusual.safetensors");
        write_file(path, files[i].data, files[i].size);
        ck_assert_fx_ok(fx_safetensors_open(path, &f));
        check_unusual(f);
        fx_safetensors_close(f);
    }
    case_files_free(files, n);
}
END_TEST

static fx_status refuse(const char *name, const void *data, size_t size) {
    fx_safetensors *f = (fx_safetensors *)&f;
    const char *path = scratch_path("hostile.safetensors");
    write_file(path, data, size);
    fx_status status = fx_safetensors_open(path, &f);
    ck_assert_msg(status == FX_BAD_DATA || status == FX_UNSUPPORTED, "%s: %s, expected a refusal", name,
                  fx_status_name(status));
    ck_assert_ptr_null(f);
    ck_assert_error_says("hostile.safetensors");
    ck_assert_int_eq(fx_safetensors_parse(data, size, &f), status);
    ck_assert_ptr_null(f);
    return status;
}

START_TEST(e003_header_length_that_lies_is_refused_quickly) {
    static const struct {
        const char *name, *says;
    } want[] = {{"n_plus_1", "beyond the end"}, {"n_2_63", "beyond the end"},     {"n_max", "beyond the end"},
                {"n_zero", "does not begin"},   {"n_100MB_plus_1", "beyond the"}, {"seven_bytes", "too short"},
                {"empty_file", "too short"},    {"header_cut", "beyond the end"}, {"n_minus_8", "not valid JSON"},
                {"pytorch_zip", "zip archive"}};
    size_t n;
    case_file *files = case_files("E-003", &n);
    ck_assert_uint_eq(n, sizeof want / sizeof *want);
    double start = now_seconds();
    long peak = peak_bytes();
    for (size_t i = 0; i < n; i++) {
        const case_file *file = case_file_named(files, n, want[i].name);
        refuse(file->name, file->data, file->size);
        ck_assert_error_says(want[i].says);
    }
    ck_assert_double_lt(now_seconds() - start, 1);
    ck_assert_int_lt(peak_bytes() - peak, 50 << 20);
    case_files_free(files, n);
}
END_TEST

START_TEST(e005_broken_json_wrong_types_and_hostile_names_are_refused) {
    static const struct {
        const char *name, *says;
    } want[] = {{"invalid_utf8", "JSON"},
                {"surrogate_half", "JSON"},
                {"leading_space", "does not begin"},
                {"bom", "does not begin"},
                {"array_top", "does not begin"},
                {"not_object", "not an object"},
                {"trailing_garbage", "JSON"},
                {"nul_padding", "JSON"},
                {"metadata_number", "__metadata__"},
                {"metadata_nested", "__metadata__"},
                {"unknown_dtype", "Q3"},
                {"missing_shape", "shape"},
                {"comment", "JSON"},
                {"single_quotes", "JSON"},
                {"nul_in_name", "JSON"}};
    size_t n;
    case_file *files = case_files("E-005", &n);
    ck_assert_uint_eq(n, sizeof want / sizeof *want + 1);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const case_file *file = case_file_named(files, n, want[i].name);
        refuse(file->name, file->data, file->size);
        ck_assert_error_says(want[i].says);
    }
    const case_file *empty = case_file_named(files, n, "empty_object");
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_parse(empty->data, empty->size, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 0);
    fx_safetensors_close(f);
    case_files_free(files, n);
}
END_TEST

/* A file of this header, spaces to a multiple of 8, and `bytes` data bytes. */
static unsigned char *make_file(const char *header, size_t bytes, size_t *size) {
    size_t length = (strlen(header) + 7) / 8 * 8;
    *size = 8 + length + bytes;
    unsigned char *p = calloc(*size, 1);
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)((uint64_t)length >> 8 * i);
    memset(p + 8, ' ', length);
    memcpy(p + 8, header, strlen(header));
    return p;
}

START_TEST(e005_depth_long_names_and_a_million_tensors_stay_bounded) {
    size_t size;
    char *header = malloc(110000 + 64), *at = stpcpy(header, "{\"k\":{\"shape\":");
    memset(at, '[', 100000);
    at[100000] = '\0';
    unsigned char *file = make_file(header, 0, &size);
    refuse("deep", file, size);
    ck_assert_error_says("nested too deeply");
    free(file);
    free(header);

    header = malloc((1 << 20) + 128); /* a name of 1 MB is whole */
    at = header + sprintf(header, "{\"");
    memset(at, 'n', 1 << 20);
    strcpy(at + (1 << 20), "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}");
    file = make_file(header, 1, &size);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_parse(file, size, &f));
    ck_assert_uint_eq(strlen(fx_safetensors_get(f, 0)->name), 1 << 20);
    fx_safetensors_close(f);
    free(file);
    free(header);

    long peak = peak_bytes(); /* millions of small values take no memory either */
    header = malloc((15u << 20) + 64);
    at = header + sprintf(header, "{\"k\":{\"dtype\":\"U8\",\"data_offsets\":[0,0],\"shape\":[");
    for (int i = 0; i < 5 << 20; i++)
        at = stpcpy(at, "0,");
    strcpy(at, "0]}}");
    file = make_file(header, 0, &size);
    refuse("dense", file, size);
    ck_assert_error_says("brackets");
    free(file);
    free(header);
    ck_assert_int_lt(peak_bytes() - peak, 100 << 20);

    double start = now_seconds(); /* the limit on headers refuses a million tensors before any is read */
    header = malloc(80u << 20);
    at = header + sprintf(header, "{");
    for (int i = 0; i < 1000000; i++)
        at += sprintf(at, "%s\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", i);
    strcpy(at, "}");
    file = make_file(header, 0, &size);
    refuse("million", file, size);
    ck_assert_error_says("over the limit of 16777216 bytes");
    free(file);
    free(header);
    ck_assert_double_lt(now_seconds() - start, 30);
}
END_TEST

START_TEST(e005_names_are_data_and_messages_escape_them) {
    size_t size;
    unsigned char *file = make_file("{\"../../x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                                    "\"/etc/x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                                    "\"\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                                    1, &size);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_parse(file, size, &f));
    ck_assert_str_eq(fx_safetensors_get(f, 0)->name, "../../x");
    ck_assert_uint_eq(fx_safetensors_find(f, "")->bytes, 1);
    fx_safetensors_close(f);
    free(file);
    file = make_file("{\"a\\u001b[31m\\n\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, &size);
    ck_assert_int_eq(fx_safetensors_parse(file, size, &f), FX_BAD_DATA);
    ck_assert_error_says("\"a\\x1b[31m\\x0a\"");
    free(file);
}
END_TEST

START_TEST(headers_that_contradict_themselves_are_refused) {
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } want[] = {
#define T(type, shape, b, e) "{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" b "," e "]}"
        {"{\"a\":" T("U8", "1", "0", "1") ",\"a\":" T("U8", "1", "1", "2") "}", 2, "JSON"}, /* duplicate tensor */
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "JSON"},
        {"{\"a\":" T("U8", "1", "0", "1") ",\"\\u0061\":" T("U8", "1", "1", "2") "}", 2,
         "JSON"}, /* the same, escaped */
        {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "JSON"},
        {"{\"a\":" T("U8", "2", "0", "2") ",\"b\":" T("U8", "2", "1", "3") "}", 3, "inside another"},
        {"{\"a\":" T("U8", "2", "0", "2") ",\"b\":" T("U8", "2", "0", "2") "}", 2, "inside another"},
        {"{\"a\":" T("U8", "2", "0", "2") ",\"b\":" T("U8", "0", "1", "1") "}", 2, "inside another"},
        {"{\"a\":" T("U8", "1", "1", "2") "}", 2, "after a gap"},
        {"{\"a\":" T("U8", "1", "0", "1") ",\"b\":" T("U8", "1", "2", "3") "}", 3, "after a gap"},
        {"{\"a\":" T("U8", "1", "0", "1") "}", 2, "belong to none"},
        {"{}", 4, "belong to none"},
        {"{\"a\":" T("F32", "1", "0", "4") "}", 3, "within the 3 data bytes"},
        {"{\"a\":" T("F32", "2", "0", "4") "}", 4, "8.0 bytes"},
        {"{\"a\":" T("F32", "1", "4", "0") "}", 4, "range"},
        {"{\"a\":" T("U8", "1", "-1", "0") "}", 1, "two non-negative"},
        {"{\"a\":" T("U8", "-1", "0", "1") "}", 1, "non-negative integer"},
        {"{\"a\":" T("U8", "1.0", "0", "1") "}", 1, "non-negative integer"},
        {"{\"a\":" T("U8", "true", "0", "1") "}", 1, "non-negative integer"},
        {"{\"a\":" T("U8", "\"1\"", "0", "1") "}", 1, "non-negative integer"},
        {"{\"a\":" T("U8", "1e0", "0", "1") "}", 1, "non-negative integer"},
        {"{\"a\":" T("F32", "4294967296,4294967296", "0", "0") "}", 0, "overflows"},
        {"{\"a\":" T("F64", "2305843009213693952", "0", "0") "}", 0, "overflows"},
        {"{\"a\":" T("U8", "18446744073709551617", "0", "1") "}", 1, "JSON"},
        {"{\"a\":" T("U8", "1", "0", "18446744073709551617") "}", 1, "JSON"},
        {"{\"a\":" T("U8", "1,1,1,1,1,1,1,1,1", "0", "1") "}", 1, "rank 9"},
        {"{\"a\":" T("u8", "1", "0", "1") "}", 1, "unknown dtype"},
        {"{\"a\":" T("F4", "3", "0", "1") "}", 1, "1.5 bytes"},
        {"{\"a\":{\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"a\":null}", 0, "not an object"},
#undef T
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        size_t size;
        unsigned char *file = make_file(want[i].header, want[i].bytes, &size);
        refuse(want[i].header, file, size);
        ck_assert_error_says(want[i].says);
        free(file);
    }
    size_t size;
    unsigned char *file = make_file("{\"a\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, &size);
    file[size - 1] = 2;
    refuse("bool 2", file, size);
    ck_assert_error_says("is 2; expected 0 or 1");
    free(file);
}
END_TEST

START_TEST(the_densest_valid_headers_are_read) {
    char *header = malloc(20u << 20), *at = header;
    at += sprintf(at, "{\"__metadata__\":{");
    for (int i = 0; i < 50000; i++)
        at += sprintf(at, "%s\"%x\":\"\"", i ? "," : "", i);
    at += sprintf(at, "}");
    for (int i = 0; i < 50000; i++)
        at += sprintf(at, ",\"%x[[{\":{\"dtype\":\"U8\",\"shape\":[0,1,1,1,1,1,1,1],\"data_offsets\":[0,0]}", i);
    strcpy(at, "}");
    size_t size;
    unsigned char *file = make_file(header, 0, &size);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_parse(file, size, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 50000);
    ck_assert_uint_eq(fx_safetensors_metadata_count(f), 50000);
    ck_assert_int_eq(fx_safetensors_find(f, "c34f[[{")->spec.rank, 8);
    fx_safetensors_close(f);
    free(file);
    free(header);
}
END_TEST

START_TEST(what_is_no_file_is_refused) {
    fx_safetensors *f;
    ck_assert_int_eq(fx_safetensors_open(scratch_path("absent"), &f), FX_NOT_FOUND);
    ck_assert_int_eq(fx_safetensors_open("/tmp", &f), FX_IO_ERROR);
    ck_assert_error_says("a folder");
    ck_assert_int_eq(fx_safetensors_open("/dev/zero", &f), FX_IO_ERROR);
    ck_assert_int_eq(fx_safetensors_open("", &f), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_safetensors_open(NULL, &f), FX_INVALID_ARGUMENT);
}
END_TEST

/* The tensors of E-017; t and s are materialised as their views read: the library's arrays are dense. */
static const uint32_t quoted[2] = {0x7fc00001, 0x80000000};
static const float t_data[6] = {0, 3, 1, 4, 2, 5}, s_data[2] = {2, 5}, shared[3] = {7, 8, 9};
static const uint8_t big[3] = {1, 2, 3};
static const double d_data[1] = {0.1};
#define QUOTED "quote\"back\\slash\xc3\xa9\x01"

static void e017_tensors(fx_named_tensor t[8]) {
    t[0] = (fx_named_tensor){QUOTED, FX_SPEC(FX_F32, 2), quoted, 8, NULL};
    t[1] = (fx_named_tensor){"t", FX_SPEC(FX_F32, 3, 2), t_data, 24, NULL};
    t[2] = (fx_named_tensor){"s", FX_SPEC(FX_F32, 2), s_data, 8, NULL};
    t[3] = (fx_named_tensor){"shared1", FX_SPEC(FX_F32, 3), shared, 12, NULL};
    t[4] = (fx_named_tensor){"shared2", FX_SPEC(FX_F32, 3), shared, 12, NULL};
    t[5] = (fx_named_tensor){"z", FX_SPEC(FX_F32, 0, 5), NULL, 0, NULL};
    t[6] = (fx_named_tensor){"big", FX_SPEC(FX_U8, 3), big, 3, NULL};
    t[7] = (fx_named_tensor){"d", FX_SPEC(FX_F64, 1), d_data, 8, NULL};
}

START_TEST(e017_a_written_file_is_aligned_sorted_and_reads_back_the_same_bits) {
    fx_named_tensor t[8], reversed[8];
    e017_tensors(t);
    for (int i = 0; i < 8; i++)
        reversed[i] = t[7 - i];
    fx_text_pair meta[] = {{"k\"", "v\n"}, {"a", ""}}, swapped[] = {{"a", ""}, {"k\"", "v\n"}};
    const char *one = scratch_path("one.safetensors"), *two = scratch_path("two.safetensors");
    ck_assert_fx_ok(fx_safetensors_write(one, t, 8, meta, 2, NULL));
    ck_assert_fx_ok(fx_safetensors_write(two, reversed, 8, swapped, 2, NULL));
    size_t n1, n2;
    unsigned char *a = read_whole(one, &n1), *b = read_whole(two, &n2);
    ck_assert_uint_eq(n1, n2);
    ck_assert_mem_eq(a, b, n1);
    ck_assert_uint_eq((8 + (a[0] | (size_t)a[1] << 8)) % 8, 0);
    ck_assert_int_eq(a[8], '{');
    free(a);
    free(b);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_open(one, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 8);
    for (int i = 0; i < 8; i++) {
        const fx_named_tensor *r = fx_safetensors_find(f, t[i].name);
        ck_assert_ptr_nonnull(r);
        ck_assert(fx_spec_equal(&r->spec, &t[i].spec));
        if (t[i].bytes) {
            ck_assert_mem_eq(r->data, t[i].data, t[i].bytes);
            ck_assert_uint_eq((uintptr_t)r->data % fx_dtype_size(r->spec.dtype), 0);
        }
    }
    ck_assert_str_eq(fx_safetensors_metadata(f, "k\""), "v\n");
    ck_assert_str_eq(fx_safetensors_metadata(f, "a"), "");
    fx_safetensors_close(f);
    ck_assert_fx_ok(fx_safetensors_write(one, NULL, 0, NULL, 0, NULL));
    ck_assert_fx_ok(fx_safetensors_open(one, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 0);
    fx_safetensors_close(f);
}
END_TEST

static fx_status fetch(void *user, size_t index, const void **data) {
    *(int *)user += 1;
    if (index == 6)
        return FX_CANCELLED;
    *data = t_data;
    return FX_OK;
}

START_TEST(data_may_be_fetched_tensor_by_tensor) {
    fx_named_tensor t[8];
    e017_tensors(t);
    t[1].data = t[6].data = NULL;
    const char *path = scratch_path("fetched.safetensors");
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    int calls = 0;
    fx_safetensors_options o = FX_SAFETENSORS_OPTIONS_INIT;
    o.fetch = fetch;
    o.user = &calls;
    int before = count_scratch_files();
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, &o), FX_CANCELLED);
    ck_assert_int_eq(count_scratch_files(), before);
    ck_assert_fx_ok(fx_safetensors_write(path, t, 6, NULL, 0, &o));
    ck_assert_int_eq(calls, 3);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_open(path, &f));
    ck_assert_mem_eq(fx_safetensors_find(f, "t")->data, t_data, 24);
    fx_safetensors_close(f);
}
END_TEST

START_TEST(tensors_that_cannot_be_written_are_refused_and_the_old_file_stays) {
    fx_named_tensor t[8];
    const char *path = scratch_path("kept.safetensors");
    e017_tensors(t);
    ck_assert_fx_ok(fx_safetensors_write(path, t, 8, NULL, 0, NULL));
    size_t before_size, size;
    unsigned char *before = read_whole(path, &before_size);
    int files = count_scratch_files();
    fx_text_pair twice[] = {{"a", "1"}, {"a", "2"}}, no_value = {"a", NULL}, bad = {"a", "\xff"};
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, twice, 2, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, &no_value, 1, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, &bad, 1, NULL), FX_INVALID_ARGUMENT);
    t[4].name = "shared1";
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    ck_assert_error_says("unique");
    t[4].name = "\xff";
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    ck_assert_error_says("UTF-8");
    t[4].name = "__metadata__";
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    t[4].name = "x";
    t[4].bytes = 11;
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    t[4].bytes = 12;
    t[4].spec.dtype = FX_TUPLE;
    ck_assert_int_eq(fx_safetensors_write(path, t, 8, NULL, 0, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_safetensors_write(scratch_path("no/such/folder"), t, 1, NULL, 0, NULL), FX_NOT_FOUND);
    ck_assert_int_eq(fx_safetensors_write(scratch_dir, t, 1, NULL, 0, NULL), FX_IO_ERROR);
    unsigned char *after = read_whole(path, &size);
    ck_assert_uint_eq(size, before_size);
    ck_assert_mem_eq(after, before, size);
    ck_assert_int_eq(count_scratch_files(), files);
    free(before);
    free(after);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_the_old_file_stays) {
    fx_named_tensor t[8];
    e017_tensors(t);
    ck_assert_int_eq(fx_safetensors_write("/dev/full", t, 8, NULL, 0, NULL), FX_IO_ERROR);
    ck_assert_error_says("No space left");
    const char *path = scratch_path("disk.safetensors");
    ck_assert_fx_ok(fx_safetensors_write(path, t, 8, NULL, 0, NULL));
    int files = count_scratch_files();
    static char large[65536];
    fx_named_tensor l = {"l", FX_SPEC(FX_U8, sizeof large), large, sizeof large, NULL};
    struct rlimit old, tiny = {1024, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &old);
    tiny.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tiny);
    fx_status status = fx_safetensors_write(path, &l, 1, NULL, 0, NULL);
    setrlimit(RLIMIT_FSIZE, &old);
    ck_assert_int_eq(status, FX_IO_ERROR);
    ck_assert_error_says("File too large");
    ck_assert_int_eq(count_scratch_files(), files);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_open(path, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 8);
    fx_safetensors_close(f);
}
END_TEST

START_TEST(a_link_keeps_its_place_when_its_target_is_replaced) {
    fx_named_tensor t[8];
    e017_tensors(t);
    const char *target = scratch_path("target.safetensors"), *link = scratch_path("link.safetensors");
    ck_assert_fx_ok(fx_safetensors_write(target, t, 1, NULL, 0, NULL));
    ck_assert_int_eq(symlink(target, link), 0);
    ck_assert_fx_ok(fx_safetensors_write(link, t, 8, NULL, 0, NULL));
    char buf[256];
    ck_assert_int_gt(readlink(link, buf, sizeof buf), 0);
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_open(target, &f));
    ck_assert_uint_eq(fx_safetensors_count(f), 8);
    fx_safetensors_close(f);
}
END_TEST

int main(void) {
    Suite *s = suite_create("safetensors");
    TCase *c = tcase_create("safetensors");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, e001_unusual_legal_files_read_the_same_aligned_or_not);
    tcase_add_test(c, e003_header_length_that_lies_is_refused_quickly);
    tcase_add_test(c, e005_broken_json_wrong_types_and_hostile_names_are_refused);
    tcase_add_test(c, e005_depth_long_names_and_a_million_tensors_stay_bounded);
    tcase_add_test(c, e005_names_are_data_and_messages_escape_them);
    tcase_add_test(c, headers_that_contradict_themselves_are_refused);
    tcase_add_test(c, the_densest_valid_headers_are_read);
    tcase_add_test(c, what_is_no_file_is_refused);
    tcase_add_test(c, e017_a_written_file_is_aligned_sorted_and_reads_back_the_same_bits);
    tcase_add_test(c, data_may_be_fetched_tensor_by_tensor);
    tcase_add_test(c, tensors_that_cannot_be_written_are_refused_and_the_old_file_stays);
    tcase_add_test(c, a_full_disk_is_an_error_and_the_old_file_stays);
    tcase_add_test(c, a_link_keeps_its_place_when_its_target_is_replaced);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
