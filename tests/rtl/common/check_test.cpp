// The assertions themselves: lawful traffic keeps them quiet, and each planted fault makes the one
// that forbids it fire, by name.
#include "bench.hpp"
#include "Vcheck_tb.h"

#include <cstring>

namespace {

struct CheckBench : Bench<Vcheck_tb> {
    CheckBench() : Bench(run_seed()) {
        auto &t = *top;
        t.s_valid_i = t.awvalid_i = t.wvalid_i = t.bvalid_i = t.arvalid_i = t.rvalid_i = 0;
        t.s_ready_i = t.awready_i = t.wready_i = t.bready_i = t.arready_i = t.rready_i = 1;
        t.s_keep_i = 15;
        t.s_last_i = t.wlast_i = t.rlast_i = 0;
        t.awid_i = t.bid_i = t.arid_i = t.rid_i = 0;
        t.awlen_i = t.arlen_i = 0;
        t.awaddr_i = t.araddr_i = 0;
        t.bresp_i = t.rresp_i = 0;
        reset();
    }
    void aw(int id, uint32_t addr, int len) {
        auto &t = *top;
        t.awid_i = (uint8_t)id;
        t.awaddr_i = addr;
        t.awlen_i = (uint8_t)len;
        t.awvalid_i = 1;
        tick();
        t.awvalid_i = 0;
    }
    void w(bool last) {
        auto &t = *top;
        t.wdata_i = cycles;
        t.wlast_i = last;
        t.wvalid_i = 1;
        tick();
        t.wvalid_i = 0;
    }
    void words(int n) {
        for (int k = 0; k < n; k++)
            w(k + 1 == n);
    }
    void b(int id) {
        auto &t = *top;
        t.bid_i = (uint8_t)id;
        t.bvalid_i = 1;
        tick();
        t.bvalid_i = 0;
    }
    void ar(int id, uint32_t addr, int len) {
        auto &t = *top;
        t.arid_i = (uint8_t)id;
        t.araddr_i = addr;
        t.arlen_i = (uint8_t)len;
        t.arvalid_i = 1;
        tick();
        t.arvalid_i = 0;
    }
    void r(int id, bool last) {
        auto &t = *top;
        t.rid_i = (uint8_t)id;
        t.rdata_i = cycles;
        t.rlast_i = last;
        t.rvalid_i = 1;
        tick();
        t.rvalid_i = 0;
    }
};

} // namespace

TEST_GROUP(Check) {
    CheckBench b;
    Capture *capture = nullptr;

    void setup() override { capture = new Capture; }
    void end(const char *label) {
        b.tick();
        const std::string text = capture->end();
        delete capture;
        capture = nullptr;
        if (!label) {
            CHECK_TEXT(!b.fired(), text.c_str());
        } else {
            CHECK_TEXT(b.fired(), label);
            STRCMP_CONTAINS((std::string(".") + label + ":").c_str(), text.c_str());
        }
    }
    void quiet() { end(nullptr); }
    void fires(const char *label) { end(label); }
    void teardown() override {
        if (capture) {
            capture->end();
            delete capture;
        }
    }
    // a stream beat that waits one cycle, then `change`, then another cycle
    template <class Change>
    void stalled(Change change) {
        auto &t = *b.top;
        t.s_valid_i = 1;
        t.s_ready_i = 0;
        t.s_data_i = 0x1234;
        t.s_last_i = 1;
        t.s_keep_i = 7;
        b.tick();
        change(t);
        b.tick();
    }
};

TEST(Check, LawfulStreamIsQuiet) {
    stalled([](Vcheck_tb &) {});
    b.top->s_ready_i = 1;
    b.tick();
    b.top->s_data_i = 0xAAAA;
    b.top->s_keep_i = 15;
    b.top->s_last_i = 0;
    b.tick();
    b.top->s_valid_i = 0;
    b.top->s_keep_i = 0;
    b.tick();
    quiet();
}
TEST(Check, ValidWithdrawn) {
    stalled([](Vcheck_tb &t) { t.s_valid_i = 0; });
    fires("u_stream.valid_stays");
}
TEST(Check, DataChanged) {
    stalled([](Vcheck_tb &t) { t.s_data_i = 0x1235; });
    fires("u_stream.data_stable");
}
TEST(Check, KeepChanged) {
    stalled([](Vcheck_tb &t) { t.s_keep_i = 3; });
    fires("u_stream.keep_stable");
}
TEST(Check, LastChanged) {
    stalled([](Vcheck_tb &t) {
        t.s_keep_i = 7;
        t.s_last_i = 0;
    });
    fires("u_stream.last_stable");
}
TEST(Check, KeepWithHole) {
    stalled([](Vcheck_tb &t) { t.s_ready_i = 1; });
    b.top->s_keep_i = 5;
    b.tick();
    fires("u_stream.keep_contiguous");
}
TEST(Check, KeepEmpty) {
    b.top->s_valid_i = 1;
    b.top->s_last_i = 1;
    b.top->s_keep_i = 0;
    b.tick();
    fires("u_stream.keep_not_empty");
}
TEST(Check, KeepShortInsideAFrame) {
    b.top->s_valid_i = 1;
    b.top->s_last_i = 0;
    b.top->s_keep_i = 7;
    b.tick();
    fires("u_stream.keep_full");
}
TEST(Check, NothingIsCheckedInReset) {
    b.top->s_valid_i = 1;
    b.top->s_ready_i = 0;
    b.tick();
    b.top->rst_ni = 0;
    b.top->s_valid_i = 0;
    b.tick();
    b.top->rst_ni = 1;
    b.tick();
    quiet();
}

