// The whole NIC (rtl/kernels/nic_kernel.sv) with its host, its memory and its cables, beside the
// golden model with the same tables. What one gives out is compared with what the other does, byte
// for byte.
#ifndef MR_TESTS_RTL_NIC_TOP_NIC_HPP
#define MR_TESTS_RTL_NIC_TOP_NIC_HPP

#include <deque>

#include <millrace/nic_frame.h>
#include <millrace/nic_regs.h>

#include "Vnic_kernel.h"
#include "host/nic/tables.h"
#include "models/golden/nic.h"
#include "sim/axi_memory.hpp"
#include "sim/axi_pins.hpp"
#include "tests/rtl/nic/frames.hpp"

enum { BUCKET_BITS = 8, PAGES = 1024, NET0 = 0, NET1 = 1, HOST = 2 };

// What leaves: frames by port (network 0, network 1, host), events.
struct Output {
    std::vector<Bytes> port[3];
    std::vector<Bytes> events;
};

// Everything a NIC is told, for both.
struct World {
    struct Node {
        Address at;
        unsigned netport;
    };
    struct Job {
        unsigned job;
        std::vector<uint8_t> members; // ascending
        unsigned root;                // rank
    };
    struct Entry {
        unsigned job, layer;
        uint32_t block, epoch, bytes;
        unsigned owner;             // rank
        std::vector<uint8_t> named; // ranks, the owner among them
    };
    unsigned rank = 0;
    bool chain = false;
    uint32_t rto = 0, slot_timeout = 0;
    std::vector<Node> nodes; // by rank
    std::vector<Job> jobs;
    std::vector<Entry> entries;
};

class Rtl {
public:
    explicit Rtl(uint64_t seed)
        : rng_(seed), memory_((size_t)8 << 20), axi_(memory_, options(seed)) {
        context_.fatalOnError(false);
        context_.randReset(2);
        context_.randSeed((int)(seed % 0x7FFFFFFF) + 1);
        context_.assertOn(true);
        top_ = std::make_unique<Vnic_kernel>(&context_, "tb");
        memory_.alloc(PAGES * 4096, 4096, &kv_);
        memory_.alloc(64 * 256, 4096, &list_);
        Vnic_kernel *t = top_.get();
        in_[0] = {&t->s_axis_net0_tvalid, &t->s_axis_net0_tready, &t->s_axis_net0_tlast,
                  &t->s_axis_net0_tkeep, t->s_axis_net0_tdata.data()};
        in_[1] = {&t->s_axis_net1_tvalid, &t->s_axis_net1_tready, &t->s_axis_net1_tlast,
                  &t->s_axis_net1_tkeep, t->s_axis_net1_tdata.data()};
        in_[2] = {&t->s_axis_host_tvalid, &t->s_axis_host_tready, &t->s_axis_host_tlast,
                  &t->s_axis_host_tkeep, t->s_axis_host_tdata.data()};
        out_[0] = {&t->m_axis_net0_tvalid, &t->m_axis_net0_tready, &t->m_axis_net0_tlast,
                   &t->m_axis_net0_tkeep, t->m_axis_net0_tdata.data()};
        out_[1] = {&t->m_axis_net1_tvalid, &t->m_axis_net1_tready, &t->m_axis_net1_tlast,
                   &t->m_axis_net1_tkeep, t->m_axis_net1_tdata.data()};
        out_[2] = {&t->m_axis_host_tvalid, &t->m_axis_host_tready, &t->m_axis_host_tlast,
                   &t->m_axis_host_tkeep, t->m_axis_host_tdata.data()};
        t->ap_rst_n = 0;
        t->m_axis_event_tready = 0;
        t->s_axi_control_awvalid = t->s_axi_control_wvalid = t->s_axi_control_bready = 0;
        t->s_axi_control_arvalid = t->s_axi_control_rready = 0;
        for (int k = 0; k < 3; k++) {
            *in_[k].valid = 0;
            *out_[k].ready = 0;
        }
        for (int k = 0; k < 4; k++) {
            axi_.reset();
            cycle();
        }
        axi_.reset();
        t->ap_rst_n = 1;
        dir_ = mr_nic_dir_create(BUCKET_BITS);
    }
    ~Rtl() {
        mr_nic_dir_destroy(dir_);
        Verilated::threadContextp(&context_);
        top_.reset();
    }

