/* rules_scan.c - derivatives of scan.
 *
 * Forward: one scan that carries tangents along. Reverse: that scan is split into a known one, which stacks what the
 * linear one reads (less what loop constants and sliced inputs already hold), and a linear one; the linear one runs
 * backwards, with the cotangents of its constants summed up in the carry. */
#include <string.h>

#include "autodiff/rules.h"

static void pass_on(fx_graph *g, const fx_node *n, fx_status st) {
    if (st != FX_OK && g->status == FX_OK)
        fx_graph_error(g, st, "%s: %s", fx_op_get(n->op)->name, fx_last_error());
}

static fx_node *build(fx_graph *g, int n_in, fx_node *const *in, int n_consts, int n_carry, int64_t length,
                      bool reverse, fx_graph *region) {
    const fx_attr a[] = {FX_INT(n_consts, n_consts), FX_INT(n_carry, n_carry), FX_INT(length, length),
                         FX_INT(reverse, reverse)};
    return region ? fx_build(g, FX_OP_scan, n_in, in, 4, a, 1, &region) : NULL;
}

void fx_jvp_scan(fx_jvp_rule *r) {
    fx_graph *g = r->g, *body = NULL, *region = NULL;
    const fx_node *n = r->n;
    int n_in = n->n_in, n_consts = (int)FX_GET_INT(n, n_consts), n_carry = (int)FX_GET_INT(n, n_carry), m = n->n_result;
    fx_arena *a = &g->arena;
    bool *has_in = FX_ARENA_ARRAY(a, bool, n_in + 1), *has_out = FX_ARENA_ARRAY(a, bool, m + 1);
    int *params = FX_ARENA_ARRAY(a, int, 2 * n_in + 1), *results = FX_ARENA_ARRAY(a, int, 2 * m + 1);
    int *tangent_of = FX_ARENA_ARRAY(a, int, n_in + m + 1);
    fx_node **in = FX_ARENA_ARRAY(a, fx_node *, 2 * n_in + 1);
    if (a->failed) {
        pass_on(g, n, FX_OUT_OF_MEMORY);
        return;
    }
    for (int i = 0; i < n_in; i++)
        has_in[i] = r->t[i] != NULL;
    bool *carried = has_in + n_consts;
    fx_status st = FX_OK;
    for (bool grown = true; grown && st == FX_OK;) { /* a carry has a tangent when its start or its next value has */
        fx_graph_unref(body);
        body = NULL;
        memset(has_out, 0, sizeof *has_out * (size_t)m);
        memcpy(has_out, carried, sizeof *has_out * (size_t)n_carry);
        st = fx_ad_jvp_graph(n->region[0], has_in, has_out, r->linearize, &body);
        grown = memcmp(carried, has_out, sizeof *has_out * (size_t)n_carry) != 0;
        memcpy(carried, has_out, sizeof *has_out * (size_t)n_carry);
    }
    for (int i = 0, t = n_in; i < n_in; i++)
        tangent_of[i] = has_in[i] ? t++ : -1;
    for (int i = 0, t = m; i < m; i++)
        tangent_of[n_in + i] = has_out[i] ? t++ : -1;
    int k = 0, bound[4] = {0, n_consts, n_consts + n_carry, n_in}, count[3], out_bound[3] = {0, n_carry, m}, q = 0;
    for (int part = 0; part < 3; part++) { /* constants, carry, slices: each with its tangents behind it */
        int before = k;
        for (int i = bound[part]; i < bound[part + 1]; i++) {
            params[k] = i;
            in[k++] = r->in[i];
        }
        for (int i = bound[part]; i < bound[part + 1]; i++)
            if (has_in[i]) {
                params[k] = tangent_of[i];
                in[k++] = fx_ad_zeros(g, r->t[i], &n->in[i]->spec);
            }
        count[part] = k - before;
    }
    for (int part = 0; part < 2; part++) {
        for (int i = out_bound[part]; i < out_bound[part + 1]; i++)
            results[q++] = i;
        for (int i = out_bound[part]; i < out_bound[part + 1]; i++)
            if (has_out[i])
                results[q++] = tangent_of[n_in + i];
    }
    if (st == FX_OK)
        st = fx_ad_arrange(body, k, params, NULL, q, results, &region);
    fx_node *s =
        st == FX_OK ? build(g, k, in, count[0], count[1], FX_GET_INT(n, length), FX_GET_INT(n, reverse), region) : NULL;
    pass_on(g, n, st);
    for (int j = 0; j < q && s; j++)
        for (int i = 0; i < m; i++) {
            if (results[j] == i)
                r->out[i] = fx_result(s, j);
            if (results[j] == tangent_of[n_in + i])
                r->dt[i] = fx_result(s, j);
        }
    fx_graph_unref(body);
    fx_graph_unref(region);
}

