/* SPDX-License-Identifier: Apache-2.0 */
/* Routing, and the experts as chains of matrices. */
#include "host/lm/internal.h"

#include "host/core/error.h"

static mr_status factor(mr_lm *lm, const lm_io *io, const mr_lm_factor *f) {
    if (f->kind != MR_LM_SEED || !lm->generator)
        return lm_matmul(lm, io, f, NULL, NULL);
    if (lm->o.apply)
        return lm_apply(lm, io, f);
    mr_buffer *weights;
    mr_event **consumer;
    mr_status e = lm_plan_next(lm, f, &weights, &consumer);
    return e != MR_OK ? e : lm_matmul(lm, io, f, weights, consumer);
}

/* The whole chain; what lies between two factors goes through lm->chain. */
static mr_status chain(mr_lm *lm, const lm_io *io, const mr_lm_chain *c) {
    mr_status e = MR_OK;
    lm_io part = *io;
    for (size_t i = 0; e == MR_OK && i < c->count; i++) {
        const mr_lm_factor *f = c->factor[i];
        bool last = i + 1 == c->count;
        part.y = last ? io->y : lm->chain[i % 2];
        part.y_offset = last ? io->y_offset : 0;
        part.y_stride = last ? io->y_stride : f->rows;
        part.out_index = last ? io->out_index : NULL;
        part.add = last && io->add;
        e = factor(lm, &part, f);
        part.x = part.y;
        part.x_stride = f->rows;
        part.in_index = NULL;
        part.in_div = 1;
    }
    return e;
}

static mr_status expert(mr_lm *lm, const mr_lm_layer *l, const mr_lm_expert *x, const lm_io *io) {
    size_t d = lm->m->config.d_model;
    lm_io first = {.x = lm->h,
                   .x_stride = d,
                   .in_index = io->in_index,
                   .in_div = io->in_div,
                   .index_offset = io->index_offset,
                   .count = io->count,
                   .y_stride = l->d_ff};
    first.y = lm->gate;
    mr_status e = chain(lm, &first, &x->w[MR_LM_W1]);
    first.y = lm->up;
    if (e == MR_OK)
        e = chain(lm, &first, &x->w[MR_LM_W3]);
    if (e == MR_OK)
        e = lm_launch(lm, "lm_swiglu", io->count * l->d_ff, NULL,
                      (mr_arg[]){mr_arg_buffer(lm->gate, 0), mr_arg_buffer(lm->gate, 0),
                                 mr_arg_buffer(lm->up, 0)},
                      3);
    lm_io second = {.x = lm->gate,
                    .x_stride = l->d_ff,
                    .in_div = 1,
                    .count = io->count,
                    .y = io->y,
                    .y_stride = d,
                    .out_index = io->out_index,
                    .index_offset = io->index_offset,
                    .add = io->add};
    if (e == MR_OK)
        e = chain(lm, &second, &x->w[MR_LM_W2]);
    return e;
}

static void plan_expert(mr_lm *lm, const mr_lm_expert *x) {
    for (int p = 0; p < MR_LM_PROJECTIONS; p++)
        for (size_t i = 0; i < x->w[p].count; i++)
            if (x->w[p].factor[i]->kind == MR_LM_SEED)
                lm_plan_add(lm, x->w[p].factor[i]);
}

/* Chooses experts for `count` vectors of h and sorts the choices by expert; counts come to the
 * host. */
static mr_status route(mr_lm *lm, const mr_lm_layer *l, size_t count) {
    const mr_lm_config *c = &lm->m->config;
    size_t entries = count * c->top_k;
    lm_io io = {.x = lm->h,
                .x_stride = c->d_model,
                .y = lm->router_logits,
                .y_stride = l->n_experts,
                .count = count,
                .in_div = 1};
    mr_status e = lm_matmul(lm, &io, l->router, NULL, NULL);
    if (e == MR_OK)
        e = lm_launch(lm, "lm_topk", count, NULL,
                      (mr_arg[]){mr_arg_buffer(lm->ids, 0), mr_arg_buffer(lm->weights, 0),
                                 mr_arg_buffer(lm->router_logits, 0),
                                 mr_arg_i32((int32_t)l->n_experts), mr_arg_i32((int32_t)c->top_k)},
                      5);
    if (e == MR_OK)
        e = lm_launch(lm, "lm_group", l->n_experts + 1, NULL,
                      (mr_arg[]){mr_arg_buffer(lm->counts, 0), mr_arg_buffer(lm->lists, 0),
                                 mr_arg_buffer(lm->ids, 0), mr_arg_i32((int32_t)entries),
                                 mr_arg_i32((int32_t)l->n_experts)},
                      5);
    if (e == MR_OK)
        e = lm_read(lm, lm->counts, 0, lm->counts_host, (l->n_experts + 1) * sizeof(int32_t));
    if (e == MR_OK && lm->counts_host[l->n_experts])
        e = mr_fail(MR_DEVICE_ERROR, "the router chose %d experts that do not exist",
                    lm->counts_host[l->n_experts]);
    return e;
}

static mr_status routed(mr_lm *lm, const mr_lm_layer *l, size_t count) {
    const mr_lm_config *c = &lm->m->config;
    size_t entries = count * c->top_k;
    mr_status e = route(lm, l, count);
    if (e != MR_OK)
        return e;
    lm_plan_clear(lm);
    for (size_t x = 0; x < l->n_experts; x++)
        if (lm->counts_host[x] > 0)
            plan_expert(lm, &l->experts[x]);
    e = lm_plan_start(lm);
    for (size_t x = 0; e == MR_OK && x < l->n_experts; x++) {
        if (lm->counts_host[x] <= 0)
            continue;
        lm_io io = {.in_index = lm->lists,
                    .out_index = lm->lists,
                    .index_offset = x * entries,
                    .in_div = c->top_k,
                    .count = (size_t)lm->counts_host[x],
                    .y = lm->slots};
        e = expert(lm, l, &l->experts[x], &io);
    }
    if (e != MR_OK)
        return e;
    return lm_launch(lm, "lm_combine", count * c->d_model, NULL,
                     (mr_arg[]){mr_arg_buffer(lm->x, 0), mr_arg_buffer(lm->slots, 0),
                                mr_arg_buffer(lm->weights, 0), mr_arg_buffer(lm->ids, 0),
                                mr_arg_i32((int32_t)l->n_experts), mr_arg_i32((int32_t)c->top_k),
                                mr_arg_i32((int32_t)c->d_model)},
                     7);
}

mr_status lm_feed_forward(mr_lm *lm, size_t layer, size_t count) {
    const mr_lm_layer *l = &lm->m->layers[layer];
    if (l->router)
        return routed(lm, l, count);
    /* no router: all are on, for every vector, with weight 1 */
    lm_plan_clear(lm);
    for (size_t x = 0; x < l->n_experts; x++)
        plan_expert(lm, &l->experts[x]);
    mr_status e = lm_plan_start(lm);
    lm_io io = {.in_div = 1, .count = count, .y = lm->x, .add = true};
    for (size_t x = 0; e == MR_OK && x < l->n_experts; x++)
        e = expert(lm, l, &l->experts[x], &io);
    return e;
}
