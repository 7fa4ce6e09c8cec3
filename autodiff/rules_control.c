/* rules_control.c - control flow and windows in derivatives: refused by name.
 *
 * Values that do not depend on the differentiated arguments pass. */
#include "autodiff/rules.h"
#define S(x) void fx_jvp_##x(fx_jvp_rule *r) { fx_rule_error(r->g, r->n, FX_UNSUPPORTED, "derivative not available"); } \
 void fx_transpose_##x(fx_transpose_rule *r) { fx_rule_error(r->g, r->n, FX_UNSUPPORTED, "derivative not available"); }
S(cond) S(while) S(scan) S(reduce_fn) S(reduce_window) S(select_and_scatter)
fx_status fx_ad_unzip(const fx_graph *f, const bool *unknown, fx_graph **out) { (void)unknown; *out = fx_graph_ref((fx_graph *)f); return FX_OK; }
