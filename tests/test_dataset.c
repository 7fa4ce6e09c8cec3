/* test_dataset.c - data sets: digits, IDX pairs (E-009), CIFAR, folders, noise, splits and statistics. */
#include <math.h>
#include <sys/stat.h>

#include "case_files.h"

static fx_dataset *open_set(const char *uri, fx_split split, const fx_dataset_options *o) {
    fx_dataset *d;
    ck_assert_fx_ok(fx_dataset_open(uri, split, o, &d));
    return d;
}

static void write_idx(const char *path, int rank, const uint32_t *dims, const uint8_t *data, size_t n) {
    uint8_t *file = calloc(4 + 4 * (size_t)rank + n, 1);
    file[2] = 8;
    file[3] = (uint8_t)rank;
    for (int d = 0; d < rank; d++)
        for (int b = 0; b < 4; b++)
            file[4 + 4 * d + b] = (uint8_t)(dims[d] >> (24 - 8 * b));
    memcpy(file + 4 + 4 * rank, data, n);
    write_file(path, file, 4 + 4 * (size_t)rank + n);
    free(file);
}

START_TEST(a_source_with_classes_of_its_own_refuses_another_number) {
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    fx_dataset *d;
    o.classes = 10;
    fx_dataset_destroy(open_set("digits", FX_SPLIT_TEST, &o));
    static const int wrong[] = {1, 9, 11, 1000};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.classes = wrong[i];
        ck_assert_int_eq(fx_dataset_open("digits", FX_SPLIT_TRAIN, &o, &d), FX_INVALID_ARGUMENT);
        ck_assert_ptr_null(d);
        ck_assert_error_says("digits has 10 classes");
        ck_assert_int_eq(fx_dataset_open("cifar10:/nowhere", FX_SPLIT_TRAIN, &o, &d), FX_INVALID_ARGUMENT);
        ck_assert_int_eq(fx_dataset_open("cifar100:/nowhere", FX_SPLIT_TRAIN, &o, &d), FX_INVALID_ARGUMENT);
        ck_assert_error_says("cifar100 has 100 classes");
    }
}
END_TEST

START_TEST(the_digits_come_with_the_library_and_split_the_same_everywhere) {
    fx_dataset *all = open_set("digits", FX_SPLIT_ALL, NULL), *train = open_set("digits", FX_SPLIT_TRAIN, NULL),
               *test = open_set("digits", FX_SPLIT_TEST, NULL);
    const fx_dataset_info *info = fx_dataset_get_info(all);
    ck_assert_int_eq(info->count, 1797);
    ck_assert_int_eq(info->channels, 1);
    ck_assert(info->height == 8 && info->width == 8 && info->classes == 10);
    ck_assert_str_eq(info->label_names[7], "7");
    ck_assert_str_eq(info->name, "digits");
    ck_assert(info->scale == 1.0f / 16);
    static const uint8_t first[16] = {0, 0, 5,  13, 9,  1,  0, 0,
                                      0, 0, 13, 15, 10, 15, 5, 0}; /* scikit-learn's first two rows */
    float image[64];
    int32_t label;
    ck_assert_fx_ok(fx_dataset_read(all, 0, image, &label));
    ck_assert_int_eq(label, 0);
    for (int i = 0; i < 16; i++)
        ck_assert(image[i] == (float)first[i] / 16);
    static const int counts[10] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    int seen[10] = {0}, held[10] = {0};
    double pixels = 0;
    for (int64_t i = 0; i < 1797; i++) {
        ck_assert_fx_ok(fx_dataset_read(all, i, image, &label));
        seen[label]++;
        for (int k = 0; k < 64; k++)
            pixels += (double)image[k] * 16;
    }
    ck_assert(pixels == 561718); /* scikit-learn's digits.images.sum() */
    ck_assert_int_eq(fx_dataset_get_info(train)->count, 1438);
    ck_assert_int_eq(fx_dataset_get_info(test)->count, 359);
    uint64_t hash =
        1469598103934665603u; /* FNV-1a over the test set's labels and pixels: the split is fixed for good */
    for (int64_t i = 0; i < 359; i++) {
        ck_assert_fx_ok(fx_dataset_read(test, i, image, &label));
        held[label]++;
        hash = (hash ^ (uint64_t)label) * 1099511628211u;
        for (int k = 0; k < 64; k++)
            hash = (hash ^ (uint64_t)(image[k] * 16)) * 1099511628211u;
    }
    for (int c = 0; c < 10; c++) {
        ck_assert_int_eq(seen[c], counts[c]);
        ck_assert_int_eq(held[c], (int)(counts[c] * 0.2 + 0.5));
    }
    ck_assert_msg(hash == UINT64_C(3980087121202546763), "hash %llu", (unsigned long long)hash);
    float mean, std;
    ck_assert_fx_ok(fx_dataset_statistics(all, 0, &mean, &std));
    ck_assert_double_eq_tol((double)mean, 561718.0 / 1797 / 64 / 16, 1e-6);
    ck_assert_double_eq_tol((double)std, 0.37604, 1e-4);
    fx_dataset_destroy(all);
    fx_dataset_destroy(train);
    fx_dataset_destroy(test);
}
END_TEST

