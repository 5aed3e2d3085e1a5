/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling a transformer flow with all three units: the near-memory unit multiplies, normalises and
 * undoes the affine steps; keys and values of the tokens so far lie with the nodes of a NIC
 * cluster, which attend to what they have and whose NICs merge the partial results
 * (host/kv/shards.h); and matrices that are seeds are made by a rotor generation unit before.
 *
 * All images of a batch are one sequence with heads of their own, token t with node t mod nodes, so
 * every layer of every token is one merge. Attention's products are float32 on the compute kernels,
 * not those of the near-memory unit.
 */
#ifndef HOST_FLOW_NODES_H
#define HOST_FLOW_NODES_H

#include <signal.h>

#include "host/flow/plan.h"
#include "host/kv/shards.h"
#include "host/pnm/energy.h"
#include "host/pnm/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_flow_nodes_options {
    const char *nic;   /* a cluster as mr_nic_open() takes it */
    mr_device *device; /* with MR_CAP_KERNELS: the nodes' attention */
    mr_pnm_exec *exec; /* of one chip: it keeps its state between the parts of a program */
    uint64_t timeout_ns;
    const volatile sig_atomic_t *stop; /* NULL, or: non-zero ends the run with MR_CANCELLED */
} mr_flow_nodes_options;

typedef struct mr_flow_nodes_stats {
    mr_shards_stats nic;
    mr_pnm_counters pnm; /* sums over all jobs, cycles too */
    mr_pnm_energy energy;
    mr_flow_plan_info plan;
    size_t jobs; /* of the near-memory unit */
} mr_flow_nodes_stats;

/* z, x: [images][tokens][channels]; `plan` as for mr_flow_plan_create(), any number of images. */
mr_status mr_flow_nodes_sample(const mr_flow *f, const mr_flow_plan_options *plan,
                               const mr_flow_nodes_options *options, const float *z, float *x,
                               mr_flow_nodes_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
