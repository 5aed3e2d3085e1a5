/*
 * driver.h - what a back end is: one table of functions.
 *
 * The core checks arguments, owns handles, threads and events, and calls a back end only with what
 * has been checked. A back end that lives in a shared object exports  const mr_driver
 * *mr_driver_entry(void);  it needs no symbol of the core: all it may use comes with mr_drv_host.
 *
 * Calls on different queues of a device may come from different threads at once; calls on one queue
 * never do.
 */
#ifndef DRIVERS_DRIVER_H
#define DRIVERS_DRIVER_H

#include <stdarg.h>
#include <stdio.h>

#include <millrace/pnm.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MR_DRIVER_ABI 2u
#define MR_KERNEL_MAX_ARGS 32

/* ---- Errors -----------------------------------------------------------------------------------
 */

typedef struct mr_drv_error {
    char text[6144];
} mr_drv_error;

__attribute__((format(printf, 3, 4))) static inline mr_status
mr_drv_fail(mr_drv_error *error, mr_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return status;
}

/* ---- Kernels: made by tools/gen-kernels from the sources of kernels/
 * ------------------------------------ */

typedef struct mr_kernel_arg {
    const char *name;
    mr_arg_kind kind;
    size_t element; /* MR_ARG_BUFFER: bytes of what the pointer points to */
    bool written;   /* MR_ARG_BUFFER: not const */
} mr_kernel_arg;

struct mr_work; /* one work group's place in the launch, see kernels/mr_portable.h */

typedef struct mr_kernel {
    const char *name;
    const char *file; /* the source's path in the repository */
    size_t source;    /* index in mr_kernel_table.sources */
    size_t num_args;
    const mr_kernel_arg *args;
    /* Runs one work group of the kernel as it was compiled as C; values[i] points to argument i. */
    void (*run)(void *const *values, const struct mr_work *work);
} mr_kernel;

typedef struct mr_kernel_source {
    const char *file;
    const char *text; /* includes resolved; OpenCL C without a prelude */
    uint64_t hash;
} mr_kernel_source;

typedef struct mr_kernel_table {
    const mr_kernel *kernels;
    size_t num_kernels;
    const mr_kernel_source *sources;
    size_t num_sources;
} mr_kernel_table;

/* ---- What the core hands to a back end --------------------------------------------------------
 */

typedef struct mr_drv_host {
    const mr_kernel_table *kernels;
    const char *library_dir; /* holds back ends and simulated units; ends without a slash */
} mr_drv_host;

typedef struct mr_drv_option {
    const char *key;
    const char *value;
} mr_drv_option;

/* A checked place in device memory. mem == NULL where an optional buffer was left out. */
typedef struct mr_drv_view {
    void *mem;
    size_t offset;
    size_t bytes; /* from offset to the end of the buffer */
} mr_drv_view;

typedef struct mr_drv_arg {
    mr_arg_kind kind;
    mr_drv_view view;
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
    } u;
} mr_drv_arg;

typedef struct mr_drv_rgu {
    bool apply;
    mr_rgu_job job;
    mr_drv_view seeds, row_scale, src, dst;
} mr_drv_rgu;

/* Everything from the view on to the end of its buffer may be read and written. */
typedef struct mr_drv_pnm {
    mr_pnm_job job;
    mr_drv_view memory;
} mr_drv_pnm;

typedef void (*mr_drv_emit)(void *context, const mr_device_info *info);

typedef struct mr_driver {
    uint32_t abi;       /* MR_DRIVER_ABI */
    const char *scheme; /* "opencl" of opencl:0 */
    bool deferred;      /* launch() only starts the work; finish() is what waits for it */

    /* Emits one entry a device, or one with available = false and the reason. */
    void (*list)(const mr_drv_host *host, mr_drv_emit emit, void *context);

    /* target is what stands between ':' and '?'. Options were split and unescaped; unknown ones are
     * the back end's to refuse. `host` stays valid while the device is open. */
    mr_status (*open)(const mr_drv_host *host, const char *target, const mr_drv_option *options,
                      size_t num_options, void **device, mr_drv_error *error);
    void (*close)(void *device);
    void (*info)(void *device, mr_device_info *info);

    /* NULL where MR_CAP_RESET is not offered. No call is in progress and no queue has work. */
    mr_status (*reset)(void *device, mr_drv_error *error);

    mr_status (*alloc)(void *device, size_t bytes, void **mem, mr_drv_error *error);
    void (*free)(void *device, void *mem);
    /* Where the host sees the memory directly (mapping needs no copy then), else NULL; the function
     * may be NULL. */
    void *(*host_pointer)(void *device, void *mem);
    mr_status (*copy)(void *device, void *mem, size_t offset, void *host, size_t bytes,
                      mr_sync_dir dir, mr_drv_error *error);

    mr_status (*queue_open)(void *device, void **queue, mr_drv_error *error);
    void (*queue_close)(void *device, void *queue);

    /*
     * Starts the work or runs it to its end. *counters is filled at the latest when finish()
     * returns MR_OK. There are local[0] lanes in a work group, local[1] = local[2] = 1. rgu may be
     * NULL: the core then builds it from the kernels.
     */
    mr_status (*launch)(void *device, void *queue, const mr_kernel *kernel, const mr_drv_arg *args,
                        const size_t global[3], const size_t local[3], mr_counters *counters,
                        mr_drv_error *error);
    mr_status (*rgu)(void *device, void *queue, const mr_drv_rgu *job, mr_counters *counters,
                     mr_drv_error *error);
    /* NULL where there is no near-memory unit. Runs the job to its end. */
    mr_status (*pnm)(void *device, void *queue, const mr_drv_pnm *job, mr_counters *counters,
                     mr_pnm_counters *pnm, mr_drv_error *error);
    /* Where a unit's descriptors find the memory; NULL where no unit reads addresses. */
    uint64_t (*address)(void *device, void *mem);
    /* Waits for all that was launched on the queue since the last finish(). */
    mr_status (*finish)(void *device, void *queue, mr_drv_error *error);

    /* From another thread: makes a launch(), rgu() or finish() in progress on the queue return
     * MR_CANCELLED soon. NULL where work cannot be stopped. */
    void (*interrupt)(void *device, void *queue);
} mr_driver;

typedef const mr_driver *(*mr_driver_entry_fn)(void);
#define MR_DRIVER_ENTRY "mr_driver_entry"

#ifdef __cplusplus
}
#endif
#endif
