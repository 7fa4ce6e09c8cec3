/* devices.c - `fornax devices`: what programs can run on. */
#include <string.h>

#include "core/runtime/runtime.h"
#include "core/tools/tool.h"

static const char *yes(bool b) { return b ? "true" : "false"; }

static void as_json(fx_device *d, bool standard, bool last) {
    const fx_device_caps *c = &d->caps;
    printf("  {\"uri\": \"%s\", \"name\": ", d->uri);
    tool_json_text(stdout, d->info.name);
    printf(", \"driver\": ");
    tool_json_text(stdout, d->info.driver);
    printf(", \"kind\": \"%s\", \"default\": %s, \"usable\": %s", fx_device_kind_name(d), yes(standard), yes(d->info.usable));
    if (!d->info.usable) {
        printf(", \"reason\": ");
        tool_json_text(stdout, d->info.reason);
    }
    if (d->backend)
        printf(", \"memory_bytes\": %llu", (unsigned long long)d->info.memory_bytes);
    if (d->open)
        printf(", \"subgroup\": %u, \"workgroup\": %u, \"shared_bytes\": %u, \"max_allocation\": %llu, \"f16\": %s, \"f64\": %s, "
               "\"int64\": %s, \"storage8\": %s, \"storage16\": %s",
               c->subgroup_size, c->max_invocations, c->shared_bytes, (unsigned long long)c->max_allocation, yes(c->f16), yes(c->f64),
               yes(c->int64), yes(c->storage8), yes(c->storage16));
    printf("}%s\n", last ? "" : ",");
}

static void as_text(fx_device *d, bool standard) {
    printf("%-12s %s (%s)%s\n", d->uri, d->info.name, fx_device_kind_name(d), standard ? ", default" : "");
    if (!d->info.usable) {
        printf("             not usable: %s\n", d->info.reason);
        return;
    }
    if (!d->backend)
        return;
    printf("             driver %s, %.1f GiB\n", d->info.driver, (double)d->info.memory_bytes / 1073741824);
    if (!d->open)
        return;
    printf("             subgroup %u, workgroup %u, shared memory %u KiB, largest allocation %.1f GiB\n", d->caps.subgroup_size,
           d->caps.max_invocations, d->caps.shared_bytes / 1024, (double)d->caps.max_allocation / 1073741824);
    printf("             types:");
    for (int t = 0; t < FX_DTYPE_COUNT; t++)
        if (fx_device_supports(d, (fx_dtype)t) == FX_OK)
            printf(" %s", fx_dtype_name((fx_dtype)t));
    printf("\n");
}

static int run(const tool_options *o) {
    fx_context *cx;
    if (fx_init(NULL, &cx) != FX_OK)
        return tool_fail();
    if (o->json)
        printf("[\n");
    int n = fx_device_count(cx), status = 0;
    for (int i = 0; i < n; i++) {
        fx_device *d = fx_device_at(cx, i);
        bool standard = d == fx_default_device(cx);
        if (d->info.usable && fx_device_open(d) != FX_OK)
            status = tool_fail();
        if (o->json)
            as_json(d, standard, i + 1 == n);
        else
            as_text(d, standard);
    }
    if (o->json)
        printf("]\n");
    else if (cx->missing)
        printf("not found: %s\n", cx->missing);
    fx_shutdown(cx);
    return status;
}

const tool_command tool_devices = {"devices", "lists devices, their drivers and what they can do",
                                   "usage: fornax devices [--json]\n\nFORNAX_VISIBLE_DEVICES hides devices; FORNAX_DEVICE names the default one.",
                                   run};
