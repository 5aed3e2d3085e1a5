/* SPDX-License-Identifier: Apache-2.0 */
/*
 * millrace.h - the host interface of Millrace.
 *
 * One program drives the simulated units, GPUs and the CPU through the same calls: open a device by
 * its URI, create buffers and a queue on it, submit work, wait for the event.
 *
 *     mr_device *dev;  mr_queue *queue;  mr_buffer *buf;  mr_event *event;
 *     if (mr_device_open("sim:rgu?latency=40", &dev) != MR_OK)
 *         fprintf(stderr, "%s\n", mr_last_error());
 *
 * Conventions
 *  - Every function that can fail returns an mr_status. On failure its output arguments are left
 * untouched and mr_last_error() of the calling thread names the argument, file, tensor or bank at
 * fault.
 *  - Handles are opaque values, never memory to be read. A handle that was destroyed, or one that
 * is of another kind, is noticed and refused with MR_INVALID_HANDLE; it is not undefined behaviour.
 * NULL is refused the same way.
 *  - All functions may be called from any thread. Destroying an object while another thread uses it
 * is safe: the object goes when the last call that holds it returns.
 *  - The library prints nothing and installs no signal handler.
 *  - Sizes and offsets are bytes unless the name says otherwise, and are never rounded silently.
 */
#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Results -------------------------------------------------------------------------------- */

typedef enum mr_status {
    MR_OK = 0,
    MR_PENDING,      /* mr_event_status(): submitted, not finished */
    MR_TIMEOUT,      /* the wait ended before the work did; the work goes on and its outputs are not
                        valid */
    MR_DEVICE_ERROR, /* the device is alive and says that this job failed (a bad job, a bus error, a
                        fault) */
    MR_DEVICE_LOST,  /* the device is gone: simulator died, context dead. mr_device_reset() or close
                      */
    MR_CANCELLED,    /* the work was dropped by mr_device_reset(), mr_queue_destroy() or an earlier
                        failure */
    MR_INVALID_ARGUMENT, /* an argument is outside what its documentation allows */
    MR_INVALID_HANDLE,   /* destroyed, never created, or a handle of another kind or device */
    MR_NOT_FOUND,        /* no such device, kernel or file */
    MR_UNAVAILABLE,      /* the back end exists but cannot be used here; the message says why */
    MR_UNSUPPORTED,      /* this device has no such operation */
    MR_OUT_OF_MEMORY,    /* host or device memory */
    MR_LIMIT,            /* a stated limit on live objects is reached */
    MR_IO_ERROR,         /* reading or writing a file failed */
    MR_BAD_FORMAT        /* a file's contents are not what its format demands */
} mr_status;

/* Short name of a status, "MR_TIMEOUT"; "MR_UNKNOWN" for a value outside the enum. */
const char *mr_status_name(mr_status status);

/* What went wrong in the last failing call of this thread: one line, no newline at its end, except
 * that a compiler or driver log may follow after a newline. Valid until the next failing call of
 * this thread; "" before the first. */
const char *mr_last_error(void);

/* Version of the library, "MAJOR.MINOR.PATCH". */
const char *mr_version(void);

/* ---- Devices -------------------------------------------------------------------------------- */

typedef struct mr_device mr_device;
typedef struct mr_buffer mr_buffer;
typedef struct mr_queue mr_queue;
typedef struct mr_event mr_event;

#define MR_CAP_RGU (1u << 0)     /* mr_rgu_tile() and mr_rgu_apply() */
#define MR_CAP_KERNELS (1u << 1) /* mr_kernel_launch() */
#define MR_CAP_CYCLES (1u << 2)  /* events carry hardware counters, not only the host's time */
#define MR_CAP_RESET                                                                               \
    (1u << 3) /* mr_device_reset() brings the device back after MR_TIMEOUT or MR_DEVICE_LOST */
#define MR_CAP_PNM (1u << 4) /* mr_pnm_run() of pnm.h, by a unit or by kernels */

typedef struct mr_device_info {
    char uri[64];         /* what mr_device_open() takes */
    char name[128];       /* for people, such as a GPU's name; "" when not available */
    bool available;       /* mr_device_open(uri) is expected to work */
    char reason[512];     /* why not, when not available; "" otherwise */
    uint32_t caps;        /* MR_CAP_* */
    uint32_t view_align;  /* a buffer offset that is a multiple of this costs no copy (>= 1) */
    uint64_t memory;      /* bytes of device memory, 0 when unknown */
    uint64_t max_buffer;  /* bytes of the largest buffer, 0 when unknown */
    uint32_t max_devices; /* how many may be open at once in this process */
    int64_t process;      /* process that runs the simulated device; 0 when there is none */
} mr_device_info;

