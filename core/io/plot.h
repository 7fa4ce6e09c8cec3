/* plot.h - what the two halves of a plot share: data and ticks (plot.c), pixels (raster.c). */
#ifndef FX_IO_PLOT_H
#define FX_IO_PLOT_H

#include "core/io/file.h"

typedef struct fx_colour {
    uint8_t r, g, b;
} fx_colour;

/* RGB u8 image to draw on; everything is clipped to it. */
void fx_raster_fill(fx_image *image, int x0, int y0, int x1, int y1, fx_colour colour); /* [x0,x1) x [y0,y1) */
/* Smoothed line of the given width in pixels. */
void fx_raster_line(fx_image *image, double x0, double y0, double x1, double y1, double width, fx_colour colour);
/* Text with its upper left corner at (x, y), each font pixel `scale` pixels large; `upwards`: turned by 90 degrees, (x,
 * y) being the lower left corner. */
void fx_raster_text(fx_image *image, int x, int y, int scale, bool upwards, const char *text, fx_colour colour);
int fx_raster_text_width(const char *text, int scale);

/* Places and labels of ticks on an axis. */
enum { FX_MAX_TICKS = 24 };
typedef struct fx_ticks {
    int count;
    double at[FX_MAX_TICKS];
    char label[FX_MAX_TICKS][24];
} fx_ticks;
/* Round numbers within [lo, hi], at most `most` of them; lo < hi. */
void fx_ticks_linear(double lo, double hi, int most, fx_ticks *ticks);
/* lo and hi are base-10 logarithms, as are the places. */
void fx_ticks_log(double lo, double hi, int most, fx_ticks *ticks);

#endif
