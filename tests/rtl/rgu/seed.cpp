// rgu_seed: a packed seed image in, tables out, against the golden model and the float64
// definition.
//
// The bench is an AXI-like read master with latency and stalls, and a consumer that reads every
// table word of both sides under a random lane XOR, with stalls, before it lets the chunk go.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "Vrgu_seed.h"
#include "verilated.h"

#include "models/golden/rgu.h"

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/MemoryLeakWarningPlugin.h"
#include "CppUTest/TestHarness.h"

static uint32_t g_seed;

struct Stalls {
    int cmd = 0, data = 0, read = 0, pop = 0; // percent of cycles
    int latency = 0;
};

// A projection, its image and its row scales; every number chosen by the seed.
struct Projection {
    int n, terms;
    size_t co, ci, planes;
    std::vector<int16_t> angles;
    std::vector<float> gain, scale;
    std::vector<uint8_t> odd;
    std::vector<uint8_t> image;
    mr_seed seed;

    Projection(std::mt19937 &rng, int n_, int terms_, size_t co_, size_t ci_, int corner)
        : n(n_), terms(terms_), co(co_), ci(ci_), planes((size_t)mr_rgu_planes(n_)) {
        static const int16_t corners[] = {0, -32768, 32767, 16384, -16384, 1, -1, 127, 128, 8192};
        size_t chunks = co * ci, d = (size_t)1 << n;
        for (size_t i = 0; i < chunks * (size_t)terms * 2 * planes; i++)
            angles.push_back((int)(rng() % 100) < corner ? corners[rng() % 10] : (int16_t)rng());
        for (size_t i = 0; i < chunks * (size_t)terms; i++) {
            static const float gains[] = {0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -3.0f, 1e-30f, 3e38f};
            bool odd_gain = (int)(rng() % 100) < corner;
            gain.push_back(odd_gain ? gains[rng() % 8]
                                    : ((float)(rng() % 65536) - 32768.0f) / 20000.0f);
            odd.push_back(rng() & 1);
        }
        for (size_t i = 0; i < co * d; i++)
            scale.push_back((float)(int)rng() / 65536.0f);
        seed = {n, terms, co * d, ci * d, angles.data(), gain.data(), odd.data(), scale.data()};
        image.resize(mr_rgu_image_bytes(&seed));
        mr_rgu_pack(&seed, image.data());
    }
    mr_rgu_record record(size_t o, size_t i, size_t t) const {
        mr_rgu_record rec;
        size_t at = (o * ci + i) * (size_t)terms + t;
        mr_rgu_unpack(image.data() + at * mr_rgu_record_bytes(n), n, &rec);
        return rec;
    }
};

static const uint64_t SEEDS_AT = 0x123456000040ull, SCALES_AT = 0xABCD00000080ull;

