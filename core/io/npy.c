/* npy.c - reads and writes NumPy's .npy files.
 *
 * The header is a Python literal by specification; this reader accepts exactly the dictionary that NumPy writes (three
 * known keys, a string, a boolean, a tuple of integers) and evaluates nothing. The data size must equal what the
 * header claims before anything is allocated. */
#include "core/io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    const char *p, *end;
} cursor;

static void skip_space(cursor *c) {
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool take(cursor *c, char ch) {
    skip_space(c);
    if (c->p == c->end || *c->p != ch)
        return false;
    c->p++;
    return true;
}

static bool take_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A quoted string without escapes, into buf. */
static bool take_string(cursor *c, char *buf, size_t size) {
    skip_space(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    size_t n = 0;
    for (; c->p < c->end && *c->p != quote; c->p++) {
        if (*c->p == '\\' || *c->p == '\n' || n + 1 >= size)
            return false;
        buf[n++] = *c->p;
    }
    if (c->p == c->end)
        return false;
    c->p++;
    buf[n] = '\0';
    return true;
}

static fx_status take_shape(cursor *c, fx_spec *spec) {
    if (!take(c, '('))
        return fx_fail(FX_BAD_DATA, "npy: the shape is not a tuple of integers");
    spec->rank = 0;
    bool comma = true;
    while (!take(c, ')')) {
        int64_t value = 0;
        bool digits = false, negative = take(c, '-');
        for (skip_space(c); c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++, digits = true)
            if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c->p - '0', &value))
                return fx_fail(FX_BAD_DATA, "npy: dimension %d overflows", spec->rank);
        if (!digits || !comma)
            return fx_fail(FX_BAD_DATA, "npy: the shape is not a tuple of integers");
        if (negative)
            return fx_fail(FX_BAD_DATA, "npy: dimension %d is negative", spec->rank);
        if (spec->rank == FX_MAX_RANK)
            return fx_fail(FX_UNSUPPORTED, "npy: rank above %d is not supported", FX_MAX_RANK);
        spec->dims[spec->rank++] = value;
        (void)take_word(c, "L"); /* Python 2 wrote long integers so */
        comma = take(c, ',');
    }
    return FX_OK;
}

/* "<f4" and the like; *swap when the bytes are big-endian. */
static fx_status read_type(const char *descr, fx_dtype *dtype, bool *swap) {
    static const struct {
        const char *code;
        fx_dtype dtype;
    } types[] = {{"b1", FX_BOOL}, {"?", FX_BOOL}, {"i1", FX_S8},  {"i2", FX_S16}, {"i4", FX_S32},
                 {"i8", FX_S64},  {"u1", FX_U8},  {"u2", FX_U16}, {"u4", FX_U32}, {"u8", FX_U64},
                 {"f2", FX_F16},  {"f4", FX_F32}, {"f8", FX_F64}};
    const char *code = descr;
    bool order = *code && strchr("<>|=", *code) != NULL;
    code += order;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(code, types[i].code) == 0) {
            size_t size = fx_dtype_size(types[i].dtype);
            if (size > 1 && (!order || *descr == '|'))
                break; /* the byte order must be known */
            *dtype = types[i].dtype;
            *swap = *descr == '>' && size > 1;
            return FX_OK;
        }
    return fx_fail(FX_UNSUPPORTED, "npy: dtype %s%s; expected bool, an integer, or a float of 16, 32 or 64 bits",
                   FX_QUOTE(descr), strchr(descr, 'O') ? " (Python objects are never unpickled)" : "");
}

