/* nn.h - the state of a model while its function is traced, shared by the files of core/nn. */
#ifndef FX_NN_NN_H
#define FX_NN_NN_H

#include "core/base/arena.h"
#include "fornax/nn.h"

typedef struct fx_param_info {
    const char *name;
    fx_spec spec;
    fx_initializer init;
    bool decay;
    fx_val value; /* while tracing: as stored */
    fx_val cast;  /* in the compute type */
} fx_param_info;

struct fx_model {
    fx_arena arena;
    fx_model_options opt;
    fx_param_info *params;
    int n_param, cap_param;
    int n_in; /* without parameters and key */
    fx_func *func;
};

struct fx_nn {
    fx_trace *t;
    fx_model *m;
    char scope[512];
    int cut[32]; /* length of scope before each push */
    int depth;
    fx_val key;
    uint32_t n_keys;
};

/* Opens the scope of a layer. False when nn or the name is absent; in the latter case an error is recorded. */
bool fx_nn_enter(fx_nn *nn, const char *layer, const char *name);

#endif
