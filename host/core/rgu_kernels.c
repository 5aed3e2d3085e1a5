/*
 * The rotor generation unit on devices that have none: kernels/rgu_tile.cl and rgu_apply.cl
 * launched one after the other, through scratch memory that stays with the queue.
 */
#include <stdlib.h>
#include <string.h>

#include "host/core/internal.h"
#include "host/core/kernels.h"

enum { SCRATCH = 5, LANES = 64, TABLE_BYTES = 16 << 20 };

typedef struct mr_rgu_scratch {
    void *mem[SCRATCH];
    size_t bytes[SCRATCH];
} mr_rgu_scratch;

uint32_t mr_caps_by_kernels(const mr_driver *driver, uint32_t caps) {
    bool built_in = mr_kernel_find("rgu_tables") && mr_kernel_find("rgu_tile") &&
                    mr_kernel_find("rgu_spin") && mr_kernel_find("rgu_apply");
    if (!(caps & MR_CAP_KERNELS))
        return 0;
    return (built_in && !driver->rgu ? MR_CAP_RGU : 0) |
           (mr_pnm_has_kernels() && !driver->pnm ? MR_CAP_PNM : 0);
}

void mr_rgu_scratch_free(mr_que *queue) {
    mr_dev *dev = queue->dev;
    if (!queue->scratch)
        return;
    for (int i = 0; i < SCRATCH; i++)
        if (queue->scratch->mem[i])
            dev->driver->free(dev->drv, queue->scratch->mem[i]);
    free(queue->scratch);
    queue->scratch = NULL;
}

/* Scratch memory number i with at least `bytes`. */
static mr_status scratch(mr_que *queue, int i, size_t bytes, mr_drv_view *view,
                         mr_drv_error *error) {
    mr_dev *dev = queue->dev;
    if (!queue->scratch && !(queue->scratch = calloc(1, sizeof *queue->scratch)))
        return mr_drv_fail(error, MR_OUT_OF_MEMORY, "no host memory");
    mr_rgu_scratch *s = queue->scratch;
    if (s->bytes[i] < bytes) {
        /* work that was started before may still use the old one */
        mr_status status = dev->driver->finish(dev->drv, queue->drv, error);
        if (status != MR_OK)
            return status;
        if (s->mem[i])
            dev->driver->free(dev->drv, s->mem[i]);
        s->mem[i] = NULL;
        s->bytes[i] = 0;
        status = dev->driver->alloc(dev->drv, bytes, &s->mem[i], error);
        if (status != MR_OK)
            return status;
        s->bytes[i] = bytes;
    }
    *view = (mr_drv_view){s->mem[i], 0, bytes};
    return MR_OK;
}

static mr_drv_arg buffer(mr_drv_view view) {
    return (mr_drv_arg){.kind = MR_ARG_BUFFER, .view = view};
}
static mr_drv_arg i32(uint32_t v) { return (mr_drv_arg){.kind = MR_ARG_I32, .u.i32 = (int32_t)v}; }
static mr_drv_arg u32(uint32_t v) { return (mr_drv_arg){.kind = MR_ARG_U32, .u.u32 = v}; }
static mr_drv_arg f32(float v) { return (mr_drv_arg){.kind = MR_ARG_F32, .u.f32 = v}; }

/* Groups x, y, z of `lanes` each. */
static mr_status run(mr_que *queue, const char *name, const mr_drv_arg *args, size_t num_args,
                     size_t x, size_t y, size_t z, size_t lanes, mr_counters *counters,
                     mr_drv_error *error) {
    const mr_kernel *kernel = mr_kernel_find(name);
    const size_t global[3] = {x * lanes, y, z}, local[3] = {lanes, 1, 1};
    if (!kernel)
        return mr_drv_fail(error, MR_UNSUPPORTED, "the kernel %s was not built in", name);
    if (kernel->num_args != num_args)
        return mr_drv_fail(error, MR_DEVICE_ERROR, "kernel %s takes %zu arguments, not %zu", name,
                           kernel->num_args, num_args);
    for (size_t i = 0; i < num_args; i++)
        if (kernel->args[i].kind != args[i].kind)
            return mr_drv_fail(error, MR_DEVICE_ERROR, "kernel %s: argument %s is of another kind",
                               name, kernel->args[i].name);
    return queue->dev->driver->launch(queue->dev->drv, queue->drv, kernel, args, global, local,
                                      counters, error);
}

/* A block of chunks [o0, o0+no) x [i0, i0+ni): its tables, r and s. */
typedef struct {
    uint32_t o0, no, i0, ni;
    mr_drv_view r, s;
} block;

static mr_status tables(mr_que *queue, const mr_drv_rgu *job, block *b, mr_counters *counters,
                        mr_drv_error *error) {
    const mr_rgu_job *j = &job->job;
    size_t records = (size_t)b->no * b->ni * j->terms, bytes = records << (j->n - 1) << 2;
    mr_status status = scratch(queue, 0, bytes, &b->r, error);
    if (status == MR_OK)
        status = scratch(queue, 1, bytes, &b->s, error);
    if (status != MR_OK)
        return status;
    const mr_drv_arg args[] = {buffer(job->seeds), buffer(b->r),  buffer(b->s),
                               i32(j->n),          i32(j->terms), i32(j->chunks_in),
                               i32(b->o0),         i32(b->i0),    i32(b->ni)};
    return run(queue, "rgu_tables", args, sizeof args / sizeof *args, records, 2, 1, LANES,
               counters, error);
}

