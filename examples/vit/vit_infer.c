/* vit_infer.c - says what is on images: the labels that a Vision Transformer finds likeliest.
 *
 * The model's sizes, the normalisation of images and the names of labels come from the file of weights. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "weights.h"

static const char usage[] =
    "usage: vit_infer --weights FILE [options] IMAGE...\n"
    "       vit_infer --weights FILE [options] --data SOURCE [--count N]\n"
    "Classifies PNG and JPEG files, or the test images of a data set, with a Vision Transformer.\n";

typedef struct settings {
    const char *weights, *data, *device;
    int64_t heads, count, top, batch;
    bool json;
    char **files;
    int n_files;
    fx_dataset *set; /* NULL: files */
} settings;

typedef struct runner {
    settings *s;
    vit_description about;
    fx_model *model;
    fx_exec *exec;
    fx_array **in;
    float *images, *logits;
    int64_t classes, correct, known;
} runner;

static size_t image_size(const runner *r) {
    const vit_config *c = &r->about.model;
    return (size_t)(c->height * c->width_px * c->channels);
}

static fx_status open_model(runner *r, fx_device *d, const fx_safetensors *file) {
    const vit_config *c = &r->about.model;
    fx_spec in = FX_SPEC(FX_F32, r->s->batch, c->height, c->width_px, c->channels);
    FX_TRY(fx_model_create(vit_logits, &r->about.model, NULL, 1, &in, 1, &r->model));
    int n = fx_model_n_param(r->model);
    r->in = calloc((size_t)n + 1, sizeof *r->in);
    r->images = calloc(image_size(r) * (size_t)r->s->batch, sizeof *r->images);
    r->logits = calloc((size_t)(c->classes * r->s->batch), sizeof *r->logits);
    if (!r->in || !r->images || !r->logits)
        return FX_OUT_OF_MEMORY;
    for (int i = 0; i < n; i++) {
        fx_spec spec = fx_model_param_spec(r->model, i);
        void *data = malloc((size_t)fx_spec_count(&spec) * sizeof(float) + 1);
        fx_status st = data ? vit_read_param(file, fx_model_param_name(r->model, i), spec, data) : FX_OUT_OF_MEMORY;
        if (st == FX_OK)
            st = fx_array_create(d, spec, data, &r->in[i]);
        free(data);
        FX_TRY(st);
    }
    return fx_compile(fx_model_func(r->model), d, NULL, &r->exec);
}

static void close_model(runner *r) {
    fx_exec_destroy(r->exec);
    for (int i = 0; r->in && i < fx_model_n_param(r->model); i++)
        fx_array_unref(r->in[i]);
    fx_model_destroy(r->model);
    free(r->in);
    free(r->images);
    free(r->logits);
    vit_description_free(&r->about);
}

/* Image `i` of the command line or the data set into row `row` of the batch; its label, -1 when unknown. */
static fx_status load(runner *r, int64_t i, int64_t row, int32_t *label) {
    const vit_config *c = &r->about.model;
    float *out = r->images + image_size(r) * (size_t)row;
    *label = -1;
    if (r->s->set) {
        FX_TRY(fx_dataset_read(r->s->set, i, out, label));
    } else {
        fx_image_options opt = FX_IMAGE_OPTIONS_INIT;
        fx_image image;
        opt.channels = (int)c->channels;
        opt.dtype = FX_F32;
        opt.width = (int)c->width_px;
        opt.height = (int)c->height;
        FX_TRY(fx_image_load(r->s->files[i], &opt, &image));
        memcpy(out, image.data, image_size(r) * sizeof *out);
        fx_image_free(&image);
    }
    for (size_t k = 0; k < image_size(r); k++) {
        size_t channel = k % (size_t)c->channels;
        float std = r->about.std[channel];
        out[k] = (out[k] - r->about.mean[channel]) / (std != 0 ? std : 1);
    }
    return FX_OK;
}

static fx_status run_batch(runner *r, fx_device *d) {
    const vit_config *c = &r->about.model;
    fx_array **slot = &r->in[fx_model_n_param(r->model)], *out = NULL;
    FX_TRY(fx_array_create(d, FX_SPEC(FX_F32, r->s->batch, c->height, c->width_px, c->channels), r->images, slot));
    fx_status st = fx_run(r->exec, r->in, &out);
    if (st == FX_OK)
        st = fx_array_read(out, r->logits, (size_t)(r->s->batch * c->classes) * sizeof *r->logits);
    fx_array_unref(out);
    fx_array_unref(*slot);
    return st;
}

/* Control characters must not reach a terminal. */
static void print_plain(const char *s) {
    for (; *s; s++)
        if ((unsigned char)*s < 32 || *s == 127)
            printf("\\x%02x", (unsigned char)*s);
        else
            putchar(*s);
}

