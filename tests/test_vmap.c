/* test_vmap.c - every op's batching rule against a loop over the lanes, operands batched or not, along several axes;
 * twice nested; wrong arguments. */
#include "tests/grad_examples.h"
#include "tests/gradcheck.h"
#include "tests/op_examples.h"

/* Lane k along an axis of a value, or all of it when it isn't mapped. */
static void copy_lane(const fx_spec *whole, const void *from, int axis, int64_t k, fx_spec part, void *to) {
    size_t item = fx_dtype_size(whole->dtype);
    if (axis == FX_NOT_MAPPED) {
        memcpy(to, from, bytes_of(&part));
        return;
    }
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < whole->rank; i++) {
        outer *= i < axis ? whole->dims[i] : 1;
        inner *= i > axis ? whole->dims[i] : 1;
    }
    for (int64_t o = 0; o < outer; o++)
        memcpy((char *)to + (size_t)(o * inner) * item,
               (const char *)from + (size_t)((o * whole->dims[axis] + k) * inner) * item, (size_t)inner * item);
}

static int normal(int axis, int rank) {
    return axis == FX_NOT_MAPPED || axis >= 0 ? axis : axis + rank;
}

/* vmap(f) with these axes equals f lane by lane. Returns vmap(f). */
static fx_func *check_axes(const char *name, const fx_func *f, const int *in_axes, const int *out_axes, int64_t size) {
    fx_func *many;
    fx_status st = fx_vmap(f, in_axes, out_axes, size, &many);
    ck_assert_msg(st == FX_OK, "%s: %s", name, fx_last_error());
    ck_assert_int_eq(fx_func_n_in(many), fx_func_n_in(f));
    ck_assert_int_eq(fx_func_n_out(many), fx_func_n_out(f));
    values in = random_inputs(many, -2, 2), out = run(many, &in), lane = values_new(in.n);
    for (int i = 0; i < lane.n; i++)
        values_set(&lane, i, fx_func_in_spec(f, i));
    for (int64_t k = 0; k < size; k++) {
        for (int i = 0; i < in.n; i++)
            copy_lane(&in.spec[i], in.data[i], normal(in_axes[i], in.spec[i].rank), k, lane.spec[i], lane.data[i]);
        values want = run(f, &lane);
        for (int j = 0; j < out.n; j++) {
            fx_spec s = want.spec[j];
            int axis = normal(out_axes[j], out.spec[j].rank);
            ck_assert_int_eq(out.spec[j].dims[axis], size);
            values got = values_new(1);
            values_set(&got, 0, s);
            copy_lane(&out.spec[j], out.data[j], axis, k, s, got.data[0]);
            for (int64_t e = 0; e < fx_spec_count(&s); e++) {
                double a = value_at(&got, 0, e), b = value_at(&want, j, e);
                ck_assert_msg((isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-12 * (1 + fabs(b)),
                              "%s: lane %lld, result %d[%lld]: got %.17g, alone %.17g", name, (long long)k, j,
                              (long long)e, a, b);
            }
            values_free(got);
        }
        values_free(want);
    }
    values_free(in), values_free(out), values_free(lane);
    return many;
}

/* All subsets of batched operands; axes in turn first, last and in the middle. */
static void check(const char *name, const fx_func *f, int64_t size, int depth) {
    int n = fx_func_n_in(f), m = fx_func_n_out(f), turn = 0;
    int in_axes[8], out_axes[8];
    ck_assert_int_le(n, 8);
    ck_assert_int_le(m, 8);
    for (unsigned set = 1; set < 1u << n; set++) {
        for (int i = 0; i < n; i++) {
            int rank = fx_func_in_spec(f, i).rank;
            in_axes[i] = !(set & 1u << i)               ? FX_NOT_MAPPED
                         : (set + (unsigned)i) % 3 == 0 ? 0
                         : (set + (unsigned)i) % 3 == 1 ? -1
                                                        : rank / 2;
        }
        for (int j = 0; j < m; j++) {
            int rank = fx_func_out_spec(f, j).rank;
            out_axes[j] = turn % 3 == 0 ? 0 : turn % 3 == 1 ? -1 : rank / 2;
        }
        turn++;
        fx_func *many = check_axes(name, f, in_axes, out_axes, size);
        if (depth > 0) {
            char text[700];
            snprintf(text, sizeof text, "nested, set %u: %s", set, name);
            check(text, many, 2, depth - 1);
        }
        fx_func_unref(many);
    }
}

START_TEST(structural_ops_batch_like_a_loop) {
    bool seen[FX_OP_COUNT] = {false};
    for (size_t i = 0; i < N_OP_EXAMPLES; i++) {
        fx_op op = op_examples[i].op;
        fx_graph *g;
        seen[op] = true;
        if (op == FX_OP_parameter || op == FX_OP_constant || op == FX_OP_iota)
            continue; /* nothing to batch */
        OK(fx_graph_parse(op_examples[i].text, strlen(op_examples[i].text), &g));
        bool exact = !strstr(op_examples[i].text, "f32") && !strstr(op_examples[i].text, "bf16");
        fx_graph_unref(g);
        fx_func *f;
        if (op == FX_OP_bitcast_convert || exact) {
            OK(fx_graph_parse(op_examples[i].text, strlen(op_examples[i].text), &g));
            f = fx_graph_func(g);
        } else
            f = parse_f64(op_examples[i].text);
        check(op_examples[i].text, f, 3, op_examples[i].op == FX_OP_windows ? 0 : 1);
        check(op_examples[i].text, f, 1, 0);
        check(op_examples[i].text, f, 0, 0);
        fx_func_unref(f);
    }
    for (int i = 0; i < FX_OP_COUNT; i++)
        if (fx_op_get((fx_op)i)->op_class == FX_CLASS_STRUCTURAL)
            ck_assert_msg(seen[i], "%s: no example", fx_op_get((fx_op)i)->name);
}
END_TEST

START_TEST(elementwise_ops_batch_like_a_loop) {
    for (int i = 0; i < FX_OP_COUNT; i++)
        for (fx_dtype d = FX_BOOL; d < FX_DTYPE_COUNT; d = (fx_dtype)(d + 1)) {
            char text[256];
            fx_graph *g;
            if ((d != FX_F64 && d != FX_S32 && d != FX_BOOL) || !op_example_elementwise((fx_op)i, d, text, sizeof text))
                continue;
            OK(fx_graph_parse(text, strlen(text), &g));
            check(text, fx_graph_func(g), 3, 0);
            fx_graph_unref(g);
        }
}
END_TEST

static void check_all(size_t n, const char *const *texts) {
    for (size_t i = 0; i < n; i++) {
        fx_graph *g;
        OK(fx_graph_parse(texts[i], strlen(texts[i]), &g));
        check(texts[i], fx_graph_func(g), 3, fx_func_n_in(fx_graph_func(g)) <= 3);
        check(texts[i], fx_graph_func(g), 0, 0);
        fx_graph_unref(g);
    }
}

#define ALL(list) check_all(sizeof list / sizeof *list, list)
START_TEST(variants_batch_like_a_loop) {
    ALL(grad_examples);
    ALL(grad_examples_while);
    ALL(grad_examples_custom_vjp);
}
END_TEST

START_TEST(derivatives_and_batching_nest_in_any_order) {
    for (size_t i = 0; i < N_OP_EXAMPLES; i++) {
        fx_op op = op_examples[i].op;
        bool reverse_only = strstr(op_examples[i].text, "kind=custom_vjp") != NULL;
        if (!fx_op_get(op)->diff || op == FX_OP_reduce_precision || op == FX_OP_convert)
            continue;
        fx_func *f = parse_f64(op_examples[i].text), *many, *d, *dmany;
        int n = fx_func_n_in(f), wrt[8], n_wrt = 0;
        for (int k = 0; k < n; k++)
            if (fx_dtype_is_float(fx_func_in_spec(f, k).dtype))
                wrt[n_wrt++] = k;
        if (!n_wrt || op == FX_OP_project) { /* its result is an integer */
            fx_func_unref(f);
            continue;
        }
        OK(fx_vmap(f, NULL, NULL, 2, &many));
        values in = random_inputs(many, -2, 2);
        gradcheck_modes(op_examples[i].text, many, &in, 0,
                        op == FX_OP_while ? FORWARD_ONLY
                        : reverse_only    ? REVERSE_ONLY
                                          : BOTH_MODES);
        values_free(in);
        OK(op == FX_OP_while ? fx_jvp(f, (fx_args){n_wrt, wrt}, &d) : fx_vjp(f, (fx_args){n_wrt, wrt}, &d));
        int axes[16] = {0};
        dmany = check_axes(op_examples[i].text, d, axes, axes, 3);
        fx_func_unref(dmany);
        axes[0] = FX_NOT_MAPPED;
        if (fx_func_n_in(d) > 1)
            fx_func_unref(check_axes(op_examples[i].text, d, axes, (int[16]){0}, 3));
        fx_func_unref(f), fx_func_unref(many), fx_func_unref(d);
    }
}
END_TEST

static void draws(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    fx_val keys = fx_random_split(in[0], 2), k = fx_reshape(fx_slice_axis(keys, 0, 1, 2), 1, (const int64_t[]){2});
    out[0] = fx_random_bits(k, FX_SPEC(FX_U32, 3));
    out[1] = fx_random_normal(fx_random_fold_in(k, fx_const_like(k, 7)), FX_SPEC(FX_F32, 2, 2));
    out[2] = fx_random_permutation(in[0], 5);
}

START_TEST(random_streams_of_lanes_are_those_of_their_keys) {
    fx_func *f;
    OK(fx_trace_func(draws, NULL, 1, &FX_SPEC(FX_U32, 2), 3, &f));
    fx_func_unref(check_axes("random", f, (const int[]){1}, (const int[]){0, 2, -1}, 4));
    fx_func_unref(f);
}
END_TEST

START_TEST(wrong_arguments_are_named) {
    fx_graph *g;
    const char *text = "graph(%x: f32[2], %y: f32[2]) { %z = add(%x, %y) return %z }";
    OK(fx_graph_parse(text, strlen(text), &g));
    fx_func *f = fx_graph_func(g), *out;
    ck_assert_int_eq(fx_vmap(NULL, NULL, NULL, 2, &out), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_vmap(f, NULL, NULL, 2, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_vmap(f, NULL, NULL, -1, &out), FX_INVALID_ARGUMENT);
    ck_assert(strstr(fx_last_error(), "size"));
    ck_assert_int_eq(fx_vmap(f, (int[]){0, 2}, NULL, 2, &out), FX_INVALID_ARGUMENT);
    ck_assert(strstr(fx_last_error(), "in_axes[1]"));
    ck_assert_int_eq(fx_vmap(f, (int[]){0, -3}, NULL, 2, &out), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_vmap(f, NULL, (int[]){5}, 2, &out), FX_INVALID_ARGUMENT);
    ck_assert(strstr(fx_last_error(), "out_axes[0]"));
    ck_assert_int_eq(fx_vmap(f, NULL, (int[]){FX_NOT_MAPPED}, 2, &out), FX_INVALID_ARGUMENT);
    ck_assert(strstr(fx_last_error(), "differs from lane to lane"));
    ck_assert_ptr_null(out);
    OK(fx_vmap(f, (int[]){FX_NOT_MAPPED, FX_NOT_MAPPED}, (int[]){FX_NOT_MAPPED}, 2,
               &out)); /* nothing to map is no error */
    fx_func_unref(out);
    OK(fx_vmap(f, (int[]){FX_NOT_MAPPED, FX_NOT_MAPPED}, NULL, 4, &out));
    fx_spec s = fx_func_out_spec(out, 0);
    ck_assert(fx_spec_equal(&s, &FX_SPEC(FX_F32, 4, 2)));
    fx_func_unref(out);
    fx_func_unref(f);
}
END_TEST

int main(void) {
    Suite *s = suite_create("vmap");
    TCase *c = tcase_create("vmap");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, structural_ops_batch_like_a_loop);
    tcase_add_test(c, elementwise_ops_batch_like_a_loop);
    tcase_add_test(c, variants_batch_like_a_loop);
    tcase_add_test(c, derivatives_and_batching_nest_in_any_order);
    tcase_add_test(c, random_streams_of_lanes_are_those_of_their_keys);
    tcase_add_test(c, wrong_arguments_are_named);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
