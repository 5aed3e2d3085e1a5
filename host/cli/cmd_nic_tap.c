/* SPDX-License-Identifier: Apache-2.0 */
/* millrace nic tap */
#include "host/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/cli/nic.h"
#include "host/cli/pcap.h"
#include "host/cli/tap.h"
#include "host/core/error.h"
#include "host/nic/apply.h"

enum {
    ROOM = 1 << 16,
    AT_ONCE = 16,  /* frames from the interface between two looks at what came out */
    SLICE = 64,    /* cycles */
    SLEEP_MS = 2,  /* while nothing is on its way; the NIC's clock goes on slowly, for its timers */
    MIN_FRAME = 60 /* what an Ethernet MAC pads to */
};

typedef struct {
    const char *config, *device, *interface, *host_out;
    size_t rank, rto, slot_timeout;
    double seconds;
    bool json;
} request;

typedef struct {
    const request *r;
    mr_nic_config config;
    const mr_nic_node_row *self;
    mr_nic_link *link;
    int fd;
    cli_pcap to_host;
    bool host_open;
    uint64_t in, out, delivered, events, arp, refused;
    uint8_t frame[ROOM];
} tap;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static mr_status start(tap *t) {
    const request *r = t->r;
    const mr_nic_settings settings = {.rank = (uint8_t)r->rank,
                                      .rto = (uint32_t)r->rto,
                                      .slot_timeout = (uint32_t)r->slot_timeout};
    mr_status e = mr_nic_config_load(r->config, &t->config);
    if (e != MR_OK)
        return e;
    t->self = mr_nic_config_node(&t->config, (unsigned)r->rank);
    if (!t->self)
        return mr_fail(MR_INVALID_ARGUMENT, "--rank %zu: %s has no such node", r->rank, r->config);
    e = cli_nic_open(r->device, "open=1", &t->config, (unsigned)r->rank, &t->link);
    if (e == MR_OK)
        e = mr_nic_apply(t->link, 0, &t->config, &settings);
    if (e == MR_OK && r->host_out)
        t->host_open = (e = cli_pcap_create(r->host_out, true, &t->to_host)) == MR_OK;
    return e == MR_OK ? tap_open(r->interface, &t->fd) : e;
}

/* To the interface; one that is down takes nothing, as a cable that is not plugged in. */
static void put(tap *t, const uint8_t *frame, size_t bytes) {
    if (write(t->fd, frame, bytes) == (ssize_t)bytes)
        t->out++;
    else
        t->refused++;
}

/* Takes what is at the interface; false when there was nothing. */
static mr_status take(tap *t, bool *any) {
    *any = false;
    for (int i = 0; i < AT_ONCE; i++) {
        uint8_t reply[MIN_FRAME];
        ssize_t n = read(t->fd, t->frame, sizeof t->frame);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return MR_OK;
        if (n <= 0)
            return mr_fail(MR_IO_ERROR, "nic tap: the interface %s is gone: %s", t->r->interface,
                           n ? strerror(errno) : "end of file");
        *any = true;
        if (tap_arp(t->frame, (size_t)n, t->self->mac, t->self->ip, reply)) {
            t->arp++;
            put(t, reply, sizeof reply);
            continue;
        }
        if (n < MIN_FRAME)
            memset(t->frame + n, 0, (size_t)(MIN_FRAME - n));
        t->in++;
        mr_status e = t->link->ops->inject(t->link, 0, 0, t->frame,
                                           n < MIN_FRAME ? (size_t)MIN_FRAME : (size_t)n);
        if (e != MR_OK)
            return e;
    }
    return MR_OK;
}

static mr_status give(tap *t) {
    const mr_nic_link_ops *ops = t->link->ops;
    uint8_t event[MR_NIC_EVENT_BYTES];
    size_t bytes;
    unsigned port;
    bool got;
    mr_status e;
    while ((e = ops->capture(t->link, 0, &port, t->frame, sizeof t->frame, &bytes)) == MR_OK &&
           bytes)
        if (port == 0)
            put(t, t->frame, bytes);
    while (e == MR_OK && (e = ops->recv(t->link, 0, t->frame, sizeof t->frame, &bytes)) == MR_OK &&
           bytes) {
        t->delivered++;
        if (t->host_open)
            e = cli_pcap_write(&t->to_host, wall_ns(), t->frame, bytes);
    }
    while (e == MR_OK && (e = ops->event(t->link, 0, event, &got)) == MR_OK && got)
        t->events++;
    return e;
}

