/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A normalizing flow as its file describes it (models/zoo/flows/FORMAT.md): sizes, weights, and for
 * every image what its pixels, tokens and channels are. Nothing is computed here; plan.h compiles a
 * flow for the near-memory unit, reference.h evaluates it in float64.
 */
#ifndef HOST_FLOW_FLOW_H
#define HOST_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/millrace.h>

#include "host/units/rgu_seed.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { MR_FLOW_COUPLING, MR_FLOW_TAR } mr_flow_kind;
typedef enum { MR_FLOW_DIGITS, MR_FLOW_FASHION } mr_flow_set;

/* Matrices are [out][in], kernels [out][ky][kx][in]; hidden h, channels C. */
typedef struct mr_flow_coupling {
    const float *mask;    /* [C] 1: passes */
    const float *w0, *b0; /* [h][k][k][C] */
    const float *w1, *b1; /* [h][k][k][h] */
    const float *w2, *b2; /* [h][h] */
    const float *wo, *bo; /* [2C][h] */
    float alpha;
} mr_flow_coupling;

typedef struct mr_flow_layer {
    const float *wq, *bq, *wk, *wv, *wo, *bo; /* [D][D] */
    const float *w1, *b1, *w2, *b2;           /* [ff][D], [D][ff] */
    mr_projection *seed;                      /* w1 is generated from it; NULL: it is stored */
} mr_flow_layer;

typedef struct mr_flow_block {
    const float *win, *bin, *pos; /* [D][C], [D], [T][D] */
    const float *wout, *bout;     /* [2C][D] */
    float alpha;
    mr_flow_layer *layers;
} mr_flow_block;

typedef struct mr_flow {
    char *path;
    char name[64];
    mr_flow_kind kind;
    mr_flow_set set;
    size_t tokens, channels, grid, blocks;
    size_t hidden, kernel;           /* coupling */
    size_t width, heads, layers, ff; /* tar */
    size_t seeds;                    /* matrices that are generated */
    mr_flow_coupling *coupling;      /* [blocks], or NULL */
    mr_flow_block *block;            /* [blocks], or NULL */
    float *storage;
} mr_flow;

enum { MR_FLOW_HEAD = 16 }; /* channels of an attention head */

/*
 * Opens a flow. A tensor that is missing, superfluous, of another shape or type, a NaN or infinite
 * weight, a mask that is not 0 or 1, a weight that a mask forbids and an unknown setting are
 * MR_BAD_FORMAT with the file and the tensor. Generated matrices are made by the golden model of
 * the rotor generation unit.
 */
mr_status mr_flow_open(const char *path, mr_flow **out);
void mr_flow_close(mr_flow *f);

/* A generated matrix made elsewhere: [ff][D] bf16 codes, row-major, for a layer with a seed. */
void mr_flow_set_w1(mr_flow *f, size_t block, size_t layer, const uint16_t *codes);

static inline size_t mr_flow_pixels(const mr_flow *f) { return f->tokens * f->channels; }
const char *mr_flow_set_name(mr_flow_set set);
const char *mr_flow_kind_name(mr_flow_kind kind);

#ifdef __cplusplus
}
#endif
#endif
