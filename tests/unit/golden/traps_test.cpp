// The silent traps: mistakes after which everything still looks like an orthogonal map. Each is
// planted in the definition, and the bounds must notice.
#include <algorithm>
#include <cmath>
#include <vector>

#include "CppUTest/TestHarness.h"
#include "tests/unit/golden/support.hpp"

using oracle::Wrong;

TEST_GROUP(rgu_traps) {
    Maker m;

    void caught(Wrong wrong, const Projection &p) {
        CHECK_TRUE(measure(p).within());
        CHECK_FALSE(measure(p, wrong).within());
    }
    void caught(Wrong wrong) { caught(wrong, m.make(8, 1, Parity::even)); }
};

TEST(rgu_traps, blades_are_bitmasks_not_in_order_of_grade) { caught(Wrong::grade_major); }
TEST(rgu_traps, the_matrix_and_its_transpose) { caught(Wrong::transposed); }
TEST(rgu_traps, the_exponential_of_the_plane_not_of_minus_half_of_it) { caught(Wrong::half_angle); }
TEST(rgu_traps, planes_from_left_to_right) { caught(Wrong::plane_order); }
TEST(rgu_traps, the_right_side_is_reversed) { caught(Wrong::no_reverse); }
TEST(rgu_traps, side_0_is_the_left_one) { caught(Wrong::sides_swapped); }
TEST(rgu_traps, sgn_of_left_then_right) { caught(Wrong::sign_of_b_in_a); }
TEST(rgu_traps, odd_terms_fill_the_other_half) {
    caught(Wrong::odd_ignored, m.make(8, 1, Parity::odd));
    caught(Wrong::odd_ignored, m.make(8, 2, Parity::mixed));
}
TEST(rgu_traps, odd_terms_have_e0_on_the_right_of_r) {
    caught(Wrong::e0_on_the_left, m.make(8, 1, Parity::odd));
}

// One small rotation in one plane is enough to tell a mistake, wherever the plane is.
TEST(rgu_traps, every_plane_and_side_counts) {
    for (int n : {8, 10})
        for (int k = 0; k < (n == 8 ? 56 : 3); k++) {
            Projection p = m.make(n, 1, k & 1 ? Parity::odd : Parity::even);
            std::fill(p.angles.begin(), p.angles.end(), (int16_t)0);
            size_t at = n == 8 ? (size_t)k : m.rng() % p.angles.size();
            p.angles[at] = 700;
            CHECK_TRUE(measure(p).within());
            if (k % 8)
                continue;
            // the bounds tell a turn from its opposite
            Projection other = p;
            other.angles[at] = (int16_t)-700;
            CHECK_FALSE(measure_against(other, tile(p, MR_FMT_BF16)).within());
        }
}

TEST(rgu_traps, a_gain_of_zero_silences_its_term_alone) {
    Projection p = m.make(8, 2, Parity::even);
    p.gain[1] = 0;
    CHECK_TRUE(measure(p).within());
    Projection alone = p;
    alone.terms = 1;
    alone.angles.resize(p.angles.size() / 2), alone.gain.resize(1), alone.odd.resize(1);
    auto a = tile(p, MR_FMT_FP32), b = tile(alone, MR_FMT_FP32);
    CHECK_TRUE(a == b);
}

// pi is -1 exactly; 32767 instead of -32768, or a table with no entry for 1, leaves crumbs.
TEST(rgu_traps, an_angle_of_minus_32768_is_exactly_half_a_turn) {
    for (int n : {8, 10})
        for (int planes : {1, 2, n * (n - 1)}) {
            Projection p = m.make(n, 1, Parity::even);
            p.gain[0] = -0.375f;
            std::fill(p.angles.begin(), p.angles.end(), (int16_t)0);
            std::fill_n(p.angles.begin(), planes, (int16_t)-32768);
            std::shuffle(p.angles.begin(), p.angles.end(), m.rng);
            double want = planes % 2 ? 0.375 : -0.375;
            auto codes = tile(p, MR_FMT_FP32);
            for (size_t r = 0; r < p.d(); r++)
                for (size_t c = 0; c < p.d(); c++) {
                    double v = mr_format_value(codes[r * p.d() + c], MR_FMT_FP32);
                    DOUBLES_EQUAL(r == c ? want : 0, v, 0);
                }
        }
}

TEST(rgu_traps, n_too_small_or_not_supported_is_refused) {
    Projection p = m.make(8, 1, Parity::even);
    mr_seed s = p.seed();
    for (int n : {0, 1, 2, 7, 9, 11, 12, -8}) {
        s.n = n;
        CHECK_TRUE(mr_seed_check(&s) != nullptr);
    }
    std::vector<uint8_t> image = p.image(), dst(4);
    mr_golden_job job{};
    job.n = 8, job.terms = 1, job.d_out = job.d_in = 256, job.image = image.data(), job.scale = 1;
    job.row1 = job.col1 = 1;
    LONGS_EQUAL(0, mr_golden_tile(&job, dst.data(), 4));
    job.row1 = 257;
    LONGS_EQUAL(-1, mr_golden_tile(&job, dst.data(), 4));
    job.row1 = 1, job.n = 9;
    LONGS_EQUAL(-1, mr_golden_tile(&job, dst.data(), 4));
}
