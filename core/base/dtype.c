/* dtype.c - the table of element types, shapes as values, and the 16-bit float conversions. */
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"

typedef enum kind { KIND_BOOL, KIND_SIGNED, KIND_UNSIGNED, KIND_FLOAT } kind;

static const struct {
    const char *name;
    unsigned char size;
    kind kind;
} table[FX_DTYPE_COUNT] = {
    [FX_BOOL] = {"bool", 1, KIND_BOOL},   [FX_S8] = {"s8", 1, KIND_SIGNED},     [FX_S16] = {"s16", 2, KIND_SIGNED},
    [FX_S32] = {"s32", 4, KIND_SIGNED},   [FX_S64] = {"s64", 8, KIND_SIGNED},   [FX_U8] = {"u8", 1, KIND_UNSIGNED},
    [FX_U16] = {"u16", 2, KIND_UNSIGNED}, [FX_U32] = {"u32", 4, KIND_UNSIGNED}, [FX_U64] = {"u64", 8, KIND_UNSIGNED},
    [FX_F16] = {"f16", 2, KIND_FLOAT},    [FX_BF16] = {"bf16", 2, KIND_FLOAT},  [FX_F32] = {"f32", 4, KIND_FLOAT},
    [FX_F64] = {"f64", 8, KIND_FLOAT},
};

static bool known(fx_dtype d) { return (unsigned)d < FX_DTYPE_COUNT; }

size_t fx_dtype_size(fx_dtype d) { return known(d) ? table[d].size : 0; }
const char *fx_dtype_name(fx_dtype d) { return known(d) ? table[d].name : d == FX_TUPLE ? "tuple" : "?"; }
bool fx_dtype_is_float(fx_dtype d) { return known(d) && table[d].kind == KIND_FLOAT; }
bool fx_dtype_is_signed(fx_dtype d) { return known(d) && table[d].kind == KIND_SIGNED; }
bool fx_dtype_is_unsigned(fx_dtype d) { return known(d) && table[d].kind == KIND_UNSIGNED; }
bool fx_dtype_is_int(fx_dtype d) { return fx_dtype_is_signed(d) || fx_dtype_is_unsigned(d); }

fx_status fx_dtype_parse(const char *name, fx_dtype *out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_dtype_parse: out; expected an address for the type; got NULL");
    for (int d = 0; name && d < FX_DTYPE_COUNT; d++) {
        bool alias = name[0] == 'i' && table[d].kind == KIND_SIGNED && !strcmp(name + 1, table[d].name + 1);
        if (alias || !strcmp(name, table[d].name)) {
            *out = (fx_dtype)d;
            return FX_OK;
        }
    }
    return fx_fail(FX_INVALID_ARGUMENT,
                   "element type; expected one of bool s8 s16 s32 s64 u8 u16 u32 u64 f16 bf16 f32 f64; got \"%s\"",
                   name ? name : "(null)");
}

int64_t fx_spec_count(const fx_spec *s) {
    int64_t n = 1;
    bool zero = false;
    if (!s || s->rank < 0 || s->rank > FX_MAX_RANK)
        return -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] < 0)
            return -1;
        zero |= s->dims[i] == 0;
    }
    for (int i = 0; i < s->rank && !zero; i++)
        if (__builtin_mul_overflow(n, s->dims[i], &n))
            return -1;
    return zero ? 0 : n;
}

bool fx_spec_equal(const fx_spec *a, const fx_spec *b) {
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank || a->rank > FX_MAX_RANK || a->rank < 0)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

char *fx_spec_format(const fx_spec *s, char *buf, size_t size) {
    if (!size || !buf)
        return buf;
    if (!s) {
        snprintf(buf, size, "?");
        return buf;
    }
    size_t used = (size_t)snprintf(buf, size, "%s[", fx_dtype_name(s->dtype));
    for (int i = 0; i < s->rank && i < FX_MAX_RANK && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%lld", i ? "," : "", (long long)s->dims[i]);
    if (used < size)
        snprintf(buf + used, size - used, "]");
    return buf;
}

float fx_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu, bits;
    if (e == 31)
        bits = sign | 0x7f800000u | m << 13;
    else if (e)
        bits = sign | (e + 112) << 23 | m << 13;
    else if (!m)
        bits = sign;
    else { /* subnormal: normalise */
        e = 113;
        while (!(m & 0x400u)) {
            m <<= 1;
            e--;
        }
        bits = sign | e << 23 | (m & 0x3ffu) << 13;
    }
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

float fx_bf16_to_f32(uint16_t b) {
    uint32_t bits = (uint32_t)b << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

/* Rounds a double to a format with `ebits` exponent and `mbits` mantissa bits, once, to nearest even. */
static uint16_t narrow(double x, int ebits, int mbits) {
    uint64_t b;
    memcpy(&b, &x, 8);
    uint32_t sign = (uint32_t)(b >> 63) << 15;
    int e = (int)(b >> 52 & 0x7ff);
    uint64_t m = b & 0xfffffffffffffull;
    uint32_t inf = ((1u << ebits) - 1) << mbits;
    if (e == 0x7ff) /* keep a NaN a NaN whatever its payload */
        return (uint16_t)(sign | inf | (m ? 1u << (mbits - 1) | (uint32_t)(m >> (52 - mbits)) : 0));
    int exp = e - 1023 + (1 << (ebits - 1)) - 1; /* biased exponent in the target */
    if (e == 0)
        return (uint16_t)sign; /* a subnormal double is far below half the least target subnormal */
    m |= 1ull << 52;
    int shift = 52 - mbits;
    if (exp <= 0)
        shift += 1 - exp;
    if (shift > 54)
        return (uint16_t)sign;
    uint64_t q = m >> shift, rest = m & ((1ull << shift) - 1), half = 1ull << (shift - 1);
    if (rest > half || (rest == half && (q & 1)))
        q++;
    uint64_t out = exp <= 0 ? q : q + ((uint64_t)(exp - 1) << mbits); /* q carries the implicit one */
    return (uint16_t)(sign | (out >= inf ? inf : (uint32_t)out));
}

uint16_t fx_f64_to_f16(double x) { return narrow(x, 5, 10); }
uint16_t fx_f64_to_bf16(double x) { return narrow(x, 8, 7); }
uint16_t fx_f32_to_f16(float x) { return narrow((double)x, 5, 10); }

uint16_t fx_f32_to_bf16(float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    if ((b & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(b >> 16 | 0x40u);
    return (uint16_t)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
