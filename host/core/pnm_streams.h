/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of the near-memory unit, put in order for compute kernels. What each group does
 * between two points where it hears of another stands on a level; a level's groups are independent
 * of each other and follow those of lower levels. Levels on which groups have little to do side by
 * side are strung together, so that long lists of small descriptors are few launches.
 */
#ifndef HOST_CORE_PNM_STREAMS_H
#define HOST_CORE_PNM_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/pnm_desc.h>

typedef struct pnm_op {
    uint8_t desc[MR_PNM_DESC_BYTES]; /* as kernels/pnm_ops.h takes it */
    uint32_t level, cost;
} pnm_op;

typedef struct pnm_streams {
    struct {
        pnm_op *op;
        size_t count, room;
        uint32_t level;
        uint32_t signal[MR_PNM_SEMAPHORES]; /* level that follows the last one sent there */
    } group[MR_PNM_GROUPS];
    size_t count;
    uint64_t cost; /* of all, about nanoseconds of a processor */
} pnm_streams;

/* What a device runs: launch i has `streams` of them, stream s the descriptors cuts[first + s] to
 * cuts[first + s + 1]. */
typedef struct pnm_launch {
    uint32_t first, streams;
} pnm_launch;
typedef struct pnm_plan {
    uint8_t *ops;
    size_t num_ops;
    uint32_t *cuts;
    size_t num_cuts;
    pnm_launch *launches;
    size_t num_launches;
} pnm_plan;

/*
 * Adds a checked descriptor that moves or computes to its group's stream; `table` is where a
 * MATVEC's table begins, and LOAD, STORE and WLOAD have their place in memory in their address.
 * SEND's signal is heard from then on. False: no memory.
 */
bool pnm_streams_add(pnm_streams *s, unsigned group, const uint8_t *desc, uint32_t table);

/* The group went on behind a WAIT or BARRIER (told for each of a barrier's groups) or LOOP. */
void pnm_streams_passed(pnm_streams *s, unsigned group, const uint8_t *desc);

/* Moves everything added so far into a plan; what is added later runs after it. False: no memory.
 */
bool pnm_streams_plan(pnm_streams *s, pnm_plan *plan);
void pnm_plan_free(pnm_plan *plan);
void pnm_streams_free(pnm_streams *s);

#endif
