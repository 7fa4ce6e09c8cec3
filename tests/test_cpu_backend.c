/* test_cpu_backend.c - the native CPU backend through its table, with kernels written by hand: memory, order, threads,
 * compiling and what can go wrong with it, the disk cache. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fornax/backend.h"

enum { SKIPPED = 77 };

static const fx_backend *cpu;
static fx_device_info info;
static fx_bdevice *dev;
static fx_device_caps caps;
static char folder[64]; /* of a test's cache */

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

static void setup(void) {
    unsetenv("FORNAX_CC");
    unsetenv("FORNAX_CC_TIMEOUT");
    unsetenv("FORNAX_INJECT");
    setenv("FORNAX_CPU_THREADS", "2", 1);
    strcpy(folder, "/tmp/fx-test-cpu-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_tree(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char name[600];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name))
            remove_tree(name);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static void teardown(void) {
    cpu->close(dev);
    dev = NULL;
    remove_tree(folder);
}

static void open_with(const char *threads, const char *cache) {
    cpu->close(dev);
    dev = NULL;
    setenv("FORNAX_CPU_THREADS", threads, 1);
    OK(cpu->open(0, cache, &dev, &caps));
}

#define C_KERNEL(body)                                                                                            \
    "#ifndef T\n#define T\ntypedef unsigned long u64; typedef unsigned u32;\n#endif\n"                            \
    "void FX_KERNEL(const u64 *a, const u32 g[3], u32 first, u32 last) {\n"                                       \
    "    for (u32 w = first; w < last; w++) {\n" body "    }\n}\n"

/* a[0][i] = a[0][i] * 3 + 1 for the 64 elements of each workgroup below a[1] */
static const char triple_text[] =
    C_KERNEL("        u32 *p = (u32 *)a[0];\n"
             "        for (u32 l = 0; l < 64; l++) if (w * 64 + l < a[1]) p[w * 64 + l] = p[w * 64 + l] * 3 + 1;\n");

static fx_kernel_source source(const char *name, const char *text, uint32_t n_args) {
    return (fx_kernel_source){
        .name = name, .source = text, .source_bytes = strlen(text), .n_args = n_args, .workgroup = {64, 1, 1}};
}

static fx_kernel *kernel(const char *name, const char *text, uint32_t n_args) {
    fx_kernel_source s = source(name, text, n_args);
    fx_kernel *k;
    OK(cpu->kernels_create(dev, 1, &s, &k, NULL));
    return k;
}

static fx_mem alloc(uint64_t bytes) {
    fx_mem m;
    OK(cpu->mem_alloc(dev, bytes, FX_MEM_DEVICE, &m));
    ck_assert_uint_ge(m.bytes, bytes);
    ck_assert_uint_eq(m.address % 64, 0);
    ck_assert_uint_eq(m.address, (uint64_t)(uintptr_t)m.host);
    return m;
}

/* A finished list of `n` dispatches of k on m with barriers between them. */
static fx_cmds *chain(fx_kernel *k, const fx_mem *m, uint32_t words, int n) {
    fx_cmds *c;
    OK(cpu->cmds_begin(dev, &c));
    for (int i = 0; i < n; i++) {
        uint64_t args[2] = {m->address, words};
        uint32_t groups[3] = {(words + 63) / 64, 1, 1};
        if (i)
            OK(cpu->cmds_barrier(c));
        OK(cpu->cmds_dispatch(c, k, args, 2, groups));
    }
    OK(cpu->cmds_end(c));
    return c;
}

static void run(fx_cmds *c) {
    uint64_t ticket;
    bool finished;
    OK(cpu->submit(dev, 1, &c, &ticket));
    OK(cpu->wait(dev, ticket, UINT64_MAX, &finished));
    ck_assert(finished);
}

START_TEST(the_device_says_what_it_is) {
    ck_assert_int_eq(info.kind, FX_DEVICE_CPU);
    ck_assert(info.usable);
    ck_assert_uint_gt(strlen(info.name), 3);
    ck_assert_uint_gt(strlen(info.driver), 3);
    ck_assert_uint_gt(info.memory_bytes, 1 << 20);
    open_with("3", NULL);
    ck_assert_int_eq(caps.language, FX_LANGUAGE_C);
    ck_assert_uint_eq(caps.units, 3);
    fx_bdevice *other = NULL;
    ck_assert_int_eq(cpu->open(1, NULL, &other, NULL), FX_NOT_FOUND);
    ck_assert_ptr_null(other);
}
END_TEST

START_TEST(kernels_run) {
    open_with("2", NULL);
    enum { N = 1000 };
    uint32_t in[N], out[N];
    fx_mem m = alloc(sizeof in);
    fx_kernel *k = kernel("triple", triple_text, 2);
    for (uint32_t i = 0; i < N; i++)
        in[i] = i;
    OK(cpu->upload(dev, &m, 0, in, sizeof in, NULL));
    fx_cmds *c = chain(k, &m, N, 3);
    run(c);
    run(c);
    OK(cpu->download(dev, &m, 0, out, sizeof out));
    for (uint32_t i = 0; i < N; i++)
        ck_assert_uint_eq(out[i], i * 729 + 364);
    cpu->cmds_destroy(c);
    cpu->kernel_destroy(dev, k);
    cpu->mem_free(dev, &m);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("cpu_backend");
    TCase *c = tcase_create("cpu");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, the_device_says_what_it_is);
    tcase_add_test(c, kernels_run);
    suite_add_tcase(s, c);
    return s;
}

int main(void) {
    const char *reason = "the build has no cpu backend";
    int n = 0;
    for (int i = 0; i < fx_backend_registry_count; i++)
        if (strcmp(fx_backend_registry[i].name, "cpu") == 0)
            cpu = fx_backend_registry[i].get(&reason);
    if (!cpu || cpu->enumerate(&info, 1, &n, &reason) != FX_OK || n != 1 || !info.usable) {
        printf("SKIPPED: no device cpu: %s\n", info.reason[0] ? info.reason : reason);
        return SKIPPED;
    }
    printf("cpu:0 %s, %s\n", info.name, info.driver);
    SRunner *r = srunner_create(suite());
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
