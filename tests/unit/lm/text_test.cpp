/* UTF-8 in and out, and the choice of the next byte. */
#include "tests/unit/lm/support.h"

#include "host/lm/sample.h"
#include "host/lm/text.h"

#include <cmath>

#include <CppUTest/TestHarness.h>

namespace {

std::string mend(const std::string &s, size_t *partial = nullptr) {
    std::string out(3 * s.size() + 1, 0);
    out.resize(mr_utf8_mend((const uint8_t *)s.data(), s.size(), &out[0], partial));
    return out;
}

size_t valid(const std::string &s) { return mr_utf8_valid((const uint8_t *)s.data(), s.size()); }

const std::string R = "\xEF\xBF\xBD";

} // namespace

TEST_GROUP(Text){};

TEST(Text, ValidAndNot) {
    LONGS_EQUAL(9, valid("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80" + std::string()) - 1);
    LONGS_EQUAL(1, valid("a\xC0\x80"));             /* overlong */
    LONGS_EQUAL(0, valid("\xED\xA0\x80"));          /* a surrogate */
    LONGS_EQUAL(0, valid("\xF4\x90\x80\x80"));      /* above U+10FFFF */
    LONGS_EQUAL(0, valid("\xE2\x82"));              /* cut off */
    LONGS_EQUAL(2, valid(std::string("ab\x80")));   /* a stray continuation */
    LONGS_EQUAL(4, valid(std::string("a\0bc", 4))); /* zero is a character */
}

/* The example of the Unicode standard, table 3-8, and its neighbours. */
TEST(Text, ReplacesMaximalSubparts) {
    CHECK(mend("a\xF1\x80\x80\xE1\x80\xC2"
               "b\x80"
               "c\x80\xBF"
               "d") == "a" + R + R + R + "b" + R + "c" + R + R + "d");
    CHECK(mend("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
               "A") == R + R + R + R + R + R + R + R + "A");
    CHECK(mend("\xED\xA0\x80") == R + R + R);
    CHECK(mend("\xE2\x82") == R);
    CHECK(mend("ok \xC3\xA9") == "ok \xC3\xA9");
}

TEST(Text, WholeOrInPieces) {
    std::mt19937_64 rng = test_rng(10);
    for (int round = 0; round < 2000; round++) {
        std::string s, pieces;
        for (uint64_t n = rng() % 40; n--;)
            s += "a\x80\xBF\xC3\xA9\xE2\x82\xAC\xF0\x9F\xED\xA0\xF4\x90"[rng() % 14];
        /* as the command prints while bytes arrive: what is whole so far, the rest with the next */
        for (size_t shown = 0, end = 1; end <= s.size(); end++) {
            size_t partial = 0;
            pieces += mend(s.substr(shown, end - shown), end == s.size() ? nullptr : &partial);
            shown = end - partial;
        }
        CHECK(pieces == mend(s));
        CHECK(valid(mend(s)) == mend(s).size());
    }
}

TEST_GROUP(Sampling){};

TEST(Sampling, Greedy) {
    mr_sampler s = {0, 1, 1};
    const float tie[4] = {1, 3, 3, 2}, holes[3] = {NAN, -1, NAN}, none[2] = {NAN, NAN};
    LONGS_EQUAL(1, mr_sample(&s, tie, 4));
    LONGS_EQUAL(1, mr_sample(&s, holes, 3));
    LONGS_EQUAL(0, mr_sample(&s, none, 2));
    CHECK(s.state == 1); /* no random number is spent */
}

/* The first outputs of SplitMix64 from seed 1234567, as its authors' code gives them. */
TEST(Sampling, Generator) {
    const uint64_t want[3] = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u};
    mr_sampler s = {1, 1, 1234567};
    for (uint64_t w : want)
        DOUBLES_EQUAL((double)(w >> 11) * 0x1p-53, mr_sampler_uniform(&s), 0);
}

TEST(Sampling, FrequenciesFollowTheSoftmax) {
    const float l[5] = {0.5f, -1, 2, 2, 0};
    for (double temperature : {0.5, 1.0, 2.0}) {
        double p[5], sum = 0;
        for (int i = 0; i < 5; i++)
            sum += p[i] = exp(l[i] / temperature);
        mr_sampler s = {temperature, 1, test_seed};
        int hits[5] = {0};
        const int n = 40000;
        for (int i = 0; i < n; i++)
            hits[mr_sample(&s, l, 5)]++;
        for (int i = 0; i < 5; i++) { /* six standard deviations */
            double q = p[i] / sum;
            DOUBLES_EQUAL(q, hits[i] / (double)n, 6 * sqrt(q * (1 - q) / n));
        }
    }
}

TEST(Sampling, NucleusAndSeeds) {
    const float l[4] = {logf(0.5f), logf(0.3f), logf(0.15f), logf(0.05f)};
    mr_sampler s = {1, 0.75, test_seed};
    bool seen[4] = {false};
    for (int i = 0; i < 2000; i++)
        seen[mr_sample(&s, l, 4)] = true;
    CHECK(seen[0] && seen[1] && !seen[2] && !seen[3]);
    mr_sampler tiny = {1, 1e-9, 5};
    for (int i = 0; i < 100; i++)
        LONGS_EQUAL(0, mr_sample(&tiny, l, 4));
    mr_sampler a = {1, 1, 42}, b = {1, 1, 42};
    for (int i = 0; i < 100; i++)
        LONGS_EQUAL(mr_sample(&a, l, 4), mr_sample(&b, l, 4));
}