    // ---- frames: queued here, offered as soon as the port takes them ----
    void send(int port, const Bytes &frame) { waiting[port].push_back(frame); }
    std::deque<Bytes> waiting[3];
    unsigned gap_percent = 0;                 // share of cycles in which an input offers nothing
    unsigned stall_percent[4] = {0, 0, 0, 0}; // of the outputs; 3: events
    Output out;
    std::vector<uint64_t> first_in[3], last_in[3], first_out[3], last_out[3]; // cycles
    uint64_t now = 0;
    uint64_t refused_beats[3] = {0, 0, 0}; // cycles in which an input port held a beat up

    void cycle() {
        Vnic_kernel *t = top_.get();
        mr_sim_impl::axi_from_unit from = mr_sim_impl::axi_outputs(t);
        axi_.cycle(from);
        if (t->ap_rst_n)
            take();
        t->ap_clk = 1;
        t->eval();
        mr_sim_impl::axi_inputs(t, axi_.to);
        if (t->ap_rst_n)
            drive();
        t->ap_clk = 0;
        t->eval();
        now++;
        if (context_.gotError() || context_.gotFinish()) {
            context_.gotError(false);
            context_.gotFinish(false);
            FAIL("an assertion of the design has fired");
        }
    }
    void run(uint64_t cycles) {
        while (cycles-- > 0)
            cycle();
    }
    bool fed() const { return waiting[0].empty() && waiting[1].empty() && waiting[2].empty(); }
    // Until nothing is on its way any more.
    void settle(uint64_t most = 2000000) {
        unsigned quiet = 0;
        for (uint64_t end = now + most; quiet < 24;) {
            CHECK_TEXT(now < end, "the NIC does not come to rest");
            cycle();
            const Vnic_kernel *t = top_.get();
            const bool moving = t->m_axis_net0_tvalid || t->m_axis_net1_tvalid ||
                                t->m_axis_host_tvalid || t->m_axis_event_tvalid;
            quiet = fed() && t->idle && !moving ? quiet + 1 : 0;
        }
    }

