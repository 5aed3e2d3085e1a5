// The merge engine against its golden model, bit for bit, and against the definition in long
// double.
#include "../../common/bench.hpp"
#include "Vmerge_tb.h"

#include "merge_model.hpp"

#include <cmath>
#include <memory>

using namespace merge;

namespace {

using Model = Bench<Vmerge_tb>;

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
void put(std::vector<uint8_t> &to, size_t at, uint32_t v, size_t bytes) {
    for (size_t k = 0; k < bytes; k++)
        to[at + k] = (uint8_t)(v >> (8 * (bytes - 1 - k)));
}
uint32_t get(const std::vector<uint8_t> &from, size_t at, size_t bytes) {
    uint32_t v = 0;
    for (size_t k = 0; k < bytes; k++)
        v = v << 8 | from[at + k];
    return v;
}
float value(uint32_t code, unsigned dtype) {
    if (dtype == FP32)
        return as_float(code);
    if (dtype == BF16)
        return as_float(code << 16);
    const int e = (int)(code >> 10 & 31);
    const float f = (float)(code & 0x3FF);
    const float mag = e == 31 ? (f != 0 ? NAN : INFINITY)
                      : e     ? std::ldexp(1024 + f, e - 25)
                              : std::ldexp(f, -24);
    return code & 0x8000 ? -mag : mag;
}
// nearest code at or below in magnitude: good enough to make payloads
uint32_t code(float v, unsigned dtype) {
    if (dtype == FP32)
        return as_bits(v);
    if (dtype == BF16)
        return as_bits(v) >> 16;
    const float mag = std::fabs(v);
    const uint32_t sign = std::signbit(v) ? 0x8000 : 0;
    if (!(mag >= std::ldexp(1.0f, -14)))
        return sign | (uint32_t)std::ldexp(mag, 24);
    if (mag > 65504)
        return sign | 0x7BFF;
    int e;
    const float f = std::frexp(mag, &e);
    return sign | (uint32_t)(e + 14) << 10 | ((uint32_t)std::ldexp(f, 11) & 0x3FF);
}

enum content { REALISTIC, EXTREME, ANYTHING };

struct maker {
    Rng &rng;
    double unit() { return (double)(rng.next() >> 11) * 0x1p-53; }
    uint32_t odd() { // a float32 of a class that is often wrong
        const uint32_t some[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF,
                                 0x00800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
                                 0xFFFFFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x461C4000,
                                 0xC61C4000, 0x33800000, 0xFF7FFFFE};
        return some[rng.below(sizeof some / sizeof *some)];
    }
    float logit(content c, float centre) {
        if (c == REALISTIC)
            return rng.percent(30) ? (float)((unit() - 0.5) * 2e4)
                                   : centre + (float)(unit() * 8 - 4);
        if (rng.percent(20))
            return as_float(odd());
        if (rng.percent(30))
            return as_float((uint32_t)rng.next());
        return centre + (float)std::ldexp(unit() - 0.5, (int)rng.below(34) - 20);
    }
    contribution part(const operation &op, content c) {
        contribution p;
        p.payload.resize(op.bytes());
        p.natural = !op.reduce && rng.percent(40);
        const size_t size = op.element(), stats = op.stats(8);
        const float centre = (float)((unit() - 0.5) * (rng.percent(50) ? 20 : 2e4));
        for (size_t h = 0; h < op.heads && !op.reduce; h++) {
            float m = logit(c, centre), d = (float)(1 + unit() * 500);
            if (c != REALISTIC && rng.percent(15))
                d = as_float(odd());
            if (c == ANYTHING && rng.percent(10))
                d = as_float((uint32_t)rng.next());
            const bool empty = rng.percent(12);
            if (empty) {
                m = -INFINITY;
                d = 0;
            }
            if (!empty && op.dtype == FP16 && c == REALISTIC)
                d = 1; // d overflows in fp16: (lse, 1, o/d)
            put(p.payload, 8 * h, as_bits(m), 4);
            put(p.payload, 8 * h + 4, as_bits(d), 4);
            for (size_t i = 0; i < op.dim; i++) {
                float o = empty ? 0.0f : (float)((unit() * 2 - 1) * d);
                put(p.payload, stats + (h * op.dim + i) * size, code(o, op.dtype), size);
            }
        }
        const size_t values = (size_t)op.heads * op.dim;
        for (size_t i = 0; i < values; i++) {
            const size_t at = stats + i * size;
            if (op.reduce && op.dtype == INT32)
                put(p.payload, at, rng.percent(10) ? odd() : (uint32_t)rng.next(), 4);
            else if (op.reduce)
                put(p.payload, at, code((float)(unit() * 200 - 100), op.dtype), size);
            if (c != REALISTIC && op.dtype != INT32 && rng.percent(c == ANYTHING ? 60 : 10))
                put(p.payload, at,
                    rng.percent(50) ? odd() >> (size == 2 ? 16 : 0) : (uint32_t)rng.next(), size);
        }
        return p;
    }
    operation op(unsigned heads, unsigned dim, unsigned dtype, unsigned parts, content c) {
        operation o;
        o.reduce = dtype == INT32;
        o.heads = o.reduce ? 1 : heads;
        o.dim = dim;
        o.dtype = dtype;
        for (unsigned k = 0; k < parts; k++)
            o.parts.push_back(part(o, c));
        return o;
    }
    operation reduce(unsigned dim, unsigned dtype, unsigned rop, unsigned parts, content c) {
        operation o;
        o.reduce = true;
        o.dim = dim;
        o.dtype = dtype;
        o.rop = rop;
        for (unsigned k = 0; k < parts; k++)
            o.parts.push_back(part(o, c));
        return o;
    }
    // any shape that fits a frame, small ones more often
    operation any(content c, size_t most_bytes) {
        const unsigned dims[] = {1,  2,  3,  5,  7,  8,  15, 16,  17,
                                 31, 32, 33, 40, 46, 64, 80, 128, 192};
        const unsigned parts = 1 + (unsigned)rng.below(rng.percent(10) ? 32 : 5);
        for (;;) {
            const unsigned dim = rng.percent(70)
                                     ? dims[rng.below(sizeof dims / sizeof *dims)]
                                     : 1 + (unsigned)rng.below(rng.percent(50) ? 60 : 4484);
            const unsigned heads = 1 + (unsigned)rng.below(rng.percent(60) ? 12 : 900);
            operation o;
            o.reduce = rng.percent(25);
            o.heads = o.reduce ? 1 : heads;
            o.dim = dim;
            o.dtype = BF16 + (unsigned)rng.below(o.reduce ? 4 : 3);
            o.rop = o.reduce ? (unsigned)rng.below(3) : 0;
            if (o.bytes() > most_bytes)
                continue;
            for (unsigned k = 0; k < parts; k++)
                o.parts.push_back(part(o, c));
            return o;
        }
    }
};

// The definition, in long double: w = b^(m - M), lse = M + log2(sum w d), o = sum w o / sum w d.
// Checked with the bound that the design states.
void within_bound(const operation &op, const std::vector<uint8_t> &got, std::string &problem) {
    const size_t size = op.element();
    for (size_t h = 0; h < op.heads && problem.empty(); h++) {
        std::vector<long double> m, d;
        long double most = -INFINITY;
        for (const contribution &p : op.parts) {
            const long double base = p.natural ? 1 / logl(2) : 1;
            d.push_back(as_float(get(p.payload, 8 * h + 4, 4)));
            m.push_back(d.back() == 0 ? -INFINITY : as_float(get(p.payload, 8 * h, 4)) * base);
            most = std::max(most, m.back());
        }
        const float lse = as_float(get(got, 4 * h, 4));
        long double total = 0;
        std::vector<long double> w;
        for (size_t k = 0; k < m.size(); k++) {
            w.push_back(d[k] == 0 ? 0 : exp2l(m[k] - most));
            total += w[k] * d[k];
        }
        if (most == -INFINITY) {
            if (!(lse == -INFINITY))
                problem = op.name() + ": an empty head has an lse";
        } else {
            const long double want = most + log2l(total);
            if (!(fabsl(lse - want) <= 0x1p-16L * std::max(1.0L, fabsl(want))))
                problem = op.name() + ": lse out of bounds";
        }
        for (size_t i = 0; i < op.dim && problem.empty(); i++) {
            long double sum = 0, size_sum = 0;
            for (size_t k = 0; k < w.size(); k++) {
                const long double o =
                    value(get(op.parts[k].payload, op.stats(8) + (h * op.dim + i) * size, size),
                          op.dtype);
                sum += w[k] * o;
                size_sum += w[k] * fabsl(o);
            }
            const float out =
                value(get(got, op.stats(4) + (h * op.dim + i) * size, size), op.dtype);
            const long double want = total == 0 ? 0 : sum / total;
            const int digits = op.dtype == BF16 ? 8 : op.dtype == FP16 ? 11 : 24;
            const int least = op.dtype == FP16 ? -24 : op.dtype == BF16 ? -133 : -149;
            int e;
            frexpl(want, &e);
            const long double ulp = ldexpl(1, std::max(e - digits, least));
            const long double bound = (total == 0 ? 0 : 0x1p-16L * size_sum / total) + ulp / 2;
            if (!(fabsl(out - want) <= bound))
                problem = op.name() + ": a value out of bounds";
        }
    }
}

} // namespace

