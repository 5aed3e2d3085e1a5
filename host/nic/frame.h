/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as a host builds and reads them: Ethernet, IPv4, UDP, the Millrace header, payload. */
#ifndef HOST_NIC_FRAME_H
#define HOST_NIC_FRAME_H

#include <stdbool.h>

#include <millrace/nic_frame.h>

#include "host/nic/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MR_NIC_OVERHEAD = 42,                                              /* Ethernet, IPv4, UDP */
    MR_NIC_MAX_PAYLOAD = MR_NIC_MAX_UDP_PAYLOAD - MR_NIC_HEADER_BYTES, /* behind our header */
    MR_NIC_MIN_FRAME = 60
};

/* Bytes of an element; 0 for a dtype outside the enum. */
size_t mr_nic_dtype_bytes(unsigned dtype);

/* Bytes of `each` * heads statistics, padded to a multiple of 64. */
size_t mr_nic_stats_bytes(size_t heads, size_t each);

/*
 * Writes the frame into `frame` (room for MR_NIC_OVERHEAD + 32 + bytes, 60 at least) around the
 * `bytes` of payload that already lie at frame + MR_NIC_OVERHEAD + 32: untagged, TTL 64, DF,
 * identification 0, both checksums, padded to 60 bytes. Returns the frame's length.
 */
size_t mr_nic_frame_build(uint8_t *frame, const mr_nic_node_row *to, const mr_nic_node_row *from,
                          const mr_nic_header *header, size_t bytes);

typedef struct mr_nic_frame {
    mr_nic_header header;
    const uint8_t *payload; /* inside the frame */
    size_t bytes;
} mr_nic_frame;

/* Reads a frame that a NIC delivered (and so has checked). False when it holds no Millrace header.
 */
bool mr_nic_frame_read(mr_nic_frame *out, const uint8_t *frame, size_t bytes);

/* Elements of `size` bytes between host order and the frame's big-endian order; either way. */
void mr_nic_swap(void *to, const void *from, size_t count, size_t size);

#ifdef __cplusplus
}
#endif
#endif
