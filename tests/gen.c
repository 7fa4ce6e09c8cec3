/* gen.c - the generator of random graphs. See gen.h for what it guarantees.
 *
 * A pool holds the values made so far, each with a bound on its magnitude and whether it is exact: made by selection,
 * moves and integer arithmetic only. Each step picks a random op and operands from the pool that suit it. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "tests/gen_pool.h"

uint64_t gen_next(gen *t) {
    t->seed += 0x9e3779b97f4a7c15u;
    uint64_t z = t->seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t gen_pick(gen *t, int64_t n) {
    return n > 0 ? (int64_t)(gen_next(t) % (uint64_t)n) : 0;
}

bool gen_allowed(const gen *t, fx_op op, fx_dtype d) {
    return !t->o.allows || t->o.allows(op, d);
}

bool gen_is_float(const fx_node *n) {
    return fx_dtype_is_float(n->spec.dtype);
}

void gen_keep(gen *t, fx_node *n, double bound, bool exact) {
    if (n && t->n < GEN_POOL && fx_spec_count(&n->spec) <= 2000)
        t->v[t->n++] = (gen_value){n, bound, exact};
}

static fx_spec random_spec(gen *t, fx_dtype d) {
    fx_spec s = {d, (int)gen_pick(t, t->o.max_rank + 1), {0}};
    for (int i = 0; i < s.rank; i++)
        s.dims[i] = 1 + gen_pick(t, t->o.max_dim);
    return s;
}

static fx_dtype random_dtype(gen *t) {
    return t->o.n_dtype ? t->o.dtypes[gen_pick(t, t->o.n_dtype)] : (fx_dtype)gen_pick(t, FX_DTYPE_COUNT);
}

/* Recent values are likelier, so that graphs grow deep. */
gen_value gen_any(gen *t) {
    int64_t a = gen_pick(t, t->n), b = gen_pick(t, t->n);
    return t->v[a > b ? a : b];
}

bool gen_suits(gen_value v, const fx_spec *s, bool exact) {
    return fx_spec_equal(&v.n->spec, s) && (v.exact || !exact);
}

/* A value of the spec: from the pool, or a constant. */
gen_value gen_like(gen *t, const fx_spec *s, bool exact) {
    for (int tries = 0; tries < 12 && t->n; tries++) {
        gen_value v = gen_any(t);
        if (gen_suits(v, s, exact))
            return v;
    }
    double c = s->dtype == FX_BOOL ? (double)gen_pick(t, 2) : (double)gen_pick(t, 4);
    return (gen_value){fx_b_const_splat(t->g, s, c), 3, true};
}

/* x scaled so that it stays within limit. */
gen_value gen_tame(gen *t, gen_value x, double limit) {
    if (!gen_is_float(x.n) || x.bound <= limit)
        return x;
    return (gen_value){fx_b_binary_c(t->g, FX_OP_mul, x.n, limit / x.bound), limit, false};
}

/* |x| + 1/2 within about limit. */
fx_node *positive(gen *t, gen_value x, double limit) {
    return fx_b_binary_c(t->g, FX_OP_add, fx_b_unary(t->g, FX_OP_abs, gen_tame(t, x, limit).n), 0.5);
}

static void float_unary(gen *t, fx_op op, gen_value x) {
    double bound = 300;
    fx_node *n = x.n;
    switch (op) {
    case FX_OP_exp:
    case FX_OP_expm1:
        n = gen_tame(t, x, 4).n, bound = 60;
        break;
    case FX_OP_tan:
        n = gen_tame(t, x, 1).n, bound = 2;
        break;
    case FX_OP_erf_inv:
        n = gen_tame(t, x, 0.9).n, bound = 2;
        break;
    case FX_OP_log:
    case FX_OP_log1p:
    case FX_OP_sqrt:
    case FX_OP_rsqrt:
    case FX_OP_cbrt:
    case FX_OP_lgamma:
    case FX_OP_digamma:
        n = positive(t, x, 4), bound = 5;
        break;
    case FX_OP_sin:
    case FX_OP_cos:
        n = gen_tame(t, x, 8).n, bound = 1;
        break;
    case FX_OP_logistic:
    case FX_OP_tanh:
    case FX_OP_erf:
        bound = 1;
        break;
    case FX_OP_abs:
    case FX_OP_neg:
        gen_keep(t, fx_b_unary(t->g, op, n), x.bound, x.exact);
        return;
    default: /* sign, floor, ceil, rounding: they jump */
        if (x.exact)
            gen_keep(t, fx_b_unary(t->g, op, n), op == FX_OP_is_finite ? 1 : x.bound + 1, true);
        return;
    }
    gen_keep(t, fx_b_unary(t->g, op, n), bound, false);
}

