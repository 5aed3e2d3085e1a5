/* SPDX-License-Identifier: Apache-2.0 */
/* Times are picoseconds, the network's tick. */
#include "models/cycle/cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/cycle/store.h"

enum { NONE = UINT32_MAX, NOWHERE = UINT8_MAX };
enum { CHUNK = 2 << 20 }; /* bulk transfers take turns after so many bytes */
enum { OCTAVE = 64, BINS = 64 * OCTAVE };

typedef enum { QUEUED, NO_ROOM, READY, RUNNING, MOVING, DECODING, DONE, REFUSED } state;

typedef struct {
    state state;
    mr_kv_plan plan;
    uint64_t context, fresh, done; /* tokens reused, to compute, computed */
    uint64_t estimate, arrival, first, last;
    uint64_t pulled_at;
    uint32_t pulls, moves;  /* flows not yet over */
    uint32_t base, settled; /* members that it waited for; members when its prompt began */
    uint32_t heads, ready, left, now_tokens;
    uint32_t generated, local_tokens;
    uint64_t shipped_tokens;
    bool last_step;
    uint8_t *read_at, *shard_at; /* [blocks] in decode: read from; where a copy stays in any case */
    uint32_t reserved[MR_KV_NODES];
} job;

typedef struct {
    uint32_t *queue;
    size_t queued, queue_room;
    uint32_t head; /* the request that was counted as first here */
    uint32_t *active, *late;
    size_t actives, active_room, lates, late_room;
    uint64_t local_tokens, far_tokens[MR_KV_NODES];
    uint32_t far_requests[MR_KV_NODES];
    uint64_t backlog, debt, busy, in_bytes, out_bytes;
    bool running, held;
    /* the step */
    uint64_t start, end, compute, hidden, far, bulk_at, query_at, partial_at;
    uint32_t part, stepping, bulk, urgent;
} node;

typedef enum { EXCHANGE, PULL, MOVE, SPREAD, QUERY, PARTIAL } purpose;

typedef struct {
    purpose purpose;
    uint32_t index; /* a node for EXCHANGE, QUERY, PARTIAL; a request; a block for SPREAD */
    uint32_t next;
    uint8_t src, dst;
    uint64_t left, sending;
} flow;

typedef struct {
    const mr_cluster_config *c;
    mr_cluster_result *result;
    mr_net *net;
    mr_store *store;
    job *jobs;
    node *nodes;
    flow *flows;
    size_t flow_room;
    uint32_t unused_flow;
    uint32_t *no_room;
    size_t no_rooms, waiting, admitted; /* admitted: and not yet finished */
    uint64_t now, first_arrival;
    uint64_t step_tokens;
    uint64_t block_wire, token_wire, query_wire, partial_wire, wide_wire;
    uint64_t hop_ps, merge_ps;
    mr_kv_costs costs;
    mr_kv_node *seen;
    mr_kv_set *where;
    uint32_t *uses;
    uint64_t *ttft;
    uint64_t *gaps;
    uint32_t *ended; /* [step_requests] */
    double gap_sum;
    uint64_t member_sum;
    bool failed;
} sim;

static void kick(sim *s, size_t n);
static void retry_no_room(sim *s);

/* ---- small things -----------------------------------------------------------------------------
 */

static const mr_cluster_request *asked(const sim *s, uint32_t r) { return &s->c->request[r]; }

static size_t blocks_of(const sim *s, uint32_t r) {
    return (asked(s, r)->tokens + s->c->block_tokens - 1) / s->c->block_tokens;
}

static uint64_t output_blocks(const sim *s, uint32_t r) {
    return (asked(s, r)->output + s->c->block_tokens - 1) / s->c->block_tokens;
}

static uint32_t block_tokens(const sim *s, uint32_t r, size_t b) {
    uint64_t t = asked(s, r)->tokens - b * s->c->block_tokens;
    return (uint32_t)(t < s->c->block_tokens ? t : s->c->block_tokens);
}

static uint64_t framed(uint64_t bytes, uint64_t payload, uint64_t overhead) {
    return bytes + (bytes + payload - 1) / payload * overhead;
}

static bool grow(uint32_t **list, size_t *room, size_t count) {
    if (count < *room)
        return true;
    size_t more = *room ? 2 * *room : 64;
    uint32_t *p = realloc(*list, more * sizeof **list);
    if (!p)
        return false;
    *list = p;
    *room = more;
    return true;
}

static void append(sim *s, uint32_t **list, size_t *room, size_t *count, uint32_t value) {
    if (grow(list, room, *count))
        (*list)[(*count)++] = value;
    else
        s->failed = true;
}

static void take_out(uint32_t *list, size_t *count, uint32_t value) {
    size_t i = 0;
    while (list[i] != value)
        i++;
    memmove(list + i, list + i + 1, (--*count - i) * sizeof *list);
}

/* ---- what the policy sees ---------------------------------------------------------------------
 */

static uint64_t prompt_cost(const void *context, uint64_t tokens, uint64_t reused, uint64_t shipped,
                            size_t members) {
    const sim *s = context;
    return mr_machine_prompt_ns(s->c->machine, s->step_tokens, tokens, reused, shipped, members);
}

static uint64_t ship_cost(const void *context, uint64_t tokens, uint64_t keys) {
    return mr_machine_cross_attention_ns(((const sim *)context)->c->machine, tokens, keys);
}

/* Prompts that wait for the node, by estimate, and what is left of the first. */
static uint64_t backlog_of(const sim *s, size_t n) {
    const node *d = &s->nodes[n];
    if (!d->queued)
        return 0;
    const job *j = &s->jobs[d->queue[0]];
    double over = j->fresh ? (double)j->done / (double)j->fresh : 0;
    return d->backlog - (uint64_t)((double)j->estimate * over);
}

static mr_kv_view view_of(sim *s) {
    for (size_t n = 0; n < s->c->nodes; n++)
        s->seen[n] = (mr_kv_node){.capacity = s->c->capacity,
                                  .pinned = mr_store_pinned(s->store, n),
                                  .backlog_ns = backlog_of(s, n) / 1000,
                                  .in_ns = s->nodes[n].in_bytes * s->c->byte_ps / 1000,
                                  .out_ns = s->nodes[n].out_bytes * s->c->byte_ps / 1000,
                                  .decode_tokens = s->nodes[n].local_tokens};
    mr_kv_set free = 0;
    for (size_t n = 0; n < s->c->nodes; n++) {
        const node *d = &s->nodes[n];
        if (!d->queued && !d->held && !(d->running && d->part != NONE))
            free |= (mr_kv_set)1 << n;
    }
    return (mr_kv_view){.nodes = s->c->nodes,
                        .free = free,
                        .waiting = s->waiting,
                        .node = s->seen,
                        .costs = &s->costs};
}

static mr_kv_request request_of(sim *s, uint32_t r) {
    mr_kv_request q = {.tokens = asked(s, r)->tokens,
                       .blocks = blocks_of(s, r),
                       .output_blocks = output_blocks(s, r),
                       .where = s->where,
                       .uses = s->uses};
    for (size_t b = 0; b < q.blocks; b++) {
        s->where[b] = mr_store_where(s->store, asked(s, r)->block[b]);
        s->uses[b] = mr_store_uses(s->store, asked(s, r)->block[b]);
        if (b == q.hit && s->where[b])
            q.hit++;
    }
    return q;
}

