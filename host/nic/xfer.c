/* SPDX-License-Identifier: Apache-2.0 */
/* One transfer: how it is cut into frames, and what comes back. */
#include <stdlib.h>
#include <string.h>

#include "host/nic/internal.h"

enum { PAYLOAD_AT = MR_NIC_OVERHEAD + (int)MR_NIC_HEADER_BYTES };

/* ---- parts ------------------------------------------------------------------------------------
 */

static size_t of(const nic_xfer *x) { return mr_nic_dtype_bytes(x->dtype); }

/* Elements, heads or bytes of part p. */
static size_t amount(const nic_xfer *x, size_t p) {
    size_t all = x->kind == X_QUERY || x->kind == X_MERGE ? x->heads : x->count;
    size_t left = all - p * x->per;
    return left < x->per ? left : x->per;
}

static size_t heads_of_frame(const nic_xfer *x) {
    size_t row = x->dim * of(x), n = MR_NIC_MAX_PAYLOAD / row;
    if (x->kind == X_MERGE)
        while (n && mr_nic_stats_bytes(n, 8) + n * row > MR_NIC_MAX_PAYLOAD)
            n--;
    return n;
}

/* A part that is copied to everybody else should not hold the port much longer than eight frames.
 */
static size_t copied_part(size_t members) {
    return members <= 9 ? NIC_PART : NIC_PART * 8 / (members - 1) / 64 * 64;
}

static mr_status shape(nic_xfer *x) {
    size_t limit = UINT32_MAX;
    switch (x->kind) {
    case X_BARRIER:
        x->per = x->parts = x->count = 1;
        return MR_OK;
    case X_GATHER:
        limit = UINT16_MAX; /* the part's number stands in `layer` */
        x->per = copied_part(x->job->count) / of(x);
        break;
    case X_BROADCAST:
        x->per = copied_part(x->job->count) / of(x);
        break;
    case X_REDUCE:
        x->per = NIC_PART / of(x);
        break;
    case X_QUERY:
    case X_MERGE:
        x->per = heads_of_frame(x);
        if (!x->per)
            return mr_fail(MR_INVALID_ARGUMENT, "dim: a head of %zu elements does not fit a frame",
                           x->dim);
        x->parts = (x->heads + x->per - 1) / x->per;
        return MR_OK;
    case X_KV_WRITE:
    case X_KV_READ:
        x->per = NIC_PIECE;
        break;
    }
    x->parts = x->count / x->per + (x->count % x->per != 0);
    if (x->parts > limit)
        return mr_fail(MR_INVALID_ARGUMENT, "count: %zu elements are more than %zu frames carry",
                       x->count, limit);
    return MR_OK;
}

static bool at_root(const nic_xfer *x) { return x->self == x->job->root; }

mr_status nic_xfer_prepare(nic_xfer *x) {
    mr_status e = shape(x);
    if (e != MR_OK)
        return e;
    x->sends = x->due_in = x->parts;
    switch (x->kind) {
    case X_REDUCE:
    case X_MERGE:
        if (!x->everyone && !at_root(x))
            x->due_in = 0;
        break;
    case X_BROADCAST:
        if (x->self != x->from)
            x->sends = 0;
        break;
    case X_GATHER:
        x->due_in = x->parts * x->job->count;
        break;
    case X_QUERY:
        if (!at_root(x))
            x->sends = 0;
        break;
    case X_KV_WRITE:
        x->due_in = 0;
        break;
    case X_KV_READ:
        x->sends = 1; /* the request; it is repeated for what is missing */
        break;
    case X_BARRIER:
        break;
    }
    x->part = calloc(x->sends ? x->sends : 1, sizeof *x->part);
    x->got = calloc(x->due_in ? x->due_in : 1, 1);
    if (!x->part || !x->got)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory for %zu frames", x->parts);
    return MR_OK;
}

void nic_xfer_free(nic_xfer *x) {
    if (!x)
        return;
    free(x->part);
    free(x->got);
    free(x);
}

