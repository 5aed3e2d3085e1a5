/* SPDX-License-Identifier: Apache-2.0 */
#include "host/kv/cache.h"

#include <stdlib.h>
#include <string.h>

#include "host/core/error.h"

enum { BUCKETS = 4096, MAX_NODES = 32, PAGE = 4096 };

typedef struct block block;
struct block {
    block *next; /* in its bucket */
    uint64_t name;
    uint32_t id; /* of its KV blocks */
    uint32_t uses;
    uint64_t last; /* when a request that had it ended */
    mr_kv_set where;
    size_t owner;
    uint32_t pins[MAX_NODES];
    size_t written;         /* layers */
    const mr_kv_run *taken; /* by this request last: no name may stand twice in one */
};

typedef struct {
    uint64_t capacity, copies, pinned, reserved; /* blocks; pinned: copies with pins */
    uint64_t decode_tokens;
} node;

struct mr_kv_cache {
    mr_kv_cache_options o;
    uint8_t ranks[MAX_NODES];
    node node[MAX_NODES];
    block *bucket[BUCKETS];
    uint32_t next_id;
    uint64_t clock;
    mr_kv_run *runs;
    mr_kv_cache_stats stats;
};

struct mr_kv_run {
    mr_kv_run *next;
    mr_kv_cache *c;
    mr_kv_plan plan;
    uint64_t tokens;
    size_t blocks, output;
    struct {
        block *block;
        size_t node; /* where this request has a pin */
    } * at;
};

static size_t bucket_of(uint64_t name) {
    return (size_t)(name * 0x9E3779B97F4A7C15u >> 52) % BUCKETS;
}

static block *find(const mr_kv_cache *c, uint64_t name) {
    block *b = c->bucket[bucket_of(name)];
    while (b && b->name != name)
        b = b->next;
    return b;
}

static uint8_t rank(const mr_kv_cache *c, size_t n) { return c->ranks[n]; }
static bool whole(const mr_kv_cache *c, const block *b) { return b->written == c->o.layers; }
static bool on(const block *b, size_t n) { return b->where >> n & 1; }
static bool replica(const block *b) { return (b->where & (b->where - 1)) != 0; }

/* ---- opening ----------------------------------------------------------------------------------
 */

mr_status mr_kv_cache_create(const mr_kv_cache_options *o, mr_kv_cache **out) {
    if (!o || !out || !o->policy || !o->costs || !o->ranks)
        return mr_fail(MR_INVALID_ARGUMENT, "options: policy, costs, ranks or out is NULL");
    if (!o->nodes || o->nodes > MAX_NODES || !o->layers || o->layers > UINT16_MAX ||
        !o->layer_bytes)
        return mr_fail(MR_INVALID_ARGUMENT, "options: %zu nodes, %zu layers, %u bytes", o->nodes,
                       o->layers, o->layer_bytes);
    mr_kv_cache *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    c->o = *o;
    memcpy(c->ranks, o->ranks, o->nodes);
    uint64_t bytes = ((uint64_t)o->layer_bytes + PAGE - 1) / PAGE * PAGE * o->layers;
    for (size_t n = 0; n < o->nodes; n++) {
        uint64_t room;
        mr_status e = mr_nic_kv_free(o->nic, o->ranks[n], &room);
        if (e != MR_OK) {
            free(c);
            return e;
        }
        c->node[n].capacity = room / bytes;
        if (o->capacity && o->capacity < c->node[n].capacity)
            c->node[n].capacity = o->capacity;
    }
    *out = c;
    return MR_OK;
}

static void free_run(mr_kv_run *run) {
    free(run->at);
    free(run);
}

void mr_kv_cache_destroy(mr_kv_cache *c) {
    if (!c)
        return;
    while (c->runs) {
        mr_kv_run *run = c->runs;
        c->runs = run->next;
        free_run(run);
    }
    for (size_t i = 0; i < BUCKETS; i++)
        while (c->bucket[i]) {
            block *b = c->bucket[i];
            c->bucket[i] = b->next;
            free(b);
        }
    free(c);
}

/* ---- pins and copies --------------------------------------------------------------------------
 */

static void pin(mr_kv_cache *c, block *b, size_t n) {
    if (!b->pins[n]++)
        c->node[n].pinned++;
}

static void unpin(mr_kv_cache *c, block *b, size_t n) {
    if (!--b->pins[n])
        c->node[n].pinned--;
}

