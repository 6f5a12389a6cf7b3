/* Preloaded into a product's processes: the file named by WRONG_CLOCK holds the error of the wall
   clock in seconds, an int64. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *seconds;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

static void begin(void) {
    if (real_clock_gettime)
        return;
    static const int64_t none = 0;
    const char *path = getenv("WRONG_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    seconds = found == MAP_FAILED ? &none : found;
    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    begin();
    int failed = real_clock_gettime(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *(volatile const int64_t *)seconds;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    (void)zone;
    struct timespec found;
    int failed = clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *also) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (also)
        *also = found.tv_sec;
    return found.tv_sec;
}
