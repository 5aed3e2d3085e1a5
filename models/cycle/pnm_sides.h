/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of a group, for models/cycle/pnm.c: when a descriptor that starts at a cycle ends.
 * Cycle `start` is that of the side's start pulse, the end that of its done pulse. */
#ifndef MODELS_CYCLE_PNM_SIDES_H
#define MODELS_CYCLE_PNM_SIDES_H

#include "models/cycle/pnm.h"

/* Cycles in which the matrix side has the scratchpad's read port, in order of time. */
typedef struct {
    uint64_t first, end;
} pnm_window;

typedef struct {
    uint64_t end, streamed; /* cycles in which the lanes multiply */
    pnm_window reads;
} pnm_matrix_run;

pnm_matrix_run pnm_time_matvec(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t start,
                               const uint8_t *desc);
uint64_t pnm_time_wstore(const mr_pnm_machine *m, mr_dram *dram, size_t group, uint64_t start,
                         const uint8_t *desc);
uint64_t pnm_time_vec(const mr_pnm_machine *m, uint64_t start, const uint8_t *desc,
                      const pnm_window *window, size_t windows);

/* A field of a descriptor: PNM_FIELD(desc, MATVEC_KC). */
uint64_t pnm_field(const uint8_t *desc, unsigned lsb, unsigned bits);
#define PNM_FIELD(desc, name) pnm_field(desc, MR_PNM_D_##name##_LSB, MR_PNM_D_##name##_BITS)

/* A column of the machine's banks for column `col` of the built unit's; columns likewise. */
uint64_t pnm_columns(const mr_pnm_machine *m, uint64_t col);

#endif
