/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One heap of events in the order (time, number); numbers grow, so that nothing depends on the
 * heap's shape. A frame is ready at a link (READY), a link can take its next frame (FREE), or a
 * frame has arrived (ARRIVE). FREE is in the heap only while the link's queue has something.
 */
#include "models/cycle/network.h"

#include <stdlib.h>

enum { READY, FREE, ARRIVE };
enum { NONE = UINT32_MAX };
#define LATE                                                                                       \
    ((uint64_t)1 << 63) /* a link looks at its queue after all that is ready at that tick */

typedef struct {
    uint64_t bytes, sent, tag;
    uint64_t last_in; /* when its last byte is at the input of the link it waits for */
    uint64_t number;  /* order of sending, for ties */
    uint32_t src, dst;
    uint32_t next;      /* in a queue, or in the list of unused frames */
    uint32_t link, hop; /* where it is ready */
    uint32_t klass;
} frame;

typedef struct {
    uint64_t time, number;
    uint32_t what, index; /* a frame, or a link for FREE */
} event;

typedef struct {
    const mr_net_link *rate;
    uint64_t free_at, busy, waiting, peak;
    uint32_t head[MR_NET_CLASSES], tail[MR_NET_CLASSES];
    bool armed; /* a FREE event is in the heap */
} link_state;

struct mr_net {
    mr_net_config config;
    size_t leaves;
    link_state *link; /* up[endpoints], down[endpoints], trunk up[leaves], trunk down[leaves] */
    frame *frames;
    size_t frame_room, in_flight;
    uint32_t unused;
    event *heap;
    size_t events, event_room;
    uint64_t now, numbers;
    mr_net_count *count;
};

/* ---- links and paths --------------------------------------------------------------------------
 */

uint64_t mr_net_hold(const mr_net_link *link, uint64_t bytes) {
    unsigned __int128 ticks = (unsigned __int128)bytes * link->ticks + (link->bytes - 1);
    return (uint64_t)(ticks / link->bytes);
}

static size_t leaf_of(const mr_net *net, size_t endpoint) {
    return net->leaves == 1 ? 0 : endpoint / net->config.group;
}

/* The link of hop 0, 1, ... on the way; hops are 2 in one leaf and 4 through the spine. */
static uint32_t link_at(const mr_net *net, const frame *f, uint32_t hop) {
    size_t n = net->config.endpoints, from = leaf_of(net, f->src), to = leaf_of(net, f->dst);
    if (hop == 0)
        return f->src;
    if (from == to || hop == 3)
        return (uint32_t)(n + f->dst);
    return (uint32_t)(hop == 1 ? 2 * n + from : 2 * n + net->leaves + to);
}

static bool last_hop(const mr_net *net, const frame *f) {
    return f->hop == (leaf_of(net, f->src) == leaf_of(net, f->dst) ? 1u : 3u);
}

static const char *link_error(const mr_net_link *l, const char *zero, const char *late) {
    return !l->bytes || !l->ticks ? zero : l->latency >> 48 ? late : NULL;
}

const char *mr_net_config_error(const mr_net_config *c) {
    if (c->endpoints < 1 || c->endpoints > 4096)
        return "endpoints: must be 1 to 4096";
    if (c->group && c->group < c->endpoints) {
        const char *e = link_error(&c->trunk, "trunk: bytes and ticks must be at least 1",
                                   "trunk: latency must be below 2^48");
        if (e)
            return e;
    }
    if (c->switch_latency >> 48)
        return "switch_latency: must be below 2^48";
    if (c->cut_through && !c->cut_bytes)
        return "cut_bytes: must be at least 1";
    return link_error(&c->host, "host: bytes and ticks must be at least 1",
                      "host: latency must be below 2^48");
}

/* ---- the heap ---------------------------------------------------------------------------------
 */

static bool before(const event *a, const event *b) {
    return a->time < b->time || (a->time == b->time && a->number < b->number);
}

