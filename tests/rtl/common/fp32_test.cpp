// float32 addition, multiplication and scaling against the host's own arithmetic: by class of
// operand, then at random. The scale's product has at most 51 bits, so the host's double holds it
// exactly and rounds it once.
#include "bench.hpp"
#include "Vfp32_tb.h"

#include <cmath>
#include <cstring>
#include <vector>

namespace {

float as_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
uint32_t as_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return std::isnan(f) ? 0x7FC00000 : bits;
}

// one value of every class and its neighbours, both signs
std::vector<uint32_t> classes() {
    std::vector<uint32_t> all;
    for (uint32_t bits :
         {0x00000000u, 0x00000001u, 0x00000002u, 0x003FFFFFu, 0x00400000u, 0x007FFFFFu, 0x00800000u,
          0x00800001u, 0x00FFFFFFu, 0x01000000u, 0x017FFFFFu, 0x0C000001u, 0x33800000u, 0x34000000u,
          0x3F7FFFFFu, 0x3F800000u, 0x3F800001u, 0x3FFFFFFFu, 0x40000000u, 0x4B7FFFFFu, 0x4B800000u,
          0x4B800001u, 0x7EFFFFFFu, 0x7F000000u, 0x7F7FFFFEu, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u,
          0x7FBFFFFFu, 0x7FC00000u, 0x7FFFFFFFu})
        for (uint32_t sign : {0u, 0x80000000u})
            all.push_back(bits | sign);
    return all;
}

} // namespace

TEST_GROUP(Fp32) {
    Bench<Vfp32_tb> b{run_seed()};
    // values under way: sums and products come out after three cycles, scaled ones after two
    std::vector<uint32_t> sums, prods, scaled;
    int wrong = 0;

    void setup() override {
        b.top->en_i = 0xFF;
        b.reset();
    }
    void push(uint32_t x, uint32_t y, uint32_t w, int shift) {
        b.top->a_i = x;
        b.top->b_i = y;
        b.top->w_i = w;
        b.top->shift_i = (uint32_t)shift & 0x3FF;
        sums.push_back(as_bits(as_float(x) + as_float(y)));
        prods.push_back(as_bits(as_float(x) * as_float(y)));
        scaled.push_back(
            as_bits((float)((double)as_float(x) * std::ldexp((double)w, -26 - shift))));
        b.tick();
        if (sums.size() >= 3)
            check("sum", sums[sums.size() - 3], b.top->sum_o, x, y);
        if (prods.size() >= 3)
            check("product", prods[prods.size() - 3], b.top->prod_o, x, y);
        if (scaled.size() >= 2)
            check("scale", scaled[scaled.size() - 2], b.top->scaled_o, x, w);
    }
    void check(const char *what, uint32_t want, uint32_t got, uint32_t x, uint32_t y) {
        if (want != got && wrong++ < 5)
            printf("%s near %08X %08X: got %08X, want %08X\n", what, x, y, got, want);
    }
    void drain() {
        for (int k = 0; k < 3; k++)
            push(0, 0, 1u << 26, 0);
        LONGS_EQUAL(0, wrong);
    }
};

TEST(Fp32, EveryPairOfClasses) {
    const std::vector<uint32_t> all = classes();
    for (uint32_t x : all)
        for (uint32_t y : all)
            push(x, y, 1u << 26, 0);
    drain();
}

TEST(Fp32, EveryClassByEveryShift) {
    for (uint32_t x : classes())
        for (uint32_t w :
             {1u << 25, (1u << 25) + 1, (1u << 26) - 1, 1u << 26, 0xB8AA3Bu << 3, (1u << 27) - 1})
            for (int shift = -512; shift <= 511; shift++)
                push(x, 0, w, shift);
    drain();
}

TEST(Fp32, RandomOperands) {
    Rng rng(run_seed());
    for (int k = 0; k < 400000; k++) {
        uint32_t x = (uint32_t)rng.next(), y = (uint32_t)rng.next();
        if (rng.percent(80)) // exponents that meet
            y = (y & 0x807FFFFF) | ((x + ((uint32_t)(rng.below(60) - 30) << 23)) & 0x7F800000);
        if (rng.percent(10)) // cancels but for the last bits
            y = (x ^ 0x80000000) + (uint32_t)rng.below(5) - 2;
        if (rng.percent(20)) // few bits: ties
            x &= 0xFFFFFFFFu << rng.below(23);
        uint32_t w = (1u << 25) + (uint32_t)rng.below(3u << 25);
        if (rng.percent(30))
            w &= 0xFFFFFFFFu << rng.below(25);
        const int near =
            (int)(x >> 23 & 0xFF) + (int)rng.below(40) - 20; // shift that ends near 2^-126
        push(x, y, w, rng.percent(50) ? near : (int)rng.below(1024) - 512);
    }
    drain();
}

// Products at the edges of the range, where rounding meets subnormals and infinity, and ties.
TEST(Fp32, RandomProducts) {
    Rng rng(run_seed());
    for (int k = 0; k < 400000; k++) {
        uint32_t x = (uint32_t)rng.next(), y = (uint32_t)rng.next();
        const int ex = (int)(x >> 23 & 0xFF);
        int sum = (int)rng.below(60) - 30; // of the exponents, beside the one aimed at
        sum += rng.percent(70) ? 128 : 381;
        const int ey = sum - ex < 0 ? 0 : sum - ex > 255 ? 255 : sum - ex;
        if (rng.percent(80))
            y = (y & 0x807FFFFF) | (uint32_t)ey << 23;
        if (rng.percent(20)) // a subnormal operand of any size
            x = (x & 0x80000000) | (x & 0x007FFFFF) >> rng.below(23);
        if (rng.percent(40)) { // few bits: ties
            x &= 0xFFFFFFFFu << rng.below(23);
            y &= 0xFFFFFFFFu << rng.below(23);
        }
        push(x, y, 1u << 26, 0);
    }
    drain();
}

TEST(Fp32, EnablesHoldTheStages) {
    b.top->a_i = as_bits(1.5f);
    b.top->b_i = as_bits(2.0f);
    b.top->w_i = 1u << 25;
    b.top->shift_i = 0;
    for (int k = 0; k < 3; k++)
        b.tick();
    b.top->en_i = 0;
    b.top->a_i = as_bits(100.0f);
    for (int k = 0; k < 4; k++)
        b.tick();
    LONGS_EQUAL(as_bits(3.5f), b.top->sum_o);
    LONGS_EQUAL(as_bits(3.0f), b.top->prod_o);
    LONGS_EQUAL(as_bits(0.75f), b.top->scaled_o);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
