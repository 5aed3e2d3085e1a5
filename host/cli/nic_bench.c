/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/nic_bench.h"

#include <stdlib.h>
#include <string.h>

#include <millrace/nic_regs.h>

#include "host/cli/nic.h"
#include "host/core/error.h"
#include "host/nic/apply.h"
#include "host/nic/frame.h"

enum {
    SHARDS = 8,
    PATIENCE = 4 << 20,
    BEAT = 64,
    MERGE_JOB = 1, /* ranks 1 to 8: who contributes is who is a member, so nothing is parked */
    HOST_JOB = 2,  /* all ranks: queries and KV blocks */
    HEADER = MR_NIC_HEADER_BYTES
};

const char *const nic_path_names[NIC_PATHS] = {"pass", "deliver", "send", "copy",
                                               "ack",  "stored",  "read"};

/* ---- the NIC --------------------------------------------------------------------------------- */

mr_status nic_bench_open(nic_bench *b, const char *device) {
    for (unsigned i = 0; i < NIC_BENCH_NODES; i++) {
        mr_nic_node_row *n = &b->nodes[i];
        n->rank = (uint8_t)i;
        mr_nic_default_address(i, n->mac, &n->ip, &n->port);
        b->jobs[1].members[i] = (uint8_t)i;
        if (i)
            b->jobs[0].members[i - 1] = (uint8_t)i;
    }
    b->jobs[0].job = MERGE_JOB;
    b->jobs[0].count = SHARDS;
    b->jobs[1].job = HOST_JOB;
    b->jobs[1].count = NIC_BENCH_NODES;
    b->jobs[0].root = b->jobs[1].root = 1;
    b->kv = (mr_nic_kv_row){.job = HOST_JOB, .owner = 0, .bytes = 65536};
    b->config = (mr_nic_config){.nodes = b->nodes,
                                .jobs = b->jobs,
                                .kv = &b->kv,
                                .num_nodes = NIC_BENCH_NODES,
                                .num_jobs = 2,
                                .num_kv = 1};
    const mr_nic_settings settings = {.rank = 0, .chain = true};
    mr_nic_stream s[MR_NIC_STREAMS];
    mr_status e = cli_nic_open(device, "open=1", &b->config, 0, &b->l);
    if (e == MR_OK)
        e = b->l->ops->streams(b->l, 0, s); /* only a simulated NIC has them */
    return e == MR_OK ? mr_nic_apply(b->l, 0, &b->config, &settings) : e;
}

void nic_bench_close(nic_bench *b) {
    if (b->l)
        b->l->ops->close(b->l);
}

/* Takes everything that came out; *some (may be NULL): there was something. */
static mr_status drain(nic_bench *b, bool *some) {
    const mr_nic_link_ops *ops = b->l->ops;
    uint8_t event[MR_NIC_EVENT_BYTES];
    size_t bytes, taken = 0;
    unsigned port;
    bool got;
    mr_status e;
    while ((e = ops->capture(b->l, 0, &port, b->frame, sizeof b->frame, &bytes)) == MR_OK && bytes)
        taken++;
    while (e == MR_OK && (e = ops->recv(b->l, 0, b->frame, sizeof b->frame, &bytes)) == MR_OK &&
           bytes)
        taken++;
    while (e == MR_OK && (e = ops->event(b->l, 0, event, &got)) == MR_OK && got)
        taken++;
    if (some)
        *some = taken > 0;
    return e;
}

/* Until nothing moves any more. A NIC that gives something out is not stuck, however long. */
static mr_status settle(nic_bench *b) {
    const mr_nic_link_ops *ops = b->l->ops;
    mr_status e = drain(b, NULL);
    uint64_t start = ops->cycles(b->l);
    while (e == MR_OK && !ops->idle(b->l)) {
        bool some = false;
        if (ops->cycles(b->l) - start > PATIENCE)
            return mr_fail(MR_DEVICE_ERROR, "the NIC is still busy after %d cycles", PATIENCE);
        e = ops->run(b->l, 256);
        if (e == MR_OK)
            e = drain(b, &some);
        if (some)
            start = ops->cycles(b->l);
    }
    return e;
}