    // ---- registers, tables ----
    void write(uint32_t offset, uint32_t value) {
        Vnic_kernel *t = top_.get();
        t->s_axi_control_awaddr = (uint16_t)offset;
        t->s_axi_control_wdata = value;
        t->s_axi_control_wstrb = 0xF;
        t->s_axi_control_awvalid = t->s_axi_control_wvalid = t->s_axi_control_bready = 1;
        t->eval();
        for (int k = 0; k < 100; k++) {
            const bool aw = t->s_axi_control_awready, w = t->s_axi_control_wready;
            const bool b = t->s_axi_control_bvalid;
            cycle();
            if (aw)
                t->s_axi_control_awvalid = 0;
            if (w)
                t->s_axi_control_wvalid = 0;
            if (b)
                t->s_axi_control_bready = 0;
            t->eval();
            if (b)
                return;
        }
        FAIL("no answer to a register write");
    }
    uint32_t read(uint32_t offset) {
        Vnic_kernel *t = top_.get();
        t->s_axi_control_araddr = (uint16_t)offset;
        t->s_axi_control_arvalid = t->s_axi_control_rready = 1;
        t->eval();
        for (int k = 0; k < 100; k++) {
            const bool ar = t->s_axi_control_arready, r = t->s_axi_control_rvalid;
            const uint32_t value = t->s_axi_control_rdata;
            cycle();
            if (ar)
                t->s_axi_control_arvalid = 0;
            if (r)
                t->s_axi_control_rready = 0;
            t->eval();
            if (r)
                return value;
        }
        FAIL("no answer to a register read");
        return 0;
    }
    uint64_t counter(unsigned index) {
        write(MR_NIC_COUNTER_SEL, index);
        const uint64_t low = read(MR_NIC_COUNTER);
        return low | (uint64_t)read(MR_NIC_COUNTER + 4) << 32;
    }
    void command(const std::vector<std::array<uint8_t, 64>> &descs) {
        for (size_t at = 0; at < descs.size(); at += 256) {
            const size_t part = std::min<size_t>(256, descs.size() - at);
            memcpy(memory_.at(list_, part * 64), &descs[at], part * 64);
            write(MR_NIC_MODE, 1);
            write(MR_NIC_COUNT, (uint32_t)part);
            write(MR_NIC_ADDR, (uint32_t)list_);
            write(MR_NIC_ADDR + 4, (uint32_t)(list_ >> 32));
            write(MR_NIC_CTRL, MR_NIC_CTRL_AP_START_MASK);
            for (int k = 0; !(read(MR_NIC_CTRL) & MR_NIC_CTRL_AP_DONE_MASK); k++)
                CHECK_TEXT(k < 100000, "a command does not end");
            LONGS_EQUAL(0, read(MR_NIC_ERROR));
        }
    }
    uint8_t *kv_memory() { return memory_.at(kv_, PAGES * 4096); }
    uint64_t kv_base() const { return kv_; }
    mr_nic_dir *dir() { return dir_; }

private:
    struct Pins {
        CData *valid, *ready, *last;
        QData *keep;
        WData *data;
    };
    static mr_sim_impl::options options(uint64_t seed) {
        mr_sim_impl::options o;
        o.seed = seed;
        o.memory_mib = 8;
        o.latency = 20;
        o.wlatency = 20;
        o.stall_ar = o.stall_r = o.stall_aw = o.stall_w = o.stall_b = 10;
        return o;
    }
    void take() {
        for (int k = 0; k < 3; k++) {
            if (*in_[k].valid && !*in_[k].ready)
                refused_beats[k]++;
            if (*in_[k].valid && *in_[k].ready) {
                if (at_[k] == 0)
                    first_in[k].push_back(now);
                at_[k] += 64;
                if (*in_[k].last) {
                    last_in[k].push_back(now);
                    waiting[k].pop_front();
                    at_[k] = 0;
                }
            }
            if (*out_[k].valid && *out_[k].ready) {
                if (open_[k].empty())
                    first_out[k].push_back(now);
                const uint8_t *d = (const uint8_t *)out_[k].data;
                open_[k].insert(open_[k].end(), d, d + __builtin_popcountll(*out_[k].keep));
                if (*out_[k].last) {
                    last_out[k].push_back(now);
                    out.port[k].push_back(open_[k]);
                    open_[k].clear();
                }
            }
        }
        Vnic_kernel *t = top_.get();
        if (t->m_axis_event_tvalid && t->m_axis_event_tready) {
            const uint8_t *d = (const uint8_t *)t->m_axis_event_tdata.data();
            out.events.emplace_back(d, d + 64);
        }
    }
    void drive() {
        for (int k = 0; k < 3; k++) {
            const bool held = *in_[k].valid && !*in_[k].ready; // an offered beat stays
            const bool new_beat =
                !waiting[k].empty() && (held || !(gap_percent && rng_.percent(gap_percent)));
            *in_[k].valid = new_beat;
            if (new_beat && !(held && offered_[k] == at_[k])) {
                const Bytes &f = waiting[k].front();
                const size_t left = f.size() - at_[k], n = std::min<size_t>(64, left);
                uint8_t *d = (uint8_t *)in_[k].data;
                memcpy(d, f.data() + at_[k], n);
                for (size_t i = n; i < 64; i++)
                    d[i] = (uint8_t)(now * 7 + i); // lanes that nobody may look at
                *in_[k].last = left <= 64;
                *in_[k].keep = n == 64 ? ~(QData)0 : ((QData)1 << n) - 1;
                offered_[k] = at_[k];
            }
            *out_[k].ready = !(stall_percent[k] && rng_.percent(stall_percent[k]));
        }
        top_->m_axis_event_tready = !(stall_percent[3] && rng_.percent(stall_percent[3]));
    }

    Rng rng_;
    VerilatedContext context_;
    std::unique_ptr<Vnic_kernel> top_;
    mr_sim_impl::memory memory_;
    mr_sim_impl::axi_slave axi_;
    uint64_t kv_ = 0, list_ = 0;
    mr_nic_dir *dir_ = nullptr;
    Pins in_[3], out_[3];
    size_t at_[3] = {0, 0, 0}, offered_[3] = {0, 0, 0};
    Bytes open_[3];
};

