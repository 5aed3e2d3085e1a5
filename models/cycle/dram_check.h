/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays a trace of DRAM commands against the timing table of a part and tells what it breaks.
 * Written from the table alone, in nanoseconds and bank by bank; it shares nothing with the timing
 * model or the RTL, whose traces it judges.
 */
#ifndef MODELS_CYCLE_DRAM_CHECK_H
#define MODELS_CYCLE_DRAM_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "models/cycle/dram.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint64_t cycle;
    uint32_t group;
    int command; /* MR_DRAM_ACT .. MR_DRAM_REF */
    uint32_t banks, row, column;
} mr_dram_command;

typedef struct mr_dram_check mr_dram_check;

/* For a chip of `groups` groups. NULL: no memory, or groups is 0. */
mr_dram_check *mr_dram_check_create(const mr_dram_config *config, size_t groups);
void mr_dram_check_destroy(mr_dram_check *check);

/*
 * The next command; cycles never go back. NULL: it is legal. Otherwise the rule it breaks, as a
 * sentence that lives until the next call; the command counts as done all the same, so that one
 * mistake is not told again by what follows.
 */
const char *mr_dram_check_command(mr_dram_check *check, const mr_dram_command *command);

/* The trace ends before cycle `cycle`: NULL, or a bank whose refresh is overdue. */
const char *mr_dram_check_end(mr_dram_check *check, uint64_t cycle);

uint64_t mr_dram_check_violations(const mr_dram_check *check); /* so far */

#ifdef __cplusplus
}
#endif
#endif
