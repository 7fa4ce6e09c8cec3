/* loader.c - worker threads that fill a ring of batches ahead of the consumer.
 *
 * A batch has a number, epoch * steps + step, and its content depends on that number alone. Batch n lives in slot
 * n mod ring size. A slot goes free -> busy (a worker fills it) -> ready -> borrowed (the consumer reads it) -> free;
 * all moves happen under one lock, filling outside of it. Numbers are handed to workers in order, so the ring always
 * holds the next few batches. A worker's error stays in its slot and is reported when that batch is due. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/io/augment.h"

typedef enum slot_state { SLOT_FREE, SLOT_BUSY, SLOT_READY } slot_state;

typedef struct slot {
    slot_state state;
    int64_t number;
    fx_batch batch;
    float *images;
    int32_t *labels;
    int64_t *indices;
    fx_status status;
    char error[512];
} slot;

typedef struct worker {
    pthread_t thread;
    fx_loader *loader;
    void *scratch;       /* one stored sample */
    int64_t *order;      /* the epoch's order, when shuffled */
    int64_t order_epoch; /* of `order`; -1: none yet */
} worker;

struct fx_loader {
    fx_dataset *dataset;
    fx_loader_options options;
    fx_augment augment;
    int64_t steps, end; /* batches in an epoch; number after the last batch */
    size_t sample;      /* floats */
    pthread_mutex_t lock;
    pthread_cond_t work, done; /* a slot became free or the goal changed; a slot became ready */
    bool stop, pause;
    int64_t next, due; /* the next number for a worker; for the consumer */
    int busy, started;
    slot *borrowed, *slots;
    worker *workers;
};

enum { STREAM = 0x6f726465, MAX_THREADS = 256, MAX_PREFETCH = 4096 };

