/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matrix times vectors on the near-memory unit: y[n][m] = sum_k W[m][k] x[n][k], of any size, as
 * one program.
 *
 * The groups share the outputs or the vectors, whichever leaves the busiest one less to do. A group
 * works in rounds of outputs whose weights fit its banks; a round's weights lie in consecutive
 * columns, so that an open DRAM row serves all vectors in the activation buffer before it is closed
 * (docs/pnm-gemv.md).
 */
#ifndef HOST_PNM_GEMV_H
#define HOST_PNM_GEMV_H

#include "host/pnm/builder.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_pnm_gemv {
    const char *name; /* of the matrix, for messages */
    const float *w;   /* [outputs][inputs], rounded to bf16 unless wide */
    const float *x;   /* [vectors][inputs] */
    size_t outputs, inputs, vectors;
    mr_pnm_mode mode;
    unsigned groups, tier; /* groups that take part; tier the weights lie in */
    bool wide;
} mr_pnm_gemv;

typedef struct mr_pnm_gemv_plan mr_pnm_gemv_plan;

/* MR_BAD_FORMAT: a weight that is NaN or infinite in bf16. */
mr_status mr_pnm_gemv_plan_create(const mr_pnm_gemv *g, mr_pnm_gemv_plan **out);
void mr_pnm_gemv_plan_destroy(mr_pnm_gemv_plan *p);

mr_pnm_program *mr_pnm_gemv_program(mr_pnm_gemv_plan *p);
/* After the program has run: y[vectors][outputs]. */
void mr_pnm_gemv_results(const mr_pnm_gemv_plan *p, float *y);
/* Weights that bf16 does not have exactly. */
size_t mr_pnm_gemv_rounded(const mr_pnm_gemv_plan *p);

#ifdef __cplusplus
}
#endif
#endif
