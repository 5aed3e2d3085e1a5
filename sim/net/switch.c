/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/net/switch.h"

#include <stdlib.h>
#include <string.h>

#include "models/cycle/network.h"

enum {
    MAX_PORTS = 64,
    BURST = 15,         /* bits that a 16-bit ones' complement sum always shows */
    DUP_DELAY = 2048,   /* cycles, longest */
    ORDER_DELAY = 4096, /* cycles, longest */
    STALL = 256,        /* cycles, longest */
    CABLE_QUEUE = 16384 /* bytes a NIC may have in front of its cable */
};

typedef struct {
    uint8_t mac[6];
    uint8_t port;
} address;

struct mr_switch {
    mr_switch_options o;
    mr_net *net;
    uint64_t random, stall_random[MAX_PORTS];
    mr_switch_frame **frames; /* by tag; NULL where unused */
    size_t room, unused;      /* where to look for an unused one */
    address *known;
    size_t num_known;
    bool cut[MAX_PORTS];
    uint64_t paused[MAX_PORTS];     /* until this cycle */
    uint64_t cable_free[MAX_PORTS]; /* when the cable has taken all that was put */
    uint64_t waiting[MAX_PORTS];    /* bytes on their way to the port */
    mr_nic_wire stats;
};

/* SplitMix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint64_t draw(mr_switch *s) { return next_random(&s->random); }

static bool happens(uint64_t *state, double p) {
    return p > 0 && (double)(next_random(state) >> 11) * 0x1p-53 < p;
}

static bool chance(mr_switch *s, double p) { return happens(&s->random, p); }

/* ---- checksums ------------------------------------------------------------------------------- */

static uint32_t sum16(const uint8_t *p, size_t bytes, uint32_t sum) {
    for (size_t i = 0; i < bytes; i++)
        sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xFFFF) + (sum >> 16);
    return sum;
}

/* Where a frame's IPv4 header and UDP datagram are; false when it has none with a checksum. */
static bool covered(const uint8_t *f, size_t bytes, size_t *ip, size_t *udp, size_t *end) {
    if (bytes < 14)
        return false;
    *ip = f[12] == 0x81 && f[13] == 0x00 ? 18 : 14;
    if (bytes < *ip + 20 || f[*ip - 2] != 0x08 || f[*ip - 1] != 0x00 || f[*ip] >> 4 != 4 ||
        f[*ip + 9] != 17)
        return false;
    *udp = *ip + 4u * (f[*ip] & 15);
    if (*udp < *ip + 20 || *udp + 8 > bytes)
        return false;
    *end = *udp + ((size_t)f[*udp + 4] << 8 | f[*udp + 5]);
    return *end >= *udp + 8 && *end <= bytes && (f[*udp + 6] || f[*udp + 7]);
}

/* Do both checksums hold, or is the second one absent? */
static bool sound(const uint8_t *f, size_t bytes) {
    size_t ip, udp, end;
    if (!covered(f, bytes, &ip, &udp, &end))
        return false;
    uint32_t pseudo = sum16(f + ip + 12, 8, 17 + (uint32_t)(end - udp));
    return sum16(f + ip, udp - ip, 0) == 0xFFFF && sum16(f + udp, end - udp, pseudo) == 0xFFFF;
}

/* One burst where the checksums see it. False: there is no such place, or the burst wiped out the
 * checksum itself; the frame is then not to be delivered. */
static bool damage(mr_switch *s, uint8_t *f, size_t bytes) {
    size_t ip, udp, end;
    if (!sound(f, bytes) || !covered(f, bytes, &ip, &udp, &end))
        return false;
    uint64_t r = draw(s);
    unsigned width = 1 + (unsigned)(r % BURST);
    uint32_t flips = (uint32_t)(r >> 16 & ((1u << width) - 1)) | 1 | 1u << (width - 1);
    size_t first = ip * 8 + (size_t)(draw(s) % ((end - ip) * 8 - width + 1));
    for (unsigned i = 0; i < width; i++)
        if (flips >> i & 1)
            f[(first + i) / 8] ^= (uint8_t)(0x80 >> (first + i) % 8);
    return (f[udp + 6] || f[udp + 7]) && !sound(f, bytes);
}

