/* SPDX-License-Identifier: Apache-2.0 */
/* Command descriptors (nic_desc.h) as a golden NIC understands them. */
#ifndef SIM_NET_GOLDEN_H
#define SIM_NET_GOLDEN_H

#include "host/nic/link.h"
#include "models/golden/nic.h"

typedef struct mr_golden_tables {
    mr_gnic *nic;
    int32_t job_of_row[MR_GNIC_JOBS]; /* -1: empty */
    uint64_t *keys;                   /* {job, layer, block} of every directory slot, and whether */
    bool *used;                       /* it has one: an entry goes when its last slot is emptied */
} mr_golden_tables;

/* False: out of memory. */
bool mr_golden_tables_init(mr_golden_tables *t, const mr_gnic_outputs *outputs, size_t kv_pages);

/* Executes one descriptor. MR_INVALID_ARGUMENT names the field that no NIC could take. */
mr_status mr_golden_command(mr_golden_tables *t, const uint8_t desc[MR_NIC_DESC_BYTES],
                            mr_status (*fail)(mr_status status, const char *format, ...));

/* Destroys the NIC too. */
void mr_golden_tables_free(mr_golden_tables *t);

#endif
