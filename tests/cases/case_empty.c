/* case_empty.c - arrays without elements, reductions of nothing, scalars. */
#include <check.h>
#include <math.h>

#include "tests/cases/case.h"

static const double none[1] = {0};

static void matmul(const executor *e) {
    static const double zeros[12] = {0};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec as = FX_SPEC(FX_F32, 4, 0), bs = FX_SPEC(FX_F32, 0, 3);
    fx_node *a = fx_graph_param(g, &as), *b = fx_graph_param(g, &bs);
    case_array args[] = {case_full(as, 0), case_full(bs, 0)};
    case_check(e, "[4,0] x [0,3]", g, OP(g, dot_general, IN(a, b), ATTR(LIST(lhs_contract, 1), LIST(rhs_contract, 0))),
               2, args, zeros, 0, 0);
}

static void reduce(const executor *e, fx_symbol kind, fx_dtype d, int64_t axis, double identity) {
    double want[5] = {identity, identity, identity, identity, identity};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = axis ? FX_SPEC(d, 5, 0) : FX_SPEC(d, 0, 5);
    fx_node *x = fx_graph_param(g, &s);
    case_array args[] = {case_full(s, 0)};
    case_check(e, fx_symbol_name(kind), g, OP(g, reduce, IN(x), ATTR(FX_INT(kind, kind), LIST(dims, axis))), 1, args,
               want, 0, 0);
}

static void reductions(const executor *e) {
    reduce(e, FX_SYM_sum, FX_F32, 0, 0);
    reduce(e, FX_SYM_prod, FX_F32, 0, 1);
    reduce(e, FX_SYM_max, FX_F32, 0, -INFINITY);
    reduce(e, FX_SYM_min, FX_F32, 0, INFINITY);
    reduce(e, FX_SYM_max, FX_F32, 1, -INFINITY);
    reduce(e, FX_SYM_and, FX_BOOL, 0, 1);
    reduce(e, FX_SYM_or, FX_BOOL, 0, 0);
    reduce(e, FX_SYM_max, FX_S32, 0, -2147483648.0);
    fx_graph *g = fx_graph_new(NULL); /* over the other axis: no results at all */
    fx_spec s = FX_SPEC(FX_F32, 0, 5);
    fx_node *x = fx_graph_param(g, &s);
    case_array args[] = {case_full(s, 0)};
    case_check(e, "max over axis 1", g, OP(g, reduce, IN(x), ATTR(FX_SYM(kind, max), LIST(dims, 1))), 1, args, none, 0,
               0);
}

static void mean(const executor *e) {
    static const double want[] = {NAN, NAN, NAN, NAN, NAN};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, 0, 5);
    fx_node *x = fx_graph_param(g, &s), *sum = OP(g, reduce, IN(x), ATTR(FX_SYM(kind, sum), LIST(dims, 0)));
    fx_node *n = OP(g, broadcast_in_dim, IN(case_const(g, FX_F32, 0)), ATTR(LIST(shape, 5), EMPTY(dims)));
    case_array args[] = {case_full(s, 0)};
    case_check(e, "mean", g, OP(g, div, IN(sum, n), NO_ATTR), 1, args, want, 0, 0);
}

static void concatenate(const executor *e) {
    static const double want[] = {1, 2, 3, 4, 5, 6};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec zs = FX_SPEC(FX_F32, 0, 3), s = FX_SPEC(FX_F32, 2, 3);
    fx_node *z = fx_graph_param(g, &zs), *x = fx_graph_param(g, &s);
    case_array args[] = {case_full(zs, 0), case_values(s, want)};
    case_check(e, "concatenate", g, OP(g, concatenate, IN(z, x, z), ATTR(FX_INT(dim, 0))), 2, args, want, 0, 0);
}

static void convolution(const executor *e, int64_t batch, int64_t size) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_F32, batch, 2, size, 4), ws = FX_SPEC(FX_F32, 3, 2, 3, 3);
    fx_node *x = fx_graph_param(g, &xs), *w = fx_graph_param(g, &ws);
    case_array args[] = {case_full(xs, 1), case_full(ws, 1)};
    case_check(e, "convolution", g, OP(g, convolution, IN(x, w), NO_ATTR), 2, args, none, 0, 0);
}

static void softmax(const executor *e, fx_spec s) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &s);
    fx_attr shape = FX_LIST(shape, 2, s.dims);
    fx_node *top = OP(g, reduce, IN(x), ATTR(FX_SYM(kind, max), LIST(dims, 1)));
    fx_node *p = OP(
        g, exp, IN(OP(g, sub, IN(x, OP(g, broadcast_in_dim, IN(top), ATTR(shape, LIST(dims, 0)))), NO_ATTR)), NO_ATTR);
    fx_node *sum = OP(g, reduce, IN(p), ATTR(FX_SYM(kind, sum), LIST(dims, 1)));
    fx_node *r = OP(g, div, IN(p, OP(g, broadcast_in_dim, IN(sum), ATTR(shape, LIST(dims, 0)))), NO_ATTR);
    case_array args[] = {case_full(s, 1)};
    case_check(e, "softmax", g, r, 1, args, none, 0, 0);
}

