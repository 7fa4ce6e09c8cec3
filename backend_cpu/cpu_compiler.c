/* cpu_compiler.c - finds the C compiler: FORNAX_CC, else cc, gcc, clang in PATH, the first that answers --version.
 *
 * FORNAX_CC holds a program, alone or with words before and after it ("ccache gcc-12", "clang --target=..."). When it
 * is set nothing else is tried. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_cpu/cpu.h"
#include "core/base/env.h"

enum { PATH_SIZE = 4096 };

/* Path of a program as the shell would find it, malloc'd, or NULL. */
static char *which(const char *name) {
    struct stat s;
    if (strchr(name, '/'))
        return access(name, X_OK) == 0 && stat(name, &s) == 0 && S_ISREG(s.st_mode) ? strdup(name) : NULL;
    const char *path = getenv("PATH");
    for (path = path && *path ? path : "/usr/local/bin:/usr/bin:/bin"; *path;) {
        char full[PATH_SIZE];
        size_t n = strcspn(path, ":");
        int len = snprintf(full, sizeof full, "%.*s/%s", (int)n, path, name);
        if (*path == '/' && len > 0 && (size_t)len < sizeof full && access(full, X_OK) == 0 && stat(full, &s) == 0 &&
            S_ISREG(s.st_mode))
            return strdup(full);
        path += n + (path[n] == ':');
    }
    return NULL;
}

void fx_cpu_compiler_finish(cpu_compiler *c) {
    for (int i = 0; i < c->n_words; i++)
        free(c->words[i]);
    *c = (cpu_compiler){0};
}

/* Splits text into words; the first becomes a path. */
static bool set_words(cpu_compiler *c, const char *text) {
    char *whole = strchr(text, ' ') ? which(text) : NULL; /* one path, with spaces in it */
    if (whole) {
        c->words[c->n_words++] = whole;
        return true;
    }
    while (*(text += strspn(text, " \t")) && c->n_words < CPU_CC_WORDS) {
        size_t n = strcspn(text, " \t");
        char *word = strndup(text, n);
        if (word && !c->n_words) {
            char *path = which(word);
            free(word);
            word = path;
        }
        if (!word)
            return false;
        c->words[c->n_words++] = word;
        text += n;
    }
    return c->n_words > 0 && !*text;
}

/* Runs --version and notes its first line. */
static bool ask_version(cpu_compiler *c, char *why, size_t size) {
    static char option[] = "--version";
    char *argv[CPU_CC_WORDS + 2], log[] = "/tmp/fornax-cc-XXXXXX";
    const char *tmp = getenv("TMPDIR");
    char path[PATH_SIZE];
    int code, n = 0;
    for (; n < c->n_words; n++)
        argv[n] = c->words[n];
    argv[n++] = option;
    argv[n] = NULL;
    snprintf(path, sizeof path, "%.4000s/fornax-cc-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0) {
        snprintf(path, sizeof path, "%s", log);
        fd = mkstemp(path);
    }
    if (fd < 0) {
        snprintf(why, size, "no temporary file can be made (%s)", strerror(errno));
        return false;
    }
    cpu_end end = fx_cpu_run(argv, path, 30, &code);
    ssize_t got = pread(fd, c->version, sizeof c->version - 1, 0);
    close(fd);
    unlink(path);
    c->version[got > 0 ? got : 0] = '\0';
    c->version[strcspn(c->version, "\r\n")] = '\0';
    if ((end == CPU_END_GOOD || end == CPU_END_UNKNOWN) && *c->version)
        return true;
    if (end == CPU_END_NOT_RUN)
        snprintf(why, size, "can't be run (%s)", strerror(code));
    else
        snprintf(why, size, "%s --version", end == CPU_END_HUNG ? "hangs in" : "fails in");
    return false;
}

static void identify(cpu_compiler *c) {
    struct stat s;
    uint64_t h = XXH64(c->version, strlen(c->version), 0);
    for (int i = 0; i < c->n_words; i++)
        h = XXH64(c->words[i], strlen(c->words[i]) + 1, h);
    if (stat(c->words[0], &s) == 0) {
        int64_t facts[3] = {(int64_t)s.st_size, (int64_t)s.st_mtim.tv_sec, (int64_t)s.st_mtim.tv_nsec};
        h = XXH64(facts, sizeof facts, h);
    }
    c->identity = h;
}

static bool try_compiler(cpu_compiler *c, const char *text, char *why, size_t size) {
    *c = (cpu_compiler){0};
    snprintf(why, size, "not found");
    if (set_words(c, text) && ask_version(c, why, size)) {
        identify(c);
        return true;
    }
    fx_cpu_compiler_finish(c);
    return false;
}

/* The last answer: finding a compiler starts a process, and devices are listed often. */
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
static char known_for[2 * PATH_SIZE];
static cpu_compiler known;

static fx_status copy(const cpu_compiler *from, cpu_compiler *out) {
    *out = *from;
    for (int i = 0; i < from->n_words; i++)
        if (!(out->words[i] = strdup(from->words[i]))) {
            out->n_words = i;
            fx_cpu_compiler_finish(out);
            return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room for the compiler's name; free memory");
        }
    return FX_OK;
}

static fx_status find(cpu_compiler *out) {
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *asked = fx_env_text(FX_ENV_cc);
    char why[128];
    if (asked) {
        if (try_compiler(out, asked, why, sizeof why))
            return FX_OK;
        return fx_backend_fail(FX_UNSUPPORTED,
                               "no C compiler: FORNAX_CC=%.60s %s; set it to gcc or clang, or unset it to try cc, gcc, clang",
                               asked, why);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (try_compiler(out, names[i], why, sizeof why))
            return FX_OK;
    return fx_backend_fail(FX_UNSUPPORTED,
                           "no C compiler: tried FORNAX_CC (unset), cc, gcc, clang; install gcc or clang, or set FORNAX_CC");
}

fx_status fx_cpu_compiler_find(cpu_compiler *out) {
    char now_for[sizeof known_for];
    const char *asked = fx_env_text(FX_ENV_cc), *path = getenv("PATH");
    snprintf(now_for, sizeof now_for, "%.4000s:%.4000s", asked ? asked : "", path ? path : "");
    fx_status st = FX_OK;
    pthread_mutex_lock(&known_lock);
    if (!known.n_words || strcmp(now_for, known_for) || access(known.words[0], X_OK) != 0) {
        fx_cpu_compiler_finish(&known);
        st = find(&known);
        snprintf(known_for, sizeof known_for, "%s", now_for);
    }
    if (st == FX_OK)
        st = copy(&known, out);
    pthread_mutex_unlock(&known_lock);
    return st;
}
