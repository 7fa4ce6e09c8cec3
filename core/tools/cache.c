/* cache.c - `fornax cache`: where compiled kernels are kept, how much, and clearing them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/runtime/runtime.h"
#include "core/tools/tool.h"

typedef struct totals {
    long long files, bytes;
    int failed;
} totals;

/* Counts the files below a folder, one level of folders deep as backends make them; removes them when asked. */
static void walk(const char *path, int depth, bool clear, totals *t) {
    DIR *dir = opendir(path);
    struct dirent *e;
    while (dir && (e = readdir(dir))) {
        char *full = NULL;
        struct stat s;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        if (asprintf(&full, "%s/%s", path, e->d_name) < 0)
            break;
        if (lstat(full, &s)) {
            t->failed += errno != ENOENT; /* another process may have removed it */
        } else if (S_ISDIR(s.st_mode) && depth) {
            walk(full, depth - 1, clear, t);
        } else if (S_ISREG(s.st_mode)) {
            t->files++;
            t->bytes += s.st_size;
            if (clear && unlink(full) && errno != ENOENT) {
                fprintf(stderr, "fornax: %s: %s\n", full, strerror(errno));
                t->failed++;
            }
        }
        free(full);
    }
    if (dir)
        closedir(dir);
}

static int run(const tool_options *o) {
    char *path = NULL;
    totals t = {0, 0, 0};
    bool clear = o->action && !strcmp(o->action, "clear");
    if (o->action && !clear) {
        fprintf(stderr, "fornax: cache: no action \"%s\"; expected none or clear\n", o->action);
        return 2;
    }
    if (fx_cache_dir(NULL, &path) != FX_OK)
        return tool_fail();
    if (path)
        walk(path, 2, clear, &t);
    if (o->json) {
        printf("{\"path\": ");
        path ? tool_json_text(stdout, path) : (void)fputs("null", stdout);
        printf(", \"files\": %lld, \"bytes\": %lld, \"cleared\": %s}\n", t.files, t.bytes, clear ? "true" : "false");
    } else if (!path) {
        printf("no cache (FORNAX_CACHE_DIR is \"none\", or there is no home folder)\n");
    } else {
        printf("%s: %lld files, %.1f MiB%s\n", path, t.files, (double)t.bytes / 1048576, clear ? ", removed" : "");
    }
    free(path);
    return t.failed > 0;
}

const tool_command tool_cache = {"cache", "shows or clears the cache of compiled kernels",
                                 "usage: fornax cache [clear] [--json]\n\nThe folder is FORNAX_CACHE_DIR, else $XDG_CACHE_HOME/fornax, else ~/.cache/fornax.",
                                 run};
