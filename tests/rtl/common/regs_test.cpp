// The generated register block of the RGU over AXI4-Lite, by the names of the generated C header:
// every register keeps what is written, byte strobes included, and the ap_ctrl_hs registers behave
// as a host driver expects.
#include "bench.hpp"
#include "Vrgu_regs.h"

#include <millrace/rgu_regs.h>

namespace {

struct RegsBench : Bench<Vrgu_regs> {
    explicit RegsBench(uint64_t noise) : Bench(noise), rng(noise) {
        auto &t = *top;
        t.awvalid_i = t.wvalid_i = t.arvalid_i = t.bready_i = t.rready_i = 0;
        t.ap_ready_i = t.ap_done_i = 0;
        t.ap_idle_i = 1;
        reset();
    }
    Rng rng;

    // address and data in any order, the response taken late or at once
    void write(uint32_t offset, uint32_t value, uint8_t strobes = 15) {
        auto &t = *top;
        bool aw = false, w = false;
        t.bready_i = 0;
        for (int k = 0; !(aw && w); k++) {
            CHECK(k < 200);
            t.awvalid_i = !aw && (t.awvalid_i || rng.percent(60));
            t.wvalid_i = !w && (t.wvalid_i || rng.percent(60));
            t.awaddr_i = (uint16_t)offset;
            t.wdata_i = value;
            t.wstrb_i = strobes;
            settle();
            const bool aw_go = t.awvalid_i && t.awready_o, w_go = t.wvalid_i && t.wready_o;
            tick();
            aw |= aw_go;
            w |= w_go;
            if (aw_go)
                t.awvalid_i = 0;
            if (w_go)
                t.wvalid_i = 0;
        }
        for (int k = 0;; k++) {
            CHECK(k < 200);
            t.bready_i = rng.percent(50);
            settle();
            const bool done = t.bvalid_o && t.bready_i;
            if (done)
                LONGS_EQUAL(0, t.bresp_o);
            tick();
            if (done)
                break;
        }
        t.bready_i = 0;
    }
    uint32_t read(uint32_t offset) {
        auto &t = *top;
        t.arvalid_i = 1;
        t.araddr_i = (uint16_t)offset;
        for (int k = 0;; k++) {
            CHECK(k < 200);
            settle();
            const bool go = t.arready_o;
            tick();
            if (go)
                break;
        }
        t.arvalid_i = 0;
        for (int k = 0;; k++) {
            CHECK(k < 200);
            t.rready_i = rng.percent(50);
            settle();
            const bool done = t.rvalid_o && t.rready_i;
            const uint32_t value = t.rdata_o;
            if (done)
                LONGS_EQUAL(0, t.rresp_o);
            tick();
            if (done) {
                t.rready_i = 0;
                return value;
            }
        }
    }
    void job_taken() {
        top->ap_ready_i = 1;
        tick();
        top->ap_ready_i = 0;
    }
    void job_done() {
        top->ap_done_i = 1;
        tick();
        top->ap_done_i = 0;
    }
};

const uint32_t MODE_BITS = MR_RGU_MODE_APPLY_MASK | MR_RGU_MODE_ROW_SCALE_MASK |
                           MR_RGU_MODE_STREAM_MASK | MR_RGU_MODE_SATURATE_MASK |
                           MR_RGU_MODE_FORMAT_MASK | MR_RGU_MODE_N_MASK | MR_RGU_MODE_TERMS_MASK |
                           MR_RGU_MODE_HAS_ODD_MASK | MR_RGU_MODE_HAS_EVEN_MASK;
struct {
    uint32_t offset, bits, reset;
} const WRITABLE[] = {
    {MR_RGU_SEEDS, ~0u, 0},
    {MR_RGU_SEEDS + 4, ~0u, 0},
    {MR_RGU_ROW_SCALE, ~0u, 0},
    {MR_RGU_ROW_SCALE + 4, ~0u, 0},
    {MR_RGU_DST, ~0u, 0},
    {MR_RGU_DST + 4, ~0u, 0},
    {MR_RGU_SRC, ~0u, 0},
    {MR_RGU_SRC + 4, ~0u, 0},
    {MR_RGU_DST_STRIDE, ~0u, 0},
    {MR_RGU_SRC_STRIDE, ~0u, 0},
    {MR_RGU_MODE, MODE_BITS, 0},
    {MR_RGU_CHUNKS, ~0u, 0},
    {MR_RGU_ROW0, ~0u, 0},
    {MR_RGU_ROW1, ~0u, 0},
    {MR_RGU_COL0, ~0u, 0},
    {MR_RGU_COL1, ~0u, 0},
    {MR_RGU_SCALE, ~0u, MR_RGU_SCALE_RESET},
    {MR_RGU_BATCH, ~0u, MR_RGU_BATCH_RESET},
    {MR_RGU_D_IN, ~0u, 0},
    {MR_RGU_D_OUT, ~0u, 0},
};

} // namespace

