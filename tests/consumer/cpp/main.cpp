/* main.cpp - a C++ program that uses an installed Fornax: version, error text and a shape. */
#include <fornax/fornax.h>

#include <iostream>
#include <string>

int main() {
    fx_spec spec{FX_F32, 2, {2, 3}};
    fx_dtype dtype;
    if (fx_dtype_parse("no such type", &dtype) != FX_INVALID_ARGUMENT || std::string(fx_last_error()).empty())
        return 1;
    char text[64];
    std::cout << "C++: fornax " << fx_version() << ", " << fx_spec_format(&spec, text, sizeof text) << ", "
              << fx_spec_count(&spec) << " elements\n";
    return fx_spec_count(&spec) == 6 ? 0 : 1;
}
