/* text.c - a string that grows by doubling. */
#include "core/kernel/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fx_text_put(fx_text *t, const char *s, size_t n) {
    if (t->failed)
        return;
    if (t->n + n + 1 > t->cap) {
        size_t cap = t->cap ? t->cap : 256;
        while (cap < t->n + n + 1)
            cap *= 2;
        char *p = realloc(t->s, cap);
        if (!p) {
            t->failed = true;
            return;
        }
        t->s = p;
        t->cap = cap;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void fx_text_str(fx_text *t, const char *s) {
    fx_text_put(t, s, strlen(s));
}

void fx_text_fmt(fx_text *t, const char *fmt, ...) {
    char buf[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    if (n < (int)sizeof buf) {
        fx_text_put(t, buf, n > 0 ? (size_t)n : 0);
        return;
    }
    char *big = malloc((size_t)n + 1);
    if (!big) {
        t->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(big, (size_t)n + 1, fmt, ap);
    va_end(ap);
    fx_text_put(t, big, (size_t)n);
    free(big);
}

void fx_text_clear(fx_text *t) {
    t->n = 0;
}

void fx_text_free(fx_text *t) {
    free(t->s);
    memset(t, 0, sizeof *t);
}
