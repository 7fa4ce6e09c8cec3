/* lower.c - values by demand: the recursion, its memo, stored values, regions, and elementwise ops. */
#include "core/compile/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"

enum { MEMO_BUCKETS = 1024 };

struct fx_memo {
    struct fx_memo *next;
    fx_node *node;
    int result, env, rank;
    fx_kx *value;
    fx_kblock *block;
    fx_kx *index[FX_MAX_RANK];
};

struct fx_env {
    struct fx_env *outer;
    const fx_graph *graph;
    fx_kx *const *args;
    int id;
};

fx_value fx_value_of(fx_node *n) {
    fx_value v = {n, 0};
    for (;;) {
        if (v.node->op == FX_OP_project)
            v = (fx_value){v.node->in[0], (int)FX_GET_INT(v.node, index)};
        else if (v.node->op == FX_OP_optimization_barrier)
            v = (fx_value){v.node->in[v.result], 0};
        else
            return v;
    }
}

const fx_spec *fx_value_spec(fx_value v) {
    return fx_result_spec(v.node, v.result);
}

void fx_lower_init(fx_lower *lo, fx_kir *k, const fx_device_caps *caps, const fx_values *values) {
    memset(lo, 0, sizeof *lo);
    lo->k = k;
    lo->caps = caps;
    lo->values = values;
    lo->memo = fx_arena_alloc(k->arena, sizeof *lo->memo * MEMO_BUCKETS);
    k->failed |= !lo->memo;
}

fx_kx *fx_lower_fail(fx_lower *lo, fx_status status, const char *fmt, ...) {
    if (lo->status == FX_OK) {
        char text[256];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        lo->status = fx_fail(status, "%s", text);
    }
    return fx_k_int(lo->k, 0);
}

int fx_lower_arg(fx_lower *lo, int buffer, fx_dtype elem) {
    for (int j = 0; j < lo->n_arg; j++)
        if (lo->arg_buffer[j] == buffer)
            return j;
    if (lo->n_arg == lo->cap_arg) {
        int cap = lo->cap_arg ? 2 * lo->cap_arg : 8;
        int *p = fx_arena_alloc(lo->k->arena, sizeof *p * (size_t)cap);
        if (!p) {
            lo->k->failed = true;
            return 0;
        }
        if (lo->n_arg)
            memcpy(p, lo->arg_buffer, sizeof *p * (size_t)lo->n_arg);
        lo->arg_buffer = p;
        lo->cap_arg = cap;
    }
    int arg = fx_k_arg(lo->k, elem);
    if (!lo->k->failed)
        lo->arg_buffer[lo->n_arg++] = buffer;
    if (!lo->k->failed)
        lo->k->args[arg].unaligned = lo->aligned && !lo->aligned(lo->aligned_user, buffer);
    return arg;
}

static int buffer_of(const fx_lower *lo, fx_value v) {
    if (!lo->values || v.node->graph != lo->values->graph)
        return -1;
    return lo->values->buffer[fx_value_id(lo->values, v)];
}

/* The second element of a pair that has been loaded. */
struct fx_pair {
    struct fx_pair *next;
    int arg;
    fx_kx *linear, *value;
    fx_kblock *block;
};

bool fx_lower_pairable(fx_lower *lo, int buffer, fx_dtype elem, int64_t count, fx_kx *linear) {
    return fx_k_pack_ok(elem, 2) && count % 2 == 0 && linear->kop != FX_K_INT && !linear->pinned &&
           fx_kx_is_int(fx_k_mod(lo->k, linear->lo < 0 ? fx_k_int(lo->k, 1) : linear, 2), 0) &&
           (!lo->aligned || lo->aligned(lo->aligned_user, buffer));
}

