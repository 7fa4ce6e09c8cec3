/* graph.c - life of a graph: creation, parameters, captures, sticky errors, finishing, reference counts.
 *
 * While a graph is open, nodes[] is in order of creation; finishing drops dead nodes when asked and moves the
 * parameters to the front, so that a finished graph's ids are: parameters 0..n_param-1, then the rest,
 * operands before users. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/node.h"

static _Thread_local const char *here_file;
static _Thread_local int here_line;

void fx_location_set(const char *file, int line) {
    here_file = file;
    here_line = line;
}

void fx_location_get(const char **file, int *line) {
    *file = here_file;
    *line = here_line;
}

fx_graph *fx_graph_new(fx_graph *parent) {
    fx_graph *g = calloc(1, sizeof *g);
    if (!g) {
        fx_fail_oom(sizeof *g);
        return NULL;
    }
    g->refs = 1;
    g->parent = parent;
    g->scope = parent ? fx_arena_strdup(&g->arena, parent->scope) : NULL;
    return g;
}

fx_graph *fx_graph_ref(fx_graph *g) {
    if (g)
        __atomic_fetch_add(&g->refs, 1, __ATOMIC_RELAXED);
    return g;
}

void fx_graph_unref(fx_graph *g) {
    if (!g || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < g->n_node; i++)
        for (int j = 0; j < g->nodes[i]->n_region; j++)
            fx_graph_unref(g->nodes[i]->region[j]);
    fx_cons_free(g->cons);
    free(g->nodes);
    free(g->params);
    free(g->captured);
    fx_arena_finish(&g->arena);
    free(g);
}

fx_node *fx_graph_error(fx_graph *g, fx_status status, const char *fmt, ...) {
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!g)
        fx_fail(status, "%s", text);
    else if (g->status != FX_OK)
        fx_fail(g->status, "%s", g->error);
    else {
        if (here_file)
            fx_fail(status, "%s:%d: %s", here_file, here_line, text);
        else
            fx_fail(status, "%s", text);
        if (!g->finished) { /* a finished graph is shared: the error is the caller's alone */
            char *copy = fx_arena_strdup(&g->arena, fx_last_error());
            g->status = status;
            g->error = copy ? copy : (char *)"out of host memory";
        }
    }
    return NULL;
}

static fx_node *no_memory(fx_graph *g) {
    return fx_graph_error(g, FX_OUT_OF_MEMORY, "host memory ran out");
}

static bool grow(void *array, int n, int *cap, size_t size) {
    if (n < *cap)
        return true;
    int more = *cap ? *cap * 2 : 16;
    void *p = more > 0 ? realloc(*(void **)array, (size_t)more * size) : NULL;
    if (!p)
        return false;
    *(void **)array = p;
    *cap = more;
    return true;
}

fx_node *fx_node_append(fx_graph *g, fx_op op, const fx_spec *spec) {
    fx_node *n = FX_ARENA_NEW(&g->arena, fx_node);
    if (!n || !grow(&g->nodes, g->n_node, &g->cap_node, sizeof *g->nodes))
        return no_memory(g);
    n->graph = g;
    n->id = (uint32_t)g->n_node;
    n->op = op;
    n->spec = *spec;
    n->file = here_file;
    n->line = here_line;
    n->scope = g->scope;
    g->nodes[g->n_node++] = n;
    return n;
}

