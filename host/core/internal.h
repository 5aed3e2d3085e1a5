/*
 * What the files of the core share: objects behind the handles.
 *
 * Every object is counted. A handle holds one reference, each call in progress one, and work that
 * is queued holds its buffers, its event and its device. The object goes with its last reference; a
 * handle that was given back is no longer in the table, so nobody can get a new reference through
 * it.
 */
#ifndef HOST_CORE_INTERNAL_H
#define HOST_CORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "drivers/driver.h"
#include "host/core/error.h"

typedef enum mr_kind {
    MR_KIND_DEVICE = 1,
    MR_KIND_BUFFER,
    MR_KIND_QUEUE,
    MR_KIND_EVENT,
    MR_KIND_NIC,
    MR_KIND_NIC_OP
} mr_kind;

typedef struct mr_obj mr_obj;
struct mr_obj {
    atomic_uint refs;
    void (*destroy)(mr_obj *obj);
};

void mr_obj_init(mr_obj *obj, void (*destroy)(mr_obj *obj));
void mr_obj_ref(mr_obj *obj);
void mr_obj_unref(mr_obj *obj);

/* ---- Handles ----------------------------------------------------------------------------------
 */

/* Takes over the caller's reference. NULL when the table is full or memory is short (message set).
 */
void *mr_handle_new(mr_kind kind, mr_obj *obj);
/* A new reference to the object, or NULL with the message set: `what` is the argument's name. */
void *mr_handle_get(const void *handle, mr_kind kind, const char *what);
/* Takes the handle out of the table and hands its reference to the caller; NULL as above. */
void *mr_handle_take(const void *handle, mr_kind kind, const char *what);
/* How many handles of a kind are live; for tests of leaks. */
size_t mr_handle_count(mr_kind kind);

/* ---- Devices ----------------------------------------------------------------------------------
 */

typedef struct mr_dev {
    mr_obj obj;
    const mr_driver *driver;
    void *drv;
    mr_device_info info;
    atomic_bool lost;
    pthread_mutex_t lock; /* the lists below, and `resetting` */
    struct mr_que *queues;
    struct mr_buf *buffers;
    bool closing;
    struct mr_pnm_unit *pnm; /* see pnm_kernels.c; NULL where kernels do not make such a unit */
    uint64_t next_address;   /* of the buffers of such a device */
} mr_dev;

/* ---- Buffers ----------------------------------------------------------------------------------
 */

typedef struct mr_buf {
    mr_obj obj;
    mr_dev *dev;
    void *mem;
    size_t bytes;
    uint64_t address; /* by which lists for kernels name byte 0; see mr_buffer_address() */
    void *host;       /* the driver's own mapping, or a shadow made by the first mr_buffer_map() */
    bool shadowed;    /* host is a shadow: sync copies */
    pthread_mutex_t lock;
    const void *handle;
    struct mr_buf *prev, *next; /* of the device's live handles */
} mr_buf;

/* ---- Events and queues ------------------------------------------------------------------------
 */

typedef struct mr_evt {
    mr_obj obj;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mr_status status; /* MR_PENDING until the end */
    char *message;    /* owned; NULL when MR_OK or when memory was short */
    mr_counters counters;
    bool has_pnm; /* the work is a job of the near-memory unit */
    mr_pnm_counters pnm;
} mr_evt;

typedef struct mr_task mr_task;
struct mr_task {
    mr_task *next;
    mr_evt *event;
    char label[96];          /* "kernel lm_norm", "rgu tile": what an error names */
    const mr_kernel *kernel; /* NULL: a job of a unit */
    bool is_pnm;             /* of which one */
    size_t global[3], local[3];
    mr_drv_arg args[MR_KERNEL_MAX_ARGS];
    mr_drv_rgu rgu;
    mr_drv_pnm pnm;
    mr_buf *held[MR_KERNEL_MAX_ARGS];
    size_t num_held;
};

typedef struct mr_que {
    mr_obj obj;
    mr_dev *dev;
    void *drv;
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    mr_task *first, **last; /* not started yet */
    size_t running;         /* started and not ended */
    uint64_t submitted, ended;
    bool paused; /* what runs is being interrupted, nothing new starts */
    bool stop;
    const void *handle;
    struct mr_que *prev, *next;
    struct mr_rgu_scratch *scratch; /* see rgu_kernels.c; touched by the worker alone */
} mr_que;

/* Queues the task (taken over) and gives the caller a handle for its event. */
mr_status mr_queue_submit(mr_que *queue, mr_task *task, mr_event **event);
mr_task *mr_task_new(const char *format, ...) __attribute__((format(printf, 1, 2)));
void mr_task_free(mr_task *task);
/* Checks the view for an argument called `name`, takes a reference to its buffer into the task and
 * fills *out. */
mr_status mr_task_view(mr_task *task, mr_que *queue, mr_view view, const char *name, size_t align,
                       mr_drv_view *out);

/* Cancels what did not start, interrupts what runs, waits until nothing does; then nothing starts
 * until resumed. */
void mr_queue_pause(mr_que *queue);
void mr_queue_resume(mr_que *queue);

mr_evt *mr_event_new(void);
/* Ends the event; message may be NULL. */
void mr_event_end(mr_evt *event, mr_status status, const char *message);

uint64_t mr_now_ns(void);                /* CLOCK_MONOTONIC */
void mr_cond_init(pthread_cond_t *cond); /* waits by CLOCK_MONOTONIC */
/* Waits on the condition until deadline_ns (UINT64_MAX: for ever). False when it has passed. */
bool mr_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns);
uint64_t mr_deadline_ns(uint64_t timeout_ns);

/* ---- Back ends --------------------------------------------------------------------------------
 */

const mr_driver *mr_driver_cpu(void);
/* The back end of a scheme; loads its shared object. Message set on failure. */
mr_status mr_driver_get(const char *scheme, const mr_driver **driver);
const mr_drv_host *mr_driver_host(void);

/* ---- RGU out of kernels -----------------------------------------------------------------------
 */

/* Runs the job on a device that has kernels but no RGU of its own. */
mr_status mr_rgu_by_kernels(mr_que *queue, const mr_drv_rgu *job, mr_counters *counters,
                            mr_drv_error *error);
void mr_rgu_scratch_free(mr_que *queue);

/* ---- PNM out of kernels -----------------------------------------------------------------------
 */

bool mr_pnm_has_kernels(void);
/* A unit whose memories are zero: they are taken from the device when they are first used. */
struct mr_pnm_unit *mr_pnm_unit_new(void);
void mr_pnm_unit_free(mr_dev *dev);
/* Runs the job to its end on a device that has kernels but no near-memory unit of its own. `base`
 * is the address of the view's first byte. */
mr_status mr_pnm_by_kernels(mr_que *queue, const mr_drv_pnm *job, uint64_t base,
                            mr_counters *counters, mr_pnm_counters *pnm, mr_drv_error *error);

/* What a device of the driver can do besides `caps` because it has kernels. */
uint32_t mr_caps_by_kernels(const mr_driver *driver, uint32_t caps);

#endif
