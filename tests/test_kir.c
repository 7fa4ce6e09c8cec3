/* test_kir.c - index arithmetic becomes what its ranges allow, equal index functions become equal pointers and keep
 * their values, and kernels print as intended. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel/dialect.h"

static fx_arena arena;
static fx_kir k;

static void setup(void) {
    fx_arena_init(&arena);
    fx_kir_init(&k, &arena);
}
static void teardown(void) {
    fx_arena_finish(&arena);
}

static fx_kx *var(int64_t count) {
    return fx_k_for(&k, fx_k_int(&k, 0), fx_k_int(&k, count), 1, false);
}

/* The value of an index expression, variables by id. */
static int64_t value(const fx_kx *x, const int64_t *v) {
    switch (x->kop) {
    case FX_K_INT:
        return x->i;
    case FX_K_VAR:
        return v[x->var->id];
    case FX_K_ADD:
        return value(x->a[0], v) + value(x->a[1], v);
    case FX_K_MUL:
        return value(x->a[0], v) * value(x->a[1], v);
    case FX_K_DIV:
        return value(x->a[0], v) / x->i;
    case FX_K_MOD:
        return value(x->a[0], v) % x->i;
    case FX_K_MIN:
    case FX_K_MAX: {
        int64_t a = value(x->a[0], v), b = value(x->a[1], v);
        return (x->kop == FX_K_MIN) == (a < b) ? a : b;
    }
    case FX_K_LT:
        return value(x->a[0], v) < value(x->a[1], v);
    case FX_K_LE:
        return value(x->a[0], v) <= value(x->a[1], v);
    case FX_K_EQ:
        return value(x->a[0], v) == value(x->a[1], v);
    case FX_K_SELECT:
        return value(x->a[0], v) ? value(x->a[1], v) : value(x->a[2], v);
    case FX_K_CAST:
        return value(x->a[0], v);
    default:
        ck_abort_msg("unexpected expression %d", (int)x->kop);
        return 0;
    }
}

START_TEST(reshapes_of_reshapes_cancel) {
    static const int64_t shapes[][4] = {{6, 4, 5, 2}, {24, 10, 1, 1}, {2, 3, 8, 5}, {240, 1, 1, 1}, {1, 12, 1, 20}};
    enum { N = sizeof shapes / sizeof *shapes };
    fx_kx *i = var(240), *idx[4];
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            fx_k_delinearise(&k, i, 4, shapes[a], idx);
            fx_kx *l = fx_k_linearise(&k, 4, shapes[a], idx);
            ck_assert_ptr_eq(l, i);
            fx_k_delinearise(&k, l, 4, shapes[b], idx);
            ck_assert_ptr_eq(fx_k_linearise(&k, 4, shapes[b], idx), i);
        }
}
END_TEST

START_TEST(rows_and_columns_come_apart) {
    fx_kx *r = var(33), *c = var(48), *linear = fx_k_add(&k, fx_k_mulc(&k, r, 48), c);
    ck_assert_ptr_eq(fx_k_div(&k, linear, 48), r);
    ck_assert_ptr_eq(fx_k_mod(&k, linear, 48), c);
    ck_assert_ptr_eq(fx_k_div(&k, fx_k_addc(&k, linear, 96), 48), fx_k_addc(&k, r, 2));
    ck_assert(fx_kx_is_int(fx_k_mod(&k, fx_k_mulc(&k, linear, 6), 3), 0));
    ck_assert(fx_kx_is_int(fx_k_lt(&k, linear, fx_k_int(&k, 33 * 48)), 1));
    ck_assert(fx_kx_is_int(fx_k_le(&k, fx_k_int(&k, 0), linear), 1));
    ck_assert_ptr_eq(fx_k_min(&k, linear, fx_k_int(&k, 33 * 48 - 1)), linear);
    ck_assert_ptr_eq(fx_k_sub(&k, fx_k_add(&k, r, c), c), r);
    int64_t stride;
    ck_assert(fx_kx_stride(&k, linear, r, &stride));
    ck_assert_int_eq(stride, 48);
    ck_assert(!fx_kx_stride(&k, fx_k_mod(&k, linear, 7), r, &stride));
}
END_TEST

START_TEST(wide_ranges_get_wide_types) {
    fx_kx *r = var(100000), *c = var(100000);
    ck_assert_int_eq(fx_k_add(&k, fx_k_mulc(&k, r, 20000), c)->type, FX_S32);
    fx_kx *wide = fx_k_add(&k, fx_k_mulc(&k, r, 100000), c);
    ck_assert_int_eq(wide->type, FX_S64);
    ck_assert_int_eq(wide->hi, 9999999999);
    ck_assert_ptr_eq(fx_k_mod(&k, wide, 100000), c);
    ck_assert_int_eq(fx_k_int(&k, (int64_t)1 << 40)->type, FX_S64);
}
END_TEST

