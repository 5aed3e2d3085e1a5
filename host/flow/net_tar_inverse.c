/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transformer flow backwards, token by token, for a few images side by side. Keys and values of
 * the tokens so far stay in the banks. Those of all heads of a token lie in one matrix of an image
 * and layer, so that one store, one product with the scores and one with the values do all heads:
 * score t * H + j of head i counts where j = i, a matrix of very negative numbers sees to that (H:
 * heads rounded up to a power of two).
 */
#include "host/flow/tar.h"

#include <string.h>

typedef struct layout {
    size_t xr, dr, kc; /* rows of a token, of a hidden vector, of scores of all tokens and heads */
    size_t heads, apart, per_row; /* heads; rounded up; tokens in a row of scores */
    size_t h, n, wide, s;
    size_t least, rest;
    size_t columns; /* of an image's and layer's keys (as many for its values) */
} layout;

static layout layout_of(const flow_compiler *c) {
    const mr_flow *f = c->f;
    layout l = {.xr = c->x_rows, .dr = f->width / FLOW_WORDS, .heads = f->heads, .apart = 1};
    while (l.apart < l.heads && l.apart < FLOW_WORDS)
        l.apart *= 2;
    l.per_row = FLOW_WORDS / l.apart;
    l.kc = flow_rows(f->tokens * l.apart);
    size_t wide = 3 * l.dr > flow_rows(f->ff) ? 3 * l.dr : flow_rows(f->ff);
    if (wide < 2 * l.xr)
        wide = 2 * l.xr;
    l.n = c->batch * l.dr;
    l.wide = l.n + c->batch * l.dr;
    l.s = l.wide + c->batch * wide;
    l.least = 0;
    l.rest = flow_rows(c->batch * l.heads);
    l.columns = c->o.cut ? 0 : l.kc * FLOW_WORDS / MR_PNM_PES;
    return l;
}

/* Shared rows: one of zeros, then for each phase (a token's place in its row of scores) and head
 * kc - 1 rows that are whole and one that ends with the token. */
static void prepare(flow_compiler *c) {
    layout l = layout_of(c);
    c->state = c->batch * c->f->tokens * l.xr;
    c->tokens_apart = l.xr;
    c->images_apart = c->f->tokens * l.xr;
    c->work = l.s + (c->o.cut ? 0 : c->batch * l.heads * l.kc);
    c->scalars = 2 * l.rest;
    c->cache = c->batch * c->f->layers * 2 * l.columns;
    if (c->o.cut)
        return; /* scores, keys and values are elsewhere */
    c->wregs = c->batch * c->f->layers * 2;
    float *row = flow_shared_rows(c, 1 + l.per_row * l.heads * l.kc);
    if (!row)
        return;
    row += FLOW_WORDS;
    for (size_t phase = 0; phase < l.per_row; phase++)
        for (size_t head = 0; head < l.heads; head++)
            for (size_t i = 0; i < l.kc * FLOW_WORDS; i++, row++) {
                size_t word = i % FLOW_WORDS;
                bool ended = i / FLOW_WORDS + 1 == l.kc && word >= (phase + 1) * l.apart;
                *row = (word & (l.apart - 1)) == head && !ended ? 0 : FLOW_MASKED;
            }
}

static void pack(flow_compiler *c, size_t b, flow_block_data *d) {
    tar_pack(c, b, d, c->f->tokens);
}

/* ---- One token --------------------------------------------------------------------------------
 */

typedef struct step {
    size_t t, at; /* in the block's order, in the image's */
    size_t rows;  /* of scores that exist */
} step;

