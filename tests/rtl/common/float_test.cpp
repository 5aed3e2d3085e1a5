// Float conversion cells against a reference that knows nothing of shifting and rounding bits: the
// exact value is a long double (64 bit significand, every product here has at most 55), the 8 and
// 16 bit formats are sorted tables of their values, and rounding is comparing with the middle of
// two neighbours.
#include "bench.hpp"
#include "Vfloat_tb.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <vector>

namespace {

enum { BF16, FP16, E4M3, E5M2, INT8, FP32, FORMATS };
const char *const NAMES[] = {"bf16", "fp16", "e4m3", "e5m2", "int8", "fp32"};
enum { NX = 1, UF = 2, OF = 4, NV = 8 };

struct Shape {
    int man, emin;
    uint32_t max, nan, sign;
    bool has_inf;
};
const Shape SHAPES[] = {
    {7, -126, 0x7F7F, 0x7FC0, 0x8000, true},
    {10, -14, 0x7BFF, 0x7E00, 0x8000, true},
    {3, -6, 0x7E, 0x7F, 0x80, false},
    {2, -14, 0x7B, 0x7E, 0x80, true},
    {0, 0, 127, 0, 0, false},
    {23, -126, 0x7F7FFFFF, 0x7FC00000, 0x80000000, true},
};

float as_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
uint32_t as_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

// values of the codes 0..max+1 of a small format; max+1 stands for the first value it cannot hold
const std::vector<long double> &table(int format) {
    static std::vector<long double> tables[4];
    auto &t = tables[format];
    if (t.empty()) {
        const Shape &s = SHAPES[format];
        for (uint32_t code = 0; code <= s.max + 1; code++) {
            const uint32_t frac = code & ((1u << s.man) - 1), field = code >> s.man;
            t.push_back(field ? ldexpl((1u << s.man) + frac, (int)field - 1 + s.emin - s.man)
                              : ldexpl(frac, s.emin - s.man));
        }
    }
    return t;
}

struct Result {
    uint32_t code;
    int flags;
};

Result reference(long double x, int format, bool saturate) {
    const Shape &s = SHAPES[format];
    if (x == 0)
        return {0, 0};
    if (format == INT8) {
        const long double r = nearbyintl(x);
        const long double c = std::min(127.0L, std::max(-128.0L, r));
        return {(uint32_t)(int)c & 0xFF, (r != c ? OF : 0) | (c != x ? NX : 0)};
    }
    const long double mag = fabsl(x);
    uint32_t code;
    long double back;
    if (format == FP32) {
        const float f = (float)mag;
        code = as_bits(f);
        back = f;
    } else {
        const auto &t = table(format);
        const size_t hi = (size_t)(std::lower_bound(t.begin(), t.end(), mag) - t.begin());
        if (hi == t.size()) {
            code = s.max + 1;
        } else if (t[hi] == mag) {
            code = (uint32_t)hi;
        } else {
            const long double middle = (t[hi - 1] + t[hi]) / 2;
            code = (uint32_t)(mag < middle || (mag == middle && hi % 2 == 1) ? hi - 1 : hi);
        }
        back = t[std::min((size_t)code, t.size() - 1)];
    }
    int flags = back != mag ? NX : 0;
    if (code > s.max) {
        flags = OF | NX;
        code = saturate ? s.max : s.max + 1;
    } else if (flags) {
        // tiny after rounding: rounded to the format's precision alone it is below the smallest
        // normal
        int e;
        const long double m = frexpl(mag, &e);
        if (ldexpl(nearbyintl(ldexpl(m, s.man + 1)), e - s.man - 1) < ldexpl(1, s.emin))
            flags |= UF;
    }
    return {code | (x < 0 ? s.sign : 0), flags};
}

Result reference_fp32(uint32_t value, uint32_t scale, int format, bool saturate) {
    const Shape &s = SHAPES[format];
    const float v = as_float(value), k = as_float(scale);
    const bool v_signals = std::isnan(v) && !(value & 0x400000);
    const bool k_signals = std::isnan(k) && !(scale & 0x400000);
    if (std::isnan(v) || std::isnan(k)) {
        const bool negative = (std::isnan(v) ? value : scale) >> 31;
        return {s.nan | (negative ? s.sign : 0), v_signals || k_signals || format == INT8 ? NV : 0};
    }
    if ((std::isinf(v) && k == 0) || (std::isinf(k) && v == 0))
        return {s.nan, NV};
    if (std::isinf(v) || std::isinf(k)) {
        const bool negative = std::signbit(v) != std::signbit(k);
        if (format == INT8)
            return {negative ? 0x80u : 0x7Fu, OF | NX};
        const bool exact = s.has_inf && !saturate;
        return {(saturate ? s.max : s.max + 1) | (negative ? s.sign : 0), exact ? 0 : OF | NX};
    }
    return reference((long double)v * k, format, saturate);
}

struct FloatBench : Bench<Vfloat_tb> {
    using Bench::Bench;
    void format(int f, bool s) {
        for (int k = 0; k < 4; k++)
            step();
        top->format_i = f;
        top->saturate_i = s;
        top->en_i = 1;
    }
    void step() {
        top->en_i = 1;
        tick();
    }
};

struct Want {
    uint32_t value, scale;
    Result result;
};

} // namespace

