/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transformer flow forward: all tokens of a few images at once. A reversed block walks the
 * tokens of all images backwards, so the images come in reverse order, too. Keys and values are
 * stored into the banks as matrices, one pair for each image and head; a matrix of very negative
 * numbers above the diagonal makes the attention causal.
 */
#include "host/flow/tar.h"

#include <string.h>

/* Where things lie in a half's `work` rows. */
typedef struct layout {
    size_t tokens;         /* of the half */
    size_t xr, dr, fr, nc; /* rows of a token, of its hidden vector, of ff; of a row of scores */
    size_t heads, pairs;   /* of an image; of the half */
    size_t chunk;          /* pairs whose scores exist at once */
    size_t h, n, wide, s;  /* first rows; wide: q, k, v, or the feed-forward part, or a and mu */
    size_t least, rest;    /* scalars: largest scores, sums */
} layout;

static layout layout_of(const flow_compiler *c) {
    const mr_flow *f = c->f;
    layout l = {.tokens = c->batch * f->tokens, .heads = f->heads};
    l.xr = c->x_rows;
    l.dr = f->width / FLOW_WORDS;
    l.fr = flow_rows(f->ff);
    l.nc = flow_rows(f->tokens);
    l.pairs = c->batch * f->heads;
    l.chunk = f->tokens % FLOW_WORDS == 0 && l.pairs * f->tokens * l.nc <= 512 ? l.pairs : 1;
    size_t wide = 3 * l.dr > l.fr ? 3 * l.dr : l.fr;
    if (wide < 3 * l.xr)
        wide = 3 * l.xr;
    l.n = l.tokens * l.dr;
    l.wide = l.n + l.tokens * l.dr;
    l.s = l.wide + l.tokens * wide;
    l.least = c->ld_rows;
    l.rest = l.least + flow_rows(l.chunk * f->tokens > l.tokens ? l.chunk * f->tokens : l.tokens);
    return l;
}

static void prepare(flow_compiler *c) {
    const mr_flow *f = c->f;
    layout l = layout_of(c);
    c->state = l.tokens * l.xr;
    c->tokens_apart = l.xr;
    c->images_apart = f->tokens * l.xr;
    c->work = l.s + l.chunk * f->tokens * l.nc;
    c->scalars = l.rest + l.rest - l.least;
    c->cache = l.pairs * 8 * l.nc; /* keys 4 nc columns, values 4 nc */
    c->wregs = 2 * l.pairs;
    float *mask = flow_shared_rows(c, f->tokens * l.nc);
    for (size_t t = 0; mask && t < f->tokens; t++)
        for (size_t j = 0; j < l.nc * FLOW_WORDS; j++)
            mask[t * l.nc * FLOW_WORDS + j] = j <= t ? 0 : FLOW_MASKED;
}

static void pack(flow_compiler *c, size_t b, flow_block_data *d) { tar_pack(c, b, d, 1); }

/* ---- Attention --------------------------------------------------------------------------------
 */

typedef struct pair {
    size_t image, head;
    uint16_t keys, values; /* columns */
    uint8_t key_reg, value_reg;
} pair;

static pair pair_at(const flow_half *h, const layout *l, size_t i) {
    return (pair){.image = i / l->heads,
                  .head = i % l->heads,
                  .keys = (uint16_t)(h->cache + i * 8 * l->nc),
                  .values = (uint16_t)(h->cache + i * 8 * l->nc + 4 * l->nc),
                  .key_reg = (uint8_t)(h->wreg + 2 * i),
                  .value_reg = (uint8_t)(h->wreg + 2 * i + 1)};
}

/* Row of part 0 q, 1 k, 2 v of an image's first token. */
static uint16_t part_row(const flow_compiler *c, const flow_half *h, const layout *l, const pair *p,
                         size_t part) {
    return (uint16_t)(h->work + l->wide + p->image * c->f->tokens * 3 * l->dr + part * l->dr +
                      p->head);
}

static void store_pair(const flow_compiler *c, const flow_half *h, const layout *l, const pair *p,
                       flow_ops *ops) {
    mr_pnm_wstore w = {.reset = true,
                       .wreg = p->key_reg,
                       .col = p->keys,
                       .kc = 1,
                       .length = FLOW_WORDS,
                       .vectors = (uint16_t)c->f->tokens,
                       .x = part_row(c, h, l, p, 1),
                       .x_stride = (int16_t)(3 * l->dr)};
    flow_wstore(ops, &w);
    w.transposed = true;
    w.wreg = p->value_reg;
    w.col = p->values;
    w.kc = (uint16_t)l->nc;
    w.x = part_row(c, h, l, p, 2);
    flow_wstore(ops, &w);
}

