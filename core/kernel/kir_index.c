/* kir_index.c - index arithmetic, simplified with ranges as it is made.
 *
 * Sums are kept in a normal form: atoms with constant factors, ordered by (depth, id), then a constant.
 * Quotients and remainders by a constant drop what divides evenly, and k*c*(x/c) + k*(x%c) becomes k*x:
 * a reshape of a reshape costs nothing, and equal index functions are equal pointers. */
#include <stdlib.h>

#include "core/kernel/kir_build.h"

enum { MAX_TERMS = 24 };

typedef struct sum {
    int n;
    struct {
        fx_kx *x;
        int64_t c;
    } t[MAX_TERMS];
    int64_t c0;
    bool overflow;
} sum;

static int64_t sat_add(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (b > 0 ? INT64_MAX : INT64_MIN) : r;
}
static int64_t sat_mul(int64_t a, int64_t b) {
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : r;
}
static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static fx_dtype fit(int64_t lo, int64_t hi) {
    return lo < INT32_MIN || hi > INT32_MAX ? FX_S64 : FX_S32;
}

static fx_kx *node(fx_kir *k, fx_kop kop, fx_kx *a, fx_kx *b, int64_t i, int64_t lo, int64_t hi) {
    fx_kx t = {.kop = kop, .type = fit(lo, hi), .n = b ? 2 : 1, .a = {a, b}, .i = i, .lo = lo, .hi = hi};
    return fx_kx_make(k, &t);
}

bool fx_kx_is_const(const fx_kx *x) {
    return x->kop == FX_K_INT || x->kop == FX_K_FLOAT;
}
bool fx_kx_is_int(const fx_kx *x, int64_t v) {
    return x->kop == FX_K_INT && x->i == v;
}

static void put(sum *s, fx_kx *x, int64_t c) {
    for (int j = 0; j < s->n; j++)
        if (s->t[j].x == x) {
            s->t[j].c += c;
            if (!s->t[j].c)
                s->t[j] = s->t[--s->n];
            return;
        }
    if (!c)
        return;
    if (s->n == MAX_TERMS) {
        s->overflow = true;
        return;
    }
    s->t[s->n].x = x;
    s->t[s->n++].c = c;
}

static void gather(sum *s, fx_kx *x, int64_t c) {
    if (x->kop == FX_K_INT)
        s->overflow |= __builtin_add_overflow(s->c0, sat_mul(x->i, c), &s->c0);
    else if (x->kop == FX_K_ADD) {
        gather(s, x->a[0], c);
        gather(s, x->a[1], c);
    } else if (x->kop == FX_K_MUL && x->a[1]->kop == FX_K_INT)
        gather(s, x->a[0], sat_mul(c, x->a[1]->i));
    else if (x->kop == FX_K_CAST && (x->type == FX_S32 || x->type == FX_S64) &&
             (x->a[0]->type == FX_S32 || x->a[0]->type == FX_S64) && x->lo == x->a[0]->lo && x->hi == x->a[0]->hi)
        gather(s, x->a[0], c); /* a change of width only */
    else
        put(s, x, c);
}

/* One step of k*(x%c) + k*c*(x/c) -> k*x, also with (x/c)%d in the place of x/c. */
static bool merge(fx_kir *k, sum *s) {
    for (int i = 0; i < s->n; i++) {
        fx_kx *m = s->t[i].x;
        if (m->kop != FX_K_MOD)
            continue;
        int64_t c = m->i, kc = s->t[i].c;
        for (int j = 0; j < s->n; j++) {
            fx_kx *q = s->t[j].x;
            if (j == i || s->t[j].c != sat_mul(kc, c))
                continue;
            fx_kx *whole = NULL;
            if (q == fx_k_div(k, m->a[0], c))
                whole = m->a[0];
            else if (q->kop == FX_K_MOD && q->a[0] == fx_k_div(k, m->a[0], c))
                whole = fx_k_mod(k, m->a[0], sat_mul(c, q->i));
            if (!whole)
                continue;
            sum out = {.c0 = s->c0};
            for (int l = 0; l < s->n; l++)
                if (l != i && l != j)
                    put(&out, s->t[l].x, s->t[l].c);
            gather(&out, whole, kc);
            if (out.overflow)
                return false;
            *s = out;
            return true;
        }
    }
    return false;
}

