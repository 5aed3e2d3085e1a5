/* SPDX-License-Identifier: Apache-2.0 */
/* When a plan would finish: computing and the busiest link, one hidden behind the other. */
#include "host/kv/policy.h"

mr_kv_set mr_kv_members(const mr_kv_plan *plan) {
    mr_kv_set set = 0;
    for (size_t i = 0; i < plan->count; i++)
        set |= (mr_kv_set)1 << plan->member[i];
    return set;
}

size_t mr_kv_next_source(mr_kv_sources *s, mr_kv_set where, mr_kv_set members) {
    mr_kv_set from = where & members ? where & members : where;
    size_t best = (size_t)__builtin_ctzll(from);
    for (from &= from - 1; from; from &= from - 1) {
        size_t n = (size_t)__builtin_ctzll(from);
        if (s->sent[n] < s->sent[best])
            best = n;
    }
    uint64_t lack = (uint64_t)__builtin_popcountll(members & ~where);
    s->sent[best] += lack ? lack : 1; /* nothing travels, but there it is pinned */
    return best;
}

uint64_t mr_kv_reused_tokens(const mr_kv_view *view, const mr_kv_request *request, size_t reuse) {
    uint64_t tokens = reuse * view->costs->block_tokens;
    return tokens < request->tokens ? tokens : request->tokens - 1;
}

typedef struct {
    uint64_t in[MR_KV_NODES], out[MR_KV_NODES]; /* bytes */
    uint64_t shipped;                           /* blocks that are read where they lie */
    uint64_t at_holder[MR_KV_NODES];            /* of these, by holder */
} traffic;

static void move(traffic *t, size_t from, size_t to, uint64_t bytes) {
    t->out[from] += bytes;
    t->in[to] += bytes;
}

/* Reused blocks: pulled by the members that lack them, or counted as shipped. */
static void reused(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_plan *plan,
                   traffic *t) {
    mr_kv_set members = mr_kv_members(plan);
    mr_kv_sources sources = {0};
    for (size_t b = 0; b < plan->reuse; b++) {
        mr_kv_set lack = members & ~r->where[b];
        size_t from = mr_kv_next_source(&sources, r->where[b], members);
        if (!lack)
            continue;
        if (plan->ship >> from & 1) {
            t->shipped++;
            t->at_holder[from]++;
        } else {
            for (; lack; lack &= lack - 1)
                move(t, from, (size_t)__builtin_ctzll(lack), view->costs->block_bytes);
        }
    }
}

/* In a ring a block enters at one member and everything passes every link once. */
static void reused_in_circle(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_plan *plan,
                             uint64_t tokens, traffic *t) {
    const mr_kv_costs *c = view->costs;
    mr_kv_set members = mr_kv_members(plan);
    mr_kv_sources sources = {0};
    for (size_t b = 0; b < plan->reuse; b++)
        if (!(r->where[b] & members))
            move(t, mr_kv_next_source(&sources, r->where[b], members),
                 plan->member[b % plan->count], c->block_bytes);
    /* the cheaper of passing the reused KV on and passing the new queries on */
    uint64_t kv = plan->reuse * c->block_bytes, q = tokens * (c->query_bytes + c->partial_bytes);
    uint64_t bytes = (kv < q ? kv : q) * (plan->count - 1) / plan->count;
    for (size_t i = 0; i < plan->count; i++)
        move(t, plan->member[i], plan->member[(i + 1) % plan->count], bytes);
}

static void queries(const mr_kv_view *view, const mr_kv_plan *plan, uint64_t tokens, traffic *t) {
    for (size_t h = 0; h < view->nodes; h++)
        for (size_t i = 0; t->at_holder[h] && i < plan->count; i++)
            if (plan->member[i] != h) {
                move(t, plan->member[i], h, tokens / plan->count * view->costs->query_bytes);
                move(t, h, plan->member[i], tokens / plan->count * view->costs->partial_bytes);
            }
}

