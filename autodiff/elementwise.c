/* elementwise.c - derivatives of elementwise ops, generated from the d0 and d1 columns of ops.def.
 *
 * A column is a graph expression in x, y (operands) and r (result) that gives the factor of the operand's tangent.
 * ZERO and LINEAR(k) are factors known without a graph, QUOTIENT(e) is 1/e applied by dividing. */
#include "autodiff/rules.h"

typedef enum factor_kind { FACTOR, FACTOR_ZERO, FACTOR_CONSTANT, FACTOR_QUOTIENT, FACTOR_NONE } factor_kind;

typedef struct context {
    fx_graph *g;
    factor_kind kind;
    double k;
} context;

/* The vocabulary of the columns. */
static fx_node *special(context *c, factor_kind kind, double k, fx_node *e) {
    c->kind = kind;
    c->k = k;
    return e;
}

/* 1 where x is the result, half of it where y is, too. */
static fx_node *half_at_tie(context *c, fx_node *x, fx_node *y, fx_node *r) {
    fx_graph *g = c->g;
    fx_node *one = fx_b_like(x, 1), *both = fx_b_select(g, fx_b_binary(g, FX_OP_eq, y, r), fx_b_like(x, 0.5), one);
    return fx_b_select(g, fx_b_binary(g, FX_OP_eq, x, r), both, fx_b_like(x, 0));
}

/* 1 from 0 on, else -1. */
static fx_node *step(context *c, fx_node *x) {
    return fx_b_select(c->g, fx_b_binary_c(c->g, FX_OP_ge, x, 0), fx_b_like(x, 1), fx_b_like(x, -1));
}

/* y x^(y-1), and 0 where y is 0, whatever x is. */
static fx_node *pow_dx(context *c, fx_node *x, fx_node *y) {
    fx_graph *g = c->g;
    double k;
    if (fx_node_splat(y, &k)) {
        if (k == 0 || k == 1)
            return special(c, k == 0 ? FACTOR_ZERO : FACTOR_CONSTANT, k, NULL);
        fx_node *power = k == 2 ? x : fx_b_binary_c(g, FX_OP_pow, x, k - 1);
        return fx_b_binary_c(g, FX_OP_mul, power, k);
    }
    fx_node *power = fx_b_binary(g, FX_OP_pow, x, fx_b_binary_c(g, FX_OP_sub, y, 1));
    return fx_b_select(g, fx_b_binary_c(g, FX_OP_eq, y, 0), fx_b_like(x, 0), fx_b_binary(g, FX_OP_mul, y, power));
}

/* r log x, and 0 at x = 0 where r is 0. */
static fx_node *pow_dy(context *c, fx_node *x, fx_node *y, fx_node *r) {
    (void)y;
    fx_graph *g = c->g;
    fx_node *safe = fx_b_select(g, fx_b_binary_c(g, FX_OP_eq, x, 0), fx_b_like(x, 1), x);
    return fx_b_binary(g, FX_OP_mul, fx_b_unary(g, FX_OP_log, safe), r);
}

static fx_node *round_to_zero(context *c, fx_node *x) {
    fx_graph *g = c->g;
    return fx_b_select(g, fx_b_binary_c(g, FX_OP_lt, x, 0), fx_b_unary(g, FX_OP_ceil, x),
                       fx_b_unary(g, FX_OP_floor, x));
}