TEST_GROUP(Float) {
    FloatBench b{run_seed()};
    std::deque<Want> pending;
    int format, wrong = 0;
    bool saturate;

    void setup() override { b.reset(); }
    void choose(int f, bool s) {
        format = f;
        saturate = s;
        b.format(f, s);
    }
    // one value a cycle through mr_fp32_to; what comes out belongs to the value of two cycles ago
    void push(uint32_t value, uint32_t scale) {
        b.top->value_i = value;
        b.top->scale_i = scale;
        pending.push_back({value, scale, reference_fp32(value, scale, format, saturate)});
        b.step();
        if (pending.size() == 2)
            check();
    }
    void check() {
        const Want w = pending.front();
        pending.pop_front();
        if (b.top->f_code_o != w.result.code || b.top->f_flags_o != w.result.flags) {
            if (wrong++ < 5)
                printf("%s %s: %08X * %08X: got %X flags %X, want %X flags %X\n", NAMES[format],
                       saturate ? "saturate" : "ieee", w.value, w.scale, b.top->f_code_o,
                       b.top->f_flags_o, w.result.code, (unsigned)w.result.flags);
        }
    }
    void drain() {
        while (!pending.empty()) {
            b.step();
            check();
        }
        LONGS_EQUAL(0, wrong);
    }
    Result one(uint32_t value, uint32_t scale, int f, bool s) {
        choose(f, s);
        b.top->value_i = value;
        b.top->scale_i = scale;
        b.step();
        b.step();
        return {b.top->f_code_o, b.top->f_flags_o};
    }
    Result one(float value, int f, bool s) { return one(as_bits(value), 0x3F800000, f, s); }
    void is(uint32_t code, int flags, Result r) {
        LONGS_EQUAL(code, r.code);
        LONGS_EQUAL(flags, r.flags);
    }
};

TEST(Float, EveryUpperHalfNearEveryTie) {
    for (int f = 0; f < FORMATS; f++)
        for (int s = 0; s < 2; s++) {
            choose(f, s);
            for (uint32_t upper = 0; upper < 0x10000; upper++)
                for (uint32_t lower : {0x0000u, 0x7FFFu, 0x8000u, 0x8001u})
                    push(upper << 16 | lower, 0x3F800000);
            drain();
        }
}

TEST(Float, AroundEveryTieOfTheSmallFormats) {
    for (int f : {FP16, E4M3, E5M2})
        for (int s = 0; s < 2; s++) {
            choose(f, s);
            const auto &t = table(f);
            for (size_t k = 0; k + 1 < t.size(); k++) {
                const uint32_t middle = as_bits((float)((t[k] + t[k + 1]) / 2));
                for (uint32_t d = 0; d < 3; d++)
                    for (uint32_t sign : {0u, 0x80000000u})
                        push((middle - 1 + d) | sign, 0x3F800000);
            }
            drain();
        }
}

