/* SPDX-License-Identifier: Apache-2.0 */
/* What the transformer flow does the same way forward and back. */
#ifndef HOST_FLOW_TAR_H
#define HOST_FLOW_TAR_H

#include "host/flow/compile.h"

/* Matrices and fixed rows of a block: these, then those of its layers. */
enum { TAR_WIN, TAR_WOUT, TAR_LAYER, TAR_QKV = 0, TAR_WO, TAR_W1, TAR_W2, TAR_LAYER_MATRICES };
enum { TAR_POS, TAR_BOUT, TAR_LAYER_ROWS, TAR_BQKV = 0, TAR_BO, TAR_B1, TAR_B2, TAR_BIASES };

/* Packs a block; calls: how often an iteration uses each matrix. */
void tar_pack(flow_compiler *c, size_t block, flow_block_data *d, size_t calls);

typedef struct tar_place {
    size_t block;
    bool reversed;
    const flow_block_data *data;
    const uint16_t *col, *row;
} tar_place;
tar_place tar_place_of(const flow_compiler *c, const flow_group *g, size_t e);

static inline const mr_pnm_matrix *tar_matrix(const tar_place *p, size_t index) {
    return &p->data->weight[index].matrix;
}

/* `count` tokens: their hidden vectors h, normalised n, and rows for whatever is wider, each token
 * after the other; and `count` scalars (rows whose other words are numbers). */
typedef struct tar_rows {
    size_t count;
    uint16_t h, n, wide, scalars;
} tar_rows;

/* n = rms(h), then q, k and v of every token into wide. */
void tar_before_attention(const flow_compiler *c, const tar_place *p, size_t layer,
                          const tar_rows *r, flow_ops *ops);
/* The attention's output is in n: h grows by it and by the feed-forward part. */
void tar_after_attention(const flow_compiler *c, const tar_place *p, size_t layer,
                         const tar_rows *r, flow_ops *ops);
/* a' and mu of every token into wide. */
void tar_output(const flow_compiler *c, const tar_place *p, const tar_rows *r, flow_ops *ops);

/* `count` rows of scores, `width` rows each, become exp(score - largest); scalar r of `rest` then
 * is 1 / their sum. Scalar r of `least` is used on the way. */
void tar_softmax(flow_ops *ops, uint16_t s, int16_t stride, size_t count, size_t width,
                 uint16_t least, uint16_t rest);

#endif