TEST_GROUP(Seed) {
    std::unique_ptr<Vrgu_seed> top;
    std::mt19937 rng{g_seed};
    const Projection *p = nullptr;
    Stalls stalls;
    long cycle = 0;
    struct Read {
        const uint8_t *from;
        size_t left;
        long ready_at;
    };
    std::deque<Read> reads;
    long last_data = 0;         // cycle of the last beat given
    std::vector<long> valid_at; // cycle at which each chunk was offered
    size_t longest_queue = 0;
    long late = 0; // cycles the consumer stays away after the start

    void setup() override {
        top = std::make_unique<Vrgu_seed>();
        top->clk_i = 0;
        top->rst_ni = 0;
        top->start_i = top->cmd_ready_i = top->rd_valid_i = top->rs_en_i = top->rs_pop_i = 0;
        top->tab_pop_i = top->rd_en_i = 0;
        for (int i = 0; i < 3; i++)
            tick();
        top->rst_ni = 1;
        tick();
    }
    void teardown() override { top->final(); }

    bool chance(int percent) { return (int)(rng() % 100) < percent; }

    // One clock with the memory on the read port.
    void tick() {
        top->cmd_ready_i = 0;
        bool give = !reads.empty() && reads.front().ready_at <= cycle && !chance(stalls.data);
        top->rd_valid_i = give;
        if (give)
            memcpy(&top->rd_data_i, reads.front().from, 64);
        top->clk_i = 0;
        top->eval();
        bool valid = top->cmd_valid_o;
        bool take = top->rst_ni && !chance(stalls.cmd);
        top->cmd_ready_i = take;
        top->eval();
        CHECK_EQUAL(valid, (bool)top->cmd_valid_o); // valid does not follow ready within a cycle
        if (give) {
            CHECK(top->rd_ready_o);
            Read &r = reads.front();
            r.from += 64, r.left -= 64;
            last_data = cycle;
            if (!r.left)
                reads.pop_front();
        }
        if (valid && take) {
            reads.push_back({locate(top->cmd_addr_o, top->cmd_len_o), (size_t)top->cmd_len_o,
                             cycle + 1 + stalls.latency});
            longest_queue = std::max(longest_queue, reads.size());
        }
        top->clk_i = 1;
        top->eval();
        cycle++;
    }
    // Host pointer of a device range that must lie inside one of the two arrays.
    const uint8_t *locate(uint64_t addr, size_t len) {
        CHECK(len > 0 && len <= 4096 && len % 64 == 0 && addr % 64 == 0);
        if (addr >= SCALES_AT) {
            CHECK(addr - SCALES_AT + len <= p->scale.size() * 4);
            return (const uint8_t *)p->scale.data() + (addr - SCALES_AT);
        }
        CHECK(addr >= SEEDS_AT && addr - SEEDS_AT + len <= p->image.size());
        return p->image.data() + (addr - SEEDS_AT);
    }

    void start(size_t o0, size_t o1, size_t i0, size_t i1, bool scales, unsigned visits = 1) {
        top->n10_i = p->n == 10;
        top->terms_i = (unsigned)p->terms;
        top->seeds_i = SEEDS_AT;
        top->row_scale_i = scales;
        top->rs_base_i = SCALES_AT;
        top->chunks_in_i = (unsigned)p->ci;
        top->o0_i = (unsigned)o0, top->o1_i = (unsigned)o1;
        top->i0_i = (unsigned)i0, top->i1_i = (unsigned)i1;
        top->visits_i = visits;
        top->start_i = 1;
        tick();
        top->start_i = 0;
        valid_at.clear();
    }
    void wait_valid(long limit) {
        for (long t = 0; !top->tab_valid_o; t++) {
            CHECK(t < limit);
            tick();
        }
    }

    static int32_t field(const uint32_t *words, int lane, int width) {
        int bit = lane * width, at = bit / 32, shift = bit % 32;
        uint64_t two = words[at] | (shift + width > 32 ? (uint64_t)words[at + 1] << 32 : 0);
        return (int32_t)((uint32_t)(two >> shift) << (32 - width)) >> (32 - width);
    }

    // All words of the chunk on offer against the golden model; stalls hold the data in between.
    void read_tables(size_t o, size_t i) {
        int words = 1 << (p->n - 6), half = 1 << (p->n - 1);
        std::vector<std::vector<int32_t>> r((size_t)p->terms), s((size_t)p->terms);
        for (int t = 0; t < p->terms; t++) {
            mr_rgu_record rec = p->record(o, i, (size_t)t);
            r[(size_t)t].resize((size_t)half), s[(size_t)t].resize((size_t)half);
            mr_golden_tables(p->n, &rec, r[(size_t)t].data(), s[(size_t)t].data());
        }
        std::vector<int> order;
        for (int a = 0; a < p->terms * words; a++)
            order.push_back(a);
        std::shuffle(order.begin(), order.end(), rng);
        for (int a : order) {
            int b = (int)(rng() % (unsigned)(p->terms * words)), x = (int)(rng() % 32);
            top->rd_en_i = 1;
            top->r_addr_i = (unsigned)((a / words) << 4 | a % words);
            top->s_addr_i = (unsigned)((b / words) << 4 | b % words);
            top->s_xor_i = (unsigned)x;
            tick();
            top->rd_en_i = 0;
            top->r_addr_i = rng() & 511, top->s_addr_i = rng() & 511, top->s_xor_i = rng() & 31;
            while (chance(stalls.read))
                tick();
            for (int l = 0; l < 32; l++) {
                LONGS_EQUAL(r[(size_t)(a / words)][(size_t)(a % words * 32 + l)],
                            field(top->r_data_o.data(), l, 22));
                LONGS_EQUAL(s[(size_t)(b / words)][(size_t)(b % words * 32 + (l ^ x))],
                            field(top->s_data_o.data(), l, 20));
            }
            // s is read in random order, so make sure that every one of its words is seen
            top->rd_en_i = 1;
            top->s_addr_i = (unsigned)((a / words) << 4 | a % words);
            top->s_xor_i = 0;
            tick();
            top->rd_en_i = 0;
            for (int l = 0; l < 32; l++)
                LONGS_EQUAL(s[(size_t)(a / words)][(size_t)(a % words * 32 + l)],
                            field(top->s_data_o.data(), l, 20));
        }
    }

    void read_scales(size_t o, size_t count) {
        size_t d = (size_t)1 << p->n;
        for (size_t k = 0; k < count; k++) {
            size_t row = count == d ? k : rng() % d;
            top->rs_en_i = 1;
            top->rs_addr_i = (unsigned)((top->tab_rs_half_o ? 1024u : 0u) | row);
            tick();
            top->rs_en_i = 0;
            float got;
            uint32_t bits = top->rs_data_o;
            memcpy(&got, &bits, 4);
            CHECK(got == p->scale[o * d + row]);
        }
    }

    // A whole job: every chunk of the window in order, its context, tables and scales.
    void job(const Projection &proj, size_t o0, size_t o1, size_t i0, size_t i1, bool scales,
             unsigned visits = 1) {
        p = &proj;
        start(o0, o1, i0, i1, scales, visits);
        long limit = 20000 + 40 * stalls.latency + (long)p->terms * 30000;
        bool half = false;
        for (long t = 0; t < late; t++)
            tick();
        unsigned each = std::max(visits, 1u);
        for (size_t walk = 0; walk < (o1 - o0 + 1) * each; walk++) {
            size_t o = o0 + walk / each;
            bool final = walk + 1 == (o1 - o0 + 1) * each;
            for (size_t i = i0; i <= i1; i++) {
                wait_valid(limit);
                LONGS_EQUAL(o, top->tab_row_o);
                LONGS_EQUAL(i, top->tab_col_o);
                LONGS_EQUAL(i == i1, top->tab_row_last_o);
                LONGS_EQUAL(i == i1 && final, top->tab_last_o);
                LONGS_EQUAL(half, top->tab_rs_half_o);
                LONGS_EQUAL(p->record(o, i, 0).e, (int)(top->tab_e_o << 22) >> 22);
                for (int t = 0; t < p->terms; t++)
                    LONGS_EQUAL(p->record(o, i, (size_t)t).odd, top->tab_odd_o >> t & 1);
                for (int t = p->terms; t < 32; t++)
                    LONGS_EQUAL(0, top->tab_odd_o >> t & 1);
                read_tables(o, i);
                if (scales)
                    read_scales(o, i == i1 ? (size_t)1 << p->n : 16);
                while (chance(stalls.pop))
                    tick();
                top->tab_pop_i = 1;
                top->rs_pop_i = i == i1;
                tick();
                top->tab_pop_i = top->rs_pop_i = 0;
            }
            half = !half;
        }
        for (int t = 0; t < 400; t++) {
            CHECK(!top->tab_valid_o);
            tick();
        }
        CHECK(!top->busy_o);
        CHECK(reads.empty());
    }

    // A consumer that only lets chunks go: the pace of the expansion itself.
    void drain(const Projection &proj, bool scales) {
        p = &proj;
        start(0, p->co - 1, 0, p->ci - 1, scales);
        long started = cycle;
        for (size_t c = 0; c < p->co * p->ci; c++) {
            wait_valid(200000);
            valid_at.push_back(cycle - started);
            top->tab_pop_i = 1;
            top->rs_pop_i = top->tab_row_last_o;
            tick();
            top->tab_pop_i = top->rs_pop_i = 0;
        }
    }
};

