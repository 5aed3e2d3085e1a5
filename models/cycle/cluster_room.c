/* SPDX-License-Identifier: Apache-2.0 */
/* Where blocks are: room before a prompt begins, what stays after it, and what decode reads. */
#include "models/cycle/cluster_sim.h"

#include <stdlib.h>

static void retry_no_room(sim *s);

/* ---- decode's tables --------------------------------------------------------------------------
 */

/* What request r reads in a decode step, added to its root's sums or taken away. */
void mr_sim_count_reads(sim *s, uint32_t r, bool add) {
    job *j = &s->jobs[r];
    node *root = &s->nodes[j->plan.root];
    mr_kv_set far = 0;
    uint64_t tokens[MR_KV_NODES];
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        size_t h = j->read_at[b];
        if (h == j->plan.root)
            continue;
        if (!(far >> h & 1)) {
            far |= (mr_kv_set)1 << h;
            tokens[h] = 0;
        }
        tokens[h] += mr_sim_block_tokens(s, r, b);
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
        mr_sim_append(s, &n->active, &n->active_room, &n->actives, r);
        mr_sim_count_reads(s, r, true);
    } else
        mr_sim_append(s, &n->late, &n->late_room, &n->lates, r);
    mr_sim_kick(s, j->plan.root);
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
        mr_sim_count_reads(s, r, false);
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++)
        if (j->read_at[b] == root && j->shard_at[b] != root) {
            mr_store_unpin(s->store, root, mr_sim_asked(s, r)->block[b]);
            j->read_at[b] = j->shard_at[b];
            j->local_tokens -= mr_sim_block_tokens(s, r, b);
            s->result->drained_blocks++;
        }
    if (active)
        mr_sim_count_reads(s, r, true);
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
    mr_kv_view v = mr_sim_view_of(s);
    while (s->c->policy->drain(&v, n) && drain(s, n))
        s->seen[n].pinned = mr_store_pinned(s->store, n);
}

void mr_sim_finished(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
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
    s->result->output_tokens += mr_sim_asked(s, r)->output;
    retry_no_room(s);
}

/* ---- room for a prompt ------------------------------------------------------------------------
 */

/* The homes of the new blocks, in turn, so that neighbours in the prompt are on different nodes. */
static void choose_homes(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_view v = mr_sim_view_of(s);
    mr_kv_request q = mr_sim_request_of(s, r);
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
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        size_t there = j->shard_at[b];
        if (b >= j->plan.reuse)
            need[there]++;
        if (at_root && there != root)
            need[root]++;
        if (b < j->plan.reuse && layout == MR_KV_SHARDED_CIRCLE && !(members >> there & 1))
            need[j->plan.member[b % j->plan.count]]++;
    }
    need[root] += (uint32_t)mr_sim_output_blocks(s, r);
}

static void pin_reused(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_set members = mr_kv_members(&j->plan);
    mr_kv_sources sources = {0};
    memset(j->read_at, NOWHERE, 2 * mr_sim_blocks_of(s, r));
    for (size_t b = 0; b < j->plan.reuse; b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
        size_t from = mr_kv_next_source(&sources, mr_store_where(s->store, name), members);
        j->shard_at[b] = (uint8_t)from;
        mr_store_pin(s->store, from, name);
    }
}

static void unpin_reused(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t b = 0; b < j->plan.reuse; b++)
        mr_store_unpin(s->store, j->shard_at[b], mr_sim_asked(s, r)->block[b]);
}

/*
 * What a member of a sharded prompt must hold besides its own until the prompt has ended: what it
 * pulls, what the other members compute, and what others keep. A prompt that no node could hold in
 * this way passes layer by layer, and a layer is not counted.
 */
static void works_with(sim *s, uint32_t r, uint32_t *working) {
    job *j = &s->jobs[r];
    size_t blocks = mr_sim_blocks_of(s, r);
    memset(working, 0, s->c->nodes * sizeof *working);
    if (s->c->policy->layout != MR_KV_SHARDED ||
        blocks + mr_sim_output_blocks(s, r) > s->c->capacity)
        return;
    for (size_t i = 0; i < j->plan.count; i++) {
        size_t m = j->plan.member[i];
        for (size_t b = 0; b < blocks; b++) {
            bool here = j->shard_at[b] == m ||
                        mr_store_where(s->store, mr_sim_asked(s, r)->block[b]) >> m & 1;
            bool shipped = b < j->plan.reuse && j->plan.ship >> j->shard_at[b] & 1;
            working[m] += !here && !shipped;
        }
    }
}

