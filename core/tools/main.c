/* main.c - the `fornax` program: a table of commands, their common options, help. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/env.h"
#include "core/tools/tool.h"

static const tool_command *const commands[] = {&tool_devices, &tool_env, &tool_selftest, &tool_bench, &tool_cache};
enum { N_COMMAND = sizeof commands / sizeof *commands };

int tool_fail(void) {
    fprintf(stderr, "fornax: %s\n", fx_last_error());
    return 1;
}

double tool_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void tool_json_text(FILE *f, const char *s) {
    fputc('"', f);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, f);
    fputc('"', f);
}

fx_status tool_open(const tool_options *o, fx_context **cx, fx_device **d) {
    FX_TRY(fx_init(NULL, cx));
    if (o->device)
        return fx_device_find(*cx, o->device, d);
    *d = fx_default_device(*cx);
    return *d ? FX_OK : fx_device_find(*cx, "any", d);
}

static void help(void) {
    puts("usage: fornax COMMAND [options]\n");
    for (int i = 0; i < N_COMMAND; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    puts("\nOptions of every command: --json, --device URI, --help. fornax COMMAND --help says more.");
    printf("Version %s.\n", fx_version());
}

static int misuse(const char *what, const char *text, const char *remedy) {
    fprintf(stderr, "fornax: %s \"%s\"; %s\n", what, text, remedy);
    return 2;
}

/* A positive whole number within int32, or -1. */
static int64_t size_of(const char *text) {
    if (!*text || strlen(text) > 9 || strspn(text, "0123456789") != strlen(text))
        return -1;
    return atoll(text) > 0 ? atoll(text) : -1;
}

static int parse(const tool_command *c, int argc, char **argv, tool_options *o) {
    const struct {
        const char *name;
        int64_t *target;
    } sizes[] = {{"--m", &o->m}, {"--n", &o->n}, {"--k", &o->k}, {"--batch", &o->batch}};
    for (int i = 2; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        size_t s = 0;
        while (s < sizeof sizes / sizeof *sizes && strcmp(a, sizes[s].name))
            s++;
        if (!strcmp(a, "--json")) {
            o->json = true;
        } else if (!strcmp(a, "--device") && v) {
            o->device = argv[++i];
        } else if (!strcmp(a, "--seconds") && v) {
            if (!fx_parse_number(v, &o->seconds) || !(o->seconds > 0 && o->seconds <= 3600))
                return misuse("--seconds: expected a number above 0 to 3600; got", v, "try 0.5");
            i++;
        } else if (s < sizeof sizes / sizeof *sizes && v) {
            if ((*sizes[s].target = size_of(v)) < 0)
                return misuse("a size: expected a whole number from 1 to 999999999; got", v, c->help);
            i++;
        } else if (*a != '-' && !o->action) {
            o->action = a;
        } else {
            return misuse("not understood:", a, "fornax COMMAND --help lists what is");
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    tool_options o = {.seconds = 0.5};
    if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help();
        return argc < 2 ? 2 : 0;
    }
    if (!strcmp(argv[1], "--version")) {
        puts(fx_version());
        return 0;
    }
    int c = 0;
    while (c < N_COMMAND && strcmp(argv[1], commands[c]->name))
        c++;
    if (c == N_COMMAND)
        return misuse("no command", argv[1], "fornax --help lists them");
    for (int i = 2; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            printf("%s\n\n%s\n", commands[c]->summary, commands[c]->help);
            return 0;
        }
    int bad = parse(commands[c], argc, argv, &o);
    if (bad)
        return bad;
    int status = commands[c]->run(&o);
    return fflush(stdout) || ferror(stdout) ? 1 : status;
}
