/* case_index.c - indices: arg_reduce, gather and scatter, running reductions. */
#include <check.h>
#include <math.h>

#include "tests/cases/case.h"

/* arg_reduce of zeros but for `value` at one place. */
static void arg_reduce(const executor *e, fx_spec s, int64_t axis, bool want_max, double value, int64_t at) {
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &s);
    fx_attr kind = want_max ? FX_SYM(kind, max) : FX_SYM(kind, min);
    fx_node *r = OP(g, arg_reduce, IN(x), ATTR(kind, FX_INT(dim, axis), FX_INT(dtype, FX_S32)));
    case_array args[] = {case_full(s, 0)};
    double want[] = {(double)at};
    if (s.dtype == FX_F32)
        ((float *)args[0].data)[at] = (float)value;
    else if (s.dtype == FX_U8)
        ((uint8_t *)args[0].data)[at] = (uint8_t)value;
    else
        ((int16_t *)args[0].data)[at] = (int16_t)value;
    case_check(e, "arg_reduce", g, r, 1, args, want, 0, 0);
}

void case_a011_arg_reduce_index_is_exact(const executor *e) {
    arg_reduce(e, FX_SPEC(FX_F32, 16777221), 0, true, 1, 16777217);
    arg_reduce(e, FX_SPEC(FX_F32, 16777221), 0, false, -1, 16777217);
    arg_reduce(e, FX_SPEC(FX_F32, 16777221, 1), 0, true, 1, 16777217);
    arg_reduce(e, FX_SPEC(FX_U8, 258), 0, true, 1, 257);
    arg_reduce(e, FX_SPEC(FX_S16, 32770), 0, true, 1, 32769);
}

static void gather_clamps(const executor *e) {
    static const double want[] = {10, 10, 10, 40, 40, 40, 40, 10};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_S32, 4), is = FX_SPEC(FX_S32, 8);
    fx_node *x = fx_graph_param(g, &xs), *i = fx_graph_param(g, &is);
    fx_node *r = OP(g, gather, IN(x, i),
                    ATTR(LIST(collapsed_slice_dims, 0), LIST(start_index_map, 0), FX_INT(index_vector_dim, 1),
                         LIST(slice_sizes, 1)));
    case_array args[] = {VALUES(xs, 10, 20, 30, 40), VALUES(is, -5, -1, 0, 3, 4, 100, 2147483647, -2147483648.0)};
    case_check(e, "gather", g, r, 2, args, want, 0, 0);
}

static void scatter_drops(const executor *e) {
    static const double want[] = {4, 6, 5, 0}, want_window[] = {0, 0, 4, 5, 6, 0};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_S32, 4), is = FX_SPEC(FX_S32, 9);
    fx_node *x = fx_graph_param(g, &xs), *i = fx_graph_param(g, &is), *u = fx_graph_param(g, &is);
    fx_node *r =
        OP(g, scatter, IN(x, i, u),
           ATTR(FX_SYM(kind, add), LIST(inserted_window_dims, 0), LIST(scatter_dims, 0), FX_INT(index_vector_dim, 1)));
    case_array args[] = {case_full(xs, 0), VALUES(is, 0, 1, 0, 1, 2, -1, 4, 7, 2147483647),
                         VALUES(is, 1, 2, 3, 4, 5, 6, 7, 8, 9)};
    case_check(e, "scatter add", g, r, 3, args, want, 0, 0);

    fx_spec ws = FX_SPEC(FX_S32, 6), ss = FX_SPEC(FX_S32, 4), us = FX_SPEC(FX_S32, 4, 3);
    g = fx_graph_new(NULL);
    x = fx_graph_param(g, &ws), i = fx_graph_param(g, &ss), u = fx_graph_param(g, &us);
    r = OP(g, scatter, IN(x, i, u),
           ATTR(FX_SYM(kind, set), LIST(update_window_dims, 1), LIST(scatter_dims, 0), FX_INT(index_vector_dim, 1)));
    case_array window[] = {case_full(ws, 0), VALUES(ss, -1, 2, 4, 5), case_formula(us, 1, 100, 1)};
    case_check(e, "scatter set", g, r, 3, window, want_window, 0, 0);
}

static void histogram(const executor *e) {
    static const double want[] = {33334, 33333, 33333};
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_F32, 3), is = FX_SPEC(FX_S32, 100000), us = FX_SPEC(FX_F32, 100000);
    fx_node *x = fx_graph_param(g, &xs), *i = fx_graph_param(g, &is), *u = fx_graph_param(g, &us);
    fx_node *r =
        OP(g, scatter, IN(x, i, u),
           ATTR(FX_SYM(kind, add), LIST(inserted_window_dims, 0), LIST(scatter_dims, 0), FX_INT(index_vector_dim, 1)));
    case_array args[] = {case_full(xs, 0), case_formula(is, 1, 3, 0), case_full(us, 1)};
    case_check(e, "histogram", g, r, 3, args, want, 0, 0);
}

