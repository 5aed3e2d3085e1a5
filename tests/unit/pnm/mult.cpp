// The golden hybrid multiplier against float multiplication, the error targets of the design, and
// what streams must not do: repeat each other, lock up, wrap round.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/MemoryLeakWarningPlugin.h"
#include "CppUTest/TestHarness.h"

#include "models/golden/pnm_mult.h"
#include "tests/unit/pnm/mult_error.h"

static uint64_t g_seed;

static float value_of(uint32_t code) {
    float f;
    memcpy(&f, &code, sizeof f);
    return f;
}

static uint32_t code_of(float f) {
    uint32_t code;
    memcpy(&code, &f, sizeof code);
    return code;
}

static uint16_t bf16(int sign, int exponent, int fraction) {
    return (uint16_t)(sign << 15 | exponent << 7 | fraction);
}

static mr_pnm_mult_mode mode_of(mr_pnm_kind kind, int gen, unsigned stream, unsigned cut = 0) {
    mr_pnm_mult_mode m = mr_pnm_mult_default();
    m.kind = kind;
    m.gen = (mr_pnm_gen)gen;
    m.stream = stream;
    m.cut = cut;
    return m;
}

// Every mode there is, exact last.
static std::vector<mr_pnm_mult_mode> every_mode() {
    std::vector<mr_pnm_mult_mode> all;
    for (int gen = 0; mr_pnm_gen_name(gen); gen++)
        for (unsigned stream = 4; stream <= 256; stream *= 2) {
            for (unsigned cut = 0; cut <= MR_PNM_CUT_MAX; cut++)
                all.push_back(mode_of(MR_PNM_SPLIT, gen, stream, cut));
            mr_pnm_mult_mode full = mode_of(MR_PNM_FULL, gen, stream);
            if (!mr_pnm_mult_check(&full))
                all.push_back(full);
        }
    all.push_back(mode_of(MR_PNM_EXACT, 0, 16));
    return all;
}

// A mode's table, made once.
struct Table {
    const std::vector<uint16_t> &p;
    explicit Table(const mr_pnm_mult_mode &m) : p(cached(m)) {}
    mult_error error() const { return mult_error_of(p.data()); }

private:
    static const std::vector<uint16_t> &cached(const mr_pnm_mult_mode &m) {
        static std::map<unsigned, std::vector<uint16_t>> tables;
        std::vector<uint16_t> &t =
            tables[(unsigned)m.kind << 24 | (unsigned)m.gen << 16 | m.stream << 4 | m.cut];
        if (t.empty()) {
            t.resize(MR_PNM_TABLE);
            LONGS_EQUAL(0, mr_pnm_mult_table(&m, t.data()));
        }
        return t;
    }
};

// What IEEE says of two bf16 values, with this unit's flushing of everything subnormal.
static uint32_t ieee(uint16_t a, uint16_t b) {
    float x = value_of((uint32_t)a << 16), y = value_of((uint32_t)b << 16);
    if (std::fpclassify(x) == FP_SUBNORMAL)
        x = std::copysign(0.0f, x);
    if (std::fpclassify(y) == FP_SUBNORMAL)
        y = std::copysign(0.0f, y);
    volatile float product = x * y;
    float p = product;
    if (std::isnan(p))
        return 0x7FC00000;
    if (std::fpclassify(p) == FP_SUBNORMAL)
        p = std::copysign(0.0f, p);
    return code_of(p);
}

TEST_GROUP(pnm_mult){};

// The table of the design page: RMS at most, mean a tenth of the column's RMS, a quarter at 128.
TEST(pnm_mult, errors_stay_below_the_targets) {
    static const double rms[] = {.040, .0235, .0133, .0071, .0037, .0020};
    for (int gen : {MR_PNM_UNARY, MR_PNM_CENTRED})
        for (int at = 0; at < 6; at++) {
            unsigned stream = 4u << at;
            mult_error e = Table(mode_of(MR_PNM_SPLIT, gen, stream)).error();
            CHECK_TEXT(e.rms <= rms[at], mr_pnm_gen_name(gen));
            CHECK_TEXT(std::fabs(e.mean) <= rms[at] * (stream == 128 ? 0.25 : 0.1),
                       mr_pnm_gen_name(gen));
        }
}

