/* test_eval.c - the evaluator: cases with known answers, a table of small graphs for every structural op, all pairs of
 * 8-bit integers and random wider ones against arithmetic in 128 bits, conversions, special functions, errors, threads.
 */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"
#include "tests/cases/case.h"
#include "tests/op_examples.h"

START_TEST(shared_case) {
    case_table[_i].run(&case_evaluator);
}
END_TEST

/* ---- graphs as text: arguments and results as numbers, arrays separated by ';' ---- */

static int numbers(const char *text, double *out) {
    int n = 0;
    while (*text) {
        char *end;
        double v = strtod(text, &end);
        if (end == text) {
            text++;
            continue;
        }
        out[n++] = v;
        text = end;
    }
    return n;
}

static fx_graph *parse(const char *text) {
    fx_graph *g = NULL;
    fx_status st = fx_graph_parse(text, strlen(text), &g);
    ck_assert_msg(st == FX_OK, "%s: %s", text, fx_last_error());
    return g;
}

static void check_text(const char *text, const char *in, const char *want) {
    double x[512], w[512];
    case_array args[8], out[8];
    const void *pointers[8];
    void *results[8];
    int n = numbers(in, x), m = numbers(want, w), at = 0;
    fx_graph *g = parse(text);
    for (int i = 0; i < g->n_param; i++) {
        args[i] = case_values(g->params[i]->spec, x + at);
        pointers[i] = args[i].data;
        at += (int)fx_spec_count(&args[i].spec);
    }
    ck_assert_msg(at == n, "%s: takes %d numbers, row has %d", text, at, n);
    for (int i = 0; i < g->n_result; i++) {
        out[i] = case_full(g->results[i]->spec, 99);
        results[i] = out[i].data;
    }
    ck_assert_msg(fx_graph_eval(g, pointers, results) == FX_OK, "%s: %s", text, fx_last_error());
    at = 0;
    for (int i = 0; i < g->n_result; i++) {
        case_compare(&case_evaluator, text, &out[i], w + at, 0, 0);
        at += (int)fx_spec_count(&out[i].spec);
        case_free(&out[i]);
    }
    ck_assert_msg(at == m, "%s: gives %d numbers, row has %d", text, at, m);
    for (int i = 0; i < g->n_param; i++)
        case_free(&args[i]);
    fx_graph_unref(g);
}

