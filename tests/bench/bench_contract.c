/* bench_contract.c - GF/s of products: each schedule of the compiler on a Vulkan device, and OpenBLAS where it is
 * found.
 *
 * usage: bench_contract [-d DEVICE] [-r ROUNDS] [-s] [FILTER]
 *
 * Rounds go over the contestants in turn, so that a change of the machine's speed meets all; a figure is the
 * median of the rounds. -s prints the kernels' compile times. `cpu` is the work over (processor seconds / cores): what
 * the wall clock would say on an idle machine. OpenBLAS may pick a slow kernel for a processor it doesn't know: set
 * OPENBLAS_CORETYPE (SKYLAKEX, ZEN, ...). */
#include <math.h>
#include <time.h>
#include <unistd.h>

#include "../vulkan_device.h"
#include "core/compile/program.h"
#include "core/graph/graph.h"
#undef OK
#define OK(expr) ((expr) == FX_OK ? (void)0 : (void)(printf("%s: %s\n", #expr, fx_last_error()), exit(1)))
#ifdef FX_HAVE_CBLAS
#include <cblas.h>
#endif

typedef struct product {
    const char *name, *text;
    int64_t m, n, k, batch;
    char ta, tb; /* for OpenBLAS; 0: leave out */
} product;

#define NN(m, n, k)                                                                     \
    "graph(%a: f32[" #m "," #k "], %b: f32[" #k "," #n "]) { %c = dot_general(%a, %b) " \
    "{lhs_contract=[1], rhs_contract=[0]} return %c }"
#define NT(m, n, k)                                                                     \
    "graph(%a: f32[" #m "," #k "], %b: f32[" #n "," #k "]) { %c = dot_general(%a, %b) " \
    "{lhs_contract=[1], rhs_contract=[1]} return %c }"
#define TN(m, n, k)                                                                     \
    "graph(%a: f32[" #k "," #m "], %b: f32[" #k "," #n "]) { %c = dot_general(%a, %b) " \
    "{lhs_contract=[0], rhs_contract=[0]} return %c }"
#define TT(m, n, k)                                                                     \
    "graph(%a: f32[" #k "," #m "], %b: f32[" #n "," #k "]) { %c = dot_general(%a, %b) " \
    "{lhs_contract=[0], rhs_contract=[1]} return %c }"
#define BATCH(z, a, b, la, lb)                                                        \
    "graph(%a: f32[" #z "," a "], %b: f32[" #z "," b "]) { %c = dot_general(%a, %b) " \
    "{lhs_batch=[0], rhs_batch=[0], lhs_contract=[" #la "], rhs_contract=[" #lb "]} return %c }"

static const product products[] = {
    {"square NN 512", NN(512, 512, 512), 512, 512, 512, 1, 'n', 'n'},
    {"square NT 512", NT(512, 512, 512), 512, 512, 512, 1, 'n', 't'},
    {"square TN 512", TN(512, 512, 512), 512, 512, 512, 1, 't', 'n'},
    {"square TT 512", TT(512, 512, 512), 512, 512, 512, 1, 't', 't'},
    {"mlp NN 1576x768x192", NN(1576, 768, 192), 1576, 768, 192, 1, 'n', 'n'},
    {"mlp dA NT 1576x192x768", NT(1576, 192, 768), 1576, 192, 768, 1, 'n', 't'},
    {"mlp dB TN 192x768x1576", TN(192, 768, 1576), 192, 768, 1576, 1, 't', 'n'},
    {"scores NT 24x197x197x64", BATCH(24, "197,64", "197,64", 2, 2), 197, 197, 64, 24, 'n', 't'},
    {"values NN 24x197x64x197", BATCH(24, "197,197", "197,64", 2, 1), 197, 64, 197, 24, 'n', 'n'},
    {"dV TN 24x197x64x197", BATCH(24, "197,197", "197,64", 1, 1), 197, 64, 197, 24, 't', 'n'},
    {"views NT 24x197x197x64",
     "graph(%x: f32[8,197,576]) { %r = reshape(%x) {shape=[8,197,3,3,64]} "
     "%q0 = slice(%r) {start=[0,0,0,0,0], limit=[8,197,1,3,64], strides=[1,1,1,1,1]} "
     "%k0 = slice(%r) {start=[0,0,1,0,0], limit=[8,197,2,3,64], strides=[1,1,1,1,1]} "
     "%q = reshape(%q0) {shape=[8,197,3,64]} %k = reshape(%k0) {shape=[8,197,3,64]} "
     "%c = dot_general(%q, %k) {lhs_batch=[0,2], rhs_batch=[0,2], lhs_contract=[3], rhs_contract=[3]} return %c }",
     197, 197, 64, 24, 0, 0},
    {"tall NN 2080x192x48", NN(2080, 192, 48), 2080, 192, 48, 1, 'n', 'n'},
    {"head NN 64x10x192", NN(64, 10, 192), 64, 10, 192, 1, 'n', 'n'},
    {"vector NN 1x1024x1024", NN(1, 1024, 1024), 1, 1024, 1024, 1, 'n', 'n'},
    {"bf16 NN 512",
     "graph(%a: bf16[512,512], %b: bf16[512,512]) { %c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[0]} "
     "return %c }",
     512, 512, 512, 1, 0, 0},
    {"f16 NT 512",
     "graph(%a: f16[512,512], %b: f16[512,512]) { %c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[1]} "
     "return %c }",
     512, 512, 512, 1, 0, 0},
    {"f64 NN 256",
     "graph(%a: f64[256,256], %b: f64[256,256]) { %c = dot_general(%a, %b) {lhs_contract=[1], rhs_contract=[0]} "
     "return %c }",
     256, 256, 256, 1, 0, 0},
    {"conv 16x14x14x64 3x3x64",
     "graph(%x: f32[16,14,14,64], %w: f32[3,3,64,64]) { %y = convolution(%x, %w) {lhs_spec=[0,3,1,2], "
     "rhs_spec=[3,2,0,1], out_spec=[0,3,1,2], strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], "
     "rhs_dilation=[1,1], feature_groups=1, batch_groups=1, window_reversal=[0,0]} return %y }",
     3136, 64, 576, 1, 0, 0},
    {"conv NCHW 16x64x14x14 3x3",
     "graph(%x: f32[16,64,14,14], %w: f32[64,64,3,3]) { %y = convolution(%x, %w) {lhs_spec=[0,1,2,3], "
     "rhs_spec=[0,1,2,3], out_spec=[0,1,2,3], strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], "
     "rhs_dilation=[1,1], feature_groups=1, batch_groups=1, window_reversal=[0,0]} return %y }",
     3136, 64, 576, 1, 0, 0},
};