/*
 * Lists the devices that are there and, for every back end that has none, one entry with available
 * = false and the reason. Never fails because a back end does. *list has *count entries and is
 * freed by mr_devices_free().
 */
mr_status mr_devices(mr_device_info **list, size_t *count);
void mr_devices_free(mr_device_info *list);

/* clang-format off: a table */
/*
 * Opens a device.
 *
 *   cpu:       the embedded default: the compute kernels compiled as C
 *                threads=N      1..64, default: the cores
 *   opencl:N   the N-th OpenCL device of all platforms; a program is built when it is first used
 *                cache=DIR|off  keep program binaries there; by default those of slow builds are
 *                               kept in $XDG_CACHE_HOME/millrace or ~/.cache/millrace
 *   cuda:N     the N-th CUDA device
 *                debug=1        wait after each launch, so that a fault names its launch
 *                modules=DIR    take the compiled kernels from there
 *   sim:rgu    the RGU's board wrapper in Verilator, in a process of its own; options of sim/sim.h:
 *                seed=N latency=N wlatency=N bandwidth=BYTES stall=PERCENT memory=MIB xinit=...
 *                trace=FILE     an FST waveform; this and xinit take the debug build of the unit
 *              Default: ideal memory.
 *   sim:pnm    the near-memory unit's (pnm.h), with the same options and
 *                dram_trace=FILE  every DRAM command with its cycle
 *
 * Options stand behind '?', joined by '&', with %XX escapes in values: sim:rgu?seed=3&latency=40.
 * An unknown scheme or option, an option given twice and a value outside its range are
 * MR_INVALID_ARGUMENT; the message names the option. A device number or unit that does not exist is
 * MR_NOT_FOUND. A back end that is not built, not installed or without devices is MR_UNAVAILABLE
 * with the reason. The same device may be opened several times, up to info.max_devices where that
 * is not 0 (MR_LIMIT).
 *
 * Closing waits for calls in other threads, destroys the device's queues (see mr_queue_destroy) and
 * buffers; handles of those become invalid. Events outlive it and keep their result.
 */
/* clang-format on */
mr_status mr_device_open(const char *uri, mr_device **device);
mr_status mr_device_close(mr_device *device);

mr_status mr_device_get_info(mr_device *device, mr_device_info *info);

/*
 * Brings a device back after MR_TIMEOUT or MR_DEVICE_LOST: all submitted work ends with
 * MR_CANCELLED, buffers and queues stay valid. The contents of buffers which that work wrote are
 * undefined; after MR_DEVICE_LOST those of all buffers are. MR_UNSUPPORTED without MR_CAP_RESET.
 */
mr_status mr_device_reset(mr_device *device);

/* ---- Buffers -------------------------------------------------------------------------------- */

/*
 * Creates a buffer of exactly `bytes` (> 0) in device memory, 64-byte aligned, with undefined
 * contents. MR_OUT_OF_MEMORY when device or host memory does not have it.
 */
mr_status mr_buffer_create(mr_device *device, size_t bytes, mr_buffer **buffer);
mr_status mr_buffer_destroy(mr_buffer *buffer);
mr_status mr_buffer_size(mr_buffer *buffer, size_t *bytes);

typedef enum mr_sync_dir { MR_TO_DEVICE = 0, MR_FROM_DEVICE = 1 } mr_sync_dir;

/*
 * Host view of the whole buffer, 64-byte aligned, valid until the buffer is destroyed; mapping
 * twice gives the same pointer. Host and device views are made equal by mr_buffer_sync() only: what
 * one side writes may or may not be seen by the other before it.
 */
mr_status mr_buffer_map(mr_buffer *buffer, void **host);
mr_status mr_buffer_sync(mr_buffer *buffer, mr_sync_dir dir, size_t offset, size_t bytes);

/*
 * Copies between host memory of any alignment and the device view of [offset, offset + bytes),
 * bytes > 0. The host view of a mapped buffer is stale afterwards. These calls and mr_buffer_sync()
 * act at once and are not ordered with queued work: wait for the events of work that touches the
 * same bytes first.
 */
mr_status mr_buffer_write(mr_buffer *buffer, size_t offset, const void *data, size_t bytes);
mr_status mr_buffer_read(mr_buffer *buffer, size_t offset, void *data, size_t bytes);

