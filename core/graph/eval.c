/* eval.c - the evaluator's main loop: computes the nodes of a graph in order, frees values early.
 *
 * A frame holds one buffer a value ("slot"). Ops that only rename bytes share their operand's slot, so
 * a slot lives until the last use of all its names. Large buffers are freed then; small ones stay for
 * the frame's next run, which is what makes a region that is run for every element cheap. */
#include "core/graph/eval.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

enum { KEEP_BYTES = 4096 }; /* a value up to this size keeps its buffer between runs */

typedef struct slot {
    void *data;
    size_t bytes;
    int next_dead; /* next slot with the same last use, or -1 */
    int last_use;  /* node id; n_node for results */
    bool borrowed; /* data belongs to the caller or the graph */
    bool kept;     /* a constant that is already there */
} slot;

struct fx_eval_frame {
    const fx_graph *graph;
    int *first; /* node id -> its first entry in `names` */
    int *names; /* (node, result) -> slot */
    int *dead;  /* node id -> first slot that is dead after it, or -1 */
    slot *slots;
    int n_slot;
    int *first_frame;       /* node id -> its first entry in `frames` */
    fx_eval_frame **frames; /* one a region of a node, NULL until used */
    int n_frame;
    const void **in; /* operands and results of the node being computed */
    void **out;
};

typedef fx_status (*eval_fn)(const fx_eval_args *c);

static const eval_fn rules[FX_OP_COUNT] = {
#define FX_UNARY(name, ...) [FX_OP_##name] = fx_eval_elementwise,
#define FX_BINARY(name, ...) [FX_OP_##name] = fx_eval_elementwise,
#define FX_TERNARY(name, ...) [FX_OP_##name] = fx_eval_elementwise,
#define FX_STRUCTURAL(name, ...) [FX_OP_##name] = fx_eval_##name,
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
};

const fx_spec *fx_eval_result(const fx_node *n, int i) {
    return n->spec.dtype == FX_TUPLE ? &n->results[i] : &n->spec;
}

static int result_count(const fx_node *n) {
    return n->spec.dtype == FX_TUPLE ? n->n_result : 1;
}

void fx_eval_strides(const fx_spec *s, int64_t *strides) {
    int64_t step = 1;
    for (int i = s->rank; i-- > 0;) {
        strides[i] = step;
        step *= s->dims[i] ? s->dims[i] : 1;
    }
}

size_t fx_eval_bytes(const fx_spec *s) {
    return (size_t)fx_spec_count(s) * fx_dtype_size(s->dtype);
}

void *fx_eval_alloc(int64_t n, size_t size) {
    size_t bytes = SIZE_MAX;
    void *p = NULL;
    if (n >= 0 && !__builtin_mul_overflow((size_t)n, size, &bytes) && bytes <= PTRDIFF_MAX)
        p = malloc(bytes ? bytes : 1);
    if (!p)
        fx_fail_oom(bytes);
    return p;
}

bool fx_eval_step(int rank, const int64_t *dims, int64_t *index) {
    for (int i = rank; i-- > 0;) {
        if (++index[i] < dims[i])
            return true;
        index[i] = 0;
    }
    return false;
}

/* Ops whose results are their operands' bytes under another name. */
static bool renames(fx_op op) {
    return op == FX_OP_reshape || op == FX_OP_stop_gradient || op == FX_OP_bitcast_convert ||
           op == FX_OP_optimization_barrier || op == FX_OP_project;
}

static void frame_free(fx_eval_frame *f) {
    if (!f)
        return;
    for (int i = 0; i < f->n_slot && f->slots; i++)
        if (!f->slots[i].borrowed)
            free(f->slots[i].data);
    for (int i = 0; i < f->n_frame && f->frames; i++)
        frame_free(f->frames[i]);
    free(f->first);
    free(f->names);
    free(f->dead);
    free(f->slots);
    free(f->first_frame);
    free(f->frames);
    free(f->in);
    free(f->out);
    free(f);
}

