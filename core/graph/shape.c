/* shape.c - what shape rules share: dispatch, attribute checks, limits on sizes; and the elementwise classes.
 *
 * Limits: the bytes of an array, counting zero dimensions as ones, stay below 2^56, so that strides and
 * offsets computed later can't overflow. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/node.h"

#define MAX_BYTES ((int64_t)1 << 56)

const char *fx_spec_text(const fx_spec *s) {
    static _Thread_local char text[4][160];
    static _Thread_local unsigned turn;
    char *buf = text[turn++ % 4];
    if (s->rank < 0 || s->rank > FX_MAX_RANK)
        snprintf(buf, sizeof text[0], "%s of rank %d", fx_dtype_name(s->dtype), s->rank);
    else
        fx_spec_format(s, buf, sizeof text[0]);
    return buf;
}

bool fx_rule_fail(fx_rule *r, const char *fmt, ...) {
    char text[1500];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fx_graph_error(r->g, FX_INVALID_ARGUMENT, "%s: %s", fx_op_get(r->op)->name, text);
    return false;
}

bool fx_spec_valid(const fx_spec *s) {
    if (s->rank < 0 || s->rank > FX_MAX_RANK)
        return false;
    int64_t bytes = s->dtype == FX_TUPLE ? 1 : (int64_t)fx_dtype_size(s->dtype);
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i] < 0 || __builtin_mul_overflow(bytes, s->dims[i] ? s->dims[i] : 1, &bytes) || bytes > MAX_BYTES)
            return false;
    return true;
}

const fx_spec *fx_rule_in(const fx_rule *r, int i) {
    return &r->in[i]->spec;
}

/* ---- attributes ---- */

static const fx_attr *given(const fx_rule *r, fx_attr_id id) {
    for (int i = 0; i < r->n_attr; i++)
        if (r->attr[i].id == id)
            return &r->attr[i];
    return NULL;
}

const fx_attr *fx_rule_attr(const fx_rule *r, fx_attr_id id) {
    for (int i = 0; i < r->n_out; i++)
        if (r->out[i].id == id)
            return &r->out[i];
    return NULL;
}

static bool missing(fx_rule *r, fx_attr_id id) {
    return fx_rule_fail(r, "attribute %s; expected; got none", fx_attr_name(id));
}

static void put(fx_rule *r, fx_attr_id id, int64_t value) {
    r->out[r->n_out++] = (fx_attr){id, 1, {.i = value}};
}

static bool take_int(fx_rule *r, fx_attr_id id, int64_t lo, int64_t hi, int64_t otherwise, bool required,
                     int64_t *value) {
    const fx_attr *a = given(r, id);
    if (!a && required)
        return missing(r, id);
    *value = a ? a->u.i : otherwise;
    if (a && (*value < lo || *value > hi))
        return fx_rule_fail(r, "attribute %s; expected %lld to %lld; got %lld", fx_attr_name(id), (long long)lo,
                            (long long)hi, (long long)*value);
    put(r, id, *value);
    return true;
}

bool fx_take_int(fx_rule *r, fx_attr_id id, int64_t lo, int64_t hi, int64_t *value) {
    return take_int(r, id, lo, hi, 0, true, value);
}

bool fx_take_int_or(fx_rule *r, fx_attr_id id, int64_t lo, int64_t hi, int64_t otherwise, int64_t *value) {
    return take_int(r, id, lo, hi, otherwise, false, value);
}

bool fx_take_dtype(fx_rule *r, fx_dtype otherwise, fx_dtype *value) {
    const fx_attr *a = given(r, FX_ATTR_dtype);
    if (!a && otherwise == FX_TUPLE)
        return missing(r, FX_ATTR_dtype);
    int64_t d = a ? a->u.i : (int64_t)otherwise;
    if (d < 0 || d >= FX_DTYPE_COUNT)
        return fx_rule_fail(r, "attribute dtype; expected an element type; got number %lld", (long long)d);
    *value = (fx_dtype)d;
    put(r, FX_ATTR_dtype, d);
    return true;
}

