/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coupling flow. A token's channels are put in an order in which channels that are masked alike
 * stand together, so that a coupling reads and changes as few rows as it can. With a kernel of 3
 * the tokens stand on a grid with a border of zeros: lines of grid + 1 positions whose first is
 * the right border of the line before and the left one of its own, so that a window is three runs
 * of consecutive rows.
 */
#include "host/flow/compile.h"

#include <stdlib.h>
#include <string.h>

/* Where things lie in a half's `work` rows. */
typedef struct layout {
    bool windows;
    size_t line, positions;   /* of the state: per line, per half */
    size_t segments, vectors; /* a MATVEC takes a segment: the tokens of a line, or all there are */
    size_t xr, hr;            /* rows of a token's x and hidden vector */
    size_t h, u, s, t;        /* first rows in work */
    size_t s_stride;          /* of s and t, from token to token */
    bool joint;               /* s and t come from one matrix */
} layout;

/* Rows of a token that a coupling reads (mask 1) or changes (mask 0). */
typedef struct active {
    size_t count;
    uint16_t row[64];
} active;

static active active_rows(const flow_compiler *c, size_t b, float mask) {
    active a = {0};
    for (size_t r = 0; r < c->x_rows; r++) {
        bool any = false;
        for (size_t i = 0; i < c->f->channels; i++)
            any |= c->order[i] / FLOW_WORDS == r && c->f->coupling[b].mask[i] == mask;
        if (any)
            a.row[a.count++] = (uint16_t)r;
    }
    return a;
}

/* The rows a coupling's first matrix takes: those it reads, if they are runs of the same length at
 * the same distance, else all from the first to the last. */
typedef struct reach {
    size_t first, rows, run, jump; /* run 0: consecutive */
} reach;

static reach reach_of(const flow_compiler *c, const layout *l, size_t b) {
    if (l->windows)
        return (reach){0, 9 * l->xr, 3 * l->xr, l->line * l->xr};
    active a = active_rows(c, b, 1);
    size_t run = 1, jump;
    while (run < a.count && a.row[run] == a.row[run - 1] + 1)
        run++;
    if (run == a.count)
        return (reach){a.row[0], a.count, 0, 0};
    jump = (size_t)(a.row[run] - a.row[0]);
    for (size_t i = 0; i < a.count; i++)
        if (a.row[i] != a.row[0] + i / run * jump + i % run)
            return (reach){a.row[0], (size_t)(a.row[a.count - 1] - a.row[0] + 1), 0, 0};
    return (reach){a.row[0], a.count, run, jump};
}

static layout layout_of(const flow_compiler *c) {
    const mr_flow *f = c->f;
    layout l = {.windows = f->kernel == 3};
    size_t tokens = c->batch * f->tokens;
    l.xr = flow_rows(f->channels);
    l.hr = flow_rows(f->hidden);
    l.line = l.windows ? f->grid + 1 : f->tokens;
    l.positions = l.windows ? c->batch * l.line * l.line + l.line + 1 : tokens;
    l.segments = l.windows ? c->batch * f->grid : 1;
    l.vectors = tokens / l.segments;
    l.joint = f->tokens == 1;
    l.h = 0;
    l.u = l.positions * l.hr;
    l.s = l.u + tokens * l.hr;
    l.t = l.s + tokens * l.xr;
    return l;
}

/* Channels in the order of what they do in all couplings. */
static void order_channels(flow_compiler *c) {
    const mr_flow *f = c->f;
    size_t place = 0;
    for (size_t i = 0; i < f->channels; i++)
        c->order[i] = UINT16_MAX;
    for (size_t i = 0; i < f->channels; i++) {
        if (c->order[i] != UINT16_MAX)
            continue;
        for (size_t j = i; j < f->channels; j++) {
            bool same = c->order[j] == UINT16_MAX;
            for (size_t b = 0; same && b < f->blocks; b++)
                same = f->coupling[b].mask[i] == f->coupling[b].mask[j];
            if (same)
                c->order[j] = (uint16_t)place++;
        }
    }
}

static void prepare(flow_compiler *c) {
    order_channels(c);
    layout l = layout_of(c);
    size_t tokens = c->batch * c->f->tokens;
    c->state = l.positions * l.xr;
    c->tokens_apart = l.xr;
    c->images_apart = (l.windows ? l.line * l.line : c->f->tokens) * l.xr;
    c->lead = l.windows ? (l.line + 1) * l.xr : 0;
    c->line = l.windows ? c->f->grid : 0;
    c->work = l.t + tokens * l.xr;
    c->scalars = c->ld_rows;
    c->zero_work = l.windows ? l.u : 0; /* the border of h */
}