static fx_kx *times(fx_kir *k, fx_kx *x, int64_t c) {
    if (c == 1)
        return x;
    int64_t p = sat_mul(x->lo, c), q = sat_mul(x->hi, c);
    return node(k, FX_K_MUL, x, fx_k_int(k, c), 0, min64(p, q), max64(p, q));
}

static fx_kx *plus(fx_kir *k, fx_kx *a, fx_kx *b) {
    return node(k, FX_K_ADD, a, b, 0, sat_add(a->lo, b->lo), sat_add(a->hi, b->hi));
}

static fx_kx *build(fx_kir *k, sum *s) {
    while (merge(k, s)) {
    }
    for (int i = 1; i < s->n; i++) /* insertion sort by (depth, id) */
        for (int j = i; j > 0; j--) {
            const fx_kx *p = s->t[j - 1].x, *q = s->t[j].x;
            if (p->depth < q->depth || (p->depth == q->depth && p->id < q->id))
                break;
            fx_kx *x = s->t[j].x;
            int64_t c = s->t[j].c;
            s->t[j] = s->t[j - 1];
            s->t[j - 1].x = x;
            s->t[j - 1].c = c;
        }
    fx_kx *r = NULL;
    for (int i = 0; i < s->n; i++) {
        fx_kx *t = times(k, s->t[i].x, s->t[i].c);
        r = r ? plus(k, r, t) : t;
    }
    if (!r)
        return fx_k_int(k, s->c0);
    return s->c0 ? plus(k, r, fx_k_int(k, s->c0)) : r;
}

fx_kx *fx_k_add(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (fx_kx_is_int(a, 0))
        return b;
    if (fx_kx_is_int(b, 0))
        return a;
    sum s = {0};
    gather(&s, a, 1);
    gather(&s, b, 1);
    return s.overflow ? plus(k, a, b) : build(k, &s);
}

fx_kx *fx_k_mulc(fx_kir *k, fx_kx *a, int64_t c) {
    if (c == 1)
        return a;
    sum s = {0};
    gather(&s, a, c);
    return c && s.overflow ? times(k, a, c) : build(k, &s);
}

fx_kx *fx_k_addc(fx_kir *k, fx_kx *a, int64_t c) {
    return fx_k_add(k, a, fx_k_int(k, c));
}
fx_kx *fx_k_sub(fx_kir *k, fx_kx *a, fx_kx *b) {
    return fx_k_add(k, a, fx_k_mulc(k, b, -1));
}

fx_kx *fx_k_mul(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (a->kop == FX_K_INT)
        return fx_k_mulc(k, b, a->i);
    if (b->kop == FX_K_INT)
        return fx_k_mulc(k, a, b->i);
    int64_t p = sat_mul(a->lo, b->lo), q = sat_mul(a->lo, b->hi), r = sat_mul(a->hi, b->lo), t = sat_mul(a->hi, b->hi);
    if (a->id > b->id) {
        fx_kx *swap = a;
        a = b;
        b = swap;
    }
    return node(k, FX_K_MUL, a, b, 0, min64(min64(p, q), min64(r, t)), max64(max64(p, q), max64(r, t)));
}

