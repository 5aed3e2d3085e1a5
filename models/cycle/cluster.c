/* SPDX-License-Identifier: Apache-2.0 */
/* Arrivals, the order of events, and the sums at the end. */
#include "models/cycle/cluster_sim.h"

#include <math.h>
#include <stdlib.h>

/* ---- arrivals ---------------------------------------------------------------------------------
 */

static void arrive(sim *s, uint32_t r) {
    job *j = &s->jobs[r];
    if (r + 1 == s->c->requests)
        s->result->wire_before_last = s->result->wire;
    j->arrival = s->now;
    s->result->prompt_tokens += mr_sim_asked(s, r)->tokens;
    for (size_t b = 0; b < mr_sim_blocks_of(s, r); b++)
        mr_store_use(s->store, mr_sim_asked(s, r)->block[b]);
    mr_kv_view v = mr_sim_view_of(s);
    mr_kv_request q = mr_sim_request_of(s, r);
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
        mr_sim_append(s, &d->queue, &d->queue_room, &d->queued, r);
        d->backlog += j->estimate;
    }
    for (size_t i = 0; i < j->plan.count && !s->failed; i++)
        mr_sim_kick(s, j->plan.member[i]);
    /* those in the middle of a step have a new first one all the same */
    for (size_t i = 0; i < j->plan.count && !s->failed; i++)
        mr_sim_new_head(s, j->plan.member[i]);
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
        mr_sim_send_next(s, (uint32_t)m->tag);
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
        mr_sim_try_end(s, i);
        break;
    case QUERY:
        s->nodes[i].urgent--;
        s->nodes[i].query_at = s->now;
        mr_sim_try_end(s, i);
        break;
    case PARTIAL:
        s->nodes[i].urgent--;
        s->nodes[i].partial_at = s->now;
        mr_sim_try_end(s, i);
        break;
    case PULL:
        s->jobs[i].pulls--;
        s->jobs[i].pulled_at = s->now;
        for (size_t k = 0; !s->jobs[i].pulls && k < s->jobs[i].plan.count; k++)
            if (s->nodes[s->jobs[i].plan.member[k]].part == i)
                mr_sim_try_end(s, s->jobs[i].plan.member[k]);
        break;
    case MOVE:
        if (--s->jobs[i].moves == 0)
            mr_sim_moved(s, i);
        break;
    case SPREAD: {
        mr_kv_view v = mr_sim_view_of(s);
        mr_sim_replica(s, &v, over.dst, i);
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
            mr_sim_end_step(s, n);
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
        mr_sim_framed(c->block_tokens * mr_machine_kv_bytes(m), c->kv_payload, c->frame_overhead);
    s->token_wire = s->block_wire / c->block_tokens;
    s->query_wire =
        m->layers * mr_sim_framed(vector * m->value_bytes, c->frame_payload, c->frame_overhead);
    s->partial_wire = m->layers * mr_sim_framed(vector * m->value_bytes + 8 * m->query_heads,
                                                c->frame_payload, c->frame_overhead);
    s->wide_wire = m->layers * mr_sim_framed(vector * 4 + 8 * m->query_heads, c->frame_payload,
                                             c->frame_overhead);
    s->hop_ps = (2 * c->link_ns + c->switch_ns + c->host_ns + c->route_ns) * 1000;
    s->merge_ps = c->merge_ns * 1000;
    s->costs = (mr_kv_costs){.block_tokens = c->block_tokens,
                             .block_bytes = s->block_wire,
                             .query_bytes = s->query_wire,
                             .partial_bytes = s->partial_wire,
                             .byte_ps = c->byte_ps,
                             .layers = m->layers,
                             .hop_ns = s->hop_ps / 1000,
                             .prompt_ns = mr_sim_prompt_cost,
                             .ship_ns = mr_sim_ship_cost,
                             .machine = s};
    size_t most = 1;
    for (size_t r = 0; r < c->requests; r++)
        if (mr_sim_blocks_of(s, (uint32_t)r) > most)
            most = mr_sim_blocks_of(s, (uint32_t)r);
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
