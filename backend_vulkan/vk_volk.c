/* vk_volk.c - the one place where volk's implementation is compiled: it opens libvulkan at run time. */
#define VOLK_IMPLEMENTATION
#include <volk.h>
