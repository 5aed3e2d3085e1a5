#include "sim/nic/node.hpp"

#include <cstdio>
#include <cstring>

#include <millrace/nic_regs.h>

#include "Vmr_nic.h"
#include "sim/axi_pins.hpp"
#include "sim/verilated_text.hpp"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#else
class VerilatedFstC {};
#endif

namespace mr_sim_impl {

enum {
    BEAT = 64,
    LIST = 256,          // descriptors of one command
    REG_LIMIT = 1000,    // cycles until a register access counts as dead
    CMD_LIMIT = 8 << 20, // cycles until a command does
    QUIET = 24           // cycles without a beat before the NIC is asked whether it is idle
};

struct nic_node::port {
    CData *valid, *ready, *last;
    QData *keep;
    WData *data;
};

#define PORT(name)                                                                                 \
    port {                                                                                         \
        &top_->name##_tvalid, &top_->name##_tready, &top_->name##_tlast, &top_->name##_tkeep,      \
            top_->name##_tdata.data()                                                              \
    }

static options memory_options(const mr_nic_link_options &o, unsigned index) {
    options m;
    m.seed = o.seed + index;
    m.memory_mib = o.memory_mib + 1;
    return m;
}

nic_node::nic_node(const mr_nic_link_options &o, unsigned index, mr_switch *cable,
                   const std::string &trace)
    : index_(index), cable_(cable), ctx_(new VerilatedContext),
      mem_(((size_t)o.memory_mib + 1) << 20), axi_(mem_, memory_options(o, index)),
      kv_bytes_((uint64_t)o.memory_mib << 20) {
    if (!mem_.ok() || mem_.alloc(kv_bytes_, 4096, &kv_) ||
        mem_.alloc(LIST * MR_NIC_DESC_BYTES, 4096, &list_))
        throw nic_dead{"the host has no address space for " + std::to_string(o.memory_mib) +
                       " MiB of KV memory"};
    ctx_->threads(1);
    ctx_->randReset((int)o.xinit);
    ctx_->randSeed((int)((o.seed * 64 + index) & 0x7FFFFFFF) | 1);
    ctx_->traceEverOn(!trace.empty());
    Verilated::threadContextp(ctx_.get());
    top_.reset(new Vmr_nic(ctx_.get()));
#if VM_TRACE_FST
    if (!trace.empty()) {
        FILE *f = fopen(trace.c_str(), "wb"); // the FST writer does not report this
        if (!f)
            throw nic_dead{"cannot write the trace file " + trace};
        fclose(f);
        fst_.reset(new VerilatedFstC);
        top_->trace(fst_.get(), 99);
        fst_->open(trace.c_str());
    }
#endif
    ports_ = {PORT(s_axis_net0), PORT(s_axis_net1), PORT(s_axis_host), PORT(m_axis_net0),
              PORT(m_axis_net1), PORT(m_axis_host), PORT(m_axis_event)};
    for (unsigned i = 0; i < 3; i++)
        *ports_[i].valid = 0;
    for (unsigned i = 3; i < 7; i++)
        *ports_[i].ready = 0;
    forget_streams();
    top_->ap_clk = 0;
    top_->ap_rst_n = 0;
    top_->s_axi_control_awvalid = 0;
    top_->s_axi_control_wvalid = 0;
    top_->s_axi_control_bready = 0;
    top_->s_axi_control_arvalid = 0;
    top_->s_axi_control_rready = 0;
    for (unsigned i = 0; i < 4; i++) {
        axi_.reset();
        cycle(0);
    }
    axi_.reset();
    drive(0);
    top_->ap_rst_n = 1;
    forget_streams();
}

nic_node::~nic_node() {
    Verilated::threadContextp(ctx_.get());
    if (top_)
        top_->final();
#if VM_TRACE_FST
    if (fst_)
        fst_->close();
#endif
    top_.reset();
    Verilated::threadContextp(nullptr);
}

void nic_node::forget_streams() {
    for (mr_nic_stream &s : streams_)
        s = mr_nic_stream();
}

uint8_t *nic_node::kv(uint64_t addr, size_t bytes) {
    if (addr > kv_bytes_ || bytes > kv_bytes_ - addr)
        return nullptr;
    return mem_.at(kv_ + addr, bytes);
}

// ---- a cycle
// -------------------------------------------------------------------------------------

void nic_node::die(const std::string &what) const {
    throw nic_dead{"NIC " + std::to_string(index_) + ": " + what};
}

void nic_node::eval() {
    top_->eval();
#if VM_TRACE_FST
    if (fst_)
        fst_->dump(ctx_->time());
#endif
}

static void count(mr_nic_stream &s, uint64_t now, bool last) {
    if (!s.beats)
        s.first = now;
    s.last = now;
    s.beats++;
    s.frames += last;
}

// What the clock edge that comes now moves over the streams.
void nic_node::take_beats(uint64_t now) {
    for (unsigned i = 0; i < 7; i++) {
        port &p = ports_[i];
        if (!*p.valid)
            continue;
        quiet_ = 0;
        if (i < 6 && !*p.ready)
            streams_[i].waits++;
        if (!*p.ready)
            continue;
        if (i < 6)
            count(streams_[i], now, *p.last);
        if (i < 3) {
            at_[i] += BEAT;
            if (*p.last) {
                in[i].pop_front();
                at_[i] = 0;
            }
            continue;
        }
        const uint8_t *d = (const uint8_t *)p.data;
        nic_frame &f = i < 6 ? open_[i - 3] : (events.emplace_back(), events.back());
        f.insert(f.end(), d, d + __builtin_popcountll(*p.keep));
        if (i == 6 || !*p.last)
            continue;
        if (i == 5) {
            host.push_back(std::move(f));
        } else {
            if (cable_ && i == 3)
                mr_switch_sent(cable_, index_, f.size(), now);
            sent.push_back({i - 3, now, std::move(f)});
        }
        f = nic_frame();
    }
}

// The next beat of what waits in front of a port; a beat that was offered and not taken stays. A
// frame that is there in cycle `now` is offered in the cycle after, however long a window is.
void nic_node::drive_in(unsigned i, uint64_t now) {
    port &p = ports_[i];
    if (in[i].empty() || (!at_[i] && in[i].front().cycle > now)) {
        *p.valid = 0;
        return;
    }
    const nic_frame &f = in[i].front().data;
    size_t left = f.size() - at_[i], n = left < BEAT ? left : (size_t)BEAT;
    uint8_t *d = (uint8_t *)p.data;
    memcpy(d, f.data() + at_[i], n);
    memset(d + n, 0, BEAT - n);
    *p.valid = 1;
    *p.last = left <= BEAT;
    *p.keep = n == BEAT ? ~(QData)0 : ((QData)1 << n) - 1;
}

void nic_node::drive(uint64_t now) {
    Vmr_nic *t = top_.get();
    axi_inputs(t, axi_.to);
    for (unsigned i = 0; i < 3; i++)
        drive_in(i, now);
    *ports_[3].ready = !cable_ || !open_[0].empty() || now + 1 >= mr_switch_ready(cable_, index_);
    *ports_[4].ready = 1;
    *ports_[5].ready = !paused;
    *ports_[6].ready = !paused;
}

void nic_node::cycle(uint64_t now) {
    Vmr_nic *t = top_.get();
    axi_from_unit from = axi_outputs(t);
    quiet_++;
    if (from.awvalid || from.wvalid || from.arvalid)
        quiet_ = 0;
    axi_.cycle(from);
    if (t->ap_rst_n)
        take_beats(now);

    said_.clear();
    Verilated::threadContextp(ctx_.get()); // another NIC has run in this thread
    listen(&said_);
    t->ap_clk = 1;
    ctx_->timeInc(1);
    eval();
    drive(now); // in reset too: inputs may have begun with noise
    t->ap_clk = 0;
    ctx_->timeInc(1);
    eval();
    if (stopped())
        die(said_.substr(0, said_.find('\n')));
}

// ---- registers
// -----------------------------------------------------------------------------------

void nic_node::reg_write(uint64_t now, uint32_t offset, uint32_t value) {
    Vmr_nic *t = top_.get();
    t->s_axi_control_awaddr = (uint16_t)offset;
    t->s_axi_control_awvalid = 1;
    t->s_axi_control_wdata = value;
    t->s_axi_control_wstrb = 0xF;
    t->s_axi_control_wvalid = 1;
    t->s_axi_control_bready = 1;
    t->eval();
    for (unsigned i = 0; i < REG_LIMIT; i++) {
        bool aw = t->s_axi_control_awready, w = t->s_axi_control_wready;
        bool b = t->s_axi_control_bvalid;
        cycle(now);
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
    die("no answer to a register write");
}

uint32_t nic_node::reg_read(uint64_t now, uint32_t offset) {
    Vmr_nic *t = top_.get();
    t->s_axi_control_araddr = (uint16_t)offset;
    t->s_axi_control_arvalid = 1;
    t->s_axi_control_rready = 1;
    t->eval();
    for (unsigned i = 0; i < REG_LIMIT; i++) {
        bool ar = t->s_axi_control_arready, r = t->s_axi_control_rvalid;
        uint32_t value = t->s_axi_control_rdata;
        cycle(now);
        if (ar)
            t->s_axi_control_arvalid = 0;
        if (r)
            t->s_axi_control_rready = 0;
        t->eval();
        if (r)
            return value;
    }
    die("no answer to a register read");
}

static void put64(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

unsigned nic_node::command(uint64_t now, const uint8_t *descs, size_t n, size_t &at) {
    for (at = 0; at < n;) {
        size_t part = n - at < LIST ? n - at : (size_t)LIST;
        uint8_t *list = mem_.at(list_, part * MR_NIC_DESC_BYTES);
        memcpy(list, descs + at * MR_NIC_DESC_BYTES, part * MR_NIC_DESC_BYTES);
        for (size_t i = 0; i < part; i++)
            if (list[i * MR_NIC_DESC_BYTES] == MR_NIC_DESC_OPTIONS)
                put64(list + i * MR_NIC_DESC_BYTES + MR_NIC_D_OPTIONS_KV_BASE_LSB / 8, kv_);
        reg_write(now, MR_NIC_MODE, 1);
        reg_write(now, MR_NIC_COUNT, (uint32_t)part);
        reg_write(now, MR_NIC_ADDR, (uint32_t)list_);
        reg_write(now, MR_NIC_ADDR + 4, (uint32_t)(list_ >> 32));
        reg_write(now, MR_NIC_CTRL, MR_NIC_CTRL_AP_START_MASK);
        unsigned waited = 0;
        while (!(reg_read(now, MR_NIC_CTRL) & MR_NIC_CTRL_AP_DONE_MASK)) {
            for (unsigned i = 0; i < 16; i++)
                cycle(now);
            if ((waited += 16) > CMD_LIMIT)
                die("a table command does not end");
        }
        unsigned code = reg_read(now, MR_NIC_ERROR);
        if (code) {
            at += reg_read(now, MR_NIC_ERROR_INDEX);
            return code;
        }
        at += part;
    }
    return 0;
}

uint64_t nic_node::counter(uint64_t now, unsigned index) {
    reg_write(now, MR_NIC_COUNTER_SEL, index);
    uint64_t low = reg_read(now, MR_NIC_COUNTER);
    return low | (uint64_t)reg_read(now, MR_NIC_COUNTER + 4) << 32;
}

bool nic_node::idle() const {
    for (unsigned i = 0; i < 3; i++)
        if (!in[i].empty())
            return false;
    return quiet_ > QUIET && top_->idle;
}

} // namespace mr_sim_impl
