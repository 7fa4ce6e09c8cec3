/* test_vulkan.c - the Vulkan backend on every device that is visible: memory, commands, kernels, order.
 *
 * Each test runs once a device. The last one demands that the validation layer stayed silent. */
#include <pthread.h>

#include "vulkan_device.h"

static fx_bdevice *dev;
static fx_device_caps caps;

#define EACH_DEVICE               \
    if (!device_infos[_i].usable) \
        return;                   \
    OK(vk->open(_i, NULL, &dev, &caps));

static void done(void) {
    vk->close(dev);
    dev = NULL;
}

static fx_mem alloc(uint64_t bytes, fx_mem_kind kind) {
    fx_mem m;
    OK(vk->mem_alloc(dev, bytes, kind, &m));
    ck_assert_uint_ge(m.bytes, bytes);
    ck_assert_uint_ne(m.address, 0);
    return m;
}

/* The same memory without its mapping: what a device with memory of its own gives. */
static fx_mem unmapped(fx_mem m) {
    m.host = NULL;
    return m;
}

static fx_kernel *kernel(const char *name, const char *text, uint32_t n_args) {
    fx_kernel_source s = kernel_source(name, text, n_args, 64);
    fx_kernel *k;
    OK(vk->kernels_create(dev, 1, &s, &k, NULL));
    return k;
}

static const char triple_text[] = HEAD PUSH(2) MAIN("if (i < A(1).x) U(A(0)).v[i] = U(A(0)).v[i] * 3 + 1;");

/* A finished list of `n` dispatches of k on m with barriers between them. */
static fx_cmds *chain(fx_kernel *k, const fx_mem *m, uint32_t words, int n) {
    fx_cmds *c;
    OK(vk->cmds_begin(dev, &c));
    for (int i = 0; i < n; i++) {
        uint64_t args[2] = {m->address, words};
        uint32_t groups[3] = {(words + 63) / 64, 1, 1};
        if (i)
            OK(vk->cmds_barrier(c));
        OK(vk->cmds_dispatch(c, k, args, 2, groups));
    }
    OK(vk->cmds_end(c));
    return c;
}

static void run(fx_cmds *c) {
    uint64_t ticket;
    bool finished;
    OK(vk->submit(dev, 1, &c, &ticket));
    OK(vk->wait(dev, ticket, UINT64_MAX, &finished));
    ck_assert(finished);
}

static unsigned char *pattern(size_t n, unsigned seed) {
    unsigned char *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
    return p;
}

START_TEST(bytes_come_back_as_they_went) {
    EACH_DEVICE
    const size_t sizes[] = {1, 3, 4096, 100003, (40u << 20) + 5}; /* the last is larger than the staging ring */
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int way = 0; way < 8; way++) {
            fx_mem m = alloc(sizes[s] + 7, way & 4 ? FX_MEM_HOST : FX_MEM_DEVICE);
            fx_mem up = way & 1 ? unmapped(m) : m, down = way & 2 ? unmapped(m) : m;
            unsigned char *in = pattern(sizes[s], (unsigned)way), *out = calloc(1, sizes[s]);
            uint64_t ticket;
            if (way & 4)
                ck_assert_ptr_nonnull(m.host);
            OK(vk->upload(dev, &up, 7, in, sizes[s], &ticket));
            OK(vk->download(dev, &down, 7, out, sizes[s]));
            ck_assert_int_eq(memcmp(in, out, sizes[s]), 0);
            OK(vk->wait(dev, ticket, 0, NULL));
            free(in);
            free(out);
            vk->mem_free(dev, &m);
            ck_assert_ptr_null(m.handle);
        }
    OK(vk->upload(dev, &(fx_mem){.handle = &dev}, 0, NULL, 0, NULL)); /* nothing to do */
    done();
}
END_TEST

