/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The near-memory unit on devices that have none: the lists are gone through here, where nothing
 * depends on data, and what they move and compute is left to kernels/pnm.cl and pnm_wide.cl, many
 * descriptors a launch. Scratchpads, banks and registers are memory of the device.
 */
#include <stdlib.h>
#include <string.h>

#include "host/core/internal.h"
#include "host/core/kernels.h"
#include "host/core/pnm_streams.h"
#include "models/golden/fn.h"
#include "models/golden/pnm_internal.h"

enum {
    LANES = 64, /* where a processor plays them more are slower, small descriptors idle most */
    CUDA_LANES = 256,
    LENGTHS = 7,          /* of streams, 4 to 256 */
    TABLES = 3 * LENGTHS, /* modes and lengths */
    TABLE_BYTES = MR_PNM_TABLE * 4,
    BANK_BYTES = MR_PNM_GROUPS * PES * MR_PNM_COLUMNS * WORDS * 4,
    SCRATCH_BYTES = MR_PNM_GROUPS * MR_PNM_SCRATCH_ROWS * WORDS * 4,
    WREG_BYTES = MR_PNM_GROUPS * MR_PNM_WREGS * 4,
    ACT_BYTES = MR_PNM_GROUPS * MR_PNM_ACT_COLUMNS * WORDS * 4,
    FN_BYTES = 2 * 128 * 3 * 8,
    FLAG_BYTES = MR_PNM_GROUPS * 2 * 4,
    BATCH_OPS = 1 << 15,  /* descriptors that are collected before they are launched */
    BATCH_COST = 1 << 28, /* and what they may take, about nanoseconds of a processor */
    LOOK_EVERY = 4096     /* descriptors between looks at whether to stop */
};

/* Memory of the device, some of it zeros when it is new. */
enum { SCRATCH, BANK, BANK_WIDE, WREG, ACTS, TABLE, FN, FLAGS, OPS, CUTS, MEMORIES };

typedef struct mr_pnm_unit {
    pthread_mutex_t lock; /* one job at a time */
    struct {
        void *mem;
        size_t bytes;
    } m[MEMORIES];
    mr_pnm_gen gen; /* of the split tables */
    unsigned cut;
    bool made[TABLES];
} mr_pnm_unit;

typedef struct job {
    mr_que *queue;
    mr_pnm_unit *unit;
    const mr_drv_pnm *drv;
    uint64_t base; /* address of the view's first byte */
    uint8_t *list[MR_PNM_GROUPS];
    mr_pnm_walk walk;
    pnm_streams streams;
    uint64_t fetched, elements[MR_PNM_GROUPS], products;
    mr_counters launches; /* the job's time is from its start to its end, not theirs */
    mr_status status;     /* of the device; the walk ends when it is not MR_OK */
    mr_drv_error *error;
} job;

bool mr_pnm_has_kernels(void) {
    return mr_kernel_find("pnm_run") && mr_kernel_find("pnm_wide_run");
}

/* ---- The unit's memories ----------------------------------------------------------------------
 */

mr_pnm_unit *mr_pnm_unit_new(void) {
    mr_pnm_unit *unit = calloc(1, sizeof *unit);
    if (unit)
        pthread_mutex_init(&unit->lock, NULL);
    return unit;
}

static void give_back(mr_dev *dev, mr_pnm_unit *unit, int which) {
    if (unit->m[which].mem)
        dev->driver->free(dev->drv, unit->m[which].mem);
    unit->m[which].mem = NULL;
    unit->m[which].bytes = 0;
}

void mr_pnm_unit_free(mr_dev *dev) {
    mr_pnm_unit *unit = dev->pnm;
    if (!unit)
        return;
    for (int i = 0; i < MEMORIES; i++)
        give_back(dev, unit, i);
    pthread_mutex_destroy(&unit->lock);
    free(unit);
    dev->pnm = NULL;
}

