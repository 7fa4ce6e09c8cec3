/* bench_cpu_backend.c - what the native CPU backend itself costs: replay of empty and of short dispatches, compiling and
 * loading kernels. Usage: FORNAX_CPU_THREADS=2 bench_cpu_backend [kernels]; the cache is a new folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fornax/backend.h"

static const fx_backend *cpu;
static fx_bdevice *dev;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(fx_status st) {
    if (st != FX_OK) {
        fprintf(stderr, "%s\n", fx_last_error());
        exit(1);
    }
}

#define HEAD "void FX_KERNEL(const unsigned long *a, const unsigned *g, unsigned first, unsigned last) { "

/* Median time of a dispatch, in a list of `n`. */
static void replay(const char *what, const char *text, uint32_t groups, uint64_t words) {
    enum { N = 1000, RUNS = 21 };
    fx_kernel_source s = {.name = what, .source = text, .source_bytes = strlen(text), .n_args = 2, .workgroup = {1, 1, 1}};
    fx_kernel *k;
    fx_cmds *c;
    fx_mem m;
    double best = 1e9, times[RUNS];
    must(cpu->mem_alloc(dev, words * 4 * groups + 4, FX_MEM_DEVICE, &m));
    memset(m.host, 0, m.bytes);
    must(cpu->kernels_create(dev, 1, &s, &k, NULL));
    must(cpu->cmds_begin(dev, &c));
    for (int i = 0; i < N; i++)
        must(cpu->cmds_dispatch(c, k, (uint64_t[2]){m.address, words}, 2, (uint32_t[3]){groups, 1, 1}));
    must(cpu->cmds_end(c));
    for (int r = 0; r < RUNS; r++) {
        uint64_t ticket;
        double start = now();
        must(cpu->submit(dev, 1, &c, &ticket));
        must(cpu->wait(dev, ticket, UINT64_MAX, NULL));
        times[r] = (now() - start) / N * 1e6;
        best = times[r] < best ? times[r] : best;
    }
    for (int i = 0; i < RUNS; i++)
        for (int j = i + 1; j < RUNS; j++)
            if (times[j] < times[i]) {
                double t = times[i];
                times[i] = times[j];
                times[j] = t;
            }
    printf("%-44s %6u groups: median %7.3f us, best %7.3f us a dispatch\n", what, groups, times[RUNS / 2], best);
    cpu->cmds_destroy(c);
    cpu->kernel_destroy(dev, k);
    cpu->mem_free(dev, &m);
}

static void compile(int n, const char *folder) {
    char(*texts)[400] = calloc((size_t)n, sizeof *texts);
    fx_kernel_source *s = calloc((size_t)n, sizeof *s);
    fx_kernel **k = calloc((size_t)n, sizeof *k);
    for (int i = 0; i < n; i++) {
        snprintf(texts[i], sizeof texts[i],
                 HEAD "float *p = (float *)a[0], *q = (float *)a[1]; for (unsigned w = first; w < last; w++) for (int l = 0; "
                      "l < 1024; l++) q[w * 1024 + l] = p[w * 1024 + l] * %d.0f + p[l] / (1.0f + q[l]); }",
                 i);
        s[i] = (fx_kernel_source){.name = "k", .source = texts[i], .source_bytes = strlen(texts[i]), .n_args = 2};
    }
    for (int pass = 0; pass < 2; pass++) {
        int cached;
        double start = now();
        must(cpu->kernels_create(dev, n, s, k, &cached));
        printf("%d kernels, %d of them from the cache: %.1f ms\n", n, cached, (now() - start) * 1e3);
        for (int i = 0; i < n; i++)
            cpu->kernel_destroy(dev, k[i]);
        cpu->close(dev); /* closes the kernels that it keeps */
        must(cpu->open(0, folder, &dev, NULL));
    }
    free(texts);
    free(s);
    free(k);
}

int main(int argc, char **argv) {
    const char *reason = NULL;
    char folder[] = "/tmp/fornax-bench-XXXXXX", command[64];
    fx_device_caps caps;
    for (int i = 0; i < fx_backend_registry_count; i++)
        if (strcmp(fx_backend_registry[i].name, "cpu") == 0)
            cpu = fx_backend_registry[i].get(&reason);
    if (!cpu || !mkdtemp(folder)) {
        fprintf(stderr, "no device cpu in this build, or no folder\n");
        return 1;
    }
    double start = now();
    must(cpu->open(0, folder, &dev, &caps));
    printf("opened in %.1f ms, %u threads\n", (now() - start) * 1e3, caps.units);
    replay("empty", HEAD "}", 1, 0);
    replay("empty", HEAD "}", 64, 0);
    static const char add[] = HEAD "float *p = (float *)a[0]; unsigned n = a[1]; for (unsigned i = first * n; i < last * n; "
                                   "i++) p[i] += 1.0f; }";
    replay("add 1 to 256 floats a group", add, 64, 256);
    replay("add 1 to 1024 floats a group", add, 64, 1024);
    replay("add 1 to 1024 floats a group", add, 1024, 1024);
    compile(argc > 1 ? atoi(argv[1]) : 52, folder);
    cpu->close(dev);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0;
}
