/* simplify_control.c - control flow computes only what is used: results of cond and scan that no one takes, and
 * operands that no region reads, are dropped from the op and from its regions. */
#include <stdlib.h>

#include "core/base/error.h"
#include "core/graph/rules.h"

/* Which parameters does a region read? Adds to read[0..n_param-1]. */
static void mark_read(const fx_graph *f, bool *read) {
    for (int i = 0; i < f->n_node; i++)
        for (int j = 0; j < f->nodes[i]->n_in; j++)
            if (f->nodes[i]->in[j]->op == FX_OP_parameter)
                read[f->nodes[i]->in[j]->id] = true;
    for (int i = 0; i < f->n_result; i++)
        if (f->results[i]->op == FX_OP_parameter)
            read[f->results[i]->id] = true;
}

/* f with some parameters and results only. */
static fx_graph *subset(const fx_graph *f, const bool *keep_param, const bool *keep_result) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node **args = malloc(sizeof *args * (size_t)(f->n_param + 1)),
            **results = malloc(sizeof *results * (size_t)(f->n_result + 1));
    int n = 0;
    for (int i = 0; g && args && i < f->n_param; i++)
        args[i] = keep_param[i] ? fx_graph_param(g, &f->params[i]->spec) : NULL;
    for (int i = 0; g && args && i < f->n_param; i++)
        if (!keep_param[i]) /* nothing reads it */
            args[i] = fx_b_zeros(g, &f->params[i]->spec);
    bool ok = g && args && results && fx_graph_inline(g, f, args, results) == FX_OK;
    for (int i = 0; ok && i < f->n_result; i++)
        if (keep_result[i])
            results[n++] = results[i];
    ok = ok && fx_graph_finish(g, n, results, true) == FX_OK;
    free(args);
    free(results);
    if (ok)
        return g;
    fx_graph_unref(g);
    return NULL;
}

static int count(const bool *v, int n) {
    int k = 0;
    for (int i = 0; i < n; i++)
        k += v[i];
    return k;
}

/* The op again on the kept operands and results. The first operand of cond is its index, not a parameter. */
static fx_node *rebuild(fx_graph *g, const fx_node *n, fx_node *const *in, fx_graph *const *region, const bool *param,
                        const bool *result) {
    int lead = n->op == FX_OP_cond, k = 0, n_attr = 0;
    fx_node *made = NULL, **operands = malloc(sizeof *operands * (size_t)(n->n_in + 1));
    fx_graph **smaller = calloc((size_t)n->n_region + 1, sizeof(fx_graph *));
    bool all[1] = {true}, ok = operands && smaller;
    for (int i = 0; ok && i < n->n_in; i++)
        if (i < lead || param[i - lead])
            operands[k++] = in[i];
    for (int i = 0; ok && i < n->n_region; i++) {
        bool condition = n->op == FX_OP_while && i == 0;
        smaller[i] = subset(region[i], param, condition ? all : result);
        ok = smaller[i];
    }
    fx_attr attrs[8];
    for (int i = 0; i < n->n_attr && n_attr < 8; i++) {
        attrs[n_attr] = n->attr[i];
        if (n->attr[i].id == FX_ATTR_n_consts)
            attrs[n_attr].u.i = count(param, (int)n->attr[i].u.i);
        n_attr++;
    }
    if (ok)
        made = fx_build(g, n->op, k, operands, n_attr, attrs, n->n_region, smaller);
    else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    for (int i = 0; smaller && i < n->n_region; i++)
        fx_graph_unref(smaller[i]);
    free(operands);
    free(smaller);
    return made;
}

fx_node *fx_trim_control(fx_graph *g, const fx_node *n, fx_node *const *in, fx_graph *const *region, const bool *used,
                         int *place) {
    int lead = n->op == FX_OP_cond, n_param = n->n_in - lead;
    for (int i = 0; i < n->n_result; i++)
        place[i] = i;
    if (n->op != FX_OP_cond && n->op != FX_OP_while && n->op != FX_OP_scan)
        return fx_build(g, n->op, n->n_in, in, n->n_attr, n->attr, n->n_region, region);
    bool *result = malloc((size_t)n->n_result + 1), *param = calloc((size_t)n_param + 1, 1);
    fx_node *made = NULL;
    if (result && param) {
        int carry = n->op == FX_OP_cond ? 0 : (int)FX_GET_INT(n, n_carry);
        for (int i = 0; i < n->n_result; i++)
            result[i] = used[i] || i < carry;
        if (!count(result, n->n_result))
            result[0] = true;
        /* A carry stays with its operand; what only a dropped result reads goes on the next pass. */
        int first = n->op == FX_OP_scan ? (int)FX_GET_INT(n, n_consts) : 0;
        for (int i = 0; i < n->n_region; i++)
            mark_read(region[i], param);
        for (int i = first; i < first + carry; i++)
            param[i] = true;
        int kept = count(result, n->n_result), k = 0;
        for (int i = 0; i < n->n_result; i++)
            place[i] = result[i] ? k++ : -1;
        if (kept == n->n_result && count(param, n_param) == n_param)
            made = fx_build(g, n->op, n->n_in, in, n->n_attr, n->attr, n->n_region, region);
        else
            made = rebuild(g, n, in, region, param, result);
    } else
        fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
    free(result);
    free(param);
    return made;
}
