/* random.c - jax.random's streams as graphs of integer operations: threefry2x32 with 20 rounds (Salmon et
 * al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011), counters as in JAX's partitionable
 * layout: element i of an array uses the 64-bit counter i, high word first. */
#include <math.h>

#include "core/graph/node.h"
#include "core/graph/trace.h"

typedef struct pair {
    fx_val a, b;
} pair;

static fx_val rotate_left(fx_val x, int n) {
    return fx_or(fx_shl(x, fx_const_like(x, n)), fx_shr_l(x, fx_const_like(x, 32 - n)));
}

/* One block a pair of counters; k is a pair of scalars. */
static pair threefry(pair k, pair x) {
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    fx_val ks[3] = {k.a, k.b, NULL};
    ks[2] = fx_xor(fx_xor(k.a, k.b), fx_const_like(k.a, 0x1BD11BDA));
    x.a = fx_add(x.a, ks[0]);
    x.b = fx_add(x.b, ks[1]);
    for (int i = 0; i < 5; i++) {
        for (int r = 0; r < 4; r++) {
            x.a = fx_add(x.a, x.b);
            x.b = fx_xor(rotate_left(x.b, rotations[i % 2][r]), x.a);
        }
        x.a = fx_add(x.a, ks[(i + 1) % 3]);
        x.b = fx_add(fx_add(x.b, ks[(i + 2) % 3]), fx_const_like(k.a, i + 1));
    }
    return x;
}

static fx_val element(fx_val key, int64_t i) {
    return fx_reshape(fx_slice_axis(key, 0, i, i + 1), 0, NULL);
}

/* The words of a key; NULLs and an error unless it is u32[2]. */
static pair words(fx_val key, const char *op) {
    pair none = {NULL, NULL};
    char s[128];
    if (!fx_trace_of(1, &key))
        return none;
    if (key->spec.dtype != FX_U32 || key->spec.rank != 1 || key->spec.dims[0] != 2) {
        fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "%s: key; expected u32[2]; got %s; make one with fx_random_key", op,
                       fx_spec_format(&key->spec, s, sizeof s));
        return none;
    }
    return (pair){element(key, 0), element(key, 1)};
}

/* Row-major 64-bit index of each element of a shape as (high, low) words. */
static pair counters(fx_trace *t, int rank, const int64_t *dims) {
    fx_spec s = {FX_U32, rank, {0}};
    for (int i = 0; i < rank; i++)
        s.dims[i] = dims[i];
    int64_t n = fx_spec_count(&s);
    if (n < 0 || n > (int64_t)1 << 32) { /* more than 2^32 elements: 64-bit arithmetic, then split */
        fx_spec wide = {FX_U64, rank, {0}};
        fx_val index = NULL;
        uint64_t stride = 1;
        for (int i = 0; i < rank; i++)
            wide.dims[i] = dims[i];
        for (int i = rank - 1; i >= 0; i--) {
            fx_val part = fx_mul(fx_iota(t, wide, i), fx_literal(t, (fx_spec){FX_U64, 0, {0}}, &stride));
            index = index ? fx_add(index, part) : part;
            stride *= (uint64_t)dims[i];
        }
        return (pair){fx_convert(fx_shr_l(index, fx_const_like(index, 32)), FX_U32), fx_convert(index, FX_U32)};
    }
    if (n == 0 || rank == 0)
        return (pair){fx_full(t, s, 0), fx_full(t, s, 0)};
    fx_spec flat = {FX_U32, 1, {n}};
    return (pair){fx_full(t, s, 0), fx_reshape(fx_iota(t, flat, 0), rank, dims)};
}

fx_val fx_random_key(fx_trace *t, uint64_t seed) {
    uint32_t k[2] = {(uint32_t)(seed >> 32), (uint32_t)seed};
    return fx_literal(t, (fx_spec){FX_U32, 1, {2}}, k);
}

/* The words side by side as a new last axis. */
static fx_val interleave(pair x) {
    fx_val v[] = {x.a, x.b};
    return x.a && x.b ? fx_stack(2, v, -1) : NULL;
}

