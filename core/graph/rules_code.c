/* rules_code.c - the conditions and builders that rules.def names. A builder returns NULL when its rule doesn't apply.
 */
#include <math.h>
#include <string.h>

#include "core/graph/rules.h"

bool is_any(const fx_match *m);
bool is_bool(const fx_match *m);
bool is_not_float(const fx_match *m);
bool is_not_minus_zero(const fx_match *m);
#define FX_RULE(...)
#define FX_RULE_CODE(name, pattern, builder) fx_node *build_##builder(const fx_match *m);
#include "core/graph/rules.def"
#undef FX_RULE
#undef FX_RULE_CODE

static fx_node *x_of(const fx_match *m) {
    return m->var[FX_VAR_X];
}

bool is_any(const fx_match *m) {
    return m->root;
}
bool is_bool(const fx_match *m) {
    return m->root->spec.dtype == FX_BOOL;
}
bool is_not_float(const fx_match *m) {
    return !fx_dtype_is_float(x_of(m)->spec.dtype);
}

enum { LOOK = 6 };

/* Is no element of n ever -0? Looks at a few levels; false when it can't tell. */
static bool never_minus_zero(const fx_node *n, int depth) {
    double v;
    if (!fx_dtype_is_float(n->spec.dtype))
        return true;
    if (fx_node_splat(n, &v))
        return !fx_node_is_splat(n, -0.0);
    if (depth == LOOK)
        return false;
    switch (n->op) {
    case FX_OP_iota:
    case FX_OP_abs:
    case FX_OP_exp:
    case FX_OP_logistic:
        return true;
    case FX_OP_convert:
        return !fx_dtype_is_float(n->in[0]->spec.dtype); /* a small float may round to -0 */
    case FX_OP_add:                                      /* -0 only if both are */
        return never_minus_zero(n->in[0], depth + 1) || never_minus_zero(n->in[1], depth + 1);
    case FX_OP_mul:
        return n->in[0] == n->in[1];
    case FX_OP_select:
        return never_minus_zero(n->in[1], depth + 1) && never_minus_zero(n->in[2], depth + 1);
    case FX_OP_pad:
    case FX_OP_concatenate:
        for (int i = 0; i < n->n_in; i++)
            if (!never_minus_zero(n->in[i], depth + 1))
                return false;
        return true;
    case FX_OP_broadcast_in_dim:
    case FX_OP_reshape:
    case FX_OP_transpose:
    case FX_OP_slice:
    case FX_OP_reverse:
        return never_minus_zero(n->in[0], depth + 1);
    default:
        return false;
    }
}

bool is_not_minus_zero(const fx_match *m) {
    return never_minus_zero(x_of(m), 0);
}

