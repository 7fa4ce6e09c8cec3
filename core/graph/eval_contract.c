/* eval_contract.c - dot_general and convolution: operands unpacked into lanes, one blocked matrix product.
 *
 * Floats are multiplied and summed in double, in the order of the contracted index, and rounded once;
 * integers wrap. Padding and dilation holes of a convolution are zeros that are multiplied like data. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"

enum { ROWS = 4, BLOCK_K = 128, BLOCK_N = 128, BLOCK_M = 64 };

/* c[m,n] += a[m,k] b[k,n] for a block; leading dimensions in lanes. */
#define PRODUCT(name, field)                                                                                        \
    static void name(int64_t m, int64_t n, int64_t k, const fx_lane *a, int64_t lda, const fx_lane *b, int64_t ldb, \
                     fx_lane *c, int64_t ldc) {                                                                     \
        int64_t i = 0;                                                                                              \
        for (; i + ROWS <= m; i += ROWS) {                                                                          \
            fx_lane *restrict c0 = c + i * ldc, *restrict c1 = c0 + ldc, *restrict c2 = c1 + ldc,                   \
                              *restrict c3 = c2 + ldc;                                                              \
            for (int64_t p = 0; p < k; p++) {                                                                       \
                const fx_lane *restrict row = b + p * ldb, *col = a + i * lda + p;                                  \
                fx_lane a0 = col[0], a1 = col[lda], a2 = col[2 * lda], a3 = col[3 * lda];                           \
                for (int64_t j = 0; j < n; j++) {                                                                   \
                    c0[j].field += a0.field * row[j].field;                                                         \
                    c1[j].field += a1.field * row[j].field;                                                         \
                    c2[j].field += a2.field * row[j].field;                                                         \
                    c3[j].field += a3.field * row[j].field;                                                         \
                }                                                                                                   \
            }                                                                                                       \
        }                                                                                                           \
        for (; i < m; i++)                                                                                          \
            for (int64_t p = 0; p < k; p++)                                                                         \
                for (int64_t j = 0; j < n; j++)                                                                     \
                    c[i * ldc + j].field += a[i * lda + p].field * b[p * ldb + j].field;                            \
    }
PRODUCT(product_f, f)
PRODUCT(product_u, u)
#undef PRODUCT

/* c[m,n] = a[m,k] b[k,n], all dense. */
static void product(bool floats, int64_t m, int64_t n, int64_t k, const fx_lane *a, const fx_lane *b, fx_lane *c) {
    memset(c, 0, (size_t)(m * n) * sizeof *c); /* all bits 0 is 0.0 */
    for (int64_t p = 0; p < k; p += BLOCK_K)
        for (int64_t j = 0; j < n; j += BLOCK_N)
            (floats ? product_f : product_u)(m, n - j < BLOCK_N ? n - j : BLOCK_N, k - p < BLOCK_K ? k - p : BLOCK_K,
                                             a + p, k, b + p * n + j, n, c + j, n);
}

