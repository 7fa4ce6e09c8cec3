/* main.cpp - a C++ program that uses an installed Fornax: version, error text and a shape; with an argument, a sum of
 * squares on the default device. */
#include <fornax/fornax.h>

#include <iostream>
#include <string>

static void squares(fx_trace *, const fx_val *in, fx_val *out, void *) {
    out[0] = fx_reduce_sum(fx_mul(in[0], in[0]), -1, nullptr, false);
}

static fx_status run(fx_context *cx) {
    fx_spec spec{FX_F32, 1, {4}};
    const float data[4] = {1, 2, 3, 4};
    float result = 0;
    fx_func *f = nullptr;
    fx_exec *exe = nullptr;
    fx_array *x = nullptr, *sum = nullptr;
    FX_TRY(fx_trace_func(squares, nullptr, 1, &spec, 1, &f));
    FX_TRY(fx_compile(f, fx_default_device(cx), nullptr, &exe));
    FX_TRY(fx_array_create(fx_default_device(cx), spec, data, &x));
    FX_TRY(fx_run(exe, &x, &sum));
    FX_TRY(fx_array_read(sum, &result, sizeof result));
    std::cout << "1 + 4 + 9 + 16 = " << result << " on " << fx_device_name(fx_default_device(cx)) << "\n";
    fx_array_unref(sum);
    fx_array_unref(x);
    fx_exec_destroy(exe);
    fx_func_unref(f);
    return FX_OK;
}

int main(int argc, char **) {
    if (argc > 1) {
        fx_context *cx = nullptr;
        fx_status st = fx_init(nullptr, &cx);
        if (st == FX_OK)
            st = run(cx);
        if (st != FX_OK)
            std::cerr << fx_last_error() << "\n";
        fx_shutdown(cx);
        return st != FX_OK;
    }
    fx_spec spec{FX_F32, 2, {2, 3}};
    fx_dtype dtype;
    if (fx_dtype_parse("no such type", &dtype) != FX_INVALID_ARGUMENT || std::string(fx_last_error()).empty())
        return 1;
    char text[64];
    std::cout << "C++: fornax " << fx_version() << ", " << fx_spec_format(&spec, text, sizeof text) << ", "
              << fx_spec_count(&spec) << " elements\n";
    return fx_spec_count(&spec) == 6 ? 0 : 1;
}
