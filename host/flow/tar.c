/* SPDX-License-Identifier: Apache-2.0 */
#include "host/flow/tar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Matrices ---------------------------------------------------------------------------------
 */

static void bias(flow_compiler *c, flow_block_data *d, const float *v, size_t n, size_t rows) {
    float *to = flow_pack_rows(c, d, rows);
    if (to)
        memcpy(to, v, n * sizeof *to);
}

/* wq, wk and wv one below the other; k and v have no bias. */
static void pack_qkv(flow_compiler *c, const mr_flow_layer *y, const char *name, flow_block_data *d,
                     size_t calls) {
    size_t n = c->f->width * c->f->width;
    float *w = malloc(3 * n * sizeof *w);
    if (w) {
        memcpy(w, y->wq, n * sizeof *w);
        memcpy(w + n, y->wk, n * sizeof *w);
        memcpy(w + 2 * n, y->wv, n * sizeof *w);
    }
    flow_pack(c, d, name, w, 3 * c->f->width, c->f->width, calls);
    free(w);
    bias(c, d, y->bq, c->f->width, 3 * c->f->width / FLOW_WORDS);
}

/* a' in the first rows of the result, mu in as many after them. */
static void pack_out(flow_compiler *c, const mr_flow_block *p, flow_block_data *d, size_t calls) {
    size_t n = c->f->channels, part = c->x_rows * FLOW_WORDS, in = c->f->width;
    float *w = calloc(2 * part * in, sizeof *w);
    if (w) {
        memcpy(w, p->wout, n * in * sizeof *w);
        memcpy(w + part * in, p->wout + n * in, n * in * sizeof *w);
    }
    flow_pack(c, d, "wout", w, 2 * part, in, calls);
    free(w);
    float *to = flow_pack_rows(c, d, 2 * c->x_rows);
    if (to) {
        memcpy(to, p->bout, n * sizeof *to);
        memcpy(to + part, p->bout + n, n * sizeof *to);
    }
}

void tar_pack(flow_compiler *c, size_t block, flow_block_data *d, size_t calls) {
    const mr_flow *f = c->f;
    const mr_flow_block *p = &f->block[block];
    size_t width = f->width, dr = width / FLOW_WORDS;
    char name[64];
    flow_pack(c, d, "win", p->win, width, f->channels, calls);
    float *pos = flow_pack_rows(c, d, f->tokens * dr);
    for (size_t i = 0; pos && i < f->tokens * width; i++)
        pos[i] = i < width ? p->pos[i] : (float)((double)p->pos[i] + (double)p->bin[i % width]);
    pack_out(c, p, d, calls);
    for (size_t l = 0; l < f->layers; l++) {
        const mr_flow_layer *y = &p->layers[l];
        snprintf(name, sizeof name, "l%zu.wq, wk, wv", l);
        pack_qkv(c, y, name, d, calls);
        snprintf(name, sizeof name, "l%zu.wo", l);
        flow_pack(c, d, name, y->wo, width, width, calls);
        snprintf(name, sizeof name, "l%zu.w1", l);
        flow_pack(c, d, name, y->w1, f->ff, width, calls);
        snprintf(name, sizeof name, "l%zu.w2", l);
        flow_pack(c, d, name, y->w2, width, f->ff, calls);
        bias(c, d, y->bo, width, dr);
        bias(c, d, y->b1, f->ff, flow_rows(f->ff));
        bias(c, d, y->b2, width, dr);
    }
}

tar_place tar_place_of(const flow_compiler *c, const flow_group *g, size_t e) {
    size_t b = flow_block_at(c, e);
    return (tar_place){b, b % 2 == 1, &c->data[b], g->col[e - g->first], g->row[e - g->first]};
}

/* ---- Parts of a layer -------------------------------------------------------------------------
 */

/* n = h / sqrt(mean(h^2) + 1e-5): 2^(-1/2 log2(sum / D + 1e-5)). */
static void rms(const flow_compiler *c, const tar_rows *r, flow_ops *ops) {
    size_t dr = c->f->width / FLOW_WORDS;
    mr_pnm_vec v = {.count = (uint16_t)r->count,
                    .width = (uint16_t)dr,
                    .mul = MR_PNM_ELEM,
                    .reduce = MR_PNM_SUM,
                    .d = r->scalars,
                    .a = r->h,
                    .b = r->h,
                    .a_stride = (int16_t)dr,
                    .b_stride = (int16_t)dr};
    flow_vec(ops, &v);
    mr_pnm_vec s = {.count = 1,
                    .width = (uint16_t)flow_rows(r->count),
                    .d = r->scalars,
                    .a = r->scalars,
                    .fn = MR_PNM_FN_LOG2,
                    .mul = MR_PNM_IMM,
                    .imm_m = 1.0f / (float)c->f->width,
                    .add = MR_PNM_IMM,
                    .imm_c = 1e-5f};
    flow_vec(ops, &s);
    s.fn = MR_PNM_FN_EXP2;
    s.imm_m = -0.5f;
    s.add = MR_PNM_NONE;
    flow_vec(ops, &s);
    v.mul = MR_PNM_SCALAR;
    v.reduce = MR_PNM_KEEP;
    v.b = r->scalars;
    v.b_stride = 0;
    v.d = r->n;
    v.d_stride = (int16_t)dr;
    flow_vec(ops, &v);
}