static void float_binary(gen *t, fx_op op, gen_value x) {
    bool jumps = op == FX_OP_rem || fx_op_get(op)->bool_result, exact = false;
    gen_value y = gen_like(t, &x.n->spec, jumps);
    double bound = x.bound > y.bound ? x.bound : y.bound;
    if (jumps && !x.exact)
        return;
    if (op == FX_OP_div || op == FX_OP_atan2) {
        fx_node *d = positive(t, y, 8);
        gen_keep(t, fx_b_binary(t->g, op, gen_tame(t, x, 100).n, d), op == FX_OP_div ? 200 : 2, false);
        return;
    }
    if (op == FX_OP_pow) {
        gen_keep(t, fx_b_binary(t->g, op, positive(t, x, 2), gen_tame(t, y, 2).n), 7, false);
        return;
    }
    if (op == FX_OP_add || op == FX_OP_sub || op == FX_OP_mul) {
        x = gen_tame(t, x, 15), y = gen_tame(t, y, 15);
        bound = op == FX_OP_mul ? 225 : 30;
    } else if (op == FX_OP_rem) {
        y.n = fx_b_binary_c(t->g, FX_OP_add, fx_b_unary(t->g, FX_OP_abs, y.n), 1);
        exact = true;
    } else {
        exact = x.exact && y.exact;
    }
    gen_keep(t, fx_b_binary(t->g, op, x.n, y.n), fx_op_get(op)->bool_result ? 1 : bound, exact || jumps);
}

static void elementwise(gen *t) {
    gen_value x = gen_any(t);
    fx_dtype d = x.n->spec.dtype;
    fx_op op = FX_OP_COUNT;
    for (int tries = 0; tries < 8 && (op == FX_OP_COUNT || !fx_op_takes(op, d)); tries++)
        op = (fx_op)gen_pick(t, FX_OP_parameter); /* the rows before the structural ones */
    if (!fx_op_takes(op, d) || !gen_allowed(t, op, fx_op_get(op)->bool_result ? FX_BOOL : d))
        return;
    int n_in = fx_op_get(op)->n_in;
    if (op == FX_OP_select) {
        fx_spec p = x.n->spec;
        p.dtype = FX_BOOL;
        gen_value pred = gen_like(t, &p, true), y = gen_like(t, &x.n->spec, false);
        gen_keep(t, fx_b_select(t->g, pred.n, x.n, y.n), fmax(x.bound, y.bound), x.exact && y.exact);
    } else if (op == FX_OP_clamp) {
        fx_node *in[] = {fx_b_like(x.n, fx_dtype_is_unsigned(d) ? 1 : -2), x.n, fx_b_like(x.n, 3)};
        gen_keep(t, fx_b_elementwise(t->g, op, 3, in), 3, x.exact);
    } else if (gen_is_float(x.n) && n_in == 1) {
        float_unary(t, op, x);
    } else if (gen_is_float(x.n)) {
        float_binary(t, op, x);
    } else if (n_in == 1) {
        gen_keep(t, fx_b_unary(t->g, op, x.n), 1e30, true);
    } else {
        gen_keep(t, fx_b_binary(t->g, op, x.n, gen_like(t, &x.n->spec, true).n), 1e30, true);
    }
}

static void convert(gen *t) {
    gen_value x = gen_any(t);
    fx_dtype d = random_dtype(t);
    if (!gen_allowed(t, FX_OP_convert, d) || (gen_is_float(x.n) && !fx_dtype_is_float(d) && !x.exact))
        return;
    if (!gen_is_float(x.n) && fx_dtype_is_float(d) && x.n->spec.dtype != FX_BOOL) {
        bool s = fx_dtype_is_signed(x.n->spec.dtype);
        fx_node *in[] = {fx_b_like(x.n, s ? -8 : 0), x.n, fx_b_like(x.n, 8)};
        x = (gen_value){fx_b_elementwise(t->g, FX_OP_clamp, 3, in), 8, true};
    }
    gen_keep(t, fx_b_convert(t->g, x.n, d), fx_dtype_is_float(d) ? fmin(x.bound, 300) : 1e30, x.exact);
}

void gen_grow(gen *t, int steps) {
    for (int tries = 0, start = t->n; t->n - start < steps && tries < 20 * steps && t->n && t->g->status == FX_OK;
         tries++)
        switch (gen_pick(t, 20)) {
        case 0:
            convert(t);
            break;
        case 1:
        case 2:
        case 3:
            gen_layout(t);
            break;
        case 4:
        case 5:
            gen_reduction(t);
            break;
        case 6:
            gen_contraction(t);
            break;
        case 7:
            gen_indexing(t);
            break;
        case 8:
            gen_ordering(t);
            break;
        case 9:
            gen_control(t);
            break;
        case 10:
            gen_other(t);
            break;
        case 11:
            gen_fold(t);
            break;
        default:
            elementwise(t);
        }
}

fx_graph *gen_graph(uint64_t seed, const gen_options *o) {
    gen *t = calloc(1, sizeof *t);
    fx_node *results[3];
    if (!t)
        return NULL;
    if (o)
        t->o = *o;
    t->o.steps = t->o.steps ? t->o.steps : 12;
    t->o.max_dim = t->o.max_dim ? t->o.max_dim : 5;
    t->o.max_rank = t->o.max_rank ? t->o.max_rank : 3;
    t->seed = seed * 0x2545f4914f6cdd1du + 1;
    t->g = fx_graph_new(NULL);
    int params = 1 + (int)gen_pick(t, 4), n = 1 + (int)gen_pick(t, 3);
    for (int i = 0; i < params; i++) {
        fx_spec s = random_spec(t, random_dtype(t));
        gen_keep(t, fx_graph_param(t->g, &s), 4, true);
    }
    gen_grow(t, t->o.steps);
    for (int i = 0; i < n; i++)
        results[i] = i ? gen_any(t).n : t->n ? t->v[t->n - 1].n : NULL;
    fx_graph *g = t->g;
    if (fx_graph_finish(g, n, results, true) != FX_OK) {
        fx_graph_unref(g);
        g = NULL;
    }
    free(t);
    return g;
}