// Centred streams do with L bits what unary ones do not with 2 L.
TEST(pnm_mult, centred_streams_are_worth_three_times_the_error) {
    for (unsigned stream = 4; stream <= 256; stream *= 2) {
        mult_error u = Table(mode_of(MR_PNM_SPLIT, MR_PNM_UNARY, stream)).error();
        mult_error c = Table(mode_of(MR_PNM_SPLIT, MR_PNM_CENTRED, stream)).error();
        CHECK(c.rms * 3 < u.rms);
        CHECK(std::fabs(c.mean) < 1e-4);
    }
}

// Every mode's bias is gone: the mean below a tenth of the RMS, or half a step of P.
TEST(pnm_mult, no_mode_keeps_a_bias) {
    for (const mr_pnm_mult_mode &m : every_mode()) {
        mult_error e = Table(m).error();
        if (std::fabs(e.mean) > 0.1 * e.rms && std::fabs(e.mean) > 1.0 / 16384 / 2) {
            char text[128];
            snprintf(text, sizeof text, "%s %s L %u cut %u: mean %g, rms %g",
                     mr_pnm_gen_name(m.gen), mr_pnm_kind_name(m.kind), m.stream, m.cut, e.mean,
                     e.rms);
            FAIL(text);
        }
    }
}

TEST(pnm_mult, a_cut_more_is_less_error) {
    for (int gen = 0; mr_pnm_gen_name(gen); gen++)
        for (unsigned stream = 4; stream <= 256; stream *= 2)
            for (unsigned cut = 1; cut <= MR_PNM_CUT_MAX; cut++)
                CHECK(Table(mode_of(MR_PNM_SPLIT, gen, stream, cut)).error().rms <=
                      Table(mode_of(MR_PNM_SPLIT, gen, stream, cut - 1)).error().rms);
}

// Unary streams that start at zero over-count: what offset and bias are for.
TEST(pnm_mult, without_offset_and_bias_the_error_is_one_sided) {
    std::vector<uint16_t> p(MR_PNM_TABLE);
    for (unsigned stream = 4; stream <= 256; stream *= 2) {
        mr_pnm_mult_mode m = mode_of(MR_PNM_SPLIT, MR_PNM_UNARY, stream);
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, p.data()));
        mult_error e = mult_error_of(p.data());
        CHECK(e.mean > 0.8 * e.rms);
    }
}

// The conditional advance makes of Sobol's pair the unary pair: n(fa) numbers of the reversed
// counter.
TEST(pnm_mult, sobol_is_unary_that_starts_at_zero) {
    std::vector<uint16_t> u(MR_PNM_TABLE), s(MR_PNM_TABLE);
    for (unsigned stream = 4; stream <= 256; stream *= 2) {
        mr_pnm_mult_mode m = mode_of(MR_PNM_SPLIT, MR_PNM_SOBOL, stream);
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, s.data()));
        m.gen = MR_PNM_UNARY;
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, u.data()));
        // b's reversed counter has 8 bits there and log2 L here: equal where n(fa) = L, close
        // elsewhere
        double worst = 0;
        for (int i = 0; i < MR_PNM_TABLE; i++)
            worst = std::fmax(worst, std::fabs((double)u[(size_t)i] - s[(size_t)i]) / 16384);
        CHECK(worst <= 1.0 / stream * std::log2(stream));
    }
}

TEST(pnm_mult, one_times_anything_is_exact) {
    for (const mr_pnm_mult_mode &m : every_mode()) {
        if (m.kind == MR_PNM_FULL)
            continue;
        Table t(m);
        for (unsigned f = 0; f < 128; f++) {
            LONGS_EQUAL((128 + f) * 128, t.p[f]);
            LONGS_EQUAL((128 + f) * 128, t.p[128 * f]);
        }
    }
}

