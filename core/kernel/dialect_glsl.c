/* dialect_glsl.c - GLSL 4.50 for Vulkan 1.2: pointers are buffer references made from uvec2, so that 64-bit
 * integers are not needed; 8- and 16-bit types exist in memory only.
 *
 * Arguments arrive as a push constant block `uvec2 a[n]` when they fit caps.max_args, else as one uvec2, the
 * address of a table of n uvec2. */
#include <stdio.h>
#include <string.h>

#include "core/kernel/dialect.h"
#include "core/kernel/mathlib.h"

#define B1 FX_BIT(FX_BOOL)
#define I64 (FX_BIT(FX_S64) | FX_BIT(FX_U64))
#define F64 FX_BIT(FX_F64)

static const fx_dialect_fn own[] = {
    {"fma", FX_BIT(FX_F16) | FX_BIT(FX_BF16) | FX_BIT(FX_F32) | F64, "($0 * $1 + $2)", NULL, NULL},
    {NULL, 0, NULL, NULL, NULL},
};

static void constant(fx_text *t, fx_dtype type, int64_t i, double f) {
    fx_dialect_constant(t, type, i, f, "lf");
}

static const char *memory_type(const fx_render *r, fx_dtype e) {
    return e == FX_BOOL && r->caps->bool_is_word ? "uint" : r->dialect->memory[e];
}

static bool needs_table(const fx_render *r) {
    return fx_kir_arguments(r->k) > (int64_t)r->caps->max_args;
}

/* Pointer variables of argument j, found at place `at` of the arguments. */
static void pointer(fx_render *r, fx_text *o, int j, const char *at) {
    const fx_karg *a = &r->k->args[j];
    const char *name = fx_dtype_name(a->elem), *from = needs_table(r) ? "Table(table).v" : "a";
    char kind = a->writes ? 'P' : 'R';
    fx_text_fmt(o, "    %c_%s p%d = %c_%s(%s[%s]);\n", kind, name, j, kind, name, from, at);
    if (r->pack4)
        fx_text_fmt(o, "    W4 p%dw4 = W4(%s[%s]);\n", j, from, at);
    if (r->pack8)
        fx_text_fmt(o, "    W8 p%dw8 = W8(%s[%s]);\n", j, from, at);
}

/* pack4 and pack8 may turn out later in the text: both are declared, unused ones cost nothing. */
static void segment(fx_render *r, fx_text *o, const char *which) {
    const fx_ksegment *s = &r->k->segment;
    fx_text_fmt(o, "    const int segment = %d + %d * %s;\n", s->fixed, r->k->n_arg - s->fixed, which);
    r->pack4 = r->pack8 = true;
    for (int j = s->fixed; j < r->k->n_arg; j++) {
        char at[32];
        snprintf(at, sizeof at, "segment + %d", j - s->fixed);
        pointer(r, o, j, at);
    }
}

static void element(fx_render *r, fx_text *out, int arg, const char *index, int word) {
    (void)r;
    if (word)
        fx_text_fmt(out, "p%dw%d.v[", arg, word);
    else
        fx_text_fmt(out, "p%d.v[", arg);
    fx_text_str(out, index);
    fx_text_str(out, "]");
}

static void head(fx_render *r, fx_text *o) {
    const fx_kir *k = r->k;
    fx_text_str(o, "#version 450\n"
                   "#extension GL_EXT_buffer_reference : require\n"
                   "#extension GL_EXT_buffer_reference_uvec2 : require\n"
                   "#extension GL_EXT_scalar_block_layout : require\n"
                   "#extension GL_EXT_control_flow_attributes : require\n");
    uint32_t e = r->elems;
    if (e & (FX_BIT(FX_S8) | FX_BIT(FX_U8)) || (e & B1 && !r->caps->bool_is_word))
        fx_text_str(o, "#extension GL_EXT_shader_8bit_storage : require\n");
    if (e & (FX_BIT(FX_S16) | FX_BIT(FX_U16) | FX_BIT(FX_F16) | FX_BIT(FX_BF16)))
        fx_text_str(o, "#extension GL_EXT_shader_16bit_storage : require\n");
    if (r->types & I64 || (r->pack8 && r->caps->int64))
        fx_text_str(o, "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n");
    if (r->subgroup)
        fx_text_str(o, "#extension GL_KHR_shader_subgroup_basic : require\n"
                       "#extension GL_KHR_shader_subgroup_ballot : require\n");
    if (r->shuffle)
        fx_text_str(o, "#extension GL_KHR_shader_subgroup_shuffle : require\n"
                       "#extension GL_KHR_shader_subgroup_shuffle_relative : require\n");
    if (r->arithmetic)
        fx_text_str(o, "#extension GL_KHR_shader_subgroup_arithmetic : require\n");
    fx_text_fmt(o, "layout(local_size_x = %u, local_size_y = %u, local_size_z = %u) in;\n", k->workgroup[0],
                k->workgroup[1], k->workgroup[2]);
}

