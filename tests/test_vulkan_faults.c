/* test_vulkan_faults.c - the Vulkan backend where things go wrong: the disk cache damaged, full or shared, failures
 * injected by FORNAX_INJECT, drivers and layers missing.
 *
 * What needs a fresh process runs this program again with an argument (see other_process). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vulkan_device.h"

enum { KERNELS = 6 };

static char folder[256], self[4096];
static bool validation_was_off;

#define EACH_DEVICE               \
    if (!device_infos[_i].usable) \
        return;

static const char triple[] = HEAD PUSH(2) MAIN("if (i < A(1).x) U(A(0)).v[i] = U(A(0)).v[i] * 3 + 1;");

/* Makes KERNELS kernels that add 1 .. KERNELS. */
static fx_status make_kernels(fx_bdevice *d, fx_kernel **out, int *cached) {
    char texts[KERNELS][2048];
    fx_kernel_source s[KERNELS];
    for (int i = 0; i < KERNELS; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%s void main() { U(A(0)).v[gl_GlobalInvocationID.x] += %d; }\n", HEAD,
                 PUSH(1), i + 1);
        s[i] = kernel_source("add", texts[i], 1, 64);
    }
    return vk->kernels_create(d, KERNELS, s, out, cached);
}

/* Runs all kernels; FX_BAD_DATA unless each word ends up as 1 + ... + KERNELS. */
static fx_status use_kernels(fx_bdevice *d, fx_kernel **k) {
    fx_mem m = {0};
    fx_cmds *c = NULL;
    uint32_t words[64] = {0};
    fx_status st = vk->mem_alloc(d, sizeof words, FX_MEM_DEVICE, &m);
    if (st == FX_OK)
        st = vk->upload(d, &m, 0, words, sizeof words, NULL);
    if (st == FX_OK)
        st = vk->cmds_begin(d, &c);
    for (int i = 0; st == FX_OK && i < KERNELS; i++) {
        st = vk->cmds_barrier(c);
        if (st == FX_OK)
            st = vk->cmds_dispatch(c, k[i], &m.address, 1, (uint32_t[]){1, 1, 1});
    }
    if (st == FX_OK)
        st = vk->cmds_end(c);
    if (st == FX_OK)
        st = vk->submit(d, 1, &c, NULL);
    if (st == FX_OK)
        st = vk->download(d, &m, 0, words, sizeof words);
    for (int i = 0; st == FX_OK && i < 64; i++)
        if (words[i] != KERNELS * (KERNELS + 1) / 2)
            st = FX_BAD_DATA; /* other processes come here too, where Check's assertions do not work */
    vk->cmds_destroy(c);
    vk->mem_free(d, &m);
    return st;
}

/* Opens the device, makes and runs the kernels, closes it; the number of kernels found in the cache. */
static int session(int device, const char *cache) {
    fx_bdevice *d;
    fx_device_caps caps;
    fx_kernel *k[KERNELS];
    int cached = -1;
    OK(vk->open(device, cache, &d, &caps));
    OK(make_kernels(d, k, &cached));
    OK(use_kernels(d, k));
    for (int i = 0; i < KERNELS; i++)
        vk->kernel_destroy(d, k[i]);
    vk->flush_cache(d);
    vk->close(d);
    return cached;
}

/* ---- files ---- */

