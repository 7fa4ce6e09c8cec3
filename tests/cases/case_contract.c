/* case_contract.c - batched products, convolutions in every form, pooling windows. */
#include <math.h>

#include "tests/cases/case.h"

#define BROADCAST(g, x, dims_list, ...) OP(g, broadcast_in_dim, IN(x), ATTR(LIST(shape, __VA_ARGS__), dims_list))

static void batch_of_one(const executor *e) {
    static const double a[] = {4, -2, -14, 4, -2, 5, -2, -8, 4, 1,  5, 5, -8, 7, 1,
                               5, 5,  -2,  7, -6, 5, 2,  -2, 5, -6, 9, 2, -1, 5, -16};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec as = FX_SPEC(FX_F32, 1, 3, 4), bs = FX_SPEC(FX_F32, 5, 4, 2);
    fx_node *x = fx_graph_param(g, &as), *y = fx_graph_param(g, &bs);
    fx_node *wide = BROADCAST(g, x, LIST(dims, 0, 1, 2), 5, 3, 4);
    fx_node *r = OP(g, dot_general, IN(wide, y),
                    ATTR(LIST(lhs_batch, 0), LIST(rhs_batch, 0), LIST(lhs_contract, 2), LIST(rhs_contract, 1)));
    case_array args[] = {case_formula(as, 1, 5, -2), case_formula(bs, 3, 7, -3)};
    case_check(e, "[1,3,4] x [5,4,2]", g, r, 2, args, a, 0, 0);
}

static void two_batches(const executor *e) {
    static const double corner[] = {-4, 9, 13, -36, -6, 9};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec as = FX_SPEC(FX_F32, 2, 1, 3, 4), bs = FX_SPEC(FX_F32, 1, 5, 4, 2);
    fx_node *x = fx_graph_param(g, &as), *y = fx_graph_param(g, &bs);
    fx_node *xw = BROADCAST(g, x, LIST(dims, 0, 1, 2, 3), 2, 5, 3, 4),
            *yw = BROADCAST(g, y, LIST(dims, 0, 1, 2, 3), 2, 5, 4, 2);
    fx_node *r = OP(g, dot_general, IN(xw, yw),
                    ATTR(LIST(lhs_batch, 0, 1), LIST(rhs_batch, 0, 1), LIST(lhs_contract, 3), LIST(rhs_contract, 2)));
    case_array args[] = {case_formula(as, 1, 9, -4), case_formula(bs, 3, 7, -3)}, out;
    case_run(e, g, 1, &r, 2, args, &out);
    case_sums(e, "[2,1,3,4] x [1,5,4,2]", &out, 18, 641);
    case_array last = {FX_SPEC(FX_F32, 3, 2), (float *)out.data + 9 * 6};
    case_compare(e, "y[1,4]", &last, corner, 0, 0);
    case_free(&out);
}

/* A [32,32] matrix, read again for each of 32 batches, on the left or on the right. */
static void one_for_all(const executor *e, bool swapped) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec as = FX_SPEC(FX_F32, 32, 32), bs = FX_SPEC(FX_F32, 32, 32, 32);
    fx_node *x = fx_graph_param(g, &as), *y = fx_graph_param(g, &bs);
    fx_node *wide = BROADCAST(g, x, LIST(dims, 1, 2), 32, 32, 32);
    fx_node *l = swapped ? y : wide, *r = swapped ? wide : y;
    fx_node *p = OP(g, dot_general, IN(l, r),
                    ATTR(LIST(lhs_batch, 0), LIST(rhs_batch, 0), LIST(lhs_contract, 2), LIST(rhs_contract, 1)));
    case_array args[] = {case_formula(as, 7, 11, -5), case_formula(bs, 5, 13, -6)}, out;
    double first[] = {-21}, last[] = {swapped ? -62 : -31};
    case_run(e, g, 1, &p, 2, args, &out);
    case_sums(e, swapped ? "b x a" : "a x b", &out, swapped ? -60 : 53, swapped ? -32137 : 7963);
    case_array corner = {FX_SPEC0(FX_F32), (float *)out.data + 32 * 32 * 32 - 1};
    case_compare(e, "y[31,31,31]", &corner, last, 0, 0);
    corner.data = (float *)out.data + 32 * 32;
    if (!swapped)
        case_compare(e, "y[1,0,0]", &corner, first, 0, 0);
    case_free(&out);
}

void case_a035_broadcast_batch(const executor *e) {
    batch_of_one(e);
    two_batches(e);
    one_for_all(e, false);
    one_for_all(e, true);
}

static void convolution(const executor *e, const char *what, fx_spec xs, fx_spec ws, const int *x_formula,
                        const int *w_formula, int n_attr, const fx_attr *attrs, const double *want) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &xs), *w = fx_graph_param(g, &ws);
    fx_node *r = fx_build(g, FX_OP_convolution, IN(x, w), n_attr, attrs, 0, NULL);
    case_array args[] = {case_formula(xs, x_formula[0], x_formula[1], x_formula[2]),
                         case_formula(ws, w_formula[0], w_formula[1], w_formula[2])};
    case_check(e, what, g, r, 2, args, want, 0, 0);
}