static void attention(const flow_compiler *c, const flow_group *g, const flow_half *h,
                      const layout *l, flow_ops *ops) {
    uint16_t tokens = (uint16_t)c->f->tokens, nc = (uint16_t)l->nc;
    uint16_t s = (uint16_t)(h->work + l->s), least = (uint16_t)(h->scalars + l->least),
             rest = (uint16_t)(h->scalars + l->rest);
    for (size_t first = 0; first < l->pairs; first += l->chunk) {
        for (size_t i = 0; i < l->chunk; i++) {
            pair p = pair_at(h, l, first + i);
            store_pair(c, h, l, &p, ops);
            flow_matvec(ops, &(mr_pnm_matvec){.accum = true,
                                              .use_wreg = true,
                                              .mode = c->o.mode,
                                              .wexp = p.key_reg,
                                              .col = p.keys,
                                              .kc = 1,
                                              .outputs = (uint16_t)(nc * FLOW_WORDS),
                                              .vectors = tokens,
                                              .x = part_row(c, h, l, &p, 0),
                                              .x_stride = (int16_t)(3 * l->dr),
                                              .y = (uint16_t)(s + i * tokens * nc),
                                              .y_stride = (int16_t)nc,
                                              .old = g->shared,
                                              .old_stride = (int16_t)nc});
        }
        tar_softmax(ops, s, (int16_t)nc, l->chunk * tokens, nc, least, rest);
        for (size_t i = 0; i < l->chunk; i++) {
            pair p = pair_at(h, l, first + i);
            uint16_t o = (uint16_t)(h->work + l->n + p.image * tokens * l->dr + p.head);
            flow_matvec(ops, &(mr_pnm_matvec){.use_wreg = true,
                                              .mode = c->o.mode,
                                              .wexp = p.value_reg,
                                              .col = p.values,
                                              .kc = nc,
                                              .outputs = FLOW_WORDS,
                                              .vectors = tokens,
                                              .x = (uint16_t)(s + i * tokens * nc),
                                              .x_stride = (int16_t)nc,
                                              .y = o,
                                              .y_stride = (int16_t)l->dr});
            flow_vec(ops, &(mr_pnm_vec){.count = tokens,
                                        .width = 1,
                                        .mul = MR_PNM_SCALAR,
                                        .a = o,
                                        .d = o,
                                        .b = (uint16_t)(rest + i * tokens / FLOW_WORDS),
                                        .a_stride = (int16_t)l->dr,
                                        .d_stride = (int16_t)l->dr});
        }
    }
}

/* ---- A block ----------------------------------------------------------------------------------
 */

/* h_0 = pos[0], h_t = win x_(t-1) + (bin + pos[t]). */
static void embed(const flow_compiler *c, const flow_half *h, const layout *l, const tar_place *p,
                  flow_ops *ops) {
    size_t tokens = c->f->tokens;
    int x = h->x, step = (int)l->xr;
    if (p->reversed) {
        x += (int)((l->tokens - 1) * l->xr);
        step = -step;
    }
    for (size_t i = 0; i < c->batch && tokens > 1; i++)
        flow_multiply(ops, tar_matrix(p, TAR_WIN),
                      &(mr_pnm_matvec){.accum = true,
                                       .mode = c->o.mode,
                                       .vectors = (uint16_t)(tokens - 1),
                                       .col = p->col[TAR_WIN],
                                       .x = (uint16_t)(x + (int)(i * tokens) * step),
                                       .x_stride = (int16_t)step,
                                       .y = (uint16_t)(h->work + l->h + (i * tokens + 1) * l->dr),
                                       .y_stride = (int16_t)l->dr,
                                       .old = (uint16_t)(p->row[TAR_POS] + l->dr),
                                       .old_stride = (int16_t)l->dr});
    flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)c->batch,
                                .width = (uint16_t)l->dr,
                                .a = p->row[TAR_POS],
                                .d = (uint16_t)(h->work + l->h),
                                .d_stride = (int16_t)(tokens * l->dr)});
}

