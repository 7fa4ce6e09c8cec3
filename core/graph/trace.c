/* trace.c - beginning and ending a trace, functions as objects, constants, and what the other
 * trace_*.c files share: where an op is built, axes, broadcasting. */
#include "core/graph/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/error.h"

/* The trace that a call with nothing but NULL operands belongs to. */
static _Thread_local fx_graph *current;

void fx_trace_here(const char *file, int line) { fx_location_set(file, line); }

fx_status fx_trace_begin(fx_trace **out) {
    if (!out)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_trace_begin: out; expected an address for the trace; got NULL");
    *out = NULL;
    fx_graph *g = fx_graph_new(NULL);
    if (!g)
        return fx_fail_oom(sizeof *g);
    current = g;
    *out = fx_graph_trace(g);
    return FX_OK;
}

static void left(const fx_graph *g) {
    if (current == g)
        current = NULL;
}

fx_val fx_input(fx_trace *t, fx_spec spec) {
    if (!t)
        return NULL;
    fx_graph *g = fx_trace_graph(t);
    if (g->finished)
        return NULL;
    return fx_graph_param(g, &spec);
}

fx_status fx_trace_end(fx_trace *t, int n_out, const fx_val *out, fx_func **func) {
    if (func)
        *func = NULL;
    if (!t)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_trace_end: the trace is NULL; call fx_trace_begin first");
    fx_graph *g = fx_trace_graph(t);
    left(g);
    if (!func || n_out < 0 || (n_out && !out)) {
        fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_trace_end; expected a list of results and an address for the function; got %s",
                       func ? "no list" : "no address");
        n_out = 0;
    }
    for (int i = 0; i < n_out && g->status == FX_OK; i++) {
        if (!out[i])
            fx_graph_error(g, FX_INVALID_ARGUMENT, "result %d was not set; a traced function writes all of its results", i);
        else if (out[i]->graph != g)
            fx_graph_error(g, FX_INVALID_ARGUMENT, "result %d belongs to another trace", i);
    }
    fx_status st = fx_graph_finish(g, n_out, out, true);
    if (st != FX_OK)
        fx_graph_unref(g);
    else
        *func = fx_graph_func(g);
    return st;
}

void fx_trace_abandon(fx_trace *t) {
    if (!t)
        return;
    left(fx_trace_graph(t));
    fx_graph_unref(fx_trace_graph(t));
}

/* Runs fn on fresh parameters of g; results into a malloc'd list, NULL when that fails. */
static fx_val *run(fx_graph *g, fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out) {
    fx_val *v = calloc((size_t)(n_in + n_out) + 1, sizeof *v);
    if (!v) {
        fx_graph_error(g, FX_OUT_OF_MEMORY, "no host memory for %d values", n_in + n_out);
        return NULL;
    }
    const char *file;
    int line;
    for (int i = 0; i < n_in; i++)
        v[n_out + i] = fx_graph_param(g, &in[i]);
    fx_location_get(&file, &line);
    fn(fx_graph_trace(g), v + n_out, v, user);
    fx_location_set(file, line); /* what is wrong with its results concerns the call that took fn */
    return v;
}

fx_status fx_trace_func(fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out, fx_func **out) {
    if (out)
        *out = NULL;
    if (!fn || !out || n_in < 0 || n_out < 0 || (n_in && !in))
        return fx_fail(FX_INVALID_ARGUMENT,
                       "fx_trace_func; expected a function, counts of 0 or more, the inputs' types and an address for the result; "
                       "got %s, %d and %d, %s, %s",
                       fn ? "a function" : "no function", n_in, n_out, in ? "types" : "no types", out ? "an address" : "no address");
    fx_trace *t;
    fx_graph *outer = current;
    FX_TRY(fx_trace_begin(&t));
    fx_val *v = run(fx_trace_graph(t), fn, user, n_in, in, n_out);
    fx_status st = fx_trace_end(t, v ? n_out : 0, v, out);
    free(v);
    current = outer;
    return st;
}