static mr_status put(job *j, int which, size_t offset, const void *data, size_t bytes) {
    mr_dev *dev = j->queue->dev;
    return dev->driver->copy(dev->drv, j->unit->m[which].mem, offset, (void *)data, bytes,
                             MR_TO_DEVICE, j->error);
}

/* Work that was launched may still use what is about to change. */
static mr_status settle(job *j) {
    return j->queue->dev->driver->finish(j->queue->dev->drv, j->queue->drv, j->error);
}

/* At least `bytes` of memory; *fresh: it is new, its contents undefined. */
static mr_status have(job *j, int which, size_t bytes, bool *fresh) {
    mr_dev *dev = j->queue->dev;
    mr_pnm_unit *unit = j->unit;
    *fresh = unit->m[which].bytes < bytes;
    if (!*fresh)
        return MR_OK;
    give_back(dev, unit, which);
    mr_status status = dev->driver->alloc(dev->drv, bytes, &unit->m[which].mem, j->error);
    if (status == MR_OK)
        unit->m[which].bytes = bytes;
    return status;
}

static mr_status clear(job *j, int which) {
    uint8_t *zeros = calloc(1, j->unit->m[which].bytes);
    if (!zeros)
        return mr_drv_fail(j->error, MR_OUT_OF_MEMORY, "no host memory");
    mr_status status = put(j, which, 0, zeros, j->unit->m[which].bytes);
    free(zeros);
    return status;
}

/* What begins with certain contents does not stay without them: the next job tries again. */
static mr_status begin(job *j, int which, size_t bytes, mr_status (*fill)(job *j, int which)) {
    bool fresh;
    mr_status status = have(j, which, bytes, &fresh);
    if (status == MR_OK && fresh && (status = fill(j, which)) != MR_OK)
        give_back(j->queue->dev, j->unit, which);
    return status;
}

static mr_status put_functions(job *j, int which) {
    int64_t fn[2 * 128][3];
    for (int i = 0; i < 2 * 128; i++) {
        const mr_fn_row *row = i < 128 ? &mr_fn_exp2_rows[i] : &mr_fn_log2_rows[i - 128];
        fn[i][0] = row->c0;
        fn[i][1] = row->c1;
        fn[i][2] = row->c2;
    }
    return put(j, which, 0, fn, sizeof fn);
}

static mr_status prepare(job *j) {
    bool wide = j->drv->job.wide, fresh;
    mr_status status = begin(j, SCRATCH, SCRATCH_BYTES, clear);
    if (status == MR_OK)
        status = begin(j, WREG, WREG_BYTES, clear);
    if (status == MR_OK)
        status = begin(j, wide ? BANK_WIDE : BANK, BANK_BYTES, clear);
    if (status == MR_OK)
        status = begin(j, FN, FN_BYTES, put_functions);
    if (status == MR_OK)
        status = have(j, ACTS, ACT_BYTES, &fresh);
    if (status == MR_OK)
        status = have(j, TABLE, TABLES * (size_t)TABLE_BYTES, &fresh);
    if (status == MR_OK)
        status = have(j, FLAGS, FLAG_BYTES, &fresh);
    return status == MR_OK ? clear(j, FLAGS) : status;
}

/* ---- Significand products ---------------------------------------------------------------------
 */

/* Where the table of a MATVEC begins; it is made when it is first asked for. */
static mr_status table_of(job *j, const uint8_t *d, uint32_t *at) {
    mr_pnm_unit *unit = j->unit;
    mr_pnm_mult_mode mode = mr_pnm_mult_default();
    unsigned log = (unsigned)FIELD(d, MATVEC_LOG_LENGTH);
    mode.kind = (mr_pnm_kind)FIELD(d, MATVEC_MODE);
    if (mode.kind == MR_PNM_EXACT)
        log = 2; /* has no streams */
    unsigned slot = (unsigned)mode.kind * LENGTHS + log - 2;
    *at = slot * MR_PNM_TABLE;
    if (unit->made[slot])
        return MR_OK;
    mode.gen = mode.kind == MR_PNM_SPLIT ? unit->gen : MR_PNM_UNARY;
    mode.cut = mode.kind == MR_PNM_SPLIT ? unit->cut : 0;
    mode.stream = 1u << log;
    uint16_t *products = malloc(MR_PNM_TABLE * sizeof *products);
    uint32_t *table = malloc(TABLE_BYTES);
    mr_status status = MR_OUT_OF_MEMORY;
    if (!products || !table || mr_pnm_mult_table(&mode, products)) {
        mr_drv_fail(j->error, status, "no host memory");
    } else {
        for (unsigned i = 0; i < MR_PNM_TABLE; i++) /* the activation's fraction first */
            table[i % 128 * 128 + i / 128] = products[i];
        status = put(j, TABLE, slot * (size_t)TABLE_BYTES, table, TABLE_BYTES);
    }
    free(products);
    free(table);
    unit->made[slot] = status == MR_OK;
    return status;
}

