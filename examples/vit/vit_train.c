/* vit_train.c - trains a Vision Transformer on images, on one device.
 *
 * Stopped by Ctrl-C (or TERM, HUP) it finishes the step, writes the checkpoint and ends by that signal, and so when
 * nobody reads its output any more (PIPE); a second signal, or one before training starts, ends it at once. With
 * --resume it goes on with the same losses as if it had never stopped. When metrics can't be written it stops too, but
 * keeps the checkpoint. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "report.h"
#include "session.h"
#include "weights.h"

static const char usage[] =
    "usage: vit_train [options]\n"
    "Trains a Vision Transformer; without options, on the handwritten digits that come with Fornax.\n";

typedef struct settings {
    const char *model, *data, *optimizer, *schedule, *precision, *device, *resume, *checkpoint, *weights, *plot,
        *metrics;
    int64_t image, patch, width, depth, heads, mlp, classes, batch, steps, epochs, warmup, eval_every, save_every, crop;
    double lr, weight_decay, momentum, beta2, dropout, smoothing, clip;
    uint64_t seed;
    bool json, flip, no_eval;
} settings;

static volatile sig_atomic_t stopped, training, continued;

/* Text to the standard error; allowed in a handler. */
static void say(const char *text) {
    ssize_t n = write(2, text, strlen(text));
    (void)n;
}

/* Ends the process by that signal, as its parent expects. */
static void end_by(int number) {
    sigset_t set;
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number);
}

static void on_signal(int number) {
    int code = errno;
    if (!training) {
        say("\nvit_train: stopped before the first step; no file was written\n");
        end_by(number);
    }
    if (stopped && number != SIGPIPE) {
        say("\nvit_train: stopped at once; the last checkpoint is as it was\n");
        end_by(number);
    }
    if (!stopped && number != SIGPIPE)
        say("\nvit_train: stopping after this step; once more to stop at once\n");
    stopped = stopped ? stopped : number;
    errno = code;
}

static void on_continue(int number) {
    continued = number;
}

/* A signal that the parent ignores stays ignored. */
static void catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction resumed = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    sigaction(SIGCONT, &resumed, NULL);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old, new = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (!sigaction(numbers[i], NULL, &old) && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &new, NULL);
    }
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of the write */
}