bool fx_take_symbol(fx_rule *r, fx_attr_id id, const fx_symbol *allowed, fx_symbol otherwise, fx_symbol *value) {
    const fx_attr *a = given(r, id);
    if (!a && otherwise == FX_SYM_COUNT)
        return missing(r, id);
    int64_t s = a ? a->u.i : (int64_t)otherwise;
    char names[200] = "";
    for (const fx_symbol *k = allowed; *k != FX_SYM_COUNT; k++) {
        if ((int64_t)*k == s) {
            *value = *k;
            put(r, id, s);
            return true;
        }
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", fx_symbol_name(*k));
    }
    return fx_rule_fail(r, "attribute %s; expected one of %s; got %s", fx_attr_name(id), names,
                        s >= 0 && s < FX_SYM_COUNT ? fx_symbol_name((fx_symbol)s) : "an unknown symbol");
}

/* Room for a list of n in out; NULL (recorded) when n is too many. */
static int64_t *new_list(fx_rule *r, fx_attr_id id, int64_t n) {
    if (n < 0 || n > FX_MAX_RANK) {
        fx_rule_fail(r, "attribute %s; expected at most %d values; got %lld", fx_attr_name(id), FX_MAX_RANK,
                     (long long)n);
        return NULL;
    }
    int64_t *v = r->list[r->n_out];
    r->out[r->n_out++] = (fx_attr){id, (int)n, {.list = v}};
    return v;
}

static bool take_list(fx_rule *r, fx_attr_id id, int n, int64_t lo, int64_t hi, int64_t otherwise, bool required,
                      const int64_t **values) {
    const fx_attr *a = given(r, id);
    if (!a && required)
        return missing(r, id);
    if (a && (a->count != n || (n && !a->u.list)))
        return fx_rule_fail(r, "attribute %s; expected %d values; got %d", fx_attr_name(id), n, a->count);
    int64_t *v = new_list(r, id, n);
    if (!v)
        return false;
    for (int i = 0; i < n; i++) {
        v[i] = a ? a->u.list[i] : otherwise;
        if (a && (v[i] < lo || v[i] > hi))
            return fx_rule_fail(r, "attribute %s[%d]; expected %lld to %lld; got %lld", fx_attr_name(id), i,
                                (long long)lo, (long long)hi, (long long)v[i]);
    }
    *values = v;
    return true;
}

bool fx_take_list(fx_rule *r, fx_attr_id id, int n, int64_t lo, int64_t hi, const int64_t **values) {
    return take_list(r, id, n, lo, hi, 0, true, values);
}

bool fx_take_list_or(fx_rule *r, fx_attr_id id, int n, int64_t lo, int64_t hi, int64_t otherwise,
                     const int64_t **values) {
    return take_list(r, id, n, lo, hi, otherwise, false, values);
}

bool fx_take_dims(fx_rule *r, fx_attr_id id, int rank, fx_order order, int *n, const int64_t **values) {
    const fx_attr *a = given(r, id);
    *n = a ? a->count : 0;
    int64_t *v = new_list(r, id, *n);
    if (!v)
        return false;
    unsigned seen = 0;
    for (int i = 0; i < *n; i++) {
        int64_t d = a->u.list[i];
        if (d < 0 || d >= rank)
            return fx_rule_fail(r, "attribute %s[%d]; expected a dimension below %d; got %lld", fx_attr_name(id), i,
                                rank, (long long)d);
        if (seen & 1u << d)
            return fx_rule_fail(r, "attribute %s; expected distinct dimensions; got %lld twice", fx_attr_name(id),
                                (long long)d);
        seen |= 1u << d;
        if (order == FX_ORDER_MUST_BE_SORTED && i && v[i - 1] > d)
            return fx_rule_fail(r, "attribute %s; expected ascending dimensions; got %lld after %lld", fx_attr_name(id),
                                (long long)d, (long long)v[i - 1]);
        int k = i;
        for (; order == FX_ORDER_SORTED && k > 0 && v[k - 1] > d; k--)
            v[k] = v[k - 1];
        v[k] = d;
    }
    *values = v;
    return true;
}

