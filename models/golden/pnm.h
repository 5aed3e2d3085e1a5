/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Golden model of the near-memory unit: a chip of MR_PNM_GROUPS groups runs one list of
 * descriptors a group, bit for bit what rtl/pnm/pnm_top.sv computes. The arithmetic is
 * docs/pnm-arithmetic.md, the descriptors docs/pnm-descriptors.md. It has no notion of time: groups
 * take turns, each running until it has to wait. One chip is used by one thread at a time.
 */
#ifndef MODELS_GOLDEN_PNM_H
#define MODELS_GOLDEN_PNM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/pnm_desc.h>

#include "models/golden/pnm_mult.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_chip mr_pnm_chip;

/* What a job may read and write: bytes from address `base` on. */
typedef struct mr_pnm_memory {
    uint8_t *data;
    uint64_t base;
    uint64_t bytes;
} mr_pnm_memory;

/* A group's list: `count` descriptors of 64 bytes at address `addr`, 0 where the group has none. */
typedef struct mr_pnm_prog {
    uint64_t addr;
    uint32_t count;
} mr_pnm_prog;

/* mr_pnm_result.status: what happened in a job, not an error in itself. */
#define MR_PNM_STATUS_RANGE 1u     /* a weight's exponent above the descriptor's wexp */
#define MR_PNM_STATUS_NONFINITE 2u /* an infinity or NaN came out of an operation, see docs */

/* What of a job has no error code of the unit. */
typedef enum mr_pnm_outcome {
    MR_PNM_RAN = 0,
    MR_PNM_FAILED,   /* error, group, index say what and where */
    MR_PNM_DEADLOCK, /* no group can go on; group and index name the first one that waits */
} mr_pnm_outcome;

typedef struct mr_pnm_result {
    mr_pnm_outcome outcome;
    unsigned error, group;
    uint32_t index;
    unsigned status;
    uint64_t products;     /* multiplications of MATVEC, padding included */
    uint64_t vec_elements; /* elements VEC went through */
    uint64_t descriptors;
    /* the first descriptor whose `overlap` is set though its rows meet those in flight */
    bool hazard;
    unsigned hazard_group;
    uint32_t hazard_index;
} mr_pnm_result;

/* Multipliers with generator `gen` (unary or centred) and `cut` binary fraction bits; wide: banks
 * and activations keep float32, see docs. NULL: no memory, or no such multiplier. Fresh
 * scratchpads and banks are zero. */
mr_pnm_chip *mr_pnm_chip_create(mr_pnm_gen gen, unsigned cut, bool wide);
void mr_pnm_chip_destroy(mr_pnm_chip *chip);

/*
 * Runs a job: all groups' lists from their first descriptor. Semaphores and iteration counters
 * start at 0; scratchpads, banks and exponent registers keep what the job before left. Memory is
 * written by STORE alone.
 */
mr_pnm_outcome mr_pnm_chip_run(mr_pnm_chip *chip, const mr_pnm_memory *memory,
                               const mr_pnm_prog progs[MR_PNM_GROUPS], mr_pnm_result *result);

/* Words of scratchpad row `row` of a group, and codes of column `col` of an element's bank (of a
 * chip that is not wide); both can be changed between jobs. */
uint32_t *mr_pnm_chip_row(mr_pnm_chip *chip, unsigned group, unsigned row);
uint16_t *mr_pnm_chip_column(mr_pnm_chip *chip, unsigned group, unsigned pe, unsigned col);
uint8_t mr_pnm_chip_wreg(const mr_pnm_chip *chip, unsigned group, unsigned reg);

/* The number formats, for others that check them. */
uint16_t mr_pnm_bf16(uint32_t fp32); /* nearest even, NaN becomes 7FC0 */
uint32_t mr_pnm_exp2(uint32_t fp32); /* the vector unit's 2^x */
uint32_t mr_pnm_log2(uint32_t fp32); /* and its binary logarithm */
uint64_t mr_pnm_field(const uint8_t desc[MR_PNM_DESC_BYTES], unsigned lsb, unsigned bits);

#ifdef __cplusplus
}
#endif
#endif