TEST_GROUP(Regs) {
    RegsBench b{run_seed()};
    void teardown() override { CHECK(!b.fired()); }
};

TEST(Regs, OffsetsAreTheContract) {
    LONGS_EQUAL(0x10, MR_RGU_SEEDS);
    LONGS_EQUAL(0x28, MR_RGU_SRC);
    LONGS_EQUAL(0x38, MR_RGU_MODE);
    LONGS_EQUAL(0x50, MR_RGU_SCALE);
    LONGS_EQUAL(0x60, MR_RGU_D_OUT);
    LONGS_EQUAL(0x80, MR_RGU_CYCLES);
    LONGS_EQUAL(0xCC, MR_RGU_ERROR);
    LONGS_EQUAL(0x003F0000, MR_RGU_MODE_TERMS_MASK);
}

TEST(Regs, ResetValuesWritesAndStrobes) {
    for (auto &r : WRITABLE)
        LONGS_EQUAL(r.reset, b.read(r.offset));
    uint32_t now[sizeof WRITABLE / sizeof *WRITABLE];
    int at = 0;
    for (auto &r : WRITABLE) {
        now[at] = (uint32_t)b.rng.next();
        b.write(r.offset, now[at]);
        now[at++] &= r.bits;
    }
    for (int round = 0; round < 200; round++) {
        const size_t k = b.rng.below(sizeof WRITABLE / sizeof *WRITABLE);
        const uint32_t value = (uint32_t)b.rng.next();
        const uint8_t strobes = (uint8_t)b.rng.below(16);
        uint32_t mask = 0;
        for (int i = 0; i < 4; i++)
            mask |= strobes >> i & 1 ? 0xFFu << (8 * i) : 0;
        b.write(WRITABLE[k].offset, value, strobes);
        now[k] = (now[k] & ~mask) | (value & mask & WRITABLE[k].bits);
        const size_t other = b.rng.below(sizeof WRITABLE / sizeof *WRITABLE);
        LONGS_EQUAL(now[k], b.read(WRITABLE[k].offset));
        LONGS_EQUAL(now[other], b.read(WRITABLE[other].offset));
    }
}

TEST(Regs, FieldsReachTheirPorts) {
    b.write(MR_RGU_MODE, 5u << MR_RGU_MODE_FORMAT_LSB | 10u << MR_RGU_MODE_N_LSB |
                             32u << MR_RGU_MODE_TERMS_LSB | MR_RGU_MODE_APPLY_MASK |
                             MR_RGU_MODE_HAS_EVEN_MASK);
    b.write(MR_RGU_SEEDS, 0x89ABCDEF);
    b.write(MR_RGU_SEEDS + 4, 0x01234567);
    b.write(MR_RGU_CHUNKS, 0x00070003);
    auto &t = *b.top;
    LONGS_EQUAL(5, t.mode_format_o);
    LONGS_EQUAL(10, t.mode_n_o);
    LONGS_EQUAL(32, t.mode_terms_o);
    CHECK(t.mode_apply_o && t.mode_has_even_o && !t.mode_has_odd_o && !t.mode_stream_o);
    CHECK(t.seeds_o == 0x0123456789ABCDEFu);
    LONGS_EQUAL(3, t.chunks_in_o);
    LONGS_EQUAL(7, t.chunks_out_o);
}

TEST(Regs, CountersAreReadOnlyAndWide) {
    auto &t = *b.top;
    t.cycles_i = 0x1122334455667788u;
    t.mults_busy_i = 0xFFEEDDCCBBAA9988u;
    t.params_lanes_i = 32;
    t.params_block_addr_i = 10;
    t.params_max_n_i = 10;
    t.params_apply_mults_i = 64;
    t.error_i = 6;
    for (int pass = 0; pass < 2; pass++) {
        LONGS_EQUAL(0x55667788, b.read(MR_RGU_CYCLES));
        LONGS_EQUAL(0x11223344, b.read(MR_RGU_CYCLES + 4));
        LONGS_EQUAL(0xBBAA9988, b.read(MR_RGU_MULTS_BUSY));
        LONGS_EQUAL(0xFFEEDDCC, b.read(MR_RGU_MULTS_BUSY + 4));
        LONGS_EQUAL(0x400A0A20, b.read(MR_RGU_PARAMS));
        LONGS_EQUAL(6, b.read(MR_RGU_ERROR));
        b.write(MR_RGU_CYCLES, 0);
        b.write(MR_RGU_ERROR, 0);
    }
}