/* ---- transfers --------------------------------------------------------------------------------
 */

static void send_next(sim *s, uint32_t i) {
    flow *f = &s->flows[i];
    bool urgent = f->purpose == QUERY || f->purpose == PARTIAL;
    f->sending = urgent || f->left < CHUNK ? f->left : CHUNK;
    if (!mr_net_send(s->net, f->src, f->dst, f->sending, s->now,
                     urgent ? MR_NET_URGENT : MR_NET_BULK, i))
        s->failed = true;
}

static void transfer(sim *s, purpose purpose, size_t src, size_t dst, uint64_t bytes,
                     uint32_t index) {
    if (s->unused_flow == NONE) {
        size_t room = s->flow_room ? 2 * s->flow_room : 1024;
        flow *flows = realloc(s->flows, room * sizeof *flows);
        if (!flows) {
            s->failed = true;
            return;
        }
        for (size_t i = s->flow_room; i < room; i++)
            flows[i].next = i + 1 < room ? (uint32_t)(i + 1) : NONE;
        s->unused_flow = (uint32_t)s->flow_room;
        s->flows = flows;
        s->flow_room = room;
    }
    uint32_t i = s->unused_flow;
    s->unused_flow = s->flows[i].next;
    s->flows[i] = (flow){purpose, index, NONE, (uint8_t)src, (uint8_t)dst, bytes, 0};
    if (purpose != QUERY && purpose != PARTIAL) {
        s->nodes[src].out_bytes += bytes;
        s->nodes[dst].in_bytes += bytes;
    }
    send_next(s, i);
}

/* ---- decode's tables --------------------------------------------------------------------------
 */

/* What request r reads in a decode step, added to its root's sums or taken away. */
static void count_reads(sim *s, uint32_t r, bool add) {
    job *j = &s->jobs[r];
    node *root = &s->nodes[j->plan.root];
    mr_kv_set far = 0;
    uint64_t tokens[MR_KV_NODES];
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        size_t h = j->read_at[b];
        if (h == j->plan.root)
            continue;
        if (!(far >> h & 1)) {
            far |= (mr_kv_set)1 << h;
            tokens[h] = 0;
        }
        tokens[h] += block_tokens(s, r, b);
    }
    root->local_tokens += add ? j->local_tokens : -(uint64_t)j->local_tokens;
    for (; far; far &= far - 1) {
        size_t h = (size_t)__builtin_ctzll(far);
        root->far_tokens[h] += add ? tokens[h] : -tokens[h];
        root->far_requests[h] += add ? 1u : -1u;
    }
}

static void decode_begins(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    node *n = &s->nodes[j->plan.root];
    j->state = DECODING;
    if (n->actives < s->c->step_requests) {
        append(s, &n->active, &n->active_room, &n->actives, r);
        count_reads(s, r, true);
    } else
        append(s, &n->late, &n->late_room, &n->lates, r);
    kick(s, j->plan.root);
}

/* Replicas at its root go: from now on it asks the shards. */
static bool drain_one(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    uint64_t before = s->result->drained_blocks;
    bool active = false; /* in the sums? */
    for (size_t i = 0; i < s->nodes[root].actives; i++)
        active |= s->nodes[root].active[i] == r;
    if (active)
        count_reads(s, r, false);
    for (size_t b = 0; b < blocks_of(s, r); b++)
        if (j->read_at[b] == root && j->shard_at[b] != root) {
            mr_store_unpin(s->store, root, asked(s, r)->block[b]);
            j->read_at[b] = j->shard_at[b];
            j->local_tokens -= block_tokens(s, r, b);
            s->result->drained_blocks++;
        }
    if (active)
        count_reads(s, r, true);
    return s->result->drained_blocks > before;
}

/* The request that has run longest and has replicas. */
static bool drain(sim *s, size_t n) {
    for (size_t i = 0; i < s->nodes[n].actives; i++)
        if (drain_one(s, s->nodes[n].active[i]))
            return true;
    for (size_t i = 0; i < s->nodes[n].lates; i++)
        if (drain_one(s, s->nodes[n].late[i]))
            return true;
    return false;
}

static void relieve(sim *s, size_t n) {
    mr_kv_view v = view_of(s);
    while (s->c->policy->drain(&v, n) && drain(s, n))
        s->seen[n].pinned = mr_store_pinned(s->store, n);
}

static void finished(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        uint32_t name = asked(s, r)->block[b];
        if (j->read_at[b] != NOWHERE && j->read_at[b] != j->shard_at[b])
            mr_store_unpin(s->store, j->read_at[b], name);
        if (j->shard_at[b] != NOWHERE)
            mr_store_unpin(s->store, j->shard_at[b], name);
    }
    for (size_t n = 0; n < s->c->nodes; n++)
        mr_store_release(s->store, n, j->reserved[n]);
    free(j->read_at);
    j->read_at = j->shard_at = NULL;
    j->state = DONE;
    s->admitted--;
    s->result->finished++;
    s->result->output_tokens += asked(s, r)->output;
    retry_no_room(s);
}

/* ---- room for a prompt ------------------------------------------------------------------------
 */

/* The homes of the new blocks, in turn, so that neighbours in the prompt are on different nodes. */
static void choose_homes(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_view v = view_of(s);
    mr_kv_request q = request_of(s, r);
    uint32_t share[MR_KV_NODES];
    s->c->policy->homes(&v, &q, &j->plan, share);
    size_t n = j->plan.member[0];
    for (size_t b = j->plan.reuse; b < q.blocks; b++) {
        while (!share[n])
            n = (n + 1) % s->c->nodes;
        share[n]--;
        j->shard_at[b] = (uint8_t)n;
        n = (n + 1) % s->c->nodes;
    }
}

/* What each node must reserve. The reused blocks are pinned already, at shard_at. */
static void needs(sim *s, uint32_t r, uint32_t *need) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    mr_kv_layout layout = s->c->policy->layout;
    bool at_root = layout == MR_KV_AT_ROOT || layout == MR_KV_MOVED_TO_ROOT;
    mr_kv_set members = mr_kv_members(&j->plan);
    memset(need, 0, s->c->nodes * sizeof *need);
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        size_t there = j->shard_at[b];
        if (b >= j->plan.reuse)
            need[there]++;
        if (at_root && there != root)
            need[root]++;
        if (b < j->plan.reuse && layout == MR_KV_SHARDED_CIRCLE && !(members >> there & 1))
            need[j->plan.member[b % j->plan.count]]++;
    }
    need[root] += (uint32_t)output_blocks(s, r);
}

static void pin_reused(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_set members = mr_kv_members(&j->plan);
    mr_kv_sources sources = {0};
    memset(j->read_at, NOWHERE, 2 * blocks_of(s, r));
    for (size_t b = 0; b < j->plan.reuse; b++) {
        uint32_t name = asked(s, r)->block[b];
        size_t from = mr_kv_next_source(&sources, mr_store_where(s->store, name), members);
        j->shard_at[b] = (uint8_t)from;
        mr_store_pin(s->store, from, name);
    }
}

