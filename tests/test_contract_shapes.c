/* test_contract_shapes.c - products of many odd sizes, types and transpositions, and random convolutions, at subgroup
 * sizes 4, 8 and 16 of lavapipe. ctest: slow, ctest: vector widths */
#include "contract_check.h"

static bool brief; /* a run for one more subgroup size */

static const int sizes[] = {1, 2, 3, 7, 16, 17, 31, 33, 64, 65, 197};
enum { N_SIZES = sizeof sizes / sizeof *sizes };
static const char *const types[] = {"f32", "bf16", "f16", "f64", "s32"};

/* Each size in each role with each transposition; other types fewer. */
static void shapes(int device, fx_contract_choice choice, const char *expect, int step) {
    char text[400];
    for (int type = 0; type < 5; type++)
        for (int t = 0; t < 4; t++)
            for (int i = 0; i < N_SIZES; i += type ? 3 * step : step) {
                int at = i + type + t, batch = at % 3;
                int m = sizes[at % N_SIZES], n = sizes[(at * 3 + 1) % N_SIZES], k = sizes[(at * 7 + 4) % N_SIZES];
                product_text(text, sizeof text, types[type], batch, m, n, k, t & 1, t & 2, at % 4 == 1);
                contract_check(&devices[device], text, choice, 0, expect);
            }
}

START_TEST(shapes_agree_by_subgroups) {
    shapes(_i, FX_CONTRACT_SUBGROUP, devices[_i].caps.subgroup_ballot ? "contract.subgroup" : NULL, brief ? 4 : 1);
}
END_TEST

START_TEST(shapes_agree_by_shared_memory) {
    if (!brief) /* it doesn't use subgroups; software devices compile it slowly */
        shapes(_i, FX_CONTRACT_SHARED, "contract.shared", 3);
}
END_TEST

static void list(char *out, size_t size, const char *name, int n, const int *v) {
    size_t used = strlen(out);
    used += (size_t)snprintf(out + used, size - used, ", %s=[", name);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", v[i]);
    snprintf(out + used, size - used, "]");
}

/* A convolution with random attributes; false when the window is larger than what it slides over. */
static bool random_convolution(char *text, size_t size) {
    int sp = 1 + (int)contract_random(2), batch = 1 + (int)contract_random(3), features = 1 + (int)contract_random(5);
    int out = 1 + (int)contract_random(20), fg = 1, bg = 1, x[4], w[4], stride[2], low[2], high[2], ld[2], rd[2],
        rev[2];
    int ls[4], rs[4], os[4], xd[4], wd[4];
    if (contract_random(4) == 0)
        fg = 2;
    else if (contract_random(4) == 0)
        bg = 2;
    int nhwc = (int)contract_random(2);
    for (int d = 0; d < sp + 2; d++) { /* position of (batch, feature, space...) */
        ls[d] = os[d] = nhwc ? (d == 0 ? 0 : d == 1 ? sp + 1 : d - 1) : d;
        rs[d] = nhwc ? (d == 0 ? sp + 1 : d == 1 ? sp : d - 2) : d;
    }
    x[0] = batch * bg;
    x[1] = features * fg;
    w[0] = out * fg * bg;
    w[1] = features;
    for (int d = 0; d < sp; d++) {
        x[2 + d] = 3 + (int)contract_random(7);
        w[2 + d] = 1 + (int)contract_random(3);
        stride[d] = 1 + (int)contract_random(2);
        low[d] = (int)contract_random(4) - 1;
        high[d] = (int)contract_random(4) - 1;
        ld[d] = 1 + (int)contract_random(2);
        rd[d] = 1 + (int)contract_random(2);
        rev[d] = (int)contract_random(2);
        if ((x[2 + d] - 1) * ld[d] + 1 + low[d] + high[d] < (w[2 + d] - 1) * rd[d] + 1)
            return false;
    }
    for (int d = 0; d < sp + 2; d++) {
        xd[ls[d]] = x[d];
        wd[rs[d]] = w[d];
    }
    char dims[2][64] = {"", ""};
    for (int d = 0; d < sp + 2; d++) {
        snprintf(dims[0] + strlen(dims[0]), 16, "%s%d", d ? "," : "", xd[d]);
        snprintf(dims[1] + strlen(dims[1]), 16, "%s%d", d ? "," : "", wd[d]);
    }
    snprintf(text, size,
             "graph(%%x: f32[%s], %%w: f32[%s]) { %%y = convolution(%%x, %%w) {feature_groups=%d, "
             "batch_groups=%d",
             dims[0], dims[1], fg, bg);
    list(text, size, "lhs_spec", sp + 2, ls);
    list(text, size, "rhs_spec", sp + 2, rs);
    list(text, size, "out_spec", sp + 2, os);
    list(text, size, "strides", sp, stride);
    list(text, size, "low", sp, low);
    list(text, size, "high", sp, high);
    list(text, size, "lhs_dilation", sp, ld);
    list(text, size, "rhs_dilation", sp, rd);
    list(text, size, "window_reversal", sp, rev);
    strncat(text, "} return %y }", size - strlen(text) - 1);
    return true;
}

START_TEST(random_convolutions_agree) {
    char text[1000];
    contract_state = 7;
    for (int i = 0; i < (brief ? 6 : 24);) {
        if (!random_convolution(text, sizeof text))
            continue;
        uint32_t state = contract_state;
        contract_check(&devices[_i], text, FX_CONTRACT_SUBGROUP, 0, NULL);
        if (!brief && i % 4 == 0)
            contract_check(&devices[_i], text, FX_CONTRACT_SHARED, 0, NULL);
        contract_state = state + 1;
        i++;
    }
}
END_TEST

static void add(TCase *c, int n) {
    tcase_add_loop_test(c, shapes_agree_by_subgroups, 0, n);
    tcase_add_loop_test(c, shapes_agree_by_shared_memory, 0, n);
    tcase_add_loop_test(c, random_convolutions_agree, 0, n);
}

int main(int argc, char **argv) {
    brief = argc > 1 && !strcmp(argv[1], "brief");
    return contract_main("contract_shapes", add);
}