TEST(Regs, UnmappedReadsZeroAndWritesNothing) {
    b.write(MR_RGU_SEEDS, 0x600D);
    for (uint32_t offset : {0x58u, 0x64u, 0xD0u, 0x110u, 0x810u, 0xFFCu}) {
        b.write(offset, 0xBAD);
        LONGS_EQUAL(0, b.read(offset));
    }
    LONGS_EQUAL(0x600D, b.read(MR_RGU_SEEDS));
    LONGS_EQUAL(4, b.read(MR_RGU_CTRL)); // idle and nothing else
}

TEST(Regs, StartStaysUntilTaken) {
    b.write(MR_RGU_CTRL, MR_RGU_CTRL_AP_START_MASK);
    for (int k = 0; k < 5; k++) {
        CHECK(b.top->ap_start_o);
        b.tick();
    }
    // not idle from the start on, though the unit has not moved yet
    LONGS_EQUAL(MR_RGU_CTRL_AP_START_MASK, b.read(MR_RGU_CTRL));
    b.write(MR_RGU_CTRL, 0); // writing 0 does not withdraw it
    CHECK(b.top->ap_start_o);
    b.top->ap_idle_i = 0;
    b.job_taken();
    CHECK(!b.top->ap_start_o);
    LONGS_EQUAL(MR_RGU_CTRL_AP_READY_MASK, b.read(MR_RGU_CTRL));
    LONGS_EQUAL(0, b.read(MR_RGU_CTRL));
}

TEST(Regs, DoneIsClearedByReading) {
    b.job_done();
    b.read(MR_RGU_ISR); // another register does not clear it
    LONGS_EQUAL(MR_RGU_CTRL_AP_DONE_MASK | MR_RGU_CTRL_AP_IDLE_MASK, b.read(MR_RGU_CTRL));
    LONGS_EQUAL(MR_RGU_CTRL_AP_IDLE_MASK, b.read(MR_RGU_CTRL));
}

TEST(Regs, DoneInTheCycleOfTheReadIsNotLost) {
    auto &t = *b.top;
    t.arvalid_i = 1;
    t.araddr_i = MR_RGU_CTRL;
    t.ap_done_i = 1;
    b.settle();
    CHECK(t.arready_o);
    b.tick();
    t.arvalid_i = t.ap_done_i = 0;
    t.rready_i = 1;
    b.settle();
    CHECK(t.rvalid_o);
    const bool now = t.rdata_o & MR_RGU_CTRL_AP_DONE_MASK;
    b.tick();
    const bool later = b.read(MR_RGU_CTRL) & MR_RGU_CTRL_AP_DONE_MASK;
    CHECK(now != later); // seen exactly once
    CHECK(!(b.read(MR_RGU_CTRL) & MR_RGU_CTRL_AP_DONE_MASK));
}

TEST(Regs, AutoRestartKeepsStart) {
    b.write(MR_RGU_CTRL, MR_RGU_CTRL_AP_START_MASK | MR_RGU_CTRL_AUTO_RESTART_MASK);
    for (int k = 0; k < 3; k++) {
        b.job_taken();
        CHECK(b.top->ap_start_o);
    }
    b.write(MR_RGU_CTRL, 0);
    b.job_taken();
    CHECK(!b.top->ap_start_o);
}

TEST(Regs, InterruptNeedsBothEnables) {
    b.job_done();
    LONGS_EQUAL(0, b.read(MR_RGU_ISR)); // not enabled, not recorded
    b.write(MR_RGU_IER, MR_RGU_IER_DONE_MASK);
    b.job_done();
    LONGS_EQUAL(1, b.read(MR_RGU_ISR));
    CHECK(!b.top->interrupt_o);
    b.write(MR_RGU_GIE, 1);
    CHECK(b.top->interrupt_o);
    CHECK(b.read(MR_RGU_CTRL) & MR_RGU_CTRL_INTERRUPT_MASK);
    b.write(MR_RGU_ISR, 2); // toggles another bit: on ...
    LONGS_EQUAL(3, b.read(MR_RGU_ISR));
    b.write(MR_RGU_ISR, 3); // ... and both off
    LONGS_EQUAL(0, b.read(MR_RGU_ISR));
    CHECK(!b.top->interrupt_o);
    b.write(MR_RGU_IER, MR_RGU_IER_READY_MASK);
    b.job_done();
    LONGS_EQUAL(0, b.read(MR_RGU_ISR));
    b.job_taken();
    LONGS_EQUAL(2, b.read(MR_RGU_ISR));
    CHECK(b.top->interrupt_o);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
