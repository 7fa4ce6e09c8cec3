/* base.h - status codes, error text and element types: what every other public header needs.
 *
 * Every fallible call returns an fx_status. On failure the calling thread's error text, read
 * with fx_last_error(), says what was asked, what was expected, what was got and the remedy.
 * No call exits, aborts or prints because of something a user or a device did. */
#ifndef FORNAX_BASE_H
#define FORNAX_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FX_VERSION_MAJOR 0
#define FX_VERSION_MINOR 1
#define FX_VERSION_PATCH 0

#if defined(__GNUC__)
#define FX_API __attribute__((visibility("default")))
#define FX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define FX_API
#define FX_PRINTF(fmt, args)
#endif

/* Highest rank of an array. */
#define FX_MAX_RANK 8

typedef enum fx_status {
    FX_OK = 0,
    FX_INVALID_ARGUMENT, /* a shape, type or value that the call does not accept */
    FX_OUT_OF_MEMORY,    /* host or device memory; nothing already computed is lost */
    FX_NOT_FOUND,        /* no such device, file, name or driver */
    FX_UNSUPPORTED,      /* the device or build lacks a feature that the call needs */
    FX_IO_ERROR,         /* the operating system refused a read or write */
    FX_BAD_DATA,         /* a file or text that is damaged or hostile */
    FX_COMPILE_ERROR,    /* a kernel compiler refused a kernel: a defect of Fornax or of a driver */
    FX_DEVICE_LOST,      /* the device reset or vanished; its arrays are gone */
    FX_CANCELLED,        /* interrupted by the caller */
    FX_INTERNAL          /* a broken invariant of Fornax itself */
} fx_status;

/* Name of a status as in the enum, e.g. "FX_OUT_OF_MEMORY". Never NULL. Static storage. */
FX_API const char *fx_status_name(fx_status status);

/* Text of the calling thread's last error; "" when there was none. Borrowed: valid until the
 * next failing call on this thread. */
FX_API const char *fx_last_error(void);

/* "0.1.0". Static storage. */
FX_API const char *fx_version(void);

/* Returns from the calling function with the status of `expr` when it is not FX_OK. */
#define FX_TRY(expr)                           \
    do {                                       \
        fx_status fx_try_status_ = (expr);     \
        if (fx_try_status_ != FX_OK)           \
            return fx_try_status_;             \
    } while (0)

/* Element types. FX_TUPLE is the type of a graph node with several results, never of an array. */
typedef enum fx_dtype {
    FX_BOOL = 0,
    FX_S8,
    FX_S16,
    FX_S32,
    FX_S64,
    FX_U8,
    FX_U16,
    FX_U32,
    FX_U64,
    FX_F16,
    FX_BF16,
    FX_F32,
    FX_F64,
    FX_DTYPE_COUNT,
    FX_TUPLE = FX_DTYPE_COUNT
} fx_dtype;

/* Bytes an element takes on the host: bool is one byte, 0 or 1. 0 for FX_TUPLE and beyond. */
FX_API size_t fx_dtype_size(fx_dtype dtype);
/* "bool", "s32", "bf16", ... "?" for a value outside the enum. Static storage. */
FX_API const char *fx_dtype_name(fx_dtype dtype);
/* The inverse of fx_dtype_name; also takes "i32" for "s32" and "float"-like names are refused.
 * FX_INVALID_ARGUMENT when unknown. */
FX_API fx_status fx_dtype_parse(const char *name, fx_dtype *out);
FX_API bool fx_dtype_is_float(fx_dtype dtype);
FX_API bool fx_dtype_is_signed(fx_dtype dtype);   /* signed integers only */
FX_API bool fx_dtype_is_unsigned(fx_dtype dtype); /* unsigned integers only */
FX_API bool fx_dtype_is_int(fx_dtype dtype);      /* signed or unsigned, not bool */

/* Shape and type of an array. Dimensions are non-negative; rank 0 is a scalar. Passed by value. */
typedef struct fx_spec {
    fx_dtype dtype;
    int rank;
    int64_t dims[FX_MAX_RANK];
} fx_spec;

/* FX_SPEC(FX_F32, 2, 3) is f32[2,3]; FX_SPEC0(FX_F32) is the scalar f32[]. */
#define FX_SPEC(dt, ...)                                                                 \
    ((fx_spec){(dt), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define FX_SPEC0(dt) ((fx_spec){(dt), 0, {0}})

/* Number of elements, 1 for a scalar; -1 when the product overflows int64_t, a dimension is negative or the
 * rank is not one. */
FX_API int64_t fx_spec_count(const fx_spec *spec);
FX_API bool fx_spec_equal(const fx_spec *a, const fx_spec *b);
/* Writes "f32[2,3]" into buf (always terminated when size > 0; "?" for NULL) and returns buf. */
FX_API char *fx_spec_format(const fx_spec *spec, char *buf, size_t size);

/* Conversions with round to nearest even, as IEEE 754; NaN stays NaN. */
FX_API uint16_t fx_f32_to_f16(float x);
FX_API float fx_f16_to_f32(uint16_t bits);
FX_API uint16_t fx_f32_to_bf16(float x);
FX_API float fx_bf16_to_f32(uint16_t bits);
FX_API uint16_t fx_f64_to_f16(double x);  /* one rounding, not two */
FX_API uint16_t fx_f64_to_bf16(double x); /* one rounding, not two */

#ifdef __cplusplus
}
#endif
#endif
