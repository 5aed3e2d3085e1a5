/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lm/nodes.h"

#include <stdlib.h>

#include <millrace/nic.h>

#include "host/core/error.h"
#include "host/lm/internal.h"

/* PATIENCE: cycles in which the root has sent a query as often as it does */
enum { JOB = 1, ROOT = 0, PATIENCE = 1 << 21, MAX_TAIL = LM_BLOCK_KEYS + LM_NODES_STEP };

/* What one node has of a layer's step. */
typedef struct {
    float *q, *m, *d, *o;
    mr_nic_op *query, *merge;
} shard;

struct lm_nodes {
    mr_nic *nic;
    size_t nodes, row; /* row: floats of a position's keys, as many of its values */
    size_t first;      /* position of the tail's first key; all before are in full blocks */
    float *tail;       /* [layers][2][MAX_TAIL][row]: keys, values */
    float *staged;     /* [2][context][row] of one node */
    float *block;      /* one KV block as it is sent and stored: keys, then values */
    float *lse, *out;
    shard *shard; /* [nodes] */
    mr_buffer *keys, *values, *m, *d, *o, *q;
};

/* ---- opening ----------------------------------------------------------------------------------
 */

static mr_status make_job(lm_nodes *s) {
    uint8_t members[LM_NODES_MOST];
    for (size_t i = 0; i < s->nodes; i++)
        members[i] = (uint8_t)i;
    return mr_nic_job_create(s->nic, JOB, members, s->nodes, ROOT, 0);
}

static mr_status allocate(mr_lm *lm, lm_nodes *s) {
    const mr_lm_config *c = &lm->m->config;
    size_t heads = LM_NODES_STEP * c->n_heads, q = heads * c->head_dim, f = sizeof(float);
    s->tail = malloc(c->n_layers * 2 * MAX_TAIL * s->row * f);
    s->staged = malloc(2 * c->context * s->row * f);
    s->block = malloc((size_t)2 * LM_BLOCK_KEYS * s->row * f);
    s->lse = malloc(heads * f);
    s->out = malloc(q * f);
    s->shard = calloc(s->nodes, sizeof *s->shard);
    bool ok = s->tail && s->staged && s->block && s->lse && s->out && s->shard;
    for (size_t i = 0; ok && i < s->nodes; i++) {
        shard *h = &s->shard[i];
        h->q = malloc(q * f);
        h->o = malloc(q * f);
        h->m = malloc(heads * f);
        h->d = malloc(heads * f);
        ok = h->q && h->o && h->m && h->d;
    }
    if (!ok)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for %zu nodes", s->nodes);
    struct {
        mr_buffer **to;
        size_t bytes;
    } all[] = {{&s->keys, c->context * s->row * f},
               {&s->values, c->context * s->row * f},
               {&s->m, heads * f},
               {&s->d, heads * f},
               {&s->o, q * f},
               {&s->q, q * f}};
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < sizeof all / sizeof all[0]; i++)
        e = mr_buffer_create(lm->gpu, all[i].bytes, all[i].to);
    return e;
}

mr_status lm_nodes_open(mr_lm *lm, const char *uri) {
    lm_nodes *s = lm->nodes = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    mr_nic_info info;
    mr_status e = mr_nic_open(uri, &s->nic);
    if (e == MR_OK)
        e = mr_nic_get_info(s->nic, &info);
    if (e != MR_OK)
        return e;
    s->nodes = info.nodes;
    s->row = lm->m->config.n_kv_heads * lm->m->config.head_dim;
    if (s->nodes > LM_NODES_MOST)
        return mr_fail(MR_INVALID_ARGUMENT, "nodes: %zu, at most %d", s->nodes, LM_NODES_MOST);
    e = allocate(lm, s);
    return e == MR_OK ? make_job(s) : e;
}

void lm_nodes_close(lm_nodes *s) {
    if (!s)
        return;
    for (size_t i = 0; s->shard && i < s->nodes; i++) {
        shard *h = &s->shard[i];
        free(h->q);
        free(h->m);
        free(h->d);
        free(h->o);
    }
    if (s->nic)
        mr_nic_close(s->nic);
    free(s->shard);
    free(s->tail);
    free(s->staged);
    free(s->block);
    free(s->lse);
    free(s->out);
    free(s);
}

mr_status lm_nodes_restart(mr_lm *lm) {
    lm_nodes *s = lm->nodes;
    if (lm->position == 0)
        return MR_OK;
    s->first = 0;
    mr_status e = mr_nic_job_destroy(s->nic, JOB); /* its blocks go with it */
    return e == MR_OK ? make_job(s) : e;
}

/* ---- blocks -----------------------------------------------------------------------------------
 */

static float *tail_rows(const lm_nodes *s, size_t layer, size_t values, size_t row) {
    return s->tail + (((layer * 2 + values) * MAX_TAIL) + row) * s->row;
}

