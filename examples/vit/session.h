/* session.h - a model on a device: its parameters and optimizer state as arrays, its training and evaluation
 * steps, and checkpoints of it all. */
#ifndef VIT_SESSION_H
#define VIT_SESSION_H

#include "vit.h"

typedef struct session_options {
    vit_config model;
    fx_optimizer optimizer;
    fx_dtype precision;
    int64_t batch;
    uint64_t seed;
} session_options;

typedef struct session {
    fx_device *device;
    session_options opt;
    fx_model *model;
    fx_exec *train, *eval;
    int n_param, n_state;
    fx_array **arrays;  /* parameters, then state */
    fx_array **scratch; /* inputs and outputs of a run */
    int64_t step;       /* updates done */
    double compile_seconds;
} session;

/* Traces and compiles; parameters are drawn from the seed, or read from `weights` (a checkpoint or a Hugging Face file)
 * when it is not NULL. train false: for evaluation only. */
fx_status session_open(session *s, fx_device *d, const session_options *opt, const char *weights, bool train);
void session_close(session *s);

/* One update on a batch; *loss is a scalar array to read later, owned by the caller. */
fx_status session_train(session *s, const float *images, const int32_t *labels, double lr, fx_array **loss);
/* Loss and number of correct rows of a batch; rows with label -1 don't count. */
fx_status session_eval(session *s, const float *images, const int32_t *labels, float *loss, int32_t *correct);

/* Parameters, optimizer state and the pairs of text, written atomically. */
fx_status session_save(session *s, const char *path, const fx_text_pair *meta, int n_meta);
/* Restores what session_save wrote, into an open session of the same model and optimizer. */
fx_status session_load(session *s, const char *path);

#endif
