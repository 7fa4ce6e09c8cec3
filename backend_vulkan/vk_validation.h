/* vk_validation.h - for tests: has the validation layer said anything?
 *
 * Tests run with FORNAX_VALIDATE=1; one that used a Vulkan device fails when this is not 0 at its end.
 * Needs no Vulkan header. */
#ifndef FX_BACKEND_VULKAN_VK_VALIDATION_H
#define FX_BACKEND_VULKAN_VK_VALIDATION_H

/* Warnings and errors of the validation layer so far in this process; 0 without FORNAX_VALIDATE=1. */
int fx_vulkan_validation_messages(void);

#endif
