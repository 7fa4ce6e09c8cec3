/* plot.c - line plots: collects series, fits axes to them and draws frame, grid, ticks, lines and legend. */
#include "core/io/plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/font.h"
#include "core/io/image.h"

typedef struct series {
    char *name;
    double *x, *y; /* y is its base-10 logarithm on a logarithmic axis, NaN where it has none */
    size_t n;
} series;

struct fx_plot {
    fx_plot_options options; /* texts are owned copies */
    series *items;
    size_t count;
};

typedef struct axes {
    double x0, x1, y0, y1;        /* data */
    int left, right, top, bottom; /* pixels of the frame */
    int scale;                    /* of the font */
} axes;

enum { MIN_SIDE = 160, MAX_SIDE = 8192, MAX_TEXT = 200, MAX_LEGEND = 40 };
static const fx_colour white = {255, 255, 255}, black = {30, 30, 30}, grey = {226, 226, 226};
static const fx_colour palette[] = {{31, 97, 175},  {214, 90, 24},  {30, 140, 80},  {190, 50, 130},
                                    {130, 100, 40}, {80, 170, 220}, {110, 80, 190}, {90, 90, 90}};

static fx_status copy_text(const char **text) {
    if (!*text)
        return FX_OK;
    size_t n = strnlen(*text, MAX_TEXT);
    char *copy = malloc(n + 1);
    if (!copy) {
        *text = NULL;
        return fx_fail_oom(n);
    }
    memcpy(copy, *text, n);
    copy[n] = '\0';
    *text = copy;
    return FX_OK;
}

fx_status fx_plot_create(const fx_plot_options *options, fx_plot **out) {
    FX_TRY(fx_need(out, "fx_plot_create: out"));
    fx_plot_options o = FX_PLOT_OPTIONS_INIT;
    *out = NULL;
    FX_TRY(fx_options_take(&o, sizeof o, options, "fx_plot_options"));
    if (o.width < MIN_SIDE || o.width > MAX_SIDE || o.height < MIN_SIDE || o.height > MAX_SIDE)
        return fx_fail(FX_INVALID_ARGUMENT, "plot: %d x %d pixels; expected %d to %d on each side", o.width, o.height,
                       MIN_SIDE, MAX_SIDE);
    fx_plot *p = calloc(1, sizeof *p);
    if (!p)
        return fx_fail_oom(sizeof *p);
    fx_status s1 = copy_text(&o.title), s2 = copy_text(&o.x_label), s3 = copy_text(&o.y_label);
    p->options = o;
    if (s1 != FX_OK || s2 != FX_OK || s3 != FX_OK) {
        fx_plot_destroy(p);
        return FX_OUT_OF_MEMORY;
    }
    *out = p;
    return FX_OK;
}

void fx_plot_destroy(fx_plot *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++) {
        free(p->items[i].name);
        free(p->items[i].x);
    }
    free(p->items);
    free((void *)(uintptr_t)p->options.title);
    free((void *)(uintptr_t)p->options.x_label);
    free((void *)(uintptr_t)p->options.y_label);
    free(p);
}

fx_status fx_plot_add(fx_plot *p, const char *name, const double *x, const double *y, size_t n) {
    FX_TRY(fx_need(p, "fx_plot_add: plot"));
    size_t bytes;
    if (n && !y)
        return fx_fail(FX_INVALID_ARGUMENT, "plot: %zu points without y values", n);
    if (n == SIZE_MAX || !fx_mul_size(n + 1, 2 * sizeof *y, &bytes))
        return fx_fail(FX_INVALID_ARGUMENT, "plot: too many points");
    series *items = realloc(p->items, (p->count + 1) * sizeof *items);
    if (!items)
        return fx_fail_oom((p->count + 1) * sizeof *items);
    p->items = items;
    const char *label = name ? name : "";
    double *data = malloc(bytes);
    if (!data || copy_text(&label) != FX_OK) {
        free(data);
        return fx_fail_oom(bytes);
    }
    series *s = &p->items[p->count++];
    *s = (series){(char *)(uintptr_t)label, data, data + n, n};
    for (size_t i = 0; i < n; i++) {
        s->x[i] = x ? x[i] : (double)i;
        s->y[i] = !p->options.log_y ? y[i] : y[i] > 0 ? log10(y[i]) : NAN;
    }
    return FX_OK;
}

/* Values that differences and products of the axes' arithmetic can bear. */
static bool drawable(double v) {
    return fabs(v) <= 1e300;
}