TEST_GROUP(Merge) {
    Rng rng{run_seed()};
    maker make{rng};
    std::unique_ptr<Model> b;
    std::unique_ptr<engine<Model, Rng>> e;

    void setup() override {
        b = std::make_unique<Model>(rng.next());
        e = std::make_unique<engine<Model, Rng>>(*b, rng);
        b->reset();
        b->fired();
    }
    void teardown() override {
        e.reset();
        b.reset();
    }
    // runs them and compares every bit
    void check(const std::vector<operation> &ops, const options &opt, bool define) {
        const std::vector<result> got = e->run(ops, opt);
        STRCMP_EQUAL("", e->problem.c_str());
        for (size_t k = 0; k < ops.size(); k++) {
            const std::vector<uint8_t> want = ops[k].golden();
            if (got[k].payload != want) {
                size_t at = 0;
                while (at < want.size() && got[k].payload[at] == want[at])
                    at++;
                at -= at % 4;
                printf("operation %zu, %s: at byte %zu got %08X, want %08X\n", k,
                       ops[k].name().c_str(), at, get(got[k].payload, at, 4), get(want, at, 4));
                FAIL("a result differs from the golden model's");
            }
            LONGS_EQUAL(checksum(want), got[k].sum);
            std::string problem;
            if (define && !ops[k].reduce)
                within_bound(ops[k], got[k].payload, problem);
            STRCMP_EQUAL("", problem.c_str());
        }
    }
};

