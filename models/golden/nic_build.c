#include <string.h>

#include "models/golden/nic_internal.h"

enum { PLAIN_HEADERS = 14 + 20 + 8, LARGEST = PLAIN_HEADERS + MR_NIC_MAX_UDP_PAYLOAD };

static void put16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static void put32(uint8_t *p, uint32_t v) {
    put16(p, v >> 16);
    put16(p + 2, v & 0xFFFF);
}

static uint32_t checksum(uint64_t sum, const uint8_t *p, size_t bytes) {
    for (size_t i = 0; i + 1 < bytes; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    if (bytes & 1)
        sum += (uint32_t)p[bytes - 1] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return ~(uint32_t)sum & 0xFFFF;
}

void gnic_send_raw(mr_gnic *nic, int port, const uint8_t *frame, size_t bytes) {
    nic->counters[MR_NIC_CNT_TX_FRAMES]++;
    nic->counters[MR_NIC_CNT_TX_BYTES] += bytes;
    nic->out.send(nic->out.context, port, frame, bytes);
}

bool gnic_send(mr_gnic *nic, unsigned rank, const mr_nic_header *header, const uint8_t *payload,
               size_t payload_bytes) {
    if (rank >= MR_GNIC_NODES || nic->rank < 0)
        return false;
    const node_row *own = &nic->nodes[nic->rank], *to = &nic->nodes[rank];
    if (!to->valid || !own->valid)
        return false;

    uint8_t frame[LARGEST] = {0};
    size_t udp_bytes = 8 + MR_NIC_HEADER_BYTES + payload_bytes;
    size_t bytes = 34 + udp_bytes;
    memcpy(frame, to->mac, 6);
    memcpy(frame + 6, own->mac, 6);
    put16(frame + 12, 0x0800);
    uint8_t *ip = frame + 14, *udp = frame + 34;
    ip[0] = 0x45;
    put16(ip + 2, (uint32_t)(20 + udp_bytes));
    put16(ip + 6, 0x4000); /* do not fragment */
    ip[8] = 64;
    ip[9] = 17;
    put32(ip + 12, own->ip);
    put32(ip + 16, to->ip);
    put16(ip + 10, checksum(0, ip, 20));
    put16(udp, own->udp_port);
    put16(udp + 2, to->udp_port);
    put16(udp + 4, (uint32_t)udp_bytes);
    mr_nic_header_put(header, udp + 8);
    if (payload_bytes > 0)
        memcpy(udp + 8 + MR_NIC_HEADER_BYTES, payload, payload_bytes);
    uint64_t pseudo = 17 + udp_bytes;
    for (int i = 12; i < 20; i += 2)
        pseudo += (uint32_t)ip[i] << 8 | ip[i + 1];
    uint32_t sum = checksum(pseudo, udp, udp_bytes);
    put16(udp + 6, sum == 0 ? 0xFFFF : sum);
    if (bytes < 60)
        bytes = 60;

    if ((int)rank == nic->rank)
        nic->out.deliver(nic->out.context, frame, bytes);
    else
        gnic_send_raw(nic, to->netport, frame, bytes);
    return true;
}

void gnic_send_members(mr_gnic *nic, const job_row *job, uint32_t members,
                       const mr_nic_header *header, const uint8_t *payload, size_t payload_bytes) {
    for (unsigned i = 0; i < job->count; i++)
        if (members >> i & 1)
            gnic_send(nic, job->rank[i], header, payload, payload_bytes);
}

/* ACK and NACK copy what names the frame they answer. */
static mr_nic_header answer(const mr_gnic *nic, const mr_nic_header *to, unsigned opcode) {
    mr_nic_header h = *to;
    h.opcode = (uint8_t)opcode;
    h.dtype = to->opcode;
    h.flags = 0;
    h.shard = (uint8_t)nic->rank;
    h.heads = 0;
    h.dim = 0;
    return h;
}

void gnic_ack(mr_gnic *nic, const mr_nic_header *header) {
    mr_nic_header h = answer(nic, header, MR_NIC_OP_ACK);
    if (gnic_send(nic, header->shard, &h, NULL, 0))
        nic->counters[MR_NIC_CNT_ACKS]++;
}

void gnic_nack(mr_gnic *nic, const mr_nic_header *header, uint32_t reason, uint32_t epoch) {
    mr_nic_header h = answer(nic, header, MR_NIC_OP_NACK);
    uint8_t payload[8];
    put32(payload, reason);
    put32(payload + 4, epoch);
    if (gnic_send(nic, header->shard, &h, payload, sizeof payload))
        nic->counters[MR_NIC_CNT_NACKS]++;
}

static void le16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}
static void le32(uint8_t *p, uint32_t v) {
    le16(p, v);
    le16(p + 2, v >> 16);
}

void gnic_event(mr_gnic *nic, unsigned type, unsigned opcode, const slot_key *key, uint32_t ranks,
                const mr_nic_header *header, const uint8_t payload[8]) {
    uint8_t e[64] = {0};
    e[0] = (uint8_t)type;
    e[1] = (uint8_t)opcode;
    le16(e + 2, key->job);
    le32(e + 4, key->request);
    le16(e + 8, key->layer);
    le16(e + 10, key->head0);
    le32(e + 12, key->block);
    le32(e + 16, ranks);
    if (header != NULL)
        mr_nic_header_put(header, e + 24);
    if (payload != NULL)
        memcpy(e + 56, payload, 8);
    nic->counters[MR_NIC_CNT_EVENTS]++;
    nic->out.event(nic->out.context, e);
}
