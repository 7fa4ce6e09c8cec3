/* attention.c - scaled dot-product attention (Vaswani et al. 2017), self attention, the pre-norm block. */
#include <math.h>
#include <string.h>

#include "core/nn/nn.h"

fx_val fx_nn_attention(fx_nn *nn, fx_val q, fx_val k, fx_val v, fx_val mask, double dropout) {
    fx_spec sq = fx_spec_of(q), sk = fx_spec_of(k);
    if (!nn || !q || !k || !v)
        return NULL;
    if (sq.rank != 4 || sk.rank != 4 || fx_spec_of(v).rank != 4)
        return fx_trace_fail(nn->t, "fx_nn_attention: expected q, k, v of shape [batch, length, heads, size]; got ranks %d, %d, %d",
                             sq.rank, sk.rank, fx_spec_of(v).rank);
    static const int64_t batch_heads[] = {0, 2}, lead[] = {0, 1}, size = 3, keys = 3, length = 1;
    fx_dot_dims scores = {2, 1, batch_heads, batch_heads, &size, &size, FX_PRECISION_DEFAULT, FX_F32};
    fx_val s = fx_mul_c(fx_dot_general(q, k, &scores), 1 / sqrt((double)sq.dims[3])); /* [B, heads, Lq, Lk] */
    if (mask)
        s = fx_select(mask, s, fx_const_like(s, -INFINITY));
    fx_val p = fx_nn_dropout(nn, fx_convert(fx_softmax(s, -1), fx_spec_of(v).dtype), dropout);
    fx_dot_dims mix = {2, 1, lead, batch_heads, &keys, &length, FX_PRECISION_DEFAULT, FX_TUPLE};
    return fx_transpose(fx_dot_general(p, v, &mix), (int[]){0, 2, 1, 3});
}

fx_val fx_nn_multi_head_attention(fx_nn *nn, const char *name, fx_val x, int64_t heads, fx_val mask, double dropout) {
    fx_spec s = fx_spec_of(x);
    if (!nn || !x)
        return NULL;
    if (s.rank != 3 || heads < 1 || s.dims[2] % heads)
        return fx_trace_fail(nn->t,
                             "fx_nn_multi_head_attention \"%s\": expected [batch, length, width], width a multiple of %lld heads",
                             name, (long long)heads);
    if (!fx_nn_enter(nn, "fx_nn_multi_head_attention", name))
        return NULL;
    fx_val qkv = fx_nn_linear(nn, "qkv", x, 3 * s.dims[2], true), part[3];
    qkv = fx_reshape(qkv, 5, (int64_t[]){s.dims[0], s.dims[1], 3, heads, s.dims[2] / heads});
    for (int i = 0; i < 3; i++)
        part[i] = fx_squeeze(fx_slice_axis(qkv, 2, i, i + 1), 2);
    fx_val y = fx_nn_attention(nn, part[0], part[1], part[2], mask, dropout);
    y = fx_nn_linear(nn, "out", fx_reshape(y, 3, s.dims), s.dims[2], true);
    fx_nn_pop(nn);
    return y;
}

fx_val fx_nn_transformer_block(fx_nn *nn, const char *name, fx_val x, int64_t heads, int64_t hidden, double dropout,
                               double eps) {
    if (!fx_nn_enter(nn, "fx_nn_transformer_block", name))
        return NULL;
    fx_val a = fx_nn_multi_head_attention(nn, "attention", fx_nn_layer_norm(nn, "norm1", x, eps), heads, NULL, 0);
    x = fx_add(x, fx_nn_dropout(nn, a, dropout));
    x = fx_add(x, fx_nn_mlp(nn, "mlp", fx_nn_layer_norm(nn, "norm2", x, eps), hidden, dropout));
    fx_nn_pop(nn);
    return x;
}
