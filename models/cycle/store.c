/* SPDX-License-Identifier: Apache-2.0 */
/* Copies live in one pool; each is in its block's list and, without pins, in one of the two
 * least-recently-used lists of its node: replicas, and the rest. A copy's list may be out of date
 * (its sister was evicted meanwhile): that is put right when it comes to the front. */
#include "models/cycle/store.h"

#include <stdlib.h>

enum { NONE = UINT32_MAX };

typedef struct {
    uint32_t block, pins, sister; /* the next copy of the block */
    uint32_t before, after;       /* in the node's list; after also links unused copies */
    uint8_t node, list;
} copy;

typedef struct {
    uint64_t where;
    uint32_t first, uses;
} named;

typedef struct {
    uint64_t reserved, pinned_copies, copies, peak;
    uint32_t oldest[2], newest[2];
} place;

struct mr_store {
    size_t nodes;
    uint64_t capacity, evictions;
    bool replicas_first;
    named *blocks;
    place *node;
    copy *copies;
    size_t room;
    uint32_t unused;
};

mr_store *mr_store_create(size_t nodes, size_t blocks, uint64_t capacity, bool replicas_first) {
    mr_store *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->nodes = nodes;
    s->capacity = capacity;
    s->replicas_first = replicas_first;
    /* no more copies than blocks on every node, or than there is room for */
    s->room = nodes * (capacity < blocks ? (size_t)capacity : blocks);
    s->blocks = malloc((blocks + 1) * sizeof *s->blocks);
    s->node = calloc(nodes, sizeof *s->node);
    s->copies = malloc((s->room + 1) * sizeof *s->copies);
    if (!s->blocks || !s->node || !s->copies) {
        mr_store_destroy(s);
        return NULL;
    }
    for (size_t i = 0; i < blocks; i++)
        s->blocks[i] = (named){0, NONE, 0};
    for (size_t i = 0; i < nodes; i++)
        for (int k = 0; k < 2; k++)
            s->node[i].oldest[k] = s->node[i].newest[k] = NONE;
    for (size_t i = 0; i < s->room; i++)
        s->copies[i].after = i + 1 < s->room ? (uint32_t)(i + 1) : NONE;
    s->unused = s->room ? 0 : NONE;
    return s;
}

void mr_store_destroy(mr_store *s) {
    if (!s)
        return;
    free(s->blocks);
    free(s->node);
    free(s->copies);
    free(s);
}

uint64_t mr_store_where(const mr_store *s, uint32_t block) { return s->blocks[block].where; }
uint32_t mr_store_uses(const mr_store *s, uint32_t block) { return s->blocks[block].uses; }
void mr_store_use(mr_store *s, uint32_t block) { s->blocks[block].uses++; }
uint64_t mr_store_evictions(const mr_store *s) { return s->evictions; }
uint64_t mr_store_peak(const mr_store *s, size_t node) { return s->node[node].peak; }

uint64_t mr_store_held(const mr_store *s, size_t node) {
    return s->node[node].reserved + s->node[node].copies;
}

uint64_t mr_store_pinned(const mr_store *s, size_t node) {
    return s->node[node].reserved + s->node[node].pinned_copies;
}

uint64_t mr_store_evictable(const mr_store *s, size_t node) {
    return s->node[node].copies - s->node[node].pinned_copies;
}

/* ---- the lists --------------------------------------------------------------------------------
 */

static void unlink_copy(mr_store *s, uint32_t i) {
    copy *c = &s->copies[i];
    place *p = &s->node[c->node];
    *(c->before == NONE ? &p->oldest[c->list] : &s->copies[c->before].after) = c->after;
    *(c->after == NONE ? &p->newest[c->list] : &s->copies[c->after].before) = c->before;
}

static void link_newest(mr_store *s, uint32_t i) {
    copy *c = &s->copies[i];
    place *p = &s->node[c->node];
    uint64_t where = s->blocks[c->block].where;
    c->list = !s->replicas_first || (where & (where - 1)) == 0;
    c->before = p->newest[c->list];
    c->after = NONE;
    *(c->before == NONE ? &p->oldest[c->list] : &s->copies[c->before].after) = i;
    p->newest[c->list] = i;
}

static uint32_t find(const mr_store *s, size_t node, uint32_t block) {
    uint32_t i = s->blocks[block].first;
    while (i != NONE && s->copies[i].node != node)
        i = s->copies[i].sister;
    return i;
}

static void forget(mr_store *s, uint32_t i) {
    copy *c = &s->copies[i];
    named *b = &s->blocks[c->block];
    uint32_t *at = &b->first;
    while (*at != i)
        at = &s->copies[*at].sister;
    *at = c->sister;
    b->where &= ~((uint64_t)1 << c->node);
    s->node[c->node].copies--;
    unlink_copy(s, i);
    c->after = s->unused;
    s->unused = i;
}

/* The copy that goes next; there is one. */
static uint32_t oldest(mr_store *s, size_t node) {
    place *p = &s->node[node];
    while (p->oldest[0] != NONE) {
        uint32_t i = p->oldest[0];
        uint64_t where = s->blocks[s->copies[i].block].where;
        if (where & (where - 1))
            return i;
        unlink_copy(s, i); /* its sister has gone: it counts as just used among the last copies */
        link_newest(s, i);
    }
    return p->oldest[1];
}

/* ---- room -------------------------------------------------------------------------------------
 */

bool mr_store_reserve(mr_store *s, size_t node, uint64_t count) {
    place *p = &s->node[node];
    uint64_t pinned = p->reserved + p->pinned_copies;
    if (count > s->capacity - pinned)
        return false;
    while (p->reserved + p->copies + count > s->capacity) {
        forget(s, oldest(s, node));
        s->evictions++;
    }
    p->reserved += count;
    if (p->reserved + p->copies > p->peak)
        p->peak = p->reserved + p->copies;
    return true;
}

bool mr_store_reserve_spare(mr_store *s, size_t node) {
    place *p = &s->node[node];
    if (p->reserved + p->copies >= s->capacity) {
        uint32_t i = oldest(s, node);
        if (i == NONE || s->copies[i].list != 0)
            return false;
    }
    return mr_store_reserve(s, node, 1);
}

void mr_store_release(mr_store *s, size_t node, uint64_t count) { s->node[node].reserved -= count; }

void mr_store_fill(mr_store *s, size_t node, uint32_t block, bool pin) {
    place *p = &s->node[node];
    p->reserved--;
    if (find(s, node, block) == NONE) {
        uint32_t i = s->unused;
        s->unused = s->copies[i].after;
        named *b = &s->blocks[block];
        s->copies[i] = (copy){.block = block, .node = (uint8_t)node, .sister = b->first};
        b->first = i;
        b->where |= (uint64_t)1 << node;
        p->copies++;
        link_newest(s, i);
    }
    if (pin)
        mr_store_pin(s, node, block);
}

void mr_store_pin(mr_store *s, size_t node, uint32_t block) {
    uint32_t i = find(s, node, block);
    if (s->copies[i].pins++ == 0) {
        unlink_copy(s, i);
        s->node[node].pinned_copies++;
    }
}

void mr_store_unpin(mr_store *s, size_t node, uint32_t block) {
    uint32_t i = find(s, node, block);
    if (--s->copies[i].pins == 0) {
        s->node[node].pinned_copies--;
        link_newest(s, i);
    }
}

void mr_store_drop(mr_store *s, size_t node, uint32_t block) {
    uint32_t i = find(s, node, block);
    if (i != NONE && !s->copies[i].pins)
        forget(s, i);
}
