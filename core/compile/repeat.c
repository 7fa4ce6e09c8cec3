/* repeat.c - recognises a group that is like one emitted before and appends that one's steps for it.
 *
 * A group's description is everything that lowering looks at: the nodes down to stored values, with types and
 * attributes, which of them are the same, and which buffer each reads or makes, numbered in order of appearance.
 * Equal descriptions give equal kernels, so a repeated group costs its description alone. Nodes with regions are
 * not described: such groups are lowered each time. */
#include "core/compile/repeat.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/error.h"

typedef struct record {
    uint64_t hash;
    const char *key;
    size_t key_bytes;
    const int *buffers; /* of the program, in order of appearance in the description */
    int n_buffers;
    int step, n_step; /* what was emitted */
    int made, n_made; /* buffers that emitting appended: temporaries, tables */
} record;

struct fx_repeats {
    fx_arena *arena;
    const fx_values *values;
    record *list;
    int n, cap;
    /* the description being made */
    char *key;
    size_t bytes, room;
    int *buffers, n_buffers, cap_buffers;
    int *number, *stamp; /* by node: its number in the description numbered `turn` */
    int turn, count;
    bool failed; /* not to be described, or no memory */
    record open; /* the group between fx_repeat and fx_repeat_record */
    bool is_open;
};

fx_repeats *fx_repeats_create(fx_arena *arena, const fx_values *values) {
    fx_repeats *r = FX_ARENA_NEW(arena, fx_repeats);
    int n = values->graph->n_node + 1;
    if (!r)
        return NULL;
    r->arena = arena;
    r->values = values;
    r->number = FX_ARENA_ARRAY(arena, int, n);
    r->stamp = FX_ARENA_ARRAY(arena, int, n);
    return r->number && r->stamp ? r : NULL;
}

/* ---- descriptions ---- */

static void put(fx_repeats *r, const void *data, size_t bytes) {
    if (r->bytes + bytes > r->room) {
        size_t room = 2 * (r->bytes + bytes) + 1024;
        char *key = fx_arena_alloc(r->arena, room);
        if (!key) {
            r->failed = true;
            return;
        }
        if (r->bytes)
            memcpy(key, r->key, r->bytes);
        r->key = key;
        r->room = room;
    }
    if (bytes)
        memcpy(r->key + r->bytes, data, bytes);
    r->bytes += bytes;
}

static void put_int(fx_repeats *r, int64_t v) {
    put(r, &v, sizeof v);
}

static void put_spec(fx_repeats *r, const fx_spec *s) {
    put_int(r, (int64_t)s->dtype << 32 | s->rank);
    put(r, s->dims, sizeof *s->dims * (size_t)s->rank);
}

static void put_attr(fx_repeats *r, const fx_attr *a) {
    put_int(r, (int64_t)a->id << 32 | (uint32_t)a->count);
    switch (fx_attr_kind_of(a->id)) {
    case FX_ATTR_LIST:
        put(r, a->u.list, sizeof *a->u.list * (size_t)a->count);
        break;
    case FX_ATTR_DATA:
        put(r, a->u.data, (size_t)a->count);
        break;
    default:
        put_int(r, a->u.i);
    }
}

/* A buffer as its number in order of appearance; where that is the first one, with what lowering asks of it. */
static void put_buffer(fx_repeats *r, const fx_builder *b, int buffer) {
    int i = 0;
    while (i < r->n_buffers && r->buffers[i] != buffer)
        i++;
    put_int(r, buffer < 0 ? -1 : i);
    if (buffer < 0 || i < r->n_buffers)
        return;
    if (i == r->cap_buffers) {
        int cap = 2 * i + 16;
        int *more = FX_ARENA_ARRAY(r->arena, int, cap);
        if (!more) {
            r->failed = true;
            return;
        }
        if (i)
            memcpy(more, r->buffers, sizeof *more * (size_t)i);
        r->buffers = more;
        r->cap_buffers = cap;
    }
    r->buffers[r->n_buffers++] = buffer;
    const fx_buffer *f = &b->p->buffers[buffer];
    put_int(r, (int64_t)f->kind << 32 | (f->kind == FX_BUFFER_TEMP ? f->index : 0));
    put_int(r, (int64_t)f->bytes);
    put_spec(r, &f->spec);
}

static bool is_output(const fx_group *g, const fx_node *n) {
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i].node == n)
            return true;
    return false;
}

