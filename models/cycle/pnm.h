/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the near-memory unit does what: the timing of programs of descriptor lists
 * (docs/pnm-descriptors.md), as rtl/pnm runs them. Time only, no data. Cycles are the clock of the
 * machine's DRAM, which its elements share.
 *
 * A group has a matrix side (MATVEC, WSTORE, WLOAD) and a vector side (VEC, LOAD, STORE, SEND). A
 * descriptor starts when all before it are finished, or, with `overlap`, when its own side is free.
 * Every column of a MATVEC goes through models/cycle/dram.h. LOAD, STORE and WLOAD of all groups
 * share one port to memory, rows sent between groups one bus. What is left out: the vector side
 * waiting for single rows of the scratchpad that the matrix side reads or writes between its loads
 * of activations, and descriptors that come late because the port is full.
 *
 * The constants in pnm.c are read from the RTL; tests/unit/pnm_time holds the model to it.
 */
#ifndef MODELS_CYCLE_PNM_H
#define MODELS_CYCLE_PNM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "models/cycle/dram.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_PNM_MACHINE_GROUPS = 64 };

/* A unit, and how many of it a chip has: models/cycle/pnm/NAME.json. */
typedef struct {
    char name[32];
    uint32_t units;         /* of a chip, each with a port and groups of its own */
    uint32_t groups;        /* of a unit */
    uint32_t elements;      /* of a group, one beside each of its banks */
    uint32_t lanes;         /* multipliers of an element: 16-bit weights of a column */
    uint32_t stream_bits;   /* of a multiplier in a cycle */
    uint32_t vector_lanes;  /* of a group's vector unit */
    uint32_t load_rows;     /* scratchpad rows a cycle while activations are loaded */
    uint32_t port_bytes;    /* of the port in a cycle, each way */
    uint32_t read_latency;  /* cycles from an address to its first data */
    uint32_t write_latency; /* cycles from the last data to the answer */
    mr_dram_config dram;    /* named in the file, from models/cycle/dram */
} mr_pnm_machine;

/*
 * Reads a machine and the DRAM it names, which is sought in the folder `drams`. False: `error`
 * names the file and the key, *out is not to be used.
 */
bool mr_pnm_machine_load(const char *file, const char *drams, mr_pnm_machine *out, char *error,
                         size_t size);

/* A group's list: descriptors of 64 bytes one after the other. */
typedef struct {
    const uint8_t *desc;
    uint32_t count;
} mr_pnm_list;

typedef struct {
    uint64_t cycles;              /* of the job, as the unit's register counts them */
    uint64_t bytes_in, bytes_out; /* descriptors as often as they run, not as often as read ahead */
    struct {
        uint64_t mv_cycles, stream_cycles, vec_cycles, wait_cycles; /* as the unit's registers */
        uint64_t end; /* cycle in which the list has ended */
        mr_dram_count dram;
    } group[MR_PNM_MACHINE_GROUPS];
} mr_pnm_timing;

/*
 * Runs a list a group on one unit of the machine; groups beyond `lists` have none. The descriptors
 * have been checked (host/pnm/builder.h does). `watch`, if not NULL, sees every DRAM command, in
 * the order of time within a group. False: `error` says why there is no timing: no memory, a
 * machine with fewer groups, a program that stands still.
 */
bool mr_pnm_time(const mr_pnm_machine *machine, const mr_pnm_list *list, size_t lists,
                 mr_dram_watch *watch, void *user, mr_pnm_timing *out, char *error, size_t size);

#ifdef __cplusplus
}
#endif
#endif
