/* kir.c - building kernels: hash-consed expressions, variables, blocks and statements.
 *
 * Invariant: open blocks form a chain from k->block to the body; a variable is visible in every block
 * below the one that declares it, and its depth says which of the open blocks that is. */
#include "core/kernel/kir.h"

#include <math.h>
#include <string.h>

#include "core/kernel/kir_build.h"

static void *grab(fx_kir *k, size_t bytes) {
    void *p = fx_arena_alloc(k->arena, bytes);
    if (!p)
        k->failed = true;
    return p;
}

static fx_kx oom_expr; /* what a builder returns when the host is out of memory: never printed */
static fx_kblock oom_block;

void fx_kir_init(fx_kir *k, fx_arena *arena) {
    memset(k, 0, sizeof *k);
    k->arena = arena;
    k->n_table = 256;
    k->table = grab(k, sizeof *k->table * (size_t)k->n_table);
    k->body.open = true;
    k->block = &k->body;
    k->workgroup[0] = k->workgroup[1] = k->workgroup[2] = 1;
}

fx_dtype fx_kir_register(fx_dtype e) {
    switch (e) {
    case FX_S8:
    case FX_S16:
        return FX_S32;
    case FX_U8:
    case FX_U16:
        return FX_U32;
    case FX_F16:
    case FX_BF16:
        return FX_F32;
    default:
        return e;
    }
}

int64_t fx_kir_arguments(const fx_kir *k) {
    int64_t own = k->n_arg - k->segment.fixed;
    return k->segment.count ? k->segment.fixed + k->segment.count * own : k->n_arg;
}

int fx_k_arg(fx_kir *k, fx_dtype elem) {
    if (k->n_arg == k->cap_arg) {
        int cap = k->cap_arg ? 2 * k->cap_arg : 8;
        fx_karg *a = grab(k, sizeof *a * (size_t)cap);
        if (!a)
            return 0;
        if (k->n_arg)
            memcpy(a, k->args, sizeof *a * (size_t)k->n_arg);
        k->args = a;
        k->cap_arg = cap;
    }
    k->args[k->n_arg] = (fx_karg){.elem = elem};
    return k->n_arg++;
}

int fx_k_shared(fx_kir *k, fx_dtype elem, int64_t count) {
    if (k->n_shared == (int)(sizeof k->shared / sizeof *k->shared))
        return -1;
    k->shared[k->n_shared] = (fx_kshared){elem, count};
    return k->n_shared++;
}

/* ---- expressions ---- */

static uint32_t mix(uint32_t h, uint64_t v) {
    h ^= (uint32_t)v ^ (uint32_t)(v >> 32);
    h *= 0x9e3779b1u;
    return h ^ h >> 15;
}

static uint32_t hash_of(const fx_kx *x) {
    uint64_t fbits;
    memcpy(&fbits, &x->f, 8);
    uint32_t h = mix(17, (uint64_t)x->kop << 8 | (uint64_t)x->type);
    for (int j = 0; j < x->n; j++)
        h = mix(h, (uint64_t)(uint32_t)x->a[j]->id + 1);
    h = mix(h, (uint64_t)x->i);
    h = mix(h, fbits);
    h = mix(h, (uint64_t)x->op << 24 | (uint64_t)x->sub << 16 | (uint64_t)x->elem << 8 | (uint64_t)x->elem2);
    for (const char *s = x->name; s && *s; s++)
        h = mix(h, (unsigned char)*s);
    return x->var ? mix(h, (uint64_t)(uint32_t)x->var->id + 7) : h;
}

static bool same(const fx_kx *x, const fx_kx *y) {
    if (x->kop != y->kop || x->type != y->type || x->n != y->n || x->i != y->i || memcmp(&x->f, &y->f, 8) ||
        x->op != y->op || x->sub != y->sub || x->elem != y->elem || x->elem2 != y->elem2 || x->var != y->var)
        return false;
    for (int j = 0; j < x->n; j++)
        if (x->a[j] != y->a[j])
            return false;
    return x->name == y->name || (x->name && y->name && !strcmp(x->name, y->name));
}