/* What the split of a scan works with. */
typedef struct zip {
    fx_unzip_rule *r;
    fx_ad_split s;
    int n_in, n_consts, n_carry, m, n_known_in, n_known_consts, n_known_carry, n_known;
    bool *unknown; /* of operands; the carry's once it is settled */
    fx_node **known_in;
} zip;

/* The known scan; residuals that vary come out stacked behind its own results. */
static fx_node *known_scan(zip *z) {
    const fx_node *n = z->r->n;
    for (int i = 0; i < z->n_in; i++)
        if (!z->unknown[i]) {
            z->n_known_consts += i < z->n_consts;
            z->n_known_carry += i >= z->n_consts && i < z->n_consts + z->n_carry;
            z->known_in[z->n_known_in++] = z->r->in[i];
        }
    if (!z->s.known->n_result)
        return NULL;
    return build(z->r->g, z->n_known_in, z->known_in, z->n_known_consts, z->n_known_carry, FX_GET_INT(n, length),
                 FX_GET_INT(n, reverse), z->s.known);
}

/* The linear scan: constants (residuals that don't vary, then unknown ones), unknown carry, slices (residuals,
 * unknown). */
static fx_node *linear_scan(zip *z, fx_node *known) {
    fx_graph *g = z->r->g, *region = NULL;
    const fx_node *n = z->r->n;
    fx_arena *a = &g->arena;
    int total = z->s.n_residual + z->n_in, k = 0, n_consts = 0, n_carry = 0, produced = 0,
        n_result = z->s.linear->n_result;
    int n_invariant = z->s.invariant ? z->s.invariant->n_result : 0;
    fx_node **in = FX_ARENA_ARRAY(a, fx_node *, total + 1), **value = FX_ARENA_ARRAY(a, fx_node *, z->s.n_residual + 1);
    fx_node **args = FX_ARENA_ARRAY(a, fx_node *, z->n_in + 1),
            **invariant = FX_ARENA_ARRAY(a, fx_node *, n_invariant + 1);
    int *params = FX_ARENA_ARRAY(a, int, total + 1), *results = FX_ARENA_ARRAY(a, int, n_result + 1);
    bool *sliced = FX_ARENA_ARRAY(a, bool, z->s.n_residual + 1);
    if (a->failed) {
        pass_on(g, n, FX_OUT_OF_MEMORY);
        return NULL;
    }
    for (int i = 0, j = 0; i < z->n_in; i++) /* arguments of the hoisted part: only the constants are read */
        if (!z->unknown[i]) {
            args[j] = i < z->n_consts && n_invariant ? z->r->in[i]
                      : n_invariant                  ? fx_b_zeros(g, &z->s.known->params[j]->spec)
                                                     : NULL;
            j++;
        }
    if (n_invariant && fx_graph_inline(g, z->s.invariant, args, invariant) != FX_OK)
        return NULL;
    for (int i = 0, v = 0; i < z->s.n_residual; i++) {
        int p = z->s.param[i];
        if (z->s.kind[i] == FX_RESIDUAL_PARAM) {
            value[i] = z->r->in[p];
            sliced[i] = p >= z->n_consts;
        } else if (z->s.kind[i] == FX_RESIDUAL_INVARIANT)
            value[i] = invariant[v++];
        else {
            value[i] = fx_result(known, z->n_known + produced++);
            sliced[i] = true;
        }
    }
    for (int part = 0; part < 3; part++) {
        int lo = part == 0 ? 0 : part == 1 ? z->n_consts : z->n_consts + z->n_carry;
        int hi = part == 0 ? z->n_consts : part == 1 ? z->n_consts + z->n_carry : z->n_in;
        for (int i = 0; part != 1 && i < z->s.n_residual; i++)
            if (sliced[i] == (part == 2)) {
                params[k] = i;
                in[k++] = value[i];
            }
        for (int i = 0, u = z->s.n_residual; i < z->n_in; i++)
            if (z->unknown[i]) {
                if (i >= lo && i < hi) {
                    params[k] = u;
                    in[k++] = z->r->in[i];
                }
                u++;
            }
        if (part == 0)
            n_consts = k;
        if (part == 1)
            n_carry = k - n_consts;
    }
    for (int i = 0; i < n_result; i++)
        results[i] = i;
    fx_status st = fx_ad_arrange(z->s.linear, k, params, NULL, n_result, results, &region);
    pass_on(g, n, st);
    fx_node *s = build(g, k, in, n_consts, n_carry, FX_GET_INT(n, length), FX_GET_INT(n, reverse), region);
    fx_graph_unref(region);
    return s;
}

