/* SPDX-License-Identifier: Apache-2.0 */
/* The near-memory unit's registers: a job into them, and what it counted out of them. */
#ifndef DRIVERS_SIM_PNM_H
#define DRIVERS_SIM_PNM_H

#include "drivers/driver.h"
#include "drivers/sim/protocol.h"

/* base: address of the job's memory. */
void sim_pnm_request(const mr_drv_pnm *job, uint64_t base, sim_job *request);

/* Whether the unit has the job's multiplier and has run it. */
mr_status sim_pnm_result(const mr_drv_pnm *job, const sim_reply *reply, mr_counters *counters,
                         mr_pnm_counters *pnm, mr_drv_error *error);

#endif
