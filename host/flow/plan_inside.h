/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that make a plan share. */
#ifndef HOST_FLOW_PLAN_INSIDE_H
#define HOST_FLOW_PLAN_INSIDE_H

#include "host/flow/compile.h"

enum { ROW_BYTES = 4 * FLOW_WORDS };

struct mr_flow_plan {
    flow_compiler c;
    size_t tokens, channels, width;
    size_t parts; /* 0 unless the plan is cut */
    mr_flow_plan_info info;
    size_t replica_iterations[MR_PNM_GROUPS];
    flow_group group[MR_PNM_GROUPS];
    uint64_t in, out, zeros;
    mr_pnm_program *program;
};

/* Batch, halves, stages and the packed weights (stages.c). */
mr_status flow_decide(mr_flow_plan *p);

/* Rows and columns of a group, and the loads that fill them once; for a plan that is cut also where
 * its parts end and what they exchange (places.c). */
mr_status flow_open_group(mr_flow_plan *p, flow_group *g);

#endif
