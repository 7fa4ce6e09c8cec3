/* 01_hello.c - a function is traced once, compiled for the best device there is, and run. */
#include <fornax/fornax.h>
#include <stdio.h>

static void squares(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    (void)t, (void)user;
    out[0] = fx_reduce_sum(fx_mul(in[0], in[0]), -1, NULL, false);
}

static fx_status hello(fx_context *cx) {
    fx_spec spec = FX_SPEC(FX_F32, 4);
    fx_func *f;
    FX_TRY(fx_trace_func(squares, NULL, 1, &spec, 1, &f));
    fx_exec *exe;
    FX_TRY(fx_compile(f, fx_default_device(cx), NULL, &exe));
    fx_array *x, *sum;
    FX_TRY(fx_array_create(fx_default_device(cx), spec, (float[]){1, 2, 3, 4}, &x));
    FX_TRY(fx_run(exe, &x, &sum));
    float result;
    FX_TRY(fx_array_read(sum, &result, sizeof result));
    printf("1 + 4 + 9 + 16 = %g on %s\n", (double)result, fx_device_name(fx_default_device(cx)));
    fx_array_unref(sum);
    fx_array_unref(x);
    fx_exec_destroy(exe);
    fx_func_unref(f);
    return FX_OK;
}

int main(void) {
    fx_context *cx = NULL;
    fx_status st = fx_init(NULL, &cx);
    if (st == FX_OK)
        st = hello(cx);
    if (st != FX_OK)
        fprintf(stderr, "01_hello: %s\n", fx_last_error());
    fx_shutdown(cx);
    return st != FX_OK;
}