/* A place in a buffer. buffer == NULL means "none" where an argument is optional. */
typedef struct mr_view {
    mr_buffer *buffer;
    size_t offset; /* bytes */
} mr_view;

/* ---- Queues and events ---------------------------------------------------------------------- */

#define MR_FOREVER UINT64_MAX

/*
 * Work in one queue runs in order of submission, each seeing what earlier work wrote; work of
 * different queues is not ordered. When one submission fails, those after it in the queue still run
 * (each reports for itself), unless the device is lost. Buffers that are destroyed while queued
 * work uses them stay until that work is done.
 */
mr_status mr_queue_create(mr_device *device, mr_queue **queue);

/* Work that did not start yet ends with MR_CANCELLED; work that runs is waited for, or stopped
 * where the device can. */
mr_status mr_queue_destroy(mr_queue *queue);

/* Waits until everything submitted so far has ended, well or not. MR_OK or MR_TIMEOUT. */
mr_status mr_queue_finish(mr_queue *queue, uint64_t timeout_ns);

/*
 * Waits until the work has ended and returns how: MR_OK, MR_DEVICE_ERROR, MR_DEVICE_LOST,
 * MR_CANCELLED, ... with mr_last_error() telling more, or MR_TIMEOUT when the work had not ended
 * after timeout_ns. Timeout 0 asks without waiting. Any number of threads may wait, any number of
 * times.
 */
mr_status mr_event_wait(mr_event *event, uint64_t timeout_ns);

/* Like mr_event_wait() without waiting: MR_PENDING while the work has not ended. */
mr_status mr_event_status(mr_event *event);

/* Gives the handle back. Work goes on. Every event that a submission returned must be destroyed. */
mr_status mr_event_destroy(mr_event *event);

typedef struct mr_counters {
    uint64_t
        host_ns;   /* from start to end of the work as the host (or the GPU's own clock) sees it */
    bool hardware; /* the fields below come from the unit's counters; all 0 otherwise */
    uint64_t cycles;     /* unit clock: start accepted to done, write responses included */
    uint64_t busy;       /* cycles in which the unit's output stage moved data */
    uint64_t stall_in;   /* cycles waiting for input */
    uint64_t stall_out;  /* cycles waiting for the output to be taken */
    uint64_t items_in;   /* bytes of seeds and vectors read */
    uint64_t items_out;  /* weights (tile) or results (apply) written */
    uint64_t mults_busy; /* multiplier-cycles in use */
} mr_counters;

/* Counters of work that ended with MR_OK; for any other state returns that state (MR_PENDING, ...)
 * and no figure. */
mr_status mr_event_counters(mr_event *event, mr_counters *counters);

/* ---- RGU: weights from rotor seeds ---------------------------------------------------------- */

typedef enum mr_rgu_format {
    MR_RGU_BF16 = 0,
    MR_RGU_FP16 = 1,
    MR_RGU_FP8E4M3 = 2, /* "fn": no infinity, NaN 0x7F */
    MR_RGU_FP8E5M2 = 3,
    MR_RGU_INT8 = 4,
    MR_RGU_FP32 = 5
} mr_rgu_format;

/* Bytes of one element; 0 for a value outside the enum. */
size_t mr_rgu_format_bytes(mr_rgu_format format);

/*
 * A job of the rotor generation unit: the fields mirror its registers (rgu_regs.h,
 * docs/rgu-registers.md). The matrix W is d_out x d_in, cut into chunks of d x d, d = 2^n, as in
 * docs/rgu.md. Start from mr_rgu_job_init().
 */
typedef struct mr_rgu_job {
    uint32_t n;          /* 8 or 10 */
    uint32_t terms;      /* 1..32 */
    uint32_t chunks_in;  /* ceil(d_in / d), 1..65535 */
    uint32_t chunks_out; /* ceil(d_out / d) */
    uint32_t d_in;       /* columns of W */
    uint32_t d_out;      /* rows of W */
    bool has_odd;        /* some chunk has an odd term */
    bool has_even;       /* some chunk has an even term */
    float scale;         /* finite; multiplies every weight; without effect beside a row_scale */

    /* tile: the window [row0, row1) x [col0, col1), not empty, inside W */
    uint32_t row0, row1, col0, col1;
    mr_rgu_format format; /* of the weights */
    bool saturate;        /* overflow gives the largest finite value, not Inf (NaN for e4m3) */

    /* apply */
    uint32_t batch;      /* vectors, >= 1 */
    uint32_t src_stride; /* bytes between vectors, a multiple of 4, >= 4 * d_in */

    /* bytes between rows of the window (tile: a multiple of the element, >= a row of the window)
     * or between result vectors (apply: a multiple of 4, >= 4 * d_out) */
    uint32_t dst_stride;
} mr_rgu_job;