/* Takes the job's multiplier: tables of another one are forgotten. */
static mr_status take_multiplier(job *j) {
    const mr_pnm_job *job = &j->drv->job;
    mr_pnm_mult_mode mode = mr_pnm_mult_default();
    mode.gen = (mr_pnm_gen)job->gen;
    mode.cut = job->cut;
    const char *wrong = mr_pnm_mult_check(&mode);
    if (wrong || (job->gen != MR_PNM_UNARY && job->gen != MR_PNM_CENTRED))
        return mr_drv_fail(j->error, MR_UNSUPPORTED,
                           "no near-memory unit has multipliers of generator %u with cut %u: %s",
                           job->gen, job->cut, wrong ? wrong : "it is unary or centred");
    if (j->unit->gen != mode.gen || j->unit->cut != mode.cut)
        memset(j->unit->made, 0, LENGTHS * sizeof j->unit->made[0]);
    j->unit->gen = mode.gen;
    j->unit->cut = mode.cut;
    return MR_OK;
}

/* ---- Launching --------------------------------------------------------------------------------
 */

static bool told_to_stop(mr_que *queue) {
    pthread_mutex_lock(&queue->lock);
    bool stop = queue->paused;
    pthread_mutex_unlock(&queue->lock);
    return stop;
}

static mr_drv_arg buffer(const job *j, int which) {
    return (mr_drv_arg){.kind = MR_ARG_BUFFER,
                        .view = {j->unit->m[which].mem, 0, j->unit->m[which].bytes}};
}

static mr_status launch(job *j, const mr_kernel *kernel, const pnm_launch *l) {
    mr_dev *dev = j->queue->dev;
    const mr_drv_view *v = &j->drv->memory;
    size_t lanes = strcmp(dev->driver->scheme, "cuda") ? LANES : CUDA_LANES;
    const size_t global[3] = {l->streams * lanes, 1, 1}, local[3] = {lanes, 1, 1};
    const mr_drv_arg args[] = {
        buffer(j, OPS),
        buffer(j, CUTS),
        {.kind = MR_ARG_I32, .u.i32 = (int32_t)l->first},
        buffer(j, SCRATCH),
        buffer(j, j->drv->job.wide ? BANK_WIDE : BANK),
        buffer(j, WREG),
        buffer(j, ACTS),
        buffer(j, TABLE),
        buffer(j, FN),
        buffer(j, FLAGS),
        {.kind = MR_ARG_BUFFER, .view = {v->mem, 0, v->offset + v->bytes}},
    };
    if (kernel->num_args != sizeof args / sizeof args[0])
        return mr_drv_fail(j->error, MR_DEVICE_ERROR, "kernel %s takes %zu arguments", kernel->name,
                           kernel->num_args);
    return dev->driver->launch(dev->drv, j->queue->drv, kernel, args, global, local, &j->launches,
                               j->error);
}