static void attention(const flow_compiler *c, const flow_group *g, const flow_half *h,
                      const layout *l, size_t layer, const step *s, flow_ops *ops) {
    uint16_t scores = (uint16_t)(h->work + l->s), rest = (uint16_t)(h->scalars + l->rest);
    uint16_t mask =
        (uint16_t)(g->shared + 1 + s->t % l->per_row * l->heads * l->kc + l->kc - s->rows);
    for (size_t i = 0; i < c->batch; i++) {
        size_t pair = (i * c->f->layers + layer) * 2;
        uint16_t qkv = (uint16_t)(h->work + l->wide + i * 3 * l->dr);
        mr_pnm_wstore w = {.wreg = (uint8_t)(h->wreg + pair),
                           .col = (uint16_t)(h->cache + pair * l->columns),
                           .kc = 1,
                           .length = FLOW_WORDS,
                           .vectors = (uint16_t)l->heads,
                           .x = (uint16_t)(qkv + l->dr),
                           .x_stride = 1,
                           .first = (uint16_t)(s->t * l->apart)};
        flow_wstore(ops, &w);
        flow_matvec(ops, &(mr_pnm_matvec){.accum = true,
                                          .use_wreg = true,
                                          .mode = c->o.mode,
                                          .wexp = w.wreg,
                                          .col = w.col,
                                          .kc = 1,
                                          .outputs = (uint16_t)(s->rows * FLOW_WORDS),
                                          .vectors = (uint16_t)l->heads,
                                          .x = qkv,
                                          .x_stride = 1,
                                          .y = (uint16_t)(scores + i * l->heads * l->kc),
                                          .y_stride = (int16_t)l->kc,
                                          .old = mask,
                                          .old_stride = (int16_t)l->kc});
        w.transposed = true;
        w.reset = s->t == 0;
        w.wreg++;
        w.col = (uint16_t)(w.col + l->columns);
        w.kc = (uint16_t)l->kc;
        w.x = (uint16_t)(qkv + 2 * l->dr);
        flow_wstore(ops, &w);
    }
    tar_softmax(ops, scores, (int16_t)l->kc, c->batch * l->heads, s->rows,
                (uint16_t)(h->scalars + l->least), rest);
    for (size_t i = 0; i < c->batch; i++) {
        size_t pair = (i * c->f->layers + layer) * 2 + 1;
        flow_matvec(ops, &(mr_pnm_matvec){.use_wreg = true,
                                          .mode = c->o.mode,
                                          .wexp = (uint8_t)(h->wreg + pair),
                                          .col = (uint16_t)(h->cache + pair * l->columns),
                                          .kc = (uint16_t)l->kc,
                                          .outputs = FLOW_WORDS,
                                          .vectors = (uint16_t)l->heads,
                                          .x = (uint16_t)(scores + i * l->heads * l->kc),
                                          .x_stride = (int16_t)l->kc,
                                          .y = (uint16_t)(h->work + l->n + i * l->dr),
                                          .y_stride = 1});
    }
    uint16_t o = (uint16_t)(h->work + l->n);
    flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)(c->batch * l->heads),
                                .width = 1,
                                .mul = MR_PNM_SCALAR,
                                .a = o,
                                .d = o,
                                .b = rest,
                                .a_stride = 1,
                                .d_stride = 1});
}

/* Queries, keys and values of all images go, their attention comes. */
static void hand_over(const flow_compiler *c, const flow_group *g, const flow_half *h,
                      const layout *l, size_t layer, const step *s, size_t e, flow_ops *ops) {
    size_t index = ((e - g->first) * c->f->tokens + s->t) * c->f->layers + layer;
    flow_op op = {.kind = FLOW_HANDOVER};
    op.handover = (flow_handover){.from = (uint16_t)(h->work + l->wide),
                                  .from_rows = (uint16_t)(c->batch * 3 * l->dr),
                                  .from_addr = g->qkv,
                                  .to = (uint16_t)(h->work + l->n),
                                  .to_rows = (uint16_t)(c->batch * l->dr),
                                  .to_addr = g->attention,
                                  .end = g->ends ? g->ends + index : NULL};
    flow_ops_add(ops, &op);
}

/* h = pos[0], or win x of the token before + (bin + pos[t]). */
static void embed(const flow_compiler *c, const flow_half *h, const layout *l, const tar_place *p,
                  const step *s, flow_ops *ops) {
    if (s->t == 0) {
        flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)c->batch,
                                    .width = (uint16_t)l->dr,
                                    .a = p->row[TAR_POS],
                                    .d = (uint16_t)(h->work + l->h),
                                    .d_stride = (int16_t)l->dr});
        return;
    }
    size_t before = p->reversed ? s->at + 1 : s->at - 1;
    flow_multiply(ops, tar_matrix(p, TAR_WIN),
                  &(mr_pnm_matvec){.accum = true,
                                   .mode = c->o.mode,
                                   .vectors = (uint16_t)c->batch,
                                   .col = p->col[TAR_WIN],
                                   .x = (uint16_t)(h->x + before * l->xr),
                                   .x_stride = (int16_t)c->images_apart,
                                   .y = (uint16_t)(h->work + l->h),
                                   .y_stride = (int16_t)l->dr,
                                   .old = (uint16_t)(p->row[TAR_POS] + s->t * l->dr)});
}

