// A cluster of Verilated NICs behind the switch model: the operations of host/nic/port.h.
//
// NICs are worked on one after the other for a window of cycles each, which keeps their state in
// the processor's caches. A window is no longer than the switch's latency, so nothing that is sent
// in it arrives in it, and the order of the NICs cannot be seen: the run is the one of a simulation
// cycle by cycle.
#include <algorithm>
#include <cstring>
#include <new>

#include <millrace/nic_frame.h>

#include "sim/nic/node.hpp"

using mr_sim_impl::nic_dead;
using mr_sim_impl::nic_frame;
using mr_sim_impl::nic_node;

namespace {

const uint64_t OPEN_WINDOW = 32; // cycles, where there is no switch

struct cluster {
    mr_nic_link base;
    mr_nic_link_options o;
    mr_switch *sw = nullptr; // NULL: open
    std::vector<std::unique_ptr<nic_node>> nodes;
    uint64_t now = 0, seen = 0;
    std::string death; // not empty: the simulator is dead

    ~cluster() {
        nodes.clear();
        mr_switch_destroy(sw);
    }
    mr_status die(const std::string &what) {
        if (death.empty())
            death = what;
        return o.fail(MR_DEVICE_LOST, "the simulated NIC stopped: %.400s", death.c_str());
    }
    mr_status check(unsigned rank) {
        if (rank >= o.nodes)
            return o.fail(MR_INVALID_ARGUMENT, "rank %u: the link has %u NICs", rank, o.nodes);
        return death.empty() ? MR_OK : die("");
    }
    uint64_t at_hosts() const;
    bool collect();
    bool window(uint64_t until);
};

cluster *of(const mr_nic_link *l) { return (cluster *)(uintptr_t)l; }

// Does the work, which takes cycles; a NIC that stops or a lack of memory is the end of the link.
template <class work>
mr_status guarded(cluster *c, unsigned rank, work w) {
    mr_status e = c->check(rank);
    if (e != MR_OK)
        return e;
    try {
        return w(*c->nodes[rank]);
    } catch (const nic_dead &d) {
        return c->die(d.what);
    } catch (const std::bad_alloc &) {
        return c->die("out of memory");
    }
}

void nic_close(mr_nic_link *l) { delete of(l); }
unsigned nic_nodes(const mr_nic_link *l) { return of(l)->o.nodes; }

mr_status push(cluster *c, unsigned rank, unsigned where, const uint8_t *frame, size_t bytes) {
    return guarded(c, rank, [&](nic_node &n) {
        if (!bytes)
            return c->o.fail(MR_INVALID_ARGUMENT, "a frame of no bytes");
        n.in[where].push_back({c->now, nic_frame(frame, frame + bytes)});
        return MR_OK;
    });
}

mr_status nic_send(mr_nic_link *l, unsigned rank, const uint8_t *frame, size_t bytes) {
    return push(of(l), rank, 2, frame, bytes);
}

mr_status nic_inject(mr_nic_link *l, unsigned rank, unsigned port, const uint8_t *frame,
                     size_t bytes) {
    cluster *c = of(l);
    if (c->sw || port > 1)
        return c->o.fail(MR_UNSUPPORTED, "inject: port %u of a link %s", port,
                         c->sw ? "with a switch" : "with ports 0 and 1");
    return push(c, rank, port, frame, bytes);
}

mr_status give(cluster *c, const nic_frame &f, uint8_t *to, size_t cap, size_t *bytes) {
    if (f.size() > cap)
        return c->o.fail(MR_INVALID_ARGUMENT, "a frame of %zu bytes, room for %zu", f.size(), cap);
    memcpy(to, f.data(), f.size());
    *bytes = f.size();
    return MR_OK;
}

mr_status nic_recv(mr_nic_link *l, unsigned rank, uint8_t *frame, size_t cap, size_t *bytes) {
    cluster *c = of(l);
    *bytes = 0;
    return guarded(c, rank, [&](nic_node &n) {
        mr_status e = n.host.empty() ? MR_OK : give(c, n.host.front(), frame, cap, bytes);
        if (*bytes)
            n.host.pop_front();
        return e;
    });
}

mr_status nic_capture(mr_nic_link *l, unsigned rank, unsigned *port, uint8_t *frame, size_t cap,
                      size_t *bytes) {
    cluster *c = of(l);
    *bytes = 0;
    if (c->sw)
        return c->o.fail(MR_UNSUPPORTED, "capture: the link has a switch");
    return guarded(c, rank, [&](nic_node &n) {
        mr_status e = n.sent.empty() ? MR_OK : give(c, n.sent.front().data, frame, cap, bytes);
        if (*bytes) {
            *port = n.sent.front().port;
            n.sent.pop_front();
        }
        return e;
    });
}

mr_status nic_event(mr_nic_link *l, unsigned rank, uint8_t *event, bool *got) {
    cluster *c = of(l);
    size_t bytes = 0;
    *got = false;
    return guarded(c, rank, [&](nic_node &n) {
        mr_status e =
            n.events.empty() ? MR_OK : give(c, n.events.front(), event, MR_NIC_EVENT_BYTES, &bytes);
        *got = bytes != 0;
        if (*got)
            n.events.pop_front();
        return e;
    });
}

mr_status nic_command(mr_nic_link *l, unsigned rank, const uint8_t *descs, size_t count) {
    static const char *const why[] = {"", "unknown type", "a field is beyond its table",
                                      "the list could not be read"};
    cluster *c = of(l);
    return guarded(c, rank, [&](nic_node &n) {
        size_t at;
        unsigned code = n.command(c->now, descs, count, at);
        return code ? c->o.fail(MR_INVALID_ARGUMENT, "descriptor %zu of type %u: %s", at,
                                descs[at * MR_NIC_DESC_BYTES], why[code < 4 ? code : 0])
                    : MR_OK;
    });
}

mr_status nic_counter(mr_nic_link *l, unsigned rank, unsigned index, uint64_t *value) {
    cluster *c = of(l);
    return guarded(c, rank, [&](nic_node &n) {
        if (index >= MR_NIC_COUNTERS)
            return c->o.fail(MR_INVALID_ARGUMENT, "counter %u: there are %d", index,
                             MR_NIC_COUNTERS);
        *value = n.counter(c->now, index);
        return MR_OK;
    });
}

mr_status memory(cluster *c, unsigned rank, uint64_t addr, size_t bytes, uint8_t **p) {
    mr_status e = c->check(rank);
    if (e != MR_OK)
        return e;
    *p = c->nodes[rank]->kv(addr, bytes);
    return *p ? MR_OK
              : c->o.fail(MR_INVALID_ARGUMENT, "KV memory: %zu bytes at %llu are not inside it",
                          bytes, (unsigned long long)addr);
}

mr_status nic_kv_read(mr_nic_link *l, unsigned rank, uint64_t addr, void *dst, size_t bytes) {
    uint8_t *p;
    mr_status e = memory(of(l), rank, addr, bytes, &p);
    if (e == MR_OK && bytes)
        memcpy(dst, p, bytes);
    return e;
}

mr_status nic_kv_write(mr_nic_link *l, unsigned rank, uint64_t addr, const void *src,
                       size_t bytes) {
    uint8_t *p;
    mr_status e = memory(of(l), rank, addr, bytes, &p);
    if (e == MR_OK && bytes)
        memcpy(p, src, bytes);
    return e;
}

uint64_t nic_kv_bytes(const mr_nic_link *l) { return (uint64_t)of(l)->o.memory_mib << 20; }

} // namespace

