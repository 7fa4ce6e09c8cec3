/* gen_check.c - inputs and comparison for random programs, and the shrinker. See gen.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "core/graph/eval.h"
#include "tests/gen.h"

static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void *gen_input(const fx_spec *spec, uint64_t seed, int index) {
    int64_t n = fx_spec_count(spec);
    void *data = fx_eval_alloc(n, fx_dtype_size(spec->dtype));
    fx_lane_kind k = fx_lane_kind_of(spec->dtype);
    for (int64_t i = 0; data && i < n; i++) {
        uint64_t r = mix(seed + 0x9e3779b97f4a7c15u * (uint64_t)(index * 100003 + i + 1));
        fx_lane v = {.s = (int64_t)(r % 17) - 8};
        if (k == FX_LANE_F)
            v.f = (double)((int64_t)(r % 33) - 16) / 4;
        else if (k == FX_LANE_U)
            v.u = spec->dtype == FX_BOOL ? r & 1 : r % 17;
        fx_lane_store(spec->dtype, data, i, 1, 1, &v);
    }
    return data;
}

double gen_tolerance(fx_dtype d) {
    return d == FX_F64 ? 1e-9 : d == FX_F32 ? 2e-3 : d == FX_F16 ? 0.1 : 0.4;
}

int64_t gen_compare(const fx_spec *spec, const void *got, const void *want, double tolerance) {
    int64_t n = fx_spec_count(spec);
    bool floats = fx_dtype_is_float(spec->dtype);
    double largest = 0;
    fx_lane a, b;
    for (int64_t i = 0; floats && i < n; i++) {
        fx_lane_load(spec->dtype, want, i, 1, 1, &b);
        largest = isfinite(b.f) ? fmax(largest, fabs(b.f)) : largest;
    }
    for (int64_t i = 0; i < n; i++) {
        fx_lane_load(spec->dtype, got, i, 1, 1, &a);
        fx_lane_load(spec->dtype, want, i, 1, 1, &b);
        bool same = floats ? isnan(b.f)   ? isnan(a.f)
                             : isinf(b.f) ? a.f == b.f
                                          : fabs(a.f - b.f) <= tolerance * (1 + largest)
                           : a.u == b.u;
        if (!same)
            return i;
    }
    return -1;
}

typedef struct buffers {
    int n;
    void **p;
} buffers;

static void buffers_free(buffers *b) {
    for (int i = 0; b->p && i < b->n; i++)
        free(b->p[i]);
    free(b->p);
}

static buffers results_new(const fx_graph *g) {
    buffers b = {g->n_result, calloc((size_t)g->n_result + 1, sizeof(void *))};
    for (int i = 0; b.p && i < b.n; i++) {
        size_t bytes = fx_eval_bytes(&g->results[i]->spec);
        b.p[i] = malloc(bytes + 1);
        if (b.p[i])
            memset(b.p[i], 0xad, bytes + 1);
    }
    return b;
}

static char *describe(const fx_graph *g, int r, int64_t at, const void *got, const void *want) {
    char *text = malloc(300);
    const fx_spec *s = &g->results[r]->spec;
    char name[120];
    if (text)
        snprintf(text, 300, "result %d, %s, element %lld: got %.9g, want %.9g", r, fx_spec_format(s, name, sizeof name),
                 (long long)at, fx_element_load(s->dtype, (const char *)got + (size_t)at * fx_dtype_size(s->dtype)),
                 fx_element_load(s->dtype, (const char *)want + (size_t)at * fx_dtype_size(s->dtype)));
    return text;
}

/* Narrow floats anywhere in a graph loosen the comparison of all its results. */
static double loosest(const fx_graph *g) {
    double t = 0;
    for (int i = 0; i < g->n_node; i++) {
        const fx_node *n = g->nodes[i];
        if (fx_dtype_is_float(n->spec.dtype))
            t = fmax(t, gen_tolerance(n->spec.dtype));
        for (int k = 0; k < n->n_region; k++)
            t = fmax(t, loosest(n->region[k]));
    }
    return t;
}