/* Fisher-Yates with counter-based draws: the order depends on the seed and the epoch alone. */
static void shuffle(int64_t *order, int64_t n, uint64_t seed, int64_t epoch) {
    uint64_t base = fx_counter_random(seed ^ STREAM, 0, (uint64_t)epoch);
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)fx_random_below(fx_mix64(base ^ (uint64_t)i), (uint64_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static fx_status fill_rows(fx_loader *l, worker *w, slot *s) {
    const fx_loader_options *o = &l->options;
    int64_t n = l->dataset->info.count, row = 0;
    if (o->shuffle && w->order_epoch != s->batch.epoch) {
        shuffle(w->order, n, o->seed, s->batch.epoch);
        w->order_epoch = s->batch.epoch;
    }
    for (; row < o->batch_size; row++) {
        int64_t place = (s->batch.step * o->batch_size + row) * o->shards + o->shard;
        if (place >= n)
            break;
        int64_t index = o->shuffle ? w->order[place] : place;
        const void *raw;
        FX_TRY(fx_dataset_raw(l->dataset, index, w->scratch, &raw, &s->labels[row]));
        s->indices[row] = index;
        fx_augment_apply(&l->augment, raw, s->batch.epoch, index, s->images + (size_t)row * l->sample);
    }
    s->batch.count = row;
    memset(s->images + (size_t)row * l->sample, 0, (size_t)(o->batch_size - row) * l->sample * sizeof(float));
    for (; row < o->batch_size; row++)
        s->labels[row] = -1, s->indices[row] = -1;
    return FX_OK;
}

static void fill(fx_loader *l, worker *w, slot *s) {
    s->batch.epoch = s->number / l->steps;
    s->batch.step = s->number % l->steps;
    s->status = fill_rows(l, w, s);
    if (s->status != FX_OK) {
        strncpy(s->error, fx_last_error(), sizeof s->error - 1);
        s->error[sizeof s->error - 1] = '\0';
    }
}

static void *work(void *argument) {
    worker *w = argument;
    fx_loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        slot *s = &l->slots[l->next % l->options.prefetch];
        if (l->pause || l->next >= l->end || s->state != SLOT_FREE) {
            pthread_cond_wait(&l->work, &l->lock);
            continue;
        }
        s->state = SLOT_BUSY;
        s->number = l->next++;
        l->busy++;
        pthread_mutex_unlock(&l->lock);
        fill(l, w, s);
        pthread_mutex_lock(&l->lock);
        s->state = SLOT_READY;
        l->busy--;
        pthread_cond_signal(&l->done); /* there is one consumer */
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static fx_status check_options(const fx_loader_options *o, const fx_dataset_info *info) {
    if (o->batch_size < 1 || o->batch_size > INT32_MAX || o->epochs < 0 || o->threads < 1 || o->threads > MAX_THREADS ||
        o->prefetch < 2 || o->prefetch > MAX_PREFETCH)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "loader: batch size %lld, epochs %lld, threads %d, prefetch %d; expected a batch size"
                       " of at least 1, epochs of at least 0, 1 to %d threads, prefetch of 2 to %d",
                       (long long)o->batch_size, (long long)o->epochs, o->threads, o->prefetch, MAX_THREADS,
                       MAX_PREFETCH);
    if (o->crop_padding < 0 || o->crop_padding > 1024)
        return fx_fail(FX_INVALID_ARGUMENT, "loader: crop padding %d; expected 0 to 1024", o->crop_padding);
    if (o->shards < 1 || o->shard < 0 || o->shard >= o->shards)
        return fx_fail(FX_INVALID_ARGUMENT, "loader: shard %d of %d; expected 0 to shards - 1", o->shard, o->shards);
    if (o->layout != FX_LAYOUT_NHWC && o->layout != FX_LAYOUT_NCHW)
        return fx_fail(FX_INVALID_ARGUMENT, "loader: unknown layout %d", (int)o->layout);
    for (int c = 0; c < info->channels; c++)
        if (!(o->std[c] >= 0) || !(o->mean[c] - o->mean[c] == 0))
            return fx_fail(FX_INVALID_ARGUMENT,
                           "loader: mean %g and std %g of channel %d; expected finite numbers, std not"
                           " negative",
                           (double)o->mean[c], (double)o->std[c], c);
    return FX_OK;
}

/* Batches in an epoch, the same for every shard. */
static fx_status count_steps(fx_loader *l) {
    const fx_loader_options *o = &l->options;
    int64_t n = l->dataset->info.count;
    l->steps = o->drop_last ? n / o->shards / o->batch_size
                            : ((n + o->shards - 1) / o->shards + o->batch_size - 1) / o->batch_size;
    if (l->steps == 0)
        return fx_fail(FX_INVALID_ARGUMENT,
                       "loader: %lld samples over %d shards make no full batch of %lld; use a smaller batch"
                       " or keep the last one (drop_last)",
                       (long long)n, o->shards, (long long)o->batch_size);
    l->end = INT64_MAX;
    if (o->epochs && __builtin_mul_overflow(l->steps, o->epochs, &l->end))
        l->end = INT64_MAX;
    return FX_OK;
}

static fx_status make_slots(fx_loader *l) {
    size_t batch = (size_t)l->options.batch_size, images, bytes;
    l->slots = calloc((size_t)l->options.prefetch, sizeof *l->slots);
    if (!l->slots)
        return fx_fail_oom((size_t)l->options.prefetch * sizeof *l->slots);
    if (!fx_mul_size(batch, l->sample, &images) || !fx_mul_size(images, sizeof(float), &bytes) ||
        bytes > PTRDIFF_MAX - 4096)
        return fx_fail(FX_INVALID_ARGUMENT, "loader: the size of a batch overflows; use a smaller batch");
    for (int i = 0; i < l->options.prefetch; i++) {
        slot *s = &l->slots[i];
        s->images =
            aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095); /* whole pages, so that a driver can import them */
        s->labels = malloc(batch * sizeof *s->labels);
        s->indices = malloc(batch * sizeof *s->indices);
        if (!s->images || !s->labels || !s->indices)
            return fx_fail_oom(bytes);
        s->batch = (fx_batch){.images = s->images, .labels = s->labels, .indices = s->indices};
    }
    return FX_OK;
}

static fx_status start_workers(fx_loader *l) {
    size_t n = (size_t)l->options.threads, count = (size_t)l->dataset->info.count;
    l->workers = calloc(n, sizeof *l->workers);
    if (!l->workers)
        return fx_fail_oom(n * sizeof *l->workers);
    for (size_t i = 0; i < n; i++) {
        worker *w = &l->workers[i];
        w->loader = l;
        w->order_epoch = -1;
        w->scratch = malloc(l->sample * sizeof(float));
        w->order = l->options.shuffle ? malloc(count * sizeof *w->order) : NULL;
        if (!w->scratch || (l->options.shuffle && !w->order))
            return fx_fail_oom(count * sizeof *w->order);
    }
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: handlers run on the caller's threads */
    int code = 0;
    while (l->started < (int)n &&
           (code = pthread_create(&l->workers[l->started].thread, NULL, work, &l->workers[l->started])) == 0)
        l->started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return code ? fx_fail(FX_OUT_OF_MEMORY, "loader: cannot start a thread: %s", strerror(code)) : FX_OK;
}

fx_status fx_loader_create(fx_dataset *dataset, const fx_loader_options *options, fx_loader **out) {
    FX_TRY(fx_need(out, "fx_loader_create: out"));
    fx_loader_options o = FX_LOADER_OPTIONS_INIT;
    *out = NULL;
    FX_TRY(fx_need(dataset, "fx_loader_create: dataset"));
    FX_TRY(fx_options_take(&o, sizeof o, options, "fx_loader_options"));
    FX_TRY(check_options(&o, &dataset->info));
    fx_loader *l = calloc(1, sizeof *l);
    if (!l)
        return fx_fail_oom(sizeof *l);
    l->dataset = fx_dataset_retain(dataset);
    l->options = o;
    l->sample = fx_dataset_sample_elements(dataset);
    fx_augment_init(&l->augment, dataset, &o);
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->work, NULL);
    pthread_cond_init(&l->done, NULL);
    fx_status status = count_steps(l);
    if (status == FX_OK)
        status = make_slots(l);
    if (status == FX_OK)
        status = start_workers(l);
    if (status != FX_OK) {
        fx_loader_destroy(l);
        return status;
    }
    *out = l;
    return FX_OK;
}

