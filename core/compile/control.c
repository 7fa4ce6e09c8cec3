/* control.c - cond, while and scan: steps that run programs of their own. */
#include <string.h>

#include "core/base/error.h"
#include "core/compile/emit.h"

fx_status fx_emit_control(fx_builder *b, const fx_group *g) {
    fx_node *n = g->inner[0];
    fx_program *p = b->p;
    int n_arg = n->n_in + n->n_result;
    fx_step s = {.kind = n->op == FX_OP_cond    ? FX_STEP_COND
                         : n->op == FX_OP_while ? FX_STEP_WHILE
                                                : FX_STEP_SCAN,
                 .kernel = -1};
    s.name = fx_op_get(n->op)->name;
    s.schedule = "control";
    s.n_arg = n_arg;
    s.args = FX_ARENA_ARRAY(&p->arena, fx_step_arg, n_arg + 1);
    s.body = FX_ARENA_ARRAY(&p->arena, fx_program *, n->n_region);
    if (!s.args || !s.body)
        return fx_fail_oom(0);
    for (int j = 0; j < n->n_in; j++) {
        s.args[j] = (fx_step_arg){.access = FX_READ, .in_place_of = -1};
        FX_TRY(fx_builder_value(b, fx_value_of(n->in[j]), &s.args[j].buffer));
    }
    for (int j = 0; j < n->n_result; j++) {
        s.args[n->n_in + j] = (fx_step_arg){.access = FX_WRITE, .in_place_of = -1};
        FX_TRY(fx_builder_value(b, (fx_value){n, j}, &s.args[n->n_in + j].buffer));
    }
    s.n_results = n->n_result;
    if (n->op == FX_OP_while) {
        s.n_carry = (int)FX_GET_INT(n, n_carry);
        s.n_consts = n->n_in - s.n_carry;
    } else if (n->op == FX_OP_scan) {
        s.n_carry = (int)FX_GET_INT(n, n_carry);
        s.n_consts = (int)FX_GET_INT(n, n_consts);
        s.n_xs = n->n_in - s.n_carry - s.n_consts;
        s.length = FX_GET_INT(n, length);
        s.reverse = FX_GET_INT(n, reverse) != 0;
    }
    fx_lower_options opt = *b->opt;
    opt.body = true;
    fx_status st = FX_OK;
    for (int j = 0; j < n->n_region && st == FX_OK; j++) {
        st = fx_program_create(n->region[j], b->caps, &opt, &s.body[j]);
        s.n_body += st == FX_OK;
    }
    fx_step *out = st == FX_OK ? fx_builder_step(b) : NULL;
    if (!out) {
        for (int j = 0; j < s.n_body; j++)
            fx_program_destroy(s.body[j]);
        return st != FX_OK ? st : fx_fail_oom(0);
    }
    *out = s;
    return FX_OK;
}