static const struct row {
    const char *text, *in, *want;
} rows[] = {
    {"graph() { %c = constant() {dtype=f32, shape=[2,2], value=[1,2,3,4]} return %c }", "", "1 2 3 4"},
    {"graph() { %c = constant() {dtype=bool, shape=[3], value=[true]} return %c }", "", "1 1 1"},
    {"graph() { %i = iota() {dim=1, shape=[2,3], dtype=s8} %j = iota() {dim=0, shape=[2,3], dtype=bf16} return %i, %j "
     "}",
     "", "0 1 2 0 1 2; 0 0 0 1 1 1"},
    {"graph(%x: f32[4]) { %y = bitcast_convert(%x) {dtype=u32} return %y }", "1 -0 inf 2",
     "1065353216 2147483648 2139095040 1073741824"},
    {"graph(%x: f32[6]) { %y = reduce_precision(%x) {exponent_bits=5, mantissa_bits=10} return %y }",
     "1.00048828125 1.00146484375 65520 1e-5 nan -1e-9", "1 1.001953125 inf 0 nan -0"},
    {"graph(%x: f32[2]) { %y = stop_gradient(%x) return %y, %x }", "1 2", "1 2 1 2"},
    {"graph(%x: f32[3,1]) { %y = broadcast_in_dim(%x) {shape=[2,3,2], dims=[1,2]} return %y }", "1 2 3",
     "1 1 2 2 3 3 1 1 2 2 3 3"},
    {"graph(%x: s16[2,3]) { %y = reshape(%x) {shape=[3,2]} return %y }", "1 2 3 4 5 6", "1 2 3 4 5 6"},
    {"graph(%x: u8[2,1,3]) { %y = transpose(%x) {permutation=[2,0,1]} return %y }", "1 2 3 4 5 6", "1 4 2 5 3 6"},
    {"graph(%x: f64[5]) { %y = slice(%x) {start=[1], limit=[5], strides=[2]} return %y }", "0 1 2 3 4", "1 3"},
    {"graph(%x: f32[2,3], %v: f32[]) { %y = pad(%x, %v) {low=[1,-1], high=[0,2], interior=[1,1]} return %y }",
     "1 2 3 4 5 6; 9", "9 9 9 9 9 9 9 2 9 3 9 9 9 9 9 9 9 9 9 5 9 6 9 9"},
    {"graph(%x: s64[2], %v: s64[]) { %y = pad(%x, %v) {low=[-3], high=[4], interior=[0]} return %y }", "1 2; 9",
     "9 9 9"},
    {"graph(%x: f16[2,2], %y: f16[2,1]) { %z = concatenate(%x, %y) {dim=1} return %z }", "1 2 3 4; 5 6", "1 2 5 3 4 6"},
    {"graph(%x: s32[2,3]) { %y = reverse(%x) {dims=[1]} return %y }", "1 2 3 4 5 6", "3 2 1 6 5 4"},
    {"graph(%x: f32[4], %v: f32[]) { %y = windows(%x, %v) {window=[3], strides=[2], low=[1], high=[1]} return %y }",
     "1 2 3 4; 9", "9 1 2 2 3 4"},
    {"graph(%x: f32[4], %v: f32[]) { %y = windows(%x, %v) {window=[2], lhs_dilation=[2], rhs_dilation=[3]} return %y }",
     "1 2 3 4; 9", "1 9 9 3 2 9 9 4"},
    {"graph(%x: f32[2,3], %i: s32[], %j: s32[]) { %y = dynamic_slice(%x, %i, %j) {shape=[1,2]} return %y }",
     "1 2 3 4 5 6; -7; 5", "2 3"},
    {"graph(%x: f32[4], %i: u64[]) { %y = dynamic_slice(%x, %i) {shape=[2]} return %y }", "1 2 3 4; 1e19", "3 4"},
    {"graph(%x: f32[5], %u: f32[2], %i: s32[]) { %y = dynamic_update_slice(%x, %u, %i) return %y }",
     "1 2 3 4 5; 8 9; 9", "1 2 3 8 9"},
    {"graph(%x: f32[2,3], %i: s32[2,2]) { %y = gather(%x, %i) {collapsed_slice_dims=[1], start_index_map=[1], "
     "operand_batching_dims=[0], indices_batching_dims=[0], index_vector_dim=2, slice_sizes=[1,1]} return %y }",
     "1 2 3 4 5 6; 2 0 1 7", "3 1 5 6"},
    {"graph(%x: f32[3], %i: s32[4], %u: f32[4]) { %y = scatter(%x, %i, %u) {kind=set, inserted_window_dims=[0], "
     "scatter_dims=[0], index_vector_dim=1} return %y }",
     "0 0 0; 1 2 1 -1; 5 6 7 8", "0 7 6"},
    {"graph(%x: s8[3], %i: s32[4], %u: s8[4]) { %y = scatter(%x, %i, %u) {kind=mul, inserted_window_dims=[0], "
     "scatter_dims=[0], index_vector_dim=1} return %y }",
     "1 2 3; 0 0 2 0; 100 2 2 1", "-56 2 6"},
    {"graph(%x: f32[2], %i: s32[3], %u: f32[3]) { %y = scatter(%x, %i, %u) {kind=max, inserted_window_dims=[0], "
     "scatter_dims=[0], index_vector_dim=1} return %y }",
     "1 2; 0 0 1; 5 nan 1", "nan 2"},
    {"graph(%a: bf16[2,2], %b: bf16[2,2]) { %c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[1], dtype=f32} "
     "return "
     "%c }",
     "1 2 3 4; 5 6 7 256", "17 519 39 1045"},
    {"graph(%a: s8[2], %b: s8[2]) { %c = dot_general(%a, %b) {lhs_contract=[0], rhs_contract=[0], dtype=s32} %d = "
     "dot_general(%a, %b) {lhs_contract=[0], rhs_contract=[0]} return %c, %d }",
     "100 100; 100 27", "12700; -100"},
    {"graph(%x: f32[1,1,4], %w: f32[1,1,2]) { %y = convolution(%x, %w) {strides=[2], low=[1], high=[0]} return %y }",
     "1 2 3 4; 10 1", "1 23"},
    {"graph(%x: f16[3]) { %y = reduce(%x) {kind=sum, dims=[0]} return %y }", "2048 1 1", "2050"},
    {"graph(%x: u8[2,2]) { %y = reduce(%x) {kind=prod, dims=[0]} %z = reduce(%x) {kind=xor, dims=[1]} return %y, %z }",
     "100 2 3 7", "44 14; 102 4"},
    {"graph(%x: f32[4], %i: f32[]) { %t = reduce_fn(%x, %i, graph(%a: f32[], %b: f32[]) { %m = mul(%a, %b) %c = "
     "add(%m, %b) "
     "return %c }) {dims=[0]} %y = project(%t) {index=0} return %y }",
     "1 2 3 4; 0", "64"},
    {"graph(%x: f32[4]) { %y = arg_reduce(%x) {kind=max, dim=0, dtype=u8} %z = arg_reduce(%x) {kind=min, dim=0, "
     "dtype=s64} "
     "return %y, %z }",
     "1 3 3 1", "1; 0"},
    {"graph(%x: f32[4]) { %y = arg_reduce(%x) {kind=min, dim=0, dtype=s32} return %y }", "1 nan -5 nan", "1"},
    {"graph(%x: s32[5]) { %y = reduce_window(%x) {kind=min, window=[2], strides=[2], low=[1], high=[0]} return %y }",
     "5 4 3 2 1", "5 3 1"},
    {"graph(%x: f32[4], %s: f32[2]) { %y = select_and_scatter(%x, %s) {kind=max, window=[3], strides=[1]} return %y }",
     "1 7 7 2; 10 20", "0 30 0 0"},
    {"graph(%x: f32[4]) { %y = cumulative(%x) {kind=sum, dim=0, reverse=1} return %y }", "1 2 3 4", "10 9 7 4"},
    {"graph(%x: f32[5], %i: s32[5]) { %t = sort(%x, %i, graph(%a: f32[], %b: f32[], %p: s32[], %q: s32[]) { %c = "
     "gt(%a, %b) "
     "return %c }) {dim=0} %y = project(%t) {index=0} %z = project(%t) {index=1} return %y, %z }",
     "1 3 2 3 1; 0 1 2 3 4", "3 3 2 1 1; 1 3 2 0 4"},
    {"graph(%x: s32[2,3]) { %t = sort(%x, graph(%a: s32[], %b: s32[]) { %c = lt(%a, %b) return %c }) {dim=0} %y = "
     "project(%t) {index=0} return %y }",
     "4 1 6 2 3 5", "2 1 5 4 3 6"},
    {"graph(%x: f32[2,4]) { %t = top_k(%x) {k=2} %y = project(%t) {index=0} %z = project(%t) {index=1} return %y, %z }",
     "1 5 5 2 3 nan 1 4", "5 5 nan 4; 1 2 1 3"},
    {"graph(%x: f32[2], %y: f32[2]) { %t = call(%x, %y, graph(%a: f32[2], %b: f32[2]) { %s = sub(%a, %b) return %s, %a "
     "}) "
     "{kind=remat} %r = project(%t) {index=0} %q = project(%t) {index=1} return %r, %q }",
     "5 6; 1 3", "4 3; 5 6"},
    {"graph(%i: s32[], %x: s32[]) { %t = cond(%i, %x, graph(%a: s32[]) { %n = neg(%a) return %n }, graph(%a: s32[]) { "
     "return %a }, graph(%a: s32[]) { %m = mul(%a, %a) return %m }) %r = project(%t) {index=0} return %r }",
     "7; 5", "25"},
    {"graph(%i: s32[], %x: s32[]) { %t = cond(%i, %x, graph(%a: s32[]) { %n = neg(%a) return %n }, graph(%a: s32[]) { "
     "return %a }) %r = project(%t) {index=0} return %r }",
     "-3; 5", "-5"},
    {"graph(%n: s32[], %x: f32[2], %d: f32[2]) { %t = while(%n, %x, %d, graph(%i: s32[], %a: f32[2], %c: f32[2]) { %z "
     "= "
     "constant() {dtype=s32, shape=[], value=[0]} %p = gt(%i, %z) return %p }, graph(%i: s32[], %a: f32[2], %c: "
     "f32[2]) { "
     "%o = constant() {dtype=s32, shape=[], value=[1]} %j = sub(%i, %o) %b = add(%a, %c) return %j, %b }) {n_carry=2} "
     "%r = "
     "project(%t) {index=0} %q = project(%t) {index=1} return %r, %q }",
     "5; 1 2; 10 20", "0; 51 102"},
    {"graph(%n: s32[], %x: f32[2], %d: f32[2]) { %t = while(%n, %x, %d, graph(%i: s32[], %a: f32[2], %c: f32[2]) { %z "
     "= "
     "constant() {dtype=s32, shape=[], value=[0]} %p = gt(%i, %z) return %p }, graph(%i: s32[], %a: f32[2], %c: "
     "f32[2]) { "
     "return %i, %c }) {n_carry=2} %q = project(%t) {index=1} return %q }",
     "0; 1 2; 10 20", "1 2"},
    {"graph(%k: f32[], %c: f32[], %x: f32[3]) { %t = scan(%k, %c, %x, graph(%w: f32[], %a: f32[], %e: f32[]) { %m = "
     "mul(%w, "
     "%a) %s = add(%m, %e) return %s, %m }) {n_consts=1, n_carry=1, length=3} %r = project(%t) {index=0} %y = "
     "project(%t) "
     "{index=1} return %r, %y }",
     "2; 1; 10 20 30", "118; 2 24 88"},
    {"graph(%c: f32[], %x: f32[3]) { %t = scan(%c, %x, graph(%a: f32[], %e: f32[]) { %s = sub(%e, %a) return %s, %s }) "
     "{n_consts=0, n_carry=1, length=3, reverse=1} %r = project(%t) {index=0} %y = project(%t) {index=1} return %r, %y "
     "}",
     "1; 10 20 30", "19; 19 -9 29"},
    {"graph(%x: f32[2], %y: s8[]) { %t = optimization_barrier(%x, %y) %a = project(%t) {index=1} %b = project(%t) "
     "{index=0} "
     "return %a, %b, %a }",
     "1 2; 3", "3; 1 2; 3"},
    /* nested: a while inside a scan's body, whose trip count depends on the slice */
    {"graph(%c: s32[], %x: s32[3]) { %t = scan(%c, %x, graph(%a: s32[], %e: s32[]) { %u = while(%e, %a, graph(%i: "
     "s32[], %b: "
     "s32[]) { %z = constant() {dtype=s32, shape=[], value=[0]} %p = gt(%i, %z) return %p }, graph(%i: s32[], %b: "
     "s32[]) { "
     "%o = constant() {dtype=s32, shape=[], value=[1]} %j = sub(%i, %o) %d = add(%b, %b) return %j, %d }) {n_carry=2} "
     "%v = "
     "project(%u) {index=1} return %v, %a }) {n_consts=0, n_carry=1, length=3} %r = project(%t) {index=0} %y = "
     "project(%t) "
     "{index=1} return %r, %y }",
     "1; 2 0 3", "32; 1 4 4"},
};

