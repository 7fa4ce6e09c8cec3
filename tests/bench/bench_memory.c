/* bench_memory.c - what the training step of a Vision Transformer plans to keep in memory, beside what it can't do
 * without: parameters, gradients, the optimizer's state, and the activations that its backward pass reads.
 *
 * usage: bench_memory [--device URI] [--json] and vit_step.h's options; by default ViT-Base/16 at 224, batch 8, SGD. It
 * compiles and runs nothing. Activations, for batch B, T tokens, width D, H heads and MLPs of width M, f32, a block:
 * the residual stream before both norms, both norms' results, queries, keys and values, the attention's result (8 D
 * each token); the MLP's first product and its GELU (2 M each token); the attention's weights (H T T). In all
 * depth * B * (T (8 D + 2 M) + H T T) elements. */
#include "vit_step.h"

#include "examples/vit/vit.c"

int main(int argc, char **argv) {
    vit_step s;
    const char *uri = NULL;
    bool json = false;
    vit_step_defaults(&s);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--json")) {
            json = true;
        } else if (!strcmp(argv[i], "--device") && argv[i + 1]) {
            uri = argv[++i];
        } else if (!vit_step_option(&s, argv, &i)) {
            fprintf(stderr, "usage: bench_memory " VIT_STEP_USAGE " [--device URI] [--json]\n");
            return 2;
        }
    fx_context *cx;
    OK(fx_init(NULL, &cx));
    fx_device *d = fx_default_device(cx);
    if (uri)
        OK(fx_device_find(cx, uri, &d));
    vit_step_open(&s, d);
    fx_exec_stats_t e;
    OK(fx_exec_stats(s.exec, &e));
    const vit_config *c = &s.config;
    double b = (double)s.batch, t = (double)(c->height / c->patch * (c->width_px / c->patch) + 1),
           width = (double)c->width, mlp = (double)c->mlp, heads = (double)c->heads, depth = (double)c->depth,
           mb = 1e-6;
    double parameters = 4 * (double)fx_model_param_count(s.model);
    double state = parameters * (double)fx_optimizer_slots(&s.optimizer);
    double activations = 4 * depth * b * (t * (8 * width + 2 * mlp) + heads * t * t);
    double needed = 2 * parameters + state + activations, arena = (double)e.arena_bytes;
    double planned = parameters + state + arena + (double)e.constant_bytes;
    if (json)
        printf("{\"bench\": \"memory\", \"device\": \"%s\", \"model\": \"%s\", \"batch\": %lld, \"kernels\": %d, "
               "\"distinct_kernels\": %d, \"parameters\": %.0f, \"gradients\": %.0f, \"optimizer_state\": %.0f, "
               "\"activations\": %.0f, \"needed\": %.0f, \"arena\": %.0f, \"constants\": %llu, \"planned\": %.0f, "
               "\"ratio\": %.4f}\n",
               fx_device_uri(d), s.name, (long long)s.batch, e.kernels, e.distinct_kernels, parameters, parameters,
               state, activations, needed, arena, (unsigned long long)e.constant_bytes, planned, planned / needed);
    else
        printf("training step of ViT %s, %lldx%lld in patches of %lld, batch %lld, on %s: %d kernels, %d distinct\n"
               "needed\n"
               "  parameters       %10.1f MB\n"
               "  gradients        %10.1f MB\n"
               "  optimizer state  %10.1f MB\n"
               "  activations      %10.1f MB  4 x depth x B x (T x (8 D + 2 M) + H x T x T)\n"
               "  in all           %10.1f MB\n"
               "planned\n"
               "  parameters and optimizer state, updated in place  %10.1f MB\n"
               "  arena: gradients, activations, temporaries        %10.1f MB\n"
               "  constants                                         %10.1f MB\n"
               "  in all                                            %10.1f MB, %.3f of what is needed\n",
               s.name, (long long)c->height, (long long)c->width_px, (long long)c->patch, (long long)s.batch,
               fx_device_uri(d), e.kernels, e.distinct_kernels, parameters * mb, parameters * mb, state * mb,
               activations * mb, needed * mb, (parameters + state) * mb, arena * mb, (double)e.constant_bytes * mb,
               planned * mb, planned / needed);
    vit_step_close(&s);
    fx_shutdown(cx);
    return 0;
}
