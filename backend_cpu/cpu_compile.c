/* cpu_compile.c - one translation unit: kernels' texts one after another, through the compiler, into a shared object.
 *
 * Each text names its function FX_KERNEL; a #define around it makes that the kernel's symbol. A #line before each makes the
 * compiler's messages name the kernel. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_cpu/cpu.h"

enum { PATH_SIZE = 4096, LOG_SIZE = 2500, MOST_WORDS = 48 };

static const char *const flags[] = {"-O3",
                                    "-std=gnu11",
                                    "-fPIC",
                                    "-shared",
                                    "-nostartfiles",
                                    "-s",
                                    "-w",
                                    "-pipe",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-trapping-math",
                                    "-fno-strict-aliasing",
#if defined(__x86_64__)
                                    "-mprefer-vector-width=512", /* the widest there is */
#endif
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

/* For this machine alone; the compiler may not know it. */
#if defined(__aarch64__)
static const char native[] = "-mcpu=native";
#else
static const char native[] = "-march=native";
#endif

uint64_t fx_cpu_code_identity(const fx_bdevice *d) {
    XXH64_state_t state;
    uint64_t facts[3] = {1 /* version of the translation */, d->compiler.identity, d->features};
    XXH64_reset(&state, 0);
    XXH64_update(&state, facts, sizeof facts);
    for (int i = 0; i < N_FLAGS; i++)
        XXH64_update(&state, flags[i], strlen(flags[i]) + 1);
    return XXH64_digest(&state);
}

void fx_cpu_symbol(char symbol[CPU_SYMBOL], fx_cache_key key) {
    snprintf(symbol, CPU_SYMBOL, "k_%016llx%016llx", (unsigned long long)key.hi, (unsigned long long)key.lo);
}

/* The kernel's name as compilers print it. */
static void plain_name(char *out, size_t size, const char *name) {
    size_t n = 0;
    for (; name[n] && n + 1 < size; n++)
        out[n] = (unsigned char)name[n] < 32 || name[n] == '"' || name[n] == '\\' ? '_' : name[n];
    out[n] = '\0';
}

static bool write_texts(const char *path, int n, const cpu_text *const *texts) {
    FILE *f = fopen(path, "we");
    if (!f)
        return false;
    for (int i = 0; i < n; i++) {
        char name[96], symbol[CPU_SYMBOL];
        plain_name(name, sizeof name, texts[i]->source->name);
        fx_cpu_symbol(symbol, texts[i]->key);
        fprintf(f, "#define FX_KERNEL %s\n#line 1 \"%s\"\n", symbol, name);
        fwrite(texts[i]->source->source, 1, texts[i]->source->source_bytes, f);
        fputs("\n#undef FX_KERNEL\n", f);
    }
    bool good = !ferror(f);
    return (fclose(f) == 0) & good;
}

/* Appends the compiler and the flags, without an end. */
static int command(fx_bdevice *d, bool plain, char **argv) {
    int n = 0;
    for (int i = 0; i < d->compiler.n_words; i++)
        argv[n++] = d->compiler.words[i];
    for (int i = 0; i < N_FLAGS; i++)
        argv[n++] = (char *)(uintptr_t)flags[i];
    if (!plain)
        argv[n++] = (char *)(uintptr_t)native;
    return n;
}

static cpu_end run(fx_bdevice *d, bool plain, const char *input, const char *output, const char *log, int *code) {
    /* The library is no C, whatever -x said before. */
    const char *const rest[] = {"-o", output, "-x", "c", input, "-x", "none", "-lm", NULL};
    char *argv[MOST_WORDS];
    int n = command(d, plain, argv);
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        argv[n++] = (char *)(uintptr_t)rest[i];
    return fx_cpu_run(argv, log, fx_cpu_patience(), code);
}

/* Does the compiler refuse to compile for this machine, and nothing else? */
static bool native_refused(fx_bdevice *d, const char *stem) {
    char output[PATH_SIZE], log[PATH_SIZE];
    int code;
    snprintf(output, sizeof output, "%.4000s-probe.so", stem);
    snprintf(log, sizeof log, "%.4000s-probe.log", stem);
    bool refused = run(d, false, "/dev/null", output, log, &code) == CPU_END_BAD &&
                   run(d, true, "/dev/null", output, log, &code) == CPU_END_GOOD;
    unlink(output);
    unlink(log);
    return refused;
}

static void read_log(const char *path, char *text, size_t size) {
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    if (f)
        fclose(f);
    while (n && (text[n - 1] == '\n' || text[n - 1] == ' '))
        n--;
    text[n] = '\0';
}

/* The kernel whose name begins a line of the messages; the first one if there is none. */
static const char *culprit(int n, const cpu_text *const *texts, const char *log) {
    for (const char *line = log; *line; line += strcspn(line, "\n"), line += *line == '\n')
        for (int i = 0; i < n; i++) {
            char name[96];
            plain_name(name, sizeof name, texts[i]->source->name);
            size_t len = strlen(name);
            if (strncmp(line, name, len) == 0 && line[len] == ':')
                return texts[i]->source->name;
        }
    return texts[0]->source->name;
}

static fx_status failure(fx_bdevice *d, cpu_end end, int code, int n, const cpu_text *const *texts, const char *log_path) {
    char log[LOG_SIZE], others[48] = "";
    const char *cc = d->compiler.words[0];
    read_log(log_path, log, sizeof log);
    const char *name = culprit(n, texts, log);
    if (n > 1)
        snprintf(others, sizeof others, " (compiled with %d others)", n - 1);
    switch (end) {
    case CPU_END_NOT_RUN:
        return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: the compiler %s can't be run (%s); set FORNAX_CC to gcc or clang",
                               name, cc, strerror(code));
    case CPU_END_HUNG:
        return fx_backend_fail(FX_COMPILE_ERROR,
                               "kernel %s%s: the compiler %s did not end within %g s and was stopped; "
                               "set FORNAX_CC_TIMEOUT higher on a slow machine",
                               name, others, cc, fx_cpu_patience());
    case CPU_END_KILLED:
        return fx_backend_fail(FX_COMPILE_ERROR,
                               "kernel %s%s: the compiler %s was ended by signal %d; memory may be short%s%s", name, others, cc,
                               code, *log ? ": " : "", log);
    default:
        return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s%s: the compiler %s refused it (status %d): %s", name, others, cc, code,
                               *log ? log : "it said nothing");
    }
}

fx_status fx_cpu_compile(fx_bdevice *d, int n, const cpu_text *const *texts, const char *stem, const char *object) {
    char input[PATH_SIZE], log[PATH_SIZE];
    int code = 0;
    snprintf(input, sizeof input, "%.4000s.c", stem);
    snprintf(log, sizeof log, "%.4000s.log", stem);
    if (!write_texts(input, n, texts)) {
        unlink(input);
        return fx_backend_fail(FX_IO_ERROR, "kernel %s: its text can't be written to %s; free space there or set TMPDIR",
                               texts[0]->source->name, input);
    }
    bool plain = atomic_load(&d->plain);
    cpu_end end = run(d, plain, input, object, log, &code);
    if (end == CPU_END_BAD && !plain && native_refused(d, stem)) {
        atomic_store(&d->plain, true);
        end = run(d, true, input, object, log, &code);
    }
    fx_status st = FX_OK;
    if (end != CPU_END_GOOD && !(end == CPU_END_UNKNOWN && access(object, R_OK) == 0))
        st = failure(d, end, code, n, texts, log);
    unlink(input);
    unlink(log);
    return st;
}