static fx_node *append_param(fx_graph *g, const fx_spec *given) {
    if (g->status != FX_OK)
        return NULL;
    if (g->finished)
        return fx_graph_error(g, FX_INVALID_ARGUMENT, "parameter; expected an open graph; got a finished one");
    fx_spec spec = {given->dtype, given->rank, {0}};
    for (int i = 0; i < given->rank && i < FX_MAX_RANK; i++)
        spec.dims[i] = given->dims[i];
    if ((unsigned)spec.dtype >= FX_DTYPE_COUNT || !fx_spec_valid(&spec))
        return fx_graph_error(
            g, FX_INVALID_ARGUMENT,
            "parameter %d; expected an element type, at most %d dimensions, none negative, and a size that "
            "a machine can address; got %s",
            g->n_param, FX_MAX_RANK, fx_spec_text(&spec));
    fx_attr *index = FX_ARENA_NEW(&g->arena, fx_attr);
    if (!index || !grow(&g->params, g->n_param, &g->cap_param, sizeof *g->params))
        return no_memory(g);
    fx_node *n = fx_node_append(g, FX_OP_parameter, &spec);
    if (!n)
        return NULL;
    *index = FX_INT(index, g->n_param);
    n->attr = index;
    n->n_attr = 1;
    n->hash = fx_hash_spec(fx_hash_mix(FX_OP_parameter, (uint64_t)g->n_param), &spec);
    g->params[g->n_param++] = n;
    return n;
}

fx_node *fx_graph_param(fx_graph *g, const fx_spec *spec) {
    if (!g)
        return NULL;
    if (g->n_captured)
        return fx_graph_error(g, FX_INTERNAL, "parameter %d; expected before the region captures a value", g->n_param);
    return append_param(g, spec);
}

fx_node *fx_graph_capture(fx_graph *g, fx_node *n) {
    if (!g || !n || n->graph == g)
        return n;
    if (g->status != FX_OK)
        return NULL;
    const fx_graph *a = g->parent;
    while (a && a != n->graph)
        a = a->parent;
    if (!a)
        return fx_graph_error(
            g, FX_INVALID_ARGUMENT,
            "a value of another trace; expected one of this trace or of one that encloses it; got a %s "
            "%s; pass it as an argument",
            fx_op_get(n->op)->name, fx_spec_text(&n->spec));
    if (n->op == FX_OP_constant || n->op == FX_OP_iota)
        return fx_node_rebuild(g, n, NULL);
    fx_node *up = fx_graph_capture(g->parent, n);
    if (!up)
        return fx_graph_error(g, g->parent->status, "%s", g->parent->error);
    for (int i = 0; i < g->n_captured; i++)
        if (g->captured[i] == up)
            return g->params[g->n_param - g->n_captured + i];
    fx_node **more = realloc(g->captured, sizeof *more * (size_t)(g->n_captured + 1));
    if (!more)
        return no_memory(g);
    g->captured = more;
    fx_node *p = append_param(g, &up->spec);
    if (p)
        g->captured[g->n_captured++] = up;
    return p;
}

fx_node *const *fx_graph_captures(const fx_graph *region, int *n) {
    *n = region->n_captured;
    return region->captured;
}

/* Compacts nodes[]: parameters, then what is live. */
static fx_status renumber(fx_graph *g, bool prune) {
    size_t n = (size_t)g->n_node;
    fx_node **order = malloc(sizeof *order * (n + 1));
    unsigned char *live = calloc(n + 1, 1);
    if (!order || !live) {
        free(order);
        free(live);
        no_memory(g);
        return FX_OUT_OF_MEMORY;
    }
    for (int i = 0; i < g->n_result; i++)
        live[g->results[i]->id] = 1;
    for (int i = g->n_node - 1; i >= 0; i--)
        if (live[i] || !prune)
            for (int j = 0; j < g->nodes[i]->n_in; j++)
                live[g->nodes[i]->in[j]->id] = 1;
    int k = 0;
    for (int i = 0; i < g->n_param; i++)
        order[k++] = g->params[i];
    for (int i = 0; i < g->n_node; i++) {
        fx_node *m = g->nodes[i];
        if (m->op == FX_OP_parameter)
            continue;
        if (live[i] || !prune)
            order[k++] = m;
        else
            for (int j = 0; j < m->n_region; j++)
                fx_graph_unref(m->region[j]);
    }
    for (int i = 0; i < k; i++)
        order[i]->id = (uint32_t)i;
    free(g->nodes);
    free(live);
    g->nodes = order;
    g->n_node = k;
    g->cap_node = (int)n + 1;
    return FX_OK;
}

