/* Submitting jobs of the rotor generation unit: every rule that the job itself can break is checked
 * here. */
#include <math.h>

#include "host/core/internal.h"

/* chunks_in * terms of an apply job: the headroom of its accumulators, see docs/rgu-apply.md. */
enum { MAX_PASSES = 65536 };

static mr_status check_shape(const mr_rgu_job *job) {
    if (job->n != 8 && job->n != 10)
        return mr_fail(MR_INVALID_ARGUMENT, "job.n: %u is neither 8 nor 10", job->n);
    if (job->terms < 1 || job->terms > 32)
        return mr_fail(MR_INVALID_ARGUMENT, "job.terms: %u is not 1..32", job->terms);
    uint64_t d = 1u << job->n;
    if (!job->d_in || !job->d_out)
        return mr_fail(MR_INVALID_ARGUMENT, "job.%s: is 0", job->d_in ? "d_out" : "d_in");
    if (job->chunks_in != (job->d_in + d - 1) / d || job->chunks_in > 65535)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.chunks_in: %u does not follow from d_in = %u and n = %u",
                       job->chunks_in, job->d_in, job->n);
    if (job->chunks_out != (job->d_out + d - 1) / d || job->chunks_out > 65535)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.chunks_out: %u does not follow from d_out = %u and n = %u",
                       job->chunks_out, job->d_out, job->n);
    if (!job->has_odd && !job->has_even)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.has_odd, job.has_even: a chunk has terms of one kind at least");
    if (!isfinite(job->scale))
        return mr_fail(MR_INVALID_ARGUMENT, "job.scale: is not finite");
    return MR_OK;
}

static mr_status check_tile(const mr_rgu_job *job) {
    size_t element = mr_rgu_format_bytes(job->format);
    if (!element)
        return mr_fail(MR_INVALID_ARGUMENT, "job.format: %d is no format", (int)job->format);
    if (job->row0 >= job->row1 || job->row1 > job->d_out)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.row0, job.row1: window %u:%u is empty or outside 0:%u", job->row0,
                       job->row1, job->d_out);
    if (job->col0 >= job->col1 || job->col1 > job->d_in)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.col0, job.col1: window %u:%u is empty or outside 0:%u", job->col0,
                       job->col1, job->d_in);
    if (job->dst_stride % element || job->dst_stride < (job->col1 - job->col0) * element)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.dst_stride: %u is not a multiple of %zu of at least %zu bytes (a row "
                       "of the window)",
                       job->dst_stride, element, (job->col1 - job->col0) * element);
    return MR_OK;
}

static mr_status check_apply(const mr_rgu_job *job) {
    if ((uint64_t)job->chunks_in * job->terms > MAX_PASSES)
        return mr_fail(MR_INVALID_ARGUMENT, "job.chunks_in, job.terms: %u x %u is more than %d",
                       job->chunks_in, job->terms, MAX_PASSES);
    if (!job->batch)
        return mr_fail(MR_INVALID_ARGUMENT, "job.batch: is 0");
    if (job->src_stride % 4 || job->src_stride < 4 * (uint64_t)job->d_in)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.src_stride: %u is not a multiple of 4 of at least %llu",
                       job->src_stride, 4ull * job->d_in);
    if (job->dst_stride % 4 || job->dst_stride < 4 * (uint64_t)job->d_out)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "job.dst_stride: %u is not a multiple of 4 of at least %llu",
                       job->dst_stride, 4ull * job->d_out);
    return MR_OK;
}

/* Takes the view and cuts it to the bytes that the job touches. */
static mr_status take_view(mr_task *task, mr_que *queue, mr_view view, const char *name,
                           size_t align, uint64_t bytes, mr_drv_view *out) {
    mr_status status = mr_task_view(task, queue, view, name, align, out);
    if (status == MR_OK && bytes > out->bytes)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "%s: the job touches %llu bytes, its buffer has %zu from offset %zu", name,
                       (unsigned long long)bytes, out->bytes, out->offset);
    if (status == MR_OK)
        out->bytes = (size_t)bytes;
    return status;
}