static void unpin_reused(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t b = 0; b < j->plan.reuse; b++)
        mr_store_unpin(s->store, j->shard_at[b], asked(s, r)->block[b]);
}

/* Pins what is reused and reserves the rest, or changes nothing. */
static bool reserve_all(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    pin_reused(s, r);
    choose_homes(s, r);
    needs(s, r, j->reserved);
    for (size_t n = 0; n < s->c->nodes; n++) {
        bool ok = mr_store_reserve(s->store, n, j->reserved[n]);
        while (!ok && s->c->policy->replicas_go_first && drain(s, n))
            ok = mr_store_reserve(s->store, n, j->reserved[n]);
        if (!ok) {
            while (n--)
                mr_store_release(s->store, n, j->reserved[n]);
            unpin_reused(s, r);
            return false;
        }
    }
    return true;
}

/* Free nodes become members: the request is the first that they have. */
static void join(sim *s, uint32_t r, size_t from) {
    job *j = &s->jobs[r];
    for (size_t i = from; i < j->plan.count; i++) {
        node *d = &s->nodes[j->plan.member[i]];
        append(s, &d->queue, &d->queue_room, &d->queued, r);
        d->head = r;
        d->backlog += j->estimate;
    }
}

/* Room for the request, with its plan made anew from what is held now. */
static bool admit(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_view v = view_of(s);
    mr_kv_request q = request_of(s, r);
    if (!j->read_at) {
        j->read_at = malloc(2 * q.blocks);
        if (!j->read_at) {
            s->failed = true;
            return false;
        }
        j->shard_at = j->read_at + q.blocks;
    }
    /* the wait is over: estimates count from now */
    j->plan.count = j->base;
    for (size_t i = 0; i < j->base; i++)
        s->seen[j->plan.member[i]].backlog_ns = 0;
    s->c->policy->begin(&v, &q, &j->plan);
    bool ok = reserve_all(s, r);
    if (!ok && !s->admitted) { /* nobody will ever make room: do without what is cached */
        j->plan.reuse = 0;
        j->plan.ship = 0;
        ok = reserve_all(s, r);
    }
    if (!ok) {
        if (j->state != NO_ROOM)
            s->no_room[s->no_rooms++] = r;
        j->state = NO_ROOM;
        return false;
    }
    j->context = mr_kv_reused_tokens(&v, &q, j->plan.reuse);
    j->fresh = q.tokens - j->context;
    j->state = READY;
    s->admitted++;
    join(s, r, j->base);
    j->settled = (uint32_t)j->plan.count;
    s->result->reused_tokens += j->context;
    s->result->block_references += q.blocks;
    s->result->blocks_reused += j->plan.reuse;
    for (size_t i = 0; i < j->plan.count; i++)
        relieve(s, j->plan.member[i]);
    return true;
}

static void retry_no_room(sim *s) {
    for (size_t i = 0; i < s->no_rooms;) {
        uint32_t r = s->no_room[i];
        if (!admit(s, r)) {
            i++;
            continue;
        }
        memmove(s->no_room + i, s->no_room + i + 1, (--s->no_rooms - i) * sizeof *s->no_room);
        for (size_t m = 0; m < s->jobs[r].plan.count; m++)
            kick(s, s->jobs[r].plan.member[m]);
    }
}

/* ---- the end of a prompt ----------------------------------------------------------------------
 */

/* A replica at node n, when the policy wants it and there is room. */
static void replica(sim *s, mr_kv_view *v, size_t n, uint32_t name) {
    mr_kv_spare spare = {n, mr_store_uses(s->store, name)};
    s->seen[n].pinned = mr_store_pinned(s->store, n);
    mr_kv_keep keep = s->c->policy->keep(v, &spare);
    if (keep == MR_KV_NO || !(keep == MR_KV_KEEP ? mr_store_reserve(s->store, n, 1)
                                                 : mr_store_reserve_spare(s->store, n)))
        return;
    mr_store_fill(s->store, n, name, false);
    s->result->replica_blocks++;
}

/* Reading it all at the root takes no longer than asking anyone would: the replicas there are used.
 */
static bool reads_at_root(const sim *s, uint32_t r) {
    uint64_t ns = mr_machine_decode_attention_ns(s->c->machine, asked(s, r)->tokens);
    return ns * 1000 <= s->c->machine->layers * (2 * s->hop_ps + s->merge_ps);
}

/* Sharded: new blocks at their homes, and replicas of all that passed by, as the policy wants. */
static void settle_sharded(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    bool at_root = reads_at_root(s, r);
    mr_kv_view v = view_of(s);
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        uint32_t name = asked(s, r)->block[b];
        bool fresh = b >= j->plan.reuse, passed = fresh || !(j->plan.ship >> j->shard_at[b] & 1);
        if (fresh) {
            mr_store_fill(s->store, j->shard_at[b], name, true);
            j->reserved[j->shard_at[b]]--;
        }
        j->read_at[b] = j->shard_at[b];
        mr_kv_set where = mr_store_where(s->store, name);
        for (size_t i = 0; passed && i < j->plan.count; i++)
            if (!(where >> j->plan.member[i] & 1))
                replica(s, &v, j->plan.member[i], name);
        if (at_root && j->shard_at[b] != root && mr_store_where(s->store, name) >> root & 1) {
            mr_store_pin(s->store, root, name);
            j->read_at[b] = (uint8_t)root;
        }
    }
}

/* A ring keeps on its members what went round: what came from outside stays too. */
static void settle_circle(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_plan settled = j->plan;
    settled.count = j->settled;
    mr_kv_set members = mr_kv_members(&settled);
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        uint32_t name = asked(s, r)->block[b];
        size_t to = b >= j->plan.reuse ? j->shard_at[b] : j->plan.member[b % j->settled];
        bool came = b < j->plan.reuse && !(members >> j->shard_at[b] & 1);
        if (b >= j->plan.reuse || came) {
            mr_store_fill(s->store, to, name, true);
            j->reserved[to]--;
            if (came)
                mr_store_unpin(s->store, j->shard_at[b], name);
            j->shard_at[b] = (uint8_t)to;
        }
        j->read_at[b] = j->shard_at[b];
    }
}

/* Everything at the root, pinned once. What was fetched stays where it came from as well. */
static void settle_at_root(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        uint32_t name = asked(s, r)->block[b];
        if (b >= j->plan.reuse || j->shard_at[b] != root) {
            mr_store_fill(s->store, root, name, true);
            j->reserved[root]--;
            if (b < j->plan.reuse)
                mr_store_unpin(s->store, j->shard_at[b], name);
            j->shard_at[b] = (uint8_t)root;
        }
        j->read_at[b] = (uint8_t)root;
    }
}

/* Sharded first; then all that the root lacks moves there. */
static void begin_moving(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    uint64_t bytes[MR_KV_NODES] = {0};
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        if (b >= j->plan.reuse) {
            mr_store_fill(s->store, j->shard_at[b], asked(s, r)->block[b], true);
            j->reserved[j->shard_at[b]]--;
        }
        j->read_at[b] = j->shard_at[b];
        if (!(mr_store_where(s->store, asked(s, r)->block[b]) >> j->plan.root & 1))
            bytes[j->shard_at[b]] += s->block_wire;
    }
    j->state = MOVING;
    for (size_t n = 0; asked(s, r)->output > 1 && n < s->c->nodes; n++)
        if (bytes[n]) {
            j->moves++;
            s->result->wire.moved += bytes[n];
            transfer(s, MOVE, n, j->plan.root, bytes[n], r);
        }
}

