/* vk_probe.c - asks a physical device what it can do and translates the answers into fx_device_caps.
 *
 * Needed: Vulkan 1.2, bufferDeviceAddress, timelineSemaphore and a queue for compute. Everything else
 * is optional and ends up as a capability. An unfit device stays in the list, with the reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_vulkan/vk.h"

typedef struct features {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceSubgroupSizeControlFeatures size;
} features;

typedef struct properties {
    VkPhysicalDeviceProperties2 base;
    VkPhysicalDeviceVulkan11Properties v11;
    VkPhysicalDeviceVulkan12Properties v12;
    VkPhysicalDeviceSubgroupSizeControlProperties size;
    VkPhysicalDeviceMaintenance4Properties buffers;
    VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nv;
    VkPhysicalDeviceShaderCorePropertiesAMD amd;
    VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm;
} properties;

typedef struct extensions {
    uint32_t n;
    VkExtensionProperties *all;
} extensions;

static bool has(const extensions *e, const char *name) {
    for (uint32_t i = 0; i < e->n; i++)
        if (strcmp(e->all[i].extensionName, name) == 0)
            return true;
    return false;
}

static void chain(VkBaseOutStructure **tail, void *next, VkStructureType type) {
    VkBaseOutStructure *s = next;
    s->sType = type;
    s->pNext = NULL;
    (*tail)->pNext = s;
    *tail = s;
}

static void query(const vk_gpu *gpu, const extensions *e, features *f, properties *p) {
    bool v13 = gpu->api >= VK_API_VERSION_1_3;
    memset(f, 0, sizeof *f);
    memset(p, 0, sizeof *p);
    f->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    VkBaseOutStructure *tail = (VkBaseOutStructure *)&f->base;
    chain(&tail, &f->v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
    chain(&tail, &f->v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
    if (v13 || gpu->size_control_ext)
        chain(&tail, &f->size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
    vkGetPhysicalDeviceFeatures2(gpu->handle, &f->base);

    p->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    tail = (VkBaseOutStructure *)&p->base;
    chain(&tail, &p->v11, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES);
    chain(&tail, &p->v12, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
    if (v13 || gpu->size_control_ext)
        chain(&tail, &p->size, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES);
    if (v13 || has(e, VK_KHR_MAINTENANCE_4_EXTENSION_NAME))
        chain(&tail, &p->buffers, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    if (has(e, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
        chain(&tail, &p->nv, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
    if (has(e, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME))
        chain(&tail, &p->amd, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
    if (has(e, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME))
        chain(&tail, &p->arm, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM);
    vkGetPhysicalDeviceProperties2(gpu->handle, &p->base);
}

/* Compute: a family without graphics when there is one, so that a desktop stays responsive. Transfer:
 * a family that can do nothing else, which is a copy engine of its own. */
static void choose_queues(vk_gpu *gpu) {
    VkQueueFamilyProperties all[64];
    uint32_t n = sizeof all / sizeof *all;
    vkGetPhysicalDeviceQueueFamilyProperties(gpu->handle, &n, all);
    gpu->compute_family = gpu->transfer_family = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        VkQueueFlags flags = all[i].queueFlags;
        bool graphics = flags & VK_QUEUE_GRAPHICS_BIT;
        if (flags & VK_QUEUE_COMPUTE_BIT) {
            if (gpu->compute_family == UINT32_MAX ||
                (!graphics && all[gpu->compute_family].queueFlags & VK_QUEUE_GRAPHICS_BIT))
                gpu->compute_family = i;
        } else if (flags & VK_QUEUE_TRANSFER_BIT && !graphics && gpu->transfer_family == UINT32_MAX &&
                   !(flags & (VK_QUEUE_VIDEO_DECODE_BIT_KHR | VK_QUEUE_OPTICAL_FLOW_BIT_NV | 0x40u /* video encode */)))
            gpu->transfer_family = i;
    }
    gpu->timestamp_bits = gpu->compute_family == UINT32_MAX ? 0 : all[gpu->compute_family].timestampValidBits;
}

static fx_device_kind kind_of(VkPhysicalDeviceType type) {
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return FX_DEVICE_DISCRETE_GPU;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return FX_DEVICE_INTEGRATED_GPU;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return FX_DEVICE_SOFTWARE;
    default:
        return FX_DEVICE_VIRTUAL_GPU;
    }
}