/* An array without elements takes no time, however large its other sizes. */
START_TEST(empty_arrays_take_no_time) {
    check_text("graph(%x: f32[4294967296,0]) { %y = cumulative(%x) {kind=max, dim=1} return %y }", "", "");
    check_text("graph(%x: f32[0,4294967296]) { %y = cumulative(%x) {kind=sum, dim=0} return %y }", "", "");
    check_text("graph(%x: f32[0,3,4294967296]) { %y = arg_reduce(%x) {kind=max, dim=1} return %y }", "", "");
    check_text("graph(%x: f32[0,2], %v: f32[]) { %y = pad(%x, %v) {low=[0,0], high=[0,0], "
               "interior=[4294967296,4294967296]} return %y }",
               "7", "");
    check_text("graph(%x: f32[4294967296,0]) { %y = reduce(%x) {kind=sum, dims=[0]} return %y }", "", "");
}
END_TEST

START_TEST(structural_op_gives_known_values) {
    check_text(rows[_i].text, rows[_i].in, rows[_i].want);
}
END_TEST

START_TEST(every_example_runs) {
    char text[400];
    const char *examples[N_OP_EXAMPLES + 1];
    for (int i = 0; i < N_OP_EXAMPLES; i++)
        examples[i] = op_examples[i].text;
    examples[N_OP_EXAMPLES] = text;
    int first = 0;
    for (int op = 0; op < FX_OP_COUNT; op++)
        for (int d = 0; d < FX_DTYPE_COUNT; d++)
            for (int i = first; i <= N_OP_EXAMPLES; i++, first = N_OP_EXAMPLES) {
                if (i == N_OP_EXAMPLES && !op_example_elementwise((fx_op)op, (fx_dtype)d, text, sizeof text))
                    continue;
                fx_graph *g = parse(examples[i]);
                case_array args[16], out[16];
                const void *pointers[16];
                void *results[16];
                for (int k = 0; k < g->n_param; k++) {
                    args[k] = case_formula(g->params[k]->spec, 1, 3, 0);
                    pointers[k] = args[k].data;
                }
                for (int k = 0; k < g->n_result; k++) {
                    out[k] = case_full(g->results[k]->spec, 0);
                    results[k] = out[k].data;
                }
                ck_assert_msg(fx_graph_eval(g, pointers, results) == FX_OK, "%s: %s", examples[i], fx_last_error());
                for (int k = 0; k < g->n_param; k++)
                    case_free(&args[k]);
                for (int k = 0; k < g->n_result; k++)
                    case_free(&out[k]);
                fx_graph_unref(g);
            }
}
END_TEST