TEST(Merge, EveryShapeOfHeads) {
    std::vector<operation> ops;
    for (unsigned dtype : {BF16, FP16, FP32})
        for (unsigned dim :
             {1, 2, 3, 5, 7, 11, 15, 16, 17, 31, 32, 33, 46, 63, 64, 65, 80, 128, 192, 256})
            for (unsigned heads : {1, 2, 5, 7, 8, 9, 16, 17, 40}) {
                operation o = make.op(heads, dim, dtype, 2, REALISTIC);
                if (o.bytes() <= 8968)
                    ops.push_back(o);
            }
    check(ops, options(), true);
}

TEST(Merge, LargestFrames) {
    std::vector<operation> ops;
    const unsigned shapes[][3] = {
        {893, 1, BF16},  {896, 1, FP16}, {1, 4452, BF16}, {1, 2226, FP32}, {744, 1, FP32},
        {40, 104, BF16}, {7, 636, BF16}, {32, 136, FP16}, {290, 11, BF16}, {2, 2224, FP16}};
    for (auto &s : shapes)
        ops.push_back(make.op(s[0], s[1], s[2], 3, REALISTIC));
    for (unsigned rop : {SUM, MAX, MIN}) {
        ops.push_back(make.reduce(4484, BF16, rop, 3, EXTREME));
        ops.push_back(make.reduce(2242, INT32, rop, 3, EXTREME));
    }
    for (const operation &o : ops)
        CHECK(o.bytes() <= 8968);
    check(ops, options(), false);
}

