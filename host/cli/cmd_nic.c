/* SPDX-License-Identifier: Apache-2.0 */
/* millrace nic replay */
#include "host/cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/nic_frame.h>

#include "host/cli/nic.h"
#include "host/cli/pcap.h"
#include "host/core/error.h"
#include "host/nic/apply.h"

enum { SLICE = 32, PATIENCE = 4 << 20, FRAME_ROOM = 1 << 18 };

typedef struct {
    const char *config, *in, *out, *host_in, *host_out, *device;
    size_t rank;
    bool json;
} request;

/* What the command holds while it runs. */
typedef struct {
    const request *r;
    mr_nic_config config;
    cli_frames net, host;
    cli_pcap to_net, to_host;
    bool net_open, host_open;
    mr_nic_link *link;
    uint8_t *frame; /* FRAME_ROOM bytes */
} replay;

static void end(replay *p) {
    if (p->net_open)
        mr_file_abandon(&p->to_net.file);
    if (p->host_open)
        mr_file_abandon(&p->to_host.file);
    if (p->link)
        p->link->ops->close(p->link);
    cli_pcap_free(&p->net);
    cli_pcap_free(&p->host);
    mr_nic_config_free(&p->config);
    free(p->frame);
}

mr_status cli_nic_open(const char *device, const char *more, const mr_nic_config *c, unsigned rank,
                       mr_nic_link **link) {
    char uri[1024], room[32] = "";
    uint64_t mib = (mr_nic_config_pages(c, rank) + 255) / 256;
    if (mib > 64) /* more than a link has by itself */
        snprintf(room, sizeof room, "&memory=%" PRIu64, mib);
    if (snprintf(uri, sizeof uri, "%s%c%s%s", device, strchr(device, '?') ? '&' : '?', more,
                 room) >= (int)sizeof uri)
        return mr_fail(MR_INVALID_ARGUMENT, "the device's name is too long");
    return mr_nic_link_open(uri, link);
}

static mr_status start(replay *p) {
    const request *r = p->r;
    const mr_nic_settings settings = {.rank = (uint8_t)r->rank}; /* timers off, no chain */
    mr_status e = mr_nic_config_load(r->config, &p->config);
    if (e == MR_OK && !mr_nic_config_node(&p->config, (unsigned)r->rank))
        e = mr_fail(MR_INVALID_ARGUMENT, "--rank %zu: %s has no such node", r->rank, r->config);
    if (e == MR_OK)
        e = cli_pcap_load(r->in, &p->net);
    if (e == MR_OK && r->host_in)
        e = cli_pcap_load(r->host_in, &p->host);
    if (e == MR_OK)
        p->net_open = (e = cli_pcap_create(r->out, p->net.nano, &p->to_net)) == MR_OK;
    if (e == MR_OK && r->host_out)
        p->host_open = (e = cli_pcap_create(r->host_out, p->net.nano, &p->to_host)) == MR_OK;
    if (e == MR_OK)
        e = cli_nic_open(r->device, "open=1", &p->config, (unsigned)r->rank, &p->link);
    if (e == MR_OK)
        e = mr_nic_apply(p->link, 0, &p->config, &settings);
    return e;
}

/* Takes all that the NIC has sent, delivered and told. */
static mr_status drain(replay *p, uint64_t time) {
    const mr_nic_link_ops *ops = p->link->ops;
    uint8_t event[MR_NIC_EVENT_BYTES];
    size_t bytes = 0;
    unsigned port;
    bool got = false;
    mr_status e;
    while ((e = ops->capture(p->link, 0, &port, p->frame, FRAME_ROOM, &bytes)) == MR_OK && bytes)
        if ((e = cli_pcap_write(&p->to_net, time, p->frame, bytes)) != MR_OK)
            return e;
    while (e == MR_OK && (e = ops->recv(p->link, 0, p->frame, FRAME_ROOM, &bytes)) == MR_OK &&
           bytes)
        if (p->host_open && (e = cli_pcap_write(&p->to_host, time, p->frame, bytes)) != MR_OK)
            return e;
    while (e == MR_OK && (e = ops->event(p->link, 0, event, &got)) == MR_OK && got)
        ;
    return e;
}

/* One frame, from its last byte in to the last byte of what it causes. */
static mr_status feed(replay *p, const cli_frame *f, bool from_host) {
    const mr_nic_link_ops *ops = p->link->ops;
    uint64_t start = ops->cycles(p->link);
    mr_status e = from_host ? ops->send(p->link, 0, f->data, f->bytes)
                            : ops->inject(p->link, 0, 0, f->data, f->bytes);
    if (e == MR_OK)
        e = drain(p, f->time);
    while (e == MR_OK && !ops->idle(p->link)) {
        if (cli_stop)
            return mr_fail(MR_CANCELLED, "interrupted");
        if (ops->cycles(p->link) - start > PATIENCE)
            return mr_fail(MR_DEVICE_ERROR, "the NIC is still busy %d cycles after a frame",
                           PATIENCE);
        e = ops->run(p->link, SLICE);
        if (e == MR_OK)
            e = drain(p, f->time);
    }
    return e;
}

