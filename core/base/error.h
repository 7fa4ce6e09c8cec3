/* error.h - how the library reports an error: a status and a thread-local sentence.
 *
 * Text has the form "what; expected ...; got ...; remedy". fx_fail records the text and returns
 * the status, so that `return fx_fail(FX_INVALID_ARGUMENT, "...")` is one line. The first error
 * is kept by whoever needs it (a trace, an executable); this slot holds the latest. */
#ifndef FX_BASE_ERROR_H
#define FX_BASE_ERROR_H

#include "fornax/base.h"

fx_status fx_fail(fx_status status, const char *fmt, ...) FX_PRINTF(2, 3);
/* Prefixes the current text: fx_fail_context(st, "while loading %s", path) -> "while loading x: <text>". */
fx_status fx_fail_context(fx_status status, const char *fmt, ...) FX_PRINTF(2, 3);
fx_status fx_fail_oom(size_t bytes); /* host memory */
void fx_error_clear(void);

#endif
