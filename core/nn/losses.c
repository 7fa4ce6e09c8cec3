/* losses.c - cross-entropy with label smoothing (Szegedy et al. 2016) and ignored rows, mean squared error. */
#include <math.h>

#include "fornax/nn.h"

/* True where the class index equals the row's label. */
static fx_val is_label(fx_val logits, fx_val labels) {
    fx_spec s = fx_spec_of(logits);
    s.dtype = fx_spec_of(labels).dtype;
    return fx_eq(fx_expand_dims(labels, -1), fx_iota(fx_val_trace(logits), s, -1));
}

/* Labels [...] for logits [..., classes], and two of one shape: broadcasting here would be a mistake that trains. */
static bool labels_fit(const char *what, fx_val logits, fx_val labels) {
    fx_spec s = fx_spec_of(logits), l = fx_spec_of(labels);
    char a[128], b[128];
    bool fit = s.rank == l.rank + 1 && fx_dtype_is_int(l.dtype);
    for (int i = 0; fit && i < l.rank; i++)
        fit = s.dims[i] == l.dims[i];
    if (!fit)
        fx_trace_fail(fx_val_trace(logits), "%s: expected logits [..., classes] and integer labels [...]; got %s and %s", what,
                      fx_spec_format(&s, a, sizeof a), fx_spec_format(&l, b, sizeof b));
    return fit;
}

static bool shapes_equal(const char *what, fx_val x, fx_val y) {
    fx_spec s = fx_spec_of(x), l = fx_spec_of(y);
    char a[128], b[128];
    bool equal = s.rank == l.rank;
    for (int i = 0; equal && i < l.rank; i++)
        equal = s.dims[i] == l.dims[i];
    if (!equal)
        fx_trace_fail(fx_val_trace(x), "%s: expected two equal shapes; got %s and %s", what, fx_spec_format(&s, a, sizeof a),
                      fx_spec_format(&l, b, sizeof b));
    return equal;
}

fx_val fx_cross_entropy_labels(fx_val logits, fx_val labels, double smoothing, int64_t ignore) {
    fx_spec s = fx_spec_of(logits);
    if (!logits || !labels)
        return NULL;
    if (!labels_fit("fx_cross_entropy_labels", logits, labels))
        return NULL;
    if (!(smoothing >= 0 && smoothing < 1))
        return fx_trace_fail(fx_val_trace(logits), "fx_cross_entropy_labels: smoothing; expected 0 or more and less than 1; got %g", smoothing);
    int axis = -1;
    double classes = (double)s.dims[s.rank - 1];
    fx_val x = fx_convert(logits, FX_F32), zero = fx_const_like(x, 0);
    fx_val lse = fx_logsumexp(x, -1, false);
    fx_val at_label = fx_reduce_sum(fx_select(is_label(x, labels), x, zero), 1, &axis, false);
    fx_val row = fx_sub(lse, at_label);
    if (smoothing > 0) {
        fx_val flat = fx_sub(lse, fx_reduce_mean(x, 1, &axis, false));
        row = fx_add(fx_mul_c(row, 1 - smoothing), fx_mul_c(flat, smoothing));
    }
    /* a label outside the classes must not train anything unseen: the loss becomes NaN */
    fx_val inside = fx_and(fx_ge(labels, fx_const_like(labels, 0)), fx_lt(labels, fx_const_like(labels, classes)));
    row = fx_select(inside, row, fx_const_like(row, NAN));
    fx_val counted = fx_ne(labels, fx_const_like(labels, (double)ignore));
    fx_val n = fx_reduce_sum(fx_convert(counted, FX_F32), -1, NULL, false);
    fx_val sum = fx_reduce_sum(fx_select(counted, row, zero), -1, NULL, false);
    return fx_div(sum, fx_max_c(n, 1));
}

fx_val fx_cross_entropy(fx_val logits, fx_val target) {
    if (!logits || !target || !shapes_equal("fx_cross_entropy", logits, target))
        return NULL;
    int axis = -1;
    fx_val p = fx_log_softmax(fx_convert(logits, FX_F32), -1);
    fx_val t = fx_convert(target, FX_F32);
    /* 0 * -inf is 0 here: a class without weight does not count */
    fx_val term = fx_select(fx_eq(t, fx_const_like(t, 0)), fx_const_like(t, 0), fx_mul(t, p));
    return fx_neg(fx_reduce_mean(fx_reduce_sum(term, 1, &axis, false), -1, NULL, false));
}

fx_val fx_mse(fx_val prediction, fx_val target) {
    if (!prediction || !target || !shapes_equal("fx_mse", prediction, target))
        return NULL;
    return fx_reduce_mean(fx_square(fx_sub(fx_convert(prediction, FX_F32), fx_convert(target, FX_F32))), -1, NULL, false);
}

fx_val fx_count_correct(fx_val logits, fx_val labels) {
    if (!logits || !labels || !labels_fit("fx_count_correct", logits, labels))
        return NULL;
    fx_val hit = fx_eq(fx_argmax(logits, -1, FX_S32), fx_convert(labels, FX_S32));
    return fx_reduce_sum(fx_convert(hit, FX_S32), -1, NULL, false);
}