START_TEST(the_digits_are_looked_for_where_the_environment_says) {
    setenv("FORNAX_DATA_DIR", scratch_path("data"), 1);
    mkdir(scratch_path("data"), 0700);
    fx_dataset *d = open_set("digits", FX_SPLIT_ALL, NULL); /* nothing there: the next place */
    fx_dataset_destroy(d);
    mkdir(scratch_path("data/digits"), 0700);
    write_idx(scratch_path("data/digits/images-idx3-ubyte"), 3, (uint32_t[]){2, 1, 1}, (uint8_t[]){16, 0}, 2);
    write_idx(scratch_path("data/digits/labels-idx1-ubyte"), 1, (uint32_t[]){2}, (uint8_t[]){3, 9}, 2);
    d = open_set("digits", FX_SPLIT_ALL, NULL);
    ck_assert_int_eq(fx_dataset_get_info(d)->count, 2);
    fx_dataset_destroy(d);
    unsetenv("FORNAX_DATA_DIR");
}
END_TEST

START_TEST(e009_pairs_that_do_not_belong_together_are_refused) {
    const char *images = scratch_path("images"), *labels = scratch_path("labels");
    uint8_t pixels[40] = {0}, y[10] = {0, 1, 2, 3, 4, 12, 6, 7, 8, 9};
    fx_dataset *d;
    write_idx(images, 3, (uint32_t[]){10, 2, 2}, pixels, 40);
    write_idx(labels, 1, (uint32_t[]){9}, y, 9);
    ck_assert_int_eq(fx_dataset_idx(images, labels, 10, &d), FX_INVALID_ARGUMENT);
    ck_assert_error_says("10 images but 9 labels");
    write_idx(labels, 1, (uint32_t[]){10}, y, 10);
    ck_assert_int_eq(fx_dataset_idx(images, labels, 10, &d), FX_BAD_DATA);
    ck_assert_error_says("label 12 of sample 5; expected 0 to 9");
    ck_assert_error_says("images");
    ck_assert_fx_ok(fx_dataset_idx(images, labels, 0, &d));
    ck_assert_int_eq(fx_dataset_get_info(d)->classes, 13);
    fx_dataset_destroy(d);
    ck_assert_int_eq(fx_dataset_idx(labels, images, 0, &d), FX_INVALID_ARGUMENT); /* swapped */
    write_idx(images, 3, (uint32_t[]){0, 28, 28}, pixels, 0);
    write_idx(labels, 1, (uint32_t[]){0}, y, 0);
    ck_assert_int_eq(fx_dataset_idx(images, labels, 0, &d), FX_BAD_DATA);
    ck_assert_error_says("no samples");
}
END_TEST