/* ---- Matrices ---------------------------------------------------------------------------------
 */

/* w0 [h][k][k][C] with its inputs in the order of the rows that are read. */
static void pack_first(flow_compiler *c, const layout *l, size_t b, flow_block_data *d) {
    const mr_flow *f = c->f;
    reach r = reach_of(c, l, b);
    size_t inputs = r.rows * FLOW_WORDS, taps = f->kernel * f->kernel;
    float *w = inputs ? calloc(f->hidden * inputs, sizeof *w) : NULL;
    for (size_t o = 0; w && o < f->hidden; o++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t i = 0; i < f->channels; i++) {
                size_t row = c->order[i] / FLOW_WORDS, k = tap * l->xr + row;
                if (f->coupling[b].mask[i] == 0)
                    continue;
                if (!l->windows) {
                    k = 0;
                    while (r.first + (r.run ? k / r.run * r.jump + k % r.run : k) != row)
                        k++;
                }
                w[o * inputs + k * FLOW_WORDS + c->order[i] % FLOW_WORDS] =
                    f->coupling[b].w0[(o * taps + tap) * f->channels + i];
            }
    flow_pack(c, d, "w0", w, f->hidden, inputs, l->segments);
    free(w);
}

/* w1 [h][k][k][h] with every tap's inputs padded to rows. */
static void pack_second(flow_compiler *c, const layout *l, size_t b, flow_block_data *d) {
    const mr_flow *f = c->f;
    size_t taps = f->kernel * f->kernel, inputs = taps * l->hr * FLOW_WORDS;
    float *w = inputs ? calloc(f->hidden * inputs, sizeof *w) : NULL;
    for (size_t o = 0; w && o < f->hidden; o++)
        for (size_t tap = 0; tap < taps; tap++)
            memcpy(w + o * inputs + tap * l->hr * FLOW_WORDS,
                   f->coupling[b].w1 + (o * taps + tap) * f->hidden, f->hidden * sizeof *w);
    flow_pack(c, d, "w1", w, f->hidden, inputs, l->segments);
    free(w);
}

/* Rows of wout for the rows that change: s' (which & 1), t (which & 2), or one after the other. */
static void pack_last(flow_compiler *c, const layout *l, size_t b, int which, flow_block_data *d) {
    const mr_flow *f = c->f;
    const mr_flow_coupling *p = &f->coupling[b];
    active a = active_rows(c, b, 0);
    size_t outputs = a.count * FLOW_WORDS, parts = which == 3 ? 2 : 1;
    float *w = calloc(parts * outputs * f->hidden, sizeof *w);
    float *bias = flow_pack_rows(c, d, parts * a.count);
    for (size_t part = 0; w && bias && part < parts; part++)
        for (size_t i = 0; i < f->channels; i++) {
            size_t r = 0, from = i + (which == 2 || part ? f->channels : 0);
            while (r < a.count && a.row[r] != c->order[i] / FLOW_WORDS)
                r++;
            if (r == a.count)
                continue;
            size_t to = part * outputs + r * FLOW_WORDS + c->order[i] % FLOW_WORDS;
            memcpy(w + to * f->hidden, p->wo + from * f->hidden, f->hidden * sizeof *w);
            bias[to] = p->bo[from];
        }
    flow_pack(c, d, "wout", w, parts * outputs, f->hidden, l->segments);
    free(w);
}

enum { W0, W1, W2, WS, WT };
enum { B0, B1, B2, BS, BT };

static void pack_bias(flow_compiler *c, flow_block_data *d, const float *v, size_t n) {
    float *to = flow_pack_rows(c, d, flow_rows(n));
    if (to)
        memcpy(to, v, n * sizeof *to);
}

static void pack(flow_compiler *c, size_t b, flow_block_data *d) {
    const mr_flow *f = c->f;
    const mr_flow_coupling *p = &f->coupling[b];
    layout l = layout_of(c);
    pack_first(c, &l, b, d);
    pack_second(c, &l, b, d);
    flow_pack(c, d, "w2", p->w2, f->hidden, f->hidden, l.segments);
    pack_bias(c, d, p->b0, f->hidden);
    pack_bias(c, d, p->b1, f->hidden);
    pack_bias(c, d, p->b2, f->hidden);
    if (l.joint) {
        pack_last(c, &l, b, 3, d);
    } else {
        pack_last(c, &l, b, 1, d);
        pack_last(c, &l, b, 2, d);
    }
}

