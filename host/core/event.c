#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/core/internal.h"

uint64_t mr_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t mr_deadline_ns(uint64_t timeout_ns) {
    uint64_t now = mr_now_ns();
    return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

void mr_cond_init(pthread_cond_t *cond) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool mr_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t deadline_ns) {
    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(cond, lock);
        return true;
    }
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                         .tv_nsec = (long)(deadline_ns % 1000000000u)};
    return pthread_cond_timedwait(cond, lock, &t) != ETIMEDOUT;
}

static void destroy_event(mr_obj *obj) {
    mr_evt *event = (mr_evt *)obj;
    free(event->message);
    pthread_cond_destroy(&event->changed);
    pthread_mutex_destroy(&event->lock);
    free(event);
}

mr_evt *mr_event_new(void) {
    mr_evt *event = calloc(1, sizeof *event);
    if (!event)
        return NULL;
    mr_obj_init(&event->obj, destroy_event);
    pthread_mutex_init(&event->lock, NULL);
    mr_cond_init(&event->changed);
    event->status = MR_PENDING;
    return event;
}

void mr_event_end(mr_evt *event, mr_status status, const char *message) {
    pthread_mutex_lock(&event->lock);
    if (status != MR_OK) {
        event->message = message ? strdup(message) : NULL;
        memset(&event->counters, 0, sizeof event->counters);
    }
    event->status = status;
    pthread_cond_broadcast(&event->changed);
    pthread_mutex_unlock(&event->lock);
}

/* With the event's lock held: its state as the caller's result. */
static mr_status report(const mr_evt *event, mr_status while_pending) {
    mr_status status = event->status;
    if (status == MR_OK)
        return MR_OK;
    if (status == MR_PENDING)
        return while_pending == MR_TIMEOUT
                   ? mr_fail(MR_TIMEOUT, "event: the work had not ended when the wait was over")
                   : MR_PENDING;
    return mr_fail(status, "%s", event->message ? event->message : mr_status_name(status));
}

mr_status mr_event_wait(mr_event *handle, uint64_t timeout_ns) {
    mr_evt *event = mr_handle_get(handle, MR_KIND_EVENT, "event");
    if (!event)
        return MR_INVALID_HANDLE;
    uint64_t deadline = mr_deadline_ns(timeout_ns);
    pthread_mutex_lock(&event->lock);
    while (event->status == MR_PENDING && timeout_ns &&
           mr_cond_wait(&event->changed, &event->lock, deadline))
        continue;
    mr_status status = report(event, MR_TIMEOUT);
    pthread_mutex_unlock(&event->lock);
    mr_obj_unref(&event->obj);
    return status;
}

mr_status mr_event_status(mr_event *handle) {
    mr_evt *event = mr_handle_get(handle, MR_KIND_EVENT, "event");
    if (!event)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&event->lock);
    mr_status status = report(event, MR_PENDING);
    pthread_mutex_unlock(&event->lock);
    mr_obj_unref(&event->obj);
    return status;
}

mr_status mr_event_counters(mr_event *handle, mr_counters *counters) {
    if (!counters)
        return mr_fail(MR_INVALID_ARGUMENT, "counters: is NULL");
    mr_evt *event = mr_handle_get(handle, MR_KIND_EVENT, "event");
    if (!event)
        return MR_INVALID_HANDLE;
    pthread_mutex_lock(&event->lock);
    mr_status status = report(event, MR_PENDING);
    if (status == MR_OK)
        *counters = event->counters;
    pthread_mutex_unlock(&event->lock);
    mr_obj_unref(&event->obj);
    return status;
}

mr_status mr_event_destroy(mr_event *handle) {
    mr_evt *event = mr_handle_take(handle, MR_KIND_EVENT, "event");
    if (!event)
        return MR_INVALID_HANDLE;
    mr_obj_unref(&event->obj);
    return MR_OK;
}
