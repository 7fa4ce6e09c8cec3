/* gen_region.c - the generator's steps with regions: control flow and reductions by a function. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "tests/gen_pool.h"

/* A region: parameters of these specs, results of the `want` specs, made from values within it (bounded by 4). */
static fx_graph *region(gen *t, int n, const fx_spec *params, int n_want, const fx_spec *want, bool exact,
                        int scalar_steps) {
    gen *sub = calloc(1, sizeof *sub);
    fx_node *results[8];
    if (!sub)
        return NULL;
    sub->g = fx_graph_new(NULL);
    sub->seed = gen_next(t);
    sub->o = t->o;
    sub->depth = t->depth + 1;
    for (int i = 0; i < n; i++)
        gen_keep(sub, fx_graph_param(sub->g, &params[i]), 4, exact || !fx_dtype_is_float(params[i].dtype));
    gen_grow(sub, scalar_steps);
    for (int i = 0; i < n_want; i++) {
        gen_value v = {NULL, 0, false};
        for (int k = sub->n; k-- > 0 && !v.n;)
            if (gen_suits(sub->v[k], &want[i], exact || !fx_dtype_is_float(want[i].dtype)))
                v = sub->v[k];
        if (!v.n)
            v = gen_like(sub, &want[i], true);
        if (v.bound > 4 && gen_is_float(v.n)) {
            fx_node *in[] = {fx_b_like(v.n, -4), v.n, fx_b_like(v.n, 4)};
            v.n = fx_b_elementwise(sub->g, FX_OP_clamp, 3, in);
        }
        results[i] = v.n;
    }
    fx_graph *g = sub->g;
    if (fx_graph_finish(g, n_want, results, true) != FX_OK) {
        fx_graph_unref(g);
        g = NULL;
    }
    free(sub);
    return g;
}

void gen_control(gen *t) {
    if (t->depth >= GEN_DEPTH || t->o.no_regions)
        return;
    gen_value x = gen_tame(t, gen_any(t), 4), y = gen_tame(t, gen_any(t), 4);
    fx_spec specs[] = {x.n->spec, y.n->spec}, index = {FX_S32, 0, {0}};
    bool exact = x.exact && y.exact;
    fx_graph *r[3] = {NULL};
    fx_node *in[4] = {gen_like(t, &index, true).n, x.n, y.n}, *n = NULL;
    switch (gen_pick(t, 4)) {
    case 0:
        r[0] = region(t, 2, specs, 1, specs, exact, 4);
        if (r[0])
            n = fx_build(t->g, FX_OP_call, 2, in + 1, 1, &FX_SYM(kind, inline), 1, r);
        break;
    case 1:
        r[0] = region(t, 2, specs, 1, specs, exact, 3);
        r[1] = region(t, 2, specs, 1, specs, exact, 3);
        if (r[0] && r[1])
            n = fx_build(t->g, FX_OP_cond, 3, in, 0, NULL, 2, r);
        break;
    case 2: { /* y is the carry, x is scanned */
        if (!specs[0].rank)
            return;
        fx_spec slice = {specs[0].dtype, specs[0].rank - 1, {0}};
        memcpy(slice.dims, specs[0].dims + 1, sizeof *slice.dims * (size_t)slice.rank);
        fx_spec params[] = {specs[1], slice}, want[] = {specs[1], specs[1]};
        in[0] = y.n;
        r[0] = region(t, 2, params, 2, want, exact, 4);
        if (r[0])
            n = fx_build(t->g, FX_OP_scan, 2, in, 4,
                         (fx_attr[]){FX_INT(n_consts, 0), FX_INT(n_carry, 1), FX_INT(length, specs[0].dims[0]),
                                     FX_INT(reverse, gen_pick(t, 2))},
                         1, r);
        if (n && specs[1].rank < t->o.max_rank)
            gen_keep(t, fx_result(n, 1), 4, exact);
        break;
    }
    default: { /* a few rounds, counted by carry 0 */
        fx_spec params[] = {index, specs[0]};
        fx_graph *test = fx_graph_new(NULL), *body = NULL, *step = region(t, 1, specs, 1, specs, exact, 3);
        fx_node *i = fx_graph_param(test, &params[0]), *go = fx_b_binary_c(test, FX_OP_gt, i, 0), *out[2];
        fx_graph_param(test, &params[1]);
        body = fx_graph_new(NULL);
        i = fx_graph_param(body, &params[0]);
        fx_node *v = fx_graph_param(body, &params[1]);
        out[0] = fx_b_binary_c(body, FX_OP_sub, i, 1);
        if (step && fx_graph_inline(body, step, &v, &out[1]) == FX_OK && fx_graph_finish(test, 1, &go, true) == FX_OK &&
            fx_graph_finish(body, 2, out, true) == FX_OK) {
            fx_node *carry[] = {fx_b_scalar(t->g, FX_S32, (double)gen_pick(t, 4)), x.n};
            n = fx_build(t->g, FX_OP_while, 2, carry, 1, &FX_INT(n_carry, 2), 2, (fx_graph *[]){test, body});
        }
        fx_graph_unref(test);
        fx_graph_unref(body);
        fx_graph_unref(step);
        gen_keep(t, n ? fx_result(n, 1) : NULL, 4, exact);
        return;
    }
    }
    for (int k = 0; k < 2; k++)
        fx_graph_unref(r[k]);
    gen_keep(t, n ? fx_result(n, 0) : NULL, 4, exact);
}

