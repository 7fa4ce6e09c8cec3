/* test_bad_io.c - every public function of io.h with arguments that make no sense: a status and a sentence, no crash.
 *
 * What files may hold is the matter of the readers' own tests. Each test runs in a process of its own. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/error.h"
#include "fornax/io.h"

static char folder[64], path[96];

static void setup(void) {
    strcpy(folder, "/tmp/fornax-bad-io-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void teardown(void) {
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else may be left in it */
}

/* The call is refused with a text. */
#define REFUSED(call)                                                                    \
    do {                                                                                 \
        fx_error_clear();                                                                \
        fx_status st_ = (call);                                                          \
        ck_assert_msg(st_ == FX_INVALID_ARGUMENT, "%s: %s", #call, fx_status_name(st_)); \
        ck_assert_msg(fx_last_error()[0], "%s: no text", #call);                         \
    } while (0)

#define FAILS(call, status)                                                                        \
    do {                                                                                           \
        fx_error_clear();                                                                          \
        fx_status st_ = (call);                                                                    \
        ck_assert_msg(st_ == (status), "%s: %s: %s", #call, fx_status_name(st_), fx_last_error()); \
        ck_assert_msg(fx_last_error()[0], "%s: no text", #call);                                   \
    } while (0)

static const float four[4] = {1, 2, 3, 4};
static const fx_spec negative = {FX_F32, 1, {-4}}, ranked = {FX_F32, 99, {4}}, tuple = {FX_TUPLE, 1, {4}},
                     huge = {FX_F32, 2, {INT64_MAX, INT64_MAX}};

START_TEST(host_arrays) {
    fx_host_array a = {.data = NULL};
    fx_host_array_free(NULL);
    fx_host_array_free(&a);
    fx_host_array_free(&a);
}
END_TEST

START_TEST(safetensors_reading) {
    fx_safetensors *f = (fx_safetensors *)1;
    fx_spec spec = FX_SPEC(FX_F32, 4);
    float x[4];
    REFUSED(fx_safetensors_open(NULL, &f));
    ck_assert_ptr_null(f);
    REFUSED(fx_safetensors_open("", &f));
    REFUSED(fx_safetensors_open(path, NULL));
    FAILS(fx_safetensors_open(path, &f), FX_NOT_FOUND);
    FAILS(fx_safetensors_open(folder, &f), FX_IO_ERROR);
    REFUSED(fx_safetensors_parse(NULL, 8, &f));
    REFUSED(fx_safetensors_parse("{}", 2, NULL));
    FAILS(fx_safetensors_parse("", 0, &f), FX_BAD_DATA);
    fx_safetensors_close(NULL);
    ck_assert_uint_eq(fx_safetensors_count(NULL), 0);
    ck_assert_ptr_null(fx_safetensors_get(NULL, 0));
    ck_assert_ptr_null(fx_safetensors_find(NULL, "a"));
    ck_assert_ptr_null(fx_safetensors_metadata(NULL, "a"));
    ck_assert_uint_eq(fx_safetensors_metadata_count(NULL), 0);
    ck_assert_ptr_null(fx_safetensors_metadata_get(NULL, 0).key);
    REFUSED(fx_safetensors_read(NULL, "a", &spec, x));
    fx_named_tensor t = {"a", spec, four, sizeof four, NULL};
    ck_assert_int_eq(fx_safetensors_write(path, &t, 1, NULL, 0, NULL), FX_OK);
    ck_assert_int_eq(fx_safetensors_open(path, &f), FX_OK);
    ck_assert_ptr_null(fx_safetensors_get(f, 1));
    ck_assert_ptr_null(fx_safetensors_get(f, SIZE_MAX));
    ck_assert_ptr_null(fx_safetensors_find(f, NULL));
    ck_assert_ptr_null(fx_safetensors_metadata(f, NULL));
    ck_assert_ptr_null(fx_safetensors_metadata_get(f, SIZE_MAX).key);
    REFUSED(fx_safetensors_read(f, NULL, &spec, x));
    REFUSED(fx_safetensors_read(f, "a", NULL, x));
    REFUSED(fx_safetensors_read(f, "a", &spec, NULL));
    REFUSED(fx_safetensors_read(f, "a", &negative, x));
    REFUSED(fx_safetensors_read(f, "a", &ranked, x));
    FAILS(fx_safetensors_read(f, "b", &spec, x), FX_NOT_FOUND);
    fx_safetensors_close(f);
}
END_TEST

static fx_status no_data(void *user, size_t i, const void **data) {
    (void)user, (void)i;
    *data = NULL;
    return FX_OK;
}

static fx_status failing(void *user, size_t i, const void **data) {
    (void)user, (void)i, (void)data;
    return fx_fail(FX_CANCELLED, "the caller's own");
}

START_TEST(safetensors_writing) {
    fx_spec spec = FX_SPEC(FX_F32, 4);
    fx_named_tensor t = {"a", spec, four, sizeof four, NULL}, bad = t;
    fx_text_pair pair = {"k", "v"}, no_key = {NULL, "v"}, no_value = {"k", NULL};
    fx_safetensors_options o = FX_SAFETENSORS_OPTIONS_INIT, size = o;
    REFUSED(fx_safetensors_write(NULL, &t, 1, NULL, 0, NULL));
    REFUSED(fx_safetensors_write("", &t, 1, NULL, 0, NULL));
    REFUSED(fx_safetensors_write(path, NULL, 1, NULL, 0, NULL));
    REFUSED(fx_safetensors_write(path, &t, 1, NULL, 1, NULL));
    REFUSED(fx_safetensors_write(path, &t, 1, &no_key, 1, NULL));
    REFUSED(fx_safetensors_write(path, &t, 1, &no_value, 1, NULL));
    size.struct_size = 1;
    REFUSED(fx_safetensors_write(path, &t, 1, &pair, 1, &size));
    bad.name = NULL;
    REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, NULL));
    bad.name = "\xff";
    REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, NULL));
    bad = t;
    bad.data = NULL;
    REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, NULL));
    o.fetch = no_data;
    REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, &o));
    o.fetch = failing;
    FAILS(fx_safetensors_write(path, &bad, 1, NULL, 0, &o), FX_CANCELLED);
    const fx_spec *specs[] = {&negative, &ranked, &tuple, &huge};
    for (int i = 0; i < 4; i++) {
        bad = t;
        bad.spec = *specs[i];
        REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, NULL));
    }
    bad = t;
    bad.bytes = 15;
    REFUSED(fx_safetensors_write(path, &bad, 1, NULL, 0, NULL));
    FAILS(fx_safetensors_write("/nonexistent/x", &t, 1, NULL, 0, NULL), FX_NOT_FOUND);
    FAILS(fx_safetensors_write(folder, &t, 1, NULL, 0, NULL), FX_IO_ERROR);
}
END_TEST

