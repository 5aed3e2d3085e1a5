/* SPDX-License-Identifier: Apache-2.0 */
/* Between mr_nic_link_open() and what it opens. */
#ifndef HOST_NIC_LINK_H
#define HOST_NIC_LINK_H

#include "host/nic/port.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_nic_link_options {
    unsigned nodes;
    bool open;
    uint64_t seed;
    double loss, dup, reorder, corrupt, stall;
    uint32_t latency, bandwidth, memory_mib;
    const char *trace; /* NULL: none */
    unsigned xinit;    /* 0 zero, 1 ones, 2 random */
    /* how an implementation in a library of its own reports: mr_fail() of error.h */
    mr_status (*fail)(mr_status status, const char *format, ...);
} mr_nic_link_options;

/* sim/net/golden.c */
mr_status mr_golden_link_open(const mr_nic_link_options *o, mr_nic_link **link);

/* Exported by libmr_sim_nic.so and libmr_sim_nic_debug.so. */
#define MR_SIM_NIC_ENTRY "mr_sim_nic_open"
enum { MR_SIM_NIC_ABI = 1 };
typedef mr_status (*mr_sim_nic_open_fn)(uint32_t abi, const mr_nic_link_options *o,
                                        mr_nic_link **link);

#ifdef __cplusplus
}
#endif
#endif
