/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/frame.h"

#include <string.h>

size_t mr_nic_dtype_bytes(unsigned dtype) {
    switch (dtype) {
    case MR_NIC_DT_BF16:
    case MR_NIC_DT_FP16:
        return 2;
    case MR_NIC_DT_FP32:
    case MR_NIC_DT_INT32:
        return 4;
    default:
        return 0;
    }
}

size_t mr_nic_stats_bytes(size_t heads, size_t each) { return (heads * each + 63) / 64 * 64; }

static void put16(uint8_t *at, unsigned value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value) {
    put16(at, value >> 16);
    put16(at + 2, value & 0xFFFF);
}

/* RFC 1071; an odd last byte counts as if a zero followed. */
static uint32_t sum(const uint8_t *at, size_t bytes) {
    uint32_t total = 0;
    for (size_t i = 0; i + 1 < bytes; i += 2)
        total += (uint32_t)at[i] << 8 | at[i + 1];
    if (bytes & 1)
        total += (uint32_t)at[bytes - 1] << 8;
    return total;
}

static unsigned fold(uint32_t total) {
    total = (total & 0xFFFF) + (total >> 16);
    total = (total & 0xFFFF) + (total >> 16);
    return ~total & 0xFFFF;
}

size_t mr_nic_frame_build(uint8_t *frame, const mr_nic_node_row *to, const mr_nic_node_row *from,
                          const mr_nic_header *header, size_t bytes) {
    uint8_t *ip = frame + 14, *udp = frame + 34;
    size_t udp_bytes = 8 + MR_NIC_HEADER_BYTES + bytes, length = MR_NIC_OVERHEAD - 8 + udp_bytes;
    mr_nic_header_put(header, frame + MR_NIC_OVERHEAD);
    memcpy(frame, to->mac, 6);
    memcpy(frame + 6, from->mac, 6);
    put16(frame + 12, 0x0800);
    put16(ip, 0x4500);
    put16(ip + 2, (unsigned)(20 + udp_bytes));
    put16(ip + 4, 0);
    put16(ip + 6, 0x4000);
    put16(ip + 8, 64 << 8 | 17);
    put16(ip + 10, 0);
    put32(ip + 12, from->ip);
    put32(ip + 16, to->ip);
    put16(ip + 10, fold(sum(ip, 20)));
    put16(udp, from->port);
    put16(udp + 2, to->port);
    put16(udp + 4, (unsigned)udp_bytes);
    put16(udp + 6, 0);
    unsigned check = fold(sum(ip + 12, 8) + 17 + (uint32_t)udp_bytes + sum(udp, udp_bytes));
    put16(udp + 6, check ? check : 0xFFFF);
    if (length < MR_NIC_MIN_FRAME) {
        memset(frame + length, 0, MR_NIC_MIN_FRAME - length);
        length = MR_NIC_MIN_FRAME;
    }
    return length;
}

bool mr_nic_frame_read(mr_nic_frame *out, const uint8_t *frame, size_t bytes) {
    size_t at = 12;
    if (bytes < MR_NIC_MIN_FRAME)
        return false;
    if (frame[at] == 0x81 && frame[at + 1] == 0)
        at += 4;
    if (frame[at] != 0x08 || frame[at + 1] != 0)
        return false;
    at += 2;
    at += (size_t)(frame[at] & 15) * 4; /* to the UDP header */
    if (at + 8 + MR_NIC_HEADER_BYTES > bytes)
        return false;
    size_t udp = (size_t)frame[at + 4] << 8 | frame[at + 5];
    if (udp < 8 + MR_NIC_HEADER_BYTES || at + udp > bytes)
        return false;
    mr_nic_header_get(&out->header, frame + at + 8);
    out->payload = frame + at + 8 + MR_NIC_HEADER_BYTES;
    out->bytes = udp - 8 - MR_NIC_HEADER_BYTES;
    return out->header.version == MR_NIC_VERSION;
}

void mr_nic_swap(void *to, const void *from, size_t count, size_t size) {
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i < count; i++, t += size, f += size)
        for (size_t b = 0; b < size; b++)
            t[b] = f[size - 1 - b];
}
