/* test_rows.c - reductions, arg_reduce, regions, and what is fused around them, against the evaluator: lengths that
 * fill teams of lanes or don't, every kind, several types, axes in every place, long rows in parts, as software
 * devices and as GPUs schedule them. With an argument: a short run. ctest: slow, vector widths */
#include <math.h>

#include "core/graph/trace.h"
#include "fornax/transform.h"
#include "program_run.h"
#include "rows_support.h"

static test_device devices[MOST_DEVICES];
static bool brief; /* a run for one more subgroup size */

static const int lengths[] = {1,  2,  3,  4,  5,   7,   8,   9,   15,  16,  17,  31,  32,   33,
                              48, 63, 64, 65, 100, 127, 128, 129, 197, 255, 256, 257, 1023, 1025};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

/* As the device is, as one with quick barriers, and as one without subgroups. */
static test_device variant(int device, int way) {
    test_device t = devices[device];
    if (way) {
        t.caps.barrier_is_slow = false;
        t.caps.units = 8;
    }
    if (way == 2) {
        t.caps.subgroup_size = t.caps.subgroup_min = t.caps.subgroup_max = 1;
        t.caps.subgroup_shuffle = t.caps.subgroup_ballot = t.caps.subgroup_arithmetic = false;
    }
    return t;
}

static const char *const kinds[] = {"sum", "prod", "max", "min", "and", "or", "xor"};

static bool takes(const char *kind, fx_dtype d) {
    bool bits = !strcmp(kind, "and") || !strcmp(kind, "or") || !strcmp(kind, "xor");
    return d == FX_BOOL ? bits : bits ? !fx_dtype_is_float(d) : true;
}

START_TEST(rows_of_every_length) {
    for (int way = 0; way < (brief ? 1 : 3); way++) {
        test_device t = variant(_i, way);
        for (int l = 0; l < N_LENGTHS; l += way || brief ? 3 : 1) {
            check_rows(&t, NULL, "graph(%%x: f32[5,%d]) { %%y = reduce(%%x) {kind=sum, dims=[1]} return %%y }",
                       lengths[l]);
            check_rows(&t, NULL, "graph(%%x: f32[%d]) { %%y = reduce(%%x) {kind=max, dims=[0]} return %%y }",
                       lengths[l]);
            check_rows(&t, NULL,
                       "graph(%%x: s32[40,%d]) { %%y = arg_reduce(%%x) {kind=max, dim=1, dtype=s32} return %%y }",
                       lengths[l]);
            check_rows(&t, NULL,
                       "graph(%%x: f32[%d]) { %%y = arg_reduce(%%x) {kind=min, dim=0, dtype=s32} return %%y }",
                       lengths[l]);
        }
    }
}
END_TEST

START_TEST(every_kind_and_type) {
    static const fx_dtype types[] = {FX_F32, FX_S32, FX_BOOL, FX_BF16, FX_U8, FX_F16, FX_S64, FX_F64, FX_U32, FX_S8};
    static const char *const shapes[] = {"[37,100]) { %%y = reduce(%%x) {kind=%s, dims=[1]}",
                                         "[100,36]) { %%y = reduce(%%x) {kind=%s, dims=[0]}",
                                         "[3,7]) { %%y = reduce(%%x) {kind=%s, dims=[1]}"};
    test_device t = variant(_i, 0);
    for (int d = 0; d < (brief ? 2 : (int)(sizeof types / sizeof *types)); d++)
        for (int i = 0; i < 7; i++)
            for (int s = 0; s < 3; s++) {
                char text[256], all[320];
                if (!takes(kinds[i], types[d]))
                    continue;
                snprintf(text, sizeof text, shapes[s], kinds[i]);
                snprintf(all, sizeof all, "graph(%%x: %s%s return %%y }", fx_dtype_name(types[d]), text);
                for (char *p = all, *q = all;; p++) { /* %% -> % */
                    *q++ = *p;
                    p += p[0] == '%' && p[1] == '%';
                    if (!*p)
                        break;
                }
                check_rows(&t, NULL, "%s", all);
            }
}
END_TEST