static void grow(fx_kir *k) {
    int n = 2 * k->n_table;
    fx_kx **t = grab(k, sizeof *t * (size_t)n);
    if (!t)
        return;
    for (int b = 0; b < k->n_table; b++)
        for (fx_kx *x = k->table[b], *next; x; x = next) {
            next = x->next;
            x->next = t[x->hash % (uint32_t)n];
            t[x->hash % (uint32_t)n] = x;
        }
    k->table = t;
    k->n_table = n;
}

static void full_range(fx_kx *x) {
    switch (x->type) {
    case FX_BOOL:
        x->lo = 0, x->hi = 1;
        break;
    case FX_S32:
        x->lo = INT32_MIN, x->hi = INT32_MAX;
        break;
    case FX_U32:
        x->lo = 0, x->hi = UINT32_MAX;
        break;
    case FX_U64: /* values past the signed range are not index material */
        x->lo = 0, x->hi = INT64_MAX;
        break;
    default:
        x->lo = INT64_MIN, x->hi = INT64_MAX;
    }
}

fx_kx *fx_kx_make(fx_kir *k, const fx_kx *t) {
    uint32_t h = hash_of(t);
    if (!k->table)
        return &oom_expr;
    for (fx_kx *x = k->table[h % (uint32_t)k->n_table]; x; x = x->next)
        if (x->hash == h && same(x, t))
            return x;
    fx_kx *x = grab(k, sizeof *x);
    if (!x)
        return &oom_expr;
    *x = *t;
    x->hash = h;
    x->id = k->n_expr++;
    if (x->lo > x->hi)
        full_range(x);
    for (int j = 0; j < x->n; j++) {
        x->depth = x->depth > x->a[j]->depth ? x->depth : x->a[j]->depth;
        x->pinned |= x->a[j]->pinned;
    }
    if (k->n_expr > 2 * k->n_table)
        grow(k);
    x->next = k->table[h % (uint32_t)k->n_table];
    k->table[h % (uint32_t)k->n_table] = x;
    return x;
}

#define UNKNOWN .lo = 1, .hi = 0

static fx_kx *new_var(fx_kir *k, fx_dtype type, int64_t lo, int64_t hi, int depth, bool mutable_) {
    fx_kvar *v = grab(k, sizeof *v);
    if (!v)
        return &oom_expr;
    v->id = k->n_var++;
    v->mutable_ = mutable_;
    v->depth = depth;
    v->x = fx_kx_make(
        k, &(fx_kx){.kop = FX_K_VAR, .type = type, .lo = lo, .hi = hi, .var = v, .depth = depth, .pinned = mutable_});
    return v->x;
}

fx_kx *fx_k_const(fx_kir *k, fx_dtype type, int64_t v) {
    return fx_kx_make(k, &(fx_kx){.kop = FX_K_INT, .type = type, .i = v, .lo = v, .hi = v});
}
fx_kx *fx_k_int(fx_kir *k, int64_t v) {
    return fx_k_const(k, v >= INT32_MIN && v <= INT32_MAX ? FX_S32 : FX_S64, v);
}
fx_kx *fx_k_bool(fx_kir *k, bool v) {
    return fx_k_const(k, FX_BOOL, v);
}
fx_kx *fx_k_float(fx_kir *k, fx_dtype type, double v) {
    if (v != v)
        v = (double)NAN; /* one NaN */
    return fx_kx_make(k,
                      &(fx_kx){.kop = FX_K_FLOAT, .type = type, .f = type == FX_F32 ? (double)(float)v : v, UNKNOWN});
}
fx_kx *fx_k_number(fx_kir *k, fx_dtype type, double v) {
    return type == FX_F32 || type == FX_F64 ? fx_k_float(k, type, v) : fx_k_const(k, type, (int64_t)v);
}

fx_kx *fx_k_builtin(fx_kir *k, fx_kbuiltin which, int64_t count) {
    if (!k->builtin[which]) {
        fx_kx *x = new_var(k, FX_S32, 0, count - 1, 0, false);
        if (!x->var)
            return x;
        x->var->builtin = true;
        x->var->which = (int)which;
        k->builtin[which] = x->var;
    }
    fx_kx *x = k->builtin[which]->x;
    return x->hi == 0 ? fx_k_int(k, 0) : x;
}