static bool contains(const int64_t *list, int n, int64_t x) {
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

/* An operand of dot_general with its dims sorted into batch, contracted and free ones. */
typedef struct side {
    fx_dtype dtype;
    const void *data;
    int n_batch, n_contract, n_free;
    int64_t batch[FX_MAX_RANK], batch_strides[FX_MAX_RANK]; /* sizes and strides */
    int64_t contract[FX_MAX_RANK], contract_strides[FX_MAX_RANK];
    int64_t free[FX_MAX_RANK], free_strides[FX_MAX_RANK];
    int64_t batch_count, contract_count, free_count;
} side;

static void side_init(side *s, const fx_eval_args *c, int k, fx_attr_id batch, fx_attr_id contract) {
    const fx_spec *x = &c->node->in[k]->spec;
    int64_t strides[FX_MAX_RANK];
    const int64_t *b = fx_attr_list(c->node, batch, &s->n_batch), *p = fx_attr_list(c->node, contract, &s->n_contract);
    fx_eval_strides(x, strides);
    s->dtype = x->dtype;
    s->data = c->in[k];
    s->n_free = 0;
    s->batch_count = s->contract_count = s->free_count = 1;
    for (int i = 0; i < s->n_batch; i++) {
        s->batch[i] = x->dims[b[i]];
        s->batch_strides[i] = strides[b[i]];
        s->batch_count *= s->batch[i];
    }
    for (int i = 0; i < s->n_contract; i++) {
        s->contract[i] = x->dims[p[i]];
        s->contract_strides[i] = strides[p[i]];
        s->contract_count *= s->contract[i];
    }
    for (int i = 0; i < x->rank; i++) {
        if (contains(b, s->n_batch, i) || contains(p, s->n_contract, i))
            continue;
        s->free[s->n_free] = x->dims[i];
        s->free_strides[s->n_free++] = strides[i];
        s->free_count *= x->dims[i];
    }
}

static int64_t side_batch(const side *s, const int64_t *index) {
    int64_t at = 0;
    for (int i = 0; i < s->n_batch; i++)
        at += index[i] * s->batch_strides[i];
    return at;
}

/* Lanes of the right operand, [contracted][free]. */
static void unpack_right(const side *s, int64_t first, fx_lane *out) {
    int64_t dims[FX_MAX_RANK], strides[FX_MAX_RANK];
    int n = 0;
    for (int i = 0; i < s->n_contract; i++, n++)
        dims[n] = s->contract[i], strides[n] = s->contract_strides[i];
    for (int i = 0; i < s->n_free; i++, n++)
        dims[n] = s->free[i], strides[n] = s->free_strides[i];
    fx_lane_load_nd(s->dtype, s->data, first, n, dims, strides, out);
}

/* Lanes of rows `row` to `row + m` of the left operand, [row][contracted]. */
static void unpack_left(const side *s, int64_t first, int64_t row, int64_t m, fx_lane *out) {
    for (int64_t i = row; i < row + m; i++, out += s->contract_count) {
        int64_t at = first, rest = i;
        for (int d = s->n_free; d-- > 0; rest /= s->free[d])
            at += rest % s->free[d] * s->free_strides[d];
        fx_lane_load_nd(s->dtype, s->data, at, s->n_contract, s->contract, s->contract_strides, out);
    }
}

fx_status fx_eval_dot_general(const fx_eval_args *c) {
    side l, r;
    side_init(&l, c, 0, FX_ATTR_lhs_batch, FX_ATTR_lhs_contract);
    side_init(&r, c, 1, FX_ATTR_rhs_batch, FX_ATTR_rhs_contract);
    fx_dtype d = c->node->spec.dtype;
    int64_t k = l.contract_count, n = r.free_count, index[FX_MAX_RANK] = {0}, to = 0;
    if (!fx_spec_count(&c->node->spec))
        return FX_OK;
    fx_lane *a = fx_eval_alloc(BLOCK_M * k, sizeof *a), *b = fx_eval_alloc(k * n, sizeof *b);
    fx_lane *sum = fx_eval_alloc(BLOCK_M * n, sizeof *sum);
    if (a && b && sum)
        do {
            unpack_right(&r, side_batch(&r, index), b);
            for (int64_t i = 0; i < l.free_count; i += BLOCK_M) {
                int64_t m = l.free_count - i < BLOCK_M ? l.free_count - i : BLOCK_M;
                unpack_left(&l, side_batch(&l, index), i, m, a);
                product(fx_lane_kind_of(d) == FX_LANE_F, m, n, k, a, b, sum);
                fx_lane_store(d, c->out[0], to, 1, m * n, sum);
                to += m * n;
            }
        } while (fx_eval_step(l.n_batch, l.batch, index));
    bool ok = a && b && sum;
    free(a);
    free(b);
    free(sum);
    return ok ? FX_OK : FX_OUT_OF_MEMORY;
}

/* A convolution, its dims put in the order batch, feature, spatial. */
typedef struct conv {
    int spatial;
    int64_t batch, in_features, out_features; /* in_features: of one feature group */
    int64_t size[FX_MAX_RANK], window[FX_MAX_RANK], out[FX_MAX_RANK];
    int64_t lhs_strides[FX_MAX_RANK], out_strides[FX_MAX_RANK]; /* batch, feature, spatial... */
    const int64_t *stride, *low, *lhs_dilation, *rhs_dilation, *reversal;
    int64_t feature_groups, batch_groups;
    int64_t positions, taps; /* results a feature; products a result */
} conv;

static void conv_init(conv *v, const fx_node *n, int64_t *rhs_strides) {
    const fx_spec *x = &n->in[0]->spec, *w = &n->in[1]->spec, *r = &n->spec;
    const int64_t *ls = FX_GET_LIST(n, lhs_spec, NULL), *ws = FX_GET_LIST(n, rhs_spec, NULL),
                  *os = FX_GET_LIST(n, out_spec, NULL);
    int64_t xs[FX_MAX_RANK], wst[FX_MAX_RANK], rs[FX_MAX_RANK];
    fx_eval_strides(x, xs);
    fx_eval_strides(w, wst);
    fx_eval_strides(r, rs);
    v->spatial = x->rank - 2;
    v->out_features = w->dims[ws[0]];
    v->in_features = w->dims[ws[1]];
    v->batch = r->dims[os[0]];
    v->positions = v->batch;
    v->taps = v->in_features;
    for (int i = 0; i < x->rank; i++) {
        v->lhs_strides[i] = xs[ls[i]];
        v->out_strides[i] = rs[os[i]];
        rhs_strides[i] = wst[ws[i]];
        if (i < 2)
            continue;
        v->size[i - 2] = x->dims[ls[i]];
        v->window[i - 2] = w->dims[ws[i]];
        v->out[i - 2] = r->dims[os[i]];
        v->positions *= r->dims[os[i]];
        v->taps *= w->dims[ws[i]];
    }
    v->stride = FX_GET_LIST(n, strides, NULL);
    v->low = FX_GET_LIST(n, low, NULL);
    v->lhs_dilation = FX_GET_LIST(n, lhs_dilation, NULL);
    v->rhs_dilation = FX_GET_LIST(n, rhs_dilation, NULL);
    v->reversal = FX_GET_LIST(n, window_reversal, NULL);
    v->feature_groups = fx_attr_int(n, FX_ATTR_feature_groups, 1);
    v->batch_groups = fx_attr_int(n, FX_ATTR_batch_groups, 1);
}

static int64_t or_one(const int64_t *list, int i) {
    return list ? list[i] : 1;
}
static int64_t or_zero(const int64_t *list, int i) {
    return list ? list[i] : 0;
}

/* Index in the data of tap `t` at position `p` of spatial dim d; -1 in padding or between dilated elements. */
static int64_t conv_source(const conv *v, int d, int64_t p, int64_t t) {
    int64_t tap = or_zero(v->reversal, d) ? v->window[d] - 1 - t : t, step = or_one(v->lhs_dilation, d);
    int64_t at = p * or_one(v->stride, d) - or_zero(v->low, d) + tap * or_one(v->rhs_dilation, d);
    return at < 0 || at % step || at / step >= v->size[d] ? -1 : at / step;
}

/* Lanes [tap][position] for positions first to first + n of one group. */
static void conv_patches(const conv *v, const fx_lane *x, int64_t group, int64_t first, int64_t n, fx_lane *out) {
    for (int64_t t = 0; t < v->taps; t++) {
        int64_t tap[FX_MAX_RANK], rest = t;
        for (int d = v->spatial; d-- > 0; rest /= v->window[d])
            tap[d] = rest % v->window[d];
        int64_t base =
            v->feature_groups > 1 ? (group * v->in_features + rest) * v->lhs_strides[1] : rest * v->lhs_strides[1];
        if (v->batch_groups > 1)
            base += group * v->batch * v->lhs_strides[0];
        for (int64_t i = first; i < first + n; i++, out++) {
            int64_t at = base, q = i;
            bool inside = true;
            for (int d = v->spatial; d-- > 0; q /= v->out[d]) {
                int64_t s = conv_source(v, d, q % v->out[d], tap[d]);
                inside &= s >= 0;
                at += s * v->lhs_strides[d + 2];
            }
            if (inside)
                *out = x[at + q * v->lhs_strides[0]];
            else
                out->u = 0;
        }
    }
}

static int64_t conv_result(const conv *v, int64_t feature, int64_t position) {
    int64_t at = feature * v->out_strides[1];
    for (int d = v->spatial; d-- > 0; position /= v->out[d])
        at += position % v->out[d] * v->out_strides[d + 2];
    return at + position * v->out_strides[0];
}

fx_status fx_eval_convolution(const fx_eval_args *c) {
    const fx_node *n = c->node;
    conv v;
    int64_t rhs_strides[FX_MAX_RANK], dims[FX_MAX_RANK];
    conv_init(&v, n, rhs_strides);
    if (!fx_spec_count(&n->spec))
        return FX_OK;
    fx_dtype xd = n->in[0]->spec.dtype, wd = n->in[1]->spec.dtype, d = n->spec.dtype;
    int64_t x_count = fx_spec_count(&n->in[0]->spec), w_count = fx_spec_count(&n->in[1]->spec);
    int64_t groups = v.feature_groups > 1 ? v.feature_groups : v.batch_groups, m = v.out_features / groups;
    int64_t tile = 1 + (1 << 18) / (v.taps + 1);
    tile = tile < v.positions ? tile : v.positions;
    fx_lane *x = fx_eval_alloc(x_count, sizeof *x), *w = fx_eval_alloc(w_count, sizeof *w);
    fx_lane *patches = fx_eval_alloc(v.taps * tile, sizeof *x), *sum = fx_eval_alloc(m * tile, sizeof *x);
    bool ok = x && w && patches && sum;
    if (ok) {
        dims[0] = v.out_features;
        dims[1] = v.in_features;
        memcpy(dims + 2, v.window, sizeof *dims * (size_t)v.spatial);
        fx_lane_load(xd, c->in[0], 0, 1, x_count, x);
        fx_lane_load_nd(wd, c->in[1], 0, v.spatial + 2, dims, rhs_strides, w);
    }
    for (int64_t g = 0; ok && g < groups; g++)
        for (int64_t p = 0; p < v.positions; p += tile) {
            int64_t k = v.positions - p < tile ? v.positions - p : tile;
            conv_patches(&v, x, g, p, k, patches);
            product(fx_lane_kind_of(d) == FX_LANE_F, m, k, v.taps, w + g * m * v.taps, patches, sum);
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < k; j++)
                    fx_lane_store(d, c->out[0], conv_result(&v, g * m + i, p + j), 1, 1, sum + i * k + j);
        }
    free(x);
    free(w);
    free(patches);
    free(sum);
    return ok ? FX_OK : FX_OUT_OF_MEMORY;
}
