/* test_lanes.c - exchanges between lanes in C: every operation of subgroups, in a workgroup of one subgroup, of several
 * that run one after the other, and of several that meet at a barrier, against what it means. */
#include "core/kernel/dialect.h"
#include "vulkan_device.h"

enum { LANES = 16, MOST = 48 };

static fx_bdevice *device;
static fx_device_caps caps;

static const struct {
    fx_ksub sub;
    int other; /* lane, delta or mask; -1: none; -2: the lane's own number, reversed */
} cases[] = {{FX_SUB_BROADCAST, 5}, {FX_SUB_SHUFFLE, 3},   {FX_SUB_SHUFFLE, -2}, {FX_SUB_SHUFFLE_DOWN, 4},
             {FX_SUB_SHUFFLE_XOR, 1}, {FX_SUB_SHUFFLE_XOR, 8}, {FX_SUB_ADD, -1},   {FX_SUB_MUL, -1},
             {FX_SUB_MAX, -1},      {FX_SUB_MIN, -1},      {FX_SUB_AND, -1},     {FX_SUB_OR, -1},
             {FX_SUB_XOR, -1},      {FX_SUB_SCAN_ADD, -1}, {FX_SUB_EXSCAN_ADD, -1}};
enum { N_CASES = sizeof cases / sizeof *cases };

/* What lane l (of the workgroup) gets. */
static uint32_t expected(int c, const uint32_t *x, int l) {
    int base = l / LANES * LANES, lane = l % LANES, other = cases[c].other == -2 ? LANES - 1 - lane : cases[c].other;
    uint32_t r = cases[c].sub == FX_SUB_EXSCAN_ADD ? 0 : x[base];
    int n = cases[c].sub == FX_SUB_SCAN_ADD ? lane + 1 : cases[c].sub == FX_SUB_EXSCAN_ADD ? lane : LANES;
    switch (cases[c].sub) {
    case FX_SUB_BROADCAST:
    case FX_SUB_SHUFFLE:
        return x[base + other];
    case FX_SUB_SHUFFLE_DOWN:
        return lane + other < LANES ? x[l + other] : 0;
    case FX_SUB_SHUFFLE_XOR:
        return x[base + (lane ^ other)];
    default:
        for (int j = cases[c].sub == FX_SUB_EXSCAN_ADD ? 0 : 1; j < n; j++) {
            uint32_t v = x[base + j];
            r = cases[c].sub == FX_SUB_MUL   ? r * v
                : cases[c].sub == FX_SUB_MAX ? (r > v ? r : v)
                : cases[c].sub == FX_SUB_MIN ? (r < v ? r : v)
                : cases[c].sub == FX_SUB_AND ? (r & v)
                : cases[c].sub == FX_SUB_OR  ? (r | v)
                : cases[c].sub == FX_SUB_XOR ? (r ^ v)
                                             : r + v;
        }
        return r;
    }
}

