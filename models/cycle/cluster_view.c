/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that all parts need, what a policy gets to see, and transfers. */
#include "models/cycle/cluster_sim.h"

#include <stdlib.h>

/* ---- small things -----------------------------------------------------------------------------
 */

const mr_cluster_request *mr_sim_asked(const sim *s, uint32_t r) { return &s->c->request[r]; }

size_t mr_sim_blocks_of(const sim *s, uint32_t r) {
    return (mr_sim_asked(s, r)->tokens + s->c->block_tokens - 1) / s->c->block_tokens;
}

uint64_t mr_sim_output_blocks(const sim *s, uint32_t r) {
    return (mr_sim_asked(s, r)->output + s->c->block_tokens - 1) / s->c->block_tokens;
}

uint32_t mr_sim_block_tokens(const sim *s, uint32_t r, size_t b) {
    uint64_t t = mr_sim_asked(s, r)->tokens - b * s->c->block_tokens;
    return (uint32_t)(t < s->c->block_tokens ? t : s->c->block_tokens);
}

uint64_t mr_sim_framed(uint64_t bytes, uint64_t payload, uint64_t overhead) {
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

void mr_sim_append(sim *s, uint32_t **list, size_t *room, size_t *count, uint32_t value) {
    if (grow(list, room, *count))
        (*list)[(*count)++] = value;
    else
        s->failed = true;
}

void mr_sim_take_out(uint32_t *list, size_t *count, uint32_t value) {
    size_t i = 0;
    while (list[i] != value)
        i++;
    memmove(list + i, list + i + 1, (--*count - i) * sizeof *list);
}

/* ---- what the policy sees ---------------------------------------------------------------------
 */

uint64_t mr_sim_prompt_cost(const void *context, uint64_t tokens, uint64_t reused, uint64_t shipped,
                            size_t members) {
    const sim *s = context;
    return mr_machine_prompt_ns(s->c->machine, s->step_tokens, tokens, reused, shipped, members);
}

uint64_t mr_sim_ship_cost(const void *context, uint64_t tokens, uint64_t keys) {
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

mr_kv_view mr_sim_view_of(sim *s) {
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

mr_kv_request mr_sim_request_of(sim *s, uint32_t r) {
    mr_kv_request q = {.tokens = mr_sim_asked(s, r)->tokens,
                       .blocks = mr_sim_blocks_of(s, r),
                       .output_blocks = mr_sim_output_blocks(s, r),
                       .where = s->where,
                       .uses = s->uses};
    for (size_t b = 0; b < q.blocks; b++) {
        s->where[b] = mr_store_where(s->store, mr_sim_asked(s, r)->block[b]);
        s->uses[b] = mr_store_uses(s->store, mr_sim_asked(s, r)->block[b]);
        if (b == q.hit && s->where[b])
            q.hit++;
    }
    return q;
}

/* ---- transfers --------------------------------------------------------------------------------
 */

void mr_sim_send_next(sim *s, uint32_t i) {
    flow *f = &s->flows[i];
    bool urgent = f->purpose == QUERY || f->purpose == PARTIAL;
    f->sending = urgent || f->left < CHUNK ? f->left : CHUNK;
    if (!mr_net_send(s->net, f->src, f->dst, f->sending, s->now,
                     urgent ? MR_NET_URGENT : MR_NET_BULK, i))
        s->failed = true;
}

void mr_sim_transfer(sim *s, purpose purpose, size_t src, size_t dst, uint64_t bytes,
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
    mr_sim_send_next(s, i);
}
