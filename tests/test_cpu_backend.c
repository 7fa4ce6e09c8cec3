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

/* Each element becomes a hash of its index, of the grid and of nothing else: any split must give the same bits. */
static const char grid_text[] = C_KERNEL(
    "        u32 x = w % g[0], y = w / g[0] % g[1], z = w / g[0] / g[1]; float s = 0;\n"
    "        for (u32 l = 0; l < 64; l++) s += 1.0f / (float)(1 + x * 3 + y * 5 + z * 7 + l);\n"
    "        ((float *)a[0])[w] = s;\n");

START_TEST(every_number_of_threads_gives_the_same_bits) {
    static const char *const threads[] = {"1", "2", "7"};
    enum { X = 37, Y = 11, Z = 9, N = X * Y * Z };
    static float first[N], out[N];
    for (int t = 0; t < 3; t++) {
        open_with(threads[t], folder);
        ck_assert_uint_eq(caps.units, strtoul(threads[t], NULL, 10));
        fx_mem m = alloc(sizeof out);
        fx_kernel *k = kernel("grid", grid_text, 1);
        fx_cmds *c;
        OK(cpu->cmds_begin(dev, &c));
        for (int i = 0; i < 20; i++) {
            OK(cpu->cmds_fill(c, &m, 0, sizeof out, 0x7fc00000));
            OK(cpu->cmds_barrier(c));
            OK(cpu->cmds_dispatch(c, k, &m.address, 1, (uint32_t[3]){X, Y, Z}));
            OK(cpu->cmds_barrier(c));
        }
        OK(cpu->cmds_dispatch(c, k, &m.address, 1, (uint32_t[3]){0, Y, Z})); /* nothing */
        OK(cpu->cmds_end(c));
        for (int i = 0; i < 10; i++)
            run(c);
        OK(cpu->download(dev, &m, 0, out, sizeof out));
        for (int i = 0; i < N; i++)
            ck_assert(isfinite(out[i]));
        if (t == 0)
            memcpy(first, out, sizeof out);
        ck_assert_mem_eq(first, out, sizeof out);
        cpu->cmds_destroy(c);
        cpu->kernel_destroy(dev, k);
        cpu->mem_free(dev, &m);
    }
}
END_TEST