fx_kx *fx_k_not(fx_kir *k, fx_kx *a) {
    if (a->kop == FX_K_INT)
        return fx_k_bool(k, !a->i);
    return a->kop == FX_K_NOT ? a->a[0]
                              : fx_kx_make(k, &(fx_kx){.kop = FX_K_NOT, .type = FX_BOOL, .n = 1, .a = {a}, UNKNOWN});
}

fx_kx *fx_k_select(fx_kir *k, fx_kx *c, fx_kx *a, fx_kx *b) {
    if (c->kop == FX_K_INT)
        return c->i ? a : b;
    if (a == b)
        return a;
    fx_dtype type = a->type;
    if (a->type != b->type && type != FX_BOOL && (b->type == FX_S64 || a->type == FX_S64))
        type = FX_S64;
    bool ints = type == FX_S32 || type == FX_S64;
    return fx_kx_make(k, &(fx_kx){.kop = FX_K_SELECT,
                                  .type = type,
                                  .n = 3,
                                  .a = {c, a, b},
                                  .lo = ints ? (a->lo < b->lo ? a->lo : b->lo) : 1,
                                  .hi = ints ? (a->hi > b->hi ? a->hi : b->hi) : 0});
}

static bool is_integer(fx_dtype t) {
    return t == FX_S32 || t == FX_S64 || t == FX_U32 || t == FX_U64;
}

fx_kx *fx_k_cast(fx_kir *k, fx_kx *a, fx_dtype type) {
    if (a->type == type)
        return a;
    if (a->kop == FX_K_INT && (type == FX_F32 || type == FX_F64))
        return fx_k_float(k, type, (double)a->i);
    fx_kx t = {.kop = FX_K_CAST, .type = type, .n = 1, .a = {a}, UNKNOWN};
    if (is_integer(a->type) && is_integer(type)) {
        fx_kx r = {.type = type};
        full_range(&r);
        if (a->lo >= r.lo && a->hi <= r.hi && a->type != FX_U64)
            t.lo = a->lo, t.hi = a->hi;
        if (a->kop == FX_K_INT && t.lo <= t.hi)
            return fx_k_const(k, type, a->i);
    }
    return fx_kx_make(k, &t);
}

fx_kx *fx_k_bits(fx_kir *k, fx_kx *a, fx_dtype type) {
    return a->type == type ? a : fx_kx_make(k, &(fx_kx){.kop = FX_K_BITS, .type = type, .n = 1, .a = {a}, UNKNOWN});
}

fx_kx *fx_k_op(fx_kir *k, fx_op op, fx_dtype elem, int n, fx_kx *const *a) {
    fx_kx t = {.kop = FX_K_OP, .op = op, .elem = elem, .n = n, UNKNOWN};
    t.type = fx_op_get(op)->bool_result ? FX_BOOL : fx_kir_register(elem);
    for (int j = 0; j < n; j++)
        t.a[j] = a[j];
    if (op == FX_OP_select && n == 3)
        return fx_k_select(k, a[0], a[1], a[2]);
    if (op == FX_OP_div && a[1]->kop == FX_K_FLOAT && a[1]->f == 0) /* lavapipe leaves a division by literal 0 undefined */
        return fx_k_op2(k, FX_OP_mul, elem, a[0], fx_k_float(k, a[1]->type, signbit(a[1]->f) ? -INFINITY : INFINITY));
    return fx_kx_make(k, &t);
}

fx_kx *fx_k_op2(fx_kir *k, fx_op op, fx_dtype elem, fx_kx *a, fx_kx *b) {
    fx_kx *v[2] = {a, b};
    return fx_k_op(k, op, elem, 2, v);
}

fx_kx *fx_k_convert(fx_kir *k, fx_kx *a, fx_dtype from, fx_dtype to) {
    if (from == to)
        return a;
    return fx_kx_make(
        k, &(fx_kx){
               .kop = FX_K_CONVERT, .type = fx_kir_register(to), .elem = from, .elem2 = to, .n = 1, .a = {a}, UNKNOWN});
}

