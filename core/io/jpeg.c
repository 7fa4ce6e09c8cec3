/* jpeg.c - JPEG files in memory, read by libjpeg(-turbo). A picture made of missing or damaged data is an error.
 *
 * libjpeg goes on where a training set must not: it fills the rest of a cut file with grey and invents Huffman tables.
 * So the frame header is checked before decoding, warnings about damaged data end the decoding, and a scan or
 * table that never came is looked for. Only a missing end marker is forgiven. Errors arrive by longjmp: what must
 * survive lives in a struct outside the function that calls setjmp. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "core/io/image.h"

typedef struct reader {
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf jump;
    fx_image image;
    unsigned char *row; /* a CMYK row */
    bool ended;         /* the data ran out, an end marker was made up */
    fx_status status;
    char error[JMSG_LENGTH_MAX];
} reader;

enum { MAX_SCANS = 200, PIXELS_PER_BYTE = 8 * 64 }; /* a block of 64 pixels takes at least one bit */

static void fail(j_common_ptr cinfo) {
    reader *r = cinfo->client_data;
    cinfo->err->format_message(cinfo, r->error);
    longjmp(r->jump, 1);
}

static void on_message(j_common_ptr cinfo, int level) {
    int code = cinfo->err->msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR)
        return; /* a trace, or nothing that changes a sample */
    fail(cinfo);
}

static void on_progress(j_common_ptr cinfo) {
    reader *r = cinfo->client_data;
    if (cinfo->is_decompressor && ((j_decompress_ptr)cinfo)->input_scan_number > MAX_SCANS) {
        strcpy(r->error, "more than 200 scans");
        longjmp(r->jump, 1);
    }
}

static void no_op(j_decompress_ptr cinfo) {
    (void)cinfo;
}

static boolean at_end(j_decompress_ptr cinfo) {
    static const JOCTET end_marker[2] = {0xff, JPEG_EOI};
    ((reader *)cinfo->client_data)->ended = true;
    cinfo->src->next_input_byte = end_marker;
    cinfo->src->bytes_in_buffer = 2;
    return TRUE;
}

static void skip(j_decompress_ptr cinfo, long n) {
    if (n <= 0)
        return;
    if ((size_t)n > cinfo->src->bytes_in_buffer) {
        at_end(cinfo);
    } else {
        cinfo->src->next_input_byte += n;
        cinfo->src->bytes_in_buffer -= (size_t)n;
    }
}

/* Walks the markers up to the frame header and checks what the decoder can do. */
static fx_status check_frame(const unsigned char *p, size_t size) {
    size_t at = 2;
    if (size < 4 || p[0] != 0xff || p[1] != 0xd8)
        return fx_fail(FX_BAD_DATA, "JPEG: %zu bytes hold no picture", size);
    for (;;) {
        while (at < size && p[at] != 0xff)
            at++;
        while (at < size && p[at] == 0xff)
            at++;
        if (at + 3 > size)
            return fx_fail(FX_BAD_DATA, "JPEG: the file ends before its frame header");
        int marker = p[at++];
        if (marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8))
            continue; /* markers without a segment, or stuffing */
        size_t length = (size_t)p[at] << 8 | p[at + 1];
        bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
        if (marker == 0xd9 || marker == 0xda)
            return fx_fail(FX_BAD_DATA, "JPEG: no frame header before the %s", marker == 0xd9 ? "end" : "first scan");
        if (!frame) {
            at += length;
            continue;
        }
        if (length < 8 || length > size - at)
            return fx_fail(FX_BAD_DATA, "JPEG: the file ends within its frame header");
        if (marker > 0xc2)
            return fx_fail(FX_UNSUPPORTED, "JPEG: %s coding (SOF%d); expected baseline or progressive Huffman coding",
                           marker >= 0xc9   ? "arithmetic"
                           : marker == 0xc3 ? "lossless"
                                            : "hierarchical",
                           marker - 0xc0);
        if (p[at + 2] != 8)
            return fx_fail(FX_UNSUPPORTED, "JPEG: %d-bit samples; expected 8 bits", p[at + 2]);
        unsigned long height = (unsigned long)p[at + 3] << 8 | p[at + 4],
                      width = (unsigned long)p[at + 5] << 8 | p[at + 6];
        int components = p[at + 7];
        if (components != 1 && components != 3 && components != 4)
            return fx_fail(FX_UNSUPPORTED, "JPEG: %d components; expected 1, 3 or 4", components);
        return fx_image_check_size("JPEG", width, height, size, PIXELS_PER_BYTE);
    }
}

