/* report.h - what a training run shows: a progress line, a CSV file, JSON lines, a plot. */
#ifndef VIT_REPORT_H
#define VIT_REPORT_H

#include <fornax/fornax.h>
#include <stdio.h>

typedef struct report {
    bool json, terminal;
    FILE *csv;
    const char *csv_path, *plot_path;
    double start, last_line;      /* seconds of the monotonic clock */
    double *step, *loss;          /* of every step so far */
    double *eval_step, *eval_acc; /* test accuracy */
    size_t n, cap, n_eval, cap_eval;
    int64_t first, total, batch;
    double mark;       /* when the step mark_step was seen done; steps are timed from there */
    int64_t mark_step; /* -1: not yet */
    double pace[16];   /* seconds a step lately, a ring */
    int64_t n_pace;
    double idle;   /* seconds in which the process was stopped (Ctrl-Z) */
    bool failed;   /* an output could not be written; training itself is sound */
    double smooth; /* running mean of the loss */
} report;

double report_now(void); /* seconds, monotonic */
/* Opens the CSV file. When resuming (first > 0) its rows up to that step stay, and what a run that was killed wrote
 * after its last checkpoint goes. */
fx_status report_open(report *r, bool json, const char *csv, const char *plot, int64_t first, int64_t total,
                      int64_t batch);
fx_status report_step(report *r, int64_t step, int64_t epoch, double loss, double lr);
fx_status report_eval(report *r, int64_t step, double loss, int64_t correct, int64_t count);
/* A line of text for people; nothing with --json. */
void report_note(report *r, const char *fmt, ...) FX_PRINTF(2, 3);
/* All steps up to `step` are done on the device: the time since the last call counts for the speed, unless `skip`
 * (a driver compiled, tests ran, a checkpoint was saved). suspended: the process was stopped meanwhile. */
void report_pace(report *r, int64_t step, bool skip, bool suspended);
/* Median of the seconds a step took lately; 0 when too few are timed to tell. */
double report_step_seconds(const report *r);
/* Metrics written so far are in the file. */
fx_status report_flush(report *r);
/* Writes the plot, closes the CSV file. */
fx_status report_close(report *r);

#endif
