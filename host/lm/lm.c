/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lm/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

/* ---- kernels ----------------------------------------------------------------------------------
 */

mr_status lm_sync(mr_lm *lm) {
    mr_status first = MR_OK;
    for (size_t i = 0; i < lm->num_pending; i++) {
        if (first == MR_OK)
            first = lm_wait(lm, lm->pending[i]);
        mr_event_destroy(lm->pending[i]);
    }
    lm->num_pending = 0;
    return first;
}

mr_status lm_wait(mr_lm *lm, mr_event *event) {
    const uint64_t step = 100000000u;
    for (uint64_t waited = 0;; waited += step) {
        if (lm->o.stop && *lm->o.stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        mr_status e = mr_event_wait(event, step);
        if (e != MR_TIMEOUT || waited >= lm->o.timeout_ns)
            return e;
    }
}

mr_status lm_launch(mr_lm *lm, const char *name, size_t items, mr_event **event, const mr_arg *args,
                    size_t count) {
    /* whole groups: the kernels ignore items beyond those they are told of */
    const size_t global[3] = {(items + 63) / 64 * 64, 1, 1};
    mr_arg all[20];
    memcpy(all, args, count * sizeof *args);
    all[count] = mr_arg_i32((int32_t)items);
    mr_event *made;
    mr_status e = MR_OK;
    if (!event && lm->num_pending == LM_PENDING)
        e = lm_sync(lm);
    if (e == MR_OK)
        e = mr_kernel_launch(lm->queue, name, all, count + 1, global, NULL, &made);
    if (e != MR_OK)
        return e;
    if (event)
        *event = made;
    else
        lm->pending[lm->num_pending++] = made;
    return MR_OK;
}

mr_status lm_read(mr_lm *lm, mr_buffer *from, size_t offset, void *to, size_t bytes) {
    mr_status e = lm_sync(lm);
    return e != MR_OK ? e : mr_buffer_read(from, offset, to, bytes);
}

mr_status lm_matmul(mr_lm *lm, const lm_io *io, const mr_lm_factor *f, mr_buffer *weights,
                    mr_event **event) {
    bool codes = f->kind == MR_LM_CODES;
    size_t blocks = (io->count + 3) / 4;
    mr_arg a[18];
    size_t n = 0;
    a[n++] = mr_arg_buffer(io->y, io->y_offset * sizeof(float));
    a[n++] = mr_arg_buffer(weights ? weights : lm->matrix[f->id], 0);
    if (codes)
        a[n++] = mr_arg_buffer(lm->scales[f->id], 0);
    a[n++] = mr_arg_buffer(io->x, 0);
    a[n++] = mr_arg_buffer(io->in_index, io->in_index ? io->index_offset * sizeof(int32_t) : 0);
    a[n++] = mr_arg_i32((int32_t)io->in_div);
    a[n++] = mr_arg_buffer(io->out_index, io->out_index ? io->index_offset * sizeof(int32_t) : 0);
    a[n++] = mr_arg_i32((int32_t)f->rows);
    a[n++] = mr_arg_i32((int32_t)f->cols);
    if (codes) {
        a[n++] = mr_arg_i32((int32_t)f->group);
        a[n++] = mr_arg_i32((int32_t)f->bits);
    }
    a[n++] = mr_arg_i32((int32_t)io->count);
    a[n++] = mr_arg_i32((int32_t)io->y_stride);
    a[n++] = mr_arg_i32((int32_t)io->x_stride);
    a[n++] = mr_arg_i32(io->add);
    return lm_launch(lm, codes ? "lm_matmul_code" : "lm_matmul", f->rows * blocks, event, a, n);
}

/* y[count][rows] (+)= W x[count][cols], rows one after the other. */
static mr_status project(mr_lm *lm, const mr_lm_factor *f, mr_buffer *y, size_t y_offset,
                         mr_buffer *x, size_t count, bool add) {
    lm_io io = {.x = x,
                .x_stride = f->cols,
                .y = y,
                .y_offset = y_offset,
                .y_stride = f->rows,
                .count = count,
                .add = add,
                .in_div = 1};
    return lm_matmul(lm, &io, f, NULL, NULL);
}

static mr_status norm(mr_lm *lm, mr_buffer *y, mr_buffer *x, mr_buffer *gain, size_t x_row,
                      size_t count) {
    size_t d = lm->m->config.d_model;
    return lm_launch(lm, "lm_rmsnorm", count, NULL,
                     (mr_arg[]){mr_arg_buffer(y, 0), mr_arg_buffer(x, x_row * d * sizeof(float)),
                                mr_arg_buffer(gain, 0), mr_arg_i32((int32_t)d),
                                mr_arg_f32((float)lm->m->config.norm_eps)},
                     5);
}

/* ---- attention --------------------------------------------------------------------------------
 */

static mr_status rope(mr_lm *lm, mr_buffer *x, size_t offset, size_t heads, size_t count) {
    const mr_lm_config *c = &lm->m->config;
    size_t half = c->head_dim / 2;
    return lm_launch(lm, "lm_rope", count * heads * half, NULL,
                     (mr_arg[]){mr_arg_buffer(x, offset * sizeof(float)),
                                mr_arg_buffer(lm->cosine, 0), mr_arg_buffer(lm->sine, 0),
                                mr_arg_i32((int32_t)heads), mr_arg_i32((int32_t)half),
                                mr_arg_i32((int32_t)(heads * c->head_dim)),
                                mr_arg_i32((int32_t)lm->position)},
                     7);
}

/* Many queries: each softmax is finished where it is made. */
static mr_status attend_many(mr_lm *lm, size_t layer, size_t count, float scale) {
    const mr_lm_config *c = &lm->m->config;
    int32_t q = (int32_t)(c->n_heads * c->head_dim), kv = (int32_t)(c->n_kv_heads * c->head_dim);
    return lm_launch(lm, "lm_attention", count * c->n_heads, NULL,
                     (mr_arg[]){mr_arg_buffer(lm->o_buf, 0), mr_arg_buffer(lm->q, 0),
                                mr_arg_buffer(lm->k_cache[layer], 0),
                                mr_arg_buffer(lm->v_cache[layer], 0),
                                mr_arg_i32((int32_t)c->n_heads), mr_arg_i32((int32_t)c->n_kv_heads),
                                mr_arg_i32((int32_t)c->head_dim), mr_arg_i32((int32_t)lm->position),
                                mr_arg_i32(q), mr_arg_i32(kv), mr_arg_i32(q), mr_arg_f32(scale)},
                     12);
}

/* One query: the cache is cut into shards whose partial results are merged. */
static mr_status attend_one(mr_lm *lm, size_t layer, float scale) {
    const mr_lm_config *c = &lm->m->config;
    size_t keys = lm->position + 1, shards = (keys + LM_SHARD - 1) / LM_SHARD, heads = c->n_heads;
    mr_status e = MR_OK;
    for (size_t p = 0; e == MR_OK && p < shards; p++) {
        size_t first = p * LM_SHARD, last = first + LM_SHARD < keys ? first + LM_SHARD : keys;
        e = lm_launch(
            lm, "lm_attention_decode", heads, NULL,
            (mr_arg[]){mr_arg_buffer(lm->part_m, p * heads * sizeof(float)),
                       mr_arg_buffer(lm->part_d, p * heads * sizeof(float)),
                       mr_arg_buffer(lm->part_o, p * heads * c->head_dim * sizeof(float)),
                       mr_arg_buffer(lm->q, 0), mr_arg_buffer(lm->k_cache[layer], 0),
                       mr_arg_buffer(lm->v_cache[layer], 0), mr_arg_i32((int32_t)heads),
                       mr_arg_i32((int32_t)c->n_kv_heads), mr_arg_i32((int32_t)c->head_dim),
                       mr_arg_i32((int32_t)first), mr_arg_i32((int32_t)last),
                       mr_arg_i32((int32_t)(c->n_kv_heads * c->head_dim)), mr_arg_f32(scale)},
            13);
    }
    if (e != MR_OK)
        return e;
    return lm_launch(lm, "lm_attention_merge", heads, NULL,
                     (mr_arg[]){mr_arg_buffer(lm->o_buf, 0), mr_arg_buffer(lm->merged_m, 0),
                                mr_arg_buffer(lm->merged_d, 0), mr_arg_buffer(lm->part_m, 0),
                                mr_arg_buffer(lm->part_d, 0), mr_arg_buffer(lm->part_o, 0),
                                mr_arg_i32((int32_t)shards), mr_arg_i32((int32_t)c->head_dim)},
                     8);
}

/* The step's queries, keys and values to the nodes, their attention back. */
static mr_status attend_nodes(mr_lm *lm, size_t layer, size_t count) {
    const mr_lm_config *c = &lm->m->config;
    size_t q = count * c->n_heads * c->head_dim, row = count * c->n_kv_heads * c->head_dim;
    float *qs = lm->shard_rows, *k = qs + q, *v = k + row, *o = v + row;
    mr_status e = lm_read(lm, lm->q, 0, qs, q * sizeof *qs);
    if (e == MR_OK)
        e = mr_buffer_read(lm->k_cache[layer], 0, k, row * sizeof *k);
    if (e == MR_OK)
        e = mr_buffer_read(lm->v_cache[layer], 0, v, row * sizeof *v);
    if (e == MR_OK)
        e = mr_shards_attend(lm->shards, layer, count, qs, k, v, o);
    return e == MR_OK ? mr_buffer_write(lm->o_buf, 0, o, q * sizeof *o) : e;
}

static mr_status attention(mr_lm *lm, size_t layer, size_t count) {
    const mr_lm_config *c = &lm->m->config;
    const mr_lm_layer *l = &lm->m->layers[layer];
    /* with nodes, the cache's buffers hold the step's own rows only */
    size_t at = lm->shards ? 0 : lm->position * c->n_kv_heads * c->head_dim;
    float scale = (float)(1.0 / sqrt((double)c->head_dim));
    mr_status e = norm(lm, lm->h, lm->x, lm->attn_norm[layer], 0, count);
    if (e == MR_OK)
        e = project(lm, l->wq, lm->q, 0, lm->h, count, false);
    if (e == MR_OK)
        e = project(lm, l->wk, lm->k_cache[layer], at, lm->h, count, false);
    if (e == MR_OK)
        e = project(lm, l->wv, lm->v_cache[layer], at, lm->h, count, false);
    if (e == MR_OK)
        e = rope(lm, lm->q, 0, c->n_heads, count);
    if (e == MR_OK)
        e = rope(lm, lm->k_cache[layer], at, c->n_kv_heads, count);
    if (e == MR_OK && lm->shards)
        e = attend_nodes(lm, layer, count);
    else if (e == MR_OK)
        e = count == 1 ? attend_one(lm, layer, scale) : attend_many(lm, layer, count, scale);
    if (e == MR_OK)
        e = project(lm, l->wo, lm->x, 0, lm->o_buf, count, true);
    return e;
}

/* ---- a step -----------------------------------------------------------------------------------
 */

static mr_status step(mr_lm *lm, const uint8_t *text, size_t count, bool all, float *logits) {
    const mr_lm_config *c = &lm->m->config;
    for (size_t t = 0; t < count; t++)
        lm->tokens_host[t] = text[t];
    mr_status e = mr_buffer_write(lm->tokens, 0, lm->tokens_host, count * sizeof(int32_t));
    if (e == MR_OK)
        e = lm_launch(lm, "lm_embed", count * c->d_model, NULL,
                      (mr_arg[]){mr_arg_buffer(lm->x, 0), mr_arg_buffer(lm->embed, 0),
                                 mr_arg_buffer(lm->tokens, 0), mr_arg_i32((int32_t)c->d_model),
                                 mr_arg_i32((int32_t)c->vocab)},
                      5);
    for (size_t i = 0; e == MR_OK && i < c->n_layers; i++) {
        e = attention(lm, i, count);
        if (e != MR_OK || lm->m->layers[i].n_experts == 0)
            continue;
        e = norm(lm, lm->h, lm->x, lm->ffn_norm[i], 0, count);
        if (e == MR_OK)
            e = lm_feed_forward(lm, i, count);
    }
    size_t rows = all ? count : 1;
    if (e == MR_OK)
        e = norm(lm, lm->h, lm->x, lm->norm, count - rows, rows);
    if (e == MR_OK)
        e = project(lm, lm->m->head, lm->logits, 0, lm->h, rows, false);
    if (e == MR_OK)
        e = lm_read(lm, lm->logits, 0, logits, rows * c->vocab * sizeof(float));
    if (e == MR_OK && lm->shards)
        e = mr_shards_step(lm->shards, count);
    return e;
}

mr_status mr_lm_forward(mr_lm *lm, const uint8_t *text, size_t count, bool all, float *logits) {
    size_t context = lm->m->config.context, vocab = lm->m->config.vocab;
    if (count == 0 || count > context - lm->position)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "%zu bytes after position %zu do not fit the context of %zu", count,
                       lm->position, context);
    for (size_t at = 0; at < count;) {
        size_t n = count - at < lm->most ? count - at : lm->most;
        mr_status e = step(lm, text + at, n, all, all ? logits + at * vocab : logits);
        if (e != MR_OK) {
            /* leave nothing running that uses the buffers, and keep the message */
            char message[1024];
            snprintf(message, sizeof message, "%s", mr_last_error());
            lm_sync(lm);
            return mr_fail(e, "%s", message);
        }
        lm->position += n;
        at += n;
    }
    return MR_OK;
}