static int parse(settings *s, int argc, char **argv) {
    const option_row rows[] = {
        {"data", OPTION_TEXT, &s->data, 0, 0, "SOURCE",
         "digits, idx:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, random (default digits)"},
        {"model", OPTION_TEXT, &s->model, 0, 0, "NAME",
         "micro, tiny, small, base, large, custom (default micro for digits, else tiny)"},
        {"image", OPTION_INT, &s->image, 1, 4096, "N", "side of the images (folder and random; default 224)"},
        {"patch", OPTION_INT, &s->patch, 1, 1024, "N", "side of a patch (default 2, 4 or 16, by the image)"},
        {"width", OPTION_INT, &s->width, 1, 16384, "N", "instead of the model's"},
        {"depth", OPTION_INT, &s->depth, 1, 1024, "N", "instead of the model's"},
        {"heads", OPTION_INT, &s->heads, 1, 1024, "N", "instead of the model's"},
        {"mlp", OPTION_INT, &s->mlp, 1, 65536, "N", "hidden width of the MLPs (default 4 times the width)"},
        {"classes", OPTION_INT, &s->classes, 1, 1000000, "N", "number of labels (random: 1000)"},
        {"batch-size", OPTION_INT, &s->batch, 1, 65536, "N", "images a step (default 64; random 8)"},
        {"steps", OPTION_INT, &s->steps, 1, 1e12, "N", "updates in all (default: by the epochs)"},
        {"epochs", OPTION_INT, &s->epochs, 1, 1e9, "N", "passes over the training images"},
        {"optimizer", OPTION_TEXT, &s->optimizer, 0, 0, "NAME", "sgd, adam, adamw, lion (default adamw; random sgd)"},
        {"lr", OPTION_REAL, &s->lr, 0, 1e3, "X", "peak learning rate (default 2e-3; digits 4e-3; random 1e-3)"},
        {"schedule", OPTION_TEXT, &s->schedule, 0, 0, "NAME",
         "constant, cosine, linear (default cosine; random constant)"},
        {"warmup", OPTION_INT, &s->warmup, 0, 1e12, "N",
         "steps up to the peak rate (default a twentieth of the steps)"},
        {"weight-decay", OPTION_REAL, &s->weight_decay, 0, 10, "X", "of matrices only (default 0.05; random 0)"},
        {"momentum", OPTION_REAL, &s->momentum, 0, 0.9999, "X", "of sgd (default 0)"},
        {"beta2", OPTION_REAL, &s->beta2, 0, 0.9999999, "X",
         "of adam, adamw and lion (default 0.999; digits 0.98; lion 0.99)"},
        {"clip", OPTION_REAL, &s->clip, 0, 1e6, "X", "largest global norm of the gradients (default 0: none)"},
        {"dropout", OPTION_REAL, &s->dropout, 0, 0.99, "X", "default 0"},
        {"label-smoothing", OPTION_REAL, &s->smoothing, 0, 0.99, "X", "default 0 (digits 0.1)"},
        {"flip", OPTION_FLAG, &s->flip, 0, 0, "", "mirror training images at random"},
        {"crop", OPTION_INT, &s->crop, 0, 64, "N", "pad training images by N and crop at random (default 0)"},
        {"precision", OPTION_TEXT, &s->precision, 0, 0, "TYPE",
         "f32, bf16, f16: of products and activations (default f32)"},
        {"seed", OPTION_SEED, &s->seed, 0, 0, "N", "of parameters, order, augmentation, dropout (default 0)"},
        {"device", OPTION_TEXT, &s->device, 0, 0, "URI", "vulkan:0, reference, ... (default: the best there is)"},
        {"weights", OPTION_TEXT, &s->weights, 0, 0, "FILE",
         "start from these parameters (Fornax or Hugging Face safetensors)"},
        {"checkpoint", OPTION_TEXT, &s->checkpoint, 0, 0, "FILE",
         "write parameters and optimizer state there at the end or when stopped"},
        {"checkpoint-every", OPTION_INT, &s->save_every, 1, 1e12, "N", "and every N steps"},
        {"resume", OPTION_TEXT, &s->resume, 0, 0, "FILE", "go on from a checkpoint, with the same options as before"},
        {"eval-every", OPTION_INT, &s->eval_every, 1, 1e12, "N", "test every N epochs (default: at the end only)"},
        {"no-eval", OPTION_FLAG, &s->no_eval, 0, 0, "", "do not test"},
        {"plot", OPTION_TEXT, &s->plot, 0, 0, "FILE", "write the loss curve as PNG"},
        {"metrics", OPTION_TEXT, &s->metrics, 0, 0, "FILE", "write a CSV line a step"},
        {"json", OPTION_FLAG, &s->json, 0, 0, "", "JSON lines on the standard output instead of text"},
    };
    return options_parse(usage, rows, (int)(sizeof rows / sizeof *rows), argc, argv);
}

static const char *const optimizers[] = {"sgd", "adam", "adamw", "lion", NULL},
                         *const schedules[] = {"constant", "cosine", "linear", NULL},
                         *const precisions[] = {"f32", "bf16", "f16", NULL}, *const models[] = {"micro", "tiny",
                                                                                                "small", "base",
                                                                                                "large", "custom",
                                                                                                NULL};

static int find(const char *const *names, const char *name) {
    int k = 0;
    while (names[k] && strcmp(names[k], name))
        k++;
    return names[k] ? k : -1;
}

/* Fills in names that were not given and refuses unknown ones, before a file or a device is touched. */
static bool check_names(settings *s) {
    bool digits = !strcmp(s->data, "digits"), noise = !strcmp(s->data, "random");
    s->model = s->model ? s->model : digits ? "micro" : "tiny";
    s->optimizer = s->optimizer ? s->optimizer : noise ? "sgd" : "adamw";
    s->schedule = s->schedule ? s->schedule : noise ? "constant" : "cosine";
    s->precision = s->precision ? s->precision : "f32";
    const struct {
        const char *option, *got;
        const char *const *names;
    } checks[] = {{"model", s->model, models},
                  {"optimizer", s->optimizer, optimizers},
                  {"schedule", s->schedule, schedules},
                  {"precision", s->precision, precisions}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (find(checks[i].names, checks[i].got) >= 0)
            continue;
        fprintf(stderr, "--%s: expected", checks[i].option);
        for (const char *const *p = checks[i].names; *p; p++)
            fprintf(stderr, "%s %s", p == checks[i].names ? "" : p[1] ? "," : " or", *p);
        fprintf(stderr, "; got \"%s\"\n", checks[i].got);
        return false;
    }
    if (!strcmp(s->model, "custom") && (s->width < 1 || s->depth < 1 || s->heads < 1))
        return fprintf(stderr, "--model custom: expected --width, --depth and --heads with it\n"), false;
    if (s->steps > 0 && s->epochs > 0)
        return fprintf(stderr, "--steps, --epochs: expected one of them; got both\n"), false;
    if (s->save_every > 0 && !s->checkpoint)
        return fprintf(stderr, "--checkpoint-every: expected together with --checkpoint FILE\n"), false;
    return true;
}