/* Pins what is reused and reserves the rest, or changes nothing. */
static bool reserve_all(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    pin_reused(s, r);
    choose_homes(s, r);
    needs(s, r, j->reserved);
    works_with(s, r, j->working);
    for (size_t n = 0; n < s->c->nodes; n++) {
        bool ok = mr_store_reserve(s->store, n, j->reserved[n] + j->working[n]);
        while (!ok && drain(s, n))
            ok = mr_store_reserve(s->store, n, j->reserved[n] + j->working[n]);
        if (!ok) {
            while (n--)
                mr_store_release(s->store, n, j->reserved[n] + j->working[n]);
            unpin_reused(s, r);
            return false;
        }
    }
    return true;
}

/* Free nodes become members: the request is the first that they have. */
void mr_sim_join(sim *s, uint32_t r, size_t from) {
    job *j = &s->jobs[r];
    for (size_t i = from; i < j->plan.count; i++) {
        node *d = &s->nodes[j->plan.member[i]];
        mr_sim_append(s, &d->queue, &d->queue_room, &d->queued, r);
        d->head = r;
        d->backlog += j->estimate;
    }
}

/* Room for the request, with its plan made anew from what is held now. */
bool mr_sim_admit(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_view v = mr_sim_view_of(s);
    mr_kv_request q = mr_sim_request_of(s, r);
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
    mr_sim_join(s, r, j->base);
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
        if (!mr_sim_admit(s, r)) {
            i++;
            continue;
        }
        memmove(s->no_room + i, s->no_room + i + 1, (--s->no_rooms - i) * sizeof *s->no_room);
        for (size_t m = 0; m < s->jobs[r].plan.count; m++)
            mr_sim_kick(s, s->jobs[r].plan.member[m]);
    }
}

/* ---- the end of a prompt ----------------------------------------------------------------------
 */

/* A replica at node n, when the policy wants it and there is room. */
void mr_sim_replica(sim *s, mr_kv_view *v, size_t n, uint32_t name) {
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
    uint64_t ns = mr_machine_decode_attention_ns(s->c->machine, mr_sim_asked(s, r)->tokens);
    return ns * 1000 <= s->c->machine->layers * (2 * s->hop_ps + s->merge_ps);
}

/* Sharded: new blocks at their homes, and replicas of all that passed by, as the policy wants. */
static void settle_sharded(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    bool at_root = reads_at_root(s, r);
    mr_kv_view v = mr_sim_view_of(s);
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
        bool fresh = b >= j->plan.reuse, passed = fresh || !(j->plan.ship >> j->shard_at[b] & 1);
        if (fresh) {
            mr_store_fill(s->store, j->shard_at[b], name, true);
            j->reserved[j->shard_at[b]]--;
        }
        j->read_at[b] = j->shard_at[b];
        mr_kv_set where = mr_store_where(s->store, name);
        for (size_t i = 0; passed && i < j->plan.count; i++)
            if (!(where >> j->plan.member[i] & 1))
                mr_sim_replica(s, &v, j->plan.member[i], name);
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
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
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
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
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
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        if (b >= j->plan.reuse) {
            mr_store_fill(s->store, j->shard_at[b], mr_sim_asked(s, r)->block[b], true);
            j->reserved[j->shard_at[b]]--;
        }
        j->read_at[b] = j->shard_at[b];
        if (!(mr_store_where(s->store, mr_sim_asked(s, r)->block[b]) >> j->plan.root & 1))
            bytes[j->shard_at[b]] += s->block_wire;
    }
    j->state = MOVING;
    for (size_t n = 0; mr_sim_asked(s, r)->output > 1 && n < s->c->nodes; n++)
        if (bytes[n]) {
            j->moves++;
            s->result->wire.moved += bytes[n];
            mr_sim_transfer(s, MOVE, n, j->plan.root, bytes[n], r);
        }
}

void mr_sim_moved(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    size_t root = j->plan.root;
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
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

void mr_sim_prompt_done(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    j->first = j->last = s->now;
    j->generated = 1;
    if (s->ttft)
        s->ttft[r] = (s->now - j->arrival) / 1000;
    for (size_t n = 0; n < s->c->nodes; n++)
        mr_store_release(s->store, n, j->working[n]);
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
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++)
        if (j->read_at[b] == j->plan.root || s->c->policy->layout == MR_KV_MOVED_TO_ROOT)
            j->local_tokens += mr_sim_block_tokens(s, r, b);
    if (mr_sim_asked(s, r)->output == 1)
        mr_sim_finished(s, r);
    else if (j->state == MOVING && !j->moves)
        mr_sim_moved(s, r);
    else if (j->state != MOVING)
        decode_begins(s, r);
}