// Streams full of ones are worth 1, not 0: no counter wraps.
TEST(pnm_mult, p_of_one_does_not_wrap) {
    std::vector<uint16_t> p(MR_PNM_TABLE);
    for (unsigned stream = 4; stream <= 256; stream *= 2) {
        mr_pnm_mult_mode m = mode_of(MR_PNM_FULL, MR_PNM_UNARY, stream);
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, p.data()));
        // 255/256 > k/L for all L places, but for the last of 256, which is b's last too
        LONGS_EQUAL(stream == 256 ? 0xFF00 : 0xFFFF, p[MR_PNM_TABLE - 1]);
        m.kind = MR_PNM_SPLIT;
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, p.data()));
        // 127/128 > k/L: all of up to 64 places; not place 127 of 128, which is b's 127 too; not
        // a's 254 and 255 of 256 and not b's, where a stands at 127 and 255
        const unsigned missing = stream < 128 ? 0 : stream == 128 ? 1 : 3;
        LONGS_EQUAL(0x4000 + 128 * 254 + 16384 / stream * (stream - missing), p[MR_PNM_TABLE - 1]);
    }
    // the unit's own constants and generators: the largest product is the largest that P holds, or
    // as much less as the mode's worst error
    for (const mr_pnm_mult_mode &m : every_mode()) {
        const double exact = 255.0 * 255.0, is = Table(m).p[MR_PNM_TABLE - 1];
        CHECK(is / exact >= 1 - Table(m).error().worst - 1e-9);
        CHECK(m.kind == MR_PNM_FULL || is / exact > 0.9);
    }
}

TEST(pnm_mult, p_stays_in_its_range) {
    for (const mr_pnm_mult_mode &m : every_mode())
        CHECK(*std::min_element(Table(m).p.begin(), Table(m).p.end()) >= 0x4000);
}

// One seed for both streams would make x of x*x; two make x squared.
TEST(pnm_mult, squares_are_squares) {
    for (int gen = 0; mr_pnm_gen_name(gen); gen++) {
        Table t(mode_of(MR_PNM_SPLIT, gen, 256));
        double worst = 0, sum = 0;
        for (unsigned f = 1; f < 128; f++) {
            double x = f / 128.0, q = t.p[129 * f] / 16384.0 - 1 - 2 * x;
            worst = std::fmax(worst, std::fabs(q - x * x));
            sum += q - x * x;
        }
        CHECK_TEXT(worst < 0.06, mr_pnm_gen_name(gen)); // x - x*x reaches 0.25
        CHECK_TEXT(std::fabs(sum / 127) < 0.02, mr_pnm_gen_name(gen));
    }
}

TEST(pnm_mult, exact_is_the_ieee_product) {
    static const int exponents[] = {0, 1, 2, 63, 64, 126, 127, 128, 190, 191, 253, 254, 255};
    mr_pnm_mult_mode m = mode_of(MR_PNM_EXACT, 0, 16);
    Table t(m);
    for (int ea : exponents)
        for (int eb : exponents)
            for (int signs = 0; signs < 4; signs++)
                for (int fa = 0; fa < 128; fa++)
                    for (int fb = 0; fb < 128; fb++) {
                        uint16_t a = bf16(signs & 1, ea, fa), b = bf16(signs >> 1, eb, fb);
                        uint32_t want = ieee(a, b);
                        if (mr_pnm_mult_by_table(t.p.data(), a, b, nullptr) != want ||
                            ((fa * 128 + fb) % 97 == 0 && mr_pnm_mult(&m, a, b, nullptr) != want))
                            LONGS_EQUAL(want, mr_pnm_mult(&m, a, b, nullptr));
                    }
}

