/* fuse.c - groups: every stored value starts as a kernel of its own, then kernels merge while a dry run says
 * that one kernel can do the work of both and no cycle arises; at last, what only its own kernel reads is
 * no longer stored.
 *
 * Order of merging: products take their epilogues, reductions their neighbours along rows, pointwise
 * kernels each other; then siblings that read the same arrays. */
#include "core/compile/fuse.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/compile/fuse_graph.h"

enum { MAX_OUT = 24, MAX_INNER = 12 };

typedef struct part {
    fx_group_kind kind;
    int n_out, n_inner;
    fx_value out[MAX_OUT];
    fx_node *inner[MAX_INNER];
    int64_t cols[MAX_OUT];
    int n_dep, cap_dep, n_inner_dep; /* the first n_inner_dep are (also) read below the inner nodes */
    int *dep;                        /* values that it reads, by value id; unique */
    int mark;
    bool dead;
    bool update; /* an optimizer's: a parameter's new value, elementwise; not to be mixed into other kernels */
} part;

typedef struct fuser {
    fx_graph *g;
    fx_values *vs;
    const fx_device_caps *caps;
    part *parts;
    int n_part;
    int *owner; /* by value id: the part that makes it, -1 */
    int *seen;  /* by value id: stamp of the latest walk */
    int stamp;
    bool *needed;   /* by node */
    double *size;   /* by value id: elements */
    bool *is_param; /* by value id */
    bool failed;
} fuser;

/* ---- what a part reads ---- */

static void add_dep(fuser *f, part *p, int value) {
    if (p->n_dep == p->cap_dep) {
        int cap = p->cap_dep ? 2 * p->cap_dep : 8;
        int *d = realloc(p->dep, sizeof *d * (size_t)cap);
        if (!d) {
            f->failed = true;
            return;
        }
        p->dep = d;
        p->cap_dep = cap;
    }
    p->dep[p->n_dep++] = value;
}

static void walk(fuser *f, part *p, fx_node *n, bool root) {
    fx_value v = root ? (fx_value){n, 0} : fx_value_of(n);
    int id = fx_value_id(f->vs, v);
    if (f->seen[id] == f->stamp)
        return;
    f->seen[id] = f->stamp;
    if (!root && f->vs->buffer[id] >= 0 && (f->owner[id] < 0 || &f->parts[f->owner[id]] != p)) {
        add_dep(f, p, id);
        return;
    }
    for (int j = 0; j < v.node->n_in; j++)
        walk(f, p, v.node->in[j], false);
}

static void find_deps(fuser *f, part *p) {
    p->n_dep = 0;
    f->stamp++;
    for (int i = 0; i < p->n_inner; i++)
        walk(f, p, p->inner[i], true);
    p->n_inner_dep = p->n_dep;
    for (int i = 0; i < p->n_out; i++)
        walk(f, p, p->out[i].node, true);
}

/* ---- order ---- */

/* Is `to` reachable from `from` against the dependences, through parts other than skip? */
static bool reaches(fuser *f, int from, int to, int skip) {
    part *p = &f->parts[from];
    for (int i = 0; i < p->n_dep; i++) {
        int o = f->owner[p->dep[i]];
        if (o < 0 || o == from || o == skip || f->parts[o].mark == f->stamp)
            continue;
        if (o == to)
            return true;
        f->parts[o].mark = f->stamp;
        if (reaches(f, o, to, skip))
            return true;
    }
    return false;
}

/* Would one kernel in the place of a and b need its own result through a third? */
static bool cyclic(fuser *f, int a, int b) {
    for (int way = 0; way < 2; way++) {
        int from = way ? b : a, to = way ? a : b;
        part *p = &f->parts[from];
        f->stamp++;
        for (int i = 0; i < p->n_dep; i++) {
            int o = f->owner[p->dep[i]];
            if (o < 0 || o == to || o == from || f->parts[o].mark == f->stamp)
                continue;
            f->parts[o].mark = f->stamp;
            if (reaches(f, o, to, from))
                return true;
        }
    }
    return false;
}

/* ---- merging ---- */