static Stalls random_stalls(std::mt19937 &rng) {
    Stalls s;
    s.cmd = (int)(rng() % 90), s.data = (int)(rng() % 90), s.read = (int)(rng() % 60);
    s.pop = (int)(rng() % 99), s.latency = (int)(rng() % 300);
    return s;
}

TEST(Seed, TermsAtBothSizesIdealMemory) {
    for (int n : {8, 10})
        for (int terms : {1, 2, 3, 8, 16, 17, 32})
            job(Projection(rng, n, terms, 2, 2, 10), 0, 1, 0, 1, true);
}

TEST(Seed, RandomStallsEverywhere) {
    for (int k = 0; k < 24; k++) {
        stalls = random_stalls(rng);
        int n = k % 3 ? 8 : 10;
        size_t co = 1 + rng() % 3, ci = 1 + rng() % 4;
        Projection proj(rng, n, 1 + (int)(rng() % (n == 8 ? 6 : 3)), co, ci, 20);
        size_t o0 = rng() % co, i0 = rng() % ci;
        job(proj, o0, o0 + rng() % (co - o0), i0, i0 + rng() % (ci - i0), rng() & 1);
    }
    CHECK(longest_queue >= 2);
}

// The ring of table slots and the list of waiting chunks fill up; nothing that waits is
// overwritten.
TEST(Seed, ConsumerStartsLate) {
    struct {
        int n, terms;
        size_t chunks;
    } cases[] = {{8, 1, 9}, {8, 32, 6}, {8, 31, 6}, {10, 17, 3}, {10, 9, 5}, {10, 32, 2}};
    for (auto &c : cases) {
        late = (long)c.terms * (long)c.chunks * (c.n == 8 ? 240 : 1072) + 500;
        job(Projection(rng, c.n, c.terms, 1, c.chunks, 10), 0, 0, 0, c.chunks - 1, true);
    }
}

