/* report.c - on a terminal one line is rewritten; elsewhere a line every few seconds, without control codes. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double report_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static fx_status io_error(const char *what, const char *path) {
    fprintf(stderr, "%s%s%s: %s\n", what, *path ? " " : "", path, strerror(errno));
    return FX_CANCELLED; /* said */
}

/* The same for an output of a running training, which says it once. */
static fx_status lost(report *r, const char *what, const char *path) {
    if (!r->failed)
        io_error(what, path);
    r->failed = true;
    return FX_CANCELLED;
}

static const char header[] = "step,epoch,loss,lr,seconds,test_loss,test_accuracy\n";

/* Cuts a CSV file after the rows of step `last`; whole lines only. Leaves an absent file alone. */
static fx_status cut(const char *path, int64_t last, bool *started) {
    char line[512];
    long keep = 0;
    FILE *f = fopen(path, "r+");
    *started = false;
    if (!f)
        return errno == ENOENT ? FX_OK : io_error("metrics", path);
    while (fgets(line, sizeof line, f) && strchr(line, '\n')) {
        if (*started ? strtoll(line, NULL, 10) > last : strcmp(line, header) != 0)
            break;
        *started = true;
        keep = ftell(f);
    }
    bool foreign = !*started && keep == 0 && !feof(f);
    bool bad = !foreign && ftruncate(fileno(f), keep);
    fclose(f);
    if (foreign)
        return fprintf(stderr, "metrics %s: not a file of vit_train's metrics\n", path), FX_CANCELLED;
    return bad ? io_error("metrics", path) : FX_OK;
}

fx_status report_open(report *r, bool json, const char *csv, const char *plot, int64_t first, int64_t total,
                      int64_t batch) {
    const char *term = getenv("TERM");
    memset(r, 0, sizeof *r);
    r->json = json;
    r->terminal = !json && isatty(2) && term && *term && strcmp(term, "dumb");
    r->csv_path = csv;
    r->plot_path = plot;
    r->first = first;
    r->total = total;
    r->batch = batch;
    r->smooth = NAN;
    r->mark_step = -1;
    r->start = r->last_line = report_now();
    if (!csv)
        return FX_OK;
    bool started = false;
    if (first)
        FX_TRY(cut(csv, first, &started));
    r->csv = fopen(csv, first ? "a" : "w");
    if (!r->csv)
        return io_error("metrics", csv);
    if (!started)
        fputs(header, r->csv);
    return FX_OK;
}

static void clock_text(double s, char *out, size_t size) {
    long long t = s > 0 && s < 1e9 ? (long long)(s + 0.5) : 0;
    if (t >= 3600)
        snprintf(out, size, "%lld:%02lld:%02lld", t / 3600, t / 60 % 60, t % 60);
    else
        snprintf(out, size, "%lld:%02lld", t / 60, t % 60);
}

static bool grow(double **a, double **b, size_t n, size_t *cap) {
    if (n < *cap)
        return true;
    size_t c = *cap ? 2 * *cap : 256;
    double *x = realloc(*a, c * sizeof *x);
    if (x)
        *a = x;
    double *y = realloc(*b, c * sizeof *y);
    if (y)
        *b = y;
    if (x && y)
        *cap = c;
    return x && y;
}