typedef struct contestant {
    const char *name;
    fx_contract_choice choice;
    fx_program *p;
    fx_kernel *kernel;
    fx_mem mem[8];
    fx_cmds *cmds;
    int repeat, n;
    double wall[64], cpu[64], compile;
    const char *schedule;
} contestant;

static struct {
    fx_bdevice *d;
    fx_device_caps caps;
} dev;
static double cores;

static double now(clockid_t c) {
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_double(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, compare_double);
    return n ? v[n / 2] : 0;
}

static void submit(contestant *c) {
    uint64_t ticket;
    bool done;
    OK(vk->submit(dev.d, 1, &c->cmds, &ticket));
    OK(vk->wait(dev.d, ticket, UINT64_MAX, &done));
}

static void record(contestant *c, int repeat) {
    const fx_step *s = &c->p->steps[0];
    uint64_t args[8];
    if (c->cmds)
        vk->cmds_destroy(c->cmds);
    for (int j = 0; j < s->n_arg; j++)
        args[j] = c->mem[s->args[j].buffer].address;
    OK(vk->cmds_begin(dev.d, &c->cmds));
    for (int i = 0; i < repeat; i++) {
        OK(vk->cmds_dispatch(c->cmds, c->kernel, args, (uint32_t)s->n_arg, s->groups));
        OK(vk->cmds_barrier(c->cmds));
    }
    OK(vk->cmds_end(c->cmds));
    c->repeat = repeat;
}

static bool prepare(contestant *c, const product *p) {
    fx_graph *g;
    fx_lower_options opt = {.contract = c->choice};
    OK(fx_graph_parse(p->text, strlen(p->text), &g));
    fx_status st = fx_program_create(g, &dev.caps, &opt, &c->p);
    fx_graph_unref(g);
    if (st != FX_OK) {
        printf("%s: %s\n", c->name, fx_last_error());
        return false;
    }
    c->schedule = c->p->steps[0].schedule;
    if (c->p->n_step != 1 || (c->choice != FX_CONTRACT_AUTO && !strstr(c->schedule, c->name)))
        return false;
    double t0 = now(CLOCK_MONOTONIC);
    OK(vk->kernels_create(dev.d, 1, &c->p->kernels[0].source, &c->kernel, NULL));
    for (int i = 0; i < c->p->n_buffer; i++) {
        const fx_buffer *b = &c->p->buffers[i];
        OK(vk->mem_alloc(dev.d, b->bytes, FX_MEM_DEVICE, &c->mem[i]));
        float *x = malloc(b->bytes + 16);
        for (uint64_t j = 0; j < b->bytes / 4; j++) /* also sensible as pairs of bf16, and no f64 subnormals */
            x[j] = b->spec.dtype == FX_F16 ? 0.0078125f : (float)((int)(j * 7919 % 201) - 100) / 64.0f;
        OK(vk->upload(dev.d, &c->mem[i], 0, x, b->bytes, NULL));
        free(x);
    }
    record(c, 1);
    submit(c);
    double t1 = now(CLOCK_MONOTONIC);
    submit(c);
    double t2 = now(CLOCK_MONOTONIC);
    c->compile = (t1 - t0) - (t2 - t1);
    int repeat = (int)(0.03 / (t2 - t1 + 1e-6));
    record(c, repeat < 1 ? 1 : repeat > 200 ? 200 : repeat);
    return true;
}

