/* emit.c - groups into steps: picks the schedule, renders, shares kernels with equal text, counts work. */
#include "core/compile/emit.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/base/error.h"
#include "core/compile/dump.h"
#include "core/compile/repeat.h"
#include "core/kernel/dialect.h"

#define GROW(arena, ptr, n, cap)                                              \
    do {                                                                      \
        if ((n) == (cap)) {                                                   \
            int cap_ = (cap) ? 2 * (cap) : 16;                                \
            void *p_ = fx_arena_alloc((arena), sizeof *(ptr) * (size_t)cap_); \
            if (p_ && (n))                                                    \
                memcpy(p_, (ptr), sizeof *(ptr) * (size_t)(n));               \
            if (p_) {                                                         \
                (ptr) = p_;                                                   \
                (cap) = cap_;                                                 \
            }                                                                 \
        }                                                                     \
    } while (0)

uint64_t fx_device_bytes(const fx_spec *spec, const fx_device_caps *caps) {
    uint64_t size = spec->dtype == FX_BOOL && caps->bool_is_word ? 4 : fx_dtype_size(spec->dtype);
    return (size * (uint64_t)fx_spec_count(spec) + 3) & ~(uint64_t)3;
}

int fx_builder_buffer(fx_builder *b, fx_buffer_kind kind, const fx_spec *spec) {
    fx_program *p = b->p;
    GROW(&p->arena, p->buffers, p->n_buffer, b->cap_buffer);
    if (p->arena.failed)
        return -1;
    p->buffers[p->n_buffer] = (fx_buffer){.kind = kind, .spec = *spec, .bytes = fx_device_bytes(spec, b->caps)};
    return p->n_buffer++;
}

fx_step *fx_builder_step(fx_builder *b) {
    fx_program *p = b->p;
    GROW(&p->arena, p->steps, p->n_step, b->cap_step);
    if (p->arena.failed)
        return NULL;
    p->steps[p->n_step] = (fx_step){.name = "", .schedule = "", .kernel = -1};
    return &p->steps[p->n_step++];
}

fx_status fx_builder_value(fx_builder *b, fx_value v, int *buffer) {
    *buffer = b->fusion->values.buffer[fx_value_id(&b->fusion->values, v)];
    return *buffer >= 0 ? FX_OK
                        : fx_fail(FX_INTERNAL, "compiling; %s %%%u is needed in memory but not stored",
                                  fx_op_get(v.node->op)->name, v.node->id);
}

fx_kx *fx_emit_grid(fx_emit *e, int64_t n) {
    int64_t limit = e->caps->max_groups[0] ? (int64_t)e->caps->max_groups[0] : 65535;
    fx_kir *k = &e->k;
    e->groups[0] = n > 0 ? n : 1;
    e->groups[1] = e->groups[2] = 1;
    if (n <= limit)
        return fx_k_builtin(k, FX_KB_GROUP_X, e->groups[0]);
    int64_t y = (n + limit - 1) / limit, x = (n + y - 1) / y;
    e->groups[0] = x;
    e->groups[1] = y;
    return fx_k_add(k, fx_k_mulc(k, fx_k_builtin(k, FX_KB_GROUP_Y, y), x), fx_k_builtin(k, FX_KB_GROUP_X, x));
}

int fx_emit_temp(fx_emit *e, const fx_spec *spec) {
    return fx_builder_buffer(e->builder, FX_BUFFER_TEMP, spec);
}

static bool aligned(void *user, int buffer) {
    const fx_builder *b = user;
    return !b->opt->body || b->p->buffers[buffer].kind == FX_BUFFER_CONST ||
           (b->p->buffers[buffer].kind == FX_BUFFER_TEMP && !b->p->buffers[buffer].index);
}

/* Starts an empty kernel for g. */
static void begin(fx_emit *e, const fx_group *g) {
    fx_kir_init(&e->k, e->arena);
    fx_lower_init(&e->lo, &e->k, e->caps, &e->fusion->values);
    e->lo.own = g->out;
    e->lo.n_own = g->n_out;
    e->lo.aligned = aligned;
    e->lo.aligned_user = e->builder;
}

/* ---- names and figures ---- */

typedef struct name_list {
    const char *name[12];
    int n;
    bool more;
} name_list;