/* y[l] = the exchange of x[l] in a workgroup of `lanes`; with a barrier, by way of shared memory. */
static void check_exchange(int c, int lanes, bool barrier) {
    fx_arena arena;
    fx_kir k;
    fx_text text = {0};
    fx_arena_init(&arena);
    fx_kir_init(&k, &arena);
    k.workgroup[0] = (uint32_t)lanes;
    int in = fx_k_arg(&k, FX_U32), out = fx_k_arg(&k, FX_U32);
    fx_kx *l = fx_k_builtin(&k, FX_KB_LOCAL, lanes), *lane = fx_k_builtin(&k, FX_KB_LANE, LANES), *other = NULL;
    if (cases[c].other == -2)
        other = fx_k_sub(&k, fx_k_int(&k, LANES - 1), lane);
    else if (cases[c].other >= 0)
        other = fx_k_int(&k, cases[c].other);
    fx_kx *y = fx_k_subgroup(&k, cases[c].sub, fx_k_load(&k, in, l), other);
    if (barrier) {
        int shared = fx_k_shared(&k, FX_U32, lanes);
        fx_k_shared_store(&k, shared, l, y);
        fx_k_barrier(&k);
        y = fx_k_shared_load(&k, shared, l);
    }
    fx_k_store(&k, out, l, y);
    OK(fx_kir_render(&k, &caps, "exchange", &text));

    uint32_t x[MOST], got[MOST] = {0};
    for (int i = 0; i < lanes; i++)
        x[i] = (uint32_t)i * 2654435761u + 12345u;
    fx_kernel_source source = kernel_source("exchange", text.s, 2, (uint32_t)lanes);
    source.hash = (uint64_t)c * 100 + (uint64_t)lanes * 2 + barrier + 1;
    fx_kernel *kernel;
    fx_cmds *cmds;
    fx_mem a, b;
    uint64_t ticket;
    bool done;
    OK(vk->kernels_create(device, 1, &source, &kernel, NULL));
    OK(vk->mem_alloc(device, sizeof x, FX_MEM_DEVICE, &a));
    OK(vk->mem_alloc(device, sizeof x, FX_MEM_DEVICE, &b));
    OK(vk->upload(device, &a, 0, x, sizeof *x * (size_t)lanes, NULL));
    OK(vk->cmds_begin(device, &cmds));
    OK(vk->cmds_dispatch(cmds, kernel, (const uint64_t[]){a.address, b.address}, 2, (const uint32_t[]){1, 1, 1}));
    OK(vk->cmds_end(cmds));
    OK(vk->submit(device, 1, &cmds, &ticket));
    OK(vk->wait(device, ticket, UINT64_MAX, &done));
    OK(vk->download(device, &b, 0, got, sizeof *got * (size_t)lanes));
    for (int i = 0; i < lanes; i++) {
        bool free_to_be = cases[c].sub == FX_SUB_SHUFFLE_DOWN && i % LANES + cases[c].other >= LANES;
        if (!free_to_be)
            ck_assert_msg(got[i] == expected(c, x, i), "operation %d, other %d, %d lanes%s: lane %d: expected %u; got %u",
                          cases[c].sub, cases[c].other, lanes, barrier ? ", barrier" : "", i, expected(c, x, i), got[i]);
    }
    vk->cmds_destroy(cmds);
    vk->kernel_destroy(device, kernel);
    vk->mem_free(device, &a);
    vk->mem_free(device, &b);
    fx_text_free(&text);
    fx_arena_finish(&arena);
}

START_TEST(every_exchange) {
    check_exchange(_i, LANES, false);
    check_exchange(_i, LANES, true);
    check_exchange(_i, MOST, false);
    check_exchange(_i, MOST, true);
}
END_TEST

/* Lanes that go different ways can't exchange values: an error, not wrong code. */
START_TEST(apart_is_refused) {
    fx_arena arena;
    fx_kir k;
    fx_text text = {0};
    fx_arena_init(&arena);
    fx_kir_init(&k, &arena);
    k.workgroup[0] = LANES;
    int in = fx_k_arg(&k, FX_U32), out = fx_k_arg(&k, FX_U32);
    fx_kx *l = fx_k_builtin(&k, FX_KB_LOCAL, LANES);
    fx_k_if(&k, fx_k_lt(&k, l, fx_k_int(&k, 3)));
    fx_k_store(&k, out, l, fx_k_subgroup(&k, FX_SUB_ADD, fx_k_load(&k, in, l), NULL));
    fx_k_end(&k);
    ck_assert_int_eq(fx_kir_render(&k, &caps, "apart", &text), FX_INTERNAL);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "different ways"));
    fx_text_free(&text);
    fx_arena_finish(&arena);
}
END_TEST

int main(void) {
    setenv("FX_TEST_BACKEND", "cpu", 1);
    if (!find_vulkan())
        return SKIPPED;
    if (vk->open(0, NULL, &device, &caps) != FX_OK) {
        printf("%s\n", fx_last_error());
        return EXIT_FAILURE;
    }
    Suite *s = suite_create("lanes");
    TCase *c = tcase_create("exchanges");
    tcase_add_loop_test(c, every_exchange, 0, N_CASES);
    tcase_add_test(c, apart_is_refused);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    vk->close(device);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