/* ---- integers of every width against 128 bits ---- */

typedef __int128 wide;

static wide wrap(wide v, fx_dtype d) {
    int w = (int)fx_dtype_size(d) * 8;
    unsigned __int128 m = ((unsigned __int128)1 << w) - 1, u = (unsigned __int128)v & m;
    return fx_dtype_is_signed(d) && u >> (w - 1) ? (wide)u - ((wide)1 << w) : (wide)u;
}

static wide times(wide x, wide y) { return (wide)((unsigned __int128)x * (unsigned __int128)y); }

static wide power(wide x, wide y, fx_dtype d) {
    wide r = 1;
    if (y < 0)
        return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    for (wide i = 0; i < y; i++)
        r = wrap(times(r, x), d);
    return r;
}

static wide bits(wide x, fx_dtype d) {
    return x & (((wide)1 << fx_dtype_size(d) * 8) - 1);
}

static wide reference(fx_op op, wide x, wide y, fx_dtype d) {
    int w = (int)fx_dtype_size(d) * 8;
    bool far = y < 0 || y >= w;
    wide as_signed = x, n = 0;
    if (!fx_dtype_is_signed(d) && x >> (w - 1))
        as_signed = x - ((wide)1 << w);
    switch (op) {
    case FX_OP_add:
        return x + y;
    case FX_OP_sub:
        return x - y;
    case FX_OP_mul:
        return times(x, y);
    case FX_OP_div:
        return y ? x / y : -1;
    case FX_OP_rem:
        return y ? x % y : x;
    case FX_OP_pow:
        return power(x, y, d);
    case FX_OP_max:
        return x > y ? x : y;
    case FX_OP_min:
        return x < y ? x : y;
    case FX_OP_and:
        return x & y;
    case FX_OP_or:
        return x | y;
    case FX_OP_xor:
        return x ^ y;
    case FX_OP_shl:
        return far ? 0 : (wide)((unsigned __int128)bits(x, d) << y);
    case FX_OP_shr_l:
        return far ? 0 : bits(x, d) >> y;
    case FX_OP_shr_a:
        return as_signed >> (far ? 100 : (int)y);
    case FX_OP_eq:
        return x == y;
    case FX_OP_ne:
        return x != y;
    case FX_OP_lt:
        return x < y;
    case FX_OP_le:
        return x <= y;
    case FX_OP_gt:
        return x > y;
    case FX_OP_ge:
        return x >= y;
    case FX_OP_abs:
        return x < 0 ? -x : x;
    case FX_OP_neg:
        return -x;
    case FX_OP_sign:
        return (x > 0) - (x < 0);
    case FX_OP_not:
        return ~x;
    case FX_OP_popcnt:
        for (int i = 0; i < w; i++)
            n += bits(x, d) >> i & 1;
        return n;
    default: /* clz */
        while (n < w && !(bits(x, d) >> (w - 1 - n) & 1))
            n++;
        return n;
    }
}

