/* build_short.c - the short forms of build.h: each fills attributes and calls fx_build. */
#include "core/graph/build.h"

#include <math.h>
#include <string.h>

#define N(a) (int)(sizeof(a) / sizeof *(a))

/* double -> integer of `bits` bits: truncates, saturates; NaN is 0. */
static uint64_t to_int(double v, int bits, bool is_signed) {
    double lo = is_signed ? -ldexp(1, bits - 1) : 0, hi = ldexp(1, is_signed ? bits - 1 : bits);
    if (v != v)
        return 0;
    if (v >= hi)
        return is_signed ? ((uint64_t)1 << (bits - 1)) - 1 : ~(uint64_t)0 >> (64 - bits);
    if (v <= lo)
        return is_signed ? ~(uint64_t)0 << (bits - 1) : 0;
    return is_signed ? (uint64_t)(int64_t)v : (uint64_t)v;
}

void fx_element_store(fx_dtype d, void *element, double v) {
    switch (d) {
    case FX_BOOL:
        *(unsigned char *)element = v != 0;
        break;
    case FX_F16:
        memcpy(element, &(uint16_t){fx_f64_to_f16(v)}, 2);
        break;
    case FX_BF16:
        memcpy(element, &(uint16_t){fx_f64_to_bf16(v)}, 2);
        break;
    case FX_F32:
        memcpy(element, &(float){(float)v}, 4);
        break;
    case FX_F64:
        memcpy(element, &v, 8);
        break;
    default:
        fx_element_store_bits(d, element, to_int(v, (int)fx_dtype_size(d) * 8, fx_dtype_is_signed(d)));
    }
}

void fx_element_store_bits(fx_dtype d, void *element, uint64_t bits) {
    switch (fx_dtype_size(d)) {
    case 1:
        memcpy(element, &(uint8_t){(uint8_t)bits}, 1);
        break;
    case 2:
        memcpy(element, &(uint16_t){(uint16_t)bits}, 2);
        break;
    case 4:
        memcpy(element, &(uint32_t){(uint32_t)bits}, 4);
        break;
    case 8:
        memcpy(element, &bits, 8);
        break;
    }
}

uint64_t fx_element_bits(fx_dtype d, const void *element) {
    union {
        uint8_t b;
        uint16_t h;
        uint32_t w;
        uint64_t l;
    } u = {.l = 0};
    size_t size = fx_dtype_size(d);
    memcpy(&u, element, size);
    return size == 1 ? u.b : size == 2 ? u.h : size == 4 ? u.w : u.l;
}

#define LOAD(type)                     \
    do {                               \
        type v;                        \
        memcpy(&v, element, sizeof v); \
        return (double)v;              \
    } while (0)

double fx_element_load(fx_dtype d, const void *element) {
    uint16_t h;
    switch (d) {
    case FX_BOOL:
    case FX_U8:
        LOAD(uint8_t);
    case FX_S8:
        LOAD(int8_t);
    case FX_S16:
        LOAD(int16_t);
    case FX_S32:
        LOAD(int32_t);
    case FX_S64:
        LOAD(int64_t);
    case FX_U16:
        LOAD(uint16_t);
    case FX_U32:
        LOAD(uint32_t);
    case FX_U64:
        LOAD(uint64_t);
    case FX_F32:
        LOAD(float);
    case FX_F64:
        LOAD(double);
    case FX_F16:
        memcpy(&h, element, 2);
        return (double)fx_f16_to_f32(h);
    case FX_BF16:
        memcpy(&h, element, 2);
        return (double)fx_bf16_to_f32(h);
    default:
        return 0;
    }
}
#undef LOAD

static fx_node *constant(fx_graph *g, const fx_spec *spec, size_t bytes, const void *data) {
    const fx_attr a[] = {FX_DATA(value, bytes, data), FX_LIST(shape, spec->rank, spec->dims),
                         FX_DTYPE_ATTR(spec->dtype)};
    if (bytes > INT32_MAX)
        return fx_graph_error(g, FX_INVALID_ARGUMENT,
                              "constant: expected at most 2 GiB; got %zu bytes; make it an input", bytes);
    return fx_build(g, FX_OP_constant, 0, NULL, N(a), a, 0, NULL);
}