void case_a043_convolution(const executor *e) {
    static const double dilated[] = {
        -4, -5, 2,  4,   9,  -6, -6, -4, 4,  2,  8,  -4, 3,  -5, 9,  -6,  9,  -5,  3,  -4, 2,  -1, 10, -4,  -13, -8,
        17, 2,  10, -7,  10, -6, 3,  -3, -2, 3,  -7, -7, 3,  -2, 14, 14,  -8, -10, -7, 10, 2,  17, -8, -13, -6,  10,
        -6, 8,  -4, 3,   -5, 9,  -6, 9,  -6, 4,  -4, 3,  -6, 9,  -6, 2,   -5, 3,   -4, -5, 2,  4,  9,  -6,  -6,  -4,
        4,  2,  2,  -4,  -3, -2, 17, -8, 12, -7, -4, -1, -8, -3, 6,  0,   -7, -2,  8,  -2, 8,  -2, 13, -10, 13,  -9,
        2,  -1, -4, -13, 12, -8, 6,  8,  -8, -4, -5, 2,  4,  9,  -6, -6,  -8, 3,   -5, 2,  -6, 9,  -6, 3,   -4,  4,
        -6, 4,  -4, 3,   -6, 9,  -6, 2,  -5, 3,  -8, -2, -1, 10, 12, -13, -8, -1,  2,  10, -6, 0,  -6, 3,   8,   -2,
        3,  -2, -7, 3,   -8, -9, 14, -8, -4, -7, 10, -8, 17, -8, 3,  -4,  10, -6,  4,  -4, 3,  -6, 9,  -6};
    static const double reversed[] = {-25, 16,  -7, 8,   3, 0,   -9, 10, 7, 10,  15, -9,  -13, 8,   -14, 14, 20,  -4,
                                      31,  -20, 7,  -21, 5, -10, 9,  10, 9, -10, 17, -38, 21,  -20, 7,   8,  -10, 14};
    static const double cropped[] = {11, -10, -2, -5, -4, 4, 13, -16, -14, 8, 8, -7};
    static const double grouped[] = {-17, 34,  15, -22, 18, -15, -4,  -4, -16, 21,  18, -22, 14,  -24, -23, 16,
                                     21,  -16, 20, -17, -4, -4,  -15, 18, 34,  -17, 13, -16, -43, 18,  8,   14};
    fx_spec x = FX_SPEC(FX_F32, 1, 2, 3, 4), w = FX_SPEC(FX_F32, 3, 2, 3, 3);
    const int fx[] = {5, 9, -4}, fw[] = {2, 5, -2}, gx[] = {5, 11, -5}, gw[] = {3, 7, -3};
    convolution(e, "input dilation", x, w, fx, fw, ATTR(LIST(lhs_dilation, 2, 3), LIST(low, 2, 0), LIST(high, 1, 2)),
                dilated);
    convolution(e, "window reversal", x, w, fx, fw,
                ATTR(LIST(low, 1, 1), LIST(high, 1, 1), LIST(window_reversal, 1, 1)), reversed);
    convolution(e, "negative padding", x, w, fx, fw, ATTR(LIST(low, -1, 1), LIST(high, 2, -1)), cropped);
    convolution(e, "batch groups", FX_SPEC(FX_F32, 4, 2, 3, 3), FX_SPEC(FX_F32, 4, 2, 2, 2), gx, gw,
                ATTR(FX_INT(batch_groups, 2)), grouped);
}

static fx_node *pool(fx_graph *g, fx_node *x, fx_symbol kind) {
    return OP(g, reduce_window, IN(x),
              ATTR(FX_INT(kind, kind), LIST(window, 1, 1, 3, 3), LIST(strides, 1, 1, 2, 2), LIST(low, 0, 0, 1, 1),
                   LIST(high, 0, 0, 1, 1)));
}

/* What x is here: minus a permutation of 1 to 24. */
static case_array pool_input(void) {
    fx_spec s = FX_SPEC(FX_F32, 1, 1, 4, 6);
    case_array x = case_formula(s, 7, 24, 1);
    for (int i = 0; i < 24; i++)
        ((float *)x.data)[i] *= -1;
    return x;
}

void case_a045_pooling(const executor *e) {
    static const double largest[] = {-1, -2, -5, -2, -2, -4};
    static const double mean[] = {-3.3333333333333335, -8,  -9.333333333333334,
                                  -8.333333333333334,  -11, -14.333333333333334};
    static const double mean_inside[] = {-7.5, -12, -14, -12.5, -11, -14.333333333333334};
    static const double dilated[] = {-3, -5, -9, -2};
    fx_spec s = FX_SPEC(FX_F32, 1, 1, 4, 6);
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &s);
    case_array args[] = {pool_input()};
    case_check(e, "max pooling", g, pool(g, x, FX_SYM_max), 1, args, largest, 0, 0);

    g = fx_graph_new(NULL);
    x = fx_graph_param(g, &s);
    fx_node *nine = BROADCAST(g, case_const(g, FX_F32, 9), EMPTY(dims), 1, 1, 2, 3);
    args[0] = pool_input();
    case_check(e, "average", g, OP(g, div, IN(pool(g, x, FX_SYM_sum), nine), NO_ATTR), 1, args, mean, 0, 1e-6);

    g = fx_graph_new(NULL);
    x = fx_graph_param(g, &s);
    fx_node *ones = BROADCAST(g, case_const(g, FX_F32, 1), EMPTY(dims), 1, 1, 4, 6);
    fx_node *r = OP(g, div, IN(pool(g, x, FX_SYM_sum), pool(g, ones, FX_SYM_sum)), NO_ATTR);
    args[0] = pool_input();
    case_check(e, "average without padding", g, r, 1, args, mean_inside, 0, 1e-6);

    g = fx_graph_new(NULL);
    x = fx_graph_param(g, &s);
    r = OP(g, reduce_window, IN(x),
           ATTR(FX_SYM(kind, max), LIST(window, 1, 1, 2, 2), LIST(strides, 1, 1, 1, 2), LIST(rhs_dilation, 1, 1, 2, 3),
                LIST(low, 0, 0, 0, 1), LIST(high, 0, 0, 0, 0)));
    args[0] = pool_input();
    case_check(e, "dilated window", g, r, 1, args, dilated, 0, 0);
}