START_TEST(npy) {
    fx_host_array a = {.data = (void *)1};
    fx_spec spec = FX_SPEC(FX_F32, 4), bf16 = FX_SPEC(FX_BF16, 4);
    REFUSED(fx_npy_load(NULL, &a));
    ck_assert_ptr_null(a.data);
    REFUSED(fx_npy_load(path, NULL));
    FAILS(fx_npy_load(path, &a), FX_NOT_FOUND);
    REFUSED(fx_npy_parse(NULL, 5, &a));
    REFUSED(fx_npy_parse("abc", 3, NULL));
    FAILS(fx_npy_parse("", 0, &a), FX_BAD_DATA);
    REFUSED(fx_npy_save(NULL, &spec, four));
    REFUSED(fx_npy_save(path, NULL, four));
    REFUSED(fx_npy_save(path, &spec, NULL));
    const fx_spec *specs[] = {&negative, &ranked, &tuple, &huge};
    for (int i = 0; i < 4; i++)
        REFUSED(fx_npy_save(path, specs[i], four));
    FAILS(fx_npy_save(path, &bf16, four), FX_UNSUPPORTED);
}
END_TEST

START_TEST(npz) {
    fx_npz *z = (fx_npz *)1;
    fx_host_array a = {.data = (void *)1};
    fx_spec spec = FX_SPEC(FX_F32, 4);
    fx_named_tensor t = {"a", spec, four, sizeof four, NULL}, bad = t;
    fx_npz_close(NULL);
    ck_assert_uint_eq(fx_npz_count(NULL), 0);
    ck_assert_ptr_null(fx_npz_name(NULL, 0));
    fx_status built = fx_npz_write(path, &t, 1);
    if (built == FX_UNSUPPORTED)
        return; /* a build without libzip: checked by it */
    ck_assert_int_eq(built, FX_OK);
    REFUSED(fx_npz_open(NULL, &z));
    ck_assert_ptr_null(z);
    REFUSED(fx_npz_open(path, NULL));
    ck_assert_int_eq(fx_npz_open(path, &z), FX_OK);
    ck_assert_ptr_null(fx_npz_name(z, 1));
    REFUSED(fx_npz_read(NULL, "a", &a));
    REFUSED(fx_npz_read(z, NULL, &a));
    REFUSED(fx_npz_read(z, "a", NULL));
    FAILS(fx_npz_read(z, "b", &a), FX_NOT_FOUND);
    ck_assert_ptr_null(a.data);
    fx_npz_close(z);
    REFUSED(fx_npz_write(NULL, &t, 1));
    REFUSED(fx_npz_write(path, NULL, 1));
    bad.name = NULL;
    REFUSED(fx_npz_write(path, &bad, 1));
    bad = t;
    bad.data = NULL;
    REFUSED(fx_npz_write(path, &bad, 1));
    bad = t;
    bad.bytes = 3;
    REFUSED(fx_npz_write(path, &bad, 1));
    const fx_spec *specs[] = {&negative, &ranked, &tuple, &huge};
    for (int i = 0; i < 4; i++) {
        bad = t;
        bad.spec = *specs[i];
        REFUSED(fx_npz_write(path, &bad, 1));
    }
}
END_TEST