char *gen_check(const fx_graph *g, uint64_t seed, gen_run run, void *self) {
    buffers args = {g->n_param, calloc((size_t)g->n_param + 1, sizeof(void *))}, got = results_new(g),
            want = results_new(g);
    char *text = NULL;
    for (int i = 0; args.p && i < args.n; i++)
        args.p[i] = gen_input(&g->params[i]->spec, seed, i);
    fx_status a = fx_graph_eval(g, (const void *const *)args.p, want.p);
    fx_status b = a == FX_OK ? run(self, g, (const void *const *)args.p, got.p) : a;
    if (a != FX_OK || b != FX_OK) {
        text = malloc(600);
        if (text)
            snprintf(text, 600, "%s: %s: %s", a == FX_OK ? "run" : "evaluator", fx_status_name(b), fx_last_error());
    }
    double tolerance = loosest(g);
    for (int i = 0; !text && i < g->n_result; i++) {
        int64_t at = gen_compare(&g->results[i]->spec, got.p[i], want.p[i], tolerance);
        if (at >= 0)
            text = describe(g, i, at, got.p[i], want.p[i]);
    }
    buffers_free(&args);
    buffers_free(&got);
    buffers_free(&want);
    return text;
}

/* ---- shrinking ---- */

typedef enum edit_kind {
    EDIT_RESULT,
    EDIT_LIFT,
    EDIT_OPERAND,
    EDIT_PARAM,
    EDIT_ZERO,
    EDIT_SIZE,
    EDIT_UNUSED
} edit_kind;

typedef struct edit {
    edit_kind kind;
    int node, operand; /* EDIT_RESULT: node is the result that stays; EDIT_LIFT: the one that becomes its operand */
    int64_t from, to;  /* EDIT_SIZE: every size `from` becomes `to` */
} edit;

static int64_t resize(const edit *e, int64_t v) {
    return e->kind == EDIT_SIZE && v == e->from ? e->to : v;
}

/* The node again, its lists of sizes changed. */
static fx_node *again(fx_graph *g, const fx_node *n, fx_node *const *in, const edit *e) {
    fx_attr attrs[FX_ATTR_COUNT];
    int64_t lists[FX_ATTR_COUNT][FX_MAX_RANK];
    if (e->kind != EDIT_SIZE)
        return fx_node_rebuild(g, n, in);
    for (int i = 0; i < n->n_attr; i++) {
        fx_attr_id id = n->attr[i].id;
        bool sizes = id == FX_ATTR_shape || id == FX_ATTR_limit || id == FX_ATTR_slice_sizes || id == FX_ATTR_window;
        attrs[i] = n->attr[i];
        if (id == FX_ATTR_length)
            attrs[i].u.i = resize(e, attrs[i].u.i);
        if (!sizes)
            continue;
        for (int k = 0; k < attrs[i].count; k++)
            lists[i][k] = resize(e, attrs[i].u.list[k]);
        attrs[i].u.list = lists[i];
    }
    return fx_build(g, n->op, n->n_in, in, n->n_attr, attrs, n->n_region, n->region);
}

/* What computes n: the op behind a projection. */
static const fx_node *source(const fx_node *n) {
    return n->op == FX_OP_project ? n->in[0] : n;
}

static bool used(const fx_graph *g, const fx_node *p) {
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] == p)
                return true;
    for (int i = 0; i < g->n_result; i++)
        if (g->results[i] == p)
            return true;
    return false;
}

static fx_node *replacement(fx_graph *g, const fx_node *n, fx_node *const *map, fx_node *const *in, const edit *e) {
    fx_spec s = n->spec;
    for (int d = 0; d < s.rank; d++)
        s.dims[d] = resize(e, s.dims[d]);
    if (n->op == FX_OP_parameter)
        return e->kind == EDIT_UNUSED && !used(n->graph, n) ? NULL : fx_graph_param(g, &s);
    if ((int)n->id == e->node && e->kind == EDIT_OPERAND)
        return map[n->in[e->operand]->id];
    if ((int)n->id == e->node && e->kind == EDIT_ZERO)
        return fx_b_zeros(g, &n->spec);
    if ((int)n->id == e->node && e->kind == EDIT_PARAM)
        return NULL; /* made first, among the parameters */
    return again(g, n, in, e);
}