static bool contains(const int64_t *v, int n, int64_t x) {
    for (int i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static bool ascending(const int64_t *v, int n) {
    for (int i = 1; i < n; i++)
        if (v[i - 1] >= v[i])
            return false;
    return true;
}

static int64_t imin(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- arithmetic and types ---- */

/* x / 2^k = x * 2^-k, both correctly rounded results of the same real number, if 2^-k is a normal number of the type.
 */
fx_node *build_reciprocal(const fx_match *m) {
    double c, back;
    int exponent;
    fx_dtype d = m->root->spec.dtype;
    if (!fx_dtype_is_float(d) || !fx_node_splat(m->var[FX_VAR_C], &c) || c == 0 || !isfinite(c) ||
        fabs(frexp(c, &exponent)) != 0.5)
        return NULL;
    int limit = d == FX_F16 ? 13 : d == FX_F64 ? 1021 : 125;
    if (exponent < -limit || exponent > limit)
        return NULL;
    uint64_t element;
    fx_element_store(d, &element, 1 / c);
    back = fx_element_load(d, &element);
    return back * c == 1 ? fx_b_binary(m->g, FX_OP_mul, x_of(m), fx_b_like(m->root, back)) : NULL;
}

/* Bits of an integer's magnitude or of a float's significand, and the exponents: enough to compare sets of values. */
static bool holds_all(fx_dtype wide, fx_dtype narrow) {
    static const struct {
        int digits, exponent;
    } f[FX_DTYPE_COUNT] = {[FX_F16] = {11, 5}, [FX_BF16] = {8, 8}, [FX_F32] = {24, 8}, [FX_F64] = {53, 11}};
    int nbits = (int)fx_dtype_size(narrow) * 8 - fx_dtype_is_signed(narrow);
    if (wide == narrow || narrow == FX_BOOL)
        return true;
    if (wide == FX_BOOL)
        return false;
    if (fx_dtype_is_float(wide))
        return fx_dtype_is_float(narrow) ? f[wide].digits >= f[narrow].digits && f[wide].exponent >= f[narrow].exponent
                                         : f[wide].digits >= nbits; /* s32 in f64, s8 in bf16, ... */
    if (fx_dtype_is_float(narrow) || (fx_dtype_is_signed(narrow) && fx_dtype_is_unsigned(wide)))
        return false;
    return (int)fx_dtype_size(wide) * 8 - fx_dtype_is_signed(wide) >= nbits;
}

/* Float to integer saturates where integer to integer wraps, so that way must end where it began. */
fx_node *build_convert_of_convert(const fx_match *m) {
    fx_dtype from = x_of(m)->spec.dtype, by = m->root->in[0]->spec.dtype, to = m->root->spec.dtype;
    bool detour = fx_dtype_is_int(from) && fx_dtype_is_float(by) && fx_dtype_is_int(to) && to != from;
    return holds_all(by, from) && !detour ? fx_b_convert(m->g, x_of(m), to) : NULL;
}

/* ---- views ---- */

fx_node *build_slice_of_slice(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    const int64_t *s1 = FX_GET_LIST(inner, start, NULL), *t1 = FX_GET_LIST(inner, strides, NULL);
    const int64_t *s2 = FX_GET_LIST(outer, start, NULL), *t2 = FX_GET_LIST(outer, strides, NULL);
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK], strides[FX_MAX_RANK];
    for (int i = 0; i < outer->spec.rank; i++) {
        int64_t n = outer->spec.dims[i];
        start[i] = n ? s1[i] + s2[i] * t1[i] : 0;
        strides[i] = n > 1 ? t1[i] * t2[i] : 1; /* below the dimension's size */
        limit[i] = n ? start[i] + (n - 1) * strides[i] + 1 : 0;
    }
    return fx_b_slice(m->g, x_of(m), start, limit, strides);
}

/* A slice that reads one operand only. */
fx_node *build_slice_of_concatenate(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    int64_t dim = FX_GET_INT(inner, dim), offset = 0, start[FX_MAX_RANK], limit[FX_MAX_RANK];
    int rank = outer->spec.rank;
    memcpy(start, FX_GET_LIST(outer, start, NULL), sizeof *start * (size_t)rank);
    memcpy(limit, FX_GET_LIST(outer, limit, NULL), sizeof *limit * (size_t)rank);
    for (int i = 0; i < inner->n_in && start[dim] < limit[dim]; i++) {
        int64_t end = offset + inner->in[i]->spec.dims[dim];
        if (start[dim] >= offset && limit[dim] <= end) {
            start[dim] -= offset;
            limit[dim] -= offset;
            return fx_b_slice(m->g, inner->in[i], start, limit, FX_GET_LIST(outer, strides, NULL));
        }
        offset = end;
    }
    return NULL;
}

/* A slice that reads none of the padding. */
fx_node *build_slice_of_pad(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0], *x = x_of(m);
    const int64_t *s = FX_GET_LIST(outer, start, NULL), *e = FX_GET_LIST(outer, limit, NULL);
    const int64_t *low = FX_GET_LIST(inner, low, NULL), *between = FX_GET_LIST(inner, interior, NULL);
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK];
    for (int i = 0; i < outer->spec.rank; i++) {
        start[i] = s[i] - low[i];
        limit[i] = e[i] - low[i];
        if (between[i] || start[i] < 0 || limit[i] > x->spec.dims[i])
            return NULL;
    }
    return fx_b_slice(m->g, x_of(m), start, limit, FX_GET_LIST(outer, strides, NULL));
}

