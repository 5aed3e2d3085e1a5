/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off: a table */
/*
 * The way to a cluster of NICs: one table of operations, whoever implements it.
 *
 * A link holds `nodes` NICs, numbered from 0; the operations call that number `rank`, which it is
 * where the tables say nothing else. Network port 0 of each is on one port of a switch, network
 * port 1 is not connected. Every NIC has its own host side: a frame stream in each direction, an
 * event stream, a command port and KV memory. Links are opened by
 *
 *   golden?KEY=VALUE&...    golden NICs (models/golden/nic.h) and the switch model, in this process
 *   sim:nic?KEY=VALUE&...   Verilated NICs (rtl/kernels/nic_kernel.sv) and the same switch model
 *
 *   nodes=N        1..64 golden, 1..16 simulated                                   (default 1)
 *   seed=N         seeds every random decision of the switch, and of the simulator (default 1)
 *   loss=P dup=P reorder=P corrupt=P   probability of each fault a frame, 0..1     (default 0)
 *   stall=P        probability that a switch port pauses after a frame, 0..1       (default 0)
 *   latency=N      cycles a frame spends on the cable and in the switch            (default 100)
 *   bandwidth=B    bytes a cycle of every cable, 1..64                             (default 50)
 *   open=1         no switch: network frames go in by inject() and come out by capture()
 *   memory=MIB     KV memory of a NIC, 1..1048576                                  (default 64)
 *   trace=FILE xinit=zero|ones|random   sim:nic, debug build only: FST waveform, initial values
 *
 * The same options and the same calls give the same run, cycle by cycle. A link is used by one
 * thread at a time. Failing calls set mr_last_error() (error.h). After MR_DEVICE_LOST, which an
 * assertion of the RTL or the end of the simulator is, every further call returns MR_DEVICE_LOST.
 */
/* clang-format on */
#ifndef HOST_NIC_PORT_H
#define HOST_NIC_PORT_H

#include <millrace/millrace.h>
#include <millrace/nic_desc.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MR_NIC_FRAME_MAX = 9216, /* bytes of the longest frame that a NIC keeps */
    MR_NIC_EVENT_BYTES = 64
};

/* What the switch did, over all ports, since the link was opened. */
typedef struct mr_nic_wire {
    uint64_t frames, bytes; /* that NICs sent into the switch */
    uint64_t delivered;     /* that left the switch to a NIC */
    uint64_t lost, duplicated, reordered, corrupted, stalls;
    uint64_t fcs;     /* dropped by the link's FCS: damage that no checksum of the frame covers */
    uint64_t flooded; /* destination unknown: sent to every other port */
    uint64_t full;    /* dropped because a port's queue was full */
    uint64_t refused; /* dropped because they would go back to where they came from */
} mr_nic_wire;

/* One stream of one simulated NIC since it was asked for last: what the bench measures. */
typedef enum mr_nic_stream_id {
    MR_NIC_IN0,
    MR_NIC_IN1,
    MR_NIC_IN_HOST,
    MR_NIC_OUT0,
    MR_NIC_OUT1,
    MR_NIC_OUT_HOST,
    MR_NIC_STREAMS
} mr_nic_stream_id;

typedef struct mr_nic_stream {
    uint64_t frames, beats;
    uint64_t first, last; /* cycles of the first and the last beat, where there are any */
    uint64_t waits;       /* cycles with a beat that was not taken */
} mr_nic_stream;

typedef struct mr_nic_link mr_nic_link;

