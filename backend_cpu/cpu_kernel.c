/* cpu_kernel.c - kernels from their texts: those made lately are still loaded, those in the disk cache are loaded, the
 * others compiled, several to a translation unit and several units at once. Either all kernels of a call are made or none. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "backend_cpu/cpu.h"
#include "core/base/parallel.h"

enum {
    PATH_SIZE = 4096,
    MAX_COMPILERS = 32,
    UNIT_KERNELS = 8,         /* most of a translation unit: larger ones compile no faster */
    UNIT_BYTES = 48 << 10     /* text from which a unit is full */
};

/* A distinct text of a call. */
typedef struct item {
    cpu_text text;
    cpu_object *object;
    cpu_entry entry;
    enum { ITEM_MISSING, ITEM_RECENT, ITEM_CACHED } state; /* where it was found */
} item;

typedef struct unit {
    const cpu_text **texts;
    item **items;
    int n;
    size_t bytes;
} unit;

typedef struct batch {
    fx_bdevice *d;
    char folder[PATH_SIZE]; /* private, for the compiler's files */
    item *items;
    int n_items, n_units;
    unit *units;
} batch;

static fx_status no_memory(void) {
    return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to make kernels; free memory");
}

static fx_cache_key key_of(uint64_t identity, const fx_kernel_source *s) {
    XXH128_hash_t h = XXH3_128bits_withSeed(s->source, s->source_bytes, identity);
    return (fx_cache_key){h.low64, h.high64};
}

/* ---- objects ---- */

static void object_drop(cpu_object *o) {
    if (!o || atomic_fetch_sub(&o->users, 1) != 1)
        return;
    dlclose(o->handle);
    free(o);
}

/* Opens an object for one user. */
static cpu_object *object_open(const char *path) {
    cpu_object *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!o->handle) {
        free(o);
        return NULL;
    }
    atomic_init(&o->users, 1);
    return o;
}

/* Gives the item its function; the item then is a user of the object. */
static bool resolve(item *it, cpu_object *o) {
    char symbol[CPU_SYMBOL];
    fx_cpu_symbol(symbol, it->text.key);
    void *address = dlsym(o->handle, symbol);
    if (!address)
        return false;
    memcpy(&it->entry, &address, sizeof address);
    it->object = o;
    atomic_fetch_add(&o->users, 1);
    return true;
}

/* ---- kernels of this device that were made lately ---- */

static bool find_recent(fx_bdevice *d, item *it) {
    bool found = false;
    pthread_mutex_lock(&d->recent_lock);
    for (unsigned i = 0; i < CPU_RECENT && !found; i++) {
        const cpu_recent *r = &d->recent[i];
        if (!r->object || r->key.lo != it->text.key.lo || r->key.hi != it->text.key.hi)
            continue;
        it->entry = r->entry;
        it->object = r->object;
        atomic_fetch_add(&r->object->users, 1);
        found = true;
    }
    pthread_mutex_unlock(&d->recent_lock);
    return found;
}

static void note_recent(fx_bdevice *d, const item *it) {
    atomic_fetch_add(&it->object->users, 1);
    pthread_mutex_lock(&d->recent_lock);
    cpu_recent *r = &d->recent[d->n_recent++ % CPU_RECENT];
    cpu_object *old = r->object;
    *r = (cpu_recent){it->text.key, it->entry, it->object};
    pthread_mutex_unlock(&d->recent_lock);
    object_drop(old);
}

void fx_cpu_recent_finish(fx_bdevice *d) {
    for (unsigned i = 0; i < CPU_RECENT; i++)
        object_drop(d->recent[i].object);
}

/* ---- the disk cache ---- */

typedef struct opened {
    fx_cache_key file;
    cpu_object *object;
} opened;