START_TEST(copies_and_fills_reach_exactly_their_range) {
    enum { N = 3 << 20, AT = 4100 }; /* several pieces */
    open_with("2", NULL);
    unsigned char *in = malloc(N), *out = malloc(N);
    fx_mem a = alloc(N), b = alloc(N);
    fx_cmds *c;
    for (int i = 0; i < N; i++)
        in[i] = (unsigned char)((uint32_t)i * 2654435761u >> 13);
    OK(cpu->upload(dev, &a, 0, in, N, NULL));
    OK(cpu->cmds_begin(dev, &c));
    OK(cpu->cmds_fill(c, &b, 0, N, 0x01020304));
    OK(cpu->cmds_copy(c, &b, AT + 1, &a, 3, N - AT - 9));
    OK(cpu->cmds_copy(c, &b, 0, &a, 0, 0));
    OK(cpu->cmds_fill(c, &b, 8, 4, 0xffffffff));
    ck_assert_int_eq(cpu->cmds_fill(c, &b, 2, 4, 0), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(cpu->cmds_fill(c, &b, N - 4, 8, 0), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(cpu->cmds_copy(c, &b, 0, &a, 1, N), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(cpu->cmds_copy(c, &b, 0, &b, 100, 101), FX_INVALID_ARGUMENT);
    OK(cpu->cmds_end(c));
    ck_assert_int_eq(cpu->cmds_barrier(c), FX_INVALID_ARGUMENT);
    run(c);
    OK(cpu->download(dev, &b, 0, out, N));
    for (int i = 0; i < N; i++) {
        int want = i >= 8 && i < 12 ? 255 : i > AT && i < N - 8 ? in[i - AT - 1 + 3] : 4 - i % 4;
        ck_assert_int_eq(out[i], want);
    }
    cpu->cmds_destroy(c);
    cpu->mem_free(dev, &a);
    cpu->mem_free(dev, &b);
    free(in);
    free(out);
}
END_TEST

/* Adds 1 to a[0] once a[1] is 1; the test can hold it back. */
static const char gate_text[] = C_KERNEL("        while (!__atomic_load_n((u32 *)a[1], __ATOMIC_ACQUIRE));\n"
                                         "        ++*(u32 *)a[0];\n");

START_TEST(work_is_ordered_and_waiting_ends_in_time) {
    open_with("2", NULL);
    fx_mem m = alloc(8);
    uint32_t *word = m.host, seven = 7, ten = 10, got;
    uint64_t first, second, third, all;
    bool finished = true;
    word[0] = 0;
    __atomic_store_n(&word[1], 0, __ATOMIC_RELEASE);
    fx_kernel *gate = kernel("gate", gate_text, 2);
    fx_cmds *c;
    OK(cpu->cmds_begin(dev, &c));
    OK(cpu->cmds_timestamp(c));
    OK(cpu->cmds_dispatch(c, gate, (uint64_t[2]){m.address, m.address + 4}, 2, (uint32_t[3]){1, 1, 1}));
    OK(cpu->cmds_timestamp(c));
    ck_assert_int_eq(cpu->submit(dev, 1, &c, NULL), FX_INVALID_ARGUMENT); /* not ended */
    OK(cpu->cmds_end(c));
    uint64_t stamps[3], device_ns, host_ns;
    int count;
    ck_assert_int_eq(cpu->cmds_read_timestamps(c, stamps, 3, &count), FX_INVALID_ARGUMENT); /* never submitted */
    OK(cpu->submit(dev, 1, &c, &first));
    OK(cpu->wait(dev, first, 0, &finished));
    ck_assert(!finished);
    OK(cpu->wait(dev, first, 2000000, &finished));
    ck_assert(!finished);
    OK(cpu->upload(dev, &m, 0, &seven, 4, &second)); /* after the dispatch, from bytes that are held */
    seven = 99;
    OK(cpu->submit(dev, 1, &c, &third));
    OK(cpu->submit(dev, 0, NULL, &all));
    ck_assert_uint_lt(first, second);
    ck_assert_uint_lt(second, third);
    ck_assert_uint_eq(third, all);
    ck_assert_int_eq(cpu->wait(dev, all + 1, UINT64_MAX, &finished), FX_INVALID_ARGUMENT);
    __atomic_store_n(&word[1], 1, __ATOMIC_RELEASE);
    OK(cpu->download(dev, &m, 0, &got, 4));
    ck_assert_uint_eq(got, 8);
    OK(cpu->wait(dev, all, 0, &finished));
    ck_assert(finished);
    OK(cpu->upload_after(dev, all, &m, 0, &ten, 4, &second));
    OK(cpu->wait(dev, second, 0, &finished));
    ck_assert(finished);
    ck_assert_uint_eq(word[0], 10);
    OK(cpu->cmds_read_timestamps(c, stamps, 3, &count));
    OK(cpu->clock_pair(dev, &device_ns, &host_ns));
    ck_assert_int_eq(count, 2);
    ck_assert_uint_le(stamps[0], stamps[1]);
    ck_assert_uint_le(stamps[1], device_ns);
    cpu->cmds_destroy(c);
    cpu->kernel_destroy(dev, gate);
    cpu->mem_free(dev, &m);
}
END_TEST

START_TEST(memory_has_an_end) {
    open_with("2", NULL);
    fx_mem m, large = alloc(40 << 20);
    fx_mem_stats s;
    ck_assert_int_eq(cpu->mem_alloc(dev, UINT64_MAX - 100, FX_MEM_DEVICE, &m), FX_OUT_OF_MEMORY);
    ck_assert_int_eq(cpu->mem_alloc(dev, caps.max_allocation, FX_MEM_DEVICE, &m), FX_OUT_OF_MEMORY); /* with the large one */
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "bytes asked"));
    ck_assert_ptr_null(m.handle);
    cpu->mem_stats(dev, &s);
    ck_assert_uint_eq(s.allocated, 40 << 20);
    ck_assert_uint_ge(s.budget, s.allocated);
    memset(large.host, 1, large.bytes);
    cpu->mem_free(dev, &large);
    m = alloc(0);
    cpu->mem_free(dev, &m);
    cpu->mem_free(dev, &m);
    cpu->mem_stats(dev, &s);
    ck_assert_uint_eq(s.allocated, 0);
    ck_assert_uint_eq(s.peak, 40 << 20);
    setenv("FORNAX_INJECT", "compile:2,oom:1", 1);
    open_with("2", NULL);
    ck_assert_int_eq(cpu->mem_alloc(dev, 4, FX_MEM_DEVICE, &m), FX_OUT_OF_MEMORY);
    OK(cpu->mem_alloc(dev, 4, FX_MEM_DEVICE, &m));
    cpu->mem_free(dev, &m);
    fx_kernel *k[2];
    fx_kernel_source two[2] = {source("one", triple_text, 2), source("two", triple_text, 2)};
    ck_assert_int_eq(cpu->kernels_create(dev, 2, two, k, NULL), FX_COMPILE_ERROR);
    ck_assert_ptr_null(k[0]);
    OK(cpu->kernels_create(dev, 2, two, k, NULL)); /* equal texts are two kernels */
    ck_assert_ptr_ne(k[0], k[1]);
    cpu->kernel_destroy(dev, k[0]);
    cpu->kernel_destroy(dev, k[1]);
}
END_TEST

/* ---- compilers ---- */

static void script(char *path, size_t size, const char *name, const char *body) {
    snprintf(path, size, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "#!/bin/sh\n%s\n", body);
    fclose(f);
    chmod(path, 0700);
}

/* Compiles with what FORNAX_CC says; the status, and *text the error's. */
static fx_status try_with(const char *cc, const char **text) {
    fx_kernel_source s = source("layer_norm.3", triple_text, 2);
    fx_kernel *k = NULL;
    setenv("FORNAX_CC", cc, 1);
    open_with("2", NULL);
    fx_status st = cpu->kernels_create(dev, 1, &s, &k, NULL);
    if (st == FX_OK)
        cpu->kernel_destroy(dev, k);
    *text = fx_last_error();
    return st;
}

START_TEST(without_a_compiler_the_device_says_so) {
    fx_device_info got;
    const char *reason;
    char empty[100];
    int n;
    setenv("FORNAX_CC", "/nonexistent", 1);
    OK(cpu->enumerate(&got, 1, &n, &reason));
    ck_assert_int_eq(n, 1);
    ck_assert(!got.usable);
    ck_assert_ptr_nonnull(strstr(got.reason, "FORNAX_CC=/nonexistent"));
    fx_bdevice *d = NULL;
    ck_assert_int_eq(cpu->open(0, NULL, &d, NULL), FX_UNSUPPORTED);
    ck_assert_ptr_null(d);
    unsetenv("FORNAX_CC");
    char *path = strdup(getenv("PATH"));
    snprintf(empty, sizeof empty, "%s/empty", folder);
    mkdir(empty, 0700);
    setenv("PATH", empty, 1);
    OK(cpu->enumerate(&got, 1, &n, &reason));
    setenv("PATH", path, 1);
    free(path);
    ck_assert(!got.usable);
    ck_assert_ptr_nonnull(strstr(got.reason, "tried FORNAX_CC (unset), cc, gcc, clang"));
    ck_assert_ptr_nonnull(strstr(got.reason, "install gcc or clang"));
}
END_TEST

START_TEST(a_compiler_that_misbehaves_is_an_error) {
    char path[100];
    const char *text;
    script(path, sizeof path, "killed", "case $1 in --version) echo k 1 ;; *) kill -9 $$ ;; esac");
    ck_assert_int_eq(try_with(path, &text), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(text, "layer_norm.3"));
    ck_assert_ptr_nonnull(strstr(text, "ended by signal 9"));
    setenv("FORNAX_CC_TIMEOUT", "0.05", 1);
    script(path, sizeof path, "hung", "case $1 in --version) echo h 1 ;; *) exec sleep 600 ;; esac");
    ck_assert_int_eq(try_with(path, &text), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(text, "did not end within 0.05 s"));
    unsetenv("FORNAX_CC_TIMEOUT");
    script(path, sizeof path, "lies", "echo l 1; exit 0"); /* writes no object */
    ck_assert_int_eq(try_with(path, &text), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(text, "can't be loaded"));
    script(path, sizeof path, "old",
           "for a in \"$@\"; do case $a in -m*=native) echo unknown option >&2; exit 1 ;; esac; done; exec cc \"$@\"");
    OK(try_with(path, &text)); /* compiles for any machine */
    script(path, sizeof path, "words", "shift; exec cc \"$@\"");
    strcat(path, " -Dx=1");
    OK(try_with(path, &text));
}
END_TEST

START_TEST(gcc_and_clang_both_compile_the_kernels) {
    static const char *const names[] = {"gcc", "clang"};
    for (int i = 0; i < 2; i++) {
        fx_device_info got;
        const char *text;
        int n;
        setenv("FORNAX_CC", names[i], 1);
        OK(cpu->enumerate(&got, 1, &n, &text));
        if (got.usable)
            OK(try_with(names[i], &text));
        else
            printf("%s\n", got.reason);
    }
}
END_TEST

START_TEST(a_refused_kernel_is_named_with_the_reason) {
    open_with("1", NULL);
    static const char bad[] = C_KERNEL("        not_declared_at_all[0] = first;\n");
    enum { N = 20 };
    char texts[N][sizeof triple_text + 20];
    fx_kernel_source s[N];
    fx_kernel *k[N];
    for (int i = 0; i < N; i++) {
        snprintf(texts[i], sizeof texts[i], "%s/* %d */", triple_text, i);
        s[i] = source("fine", texts[i], 2);
    }
    s[13] = source("gelu \"quoted\"", bad, 2);
    ck_assert_int_eq(cpu->kernels_create(dev, N, s, k, NULL), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "kernel gelu \"quoted\""));
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "not_declared_at_all"));
    for (int i = 0; i < N; i++)
        ck_assert_ptr_null(k[i]);
    s[0] = source("nameless", "int x;\n", 2);
    ck_assert_int_eq(cpu->kernels_create(dev, 1, s, k, NULL), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "FX_KERNEL"));
    s[1].subgroup_size = 32;
    ck_assert_int_eq(cpu->kernels_create(dev, 1, s + 1, k, NULL), FX_UNSUPPORTED);
}
END_TEST

