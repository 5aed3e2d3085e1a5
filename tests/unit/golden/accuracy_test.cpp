// The normative accuracy of generated weights, over what a seed file may hold.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "CppUTest/TestHarness.h"
#include "tests/unit/golden/support.hpp"

TEST_GROUP(rgu_accuracy) {
    Maker m;

    void within(const Projection &p, const char *what) {
        Error e = measure(p);
        if (std::getenv("MR_VERBOSE"))
            std::printf("%-26s n %2d terms %2d: weight %.4f chunk %.4f of the bound\n", what, p.n,
                        p.terms, e.weight, e.chunk);
        CHECK_TRUE_TEXT(e.weight <= 1, what);
        CHECK_TRUE_TEXT(e.chunk <= 1, what);
    }

    // Gains of either sign from 2^-20 to 2^20, some of them zero.
    void spread_gains(Projection & p) {
        for (auto &g : p.gain)
            g = m.rng() % 6 ? (float)(std::exp2(m.uniform(-20, 20)) * (m.rng() % 2 ? 1 : -1)) : 0;
    }
};

TEST(rgu_accuracy, the_two_definitions_agree) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, n == 8 ? 3 : 1, n == 8 ? Parity::mixed : Parity::odd);
        mr_seed s = p.seed();
        oracle::Matrix a = define(p, 0, 0), b(a.size());
        LONGS_EQUAL(0, mr_def_chunk(&s, 0, 0, b.data()));
        double worst = 0;
        for (size_t k = 0; k < a.size(); k++)
            worst = std::fmax(worst, std::fabs(a[k] - b[k]));
        CHECK_TRUE(worst < 1e-13 * 8);
    }
}

TEST(rgu_accuracy, the_oracle_is_the_product_blade_by_blade) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, 1, n == 8 ? Parity::odd : Parity::even);
        oracle::Matrix w = define(p, 0, 0);
        std::vector<long double> theta;
        for (int16_t v : p.angles)
            theta.push_back(v * (acosl(-1) / 32768));
        oracle::Vector r = oracle::rotor(n, &theta[0]), e0(p.d(), 0.0L);
        oracle::Vector s = oracle::reverse(oracle::rotor(n, &theta[p.planes()]));
        e0[1] = 1;
        if (p.odd[0])
            r = oracle::multiply(n, r, e0, oracle::sign_by_swapping);
        for (int k = 0; k < 2; k++) {
            size_t j = m.rng() % p.d();
            oracle::Vector e(p.d(), 0.0L);
            e[j] = p.gain[0];
            e = oracle::multiply(n, oracle::multiply(n, r, e), s);
            for (size_t i = 0; i < p.d(); i++)
                CHECK_TRUE(std::fabs(w[i * p.d() + j] - (double)e[i]) < 1e-13 * 8);
        }
    }
}

TEST(rgu_accuracy, signs_are_those_of_anticommuting_factors) {
    for (unsigned a = 0; a < 256; a++)
        for (unsigned b = 0; b < 256; b++) {
            LONGS_EQUAL(oracle::sign_by_swapping(a, b), oracle::sign(a, b));
            LONGS_EQUAL(oracle::sign(a, b), mr_def_sign(a, b));
        }
}

TEST(rgu_accuracy, terms_and_parities_at_n_8) {
    for (int terms : {1, 2, 3, 8, 32})
        for (Parity parity : {Parity::even, Parity::odd, Parity::mixed}) {
            Projection p = m.make(8, terms, parity);
            within(p, "normal gains");
            spread_gains(p);
            within(p, "gains 2^-20..2^20");
        }
}

TEST(rgu_accuracy, terms_and_parities_at_n_10) {
    within(m.make(10, 1, Parity::even), "even");
    within(m.make(10, 1, Parity::odd), "odd");
    within(m.make(10, 2, Parity::mixed), "even and odd");
    Projection p = m.make(10, 3, Parity::even);
    spread_gains(p);
    within(p, "gains 2^-20..2^20");
    within(m.make(10, 8, Parity::mixed), "mixed");
    p = m.make(10, 32, Parity::even); // eight sets of angles, four terms of each
    size_t side = p.angles.size() / 32;
    for (size_t k = 8 * side; k < p.angles.size(); k++)
        p.angles[k] = p.angles[k - 8 * side];
    for (size_t t = 0; t < 32; t++) // the worst for rounding: every term counts in full
        p.gain[t] = t & 1 ? 1.0f : -1.0f;
    within(p, "32 full gains");
}

TEST(rgu_accuracy, thirty_two_equal_terms_do_not_overflow) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, 32, n == 8 ? Parity::odd : Parity::even);
        std::fill(p.gain.begin(), p.gain.end(), n == 8 ? -1.0f : 1.0f);
        size_t side = p.angles.size() / 32;
        for (size_t k = side; k < p.angles.size(); k++)
            p.angles[k] = p.angles[k - side];
        within(p, "32 times the same term");
        std::fill(p.angles.begin(), p.angles.end(), (int16_t)0); // all in one weight a row
        within(p, "32 times the identity");
    }
}

TEST(rgu_accuracy, one_gain_at_a_time) {
    for (float g : {1.0f, -1.0f, 0.75f, -0.99999994f, 1.0000001f, 0x1p-20f, -0x1p20f, 0x1p-100f,
                    -0x1.8p120f}) {
        Projection p = m.make(8, 1, m.rng() & 1 ? Parity::odd : Parity::even);
        p.gain[0] = g;
        within(p, "one gain");
    }
}