static bool pinned(const block *b) {
    for (size_t n = 0; n < MAX_NODES; n++)
        if (b->pins[n])
            return true;
    return false;
}

static void forget(mr_kv_cache *c, block *b) {
    block **at = &c->bucket[bucket_of(b->name)];
    while (*at != b)
        at = &(*at)->next;
    *at = b->next;
    for (size_t n = 0; n < c->o.nodes; n++)
        c->node[n].copies -= on(b, n);
    c->stats.copies -= (uint64_t)__builtin_popcountll(b->where);
    c->stats.blocks--;
    free(b);
}

static mr_status remove_block(mr_kv_cache *c, block *b) {
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < c->o.layers; i++)
        e = mr_nic_kv_remove(c->o.nic, c->o.job, (uint16_t)i, b->id);
    if (e == MR_OK)
        forget(c, b);
    return e;
}

/* Gives up one node's copy of a block that another node holds too. */
static mr_status drop_copy(mr_kv_cache *c, block *b, size_t n) {
    mr_kv_set rest = b->where & ~((mr_kv_set)1 << n);
    size_t owner = n == b->owner ? (size_t)__builtin_ctzll(rest) : b->owner;
    uint8_t others[MAX_NODES];
    size_t count = 0;
    for (size_t k = 0; k < c->o.nodes; k++)
        if (rest >> k & 1 && k != owner)
            others[count++] = rank(c, k);
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < c->o.layers; i++)
        e = n == b->owner ? mr_nic_kv_move(c->o.nic, c->o.job, (uint16_t)i, b->id, rank(c, owner),
                                           others, count)
                          : mr_nic_kv_drop(c->o.nic, c->o.job, (uint16_t)i, b->id, rank(c, n));
    if (e != MR_OK)
        return e;
    b->where = rest;
    b->owner = owner;
    c->node[n].copies--;
    c->stats.copies--;
    c->stats.dropped++;
    return MR_OK;
}

/* The copy at node n that goes next; NULL when all are pinned. `replicas`: of blocks that are held
 * elsewhere too. */
static block *victim(const mr_kv_cache *c, size_t n, bool replicas) {
    block *best = NULL;
    for (size_t i = 0; i < BUCKETS; i++)
        for (block *b = c->bucket[i]; b; b = b->next)
            if (on(b, n) && !b->pins[n] && (!replicas || replica(b)) &&
                (replica(b) || !pinned(b)) && (!best || b->last < best->last))
                best = b;
    return best;
}

static mr_status evict(mr_kv_cache *c, block *b, size_t n) {
    if (replica(b))
        return drop_copy(c, b, n);
    c->stats.evicted++;
    return remove_block(c, b);
}

static bool full(const mr_kv_cache *c, size_t n) {
    return c->node[n].copies + c->node[n].reserved >= c->node[n].capacity;
}

/* Room for one more block at node n. */
static mr_status make_room(mr_kv_cache *c, size_t n) {
    mr_status e = MR_OK;
    while (e == MR_OK && full(c, n)) {
        block *b = c->o.policy->replicas_go_first ? victim(c, n, true) : NULL;
        if (!b)
            b = victim(c, n, false);
        e = b ? evict(c, b, n)
              : mr_fail(MR_OUT_OF_MEMORY, "node %zu: all of its %llu blocks are in use", n,
                        (unsigned long long)c->node[n].capacity);
    }
    return e;
}

/* ---- what the policy sees ---------------------------------------------------------------------
 */

typedef struct {
    mr_kv_view view;
    mr_kv_node node[MAX_NODES];
} seen;

static const mr_kv_view *look(const mr_kv_cache *c, seen *s) {
    s->view = (mr_kv_view){.nodes = c->o.nodes, .node = s->node, .costs = c->o.costs};
    for (size_t n = 0; n < c->o.nodes; n++) {
        const node *from = &c->node[n];
        s->view.free |= (mr_kv_set)1 << n;
        s->node[n] = (mr_kv_node){.capacity = from->capacity,
                                  .pinned = from->pinned + from->reserved,
                                  .decode_tokens = from->decode_tokens};
    }
    return &s->view;
}