static int by_id(const void *a, const void *b) {
    const fx_node *x = *(fx_node *const *)a, *y = *(fx_node *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}
static int by_value(const void *a, const void *b) {
    const fx_value *x = a, *y = b;
    return x->node->id != y->node->id ? (x->node->id > y->node->id) - (x->node->id < y->node->id)
                                      : x->result - y->result;
}

/* The union as a part in *m, if a kernel of some kind can be it. */
static bool unite(fuser *f, const part *a, const part *b, part *m) {
    if (a->n_out + b->n_out > MAX_OUT || a->n_inner + b->n_inner > MAX_INNER)
        return false;
    memset(m, 0, sizeof *m);
    m->n_out = a->n_out + b->n_out;
    memcpy(m->out, a->out, sizeof *a->out * (size_t)a->n_out);
    memcpy(m->out + a->n_out, b->out, sizeof *b->out * (size_t)b->n_out);
    m->n_inner = a->n_inner + b->n_inner;
    memcpy(m->inner, a->inner, sizeof *a->inner * (size_t)a->n_inner);
    memcpy(m->inner + a->n_inner, b->inner, sizeof *b->inner * (size_t)b->n_inner);
    qsort(m->out, (size_t)m->n_out, sizeof *m->out, by_value);
    qsort(m->inner, (size_t)m->n_inner, sizeof *m->inner, by_id);
    m->kind = a->kind > b->kind ? a->kind : b->kind;
    switch (m->kind) {
    case FX_GROUP_POINTWISE:
        return fx_fuse_fits_pointwise(f->vs, f->caps, m->n_out, m->out);
    case FX_GROUP_REDUCE:
        return fx_fuse_fits_rows(f->vs, f->caps, m->n_out, m->out, m->n_inner, m->inner, m->cols);
    case FX_GROUP_CONTRACT:
        return m->n_inner == 1 && fx_fuse_fits_contract(f->vs, f->caps, m->n_out, m->out, m->inner[0]);
    default:
        return false;
    }
}

static double reduced(const fx_node *n) {
    return (double)fx_spec_count(&n->in[0]->spec);
}

/* One lane team a row pays when there are enough rows, or little work. Few rows: reductions of one array only, and
 * nothing wide after them. */
static bool worth_rows(const part *m) {
    double rows = (double)fx_spec_count(&m->inner[0]->spec), wide = 1, all = 0;
    for (int i = 0; i < m->n_out; i++)
        wide = wide > (double)m->cols[i] ? wide : (double)m->cols[i];
    for (int i = 0; i < m->n_inner; i++)
        all += reduced(m->inner[i]);
    if (rows >= 32 || all + rows * wide <= 32768)
        return true;
    for (int i = 1; i < m->n_inner; i++)
        if (!fx_spec_equal(&m->inner[i]->in[0]->spec, &m->inner[0]->in[0]->spec))
            return false;
    return wide == 1;
}

/* Is p one sum (or other reduction) of a large array to a scalar, and nothing else? Several share launches. */
static bool is_total(const part *p) {
    return p->kind == FX_GROUP_REDUCE && !p->dead && p->n_inner == 1 && p->n_out == 1 &&
           p->out[0].node == p->inner[0] && fx_spec_count(&p->inner[0]->spec) == 1 && reduced(p->inner[0]) >= 256;
}

static bool reads_totals(const fuser *f, const part *p, int most) {
    int n = 0;
    for (int i = 0; i < p->n_dep; i++)
        n += f->owner[p->dep[i]] >= 0 && is_total(&f->parts[f->owner[p->dep[i]]]);
    return n > most;
}

static bool merge(fuser *f, int ia, int ib) {
    part *a = &f->parts[ia], *b = &f->parts[ib], m;
    if (a->kind > FX_GROUP_CONTRACT || b->kind > FX_GROUP_CONTRACT || a->update != b->update || cyclic(f, ia, ib) ||
        !unite(f, a, b, &m))
        return false;
    m.update = a->update;
    if ((is_total(a) && reads_totals(f, b, 1)) || (is_total(b) && reads_totals(f, a, 1)))
        return false;
    if (m.kind == FX_GROUP_REDUCE && !worth_rows(&m))
        return false;
    m.dep = a->dep;
    m.cap_dep = a->cap_dep;
    free(b->dep);
    memset(b, 0, sizeof *b);
    b->dead = true;
    *a = m;
    for (int i = 0; i < a->n_out; i++)
        f->owner[fx_value_id(f->vs, a->out[i])] = ia;
    find_deps(f, a);
    return true;
}

/* Merges consumers of one kind into the parts that make what they read, until nothing changes. */
static void vertical(fuser *f, fx_group_kind producer, fx_group_kind consumer) {
    for (bool again = true; again && !f->failed;) {
        again = false;
        for (int b = 0; b < f->n_part; b++) {
            if (f->parts[b].dead || f->parts[b].kind != consumer)
                continue;
            for (int i = 0; i < f->parts[b].n_dep; i++) {
                int a = f->owner[f->parts[b].dep[i]];
                if (a < 0 || a == b || f->parts[a].kind != producer)
                    continue;
                /* the product or reduction keeps its place unless a pointwise part leads into it */
                if (merge(f, a, b)) {
                    again = true;
                    break;
                }
            }
        }
    }
}

static bool share_input(fuser *f, const part *a, const part *b, double least) {
    for (int i = 0; i < a->n_dep; i++)
        for (int j = 0; j < b->n_dep; j++)
            if (a->dep[i] == b->dep[j] && f->size[a->dep[i]] >= least)
                return true;
    return false;
}

static bool same_domain(const part *a, const part *b) {
    const fx_spec *x = &a->inner[0]->in[0]->spec, *y = &b->inner[0]->in[0]->spec;
    return fx_spec_count(x) == fx_spec_count(y) &&
           fx_spec_count(&a->inner[0]->spec) == fx_spec_count(&b->inner[0]->spec);
}

static void siblings(fuser *f, fx_group_kind kind) {
    for (int a = 0; a < f->n_part && !f->failed; a++)
        for (int b = a + 1; b < f->n_part && !f->parts[a].dead; b++) {
            part *x = &f->parts[a], *y = &f->parts[b];
            if (x->kind != kind || y->kind != kind || y->dead || (kind == FX_GROUP_REDUCE && !same_domain(x, y)))
                continue;
            fx_value v = x->out[0];
            double least = kind == FX_GROUP_REDUCE ? (double)fx_spec_count(&x->inner[0]->in[0]->spec)
                                                   : (double)fx_spec_count(fx_value_spec(v));
            if (share_input(f, x, y, least / 2))
                merge(f, a, b);
        }
}

/* ---- the passes ---- */

static fx_status seed(fuser *f) {
    for (int i = 0; i < f->g->n_node; i++) {
        fx_node *n = f->g->nodes[i];
        fx_fuse_class c = fx_fuse_classify(n);
        int n_out = fx_result_count(n);
        if (f->vs->buffer[f->vs->base[i]] < 0 || c == FX_FUSE_ALIAS)
            continue;
        if (c == FX_FUSE_LEAF && (n->op == FX_OP_parameter || !fx_fuse_is_splat(n) || fx_spec_count(&n->spec) == 1))
            continue;
        if (n_out > MAX_OUT)
            n_out = MAX_OUT; /* only control flow: groups for it take the results from the node */
        part *p = &f->parts[f->n_part];
        p->kind = c == FX_FUSE_REDUCE                        ? FX_GROUP_REDUCE
                  : c == FX_FUSE_DOT                         ? FX_GROUP_CONTRACT
                  : c == FX_FUSE_OPAQUE || c == FX_FUSE_LOOP ? FX_GROUP_SPECIAL
                  : c == FX_FUSE_CONTROL                     ? FX_GROUP_CONTROL
                                                             : FX_GROUP_POINTWISE;
        p->n_out = n_out;
        for (int r = 0; r < fx_result_count(n); r++) {
            if (r < n_out)
                p->out[r] = (fx_value){n, r};
            f->owner[f->vs->base[i] + r] = f->n_part;
            p->cols[r < n_out ? r : 0] = 1;
        }
        if (p->kind != FX_GROUP_POINTWISE) {
            p->n_inner = 1;
            p->inner[0] = n;
        }
        f->n_part++;
    }
    for (int i = 0; i < f->n_part; i++)
        find_deps(f, &f->parts[i]);
    return f->failed ? fx_fail_oom(0) : FX_OK;
}

enum { FEWEST_UPDATES = 3 };

/* Marks the parts of an optimizer: pointwise results that depend on a parameter of their size and that only such
 * parts read, when there are several. Left alone they can be updated in place, many of them in one launch. */
static void find_updates(fuser *f) {
    int n = 0;
    for (int i = 0; i < f->n_part; i++) {
        part *p = &f->parts[i];
        p->update = p->kind == FX_GROUP_POINTWISE;
        bool reads_param = false;
        for (int j = 0; j < p->n_out; j++)
            p->update &= f->needed[p->out[j].node->id];
        for (int j = 0; j < p->n_dep && p->update && !reads_param; j++)
            if (f->owner[p->dep[j]] < 0 && f->size[p->dep[j]] == f->size[fx_value_id(f->vs, p->out[0])])
                reads_param = f->is_param[p->dep[j]];
        p->update &= reads_param;
    }
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < f->n_part; i++)
            for (int j = 0; j < f->parts[i].n_dep && !f->parts[i].update; j++) {
                int o = f->owner[f->parts[i].dep[j]];
                if (o >= 0 && f->parts[o].update) {
                    f->parts[o].update = false;
                    again = true;
                }
            }
    }
    for (int i = 0; i < f->n_part; i++)
        n += f->parts[i].update;
    for (int i = f->n_part - 1; i >= 0; i--) { /* and what is computed for them alone: a clipped gradient */
        part *p = &f->parts[i];
        int readers = 0;
        bool only = p->kind == FX_GROUP_POINTWISE && !p->update && !f->needed[p->out[0].node->id];
        for (int j = 0; j < f->n_part && only; j++)
            for (int d = 0; d < f->parts[j].n_dep && only; d++)
                if (f->owner[f->parts[j].dep[d]] == i) {
                    readers++;
                    only = f->parts[j].update &&
                           f->size[f->parts[j].dep[d]] == f->size[fx_value_id(f->vs, f->parts[j].out[0])];
                }
        p->update |= only && readers;
    }
    for (int i = 0; i < f->n_part && n < FEWEST_UPDATES; i++)
        f->parts[i].update = false;
}