START_TEST(axes_in_every_place) {
    static const char *const dims[] = {"0",   "1",   "2",     "3",     "0,1",   "0,2",     "0,3", "1,2",
                                       "1,3", "2,3", "0,1,2", "0,2,3", "1,2,3", "0,1,2,3", ""};
    for (int way = 0; way < (brief ? 1 : 3); way++) {
        test_device t = variant(_i, way);
        for (int i = 0; i < (int)(sizeof dims / sizeof *dims); i += brief ? 4 : 1) {
            check_rows(&t, NULL, "graph(%%x: f32[4,6,5,34]) { %%y = reduce(%%x) {kind=sum, dims=[%s]} return %%y }",
                       dims[i]);
            check_rows(&t, NULL, "graph(%%x: f32[3,1,70,7]) { %%y = reduce(%%x) {kind=max, dims=[%s]} return %%y }",
                       dims[i]);
            check_rows(&t, NULL,
                       "graph(%%x: f32[7,5,6,4]) { %%z = transpose(%%x) {permutation=[3,1,2,0]} %%y = reduce(%%z) "
                       "{kind=sum, dims=[%s]} return %%y }",
                       dims[i]);
        }
        for (int d = 0; d < 3; d++)
            check_rows(&t, NULL,
                       "graph(%%x: f32[6,33,10]) { %%y = arg_reduce(%%x) {kind=max, dim=%d, dtype=s32} return %%y }",
                       d);
    }
}
END_TEST

START_TEST(long_rows_and_columns_in_parts) {
    for (int way = 0; way < (brief ? 1 : 3); way++) {
        test_device t = variant(_i, way);
        check_rows(&t, NULL, "graph(%%x: f32[100003]) { %%y = reduce(%%x) {kind=sum, dims=[0]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: f32[3,65536]) { %%y = reduce(%%x) {kind=sum, dims=[1]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: s32[4,50001]) { %%y = reduce(%%x) {kind=xor, dims=[1]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: f32[30011,6]) { %%y = reduce(%%x) {kind=sum, dims=[0]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: f32[4097,40]) { %%y = reduce(%%x) {kind=max, dims=[0]} return %%y }");
        check_rows(&t, NULL,
                   "graph(%%x: f32[2,70001]) { %%y = arg_reduce(%%x) {kind=max, dim=1, dtype=s32} return %%y }");
        check_rows(&t, NULL,
                   "graph(%%x: f32[70001,2]) { %%y = arg_reduce(%%x) {kind=min, dim=0, dtype=s32} return %%y }");
        check_rows(&t, NULL, "graph(%%x: bf16[2,50000]) { %%y = reduce(%%x) {kind=sum, dims=[1]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: f32[0,5]) { %%y = reduce(%%x) {kind=max, dims=[0]} return %%y }");
        check_rows(&t, NULL, "graph(%%x: f32[5,0]) { %%y = reduce(%%x) {kind=sum, dims=[1]} return %%y }");
    }
}
END_TEST

START_TEST(regions_keep_the_order_of_elements) { /* x -> p x + q composed: associative, not commutative */
    static const int n[] = {1, 2, 5, 16, 33, 257, 5003};
    for (int way = 0; way < (brief ? 1 : 2); way++) {
        test_device t = variant(_i, way);
        for (int i = 0; i < (int)(sizeof n / sizeof *n); i++) {
            compose_case(&t, 3, n[i], 1);
            compose_case(&t, n[i], 3, 0);
        }
    }
}
END_TEST

/* ---- fused patterns ---- */

static fx_val normalised(fx_val x, fx_val scale, fx_val shift) {
    int axis = -1;
    fx_val mean = fx_reduce_mean(x, 1, &axis, true), c = fx_sub(x, mean);
    fx_val var = fx_reduce_mean(fx_mul(c, c), 1, &axis, true);
    return fx_add(fx_mul(fx_mul(c, fx_rsqrt(fx_add_c(var, 1e-5))), scale), shift);
}
#define PATTERN(name) static void name(fx_trace *t, const fx_val *in, fx_val *out, void *user)
PATTERN(relu_sum) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(fx_mul_c(fx_relu(in[0]), 2), 1, (int[]){-1}, false);
}
PATTERN(softmax) {
    (void)t, (void)user;
    out[0] = fx_softmax(in[0], -1);
}
PATTERN(log_softmax) {
    (void)t, (void)user;
    out[0] = fx_log_softmax(in[0], -1);
}
PATTERN(layer_norm) {
    (void)t, (void)user;
    out[0] = normalised(in[0], in[1], in[2]);
}
PATTERN(layer_norm_loss) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(fx_mul(normalised(in[0], in[1], in[2]), in[3]), -1, NULL, false);
}
PATTERN(softmax_columns) {
    (void)t, (void)user;
    out[0] = fx_softmax(in[0], 0);
}

