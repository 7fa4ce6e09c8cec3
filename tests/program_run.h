/* program_run.h - runs a compiled program step by step on a Vulkan device, without the runtime: for tests of the
 * compiler. Every buffer is an allocation of its own, every step a list of its own; slow and plain. */
#ifndef TESTS_PROGRAM_RUN_H
#define TESTS_PROGRAM_RUN_H

#include "core/compile/program.h"
#include "vulkan_device.h"

typedef struct test_device {
    fx_bdevice *d;
    fx_device_caps caps;
} test_device;

static inline void device_bytes_from_host(const test_device *t, const fx_spec *s, const void *host, void *dev) {
    int64_t n = fx_spec_count(s);
    if (s->dtype == FX_BOOL && t->caps.bool_is_word)
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)dev)[i] = ((const uint8_t *)host)[i];
    else
        memcpy(dev, host, (size_t)n * fx_dtype_size(s->dtype));
}

static inline void host_bytes_from_device(const test_device *t, const fx_spec *s, const void *dev, void *host) {
    int64_t n = fx_spec_count(s);
    if (s->dtype == FX_BOOL && t->caps.bool_is_word)
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)host)[i] = ((const uint32_t *)dev)[i] != 0;
    else
        memcpy(host, dev, (size_t)n * fx_dtype_size(s->dtype));
}

static inline fx_mem test_alloc(test_device *t, uint64_t bytes) {
    fx_mem m;
    OK(vk->mem_alloc(t->d, bytes < 16 ? 16 : bytes, FX_MEM_DEVICE, &m));
    return m;
}

static inline void test_copy(test_device *t, const fx_mem *dst, uint64_t doff, const fx_mem *src, uint64_t soff,
                             uint64_t bytes) {
    char *tmp = malloc(bytes + 1);
    OK(vk->download(t->d, src, soff, tmp, bytes));
    OK(vk->upload(t->d, dst, doff, tmp, bytes, NULL));
    free(tmp);
}