static mr_status serve(tap *t) {
    double end = t->r->seconds > 0 ? now() + t->r->seconds : 0;
    mr_status e = MR_OK;
    while (e == MR_OK && !cli_stop && (end == 0 || now() < end)) {
        bool any = false;
        e = take(t, &any);
        if (e == MR_OK && !any && t->link->ops->idle(t->link)) {
            struct pollfd p = {.fd = t->fd, .events = POLLIN};
            poll(&p, 1, SLEEP_MS);
        }
        if (e == MR_OK)
            e = t->link->ops->run(t->link, SLICE);
        if (e == MR_OK)
            e = give(t);
    }
    return e;
}

static int report(tap *t) {
    json_t *counters;
    mr_status e = cli_nic_counters(t->link, 0, &counters);
    if (e == MR_OK && t->host_open) {
        t->host_open = false;
        e = mr_file_commit(&t->to_host.file);
    }
    if (e != MR_OK)
        return cli_fail(e);
    json_t *j = json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:I}", "device", cli_json_text(t->r->device),
        "interface", cli_json_text(t->r->interface), "frames_in", (json_int_t)t->in, "frames_out",
        (json_int_t)t->out, "refused", (json_int_t)t->refused, "arp_replies", (json_int_t)t->arp,
        "delivered", (json_int_t)t->delivered, "events", (json_int_t)t->events, "counters",
        counters, "cycles", (json_int_t)t->link->ops->cycles(t->link));
    if (t->r->json)
        return cli_print_json(j);
    json_decref(j);
    printf("%" PRIu64 " frames from %s, %" PRIu64 " to it, %" PRIu64 " ARP replies, %" PRIu64
           " frames for the host\n",
           t->in, t->r->interface, t->out, t->arp, t->delivered);
    return cli_flush();
}

int cli_nic_tap(int argc, char **argv) {
    request r = {.device = "sim:nic", .interface = "millrace0", .rto = 8192};
    cli_option options[] = {
        {.name = "rank",
         .kind = CLI_COUNT,
         .value = &r.rank,
         .hint = "R",
         .help = "the NIC's rank in the configuration",
         .most = 255,
         .required = true},
        {.name = "config",
         .kind = CLI_TEXT,
         .value = &r.config,
         .hint = "FILE",
         .help = "nodes, jobs and KV entries, JSON",
         .required = true},
        {.name = "interface",
         .kind = CLI_TEXT,
         .value = &r.interface,
         .hint = "NAME",
         .help = "the TAP interface, made if need be (millrace0)"},
        {.name = "device",
         .kind = CLI_TEXT,
         .value = &r.device,
         .hint = "URI",
         .help = "sim:nic or golden (sim:nic)"},
        {.name = "host-out",
         .kind = CLI_TEXT,
         .value = &r.host_out,
         .hint = "D.pcap",
         .help = "frames to the own host"},
        {.name = "rto",
         .kind = CLI_COUNT,
         .value = &r.rto,
         .hint = "CYCLES",
         .help = "until a result is sent again, 0 never (8192)",
         .most = 4294967295.0},
        {.name = "slot-timeout",
         .kind = CLI_COUNT,
         .value = &r.slot_timeout,
         .hint = "CYCLES",
         .help = "for the contributions to a slot, 0 never (0)",
         .most = 4294967295.0},
        {.name = "seconds",
         .kind = CLI_REAL,
         .value = &r.seconds,
         .hint = "S",
         .help = "end after this time, 0 at a signal (0)",
         .most = 1e9},
        {.name = "json", .kind = CLI_FLAG, .value = &r.json, .help = "print one JSON object"},
        {.name = NULL}};
    int code =
        cli_parse("nic tap", "Puts one NIC behind a Linux TAP interface.", options, argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    tap *t = calloc(1, sizeof *t);
    if (!t)
        return cli_error(CLI_FAILED, "out of memory");
    t->r = &r;
    t->fd = -1;
    mr_status e = start(t);
    if (e == MR_OK && !r.json) {
        printf("rank %zu is at %s\n", r.rank, r.interface);
        fflush(stdout);
    }
    if (e == MR_OK)
        e = serve(t);
    code = e == MR_OK ? report(t) : cli_fail(e);
    if (t->host_open)
        mr_file_abandon(&t->to_host.file);
    if (t->fd >= 0)
        close(t->fd);
    if (t->link)
        t->link->ops->close(t->link);
    mr_nic_config_free(&t->config);
    free(t);
    return code;
}