// Zeros, infinities, NaN and what is flushed are the same in every mode, signs included.
TEST(pnm_mult, classes_behave_as_in_binary) {
    static const uint16_t codes[] = {0x0000, 0x8000, 0x0001, 0x807F, 0x7F80, 0xFF80,
                                     0x7FC0, 0xFF81, 0x7F81, 0x3F80, 0xBF80};
    for (const mr_pnm_mult_mode &m : every_mode()) {
        if (m.stream > 16 && m.stream < 256)
            continue;
        for (uint16_t a : codes)
            for (uint16_t b : codes)
                if (m.kind != MR_PNM_FULL || (a & 0x7FFF) != 0x3F80 || (b & 0x7FFF) != 0x3F80)
                    LONGS_EQUAL(ieee(a, b), mr_pnm_mult(&m, a, b, nullptr));
    }
}

TEST(pnm_mult, flags_say_what_was_met) {
    mr_pnm_mult_mode m = mr_pnm_mult_default();
    struct {
        uint16_t a, b;
        unsigned flags;
    } cases[] = {{0x3F80, 0x4000, 0},
                 {0x0000, 0x3F80, 0},
                 {0x7F80, 0x3F80, 0},
                 {0x0001, 0x3F80, MR_PNM_UNDERFLOW},
                 {0x0080, 0x3F00, MR_PNM_UNDERFLOW}, // 2^-126 halved
                 {0x7F00, 0x4000, MR_PNM_OVERFLOW},  // 2^127 doubled
                 {0x7F80, 0x0000, MR_PNM_INVALID},
                 {0x7F80, 0x8001, MR_PNM_INVALID | MR_PNM_UNDERFLOW},
                 {0x7FC0, 0x3F80, MR_PNM_INVALID}};
    for (auto &c : cases) {
        unsigned flags = 0;
        mr_pnm_mult(&m, c.a, c.b, &flags);
        LONGS_EQUAL(c.flags, flags);
    }
    // the smallest normal number is reached from below by P >= 2 alone
    LONGS_EQUAL(0x00800000, mr_pnm_mult(&m, 0x0080, 0x3F80, nullptr));
}

TEST(pnm_mult, the_table_is_the_product) {
    std::mt19937_64 rng(g_seed);
    for (const mr_pnm_mult_mode &m : every_mode()) {
        Table t(m);
        for (int i = 0; i < 300; i++) {
            uint16_t a = (uint16_t)rng(), b = (uint16_t)rng();
            unsigned one = 0, two = 0;
            LONGS_EQUAL(mr_pnm_mult(&m, a, b, &one), mr_pnm_mult_by_table(t.p.data(), a, b, &two));
            LONGS_EQUAL(one, two);
        }
    }
}

TEST(pnm_mult, impossible_modes_are_refused) {
    std::vector<uint16_t> p(MR_PNM_TABLE);
    std::vector<mr_pnm_mult_mode> bad;
    for (unsigned stream : {0u, 1u, 2u, 3u, 5u, 12u, 255u, 257u, 512u})
        bad.push_back(mode_of(MR_PNM_SPLIT, 0, stream));
    bad.push_back(mode_of(MR_PNM_SPLIT, 0, 16, 7));
    bad.push_back(mode_of(MR_PNM_FULL, 0, 16, 1));
    bad.push_back(mode_of(MR_PNM_FULL, MR_PNM_CENTRED, 16));
    bad.push_back(mode_of(MR_PNM_SPLIT, 4, 16));
    bad.push_back(mode_of((mr_pnm_kind)3, 0, 16));
    bad.push_back(mode_of(MR_PNM_SPLIT, MR_PNM_LFSR, 16));
    bad.back().lane = 256;
    for (const mr_pnm_mult_mode &m : bad) {
        CHECK(mr_pnm_mult_check(&m) != nullptr);
        LONGS_EQUAL(-1, mr_pnm_mult_table(&m, p.data()));
        LONGS_EQUAL(0x7FC00000, mr_pnm_mult(&m, 0x3F80, 0x3F80, nullptr));
    }
    for (const mr_pnm_mult_mode &m : every_mode())
        CHECK(mr_pnm_mult_check(&m) == nullptr);
}