static void new_folder(void) {
    snprintf(folder, sizeof folder, "%s/fornax-test-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

/* Calls f on each file of the cache whose name starts with prefix; their number. */
static int each_file(const char *prefix, void (*f)(const char *path, int index)) {
    char dir[512], path[1024];
    int n = 0;
    snprintf(dir, sizeof dir, "%s/vulkan", folder);
    DIR *open_dir = opendir(dir);
    for (struct dirent *e; open_dir && (e = readdir(open_dir));) {
        if (e->d_name[0] == '.' || strncmp(e->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (f)
            f(path, n);
        n++;
    }
    if (open_dir)
        closedir(open_dir);
    return n;
}

static void delete (const char *path, int index) {
    (void)index;
    unlink(path);
}

static void delete_folder(void) {
    char dir[512];
    each_file("", delete);
    snprintf(dir, sizeof dir, "%s/vulkan", folder);
    rmdir(dir);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void change_byte(const char *path, long at, int whence) {
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, at, whence);
    int c = fgetc(f);
    fseek(f, at, whence);
    fputc(c ^ 0x10, f);
    fclose(f);
}

static void damage(const char *path, int index) {
    struct stat s;
    FILE *f;
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0600);
    switch (index) {
    case 0:
        change_byte(path, -9, SEEK_END);
        break; /* in the payload */
    case 1:
        change_byte(path, 3, SEEK_SET);
        break; /* in the magic */
    case 2:
        ck_assert_int_eq(truncate(path, s.st_size - 4), 0);
        break; /* cut short */
    case 3:
        ck_assert_int_eq(truncate(path, 0), 0);
        break; /* empty */
    case 4:
        ck_assert_int_eq(truncate(path, s.st_size + 4), 0);
        break; /* too long */
    default:   /* foreign */
        f = fopen(path, "wb");
        ck_assert_ptr_nonnull(f);
        fputs("{\"not\": \"ours\"}\n", f);
        fclose(f);
    }
}

/* Another kernel's entry under this one's name. */
static char first_path[1024];
static void exchange(const char *path, int index) {
    if (index == 0)
        snprintf(first_path, sizeof first_path, "%s", path);
    else if (index == 1)
        ck_assert_int_eq(rename(path, first_path), 0);
}

START_TEST(the_second_start_finds_kernels_on_disk) {
    EACH_DEVICE
    struct stat s;
    char dir[512];
    new_folder();
    snprintf(dir, sizeof dir, "%s/vulkan", folder);
    ck_assert_int_eq(session(_i, folder), 0);
    ck_assert_int_eq(stat(dir, &s), 0);
    ck_assert_uint_eq(s.st_mode & 0777, 0700);
    ck_assert_int_eq(each_file("spirv-", NULL), KERNELS);
    ck_assert_int_eq(each_file("temporary-", NULL), 0);
    ck_assert_int_eq(session(_i, folder), KERNELS);
    ck_assert_int_eq(session(_i, NULL), 0);
    delete_folder();
}
END_TEST

START_TEST(damaged_entries_are_ignored_and_rebuilt) {
    EACH_DEVICE
    new_folder();
    session(_i, folder);
    ck_assert_int_eq(each_file("spirv-", damage), KERNELS);
    ck_assert_int_eq(session(_i, folder), 0);
    ck_assert_int_eq(session(_i, folder), KERNELS);
    each_file("spirv-", exchange);
    ck_assert_int_eq(session(_i, folder), KERNELS - 2);
    ck_assert_int_eq(session(_i, folder), KERNELS);
    for (int way = 0; way < 6; way++) { /* the driver's own cache */
        char dir[512], path[1024] = "";
        snprintf(dir, sizeof dir, "%s/vulkan", folder);
        DIR *open_dir = opendir(dir);
        ck_assert_ptr_nonnull(open_dir);
        for (struct dirent *e; (e = readdir(open_dir));)
            if (strncmp(e->d_name, "pipelines-", 10) == 0)
                snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        closedir(open_dir);
        ck_assert_str_ne(path, "");
        damage(path, way);
        ck_assert_int_eq(session(_i, folder), KERNELS);
    }
    delete_folder();
}
END_TEST

START_TEST(a_cache_that_can_not_be_written_is_no_error) {
    EACH_DEVICE
    struct rlimit old, none;
    new_folder();
    ck_assert_int_eq(session(_i, "/dev/null/below-a-file"), 0);
    ck_assert_int_eq(session(_i, "/proc/nowhere"), 0);
    ck_assert_int_eq(session(_i, ""), 0);
    /* As on a full disk: writes fail. */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    none = old;
    none.rlim_cur = 16;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    int cached = session(_i, folder);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(cached, 0);
    ck_assert_int_eq(each_file("", NULL), 0);
    /* A folder that others may write to is not trusted. */
    char dir[512];
    snprintf(dir, sizeof dir, "%s/vulkan", folder);
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_int_eq(session(_i, folder), 0);
    ck_assert_int_eq(each_file("", NULL), 0);
    delete_folder();
}
END_TEST

/* A file in the cache folder, `age` seconds old. */
static void plant(const char *name, off_t bytes, time_t age) {
    char path[1024];
    snprintf(path, sizeof path, "%s/vulkan/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, bytes), 0);
    struct timespec t[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    ck_assert_int_eq(futimens(fd, t), 0);
    close(fd);
}

START_TEST(the_cache_stays_below_its_size) {
    EACH_DEVICE
    new_folder();
    session(_i, folder);
    plant("temporary-dead", 10, 7200);
    plant("temporary-busy", 10, 10);
    plant("spirv-oldest", (off_t)300 << 20, 20000); /* sparse */
    plant("spirv-older", (off_t)100 << 20, 10000);
    session(_i, folder); /* 400 MiB: nothing has to go */
    ck_assert_int_eq(each_file("spirv-", NULL), KERNELS + 2);
    ck_assert_int_eq(each_file("temporary-", NULL), 1);
    plant("spirv-old", (off_t)150 << 20, 5000);
    ck_assert_int_eq(session(_i, folder), KERNELS); /* 550 MiB: down to 250 */
    ck_assert_int_eq(each_file("spirv-oldest", NULL), 0);
    ck_assert_int_eq(each_file("spirv-", NULL), KERNELS + 2);
    ck_assert_int_eq(session(_i, folder), KERNELS);
    delete_folder();
}
END_TEST

/* ---- injected failures ---- */

START_TEST(running_out_of_memory_leaves_the_device_usable) {
    EACH_DEVICE
    fx_bdevice *d;
    fx_device_caps caps;
    fx_kernel *k[KERNELS];
    fx_mem m[3];
    setenv("FORNAX_INJECT", "oom:2,compile:9", 1);
    OK(vk->open(_i, NULL, &d, &caps));
    unsetenv("FORNAX_INJECT");
    OK(vk->mem_alloc(d, 1000, FX_MEM_DEVICE, &m[0]));
    ck_assert_int_eq(vk->mem_alloc(d, 123456, FX_MEM_DEVICE, &m[1]), FX_OUT_OF_MEMORY);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "123456 bytes asked"));
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "free"));
    OK(vk->mem_alloc(d, 1000, FX_MEM_DEVICE, &m[2]));
    OK(make_kernels(d, k, NULL));
    OK(use_kernels(d, k));
    fx_kernel *more[KERNELS];
    ck_assert_int_eq(make_kernels(d, more, NULL), FX_COMPILE_ERROR);
    ck_assert_ptr_nonnull(strstr(fx_last_error(), "kernel add"));
    OK(make_kernels(d, more, NULL));
    OK(use_kernels(d, more));
    for (int i = 0; i < KERNELS; i++) {
        vk->kernel_destroy(d, k[i]);
        vk->kernel_destroy(d, more[i]);
    }
    vk->mem_free(d, &m[0]);
    vk->mem_free(d, &m[2]);
    vk->close(d);
}
END_TEST

START_TEST(memory_that_runs_out_while_staging_is_reported) {
    EACH_DEVICE
    fx_bdevice *d;
    fx_device_caps caps;
    fx_mem m;
    char bytes[100] = "staged", out[100];
    setenv("FORNAX_INJECT", "oom:2", 1);
    OK(vk->open(_i, NULL, &d, &caps));
    unsetenv("FORNAX_INJECT");
    OK(vk->mem_alloc(d, 100, FX_MEM_DEVICE, &m));
    fx_mem direct = m;
    direct.host = NULL;
    ck_assert_int_eq(vk->upload(d, &direct, 0, bytes, 100, NULL), FX_OUT_OF_MEMORY);
    OK(vk->upload(d, &direct, 0, bytes, 100, NULL));
    OK(vk->download(d, &direct, 0, out, 100));
    ck_assert_str_eq(out, "staged");
    vk->mem_free(d, &m);
    vk->close(d);
}
END_TEST

START_TEST(a_lost_device_stays_lost_and_names_its_kernels) {
    EACH_DEVICE
    fx_bdevice *d;
    fx_device_caps caps;
    fx_kernel *k[KERNELS];
    fx_mem m, none;
    fx_cmds *c;
    char text[1024];
    uint32_t word = 0;
    setenv("FORNAX_INJECT", "device_lost:2", 1);
    OK(vk->open(_i, NULL, &d, &caps));
    unsetenv("FORNAX_INJECT");
    OK(make_kernels(d, k, NULL));
    OK(vk->mem_alloc(d, 256, FX_MEM_DEVICE, &m));
    OK(use_kernels(d, k));
    ck_assert_int_eq(use_kernels(d, k), FX_DEVICE_LOST);
    snprintf(text, sizeof text, "%s", fx_last_error());
    ck_assert_ptr_nonnull(strstr(text, "[add; 6 dispatches]"));
    ck_assert_ptr_nonnull(strstr(text, "was lost"));
    ck_assert_int_eq(vk->upload(d, &m, 0, &word, 4, NULL), FX_DEVICE_LOST);
    ck_assert_str_eq(fx_last_error(), text);
    ck_assert_int_eq(vk->download(d, &m, 0, &word, 4), FX_DEVICE_LOST);
    ck_assert_int_eq(vk->mem_alloc(d, 4, FX_MEM_DEVICE, &none), FX_DEVICE_LOST);
    ck_assert_int_eq(vk->cmds_begin(d, &c), FX_DEVICE_LOST);
    fx_kernel *more[KERNELS];
    ck_assert_int_eq(make_kernels(d, more, NULL), FX_DEVICE_LOST);
    vk->mem_free(d, &m);
    for (int i = 0; i < KERNELS; i++)
        vk->kernel_destroy(d, k[i]);
    vk->close(d);
    ck_assert_int_eq(session(_i, NULL), 0); /* opened again it works */
}
END_TEST

START_TEST(a_device_lost_with_work_in_flight_can_be_closed) {
    EACH_DEVICE
    fx_bdevice *d;
    fx_device_caps caps;
    fx_kernel *k[KERNELS];
    fx_mem m;
    fx_cmds *c;
    uint64_t first, ticket;
    setenv("FORNAX_INJECT", "device_lost:9", 1);
    OK(vk->open(_i, NULL, &d, &caps));
    unsetenv("FORNAX_INJECT");
    OK(make_kernels(d, k, NULL));
    OK(vk->mem_alloc(d, 4 << 20, FX_MEM_DEVICE, &m));
    OK(vk->cmds_begin(d, &c));
    for (int i = 0; i < KERNELS; i++)
        OK(vk->cmds_dispatch(c, k[i], &m.address, 1, (uint32_t[]){1 << 14, 1, 1}));
    OK(vk->cmds_end(c));
    OK(vk->submit(d, 1, &c, &first));
    for (int i = 0; i < 7; i++)
        OK(vk->submit(d, 1, &c, &ticket));
    ck_assert_int_eq(vk->submit(d, 1, &c, &ticket), FX_DEVICE_LOST);
    bool finished;
    ck_assert_int_eq(vk->wait(d, ticket, UINT64_MAX, &finished), FX_DEVICE_LOST);
    vk->cmds_destroy(c);
    vk->mem_free(d, &m);
    for (int i = 0; i < KERNELS; i++)
        vk->kernel_destroy(d, k[i]);
    vk->close(d);
}
END_TEST

START_TEST(a_transfer_queue_runs_beside_and_before_later_work) {
    EACH_DEVICE
    fx_bdevice *d;
    fx_device_caps caps;
    fx_kernel *k;
    fx_mem m;
    fx_cmds *c;
    enum { WORDS = 5 << 20, ROUNDS = 4 }; /* 20 MiB: several chunks */
    uint32_t *words = malloc(WORDS * 4), *out = malloc(WORDS * 4);
    uint64_t ticket = 0, side = 0, last = 0;
    setenv("FORNAX_INJECT", "transfer_queue", 1);
    OK(vk->open(_i, NULL, &d, &caps));
    unsetenv("FORNAX_INJECT");
    fx_kernel_source s = kernel_source("triple", triple, 2, 64);
    OK(vk->kernels_create(d, 1, &s, &k, NULL));
    OK(vk->mem_alloc(d, WORDS * 4, FX_MEM_DEVICE, &m));
    m.host = NULL;
    OK(vk->cmds_begin(d, &c));
    OK(vk->cmds_dispatch(c, k, (uint64_t[]){m.address, 1 << 20}, 2, (uint32_t[]){1 << 14, 1, 1}));
    OK(vk->cmds_end(c));
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WORDS; i++)
            words[i] = i ^ round;
        OK(vk->upload_after(d, ticket, &m, 0, words, WORDS * 4, &side)); /* after the last round's kernel */
        OK(vk->upload_after(d, side, &m, 0, &round, 4, &side));          /* after the copy before it */
        ck_assert_uint_gt(side, last);
        last = side;
        OK(vk->submit(d, 1, &c, &ticket));
        ck_assert_uint_gt(ticket, last);
    }
    OK(vk->wait(d, side, UINT64_MAX, NULL));
    OK(vk->download(d, &m, 0, out, WORDS * 4));
    words[0] = ROUNDS - 1;
    for (uint32_t i = 0; i < WORDS; i++)
        if (out[i] != (i < 1 << 20 ? words[i] * 3 + 1 : words[i]))
            ck_abort_msg("word %u is %u", i, out[i]);
    vk->cmds_destroy(c);
    vk->kernel_destroy(d, k);
    vk->mem_free(d, &m);
    vk->close(d);
    free(words);
    free(out);
}
END_TEST