/* What only its own part reads need not be stored. */
static void drop(fuser *f) {
    bool *read = calloc((size_t)f->vs->count + 1, sizeof *read);
    if (!read) {
        f->failed = true;
        return;
    }
    for (int i = 0; i < f->n_part; i++)
        for (int j = 0; j < f->parts[i].n_dep && !f->parts[i].dead; j++)
            if (f->owner[f->parts[i].dep[j]] != i)
                read[f->parts[i].dep[j]] = true;
    for (int i = 0; i < f->n_part; i++) {
        part *p = &f->parts[i];
        int n = 0;
        for (int j = 0; j < p->n_out && p->kind <= FX_GROUP_CONTRACT; j++) {
            int id = fx_value_id(f->vs, p->out[j]);
            if (read[id] || f->needed[p->out[j].node->id]) {
                p->cols[n] = p->cols[j];
                p->out[n++] = p->out[j];
            } else
                f->vs->buffer[id] = -1;
        }
        if (p->kind <= FX_GROUP_CONTRACT && !p->dead)
            p->n_out = n;
    }
    free(read);
}

/* ---- second thoughts ---- */

typedef struct chain {
    int n_leaf, leaf[16]; /* values in memory */
    int n_small;
    fx_value small[4]; /* reductions that would have to be stored */
    double work;
    bool bad;
} chain;

