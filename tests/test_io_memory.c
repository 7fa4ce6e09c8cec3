/* test_io_memory.c - every allocation of the readers, writers, loader and plot fails once: an error, no crash, no leak.
 *
 * The program's own malloc stands before the C library's, so it counts and fails what third-party libraries ask for
 * too. */
#include "case_files.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#include <malloc.h>
#include <stdatomic.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t alignment, size_t n);
void __libc_free(void *p);

static atomic_long left = -1, alive, failed; /* allocations until one fails, -1: never; not freed; failures so far */

/* The five are visible, so that shared libraries call them as well. */
static bool refuse(void) {
    long now = atomic_load(&left);
    if (now < 0 || atomic_fetch_sub(&left, 1) != 0)
        return false;
    atomic_fetch_add(&failed, 1);
    return true;
}

static void *counted(void *p) {
    atomic_fetch_add(&alive, p != NULL);
    return p;
}

FX_API void *malloc(size_t n) {
    return refuse() ? NULL : counted(__libc_malloc(n));
}
FX_API void *calloc(size_t n, size_t size) {
    return refuse() ? NULL : counted(__libc_calloc(n, size));
}
FX_API void *realloc(void *p, size_t n) {
    if (refuse())
        return NULL;
    void *q = __libc_realloc(p, n);
    return p ? q : counted(q);
}
FX_API void *aligned_alloc(size_t alignment, size_t n) {
    return refuse() ? NULL : counted(__libc_memalign(alignment, n));
}
FX_API void free(void *p) {
    atomic_fetch_sub(&alive, p != NULL);
    __libc_free(p);
}

static case_file *safetensors_files, *png_files, *jpeg_files, *npy_files;
static size_t n_safetensors, n_png, n_jpeg, n_npy;
static char paths[4][256];

static fx_status read_safetensors(void) {
    fx_safetensors *f;
    FX_TRY(fx_safetensors_parse(safetensors_files[0].data, safetensors_files[0].size, &f));
    fx_safetensors_close(f);
    return FX_OK;
}

static fx_status write_safetensors(void) {
    float x[6] = {0};
    fx_named_tensor t[] = {{"b", FX_SPEC(FX_F32, 2, 3), x, 24, NULL}, {"a", FX_SPEC(FX_U8, 3), x, 3, NULL}};
    fx_text_pair m = {"k", "v"};
    FX_TRY(fx_safetensors_write(paths[0], t, 2, &m, 1, NULL));
    long keep = atomic_exchange(&left, -1); /* what was written is whole */
    fx_safetensors *f;
    ck_assert_fx_ok(fx_safetensors_open(paths[0], &f));
    ck_assert(fx_spec_equal(&fx_safetensors_find(f, "b")->spec, &t[0].spec));
    ck_assert_str_eq(fx_safetensors_metadata(f, "k"), "v");
    fx_safetensors_close(f);
    atomic_store(&left, keep);
    return FX_OK;
}

static fx_status read_images(void) {
    fx_image_options o = FX_IMAGE_OPTIONS_INIT;
    o.channels = 3;
    o.width = o.height = 4;
    o.dtype = FX_F32;
    fx_image image;
    for (size_t i = 0; i < n_png + n_jpeg; i++) {
        const case_file *f = i < n_png ? &png_files[i] : &jpeg_files[i - n_png];
        FX_TRY(fx_image_decode(f->data, f->size, &o, &image));
        fx_image_free(&image);
    }
    return FX_OK;
}

static fx_status save_and_load_npz(void) {
#ifdef FX_HAVE_LIBZIP
    float x[6] = {0};
    fx_named_tensor t[] = {{"b", FX_SPEC(FX_F32, 2, 3), x, 24, NULL}, {"a", FX_SPEC(FX_U8, 3), x, 3, NULL}};
    FX_TRY(fx_npz_write(paths[1], t, 2));
    fx_npz *z;
    fx_host_array a;
    FX_TRY(fx_npz_open(paths[1], &z));
    fx_status status = fx_npz_read(z, "a", &a);
    if (status == FX_OK)
        fx_host_array_free(&a);
    fx_npz_close(z);
    return status;
#else
    return FX_OK;
#endif
}