/* Fills what was not given: negative numbers. */
static fx_status complete(settings *s, const fx_dataset_info *info, session_options *o, fx_schedule *schedule,
                          int64_t per_epoch) {
    bool digits = !strcmp(s->data, "digits"), noise = !strcmp(s->data, "random");
    vit_config *c = &o->model;
#define DEFAULT(field, value) (s->field = s->field < 0 ? (value) : s->field)
    *c = (vit_config){.height = info->height,
                      .width_px = info->width,
                      .channels = info->channels,
                      .classes = info->classes,
                      .norm_eps = 1e-6};
    vit_preset(s->model, c);
    c->patch = DEFAULT(patch, info->height >= 64 ? 16 : info->height >= 16 ? 4 : 2);
    if (s->width > 0) {
        c->width = s->width;
        c->mlp = 4 * s->width;
    }
    c->depth = s->depth > 0 ? s->depth : c->depth;
    c->heads = s->heads > 0 ? s->heads : c->heads;
    c->mlp = s->mlp > 0 ? s->mlp : c->mlp;
    c->dropout = DEFAULT(dropout, 0);
    c->smoothing = DEFAULT(smoothing, digits ? 0.1 : 0);
    FX_TRY(vit_check(c));
    o->optimizer = (fx_optimizer)FX_OPTIMIZER_INIT;
    o->optimizer.kind = (fx_optimizer_kind)find(optimizers, s->optimizer);
    o->optimizer.beta2 = DEFAULT(beta2, o->optimizer.kind == FX_LION ? 0.99 : digits ? 0.98 : 0.999);
    o->optimizer.momentum = DEFAULT(momentum, 0);
    o->optimizer.weight_decay = DEFAULT(weight_decay, noise ? 0 : 0.05);
    o->optimizer.clip_norm = DEFAULT(clip, 0);
    if (s->steps < 0)
        s->steps = s->epochs > 0 ? s->epochs * per_epoch : noise ? 30 : digits ? 30 * per_epoch : 100 * per_epoch;
    *schedule = (fx_schedule){(fx_schedule_kind)find(schedules, s->schedule),
                              DEFAULT(lr, noise    ? 1e-3
                                          : digits ? 4e-3
                                                   : 2e-3),
                              DEFAULT(warmup, noise ? 0 : s->steps / 20),
                              s->steps,
                              0,
                              0,
                              1};
    FX_TRY(fx_dtype_parse(s->precision, &o->precision));
    o->batch = s->batch;
    o->seed = s->seed;
    DEFAULT(crop, 0);
#undef DEFAULT
    return FX_OK;
}

/* What must be the same for a resumed run to continue exactly, as text. */
static void describe(const settings *s, const session_options *o, char *out, size_t size) {
    const vit_config *c = &o->model;
    snprintf(out, size,
             "data=%s image=%lldx%lldx%lld patch=%lld width=%lld depth=%lld heads=%lld mlp=%lld classes=%lld "
             "batch=%lld steps=%lld "
             "optimizer=%s lr=%.17g schedule=%s warmup=%lld weight-decay=%.17g momentum=%.17g beta2=%.17g clip=%.17g "
             "dropout=%.17g "
             "label-smoothing=%.17g flip=%d crop=%lld precision=%s seed=%llu",
             s->data, (long long)c->height, (long long)c->width_px, (long long)c->channels, (long long)c->patch,
             (long long)c->width, (long long)c->depth, (long long)c->heads, (long long)c->mlp, (long long)c->classes,
             (long long)s->batch, (long long)s->steps, s->optimizer, s->lr, s->schedule, (long long)s->warmup,
             s->weight_decay, s->momentum, s->beta2, s->clip, s->dropout, s->smoothing, s->flip, (long long)s->crop,
             s->precision, (unsigned long long)s->seed);
}

/* What a checkpoint says beside its tensors. */
typedef struct notes {
    char config[1024];
    char *mean, *std, *labels; /* JSON; labels NULL when they have no names */
} notes;