fx_graph *fx_trace_region(fx_graph *outer, fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out) {
    if (outer->status != FX_OK)
        return NULL;
    if (!fn) {
        fx_graph_error(outer, FX_INVALID_ARGUMENT, "a region; expected a function that traces it; got NULL");
        return NULL;
    }
    fx_graph *g = fx_graph_new(outer), *before = current;
    if (!g) {
        fx_graph_error(outer, FX_OUT_OF_MEMORY, "no host memory for a region");
        return NULL;
    }
    current = g;
    fx_val *v = run(g, fn, user, n_in, in, n_out);
    for (int i = 0; v && i < n_out && g->status == FX_OK; i++) {
        if (!v[i]) {
            fx_graph_error(g, FX_INVALID_ARGUMENT, "result %d of a region was not set", i);
        } else if (v[i]->graph != g) { /* a value of an enclosing trace, passed through: bring it in */
            fx_attr shape = FX_LIST(shape, v[i]->spec.rank, v[i]->spec.dims);
            int64_t dims[FX_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
            fx_attr attrs[] = {shape, FX_LIST(dims, v[i]->spec.rank, dims)};
            v[i] = fx_build(g, FX_OP_broadcast_in_dim, 1, &v[i], 2, attrs, 0, NULL);
        }
    }
    current = before;
    fx_status st = fx_graph_finish(g, v ? n_out : 0, v, true);
    free(v);
    if (st == FX_OK)
        return g;
    fx_graph_unref(g);
    const char *file;
    int line;
    fx_location_get(&file, &line);
    fx_location_set(NULL, 0); /* the text names its place already */
    fx_graph_error(outer, st, "%s", fx_last_error());
    fx_location_set(file, line);
    return NULL;
}

fx_trace *fx_val_trace(fx_val v) { return v ? fx_graph_trace(v->graph) : NULL; }

fx_val fx_trace_fail(fx_trace *t, const char *fmt, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return t ? fx_graph_error(fx_trace_graph(t), FX_INVALID_ARGUMENT, "%s", text) : NULL;
}

bool fx_trace_failed(const fx_trace *t) { return !t || ((const fx_graph *)t)->status != FX_OK; }

enum { DEEPEST_SCOPE = sizeof((fx_graph *)0)->scope_stack / sizeof(char *) };

void fx_scope_push(fx_trace *t, const char *name) {
    fx_graph *g = t ? fx_trace_graph(t) : NULL;
    if (!g || g->finished)
        return;
    if (!name) {
        fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_scope_push: name; expected text; got NULL");
        return;
    }
    size_t old = g->scope ? strlen(g->scope) + 1 : 0;
    char *s = g->scope_depth < DEEPEST_SCOPE ? fx_arena_alloc(&g->arena, old + strlen(name) + 1) : NULL;
    if (!s) {
        fx_graph_error(g, FX_INVALID_ARGUMENT, "fx_scope_push: expected at most %d nested scopes", DEEPEST_SCOPE);
        return;
    }
    if (old) {
        memcpy(s, g->scope, old - 1);
        s[old - 1] = '.';
    }
    strcpy(s + old, name);
    g->scope_stack[g->scope_depth++] = g->scope;
    g->scope = s;
}

void fx_scope_pop(fx_trace *t) {
    fx_graph *g = t ? fx_trace_graph(t) : NULL;
    if (g && g->scope_depth)
        g->scope = g->scope_stack[--g->scope_depth];
}

fx_func *fx_func_ref(fx_func *f) { return f ? fx_graph_func(fx_graph_ref(fx_func_graph(f))) : NULL; }
void fx_func_unref(fx_func *f) { fx_graph_unref(f ? fx_func_graph(f) : NULL); }
int fx_func_n_in(const fx_func *f) { return f ? fx_func_graph(f)->n_param : 0; }
int fx_func_n_out(const fx_func *f) { return f ? fx_func_graph(f)->n_result : 0; }

static const fx_spec nothing = {FX_TUPLE, 0, {0}};

fx_spec fx_func_in_spec(const fx_func *f, int i) {
    return i >= 0 && i < fx_func_n_in(f) ? fx_func_graph(f)->params[i]->spec : nothing;
}

fx_spec fx_func_out_spec(const fx_func *f, int i) {
    return i >= 0 && i < fx_func_n_out(f) ? fx_func_graph(f)->results[i]->spec : nothing;
}

char *fx_func_print(const fx_func *f) { return f ? fx_graph_print(fx_func_graph(f)) : NULL; }

fx_status fx_func_parse(const char *text, size_t bytes, fx_func **out) {
    fx_graph *g = NULL;
    if (out)
        *out = NULL;
    if (!out || !text)
        return fx_fail(FX_INVALID_ARGUMENT, "fx_func_parse: %s is NULL; expected text and an address for the function", text ? "out" : "the text");
    FX_TRY(fx_graph_parse(text, bytes, &g));
    *out = fx_graph_func(g);
    return FX_OK;
}

fx_spec fx_spec_of(fx_val v) { return v ? v->spec : nothing; }

int64_t fx_dim(fx_val v, int axis) {
    return v && fx_trace_axis(v, "fx_dim", v->spec.rank, &axis) ? v->spec.dims[axis] : 0;
}

/* --- shared by the trace_*.c files --- */

static int depth(const fx_graph *g) {
    int d = 0;
    for (; g->parent; g = g->parent)
        d++;
    return d;
}

void fx_trace_complain(fx_graph *g, const char *text) {
    fx_graph *owner = g ? g : current;
    if (!owner || owner->status != FX_OK || owner->finished)
        return;
    for (const fx_graph *p = owner->parent; p; p = p->parent)
        if (p->status != FX_OK)
            return; /* an error in an enclosing trace explains the NULL */
    fx_graph_error(owner, FX_INVALID_ARGUMENT, "%s", text);
}

bool fx_trace_given(fx_val v, const char *what, const void *pointer) {
    char text[160];
    if (pointer)
        return true;
    snprintf(text, sizeof text, "%s; expected one; got NULL", what);
    fx_trace_complain(v ? v->graph : NULL, text);
    return false;
}

fx_graph *fx_trace_of(int n, const fx_val *in) {
    fx_graph *g = NULL;
    if (n < 0 || (n && !in)) {
        fx_trace_complain(NULL, n < 0 ? "number of operands; expected 0 or more; got a negative one" : "list of operands; expected one; got NULL");
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (in[i] && (!g || depth(in[i]->graph) > depth(g)))
            g = in[i]->graph;
    for (int i = 0; i < n; i++)
        if (!in[i]) {
            char text[64];
            snprintf(text, sizeof text, "operand %d is NULL; expected a value of this trace", i);
            fx_trace_complain(g, text);
            return NULL;
        }
    return g;
}

fx_val fx_trace_build(fx_op op, int n_in, const fx_val *in, int n_attr, const fx_attr *attrs) {
    fx_graph *g = fx_trace_of(n_in, in);
    return g ? fx_build(g, op, n_in, in, n_attr, attrs, 0, NULL) : NULL;
}

bool fx_trace_axis(fx_val v, const char *op, int rank, int *axis) {
    int a = *axis < 0 ? *axis + rank : *axis;
    if (!rank) {
        fx_graph_error(v->graph, FX_INVALID_ARGUMENT, "%s: axis; expected an array with axes; got a scalar", op);
        return false;
    }
    if (a < 0 || a >= rank) {
        fx_graph_error(v->graph, FX_INVALID_ARGUMENT, "%s: axis; expected %d to %d; got %d", op, -rank, rank - 1, *axis);
        return false;
    }
    *axis = a;
    return true;
}

bool fx_trace_axes(fx_val v, const char *op, int n, const int *axes, int *n_out, int64_t out[FX_MAX_RANK]) {
    bool used[FX_MAX_RANK] = {false};
    int rank = v->spec.rank;
    for (int i = 0; i < (n < 0 || !axes ? rank : n); i++) {
        int a = n < 0 || !axes ? i : axes[i];
        if (!fx_trace_axis(v, op, rank, &a))
            return false;
        if (used[a]) {
            fx_graph_error(v->graph, FX_INVALID_ARGUMENT, "%s: axis %d is named twice", op, a);
            return false;
        }
        used[a] = true;
    }
    *n_out = 0;
    for (int a = 0; a < rank; a++)
        if (used[a])
            out[(*n_out)++] = a;
    return true;
}

bool fx_trace_broadcast(const char *op, int first, int n, fx_val *v) {
    fx_graph *g = fx_trace_of(n, v);
    if (!g)
        return false;
    fx_spec to = {v[0]->spec.dtype, 0, {0}};
    char a[128], b[128];
    for (int i = 0; i < n; i++)
        to.rank = v[i]->spec.rank > to.rank ? v[i]->spec.rank : to.rank;
    for (int d = 0; d < to.rank; d++)
        to.dims[d] = 1;
    for (int i = 0; i < n; i++) {
        const fx_spec *s = &v[i]->spec;
        if (i >= first && s->dtype != v[first]->spec.dtype) {
            fx_graph_error(g, FX_INVALID_ARGUMENT, "%s: element types; expected equal ones; got %s and %s; convert one with fx_convert",
                           op, fx_spec_format(&v[first]->spec, a, sizeof a), fx_spec_format(s, b, sizeof b));
            return false;
        }
        for (int d = 0; d < s->rank; d++) {
            int64_t *t = &to.dims[to.rank - s->rank + d];
            if (s->dims[d] != 1 && *t != 1 && s->dims[d] != *t) {
                fx_graph_error(g, FX_INVALID_ARGUMENT,
                               "%s: shapes; expected ones that broadcast (equal or 1 from the last axis back); got %s and %s", op,
                               fx_spec_format(&v[0]->spec, a, sizeof a), fx_spec_format(s, b, sizeof b));
                return false;
            }
            if (s->dims[d] != 1)
                *t = s->dims[d];
        }
    }
    for (int i = 0; i < n; i++)
        v[i] = fx_broadcast_to(v[i], to.rank, to.dims);
    return g->status == FX_OK;
}
