/* env.c - `fornax env`: the environment variables, their values, and their documentation page. */
#include <string.h>

#include "core/base/env.h"
#include "core/tools/tool.h"

static int markdown(void) {
    puts("# Environment variables\n");
    puts("Made by `fornax env markdown` out of `core/base/env.def`.\n");
    puts("| variable | default | meaning |\n|---|---|---|");
    for (int i = 0; i < FX_ENV_COUNT; i++) {
        const fx_env_info *e = fx_env_get((fx_env)i);
        printf("| `%s` | %s | %s |\n", e->name, *e->standard ? e->standard : "unset", e->doc);
    }
    puts("\nFlags are 0 or 1. Numbers are decimal with a point, whatever the locale. Anything else is an error of `fx_init` that\n"
         "names the variable.");
    return 0;
}

static int run(const tool_options *o) {
    if (o->action && !strcmp(o->action, "markdown"))
        return markdown();
    if (o->action) {
        fprintf(stderr, "fornax: env: no action \"%s\"; expected none or markdown\n", o->action);
        return 2;
    }
    if (o->json)
        puts("[");
    for (int i = 0; i < FX_ENV_COUNT; i++) {
        const fx_env_info *e = fx_env_get((fx_env)i);
        const char *v = fx_env_text((fx_env)i);
        if (o->json) {
            printf("  {\"name\": \"%s\", \"value\": ", e->name);
            v ? tool_json_text(stdout, v) : (void)fputs("null", stdout);
            printf(", \"default\": ");
            tool_json_text(stdout, e->standard);
            printf(", \"doc\": ");
            tool_json_text(stdout, e->doc);
            printf("}%s\n", i + 1 < FX_ENV_COUNT ? "," : "");
        } else {
            printf("%-24s %-14s %s\n", e->name, v ? v : *e->standard ? e->standard : "(unset)", e->doc);
        }
    }
    if (o->json)
        puts("]");
    return fx_env_check() == FX_OK ? 0 : tool_fail();
}

const tool_command tool_env = {"env", "lists the environment variables and their values",
                               "usage: fornax env [markdown] [--json]\n\nmarkdown: the page docs/environment.md. Exit status 1 when a variable is malformed.",
                               run};