static fx_status save(session *s, const char *path, const notes *about) {
    char step[32];
    snprintf(step, sizeof step, "%lld", (long long)s->step);
    const fx_text_pair meta[] = {{"format", "fornax-vit-1"}, {"step", step},      {"config", about->config},
                                 {"mean", about->mean},      {"std", about->std}, {"labels", about->labels}};
    return session_save(s, path, meta, about->labels ? 6 : 5);
}

/* Reads a checkpoint into the session after comparing how it was made. */
static fx_status resume(session *s, const char *path, const char *config) {
    fx_safetensors *file;
    char *end = NULL;
    FX_TRY(fx_safetensors_open(path, &file));
    const char *step = fx_safetensors_metadata(file, "step"), *made = fx_safetensors_metadata(file, "config");
    long long at = step ? strtoll(step, &end, 10) : -1;
    fx_status st = FX_OK;
    if (!step || !made || !end || *end || at < 0) {
        fprintf(stderr,
                "%s: not a checkpoint of vit_train (no step or configuration in its metadata); use --weights for "
                "parameters only\n",
                path);
        st = FX_CANCELLED;
    } else if (strcmp(made, config)) {
        fprintf(stderr, "%s: made with other options, so its run can't go on exactly\n  then: %s\n  now:  %s\n", path,
                made, config);
        st = FX_CANCELLED;
    }
    fx_safetensors_close(file);
    if (st == FX_OK)
        st = session_load(s, path);
    s->step = at;
    return st;
}

static fx_status evaluate(session *s, fx_dataset *data, const fx_loader_options *train, report *r) {
    fx_loader_options opt = FX_LOADER_OPTIONS_INIT;
    fx_loader *loader;
    const fx_batch *b;
    double loss = 0;
    int64_t correct = 0, count = 0;
    opt.batch_size = train->batch_size;
    opt.epochs = 1;
    memcpy(opt.mean, train->mean, sizeof opt.mean);
    memcpy(opt.std, train->std, sizeof opt.std);
    FX_TRY(fx_loader_create(data, &opt, &loader));
    fx_status st;
    while ((st = fx_loader_next(loader, &b)) == FX_OK && b && !stopped) {
        float l;
        int32_t hits;
        st = session_eval(s, b->images, b->labels, &l, &hits);
        if (st != FX_OK)
            break;
        loss += (double)l * (double)b->count;
        correct += hits;
        count += b->count;
    }
    fx_loader_destroy(loader);
    if (stopped)
        return st;
    return st == FX_OK ? report_eval(r, s->step, count ? loss / (double)count : 0, correct, count) : st;
}

/* Losses still on the device: read a few at a time, so that the device is not waited for at every step. */
typedef struct pending {
    fx_array *loss[16];
    int64_t step[16], epoch[16];
    double lr[16];
    int n;
} pending;

static fx_status drain(pending *p, int64_t done, report *r) {
    fx_status st = FX_OK;
    float v;
    if (p->n && fx_array_read(p->loss[p->n - 1], &v, sizeof v) == FX_OK) {
        report_pace(r, done, false, continued != 0);
        continued = 0;
    }
    for (int i = 0; i < p->n; i++) {
        v = 0;
        if (st == FX_OK)
            st = fx_array_read(p->loss[i], &v, sizeof v);
        if (st == FX_OK)
            st = report_step(r, p->step[i], p->epoch[i], (double)v, p->lr[i]);
        if (st == FX_OK && !isfinite(v)) {
            fprintf(stderr, "step %lld: the loss is %g; training stops; try a lower --lr or --clip 1\n",
                    (long long)p->step[i], (double)v);
            st = FX_CANCELLED;
        }
        fx_array_unref(p->loss[i]);
    }
    p->n = 0;
    return st;
}

/* The timing of the runs on random images: mean step time after the first ten steps. */
typedef struct timing {
    double at10; /* idle time left out */
    double flops;
} timing;

