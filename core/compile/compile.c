/* compile.c - the list of passes from graph to program, read top to bottom, and the program's life. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/compile/dump.h"
#include "core/compile/emit.h"
#include "core/compile/fuse_graph.h"
#include "core/compile/prepare.h"
#include "core/compile/repeat.h"
#include "core/kernel/dialect.h"
#include "core/kernel/text.h"

/* A literal in device layout. */
static const void *literal(fx_program *p, const fx_node *n, const fx_device_caps *caps, uint64_t bytes) {
    const fx_attr *a = fx_attr_get(n, FX_ATTR_value);
    unsigned char *data = fx_arena_alloc(&p->arena, bytes + 4);
    if (!data || !a)
        return NULL;
    if (n->spec.dtype != FX_BOOL || !caps->bool_is_word) {
        memcpy(data, a->u.data, (size_t)a->count);
        return data;
    }
    for (int i = 0; i < a->count; i++) {
        uint32_t w = ((const unsigned char *)a->u.data)[i] != 0;
        memcpy(data + 4 * i, &w, 4);
    }
    return data;
}

static bool is_result(const fx_graph *g, const fx_node *n, int result) {
    for (int i = 0; i < g->n_result; i++) {
        fx_value v = fx_value_of(g->results[i]);
        while (v.node != n && v.node->op == FX_OP_reshape)
            v = fx_value_of(v.node->in[0]);
        if (v.node == n && v.result == result)
            return true;
    }
    return false;
}

static fx_status make_buffers(fx_builder *b, const fx_graph *g) {
    fx_values *vs = &b->fusion->values;
    for (int i = 0; i < g->n_node; i++) {
        fx_node *n = g->nodes[i];
        for (int r = 0; r < fx_result_count(n); r++) {
            int *slot = &vs->buffer[vs->base[i] + r];
            const fx_spec *spec = fx_result_spec(n, r);
            FX_TRY(fx_dtype_check(b->caps, spec->dtype, fx_op_get(n->op)->name));
            if (*slot < 0)
                continue;
            bool filled = fx_fuse_is_splat(n) && fx_spec_count(spec) != 1; /* a kernel writes it */
            fx_buffer_kind kind = n->op == FX_OP_parameter             ? FX_BUFFER_PARAM
                                  : n->op == FX_OP_constant && !filled ? FX_BUFFER_CONST
                                                                       : FX_BUFFER_TEMP;
            *slot = fx_builder_buffer(b, kind, spec);
            if (*slot < 0)
                return fx_fail_oom(0);
            fx_buffer *buf = &b->p->buffers[*slot];
            if (kind == FX_BUFFER_TEMP) /* marks what leaves the program */
                buf->index = is_result(g, n, r);
            if (kind == FX_BUFFER_PARAM)
                buf->index = (int)FX_GET_INT(n, index);
            if (kind == FX_BUFFER_CONST && !(buf->data = literal(b->p, n, b->caps, buf->bytes)))
                return fx_fail_oom(buf->bytes);
        }
    }
    return FX_OK;
}

/* The buffer of a result: reshapes of a stored value share its buffer. */
static fx_status result_buffer(fx_builder *b, fx_node *n, int *out) {
    fx_value v = fx_value_of(n);
    while (b->fusion->values.buffer[fx_value_id(&b->fusion->values, v)] < 0 && v.node->op == FX_OP_reshape)
        v = fx_value_of(v.node->in[0]);
    return fx_builder_value(b, v, out);
}

static bool reads(const fx_values *vs, const fx_node *n, const fx_group *const *groups, int n_group, int depth) {
    for (int j = 0; j < n->n_in; j++) {
        fx_value v = fx_value_of(n->in[j]);
        for (int i = 0; i < n_group; i++)
            if (groups[i]->out[0].node == v.node)
                return true;
        if (vs->buffer[fx_value_id(vs, v)] < 0 && reads(vs, v.node, groups, n_group, depth + 1))
            return true;
    }
    return false;
}

/* Does g need one of the pending totals? */
static bool needs(const fx_values *vs, const fx_group *g, const fx_group *const *pending, int n) {
    bool yes = false;
    for (int i = 0; i < g->n_out && n && !yes; i++)
        yes = reads(vs, g->out[i].node, pending, n, 0);
    for (int i = 0; i < g->n_inner && n && !yes; i++)
        yes = reads(vs, g->inner[i], pending, n, 0);
    return yes;
}

/* In order, except that totals wait until something needs one, and that what nothing reads comes last: so that those
 * that are alike meet and share launches. */
static fx_status emit_groups(fx_builder *b, fx_arena *scratch) {
    const fx_fusion *f = b->fusion;
    const fx_group **sinks = FX_ARENA_ARRAY(scratch, const fx_group *, 2 * f->n_group + 1);
    if (!sinks)
        return fx_fail_oom(0);
    const fx_group **totals = sinks + f->n_group;
    int n_sink = 0, n_total = 0;
    for (int i = 0; i < f->n_group; i++) {
        const fx_group *g = &f->groups[i];
        if (g->kind != FX_GROUP_CONTROL && !fx_spec_count(fx_value_spec(g->out[0])))
            continue; /* empty arrays */
        if (g->kind == FX_GROUP_POINTWISE && g->sink) {
            sinks[n_sink++] = g;
            continue;
        }
        if (fx_is_total(g) && !needs(&f->values, g, totals, n_total)) {
            totals[n_total++] = g;
            continue;
        }
        if (needs(&f->values, g, totals, n_total)) {
            FX_TRY(fx_emit_totals(b, n_total, totals));
            n_total = 0;
        }
        FX_TRY(fx_emit_group(b, g));
    }
    FX_TRY(fx_emit_totals(b, n_total, totals));
    return fx_emit_sinks(b, n_sink, sinks);
}