/* ---- life ------------------------------------------------------------------------------------ */

mr_switch *mr_switch_create(const mr_switch_options *o) {
    mr_net_config c = {.endpoints = o->ports, .host = {.bytes = o->bandwidth, .ticks = 1}};
    if (!o->ports || o->ports > MAX_PORTS || mr_net_config_error(&c))
        return NULL;
    mr_switch *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->o = *o;
    s->random = o->seed;
    for (unsigned i = 0; i < MAX_PORTS; i++)
        s->stall_random[i] = draw(s);
    s->net = mr_net_create(&c);
    if (!s->net) {
        free(s);
        return NULL;
    }
    return s;
}

mr_switch *mr_switch_of(const mr_nic_link_options *o) {
    const mr_switch_options so = {.ports = o->nodes,
                                  .loss = o->loss,
                                  .dup = o->dup,
                                  .reorder = o->reorder,
                                  .corrupt = o->corrupt,
                                  .stall = o->stall,
                                  .latency = o->latency,
                                  .bandwidth = o->bandwidth,
                                  .seed = o->seed};
    mr_switch *s = mr_switch_create(&so);
    for (unsigned i = 0; s && i < o->nodes; i++) {
        uint8_t mac[6];
        uint32_t ip;
        uint16_t port;
        mr_nic_default_address(i, mac, &ip, &port);
        if (!mr_switch_address(s, mac, i)) {
            mr_switch_destroy(s);
            s = NULL;
        }
    }
    return s;
}

void mr_switch_destroy(mr_switch *s) {
    if (!s)
        return;
    for (size_t i = 0; i < s->room; i++)
        free(s->frames[i]);
    free(s->frames);
    free(s->known);
    mr_net_destroy(s->net);
    free(s);
}

bool mr_switch_address(mr_switch *s, const uint8_t mac[6], unsigned port) {
    size_t i = 0;
    while (i < s->num_known && memcmp(s->known[i].mac, mac, 6) != 0)
        i++;
    if (i == s->num_known) {
        address *known = realloc(s->known, (i + 1) * sizeof *known);
        if (!known)
            return false;
        s->known = known;
        s->num_known++;
        memcpy(known[i].mac, mac, 6);
    }
    s->known[i].port = (uint8_t)port;
    return true;
}

void mr_switch_cut(mr_switch *s, unsigned port, bool off) { s->cut[port] = off; }
uint32_t mr_switch_latency(const mr_switch *s) { return s->o.latency; }
const mr_nic_wire *mr_switch_stats(const mr_switch *s) { return &s->stats; }

/* ---- frames ---------------------------------------------------------------------------------- */

uint64_t mr_switch_ready(const mr_switch *s, unsigned port) {
    uint64_t queue = CABLE_QUEUE / s->o.bandwidth, free_at = s->cable_free[port];
    uint64_t room = free_at > queue ? free_at - queue : 0;
    return room > s->paused[port] ? room : s->paused[port];
}

static bool keep(mr_switch *s, mr_switch_frame *f, size_t *tag) {
    while (s->unused < s->room && s->frames[s->unused])
        s->unused++;
    if (s->unused == s->room) {
        size_t room = s->room ? 2 * s->room : 256;
        mr_switch_frame **frames = realloc(s->frames, room * sizeof(*frames));
        if (!frames)
            return false;
        memset(frames + s->room, 0, (room - s->room) * sizeof(*frames));
        s->frames = frames;
        s->room = room;
    }
    *tag = s->unused;
    s->frames[*tag] = f;
    return true;
}