/* ---- Operations -------------------------------------------------------------------------------
 */

/* Position of a segment's first token within the state, in tokens. */
static size_t position(const flow_compiler *c, const layout *l, size_t segment) {
    if (!l->windows)
        return 0;
    size_t g = c->f->grid;
    return segment / g * l->line * l->line + (segment % g + 1) * l->line + 1;
}

static void network(flow_compiler *c, const flow_group *g, const flow_half *h, size_t e,
                    const layout *l, flow_ops *ops) {
    size_t b = flow_block_at(c, e);
    const flow_block_data *d = &c->data[b];
    const uint16_t *col = g->col[e - g->first], *row = g->row[e - g->first];
    reach r = reach_of(c, l, b);
    size_t corner = l->windows ? l->line + 1 : 0; /* from a token back to its window's first */
    for (size_t seg = 0; seg < l->segments; seg++) {
        size_t pos = position(c, l, seg);
        mr_pnm_matvec m = {
            .bias = true, .relu = true, .mode = c->o.mode, .vectors = (uint16_t)l->vectors};
        m.col = col[W0];
        m.x = (uint16_t)(h->x + (pos - corner) * l->xr + r.first);
        m.x_stride = (int16_t)l->xr;
        m.x_run = (uint16_t)r.run;
        m.x_jump = (int16_t)r.jump;
        m.y = (uint16_t)(h->work + l->h + pos * l->hr);
        m.y_stride = (int16_t)l->hr;
        m.bias_row = row[B0];
        flow_multiply(ops, &d->weight[W0].matrix, &m);
    }
    for (size_t seg = 0; seg < l->segments; seg++) {
        size_t pos = position(c, l, seg);
        mr_pnm_matvec m = {
            .bias = true, .relu = true, .mode = c->o.mode, .vectors = (uint16_t)l->vectors};
        m.col = col[W1];
        m.x = (uint16_t)(h->work + l->h + (pos - corner) * l->hr);
        m.x_stride = m.y_stride = (int16_t)l->hr;
        m.x_run = (uint16_t)(l->windows ? 3 * l->hr : 0);
        m.x_jump = (int16_t)(l->windows ? l->line * l->hr : 0);
        m.y = (uint16_t)(h->work + l->u + seg * l->vectors * l->hr);
        m.bias_row = row[B1];
        flow_multiply(ops, &d->weight[W1].matrix, &m);
    }
    for (size_t seg = 0; seg < l->segments; seg++) {
        mr_pnm_matvec m = {
            .bias = true, .accum = true, .mode = c->o.mode, .vectors = (uint16_t)l->vectors};
        m.col = col[W2];
        m.x = (uint16_t)(h->work + l->u + seg * l->vectors * l->hr);
        m.y = m.old = (uint16_t)(h->work + l->h + position(c, l, seg) * l->hr);
        m.x_stride = m.y_stride = m.old_stride = (int16_t)l->hr;
        m.bias_row = row[B2];
        flow_multiply(ops, &d->weight[W2].matrix, &m);
    }
    for (int part = 0; part < (l->joint ? 1 : 2); part++)
        for (size_t seg = 0; seg < l->segments; seg++) {
            mr_pnm_matvec m = {.bias = true, .mode = c->o.mode, .vectors = (uint16_t)l->vectors};
            m.col = col[WS + part];
            m.x = (uint16_t)(h->work + l->h + position(c, l, seg) * l->hr);
            m.x_stride = (int16_t)l->hr;
            m.y = (uint16_t)(h->work + (part ? l->t : l->s) + seg * l->vectors * l->s_stride);
            m.y_stride = (int16_t)l->s_stride;
            m.bias_row = row[BS + part];
            flow_multiply(ops, &d->weight[WS + part].matrix, &m);
        }
}

/* Vectors that lie the same way in the state and in s and t. */
typedef struct chunk {
    size_t count, width;
    int x, x_stride, s, s_stride; /* rows from the state's and from s's first */
} chunk;

