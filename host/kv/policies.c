/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policies. What they have in common, good scheduling, they share, so that what is compared is
 * where the KV goes: every policy sees the same estimates, weighs the same way how many nodes a
 * prompt is worth, and reuses every prefix that any node holds.
 */
#include "host/kv/policy.h"

#include <string.h>

/* ---- where new blocks stay --------------------------------------------------------------------
 */

static uint64_t room_of(const mr_kv_node *n) {
    return n->capacity > n->pinned ? n->capacity - n->pinned : 0;
}

static void homes_members(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_plan *plan,
                          uint32_t *share) {
    memset(share, 0, view->nodes * sizeof *share);
    for (size_t b = 0; b < r->blocks - plan->reuse; b++)
        share[plan->member[b % plan->count]]++;
}

/* Equal shares of the members as far as they have room; the rest to whoever has most. */
static void homes_pool(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_plan *plan,
                       uint32_t *share) {
    uint64_t room[MR_KV_NODES];
    size_t over = 0;
    homes_members(view, r, plan, share);
    for (size_t n = 0; n < view->nodes; n++) {
        room[n] = room_of(&view->node[n]);
        if (n == plan->root)
            room[n] = room[n] > r->output_blocks ? room[n] - r->output_blocks : 0;
        if (share[n] > room[n]) {
            over += share[n] - room[n];
            share[n] = (uint32_t)room[n];
        }
    }
    for (; over; over--) {
        size_t best = plan->root;
        for (size_t n = 0; n < view->nodes; n++)
            if (room[n] - share[n] > room[best] - share[best])
                best = n;
        share[best]++;
        if (share[best] > room[best])
            room[best]++; /* nowhere: the caller finds that there is no room */
    }
}

/* A pool of all nodes: only what the request generates must be at its root. */
static bool pool_fits(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_plan *plan,
                      bool ever) {
    size_t need = r->output_blocks + r->blocks - (ever ? 0 : plan->reuse);
    uint64_t room = 0;
    for (size_t n = 0; n < view->nodes; n++)
        room += ever ? view->node[n].capacity : room_of(&view->node[n]);
    const mr_kv_node *root = &view->node[plan->root];
    if (need > room || r->output_blocks > (ever ? root->capacity : room_of(root)))
        return false;
    /* a member also holds what others keep until the prompt has ended, unless it never could */
    for (size_t i = 0; !ever && i < plan->count; i++) {
        const mr_kv_node *n = &view->node[plan->member[i]];
        size_t whole = r->blocks - plan->reuse + (n == root ? r->output_blocks : 0);
        if (r->blocks + r->output_blocks <= n->capacity && whole > room_of(n))
            return false;
    }
    return true;
}

/* Blocks that must find room: new ones in equal shares, all of them where decode wants them. */
static bool fits(const mr_kv_view *view, const mr_kv_request *r, const mr_kv_policy *p,
                 const mr_kv_plan *plan, bool ever) {
    size_t share = (r->blocks - plan->reuse + plan->count - 1) / plan->count;
    bool at_root = p->layout == MR_KV_AT_ROOT || p->layout == MR_KV_MOVED_TO_ROOT;
    if (p->homes == homes_pool)
        return pool_fits(view, r, plan, ever);
    for (size_t i = 0; i < plan->count; i++) {
        const mr_kv_node *n = &view->node[plan->member[i]];
        size_t need = share;
        if (ever) /* reused blocks may be gone when its turn comes */
            need = (r->blocks + plan->count - 1) / plan->count;
        if (plan->member[i] == plan->root)
            need = (at_root ? r->blocks : need) + r->output_blocks;
        if (need + (ever ? 0 : n->pinned) > n->capacity)
            return false;
    }
    return true;
}

/* ---- reading the prefix -----------------------------------------------------------------------
 */

/* Leading blocks that all members hold: the part that costs nothing to reuse. */
static size_t held_by_all(const mr_kv_request *r, mr_kv_set members) {
    size_t n = 0;
    while (n < r->hit && !(members & ~r->where[n]))
        n++;
    return n;
}

/* All of the prefix, or only what is here already: whichever finishes first. */
static void fetch_or_recompute(const mr_kv_view *view, const mr_kv_request *r,
                               mr_kv_exchange exchange, mr_kv_plan *plan) {
    plan->ship = 0;
    plan->reuse = r->hit;
    mr_kv_estimate(view, r, exchange, plan);
    size_t here = held_by_all(r, mr_kv_members(plan));
    if (here == r->hit)
        return;
    mr_kv_plan other = *plan;
    other.reuse = here;
    mr_kv_estimate(view, r, exchange, &other);
    if (other.finish_ns < plan->finish_ns)
        *plan = other;
}

