// The merge against its definition in extended precision: o = sum w_i o_i / sum w_i d_i.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "CppUTest/TestHarness.h"
#include "millrace/nic_frame.h"
#include "models/golden/nic_merge.h"

namespace {
uint64_t seed_of_run() {
    const char *text = std::getenv("MR_SEED");
    uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 0) : std::random_device{}();
    std::printf("MR_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

float float_of(uint32_t bits) {
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}
uint32_t bits_of(float f) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits;
}

void put(std::vector<uint8_t> &out, uint32_t v, unsigned bytes) {
    for (unsigned i = bytes; i-- > 0;)
        out.push_back((uint8_t)(v >> (8 * i)));
}
uint32_t get(const uint8_t *p, unsigned bytes) {
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

// Values of the formats, by their definitions.
long double decode(unsigned dtype, uint32_t code) {
    int man = dtype == MR_NIC_DT_FP16 ? 10 : dtype == MR_NIC_DT_BF16 ? 7 : 23;
    int exp = dtype == MR_NIC_DT_FP16 ? 5 : 8;
    int field = (int)(code >> man) & ((1 << exp) - 1), bias = (1 << (exp - 1)) - 1;
    long double fraction = (long double)(code & ((1u << man) - 1));
    bool sign = (code >> (man + exp)) & 1;
    long double a;
    if (field == (1 << exp) - 1)
        a = fraction != 0 ? NAN : INFINITY;
    else if (field == 0)
        a = std::ldexp(fraction, 1 - bias - man);
    else
        a = std::ldexp(fraction + std::ldexp(1.0L, man), field - bias - man);
    return sign ? -a : a;
}

// Half of the last place of the format around a value.
long double half_ulp(unsigned dtype, long double v) {
    int man = dtype == MR_NIC_DT_FP16 ? 10 : dtype == MR_NIC_DT_BF16 ? 7 : 23;
    int lowest = dtype == MR_NIC_DT_FP16 ? -14 : -126;
    int e = v == 0 ? lowest : std::max(std::ilogb(v), lowest);
    return std::ldexp(0.5L, e - man);
}

struct Shard {
    bool natural;
    std::vector<float> m, d;
    std::vector<uint32_t> o; // codes
    std::vector<uint8_t> payload;
};

struct Case {
    unsigned dtype, heads, dim;
    std::vector<Shard> shards;
};

class Maker {
public:
    explicit Maker(uint64_t seed) : rng_(seed) {}

    unsigned pick(std::vector<unsigned> of) { return of[rng_() % of.size()]; }

    Case make() {
        Case c;
        c.dtype = pick({MR_NIC_DT_BF16, MR_NIC_DT_FP16, MR_NIC_DT_FP32});
        c.heads = pick({1, 2, 5, 7, 12, 40});
        c.dim = pick({1, 5, 46, 64, 80, 96, 128, 192, 576});
        while (mr_nic_vector_bytes(c.dtype, c.heads, c.dim, 8) > 8968)
            c.dim = (c.dim + 1) / 2;
        unsigned shards = 1 + (unsigned)(rng_() % 32), bases = (unsigned)(rng_() % 3);
        double center = pick_center(), spread = pick_spread();
        for (unsigned i = 0; i < shards; i++)
            c.shards.push_back(shard(c, bases, center, spread));
        return c;
    }

private:
    double uniform(double a, double b) {
        return std::uniform_real_distribution<double>(a, b)(rng_);
    }
    double pick_center() {
        static const double centers[] = {0, 1e4, -1e4, -6e4, 3e38, -3e38, 1e-3};
        return centers[rng_() % 7];
    }
    double pick_spread() {
        static const double spreads[] = {0, 1e-6, 1, 10, 60, 300};
        return spreads[rng_() % 6];
    }

    Shard shard(const Case &c, unsigned bases, double center, double spread) {
        Shard s;
        s.natural = bases == 2 ? rng_() & 1 : bases == 1;
        for (unsigned h = 0; h < c.heads; h++) {
            bool empty = rng_() % 4 == 0;
            // where bases are mixed, logits are near one another as powers, not as numbers
            double m =
                (center + uniform(-spread, spread)) * (s.natural && bases == 2 ? std::log(2.0) : 1);
            s.m.push_back(empty ? (rng_() & 1 ? -INFINITY : INFINITY) : (float)m);
            s.d.push_back(empty ? 0.0f : (float)std::exp(uniform(0, 12)));
            for (unsigned i = 0; i < c.dim; i++)
                s.o.push_back(empty ? 0 : value(c.dtype));
        }
        for (unsigned h = 0; h < c.heads; h++) {
            put(s.payload, bits_of(s.m[h]), 4);
            put(s.payload, bits_of(s.d[h]), 4);
        }
        while (s.payload.size() % 64 != 0)
            s.payload.push_back(0);
        unsigned bytes = (unsigned)mr_nic_element_bytes(c.dtype);
        for (uint32_t code : s.o)
            put(s.payload, code, bytes);
        return s;
    }

    // A finite code of moderate size; now and then a zero or a subnormal.
    uint32_t value(unsigned dtype) {
        uint32_t sign = (uint32_t)(rng_() & 1), fraction = (uint32_t)rng_();
        bool tiny = rng_() % 16 == 0;
        if (dtype == MR_NIC_DT_FP16)
            return sign << 15 | (tiny ? fraction & 0x3FF
                                      : (uint32_t)(5 + rng_() % 20) << 10 | (fraction & 0x3FF));
        uint32_t code =
            sign << 31 | (tiny ? fraction & 0x7FFFFF
                               : (uint32_t)(110 + rng_() % 30) << 23 | (fraction & 0x7FFFFF));
        return dtype == MR_NIC_DT_BF16 ? code >> 16 : code;
    }

    std::mt19937_64 rng_;
};

std::vector<uint8_t> merge(const Case &c) {
    auto acc = std::make_unique<mr_nic_acc>();
    mr_nic_acc_begin(acc.get(), false, c.dtype, 0, c.heads, c.dim);
    for (const Shard &s : c.shards)
        mr_nic_acc_fold(acc.get(), s.payload.data(), s.natural);
    std::vector<uint8_t> out(9000);
    out.resize(mr_nic_acc_finish(acc.get(), out.data()));
    return out;
}

struct Worst {
    long double o = 0, lse = 0;
};

// Checks one head; the worst errors as parts of what is allowed.
void check_head(const Case &c, unsigned h, const std::vector<uint8_t> &got, Worst &worst) {
    const long double log2e = 1.442695040888963407359924681001892137L;
    long double top = -INFINITY;
    std::vector<long double> l;
    for (const Shard &s : c.shards) {
        bool empty = std::isinf(s.m[h]) || s.d[h] == 0;
        l.push_back(empty ? -INFINITY : (long double)s.m[h] * (s.natural ? log2e : 1.0L));
        top = std::max(top, l.back());
    }
    unsigned bytes = (unsigned)mr_nic_element_bytes(c.dtype);
    size_t stats = (c.heads * 4 + 63) / 64 * 64;
    long double lse = float_of(get(&got[4 * h], 4));
    if (std::isinf(top)) {
        CHECK_TRUE(lse == -INFINITY);
        for (unsigned i = 0; i < c.dim; i++)
            UNSIGNED_LONGS_EQUAL(0, get(&got[stats + ((size_t)h * c.dim + i) * bytes], bytes));
        return;
    }
    long double d = 0;
    std::vector<long double> w;
    for (size_t k = 0; k < c.shards.size(); k++) {
        // distances at the same base are exact differences, as the definition has them
        w.push_back(std::isinf(l[k]) ? 0.0L : std::exp2(l[k] - top));
        d += w[k] * c.shards[k].d[h];
    }
    long double want_lse = top + std::log2(d);
    long double allowed = std::ldexp(1.0L, -16) * std::max(1.0L, std::fabs(want_lse));
    if (std::fabs(want_lse) >= 0x1p128L) { // 3e38 to base e has no float32 to base two
        CHECK_TRUE(lse == std::copysign((long double)INFINITY, want_lse));
    } else {
        worst.lse = std::max(worst.lse, std::fabs(lse - want_lse) / allowed);
    }
    for (unsigned i = 0; i < c.dim; i++) {
        size_t at = (size_t)h * c.dim + i;
        long double want = 0, size = 0;
        for (size_t k = 0; k < c.shards.size(); k++) {
            if (w[k] == 0)
                continue;
            long double term = w[k] * decode(c.dtype, c.shards[k].o[at]);
            want += term;
            size += std::fabs(term);
        }
        want /= d;
        long double is = decode(c.dtype, get(&got[stats + at * bytes], bytes));
        long double half = half_ulp(c.dtype, std::max(std::fabs(want), std::fabs(is)));
        long double over = std::fabs(is - want) - half;
        // a fold whose sums are subnormal rounds to whole 2^-149 (docs/nic-arithmetic.md)
        long double folds = std::ldexp((long double)(c.shards.size() - 1), -150) / d;
        if (over > 0)
            worst.o = std::max(worst.o, over / (std::ldexp(1.0L, -16) * size / d + folds));
    }
}
} // namespace

TEST_GROUP(NicMerge){};

TEST(NicMerge, StaysInsideTheBound) {
    Maker maker(seed_of_run());
    Worst worst;
    for (int round = 0; round < 400; round++) {
        Case c = maker.make();
        std::vector<uint8_t> got = merge(c);
        UNSIGNED_LONGS_EQUAL(mr_nic_vector_bytes(c.dtype, c.heads, c.dim, 4), got.size());
        for (unsigned h = 0; h < c.heads; h++)
            check_head(c, h, got, worst);
    }
    std::printf("worst: o %.3Lf, lse %.3Lf of what is allowed\n", worst.o, worst.lse);
    CHECK_TRUE(worst.o <= 1);
    CHECK_TRUE(worst.lse <= 1);
}

TEST(NicMerge, EmptyIsTheIdentityOnEitherSide) {
    Maker maker(seed_of_run());
    for (int round = 0; round < 50; round++) {
        Case c = maker.make();
        Shard nothing = c.shards[0];
        nothing.payload.assign(nothing.payload.size(), 0);
        for (unsigned h = 0; h < c.heads; h++)
            nothing.payload[8 * h] = 0xFF, nothing.payload[8 * h + 1] = 0x80;
        Case before = c, after = c;
        before.shards.insert(before.shards.begin(), nothing);
        after.shards.push_back(nothing);
        std::vector<uint8_t> plain = merge(c);
        CHECK_TRUE(merge(before) == plain);
        CHECK_TRUE(merge(after) == plain);
    }
}

TEST(NicMerge, ReduceOfOneShardCopiesEveryCode) {
    auto acc = std::make_unique<mr_nic_acc>();
    for (unsigned dtype : {MR_NIC_DT_BF16, MR_NIC_DT_FP16}) {
        for (uint32_t first = 0; first < 65536; first += 4096) {
            std::vector<uint8_t> in, out(9000);
            for (uint32_t code = first; code < first + 4096; code++)
                put(in, code, 2);
            mr_nic_acc_begin(acc.get(), true, dtype, MR_NIC_ROP_SUM, 1, 4096);
            mr_nic_acc_fold(acc.get(), in.data(), false);
            UNSIGNED_LONGS_EQUAL(8192, mr_nic_acc_finish(acc.get(), out.data()));
            for (uint32_t i = 0; i < 4096; i++) {
                bool nan = std::isnan(decode(dtype, first + i));
                uint32_t want = !nan ? first + i : dtype == MR_NIC_DT_BF16 ? 0x7FC0 : 0x7E00;
                UNSIGNED_LONGS_EQUAL(want, get(&out[2 * i], 2));
            }
        }
    }
}
