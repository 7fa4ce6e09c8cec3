/* dump.h - what FORNAX_DUMP asks for: a comma-separated list of graph, groups, kernels, stats; to stderr. */
#ifndef FX_COMPILE_DUMP_H
#define FX_COMPILE_DUMP_H

#include <stdbool.h>

bool fx_dump_has(const char *what);
void fx_dump_text(const char *what, const char *name, const char *text);

#endif