static void extend(fx_eval_frame *f, const fx_node *n, int use) {
    for (int r = 0; r < result_count(n); r++) {
        slot *s = &f->slots[f->names[f->first[n->id] + r]];
        s->last_use = use > s->last_use ? use : s->last_use;
    }
}

/* Gives every (node, result) its slot and every slot its last use. */
static fx_status frame_name(fx_eval_frame *f) {
    const fx_graph *g = f->graph;
    int names = 0, frames = 0;
    for (int i = 0; i < g->n_node; i++) {
        const fx_node *n = g->nodes[i];
        f->first[i] = names;
        f->first_frame[i] = frames;
        frames += n->n_region;
        for (int r = 0; r < result_count(n); r++, names++) {
            if (renames(n->op)) {
                int k = n->op == FX_OP_project ? (int)FX_GET_INT(n, index) : 0;
                f->names[names] = f->names[f->first[n->in[n->op == FX_OP_project ? 0 : r]->id] + k];
                continue;
            }
            const fx_spec *spec = fx_eval_result(n, r);
            int64_t count = fx_spec_count(spec), bytes;
            if (count < 0 || __builtin_mul_overflow(count, (int64_t)fx_dtype_size(spec->dtype), &bytes))
                return fx_fail_oom(SIZE_MAX);
            slot *s = &f->slots[f->n_slot];
            s->bytes = (size_t)bytes;
            s->last_use = i;
            f->names[names] = f->n_slot++;
        }
    }
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            extend(f, g->nodes[i]->in[k], i);
    for (int i = 0; i < g->n_result; i++)
        extend(f, g->results[i], g->n_node);
    for (int i = 0; i <= g->n_node; i++)
        f->dead[i] = -1;
    for (int i = 0; i < f->n_slot; i++) {
        f->slots[i].next_dead = f->dead[f->slots[i].last_use];
        f->dead[f->slots[i].last_use] = i;
    }
    return FX_OK;
}

static fx_status frame_new(const fx_graph *g, fx_eval_frame **out) {
    *out = NULL;
    if (!g || !g->finished)
        return fx_fail(FX_INVALID_ARGUMENT, "evaluation; expected a finished graph; got %s; finish it first",
                       g ? "an open one" : "NULL");
    int64_t names = 0, frames = 0, most_in = 1, most_out = 1;
    for (int i = 0; i < g->n_node; i++) {
        const fx_node *n = g->nodes[i];
        names += result_count(n);
        frames += n->n_region;
        most_in = n->n_in > most_in ? n->n_in : most_in;
        most_out = result_count(n) > most_out ? result_count(n) : most_out;
    }
    fx_eval_frame *f = calloc(1, sizeof *f);
    if (!f)
        return fx_fail_oom(sizeof *f);
    f->graph = g;
    f->first = calloc((size_t)g->n_node + 1, sizeof *f->first);
    f->first_frame = calloc((size_t)g->n_node + 1, sizeof *f->first_frame);
    f->dead = calloc((size_t)g->n_node + 1, sizeof *f->dead);
    f->names = calloc((size_t)names + 1, sizeof *f->names);
    f->slots = calloc((size_t)names + 1, sizeof *f->slots);
    f->frames = calloc((size_t)frames + 1, sizeof *f->frames);
    f->in = calloc((size_t)most_in, sizeof *f->in);
    f->out = calloc((size_t)most_out, sizeof *f->out);
    f->n_frame = (int)frames;
    fx_status st = FX_OK;
    if (!f->first || !f->first_frame || !f->dead || !f->names || !f->slots || !f->frames || !f->in || !f->out)
        st = fx_fail_oom((size_t)names * sizeof(slot));
    if (st == FX_OK)
        st = frame_name(f);
    if (st != FX_OK)
        frame_free(f);
    else
        *out = f;
    return st;
}

