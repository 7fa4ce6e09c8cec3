/* eval_reduce.c - reduce, reduce_fn, arg_reduce, cumulative.
 *
 * Results are accumulated in lanes (floats in double), in row-major order of the operand, and rounded once. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/eval.h"

/* Strides of the result for each operand dim, 0 for the reduced ones. */
static void result_strides(const fx_node *n, const fx_spec *x, const fx_spec *r, int64_t *to) {
    int64_t rs[FX_MAX_RANK];
    int count, k = 0;
    const int64_t *dims = FX_GET_LIST(n, dims, &count);
    fx_eval_strides(r, rs);
    for (int i = 0; i < x->rank; i++) {
        bool reduced = false;
        for (int j = 0; j < count; j++)
            reduced |= dims[j] == i;
        to[i] = reduced ? 0 : rs[k++];
    }
}

fx_status fx_eval_reduce(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    fx_symbol kind = FX_GET_SYM(c->node);
    fx_lane_kind k = fx_lane_kind_of(r->dtype);
    fx_lane identity = fx_lane_identity(kind, r->dtype), lanes[FX_LANE_CHUNK];
    int64_t to[FX_MAX_RANK], index[FX_MAX_RANK] = {0}, count = fx_spec_count(r), at = 0;
    int last = x->rank - 1;
    fx_lane *acc = fx_eval_alloc(count, sizeof *acc);
    if (!acc)
        return FX_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++)
        acc[i] = identity;
    result_strides(c->node, x, r, to);
    int64_t inner = last >= 0 ? x->dims[last] : 1, step = last >= 0 ? to[last] : 0;
    bool more = fx_spec_count(x) > 0;
    for (; more; more = fx_eval_step(last, x->dims, index)) {
        fx_lane *line = acc;
        for (int i = 0; i < last; i++)
            line += index[i] * to[i];
        for (int64_t i = 0; i < inner; i += FX_LANE_CHUNK) {
            int64_t m = inner - i < FX_LANE_CHUNK ? inner - i : FX_LANE_CHUNK;
            fx_lane_load(x->dtype, c->in[0], at, 1, m, lanes);
            fx_lane_combine(kind, k, line + i * step, step, lanes, m);
            at += m;
        }
    }
    fx_lane_store(r->dtype, c->out[0], 0, 1, count, acc);
    free(acc);
    return FX_OK;
}

fx_status fx_eval_reduce_fn(const fx_eval_args *c) {
    const fx_node *n = c->node;
    int arrays = n->n_in / 2;
    const fx_spec *x = &n->in[0]->spec;
    int64_t to[FX_MAX_RANK], index[FX_MAX_RANK] = {0}, count = fx_spec_count(fx_eval_result(n, 0));
    const void **args = fx_eval_alloc(2 * arrays, sizeof *args);
    void **next = fx_eval_alloc(arrays, sizeof *next);
    uint64_t *fresh = fx_eval_alloc(arrays, sizeof *fresh);
    fx_status st = args && next && fresh ? FX_OK : FX_OUT_OF_MEMORY;
    result_strides(n, x, fx_eval_result(n, 0), to);
    for (int k = 0; st == FX_OK && k < arrays; k++) {
        size_t size = fx_dtype_size(n->in[k]->spec.dtype);
        next[k] = fresh + k;
        for (int64_t i = 0; i < count; i++)
            memcpy((char *)c->out[k] + (size_t)i * size, c->in[arrays + k], size);
    }
    bool more = fx_spec_count(x) > 0;
    for (size_t at = 0; st == FX_OK && more; at++, more = fx_eval_step(x->rank, x->dims, index)) {
        size_t place = 0;
        for (int i = 0; i < x->rank; i++)
            place += (size_t)(index[i] * to[i]);
        for (int k = 0; k < arrays; k++) {
            size_t size = fx_dtype_size(n->in[k]->spec.dtype);
            args[k] = (char *)c->out[k] + place * size;
            args[arrays + k] = (const char *)c->in[k] + at * size;
        }
        st = fx_eval_region(c, 0, args, next);
        for (int k = 0; st == FX_OK && k < arrays; k++) {
            size_t size = fx_dtype_size(n->in[k]->spec.dtype);
            memcpy((char *)c->out[k] + place * size, next[k], size);
        }
    }
    free(args);
    free(next);
    free(fresh);
    return st;
}

/* Shape around one dim: `outer` blocks of dims[dim] lines of `inner` elements; of an empty array, no block. */
static void around(const fx_spec *x, int64_t dim, int64_t *outer, int64_t *inner) {
    *outer = *inner = fx_spec_count(x) > 0;
    for (int i = 0; *outer && i < x->rank; i++)
        if (i != dim)
            *(i < dim ? outer : inner) *= x->dims[i];
}

fx_status fx_eval_arg_reduce(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    int64_t dim = FX_GET_INT(c->node, dim), outer, inner, n = x->dims[dim];
    fx_lane_kind k = fx_lane_kind_of(x->dtype);
    bool want_max = FX_GET_SYM(c->node) == FX_SYM_max;
    fx_lane lanes[FX_LANE_CHUNK];
    around(x, dim, &outer, &inner);
    if (n == 0 && fx_spec_count(r))
        return fx_fail(FX_INVALID_ARGUMENT,
                       "arg_reduce; expected a dimension that is not empty; got dimension %lld of size 0",
                       (long long)dim);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            fx_lane best = {.u = 0}, at = {.s = 0};
            for (int64_t j = 0; j < n; j += FX_LANE_CHUNK) {
                int64_t m = n - j < FX_LANE_CHUNK ? n - j : FX_LANE_CHUNK;
                fx_lane_load(x->dtype, c->in[0], (o * n + j) * inner + i, inner, m, lanes);
                for (int64_t p = 0; p < m; p++)
                    if (j + p == 0 || fx_lane_better(want_max, k, lanes[p], best)) {
                        best = lanes[p];
                        at.s = j + p;
                    }
            }
            fx_lane_store(r->dtype, c->out[0], o * inner + i, 1, 1, &at);
        }
    return FX_OK;
}

fx_status fx_eval_cumulative(const fx_eval_args *c) {
    const fx_spec *x = &c->node->spec;
    fx_symbol kind = FX_GET_SYM(c->node);
    fx_lane_kind k = fx_lane_kind_of(x->dtype);
    int64_t dim = FX_GET_INT(c->node, dim), outer, inner, n = x->dims[dim];
    bool reverse = FX_GET_INT(c->node, reverse);
    fx_lane lanes[FX_LANE_CHUNK];
    around(x, dim, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            fx_lane acc = fx_lane_identity(kind, x->dtype);
            for (int64_t j = 0; j < n; j += FX_LANE_CHUNK) {
                int64_t m = n - j < FX_LANE_CHUNK ? n - j : FX_LANE_CHUNK;
                int64_t first = (o * n + (reverse ? n - 1 - j : j)) * inner + i, step = reverse ? -inner : inner;
                fx_lane_load(x->dtype, c->in[0], first, step, m, lanes);
                for (int64_t p = 0; p < m; p++) {
                    fx_lane_combine(kind, k, &acc, 0, lanes + p, 1);
                    lanes[p] = acc;
                }
                fx_lane_store(x->dtype, c->out[0], first, step, m, lanes);
            }
        }
    return FX_OK;
}
