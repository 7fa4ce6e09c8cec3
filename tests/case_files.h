/* case_files.h - reads the files of the E cases from tests/data/io_cases.tsv, for the tests of the readers. */
#ifndef FX_TESTS_CASE_FILES_H
#define FX_TESTS_CASE_FILES_H

#include <check.h>
#include <fornax/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

typedef struct case_file {
    char *name;
    unsigned char *data;
    size_t size;
} case_file;

static inline int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *p = c ? strchr(digits, c) : NULL;
    return p ? (int)(p - digits) : -1;
}

static inline size_t base64_decode(const char *text, unsigned char *out) {
    unsigned bits = 0, have = 0;
    size_t n = 0;
    for (; base64_digit(*text) >= 0; text++) {
        bits = bits << 6 | (unsigned)base64_digit(*text);
        if ((have += 6) >= 8)
            out[n++] = (unsigned char)(bits >> (have -= 8));
    }
    return n;
}

/* All files of a case; *count of them. Each file's data is an exact allocation, so that a sanitizer sees an overrun. */
static inline case_file *case_files(const char *id, size_t *count) {
    FILE *f = fopen(FX_TESTS_DIR "/data/io_cases.tsv", "r");
    ck_assert_msg(f != NULL, "tests/data/io_cases.tsv is missing");
    case_file *files = NULL;
    char *line = NULL;
    size_t room = 0;
    *count = 0;
    while (getline(&line, &room, f) > 0) {
        char *tab = strchr(line, '\t'), *tab2 = tab ? strchr(tab + 1, '\t') : NULL;
        if (!tab2 || strncmp(line, id, (size_t)(tab - line)) != 0)
            continue;
        unsigned char *buf = malloc(strlen(tab2) + 1);
        size_t size = base64_decode(tab2 + 1, buf);
        case_file *more = realloc(files, (*count + 1) * sizeof *files);
        ck_assert_ptr_nonnull(more);
        files = more;
        files[*count].name = strndup(tab + 1, (size_t)(tab2 - tab - 1));
        files[*count].data = malloc(size ? size : 1);
        memcpy(files[*count].data, buf, size);
        files[(*count)++].size = size;
        free(buf);
    }
    free(line);
    fclose(f);
    ck_assert_msg(*count > 0, "no files of case %s", id);
    return files;
}

static inline void case_files_free(case_file *files, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(files[i].name);
        free(files[i].data);
    }
    free(files);
}

/* A file of the case by the beginning of its name. */
static inline const case_file *case_file_named(const case_file *files, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strncmp(files[i].name, name, strlen(name)) == 0)
            return &files[i];
    ck_abort_msg("no file %s in the case", name);
    return NULL;
}

/* A scratch folder of the test program, removed by scratch_clean. */
static char scratch_dir[64];
static inline const char *scratch_path(const char *name) {
    static char path[4][256];
    static int turn;
    if (!scratch_dir[0]) {
        strcpy(scratch_dir, "/tmp/fornax-test-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(scratch_dir));
    }
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch_dir, name);
    return path[turn];
}

static inline void scratch_clean(void) {
    char command[128];
    if (!scratch_dir[0])
        return;
    snprintf(command, sizeof command, "rm -rf %s", scratch_dir);
    ck_assert_int_eq(system(command), 0);
    scratch_dir[0] = '\0';
}

static inline void write_file(const char *path, const void *data, size_t size) {
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, size, f), size);
    fclose(f);
}

static inline unsigned char *read_whole(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "cannot open %s", path);
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*size + 1);
    ck_assert_uint_eq(fread(data, 1, *size, f), *size);
    fclose(f);
    return data;
}

/* Entries in the scratch folder: a failed write must leave none of its own. */
static inline int count_scratch_files(void) {
    char command[160];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", scratch_dir);
    FILE *p = popen(command, "r");
    ck_assert(p && fscanf(p, "%d", &n) == 1);
    pclose(p);
    return n;
}

static inline double now_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Resident peak of the process so far, bytes. */
static inline long peak_bytes(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss * 1024L;
}

#define ck_assert_error_says(part) \
    ck_assert_msg(strstr(fx_last_error(), part) != NULL, "error text \"%s\" does not say \"%s\"", fx_last_error(), part)
#define ck_assert_fx_ok(expr)                                                                      \
    do {                                                                                           \
        fx_status ck_status_ = (expr);                                                             \
        ck_assert_msg(ck_status_ == FX_OK, "%s: %s", fx_status_name(ck_status_), fx_last_error()); \
    } while (0)

#endif