static fx_kx *load_pair(fx_lower *lo, int arg, fx_kx *linear) {
    fx_kx *x[2];
    struct fx_pair *p = FX_ARENA_ARRAY(lo->k->arena, struct fx_pair, 2);
    fx_k_loadv(lo->k, arg, linear, 2, x);
    fx_kblock *b = lo->k->block;
    while (b->depth > x[0]->depth && b->parent)
        b = b->parent;
    if (!p)
        return x[0];
    for (int j = 0; j < 2; j++) {
        p[j] = (struct fx_pair){lo->pair, arg, j ? fx_k_addc(lo->k, linear, 1) : linear, x[j], b};
        lo->pair = &p[j];
    }
    return x[0];
}

static fx_kx *load(fx_lower *lo, fx_value v, int arg, fx_kx *linear) {
    for (struct fx_pair *p = lo->pair; p; p = p->next)
        if (p->arg == arg && p->linear == linear && p->block->open)
            return p->value;
    if (lo->pairs &&
        fx_lower_pairable(lo, lo->arg_buffer[arg], fx_value_spec(v)->dtype, fx_spec_count(fx_value_spec(v)), linear))
        return load_pair(lo, arg, linear);
    return fx_k_load(lo->k, arg, linear);
}

fx_kx *fx_lower_load(fx_lower *lo, fx_value v, fx_kx *linear) {
    int arg = fx_lower_arg(lo, buffer_of(lo, v), fx_value_spec(v)->dtype);
    if (lo->k->failed)
        return fx_k_int(lo->k, 0);
    bool here = linear == lo->in_place || linear == lo->in_place2, elsewhere = lo->k->args[arg].elsewhere;
    fx_kx *x = load(lo, v, arg, linear);
    lo->k->args[arg].elsewhere = elsewhere || !here;
    return x;
}

void fx_lower_store(fx_lower *lo, fx_value v, fx_kx *linear, fx_kx *x) {
    int arg = fx_lower_arg(lo, buffer_of(lo, v), fx_value_spec(v)->dtype);
    if (!lo->k->failed)
        fx_k_store(lo->k, arg, linear, x);
}

bool fx_lower_storev(fx_lower *lo, fx_value v, fx_kx *linear, int n, fx_kx *const *x) {
    fx_dtype elem = fx_value_spec(v)->dtype;
    int arg = fx_lower_arg(lo, buffer_of(lo, v), elem);
    if (!fx_k_pack_ok(elem, n) || lo->k->failed || lo->k->args[arg].unaligned)
        return false;
    fx_k_storev(lo->k, arg, linear, n, x);
    return true;
}

/* ---- memo ---- */

static uint32_t memo_hash(const fx_node *n, int result, int env, int rank, fx_kx *const *index) {
    uint32_t h = n->id * 31u + (uint32_t)result * 7u + (uint32_t)env * 131u;
    for (int d = 0; d < rank; d++)
        h = h * 1000003u ^ (uint32_t)index[d]->id;
    return (h ^ h >> 13) % MEMO_BUCKETS;
}

static int env_of(const fx_lower *lo, const fx_node *n) {
    for (const struct fx_env *e = lo->env; e; e = e->outer)
        if (e->graph == n->graph)
            return e->id;
    return 0;
}

static fx_kx *recall(fx_lower *lo, uint32_t h, fx_value v, int env, int rank, fx_kx *const *index) {
    for (struct fx_memo *m = lo->memo ? lo->memo[h] : NULL; m; m = m->next) {
        if (m->node != v.node || m->result != v.result || m->env != env || !m->block->open)
            continue;
        bool same = true;
        for (int d = 0; d < rank && same; d++)
            same = m->index[d] == index[d];
        if (same)
            return m->value;
    }
    return NULL;
}

static void remember(fx_lower *lo, uint32_t h, fx_value v, int env, int rank, fx_kx *const *index, fx_kx *value) {
    struct fx_memo *m = FX_ARENA_NEW(lo->k->arena, struct fx_memo);
    if (!m || !lo->memo)
        return;
    fx_kblock *b = lo->k->block;
    while (b->depth > value->depth && b->parent)
        b = b->parent;
    *m = (struct fx_memo){
        .next = lo->memo[h], .node = v.node, .result = v.result, .env = env, .rank = rank, .value = value, .block = b};
    for (int d = 0; d < rank; d++)
        m->index[d] = index[d];
    lo->memo[h] = m;
}

