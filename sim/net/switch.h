/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switch of the simulated network, with the faults of a bad one. The data that its timing-only
 * twin, models/cycle/network.h, has not: that model says when a frame arrives, this one what.
 *
 * Every port is a full-duplex cable to one NIC. A frame is put whole, at the cycle of its last
 * beat, and is there whole at the cycle that the timing model says (store-and-forward, one FIFO at
 * every egress; preamble, FCS and gap count as 24 bytes more). A destination MAC that is not known
 * goes to every other port; source addresses are not learned, since a burst may have hit them.
 *
 * Faults, each with a probability a frame and destination:
 *   loss     the frame is gone
 *   dup      it comes a second time, up to 2,048 cycles later
 *   reorder  it is delayed by up to 4,096 cycles, so that later ones overtake it
 *   corrupt  three times in four one burst of at most 15 bits in the IPv4 header or the UDP
 * datagram of a frame with a UDP checksum, which the checksums always show; else the damage is
 *            wider, or where no checksum sees it, and the link's FCS drops the frame
 *   stall    the ingress pauses for up to 256 cycles after the frame: mr_switch_ready() says when
 * it ends The same calls with the same seed give the same run.
 */
#ifndef SIM_NET_SWITCH_H
#define SIM_NET_SWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/nic/link.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MR_SWITCH_OVERHEAD = 24, MR_SWITCH_QUEUE = 4 << 20 }; /* bytes; of an egress */

typedef struct mr_switch mr_switch;

typedef struct mr_switch_options {
    unsigned ports; /* 1..64 */
    double loss, dup, reorder, corrupt, stall;
    uint32_t latency;   /* cycles */
    uint32_t bandwidth; /* bytes a cycle */
    uint64_t seed;
} mr_switch_options;

/* A frame on its way, in a queue. */
typedef struct mr_switch_frame {
    struct mr_switch_frame *next;
    unsigned port;  /* where it comes out */
    uint64_t cycle; /* when it is there */
    size_t bytes;
    uint8_t data[];
} mr_switch_frame;

/* NULL: no memory, or options out of range. The second one is that of a link: a port for each NIC,
 * and the default addresses known. */
mr_switch *mr_switch_create(const mr_switch_options *o);
mr_switch *mr_switch_of(const mr_nic_link_options *o);
void mr_switch_destroy(mr_switch *s);

/* Frames to `mac` leave by `port`; a later call for the same MAC counts. False: no memory. */
bool mr_switch_address(mr_switch *s, const uint8_t mac[6], unsigned port);

/* The cable's side of sending, which nothing but the port's own frames act on: the first cycle in
 * which the NIC at this port may send (it must not while its cable is full or stalled), and the
 * last beat of a frame in cycle `now`. */
uint64_t mr_switch_ready(const mr_switch *s, unsigned port);
void mr_switch_sent(mr_switch *s, unsigned port, size_t bytes, uint64_t now);

/* The same frame into the switch; `now` never goes back over all calls. False: no memory. A frame
 * comes out later than mr_switch_latency() cycles after `now`. */
bool mr_switch_put(mr_switch *s, unsigned port, const uint8_t *frame, size_t bytes, uint64_t now);
uint32_t mr_switch_latency(const mr_switch *s);

/* The next frame that is there at cycle `until` or before; NULL when there is none. The caller
 * frees it. */
mr_switch_frame *mr_switch_take(mr_switch *s, uint64_t until);

/* The first cycle from which mr_switch_take may have something; false when the switch is empty. */
bool mr_switch_next(const mr_switch *s, uint64_t *cycle);

/* Frames to and from this port are lost, or no longer. */
void mr_switch_cut(mr_switch *s, unsigned port, bool off);

const mr_nic_wire *mr_switch_stats(const mr_switch *s);

#ifdef __cplusplus
}
#endif
#endif