START_TEST(many_small_uploads_keep_their_order) {
    EACH_DEVICE
    fx_mem m = alloc(4096, FX_MEM_DEVICE), direct = unmapped(m);
    for (uint32_t i = 0; i < 1000; i++)
        OK(vk->upload(dev, &direct, (i % 7) * 4, &i, 4, NULL));
    uint32_t out[7];
    OK(vk->download(dev, &m, 0, out, sizeof out));
    for (uint32_t i = 0; i < 7; i++)
        ck_assert_uint_eq(out[i], 999 - (999 - i) % 7);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

START_TEST(copies_and_fills_reach_exactly_their_range) {
    EACH_DEVICE
    fx_mem a = alloc(1024, FX_MEM_DEVICE), b = alloc(1024, FX_MEM_DEVICE);
    unsigned char *in = pattern(1024, 5), out[1024], want[1024];
    fx_cmds *c;
    OK(vk->upload(dev, &a, 0, in, 1024, NULL));
    OK(vk->cmds_begin(dev, &c));
    OK(vk->cmds_fill(c, &b, 0, 1024, 0x01010101));
    OK(vk->cmds_barrier(c));
    OK(vk->cmds_copy(c, &b, 101, &a, 33, 500));
    OK(vk->cmds_barrier(c));
    OK(vk->cmds_fill(c, &b, 800, 8, 0xffffffff));
    OK(vk->cmds_end(c));
    run(c);
    OK(vk->download(dev, &b, 0, out, 1024));
    memset(want, 1, 1024);
    memcpy(want + 101, in + 33, 500);
    memset(want + 800, 0xff, 8);
    ck_assert_int_eq(memcmp(out, want, 1024), 0);
    vk->cmds_destroy(c);
    vk->mem_free(dev, &a);
    vk->mem_free(dev, &b);
    free(in);
    done();
}
END_TEST

START_TEST(kernels_take_few_arguments_or_forty) {
    EACH_DEVICE
    static const char sum40[] = HEAD TABLE(40)
        MAIN("if (i >= 100) return; uint s = 0; for (int k = 1; k < 40; k++) s += U(A(k)).v[i]; U(A(0)).v[i] = s;");
    static const char axpy[] =
        HEAD PUSH(4) MAIN("if (i < A(3).x) F(A(0)).v[i] += uintBitsToFloat(A(2).x) * F(A(1)).v[i];");
    ck_assert_uint_lt(caps.max_args, 40);
    ck_assert_uint_ge(caps.max_args, 16);
    fx_mem m = alloc(40 * 400, FX_MEM_DEVICE);
    fx_kernel *k = kernel("sum40", sum40, 40), *ax = kernel("axpy", axpy, 4);
    uint32_t words[4000], groups[3] = {2, 1, 1};
    uint64_t args[40];
    fx_cmds *c;
    for (uint32_t i = 0; i < 4000; i++)
        words[i] = i * i;
    for (uint32_t i = 0; i < 40; i++)
        args[i] = m.address + i * 400;
    OK(vk->upload(dev, &m, 0, words, sizeof words, NULL));
    OK(vk->cmds_begin(dev, &c));
    for (int i = 0; i < 300; i++) /* more than one block of tables */
        OK(vk->cmds_dispatch(c, k, args, 40, groups));
    OK(vk->cmds_end(c));
    memset(args, 0xee, sizeof args); /* the list owns a copy */
    run(c);
    uint32_t out[100];
    OK(vk->download(dev, &m, 0, out, sizeof out));
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t s = 0;
        for (uint32_t j = 1; j < 40; j++)
            s += words[j * 100 + i];
        ck_assert_uint_eq(out[i], s);
    }
    vk->cmds_destroy(c);

    float x[200], y[100], scale = 0.5f;
    uint32_t bits;
    memcpy(&bits, &scale, 4);
    for (int i = 0; i < 200; i++)
        x[i] = (float)i;
    OK(vk->upload(dev, &m, 0, x, sizeof x, NULL));
    OK(vk->cmds_begin(dev, &c));
    OK(vk->cmds_dispatch(c, ax, (uint64_t[]){m.address, m.address + 400, bits, 100}, 4, groups));
    OK(vk->cmds_end(c));
    run(c);
    OK(vk->download(dev, &m, 0, y, sizeof y));
    for (int i = 0; i < 100; i++)
        ck_assert_float_eq(y[i], x[i] + 0.5f * x[100 + i]);
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->kernel_destroy(dev, ax);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

START_TEST(replays_of_dependent_dispatches_are_ordered) {
    EACH_DEVICE
    enum { WORDS = 1000, CHAIN = 100, REPLAYS = 20 };
    fx_mem m = alloc(WORDS * 4, FX_MEM_DEVICE);
    uint32_t words[WORDS], out[WORDS];
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i;
    fx_kernel *k = kernel("triple", triple_text, 2);
    fx_cmds *c = chain(k, &m, WORDS, CHAIN);
    uint64_t ticket = 0, before = 0;
    OK(vk->upload(dev, &m, 0, words, sizeof words, NULL));
    for (int i = 0; i < REPLAYS; i++) { /* several in flight at once */
        OK(vk->submit(dev, 1, &c, &ticket));
        ck_assert_uint_gt(ticket, before);
        before = ticket;
    }
    OK(vk->download(dev, &m, 0, out, sizeof out));
    for (int n = 0; n < CHAIN * REPLAYS; n++)
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = words[i] * 3 + 1;
    ck_assert_int_eq(memcmp(words, out, sizeof out), 0);

    fx_cmds *many[70]; /* one submission of more lists than go into one call of the driver */
    for (int i = 0; i < 70; i++)
        many[i] = i % 2 ? chain(k, &m, WORDS, 1) : c;
    OK(vk->submit(dev, 70, many, &ticket));
    OK(vk->wait(dev, ticket, UINT64_MAX, NULL));
    OK(vk->download(dev, &m, 0, out, sizeof out));
    for (int n = 0; n < 35 * CHAIN + 35; n++)
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = words[i] * 3 + 1;
    ck_assert_int_eq(memcmp(words, out, sizeof out), 0);
    for (int i = 1; i < 70; i += 2)
        vk->cmds_destroy(many[i]);
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

START_TEST(uploads_take_their_place_between_submissions) {
    EACH_DEVICE
    fx_mem m = alloc(256, FX_MEM_DEVICE), other = alloc(1 << 20, FX_MEM_DEVICE);
    fx_kernel *k = kernel("triple", triple_text, 2);
    fx_cmds *c = chain(k, &m, 64, 50);
    uint32_t words[64], out[64], seven = 7;
    uint64_t ticket, first, side;
    char *bytes = (char *)pattern(1 << 20, 3), *back = malloc(1 << 20);
    memset(words, 0, sizeof words);
    OK(vk->upload(dev, &m, 0, words, sizeof words, NULL));
    OK(vk->submit(dev, 1, &c, &first));
    OK(vk->upload_after(dev, 0, &other, 0, bytes, 1 << 20, &side)); /* beside the work */
    OK(vk->upload(dev, &m, 0, &seven, 4, &ticket));                 /* after the list, in flight or not */
    OK(vk->upload_after(dev, ticket, &m, 4, &seven, 4, &ticket));
    OK(vk->submit(dev, 1, &c, &ticket));
    OK(vk->download(dev, &m, 0, out, sizeof out));
    OK(vk->download(dev, &other, 0, back, 1 << 20));
    ck_assert_int_eq(memcmp(bytes, back, 1 << 20), 0);
    uint32_t a = 7, z = 0;
    for (int i = 0; i < 50; i++)
        a = a * 3 + 1;
    for (int i = 0; i < 100; i++)
        z = z * 3 + 1;
    ck_assert_uint_eq(out[0], a);
    ck_assert_uint_eq(out[1], a);
    ck_assert_uint_eq(out[2], z);
    OK(vk->wait(dev, first, UINT64_MAX, NULL));
    OK(vk->wait(dev, side, UINT64_MAX, NULL));
    free(bytes);
    free(back);
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->mem_free(dev, &m);
    vk->mem_free(dev, &other);
    done();
}
END_TEST

START_TEST(timestamps_grow_and_clocks_pair_up) {
    EACH_DEVICE
    if (caps.has_timestamps) {
        enum { N = 300 };
        uint64_t ns[N + 1], d0, d1, h0, h1;
        int n;
        fx_cmds *c;
        fx_kernel *k = kernel("triple", triple_text, 2);
        fx_mem m = alloc(4096, FX_MEM_DEVICE);
        OK(vk->clock_pair(dev, &d0, &h0));
        OK(vk->cmds_begin(dev, &c));
        OK(vk->cmds_label(c, "timed"));
        for (int i = 0; i < N; i++) {
            OK(vk->cmds_timestamp(c));
            OK(vk->cmds_barrier(c));
            OK(vk->cmds_dispatch(c, k, (uint64_t[]){m.address, 1024}, 2, (uint32_t[]){16, 1, 1}));
        }
        OK(vk->cmds_end(c));
        ck_assert_int_eq(vk->cmds_read_timestamps(c, ns, N + 1, &n), FX_INVALID_ARGUMENT);
        run(c);
        run(c);
        OK(vk->cmds_read_timestamps(c, ns, N + 1, &n));
        OK(vk->clock_pair(dev, &d1, &h1));
        ck_assert_int_eq(n, N);
        for (int i = 1; i < N; i++)
            ck_assert_uint_ge(ns[i], ns[i - 1]);
        ck_assert_uint_ge(ns[0] + 1000000, d0);
        ck_assert_uint_le(ns[N - 1], d1 + 1000000);
        ck_assert_uint_gt(h1, h0);
        double rate = (double)(d1 - d0) / (double)(h1 - h0);
        ck_assert_double_gt(rate, 0.5);
        ck_assert_double_lt(rate, 2.0);
        vk->cmds_destroy(c);
        vk->kernel_destroy(dev, k);
        vk->mem_free(dev, &m);
    }
    done();
}
END_TEST

START_TEST(wrong_calls_are_refused_and_leave_the_device_usable) {
    EACH_DEVICE
    fx_mem m = alloc(256, FX_MEM_DEVICE), huge;
    fx_mem_stats stats;
    uint64_t one = m.address, ticket;
    uint32_t big[3] = {1, 1, 1};
    bool finished;
    fx_cmds *c;
    fx_kernel *k = kernel("triple", triple_text, 2), *none[3];
    ck_assert_int_eq(vk->mem_alloc(dev, caps.max_allocation + 4096, FX_MEM_DEVICE, &huge), FX_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "bytes asked"));
    ck_assert_ptr_null(huge.handle);
    vk->mem_stats(dev, &stats);
    ck_assert_uint_eq(stats.allocated, 256);
    ck_assert_uint_eq(stats.peak, 256);
    ck_assert_int_eq(vk->upload(dev, &m, 250, &one, 8, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->upload(dev, &m, UINT64_MAX, &one, 8, NULL), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->download(dev, &m, 257, &one, 0), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->wait(dev, 1000, 0, &finished), FX_INVALID_ARGUMENT);
    OK(vk->cmds_begin(dev, &c));
    ck_assert_int_eq(vk->cmds_dispatch(c, k, &one, 1, big), FX_INVALID_ARGUMENT);
    big[1] = caps.max_groups[1] + (caps.max_groups[1] < UINT32_MAX);
    if (big[1] > caps.max_groups[1])
        ck_assert_int_eq(vk->cmds_dispatch(c, k, (uint64_t[]){one, 0}, 2, big), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->cmds_fill(c, &m, 2, 4, 0), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->cmds_copy(c, &m, 4, &m, 0, 8), FX_INVALID_ARGUMENT);
    ck_assert_int_eq(vk->submit(dev, 1, &c, &ticket), FX_INVALID_ARGUMENT);
    OK(vk->cmds_dispatch(c, k, (uint64_t[]){one, 0}, 2, (uint32_t[]){0, 1, 1}));
    OK(vk->cmds_end(c));
    ck_assert_int_eq(vk->cmds_barrier(c), FX_INVALID_ARGUMENT);
    run(c);
    vk->cmds_destroy(c);

    fx_kernel_source s[3] = {kernel_source("good", triple_text, 2, 64),
                             kernel_source("wrong", HEAD PUSH(1) MAIN("undeclared = 1;"), 1, 64),
                             kernel_source("good2", triple_text, 2, 64)};
    ck_assert_int_eq(vk->kernels_create(dev, 3, s, none, NULL), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "kernel wrong"));
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "undeclared"));
    ck_assert(!none[0] && !none[1] && !none[2]);
    s[0].subgroup_size = 3;
    ck_assert_int_eq(vk->kernels_create(dev, 1, s, none, NULL), FX_UNSUPPORTED);
    s[0].subgroup_size = caps.subgroup_size > 1 ? caps.subgroup_size : 0;
    OK(vk->kernels_create(dev, 1, s, none, NULL));
    vk->kernel_destroy(dev, none[0]);

    c = chain(k, &m, 64, 1);
    run(c);
    vk->cmds_destroy(c);
    vk->cmds_destroy(NULL);
    vk->kernel_destroy(dev, k);
    vk->kernel_destroy(dev, NULL);
    vk->mem_free(dev, &m);
    vk->mem_stats(dev, &stats);
    ck_assert_uint_eq(stats.allocated, 0);
    done();
    vk->close(NULL);
    ck_assert_int_eq(vk->open(n_devices, NULL, &dev, &caps), FX_NOT_FOUND);
    ck_assert_int_eq(vk->open(-1, NULL, &dev, &caps), FX_NOT_FOUND);
}
END_TEST