static void round_of(contestant *c) {
    double w = now(CLOCK_MONOTONIC), u = now(CLOCK_PROCESS_CPUTIME_ID);
    submit(c);
    c->wall[c->n] = (now(CLOCK_MONOTONIC) - w) / c->repeat;
    c->cpu[c->n++] = (now(CLOCK_PROCESS_CPUTIME_ID) - u) / c->repeat / cores;
}

static void discard(contestant *c) {
    if (c->cmds)
        vk->cmds_destroy(c->cmds);
    if (c->kernel)
        vk->kernel_destroy(dev.d, c->kernel);
    for (int i = 0; c->p && i < c->p->n_buffer; i++)
        vk->mem_free(dev.d, &c->mem[i]);
    fx_program_destroy(c->p);
}

static double openblas(const product *p, int rounds) {
#ifdef FX_HAVE_CBLAS
    int m = (int)p->m, n = (int)p->n, k = (int)p->k;
    float *a = calloc((size_t)(m * k), 4), *b = calloc((size_t)(n * k), 4), *c = calloc((size_t)(m * n), 4);
    double t[64];
    for (int r = -1; r < rounds; r++) {
        double w = now(CLOCK_MONOTONIC);
        for (int z = 0; z < (int)p->batch; z++)
            cblas_sgemm(CblasRowMajor, p->ta == 't' ? CblasTrans : CblasNoTrans,
                        p->tb == 't' ? CblasTrans : CblasNoTrans, m, n, k, 1, a, p->ta == 't' ? m : k, b,
                        p->tb == 't' ? k : n, 0, c, n);
        if (r >= 0)
            t[r] = now(CLOCK_MONOTONIC) - w;
    }
    free(a);
    free(b);
    free(c);
    return median(t, rounds);
#else
    (void)p;
    (void)rounds;
    return 0;
#endif
}

int main(int argc, char **argv) {
    int device = 0, rounds = 7, opt;
    bool compile_times = false;
    while ((opt = getopt(argc, argv, "d:r:s")) != -1) {
        if (opt == 'd')
            device = atoi(optarg);
        else if (opt == 'r')
            rounds = atoi(optarg) < 63 ? atoi(optarg) : 63;
        else
            compile_times = true;
    }
    const char *filter = optind < argc ? argv[optind] : "";
    cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (!find_vulkan() || vk->open(device, NULL, &dev.d, &dev.caps) != FX_OK)
        return 77;
    printf("subgroups of %u; %d rounds; GF/s wall (cpu)%s\n", dev.caps.subgroup_size, rounds,
           compile_times ? ", ms to compile" : "");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        if (!strstr(p->name, filter))
            continue;
        contestant c[] = {{.name = "auto", .choice = FX_CONTRACT_AUTO},
                          {.name = "naive", .choice = FX_CONTRACT_NAIVE},
                          {.name = "subgroup", .choice = FX_CONTRACT_SUBGROUP},
                          {.name = "shared", .choice = FX_CONTRACT_SHARED}};
        enum { N = sizeof c / sizeof *c };
        bool live[N];
        double flops = 2.0 * (double)(p->m * p->n * p->k * p->batch);
        for (int j = 0; j < N; j++)
            live[j] = prepare(&c[j], p);
        for (int r = 0; r < rounds; r++)
            for (int j = 0; j < N; j++)
                if (live[j])
                    round_of(&c[j]);
        printf("%-26s", p->name);
        for (int j = 0; j < N; j++) {
            if (live[j]) {
                printf("  %s %.1f (%.1f)", j ? c[j].name : c[j].schedule, flops / median(c[j].wall, rounds) / 1e9,
                       flops / median(c[j].cpu, rounds) / 1e9);
                if (compile_times)
                    printf(" %.0f ms", 1e3 * c[j].compile);
            }
            discard(&c[j]);
        }
        if (p->ta && openblas(p, 1) > 0)
            printf("  openblas %.1f", flops / openblas(p, rounds) / 1e9);
        printf("\n");
    }
    vk->close(dev.d);
    return 0;
}