static mr_status run_plan(job *j, const pnm_plan *plan) {
    const mr_kernel *kernel = mr_kernel_find(j->drv->job.wide ? "pnm_wide_run" : "pnm_run");
    size_t bytes = plan->num_ops * MR_PNM_DESC_BYTES, cuts = plan->num_cuts * sizeof *plan->cuts;
    bool fresh;
    mr_status status = settle(j);
    if (status == MR_OK)
        status = have(j, OPS, bytes, &fresh);
    if (status == MR_OK)
        status = have(j, CUTS, cuts, &fresh);
    if (status == MR_OK)
        status = put(j, OPS, 0, plan->ops, bytes);
    if (status == MR_OK)
        status = put(j, CUTS, 0, plan->cuts, cuts);
    for (size_t i = 0; status == MR_OK && i < plan->num_launches; i++) {
        if (told_to_stop(j->queue))
            return mr_drv_fail(j->error, MR_CANCELLED, "cancelled while it ran");
        status = launch(j, kernel, &plan->launches[i]);
    }
    return status;
}

static mr_status run_collected(job *j) {
    pnm_plan plan;
    if (!j->streams.count)
        return MR_OK;
    if (!pnm_streams_plan(&j->streams, &plan))
        return mr_drv_fail(j->error, MR_OUT_OF_MEMORY, "no host memory");
    mr_status status = run_plan(j, &plan);
    pnm_plan_free(&plan);
    return status;
}

/* ---- The walk's functions ---------------------------------------------------------------------
 */

static const uint8_t *fetch(void *context, unsigned group, uint32_t index) {
    job *j = context;
    if (++j->fetched % LOOK_EVERY == 0 && told_to_stop(j->queue))
        j->status = mr_drv_fail(j->error, MR_CANCELLED, "cancelled while it ran");
    return j->status == MR_OK ? j->list[group] + (size_t)index * MR_PNM_DESC_BYTES : NULL;
}

static void passed(void *context, unsigned group, const uint8_t *d) {
    pnm_streams_passed(&((job *)context)->streams, group, d);
}

/* The place in the buffer instead of an address. */
static unsigned place(const job *j, unsigned group, uint8_t *d) {
    uint64_t addr = mr_pnm_walk_address(&j->walk, group, d);
    uint64_t size = FIELD(d, LOAD_ROWS) * WORDS * 4, room = j->drv->memory.bytes;
    if (d[0] == MR_PNM_DESC_WLOAD)
        size = FIELD(d, WLOAD_COLUMNS) * PES * WORDS * (j->drv->job.wide ? 4 : 2);
    if (addr < j->base || addr - j->base > room || room - (addr - j->base) < size)
        return d[0] == MR_PNM_DESC_STORE ? MR_PNM_ERR_WRITE : MR_PNM_ERR_READ;
    addr += j->drv->memory.offset - j->base;
    memcpy(d + MR_PNM_D_LOAD_ADDR_LSB / 8, &addr, 8);
    return MR_PNM_ERR_OK;
}

static unsigned execute(void *context, unsigned group, const uint8_t *desc) {
    job *j = context;
    uint8_t d[MR_PNM_DESC_BYTES];
    uint32_t table = 0;
    memcpy(d, desc, sizeof d);
    switch (d[0]) {
    case MR_PNM_DESC_LOAD:
    case MR_PNM_DESC_STORE:
    case MR_PNM_DESC_WLOAD: {
        unsigned error = place(j, group, d);
        if (error)
            return error;
        break;
    }
    case MR_PNM_DESC_MATVEC:
        j->products +=
            FIELD(d, MATVEC_KC) * WORDS * FIELD(d, MATVEC_OUTPUTS) * FIELD(d, MATVEC_VECTORS);
        if (!j->drv->job.wide)
            j->status = table_of(j, d, &table);
        break;
    case MR_PNM_DESC_VEC:
        j->elements[group] += FIELD(d, VEC_COUNT) * FIELD(d, VEC_WIDTH) * WORDS;
        break;
    default:
        break;
    }
    if (j->status == MR_OK && !pnm_streams_add(&j->streams, group, d, table))
        j->status = mr_drv_fail(j->error, MR_OUT_OF_MEMORY, "no host memory");
    if (j->status == MR_OK && (j->streams.count >= BATCH_OPS || j->streams.cost >= BATCH_COST))
        j->status = run_collected(j);
    return MR_PNM_ERR_OK;
}