void fx_lower_forget(fx_lower *lo) {
    if (lo->memo)
        memset(lo->memo, 0, sizeof *lo->memo * MEMO_BUCKETS);
}

/* ---- regions ---- */

void fx_lower_region(fx_lower *lo, fx_graph *region, fx_kx *const *args, fx_kx **results) {
    struct fx_env env = {lo->env, region, args, ++lo->n_env};
    lo->env = &env;
    for (int i = 0; i < region->n_result; i++)
        results[i] = fx_lower_node(lo, region->results[i], NULL);
    lo->env = env.outer;
}

static fx_kx *parameter(fx_lower *lo, fx_node *n) {
    for (const struct fx_env *e = lo->env; e; e = e->outer)
        if (e->graph == n->graph)
            return e->args[FX_GET_INT(n, index)];
    return fx_lower_fail(lo, FX_INTERNAL, "lowering; parameter %d is bound to nothing", (int)FX_GET_INT(n, index));
}

/* ---- constants and elementwise ops ---- */

static fx_kx *literal(fx_kir *k, fx_dtype d, const unsigned char *p) {
    fx_dtype reg = fx_kir_register(d);
    switch (d) {
    case FX_BOOL:
        return fx_k_bool(k, *p != 0);
    case FX_S8:
        return fx_k_const(k, reg, *(const int8_t *)p);
    case FX_U8:
        return fx_k_const(k, reg, *p);
#define ROW(type, ctype)                       \
    case type: {                               \
        ctype v;                               \
        memcpy(&v, p, sizeof v);               \
        return fx_k_const(k, reg, (int64_t)v); \
    }
        ROW(FX_S16, int16_t)
        ROW(FX_U16, uint16_t)
        ROW(FX_S32, int32_t)
        ROW(FX_U32, uint32_t)
        ROW(FX_S64, int64_t)
        ROW(FX_U64, uint64_t)
#undef ROW
    case FX_F16:
    case FX_BF16: {
        uint16_t h;
        memcpy(&h, p, 2);
        return fx_k_float(k, FX_F32, (double)(d == FX_F16 ? fx_f16_to_f32(h) : fx_bf16_to_f32(h)));
    }
    case FX_F32: {
        float f;
        memcpy(&f, p, 4);
        return fx_k_float(k, FX_F32, (double)f);
    }
    default: {
        double f;
        memcpy(&f, p, 8);
        return fx_k_float(k, FX_F64, f);
    }
    }
}

static fx_kx *constant(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    const fx_attr *a = fx_attr_get(n, FX_ATTR_value);
    size_t size = fx_dtype_size(n->spec.dtype), have = a ? (size_t)a->count / size : 0;
    if (have == 1)
        return literal(lo->k, n->spec.dtype, a->u.data);
    fx_kx *linear = fx_k_linearise(lo->k, n->spec.rank, n->spec.dims, index);
    if (linear->kop == FX_K_INT && (size_t)linear->i < have)
        return literal(lo->k, n->spec.dtype, (const unsigned char *)a->u.data + (size_t)linear->i * size);
    return fx_lower_fail(lo, FX_INTERNAL, "lowering; a constant of %zu elements has no buffer", have);
}

static fx_kx *bitcast(fx_kir *k, fx_kx *x, fx_dtype from, fx_dtype to) {
    bool f = fx_dtype_is_float(from), t = fx_dtype_is_float(to);
    if (from == to)
        return x;
    if (!f && !t)
        return fx_k_convert(k, x, from, to);
    if (fx_dtype_size(from) >= 4)
        return fx_k_bits(k, x, to);
    fx_kx *bits = f ? fx_k_fn(k, "bits", from, 1, &x) : fx_k_convert(k, x, from, from == FX_S16 ? FX_U16 : from);
    if (!t)
        return to == FX_S16 ? fx_k_convert(k, bits, FX_U16, FX_S16) : bits;
    return fx_k_fn(k, "unbits", to, 1, &bits);
}

