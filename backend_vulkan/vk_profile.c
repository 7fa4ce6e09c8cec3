/* vk_profile.c - device time: ticks to nanoseconds, and pairs of device and host instants.
 *
 * With VK_EXT_calibrated_timestamps the driver reads both clocks at once. Without it a timestamp is
 * taken on an otherwise idle queue and placed in the middle between two host readings. */
#include <time.h>

#include "backend_vulkan/vk.h"

static uint64_t host_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t fx_vk_ticks_to_ns(const fx_bdevice *d, uint64_t ticks) {
    uint32_t bits = d->gpu->timestamp_bits;
    if (bits < 64)
        ticks &= ((uint64_t)1 << bits) - 1;
    uint64_t scale = (uint64_t)((double)d->gpu->props.limits.timestampPeriod * 1048576.0 + 0.5); /* 2^-20 ns */
    return ((ticks >> 32) * scale << 12) + ((ticks & UINT32_MAX) * scale >> 20);
}

static bool both_domains(fx_bdevice *d) {
    VkTimeDomainEXT domains[16];
    uint32_t n = sizeof domains / sizeof *domains;
    if (vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(d->gpu->handle, &n, domains) < VK_SUCCESS)
        return false;
    bool device = false, host = false;
    for (uint32_t i = 0; i < n; i++) {
        device |= domains[i] == VK_TIME_DOMAIN_DEVICE_EXT;
        host |= domains[i] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
    }
    return device && host;
}

static fx_status bracketed(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns) {
    fx_cmds *c;
    int n = 0;
    uint64_t ticket, before = 0, after = 0;
    FX_TRY(fx_vk_cmds_begin(d, &c));
    fx_status st = fx_vk_cmds_timestamp(c);
    if (st == FX_OK)
        st = fx_vk_cmds_end(c);
    if (st == FX_OK)
        st = fx_vk_wait_idle(d);
    if (st == FX_OK) {
        before = host_now();
        st = fx_vk_submit(d, 1, &c, &ticket);
    }
    if (st == FX_OK)
        st = fx_vk_wait(d, ticket, UINT64_MAX, NULL);
    after = host_now();
    if (st == FX_OK)
        st = fx_vk_cmds_read_timestamps(c, device_ns, 1, &n);
    *host_ns = before + (after - before) / 2;
    fx_vk_cmds_destroy(c);
    return st;
}

fx_status fx_vk_clock_pair(fx_bdevice *d, uint64_t *device_ns, uint64_t *host_ns) {
    FX_TRY(fx_vk_alive(d));
    if (!d->gpu->caps.has_timestamps)
        return fx_backend_fail(FX_UNSUPPORTED, "timestamps: device \"%s\" has none on its compute queue",
                               d->gpu->info.name);
    if (!d->gpu->calibrated || !both_domains(d))
        return bracketed(d, device_ns, host_ns);
    VkCalibratedTimestampInfoEXT infos[2] = {
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, .timeDomain = VK_TIME_DOMAIN_DEVICE_EXT},
        {.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT, .timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT}};
    uint64_t stamps[2], deviation;
    FX_TRY(fx_vk_check(d, d->vk.vkGetCalibratedTimestampsEXT(d->handle, 2, infos, stamps, &deviation),
                       "reading both clocks"));
    *device_ns = fx_vk_ticks_to_ns(d, stamps[0]);
    *host_ns = stamps[1];
    return FX_OK;
}
