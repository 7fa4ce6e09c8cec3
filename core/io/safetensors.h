/* safetensors.h - the element types of the file format, shared by its reader and writer. */
#ifndef FX_IO_SAFETENSORS_H
#define FX_IO_SAFETENSORS_H

#include "fornax/base.h"

typedef struct fx_safetensors_type {
    const char *name;
    int bits;       /* of one element */
    fx_dtype dtype; /* FX_TUPLE: none of the library's */
} fx_safetensors_type;

/* NULL when unknown. */
const fx_safetensors_type *fx_safetensors_type_named(const char *name);
const fx_safetensors_type *fx_safetensors_type_of(fx_dtype dtype);

#define FX_SAFETENSORS_METADATA "__metadata__"

#endif