static void change(const flow_compiler *c, const flow_half *h, const layout *l, const chunk *k,
                   flow_ops *ops) {
    mr_pnm_vec v = {.count = (uint16_t)k->count,
                    .width = (uint16_t)k->width,
                    .d = (uint16_t)(h->x + k->x),
                    .a = (uint16_t)(h->x + k->x),
                    .b = (uint16_t)((int)(h->work + l->s) + k->s),
                    .c = (uint16_t)((int)(h->work + l->t) + k->s),
                    .d_stride = (int16_t)k->x_stride,
                    .a_stride = (int16_t)k->x_stride,
                    .b_stride = (int16_t)k->s_stride,
                    .c_stride = (int16_t)k->s_stride};
    if (!c->o.inverse) {
        v.mul = v.add = MR_PNM_ELEM;
        flow_vec(ops, &v);
        return;
    }
    v.add = MR_PNM_ELEM;
    v.neg_add = true;
    flow_vec(ops, &v);
    v.add = MR_PNM_NONE;
    v.neg_add = false;
    v.mul = MR_PNM_ELEM;
    flow_vec(ops, &v);
}

/* x exp(s) + t, or (x - t) exp(-s), over what changes, in as few operations as the rows allow. */
static void change_all(const flow_compiler *c, const flow_half *h, const layout *l, size_t b,
                       flow_ops *ops) {
    size_t tokens = c->f->tokens, g = c->f->grid;
    active a = active_rows(c, b, 0);
    if (a.count == l->xr && l->s_stride == l->xr) {
        chunk k = {.count = l->windows ? g : c->batch, .width = (l->windows ? g : tokens) * l->xr};
        k.x_stride = (int)(l->windows ? l->line * l->xr : tokens * l->xr);
        k.s_stride = (int)k.width;
        for (size_t i = 0; i < (l->windows ? c->batch : 1); i++) {
            k.x = (int)(position(c, l, i * g) * l->xr);
            k.s = (int)(i * tokens * l->xr);
            change(c, h, l, &k, ops);
        }
        return;
    }
    for (size_t seg = 0; seg < l->segments; seg++)
        for (size_t r = 0, run; r < a.count; r += run) {
            run = 1;
            while (r + run < a.count && a.row[r + run] == a.row[r] + run)
                run++;
            chunk k = {.count = l->vectors,
                       .width = run,
                       .x_stride = (int)l->xr,
                       .s_stride = (int)l->s_stride};
            k.x = (int)(position(c, l, seg) * l->xr) + a.row[r];
            k.s = (int)(seg * l->vectors * l->s_stride + r);
            change(c, h, l, &k, ops);
        }
}

static void block(flow_compiler *c, const flow_group *g, const flow_half *h, size_t e,
                  flow_ops *ops) {
    size_t b = flow_block_at(c, e), tokens = c->batch * c->f->tokens;
    layout l = layout_of(c);
    active a = active_rows(c, b, 0);
    l.s_stride = l.joint ? 2 * a.count : a.count;
    if (l.joint)
        l.t = l.s + a.count;
    network(c, g, h, e, &l, ops);
    flow_view s = {(int)(h->work + l.s), (int)l.s_stride};
    size_t count = tokens, width = a.count;
    if (!l.joint) { /* dense: an image a vector */
        count = c->batch;
        width = c->f->tokens * a.count;
        s.stride = (int)width;
    }
    flow_tanh(ops, s, s, count, width, c->f->coupling[b].alpha);
    mr_pnm_vec v = {.a = (uint16_t)s.row,
                    .a_stride = (int16_t)s.stride,
                    .count = (uint16_t)count,
                    .width = (uint16_t)width};
    if (!c->o.inverse) { /* the log-determinant of every image grows by the sum of its s */
        mr_pnm_vec sum = v;
        sum.reduce = MR_PNM_SUM;
        sum.d = h->scalars;
        flow_vec(ops, &sum);
        flow_vec(ops, &(mr_pnm_vec){.count = 1,
                                    .width = (uint16_t)c->ld_rows,
                                    .d = h->ld,
                                    .a = h->ld,
                                    .c = h->scalars,
                                    .add = MR_PNM_ELEM});
    }
    v.d = v.a;
    v.d_stride = v.a_stride;
    v.fn = MR_PNM_FN_EXP2;
    v.mul = MR_PNM_IMM;
    v.imm_m = c->o.inverse ? -FLOW_LOG2E : FLOW_LOG2E;
    flow_vec(ops, &v);
    change_all(c, h, &l, b, ops);
}

const flow_net flow_net_coupling = {prepare, pack, block};
