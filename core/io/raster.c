/* raster.c - rectangles, smoothed lines and text on an RGB image. */
#include <math.h>
#include <string.h>

#include "core/io/font.h"
#include "core/io/plot.h"

static int clamp(int v, int lo, int hi) {
    return v < lo ? lo : v > hi ? hi : v;
}

static void blend(fx_image *image, int x, int y, fx_colour colour, double alpha) {
    uint8_t *p = (uint8_t *)image->data + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
    const uint8_t c[3] = {colour.r, colour.g, colour.b};
    for (int i = 0; i < 3; i++)
        p[i] = (uint8_t)(p[i] + (c[i] - p[i]) * alpha + 0.5);
}

void fx_raster_fill(fx_image *image, int x0, int y0, int x1, int y1, fx_colour colour) {
    x1 = clamp(x1, 0, image->width);
    y1 = clamp(y1, 0, image->height);
    for (int y = clamp(y0, 0, image->height); y < y1; y++)
        for (int x = clamp(x0, 0, image->width); x < x1; x++)
            blend(image, x, y, colour, 1);
}

void fx_raster_line(fx_image *image, double x0, double y0, double x1, double y1, double width, fx_colour colour) {
    double reach = width / 2 + 1, dx = x1 - x0, dy = y1 - y0, length2 = dx * dx + dy * dy;
    int top = clamp((int)floor(fmin(y0, y1) - reach), 0, image->height);
    int bottom = clamp((int)ceil(fmax(y0, y1) + reach), 0, image->height);
    for (int y = top; y < bottom; y++) {
        /* the part of the segment that comes near this row */
        double ta = 0, tb = 1;
        if (fabs(dy) > 1e-9) {
            ta = fmin(1, fmax(0, (y - reach - y0) / dy));
            tb = fmin(1, fmax(0, (y + 1 + reach - y0) / dy));
        }
        double xa = x0 + ta * dx, xb = x0 + tb * dx;
        int left = clamp((int)floor(fmin(xa, xb) - reach), 0, image->width);
        int right = clamp((int)ceil(fmax(xa, xb) + reach), 0, image->width);
        for (int x = left; x < right; x++) { /* coverage from the distance between pixel centre and segment */
            double px = x + 0.5 - x0, py = y + 0.5 - y0;
            double t = length2 > 0 ? fmin(1, fmax(0, (px * dx + py * dy) / length2)) : 0;
            double alpha = width / 2 + 0.5 - hypot(px - t * dx, py - t * dy);
            if (alpha > 0)
                blend(image, x, y, colour, fmin(1, alpha));
        }
    }
}

void fx_raster_text(fx_image *image, int x, int y, int scale, bool upwards, const char *text, fx_colour colour) {
    for (; *text; text++) {
        unsigned char rows[FX_FONT_HEIGHT];
        fx_font_glyph(*text, rows);
        for (int r = 0; r < FX_FONT_HEIGHT; r++)
            for (int c = 0; c < FX_FONT_WIDTH; c++) {
                if (!(rows[r] >> (FX_FONT_WIDTH - 1 - c) & 1))
                    continue;
                int px = upwards ? x + r * scale : x + c * scale, py = upwards ? y - (c + 1) * scale : y + r * scale;
                fx_raster_fill(image, px, py, px + scale, py + scale, colour);
            }
        if (upwards)
            y -= FX_FONT_ADVANCE * scale;
        else
            x += FX_FONT_ADVANCE * scale;
    }
}

int fx_raster_text_width(const char *text, int scale) {
    int n = (int)strlen(text);
    return n ? (n * FX_FONT_ADVANCE - (FX_FONT_ADVANCE - FX_FONT_WIDTH)) * scale : 0;
}
