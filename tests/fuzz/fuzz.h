/* fuzz.h - what a fuzz target provides to the driver in fuzz_main.c.
 *
 * A target is one file fuzz_NAME.c in this folder. It must take any bytes without a crash, a leak, a
 * hang or an answer that contradicts itself, and say so with fuzz_check. */
#ifndef FX_TESTS_FUZZ_H
#define FX_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Largest input that is tried. */
#define FUZZ_MAX_SIZE ((size_t)1 << 16)

/* Tries one input. */
void fuzz_one(const uint8_t *data, size_t size);

/* Writes valid input number i (from 0) to buf, which holds FUZZ_MAX_SIZE bytes; false past the last. */
bool fuzz_seed(int i, uint8_t *buf, size_t *size);

/* For readers that take a path: a file with these bytes; the path is valid until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* For writers that take a path: a name in a temporary folder; fuzz_take reads it back into buf and removes it. */
const char *fuzz_temporary(void);
bool fuzz_take(uint8_t *buf, size_t *size);

/* The invariant that a reader must keep; ends the run with the input kept. */
#define fuzz_check(cond)                                                            \
    do {                                                                            \
        if (!(cond)) {                                                              \
            fprintf(stderr, "%s:%d: fuzz_check(%s) failed\n", __FILE__, __LINE__, #cond); \
            abort();                                                                \
        }                                                                           \
    } while (0)

#endif