/* Replicas leave the nodes that the policy finds under pressure. */
static mr_status relieve(mr_kv_cache *c) {
    mr_status e = MR_OK;
    seen s;
    for (size_t n = 0; e == MR_OK && n < c->o.nodes; n++)
        while (e == MR_OK && c->o.policy->drain(look(c, &s), n)) {
            block *b = victim(c, n, true);
            if (!b)
                break;
            e = drop_copy(c, b, n);
        }
    return e;
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static mr_status plan_run(mr_kv_cache *c, mr_kv_run *run, const uint64_t *names, uint32_t *share) {
    mr_kv_set *where = calloc(run->blocks, sizeof *where);
    uint32_t *uses = calloc(run->blocks, sizeof *uses);
    mr_status e = where && uses ? MR_OK : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    mr_kv_request r = {.tokens = run->tokens,
                       .blocks = run->blocks,
                       .output_blocks = run->output,
                       .where = where,
                       .uses = uses};
    bool prefix = true;
    for (size_t i = 0; e == MR_OK && i < run->blocks; i++) {
        const block *b = find(c, names[i]);
        prefix = prefix && b && whole(c, b);
        where[i] = prefix ? b->where : 0;
        uses[i] = b ? b->uses + 1 : 1;
        r.hit += prefix;
    }
    seen s;
    const mr_kv_view *view = look(c, &s);
    if (e == MR_OK && !c->o.policy->place(view, &r, &run->plan))
        e = mr_fail(MR_OUT_OF_MEMORY, "a request of %zu blocks can never fit the cache",
                    run->blocks + run->output);
    if (e == MR_OK) {
        c->o.policy->begin(view, &r, &run->plan);
        c->o.policy->homes(view, &r, &run->plan, share);
    }
    free(where);
    free(uses);
    return e;
}

/* The node that keeps the next new block: the members in turn, then whoever has a share left. */
static size_t next_home(const mr_kv_cache *c, const mr_kv_plan *plan, uint32_t *share,
                        size_t *turn) {
    for (size_t i = 0; i < plan->count; i++) {
        size_t n = plan->member[(*turn + i) % plan->count];
        if (share[n]) {
            *turn = (*turn + i + 1) % plan->count;
            share[n]--;
            return n;
        }
    }
    for (size_t n = 0; n < c->o.nodes; n++)
        if (share[n]) {
            share[n]--;
            return n;
        }
    return plan->root;
}

static mr_status place_block(mr_kv_cache *c, uint64_t name, size_t n, block **out) {
    block *b = calloc(1, sizeof *b);
    if (!b)
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    *b = (block){.name = name, .id = c->next_id++, .owner = n, .where = (mr_kv_set)1 << n};
    mr_status e = MR_OK;
    size_t placed = 0;
    for (; e == MR_OK && placed < c->o.layers; placed += e == MR_OK) {
        mr_nic_place p = {.job = c->o.job,
                          .layer = (uint16_t)placed,
                          .block = b->id,
                          .bytes = c->o.layer_bytes,
                          .owner = rank(c, n)};
        e = mr_nic_kv_place(c->o.nic, &p);
    }
    if (e != MR_OK) {
        char why[256];
        strncpy(why, mr_last_error(), sizeof why - 1);
        why[sizeof why - 1] = 0;
        while (placed--)
            mr_nic_kv_remove(c->o.nic, c->o.job, (uint16_t)placed, b->id);
        free(b);
        return mr_fail(e, "%s", why);
    }
    b->next = c->bucket[bucket_of(name)];
    c->bucket[bucket_of(name)] = b;
    c->node[n].copies++;
    c->stats.copies++;
    c->stats.blocks++;
    *out = b;
    return MR_OK;
}

/* A block of that name which cannot be reused (half written, or behind a hole in the prefix) makes
 * way, unless another request has it. */
static mr_status take_block(mr_kv_cache *c, mr_kv_run *run, size_t i, uint64_t name, size_t n) {
    block *b = find(c, name);
    mr_status e = MR_OK;
    if (b && !whole(c, b) && !pinned(b)) {
        e = remove_block(c, b);
        b = NULL;
    }
    if (b && b->taken == run && pinned(b))
        return mr_fail(MR_INVALID_ARGUMENT, "names[%zu]: %016llx is given twice", i,
                       (unsigned long long)name);
    if (b && !whole(c, b))
        return mr_fail(MR_LIMIT, "names[%zu]: another request is writing this block", i);
    if (e == MR_OK && b)
        n = on(b, n) ? n : b->owner;
    else if (e == MR_OK && (e = make_room(c, n)) == MR_OK)
        e = place_block(c, name, n, &b);
    if (e != MR_OK)
        return e;
    b->uses++;
    b->taken = run;
    pin(c, b, n);
    run->at[i].block = b;
    run->at[i].node = n;
    c->stats.made += b->written == 0;
    c->stats.reused += b->written != 0;
    return MR_OK;
}

static void let_go(mr_kv_run *run) {
    mr_kv_cache *c = run->c;
    for (size_t i = 0; i < run->blocks; i++)
        if (run->at[i].block) {
            run->at[i].block->last = ++c->clock;
            unpin(c, run->at[i].block, run->at[i].node);
        }
}

/* What nobody will write any more. */
static mr_status drop_unwritten(mr_kv_run *run) {
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < run->blocks; i++) {
        block *b = run->at[i].block;
        if (b && !whole(run->c, b) && !pinned(b))
            e = remove_block(run->c, b);
    }
    return e;
}

