/* font.h - a bitmap font of printable ASCII, 5 x 9 pixels a glyph, for plots. */
#ifndef FX_IO_FONT_H
#define FX_IO_FONT_H

enum { FX_FONT_WIDTH = 5, FX_FONT_HEIGHT = 9, FX_FONT_CAPITALS = 7, FX_FONT_ADVANCE = 6 };

/* Rows 0 to 8 of a glyph, 5 bits each, the highest bit left; rows 7 and 8 are below the base line. A character that is
 * not printable ASCII gets the glyph of '?'. */
void fx_font_glyph(char c, unsigned char rows[FX_FONT_HEIGHT]);

#endif
