/* test_images.c - PNG and JPEG reading, conversions, resizing and PNG writing; E-011, E-013 and E-015 of the file
 * cases. */
#include <math.h>

#include "case_files.h"

static fx_image decode_as(const case_file *files, size_t n, const char *name, int channels, fx_dtype dtype) {
    const case_file *f = case_file_named(files, n, name);
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    fx_image image;
    o.channels = channels;
    o.dtype = dtype;
    ck_assert_fx_ok(fx_image_decode(f->data, f->size, &o, &image));
    return image;
}

static void check_bytes(fx_image image, int width, int height, int channels, const uint8_t *want) {
    ck_assert_int_eq(image.width, width);
    ck_assert_int_eq(image.height, height);
    ck_assert_int_eq(image.channels, channels);
    ck_assert_int_eq(image.dtype, FX_U8);
    if (want)
        ck_assert_mem_eq(image.data, want, (size_t)(width * height * channels));
    fx_image_free(&image);
}
#define BYTES(...) ((const uint8_t[]){__VA_ARGS__})

START_TEST(e011_every_kind_of_png_reads_its_exact_samples) {
    size_t n;
    case_file *f = case_files("E-011", &n);
    ck_assert_uint_eq(n, 12);
    static const uint16_t gray16[] = {0, 255, 32768, 65535}, rgb16[] = {4660, 43981, 255};
    fx_image image = decode_as(f, n, "gray16", 0, FX_U16);
    ck_assert_mem_eq(image.data, gray16, sizeof gray16);
    fx_image_free(&image);
    image = decode_as(f, n, "gray16", 0, FX_F32);
    for (int i = 0; i < 4; i++)
        ck_assert(((float *)image.data)[i] == (float)gray16[i] / 65535.0f);
    fx_image_free(&image);
    check_bytes(decode_as(f, n, "gray16", 0, FX_U8), 2, 2, 1, BYTES(0, 1, 128, 255));
    image = decode_as(f, n, "rgb16", 0, FX_U16);
    ck_assert_int_eq(image.channels, 3);
    ck_assert_mem_eq(image.data, rgb16, sizeof rgb16);
    fx_image_free(&image);
    check_bytes(
        decode_as(f, n, "palette4_trns", 0, FX_U8), 3, 2, 4,
        BYTES(10, 20, 30, 255, 40, 50, 60, 128, 70, 80, 90, 255, 70, 80, 90, 255, 40, 50, 60, 128, 10, 20, 30, 255));
    check_bytes(decode_as(f, n, "gray1_width9", 0, FX_U8), 9, 2, 1,
                BYTES(255, 0, 255, 0, 255, 0, 255, 0, 255, 0, 0, 0, 0, 255, 255, 255, 255, 0));
    check_bytes(decode_as(f, n, "gray2", 0, FX_U8), 4, 1, 1, BYTES(0, 85, 170, 255));
    check_bytes(decode_as(f, n, "gray_alpha8", 0, FX_U8), 2, 1, 2, BYTES(200, 0, 100, 255));
    check_bytes(decode_as(f, n, "gray_alpha8", 3, FX_U8), 2, 1, 3,
                BYTES(200, 200, 200, 100, 100, 100)); /* alpha dropped */
    check_bytes(decode_as(f, n, "gray_alpha8", 1, FX_U8), 2, 1, 1, BYTES(200, 100));
    check_bytes(decode_as(f, n, "gray_alpha8", 4, FX_U8), 2, 1, 4, BYTES(200, 200, 200, 0, 100, 100, 100, 255));
    check_bytes(decode_as(f, n, "rgba8", 0, FX_U8), 1, 2, 4, BYTES(1, 2, 3, 4, 5, 6, 7, 8));
    check_bytes(decode_as(f, n, "rgba8", 3, FX_U8), 1, 2, 3, BYTES(1, 2, 3, 5, 6, 7));
    uint8_t filters[7 * 5 * 3], interlaced[25];
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 7; x++)
            for (int c = 0; c < 3; c++)
                filters[(y * 7 + x) * 3 + c] = (uint8_t)(40 * y + 9 * x + 70 * c);
    check_bytes(decode_as(f, n, "all_filters_rgb", 0, FX_U8), 7, 5, 3, filters);
    for (int i = 0; i < 25; i++)
        interlaced[i] = (uint8_t)(50 * (i / 5) + 7 * (i % 5));
    check_bytes(decode_as(f, n, "interlaced_gray", 0, FX_U8), 5, 5, 1, interlaced);
    check_bytes(decode_as(f, n, "interlaced 1x1", 0, FX_U8), 1, 1, 1, BYTES(77));
    check_bytes(decode_as(f, n, "gray_trns_key", 0, FX_U8), 2, 1, 2, BYTES(5, 0, 6, 255));
    check_bytes(decode_as(f, n, "gamma_srgb_text_chunks", 0, FX_U8), 1, 1, 1, BYTES(100));
    case_files_free(f, n);
}
END_TEST

