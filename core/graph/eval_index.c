/* eval_index.c - gather and scatter with StableHLO's dimension numbers.
 *
 * Both walk the index vectors in row-major order; each moves one window of the operand. A gather's start is
 * clamped so that its window fits; a scatter's window that doesn't fit entirely is dropped. */
#include <stdlib.h>
#include <string.h>

#include "core/graph/eval.h"

/* What gather and scatter share: the operand, its windows, and the index array. */
typedef struct walk {
    const fx_spec *operand, *indices;
    const void *index_data;
    int n_map, n_batching;
    const int64_t *map, *operand_batching, *indices_batching;
    int64_t vector_dim;
    int64_t slice[FX_MAX_RANK]; /* window size by operand dimension */
    int64_t operand_strides[FX_MAX_RANK], index_strides[FX_MAX_RANK];
    int rank;                                   /* of the batch of index vectors */
    int64_t dims[FX_MAX_RANK], at[FX_MAX_RANK]; /* its shape and the present position */
} walk;

static bool contains(const int64_t *list, int n, int64_t x) {
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static void walk_init(walk *w, const fx_eval_args *c, fx_attr_id map) {
    const fx_node *n = c->node;
    w->operand = &n->in[0]->spec;
    w->indices = &n->in[1]->spec;
    w->index_data = c->in[1];
    w->map = fx_attr_list(n, map, &w->n_map);
    w->operand_batching = FX_GET_LIST(n, operand_batching_dims, &w->n_batching);
    w->indices_batching = FX_GET_LIST(n, indices_batching_dims, NULL);
    w->vector_dim = FX_GET_INT(n, index_vector_dim);
    fx_eval_strides(w->operand, w->operand_strides);
    fx_eval_strides(w->indices, w->index_strides);
    w->rank = 0;
    for (int i = 0; i < w->indices->rank; i++)
        if (i != w->vector_dim)
            w->dims[w->rank++] = w->indices->dims[i];
    memset(w->at, 0, sizeof w->at);
}

/* Offset in elements of the present window in the operand; -1 when it doesn't fit and `clamp` is off. */
static int64_t walk_place(const walk *w, bool clamp) {
    int64_t row = 0, place = 0;
    for (int i = 0; i < w->rank; i++)
        row += w->at[i] * w->index_strides[i < w->vector_dim ? i : i + 1];
    for (int i = 0; i < w->n_map; i++) {
        int64_t step = w->vector_dim < w->indices->rank ? w->index_strides[w->vector_dim] : 0;
        int64_t d = w->map[i], start = fx_eval_index(w->indices->dtype, w->index_data, row + i * step);
        int64_t top = w->operand->dims[d] - w->slice[d];
        if (!clamp && (start < 0 || start > top))
            return -1;
        place += (start < 0 ? 0 : start > top ? top : start) * w->operand_strides[d];
    }
    for (int i = 0; i < w->n_batching; i++) {
        int64_t dim = w->indices_batching[i];
        place += w->at[dim < w->vector_dim ? dim : dim - 1] * w->operand_strides[w->operand_batching[i]];
    }
    return place;
}

/* Splits the dims of a gather's result or a scatter's updates: those in `window` (sorted) get window
 * sizes and strides in window order, the others strides in batch order. */
static void split(const fx_spec *s, const int64_t *window, int n_window, int64_t *window_strides,
                  int64_t *batch_strides) {
    int64_t strides[FX_MAX_RANK];
    int k = 0, b = 0;
    fx_eval_strides(s, strides);
    for (int i = 0; i < s->rank; i++)
        if (contains(window, n_window, i))
            window_strides[k++] = strides[i];
        else
            batch_strides[b++] = strides[i];
}

static int64_t dot(int n, const int64_t *a, const int64_t *b) {
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

fx_status fx_eval_gather(const fx_eval_args *c) {
    const fx_node *n = c->node;
    walk w;
    int n_offset, n_collapsed, k = 0;
    const int64_t *offset = FX_GET_LIST(n, offset_dims, &n_offset);
    const int64_t *collapsed = FX_GET_LIST(n, collapsed_slice_dims, &n_collapsed);
    const int64_t *sizes = FX_GET_LIST(n, slice_sizes, NULL);
    int64_t dims[FX_MAX_RANK], from[FX_MAX_RANK], to[FX_MAX_RANK], batch[FX_MAX_RANK];
    size_t size = fx_dtype_size(n->spec.dtype);
    walk_init(&w, c, FX_ATTR_start_index_map);
    for (int i = 0; i < w.operand->rank; i++) {
        w.slice[i] = sizes[i];
        if (contains(collapsed, n_collapsed, i) || contains(w.operand_batching, w.n_batching, i))
            continue;
        dims[k] = sizes[i];
        from[k++] = w.operand_strides[i];
    }
    split(&n->spec, offset, n_offset, to, batch);
    if (!fx_spec_count(&n->spec))
        return FX_OK;
    fx_eval_copy copy;
    fx_eval_copy_init(&copy, size, k, dims, to, from);
    do {
        fx_eval_copy_run(&copy, (char *)c->out[0] + dot(w.rank, w.at, batch) * (int64_t)size,
                         (const char *)c->in[0] + walk_place(&w, true) * (int64_t)size);
    } while (fx_eval_step(w.rank, w.dims, w.at));
    return FX_OK;
}

/* The window dims of a scatter: shape of an update's window and strides in the operand. */
static int scatter_window(walk *w, const fx_eval_args *c, int64_t *dims, int64_t *to, int64_t *from, int64_t *batch) {
    const fx_node *n = c->node;
    const fx_spec *updates = &n->in[2]->spec;
    int n_window, n_inserted, k = 0;
    const int64_t *window = FX_GET_LIST(n, update_window_dims, &n_window);
    const int64_t *inserted = FX_GET_LIST(n, inserted_window_dims, &n_inserted);
    walk_init(w, c, FX_ATTR_scatter_dims);
    for (int i = 0; i < w->operand->rank; i++) {
        w->slice[i] = 1;
        if (contains(inserted, n_inserted, i) || contains(w->operand_batching, w->n_batching, i))
            continue;
        w->slice[i] = dims[k] = updates->dims[window[k]];
        to[k++] = w->operand_strides[i];
    }
    split(updates, window, n_window, from, batch);
    return k;
}

/* Combines one window of updates into lanes of the operand. */
static void combine(fx_symbol kind, fx_dtype d, int rank, const int64_t *dims, const int64_t *to, const int64_t *from,
                    fx_lane *operand, const void *updates, int64_t first) {
    int64_t index[FX_MAX_RANK] = {0};
    fx_lane x[FX_LANE_CHUNK];
    int64_t n = rank ? dims[rank - 1] : 1, to_step = rank ? to[rank - 1] : 0, from_step = rank ? from[rank - 1] : 0;
    do {
        fx_lane *acc = operand + dot(rank - 1, index, to);
        int64_t at = first + dot(rank - 1, index, from);
        for (int64_t i = 0; i < n; i += FX_LANE_CHUNK) {
            int64_t m = n - i < FX_LANE_CHUNK ? n - i : FX_LANE_CHUNK;
            fx_lane_load(d, updates, at + i * from_step, from_step, m, x);
            fx_lane_combine(kind, fx_lane_kind_of(d), acc + i * to_step, to_step, x, m);
        }
    } while (fx_eval_step(rank - 1, dims, index));
}

fx_status fx_eval_scatter(const fx_eval_args *c) {
    const fx_node *n = c->node;
    fx_symbol kind = FX_GET_SYM(n);
    fx_dtype d = n->spec.dtype;
    int64_t dims[FX_MAX_RANK], to[FX_MAX_RANK], from[FX_MAX_RANK], batch[FX_MAX_RANK];
    int64_t size = (int64_t)fx_dtype_size(d), count = fx_spec_count(&n->spec), place;
    walk w;
    int k = scatter_window(&w, c, dims, to, from, batch);
    fx_lane *lanes = NULL;
    fx_eval_copy copy;
    if (!count)
        return FX_OK;
    memcpy(c->out[0], c->in[0], (size_t)(count * size));
    if (!fx_spec_count(&n->in[2]->spec))
        return FX_OK;
    if (kind != FX_SYM_set) { /* sums are kept unrounded until the end */
        lanes = fx_eval_alloc(count, sizeof *lanes);
        if (!lanes)
            return FX_OUT_OF_MEMORY;
        fx_lane_load(d, c->in[0], 0, 1, count, lanes);
    }
    fx_eval_copy_init(&copy, (size_t)size, k, dims, to, from);
    do {
        if ((place = walk_place(&w, false)) < 0)
            continue;
        int64_t update = dot(w.rank, w.at, batch);
        if (lanes)
            combine(kind, d, k, dims, to, from, lanes + place, c->in[2], update);
        else
            fx_eval_copy_run(&copy, (char *)c->out[0] + place * size, (const char *)c->in[2] + update * size);
    } while (fx_eval_step(w.rank, w.dims, w.at));
    if (lanes)
        fx_lane_store(d, c->out[0], 0, 1, count, lanes);
    free(lanes);
    return FX_OK;
}