/* Dimensions reversed by one of the two. */
fx_node *build_reverse_of_reverse(const fx_match *m) {
    int64_t dims[FX_MAX_RANK];
    int n = 0, na, nb;
    const int64_t *a = FX_GET_LIST(m->root, dims, &na), *b = FX_GET_LIST(m->root->in[0], dims, &nb);
    for (int i = 0; i < m->root->spec.rank; i++)
        if (contains(a, na, i) != contains(b, nb, i))
            dims[n++] = i;
    return fx_b_reverse(m->g, x_of(m), n, dims);
}

fx_node *build_transpose_of_broadcast(const fx_match *m) {
    const fx_node *outer = m->root;
    const int64_t *p = FX_GET_LIST(outer, permutation, NULL);
    int n;
    const int64_t *d = FX_GET_LIST(outer->in[0], dims, &n);
    int64_t dims[FX_MAX_RANK] = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < outer->spec.rank; k++)
            if (p[k] == d[i])
                dims[i] = k;
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, dims);
}

/* Does `wide` have the dimensions of `x` in order, with ones between? place[i]: where x's dimension i is. */
static bool inserts_ones(const fx_spec *x, const fx_spec *wide, int64_t *place) {
    int k = 0;
    for (int i = 0; i < x->rank; i++, k++) {
        while (k < wide->rank && wide->dims[k] != x->dims[i] && wide->dims[k] == 1)
            k++;
        if (k == wide->rank || wide->dims[k] != x->dims[i])
            return false;
        place[i] = k;
    }
    for (; k < wide->rank; k++)
        if (wide->dims[k] != 1)
            return false;
    return true;
}

fx_node *build_broadcast_of_reshape(const fx_match *m) {
    const fx_node *outer = m->root;
    const int64_t *d = FX_GET_LIST(outer, dims, NULL);
    int64_t place[FX_MAX_RANK];
    if (!inserts_ones(&x_of(m)->spec, &outer->in[0]->spec, place))
        return NULL;
    for (int i = 0; i < x_of(m)->spec.rank; i++)
        place[i] = d[place[i]];
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, place);
}

/* A broadcast, then ones inserted: one broadcast. */
fx_node *build_reshape_of_broadcast(const fx_match *m) {
    const fx_node *outer = m->root;
    int n;
    const int64_t *d = FX_GET_LIST(outer->in[0], dims, &n);
    int64_t place[FX_MAX_RANK], dims[FX_MAX_RANK];
    if (!inserts_ones(&outer->in[0]->spec, &outer->spec, place))
        return NULL;
    for (int i = 0; i < n; i++)
        dims[i] = place[d[i]];
    return fx_b_broadcast(m->g, x_of(m), outer->spec.rank, outer->spec.dims, dims);
}

/* A broadcast that adds nothing but ones. */
fx_node *build_broadcast_of_ones(const fx_match *m) {
    int n;
    const int64_t *d = FX_GET_LIST(m->root, dims, &n);
    if (fx_spec_count(&x_of(m)->spec) != fx_spec_count(&m->root->spec) || !ascending(d, n))
        return NULL;
    return fx_b_reshape(m->g, x_of(m), m->root->spec.rank, m->root->spec.dims);
}

/* Ones that come or go before an elementwise op do so after it: they then meet the broadcast or reshape that wants
 * them. */
fx_node *build_elementwise_of_reshape(const fx_match *m) {
    const fx_node *n = m->root, *first = NULL;
    fx_node *in[3];
    int64_t place[FX_MAX_RANK];
    if (n->n_in > 3)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->op == FX_OP_reshape) {
            const fx_spec *from = &n->in[i]->in[0]->spec, *to = &n->in[i]->spec;
            if (!inserts_ones(from, to, place) && !inserts_ones(to, from, place))
                return NULL;
            fx_spec like = *from;
            like.dtype = first ? first->spec.dtype : from->dtype;
            if (first && !fx_spec_equal(&like, &first->spec))
                return NULL;
            first = n->in[i]->in[0];
        }
    if (!first)
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        fx_spec spec = first->spec;
        double v;
        spec.dtype = n->in[i]->spec.dtype;
        if (n->in[i]->op == FX_OP_reshape)
            in[i] = n->in[i]->in[0];
        else if (fx_node_splat(n->in[i], &v))
            in[i] = fx_b_const_element(m->g, &spec, fx_attr_get(n->in[i], FX_ATTR_value)->u.data);
        else
            return NULL;
    }
    fx_node *y = fx_build(m->g, n->op, n->n_in, in, n->n_attr, n->attr, 0, NULL);
    return fx_b_reshape(m->g, y, n->spec.rank, n->spec.dims);
}

