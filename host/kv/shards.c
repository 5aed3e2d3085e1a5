/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kv/shards.h"

#include <stdlib.h>

#include <millrace/nic.h>

#include "host/core/error.h"

/* PATIENCE: cycles in which the root has sent a query as often as it does */
enum { JOB = 1, ROOT = 0, PATIENCE = 1 << 21 };

/* What one node has of a layer's step. */
typedef struct {
    float *q, *m, *d, *o;
    mr_nic_op *query, *merge;
} shard;

struct mr_shards {
    mr_shards_options o;
    mr_nic *nic;
    mr_queue *queue;
    size_t nodes, row; /* row: floats of a position's keys, as many of its values */
    size_t position;   /* the next */
    size_t first;      /* position of the tail's first key; all before are in full blocks */
    size_t room;       /* positions of a tail */
    float *tail;       /* [layers][2][room][row]: keys, values */
    float *staged;     /* [2][context][row] of one node */
    float *block;      /* one KV block as it is sent and stored: keys, then values */
    float *lse;
    shard *shard; /* [nodes] */
    mr_buffer *keys, *values, *m, *d, *partial, *q;
};

/* ---- opening ----------------------------------------------------------------------------------
 */

static mr_status make_job(mr_shards *s) {
    uint8_t members[MR_SHARDS_NODES];
    for (size_t i = 0; i < s->nodes; i++)
        members[i] = (uint8_t)i;
    return mr_nic_job_create(s->nic, JOB, members, s->nodes, ROOT, 0);
}

static mr_status allocate(mr_shards *s) {
    const mr_shards_options *o = &s->o;
    size_t heads = o->step * o->heads, q = heads * o->dim, f = sizeof(float);
    s->room = o->block + o->step;
    s->tail = malloc(o->layers * 2 * s->room * s->row * f);
    s->staged = malloc(2 * o->context * s->row * f);
    s->block = malloc(2 * o->block * s->row * f);
    s->lse = malloc(heads * f);
    s->shard = calloc(s->nodes, sizeof *s->shard);
    bool ok = s->tail && s->staged && s->block && s->lse && s->shard;
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
    } all[] = {{&s->keys, o->context * s->row * f},
               {&s->values, o->context * s->row * f},
               {&s->m, heads * f},
               {&s->d, heads * f},
               {&s->partial, q * f},
               {&s->q, q * f}};
    mr_status e = mr_queue_create(o->device, &s->queue);
    for (size_t i = 0; e == MR_OK && i < sizeof all / sizeof all[0]; i++)
        e = mr_buffer_create(o->device, all[i].bytes, all[i].to);
    return e;
}

static mr_status build(mr_shards *s) {
    mr_nic_info info;
    mr_status e = mr_nic_open(s->o.nic, &s->nic);
    if (e == MR_OK)
        e = mr_nic_get_info(s->nic, &info);
    if (e != MR_OK)
        return e;
    s->nodes = info.nodes;
    s->row = s->o.kv_heads * s->o.dim;
    if (s->nodes > MR_SHARDS_NODES)
        return mr_fail(MR_INVALID_ARGUMENT, "nodes: %zu, at most %d", s->nodes, MR_SHARDS_NODES);
    e = allocate(s);
    return e == MR_OK ? make_job(s) : e;
}

mr_status mr_shards_open(const mr_shards_options *options, mr_shards **out) {
    *out = NULL;
    mr_shards *s = calloc(1, sizeof *s);
    if (!s)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    s->o = *options;
    mr_status e = build(s);
    if (e != MR_OK)
        mr_shards_close(s);
    else
        *out = s;
    return e;
}

void mr_shards_close(mr_shards *s) {
    if (!s)
        return;
    for (size_t i = 0; s->shard && i < s->nodes; i++) {
        shard *h = &s->shard[i];
        free(h->q);
        free(h->m);
        free(h->d);
        free(h->o);
    }
    mr_buffer *const buffers[] = {s->keys, s->values, s->m, s->d, s->partial, s->q};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (buffers[i])
            mr_buffer_destroy(buffers[i]);
    if (s->queue)
        mr_queue_destroy(s->queue);
    if (s->nic)
        mr_nic_close(s->nic);
    free(s->shard);
    free(s->tail);
    free(s->staged);
    free(s->block);
    free(s->lse);
    free(s);
}

