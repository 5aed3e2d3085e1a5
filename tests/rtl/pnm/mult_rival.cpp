// pnm_mult_bin and pnm_mult_short: every pair of fractions against the golden model (the truncated
// binary lanes against their formula), classes of operands, stages that are held at random.
#include <deque>
#include <vector>

#include "Vmult_rival_tb.h"
#include "models/golden/pnm_mult.h"
#include "tests/rtl/common/bench.hpp"
#include "tests/unit/pnm/mult_error.h"

namespace {

// as in mult_rival_tb.sv
enum { BIN = 9, LANES = 22 };
unsigned keep(unsigned k) { return k < 3 ? 7 : 9 - k; }
unsigned stages(unsigned k) { return k < 3 ? k + 1 : k == 4 ? 2 : k < BIN ? 1 : 1 + (k - BIN) % 3; }

mr_pnm_mult_mode mode(unsigned k) {
    unsigned i = k - BIN;
    mr_pnm_mult_mode m = mr_pnm_mult_default();
    if (k < BIN) {
        m.kind = MR_PNM_EXACT;
        return m;
    }
    m.gen = i < 4 || (i >= 8 && i < 12) ? MR_PNM_CENTRED : MR_PNM_UNARY;
    m.stream = 1u << (i < 8 ? 2 + i % 4 : i < 11 ? i - 6 : i == 11 ? 5 : 3);
    m.cut = i < 8 ? 0 : i < 11 ? i - 7 : i == 11 ? 3 : 2;
    return m;
}

// Both fractions cut to `kept` bits and taken at the middle of what is left open; docs/pnm-area.md.
unsigned truncated(unsigned kept, unsigned fa, unsigned fb) {
    const double less[] = {0, 276, 111, 70, 60, 57, 57};
    double step = 128 >> kept;
    double a = (floor(fa / step) + 0.5) * step, b = (floor(fb / step) + 0.5) * step;
    double p = 16384 + 128.0 * (fa + fb) + a * b - less[kept];
    return (unsigned)fmax(p, 16384);
}

class Rivals : public Bench<Vmult_rival_tb> {
public:
    explicit Rivals(uint64_t seed) : Bench(seed), rng(seed), tables(LANES) {
        for (unsigned k = 0; k < LANES; k++) {
            tables[k].resize(MR_PNM_TABLE);
            mr_pnm_mult_mode m = mode(k);
            LONGS_EQUAL(0, mr_pnm_mult_table(&m, tables[k].data()));
            if (keep(k) < 7 && k < BIN)
                for (unsigned f = 0; f < MR_PNM_TABLE; f++)
                    tables[k][f] = (uint16_t)truncated(keep(k), f / 128, f % 128);
        }
        top->load_i = top->en_i = 0;
        reset();
    }

    // What lane k owes for two operands, as the bench's word.
    uint32_t owed(unsigned k, uint16_t a, uint16_t b) const {
        unsigned ea = a >> 7 & 255, eb = b >> 7 & 255;
        bool zero = !ea || !eb, inf = ea == 255 || eb == 255;
        bool nan = (ea == 255 && a & 127) || (eb == 255 && b & 127) || (zero && inf);
        return (uint32_t)nan << 28 | (uint32_t)inf << 27 | (uint32_t)zero << 26 |
               (uint32_t)((a ^ b) >> 15) << 25 | (ea + eb) << 16 |
               tables[k][128 * (a & 127) + (b & 127)];
    }

