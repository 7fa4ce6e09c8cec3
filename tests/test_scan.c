/* test_scan.c - cumulative ops, scatter, sort and top_k against the evaluator: lengths on and off the parts that lines
 * are cut into, repeated and out-of-range indices, windows of every sort. ctest: timeout 300, vector widths, on cpu */
#include "rows_support.h"

static test_device devices[MOST_DEVICES];
static bool brief;

START_TEST(running_values_along_any_axis) {
    static const int lengths[] = {1, 2, 7, 8, 9, 31, 33, 64, 65, 129, 255, 257, 1023, 1025, 4097};
    static const char *const kinds[] = {"sum", "prod", "max", "min"};
    test_device *t = &devices[_i];
    for (int i = 0; i < 15; i += brief ? 3 : 1)
        for (int k = 0; k<4; k += lengths[i]> 64 ? 2 : 1)
            for (int r = 0; r < 2; r++) {
                check_rows(t, NULL,
                           "graph(%%x: f32[3,%d]) { %%y = cumulative(%%x) {kind=%s, dim=1, reverse=%d} return %%y }",
                           lengths[i], kinds[k], r);
                if (r == (i & 1))
                    check_rows(
                        t, NULL,
                        "graph(%%x: s32[%d,5]) { %%y = cumulative(%%x) {kind=%s, dim=0, reverse=%d} return %%y }",
                        lengths[i], kinds[k], r);
            }
    for (int d = 0; d < 3; d++)
        check_rows(t, NULL,
                   "graph(%%x: f32[17,20,33]) { %%y = cumulative(%%x) {kind=sum, dim=%d, reverse=%d} return %%y }", d,
                   d & 1);
}
END_TEST

/* */
START_TEST(sums_of_ones_count) {
    static const int n[] = {1, 31, 33, 255, 257, 1023, 1025, 2047, 2049, 4097, 65537, 524288};
    float *x = malloc(2 * 524288 * 4), *y = malloc(2 * 524288 * 4);
    for (int i = 0; i < 2 * 524288; i++)
        x[i] = 1;
    for (int i = 0; i < 12; i += brief ? 5 : 1) {
        run_text(&devices[_i], y, x, "graph(%%x: f32[2,%d]) { %%y = cumulative(%%x) {kind=sum, dim=1} return %%y }",
                 n[i]);
        for (int j = 0; j < 2 * n[i]; j++)
            ck_assert_msg(y[j] == (float)(j % n[i] + 1), "length %d: element %d is %g", n[i], j, (double)y[j]);
        run_text(&devices[_i], y, x, "graph(%%x: f32[%d,2]) { %%y = cumulative(%%x) {kind=sum, dim=0} return %%y }",
                 n[i]);
        for (int j = 0; j < 2 * n[i]; j++)
            ck_assert_msg(y[j] == (float)(j / 2 + 1), "length %d: element %d is %g", n[i], j, (double)y[j]);
    }
    float z[4] = {1, NAN, 5, 2}, m[4];
    run_text(&devices[_i], m, z, "graph(%%x: f32[4]) { %%y = cumulative(%%x) {kind=max, dim=0} return %%y }");
    ck_assert(m[0] == 1 && isnan(m[1]) && isnan(m[2]) && isnan(m[3]));
    free(x);
    free(y);
}
END_TEST

/* indices in [-1, limit], often the same; updates are small integers, so that the order of sums does not show */
static void scatter(test_device *t, const char *type, const char *x, const char *i, const char *u, int limit,
                    const char *attrs) {
    static const char *const kinds[] = {"add", "set", "max", "min", "mul"};
    for (int k = 0; k < 5; k += brief ? 2 : 1) {
        char text[640];
        fx_graph *g;
        void *in[3];
        snprintf(
            text, sizeof text,
            "graph(%%x: %s[%s], %%i: s32[%s], %%u: %s[%s]) { %%y = scatter(%%x, %%i, %%u) {kind=%s, %s} return %%y }",
            type, x, i, type, u, kinds[k], attrs);
        OK(fx_graph_parse(text, strlen(text), &g));
        for (int p = 0; p < 3; p++) {
            const fx_spec *s = &g->params[p]->spec;
            in[p] = calloc((size_t)fx_spec_count(s) + 1, 8);
            for (int64_t e = 0; e < fx_spec_count(s); e++) {
                int32_t v = (int32_t)(rows_random() % 5) - 2;
                if (p == 1)
                    ((int32_t *)in[p])[e] = (int32_t)(rows_random() % (uint32_t)(limit + 2)) - 1;
                else if (s->dtype == FX_F32)
                    ((float *)in[p])[e] = (float)v;
                else if (s->dtype == FX_BF16)
                    ((uint16_t *)in[p])[e] = fx_f64_to_bf16(v);
                else
                    ((int32_t *)in[p])[e] = v;
            }
        }
        if (has_types(t, 1, &g->params[0]->spec))
            check_graph(t, g, (const void *const *)in, 0, text);
        for (int p = 0; p < 3; p++)
            free(in[p]);
        fx_graph_unref(g);
    }
}

