/* vulkan_device.h - for tests of compiled kernels: finds the Vulkan backend in the registry, or the one that
 * FX_TEST_BACKEND names, and runs a test for each device. Devices do not survive fork, so these programs use CK_NOFORK.
 */
#ifndef FX_TESTS_VULKAN_DEVICE_H
#define FX_TESTS_VULKAN_DEVICE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fornax/backend.h"

enum { MOST_DEVICES = 16, SKIPPED = 77 /* the exit status that ctest counts as skipped */ };

static const fx_backend *vk;
static int n_devices;
static fx_device_info device_infos[MOST_DEVICES];

/* Absent from a build without the backend. */
__attribute__((weak)) int fx_vulkan_validation_messages(void);

#define OK(expr) ck_assert_msg((expr) == FX_OK, "%s: %s", #expr, fx_last_error())

/* Number of usable devices; prints why when there is none. Unusable ones are printed and left out. */
static inline int find_vulkan(void) {
    const char *reason = "the build has no such backend", *name = getenv("FX_TEST_BACKEND");
    name = name && *name ? name : "vulkan";
    for (int i = 0; i < fx_backend_registry_count; i++)
        if (strcmp(fx_backend_registry[i].name, name) == 0)
            vk = fx_backend_registry[i].get(&reason);
    if (vk && vk->enumerate(device_infos, MOST_DEVICES, &n_devices, &reason) != FX_OK)
        reason = fx_last_error();
    if (n_devices > MOST_DEVICES)
        n_devices = MOST_DEVICES;
    int usable = 0;
    for (int i = 0; i < n_devices; i++) {
        printf("%s:%d %s, %s%s%s\n", name, i, device_infos[i].name, device_infos[i].driver,
               device_infos[i].usable ? "" : ", not usable: ", device_infos[i].reason);
        usable += device_infos[i].usable;
    }
    if (!usable)
        printf("SKIPPED: no %s device: %s\n", name, reason ? reason : "none usable");
    return usable;
}

static inline int validation_messages(void) {
    return fx_vulkan_validation_messages ? fx_vulkan_validation_messages() : 0;
}

static inline fx_kernel_source kernel_source(const char *name, const char *text, uint32_t n_args, uint32_t workgroup) {
    return (fx_kernel_source){
        .name = name, .source = text, .source_bytes = strlen(text), .n_args = n_args, .workgroup = {workgroup, 1, 1}};
}

/* Kernel text: HEAD, then PUSH(n) or TABLE(n), then MAIN("statements on uint i"). A(k) is the k-th argument. */
#define HEAD                                                                                 \
    "#version 450\n#extension GL_EXT_buffer_reference : require\n"                           \
    "#extension GL_EXT_buffer_reference_uvec2 : require\nlayout(local_size_x = 64) in;\n"    \
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer U { uint v[]; };\n" \
    "layout(buffer_reference, std430, buffer_reference_align = 4) buffer F { float v[]; };\n"
#define PUSH(n) "layout(push_constant) uniform Args { uvec2 a[" #n "]; };\n#define A(k) a[k]\n"
#define TABLE(n)                                                                                       \
    "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Table { uvec2 a[" #n \
    "]; };\nlayout(push_constant) uniform Args { uvec2 table; };\n#define A(k) Table(table).a[k]\n"
#define MAIN(body) "void main() { uint i = gl_GlobalInvocationID.x; " body " }\n"

#endif