fx_val fx_random_split(fx_val key, int64_t n) {
    pair k = words(key, "fx_random_split");
    if (k.b && n < 0)
        return fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "fx_random_split: number of keys; expected 0 or more; got %lld", (long long)n);
    return k.b ? interleave(threefry(k, counters(fx_val_trace(key), 1, &n))) : NULL;
}

fx_val fx_random_fold_in(fx_val key, fx_val data) {
    pair k = words(key, "fx_random_fold_in");
    char text[128];
    fx_val in[] = {key, data};
    if (!k.b || !fx_trace_of(2, in))
        return NULL;
    if (data->spec.rank || !fx_dtype_is_int(data->spec.dtype))
        return fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "fx_random_fold_in: data; expected an integer scalar; got %s",
                              fx_spec_format(&data->spec, text, sizeof text));
    fx_val d = k.b && data ? fx_convert(data, FX_U32) : NULL;
    return d ? interleave(threefry(k, (pair){fx_const_like(d, 0), d})) : NULL;
}

fx_val fx_random_bits(fx_val key, fx_spec spec) {
    pair k = words(key, "fx_random_bits");
    if (!k.b)
        return NULL;
    if (!fx_dtype_is_unsigned(spec.dtype))
        return fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "fx_random_bits: element type; expected u8, u16, u32 or u64; got %s",
                              fx_dtype_name(spec.dtype));
    if (!fx_spec_valid(&spec))
        return fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "random: shape; expected rank 0 to %d, sizes of 0 or more and a count that fits; "
                              "got rank %d", FX_MAX_RANK, spec.rank);
    pair x = threefry(k, counters(fx_val_trace(key), spec.rank, spec.dims));
    if (spec.dtype == FX_U64) {
        fx_val hi = fx_convert(x.a, FX_U64);
        return fx_or(fx_shl(hi, fx_const_like(hi, 32)), fx_convert(x.b, FX_U64));
    }
    return fx_convert(fx_xor(x.a, x.b), spec.dtype);
}

/* Bit pattern facts of a float type. */
typedef struct layout {
    fx_dtype bits_dtype; /* unsigned type of the same width */
    fx_dtype rng_dtype;  /* what is drawn */
    int width, mantissa;
    double one;          /* the bits of 1.0 */
} layout;

static bool layout_of(fx_dtype d, layout *l) {
    switch (d) {
    case FX_F16: *l = (layout){FX_U16, FX_U16, 16, 10, 0x3c00}; return true;
    case FX_BF16: *l = (layout){FX_U16, FX_U8, 8, 7, 0x3f80}; return true; /* 7 mantissa bits: JAX draws 8 */
    case FX_F32: *l = (layout){FX_U32, FX_U32, 32, 23, 0x3f800000}; return true;
    case FX_F64: *l = (layout){FX_U64, FX_U64, 64, 52, 0x3ff0000000000000}; return true;
    default: return false;
    }
}

/* Uniform in [lo, hi): the mantissa is drawn, as a number in [1, 2) less 1. What is narrower than f32 is rounded after
 * each operation, also where a device computes it in f32. */
static fx_val uniform(fx_val key, fx_spec spec, fx_val lo, fx_val hi) {
    layout l;
    if (!key || !layout_of(spec.dtype, &l))
        return key ? fx_graph_error(key->graph, FX_INVALID_ARGUMENT, "random: element type; expected a float; got %s",
                                    fx_dtype_name(spec.dtype))
                   : NULL;
    fx_spec drawn = spec;
    drawn.dtype = l.rng_dtype;
    fx_val bits = fx_convert(fx_random_bits(key, drawn), l.bits_dtype);
    bits = fx_or(fx_shr_l(bits, fx_const_like(bits, l.width - l.mantissa)), fx_const_like(bits, l.one));
    fx_val f = fx_add_c(fx_bitcast_convert(bits, spec.dtype), -1);
    if (l.width == 32 || l.width == 64)
        return fx_max(lo, fx_add(fx_mul(f, fx_sub(hi, lo)), lo));
    fx_val span = fx_convert(fx_sub(hi, lo), FX_F32);
    f = fx_convert(fx_mul(fx_convert(f, FX_F32), span), spec.dtype);
    f = fx_convert(fx_add(fx_convert(f, FX_F32), fx_convert(lo, FX_F32)), spec.dtype);
    return fx_max(lo, f);
}

