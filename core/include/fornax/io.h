/* io.h - files, images, data sets, the batch loader and plots.
 *
 * Everything here works on host memory and knows nothing of devices. Files are untrusted: sizes are
 * checked against the file before anything is allocated, and a refusal names the file and the reason
 * (FX_BAD_DATA for a damaged or hostile file, FX_UNSUPPORTED for a legal one that holds something the
 * library cannot represent, FX_NOT_FOUND and FX_IO_ERROR for what the operating system says).
 * Files are written to a temporary name beside the target, flushed to disk and renamed, so that a
 * full disk or a crash leaves the previous file untouched; what a killed process left of its temporary file
 * (FILE.PID.N.tmp) is removed by the next one that writes the same file.
 * Option structs start with struct_size: initialise them with their _INIT; NULL means the defaults.
 * Threads: calls on different objects may run at the same time; each object says what it allows. */
#ifndef FORNAX_IO_H
#define FORNAX_IO_H

#include <fornax/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arrays in host memory ------------------------------------------------------------------- */

/* An array on the host: dense, row-major, native byte order. `data` is owned. */
typedef struct fx_host_array {
    fx_spec spec;
    void *data;
} fx_host_array;

/* Frees the data and zeroes the struct. Accepts NULL and an already freed array. */
FX_API void fx_host_array_free(fx_host_array *array);

/* A named array that somebody else owns, dense and row-major, little-endian as on the host.
 * `data` need not be aligned to the element size: copy it, or use memcpy to look at elements. */
typedef struct fx_named_tensor {
    const char *name; /* UTF-8; it is data: it may hold "/", "..", or control characters */
    fx_spec spec;     /* dtype FX_TUPLE: an element type that the library cannot compute with */
    const void *data; /* NULL only when bytes is 0 */
    size_t bytes;
    const char *type_name; /* as the file format spells it, e.g. "BF16", "F8_E4M3"; ignored when writing */
} fx_named_tensor;

typedef struct fx_text_pair {
    const char *key, *value;
} fx_text_pair;

/* ---- safetensors ----------------------------------------------------------------------------- */

/* An open safetensors file. Immutable: any number of threads may read one. */
typedef struct fx_safetensors fx_safetensors;

/* Longest header that is read, in bytes (a million tensors do not fit, 100,000 do). */
#define FX_SAFETENSORS_MAX_HEADER (16u << 20)

/* Maps the file and checks all of its header: strict JSON without duplicate keys, shapes that match
 * their byte ranges, ranges that tile the data without gap or overlap. Tensor bytes are then used in
 * place. The file must not be shortened while it is open (files written by this library never are). */
FX_API fx_status fx_safetensors_open(const char *path, fx_safetensors **out);
/* The same for a file already in memory, which is borrowed until fx_safetensors_close. */
FX_API fx_status fx_safetensors_parse(const void *data, size_t size, fx_safetensors **out);
FX_API void fx_safetensors_close(fx_safetensors *file);

FX_API size_t fx_safetensors_count(const fx_safetensors *file);
/* Tensor i in the header's order; NULL when i is out of range. Borrowed: valid until close. */
FX_API const fx_named_tensor *fx_safetensors_get(const fx_safetensors *file, size_t i);
/* By name; NULL when there is none. Borrowed. */
FX_API const fx_named_tensor *fx_safetensors_find(const fx_safetensors *file, const char *name);
/* Copies a tensor's elements to dst, which holds spec's bytes. FX_NOT_FOUND without such a name,
 * FX_INVALID_ARGUMENT when the file's shape or type differs from spec. */
FX_API fx_status fx_safetensors_read(const fx_safetensors *file, const char *name, const fx_spec *spec, void *dst);
/* The value of a __metadata__ key, NULL when absent. Borrowed. */
FX_API const char *fx_safetensors_metadata(const fx_safetensors *file, const char *key);
FX_API size_t fx_safetensors_metadata_count(const fx_safetensors *file);
FX_API fx_text_pair fx_safetensors_metadata_get(const fx_safetensors *file, size_t i); /* {NULL, NULL} past the end */

typedef struct fx_safetensors_options {
    size_t struct_size;
    /* Called once for each tensor whose data is NULL, in the order of the file, and gives `bytes` bytes at
     * *data that stay valid until the next call: lets large models be written from device memory one tensor at a time.
     */
    fx_status (*fetch)(void *user, size_t index, const void **data);
    void *user;
} fx_safetensors_options;
#define FX_SAFETENSORS_OPTIONS_INIT \
    { sizeof(fx_safetensors_options), NULL, NULL }