/* ---- the disk cache ---- */

enum { KERNELS = 12 };

/* Opens the device, makes and runs the kernels, closes it; the number of kernels found in the cache, -1 for wrong results.
 * Other processes come here too, where Check's assertions do not work. */
static int session(const char *cache) {
    char texts[KERNELS][160];
    fx_bdevice *d;
    fx_kernel_source s[KERNELS];
    fx_kernel *k[KERNELS];
    int cached = -1;
    if (cpu->open(0, cache, &d, NULL) != FX_OK)
        return -1;
    for (int i = 0; i < KERNELS; i++) {
        snprintf(texts[i], sizeof texts[i],
                 "void FX_KERNEL(const unsigned long *a, const unsigned *g, unsigned f, unsigned l) { *(unsigned *)a[0] += %d; }",
                 1 << i);
        s[i] = source("add", texts[i], 1);
    }
    uint32_t sum = 0;
    fx_cmds *c = NULL;
    fx_mem m;
    if (cpu->kernels_create(d, KERNELS, s, k, &cached) == FX_OK && cpu->mem_alloc(d, 4, FX_MEM_DEVICE, &m) == FX_OK) {
        *(uint32_t *)m.host = 0;
        cpu->cmds_begin(d, &c);
        for (int i = 0; i < KERNELS; i++)
            cpu->cmds_dispatch(c, k[i], &m.address, 1, (uint32_t[3]){1, 1, 1});
        cpu->cmds_end(c);
        cpu->submit(d, 1, &c, NULL);
        cpu->download(d, &m, 0, &sum, 4);
        cpu->cmds_destroy(c);
        cpu->mem_free(d, &m);
        for (int i = 0; i < KERNELS; i++)
            cpu->kernel_destroy(d, k[i]);
    }
    cpu->flush_cache(d);
    cpu->close(d);
    return sum == (1 << KERNELS) - 1 ? cached : -1;
}