mr_status mr_shards_restart(mr_shards *s) {
    if (s->position == 0)
        return MR_OK;
    s->first = s->position = 0;
    mr_status e = mr_nic_job_destroy(s->nic, JOB); /* its blocks go with it */
    return e == MR_OK ? make_job(s) : e;
}

/* ---- blocks -----------------------------------------------------------------------------------
 */

static float *tail_rows(const mr_shards *s, size_t layer, size_t values, size_t row) {
    return s->tail + (((layer * 2 + values) * s->room) + row) * s->row;
}

static size_t block_bytes(const mr_shards *s) { return 2 * s->o.block * s->row * sizeof(float); }

static mr_status write_block(mr_shards *s, size_t layer, size_t block) {
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
    memcpy(s->block + s->o.block * s->row, tail_rows(s, layer, 1, 0), block_bytes(s) / 2);
    return e == MR_OK ? mr_nic_run(s->nic, (const uint8_t[]){ROOT}, &c, 1) : e;
}

mr_status mr_shards_step(mr_shards *s, size_t count) {
    mr_status e = MR_OK;
    s->position += count;
    while (e == MR_OK && s->position - s->first >= s->o.block) {
        for (size_t i = 0; e == MR_OK && i < s->o.layers; i++) {
            e = write_block(s, i, s->first / s->o.block);
            for (size_t v = 0; v < 2; v++)
                memmove(tail_rows(s, i, v, 0), tail_rows(s, i, v, s->o.block),
                        s->o.step * s->row * sizeof(float));
        }
        s->first += s->o.block;
    }
    return e;
}

/* ---- attention --------------------------------------------------------------------------------
 */

/* The keys and values that a node has: its blocks, out of its NIC's memory, and at the root the
 * tail behind them. Returns their number. */
