// rgu_sincos over every angle, against the golden model and against long double trigonometry.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <random>

#include "Vrgu_sincos.h"
#include "verilated.h"

#include "models/golden/rgu.h"

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/MemoryLeakWarningPlugin.h"
#include "CppUTest/TestHarness.h"

static uint32_t g_seed;

// Half a unit of the last place for the rounding, and what the ROMs' own rounding can add: an error
// of 2^-25 in every entry, 2^-25 (1 + sin(127 pi/32768) + cos + sin) at most, in units of 2^-20.
static const long double BOUND = 0.5L + (1 + 0.0122L + 1.4143L) / 32;

static int sext22(uint32_t x) { return (int)(x << 10) >> 10; }

TEST_GROUP(Sincos) {
    Vrgu_sincos *top;
    std::mt19937 rng{g_seed};

    void setup() override {
        top = new Vrgu_sincos;
        top->clk_i = 0;
        top->rst_ni = 0;
        top->clear_i = 0;
        top->valid_i = 0;
        top->ready_i = 0;
        tick();
        top->rst_ni = 1;
    }
    void teardown() override {
        top->final();
        delete top;
    }
    void tick() {
        top->clk_i = 0;
        top->eval();
        top->clk_i = 1;
        top->eval();
    }
    // All 65,536 angles from `first` on, each check against both references. Returns the cycles
    // taken.
    long run(int stall_in, int stall_out) {
        std::deque<int> expected;
        long cycles = 0;
        int sent = 0, seen = 0;
        bool offered = false;
        while (seen < 65536) {
            if (!offered && sent < 65536)
                offered = (int)(rng() % 100) >= stall_in;
            top->valid_i = offered;
            top->angle_i = (uint16_t)sent;
            top->ready_i = 0;
            top->clk_i = 0;
            top->eval();
            bool valid = top->valid_o;
            top->ready_i = (int)(rng() % 100) >= stall_out;
            top->eval();
            CHECK_EQUAL(valid, (bool)top->valid_o);
            if (valid && top->ready_i) {
                CHECK(!expected.empty());
                check_angle((int16_t)expected.front(), sext22(top->cos_o), sext22(top->sin_o));
                expected.pop_front();
                seen++;
            }
            if (offered && top->ready_o) {
                expected.push_back(sent++);
                offered = false;
            }
            top->clk_i = 1;
            top->eval();
            cycles++;
        }
        return cycles;
    }
    void check_angle(int v, int c, int s) {
        int32_t gc, gs;
        mr_golden_sincos(v, &gc, &gs);
        LONGS_EQUAL(gc, c);
        LONGS_EQUAL(gs, s);
        long double theta = (long double)v * 3.14159265358979323846264338327950288L / 32768;
        CHECK(fabsl(c - cosl(theta) * 1048576) <= BOUND);
        CHECK(fabsl(s - sinl(theta) * 1048576) <= BOUND);
        if (v % 16384 == 0) {
            LONGS_EQUAL(lroundl(cosl(theta)) * 1048576, c);
            LONGS_EQUAL(lroundl(sinl(theta)) * 1048576, s);
        }
    }
};

TEST(Sincos, EveryAngleAtFullRate) { LONGS_EQUAL(2 * 65536 + 3, run(0, 0)); }

TEST(Sincos, EveryAngleUnderStalls) { run(40, 60); }

TEST(Sincos, ClearForgetsWhatIsInFlight) {
    top->valid_i = 1;
    top->angle_i = 0x1234;
    for (int i = 0; i < 9; i++)
        tick();
    CHECK(top->valid_o);
    top->valid_i = 0;
    top->clear_i = 1;
    tick();
    top->clear_i = 0;
    for (int i = 0; i < 9; i++) {
        tick();
        CHECK(!top->valid_o);
    }
    run(0, 0);
}

int main(int argc, char **argv) {
    const char *seed = getenv("MR_SEED");
    g_seed = seed ? (uint32_t)strtoul(seed, nullptr, 0) : (uint32_t)time(nullptr);
    printf("MR_SEED=%u\n", g_seed);
    Verilated::randReset(2);
    Verilated::randSeed((int)(g_seed & 0x7fffffff));
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads(); // Verilated code frees in its own ways
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