/* Makes [lo, hi] a range that can be drawn: not empty, not narrower than doubles can tell apart. */
static void widen(double *lo, double *hi, double margin) {
    if (!(*lo <= *hi))
        *lo = 0, *hi = 1;
    double size = fmax(fabs(*lo), fabs(*hi)), pad = (*hi - *lo) * margin;
    if (*hi - *lo <= fmax(size * 1e-9, 1e-280))
        pad = size > 1e-270 ? size * 1e-3 : 1; /* a constant: some room around it */
    *lo -= pad;
    *hi += pad;
}

static void fit(const fx_plot *p, axes *a) {
    a->x0 = a->y0 = INFINITY;
    a->x1 = a->y1 = -INFINITY;
    for (size_t k = 0; k < p->count; k++)
        for (size_t i = 0; i < p->items[k].n; i++) {
            double x = p->items[k].x[i], y = p->items[k].y[i];
            if (!drawable(x) || !drawable(y))
                continue;
            a->x0 = fmin(a->x0, x);
            a->x1 = fmax(a->x1, x);
            a->y0 = fmin(a->y0, y);
            a->y1 = fmax(a->y1, y);
        }
    widen(&a->x0, &a->x1, 0);
    widen(&a->y0, &a->y1, 0.04);
}

static double pixel_x(const axes *a, double x) {
    return a->left + (x - a->x0) / (a->x1 - a->x0) * (a->right - a->left);
}
static double pixel_y(const axes *a, double y) {
    return a->bottom - (y - a->y0) / (a->y1 - a->y0) * (a->bottom - a->top);
}

static void draw_axes(const fx_plot *p, const axes *a, const fx_ticks *tx, const fx_ticks *ty, fx_image *image) {
    const fx_plot_options *o = &p->options;
    int s = a->scale, text = FX_FONT_CAPITALS * s;
    for (int i = 0; i < tx->count; i++) {
        int x = (int)floor(pixel_x(a, tx->at[i]));
        fx_raster_fill(image, x, a->top, x + 1, a->bottom, grey);
        fx_raster_fill(image, x, a->bottom, x + 1, a->bottom + 3 * s, black);
        fx_raster_text(image, x - fx_raster_text_width(tx->label[i], s) / 2, a->bottom + 5 * s, s, false, tx->label[i],
                       black);
    }
    for (int i = 0; i < ty->count; i++) {
        int y = (int)floor(pixel_y(a, ty->at[i]));
        fx_raster_fill(image, a->left, y, a->right, y + 1, grey);
        fx_raster_fill(image, a->left - 3 * s, y, a->left, y + 1, black);
        fx_raster_text(image, a->left - 5 * s - fx_raster_text_width(ty->label[i], s), y - text / 2, s, false,
                       ty->label[i], black);
    }
    fx_raster_fill(image, a->left, a->top, a->left + 1, a->bottom, black);
    fx_raster_fill(image, a->left, a->bottom, a->right, a->bottom + 1, black);
    if (o->title)
        fx_raster_text(image, (o->width - fx_raster_text_width(o->title, s)) / 2, 4 * s, s, false, o->title, black);
    if (o->x_label)
        fx_raster_text(image, (a->left + a->right - fx_raster_text_width(o->x_label, s)) / 2, o->height - 11 * s, s,
                       false, o->x_label, black);
    if (o->y_label)
        fx_raster_text(image, 3 * s, (a->top + a->bottom + fx_raster_text_width(o->y_label, s)) / 2, s, true,
                       o->y_label, black);
}

static void draw_series(const series *s, const axes *a, fx_colour colour, fx_image *image) {
    bool open = false; /* the last point can be joined */
    double px = 0, py = 0, width = 0.8 * a->scale;
    for (size_t i = 0; i < s->n; i++) {
        if (!drawable(s->x[i]) || !drawable(s->y[i])) {
            open = false;
            continue;
        }
        double x = pixel_x(a, s->x[i]), y = pixel_y(a, s->y[i]);
        bool alone = !open && (i + 1 == s->n || !drawable(s->x[i + 1]) || !drawable(s->y[i + 1]));
        if (open)
            fx_raster_line(image, px, py, x, y, width, colour);
        else if (alone)
            fx_raster_line(image, x, y, x, y, 3 * width, colour); /* a dot */
        px = x;
        py = y;
        open = true;
    }
}

