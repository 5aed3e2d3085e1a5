// pnm_mult against the golden model: every pair of fractions, every length and mode, every
// generator; other cuts and stream bits a cycle; classes of operands; stalls, latency and rate;
// seeds.
#include <deque>
#include <vector>

#include "Vmult_tb.h"
#include "models/golden/pnm_mult.h"
#include "tests/rtl/common/bench.hpp"

namespace {

// as in mult_tb.sv
struct Build {
    int gen;
    unsigned cut, bits, lane;
};
const Build builds[] = {{0, 0, 16, 0}, {1, 0, 16, 0}, {2, 0, 16, 0}, {3, 0, 16, 0},
                        {0, 0, 4, 0},  {0, 2, 64, 0}, {1, 1, 4, 5},  {2, 3, 8, 0},
                        {3, 1, 4, 0},  {3, 6, 32, 0}, {3, 0, 8, 0},  {1, 0, 32, 255}};
const unsigned default_a = mr_pnm_mult_default().seed_a, default_b = mr_pnm_mult_default().seed_b;

struct Pair {
    uint16_t a, b;
};

class Mult : public Bench<Vmult_tb> {
public:
    explicit Mult(uint64_t seed) : Bench(seed), rng(seed) {
        top->set_i = top->seed_we_i = top->valid_i = top->ready_i = 0;
        reset();
    }
    // Mode and seeds of build k; the golden model's mode for it.
    mr_pnm_mult_mode set(unsigned k, mr_pnm_kind kind, unsigned stream) {
        mr_pnm_mult_mode m = mr_pnm_mult_default();
        m.kind = kind;
        m.gen = (mr_pnm_gen)builds[k].gen;
        m.stream = stream;
        m.cut = builds[k].cut;
        m.lane = builds[k].lane;
        top->kind_i = kind;
        top->log_i = (unsigned)__builtin_ctz(stream);
        top->set_i = 1u << k;
        tick();
        top->set_i = 0;
        return m;
    }
    void seed(unsigned k, uint32_t a, uint32_t b) {
        top->seed_a_i = a & 0xFFFFFF;
        top->seed_b_i = b & 0x7FFFFF;
        top->seed_we_i = 1u << k;
        tick();
        top->seed_we_i = 0;
    }
    // Sends pairs through build k; `stalls` percent of cycles without an operand, and without
    // ready. Gives the number of products that differ from the golden table; the first is printed.
    unsigned run(unsigned k, const mr_pnm_mult_mode &m, const std::vector<Pair> &pairs,
                 unsigned stalls, unsigned extra_flags = 0) {
        std::vector<uint16_t> table(MR_PNM_TABLE);
        LONGS_EQUAL(0, mr_pnm_mult_table(&m, table.data()));
        size_t sent = 0, got = 0;
        unsigned wrong = 0;
        uint64_t start = cycles, first_in = 0, last_out = 0;
        bool offered = false;
        latency = 0;
        while (got < pairs.size() && cycles < start + pairs.size() * 400 + 100) {
            offered = offered || (sent < pairs.size() && !rng.percent(stalls));
            top->valid_i = offered ? 1u << k : 0;
            if (offered) {
                top->a_i = pairs[sent].a;
                top->b_i = pairs[sent].b;
            }
            top->ready_i = !rng.percent(stalls);
            settle();
            if (offered && (top->ready_o >> k & 1)) {
                if (sent++ == 0)
                    first_in = cycles;
                offered = false;
            }
            if ((top->valid_o >> k & 1) && top->ready_i) {
                uint32_t product = top->product_o[k];
                unsigned flags = (unsigned)(top->flags_o >> (4 * k)) & 15, met = 0;
                uint32_t want =
                    mr_pnm_mult_by_table(table.data(), pairs[got].a, pairs[got].b, &met);
                unsigned want_flags = (met & MR_PNM_INVALID ? 8u : 0) |
                                      (met & MR_PNM_UNDERFLOW ? 4u : 0) |
                                      (met & MR_PNM_OVERFLOW ? 2u : 0) | extra_flags;
                if ((product != want || flags != want_flags) && wrong++ == 0)
                    printf("build %u %s L %u: %04x * %04x = %08x flags %x, golden %08x flags %x\n",
                           k, mr_pnm_kind_name((int)m.kind), m.stream, pairs[got].a, pairs[got].b,
                           product, flags, want, want_flags);
                if (got++ == 0)
                    latency = cycles - first_in;
                last_out = cycles;
            }
            tick();
        }
        top->valid_i = top->ready_i = 0;
        LONGS_EQUAL(pairs.size(), got);
        span = last_out - first_in + 1;
        settle();
        CHECK(!(top->busy_o >> k & 1));
        CHECK(!fired());
        return wrong;
    }
    Rng rng;
    uint64_t latency = 0, span = 0; // of the last run: first product, and all of them
};

std::vector<Pair> every_pair() {
    std::vector<Pair> all;
    for (unsigned f = 0; f < 128 * 128; f++)
        all.push_back({(uint16_t)(0x3F80 | f / 128), (uint16_t)(0x3F80 | f % 128)});
    return all;
}

bool has_full(unsigned k) { return builds[k].gen != MR_PNM_CENTRED && builds[k].cut == 0; }

} // namespace

