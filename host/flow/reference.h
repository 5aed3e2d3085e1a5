/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The definition of a flow (models/zoo/flows/FORMAT.md) in float64, as it is written there and as
 * slow. Tests compare with it; nothing else uses it.
 */
#ifndef HOST_FLOW_REFERENCE_H
#define HOST_FLOW_REFERENCE_H

#include "host/flow/flow.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One image x[tokens][channels] to z of the same shape and the logarithm of the determinant. */
mr_status mr_flow_reference_forward(const mr_flow *f, const double *x, double *z, double *logdet);

/* Back. */
mr_status mr_flow_reference_inverse(const mr_flow *f, const double *z, double *x);

#ifdef __cplusplus
}
#endif
#endif
