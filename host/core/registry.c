/* Which back ends there are, and loading those that live in a shared object. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/core/internal.h"
#include "host/core/kernels.h"

typedef struct {
    const char *scheme;
    const char *absent; /* what to say when the shared object is not there */
    const mr_driver *driver;
    char reason[512];
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry entries[] = {
    {"cpu", "", NULL, ""},
    {"opencl", "not built: the OpenCL headers were absent", NULL, ""},
    {"cuda", "not built: nvcc was absent", NULL, ""},
    {"sim", "not built: Verilator was absent", NULL, ""},
};
enum { NUM_ENTRIES = sizeof entries / sizeof entries[0] };

static char library_dir[PATH_MAX];
static mr_drv_host host = {&mr_kernels_builtin, library_dir};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_dir(const char *dir, const char *below, char *out) {
    char path[PATH_MAX], real[PATH_MAX];
    struct stat sb; /* the command is called millrace too, and is executable */
    if (snprintf(path, sizeof path, "%s%s", dir, below) >= (int)sizeof path ||
        !realpath(path, real) || stat(real, &sb) || !S_ISDIR(sb.st_mode))
        return false;
    snprintf(out, PATH_MAX, "%s", real);
    return true;
}

/*
 * MILLRACE_DRIVERS, or the folder millrace/ beside the library, or lib/millrace/ beside the program
 * when the library is linked into it. Found from the place of this very code, so the working
 * directory does not matter.
 */
static void find_library_dir(void) {
    const char *wanted = getenv("MILLRACE_DRIVERS");
    Dl_info info;
    char self[PATH_MAX];
    if (wanted) {
        if (snprintf(library_dir, sizeof library_dir, "%s", wanted) >= (int)sizeof library_dir)
            library_dir[0] = 0;
        return;
    }
    if (dladdr((void *)&mr_driver_get, &info) && info.dli_fname && realpath(info.dli_fname, self)) {
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = 0;
        if (is_dir(self, "/millrace", library_dir) || is_dir(self, "/lib/millrace", library_dir) ||
            is_dir(self, "/../lib/millrace", library_dir))
            return;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = 0;
        if (is_dir(self, "/lib/millrace", library_dir) ||
            is_dir(self, "/../lib/millrace", library_dir))
            return;
    }
    /* none of them is there: name one in the reasons, never the working directory */
    snprintf(library_dir, sizeof library_dir, "/usr/lib/millrace");
}

const mr_drv_host *mr_driver_host(void) {
    pthread_once(&once, find_library_dir);
    return &host;
}

/* A back end stays loaded once it was: vendor runtimes do not take unloading well. */
static void load(entry *e) {
    char path[PATH_MAX + 64];
    e->reason[0] = 0;
    snprintf(path, sizeof path, "%s/mr_driver_%s.so", mr_driver_host()->library_dir, e->scheme);
    if (access(path, F_OK)) {
        snprintf(e->reason, sizeof e->reason, "%s (no %.300s)", e->absent, path);
        return;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(e->reason, sizeof e->reason, "cannot load the back end: %.400s", dlerror());
        return;
    }
    mr_driver_entry_fn fn = (mr_driver_entry_fn)dlsym(handle, MR_DRIVER_ENTRY);
    const mr_driver *driver = fn ? fn() : NULL;
    if (!driver || driver->abi != MR_DRIVER_ABI || strcmp(driver->scheme, e->scheme) != 0) {
        if (driver)
            snprintf(e->reason, sizeof e->reason,
                     "%.300s: back end interface version %u of '%.20s', this library speaks %u",
                     path, driver->abi, driver->scheme, MR_DRIVER_ABI);
        else
            snprintf(e->reason, sizeof e->reason, "%.300s: not a Millrace back end (no %s)", path,
                     MR_DRIVER_ENTRY);
        dlclose(handle);
        return;
    }
    e->driver = driver;
}

/* The reason is copied: another thread may try to load again. */
static const mr_driver *driver_of(entry *e, char reason[512]) {
    pthread_mutex_lock(&lock);
    if (!e->driver) {
        if (e == &entries[0])
            e->driver = mr_driver_cpu();
        else
            load(e);
    }
    const mr_driver *driver = e->driver;
    memcpy(reason, e->reason, sizeof e->reason);
    pthread_mutex_unlock(&lock);
    return driver;
}

mr_status mr_driver_get(const char *scheme, const mr_driver **driver) {
    char reason[512];
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        if (strcmp(entries[i].scheme, scheme) != 0)
            continue;
        *driver = driver_of(&entries[i], reason);
        return *driver ? MR_OK : mr_fail(MR_UNAVAILABLE, "%s: %s", scheme, reason);
    }
    return mr_fail(MR_INVALID_ARGUMENT,
                   "uri: no back end is called '%s' (there are cpu, opencl, cuda and sim)", scheme);
}

/* ---- Listing ----------------------------------------------------------------------------------
 */

typedef struct {
    mr_device_info *items;
    size_t count, capacity;
    bool failed;
} listing;

static void emit(void *context, const mr_device_info *info) {
    listing *l = context;
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 8;
        mr_device_info *items = realloc(l->items, capacity * sizeof *items);
        if (!items) {
            l->failed = true;
            return;
        }
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->count++] = *info;
}

mr_status mr_devices(mr_device_info **list, size_t *count) {
    listing l = {0};
    if (!list || !count)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", list ? "count" : "list");
    for (size_t i = 0; i < NUM_ENTRIES; i++) {
        char reason[512];
        const mr_driver *driver = driver_of(&entries[i], reason);
        if (driver) {
            size_t first = l.count;
            driver->list(mr_driver_host(), emit, &l);
            for (; first < l.count; first++)
                l.items[first].caps |= mr_caps_by_kernels(driver, l.items[first].caps);
            continue;
        }
        mr_device_info info = {.view_align = 1};
        snprintf(info.uri, sizeof info.uri, "%s:", entries[i].scheme);
        memcpy(info.reason, reason, sizeof info.reason);
        emit(&l, &info);
    }
    if (l.failed) {
        free(l.items);
        return mr_fail(MR_OUT_OF_MEMORY, "mr_devices: no memory for the list");
    }
    *list = l.items;
    *count = l.count;
    return MR_OK;
}

void mr_devices_free(mr_device_info *list) { free(list); }
