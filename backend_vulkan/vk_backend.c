/* vk_backend.c - the table through which core uses Vulkan, and enumeration. */
#include <string.h>

#include "backend_vulkan/vk.h"

const fx_backend *fx_vulkan_backend(const char **reason);

static fx_status enumerate(fx_device_info *infos, int capacity, int *count, const char **reason) {
    vk_instance *in;
    const char *why = NULL;
    *count = 0;
    fx_status st = fx_vk_instance_get(&in, &why);
    if (reason)
        *reason = why;
    if (st == FX_NOT_FOUND)
        return FX_OK; /* no driver is a fact, not an error */
    FX_TRY(st);
    *count = in->n_gpus;
    for (int i = 0; i < in->n_gpus && i < capacity; i++)
        infos[i] = in->gpus[i].info;
    return FX_OK;
}

static const fx_backend table = {
    .abi_version = FX_BACKEND_ABI,
    .struct_size = sizeof(fx_backend),
    .name = "vulkan",
    .enumerate = enumerate,
    .open = fx_vk_open,
    .close = fx_vk_close,
    .mem_alloc = fx_vk_mem_alloc,
    .mem_free = fx_vk_mem_free,
    .mem_stats = fx_vk_mem_stats,
    .upload = fx_vk_upload,
    .upload_after = fx_vk_upload_after,
    .download = fx_vk_download,
    .kernels_create = fx_vk_kernels_create,
    .kernel_destroy = fx_vk_kernel_destroy,
    .cmds_begin = fx_vk_cmds_begin,
    .cmds_dispatch = fx_vk_cmds_dispatch,
    .cmds_copy = fx_vk_cmds_copy,
    .cmds_fill = fx_vk_cmds_fill,
    .cmds_barrier = fx_vk_cmds_barrier,
    .cmds_label = fx_vk_cmds_label,
    .cmds_timestamp = fx_vk_cmds_timestamp,
    .cmds_end = fx_vk_cmds_end,
    .cmds_destroy = fx_vk_cmds_destroy,
    .cmds_read_timestamps = fx_vk_cmds_read_timestamps,
    .submit = fx_vk_submit,
    .wait = fx_vk_wait,
    .clock_pair = fx_vk_clock_pair,
    .flush_cache = fx_vk_pipeline_cache_flush,
};

const fx_backend *fx_vulkan_backend(const char **reason) {
    if (reason)
        *reason = NULL;
    return &table;
}