/* The one dimension that a pad of zeros widens, without gaps; -1 when it does more. */
static int padded_dim(const fx_node *pad) {
    const int64_t *low = FX_GET_LIST(pad, low, NULL), *high = FX_GET_LIST(pad, high, NULL);
    const int64_t *between = FX_GET_LIST(pad, interior, NULL);
    int dim = -1;
    if (!fx_node_is_splat(pad->in[1], 0) && !fx_node_is_splat(pad->in[1], -0.0))
        return -1;
    for (int i = 0; i < pad->spec.rank; i++) {
        if (between[i] || low[i] < 0 || high[i] < 0 || ((low[i] || high[i]) && dim >= 0))
            return -1;
        if (low[i] || high[i])
            dim = i;
    }
    return dim;
}

/* Arrays put side by side by adding: what the gradient of taking slices looks like. */
fx_node *build_add_of_pads(const fx_match *m) {
    const fx_node *a = m->root->in[0], *b = m->root->in[1];
    int dim = padded_dim(a);
    if (dim < 0 || dim != padded_dim(b))
        return NULL;
    if (FX_GET_LIST(a, low, NULL)[dim] > FX_GET_LIST(b, low, NULL)[dim]) {
        const fx_node *t = a;
        a = b;
        b = t;
    }
    int64_t start = FX_GET_LIST(a, low, NULL)[dim], end = start + a->in[0]->spec.dims[dim];
    int64_t next = FX_GET_LIST(b, low, NULL)[dim], zeros[FX_MAX_RANK] = {0}, low[FX_MAX_RANK] = {0},
            high[FX_MAX_RANK] = {0};
    if (next < end)
        return NULL;
    fx_spec gap = a->in[0]->spec;
    gap.dims[dim] = next - end;
    fx_node *in[3] = {a->in[0], fx_b_zeros(m->g, &gap), b->in[0]};
    if (next == end)
        in[1] = b->in[0];
    low[dim] = start;
    high[dim] = FX_GET_LIST(b, high, NULL)[dim];
    fx_node *row = fx_b_concatenate(m->g, next == end ? 2 : 3, in, dim);
    return fx_b_pad(m->g, row, fx_b_scalar(m->g, a->spec.dtype, 0), low, high, zeros);
}

enum { MAX_CONCATENATED = 64 };

fx_node *build_concatenate_of_empty(const fx_match *m) {
    fx_node *in[MAX_CONCATENATED];
    int64_t dim = FX_GET_INT(m->root, dim);
    int n = 0;
    if (m->root->n_in > MAX_CONCATENATED)
        return NULL;
    for (int i = 0; i < m->root->n_in; i++)
        if (m->root->in[i]->spec.dims[dim])
            in[n++] = m->root->in[i];
    return n && n < m->root->n_in ? fx_b_concatenate(m->g, n, in, dim) : NULL;
}

fx_node *build_concatenate_of_concatenate(const fx_match *m) {
    fx_node *in[MAX_CONCATENATED];
    int64_t dim = FX_GET_INT(m->root, dim);
    int n = 0;
    bool nested = false;
    for (int i = 0; i < m->root->n_in; i++) {
        fx_node *x = m->root->in[i];
        bool inner = x->op == FX_OP_concatenate && FX_GET_INT(x, dim) == dim;
        if (n + (inner ? x->n_in : 1) > MAX_CONCATENATED)
            return NULL;
        nested |= inner;
        for (int j = 0; j < (inner ? x->n_in : 1); j++)
            in[n++] = inner ? x->in[j] : x;
    }
    return nested ? fx_b_concatenate(m->g, n, in, dim) : NULL;
}