TEST(Seed, CornerAnglesAndGains) {
    for (int n : {8, 10})
        job(Projection(rng, n, 4, 2, 3, 100), 0, 1, 0, 2, false);
}

TEST(Seed, EveryAngleMinus32768AndGainZero) {
    for (int n : {8, 10}) {
        Projection proj(rng, n, 2, 1, 2, 0);
        std::fill(proj.angles.begin(), proj.angles.end(), (int16_t)-32768);
        std::fill(proj.gain.begin(), proj.gain.begin() + 2, 0.0f);
        mr_rgu_pack(&proj.seed, proj.image.data());
        job(proj, 0, 0, 0, 1, false);
    }
}

TEST(Seed, ManyNarrowChunkRows) { job(Projection(rng, 8, 1, 12, 1, 10), 0, 11, 0, 0, true); }

TEST(Seed, EveryRowSeveralTimes) {
    for (unsigned visits : {0u, 2u, 5u})
        for (int n : {8, 10}) {
            job(Projection(rng, n, 2, 3, 2, 10), 0, 2, 0, 1, visits != 2, visits);
            stalls = random_stalls(rng);
        }
}

TEST(Seed, OneChunkOfAWideImageAtItsEnd) {
    job(Projection(rng, 8, 3, 3, 700, 10), 2, 2, 697, 699, true);
}