START_TEST(updates_apply_in_order) {
    test_device *t = &devices[_i];
    const char *rows = "update_window_dims=[1], inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1";
    scatter(t, "f32", "7,5", "40,1", "40,5", 7, rows);
    scatter(t, "f32", "300,96", "200,1", "200,96", 300, rows);
    scatter(t, "bf16", "9,6", "50,1", "50,6", 9, rows);
    scatter(t, "s32", "100", "70,1", "70", 100, "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1");
    scatter(t, "f32", "5000", "300", "300", 5000, "inserted_window_dims=[0], scatter_dims=[0], index_vector_dim=1");
    scatter(t, "f32", "6,9", "20,2", "20", 7, "inserted_window_dims=[0,1], scatter_dims=[0,1], index_vector_dim=1");
    scatter(t, "f32", "6,9", "20,2", "20", 7, "inserted_window_dims=[0,1], scatter_dims=[1,0], index_vector_dim=1");
    scatter(t, "f32", "12,4", "5,1", "5,3,4", 11, "update_window_dims=[1,2], scatter_dims=[0], index_vector_dim=1");
    scatter(t, "f32", "8,9", "6,2", "6,3,2", 8, "update_window_dims=[1,2], scatter_dims=[0,1], index_vector_dim=1");
    scatter(t, "f32", "4,10", "4,7,1", "4,7", 10,
            "inserted_window_dims=[1], scatter_dims=[1], operand_batching_dims=[0], indices_batching_dims=[0], "
            "index_vector_dim=2");
    scatter(t, "f32", "5,4,6", "3,1", "5,3,6", 4,
            "update_window_dims=[0,2], inserted_window_dims=[1], scatter_dims=[1], index_vector_dim=1");
}
END_TEST

START_TEST(sorts_are_stable) {
    static const int lengths[] = {1, 2, 3, 31, 33, 63, 64, 65, 100, 257, 1025, 3000};
    test_device *t = &devices[_i];
    for (int i = 0; i < 12; i += brief ? 4 : 1) {
        int n = lengths[i];
        /* equal keys in plenty; the second operand tells which one came first */
        check_rows(
            t, NULL,
            "graph(%%x: s32[300,%d]) { %%c = constant() {dtype=s32, shape=[], value=[40]} %%b = broadcast_in_dim(%%c) "
            "{shape=[300,%d], dims=[]} "
            "%%k = rem(%%x, %%b) %%i = iota() {shape=[300,%d], dim=1, dtype=s32} %%t = sort(%%k, %%i, "
            "graph(%%a: s32[], %%b: s32[], %%c: s32[], %%d: s32[]) { %%l = lt(%%a, %%b) return %%l }) {dim=1} : "
            "(s32[300,%d], s32[300,%d]) %%y = project(%%t) {index=0} %%z = project(%%t) {index=1} return %%y, %%z }",
            n, n, n, n, n);
        if (n > 2)
            check_rows(t, NULL,
                       "graph(%%x: f32[400,%d]) { %%t = top_k(%%x) {k=3} : (f32[400,3], s32[400,3]) %%y = project(%%t) "
                       "{index=0} "
                       "%%z = project(%%t) {index=1} return %%y, %%z }",
                       n);
    }
}
END_TEST

static void columns(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_sort(in[0], 0, true);
}

START_TEST(long_lines_are_merged) {
    check_pattern(&devices[_i], columns, 1, (fx_spec[]){FX_SPEC(FX_F32, 20001, 3)}, 0, false);
}
END_TEST

int main(int argc, char **argv) {
    (void)argv;
    brief = argc > 1;
    int usable = find_vulkan(), n = 0;
    if (!usable)
        return SKIPPED;
    Suite *s = suite_create("scan");
    TCase *c = tcase_create("scan");
    for (int i = 0; i < n_devices; i++)
        if (device_infos[i].usable && vk->open(i, getenv("FORNAX_CACHE_DIR"), &devices[n].d, &devices[n].caps) == FX_OK)
            n++;
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, running_values_along_any_axis, 0, n);
    tcase_add_loop_test(c, sums_of_ones_count, 0, n);
    tcase_add_loop_test(c, updates_apply_in_order, 0, n);
    tcase_add_loop_test(c, sorts_are_stable, 0, n);
    tcase_add_loop_test(c, long_lines_are_merged, 0, n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (int i = 0; i < n; i++)
        vk->close(devices[i].d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
