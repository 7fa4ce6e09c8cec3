/* simplify.c - rebuilds a graph, live nodes only, applying rules.def, folding constants and dropping what control flow
 * computes in vain, until a pass changes nothing. Regions are simplified like graphs. Equal subexpressions become one
 * node because fx_build interns. */
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/rules.h"

enum { MAX_PASSES = 8, MAX_DEPTH = 200 };

typedef struct pass {
    const fx_rules *rules;
    const fx_graph *from;
    fx_graph *to;
    fx_node **map; /* by id in from */
    bool *live;
    bool **used; /* of a live tuple node: which results are projected */
    int **place; /* of a rebuilt control node: old result -> new */
    int *fired;
    int depth;
} pass;

static fx_status simplify(const fx_rules *rules, const fx_graph *g, fx_graph **out, int *fired, int depth);

static bool mark(pass *p) {
    const fx_graph *g = p->from;
    for (int i = 0; i < g->n_result; i++)
        p->live[g->results[i]->id] = true;
    for (int i = g->n_node - 1; i >= 0; i--) {
        const fx_node *n = g->nodes[i];
        if (!p->live[i])
            continue;
        for (int j = 0; j < n->n_in; j++)
            p->live[n->in[j]->id] = true;
        if (n->op != FX_OP_project)
            continue;
        const fx_node *t = n->in[0];
        if (!p->used[t->id] && !(p->used[t->id] = calloc((size_t)t->n_result, 1)))
            return false;
        p->used[t->id][FX_GET_INT(n, index)] = true;
    }
    return true;
}

static fx_node *rebuild_control(pass *p, const fx_node *n, fx_node **in) {
    fx_graph **region = calloc((size_t)n->n_region, sizeof(fx_graph *));
    int *place = malloc(sizeof *place * (size_t)(n->n_result + 1));
    fx_node *made = NULL;
    fx_status status = region && place ? FX_OK : fx_fail_oom((size_t)n->n_region);
    p->place[n->id] = place;
    for (int i = 0; status == FX_OK && i < n->n_region; i++)
        status = simplify(p->rules, n->region[i], &region[i], p->fired, p->depth + 1);
    if (status != FX_OK)
        fx_graph_error(p->to, status, "%s", fx_last_error());
    else
        made = p->used[n->id] ? fx_trim_control(p->to, n, in, region, p->used[n->id], place)
                              : fx_build(p->to, n->op, n->n_in, in, n->n_attr, n->attr, n->n_region, region);
    for (int i = 0; region && i < n->n_region; i++)
        fx_graph_unref(region[i]);
    free(region);
    return made;
}

/* Arrays without elements need no computing. */
static bool is_empty(const fx_node *n) {
    return n->op != FX_OP_parameter && n->op != FX_OP_constant && n->spec.dtype != FX_TUPLE &&
           fx_spec_count(&n->spec) == 0;
}

static fx_node *rebuild(pass *p, const fx_node *n, fx_node **in) {
    const char *file, *scope = p->to->scope;
    int line;
    fx_node *made;
    if (is_empty(n))
        return fx_b_zeros(p->to, &n->spec);
    if (n->n_region) {
        fx_location_get(&file, &line);
        fx_location_set(n->file, n->line);
        p->to->scope = n->scope ? fx_arena_strdup(&p->to->arena, n->scope) : NULL;
        made = rebuild_control(p, n, in);
        p->to->scope = scope;
        fx_location_set(file, line);
    } else if (n->op == FX_OP_project && p->place[n->in[0]->id])
        made = fx_result(in[0], p->place[n->in[0]->id][FX_GET_INT(n, index)]);
    else
        made = fx_node_rebuild(p->to, n, in);
    if (made)
        made = fx_rules_apply(p->rules, p->to, made, p->fired);
    fx_node *c = made ? fx_fold_constant(p->to, made) : NULL;
    return c ? c : made;
}

static void run(pass *p) {
    const fx_graph *g = p->from;
    fx_node **in = NULL;
    int cap = 0;
    for (int i = 0; i < g->n_node && p->to->status == FX_OK; i++) {
        const fx_node *n = g->nodes[i];
        if (n->op == FX_OP_parameter)
            p->map[i] = fx_graph_param(p->to, &n->spec);
        if (n->op == FX_OP_parameter || !p->live[i])
            continue;
        if (n->n_in > cap) {
            cap = n->n_in;
            fx_node **more = realloc(in, sizeof *in * (size_t)cap);
            if (!more) {
                fx_graph_error(p->to, FX_OUT_OF_MEMORY, "host memory ran out");
                break;
            }
            in = more;
        }
        for (int j = 0; j < n->n_in; j++)
            in[j] = p->map[n->in[j]->id];
        p->map[i] = rebuild(p, n, in);
    }
    free(in);
}

static fx_status one_pass(const fx_rules *rules, const fx_graph *g, fx_graph **out, int *fired, int depth) {
    size_t n = (size_t)g->n_node + 1;
    pass p = {rules,
              g,
              fx_graph_new(NULL),
              calloc(n, sizeof(fx_node *)),
              calloc(n, sizeof(bool)),
              calloc(n, sizeof(bool *)),
              calloc(n, sizeof(int *)),
              fired,
              depth};
    fx_node **results = malloc(sizeof *results * (size_t)(g->n_result + 1));
    fx_status status = FX_OK;
    if (!p.to || !p.map || !p.live || !p.used || !p.place || !results || !mark(&p))
        status = fx_fail_oom(n * sizeof *p.map);
    else {
        run(&p);
        for (int i = 0; i < g->n_result; i++)
            results[i] = p.map[g->results[i]->id];
        status = fx_graph_finish(p.to, g->n_result, results, true);
    }
    for (size_t i = 0; i < n; i++) {
        if (p.used)
            free(p.used[i]);
        if (p.place)
            free(p.place[i]);
    }
    free(p.map);
    free(p.live);
    free(p.used);
    free(p.place);
    free(results);
    *out = status == FX_OK ? p.to : NULL;
    if (status != FX_OK)
        fx_graph_unref(p.to);
    return status;
}

static fx_status simplify(const fx_rules *rules, const fx_graph *g, fx_graph **out, int *fired, int depth) {
    fx_graph *now = fx_graph_ref((fx_graph *)g);
    *out = NULL;
    if (depth > MAX_DEPTH) {
        *out = now; /* deeper regions stay as they are */
        return FX_OK;
    }
    for (int i = 0; i < MAX_PASSES; i++) {
        fx_graph *next;
        fx_status status = one_pass(rules, now, &next, fired, depth);
        if (status != FX_OK) {
            fx_graph_unref(now);
            return status;
        }
        bool same = fx_graph_equal(now, next);
        fx_graph_unref(now);
        now = next;
        if (same)
            break;
    }
    *out = now;
    return FX_OK;
}

fx_status fx_graph_simplify_counted(const fx_graph *g, fx_graph **out, int *fired) {
    fx_rules *rules;
    *out = NULL;
    if (!g->finished || g->status != FX_OK)
        return fx_fail(FX_INVALID_ARGUMENT, "simplifying a graph; expected a finished one without errors");
    FX_TRY(fx_rules_create(&rules));
    fx_status status = simplify(rules, g, out, fired, 0);
    fx_rules_destroy(rules);
    return status;
}

fx_status fx_graph_simplify(const fx_graph *g, fx_graph **out) {
    return fx_graph_simplify_counted(g, out, NULL);
}
