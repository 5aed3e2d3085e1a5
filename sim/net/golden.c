/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of golden NICs behind the switch model. A golden NIC takes no time: what it sends is in
 * front of its cable in the cycle of what caused it.
 */
#include <stdlib.h>
#include <string.h>

#include <millrace/nic_frame.h>

#include "host/nic/link.h"
#include "sim/net/golden.h"
#include "sim/net/switch.h"

enum { TICK = 64 }; /* cycles between two looks at the timers */

typedef struct {
    mr_switch_frame *head, **tail;
} queue;

typedef struct golden_link golden_link;

typedef struct {
    golden_link *link;
    mr_golden_tables tables;
    queue out;          /* to the cable, or to capture() */
    queue host, events; /* to the host */
    bool paused;
} node;

struct golden_link {
    mr_nic_link base;
    mr_nic_link_options o;
    mr_switch *sw; /* NULL: open */
    uint64_t now;
    size_t seen; /* frames and events for hosts, and captured frames, ever */
    bool broken; /* out of memory somewhere */
    node nodes[];
};

static golden_link *of(const mr_nic_link *l) { return (golden_link *)(uintptr_t)l; }

/* ---- queues ---------------------------------------------------------------------------------- */

static void append(queue *q, mr_switch_frame *f) {
    f->next = NULL;
    *q->tail = f;
    q->tail = &f->next;
}

static mr_switch_frame *first(queue *q) {
    mr_switch_frame *f = q->head;
    q->head = f->next;
    if (!q->head)
        q->tail = &q->head;
    return f;
}

static void put(golden_link *g, queue *q, unsigned port, const void *data, size_t bytes) {
    mr_switch_frame *f = malloc(sizeof *f + bytes);
    if (!f) {
        g->broken = true;
        return;
    }
    f->port = port;
    f->bytes = bytes;
    memcpy(f->data, data, bytes);
    append(q, f);
}

static void on_send(void *context, int port, const uint8_t *frame, size_t bytes) {
    node *n = context;
    put(n->link, &n->out, (unsigned)port, frame, bytes);
    n->link->seen += n->link->o.open;
}

static void on_deliver(void *context, const uint8_t *frame, size_t bytes) {
    node *n = context;
    put(n->link, &n->host, 0, frame, bytes);
    n->link->seen += !n->paused;
}

static void on_event(void *context, const uint8_t event[64]) {
    node *n = context;
    put(n->link, &n->events, 0, event, 64);
    n->link->seen += !n->paused;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static mr_status check(golden_link *g, unsigned rank) {
    if (rank >= g->o.nodes)
        return g->o.fail(MR_INVALID_ARGUMENT, "rank %u: the link has %u NICs", rank, g->o.nodes);
    return g->broken ? g->o.fail(MR_OUT_OF_MEMORY, "golden NICs: out of memory") : MR_OK;
}

static mr_status check_frame(golden_link *g, unsigned rank, size_t bytes) {
    mr_status e = check(g, rank);
    if (e == MR_OK && !bytes)
        e = g->o.fail(MR_INVALID_ARGUMENT, "a frame of no bytes");
    return e;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void golden_close(mr_nic_link *l) {
    golden_link *g = of(l);
    if (!g)
        return;
    for (unsigned i = 0; i < g->o.nodes; i++) {
        node *n = &g->nodes[i];
        queue *queues[] = {&n->out, &n->host, &n->events};
        for (int q = 0; q < 3; q++)
            while (queues[q]->head)
                free(first(queues[q]));
        mr_golden_tables_free(&n->tables);
    }
    mr_switch_destroy(g->sw);
    free(g);
}

static unsigned golden_nodes(const mr_nic_link *l) { return of(l)->o.nodes; }

static mr_status golden_send(mr_nic_link *l, unsigned rank, const uint8_t *frame, size_t bytes) {
    golden_link *g = of(l);
    mr_status e = check_frame(g, rank, bytes);
    if (e != MR_OK)
        return e;
    mr_gnic_rx(g->nodes[rank].tables.nic, MR_GNIC_HOST, frame, bytes);
    return check(g, rank);
}

static mr_status take(golden_link *g, queue *q, unsigned *port, uint8_t *frame, size_t cap,
                      size_t *bytes) {
    *bytes = 0;
    if (!q->head)
        return MR_OK;
    if (q->head->bytes > cap)
        return g->o.fail(MR_INVALID_ARGUMENT, "a frame of %zu bytes, room for %zu", q->head->bytes,
                         cap);
    mr_switch_frame *f = first(q);
    memcpy(frame, f->data, f->bytes);
    *bytes = f->bytes;
    if (port)
        *port = f->port;
    free(f);
    return MR_OK;
}

static mr_status golden_recv(mr_nic_link *l, unsigned rank, uint8_t *frame, size_t cap,
                             size_t *bytes) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    *bytes = 0;
    if (e != MR_OK || g->nodes[rank].paused)
        return e;
    return take(g, &g->nodes[rank].host, NULL, frame, cap, bytes);
}

static mr_status golden_event(mr_nic_link *l, unsigned rank, uint8_t *event, bool *got) {
    golden_link *g = of(l);
    size_t bytes = 0;
    mr_status e = check(g, rank);
    if (e == MR_OK && !g->nodes[rank].paused)
        e = take(g, &g->nodes[rank].events, NULL, event, MR_NIC_EVENT_BYTES, &bytes);
    *got = bytes != 0;
    return e;
}

static mr_status golden_inject(mr_nic_link *l, unsigned rank, unsigned port, const uint8_t *frame,
                               size_t bytes) {
    golden_link *g = of(l);
    mr_status e = check_frame(g, rank, bytes);
    if (e != MR_OK)
        return e;
    if (!g->o.open || port > 1)
        return g->o.fail(MR_UNSUPPORTED, "inject: port %u of a link %s", port,
                         g->o.open ? "with ports 0 and 1" : "with a switch");
    mr_gnic_rx(g->nodes[rank].tables.nic, (int)port, frame, bytes);
    return check(g, rank);
}

static mr_status golden_capture(mr_nic_link *l, unsigned rank, unsigned *port, uint8_t *frame,
                                size_t cap, size_t *bytes) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    *bytes = 0;
    if (e != MR_OK)
        return e;
    if (!g->o.open)
        return g->o.fail(MR_UNSUPPORTED, "capture: the link has a switch");
    return take(g, &g->nodes[rank].out, port, frame, cap, bytes);
}

