/* test_loader.c - the batch loader: order, resume, partial batches (C-011), shards, augmentation, errors, shutdown. */
#include <math.h>
#include <sys/stat.h>

#include "case_files.h"

/* n samples of h x w x c u8; sample i's label is i mod classes and its first byte i mod 256. */
static fx_dataset *make_set(int n, int h, int w, int c, int classes) {
    size_t size = (size_t)(h * w * c);
    uint8_t *images = malloc((size_t)n * size);
    int32_t *labels = malloc((size_t)n * sizeof *labels);
    for (int i = 0; i < n; i++) {
        for (size_t k = 0; k < size; k++)
            images[(size_t)i * size + k] = (uint8_t)((size_t)i + k);
        labels[i] = i % classes;
    }
    fx_spec xs = FX_SPEC(FX_U8, n, h, w, c), ys = FX_SPEC(FX_S32, n);
    fx_dataset *d;
    ck_assert_fx_ok(fx_dataset_from_arrays(&xs, images, &ys, labels, classes, 1, &d));
    free(images);
    free(labels);
    return d;
}

static fx_loader *make_loader(fx_dataset *d, const fx_loader_options *o) {
    fx_loader *l;
    ck_assert_fx_ok(fx_loader_create(d, o, &l));
    return l;
}

static const fx_batch *next(fx_loader *l) {
    const fx_batch *b;
    ck_assert_fx_ok(fx_loader_next(l, &b));
    return b;
}

/* Accuracy and mean loss as an evaluation sums them, over all shards; *batches of shard 0. */
static void evaluate(fx_dataset *d, int64_t batch, int shards, const int *correct, double *accuracy, double *loss,
                     int *batches) {
    double hits = 0, losses = 0;
    int64_t seen = 0;
    *batches = 0;
    for (int shard = 0; shard < shards; shard++) {
        fx_loader_options o = FX_LOADER_OPTIONS_INIT;
        o.batch_size = batch;
        o.epochs = 1;
        o.shard = shard;
        o.shards = shards;
        fx_loader *l = make_loader(d, &o);
        const fx_batch *b;
        int steps = 0;
        while ((b = next(l)) != NULL) {
            for (int64_t i = 0; i < b->count; i++) {
                int64_t index = b->indices[i];
                hits += correct ? correct[index] : 0;
                losses += 0.1 * (double)index;
            }
            for (int64_t i = b->count; i < batch; i++) {
                ck_assert_int_eq(b->labels[i], -1);
                ck_assert_int_eq(b->indices[i], -1);
                ck_assert(b->images[i] == 0);
            }
            seen += b->count;
            steps++;
        }
        ck_assert_int_eq(steps, fx_loader_steps(l));
        *batches = shard == 0 ? steps : *batches;
        ck_assert_int_eq(steps, *batches); /* shards step together */
        fx_loader_destroy(l);
    }
    ck_assert_int_eq(seen, fx_dataset_get_info(d)->count);
    *accuracy = hits / (double)seen;
    *loss = losses / (double)seen;
}

START_TEST(c011_evaluation_counts_every_sample_once) {
    static const int correct[10] = {1, 1, 0, 1, 0, 0, 1, 1, 1, 0};
    fx_dataset *ten = make_set(10, 1, 1, 1, 10), *many = make_set(103, 1, 1, 1, 10);
    double accuracy, loss;
    int batches;
    for (int world = 1; world <= 4; world++) {
        evaluate(ten, 4, world, correct, &accuracy, &loss, &batches);
        ck_assert_double_eq_tol(accuracy, 0.6, 1e-9);
        ck_assert_double_eq_tol(loss, 0.45, 1e-9);
        if (world == 1)
            ck_assert_int_eq(batches, 3);
    }
    evaluate(ten, 64, 1, correct, &accuracy, &loss, &batches); /* larger than the set */
    ck_assert_double_eq_tol(accuracy, 0.6, 1e-9);
    ck_assert_int_eq(batches, 1);
    evaluate(many, 10, 1, NULL, &accuracy, &loss, &batches);
    ck_assert_int_eq(batches, 11);
    ck_assert_double_eq_tol(loss, 5.1, 1e-9);
    evaluate(many, 10, 3, NULL, &accuracy, &loss, &batches);
    ck_assert_double_eq_tol(loss, 5.1, 1e-9);
    fx_dataset_destroy(ten);
    fx_dataset_destroy(many);
}
END_TEST