class Golden {
public:
    Golden() {
        mr_gnic_outputs o = {};
        o.context = this;
        o.send = [](void *self, int port, const uint8_t *f, size_t n) {
            ((Golden *)self)->out.port[port].emplace_back(f, f + n);
        };
        o.deliver = [](void *self, const uint8_t *f, size_t n) {
            ((Golden *)self)->out.port[HOST].emplace_back(f, f + n);
        };
        o.event = [](void *self, const uint8_t *e) {
            ((Golden *)self)->out.events.emplace_back(e, e + 64);
        };
        nic = mr_gnic_create(&o, PAGES);
    }
    ~Golden() { mr_gnic_destroy(nic); }
    mr_gnic *nic;
    Output out;
};

// Both, with the same tables.
class Pair {
public:
    Pair(uint64_t seed, const World &w) : rtl(seed), world(w) {
        std::vector<std::array<uint8_t, 64>> descs;
        std::array<uint8_t, 64> d;
        LONGS_EQUAL(0, mr_gnic_set_rank(golden.nic, w.rank));
        mr_gnic_set_chain(golden.nic, w.chain);
        mr_gnic_set_timers(golden.nic, w.rto, w.slot_timeout);
        for (unsigned r = 0; r < w.nodes.size(); r++) {
            const World::Node &n = w.nodes[r];
            mr_nic_node_desc nd = {};
            nd.rank = (uint8_t)r;
            memcpy(nd.mac, n.at.mac.data(), 6);
            nd.ip = n.at.ip;
            nd.port = n.at.port;
            nd.netport = (uint8_t)n.netport;
            mr_nic_desc_node(d.data(), &nd);
            descs.push_back(d);
            LONGS_EQUAL(0, mr_gnic_node(golden.nic, r, n.at.mac.data(), n.at.ip, n.at.port,
                                        (int)n.netport));
        }
        mr_nic_options_desc od = {};
        od.rank = (uint8_t)w.rank;
        od.chain = w.chain;
        od.rto = w.rto;
        od.slot_timeout = w.slot_timeout;
        od.kv_base = rtl.kv_base();
        mr_nic_desc_options(d.data(), &od);
        descs.push_back(d);
        rtl.command(descs);
        for (unsigned j = 0; j < w.jobs.size(); j++)
            write_job(j);
        for (const World::Entry &e : w.entries)
            put_entry(e);
    }
    void write_job(unsigned row) {
        const World::Job &job = world.jobs[row];
        std::array<uint8_t, 64> d;
        mr_nic_job_desc jd = {};
        jd.row = (uint8_t)row;
        jd.job = (uint16_t)job.job;
        jd.count = (uint8_t)job.members.size();
        for (unsigned k = 0; k < job.members.size(); k++) {
            jd.ranks[k] = job.members[k];
            if (job.members[k] == job.root)
                jd.root = (uint8_t)k;
            if (job.members[k] < world.nodes.size() && world.nodes[job.members[k]].netport)
                jd.port1 |= 1u << k;
        }
        mr_nic_desc_job(d.data(), &jd);
        rtl.command({d});
        LONGS_EQUAL(0, mr_gnic_job(golden.nic, (uint16_t)job.job, job.members.data(),
                                   (unsigned)job.members.size(), job.root));
    }
    unsigned index_of(unsigned job, unsigned rank) const {
        for (const World::Job &j : world.jobs)
            if (j.job == job)
                for (unsigned k = 0; k < j.members.size(); k++)
                    if (j.members[k] == rank)
                        return k;
        return 0;
    }
    // A new entry gets pages of its own; one that is known keeps its own, emptied.
    void put_entry(const World::Entry &e) {
        mr_nic_dir_entry de = {};
        de.job = (uint16_t)e.job;
        de.layer = (uint16_t)e.layer;
        de.block = e.block;
        de.owner = (uint8_t)index_of(e.job, e.owner);
        for (uint8_t r : e.named)
            de.named |= 1u << index_of(e.job, r);
        de.epoch = e.epoch;
        de.bytes = e.bytes;
        const mr_nic_dir_entry *old = mr_nic_dir_find(rtl.dir(), de.job, de.layer, de.block);
        const uint32_t pages = (e.bytes + 4095) / 4096;
        de.page = old ? old->page : next_page_;
        if (!old)
            next_page_ += pages;
        CHECK(next_page_ <= PAGES);
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        size_t count = 0;
        LONGS_EQUAL(MR_OK, mr_nic_dir_put(rtl.dir(), &de, true, steps, &count));
        std::vector<std::array<uint8_t, 64>> descs(count);
        memcpy(descs.data(), steps, count * 64);
        rtl.command(descs);
        mr_gnic_entry ge = {};
        ge.job = de.job;
        ge.layer = de.layer;
        ge.block = de.block;
        ge.epoch = de.epoch;
        ge.bytes = de.bytes;
        ge.owner = de.owner;
        ge.named = de.named;
        ge.page = de.page;
        LONGS_EQUAL(0, mr_gnic_kv(golden.nic, &ge));
        mr_gnic_kv_clear(golden.nic, de.page, pages);
    }