/* Room for `more` events, so that what follows a send cannot fail. */
static bool heap_reserve(mr_net *net, size_t more) {
    if (net->events + more <= net->event_room)
        return true;
    size_t room = 2 * net->event_room + more + 64;
    event *heap = realloc(net->heap, room * sizeof *heap);
    if (!heap)
        return false;
    net->heap = heap;
    net->event_room = room;
    return true;
}

static void push(mr_net *net, uint64_t time, uint64_t number, uint32_t what, uint32_t index) {
    event e = {time, number, what, index};
    size_t i = net->events++;
    for (; i && before(&e, &net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        net->heap[i] = net->heap[(i - 1) / 2];
    net->heap[i] = e;
}

static event pop(mr_net *net) {
    event top = net->heap[0], last = net->heap[--net->events];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < net->events; i = child) {
        if (child + 1 < net->events && before(&net->heap[child + 1], &net->heap[child]))
            child++;
        if (!before(&net->heap[child], &last))
            break;
        net->heap[i] = net->heap[child];
    }
    net->heap[i] = last;
    return top;
}

/* ---- what happens -----------------------------------------------------------------------------
 */

/* Frame `index` takes link `l` at time `t`; when it is ready at the next one follows from that. */
static void start(mr_net *net, link_state *l, uint32_t index, uint64_t t) {
    frame *f = &net->frames[index];
    const mr_net_config *c = &net->config;
    uint64_t end = t + mr_net_hold(l->rate, f->bytes);
    if (end < f->last_in) /* a fast link behind a slow one waits for the last byte */
        end = f->last_in;
    l->free_at = end;
    l->busy += end - t;
    uint64_t last = end + l->rate->latency;
    if (last_hop(net, f)) {
        push(net, last, f->number, ARRIVE, index);
        return;
    }
    f->last_in = last + c->switch_latency;
    uint64_t ready = f->last_in;
    if (c->cut_through) {
        uint64_t cut = f->bytes < c->cut_bytes ? f->bytes : c->cut_bytes;
        uint64_t first = t + mr_net_hold(l->rate, cut) + l->rate->latency + c->switch_latency;
        ready = first < ready ? first : ready;
    }
    f->hop++;
    f->link = link_at(net, f, f->hop);
    push(net, ready, f->number, READY, index);
}

static void ready(mr_net *net, uint32_t index, uint64_t t) {
    frame *f = &net->frames[index];
    link_state *l = &net->link[f->link];
    f->next = NONE;
    if (l->head[f->klass] == NONE)
        l->head[f->klass] = index;
    else
        net->frames[l->tail[f->klass]].next = index;
    l->tail[f->klass] = index;
    l->waiting += f->bytes;
    if (l->waiting > l->peak)
        l->peak = l->waiting;
    if (!l->armed) {
        l->armed = true;
        push(net, t > l->free_at ? t : l->free_at, LATE | net->numbers++, FREE, f->link);
    }
}

static void freed(mr_net *net, link_state *l, uint64_t t) {
    int k = l->head[MR_NET_URGENT] != NONE ? MR_NET_URGENT : MR_NET_BULK;
    uint32_t index = l->head[k];
    l->head[k] = net->frames[index].next;
    l->waiting -= net->frames[index].bytes;
    l->armed = false;
    start(net, l, index, t);
    if (l->head[MR_NET_URGENT] != NONE || l->head[MR_NET_BULK] != NONE) {
        l->armed = true;
        push(net, l->free_at, LATE | net->numbers++, FREE, (uint32_t)(l - net->link));
    }
}

static void arrived(mr_net *net, uint32_t index, uint64_t t, mr_net_delivery *out) {
    frame *f = &net->frames[index];
    *out = (mr_net_delivery){f->sent, t, f->tag, f->bytes, f->src, f->dst};
    net->count[f->dst].received_frames++;
    net->count[f->dst].received_bytes += f->bytes;
    f->next = net->unused;
    net->unused = index;
    net->in_flight--;
}

bool mr_net_poll(mr_net *net, uint64_t until, mr_net_delivery *out) {
    while (net->events && net->heap[0].time <= until) {
        event e = pop(net);
        net->now = e.time;
        if (e.what == READY)
            ready(net, e.index, e.time);
        else if (e.what == FREE)
            freed(net, &net->link[e.index], e.time);
        else {
            arrived(net, e.index, e.time, out);
            return true;
        }
    }
    if (until > net->now)
        net->now = until;
    return false;
}

bool mr_net_next(const mr_net *net, uint64_t *t) {
    if (net->events)
        *t = net->heap[0].time;
    return net->events != 0;
}

/* ---- sending ----------------------------------------------------------------------------------
 */

static uint32_t new_frame(mr_net *net) {
    if (net->unused == NONE) {
        size_t room = net->frame_room ? 2 * net->frame_room : 256;
        frame *frames = room < NONE ? realloc(net->frames, room * sizeof *frames) : NULL;
        if (!frames)
            return NONE;
        for (size_t i = net->frame_room; i < room; i++)
            frames[i].next = i + 1 < room ? (uint32_t)(i + 1) : NONE;
        net->unused = (uint32_t)net->frame_room;
        net->frames = frames;
        net->frame_room = room;
    }
    uint32_t index = net->unused;
    net->unused = net->frames[index].next;
    return index;
}

bool mr_net_send(mr_net *net, size_t src, size_t dst, uint64_t bytes, uint64_t t, int klass,
                 uint64_t tag) {
    size_t n = net->config.endpoints;
    if (t < net->now || src >= n || dst >= n || src == dst || !bytes || bytes >> 40 ||
        (unsigned)klass >= MR_NET_CLASSES)
        return false;
    /* a frame has one event at most, a link one */
    if (!heap_reserve(net, net->in_flight + 1 + 2 * (n + net->leaves) - net->events + 2))
        return false;
    uint32_t index = new_frame(net);
    if (index == NONE)
        return false;
    net->frames[index] = (frame){.bytes = bytes,
                                 .sent = t,
                                 .tag = tag,
                                 .last_in = t,
                                 .number = net->numbers++,
                                 .src = (uint32_t)src,
                                 .dst = (uint32_t)dst,
                                 .next = NONE,
                                 .link = (uint32_t)src,
                                 .klass = (uint32_t)klass};
    net->in_flight++;
    net->count[src].sent_frames++;
    net->count[src].sent_bytes += bytes;
    push(net, t, net->frames[index].number, READY, index);
    return true;
}

/* ---- life -------------------------------------------------------------------------------------
 */

mr_net *mr_net_create(const mr_net_config *c) {
    if (mr_net_config_error(c))
        return NULL;
    mr_net *net = calloc(1, sizeof *net);
    if (!net)
        return NULL;
    size_t n = c->endpoints;
    net->config = *c;
    net->leaves = c->group && c->group < n ? (n + c->group - 1) / c->group : 1;
    net->unused = NONE;
    net->link = calloc(2 * (n + net->leaves), sizeof *net->link);
    net->count = calloc(n, sizeof *net->count);
    if (!net->link || !net->count) {
        mr_net_destroy(net);
        return NULL;
    }
    for (size_t i = 0; i < 2 * (n + net->leaves); i++) {
        net->link[i].rate = i < 2 * n ? &net->config.host : &net->config.trunk;
        for (int k = 0; k < MR_NET_CLASSES; k++)
            net->link[i].head[k] = net->link[i].tail[k] = NONE;
    }
    return net;
}

void mr_net_destroy(mr_net *net) {
    if (!net)
        return;
    free(net->link);
    free(net->count);
    free(net->frames);
    free(net->heap);
    free(net);
}

uint64_t mr_net_now(const mr_net *net) { return net->now; }
size_t mr_net_in_flight(const mr_net *net) { return net->in_flight; }

mr_net_count mr_net_counters(const mr_net *net, size_t endpoint) {
    mr_net_count c = net->count[endpoint];
    c.out_busy = net->link[endpoint].busy;
    c.in_busy = net->link[net->config.endpoints + endpoint].busy;
    c.in_peak = net->link[net->config.endpoints + endpoint].peak;
    return c;
}
