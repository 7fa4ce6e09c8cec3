/* rules.h - rules.def as code: patterns parsed into a table, matched against nodes, replaced.
 *
 * A rule set is plain data of one simplification; nothing is global. */
#ifndef FX_GRAPH_RULES_H
#define FX_GRAPH_RULES_H

#include "core/graph/build.h"

typedef enum fx_rule_id {
#define FX_RULE(name, ...) FX_RULE_##name,
#define FX_RULE_CODE(name, ...) FX_RULE_##name,
#include "core/graph/rules.def"
#undef FX_RULE
#undef FX_RULE_CODE
    FX_RULE_COUNT
} fx_rule_id;

const char *fx_rule_name(fx_rule_id id);

typedef struct fx_rules fx_rules;
fx_status fx_rules_create(fx_rules **out); /* FX_INTERNAL when a row of rules.def is ill-formed */
void fx_rules_destroy(fx_rules *r);

/* Rewrites n, a node of the open graph g, until no rule fires; n itself when none does. Counts in fired[rule] unless
 * NULL. */
fx_node *fx_rules_apply(const fx_rules *r, fx_graph *g, fx_node *n, int *fired);

/* What matched: the root, the letters a..z and A..Z. */
typedef struct fx_match {
    fx_graph *g;
    fx_node *root;
    fx_node *var[52];
} fx_match;
#define FX_VAR_X ('x' - 'a')
#define FX_VAR_Y ('y' - 'a')
#define FX_VAR_C (26 + 'C' - 'A')

/* fx_graph_simplify that counts: fired has FX_RULE_COUNT entries, or is NULL. */
fx_status fx_graph_simplify_counted(const fx_graph *g, fx_graph **out, int *fired);

/* The value of a node whose operands are all constants, as a constant, if it is small; else NULL. */
fx_node *fx_fold_constant(fx_graph *g, fx_node *n);

/* What a node with regions needs: its results that are used. Drops the other results of cond and scan, and operands
 * that no region reads of cond, while and scan. place[old result] = new result. Regions are borrowed. */
fx_node *fx_trim_control(fx_graph *g, const fx_node *n, fx_node *const *in, fx_graph *const *region, const bool *used,
                         int *place);

#endif
