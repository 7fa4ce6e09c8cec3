/* rules_code.c - the conditions of rules.def and its builders for arithmetic, types, reductions, contractions and
 * control flow. A builder returns NULL when its rule doesn't apply. */
#include <math.h>
#include <string.h>

#include "core/graph/rules_code.h"

bool fx_is_any(const fx_match *m) {
    return m->root;
}
bool fx_is_bool(const fx_match *m) {
    return m->root->spec.dtype == FX_BOOL;
}
bool fx_is_not_float(const fx_match *m) {
    return !fx_dtype_is_float(x_of(m)->spec.dtype);
}

bool fx_is_not_unsigned(const fx_match *m) {
    return !fx_dtype_is_unsigned(x_of(m)->spec.dtype);
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

bool fx_is_not_minus_zero(const fx_match *m) {
    return never_minus_zero(x_of(m), 0);
}

/* ---- arithmetic and types ---- */

/* x / 2^k = x * 2^-k, both correctly rounded results of the same real number, if 2^-k is a normal number of the type.
 */
fx_node *fx_make_reciprocal(const fx_match *m) {
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
fx_node *fx_make_convert_of_convert(const fx_match *m) {
    fx_dtype from = x_of(m)->spec.dtype, by = m->root->in[0]->spec.dtype, to = m->root->spec.dtype;
    bool detour = fx_dtype_is_int(from) && fx_dtype_is_float(by) && fx_dtype_is_int(to) && to != from;
    return holds_all(by, from) && !detour ? fx_b_convert(m->g, x_of(m), to) : NULL;
}

/* ---- reductions and contractions ---- */

fx_node *fx_make_reduce_of_reduce(const fx_match *m) {
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
fx_node *fx_make_reduce_of_unit_dims(const fx_match *m) {
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

fx_node *fx_make_reduce_of_transpose(const fx_match *m) {
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

fx_node *fx_make_reduce_of_neg(const fx_match *m) {
    int n;
    const int64_t *dims = FX_GET_LIST(m->root, dims, &n);
    if (FX_GET_SYM(m->root) != FX_SYM_sum)
        return NULL;
    return fx_b_unary(m->g, FX_OP_neg, fx_b_reduce(m->g, x_of(m), FX_SYM_sum, n, dims));
}

fx_node *fx_make_cumulative_of_unit_dim(const fx_match *m) {
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

fx_node *fx_make_dot_of_transpose(const fx_match *m) {
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
fx_node *fx_make_transpose_of_dot(const fx_match *m) {
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

fx_node *fx_make_call_inline(const fx_match *m) {
    const fx_node *call = m->root->in[0];
    return FX_GET_SYM(call) == FX_SYM_inline ? inlined(m, call->region[0], call->in) : NULL;
}

fx_node *fx_make_cond_constant(const fx_match *m) {
    const fx_node *cond = m->root->in[0];
    double v = 0;
    if (cond->n_region > 1 && !fx_node_splat(cond->in[0], &v))
        return NULL;
    int last = cond->n_region - 1, k = v <= 0 ? 0 : v >= last ? last : (int)v;
    return inlined(m, cond->region[k], cond->in + 1);
}

fx_node *fx_make_while_never(const fx_match *m) {
    const fx_node *loop = m->root->in[0];
    return fx_node_is_splat(loop->region[0]->results[0], 0) ? loop->in[FX_GET_INT(m->root, index)] : NULL;
}

fx_node *fx_make_scan_of_length_zero(const fx_match *m) {
    const fx_node *scan = m->root->in[0];
    int64_t i = FX_GET_INT(m->root, index);
    if (FX_GET_INT(scan, length) || i >= FX_GET_INT(scan, n_carry))
        return NULL;
    return scan->in[FX_GET_INT(scan, n_consts) + i];
}
