/*
 * Apply mode of the rotor generation unit: y = W x without ever forming W, bit for bit what the
 * hardware computes. docs/rgu-apply.md is the arithmetic.
 */
#ifndef MODELS_GOLDEN_RGU_APPLY_H
#define MODELS_GOLDEN_RGU_APPLY_H

#include "models/golden/rgu.h"

#ifdef __cplusplus
extern "C" {
#endif

/* chunks_in * terms of a job is at most this: the accumulators' headroom. */
enum { MR_APPLY_MAX_PASSES = 65536 };

/*
 * For each of `batch` vectors: y[r] = sum_c W[r][c] x[c], r < job->d_out, c < job->d_in, float32,
 * little endian. src and dst may be any byte addresses; strides are bytes between vectors. Of the
 * job, n, terms, d_out, d_in, image, row_scale, scale and sat are used (sat != 0: overflow gives
 * the largest finite value instead of infinity); window and format are not. Each vector's result
 * depends on that vector alone. A NaN or infinity in a vector makes all of its y the NaN
 * 0x7FC00000. Returns 0, or -1 when memory ran out or the job is inconsistent (then dst is
 * untouched).
 */
int mr_golden_apply(const mr_golden_job *job, size_t batch, const void *src, size_t src_stride,
                    void *dst, size_t dst_stride);

#ifdef __cplusplus
}
#endif
#endif