bool fx_take_permutation(fx_rule *r, fx_attr_id id, int rank, const int64_t **values) {
    int n;
    if (!given(r, id))
        return missing(r, id);
    if (!fx_take_dims(r, id, rank, FX_ORDER_KEPT, &n, values))
        return false;
    return n == rank ||
           fx_rule_fail(r, "attribute %s; expected %d dimensions, each once; got %d", fx_attr_name(id), rank, n);
}

bool fx_take_shape(fx_rule *r, fx_dtype dtype, fx_spec *spec) {
    const fx_attr *a = given(r, FX_ATTR_shape);
    const int64_t *dims;
    if (!fx_take_list(r, FX_ATTR_shape, a ? a->count : 0, 0, MAX_BYTES, &dims))
        return false;
    *spec = (fx_spec){dtype, a->count, {0}};
    for (int i = 0; i < spec->rank; i++)
        spec->dims[i] = dims[i];
    return fx_spec_valid(spec) ||
           fx_rule_fail(r, "shape; expected a size that a machine can address; got %s", fx_spec_text(spec));
}

/* ---- answers ---- */

bool fx_rule_like(fx_rule *r, const fx_spec *spec) {
    r->spec = *spec;
    return true;
}

bool fx_rule_result(fx_rule *r, fx_dtype dtype, int rank, const int64_t *dims) {
    r->spec = (fx_spec){dtype, rank, {0}};
    for (int i = 0; i < rank && i < FX_MAX_RANK; i++)
        r->spec.dims[i] = dims[i];
    if (rank > FX_MAX_RANK)
        return fx_rule_fail(r, "result; expected at most %d dimensions; got %d", FX_MAX_RANK, rank);
    return fx_spec_valid(&r->spec) ||
           fx_rule_fail(r, "result; expected a size that a machine can address; got %s", fx_spec_text(&r->spec));
}

fx_spec *fx_rule_tuple(fx_rule *r, int n) {
    r->spec = FX_SPEC0(FX_TUPLE);
    if (n < 1) {
        fx_rule_fail(r, "results; expected at least one; got none");
        return NULL;
    }
    r->results = FX_ARENA_ARRAY(&r->g->arena, fx_spec, n);
    r->n_result = n;
    if (!r->results)
        fx_graph_error(r->g, FX_OUT_OF_MEMORY, "%s: host memory ran out", fx_op_get(r->op)->name);
    return r->results;
}

bool fx_rule_scalar(fx_rule *r, int i, fx_dtype dtype) {
    const fx_spec *s = fx_rule_in(r, i);
    return (s->rank == 0 && s->dtype == dtype) ||
           fx_rule_fail(r, "operand %d; expected %s[]; got %s", i, fx_dtype_name(dtype), fx_spec_text(s));
}

static int64_t dilate(int64_t n, int64_t d, bool *overflow) {
    int64_t r = 0;
    if (n > 0)
        *overflow |= __builtin_mul_overflow(n - 1, d, &r) || __builtin_add_overflow(r, 1, &r);
    return r;
}

bool fx_window_positions(fx_rule *r, int64_t size, int64_t window, int64_t stride, int64_t low, int64_t high,
                         int64_t lhs_dilation, int64_t rhs_dilation, int64_t *out) {
    bool overflow = false;
    int64_t base = dilate(size, lhs_dilation, &overflow), span = dilate(window, rhs_dilation, &overflow);
    overflow |= __builtin_add_overflow(base, low, &base);
    overflow |= __builtin_add_overflow(base, high, &base);
    if (overflow || base > MAX_BYTES || base < -MAX_BYTES || span > MAX_BYTES)
        return fx_rule_fail(
            r,
            "windows; expected sizes below 2^56; got dimension %lld, window %lld, padding %lld and %lld, "
            "dilations %lld and %lld",
            (long long)size, (long long)window, (long long)low, (long long)high, (long long)lhs_dilation,
            (long long)rhs_dilation);
    *out = base <= 0 || span > base ? 0 : (base - span) / stride + 1;
    return true;
}

