/* fuzz_main.c - the driver of the fuzz targets: mutates inputs, guided by coverage where it is compiled in.
 *
 * usage: fuzz_NAME [-seconds N] [-runs N] [-seed N] [-hang SECONDS] [-input FILE] [FILE...]
 *
 * With files it replays them and ends. Otherwise it starts from the target's own valid inputs and
 * mutates. Before each run the input is written to FILE (default fuzz_NAME.input), so it survives
 * whatever the run does; after a clean end that file is removed. In a build with
 * -DFX_FUZZ=ON the library reports the code it passes, and inputs that reach new code join the corpus. */
#include "fuzz.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAP_SIZE (1u << 16) /* coverage buckets */
#define MAX_CORPUS 4096
#define MAX_WORDS 512

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static uint8_t seen_now[MAP_SIZE], seen_ever[MAP_SIZE];
static uintptr_t previous;
static input corpus[MAX_CORPUS], words[MAX_WORDS];
static int n_corpus, n_words;
static uint64_t rng_state = 1;
static unsigned hang_seconds = 20; /* no input of 64 KiB may take longer, sanitizers included */

/* Called by instrumented code at each basic block. Buckets are edges: this block and the one before. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    /* From a place in this program, so that a seed finds the same inputs wherever the program is loaded. */
    uintptr_t pc = (uintptr_t)__builtin_return_address(0) - (uintptr_t)&__sanitizer_cov_trace_pc;
    seen_now[(pc ^ (previous >> 1)) & (MAP_SIZE - 1)] = 1;
    previous = pc;
}

