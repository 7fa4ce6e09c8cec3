/* npy.h - the parts of an .npy file that the npz reader and writer use too. */
#ifndef FX_IO_NPY_H
#define FX_IO_NPY_H

#include "core/io/file.h"

typedef struct fx_npy_header {
    fx_spec spec;
    size_t data_offset, bytes; /* of the elements */
    bool swap, fortran;        /* big-endian; first index fastest */
} fx_npy_header;

/* Reads and checks the header in the first `size` bytes of a file. */
fx_status fx_npy_read_header(const unsigned char *p, size_t size, fx_npy_header *h);
/* FX_BAD_DATA unless a file of `size` bytes holds exactly the elements. */
fx_status fx_npy_check_size(const fx_npy_header *h, uint64_t size);
/* Turns elements as in the file, already in `array`, into native C order. */
fx_status fx_npy_finish(const fx_npy_header *h, fx_host_array *array);

enum { FX_NPY_HEADER_SIZE = 512 };
fx_status fx_npy_write_header(const fx_spec *spec, char buf[FX_NPY_HEADER_SIZE], size_t *length);

#endif