START_TEST(each_epoch_is_a_new_permutation_and_drop_last_leaves_out_the_rest) {
    fx_dataset *d = make_set(103, 1, 1, 1, 10);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 10;
    o.shuffle = o.drop_last = true;
    o.epochs = 3;
    fx_loader *l = make_loader(d, &o);
    ck_assert_int_eq(fx_loader_steps(l), 10);
    int64_t first[3][10];
    for (int e = 0; e < 3; e++) {
        int seen[103] = {0}, moved = 0;
        for (int s = 0; s < 10; s++) {
            const fx_batch *b = next(l);
            ck_assert(b->epoch == e && b->step == s && b->count == 10);
            for (int i = 0; i < 10; i++) {
                ck_assert_int_eq(b->labels[i], (int)(b->indices[i] % 10));
                ck_assert(b->images[i] == (float)b->indices[i]);
                ck_assert_int_eq(seen[b->indices[i]]++, 0);
                moved += b->indices[i] != s * 10 + i;
                if (s == 0)
                    first[e][i] = b->indices[i];
            }
        }
        ck_assert_int_gt(moved, 80);
    }
    ck_assert_mem_ne(first[0], first[1], sizeof first[0]);
    ck_assert_mem_ne(first[1], first[2], sizeof first[0]);
    ck_assert_ptr_null(next(l));
    ck_assert_ptr_null(next(l));
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(places_of_a_shuffled_sample_are_uniform) {
    fx_dataset *d = make_set(8, 1, 1, 1, 8);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    int counts[8][8] = {{0}};
    o.batch_size = 8;
    o.shuffle = true;
    o.epochs = 4000;
    fx_loader *l = make_loader(d, &o);
    const fx_batch *b;
    while ((b = next(l)) != NULL)
        for (int i = 0; i < 8; i++)
            counts[i][b->indices[i]]++;
    double chi = 0; /* 49 degrees of freedom: 99.9 % of the time below 85.4 */
    for (int i = 0; i < 64; i++)
        chi += pow(counts[i / 8][i % 8] - 500.0, 2) / 500;
    ck_assert_double_lt(chi, 86);
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

static uint64_t hash_batch(const fx_batch *b, int64_t batch, size_t sample) {
    uint64_t h = 1469598103934665603u;
    const unsigned char *parts[3] = {(const unsigned char *)b->images, (const unsigned char *)b->labels,
                                     (const unsigned char *)b->indices};
    size_t sizes[3] = {(size_t)batch * sample * 4, (size_t)batch * 4, (size_t)batch * 8};
    for (int p = 0; p < 3; p++)
        for (size_t i = 0; i < sizes[p]; i++)
            h = (h ^ parts[p][i]) * 1099511628211u;
    return h;
}

START_TEST(any_position_resumes_exactly_whatever_the_number_of_threads) {
    fx_dataset *d = make_set(23, 6, 5, 3, 4);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 4;
    o.shuffle = o.flip = true;
    o.crop_padding = 2;
    o.seed = 77;
    enum { N = 40 };
    uint64_t want[N];
    fx_loader *l = make_loader(d, &o);
    ck_assert_int_eq(fx_loader_steps(l), 6);
    for (int i = 0; i < N; i++)
        want[i] = hash_batch(next(l), 4, 90);
    for (int i = N - 1; i >= 0; i--) { /* seek backwards, forwards and over the end of an epoch in a used loader */
        ck_assert_fx_ok(fx_loader_seek(l, i / 6, i % 6));
        ck_assert(hash_batch(next(l), 4, 90) == want[i]);
        if (i % 7 == 0 && i + 1 < N)
            ck_assert(hash_batch(next(l), 4, 90) == want[i + 1]);
    }
    ck_assert_fx_ok(fx_loader_seek(l, 1, 6));
    ck_assert(hash_batch(next(l), 4, 90) == want[12]);
    ck_assert_int_eq(fx_loader_seek(l, 0, 7), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_loader_seek(l, -1, 0), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_loader_seek(l, INT64_MAX, 0), FX_INVALID_ARGUMENT);
    fx_loader_destroy(l);
    for (int threads = 2; threads <= 5; threads += 3) {
        o.threads = threads;
        o.prefetch = 7;
        l = make_loader(d, &o);
        ck_assert_fx_ok(fx_loader_seek(l, 0, 3));
        for (int i = 3; i < N; i++)
            ck_assert(hash_batch(next(l), 4, 90) == want[i]);
        fx_loader_destroy(l);
    }
    o.seed = 78;
    l = make_loader(d, &o);
    ck_assert(hash_batch(next(l), 4, 90) != want[0]);
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(layouts_normalisation_and_types_give_the_same_values) {
    uint8_t u[2 * 2 * 3 * 3];
    float f[36];
    int32_t y[2] = {1, 0};
    for (int i = 0; i < 36; i++)
        f[i] = (float)(u[i] = (uint8_t)(i * 7)) / 255.0f;
    fx_spec us = FX_SPEC(FX_U8, 2, 2, 3, 3), fs = FX_SPEC(FX_F32, 2, 2, 3, 3), ys = FX_SPEC(FX_S32, 2);
    fx_dataset *sets[2];
    ck_assert_fx_ok(fx_dataset_from_arrays(&us, u, &ys, y, 2, 0, &sets[0]));
    ck_assert_fx_ok(fx_dataset_from_arrays(&fs, f, &ys, y, 2, 0, &sets[1]));
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 2;
    for (int c = 0; c < 3; c++) {
        o.mean[c] = 0.1f * (float)(c + 1);
        o.std[c] = c == 2 ? 0 : 0.5f; /* 0 counts as 1 */
    }
    for (int k = 0; k < 4; k++) {
        o.layout = k % 2 ? FX_LAYOUT_NCHW : FX_LAYOUT_NHWC;
        fx_loader *l = make_loader(sets[k / 2], &o);
        const fx_batch *b = next(l);
        for (int i = 0; i < 36; i++) {
            int n = i / 18, p = i % 18 / 3, c = i % 3;
            double want = ((double)f[i] - (double)o.mean[c]) / (c == 2 ? 1 : 0.5);
            ck_assert_double_eq_tol((double)b->images[k % 2 ? n * 18 + c * 6 + p : i], want, 1e-6);
        }
        ck_assert_int_eq(b->labels[0], 1);
        ck_assert_uint_eq((uintptr_t)b->images % 4096, 0);
        fx_loader_destroy(l);
    }
    fx_dataset_destroy(sets[0]);
    fx_dataset_destroy(sets[1]);
}
END_TEST

START_TEST(flips_and_crops_are_moved_copies_with_black_borders) {
    enum { H = 5, W = 4, P = 2, N = 64 };
    fx_dataset *d = make_set(N, H, W, 1, 2);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = N;
    o.flip = true;
    o.crop_padding = P;
    o.mean[0] = 3; /* black is -3 after normalisation */
    fx_loader *l = make_loader(d, &o);
    const fx_batch *b = next(l);
    int seen[2][2 * P + 1][2 * P + 1] = {{{0}}}, kinds = 0, flips = 0;
    for (int i = 0; i < N; i++) {
        int found = 0;
        for (int m = 0; m < 2 * 25; m++) {
            int mirror = m / 25, dy = m % 25 / 5 - P, dx = m % 5 - P, equal = 1;
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++) {
                    int sy = y + dy, sx = (mirror ? W - 1 - x : x) + dx;
                    float want = sy >= 0 && sy < H && sx >= 0 && sx < W ? (float)((i + sy * W + sx) & 255) - 3 : -3;
                    equal &= b->images[i * H * W + y * W + x] == want;
                }
            if (equal) {
                found++;
                flips += mirror;
                kinds += !seen[mirror][dy + P][dx + P]++;
            }
        }
        ck_assert_int_eq(found, 1);
    }
    ck_assert_int_gt(kinds, 25);
    ck_assert(flips > N / 4 && flips < 3 * N / 4);
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(a_workers_error_is_reported_when_due_and_again_until_seek) {
    fx_image image = {2, 2, 1, FX_U8, (uint8_t[]){1, 2, 3, 4}};
    mkdir(scratch_path("x"), 0700);
    mkdir(scratch_path("x/a"), 0700);
    char name[32], uri[128];
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "x/a/%d.png", i);
        ck_assert_fx_ok(fx_image_write_png(scratch_path(name), &image));
    }
    write_file(scratch_path("x/a/5.png"), "\x89PNG junk", 9);
    fx_dataset_options po = FX_DATASET_OPTIONS_INIT;
    po.height = po.width = 2;
    po.channels = 1;
    snprintf(uri, sizeof uri, "folder:%s", scratch_path("x"));
    fx_dataset *d;
    ck_assert_fx_ok(fx_dataset_open(uri, FX_SPLIT_ALL, &po, &d));
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 2;
    fx_loader *l = make_loader(d, &o);
    fx_dataset_destroy(d); /* the loader keeps it */
    const fx_batch *b;
    ck_assert_ptr_nonnull(next(l));
    ck_assert_ptr_nonnull(next(l));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(fx_loader_next(l, &b), FX_BAD_DATA);
        ck_assert_ptr_null(b);
        ck_assert_error_says("x/a/5.png");
    }
    ck_assert_fx_ok(fx_loader_seek(l, 0, 3));
    ck_assert_int_eq(next(l)->step, 3);
    fx_loader_destroy(l);
}
END_TEST