    // Feeds all lanes; with `held`, stages rest at random, as the enables allow. Wrong products.
    unsigned run(const std::vector<std::pair<uint16_t, uint16_t>> &pairs, bool held) {
        std::deque<std::pair<uint16_t, uint16_t>> in[4]; // in[s]: results behind s stages
        size_t sent = 0, done = 0;
        unsigned wrong = 0;
        bool loaded = false;
        while (done < pairs.size()) {
            // from the back: a stage moves when the next one is free
            bool en[3];
            en[2] = !in[2].empty() && !(held && rng.percent(30));
            en[1] = !in[1].empty() && (in[2].empty() || en[2]) && !(held && rng.percent(30));
            en[0] = loaded && (in[1].empty() || en[1]) && !(held && rng.percent(30));
            bool load = sent < pairs.size() && (!loaded || en[0]) && !(held && rng.percent(30));
            top->en_i = en[0] | en[1] << 1 | en[2] << 2;
            top->weight_i = loaded ? pairs[sent - 1].first : (uint16_t)rng.next();
            top->load_i = load;
            top->act_i = load ? pairs[sent].second : (uint16_t)rng.next();
            tick();
            settle();
            if (en[2]) {
                in[3].push_back(in[2].front());
                in[2].pop_front();
            }
            if (en[1]) {
                in[2].push_back(in[1].front());
                in[1].pop_front();
            }
            if (en[0])
                in[1].push_back(pairs[sent - 1]);
            loaded = load || (loaded && !en[0]);
            sent += load;
            for (unsigned s = 1; s <= 3; s++)
                for (unsigned k = 0; en[s - 1] && k < LANES; k++)
                    if (stages(k) == s) {
                        auto &p = in[s].back();
                        uint32_t got = top->out_o[k], want = owed(k, p.first, p.second);
                        if (got != want && wrong++ == 0)
                            printf("lane %u: %04x * %04x gives %08x, owed %08x\n", k, p.first,
                                   p.second, got, want);
                    }
            done += in[3].size();
            in[3].clear();
        }
        return wrong;
    }
    Rng rng;
    std::vector<std::vector<uint16_t>> tables;
};

} // namespace

TEST_GROUP(mult_rival) { Rivals bench{run_seed()}; };

TEST(mult_rival, every_pair_of_fractions) {
    std::vector<std::pair<uint16_t, uint16_t>> pairs;
    for (unsigned f = 0; f < MR_PNM_TABLE; f++)
        pairs.push_back({(uint16_t)(0x3F80 | f / 128), (uint16_t)(0x3F80 | f % 128)});
    LONGS_EQUAL(0, bench.run(pairs, false));
}

// Zeros, subnormals, the ends of the range, infinities and NaN, both signs.
TEST(mult_rival, classes_of_operands) {
    std::vector<uint16_t> codes;
    for (int e : {0, 1, 2, 64, 126, 127, 128, 191, 253, 254, 255})
        for (int f : {0, 1, 64, 127})
            for (int s : {0, 1})
                codes.push_back((uint16_t)(s << 15 | e << 7 | f));
    std::vector<std::pair<uint16_t, uint16_t>> pairs;
    for (uint16_t a : codes)
        for (uint16_t b : codes)
            pairs.push_back({a, b});
    LONGS_EQUAL(0, bench.run(pairs, false));
}

TEST(mult_rival, any_operands_with_stages_held) {
    std::vector<std::pair<uint16_t, uint16_t>> pairs;
    for (int i = 0; i < 5000; i++)
        pairs.push_back({(uint16_t)bench.rng.next(), (uint16_t)bench.rng.next()});
    LONGS_EQUAL(0, bench.run(pairs, true));
}

// What docs/pnm-area.md says of the truncated lanes: their mean error is gone from three bits on.
TEST(mult_rival, truncated_lanes_have_no_mean_error) {
    for (unsigned k = 3; k < BIN; k++) {
        mult_error e = mult_error_of(bench.tables[k].data());
        CHECK_TEXT(fabs(e.mean) < 2e-5, "mean error");
        CHECK(e.rms < 0.1 * pow(2, -(double)keep(k)));
    }
}

// The argument of docs/pnm-arithmetic.md: for every activation the errors of all weights add up to
// nothing; below L = 16 a few products are held at 1, which is all that is left.
TEST(mult_rival, centred_errors_cancel) {
    mr_pnm_mult_mode m = mr_pnm_mult_default();
    m.gen = MR_PNM_CENTRED;
    std::vector<uint16_t> table(MR_PNM_TABLE);
    for (m.stream = 4; m.stream <= 256; m.stream *= 2) {
        LONGS_EQUAL(0, mr_pnm_mult_table(&m, table.data()));
        long all = 0;
        for (int fb = 0; fb < 128; fb++) {
            long sum = 0;
            for (int fa = 0; fa < 128; fa++)
                sum += (long)table[128 * fa + fb] - (128 + fa) * (128 + fb);
            CHECK(m.stream < 16 || sum == 0);
            all += sum;
        }
        LONGS_EQUAL(m.stream == 4 ? 1008 : m.stream == 8 ? 56 : 0, all);
    }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