static uint64_t busiest(const mr_kv_view *view, const traffic *t, uint64_t *waits) {
    uint64_t most = 0;
    *waits = 0;
    for (size_t n = 0; n < view->nodes; n++) {
        uint64_t in = t->in[n] * view->costs->byte_ps / 1000;
        uint64_t out = t->out[n] * view->costs->byte_ps / 1000;
        most = in > most ? in : most;
        most = out > most ? out : most;
        if (in && view->node[n].in_ns > *waits)
            *waits = view->node[n].in_ns;
        if (out && view->node[n].out_ns > *waits)
            *waits = view->node[n].out_ns;
    }
    return most;
}

/* Computing and the wire hide each other except for one layer. */
static void overlap(const mr_kv_view *view, mr_kv_exchange exchange, mr_kv_plan *plan) {
    const mr_kv_costs *c = view->costs;
    if (plan->wire_ns)
        plan->wire_ns += c->layers * c->hop_ns *
                         (exchange == MR_KV_CIRCLE && plan->count > 1 ? plan->count - 1 : 1);
    uint64_t most = plan->prompt_ns, least = plan->wire_ns;
    if (most < least) {
        most = plan->wire_ns;
        least = plan->prompt_ns;
    }
    plan->duration_ns = most + least / c->layers; /* the first layer has nothing to hide behind */
}

void mr_kv_estimate_rest(const mr_kv_view *view, uint64_t left, uint64_t context, size_t joined,
                         mr_kv_exchange exchange, mr_kv_plan *plan) {
    const mr_kv_costs *c = view->costs;
    uint64_t k = plan->count, token = c->block_bytes / c->block_tokens;
    uint64_t share = left * token / k * (k - 1); /* in and out, of every member */
    uint64_t in = k > joined ? context * token : 0, out = in / joined * (k - joined);
    plan->wire_ns = (share + (in > out ? in : out)) * c->byte_ps / 1000;
    plan->prompt_ns = c->prompt_ns(c->machine, left, context, 0, plan->count);
    overlap(view, exchange, plan);
    plan->finish_ns = plan->duration_ns;
}

void mr_kv_estimate(const mr_kv_view *view, const mr_kv_request *r, mr_kv_exchange exchange,
                    mr_kv_plan *plan) {
    const mr_kv_costs *c = view->costs;
    uint64_t context = mr_kv_reused_tokens(view, r, plan->reuse), tokens = r->tokens - context;
    traffic t = {0};
    if (exchange == MR_KV_CIRCLE)
        reused_in_circle(view, r, plan, tokens, &t);
    else
        reused(view, r, plan, &t);
    if (t.shipped)
        queries(view, plan, tokens, &t);
    /* every member needs what the others compute; on a ring or straight, the bytes are the same */
    uint64_t fresh = tokens * c->block_bytes / c->block_tokens / plan->count;
    for (size_t i = 0; i < plan->count; i++)
        for (size_t j = 0; j < plan->count; j++)
            if (i != j)
                move(&t, plan->member[i], plan->member[j], fresh);

    uint64_t waits, start = 0, helper = 0;
    plan->wire_ns = busiest(view, &t, &waits);
    uint64_t shipped = t.shipped * c->block_tokens;
    plan->prompt_ns = c->prompt_ns(c->machine, tokens, context,
                                   shipped < context ? shipped : context, plan->count);
    for (size_t h = 0; h < view->nodes; h++)
        if (t.at_holder[h]) {
            uint64_t ns = c->ship_ns(c->machine, tokens, t.at_holder[h] * c->block_tokens);
            helper = ns > helper ? ns : helper;
        }
    plan->prompt_ns += helper;
    overlap(view, exchange, plan);
    for (size_t i = 0; i < plan->count; i++)
        if (view->node[plan->member[i]].backlog_ns > start)
            start = view->node[plan->member[i]].backlog_ns;
    plan->finish_ns = start + plan->duration_ns;
    if (plan->wire_ns && waits > start && plan->wire_ns + waits > plan->finish_ns)
        plan->finish_ns = plan->wire_ns + waits;
}