START_TEST(an_idx_folder_has_both_splits_and_names_a_compressed_file) {
    char uri[128];
    snprintf(uri, sizeof uri, "idx:%s", (scratch_path("x"), scratch_dir));
    uint8_t pixels[8] = {0, 51, 102, 255, 1, 2, 3, 4}, y[2] = {5, 0};
    fx_dataset *d;
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    ck_assert_error_says("train-images-idx3-ubyte");
    write_file(scratch_path("train-images-idx3-ubyte.gz"), "\x1f\x8b", 2);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    ck_assert_error_says("gunzip");
    write_idx(scratch_path("train-images-idx3-ubyte"), 3, (uint32_t[]){2, 2, 2}, pixels, 8);
    write_idx(scratch_path("train-labels-idx1-ubyte"), 1, (uint32_t[]){2}, y, 2);
    write_idx(scratch_path("t10k-images.idx3-ubyte"), 3, (uint32_t[]){1, 2, 2}, pixels, 4);
    write_idx(scratch_path("t10k-labels.idx1-ubyte"), 1, (uint32_t[]){1}, y + 1, 1);
    d = open_set(uri, FX_SPLIT_TRAIN, NULL);
    float image[4];
    int32_t label;
    ck_assert_fx_ok(fx_dataset_read(d, 0, image, &label));
    ck_assert_int_eq(label, 5);
    ck_assert_double_eq_tol((double)image[1], 0.2, 1e-7);
    ck_assert(image[3] == 1);
    ck_assert_int_eq(fx_dataset_read(d, 2, image, &label), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_read(d, -1, image, &label), FX_INVALID_ARGUMENT);
    fx_dataset_destroy(d);
    d = open_set(uri, FX_SPLIT_TEST, NULL);
    ck_assert_int_eq(fx_dataset_get_info(d)->classes, 6); /* the training set's, though no test label says so */
    fx_dataset_destroy(d);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_ALL, NULL, &d), FX_INVALID_ARGUMENT);
}
END_TEST

static void write_cifar(const char *name, int n, int label_bytes, int label) {
    size_t record = (size_t)label_bytes + 3072;
    uint8_t *data = malloc((size_t)n * record + 1);
    for (int i = 0; i < n; i++) {
        uint8_t *p = data + (size_t)i * record;
        p[0] = 255; /* the coarse label, which does not count */
        p[label_bytes - 1] = (uint8_t)label;
        for (int k = 0; k < 3072; k++)
            p[label_bytes + k] = (uint8_t)(k / 1024 * 80 + k % 1024 % 32);
    }
    write_file(scratch_path(name), data, (size_t)n * record);
    free(data);
}

START_TEST(cifar_files_read_planes_and_refuse_damage) {
    char uri[128] = "", name[32];
    snprintf(uri, sizeof uri, "cifar10:%s", (scratch_path("x"), scratch_dir));
    fx_dataset *d;
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    for (int i = 1; i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        write_cifar(name, i, 1, i);
    }
    d = open_set(uri, FX_SPLIT_TRAIN, NULL);
    ck_assert_int_eq(fx_dataset_get_info(d)->count, 15);
    ck_assert_int_eq(fx_dataset_get_info(d)->classes, 10);
    float image[3072];
    int32_t label;
    ck_assert_fx_ok(fx_dataset_read(d, 3, image, &label));
    ck_assert_int_eq(label, 3);
    for (int i = 0; i < 3072; i++)
        ck_assert_double_eq_tol((double)image[i] * 255, i % 3 * 80 + i / 3 % 32, 1e-4);
    fx_dataset_destroy(d);
    write_file(scratch_path("batches.meta.txt"), "a\nb\nc\nd\ne\nf\ng\nh\ni\r\ntruck\n\n", 26);
    d = open_set(uri, FX_SPLIT_TRAIN, NULL);
    ck_assert_str_eq(fx_dataset_get_info(d)->label_names[8], "i");
    ck_assert_str_eq(fx_dataset_get_info(d)->label_names[9], "truck");
    fx_dataset_destroy(d);
    write_cifar("test_batch.bin", 2, 1, 10);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TEST, NULL, &d), FX_BAD_DATA);
    ck_assert_error_says("label 10 of record 0");
    ck_assert_error_says("test_batch.bin");
    write_file(scratch_path("test_batch.bin"), uri, 100);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TEST, NULL, &d), FX_BAD_DATA);
    ck_assert_error_says("multiple of 3073");
    write_file(scratch_path("test_batch.bin"), uri, 0);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TEST, NULL, &d), FX_BAD_DATA);
    snprintf(uri, sizeof uri, "cifar100:%s", scratch_dir);
    write_cifar("train.bin", 3, 2, 99);
    d = open_set(uri, FX_SPLIT_TRAIN, NULL);
    ck_assert_fx_ok(fx_dataset_read(d, 2, NULL, &label));
    ck_assert_int_eq(label, 99);
    ck_assert_int_eq(fx_dataset_get_info(d)->classes, 100);
    fx_dataset_destroy(d);
}
END_TEST