static wide load(fx_dtype d, const void *p, int64_t i) {
    fx_lane v;
    fx_lane_load(d, p, i, 1, 1, &v);
    return fx_lane_kind_of(d) == FX_LANE_S ? (wide)v.s : (wide)v.u;
}

/* op on n pairs of raw 64-bit patterns, truncated to the type. */
static void check_integers(fx_op op, fx_dtype d, int n, const uint64_t *a, const uint64_t *b) {
    const fx_op_info *info = fx_op_get(op);
    fx_spec s = FX_SPEC(d, n);
    fx_graph *g = fx_graph_new(NULL);
    fx_node *x = fx_graph_param(g, &s), *y = fx_graph_param(g, &s);
    fx_node *r = fx_build(g, op, info->n_in, (fx_node *[]){x, y}, 0, NULL, 0, NULL);
    ck_assert_int_eq(fx_graph_finish(g, 1, &r, true), FX_OK);
    case_array args[] = {case_full(s, 0), case_full(s, 0)}, out = case_full(r->spec, 0);
    fx_lane_store(d, args[0].data, 0, 1, n, (const fx_lane *)a);
    fx_lane_store(d, args[1].data, 0, 1, n, (const fx_lane *)b);
    const void *pointers[] = {args[0].data, args[1].data};
    void *results[] = {out.data};
    ck_assert_int_eq(fx_graph_eval(g, pointers, results), FX_OK);
    for (int i = 0; i < n; i++) {
        wide p = load(d, args[0].data, i), q = load(d, args[1].data, i), got = load(r->spec.dtype, out.data, i);
        if (op == FX_OP_pow && q > 2000)
            continue; /* the reference multiplies one by one */
        wide want = reference(op, p, q, d);
        want = info->bool_result ? want : wrap(want, d);
        if (got != want)
            ck_abort_msg("%s %s: %lld, %lld: got %lld, want %lld", info->name, fx_dtype_name(d), (long long)p,
                         (long long)q, (long long)got, (long long)want);
    }
    case_free(&args[0]);
    case_free(&args[1]);
    case_free(&out);
    fx_graph_unref(g);
}