TEST(rgu_accuracy, gains_of_zero_are_zeros) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, 2, Parity::mixed);
        p.gain = {0.0f, -0.0f};
        p.row_scale.assign(p.d_out, -2.0f);
        for (uint32_t code : tile(p, MR_FMT_BF16))
            UNSIGNED_LONGS_EQUAL(0, code);
    }
    Projection p = m.make(8, 3, Parity::even);
    p.gain[1] = 0;
    within(p, "one of three gains zero");
    p.gain[0] = p.gain[2] = 0, p.gain[1] = -3;
    within(p, "two of three gains zero");
}

TEST(rgu_accuracy, cancelling_terms) {
    for (int n : {8, 10})
        for (float rest : {0.0f, 0.002f, 0x1p-16f}) {
            if (n == 10 && rest > 0.001f)
                continue;
            Projection p = m.make(n, 2, n == 8 ? Parity::odd : Parity::even);
            for (size_t k = 0; k < p.angles.size() / 2; k++)
                p.angles[p.angles.size() / 2 + k] = p.angles[k];
            p.gain = {1.25f, -1.25f + rest};
            within(p, "cancelling");
        }
    // three terms, the third nearly the sum of two that share the left rotor's angles but one
    Projection p = m.make(8, 3, Parity::even);
    size_t side = p.angles.size() / 3;
    for (size_t k = 0; k < side; k++)
        p.angles[side + k] = p.angles[2 * side + k] = p.angles[k];
    p.angles[side] = (int16_t)(p.angles[0] + 40), p.angles[2 * side] = (int16_t)(p.angles[0] + 20);
    p.gain = {1.0f, 1.0f, -2.0f};
    within(p, "cancelling to second order");
}

TEST(rgu_accuracy, row_scales) {
    for (int n : {8, 10}) {
        Projection p = m.make(n, 2, Parity::mixed);
        for (size_t r = 0; r < p.d_out; r++) { // all weights stay normal numbers of bf16
            double s = m.normal();
            s *= std::exp2(r % 5 == 1 ? 60 : r % 5 == 2 ? -60 : 0);
            p.row_scale.push_back(r % 5 == 3 ? 0.0f : (float)s);
        }
        within(p, "row scales");
        auto codes = tile(p, MR_FMT_BF16);
        for (size_t r = 3; r < p.d_out; r += 5)
            for (size_t c = 0; c < p.d_in; c++)
                UNSIGNED_LONGS_EQUAL(0, codes[r * p.d_in + c]);
        // one size of row alone, so that the large ones do not hide the others' chunk error
        for (auto &s : p.row_scale)
            s = (float)-std::exp2(-40);
        if (n == 8)
            within(p, "one tiny negative scale");
    }
}

TEST(rgu_accuracy, several_chunks) {
    Projection p = m.make(8, 3, Parity::mixed, 768, 768);
    spread_gains(p);
    within(p, "3 x 3 chunks");
}

TEST(rgu_accuracy, short_shapes_and_windows_are_corners_of_whole_chunks) {
    for (int n : {8, 10}) {
        size_t d = (size_t)1 << n;
        Projection p = m.make(n, 2, Parity::mixed, d, 2 * d), corner = p;
        corner.d_out = 1 + m.rng() % d, corner.d_in = d + 1 + m.rng() % d;
        auto whole = tile(p, MR_FMT_FP16), cut = tile(corner, MR_FMT_FP16);
        for (size_t r = 0; r < corner.d_out; r++)
            for (size_t c = 0; c < corner.d_in; c++)
                UNSIGNED_LONGS_EQUAL(whole[r * p.d_in + c], cut[r * corner.d_in + c]);
        for (int k = 0; k < 4; k++) {
            size_t r0 = m.rng() % corner.d_out, c0 = m.rng() % corner.d_in;
            size_t r1 = r0 + 1 + m.rng() % (corner.d_out - r0);
            size_t c1 = c0 + 1 + m.rng() % (corner.d_in - c0);
            auto window = tile(corner, MR_FMT_FP16, r0, r1, c0, c1);
            for (size_t r = r0; r < r1; r++)
                for (size_t c = c0; c < c1; c++)
                    UNSIGNED_LONGS_EQUAL(whole[r * p.d_in + c],
                                         window[(r - r0) * (c1 - c0) + c - c0]);
        }
    }
}

TEST(rgu_accuracy, angles_of_eight_bits) {
    Projection p = m.make(8, 2, Parity::mixed);
    for (auto &v : p.angles)
        v = (int16_t)((int8_t)(m.rng() & 255) * 256);
    within(p, "8-bit angles");
}

TEST(rgu_accuracy, extreme_angles) {
    for (int v : {0, -32768, 32767, 16384, -16384, 1, -1, 8192}) {
        Projection p = m.make(8, 1, Parity::odd);
        for (auto &a : p.angles)
            a = (int16_t)v;
        within(p, "one angle everywhere");
    }
}

TEST(rgu_accuracy, the_map_is_orthogonal) {
    for (int odd = 0; odd < 2; odd++) {
        Projection p = m.make(8, 1, odd ? Parity::odd : Parity::even);
        p.gain[0] = -1;
        auto image = p.image();
        std::vector<int32_t> w(p.d() * p.d());
        int e = mr_golden_chunk(8, 1, image.data(), w.data());
        double worst = 0;
        for (size_t a = 0; a < p.d(); a++)
            for (size_t b = 0; b <= a; b++) {
                double dot = 0;
                for (size_t k = 0; k < p.d(); k++)
                    dot += (double)w[k * p.d() + a] * w[k * p.d() + b];
                worst = std::fmax(worst, std::fabs(std::ldexp(dot, 2 * (e - 24)) - (a == b)));
            }
        if (std::getenv("MR_VERBOSE"))
            std::printf("orthogonality: %.2e\n", worst);
        CHECK_TRUE(worst < 0x1p-13);
    }
}