void fx_unzip_scan(fx_unzip_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    zip z = {.r = r,
             .n_in = n->n_in,
             .n_consts = (int)FX_GET_INT(n, n_consts),
             .n_carry = (int)FX_GET_INT(n, n_carry),
             .m = n->n_result};
    bool *steady = FX_ARENA_ARRAY(&g->arena, bool, n->n_in + 1), *direct = FX_ARENA_ARRAY(&g->arena, bool, n->n_in + 1);
    z.unknown = FX_ARENA_ARRAY(&g->arena, bool, n->n_in + 1);
    z.known_in = FX_ARENA_ARRAY(&g->arena, fx_node *, n->n_in + 1);
    if (g->arena.failed) {
        pass_on(g, n, FX_OUT_OF_MEMORY);
        return;
    }
    memcpy(z.unknown, r->unknown, sizeof *z.unknown * (size_t)n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        steady[i] = i < z.n_consts;
        direct[i] = i < z.n_consts || i >= z.n_consts + z.n_carry;
    }
    bool *carried = z.unknown + z.n_consts;
    fx_status st = FX_OK;
    for (bool grown = true; grown && st == FX_OK;) {
        fx_ad_split_free(&z.s);
        memset(r->out_unknown, 0, sizeof *r->out_unknown * (size_t)z.m);
        memcpy(r->out_unknown, carried, sizeof *carried * (size_t)z.n_carry);
        st = fx_ad_split_region(n->region[0], z.unknown, r->out_unknown, direct, steady, &z.s);
        grown = memcmp(r->out_unknown, carried, sizeof *carried * (size_t)z.n_carry) != 0;
        memcpy(carried, r->out_unknown, sizeof *carried * (size_t)z.n_carry);
    }
    pass_on(g, n, st);
    if (st != FX_OK)
        return;
    for (int i = 0; i < z.m; i++)
        z.n_known += !r->out_unknown[i];
    fx_node *known = known_scan(&z), *linear = linear_scan(&z, known);
    for (int i = 0, u = 0, k = 0; i < z.m; i++)
        r->out[i] = r->out_unknown[i] ? fx_result(linear, u++) : fx_result(known, k++);
    fx_ad_split_free(&z.s);
}

/* The body backwards: (residual constants..., sums of the linear constants' cotangents..., cotangents of the carry...,
 * residual slices..., cotangents of the ys that have one...) -> (sums..., cotangents of the carry..., of the
 * slices...). */
