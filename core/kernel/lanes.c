/* lanes.c - which expressions differ between lanes, and which statements make a region. */
#include "core/kernel/lanes.h"

#include <stdlib.h>
#include <string.h>

/* ---- what occurs ---- */

static void scan(fx_lanes *l, const fx_kblock *b) {
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        l->exchange |= s->kind == FX_KS_LET && s->x->kop == FX_K_SUBGROUP;
        l->barrier |= s->kind == FX_KS_BARRIER;
        scan(l, s->body);
        scan(l, s->orelse);
    }
}

/* ---- what varies ---- */

static bool builtin_varies(const fx_lanes *l, int which) {
    if (which == FX_KB_LANE || which == FX_KB_LOCAL || which == FX_KB_LOCAL_X || which == FX_KB_LOCAL_Y)
        return true;
    return which == FX_KB_SUBGROUP && l->subgroups == 1 && l->width > l->subgroup;
}

bool fx_lanes_varies(fx_lanes *l, const fx_kx *x) {
    if (x->kop == FX_K_VAR)
        return x->var->builtin ? builtin_varies(l, x->var->which) : l->varying[x->var->id];
    if (l->memo[x->id])
        return l->memo[x->id] == 1;
    bool yes = x->kop == FX_K_ELEMENT && l->varying[x->var->id];
    for (int j = 0; j < x->n && !yes; j++)
        yes = x->a[j] && fx_lanes_varies(l, x->a[j]);
    if (x->kop == FX_K_SUBGROUP) /* a broadcast is the same for a subgroup; what shuffles give is not */
        yes = l->width > l->subgroup || (x->sub != FX_SUB_BROADCAST && (x->sub < FX_SUB_ADD || x->sub > FX_SUB_XOR));
    l->memo[x->id] = yes ? 1 : 2;
    return yes;
}

static bool mark(fx_lanes *l, const fx_kvar *v, bool varies) {
    if (!varies || l->varying[v->id])
        return false;
    return l->varying[v->id] = true;
}

/* One pass; true when a variable was found to vary. `apart`: lanes may go different ways here. */
static bool spread(fx_lanes *l, const fx_kblock *b, bool apart) {
    bool changed = false;
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        bool x = apart || (s->x && fx_lanes_varies(l, s->x)), y = s->y && fx_lanes_varies(l, s->y);
        switch (s->kind) {
        case FX_KS_LET:
        case FX_KS_MUT:
        case FX_KS_SET:
            changed |= mark(l, s->var, x);
            break;
        case FX_KS_LOADV:
            for (int j = 0; j < s->n; j++)
                changed |= mark(l, s->vars[j], x);
            break;
        case FX_KS_ARRAY:
            for (int j = 0; j < s->n; j++)
                x |= fx_lanes_varies(l, s->xs[j]);
            changed |= mark(l, s->var, x);
            break;
        case FX_KS_FOR:
            changed |= mark(l, s->var, x || y);
            changed |= spread(l, s->body, x || y);
            break;
        case FX_KS_WHILE:
        case FX_KS_IF:
            changed |= spread(l, s->body, x);
            changed |= spread(l, s->orelse, x);
            break;
        default:
            break;
        }
    }
    return changed;
}

/* ---- regions ---- */

static bool statement_varies(fx_lanes *l, const fx_kstmt *s) {
    bool yes = (s->x && fx_lanes_varies(l, s->x)) || (s->y && fx_lanes_varies(l, s->y));
    switch (s->kind) {
    case FX_KS_LET:
    case FX_KS_MUT:
    case FX_KS_SET:
    case FX_KS_ARRAY:
        return l->varying[s->var->id];
    case FX_KS_LOADV:
        return l->varying[s->vars[0]->id];
    case FX_KS_STOREV:
        for (int j = 0; j < s->n; j++)
            yes |= fx_lanes_varies(l, s->xs[j]);
        return yes;
    case FX_KS_COMMENT:
    case FX_KS_BARRIER:
    case FX_KS_SEGMENT:
        return false;
    default:
        return yes;
    }
}

bool fx_lanes_early(const fx_lanes *l, const fx_kstmt *s) {
    if (s->kind == FX_KS_COMMENT || (s->kind == FX_KS_MUT && !s->x->pinned))
        return true;
    if (s->kind == FX_KS_LOADV)
        return !l->k->args[s->arg].writes && !s->x->pinned;
    if (s->kind != FX_KS_LET || s->x->pinned || s->x->kop == FX_K_SHARED || s->x->kop == FX_K_SUBGROUP)
        return false;
    return s->x->kop != FX_K_LOAD || !l->k->args[s->x->i].writes;
}