static void access_gather(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    fetch_or_recompute(view, r, MR_KV_GATHER, plan);
}

static void access_circle(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    fetch_or_recompute(view, r, MR_KV_CIRCLE, plan);
}

/*
 * Holder by holder the fewer bytes: its blocks to the members that lack them, or every member's
 * queries to it and the partial results back. Then the result must also be no later than pulling.
 */
static void access_ship(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    const mr_kv_costs *c = view->costs;
    mr_kv_set members = mr_kv_members(plan), ship = 0;
    uint64_t pull[MR_KV_NODES] = {0};
    uint64_t tokens = r->tokens - mr_kv_reused_tokens(view, r, r->hit);
    mr_kv_sources sources = {0};
    for (size_t b = 0; b < r->hit; b++) {
        uint64_t lack = (uint64_t)__builtin_popcountll(members & ~r->where[b]);
        pull[mr_kv_next_source(&sources, r->where[b], members)] += lack * c->block_bytes;
    }
    for (size_t h = 0; h < view->nodes; h++) {
        size_t asking = plan->count - (members >> h & 1);
        if (pull[h] > tokens * asking / plan->count * (c->query_bytes + c->partial_bytes))
            ship |= (mr_kv_set)1 << h;
    }
    fetch_or_recompute(view, r, MR_KV_GATHER, plan);
    if (!ship)
        return;
    mr_kv_plan other = *plan;
    other.reuse = r->hit;
    other.ship = ship;
    mr_kv_estimate(view, r, MR_KV_GATHER, &other);
    if (other.finish_ns < plan->finish_ns)
        *plan = other;
}

/* ---- orders of nodes --------------------------------------------------------------------------
 */

/* All nodes, those with the least to do first. */
static void by_backlog(const mr_kv_view *view, uint8_t *nodes) {
    for (size_t i = 0; i < view->nodes; i++) {
        size_t at = i;
        for (; at && view->node[nodes[at - 1]].backlog_ns > view->node[i].backlog_ns; at--)
            nodes[at] = nodes[at - 1];
        nodes[at] = (uint8_t)i;
    }
}

/* The nodes of a set: most of the prefix first, then least to decode. */
static size_t by_prefix(const mr_kv_view *view, const mr_kv_request *r, mr_kv_set set,
                        uint8_t *nodes) {
    uint64_t held[MR_KV_NODES] = {0};
    size_t count = 0;
    for (size_t b = 0; b < r->hit; b++)
        for (mr_kv_set w = r->where[b]; w; w &= w - 1)
            held[__builtin_ctzll(w)]++;
    for (; set; set &= set - 1) {
        size_t n = (size_t)__builtin_ctzll(set), at = count++;
        for (; at; at--) {
            size_t other = nodes[at - 1];
            if (held[other] > held[n] ||
                (held[other] == held[n] &&
                 view->node[other].decode_tokens <= view->node[n].decode_tokens))
                break;
            nodes[at] = nodes[at - 1];
        }
        nodes[at] = (uint8_t)n;
    }
    return count;
}

static uint8_t least_decoding(const mr_kv_view *view, const mr_kv_plan *plan) {
    uint8_t best = plan->member[0];
    for (size_t i = 1; i < plan->count; i++)
        if (view->node[plan->member[i]].decode_tokens < view->node[best].decode_tokens)
            best = plan->member[i];
    return best;
}

/* ---- choosing nodes ---------------------------------------------------------------------------
 */

typedef void access_fn(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan);

/*
 * A prompt on more nodes finishes earlier and costs more node time. The extra node time delays
 * everyone who waits by its share of the cluster, so it is charged once a waiting request.
 */
static uint64_t score(const mr_kv_view *view, const mr_kv_plan *plan, uint64_t alone_ns) {
    uint64_t used = plan->duration_ns * plan->count;
    uint64_t extra = used > alone_ns ? used - alone_ns : 0;
    return plan->finish_ns + extra / view->nodes * view->waiting;
}

/* Equal times are common when nothing waits: then the node with less to decode. */
static bool sooner(const mr_kv_view *view, const mr_kv_plan *a, const mr_kv_plan *b) {
    uint64_t x = view->node[a->root].decode_tokens, y = view->node[b->root].decode_tokens;
    return a->finish_ns < b->finish_ns || (a->finish_ns == b->finish_ns && x < y);
}

/*
 * The node on which a request finishes first, now if it has the room now. A request that no single
 * node could ever hold waits for the fewest that can, those with least to do.
 */