/* Writes n tensors and m metadata pairs, atomically. The bytes depend on the arguments' values alone, not on
 * their order: widest element type first, then by name, so every tensor is aligned to its type and the
 * data starts at a multiple of 8. Names and metadata must be valid UTF-8 and unique; spec.dtype must be a
 * type of the library and `bytes` its size. */
FX_API fx_status fx_safetensors_write(const char *path, const fx_named_tensor *tensors, size_t n,
                                      const fx_text_pair *metadata, size_t m, const fx_safetensors_options *options);

/* ---- npy and npz ----------------------------------------------------------------------------- */

/* Reads one .npy file (format 1, 2 or 3; bool, integers and floats; either byte order; C or Fortran order,
 * which is transposed on reading). The result is freed with fx_host_array_free. Objects, structures,
 * strings, dates, complex and long double are refused by name; nothing in the file is ever evaluated. */
FX_API fx_status fx_npy_load(const char *path, fx_host_array *out);
FX_API fx_status fx_npy_parse(const void *data, size_t size, fx_host_array *out);
/* Writes a little-endian C-order .npy file, atomically. bf16 is refused: the format has no name for it. */
FX_API fx_status fx_npy_save(const char *path, const fx_spec *spec, const void *data);

/* An open .npz archive. One thread at a time. FX_UNSUPPORTED in a build without libzip. */
typedef struct fx_npz fx_npz;
FX_API fx_status fx_npz_open(const char *path, fx_npz **out);
FX_API void fx_npz_close(fx_npz *npz);
FX_API size_t fx_npz_count(const fx_npz *npz);
/* Name of entry i without ".npy"; NULL past the end. Borrowed until close. */
FX_API const char *fx_npz_name(const fx_npz *npz, size_t i);
FX_API fx_status fx_npz_read(fx_npz *npz, const char *name, fx_host_array *out);
/* Writes an uncompressed archive, atomically; equal arguments give equal bytes. Names must be unique UTF-8 without
 * control characters. */
FX_API fx_status fx_npz_write(const char *path, const fx_named_tensor *tensors, size_t n);

/* ---- IDX (the format of MNIST) --------------------------------------------------------------- */

/* Reads an IDX file of any of its element types into native byte order. A compressed file is refused by name. */
FX_API fx_status fx_idx_load(const char *path, fx_host_array *out);
FX_API fx_status fx_idx_parse(const void *data, size_t size, fx_host_array *out);

/* ---- Images ---------------------------------------------------------------------------------- */

/* Most pixels an image may have. */
#define FX_IMAGE_MAX_PIXELS (1u << 26)

/* An image in host memory, row-major, channels interleaved: [height][width][channels]. 1 channel is grey, 2 grey
 * and alpha, 3 RGB, 4 RGBA. dtype FX_U8 (0..255), FX_U16 (0..65535) or FX_F32 (0..1). `data` is owned. */
typedef struct fx_image {
    int width, height, channels;
    fx_dtype dtype;
    void *data;
} fx_image;
FX_API void fx_image_free(fx_image *image);

/* How an image is brought to a given size. Resampling is a triangle filter, widened when shrinking. */
typedef enum fx_fit {
    FX_FIT_CROP,   /* scaled until it covers the size, then the centre is cut out */
    FX_FIT_STRETCH /* scaled in both directions, the aspect ratio changes */
} fx_fit;

typedef struct fx_image_options {
    size_t struct_size;
    int channels;      /* 0: as in the file; 1 to 4: converted (grey = 0.299 R + 0.587 G + 0.114 B) */
    fx_dtype dtype;    /* FX_U8 (default), FX_U16 or FX_F32; 16-bit samples are rounded to 8 bits, never cut */
    int width, height; /* 0, 0: as in the file; else the result's size */
    fx_fit fit;
} fx_image_options;
#define FX_IMAGE_OPTIONS_INIT \
    { sizeof(fx_image_options), 0, FX_U8, 0, 0, FX_FIT_CROP }

/* Reads a PNG or JPEG file; which of them it is decides the content, not the name. Alpha is dropped, not
 * composited, when fewer channels are asked for; palettes are looked up; CMYK becomes RGB; gamma, colour profiles
 * and EXIF orientation are ignored. A picture that is incomplete in any way is an error. */
