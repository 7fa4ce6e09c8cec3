/* vk_instance.c - opens libvulkan, makes the process's one VkInstance, lists its devices.
 *
 * The instance is shared by all devices, is made at the first need and stays until the process ends:
 * drivers do not all survive being unloaded. A failed attempt leaves nothing behind and is retried by
 * the next call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_vulkan/vk.h"
#include "core/base/env.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vk_instance instance;
static bool made;
static atomic_int messages;
static _Thread_local char why[256];

int fx_vulkan_validation_messages(void) {
    return atomic_load(&messages);
}

const char *fx_vk_result_name(VkResult r) {
    static const struct {
        VkResult r;
        const char *name;
    } names[] = {
#define ROW(x) {x, #x},
        ROW(VK_SUCCESS) ROW(VK_NOT_READY) ROW(VK_TIMEOUT) ROW(VK_INCOMPLETE) ROW(VK_ERROR_OUT_OF_HOST_MEMORY)
            ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY) ROW(VK_ERROR_INITIALIZATION_FAILED) ROW(VK_ERROR_DEVICE_LOST)
                ROW(VK_ERROR_MEMORY_MAP_FAILED) ROW(VK_ERROR_LAYER_NOT_PRESENT) ROW(VK_ERROR_EXTENSION_NOT_PRESENT)
                    ROW(VK_ERROR_FEATURE_NOT_PRESENT) ROW(VK_ERROR_INCOMPATIBLE_DRIVER) ROW(VK_ERROR_TOO_MANY_OBJECTS)
                        ROW(VK_ERROR_INVALID_EXTERNAL_HANDLE) ROW(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
                            ROW(VK_ERROR_UNKNOWN)
#undef ROW
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].r == r)
            return names[i].name;
    return "an unknown VkResult";
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT types,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    (void)user;
    if (types == VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT)
        return VK_FALSE; /* the loader's remarks about drivers and layers */
    atomic_fetch_add(&messages, 1);
    fprintf(stderr, "fornax: validation %s: %s\n",
            severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT ? "error" : "warning", data->pMessage);
    return VK_FALSE;
}