static bool copy_out(mr_switch *s, unsigned from, unsigned to, const uint8_t *frame, size_t bytes,
                     uint64_t t, bool hurt) {
    mr_switch_frame *f = malloc(sizeof *f + bytes);
    size_t tag;
    if (!f)
        return false;
    f->next = NULL;
    f->bytes = bytes;
    memcpy(f->data, frame, bytes);
    if (hurt) {
        bool narrow = draw(s) & 3;
        if (!narrow || !damage(s, f->data, bytes)) {
            s->stats.fcs++;
            free(f);
            return true;
        }
        s->stats.corrupted++;
    }
    if (!keep(s, f, &tag)) {
        free(f);
        return false;
    }
    if (!mr_net_send(s->net, from, to, bytes + MR_SWITCH_OVERHEAD, t, MR_NET_URGENT, tag)) {
        s->frames[tag] = NULL;
        free(f);
        return false;
    }
    s->waiting[to] += bytes;
    return true;
}

static bool send_to(mr_switch *s, unsigned from, unsigned to, const uint8_t *frame, size_t bytes,
                    uint64_t now) {
    if (s->cut[from] || s->cut[to] || chance(s, s->o.loss)) {
        s->stats.lost++;
        return true;
    }
    if (s->waiting[to] + bytes > MR_SWITCH_QUEUE) {
        s->stats.full++;
        return true;
    }
    /* all of the latency at the start, so that what is put in a window of that length arrives after
     * it, in whatever order the NICs of the window are worked on */
    uint64_t t = now + s->o.latency;
    if (chance(s, s->o.reorder)) {
        t += 1 + draw(s) % ORDER_DELAY;
        s->stats.reordered++;
    }
    bool twice = chance(s, s->o.dup), hurt = chance(s, s->o.corrupt);
    if (!copy_out(s, from, to, frame, bytes, t, hurt))
        return false;
    if (!twice)
        return true;
    s->stats.duplicated++;
    return copy_out(s, from, to, frame, bytes, t + draw(s) % DUP_DELAY, false);
}

void mr_switch_sent(mr_switch *s, unsigned port, size_t bytes, uint64_t now) {
    uint64_t begin = s->cable_free[port] > now ? s->cable_free[port] : now;
    s->cable_free[port] =
        begin + (bytes + MR_SWITCH_OVERHEAD + s->o.bandwidth - 1) / s->o.bandwidth;
    if (happens(&s->stall_random[port], s->o.stall)) {
        s->stats.stalls++;
        s->paused[port] = now + 1 + next_random(&s->stall_random[port]) % STALL;
    }
}

bool mr_switch_put(mr_switch *s, unsigned port, const uint8_t *frame, size_t bytes, uint64_t now) {
    s->stats.frames++;
    s->stats.bytes += bytes;
    if (bytes < 14)
        return true; /* no destination: gone */
    for (size_t i = 0; i < s->num_known; i++) {
        if (memcmp(s->known[i].mac, frame, 6) != 0)
            continue;
        if (s->known[i].port == port) {
            s->stats.refused++;
            return true;
        }
        return send_to(s, port, s->known[i].port, frame, bytes, now);
    }
    s->stats.flooded++;
    bool ok = true;
    for (unsigned to = 0; to < s->o.ports; to++)
        if (to != port)
            ok = send_to(s, port, to, frame, bytes, now) && ok;
    return ok;
}

mr_switch_frame *mr_switch_take(mr_switch *s, uint64_t until) {
    mr_net_delivery d;
    while (mr_net_poll(s->net, until, &d)) {
        mr_switch_frame *f = s->frames[d.tag];
        s->frames[d.tag] = NULL;
        if (d.tag < s->unused)
            s->unused = d.tag;
        s->waiting[d.dst] -= f->bytes;
        if (s->cut[d.dst]) {
            s->stats.lost++;
            free(f);
            continue;
        }
        s->stats.delivered++;
        f->port = d.dst;
        f->cycle = d.time;
        return f;
    }
    return NULL;
}

bool mr_switch_next(const mr_switch *s, uint64_t *cycle) { return mr_net_next(s->net, cycle); }