TEST_GROUP(pnm_mult) {
    Mult bench{run_seed()};

    void exhaustive(unsigned k) {
        const std::vector<Pair> all = every_pair();
        for (unsigned stream = 4; stream <= 256; stream *= 2)
            for (mr_pnm_kind kind : {MR_PNM_SPLIT, MR_PNM_FULL})
                if (kind == MR_PNM_SPLIT || has_full(k))
                    LONGS_EQUAL(0, bench.run(k, bench.set(k, kind, stream), all, 0));
        LONGS_EQUAL(0, bench.run(k, bench.set(k, MR_PNM_EXACT, 16), all, 0));
    }
};

TEST(pnm_mult, every_pair_unary) { exhaustive(0); }
TEST(pnm_mult, every_pair_lfsr) { exhaustive(1); }
TEST(pnm_mult, every_pair_sobol) { exhaustive(2); }
TEST(pnm_mult, every_pair_centred) { exhaustive(3); }

// Other cuts, stream bits and lanes; any bits as operands, with stalls on both sides.
TEST(pnm_mult, other_builds_with_stalls) {
    for (unsigned k = 0; k < 12; k++)
        for (unsigned stream = 4; stream <= 256; stream *= 2)
            for (mr_pnm_kind kind : {MR_PNM_SPLIT, MR_PNM_FULL, MR_PNM_EXACT}) {
                if (kind == MR_PNM_FULL && !has_full(k))
                    continue;
                std::vector<Pair> pairs;
                for (int i = 0; i < 400; i++) {
                    Pair p = {(uint16_t)bench.rng.next(), (uint16_t)bench.rng.next()};
                    if (i % 4) // most with exponents whose product is a number
                        p = {(uint16_t)((p.a & 0x807F) | 0x3F80),
                             (uint16_t)((p.b & 0x807F) | 0x4000)};
                    pairs.push_back(p);
                }
                LONGS_EQUAL(0, bench.run(k, bench.set(k, kind, stream), pairs, 30));
            }
}

// Zeros, subnormals, infinities, NaN, the ends of the range, both signs, in every mode.
TEST(pnm_mult, classes_of_operands) {
    std::vector<uint16_t> codes;
    for (int e : {0, 1, 2, 63, 64, 65, 126, 127, 128, 190, 191, 192, 253, 254, 255})
        for (int f : {0, 1, 63, 64, 127})
            for (int s : {0, 1})
                codes.push_back((uint16_t)(s << 15 | e << 7 | f));
    std::vector<Pair> pairs;
    for (uint16_t a : codes)
        for (uint16_t b : codes)
            pairs.push_back({a, b});
    for (unsigned k = 0; k < 12; k++)
        for (mr_pnm_kind kind : {MR_PNM_SPLIT, MR_PNM_FULL, MR_PNM_EXACT})
            if (kind != MR_PNM_FULL || has_full(k))
                LONGS_EQUAL(0, bench.run(k, bench.set(k, kind, 16), pairs, 0));
}