static void moved(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    for (size_t b = 0; b < blocks_of(s, r); b++) {
        uint32_t name = asked(s, r)->block[b];
        size_t from = j->shard_at[b];
        if (from != root) {
            mr_store_fill(s->store, root, name, true);
            j->reserved[root]--;
            mr_store_unpin(s->store, from, name);
            mr_store_drop(s->store, from, name);
        }
        j->read_at[b] = j->shard_at[b] = (uint8_t)root;
    }
    decode_begins(s, r);
}

static void prompt_done(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    j->first = j->last = s->now;
    j->generated = 1;
    if (s->ttft)
        s->ttft[r] = (s->now - j->arrival) / 1000;
    switch (s->c->policy->layout) {
    case MR_KV_AT_ROOT:
        settle_at_root(s, r);
        break;
    case MR_KV_SHARDED:
        settle_sharded(s, r);
        break;
    case MR_KV_SHARDED_CIRCLE:
        settle_circle(s, r);
        break;
    case MR_KV_MOVED_TO_ROOT:
        begin_moving(s, r);
        break;
    }
    j->local_tokens = 1;
    for (size_t b = 0; b < blocks_of(s, r); b++)
        if (j->read_at[b] == j->plan.root || s->c->policy->layout == MR_KV_MOVED_TO_ROOT)
            j->local_tokens += block_tokens(s, r, b);
    if (asked(s, r)->output == 1)
        finished(s, r);
    else if (j->state == MOVING && !j->moves)
        moved(s, r);
    else if (j->state != MOVING)
        decode_begins(s, r);
}

/* ---- steps ------------------------------------------------------------------------------------
 */

/* Decode's exchange with the holders of this node's requests. */
static void ask_holders(sim *s, size_t n) {
    node *d = &s->nodes[n];
    bool circle = s->c->policy->layout == MR_KV_SHARDED_CIRCLE;
    size_t group = s->c->group ? s->c->group : s->c->nodes;
    uint64_t most = 0, sum = 0, requests = 0, hops = 0, before = n, merges = 0;
    size_t head[MR_KV_NODES];
    memset(head, 0xff, sizeof head);
    for (size_t i = 1; i < s->c->nodes; i++) {
        size_t h = (n + i) % s->c->nodes;
        uint64_t asks = d->far_requests[h];
        if (!asks)
            continue;
        uint64_t ns = mr_machine_decode_attention_ns(s->c->machine, d->far_tokens[h]);
        most = ns > most ? ns : most;
        sum += ns;
        hops++;
        requests = asks > requests ? asks : requests;
        if (s->nodes[h].running || s->nodes[h].actives || s->nodes[h].queued)
            s->nodes[h].debt += ns * 1000;
        /* queries from the root, or from the neighbour before; partials to the root, or, in
           another group, to one that sends the group's result on in fp32 */
        size_t to = n;
        if (!circle && h / group != n / group) {
            if (head[h / group] == SIZE_MAX)
                head[h / group] = h;
            to = head[h / group];
        }
        transfer(s, QUERY, circle ? before : n, h, asks * s->query_wire, (uint32_t)n);
        s->result->wire.decode += asks * s->query_wire;
        d->urgent++;
        before = h;
        if (to != h) {
            transfer(s, PARTIAL, h, to, asks * s->partial_wire, (uint32_t)n);
            s->result->wire.decode += asks * s->partial_wire;
            d->urgent++;
        }
    }
    if (!hops)
        return;
    for (size_t g = 0; g * group < s->c->nodes; g++)
        if (head[g] != SIZE_MAX) {
            transfer(s, PARTIAL, head[g], n, requests * s->wide_wire, (uint32_t)n);
            s->result->wire.decode += requests * s->wide_wire;
            d->urgent++;
            merges = 1;
        }
    /* a ring keeps all its members busy only with as many queries as members */
    uint64_t turns = requests < hops ? requests : hops;
    if (circle && sum / turns > most)
        most = sum / turns;
    d->far = most * 1000 + s->c->machine->layers * ((circle ? hops + 1 : 2 + merges) * s->hop_ps +
                                                    (circle ? 0 : (1 + merges) * s->merge_ps));
}

static void try_end(sim *s, size_t n) {
    node *d = &s->nodes[n];
    if (d->bulk || d->urgent || !d->running || d->end != UINT64_MAX)
        return;
    uint64_t c = d->compute, b = d->bulk_at > d->start ? d->bulk_at - d->start : 0;
    if (b) /* every layer waits for one exchange, in a ring for one after the other */
        b += s->c->machine->layers * s->hop_ps *
             (s->c->policy->exchange == MR_KV_CIRCLE ? s->jobs[d->part].plan.count - 1 : 1);
    uint64_t end = d->start + (c > b ? c : b) + (c > b ? b : c) / s->c->machine->layers;
    if (d->part != NONE && s->jobs[d->part].last_step) {
        const job *j = &s->jobs[d->part];
        if (j->pulls)
            return;
        uint64_t pulled = j->pulled_at + c / s->c->machine->layers;
        end = j->pulled_at && pulled > end ? pulled : end;
    }
    if (d->far) {
        uint64_t x = d->far + (d->query_at - d->start);
        x += d->partial_at > d->start ? d->partial_at - d->start : 0;
        end += x > d->hidden ? x - d->hidden : 0;
    }
    d->end = end > s->now ? end : s->now;
}

/* Starts a step of node n: its decoding requests, and `tokens` of request `part` or none. */
static void begin_step(sim *s, size_t n, uint32_t part, uint64_t tokens, uint64_t attention_ns) {
    node *d = &s->nodes[n];
    uint64_t sampled = d->actives;
    if (part != NONE && s->jobs[part].last_step && s->jobs[part].plan.root == n)
        sampled++;
    uint64_t hidden = mr_machine_decode_attention_ns(s->c->machine, d->local_tokens);
    uint64_t ns = mr_machine_step_ns(s->c->machine, tokens + d->actives, sampled);
    if (s->c->machine->degree > 1) {
        const mr_machine *m = s->c->machine;
        /* two all-reduces a layer; each of the GPUs sends 2 (T-1)/T of the activations */
        uint64_t token =
            4 * (m->degree - 1) * m->layers *
            framed(m->hidden * m->value_bytes, s->c->frame_payload, s->c->frame_overhead);
        s->result->wire.reduced += tokens * token;
        s->result->wire.decode += d->actives * token;
    }
    d->running = true;
    d->held = false;
    d->start = s->now;
    d->end = UINT64_MAX;
    d->part = part;
    d->stepping = (uint32_t)d->actives;
    d->compute = (ns + attention_ns + hidden) * 1000 + d->debt;
    d->hidden = hidden * 1000;
    d->debt = d->far = 0;
    d->bulk_at = d->query_at = d->partial_at = 0;
    d->bulk = d->urgent = 0;
    if (d->actives)
        ask_holders(s, n);
}