/* x becomes (x - mu) exp(-a); the log-determinants lose the sums of a. */
static void change(const flow_compiler *c, const flow_half *h, const layout *l, const tar_place *p,
                   flow_ops *ops) {
    int am = (int)(h->work + l->wide), a = am + (int)(2 * l->xr * l->tokens), xr = (int)l->xr;
    int per_image = (int)c->f->tokens * xr;
    flow_tanh(ops, (flow_view){am, 2 * xr}, (flow_view){a, xr}, l->tokens, l->xr,
              c->f->block[p->block].alpha);
    int first = p->reversed ? a + (int)(c->batch - 1) * per_image : a;
    flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)c->batch,
                                .width = (uint16_t)per_image,
                                .reduce = MR_PNM_SUM,
                                .a = (uint16_t)first,
                                .a_stride = (int16_t)(p->reversed ? -per_image : per_image),
                                .d = h->scalars});
    flow_vec(ops, &(mr_pnm_vec){.count = 1,
                                .width = (uint16_t)c->ld_rows,
                                .add = MR_PNM_ELEM,
                                .neg_add = true,
                                .d = h->ld,
                                .a = h->ld,
                                .c = h->scalars});
    mr_pnm_vec v = {.count = (uint16_t)l->tokens, .width = (uint16_t)xr};
    v.fn = MR_PNM_FN_EXP2;
    v.mul = MR_PNM_IMM;
    v.imm_m = -FLOW_LOG2E;
    v.a = v.d = (uint16_t)a;
    v.a_stride = v.d_stride = (int16_t)xr;
    flow_vec(ops, &v);
    v.fn = MR_PNM_FN_ID;
    v.mul = MR_PNM_NONE;
    v.add = MR_PNM_ELEM;
    v.neg_add = true;
    v.a = v.d = (uint16_t)(h->x + (p->reversed ? (l->tokens - 1) * l->xr : 0));
    v.a_stride = v.d_stride = (int16_t)(p->reversed ? -xr : xr);
    v.c = (uint16_t)(am + xr);
    v.c_stride = (int16_t)(2 * xr);
    flow_vec(ops, &v);
    v.add = MR_PNM_NONE;
    v.neg_add = false;
    v.mul = MR_PNM_ELEM;
    v.b = (uint16_t)a;
    v.b_stride = (int16_t)xr;
    flow_vec(ops, &v);
}

/* The next guess of x, from z, which lies behind it: z exp(a) + mu. */
static void improve(const flow_compiler *c, const flow_half *h, const layout *l, const tar_place *p,
                    flow_ops *ops) {
    int am = (int)(h->work + l->wide), a = am + (int)(2 * l->xr * l->tokens), xr = (int)l->xr;
    flow_tanh(ops, (flow_view){am, 2 * xr}, (flow_view){a, xr}, l->tokens, l->xr,
              c->f->block[p->block].alpha);
    mr_pnm_vec v = {.count = (uint16_t)l->tokens,
                    .width = (uint16_t)xr,
                    .fn = MR_PNM_FN_EXP2,
                    .mul = MR_PNM_IMM,
                    .imm_m = FLOW_LOG2E,
                    .a = (uint16_t)a,
                    .d = (uint16_t)a,
                    .a_stride = (int16_t)xr,
                    .d_stride = (int16_t)xr};
    flow_vec(ops, &v);
    int first = h->x + (p->reversed ? (int)(l->tokens - 1) * xr : 0);
    v.fn = MR_PNM_FN_ID;
    v.mul = v.add = MR_PNM_ELEM;
    v.d = (uint16_t)first;
    v.a = (uint16_t)(first + (int)(c->state / 2));
    v.a_stride = v.d_stride = (int16_t)(p->reversed ? -xr : xr);
    v.b = (uint16_t)a;
    v.b_stride = (int16_t)xr;
    v.c = (uint16_t)(am + xr);
    v.c_stride = (int16_t)(2 * xr);
    flow_vec(ops, &v);
}

static void block(flow_compiler *c, const flow_group *g, const flow_half *h, size_t e,
                  flow_ops *ops) {
    layout l = layout_of(c);
    tar_place p = tar_place_of(c, g, e);
    tar_rows r = {.count = l.tokens,
                  .h = (uint16_t)(h->work + l.h),
                  .n = (uint16_t)(h->work + l.n),
                  .wide = (uint16_t)(h->work + l.wide),
                  .scalars = (uint16_t)(h->scalars + l.least)};
    embed(c, h, &l, &p, ops);
    for (size_t y = 0; y < c->f->layers; y++) {
        tar_before_attention(c, &p, y, &r, ops);
        attention(c, g, h, &l, ops);
        tar_after_attention(c, &p, y, &r, ops);
    }
    tar_output(c, &p, &r, ops);
    if (c->o.improve)
        improve(c, h, &l, &p, ops);
    else
        change(c, h, &l, &p, ops);
}

static void prepare_both(flow_compiler *c) {
    prepare(c);
    c->state *= 2; /* x, then z */
}

const flow_net flow_net_tar = {prepare, pack, block};
const flow_net flow_net_tar_improve = {prepare_both, pack, block};
