/* shape_control.c - shape rules of tuples, calls and control flow: regions must fit their operands exactly. */
#include "core/graph/node.h"

bool fx_shape_parameter(fx_rule *r) {
    return fx_rule_fail(r, "expected a place in the list of parameters; got a plain node");
}

bool fx_shape_project(fx_rule *r) {
    const fx_node *x = r->in[0];
    int64_t index;
    if (x->spec.dtype != FX_TUPLE)
        return fx_rule_fail(r, "operand 0; expected a tuple; got %s", fx_spec_text(&x->spec));
    return fx_take_int(r, FX_ATTR_index, 0, x->n_result - 1, &index) && fx_rule_like(r, &x->results[index]);
}

/* Region k's parameters are operands first.. */
static bool takes_operands(fx_rule *r, int k, int first) {
    const fx_graph *f = r->region[k];
    if (f->n_param != r->n_in - first)
        return fx_rule_fail(r, "region %d parameters; expected %d; got %d", k, r->n_in - first, f->n_param);
    for (int i = 0; i < f->n_param; i++)
        if (!fx_spec_equal(&f->params[i]->spec, fx_rule_in(r, first + i)))
            return fx_rule_fail(r, "region %d parameter %d; expected %s; got %s", k, i,
                                fx_spec_text(fx_rule_in(r, first + i)), fx_spec_text(&f->params[i]->spec));
    return true;
}

/* Region k's results have these specs, in order. */
static bool gives(fx_rule *r, int k, int n, const fx_spec *specs) {
    const fx_graph *f = r->region[k];
    if (f->n_result != n)
        return fx_rule_fail(r, "region %d results; expected %d; got %d", k, n, f->n_result);
    for (int i = 0; i < n; i++)
        if (!fx_spec_equal(&f->results[i]->spec, &specs[i]))
            return fx_rule_fail(r, "region %d result %d; expected %s; got %s", k, i, fx_spec_text(&specs[i]),
                                fx_spec_text(&f->results[i]->spec));
    return true;
}

static fx_spec *results_of(fx_rule *r, const fx_graph *f) {
    fx_spec *specs = fx_rule_tuple(r, f->n_result);
    for (int i = 0; specs && i < f->n_result; i++)
        specs[i] = f->results[i]->spec;
    return specs;
}

/* Region 1: operands -> results, residuals. Region 2: residuals, cotangents of results -> cotangents of operands. */
static bool custom_vjp(fx_rule *r, int64_t n_residual) {
    const fx_graph *f = r->region[0], *fwd = r->region[1], *bwd = r->region[2];
    int n = (int)n_residual;
    if (!takes_operands(r, 1, 0))
        return false;
    if (fwd->n_result != f->n_result + n || bwd->n_param != n + f->n_result || bwd->n_result != r->n_in)
        return fx_rule_fail(
            r,
            "custom_vjp; expected %d results forward, %d parameters and %d results backward; got %d, %d "
            "and %d",
            f->n_result + n, n + f->n_result, r->n_in, fwd->n_result, bwd->n_param, bwd->n_result);
    for (int i = 0; i < n + f->n_result; i++) {
        const fx_spec *have = &bwd->params[i]->spec;
        const fx_spec *want = i < n ? &fwd->results[f->n_result + i]->spec : &f->results[i - n]->spec;
        if (!fx_spec_equal(have, want))
            return fx_rule_fail(r, "custom_vjp backward parameter %d; expected %s; got %s", i, fx_spec_text(want),
                                fx_spec_text(have));
    }
    for (int i = 0; i < f->n_result; i++)
        if (!fx_spec_equal(&fwd->results[i]->spec, &f->results[i]->spec))
            return fx_rule_fail(r, "custom_vjp forward result %d; expected %s; got %s", i,
                                fx_spec_text(&f->results[i]->spec), fx_spec_text(&fwd->results[i]->spec));
    for (int i = 0; i < r->n_in; i++)
        if (!fx_spec_equal(&bwd->results[i]->spec, fx_rule_in(r, i)))
            return fx_rule_fail(r, "custom_vjp backward result %d; expected %s; got %s", i,
                                fx_spec_text(fx_rule_in(r, i)), fx_spec_text(&bwd->results[i]->spec));
    return true;
}

/* Region 1: operands, their tangents -> results, their tangents. */
static bool custom_jvp(fx_rule *r) {
    const fx_graph *f = r->region[0], *jvp = r->region[1];
    if (jvp->n_param != 2 * r->n_in || jvp->n_result != 2 * f->n_result)
        return fx_rule_fail(r, "custom_jvp; expected %d parameters and %d results; got %d and %d", 2 * r->n_in,
                            2 * f->n_result, jvp->n_param, jvp->n_result);
    for (int i = 0; i < jvp->n_param; i++)
        if (!fx_spec_equal(&jvp->params[i]->spec, fx_rule_in(r, i % r->n_in)))
            return fx_rule_fail(r, "custom_jvp parameter %d; expected %s; got %s", i,
                                fx_spec_text(fx_rule_in(r, i % r->n_in)), fx_spec_text(&jvp->params[i]->spec));
    for (int i = 0; i < jvp->n_result; i++)
        if (!fx_spec_equal(&jvp->results[i]->spec, &f->results[i % f->n_result]->spec))
            return fx_rule_fail(r, "custom_jvp result %d; expected %s; got %s", i,
                                fx_spec_text(&f->results[i % f->n_result]->spec), fx_spec_text(&jvp->results[i]->spec));
    return true;
}