fx_val fx_random_uniform(fx_val key, fx_spec spec, double lo, double hi) {
    if (!fx_trace_of(1, &key))
        return NULL;
    fx_trace *t = fx_val_trace(key);
    return uniform(key, spec, fx_scalar(t, spec.dtype, lo), fx_scalar(t, spec.dtype, hi));
}

/* The number next to v towards +infinity or -infinity in a type: as a constant of that type. */
static double next(fx_dtype d, double v, bool up) {
    layout l;
    if (d == FX_F64)
        return nextafter(v, up ? INFINITY : -INFINITY);
    if (d == FX_F32)
        return (double)nextafterf((float)v, up ? INFINITY : -INFINITY);
    if (!layout_of(d, &l))
        return v;
    uint16_t h = d == FX_F16 ? fx_f64_to_f16(v) : fx_f64_to_bf16(v);
    if ((h & 0x7fff) == 0)
        h = up ? 1 : 0x8001;
    else
        h = (uint16_t)(h + ((h & 0x8000 ? !up : up) ? 1 : -1));
    return (double)(d == FX_F16 ? fx_f16_to_f32(h) : fx_bf16_to_f32(h));
}

fx_val fx_random_normal(fx_val key, fx_spec spec) {
    fx_val u = fx_random_uniform(key, spec, next(spec.dtype, -1, true), 1);
    return u ? fx_mul_c(fx_erf_inv(u), 1.41421356237309504880) : NULL;
}

fx_val fx_random_bernoulli(fx_val key, double p, int rank, const int64_t *dims) {
    fx_spec s = {FX_F32, rank, {0}};
    if (rank > 0 && key && !fx_trace_given(key, "fx_random_bernoulli: list of dimensions", dims))
        return NULL;
    for (int i = 0; i < rank && i < FX_MAX_RANK; i++)
        s.dims[i] = dims[i];
    fx_val u = fx_random_uniform(key, s, 0, 1);
    return u ? fx_lt(u, fx_const_like(u, p)) : NULL;
}

fx_val fx_random_truncated_normal(fx_val key, double lo, double hi, fx_spec spec) {
    if (!fx_trace_of(1, &key))
        return NULL;
    fx_trace *t = fx_val_trace(key);
    fx_val sqrt2 = fx_scalar(t, spec.dtype, 1.41421356237309504880);
    fx_val a = fx_erf(fx_div(fx_scalar(t, spec.dtype, lo), sqrt2)), b = fx_erf(fx_div(fx_scalar(t, spec.dtype, hi), sqrt2));
    fx_val x = fx_mul(sqrt2, fx_erf_inv(uniform(key, spec, a, b)));
    return fx_clamp(fx_scalar(t, spec.dtype, next(spec.dtype, lo, true)), x,
                    fx_scalar(t, spec.dtype, next(spec.dtype, hi, false)));
}

static void by_key(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_lt(in[0], in[1]);
}

/* Sorted by random 32-bit keys, in as many rounds as make a repeated key harmless. */
fx_val fx_random_permutation(fx_val key, int64_t n) {
    if (!words(key, "fx_random_permutation").b)
        return NULL;
    fx_trace *t = fx_val_trace(key);
    int rounds = (int)ceil(3 * log((double)(n > 1 ? n : 1)) / log(4294967295.0));
    fx_val x = fx_iota(t, (fx_spec){FX_S32, 1, {n}}, 0);
    for (int r = 0; r < rounds && x; r++) {
        fx_val keys = fx_random_split(key, 2), v[2] = {NULL, x}, out[2];
        if (!keys)
            return NULL;
        key = fx_squeeze(fx_slice_axis(keys, 0, 0, 1), 0);
        v[0] = fx_random_bits(fx_squeeze(fx_slice_axis(keys, 0, 1, 2), 0), (fx_spec){FX_U32, 1, {n}});
        fx_sort_by(2, v, 0, by_key, NULL, out);
        x = out[1];
    }
    return x;
}