/* Bytes among the members for `tokens` new tokens; counted in the steps that wait for them. */
static void exchange(sim *s, const job *j, uint64_t tokens) {
    size_t k = j->plan.count;
    uint64_t share = tokens * s->token_wire / k;
    bool circle = s->c->policy->exchange == MR_KV_CIRCLE;
    if (k == 1 || !share)
        return;
    for (size_t i = 0; i < k; i++)
        for (size_t o = 1; o < (circle ? 2 : k); o++) {
            size_t from = j->plan.member[i], to = j->plan.member[(i + o) % k];
            uint64_t bytes = circle ? share * (k - 1) : share;
            s->nodes[to].bulk++;
            s->result->wire.exchange += bytes;
            transfer(s, EXCHANGE, from, to, bytes, (uint32_t)to);
        }
}

/* Queries of the prompt to the holders, partials back, and the holders' work. */
static void ship(sim *s, uint32_t r, uint64_t tokens) {
    job *j = &s->jobs[r];
    size_t k = j->plan.count;
    uint64_t keys[MR_KV_NODES] = {0}, share = (tokens + k - 1) / k, slowest = 0;
    mr_kv_set members = mr_kv_members(&j->plan);
    for (size_t b = 0; b < j->plan.reuse; b++) {
        size_t h = j->shard_at[b];
        if (j->plan.ship >> h & 1)
            keys[h] += block_tokens(s, r, b);
    }
    for (size_t h = 0; h < s->c->nodes; h++) {
        if (!keys[h])
            continue;
        uint64_t ns = mr_machine_cross_attention_ns(s->c->machine, tokens, keys[h]);
        slowest = ns > slowest ? ns : slowest;
        if (members >> h & 1)
            s->nodes[h].compute += ns * 1000;
        else if (s->nodes[h].running || s->nodes[h].actives || s->nodes[h].queued)
            s->nodes[h].debt += ns * 1000;
        for (size_t i = 0; i < k; i++) {
            size_t m = j->plan.member[i];
            if (m == h)
                continue;
            s->nodes[m].bulk += 2;
            s->result->wire.shipped += share * (s->query_wire + s->partial_wire);
            transfer(s, EXCHANGE, m, h, share * s->query_wire, (uint32_t)m);
            transfer(s, EXCHANGE, h, m, share * s->partial_wire, (uint32_t)m);
        }
    }
    for (size_t i = 0; i < k; i++) /* a member without keys of its own waits for the slowest */
        if (s->nodes[j->plan.member[i]].compute < slowest * 1000)
            s->nodes[j->plan.member[i]].compute = slowest * 1000;
}

static void pull(sim *s, uint32_t r, size_t from, size_t to, uint64_t bytes) {
    s->jobs[r].pulls++;
    s->result->wire.pulled += bytes;
    transfer(s, PULL, from, to, bytes, r);
}

static void pull_gather(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t i = 0; i < j->plan.count; i++) {
        size_t m = j->plan.member[i];
        uint64_t from[MR_KV_NODES] = {0};
        for (size_t b = 0; b < j->plan.reuse; b++) {
            mr_kv_set where = mr_store_where(s->store, asked(s, r)->block[b]);
            if (!(where >> m & 1) && !(j->plan.ship >> j->shard_at[b] & 1))
                from[j->shard_at[b]] += s->block_wire;
        }
        for (size_t n = 0; n < s->c->nodes; n++)
            if (from[n])
                pull(s, r, n, m, from[n]);
    }
}

static void pull_circle(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t k = j->plan.count;
    mr_kv_set members = mr_kv_members(&j->plan);
    for (size_t b = 0; b < j->plan.reuse; b++)
        if (!(members >> j->shard_at[b] & 1))
            pull(s, r, j->shard_at[b], j->plan.member[b % k], s->block_wire);
    uint64_t kv = j->plan.reuse * s->block_wire;
    uint64_t q = j->fresh * (s->query_wire + s->partial_wire);
    uint64_t bytes = (kv < q ? kv : q) * (k - 1) / k;
    for (size_t i = 0; bytes && i < k; i++)
        pull(s, r, j->plan.member[i], j->plan.member[(i + 1) % k], bytes);
}

/* Replicas ahead of use, in the time in which the links would be idle behind the computing. */
static void spread(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    if (j->plan.prompt_ns <= j->plan.wire_ns)
        return;
    uint64_t budget = (j->plan.prompt_ns - j->plan.wire_ns) * 1000 / s->c->byte_ps;
    mr_kv_view v = view_of(s);
    for (size_t b = 0; b < j->plan.reuse && budget >= s->block_wire; b++) {
        uint32_t name = asked(s, r)->block[b];
        mr_kv_set where = mr_store_where(s->store, name);
        size_t to = s->c->policy->spread(&v, where, mr_store_uses(s->store, name));
        if (to >= s->c->nodes)
            continue;
        budget -= s->block_wire;
        s->result->wire.spread += s->block_wire;
        transfer(s, SPREAD, j->shard_at[b], to, s->block_wire, name);
    }
}

/* New blocks that others keep leave while they are computed. */
static void send_home(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_set members = mr_kv_members(&j->plan);
    uint64_t to[MR_KV_NODES] = {0};
    for (size_t b = j->plan.reuse; b < blocks_of(s, r); b++)
        if (!(members >> j->shard_at[b] & 1))
            to[j->shard_at[b]] += s->block_wire;
    for (size_t n = 0; n < s->c->nodes; n++)
        if (to[n]) {
            j->pulls++;
            s->result->wire.placed += to[n];
            transfer(s, PULL, j->plan.member[n % j->plan.count], n, to[n], r);
        }
}

static void begin_prompt(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    j->state = RUNNING;
    s->waiting--;
    s->member_sum += j->plan.count;
    for (size_t b = 0; b < j->plan.reuse; b++)
        if (j->plan.ship >> j->shard_at[b] & 1)
            j->shipped_tokens += block_tokens(s, r, b);
    if (s->c->policy->exchange == MR_KV_CIRCLE)
        pull_circle(s, r);
    else
        pull_gather(s, r);
    send_home(s, r);
    spread(s, r);
}

/*
 * How many tokens each member computes in the next part: shares that end together, so fewer where
 * more decoding goes along.
 */
static uint64_t part_tokens(const sim *s, uint32_t r, uint64_t *tokens) {
    const job *j = &s->jobs[r];
    const mr_machine *m = s->c->machine;
    size_t k = j->plan.count;
    uint64_t left = j->fresh - j->done, sum = 0;
    int64_t most = (int64_t)s->step_tokens, late[MR_KV_NODES], mean = 0;
    int64_t token_ns = (int64_t)(mr_machine_step_ns(m, s->step_tokens, 0) / s->step_tokens) + 1;
    for (size_t i = 0; i < k; i++) {
        const node *d = &s->nodes[j->plan.member[i]];
        late[i] = (int64_t)(mr_machine_decode_attention_ns(m, d->local_tokens) + d->debt / 1000);
        late[i] += (int64_t)d->actives * token_ns;
        mean += late[i] / (int64_t)k;
    }
    for (size_t i = 0; i < k; i++) {
        int64_t room = most - (int64_t)s->nodes[j->plan.member[i]].actives;
        int64_t share = (int64_t)((left + k - 1) / k);
        if (share > most)
            share = most;
        if (k > 1)
            share += (mean - late[i]) / token_ns;
        share = share < 0 ? 0 : share > room ? room : share;
        tokens[i] = (uint64_t)share > left - sum ? left - sum : (uint64_t)share;
        sum += tokens[i];
    }
    if (!sum) /* all are late alike */
        sum = tokens[0] = 1;
    return sum;
}