unsigned nic_xfer_opcode(const nic_xfer *x) {
    static const uint8_t opcode[] = {
        [X_BARRIER] = MR_NIC_OP_BARRIER,   [X_REDUCE] = MR_NIC_OP_REDUCE,
        [X_BROADCAST] = MR_NIC_OP_REDUCE,  [X_GATHER] = MR_NIC_OP_REDUCE,
        [X_QUERY] = MR_NIC_OP_QUERY,       [X_MERGE] = MR_NIC_OP_PARTIAL,
        [X_KV_WRITE] = MR_NIC_OP_KV_WRITE, [X_KV_READ] = MR_NIC_OP_KV_READ,
    };
    return opcode[x->kind];
}

/* ---- out --------------------------------------------------------------------------------------
 */

/* A broadcast copies bits: pairs of 2-byte elements travel as one int32 word. */
static size_t words(const nic_xfer *x, size_t p) { return (amount(x, p) * of(x) + 3) / 4; }

static void fill_header(const nic_xfer *x, size_t p, mr_nic_header *h) {
    memset(h, 0, sizeof *h);
    h->version = MR_NIC_VERSION;
    h->opcode = (uint8_t)nic_xfer_opcode(x);
    h->flags = MR_NIC_FL_RELIABLE;
    h->job = x->job->id;
    h->shard = x->job->rank[x->self];
    h->shards = (uint8_t)x->job->count;
    h->request = x->request;
    if (x->kind != X_BARRIER)
        h->dtype = x->dtype;
    switch (x->kind) {
    case X_BARRIER:
        break;
    case X_REDUCE:
        h->flags |= (uint8_t)(x->rop << MR_NIC_FL_OPERATOR_SHIFT);
        h->flags |= x->everyone ? MR_NIC_FL_EVERYONE : 0;
        h->heads = 1;
        h->dim = (uint16_t)amount(x, p);
        h->block = (uint32_t)p;
        break;
    case X_BROADCAST:
    case X_GATHER:
        h->dtype = MR_NIC_DT_INT32;
        h->flags |= MR_NIC_FL_EVERYONE;
        h->shards = 1;
        h->heads = 1;
        h->dim = (uint16_t)words(x, p);
        h->block = x->kind == X_GATHER ? h->shard : (uint32_t)p;
        h->layer = x->kind == X_GATHER ? (uint16_t)p : 0;
        break;
    case X_MERGE:
        h->flags |= x->natural ? MR_NIC_FL_NATURAL : 0;
        h->flags |= x->everyone ? MR_NIC_FL_EVERYONE : 0;
        /* fall through */
    case X_QUERY:
        h->layer = x->layer;
        h->head0 = (uint16_t)(p * x->per);
        h->heads = (uint16_t)amount(x, p);
        h->dim = (uint16_t)x->dim;
        h->block = (uint32_t)p;
        break;
    case X_KV_WRITE:
        h->flags |= p + 1 == x->parts ? MR_NIC_FL_LAST : 0;
        h->layer = x->layer;
        h->block = x->block;
        h->epoch = x->epoch;
        h->offset = (uint32_t)(x->offset + p * x->per);
        break;
    case X_KV_READ:
        h->flags = 0; /* repeated until its data is there; no ACK */
        h->layer = x->layer;
        h->block = x->block;
        h->epoch = x->epoch;
        break;
    }
}