static size_t block_bytes(const lm_nodes *s) {
    return (size_t)2 * LM_BLOCK_KEYS * s->row * sizeof(float);
}

static mr_status write_block(lm_nodes *s, size_t layer, size_t block) {
    mr_nic_place p = {.job = JOB,
                      .layer = (uint16_t)layer,
                      .block = (uint32_t)block,
                      .bytes = (uint32_t)block_bytes(s),
                      .owner = (uint8_t)(block % s->nodes)};
    mr_status e = mr_nic_kv_place(s->nic, &p);
    mr_nic_call c = mr_nic_call_init(MR_NIC_KV_WRITE, JOB);
    c.layer = p.layer;
    c.block = p.block;
    c.bytes = p.bytes;
    c.send = s->block;
    memcpy(s->block, tail_rows(s, layer, 0, 0), block_bytes(s) / 2);
    memcpy(s->block + LM_BLOCK_KEYS * s->row, tail_rows(s, layer, 1, 0), block_bytes(s) / 2);
    return e == MR_OK ? mr_nic_run(s->nic, (const uint8_t[]){ROOT}, &c, 1) : e;
}

mr_status lm_nodes_flush(mr_lm *lm, size_t count) {
    lm_nodes *s = lm->nodes;
    size_t end = lm->position + count;
    mr_status e = MR_OK;
    while (e == MR_OK && end - s->first >= LM_BLOCK_KEYS) {
        for (size_t i = 0; e == MR_OK && i < lm->m->config.n_layers; i++) {
            e = write_block(s, i, s->first / LM_BLOCK_KEYS);
            for (size_t v = 0; v < 2; v++)
                memmove(tail_rows(s, i, v, 0), tail_rows(s, i, v, LM_BLOCK_KEYS),
                        (MAX_TAIL - LM_BLOCK_KEYS) * s->row * sizeof(float));
        }
        s->first += LM_BLOCK_KEYS;
    }
    return e;
}

/* ---- attention --------------------------------------------------------------------------------
 */

/* The keys and values that a node has: its blocks, out of its NIC's memory, and at the root the
 * tail behind them. Returns their number. */
static mr_status stage(mr_lm *lm, size_t layer, size_t node, size_t tail, size_t *keys) {
    lm_nodes *s = lm->nodes;
    float *k = s->staged, *v = s->staged + lm->m->config.context * s->row;
    size_t half = (size_t)LM_BLOCK_KEYS * s->row, n = 0;
    mr_status e = MR_OK;
    for (size_t b = node; e == MR_OK && (b + 1) * LM_BLOCK_KEYS <= s->first; b += s->nodes) {
        e = mr_nic_kv_peek(s->nic, (uint8_t)node, JOB, (uint16_t)layer, (uint32_t)b, 0, s->block,
                           block_bytes(s));
        memcpy(k + n * s->row, s->block, half * sizeof(float));
        memcpy(v + n * s->row, s->block + half, half * sizeof(float));
        n += LM_BLOCK_KEYS;
    }
    if (node == ROOT) {
        memcpy(k + n * s->row, tail_rows(s, layer, 0, 0), tail * s->row * sizeof(float));
        memcpy(v + n * s->row, tail_rows(s, layer, 1, 0), tail * s->row * sizeof(float));
        n += tail;
    }
    *keys = n;
    if (e == MR_OK && n)
        e = mr_buffer_write(s->keys, 0, k, n * s->row * sizeof(float));
    if (e == MR_OK && n)
        e = mr_buffer_write(s->values, 0, v, n * s->row * sizeof(float));
    return e;
}

/* m, d and o of the queries over what the node has; a query sees no key after its own position. */
static mr_status partial(mr_lm *lm, size_t layer, size_t node, size_t count, float scale) {
    const mr_lm_config *c = &lm->m->config;
    lm_nodes *s = lm->nodes;
    shard *h = &s->shard[node];
    size_t heads = c->n_heads, q = heads * c->head_dim, f = sizeof(float), keys;
    size_t tail = lm->position - s->first + count;
    mr_status e = stage(lm, layer, node, tail, &keys);
    if (e == MR_OK)
        e = mr_buffer_write(s->q, 0, h->q, count * q * f);
    for (size_t t = 0; e == MR_OK && t < count; t++) {
        size_t last = node == ROOT ? keys - (count - 1 - t) : keys;
        e = lm_launch(
            lm, "lm_attention_decode", heads, NULL,
            (mr_arg[]){mr_arg_buffer(s->m, t * heads * f), mr_arg_buffer(s->d, t * heads * f),
                       mr_arg_buffer(s->o, t * q * f), mr_arg_buffer(s->q, t * q * f),
                       mr_arg_buffer(s->keys, 0), mr_arg_buffer(s->values, 0),
                       mr_arg_i32((int32_t)heads), mr_arg_i32((int32_t)c->n_kv_heads),
                       mr_arg_i32((int32_t)c->head_dim), mr_arg_i32(0), mr_arg_i32((int32_t)last),
                       mr_arg_i32((int32_t)s->row), mr_arg_f32(scale)},
            13);
    }
    if (e == MR_OK)
        e = lm_read(lm, s->m, 0, h->m, count * heads * f);
    if (e == MR_OK)
        e = mr_buffer_read(s->d, 0, h->d, count * heads * f);
    return e == MR_OK ? mr_buffer_read(s->o, 0, h->o, count * q * f) : e;
}

