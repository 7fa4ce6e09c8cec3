/* error.c - the thread-local error text behind fx_last_error. Texts longer than the buffer are cut. */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 4096 };
static _Thread_local char text[TEXT_SIZE];

const char *fx_last_error(void) { return text; }

void fx_error_clear(void) { text[0] = '\0'; }

fx_status fx_fail(fx_status status, const char *fmt, ...) {
    char buf[TEXT_SIZE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap); /* into a copy: an argument may be fx_last_error() itself */
    va_end(ap);
    memcpy(text, buf, sizeof text);
    return status;
}

fx_status fx_fail_context(fx_status status, const char *fmt, ...) {
    char buf[2 * TEXT_SIZE];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, TEXT_SIZE, fmt, ap);
    va_end(ap);
    if (n < 0)
        return status;
    size_t used = n < TEXT_SIZE ? (size_t)n : TEXT_SIZE - 1;
    snprintf(buf + used, sizeof buf - used, ": %s", text);
    memcpy(text, buf, TEXT_SIZE - 1);
    return status;
}

fx_status fx_fail_oom(size_t bytes) {
    return fx_fail(FX_OUT_OF_MEMORY, "host memory: %zu bytes asked, none given; free memory or use smaller arrays",
                   bytes);
}

const char *fx_status_name(fx_status status) {
    static const char *const names[] = {
        "FX_OK",       "FX_INVALID_ARGUMENT", "FX_OUT_OF_MEMORY", "FX_NOT_FOUND",   "FX_UNSUPPORTED", "FX_IO_ERROR",
        "FX_BAD_DATA", "FX_COMPILE_ERROR",    "FX_DEVICE_LOST",   "FX_CANCELLED",   "FX_INTERNAL",
    };
    return (unsigned)status < sizeof names / sizeof *names ? names[status] : "unknown status";
}

#define STR_(x) #x
#define STR(x) STR_(x)
const char *fx_version(void) { return STR(FX_VERSION_MAJOR) "." STR(FX_VERSION_MINOR) "." STR(FX_VERSION_PATCH); }
#undef STR
#undef STR_