TEST(Float, SpecialOperandsInEveryPair) {
    std::vector<uint32_t> specials;
    for (uint32_t bits : {0x00000000u, 0x00000001u, 0x007FFFFFu, 0x00800000u, 0x3F800000u,
                          0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu})
        for (uint32_t sign : {0u, 0x80000000u})
            specials.push_back(bits | sign);
    for (int f = 0; f < FORMATS; f++)
        for (int s = 0; s < 2; s++) {
            choose(f, s);
            for (uint32_t value : specials)
                for (uint32_t scale : specials)
                    push(value, scale);
            drain();
        }
}

TEST(Float, RandomProducts) {
    Rng rng(run_seed());
    for (int f = 0; f < FORMATS; f++)
        for (int s = 0; s < 2; s++) {
            choose(f, s);
            for (int k = 0; k < 60000; k++) {
                uint32_t value = (uint32_t)rng.next(), scale = (uint32_t)rng.next();
                if (rng.percent(70)) { // exponents that meet the format's range
                    const uint32_t field = 90 + (uint32_t)rng.below(70);
                    scale = (scale & 0x807FFFFF) | field << 23;
                    value = (value & 0x807FFFFF) | (uint32_t)(254 - field - 20 + rng.below(40))
                                                       << 23;
                }
                if (rng.percent(30))
                    value &= 0xFFFF0000u << rng.below(8);
                if (rng.percent(30))
                    scale &= 0xFFFF0000u << rng.below(8);
                push(value, scale);
            }
            drain();
        }
}

// Reported against other converters; numbers as in the project's list of cases.
TEST(Float, Case1SignallingNansStayNans) {
    for (int f = 0; f < FORMATS; f++) {
        choose(f, false);
        for (uint32_t payload = 1; payload < 0x10000; payload += 7)
            for (uint32_t sign : {0u, 0x80000000u})
                push(0x7F800000 | payload | sign, 0x3F800000);
        drain();
    }
    is(0x7FC0, NV, one(0x7F800001, 0x3F800000, BF16, false));
    is(0xFFC0, NV, one(0xFF800001, 0x3F800000, BF16, false));
}
TEST(Float, Case3Bf16RoundsToNearestEven) {
    is(0x3E8A, NX, one(0x3E89CCD5, 0x3F800000, BF16, false));
    is(0x3F80, NX, one(0x3F808000, 0x3F800000, BF16, false));
    is(0x3F82, NX, one(0x3F818000, 0x3F800000, BF16, false));
}
TEST(Float, Case4LargestFloatToBf16) {
    is(0x7F80, OF | NX, one(0x7F7FFFFF, 0x3F800000, BF16, false));
    is(0x7F7F, OF | NX, one(0x7F7FFFFF, 0x3F800000, BF16, true));
}
TEST(Float, Case5OneNanCode) { is(0x7FC0, 0, one(0x7FD8C09A, 0x3F800000, BF16, false)); }
TEST(Float, Case7TininessIsJudgedAfterRounding) {
    // 1006 * 2^-24 times 1042 / 1024, the fp16 operands 03EE and 3C12
    is(0x0400, UF | NX, one(as_bits(ldexpf(1006, -24)), as_bits(1042.0f / 1024), FP16, false));
    is(0x00800000, UF | NX, one(0x00800000, 0x3F7FFFFF, FP32, false));
    // half a unit closer it rounds to the smallest normal with full precision already: not tiny
    is(0x0400, NX, one(as_bits(ldexpf(1 - ldexpf(1, -12), -14)), 0x3F800000, FP16, false));
}
TEST(Float, Case10E4m3Overflow) {
    const float in[] = {448, 464, 465, 1000, -1000, INFINITY, -INFINITY};
    const uint32_t ieee[] = {0x7E, 0x7E, 0x7F, 0x7F, 0xFF, 0x7F, 0xFF};
    const uint32_t saturated[] = {0x7E, 0x7E, 0x7E, 0x7E, 0xFE, 0x7E, 0xFE};
    for (int k = 0; k < 7; k++) {
        LONGS_EQUAL(ieee[k], one(in[k], E4M3, false).code);
        LONGS_EQUAL(saturated[k], one(in[k], E4M3, true).code);
    }
}
TEST(Float, Case11E5m2KeepsInfinity) {
    is(0x7C, 0, one(INFINITY, E5M2, false));
    is(0xFC, 0, one(-INFINITY, E5M2, false));
    is(0x7B, OF | NX, one(INFINITY, E5M2, true));
}