static mr_nic_call rows(const mr_lm *lm, mr_nic_kind kind, size_t layer, size_t count) {
    mr_nic_call c = mr_nic_call_init(kind, JOB);
    c.layer = (uint16_t)layer;
    c.heads = count * lm->m->config.n_heads;
    c.dim = lm->m->config.head_dim;
    return c;
}

static mr_status start_queries(mr_lm *lm, size_t layer, size_t count) {
    lm_nodes *s = lm->nodes;
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < s->nodes; i++) {
        mr_nic_call c = rows(lm, MR_NIC_QUERY, layer, count);
        c.send = i == ROOT ? s->shard[ROOT].q : NULL;
        c.recv = i == ROOT ? NULL : s->shard[i].q;
        c.timeout = i == ROOT ? 0 : PATIENCE;
        e = mr_nic_start(s->nic, (uint8_t)i, &c, &s->shard[i].query);
    }
    return e;
}

/* A node acts when its query is there. */
static mr_status answer(mr_lm *lm, size_t layer, size_t node, size_t count, float scale) {
    lm_nodes *s = lm->nodes;
    shard *h = &s->shard[node];
    mr_status e = node == ROOT ? MR_OK : mr_nic_wait(h->query);
    if (e != MR_OK) { /* the root knows better who is silent */
        mr_status root = mr_nic_op_status(s->shard[ROOT].query);
        return root == MR_OK || root == MR_PENDING ? mr_nic_wait(h->query) : root;
    }
    e = partial(lm, layer, node, count, scale);
    if (e != MR_OK)
        return e;
    mr_nic_call c = rows(lm, MR_NIC_MERGE, layer, count);
    c.natural = true;
    c.m = h->m;
    c.d = h->d;
    c.send = h->o;
    c.lse = s->lse;
    c.recv = s->out;
    return mr_nic_start(s->nic, (uint8_t)node, &c, &h->merge);
}

static mr_status finish(mr_nic_op **op, mr_status e) {
    if (*op && e == MR_OK)
        e = mr_nic_wait(*op);
    if (*op)
        mr_nic_op_destroy(*op);
    *op = NULL;
    return e;
}

mr_status lm_nodes_attend(mr_lm *lm, size_t layer, size_t count, float scale) {
    const mr_lm_config *c = &lm->m->config;
    lm_nodes *s = lm->nodes;
    size_t q = c->n_heads * c->head_dim, f = sizeof(float), at = lm->position - s->first;
    mr_status e = lm_read(lm, lm->q, 0, s->shard[ROOT].q, count * q * f);
    if (e == MR_OK)
        e = mr_buffer_read(lm->k_cache[layer], 0, tail_rows(s, layer, 0, at), count * s->row * f);
    if (e == MR_OK)
        e = mr_buffer_read(lm->v_cache[layer], 0, tail_rows(s, layer, 1, at), count * s->row * f);
    if (e == MR_OK)
        e = start_queries(lm, layer, count);
    for (size_t i = 0; e == MR_OK && i < s->nodes; i++)
        e = answer(lm, layer, i, count, scale);
    for (size_t i = 0; i < s->nodes; i++)
        e = finish(&s->shard[i].merge, e);
    for (size_t i = 0; i < s->nodes; i++)
        e = finish(&s->shard[i].query, e);
    return e == MR_OK ? mr_buffer_write(lm->o_buf, 0, s->out, count * q * f) : e;
}

mr_status lm_nodes_stats(const lm_nodes *s, mr_lm_nic_stats *stats) {
    mr_nic_info info;
    uint64_t resent;
    mr_status e = mr_nic_get_info(s->nic, &info);
    if (e == MR_OK)
        e = mr_nic_total(s->nic, "tx_frames", &stats->frames);
    if (e == MR_OK)
        e = mr_nic_total(s->nic, "tx_bytes", &stats->bytes);
    if (e == MR_OK)
        e = mr_nic_total(s->nic, "retransmissions", &resent);
    if (e == MR_OK)
        e = mr_nic_total(s->nic, "merged", &stats->merges);
    if (e != MR_OK)
        return e;
    stats->nodes = s->nodes;
    stats->retransmissions = resent + info.resent;
    stats->cycles = info.cycles;
    return MR_OK;
}