/* Computes node i of the frame's graph. */
static fx_status frame_node(fx_eval_frame *f, int i) {
    const fx_node *n = f->graph->nodes[i];
    if (n->op == FX_OP_parameter || renames(n->op))
        return FX_OK;
    for (int k = 0; k < n->n_in; k++)
        f->in[k] = f->slots[f->names[f->first[n->in[k]->id]]].data;
    for (int r = 0; r < result_count(n); r++) {
        slot *s = &f->slots[f->names[f->first[i] + r]];
        if (n->op == FX_OP_constant) {
            const fx_attr *value = fx_attr_get(n, FX_ATTR_value);
            if (s->kept)
                return FX_OK;
            if (value && (size_t)value->count == s->bytes) {
                s->data = (void *)(uintptr_t)value->u.data; /* only ever read */
                s->borrowed = s->kept = true;
                return FX_OK;
            }
        }
        if (!s->data && !(s->data = fx_eval_alloc((int64_t)s->bytes, 1)))
            return FX_OUT_OF_MEMORY;
        s->kept = n->op == FX_OP_constant && s->bytes <= KEEP_BYTES;
        f->out[r] = s->data;
    }
    fx_eval_args call = {n, f->in, f->out, f->frames + f->first_frame[i]};
    return rules[n->op](&call);
}

static void release(fx_eval_frame *f, int use) {
    for (int i = f->dead[use]; i >= 0; i = f->slots[i].next_dead) {
        slot *s = &f->slots[i];
        if (!s->borrowed && s->bytes > KEEP_BYTES) {
            free(s->data);
            s->data = NULL;
        }
    }
}

static fx_status frame_run(fx_eval_frame *f, const void *const *args, void *const *results) {
    const fx_graph *g = f->graph;
    for (int i = 0; i < g->n_param; i++) {
        slot *s = &f->slots[f->names[f->first[g->params[i]->id]]];
        s->data = (void *)(uintptr_t)args[i]; /* only ever read */
        s->borrowed = true;
    }
    for (int i = 0; i < g->n_node; i++) {
        FX_TRY(frame_node(f, i));
        release(f, i);
    }
    for (int i = 0; i < g->n_result; i++) {
        const slot *s = &f->slots[f->names[f->first[g->results[i]->id]]];
        if (s->bytes)
            memcpy(results[i], s->data, s->bytes);
    }
    release(f, g->n_node);
    return FX_OK;
}

fx_status fx_eval_region(const fx_eval_args *c, int r, const void *const *args, void *const *results) {
    if (!c->frames[r])
        FX_TRY(frame_new(c->node->region[r], &c->frames[r]));
    return frame_run(c->frames[r], args, results);
}

fx_status fx_eval_node(const fx_node *n, const void *const *in, void *const *out) {
    fx_eval_frame **frames = calloc((size_t)n->n_region + 1, sizeof *frames);
    if (!frames)
        return fx_fail_oom(sizeof *frames);
    fx_eval_args call = {n, in, out, frames};
    fx_status st = rules[n->op](&call);
    for (int i = 0; i < n->n_region; i++)
        frame_free(frames[i]);
    free(frames);
    return st;
}

fx_status fx_graph_eval(const fx_graph *g, const void *const *args, void *const *results) {
    fx_eval_frame *f = NULL;
    FX_TRY(frame_new(g, &f));
    fx_status st = FX_OK;
    for (int i = 0; i < g->n_param && st == FX_OK; i++)
        if (!args || (!args[i] && fx_spec_count(&g->params[i]->spec)))
            st = fx_fail(FX_INVALID_ARGUMENT, "evaluation; expected a buffer for argument %d of %d; got NULL", i,
                         g->n_param);
    for (int i = 0; i < g->n_result && st == FX_OK; i++)
        if (!results || (!results[i] && fx_spec_count(&g->results[i]->spec)))
            st = fx_fail(FX_INVALID_ARGUMENT, "evaluation; expected a buffer for result %d of %d; got NULL", i,
                         g->n_result);
    if (st == FX_OK)
        st = frame_run(f, args, results);
    frame_free(f);
    return st;
}
