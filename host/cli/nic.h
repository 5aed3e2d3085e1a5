/* SPDX-License-Identifier: Apache-2.0 */
/* What the nic subcommands share. */
#ifndef HOST_CLI_NIC_H
#define HOST_CLI_NIC_H

#include <jansson.h>

#include "host/nic/config.h"
#include "host/nic/port.h"

/* Opens `device` with the options `more` and room for the KV blocks that name the rank. */
mr_status cli_nic_open(const char *device, const char *more, const mr_nic_config *c, unsigned rank,
                       mr_nic_link **link);

/* All counters of a NIC by their names, a new object. */
mr_status cli_nic_counters(mr_nic_link *l, unsigned rank, json_t **out);

#endif