/* What it takes to compute v anew, elsewhere: stored values below it, small reductions of its own kernel, work. */
static void follow(fuser *f, fx_node *n, bool root, double count, chain *c) {
    fx_value v = fx_value_of(n);
    int id = fx_value_id(f->vs, v);
    double share = (double)fx_spec_count(fx_value_spec(v)) / count;
    if (f->seen[id] == f->stamp || c->bad)
        return;
    f->seen[id] = f->stamp;
    fx_fuse_class cl = fx_fuse_classify(v.node);
    if (!root && f->vs->buffer[id] >= 0) {
        if (c->n_leaf == 16)
            c->bad = true;
        else
            c->leaf[c->n_leaf++] = id;
        return;
    }
    if (cl == FX_FUSE_REDUCE && share <= 0.125 && c->n_small < 4) {
        c->small[c->n_small++] = v;
        return;
    }
    if (cl != FX_FUSE_EW && cl != FX_FUSE_VIEW && cl != FX_FUSE_LEAF)
        c->bad = true;
    if (cl == FX_FUSE_EW)
        c->work += fx_fuse_work(v.node) * (share < 1 ? share : 1);
    for (int j = 0; j < v.node->n_in; j++)
        follow(f, v.node->in[j], false, count, c);
}

static int find_dep(const part *p, int value) {
    for (int i = 0; i < p->n_dep; i++)
        if (p->dep[i] == value)
            return i;
    return -1;
}