/* Points of all series within a rectangle of pixels. */
static size_t count_inside(const fx_plot *p, const axes *a, int x0, int y0, int x1, int y1) {
    size_t n = 0;
    for (size_t k = 0; k < p->count; k++)
        for (size_t i = 0; i < p->items[k].n; i++) {
            double x = pixel_x(a, p->items[k].x[i]), y = pixel_y(a, p->items[k].y[i]);
            n += x >= x0 && x <= x1 && y >= y0 && y <= y1;
        }
    return n;
}

/* In the corner where it hides the fewest points. */
static void draw_legend(const fx_plot *p, const axes *a, fx_image *image) {
    int s = a->scale, rows = 0, widest = 0, line = 11 * s;
    for (size_t i = 0; i < p->count && i < MAX_LEGEND; i++)
        if (p->items[i].name[0]) {
            int w = fx_raster_text_width(p->items[i].name, s);
            widest = w > widest ? w : widest;
            rows++;
        }
    if (!rows)
        return;
    int w = widest + 19 * s, h = rows * line + 3 * s, x = 0, y = 0;
    size_t fewest = SIZE_MAX;
    for (int corner = 0; corner < 4; corner++) { /* upper right first */
        int cx = corner < 2 ? a->right - w - 3 * s : a->left + 4 * s;
        int cy = corner % 2 == 0 ? a->top + 3 * s : a->bottom - h - 4 * s;
        size_t inside = count_inside(p, a, cx, cy, cx + w, cy + h);
        if (inside < fewest) {
            fewest = inside;
            x = cx;
            y = cy;
        }
    }
    fx_raster_fill(image, x - 1, y - 1, x + w + 1, y + h + 1, grey);
    fx_raster_fill(image, x, y, x + w, y + h, white);
    for (size_t i = 0, row = 0; i < p->count && i < MAX_LEGEND; i++) {
        if (!p->items[i].name[0])
            continue;
        int at = y + 3 * s + (int)row++ * line;
        double middle = at + FX_FONT_CAPITALS * s / 2.0;
        fx_raster_line(image, x + 3 * s, middle, x + 12 * s, middle, s,
                       palette[i % (sizeof palette / sizeof *palette)]);
        fx_raster_text(image, x + 16 * s, at, s, false, p->items[i].name, black);
    }
}

fx_status fx_plot_render(const fx_plot *p, fx_image *out) {
    FX_TRY(fx_need(out, "fx_plot_render: out"));
    *out = (fx_image){.data = NULL};
    FX_TRY(fx_need(p, "fx_plot_render: plot"));
    const fx_plot_options *o = &p->options;
    fx_image image;
    fx_ticks tx, ty;
    axes a = {.scale = 1};
    FX_TRY(fx_image_make(o->width, o->height, 3, FX_U8, &image));
    fx_raster_fill(&image, 0, 0, o->width, o->height, white);
    int side = o->width < o->height * 8 / 5 ? o->width : o->height * 8 / 5;
    a.scale = (side + 300) / 500;
    a.scale = a.scale < 1 ? 1 : a.scale;
    int s = a.scale;
    fit(p, &a);
    a.top = (o->title ? 18 : 8) * s;
    a.bottom = o->height - (o->x_label ? 28 : 16) * s;
    int rows = (a.bottom - a.top) / (18 * s);
    if (o->log_y)
        fx_ticks_log(a.y0, a.y1, rows, &ty);
    else
        fx_ticks_linear(a.y0, a.y1, rows, &ty);
    int widest = 0;
    for (int i = 0; i < ty.count; i++) {
        int w = fx_raster_text_width(ty.label[i], s);
        widest = w > widest ? w : widest;
    }
    a.left = widest + (o->y_label ? 22 : 9) * s;
    a.right = o->width - 14 * s;
    if (a.right <= a.left + 10 * s)
        a.left = a.right - 10 * s;
    fx_ticks_linear(a.x0, a.x1, (a.right - a.left) / (44 * s), &tx);
    draw_axes(p, &a, &tx, &ty, &image);
    for (size_t i = 0; i < p->count; i++)
        draw_series(&p->items[i], &a, palette[i % (sizeof palette / sizeof *palette)], &image);
    draw_legend(p, &a, &image);
    *out = image;
    return FX_OK;
}

fx_status fx_plot_save(const fx_plot *p, const char *path) {
    fx_image image;
    FX_TRY(fx_plot_render(p, &image));
    fx_status status = fx_image_write_png(path, &image);
    fx_image_free(&image);
    return status;
}