TEST(Float, ClockEnableHoldsThePipeline) {
    choose(BF16, false);
    b.top->value_i = 0x3F818000;
    b.top->scale_i = 0x3F800000;
    b.step();
    b.step();
    const uint32_t code = b.top->f_code_o;
    b.top->value_i = 0x40000000;
    b.top->en_i = 0;
    for (int k = 0; k < 5; k++)
        b.tick();
    LONGS_EQUAL(code, b.top->f_code_o);
}

TEST_GROUP(Fixed) {
    FloatBench b{run_seed()};
    struct Want {
        int32_t w;
        uint32_t scale;
        int frac;
        uint32_t code;
    };
    std::deque<Want> pending;
    int format, wrong = 0;
    bool saturate;

    void setup() override { b.reset(); }
    void choose(int f, bool s) {
        format = f;
        saturate = s;
        b.format(f, s);
    }
    void push(int32_t w, uint32_t scale, int frac) {
        b.top->w_i = (uint32_t)w & 0x7FFFFFFF;
        b.top->scale_i = scale;
        b.top->frac_i = (uint32_t)frac & 0x3FF;
        const long double x = ldexpl((long double)w * as_float(scale), frac);
        pending.push_back({w, scale, frac, reference(x, format, saturate).code});
        b.step();
        if (pending.size() == 3)
            check();
    }
    void check() {
        const Want w = pending.front();
        pending.pop_front();
        if (b.top->x_code_o != w.code && wrong++ < 5)
            printf("%s %s: %d * %08X * 2^%d: got %X, want %X\n", NAMES[format],
                   saturate ? "saturate" : "ieee", w.w, w.scale, w.frac, b.top->x_code_o, w.code);
    }
    void drain() {
        while (!pending.empty()) {
            b.step();
            check();
        }
        LONGS_EQUAL(0, wrong);
    }
};

TEST(Fixed, RandomNumbersScalesAndExponents) {
    Rng rng(run_seed() + 1);
    for (int f = 0; f < FORMATS; f++)
        for (int s = 0; s < 2; s++) {
            choose(f, s);
            for (int k = 0; k < 100000; k++) {
                int32_t w = (int32_t)((int64_t)(rng.next() << 33) >> 33) >> rng.below(31);
                if (rng.percent(2))
                    w = rng.percent(50) ? -(1 << 30) : (1 << 30) - 1;
                uint32_t scale = (uint32_t)rng.next();
                if ((scale & 0x7F800000) == 0x7F800000)
                    scale &= 0x807FFFFF; // subnormal instead of infinite
                int frac = -24 - (int)rng.below(20);
                if (rng.percent(70)) // close to 1, like a row scale
                    scale = (scale & 0x807FFFFF) | (uint32_t)(107 + rng.below(40)) << 23;
                else
                    frac = (int)rng.below(1024) - 512;
                if (rng.percent(40))
                    scale &= 0xFF800000;
                push(w, scale, frac);
            }
            drain();
        }
}

TEST(Fixed, EverySmallIntegerAtEveryExponent) {
    for (int f = 0; f < FORMATS; f++) {
        choose(f, false);
        for (int32_t w = -600; w <= 600; w++)
            for (int frac = -160; frac <= 130; frac += f == BF16 || f == FP32 ? 1 : 3)
                push(w, 0x3F800000, frac);
        drain();
    }
}