static uint64_t record_bytes(uint32_t n) { return (8 + 2 * (uint64_t)n * (n - 1) + 63) / 64 * 64; }

static mr_status fill(mr_task *task, mr_que *queue, mr_view seeds, mr_view row_scale, mr_view src,
                      mr_view dst) {
    mr_drv_rgu *r = &task->rgu;
    const mr_rgu_job *job = &r->job;
    uint64_t image = (uint64_t)job->chunks_out * job->chunks_in * job->terms * record_bytes(job->n);
    uint64_t rows = (uint64_t)job->chunks_out << job->n, out;
    mr_status status = take_view(task, queue, seeds, "seeds", 64, image, &r->seeds);
    if (status == MR_OK && (row_scale.buffer || row_scale.offset))
        status = take_view(task, queue, row_scale, "row_scale", 64, 4 * rows, &r->row_scale);
    if (r->apply) {
        uint64_t in = (uint64_t)(job->batch - 1) * job->src_stride + 4 * (uint64_t)job->d_in;
        out = (uint64_t)(job->batch - 1) * job->dst_stride + 4 * (uint64_t)job->d_out;
        if (status == MR_OK)
            status = take_view(task, queue, src, "src", 4, in, &r->src);
        if (status == MR_OK)
            status = take_view(task, queue, dst, "dst", 4, out, &r->dst);
    } else {
        size_t element = mr_rgu_format_bytes(job->format);
        out = (uint64_t)(job->row1 - job->row0 - 1) * job->dst_stride +
              (uint64_t)(job->col1 - job->col0) * element;
        if (status == MR_OK)
            status = take_view(task, queue, dst, "dst", element, out, &r->dst);
    }
    return status;
}

static mr_status submit(mr_queue *handle, const mr_rgu_job *job, bool apply, mr_view seeds,
                        mr_view row_scale, mr_view src, mr_view dst, mr_event **event) {
    if (!job || !event)
        return mr_fail(MR_INVALID_ARGUMENT, "%s: is NULL", job ? "event" : "job");
    mr_que *queue = mr_handle_get(handle, MR_KIND_QUEUE, "queue");
    if (!queue)
        return MR_INVALID_HANDLE;
    mr_dev *dev = queue->dev;
    mr_status status = check_shape(job);
    if (status == MR_OK)
        status = apply ? check_apply(job) : check_tile(job);
    if (status == MR_OK && !(dev->info.caps & MR_CAP_RGU))
        status =
            mr_fail(MR_UNSUPPORTED, "%s: this device has no rotor generation unit", dev->info.uri);
    if (status == MR_OK) {
        mr_task *task = mr_task_new("rgu %s", apply ? "apply" : "tile");
        if (!task) {
            status = mr_fail(MR_OUT_OF_MEMORY, "mr_rgu: no memory");
        } else {
            task->rgu.apply = apply;
            task->rgu.job = *job;
            status = fill(task, queue, seeds, row_scale, src, dst);
            if (status == MR_OK)
                status = mr_queue_submit(queue, task, event);
            else
                mr_task_free(task);
        }
    }
    mr_obj_unref(&queue->obj);
    return status;
}

mr_status mr_rgu_tile(mr_queue *queue, const mr_rgu_job *job, mr_view seeds, mr_view row_scale,
                      mr_view dst, mr_event **event) {
    mr_view none = {NULL, 0};
    return submit(queue, job, false, seeds, row_scale, none, dst, event);
}

mr_status mr_rgu_apply(mr_queue *queue, const mr_rgu_job *job, mr_view seeds, mr_view row_scale,
                       mr_view src, mr_view dst, mr_event **event) {
    return submit(queue, job, true, seeds, row_scale, src, dst, event);
}
