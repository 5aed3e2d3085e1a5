#include <string.h>

#include "models/golden/nic_internal.h"

static uint32_t get16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static uint32_t get32(const uint8_t *p) { return get16(p) << 16 | get16(p + 2); }

/* Ones' complement sum of 16-bit words, not folded; an odd last byte counts as a high one. */
static uint64_t sum_of(const uint8_t *p, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2)
        sum += get16(p + i);
    if (bytes & 1)
        sum += (uint64_t)p[bytes - 1] << 8;
    return sum;
}

static bool sums_to_ffff(uint64_t sum) {
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum == 0xFFFF;
}

static bool is_vector(unsigned opcode) {
    return opcode >= MR_NIC_OP_QUERY && opcode <= MR_NIC_OP_RESULT;
}

static bool fields_are_good(const mr_nic_header *h) {
    unsigned types = 0; /* 0: the opcode does not look at dtype */
    if (h->opcode >= MR_NIC_OP_QUERY && h->opcode <= MR_NIC_OP_MERGED)
        types = MR_NIC_DT_FP32;
    else if (h->opcode <= MR_NIC_OP_RESULT)
        types = MR_NIC_DT_INT32;
    if (types != 0 && (h->dtype < MR_NIC_DT_BF16 || h->dtype > types))
        return false;
    unsigned operator=(h->flags &MR_NIC_FL_OPERATOR) >> MR_NIC_FL_OPERATOR_SHIFT;
    if (h->opcode == MR_NIC_OP_REDUCE && operator> MR_NIC_ROP_MIN)
        return false;
    if (h->shards < 1 || h->shards > MR_NIC_MAX_SHARDS)
        return false;
    return !is_vector(h->opcode) || (h->heads != 0 && h->dim != 0);
}

static bool payload_fits(const mr_nic_header *h, size_t bytes) {
    switch (h->opcode) {
    case MR_NIC_OP_KV_WRITE:
    case MR_NIC_OP_KV_DATA:
        return bytes >= 1 && bytes <= MR_NIC_KV_PAGE;
    case MR_NIC_OP_KV_READ:
        return bytes == 4;
    case MR_NIC_OP_PARTIAL:
        return bytes == mr_nic_vector_bytes(h->dtype, h->heads, h->dim, 8);
    case MR_NIC_OP_MERGED:
        return bytes == mr_nic_vector_bytes(h->dtype, h->heads, h->dim, 4);
    case MR_NIC_OP_QUERY:
        return bytes == mr_nic_vector_bytes(h->dtype, h->heads, h->dim, 0);
    case MR_NIC_OP_REDUCE:
    case MR_NIC_OP_RESULT: /* heads = 1 */
        return h->heads == 1 && bytes == mr_nic_vector_bytes(h->dtype, 1, h->dim, 0);
    case MR_NIC_OP_NACK:
        return bytes == 8;
    default:
        return bytes == 0;
    }
}

unsigned gnic_parse(const mr_gnic *nic, const uint8_t *frame, size_t bytes, parsed *out) {
    if (bytes < 60)
        return MR_NIC_CNT_RUNT;
    size_t ip_at = 14;
    if (get16(frame + 12) == 0x8100)
        ip_at = 18;
    if (get16(frame + ip_at - 2) != 0x0800)
        return MR_NIC_CNT_NOT_IP;

    const uint8_t *ip = frame + ip_at;
    size_t ip_room = bytes - ip_at, ihl = (size_t)(ip[0] & 15) * 4;
    if (ip[0] >> 4 != 4 || ihl < 20 || ihl > ip_room || !sums_to_ffff(sum_of(ip, ihl)))
        return MR_NIC_CNT_BAD_IP_CHECKSUM;
    if (get16(ip + 6) & 0x3FFF)
        return MR_NIC_CNT_FRAGMENT;

    const node_row *own = nic->rank < 0 ? NULL : &nic->nodes[nic->rank];
    const uint8_t *udp = ip + ihl;
    if (own == NULL || !own->valid || memcmp(frame, own->mac, 6) != 0 ||
        get32(ip + 16) != own->ip || ip[9] != 17 || ihl + 8 > ip_room ||
        get16(udp + 2) != own->udp_port)
        return MR_NIC_CNT_NOT_MINE;

    size_t ip_bytes = get16(ip + 2), udp_bytes = get16(udp + 4);
    if (ip_bytes > ip_room || udp_bytes < 8 || ihl + udp_bytes > ip_bytes)
        return MR_NIC_CNT_TRUNCATED;
    if (get16(udp + 6) != 0) {
        uint64_t pseudo = sum_of(ip + 12, 8) + 17 + udp_bytes;
        if (!sums_to_ffff(pseudo + sum_of(udp, udp_bytes)))
            return MR_NIC_CNT_BAD_UDP_CHECKSUM;
    }
    size_t payload = udp_bytes - 8;
    if (payload < MR_NIC_HEADER_BYTES)
        return MR_NIC_CNT_TRUNCATED;

    mr_nic_header *h = &out->header;
    mr_nic_header_get(h, udp + 8);
    if (h->version != MR_NIC_VERSION)
        return MR_NIC_CNT_BAD_VERSION;
    if (mr_nic_opcode_name(h->opcode) == NULL)
        return MR_NIC_CNT_BAD_OPCODE;
    if (!fields_are_good(h))
        return MR_NIC_CNT_BAD_FIELD;
    if (payload > MR_NIC_MAX_UDP_PAYLOAD)
        return MR_NIC_CNT_TOO_LONG;
    if (!payload_fits(h, payload - MR_NIC_HEADER_BYTES))
        return MR_NIC_CNT_TRUNCATED;
    out->frame = frame;
    out->bytes = bytes;
    out->header_bytes = udp + 8;
    out->payload = udp + 8 + MR_NIC_HEADER_BYTES;
    out->payload_bytes = payload - MR_NIC_HEADER_BYTES;
    return MR_NIC_FATE_NONE;
}
