/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the flow compiler share. */
#ifndef HOST_FLOW_COMPILE_H
#define HOST_FLOW_COMPILE_H

#include "host/flow/plan.h"

enum {
    FLOW_WORDS = MR_PNM_ROW_WORDS,
    FLOW_MAX_BLOCK_MATRICES = 6 * 32 + 4,
    FLOW_MAX_BLOCK_ROWS = 4 * 32 + 8,
    FLOW_HALVES = 2
};
/* Cycles that a column of a bank quartet takes to come from memory. */
#define FLOW_LOAD_COLUMN 2.0
#define FLOW_LOG2E 1.44269504088896340736f
#define FLOW_MASKED (-1e30f) /* added to a score that must not count: exp2 makes 0 of it */

static inline size_t flow_rows(size_t words) { return (words + FLOW_WORDS - 1) / FLOW_WORDS; }

/* ---- Operations: a block's work before it is put into a list ------------------------------------
 */

typedef enum {
    FLOW_MULTIPLY,
    FLOW_MATVEC,
    FLOW_WSTORE,
    FLOW_VEC,
    FLOW_HANDOVER /* rows to memory, end of a part, rows from memory */
} flow_op_kind;

typedef struct flow_handover {
    uint16_t from, from_rows, to, to_rows;
    uint64_t from_addr, to_addr;
    uint32_t *end; /* index of the next part's first descriptor */
} flow_handover;

typedef struct flow_op {
    flow_op_kind kind;
    const mr_pnm_matrix *matrix; /* MULTIPLY */
    union {
        mr_pnm_matvec mv;
        mr_pnm_wstore ws;
        mr_pnm_vec vec;
        flow_handover handover;
    };
} flow_op;

typedef struct flow_ops {
    flow_op *op;
    size_t count, room;
    bool failed; /* out of memory */
} flow_ops;

void flow_ops_add(flow_ops *ops, const flow_op *op);
void flow_ops_clear(flow_ops *ops);

/* Cycles of one operation by the cost function (docs/flow.md). */
double flow_op_cycles(const flow_op *op);
/* Of one or two independent lists, interleaved as flow_ops_emit() does. */
double flow_ops_cycles(const flow_ops *ops, size_t count);

/* Puts one or two independent lists into a group's program, the two interleaved so that one's
 * matrices and the other's vectors overlap. */
void flow_ops_emit(mr_pnm_builder *b, unsigned group, const flow_ops *ops, size_t count);

/* Short forms. */
void flow_vec(flow_ops *ops, const mr_pnm_vec *v);
void flow_multiply(flow_ops *ops, const mr_pnm_matrix *m, const mr_pnm_matvec *mv);
void flow_matvec(flow_ops *ops, const mr_pnm_matvec *mv);
void flow_wstore(flow_ops *ops, const mr_pnm_wstore *ws);

/* Vectors of `width` rows, `stride` apart, from `row` on. */
typedef struct flow_view {
    int row, stride;
} flow_view;

/* In place over a view: a -> tanh-like scale alpha (2 / (1 + exp(-2 a)) - 1); result to `to`. */
void flow_tanh(flow_ops *ops, flow_view a, flow_view to, size_t count, size_t width, float alpha);

/* ---- The network of a kind and direction --------------------------------------------------------
 */

/* A matrix of the flow: packed once, placed in each group that uses it. */
typedef struct flow_weight {
    mr_pnm_matrix matrix;
    size_t calls; /* MATVECs of an iteration that use it: its heat */
} flow_weight;

/* Rows that are loaded once: biases and the like. */
typedef struct flow_fixed {
    uint64_t addr;
    size_t rows;
} flow_fixed;

typedef struct flow_block_data {
    flow_weight weight[FLOW_MAX_BLOCK_MATRICES];
    size_t weights;
    flow_fixed fixed[FLOW_MAX_BLOCK_ROWS];
    size_t fixeds;
} flow_block_data;

typedef struct flow_compiler flow_compiler;

/* One half of a group's scratchpad. */
typedef struct flow_half {
    uint16_t x; /* state: x, then the log-determinants, in consecutive rows */
    uint16_t ld;
    uint16_t work, scalars; /* rows of the kind's own; scalars start as zeros */
    uint16_t cache;         /* columns of its keys and values */
    uint8_t wreg;           /* its first exponent register */
} flow_half;

typedef struct flow_group {
    unsigned group;
    size_t first, last; /* blocks in the order of execution */
    flow_half half[FLOW_HALVES];
    uint16_t shared; /* rows of the kind's own, the same for all blocks */
    /* a plan that is cut: q, k, v and attention of its images in memory; where parts end, in the
     * order blocks, tokens, layers */
    uint64_t qkv, attention;
    uint32_t *ends;
    /* for block e - first: columns of its matrices, rows of its fixed data */
    uint16_t (*col)[FLOW_MAX_BLOCK_MATRICES];
    uint16_t (*row)[FLOW_MAX_BLOCK_ROWS];
} flow_group;

/* What a kind needs; sizes are set by `prepare`. */
typedef struct flow_net {
    /* Sizes and shared data from c->batch; packs block b's matrices (data is zeroed). */
    void (*prepare)(flow_compiler *c);
    void (*pack)(flow_compiler *c, size_t block, flow_block_data *data);
    /* A half's operations for one block, e its place in the order of execution. */
    void (*block)(flow_compiler *c, const flow_group *g, const flow_half *h, size_t e,
                  flow_ops *ops);
} flow_net;

extern const flow_net flow_net_coupling, flow_net_tar, flow_net_tar_improve, flow_net_tar_inverse;

struct flow_compiler {
    const mr_flow *f;
    mr_flow_plan_options o;
    mr_pnm_builder *b;
    const flow_net *net;
    size_t batch;                       /* images of a half */
    size_t state;                       /* rows of x of a half */
    size_t ld_rows;                     /* rows of log-determinants */
    size_t work, scalars, cache, wregs; /* of a half: rows, rows, columns, registers */
    size_t x_rows;                      /* of a token */
    size_t zero_work;                   /* of work: rows that start as zeros */
    flow_fixed shared;
    /* position (row and word) of token t's channel c in a half's state, image i */
    size_t tokens_apart, images_apart, lead, line; /* rows; line: tokens in one, 0: all */
    uint16_t *order; /* [channels] place of a channel within its token */
    flow_block_data *data;
};

/* Row of token t of image i within the state. */
static inline size_t flow_token_row(const flow_compiler *c, size_t image, size_t token) {
    size_t line = c->line ? token / c->line * (c->line + 1) + token % c->line : token;
    return c->lead + image * c->images_apart + line * c->tokens_apart;
}

/* The block that comes e-th. */
static inline size_t flow_block_at(const flow_compiler *c, size_t e) {
    return c->o.inverse ? c->f->blocks - 1 - e : e;
}

/* Packs a matrix as the next of the block's. */
void flow_pack(flow_compiler *c, flow_block_data *d, const char *name, const float *w,
               size_t outputs, size_t inputs, size_t calls);
/* Rows of floats as the next of the block's fixed data; values are set by the caller. */
float *flow_pack_rows(flow_compiler *c, flow_block_data *d, size_t rows);
/* The same for data that all blocks share; `prepare` asks once. */
float *flow_shared_rows(flow_compiler *c, size_t rows);

#endif