/* Calls f on each file of the cache whose name starts with prefix; their number. */
static int each_file(const char *prefix, void (*f)(const char *path)) {
    char dir[100], path[400];
    int n = 0;
    snprintf(dir, sizeof dir, "%s/cpu", folder);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (f)
            f(path);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static void change_middle(const char *path) {
    struct stat st;
    FILE *f = fopen(path, "r+b");
    ck_assert(f && stat(path, &st) == 0);
    fseek(f, st.st_size / 2, SEEK_SET);
    int c = fgetc(f);
    fseek(f, st.st_size / 2, SEEK_SET);
    fputc(c ^ 0x10, f);
    fclose(f);
}

static void shorten(const char *path) {
    struct stat st;
    ck_assert(stat(path, &st) == 0 && truncate(path, st.st_size - 1) == 0);
}

static void empty(const char *path) { ck_assert_int_eq(truncate(path, 0), 0); }

static void delete_file(const char *path) { unlink(path); }

/* Something else under the same name. */
static void replace(const char *path) {
    unlink(path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("not an object", f);
    fclose(f);
}

START_TEST(kernels_come_from_the_cache_unless_it_is_damaged) {
    static void (*const harms[])(const char *) = {change_middle, shorten, empty, delete_file, replace};
    ck_assert_int_eq(session(folder), 0);
    ck_assert_int_eq(session(folder), KERNELS);
    ck_assert_int_eq(each_file("kernel-", NULL), KERNELS);
    for (size_t i = 0; i < sizeof harms / sizeof *harms; i++) {
        ck_assert_int_gt(each_file("object-", harms[i]), 0);
        ck_assert_int_eq(session(folder), 0);
        ck_assert_int_eq(session(folder), KERNELS);
        ck_assert_int_eq(each_file("kernel-", harms[i]), KERNELS);
        ck_assert_int_eq(session(folder), 0);
        ck_assert_int_eq(session(folder), KERNELS);
    }
    setenv("FORNAX_CC", "cc -DOTHER", 1); /* another compiler, another key */
    ck_assert_int_eq(session(folder), 0);
    ck_assert_int_eq(session(folder), KERNELS);
    ck_assert_int_eq(each_file("temporary-", NULL), 0);
}
END_TEST

START_TEST(a_cache_that_others_can_write_to_is_not_used) {
    char dir[100];
    struct stat st;
    ck_assert_int_eq(session(folder), 0);
    snprintf(dir, sizeof dir, "%s/cpu", folder);
    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_int_eq(session(folder), 0);
    ck_assert_int_eq(chmod(dir, 0700), 0);
    ck_assert_int_eq(session(folder), KERNELS);
    ck_assert_int_eq(session("/dev/null/no-folder"), 0); /* none can be made */
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(dir, 12345, 0), 0);
        ck_assert_int_eq(session(folder), 0);
    }
}
END_TEST

