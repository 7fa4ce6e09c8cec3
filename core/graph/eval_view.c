/* eval_view.c - ops that only move elements: one strided copy each, plus iota and windows. */
#include <string.h>

#include "core/graph/eval.h"

void fx_eval_copy_init(fx_eval_copy *c, size_t esize, int rank, const int64_t *dims, const int64_t *to,
                       const int64_t *from) {
    int64_t bytes = (int64_t)esize;
    *c = (fx_eval_copy){.esize = esize};
    for (int i = 0; i < rank; i++) {
        c->empty |= dims[i] == 0;
        if (dims[i] == 1)
            continue;
        int k = c->rank - 1;
        if (k >= 0 && c->to[k] == to[i] * bytes * dims[i] && c->from[k] == from[i] * bytes * dims[i]) {
            c->dims[k] *= dims[i];
        } else {
            k = c->rank++;
            c->dims[k] = dims[i];
        }
        c->to[k] = to[i] * bytes;
        c->from[k] = from[i] * bytes;
    }
    if (!c->rank) {
        c->rank = 1;
        c->dims[0] = 1;
        c->to[0] = c->from[0] = bytes;
    }
}

#define LINE(type)                                                    \
    for (int64_t i = 0; i < n; i++, to += to_step, from += from_step) \
        *(type *)to = *(const type *)from;                            \
    break

static void copy_line(size_t esize, int64_t n, char *to, int64_t to_step, const char *from, int64_t from_step) {
    if (to_step == (int64_t)esize && from_step == (int64_t)esize) {
        memcpy(to, from, (size_t)n * esize);
        return;
    }
    switch (esize) {
    case 1:
        LINE(uint8_t);
    case 2:
        LINE(uint16_t);
    case 4:
        LINE(uint32_t);
    default:
        LINE(uint64_t);
    }
}
#undef LINE

void fx_eval_copy_run(const fx_eval_copy *c, char *to, const char *from) {
    int64_t index[FX_MAX_RANK] = {0};
    int last = c->rank - 1;
    if (c->empty)
        return;
    do {
        int64_t t = 0, f = 0;
        for (int i = 0; i < last; i++) {
            t += index[i] * c->to[i];
            f += index[i] * c->from[i];
        }
        copy_line(c->esize, c->dims[last], to + t, c->to[last], from + f, c->from[last]);
    } while (fx_eval_step(last, c->dims, index));
}

/* Copies dims elements between places given in elements. */
static void copy(fx_dtype d, const int64_t *dims, int rank, void *to, int64_t to_first, const int64_t *to_strides,
                 const void *from, int64_t from_first, const int64_t *from_strides) {
    fx_eval_copy c;
    int64_t size = (int64_t)fx_dtype_size(d);
    fx_eval_copy_init(&c, (size_t)size, rank, dims, to_strides, from_strides);
    if (!c.empty)
        fx_eval_copy_run(&c, (char *)to + to_first * size, (const char *)from + from_first * size);
}

fx_status fx_eval_broadcast_in_dim(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    int64_t xs[FX_MAX_RANK], rs[FX_MAX_RANK], from[FX_MAX_RANK] = {0};
    const int64_t *dims = FX_GET_LIST(c->node, dims, NULL);
    fx_eval_strides(x, xs);
    fx_eval_strides(r, rs);
    for (int i = 0; i < x->rank; i++)
        from[dims[i]] = x->dims[i] == 1 ? 0 : xs[i];
    copy(r->dtype, r->dims, r->rank, c->out[0], 0, rs, c->in[0], 0, from);
    return FX_OK;
}

fx_status fx_eval_transpose(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    int64_t xs[FX_MAX_RANK], rs[FX_MAX_RANK], from[FX_MAX_RANK];
    const int64_t *permutation = FX_GET_LIST(c->node, permutation, NULL);
    fx_eval_strides(x, xs);
    fx_eval_strides(r, rs);
    for (int i = 0; i < r->rank; i++)
        from[i] = xs[permutation[i]];
    copy(r->dtype, r->dims, r->rank, c->out[0], 0, rs, c->in[0], 0, from);
    return FX_OK;
}

fx_status fx_eval_slice(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    int64_t xs[FX_MAX_RANK], rs[FX_MAX_RANK], from[FX_MAX_RANK], first = 0;
    const int64_t *start = FX_GET_LIST(c->node, start, NULL), *strides = FX_GET_LIST(c->node, strides, NULL);
    fx_eval_strides(x, xs);
    fx_eval_strides(r, rs);
    for (int i = 0; i < r->rank; i++) {
        first += start[i] * xs[i];
        from[i] = xs[i] * (strides ? strides[i] : 1);
    }
    copy(r->dtype, r->dims, r->rank, c->out[0], 0, rs, c->in[0], first, from);
    return FX_OK;
}

fx_status fx_eval_reverse(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec;
    int64_t rs[FX_MAX_RANK], from[FX_MAX_RANK], first = 0;
    int n;
    const int64_t *dims = FX_GET_LIST(c->node, dims, &n);
    fx_eval_strides(r, rs);
    memcpy(from, rs, sizeof from);
    for (int i = 0; i < n; i++) {
        first += (r->dims[dims[i]] - 1) * rs[dims[i]];
        from[dims[i]] = -rs[dims[i]];
    }
    copy(r->dtype, r->dims, r->rank, c->out[0], 0, rs, c->in[0], first, from);
    return FX_OK;
}