static void write_flat(const char *name, int w, int h, uint8_t r, uint8_t g, uint8_t b) {
    fx_image image = {w, h, 3, FX_U8, malloc((size_t)(w * h * 3))};
    for (int i = 0; i < w * h; i++)
        memcpy((uint8_t *)image.data + 3 * i, (uint8_t[]){r, g, b}, 3);
    ck_assert_fx_ok(fx_image_write_png(scratch_path(name), &image));
    fx_image_free(&image);
}

START_TEST(image_folders_give_classes_in_name_order_and_name_damaged_files) {
    char uri[128];
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    fx_dataset *d;
    o.height = 4;
    o.width = 6;
    snprintf(uri, sizeof uri, "folder:%s", (scratch_path("x"), scratch_dir));
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_ALL, &o, &d), FX_BAD_DATA);
    ck_assert_error_says("no class folders");
    static const char *const dirs[] = {"a", "a-b", "B", ".hidden", "B/inner.png"};
    for (int i = 0; i < 5; i++)
        mkdir(scratch_path(dirs[i]), 0700);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_ALL, &o, &d), FX_BAD_DATA);
    ck_assert_error_says("no .png, .jpg or .jpeg");
    write_flat("a/2.PNG", 10, 10, 255, 0, 0);
    write_flat("a/1.png", 5, 3, 0, 255, 0);
    write_flat("a-b/x.png", 1, 1, 0, 0, 255);
    write_flat("B/y.png", 100, 1, 51, 51, 51);
    write_flat("a/.z.png", 1, 1, 0, 0, 0);
    write_file(scratch_path("a/readme.txt"), "x", 1);
    write_file(scratch_path("stray.png"), "x", 1);
    d = open_set(uri, FX_SPLIT_ALL, &o);
    const fx_dataset_info *info = fx_dataset_get_info(d);
    ck_assert_int_eq(info->count, 4);
    ck_assert_int_eq(info->classes, 3);
    ck_assert_str_eq(info->label_names[0], "B");
    ck_assert_str_eq(info->label_names[1], "a");
    ck_assert_str_eq(info->label_names[2], "a-b");
    float image[72];
    int32_t label;
    static const float want[4][3] = {{0.2f, 0.2f, 0.2f}, {0, 1, 0}, {1, 0, 0}, {0, 0, 1}};
    static const int labels[4] = {0, 1, 1, 2};
    for (int i = 0; i < 4; i++) {
        ck_assert_fx_ok(fx_dataset_read(d, i, image, &label));
        ck_assert_int_eq(label, labels[i]);
        for (int k = 0; k < 72; k++)
            ck_assert_double_eq_tol((double)image[k], (double)want[i][k % 3], 1e-6);
    }
    write_file(scratch_path("a/1.png"), "<html>", 6);
    ck_assert_int_eq(fx_dataset_read(d, 1, image, &label), FX_UNSUPPORTED);
    ck_assert_error_says("a/1.png");
    fx_dataset_destroy(d);
    o.classes = 4;
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_ALL, &o, &d), FX_INVALID_ARGUMENT);
    ck_assert_error_says("3 class folders; 4 classes");
}
END_TEST

