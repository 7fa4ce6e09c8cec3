/* render_lanes.c - regions of lanes as loops, and exchanges between lanes as loops over arrays. */
#include <stdio.h>

#include "core/base/error.h"
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

static const char *combine(fx_ksub sub) {
    switch (sub) {
    case FX_SUB_ADD:
        return "a + b";
    case FX_SUB_MUL:
        return "a * b";
    case FX_SUB_MAX:
        return "a > b ? a : b";
    case FX_SUB_MIN:
        return "a < b ? a : b";
    case FX_SUB_AND:
        return "a & b";
    case FX_SUB_OR:
        return "a | b";
    default:
        return "a ^ b";
    }
}

/* The loop `for l` over all lanes with one statement. */
static void each(fx_render *r, const char *text) {
    fx_lanes_open(r, r->region ? r->region : 1, r->region_depth);
    line(r, r->state->depth);
    fx_text_fmt(&r->state->block[r->state->depth], "%s\n", text);
    fx_lanes_close(r);
}

void fx_lanes_exchange(fx_render *r, const fx_kstmt *st, const char *x, const char *lane) {
    const fx_lanes *l = r->lanes;
    const fx_kx *op = st->x;
    int id = st->var->id, d = r->region_depth, S = (int)l->subgroup, W = (int)l->width;
    const char *type = r->dialect->types[st->var->x->type];
    fx_text *out = &r->state->block[d], text = {0};
    bool varies = l->varying[id];
    char first[24];
    r->types |= FX_BIT(st->var->x->type);
    line(r, d); /* the operands of all lanes, and where they take theirs from */
    fx_text_fmt(out, "FX_ALIGNED %s g%d[%d];\n", type, id, W);
    line(r, r->state->depth);
    fx_text_fmt(&r->state->block[r->state->depth], "g%d[l] = %s;\n", id, x);
    if (op->sub == FX_SUB_SHUFFLE || op->sub == FX_SUB_SHUFFLE_DOWN || op->sub == FX_SUB_SHUFFLE_XOR ||
        op->sub == FX_SUB_BROADCAST) {
        line(r, d);
        fx_text_fmt(out, "int h%d[%d];\n", id, W);
        line(r, r->state->depth);
        fx_text_fmt(&r->state->block[r->state->depth], "h%d[l] = (int)(%s);\n", id, lane);
    }
    fx_lanes_close(r);
    if (varies) {
        line(r, d);
        fx_text_fmt(out, "FX_ALIGNED %s v%d[%d];\n", type, id, W);
    }
    switch (op->sub) {
    case FX_SUB_BROADCAST:
        if (!varies) {
            line(r, d);
            fx_text_fmt(out, "const %s v%d = g%d[h%d[0]];\n", type, id, id, id);
            return;
        }
        fx_text_fmt(&text, "v%d[l] = g%d[l / %d * %d + h%d[l]];", id, id, S, S, id);
        break;
    case FX_SUB_SHUFFLE:
        fx_text_fmt(&text, "v%d[l] = g%d[(l / %d * %d + h%d[l] %% %d) %% %d];", id, id, S, S, id, S, W);
        break;
    case FX_SUB_SHUFFLE_DOWN:
        fx_text_fmt(&text, "v%d[l] = g%d[l %% %d + h%d[l] < %d && l + h%d[l] < %d ? l + h%d[l] : l];", id, id, S, id, S, id,
                    W, id);
        break;
    case FX_SUB_SHUFFLE_XOR:
        if (W % S == 0)
            fx_text_fmt(&text, "v%d[l] = g%d[l ^ h%d[l] & %d];", id, id, id, S - 1);
        else
            fx_text_fmt(&text, "v%d[l] = g%d[(l ^ h%d[l]) < %d ? l ^ h%d[l] : l];", id, id, id, W, id);
        break;
    case FX_SUB_SCAN_ADD:
    case FX_SUB_EXSCAN_ADD:
        snprintf(first, sizeof first, "g%d[l]", id);
        line(r, d);
        fx_text_fmt(out, "for (int l = 0; l < %d; l++) v%d[l] = l %% %d == 0 ? %s : v%d[l - 1] + g%d[%s];\n", W, id, S,
                    op->sub == FX_SUB_SCAN_ADD ? first : "0", id, id, op->sub == FX_SUB_SCAN_ADD ? "l" : "l - 1");
        return;
    default: { /* a tree by halves in each subgroup */
        line(r, d);
        if (!varies)
            fx_text_fmt(out, "%s v%d;\n", type, id);
        fx_text_fmt(out, "    for (int s = 0; s < %d; s += %d) {\n", W, S);
        line(r, d);
        fx_text_fmt(out, "    const int n = %d - s < %d ? %d - s : %d;\n", W, S, W, S);
        line(r, d);
        fx_text_fmt(out, "    for (int h = %d; h > 0; h /= 2) for (int l = s; l < s + h; l++) if (l + h < s + n) {\n",
                    S / 2);
        line(r, d);
        fx_text_fmt(out, "        const %s a = g%d[l], b = g%d[l + h]; g%d[l] = %s; }\n", type, id, id, id,
                    combine(op->sub));
        line(r, d);
        if (varies)
            fx_text_fmt(out, "    for (int l = s; l < s + n; l++) v%d[l] = g%d[s]; }\n", id, id);
        else
            fx_text_fmt(out, "    v%d = g%d[s]; }\n", id, id);
        return;
    }
    }
    each(r, text.s ? text.s : "");
    if (text.failed)
        r->state->status = fx_fail_oom(0);
    fx_text_free(&text);
}