static void shapes(const executor *e) {
    static const double nines[] = {9, 9};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec zs = FX_SPEC(FX_F32, 0), ts = FX_SPEC(FX_F32, 0, 3), xs = FX_SPEC(FX_F32, 4);
    fx_node *z = fx_graph_param(g, &zs), *t = fx_graph_param(g, &ts), *x = fx_graph_param(g, &xs);
    fx_node *results[] = {OP(g, add, IN(z, z), NO_ATTR), OP(g, transpose, IN(t), ATTR(LIST(permutation, 1, 0))),
                          OP(g, slice, IN(x), ATTR(LIST(start, 2), LIST(limit, 2), LIST(strides, 1))),
                          OP(g, pad, IN(z, case_const(g, FX_F32, 9)), ATTR(LIST(low, 2), LIST(high, 0)))};
    case_array args[] = {case_full(zs, 0), case_full(ts, 0), case_full(xs, 1)}, out[4];
    case_run(e, g, 4, results, 3, args, out);
    ck_assert(fx_spec_equal(&out[0].spec, &zs));
    ck_assert(fx_spec_equal(&out[1].spec, &FX_SPEC(FX_F32, 3, 0)));
    ck_assert(fx_spec_equal(&out[2].spec, &zs));
    case_compare(e, "pad", &out[3], nines, 0, 0);
    for (int i = 0; i < 4; i++)
        case_free(&out[i]);
}

static void indices(const executor *e) {
    static const double same[] = {1, 2, 3};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_F32, 3), is = FX_SPEC(FX_S32, 0), us = FX_SPEC(FX_F32, 0);
    fx_node *x = fx_graph_param(g, &xs), *i = fx_graph_param(g, &is), *u = fx_graph_param(g, &us);
    fx_node *results[] = {
        OP(g, gather, IN(x, i),
           ATTR(LIST(collapsed_slice_dims, 0), LIST(start_index_map, 0), FX_INT(index_vector_dim, 1),
                LIST(slice_sizes, 1))),
        OP(g, scatter, IN(x, i, u),
           ATTR(FX_SYM(kind, add), LIST(inserted_window_dims, 0), LIST(scatter_dims, 0), FX_INT(index_vector_dim, 1)))};
    case_array args[] = {case_values(xs, same), case_full(is, 0), case_full(us, 0)}, out[2];
    case_run(e, g, 2, results, 3, args, out);
    ck_assert(fx_spec_equal(&out[0].spec, &us));
    case_compare(e, "scatter of nothing", &out[1], same, 0, 0);
    case_free(&out[0]);
    case_free(&out[1]);
}

static void arg_reduce_is_refused(void) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, 0, 5);
    fx_node *x = fx_graph_param(g, &s);
    ck_assert_ptr_null(OP(g, arg_reduce, IN(x), ATTR(FX_SYM(kind, max), FX_INT(dim, 0), FX_INT(dtype, FX_S32))));
    ck_assert_int_eq(g->status, FX_INVALID_ARGUMENT);
    fx_graph_unref(g);
}

static void scalars(const executor *e) {
    static const double sum[] = {5}, same[] = {2};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC0(FX_F32);
    fx_node *x = fx_graph_param(g, &s), *y = fx_graph_param(g, &s);
    fx_node *one = OP(g, reshape, IN(x), ATTR(LIST(shape, 1, 1)));
    fx_node *results[] = {OP(g, add, IN(x, y), NO_ATTR), OP(g, reduce, IN(x), ATTR(FX_SYM(kind, sum), EMPTY(dims))),
                          OP(g, transpose, IN(x), ATTR(EMPTY(permutation))),
                          OP(g, reshape, IN(one), ATTR(EMPTY(shape)))};
    case_array args[] = {VALUES(s, 2), VALUES(s, 3)}, out[4];
    case_run(e, g, 4, results, 2, args, out);
    for (int i = 0; i < 4; i++) {
        case_compare(e, "scalar", &out[i], i ? same : sum, 0, 0);
        case_free(&out[i]);
    }
}

static void sort(const executor *e, int64_t n) {
    static const double same[] = {7};
    fx_graph *less = fx_graph_new(NULL), *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, n), one = FX_SPEC0(FX_F32);
    fx_node *a = fx_graph_param(less, &one), *b = fx_graph_param(less, &one), *lt = OP(less, lt, IN(a, b), NO_ATTR);
    ck_assert_int_eq(fx_graph_finish(less, 1, &lt, true), FX_OK);
    fx_node *x = fx_graph_param(g, &s);
    fx_node *sorted = fx_build(g, FX_OP_sort, IN(x), ATTR(FX_INT(dim, 0)), 1, &less);
    case_array args[] = {case_full(s, 7)};
    case_check(e, "sort", g, fx_result(sorted, 0), 1, args, same, 0, 0);
    fx_graph_unref(less);
}

void case_a037_empty_arrays(const executor *e) {
    matmul(e);
    reductions(e);
    mean(e);
    concatenate(e);
    convolution(e, 0, 4);
    convolution(e, 1, 2);
    softmax(e, FX_SPEC(FX_F32, 0, 5));
    softmax(e, FX_SPEC(FX_F32, 5, 0));
    shapes(e);
    indices(e);
    arg_reduce_is_refused();
    scalars(e);
    sort(e, 0);
    sort(e, 1);
}