static fx_status say_json(const runner *r, int64_t i, int32_t label, const int64_t *order, const double *p) {
    json_t *o = json_object(), *list = json_array();
    if (r->s->set) {
        json_object_set_new(o, "sample", json_integer(i));
        json_object_set_new(o, "label", json_integer(label));
    } else {
        json_t *name = json_string(r->s->files[i]);
        json_object_set_new(o, "image", name ? name : json_null()); /* null: a path that is not UTF-8 */
    }
    for (int64_t k = 0; k < r->s->top; k++) {
        const char *name = vit_label_name(&r->about, order[k]);
        json_t *e = json_object();
        json_object_set_new(e, "label", json_integer(order[k]));
        if (name)
            json_object_set_new(e, "name", json_string(name));
        json_object_set_new(e, "probability", json_real(p[order[k]]));
        json_array_append_new(list, e);
    }
    json_object_set_new(o, "predictions", list);
    char *text = json_dumps(o, JSON_REAL_PRECISION(9));
    json_decref(o);
    if (!text)
        return FX_OUT_OF_MEMORY;
    puts(text);
    free(text);
    return FX_OK;
}

static void say_text(const runner *r, int64_t i, int32_t label, const int64_t *order, const double *p) {
    if (r->s->set)
        printf("sample %lld, label %d%s\n", (long long)i, label, order[0] == label ? "" : " (missed)");
    else {
        print_plain(r->s->files[i]);
        putchar('\n');
    }
    for (int64_t k = 0; k < r->s->top; k++) {
        const char *name = vit_label_name(&r->about, order[k]);
        printf("  %6.2f %%  %lld", 100 * p[order[k]], (long long)order[k]);
        char same[24];
        snprintf(same, sizeof same, "%lld", (long long)order[k]);
        if (name && strcmp(name, same)) {
            printf("  ");
            print_plain(name);
        }
        putchar('\n');
    }
}

/* Softmax and the likeliest labels of a row. */
static fx_status say(runner *r, int64_t i, int64_t row, int32_t label) {
    const float *z = r->logits + row * r->classes;
    double *p = malloc((size_t)r->classes * sizeof *p), sum = 0, most = -INFINITY;
    int64_t *order = malloc((size_t)r->classes * sizeof *order);
    fx_status st = p && order ? FX_OK : FX_OUT_OF_MEMORY;
    for (int64_t k = 0; k < r->classes; k++)
        most = fmax(most, (double)z[k]);
    for (int64_t k = 0; k < r->classes && st == FX_OK; k++) {
        sum += p[k] = exp((double)z[k] - most);
        order[k] = k;
    }
    if (st == FX_OK && !(sum >= 1 && isfinite(sum))) {
        fprintf(stderr, "the model's results are not finite: the weights are damaged\n");
        st = FX_CANCELLED;
    }
    for (int64_t k = 0; k < r->classes && st == FX_OK; k++)
        p[k] /= sum;
    for (int64_t a = 0; a < r->s->top && st == FX_OK; a++) /* selection: top is small */
        for (int64_t k = a + 1; k < r->classes; k++)
            if (p[order[k]] > p[order[a]] || (p[order[k]] == p[order[a]] && order[k] < order[a])) {
                int64_t swap = order[a];
                order[a] = order[k];
                order[k] = swap;
            }
    if (st == FX_OK) {
        r->known += label >= 0;
        r->correct += label >= 0 && order[0] == label;
        if (r->s->json)
            st = say_json(r, i, label, order, p);
        else
            say_text(r, i, label, order, p);
    }
    free(order);
    free(p);
    return st;
}

static fx_status classify(runner *r, fx_device *d, int64_t n) {
    int32_t labels[256];
    for (int64_t i = 0; i < n; i += r->s->batch) {
        int64_t rows = n - i < r->s->batch ? n - i : r->s->batch;
        for (int64_t k = 0; k < rows; k++)
            FX_TRY(load(r, i + k, k, &labels[k]));
        FX_TRY(run_batch(r, d));
        for (int64_t k = 0; k < rows; k++)
            FX_TRY(say(r, i + k, k, labels[k]));
    }
    if (r->known && !r->s->json)
        printf("%lld of %lld right (%.2f %%)\n", (long long)r->correct, (long long)r->known,
               100.0 * (double)r->correct / (double)r->known);
    return FX_OK;
}