mr_status mr_kv_cache_begin(mr_kv_cache *c, const uint64_t *names, size_t blocks, uint64_t tokens,
                            size_t output, mr_kv_run **out) {
    if (!c || !names || !out || !blocks || !tokens || blocks > UINT32_MAX || output > UINT32_MAX)
        return mr_fail(MR_INVALID_ARGUMENT, "cache: %zu blocks, %llu tokens", blocks,
                       (unsigned long long)tokens);
    uint32_t share[MR_KV_NODES];
    mr_kv_run *run = calloc(1, sizeof *run);
    if (run)
        run->at = calloc(blocks + output, sizeof *run->at);
    if (!run || !run->at) {
        free(run);
        return mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    }
    run->c = c;
    run->tokens = tokens;
    run->blocks = blocks;
    run->output = output;
    mr_status e = plan_run(c, run, names, share);
    mr_kv_sources sources = {{0}};
    /* first the blocks that are here, so that making room does not evict them */
    for (size_t i = 0; e == MR_OK && i < run->plan.reuse; i++) {
        const block *b = find(c, names[i]);
        size_t n = mr_kv_next_source(&sources, b->where, mr_kv_members(&run->plan));
        e = take_block(c, run, i, names[i], n);
    }
    size_t turn = 0, kept = 0;
    for (size_t i = run->plan.reuse; e == MR_OK && i < blocks; i++)
        e = take_block(c, run, i, names[i], next_home(c, &run->plan, share, &turn));
    for (; e == MR_OK && kept < output; kept += e == MR_OK)
        if ((e = make_room(c, run->plan.root)) == MR_OK)
            c->node[run->plan.root].reserved++;
    if (e == MR_OK)
        e = relieve(c);
    if (e != MR_OK) {
        char why[256];
        strncpy(why, mr_last_error(), sizeof why - 1);
        why[sizeof why - 1] = 0;
        let_go(run);
        drop_unwritten(run);
        c->node[run->plan.root].reserved -= kept;
        free_run(run);
        return mr_fail(e, "%s", why);
    }
    c->node[run->plan.root].decode_tokens += tokens;
    run->next = c->runs;
    c->runs = run;
    *out = run;
    return MR_OK;
}

mr_status mr_kv_cache_append(mr_kv_run *run, uint64_t name) {
    mr_kv_cache *c = run->c;
    size_t root = run->plan.root;
    if (!run->output)
        return mr_fail(MR_LIMIT, "the request has made all the blocks it said it would");
    c->node[root].reserved--;
    mr_status e = take_block(c, run, run->blocks, name, root);
    if (e != MR_OK) {
        c->node[root].reserved++;
        return e;
    }
    run->output--;
    run->blocks++;
    return MR_OK;
}

mr_status mr_kv_cache_end(mr_kv_run *run) {
    mr_kv_cache *c = run->c;
    mr_kv_run **at = &c->runs;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    let_go(run);
    mr_status e = drop_unwritten(run);
    c->node[run->plan.root].reserved -= run->output;
    c->node[run->plan.root].decode_tokens -= run->tokens;
    free_run(run);
    return e;
}

const mr_kv_plan *mr_kv_run_plan(const mr_kv_run *run) { return &run->plan; }
size_t mr_kv_run_blocks(const mr_kv_run *run) { return run->blocks; }
bool mr_kv_run_whole(const mr_kv_run *run, size_t b) { return whole(run->c, run->at[b].block); }
size_t mr_kv_run_node(const mr_kv_run *run, size_t b) { return run->at[b].node; }

/* ---- data -------------------------------------------------------------------------------------
 */

static mr_status check(const mr_kv_run *run, size_t b, size_t layer) {
    if (b >= run->blocks || layer >= run->c->o.layers)
        return mr_fail(MR_INVALID_ARGUMENT, "block %zu of %zu, layer %zu of %zu", b, run->blocks,
                       layer, run->c->o.layers);
    return MR_OK;
}

