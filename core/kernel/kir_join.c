/* kir_join.c - loads of neighbouring elements become one load.
 *
 * Devices fetch up to 8 bytes a lane for the price of one element. Whoever asks for elements i and i + 1 of an
 * argument in one block, through whatever views, gets a load of both here, provided that i is known to be even
 * and that the kernel doesn't write the argument. The joined load stands
 * where the first of them stood: its index is made of the same variables as the others'. */
#include <stdlib.h>
#include <string.h>

#include "core/kernel/kir_build.h"

typedef struct load {
    fx_kstmt *st;
    struct load *next;
    int order;
    bool gone;
} load;

enum { BUCKETS = 512 };

typedef struct joiner {
    fx_kir *k;
    load *bucket[BUCKETS];
} joiner;

static unsigned bucket_of(int arg, const fx_kx *index) {
    return ((unsigned)index->id * 2654435761u ^ (unsigned)arg * 40503u) >> 8 & (BUCKETS - 1);
}

static load *find(joiner *j, int arg, const fx_kx *index) {
    for (load *l = j->bucket[bucket_of(arg, index)]; l; l = l->next)
        if (!l->gone && (int)l->st->x->i == arg && l->st->x->a[0] == index)
            return l;
    return NULL;
}

static bool joinable(const joiner *j, const fx_kstmt *s) {
    return s->kind == FX_KS_LET && s->x->kop == FX_K_LOAD && !j->k->args[s->x->i].writes &&
           !j->k->args[s->x->i].unaligned && (fx_k_pack_ok(s->x->elem, 2) || fx_k_pack_ok(s->x->elem, 4));
}

/* Turns the loads part[0..n), of consecutive elements, into one; the others' statements are marked gone. */
static void join(joiner *j, load **part, int n) {
    load *first = part[0];
    fx_kvar **vars = fx_arena_alloc(j->k->arena, sizeof *vars * (size_t)n);
    if (!vars) {
        j->k->failed = true;
        return;
    }
    for (int i = 0; i < n; i++) {
        vars[i] = part[i]->st->var;
        if (part[i]->order < first->order)
            first = part[i];
    }
    fx_kstmt joined = {.kind = FX_KS_LOADV,
                       .vars = vars,
                       .n = n,
                       .x = fx_k_div(j->k, part[0]->st->x->a[0], n),
                       .arg = (int)part[0]->st->x->i,
                       .elem = part[0]->st->x->elem,
                       .next = first->st->next};
    for (int i = 0; i < n; i++)
        part[i]->gone = true;
    *first->st = joined;
}

static void join_block(joiner *j, fx_kblock *b) {
    load *all = NULL;
    int n = 0, cap = 0;
    for (fx_kstmt *s = b->first; s; s = s->next) {
        if (s->body)
            join_block(j, s->body);
        if (s->orelse)
            join_block(j, s->orelse);
        cap += joinable(j, s);
    }
    if (cap < 2 || !(all = calloc((size_t)cap, sizeof *all)))
        return; /* unjoined is right too */
    memset(j->bucket, 0, sizeof j->bucket);
    for (fx_kstmt *s = b->first; s; s = s->next)
        if (joinable(j, s)) {
            unsigned h = bucket_of((int)s->x->i, s->x->a[0]);
            all[n] = (load){s, j->bucket[h], n, false};
            j->bucket[h] = &all[n++];
        }
    for (int width = 4; width >= 2; width /= 2)
        for (int i = 0; i < n; i++) {
            load *part[4] = {&all[i]};
            if (all[i].gone)
                continue;
            fx_kx *index = all[i].st->x->a[0];
            int arg = (int)all[i].st->x->i, have = 1;
            if (!fx_k_pack_ok(all[i].st->x->elem, width) || fx_kx_multiple(index) % width)
                continue;
            while (have < width && (part[have] = find(j, arg, fx_k_addc(j->k, index, have))))
                have++;
            if (have == width)
                join(j, part, width);
        }
    fx_kstmt *last = NULL, **at = &b->first; /* unlink what is gone: gone and still a let */
    int i = 0;
    for (fx_kstmt *s = b->first; s; s = s->next) {
        bool mine = i < n && all[i].st == s;
        if (mine && all[i++].gone && s->kind == FX_KS_LET)
            continue;
        *at = s;
        at = &s->next;
        last = s;
    }
    *at = NULL;
    b->last = last;
    free(all);
}

void fx_kir_join_loads(fx_kir *k) {
    joiner j = {.k = k};
    if (!k->failed)
        join_block(&j, &k->body);
}

static int count_block(const fx_kblock *b) {
    int n = 0;
    for (const fx_kstmt *s = b ? b->first : NULL; s; s = s->next)
        n += (s->kind == FX_KS_LOADV) + (s->kind == FX_KS_LET && s->x->kop == FX_K_LOAD) + count_block(s->body) +
             count_block(s->orelse);
    return n;
}

int fx_kir_count_loads(const fx_kir *k) {
    return count_block(&k->body);
}