static void collect(const fx_values *vs, fx_node *n, name_list *l, int depth) {
    fx_value v = fx_value_of(n);
    n = v.node;
    if (n->op == FX_OP_parameter || n->op == FX_OP_constant || depth > 24)
        return;
    if (depth && n->graph == vs->graph && vs->buffer[fx_value_id(vs, v)] >= 0)
        return;
    for (int j = 0; j < n->n_in; j++)
        collect(vs, n->in[j], l, depth + 1);
    if (fx_op_get(n->op)->view || n->op == FX_OP_convert)
        return;
    for (int j = 0; j < l->n; j++)
        if (!strcmp(l->name[j], fx_op_get(n->op)->name))
            return;
    if (l->n < 12)
        l->name[l->n++] = fx_op_get(n->op)->name;
    else
        l->more = true;
}

const char *fx_group_name(fx_builder *b, const fx_group *g) {
    name_list l = {{0}, 0, false};
    char buf[320];
    size_t used = 0;
    const char *scope = g->out[0].node->scope;
    for (int i = 0; i < g->n_inner; i++)
        collect(&b->fusion->values, g->inner[i], &l, 0);
    for (int i = 0; i < g->n_out && l.n < 12; i++)
        collect(&b->fusion->values, g->out[i].node, &l, 0);
    if (scope)
        used += (size_t)snprintf(buf, sizeof buf - used, "%.100s:", scope);
    for (int j = 0; j < l.n && used < sizeof buf - 24; j++)
        used += (size_t)snprintf(buf + used, sizeof buf - used, "%s%s", j ? "+" : "", l.name[j]);
    if (!l.n)
        used += (size_t)snprintf(buf + used, sizeof buf - used, "%s", fx_op_get(g->out[0].node->op)->name);
    if (l.more)
        snprintf(buf + used, sizeof buf - used, "+...");
    return fx_arena_strdup(&b->p->arena, buf);
}

/* Floating-point work of a group, as the field counts it: 2mnk for products, one an element otherwise. */
static int64_t flops_of(const fx_values *vs, fx_node *n, int depth, int64_t *budget) {
    fx_value v = fx_value_of(n);
    fx_contraction c;
    n = v.node;
    if (n->op == FX_OP_parameter || n->op == FX_OP_constant || depth > 64 || --*budget < 0)
        return 0;
    if (depth && n->graph == vs->graph && vs->buffer[fx_value_id(vs, v)] >= 0)
        return 0;
    int64_t f = 0;
    if (fx_contraction_of(n, &c))
        f = 2 * c.batch * c.m * c.n * c.k;
    else if (n->op == FX_OP_reduce || n->op == FX_OP_arg_reduce || n->op == FX_OP_reduce_fn)
        f = fx_spec_count(&n->in[0]->spec);
    else if (!fx_op_get(n->op)->view && n->n_result <= 1)
        f = fx_spec_count(&n->spec);
    for (int j = 0; j < n->n_in; j++)
        f += flops_of(vs, n->in[j], depth + 1, budget);
    return f;
}

/* ---- kernels ---- */

static fx_status share_kernel(fx_builder *b, const fx_kir *k, const char *name, fx_text *text, int *index) {
    fx_program *p = b->p;
    fx_kernel_source s = {.name = name,
                          .source_bytes = text->n,
                          .n_args = (uint32_t)fx_kir_arguments(k),
                          .subgroup_size = k->subgroup_size};
    XXH3_state_t *h = XXH3_createState();
    if (!h)
        return fx_fail_oom(sizeof(void *));
    XXH3_64bits_reset(h);
    for (int d = 0; d < 3; d++)
        s.workgroup[d] = k->workgroup[d];
    XXH3_64bits_update(h, text->s, text->n);
    XXH3_64bits_update(h, &s.n_args, sizeof s.n_args);
    XXH3_64bits_update(h, s.workgroup, sizeof s.workgroup);
    XXH3_64bits_update(h, &s.subgroup_size, sizeof s.subgroup_size);
    s.hash = XXH3_64bits_digest(h);
    XXH3_freeState(h);
    for (*index = 0; *index < p->n_kernel; ++*index)
        if (p->kernels[*index].source.hash == s.hash && p->kernels[*index].source.source_bytes == text->n &&
            !memcmp(p->kernels[*index].source.source, text->s, text->n))
            return FX_OK;
    GROW(&p->arena, p->kernels, p->n_kernel, b->cap_kernel);
    s.source = fx_arena_copy(&p->arena, text->s, text->n + 1);
    if (p->arena.failed)
        return fx_fail_oom(text->n);
    p->kernels[p->n_kernel++].source = s;
    if (fx_dump_has("kernels"))
        fx_dump_text("kernel", name, text->s);
    return FX_OK;
}

