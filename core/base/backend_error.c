/* backend_error.c - the error function that backends may call; see fornax/backend.h. */
#include <stdarg.h>
#include <stdio.h>

#include "core/base/error.h"
#include "fornax/backend.h"

fx_status fx_backend_fail(fx_status status, const char *fmt, ...) {
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return fx_fail(status, "%s", text);
}