/* Free nodes join for the next part; what was computed before it is sent to them. */
static void recruit(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t before = j->plan.count;
    uint64_t context = j->context + j->done + j->now_tokens;
    mr_kv_view v = view_of(s);
    if (!v.free)
        return;
    s->c->policy->grow(&v, j->fresh - j->done - j->now_tokens, context, &j->plan);
    join(s, r, before);
    s->member_sum += j->plan.count - before;
    for (size_t i = before; i < j->plan.count; i++) {
        for (size_t from = 0; from < before; from++)
            pull(s, r, j->plan.member[from], j->plan.member[i], context * s->token_wire / before);
        kick(s, j->plan.member[i]);
    }
}

/* All members are here: the next part of the prompt. */
static void begin_part(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t k = j->plan.count;
    if (j->state == READY)
        begin_prompt(s, r);
    uint64_t left = j->fresh - j->done, tokens[MR_KV_NODES], sum = part_tokens(s, r, tokens);
    j->now_tokens = (uint32_t)sum;
    j->last_step = sum == left;
    j->left = (uint32_t)k;
    j->ready = 0;
    uint64_t shipped = j->shipped_tokens < j->context ? j->shipped_tokens : j->context;
    uint64_t attention =
        mr_machine_prompt_attention_ns(s->c->machine, sum, j->context - shipped + j->done, k);
    for (size_t i = 0; i < k; i++)
        begin_step(s, j->plan.member[i], r, tokens[i], attention);
    exchange(s, j, sum);
    if (shipped)
        ship(s, r, sum);
    if (!j->last_step)
        recruit(s, r);
    for (size_t i = 0; i < k; i++)
        try_end(s, j->plan.member[i]);
}

/* ---- queues -----------------------------------------------------------------------------------
 */

/* A request became the first of node n's queue. */
static void new_head(sim *s, size_t n) {
    node *d = &s->nodes[n];
    if (!d->queued || d->queue[0] == d->head)
        return;
    d->head = d->queue[0];
    job *j = &s->jobs[d->head];
    if (++j->heads < j->base || j->state != QUEUED || !admit(s, d->head))
        return;
    for (size_t i = 0; i < j->plan.count; i++)
        if (j->plan.member[i] != n)
            kick(s, j->plan.member[i]);
}

/* The first request of a queue whose prompt has not begun and that waits for this node alone. */
static uint32_t first_waiting(const sim *s, size_t n) {
    const node *d = &s->nodes[n];
    for (size_t i = 0; i < d->queued; i++) {
        const job *j = &s->jobs[d->queue[i]];
        if ((j->state == QUEUED || j->state == NO_ROOM) && j->base == 1)
            return d->queue[i];
    }
    return NONE;
}

/* How long the first waiting request of node m will wait for the prompt that runs there, less what
   fetching its prefix elsewhere may take. */
static bool worth_taking(sim *s, size_t m, uint32_t r) {
    const node *d = &s->nodes[m];
    const job *first = &s->jobs[d->queue[0]];
    if (d->queue[0] == r) /* it has no room there */
        return true;
    double left = 1 - (first->fresh ? (double)first->done / (double)first->fresh : 0);
    size_t hit = request_of(s, r).hit;
    return (double)first->estimate * left > (double)(hit * s->block_wire * s->c->byte_ps);
}

/*
 * Before a node begins its next prompt: an older request that waits for another node goes first,
 * unless that one will begin it sooner than its prefix could be fetched.
 */
static void take_over(sim *s, size_t n) {
    uint32_t r = s->nodes[n].queued ? s->nodes[n].queue[0] : NONE, own = r;
    for (size_t m = 0; m < s->c->nodes; m++) {
        uint32_t first = m == n ? NONE : first_waiting(s, m);
        if (first < r && worth_taking(s, m, first))
            r = first;
    }
    if (r == own ||
        mr_store_pinned(s->store, n) + blocks_of(s, r) + output_blocks(s, r) > s->c->capacity)
        return;
    job *j = &s->jobs[r];
    size_t from = j->plan.member[0];
    node *a = &s->nodes[from], *b = &s->nodes[n];
    take_out(a->queue, &a->queued, r);
    a->backlog -= j->estimate;
    if (j->state == NO_ROOM)
        take_out(s->no_room, &s->no_rooms, r);
    j->state = QUEUED;
    j->heads = 0;
    j->plan.member[0] = j->plan.root = (uint8_t)n;
    append(s, &b->queue, &b->queue_room, &b->queued, r);
    if (s->failed)
        return;
    memmove(b->queue + 1, b->queue, (b->queued - 1) * sizeof *b->queue);
    b->queue[0] = r;
    b->backlog += j->estimate;
    if (a->head == r) {
        a->head = NONE;
        kick(s, from);
    }
}

/* How long until the last member of a request comes, by what is known of the steps that run. */
static uint64_t wait_for(const sim *s, const job *j) {
    uint64_t last = s->now;
    for (size_t i = 0; i < j->plan.count; i++) {
        const node *d = &s->nodes[j->plan.member[i]];
        uint64_t end = d->end == UINT64_MAX ? d->start + d->compute : d->end;
        if (d->running && end > last)
            last = end;
    }
    return last - s->now;
}

/* A decode step, if it is likely to be over within `gap`. */
static bool fill_gap(sim *s, size_t n, uint64_t gap) {
    node *d = &s->nodes[n];
    const mr_machine *m = s->c->machine;
    uint64_t base = mr_machine_decode_attention_ns(m, d->local_tokens) * 1000 + d->debt;
    uint64_t decode = base + mr_machine_step_ns(m, d->actives, d->actives) * 1000;
    if (!d->actives || decode > gap)
        return false;
    begin_step(s, n, NONE, 0, 0);
    try_end(s, n);
    return true;
}

static void kick(sim *s, size_t n) {
    node *d = &s->nodes[n];
    if (d->running || d->held)
        return;
    if (d->head == NONE && s->waiting)
        take_over(s, n);
    new_head(s, n);
    if (d->running || d->held)
        return;
    if (d->queued) {
        job *j = &s->jobs[d->queue[0]];
        if (j->state == READY || j->state == RUNNING) {
            uint64_t gap = wait_for(s, j);
            if (gap && fill_gap(s, n, gap))
                return;
            d->held = true;
            if (++j->ready == j->plan.count)
                begin_part(s, d->queue[0]);
            return;
        }
    }
    if (d->actives) {
        begin_step(s, n, NONE, 0, 0);
        try_end(s, n);
    }
}

static void count_gap(sim *s, uint64_t ps) {
    double x = (double)ps / 1e6; /* microseconds */
    int bin = x > 1 ? (int)(log2(x) * OCTAVE) : 0;
    s->gaps[bin < BINS ? bin : BINS - 1]++;
    s->gap_sum += (double)ps * 1e-12;
    s->result->decode_tokens++;
}

