/* env.h - the environment variables of env.def, read when asked for. */
#ifndef FX_BASE_ENV_H
#define FX_BASE_ENV_H

#include "fornax/base.h"

typedef enum fx_env {
#define FX_ENV(id, name, kind, standard, doc) FX_ENV_##id,
#include "core/base/env.def"
#undef FX_ENV
    FX_ENV_COUNT
} fx_env;

typedef enum fx_env_kind { FX_ENV_KIND_TEXT, FX_ENV_KIND_FLAG, FX_ENV_KIND_NUMBER } fx_env_kind;

typedef struct fx_env_info {
    const char *name, *standard, *doc;
    fx_env_kind kind;
} fx_env_info;

const fx_env_info *fx_env_get(fx_env id);
const char *fx_env_text(fx_env id);   /* NULL when unset or empty */
bool fx_env_flag(fx_env id);          /* false when unset or malformed (fx_env_check reports that) */
double fx_env_number(fx_env id, double otherwise);
/* Does the comma-separated list hold the word? */
bool fx_env_has(fx_env id, const char *word);
/* N of `kind`:N in FORNAX_INJECT, 0 without. */
uint64_t fx_env_injection(const char *kind);
/* Reports the first malformed variable. */
fx_status fx_env_check(void);
/* Parses a decimal number that takes the whole text, whatever the locale. */
bool fx_parse_number(const char *text, double *out);

#endif