static fx_status train(session *s, const settings *set, fx_loader *loader, fx_dataset *test,
                       const fx_loader_options *lo, const fx_schedule *schedule, const notes *about, report *r,
                       timing *t) {
    int64_t per_epoch = fx_loader_steps(loader), first = s->step;
    pending p = {.n = 0};
    fx_status st = fx_loader_seek(loader, s->step / per_epoch, s->step % per_epoch);
    while (st == FX_OK && s->step < set->steps && !stopped) {
        const fx_batch *b;
        double lr = fx_schedule_at(schedule, s->step);
        st = fx_loader_next(loader, &b);
        if (st == FX_OK)
            st = session_train(s, b->images, b->labels, lr, &p.loss[p.n]);
        if (st != FX_OK)
            break;
        p.step[p.n] = s->step;
        p.epoch[p.n] = b->epoch + 1;
        p.lr[p.n++] = lr;
        bool tested =
            test && set->eval_every > 0 && s->step % (set->eval_every * per_epoch) == 0 && s->step < set->steps;
        bool saved = set->save_every > 0 && s->step % set->save_every == 0 && s->step < set->steps;
        if (p.n == 16 || tested || saved || s->step == first + 10 || s->step == set->steps ||
            report_now() - r->last_line > 0.25 || s->step == first + 1)
            st = drain(&p, s->step, r);
        if (s->step == first + 10)
            t->at10 = report_now() - r->idle;
        if (tested && st == FX_OK)
            st = evaluate(s, test, lo, r);
        if (saved && st == FX_OK && (st = report_flush(r)) == FX_OK)
            st = save(s, set->checkpoint, about);
        if ((tested || saved) && st == FX_OK)
            report_pace(r, s->step, true, false);
    }
    fx_status last = drain(&p, s->step, r);
    return st == FX_OK ? last : st;
}

static fx_status open_data(const settings *s, fx_dataset **data, fx_dataset **test) {
    fx_dataset_options opt = FX_DATASET_OPTIONS_INIT;
    bool noise = !strcmp(s->data, "random");
    opt.seed = s->seed;
    opt.classes = s->classes > 0 ? (int)s->classes : noise ? 1000 : 0;
    opt.height = opt.width = s->image > 0 ? (int)s->image : 224;
    FX_TRY(fx_dataset_open(s->data, noise ? FX_SPLIT_ALL : FX_SPLIT_TRAIN, &opt, data));
    return noise || s->no_eval ? FX_OK : fx_dataset_open(s->data, FX_SPLIT_TEST, &opt, test);
}

static fx_status finish(session *s, const settings *set, report *r, const timing *t, int64_t first, double began) {
    double seconds = report_now() - began;
    int64_t n = s->step - first;
    if (s->step - first > 10 && t->at10 > 0) {
        double step = (report_now() - r->idle - t->at10) / (double)(n - 10);
        if (set->json)
            printf("{\"mean_step_seconds\": %.6f, \"images_per_second\": %.3f, \"gflops\": %.3f}\n", step,
                   (double)set->batch / step, t->flops / step * 1e-9);
        else
            report_note(r, "after the first 10 steps: %.1f ms a step, %.2f images/s, %.1f GFLOP/s in matrix products",
                        1e3 * step, (double)set->batch / step, t->flops / step * 1e-9);
    }
    if (set->json)
        printf("{\"steps\": %lld, \"training_seconds\": %.3f, \"compile_seconds\": %.3f}\n", (long long)s->step,
               seconds, s->compile_seconds);
    else
        report_note(r, "%lld steps in %.1f s, compiled in %.1f s", (long long)n, seconds, s->compile_seconds);
    return FX_OK;
}

