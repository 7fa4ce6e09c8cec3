/* schedule_pointwise.c - every element of the outputs computed on its own, several an invocation.
 *
 * A workgroup takes a contiguous block of elements; its lanes stride through it by pairs (one 8-byte access
 * for two 4-byte elements), so that neighbouring lanes touch neighbouring elements. Also the fallback for
 * whatever can be computed by element. */
#include "core/compile/schedule.h"

enum { LANES = 256, MOST_PER_LANE = 8, SOME = 32 };

/* Loads of all outputs come before stores of any, for what runs in place. */
void fx_pointwise_elements(fx_emit *e, const fx_group *g, int width, fx_kx *const *i) {
    fx_kir *k = &e->k;
    fx_lower *lo = &e->lo;
    lo->in_place = i[0];
    lo->in_place2 = i[width - 1];
    lo->pairs = width == 2;
    for (int first = 0; first < g->n_out; first += SOME) {
        int count = g->n_out - first < SOME ? g->n_out - first : SOME;
        fx_kx *x[SOME][2];
        for (int j = 0; j < count; j++)
            for (int w = 0; w < width; w++)
                x[j][w] = fx_k_let(k, fx_lower_linear(lo, g->out[first + j], i[w]));
        for (int j = 0; j < count; j++) {
            fx_value v = g->out[first + j];
            int buffer = lo->values->buffer[fx_value_id(lo->values, v)];
            const fx_spec *s = fx_value_spec(v);
            if (width == 2 && fx_lower_pairable(lo, buffer, s->dtype, fx_spec_count(s), i[0]))
                fx_k_storev(k, fx_lower_arg(lo, buffer, s->dtype), i[0], 2, x[j]);
            else
                for (int w = 0; w < width; w++)
                    fx_lower_store(lo, v, i[w], x[j][w]);
        }
    }
}

static fx_status emit(fx_emit *e, const fx_group *g) {
    fx_kir *k = &e->k;
    int64_t n = fx_spec_count(fx_value_spec(g->out[0])), units = e->caps->units ? (int64_t)e->caps->units : 8;
    int width = n % 2 == 0 ? 2 : 1;
    int64_t lanes = e->caps->max_invocations < LANES ? (int64_t)e->caps->max_invocations : LANES, per = 1;
    while (lanes > 32 && n / (lanes * width) < 4 * units)
        lanes /= 2;
    while (per < MOST_PER_LANE && n / (lanes * width * per) > 8 * units)
        per *= 2;
    int64_t step = lanes * width, block = step * per, groups = (n + block - 1) / block;
    k->workgroup[0] = (uint32_t)lanes;
    fx_kx *base = fx_k_add(k, fx_k_mulc(k, fx_emit_grid(e, groups), block),
                           fx_k_mulc(k, fx_k_builtin(k, FX_KB_LOCAL, lanes), width));
    fx_kx *i[2], *half = base;
    if (per > 1)
        half = fx_k_add(k, base, fx_k_for(k, fx_k_int(k, 0), fx_k_int(k, block), step, false));
    half = fx_k_div(k, half, width); /* pair numbers: what they are multiplied by is seen to be even */
    bool guard = half->hi >= n / width;
    if (guard) {
        fx_k_if(k, fx_k_lt(k, half, fx_k_int(k, n / width)));
        half = fx_k_bound(k, half, 0, n / width - 1);
    }
    i[0] = fx_k_mulc(k, half, width);
    i[1] = fx_k_addc(k, i[0], 1);
    fx_pointwise_elements(e, g, width, i);
    if (guard)
        fx_k_end(k);
    if (per > 1)
        fx_k_end(k);
    return FX_OK;
}

const fx_schedule fx_schedule_pointwise = {"pointwise", FX_GROUP_POINTWISE, NULL, emit};