/* g with an edit applied, or NULL when that isn't a valid graph. */
static fx_graph *apply(const fx_graph *g, const edit *e) {
    fx_graph *c = fx_graph_new(NULL);
    fx_node **map = calloc((size_t)g->n_node + 1, sizeof *map), **in = calloc(4096, sizeof *in), **results = NULL;
    bool ok = c && map && in;
    for (int i = 0; ok && i < g->n_param; i++)
        map[g->params[i]->id] = replacement(c, g->params[i], map, in, e);
    if (ok && e->kind == EDIT_PARAM)
        map[e->node] = fx_graph_param(c, &g->nodes[e->node]->spec);
    for (int i = 0; ok && i < g->n_node; i++) {
        const fx_node *n = g->nodes[i];
        if (n->op == FX_OP_parameter || map[i] || n->n_in > 4096)
            continue;
        for (int k = 0; k < n->n_in; k++)
            in[k] = map[n->in[k]->id];
        map[i] = replacement(c, n, map, in, e);
        ok = map[i] && c->status == FX_OK;
    }
    results = calloc((size_t)g->n_result + 1, sizeof *results);
    int n_result = 0;
    for (int i = 0; ok && results && i < g->n_result; i++)
        if (e->kind != EDIT_RESULT || i == e->node)
            results[n_result++] = e->kind == EDIT_LIFT && i == e->node ? map[source(g->results[i])->in[e->operand]->id]
                                                                       : map[g->results[i]->id];
    if (!ok || !results || fx_graph_finish(c, n_result, results, true) != FX_OK) {
        fx_graph_unref(c);
        c = NULL;
    }
    free(map);
    free(in);
    free(results);
    return c;
}

static int64_t weight(const fx_graph *g) {
    int64_t w = g->n_result + g->n_param;
    for (int i = 0; i < g->n_node; i++) {
        const fx_node *n = g->nodes[i];
        int64_t count = n->spec.dtype == FX_TUPLE ? 0 : fx_spec_count(&n->spec);
        w += (n->op == FX_OP_parameter ? 2 : n->op == FX_OP_constant ? 3 : 100) * 1000 + (count < 1000 ? count : 1000);
        for (int k = 0; k < n->n_region; k++)
            w += weight(n->region[k]);
    }
    return w;
}

/* Replaces *g when the edit gives a lighter graph that still fails. */
static bool attempt(fx_graph **g, edit e, gen_predicate fails, void *user) {
    fx_graph *c = apply(*g, &e);
    bool better = c && weight(c) < weight(*g) && fails(c, user);
    if (better) {
        fx_graph_unref(*g);
        *g = c;
    } else {
        fx_graph_unref(c);
    }
    return better;
}

static bool shrink_node(fx_graph **g, int i, gen_predicate fails, void *user) {
    const fx_node *n = (*g)->nodes[i];
    if (n->op == FX_OP_parameter || n->spec.dtype == FX_TUPLE)
        return false;
    for (int k = 0; k < n->n_in; k++)
        if (fx_spec_equal(&n->in[k]->spec, &n->spec) && attempt(g, (edit){EDIT_OPERAND, i, k, 0, 0}, fails, user))
            return true;
    return attempt(g, (edit){EDIT_PARAM, i, 0, 0, 0}, fails, user) ||
           (n->op != FX_OP_constant && attempt(g, (edit){EDIT_ZERO, i, 0, 0, 0}, fails, user));
}

static bool shrink_once(fx_graph **g, gen_predicate fails, void *user) {
    for (int i = 0; (*g)->n_result > 1 && i < (*g)->n_result; i++)
        if (attempt(g, (edit){EDIT_RESULT, i, 0, 0, 0}, fails, user))
            return true;
    for (int i = 0; i < (*g)->n_result; i++)
        for (int k = 0; k < source((*g)->results[i])->n_in; k++)
            if (attempt(g, (edit){EDIT_LIFT, i, k, 0, 0}, fails, user))
                return true;
    for (int i = (*g)->n_node; i-- > 0;)
        if (shrink_node(g, i, fails, user))
            return true;
    for (int i = 0; i < (*g)->n_param; i++)
        for (int d = 0; d < (*g)->params[i]->spec.rank; d++) {
            int64_t size = (*g)->params[i]->spec.dims[d];
            for (int64_t to = 1; to < size; to = to * 2 < size - 1 || to == size - 1 ? to * 2 : size - 1)
                if (attempt(g, (edit){EDIT_SIZE, -1, 0, size, to}, fails, user))
                    return true;
        }
    return attempt(g, (edit){EDIT_UNUSED, -1, 0, 0, 0}, fails, user);
}

fx_graph *gen_shrink(fx_graph *g, gen_predicate fails, void *user) {
    fx_graph *best = fx_graph_ref(g);
    while (shrink_once(&best, fails, user))
        ;
    return best;
}
