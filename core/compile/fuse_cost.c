/* fuse_cost.c - the first choice of what is stored: bytes saved against work repeated.
 *
 * Unit: reading or writing one element in memory. A value computed anew wherever it is used costs its work
 * times its evaluations; stored, it costs its work once, a write, and a read an evaluation. Evaluations are
 * counted for each kernel-to-be (sink) once, however often that asks, since a kernel computes a value at one
 * index once. */
#include <string.h>

#include "core/base/error.h"
#include "core/compile/fuse_graph.h"

enum { MAX_SINKS = 12 };

typedef struct sink {
    uint32_t node;
    double evals;
} sink;

typedef struct use {
    int n;
    double more; /* evaluations by sinks beyond the list */
    sink s[MAX_SINKS];
} use;

fx_fuse_class fx_fuse_classify(const fx_node *n) {
    switch (n->op) {
    case FX_OP_parameter:
    case FX_OP_constant:
        return FX_FUSE_LEAF;
    case FX_OP_project:
    case FX_OP_optimization_barrier:
        return FX_FUSE_ALIAS;
    case FX_OP_reduce:
        return FX_FUSE_REDUCE;
    case FX_OP_dot_general:
    case FX_OP_convolution:
        return FX_FUSE_DOT;
    case FX_OP_gather:
    case FX_OP_dynamic_slice:
    case FX_OP_dynamic_update_slice:
    case FX_OP_concatenate: /* reads each operand and selects: not free as other views are */
    case FX_OP_pad:
        return FX_FUSE_EW;
    case FX_OP_sort:
    case FX_OP_top_k:
        return FX_FUSE_OPAQUE;
    case FX_OP_cond:
    case FX_OP_while:
    case FX_OP_scan:
        return FX_FUSE_CONTROL;
    default:
        return fx_op_get(n->op)->view ? FX_FUSE_VIEW : fx_op_is_elementwise(n->op) ? FX_FUSE_EW : FX_FUSE_LOOP;
    }
}

bool fx_fuse_is_splat(const fx_node *n) {
    const fx_attr *a = n->op == FX_OP_constant ? fx_attr_get(n, FX_ATTR_value) : NULL;
    return a && (size_t)a->count == fx_dtype_size(n->spec.dtype);
}

/* Work of one element, in memory accesses: as measured on lavapipe, less for what GPUs do far faster than they read. */
double fx_fuse_work(const fx_node *n) {
    switch (n->op) {
    case FX_OP_exp:
    case FX_OP_log:
    case FX_OP_sin:
    case FX_OP_cos:
    case FX_OP_cbrt:
    case FX_OP_gather:
        return 1;
    case FX_OP_expm1:
    case FX_OP_log1p:
    case FX_OP_logistic:
    case FX_OP_tanh:
    case FX_OP_tan:
    case FX_OP_erf:
    case FX_OP_pow:
    case FX_OP_atan2:
    case FX_OP_erf_inv:
        return 2;
    case FX_OP_lgamma:
    case FX_OP_digamma:
        return 20;
    case FX_OP_concatenate:
        return n->n_in - 0.8;
    case FX_OP_pad:
        return 0.3;
    case FX_OP_div:
    case FX_OP_rem:
        return fx_dtype_is_float(n->spec.dtype) ? 0.3 : 5;
    case FX_OP_sqrt:
    case FX_OP_rsqrt:
        return 0.3;
    default:
        return fx_fuse_classify(n) == FX_FUSE_VIEW ? 0.05 : 0.1;
    }
}

static double count_of(const fx_node *n) {
    int64_t c = fx_spec_count(fx_value_spec(fx_value_of((fx_node *)(uintptr_t)n)));
    return c > 0 ? (double)c : 1;
}

static void add_use(use *u, uint32_t node, double evals) {
    for (int i = 0; i < u->n; i++)
        if (u->s[i].node == node) {
            u->s[i].evals = u->s[i].evals > evals ? u->s[i].evals : evals;
            return;
        }
    if (u->n < MAX_SINKS)
        u->s[u->n++] = (sink){node, evals};
    else
        u->more += evals;
}

