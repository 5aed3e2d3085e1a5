/* SPDX-License-Identifier: Apache-2.0 */
/* A Linux TAP interface, and the ARP replies that a NIC without an IP stack needs made for it. */
#ifndef HOST_CLI_TAP_H
#define HOST_CLI_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

/* Attaches to interface `name`, which is made when it does not exist and gone when the descriptor
 * is closed. MR_UNAVAILABLE says what is missing: the driver or the right. */
mr_status tap_open(const char *name, int *fd);

/* Is the frame an ARP request for `ip`? Then the 60 bytes of the answer are in `reply`. */
bool tap_arp(const uint8_t *frame, size_t bytes, const uint8_t mac[6], uint32_t ip,
             uint8_t reply[60]);

#endif
