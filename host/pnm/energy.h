/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program does, counted from its descriptors, and an estimate of the energy that takes
 * (models/cycle/pnm_energy.json). Dynamic energy only.
 */
#ifndef HOST_PNM_ENERGY_H
#define HOST_PNM_ENERGY_H

#include <millrace/pnm.h>

#include "host/pnm/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_tally {
    uint64_t exact_products, hybrid_products, stream_bits;
    uint64_t vector_elements;
    uint64_t scratch_rows; /* read or written */
    uint64_t link_bytes;   /* to or from memory, descriptors included */
    /* commands to all four banks of a group: those the lists ask for, with every DRAM row opened
     * and copied once an operation */
    uint64_t dram_act, dram_rd, dram_wr;
} mr_pnm_tally;

/* Loops counted as often as they run. */
void mr_pnm_program_tally(const mr_pnm_program *p, mr_pnm_tally *out);

/* operands: weights from the row registers and activations to the multipliers */
typedef struct mr_pnm_energy {
    double dram, operands, multiply, accumulate, vector, scratch, link; /* joules */
    double total;
} mr_pnm_energy;

/* counters, if they are a device's, say what the DRAM was really asked; else NULL. */
void mr_pnm_energy_of(const mr_pnm_tally *tally, const mr_pnm_counters *counters,
                      mr_pnm_energy *out);

/* The i-th coefficient's name and picojoules; NULL past the end. */
const char *mr_pnm_energy_coefficient(size_t i, double *pj);

#ifdef __cplusplus
}
#endif
#endif