START_TEST(a_wait_can_time_out) {
    EACH_DEVICE
    static const char slow[] =
        HEAD PUSH(1) MAIN("uint x = i; for (uint k = 0; k < 20000u; k++) x = x * 1664525u + 1013904223u; "
                          "U(A(0)).v[i] = x;");
    fx_mem m = alloc(64 * 64 * 4, FX_MEM_DEVICE);
    fx_kernel *k = kernel("slow", slow, 1);
    fx_cmds *c;
    uint64_t ticket = 0;
    bool finished = true;
    int pending = 0;
    OK(vk->cmds_begin(dev, &c));
    for (int i = 0; i < 10; i++)
        OK(vk->cmds_dispatch(c, k, &m.address, 1, (uint32_t[]){64, 1, 1}));
    OK(vk->cmds_end(c));
    OK(vk->submit(dev, 1, &c, &ticket));
    OK(vk->wait(dev, ticket, 0, &finished));
    pending += !finished;
    OK(vk->wait(dev, ticket, 1000, &finished));
    pending += !finished;
    OK(vk->wait(dev, ticket, UINT64_MAX, &finished));
    ck_assert(finished);
    OK(vk->wait(dev, ticket, 0, &finished));
    ck_assert(finished);
    if (device_infos[_i].kind == FX_DEVICE_SOFTWARE)
        ck_assert_int_gt(pending, 0);
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

START_TEST(numbers_keep_nan_infinity_and_sign_of_zero) {
    EACH_DEVICE
    static const char text[] = HEAD PUSH(2)
        MAIN("if (i < 8) { float x = F(A(0)).v[i]; F(A(1)).v[i] = x * 0.0; F(A(1)).v[8 + i] = x == x ? 1.0 : 2.0; "
             "F(A(1)).v[16 + i] = x - x; F(A(1)).v[24 + i] = x + (-0.0); }");
    const uint32_t in[8] = {0x7fc00000, 0x7f800000, 0xff800000, 0x80000000, 0, 0x3f800000, 0xbf800000, 0x7f7fffff};
    float x[8], out[32];
    memcpy(x, in, sizeof x);
    fx_mem m = alloc(1024, FX_MEM_DEVICE);
    fx_kernel *k = kernel("special", text, 2);
    fx_cmds *c;
    OK(vk->upload(dev, &m, 0, x, sizeof x, NULL));
    OK(vk->cmds_begin(dev, &c));
    OK(vk->cmds_dispatch(c, k, (uint64_t[]){m.address, m.address + 512}, 2, (uint32_t[]){1, 1, 1}));
    OK(vk->cmds_end(c));
    run(c);
    OK(vk->download(dev, &m, 512, out, sizeof out));
    for (int i = 0; i < 8; i++) {
        volatile float v = x[i];
        float want[4] = {v * 0.0f, v == v ? 1.0f : 2.0f, v - v, v + -0.0f};
        for (int j = 0; j < 4; j++)
            if (want[j] != want[j])
                ck_assert_msg(out[j * 8 + i] != out[j * 8 + i], "row %d, item %d: NaN was lost", j, i);
            else
                ck_assert_msg(memcmp(&want[j], &out[j * 8 + i], 4) == 0, "row %d, item %d: %g, expected %g", j, i,
                              (double)out[j * 8 + i], (double)want[j]);
    }
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

/* ---- threads and several devices ---- */

typedef struct uploader {
    fx_bdevice *d;
    fx_mem mem;
    unsigned seed;
    bool good;
} uploader;

static void *upload_often(void *user) {
    uploader *u = user;
    size_t n = 300000;
    u->good = true;
    for (unsigned i = 0; i < 20 && u->good; i++) {
        unsigned char *in = pattern(n, u->seed + i), *out = malloc(n);
        fx_mem m = i % 2 ? unmapped(u->mem) : u->mem;
        u->good = vk->upload(u->d, &m, 0, in, n, NULL) == FX_OK && vk->download(u->d, &m, 0, out, n) == FX_OK &&
                  memcmp(in, out, n) == 0;
        free(in);
        free(out);
    }
    return NULL;
}

START_TEST(threads_upload_while_another_submits) {
    EACH_DEVICE
    uploader u[2];
    pthread_t threads[2];
    fx_kernel *k = kernel("triple", triple_text, 2);
    fx_mem m = alloc(4000, FX_MEM_DEVICE);
    uint32_t zero[1000] = {0}, out[1000], want = 0;
    OK(vk->upload(dev, &m, 0, zero, sizeof zero, NULL));
    fx_cmds *c = chain(k, &m, 1000, 10);
    for (unsigned i = 0; i < 2; i++) {
        u[i] = (uploader){dev, alloc(300000, FX_MEM_DEVICE), i * 1000, false};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, upload_often, &u[i]), 0);
    }
    for (int i = 0; i < 50; i++)
        OK(vk->submit(dev, 1, &c, NULL));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(u[i].good, "thread %d read other bytes than it wrote", i);
        vk->mem_free(dev, &u[i].mem);
    }
    OK(vk->download(dev, &m, 0, out, sizeof out));
    for (int i = 0; i < 500; i++)
        want = want * 3 + 1;
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(out[i], want);
    vk->cmds_destroy(c);
    vk->kernel_destroy(dev, k);
    vk->mem_free(dev, &m);
    done();
}
END_TEST