START_TEST(patterns_are_one_kernel) {
    static const int cols[] = {1, 3, 10, 32, 33, 64, 192, 197, 1000, 4097};
    for (int way = 0; way < (brief ? 1 : 3); way++) {
        test_device t = variant(_i, way);
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i += brief ? 4 : 1) {
            int64_t c = cols[i];
            fx_spec in[] = {FX_SPEC(FX_F32, 37, c), FX_SPEC(FX_F32, c), FX_SPEC(FX_F32, c), FX_SPEC(FX_F32, 37, c)};
            check_pattern(&t, relu_sum, 1, in, 1, false);
            check_pattern(&t, softmax, 1, in, 1, false);
            check_pattern(&t, log_softmax, 1, in, 1, false);
            check_pattern(&t, layer_norm, 3, in, 1, false);
            if (c > 2)
                check_pattern(&t, layer_norm_loss, 4, in, 2, true);
        }
        check_pattern(&t, softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 4, 6, 50)}, 1, false);
        check_pattern(&t, softmax, 1, (fx_spec[]){FX_SPEC(FX_BF16, 33, 70)}, 1, false);
        check_pattern(&t, softmax_columns, 1, (fx_spec[]){FX_SPEC(FX_F32, 70, 36)}, 0, false);
        check_pattern(&t, softmax, 1, (fx_spec[]){FX_SPEC(FX_F32, 2, 40001)}, 0, false); /* in parts */
    }
}
END_TEST

/* */
START_TEST(nan_reaches_every_maximum) {
    static const int n[] = {1, 33, 67, 257, 1025};
    test_device t = variant(_i, 0);
    for (int i = 0; i < 5; i++)
        for (int p = 0; p < n[i]; p += n[i] == 67 && !brief ? 1 : n[i] / 3 + 1)
            for (int k = 0; k < 2; k++) {
                float x[1025], y = 0;
                for (int j = 0; j < n[i]; j++)
                    x[j] = (float)j;
                x[p] = NAN;
                run_text(&t, &y, x, "graph(%%x: f32[%d]) { %%y = reduce(%%x) {kind=%s, dims=[0]} return %%y }", n[i],
                         k ? "min" : "max");
                ck_assert_msg(isnan(y), "length %d, NaN at %d: got %g", n[i], p, (double)y);
            }
}
END_TEST

/* */
START_TEST(positions_past_2_to_the_24_are_exact) {
    enum { N = 16777221 };
    test_device t = variant(_i, 0);
    float *x = calloc(N, 4);
    int32_t y = 0;
    x[16777217] = 1;
    run_text(&t, &y, x, "graph(%%x: f32[%d]) { %%y = arg_reduce(%%x) {kind=max, dim=0, dtype=s32} return %%y }", N);
    ck_assert_int_eq(y, 16777217);
    x[16777217] = -1;
    run_text(&t, &y, x, "graph(%%x: f32[%d,1]) { %%y = arg_reduce(%%x) {kind=min, dim=0, dtype=s32} return %%y }", N);
    ck_assert_int_eq(y, 16777217);
    free(x);
}
END_TEST

int main(int argc, char **argv) {
    (void)argv;
    brief = argc > 1;
    int usable = find_vulkan(), n = 0;
    if (!usable)
        return SKIPPED;
    Suite *s = suite_create("rows");
    TCase *c = tcase_create("rows");
    for (int i = 0; i < n_devices; i++)
        if (device_infos[i].usable && vk->open(i, getenv("FORNAX_CACHE_DIR"), &devices[n].d, &devices[n].caps) == FX_OK)
            printf("subgroups of %u\n", devices[n++].caps.subgroup_size);
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, rows_of_every_length, 0, n);
    tcase_add_loop_test(c, every_kind_and_type, 0, n);
    tcase_add_loop_test(c, axes_in_every_place, 0, n);
    tcase_add_loop_test(c, long_rows_and_columns_in_parts, 0, n);
    tcase_add_loop_test(c, regions_keep_the_order_of_elements, 0, n);
    tcase_add_loop_test(c, patterns_are_one_kernel, 0, n);
    tcase_add_loop_test(c, nan_reaches_every_maximum, 0, n);
    if (!brief)
        tcase_add_loop_test(c, positions_past_2_to_the_24_are_exact, 0, n);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    for (int i = 0; i < n; i++)
        vk->close(devices[i].d);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
