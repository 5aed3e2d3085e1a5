/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file into the tables of a NIC. */
#ifndef HOST_NIC_APPLY_H
#define HOST_NIC_APPLY_H

#include "host/nic/config.h"
#include "host/nic/port.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_nic_settings {
    uint8_t rank; /* a row of the configuration's nodes */
    bool chain;
    uint32_t rto, slot_timeout; /* cycles, 0: off */
} mr_nic_settings;

/*
 * Gives NIC `index` of the link its options and all rows of the configuration. The blocks that name
 * the rank get the pages of its KV memory from 0 on, in the file's order. MR_LIMIT: the KV memory
 * or the directory is too small for them.
 */
mr_status mr_nic_apply(mr_nic_link *l, unsigned index, const mr_nic_config *c,
                       const mr_nic_settings *s);

#ifdef __cplusplus
}
#endif
#endif
