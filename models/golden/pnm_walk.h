/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the groups of a near-memory unit go through their lists of descriptors: fields, semaphores,
 * barriers and loops, errors and standstill. What the descriptors do to data is the caller's: the
 * golden model computes it at once, a device with compute kernels has it computed later, which is
 * possible because no decision here depends on data.
 */
#ifndef MODELS_GOLDEN_PNM_WALK_H
#define MODELS_GOLDEN_PNM_WALK_H

#include "models/golden/pnm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_walk {
    struct {
        uint32_t count; /* descriptors of the list */
        uint32_t pc, iteration;
        uint32_t barrier; /* groups of the barrier it stands at, 0: at none */
        uint32_t semaphore[MR_PNM_SEMAPHORES];
    } group[MR_PNM_GROUPS];
    mr_pnm_result *result;

    /* Set by the caller. */
    void *context;
    /* Descriptor `index` of a group's list; NULL: it cannot be read. */
    const uint8_t *(*fetch)(void *context, unsigned group, uint32_t index);
    /* Carries out a descriptor whose fields have been checked, SEND before its signal; gives
     * MR_PNM_ERR_*, or an error code of the caller's own: the walk ends with it. */
    unsigned (*execute)(void *context, unsigned group, const uint8_t *desc);
    /* The group goes on behind a WAIT, BARRIER (all its groups, one after the other) or LOOP. */
    void (*passed)(void *context, unsigned group, const uint8_t *desc);
} mr_pnm_walk;

/*
 * Goes through the lists from their first descriptors: groups take turns, each until it has to
 * wait. `counts` are the lengths of the lists. *result is cleared first; outcome, error, place and
 * number of descriptors are filled in here, the rest by the caller's functions.
 */
mr_pnm_outcome mr_pnm_walk_run(mr_pnm_walk *walk, const uint32_t counts[MR_PNM_GROUPS],
                               mr_pnm_result *result);

/* The address a LOAD, STORE or WLOAD of the group means in the iteration it is in. */
uint64_t mr_pnm_walk_address(const mr_pnm_walk *walk, unsigned group, const uint8_t *desc);

/* What MR_PNM_ERR_* means, in words. */
const char *mr_pnm_error_name(unsigned error);

#ifdef __cplusplus
}
#endif
#endif