/* y[0,i,j,i] = 10 i + j by index vectors (0, i, j, i). */
static void scatter_nd(const executor *e) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec xs = FX_SPEC(FX_S32, 1, 2, 4, 2), is = FX_SPEC(FX_S32, 1, 2, 4, 1, 4), us = FX_SPEC(FX_S32, 1, 2, 4, 1);
    double index[32], update[8], want[16] = {0};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            double *v = index + 4 * (4 * i + j);
            v[0] = 0, v[1] = v[3] = i, v[2] = j;
            update[4 * i + j] = 10 * i + j;
            want[8 * i + 2 * j + i] = 10 * i + j;
        }
    fx_node *x = fx_graph_param(g, &xs), *i = fx_graph_param(g, &is), *u = fx_graph_param(g, &us);
    fx_node *r = OP(g, scatter, IN(x, i, u),
                    ATTR(FX_SYM(kind, add), LIST(inserted_window_dims, 0, 1, 2, 3), LIST(scatter_dims, 0, 1, 2, 3),
                         FX_INT(index_vector_dim, 4)));
    case_array args[] = {case_full(xs, 0), case_values(is, index), case_values(us, update)};
    case_check(e, "scatter_nd", g, r, 3, args, want, 0, 0);
}

void case_a025_gather_clamps_scatter_drops(const executor *e) {
    gather_clamps(e);
    scatter_drops(e);
    histogram(e);
    scatter_nd(e);
}

static fx_node *cumulative(fx_graph *g, fx_node *x, fx_symbol kind, int64_t dim, bool reverse) {
    return OP(g, cumulative, IN(x), ATTR(FX_INT(kind, kind), FX_INT(dim, dim), FX_INT(reverse, reverse)));
}

static void cumulative_table(const executor *e, const char *what, fx_symbol kind, int64_t dim, bool reverse,
                             bool exclusive, const double *want) {
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_S32, 3, 5, 4);
    fx_node *x = fx_graph_param(g, &s), *in = x;
    if (exclusive) { /* a zero before, the last one dropped */
        int64_t low[3] = {0}, high[3] = {0};
        low[dim] = 1;
        high[dim] = -1;
        in = OP(g, pad, IN(x, case_const(g, FX_S32, 0)), ATTR(FX_LIST(low, 3, low), FX_LIST(high, 3, high)));
    }
    case_array args[] = {case_formula(s, 7, 11, -5)};
    case_check(e, what, g, cumulative(g, in, kind, dim, reverse), 1, args, want, 0, 0);
}

/* Ones along axis 0 of [n,2] and axis 1 of [2,n]: y = i + 1. */
static void cumulative_ones(const executor *e, fx_dtype d, int64_t n) {
    for (int axis = 0; axis < 2; axis++) {
        fx_graph *g = fx_graph_new(NULL);
        fx_spec s = axis ? FX_SPEC(d, 2, n) : FX_SPEC(d, n, 2);
        fx_node *x = fx_graph_param(g, &s), *r = cumulative(g, x, FX_SYM_sum, axis, false);
        case_array args[] = {case_full(s, 1)}, out;
        case_run(e, g, 1, &r, 1, args, &out);
        for (int64_t i = 0; i < 2 * n; i++) {
            double want = (double)((axis ? i % n : i / 2) + 1);
            if (case_get(&out, i) != want) /* an assertion an element would take seconds */
                ck_abort_msg("%s: ones[%lld] axis %d: element %lld: got %.17g", e->name, (long long)n, axis,
                             (long long)i, case_get(&out, i));
        }
        case_free(&out);
    }
}

