/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When frames arrive: full-duplex links and switches with FIFO queues at every egress. Time only,
 * no data; the twin of the network simulation's switch, and the network of the serving study.
 *
 * Endpoints hang on leaf switches, `group` endpoints a leaf; where there is more than one leaf, the
 * leaves hang on one spine. Every direction of every cable is one link: a queue, a rate, a delay.
 *
 *     endpoint --host link--> leaf --trunk--> spine --trunk--> leaf --host link--> endpoint
 *
 * Exact rules, in ticks (the caller decides what a tick is: a clock cycle, a picosecond):
 *  - a frame of B bytes holds a link for ceil(B * ticks / bytes) ticks, one frame at a time;
 *  - frames waiting for a link leave in the order in which they became ready there, class 0 before
 *    class 1, never interrupting the frame that is on the link;
 *  - what is put on a link reaches its far end `latency` ticks later;
 *  - store-and-forward: a frame is ready at the next link when its last byte is in, plus
 *    switch_latency; cut-through: when its first `cut_bytes` are in, plus switch_latency, and the
 *    frame then holds the next link at least until its last byte has come through the switch;
 *  - of frames of one class that become ready at one tick the first sent comes first.
 *
 * A send does not return the arrival: a frame sent later by another endpoint may reach the shared
 * egress first. Arrivals are taken from mr_net_poll in the order of time instead, which makes them
 * exact. The same calls give the same answers on every machine.
 *
 * Unloaded latency through one switch, S = ceil(B * ticks / bytes) on equal links:
 *    store-and-forward 2 S + 2 latency + switch_latency
 *    cut-through       S + ceil(cut * ticks / bytes) + 2 latency + switch_latency
 */
#ifndef MODELS_CYCLE_NETWORK_H
#define MODELS_CYCLE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mr_net mr_net;

/* `bytes` in `ticks`: 64 bytes in 1 cycle, or 1 byte in 80 picoseconds for 100 Gbit/s. */
typedef struct {
    uint32_t bytes, ticks; /* 1 .. 2^32-1 */
    uint64_t latency;      /* of the cable, ticks; < 2^48 */
} mr_net_link;

typedef struct {
    size_t endpoints;        /* 1 .. 4,096 */
    size_t group;            /* endpoints a leaf switch; 0: all on one */
    mr_net_link host, trunk; /* trunk is read where there is more than one leaf */
    uint64_t switch_latency; /* ticks; < 2^48 */
    bool cut_through;
    uint32_t cut_bytes; /* cut-through: bytes a switch must have; at least 1 */
} mr_net_config;

/* Classes of traffic. */
enum { MR_NET_URGENT = 0, MR_NET_BULK = 1, MR_NET_CLASSES = 2 };

typedef struct {
    uint64_t sent, time; /* when it was given to the first link; when its last byte is there */
    uint64_t tag;        /* the sender's */
    uint64_t bytes;
    uint32_t src, dst;
} mr_net_delivery;

typedef struct {
    uint64_t sent_frames, sent_bytes, received_frames, received_bytes; /* of the endpoint */
    uint64_t out_busy, in_busy; /* ticks its two host links were held */
    uint64_t in_peak;           /* most bytes in the queue of the link towards it */
} mr_net_count;

/* What the network refuses, as a sentence; NULL when it is sound. */
const char *mr_net_config_error(const mr_net_config *config);

/* NULL: the configuration is refused, or no memory. */
mr_net *mr_net_create(const mr_net_config *config);
void mr_net_destroy(mr_net *net);

/*
 * Gives the network a frame at time `t`, not before mr_net_now(). 1 <= bytes < 2^40. False, with
 * nothing sent: t is past, an endpoint does not exist, src is dst, bytes or class is out of range,
 * or no memory.
 */
bool mr_net_send(mr_net *net, size_t src, size_t dst, uint64_t bytes, uint64_t t, int klass,
                 uint64_t tag);

/*
 * Works up to time `until`, inclusive, and stops at the first arrival: true, *out is it, and now is
 * its time. False: nothing more arrives by then, and now is `until`. Call until false.
 */
bool mr_net_poll(mr_net *net, uint64_t until, mr_net_delivery *out);

/* The time of the next thing that happens in the network; false when it is empty. */
bool mr_net_next(const mr_net *net, uint64_t *t);

uint64_t mr_net_now(const mr_net *net);
size_t mr_net_in_flight(const mr_net *net); /* frames sent and not yet delivered */
mr_net_count mr_net_counters(const mr_net *net, size_t endpoint);

/* ceil(bytes * ticks / bytes of the link): how long a frame holds it. */
uint64_t mr_net_hold(const mr_net_link *link, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
