/* text.h - a string that grows: what printers write into.
 *
 * Zero-initialised is empty. After a failed allocation `failed` stays set and later writes do nothing. */
#ifndef FX_KERNEL_TEXT_H
#define FX_KERNEL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "fornax/base.h"

typedef struct fx_text {
    char *s; /* NUL-terminated when n > 0 or after fx_text_take */
    size_t n, cap;
    bool failed;
} fx_text;

void fx_text_put(fx_text *t, const char *s, size_t n);
void fx_text_str(fx_text *t, const char *s);
void fx_text_fmt(fx_text *t, const char *fmt, ...) FX_PRINTF(2, 3);
void fx_text_clear(fx_text *t); /* empty, memory kept */
void fx_text_free(fx_text *t);

#endif