fx_node *fx_b_const_element(fx_graph *g, const fx_spec *spec, const void *element) {
    return constant(g, spec, fx_dtype_size(spec->dtype), element);
}

fx_node *fx_b_const_splat(fx_graph *g, const fx_spec *spec, double value) {
    uint64_t element = 0;
    fx_element_store(spec->dtype, &element, value);
    return fx_b_const_element(g, spec, &element);
}

fx_node *fx_b_const_data(fx_graph *g, const fx_spec *spec, const void *data) {
    int64_t n = fx_spec_count(spec);
    size_t bytes;
    if (n < 0 || __builtin_mul_overflow((size_t)n, fx_dtype_size(spec->dtype), &bytes))
        return fx_graph_error(g, FX_INVALID_ARGUMENT, "constant: expected at most 2 GiB; got more; make it an input");
    return constant(g, spec, bytes, data);
}

fx_node *fx_b_scalar(fx_graph *g, fx_dtype dtype, double value) {
    return fx_b_const_splat(g, &FX_SPEC0(dtype), value);
}
fx_node *fx_b_zeros(fx_graph *g, const fx_spec *spec) {
    return fx_b_const_splat(g, spec, 0);
}
fx_node *fx_b_like(fx_node *n, double value) {
    return n ? fx_b_const_splat(n->graph, &n->spec, value) : NULL;
}

fx_node *fx_b_iota(fx_graph *g, const fx_spec *spec, int64_t dim) {
    const fx_attr a[] = {FX_INT(dim, dim), FX_LIST(shape, spec->rank, spec->dims), FX_DTYPE_ATTR(spec->dtype)};
    return fx_build(g, FX_OP_iota, 0, NULL, N(a), a, 0, NULL);
}

bool fx_node_splat(const fx_node *n, double *value) {
    const fx_attr *a = n && n->op == FX_OP_constant ? fx_attr_get(n, FX_ATTR_value) : NULL;
    if (!a || (size_t)a->count != fx_dtype_size(n->spec.dtype))
        return false;
    *value = fx_element_load(n->spec.dtype, a->u.data);
    return true;
}

bool fx_node_is_splat(const fx_node *n, double value) {
    uint64_t element = 0;
    const fx_attr *a = n && n->op == FX_OP_constant ? fx_attr_get(n, FX_ATTR_value) : NULL;
    if (!a || (size_t)a->count != fx_dtype_size(n->spec.dtype))
        return false;
    fx_element_store(n->spec.dtype, &element, value);
    double back = fx_element_load(n->spec.dtype, &element);
    return !memcmp(a->u.data, &element, (size_t)a->count) && (back == value || (back != back && value != value));
}

fx_node *fx_b_elementwise(fx_graph *g, fx_op op, int n, fx_node *const *in) {
    return fx_build(g, op, n, in, 0, NULL, 0, NULL);
}

fx_node *fx_b_unary(fx_graph *g, fx_op op, fx_node *x) {
    return fx_b_elementwise(g, op, 1, &x);
}

fx_node *fx_b_binary(fx_graph *g, fx_op op, fx_node *x, fx_node *y) {
    return fx_b_elementwise(g, op, 2, (fx_node *[]){x, y});
}

fx_node *fx_b_binary_c(fx_graph *g, fx_op op, fx_node *x, double c) {
    return x ? fx_b_binary(g, op, x, fx_b_const_splat(g, &x->spec, c)) : NULL;
}

fx_node *fx_b_select(fx_graph *g, fx_node *pred, fx_node *on_true, fx_node *on_false) {
    return fx_b_elementwise(g, FX_OP_select, 3, (fx_node *[]){pred, on_true, on_false});
}

fx_node *fx_b_convert(fx_graph *g, fx_node *x, fx_dtype dtype) {
    return fx_build(g, FX_OP_convert, 1, &x, 1, &FX_DTYPE_ATTR(dtype), 0, NULL);
}