START_TEST(all_devices_work_side_by_side) {
    fx_bdevice *devices[MOST_DEVICES] = {0};
    fx_kernel *kernels[MOST_DEVICES];
    fx_mem mems[MOST_DEVICES];
    fx_cmds *lists[MOST_DEVICES];
    uint32_t words[64], out[64], want;
    for (int i = 0; i < n_devices; i++) {
        if (!device_infos[i].usable)
            continue;
        OK(vk->open(i, NULL, &devices[i], &caps));
        dev = devices[i];
        mems[i] = alloc(256, FX_MEM_DEVICE);
        kernels[i] = kernel("triple", triple_text, 2);
        lists[i] = chain(kernels[i], &mems[i], 64, 10);
        for (uint32_t j = 0; j < 64; j++)
            words[j] = j + (uint32_t)i;
        OK(vk->upload(dev, &mems[i], 0, words, sizeof words, NULL));
    }
    for (int n = 0; n < 10; n++)
        for (int i = 0; i < n_devices; i++)
            if (devices[i])
                OK(vk->submit(devices[i], 1, &lists[i], NULL));
    for (int i = 0; i < n_devices; i++) {
        if (!devices[i])
            continue;
        OK(vk->download(devices[i], &mems[i], 0, out, sizeof out));
        for (uint32_t j = 0; j < 64; j++) {
            want = j + (uint32_t)i;
            for (int n = 0; n < 100; n++)
                want = want * 3 + 1;
            ck_assert_uint_eq(out[j], want);
        }
        vk->cmds_destroy(lists[i]);
        vk->kernel_destroy(devices[i], kernels[i]);
        vk->mem_free(devices[i], &mems[i]);
        vk->close(devices[i]);
    }
}
END_TEST

