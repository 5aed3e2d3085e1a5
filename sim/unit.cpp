// A unit as a simulator library: a Verilated board wrapper behind sim/sim.h. Every simulator has
// its own Verilator context. sim.mk says which unit: MR_SIM_MODEL is the class Verilator made
// (prefix Vmr_unit), MR_SIM_NAME the unit's name, MR_SIM_STREAM whether it has m_axis_out,
// MR_SIM_DRAM whether it has banks.
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "Vmr_unit.h"
#if MR_SIM_DRAM
#include "Vmr_unit___024root.h"
#include "sim/dram_trace.hpp"
#endif
#include "sim/axi_memory.hpp"
#include "sim/axi_pins.hpp"
#include "sim/options.hpp"
#include "sim/sim.h"
#include "sim/verilated_text.hpp"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif

#ifndef MR_SIM_XINIT
#define MR_SIM_XINIT 0 // 1: built with --x-initial unique
#endif

typedef std::vector<uint8_t> frame;

namespace impl = mr_sim_impl;

struct mr_sim {
    mr_sim(const impl::options &o)
        : opt(o), mem((size_t)o.memory_mib << 20), axi(mem, o),
          stream_stall(o.seed * 8 + 6, o.stall_s, o.stall_len) {}

    impl::options opt;
    impl::memory mem;
    impl::axi_slave axi;
    impl::stall_source stream_stall;
    std::unique_ptr<VerilatedContext> ctx;
    std::unique_ptr<Vmr_unit> top;
#if VM_TRACE_FST
    std::unique_ptr<VerilatedFstC> fst;
#endif
#if MR_SIM_DRAM
    impl::dram_trace dram;
#endif
    std::deque<frame> frames;
    frame open_frame;
    std::string error, said;
    bool dead = false;

    int fail(int code, const std::string &text) {
        error = text;
        return code;
    }
    void eval() {
        top->eval();
#if VM_TRACE_FST
        if (fst)
            fst->dump(ctx->time());
#endif
    }
    int cycle();
    int reset(unsigned cycles);
};

// One clock cycle: the outputs have settled with the inputs of the cycle before.
int mr_sim::cycle() {
    Vmr_unit *t = top.get();
    impl::axi_from_unit from = impl::axi_outputs(t);
    axi.cycle(from);
#if MR_SIM_STREAM
    if (t->m_axis_out_tvalid && t->m_axis_out_tready) {
        const uint8_t *d = (const uint8_t *)t->m_axis_out_tdata.data();
        uint64_t keep = t->m_axis_out_tkeep;
        open_frame.insert(open_frame.end(), d, d + __builtin_popcountll(keep));
        axi.stats.stream_beats++;
        if (t->m_axis_out_tlast) {
            axi.stats.stream_frames++;
            frames.push_back(std::move(open_frame));
            open_frame.clear();
        }
    }
#endif
#if MR_SIM_DRAM
    if (!dram.cycle(impl::dram_commands(t), axi.stats.cycles))
        return fail(MR_SIM_ESYS, "cannot write the DRAM trace " + opt.dram_trace);
#endif

    said.clear();
    Verilated::threadContextp(ctx.get()); // another simulator may have run in this thread
    impl::listen(&said);
    t->ap_clk = 1;
    ctx->timeInc(1);
    eval();
    impl::axi_inputs(t, axi.to);
#if MR_SIM_STREAM
    t->m_axis_out_tready = !stream_stall.stalled();
#endif
    t->ap_clk = 0;
    ctx->timeInc(1);
    eval();
    if (impl::stopped()) {
        dead = true;
        size_t end = said.find('\n');
        return fail(MR_SIM_EPROTO, "the simulated unit stopped: " + said.substr(0, end));
    }
    return MR_SIM_OK;
}

int mr_sim::reset(unsigned cycles) {
    int rc = MR_SIM_OK;
    top->ap_rst_n = 0;
    for (unsigned i = 0; i < cycles && !rc; i++) {
        axi.reset();
        rc = cycle();
    }
    axi.reset();
    open_frame.clear();
    frames.clear();
    top->ap_rst_n = 1;
    return rc ? rc : cycle();
}

// ---- the table
// -------------------------------------------------------------------------------------

static const char dead_text[] = "the simulated unit stopped earlier and cannot go on";

static void put_error(char *err, size_t size, const std::string &text) {
    if (err && size)
        snprintf(err, size, "%s", text.c_str());
}

static void sim_close(mr_sim *s) {
    if (!s)
        return;
    if (s->top) {
        s->top->final();
        // a model takes its scopes out of the thread's context, which may be another simulator's
        Verilated::threadContextp(s->ctx.get());
    }
#if VM_TRACE_FST
    if (s->fst)
        s->fst->close();
#endif
    delete s;
    Verilated::threadContextp(nullptr);
}

