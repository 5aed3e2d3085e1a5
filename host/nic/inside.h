/* SPDX-License-Identifier: Apache-2.0 */
/* The link below a cluster, for tests that cut cables and for long runs that look at counters. */
#ifndef HOST_NIC_INSIDE_H
#define HOST_NIC_INSIDE_H

#include <millrace/nic.h>

#include "host/nic/port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL with the message set when the handle is none. Valid until mr_nic_close(). */
mr_nic_link *mr_nic_link_of(mr_nic *nic);

#ifdef __cplusplus
}
#endif
#endif
