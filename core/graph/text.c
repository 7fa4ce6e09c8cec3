/* text.c - words, numbers and elements of constants out of a text. */
#include "core/graph/text.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"
#include "core/graph/build.h"

bool fx_text_fail(fx_text *s, const char *expected) {
    if (s->status != FX_OK)
        return false;
    int line = 1, column = 1;
    for (const char *q = s->start; q < s->p; q++) {
        column = *q == '\n' ? 1 : column + 1;
        line += *q == '\n';
    }
    char got[24] = "the end";
    size_t n = (size_t)(s->end - s->p) < 16 ? (size_t)(s->end - s->p) : 16;
    if (n) {
        memcpy(got, s->p, n);
        got[n] = '\0';
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)got[i] < 32 || (unsigned char)got[i] > 126)
                got[i] = ' ';
    }
    s->status =
        fx_fail(FX_BAD_DATA, "graph text, line %d, column %d; expected %s; got \"%s\"", line, column, expected, got);
    return false;
}

bool fx_text_no_memory(fx_text *s) {
    s->status = fx_fail(FX_OUT_OF_MEMORY, "graph text: host memory ran out");
    return false;
}

void fx_text_skip(fx_text *s) {
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r' || *s->p == '#'))
        if (*s->p == '#')
            while (s->p < s->end && *s->p != '\n')
                s->p++;
        else
            s->p++;
}

bool fx_text_peek(fx_text *s, char c) {
    fx_text_skip(s);
    return s->p < s->end && *s->p == c;
}

bool fx_text_take(fx_text *s, char c) {
    if (!fx_text_peek(s, c))
        return false;
    s->p++;
    return true;
}

bool fx_text_want(fx_text *s, char c) {
    return fx_text_take(s, c) || fx_text_fail(s, (char[]){'\'', c, '\'', '\0'});
}

static bool word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

size_t fx_text_word(fx_text *s, const char **w) {
    fx_text_skip(s);
    *w = s->p;
    while (s->p < s->end && word_char(*s->p))
        s->p++;
    return (size_t)(s->p - *w);
}

/* A word of at most FX_TEXT_WORD - 1 characters. */
bool fx_text_want_word(fx_text *s, char out[FX_TEXT_WORD], const char *expected) {
    const char *w;
    size_t n = fx_text_word(s, &w);
    if (!n || n >= FX_TEXT_WORD) {
        s->p = w;
        return fx_text_fail(s, expected);
    }
    memcpy(out, w, n);
    out[n] = '\0';
    return true;
}

bool fx_text_take_word(fx_text *s, const char *w) {
    const char *at;
    size_t n = fx_text_word(s, &at);
    if (n == strlen(w) && !memcmp(at, w, n))
        return true;
    s->p = at;
    return false;
}

bool fx_text_want_int(fx_text *s, int64_t *v) {
    char buf[32], *end;
    fx_text_skip(s);
    size_t n = 0;
    while (s->p + n < s->end && n < sizeof buf - 1 && (word_char(s->p[n]) || (!n && s->p[n] == '-')))
        n++;
    memcpy(buf, s->p, n);
    buf[n] = '\0';
    errno = 0;
    *v = strtoll(buf, &end, 10);
    if (!n || *end || errno || buf[n - 1] == '-')
        return fx_text_fail(s, "an integer of 64 bits");
    s->p += n;
    return true;
}

bool fx_text_want_element(fx_text *s, fx_dtype d, void *out) {
    char buf[64], *end = NULL;
    fx_text_skip(s);
    size_t n = 0;
    while (s->p + n < s->end && n < sizeof buf - 1 && (word_char(s->p[n]) || strchr("+-.", s->p[n])) && s->p[n])
        n++;
    memcpy(buf, s->p, n);
    buf[n] = '\0';
    bool ok = n > 0;
    errno = 0;
    if (d == FX_BOOL) {
        ok = !strcmp(buf, "true") || !strcmp(buf, "false");
        *(unsigned char *)out = buf[0] == 't';
    } else if (fx_dtype_is_float(d) && buf[0] == '0' && (buf[1] == 'x' || buf[1] == 'X')) { /* the bits */
        uint64_t bits = strtoull(buf, &end, 16);
        size_t size = fx_dtype_size(d);
        ok = !*end && !errno && (size == 8 || bits >> 8 * size == 0);
        fx_element_store_bits(d, out, bits);
    } else if (fx_dtype_is_float(d)) {
        for (char *c = buf; *c; c++)
            if (*c == '.')
                *c = localeconv()->decimal_point[0];
        fx_element_store(d, out, strtod(buf, &end));
        ok = ok && !*end;
    } else if (fx_dtype_is_signed(d)) {
        int64_t v = strtoll(buf, &end, 10), high = v >> (8 * fx_dtype_size(d) - 1); /* all bits from the sign on */
        ok = ok && !*end && !errno && (high == 0 || high == -1);
        fx_element_store_bits(d, out, (uint64_t)v);
    } else {
        uint64_t v = strtoull(buf, &end, 10);
        ok = ok && buf[0] != '-' && !*end && !errno && (d == FX_U64 || v >> 8 * fx_dtype_size(d) == 0);
        fx_element_store_bits(d, out, v);
    }
    if (!ok)
        return fx_text_fail(s, "an element of the constant's type");
    s->p += n;
    return true;
}

int fx_text_line(fx_text *s) {
    for (; s->counted < s->p; s->counted++)
        s->line += *s->counted == '\n';
    return s->line;
}