TEST(Merge, RealisticContentInEveryOrderOfEvents) {
    const options pressures[] = {{64, 100, 100, 100, 2, true, false, -1},
                                 {64, 60, 70, 50, 5, true, false, -1},
                                 {3, 100, 90, 100, 1, false, false, -1},
                                 {1, 100, 100, 100, 2, true, false, 74},
                                 {8, 100, 30, 30, 12, false, false, -1}};
    for (const options &opt : pressures) {
        std::vector<operation> ops;
        for (int k = 0; k < 60; k++)
            ops.push_back(make.any(REALISTIC, k % 10 ? 2000 : 8968));
        check(ops, opt, true);
    }
}

TEST(Merge, ExtremeContent) {
    for (content c : {EXTREME, ANYTHING}) {
        std::vector<operation> ops;
        for (int k = 0; k < 250; k++)
            ops.push_back(make.any(c, 1500));
        options opt;
        opt.fetch = 90;
        check(ops, opt, false);
    }
}

// Contributions of one slot, one after the other, short enough to catch each other in the pipeline.
TEST(Merge, ShortContributionsOfOneSlot) {
    for (bool obey : {true, false})
        for (unsigned fetch : {100, 60}) {
            std::vector<operation> ops;
            for (unsigned beats = 1; beats <= 9; beats++)
                for (int k = 0; k < 3; k++) {
                    ops.push_back(make.reduce(32 * beats - (unsigned)rng.below(31), BF16, SUM, 32,
                                              REALISTIC));
                    if (beats > 1)
                        ops.push_back(make.op(1, 32 * (beats - 1) - (unsigned)rng.below(31), BF16,
                                              32, REALISTIC));
                }
            options opt;
            opt.slots = 1;
            opt.obey_busy = obey;
            opt.fetch = fetch;
            check(ops, opt, false);
        }
}

TEST(Merge, ReduceOperatorsOnEveryPairOfClasses) {
    const uint32_t some[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000,
                             0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0x7F7FFFFF,
                             0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x7FFFFFFF, 0x40490FDB};
    const size_t n = sizeof some / sizeof *some;
    std::vector<operation> ops;
    for (unsigned dtype : {BF16, FP16, FP32, INT32})
        for (unsigned rop : {SUM, MAX, MIN}) {
            operation o = make.reduce((unsigned)(n * n), dtype, rop, 2, REALISTIC);
            const size_t size = o.element();
            for (size_t k = 0; k < n * n; k++) {
                put(o.parts[0].payload, k * size, some[k / n] >> (size == 2 ? 16 : 0), size);
                put(o.parts[1].payload, k * size, some[k % n] >> (size == 2 ? 16 : 0), size);
            }
            ops.push_back(o);
        }
    check(ops, options(), false);
}

// A REDUCE of one shard is a broadcast: it must copy what it can.
TEST(Merge, OneShardCopies) {
    std::vector<operation> ops;
    for (unsigned dtype : {BF16, FP16, FP32, INT32}) {
        ops.push_back(make.reduce(1000, dtype, SUM, 1, REALISTIC));
        const std::vector<result> got = e->run(ops, options());
        STRCMP_EQUAL("", e->problem.c_str());
        CHECK(got.back().payload == ops.back().parts[0].payload);
        ops.clear();
    }
}