fx_kx *fx_k_round(fx_kir *k, fx_kx *a, fx_dtype elem, int e, int m) {
    return fx_kx_make(
        k, &(fx_kx){.kop = FX_K_ROUND, .type = a->type, .elem = elem, .i = e << 8 | m, .n = 1, .a = {a}, UNKNOWN});
}

fx_kx *fx_k_fn(fx_kir *k, const char *name, fx_dtype elem, int n, fx_kx *const *a) {
    fx_kx t = {.kop = FX_K_FN, .type = fx_kir_register(elem), .elem = elem, .name = name, .n = n, UNKNOWN};
    if (!strcmp(name, "bits"))
        t.type = FX_U32;
    if (!strncmp(name, "is_", 3))
        t.type = FX_BOOL;
    for (int j = 0; j < n; j++)
        t.a[j] = a[j];
    return fx_kx_make(k, &t);
}

/* ---- statements ---- */

static fx_kstmt *append(fx_kir *k, fx_kblock *b, fx_kst kind) {
    fx_kstmt *s = grab(k, sizeof *s);
    static fx_kstmt oom_stmt;
    if (!s)
        return &oom_stmt;
    s->kind = kind;
    if (b->last)
        b->last->next = s;
    else
        b->first = s;
    b->last = s;
    return s;
}

/* The outermost open block where x may be computed: out of loops as far as its variables allow. */
static fx_kblock *home(fx_kir *k, const fx_kx *x) {
    fx_kblock *b = k->block;
    bool load = x->kop == FX_K_LOAD;
    while (!x->pinned && b->depth > x->depth && b->loop && !(load && b->maybe_empty))
        b = b->parent;
    return b;
}

fx_kx *fx_k_let(fx_kir *k, fx_kx *x) {
    if (x->kop == FX_K_INT || x->kop == FX_K_FLOAT || (x->kop == FX_K_VAR && !x->pinned))
        return x;
    if (x->let && x->let_block->open && !x->pinned)
        return x->let;
    fx_kblock *b = home(k, x);
    fx_kx *v = new_var(k, x->type, x->lo, x->hi, b->depth, false);
    fx_kstmt *s = append(k, b, FX_KS_LET);
    s->var = v->var;
    s->x = x;
    x->let = v;
    x->let_block = b;
    return v;
}

fx_kx *fx_k_bound(fx_kir *k, fx_kx *x, int64_t lo, int64_t hi) {
    if (x->lo >= lo && x->hi <= hi)
        return x;
    if (x->lo > hi || x->hi < lo) /* never so: nothing here runs */
        return fx_k_int(k, lo);
    return fx_k_rename(k, x, lo > x->lo ? lo : x->lo, hi < x->hi ? hi : x->hi);
}

fx_kx *fx_k_guard(fx_kir *k, fx_kx *x, int64_t n, bool *guard) {
    *guard = x->hi >= n;
    if (!*guard)
        return x;
    fx_k_if(k, fx_k_lt(k, x, fx_k_int(k, n)));
    return fx_k_bound(k, x, 0, n - 1);
}

fx_kx *fx_k_rename(fx_kir *k, fx_kx *x, int64_t lo, int64_t hi) {
    fx_kx *v = new_var(k, lo < INT32_MIN || hi > INT32_MAX ? FX_S64 : FX_S32, lo, hi, k->block->depth, false);
    fx_kstmt *s = append(k, k->block, FX_KS_LET);
    s->var = v->var;
    s->x = v->type == x->type ? x : fx_k_cast(k, x, v->type);
    return v;
}

fx_kx *fx_k_load(fx_kir *k, int arg, fx_kx *index) {
    fx_karg *a = &k->args[arg];
    a->reads = a->elsewhere = true;
    fx_dtype type = fx_kir_register(a->elem);
    fx_kx t = {
        .kop = FX_K_LOAD, .type = type, .elem = a->elem, .n = 1, .a = {index}, .i = arg, .pinned = a->writes, UNKNOWN};
    return fx_k_let(k, fx_kx_make(k, &t));
}