static uint64_t largest_heap(const vk_gpu *gpu) {
    uint64_t best = 0;
    for (uint32_t i = 0; i < gpu->memory.memoryHeapCount; i++)
        if (gpu->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
            gpu->memory.memoryHeaps[i].size > best)
            best = gpu->memory.memoryHeaps[i].size;
    return best;
}

static bool every_heap_is_local(const vk_gpu *gpu) {
    for (uint32_t i = 0; i < gpu->memory.memoryHeapCount; i++)
        if (!(gpu->memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT))
            return false;
    return true;
}

static uint32_t units_of(const vk_gpu *gpu, const properties *p) {
    if (gpu->info.kind == FX_DEVICE_SOFTWARE) {
        long cores = sysconf(_SC_NPROCESSORS_ONLN);
        return cores > 0 ? (uint32_t)cores : 0;
    }
    if (p->nv.shaderSMCount)
        return p->nv.shaderSMCount;
    if (p->amd.computeUnitsPerShaderArray)
        return p->amd.shaderEngineCount * p->amd.shaderArraysPerEngineCount * p->amd.computeUnitsPerShaderArray;
    return p->arm.shaderCoreCount;
}

static void fill_caps(vk_gpu *gpu, const features *f, const properties *p) {
    const VkPhysicalDeviceLimits *l = &p->base.properties.limits;
    fx_device_caps *c = &gpu->caps;
    VkSubgroupFeatureFlags ops = p->v11.subgroupSupportedOperations;
    c->language = FX_LANGUAGE_GLSL;
    c->storage8 = f->v12.storageBuffer8BitAccess;
    c->bool_is_word = !c->storage8;
    c->storage16 = f->v11.storageBuffer16BitAccess;
    c->int8 = f->v12.shaderInt8;
    c->int16 = f->base.features.shaderInt16;
    c->int64 = f->base.features.shaderInt64;
    c->f16 = f->v12.shaderFloat16;
    c->f64 = f->base.features.shaderFloat64;
    c->subgroup_size = 1;
    if (p->v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT && ops & VK_SUBGROUP_FEATURE_BASIC_BIT) {
        c->subgroup_size = p->v11.subgroupSize;
        c->subgroup_shuffle = ops & VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
        c->subgroup_arithmetic = ops & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
        c->subgroup_ballot = ops & VK_SUBGROUP_FEATURE_BALLOT_BIT;
    }
    c->subgroup_min = c->subgroup_max = c->subgroup_size;
    gpu->size_control = c->subgroup_size > 1 && f->size.subgroupSizeControl &&
                        p->size.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT;
    gpu->full_subgroups = f->size.computeFullSubgroups;
    if (gpu->size_control) {
        c->subgroup_min = p->size.minSubgroupSize;
        c->subgroup_max = p->size.maxSubgroupSize;
        gpu->max_subgroups = p->size.maxComputeWorkgroupSubgroups;
    }
    gpu->scalar_layout = f->v12.scalarBlockLayout;
    gpu->extended_types = f->v12.shaderSubgroupExtendedTypes;
    gpu->memory_model = f->v12.vulkanMemoryModel && f->v12.vulkanMemoryModelDeviceScope;
    c->max_invocations = l->maxComputeWorkGroupInvocations;
    for (int i = 0; i < 3; i++) {
        c->max_workgroup[i] = l->maxComputeWorkGroupSize[i];
        c->max_groups[i] = l->maxComputeWorkGroupCount[i];
    }
    c->shared_bytes = l->maxComputeSharedMemorySize;
    c->max_args = l->maxPushConstantsSize / 8 < VK_PUSH_ARGS ? l->maxPushConstantsSize / 8 : VK_PUSH_ARGS;
    gpu->max_allocation = p->v11.maxMemoryAllocationSize;
    if (p->buffers.maxBufferSize && p->buffers.maxBufferSize < gpu->max_allocation)
        gpu->max_allocation = p->buffers.maxBufferSize;
    if (gpu->info.memory_bytes < gpu->max_allocation)
        gpu->max_allocation = gpu->info.memory_bytes;
    gpu->max_allocation &= ~(uint64_t)255;
    c->max_allocation = gpu->max_allocation;
    c->units = units_of(gpu, p);
    c->barrier_is_slow = gpu->info.kind == FX_DEVICE_SOFTWARE;
    c->has_timestamps = gpu->timestamp_bits > 0;
    gpu->floats = (VkPhysicalDeviceFloatControlsProperties){
        .denormBehaviorIndependence = p->v12.denormBehaviorIndependence,
        .roundingModeIndependence = p->v12.roundingModeIndependence,
        .shaderSignedZeroInfNanPreserveFloat16 = p->v12.shaderSignedZeroInfNanPreserveFloat16,
        .shaderSignedZeroInfNanPreserveFloat32 = p->v12.shaderSignedZeroInfNanPreserveFloat32,
        .shaderSignedZeroInfNanPreserveFloat64 = p->v12.shaderSignedZeroInfNanPreserveFloat64,
        .shaderDenormPreserveFloat16 = p->v12.shaderDenormPreserveFloat16,
        .shaderDenormPreserveFloat32 = p->v12.shaderDenormPreserveFloat32,
        .shaderDenormPreserveFloat64 = p->v12.shaderDenormPreserveFloat64,
        .shaderRoundingModeRTEFloat16 = p->v12.shaderRoundingModeRTEFloat16,
        .shaderRoundingModeRTEFloat32 = p->v12.shaderRoundingModeRTEFloat32,
        .shaderRoundingModeRTEFloat64 = p->v12.shaderRoundingModeRTEFloat64,
    };
}