/* The function must be associative and commutative, with the initial value its identity: devices regroup. */
void gen_fold(gen *t) {
    static const struct {
        fx_op op;
        double floats, others; /* the identity; integers saturate */
    } kinds[] = {{FX_OP_add, -0.0, 0},       {FX_OP_max, -INFINITY, -INFINITY}, {FX_OP_min, INFINITY, INFINITY},
                 {FX_OP_mul, 1, 1},          {FX_OP_or, 0, 0},                  {FX_OP_xor, 0, 0},
                 {FX_OP_and, 0, INFINITY}};
    gen_value x = gen_any(t);
    fx_spec s = x.n->spec, e = {s.dtype, 0, {0}};
    bool floats = fx_dtype_is_float(s.dtype), keeps;
    int k = (int)gen_pick(t, sizeof kinds / sizeof *kinds);
    int64_t dim = 0;
    keeps = kinds[k].op == FX_OP_max || kinds[k].op == FX_OP_min;
    if (!s.rank || t->o.no_regions || t->depth >= GEN_DEPTH || !gen_allowed(t, FX_OP_reduce_fn, s.dtype) ||
        !fx_op_takes(kinds[k].op, s.dtype) || (floats && (x.bound > 4 || (kinds[k].op == FX_OP_mul && s.dims[0] > 2))))
        return;
    double identity = floats ? kinds[k].floats : kinds[k].others;
    if (s.dtype == FX_BOOL && kinds[k].op == FX_OP_max)
        identity = 0;
    if (kinds[k].op == FX_OP_and && fx_dtype_is_signed(s.dtype))
        identity = -1;
    fx_graph *f = fx_graph_new(NULL);
    fx_node *a = fx_graph_param(f, &e), *b = fx_graph_param(f, &e), *r = fx_b_binary(f, kinds[k].op, a, b);
    fx_node *in[] = {x.n, fx_b_scalar(t->g, s.dtype, identity)};
    if (fx_graph_finish(f, 1, &r, true) == FX_OK)
        gen_keep(t, fx_result(fx_build(t->g, FX_OP_reduce_fn, 2, in, 1, &FX_LIST(dims, 1, &dim), 1, &f), 0),
                 floats ? keeps ? x.bound : 20 : 1e30, x.exact && (keeps || !floats));
    fx_graph_unref(f);
}