fx_status fx_graph_finish(fx_graph *g, int n, fx_node *const *results, bool prune) {
    if (g->finished)
        return fx_fail(FX_INVALID_ARGUMENT, "finishing a graph; expected an open one; got one that is finished");
    fx_node **r = FX_ARENA_ARRAY(&g->arena, fx_node *, n > 0 ? n : 1);
    if (!r)
        no_memory(g);
    for (int i = 0; i < n && g->status == FX_OK; i++) {
        r[i] = fx_graph_capture(g, results[i]);
        if (!r[i])
            fx_graph_error(g, FX_INVALID_ARGUMENT, "result %d; expected a value; got none", i);
        else if (r[i]->spec.dtype == FX_TUPLE)
            fx_graph_error(g, FX_INVALID_ARGUMENT, "result %d; expected an array; got the tuple of a %s", i,
                           fx_op_get(r[i]->op)->name);
    }
    if (g->status == FX_OK) {
        g->results = r;
        g->n_result = n;
        if (renumber(g, prune) != FX_OK)
            g->n_result = 0;
    }
    fx_cons_free(g->cons);
    g->cons = NULL;
    g->parent = NULL;
    uint64_t h = fx_hash_mix((uint64_t)g->n_param, (uint64_t)g->n_result);
    for (int i = 0; i < g->n_param; i++)
        h = fx_hash_mix(h, g->params[i]->hash);
    for (int i = 0; i < g->n_result; i++)
        h = fx_hash_mix(h, g->results[i]->hash);
    g->hash = h;
    g->finished = true;
    return g->status == FX_OK ? FX_OK : fx_fail(g->status, "%s", g->error);
}

uint64_t fx_graph_hash(const fx_graph *g) {
    return g->hash;
}

fx_status fx_graph_share_captures(int n, fx_graph *const *regions, int at, fx_graph **out, int *n_captured,
                                  fx_node *const **captured) {
    int total = 0, k = 0;
    fx_node **all = NULL, **args = NULL;
    fx_status status = FX_OK;
    memset(out, 0, sizeof *out * (size_t)n);
    *n_captured = 0;
    *captured = NULL;
    for (int i = 0; i < n; i++)
        total += regions[i]->n_captured;
    if (!total) {
        for (int i = 0; i < n; i++)
            out[i] = fx_graph_ref(regions[i]);
        return FX_OK;
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < regions[i]->n_captured; j++) {
            fx_node *c = regions[i]->captured[j];
            if (!all && !(all = FX_ARENA_ARRAY(&c->graph->arena, fx_node *, total)))
                return fx_fail_oom(sizeof *all * (size_t)total);
            int m = 0;
            while (m < k && all[m] != c)
                m++;
            if (m == k)
                all[k++] = c;
        }
    for (int i = 0; i < n && status == FX_OK; i++) {
        const fx_graph *src = regions[i];
        int own = src->n_param - src->n_captured;
        fx_graph *g = out[i] = fx_graph_new(NULL);
        fx_node **a = realloc(args, sizeof *a * (size_t)(own + k + src->n_param + src->n_result));
        args = a ? a : args; /* the new parameters, then the arguments in the old order, then the results */
        if (!g || !a) {
            status = fx_fail_oom(sizeof *a);
            break;
        }
        for (int p = 0; p < own + k; p++)
            a[p] = fx_graph_param(g, p < at       ? &src->params[p]->spec
                                     : p < at + k ? &all[p - at]->spec
                                                  : &src->params[p - k]->spec);
        fx_node **old = a + own + k, **results = old + src->n_param;
        for (int p = 0; p < own; p++)
            old[p] = a[p < at ? p : p + k];
        for (int j = 0; j < src->n_captured; j++) {
            int m = 0;
            while (all[m] != src->captured[j])
                m++;
            old[own + j] = a[at + m];
        }
        status = fx_graph_inline(g, src, old, results);
        if (status == FX_OK)
            status = fx_graph_finish(g, src->n_result, results, true);
    }
    free(args);
    for (int i = 0; i < n && status != FX_OK; i++) {
        fx_graph_unref(out[i]);
        out[i] = NULL;
    }
    *n_captured = k;
    *captured = all;
    return status;
}
