/* eval_window.c - reduce_window, select_and_scatter and windows.
 *
 * A window's element sits at position * stride - low + tap * rhs_dilation of the operand with
 * lhs_dilation - 1 holes between neighbours; outside and in holes there is padding. */
#include <stdlib.h>

#include "core/graph/eval.h"

typedef struct window {
    const fx_spec *x;
    int64_t size[FX_MAX_RANK], strides[FX_MAX_RANK];
    const int64_t *stride, *low, *lhs_dilation, *rhs_dilation;
} window;

static void window_init(window *w, const fx_node *n) {
    const int64_t *size = FX_GET_LIST(n, window, NULL);
    w->x = &n->in[0]->spec;
    for (int i = 0; i < w->x->rank; i++)
        w->size[i] = size[i];
    fx_eval_strides(w->x, w->strides);
    w->stride = FX_GET_LIST(n, strides, NULL);
    w->low = FX_GET_LIST(n, low, NULL);
    w->lhs_dilation = FX_GET_LIST(n, lhs_dilation, NULL);
    w->rhs_dilation = FX_GET_LIST(n, rhs_dilation, NULL);
}

/* Offset of an element of a window in the operand, -1 for padding. */
static int64_t window_source(const window *w, const int64_t *position, const int64_t *tap) {
    int64_t at = 0;
    for (int i = 0; i < w->x->rank; i++) {
        int64_t p = position[i] * (w->stride ? w->stride[i] : 1) - (w->low ? w->low[i] : 0) +
                    tap[i] * (w->rhs_dilation ? w->rhs_dilation[i] : 1);
        int64_t holes = w->lhs_dilation ? w->lhs_dilation[i] : 1;
        if (p < 0 || p % holes || p / holes >= w->x->dims[i])
            return -1;
        at += p / holes * w->strides[i];
    }
    return at;
}

static fx_lane *all_lanes(const fx_spec *s, const void *data) {
    int64_t count = fx_spec_count(s);
    fx_lane *lanes = fx_eval_alloc(count, sizeof *lanes);
    if (lanes)
        fx_lane_load(s->dtype, data, 0, 1, count, lanes);
    return lanes;
}

static bool empty(int rank, const int64_t *dims) {
    for (int i = 0; i < rank; i++)
        if (!dims[i])
            return true;
    return false;
}

fx_status fx_eval_reduce_window(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec;
    fx_symbol kind = FX_GET_SYM(c->node);
    fx_lane_kind k = fx_lane_kind_of(r->dtype);
    int64_t position[FX_MAX_RANK] = {0}, tap[FX_MAX_RANK] = {0}, to = 0;
    window w;
    window_init(&w, c->node);
    if (!fx_spec_count(r))
        return FX_OK;
    fx_lane *x = all_lanes(w.x, c->in[0]), identity = fx_lane_identity(kind, r->dtype);
    if (!x)
        return FX_OUT_OF_MEMORY;
    do {
        fx_lane acc = identity;
        bool more = !empty(r->rank, w.size);
        for (; more; more = fx_eval_step(r->rank, w.size, tap)) {
            int64_t at = window_source(&w, position, tap);
            fx_lane_combine(kind, k, &acc, 0, at < 0 ? &identity : x + at, 1);
        }
        fx_lane_store(r->dtype, c->out[0], to++, 1, 1, &acc);
    } while (fx_eval_step(r->rank, r->dims, position));
    free(x);
    return FX_OK;
}

fx_status fx_eval_select_and_scatter(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec, *source = &c->node->in[1]->spec;
    fx_lane_kind k = fx_lane_kind_of(r->dtype);
    bool want_max = FX_GET_SYM(c->node) == FX_SYM_max;
    int64_t position[FX_MAX_RANK] = {0}, tap[FX_MAX_RANK] = {0}, count = fx_spec_count(r), from = 0;
    window w;
    window_init(&w, c->node);
    if (!count)
        return FX_OK;
    fx_lane *x = all_lanes(r, c->in[0]), *sum = fx_eval_alloc(count, sizeof *sum), s;
    bool ok = x && sum, more = ok && fx_spec_count(source) > 0 && !empty(r->rank, w.size);
    for (int64_t i = 0; ok && i < count; i++)
        sum[i] = fx_lane_identity(FX_SYM_sum, r->dtype);
    for (; more; more = fx_eval_step(r->rank, source->dims, position), from++) {
        int64_t best = -1;
        do {
            int64_t at = window_source(&w, position, tap);
            if (at >= 0 && (best < 0 || fx_lane_better(want_max, k, x[at], x[best])))
                best = at;
        } while (fx_eval_step(r->rank, w.size, tap));
        fx_lane_load(source->dtype, c->in[1], from, 1, 1, &s);
        if (best >= 0)
            fx_lane_combine(FX_SYM_sum, k, sum + best, 0, &s, 1);
    }
    if (ok)
        fx_lane_store(r->dtype, c->out[0], 0, 1, count, sum);
    free(x);
    free(sum);
    return ok ? FX_OK : FX_OUT_OF_MEMORY;
}

fx_status fx_eval_windows(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec;
    int64_t index[FX_MAX_RANK] = {0}, to = 0;
    fx_lane v;
    window w;
    window_init(&w, c->node);
    if (!fx_spec_count(r))
        return FX_OK;
    do {
        int64_t at = window_source(&w, index, index + w.x->rank);
        fx_lane_load(r->dtype, at < 0 ? c->in[1] : c->in[0], at < 0 ? 0 : at, 1, 1, &v);
        fx_lane_store(r->dtype, c->out[0], to++, 1, 1, &v);
    } while (fx_eval_step(r->rank, r->dims, index));
    return FX_OK;
}