static int64_t gcd64(int64_t a, int64_t b) {
    a = a < 0 ? -a : a;
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

static int64_t floor_div(int64_t a, int64_t c) {
    return a / c - (a % c < 0);
}

/* Splits x into c * whole + rest with rest never negative; false when that isn't possible. */
static bool split(fx_kir *k, fx_kx *x, int64_t c, fx_kx **whole, fx_kx **rest) {
    sum s = {0}, w = {0}, r = {0};
    gather(&s, x, 1);
    if (s.overflow)
        return false;
    for (int i = 0; i < s.n; i++) {
        if (s.t[i].c % c == 0)
            put(&w, s.t[i].x, s.t[i].c / c);
        else
            put(&r, s.t[i].x, s.t[i].c);
    }
    w.c0 = floor_div(s.c0, c);
    r.c0 = s.c0 - w.c0 * c;
    if (!w.n && !w.c0) {
        *whole = fx_k_int(k, 0);
        *rest = x;
        return x->lo >= 0;
    }
    *whole = build(k, &w);
    *rest = build(k, &r);
    return (*rest)->lo >= 0;
}

/* The largest g that divides c and every factor of x, with x = g * *part + *r, 0 <= r < g. */
static int64_t common(fx_kir *k, fx_kx *x, int64_t c, fx_kx **part, int64_t *r) {
    sum s = {0};
    gather(&s, x, 1);
    int64_t g = c;
    if (s.overflow)
        return 1;
    for (int i = 0; i < s.n; i++)
        g = gcd64(s.t[i].c, g);
    if (g <= 1)
        return 1;
    for (int i = 0; i < s.n; i++)
        s.t[i].c /= g;
    int64_t q = floor_div(s.c0, g);
    *r = s.c0 - q * g;
    s.c0 = q;
    *part = build(k, &s);
    return g;
}

fx_kx *fx_k_div(fx_kir *k, fx_kx *x, int64_t c) {
    fx_kx *w, *r, *part;
    int64_t rem;
    if (c == 1)
        return x;
    if (x->kop == FX_K_INT)
        return fx_k_int(k, floor_div(x->i, c));
    if (split(k, x, c, &w, &r)) {
        if (r->hi < c)
            return w;
        if (r != x)
            return fx_k_add(k, w, fx_k_div(k, r, c));
        int64_t g = common(k, x, c, &part, &rem);
        if (g > 1)
            return fx_k_div(k, part, c / g);
    }
    if (x->kop == FX_K_DIV)
        return fx_k_div(k, x->a[0], sat_mul(x->i, c));
    if (x->kop == FX_K_MOD && x->i % c == 0)
        return fx_k_mod(k, fx_k_div(k, x->a[0], c), x->i / c);
    return node(k, FX_K_DIV, x, NULL, c, floor_div(x->lo, c), floor_div(x->hi, c));
}

fx_kx *fx_k_mod(fx_kir *k, fx_kx *x, int64_t c) {
    fx_kx *w, *r, *part;
    int64_t rem;
    if (c == 1)
        return fx_k_int(k, 0);
    if (x->kop == FX_K_INT)
        return fx_k_int(k, x->i - floor_div(x->i, c) * c);
    if (split(k, x, c, &w, &r)) {
        if (r->hi < c)
            return r;
        if (r != x)
            return fx_k_mod(k, r, c);
        int64_t g = common(k, x, c, &part, &rem);
        if (g > 1)
            return fx_k_addc(k, fx_k_mulc(k, fx_k_mod(k, part, c / g), g), rem);
    }
    if (x->kop == FX_K_MOD && x->i % c == 0)
        return fx_k_mod(k, x->a[0], c);
    return node(k, FX_K_MOD, x, NULL, c, 0, c - 1);
}

fx_kx *fx_k_min(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (a->hi <= b->lo)
        return a;
    if (b->hi <= a->lo)
        return b;
    return a == b ? a : node(k, FX_K_MIN, a, b, 0, min64(a->lo, b->lo), min64(a->hi, b->hi));
}

fx_kx *fx_k_max(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (a->lo >= b->hi)
        return a;
    if (b->lo >= a->hi)
        return b;
    return a == b ? a : node(k, FX_K_MAX, a, b, 0, max64(a->lo, b->lo), max64(a->hi, b->hi));
}

static fx_kx *compare(fx_kir *k, fx_kop kop, fx_kx *a, fx_kx *b) {
    return fx_kx_make(k, &(fx_kx){.kop = kop, .type = FX_BOOL, .n = 2, .a = {a, b}, .lo = 1, .hi = 0});
}

fx_kx *fx_k_lt(fx_kir *k, fx_kx *a, fx_kx *b) {
    fx_kx *d = fx_k_sub(k, a, b);
    if (d->hi < 0)
        return fx_k_bool(k, true);
    return d->lo >= 0 ? fx_k_bool(k, false) : compare(k, FX_K_LT, a, b);
}

fx_kx *fx_k_le(fx_kir *k, fx_kx *a, fx_kx *b) {
    fx_kx *d = fx_k_sub(k, a, b);
    if (d->hi <= 0)
        return fx_k_bool(k, true);
    return d->lo > 0 ? fx_k_bool(k, false) : compare(k, FX_K_LE, a, b);
}

fx_kx *fx_k_eq(fx_kir *k, fx_kx *a, fx_kx *b) {
    fx_kx *d = fx_k_sub(k, a, b);
    if (fx_kx_is_int(d, 0))
        return fx_k_bool(k, true);
    return d->lo > 0 || d->hi < 0 ? fx_k_bool(k, false) : compare(k, FX_K_EQ, a, b);
}

fx_kx *fx_k_and(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (a->kop == FX_K_INT)
        return a->i ? b : a;
    if (b->kop == FX_K_INT)
        return b->i ? a : b;
    return a == b ? a : compare(k, FX_K_AND, a, b);
}

fx_kx *fx_k_or(fx_kir *k, fx_kx *a, fx_kx *b) {
    if (a->kop == FX_K_INT)
        return a->i ? a : b;
    if (b->kop == FX_K_INT)
        return b->i ? b : a;
    return a == b ? a : compare(k, FX_K_OR, a, b);
}

fx_kx *fx_k_linearise(fx_kir *k, int rank, const int64_t *dims, fx_kx *const *idx) {
    fx_kx *r = fx_k_int(k, 0);
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        if (dims[d] > 1)
            r = fx_k_add(k, r, fx_k_mulc(k, idx[d], stride));
        stride = sat_mul(stride, dims[d]);
    }
    return r;
}

