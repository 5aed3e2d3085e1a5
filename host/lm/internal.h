/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of host/lm share. */
#ifndef HOST_LM_INTERNAL_H
#define HOST_LM_INTERNAL_H

#include "host/kv/shards.h"
#include "host/lm/lm.h"
#include "host/units/generator.h"

enum {
    LM_PENDING = 256,   /* launches between two synchronisations */
    LM_SHARD = 256,     /* keys a decode kernel looks at */
    LM_STEP = 512,      /* most bytes of one step: a longer text takes several */
    LM_SLOTS = 2,       /* generated matrices in flight */
    LM_NODES_STEP = 16, /* most bytes of a step over nodes: all blocks before it are with them */
    LM_BLOCK_KEYS = 8   /* positions of a KV block */
};

struct mr_lm {
    const mr_lm_model *m;
    mr_lm_options o;
    mr_device *gpu;
    mr_device_info gpu_info;
    mr_queue *queue;
    size_t position;
    size_t most;       /* bytes of a step */
    mr_shards *shards; /* NULL: the KV cache is in k_cache and v_cache */
    float *shard_rows; /* a step on its way to them: queries, keys, values, attention */
    mr_event *pending[LM_PENDING];
    size_t num_pending;
    mr_lm_stats stats;

    /* the model, by factor id and by layer */
    mr_buffer **matrix, **scales;
    mr_buffer **attn_norm, **ffn_norm, **k_cache, **v_cache;
    mr_buffer *embed, *norm, *cosine, *sine;

    /* a step */
    int32_t *tokens_host, *counts_host;
    mr_buffer *tokens, *x, *h, *q, *o_buf, *logits;
    mr_buffer *part_m, *part_d, *part_o, *merged_m, *merged_d;
    mr_buffer *router_logits, *ids, *weights, *counts, *lists;
    mr_buffer *gate, *up, *slots, *chain[2];

    /* generation */
    mr_generator *generator;
    mr_generator_seed **seeds; /* by factor id */
    mr_generator_slot *slot[LM_SLOTS];
    mr_buffer *tile[LM_SLOTS];
    mr_event *consumer[LM_SLOTS]; /* the kernel that reads tile[i] */
    const mr_lm_factor **plan;    /* what the layer needs, in order */
    size_t planned, started, used;
    mr_buffer *gathered, *ones, *zeros; /* apply mode: vectors on their way, constants */
    float *host_x;
    void *check;
};

/* A product with a matrix: count vectors, x rows and y rows chosen by index / in_div or in order.
 */
typedef struct lm_io {
    mr_buffer *x, *y;
    size_t x_stride, y_stride, y_offset; /* floats */
    mr_buffer *in_index, *out_index;
    size_t index_offset, in_div, count;
    bool add;
} lm_io;

mr_status lm_wait(mr_lm *lm, mr_event *event);
/* Waits for all launches so far; the first failure is returned. */
mr_status lm_sync(mr_lm *lm);
/* Appends the number of items to the arguments. With event == NULL the launch belongs to lm_sync.
 */
mr_status lm_launch(mr_lm *lm, const char *name, size_t items, mr_event **event, const mr_arg *args,
                    size_t count);
mr_status lm_read(mr_lm *lm, mr_buffer *from, size_t offset, void *to, size_t bytes);
/* weights NULL: the factor's own. */
mr_status lm_matmul(mr_lm *lm, const lm_io *io, const mr_lm_factor *f, mr_buffer *weights,
                    mr_event **event);

/* The feed-forward part of a layer: x += FFN(h). */
mr_status lm_feed_forward(mr_lm *lm, size_t layer, size_t count);

/* ---- generation ---- */
mr_status lm_weights_open(mr_lm *lm);
void lm_weights_close(mr_lm *lm);
void lm_plan_clear(mr_lm *lm);
void lm_plan_add(mr_lm *lm, const mr_lm_factor *f);
/* Starts the first of the plan. */
mr_status lm_plan_start(mr_lm *lm);
/* The next matrix of the plan, on the GPU, for one launch whose event goes to *consumer. */
mr_status lm_plan_next(mr_lm *lm, const mr_lm_factor *f, mr_buffer **weights, mr_event ***consumer);
/* io through the unit's apply mode. */
mr_status lm_apply(mr_lm *lm, const lm_io *io, const mr_lm_factor *f);

#endif