FX_API fx_status fx_image_load(const char *path, const fx_image_options *options, fx_image *out);
FX_API fx_status fx_image_decode(const void *data, size_t size, const fx_image_options *options, fx_image *out);
/* Writes a PNG file, atomically. u8 and u16 only. */
FX_API fx_status fx_image_write_png(const char *path, const fx_image *image);

/* ---- Data sets of labelled images ------------------------------------------------------------ */

/* A set of labelled images. Immutable after creation: any thread may read it. Reference counted. */
typedef struct fx_dataset fx_dataset;

typedef enum fx_split { FX_SPLIT_TRAIN, FX_SPLIT_TEST, FX_SPLIT_ALL } fx_split;

typedef struct fx_dataset_info {
    int64_t count;
    int channels, height, width;
    int classes;
    const char *const *label_names; /* [classes], NULL when labels have no names; borrowed from the data set */
    float scale;      /* stored sample * scale = value in [0, 1]; 1/255 for 8-bit images, 1/16 for digits */
    const char *name; /* "digits", "idx", ... Borrowed. */
} fx_dataset_info;

typedef struct fx_dataset_options {
    size_t struct_size;
    int classes;          /* 0: the source's own number. idx, random: labels are below it; others: must be their own */
    int64_t count;        /* random: number of images (default 10,000); ignored elsewhere */
    int channels;         /* folder and random: 1 or 3, default 3 */
    int height, width;    /* folder and random: size of the images; default 224 x 224 */
    fx_fit fit;           /* folder: how files are brought to that size */
    double test_fraction; /* sources without a test set of their own: held out, default 0.2 */
    uint64_t seed;        /* random: of the pixels and labels; folder: of the split */
} fx_dataset_options;
#define FX_DATASET_OPTIONS_INIT \
    { sizeof(fx_dataset_options), 0, 10000, 3, 224, 224, FX_FIT_CROP, 0.2, 0 }

/* Opens a data set by name, as a command line would:
 *   digits        the 1,797 handwritten digits, 8x8 grey, that come with the library; the test split is 20 % of every
 *                 class, always the same samples (fx_dataset_split with seed 0)
 *   idx:DIR       MNIST and its relatives: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...
 *   cifar10:DIR   data_batch_1.bin to data_batch_5.bin, test_batch.bin
 *   cifar100:DIR  train.bin, test.bin (the 100 fine labels)
 *   folder:DIR    one folder a class, in DIR or, when there are both, in DIR/train and DIR/test (or val, valid)
 *   random        noise, made when read
 * FX_SPLIT_ALL joins both splits where the source has one list, and is refused where it has two. */
FX_API fx_status fx_dataset_open(const char *uri, fx_split split, const fx_dataset_options *options, fx_dataset **out);

/* The digits' files are looked for in $FORNAX_DATA_DIR/digits, then where the library was installed, then in the
 * source tree it was built from. */
FX_API fx_status fx_dataset_digits(fx_split split, fx_dataset **out);
/* Images u8 [N,H,W] or [N,H,W,C] and integer labels [N] from two IDX files. classes 0: the largest label + 1. */
FX_API fx_status fx_dataset_idx(const char *images, const char *labels, int classes, fx_dataset **out);
/* Copies u8 or f32 images [N,H,W] or [N,H,W,C] and integer labels [N]. scale as in fx_dataset_info, 0 for its default
 * (1/255 for u8, 1 for f32). */
FX_API fx_status fx_dataset_from_arrays(const fx_spec *images_spec, const void *images, const fx_spec *labels_spec,
                                        const void *labels, int classes, float scale, fx_dataset **out);

/* Parts a data set in two that share its images: of each class, round(test_fraction * size) samples, chosen by
 * `seed` alone, go to *test, the others to *train; both keep the order of the source. */
FX_API fx_status fx_dataset_split(fx_dataset *dataset, double test_fraction, uint64_t seed, fx_dataset **train,
                                  fx_dataset **test);
FX_API fx_dataset *fx_dataset_retain(fx_dataset *dataset);
FX_API void fx_dataset_destroy(fx_dataset *dataset); /* gives one reference back */

FX_API const fx_dataset_info *fx_dataset_get_info(const fx_dataset *dataset); /* borrowed */
/* Sample `index`: f32 [height][width][channels] in [0, 1] and its label. image may be NULL when only the label is
 * wanted. */
FX_API fx_status fx_dataset_read(const fx_dataset *dataset, int64_t index, float *image, int32_t *label);
/* Mean and standard deviation of each channel over the data set (over at most `limit` evenly spaced samples when limit
 * > 0). */
