/* idx.c - reads IDX files (MNIST): magic 0 0 type rank, big-endian dimensions, big-endian elements. */
#include <string.h>

#include "core/io/file.h"

static uint32_t big_endian(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static fx_status read_magic(const unsigned char *p, size_t size, fx_spec *spec) {
    if (size >= 2 && p[0] == 0x1f && p[1] == 0x8b)
        return fx_fail(FX_BAD_DATA, "IDX: the file is compressed with gzip; decompress it first (gunzip FILE)");
    if (size < 4)
        return fx_fail(FX_BAD_DATA, "IDX: too short: %zu bytes; expected at least 4", size);
    if (p[0] != 0 || p[1] != 0)
        return fx_fail(FX_BAD_DATA,
                       "IDX: the magic number is %02x %02x %02x %02x; expected two zero bytes, a type and a rank", p[0],
                       p[1], p[2], p[3]);
    static const fx_dtype types[] = {
        [0x08] = FX_U8, [0x09] = FX_S8, [0x0b] = FX_S16, [0x0c] = FX_S32, [0x0d] = FX_F32, [0x0e] = FX_F64};
    if (p[2] >= sizeof types / sizeof *types || (types[p[2]] == 0))
        return fx_fail(FX_BAD_DATA, "IDX: unknown element type 0x%02x; expected 08, 09, 0b, 0c, 0d or 0e", p[2]);
    spec->dtype = types[p[2]];
    spec->rank = p[3];
    return FX_OK;
}

fx_status fx_idx_parse(const void *data, size_t size, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_idx_parse: out"));
    const unsigned char *p = data;
    fx_spec spec = {.rank = 0};
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_need_bytes(data, size, "fx_idx_parse: data"));
    FX_TRY(read_magic(p, size, &spec));
    size_t header = 4 + 4 * (size_t)spec.rank, bytes;
    if (size < header)
        return fx_fail(FX_BAD_DATA, "IDX: the file ends within its %d dimensions (%zu bytes; expected at least %zu)",
                       spec.rank, size, header);
    if (spec.rank > FX_MAX_RANK)
        return fx_fail(FX_UNSUPPORTED, "IDX: rank %d; at most %d is supported", spec.rank, FX_MAX_RANK);
    for (int d = 0; d < spec.rank; d++)
        spec.dims[d] = big_endian(p + 4 + 4 * d);
    if (fx_spec_bytes(&spec, &bytes) != FX_OK)
        return fx_fail(FX_BAD_DATA, "IDX: the product of the dimensions overflows");
    char text[128];
    if (bytes != size - header)
        return fx_fail(FX_BAD_DATA, "IDX: %zu data bytes; expected %zu for %s", size - header, bytes,
                       fx_spec_format(&spec, text, sizeof text));
    FX_TRY(fx_host_array_make(&spec, out));
    size_t width = fx_dtype_size(spec.dtype);
    unsigned char *dst = out->data;
    if (width == 1)
        memcpy(dst, p + header, bytes);
    else
        for (size_t i = 0; i < bytes; i++) /* the host is little-endian */
            dst[i] = p[header + i / width * width + (width - 1 - i % width)];
    return FX_OK;
}

fx_status fx_idx_load(const char *path, fx_host_array *out) {
    FX_TRY(fx_need(out, "fx_idx_load: out"));
    fx_file_map map;
    *out = (fx_host_array){.data = NULL};
    FX_TRY(fx_file_map_open(path, &map));
    fx_status status = fx_idx_parse(map.data, map.size, out);
    if (status != FX_OK)
        fx_fail_context(status, "%s", FX_QUOTE(path));
    fx_file_map_close(&map);
    return status;
}
