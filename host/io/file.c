/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* asprintf */
#include "host/io/file.h"

#include "host/core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

mr_status mr_file_read(const char *path, size_t limit, void **data, size_t *size) {
    *data = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mr_fail(MR_IO_ERROR, "%s: cannot open: %s", path, strerror(errno));
    struct stat sb;
    mr_status s = MR_OK;
    if (fstat(fd, &sb) != 0)
        s = mr_fail(MR_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
    else if (!S_ISREG(sb.st_mode))
        s = mr_fail(MR_IO_ERROR, "%s: not a regular file", path);
    else if ((uintmax_t)sb.st_size > limit)
        s = mr_fail(MR_BAD_FORMAT, "%s: %jd bytes, above the limit of %zu", path,
                    (intmax_t)sb.st_size, limit);
    uint8_t *p = NULL;
    size_t want = s == MR_OK ? (size_t)sb.st_size : 0, got = 0;
    if (s == MR_OK && !(p = malloc(want + 1)))
        s = mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory for %zu bytes", path, want);
    while (s == MR_OK && got < want) {
        ssize_t n = read(fd, p + got, want - got);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0)
            s = mr_fail(MR_IO_ERROR, "%s: shrank while it was read", path);
        else if (errno != EINTR)
            s = mr_fail(MR_IO_ERROR, "%s: cannot read: %s", path, strerror(errno));
    }
    close(fd);
    if (s != MR_OK) {
        free(p);
        return s;
    }
    p[want] = 0;
    *data = p;
    *size = want;
    return MR_OK;
}

static void forget(mr_file *f) {
    free(f->path);
    free(f->temp);
    memset(f, 0, sizeof *f);
}

/* A new file beside PATH; its name goes to *temp, owned. */
static int open_temp(const char *path, char **temp) {
    int fd = -1;
    char *name = NULL;
    for (unsigned i = 0; i < 100 && fd < 0; i++) {
        free(name);
        if (asprintf(&name, "%s.%ld.%u.tmp", path, (long)getpid(), i) < 0) {
            errno = ENOMEM;
            return -1;
        }
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    *temp = name;
    return fd;
}

mr_status mr_file_create(const char *path, mr_file *out) {
    memset(out, 0, sizeof *out);
    struct stat sb;
    int exists = stat(path, &sb) == 0;
    if (exists && S_ISDIR(sb.st_mode))
        return mr_fail(MR_IO_ERROR, "%s: cannot write: it is a folder", path);
    /* replacing a link's target, not the link */
    out->path = exists ? realpath(path, NULL) : strdup(path);
    if (!out->path)
        return mr_fail(MR_IO_ERROR, "%s: cannot write: %s", path, strerror(errno));
    int fd = -1;
    if (exists && !S_ISREG(sb.st_mode)) {
        fd = open(out->path, O_WRONLY | O_CLOEXEC);
    } else if (exists && access(out->path, W_OK) != 0) {
        fd = -1; /* a file its owner made read-only is not replaced behind his back */
    } else {
        char *temp = NULL;
        fd = open_temp(out->path, &temp);
        out->temp = temp;
    }
    int e = errno;
    if (fd >= 0 && !(out->f = fdopen(fd, "wb"))) {
        e = errno;
        close(fd);
        if (out->temp)
            unlink(out->temp);
    }
    if (!out->f) {
        mr_status s = mr_fail(MR_IO_ERROR, "%s: cannot write: %s", path, strerror(e));
        forget(out);
        return s;
    }
    return MR_OK;
}

mr_status mr_file_write(mr_file *f, const void *data, size_t size) {
    if (size && fwrite(data, 1, size, f->f) != size)
        return mr_fail(MR_IO_ERROR, "%s: cannot write: %s", f->path, strerror(errno));
    return MR_OK;
}

/* Whether all of it is where it was written to. */
static bool settled(mr_file *f) {
    return fflush(f->f) == 0 && (!f->temp || fsync(fileno(f->f)) == 0);
}

mr_status mr_file_flush(mr_file *f) {
    if (!settled(f))
        return mr_fail(MR_IO_ERROR, "%s: cannot write: %s", f->path, strerror(errno));
    return MR_OK;
}

mr_status mr_file_commit(mr_file *f) {
    bool ok = settled(f);
    int e = errno;
    if (fclose(f->f) != 0 && ok) {
        ok = false;
        e = errno;
    }
    f->f = NULL;
    if (ok && f->temp && rename(f->temp, f->path) != 0) {
        ok = false;
        e = errno;
    }
    mr_status s = MR_OK;
    if (!ok) {
        s = mr_fail(MR_IO_ERROR, "%s: cannot write: %s", f->path, strerror(e));
        if (f->temp)
            unlink(f->temp);
    }
    forget(f);
    return s;
}

void mr_file_abandon(mr_file *f) {
    if (f->f)
        fclose(f->f);
    if (f->temp)
        unlink(f->temp);
    forget(f);
}

mr_status mr_file_check_writable(const char *path) {
    mr_file f;
    mr_status s = mr_file_create(path, &f);
    if (s == MR_OK)
        mr_file_abandon(&f);
    return s;
}