mr_status mr_lm_restart(mr_lm *lm) {
    mr_status e = lm->shards ? mr_shards_restart(lm->shards) : MR_OK;
    lm->position = 0;
    return e;
}

size_t mr_lm_position(const mr_lm *lm) { return lm->position; }
const mr_device_info *mr_lm_gpu(const mr_lm *lm) { return &lm->gpu_info; }
void mr_lm_get_stats(const mr_lm *lm, mr_lm_stats *stats) { *stats = lm->stats; }

mr_status mr_lm_get_nic_stats(const mr_lm *lm, mr_shards_stats *stats) {
    if (!lm->shards)
        return mr_fail(MR_UNSUPPORTED, "this model's KV cache is not sharded over NICs");
    return mr_shards_get_stats(lm->shards, stats);
}

void mr_lm_reset_stats(mr_lm *lm) {
    bool hardware = lm->stats.hardware;
    memset(&lm->stats, 0, sizeof lm->stats);
    lm->stats.hardware = hardware;
}

/* ---- scoring ----------------------------------------------------------------------------------
 */

static double bits_of(const float *logits, size_t vocab, uint8_t byte) {
    float top = logits[0];
    for (size_t v = 1; v < vocab; v++)
        top = logits[v] > top ? logits[v] : top;
    double sum = exp((double)logits[0] - (double)top);
    for (size_t v = 1; v < vocab; v++)
        sum += exp((double)logits[v] - (double)top);
    return (log(sum) - ((double)logits[byte] - (double)top)) / log(2.0);
}