enum { RECORDERS = 4, RECORDINGS = 1000 };

typedef struct recorder {
    fx_bdevice *d;
    fx_mem mem;
    bool good;
} recorder;

static void *record_often(void *user) {
    recorder *r = user;
    r->good = true;
    for (uint32_t i = 0; i < RECORDINGS && r->good; i++) {
        fx_cmds *c = NULL;
        r->good = vk->cmds_begin(r->d, &c) == FX_OK && vk->cmds_label(c, "fill") == FX_OK &&
                  vk->cmds_fill(c, &r->mem, 0, 256, i) == FX_OK && vk->cmds_end(c) == FX_OK;
        vk->cmds_destroy(c);
    }
    return NULL;
}

/* What the driver and its layers keep for a whole instance must bear devices on several threads. */
START_TEST(devices_on_threads_of_their_own_record_at_once) {
    recorder r[RECORDERS];
    pthread_t threads[RECORDERS];
    if (!device_infos[_i].usable)
        return;
    for (int i = 0; i < RECORDERS; i++) {
        OK(vk->open(_i, NULL, &dev, &caps));
        r[i] = (recorder){dev, alloc(256, FX_MEM_DEVICE), false};
    }
    for (int i = 0; i < RECORDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, record_often, &r[i]), 0);
    for (int i = 0; i < RECORDERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_msg(r[i].good, "thread %d could not record", i);
        vk->mem_free(r[i].d, &r[i].mem);
        vk->close(r[i].d);
    }
    dev = NULL;
}
END_TEST