static bool place(const mr_kv_policy *p, access_fn *access, const mr_kv_view *view,
                  const mr_kv_request *r, mr_kv_plan *plan) {
    bool found = false, room = false;
    for (size_t k = 1; k <= view->nodes && !found; k++)
        for (size_t first = 0; first < (k == 1 ? view->nodes : 1); first++) {
            mr_kv_plan try = {.count = k};
            if (k == 1)
                try.member[0] = (uint8_t)first;
            else
                by_backlog(view, try.member);
            try.root = try.member[0];
            access(view, r, &try);
            if (!fits(view, r, p, &try, true))
                continue;
            bool now = fits(view, r, p, &try, false);
            if (found && (now < room || (now == room && !sooner(view, &try, plan))))
                continue;
            found = true;
            room = now;
            *plan = try;
        }
    return found;
}

/* Free nodes join where that pays: those first that hold more of the prefix, then those with less
   to decode. The root is the member with the least. */
static void begin(const mr_kv_policy *p, access_fn *access, const mr_kv_view *view,
                  const mr_kv_request *r, mr_kv_plan *plan) {
    uint8_t more[MR_KV_NODES];
    size_t base = plan->count, count = by_prefix(view, r, view->free & ~mr_kv_members(plan), more);
    uint64_t best_score = 0, alone_ns = 0;
    mr_kv_plan best = *plan;
    bool room = false;
    for (size_t k = base; k <= base + count; k++) {
        mr_kv_plan try = *plan;
        try.count = k;
        memcpy(try.member + base, more, k - base);
        try.root = least_decoding(view, &try);
        access(view, r, &try);
        bool now = fits(view, r, p, &try, false);
        if (k == base)
            alone_ns = try.prompt_ns * k;
        uint64_t sc = score(view, &try, alone_ns);
        if (k > base && (now < room || (now == room && sc >= best_score)))
            continue;
        best_score = sc;
        room = now;
        best = try;
    }
    *plan = best;
}

static void grow(mr_kv_exchange exchange, const mr_kv_view *view, uint64_t left, uint64_t context,
                 mr_kv_plan *plan) {
    static const mr_kv_request none = {0};
    uint8_t more[MR_KV_NODES];
    size_t base = plan->count;
    size_t count = by_prefix(view, &none, view->free & ~mr_kv_members(plan), more);
    mr_kv_plan best = *plan;
    uint64_t best_score = 0, now_ns = 0;
    for (size_t k = base; k <= base + count; k++) {
        mr_kv_plan try = *plan;
        try.count = k;
        memcpy(try.member + base, more, k - base);
        mr_kv_estimate_rest(view, left, context, base, exchange, &try);
        if (k == base)
            now_ns = try.duration_ns * k;
        uint64_t sc = score(view, &try, now_ns);
        if (k > base && sc >= best_score)
            continue;
        best_score = sc;
        best = try;
    }
    *plan = best;
}

static void grow_gather(const mr_kv_view *view, uint64_t left, uint64_t context, mr_kv_plan *plan) {
    grow(MR_KV_GATHER, view, left, context, plan);
}

static void grow_circle(const mr_kv_view *view, uint64_t left, uint64_t context, mr_kv_plan *plan) {
    grow(MR_KV_CIRCLE, view, left, context, plan);
}

static void grow_never(const mr_kv_view *view, uint64_t left, uint64_t context, mr_kv_plan *plan) {
    (void)view;
    (void)left;
    (void)context;
    (void)plan;
}

static bool place_mars(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    return place(&mr_kv_mars, access_ship, view, r, plan);
}

static void begin_mars(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    begin(&mr_kv_mars, access_ship, view, r, plan);
}

static bool place_convert(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    return place(&mr_kv_convert, access_gather, view, r, plan);
}

static void begin_convert(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    begin(&mr_kv_convert, access_gather, view, r, plan);
}

static bool place_ring(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    return place(&mr_kv_ring, access_circle, view, r, plan);
}

static void begin_ring(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    begin(&mr_kv_ring, access_circle, view, r, plan);
}

static bool place_alone(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    return place(&mr_kv_prefix_cache, access_gather, view, r, plan) && plan->count == 1;
}

static void begin_alone(const mr_kv_view *view, const mr_kv_request *r, mr_kv_plan *plan) {
    access_gather(view, r, plan);
}

/* ---- replicas ---------------------------------------------------------------------------------
 */

static mr_kv_keep keep_none(const mr_kv_view *view, const mr_kv_spare *spare) {
    (void)view;
    (void)spare;
    return MR_KV_NO;
}

static mr_kv_keep keep_all(const mr_kv_view *view, const mr_kv_spare *spare) {
    (void)view;
    (void)spare;
    return MR_KV_KEEP;
}