mr_status mr_lm_score(mr_lm *lm, const uint8_t *text, size_t count,
                      int (*progress)(void *context, size_t done), void *context,
                      double *bits_per_byte) {
    const mr_lm_config *c = &lm->m->config;
    if (count < 2)
        return mr_fail(MR_INVALID_ARGUMENT, "a text of %zu bytes cannot be scored; 2 are needed",
                       count);
    float *logits = malloc(c->context * c->vocab * sizeof *logits);
    if (!logits)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for the logits");
    double bits = 0;
    mr_status e = MR_OK;
    for (size_t at = 0; e == MR_OK && at + 1 < count; at += c->context) {
        size_t n = count - 1 - at < c->context ? count - 1 - at : c->context;
        e = mr_lm_restart(lm);
        if (e == MR_OK)
            e = mr_lm_forward(lm, text + at, n, true, logits);
        for (size_t t = 0; e == MR_OK && t < n; t++)
            bits += bits_of(logits + t * c->vocab, c->vocab, text[at + t + 1]);
        if (e == MR_OK && progress && progress(context, at + n))
            e = mr_fail(MR_CANCELLED, "interrupted");
    }
    free(logits);
    if (e == MR_OK)
        e = mr_lm_restart(lm);
    *bits_per_byte = bits / (double)(count - 1);
    return e;
}
