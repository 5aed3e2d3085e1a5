/*
 * The embedded back end: kernels compiled as C, work groups shared among a few threads. Work items
 * of a group run one after the other, groups in any order; results do not depend on the number of
 * threads.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pthread.h>

#include "drivers/driver.h"
#include "kernels/mr_portable.h"

enum { MAX_THREADS = 64, MAX_GRAIN = 64 };

const mr_driver *mr_driver_cpu(void);

/* One launch in progress. */
typedef struct {
    const mr_kernel *kernel;
    void *values[MR_KERNEL_MAX_ARGS];
    mr_work shape;
    size_t groups, grain;
    atomic_size_t next;
} launch_state;

typedef struct {
    pthread_mutex_t turn; /* one launch at a time has the helpers */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    pthread_t helpers[MAX_THREADS];
    unsigned num_helpers, busy;
    uint64_t round;
    launch_state *current;
    bool stop;
} cpu_device;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_groups(launch_state *l) {
    mr_work w = l->shape;
    for (;;) {
        size_t first = atomic_fetch_add(&l->next, l->grain);
        if (first >= l->groups)
            return;
        size_t last = first + l->grain < l->groups ? first + l->grain : l->groups;
        for (size_t g = first; g < last; g++) {
            size_t rest = g / w.groups[0];
            w.group[0] = (mr_u32)(g % w.groups[0]);
            w.group[1] = (mr_u32)(rest % w.groups[1]);
            w.group[2] = (mr_u32)(rest / w.groups[1]);
            l->kernel->run(l->values, &w);
        }
    }
}

static void *help(void *context) {
    cpu_device *dev = context;
    uint64_t seen = 0;
    pthread_mutex_lock(&dev->lock);
    for (;;) {
        while (!dev->stop && (dev->round == seen || !dev->current))
            pthread_cond_wait(&dev->wake, &dev->lock);
        if (dev->stop)
            break;
        seen = dev->round;
        launch_state *l = dev->current;
        dev->busy++;
        pthread_mutex_unlock(&dev->lock);
        run_groups(l);
        pthread_mutex_lock(&dev->lock);
        if (--dev->busy == 0)
            pthread_cond_signal(&dev->idle);
    }
    pthread_mutex_unlock(&dev->lock);
    return NULL;
}

static void cpu_close(void *device) {
    cpu_device *dev = device;
    pthread_mutex_lock(&dev->lock);
    dev->stop = true;
    pthread_cond_broadcast(&dev->wake);
    pthread_mutex_unlock(&dev->lock);
    for (unsigned i = 0; i < dev->num_helpers; i++)
        pthread_join(dev->helpers[i], NULL);
    pthread_cond_destroy(&dev->wake);
    pthread_cond_destroy(&dev->idle);
    pthread_mutex_destroy(&dev->lock);
    pthread_mutex_destroy(&dev->turn);
    free(dev);
}

static unsigned default_threads(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > MAX_THREADS ? MAX_THREADS : (unsigned)cores;
}

static mr_status cpu_open(const mr_drv_host *host, const char *target, const mr_drv_option *options,
                          size_t num_options, void **device, mr_drv_error *error) {
    unsigned threads = default_threads();
    (void)host;
    if (*target)
        return mr_drv_fail(error, MR_NOT_FOUND, "no CPU device '%s': the URI is cpu:", target);
    for (size_t i = 0; i < num_options; i++) {
        char *end;
        if (strcmp(options[i].key, "threads") != 0)
            return mr_drv_fail(error, MR_INVALID_ARGUMENT,
                               "unknown option '%s' (there is: threads)", options[i].key);
        unsigned long v = strtoul(options[i].value, &end, 10);
        if (*end || options[i].value[0] == '-' || v < 1 || v > MAX_THREADS)
            return mr_drv_fail(error, MR_INVALID_ARGUMENT, "option threads: '%s' is not 1..%d",
                               options[i].value, MAX_THREADS);
        threads = (unsigned)v;
    }
    cpu_device *dev = calloc(1, sizeof *dev);
    if (!dev)
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory");
    pthread_mutex_init(&dev->turn, NULL);
    pthread_mutex_init(&dev->lock, NULL);
    pthread_cond_init(&dev->wake, NULL);
    pthread_cond_init(&dev->idle, NULL);
    while (dev->num_helpers + 1 < threads &&
           !pthread_create(&dev->helpers[dev->num_helpers], NULL, help, dev))
        dev->num_helpers++;
    *device = dev;
    return MR_OK;
}

