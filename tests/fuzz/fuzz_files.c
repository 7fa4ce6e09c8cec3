/* fuzz_files.c - inputs as files, for readers and writers that take a path.
 *
 * Read inputs live in memory (memfd), so that a fuzzer does not wear a disk. */
#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_file(const uint8_t *data, size_t size) {
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    fuzz_check(fd >= 0 && ftruncate(fd, 0) == 0);
    fuzz_check(pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

const char *fuzz_temporary(void) {
    static char path[512];
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/fornax_fuzz_%ld", dir && *dir ? dir : "/tmp", (long)getpid());
    return path;
}

bool fuzz_take(uint8_t *buf, size_t *size) {
    FILE *f = fopen(fuzz_temporary(), "rb");
    if (!f)
        return false;
    *size = fread(buf, 1, FUZZ_MAX_SIZE, f);
    fclose(f);
    unlink(fuzz_temporary());
    return *size < FUZZ_MAX_SIZE;
}