void fx_loader_destroy(fx_loader *l) {
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++)
        pthread_join(l->workers[i].thread, NULL);
    for (int i = 0; l->workers && i < l->options.threads; i++) {
        free(l->workers[i].scratch);
        free(l->workers[i].order);
    }
    for (int i = 0; l->slots && i < l->options.prefetch; i++) {
        free(l->slots[i].images);
        free(l->slots[i].labels);
        free(l->slots[i].indices);
    }
    free(l->workers);
    free(l->slots);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    fx_dataset_destroy(l->dataset);
    free(l);
}

fx_status fx_loader_next(fx_loader *l, const fx_batch **batch) {
    FX_TRY(fx_need(batch, "fx_loader_next: batch"));
    *batch = NULL;
    FX_TRY(fx_need(l, "fx_loader_next: loader"));
    fx_status status = FX_OK;
    pthread_mutex_lock(&l->lock);
    if (l->borrowed) {
        l->borrowed->state = SLOT_FREE;
        l->borrowed = NULL;
        pthread_cond_signal(&l->work);
    }
    if (l->due < l->end) {
        slot *s = &l->slots[l->due % l->options.prefetch];
        while (s->state != SLOT_READY || s->number != l->due)
            pthread_cond_wait(&l->done, &l->lock);
        if (s->status != FX_OK) { /* stays in its slot */
            status = fx_fail(s->status, "%s", s->error);
        } else {
            l->borrowed = s;
            l->due++;
            *batch = &s->batch;
        }
    }
    pthread_mutex_unlock(&l->lock);
    return status;
}

fx_status fx_loader_seek(fx_loader *l, int64_t epoch, int64_t step) {
    FX_TRY(fx_need(l, "fx_loader_seek: loader"));
    int64_t number;
    if (epoch < 0 || step < 0 || step > l->steps || __builtin_mul_overflow(epoch, l->steps, &number) ||
        __builtin_add_overflow(number, step, &number) || number > l->end)
        return fx_fail(FX_INVALID_ARGUMENT, "loader: position (epoch %lld, step %lld); expected steps of 0 to %lld%s",
                       (long long)epoch, (long long)step, (long long)l->steps,
                       l->options.epochs ? " within the epochs asked for" : "");
    pthread_mutex_lock(&l->lock);
    l->pause = true;
    while (l->busy > 0)
        pthread_cond_wait(&l->done, &l->lock);
    for (int i = 0; i < l->options.prefetch; i++)
        l->slots[i].state = SLOT_FREE;
    l->borrowed = NULL;
    l->next = l->due = number;
    l->pause = false;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    return FX_OK;
}

int64_t fx_loader_steps(const fx_loader *l) {
    return l ? l->steps : 0;
}
