/* test_print.c - parsing is the inverse of printing, for every op and every constant; bad text is refused with its place. */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"
#include "op_examples.h"

static fx_graph *parse(const char *text) {
    fx_graph *g;
    ck_assert_msg(fx_graph_parse(text, strlen(text), &g) == FX_OK, "%s\n%s", fx_last_error(), text);
    ck_assert_msg(fx_graph_verify(g) == FX_OK, "%s\n%s", fx_last_error(), text);
    return g;
}

static void round_trip(const char *text, fx_op op) {
    fx_graph *g = parse(text);
    char *once = fx_graph_print(g);
    ck_assert_ptr_nonnull(once);
    fx_graph *h = parse(once);
    char *twice = fx_graph_print(h);
    ck_assert_str_eq(once, twice);
    ck_assert_msg(fx_graph_equal(g, h), "%s", once);
    bool has = false;
    for (int i = 0; i < g->n_node; i++)
        has |= g->nodes[i]->op == op;
    ck_assert_msg(has, "an example of %s has none: %s", fx_op_get(op)->name, text);
    free(once);
    free(twice);
    fx_graph_unref(g);
    fx_graph_unref(h);
}

START_TEST(every_op_survives_printing_and_parsing) {
    for (int op = 0; op < FX_OP_COUNT; op++) {
        int examples = 0;
        char text[256];
        for (int i = 0; i < N_OP_EXAMPLES; i++)
            if ((int)op_examples[i].op == op) {
                round_trip(op_examples[i].text, (fx_op)op);
                examples++;
            }
        for (int d = 0; d < FX_DTYPE_COUNT; d++)
            if (op_example_elementwise((fx_op)op, (fx_dtype)d, text, sizeof text)) {
                round_trip(text, (fx_op)op);
                examples++;
            }
        ck_assert_msg(examples > 0, "no example of %s", fx_op_get((fx_op)op)->name);
    }
}
END_TEST

static void constant_round_trip(fx_dtype d, int64_t n, const void *data) {
    fx_graph *g = fx_graph_new(NULL), *h;
    fx_spec spec = FX_SPEC(d, n);
    fx_node *c = fx_b_const_data(g, &spec, data);
    ck_assert_int_eq(fx_graph_finish(g, 1, &c, true), FX_OK);
    char *text = fx_graph_print(g);
    ck_assert_msg(fx_graph_parse(text, strlen(text), &h) == FX_OK, "%s", fx_last_error());
    const fx_attr *a = fx_attr_get(c, FX_ATTR_value), *b = fx_attr_get(h->results[0], FX_ATTR_value);
    ck_assert_int_eq(a->count, b->count);
    ck_assert_mem_eq(a->u.data, b->u.data, (size_t)a->count);
    free(text);
    fx_graph_unref(g);
    fx_graph_unref(h);
}

START_TEST(constants_keep_every_bit) {
    static uint16_t half[65536];
    for (int i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    constant_round_trip(FX_F16, 65536, half);
    constant_round_trip(FX_BF16, 65536, half);
    constant_round_trip(FX_S16, 65536, half);
    constant_round_trip(FX_U16, 65536, half);
    static uint64_t word[20000];
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        word[i] = x;
    }
    uint64_t edge[] = {0, 1ull << 63, ~0ull, 0x7ff0000000000000, 0xfff0000000000001, 0x7fffffffffffffff, 1, 0x7f800001, 0x80000000};
    memcpy(word, edge, sizeof edge);
    constant_round_trip(FX_F64, 20000, word);
    constant_round_trip(FX_F32, 40000, word);
    constant_round_trip(FX_U64, 20000, word);
    constant_round_trip(FX_S64, 20000, word);
    constant_round_trip(FX_U32, 40000, word);
    constant_round_trip(FX_S32, 40000, word);
    constant_round_trip(FX_U8, 40000, word);
    constant_round_trip(FX_S8, 40000, word);
    constant_round_trip(FX_BOOL, 6, "\0\1\1\0\1\0");
    constant_round_trip(FX_F32, 0, word);
}
END_TEST

