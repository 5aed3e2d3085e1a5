/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting jobs of the near-memory unit, and what they counted. */
#include "host/core/internal.h"

mr_status mr_buffer_address(mr_buffer *handle, uint64_t *address) {
    if (!address)
        return mr_fail(MR_INVALID_ARGUMENT, "address: is NULL");
    mr_buf *buf = mr_handle_get(handle, MR_KIND_BUFFER, "buffer");
    if (!buf)
        return MR_INVALID_HANDLE;
    const mr_driver *driver = buf->dev->driver;
    mr_status status = MR_OK;
    if (driver->address)
        *address = driver->address(buf->dev->drv, buf->mem);
    else if (buf->dev->pnm)
        *address = buf->address;
    else
        status = mr_fail(MR_UNSUPPORTED, "%s: no unit of this device reads addresses from memory",
                         buf->dev->info.uri);
    mr_obj_unref(&buf->obj);
    return status;
}

static mr_status check_lists(const mr_pnm_job *job, const mr_drv_view *memory) {
    bool any = false;
    for (int g = 0; g < MR_PNM_GROUPS; g++) {
        uint64_t offset = job->list[g].offset;
        uint64_t bytes = (uint64_t)job->list[g].count * MR_PNM_DESC_BYTES;
        if (!bytes)
            continue;
        any = true;
        if (offset % MR_PNM_DESC_BYTES)
            return mr_fail(MR_INVALID_ARGUMENT, "job.list[%d].offset: %llu is not a multiple of %d",
                           g, (unsigned long long)offset, MR_PNM_DESC_BYTES);
        if (offset > memory->bytes || bytes > memory->bytes - offset)
            return mr_fail(MR_INVALID_ARGUMENT,
                           "job.list[%d]: %u descriptors at %llu do not fit the view of %zu bytes",
                           g, job->list[g].count, (unsigned long long)offset, memory->bytes);
    }
    return any ? MR_OK : mr_fail(MR_INVALID_ARGUMENT, "job.list: no group has a descriptor");
}

static mr_status submit(mr_que *queue, const mr_pnm_job *job, mr_view memory, mr_event **event) {
    mr_dev *dev = queue->dev;
    if (!(dev->info.caps & MR_CAP_PNM))
        return mr_fail(MR_UNSUPPORTED, "%s: this device has no near-memory unit", dev->info.uri);
    mr_task *task = mr_task_new("pnm job");
    if (!task)
        return mr_fail(MR_OUT_OF_MEMORY, "mr_pnm_run: no memory");
    task->is_pnm = true;
    task->pnm.job = *job;
    mr_status status =
        mr_task_view(task, queue, memory, "memory", MR_PNM_DESC_BYTES, &task->pnm.memory);
    if (status == MR_OK)
        status = check_lists(job, &task->pnm.memory);
    if (status == MR_OK)
        return mr_queue_submit(queue, task, event);
    mr_task_free(task);
    return status;
}

mr_status mr_pnm_run(mr_queue *handle, const mr_pnm_job *job, mr_view memory, mr_event **event) {
    if (!job || !event)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", job ? "event" : "job");
    mr_que *queue = mr_handle_get(handle, MR_KIND_QUEUE, "queue");
    if (!queue)
        return MR_INVALID_HANDLE;
    mr_status status = submit(queue, job, memory, event);
    mr_obj_unref(&queue->obj);
    return status;
}

mr_status mr_pnm_event_counters(mr_event *handle, mr_pnm_counters *counters) {
    mr_counters all;
    if (!counters)
        return mr_fail(MR_INVALID_ARGUMENT, "counters: is NULL");
    mr_status status = mr_event_counters(handle, &all);
    if (status != MR_OK)
        return status;
    mr_evt *event = mr_handle_get(handle, MR_KIND_EVENT, "event");
    if (!event)
        return MR_INVALID_HANDLE;
    bool has = event->has_pnm; /* nothing changes any more once it ended well */
    if (has)
        *counters = event->pnm;
    mr_obj_unref(&event->obj);
    return has ? MR_OK
               : mr_fail(MR_INVALID_ARGUMENT, "event: the work was no job of a near-memory unit");
}