static bool has_layer(const char *name) {
    uint32_t n = 0;
    vkEnumerateInstanceLayerProperties(&n, NULL);
    VkLayerProperties *all = calloc(n ? n : 1, sizeof *all);
    bool found = false;
    if (all && vkEnumerateInstanceLayerProperties(&n, all) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            found |= strcmp(all[i].layerName, name) == 0;
    free(all);
    return found;
}

static bool has_extension(const char *layer, const char *name) {
    uint32_t n = 0;
    vkEnumerateInstanceExtensionProperties(layer, &n, NULL);
    VkExtensionProperties *all = calloc(n ? n : 1, sizeof *all);
    bool found = false;
    if (all && vkEnumerateInstanceExtensionProperties(layer, &n, all) >= VK_SUCCESS)
        for (uint32_t i = 0; i < n; i++)
            found |= strcmp(all[i].extensionName, name) == 0;
    free(all);
    return found;
}

static fx_status create(vk_instance *in) {
    static const char validation[] = "VK_LAYER_KHRONOS_validation";
    in->settings = (vk_settings){fx_env_flag(FX_ENV_validate), fx_env_flag(FX_ENV_debug)};
    if (volkInitialize() != VK_SUCCESS)
        return fx_backend_fail(FX_NOT_FOUND, "Vulkan: the loader libvulkan.so.1 was not found; "
                                             "install the package libvulkan1 and a driver such as mesa-vulkan-drivers");
    if (!vkEnumerateInstanceVersion || volkGetInstanceVersion() < VK_API_VERSION_1_2)
        return fx_backend_fail(FX_NOT_FOUND, "Vulkan: the loader is older than version 1.2; "
                                             "install a newer package libvulkan1");
    const char *layers[1], *extensions[2];
    uint32_t n_layers = 0, n_extensions = 0;
    VkInstanceCreateFlags flags = 0;
    if (in->settings.validate) {
        if (!has_layer(validation))
            return fx_backend_fail(FX_UNSUPPORTED,
                                   "Vulkan: FORNAX_VALIDATE asks for the layer %s, which is absent; "
                                   "install the package vulkan-validationlayers or unset FORNAX_VALIDATE",
                                   validation);
        layers[n_layers++] = validation;
    }
    in->names = in->settings.validate || in->settings.debug;
    if (in->names && (has_extension(NULL, VK_EXT_DEBUG_UTILS_EXTENSION_NAME) ||
                      (n_layers && has_extension(validation, VK_EXT_DEBUG_UTILS_EXTENSION_NAME))))
        extensions[n_extensions++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    else
        in->names = false;
    if (has_extension(NULL, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        extensions[n_extensions++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
        flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                             .pEngineName = "fornax",
                             .engineVersion = VK_MAKE_VERSION(FX_VERSION_MAJOR, FX_VERSION_MINOR, FX_VERSION_PATCH),
                             .apiVersion = volkGetInstanceVersion() >= VK_API_VERSION_1_3 ? VK_API_VERSION_1_3
                                                                                          : VK_API_VERSION_1_2};
    VkDebugUtilsMessengerCreateInfoEXT messenger = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                                    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                                                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                                    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                                                                   VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                                                   VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                                                    .pfnUserCallback = on_message};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pNext = in->settings.validate && in->names ? &messenger : NULL,
                                 .flags = flags,
                                 .pApplicationInfo = &app,
                                 .enabledLayerCount = n_layers,
                                 .ppEnabledLayerNames = layers,
                                 .enabledExtensionCount = n_extensions,
                                 .ppEnabledExtensionNames = extensions};
    VkResult r = vkCreateInstance(&info, NULL, &in->handle);
    if (r != VK_SUCCESS)
        return fx_backend_fail(FX_NOT_FOUND,
                               "Vulkan: no driver could be opened (vkCreateInstance: %s); "
                               "install a driver such as the package mesa-vulkan-drivers",
                               fx_vk_result_name(r));
    volkLoadInstanceOnly(in->handle);
    if (info.pNext) {
        VkDebugUtilsMessengerEXT unused;
        vkCreateDebugUtilsMessengerEXT(in->handle, &messenger, NULL, &unused);
    }
    return FX_OK;
}

static fx_status list_devices(vk_instance *in) {
    uint32_t n = 0;
    VkResult r = vkEnumeratePhysicalDevices(in->handle, &n, NULL);
    if (r != VK_SUCCESS || n == 0)
        return fx_backend_fail(FX_NOT_FOUND, "Vulkan: the loader works but no driver offers a device; "
                                             "install a driver such as the package mesa-vulkan-drivers");
    VkPhysicalDevice *handles = calloc(n, sizeof *handles);
    in->gpus = calloc(n, sizeof *in->gpus);
    if (!handles || !in->gpus) {
        free(handles);
        return fx_backend_fail(FX_OUT_OF_MEMORY, "host memory: no room to list Vulkan devices");
    }
    r = vkEnumeratePhysicalDevices(in->handle, &n, handles);
    if (r >= VK_SUCCESS) {
        in->n_gpus = (int)n;
        for (uint32_t i = 0; i < n; i++)
            fx_vk_probe(in, handles[i], &in->gpus[i]);
    }
    free(handles);
    return r >= VK_SUCCESS ? FX_OK
                           : fx_backend_fail(FX_NOT_FOUND, "Vulkan: listing devices failed: %s", fx_vk_result_name(r));
}

fx_status fx_vk_instance_get(vk_instance **out, const char **reason) {
    fx_status st = FX_OK;
    pthread_mutex_lock(&lock);
    if (!made) {
        vk_instance fresh = {0};
        st = create(&fresh);
        if (st == FX_OK)
            st = list_devices(&fresh);
        if (st == FX_OK) {
            instance = fresh;
            made = true;
        } else {
            free(fresh.gpus);
            if (fresh.handle)
                vkDestroyInstance(fresh.handle, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
    if (st != FX_OK && reason) {
        snprintf(why, sizeof why, "%s", fx_last_error());
        *reason = why;
    }
    *out = &instance;
    return st;
}