fx_status fx_emit_kernel(fx_emit *e, const fx_group *g) {
    fx_builder *b = e->builder;
    fx_text text = {0};
    FX_TRY(e->lo.status);
    if (e->k.failed)
        return fx_fail_oom(0);
    const char *name = fx_group_name(b, g);
    fx_kir_join_loads(&e->k);
    fx_status st = fx_kir_render(&e->k, e->caps, name ? name : "", &text);
    int kernel = 0;
    if (st == FX_OK)
        st = share_kernel(b, &e->k, name, &text, &kernel);
    fx_text_free(&text);
    FX_TRY(st);
    for (int d = 0; d < 3; d++)
        if (e->groups[d] < 1 || (e->caps->max_groups[d] && e->groups[d] > (int64_t)e->caps->max_groups[d]))
            return fx_fail(FX_UNSUPPORTED,
                           "kernel %s; the device takes at most %u workgroups along %c; got %lld; use smaller arrays",
                           name, e->caps->max_groups[d], "xyz"[d], (long long)e -> groups[d]);
    fx_step *s = fx_builder_step(b);
    fx_step_arg *args = FX_ARENA_ARRAY(&b->p->arena, fx_step_arg, e->lo.n_arg + 1);
    if (!s || !args || !name)
        return fx_fail_oom(0);
    s->kind = FX_STEP_KERNEL;
    s->name = name;
    s->schedule = e->schedule;
    s->kernel = kernel;
    s->n_arg = e->lo.n_arg;
    s->args = args;
    for (int j = 0; j < s->n_arg; j++) {
        const fx_karg *a = &e->k.args[j];
        const fx_buffer *buf = &b->p->buffers[e->lo.arg_buffer[j]];
        args[j] = (fx_step_arg){.buffer = e->lo.arg_buffer[j],
                                .in_place_of = -1,
                                .access = (a->reads ? FX_READ : 0u) | (a->writes ? FX_WRITE : 0u)};
        s->bytes_read += a->reads ? (int64_t)buf->bytes : 0;
        s->bytes_written += a->writes ? (int64_t)buf->bytes : 0;
    }
    bool taken[64] = {false};
    for (int j = 0; j < s->n_arg && e->lo.in_place; j++) /* pair each output with an input of its size */
        for (int i = 0; i < s->n_arg && i < 64 && args[j].access == FX_WRITE && args[j].in_place_of < 0; i++)
            if (args[i].access == FX_READ && !e->k.args[i].elsewhere && !taken[i] &&
                e->k.args[i].elem == e->k.args[j].elem &&
                b->p->buffers[args[i].buffer].bytes == b->p->buffers[args[j].buffer].bytes) {
                args[j].in_place_of = i;
                taken[i] = true;
            }
    for (int d = 0; d < 3; d++)
        s->groups[d] = (uint32_t)e->groups[d];
    int64_t budget = 4096;
    for (int i = 0; i < g->n_inner; i++)
        s->flops += flops_of(&b->fusion->values, g->inner[i], 0, &budget);
    for (int i = 0; i < g->n_out; i++)
        s->flops += flops_of(&b->fusion->values, g->out[i].node, g->n_inner ? 1 : 0, &budget);
    begin(e, g);
    return FX_OK;
}

void fx_emit_begin(fx_emit *e, fx_builder *b, const fx_group *g, fx_arena *arena) {
    fx_arena_init(arena);
    *e = (fx_emit){.builder = b, .caps = b->caps, .fusion = b->fusion, .arena = arena, .groups = {1, 1, 1}};
    begin(e, g);
}

fx_status fx_emit_group(fx_builder *b, const fx_group *g) {
    if (g->kind == FX_GROUP_CONTROL)
        return fx_emit_control(b, g);
    fx_arena arena;
    fx_emit e;
    fx_status st;
    if (fx_repeat(b->repeats, b, g, &st))
        return st;
    fx_emit_begin(&e, b, g, &arena);
    const fx_schedule *s = &fx_schedule_pointwise;
    for (int i = 0; fx_schedules[i]; i++)
        if (fx_schedules[i]->kind == g->kind && (!fx_schedules[i]->match || fx_schedules[i]->match(&e, g))) {
            s = fx_schedules[i];
            break;
        }
    e.schedule = s->name;
    st = s->emit(&e, g);
    if (st == FX_OK)
        st = fx_emit_kernel(&e, g);
    if (st == FX_OK)
        fx_repeat_record(b->repeats, b);
    fx_arena_finish(&arena);
    return st;
}