// The tables mean what the definition says: r = gain * rotor (* e_0), s = rev(rotor), K top bit
// dropped.
TEST(Seed, TablesFollowTheDefinition) {
    for (int n : {8, 10}) {
        Projection proj(rng, n, 2, 1, 1, 0);
        p = &proj;
        start(0, 0, 0, 0, false);
        wait_valid(20000);
        unsigned d = 1u << n;
        double unit = std::ldexp(1.0, (int)(top->tab_e_o << 22) >> 22);
        std::vector<double> angles(proj.planes), rotor(d);
        for (int t = 0; t < 2; t++) {
            int odd = proj.odd[(size_t)t];
            for (int side = 0; side < 2; side++) {
                for (size_t a = 0; a < proj.planes; a++)
                    angles[a] = proj.angles[((size_t)t * 2 + (size_t)side) * proj.planes + a] *
                                M_PI / 32768;
                mr_def_rotor(n, angles.data(), rotor.data());
                for (unsigned word = 0; word < d / 64; word++) {
                    top->rd_en_i = 1;
                    top->r_addr_i = top->s_addr_i = (unsigned)t << 4 | word;
                    top->s_xor_i = 0;
                    tick();
                    for (unsigned k = word * 32; k < word * 32 + 32; k++) {
                        int par = __builtin_parity(k);
                        unsigned blade = k | (unsigned)(par ^ (side ? 0 : odd)) << (n - 1);
                        int ones = __builtin_popcount(blade);
                        double want = ones * (ones - 1) / 2 % 2 ? -1 : 1, got;
                        if (side) {
                            want *= rotor[blade];
                            got = field(top->s_data_o.data(), (int)(k & 31), 20) / 262144.0;
                        } else {
                            unsigned from = odd ? blade ^ 1u : blade; // e_from e_0 = +- e_blade
                            want *= rotor[from] * (odd ? mr_def_sign(from, 1) : 1);
                            want *= proj.gain[(size_t)t] / unit;
                            got = field(top->r_data_o.data(), (int)(k & 31), 22) / 1048576.0;
                        }
                        DOUBLES_EQUAL(want, got, side ? 4e-6 : 1e-5);
                    }
                }
            }
        }
        top->rd_en_i = 0;
        top->tab_pop_i = 1;
        tick();
        top->tab_pop_i = 0;
    }
}

TEST(Seed, StartForgetsAnAbandonedJob) {
    Projection first(rng, 10, 3, 2, 2, 10), second(rng, 8, 2, 2, 2, 10);
    for (long after : {1, 3, 9, 60, 200, 700, 3000, 5000}) {
        p = &first;
        stalls = Stalls();
        start(0, 1, 0, 1, true);
        while (after-- > 0)
            tick();
        stalls.cmd = 100; // the data under way arrive, nothing new is asked for
        for (int t = 0; t < 4000 || !reads.empty(); t++)
            tick();
        stalls = random_stalls(rng);
        stalls.cmd = 0; // a command still on offer must not be mistaken for one of the new job
        job(second, 0, 1, 0, 1, true);
    }
}

TEST(Seed, ResetInTheMiddle) {
    Projection proj(rng, 8, 2, 2, 2, 10);
    p = &proj;
    start(0, 1, 0, 1, true);
    for (int t = 0; t < 333; t++)
        tick();
    top->rst_ni = 0;
    reads.clear();
    tick();
    top->rst_ni = 1;
    job(proj, 0, 1, 0, 1, true);
}

// The figures of docs/rgu.md: cycles from start to the first chunk, and from chunk to chunk.
TEST(Seed, CyclesAreAsDocumented) {
    struct {
        int n, terms;
        long first, each;
    } figures[] = {{8, 1, 270, 240}, {8, 4, 990, 960}, {10, 1, 1104, 1072}, {10, 8, 8608, 8576}};
    for (auto &f : figures) {
        drain(Projection(rng, f.n, f.terms, 2, 3, 10), false);
        printf("n=%d terms=%d: first chunk %ld cycles after start, then every %ld\n", f.n, f.terms,
               valid_at[0], valid_at[5] - valid_at[4]);
        CHECK(valid_at[0] <= f.first);
        for (size_t c = 1; c < valid_at.size(); c++)
            CHECK(valid_at[c] - valid_at[c - 1] <= f.each);
    }
}

int main(int argc, char **argv) {
    const char *seed = getenv("MR_SEED");
    g_seed = seed ? (uint32_t)strtoul(seed, nullptr, 0) : (uint32_t)time(nullptr);
    printf("MR_SEED=%u\n", g_seed);
    Verilated::randReset(2);
    Verilated::randSeed((int)(g_seed & 0x7fffffff));
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads(); // Verilated code frees in its own ways
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
