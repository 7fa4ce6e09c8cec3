/* test_bad_input.c - wrong input in every call of transform.h, device.h and nn.h, on each device: a status or nothing, with a
 * text; nothing crashes, and what was there before works as before. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fornax/fornax.h"

/* A call that must be refused with a text of its own. */
#define REFUSED(...)                                                                                      \
    do {                                                                                                  \
        fx_dtype d_;                                                                                      \
        (void)fx_dtype_parse("earlier error", &d_);                                                       \
        fx_status st_ = (__VA_ARGS__);                                                                    \
        ck_assert_msg(st_ != FX_OK, "accepted: %s", #__VA_ARGS__);                                        \
        ck_assert_msg(strlen(fx_last_error()) > 15 && !strstr(fx_last_error(), "earlier error"), "%s: %s", \
                      #__VA_ARGS__, fx_last_error());                                                     \
    } while (0)
#define OK(e) ck_assert_msg((e) == FX_OK, "%s: %s", #e, fx_last_error())

static void product(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(fx_mul(in[0], in[1]), -1, NULL, false);
    out[1] = fx_convert(in[2], FX_S32);
}
static void vector(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_mul(in[0], in[1]);
}

START_TEST(transforms) {
    fx_spec in[] = {FX_SPEC(FX_F32, 2), FX_SPEC(FX_F32, 2), FX_SPEC(FX_S32, 2)};
    fx_func *f, *v, *g = NULL;
    OK(fx_trace_func(product, NULL, 3, in, 2, &f));
    OK(fx_trace_func(vector, NULL, 2, in, 1, &v));
    fx_status (*const by[])(const fx_func *, fx_args, fx_func **) = {fx_grad, fx_value_and_grad, fx_vjp, fx_jvp};
    for (int i = 0; i < 4; i++) {
        REFUSED(by[i](NULL, FX_ARGS(0), &g));
        REFUSED(by[i](f, FX_ARGS(0), NULL));
        REFUSED(by[i](f, FX_ARGS(3), &g));
        REFUSED(by[i](f, FX_ARGS(-1), &g));
        REFUSED(by[i](f, FX_ARGS(0, 0), &g));
        REFUSED(by[i](f, (fx_args){0, NULL}, &g));
        REFUSED(by[i](f, (fx_args){2, NULL}, &g));
        REFUSED(by[i](f, (fx_args){-1, (int[]){0}}, &g));
        ck_assert_ptr_null(g);
    }
    REFUSED(fx_grad(v, FX_ARGS(0), &g));             /* no scalar */
    REFUSED(fx_grad(f, FX_ARGS(2), &g));             /* integers */
    REFUSED(fx_value_and_grad(f, FX_ARGS(0, 2), &g));
    REFUSED(fx_vmap(NULL, NULL, NULL, 2, &g));
    REFUSED(fx_vmap(f, NULL, NULL, 2, NULL));
    REFUSED(fx_vmap(f, NULL, NULL, -1, &g));
    REFUSED(fx_vmap(f, NULL, NULL, INT64_MAX, &g));
    REFUSED(fx_vmap(f, (int[]){0, 5, 0}, NULL, 2, &g));
    REFUSED(fx_vmap(f, (int[]){0, -4, 0}, NULL, 2, &g));
    REFUSED(fx_vmap(f, NULL, (int[]){0, 2}, 2, &g));
    REFUSED(fx_vmap(f, NULL, (int[]){FX_NOT_MAPPED, 0}, 2, &g));
    REFUSED(fx_remat(NULL, &g));
    REFUSED(fx_remat(f, NULL));
    REFUSED(fx_custom_jvp(NULL, f, &g));
    REFUSED(fx_custom_jvp(v, NULL, &g));
    REFUSED(fx_custom_jvp(v, v, NULL));
    REFUSED(fx_custom_jvp(v, v, &g));
    REFUSED(fx_custom_jvp(f, f, &g)); /* integers */
    REFUSED(fx_custom_vjp(NULL, f, f, &g));
    REFUSED(fx_custom_vjp(v, NULL, v, &g));
    REFUSED(fx_custom_vjp(v, v, NULL, &g));
    REFUSED(fx_custom_vjp(v, v, v, NULL));
    REFUSED(fx_custom_vjp(v, v, v, &g));
    REFUSED(fx_custom_vjp(v, f, v, &g));
    ck_assert_ptr_null(g);
    OK(fx_grad(f, FX_ARGS(0), &g));
    fx_func_unref(g);
    fx_func_unref(v);
    fx_func_unref(f);
}
END_TEST

static void device(fx_context *cx, fx_device *d, fx_device *other) {
    const float data[] = {1, 2};
    float got[2] = {0};
    fx_spec in[] = {FX_SPEC(FX_F32, 2), FX_SPEC(FX_F32, 2)}, bad = {FX_F32, 9, {0}};
    fx_array *a, *b, *wide, *n = NULL, *out[1];
    fx_func *f;
    fx_exec *e = NULL;
    fx_jit *j = NULL;
    fx_memory_stats memory;
    fx_exec_stats_t stats;
    (void)cx;
    REFUSED(fx_array_create(NULL, in[0], data, &n));
    REFUSED(fx_array_create(d, in[0], data, NULL));
    REFUSED(fx_array_create(d, bad, data, &n));
    REFUSED(fx_array_create(d, FX_SPEC(FX_F32, -1), data, &n));
    REFUSED(fx_array_create(d, FX_SPEC(FX_TUPLE, 2), data, &n));
    REFUSED(fx_array_create(d, FX_SPEC(FX_F32, INT64_MAX, 2), NULL, &n));
    if (strcmp(fx_device_uri(d), "reference")) /* there it's an allocation like any other, which sanitizers forbid */
        REFUSED(fx_array_create(d, FX_SPEC(FX_F32, (int64_t)1 << 46), NULL, &n)); /* 256 TiB */
    ck_assert_ptr_null(n);
    OK(fx_array_create(d, in[0], data, &a));
    OK(fx_array_create(d, in[1], data, &b));
    OK(fx_array_create(d, FX_SPEC(FX_F32, 3), NULL, &wide));
    REFUSED(fx_array_read(NULL, got, sizeof got));
    REFUSED(fx_array_read(a, NULL, sizeof got));
    REFUSED(fx_array_read(a, got, sizeof got + 4));
    REFUSED(fx_array_read(a, got, 4));
    REFUSED(fx_array_write(NULL, data, sizeof data));
    REFUSED(fx_array_write(a, NULL, sizeof data));
    REFUSED(fx_array_write(a, data, 4));
    REFUSED(fx_array_to(NULL, d, &n));
    REFUSED(fx_array_to(a, NULL, &n));
    REFUSED(fx_array_to(a, d, NULL));
    REFUSED(fx_device_supports(d, FX_TUPLE));
    REFUSED(fx_device_supports(d, (fx_dtype)-1));
    REFUSED(fx_device_supports(NULL, FX_F32));
    REFUSED(fx_device_memory(NULL, &memory));
    REFUSED(fx_device_memory(d, NULL));
    REFUSED(fx_device_wait(NULL));

    fx_compile_options co = FX_COMPILE_OPTIONS_INIT, old = FX_COMPILE_OPTIONS_INIT;
    OK(fx_trace_func(vector, NULL, 2, in, 1, &f));
    old.struct_size = 8;
    REFUSED(fx_compile(NULL, d, NULL, &e));
    REFUSED(fx_compile(f, NULL, NULL, &e));
    REFUSED(fx_compile(f, d, NULL, NULL));
    REFUSED(fx_compile(f, d, &old, &e));
    co.n_donate = 1;
    REFUSED(fx_compile(f, d, &co, &e));
    co.donate = (int[]){2};
    REFUSED(fx_compile(f, d, &co, &e));
    co.donate = (int[]){-1};
    REFUSED(fx_compile(f, d, &co, &e));
    co.n_donate = -1;
    REFUSED(fx_compile(f, d, &co, &e));
    REFUSED(fx_jit_create(NULL, NULL, &j));
    REFUSED(fx_jit_create(f, NULL, NULL));
    REFUSED(fx_jit_create(f, &old, &j));
    REFUSED(fx_jit_create(f, &co, &j));
    ck_assert_ptr_null(e);
    ck_assert_ptr_null(j);

    OK(fx_compile(f, d, NULL, &e));
    OK(fx_jit_create(f, NULL, &j));
    REFUSED(fx_run(NULL, (fx_array *[]){a, b}, out));
    REFUSED(fx_run(e, NULL, out));
    REFUSED(fx_run(e, (fx_array *[]){a, NULL}, out));
    REFUSED(fx_run(e, (fx_array *[]){a, wide}, out));
    REFUSED(fx_run(e, (fx_array *[]){a, b}, NULL));
    if (other) {
        fx_array *far = NULL;
        OK(fx_array_create(other, in[0], data, &far));
        REFUSED(fx_run(e, (fx_array *[]){a, far}, out));
        fx_array_unref(far);
    }
    REFUSED(fx_wait(NULL));
    REFUSED(fx_exec_stats(NULL, &stats));
    REFUSED(fx_exec_stats(e, NULL));
    REFUSED(fx_jit_run(NULL, (fx_array *[]){a, b}, out));
    REFUSED(fx_jit_run(j, NULL, out));
    REFUSED(fx_jit_run(j, (fx_array *[]){NULL, b}, out));
    REFUSED(fx_jit_run(j, (fx_array *[]){a, wide}, out));
    REFUSED(fx_jit_run(j, (fx_array *[]){a, b}, NULL));

    /* All of it as good as new. */
    OK(fx_run(e, (fx_array *[]){a, b}, out));
    OK(fx_array_read(out[0], got, sizeof got));
    ck_assert(got[0] == 1 && got[1] == 4);
    fx_array_unref(out[0]);
    OK(fx_jit_run(j, (fx_array *[]){a, b}, out));
    fx_array_unref(out[0]);
    fx_jit_destroy(j);
    fx_exec_destroy(e);
    fx_func_unref(f);
    fx_array_unref(a);
    fx_array_unref(b);
    fx_array_unref(wide);
}

START_TEST(devices) {
    fx_context *cx = NULL;
    fx_device *d = NULL;
    fx_options old = FX_OPTIONS_INIT;
    old.struct_size = 4;
    REFUSED(fx_init(NULL, NULL));
    REFUSED(fx_init(&old, &cx));
    ck_assert_ptr_null(cx);
    setenv("FORNAX_MEM_FRACTION", "much", 1);
    REFUSED(fx_init(NULL, &cx));
    setenv("FORNAX_MEM_FRACTION", "0", 1);
    REFUSED(fx_init(NULL, &cx));
    unsetenv("FORNAX_MEM_FRACTION");
    setenv("FORNAX_DEVICE", "vulkan:99", 1);
    REFUSED(fx_init(NULL, &cx));
    unsetenv("FORNAX_DEVICE");
    ck_assert_ptr_null(cx);
    OK(fx_init(NULL, &cx));
    ck_assert_int_eq(fx_device_count(NULL), 0);
    ck_assert_ptr_null(fx_device_at(NULL, 0));
    ck_assert_ptr_null(fx_device_at(cx, -1));
    ck_assert_ptr_null(fx_device_at(cx, fx_device_count(cx)));
    ck_assert_ptr_null(fx_default_device(NULL));
    REFUSED(fx_device_find(NULL, "reference", &d));
    REFUSED(fx_device_find(cx, NULL, &d));
    REFUSED(fx_device_find(cx, "abacus:0", &d));
    REFUSED(fx_device_find(cx, "reference", NULL));
    ck_assert_str_eq(fx_device_uri(NULL), "");
    ck_assert_str_eq(fx_device_name(NULL), "");
    ck_assert_str_eq(fx_device_driver(NULL), "");
    ck_assert_str_eq(fx_device_kind_name(NULL), "?");
    ck_assert_ptr_null(fx_array_ref(NULL));
    ck_assert_ptr_null(fx_array_device(NULL));
    ck_assert_int_eq(fx_array_spec(NULL).dtype, FX_TUPLE);
    ck_assert_ptr_null(fx_exec_describe(NULL));
    fx_array_unref(NULL);
    fx_exec_destroy(NULL);
    fx_jit_destroy(NULL);
    fx_shutdown(NULL);
    for (int i = 0; i < fx_device_count(cx); i++)
        device(cx, fx_device_at(cx, i), fx_device_count(cx) > 1 ? fx_device_at(cx, (i + 1) % fx_device_count(cx)) : NULL);
    fx_shutdown(cx);
}
END_TEST

/* One wrong call each in a model on x f32[2,4], labels s32[2] and s f32[]. */
static int wrong, failures;
enum { N_WRONG = 47 };
static void model(fx_nn *nn, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    fx_val x = in[0], labels = in[1], s = in[2], image = fx_reshape(x, 4, (int64_t[]){1, 2, 2, 2});
    fx_initializer zeros = {FX_INIT_ZEROS, 0, 0, 0}, unknown = {(fx_init_kind)99, 0, 0, 0};
    (void)unknown;
    switch (wrong) {
    case 0: out[0] = fx_param(nn, NULL, FX_SPEC0(FX_F32), zeros, false); return;
    case 1: out[0] = fx_param(nn, "", FX_SPEC0(FX_F32), zeros, false); return;
    case 2: out[0] = fx_param(nn, "w", (fx_spec){FX_F32, 9, {0}}, zeros, false); return;
    case 3:
        (void)fx_param(nn, "w", FX_SPEC(FX_F32, 2), zeros, false);
        out[0] = fx_param(nn, "w", FX_SPEC(FX_F32, 3), zeros, false);
        return;
    case 4: out[0] = fx_param(NULL, "w", FX_SPEC(FX_F32, 2), zeros, false); return;
    case 5: out[0] = fx_nn_key(nn); return;
    case 6: out[0] = fx_nn_key(NULL); return;
    case 7: out[0] = fx_nn_cast(NULL, x); return;
    case 8: out[0] = fx_nn_cast(nn, NULL); return;
    case 9: out[0] = fx_nn_linear(nn, NULL, x, 3, true); return;
    case 10: out[0] = fx_nn_linear(nn, "l", NULL, 3, true); return;
    case 11: out[0] = fx_nn_linear(nn, "l", s, 3, true); return;
    case 12: out[0] = fx_nn_linear(nn, "l", x, -3, true); return;
    case 13: out[0] = fx_nn_linear(nn, "l", labels, 3, true); return;
    case 14: out[0] = fx_nn_linear(NULL, "l", x, 3, true); return;
    case 15: out[0] = fx_nn_conv2d(nn, "c", x, 3, 3, 1, 1, true); return;
    case 16: out[0] = fx_nn_conv2d(nn, "c", image, 3, 0, 1, 1, true); return;
    case 17: out[0] = fx_nn_conv2d(nn, "c", image, 3, 3, 0, 1, true); return;
    case 18: out[0] = fx_nn_conv2d(nn, "c", image, 3, INT64_MAX, 1, 1, true); return;
    case 19: out[0] = fx_nn_conv2d(nn, NULL, image, 3, 3, 1, 1, true); return;
    case 20: out[0] = fx_nn_embedding(nn, "e", x, 10, 4); return;
    case 21: out[0] = fx_nn_embedding(nn, "e", labels, -1, 4); return;
    case 22: out[0] = fx_nn_embedding(nn, "e", NULL, 10, 4); return;
    case 23: out[0] = fx_nn_layer_norm(nn, "n", s, 1e-5); return;
    case 24: out[0] = fx_nn_layer_norm(nn, NULL, x, 1e-5); return;
    case 25: out[0] = fx_nn_rms_norm(nn, "n", s, 1e-5); return;
    case 26: out[0] = fx_nn_rms_norm(nn, "n", NULL, 1e-5); return;
    case 27: out[0] = fx_nn_dropout(nn, NULL, 0.5); return;
    case 28: out[0] = fx_nn_attention(nn, x, x, x, NULL, 0); return;
    case 29: out[0] = fx_nn_attention(nn, image, NULL, image, NULL, 0); return;
    case 30: out[0] = fx_nn_attention(nn, image, fx_reshape(x, 4, (int64_t[]){2, 1, 2, 2}), image, NULL, 0); return;
    case 31: out[0] = fx_nn_attention(nn, image, image, image, x, 0); return;
    case 32: out[0] = fx_nn_multi_head_attention(nn, "a", x, 2, NULL, 0); return;
    case 33: out[0] = fx_nn_multi_head_attention(nn, "a", fx_reshape(x, 3, (int64_t[]){1, 2, 4}), 3, NULL, 0); return;
    case 34: out[0] = fx_nn_mlp(nn, "m", s, 8, 0); return;
    case 35: out[0] = fx_nn_transformer_block(nn, NULL, fx_reshape(x, 3, (int64_t[]){1, 2, 4}), 2, 8, 0, 1e-5); return;
    case 36: out[0] = fx_nn_transformer_block(nn, "b", x, 2, 8, 0, 1e-5); return;
    case 37: out[0] = fx_cross_entropy_labels(x, x, 0, -1); return;
    case 38: out[0] = fx_cross_entropy_labels(x, labels, 1.5, -1); return;
    case 39: out[0] = fx_cross_entropy(x, fx_reshape(x, 2, (int64_t[]){4, 2})); return;
    case 40: out[0] = fx_mse(x, NULL); return;
    case 41: out[0] = fx_count_correct(s, labels); return;
    case 42: out[0] = fx_initialize(fx_random_key(fx_nn_trace(nn), 0), unknown, FX_SPEC(FX_F32, 2)); return;
    case 43:
        for (int i = 0; i < 100; i++)
            fx_nn_push(nn, "deep.%d", i);
        out[0] = x;
        return;
    case 44: out[0] = fx_cross_entropy_labels(x, fx_reshape(fx_slice_axis(labels, 0, 0, 1), 1, (int64_t[]){1}), 0, -1); return;
    case 45: out[0] = fx_mse(x, fx_slice_axis(x, 0, 0, 1)); return;
    case 46: out[0] = fx_count_correct(x, fx_expand_dims(labels, 1)); return;
    default: out[0] = fx_nn_linear(nn, "l", x, 3, true); out[0] = fx_reduce_sum(out[0], -1, NULL, false);
    }
}

typedef struct update {
    const fx_optimizer *o;
    int n;
} update;
static void bad_update(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const update *u = user;
    (void)t;
    fx_optimizer_update(u->o, u->n, in, in + 1, in + 2, NULL, in[3], in[3], out, out + 1);
}

START_TEST(models) {
    fx_spec in[] = {FX_SPEC(FX_F32, 2, 4), FX_SPEC(FX_S32, 2), FX_SPEC0(FX_F32)};
    fx_model_options old = FX_MODEL_OPTIONS_INIT, ints = FX_MODEL_OPTIONS_INIT;
    fx_optimizer o = FX_OPTIMIZER_INIT, small = FX_OPTIMIZER_INIT, unknown = FX_OPTIMIZER_INIT;
    fx_model *m = NULL;
    fx_func *f = NULL;
    old.struct_size = 8;
    ints.compute_dtype = FX_S32;
    small.struct_size = 8;
    unknown.kind = (fx_optimizer_kind)99;
    for (wrong = 0; wrong < N_WRONG; wrong++) {
        fx_status st = fx_model_create(model, NULL, NULL, 3, in, 1, &m);
        if (st == FX_INVALID_ARGUMENT && !m && strlen(fx_last_error()) > 15)
            continue;
        printf("model %d: %s: %s\n", wrong, fx_status_name(st), fx_last_error());
        fx_model_destroy(m);
        failures++;
    }
    ck_assert_int_eq(failures, 0);
    REFUSED(fx_model_create(NULL, NULL, NULL, 3, in, 1, &m));
    REFUSED(fx_model_create(model, NULL, NULL, 3, NULL, 1, &m));
    REFUSED(fx_model_create(model, NULL, NULL, -1, in, 1, &m));
    REFUSED(fx_model_create(model, NULL, NULL, 3, in, 0, &m));
    REFUSED(fx_model_create(model, NULL, NULL, 3, in, 1, NULL));
    REFUSED(fx_model_create(model, NULL, &old, 3, in, 1, &m));
    REFUSED(fx_model_create(model, NULL, &ints, 3, in, 1, &m));
    OK(fx_model_create(model, NULL, NULL, 3, in, 1, &m));
    ck_assert_int_eq(fx_model_n_param(NULL), 0);
    ck_assert_ptr_null(fx_model_param_name(NULL, 0));
    ck_assert_ptr_null(fx_model_param_name(m, 2));
    ck_assert_int_eq(fx_model_param_spec(m, -1).dtype, FX_TUPLE);
    ck_assert_int_eq(fx_model_find_param(m, NULL), -1);
    ck_assert_int_eq(fx_model_find_param(NULL, "x"), -1);
    ck_assert(!fx_model_param_decays(m, 9));
    ck_assert_int_eq(fx_model_param_count(NULL), 0);
    ck_assert_ptr_null(fx_model_func(NULL));
    ck_assert_ptr_null(fx_nn_trace(NULL));
    ck_assert(!fx_nn_training(NULL));
    fx_nn_push(NULL, "a");
    fx_nn_pop(NULL);
    fx_model_destroy(NULL);
    REFUSED(fx_model_init_func(NULL, &f));
    REFUSED(fx_model_init_func(m, NULL));
    REFUSED(fx_train_step(NULL, &o, &f));
    REFUSED(fx_train_step(m, NULL, &f));
    REFUSED(fx_train_step(m, &o, NULL));
    REFUSED(fx_train_step(m, &small, &f));
    REFUSED(fx_train_step(m, &unknown, &f));
    ck_assert_int_eq(fx_train_step_state_count(NULL, &o), 0);
    ck_assert_int_eq(fx_train_step_state_count(m, NULL), 0);
    fx_train_step_donate(NULL, &o, NULL);
    ck_assert_int_eq(fx_optimizer_slots(NULL), 0);
    ck_assert_str_eq(fx_optimizer_slot_name(NULL, 0), "");
    ck_assert_str_eq(fx_optimizer_slot_name(&o, 3), "");
    ck_assert(fx_schedule_at(NULL, 0) == 0);
    ck_assert_ptr_null(fx_global_norm(2, NULL));
    ck_assert_ptr_null(fx_initialize(NULL, (fx_initializer){FX_INIT_ONES, 0, 0, 0}, in[0]));
    fx_spec four[] = {in[0], in[0], in[0], in[2]};
    REFUSED(fx_trace_func(bad_update, &(update){NULL, 1}, 4, four, 1, &f));
    REFUSED(fx_trace_func(bad_update, &(update){&small, 1}, 4, four, 1, &f));
    REFUSED(fx_trace_func(bad_update, &(update){&unknown, 1}, 4, four, 1, &f));
    REFUSED(fx_trace_func(bad_update, &(update){&o, 0}, 4, four, 1, &f));
    OK(fx_train_step(m, &o, &f));
    fx_func_unref(f);
    fx_model_destroy(m);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("bad_input");
    TCase *c = tcase_create("all");
    tcase_add_test(c, transforms);
    tcase_add_test(c, devices);
    tcase_add_test(c, models);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