static mr_status golden_command(mr_nic_link *l, unsigned rank, const uint8_t *descs, size_t n) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    for (size_t i = 0; i < n && e == MR_OK; i++)
        e = mr_golden_command(&g->nodes[rank].tables, descs + i * MR_NIC_DESC_BYTES, g->o.fail);
    return e;
}

static mr_status golden_counter(mr_nic_link *l, unsigned rank, unsigned index, uint64_t *value) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    if (e != MR_OK)
        return e;
    if (index >= MR_NIC_COUNTERS)
        return g->o.fail(MR_INVALID_ARGUMENT, "counter %u: there are %d", index, MR_NIC_COUNTERS);
    *value = mr_gnic_counters(g->nodes[rank].tables.nic)[index];
    return MR_OK;
}

static mr_status memory(golden_link *g, unsigned rank, uint64_t addr, size_t bytes, uint8_t **at) {
    size_t size;
    mr_status e = check(g, rank);
    if (e != MR_OK)
        return e;
    uint8_t *p = mr_gnic_kv_memory(g->nodes[rank].tables.nic, &size);
    if (addr > size || bytes > size - addr)
        return g->o.fail(MR_INVALID_ARGUMENT, "KV memory: %zu bytes at %llu are not inside %zu",
                         bytes, (unsigned long long)addr, size);
    *at = p + addr;
    return MR_OK;
}

static mr_status golden_kv_read(mr_nic_link *l, unsigned rank, uint64_t addr, void *dst,
                                size_t bytes) {
    uint8_t *p;
    mr_status e = memory(of(l), rank, addr, bytes, &p);
    if (e == MR_OK && bytes)
        memcpy(dst, p, bytes);
    return e;
}

static mr_status golden_kv_write(mr_nic_link *l, unsigned rank, uint64_t addr, const void *src,
                                 size_t bytes) {
    uint8_t *p;
    mr_status e = memory(of(l), rank, addr, bytes, &p);
    if (e == MR_OK && bytes)
        memcpy(p, src, bytes);
    return e;
}

static uint64_t golden_kv_bytes(const mr_nic_link *l) {
    return (uint64_t)of(l)->o.memory_mib << 20;
}

/* What NICs have for their cables goes into the switch. False: something must wait. */
static bool pump(golden_link *g) {
    bool all = true;
    for (unsigned i = 0; i < g->o.nodes; i++) {
        queue *q = &g->nodes[i].out;
        while (q->head && mr_switch_ready(g->sw, i) <= g->now) {
            mr_switch_frame *f = first(q);
            if (f->port == 0) { /* network port 1 is not connected */
                mr_switch_sent(g->sw, i, f->bytes, g->now);
                if (!mr_switch_put(g->sw, i, f->data, f->bytes, g->now))
                    g->broken = true;
            }
            free(f);
        }
        all = all && !q->head;
    }
    return all;
}