START_TEST(a_loader_shuts_down_at_any_moment) {
    fx_dataset_options po = FX_DATASET_OPTIONS_INIT;
    po.count = 64;
    po.height = po.width = 24;
    fx_dataset *d;
    ck_assert_fx_ok(fx_dataset_open("random", FX_SPLIT_TRAIN, &po, &d));
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 16;
    o.threads = 3;
    o.prefetch = 5;
    o.shuffle = true;
    for (int i = 0; i < 40; i++) {
        fx_loader *l = make_loader(d, &o);
        for (int k = 0; k < i % 5; k++)
            next(l);
        if (i % 3 == 0)
            ck_assert_fx_ok(fx_loader_seek(l, i, i % 4));
        usleep((useconds_t)(i % 7) * 200);
        fx_loader_destroy(l);
    }
    fx_loader_destroy(NULL);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(a_batch_stays_untouched_until_the_next_call) {
    fx_dataset *d = make_set(64, 4, 4, 1, 2);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.batch_size = 8;
    o.prefetch = 2;
    o.shuffle = true;
    o.threads = 2;
    fx_loader *l = make_loader(d, &o);
    for (int i = 0; i < 30; i++) {
        const fx_batch *b = next(l);
        uint64_t before = hash_batch(b, 8, 16);
        usleep(500);
        ck_assert(hash_batch(b, 8, 16) == before);
    }
    fx_loader_destroy(l);
    fx_dataset_destroy(d);
}
END_TEST

START_TEST(wrong_options_are_refused) {
    fx_dataset *d = make_set(10, 1, 1, 1, 2);
    fx_loader *l;
#define REFUSED(change, says)                                               \
    do {                                                                    \
        fx_loader_options o = FX_LOADER_OPTIONS_INIT;                       \
        change;                                                             \
        ck_assert_int_eq(fx_loader_create(d, &o, &l), FX_INVALID_ARGUMENT); \
        ck_assert_error_says(says);                                         \
        ck_assert_ptr_null(l);                                              \
    } while (0)
    REFUSED(o.batch_size = 0, "batch size 0");
    REFUSED(o.batch_size = INT64_MAX, "batch size");
    REFUSED(o.prefetch = 1, "prefetch 1");
    REFUSED(o.threads = 0, "threads 0");
    REFUSED(o.epochs = -1, "epochs -1");
    REFUSED(o.crop_padding = -1, "padding -1");
    REFUSED(o.shard = 1, "shard 1 of 1");
    REFUSED(o.shards = 0, "shard 0 of 0");
    REFUSED(o.std[0] = -1, "std -1");
    REFUSED(o.mean[0] = NAN, "mean");
    REFUSED(o.layout = (fx_layout)7, "layout 7");
    REFUSED((o.batch_size = 11, o.drop_last = true), "no full batch");
    REFUSED(o.struct_size = 4, "struct_size");
    REFUSED(o.struct_size = 4000, "struct_size");
#undef REFUSED
    fx_dataset_destroy(d);
}
END_TEST

int main(void) {
    Suite *s = suite_create("loader");
    TCase *c = tcase_create("loader");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, c011_evaluation_counts_every_sample_once);
    tcase_add_test(c, each_epoch_is_a_new_permutation_and_drop_last_leaves_out_the_rest);
    tcase_add_test(c, places_of_a_shuffled_sample_are_uniform);
    tcase_add_test(c, any_position_resumes_exactly_whatever_the_number_of_threads);
    tcase_add_test(c, layouts_normalisation_and_types_give_the_same_values);
    tcase_add_test(c, flips_and_crops_are_moved_copies_with_black_borders);
    tcase_add_test(c, a_workers_error_is_reported_when_due_and_again_until_seek);
    tcase_add_test(c, a_loader_shuts_down_at_any_moment);
    tcase_add_test(c, a_batch_stays_untouched_until_the_next_call);
    tcase_add_test(c, wrong_options_are_refused);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