/* Stops storing elementwise outputs that their readers may as well compute from what they read already. */
static void demote(fuser *f) {
    for (int a = 0; a < f->n_part && !f->failed; a++) {
        part *p = &f->parts[a];
        for (int j = 0; j < p->n_out && p->kind <= FX_GROUP_CONTRACT && !p->dead; j++) {
            fx_value v = p->out[j];
            int id = fx_value_id(f->vs, v);
            double count = (double)fx_spec_count(fx_value_spec(v)), stored = 1.5,
                   anew = 0; /* a write, and the room it takes */
            chain c = {0};
            if (f->needed[v.node->id] || fx_fuse_classify(v.node) != FX_FUSE_EW || count < 2)
                continue;
            f->stamp++;
            follow(f, v.node, true, count, &c);
            for (int b = 0; b < f->n_part && !c.bad; b++) {
                const part *q = &f->parts[b];
                int at = q->dead ? -1 : find_dep(q, id);
                if (b == a || at < 0)
                    continue;
                double extra = c.work + 0.02 * c.n_small,
                       times = q->kind == FX_GROUP_CONTRACT && at < q->n_inner_dep ? 4 : 1;
                c.bad = q->kind > FX_GROUP_CONTRACT;
                for (int l = 0; l < c.n_leaf; l++)
                    if (find_dep(q, c.leaf[l]) < 0) {
                        double share = f->size[c.leaf[l]] / count;
                        extra += share < 1 ? share : 1;
                    }
                anew += times * extra;
                stored += times;
            }
            if (c.bad || anew > stored || p->n_out - 1 + c.n_small > MAX_OUT)
                continue;
            f->vs->buffer[id] = -1;
            f->owner[id] = -1;
            p->out[j] = p->out[--p->n_out];
            p->cols[j] = p->cols[p->n_out];
            for (int s = 0; s < c.n_small; s++) {
                int sid = fx_value_id(f->vs, c.small[s]);
                f->vs->buffer[sid] = 0;
                f->owner[sid] = a;
                p->cols[p->n_out] = 1;
                p->out[p->n_out++] = c.small[s];
            }
            for (int b = 0; b < f->n_part; b++)
                if (!f->parts[b].dead && (b == a || find_dep(&f->parts[b], id) >= 0))
                    find_deps(f, &f->parts[b]);
            j--;
        }
    }
}

static void visit(fuser *f, int i, fx_fusion *out, fx_arena *arena) {
    part *p = &f->parts[i];
    if (p->mark == f->stamp || p->dead)
        return;
    p->mark = f->stamp;
    for (int j = 0; j < p->n_dep; j++)
        if (f->owner[p->dep[j]] >= 0 && f->owner[p->dep[j]] != i)
            visit(f, f->owner[p->dep[j]], out, arena);
    if (!p->n_out)
        return;
    fx_group *g = &out->groups[out->n_group];
    g->kind = p->kind;
    g->n_out = p->n_out;
    g->n_inner = p->n_inner;
    g->out = fx_arena_copy(arena, p->out, sizeof *p->out * (size_t)p->n_out);
    g->out_cols = fx_arena_copy(arena, p->cols, sizeof *p->cols * (size_t)p->n_out);
    g->inner = fx_arena_copy(arena, p->inner, sizeof *p->inner * (size_t)p->n_inner);
    g->rows = p->kind == FX_GROUP_REDUCE ? fx_spec_count(&p->inner[0]->spec) : 0;
    g->sink = true;
    for (int j = 0; j < f->n_part && g->sink; j++)
        for (int d = 0; d < f->parts[j].n_dep && j != i && !f->parts[j].dead; d++)
            g->sink &= f->owner[f->parts[j].dep[d]] != i;
    g->order = out->n_group++;
}

