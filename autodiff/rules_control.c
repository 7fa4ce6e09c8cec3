/* rules_control.c - derivatives of cond and while.
 *
 * cond: each branch is split; the known cond returns every branch's residuals (zeros for those of branches not taken),
 * the linear cond gets them. while: forward mode only, because the number of steps to undo isn't known beforehand. */
#include <string.h>

#include "autodiff/rules.h"

static void no_memory(fx_graph *g, const fx_node *n) {
    fx_rule_error(g, n, FX_OUT_OF_MEMORY, "host memory ran out");
}
static void pass_on(fx_graph *g, const fx_node *n, fx_status st) {
    if (st != FX_OK && g->status == FX_OK)
        fx_graph_error(g, st, "%s: %s", fx_op_get(n->op)->name, fx_last_error());
}

/* ---- cond ---- */

void fx_jvp_cond(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_x = n->n_in - 1, m = n->n_result, k = n->n_in;
    bool *has_in = FX_ARENA_ARRAY(&g->arena, bool, n_x + 1), *has_out = FX_ARENA_ARRAY(&g->arena, bool, m + 1);
    fx_graph **branch = FX_ARENA_ARRAY(&g->arena, fx_graph *, n->n_region);
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, 2 * n->n_in);
    if (!has_in || !has_out || !branch || !in) {
        no_memory(g, n);
        return;
    }
    for (int i = 0; i < n->n_in; i++)
        in[i] = r->in[i];
    for (int i = 0; i < n_x; i++)
        if ((has_in[i] = r->t[1 + i] != NULL))
            in[k++] = r->t[1 + i];
    fx_status st = FX_OK;
    for (int pass = 0; pass < 2; pass++) /* first what any branch gives, then all that from every branch */
        for (int b = 0; b < n->n_region && st == FX_OK; b++) {
            fx_graph_unref(branch[b]);
            branch[b] = NULL;
            st = fx_ad_jvp_graph(n->region[b], has_in, has_out, r->linearize, &branch[b]);
        }
    fx_node *c = st == FX_OK ? fx_build(g, FX_OP_cond, k, in, 0, NULL, n->n_region, branch) : NULL;
    pass_on(g, n, st);
    for (int i = 0, j = m; i < m; i++) {
        r->out[i] = fx_result(c, i);
        r->dt[i] = has_out[i] ? fx_result(c, j++) : NULL;
    }
    for (int b = 0; b < n->n_region; b++)
        fx_graph_unref(branch[b]);
}