static void fill(fx_dtype d, void *to, int64_t count, const void *value) {
    size_t size = fx_dtype_size(d);
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to + (size_t)i * size, value, size);
}

fx_status fx_eval_pad(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    const int64_t *low = FX_GET_LIST(c->node, low, NULL), *interior = FX_GET_LIST(c->node, interior, NULL);
    int64_t xs[FX_MAX_RANK], rs[FX_MAX_RANK], dims[FX_MAX_RANK], to[FX_MAX_RANK], from_first = 0, to_first = 0;
    fx_eval_strides(x, xs);
    fx_eval_strides(r, rs);
    fill(r->dtype, c->out[0], fx_spec_count(r), c->in[1]);
    for (int i = 0; i < r->rank; i++) { /* operand elements b to e (excluded) land inside the result */
        int64_t step = (interior ? interior[i] : 0) + 1, lo = low ? low[i] : 0;
        int64_t b = lo < 0 ? -(lo + 1) / step + 1 : 0;
        int64_t e = r->dims[i] <= lo ? 0 : (int64_t)((uint64_t)(r->dims[i] - 1) - (uint64_t)lo) / step + 1;
        e = e < x->dims[i] ? e : x->dims[i];
        if (e <= b)
            return FX_OK; /* nothing but padding */
        dims[i] = e - b;
        from_first += b * xs[i];
        to_first += (lo + b * step) * rs[i];
        to[i] = dims[i] > 1 ? step * rs[i] : 0;
    }
    copy(r->dtype, dims, r->rank, c->out[0], to_first, to, c->in[0], from_first, xs);
    return FX_OK;
}

fx_status fx_eval_concatenate(const fx_eval_args *c) {
    const fx_node *n = c->node;
    int64_t dim = FX_GET_INT(n, dim), rs[FX_MAX_RANK], xs[FX_MAX_RANK], at = 0;
    fx_eval_strides(&n->spec, rs);
    for (int i = 0; i < n->n_in; i++) {
        const fx_spec *x = &n->in[i]->spec;
        fx_eval_strides(x, xs);
        copy(x->dtype, x->dims, x->rank, c->out[0], at * rs[dim], rs, c->in[i], 0, xs);
        at += x->dims[dim];
    }
    return FX_OK;
}

/* The start of a dynamic window: scalar operands `first`.. of the node, clamped so that it fits. */
static int64_t dynamic_start(const fx_eval_args *c, int first, const fx_spec *x, const int64_t *size,
                             const int64_t *strides) {
    int64_t at = 0;
    for (int i = 0; i < x->rank; i++) {
        int64_t v = fx_eval_index(c->node->in[first + i]->spec.dtype, c->in[first + i], 0), top = x->dims[i] - size[i];
        at += (v < 0 ? 0 : v > top ? top : v) * strides[i];
    }
    return at;
}

fx_status fx_eval_dynamic_slice(const fx_eval_args *c) {
    const fx_spec *x = &c->node->in[0]->spec, *r = &c->node->spec;
    int64_t xs[FX_MAX_RANK], rs[FX_MAX_RANK];
    fx_eval_strides(x, xs);
    fx_eval_strides(r, rs);
    copy(r->dtype, r->dims, r->rank, c->out[0], 0, rs, c->in[0], dynamic_start(c, 1, x, r->dims, xs), xs);
    return FX_OK;
}

fx_status fx_eval_dynamic_update_slice(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec, *u = &c->node->in[1]->spec;
    int64_t us[FX_MAX_RANK], rs[FX_MAX_RANK];
    fx_eval_strides(u, us);
    fx_eval_strides(r, rs);
    if (fx_eval_bytes(r))
        memcpy(c->out[0], c->in[0], fx_eval_bytes(r));
    copy(r->dtype, u->dims, r->rank, c->out[0], dynamic_start(c, 2, r, u->dims, rs), rs, c->in[1], 0, us);
    return FX_OK;
}

fx_status fx_eval_iota(const fx_eval_args *c) {
    const fx_spec *r = &c->node->spec;
    int64_t dim = FX_GET_INT(c->node, dim), rs[FX_MAX_RANK], count = fx_spec_count(r);
    fx_lane_kind k = fx_lane_kind_of(r->dtype);
    fx_lane x[FX_LANE_CHUNK];
    fx_eval_strides(r, rs);
    for (int64_t at = 0; at < count; at += FX_LANE_CHUNK) {
        int64_t n = count - at < FX_LANE_CHUNK ? count - at : FX_LANE_CHUNK;
        for (int64_t i = 0; i < n; i++) {
            int64_t v = (at + i) / rs[dim] % r->dims[dim];
            if (k == FX_LANE_F)
                x[i].f = (double)v;
            else
                x[i].s = v;
        }
        fx_lane_store(r->dtype, c->out[0], at, 1, n, x);
    }
    return FX_OK;
}