/* A line a group: kind, what it holds, the values it stores. */
static void dump_groups(fx_builder *b) {
    static const char *const kinds[] = {"pointwise", "reduce", "contract", "special", "control"};
    fx_text t = {0};
    char spec[96];
    for (int i = 0; i < b->fusion->n_group; i++) {
        const fx_group *g = &b->fusion->groups[i];
        fx_text_fmt(&t, "%d %s %s:", i, kinds[g->kind], fx_group_name(b, g));
        for (int j = 0; j < g->n_inner; j++)
            fx_text_fmt(&t, " [%%%u]", g->inner[j]->id);
        for (int j = 0; j < g->n_out; j++)
            fx_text_fmt(&t, " %%%u.%d %s", g->out[j].node->id, g->out[j].result,
                        fx_spec_format(fx_value_spec(g->out[j]), spec, sizeof spec));
        fx_text_str(&t, "\n");
    }
    fx_dump_text("groups", "", t.s);
    fx_text_free(&t);
}

static fx_status build(fx_builder *b, fx_graph *g, fx_arena *scratch) {
    fx_program *p = b->p;
    FX_TRY(fx_fuse(g, b->caps, b->opt, scratch, b->fusion));
    FX_TRY(make_buffers(b, g));
    if (fx_dump_has("groups"))
        dump_groups(b);
    b->repeats = b->opt->no_repeats ? NULL : fx_repeats_create(scratch, &b->fusion->values);
    FX_TRY(emit_groups(b, scratch));
    p->n_param = g->n_param;
    p->n_result = g->n_result;
    p->results = FX_ARENA_ARRAY(&p->arena, int, g->n_result + 1);
    if (!p->results)
        return fx_fail_oom(0);
    for (int i = 0; i < g->n_result; i++)
        FX_TRY(result_buffer(b, g->results[i], &p->results[i]));
    return FX_OK;
}

fx_status fx_program_create(const fx_graph *g, const fx_device_caps *caps, const fx_lower_options *opt,
                            fx_program **out) {
    static const fx_lower_options defaults = {false};
    fx_program *p = calloc(1, sizeof *p);
    fx_fusion fusion = {0};
    fx_graph *flat = NULL;
    fx_arena scratch;
    if (!p)
        return fx_fail_oom(sizeof *p);
    fx_arena_init(&p->arena);
    fx_arena_init(&scratch);
    fx_builder b = {.p = p, .caps = caps, .fusion = &fusion, .opt = opt ? opt : &defaults};
    fx_status st = fx_prepare(g, &flat);
    if (st == FX_OK && fx_dump_has("graph")) {
        char *text = fx_graph_print(flat);
        fx_dump_text("graph", "as compiled", text);
        free(text);
    }
    if (st == FX_OK)
        st = build(&b, flat, &scratch);
    fx_graph_unref(flat);
    fx_arena_finish(&scratch);
    if (st != FX_OK) {
        fx_program_destroy(p);
        return st;
    }
    *out = p;
    return FX_OK;
}

void fx_program_destroy(fx_program *p) {
    if (!p)
        return;
    for (int i = 0; i < p->n_step; i++)
        for (int j = 0; j < p->steps[i].n_body; j++)
            fx_program_destroy(p->steps[i].body[j]);
    fx_arena_finish(&p->arena);
    free(p);
}

static void print(fx_text *t, const fx_program *p, int indent) {
    int64_t flops = 0, read = 0, written = 0;
    char spec[96];
    for (int i = 0; i < p->n_step; i++) {
        const fx_step *s = &p->steps[i];
        fx_text_fmt(t, "%*sstep %d: %s [%s]", indent, "", i, s->name, s->schedule);
        if (s->kind == FX_STEP_KERNEL)
            fx_text_fmt(t, " kernel %d groups %ux%ux%u flops %lld read %lld written %lld", s->kernel, s->groups[0],
                        s->groups[1], s->groups[2], (long long)s->flops, (long long)s->bytes_read,
                        (long long)s->bytes_written);
        for (int j = 0; j < s->n_arg; j++)
            fx_text_fmt(t, " %s%s#%d:%s", s->args[j].access & FX_READ ? "r" : "",
                        s->args[j].access & FX_WRITE ? "w" : "", s->args[j].buffer,
                        fx_spec_format(&p->buffers[s->args[j].buffer].spec, spec, sizeof spec));
        fx_text_str(t, "\n");
        for (int j = 0; j < s->n_body; j++)
            print(t, s->body[j], indent + 4);
        flops += s->flops;
        read += s->bytes_read;
        written += s->bytes_written;
    }
    fx_text_fmt(t, "%*s%d steps, %d kernels, %lld flops, %lld bytes read, %lld written\n", indent, "", p->n_step,
                p->n_kernel, (long long)flops, (long long)read, (long long)written);
}

char *fx_program_print(const fx_program *p) {
    fx_text t = {0};
    print(&t, p, 0);
    if (t.failed) {
        fx_text_free(&t);
        return NULL;
    }
    return t.s;
}