// What hosts, and users of open ports, have not taken yet.
uint64_t cluster::at_hosts() const {
    uint64_t n = 0;
    for (const auto &node : nodes)
        n += node->host.size() + node->events.size() + (sw ? 0 : node->sent.size());
    return n;
}

// What the NICs have sent goes into the switch, in the order of cycles and then of ports.
bool cluster::collect() {
    struct item {
        uint64_t cycle;
        unsigned from;
        nic_frame data;
    };
    std::vector<item> all;
    for (unsigned i = 0; i < o.nodes; i++) {
        for (nic_node::done &d : nodes[i]->sent)
            if (d.port == 0) // network port 1 is not connected
                all.push_back({d.cycle, i, std::move(d.data)});
        nodes[i]->sent.clear();
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const item &a, const item &b) { return a.cycle < b.cycle; });
    for (const item &f : all)
        if (!mr_switch_put(sw, f.from, f.data.data(), f.data.size(), f.cycle))
            return false;
    return true;
}

// All cycles from now to `until`, the latter not included.
bool cluster::window(uint64_t until) {
    mr_switch_frame *f;
    while (sw && (f = mr_switch_take(sw, until - 1))) {
        nodes[f->port]->in[0].push_back({f->cycle, nic_frame(f->data, f->data + f->bytes)});
        free(f);
    }
    for (auto &n : nodes)
        for (uint64_t c = now; c < until; c++)
            n->cycle(c);
    now = until;
    return !sw || collect();
}

