/* eval_sort.c - sort with a comparator region, and top_k: one stable merge sort of indices. */
#include <stdlib.h>

#include "core/graph/eval.h"

/* Does element b come strictly before a? Only then does the sort let it overtake. */
typedef fx_status (*before_fn)(void *user, int64_t b, int64_t a, bool *yes);

/* Sorts order[0..n) stably; `spare` has room for n. */
static fx_status merge_sort(int64_t *order, int64_t *spare, int64_t n, before_fn before, void *user) {
    if (n < 2)
        return FX_OK;
    int64_t half = n / 2, i = 0, j = half, k = 0;
    FX_TRY(merge_sort(order, spare, half, before, user));
    FX_TRY(merge_sort(order + half, spare, n - half, before, user));
    while (i < half && j < n) {
        bool overtakes = false;
        FX_TRY(before(user, order[j], order[i], &overtakes));
        spare[k++] = overtakes ? order[j++] : order[i++];
    }
    while (i < half)
        spare[k++] = order[i++];
    for (int64_t p = 0; p < k; p++) /* the rest of the right half is in place */
        order[p] = spare[p];
    return FX_OK;
}

typedef struct line {
    const fx_eval_args *call;
    int arrays;
    int64_t first, step; /* of the line being sorted, in elements */
    const void **args;   /* of the region: a0, b0, a1, b1, ... */
} line;

static fx_status region_before(void *user, int64_t b, int64_t a, bool *yes) {
    line *l = user;
    uint8_t answer = 0;
    void *result = &answer;
    for (int k = 0; k < l->arrays; k++) {
        int64_t size = (int64_t)fx_dtype_size(l->call->node->in[k]->spec.dtype);
        const char *data = l->call->in[k];
        l->args[2 * k] = data + (l->first + b * l->step) * size;
        l->args[2 * k + 1] = data + (l->first + a * l->step) * size;
    }
    FX_TRY(fx_eval_region(l->call, 0, l->args, &result));
    *yes = answer;
    return FX_OK;
}

fx_status fx_eval_sort(const fx_eval_args *c) {
    const fx_node *n = c->node;
    const fx_spec *x = &n->in[0]->spec;
    int64_t dim = FX_GET_INT(n, dim), size = x->dims[dim], strides[FX_MAX_RANK], count = fx_spec_count(x);
    line l = {.call = c, .arrays = n->n_in};
    fx_eval_strides(x, strides);
    l.step = strides[dim];
    l.args = fx_eval_alloc(2 * l.arrays, sizeof *l.args);
    int64_t *order = fx_eval_alloc(size, sizeof *order), *spare = fx_eval_alloc(size, sizeof *spare);
    fx_status st = l.args && order && spare ? FX_OK : FX_OUT_OF_MEMORY;
    for (int64_t i = 0; st == FX_OK && count && i < count / size; i++) {
        l.first = i / l.step * l.step * size + i % l.step;
        for (int64_t j = 0; j < size; j++)
            order[j] = j;
        st = merge_sort(order, spare, size, region_before, &l);
        for (int k = 0; st == FX_OK && k < l.arrays; k++) {
            fx_dtype d = n->in[k]->spec.dtype;
            fx_lane v;
            for (int64_t j = 0; j < size; j++) {
                fx_lane_load(d, c->in[k], l.first + order[j] * l.step, 1, 1, &v);
                fx_lane_store(d, c->out[k], l.first + j * l.step, 1, 1, &v);
            }
        }
    }
    free(l.args);
    free(order);
    free(spare);
    return st;
}

typedef struct values {
    const fx_lane *x;
    fx_lane_kind kind;
} values;

static fx_status larger(void *user, int64_t b, int64_t a, bool *yes) {
    const values *v = user;
    *yes = fx_lane_better(true, v->kind, v->x[b], v->x[a]);
    return FX_OK;
}

fx_status fx_eval_top_k(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec;
    int64_t n = x->rank ? x->dims[x->rank - 1] : 1, k = FX_GET_INT(c->node, k), count = fx_spec_count(x);
    fx_lane *lanes = fx_eval_alloc(n, sizeof *lanes);
    int64_t *order = fx_eval_alloc(n, sizeof *order), *spare = fx_eval_alloc(n, sizeof *spare);
    fx_status st = lanes && order && spare ? FX_OK : FX_OUT_OF_MEMORY;
    values v = {lanes, fx_lane_kind_of(x->dtype)};
    for (int64_t line_at = 0; st == FX_OK && count && line_at < count / n; line_at++) {
        fx_lane_load(x->dtype, c->in[0], line_at * n, 1, n, lanes);
        for (int64_t i = 0; i < n; i++)
            order[i] = i;
        st = merge_sort(order, spare, n, larger, &v);
        for (int64_t i = 0; st == FX_OK && i < k; i++) {
            fx_lane at = {.s = order[i]};
            fx_lane_store(x->dtype, c->out[0], line_at * k + i, 1, 1, lanes + order[i]);
            fx_lane_store(FX_S32, c->out[1], line_at * k + i, 1, 1, &at);
        }
    }
    free(lanes);
    free(order);
    free(spare);
    return st;
}