/* ---- elementwise classes ---- */

static bool same_specs(fx_rule *r, int a, int b) {
    const fx_spec *x = fx_rule_in(r, a), *y = fx_rule_in(r, b);
    if (fx_spec_equal(x, y))
        return true;
    bool rank = x->dtype == y->dtype;
    return fx_rule_fail(r, "operands %d and %d; expected equal types and shapes; got %s and %s; %s", a, b,
                        fx_spec_text(x), fx_spec_text(y), rank ? "broadcast one" : "convert one");
}

static bool takes(fx_rule *r, int i) {
    fx_dtype d = fx_rule_in(r, i)->dtype;
    if (fx_op_takes(r->op, d))
        return true;
    unsigned t = fx_op_get(r->op)->types;
    return fx_rule_fail(r, "operand %d; expected%s%s%s%s; got %s; convert it", i, t & FX_TYPE_B ? " bool" : "",
                        t & FX_TYPE_I ? " signed" : "", t & FX_TYPE_U ? " unsigned" : "", t & FX_TYPE_F ? " float" : "",
                        fx_spec_text(fx_rule_in(r, i)));
}

static bool elementwise(fx_rule *r, const fx_op_info *info) {
    int like = 0;
    if (r->op == FX_OP_select) {
        fx_spec pred = *fx_rule_in(r, 1);
        pred.dtype = FX_BOOL;
        like = 1;
        if (!fx_spec_equal(&pred, fx_rule_in(r, 0)))
            return fx_rule_fail(r, "operand 0; expected %s; got %s", fx_spec_text(&pred),
                                fx_spec_text(fx_rule_in(r, 0)));
    }
    for (int i = like; i < r->n_in; i++)
        if (!takes(r, i) || !same_specs(r, like, i))
            return false;
    r->spec = *fx_rule_in(r, like);
    if (info->bool_result)
        r->spec.dtype = FX_BOOL;
    return true;
}

/* ---- dispatch ---- */

typedef bool (*shape_fn)(fx_rule *r);
static const shape_fn structural[FX_OP_COUNT] = {
#define FX_UNARY(...)
#define FX_BINARY(...)
#define FX_TERNARY(...)
#define FX_STRUCTURAL(name, ...) [FX_OP_##name] = fx_shape_##name,
#include "core/ops/ops.def"
#undef FX_UNARY
#undef FX_BINARY
#undef FX_TERNARY
#undef FX_STRUCTURAL
};

bool fx_rule_run(fx_rule *r) {
    const fx_op_info *info = fx_op_get(r->op);
    if (info->n_in >= 0 && r->n_in != info->n_in)
        return fx_rule_fail(r, "operands; expected %d; got %d", info->n_in, r->n_in);
    if (info->n_region >= 0 && r->n_region != info->n_region)
        return fx_rule_fail(r, "regions; expected %d; got %d", info->n_region, r->n_region);
    for (int i = 0; i < r->n_in; i++)
        if (r->in[i]->spec.dtype == FX_TUPLE && r->op != FX_OP_project)
            return fx_rule_fail(r, "operand %d; expected an array; got the tuple of a %s", i,
                                fx_op_get(r->in[i]->op)->name);
    if (!(structural[r->op] ? structural[r->op](r) : elementwise(r, info)))
        return false;
    for (int i = 0; i < r->n_attr; i++)
        if (!fx_rule_attr(r, r->attr[i].id))
            return fx_rule_fail(r, "attribute %s; expected none of this name", fx_attr_name(r->attr[i].id));
    for (int i = 1; i < r->n_out; i++)
        for (int k = i; k > 0 && r->out[k - 1].id > r->out[k].id; k--) {
            fx_attr t = r->out[k];
            r->out[k] = r->out[k - 1];
            r->out[k - 1] = t;
        }
    return true;
}