/* One token for each request of the step; those that have their last one are put in s->ended. */
static size_t decode_tokens(sim *s, size_t n) {
    node *d = &s->nodes[n];
    size_t kept = 0, ends = 0, all = d->actives;
    for (size_t i = 0; i < all; i++) {
        uint32_t r = d->active[i];
        job *j = &s->jobs[r];
        if (i >= d->stepping) {
            d->active[kept++] = r; /* came while the step ran */
            continue;
        }
        count_gap(s, s->now - j->last);
        j->last = s->now;
        j->local_tokens++;
        d->local_tokens++;
        if (++j->generated < asked(s, r)->output) {
            d->active[kept++] = r;
        } else {
            count_reads(s, r, false);
            s->ended[ends++] = r;
        }
    }
    d->actives = kept;
    while (d->lates && d->actives < s->c->step_requests) {
        uint32_t r = d->late[0];
        take_out(d->late, &d->lates, r);
        append(s, &d->active, &d->active_room, &d->actives, r);
        count_reads(s, r, true);
    }
    return ends;
}

static void end_part(sim *s, size_t n, uint32_t r) {
    node *d = &s->nodes[n];
    job *j = &s->jobs[r];
    if (j->last_step) {
        take_out(d->queue, &d->queued, r);
        d->backlog -= j->estimate;
        if (d->head == r)
            d->head = NONE;
    }
    if (--j->left)
        return;
    j->done += j->now_tokens;
    if (j->last_step)
        prompt_done(s, r);
}

static void end_step(sim *s, size_t n) {
    node *d = &s->nodes[n];
    d->busy += s->now - d->start;
    size_t ends = decode_tokens(s, n);
    d->running = false;
    d->end = UINT64_MAX;
    d->held = true; /* nothing starts here before this is over */
    for (size_t i = 0; i < ends; i++)
        finished(s, s->ended[i]);
    if (d->part != NONE)
        end_part(s, n, d->part);
    d->held = false;
    kick(s, n);
}

/* ---- arrivals ---------------------------------------------------------------------------------
 */

static void arrive(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    if (r + 1 == s->c->requests)
        s->result->wire_before_last = s->result->wire;
    j->arrival = s->now;
    s->result->prompt_tokens += asked(s, r)->tokens;
    for (size_t b = 0; b < blocks_of(s, r); b++)
        mr_store_use(s->store, asked(s, r)->block[b]);
    mr_kv_view v = view_of(s);
    mr_kv_request q = request_of(s, r);
    if (!s->c->policy->place(&v, &q, &j->plan)) {
        j->state = REFUSED;
        s->result->refused++;
        return;
    }
    s->waiting++;
    j->base = (uint32_t)j->plan.count;
    j->estimate = j->plan.duration_ns * 1000;
    for (size_t i = 0; i < j->plan.count; i++) {
        node *d = &s->nodes[j->plan.member[i]];
        append(s, &d->queue, &d->queue_room, &d->queued, r);
        d->backlog += j->estimate;
    }
    for (size_t i = 0; i < j->plan.count && !s->failed; i++)
        kick(s, j->plan.member[i]);
    /* those in the middle of a step have a new first one all the same */
    for (size_t i = 0; i < j->plan.count && !s->failed; i++)
        new_head(s, j->plan.member[i]);
}

static void delivered(sim *s, const mr_net_delivery *m) {
    flow *f = &s->flows[m->tag];
    f->left -= f->sending;
    bool bulk = f->purpose != QUERY && f->purpose != PARTIAL;
    if (bulk) {
        s->nodes[f->src].out_bytes -= f->sending;
        s->nodes[f->dst].in_bytes -= f->sending;
    }
    if (f->left) {
        send_next(s, (uint32_t)m->tag);
        return;
    }
    flow over = *f;
    f->next = s->unused_flow;
    s->unused_flow = (uint32_t)m->tag;
    uint32_t i = over.index;
    switch (over.purpose) {
    case EXCHANGE:
        s->nodes[i].bulk--;
        s->nodes[i].bulk_at = s->now;
        try_end(s, i);
        break;
    case QUERY:
        s->nodes[i].urgent--;
        s->nodes[i].query_at = s->now;
        try_end(s, i);
        break;
    case PARTIAL:
        s->nodes[i].urgent--;
        s->nodes[i].partial_at = s->now;
        try_end(s, i);
        break;
    case PULL:
        s->jobs[i].pulls--;
        s->jobs[i].pulled_at = s->now;
        for (size_t k = 0; !s->jobs[i].pulls && k < s->jobs[i].plan.count; k++)
            if (s->nodes[s->jobs[i].plan.member[k]].part == i)
                try_end(s, s->jobs[i].plan.member[k]);
        break;
    case MOVE:
        if (--s->jobs[i].moves == 0)
            moved(s, i);
        break;
    case SPREAD: {
        mr_kv_view v = view_of(s);
        replica(s, &v, over.dst, i);
        break;
    }
    }
}

/* ---- life -------------------------------------------------------------------------------------
 */

