/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling a transformer flow without going token by token (Jacobi's iteration): all tokens of a
 * block are computed at once from a guess of them, x_t <- z_t exp(a_t(x)) + mu_t(x), again and
 * again until nothing changes. a_t and mu_t depend on the tokens before t alone, so token t is
 * right after t + 1 iterations at the latest and T iterations give what the serial order gives;
 * in practice a few do, to a tolerance. It is what software does on machines that are wide, and so
 * the serial order's rival.
 */
#ifndef HOST_FLOW_JACOBI_H
#define HOST_FLOW_JACOBI_H

#include <millrace/pnm.h>

#include "host/flow/plan.h"
#include "host/pnm/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_FLOW_MOST_BLOCKS = 64 };

typedef struct mr_flow_jacobi_options {
    unsigned groups; /* 1 to MR_PNM_GROUPS */
    mr_flow_placement placement;
    mr_pnm_mode mode;
    bool wide;
    /* a block's iteration ends when no element changes by more; 0: when none changes at all */
    double tolerance;
    size_t most; /* iterations a block; 0: as many as there are tokens */
} mr_flow_jacobi_options;

typedef struct mr_flow_jacobi_report {
    size_t blocks;
    size_t iterations[MR_FLOW_MOST_BLOCKS]; /* in the order of execution, the last block first */
    double change[MR_FLOW_MOST_BLOCKS];     /* the largest of the last iteration */
    /* summed over all programs: products, of a device also mv_cycles and stream_cycles, and cycles,
     * where chips that run at once count as the slowest */
    mr_pnm_counters counters;
    double joules; /* by the energy estimate (host/pnm/energy.h) */
} mr_flow_jacobi_report;

/*
 * z to x: [images][tokens][channels]. MR_UNSUPPORTED for a coupling flow, which has no serial
 * order, and for a network that does not fit. An x that is not finite is left for the caller to
 * find.
 */
mr_status mr_flow_jacobi(const mr_flow *f, mr_pnm_exec *exec, const mr_flow_jacobi_options *o,
                         size_t images, const float *z, float *x, mr_flow_jacobi_report *report);

#ifdef __cplusplus
}
#endif
#endif