    void send(int source, const Bytes &frame) {
        rtl.send(source, frame);
        mr_gnic_rx(golden.nic, source, frame.data(), frame.size());
    }
    // Compares and forgets what has come out since the last time.
    void compare(const char *where) {
        static const char *names[] = {"network 0", "network 1", "host"};
        for (int k = 0; k < 3; k++)
            compare_list(golden.out.port[k], rtl.out.port[k], names[k], where);
        compare_list(golden.out.events, rtl.out.events, "events", where);
        golden.out = Output();
        rtl.out = Output();
    }
    void compare_counters(const char *where) {
        const uint64_t *want = mr_gnic_counters(golden.nic);
        for (unsigned k = 0; k < MR_NIC_COUNTERS; k++) {
            const uint64_t got = rtl.counter(k);
            if (got != want[k]) {
                const std::string text = std::string(where) + ": counter " +
                                         mr_nic_counter_name(k) + " is " + std::to_string(got) +
                                         ", not " + std::to_string(want[k]);
                FAIL(text.c_str());
            }
        }
    }
    void compare_memory() {
        size_t bytes;
        const uint8_t *want = mr_gnic_kv_memory(golden.nic, &bytes);
        LONGS_EQUAL(PAGES * 4096, bytes);
        MEMCMP_EQUAL(want, rtl.kv_memory(), next_page_ * 4096);
    }
    static std::string text_of(const Bytes &f) {
        char t[200];
        const size_t m = f.size() >= 74 ? 42 : 0;
        snprintf(t, sizeof t,
                 "%zu bytes, opcode %u flags %02x job %u shard %u/%u request %u block %u offset %u",
                 f.size(), f[m + 1], f[m + 3], (unsigned)big(f, m + 4, 2), f[m + 6], f[m + 7],
                 (unsigned)big(f, m + 8, 4), (unsigned)big(f, m + 24, 4),
                 (unsigned)big(f, m + 28, 4));
        return t;
    }
    Golden golden;
    Rtl rtl;
    World world;

private:
    void compare_list(const std::vector<Bytes> &want, const std::vector<Bytes> &got,
                      const char *what, const char *where) {
        std::string text;
        const size_t n = std::min(want.size(), got.size());
        for (size_t k = 0; k < n && text.empty(); k++)
            if (want[k] != got[k]) {
                size_t at = 0;
                while (at < want[k].size() && at < got[k].size() && want[k][at] == got[k][at])
                    at++;
                text = std::to_string(k) + " differs at byte " + std::to_string(at) + ": " +
                       text_of(got[k]) + " instead of " + text_of(want[k]);
            }
        if (text.empty() && want.size() != got.size())
            text = std::to_string(got.size()) + " instead of " + std::to_string(want.size()) +
                   (got.size() > n    ? ", the first too many: " + text_of(got[n])
                    : want.size() > n ? ", the first missing: " + text_of(want[n])
                                      : "");
        if (!text.empty()) {
            text = std::string(where) + ": " + what + ": " + text;
            FAIL(text.c_str());
        }
    }
    uint32_t next_page_ = 0;
};

#endif