/* The images of --data must be the model's; sizes of folders and noise follow it. */
static fx_status open_data(settings *s, const vit_config *c) {
    fx_dataset_options opt = FX_DATASET_OPTIONS_INIT;
    opt.height = (int)c->height;
    opt.width = (int)c->width_px;
    opt.channels = c->channels == 1 ? 1 : 3;
    bool noise = !strcmp(s->data, "random");
    opt.classes = noise ? (int)c->classes : 0;
    FX_TRY(fx_dataset_open(s->data, noise ? FX_SPLIT_ALL : FX_SPLIT_TEST, &opt, &s->set));
    const fx_dataset_info *info = fx_dataset_get_info(s->set);
    if (info->height != c->height || info->width != c->width_px || info->channels != c->channels) {
        fprintf(stderr, "--data %s: images are %dx%dx%d; the model takes %lldx%lldx%lld\n", s->data, info->height,
                info->width, info->channels, (long long)c->height, (long long)c->width_px, (long long)c->channels);
        return FX_CANCELLED;
    }
    s->count = s->count > 0 && s->count < info->count ? s->count : info->count;
    return FX_OK;
}

static fx_status run(settings *s, fx_context *cx) {
    fx_safetensors *file = NULL;
    fx_device *d = fx_default_device(cx);
    runner r = {.s = s};
    FX_TRY(fx_safetensors_open(s->weights, &file));
    fx_status st = vit_describe(file, s->heads, &r.about);
    if (st != FX_OK)
        st = FX_CANCELLED; /* said already */
    if (st == FX_OK && s->device)
        st = fx_device_find(cx, s->device, &d);
    if (st == FX_OK && !d)
        st = fx_device_find(cx, "any", &d); /* says what there is */
    r.classes = r.about.model.classes;
    if (st == FX_OK && s->data)
        st = open_data(s, &r.about.model);
    if (st == FX_OK) {
        int64_t n = s->data ? s->count : s->n_files;
        s->top = s->top < r.classes ? s->top : r.classes;
        s->batch = s->batch < n ? s->batch : n;
        st = open_model(&r, d, file);
        if (st == FX_OK)
            st = classify(&r, d, n);
    }
    close_model(&r);
    fx_dataset_destroy(s->set);
    fx_safetensors_close(file);
    return st;
}

int main(int argc, char **argv) {
    settings s = {.top = 3, .batch = 16};
    const option_row rows[] = {
        {"weights", OPTION_TEXT, &s.weights, 0, 0, "FILE",
         "checkpoint of vit_train, or safetensors by Hugging Face's names (needed)"},
        {"heads", OPTION_INT, &s.heads, 1, 1024, "N",
         "attention heads, where the file does not say (default width / 64)"},
        {"data", OPTION_TEXT, &s.data, 0, 0, "SOURCE",
         "the test images of digits, idx:DIR, cifar10:DIR, folder:DIR; random"},
        {"count", OPTION_INT, &s.count, 1, 1e12, "N", "so many of them (default: all)"},
        {"top", OPTION_INT, &s.top, 1, 100, "N", "labels to print for an image (default 3)"},
        {"batch-size", OPTION_INT, &s.batch, 1, 256, "N", "images at a time (default 16)"},
        {"device", OPTION_TEXT, &s.device, 0, 0, "URI", "vulkan:0, reference, ... (default: the best there is)"},
        {"json", OPTION_FLAG, &s.json, 0, 0, "", "a JSON object a line"},
    };
    s.files = calloc((size_t)argc + 1, sizeof *s.files);
    if (!s.files)
        return 1;
    int bad = options_parse_with(usage, rows, (int)(sizeof rows / sizeof *rows), argc, argv, s.files, &s.n_files);
    if (!bad && !s.weights) {
        fprintf(stderr, "--weights: expected a file; got none; --help lists the options\n");
        bad = 2;
    } else if (!bad && !s.data == !s.n_files) {
        fprintf(stderr, "expected image files or --data SOURCE; got %s; --help lists the options\n",
                s.data ? "both" : "neither");
        bad = 2;
    } else if (!bad && s.count && !s.data) {
        fprintf(stderr, "--count: expected together with --data; got image files\n");
        bad = 2;
    }
    fx_context *cx = NULL;
    fx_status st = bad ? FX_CANCELLED : fx_init(NULL, &cx);
    if (st == FX_OK)
        st = run(&s, cx);
    if (st == FX_OUT_OF_MEMORY && !*fx_last_error())
        fprintf(stderr, "vit_infer: no host memory\n");
    else if (st != FX_OK && st != FX_CANCELLED)
        fprintf(stderr, "vit_infer: %s\n", fx_last_error());
    fx_shutdown(cx);
    free(s.files);
    if (st == FX_OK && (fflush(stdout) || ferror(stdout))) {
        fprintf(stderr, "vit_infer: cannot write the standard output\n");
        return 1;
    }
    return bad ? (bad == 1 ? 0 : 2) : st != FX_OK;
}