static void inside(fx_lanes *l, fx_kblock *b, int region) {
    for (fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        s->region = region;
        if (s->kind == FX_KS_BARRIER || (s->kind == FX_KS_LET && s->x->kop == FX_K_SUBGROUP))
            l->defect = "lanes that go different ways meet at a barrier or exchange values";
        inside(l, s->body, region);
        inside(l, s->orelse, region);
    }
}

static void number(fx_lanes *l, fx_kblock *b) {
    int open = 0;
    for (fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        bool trade = s->kind == FX_KS_LET && s->x->kop == FX_K_SUBGROUP;
        s->region = 0;
        if (trade) {
            s->region = ++l->n_region;
            open = 0;
        } else if (statement_varies(l, s)) {
            s->region = open ? open : (open = ++l->n_region);
            inside(l, s->body, open);
            inside(l, s->orelse, open);
        } else {
            open = fx_lanes_early(l, s) ? open : 0;
            number(l, s->body);
            number(l, s->orelse);
        }
    }
}

/* ---- variables that live across regions ---- */

static void homes(fx_lanes *l, const fx_kblock *b) {
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        if (s->kind == FX_KS_LET || s->kind == FX_KS_MUT || s->kind == FX_KS_ARRAY || s->kind == FX_KS_FOR)
            l->home[s->var->id] = s->region;
        for (int j = 0; s->kind == FX_KS_LOADV && j < s->n; j++)
            l->home[s->vars[j]->id] = s->region;
        homes(l, s->body);
        homes(l, s->orelse);
    }
}

static void use_var(fx_lanes *l, const fx_kvar *v, int region) {
    if (!v->builtin && l->varying[v->id] && l->home[v->id] != region)
        l->array[v->id] = true;
}

/* `seen` by expression id: the region that looked last. */
static void use(fx_lanes *l, const fx_kx *x, int region, int *seen) {
    if (!x || seen[x->id] == region)
        return;
    seen[x->id] = region;
    if (x->kop == FX_K_VAR || x->kop == FX_K_ELEMENT)
        use_var(l, x->var, region);
    for (int j = 0; j < x->n; j++)
        use(l, x->a[j], region, seen);
}

static void uses(fx_lanes *l, const fx_kblock *b, int *seen) {
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next) {
        use(l, s->x, s->region, seen);
        use(l, s->y, s->region, seen);
        for (int j = 0; j < s->n && s->xs; j++)
            use(l, s->xs[j], s->region, seen);
        if (s->kind == FX_KS_SET)
            use_var(l, s->var, s->region);
        if (s->kind == FX_KS_LET && s->x->kop == FX_K_SUBGROUP) /* the result is written between regions */
            l->array[s->var->id] = l->varying[s->var->id];
        uses(l, s->body, seen);
        uses(l, s->orelse, seen);
    }
}

bool fx_lanes_init(fx_lanes *l, const fx_kir *k, int64_t subgroup) {
    *l = (fx_lanes){.k = k, .subgroup = k->subgroup_size ? (int64_t)k->subgroup_size : subgroup, .subgroups = 1};
    size_t vars = (size_t)k->n_var + 1, exprs = (size_t)k->n_expr + 1;
    l->varying = calloc(vars, 1);
    l->array = calloc(vars, 1);
    l->home = calloc(vars, sizeof *l->home);
    l->memo = calloc(exprs, 1);
    int *seen = calloc(exprs, sizeof *seen);
    bool ok = l->varying && l->array && l->home && l->memo && seen;
    if (ok) {
        fx_kblock *body = (fx_kblock *)(uintptr_t)&k->body;
        scan(l, body);
        l->width = 1;
        for (int d = 0; d < 3; d++)
            l->width *= k->workgroup[d] ? k->workgroup[d] : 1;
        if (l->exchange && !l->barrier && l->width > l->subgroup && l->width % l->subgroup == 0) {
            l->subgroups = l->width / l->subgroup;
            l->width = l->subgroup;
        }
        while (spread(l, body, false))
            memset(l->memo, 0, exprs);
        memset(l->memo, 0, exprs);
        number(l, body);
        homes(l, body);
        memset(seen, 0xff, exprs * sizeof *seen);
        uses(l, body, seen);
    }
    free(seen);
    return ok && !l->defect;
}

void fx_lanes_free(fx_lanes *l) {
    free(l->varying);
    free(l->array);
    free(l->home);
    free(l->memo);
}
