/* main.c - a C program that uses an installed Fornax: version, error text and a shape. */
#include <fornax/fornax.h>
#include <stdio.h>

int main(void) {
    fx_spec spec = FX_SPEC(FX_F32, 2, 3);
    fx_dtype dtype;
    char text[64];
    if (fx_dtype_parse("no such type", &dtype) != FX_INVALID_ARGUMENT || fx_last_error()[0] == '\0')
        return 1;
    printf("C: fornax %s, %s, %lld elements\n", fx_version(), fx_spec_format(&spec, text, sizeof text),
           (long long)fx_spec_count(&spec));
    return fx_spec_count(&spec) == 6 ? 0 : 1;
}