/* One even term, scale 1, bf16, batch 1; everything else 0. */
static inline mr_rgu_job mr_rgu_job_init(void) {
    mr_rgu_job job;
    memset(&job, 0, sizeof job);
    job.terms = 1;
    job.has_even = true;
    job.scale = 1.0f;
    job.batch = 1;
    return job;
}

/*
 * Writes the window of W to dst (element (row0, col0) first, any element-aligned address).
 *   seeds      seed image as mr_rgu_pack() of the golden model makes it; 64-byte aligned
 *   row_scale  float32[chunks_out * d], 64-byte aligned, or {NULL, 0}
 * A job whose views do not fit their buffers, or that the fields above forbid, is
 * MR_INVALID_ARGUMENT at submission; what only the unit can see (a bus error) ends the event with
 * MR_DEVICE_ERROR.
 */
mr_status mr_rgu_tile(mr_queue *queue, const mr_rgu_job *job, mr_view seeds, mr_view row_scale,
                      mr_view dst, mr_event **event);

/*
 * Writes y = W x for `batch` vectors: src float32[batch][d_in], dst float32[batch][d_out], any
 * 4-byte aligned addresses; W is never formed. chunks_in * terms <= 65536. A vector with a NaN or
 * infinity gives NaN. The window and the format are not used.
 */
mr_status mr_rgu_apply(mr_queue *queue, const mr_rgu_job *job, mr_view seeds, mr_view row_scale,
                       mr_view src, mr_view dst, mr_event **event);

/* ---- Compute kernels ------------------------------------------------------------------------ */

typedef enum mr_arg_kind {
    MR_ARG_BUFFER = 1,
    MR_ARG_I32,
    MR_ARG_U32,
    MR_ARG_I64,
    MR_ARG_U64,
    MR_ARG_F32
} mr_arg_kind;

typedef struct mr_arg {
    mr_arg_kind kind;
    union {
        mr_view view; /* the kernel gets a pointer to this place; {NULL, 0} passes a null pointer */
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        float f32;
    } u;
} mr_arg;

static inline mr_arg mr_arg_buffer(mr_buffer *buffer, size_t offset) {
    mr_arg a = {MR_ARG_BUFFER, {{buffer, offset}}};
    return a;
}
static inline mr_arg mr_arg_i32(int32_t v) {
    mr_arg a = {MR_ARG_I32, {{0, 0}}};
    a.u.i32 = v;
    return a;
}
static inline mr_arg mr_arg_u32(uint32_t v) {
    mr_arg a = {MR_ARG_U32, {{0, 0}}};
    a.u.u32 = v;
    return a;
}
static inline mr_arg mr_arg_i64(int64_t v) {
    mr_arg a = {MR_ARG_I64, {{0, 0}}};
    a.u.i64 = v;
    return a;
}
static inline mr_arg mr_arg_u64(uint64_t v) {
    mr_arg a = {MR_ARG_U64, {{0, 0}}};
    a.u.u64 = v;
    return a;
}
static inline mr_arg mr_arg_f32(float v) {
    mr_arg a = {MR_ARG_F32, {{0, 0}}};
    a.u.f32 = v;
    return a;
}

/*
 * Runs the kernel `name` of kernels/ over global[0] x global[1] x global[2] work items (each >= 1)
 * in work groups of local[0] lanes (1..1024; local[1] and local[2] are 1). local == NULL means 64
 * lanes when that divides global[0], else 1, on every back end. global[0] is a multiple of
 * local[0]. Arguments are checked against the kernel's prototype: count, kind, and that an offset
 * is inside its buffer and a multiple of the element's size. How far a kernel reads is the caller's
 * business. A pointer that the kernel only reads is declared const there; two views of one launch
 * must be the same place or lie in different buffers when a back end has to copy one of them to
 * align it.
 */
mr_status mr_kernel_launch(mr_queue *queue, const char *name, const mr_arg *args, size_t num_args,
                           const size_t global[3], const size_t local[3], mr_event **event);

/* Whether the library has a kernel of that name, and how many there are / the name of the i-th
 * (NULL past the end). */
bool mr_kernel_exists(const char *name);
const char *mr_kernel_name(size_t index);

#ifdef __cplusplus
}
#endif

#endif /* MILLRACE_MILLRACE_H */