START_TEST(an_image_folder_with_train_and_test_shares_the_classes) {
    char uri[128];
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    fx_dataset *d;
    o.height = o.width = 2;
    o.channels = 1;
    snprintf(uri, sizeof uri, "folder:%s", (scratch_path("x"), scratch_dir));
    static const char *const dirs[] = {"train", "val", "train/cat", "train/dog", "val/dog"};
    for (int i = 0; i < 5; i++)
        mkdir(scratch_path(dirs[i]), 0700);
    write_flat("train/cat/1.png", 2, 2, 9, 9, 9);
    write_flat("train/dog/1.png", 2, 2, 9, 9, 9);
    write_flat("val/dog/1.png", 2, 2, 9, 9, 9);
    d = open_set(uri, FX_SPLIT_TEST, &o);
    int32_t label;
    ck_assert_fx_ok(fx_dataset_read(d, 0, NULL, &label));
    ck_assert_int_eq(label, 1);
    ck_assert_int_eq(fx_dataset_get_info(d)->classes, 2);
    fx_dataset_destroy(d);
    mkdir(scratch_path("val/emu"), 0700);
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_TEST, &o, &d), FX_BAD_DATA);
    ck_assert_error_says("\"emu\"");
    ck_assert_int_eq(fx_dataset_open(uri, FX_SPLIT_ALL, &o, &d), FX_INVALID_ARGUMENT);
}
END_TEST

START_TEST(noise_is_the_same_each_time_and_differs_between_splits) {
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    o.count = 50;
    o.classes = 7;
    o.height = 5;
    o.width = 3;
    fx_dataset *a = open_set("random", FX_SPLIT_TRAIN, &o), *b = open_set("random", FX_SPLIT_TRAIN, &o),
               *t = open_set("random", FX_SPLIT_TEST, &o);
    ck_assert_int_eq(fx_dataset_get_info(t)->count, 10);
    float x[45], y[45], mean[3], std[3];
    int32_t label;
    ck_assert_fx_ok(fx_dataset_read(a, 3, x, &label));
    ck_assert(label >= 0 && label < 7);
    ck_assert_fx_ok(fx_dataset_read(b, 3, y, &label));
    ck_assert_mem_eq(x, y, sizeof x);
    ck_assert_fx_ok(fx_dataset_read(t, 3, y, &label));
    ck_assert_mem_ne(x, y, sizeof x);
    ck_assert_fx_ok(fx_dataset_statistics(a, 0, mean, std));
    for (int c = 0; c < 3; c++) {
        ck_assert_double_eq_tol((double)mean[c], 0.5, 0.06);
        ck_assert_double_eq_tol((double)std[c], 0.2887, 0.03);
    }
    fx_dataset_destroy(a);
    fx_dataset_destroy(b);
    fx_dataset_destroy(t);
}
END_TEST

START_TEST(splits_are_stratified_disjoint_and_survive_their_parent) {
    uint8_t images[100];
    int64_t labels[100];
    for (int i = 0; i < 100; i++) {
        images[i] = (uint8_t)i;
        labels[i] = i % 4 == 0; /* 75 and 25 */
    }
    fx_spec xs = FX_SPEC(FX_U8, 100, 1, 1, 1), ys = FX_SPEC(FX_S64, 100);
    fx_dataset *d, *train, *test, *train2, *test2;
    ck_assert_fx_ok(fx_dataset_from_arrays(&xs, images, &ys, labels, 2, 1, &d));
    ck_assert_fx_ok(fx_dataset_split(d, 0.3, 5, &train, &test));
    ck_assert_fx_ok(fx_dataset_split(d, 0.3, 6, &train2, &test2));
    fx_dataset_destroy(d);
    ck_assert_int_eq(fx_dataset_get_info(test)->count, 23 + 8);
    ck_assert_int_eq(fx_dataset_get_info(train)->count, 100 - 31);
    int seen[100] = {0}, same = 0;
    float v, w, last = -1;
    int32_t label;
    for (int64_t i = 0; i < 31; i++) {
        ck_assert_fx_ok(fx_dataset_read(test, i, &v, &label));
        ck_assert_fx_ok(fx_dataset_read(test2, i, &w, NULL));
        ck_assert_int_eq(label, (int)v % 4 == 0);
        ck_assert(v > last);
        last = v;
        seen[(int)v]++;
        same += v == w;
    }
    ck_assert_int_lt(same, 31);
    for (int64_t i = 0; i < 69; i++) {
        ck_assert_fx_ok(fx_dataset_read(train, i, &v, &label));
        seen[(int)v]++;
    }
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(seen[i], 1);
    fx_dataset_destroy(train2);
    fx_dataset_destroy(test2);
    ck_assert_int_eq(fx_dataset_split(test, 0, 0, &train2, &test2), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_split(test, -1, 0, &train2, &test2), FX_INVALID_ARGUMENT);
    fx_dataset_destroy(train);
    fx_dataset_destroy(test);
}
END_TEST