/* Constant indices, clamped: a plain slice; of the whole: the operand. */
fx_node *build_dynamic_slice_constant(const fx_match *m) {
    fx_node *n = m->root, *x = n->in[0];
    int64_t start[FX_MAX_RANK], limit[FX_MAX_RANK];
    for (int i = 0; i < x->spec.rank; i++) {
        int64_t room = x->spec.dims[i] - n->spec.dims[i];
        double v = 0;
        if (room && !fx_node_splat(n->in[1 + i], &v))
            return NULL;
        start[i] = v <= 0 ? 0 : v >= (double)room ? room : imin((int64_t)v, room);
        limit[i] = start[i] + n->spec.dims[i];
    }
    return fx_b_slice(m->g, x, start, limit, NULL);
}

fx_node *build_dynamic_update_whole(const fx_match *m) {
    return fx_spec_equal(&m->root->in[1]->spec, &m->root->spec) ? m->root->in[1] : NULL;
}

/* ---- reductions and contractions ---- */

fx_node *build_reduce_of_reduce(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    int64_t dims[FX_MAX_RANK];
    int n = 0, na, nb, at = 0;
    const int64_t *a = FX_GET_LIST(outer, dims, &na), *b = FX_GET_LIST(inner, dims, &nb);
    if (FX_GET_SYM(outer) != FX_GET_SYM(inner))
        return NULL;
    for (int i = 0; i < x_of(m)->spec.rank; i++) /* `at` counts the inner result's dimensions */
        if (contains(b, nb, i) || contains(a, na, at++))
            dims[n++] = i;
    return fx_b_reduce(m->g, x_of(m), FX_GET_SYM(outer), n, dims);
}

/* Dimensions of size 1 go by a reshape; what is left is reduced. */
fx_node *build_reduce_of_unit_dims(const fx_match *m) {
    fx_node *x = x_of(m);
    int64_t shape[FX_MAX_RANK], dims[FX_MAX_RANK];
    int rank = 0, n = 0, na;
    const int64_t *a = FX_GET_LIST(m->root, dims, &na);
    for (int i = 0; i < x->spec.rank; i++) {
        bool reduced = contains(a, na, i);
        if (reduced && x->spec.dims[i] == 1)
            continue;
        if (reduced)
            dims[n++] = rank;
        shape[rank++] = x->spec.dims[i];
    }
    if (n == na)
        return NULL;
    return fx_b_reduce(m->g, fx_b_reshape(m->g, x, rank, shape), FX_GET_SYM(m->root), n, dims);
}

fx_node *build_reduce_of_transpose(const fx_match *m) {
    const fx_node *outer = m->root, *inner = outer->in[0];
    const int64_t *p = FX_GET_LIST(inner, permutation, NULL);
    int64_t dims[FX_MAX_RANK], kept[FX_MAX_RANK];
    int n = 0, k = 0, na;
    const int64_t *a = FX_GET_LIST(outer, dims, &na);
    for (int i = 0; i < inner->spec.rank; i++)
        if (contains(a, na, i))
            dims[n++] = p[i];
        else
            kept[k++] = p[i];
    return ascending(kept, k) ? fx_b_reduce(m->g, x_of(m), FX_GET_SYM(outer), n, dims) : NULL;
}

fx_node *build_reduce_of_neg(const fx_match *m) {
    int n;
    const int64_t *dims = FX_GET_LIST(m->root, dims, &n);
    if (FX_GET_SYM(m->root) != FX_SYM_sum)
        return NULL;
    return fx_b_unary(m->g, FX_OP_neg, fx_b_reduce(m->g, x_of(m), FX_SYM_sum, n, dims));
}

fx_node *build_cumulative_of_unit_dim(const fx_match *m) {
    return m->root->spec.dims[FX_GET_INT(m->root, dim)] == 1 ? x_of(m) : NULL;
}