static fx_status train(void) {
    fx_dataset *d, *part, *rest;
    fx_loader *l;
    const fx_batch *b;
    FX_TRY(fx_dataset_digits(FX_SPLIT_TRAIN, &d));
    fx_status status = fx_dataset_split(d, 0.5, 1, &part, &rest);
    fx_dataset_destroy(d);
    FX_TRY(status);
    fx_dataset_destroy(rest);
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    o.shuffle = true;
    status = fx_loader_create(part, &o, &l);
    fx_dataset_destroy(part);
    FX_TRY(status);
    status = fx_loader_next(l, &b);
    fx_loader_destroy(l);
    return status;
}

static fx_status read_folder(void) {
    fx_dataset_options o = FX_DATASET_OPTIONS_INIT;
    o.height = o.width = 3;
    fx_dataset *d;
    float image[27];
    FX_TRY(fx_dataset_open(paths[2], FX_SPLIT_ALL, &o, &d));
    fx_status status = fx_dataset_read(d, 0, image, NULL);
    fx_dataset_destroy(d);
    return status;
}

static fx_status draw(void) {
    fx_plot_options o = FX_PLOT_OPTIONS_INIT;
    o.width = o.height = 160;
    o.title = o.x_label = o.y_label = "text";
    fx_plot *p;
    double y[3] = {1, 2, 0};
    FX_TRY(fx_plot_create(&o, &p));
    fx_status status = fx_plot_add(p, "a", NULL, y, 3);
    if (status == FX_OK)
        status = fx_plot_add(p, "b", y, y, 3);
    if (status == FX_OK)
        status = fx_plot_save(p, paths[3]);
    fx_plot_destroy(p);
    return status;
}

START_TEST(each_failed_allocation_is_an_error_without_leak) {
    static fx_status (*const runs[])(void) = {
        read_safetensors, write_safetensors, read_images, save_and_load_npz, train, read_folder, draw};
    safetensors_files = case_files("E-001", &n_safetensors);
    png_files = case_files("E-011", &n_png);
    jpeg_files = case_files("E-013", &n_jpeg);
    npy_files = case_files("E-007", &n_npy);
    static const char *const names[] = {"a.safetensors", "a.npz", "", "a.png"};
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(names[i]));
    char command[160];
    snprintf(command, sizeof command, "mkdir -p %s/set/cat", scratch_dir);
    ck_assert_int_eq(system(command), 0);
    write_file(scratch_path("set/cat/1.png"), png_files[0].data, png_files[0].size);
    snprintf(paths[2], sizeof paths[2], "folder:%s/set", scratch_dir);
    long failures = 0;
    for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
        ck_assert_fx_ok(runs[r]()); /* what is allocated once in a process is there now */
        long n = 0;
        for (bool done = false; !done; n++) {
            long before = atomic_load(&alive), failed_before = atomic_load(&failed);
            atomic_store(&left, n);
            fx_status status = runs[r]();
            atomic_store(&left, -1);
            done = atomic_load(&failed) == failed_before; /* fewer than n allocations */
            ck_assert_msg(done ? status == FX_OK : true, "run %zu: %s", r, fx_last_error());
            /* libzip 1.7 itself loses memory when zip_close runs out of it */
            ck_assert_msg(atomic_load(&alive) == before || runs[r] == save_and_load_npz,
                          "run %zu leaks %ld when allocation %ld fails", r, atomic_load(&alive) - before, n);
            ck_assert_int_lt(n, 20000);
        }
        failures += n;
    }
    ck_assert_int_gt(failures, 150);
    case_files_free(safetensors_files, n_safetensors);
    case_files_free(png_files, n_png);
    case_files_free(jpeg_files, n_jpeg);
    case_files_free(npy_files, n_npy);
}
END_TEST
#else
START_TEST(each_failed_allocation_is_an_error_without_leak) {
    ck_assert_str_ne(fx_version(), ""); /* a sanitizer brings its own malloc: the plain build runs this test */
}
END_TEST
#endif

int main(void) {
    Suite *s = suite_create("io_memory");
    TCase *c = tcase_create("io_memory");
    tcase_add_checked_fixture(c, NULL, scratch_clean);
    suite_add_tcase(s, c);
    tcase_add_test(c, each_failed_allocation_is_an_error_without_leak);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
