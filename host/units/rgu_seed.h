/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projections of a seed file (docs/rgu.md), ready for a rotor generation unit: everything a job
 * needs but its window and its place in device memory.
 */
#ifndef HOST_UNITS_RGU_SEED_H
#define HOST_UNITS_RGU_SEED_H

#include <millrace/millrace.h>

#include "host/io/safetensors.h"
#include "models/golden/rgu.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_projection {
    char *name;
    mr_seed seed;       /* as stored; I8 angles widened. Its arrays belong to the projection */
    mr_rgu_job job;     /* shape, n, terms, parities; the window is the whole matrix, format bf16 */
    void *image;        /* seed image, 64-byte aligned */
    size_t image_bytes; /* a multiple of 64 */
    float *row_scale; /* [chunks_out * 2^n], padded with 1, 64-byte aligned; NULL when not given */
    size_t scale_bytes;  /* of row_scale, 0 when NULL */
    size_t stored_bytes; /* of the projection's tensors in the file */
    void *storage;
} mr_projection;

/*
 * Loads projection NAME. MR_NOT_FOUND when the file has no NAME.angles; MR_BAD_FORMAT with file,
 * tensor and reason when anything about it is inconsistent, tensors under NAME that no seed has
 * included. *out is released by mr_projection_free().
 */
mr_status mr_projection_load(const mr_safetensors *st, const char *name, mr_projection **out);
void mr_projection_free(mr_projection *p);

/* Whether the file has a tensor NAME.angles. */
bool mr_projection_exists(const mr_safetensors *st, const char *name);

/* Name of the i-th projection of the file in file order, its length in *length; NULL past the end.
 * The text is followed by ".angles". */
const char *mr_projection_name(const mr_safetensors *st, size_t i, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
