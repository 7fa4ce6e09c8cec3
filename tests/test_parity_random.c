/* test_parity_random.c - the streams of jax.random, on every device: integers and uniform numbers bit for bit, normal
 * ones within the error of log and sqrt. ctest: timeout 600 */
#include "golden.h"

/* What a tensor's name calls; see golden/make_golden.py. */
typedef struct call {
    char kind[32];
    uint64_t seed;
    double a, b;
    fx_spec spec;
} call;

typedef struct calls {
    int n;
    const call *c;
} calls;

static bool parse(const fx_named_tensor *t, call *c) {
    unsigned long long seed;
    memset(c, 0, sizeof *c);
    c->spec = t->spec;
    if (sscanf(t->name, "%31s %llu %lf %lf", c->kind, &seed, &c->a, &c->b) < 2)
        return false;
    c->seed = seed;
    return true;
}

static fx_val sample(fx_trace *t, const call *c) {
    fx_val key = fx_random_key(t, c->seed);
    if (!strcmp(c->kind, "key"))
        return key;
    if (!strcmp(c->kind, "split"))
        return fx_random_split(key, c->spec.dims[0]);
    if (!strcmp(c->kind, "fold_in")) {
        uint32_t data = (uint32_t)c->a;
        return fx_random_fold_in(key, fx_literal(t, FX_SPEC0(FX_U32), &data));
    }
    if (!strcmp(c->kind, "bits"))
        return fx_random_bits(key, c->spec);
    if (!strcmp(c->kind, "uniform"))
        return fx_random_uniform(key, c->spec, c->a, c->b);
    if (!strcmp(c->kind, "normal"))
        return fx_random_normal(key, c->spec);
    if (!strcmp(c->kind, "truncated_normal"))
        return fx_random_truncated_normal(key, c->a, c->b, c->spec);
    if (!strcmp(c->kind, "bernoulli"))
        return fx_random_bernoulli(key, c->a, c->spec.rank, c->spec.dims);
    if (!strcmp(c->kind, "permutation"))
        return fx_random_permutation(key, c->spec.dims[0]);
    return fx_trace_fail(t, "unknown call %s", c->kind);
}

static void samples(fx_trace *t, const fx_val *in, fx_val *out, void *user) {
    const calls *c = user;
    (void)in;
    for (int i = 0; i < c->n; i++)
        out[i] = sample(t, &c->c[i]);
}

static double value(fx_dtype d, const void *p, int64_t i) {
    switch (d) {
    case FX_F16:
        return (double)fx_f16_to_f32(((const uint16_t *)p)[i]);
    case FX_BF16:
        return (double)fx_bf16_to_f32(((const uint16_t *)p)[i]);
    case FX_F32:
        return (double)((const float *)p)[i];
    default:
        return ((const double *)p)[i];
    }
}

static bool is_normal(const call *c) {
    return strstr(c->kind, "normal") != NULL;
}

static void compare(const char *where, const fx_named_tensor *t, const call *c, const void *got) {
    int64_t n = fx_spec_count(&c->spec);
    size_t size = fx_dtype_size(c->spec.dtype);
    if (!is_normal(c)) {
        for (int64_t i = 0; i < n; i++)
            ck_assert_msg(!memcmp((const char *)got + (size_t)i * size, (const char *)t->data + (size_t)i * size, size),
                          "%s: %s: element %lld has other bits", where, t->name, (long long)i);
        return;
    }
    /* JAX rounds the square of the uniform number, which moves samples far out; in f64 its inverse error function is
     * off by up to 9.4 units in the last place, Fornax's by 1 */
    double ulp = c->spec.dtype == FX_F16    ? 0x1p-10
                 : c->spec.dtype == FX_BF16 ? 0x1p-7
                 : c->spec.dtype == FX_F32  ? 0x1p-23
                                            : 0x1p-52;
    double units = c->spec.dtype == FX_F64 ? 12 : 4;
    void *want = malloc(t->bytes + 1);
    if (t->bytes)
        memcpy(want, t->data, t->bytes);
    for (int64_t i = 0; i < n; i++) {
        double g = value(c->spec.dtype, got, i), w = value(c->spec.dtype, want, i);
        ck_assert_msg(fabs(g - w) <= ulp * (units * fmax(fabs(w), 0.25) + 1.2533 * exp(w * w / 2)),
                      "%s: %s: element %lld: got %.17g, want %.17g", where, t->name, (long long)i, g, w);
    }
    free(want);
}

/* All calls of one element type in one program, on a device that has the type. */
static void run_calls(fx_device *d, fx_dtype type) {
    fx_safetensors *file = golden_open("random");
    size_t count = fx_safetensors_count(file);
    call *c = calloc(count, sizeof *c);
    const fx_named_tensor **t = calloc(count, sizeof *t);
    fx_array **out = calloc(count, sizeof *out);
    calls all = {0, c};
    for (size_t i = 0; i < count; i++) {
        t[all.n] = fx_safetensors_get(file, i);
        ck_assert(parse(t[all.n], &c[all.n]));
        all.n += c[all.n].spec.dtype == type;
    }
    ck_assert_int_gt(all.n, 0);
    fx_func *f;
    fx_exec *e;
    OK(fx_trace_func(samples, &all, 0, NULL, all.n, &f));
    OK(fx_compile(f, d, NULL, &e));
    OK(fx_run(e, NULL, out));
    for (int i = 0; i < all.n; i++) {
        void *got = malloc(t[i]->bytes + 1);
        OK(fx_array_read(out[i], got, t[i]->bytes));
        compare(fx_device_uri(d), t[i], &c[i], got);
        fx_array_unref(out[i]);
        free(got);
    }
    fx_exec_destroy(e);
    fx_func_unref(f);
    free(out);
    free(t);
    free(c);
    fx_safetensors_close(file);
}

static const fx_dtype types[] = {FX_BOOL, FX_S32, FX_U8, FX_U16, FX_U32, FX_U64, FX_F16, FX_BF16, FX_F32, FX_F64};

START_TEST(streams_are_those_of_jax) {
    FOR_EACH_DEVICE(d)
    if (fx_device_supports(d, types[_i]) == FX_OK)
        run_calls(d, types[_i]);
}
END_TEST

int main(void) {
    Suite *s = suite_create("parity_random");
    TCase *c = tcase_create("jax");
    tcase_add_checked_fixture(c, golden_setup, golden_teardown);
    tcase_add_loop_test(c, streams_are_those_of_jax, 0, sizeof types / sizeof *types);
    suite_add_tcase(s, c);
    return golden_run(s);
}