static fx_graph *body_back(fx_transpose_rule *r, int n_consts, int n_carry) {
    const fx_graph *f = r->n->region[0];
    const bool *linear = r->linear;
    int n = f->n_param, m = f->n_result, k = 0;
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    fx_arena *a = &g->arena;
    fx_node **args = FX_ARENA_ARRAY(a, fx_node *, n + 1), **sum = FX_ARENA_ARRAY(a, fx_node *, n_consts + 1);
    fx_node **ct = FX_ARENA_ARRAY(a, fx_node *, m + 1), **ct_in = FX_ARENA_ARRAY(a, fx_node *, n + 1);
    fx_node **out = FX_ARENA_ARRAY(a, fx_node *, n + 1);
    bool *in_linear = FX_ARENA_ARRAY(a, bool, n + 1);
    if (a->failed) {
        fx_graph_unref(g);
        return NULL;
    }
    for (int i = 0; i < n; i++) /* a carry that starts with zeros is linear, too */
        in_linear[i] = linear[i] || (i >= n_consts && i < n_consts + n_carry);
    for (int i = 0; i < n_consts; i++)
        if (!linear[i])
            args[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = 0; i < n_consts; i++)
        if (linear[i])
            sum[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = 0; i < n_carry; i++)
        ct[i] = fx_graph_param(g, &f->results[i]->spec);
    for (int i = n_consts + n_carry; i < n; i++)
        if (!linear[i])
            args[i] = fx_graph_param(g, &f->params[i]->spec);
    for (int i = n_carry; i < m; i++)
        if (r->ct[i])
            ct[i] = fx_graph_param(g, &f->results[i]->spec);
    fx_status st = fx_ad_transpose(g, f, in_linear, args, ct, NULL, ct_in);
    for (int i = 0; st == FX_OK && i < n; i++)
        if (in_linear[i])
            out[k++] = fx_ad_zeros(g, i < n_consts ? fx_ad_add(g, sum[i], ct_in[i]) : ct_in[i], &f->params[i]->spec);
    if (st == FX_OK && fx_graph_finish(g, k, out, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_transpose_scan(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_consts = (int)FX_GET_INT(n, n_consts), n_carry = (int)FX_GET_INT(n, n_carry), n_in = n->n_in, k = 0, consts,
        carry;
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * n_in + n->n_result + 1);
    if (!in) {
        pass_on(g, n, FX_OUT_OF_MEMORY);
        return;
    }
    for (int i = n_consts; i < n_consts + n_carry; i++)
        if (!r->linear[i] && !fx_node_is_splat(r->in[i], 0)) {
            fx_rule_error(g, n, FX_INVALID_ARGUMENT,
                          "reverse mode; expected a carry that starts with a tangent or zeros; got another "
                          "value; a custom rule must be linear in its tangents");
            return;
        }
    fx_graph *back = body_back(r, n_consts, n_carry);
    if (!back) {
        pass_on(g, n, FX_INVALID_ARGUMENT);
        return;
    }
    for (int i = 0; i < n_consts; i++)
        if (!r->linear[i])
            in[k++] = r->in[i];
    consts = k;
    for (int i = 0; i < n_consts; i++)
        if (r->linear[i])
            in[k++] = fx_b_zeros(g, &n->in[i]->spec);
    for (int i = 0; i < n_carry; i++)
        in[k++] = fx_ad_zeros(g, r->ct[i], fx_result_spec(n, i));
    carry = k - consts;
    for (int i = n_consts + n_carry; i < n_in; i++)
        if (!r->linear[i])
            in[k++] = r->in[i];
    for (int i = n_carry; i < n->n_result; i++)
        if (r->ct[i])
            in[k++] = r->ct[i];
    fx_node *s = build(g, k, in, consts, carry, FX_GET_INT(n, length), !FX_GET_INT(n, reverse), back);
    for (int i = 0, j = 0; i < n_in; i++) {
        bool given = r->linear[i] || (i >= n_consts && i < n_consts + n_carry);
        if (r->linear[i])
            r->out[i] = fx_result(s, j);
        j += given;
    }
    fx_graph_unref(back);
}