START_TEST(a_comma_as_decimal_point_changes_nothing) {
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        return; /* not installed here: the other tests cover the plain locale */
    double v[] = {0.5, -1e-300, 3.25};
    constant_round_trip(FX_F64, 3, v);
    setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(scopes_are_kept) {
    const char *text = "graph(%0: f32[]) {\n  %1 = exp(%0) : f32[] @\"layers.3 \\\"a\\\\b\\\"\"\n  return %1\n}\n";
    fx_graph *g = parse(text);
    ck_assert_str_eq(g->results[0]->scope, "layers.3 \"a\\b\"");
    char *again = fx_graph_print(g);
    ck_assert_str_eq(again, text);
    free(again);
    fx_graph_unref(g);
}
END_TEST

START_TEST(bad_text_is_refused_with_its_place) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "line 1, column 1; expected \"graph\""},
        {"graph(%x: f32[2]) { return %y }", "the name of an earlier value"},
        {"graph(%x: f32[2]) {\n %y = exp(%y) return %y }", "line 2, column 12; expected the name of an earlier value"},
        {"graph(%x: f32[2]) { %x = exp(%x) return %x }", "a new name"},
        {"graph(%x: f32[2]) { %y = exq(%x) return %y }", "the name of an operation"},
        {"graph(%x: f32[2]) {\n\n %y = exp(%x, %x) return %y }", "graph text:3: exp: operands; expected 1; got 2"},
        {"graph(%x: f32[2]) { %y = exp(%x) : f32[3] return %y }", "the type that the operation has"},
        {"graph(%x: f32[-2]) { return %x }", "parameter 0"},
        {"graph(%x: f32[99999999999999999999]) { return %x }", "an integer of 64 bits"},
        {"graph(%x: f32[1,1,1,1,1,1,1,1,1]) { return %x }", "too many dimensions"},
        {"graph(%x: f32[2]) { %y = reshape(%x) {shape=[3]} return %y }", "expected 2 elements"},
        {"graph(%x: f32[2]) { %y = reshape(%x) {shape=[4611686018427387904,4611686018427387904]} return %y }", "0 to"},
        {"graph(%x: f32[2]) { %y = reshape(%x) {shape=[2], shape=[2]} return %y }", "twice"},
        {"graph(%x: f32[2]) { %y = exp(%x) {dim=1} return %y }", "expected none of this name"},
        {"graph() { %c = constant() {dtype=s8, shape=[], value=[128]} return %c }", "an element of the constant's type"},
        {"graph() { %c = constant() {value=[1], dtype=s8, shape=[]} return %c }", "after dtype"},
        {"graph() { %c = constant() {dtype=f32, shape=[3], value=[1,2]} return %c }", "expected 4 bytes"},
        {"graph(%x: f32[2]) { return %x } x", "expected the end"},
        {"graph(%x: f32[2]) { %y = exp(%x) : f32[2] @\"abc return %y }", "a string that ends"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fx_graph *g = (fx_graph *)1;
        ck_assert_int_ne(fx_graph_parse(cases[i].text, strlen(cases[i].text), &g), FX_OK);
        ck_assert_ptr_null(g);
        ck_assert_msg(strstr(fx_last_error(), cases[i].error) != NULL, "%s: %s", cases[i].text, fx_last_error());
    }
    char deep[20000] = "";
    for (int i = 0; i < 500; i++)
        strcat(deep, "graph() { %x = call(");
    fx_graph *g;
    ck_assert_int_eq(fx_graph_parse(deep, strlen(deep), &g), FX_BAD_DATA);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "nested less deeply"));
}
END_TEST

int main(void) {
    Suite *s = suite_create("print");
    TCase *c = tcase_create("print");
    suite_add_tcase(s, c);
    tcase_set_timeout(c, 30);
    tcase_add_test(c, every_op_survives_printing_and_parsing);
    tcase_add_test(c, constants_keep_every_bit);
    tcase_add_test(c, a_comma_as_decimal_point_changes_nothing);
    tcase_add_test(c, scopes_are_kept);
    tcase_add_test(c, bad_text_is_refused_with_its_place);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