START_TEST(random_expressions_keep_their_values_and_ranges) {
    uint32_t state = 12345;
#define RND(n) ((int64_t)((state = state * 1664525u + 1013904223u) >> 10) % (n))
    static const int64_t sizes[4] = {7, 12, 64, 5};
    fx_kx *v[4];
    for (int i = 0; i < 4; i++)
        v[i] = var(sizes[i]);
    for (int round = 0; round < 3000; round++) {
        fx_kx *pool[14];
        int n = 4;
        memcpy(pool, v, sizeof v);
        /* the same steps on numbers, at one point */
        int64_t at[64] = {0}, num[14];
        for (int i = 0; i < 4; i++)
            num[i] = at[v[i]->var->id] = RND(sizes[i]);
        for (; n < 14; n++) {
            int a = (int)RND(n), b = (int)RND(n);
            int64_t c = 1 + RND(13);
            switch (RND(6)) {
            case 0:
                pool[n] = fx_k_add(&k, pool[a], pool[b]);
                num[n] = num[a] + num[b];
                break;
            case 1:
                pool[n] = fx_k_mulc(&k, pool[a], c);
                num[n] = num[a] * c;
                break;
            case 2:
                pool[n] = fx_k_div(&k, pool[a], c);
                num[n] = num[a] / c;
                break;
            case 3:
                pool[n] = fx_k_mod(&k, pool[a], c);
                num[n] = num[a] % c;
                break;
            case 4:
                pool[n] = fx_k_min(&k, pool[a], fx_k_int(&k, c));
                num[n] = num[a] < c ? num[a] : c;
                break;
            default:
                pool[n] = fx_k_max(&k, fx_k_addc(&k, pool[a], -c), fx_k_int(&k, 0));
                num[n] = num[a] - c > 0 ? num[a] - c : 0;
            }
            if (pool[n]->hi > 100000000) {
                pool[n] = pool[0];
                num[n] = num[0];
            }
            ck_assert_int_eq(value(pool[n], at), num[n]);
            ck_assert_int_le(pool[n]->lo, num[n]);
            ck_assert_int_ge(pool[n]->hi, num[n]);
        }
    }
#undef RND
}
END_TEST

START_TEST(lets_leave_loops_and_are_shared) {
    fx_text t = {0};
    fx_device_caps caps = {.language = FX_LANGUAGE_GLSL, .max_args = 16, .int64 = true};
    int in = fx_k_arg(&k, FX_F32), out = fx_k_arg(&k, FX_F32);
    fx_kx *lane = fx_k_builtin(&k, FX_KB_LOCAL, 64), *j = var(10), *i = var(20);
    fx_kx *row = fx_k_load(&k, in, j), *again = fx_k_load(&k, in, j);
    fx_kx *x = fx_k_load(&k, in, fx_k_add(&k, fx_k_mulc(&k, i, 64), lane));
    ck_assert_ptr_eq(row, again);
    ck_assert_int_eq(row->depth, 1);
    ck_assert_int_eq(x->depth, 2);
    fx_k_store(&k, out, fx_k_add(&k, fx_k_mulc(&k, fx_k_add(&k, fx_k_mulc(&k, j, 20), i), 64), lane),
               fx_k_op2(&k, FX_OP_add, FX_F32, row, x));
    fx_k_end(&k);
    fx_k_end(&k);
    ck_assert_int_eq(fx_kir_render(&k, &caps, "test", &t), FX_OK);
    const char *outer = strstr(t.s, "for ("), *load = strstr(t.s, "p0.v["), *inner = strstr(outer + 1, "for (");
    ck_assert_ptr_nonnull(inner);
    ck_assert(outer < load && load < inner); /* the row's load is between the loops */
    ck_assert_ptr_null(strstr(t.s, "int64_t"));
    fx_text_free(&t);
}
END_TEST

START_TEST(constants_print_exactly) {
    fx_text t = {0};
    const fx_dialect *d = &fx_dialect_glsl;
    static const struct {
        fx_dtype type;
        int64_t i;
        double f;
        const char *text;
    } rows[] = {{FX_F32, 0, 0.1f, "0.100000001f"},
                {FX_F32, 0, 3, "3.0f"},
                {FX_F32, 0, -0.0, "uintBitsToFloat(0x80000000u)"},
                {FX_F32, 0, 1e300, "uintBitsToFloat(0x7f800000u)"},
                {FX_F32, 0, 1e-45, "uintBitsToFloat(0x00000001u)"},
                {FX_F64, 0, 0.1, "0.10000000000000001lf"},
                {FX_S32, INT32_MIN, 0, "int(0x80000000u)"},
                {FX_U32, 4294967295, 0, "4294967295u"},
                {FX_BOOL, 1, 0, "true"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fx_text_clear(&t);
        d->constant(&t, rows[i].type, rows[i].i, rows[i].f);
        ck_assert_str_eq(t.s, rows[i].text);
    }
    fx_text_free(&t);
}
END_TEST

START_TEST(a_device_without_a_type_is_told_so) {
    fx_device_caps caps = {.language = FX_LANGUAGE_GLSL, .max_args = 16};
    fx_text t = {0};
    int out = fx_k_arg(&k, FX_F32);
    fx_kx *r = fx_k_builtin(&k, FX_KB_GROUP_X, 3000000000);
    fx_k_store(&k, out, r, fx_k_float(&k, FX_F32, 1));
    fx_k_store(&k, out, fx_k_mulc(&k, r, 5), fx_k_float(&k, FX_F32, 1));
    ck_assert_int_eq(fx_kir_render(&k, &caps, "big", &t), FX_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "64-bit integers"));
    ck_assert_int_eq(fx_dtype_check(&caps, FX_F64, "exp"), FX_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "exp"));
    ck_assert_int_eq(fx_dtype_check(&caps, FX_BF16, "add"), FX_UNSUPPORTED);
    ck_assert_int_eq(fx_dtype_check(&caps, FX_F32, "add"), FX_OK);
    fx_text_free(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("kir");
    TCase *c = tcase_create("kir");
    suite_add_tcase(s, c);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, reshapes_of_reshapes_cancel);
    tcase_add_test(c, rows_and_columns_come_apart);
    tcase_add_test(c, wide_ranges_get_wide_types);
    tcase_add_test(c, random_expressions_keep_their_values_and_ranges);
    tcase_add_test(c, lets_leave_loops_and_are_shared);
    tcase_add_test(c, constants_print_exactly);
    tcase_add_test(c, a_device_without_a_type_is_told_so);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