// ---- shift registers

TEST_GROUP(pnm_lfsr){};

TEST(pnm_lfsr, lock_states_recover_to_the_default_and_say_so) {
    mr_pnm_mult_mode d = mode_of(MR_PNM_SPLIT, MR_PNM_LFSR, 64);
    for (uint32_t seed : {0u, 0xFFFFFFu, 0xFF000000u}) {
        mr_pnm_mult_mode m = d;
        m.seed_a = seed;
        unsigned flags = 0;
        LONGS_EQUAL(mr_pnm_mult(&d, 0x3FC1, 0x3FA3, nullptr),
                    mr_pnm_mult(&m, 0x3FC1, 0x3FA3, &flags));
        LONGS_EQUAL(MR_PNM_SEED, flags);
    }
    for (uint32_t seed : {0u, 0x7FFFFFu, 0x800000u}) {
        unsigned flags = 0;
        LONGS_EQUAL(mr_pnm_lfsr_seed(1, d.seed_b, 3, nullptr),
                    mr_pnm_lfsr_seed(1, seed, 3, &flags));
        LONGS_EQUAL(MR_PNM_SEED, flags);
    }
    unsigned flags = 0;
    mr_pnm_lfsr_seed(0, 1, 0, &flags);
    LONGS_EQUAL(0, flags);
}

TEST(pnm_lfsr, periods_are_full) {
    for (int which = 0; which < 2; which++) {
        uint32_t start = mr_pnm_lfsr_seed(which, 1, 0, nullptr), s = start, n = 0;
        do {
            mr_pnm_lfsr_next(which, &s);
            n++;
        } while (s != start && n < 1u << 24);
        LONGS_EQUAL((1u << (24 - which)) - 1, n);
    }
}

TEST(pnm_lfsr, a_lane_is_a_jump) {
    for (int which = 0; which < 2; which++) {
        uint32_t s = mr_pnm_lfsr_seed(which, 0x1234, 0, nullptr);
        for (unsigned lane = 1; lane < 8; lane++) {
            for (int i = 0; i < 4096; i++)
                mr_pnm_lfsr_next(which, &s);
            LONGS_EQUAL(s, mr_pnm_lfsr_seed(which, 0x1234, lane, nullptr));
        }
    }
}

// Bits "number >= 128" of a lane's register, packed, from number 0 on.
static std::vector<uint64_t> bits_of(int which, unsigned lane, size_t words) {
    std::vector<uint64_t> v(words);
    uint32_t s = mr_pnm_lfsr_seed(which, 0xACE1, lane, nullptr);
    for (size_t i = 0; i < 64 * words; i++)
        v[i / 64] |= (uint64_t)(mr_pnm_lfsr_next(which, &s) >> 7) << (i % 64);
    return v;
}

// Lanes with one seed: correlation of their streams below 0.1 for lags 0 to 1,024 either way, 32
// lanes. 16,384 places put chance at 1/128: the bound is thirteen of those, a repeat would be 128.
TEST(pnm_lfsr, lanes_do_not_repeat_each_other) {
    const size_t words = 256, extra = 17;
    std::vector<std::vector<uint64_t>> streams;
    for (int which = 0; which < 2; which++)
        for (unsigned lane = 0; lane < 32; lane++)
            streams.push_back(bits_of(which, lane, words + extra));
    double worst = 0;
    for (size_t x = 0; x < streams.size(); x++)
        for (size_t y = 0; y < streams.size(); y++) {
            if (x == y || (x / 32 != y / 32 && x % 32 != y % 32))
                continue; // registers of different kinds and lanes meet at no gate
            for (size_t lag = 0; lag <= 1024; lag++) {
                int differ = 0;
                for (size_t w = 0; w < words; w++) {
                    uint64_t late = streams[y][w + lag / 64] >> (lag % 64);
                    if (lag % 64)
                        late |= streams[y][w + lag / 64 + 1] << (64 - lag % 64);
                    differ += __builtin_popcountll(streams[x][w] ^ late);
                }
                worst = std::fmax(worst, std::fabs(1 - 2.0 * differ / (64.0 * words)));
            }
        }
    CHECK(worst < 0.1);
    CHECK(worst > 0.0);
}

