/* fuzz_graph.c - hostile graph text is refused; accepted text gives a graph that verifies, survives printing and simplifying,
 * and evaluates, when it is small and sure to end. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../op_examples.h"
#include "fornax/base.h"

enum { MOST_ELEMENTS = 1 << 12, MOST_WORK = 1 << 18 };

/* Elements that all values have together, times the runs of regions; more than MOST_WORK: too many, or a loop without a bound. */
static int64_t work(const fx_graph *g) {
    int64_t sum = 0;
    for (int i = 0; i < g->n_node && sum <= MOST_WORK; i++) {
        const fx_node *n = g->nodes[i];
        int64_t widest = 1;
        for (int j = 0; j < fx_result_count(n); j++) {
            int64_t count = fx_spec_count(fx_result_spec(n, j));
            widest = count > widest ? count : widest;
        }
        int64_t operands = 1; /* each result may look at each element */
        for (int j = 0; j < n->n_in && n->spec.dtype != FX_TUPLE; j++)
            operands += n->in[j]->spec.dtype == FX_TUPLE ? 0 : fx_spec_count(&n->in[j]->spec);
        if (n->op == FX_OP_while || widest > MOST_ELEMENTS || operands > MOST_ELEMENTS)
            return MOST_WORK + 1;
        int64_t times = n->op == FX_OP_scan ? FX_GET_INT(n, length) : n->n_region ? operands + widest : 1;
        if (times > MOST_ELEMENTS)
            return MOST_WORK + 1;
        sum += widest * (n->op == FX_OP_dot_general || n->op == FX_OP_convolution || n->op == FX_OP_reduce_window ? operands : 1);
        int64_t window = 1; /* of reduce_window: each position looks at all of it */
        int n_window;
        const int64_t *w = FX_GET_LIST(n, window, &n_window);
        for (int j = 0; j < n_window; j++)
            window = w[j] > MOST_WORK || window > MOST_WORK ? MOST_WORK + 1 : window * w[j];
        if (window > MOST_ELEMENTS)
            return MOST_WORK + 1;
        sum += widest * window;
        for (int j = 0; j < n->n_region; j++) {
            int64_t inner = work(n->region[j]);
            if (inner > MOST_WORK)
                return inner;
            sum += inner * times;
        }
    }
    return sum;
}

static void evaluate(const fx_graph *g) {
    void **args = calloc((size_t)g->n_param + 1, sizeof(void *)), **results = calloc((size_t)g->n_result + 1, sizeof(void *));
    for (int i = 0; i < g->n_param; i++)
        args[i] = calloc((size_t)fx_spec_count(&g->params[i]->spec) + 1, 8);
    for (int i = 0; i < g->n_result; i++)
        results[i] = calloc((size_t)fx_spec_count(&g->results[i]->spec) + 1, 8);
    fuzz_check(fx_graph_eval(g, (const void *const *)args, results) == FX_OK);
    for (int i = 0; i < g->n_param; i++)
        free(args[i]);
    for (int i = 0; i < g->n_result; i++)
        free(results[i]);
    free(args);
    free(results);
}

void fuzz_one(const uint8_t *data, size_t size) {
    fx_graph *g, *h;
    if (fx_graph_parse((const char *)data, size, &g) != FX_OK) {
        fuzz_check(!g && fx_last_error()[0] != '\0');
        return;
    }
    fuzz_check(fx_graph_verify(g) == FX_OK);
    char *text = fx_graph_print(g);
    fuzz_check(text && fx_graph_parse(text, strlen(text), &h) == FX_OK);
    fuzz_check(fx_graph_equal(g, h));
    free(text);
    fx_graph_unref(h);
    fuzz_check(fx_graph_simplify(g, &h) == FX_OK && fx_graph_verify(h) == FX_OK);
    if (work(g) <= MOST_WORK && work(h) <= MOST_WORK) {
        evaluate(g);
        evaluate(h);
    }
    fx_graph_unref(g);
    fx_graph_unref(h);
}

bool fuzz_seed(int i, uint8_t *buf, size_t *size) {
    if (i >= N_OP_EXAMPLES)
        return false;
    *size = strlen(op_examples[i].text);
    memcpy(buf, op_examples[i].text, *size);
    return true;
}