bool fx_k_pack_ok(fx_dtype elem, int n) {
    size_t bytes = fx_dtype_size(elem) * (size_t)n;
    return elem != FX_BOOL && n > 1 && n <= 4 && (bytes == 4 || bytes == 8);
}

void fx_k_loadv(fx_kir *k, int arg, fx_kx *index, int n, fx_kx **out) {
    fx_karg *a = &k->args[arg];
    a->reads = a->elsewhere = true;
    fx_kx load = {.kop = FX_K_LOAD, .depth = index->depth, .pinned = index->pinned || a->writes};
    fx_kblock *b = home(k, &load);
    fx_kstmt *s = append(k, b, FX_KS_LOADV);
    s->arg = arg;
    s->x = fx_k_div(k, index, n);
    s->n = n;
    s->elem = a->elem;
    s->vars = grab(k, sizeof *s->vars * (size_t)n);
    for (int j = 0; j < n; j++) {
        out[j] = new_var(k, fx_kir_register(s->elem), 1, 0, b->depth, false);
        if (s->vars)
            s->vars[j] = out[j]->var;
    }
}

void fx_k_store(fx_kir *k, int arg, fx_kx *index, fx_kx *x) {
    fx_kstmt *s = append(k, k->block, FX_KS_STORE);
    k->args[arg].writes = true;
    s->arg = arg;
    s->elem = k->args[arg].elem;
    s->y = index;
    s->x = x;
}

void fx_k_storev(fx_kir *k, int arg, fx_kx *index, int n, fx_kx *const *x) {
    fx_kstmt *s = append(k, k->block, FX_KS_STOREV);
    k->args[arg].writes = true;
    s->arg = arg;
    s->elem = k->args[arg].elem;
    s->y = fx_k_div(k, index, n);
    s->n = n;
    s->xs = fx_arena_copy(k->arena, x, sizeof *x * (size_t)n);
    k->failed |= !s->xs;
}

fx_kx *fx_k_shared_load(fx_kir *k, int shared, fx_kx *index) {
    fx_kx t = {.kop = FX_K_SHARED,
               .type = k->shared[shared].elem,
               .elem = k->shared[shared].elem,
               .n = 1,
               .a = {index},
               .i = shared,
               .pinned = true,
               UNKNOWN};
    return fx_k_let(k, fx_kx_make(k, &t));
}

void fx_k_shared_store(fx_kir *k, int shared, fx_kx *index, fx_kx *x) {
    fx_kstmt *s = append(k, k->block, FX_KS_SHARED_STORE);
    s->arg = shared;
    s->y = index;
    s->x = x;
}

fx_kx *fx_k_mut(fx_kir *k, fx_kx *init) {
    fx_kx *v = new_var(k, init->type, 1, 0, k->block->depth, true);
    fx_kstmt *s = append(k, k->block, FX_KS_MUT);
    s->var = v->var;
    s->x = init;
    return v;
}

void fx_k_set(fx_kir *k, fx_kx *mut, fx_kx *x) {
    fx_kstmt *s = append(k, k->block, FX_KS_SET);
    s->var = mut->var;
    s->x = x;
}

fx_kx *fx_k_read(fx_kir *k, fx_kx *mut) {
    return fx_k_let(k, mut);
}

fx_kx *fx_k_array(fx_kir *k, int n, fx_kx *const *values) {
    fx_kx *v = new_var(k, values[0]->type, 1, 0, k->block->depth, true);
    fx_kstmt *s = append(k, k->block, FX_KS_ARRAY);
    s->var = v->var;
    s->n = n;
    s->xs = fx_arena_copy(k->arena, values, sizeof *values * (size_t)n);
    k->failed |= !s->xs;
    return v;
}

fx_kx *fx_k_element(fx_kir *k, fx_kx *array, fx_kx *index) {
    fx_kx t = {.kop = FX_K_ELEMENT,
               .type = array->type,
               .n = 1,
               .a = {index},
               .var = array->var,
               .depth = array->depth,
               .pinned = true,
               UNKNOWN};
    return fx_k_let(k, fx_kx_make(k, &t));
}