/* The next moment in which something may happen, at most `end`. */
static uint64_t next_moment(const golden_link *g, uint64_t end) {
    uint64_t next = (g->now / TICK + 1) * TICK, t;
    if (mr_switch_next(g->sw, &t) && t < next)
        next = t;
    for (unsigned i = 0; i < g->o.nodes; i++)
        if (g->nodes[i].out.head && (t = mr_switch_ready(g->sw, i)) < next)
            next = t;
    if (next <= g->now)
        next = g->now + 1;
    return next < end ? next : end;
}

static void tick(golden_link *g) {
    for (unsigned i = 0; i < g->o.nodes; i++)
        mr_gnic_tick(g->nodes[i].tables.nic, g->now);
}

static mr_status golden_run(mr_nic_link *l, uint64_t most) {
    golden_link *g = of(l);
    uint64_t end = g->now + most;
    size_t before = g->seen;
    if (g->o.open) {
        g->now = end;
        tick(g);
        return check(g, 0);
    }
    while (!g->broken && g->now < end && g->seen == before) {
        pump(g);
        g->now = next_moment(g, end);
        tick(g);
        mr_switch_frame *f;
        while ((f = mr_switch_take(g->sw, g->now))) {
            mr_gnic_rx(g->nodes[f->port].tables.nic, MR_GNIC_NET0, f->data, f->bytes);
            free(f);
        }
    }
    return check(g, 0);
}

static uint64_t golden_cycles(const mr_nic_link *l) { return of(l)->now; }

static bool golden_idle(const mr_nic_link *l) {
    const golden_link *g = of(l);
    uint64_t t;
    for (unsigned i = 0; i < g->o.nodes && g->sw; i++)
        if (g->nodes[i].out.head)
            return false;
    return !g->sw || !mr_switch_next(g->sw, &t);
}

static mr_status golden_cut(mr_nic_link *l, unsigned rank, bool off) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    if (e == MR_OK && g->sw)
        mr_switch_cut(g->sw, rank, off);
    return e;
}

static mr_status golden_pause(mr_nic_link *l, unsigned rank, bool paused) {
    golden_link *g = of(l);
    mr_status e = check(g, rank);
    if (e == MR_OK)
        g->nodes[rank].paused = paused;
    return e;
}

static void golden_wire(const mr_nic_link *l, mr_nic_wire *out) {
    static const mr_nic_wire none;
    *out = of(l)->sw ? *mr_switch_stats(of(l)->sw) : none;
}

static mr_status golden_streams(mr_nic_link *l, unsigned rank, mr_nic_stream out[MR_NIC_STREAMS]) {
    (void)rank, (void)out;
    return of(l)->o.fail(MR_UNSUPPORTED, "a golden NIC has no streams");
}

static mr_status golden_reg_read(mr_nic_link *l, unsigned rank, uint32_t offset, uint32_t *value) {
    (void)rank, (void)offset, (void)value;
    return of(l)->o.fail(MR_UNSUPPORTED, "a golden NIC has no registers");
}

/* ---- life ------------------------------------------------------------------------------------ */

static const mr_nic_link_ops golden_ops = {
    .close = golden_close,
    .nodes = golden_nodes,
    .send = golden_send,
    .recv = golden_recv,
    .inject = golden_inject,
    .capture = golden_capture,
    .event = golden_event,
    .command = golden_command,
    .counter = golden_counter,
    .kv_read = golden_kv_read,
    .kv_write = golden_kv_write,
    .kv_bytes = golden_kv_bytes,
    .run = golden_run,
    .cycles = golden_cycles,
    .idle = golden_idle,
    .cut = golden_cut,
    .pause_host = golden_pause,
    .wire = golden_wire,
    .streams = golden_streams,
    .reg_read = golden_reg_read,
};

mr_status mr_golden_link_open(const mr_nic_link_options *o, mr_nic_link **link) {
    golden_link *g = calloc(1, sizeof *g + o->nodes * sizeof(node));
    if (!g)
        return o->fail(MR_OUT_OF_MEMORY, "golden NICs: out of memory");
    g->base.ops = &golden_ops;
    g->o = *o;
    g->o.trace = NULL;
    bool ok = true;
    for (unsigned i = 0; i < o->nodes; i++) {
        node *n = &g->nodes[i];
        queue *queues[] = {&n->out, &n->host, &n->events};
        for (int q = 0; q < 3; q++)
            queues[q]->tail = &queues[q]->head;
        n->link = g;
        const mr_gnic_outputs outputs = {n, on_send, on_deliver, on_event};
        ok = mr_golden_tables_init(&n->tables, &outputs, (size_t)o->memory_mib << 8) && ok;
    }
    if (ok && !o->open) {
        g->sw = mr_switch_of(o);
        ok = g->sw;
    }
    if (!ok) {
        golden_close(&g->base);
        return o->fail(MR_OUT_OF_MEMORY, "golden NICs: out of memory");
    }
    *link = &g->base;
    return MR_OK;
}
