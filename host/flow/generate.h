/* SPDX-License-Identifier: Apache-2.0 */
/* The matrices of a flow that are seeds, made by a rotor generation unit instead of its model. */
#ifndef HOST_FLOW_GENERATE_H
#define HOST_FLOW_GENERATE_H

#include <signal.h>

#include "host/flow/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_flow_generated {
    bool hardware;       /* cycles come from a unit's counters */
    uint64_t cycles;     /* start to done, summed */
    uint64_t weights;    /* made */
    uint64_t jobs;       /* tiles */
    uint64_t seed_bytes; /* read instead of the weights */
    uint64_t wrong;      /* tiles that differ from the golden model's */
} mr_flow_generated;

/*
 * Makes every generated matrix of F on URI (as mr_generator_open() takes it) and puts it into the
 * flow, each compared with the golden model's, which the flow had before. MR_UNSUPPORTED: the flow
 * has no generated matrix.
 */
mr_status mr_flow_generate(mr_flow *f, const char *uri, const volatile sig_atomic_t *stop,
                           uint64_t timeout_ns, mr_flow_generated *made);

#ifdef __cplusplus
}
#endif
#endif