static uint64_t rng(void) { /* splitmix64 */
    uint64_t z = (rng_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(size_t n) { return n ? (size_t)(rng() % n) : 0; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static input copy_of(const uint8_t *data, size_t size) {
    input in = {malloc(size + 1), size};
    if (!in.data) {
        fprintf(stderr, "fuzz: out of memory\n");
        exit(2);
    }
    memcpy(in.data, data, size);
    return in;
}

/* Words and numbers of the seeds are a dictionary for insertion. */
static void add_words(const uint8_t *data, size_t size) {
    for (size_t i = 0; i < size && n_words < MAX_WORDS;) {
        size_t end = i;
        while (end < size && data[end] > ' ' && data[end] < 127 && !strchr("()[]{},:=\"", data[end]))
            end++;
        bool known = end - i < 2 || end - i > 40;
        for (int w = 0; w < n_words && !known; w++)
            known = words[w].size == end - i && memcmp(words[w].data, data + i, end - i) == 0;
        if (!known)
            words[n_words++] = copy_of(data + i, end - i);
        i = end + 1;
    }
}

/* Replaces `cut` bytes at `at` by `n` bytes; keeps within FUZZ_MAX_SIZE. `with` may point into buf only when
 * nothing moves before it is read: callers pass copies. */
static void replace(uint8_t *buf, size_t *size, size_t at, size_t cut, const uint8_t *with, size_t n) {
    if (*size - cut + n > FUZZ_MAX_SIZE)
        return;
    memmove(buf + at + n, buf + at + cut, *size - at - cut);
    if (n)
        memcpy(buf + at, with, n);
    *size = *size - cut + n;
}

static const char *const numbers[] = {"0",  "1",          "-1",         "7",  "8",          "9",
                                      "127", "255",        "65536",      "nan", "1e400",      "2147483647",
                                      "-0", "2147483648", "4294967296", "inf", "9223372036854775807",
                                      "-9223372036854775808", "18446744073709551616", "1e-400"};

static void mutate(uint8_t *buf, size_t *size) {
    static uint8_t scratch[FUZZ_MAX_SIZE];
    size_t n = *size, at = below(n + 1), len;
    switch (below(9)) {
    case 0: /* a bit */
        if (at < n)
            buf[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1: /* a byte */
        if (at < n)
            buf[at] = (uint8_t)rng();
        break;
    case 2: { /* a boundary value of 1, 2, 4 or 8 bytes, in either order */
        static const uint64_t bounds[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000u, 0xffffffffu,
                                          INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX, UINT64_MAX / 2, 1u << 24};
        uint64_t v = bounds[below(sizeof bounds / sizeof *bounds)];
        size_t width = (size_t)1 << below(4);
        bool big = rng() & 1;
        for (size_t i = 0; i < width && at + i < n; i++)
            buf[at + i] = (uint8_t)(v >> (8 * (big ? width - 1 - i : i)));
        break;
    }
    case 3: /* cut */
        len = below(n - at + 1);
        if (rng() & 1 && len > 8)
            len = below(8);
        replace(buf, size, at, len, NULL, 0);
        break;
    case 4: /* repeat a part, perhaps elsewhere and many times */
        len = below(n - at < 32 ? n - at + 1 : 32);
        if (len) {
            size_t times = below(8) ? 1 : below(200), to = below(n + 1);
            memcpy(scratch, buf + at, len);
            while (times--)
                replace(buf, size, to, 0, scratch, len);
        }
        break;
    case 5: /* a word */
        if (n_words) {
            const input *w = &words[below((size_t)n_words)];
            replace(buf, size, at, rng() & 1 && n - at >= w->size ? w->size : 0, w->data, w->size);
        }
        break;
    case 6: { /* another number where one is */
        size_t start = at;
        while (start < n && !(buf[start] >= '0' && buf[start] <= '9'))
            start++;
        size_t end = start;
        while (end < n && buf[end] >= '0' && buf[end] <= '9')
            end++;
        if (end > start) {
            const char *text = numbers[below(sizeof numbers / sizeof *numbers)];
            replace(buf, size, start, end - start, (const uint8_t *)text, strlen(text));
        }
        break;
    }
    case 7: { /* the tail of another input */
        const input *other = &corpus[below((size_t)n_corpus)];
        size_t from = below(other->size + 1);
        replace(buf, size, at, n - at, other->data + from, other->size - from);
        break;
    }
    default: /* a few random bytes */
        len = 1 + below(4);
        for (size_t i = 0; i < len; i++)
            scratch[i] = (uint8_t)rng();
        replace(buf, size, at, 0, scratch, len);
    }
}

static void hang(int sig) {
    (void)sig;
    static const char text[] = "fuzz: an input takes too long; it is kept\n";
    if (write(2, text, sizeof text - 1) < 0) {
    }
    abort();
}

/* Runs one input; true when it reached new code. */
static bool try_input(const uint8_t *shared, size_t size) {
    /* A copy of exact size, so that the sanitizer sees a read past the end. */
    input in = copy_of(shared, size);
    memset(seen_now, 0, sizeof seen_now);
    previous = 0;
    alarm(hang_seconds);
    fuzz_one(in.data, in.size);
    alarm(0);
    free(in.data);
    bool fresh = false;
    for (size_t i = 0; i < MAP_SIZE; i += 8) {
        uint64_t was, is;
        memcpy(&is, seen_now + i, 8);
        memcpy(&was, seen_ever + i, 8);
        if (is & ~was) {
            fresh = true, was |= is;
            memcpy(seen_ever + i, &was, 8);
        }
    }
    return fresh;
}

static int replay(const char *path) {
    static uint8_t buf[FUZZ_MAX_SIZE];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 2;
    }
    size_t n = fread(buf, 1, sizeof buf, f);
    fclose(f);
    try_input(buf, n);
    printf("%s: %zu bytes, fine\n", path, n);
    return 0;
}

int main(int argc, char **argv) {
    double seconds = 0;
    long runs = 0, done = 0;
    char path[512];
    snprintf(path, sizeof path, "%s.input", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0]);
    signal(SIGALRM, hang);
    int status = 0, files = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "-runs") == 0 && i + 1 < argc)
            runs = atol(argv[++i]);
        else if (strcmp(argv[i], "-seed") == 0 && i + 1 < argc)
            rng_state = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "-hang") == 0 && i + 1 < argc)
            hang_seconds = (unsigned)atoi(argv[++i]);
        else if (strcmp(argv[i], "-input") == 0 && i + 1 < argc)
            snprintf(path, sizeof path, "%s", argv[++i]);
        else
            files++, status |= replay(argv[i]);
    }
    if (files)
        return status;

    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0) {
        perror(path);
        return 2;
    }
    static uint8_t buf[FUZZ_MAX_SIZE];
    size_t size;
    for (int i = 0; n_corpus < MAX_CORPUS / 2 && fuzz_seed(i, buf, &size); i++) {
        corpus[n_corpus++] = copy_of(buf, size);
        add_words(buf, size);
    }
    if (!n_corpus) {
        fprintf(stderr, "fuzz: the target has no seeds\n");
        return 2;
    }
    double start = now(), end = seconds > 0 ? start + seconds : 1e300;
    int seeds = n_corpus;
    for (; (runs == 0 || done < runs) && now() < end; done++) {
        if (done < seeds) {
            size = corpus[done].size;
            memcpy(buf, corpus[done].data, size);
        } else {
            /* Half of the time from the newest inputs. */
            int newest = n_corpus > 16 && (rng() & 1) ? n_corpus - 1 - (int)below(16) : (int)below((size_t)n_corpus);
            size = corpus[newest].size;
            memcpy(buf, corpus[newest].data, size);
            for (size_t k = 1 + below(4); k > 0; k--)
                mutate(buf, &size);
        }
        if (ftruncate(fd, (off_t)size) != 0 || pwrite(fd, buf, size, 0) != (ssize_t)size) {
            perror(path);
            return 2;
        }
        if (try_input(buf, size) && done >= seeds && n_corpus < MAX_CORPUS)
            corpus[n_corpus++] = copy_of(buf, size);
    }
    close(fd);
    unlink(path);
    int reached = 0;
    for (size_t i = 0; i < MAP_SIZE; i++)
        reached += seen_ever[i];
    printf("%ld runs in %.1f s, %d seeds, %d inputs, %d edges\n", done, now() - start, seeds, n_corpus, reached);
    for (int i = 0; i < n_corpus; i++)
        free(corpus[i].data);
    for (int i = 0; i < n_words; i++)
        free(words[i].data);
    return 0;
}
