// The seed image byte by byte, as docs/rgu-arithmetic.md has it: every generator reads it, so that
// a mistake in it would show in none of their comparisons.
#include <cmath>
#include <cstring>

#include "CppUTest/TestHarness.h"
#include "tests/unit/golden/support.hpp"

TEST_GROUP(rgu_image) {
    Maker m;

    static uint64_t little(const uint8_t *p, int bytes) {
        uint64_t v = 0;
        for (int k = bytes; k-- > 0;)
            v = v << 8 | p[k];
        return v;
    }
    // gain = +-g 2^(e-22) to half a unit, 2^e the smallest power of two that holds the largest.
    void record(const uint8_t *p, const Projection &q, size_t at, double largest) {
        auto w = (uint32_t)little(p, 4);
        auto e = (int32_t)little(p + 4, 4);
        double gain = (double)q.gain[at];
        LONGS_EQUAL(q.odd[at], w >> 30 & 1);
        LONGS_EQUAL(0, w & 0x3F800000);
        if (w & 0x7FFFFF)
            CHECK_EQUAL(gain < 0, (bool)(w >> 31));
        if (largest == 0)
            LONGS_EQUAL(0, e);
        else
            CHECK_TRUE(std::ldexp(1.0, e) >= largest && std::ldexp(0.5, e) < largest);
        double g = std::ldexp(std::fabs(gain), 22 - e), got = w & 0x7FFFFF;
        CHECK_TRUE(std::fabs(g - got) <= 0.5);
        if (std::fabs(g - got) == 0.5)
            LONGS_EQUAL(0, w & 1); // a tie goes to even
        for (size_t k = 0; k < 2 * q.planes(); k++)
            LONGS_EQUAL(q.angles[at * 2 * q.planes() + k], (int16_t)little(p + 8 + 2 * k, 2));
        for (size_t k = 8 + 4 * q.planes(); k < mr_rgu_record_bytes(q.n); k++)
            BYTES_EQUAL(0, p[k]);
    }
};

TEST(rgu_image, records_are_as_documented) {
    LONGS_EQUAL(128, mr_rgu_record_bytes(8));
    LONGS_EQUAL(192, mr_rgu_record_bytes(10));
    const float special[] = {0.0f,          -0.0f,      1.0f,       -1.0f,           0.5f,
                             0x1.8p-23f,    0x1.4p-22f, -0x1p-149f, 0x1.FFFFFEp127f, -0x1.000002p0f,
                             0x1.FFFFFEp-1f};
    for (int n : {8, 10})
        for (int k = 0; k < 40; k++) {
            size_t d = (size_t)1 << n;
            Projection p = m.make(n, 1 + k % 3, k & 1 ? Parity::mixed : Parity::odd,
                                  1 + m.rng() % (3 * d), 1 + m.rng() % (3 * d));
            for (auto &g : p.gain)
                if (k % 4)
                    g = m.rng() % 3 ? special[m.rng() % 11] : (float)(m.normal() * 0x1p-23);
            auto image = p.image();
            size_t terms = (size_t)p.terms, rb = mr_rgu_record_bytes(n);
            LONGS_EQUAL(p.rows() * p.cols() * terms * rb, image.size());
            for (size_t o = 0; o < p.rows(); o++)
                for (size_t i = 0; i < p.cols(); i++) {
                    double largest = 0;
                    for (size_t t = 0; t < terms; t++)
                        largest = std::fmax(largest, std::fabs((double)p.gain[p.at(t, o, i)]));
                    for (size_t t = 0; t < terms; t++)
                        record(&image[((o * p.cols() + i) * terms + t) * rb], p, p.at(t, o, i),
                               largest);
                }
        }
}