START_TEST(processes_share_a_cache) {
    pid_t pids[3];
    for (int i = 0; i < 3; i++) {
        char *const argv[] = {"test_cpu_backend", "session", folder, NULL};
        pids[i] = fork();
        if (pids[i] == 0) {
            execv("/proc/self/exe", argv);
            _exit(99);
        }
    }
    for (int i = 0; i < 3; i++) {
        int status = -1;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_int_eq(each_file("temporary-", NULL), 0);
    ck_assert_int_eq(session(folder), KERNELS);
}
END_TEST

static void *session_thread(void *cache) { return session(cache) < 0 ? cache : NULL; }

START_TEST(threads_make_and_run_kernels_at_once) {
    pthread_t t[4];
    void *result;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, session_thread, folder), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(t[i], &result);
        ck_assert_ptr_null(result);
    }
}
END_TEST

START_TEST(a_forked_process_is_told_that_the_device_is_gone) {
    open_with("2", NULL);
    fx_mem m = alloc(256);
    fx_kernel *k = kernel("triple", triple_text, 2);
    fx_cmds *c = chain(k, &m, 64, 1);
    run(c);
    pid_t pid = fork();
    if (pid == 0) {
        int lost = cpu->submit(dev, 1, &c, NULL) == FX_DEVICE_LOST;
        _exit(lost ? 0 : 1);
    }
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    run(c);
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
    tcase_add_test(c, every_number_of_threads_gives_the_same_bits);
    tcase_add_test(c, copies_and_fills_reach_exactly_their_range);
    tcase_add_test(c, work_is_ordered_and_waiting_ends_in_time);
    tcase_add_test(c, memory_has_an_end);
    tcase_add_test(c, without_a_compiler_the_device_says_so);
    tcase_add_test(c, a_compiler_that_misbehaves_is_an_error);
    tcase_add_test(c, gcc_and_clang_both_compile_the_kernels);
    tcase_add_test(c, a_refused_kernel_is_named_with_the_reason);
    tcase_add_test(c, kernels_come_from_the_cache_unless_it_is_damaged);
    tcase_add_test(c, a_cache_that_others_can_write_to_is_not_used);
    tcase_add_test(c, processes_share_a_cache);
    tcase_add_test(c, threads_make_and_run_kernels_at_once);
    tcase_add_test(c, a_forked_process_is_told_that_the_device_is_gone);
    suite_add_tcase(s, c);
    return s;
}

int main(int argc, char **argv) {
    const char *reason = "the build has no cpu backend";
    int n = 0;
    for (int i = 0; i < fx_backend_registry_count; i++)
        if (strcmp(fx_backend_registry[i].name, "cpu") == 0)
            cpu = fx_backend_registry[i].get(&reason);
    if (!cpu || cpu->enumerate(&info, 1, &n, &reason) != FX_OK || n != 1 || !info.usable) {
        printf("SKIPPED: no device cpu: %s\n", info.reason[0] ? info.reason : reason);
        return SKIPPED;
    }
    if (argc == 3 && !strcmp(argv[1], "session"))
        return session(argv[2]) < 0;
    printf("cpu:0 %s, %s\n", info.name, info.driver);
    SRunner *r = srunner_create(suite());
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