static void put_node(fx_repeats *r, const fx_builder *b, const fx_group *g, fx_node *n, int depth) {
    if (r->stamp[n->id] == r->turn) {
        put_int(r, r->number[n->id]);
        return;
    }
    if (depth > 400 || n->n_region || r->bytes > 1 << 20)
        r->failed = true;
    if (r->failed)
        return;
    put_int(r, -2);
    r->stamp[n->id] = r->turn;
    r->number[n->id] = r->count++;
    put_int(r, (int64_t)n->op << 32 | n->n_result);
    for (int i = 0; i < fx_result_count(n); i++)
        put_spec(r, fx_result_spec(n, i));
    fx_value v = fx_value_of(n);
    int buffer = r->values->buffer[fx_value_id(r->values, v)];
    bool leaf = buffer >= 0 && !is_output(g, v.node);
    put_int(r, leaf);
    if (leaf || v.node == n)
        for (int i = 0; i < (leaf ? 1 : fx_result_count(n)); i++)
            put_buffer(r, b, leaf ? buffer : r->values->buffer[r->values->base[n->id] + i]);
    if (n->op != FX_OP_parameter) {
        put_int(r, n->n_attr);
        for (int i = 0; i < n->n_attr; i++)
            put_attr(r, &n->attr[i]);
    }
    put_int(r, n->n_in);
    for (int i = 0; i < n->n_in && !leaf; i++)
        put_node(r, b, g, n->in[i], depth + 1);
}

static void describe(fx_repeats *r, const fx_builder *b, const fx_group *g) {
    r->key = NULL;
    r->buffers = NULL;
    r->bytes = r->room = 0;
    r->n_buffers = r->cap_buffers = r->count = 0;
    r->turn++;
    r->failed = g->kind == FX_GROUP_CONTROL;
    put_int(r, (int64_t)g->kind << 32 | g->sink);
    put_int(r, g->rows);
    put_int(r, (int64_t)g->n_out << 32 | g->n_inner);
    for (int i = 0; i < g->n_out && !r->failed; i++) {
        put_int(r, g->out[i].result);
        put_int(r, g->out_cols ? g->out_cols[i] : 0);
        put_node(r, b, g, g->out[i].node, 0);
    }
    for (int i = 0; i < g->n_inner && !r->failed; i++)
        put_node(r, b, g, g->inner[i], 0);
}

/* ---- steps ---- */

static fx_status append(const fx_repeats *r, fx_builder *b, const fx_group *g, const record *like) {
    int made = b->p->n_buffer;
    for (int i = 0; i < like->n_made; i++) {
        fx_buffer copy = b->p->buffers[like->made + i];
        int at = fx_builder_buffer(b, copy.kind, &copy.spec);
        if (at < 0)
            return fx_fail_oom(0);
        b->p->buffers[at] = copy;
    }
    const char *name = like->n_step ? fx_group_name(b, g) : "";
    for (int i = 0; i < like->n_step; i++) {
        fx_step *to = fx_builder_step(b);
        const fx_step *from = &b->p->steps[like->step + i];
        fx_step_arg *args = FX_ARENA_ARRAY(&b->p->arena, fx_step_arg, from->n_arg + 1);
        if (!to || !args || !name)
            return fx_fail_oom(0);
        *to = *from;
        to->args = args;
        to->name = *from->name ? name : from->name;
        for (int a = 0; a < from->n_arg; a++) {
            int old = from->args[a].buffer, k = 0;
            args[a] = from->args[a];
            while (k < like->n_buffers && like->buffers[k] != old)
                k++;
            args[a].buffer = k < like->n_buffers ? r->buffers[k] : made + old - like->made;
        }
    }
    return FX_OK;
}

bool fx_repeat(fx_repeats *r, fx_builder *b, const fx_group *g, fx_status *status) {
    *status = FX_OK;
    if (!r)
        return false;
    describe(r, b, g);
    r->is_open = !r->failed;
    if (r->failed)
        return false;
    uint64_t hash = XXH3_64bits(r->key, r->bytes);
    for (int i = 0; i < r->n; i++)
        if (r->list[i].hash == hash && r->list[i].key_bytes == r->bytes && !memcmp(r->list[i].key, r->key, r->bytes)) {
            *status = append(r, b, g, &r->list[i]);
            r->is_open = false;
            return true;
        }
    r->open = (record){.hash = hash,
                       .key = r->key,
                       .key_bytes = r->bytes,
                       .buffers = r->buffers,
                       .n_buffers = r->n_buffers,
                       .step = b->p->n_step,
                       .made = b->p->n_buffer};
    return false;
}

/* Do the steps use nothing but what the description numbers and what they made? */
static bool closed(const fx_builder *b, const record *o) {
    for (int i = 0; i < o->n_step; i++) {
        const fx_step *s = &b->p->steps[o->step + i];
        for (int a = 0; a < s->n_arg; a++) {
            int k = 0;
            while (k < o->n_buffers && o->buffers[k] != s->args[a].buffer)
                k++;
            if (s->n_body || (k == o->n_buffers && s->args[a].buffer < o->made))
                return false;
        }
    }
    return true;
}

void fx_repeat_record(fx_repeats *r, fx_builder *b) {
    if (!r || !r->is_open)
        return;
    record o = r->open;
    r->is_open = false;
    o.n_step = b->p->n_step - o.step;
    o.n_made = b->p->n_buffer - o.made;
    if (!closed(b, &o))
        return;
    if (r->n == r->cap) {
        int cap = 2 * r->cap + 32;
        record *more = FX_ARENA_ARRAY(r->arena, record, cap);
        if (!more)
            return;
        if (r->n)
            memcpy(more, r->list, sizeof *more * (size_t)r->n);
        r->list = more;
        r->cap = cap;
    }
    r->list[r->n++] = o;
}