static mr_status busy(nic_bench *b, uint64_t *out) {
    uint32_t low = 0, high = 0, again = 1;
    mr_status e = MR_OK;
    while (e == MR_OK && high != again) { /* the two halves of one moment */
        e = b->l->ops->reg_read(b->l, 0, MR_NIC_BUSY + 4, &high);
        if (e == MR_OK)
            e = b->l->ops->reg_read(b->l, 0, MR_NIC_BUSY, &low);
        if (e == MR_OK)
            e = b->l->ops->reg_read(b->l, 0, MR_NIC_BUSY + 4, &again);
    }
    *out = (uint64_t)high << 32 | low;
    return e;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static mr_nic_header header(unsigned opcode, unsigned dtype, unsigned shard, uint32_t request) {
    return (mr_nic_header){.version = 1,
                           .opcode = (uint8_t)opcode,
                           .dtype = (uint8_t)dtype,
                           .job = HOST_JOB,
                           .shard = (uint8_t)shard,
                           .shards = 1,
                           .request = request,
                           .heads = 1,
                           .dim = 1};
}

static uint8_t *payload(nic_bench *b) { return b->frame + MR_NIC_OVERHEAD + HEADER; }

/* From the network, or from the own host. */
static mr_status put(nic_bench *b, unsigned to, unsigned from, const mr_nic_header *h, size_t bytes,
                     bool host) {
    size_t n = mr_nic_frame_build(b->frame, &b->nodes[to], &b->nodes[from], h, bytes);
    return host ? b->l->ops->send(b->l, 0, b->frame, n)
                : b->l->ops->inject(b->l, 0, 0, b->frame, n);
}

static mr_status put_query(nic_bench *b, size_t bytes, bool host) {
    mr_nic_header h = header(MR_NIC_OP_QUERY, MR_NIC_DT_BF16, host ? 0 : 2, b->request++);
    h.dim = (uint16_t)(bytes / 2);
    memset(payload(b), 0, bytes);
    return put(b, 0, host ? 0 : 2, &h, bytes, host);
}

static mr_status put_write(nic_bench *b, size_t bytes, size_t offset, unsigned flags) {
    mr_nic_header h = header(MR_NIC_OP_KV_WRITE, MR_NIC_DT_BF16, 2, b->request++);
    h.flags = (uint8_t)flags;
    h.offset = (uint32_t)offset;
    memset(payload(b), 0x5A, bytes);
    return put(b, 0, 2, &h, bytes, false);
}

static void put_float(uint8_t *p, float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(u >> (24 - 8 * i));
}

/* One contribution of shard 1..SHARDS; heads 0: REDUCE. Returns its payload's bytes in *bytes. */
static mr_status contribute(nic_bench *b, unsigned dtype, size_t heads, size_t dim, unsigned shard,
                            uint32_t request, unsigned flags, size_t *bytes) {
    size_t stats = heads ? mr_nic_stats_bytes(heads, 8) : 0;
    size_t elements = (heads ? heads : 1) * dim;
    mr_nic_header h = header(heads ? MR_NIC_OP_PARTIAL : MR_NIC_OP_REDUCE, dtype, shard, request);
    *bytes = stats + elements * mr_nic_dtype_bytes(dtype);
    if (*bytes > MR_NIC_MAX_PAYLOAD)
        return mr_fail(MR_INVALID_ARGUMENT, "a contribution of %zu bytes", *bytes);
    h.job = MERGE_JOB;
    h.shards = SHARDS;
    h.flags = (uint8_t)flags;
    h.heads = (uint16_t)(heads ? heads : 1);
    h.dim = (uint16_t)dim;
    uint8_t *p = payload(b);
    memset(p, 0, stats);
    for (size_t i = 0; i < heads; i++) {
        put_float(p + 8 * i, (float)((shard * 7 + i) % 11));
        put_float(p + 8 * i + 4, 1.0f + (float)shard);
    }
    memset(p + stats, 0x3E, *bytes - stats); /* a small number in every format */
    return put(b, 0, shard, &h, *bytes, false);
}

/* ---- rates ----------------------------------------------------------------------------------- */

static mr_status begin(nic_bench *b) {
    mr_nic_stream s[MR_NIC_STREAMS];
    mr_status e = settle(b);
    return e == MR_OK ? b->l->ops->streams(b->l, 0, s) : e;
}

static uint64_t span(const mr_nic_stream *s) { return s->beats ? s->last - s->first + 1 : 0; }

static mr_status finish(nic_bench *b, mr_nic_stream_id where, nic_rate *out) {
    mr_nic_stream s[MR_NIC_STREAMS];
    mr_status e = settle(b);
    if (e == MR_OK)
        e = b->l->ops->streams(b->l, 0, s);
    if (e != MR_OK)
        return e;
    out->frames = s[MR_NIC_IN0].frames;
    out->in_beats = s[MR_NIC_IN0].beats;
    out->in_cycles = span(&s[MR_NIC_IN0]);
    out->out_frames = s[where].frames;
    out->out_beats = s[where].beats;
    out->out_cycles = span(&s[where]);
    out->engine_cycles = s[where].beats ? s[where].last - s[MR_NIC_IN0].first + 1 : 0;
    return MR_OK;
}

static uint64_t next_random(uint64_t *state) { /* SplitMix64 */
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

mr_status nic_bench_pass(nic_bench *b, size_t first, size_t last, size_t n, uint64_t seed,
                         nic_rate *out) {
    enum { AHEAD = 512 }; /* frames in front of the port: enough that it never runs dry */
    size_t count = (last - first + 1) * n;
    uint16_t *lengths = malloc(count * sizeof *lengths);
    mr_nic_header h = header(MR_NIC_OP_QUERY, MR_NIC_DT_BF16, 2, 0);
    memset(out, 0, sizeof *out);
    if (!lengths)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    for (size_t i = 0; i < count; i++) {
        size_t j = (size_t)(next_random(&seed) % (i + 1));
        lengths[i] = lengths[j];
        lengths[j] = (uint16_t)(first + i % (last - first + 1));
    }
    memset(b->frame, 0, sizeof b->frame);
    mr_status e = begin(b);
    for (size_t i = 0; i < count && e == MR_OK; i++) {
        e = put(b, 1, 2, &h, lengths[i] - (size_t)HEADER, false);
        if (e == MR_OK && i >= AHEAD) { /* as many cycles as the frame takes, and what comes out */
            e = b->l->ops->run(b->l, ((size_t)lengths[i - AHEAD] + MR_NIC_OVERHEAD) / BEAT);
            if (e == MR_OK && i % 64 == 0)
                e = drain(b, NULL);
        }
    }
    free(lengths);
    if (e == MR_OK)
        e = finish(b, MR_NIC_OUT1, out);
    out->lost = out->frames - out->out_frames;
    return e;
}

mr_status nic_bench_deliver(nic_bench *b, size_t udp, size_t n, nic_rate *out) {
    mr_status e = begin(b);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < n && e == MR_OK; i++)
        e = put_query(b, udp - HEADER, false);
    if (e == MR_OK)
        e = finish(b, MR_NIC_OUT_HOST, out);
    out->lost = out->frames - out->out_frames;
    return e;
}

static mr_status counted(nic_bench *b, unsigned counter, uint64_t *v) {
    return b->l->ops->counter(b->l, 0, counter, v);
}

mr_status nic_bench_store(nic_bench *b, size_t bytes, size_t n, nic_rate *out) {
    uint64_t before = 0, after = 0;
    mr_status e = begin(b);
    memset(out, 0, sizeof *out);
    if (e == MR_OK)
        e = counted(b, MR_NIC_CNT_KV_WRITTEN, &before);
    for (size_t i = 0; i < n && e == MR_OK; i++)
        e = put_write(b, bytes, i % 16 * MR_NIC_KV_PAGE, 0);
    if (e == MR_OK)
        e = finish(b, MR_NIC_OUT0, out);
    if (e == MR_OK)
        e = counted(b, MR_NIC_CNT_KV_WRITTEN, &after);
    out->lost = out->frames - (after - before);
    return e;
}

mr_status nic_bench_merge(nic_bench *b, unsigned dtype, size_t heads, size_t dim, size_t operations,
                          nic_rate *out) {
    uint64_t before = 0, after = 0, work_before = 0, work_after = 0;
    size_t bytes;
    mr_status e = begin(b);
    memset(out, 0, sizeof *out);
    if (e == MR_OK)
        e = counted(b, MR_NIC_CNT_CONTRIBUTED, &before);
    if (e == MR_OK)
        e = busy(b, &work_before);
    for (size_t i = 0; i < operations * SHARDS && e == MR_OK; i++)
        e = contribute(b, dtype, heads, dim, 1 + (unsigned)(i % SHARDS),
                       b->request + (uint32_t)(i / SHARDS), 0, &bytes);
    b->request += (uint32_t)operations;
    if (e == MR_OK)
        e = finish(b, MR_NIC_OUT0, out);
    if (e == MR_OK)
        e = busy(b, &work_after);
    if (e == MR_OK)
        e = counted(b, MR_NIC_CNT_CONTRIBUTED, &after);
    out->engine_beats = work_after - work_before;
    out->lost = out->frames - (after - before);
    return e;
}

/* ---- latencies ------------------------------------------------------------------------------- */

static mr_status cause(nic_bench *b, nic_path path, size_t bytes, mr_nic_stream_id *out) {
    mr_nic_header h = header(MR_NIC_OP_QUERY, MR_NIC_DT_BF16, 2, b->request);
    size_t got;
    *out = MR_NIC_OUT0;
    switch (path) {
    case NIC_PATH_PASS:
        *out = MR_NIC_OUT1;
        memset(payload(b), 0, bytes);
        return put(b, 1, 2, &h, bytes, false);
    case NIC_PATH_DELIVER:
        *out = MR_NIC_OUT_HOST;
        return put_query(b, bytes, false);
    case NIC_PATH_SEND:
        memset(payload(b), 0, bytes);
        return put(b, 1, 0, &h, bytes, true);
    case NIC_PATH_COPY:
        return put_query(b, bytes, true);
    case NIC_PATH_ACK:
        return contribute(b, MR_NIC_DT_BF16, 0, bytes / 2, 1, b->request++, MR_NIC_FL_RELIABLE,
                          &got);
    case NIC_PATH_STORED:
        return put_write(b, bytes, 0, MR_NIC_FL_RELIABLE);
    default:
        h = header(MR_NIC_OP_KV_READ, MR_NIC_DT_BF16, 2, b->request++);
        memset(payload(b), 0, 4);
        payload(b)[2] = (uint8_t)(bytes >> 8);
        payload(b)[3] = (uint8_t)bytes;
        return put(b, 0, 2, &h, 4, false);
    }
}

static mr_status measure(nic_bench *b, mr_nic_stream_id in, mr_nic_stream_id where,
                         uint64_t *cycles) {
    mr_nic_stream s[MR_NIC_STREAMS];
    mr_status e = settle(b);
    if (e == MR_OK)
        e = b->l->ops->streams(b->l, 0, s);
    if (e == MR_OK && (!s[in].beats || !s[where].beats))
        e = mr_fail(MR_DEVICE_ERROR, "the NIC sent nothing for a frame that it must answer");
    if (e == MR_OK)
        *cycles = s[where].first - s[in].last;
    return e;
}

mr_status nic_bench_latency(nic_bench *b, nic_path path, size_t bytes, uint64_t *cycles) {
    bool host = path == NIC_PATH_SEND || path == NIC_PATH_COPY;
    mr_nic_stream_id where;
    mr_status e = begin(b);
    if (e == MR_OK && path == NIC_PATH_READ) { /* what is read is written first */
        e = put_write(b, bytes, 0, 0);
        if (e == MR_OK)
            e = begin(b);
    }
    if (e == MR_OK)
        e = cause(b, path, bytes, &where);
    return e == MR_OK ? measure(b, host ? MR_NIC_IN_HOST : MR_NIC_IN0, where, cycles) : e;
}

mr_status nic_bench_merge_latency(nic_bench *b, unsigned dtype, size_t heads, size_t dim,
                                  uint64_t *cycles, uint64_t *payload_bytes) {
    size_t bytes = 0;
    mr_status e = begin(b);
    for (unsigned shard = 1; shard <= SHARDS && e == MR_OK; shard++) {
        if (shard == SHARDS)
            e = begin(b);
        if (e == MR_OK)
            e = contribute(b, dtype, heads, dim, shard, b->request, 0, &bytes);
    }
    b->request++;
    *payload_bytes = bytes;
    return e == MR_OK ? measure(b, MR_NIC_IN0, MR_NIC_OUT0, cycles) : e;
}
