/* cpu_probe.c - facts about this machine and what of it this process may use: affinity and control groups count. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_cpu/cpu.h"
#include "core/base/env.h"

enum { PATH_SIZE = 4096 };

/* The text after "key   : " when the line begins with the key. */
static const char *value(const char *line, const char *key) {
    size_t n = strlen(key);
    if (strncmp(line, key, n) != 0)
        return NULL;
    line += n;
    line += strspn(line, " \t");
    return *line == ':' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

void fx_cpu_model(char *name, size_t size, uint64_t *features) {
    static const char *const names[] = {"model name", "Model", "uarch", "cpu"};
    /* What distinguishes processors in what the compiler makes of "native". */
    static const char *const facts[] = {"flags",           "Features", "vendor_id", "cpu family", "model", "stepping",
                                        "CPU implementer", "CPU part", "isa"};
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "re");
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    snprintf(name, size, "processor");
    while (f && getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (!*line && found)
            break; /* the first processor's paragraph */
        for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
            const char *v = value(line, names[i]);
            if (v && *v) {
                snprintf(name, size, "%s", v);
                found = true;
            }
        }
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
            if (value(line, facts[i]))
                XXH64_update(&state, line, strlen(line));
    }
    free(line);
    if (f)
        fclose(f);
    *features = XXH64_digest(&state);
}

/* Reads a small file of one or two numbers, "max" being none. */
static int numbers(const char *path, double out[2]) {
    char text[128];
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(text, " \n", &rest); word && count < 2; word = strtok_r(NULL, " \n", &rest), count++)
        if (!fx_parse_number(word, &out[count]))
            out[count] = -1;
    return count;
}

/* Calls f for the control group that holds this process and for each above it, by the path of its folder. The second
 * version has one tree, the first one a controller. */
static void each_group(const char *controller, void (*f)(const char *folder, bool second, double *out), double *out) {
    char *line = NULL;
    size_t room = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && getline(&line, &room, file) > 0) {
        char folder[PATH_SIZE], *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path)
            continue;
        *list++ = *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        bool second = !*list, ours = second;
        char *rest = NULL;
        for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
            ours |= strcmp(word, controller) == 0;
        size_t root = strlen("/sys/fs/cgroup") + (second ? 0 : 1 + strlen(controller));
        int n = snprintf(folder, sizeof folder, "/sys/fs/cgroup%s%s%s", second ? "" : "/", second ? "" : controller,
                         strcmp(path, "/") ? path : "");
        if (!ours || n < 0 || (size_t)n >= sizeof folder - 64)
            continue;
        for (;;) {
            f(folder, second, out);
            char *slash = strrchr(folder, '/');
            if (strlen(folder) <= root || !slash)
                break;
            *slash = '\0';
        }
    }
    free(line);
    if (file)
        fclose(file);
}

static void processor_limit(const char *folder, bool second, double *out) {
    char path[PATH_SIZE + 32];
    double v[2] = {-1, -1};
    if (second) {
        snprintf(path, sizeof path, "%s/cpu.max", folder);
        if (numbers(path, v) != 2)
            return;
    } else {
        double period[2] = {-1, -1};
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
        if (!numbers(path, v))
            return;
        snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
        if (!numbers(path, period))
            return;
        v[1] = period[0];
    }
    if (v[0] > 0 && v[1] > 0 && v[0] / v[1] < *out)
        *out = v[0] / v[1];
}

static void memory_limit(const char *folder, bool second, double *out) {
    char path[PATH_SIZE + 32];
    double v[2] = {-1, -1};
    snprintf(path, sizeof path, "%s/%s", folder, second ? "memory.max" : "memory.limit_in_bytes");
    if (numbers(path, v) && v[0] > 0 && v[0] < *out)
        *out = v[0];
}

/* The affinity mask's size grows with the machine; the call says when it is too small. */
static int affinity(void) {
    for (int most = 1024; most <= 1 << 20; most *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)most);
        size_t bytes = CPU_ALLOC_SIZE((size_t)most);
        if (!set)
            break;
        int n = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0, why = errno;
        CPU_FREE(set);
        if (n > 0)
            return n;
        if (why != EINVAL)
            break;
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int fx_cpu_processors(void) {
    int n = affinity();
    double limit = n;
    each_group("cpu", processor_limit, &limit);
    int whole = (int)limit;
    whole += whole < limit;
    return whole < 1 ? 1 : whole < n ? whole : n;
}

int fx_cpu_threads(void) {
    double asked = fx_env_number(FX_ENV_cpu_threads, 0);
    if (asked >= 1)
        return asked > CPU_MAX_THREADS ? CPU_MAX_THREADS : (int)asked;
    int n = fx_cpu_processors();
    return n > CPU_MAX_THREADS ? CPU_MAX_THREADS : n;
}

uint64_t fx_cpu_memory(void) {
    struct sysinfo info;
    double limit = sysinfo(&info) == 0 ? (double)info.totalram * info.mem_unit : 0;
    if (limit > 0)
        each_group("memory", memory_limit, &limit);
    return (uint64_t)limit;
}

uint64_t fx_cpu_memory_free(void) {
    char *line = NULL;
    size_t room = 0;
    uint64_t out = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && !out && getline(&line, &room, f) > 0) {
        const char *v = value(line, "MemAvailable");
        if (v)
            out = strtoull(v, NULL, 10) * 1024;
    }
    free(line);
    if (f)
        fclose(f);
    return out;
}