namespace {

mr_status nic_run(mr_nic_link *l, uint64_t most) {
    cluster *c = of(l);
    uint64_t end = c->now + most, longest = c->sw ? mr_switch_latency(c->sw) : OPEN_WINDOW;
    uint64_t before = c->at_hosts();
    return guarded(c, 0, [&](nic_node &) {
        while (c->now < end && c->at_hosts() <= before)
            if (!c->window(std::min(end, c->now + longest)))
                return c->die("out of memory");
        return MR_OK;
    });
}

uint64_t nic_cycles(const mr_nic_link *l) { return of(l)->now; }

bool nic_idle(const mr_nic_link *l) {
    cluster *c = of(l);
    uint64_t t;
    if (c->sw && mr_switch_next(c->sw, &t))
        return false;
    for (const auto &n : c->nodes)
        if (c->death.empty() && !n->idle()) // a dead link is: nothing will move any more
            return false;
    return true;
}

mr_status nic_cut(mr_nic_link *l, unsigned rank, bool off) {
    cluster *c = of(l);
    mr_status e = c->check(rank);
    if (e == MR_OK && c->sw)
        mr_switch_cut(c->sw, rank, off);
    return e;
}

mr_status nic_pause(mr_nic_link *l, unsigned rank, bool paused) {
    return guarded(of(l), rank, [&](nic_node &n) {
        n.paused = paused;
        return MR_OK;
    });
}

void nic_wire(const mr_nic_link *l, mr_nic_wire *out) {
    *out = of(l)->sw ? *mr_switch_stats(of(l)->sw) : mr_nic_wire();
}

mr_status nic_streams(mr_nic_link *l, unsigned rank, mr_nic_stream out[MR_NIC_STREAMS]) {
    return guarded(of(l), rank, [&](nic_node &n) {
        for (unsigned i = 0; i < MR_NIC_STREAMS; i++)
            out[i] = n.stream(i);
        n.forget_streams();
        return MR_OK;
    });
}

mr_status nic_reg_read(mr_nic_link *l, unsigned rank, uint32_t offset, uint32_t *value) {
    cluster *c = of(l);
    return guarded(c, rank, [&](nic_node &n) {
        if ((offset & 3) || offset > 0xFFC)
            return c->o.fail(MR_INVALID_ARGUMENT, "register offset %u", offset);
        *value = n.reg_read(c->now, offset);
        return MR_OK;
    });
}

const mr_nic_link_ops nic_ops = {
    nic_close,   nic_nodes,   nic_send,    nic_recv,     nic_inject,   nic_capture,  nic_event,
    nic_command, nic_counter, nic_kv_read, nic_kv_write, nic_kv_bytes, nic_run,      nic_cycles,
    nic_idle,    nic_cut,     nic_pause,   nic_wire,     nic_streams,  nic_reg_read,
};

mr_status refuse_options(const mr_nic_link_options *o) {
#if !VM_TRACE_FST
    if (o->trace)
        return o->fail(MR_INVALID_ARGUMENT, "option trace: this build cannot trace");
    if (o->xinit)
        return o->fail(MR_INVALID_ARGUMENT, "option xinit: this build starts from zero");
#endif
    return o->nodes > 16 ? o->fail(MR_INVALID_ARGUMENT, "option nodes: at most 16") : MR_OK;
}

std::string trace_name(const mr_nic_link_options *o, unsigned index) {
    if (!o->trace)
        return "";
    return o->nodes == 1 ? o->trace : o->trace + ("." + std::to_string(index));
}

} // namespace

extern "C" __attribute__((visibility("default"))) mr_status
mr_sim_nic_open(uint32_t abi, const mr_nic_link_options *o, mr_nic_link **link) {
    if (abi != MR_SIM_NIC_ABI)
        return o->fail(MR_UNAVAILABLE, "sim:nic: interface version %u, this simulator speaks %d",
                       abi, MR_SIM_NIC_ABI);
    mr_status e = refuse_options(o);
    if (e != MR_OK)
        return e;
    try {
        std::unique_ptr<cluster> c(new cluster);
        c->base.ops = &nic_ops;
        c->o = *o;
        if (!o->open && !(c->sw = mr_switch_of(o)))
            throw std::bad_alloc();
        for (unsigned i = 0; i < o->nodes; i++)
            c->nodes.emplace_back(new nic_node(*o, i, c->sw, trace_name(o, i)));
        c->o.trace = nullptr;
        *link = &c.release()->base;
        return MR_OK;
    } catch (const nic_dead &d) {
        return o->fail(MR_DEVICE_LOST, "sim:nic: %s", d.what.c_str());
    } catch (const std::bad_alloc &) {
        return o->fail(MR_OUT_OF_MEMORY, "sim:nic: out of memory");
    }
}
