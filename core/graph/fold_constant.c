/* fold_constant.c - ops on constants, computed by the evaluator's rules.
 *
 * Elementwise on constants that are the same everywhere: one element is computed, whatever the shape. Anything else
 * only while it is small: constants never make a graph large. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/eval.h"
#include "core/graph/node.h"
#include "core/graph/rules.h"

enum { MAX_ELEMENTS = 2048, MAX_OPERANDS = 16 };

static const fx_attr *value_of(const fx_node *n) {
    return n->op == FX_OP_constant ? fx_attr_get(n, FX_ATTR_value) : NULL;
}

static bool is_splat(const fx_node *n) {
    const fx_attr *a = value_of(n);
    return a && (size_t)a->count == fx_dtype_size(n->spec.dtype);
}

fx_node *fx_fold_splat(const fx_rule *r) {
    if (!fx_op_is_elementwise(r->op) || r->n_in > 3 || r->op == FX_OP_stop_gradient)
        return NULL;
    fx_node scalar[4], *in[3]; /* the same op on single elements, outside any graph */
    const void *from[3];
    for (int i = 0; i < r->n_in; i++) {
        if (!is_splat(r->in[i]))
            return NULL;
        scalar[i] = (fx_node){.op = FX_OP_constant, .spec = FX_SPEC0(r->in[i]->spec.dtype)};
        in[i] = &scalar[i];
        from[i] = value_of(r->in[i])->u.data;
    }
    scalar[3] = (fx_node){
        .op = r->op, .spec = FX_SPEC0(r->spec.dtype), .n_in = r->n_in, .in = in, .attr = r->out, .n_attr = r->n_out};
    uint64_t element = 0;
    void *to = &element;
    if (fx_eval_node(&scalar[3], from, &to) != FX_OK)
        return NULL;
    return fx_b_const_element(r->g, &r->spec, &element);
}

/* All elements of a constant; NULL when memory is out. */
static void *spread(const fx_node *n) {
    size_t size = fx_dtype_size(n->spec.dtype), count = (size_t)fx_spec_count(&n->spec);
    const fx_attr *a = value_of(n);
    unsigned char *p = malloc(count * size + 1);
    for (size_t i = 0; p && i < count; i++)
        memcpy(p + i * size, (const unsigned char *)a->u.data + (is_splat(n) ? 0 : i * size), size);
    return p;
}

fx_node *fx_fold_constant(fx_graph *g, fx_node *n) {
    if (!n->n_in || n->n_in > MAX_OPERANDS || n->n_region || n->spec.dtype == FX_TUPLE ||
        n->op == FX_OP_stop_gradient || fx_spec_count(&n->spec) > MAX_ELEMENTS)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->op != FX_OP_constant || fx_spec_count(&n->in[i]->spec) > MAX_ELEMENTS)
            return NULL;
    void *in[MAX_OPERANDS] = {NULL}, *out = calloc((size_t)fx_spec_count(&n->spec) + 1, fx_dtype_size(n->spec.dtype));
    bool ok = out;
    for (int i = 0; ok && i < n->n_in; i++)
        ok = (in[i] = spread(n->in[i])) != NULL;
    ok = ok && fx_eval_node(n, (const void *const *)in, &out) == FX_OK;
    fx_node *c = ok ? fx_b_const_data(g, &n->spec, out) : NULL;
    for (int i = 0; i < n->n_in; i++)
        free(in[i]);
    free(out);
    return c;
}