bool fx_shape_call(fx_rule *r) {
    static const fx_symbol kinds[] = {FX_SYM_inline, FX_SYM_remat, FX_SYM_custom_jvp, FX_SYM_custom_vjp, FX_SYM_COUNT};
    fx_symbol kind;
    int64_t n_residual;
    if (!fx_take_symbol(r, FX_ATTR_kind, kinds, FX_SYM_inline, &kind) ||
        !fx_take_int_or(r, FX_ATTR_n_residual, 0, INT32_MAX / 4, 0, &n_residual))
        return false;
    int want = kind == FX_SYM_custom_vjp ? 3 : kind == FX_SYM_custom_jvp ? 2 : 1;
    if (r->n_region != want || (n_residual && want != 3))
        return fx_rule_fail(r, "regions; expected %d%s; got %d", want, want == 3 ? "" : " and no residuals",
                            r->n_region);
    return takes_operands(r, 0, 0) && results_of(r, r->region[0]) && (want != 2 || custom_jvp(r)) &&
           (want != 3 || custom_vjp(r, n_residual));
}

bool fx_shape_cond(fx_rule *r) {
    if (r->n_in < 1 || r->n_region < 1)
        return fx_rule_fail(r, "expected an index and at least one region; got %d operands and %d regions", r->n_in,
                            r->n_region);
    if (!fx_rule_scalar(r, 0, FX_S32))
        return false;
    fx_spec *specs = results_of(r, r->region[0]);
    for (int k = 0; specs && k < r->n_region; k++)
        if (!takes_operands(r, k, 1) || !gives(r, k, r->n_result, specs))
            return false;
    return specs;
}

bool fx_shape_while(fx_rule *r) {
    static const fx_spec flag = {FX_BOOL, 0, {0}};
    int64_t n_carry;
    if (!fx_take_int_or(r, FX_ATTR_n_carry, 1, r->n_in, r->n_in, &n_carry) || !takes_operands(r, 0, 0) ||
        !takes_operands(r, 1, 0) || !gives(r, 0, 1, &flag))
        return false;
    fx_spec *specs = fx_rule_tuple(r, (int)n_carry);
    for (int i = 0; specs && i < n_carry; i++)
        specs[i] = *fx_rule_in(r, i);
    return specs && gives(r, 1, (int)n_carry, specs);
}

bool fx_shape_scan(fx_rule *r) {
    int64_t n_consts, n_carry, length, reverse;
    const fx_graph *f = r->region[0];
    if (!fx_take_int_or(r, FX_ATTR_n_consts, 0, r->n_in, 0, &n_consts) ||
        !fx_take_int_or(r, FX_ATTR_n_carry, 0, r->n_in - n_consts, r->n_in - n_consts, &n_carry))
        return false;
    int first = (int)(n_consts + n_carry);
    int64_t limit = (int64_t)1 << 56;
    if (first < r->n_in && fx_rule_in(r, first)->rank < 1)
        return fx_rule_fail(r, "operand %d; expected a dimension to scan over; got %s", first,
                            fx_spec_text(fx_rule_in(r, first)));
    if (first < r->n_in ? !fx_take_int_or(r, FX_ATTR_length, 0, limit, fx_rule_in(r, first)->dims[0], &length)
                        : !fx_take_int(r, FX_ATTR_length, 0, limit, &length))
        return false;
    if (!fx_take_int_or(r, FX_ATTR_reverse, 0, 1, 0, &reverse))
        return false;
    if (f->n_param != r->n_in || f->n_result < n_carry)
        return fx_rule_fail(r, "region; expected %d parameters and at least %lld results; got %d and %d", r->n_in,
                            (long long)n_carry, f->n_param, f->n_result);
    for (int i = 0; i < r->n_in; i++) {
        fx_spec s = *fx_rule_in(r, i);
        if (i >= first) {
            if (s.rank < 1 || s.dims[0] != length)
                return fx_rule_fail(r, "operand %d; expected leading dimension %lld; got %s", i, (long long)length,
                                    fx_spec_text(&s));
            s.rank--;
            for (int d = 0; d < s.rank; d++)
                s.dims[d] = s.dims[d + 1];
        }
        if (!fx_spec_equal(&s, &f->params[i]->spec))
            return fx_rule_fail(r, "region parameter %d; expected %s; got %s", i, fx_spec_text(&s),
                                fx_spec_text(&f->params[i]->spec));
    }
    fx_spec *specs = results_of(r, f);
    for (int i = 0; specs && i < f->n_result; i++) {
        if (i < n_carry) {
            if (!fx_spec_equal(&specs[i], fx_rule_in(r, (int)n_consts + i)))
                return fx_rule_fail(r, "region result %d; expected the carry's %s; got %s", i,
                                    fx_spec_text(fx_rule_in(r, (int)n_consts + i)), fx_spec_text(&specs[i]));
            continue;
        }
        fx_spec s = specs[i];
        if (s.rank >= FX_MAX_RANK)
            return fx_rule_fail(r, "region result %d; expected at most %d dimensions; got %s", i, FX_MAX_RANK - 1,
                                fx_spec_text(&s));
        for (int d = s.rank; d > 0; d--)
            s.dims[d] = s.dims[d - 1];
        s.dims[0] = length;
        s.rank++;
        if (!fx_spec_valid(&s))
            return fx_rule_fail(r, "result %d; expected a size that a machine can address; got %s", i,
                                fx_spec_text(&s));
        specs[i] = s;
    }
    return specs;
}

bool fx_shape_optimization_barrier(fx_rule *r) {
    fx_spec *specs = fx_rule_tuple(r, r->n_in);
    for (int i = 0; specs && i < r->n_in; i++)
        specs[i] = *fx_rule_in(r, i);
    return specs;
}
