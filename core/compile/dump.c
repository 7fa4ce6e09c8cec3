/* dump.c - the one place that reads FORNAX_DUMP. */
#include "core/compile/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fx_dump_has(const char *what) {
    const char *list = getenv("FORNAX_DUMP");
    size_t n = strlen(what);
    for (const char *p = list; p && *p;) {
        size_t m = strcspn(p, ",");
        if ((m == n && !strncmp(p, what, n)) || (m == 3 && !strncmp(p, "all", 3)))
            return true;
        p += m + (p[m] == ',');
    }
    return false;
}

void fx_dump_text(const char *what, const char *name, const char *text) {
    fprintf(stderr, "-- %s %s\n%s\n", what, name ? name : "", text ? text : "");
}