/* ---- A job ------------------------------------------------------------------------------------
 */

static mr_status read_lists(job *j, uint32_t counts[MR_PNM_GROUPS]) {
    mr_dev *dev = j->queue->dev;
    mr_status status = MR_OK;
    for (unsigned g = 0; g < MR_PNM_GROUPS && status == MR_OK; g++) {
        size_t bytes = (size_t)j->drv->job.list[g].count * MR_PNM_DESC_BYTES;
        counts[g] = j->drv->job.list[g].count;
        if (!bytes)
            continue;
        j->list[g] = malloc(bytes);
        if (!j->list[g])
            return mr_drv_fail(j->error, MR_OUT_OF_MEMORY, "no host memory");
        status = dev->driver->copy(dev->drv, j->drv->memory.mem,
                                   j->drv->memory.offset + j->drv->job.list[g].offset, j->list[g],
                                   bytes, MR_FROM_DEVICE, j->error);
    }
    return status;
}

static mr_status read_flags(job *j, uint32_t *status_bits) {
    mr_dev *dev = j->queue->dev;
    uint32_t flags[MR_PNM_GROUPS][2];
    mr_status status = dev->driver->copy(dev->drv, j->unit->m[FLAGS].mem, 0, flags, sizeof flags,
                                         MR_FROM_DEVICE, j->error);
    for (unsigned g = 0; status == MR_OK && g < MR_PNM_GROUPS; g++)
        *status_bits |= (flags[g][0] ? MR_PNM_RANGE : 0) | (flags[g][1] ? MR_PNM_NONFINITE : 0);
    return status;
}

static mr_status run_job(job *j, mr_pnm_counters *pnm) {
    uint32_t counts[MR_PNM_GROUPS];
    mr_pnm_result result;
    mr_status status = take_multiplier(j);
    if (status == MR_OK)
        status = prepare(j);
    if (status == MR_OK)
        status = read_lists(j, counts);
    if (status != MR_OK)
        return status;
    mr_pnm_outcome outcome = mr_pnm_walk_run(&j->walk, counts, &result);
    if (j->status == MR_OK) /* after a failure too: what came before it has been done */
        j->status = run_collected(j);
    if (j->status == MR_OK)
        j->status = settle(j);
    if (j->status != MR_OK)
        return j->status;
    if (outcome == MR_PNM_DEADLOCK)
        return mr_drv_fail(j->error, MR_DEVICE_ERROR,
                           "the lists stand still: group %u waits at descriptor %u for what no "
                           "group will do",
                           result.group, result.index);
    if (outcome == MR_PNM_FAILED)
        return mr_drv_fail(j->error, MR_DEVICE_ERROR,
                           "the unit gave up the job: error %u (%s), group %u, descriptor %u",
                           result.error, mr_pnm_error_name(result.error), result.group,
                           result.index);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        pnm->group[g].vec_elements = j->elements[g];
    pnm->products = j->products;
    return read_flags(j, &pnm->status);
}

mr_status mr_pnm_by_kernels(mr_que *queue, const mr_drv_pnm *drv, uint64_t base,
                            mr_counters *counters, mr_pnm_counters *pnm, mr_drv_error *error) {
    job j = {.queue = queue, .unit = queue->dev->pnm, .drv = drv, .base = base, .error = error};
    mr_drv_error ignored;
    uint64_t begin = mr_now_ns();
    j.walk.context = &j;
    j.walk.fetch = fetch;
    j.walk.execute = execute;
    j.walk.passed = passed;
    pthread_mutex_lock(&j.unit->lock);
    mr_status status = run_job(&j, pnm);
    if (status != MR_OK) { /* launches hold what is given back now */
        j.error = &ignored;
        settle(&j);
    }
    pthread_mutex_unlock(&j.unit->lock);
    counters->host_ns = mr_now_ns() - begin;
    pnm_streams_free(&j.streams);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        free(j.list[g]);
    return status;
}