// Case 13: an empty shard, before or behind, changes no bit; neither does one whose m is +infinity
// (case 14) or that has d = 0 under a finite m.
TEST(Merge, EmptyIsTheIdentityBitForBit) {
    std::vector<operation> ops;
    for (unsigned dtype : {BF16, FP16, FP32})
        for (uint32_t m : {0xFF800000u, 0x7F800000u, 0x461C4000u}) {
            const operation alone = make.op(12, 80, dtype, 3, REALISTIC);
            contribution nothing = alone.parts[0];
            for (size_t h = 0; h < 12; h++) {
                put(nothing.payload, 8 * h, m, 4);
                put(nothing.payload, 8 * h + 4, m == 0x461C4000u || h % 2 ? 0 : as_bits(3.0f), 4);
            }
            ops.push_back(alone);
            for (size_t at = 0; at <= 3; at++) {
                operation more = alone;
                more.parts.insert(more.parts.begin() + (long)at, nothing);
                ops.push_back(more);
            }
        }
    const std::vector<result> got = e->run(ops, options());
    STRCMP_EQUAL("", e->problem.c_str());
    for (size_t k = 0; k < got.size(); k++)
        CHECK(got[k].payload == got[k - k % 5].payload);
    check(ops, options(), false);
}

// Case 16: rows whose logits are all at -6e4, and all near the ends of float32.
TEST(Merge, RowsFarFromZero) {
    std::vector<operation> ops;
    for (float at : {-6e4f, 6e4f, -3e38f, 3e38f}) {
        operation o = make.op(9, 46, FP32, 6, REALISTIC);
        for (contribution &p : o.parts) {
            p.natural = p.natural && std::fabs(at) < 1e38f; // 3e38 / ln 2 is beyond float32
            for (size_t h = 0; h < 9; h++) {
                const float m = std::fabs(at) < 1e38f ? at + (float)(make.unit() * 6 - 3) : at;
                put(p.payload, 8 * h, as_bits(m), 4);
                put(p.payload, 8 * h + 4, as_bits((float)(1 + make.unit() * 100)), 4);
            }
        }
        ops.push_back(o);
    }
    check(ops, options(), true);
}

// Case 17: head sizes that do not divide a beat. Case 19: values in every lane position, and heads
// of which all contributions but one are masked.
TEST(Merge, HeadSizesAndMaskedHeads) {
    std::vector<operation> ops;
    for (unsigned dtype : {BF16, FP32})
        for (unsigned dim : {40, 46, 80, 96, 128, 192, 576})
            ops.push_back(make.op(3, dim, dtype, 4, REALISTIC));
    for (unsigned dim = 1; dim <= 33; dim++) {
        operation o = make.op(5, dim, dim % 2 ? BF16 : FP32, 5, REALISTIC);
        for (size_t h = 0; h < 5; h++)
            for (size_t k = 0; k < 5; k++)
                if (k != h) {
                    put(o.parts[k].payload, 8 * h, 0xFF800000, 4);
                    put(o.parts[k].payload, 8 * h + 4, 0, 4);
                }
        ops.push_back(o);
    }
    check(ops, options(), true);
}

TEST(Merge, AllShardsEmptyIsMinusInfinityAndZero) {
    std::vector<operation> ops{make.op(40, 80, BF16, 8, REALISTIC)};
    for (contribution &p : ops[0].parts) {
        std::fill(p.payload.begin(), p.payload.end(), 0);
        for (size_t h = 0; h < 40; h++)
            put(p.payload, 8 * h, 0xFF800000, 4);
    }
    const std::vector<result> got = e->run(ops, options());
    STRCMP_EQUAL("", e->problem.c_str());
    for (size_t h = 0; h < 40; h++)
        LONGS_EQUAL(0xFF800000, get(got[0].payload, 4 * h, 4));
    for (size_t at = ops[0].stats(4); at < got[0].payload.size(); at++)
        LONGS_EQUAL(0, got[0].payload[at]);
}

