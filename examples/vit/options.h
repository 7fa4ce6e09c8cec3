/* options.h - command lines described by a table: long options only, --name value or --name=value. */
#ifndef VIT_OPTIONS_H
#define VIT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_INT, OPTION_SEED, OPTION_REAL } option_kind;

typedef struct option_row {
    const char *name; /* without dashes */
    option_kind kind;
    void *target;    /* bool, const char *, int64_t, uint64_t, double */
    double min, max; /* INT, REAL: inclusive */
    const char *value, *help;
} option_row;

/* Fills the targets. Returns 0; 1 after --help (printed to stdout); 2 after an error (a line on stderr). Numbers take
 * the whole text in decimal: no blanks, no hexadecimal, no NaN or infinity. An option given twice is an error. */
int options_parse(const char *usage, const option_row *rows, int n, int argc, char **argv);
/* The same with arguments that are no options, such as files: rest has room for argc. What follows "--" is no option.
 */
int options_parse_with(const char *usage, const option_row *rows, int n, int argc, char **argv, char **rest,
                       int *n_rest);

#endif