fx_kx *fx_k_subgroup(fx_kir *k, fx_ksub sub, fx_kx *x, fx_kx *lane) {
    /* pinned: all lanes must take part, so it stays where it was written */
    fx_kx t = {.kop = FX_K_SUBGROUP,
               .type = x->type,
               .sub = sub,
               .n = lane ? 2 : 1,
               .a = {x, lane, NULL},
               .pinned = true,
               UNKNOWN};
    return fx_k_let(k, fx_kx_make(k, &t));
}

void fx_k_segment(fx_kir *k, fx_kx *segment, int64_t count) {
    fx_kstmt *s = append(k, k->block, FX_KS_SEGMENT);
    k->segment.fixed = k->n_arg;
    k->segment.count = count;
    s->x = segment;
}

void fx_k_barrier(fx_kir *k) {
    append(k, k->block, FX_KS_BARRIER);
}

void fx_k_comment(fx_kir *k, const char *text) {
    fx_kstmt *s = append(k, k->block, FX_KS_COMMENT);
    s->text = fx_arena_strdup(k->arena, text);
}

static void open_block(fx_kir *k, fx_kstmt *owner, bool loop, bool maybe_empty) {
    fx_kblock *b = grab(k, sizeof *b);
    if (!b)
        b = &oom_block;
    *b = (fx_kblock){.parent = k->block,
                     .depth = k->block->depth + 1,
                     .loop = loop,
                     .open = true,
                     .maybe_empty = maybe_empty,
                     .owner = owner};
    k->block = b;
}

/* A loop's statement is appended when it closes, so that lets may still go before it. */
fx_kx *fx_k_for(fx_kir *k, fx_kx *from, fx_kx *to, int64_t step, bool unroll) {
    fx_kstmt *s = grab(k, sizeof *s);
    if (!s)
        return &oom_expr;
    bool sure = from->hi < to->lo;
    s->kind = FX_KS_FOR;
    s->x = from;
    s->y = to;
    s->step = step;
    s->unroll = unroll ? FX_UNROLL_YES : FX_UNROLL_AUTO;
    open_block(k, s, true, !sure);
    int64_t hi = to->hi - 1 > from->lo ? to->hi - 1 : from->lo;
    if (step > 1 && fx_kx_is_const(from) && fx_kx_is_const(to) && hi > from->lo)
        hi = from->lo + (hi - from->lo) / step * step;
    fx_dtype type = from->lo < INT32_MIN || hi > (int64_t)INT32_MAX - step ? FX_S64 : FX_S32;
    fx_kx *v = new_var(k, type, from->lo, hi, k->block->depth, false);
    s->var = v->var;
    return v;
}

void fx_k_keep_loop(fx_kir *k) {
    if (k->block->owner)
        k->block->owner->unroll = FX_UNROLL_NO;
}

void fx_k_while(fx_kir *k, fx_kx *cond) {
    fx_kstmt *s = grab(k, sizeof *s);
    if (!s)
        return;
    s->kind = FX_KS_WHILE;
    s->x = cond;
    open_block(k, s, true, true);
}

void fx_k_if(fx_kir *k, fx_kx *cond) {
    fx_kstmt *s = grab(k, sizeof *s);
    if (!s)
        return;
    s->kind = FX_KS_IF;
    s->x = cond;
    open_block(k, s, false, true);
}

void fx_k_else(fx_kir *k) {
    fx_kblock *b = k->block;
    fx_kstmt *s = b->owner;
    b->open = false;
    k->block = b->parent;
    s->body = b;
    open_block(k, s, false, true);
}

void fx_k_end(fx_kir *k) {
    fx_kblock *b = k->block;
    fx_kstmt *s = b->owner;
    if (!s || b == &oom_block)
        return;
    b->open = false;
    k->block = b->parent;
    if (s->body)
        s->orelse = b;
    else
        s->body = b;
    fx_kblock *p = k->block;
    if (p->last)
        p->last->next = s;
    else
        p->first = s;
    p->last = s;
}
