/* fuse.c - which values are stored and how they are grouped into kernels. */
#include "core/compile/fuse.h"

#include <string.h>

#include "core/base/error.h"

static bool is_free(const fx_node *n) {
    return fx_op_get(n->op)->view || n->op == FX_OP_constant || n->op == FX_OP_parameter ||
           n->op == FX_OP_optimization_barrier;
}

/* A literal of many elements, or a single one that must be in memory. Splats are written where they are used. */
static bool is_literal_buffer(const fx_node *n, bool needed) {
    const fx_attr *a = fx_attr_get(n, FX_ATTR_value);
    if (n->op != FX_OP_constant || !a)
        return false;
    return (size_t)a->count != fx_dtype_size(n->spec.dtype) || (needed && fx_spec_count(&n->spec) == 1);
}

fx_status fx_fuse(fx_graph *g, const fx_device_caps *caps, const fx_lower_options *opt, fx_arena *arena,
                  fx_fusion *out) {
    (void)caps;
    (void)opt;
    fx_values *vs = &out->values;
    vs->graph = g;
    vs->base = FX_ARENA_ARRAY(arena, int, g->n_node + 1);
    if (!vs->base)
        return fx_fail_oom(0);
    for (int i = 0; i < g->n_node; i++) {
        vs->base[i] = vs->count;
        vs->count += fx_result_count(g->nodes[i]);
    }
    vs->buffer = FX_ARENA_ARRAY(arena, int, vs->count + 1);
    out->groups = FX_ARENA_ARRAY(arena, fx_group, g->n_node + 1);
    if (!vs->buffer || !out->groups)
        return fx_fail_oom(0);
    for (int i = 0; i < vs->count; i++)
        vs->buffer[i] = -1;
    bool *needed = FX_ARENA_ARRAY(arena, bool, g->n_node + 1);
    for (int i = 0; i < g->n_result; i++)
        needed[fx_value_of(g->results[i]).node->id] = true;
    for (int i = 0; i < g->n_node; i++) {
        fx_node *n = g->nodes[i];
        bool control = n->op == FX_OP_cond || n->op == FX_OP_while || n->op == FX_OP_scan;
        for (int j = 0; j < n->n_in &&
                        (control || n->op == FX_OP_sort || n->op == FX_OP_top_k || n->op == FX_OP_optimization_barrier);
             j++)
            needed[fx_value_of(n->in[j]).node->id] = true;
    }
    for (int i = 0; i < g->n_node; i++) {
        fx_node *n = g->nodes[i];
        if (n->op == FX_OP_project || n->op == FX_OP_optimization_barrier)
            continue;
        if (n->op == FX_OP_parameter || is_literal_buffer(n, needed[i])) {
            vs->buffer[vs->base[i]] = 0;
            continue;
        }
        if (is_free(n) && !needed[i])
            continue;
        fx_group *grp = &out->groups[out->n_group++];
        grp->n_out = fx_result_count(n);
        grp->out = FX_ARENA_ARRAY(arena, fx_value, grp->n_out);
        for (int r = 0; r < grp->n_out; r++) {
            grp->out[r] = (fx_value){n, r};
            vs->buffer[vs->base[i] + r] = 0;
        }
        bool control = n->op == FX_OP_cond || n->op == FX_OP_while || n->op == FX_OP_scan;
        if (control || n->op == FX_OP_sort || n->op == FX_OP_top_k) {
            grp->kind = control ? FX_GROUP_CONTROL : FX_GROUP_SPECIAL;
            grp->n_inner = 1;
            grp->inner = fx_arena_copy(arena, &n, sizeof(n));
        }
    }
    return FX_OK;
}