static fx_status read_dictionary(cursor c, fx_spec *spec, bool *swap, bool *fortran) {
    enum { DESCR = 1, ORDER = 2, SHAPE = 4 };
    int seen = 0;
    char key[32], descr[64];
    if (!take(&c, '{'))
        return fx_fail(FX_BAD_DATA, "npy: the header is not a dictionary");
    bool comma = true;
    while (!take(&c, '}')) {
        if (!comma || !take_string(&c, key, sizeof key) || !take(&c, ':'))
            return fx_fail(FX_BAD_DATA, "npy: the header is not a dictionary of descr, fortran_order and shape");
        int which = strcmp(key, "descr") == 0           ? DESCR
                    : strcmp(key, "fortran_order") == 0 ? ORDER
                    : strcmp(key, "shape") == 0         ? SHAPE
                                                        : 0;
        if (!which || (seen & which))
            return fx_fail(FX_BAD_DATA, "npy: the header has the %s key %s", which ? "repeated" : "unknown",
                           FX_QUOTE(key));
        seen |= which;
        if (which == DESCR) {
            if (!take_string(&c, descr, sizeof descr))
                return fx_fail(FX_UNSUPPORTED,
                               "npy: structured and sub-array dtypes are not supported; expected a plain"
                               " numeric dtype");
            FX_TRY(read_type(descr, &spec->dtype, swap));
        } else if (which == ORDER) {
            *fortran = take_word(&c, "True");
            if (!*fortran && !take_word(&c, "False"))
                return fx_fail(FX_BAD_DATA, "npy: fortran_order is neither True nor False");
        } else {
            FX_TRY(take_shape(&c, spec));
        }
        comma = take(&c, ',');
    }
    skip_space(&c);
    if (c.p != c.end)
        return fx_fail(FX_BAD_DATA, "npy: text after the header's dictionary");
    if (seen != (DESCR | ORDER | SHAPE))
        return fx_fail(FX_BAD_DATA, "npy: the header lacks %s",
                       !(seen & DESCR)   ? "descr"
                       : !(seen & ORDER) ? "fortran_order"
                                         : "shape");
    return FX_OK;
}

fx_status fx_npy_read_header(const unsigned char *p, size_t size, fx_npy_header *h) {
    *h = (fx_npy_header){.bytes = 0};
    if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return fx_fail(FX_BAD_DATA, "npy: not a .npy file (%zu bytes%s)", size,
                       size >= 2 && p[0] == 0x1f && p[1] == 0x8b ? ", compressed with gzip: decompress it first"
                       : size >= 2 && p[0] == 'P' && p[1] == 'K' ? ", a zip archive: open it as .npz"
                                                                 : ", without its magic number");
    if (p[6] < 1 || p[6] > 3)
        return fx_fail(FX_UNSUPPORTED, "npy: format version %d.%d; expected 1, 2 or 3", p[6], p[7]);
    size_t prefix = p[6] == 1 ? 10 : 12;
    if (size < prefix)
        return fx_fail(FX_BAD_DATA, "npy: the file ends within its header");
    size_t length = p[8] | (size_t)p[9] << 8;
    if (p[6] > 1)
        length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > size - prefix)
        return fx_fail(FX_BAD_DATA, "npy: header length %zu reaches beyond the end of the file (%zu bytes)", length,
                       size);
    h->data_offset = prefix + length;
    const char *text = (const char *)p + prefix;
    FX_TRY(read_dictionary((cursor){text, text + length}, &h->spec, &h->swap, &h->fortran));
    if (fx_spec_bytes(&h->spec, &h->bytes) != FX_OK)
        return fx_fail(FX_BAD_DATA, "npy: the size of the shape overflows");
    return FX_OK;
}

fx_status fx_npy_check_size(const fx_npy_header *h, uint64_t size) {
    if (size - h->data_offset != h->bytes) {
        char text[128];
        return fx_fail(FX_BAD_DATA, "npy: %llu data bytes; expected %zu for %s",
                       (unsigned long long)(size - h->data_offset), h->bytes,
                       fx_spec_format(&h->spec, text, sizeof text));
    }
    return FX_OK;
}

static void reverse_bytes(unsigned char *p, size_t count, size_t size) {
    for (; count-- > 0; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char t = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = t;
        }
}

/* src in Fortran order (first index fastest) to dst in C order. */
static void transpose(const fx_spec *spec, const unsigned char *src, unsigned char *dst) {
    size_t size = fx_dtype_size(spec->dtype), stride[FX_MAX_RANK], offset = 0, s = size;
    int64_t at[FX_MAX_RANK] = {0}, count = fx_spec_count(spec);
    for (int d = 0; d < spec->rank; d++) {
        stride[d] = s;
        s *= (size_t)spec->dims[d];
    }
    for (int64_t i = 0; i < count; i++, dst += size) {
        memcpy(dst, src + offset, size);
        for (int d = spec->rank - 1; d >= 0; d--) {
            offset += stride[d];
            if (++at[d] < spec->dims[d])
                break;
            offset -= stride[d] * (size_t)spec->dims[d];
            at[d] = 0;
        }
    }
}