/* The first scan's Huffman tables must be in the file: the library would take default ones. */
static bool has_tables(const struct jpeg_decompress_struct *c) {
    for (int i = 0; i < c->comps_in_scan; i++) {
        const jpeg_component_info *comp = c->cur_comp_info[i];
        int dc = comp->dc_tbl_no, ac = comp->ac_tbl_no;
        if (c->Ss == 0 && c->Ah == 0 && (dc < 0 || dc >= NUM_HUFF_TBLS || !c->dc_huff_tbl_ptrs[dc]))
            return false;
        if (c->Se > 0 && (ac < 0 || ac >= NUM_HUFF_TBLS || !c->ac_huff_tbl_ptrs[ac]))
            return false;
    }
    return true;
}

/* Every component was in a scan, and where the end was made up, no coefficient waits for a later scan. */
static bool has_all_scans(const reader *r) {
    const struct jpeg_decompress_struct *c = &r->cinfo;
    for (int i = 0; i < c->num_components; i++) {
        if (!c->comp_info[i].quant_table)
            return false;
        if (!c->progressive_mode || !c->coef_bits)
            continue;
        if (c->coef_bits[i][0] < 0)
            return false;
        for (int k = 0; k < DCTSIZE2 && r->ended; k++)
            if (c->coef_bits[i][k] != 0)
                return false;
    }
    return true;
}

/* Adobe's programs store CMYK inverted and say so by their marker. */
static void cmyk_to_rgb(const unsigned char *src, unsigned char *dst, int width, bool inverted) {
    for (int x = 0; x < width; x++, src += 4, dst += 3)
        for (int i = 0; i < 3; i++) {
            int c = inverted ? src[i] : 255 - src[i], k = inverted ? src[3] : 255 - src[3];
            dst[i] = (unsigned char)((c * k + 127) / 255);
        }
}

static fx_status begin_image(reader *r) {
    struct jpeg_decompress_struct *c = &r->cinfo;
    if (!has_tables(c))
        return fx_fail(FX_BAD_DATA, "JPEG: a Huffman table is missing");
    c->out_color_space = c->num_components == 1 ? JCS_GRAYSCALE : c->num_components == 3 ? JCS_RGB : JCS_CMYK;
    r->progress.progress_monitor = on_progress;
    c->progress = &r->progress;
    FX_TRY(fx_image_make((int)c->image_width, (int)c->image_height, c->num_components == 1 ? 1 : 3, FX_U8, &r->image));
    if (c->num_components == 4 && !(r->row = malloc(4 * (size_t)c->image_width)))
        return fx_fail_oom(4 * (size_t)c->image_width);
    return FX_OK;
}

/* False when libjpeg jumped out. */
static bool decode(reader *r, const unsigned char *data, size_t size) {
    struct jpeg_decompress_struct *c = &r->cinfo;
    if (setjmp(r->jump))
        return false;
    jpeg_create_decompress(c);
    r->source = (struct jpeg_source_mgr){data, size, no_op, at_end, skip, jpeg_resync_to_restart, no_op};
    c->src = &r->source;
    jpeg_read_header(c, TRUE);
    if ((r->status = begin_image(r)) != FX_OK)
        return true;
    jpeg_start_decompress(c);
    size_t row = (size_t)r->image.width * (size_t)r->image.channels;
    while (c->output_scanline < c->output_height) {
        unsigned char *dst = (unsigned char *)r->image.data + (size_t)c->output_scanline * row;
        JSAMPROW line = r->row ? r->row : dst;
        if (jpeg_read_scanlines(c, &line, 1) == 1 && r->row)
            cmyk_to_rgb(line, dst, r->image.width, c->saw_Adobe_marker);
    }
    if (!has_all_scans(r)) {
        r->status = fx_fail(FX_BAD_DATA, "JPEG: the file ends before its last scan");
        return true;
    }
    jpeg_finish_decompress(c);
    return true;
}

fx_status fx_jpeg_decode(const unsigned char *data, size_t size, fx_image *out) {
    *out = (fx_image){.data = NULL};
    FX_TRY(check_frame(data, size));
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return fx_fail_oom(sizeof *r);
    r->cinfo.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = fail;
    r->errors.emit_message = on_message;
    r->cinfo.client_data = r;
    fx_status status = decode(r, data, size) ? r->status : fx_fail(FX_BAD_DATA, "JPEG: %s", r->error);
    jpeg_destroy_decompress(&r->cinfo);
    free(r->row);
    if (status == FX_OK)
        *out = r->image;
    else
        fx_image_free(&r->image);
    free(r);
    return status;
}