static void look_up(batch *b) {
    int n = 0;
    for (int i = 0; i < b->n_items; i++)
        if (find_recent(b->d, &b->items[i]))
            b->items[i].state = ITEM_RECENT;
    opened *list = b->d->cache_dir ? calloc((size_t)b->n_items, sizeof *list) : NULL;
    for (int i = 0; list && i < b->n_items; i++) {
        fx_cache_key file;
        int at = 0;
        if (b->items[i].state != ITEM_MISSING || !fx_cpu_cache_find(b->d, b->items[i].text.key, &file))
            continue;
        while (at < n && (list[at].file.lo != file.lo || list[at].file.hi != file.hi))
            at++;
        if (at == n) {
            char *path = fx_cpu_cache_object(b->d, file);
            list[n++] = (opened){file, path ? object_open(path) : NULL};
            free(path);
        }
        if (list[at].object && resolve(&b->items[i], list[at].object))
            b->items[i].state = ITEM_CACHED;
    }
    for (int i = 0; i < n; i++)
        object_drop(list[i].object);
    free(list);
}

/* ---- compiling ---- */

static int larger_first(const void *a, const void *b) {
    size_t x = (*(item *const *)a)->text.source->source_bytes, y = (*(item *const *)b)->text.source->source_bytes;
    return (x < y) - (x > y);
}

/* Spreads what is missing over units of about the same size. */
static fx_status make_units(batch *b, int processors) {
    item **missing = calloc((size_t)b->n_items + 1, sizeof *missing);
    int n = 0;
    size_t bytes = 0;
    if (!missing)
        return no_memory();
    for (int i = 0; i < b->n_items; i++)
        if (b->items[i].state == ITEM_MISSING) {
            missing[n++] = &b->items[i];
            bytes += b->items[i].text.source->source_bytes;
        }
    qsort(missing, (size_t)n, sizeof *missing, larger_first);
    size_t units = ((size_t)n + UNIT_KERNELS - 1) / UNIT_KERNELS, by_bytes = bytes / UNIT_BYTES;
    units = by_bytes > units ? by_bytes : units;
    units = units < (size_t)processors ? (size_t)processors : units;
    b->n_units = units < (size_t)n ? (int)units : n;
    b->units = calloc((size_t)b->n_units + 1, sizeof *b->units);
    fx_status st = b->units ? FX_OK : no_memory();
    for (int i = 0; i < b->n_units && st == FX_OK; i++) {
        b->units[i].texts = calloc((size_t)n, sizeof *b->units[i].texts);
        b->units[i].items = calloc((size_t)n, sizeof *b->units[i].items);
        if (!b->units[i].texts || !b->units[i].items)
            st = no_memory();
    }
    for (int i = 0; i < n && st == FX_OK; i++) {
        unit *least = &b->units[0];
        for (int j = 1; j < b->n_units; j++)
            if (b->units[j].bytes < least->bytes)
                least = &b->units[j];
        least->texts[least->n] = &missing[i]->text;
        least->items[least->n++] = missing[i];
        least->bytes += missing[i]->text.source->source_bytes + 256;
    }
    free(missing);
    return st;
}

static fx_status make_unit(void *user, int number) {
    batch *b = user;
    unit *u = &b->units[number];
    char stem[PATH_SIZE], object[PATH_SIZE];
    snprintf(stem, sizeof stem, "%.4000s/%d", b->folder, number);
    snprintf(object, sizeof object, "%.4000s/%d.so", b->folder, number);
    fx_status st = fx_cpu_compile(b->d, u->n, u->texts, stem, object);
    char *kept = st == FX_OK ? fx_cpu_cache_keep(b->d, object, u->n, u->texts) : NULL;
    if (st == FX_OK) {
        cpu_object *o = object_open(kept ? kept : object);
        if (!o && kept)
            o = object_open(object);
        const char *why = o ? NULL : dlerror();
        if (!o)
            st = fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: what %s made of it can't be loaded: %s", u->texts[0]->source->name,
                                 b->d->compiler.words[0], why ? why : "host memory is short");
        for (int i = 0; i < u->n && st == FX_OK; i++)
            if (!resolve(u->items[i], o))
                st = fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: its text defines no function FX_KERNEL",
                                     u->texts[i]->source->name);
        object_drop(o);
    }
    free(kept);
    unlink(object);
    return st;
}