TEST(Fixed, ZeroIsPositiveAndUnderflowKeepsItsSign) {
    choose(BF16, false);
    push(0, 0xBF800000, -24);
    push(-5, 0x00000000, -24);
    push(-5, 0x80000000, -24);
    push(-1, 0x00000001, -24);
    drain();
    for (int k = 0; k < 3; k++)
        b.step();
    LONGS_EQUAL(0x8000, b.top->x_code_o);
}

TEST(Fixed, InfiniteScaleIsReported) {
    for (uint32_t scale : {0x7F800000u, 0xFF800000u, 0x7FC00000u, 0x7F800001u}) {
        b.top->scale_i = scale;
        b.settle();
        CHECK(b.top->x_bad_o);
    }
    b.top->scale_i = 0x7F7FFFFF;
    b.settle();
    CHECK(!b.top->x_bad_o);
}

TEST(Fixed, SameCodesAsTheFloatCell) {
    Rng rng(run_seed() + 2);
    for (int f = 0; f < FORMATS; f++) {
        choose(f, true);
        for (int k = 0; k < 3000; k++) {
            const int32_t w = (int32_t)rng.below(1 << 24) - (1 << 23);
            const uint32_t scale = (uint32_t)rng.below(0x7F800000);
            b.top->w_i = (uint32_t)w & 0x7FFFFFFF;
            b.top->frac_i = (uint32_t)-20 & 0x3FF;
            b.top->value_i = as_bits(ldexpf((float)w, -20));
            b.top->scale_i = scale;
            for (int c = 0; c < 3; c++)
                b.step();
            LONGS_EQUAL(b.top->f_code_o, b.top->x_code_o);
        }
    }
}

// Case 57: shift amounts up to and far past the width, also past 2^32.
TEST_GROUP(Shift) {
    FloatBench b{run_seed()};
    typedef unsigned __int128 u128;

    void word(WData * to, u128 v) {
        for (int k = 0; k < 4; k++)
            to[k] = (uint32_t)(v >> (32 * k));
    }
    u128 word(const WData *from) {
        u128 v = 0;
        for (int k = 0; k < 4; k++)
            v |= (u128)from[k] << (32 * k);
        return v;
    }
    static u128 mask(int width) { return ((u128)1 << width) - 1; }
    static u128 left(u128 a, int width, uint64_t by) {
        return by >= (uint64_t)width ? 0 : (a << by) & mask(width);
    }
    static u128 right(u128 a, int width, uint64_t by) {
        return by >= (uint64_t)width ? 0 : (a & mask(width)) >> by;
    }
    static u128 arithmetic(u128 a, int width, uint64_t by) {
        a &= mask(width);
        const bool negative = (a >> (width - 1)) & 1;
        const u128 fill = by >= (uint64_t)width ? mask(width) : mask(width) & ~(mask(width) >> by);
        return right(a, width, by) | (negative ? fill : 0);
    }
};

TEST(Shift, EveryAmountMatches) {
    Rng rng(run_seed() + 3);
    std::vector<uint64_t> amounts;
    for (uint64_t k = 0; k <= 200; k++)
        amounts.push_back(k);
    for (uint64_t big :
         {1ull << 32, (1ull << 32) + 1, (1ull << 32) + 31, 1ull << 39, (1ull << 40) - 1})
        amounts.push_back(big);
    for (uint64_t by : amounts)
        for (int k = 0; k < 20; k++) {
            const u128 a = (((u128)rng.next() << 64) | rng.next()) & mask(100);
            word(b.top->a_i, a);
            b.top->by_i = by;
            b.settle();
            CHECK(word(b.top->r100_o) == right(a, 100, by));
            CHECK(word(b.top->s100_o) == arithmetic(a, 100, by));
            CHECK(word(b.top->l100_o) == left(a, 100, by));
            CHECK(b.top->r55_o == (uint64_t)right(a, 55, by));
            CHECK(b.top->s55_o == (uint64_t)arithmetic(a, 55, by));
            CHECK(b.top->s24_o == (uint32_t)arithmetic(a, 24, by));
            CHECK(b.top->l64_o == (uint64_t)left(a, 64, by));
        }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