static int build(mr_sim *s) {
    if (!s->mem.ok())
        return s->fail(MR_SIM_ENOMEM, "the host has no address space for " +
                                          std::to_string(s->opt.memory_mib) + " MiB");
    s->ctx.reset(new VerilatedContext);
    s->ctx->threads(1); // the model has none: no idle worker a simulator
    s->ctx->randReset((int)s->opt.xinit);
    s->ctx->randSeed((int)(s->opt.seed & 0x7FFFFFFF) | 1);
#if VM_TRACE_FST
    s->ctx->traceEverOn(!s->opt.trace.empty());
#endif
    Verilated::threadContextp(s->ctx.get());
    s->top.reset(new Vmr_unit(s->ctx.get()));
#if VM_TRACE_FST
    if (!s->opt.trace.empty()) {
        FILE *f = fopen(s->opt.trace.c_str(), "wb"); // the FST writer does not report this
        if (!f)
            return s->fail(MR_SIM_ESYS, "cannot write the trace file " + s->opt.trace);
        fclose(f);
        s->fst.reset(new VerilatedFstC);
        s->top->trace(s->fst.get(), 99);
        s->fst->open(s->opt.trace.c_str());
    }
#endif
#if MR_SIM_DRAM
    if (!s->dram.open(s->opt.dram_trace))
        return s->fail(MR_SIM_ESYS, "cannot write the DRAM trace " + s->opt.dram_trace);
#endif
    s->top->ap_clk = 0;
    s->top->ap_rst_n = 0;
    s->top->s_axi_control_awvalid = 0;
    s->top->s_axi_control_wvalid = 0;
    s->top->s_axi_control_bready = 0;
    s->top->s_axi_control_arvalid = 0;
    s->top->s_axi_control_rready = 0;
    return s->reset(4);
}

static int sim_open(const char *text, mr_sim **out, char *err, size_t err_size) {
    impl::options opt;
    std::string why;
    *out = nullptr;
    if (!impl::parse_options(text, opt, why)) {
        put_error(err, err_size, why);
        return MR_SIM_EINVAL;
    }
    if (!opt.trace.empty() && !VM_TRACE_FST)
        why = "this build of the simulator cannot trace: libmr_sim_" MR_SIM_NAME "_debug.so can";
    if (opt.xinit && !MR_SIM_XINIT)
        why = "this build of the simulator starts from zero: libmr_sim_" MR_SIM_NAME
              "_debug.so knows xinit";
    if (!opt.dram_trace.empty() && !MR_SIM_DRAM)
        why = "unknown simulator option 'dram_trace': this unit has no banks";
    if (!why.empty()) {
        put_error(err, err_size, why);
        return MR_SIM_EINVAL;
    }
    mr_sim *s = new (std::nothrow) mr_sim(opt);
    if (!s) {
        put_error(err, err_size, "out of memory");
        return MR_SIM_ENOMEM;
    }
    int rc = build(s);
    if (rc) {
        put_error(err, err_size, s->error);
        sim_close(s);
        return rc;
    }
    *out = s;
    return MR_SIM_OK;
}

static const char *sim_error(const mr_sim *s) { return s->error.c_str(); }

static int mem_alloc(mr_sim *s, size_t bytes, size_t align, uint64_t *addr) {
    int rc = s->mem.alloc(bytes, align, addr);
    if (rc == MR_SIM_EINVAL)
        return s->fail(rc, "allocation of " + std::to_string(bytes) + " bytes, alignment " +
                               std::to_string(align) + ": not a size and a power of two");
    if (rc)
        return s->fail(rc, "the device memory has no room for " + std::to_string(bytes) + " bytes");
    return rc;
}

static int out_of_range(mr_sim *s, uint64_t addr, size_t bytes) {
    char text[96];
    snprintf(text, sizeof text, "0x%llx + %zu bytes is not inside one allocation",
             (unsigned long long)addr, bytes);
    return s->fail(MR_SIM_ERANGE, text);
}

static int mem_free(mr_sim *s, uint64_t addr) {
    return s->mem.free(addr) ? out_of_range(s, addr, 0) : MR_SIM_OK;
}

static int mem_map(mr_sim *s, uint64_t addr, size_t bytes, void **ptr) {
    *ptr = s->mem.at(addr, bytes);
    return *ptr ? MR_SIM_OK : out_of_range(s, addr, bytes);
}

static int mem_write(mr_sim *s, uint64_t addr, const void *src, size_t bytes) {
    void *p;
    int rc = mem_map(s, addr, bytes, &p);
    if (!rc && bytes)
        memcpy(p, src, bytes);
    return rc;
}

