/* 02_grad.c - transforms take a function and give a function: a gradient, a second derivative, and a batch of
 * gradients, of the Rosenbrock function f(x, y) = (1 - x)^2 + 100 (y - x^2)^2. */
#include <fornax/fornax.h>
#include <stdio.h>

static void rosenbrock(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)user;
    fx_val x = in[0], y = in[1], one = fx_scalar(t, FX_F32, 1);
    out[0] = fx_add(fx_square(fx_sub(one, x)), fx_mul_c(fx_square(fx_sub(y, fx_square(x))), 100));
}

/* Compiles f, runs it on the inputs and reads every result into out, one after another. */
static fx_status call(fx_device *d, const fx_func *f, const float *const *in, float *out) {
    fx_exec *e;
    fx_array *a[8] = {NULL}, *r[8] = {NULL};
    FX_TRY(fx_compile(f, d, NULL, &e));
    fx_status st = FX_OK;
    for (int i = 0; i < fx_func_n_in(f) && st == FX_OK; i++)
        st = fx_array_create(d, fx_func_in_spec(f, i), in[i], &a[i]);
    if (st == FX_OK)
        st = fx_run(e, a, r);
    for (int i = 0; i < fx_func_n_out(f) && st == FX_OK; i++) {
        fx_spec s = fx_array_spec(r[i]);
        size_t n = (size_t)fx_spec_count(&s);
        st = fx_array_read(r[i], out, n * sizeof *out);
        out += n;
    }
    for (int i = 0; i < 8; i++) {
        fx_array_unref(a[i]);
        fx_array_unref(r[i]);
    }
    fx_exec_destroy(e);
    return st;
}

static fx_status derivatives(fx_context *cx) {
    fx_device *d = fx_default_device(cx);
    fx_spec scalars[] = {FX_SPEC0(FX_F32), FX_SPEC0(FX_F32)};
    fx_func *f, *grad, *second, *many;
    FX_TRY(fx_trace_func(rosenbrock, NULL, 2, scalars, 1, &f));
    FX_TRY(fx_value_and_grad(f, FX_ARGS(0, 1), &grad));

    float x = -1, y = 2, r[8];
    const float *point[] = {&x, &y};
    FX_TRY(call(d, grad, point, r));
    printf("f(-1, 2) = %g, gradient (%g, %g)\n", (double)r[0], (double)r[1], (double)r[2]);

    fx_func *first; /* df/dx alone, to differentiate again */
    FX_TRY(fx_grad(f, FX_ARGS(0), &first));
    FX_TRY(fx_grad(first, FX_ARGS(0), &second));
    FX_TRY(call(d, second, point, r));
    printf("second derivative in x: %g\n", (double)r[0]);

    /* a batch axis of three points: the mapped function's inputs are f32[3] */
    const float xs[] = {-1, 0, 1}, ys[] = {2, 0, 2}, *points[] = {xs, ys};
    FX_TRY(fx_vmap(first, NULL, NULL, 3, &many));
    FX_TRY(call(d, many, points, r));
    printf("df/dx at (-1, 2), (0, 0), (1, 2): %g, %g, %g\n", (double)r[0], (double)r[1], (double)r[2]);
    fx_func_unref(many);
    fx_func_unref(second);
    fx_func_unref(first);
    fx_func_unref(grad);
    fx_func_unref(f);
    return FX_OK;
}

int main(void) {
    fx_context *cx = NULL;
    fx_status st = fx_init(NULL, &cx);
    if (st == FX_OK)
        st = derivatives(cx);
    if (st != FX_OK)
        fprintf(stderr, "02_grad: %s\n", fx_last_error());
    fx_shutdown(cx);
    return st != FX_OK;
}