/* How often each element of operand j is asked for when n is computed once, as a product of element counts. */
static double asked(const fx_node *n, int j) {
    fx_contraction c;
    if (fx_contraction_of((fx_node *)(uintptr_t)n, &c)) { /* tiles of 16 rows and 32 columns re-read the operands */
        double other = j == 0 ? (double)c.n / 32 : (double)c.m / 16;
        return count_of(n->in[j]) * (other > 1 ? other : 1);
    }
    if (n->op == FX_OP_reduce || n->op == FX_OP_arg_reduce || n->op == FX_OP_reduce_fn || n->op == FX_OP_scatter)
        return count_of(n->in[j]);
    return 8 * count_of(n->in[j]); /* windows and running reductions read each element several times */
}

/* Is n an elementwise function of a product that nothing else reads? Then it takes the product's place in memory. */
static bool ends_product(const fx_node *n, const int *users) {
    for (int j = 0; j < n->n_in; j++) {
        const fx_node *x = n->in[j];
        while (x->op == FX_OP_reshape && users[x->id] == 1)
            x = x->in[0];
        if (fx_fuse_classify(x) == FX_FUSE_DOT && users[x->id] == 1 &&
            fx_spec_count(&x->spec) == fx_spec_count(&n->spec) && fx_op_is_elementwise(n->op))
            return true;
    }
    return false;
}

fx_status fx_fuse_choose(fx_graph *g, fx_values *vs, const bool *needed, fx_arena *arena) {
    int *users = FX_ARENA_ARRAY(arena, int, g->n_node + 1);
    use *uses = FX_ARENA_ARRAY(arena, use, g->n_node + 1);
    double *cost =
        FX_ARENA_ARRAY(arena, double, g->n_node + 1); /* of one element, computed from what is surely stored */
    if (!uses || !cost || !users)
        return fx_fail_oom(0);
    for (int i = 0; i < g->n_node; i++)
        for (int j = 0; j < g->nodes[i]->n_in; j++)
            users[g->nodes[i]->in[j]->id]++;
    for (int i = 0; i < g->n_result; i++)
        users[g->results[i]->id]++;
    for (int i = 0; i < g->n_node; i++) {
        fx_node *n = g->nodes[i];
        fx_fuse_class c = fx_fuse_classify(n);
        if (c == FX_FUSE_LEAF)
            cost[i] = fx_fuse_is_splat(n) ? 0 : 1;
        else if (c != FX_FUSE_EW && c != FX_FUSE_VIEW)
            cost[i] = c == FX_FUSE_ALIAS && n->op == FX_OP_project && n->in[0]->op == FX_OP_optimization_barrier
                          ? cost[fx_value_of(n).node->id]
                          : 1;
        else {
            cost[i] = fx_fuse_work(n);
            for (int j = 0; j < n->n_in; j++) {
                double share = count_of(n->in[j]) * 8 < count_of(n) ? 0.2 : 1; /* few values, read again and again */
                cost[i] += share * cost[n->in[j]->id];
            }
            cost[i] = cost[i] > 40 ? 40 : cost[i];
        }
    }
    for (int i = g->n_node - 1; i >= 0; i--) {
        fx_node *n = g->nodes[i];
        fx_fuse_class c = fx_fuse_classify(n);
        double evals = uses[i].more, count = count_of(n);
        for (int k = 0; k < uses[i].n; k++)
            evals += uses[i].s[k].evals;
        bool store = needed[i];
        if (c == FX_FUSE_LEAF)
            store = n->op == FX_OP_parameter || !fx_fuse_is_splat(n) || needed[i];
        else if (c == FX_FUSE_EW)
            store |= evals * cost[i] > count * (cost[i] + 1) + evals || (evals > count && ends_product(n, users));
        else if (c != FX_FUSE_VIEW)
            store = c != FX_FUSE_ALIAS;
        for (int r = 0; r < fx_result_count(n) && store; r++)
            vs->buffer[vs->base[i] + r] = 0;
        for (int j = 0; j < n->n_in; j++) {
            use *u = &uses[fx_value_of(n->in[j]).node->id];
            if (c == FX_FUSE_EW || c == FX_FUSE_VIEW) {
                if (store)
                    add_use(u, n->id, count);
                else {
                    for (int k = 0; k < uses[i].n; k++)
                        add_use(u, uses[i].s[k].node, uses[i].s[k].evals);
                    u->more += uses[i].more;
                }
            } else if (c != FX_FUSE_ALIAS)
                add_use(u, n->id, asked(n, j));
        }
    }
    return FX_OK;
}
