/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pnm.h - near-memory elements (PNM): jobs of descriptor lists on a queue of millrace.h.
 *
 * A chip has MR_PNM_GROUPS groups, each with a scratchpad, banks of weights and a list of
 * descriptors of 64 bytes (pnm_desc.h, docs/pnm-descriptors.md) that it runs at its own pace; the
 * arithmetic is docs/pnm-arithmetic.md. A job is the lists and everything they read and write, in
 * one buffer. host/pnm/builder.h makes lists with every check; these calls run what they are given.
 */
#ifndef MILLRACE_PNM_H
#define MILLRACE_PNM_H

#include <millrace/millrace.h>
#include <millrace/pnm_desc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The address by which descriptors name byte 0 of the buffer. It stays the same until the buffer is
 * destroyed or its device is reset: after a reset ask again. MR_UNSUPPORTED where no unit of the
 * device reads addresses from memory. On a device whose compute kernels do the unit's work a job
 * reaches its own buffer alone, and addresses of different buffers are apart.
 */
mr_status mr_buffer_address(mr_buffer *buffer, uint64_t *address);

/* Zeros where nothing is said otherwise. */
typedef struct mr_pnm_job {
    struct {
        uint64_t offset; /* of the first descriptor in `memory`, a multiple of 64 */
        uint32_t count;  /* descriptors; 0: the group has no list */
    } list[MR_PNM_GROUPS];
    /* The multipliers. A unit in hardware is built with one kind and refuses others with
     * MR_UNSUPPORTED, see mr_pnm_job_init(); compute kernels have all, with banks of their own for
     * `wide`. */
    uint8_t gen; /* stream generator of split products: 0 unary, 3 centred */
    uint8_t cut; /* upper fraction bits multiplied in binary, 0 to 6 */
    bool wide;   /* banks hold float32, products are those of float32 (docs/pnm-arithmetic.md) */
} mr_pnm_job;

/* No lists; centred generator, no cut: the multiplier that the simulated unit is built with. */
static inline mr_pnm_job mr_pnm_job_init(void) {
    mr_pnm_job job;
    memset(&job, 0, sizeof job);
    job.gen = 3;
    return job;
}

/*
 * Runs the lists of a job. `memory` is where they are, a view at a multiple of 64. Semaphores and
 * iteration counters start at 0; scratchpads, banks and exponent registers keep what the job before
 * left (zero after the device was opened or reset).
 *
 * MR_INVALID_ARGUMENT at submission: a list that does not lie in the buffer, or no list at all. The
 * event ends with MR_DEVICE_ERROR, naming group and descriptor, when a field is out of its range or
 * an address leads nowhere; what was stored before stays. Lists that wait for each other for ever
 * are a job that does not end: the caller's wait returns MR_TIMEOUT, and mr_device_reset() ends it.
 * Where compute kernels do the unit's work they are found, MR_DEVICE_ERROR; there a job ends with
 * MR_CANCELLED when its queue is destroyed. Jobs of several queues take turns at a device's unit.
 */
mr_status mr_pnm_run(mr_queue *queue, const mr_pnm_job *job, mr_view memory, mr_event **event);

/* Bits of mr_pnm_counters.status. */
#define MR_PNM_RANGE (1u << 0)     /* a weight's exponent was above the descriptor's wexp */
#define MR_PNM_NONFINITE (1u << 1) /* an infinity or NaN came out, docs/pnm-arithmetic.md */
#define MR_PNM_REFRESH (1u << 2)   /* a refresh came later than the DRAM allows */

/* What a job counted. `hardware` as in mr_counters: without it only status and products count. */
typedef struct mr_pnm_counters {
    bool hardware;
    uint32_t status;
    uint64_t cycles;    /* start accepted to done */
    uint64_t busy;      /* cycles in which an element or vector unit worked */
    uint64_t stall_in;  /* cycles waiting for memory to give */
    uint64_t stall_out; /* cycles waiting for memory to take */
    uint64_t items_in;  /* bytes read */
    uint64_t items_out; /* bytes written */
    uint64_t products;  /* multiplications of MATVEC, padding included */
    struct {
        uint64_t mv_cycles;     /* matrix side at work */
        uint64_t stream_cycles; /* multipliers at work: utilisation is this over mv_cycles */
        uint64_t vec_cycles;    /* vector unit at work */
        uint64_t vec_elements;  /* elements it went through */
        uint64_t wait_cycles;   /* at WAIT and BARRIER */
        uint64_t dram_act, dram_rd, dram_wr, dram_pre, dram_ref; /* commands to all four banks */
    } group[MR_PNM_GROUPS];
} mr_pnm_counters;

/* Counters of a PNM job that ended with MR_OK, as mr_event_counters(). MR_INVALID_ARGUMENT for an
 * event of other work. */
mr_status mr_pnm_event_counters(mr_event *event, mr_pnm_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