void case_a041_cumulative(const executor *e) {
    static const double axis0[] = {-5, 2,  -2, 5, 1,  -3, 4, 0,  -4, 3, -1, -5, 2,  -2, 5, 1,  -3, 4, 0,  -4,
                                   -2, 1,  -7, 7, -1, 2,  5, -3, 0,  3, -5, -2, 1,  -7, 7, -1, 2,  5, -3, 0,
                                   -2, -3, -4, 6, -6, 4,  3, 2,  1,  0, -1, -2, -3, -4, 6, -6, 4,  3, 2,  1};
    static const double axis1[] = {-5, 2,  -2, 5,  -4, -1, 2,  5,  -8, 2,  1,  0, -6, 0,  6,  1,  -9, 4,  6,  -3,
                                   3,  -1, -5, 2,  1,  4,  -4, -1, 5,  4,  -8, 2, 4,  -1, -6, 0,  9,  0,  -9, 4,
                                   0,  -4, 3,  -1, -5, -2, 1,  4,  -4, -5, 5,  4, -8, -2, 4,  -1, -6, -4, 9,  0};
    static const double axis2[] = {-5, -3, -5, 0,  1,  -2, 2,  2, -4, -1, -2, -7, 2,  0,  5,  6,  -3, 1, 1, -3,
                                   3,  2,  -3, -1, -2, 3,  4,  1, 4,  4,  0,  3,  -1, -6, -4, -6, 5,  6, 3, 7,
                                   0,  -4, -1, -2, -5, -3, -5, 0, 1,  -2, 2,  2,  -4, -1, -2, -7, 2,  0, 5, 6};
    static const double axis1_reverse[] = {
        -9, 4, 6, -3, -4, 2, 8, -8, -5, 5, 4,  -8, -1, 2, 5,  -3, -3, 4, 0,  -4, 9, 0,  -9, 4, 6, 1,  -4, 2,  8, -4,
        -5, 5, 4, -4, -1, 2, 5, 1,  -3, 4, -6, -4, 9,  0, -6, 0,  6,  1, -1, -2, 8, -4, -2, 1, 4, -4, 2,  -2, 5, 1};
    static const double axis1_exclusive[] = {0, 0, 0, 0, -5, 2,  -2, 5,  -4, -1, 2,  5,  -8, 2,  1,  0, -6, 0,  6,  1,
                                             0, 0, 0, 0, 3,  -1, -5, 2,  1,  4,  -4, -1, 5,  4,  -8, 2, 4,  -1, -6, 0,
                                             0, 0, 0, 0, 0,  -4, 3,  -1, -5, -2, 1,  4,  -4, -5, 5,  4, -8, -2, 4,  -1};
    static const double cummax_axis1[] = {-5, 2,  -2, 5,  1, 2, 4, 5, 1, 3, 4, 5, 2, 3, 5, 5, 2, 4, 5, 5,
                                          3,  -1, -5, 2,  3, 5, 1, 2, 4, 5, 1, 3, 4, 5, 2, 3, 5, 5, 2, 4,
                                          0,  -4, 3,  -1, 0, 2, 3, 5, 1, 2, 4, 5, 1, 3, 4, 5, 2, 3, 5, 5};
    static const double cumprod_axis0[] = {-5,  2,   -2, 5,   1,  -3,  4,   0,  -4, 3,   -1,  -5,  2,  -2,  5,
                                           1,   -3,  4,  0,   -4, -15, -2,  10, 10, -2,  -15, 4,   0,  -16, 0,
                                           4,   -15, -2, 10,  10, -2,  -15, 4,  0,  -16, 0,   8,   30, -10, 10,
                                           -30, -8,  0,  -16, 0,  16,  0,   8,  30, -10, 10,  -30, -8, 0,   -16};
    static const int64_t sizes[] = {1, 31, 33, 255, 257, 1023, 1025, 2047, 2049, 4097, 65537, 524288};
    static const double nan_max[] = {1, NAN, NAN, NAN};
    cumulative_table(e, "cumsum axis 0", FX_SYM_sum, 0, false, false, axis0);
    cumulative_table(e, "cumsum axis 1", FX_SYM_sum, 1, false, false, axis1);
    cumulative_table(e, "cumsum axis 2", FX_SYM_sum, 2, false, false, axis2);
    cumulative_table(e, "cumsum reverse", FX_SYM_sum, 1, true, false, axis1_reverse);
    cumulative_table(e, "cumsum exclusive", FX_SYM_sum, 1, false, true, axis1_exclusive);
    cumulative_table(e, "cummax", FX_SYM_max, 1, false, false, cummax_axis1);
    cumulative_table(e, "cumprod", FX_SYM_prod, 0, false, false, cumprod_axis0);
    for (int i = 0; i < CASE_LENGTH(sizes); i++) {
        cumulative_ones(e, FX_S32, sizes[i]);
        cumulative_ones(e, FX_F32, sizes[i]);
    }
    fx_graph *g = fx_graph_new(NULL);
    fx_spec s = FX_SPEC(FX_F32, 4);
    fx_node *x = fx_graph_param(g, &s);
    case_array args[] = {VALUES(s, 1, NAN, 5, 2)};
    case_check(e, "cummax NaN", g, cumulative(g, x, FX_SYM_max, 0, false), 1, args, nan_max, 0, 0);
}
