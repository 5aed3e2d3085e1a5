// The error bounds of the NIC's function units, over every argument, against long double (64 bit
// significand: its own error is 2^-38 of the bounds).
#include <cmath>
#include <cstdint>
#include <cstdio>

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestHarness.h>

extern "C" {
#include "models/golden/fn.h"
}

namespace {
const long double ONE = 67108864.0L; // 2^26
const long double BOUND = 0x1p-25L;
} // namespace

TEST_GROUP(NicFn) {
    long double worst = 0;
    void see(long double got, long double want, long double unit) {
        const long double error = fabsl(got - want) / unit;
        if (error > worst)
            worst = error;
    }
    void report(const char *name) {
        printf("%s: largest error 2^%.3f\n", name, (double)log2l(worst));
        CHECK(worst <= BOUND);
        CHECK(worst > BOUND / 16); // smaller would mean that nothing was measured
    }
};

TEST(NicFn, Exp2IsWithinItsBound) {
    for (uint32_t f = 0; f < 1u << 24; f++) {
        const uint32_t got = mr_fn_exp2(f);
        const long double want = exp2l(-(long double)f / 16777216);
        CHECK(got > 1u << 25 && got <= 1u << 26);
        see(got / ONE, want, want);
    }
    report("exp2");
    LONGS_EQUAL(1 << 26, mr_fn_exp2(0));
}

TEST(NicFn, RecipIsWithinItsBound) {
    for (uint32_t m = 0; m < 1u << 23; m++) {
        const uint32_t got = mr_fn_recip(m);
        const long double want = 1 / (1 + (long double)m / 8388608);
        CHECK(got >= 1u << 25 && got <= 1u << 26);
        see(got / ONE, want, want);
    }
    report("recip");
    LONGS_EQUAL(1 << 26, mr_fn_recip(0));
}

TEST(NicFn, Log2IsWithinItsBound) {
    for (uint32_t m = 0; m < 1u << 23; m++) {
        const uint32_t got = mr_fn_log2(m);
        CHECK(got < 1u << 26);
        see(got / ONE, log2l(1 + (long double)m / 8388608), 1);
    }
    report("log2");
    LONGS_EQUAL(0, mr_fn_log2(0));
}

int main(int argc, char **argv) { return CommandLineTestRunner::RunAllTests(argc, argv); }