// Stochastic-computing correlation of two streams, from how often each and both are 1.
static double scc(double pa, double pb, double both) {
    double d = both - pa * pb;
    double most = d > 0 ? std::fmin(pa, pb) - pa * pb : pa * pb - std::fmax(pa + pb - 1, 0.0);
    return most > 0 ? d / most : 0;
}

// The two streams of one gate: the correlation of every pair of fractions, averaged, and at one
// half.
TEST(pnm_lfsr, streams_that_meet_are_not_correlated) {
    for (int gen : {MR_PNM_UNARY, MR_PNM_SOBOL}) {
        mr_pnm_mult_mode m = mode_of(MR_PNM_SPLIT, gen, 256);
        std::vector<uint16_t> p(MR_PNM_TABLE);
        LONGS_EQUAL(0, mr_pnm_mult_table_at(&m, 0, 0, p.data()));
        double sum = 0, signed_sum = 0;
        int pairs = 0;
        for (int fa = 16; fa <= 112; fa++)
            for (int fb = 16; fb <= 112; fb++, pairs++) {
                double both = (p[(size_t)(128 * fa + fb)] - 0x4000 - 128 * (fa + fb)) / 16384.0;
                double c = scc(fa / 128.0, fb / 128.0, both);
                sum += std::fabs(c);
                signed_sum += c;
                if (fa == 64 && fb == 64)
                    CHECK_TEXT(std::fabs(c) < 0.1, mr_pnm_gen_name(gen));
            }
        CHECK_TEXT(sum / pairs < 0.1, mr_pnm_gen_name(gen));
        CHECK_TEXT(std::fabs(signed_sum / pairs) < 0.1, mr_pnm_gen_name(gen));
    }
}

// The registers' streams, long enough that chance alone stays far below: 65,536 places, every pair
// of fractions in steps of an eighth, five seeds.
TEST(pnm_lfsr, the_registers_are_not_correlated) {
    const int length = 65536;
    for (uint32_t seed : {1u, 0xACE1u, 0x123456u, 0x7FFFFEu, 0x400000u}) {
        uint32_t sa = mr_pnm_lfsr_seed(0, seed, 0, nullptr),
                 sb = mr_pnm_lfsr_seed(1, seed, 0, nullptr);
        int a[8] = {0}, b[8] = {0}, both[8][8] = {{0}};
        for (int k = 0; k < length; k++) {
            unsigned ra = mr_pnm_lfsr_next(0, &sa), rb = mr_pnm_lfsr_next(1, &sb);
            for (unsigned x = 1; x < 8; x++) {
                a[x] += ra < 32 * x;
                b[x] += rb < 32 * x;
                for (unsigned y = 1; y < 8; y++)
                    both[x][y] += ra < 32 * x && rb < 32 * y;
            }
        }
        for (int x = 1; x < 8; x++)
            for (int y = 1; y < 8; y++)
                CHECK(std::fabs(scc((double)a[x] / length, (double)b[y] / length,
                                    (double)both[x][y] / length)) < 0.1);
    }
}

int main(int argc, char **argv) {
    // the tables outlive the test that made them
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    const char *text = getenv("MR_SEED");
    g_seed = text ? strtoull(text, nullptr, 0) : std::random_device{}();
    printf("seed %llu (MR_SEED=%llu reproduces)\n", (unsigned long long)g_seed,
           (unsigned long long)g_seed);
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