fx_node *fx_b_broadcast(fx_graph *g, fx_node *x, int rank, const int64_t *shape, const int64_t *dims) {
    const fx_attr a[] = {FX_LIST(shape, rank, shape), FX_LIST(dims, x ? x->spec.rank : 0, dims)};
    return fx_build(g, FX_OP_broadcast_in_dim, 1, &x, N(a), a, 0, NULL);
}

fx_node *fx_b_broadcast_scalar(fx_graph *g, fx_node *x, int rank, const int64_t *shape) {
    return fx_b_broadcast(g, x, rank, shape, (const int64_t[]){0});
}

fx_node *fx_b_reshape(fx_graph *g, fx_node *x, int rank, const int64_t *shape) {
    return fx_build(g, FX_OP_reshape, 1, &x, 1, &FX_LIST(shape, rank, shape), 0, NULL);
}

fx_node *fx_b_transpose(fx_graph *g, fx_node *x, const int64_t *permutation) {
    return fx_build(g, FX_OP_transpose, 1, &x, 1, &FX_LIST(permutation, x ? x->spec.rank : 0, permutation), 0, NULL);
}

fx_node *fx_b_slice(fx_graph *g, fx_node *x, const int64_t *start, const int64_t *limit, const int64_t *strides) {
    int rank = x ? x->spec.rank : 0;
    const fx_attr a[] = {FX_LIST(start, rank, start), FX_LIST(limit, rank, limit), FX_LIST(strides, rank, strides)};
    return fx_build(g, FX_OP_slice, 1, &x, strides ? 3 : 2, a, 0, NULL);
}

fx_node *fx_b_pad(fx_graph *g, fx_node *x, fx_node *value, const int64_t *low, const int64_t *high,
                  const int64_t *interior) {
    int rank = x ? x->spec.rank : 0;
    const fx_attr a[] = {FX_LIST(low, rank, low), FX_LIST(high, rank, high), FX_LIST(interior, rank, interior)};
    return fx_build(g, FX_OP_pad, 2, (fx_node *[]){x, value}, interior ? 3 : 2, a, 0, NULL);
}

fx_node *fx_b_concatenate(fx_graph *g, int n, fx_node *const *x, int64_t dim) {
    return fx_build(g, FX_OP_concatenate, n, x, 1, &FX_INT(dim, dim), 0, NULL);
}

fx_node *fx_b_reverse(fx_graph *g, fx_node *x, int n, const int64_t *dims) {
    return fx_build(g, FX_OP_reverse, 1, &x, 1, &FX_LIST(dims, n, dims), 0, NULL);
}

fx_node *fx_b_reduce(fx_graph *g, fx_node *x, fx_symbol kind, int n, const int64_t *dims) {
    const fx_attr a[] = {FX_SYM_ATTR(kind, kind), FX_LIST(dims, n, dims)};
    return fx_build(g, FX_OP_reduce, 1, &x, N(a), a, 0, NULL);
}

fx_node *fx_b_dot(fx_graph *g, fx_node *lhs, fx_node *rhs, const fx_dot_numbers *d) {
    const fx_attr a[] = {
        FX_LIST(lhs_batch, d->n_batch, d->lhs_batch),
        FX_LIST(rhs_batch, d->n_batch, d->rhs_batch),
        FX_LIST(lhs_contract, d->n_contract, d->lhs_contract),
        FX_LIST(rhs_contract, d->n_contract, d->rhs_contract),
        FX_SYM_ATTR(precision, d->precision),
        FX_DTYPE_ATTR(d->dtype),
    };
    return fx_build(g, FX_OP_dot_general, 2, (fx_node *[]){lhs, rhs}, N(a), a, 0, NULL);
}

void fx_dot_numbers_get(const fx_node *dot, fx_dot_numbers *d) {
    d->lhs_batch = FX_GET_LIST(dot, lhs_batch, &d->n_batch);
    d->rhs_batch = FX_GET_LIST(dot, rhs_batch, NULL);
    d->lhs_contract = FX_GET_LIST(dot, lhs_contract, &d->n_contract);
    d->rhs_contract = FX_GET_LIST(dot, rhs_contract, NULL);
    d->precision = (fx_symbol)FX_GET_INT(dot, precision);
    d->dtype = dot->spec.dtype;
}