/* Replaces a transposed operand by what it transposes, when the order of its free dimensions stays. */
static fx_node *untranspose(fx_node *x, int n_batch, const int64_t **batch, int n_contract, const int64_t **contract,
                            int64_t *storage) {
    const int64_t *p = x->op == FX_OP_transpose ? FX_GET_LIST(x, permutation, NULL) : NULL;
    int64_t kept[FX_MAX_RANK];
    int k = 0;
    for (int i = 0; p && i < x->spec.rank; i++)
        if (!contains(*batch, n_batch, i) && !contains(*contract, n_contract, i))
            kept[k++] = p[i];
    if (!p || !ascending(kept, k))
        return NULL;
    for (int i = 0; i < n_batch; i++)
        storage[i] = p[(*batch)[i]];
    for (int i = 0; i < n_contract; i++)
        storage[n_batch + i] = p[(*contract)[i]];
    *batch = storage;
    *contract = storage + n_batch;
    return x->in[0];
}

fx_node *build_dot_of_transpose(const fx_match *m) {
    fx_dot_numbers d;
    int64_t left[2 * FX_MAX_RANK], right[2 * FX_MAX_RANK];
    fx_dot_numbers_get(m->root, &d);
    fx_node *x = untranspose(x_of(m), d.n_batch, &d.lhs_batch, d.n_contract, &d.lhs_contract, left);
    fx_node *y = untranspose(m->var[FX_VAR_Y], d.n_batch, &d.rhs_batch, d.n_contract, &d.rhs_contract, right);
    if (!x && !y)
        return NULL;
    return fx_b_dot(m->g, x ? x : x_of(m), y ? y : m->var[FX_VAR_Y], &d);
}

/* Batch, rhs free, lhs free: the product with its operands exchanged. */
fx_node *build_transpose_of_dot(const fx_match *m) {
    const fx_node *dot = m->root->in[0];
    const int64_t *p = FX_GET_LIST(m->root, permutation, NULL);
    fx_dot_numbers d;
    fx_dot_numbers_get(dot, &d);
    int nl = dot->in[0]->spec.rank - d.n_batch - d.n_contract, rank = dot->spec.rank, nr = rank - d.n_batch - nl;
    for (int i = 0; i < rank; i++) {
        int64_t want = i < d.n_batch ? i : i < d.n_batch + nr ? i + nl : i - nr;
        if (p[i] != want)
            return NULL;
    }
    fx_dot_numbers swapped = d;
    swapped.lhs_batch = d.rhs_batch;
    swapped.rhs_batch = d.lhs_batch;
    swapped.lhs_contract = d.rhs_contract;
    swapped.rhs_contract = d.lhs_contract;
    return fx_b_dot(m->g, dot->in[1], dot->in[0], &swapped);
}

/* ---- control flow ---- */

enum { MAX_INLINED_RESULTS = 256 };

/* Result `index` of a region applied to operands. */
static fx_node *inlined(const fx_match *m, const fx_graph *region, fx_node *const *in) {
    fx_node *results[MAX_INLINED_RESULTS];
    if (region->n_result > MAX_INLINED_RESULTS || fx_graph_inline(m->g, region, in, results) != FX_OK)
        return NULL;
    return results[FX_GET_INT(m->root, index)];
}

fx_node *build_call_inline(const fx_match *m) {
    const fx_node *call = m->root->in[0];
    return FX_GET_SYM(call) == FX_SYM_inline ? inlined(m, call->region[0], call->in) : NULL;
}

fx_node *build_cond_constant(const fx_match *m) {
    const fx_node *cond = m->root->in[0];
    double v = 0;
    if (cond->n_region > 1 && !fx_node_splat(cond->in[0], &v))
        return NULL;
    int last = cond->n_region - 1, k = v <= 0 ? 0 : v >= last ? last : (int)v;
    return inlined(m, cond->region[k], cond->in + 1);
}

fx_node *build_while_never(const fx_match *m) {
    const fx_node *loop = m->root->in[0];
    return fx_node_is_splat(loop->region[0]->results[0], 0) ? loop->in[FX_GET_INT(m->root, index)] : NULL;
}

fx_node *build_scan_of_length_zero(const fx_match *m) {
    const fx_node *scan = m->root->in[0];
    int64_t i = FX_GET_INT(m->root, index);
    if (FX_GET_INT(scan, length) || i >= FX_GET_INT(scan, n_carry))
        return NULL;
    return scan->in[FX_GET_INT(scan, n_consts) + i];
}