START_TEST(integer_ops_wrap_at_every_width) {
    enum { N = 65536 };
    uint64_t *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), seed = 1;
    for (int d = FX_S8; d <= FX_U64; d++) {
        int w = (int)fx_dtype_size((fx_dtype)d) * 8, n = w == 8 ? N : 4096;
        for (int i = 0; i < n; i++) {
            if (w == 8) { /* all pairs */
                a[i] = (uint64_t)i & 255;
                b[i] = (uint64_t)i >> 8;
                continue;
            }
            for (int k = 0; k < 2; k++) { /* near 0, near the limits, powers of two, anything */
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                uint64_t r = seed >> 20, near = (r >> 8 & 7) - 4, v = r & 1 ? near : (1ull << (w - 1)) + near;
                v = (r & 6) == 6 ? seed ^ seed >> 31 : (r & 6) == 4 ? (1ull << (r >> 12) % (unsigned)w) + near : v;
                *(k ? &b[i] : &a[i]) = v;
            }
        }
        for (int op = 0; op < FX_OP_COUNT; op++)
            if (fx_op_get((fx_op)op)->op_class <= FX_CLASS_BINARY && fx_op_takes((fx_op)op, (fx_dtype)d))
                check_integers((fx_op)op, (fx_dtype)d, n, a, b);
    }
    free(a);
    free(b);
}
END_TEST

/* ---- conversions and special functions ---- */

