/* bench_start.c - how long a training step takes from the start of a process until it can run: the first process, with
 * empty caches of the library and of Mesa's drivers, and the ones after it.
 *
 * usage: bench_start [--processes N] [--run] [--device URI] [--json] and vit_step.h's options; by default ViT-Base/16
 * at 224, batch 8, SGD, three processes. Caches live in a folder of their own that is removed. A process opens the
 * device, traces and differentiates, and compiles: kernels to SPIR-V and pipelines. Some drivers compile at a kernel's
 * first run: with --run the time of a first run beyond that of a second is told too. */
#include "vit_step.h"

#include <ftw.h>
#include <sys/wait.h>
#include <unistd.h>

#include "examples/vit/vit.c"

enum { MOST = 16 };

typedef struct times {
    double open, trace, compile, cpu, first_run;
    int cached, distinct;
} times;

static double run_once(vit_step *s, fx_device *d) {
    const vit_config *c = &s->config;
    int n = fx_model_n_param(s->model), state = fx_train_step_state_count(s->model, &s->optimizer), at = n + state;
    fx_array **in = calloc((size_t)at + 4, sizeof *in), **out = calloc((size_t)at + 4, sizeof *out);
    int32_t *labels = calloc((size_t)s->batch, sizeof *labels), step = 0;
    float rate = 1e-3f;
    for (int i = 0; i < at; i++)
        OK(fx_array_create(d, fx_model_param_spec(s->model, i < n ? i : (i - n) * n / state), NULL, &in[i]));
    OK(fx_array_create(d, FX_SPEC0(FX_S32), &step, &in[at]));
    OK(fx_array_create(d, FX_SPEC0(FX_F32), &rate, &in[at + 1]));
    OK(fx_array_create(d, FX_SPEC(FX_F32, s->batch, c->height, c->width_px, c->channels), NULL, &in[at + 2]));
    OK(fx_array_create(d, FX_SPEC(FX_S32, s->batch), labels, &in[at + 3]));
    double start = vit_step_now();
    OK(fx_run(s->exec, in, out));
    OK(fx_wait(s->exec));
    double passed = vit_step_now() - start;
    for (int i = 0; i < 4; i++)
        fx_array_unref(in[at + i]);
    for (int i = 0; i < at + 2; i++)
        fx_array_unref(out[i]);
    free(in);
    free(out);
    free(labels);
    return passed;
}

/* In the child. */
static void measure(vit_step *s, const char *uri, bool run, int to) {
    times t = {0};
    fx_context *cx;
    fx_exec_stats_t e;
    double start = vit_step_now();
    OK(fx_init(NULL, &cx));
    fx_device *d = fx_default_device(cx);
    fx_array *probe;
    float zero = 0;
    if (uri)
        OK(fx_device_find(cx, uri, &d));
    OK(fx_array_create(d, FX_SPEC0(FX_F32), &zero, &probe)); /* opens the device */
    fx_array_unref(probe);
    t.open = vit_step_now() - start;
    vit_step_open(s, d);
    t.trace = s->trace_seconds;
    t.compile = s->compile_seconds;
    t.cpu = s->compile_cpu;
    OK(fx_exec_stats(s->exec, &e));
    t.cached = e.cached_kernels;
    t.distinct = e.distinct_kernels;
    if (run) {
        double first = run_once(s, d), second = run_once(s, d);
        t.first_run = first > second ? first - second : 0;
    }
    vit_step_close(s);
    fx_shutdown(cx);
    if (write(to, &t, sizeof t) != (ssize_t)sizeof t)
        exit(1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void show(const times *t, int i, bool json, bool run, bool last) {
    if (json) {
        printf("  {\"open\": %.4f, \"trace\": %.4f, \"compile\": %.4f, \"compile_cpu\": %.4f, \"driver\": ", t->open,
               t->trace, t->compile, t->cpu);
        run ? printf("%.4f", t->first_run) : printf("null");
        printf(", \"cached_kernels\": %d, \"distinct_kernels\": %d}%s\n", t->cached, t->distinct, last ? "" : ",");
        return;
    }
    printf("process %d: open %.3f s, trace %.3f s, compile %.3f s, %.3f s of CPU (%d of %d kernels from the cache)",
           i + 1, t->open, t->trace, t->compile, t->cpu, t->cached, t->distinct);
    run ? printf(", first run beyond the second %.3f s\n", t->first_run) : printf("\n");
}

int main(int argc, char **argv) {
    vit_step s;
    const char *uri = NULL;
    bool json = false, run = false;
    int n = 3, status;
    times t[MOST];
    vit_step_defaults(&s);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--run")) {
            run = true;
        } else if (!strcmp(argv[i], "--device") && argv[i + 1]) {
            uri = argv[++i];
        } else if (!strcmp(argv[i], "--processes") && argv[i + 1]) {
            n = (int)vit_step_number(argv[i], argv[i + 1]);
            n = n < MOST ? n : MOST;
            i++;
        } else if (!vit_step_option(&s, argv, &i)) {
            fprintf(stderr, "usage: bench_start " VIT_STEP_USAGE " [--processes N] [--run] [--device URI] [--json]\n");
            return 2;
        }
    char folder[] = "/tmp/bench_start.XXXXXX", mesa[64];
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(mesa, sizeof mesa, "%s/mesa", folder);
    setenv("FORNAX_CACHE_DIR", folder, 1);
    setenv("MESA_SHADER_CACHE_DIR", mesa, 1);
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        int pipes[2];
        good = pipe(pipes) == 0;
        pid_t child = good ? fork() : -1; /* before any thread or driver is there */
        if (child == 0) {
            measure(&s, uri, run, pipes[1]);
            exit(0);
        }
        good = child > 0 && (close(pipes[1]), read(pipes[0], &t[i], sizeof t[i])) == (ssize_t)sizeof t[i];
        if (child > 0)
            good &= waitpid(child, &status, 0) == child && status == 0;
        close(pipes[0]);
    }
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (!good)
        return 1;
    if (json)
        printf("{\"bench\": \"start\", \"model\": \"%s\", \"batch\": %lld, \"processes\": [\n", s.name,
               (long long)s.batch);
    for (int i = 0; i < n; i++)
        show(&t[i], i, json, run, i + 1 == n);
    if (json)
        printf("]}\n");
    else if (n > 1)
        printf("the second compiles in 1/%.1f of the first's time%s\n",
               (t[0].compile + t[0].first_run) / (t[1].compile + t[1].first_run), run ? ", drivers included" : "");
    return 0;
}
