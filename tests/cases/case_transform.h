/* case_transform.h - for cases of transforms: traced functions, their derivatives and batches, run by an executor. */
#ifndef FX_TESTS_CASE_TRANSFORM_H
#define FX_TESTS_CASE_TRANSFORM_H

#include "fornax/nn.h"
#include "fornax/transform.h"
#include "tests/cases/case.h"

enum { CASE_MAX = 8 };

/* A traced function; fails the test when tracing does. */
fx_func *case_trace_with(fx_trace_fn fn, void *user, int n_in, const fx_spec *in, int n_out);
fx_func *case_trace(fx_trace_fn fn, int n_in, const fx_spec *in, int n_out); /* user NULL */
void case_free_all(int n, case_array *out);
/* Fails the test when a transform did; returns its result and drops the function it came from. */
fx_func *case_take(fx_status st, fx_func *from, fx_func *const *to);
/* Runs f on args, which it frees, and drops f. */
void case_call(const executor *e, fx_func *f, case_array *args, case_array *out);
/* The same on copies of the arguments that the run may overwrite. */
void case_call_donating(const executor *e, fx_func *f, int n_donate, const int *donate, case_array *args,
                        case_array *out);
/* Result `which` of f(args) compared; all freed. */
void case_check_func(const executor *e, const char *what, fx_func *f, int which, case_array *args, const double *want,
                     double abs, double rel);
/* The gradient of fn's only result with respect to argument 0, in reverse and as tangents of a unit vector at a time.
 */
void case_check_grad(const executor *e, const char *what, fx_trace_fn fn, int n_in, const case_array *args,
                     const double *want, double abs, double rel);
case_array case_copy(const case_array *x);

#define OP_STATUS(expr) ck_assert_msg((expr) == FX_OK, "%s", fx_last_error())
#define TRACE(fn, n_out, ...) \
    case_trace((fn), CASE_COUNT(fx_spec, __VA_ARGS__), (const fx_spec[]){__VA_ARGS__}, (n_out))
#define ARGS(...) ((case_array[]){__VA_ARGS__})
#define WANT(...) ((const double[]){__VA_ARGS__})
/* fn of one f32 vector, or of these arrays. */
#define CHECK_GRAD(e, what, fn, want, abs, rel, ...)                                                                   \
    case_check_grad((e), (what), (fn), CASE_COUNT(case_array, __VA_ARGS__), (const case_array[]){__VA_ARGS__}, (want), \
                    (abs), (rel))

#endif