static void put32(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static size_t fill_merge(const nic_xfer *x, size_t p, uint8_t *out) {
    size_t first = p * x->per, n = amount(x, p), at = mr_nic_stats_bytes(n, 8);
    memset(out, 0, at);
    for (size_t i = 0; i < n; i++) {
        mr_nic_swap(out + 8 * i, &x->m[first + i], 1, 4);
        mr_nic_swap(out + 8 * i + 4, &x->d[first + i], 1, 4);
    }
    mr_nic_swap(out + at, (const uint8_t *)x->send + first * x->dim * of(x), n * x->dim, of(x));
    return at + n * x->dim * of(x);
}

/* The first run of missing pieces, 16 at most: what one KV_READ asks for. */
static void read_span(const nic_xfer *x, size_t *first, size_t *last) {
    size_t a = 0;
    while (a < x->parts && x->got[a])
        a++;
    size_t b = a;
    while (b < x->parts && b < a + 16 && !x->got[b])
        b++;
    *first = a;
    *last = b;
}

bool nic_xfer_span_done(const nic_xfer *x) {
    size_t a, b;
    read_span(x, &a, &b);
    return a >= x->asked;
}

static size_t fill_payload(nic_xfer *x, size_t p, mr_nic_header *h, uint8_t *out) {
    const uint8_t *from = x->send;
    size_t n = amount(x, p), size = of(x), a, b;
    switch (x->kind) {
    case X_BARRIER:
        return 0;
    case X_REDUCE:
        mr_nic_swap(out, from + p * x->per * size, n, size);
        return n * size;
    case X_BROADCAST:
    case X_GATHER:
        mr_nic_swap(out, from + p * x->per * size, n, size);
        memset(out + n * size, 0, words(x, p) * 4 - n * size);
        return words(x, p) * 4;
    case X_QUERY:
        mr_nic_swap(out, from + p * x->per * x->dim * size, n * x->dim, size);
        return n * x->dim * size;
    case X_MERGE:
        return fill_merge(x, p, out);
    case X_KV_WRITE:
        memcpy(out, from + p * x->per, n);
        return n;
    case X_KV_READ:
        read_span(x, &a, &b);
        x->asked = b;
        h->offset = (uint32_t)(x->offset + a * x->per);
        put32(out, (uint32_t)((b < x->parts ? b * x->per : x->count) - a * x->per));
        return 4;
    }
    return 0;
}

size_t nic_xfer_frame(const nic_cluster *nic, nic_xfer *x, size_t p, bool again, unsigned to,
                      uint8_t *frame) {
    mr_nic_header h;
    fill_header(x, p, &h);
    if (again && x->kind != X_KV_READ)
        h.flags |= MR_NIC_FL_RETRANSMISSION;
    size_t bytes = fill_payload(x, p, &h, frame + PAYLOAD_AT);
    return mr_nic_frame_build(frame, &nic->row[to], &nic->row[x->job->rank[x->self]], &h, bytes);
}

/* ---- in ---------------------------------------------------------------------------------------
 */

size_t nic_xfer_part(const nic_xfer *x, const mr_nic_header *h) {
    size_t p = SIZE_MAX;
    switch (x->kind) {
    case X_BARRIER:
        p = 0;
        break;
    case X_GATHER:
        p = h->layer;
        break;
    case X_REDUCE:
    case X_BROADCAST:
    case X_QUERY:
    case X_MERGE:
        p = h->block;
        break;
    case X_KV_WRITE:
    case X_KV_READ:
        if (h->layer == x->layer && h->block == x->block && h->offset >= x->offset)
            p = x->kind == X_KV_READ ? 0 : (h->offset - x->offset) / x->per;
        break;
    }
    return p < x->parts ? p : SIZE_MAX;
}

/*
 * Members take turns: part p of member i is number p * members + i, and nobody sends a number that
 * is 16 or more beyond the first one he has not got. So at most 16 frames queue in front of a port,
 * and whoever is the first may always send.
 */
bool nic_xfer_turn(nic_xfer *x, size_t p) {
    enum { AHEAD = 16 };
    size_t n = x->job->count;
    if (x->kind != X_GATHER)
        return true;
    while (x->first < x->due_in && x->got[x->first % n * x->parts + x->first / n])
        x->first++;
    return p * n + x->self < x->first + AHEAD;
}

void nic_xfer_settle(nic_xfer *x, size_t p) {
    if (p >= x->sends)
        return;
    x->part[p].settled = true;
    while (x->low < x->sends && x->part[x->low].settled)
        x->low++;
}

bool nic_xfer_complete(const nic_xfer *x) { return x->low == x->sends && x->have == x->due_in; }

static bool note(nic_xfer *x, size_t i) {
    if (x->got[i])
        return false;
    x->got[i] = 1;
    x->have++;
    return true;
}

/* Copies a vector's part; `to` is the whole vector of the member whose part it is. */
static void store(const nic_xfer *x, size_t p, void *to, const uint8_t *payload) {
    mr_nic_swap((uint8_t *)to + p * x->per * of(x), payload, amount(x, p), of(x));
}

static bool take_result(nic_xfer *x, const mr_nic_frame *f) {
    size_t p = nic_xfer_part(x, &f->header);
    bool copy = x->kind == X_BROADCAST || x->kind == X_GATHER;
    if (p == SIZE_MAX || !x->due_in || f->header.heads != 1 ||
        f->header.dtype != (copy ? MR_NIC_DT_INT32 : x->dtype) ||
        f->bytes != (copy ? words(x, p) * 4 : amount(x, p) * of(x)))
        return false;
    if (x->kind == X_GATHER) {
        int member = f->header.block < 256 ? nic_member(x->job, f->header.block) : -1;
        if (member < 0 || !note(x, (size_t)member * x->parts + p))
            return false;
        store(x, p, (uint8_t *)x->recv + (size_t)member * x->count * of(x), f->payload);
        if ((unsigned)member == x->self)
            nic_xfer_settle(x, p);
        return true;
    }
    if (!note(x, p))
        return false;
    store(x, p, x->recv, f->payload);
    nic_xfer_settle(x, p);
    return true;
}

static bool take_rows(nic_xfer *x, const mr_nic_frame *f) {
    size_t p = nic_xfer_part(x, &f->header), size = of(x);
    if (p == SIZE_MAX || !x->due_in)
        return false;
    size_t first = p * x->per, n = amount(x, p);
    size_t stats = x->kind == X_MERGE ? mr_nic_stats_bytes(n, 4) : 0;
    if (f->header.head0 != first || f->header.heads != n || f->header.dim != x->dim ||
        f->header.dtype != x->dtype || f->header.layer != x->layer ||
        f->bytes != stats + n * x->dim * size || !note(x, p))
        return false;
    if (stats && x->lse)
        mr_nic_swap(x->lse + first, f->payload, n, 4);
    if (x->recv)
        mr_nic_swap((uint8_t *)x->recv + first * x->dim * size, f->payload + stats, n * x->dim,
                    size);
    if (x->kind == X_MERGE)
        nic_xfer_settle(x, p);
    return true;
}

static bool take_data(nic_xfer *x, const mr_nic_frame *f) {
    size_t at = f->header.offset;
    if (f->header.layer != x->layer || f->header.block != x->block || at < x->offset ||
        (at - x->offset) % x->per || (at - x->offset) / x->per >= x->parts)
        return false;
    size_t p = (at - x->offset) / x->per;
    if (f->bytes != amount(x, p) || !note(x, p))
        return false;
    memcpy((uint8_t *)x->recv + p * x->per, f->payload, f->bytes);
    if (x->have == x->due_in)
        nic_xfer_settle(x, 0);
    return true;
}

bool nic_xfer_take(nic_xfer *x, const mr_nic_frame *f) {
    switch (x->kind) {
    case X_BARRIER:
        if (!note(x, 0))
            return false;
        nic_xfer_settle(x, 0);
        return true;
    case X_REDUCE:
    case X_BROADCAST:
    case X_GATHER:
        return take_result(x, f);
    case X_QUERY:
    case X_MERGE:
        return take_rows(x, f);
    case X_KV_READ:
        return take_data(x, f);
    case X_KV_WRITE:
        break;
    }
    return false;
}

void nic_xfer_silent(const nic_xfer *x, nic_ranks *out) {
    for (size_t p = x->low; p < x->sends; p++)
        for (unsigned i = 0; i < x->job->count; i++)
            if (x->part[p].sent && !x->part[p].settled && x->part[p].wait >> i & 1)
                nic_ranks_add(out, x->job->rank[i]);
    if (!nic_ranks_empty(out) || x->have == x->due_in)
        return;
    if (x->kind == X_BROADCAST)
        nic_ranks_add(out, x->job->rank[x->from]);
    for (size_t i = 0; x->kind == X_GATHER && i < x->due_in; i++)
        if (!x->got[i])
            nic_ranks_add(out, x->job->rank[i / x->parts]);
    if (x->kind == X_QUERY && !at_root(x))
        nic_ranks_add(out, x->job->rank[x->job->root]);
}