START_TEST(validation_stayed_silent) {
    ck_assert_int_eq(validation_messages(), 0);
}
END_TEST

int main(void) {
    if (!find_vulkan())
        return SKIPPED;
    Suite *s = suite_create("vulkan");
    TCase *c = tcase_create("devices");
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, bytes_come_back_as_they_went, 0, n_devices);
    tcase_add_loop_test(c, many_small_uploads_keep_their_order, 0, n_devices);
    tcase_add_loop_test(c, copies_and_fills_reach_exactly_their_range, 0, n_devices);
    tcase_add_loop_test(c, kernels_take_few_arguments_or_forty, 0, n_devices);
    tcase_add_loop_test(c, replays_of_dependent_dispatches_are_ordered, 0, n_devices);
    tcase_add_loop_test(c, uploads_take_their_place_between_submissions, 0, n_devices);
    tcase_add_loop_test(c, timestamps_grow_and_clocks_pair_up, 0, n_devices);
    tcase_add_loop_test(c, wrong_calls_are_refused_and_leave_the_device_usable, 0, n_devices);
    tcase_add_loop_test(c, a_wait_can_time_out, 0, n_devices);
    tcase_add_loop_test(c, numbers_keep_nan_infinity_and_sign_of_zero, 0, n_devices);
    tcase_add_loop_test(c, threads_upload_while_another_submits, 0, n_devices);
    tcase_add_test(c, all_devices_work_side_by_side);
    tcase_add_loop_test(c, devices_on_threads_of_their_own_record_at_once, 0, n_devices);
    tcase_add_test(c, validation_stayed_silent);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