static mr_status stage(mr_shards *s, size_t layer, size_t node, size_t tail, size_t *keys) {
    float *k = s->staged, *v = s->staged + s->o.context * s->row;
    size_t half = s->o.block * s->row, n = 0;
    mr_status e = MR_OK;
    for (size_t b = node; e == MR_OK && (b + 1) * s->o.block <= s->first; b += s->nodes) {
        e = mr_nic_kv_peek(s->nic, (uint8_t)node, JOB, (uint16_t)layer, (uint32_t)b, 0, s->block,
                           block_bytes(s));
        memcpy(k + n * s->row, s->block, half * sizeof(float));
        memcpy(v + n * s->row, s->block + half, half * sizeof(float));
        n += s->o.block;
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

static mr_status wait(const mr_shards *s, mr_event *event) {
    const uint64_t step = 100000000u;
    for (uint64_t waited = 0;; waited += step) {
        if (s->o.stop && *s->o.stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        mr_status e = mr_event_wait(event, step);
        if (e != MR_TIMEOUT || waited >= s->o.timeout_ns)
            return e;
    }
}

/* The decode kernel for query number t over the first `keys` keys staged. */
static mr_status decode(const mr_shards *s, size_t t, size_t keys) {
    const mr_shards_options *o = &s->o;
    size_t heads = o->heads, f = sizeof(float), q = t * heads * o->dim * f;
    /* whole groups: the kernel ignores items beyond those it is told of */
    const size_t global[3] = {(heads + 63) / 64 * 64, 1, 1};
    const mr_arg args[] = {mr_arg_buffer(s->m, t * heads * f),
                           mr_arg_buffer(s->d, t * heads * f),
                           mr_arg_buffer(s->partial, q),
                           mr_arg_buffer(s->q, q),
                           mr_arg_buffer(s->keys, 0),
                           mr_arg_buffer(s->values, 0),
                           mr_arg_i32((int32_t)heads),
                           mr_arg_i32((int32_t)o->kv_heads),
                           mr_arg_i32((int32_t)o->dim),
                           mr_arg_i32(0),
                           mr_arg_i32((int32_t)keys),
                           mr_arg_i32((int32_t)s->row),
                           mr_arg_f32(o->scale),
                           mr_arg_i32((int32_t)heads)};
    mr_event *event;
    mr_status e = mr_kernel_launch(s->queue, "lm_attention_decode", args,
                                   sizeof args / sizeof args[0], global, NULL, &event);
    if (e != MR_OK)
        return e;
    e = wait(s, event);
    mr_event_destroy(event);
    return e;
}

/* m, d and o of the queries over what the node has; a query sees no key after its own position. */
static mr_status partial(mr_shards *s, size_t layer, size_t node, size_t count) {
    shard *h = &s->shard[node];
    size_t heads = s->o.heads, q = heads * s->o.dim, f = sizeof(float), keys;
    mr_status e = stage(s, layer, node, s->position - s->first + count, &keys);
    if (e == MR_OK)
        e = mr_buffer_write(s->q, 0, h->q, count * q * f);
    for (size_t t = 0; e == MR_OK && t < count; t++)
        e = decode(s, t, node == ROOT ? keys - (count - 1 - t) : keys);
    if (e == MR_OK)
        e = mr_buffer_read(s->m, 0, h->m, count * heads * f);
    if (e == MR_OK)
        e = mr_buffer_read(s->d, 0, h->d, count * heads * f);
    return e == MR_OK ? mr_buffer_read(s->partial, 0, h->o, count * q * f) : e;
}

static mr_nic_call rows(const mr_shards *s, mr_nic_kind kind, size_t layer, size_t count) {
    mr_nic_call c = mr_nic_call_init(kind, JOB);
    c.layer = (uint16_t)layer;
    c.heads = count * s->o.heads;
    c.dim = s->o.dim;
    return c;
}

static mr_status start_queries(mr_shards *s, size_t layer, size_t count) {
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < s->nodes; i++) {
        mr_nic_call c = rows(s, MR_NIC_QUERY, layer, count);
        c.send = i == ROOT ? s->shard[ROOT].q : NULL;
        c.recv = i == ROOT ? NULL : s->shard[i].q;
        c.timeout = i == ROOT ? 0 : PATIENCE;
        e = mr_nic_start(s->nic, (uint8_t)i, &c, &s->shard[i].query);
    }
    return e;
}

/* A node acts when its query is there. */
static mr_status answer(mr_shards *s, size_t layer, size_t node, size_t count, float *out) {
    shard *h = &s->shard[node];
    mr_status e = node == ROOT ? MR_OK : mr_nic_wait(h->query);
    if (e != MR_OK) { /* the root knows better who is silent */
        mr_status root = mr_nic_op_status(s->shard[ROOT].query);
        return root == MR_OK || root == MR_PENDING ? mr_nic_wait(h->query) : root;
    }
    e = partial(s, layer, node, count);
    if (e != MR_OK)
        return e;
    mr_nic_call c = rows(s, MR_NIC_MERGE, layer, count);
    c.natural = true;
    c.m = h->m;
    c.d = h->d;
    c.send = h->o;
    c.lse = s->lse;
    c.recv = out;
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

mr_status mr_shards_attend(mr_shards *s, size_t layer, size_t count, const float *q, const float *k,
                           const float *v, float *out) {
    size_t f = sizeof(float), at = s->position - s->first;
    if (layer >= s->o.layers || !count || count > s->o.step || count > s->o.context - s->position)
        return mr_fail(MR_INVALID_ARGUMENT, "shards: %zu positions at %zu, layer %zu", count,
                       s->position, layer);
    memcpy(s->shard[ROOT].q, q, count * s->o.heads * s->o.dim * f);
    memcpy(tail_rows(s, layer, 0, at), k, count * s->row * f);
    memcpy(tail_rows(s, layer, 1, at), v, count * s->row * f);
    mr_status e = start_queries(s, layer, count);
    for (size_t i = 0; e == MR_OK && i < s->nodes; i++)
        e = answer(s, layer, i, count, out);
    for (size_t i = 0; i < s->nodes; i++)
        e = finish(&s->shard[i].merge, e);
    for (size_t i = 0; i < s->nodes; i++)
        e = finish(&s->shard[i].query, e);
    return e;
}

mr_status mr_shards_get_stats(const mr_shards *s, mr_shards_stats *stats) {
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