/* x = z exp(a) + mu. */
static void change(const flow_compiler *c, const flow_half *h, const layout *l, const tar_place *p,
                   const step *s, flow_ops *ops) {
    uint16_t am = (uint16_t)(h->work + l->wide), x = (uint16_t)(h->x + s->at * l->xr);
    int16_t apart = (int16_t)(2 * l->xr);
    flow_view a = {am, apart};
    flow_tanh(ops, a, a, c->batch, l->xr, c->f->block[p->block].alpha);
    mr_pnm_vec v = {.count = (uint16_t)c->batch,
                    .width = (uint16_t)l->xr,
                    .fn = MR_PNM_FN_EXP2,
                    .mul = MR_PNM_IMM,
                    .imm_m = FLOW_LOG2E,
                    .a = am,
                    .d = am,
                    .a_stride = apart,
                    .d_stride = apart};
    flow_vec(ops, &v);
    v.fn = MR_PNM_FN_ID;
    v.mul = v.add = MR_PNM_ELEM;
    v.a = v.d = x;
    v.a_stride = v.d_stride = (int16_t)c->images_apart;
    v.b = am;
    v.c = (uint16_t)(am + l->xr);
    v.b_stride = v.c_stride = apart;
    flow_vec(ops, &v);
}

/*
 * What stands for tokens that are still to come counts nothing: no probability, and keys of zero.
 * Keys that the image or block before left would be masked, too, but their exponents may lie above
 * the register's, and STATUS.range would be set without a reason.
 */
static void clear(const flow_compiler *c, const flow_group *g, const flow_half *h, const layout *l,
                  flow_ops *ops) {
    flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)(c->batch * l->heads * l->kc),
                                .width = 1,
                                .a = g->shared,
                                .d = (uint16_t)(h->work + l->s),
                                .d_stride = 1});
    for (size_t pair = 0; pair < c->batch * c->f->layers * 2; pair += 2)
        flow_wstore(ops, &(mr_pnm_wstore){.reset = true,
                                          .wreg = (uint8_t)(h->wreg + pair),
                                          .col = (uint16_t)(h->cache + pair * l->columns),
                                          .kc = 1,
                                          .length = FLOW_WORDS,
                                          .vectors = (uint16_t)(l->kc * FLOW_WORDS),
                                          .x = g->shared});
}

static void block(flow_compiler *c, const flow_group *g, const flow_half *h, size_t e,
                  flow_ops *ops) {
    layout l = layout_of(c);
    tar_place p = tar_place_of(c, g, e);
    tar_rows r = {.count = c->batch,
                  .h = (uint16_t)(h->work + l.h),
                  .n = (uint16_t)(h->work + l.n),
                  .wide = (uint16_t)(h->work + l.wide),
                  .scalars = (uint16_t)(h->scalars + l.least)};
    if (!c->o.cut)
        clear(c, g, h, &l, ops);
    for (size_t t = 0; t < c->f->tokens; t++) {
        step s = {t, p.reversed ? c->f->tokens - 1 - t : t, t / l.per_row + 1};
        embed(c, h, &l, &p, &s, ops);
        for (size_t y = 0; y < c->f->layers; y++) {
            tar_before_attention(c, &p, y, &r, ops);
            if (c->o.cut)
                hand_over(c, g, h, &l, y, &s, e, ops);
            else
                attention(c, g, h, &l, y, &s, ops);
            tar_after_attention(c, &p, y, &r, ops);
        }
        tar_output(c, &p, &r, ops);
        change(c, h, &l, &p, &s, ops);
    }
}

const flow_net flow_net_tar_inverse = {prepare, pack, block};