static void kernel(fx_render *r, fx_text *o, const char *functions, const char *body) {
    const fx_kir *k = r->k;
    head(r, o);
    for (int e = 0; e < FX_DTYPE_COUNT; e++) {
        const char *name = fx_dtype_name((fx_dtype)e), *type = memory_type(r, (fx_dtype)e);
        if (r->elems & FX_BIT(e)) {
            int align = strstr(type, "64") || e == FX_F64 ? 8 : strstr(type, "16") ? 2 : strstr(type, "8") ? 1 : 4;
            fx_text_fmt(o, "layout(buffer_reference, scalar, buffer_reference_align = %d) buffer P_%s { %s v[]; };\n",
                        align, name, type);
            fx_text_fmt(
                o, "layout(buffer_reference, scalar, buffer_reference_align = %d) readonly buffer R_%s { %s v[]; };\n",
                align, name, type);
        }
    }
    if (r->pack4)
        fx_text_str(o, "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer W4 { uint v[]; };\n");
    if (r->pack8)
        fx_text_fmt(o, "layout(buffer_reference, scalar, buffer_reference_align = 8) buffer W8 { %s v[]; };\n",
                    r->caps->int64 ? "uint64_t" : "uvec2");
    bool table = needs_table(r);
    if (table)
        fx_text_str(
            o, "layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Table { uvec2 v[]; };\n"
               "layout(push_constant, scalar) uniform Args { uvec2 table; };\n");
    else if (k->n_arg)
        fx_text_fmt(o, "layout(push_constant, scalar) uniform Args { uvec2 a[%d]; };\n", (int)fx_kir_arguments(k));
    for (int s = 0; s < k->n_shared; s++)
        fx_text_fmt(o, "shared %s s%d[%lld];\n", r->dialect->types[k->shared[s].elem], s,
                    (long long)k->shared[s].count);
    if (r->math)
        fx_text_str(o, fx_math_prelude_glsl((r->types & F64) != 0));
    fx_text_str(o, functions);
    fx_text_str(o, "void main() {\n");
    for (int j = 0; j < (k->segment.count ? k->segment.fixed : k->n_arg); j++) {
        char at[16];
        snprintf(at, sizeof at, "%d", j);
        pointer(r, o, j, at);
    }
    fx_text_str(o, body);
    fx_text_str(o, "}\n");
}

const fx_dialect fx_dialect_glsl = {
    .language = FX_LANGUAGE_GLSL,
    .types = fx_dialect_types,
    .unsigned_ = fx_dialect_unsigned,
    .memory = fx_dialect_memory,
    .const_ = "const ",
    .builtin = {[FX_KB_GROUP_X] = "int(gl_WorkGroupID.x)",
                [FX_KB_GROUP_Y] = "int(gl_WorkGroupID.y)",
                [FX_KB_GROUP_Z] = "int(gl_WorkGroupID.z)",
                [FX_KB_LOCAL] = "int(gl_LocalInvocationIndex)",
                [FX_KB_LOCAL_X] = "int(gl_LocalInvocationID.x)",
                [FX_KB_LOCAL_Y] = "int(gl_LocalInvocationID.y)",
                [FX_KB_LANE] = "int(gl_SubgroupInvocationID)",
                [FX_KB_SUBGROUP] = "int(gl_SubgroupID)"},
    .subgroup = {[FX_SUB_BROADCAST] = "subgroupBroadcast($0, uint($1))",
                 [FX_SUB_SHUFFLE] = "subgroupShuffle($0, uint($1))",
                 [FX_SUB_SHUFFLE_DOWN] = "subgroupShuffleDown($0, uint($1))",
                 [FX_SUB_SHUFFLE_XOR] = "subgroupShuffleXor($0, uint($1))",
                 [FX_SUB_ADD] = "subgroupAdd($0)",
                 [FX_SUB_MUL] = "subgroupMul($0)",
                 [FX_SUB_MAX] = "subgroupMax($0)",
                 [FX_SUB_MIN] = "subgroupMin($0)",
                 [FX_SUB_AND] = "subgroupAnd($0)",
                 [FX_SUB_OR] = "subgroupOr($0)",
                 [FX_SUB_XOR] = "subgroupXor($0)",
                 [FX_SUB_SCAN_ADD] = "subgroupInclusiveAdd($0)",
                 [FX_SUB_EXSCAN_ADD] = "subgroupExclusiveAdd($0)"},
    .barrier = "barrier()",
    .unroll = "[[unroll]] ",
    .dont_unroll = "[[dont_unroll]] ",
    .array = {"$T[](", ")"},
    .own = own,
    .fns = fx_dialect_fns,
    .constant = constant,
    .kernel = kernel,
    .segment = segment,
    .element = element,
    .word8 = "uint64_t",
    .word8_split = "uvec2",
    .half = {"uint($0)", "uint($0 >> 32)"},
    .half_split = {"$0.x", "$0.y"},
    .make8 = "packUint2x32(uvec2($0, $1))",
    .make8_split = "uvec2($0, $1)",
    .unpack = {[FX_BOOL] = "($0 >> $1 & 0xffu)",
               [FX_S8] = "bitfieldExtract(int($0), $1, 8)",
               [FX_U8] = "($0 >> $1 & 0xffu)",
               [FX_S16] = "bitfieldExtract(int($0), $1, 16)",
               [FX_U16] = "($0 >> $1 & 0xffffu)",
               [FX_F16] = "($0 >> $1 & 0xffffu)",
               [FX_BF16] = "($0 >> $1 & 0xffffu)",
               [FX_S32] = "int($0)",
               [FX_U32] = "$0",
               [FX_F32] = "uintBitsToFloat($0)"},
    .pack = {[FX_BOOL] = "uint($0) << $1",
             [FX_S8] = "(uint($0) & 0xffu) << $1",
             [FX_U8] = "uint($0) << $1",
             [FX_S16] = "(uint($0) & 0xffffu) << $1",
             [FX_U16] = "uint($0) << $1",
             [FX_F16] = "uint($0) << $1",
             [FX_BF16] = "uint($0) << $1",
             [FX_S32] = "uint($0)",
             [FX_U32] = "$0",
             [FX_F32] = "floatBitsToUint($0)"},
};