static int mem_read(mr_sim *s, uint64_t addr, void *dst, size_t bytes) {
    void *p;
    int rc = mem_map(s, addr, bytes, &p);
    if (!rc && bytes)
        memcpy(dst, p, bytes);
    return rc;
}

static const unsigned reg_limit = 1000; // cycles until a register access counts as dead

static int bad_register(mr_sim *s, uint32_t offset) {
    if (s->dead)
        return s->fail(MR_SIM_EPROTO, dead_text);
    if ((offset & 3) || offset > 0xFFC)
        return s->fail(MR_SIM_EINVAL, "register offset " + std::to_string(offset) +
                                          " is not a multiple of 4 below 4096");
    return MR_SIM_OK;
}

static int no_answer(mr_sim *s, const char *what) {
    s->dead = true;
    return s->fail(MR_SIM_EPROTO, std::string("no answer to a register ") + what);
}

static int reg_write(mr_sim *s, uint32_t offset, uint32_t value) {
    Vmr_unit *t = s->top.get();
    int rc = bad_register(s, offset);
    if (rc)
        return rc;
    t->s_axi_control_awaddr = (uint16_t)offset;
    t->s_axi_control_awvalid = 1;
    t->s_axi_control_wdata = value;
    t->s_axi_control_wstrb = 0xF;
    t->s_axi_control_wvalid = 1;
    t->s_axi_control_bready = 1;
    t->eval();
    for (unsigned i = 0; i < reg_limit; i++) {
        bool aw = t->s_axi_control_awready, w = t->s_axi_control_wready;
        bool b = t->s_axi_control_bvalid;
        rc = s->cycle();
        if (rc)
            return rc;
        if (aw)
            t->s_axi_control_awvalid = 0;
        if (w)
            t->s_axi_control_wvalid = 0;
        if (b)
            t->s_axi_control_bready = 0;
        t->eval();
        if (b)
            return MR_SIM_OK;
    }
    return no_answer(s, "write");
}

static int reg_read(mr_sim *s, uint32_t offset, uint32_t *value) {
    Vmr_unit *t = s->top.get();
    int rc = bad_register(s, offset);
    if (rc)
        return rc;
    t->s_axi_control_araddr = (uint16_t)offset;
    t->s_axi_control_arvalid = 1;
    t->s_axi_control_rready = 1;
    t->eval();
    for (unsigned i = 0; i < reg_limit; i++) {
        bool ar = t->s_axi_control_arready, r = t->s_axi_control_rvalid;
        uint32_t data = t->s_axi_control_rdata;
        rc = s->cycle();
        if (rc)
            return rc;
        if (ar)
            t->s_axi_control_arvalid = 0;
        if (r)
            t->s_axi_control_rready = 0;
        t->eval();
        if (r) {
            *value = data;
            return MR_SIM_OK;
        }
    }
    return no_answer(s, "read");
}

static int run(mr_sim *s, uint64_t max_cycles, uint64_t *ran) {
    uint64_t n = 0;
    int rc = s->dead ? s->fail(MR_SIM_EPROTO, dead_text) : MR_SIM_OK;
    while (!rc && !s->top->__SYM__interrupt) {
        if (n == max_cycles) {
            rc = s->fail(MR_SIM_TIMEOUT,
                         "no interrupt within " + std::to_string(max_cycles) + " cycles");
            break;
        }
        rc = s->cycle();
        n++;
    }
    if (ran)
        *ran = n;
    return rc;
}

static int stream_read(mr_sim *s, void *dst, size_t cap, size_t *bytes) {
    *bytes = 0;
    if (s->frames.empty())
        return MR_SIM_OK;
    const frame &f = s->frames.front();
    if (f.size() > cap)
        return s->fail(MR_SIM_ERANGE, "the next frame has " + std::to_string(f.size()) + " bytes");
    if (!f.empty())
        memcpy(dst, f.data(), f.size());
    *bytes = f.size();
    s->frames.pop_front();
    return MR_SIM_OK;
}

static void stats(mr_sim *s, mr_sim_stats *out, int clear) {
    *out = s->axi.stats;
    if (clear)
        s->axi.stats = mr_sim_stats();
}

static int sim_reset(mr_sim *s) {
    if (s->dead)
        return s->fail(MR_SIM_EPROTO, dead_text);
    return s->reset(4);
}

extern "C" __attribute__((visibility("default"))) const mr_sim_ops *mr_sim_entry(uint32_t abi) {
    static const mr_sim_ops ops = {
        MR_SIM_ABI, MR_SIM_NAME, sim_open,  sim_close, sim_error, mem_alloc,   mem_free, mem_write,
        mem_read,   mem_map,     reg_write, reg_read,  run,       stream_read, stats,    sim_reset,
    };
    return abi == MR_SIM_ABI ? &ops : nullptr;
}
