/* env.c - reading the variables of env.def. Numbers are parsed in the C locale, whatever the program's. */
#include "core/base/env.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

static const fx_env_info table[FX_ENV_COUNT] = {
#define FX_ENV(id, name, kind, standard, doc) [FX_ENV_##id] = {name, standard, doc, FX_ENV_KIND_##kind},
#include "core/base/env.def"
#undef FX_ENV
};

const fx_env_info *fx_env_get(fx_env id) { return &table[id]; }

const char *fx_env_text(fx_env id) {
    const char *v = getenv(table[id].name);
    return v && *v ? v : NULL;
}

bool fx_parse_number(const char *text, double *out) {
    static const char digits[] = "0123456789";
    const char *p = text + (*text == '-' || *text == '+');
    size_t whole = strspn(p, digits), part = p[whole] == '.' ? strspn(p + whole + 1, digits) : 0;
    if (whole + part == 0)
        return false;
    const char *end = p + whole + (p[whole] == '.' ? 1 + part : 0);
    if (*end == 'e' || *end == 'E') {
        size_t sign = end[1] == '-' || end[1] == '+', n = strspn(end + 1 + sign, digits);
        if (!n)
            return false;
        end += 1 + sign + n;
    }
    if (*end)
        return false;
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    *out = strtod_l(text, NULL, c);
    freelocale(c);
    return true;
}

bool fx_env_flag(fx_env id) {
    const char *v = fx_env_text(id);
    return v && !strcmp(v, "1");
}

double fx_env_number(fx_env id, double otherwise) {
    const char *v = fx_env_text(id);
    double x;
    return v && fx_parse_number(v, &x) ? x : otherwise;
}

bool fx_env_has(fx_env id, const char *word) {
    const char *v = fx_env_text(id);
    size_t n = strlen(word);
    while (v && *v) {
        size_t len = strcspn(v, ",");
        if (len == n && !strncmp(v, word, n))
            return true;
        v += len + (v[len] == ',');
    }
    return false;
}

uint64_t fx_env_injection(const char *kind) {
    size_t n = strlen(kind);
    for (const char *v = fx_env_text(FX_ENV_inject); v; v = strchr(v, ',')) {
        v += *v == ',';
        if (!strncmp(v, kind, n) && v[n] == ':')
            return strtoull(v + n + 1, NULL, 10);
    }
    return 0;
}

fx_status fx_env_check(void) {
    for (int id = 0; id < FX_ENV_COUNT; id++) {
        const char *v = fx_env_text((fx_env)id);
        double x;
        if (v && table[id].kind == FX_ENV_KIND_FLAG && strcmp(v, "0") && strcmp(v, "1"))
            return fx_fail(FX_INVALID_ARGUMENT, "environment variable %s; expected 0 or 1; got \"%s\"", table[id].name, v);
        if (v && table[id].kind == FX_ENV_KIND_NUMBER && !fx_parse_number(v, &x))
            return fx_fail(FX_INVALID_ARGUMENT, "environment variable %s; expected a decimal number such as %s; got \"%s\"",
                           table[id].name, table[id].standard, v);
    }
    double f = fx_env_number(FX_ENV_mem_fraction, 0.8);
    if (!(f > 0 && f <= 1))
        return fx_fail(FX_INVALID_ARGUMENT, "environment variable %s; expected above 0 to 1; got %g",
                       table[FX_ENV_mem_fraction].name, f);
    return FX_OK;
}
