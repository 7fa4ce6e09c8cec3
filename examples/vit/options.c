/* options.c - strict parsing: what is not understood as a whole is refused before anything starts. */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void help(const char *usage, const option_row *rows, int n) {
    puts(usage);
    for (int i = 0; i < n; i++) {
        char left[64];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].kind == OPTION_FLAG ? "" : " ",
                 rows[i].kind == OPTION_FLAG ? "" : rows[i].value);
        printf("  %-26s %s\n", left, rows[i].help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static int refuse(const option_row *r, const char *text, const char *expected) {
    fprintf(stderr, "--%s: expected %s; got \"%s\"\n", r->name, expected, text);
    return 2;
}

/* Decimal digits with an optional sign, nothing else. */
static bool parse_int(const char *text, int64_t *out) {
    const char *p = text + (*text == '-' || *text == '+');
    if (!*p || strspn(p, "0123456789") != strlen(p))
        return false;
    errno = 0;
    *out = strtoll(text, NULL, 10);
    return errno == 0;
}

static bool parse_real(const char *text, double *out) {
    char *end;
    if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
        return false;
    errno = 0;
    *out = strtod(text, &end);
    return !*end && end != text && errno != ERANGE;
}

static int assign(const option_row *r, const char *text) {
    char range[96];
    int64_t i;
    double d;
    switch (r->kind) {
    case OPTION_TEXT:
        if (!*text)
            return refuse(r, text, "a value that is not empty");
        *(const char **)r->target = text;
        return 0;
    case OPTION_INT:
        snprintf(range, sizeof range, "a whole number from %.0f to %.0f", r->min, r->max);
        if (!parse_int(text, &i) || (double)i < r->min || (double)i > r->max)
            return refuse(r, text, range);
        *(int64_t *)r->target = i;
        return 0;
    case OPTION_SEED:
        errno = 0;
        if (!*text || strspn(text, "0123456789") != strlen(text) ||
            (*(uint64_t *)r->target = strtoull(text, NULL, 10), errno == ERANGE))
            return refuse(r, text, "a whole number from 0 to 18446744073709551615");
        return 0;
    case OPTION_REAL:
        snprintf(range, sizeof range, "a decimal number from %g to %g", r->min, r->max);
        if (!parse_real(text, &d) || !(d >= r->min && d <= r->max))
            return refuse(r, text, range);
        *(double *)r->target = d;
        return 0;
    default:
        *(bool *)r->target = true;
        return 0;
    }
}

int options_parse(const char *usage, const option_row *rows, int n, int argc, char **argv) {
    return options_parse_with(usage, rows, n, argc, argv, NULL, NULL);
}

int options_parse_with(const char *usage, const option_row *rows, int n, int argc, char **argv, char **rest,
                       int *n_rest) {
    bool seen[128] = {false}, files = false;
    for (int a = 1; a < argc; a++) {
        const char *name = argv[a], *value;
        if (rest && (files || name[0] != '-' || !name[1])) {
            rest[(*n_rest)++] = argv[a];
            continue;
        }
        if (rest && !strcmp(name, "--")) {
            files = true;
            continue;
        }
        if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
            help(usage, rows, n);
            return 1;
        }
        if (strncmp(name, "--", 2) || !name[2]) {
            fprintf(stderr, "unexpected argument \"%s\"; --help lists the options\n", name);
            return 2;
        }
        size_t len = strcspn(name += 2, "=");
        int i = 0;
        while (i < n && (strlen(rows[i].name) != len || strncmp(rows[i].name, name, len)))
            i++;
        if (i == n) {
            fprintf(stderr, "unknown option --%.*s; --help lists the options\n", (int)len, name);
            return 2;
        }
        if (i < 128 && seen[i]) {
            fprintf(stderr, "--%s is given twice\n", rows[i].name);
            return 2;
        }
        if (i < 128)
            seen[i] = true;
        value = name[len] == '=' ? name + len + 1 : NULL;
        if (rows[i].kind == OPTION_FLAG) {
            if (value)
                return refuse(&rows[i], value, "no value");
        } else if (!value && ++a == argc) {
            fprintf(stderr, "--%s: expected a value; got the end of the line\n", rows[i].name);
            return 2;
        } else if (!value) {
            value = argv[a];
        }
        int bad = assign(&rows[i], value ? value : "");
        if (bad)
            return bad;
    }
    return 0;
}