static fx_status compile(batch *b) {
    int processors = fx_cpu_processors();
    processors = processors < MAX_COMPILERS ? processors : MAX_COMPILERS;
    const char *tmp = getenv("TMPDIR");
    FX_TRY(make_units(b, processors));
    if (!b->n_units)
        return FX_OK;
    snprintf(b->folder, sizeof b->folder, "%.3900s/fornax-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (!mkdtemp(b->folder))
        return fx_backend_fail(FX_IO_ERROR, "kernels can't be compiled: no folder %s can be made (%s); free space there or set TMPDIR",
                               b->folder, strerror(errno));
    fx_status st = fx_parallel(b->n_units, processors, make_unit, b);
    rmdir(b->folder);
    return st;
}

/* ---- kernels ---- */

static fx_status make_kernel(const fx_kernel_source *s, const item *it, fx_kernel **out) {
    fx_kernel *k = calloc(1, sizeof *k + strlen(s->name) + 1);
    if (!k)
        return no_memory();
    strcpy(k->name, s->name);
    k->entry = it->entry;
    k->object = it->object;
    k->n_args = s->n_args;
    atomic_fetch_add(&it->object->users, 1);
    *out = k;
    return FX_OK;
}

/* The items of the call, equal texts once; which[i] is the item of source i. */
static void distinct(batch *b, int n, const fx_kernel_source *sources, int *which) {
    uint64_t identity = fx_cpu_code_identity(b->d);
    for (int i = 0; i < n; i++) {
        fx_cache_key key = key_of(identity, &sources[i]);
        int at = 0;
        while (at < b->n_items && (b->items[at].text.key.lo != key.lo || b->items[at].text.key.hi != key.hi))
            at++;
        if (at == b->n_items)
            b->items[b->n_items++] = (item){.text = {&sources[i], key}};
        which[i] = at;
    }
}

static fx_status check(fx_bdevice *d, const fx_kernel_source *s) {
    if (!s->name || !s->source)
        return fx_backend_fail(FX_INVALID_ARGUMENT, "kernel: expected a name and a text; got NULL");
    if (s->subgroup_size && s->subgroup_size != d->caps.subgroup_size)
        return fx_backend_fail(FX_UNSUPPORTED, "kernel %s: subgroup size %u; this device has %u", s->name, s->subgroup_size,
                               d->caps.subgroup_size);
    if (d->inject.compile && atomic_fetch_add(&d->n_compiles, 1) + 1 == d->inject.compile)
        return fx_backend_fail(FX_COMPILE_ERROR, "kernel %s: failure injected by FORNAX_INJECT", s->name);
    return FX_OK;
}

fx_status fx_cpu_kernels_create(fx_bdevice *d, int n, const fx_kernel_source *sources, fx_kernel **out, int *cached) {
    batch b = {.d = d};
    int found = 0;
    for (int i = 0; i < n; i++)
        out[i] = NULL;
    for (int i = 0; i < n; i++)
        FX_TRY(check(d, &sources[i]));
    int *which = calloc((size_t)n + 1, sizeof *which);
    b.items = calloc((size_t)n + 1, sizeof *b.items);
    fx_status st = which && b.items ? FX_OK : no_memory();
    if (st == FX_OK) {
        distinct(&b, n, sources, which);
        look_up(&b);
        st = compile(&b);
    }
    for (int i = 0; i < n && st == FX_OK; i++) {
        st = make_kernel(&sources[i], &b.items[which[i]], &out[i]);
        found += b.items[which[i]].state == ITEM_CACHED || (d->cache_dir && b.items[which[i]].state == ITEM_RECENT);
    }
    for (int i = 0; i < n && st != FX_OK; i++) {
        fx_cpu_kernel_destroy(d, out[i]);
        out[i] = NULL;
    }
    for (int i = 0; i < b.n_items; i++) {
        if (st == FX_OK && b.items[i].state != ITEM_RECENT)
            note_recent(d, &b.items[i]);
        object_drop(b.items[i].object);
    }
    for (int i = 0; i < b.n_units && b.units; i++) {
        free(b.units[i].texts);
        free(b.units[i].items);
    }
    free(b.units);
    free(b.items);
    free(which);
    if (cached)
        *cached = found;
    return st;
}

void fx_cpu_kernel_destroy(fx_bdevice *d, fx_kernel *k) {
    (void)d;
    if (!k)
        return;
    object_drop(k->object);
    free(k);
}