fx_status fx_npy_finish(const fx_npy_header *h, fx_host_array *array) {
    size_t size = fx_dtype_size(h->spec.dtype);
    if (h->swap)
        reverse_bytes(array->data, h->bytes / size, size);
    if (h->spec.dtype == FX_BOOL)
        for (size_t i = 0; i < h->bytes; i++)
            ((unsigned char *)array->data)[i] = ((unsigned char *)array->data)[i] != 0;
    if (h->fortran && h->spec.rank > 1 && h->bytes) {
        fx_host_array ordered;
        FX_TRY(fx_host_array_make(&h->spec, &ordered));
        transpose(&h->spec, array->data, ordered.data);
        fx_host_array_free(array);
        *array = ordered;
    }
    return FX_OK;
}

fx_status fx_npy_parse(const void *data, size_t size, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_npy_parse: out"));
    fx_npy_header h;
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_need_bytes(data, size, "fx_npy_parse: data"));
    FX_TRY(fx_npy_read_header(data, size, &h));
    FX_TRY(fx_npy_check_size(&h, size));
    FX_TRY(fx_host_array_make(&h.spec, out));
    memcpy(out->data, (const unsigned char *)data + h.data_offset, h.bytes);
    fx_status status = fx_npy_finish(&h, out);
    if (status != FX_OK)
        fx_host_array_free(out);
    return status;
}

fx_status fx_npy_load(const char *path, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_npy_load: out"));
    fx_file_map map;
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_file_map_open(path, &map));
    fx_status status = fx_npy_parse(map.data, map.size, out);
    if (status != FX_OK)
        fx_fail_context(status, "%s", FX_QUOTE(path));
    fx_file_map_close(&map);
    return status;
}

fx_status fx_npy_write_header(const fx_spec *spec, char buf[FX_NPY_HEADER_SIZE], size_t *length) {
    static const char *const codes[FX_DTYPE_COUNT] = {
        [FX_BOOL] = "|b1", [FX_S8] = "|i1",  [FX_S16] = "<i2", [FX_S32] = "<i4", [FX_S64] = "<i8", [FX_U8] = "|u1",
        [FX_U16] = "<u2",  [FX_U32] = "<u4", [FX_U64] = "<u8", [FX_F16] = "<f2", [FX_F32] = "<f4", [FX_F64] = "<f8"};
    size_t bytes;
    FX_TRY(fx_spec_bytes(spec, &bytes));
    if (!codes[spec->dtype])
        return fx_fail(FX_UNSUPPORTED, "npy: the format has no type for %s; convert to f32 or write safetensors",
                       fx_dtype_name(spec->dtype));
    char dict[FX_NPY_HEADER_SIZE];
    int n = snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", codes[spec->dtype]);
    for (int d = 0; d < spec->rank; d++)
        n += snprintf(dict + n, sizeof dict - (size_t)n, "%lld%s", (long long)spec->dims[d],
                      spec->rank == 1      ? ","
                      : d + 1 < spec->rank ? ", "
                                           : "");
    n += snprintf(dict + n, sizeof dict - (size_t)n, "), }");
    size_t total = ((size_t)n + 11 + 63) / 64 * 64; /* with the prefix of 10 and a final newline */
    memset(buf, ' ', total);
    memcpy(buf, "\x93NUMPY\1\0", 8);
    buf[8] = (char)((total - 10) & 255);
    buf[9] = (char)((total - 10) >> 8);
    memcpy(buf + 10, dict, (size_t)n);
    buf[total - 1] = '\n';
    *length = total;
    return FX_OK;
}

fx_status fx_npy_save(const char *path, const fx_spec *spec, const void *data) {
    FX_TRY(fx_need(spec, "fx_npy_save: spec"));
    char header[FX_NPY_HEADER_SIZE];
    size_t length, bytes;
    FX_TRY(fx_spec_bytes(spec, &bytes));
    FX_TRY(fx_need_bytes(data, bytes, "fx_npy_save: data"));
    FX_TRY(fx_npy_write_header(spec, header, &length));
    fx_file_writer w;
    FX_TRY(fx_file_begin(path, &w));
    fx_status status = fx_file_write(&w, header, length);
    if (status == FX_OK)
        status = fx_file_write(&w, data, bytes);
    if (status == FX_OK)
        return fx_file_commit(&w);
    fx_file_abort(&w);
    return status;
}