typedef struct mr_nic_link_ops {
    void (*close)(mr_nic_link *l); /* NULL is allowed */
    unsigned (*nodes)(const mr_nic_link *l);

    /* Frames from and to the host of NIC `rank`: whole Ethernet frames without FCS. send() copies;
     * it never waits: frames queue in front of the NIC. recv(): *bytes is 0 when none is there; a
     * frame longer than `cap` stays and is MR_INVALID_ARGUMENT. */
    mr_status (*send)(mr_nic_link *l, unsigned rank, const uint8_t *frame, size_t bytes);
    mr_status (*recv)(mr_nic_link *l, unsigned rank, uint8_t *frame, size_t cap, size_t *bytes);

    /* The network side of a link without a switch (open=1), ports 0 and 1: a frame into NIC `rank`,
     * and the oldest frame that it sent, whatever the port. MR_UNSUPPORTED on other links. */
    mr_status (*inject)(mr_nic_link *l, unsigned rank, unsigned port, const uint8_t *frame,
                        size_t bytes);
    mr_status (*capture)(mr_nic_link *l, unsigned rank, unsigned *port, uint8_t *frame, size_t cap,
                         size_t *bytes);

    /* The oldest event, MR_NIC_EVENT_BYTES bytes; *got tells whether there was one. */
    mr_status (*event)(mr_nic_link *l, unsigned rank, uint8_t *event, bool *got);

    /* Executes `n` descriptors (nic_desc.h, MR_NIC_DESC_BYTES each) in order; all of them have
     * taken effect on return. Simulated time passes as on a board. The link fills in the kv_base of
     * OPTIONS descriptors: page 0 is the start of its KV memory. */
    mr_status (*command)(mr_nic_link *l, unsigned rank, const uint8_t *descs, size_t n);

    /* The counter with this index (MR_NIC_CNT_*, names in mr_nic_counter_names). */
    mr_status (*counter)(mr_nic_link *l, unsigned rank, unsigned index, uint64_t *value);

    /* KV memory of NIC `rank`; addr counts from its start (page 0). No simulated time passes. */
    mr_status (*kv_read)(mr_nic_link *l, unsigned rank, uint64_t addr, void *dst, size_t bytes);
    mr_status (*kv_write)(mr_nic_link *l, unsigned rank, uint64_t addr, const void *src,
                          size_t bytes);
    uint64_t (*kv_bytes)(const mr_nic_link *l); /* size of the KV memory of one NIC */

    /* Advances time by `most` cycles, or less: it returns soon after (within a switch latency) a
     * frame or an event reached any host, or a frame an open port. A link to a board returns at
     * once. */
    mr_status (*run)(mr_nic_link *l, uint64_t most);
    uint64_t (*cycles)(const mr_nic_link *l); /* since the link was opened */

    /* Is nothing on its way: no frame in the switch, in a NIC or in front of one? Parked
     * contributions and slots that wait for more of them do not count, nor do running timers. */
    bool (*idle)(const mr_nic_link *l);

    /* Faults by hand: `rank` is cut off the switch (frames to and from it are lost), or on again;
     * its host side stops taking frames and events (paused), or goes on. */
    mr_status (*cut)(mr_nic_link *l, unsigned rank, bool off);
    mr_status (*pause_host)(mr_nic_link *l, unsigned rank, bool paused);

    void (*wire)(const mr_nic_link *l, mr_nic_wire *out);

    /* Simulated NICs only, else MR_UNSUPPORTED: the streams of a NIC, forgetting them; and a
     * register of its s_axi_control. */
    mr_status (*streams)(mr_nic_link *l, unsigned rank, mr_nic_stream out[MR_NIC_STREAMS]);
    mr_status (*reg_read)(mr_nic_link *l, unsigned rank, uint32_t offset, uint32_t *value);
} mr_nic_link_ops;

/* Every implementation's first member. */
struct mr_nic_link {
    const mr_nic_link_ops *ops;
};

/* The address of rank 0..255 that a link's users give it by default, and the switch knows without
 * having heard it: MAC 02:00:00:00:00:RR, IPv4 10.0.0.0 + rank + 1, UDP port 19794. */
void mr_nic_default_address(unsigned rank, uint8_t mac[6], uint32_t *ip, uint16_t *port);

/* Opens a link by the text above. MR_INVALID_ARGUMENT names the option; MR_UNAVAILABLE says why
 * the simulator cannot be used here. */
mr_status mr_nic_link_open(const char *uri, mr_nic_link **link);

/* Is the simulator of the NIC there? MR_UNAVAILABLE says why not. */
mr_status mr_nic_sim_there(void);

#ifdef __cplusplus
}
#endif
#endif
