/* render_lanes.c - regions of lanes as loops, and exchanges between lanes as loops over arrays. */
#include <stdio.h>

#include "core/kernel/lanes.h"
#include "core/kernel/render.h"

static void line(fx_render *r, int depth) {
    for (int d = 0; d <= depth; d++)
        fx_text_str(&r->state->block[depth], "    ");
}

void fx_lanes_open(fx_render *r, int region, int depth) {
    state *s = r->state;
    r->region = region;
    r->region_depth = depth;
    s->depth = depth + 1;
    s->serial[depth + 1] = ++s->next_serial;
    fx_text_clear(&s->block[depth + 1]);
}

void fx_lanes_close(fx_render *r) {
    state *s = r->state;
    int d = r->region_depth;
    s->depth = d;
    r->region = 0;
    if (!s->block[d + 1].n)
        return;
    line(r, d);
    fx_text_fmt(&s->block[d], "FX_LANES for (int l = 0; l < %lld; l++) {\n", (long long)r->lanes->width);
    fx_text_str(&s->block[d], s->block[d + 1].s);
    line(r, d);
    fx_text_str(&s->block[d], "}\n");
}

void fx_lanes_declare(fx_render *r, const fx_kvar *v, int n) {
    int d = r->region_depth;
    line(r, d);
    fx_text_fmt(&r->state->block[d], "FX_ALIGNED %s v%d", r->dialect->types[v->x->type], v->id);
    if (n)
        fx_text_fmt(&r->state->block[d], "[%d]", n);
    fx_text_fmt(&r->state->block[d], "[%lld];\n", (long long)r->lanes->width);
}

/* An array of the lanes' values of an expression, filled in the open region. */
static void gather(fx_render *r, const char *type, const char *name, int id, const char *text) {
    int d = r->region_depth;
    line(r, d);
    fx_text_fmt(&r->state->block[d], "FX_ALIGNED %s %s%d[%lld];\n", type, name, id, (long long)r->lanes->width);
    line(r, d + 1);
    fx_text_fmt(&r->state->block[d + 1], "%s%d[l] = %s;\n", name, id, text);
}

void fx_lanes_exchange(fx_render *r, const fx_kstmt *st, const char *x, const char *lane) {
    const fx_kx *op = st->x;
    const fx_kvar *v = st->var;
    const char *type = r->dialect->types[v->x->type];
    bool varies = r->lanes->varying[v->id];
    fx_text *out = &r->state->block[r->region_depth];
    char to[24], from[24], other[24];
    snprintf(to, sizeof to, "%s%d", varies ? "v" : "r", v->id);
    snprintf(from, sizeof from, "g%d", v->id);
    snprintf(other, sizeof other, "h%d[l]", v->id);
    r->types |= FX_BIT(v->x->type);
    gather(r, type, "g", v->id, x);
    if (op->a[1] && fx_lanes_varies(r->lanes, op->a[1])) {
        gather(r, "int", "h", v->id, lane);
        lane = other;
    }
    fx_lanes_close(r);
    const char *arg[3] = {to, from, lane};
    line(r, r->state->depth);
    fx_text_fmt(out, "FX_ALIGNED %s %s[%lld];\n", type, to, (long long)r->lanes->width);
    line(r, r->state->depth);
    fx_render_expand(r, out, r->dialect->subgroup[op->sub], v->x->type, arg);
    fx_text_str(out, "\n");
    if (!varies) {
        line(r, r->state->depth);
        fx_text_fmt(out, "const %s v%d = %s[0];\n", type, v->id, to);
    }
}
