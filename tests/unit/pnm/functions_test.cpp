// The vector side's functions against MPFR.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include <mpfr.h>

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/TestHarness.h>

extern "C" {
#include "models/golden/pnm.h"
}

TEST_GROUP(PnmFunctions){};

// 2^x and log2 against MPFR: the error the arithmetic page states.
TEST(PnmFunctions, AgainstMpfr) {
    const char *text = getenv("MR_SEED");
    const uint64_t seed = text ? strtoull(text, nullptr, 0) : std::random_device{}();
    printf("seed %llu (MR_SEED=%llu reproduces)\n", (unsigned long long)seed,
           (unsigned long long)seed);
    std::mt19937_64 rng(seed);
    mpfr_t x, y, z;
    mpfr_inits2(200, x, y, z, (mpfr_ptr)0);
    double worst_exp = 0, worst_log = 0;
    for (int n = 0; n < 300000; n++) {
        uint32_t bits = (uint32_t)rng();
        if (n % 2) // exponents that matter
            bits = (bits & 0x807FFFFF) | (uint32_t)(100 + (rng() % 35)) << 23;
        float f;
        memcpy(&f, &bits, 4);
        if (f != f)
            continue;
        mpfr_set_flt(x, f, MPFR_RNDN);
        if (f > -126 && f < 127.9f) {
            const uint32_t got = mr_pnm_exp2(bits);
            float g;
            memcpy(&g, &got, 4);
            mpfr_exp2(y, x, MPFR_RNDN);
            mpfr_set_flt(z, g, MPFR_RNDN);
            mpfr_sub(z, z, y, MPFR_RNDN);
            mpfr_div(z, z, y, MPFR_RNDN);
            worst_exp = fmax(worst_exp, fabs(mpfr_get_d(z, MPFR_RNDN)));
        }
        if (f > 0 && bits < 0x7F800000) {
            const uint32_t got = mr_pnm_log2(bits);
            float g;
            memcpy(&g, &got, 4);
            mpfr_log2(y, x, MPFR_RNDN);
            mpfr_set_flt(z, g, MPFR_RNDN);
            mpfr_sub(z, z, y, MPFR_RNDN);
            const double size = fmax(1, fabs(mpfr_get_d(y, MPFR_RNDN)));
            worst_log = fmax(worst_log, fabs(mpfr_get_d(z, MPFR_RNDN)) / size);
        }
    }
    mpfr_clears(x, y, z, (mpfr_ptr)0);
    printf("2^x: %.3g relative; log2: %.3g of the larger of 1 and the result\n", worst_exp,
           worst_log);
    // table 2^-25, rounding of the argument ln 2 2^-25, of the result 2^-24
    CHECK(worst_exp <= ldexp(1, -25) * (1 + 0.6932 + 2));
    CHECK(worst_log <= ldexp(1, -25) * 3);
}

static uint32_t bits_of(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

TEST(PnmFunctions, ExactWhereTheyCanBe) {
    for (int k = -149; k < 128; k++) {
        CHECK_EQUAL(bits_of(ldexpf(1, k)), mr_pnm_exp2(bits_of((float)k)));
        CHECK_EQUAL(bits_of((float)k), mr_pnm_log2(bits_of(ldexpf(1, k))));
    }
    CHECK_EQUAL(0x7F800000u, mr_pnm_exp2(bits_of(128)));
    CHECK_EQUAL(0u, mr_pnm_exp2(bits_of(-151)));
    CHECK_EQUAL(0u, mr_pnm_exp2(0xFF800000u));
    CHECK_EQUAL(0x7FC00000u, mr_pnm_exp2(0xFFC12345u));
    CHECK_EQUAL(0xFF800000u, mr_pnm_log2(0x80000000u));
    CHECK_EQUAL(0x7FC00000u, mr_pnm_log2(bits_of(-1)));
    CHECK_EQUAL(0x7F800000u, mr_pnm_log2(0x7F800000u));
}

int main(int argc, char **argv) { return CommandLineTestRunner::RunAllTests(argc, argv); }