static mr_status feed_all(replay *p) {
    size_t n = 0, h = 0;
    mr_status e = MR_OK;
    while (e == MR_OK && (n < p->net.count || h < p->host.count)) {
        bool host = n == p->net.count ||
                    (h < p->host.count && p->host.frames[h].time < p->net.frames[n].time);
        e = cli_stop ? mr_fail(MR_CANCELLED, "interrupted")
                     : feed(p, host ? &p->host.frames[h] : &p->net.frames[n], host);
        h += host;
        n += !host;
    }
    return e;
}

static mr_status commit(replay *p) {
    /* A disk that is full for the second must not leave the first behind. */
    mr_status e = mr_file_flush(&p->to_net.file);
    if (e == MR_OK && p->host_open)
        e = mr_file_flush(&p->to_host.file);
    if (e != MR_OK)
        return e;
    p->net_open = false;
    e = mr_file_commit(&p->to_net.file);
    if (e == MR_OK && p->host_open) {
        p->host_open = false;
        e = mr_file_commit(&p->to_host.file);
    }
    return e;
}

mr_status cli_nic_counters(mr_nic_link *l, unsigned rank, json_t **out) {
    json_t *all = json_object();
    mr_status e = MR_OK;
    for (unsigned i = 0; i < MR_NIC_COUNTERS && e == MR_OK; i++) {
        uint64_t v = 0;
        e = l->ops->counter(l, rank, i, &v);
        json_object_set_new(all, mr_nic_counter_name(i), json_integer((json_int_t)v));
    }
    if (e == MR_OK)
        *out = all;
    else
        json_decref(all);
    return e;
}

static int report(replay *p, bool golden) {
    json_t *counters = NULL;
    uint64_t cycles = p->link->ops->cycles(p->link);
    mr_status e = cli_nic_counters(p->link, 0, &counters);
    if (e == MR_OK)
        e = commit(p);
    if (e != MR_OK) {
        json_decref(counters);
        return cli_fail(e);
    }
    if (p->r->json)
        return cli_print_json(json_pack("{s:o, s:o, s:o}", "device", cli_json_text(p->r->device),
                                        "counters", counters, "cycles",
                                        json_integer((json_int_t)(golden ? 0 : cycles))));
    const char *name;
    json_t *value;
    printf("%zu frames from the network, %zu from the host; wrote %s\n", p->net.count,
           p->host.count, p->r->out);
    json_object_foreach(counters, name, value) if (json_integer_value(value))
        printf("%-18s %" JSON_INTEGER_FORMAT "\n", name, json_integer_value(value));
    json_decref(counters);
    if (!golden)
        printf("%-18s %" PRIu64 "\n", "cycles", cycles);
    return cli_flush();
}

int cli_nic_replay(int argc, char **argv) {
    request r = {.device = "sim:nic"};
    cli_option options[] = {
        {"rank", CLI_COUNT, &r.rank, "R", "the NIC's rank in the configuration", 0, 255, true, 0},
        {"config", CLI_TEXT, &r.config, "FILE", "nodes, jobs and KV entries, JSON", 0, 0, true, 0},
        {"in", CLI_TEXT, &r.in, "A.pcap", "frames from the network", 0, 0, true, 0},
        {"out", CLI_TEXT, &r.out, "B.pcap", "frames that the NIC sends", 0, 0, true, 0},
        {"host-in", CLI_TEXT, &r.host_in, "C.pcap", "frames from the own host", 0, 0, false, 0},
        {"host-out", CLI_TEXT, &r.host_out, "D.pcap", "frames to the own host", 0, 0, false, 0},
        {"device", CLI_TEXT, &r.device, "URI", "sim:nic or golden (sim:nic)", 0, 0, false, 0},
        {"json", CLI_FLAG, &r.json, NULL, "print one JSON object", 0, 0, false, 0},
        {0}};
    int code = cli_parse("nic replay", "Gives captured frames to one NIC, one at a time.", options,
                         argc, argv);
    if (code != CLI_OK)
        return code < 0 ? cli_flush() : code;
    if (r.host_out && !strcmp(r.out, r.host_out))
        return cli_error(CLI_USAGE, "nic replay: --out and --host-out are the same file");
    replay p = {.r = &r, .frame = malloc(FRAME_ROOM)};
    mr_status e = p.frame ? start(&p) : mr_fail(MR_OUT_OF_MEMORY, "out of memory");
    if (e == MR_OK)
        e = feed_all(&p);
    code = e == MR_OK ? report(&p, !strncmp(r.device, "golden", 6)) : cli_fail(e);
    end(&p);
    return code;
}