/* ---- other processes ---- */

/* This program again with `mode`, and with `name` set to `value` in its environment. Its process id. */
static pid_t other_process(const char *mode, const char *argument, const char *name, const char *value) {
    pid_t pid = fork();
    if (pid == 0) {
        if (name && value)
            setenv(name, value, 1);
        execl(self, self, mode, argument, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int exit_code(pid_t pid) {
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200;
}

START_TEST(processes_share_a_cache) {
    EACH_DEVICE
    pid_t pids[3];
    char index[16];
    new_folder();
    snprintf(index, sizeof index, "%d", _i);
    for (int i = 0; i < 3; i++)
        pids[i] = other_process(index, folder, NULL, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(exit_code(pids[i]), 0);
    ck_assert_int_eq(each_file("temporary-", NULL), 0);
    ck_assert_int_eq(session(_i, folder), KERNELS);
    delete_folder();
}
END_TEST

START_TEST(a_missing_driver_is_a_reason_and_not_an_error) {
    ck_assert_int_eq(exit_code(other_process("no-driver", "", "VK_DRIVER_FILES", "/nonexistent/icd.json")), 0);
}
END_TEST

START_TEST(a_missing_layer_is_an_error_that_names_its_package) {
    setenv("FORNAX_VALIDATE", "1", 1);
    pid_t pid = other_process("no-layer", "", "VK_LAYER_PATH", "/nonexistent");
    if (validation_was_off)
        unsetenv("FORNAX_VALIDATE");
    ck_assert_int_eq(exit_code(pid), 0);
}
END_TEST

/* What this program does in another process. Exit code 0: as expected. */
static int other_main(const char *mode, const char *argument) {
    const char *reason = NULL;
    for (int i = 0; i < fx_backend_registry_count; i++)
        if (strcmp(fx_backend_registry[i].name, "vulkan") == 0)
            vk = fx_backend_registry[i].get(&reason);
    int count = -1;
    fx_status st = vk->enumerate(device_infos, MOST_DEVICES, &count, &reason);
    if (strcmp(mode, "no-driver") == 0)
        return !(st == FX_OK && count == 0 && reason && strstr(reason, "mesa-vulkan-drivers"));
    if (strcmp(mode, "no-layer") == 0)
        return !(st == FX_UNSUPPORTED && count == 0 && strstr(fx_last_error(), "vulkan-validationlayers"));
    for (int i = 0; i < 5; i++) {
        fx_bdevice *d;
        fx_device_caps caps;
        fx_kernel *k[KERNELS];
        if (vk->open(atoi(mode), argument, &d, &caps) || make_kernels(d, k, NULL) || use_kernels(d, k))
            return 1;
        for (int j = 0; j < KERNELS; j++)
            vk->kernel_destroy(d, k[j]);
        vk->close(d);
    }
    return validation_messages() != 0;
}

START_TEST(validation_stayed_silent) {
    ck_assert_int_eq(validation_messages(), 0);
}
END_TEST

int main(int argc, char **argv) {
    if (argc > 2)
        return other_main(argv[1], argv[2]);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    validation_was_off = getenv("FORNAX_VALIDATE") == NULL;
    if (!find_vulkan())
        return SKIPPED;
    Suite *s = suite_create("vulkan_faults");
    TCase *c = tcase_create("faults");
    suite_add_tcase(s, c);
    tcase_add_loop_test(c, the_second_start_finds_kernels_on_disk, 0, n_devices);
    tcase_add_loop_test(c, damaged_entries_are_ignored_and_rebuilt, 0, n_devices);
    tcase_add_loop_test(c, a_cache_that_can_not_be_written_is_no_error, 0, n_devices);
    tcase_add_loop_test(c, the_cache_stays_below_its_size, 0, n_devices);
    tcase_add_loop_test(c, running_out_of_memory_leaves_the_device_usable, 0, n_devices);
    tcase_add_loop_test(c, memory_that_runs_out_while_staging_is_reported, 0, n_devices);
    tcase_add_loop_test(c, a_lost_device_stays_lost_and_names_its_kernels, 0, n_devices);
    tcase_add_loop_test(c, a_device_lost_with_work_in_flight_can_be_closed, 0, n_devices);
    tcase_add_loop_test(c, a_transfer_queue_runs_beside_and_before_later_work, 0, n_devices);
    tcase_add_loop_test(c, processes_share_a_cache, 0, n_devices);
    tcase_add_test(c, a_missing_driver_is_a_reason_and_not_an_error);
    tcase_add_test(c, a_missing_layer_is_an_error_that_names_its_package);
    tcase_add_test(c, validation_stayed_silent);
    SRunner *r = srunner_create(s);
    srunner_set_fork_status(r, CK_NOFORK);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