/* in, out: device memory of the parameters and for the results. */
static inline void run_program(test_device *t, const fx_program *p, const fx_mem *in, const fx_mem *out) {
    fx_mem *mem = calloc((size_t)p->n_buffer + 1, sizeof *mem);
    fx_kernel **kernels = calloc((size_t)p->n_kernel + 1, sizeof *kernels);
    fx_kernel_source *sources = calloc((size_t)p->n_kernel + 1, sizeof *sources);
    for (int i = 0; i < p->n_kernel; i++)
        sources[i] = p->kernels[i].source;
    if (p->n_kernel)
        OK(vk->kernels_create(t->d, p->n_kernel, sources, kernels, NULL));
    for (int i = 0; i < p->n_buffer; i++) {
        const fx_buffer *b = &p->buffers[i];
        mem[i] = b->kind == FX_BUFFER_PARAM ? in[b->index] : test_alloc(t, b->bytes);
        if (b->kind == FX_BUFFER_CONST)
            OK(vk->upload(t->d, &mem[i], 0, b->data, b->bytes, NULL));
    }
    for (int i = 0; i < p->n_step; i++) {
        const fx_step *s = &p->steps[i];
        fx_mem a[256];
        ck_assert_int_le(s->n_arg, 256);
        for (int j = 0; j < s->n_arg; j++)
            a[j] = mem[s->args[j].buffer];
        if (s->kind == FX_STEP_KERNEL) {
            uint64_t args[256], ticket;
            bool done;
            fx_cmds *c;
            for (int j = 0; j < s->n_arg; j++)
                args[j] = a[j].address + (uint64_t)s->args[j].offset;
            OK(vk->cmds_begin(t->d, &c));
            OK(vk->cmds_dispatch(c, kernels[s->kernel], args, (uint32_t)s->n_arg, s->groups));
            OK(vk->cmds_end(c));
            OK(vk->submit(t->d, 1, &c, &ticket));
            OK(vk->wait(t->d, ticket, UINT64_MAX, &done));
            vk->cmds_destroy(c);
        } else if (s->kind == FX_STEP_COND) {
            int32_t k;
            OK(vk->download(t->d, &a[0], 0, &k, 4));
            k = k < 0 ? 0 : k >= s->n_body ? s->n_body - 1 : k;
            run_program(t, s->body[k], a + 1, a + s->n_arg - s->n_results);
        } else if (s->kind == FX_STEP_WHILE) {
            fx_mem *res = a + s->n_carry + s->n_consts, now[64];
            for (int j = 0; j < s->n_carry; j++)
                test_copy(t, &res[j], 0, &a[j], 0, fx_device_bytes(&p->buffers[s->args[j].buffer].spec, &t->caps));
            for (int j = 0; j < s->n_carry + s->n_consts; j++)
                now[j] = j < s->n_carry ? res[j] : a[j];
            for (;;) {
                fx_mem flag = test_alloc(t, 4), next[64];
                uint32_t go = 0;
                run_program(t, s->body[0], now, &flag);
                OK(vk->download(t->d, &flag, 0, &go, 4));
                vk->mem_free(t->d, &flag);
                if (!(go & 255))
                    break;
                for (int j = 0; j < s->n_carry; j++)
                    next[j] = test_alloc(t, fx_device_bytes(&p->buffers[s->args[j].buffer].spec, &t->caps));
                run_program(t, s->body[1], now, next);
                for (int j = 0; j < s->n_carry; j++) {
                    test_copy(t, &res[j], 0, &next[j], 0,
                              fx_device_bytes(&p->buffers[s->args[j].buffer].spec, &t->caps));
                    vk->mem_free(t->d, &next[j]);
                }
            }
        } else if (s->kind == FX_STEP_SCAN) {
            int first = s->n_consts + s->n_carry, n_in = first + s->n_xs;
            fx_mem *res = a + n_in, args[64], next[64];
            uint64_t bytes[64], slice[64];
            for (int j = 0; j < s->n_arg; j++) {
                fx_spec spec = p->buffers[s->args[j].buffer].spec;
                bytes[j] = fx_device_bytes(&spec, &t->caps);
                if (s->length && spec.rank)
                    slice[j] = bytes[j] / (uint64_t)s->length; /* tests use 4-byte elements here */
            }
            for (int j = 0; j < s->n_carry; j++)
                test_copy(t, &res[j], 0, &a[s->n_consts + j], 0, bytes[s->n_consts + j]);
            for (int64_t step = 0; step < s->length; step++) {
                int64_t at = s->reverse ? s->length - 1 - step : step;
                for (int j = 0; j < n_in; j++) {
                    args[j] = j < s->n_consts ? a[j] : j < first ? res[j - s->n_consts] : test_alloc(t, slice[j]);
                    if (j >= first)
                        test_copy(t, &args[j], 0, &a[j], (uint64_t)at * slice[j], slice[j]);
                }
                for (int j = 0; j < s->n_results; j++)
                    next[j] = test_alloc(t, j < s->n_carry ? bytes[n_in + j] : slice[n_in + j]);
                run_program(t, s->body[0], args, next);
                for (int j = 0; j < s->n_results; j++) {
                    if (j < s->n_carry)
                        test_copy(t, &res[j], 0, &next[j], 0, bytes[n_in + j]);
                    else
                        test_copy(t, &res[j], (uint64_t)at * slice[n_in + j], &next[j], 0, slice[n_in + j]);
                    vk->mem_free(t->d, &next[j]);
                }
                for (int j = first; j < n_in; j++)
                    vk->mem_free(t->d, &args[j]);
            }
        } else
            ck_abort_msg("step kind %d", (int)s->kind);
    }
    for (int i = 0; i < p->n_result; i++)
        if (p->buffers[p->results[i]].bytes)
            test_copy(t, &out[i], 0, &mem[p->results[i]], 0, p->buffers[p->results[i]].bytes);
    for (int i = 0; i < p->n_kernel; i++)
        vk->kernel_destroy(t->d, kernels[i]);
    for (int i = 0; i < p->n_buffer; i++)
        if (p->buffers[i].kind != FX_BUFFER_PARAM)
            vk->mem_free(t->d, &mem[i]);
    free(sources);
    free(kernels);
    free(mem);
}

/* Host in, host out, of the graph's specs. */
static inline fx_status run_graph(test_device *t, const fx_graph *g, const fx_lower_options *opt, const void *const *in,
                                  void *const *out) {
    fx_program *p;
    FX_TRY(fx_program_create(g, &t->caps, opt, &p));
    fx_mem a[256], r[256];
    ck_assert(g->n_param <= 256 && g->n_result <= 256);
    for (int i = 0; i < g->n_param; i++) {
        uint64_t bytes = fx_device_bytes(&g->params[i]->spec, &t->caps);
        char *tmp = calloc(1, bytes + 1);
        a[i] = test_alloc(t, bytes);
        device_bytes_from_host(t, &g->params[i]->spec, in[i], tmp);
        if (bytes)
            OK(vk->upload(t->d, &a[i], 0, tmp, bytes, NULL));
        free(tmp);
    }
    for (int i = 0; i < g->n_result; i++)
        r[i] = test_alloc(t, fx_device_bytes(&g->results[i]->spec, &t->caps));
    run_program(t, p, a, r);
    for (int i = 0; i < g->n_result; i++) {
        uint64_t bytes = fx_device_bytes(&g->results[i]->spec, &t->caps);
        char *tmp = calloc(1, bytes + 1);
        if (bytes)
            OK(vk->download(t->d, &r[i], 0, tmp, bytes));
        host_bytes_from_device(t, &g->results[i]->spec, tmp, out[i]);
        free(tmp);
        vk->mem_free(t->d, &r[i]);
    }
    for (int i = 0; i < g->n_param; i++)
        vk->mem_free(t->d, &a[i]);
    fx_program_destroy(p);
    return FX_OK;
}

#endif