static double share_of(const double *sorted, size_t n, double share) {
    size_t i = (size_t)ceil(share * (double)n);
    return n ? sorted[i ? i - 1 : 0] : 0;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool summarise(sim *s) {
    mr_cluster_result *o = s->result;
    double *t = malloc((s->c->requests + 1) * sizeof *t), sum = 0;
    size_t n = 0;
    if (!t)
        return false;
    for (size_t r = 0; r < s->c->requests; r++)
        if (s->jobs[r].state == DONE)
            sum += t[n++] = (double)(s->jobs[r].first - s->jobs[r].arrival) * 1e-12;
    qsort(t, n, sizeof *t, by_value);
    o->ttft_mean_s = n ? sum / (double)n : 0;
    o->ttft_p50_s = share_of(t, n, 0.5);
    o->ttft_p99_s = share_of(t, n, 0.99);
    free(t);
    uint64_t seen = 0, want = (uint64_t)ceil(0.99 * (double)o->decode_tokens);
    int bin = 0;
    while (bin < BINS - 1 && (seen += s->gaps[bin]) < want)
        bin++;
    o->itl_p99_s = o->decode_tokens ? exp2((bin + 0.5) / OCTAVE) * 1e-6 : 0;
    o->itl_mean_s = o->decode_tokens ? s->gap_sum / (double)o->decode_tokens : 0;
    o->seconds = (double)(s->now - s->first_arrival) * 1e-12;
    o->members_mean = n ? (double)s->member_sum / (double)n : 0;
    uint64_t busy = 0;
    for (size_t i = 0; i < s->c->nodes; i++) {
        mr_net_count c = mr_net_counters(s->net, i);
        o->sent_bytes += c.sent_bytes;
        o->received_bytes += c.received_bytes;
        uint64_t peak = mr_store_peak(s->store, i);
        o->peak_blocks = peak > o->peak_blocks ? peak : o->peak_blocks;
        busy += s->nodes[i].busy;
    }
    o->busy_share = o->seconds > 0 ? (double)busy * 1e-12 / o->seconds / (double)s->c->nodes : 0;
    o->evictions = mr_store_evictions(s->store);
    return true;
}

/* Network first, then steps by node, then arrivals. */
static bool loop(sim *s, const volatile int *stop) {
    size_t next = 0;
    for (uint64_t turn = 0; !s->failed; turn++) {
        if (stop && *stop && turn % 4096 == 0)
            return false;
        uint64_t t = UINT64_MAX, net = UINT64_MAX, at;
        size_t n = s->c->nodes;
        mr_net_next(s->net, &net);
        for (size_t i = 0; i < s->c->nodes; i++)
            if (s->nodes[i].running && s->nodes[i].end < t) {
                t = s->nodes[i].end;
                n = i;
            }
        at = next < s->c->requests
                 ? (uint64_t)((double)s->c->request[next].arrival_ns * 1000 / s->c->load)
                 : UINT64_MAX;
        if (net <= t && net <= at) {
            mr_net_delivery m;
            if (net == UINT64_MAX)
                return true;
            if (mr_net_poll(s->net, t < at ? t : at, &m)) {
                s->now = m.time;
                delivered(s, &m);
            }
        } else if (t <= at) {
            s->now = t;
            end_step(s, n);
        } else {
            s->now = at;
            if (!next)
                s->first_arrival = at;
            arrive(s, (uint32_t)next++);
        }
    }
    return false;
}

static void clean(sim *s) {
    for (size_t n = 0; s->nodes && n < s->c->nodes; n++) {
        free(s->nodes[n].queue);
        free(s->nodes[n].active);
        free(s->nodes[n].late);
    }
    for (size_t r = 0; s->jobs && r < s->c->requests; r++)
        free(s->jobs[r].read_at);
    free(s->nodes);
    free(s->jobs);
    free(s->flows);
    free(s->no_room);
    free(s->seen);
    free(s->where);
    free(s->uses);
    free(s->gaps);
    free(s->ended);
    mr_net_destroy(s->net);
    mr_store_destroy(s->store);
}

static bool prepare(sim *s) {
    const mr_cluster_config *c = s->c;
    const mr_machine *m = c->machine;
    uint64_t vector = m->query_heads * m->head_dim;
    s->step_tokens = mr_machine_best_step(m);
    if (s->step_tokens <= c->step_requests)
        s->step_tokens = m->step_tokens;
    s->block_wire =
        framed(c->block_tokens * mr_machine_kv_bytes(m), c->kv_payload, c->frame_overhead);
    s->token_wire = s->block_wire / c->block_tokens;
    s->query_wire =
        m->layers * framed(vector * m->value_bytes, c->frame_payload, c->frame_overhead);
    s->partial_wire = m->layers * framed(vector * m->value_bytes + 8 * m->query_heads,
                                         c->frame_payload, c->frame_overhead);
    s->wide_wire =
        m->layers * framed(vector * 4 + 8 * m->query_heads, c->frame_payload, c->frame_overhead);
    s->hop_ps = (2 * c->link_ns + c->switch_ns + c->host_ns + c->route_ns) * 1000;
    s->merge_ps = c->merge_ns * 1000;
    s->costs = (mr_kv_costs){.block_tokens = c->block_tokens,
                             .block_bytes = s->block_wire,
                             .query_bytes = s->query_wire,
                             .partial_bytes = s->partial_wire,
                             .byte_ps = c->byte_ps,
                             .layers = m->layers,
                             .hop_ns = s->hop_ps / 1000,
                             .prompt_ns = prompt_cost,
                             .ship_ns = ship_cost,
                             .machine = s};
    size_t most = 1;
    for (size_t r = 0; r < c->requests; r++)
        if (blocks_of(s, (uint32_t)r) > most)
            most = blocks_of(s, (uint32_t)r);
    mr_net_config net = {
        .endpoints = c->nodes,
        .group = c->group,
        .host = {1, (uint32_t)c->byte_ps, c->link_ns * 1000},
        .trunk = {(uint32_t)c->trunk_bytes, (uint32_t)c->trunk_ps, c->link_ns * 1000},
        .switch_latency = c->switch_ns * 1000,
        .cut_through = true,
        .cut_bytes = (uint32_t)(c->frame_payload + c->frame_overhead)};
    s->net = mr_net_create(&net);
    s->store = mr_store_create(c->nodes, c->blocks, c->capacity, c->policy->replicas_go_first);
    s->jobs = calloc(c->requests + 1, sizeof *s->jobs);
    s->nodes = calloc(c->nodes, sizeof *s->nodes);
    s->no_room = malloc((c->requests + 1) * sizeof *s->no_room);
    s->seen = calloc(c->nodes, sizeof *s->seen);
    s->where = malloc(most * sizeof *s->where);
    s->uses = malloc(most * sizeof *s->uses);
    s->gaps = calloc(BINS, sizeof *s->gaps);
    s->ended = malloc(c->step_requests * sizeof *s->ended);
    s->unused_flow = NONE;
    if (!s->net || !s->store || !s->jobs || !s->nodes || !s->no_room || !s->seen || !s->where ||
        !s->uses || !s->gaps || !s->ended)
        return false;
    for (size_t n = 0; n < c->nodes; n++) {
        s->nodes[n].head = s->nodes[n].part = NONE;
        s->nodes[n].end = UINT64_MAX;
    }
    return true;
}

const char *mr_cluster_config_error(const mr_cluster_config *c) {
    if (c->nodes < 1 || c->nodes > MR_KV_NODES)
        return "nodes: must be 1 to 64";
    if (!c->machine || !c->policy)
        return "machine and policy: must be there";
    if (c->machine->step_tokens < 1 || c->machine->step_tokens > MR_MACHINE_TOKENS)
        return "step_tokens: must be 1 to 2048";
    if (c->step_requests < 1 || c->step_requests >= c->machine->step_tokens)
        return "step_requests: must be 1 or more and below step_tokens";
    if (!c->block_tokens || !c->capacity || c->capacity > UINT32_MAX)
        return "block_tokens and capacity: must be at least 1";
    if (!c->byte_ps || c->byte_ps > UINT32_MAX)
        return "byte_ps: must be 1 to 2^32-1";
    if (!c->frame_payload || !c->kv_payload)
        return "frame_payload and kv_payload: must be at least 1";
    if (!(c->load > 0))
        return "load: must be above 0";
    for (size_t r = 0; r < c->requests; r++) {
        if (!c->request[r].tokens || !c->request[r].output)
            return "request: tokens and output must be at least 1";
        if (r && c->request[r].arrival_ns < c->request[r - 1].arrival_ns)
            return "request: arrivals must be in order";
    }
    return NULL;
}

bool mr_cluster_run(const mr_cluster_config *config, const volatile int *stop,
                    mr_cluster_result *result, uint64_t *ttft_ns) {
    *result = (mr_cluster_result){0};
    sim s = {.c = config, .result = result, .ttft = ttft_ns};
    for (size_t r = 0; ttft_ns && r < config->requests; r++)
        ttft_ns[r] = UINT64_MAX;
    bool ok = !mr_cluster_config_error(config) && prepare(&s) && loop(&s, stop) && !s.failed &&
              summarise(&s);
    clean(&s);
    return ok;
}
