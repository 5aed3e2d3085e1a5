/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise products of bf16 codes by the multipliers of a near-memory unit: each is a sum with
 * one term. What a sum cannot show is done here: it has no zero of a sign, and does not flush
 * products below 2^-126, so those pairs do not go through the unit.
 */
#ifndef HOST_PNM_PRODUCTS_H
#define HOST_PNM_PRODUCTS_H

#include "host/pnm/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * out[i] = float32 code of a[i] * b[i], as mr_pnm_mult() of the golden model defines it, for any
 * count. *by_host (may be NULL) is how many pairs did not go through the unit. counters (may be
 * NULL) are summed over the jobs.
 */
mr_status mr_pnm_products(mr_pnm_exec *e, mr_pnm_mode mode, const uint16_t *a, const uint16_t *b,
                          size_t count, uint32_t *out, size_t *by_host, mr_pnm_counters *counters);

#ifdef __cplusplus
}
#endif
#endif