/* y = matrix x + bias, all tokens; `onto`: y grows by it. */
typedef struct apply {
    size_t matrix, bias;
    uint16_t x, y;
    size_t x_rows, y_rows;
    bool onto, relu;
} apply;

static void multiply(const flow_compiler *c, const tar_place *p, const tar_rows *r, const apply *a,
                     flow_ops *ops) {
    flow_multiply(ops, tar_matrix(p, a->matrix),
                  &(mr_pnm_matvec){.bias = true,
                                   .accum = a->onto,
                                   .relu = a->relu,
                                   .mode = c->o.mode,
                                   .vectors = (uint16_t)r->count,
                                   .col = p->col[a->matrix],
                                   .x = a->x,
                                   .x_stride = (int16_t)a->x_rows,
                                   .y = a->y,
                                   .old = a->y,
                                   .y_stride = (int16_t)a->y_rows,
                                   .old_stride = (int16_t)a->y_rows,
                                   .bias_row = p->row[a->bias]});
}

/* Index of a layer's matrix, and of its fixed rows. */
static size_t matrix_of(size_t layer, size_t i) {
    return TAR_LAYER + layer * TAR_LAYER_MATRICES + i;
}
static size_t bias_of(size_t layer, size_t i) { return TAR_LAYER_ROWS + layer * TAR_BIASES + i; }

void tar_before_attention(const flow_compiler *c, const tar_place *p, size_t layer,
                          const tar_rows *r, flow_ops *ops) {
    size_t dr = c->f->width / FLOW_WORDS;
    rms(c, r, ops);
    multiply(c, p, r,
             &(apply){.matrix = matrix_of(layer, TAR_QKV),
                      .bias = bias_of(layer, TAR_BQKV),
                      .x = r->n,
                      .y = r->wide,
                      .x_rows = dr,
                      .y_rows = 3 * dr},
             ops);
}

void tar_after_attention(const flow_compiler *c, const tar_place *p, size_t layer,
                         const tar_rows *r, flow_ops *ops) {
    size_t dr = c->f->width / FLOW_WORDS, fr = flow_rows(c->f->ff);
    apply a = {.matrix = matrix_of(layer, TAR_WO),
               .bias = bias_of(layer, TAR_BO),
               .x = r->n,
               .y = r->h,
               .x_rows = dr,
               .y_rows = dr,
               .onto = true};
    multiply(c, p, r, &a, ops);
    rms(c, r, ops);
    multiply(c, p, r,
             &(apply){.matrix = matrix_of(layer, TAR_W1),
                      .bias = bias_of(layer, TAR_B1),
                      .x = r->n,
                      .y = r->wide,
                      .x_rows = dr,
                      .y_rows = fr,
                      .relu = true},
             ops);
    a.matrix = matrix_of(layer, TAR_W2);
    a.bias = bias_of(layer, TAR_B2);
    a.x = r->wide;
    a.x_rows = fr;
    multiply(c, p, r, &a, ops);
}

void tar_output(const flow_compiler *c, const tar_place *p, const tar_rows *r, flow_ops *ops) {
    size_t dr = c->f->width / FLOW_WORDS;
    rms(c, r, ops);
    multiply(c, p, r,
             &(apply){.matrix = TAR_WOUT,
                      .bias = TAR_BOUT,
                      .x = r->n,
                      .y = r->wide,
                      .x_rows = dr,
                      .y_rows = 2 * c->x_rows},
             ops);
}

void tar_softmax(flow_ops *ops, uint16_t s, int16_t stride, size_t count, size_t width,
                 uint16_t least, uint16_t rest) {
    uint16_t rows = (uint16_t)flow_rows(count);
    mr_pnm_vec v = {.count = (uint16_t)count,
                    .width = (uint16_t)width,
                    .a = s,
                    .a_stride = stride,
                    .reduce = MR_PNM_MAX,
                    .d = least};
    flow_vec(ops, &v);
    mr_pnm_vec m = {.count = 1, .width = rows, .a = least, .d = least};
    m.mul = MR_PNM_IMM;
    m.imm_m = FLOW_LOG2E;
    flow_vec(ops, &m);
    v.reduce = MR_PNM_KEEP;
    v.d = s;
    v.d_stride = stride;
    v.fn = MR_PNM_FN_EXP2;
    v.mul = MR_PNM_IMM;
    v.imm_m = FLOW_LOG2E;
    v.add = MR_PNM_SCALAR;
    v.neg_add = true;
    v.c = least;
    flow_vec(ops, &v);
    flow_vec(ops, &(mr_pnm_vec){.count = (uint16_t)count,
                                .width = (uint16_t)width,
                                .a = s,
                                .a_stride = stride,
                                .reduce = MR_PNM_SUM,
                                .d = rest});
    m = (mr_pnm_vec){.count = 1, .width = rows, .a = rest, .d = rest, .fn = MR_PNM_FN_LOG2};
    flow_vec(ops, &m);
    m.fn = MR_PNM_FN_EXP2;
    m.neg_mul = true;
    flow_vec(ops, &m);
}
