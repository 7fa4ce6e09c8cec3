/* support.c - what rules share: arithmetic that drops zeros and ones, locations, small graph idioms. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autodiff/rules.h"

void fx_rule_error(fx_graph *g, const fx_node *n, fx_status status, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fx_graph_error(g, status, "%s: %s", fx_op_get(n->op)->name, text);
}

fx_node *fx_ad_neg(fx_graph *g, fx_node *a) {
    if (!a)
        return NULL;
    double v;
    if (fx_node_splat(a, &v) && fx_dtype_is_float(a->spec.dtype))
        return fx_b_const_splat(g, &a->spec, -v);
    if (a->op == FX_OP_neg && a->graph == g)
        return a->in[0];
    return fx_b_unary(g, FX_OP_neg, a);
}

fx_node *fx_ad_add(fx_graph *g, fx_node *a, fx_node *b) {
    if (!a || !b)
        return a ? a : b;
    if (b->op == FX_OP_neg)
        return fx_b_binary(g, FX_OP_sub, a, b->in[0]);
    return fx_b_binary(g, FX_OP_add, a, b);
}

fx_node *fx_ad_sub(fx_graph *g, fx_node *a, fx_node *b) {
    if (!a || !b)
        return a ? a : fx_ad_neg(g, b);
    return fx_b_binary(g, FX_OP_sub, a, b);
}

fx_node *fx_ad_mul(fx_graph *g, fx_node *a, fx_node *b) {
    if (!a || !b)
        return NULL;
    if (fx_node_is_splat(a, 1))
        return b;
    if (fx_node_is_splat(b, 1))
        return a;
    if (fx_node_is_splat(a, -1))
        return fx_ad_neg(g, b);
    if (fx_node_is_splat(b, -1))
        return fx_ad_neg(g, a);
    return fx_b_binary(g, FX_OP_mul, a, b);
}

fx_node *fx_ad_mul_c(fx_graph *g, fx_node *a, double c) {
    return a ? fx_ad_mul(g, a, fx_b_const_splat(g, &a->spec, c)) : NULL;
}

fx_node *fx_ad_zeros(fx_graph *g, fx_node *t, const fx_spec *spec) {
    return t ? t : fx_b_zeros(g, spec);
}

fx_node *fx_ad_rebuild(fx_graph *g, const fx_node *n, int n_first, fx_node *const *first, fx_node *const *in) {
    fx_node **all = FX_ARENA_ARRAY(&g->arena, fx_node *, n->n_in + 1);
    if (!all)
        return fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    for (int i = 0; i < n->n_in; i++)
        all[i] = i < n_first ? first[i] : in[i];
    return fx_build(g, n->op, n->n_in, all, n->n_attr, n->attr, n->n_region, n->region);
}

void fx_ad_inverse(int n, const int64_t *permutation, int64_t *inverse) {
    for (int i = 0; i < n; i++)
        inverse[permutation[i]] = i;
}

fx_node *fx_ad_spread(fx_graph *g, fx_node *x, const fx_spec *like, int n, const int64_t *dims) {
    int64_t kept[FX_MAX_RANK];
    int k = 0;
    for (int i = 0, d = 0; i < like->rank; i++) {
        if (d < n && dims[d] == i)
            d++;
        else
            kept[k++] = i;
    }
    return fx_b_broadcast(g, x, like->rank, like->dims, kept);
}

fx_node *fx_ad_take_along(fx_graph *g, fx_node *x, fx_node *index, int64_t dim) {
    if (!x || !index)
        return NULL;
    int rank = x->spec.rank, k = 0;
    int64_t others[FX_MAX_RANK], ones[FX_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        ones[i] = 1;
        if (i != dim)
            others[k++] = i;
    }
    const fx_attr a[] = {FX_LIST(offset_dims, 0, NULL),
                         FX_LIST(collapsed_slice_dims, 1, &dim),
                         FX_LIST(operand_batching_dims, k, others),
                         FX_LIST(indices_batching_dims, k, others),
                         FX_LIST(start_index_map, 1, &dim),
                         FX_INT(index_vector_dim, rank),
                         FX_LIST(slice_sizes, rank, ones)};
    return fx_build(g, FX_OP_gather, 2, (fx_node *[]){x, index}, sizeof a / sizeof *a, a, 0, NULL);
}

fx_ad_place fx_ad_enter(fx_graph *g, const fx_node *n) {
    fx_ad_place p = {.scope = g->scope};
    fx_location_get(&p.file, &p.line);
    fx_location_set(n->file, n->line);
    if (n->scope && (!g->scope || strcmp(g->scope, n->scope))) {
        const fx_node *last = g->n_node ? g->nodes[g->n_node - 1] : NULL;
        g->scope =
            last && last->scope && !strcmp(last->scope, n->scope) ? last->scope : fx_arena_strdup(&g->arena, n->scope);
    }
    return p;
}

void fx_ad_leave(fx_graph *g, fx_ad_place p) {
    g->scope = p.scope;
    fx_location_set(p.file, p.line);
}
