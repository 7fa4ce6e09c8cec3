/* rules_code.h - what the code behind rules.def shares: the names that its rows use, and looking at lists. */
#ifndef FX_GRAPH_RULES_CODE_H
#define FX_GRAPH_RULES_CODE_H

#include "core/graph/rules.h"

bool fx_is_any(const fx_match *m);
bool fx_is_bool(const fx_match *m);
bool fx_is_not_float(const fx_match *m);
bool fx_is_not_unsigned(const fx_match *m);
bool fx_is_not_minus_zero(const fx_match *m);
#define FX_RULE(...)
#define FX_RULE_CODE(name, pattern, builder) fx_node *fx_make_##builder(const fx_match *m);
#include "core/graph/rules.def"
#undef FX_RULE
#undef FX_RULE_CODE

static inline fx_node *x_of(const fx_match *m) {
    return m->var[FX_VAR_X];
}

static inline bool contains(const int64_t *v, int n, int64_t x) {
    for (int i = 0; i < n; i++)
        if (v[i] == x)
            return true;
    return false;
}

static inline bool ascending(const int64_t *v, int n) {
    for (int i = 1; i < n; i++)
        if (v[i - 1] >= v[i])
            return false;
    return true;
}

static inline int64_t imin(int64_t a, int64_t b) {
    return a < b ? a : b;
}

#endif
