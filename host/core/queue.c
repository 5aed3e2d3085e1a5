/* In-order queues: one worker thread each, which starts the work and ends the events. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/internal.h"

/* How many submissions a back end with deferred launches gets before it is asked to finish them. */
enum { BATCH = 32 };

/* ---- Tasks ------------------------------------------------------------------------------------
 */

mr_task *mr_task_new(const char *format, ...) {
    mr_task *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(task->label, sizeof task->label, format, args);
    va_end(args);
    return task;
}

void mr_task_free(mr_task *task) {
    for (size_t i = 0; i < task->num_held; i++)
        mr_obj_unref(&task->held[i]->obj);
    if (task->event)
        mr_obj_unref(&task->event->obj);
    free(task);
}

mr_status mr_task_view(mr_task *task, mr_que *queue, mr_view view, const char *name, size_t align,
                       mr_drv_view *out) {
    mr_buf *buf = mr_handle_get(view.buffer, MR_KIND_BUFFER, name);
    if (!buf)
        return MR_INVALID_HANDLE;
    task->held[task->num_held++] = buf;
    if (buf->dev != queue->dev)
        return mr_fail(MR_INVALID_HANDLE, "%s: the buffer is one of %s, the queue is one of %s",
                       name, buf->dev->info.uri, queue->dev->info.uri);
    if (view.offset >= buf->bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: offset %zu is outside its buffer of %zu bytes",
                       name, view.offset, buf->bytes);
    if (view.offset % align)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: offset %zu is not a multiple of %zu", name,
                       view.offset, align);
    out->mem = buf->mem;
    out->offset = view.offset;
    out->bytes = buf->bytes - view.offset;
    return MR_OK;
}

static void end_task(mr_task *task, mr_status status, const char *message) {
    mr_event_end(task->event, status, message);
    mr_task_free(task);
}

/* ---- The worker -------------------------------------------------------------------------------
 */

static mr_status run_pnm(mr_que *queue, mr_task *task, mr_drv_error *error) {
    mr_dev *dev = queue->dev;
    mr_evt *event = task->event;
    event->has_pnm = true;
    if (!dev->driver->pnm)
        return mr_pnm_by_kernels(queue, &task->pnm,
                                 task->held[0]->address + task->pnm.memory.offset, &event->counters,
                                 &event->pnm, error);
    return dev->driver->pnm(dev->drv, queue->drv, &task->pnm, &event->counters, &event->pnm, error);
}

static mr_status start(mr_que *queue, mr_task *task, mr_drv_error *error) {
    mr_dev *dev = queue->dev;
    const mr_driver *driver = dev->driver;
    mr_counters *counters = &task->event->counters;
    mr_status status;
    error->text[0] = 0;
    if (atomic_load(&dev->lost))
        return mr_drv_fail(error, MR_DEVICE_LOST, "%s: not started, the device was lost before",
                           dev->info.uri);
    if (task->kernel)
        status = driver->launch(dev->drv, queue->drv, task->kernel, task->args, task->global,
                                task->local, counters, error);
    else if (task->is_pnm)
        status = run_pnm(queue, task, error);
    else if (driver->rgu)
        status = driver->rgu(dev->drv, queue->drv, &task->rgu, counters, error);
    else
        status = mr_rgu_by_kernels(queue, &task->rgu, counters, error);
    if (status == MR_DEVICE_LOST)
        atomic_store(&dev->lost, true);
    if (status != MR_OK) { /* name the work in front of the reason */
        mr_drv_error named = {""};
        mr_drv_fail(&named, status, "%s: %s: %.5900s", dev->info.uri, task->label, error->text);
        *error = named;
    }
    return status;
}

/* Waits for work that was started together, and ends it. */
static void finish_started(mr_que *queue, mr_task *const *started, size_t count) {
    mr_dev *dev = queue->dev;
    mr_drv_error error;
    if (!count)
        return;
    mr_status status = dev->driver->finish(dev->drv, queue->drv, &error);
    if (status == MR_DEVICE_LOST)
        atomic_store(&dev->lost, true);
    mr_drv_error named = {""};
    for (size_t i = 0; i < count; i++) {
        if (status != MR_OK)
            mr_drv_fail(&named, status, "%s: %s%s: %.5800s", dev->info.uri, started[i]->label,
                        count > 1 ? " or work finished together with it" : "", error.text);
        end_task(started[i], status, named.text);
    }
}