START_TEST(wrong_arrays_names_and_options_are_refused) {
    float x[4] = {0};
    int32_t y[4] = {0, 1, -1, 0};
    fx_spec xs = FX_SPEC(FX_F32, 4, 1, 1), ys = FX_SPEC(FX_S32, 4), flat = FX_SPEC(FX_F32, 4),
            three = FX_SPEC(FX_S32, 3);
    fx_spec f16 = FX_SPEC(FX_F16, 4, 1, 1), wide = FX_SPEC(FX_F32, 4, 1, 1, 5);
    fx_dataset *d;
    ck_assert_int_eq(fx_dataset_from_arrays(&xs, x, &ys, y, 2, 0, &d), FX_BAD_DATA);
    ck_assert_error_says("sample 2 is negative");
    ck_assert_int_eq(fx_dataset_from_arrays(&flat, x, &ys, y, 2, 0, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_from_arrays(&f16, x, &ys, y, 2, 0, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_from_arrays(&wide, x, &ys, y, 2, 0, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_from_arrays(&xs, x, &flat, y, 2, 0, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_from_arrays(&xs, x, &three, y, 2, 0, &d), FX_INVALID_ARGUMENT);
    static const char *const names[] = {"", "mnist", "idx", "idx:", "digits:x", "randomly", "folder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ck_assert_int_eq(fx_dataset_open(names[i], FX_SPLIT_TRAIN, NULL, &d), FX_INVALID_ARGUMENT);
        ck_assert_error_says("expected digits, random, idx:DIR");
    }
    ck_assert_int_eq(fx_dataset_open(NULL, FX_SPLIT_TRAIN, NULL, &d), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_dataset_open("folder:/no/such", FX_SPLIT_TRAIN, NULL, &d), FX_NOT_FOUND);
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    o.channels = 2;
    ck_assert_int_eq(fx_dataset_open("random", FX_SPLIT_TRAIN, &o, &d), FX_INVALID_ARGUMENT);
    o.struct_size = 0;
    ck_assert_int_eq(fx_dataset_open("random", FX_SPLIT_TRAIN, &o, &d), FX_INVALID_ARGUMENT);
    ck_assert_error_says("struct_size");
}
END_TEST

int main(void) {
    Suite *s = suite_create("dataset");
    TCase *c = tcase_create("dataset");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, a_source_with_classes_of_its_own_refuses_another_number);
    tcase_add_test(c, the_digits_come_with_the_library_and_split_the_same_everywhere);
    tcase_add_test(c, the_digits_are_looked_for_where_the_environment_says);
    tcase_add_test(c, e009_pairs_that_do_not_belong_together_are_refused);
    tcase_add_test(c, an_idx_folder_has_both_splits_and_names_a_compressed_file);
    tcase_add_test(c, cifar_files_read_planes_and_refuse_damage);
    tcase_add_test(c, image_folders_give_classes_in_name_order_and_name_damaged_files);
    tcase_add_test(c, an_image_folder_with_train_and_test_shares_the_classes);
    tcase_add_test(c, noise_is_the_same_each_time_and_differs_between_splits);
    tcase_add_test(c, splits_are_stratified_disjoint_and_survive_their_parent);
    tcase_add_test(c, wrong_arrays_names_and_options_are_refused);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
