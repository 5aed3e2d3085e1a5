// The shift registers in the RTL: one cycle through every state but zero, seeds that are taken or
// refused, a lock state met on the way.
#include <cstring>

#include "../common/bench.hpp"
#include "Vlfsr_tb.h"
#include "Vlfsr_tb___024root.h"
#include "models/golden/pnm_mult.h"

namespace {

enum { PORTS = 4, NUMBERS = 16 };

unsigned lane(int port) { return port < 2 ? 0 : 200; } // as in lfsr_tb.sv

struct Lfsr : Bench<Vlfsr_tb> {
    explicit Lfsr(uint64_t noise) : Bench(noise) {
        top->seed_we_i = top->en_i = top->restart_i = 0;
        reset();
    }
    const uint8_t *numbers(int port) {
        return reinterpret_cast<const uint8_t *>(top->numbers_o.data()) + NUMBERS * port;
    }
    void seed(uint32_t value) {
        top->seed_we_i = 1;
        top->seed_i = value;
        top->en_i = rng_en;
        tick();
        top->seed_we_i = 0;
    }
    // The next sixteen numbers of every port are those of the golden registers.
    void follows(uint32_t state[PORTS], const char *what) {
        top->en_i = 1;
        settle();
        for (int port = 0; port < PORTS; port++)
            for (int i = 0; i < NUMBERS; i++)
                LONGS_EQUAL_TEXT(mr_pnm_lfsr_next(port % 2, &state[port]), numbers(port)[i], what);
        tick();
    }
    CData rng_en = 0; // the shift at the time of a seed's write
};

uint32_t seed_of(int which) {
    return which ? mr_pnm_mult_default().seed_b : mr_pnm_mult_default().seed_a;
}

} // namespace

TEST_GROUP(Lfsr){};

// From reset on, number by number, until the state comes back: 2^n - 1 states, so all but zero. No
// state of that cycle can lead to zero, and there is no other state.
TEST(Lfsr, EveryStateButZeroIsOnOneCycle) {
    Lfsr b(run_seed());
    b.top->en_i = 1;
    uint32_t window[2] = {0, 0}, first[2] = {0, 0};
    uint64_t period[2] = {0, 0}, zeros = 0;
    const uint32_t mask[2] = {0xFFFFFF, 0x7FFFFF};
    for (uint64_t n = 0; !period[0] || !period[1]; n += NUMBERS) {
        b.settle();
        for (int which = 0; which < 2; which++) {
            const uint8_t *numbers = b.numbers(which);
            for (int i = 0; i < NUMBERS && !period[which]; i++) {
                const uint64_t seen = n + (uint64_t)i + 1; // the state is the last three numbers
                window[which] = (window[which] << 8 | numbers[i]) & mask[which];
                if (seen < 3)
                    continue;
                zeros += window[which] == 0;
                if (seen == 3)
                    first[which] = window[which];
                else if (window[which] == first[which])
                    period[which] = seen - 3;
            }
        }
        if (n > 1u << 24)
            break;
        b.tick();
    }
    CHECK_EQUAL((1u << 24) - 1, period[0]);
    CHECK_EQUAL((1u << 23) - 1, period[1]);
    CHECK_EQUAL(0u, zeros);
    CHECK_EQUAL(0u, (unsigned)b.top->fault_o);
}

// A seed is taken whether or not the register moves in that cycle; zero and all ones are not.
TEST(Lfsr, SeedsWinOverTheShift) {
    Rng rng(run_seed() + 1);
    Lfsr b(rng.next());
    const uint32_t odd[] = {0, 0xFFFFFF, 0x7FFFFF, 0x800000, 1, 0x400000, 0xFFFFFE, 0x7FFFFE};
    for (int n = 0; n < 3000; n++) {
        const uint32_t value = n < 8    ? odd[n]
                               : n < 32 ? 1u << (n - 8)
                                        : (uint32_t)rng.below(1 << 24);
        b.rng_en = rng.percent(50);
        b.seed(value);
        uint32_t state[PORTS];
        for (int port = 0; port < PORTS; port++) {
            unsigned flags = 0;
            state[port] = mr_pnm_lfsr_seed(port % 2, value, lane(port), &flags);
            CHECK_EQUAL(flags != 0, (b.top->fault_o >> port & 1) != 0);
            CHECK(state[port] != 0);
        }
        for (int k = (int)rng.below(4); k >= 0; k--)
            b.follows(state, "after a seed");
        b.top->restart_i = 1; // from the seed again
        for (int port = 0; port < PORTS; port++)
            state[port] = mr_pnm_lfsr_seed(port % 2, value, lane(port), nullptr);
        b.follows(state, "after a restart");
        b.top->restart_i = 0;
        b.follows(state, "and on");
    }
}

// The lock state, forced where no input leads: the default seed's numbers follow, and a flag until
// a good seed is written.
TEST(Lfsr, ALockStateOnTheWayIsLeft) {
    Rng rng(run_seed() + 2);
    Lfsr b(rng.next());
    Vlfsr_tb___024root *r = b.top->rootp;
    for (int n = 0; n < 100; n++) {
        b.seed(1 + (uint32_t)rng.below(0x7FFFFE));
        b.top->en_i = 1;
        for (int k = (int)rng.below(5); k > 0; k--)
            b.tick();
        CHECK_EQUAL(0u, (unsigned)b.top->fault_o);
        r->lfsr_tb__DOT__g_lfsr__BRA__0__KET____DOT__u_lfsr__DOT__state_q = 0;
        r->lfsr_tb__DOT__g_lfsr__BRA__1__KET____DOT__u_lfsr__DOT__state_q = 0;
        r->lfsr_tb__DOT__g_lfsr__BRA__2__KET____DOT__u_lfsr__DOT__state_q = 0;
        r->lfsr_tb__DOT__g_lfsr__BRA__3__KET____DOT__u_lfsr__DOT__state_q = 0;
        uint32_t state[PORTS];
        for (int port = 0; port < PORTS; port++)
            state[port] = mr_pnm_lfsr_seed(port % 2, seed_of(port % 2), lane(port), nullptr);
        b.follows(state, "after the lock state");
        b.follows(state, "and on");
        CHECK_EQUAL(15u, (unsigned)b.top->fault_o);
    }
    b.seed(5);
    CHECK_EQUAL(0u, (unsigned)b.top->fault_o);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
