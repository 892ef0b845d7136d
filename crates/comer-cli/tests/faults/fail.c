// Makes one write, sync or rename of a program fail, or all from one on. Preloaded by the tests of faults.
//
// COMER_FAULT_KIND: write, sync or rename. COMER_FAULT_AT: the number of the call that fails, from 1. COMER_FAULT_ON: if
// set, those after it fail as well. COMER_FAULT_COUNT: a file that gets the number of calls.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static int fails(const char *kind) {
    const char *wanted = getenv("COMER_FAULT_KIND"), *at = getenv("COMER_FAULT_AT");
    if (!wanted || strcmp(wanted, kind) != 0) return 0;
    long number = ++calls, first = at ? atol(at) : 0;
    return first > 0 && (number == first || (number > first && getenv("COMER_FAULT_ON")));
}

// Output files only: no terminal, pipe or socket.
static int is_file(int descriptor) {
    struct stat status;
    return descriptor > 2 && fstat(descriptor, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    if (is_file(descriptor) && fails("write")) {
        // A disk that fills up takes the first part.
        real(descriptor, bytes, count / 2);
        errno = ENOSPC;
        return -1;
    }
    return real(descriptor, bytes, count);
}

static int sync_or_fail(int descriptor, const char *name) {
    if (is_file(descriptor) && fails("sync")) {
        errno = EIO;
        return -1;
    }
    int (*real)(int) = dlsym(RTLD_NEXT, name);
    return real(descriptor);
}

int fsync(int descriptor) { return sync_or_fail(descriptor, "fsync"); }

int fdatasync(int descriptor) { return sync_or_fail(descriptor, "fdatasync"); }

int rename(const char *from, const char *to) {
    if (fails("rename")) {
        errno = EIO;
        return -1;
    }
    int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("COMER_FAULT_COUNT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    fprintf(file, "%ld", (long)calls);
    fclose(file);
}
