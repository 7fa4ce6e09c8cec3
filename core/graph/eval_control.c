/* eval_control.c - call, cond, while, scan: regions run on the operands' buffers. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"

fx_status fx_eval_call(const fx_eval_args *c) {
    return fx_eval_region(c, 0, c->in, c->out);
}

fx_status fx_eval_cond(const fx_eval_args *c) {
    int64_t branch = fx_eval_index(c->node->in[0]->spec.dtype, c->in[0], 0), top = c->node->n_region - 1;
    return fx_eval_region(c, (int)(branch < 0 ? 0 : branch > top ? top : branch), c->in + 1, c->out);
}

/* A set of buffers for carried values, one block of memory; NULL when out of memory. */
static void **carry_new(const fx_node *n, int first, int count) {
    size_t bytes = sizeof(void *) * ((size_t)count + 1) + 16, at;
    for (int i = 0; i < count; i++)
        if (__builtin_add_overflow(bytes, fx_eval_bytes(&n->in[first + i]->spec) + 16, &bytes))
            bytes = SIZE_MAX;
    void **set = fx_eval_alloc((int64_t)(bytes > INT64_MAX ? INT64_MAX : bytes), 1);
    at = sizeof(void *) * ((size_t)count + 1);
    for (int i = 0; set && i < count; i++) {
        at = (at + 15) & ~(size_t)15;
        set[i] = (char *)set + at;
        at += fx_eval_bytes(&n->in[first + i]->spec);
    }
    return set;
}

static void move(const fx_spec *s, void *to, const void *from) {
    if (fx_eval_bytes(s))
        memcpy(to, from, fx_eval_bytes(s));
}

fx_status fx_eval_while(const fx_eval_args *c) {
    const fx_node *n = c->node;
    int carry = (int)FX_GET_INT(n, n_carry);
    void **now = carry_new(n, 0, carry), **next = carry_new(n, 0, carry);
    const void **args = fx_eval_alloc(n->n_in, sizeof *args);
    fx_status st = now && next && args ? FX_OK : FX_OUT_OF_MEMORY;
    uint8_t more = 1;
    void *answer = &more;
    for (int i = 0; st == FX_OK && i < n->n_in; i++)
        args[i] = c->in[i];
    while (st == FX_OK) {
        st = fx_eval_region(c, 0, args, &answer);
        if (st != FX_OK || !more)
            break;
        st = fx_eval_region(c, 1, args, next);
        void **old = now;
        now = next;
        next = old;
        for (int i = 0; i < carry; i++)
            args[i] = now[i];
    }
    for (int i = 0; st == FX_OK && i < carry; i++)
        move(&n->in[i]->spec, c->out[i], args[i]);
    free(now);
    free(next);
    free(args);
    return st;
}

fx_status fx_eval_scan(const fx_eval_args *c) {
    const fx_node *n = c->node;
    int consts = (int)FX_GET_INT(n, n_consts), carry = (int)FX_GET_INT(n, n_carry), results = n->n_result;
    int64_t length = FX_GET_INT(n, length);
    bool reverse = FX_GET_INT(n, reverse);
    void **now = carry_new(n, consts, carry), **next = carry_new(n, consts, carry);
    const void **args = fx_eval_alloc(n->n_in, sizeof *args);
    void **out = fx_eval_alloc(results, sizeof *out);
    fx_status st = now && next && args && out ? FX_OK : FX_OUT_OF_MEMORY;
    for (int i = 0; st == FX_OK && i < consts + carry; i++)
        args[i] = c->in[i];
    for (int64_t t = 0; st == FX_OK && t < length; t++) {
        size_t at = (size_t)(reverse ? length - 1 - t : t);
        for (int i = consts + carry; i < n->n_in; i++)
            args[i] = (const char *)c->in[i] + at * (fx_eval_bytes(&n->in[i]->spec) / (size_t)length);
        for (int i = 0; i < results; i++)
            out[i] = i < carry ? next[i] : (char *)c->out[i] + at * (fx_eval_bytes(&n->results[i]) / (size_t)length);
        st = fx_eval_region(c, 0, args, out);
        void **old = now;
        now = next;
        next = old;
        for (int i = 0; i < carry; i++)
            args[consts + i] = now[i];
    }
    for (int i = 0; st == FX_OK && i < carry; i++)
        move(&n->in[consts + i]->spec, c->out[i], args[consts + i]);
    free(now);
    free(next);
    free(args);
    free(out);
    return st;
}
