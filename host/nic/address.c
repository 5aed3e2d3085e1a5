/* SPDX-License-Identifier: Apache-2.0 */
#include "host/nic/port.h"

#include <string.h>

void mr_nic_default_address(unsigned rank, uint8_t mac[6], uint32_t *ip, uint16_t *port) {
    static const uint8_t local[6] = {2};
    memcpy(mac, local, 6);
    mac[5] = (uint8_t)rank;
    *ip = 0x0A000001u + rank;
    *port = 19794;
}