static void eval1(fx_op op, fx_dtype from, fx_dtype to, const void *x, void *y) {
    fx_spec s = FX_SPEC0(from);
    fx_graph *g = fx_graph_new(NULL);
    fx_node *p = fx_graph_param(g, &s);
    fx_attr dtype = FX_INT(dtype, to);
    fx_node *r = fx_build(g, op, 1, &p, op == FX_OP_convert, &dtype, 0, NULL);
    ck_assert_int_eq(fx_graph_finish(g, 1, &r, true), FX_OK);
    ck_assert_int_eq(fx_graph_eval(g, &x, &y), FX_OK);
    fx_graph_unref(g);
}

START_TEST(conversions_round_once_and_keep_64_bits) {
    int64_t s = INT64_MAX - 1, t = INT64_MIN, tie = ((int64_t)1 << 62) + ((int64_t)1 << 54) + 1;
    uint64_t u = UINT64_MAX, v;
    float f;
    uint16_t h;
    double d;
    eval1(FX_OP_convert, FX_S64, FX_U64, &s, &v);
    ck_assert_uint_eq(v, (uint64_t)s);
    eval1(FX_OP_convert, FX_S64, FX_F64, &t, &d);
    ck_assert_double_eq(d, -0x1p63);
    eval1(FX_OP_convert, FX_U64, FX_F64, &u, &d);
    ck_assert_double_eq(d, 0x1p64);
    eval1(FX_OP_convert, FX_S64, FX_BF16, &tie, &h); /* just above a tie: through double it would be the tie */
    ck_assert_float_eq(fx_bf16_to_f32(h), 0x1.02p62f);
    tie = ((int64_t)1 << 62) + ((int64_t)1 << 38) + 1;
    eval1(FX_OP_convert, FX_S64, FX_F32, &tie, &f);
    ck_assert_float_eq(f, 0x1.000002p62f);
    d = 1.8e19;
    eval1(FX_OP_convert, FX_F64, FX_U64, &d, &v);
    ck_assert_uint_eq(v, 18000000000000000000u);
    d = 1 + 0x1p-8 + 0x1p-40; /* above the tie of bf16, at it in f32 */
    eval1(FX_OP_convert, FX_F64, FX_BF16, &d, &h);
    ck_assert_float_eq(fx_bf16_to_f32(h), 1.0078125f);
    d = 0x1p63;
    eval1(FX_OP_convert, FX_F64, FX_S64, &d, &s);
    ck_assert_int_eq(s, INT64_MAX);
    d = (double)NAN;
    uint8_t b;
    eval1(FX_OP_convert, FX_F64, FX_BOOL, &d, &b);
    ck_assert_uint_eq(b, 1);
}
END_TEST

/* Values to 20 digits, computed with 40. */
static const struct {
    fx_op op;
    double x, want;
} special[] = {
    {FX_OP_digamma, 1, -0.57721566490153286061},
    {FX_OP_digamma, 0.5, -1.9635100260214234794},
    {FX_OP_digamma, 10, 2.2517525890667211077},
    {FX_OP_digamma, -0.5, 0.03648997397857652056},
    {FX_OP_digamma, 1e10, 23.025850929890456840},
    {FX_OP_digamma, 1.5, 0.036489973978576520559},
    {FX_OP_lgamma, 0.5, 0.57236494292470008707},
    {FX_OP_lgamma, 100, 359.13420536957539878},
    {FX_OP_lgamma, -0.5, 1.2655121234846454229},
    {FX_OP_lgamma, 1, 0},
    {FX_OP_erf_inv, 0.5, 0.47693627620446987338},
    {FX_OP_erf_inv, 0.9, 1.1630871536766740867},
    {FX_OP_erf_inv, -0.25, -0.22531205501217808373},
    {FX_OP_erf_inv, 1e-300, 8.8622692545275801365e-301},
    {FX_OP_erf_inv, 1, INFINITY},
    {FX_OP_erf_inv, -1, -INFINITY},
    {FX_OP_erf_inv, 1.5, NAN},
    {FX_OP_erf_inv, -0.0, -0.0},
    {FX_OP_digamma, 0, NAN},
    {FX_OP_digamma, -3, NAN},
    {FX_OP_lgamma, 0, INFINITY},
    {FX_OP_lgamma, -INFINITY, INFINITY},
    {FX_OP_logistic, -800, 0},
    {FX_OP_logistic, 800, 1},
};