START_TEST(idx) {
    fx_host_array a = {.data = (void *)1};
    REFUSED(fx_idx_load(NULL, &a));
    ck_assert_ptr_null(a.data);
    REFUSED(fx_idx_load(path, NULL));
    FAILS(fx_idx_load(path, &a), FX_NOT_FOUND);
    REFUSED(fx_idx_parse(NULL, 4, &a));
    REFUSED(fx_idx_parse("abcd", 4, NULL));
    FAILS(fx_idx_parse("", 0, &a), FX_BAD_DATA);
}
END_TEST

START_TEST(pictures) {
    unsigned char pixel[4] = {1, 2, 3, 4};
    fx_image image = {.data = (void *)1}, good = {1, 1, 3, FX_U8, pixel}, bad;
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    fx_image_free(NULL);
    REFUSED(fx_image_load(NULL, NULL, &image));
    ck_assert_ptr_null(image.data);
    REFUSED(fx_image_load(path, NULL, NULL));
    FAILS(fx_image_load(path, NULL, &image), FX_NOT_FOUND);
    REFUSED(fx_image_decode(NULL, 9, NULL, &image));
    REFUSED(fx_image_decode("x", 1, NULL, NULL));
    ck_assert_int_ne(fx_image_decode("", 0, NULL, &image), FX_OK);
    ck_assert_int_eq(fx_image_write_png(path, &good), FX_OK);
    const struct {
        int channels, width, height;
        fx_dtype dtype;
    } rows[] = {{-1, 0, 0, FX_U8}, {5, 0, 0, FX_U8},    {0, -1, 4, FX_U8},           {0, 4, 0, FX_U8},
                {0, 4, 4, FX_S32}, {0, 4, 4, FX_TUPLE}, {0, 1 << 30, 1 << 30, FX_U8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        o = (fx_image_options)FX_IMAGE_OPTIONS_INIT;
        o.channels = rows[i].channels;
        o.width = rows[i].width;
        o.height = rows[i].height;
        o.dtype = rows[i].dtype;
        REFUSED(fx_image_load(path, &o, &image));
    }
    o = (fx_image_options)FX_IMAGE_OPTIONS_INIT;
    o.fit = (fx_fit)9;
    o.width = o.height = 4;
    REFUSED(fx_image_load(path, &o, &image));
    o.struct_size = 0;
    REFUSED(fx_image_load(path, &o, &image));
    REFUSED(fx_image_write_png(NULL, &good));
    REFUSED(fx_image_write_png(path, NULL));
    bad = good;
    bad.data = NULL;
    REFUSED(fx_image_write_png(path, &bad));
    bad = good;
    bad.width = -1;
    REFUSED(fx_image_write_png(path, &bad));
    bad = good;
    bad.channels = 5;
    REFUSED(fx_image_write_png(path, &bad));
    bad = good;
    bad.dtype = FX_F32;
    ck_assert_int_ne(fx_image_write_png(path, &bad), FX_OK);
}
END_TEST

static fx_dataset *small_set(void) {
    static const unsigned char pixels[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const int32_t labels[2] = {0, 1};
    fx_spec images = FX_SPEC(FX_U8, 2, 2, 2), ints = FX_SPEC(FX_S32, 2);
    fx_dataset *d;
    ck_assert_int_eq(fx_dataset_from_arrays(&images, pixels, &ints, labels, 0, 0, &d), FX_OK);
    return d;
}

START_TEST(dataset_opening) {
    fx_dataset *d = (fx_dataset *)1;
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    static const char *const names[] = {
        "", "idx", "idx:", "digits:x", "random:", "cifar10:", "folder:", ":", "nonsense"};
    REFUSED(fx_dataset_open(NULL, FX_SPLIT_TRAIN, NULL, &d));
    ck_assert_ptr_null(d);
    REFUSED(fx_dataset_open("random", FX_SPLIT_TRAIN, NULL, NULL));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        REFUSED(fx_dataset_open(names[i], FX_SPLIT_TRAIN, NULL, &d));
    REFUSED(fx_dataset_open("random", (fx_split)7, NULL, &d));
    REFUSED(fx_dataset_open("digits", (fx_split)-1, NULL, &d));
    FAILS(fx_dataset_open("folder:/nonexistent", FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    FAILS(fx_dataset_open("idx:/nonexistent", FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    FAILS(fx_dataset_open("cifar10:/nonexistent", FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    o.struct_size = 3;
    REFUSED(fx_dataset_open("random", FX_SPLIT_TRAIN, &o, &d));
    for (int i = 0; i < 7; i++) {
        o = (fx_dataset_options)FX_DATASET_OPTIONS_INIT;
        if (i == 0)
            o.classes = -1;
        if (i == 1)
            o.count = 0;
        if (i == 2)
            o.channels = 2;
        if (i == 3)
            o.height = -5;
        if (i == 4)
            o.width = 0;
        if (i == 5)
            o.test_fraction = 1.5;
        if (i == 6)
            o.test_fraction = -0.1;
        REFUSED(fx_dataset_open("random", FX_SPLIT_TRAIN, &o, &d));
    }
    REFUSED(fx_dataset_digits(FX_SPLIT_ALL, NULL));
    REFUSED(fx_dataset_digits((fx_split)3, &d));
    REFUSED(fx_dataset_idx(NULL, path, 0, &d));
    REFUSED(fx_dataset_idx(path, NULL, 0, &d));
    REFUSED(fx_dataset_idx(path, path, 0, NULL));
    REFUSED(fx_dataset_idx(path, path, -1, &d));
    FAILS(fx_dataset_idx(path, path, 0, &d), FX_NOT_FOUND);
}
END_TEST

START_TEST(dataset_from_arrays) {
    static const unsigned char pixels[8] = {0};
    static const int32_t labels[2] = {0, 5}, below[2] = {0, -1};
    fx_spec images = FX_SPEC(FX_U8, 2, 2, 2), ints = FX_SPEC(FX_S32, 2), three = FX_SPEC(FX_S32, 3),
            flat = FX_SPEC(FX_U8, 8), floats = FX_SPEC(FX_F32, 2), wrong = FX_SPEC(FX_S32, 2, 2, 2);
    fx_dataset *d = (fx_dataset *)1;
    REFUSED(fx_dataset_from_arrays(NULL, pixels, &ints, labels, 0, 0, &d));
    ck_assert_ptr_null(d);
    REFUSED(fx_dataset_from_arrays(&images, NULL, &ints, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, NULL, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &ints, NULL, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &ints, labels, 0, 0, NULL));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &three, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&flat, pixels, &ints, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &floats, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&wrong, pixels, &ints, labels, 0, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &ints, labels, -1, 0, &d));
    REFUSED(fx_dataset_from_arrays(&images, pixels, &ints, labels, 0, -1, &d));
    const fx_spec *specs[] = {&negative, &ranked, &tuple, &huge};
    for (int i = 0; i < 4; i++)
        REFUSED(fx_dataset_from_arrays(specs[i], pixels, &ints, labels, 0, 0, &d));
    ck_assert_int_ne(fx_dataset_from_arrays(&images, pixels, &ints, labels, 5, 0, &d), FX_OK);
    ck_assert_int_ne(fx_dataset_from_arrays(&images, pixels, &ints, below, 0, 0, &d), FX_OK);
}
END_TEST

START_TEST(dataset_using) {
    fx_dataset *d = small_set(), *a = (fx_dataset *)1, *b = (fx_dataset *)1;
    float image[4], mean[4], std[4];
    int32_t label;
    REFUSED(fx_dataset_split(NULL, 0.5, 0, &a, &b));
    ck_assert(!a && !b);
    REFUSED(fx_dataset_split(d, -1, 0, &a, &b));
    REFUSED(fx_dataset_split(d, (double)__builtin_nanf(""), 0, &a, &b));
    REFUSED(fx_dataset_split(d, 0.5, 0, NULL, &b));
    REFUSED(fx_dataset_split(d, 0.5, 0, &a, NULL));
    ck_assert_ptr_null(fx_dataset_retain(NULL));
    fx_dataset_destroy(NULL);
    ck_assert_ptr_null(fx_dataset_get_info(NULL));
    REFUSED(fx_dataset_read(NULL, 0, image, &label));
    REFUSED(fx_dataset_read(d, -1, image, &label));
    REFUSED(fx_dataset_read(d, 2, image, &label));
    ck_assert_int_eq(fx_dataset_read(d, 1, NULL, &label), FX_OK);
    ck_assert_int_eq(label, 1);
    ck_assert_int_eq(fx_dataset_read(d, 1, image, NULL), FX_OK);
    REFUSED(fx_dataset_statistics(NULL, 0, mean, std));
    REFUSED(fx_dataset_statistics(d, 0, NULL, std));
    REFUSED(fx_dataset_statistics(d, 0, mean, NULL));
    ck_assert_int_eq(fx_dataset_statistics(d, -3, mean, std), FX_OK);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(loaders) {
    fx_dataset *d = small_set();
    fx_loader *l = (fx_loader *)1;
    const fx_batch *batch = (const fx_batch *)1;
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 1;
    REFUSED(fx_loader_create(NULL, &o, &l));
    ck_assert_ptr_null(l);
    REFUSED(fx_loader_create(d, &o, NULL));
    for (int i = 0; i < 13; i++) {
        fx_loader_options x = o;
        if (i == 0)
            x.batch_size = 0;
        if (i == 1)
            x.batch_size = -1;
        if (i == 2)
            x.threads = 0;
        if (i == 3)
            x.prefetch = 1;
        if (i == 4)
            x.layout = (fx_layout)5;
        if (i == 5)
            x.crop_padding = -1;
        if (i == 6)
            x.shards = 0;
        if (i == 7)
            x.shard = 1;
        if (i == 8)
            x.shard = -1;
        if (i == 9)
            x.epochs = -1;
        if (i == 10)
            x.struct_size = 2;
        if (i == 11)
            x.batch_size = INT64_MAX;
        if (i == 12)
            x.mean[0] = __builtin_nanf("");
        fx_error_clear();
        fx_status st = fx_loader_create(d, &x, &l);
        ck_assert_msg(st == FX_INVALID_ARGUMENT || (i == 11 && st == FX_OUT_OF_MEMORY), "row %d: %s", i,
                      fx_status_name(st));
        ck_assert_ptr_null(l);
    }
    fx_loader_destroy(NULL);
    REFUSED(fx_loader_next(NULL, &batch));
    ck_assert_ptr_null(batch);
    REFUSED(fx_loader_seek(NULL, 0, 0));
    ck_assert_int_eq(fx_loader_steps(NULL), 0);
    ck_assert_int_eq(fx_loader_create(d, &o, &l), FX_OK);
    REFUSED(fx_loader_next(l, NULL));
    REFUSED(fx_loader_seek(l, -1, 0));
    REFUSED(fx_loader_seek(l, 0, -1));
    REFUSED(fx_loader_seek(l, 0, 3));
    ck_assert_int_eq(fx_loader_next(l, &batch), FX_OK);
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(plots) {
    static const double y[2] = {1, 2};
    fx_plot *p = (fx_plot *)1;
    fx_plot_options o = FX_PLOT_OPTIONS_INIT;
    fx_image image = {.data = (void *)1};
    REFUSED(fx_plot_create(NULL, NULL));
    static const int sizes[] = {159, 8193, -1, 0};
    for (int i = 0; i < 4; i++) {
        o.width = sizes[i];
        REFUSED(fx_plot_create(&o, &p));
        ck_assert_ptr_null(p);
    }
    o = (fx_plot_options)FX_PLOT_OPTIONS_INIT;
    o.struct_size = 1;
    REFUSED(fx_plot_create(&o, &p));
    fx_plot_destroy(NULL);
    ck_assert_int_eq(fx_plot_create(NULL, &p), FX_OK);
    REFUSED(fx_plot_add(NULL, "a", NULL, y, 2));
    REFUSED(fx_plot_add(p, "a", NULL, NULL, 2));
    REFUSED(fx_plot_add(p, "a", NULL, y, SIZE_MAX));
    ck_assert_int_eq(fx_plot_add(p, NULL, NULL, y, 2), FX_OK);
    ck_assert_int_eq(fx_plot_add(p, "none", NULL, NULL, 0), FX_OK);
    REFUSED(fx_plot_render(NULL, &image));
    ck_assert_ptr_null(image.data);
    REFUSED(fx_plot_render(p, NULL));
    REFUSED(fx_plot_save(NULL, path));
    REFUSED(fx_plot_save(p, NULL));
    fx_plot_destroy(p);
}
END_TEST

int main(void) {
    Suite *s = suite_create("bad_io");
    TCase *c = tcase_create("calls");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, host_arrays);
    tcase_add_test(c, safetensors_reading);
    tcase_add_test(c, safetensors_writing);
    tcase_add_test(c, npy);
    tcase_add_test(c, npz);
    tcase_add_test(c, idx);
    tcase_add_test(c, pictures);
    tcase_add_test(c, dataset_opening);
    tcase_add_test(c, dataset_from_arrays);
    tcase_add_test(c, dataset_using);
    tcase_add_test(c, loaders);
    tcase_add_test(c, plots);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
