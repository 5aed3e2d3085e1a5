/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prior near-memory machines at the work of the near-memory unit: the same descriptors, timed on
 * banks with units that multiply and add and a host that does the rest. Every assumption favours
 * them where their publications leave a choice; docs/pnm-study.md lists them.
 *
 * A channel works on images of its own. Its units share every command. A MATVEC opens the rows that
 * its weights lie in, writes vectors into the channel's buffer over the channel's bus (32 bytes in
 * bus_ns), reads a column of every unit's bank in tCCD and reads finished sums back over the bus.
 * Vectors stay in the buffer as far as they fit; of taking vectors or rows first, the shorter is
 * done; units share the inputs of an output where there are fewer outputs than units. A threshold
 * at 0 (ReLU) costs nothing. Whatever else VEC does is done by the host in no time.
 *
 * Many images: banks and bus are both at work all the time, so the one that has more to do sets the
 * time, and round trips are hidden. `alone`: a vector comes before its columns, sums after theirs,
 * and each round trip that something depends on is waited for.
 */
#ifndef MODELS_CYCLE_RIVAL_H
#define MODELS_CYCLE_RIVAL_H

#include "models/cycle/pnm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* models/cycle/rivals/NAME.json */
typedef struct {
    char name[32];
    uint32_t package_channels; /* of what is counted as one: a die or a stack */
    uint32_t buffer_bytes;     /* of activations, a channel */
    double bus_ns;             /* 32 bytes between the host and a channel */
    double round_trip_ns;      /* from a sum read to a vector that depends on it */
    double multiply_pj, add_pj,
        operand_pj; /* a product; operand: an activation to its multiplier */
    double link_bit_pj;
    mr_dram_config dram;
} mr_rival;

/* As mr_pnm_machine_load(). */
bool mr_rival_load(const char *file, const char *drams, mr_rival *out, char *error, size_t size);

typedef struct {
    double ns; /* of one pass, the mean of several */
    double dram_j, operand_j, multiply_j, link_j;
    double products, bus_bytes, trips;
} mr_rival_timing;

/* A list's descriptors on one channel, several times over. False: no memory. */
bool mr_rival_time(const mr_rival *rival, const mr_pnm_list *list, bool alone,
                   mr_rival_timing *out);

#ifdef __cplusplus
}
#endif
#endif