/* Head-room: less than half of the node belongs to running requests. */
static bool head_room(const mr_kv_node *n) { return 2 * n->pinned < n->capacity; }

/*
 * All that passes by stays while there is room that no last copy needs. A block that every node can
 * expect to want twice may push out what was not used for longest.
 */
static mr_kv_keep keep_mars(const mr_kv_view *view, const mr_kv_spare *spare) {
    if (!head_room(&view->node[spare->node]))
        return MR_KV_NO;
    return spare->uses >= 2 * view->nodes ? MR_KV_KEEP : MR_KV_SPARE;
}

static bool drain_never(const mr_kv_view *view, size_t node) {
    (void)view;
    (void)node;
    return false;
}

/* Pressure: more than three quarters. */
static bool drain_mars(const mr_kv_view *view, size_t node) {
    return 4 * view->node[node].pinned > 3 * view->node[node].capacity;
}

static size_t spread_none(const mr_kv_view *view, mr_kv_set where, uint32_t uses) {
    (void)view;
    (void)where;
    (void)uses;
    return MR_KV_NODES;
}

/* A block may have a copy for every sixteen uses; the next goes to the emptiest node without one.
 */
static size_t spread_mars(const mr_kv_view *view, mr_kv_set where, uint32_t uses) {
    size_t best = MR_KV_NODES;
    if ((uint32_t)__builtin_popcountll(where) * 16 > uses)
        return best;
    for (size_t n = 0; n < view->nodes; n++)
        if (!(where >> n & 1) && head_room(&view->node[n]) &&
            (best == MR_KV_NODES || view->node[n].pinned < view->node[best].pinned))
            best = n;
    return best;
}

/* ---- the tables -------------------------------------------------------------------------------
 */

const mr_kv_policy mr_kv_mars = {
    .name = "mars",
    .about = "prompts over several nodes, prefixes pulled or asked by queries, replicas of what is "
             "reused while there is head-room, drained under pressure; decode where the shards lie",
    .exchange = MR_KV_GATHER,
    .layout = MR_KV_SHARDED,
    .place = place_mars,
    .begin = begin_mars,
    .grow = grow_gather,
    .homes = homes_pool,
    .keep = keep_mars,
    .drain = drain_mars,
    .replicas_go_first = true,
    .spread = spread_mars,
};

const mr_kv_policy mr_kv_no_replication = {
    .name = "no-replication",
    .about = "as mars, but never more than one copy of a block",
    .exchange = MR_KV_GATHER,
    .layout = MR_KV_SHARDED,
    .place = place_mars,
    .begin = begin_mars,
    .grow = grow_gather,
    .homes = homes_pool,
    .keep = keep_none,
    .drain = drain_never,
    .replicas_go_first = true,
    .spread = spread_none,
};

const mr_kv_policy mr_kv_convert = {
    .name = "convert",
    .about = "prompts over several nodes; at the boundary all KV moves to the node that decodes",
    .exchange = MR_KV_GATHER,
    .layout = MR_KV_MOVED_TO_ROOT,
    .place = place_convert,
    .begin = begin_convert,
    .grow = grow_gather,
    .homes = homes_members,
    .keep = keep_none,
    .drain = drain_never,
    .replicas_go_first = true,
    .spread = spread_none,
};

const mr_kv_policy mr_kv_ring = {
    .name = "ring",
    .about = "ring attention on aligned groups of any power of two; KV or queries go round, "
             "whichever is less",
    .exchange = MR_KV_CIRCLE,
    .layout = MR_KV_SHARDED_CIRCLE,
    .place = place_ring,
    .begin = begin_ring,
    .grow = grow_circle,
    .homes = homes_members,
    .keep = keep_none,
    .drain = drain_never,
    .replicas_go_first = true,
    .spread = spread_none,
};

const mr_kv_policy mr_kv_prefix_cache = {
    .name = "prefix-cache",
    .about = "one node a prompt, the one that finishes first with its own prefix, a fetched one or "
             "none; what is fetched stays",
    .exchange = MR_KV_ALONE,
    .layout = MR_KV_AT_ROOT,
    .place = place_alone,
    .begin = begin_alone,
    .grow = grow_never,
    .homes = homes_members,
    .keep = keep_all,
    .drain = drain_never,
    .replicas_go_first = true,
    .spread = spread_none,
};

const mr_kv_policy *mr_kv_policy_find(const char *name) {
    static const mr_kv_policy *const all[] = {&mr_kv_mars, &mr_kv_no_replication, &mr_kv_convert,
                                              &mr_kv_ring, &mr_kv_prefix_cache};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (!strcmp(all[i]->name, name))
            return all[i];
    return NULL;
}
