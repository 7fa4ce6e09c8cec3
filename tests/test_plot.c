/* test_plot.c - plots: ticks and their labels, drawn pixels, every input that could break a picture. */
#include <locale.h>
#include <math.h>

#include "case_files.h"
#include "core/io/plot.h"

static void check_labels(const fx_ticks *t, const char *want) {
    char got[512] = "";
    for (int i = 0; i < t->count; i++)
        strcat(strcat(got, i ? " " : ""), t->label[i]);
    ck_assert_str_eq(got, want);
}

START_TEST(ticks_are_round_numbers_with_exact_labels) {
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where there, it must not matter */
    fx_ticks t;
    fx_ticks_linear(0, 2.5, 6, &t);
    check_labels(&t, "0 0.5 1 1.5 2 2.5");
    fx_ticks_linear(-1, 1, 5, &t);
    check_labels(&t, "-1 -0.5 0 0.5 1");
    fx_ticks_linear(0, 12000, 7, &t);
    check_labels(&t, "0 2000 4000 6000 8000 10000 12000");
    fx_ticks_linear(0, 0.0012, 4, &t);
    check_labels(&t, "0 0.0005 0.001");
    fx_ticks_linear(0, 3e9, 4, &t);
    check_labels(&t, "0 1e9 2e9 3e9");
    fx_ticks_linear(0, 2.5e-7, 3, &t);
    check_labels(&t, "0 1e-7 2e-7");
    fx_ticks_linear(-0.35, -0.05, 4, &t);
    check_labels(&t, "-0.3 -0.2 -0.1");
    fx_ticks_linear(999.9, 1000.1, 3, &t);
    check_labels(&t, "999.9 1000 1000.1");
    fx_ticks_log(-3.1, 2.2, 10, &t);
    check_labels(&t, "0.001 0.01 0.1 1 10 100");
    fx_ticks_log(-0.5, 0.5, 10, &t);
    check_labels(&t, "0.5 1 2");
    fx_ticks_log(-20, 20, 5, &t);
    ck_assert_int_le(t.count, 6);
    ck_assert_int_ge(t.count, 4);
    setlocale(LC_ALL, "C");
}
END_TEST

/* Pixels that are not white within a part of the image. */
static int inked(const fx_image *image, int x0, int y0, int x1, int y1) {
    int n = 0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const uint8_t *p = (const uint8_t *)image->data + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
            n += p[0] + p[1] + p[2] < 3 * 200;
        }
    return n;
}

START_TEST(a_plot_has_ink_where_its_parts_are_and_saves_the_same_bytes) {
    fx_plot_options o = FX_PLOT_OPTIONS_INIT;
    o.title = "loss";
    o.x_label = "step";
    o.y_label = "nats";
    fx_plot *p;
    double y[100];
    for (int i = 0; i < 100; i++)
        y[i] = 2.3 * exp(-i / 20.0);
    ck_assert_fx_ok(fx_plot_create(&o, &p));
    ck_assert_fx_ok(fx_plot_add(p, "training", NULL, y, 100));
    fx_image image;
    ck_assert_fx_ok(fx_plot_render(p, &image));
    ck_assert(image.width == 800 && image.height == 500 && image.channels == 3 && image.dtype == FX_U8);
    ck_assert_int_gt(inked(&image, 350, 0, 450, 30), 50);    /* title */
    ck_assert_int_gt(inked(&image, 350, 475, 500, 500), 50); /* x label */
    ck_assert_int_gt(inked(&image, 0, 150, 25, 350), 50);    /* y label */
    ck_assert_int_gt(inked(&image, 80, 40, 200, 300), 200);  /* the steep part of the curve */
    ck_assert_int_gt(inked(&image, 600, 40, 790, 70), 100);  /* legend, upper right */
    ck_assert_int_eq(inked(&image, 450, 150, 790, 250), 0);  /* nothing but grid above the flat part */
    fx_image_free(&image);
    const char *a = scratch_path("a.png"), *b = scratch_path("b.png");
    ck_assert_fx_ok(fx_plot_save(p, a));
    ck_assert_fx_ok(fx_plot_save(p, b));
    size_t na, nb;
    unsigned char *da = read_whole(a, &na), *db = read_whole(b, &nb);
    ck_assert_uint_eq(na, nb);
    ck_assert_mem_eq(da, db, na);
    free(da);
    free(db);
    ck_assert_int_eq(fx_plot_save(p, "/dev/full"), FX_IO_ERROR);
    fx_plot_destroy(p);
}
END_TEST

START_TEST(no_data_breaks_a_plot) {
    static const double sets[][4] = {{NAN, NAN, NAN, NAN}, {0, 0, 0, 0},          {1e300, -1e300, 0, 1},
                                     {INFINITY, 1, 2, 3},  {5e-324, 0, 0, 0},     {1e9, 1e9 + 1e-6, 1e9, 1e9},
                                     {-1, -2, -3, -4},     {1e-300, 1e300, 1, 2}, {1.7e308, -1.7e308, NAN, 1}};
    static const int sizes[][2] = {{160, 160}, {800, 500}, {3000, 200}, {160, 2000}};
    for (size_t s = 0; s < sizeof sets / sizeof *sets; s++)
        for (int k = 0; k < 8; k++) {
            fx_plot_options o = FX_PLOT_OPTIONS_INIT;
            o.width = sizes[k / 2][0];
            o.height = sizes[k / 2][1];
            o.log_y = k % 2;
            o.title = "a title that is much longer than the smallest plot is wide \xc3\xa9 \x01";
            o.y_label = "y";
            fx_plot *p;
            fx_image image;
            ck_assert_fx_ok(fx_plot_create(&o, &p));
            ck_assert_fx_ok(fx_plot_add(p, "y", NULL, sets[s], 4));
            ck_assert_fx_ok(fx_plot_add(p, "x", sets[s], sets[s], 4));
            ck_assert_fx_ok(fx_plot_add(p, "", NULL, NULL, 0));
            ck_assert_fx_ok(fx_plot_render(p, &image));
            fx_image_free(&image);
            fx_plot_destroy(p);
        }
    fx_plot *p;
    fx_image image;
    ck_assert_fx_ok(fx_plot_create(NULL, &p));
    ck_assert_fx_ok(fx_plot_render(p, &image)); /* no series */
    fx_image_free(&image);
    ck_assert_int_eq(fx_plot_add(p, "y", NULL, NULL, 3), FX_INVALID_ARGUMENT);
    fx_plot_destroy(p);
    fx_plot_options o = FX_PLOT_OPTIONS_INIT;
    o.width = 10;
    ck_assert_int_eq(fx_plot_create(&o, &p), FX_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
    Suite *s = suite_create("plot");
    TCase *c = tcase_create("plot");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, ticks_are_round_numbers_with_exact_labels);
    tcase_add_test(c, a_plot_has_ink_where_its_parts_are_and_saves_the_same_bytes);
    tcase_add_test(c, no_data_breaks_a_plot);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
