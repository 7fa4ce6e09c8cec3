/* test_ops_doc.c - docs/ops.md is what the op table says. With FX_WRITE_DOCS=1 in the environment the page is written instead
 * of compared: do that after a change of ops.def. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "op_examples.h"

#define PAGE FX_TESTS_DIR "/../docs/ops.md"

/* In a table cell "|" ends the cell. */
static void cell(FILE *f, const char *s) {
    for (; *s; s++)
        fprintf(f, *s == '|' ? "\\|" : "%c", *s);
}

static void types(FILE *f, unsigned t) {
    fprintf(f, "%s%s%s%s", t & FX_TYPE_B ? "bool " : "", t & FX_TYPE_I ? "signed " : "", t & FX_TYPE_U ? "unsigned " : "",
            t & FX_TYPE_F ? "float " : "");
}

static void elementwise(FILE *f) {
    fprintf(f, "| op | operands | types | result | floats | integers, bool | ulp | meaning |\n"
               "| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (int op = 0; op < FX_OP_COUNT; op++) {
        const fx_op_info *i = fx_op_get((fx_op)op);
        if (i->op_class == FX_CLASS_STRUCTURAL)
            continue;
        fprintf(f, "| %s | %d | ", i->name, i->n_in);
        types(f, i->types);
        fprintf(f, "| %s | %s%s%s | %s%s%s | %d | ", i->bool_result ? "bool" : "same", i->float_expr ? "`" : "",
                i->float_expr ? i->float_expr : "", i->float_expr ? "`" : "", i->int_expr ? "`" : "", i->int_expr ? i->int_expr : "",
                i->int_expr ? "`" : "", i->ulp);
        cell(f, i->doc);
        fprintf(f, " |\n");
    }
}

/* The first node of this op in a graph. */
static const fx_node *node_of(const fx_graph *g, fx_op op) {
    for (int i = 0; i < g->n_node; i++)
        if (g->nodes[i]->op == op)
            return g->nodes[i];
    return NULL;
}

static void attributes(FILE *f, const fx_node *n) {
    static const char *const kinds[] = {"integer", "list", "word", "element type", "elements"};
    for (int i = 0; i < n->n_attr; i++)
        fprintf(f, "%s`%s` (%s)", i ? ", " : "Attributes: ", fx_attr_name(n->attr[i].id), kinds[fx_attr_kind_of(n->attr[i].id)]);
    if (n->n_attr)
        fprintf(f, ".\n");
}

static void structural(FILE *f) {
    for (int op = 0; op < FX_OP_COUNT; op++) {
        const fx_op_info *info = fx_op_get((fx_op)op);
        bool first = true;
        if (info->op_class != FX_CLASS_STRUCTURAL)
            continue;
        fprintf(f, "\n### %s\n\n%c%s.\n", info->name, info->doc[0] >= 'a' && info->doc[0] <= 'z' ? info->doc[0] - 32 : info->doc[0],
                info->doc + 1);
        fprintf(f, "%s%s\n", info->diff ? "Differentiable." : "Without a derivative.", info->view ? " Moves elements only." : "");
        for (int i = 0; i < N_OP_EXAMPLES; i++) {
            fx_graph *g;
            if ((int)op_examples[i].op != op)
                continue;
            ck_assert_int_eq(fx_graph_parse(op_examples[i].text, strlen(op_examples[i].text), &g), FX_OK);
            if (first && op != FX_OP_parameter)
                attributes(f, node_of(g, (fx_op)op));
            char *text = fx_graph_print(g);
            fprintf(f, "\n```\n%s```\n", text);
            free(text);
            fx_graph_unref(g);
            first = false;
        }
    }
}

static void write_page(FILE *f) {
    fprintf(f, "# Operations\n\n"
               "Generated from `core/ops/ops.def` by `tests/test_ops_doc.c`: run `FX_WRITE_DOCS=1 build/bin/test_ops_doc` "
               "after changing the table.\n\n"
               "A graph's nodes are these operations. None broadcasts or converts on its own; the functions of\n"
               "`<fornax/trace.h>` do. Attributes at their default may be left out in text and in `fx_build`; a node stores all.\n\n"
               "## Elementwise\n\n"
               "Operands have one shape, and one type but for operand 0 of `select`. In the expressions x, y, z are the operands,\n"
               "`M(f, ...)` is the elementary function f of the element type. `ulp`: how far a device may be from the correctly\n"
               "rounded f32 result.\n\n");
    elementwise(f);
    fprintf(f, "\n## Structural\n\nBraces name attributes. The examples are in the text form that `fx_func_print` writes and "
               "`fx_func_parse` reads.\n");
    structural(f);
}

START_TEST(the_page_is_current) {
    char *text = NULL, *have;
    size_t size = 0;
    FILE *m = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(m);
    write_page(m);
    fclose(m);
    if (getenv("FX_WRITE_DOCS")) {
        FILE *f = fopen(PAGE, "w");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(text, 1, size, f), size);
        fclose(f);
        free(text);
        return;
    }
    FILE *f = fopen(PAGE, "r");
    ck_assert_msg(f != NULL, "no docs/ops.md; run with FX_WRITE_DOCS=1");
    have = calloc(size + 2, 1);
    size_t n = fread(have, 1, size + 1, f);
    fclose(f);
    ck_assert_msg(n == size && !memcmp(have, text, size), "docs/ops.md isn't what ops.def says; run with FX_WRITE_DOCS=1");
    free(have);
    free(text);
}
END_TEST

START_TEST(every_attribute_is_named_in_its_op_s_line) {
    for (int i = 0; i < N_OP_EXAMPLES; i++) {
        fx_graph *g;
        ck_assert_int_eq(fx_graph_parse(op_examples[i].text, strlen(op_examples[i].text), &g), FX_OK);
        const fx_node *n = node_of(g, op_examples[i].op);
        for (int a = 0; a < n->n_attr; a++) {
            char name[64];
            snprintf(name, sizeof name, "{%s}", fx_attr_name(n->attr[a].id));
            ck_assert_msg(strstr(fx_op_get(n->op)->doc, name) != NULL, "%s: %s", fx_op_get(n->op)->name, name);
        }
        fx_graph_unref(g);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("ops_doc");
    TCase *c = tcase_create("ops_doc");
    suite_add_tcase(s, c);
    tcase_add_test(c, the_page_is_current);
    tcase_add_test(c, every_attribute_is_named_in_its_op_s_line);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
