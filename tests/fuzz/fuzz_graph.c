/* fuzz_graph.c - hostile graph text is refused; accepted text gives a graph that verifies and survives printing. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "../op_examples.h"
#include "fornax/base.h"

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
