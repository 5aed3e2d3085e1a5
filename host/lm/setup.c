/* SPDX-License-Identifier: Apache-2.0 */
/* Putting a model on a device, and taking it off again. */
#include "host/lm/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

static mr_status upload(mr_lm *lm, const void *data, size_t bytes, mr_buffer **out) {
    mr_status e = mr_buffer_create(lm->gpu, bytes, out);
    return e != MR_OK ? e : mr_buffer_write(*out, 0, data, bytes);
}

static mr_status upload_tensor(mr_lm *lm, const mr_st_tensor *t, mr_buffer **out) {
    return upload(lm, t->data, t->bytes, out);
}

/* float16 scales become float32, exactly. */
static mr_status upload_scales(mr_lm *lm, const mr_st_tensor *t, mr_buffer **out) {
    float *wide = malloc(t->count * sizeof *wide);
    if (!wide)
        return mr_fail(MR_OUT_OF_MEMORY, "%s: out of memory", t->name);
    for (size_t i = 0; i < t->count; i++)
        wide[i] = (float)mr_st_tensor_f64(t, i);
    mr_status e = upload(lm, wide, t->count * sizeof *wide, out);
    free(wide);
    return e;
}

static mr_status upload_factors(mr_lm *lm) {
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < lm->m->num_factors; i++) {
        const mr_lm_factor *f = lm->m->factors[i];
        if (f->kind == MR_LM_BF16)
            e = upload_tensor(lm, f->matrix, &lm->matrix[i]);
        if (f->kind == MR_LM_CODES) {
            e = upload_tensor(lm, f->codes, &lm->matrix[i]);
            if (e == MR_OK)
                e = upload_scales(lm, f->scales, &lm->scales[i]);
        }
    }
    return e;
}

static mr_status upload_layers(mr_lm *lm) {
    const mr_lm_config *c = &lm->m->config;
    size_t cache = c->context * c->n_kv_heads * c->head_dim * sizeof(float);
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < c->n_layers; i++) {
        e = upload_tensor(lm, lm->m->layers[i].attn_norm, &lm->attn_norm[i]);
        if (e == MR_OK)
            e = upload_tensor(lm, lm->m->layers[i].ffn_norm, &lm->ffn_norm[i]);
        if (e == MR_OK)
            e = mr_buffer_create(lm->gpu, cache, &lm->k_cache[i]);
        if (e == MR_OK)
            e = mr_buffer_create(lm->gpu, cache, &lm->v_cache[i]);
    }
    return e;
}

/* Computed once in double, so that every back end turns by the same numbers. */
static mr_status upload_rope(mr_lm *lm) {
    const mr_lm_config *c = &lm->m->config;
    size_t half = c->head_dim / 2, count = c->context * half;
    float *table = malloc(2 * count * sizeof *table);
    if (!table)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for the position tables");
    for (size_t t = 0; t < c->context; t++)
        for (size_t j = 0; j < half; j++) {
            double f = (double)t * pow(c->rope_theta, -2.0 * (double)j / (double)c->head_dim);
            table[t * half + j] = (float)cos(f);
            table[count + t * half + j] = (float)sin(f);
        }
    mr_status e = upload(lm, table, count * sizeof *table, &lm->cosine);
    if (e == MR_OK)
        e = upload(lm, table + count, count * sizeof *table, &lm->sine);
    free(table);
    return e;
}

/* The widest row that passes between two factors of a chain, or into an expert's middle; most
 * experts. */
static void widths(const mr_lm_model *m, size_t *inner, size_t *hidden, size_t *experts) {
    *inner = m->config.d_model;
    *hidden = m->config.d_ff;
    *experts = 1;
    for (size_t i = 0; i < m->num_factors; i++)
        *inner = m->factors[i]->rows > *inner ? m->factors[i]->rows : *inner;
    for (size_t i = 0; i < m->config.n_layers; i++) {
        *hidden = m->layers[i].d_ff > *hidden ? m->layers[i].d_ff : *hidden;
        *experts = m->layers[i].n_experts > *experts ? m->layers[i].n_experts : *experts;
    }
}

static mr_status create_work(mr_lm *lm) {
    const mr_lm_config *c = &lm->m->config;
    size_t inner, hidden, experts, f = sizeof(float), entries = lm->most * c->top_k;
    size_t q = c->n_heads * c->head_dim, shards = (c->context + LM_SHARD - 1) / LM_SHARD;
    widths(lm->m, &inner, &hidden, &experts);
    struct {
        mr_buffer **to;
        size_t bytes;
    } all[] = {
        {&lm->tokens, lm->most * sizeof(int32_t)},
        {&lm->x, lm->most * c->d_model * f},
        {&lm->h, lm->most * c->d_model * f},
        {&lm->q, lm->most * q * f},
        {&lm->o_buf, lm->most * q * f},
        {&lm->logits, lm->most * c->vocab * f},
        {&lm->part_m, shards * c->n_heads * f},
        {&lm->part_d, shards * c->n_heads * f},
        {&lm->part_o, shards * q * f},
        {&lm->merged_m, c->n_heads * f},
        {&lm->merged_d, c->n_heads * f},
        {&lm->router_logits, lm->most * experts * f},
        {&lm->ids, entries * sizeof(int32_t)},
        {&lm->weights, entries * f},
        {&lm->counts, (experts + 1) * sizeof(int32_t)},
        {&lm->lists, experts * entries * sizeof(int32_t)},
        {&lm->gate, entries * hidden * f},
        {&lm->up, entries * hidden * f},
        {&lm->slots, entries * c->d_model * f},
        {&lm->chain[0], entries * inner * f},
        {&lm->chain[1], entries * inner * f},
        {&lm->gathered, entries * (inner > hidden ? inner : hidden) * f},
    };
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < sizeof all / sizeof all[0]; i++)
        e = mr_buffer_create(lm->gpu, all[i].bytes, all[i].to);
    lm->tokens_host = malloc(lm->most * sizeof *lm->tokens_host);
    lm->counts_host = malloc((experts + 1) * sizeof *lm->counts_host);
    if (e == MR_OK && (!lm->tokens_host || !lm->counts_host))
        e = mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    return e;
}

