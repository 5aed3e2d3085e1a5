/* SPDX-License-Identifier: Apache-2.0 */
/* Steps: the tokens of a prompt and of decode, and what they send. */
#include "models/cycle/cluster_sim.h"

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
        mr_sim_transfer(s, QUERY, circle ? before : n, h, asks * s->query_wire, (uint32_t)n);
        s->result->wire.decode += asks * s->query_wire;
        d->urgent++;
        before = h;
        if (to != h) {
            mr_sim_transfer(s, PARTIAL, h, to, asks * s->partial_wire, (uint32_t)n);
            s->result->wire.decode += asks * s->partial_wire;
            d->urgent++;
        }
    }
    if (!hops)
        return;
    for (size_t g = 0; g * group < s->c->nodes; g++)
        if (head[g] != SIZE_MAX) {
            mr_sim_transfer(s, PARTIAL, head[g], n, requests * s->wide_wire, (uint32_t)n);
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

void mr_sim_try_end(sim *s, size_t n) {
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
void mr_sim_begin_step(sim *s, size_t n, uint32_t part, uint64_t tokens, uint64_t attention_ns) {
    node *d = &s->nodes[n];
    uint64_t sampled = d->actives;
    if (part != NONE && s->jobs[part].last_step && s->jobs[part].plan.root == n)
        sampled++;
    uint64_t hidden = mr_machine_decode_attention_ns(s->c->machine, d->local_tokens);
    uint64_t ns =
        mr_machine_step_ns(s->c->machine, tokens + d->actives, sampled, attention_ns + hidden);
    if (s->c->machine->degree > 1) {
        const mr_machine *m = s->c->machine;
        /* two all-reduces a layer; each of the GPUs sends 2 (T-1)/T of the activations */
        uint64_t token =
            4 * (m->degree - 1) * m->layers *
            mr_sim_framed(m->hidden * m->value_bytes, s->c->frame_payload, s->c->frame_overhead);
        s->result->wire.reduced += tokens * token;
        s->result->wire.decode += d->actives * token;
    }
    d->running = true;
    d->held = false;
    d->start = s->now;
    d->end = UINT64_MAX;
    d->part = part;
    d->stepping = (uint32_t)d->actives;
    d->compute = ns * 1000 + d->debt;
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
            mr_sim_transfer(s, EXCHANGE, from, to, bytes, (uint32_t)to);
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
            keys[h] += mr_sim_block_tokens(s, r, b);
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
            mr_sim_transfer(s, EXCHANGE, m, h, share * s->query_wire, (uint32_t)m);
            mr_sim_transfer(s, EXCHANGE, h, m, share * s->partial_wire, (uint32_t)m);
        }
    }
    for (size_t i = 0; i < k; i++) /* a member without keys of its own waits for the slowest */
        if (s->nodes[j->plan.member[i]].compute < slowest * 1000)
            s->nodes[j->plan.member[i]].compute = slowest * 1000;
}

static void pull(sim *s, uint32_t r, size_t from, size_t to, uint64_t bytes) {
    s->jobs[r].pulls++;
    s->result->wire.pulled += bytes;
    mr_sim_transfer(s, PULL, from, to, bytes, r);
}

static void pull_gather(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    for (size_t i = 0; i < j->plan.count; i++) {
        size_t m = j->plan.member[i];
        uint64_t from[MR_KV_NODES] = {0};
        for (size_t b = 0; b < j->plan.reuse; b++) {
            mr_kv_set where = mr_store_where(s->store, mr_sim_asked(s, r)->block[b]);
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
    mr_kv_view v = mr_sim_view_of(s);
    for (size_t b = 0; b < j->plan.reuse && budget >= s->block_wire; b++) {
        uint32_t name = mr_sim_asked(s, r)->block[b];
        mr_kv_set where = mr_store_where(s->store, name);
        size_t to = s->c->policy->spread(&v, where, mr_store_uses(s->store, name));
        if (to >= s->c->nodes)
            continue;
        budget -= s->block_wire;
        s->result->wire.spread += s->block_wire;
        mr_sim_transfer(s, SPREAD, j->shard_at[b], to, s->block_wire, name);
    }
}

/* New blocks that others keep leave while they are computed. */
static void send_home(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    mr_kv_set members = mr_kv_members(&j->plan);
    uint64_t to[MR_KV_NODES] = {0};
    for (size_t b = j->plan.reuse; b < mr_sim_blocks_of(s, r); b++)
        if (!(members >> j->shard_at[b] & 1))
            to[j->shard_at[b]] += s->block_wire;
    for (size_t n = 0; n < s->c->nodes; n++)
        if (to[n]) {
            j->pulls++;
            s->result->wire.placed += to[n];
            mr_sim_transfer(s, PULL, j->plan.member[n % j->plan.count], n, to[n], r);
        }
}

static void begin_prompt(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    j->state = RUNNING;
    s->waiting--;
    s->member_sum += j->plan.count;
    for (size_t b = 0; b < j->plan.reuse; b++)
        if (j->plan.ship >> j->shard_at[b] & 1)
            j->shipped_tokens += mr_sim_block_tokens(s, r, b);
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
    int64_t token_ns = (int64_t)(mr_machine_step_ns(m, s->step_tokens, 0, 0) / s->step_tokens) + 1;
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
    mr_kv_view v = mr_sim_view_of(s);
    if (!v.free)
        return;
    s->c->policy->grow(&v, j->fresh - j->done - j->now_tokens, context, &j->plan);
    mr_sim_join(s, r, before);
    s->member_sum += j->plan.count - before;
    for (size_t i = before; i < j->plan.count; i++) {
        for (size_t from = 0; from < before; from++)
            pull(s, r, j->plan.member[from], j->plan.member[i], context * s->token_wire / before);
        mr_sim_kick(s, j->plan.member[i]);
    }
}

/* All members are here: the next part of the prompt. */
void mr_sim_begin_part(sim *s, uint32_t r) {
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
        mr_sim_begin_step(s, j->plan.member[i], r, tokens[i], attention);
    exchange(s, j, sum);
    if (shipped)
        ship(s, r, sum);
    if (!j->last_step)
        recruit(s, r);
    for (size_t i = 0; i < k; i++)
        mr_sim_try_end(s, j->plan.member[i]);
}