// Finite stand-ins for minus infinity must not beat real logits, and their empty head must not
// count.
TEST(Merge, FiniteSentinelsLose) {
    std::vector<operation> ops;
    for (float sentinel : {-1e30f, -3.4028235e38f, -65504.0f}) {
        operation o = make.op(8, 64, BF16, 3, REALISTIC);
        for (size_t h = 0; h < 8; h++)
            for (size_t k = 0; k < 3; k += 2)
                put(o.parts[k].payload, 8 * h, as_bits(sentinel), 4);
        for (size_t h = 0; h < 8; h++) {
            put(o.parts[1].payload, 8 * h, as_bits(-9000.0f - (float)h), 4);
            put(o.parts[1].payload, 8 * h + 4, as_bits(1.0f), 4);
        }
        ops.push_back(o);
    }
    check(ops, options(), true);
}

// Zero in one base and the other, and logits near 10^4 that differ in their last bits only.
TEST(Merge, MixedBasesNearTenThousand) {
    std::vector<operation> ops;
    for (int k = 0; k < 20; k++) {
        operation o = make.op(8, 32, FP32, 8, REALISTIC);
        for (size_t p = 0; p < 8; p++) {
            o.parts[p].natural = p % 2;
            for (size_t h = 0; h < 8; h++) {
                const double two = h == 0 ? 0 : (h % 2 ? 1e4 : -1e4) + (make.unit() - 0.5) * 3;
                put(o.parts[p].payload, 8 * h, as_bits((float)(p % 2 ? two * std::log(2.0) : two)),
                    4);
                put(o.parts[p].payload, 8 * h + 4, as_bits(1.5f), 4);
            }
        }
        ops.push_back(o);
    }
    check(ops, options(), true);
}

TEST(Merge, ResultIsThereInTime) {
    std::vector<operation> ops;
    for (int k = 0; k < 60; k++)
        ops.push_back(make.any(REALISTIC, 3000));
    options opt;
    opt.slots = 1;
    opt.one_by_one = true;
    check(ops, opt, false);
    printf("result at most payload beats + %d cycles after its last contribution was taken\n",
           (int)e->seen.slack);
    CHECK(e->seen.slack <= 36);
}

// 32 values of 16 bits a cycle, slots interleaved: as many cycles as source beats, but for a few.
TEST(Merge, ABeatEveryCycle) {
    std::vector<operation> ops;
    for (int k = 0; k < 12; k++)
        ops.push_back(make.op(32, 128, BF16, 4, REALISTIC));
    options opt;
    opt.slots = 8;
    opt.offset = 74;
    check(ops, opt, false);
    printf("%llu payload beats, %llu source beats in %llu cycles\n",
           (unsigned long long)e->seen.payload_beats, (unsigned long long)e->seen.source_beats,
           (unsigned long long)e->seen.cycles);
    CHECK(e->seen.cycles <=
          e->seen.source_beats + 300); // the last results are read when all is folded
}

TEST(Merge, ResetForgetsWhatIsUnderWay) {
    std::vector<operation> ops;
    for (int k = 0; k < 10; k++)
        ops.push_back(make.any(REALISTIC, 1000));
    auto &t = *b->top;
    for (int k = 0; k < 5; k++) {
        t.fold_valid_i = 1;
        t.slot_i = (uint8_t)k;
        t.reduce_i = 0;
        t.dtype_i = BF16;
        t.heads_i = 8;
        t.dim_i = 64;
        t.off_i = 74;
        t.first_i = t.last_i = 1;
        t.cmd_ready_i = 1;
        t.fetch_valid_i = 0;
        b->tick();
    }
    t.fold_valid_i = 0;
    b->reset();
    b->fired();
    CHECK(t.idle_o && t.busy_o == 0 && t.res_ready_o == 0);
    check(ops, options(), true);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
