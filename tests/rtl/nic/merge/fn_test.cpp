// The function units against their C, for every argument there is.
#include "../../common/bench.hpp"
#include "Vfn_tb.h"

extern "C" {
#include "models/golden/fn.h"
}

namespace {

uint32_t field(const WData *words, int k) {
    const int at = 27 * k;
    uint64_t two = words[at / 32];
    if (at / 32 + 1 < 7)
        two |= (uint64_t)words[at / 32 + 1] << 32;
    return (uint32_t)(two >> (at % 32)) & 0x7FFFFFF;
}

} // namespace

TEST_GROUP(NicFn){};

TEST(NicFn, EveryArgument) {
    Bench<Vfn_tb> b(run_seed());
    const uint32_t words = 1u << 21;
    uint64_t wrong = 0;
    b.top->en_i = 15;
    b.reset();
    for (uint32_t at = 0; at < words + 3; at++) {
        b.top->x_i = at % words;
        b.tick();
        if (at < 3)
            continue;
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t x = 8 * (at - 3) + k;
            const bool bad = field(b.top->exp2_o, (int)k) != mr_fn_exp2(x) ||
                             // the 23 fraction bits of a float32 are every other argument
                             (x % 2 == 0 && (field(b.top->recip_o, (int)k) != mr_fn_recip(x / 2) ||
                                             field(b.top->log2_o, (int)k) != mr_fn_log2(x / 2)));
            if (bad && wrong++ < 5)
                printf("argument %06X differs\n", x);
        }
    }
    LONGS_EQUAL(0, wrong);
}

TEST(NicFn, EnablesHoldTheStages) {
    Bench<Vfn_tb> b(run_seed());
    b.top->en_i = 15;
    b.reset();
    b.top->x_i = 12345;
    for (int k = 0; k < 4; k++)
        b.tick();
    b.top->en_i = 0;
    b.top->x_i = 777;
    for (int k = 0; k < 5; k++)
        b.tick();
    LONGS_EQUAL(mr_fn_exp2(8 * 12345), field(b.top->exp2_o, 0));
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