static mr_status tile_block(mr_que *queue, const mr_drv_rgu *job, block *b, mr_counters *counters,
                            mr_drv_error *error) {
    const mr_rgu_job *j = &job->job;
    mr_status status = tables(queue, job, b, counters, error);
    if (status != MR_OK)
        return status;
    uint32_t mode =
        (uint32_t)j->format | (j->saturate ? 16u : 0u) | (job->row_scale.mem ? 32u : 0u);
    const mr_drv_arg args[] = {
        buffer(job->seeds), buffer(b->r), buffer(b->s),  buffer(job->row_scale),
        buffer(job->dst),   i32(j->n),    i32(j->terms), i32(j->chunks_in),
        i32(b->o0),         i32(b->i0),   i32(b->ni),    i32(j->row0),
        i32(j->row1),       i32(j->col0), i32(j->col1),  u32(j->dst_stride),
        i32(mode),          f32(j->scale)};
    return run(queue, "rgu_tile", args, sizeof args / sizeof *args, (1u << j->n) / 32, 2,
               (size_t)b->no * b->ni, 4 * LANES, counters, error);
}

/* Blocks of whole rows of chunks where the tables of a row fit, else parts of one row. */
static mr_status tile(mr_que *queue, const mr_drv_rgu *job, mr_counters *counters,
                      mr_drv_error *error) {
    const mr_rgu_job *j = &job->job;
    uint32_t o0 = j->row0 >> j->n, o1 = ((j->row1 - 1) >> j->n) + 1;
    uint32_t i0 = j->col0 >> j->n, i1 = ((j->col1 - 1) >> j->n) + 1;
    uint32_t fit = (uint32_t)(TABLE_BYTES / ((size_t)j->terms << (j->n - 1) << 2));
    uint32_t ni = i1 - i0 < fit ? i1 - i0 : fit, no = fit / ni;
    mr_status status = MR_OK;
    for (uint32_t o = o0; o < o1 && status == MR_OK; o += no)
        for (uint32_t i = i0; i < i1 && status == MR_OK; i += ni) {
            block b = {
                .o0 = o, .no = o1 - o < no ? o1 - o : no, .i0 = i, .ni = i1 - i < ni ? i1 - i : ni};
            status = tile_block(queue, job, &b, counters, error);
        }
    return status;
}

/* Rows of chunks [b->o0, +no) from tables to results: every vector, all columns. */
static mr_status apply_block(mr_que *queue, const mr_drv_rgu *job, block *b, mr_counters *counters,
                             mr_drv_error *error) {
    const mr_rgu_job *j = &job->job;
    size_t records = (size_t)b->no * b->ni * j->terms;
    mr_drv_view rm, sm, any;
    mr_status status = tables(queue, job, b, counters, error);
    if (status == MR_OK)
        status = scratch(queue, 2, records << j->n << 2, &rm, error);
    if (status == MR_OK)
        status = scratch(queue, 3, records << j->n << 2, &sm, error);
    if (status == MR_OK)
        status = scratch(queue, 4, records << 2, &any, error);
    if (status != MR_OK)
        return status;
    const mr_drv_arg spin[] = {buffer(job->seeds), buffer(b->r), buffer(b->s), buffer(rm),
                               buffer(sm),         buffer(any),  i32(j->n),    i32(j->terms),
                               i32(j->chunks_in),  i32(b->o0),   i32(b->i0),   i32(b->ni)};
    status = run(queue, "rgu_spin", spin, sizeof spin / sizeof *spin, records, 2, 1, LANES,
                 counters, error);
    if (status != MR_OK)
        return status;
    uint32_t mode = (j->saturate ? 16u : 0u) | (job->row_scale.mem ? 32u : 0u);
    const mr_drv_arg apply[] = {
        buffer(job->seeds),     buffer(rm),         buffer(sm),         buffer(any),
        buffer(job->row_scale), buffer(job->src),   buffer(job->dst),   i32(j->n),
        i32(j->terms),          i32(j->chunks_in),  i32(b->o0),         i32(j->d_in),
        i32(j->d_out),          u32(j->src_stride), u32(j->dst_stride), i32(mode),
        f32(j->scale)};
    return run(queue, "rgu_apply", apply, sizeof apply / sizeof *apply, j->batch, b->no, 1, LANES,
               counters, error);
}

static mr_status apply(mr_que *queue, const mr_drv_rgu *job, mr_counters *counters,
                       mr_drv_error *error) {
    const mr_rgu_job *j = &job->job;
    size_t row_bytes = (size_t)j->chunks_in * j->terms << j->n << 2;
    uint32_t no = row_bytes < TABLE_BYTES ? (uint32_t)(TABLE_BYTES / row_bytes) : 1;
    mr_status status = MR_OK;
    for (uint32_t o = 0; o < j->chunks_out && status == MR_OK; o += no) {
        block b = {
            .o0 = o, .no = j->chunks_out - o < no ? j->chunks_out - o : no, .ni = j->chunks_in};
        status = apply_block(queue, job, &b, counters, error);
    }
    return status;
}

mr_status mr_rgu_by_kernels(mr_que *queue, const mr_drv_rgu *job, mr_counters *counters,
                            mr_drv_error *error) {
    return job->apply ? apply(queue, job, counters, error) : tile(queue, job, counters, error);
}