/* The derivative of digamma: sum of 1/(x+i)^2 up to x+i >= 8, then the asymptotic series; reflected below 1/2. */
static fx_node *trigamma(context *c, fx_node *x0) {
    static const double b[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
    fx_graph *g = c->g;
    fx_node *low = fx_b_binary_c(g, FX_OP_lt, x0, 0.5), *one = fx_b_like(x0, 1), *sum = NULL, *series = NULL;
    fx_node *x = fx_b_select(g, low, fx_b_binary(g, FX_OP_sub, one, x0), x0);
    for (int i = 0; i < 8; i++) {
        fx_node *v = i ? fx_b_binary_c(g, FX_OP_add, x, i) : x;
        sum = fx_ad_add(g, sum, fx_b_binary(g, FX_OP_div, one, fx_b_binary(g, FX_OP_mul, v, v)));
    }
    fx_node *z = fx_b_binary(g, FX_OP_div, one, fx_b_binary_c(g, FX_OP_add, x, 8)),
            *z2 = fx_b_binary(g, FX_OP_mul, z, z);
    for (int i = (int)(sizeof b / sizeof *b) - 1; i >= 0; i--)
        series = series ? fx_b_binary_c(g, FX_OP_add, fx_b_binary(g, FX_OP_mul, series, z2), b[i]) : fx_b_like(x, b[i]);
    series = fx_b_binary(g, FX_OP_mul, fx_b_binary(g, FX_OP_mul, series, z2), z);
    sum = fx_ad_add(g, sum, fx_ad_add(g, fx_ad_add(g, z, fx_b_binary_c(g, FX_OP_mul, z2, 0.5)), series));
    fx_node *sine = fx_b_unary(g, FX_OP_sin, fx_b_binary_c(g, FX_OP_mul, x0, 3.14159265358979323846));
    sine = fx_b_select(g, low, sine, one);
    fx_node *mirror =
        fx_b_binary(g, FX_OP_div, fx_b_like(x, 9.86960440108935861883), fx_b_binary(g, FX_OP_mul, sine, sine));
    return fx_b_select(g, low, fx_b_binary(g, FX_OP_sub, mirror, sum), sum);
}

#define ZERO special(c, FACTOR_ZERO, 0, NULL)
#define NONE special(c, FACTOR_NONE, 0, NULL)
#define LINEAR(v) special(c, FACTOR_CONSTANT, (v), NULL)
#define QUOTIENT(e) special(c, FACTOR_QUOTIENT, 0, (e))
#define K(v) fx_b_const_splat(c->g, &x->spec, (v))
#define ADD(a, b) fx_b_binary(c->g, FX_OP_add, (a), (b))
#define SUB(a, b) fx_b_binary(c->g, FX_OP_sub, (a), (b))
#define MUL(a, b) fx_b_binary(c->g, FX_OP_mul, (a), (b))
#define DIV(a, b) fx_b_binary(c->g, FX_OP_div, (a), (b))
#define NEG(a) fx_b_unary(c->g, FX_OP_neg, (a))
#define STEP(a) step(c, (a))
#define EXP(a) fx_b_unary(c->g, FX_OP_exp, (a))
#define SIN(a) fx_b_unary(c->g, FX_OP_sin, (a))
#define COS(a) fx_b_unary(c->g, FX_OP_cos, (a))
#define DIGAMMA(a) fx_b_unary(c->g, FX_OP_digamma, (a))
#define TRIGAMMA(a) trigamma(c, (a))
#define ROUND_TO_ZERO(a) round_to_zero(c, (a))
#define HALF_AT_TIE(a, b, v) half_at_tie(c, (a), (b), (v))
#define POW_DX(a, b) pow_dx(c, (a), (b))
#define POW_DY(a, b, v) pow_dy(c, (a), (b), (v))

#define RULE(name, operand, expr)                                                       \
    static fx_node *name##_d##operand(context *c, fx_node *x, fx_node *y, fx_node *r) { \
        (void)c, (void)x, (void)y, (void)r;                                             \
        return expr;                                                                    \
    }
#define FX_UNARY(name, types, result, fe, ie, d0, ulp, doc) RULE(name, 0, d0)
#define FX_BINARY(name, types, result, fe, ie, d0, d1, ulp, doc) RULE(name, 0, d0) RULE(name, 1, d1)
#define FX_TERNARY(...)
#define FX_STRUCTURAL(...)
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY

typedef fx_node *column(context *c, fx_node *x, fx_node *y, fx_node *r);
#define FX_UNARY(name, ...) [FX_OP_##name] = {name##_d0, NULL},
#define FX_BINARY(name, ...) [FX_OP_##name] = {name##_d0, name##_d1},
static column *const columns[FX_OP_COUNT][2] = {
#include "core/ops/ops.def"
};

