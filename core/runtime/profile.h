/* profile.h - FORNAX_TRACE: one file in Chrome's trace format for all devices and host threads, to be opened in
 * Perfetto or chrome://tracing. While tracing, kernels run one after another and every run is waited for, so that
 * each has a time of its own. Thread-safe. */
#ifndef FX_RUNTIME_PROFILE_H
#define FX_RUNTIME_PROFILE_H

#include "fornax/base.h"

struct fx_device;

bool fx_profile_on(void);
/* What was traced so far is in the file, should the process end by a signal. */
void fx_profile_flush(void);
uint64_t fx_profile_now(void); /* ns, CLOCK_MONOTONIC */
/* Something the calling thread did from `start` until now. */
void fx_profile_host(const char *name, uint64_t start);
/* Steps of a device: n + 1 instants of its clock, in ns, between which the named steps ran. */
void fx_profile_device(struct fx_device *d, int n, const char *const *names, const uint64_t *instants);

#endif