/* One branch of the known cond: its known results, then all branches' residuals. */
static fx_graph *known_branch(int b, int n_branch, const fx_ad_split *s, int n_known) {
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    const fx_graph *f = s[b].known;
    int total = n_known;
    for (int i = 0; i < n_branch; i++)
        total += s[i].known->n_result - n_known;
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_param + 1);
    fx_node **own = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1),
            **all = FX_ARENA_ARRAY(&g->arena, fx_node *, total + 1);
    bool ok = args && own && all;
    for (int i = 0; ok && i < f->n_param; i++)
        args[i] = fx_graph_param(g, &f->params[i]->spec);
    ok = ok && fx_graph_inline(g, f, args, own) == FX_OK;
    for (int i = 0; ok && i < n_known; i++)
        all[i] = own[i];
    for (int i = 0, k = n_known; ok && i < n_branch; i++)
        for (int j = n_known; j < s[i].known->n_result; j++)
            all[k++] = i == b ? own[j] : fx_b_zeros(g, &s[i].known->results[j]->spec);
    if (ok && fx_graph_finish(g, total, all, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_unzip_cond(fx_unzip_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_x = n->n_in - 1, m = n->n_result, n_branch = n->n_region, n_known = 0, n_kin = 0, n_u = 0, extra = 0;
    fx_arena *a = &g->arena;
    bool *direct = FX_ARENA_ARRAY(a, bool, n_x + 1);
    fx_ad_split *s = FX_ARENA_ARRAY(a, fx_ad_split, n_branch);
    fx_graph **branch = FX_ARENA_ARRAY(a, fx_graph *, n_branch);
    fx_node **in = FX_ARENA_ARRAY(a, fx_node *, n->n_in);
    if (!direct || !s || !branch || !in) {
        no_memory(g, n);
        return;
    }
    for (int i = 0; i < n_x; i++)
        direct[i] = !r->unknown[1 + i];
    fx_status st = FX_OK;
    for (int pass = 0; pass < 2; pass++) /* first which results are unknown, then the split */
        for (int b = 0; b < n_branch && st == FX_OK; b++) {
            fx_ad_split_free(&s[b]);
            st = fx_ad_split_region(n->region[b], r->unknown + 1, r->out_unknown, direct, NULL, &s[b]);
        }
    for (int i = 0; i < m; i++)
        n_known += !r->out_unknown[i];
    in[0] = r->in[0];
    for (int i = 0; i < n_x; i++)
        if (direct[i])
            in[1 + n_kin++] = r->in[1 + i];
    for (int b = 0; b < n_branch && st == FX_OK; b++)
        if (!(branch[b] = known_branch(b, n_branch, s, n_known)))
            st = FX_OUT_OF_MEMORY;
    bool empty = st == FX_OK && branch[0]->n_result == 0;
    fx_node *known = st == FX_OK && !empty ? fx_build(g, FX_OP_cond, 1 + n_kin, in, 0, NULL, n_branch, branch) : NULL;
    for (int b = 0; b < n_branch; b++) {
        fx_graph_unref(branch[b]);
        branch[b] = NULL;
    }
    /* linear operands: known operands that are residuals somewhere, produced residuals of all branches, tangents */
    int produced = 0, *place = FX_ARENA_ARRAY(a, int, n_x + 1);
    for (int b = 0; st == FX_OK && b < n_branch; b++)
        produced += s[b].known->n_result - n_known;
    fx_node **lin_in = FX_ARENA_ARRAY(a, fx_node *, 1 + n->n_in + produced);
    fx_spec *specs = FX_ARENA_ARRAY(a, fx_spec, 1 + n->n_in + produced);
    if (!place || !lin_in || !specs)
        st = FX_OUT_OF_MEMORY;
    int k = 0;
    for (int i = 0; st == FX_OK && i < n_x; i++) {
        place[i] = -1;
        bool used = false;
        for (int b = 0; b < n_branch; b++)
            for (int j = 0; j < s[b].n_residual; j++)
                used |= s[b].kind[j] == FX_RESIDUAL_PARAM && s[b].param[j] == i;
        if (used) {
            place[i] = k;
            lin_in[1 + k++] = r->in[1 + i];
        }
    }
    int first = k;
    for (int i = 0; st == FX_OK && i < produced; i++)
        lin_in[1 + k++] = fx_result(known, n_known + i);
    int first_unknown = k;
    for (int i = 0; st == FX_OK && i < n_x; i++)
        if (r->unknown[1 + i]) {
            lin_in[1 + k++] = r->in[1 + i];
            n_u++;
        }
    lin_in[0] = r->in[0];
    for (int i = 0; st == FX_OK && i < k; i++)
        specs[i] = lin_in[1 + i] ? lin_in[1 + i]->spec : FX_SPEC0(FX_F32);
    for (int b = 0; b < n_branch && st == FX_OK && g->status == FX_OK; b++) {
        int *params = FX_ARENA_ARRAY(a, int, k + 1), *results = FX_ARENA_ARRAY(a, int, m + 1);
        if (!params || !results) {
            st = FX_OUT_OF_MEMORY;
            break;
        }
        for (int i = 0; i < k; i++)
            params[i] = -1 - i;
        for (int j = 0; j < s[b].n_residual; j++)
            params[s[b].kind[j] == FX_RESIDUAL_PARAM ? place[s[b].param[j]] : first + extra++] = j;
        for (int i = 0; i < n_u; i++)
            params[first_unknown + i] = s[b].n_residual + i;
        for (int i = 0; i < m; i++)
            results[i] = i;
        st = fx_ad_arrange(s[b].linear, k, params, specs, m - n_known, results, &branch[b]);
    }
    fx_node *linear =
        st == FX_OK && g->status == FX_OK ? fx_build(g, FX_OP_cond, 1 + k, lin_in, 0, NULL, n_branch, branch) : NULL;
    pass_on(g, n, st);
    for (int i = 0, u = 0, v = 0; i < m; i++)
        r->out[i] = r->out_unknown[i] ? fx_result(linear, u++) : fx_result(known, v++);
    for (int b = 0; b < n_branch; b++) {
        fx_graph_unref(branch[b]);
        fx_ad_split_free(&s[b]);
    }
}

/* One branch backwards: (nonlinear operands..., cotangents given...) -> cotangents of the linear operands. */
static fx_graph *branch_back(fx_transpose_rule *r, const fx_graph *f) {
    int n_x = r->n->n_in - 1, k = 0;
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return NULL;
    fx_node **args = FX_ARENA_ARRAY(&g->arena, fx_node *, n_x + 1),
            **ct = FX_ARENA_ARRAY(&g->arena, fx_node *, f->n_result + 1);
    fx_node **ct_in = FX_ARENA_ARRAY(&g->arena, fx_node *, n_x + 1);
    bool ok = args && ct && ct_in;
    for (int i = 0; ok && i < n_x; i++)
        args[i] = r->linear[1 + i] ? NULL : fx_graph_param(g, &f->params[i]->spec);
    for (int i = 0; ok && i < f->n_result; i++)
        ct[i] = r->ct[i] ? fx_graph_param(g, &f->results[i]->spec) : NULL;
    ok = ok && fx_ad_transpose(g, f, r->linear + 1, args, ct, NULL, ct_in) == FX_OK;
    for (int i = 0; ok && i < n_x; i++)
        if (r->linear[1 + i])
            ct_in[k++] = fx_ad_zeros(g, ct_in[i], &f->params[i]->spec);
    if (ok && fx_graph_finish(g, k, ct_in, true) == FX_OK)
        return g;
    fx_graph_unref(g);
    return NULL;
}

void fx_transpose_cond(fx_transpose_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int k = 0;
    fx_graph **branch = FX_ARENA_ARRAY(&g->arena, fx_graph *, n->n_region);
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, n->n_in + n->n_result);
    bool ok = branch && in;
    for (int i = 0; ok && i < n->n_in; i++)
        if (!r->linear[i])
            in[k++] = r->in[i];
    for (int i = 0; ok && i < n->n_result; i++)
        if (r->ct[i])
            in[k++] = r->ct[i];
    for (int b = 0; ok && b < n->n_region; b++)
        ok = (branch[b] = branch_back(r, n->region[b])) != NULL;
    fx_node *c = ok ? fx_build(g, FX_OP_cond, k, in, 0, NULL, n->n_region, branch) : NULL;
    if (!ok)
        pass_on(g, n, FX_INVALID_ARGUMENT);
    for (int i = 1, j = 0; i < n->n_in; i++)
        if (r->linear[i])
            r->out[i] = fx_result(c, j++);
    for (int b = 0; branch && b < n->n_region; b++)
        fx_graph_unref(branch[b]);
}

/* ---- while ---- */

void fx_jvp_while(fx_jvp_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_carry = (int)FX_GET_INT(n, n_carry), n_in = n->n_in, n_t = 0, n_ct = 0, k = 0;
    fx_arena *a = &g->arena;
    bool *has_in = FX_ARENA_ARRAY(a, bool, n_in + 1), *has_out = FX_ARENA_ARRAY(a, bool, n_carry + 1);
    int *params = FX_ARENA_ARRAY(a, int, 2 * n_in + 1), *cond_params = FX_ARENA_ARRAY(a, int, 2 * n_in + 1);
    int *results = FX_ARENA_ARRAY(a, int, 2 * n_carry + 1);
    fx_node **in = FX_ARENA_ARRAY(a, fx_node *, 2 * n_in + 1);
    fx_spec *specs = FX_ARENA_ARRAY(a, fx_spec, n_in + 1);
    fx_graph *body = NULL, *region[2] = {NULL, NULL};
    if (a->failed) {
        no_memory(g, n);
        return;
    }
    for (int i = 0; i < n_in; i++) {
        has_in[i] = r->t[i] != NULL;
        specs[i] = n->in[i]->spec;
    }
    fx_status st = FX_OK;
    for (bool grown = true; grown && st == FX_OK;) { /* a carry has a tangent when its start or its next value has */
        fx_graph_unref(body);
        memcpy(has_out, has_in, sizeof *has_out * (size_t)n_carry);
        st = fx_ad_jvp_graph(n->region[1], has_in, has_out, r->linearize, &body);
        grown = memcmp(has_in, has_out, sizeof *has_out * (size_t)n_carry) != 0;
        memcpy(has_in, has_out, sizeof *has_out * (size_t)n_carry);
    }
    for (int i = 0; i < n_carry; i++)
        n_ct += has_in[i];
    for (int i = 0; i < n_in; i++) { /* carry, its tangents, constants, their tangents */
        if (i == n_carry)
            for (int j = 0, t = n_in; j < n_carry; j++)
                if (has_in[j]) {
                    cond_params[k] = -1 - j;
                    params[k] = t++;
                    in[k++] = fx_ad_zeros(g, r->t[j], &specs[j]);
                }
        cond_params[k] = params[k] = i;
        in[k++] = r->in[i];
    }
    n_t = n_in + (n_in > n_carry ? n_ct : 0);
    for (int j = n_in > n_carry ? n_carry : 0; j < n_in; j++)
        if (has_in[j]) {
            cond_params[k] = -1 - j;
            params[k] = n_t++;
            in[k++] = fx_ad_zeros(g, r->t[j], &specs[j]);
        }
    for (int i = 0; i < n_carry + n_ct; i++)
        results[i] = i;
    if (st == FX_OK)
        st = fx_ad_arrange(n->region[0], k, cond_params, specs, 1, (int[]){0}, &region[0]);
    if (st == FX_OK)
        st = fx_ad_arrange(body, k, params, NULL, n_carry + n_ct, results, &region[1]);
    const fx_attr attr = FX_INT(n_carry, n_carry + n_ct);
    fx_node *w = st == FX_OK ? fx_build(g, FX_OP_while, k, in, 1, &attr, 2, region) : NULL;
    pass_on(g, n, st);
    for (int i = 0, j = n_carry; i < n_carry; i++) {
        r->out[i] = fx_result(w, i);
        r->dt[i] = has_in[i] ? fx_result(w, j++) : NULL;
    }
    fx_graph_unref(body);
    fx_graph_unref(region[0]);
    fx_graph_unref(region[1]);
}

/* The loop without what is unknown, for the known results; the whole loop for the others, which reverse mode refuses
 * when it gets there. */
void fx_unzip_while(fx_unzip_rule *r) {
    fx_graph *g = r->g;
    const fx_node *n = r->n;
    int n_carry = (int)FX_GET_INT(n, n_carry), k = 0, n_known = 0;
    bool *unknown = FX_ARENA_ARRAY(&g->arena, bool, n->n_in + 1);
    int *params = FX_ARENA_ARRAY(&g->arena, int, n->n_in + 1);
    fx_node **in = FX_ARENA_ARRAY(&g->arena, fx_node *, n->n_in + 1);
    fx_ad_split s = {0};
    fx_graph *region[2] = {NULL, NULL};
    if (!unknown || !params || !in) {
        no_memory(g, n);
        return;
    }
    memcpy(unknown, r->unknown, sizeof *unknown * (size_t)n->n_in);
    fx_status st = FX_OK;
    for (bool grown = true; grown && st == FX_OK;) {
        fx_ad_split_free(&s);
        memcpy(r->out_unknown, unknown, sizeof *unknown * (size_t)n_carry);
        st = fx_ad_split_region(n->region[1], unknown, r->out_unknown, unknown, NULL, &s);
        grown = memcmp(r->out_unknown, unknown, sizeof *unknown * (size_t)n_carry) != 0;
        memcpy(unknown, r->out_unknown, sizeof *unknown * (size_t)n_carry);
    }
    for (int i = 0; i < n->n_in; i++)
        if (!unknown[i]) {
            n_known += i < n_carry;
            params[k] = i;
            in[k++] = r->in[i];
        }
    if (st == FX_OK)
        st = fx_ad_arrange(n->region[0], k, params, NULL, 1, (int[]){0}, &region[0]);
    for (int i = 0, j = 0; i < n_carry; i++)
        if (!unknown[i])
            params[j++] = i;
    int *body_params = FX_ARENA_ARRAY(&g->arena, int, n->n_in + 1);
    if (st == FX_OK && body_params) {
        for (int i = 0, j = 0; i < n->n_in; i++)
            if (!unknown[i])
                body_params[j++] = i;
        st = fx_ad_arrange(n->region[1], k, body_params, NULL, n_known, params, &region[1]);
    }
    const fx_attr attr = FX_INT(n_carry, n_known);
    fx_node *known = st == FX_OK && n_known ? fx_build(g, FX_OP_while, k, in, 1, &attr, 2, region) : NULL;
    fx_node *whole = fx_node_rebuild(g, n, r->in);
    pass_on(g, n, st);
    for (int i = 0, j = 0; i < n_carry; i++)
        r->out[i] = unknown[i] ? fx_result(whole, i) : fx_result(known, j++);
    fx_ad_split_free(&s);
    fx_graph_unref(region[0]);
    fx_graph_unref(region[1]);
}

void fx_transpose_while(fx_transpose_rule *r) {
    fx_rule_error(
        r->g, r->n, FX_UNSUPPORTED,
        "reverse mode; expected a loop whose length is known when it is traced; got a while, "
        "which keeps no record of its steps; write it with fx_scan, differentiate it with fx_jvp, or stop the "
        "gradient before it");
}
