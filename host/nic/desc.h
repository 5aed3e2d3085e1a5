/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a NIC's tables as the 64-byte descriptors of its command port. */
#ifndef HOST_NIC_DESC_H
#define HOST_NIC_DESC_H

#include <millrace/nic_desc.h>

#include "host/nic/config.h"

#ifdef __cplusplus
extern "C" {
#endif

void nic_row_options(uint8_t desc[MR_NIC_DESC_BYTES], uint8_t rank, bool chain, uint32_t rto,
                     uint32_t slot_timeout);
void nic_row_node(uint8_t desc[MR_NIC_DESC_BYTES], const mr_nic_node_row *node);
/* job NULL: the row is taken out. */
void nic_row_job(uint8_t desc[MR_NIC_DESC_BYTES], unsigned row, const mr_nic_job_row *job);

typedef struct mr_nic_dir_row {
    uint16_t job, layer;
    uint32_t block, epoch, bytes;
    uint32_t named;    /* member indexes of the holders */
    uint32_t page;     /* first page of the block here */
    uint8_t owner;     /* member index */
    bool valid, clear; /* clear: none of its pages is written */
} mr_nic_dir_row;

void nic_row_dir(uint8_t desc[MR_NIC_DESC_BYTES], uint32_t slot, const mr_nic_dir_row *row);

#ifdef __cplusplus
}
#endif
#endif