void fx_k_delinearise(fx_kir *k, fx_kx *linear, int rank, const int64_t *dims, fx_kx **idx) {
    for (int d = rank - 1; d >= 0; d--) {
        int64_t n = dims[d] > 0 ? dims[d] : 1;
        bool outermost = true;
        for (int e = 0; e < d; e++)
            outermost &= dims[e] <= 1;
        idx[d] = outermost && linear->hi < n ? linear : fx_k_mod(k, linear, n);
        linear = fx_k_div(k, linear, n);
    }
}

void fx_k_delinearise_around(fx_kir *k, fx_kx *linear, int rank, const int64_t *dims, int dim, fx_kx *at, fx_kx **idx) {
    int64_t sizes[FX_MAX_RANK];
    fx_kx *part[FX_MAX_RANK];
    int m = 0;
    for (int d = 0; d < rank; d++)
        if (d != dim)
            sizes[m++] = dims[d];
    fx_k_delinearise(k, linear, m, sizes, part);
    for (int d = 0, o = 0; d < rank; d++)
        idx[d] = d == dim ? at : part[o++];
}

bool fx_kx_depends(const fx_kx *x, const fx_kx *v) {
    if (x == v)
        return true;
    if (x->kop == FX_K_VAR)
        return false;
    for (int j = 0; j < x->n; j++)
        if (fx_kx_depends(x->a[j], v))
            return true;
    return false;
}

int64_t fx_kx_multiple(const fx_kx *x) {
    int64_t a, b;
    switch (x->kop) {
    case FX_K_INT:
        return x->i % 64 ? x->i & -x->i : 64;
    case FX_K_ADD:
    case FX_K_MIN:
    case FX_K_MAX:
        a = fx_kx_multiple(x->a[0]);
        b = fx_kx_multiple(x->a[1]);
        return min64(a, b);
    case FX_K_SELECT:
        a = fx_kx_multiple(x->a[1]);
        b = fx_kx_multiple(x->a[2]);
        return min64(a, b);
    case FX_K_MUL:
        return min64(fx_kx_multiple(x->a[0]) * fx_kx_multiple(x->a[1]), 64);
    case FX_K_MOD:
        return min64(fx_kx_multiple(x->a[0]), x->i & -x->i);
    case FX_K_DIV:
        a = fx_kx_multiple(x->a[0]);
        return x->i & (x->i - 1) ? 1 : a % x->i ? 1 : a / x->i;
    case FX_K_CAST:
        return fx_dtype_is_int(x->a[0]->type) && x->lo == x->a[0]->lo && x->hi == x->a[0]->hi ? fx_kx_multiple(x->a[0])
                                                                                              : 1;
    default:
        return 1;
    }
}

bool fx_kx_stride(fx_kir *k, fx_kx *x, fx_kx *v, int64_t *stride) {
    (void)k;
    sum s = {0};
    gather(&s, x, 1);
    *stride = 0;
    if (s.overflow)
        return false;
    for (int i = 0; i < s.n; i++) {
        if (s.t[i].x == v)
            *stride = s.t[i].c;
        else if (fx_kx_depends(s.t[i].x, v))
            return false;
    }
    return true;
}