FX_API fx_status fx_dataset_statistics(const fx_dataset *dataset, int64_t limit, float *mean, float *std);

/* ---- Loader: batches made ahead by threads --------------------------------------------------- */

typedef enum fx_layout { FX_LAYOUT_NHWC, FX_LAYOUT_NCHW } fx_layout;

typedef struct fx_loader_options {
    size_t struct_size;
    int64_t batch_size;
    bool shuffle;   /* a new order each epoch */
    bool drop_last; /* leave out a last batch that is not full; for training only */
    uint64_t seed;  /* of order and augmentation */
    int64_t epochs; /* 0: endless; else fx_loader_next gives NULL after so many */
    int threads;    /* workers, at least 1 */
    int prefetch;   /* batches held at most, the borrowed one included; at least 2 */
    fx_layout layout;
    bool flip;             /* mirror left and right with probability 1/2 */
    int crop_padding;      /* > 0: pad by so many black pixels on each side, then crop at a random place */
    float mean[4], std[4]; /* per channel: (value in [0, 1] - mean) / std; std 0 counts as 1 */
    int shard, shards;     /* this process takes samples shard, shard + shards, ... of each epoch's order */
} fx_loader_options;
#define FX_LOADER_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(fx_loader_options), 32, false, false, 0, 0, 1, 3, FX_LAYOUT_NHWC, false, 0, {0, 0, 0, 0}, {1, 1, 1, 1}, \
            0, 1                                                                                                       \
    }

typedef struct fx_batch {
    const float *images;    /* [batch_size,H,W,C] or [batch_size,C,H,W]; zero from row `count` on */
    const int32_t *labels;  /* [batch_size]; -1 from `count` on */
    const int64_t *indices; /* [batch_size] of the data set; -1 from `count` on */
    int64_t count;          /* samples in the batch; below batch_size only in an epoch's last one */
    int64_t epoch, step;    /* its position; step counts from 0 in each epoch */
} fx_batch;

/* What a batch holds depends on the data set, the options and the position (epoch, step) alone: not on threads,
 * timing or what was read before. A run that stops after any step continues exactly with fx_loader_seek.
 * One thread at a time may call these; the workers are the loader's own and block all signals. */
typedef struct fx_loader fx_loader;

/* Keeps a reference to the data set. Starts the workers. */
FX_API fx_status fx_loader_create(fx_dataset *dataset, const fx_loader_options *options, fx_loader **out);
/* Stops the workers, at any moment, and waits for them. */
FX_API void fx_loader_destroy(fx_loader *loader);
/* Waits for the next batch; *batch is borrowed and stays valid until the next call on this loader. NULL after the
 * last of options.epochs. An error of a worker (say, a damaged image file) is returned when its batch is due, and
 * again by later calls until fx_loader_seek. */
FX_API fx_status fx_loader_next(fx_loader *loader, const fx_batch **batch);
/* The next batch will be (epoch, step). step may equal the steps of an epoch: the next epoch's first. */
FX_API fx_status fx_loader_seek(fx_loader *loader, int64_t epoch, int64_t step);
/* Batches in an epoch: the same for all shards. */
FX_API int64_t fx_loader_steps(const fx_loader *loader);

/* ---- Line plots ------------------------------------------------------------------------------ */

/* A line plot with axes, ticks and a legend, drawn into a PNG file. One thread at a time. */
typedef struct fx_plot fx_plot;

typedef struct fx_plot_options {
    size_t struct_size;
    int width, height;                     /* pixels, 160 to 8192 */
    const char *title, *x_label, *y_label; /* ASCII, copied; NULL for none */
    bool log_y;                            /* base-10 logarithm; points at or below 0 are left out */
} fx_plot_options;
#define FX_PLOT_OPTIONS_INIT \
    { sizeof(fx_plot_options), 800, 500, NULL, NULL, NULL, false }

FX_API fx_status fx_plot_create(const fx_plot_options *options, fx_plot **out);
FX_API void fx_plot_destroy(fx_plot *plot);
/* Adds a line through n points, copied; x NULL counts from 0. Points that are not finite break the line. */
FX_API fx_status fx_plot_add(fx_plot *plot, const char *name, const double *x, const double *y, size_t n);
FX_API fx_status fx_plot_render(const fx_plot *plot, fx_image *out);  /* RGB u8 */
FX_API fx_status fx_plot_save(const fx_plot *plot, const char *path); /* PNG, atomically */

#ifdef __cplusplus
}
#endif
#endif