TEST(Check, LawfulAxiIsQuiet) {
    b.aw(1, 0xFF8, 0); // the last word of a page
    b.words(1);
    b.b(1);
    b.words(3); // data first
    b.aw(2, 0x1000, 2);
    b.tick();
    b.aw(2, 0x2000, 1);
    b.w(false);
    b.b(2); // while the next burst of the id is on its way
    b.w(true);
    b.b(2);
    b.aw(3, 0x0, 255);
    b.aw(0, 0x3F00, 31);
    b.words(256);
    b.words(32);
    b.b(0); // ids answer in any order
    b.b(3);
    b.ar(1, 0x800, 255);
    b.ar(2, 0x40, 1);
    b.ar(1, 0x40, 0);
    b.r(2, false);
    for (int k = 0; k < 255; k++)
        b.r(1, false);
    b.r(2, true); // interleaved
    b.r(1, true);
    b.r(1, true);
    quiet();
}
TEST(Check, WriteBurstLeavesItsPage) {
    b.aw(0, 0xFF8, 1);
    fires("u_axi.aw_in_page");
}
TEST(Check, ReadBurstLeavesItsPage) {
    b.ar(0, 0xF00, 32);
    fires("u_axi.ar_in_page");
}
TEST(Check, WriteBurstTooShort) {
    b.aw(0, 0, 3);
    b.words(3);
    b.tick();
    fires("u_axi.w_beats_match");
}
TEST(Check, WriteBurstTooLong) {
    b.aw(0, 0, 3);
    b.words(5);
    b.tick();
    fires("u_axi.w_beats_match");
}
TEST(Check, WriteDataFirstTooShort) {
    b.words(3);
    b.aw(0, 0, 3);
    b.tick();
    fires("u_axi.w_beats_match");
}
TEST(Check, WriteBurstWithoutLast) {
    b.aw(0, 0, 255);
    for (int k = 0; k < 256; k++)
        b.w(false);
    fires("u_axi.w_not_too_long");
}
TEST(Check, ResponseWithoutBurst) {
    b.b(0);
    fires("u_axi.b_for_complete_burst");
}
TEST(Check, ResponseBeforeLastWord) {
    b.aw(0, 0, 1);
    b.w(false);
    b.b(0);
    fires("u_axi.b_for_complete_burst");
}
TEST(Check, ResponseBeforeAddress) {
    b.words(1);
    b.b(0);
    fires("u_axi.b_for_complete_burst");
}
TEST(Check, ResponseWithWrongId) {
    b.aw(1, 0, 0);
    b.words(1);
    b.tick();
    b.b(2);
    fires("u_axi.b_for_complete_burst");
}
TEST(Check, ResponseTwice) {
    b.aw(1, 0, 0);
    b.words(1);
    b.b(1);
    b.b(1);
    fires("u_axi.b_for_complete_burst");
}
TEST(Check, ReadDataWithoutBurst) {
    b.ar(1, 0, 0);
    b.r(2, true);
    fires("u_axi.r_for_open_burst");
}
TEST(Check, ReadBurstTooShort) {
    b.ar(1, 0, 3);
    b.r(1, false);
    b.r(1, true);
    fires("u_axi.r_last_matches");
}
TEST(Check, ReadBurstTooLong) {
    b.ar(1, 0, 1);
    b.r(1, false);
    b.r(1, false);
    fires("u_axi.r_last_matches");
}
TEST(Check, EveryChannelHoldsStill) {
    capture->end();
    delete capture;
    capture = nullptr;
    struct {
        const char *label;
        void (*offer)(Vcheck_tb &);
        void (*change)(Vcheck_tb &);
    } channels[] = {
        {"u_axi.u_aw.data_stable", [](Vcheck_tb &t) { t.awvalid_i = 1, t.awready_i = 0; },
         [](Vcheck_tb &t) { t.awaddr_i += 64; }},
        {"u_axi.u_aw.valid_stays", [](Vcheck_tb &t) { t.awvalid_i = 1, t.awready_i = 0; },
         [](Vcheck_tb &t) { t.awvalid_i = 0; }},
        {"u_axi.u_w.data_stable", [](Vcheck_tb &t) { t.wvalid_i = 1, t.wready_i = 0; },
         [](Vcheck_tb &t) { t.wstrb_i ^= 1; }},
        {"u_axi.u_w.last_stable", [](Vcheck_tb &t) { t.wvalid_i = 1, t.wready_i = 0; },
         [](Vcheck_tb &t) { t.wlast_i ^= 1; }},
        {"u_axi.u_ar.data_stable", [](Vcheck_tb &t) { t.arvalid_i = 1, t.arready_i = 0; },
         [](Vcheck_tb &t) { t.arlen_i ^= 1; }},
        {"u_axi.u_b.data_stable", [](Vcheck_tb &t) { t.bvalid_i = 1, t.bready_i = 0; },
         [](Vcheck_tb &t) { t.bresp_i ^= 2; }},
        {"u_axi.u_r.data_stable", [](Vcheck_tb &t) { t.rvalid_i = 1, t.rready_i = 0; },
         [](Vcheck_tb &t) { t.rdata_i ^= 1; }},
    };
    for (auto &c : channels) {
        CheckBench one;
        Capture seen;
        c.offer(*one.top);
        one.tick();
        c.change(*one.top);
        one.tick();
        const std::string text = seen.end();
        STRCMP_CONTAINS((std::string(".") + c.label + ":").c_str(), text.c_str());
    }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