static fx_status run(settings *set, fx_context *cx) {
    fx_device *d = fx_default_device(cx);
    fx_dataset *data = NULL, *test = NULL;
    fx_loader *loader = NULL;
    fx_loader_options lo = FX_LOADER_OPTIONS_INIT;
    fx_schedule schedule;
    session_options so = {0};
    session s = {0};
    report r = {0};
    timing t = {0};
    notes about = {.mean = NULL};
    fx_status st = set->device ? fx_device_find(cx, set->device, &d) : FX_OK;
    if (st == FX_OK && !d)
        st = fx_device_find(cx, "any", &d); /* says what there is */
    if (st == FX_OK)
        st = open_data(set, &data, &test);
    if (st != FX_OK)
        goto done;
    const fx_dataset_info *info = fx_dataset_get_info(data);
    bool noise = !strcmp(set->data, "random");
    if (set->classes > 0 && set->classes != info->classes) {
        fprintf(stderr, "--classes: expected the %d of %s; got %lld\n", info->classes, set->data,
                (long long)set->classes);
        st = FX_CANCELLED;
        goto done;
    }
    if (set->batch > info->count) {
        fprintf(stderr, "--batch-size: expected at most the %lld training images; got %lld\n", (long long)info->count,
                (long long)set->batch);
        st = FX_CANCELLED;
        goto done;
    }
    set->batch = set->batch > 0 ? set->batch : noise ? 8 : info->count < 64 ? info->count : 64;
    st = complete(set, info, &so, &schedule, info->count / set->batch);
    if (st != FX_OK) {
        st = FX_CANCELLED; /* said already */
        goto done;
    }
    describe(set, &so, about.config, sizeof about.config);
    lo.batch_size = set->batch;
    lo.shuffle = lo.drop_last = true;
    lo.seed = set->seed;
    lo.flip = set->flip;
    lo.crop_padding = (int)set->crop;
    if ((st = fx_dataset_statistics(data, 2048, lo.mean, lo.std)) != FX_OK ||
        (st = fx_loader_create(data, &lo, &loader)) != FX_OK)
        goto done;
    about.mean = vit_numbers_text(lo.mean, info->channels);
    about.std = vit_numbers_text(lo.std, info->channels);
    about.labels = vit_labels_text(info->label_names, info->classes);
    if (!about.mean || !about.std) {
        fprintf(stderr, "vit_train: no host memory\n");
        st = FX_CANCELLED;
        goto done;
    }
    if ((st = session_open(&s, d, &so, set->weights, true)) != FX_OK ||
        (set->resume && (st = resume(&s, set->resume, about.config)) != FX_OK))
        goto done;
    int64_t first = s.step;
    training = 1; /* from here on files change */
    if ((st = report_open(&r, set->json, set->metrics, set->plot, first, set->steps, set->batch)) != FX_OK)
        goto done;
    t.flops = 3 * (double)set->batch * vit_flops(&so.model);
    report_note(&r, "%s: %s (%s)", fx_device_uri(d), fx_device_name(d), fx_device_kind_name(d));
    report_note(&r, "%s: %lld training images %dx%dx%d, %d classes; %lld parameters; %lld steps of %lld images",
                set->data, (long long)info->count, info->height, info->width, info->channels, info->classes,
                (long long)fx_model_param_count(s.model), (long long)set->steps, (long long)set->batch);
    double began = report_now();
    st = train(&s, set, loader, test, &lo, &schedule, &about, &r, &t);
    if (st == FX_OK)
        st = finish(&s, set, &r, &t, first, began);
    if (st == FX_OK && test && !stopped)
        st = evaluate(&s, test, &lo, &r);
    if (st == FX_OK)
        st = report_flush(&r);
    if ((st == FX_OK || r.failed) && set->checkpoint && s.step > 0) {
        fx_status kept = save(&s, set->checkpoint, &about);
        if (kept == FX_OK)
            report_note(&r, "checkpoint of step %lld in %s", (long long)s.step, set->checkpoint);
        st = st == FX_OK ? kept : st;
        if (kept != FX_OK && st != kept)
            fprintf(stderr, "vit_train: %s\n", fx_last_error());
    } else if (st == FX_OK && stopped) {
        report_note(&r,
                    s.step ? "stopped at step %lld; nothing was kept (--checkpoint FILE keeps it)"
                           : "stopped at step %lld; there was nothing to keep",
                    (long long)s.step);
    }
    fx_status closed = report_close(&r);
    st = st == FX_OK && closed != FX_OK ? FX_CANCELLED : st;
done:
    free(about.mean);
    free(about.std);
    free(about.labels);
    session_close(&s);
    fx_loader_destroy(loader);
    fx_dataset_destroy(test);
    fx_dataset_destroy(data);
    return st;
}

int main(int argc, char **argv) {
    settings s = {.data = "digits",
                  .image = -1,
                  .patch = -1,
                  .width = -1,
                  .depth = -1,
                  .heads = -1,
                  .mlp = -1,
                  .classes = -1,
                  .batch = -1,
                  .steps = -1,
                  .epochs = -1,
                  .warmup = -1,
                  .eval_every = -1,
                  .save_every = -1,
                  .crop = -1,
                  .lr = -1,
                  .weight_decay = -1,
                  .momentum = -1,
                  .beta2 = -1,
                  .dropout = -1,
                  .smoothing = -1,
                  .clip = -1};
    int bad = parse(&s, argc, argv);
    if (bad)
        return bad == 1 ? 0 : 2;
    if (!check_names(&s))
        return 2;
    catch_signals();
    fx_context *cx = NULL;
    fx_status st = fx_init(NULL, &cx);
    if (st == FX_OK)
        st = run(&s, cx);
    if (st != FX_OK && st != FX_CANCELLED)
        fprintf(stderr, "vit_train: %s\n", fx_last_error());
    fx_shutdown(cx);
    if (stopped && (st == FX_OK || stopped == SIGPIPE)) /* end as the signal would have */
        end_by(stopped);
    return st != FX_OK;
}
