/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/desc.h"

#include <string.h>

/* Bits lsb.. of a little-endian descriptor. */
static void put(uint8_t *desc, unsigned lsb, unsigned width, uint64_t v) {
    for (unsigned i = 0; i < width; i++)
        desc[(lsb + i) / 8] |= (uint8_t)((v >> i & 1) << (lsb + i) % 8);
}
#define PUT(desc, name, v) put(desc, MR_NIC_D_##name##_LSB, MR_NIC_D_##name##_BITS, v)

static void begin(uint8_t *desc, unsigned type) {
    memset(desc, 0, MR_NIC_DESC_BYTES);
    desc[0] = (uint8_t)type;
}

void nic_row_options(uint8_t desc[MR_NIC_DESC_BYTES], uint8_t rank, bool chain, uint32_t rto,
                     uint32_t slot_timeout) {
    begin(desc, MR_NIC_DESC_OPTIONS);
    PUT(desc, OPTIONS_RANK, rank);
    PUT(desc, OPTIONS_CHAIN, chain);
    PUT(desc, OPTIONS_RTO, rto);
    PUT(desc, OPTIONS_SLOT_TIMEOUT, slot_timeout);
}

void nic_row_node(uint8_t desc[MR_NIC_DESC_BYTES], const mr_nic_node_row *node) {
    uint64_t mac = 0;
    for (int i = 0; i < 6; i++)
        mac = mac << 8 | node->mac[i];
    begin(desc, MR_NIC_DESC_NODE);
    PUT(desc, NODE_RANK, node->rank);
    PUT(desc, NODE_VALID, 1);
    PUT(desc, NODE_PORT, node->port);
    PUT(desc, NODE_IP, node->ip);
    PUT(desc, NODE_MAC, mac);
}

void nic_row_job(uint8_t desc[MR_NIC_DESC_BYTES], unsigned row, const mr_nic_job_row *job) {
    begin(desc, MR_NIC_DESC_JOB);
    PUT(desc, JOB_ROW, row);
    if (!job)
        return;
    PUT(desc, JOB_VALID, 1);
    PUT(desc, JOB_COUNT, job->count);
    PUT(desc, JOB_JOB, job->job);
    for (unsigned i = 0; i < job->count; i++)
        if (job->members[i] == job->root)
            PUT(desc, JOB_ROOT, i);
    memcpy(desc + MR_NIC_D_JOB_RANKS_LSB / 8, job->members, job->count);
}

void nic_row_dir(uint8_t desc[MR_NIC_DESC_BYTES], uint32_t slot, const mr_nic_dir_row *row) {
    begin(desc, MR_NIC_DESC_DIR);
    PUT(desc, DIR_VALID, row->valid);
    PUT(desc, DIR_CLEAR, row->clear);
    PUT(desc, DIR_SLOT, slot);
    PUT(desc, DIR_JOB, row->job);
    PUT(desc, DIR_LAYER, row->layer);
    PUT(desc, DIR_BLOCK, row->block);
    PUT(desc, DIR_EPOCH, row->epoch);
    PUT(desc, DIR_BYTES, row->bytes);
    PUT(desc, DIR_NAMED, row->named);
    PUT(desc, DIR_PAGE, row->page);
    PUT(desc, DIR_OWNER, row->owner);
}
