/* backend_error.c - the error functions that backends may call; see fornax/backend.h. */
#include <inttypes.h>
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

fx_status fx_backend_range_check(const fx_mem *mem, uint64_t offset, uint64_t bytes, const char *what) {
    if (mem && mem->handle && offset <= mem->bytes && bytes <= mem->bytes - offset)
        return FX_OK;
    return fx_fail(FX_INVALID_ARGUMENT,
                   "%s: bytes %" PRIu64 " to %" PRIu64 " plus %" PRIu64
                   " lie outside the allocation; expected at most %" PRIu64,
                   what, offset, offset, bytes, mem ? mem->bytes : 0);
}