/* The first thing that is missing, or NULL. */
static const char *missing(const vk_gpu *gpu, const features *f) {
    if (!f->v12.bufferDeviceAddress)
        return "the driver lacks bufferDeviceAddress; update the driver";
    if (!f->v12.timelineSemaphore)
        return "the driver lacks timelineSemaphore; update the driver";
    if (gpu->compute_family == UINT32_MAX)
        return "the device has no queue for compute";
    return NULL;
}

void fx_vk_probe(const vk_instance *in, VkPhysicalDevice handle, vk_gpu *gpu) {
    extensions e = {0};
    features f;
    properties p;
    (void)in;
    memset(gpu, 0, sizeof *gpu);
    gpu->handle = handle;
    vkGetPhysicalDeviceProperties(handle, &gpu->props);
    vkGetPhysicalDeviceMemoryProperties(handle, &gpu->memory);
    gpu->api = gpu->props.apiVersion < VK_API_VERSION_1_3 ? gpu->props.apiVersion : VK_API_VERSION_1_3;
    fx_device_info *info = &gpu->info;
    uint32_t version = gpu->props.driverVersion;
    snprintf(info->name, sizeof info->name, "%.127s", gpu->props.deviceName);
    snprintf(info->driver, sizeof info->driver, "version %#x", version);
    info->vendor_id = gpu->props.vendorID;
    info->device_id = gpu->props.deviceID;
    info->kind = kind_of(gpu->props.deviceType);
    info->memory_bytes = largest_heap(gpu);
    gpu->unified =
        info->kind == FX_DEVICE_SOFTWARE || info->kind == FX_DEVICE_INTEGRATED_GPU || every_heap_is_local(gpu);
    if (gpu->api < VK_API_VERSION_1_2) {
        snprintf(info->reason, sizeof info->reason, "the driver offers Vulkan %u.%u, 1.2 is needed; update the driver",
                 VK_API_VERSION_MAJOR(gpu->props.apiVersion), VK_API_VERSION_MINOR(gpu->props.apiVersion));
        return;
    }
    if (vkEnumerateDeviceExtensionProperties(handle, NULL, &e.n, NULL) == VK_SUCCESS && e.n) {
        e.all = calloc(e.n, sizeof *e.all);
        if (!e.all || vkEnumerateDeviceExtensionProperties(handle, NULL, &e.n, e.all) < VK_SUCCESS)
            e.n = 0;
    }
    gpu->memory_budget = has(&e, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    gpu->calibrated = has(&e, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
    gpu->portability_subset = has(&e, "VK_KHR_portability_subset");
    gpu->size_control_ext = gpu->api < VK_API_VERSION_1_3 && has(&e, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    query(gpu, &e, &f, &p);
    choose_queues(gpu);
    memcpy(info->uuid, p.v11.deviceUUID, sizeof info->uuid);
    snprintf(info->driver, sizeof info->driver, "%.40s %.60s (%#x)", p.v12.driverName, p.v12.driverInfo, version);
    fill_caps(gpu, &f, &p);
    const char *lack = missing(gpu, &f);
    info->features = gpu->caps.storage8 + gpu->caps.storage16 + gpu->caps.int64 + gpu->caps.f16 + gpu->caps.f64;
    info->usable = !lack;
    snprintf(info->reason, sizeof info->reason, "%s", lack ? lack : "");
    free(e.all);
}