static void check_flat(fx_image image, int width, int height, int channels, const int *want) {
    ck_assert_int_eq(image.channels, channels);
    if (width) {
        ck_assert_int_eq(image.width, width);
        ck_assert_int_eq(image.height, height);
    }
    for (int i = 0; i < image.width * image.height * channels; i++)
        ck_assert_int_le(abs(((uint8_t *)image.data)[i] - want[i % channels]), 2);
    fx_image_free(&image);
}

static void check_blocks(fx_image image) {
    static const int want[2][3] = {{10, 60, 110}, {160, 210, 250}};
    ck_assert(image.width == 24 && image.height == 16 && image.channels == 1);
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 24; x++)
            ck_assert_int_le(abs(((uint8_t *)image.data)[y * 24 + x] - want[y / 8][x / 8]), 2);
    fx_image_free(&image);
}

START_TEST(e013_jpeg_grey_progressive_subsampled_rgb_cmyk_and_without_end) {
    size_t n;
    case_file *f = case_files("E-013", &n);
    ck_assert_uint_eq(n, 8);
    check_blocks(decode_as(f, n, "gray 24x16", 0, FX_U8));
    check_blocks(decode_as(f, n, "progressive gray", 0, FX_U8));
    check_blocks(decode_as(f, n, "no EOI", 0, FX_U8));
    check_flat(decode_as(f, n, "ycbcr 4:2:0 13x11", 0, FX_U8), 13, 11, 3, (int[]){173, 76, 33});
    check_flat(decode_as(f, n, "ycbcr 4:2:0 progressive", 0, FX_U8), 16, 16, 3, (int[]){173, 76, 33});
    check_flat(decode_as(f, n, "rgb adobe transform 0", 0, FX_U8), 0, 0, 3, (int[]){200, 100, 50});
    check_flat(decode_as(f, n, "cmyk adobe", 0, FX_U8), 0, 0, 3, (int[]){200, 100, 50});
    check_flat(decode_as(f, n, "leading APPn", 0, FX_U8), 0, 0, 1, (int[]){77});
    check_flat(decode_as(f, n, "leading APPn", 3, FX_U8), 0, 0, 3, (int[]){77, 77, 77});
    case_files_free(f, n);
}
END_TEST

START_TEST(e015_truncated_and_unsupported_jpegs_are_errors) {
    static const struct {
        const char *name, *says;
    } want[] = {{"cut after SOF0", "JPEG"},
                {"cut before SOS", "JPEG"},
                {"cut in scan", "premature end"},
                {"only SOI", "JPEG"},
                {"dims 65535x65535", "65535 x 65535"},
                {"height 0", "x 0 pixels"},
                {"12-bit", "12-bit"},
                {"arithmetic (SOF9)", "arithmetic"},
                {"lossless (SOF3)", "lossless"},
                {"2 components", "2 components"},
                {"sampling 0", "JPEG"},
                {"huffman table missing", "Huffman table"},
                {"empty", "0 bytes"},
                {"html error page", "web page"}};
    size_t n;
    case_file *files = case_files("E-015", &n);
    ck_assert_uint_eq(n, sizeof want / sizeof *want);
    long peak = peak_bytes();
    double start = now_seconds();
    for (size_t i = 0; i < n; i++) {
        const case_file *f = case_file_named(files, n, want[i].name);
        fx_image image = {.data = &image};
        const char *path = scratch_path("broken.jpg");
        write_file(path, f->data, f->size);
        fx_status status = fx_image_load(path, NULL, &image);
        ck_assert_msg(status == FX_BAD_DATA || status == FX_UNSUPPORTED, "%s: %s", f->name, fx_status_name(status));
        ck_assert_error_says("broken.jpg");
        ck_assert_error_says(want[i].says);
        ck_assert_ptr_null(image.data);
    }
    ck_assert_double_lt(now_seconds() - start, 2);
    ck_assert_int_lt(peak_bytes() - peak, 50 << 20);
    case_files_free(files, n);
}
END_TEST