static void run_batch(mr_que *queue, mr_task *batch) {
    mr_dev *dev = queue->dev;
    bool deferred = dev->driver->deferred;
    mr_task *started[BATCH];
    size_t count = 0;
    mr_drv_error error;
    while (batch) {
        mr_task *task = batch;
        batch = task->next;
        if (task->is_pnm) { /* runs to its end: what fails while it does is its own */
            finish_started(queue, started, count);
            count = 0;
        }
        pthread_mutex_lock(&queue->lock);
        bool paused = queue->paused;
        pthread_mutex_unlock(&queue->lock);
        if (paused) {
            end_task(task, MR_CANCELLED, "cancelled before it started");
            continue;
        }
        uint64_t begin = mr_now_ns();
        mr_status status = start(queue, task, &error);
        if (status == MR_OK && deferred) {
            started[count++] = task;
            continue;
        }
        if (!task->event->counters.host_ns)
            task->event->counters.host_ns = mr_now_ns() - begin;
        end_task(task, status, error.text);
    }
    finish_started(queue, started, count);
}

static void *work(void *context) {
    mr_que *queue = context;
    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while ((!queue->first || queue->paused) && !queue->stop)
            pthread_cond_wait(&queue->changed, &queue->lock);
        if (queue->stop)
            break;
        mr_task *batch = queue->first, **end = &queue->first;
        size_t count = 0;
        while (*end && count < BATCH) {
            end = &(*end)->next;
            count++;
        }
        queue->first = *end;
        *end = NULL;
        if (!queue->first)
            queue->last = &queue->first;
        queue->running = count;
        pthread_mutex_unlock(&queue->lock);
        run_batch(queue, batch);
        pthread_mutex_lock(&queue->lock);
        queue->running = 0;
        queue->ended += count;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    mr_rgu_scratch_free(queue);
    return NULL;
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static void destroy_queue(mr_obj *obj) {
    mr_que *queue = (mr_que *)obj;
    queue->dev->driver->queue_close(queue->dev->drv, queue->drv);
    mr_obj_unref(&queue->dev->obj);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* Ends the worker and takes the queue out of its device. The handle is out of the table already. */
static void stop_queue(mr_que *queue) {
    mr_dev *dev = queue->dev;
    pthread_mutex_lock(&dev->lock);
    mr_queue_pause(queue);
    pthread_mutex_lock(&queue->lock);
    queue->stop = true;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->worker, NULL);
    mr_queue_pause(queue); /* what came in between */
    if (queue->prev)
        queue->prev->next = queue->next;
    else
        dev->queues = queue->next;
    if (queue->next)
        queue->next->prev = queue->prev;
    pthread_mutex_unlock(&dev->lock);
}

static mr_status create(mr_dev *dev, mr_queue **out) {
    mr_drv_error error;
    mr_que *queue = calloc(1, sizeof *queue);
    if (!queue)
        return mr_fail(MR_OUT_OF_MEMORY, "mr_queue_create: no memory");
    mr_status status = dev->driver->queue_open(dev->drv, &queue->drv, &error);
    if (status != MR_OK) {
        free(queue);
        return mr_fail(status, "%s: %s", dev->info.uri, error.text);
    }
    mr_obj_init(&queue->obj, destroy_queue);
    mr_obj_ref(&dev->obj);
    queue->dev = dev;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    mr_cond_init(&queue->changed);

    pthread_mutex_lock(&dev->lock);
    void *handle = NULL;
    if (dev->closing) {
        status = mr_fail(MR_INVALID_HANDLE, "device: it is being closed");
    } else if (pthread_create(&queue->worker, NULL, work, queue)) {
        status = mr_fail(MR_LIMIT, "mr_queue_create: the system gives no further thread");
    } else if (!(handle = mr_handle_new(MR_KIND_QUEUE, &queue->obj))) {
        status = MR_LIMIT;
        pthread_mutex_lock(&queue->lock);
        queue->stop = true;
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
        pthread_join(queue->worker, NULL);
    } else {
        queue->handle = handle;
        queue->next = dev->queues;
        if (queue->next)
            queue->next->prev = queue;
        dev->queues = queue;
    }
    pthread_mutex_unlock(&dev->lock);
    if (!handle) {
        mr_obj_unref(&queue->obj);
        return status;
    }
    *out = handle;
    return MR_OK;
}

mr_status mr_queue_create(mr_device *device, mr_queue **queue) {
    if (!queue)
        return mr_fail(MR_INVALID_ARGUMENT, "queue: is NULL");
    mr_dev *dev = mr_handle_get(device, MR_KIND_DEVICE, "device");
    if (!dev)
        return MR_INVALID_HANDLE;
    mr_status status = create(dev, queue);
    mr_obj_unref(&dev->obj);
    return status;
}

mr_status mr_queue_destroy(mr_queue *handle) {
    mr_que *queue = mr_handle_take(handle, MR_KIND_QUEUE, "queue");
    if (!queue)
        return MR_INVALID_HANDLE;
    stop_queue(queue);
    mr_obj_unref(&queue->obj);
    return MR_OK;
}

/* ---- Submitting and waiting -------------------------------------------------------------------
 */

mr_status mr_queue_submit(mr_que *queue, mr_task *task, mr_event **out) {
    mr_dev *dev = queue->dev;
    if (atomic_load(&dev->lost)) {
        mr_task_free(task);
        return mr_fail(MR_DEVICE_LOST, "%s: the device was lost; reset or close it", dev->info.uri);
    }
    mr_evt *event = mr_event_new();
    if (!event) {
        mr_task_free(task);
        return mr_fail(MR_OUT_OF_MEMORY, "no memory for an event");
    }
    task->event = event;
    mr_obj_ref(&event->obj);
    void *handle = mr_handle_new(MR_KIND_EVENT, &event->obj);
    if (!handle) {
        mr_obj_unref(&event->obj);
        mr_task_free(task);
        return MR_LIMIT;
    }
    pthread_mutex_lock(&queue->lock);
    bool stopped = queue->stop;
    if (!stopped) {
        *queue->last = task;
        queue->last = &task->next;
        queue->submitted++;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    if (stopped)
        end_task(task, MR_CANCELLED, "the queue was destroyed");
    *out = handle;
    return MR_OK;
}

mr_status mr_queue_finish(mr_queue *handle, uint64_t timeout_ns) {
    mr_que *queue = mr_handle_get(handle, MR_KIND_QUEUE, "queue");
    if (!queue)
        return MR_INVALID_HANDLE;
    uint64_t deadline = mr_deadline_ns(timeout_ns);
    pthread_mutex_lock(&queue->lock);
    uint64_t goal = queue->submitted;
    while (queue->ended < goal && timeout_ns &&
           mr_cond_wait(&queue->changed, &queue->lock, deadline))
        continue;
    bool done = queue->ended >= goal;
    pthread_mutex_unlock(&queue->lock);
    mr_obj_unref(&queue->obj);
    return done ? MR_OK
                : mr_fail(MR_TIMEOUT, "queue: its work had not ended when the wait was over");
}

void mr_queue_pause(mr_que *queue) {
    const mr_driver *driver = queue->dev->driver;
    pthread_mutex_lock(&queue->lock);
    queue->paused = true;
    mr_task *waiting = queue->first;
    queue->first = NULL;
    queue->last = &queue->first;
    while (waiting) {
        mr_task *task = waiting;
        waiting = task->next;
        queue->ended++;
        end_task(task, MR_CANCELLED, "cancelled before it started");
    }
    /* Asked again and again: the interrupt may come before what it should interrupt. */
    while (queue->running) {
        pthread_mutex_unlock(&queue->lock);
        if (driver->interrupt)
            driver->interrupt(queue->dev->drv, queue->drv);
        pthread_mutex_lock(&queue->lock);
        if (queue->running)
            mr_cond_wait(&queue->changed, &queue->lock, mr_deadline_ns(20000000));
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void mr_queue_resume(mr_que *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->paused = false;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}