static void cpu_info(void *device, mr_device_info *info) {
    (void)device;
    *info =
        (mr_device_info){.uri = "cpu:", .available = true, .caps = MR_CAP_KERNELS, .view_align = 1};
    snprintf(info->name, sizeof info->name, "kernels compiled as C, %u cores", default_threads());
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    info->memory = pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static void cpu_list(const mr_drv_host *host, mr_drv_emit emit, void *context) {
    mr_device_info info;
    (void)host;
    cpu_info(NULL, &info);
    emit(context, &info);
}

static mr_status cpu_alloc(void *device, size_t bytes, void **mem, mr_drv_error *error) {
    size_t rounded = (bytes + 63) & ~(size_t)63;
    (void)device;
    *mem = rounded ? aligned_alloc(64, rounded) : NULL;
    return *mem ? MR_OK : mr_drv_fail(error, MR_OUT_OF_MEMORY, "no memory for %zu bytes", bytes);
}

static void cpu_free(void *device, void *mem) {
    (void)device;
    free(mem);
}

static void *cpu_host_pointer(void *device, void *mem) {
    (void)device;
    return mem;
}

static mr_status cpu_copy(void *device, void *mem, size_t offset, void *host, size_t bytes,
                          mr_sync_dir dir, mr_drv_error *error) {
    (void)device;
    (void)error;
    if (dir == MR_TO_DEVICE)
        memcpy((char *)mem + offset, host, bytes);
    else
        memcpy(host, (char *)mem + offset, bytes);
    return MR_OK;
}

static mr_status cpu_queue_open(void *device, void **queue, mr_drv_error *error) {
    (void)error;
    *queue = device;
    return MR_OK;
}

static void cpu_queue_close(void *device, void *queue) {
    (void)device;
    (void)queue;
}

static mr_status cpu_launch(void *device, void *queue, const mr_kernel *kernel,
                            const mr_drv_arg *args, const size_t global[3], const size_t local[3],
                            mr_counters *counters, mr_drv_error *error) {
    cpu_device *dev = device;
    void *pointers[MR_KERNEL_MAX_ARGS];
    union {
        int32_t i32;
        int64_t i64;
        float f32;
    } scalars[MR_KERNEL_MAX_ARGS];
    launch_state l = {.kernel = kernel, .groups = 1};
    uint64_t begin = now_ns();
    (void)queue;
    (void)error;
    for (size_t i = 0; i < kernel->num_args; i++) {
        l.values[i] = &scalars[i];
        switch (args[i].kind) {
        case MR_ARG_BUFFER:
            pointers[i] = args[i].view.mem ? (char *)args[i].view.mem + args[i].view.offset : NULL;
            l.values[i] = &pointers[i];
            break;
        case MR_ARG_I32:
        case MR_ARG_U32:
            scalars[i].i32 = args[i].u.i32;
            break;
        case MR_ARG_I64:
        case MR_ARG_U64:
            scalars[i].i64 = args[i].u.i64;
            break;
        case MR_ARG_F32:
            scalars[i].f32 = args[i].u.f32;
            break;
        }
    }
    l.shape.lanes = (mr_u32)local[0];
    for (int d = 0; d < 3; d++) {
        l.shape.groups[d] = (mr_u32)(global[d] / local[d]);
        l.groups *= l.shape.groups[d];
    }
    /* A few grains a thread: threads stay busy to the end and rarely meet at the counter. */
    l.grain = l.groups / (8 * (dev->num_helpers + 1)) + 1;
    if (l.grain > MAX_GRAIN)
        l.grain = MAX_GRAIN;
    if (dev->num_helpers == 0 || l.groups == 1) {
        run_groups(&l);
    } else {
        pthread_mutex_lock(&dev->turn);
        pthread_mutex_lock(&dev->lock);
        dev->current = &l;
        dev->round++;
        pthread_cond_broadcast(&dev->wake);
        pthread_mutex_unlock(&dev->lock);
        run_groups(&l);
        pthread_mutex_lock(&dev->lock);
        dev->current = NULL; /* who has not woken up yet finds nothing to do */
        while (dev->busy)
            pthread_cond_wait(&dev->idle, &dev->lock);
        pthread_mutex_unlock(&dev->lock);
        pthread_mutex_unlock(&dev->turn);
    }
    counters->host_ns += now_ns() - begin;
    return MR_OK;
}

static mr_status cpu_finish(void *device, void *queue, mr_drv_error *error) {
    (void)device;
    (void)queue;
    (void)error;
    return MR_OK;
}

const mr_driver *mr_driver_cpu(void) {
    static const mr_driver driver = {
        .abi = MR_DRIVER_ABI,
        .scheme = "cpu",
        .list = cpu_list,
        .open = cpu_open,
        .close = cpu_close,
        .info = cpu_info,
        .alloc = cpu_alloc,
        .free = cpu_free,
        .host_pointer = cpu_host_pointer,
        .copy = cpu_copy,
        .queue_open = cpu_queue_open,
        .queue_close = cpu_queue_close,
        .launch = cpu_launch,
        .finish = cpu_finish,
    };
    return &driver;
}