START_TEST(a_png_or_jpeg_cut_anywhere_is_an_error) {
    size_t n, whole = 0;
    static const char *const ids[] = {"E-011", "E-013"};
    for (int k = 0; k < 2; k++) {
        case_file *files = case_files(ids[k], &n);
        for (size_t i = 0; i < n; i++) {
            size_t last = files[i].size -
                          (k && strncmp(files[i].name, "no EOI", 6) != 0 ? 2 : 0); /* the end marker is forgiven */
            for (size_t cut = 0; cut < last; cut++) {
                fx_image image;
                unsigned char *part = malloc(cut ? cut : 1); /* exact, for the sanitizer */
                memcpy(part, files[i].data, cut);
                fx_status status = fx_image_decode(part, cut, NULL, &image);
                /* a scan's last byte may be padding alone: then the picture is whole and must be the right one */
                if (status == FX_OK) {
                    fx_image full;
                    ck_assert_msg(k == 1 && cut + 2 >= last, "%s cut at %zu was accepted", files[i].name, cut);
                    ck_assert_fx_ok(fx_image_decode(files[i].data, files[i].size, NULL, &full));
                    ck_assert_mem_eq(image.data, full.data, (size_t)(full.width * full.height * full.channels));
                    fx_image_free(&full);
                    fx_image_free(&image);
                    whole++;
                }
                free(part);
            }
        }
        case_files_free(files, n);
    }
    ck_assert_uint_le(whole, 8);
}
END_TEST

START_TEST(damaged_png_bytes_are_errors) {
    size_t n;
    case_file *files = case_files("E-011", &n);
    for (size_t i = 0; i < n; i++)
        for (size_t at = 8; at < files[i].size;
             at++) { /* each byte behind the signature is length, type, data or CRC */
            fx_image image;
            files[i].data[at] ^= 0x10;
            ck_assert_msg(fx_image_decode(files[i].data, files[i].size, NULL, &image) != FX_OK, "%s: byte %zu",
                          files[i].name, at);
            files[i].data[at] ^= 0x10;
        }
    case_files_free(files, n);
}
END_TEST

static uint32_t crc32_of(const unsigned char *p, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_chunk(unsigned char **p, const char *type, const void *data, uint32_t size) {
    unsigned char *at = *p;
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(size >> (24 - 8 * i));
    memcpy(at + 4, type, 4);
    if (size)
        memcpy(at + 8, data, size);
    uint32_t crc = crc32_of(at + 4, size + 4);
    for (int i = 0; i < 4; i++)
        at[8 + size + (uint32_t)i] = (unsigned char)(crc >> (24 - 8 * i));
    *p = at + size + 12;
}

START_TEST(a_png_that_claims_more_than_it_holds_takes_no_memory) {
    static const uint32_t sizes[][2] = {{65535, 1024}, {8192, 8192}, {1u << 30, 1}, {0x7fffffff, 0x7fffffff},
                                        {0, 5},        {5, 0}};
    long peak = peak_bytes();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char file[256], *p = file + 8, header[13] = {0};
        memcpy(file, "\x89PNG\r\n\x1a\n", 8);
        for (int b = 0; b < 8; b++)
            header[b] = (unsigned char)(sizes[i][b / 4] >> (24 - 8 * (b % 4)));
        header[8] = 8;
        header[9] = 2;
        put_chunk(&p, "IHDR", header, 13);
        put_chunk(&p, "IDAT", "\x78\x01\x03\x00\x00\x00\x00\x01", 8); /* an empty stream */
        put_chunk(&p, "IEND", NULL, 0);
        fx_image image;
        ck_assert_int_eq(fx_image_decode(file, (size_t)(p - file), NULL, &image), FX_BAD_DATA);
    }
    ck_assert_int_lt(peak_bytes() - peak, 20 << 20);
}
END_TEST

