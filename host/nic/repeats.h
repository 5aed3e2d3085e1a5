/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host has received already: the last 4,096 different (opcode, key, shard). A network that
 * repeats a frame, or a NIC that sends a result again because the ACK was lost, must not make the
 * host act twice.
 */
#ifndef HOST_NIC_REPEATS_H
#define HOST_NIC_REPEATS_H

#include <stdbool.h>

#include <millrace/nic_frame.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_NIC_REMEMBERED = 4096 };

typedef struct mr_nic_repeats mr_nic_repeats;

mr_nic_repeats *mr_nic_repeats_create(void); /* NULL: no memory */
void mr_nic_repeats_destroy(mr_nic_repeats *r);

/* True when the frame is among the last 4,096; else it is noted and the oldest forgotten. */
bool mr_nic_repeated(mr_nic_repeats *r, const mr_nic_header *h);

#ifdef __cplusplus
}
#endif
#endif