static fx_kx *elementwise(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    fx_kir *k = lo->k;
    fx_kx *a[3];
    for (int j = 0; j < n->n_in; j++) /* a scalar operand of select or clamp serves every element */
        a[j] = fx_lower_node(lo, n->in[j], n->in[j]->spec.rank == n->spec.rank ? index : NULL);
    fx_dtype from = n->in[0]->spec.dtype;
    switch (n->op) {
    case FX_OP_convert:
        return fx_k_convert(k, a[0], from, n->spec.dtype);
    case FX_OP_bitcast_convert:
        return bitcast(k, a[0], from, n->spec.dtype);
    case FX_OP_reduce_precision:
        return fx_k_round(k, a[0], from, (int)FX_GET_INT(n, exponent_bits), (int)FX_GET_INT(n, mantissa_bits));
    case FX_OP_stop_gradient:
        return a[0];
    case FX_OP_select:
        from = n->in[1]->spec.dtype;
        break;
    default:
        break;
    }
    return fx_k_op(k, n->op, from, n->n_in, a);
}

static fx_kx *compute(fx_lower *lo, fx_value v, fx_kx *const *index) {
    fx_node *n = v.node;
    if (fx_op_is_elementwise(n->op))
        return elementwise(lo, n, index);
    if (n->op == FX_OP_constant)
        return constant(lo, n, index);
    if (n->op == FX_OP_parameter)
        return parameter(lo, n);
    fx_kx *x = fx_lower_reduction(lo, v, index);
    if (x)
        return x;
    if (n->n_region)
        x = fx_lower_control(lo, v);
    else
        x = fx_op_get(n->op)->view ? fx_lower_view(lo, n, index) : fx_lower_index_op(lo, n, index);
    return x ? x
             : fx_lower_fail(lo, FX_UNSUPPORTED,
                             "compiling %s inside another op's region; expected scalars there; got arrays",
                             fx_op_get(n->op)->name);
}

/* Index expressions stay expressions; data gets a name. */
static bool is_index(const fx_kx *x) {
    return x->kop >= FX_K_ADD && x->kop <= FX_K_CAST && x->type != FX_F32 && x->type != FX_F64;
}

fx_kx *fx_lower_value(fx_lower *lo, fx_value v, fx_kx *const *index) {
    if (lo->k->failed || lo->status != FX_OK)
        return fx_k_int(lo->k, 0);
    v = v.node->op == FX_OP_project || v.node->op == FX_OP_optimization_barrier ? fx_value_of(v.node) : v;
    const fx_spec *spec = fx_value_spec(v);
    int env = env_of(lo, v.node);
    uint32_t h = memo_hash(v.node, v.result, env, spec->rank, index);
    fx_kx *x = recall(lo, h, v, env, spec->rank, index);
    if (x)
        return x;
    if (lo->provide && lo->provide(lo, lo->user, v, index, &x))
        return x;
    bool own = false;
    for (int i = 0; i < lo->n_own && !own; i++)
        own = lo->own[i].node == v.node && lo->own[i].result == v.result;
    if (!own && buffer_of(lo, v) >= 0)
        return fx_lower_load(lo, v, fx_k_linearise(lo->k, spec->rank, spec->dims, index));
    x = compute(lo, v, index);
    if (!is_index(x))
        x = fx_k_let(lo->k, x);
    remember(lo, h, v, env, spec->rank, index, x);
    return x;
}

fx_kx *fx_lower_node(fx_lower *lo, fx_node *n, fx_kx *const *index) {
    return fx_lower_value(lo, fx_value_of(n), index);
}

fx_kx *fx_lower_linear(fx_lower *lo, fx_value v, fx_kx *linear) {
    fx_kx *index[FX_MAX_RANK];
    const fx_spec *s = fx_value_spec(v);
    fx_k_delinearise(lo->k, linear, s->rank, s->dims, index);
    return fx_lower_value(lo, v, index);
}