static mr_status open_gpu(mr_lm *lm) {
    mr_status e = mr_device_open(lm->o.gpu, &lm->gpu);
    if (e == MR_OK)
        e = mr_device_get_info(lm->gpu, &lm->gpu_info);
    if (e == MR_OK && !(lm->gpu_info.caps & MR_CAP_KERNELS))
        e = mr_fail(MR_UNSUPPORTED, "%s: this device does not run compute kernels", lm->o.gpu);
    if (e == MR_OK)
        e = mr_queue_create(lm->gpu, &lm->queue);
    return e;
}

static mr_status open_shards(mr_lm *lm) {
    const mr_lm_config *c = &lm->m->config;
    size_t row = (2 * c->n_heads + 2 * c->n_kv_heads) * c->head_dim;
    mr_shards_options o = {.nic = lm->o.nic,
                           .device = lm->gpu,
                           .layers = c->n_layers,
                           .heads = c->n_heads,
                           .kv_heads = c->n_kv_heads,
                           .dim = c->head_dim,
                           .context = c->context,
                           .block = LM_BLOCK_KEYS,
                           .step = LM_NODES_STEP,
                           .scale = (float)(1.0 / sqrt((double)c->head_dim)),
                           .timeout_ns = lm->o.timeout_ns,
                           .stop = lm->o.stop};
    lm->shard_rows = malloc(LM_NODES_STEP * row * sizeof *lm->shard_rows);
    if (!lm->shard_rows)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    return mr_shards_open(&o, &lm->shards);
}

static mr_status build(mr_lm *lm) {
    size_t factors = lm->m->num_factors, layers = lm->m->config.n_layers;
    mr_status e = open_gpu(lm);
    if (e != MR_OK)
        return e;
    lm->matrix = calloc(factors, sizeof(mr_buffer *));
    lm->scales = calloc(factors, sizeof(mr_buffer *));
    mr_buffer ***by_layer[] = {&lm->attn_norm, &lm->ffn_norm, &lm->k_cache, &lm->v_cache};
    bool ok = lm->matrix && lm->scales;
    for (int i = 0; i < 4; i++)
        ok = (*by_layer[i] = calloc(layers, sizeof(mr_buffer *))) && ok;
    if (!ok)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if ((e = upload_factors(lm)) != MR_OK || (e = upload_layers(lm)) != MR_OK ||
        (e = upload_rope(lm)) != MR_OK ||
        (e = upload_tensor(lm, lm->m->embed, &lm->embed)) != MR_OK ||
        (e = upload_tensor(lm, lm->m->norm, &lm->norm)) != MR_OK || (e = create_work(lm)) != MR_OK)
        return e;
    if (lm->o.nic && (e = open_shards(lm)) != MR_OK)
        return e;
    return lm_weights_open(lm);
}

mr_status mr_lm_create(const mr_lm_model *m, const mr_lm_options *options, mr_lm **out) {
    *out = NULL;
    mr_lm *lm = calloc(1, sizeof *lm);
    if (!lm)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    lm->m = m;
    lm->o = *options;
    size_t step = options->nic ? LM_NODES_STEP : LM_STEP;
    lm->most = m->config.context < step ? m->config.context : step;
    mr_status e = build(lm);
    if (e != MR_OK) {
        mr_lm_destroy(lm);
        return e;
    }
    *out = lm;
    return MR_OK;
}

void mr_lm_destroy(mr_lm *lm) {
    if (!lm)
        return;
    for (size_t i = 0; i < lm->num_pending; i++)
        mr_event_destroy(lm->pending[i]);
    lm_weights_close(lm);
    mr_shards_close(lm->shards);
    free(lm->shard_rows);
    if (lm->queue)
        mr_queue_destroy(lm->queue);
    if (lm->gpu)
        mr_device_close(lm->gpu); /* its buffers go with it */
    free(lm->matrix);
    free(lm->scales);
    free(lm->attn_norm);
    free(lm->ffn_norm);
    free(lm->k_cache);
    free(lm->v_cache);
    free(lm->tokens_host);
    free(lm->counts_host);
    free(lm);
}
