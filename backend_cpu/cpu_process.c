/* cpu_process.c - runs a compiler: no shell, no input, output into a file, ended when it takes too long.
 *
 * The child leads a process group of its own, so that what it started ends with it. A program may handle SIGCHLD in
 * ways that take the child's status from us: then its result is judged by the files it wrote. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend_cpu/cpu.h"
#include "core/base/env.h"

extern char **environ;

double fx_cpu_patience(void) {
    double s = fx_env_number(FX_ENV_cc_timeout, 300);
    return s > 0 && s < 1e6 ? s : 300;
}

uint64_t fx_cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The program's environment with messages in English. The array is the caller's, the strings are not. */
static char **plain_environment(void) {
    static char english[] = "LC_ALL=C";
    size_t n = 0, m = 0;
    while (environ && environ[n])
        n++;
    char **out = malloc(sizeof *out * (n + 2));
    if (!out)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0)
            out[m++] = environ[i];
    out[m++] = english;
    out[m] = NULL;
    return out;
}

static int start(char *const *argv, const char *log, pid_t *child) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, standard;
    char **env = plain_environment();
    if (!env)
        return ENOMEM;
    sigemptyset(&none);
    sigemptyset(&standard);
    sigaddset(&standard, SIGPIPE);
    sigaddset(&standard, SIGCHLD);
    int r = posix_spawn_file_actions_init(&files);
    if (r == 0 && (r = posix_spawnattr_init(&attributes)) != 0)
        posix_spawn_file_actions_destroy(&files);
    if (r != 0) {
        free(env);
        return r;
    }
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &standard);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    r = posix_spawn(child, argv[0], &files, &attributes, argv, env);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(env);
    return r;
}

/* Sleeps until the child may have ended, at most `ms`. */
static void doze(int fd, int ms) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, fd >= 0, fd >= 0 || ms < 5 ? ms : 5);
}

cpu_end fx_cpu_run(char *const *argv, const char *log, double seconds, int *code) {
    pid_t child;
    *code = start(argv, log, &child);
    if (*code)
        return CPU_END_NOT_RUN;
    int status = 0, fd = -1;
    bool hung = false;
    uint64_t end = fx_cpu_now() + (uint64_t)(seconds * 1e9);
#ifdef SYS_pidfd_open
    fd = (int)syscall(SYS_pidfd_open, child, 0);
#endif
    pid_t got;
    while ((got = waitpid(child, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        uint64_t now = fx_cpu_now();
        if (now >= end) {
            hung = true;
            kill(-child, SIGKILL);
            do
                got = waitpid(child, &status, 0);
            while (got < 0 && errno == EINTR);
            break;
        }
        uint64_t ms = (end - now) / 1000000 + 1;
        doze(fd, ms > 1000 ? 1000 : (int)ms);
    }
    if (fd >= 0)
        close(fd);
    if (hung)
        return CPU_END_HUNG;
    if (got < 0)
        return CPU_END_UNKNOWN;
    *code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return WIFSIGNALED(status) ? CPU_END_KILLED : *code == 0 ? CPU_END_GOOD : CPU_END_BAD;
}
