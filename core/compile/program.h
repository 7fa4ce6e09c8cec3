/* program.h - what the compiler makes of a graph: buffers, kernels as text, and steps in order.
 *
 * Pure data, no device object in it: printable and testable. The runtime gives buffers memory (plan.h),
 * compiles the kernels and records the steps. A control-flow step holds programs for its regions, run
 * with their parameters and results bound to buffers of the enclosing program. */
#ifndef FX_COMPILE_PROGRAM_H
#define FX_COMPILE_PROGRAM_H

#include "core/base/arena.h"
#include "core/graph/graph.h"
#include "fornax/backend.h"

typedef enum fx_buffer_kind {
    FX_BUFFER_PARAM, /* input `index` of the program */
    FX_BUFFER_CONST, /* literal `data`, in device layout, uploaded once */
    FX_BUFFER_TEMP   /* made by a step; a result of the program when a result names it */
} fx_buffer_kind;

typedef struct fx_buffer {
    fx_buffer_kind kind;
    int index; /* PARAM: which; TEMP: 1 when it holds a result, else 0 */
    fx_spec spec;
    uint64_t bytes;   /* in device layout (fx_device_bytes) */
    const void *data; /* CONST: `bytes` bytes */
} fx_buffer;

typedef struct fx_kernel_text {
    fx_kernel_source source; /* strings live in the program's arena */
} fx_kernel_text;

typedef enum fx_access { FX_READ = 1, FX_WRITE = 2 } fx_access;

typedef struct fx_step_arg {
    int buffer;
    int64_t offset;  /* bytes from the buffer's start */
    unsigned access; /* FX_READ | FX_WRITE */
    int in_place_of; /* WRITE: index of an argument of this step whose memory this one may take over, since
                        each invocation reads that one only where it later writes this one; else -1 */
} fx_step_arg;

typedef enum fx_step_kind {
    FX_STEP_KERNEL,
    FX_STEP_COPY,  /* args[0] = args[1], both of `bytes` bytes */
    FX_STEP_FILL,  /* args[0]: `bytes` bytes of the 4-byte pattern `word` */
    FX_STEP_COND,  /* args: index (s32), operands..., results... ; body[i] are the branches */
    FX_STEP_WHILE, /* args: carry operands..., constants..., results...; body[0] condition, body[1] body */
    FX_STEP_SCAN   /* args: constants..., carry..., xs..., results (carry..., ys...); body[0]; slices along dim 0 */
} fx_step_kind;

typedef struct fx_step {
    fx_step_kind kind;
    const char *name;     /* of the ops it fuses, for profiles: "dot_general+add+gelu" */
    const char *schedule; /* "pointwise", "row", "contract.subgroup", ... */
    int n_arg;
    fx_step_arg *args; /* KERNEL: in the order of the kernel's arguments */
    int kernel;        /* index in program->kernels */
    uint32_t groups[3];
    int64_t flops, bytes_read, bytes_written;
    uint64_t bytes; /* COPY, FILL */
    uint32_t word;
    /* control flow */
    int n_body;
    struct fx_program **body;
    int n_carry, n_consts, n_xs, n_results;
    int64_t length;
    bool reverse;
} fx_step;

typedef struct fx_program {
    fx_arena arena;
    int n_buffer, n_kernel, n_step, n_param, n_result;
    fx_buffer *buffers;
    fx_kernel_text *kernels; /* no two with the same hash */
    fx_step *steps;
    int *results; /* buffer of each result; may be a PARAM, a CONST, or one buffer twice */
} fx_program;

/* Which schedule products get; AUTO: what suits the device. A forced one that can't be used gives NAIVE. */
typedef enum fx_contract_choice {
    FX_CONTRACT_AUTO,
    FX_CONTRACT_NAIVE,
    FX_CONTRACT_SUBGROUP,
    FX_CONTRACT_SHARED
} fx_contract_choice;

typedef struct fx_lower_options {
    bool no_fusion;
    bool body; /* of control flow: parameters and results may start at any element, not at a multiple of 16 bytes */
    fx_contract_choice contract;
    bool no_repeats; /* lowers each group anew, also one like another: gives the same program; for tests */
} fx_lower_options;

/* graph -> program for a device: simplify, cse, dce, fuse, schedule, render. The graph is finished.
 * FX_UNSUPPORTED names the op and the feature that the device lacks. */
fx_status fx_program_create(const fx_graph *g, const fx_device_caps *caps, const fx_lower_options *opt,
                            fx_program **out);
void fx_program_destroy(fx_program *p);      /* NULL is fine */
char *fx_program_print(const fx_program *p); /* malloc'd; a line a step */

/* Bytes an array takes on the device: as on the host, but bool may be a word. Rounded up to 4. */
uint64_t fx_device_bytes(const fx_spec *spec, const fx_device_caps *caps);

#endif