START_TEST(conversions_to_grey_and_between_depths_round_rightly) {
    uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 10, 20, 30};
    fx_image image = {5, 1, 3, FX_U8, rgb}, back;
    const char *path = scratch_path("rgb.png");
    ck_assert_fx_ok(fx_image_write_png(path, &image));
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    o.channels = 1;
    ck_assert_fx_ok(fx_image_load(path, &o, &back));
    check_bytes(back, 5, 1, 1, BYTES(76, 150, 29, 255, 18)); /* 0.299, 0.587 and 0.114 of 255, and 18.15 */
    o.channels = 0;
    o.dtype = FX_U16;
    ck_assert_fx_ok(fx_image_load(path, &o, &back));
    ck_assert_uint_eq(((uint16_t *)back.data)[12], 10 * 257);
    const char *path16 = scratch_path("rgb16.png");
    ck_assert_fx_ok(fx_image_write_png(path16, &back));
    fx_image_free(&back);
    o.dtype = FX_U8;
    ck_assert_fx_ok(fx_image_load(path16, &o, &back));
    check_bytes(back, 5, 1, 3, rgb);
    o.dtype = FX_F64;
    ck_assert_int_eq(fx_image_load(path16, &o, &back), FX_INVALID_ARGUMENT);
    o.dtype = FX_U8;
    o.channels = 5;
    ck_assert_int_eq(fx_image_load(path16, &o, &back), FX_INVALID_ARGUMENT);
    image.dtype = FX_F32;
    ck_assert_int_eq(fx_image_write_png(path, &image), FX_INVALID_ARGUMENT);
    image.dtype = FX_U8;
    ck_assert_int_eq(fx_image_write_png("/dev/full", &image), FX_IO_ERROR);
    image.width = 0;
    ck_assert_int_eq(fx_image_write_png(path, &image), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(fx_image_load(scratch_path("absent.png"), NULL, &back), FX_NOT_FOUND);
}
END_TEST

static fx_image resized(const uint8_t *data, int w, int h, int ch, int to_w, int to_h, fx_fit fit) {
    fx_image image = {w, h, ch, FX_U8, (void *)(uintptr_t)data}, out;
    const char *path = scratch_path("resize.png");
    ck_assert_fx_ok(fx_image_write_png(path, &image));
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    o.width = to_w;
    o.height = to_h;
    o.fit = fit;
    ck_assert_fx_ok(fx_image_load(path, &o, &out));
    return out;
}

START_TEST(resizing_averages_when_shrinking_interpolates_when_growing_and_crops_the_centre) {
    uint8_t flat[64 * 48 * 3], ramp[64 * 4], halves[64 * 32];
    memset(flat, 123, sizeof flat);
    fx_image r = resized(flat, 64, 48, 3, 10, 17, FX_FIT_STRETCH);
    for (int i = 0; i < 10 * 17 * 3; i++)
        ck_assert_int_eq(((uint8_t *)r.data)[i], 123);
    fx_image_free(&r);
    for (int i = 0; i < 64 * 4; i++)
        ramp[i] = (uint8_t)(i % 64 * 4);
    /* away from the borders a linear ramp stays one: pixel x of 16 covers 4x..4x+3, centre 4x + 1.5 */
    r = resized(ramp, 64, 4, 1, 16, 1, FX_FIT_STRETCH);
    for (int x = 1; x < 15; x++)
        ck_assert_int_le(abs(((uint8_t *)r.data)[x] - (16 * x + 6)), 1);
    fx_image_free(&r);
    r = resized(ramp, 64, 4, 1, 128, 4, FX_FIT_STRETCH); /* centre of x is (x + 0.5) / 2 - 0.5 */
    for (int x = 1; x < 127; x++)
        ck_assert_int_le(abs(((uint8_t *)r.data)[x] - (2 * x - 1)), 1);
    fx_image_free(&r);
    /* black outer quarters, white middle: the centre square is white all over */
    for (int i = 0; i < 64 * 32; i++)
        halves[i] = i % 64 >= 14 && i % 64 < 50 ? 255 : 0;
    r = resized(halves, 64, 32, 1, 8, 8, FX_FIT_CROP);
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(((uint8_t *)r.data)[i], 255);
    fx_image_free(&r);
    r = resized(halves, 64, 32, 1, 8, 8, FX_FIT_STRETCH);
    ck_assert_int_eq(((uint8_t *)r.data)[0], 0);
    fx_image_free(&r);
    r = resized(halves, 64, 32, 1, 1, 1, FX_FIT_STRETCH);
    ck_assert_int_gt(((uint8_t *)r.data)[0], 140);
    fx_image_free(&r);
}
END_TEST

int main(void) {
    Suite *s = suite_create("images");
    TCase *c = tcase_create("images");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, e011_every_kind_of_png_reads_its_exact_samples);
    tcase_add_test(c, e013_jpeg_grey_progressive_subsampled_rgb_cmyk_and_without_end);
    tcase_add_test(c, e015_truncated_and_unsupported_jpegs_are_errors);
    tcase_add_test(c, a_png_or_jpeg_cut_anywhere_is_an_error);
    tcase_add_test(c, damaged_png_bytes_are_errors);
    tcase_add_test(c, a_png_that_claims_more_than_it_holds_takes_no_memory);
    tcase_add_test(c, conversions_to_grey_and_between_depths_round_rightly);
    tcase_add_test(c, resizing_averages_when_shrinking_interpolates_when_growing_and_crops_the_centre);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