// A product every max(1, L/S) cycles, the first one 4 + slices - 1 cycles after its operands.
TEST(pnm_mult, latency_and_rate) {
    std::vector<Pair> pairs(64, Pair{0x3FA5, 0x3FC7});
    for (unsigned k = 0; k < 12; k++)
        for (unsigned stream = 4; stream <= 256; stream *= 2) {
            uint64_t slices = stream > builds[k].bits ? stream / builds[k].bits : 1;
            LONGS_EQUAL(0, bench.run(k, bench.set(k, MR_PNM_SPLIT, stream), pairs, 0));
            LONGS_EQUAL(4 + slices - 1, bench.latency);
            LONGS_EQUAL(4 + slices - 1 + (pairs.size() - 1) * slices + 1, bench.span);
            LONGS_EQUAL(0, bench.run(k, bench.set(k, MR_PNM_EXACT, stream), pairs, 0));
            LONGS_EQUAL(4, bench.latency);
        }
}

TEST(pnm_mult, valid_and_ready_do_not_follow_each_other) {
    bench.set(0, MR_PNM_SPLIT, 64);
    bench.top->a_i = bench.top->b_i = 0x3FC0;
    for (int i = 0; i < 300; i++) {
        bench.top->valid_i = i % 3 != 0 || bench.top->valid_i; // once offered it stays
        bench.top->ready_i = 0;
        bench.settle();
        unsigned valid = bench.top->valid_o;
        bench.top->ready_i = 1;
        bench.settle();
        LONGS_EQUAL(valid, bench.top->valid_o);
        bench.top->ready_i = bench.rng.percent(40);
        bench.tick();
    }
    CHECK(!bench.fired());
}

TEST(pnm_mult, seeds_are_taken_and_lock_states_are_not) {
    std::vector<Pair> pairs;
    for (int i = 0; i < 300; i++)
        pairs.push_back(
            {(uint16_t)(0x3F80 | bench.rng.below(128)), (uint16_t)(0x3F80 | bench.rng.below(128))});
    for (unsigned k : {1u, 6u, 11u}) {
        mr_pnm_mult_mode m = bench.set(k, MR_PNM_SPLIT, 64);
        struct {
            uint32_t a, b;
            bool bad_a, bad_b;
        } cases[] = {{0x123456, 0x654321, false, false},
                     {0, 0x654321, true, false},
                     {0x123456, 0x7FFFFF, false, true},
                     {0xFFFFFF, 0, true, true},
                     {1, 1, false, false}};
        for (auto &c : cases) {
            bench.seed(k, c.a, c.b);
            m.seed_a = c.bad_a ? default_a : c.a;
            m.seed_b = c.bad_b ? default_b : c.b;
            LONGS_EQUAL(0, bench.run(k, m, pairs, 10, c.bad_a || c.bad_b ? 1 : 0));
        }
        // exact has no streams, so nothing to complain about
        bench.seed(k, 0, 0);
        m = bench.set(k, MR_PNM_EXACT, 64);
        LONGS_EQUAL(0, bench.run(k, m, pairs, 10));
    }
}

TEST(pnm_mult, a_mode_that_changes_under_way_is_caught) {
    bench.set(0, MR_PNM_SPLIT, 256);
    bench.top->valid_i = 1;
    bench.top->a_i = bench.top->b_i = 0x3FC0;
    bench.tick();
    bench.top->valid_i = 0;
    bench.tick();
    Capture capture;
    bench.set(0, MR_PNM_SPLIT, 16);
    std::string text = capture.end();
    CHECK(bench.fired());
    STRCMP_CONTAINS("mode changes", text.c_str());
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