static bool *find_needed(fx_graph *g, bool no_fusion, fx_arena *arena) {
    bool *needed = FX_ARENA_ARRAY(arena, bool, g->n_node + 1);
    if (!needed)
        return NULL;
    for (int i = 0; i < g->n_result; i++) { /* a reshape of a stored value shares its buffer */
        fx_value v = fx_value_of(g->results[i]);
        while (v.node->op == FX_OP_reshape)
            v = fx_value_of(v.node->in[0]);
        needed[v.node->id] = true;
    }
    for (int i = 0; i < g->n_node; i++) {
        fx_node *n = g->nodes[i];
        fx_fuse_class c = fx_fuse_classify(n);
        bool all = c == FX_FUSE_CONTROL || c == FX_FUSE_OPAQUE || n->op == FX_OP_optimization_barrier;
        for (int j = 0; j < n->n_in && all; j++)
            needed[fx_value_of(n->in[j]).node->id] = true;
        if (no_fusion && c != FX_FUSE_VIEW && c != FX_FUSE_ALIAS && !fx_fuse_is_splat(n))
            needed[i] = true;
    }
    return needed;
}

fx_status fx_fuse(fx_graph *g, const fx_device_caps *caps, const fx_lower_options *opt, fx_arena *arena,
                  fx_fusion *out) {
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
    fuser f = {.g = g, .vs = vs, .caps = caps};
    f.owner = FX_ARENA_ARRAY(arena, int, vs->count + 1);
    f.seen = FX_ARENA_ARRAY(arena, int, vs->count + 1);
    f.size = FX_ARENA_ARRAY(arena, double, vs->count + 1);
    f.is_param = FX_ARENA_ARRAY(arena, bool, vs->count + 1);
    f.needed = find_needed(g, opt->no_fusion, arena);
    f.parts = FX_ARENA_ARRAY(arena, part, g->n_node + 1);
    out->groups = FX_ARENA_ARRAY(arena, fx_group, g->n_node + 1);
    if (!vs->buffer || !f.owner || !f.seen || !f.size || !f.is_param || !f.needed || !f.parts || !out->groups)
        return fx_fail_oom(0);
    for (int i = 0; i < vs->count; i++)
        vs->buffer[i] = f.owner[i] = -1;
    for (int i = 0; i < g->n_node; i++)
        for (int r = 0; r < fx_result_count(g->nodes[i]); r++) {
            f.size[vs->base[i] + r] = (double)fx_spec_count(fx_result_spec(g->nodes[i], r));
            f.is_param[vs->base[i] + r] = g->nodes[i]->op == FX_OP_parameter;
        }
    FX_TRY(fx_fuse_choose(g, vs, f.needed, arena));
    fx_status st = seed(&f);
    if (st == FX_OK && !opt->no_fusion) {
        find_updates(&f);
        vertical(&f, FX_GROUP_CONTRACT, FX_GROUP_POINTWISE);
        vertical(&f, FX_GROUP_REDUCE, FX_GROUP_REDUCE);
        vertical(&f, FX_GROUP_REDUCE, FX_GROUP_POINTWISE);
        vertical(&f, FX_GROUP_REDUCE, FX_GROUP_REDUCE);
        vertical(&f, FX_GROUP_POINTWISE, FX_GROUP_REDUCE);
        vertical(&f, FX_GROUP_POINTWISE, FX_GROUP_POINTWISE);
        siblings(&f, FX_GROUP_REDUCE);
        siblings(&f, FX_GROUP_POINTWISE);
        drop(&f);
        demote(&f);
    }
    f.stamp++;
    for (int i = 0; i < f.n_part && st == FX_OK; i++)
        visit(&f, i, out, arena);
    for (int i = 0; i < f.n_part; i++)
        free(f.parts[i].dep);
    return st == FX_OK && (f.failed || arena->failed) ? fx_fail_oom(0) : st;
}