/* a + t times the factor of operand i. */
static fx_node *add_term(fx_jvp_rule *r, int i, fx_node *t, fx_node *a) {
    fx_graph *g = r->g;
    context c = {.g = g};
    fx_node *f = columns[r->n->op][i](&c, r->in[0], r->n->n_in > 1 ? r->in[1] : NULL, r->out[0]);
    switch (c.kind) {
    case FACTOR:
        return fx_ad_add(g, a, fx_ad_mul(g, t, f));
    case FACTOR_QUOTIENT:
        return fx_ad_add(g, a, fx_b_binary(g, FX_OP_div, t, f));
    case FACTOR_CONSTANT:
        return c.k == 1 ? fx_ad_add(g, a, t) : c.k == -1 ? fx_ad_sub(g, a, t) : fx_ad_add(g, a, fx_ad_mul_c(g, t, c.k));
    case FACTOR_ZERO:
        return a;
    case FACTOR_NONE:
        break;
    }
    fx_rule_error(g, r->n, FX_UNSUPPORTED,
                  "derivative; expected an op that has one; use it on values that don't need gradients");
    return NULL;
}

/* lo and hi pass their tangent where they bind, x where neither does. */
static void jvp_clamp(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    fx_node *lo = r->in[0], *x = r->in[1], *hi = r->in[2], *t = NULL;
    if (r->t[1]) {
        fx_node *inside = fx_b_binary(g, FX_OP_and, fx_b_binary(g, FX_OP_gt, x, lo), fx_b_binary(g, FX_OP_lt, x, hi));
        t = fx_b_select(g, inside, r->t[1], fx_b_like(x, 0));
    }
    if (r->t[0]) {
        fx_node *below = fx_b_binary(g, FX_OP_and, fx_b_binary(g, FX_OP_gt, lo, x), fx_b_binary(g, FX_OP_lt, lo, hi));
        t = fx_ad_add(g, t, fx_b_select(g, below, r->t[0], fx_b_like(x, 0)));
    }
    if (r->t[2])
        t = fx_ad_add(g, t, fx_b_select(g, fx_b_binary(g, FX_OP_lt, hi, x), r->t[2], fx_b_like(x, 0)));
    r->dt[0] = t;
}

void fx_jvp_elementwise(fx_jvp_rule *r) {
    if (r->n->op == FX_OP_clamp) {
        jvp_clamp(r);
        return;
    }
    if (r->n->op == FX_OP_select) {
        r->dt[0] = fx_b_select(r->g, r->in[0], fx_ad_zeros(r->g, r->t[1], &r->n->spec),
                               fx_ad_zeros(r->g, r->t[2], &r->n->spec));
        return;
    }
    if (r->n->op == FX_OP_mul && r->in[0] == r->in[1]) { /* a square: one product with the tangent */
        r->dt[0] = fx_ad_mul(r->g, r->t[0], fx_b_binary(r->g, FX_OP_add, r->in[0], r->in[0]));
        return;
    }
    fx_node *t = NULL;
    for (int i = 0; i < r->n->n_in; i++)
        if (r->t[i])
            t = add_term(r, i, r->t[i], t);
    r->dt[0] = t;
}

void fx_transpose_elementwise(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    fx_node *ct = r->ct[0], *zero;
    const bool *linear = r->linear;
    switch (r->n->op) {
    case FX_OP_neg:
        r->out[0] = fx_ad_neg(g, ct);
        return;
    case FX_OP_add:
    case FX_OP_sub:
        if (linear[0] && linear[1]) {
            r->out[0] = ct;
            r->out[1] = r->n->op == FX_OP_sub ? fx_ad_neg(g, ct) : ct;
            return;
        }
        break;
    case FX_OP_mul:
        if (linear[0] != linear[1]) {
            r->out[linear[1]] = fx_ad_mul(g, ct, r->in[linear[0]]);
            return;
        }
        break;
    case FX_OP_div:
        if (!linear[1]) {
            r->out[0] = fx_b_binary(g, FX_OP_div, ct, r->in[1]);
            return;
        }
        break;
    case FX_OP_select:
        if (linear[0])
            break;
        zero = fx_b_like(ct, 0);
        if (linear[1])
            r->out[1] = fx_b_select(g, r->in[0], ct, zero);
        if (linear[2])
            r->out[2] = fx_b_select(g, r->in[0], zero, ct);
        return;
    default:
        break;
    }
    fx_rule_error(
        g, r->n, FX_INVALID_ARGUMENT,
        "reverse mode; expected a linear function of the tangents; got an op that isn't; a custom rule must be "
        "linear in its tangents");
}