static mr_nic_call access(const mr_kv_run *run, mr_nic_kind kind, size_t b, size_t layer) {
    mr_nic_call call = mr_nic_call_init(kind, run->c->o.job);
    call.layer = (uint16_t)layer;
    call.block = run->at[b].block->id;
    call.bytes = run->c->o.layer_bytes;
    return call;
}

mr_status mr_kv_run_write(mr_kv_run *run, size_t b, size_t layer, const void *data) {
    mr_kv_cache *c = run->c;
    mr_status e = check(run, b, layer);
    if (e != MR_OK)
        return e;
    block *to = run->at[b].block;
    if (layer != to->written)
        return mr_fail(MR_INVALID_ARGUMENT,
                       "layer %zu of block %zu: layers are written once and in "
                       "order, this is the turn of %zu",
                       layer, b, to->written);
    mr_nic_call call = access(run, MR_NIC_KV_WRITE, b, layer);
    uint8_t root = rank(c, run->plan.root);
    call.send = data;
    e = mr_nic_run(c->o.nic, &root, &call, 1);
    to->written += e == MR_OK;
    return e;
}

mr_status mr_kv_run_read(mr_kv_run *run, size_t n, size_t b, size_t layer, void *data) {
    mr_kv_cache *c = run->c;
    mr_status e = check(run, b, layer);
    if (e != MR_OK || n >= c->o.nodes)
        return e != MR_OK ? e : mr_fail(MR_INVALID_ARGUMENT, "node: %zu of %zu", n, c->o.nodes);
    const block *from = run->at[b].block;
    if (layer >= from->written)
        return mr_fail(MR_NOT_FOUND, "layer %zu of block %zu is not written", layer, b);
    if (on(from, n))
        return mr_nic_kv_peek(c->o.nic, rank(c, n), c->o.job, (uint16_t)layer, from->id, 0, data,
                              c->o.layer_bytes);
    mr_nic_call call = access(run, MR_NIC_KV_READ, b, layer);
    uint8_t reader = rank(c, n);
    call.recv = data;
    return mr_nic_run(c->o.nic, &reader, &call, 1);
}

static mr_status replicate(mr_kv_cache *c, block *b, size_t n) {
    mr_status e = MR_OK;
    size_t done = 0;
    for (; e == MR_OK && done < c->o.layers; done += e == MR_OK)
        e = mr_nic_kv_replicate(c->o.nic, c->o.job, (uint16_t)done, b->id, rank(c, n));
    if (e != MR_OK) {
        char why[256];
        strncpy(why, mr_last_error(), sizeof why - 1);
        why[sizeof why - 1] = 0;
        while (done--)
            mr_nic_kv_drop(c->o.nic, c->o.job, (uint16_t)done, b->id, rank(c, n));
        return mr_fail(e, "%s", why);
    }
    b->where |= (mr_kv_set)1 << n;
    c->node[n].copies++;
    c->stats.copies++;
    c->stats.replicas++;
    return MR_OK;
}

/* Room for a replica; false, nothing changed, when there is none that it may have. */
static bool replica_room(mr_kv_cache *c, size_t n, mr_kv_keep keep, mr_status *e) {
    while (*e == MR_OK && full(c, n)) {
        block *b = victim(c, n, true);
        if (!b && keep == MR_KV_KEEP)
            b = victim(c, n, false);
        if (!b)
            return false;
        *e = evict(c, b, n);
    }
    return *e == MR_OK;
}

mr_status mr_kv_run_spread(mr_kv_run *run) {
    mr_kv_cache *c = run->c;
    mr_status e = MR_OK;
    for (size_t i = 0; e == MR_OK && i < run->plan.reuse; i++) {
        block *b = run->at[i].block;
        seen s;
        const mr_kv_view *view = look(c, &s);
        size_t to = c->o.policy->spread(view, b->where, b->uses);
        if (to >= c->o.nodes || on(b, to))
            continue;
        mr_kv_spare spare = {.node = to, .uses = b->uses};
        mr_kv_keep keep = c->o.policy->keep(view, &spare);
        if (keep != MR_KV_NO && replica_room(c, to, keep, &e))
            e = replicate(c, b, to);
    }
    return e;
}

void mr_kv_cache_get_stats(const mr_kv_cache *c, mr_kv_cache_stats *stats) { *stats = c->stats; }