START_TEST(special_functions_are_accurate) {
    double y;
    eval1(special[_i].op, FX_F64, FX_F64, &special[_i].x, &y);
    case_array got = {FX_SPEC0(FX_F64), &y};
    double exact = isfinite(special[_i].want) && special[_i].want != 0 ? 3e-16 : 0;
    case_compare(&case_evaluator, fx_op_get(special[_i].op)->name, &got, &special[_i].want, 0, exact);
}
END_TEST

/* ---- errors, memory, threads ---- */

START_TEST(bad_arguments_are_statuses) {
    fx_graph *g = parse("graph(%x: f32[2]) { %y = neg(%x) return %y }"), *open = fx_graph_new(NULL);
    float x[2] = {1, 2}, y[2];
    const void *args[] = {x}, *none[] = {NULL};
    void *results[] = {y}, *nowhere[] = {NULL};
    ck_assert_int_eq(fx_graph_eval(NULL, args, results), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_graph_eval(open, args, results), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_graph_eval(g, NULL, results), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_graph_eval(g, none, results), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_graph_eval(g, args, nowhere), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_graph_eval(g, args, results), FX_OK);
    fx_graph_unref(open);
    fx_graph_unref(g);
}
END_TEST

#ifndef __SANITIZE_ADDRESS__ /* whose allocator ends the process instead of saying no */
START_TEST(memory_that_is_not_there_is_a_status) {
    fx_graph *g = parse("graph(%x: f32[]) { %y = broadcast_in_dim(%x) {shape=[1048576,1048576,1024], dims=[]} %z = "
                        "reduce(%y) {kind=sum, dims=[0,1,2]} return %z }");
    float x = 1, y;
    const void *args[] = {&x};
    void *results[] = {&y};
    ck_assert_int_eq(fx_graph_eval(g, args, results), FX_OUT_OF_MEMORY);
    fx_graph_unref(g);
}
END_TEST
#endif

typedef struct job {
    const fx_graph *g;
    float start, got;
} job;

static void *work(void *user) {
    job *j = user;
    const void *args[] = {&j->start};
    void *results[] = {&j->got};
    return fx_graph_eval(j->g, args, results) == FX_OK ? j : NULL;
}

START_TEST(threads_share_a_graph) {
    fx_graph *g =
        parse("graph(%c: f32[]) { %i = iota() {dtype=f32, dim=0, shape=[1000]} %t = scan(%c, %i, graph(%a: f32[], "
              "%e: f32[]) { %s = add(%a, %e) return %s, %s }) {n_consts=0, n_carry=1, length=1000} %r = project(%t) "
              "{index=0} return %r }");
    pthread_t threads[4];
    job jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = (job){g, (float)i, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *done;
        pthread_join(threads[i], &done);
        ck_assert_ptr_nonnull(done);
        ck_assert_float_eq(jobs[i].got, (float)(499500 + i));
    }
    fx_graph_unref(g);
}
END_TEST

int main(void) {
    Suite *s = suite_create("eval");
    TCase *c = tcase_create("cases"), *o = tcase_create("ops"), *e = tcase_create("errors");
    suite_add_tcase(s, c);
    suite_add_tcase(s, o);
    suite_add_tcase(s, e);
    tcase_add_loop_test(c, shared_case, 0, case_count);
    tcase_add_loop_test(o, structural_op_gives_known_values, 0, CASE_LENGTH(rows));
    tcase_add_test(o, empty_arrays_take_no_time);
    tcase_add_test(o, every_example_runs);
    tcase_add_test(o, integer_ops_wrap_at_every_width);
    tcase_add_test(o, conversions_round_once_and_keep_64_bits);
    tcase_add_loop_test(o, special_functions_are_accurate, 0, CASE_LENGTH(special));
    tcase_add_test(e, bad_arguments_are_statuses);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(e, memory_that_is_not_there_is_a_status);
#endif
    tcase_add_test(e, threads_share_a_graph);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
