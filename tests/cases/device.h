/* device.h - the usable devices of this process as executors of shared cases and random programs.
 *
 * Each device that a context lists gives two: fused and one kernel a node. They compile, upload, run and read
 * back through the public interface, without a disk cache. A graph that the device lacks a feature for gives
 * FX_UNSUPPORTED; nothing else is forgiven. An executor is used by one thread at a time, several executors by
 * several. */
#ifndef FX_TESTS_DEVICE_H
#define FX_TESTS_DEVICE_H

#include "fornax/device.h"
#include "tests/cases/case.h"

typedef struct device_self {
    fx_device *device;
    bool no_fusion;
} device_self;

enum { DEVICE_EXECUTORS = 32 };

typedef struct device_set {
    fx_context *cx;
    int n; /* executors: two a device */
    executor executors[DEVICE_EXECUTORS];
    device_self selves[DEVICE_EXECUTORS];
    char names[DEVICE_EXECUTORS][200];
    int skipped[DEVICE_EXECUTORS]; /* graphs that the case functions found unsupported */
} device_set;

/* Makes a context and opens every usable Vulkan device. With `reference`, that device comes last. Prints what
 * there is; n is 0 when there is nothing. Fails the process's test run (returns false) when fx_init fails. */
bool device_set_open(device_set *s, bool reference);
void device_set_close(device_set *s);

/* A driver whose name or device name contains this: "llvmpipe", "SwiftShader". */
bool device_is(const fx_device *d, const char *word);

/* fx_status as of fx_graph_eval; `self` is a device_self. */
fx_status device_run(void *self, const fx_graph *g, const void *const *args, void *const *results);
/* The same, with arguments donated. */
fx_status device_run_donating(void *self, const fx_graph *g, int n_donate, const int *donate, const void *const *args,
                              void *const *results);
/* As device_run, compiled once and run `times` times in a row on the same arrays; the last results are read. */
fx_status device_run_times(void *self, const fx_graph *g, const void *const *args, void *const *results, int times);

/* Messages of the validation layer in this process; 0 in builds without the Vulkan backend. */
int device_validation_messages(void);

#endif