void report_pace(report *r, int64_t step, bool skip, bool suspended) {
    double now = report_now(), passed = now - r->mark, usual = report_step_seconds(r);
    int64_t steps = step - r->mark_step;
    bool timed = r->mark_step >= 0 && !skip;
    if (suspended && r->mark_step >= 0)
        r->idle += passed > usual * (double)steps ? passed - usual * (double)steps : 0;
    else if (timed && steps > 0)
        r->pace[r->n_pace++ % 16] = passed / (double)steps;
    r->mark = now;
    r->mark_step = step;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double report_step_seconds(const report *r) {
    double sorted[16];
    size_t n = r->n_pace < 16 ? (size_t)r->n_pace : 16;
    if (n < 2)
        return 0;
    memcpy(sorted, r->pace, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    return sorted[n / 2];
}

static void show(report *r, int64_t step, int64_t epoch) {
    char line[256], left[32];
    double now = report_now(), seconds = report_step_seconds(r);
    bool last = step == r->total;
    if (!last && now - r->last_line < (r->terminal ? 0.1 : 5))
        return;
    r->last_line = now;
    int n = snprintf(line, sizeof line, "step %lld/%lld  epoch %lld  loss %.4f", (long long)step, (long long)r->total,
                     (long long)epoch, r->smooth);
    if (seconds > 0) {
        double rate = (double)r->batch / seconds;
        clock_text((double)(r->total - step) * seconds, left, sizeof left);
        n += snprintf(line + n, sizeof line - (size_t)n, "  %.*f images/s  %s left", rate < 10 ? 2 : 0, rate, left);
    }
    if (!r->terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    struct winsize w = {0};
    if (!ioctl(2, TIOCGWINSZ, &w) && w.ws_col > 1 && n >= w.ws_col)
        line[w.ws_col - 1] = '\0';
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

/* A number in JSON, which knows no NaN. */
static const char *number(double v, char text[32]) {
    snprintf(text, 32, isfinite(v) ? "%.9g" : "null", v);
    return text;
}

fx_status report_step(report *r, int64_t step, int64_t epoch, double loss, double lr) {
    if (!grow(&r->step, &r->loss, r->n, &r->cap))
        return FX_OUT_OF_MEMORY;
    r->step[r->n] = (double)step;
    r->loss[r->n++] = loss;
    r->smooth = isnan(r->smooth) ? loss : 0.95 * r->smooth + 0.05 * loss;
    double passed = report_now() - r->start;
    char text[32];
    if (r->csv &&
        fprintf(r->csv, "%lld,%lld,%.9g,%.9g,%.3f,,\n", (long long)step, (long long)epoch, loss, lr, passed) < 0)
        return lost(r, "metrics", r->csv_path);
    if (r->json)
        printf("{\"step\": %lld, \"epoch\": %lld, \"loss\": %s, \"lr\": %.9g, \"seconds\": %.3f}\n", (long long)step,
               (long long)epoch, number(loss, text), lr, passed);
    else
        show(r, step, epoch);
    return FX_OK;
}

fx_status report_eval(report *r, int64_t step, double loss, int64_t correct, int64_t count) {
    if (!grow(&r->eval_step, &r->eval_acc, r->n_eval, &r->cap_eval))
        return FX_OUT_OF_MEMORY;
    double accuracy = count ? (double)correct / (double)count : 0;
    r->eval_step[r->n_eval] = (double)step;
    r->eval_acc[r->n_eval++] = accuracy;
    if (r->csv && fprintf(r->csv, "%lld,,,,,%.9g,%.6f\n", (long long)step, loss, accuracy) < 0)
        return lost(r, "metrics", r->csv_path);
    char text[32];
    if (r->json)
        printf("{\"step\": %lld, \"test_loss\": %s, \"test_accuracy\": %.6f, \"test_correct\": %lld, \"test_count\": "
               "%lld}\n",
               (long long)step, number(loss, text), accuracy, (long long)correct, (long long)count);
    else
        report_note(r, "test accuracy %.2f %% (%lld of %lld), test loss %.4f", 100 * accuracy, (long long)correct,
                    (long long)count, loss);
    return FX_OK;
}

void report_note(report *r, const char *fmt, ...) {
    va_list ap;
    if (r->json)
        return;
    va_start(ap, fmt);
    if (r->terminal)
        fprintf(stderr, "\r\033[K");
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
}

static fx_status draw(report *r) {
    fx_plot_options opt = FX_PLOT_OPTIONS_INIT;
    fx_plot *plot;
    double *smooth = malloc(sizeof *smooth * (r->n + 1));
    if (!smooth)
        return FX_OUT_OF_MEMORY;
    for (size_t i = 0; i < r->n; i++)
        smooth[i] = i ? 0.95 * smooth[i - 1] + 0.05 * r->loss[i] : r->loss[i];
    opt.title = "Training";
    opt.x_label = "step";
    opt.y_label = "loss";
    fx_status st = fx_plot_create(&opt, &plot);
    if (st == FX_OK) {
        st = fx_plot_add(plot, "loss", r->step, r->loss, r->n);
        if (st == FX_OK)
            st = fx_plot_add(plot, "smoothed", r->step, smooth, r->n);
        if (st == FX_OK && r->n_eval > 1)
            st = fx_plot_add(plot, "test accuracy", r->eval_step, r->eval_acc, r->n_eval);
        if (st == FX_OK)
            st = fx_plot_save(plot, r->plot_path);
        fx_plot_destroy(plot);
    }
    free(smooth);
    return st;
}

fx_status report_flush(report *r) {
    if (r->csv && fflush(r->csv))
        return lost(r, "metrics", r->csv_path);
    if (r->json && fflush(stdout))
        return lost(r, "standard output", "");
    return FX_OK;
}

fx_status report_close(report *r) {
    fx_status st = FX_OK;
    if (r->json && (fflush(stdout) || ferror(stdout)))
        st = lost(r, "standard output", "");
    if (r->csv && fclose(r->csv))
        st = lost(r, "metrics", r->csv_path);
    if (r->plot_path && r->n) {
        fx_status drawn = draw(r);
        if (drawn != FX_OK)
            fprintf(stderr, "plot %s: %s\n", r->plot_path, fx_last_error());
        st = st == FX_OK ? drawn : st;
    }
    free(r->step);
    free(r->loss);
    free(r->eval_step);
    free(r->eval_acc);
    return st;
}
