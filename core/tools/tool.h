/* tool.h - what the commands of the `fornax` program share. */
#ifndef FX_TOOLS_TOOL_H
#define FX_TOOLS_TOOL_H

#include <stdio.h>

#include "fornax/fornax.h"

/* Options that every command takes. */
typedef struct tool_options {
    bool json;
    const char *device;   /* URI, NULL: the default device */
    const char *action;   /* first word that is no option, NULL: none */
    double seconds;       /* bench: how long each measurement takes at least */
    int64_t m, n, k, batch; /* bench matmul; 0: the standard list */
} tool_options;

typedef struct tool_command {
    const char *name, *summary, *help;
    int (*run)(const tool_options *o); /* exit status */
} tool_command;

extern const tool_command tool_devices, tool_env, tool_selftest, tool_bench, tool_cache;

/* Prints the thread's error text; returns 1, the exit status. */
int tool_fail(void);
/* Opens a context and finds o->device. */
fx_status tool_open(const tool_options *o, fx_context **cx, fx_device **d);
/* A string as JSON, quotes included. */
void tool_json_text(FILE *f, const char *s);
double tool_now(void); /* seconds, monotonic */

#endif
