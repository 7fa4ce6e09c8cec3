/* dump.c - writes what FORNAX_DUMP asks for. */
#include "core/compile/dump.h"

#include <stdio.h>

#include "core/base/env.h"

bool fx_dump_has(const char *what) {
    return fx_env_has(FX_ENV_dump, what);
}

void fx_dump_text(const char *what, const char *name, const char *text) {
    fprintf(stderr, "-- %s %s\n%s\n", what, name ? name : "", text ? text : "");
}
