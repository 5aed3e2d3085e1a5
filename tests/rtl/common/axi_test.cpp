// AXI masters and arbiters against a memory that stalls every channel on its own, answers ids in
// any order and takes write data before or after its address.
#include "bench.hpp"
#include "Vaxi_tb.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>
#include <verilated_fst_c.h>

namespace {

const int B = 64;             // bytes a word
const size_t SPACE = 1 << 16; // the memory; addresses above are the same bytes again
const uint64_t BASE = 0x123456700000u;

struct Stalls { // chance, in percent, that a channel is ready or offers in a cycle
    unsigned aw = 100, w = 100, b = 100, ar = 100, r = 100, out = 100, in = 100, cmd = 100;
    unsigned latency = 0;
    bool shuffle = false;    // answer other ids first when it likes
    bool data_first = false; // take no AW before the burst's data
    unsigned bad = 0;        // percent of error responses
};

struct Command {
    uint64_t addr;
    uint32_t len;
    uint8_t src;
};

struct Traced : Bench<Vaxi_tb> {
    using Bench::Bench;
    ~Traced() override {
        if (fst)
            fst->close();
    }
    void trace(const char *path) {
        fst = std::make_unique<VerilatedFstC>();
        top->trace(fst.get(), 99);
        fst->open(path);
    }
    void dump() override {
        if (fst)
            fst->dump(time++);
    }
    std::unique_ptr<VerilatedFstC> fst;
    uint64_t time = 0;
};

// The whole bench: memory on one side, clients on the other, one cycle at a time.
class System {
public:
    System(uint64_t noise, const Stalls &s) : bench(noise), stalls(s), rng(noise), memory(SPACE) {
        auto &t = *bench.top;
        t.rd_cmd_valid_i = t.wr_cmd_valid_i = t.wr_valid_i = t.rd_ready_i = t.clear_i = 0;
        t.awready_i = t.wready_i = t.arready_i = t.bvalid_i = t.rvalid_i = 0;
        t.rresp_i = t.bresp_i = t.rid_i = t.bid_i = t.rlast_i = 0;
        memset(&t.wr_data_i[0], 0, 2 * B);
        memset(&t.rdata_i[0], 0, B);
        bench.reset();
        for (auto &m : memory)
            m = (uint8_t)rng.next();
        image = memory;
    }
    Traced bench;
    Stalls stalls;
    Rng rng;
    std::vector<uint8_t> memory, image; // what the slave holds; what it must hold at the end
    std::deque<Command> rd_todo[2], wr_todo[2];
    bool stuck[2] = {false, false};   // this read client never takes its data
    bool starved[2] = {false, false}; // this write client never gives its data
    uint64_t rd_beats[2] = {0, 0}, w_beats = 0, ar_bursts = 0, aw_bursts = 0, hash = 0;
    bool failed = false;

    bool empty() const {
        bool left = false;
        for (int k = 0; k < 2; k++)
            left |= (!starved[k] && (!wr_todo[k].empty() || !feed[k].empty())) ||
                    (!stuck[k] && (!rd_todo[k].empty() || !rd_open[k].empty()));
        return !left;
    }
    bool idle() {
        const auto &t = *bench.top;
        return (t.wr_idle_o | starved[0] | starved[1] << 1) == 3 &&
               ((t.rd_idle_o | stuck[0] | stuck[1] << 1) == 3);
    }
    void wrong(const char *what) {
        if (!failed)
            printf("cycle %llu: %s\n", (unsigned long long)bench.cycles, what);
        failed = true;
    }
    // After a reset: nothing is under way any more, and the memory is as it happens to be.
    void forget() {
        for (int k = 0; k < 2; k++) {
            rd_todo[k].clear(), wr_todo[k].clear();
            rd_open[k].clear(), feed[k].clear(), reads[k].clear();
            rd_at[k] = 0;
        }
        addresses.clear(), writes.clear(), data.clear(), burst.clear();
        r_busy = b_busy = false;
        image = memory;
    }
    // Runs until everything asked for has happened; false when the watchdog ends it or something is
    // wrong.
    bool run(int limit) {
        for (int k = 0; k < limit && !failed; k++) {
            if (empty() && idle() && writes.empty() && reads_left() == 0)
                return true;
            cycle();
        }
        if (!failed)
            wrong("watchdog");
        return false;
    }
    void cycle() {
        drive();
        auto &t = *bench.top;
        // valid must not follow ready within the cycle
        const uint8_t ready[3] = {t.awready_i, t.wready_i, t.arready_i};
        const uint8_t out = t.rd_ready_i;
        t.awready_i = !ready[0];
        t.wready_i = !ready[1];
        t.arready_i = !ready[2];
        t.rd_ready_i = (uint8_t)(~out & 3);
        bench.settle();
        const int before = t.awvalid_o | t.wvalid_o << 1 | t.arvalid_o << 2 | t.rd_valid_o << 3;
        t.awready_i = ready[0];
        t.wready_i = ready[1];
        t.arready_i = ready[2];
        t.rd_ready_i = out;
        bench.settle();
        if (before != (t.awvalid_o | t.wvalid_o << 1 | t.arvalid_o << 2 | t.rd_valid_o << 3))
            wrong("valid follows ready");
        sample();
        bench.tick();
        t.rd_cmd_valid_i &= (uint8_t)~done_rd_cmd;
        t.wr_cmd_valid_i &= (uint8_t)~done_wr_cmd;
        t.wr_valid_i &= (uint8_t)~done_wr;
        if (bench.fired())
            wrong("an assertion of the design fired");
    }

private:
    struct Burst {
        uint64_t addr;
        int words, id, done;
        uint64_t due;
        bool bad;
    };
    struct Feed { // beats a write client still has to give
        std::vector<uint8_t> bytes;
        size_t at;
    };
    std::deque<Burst> addresses, writes, reads[2];
    std::deque<std::vector<uint8_t>>
        data; // finished write bursts without address: words and strobes
    std::vector<uint8_t> burst;
    std::deque<Command> rd_open[2];
    std::deque<Feed> feed[2];
    size_t rd_at[2] = {0, 0};
    unsigned done_rd_cmd = 0, done_wr_cmd = 0, done_wr = 0;
    bool r_busy = false, b_busy = false;
    int r_id = 0;
    size_t b_index = 0;

    size_t reads_left() const { return reads[0].size() + reads[1].size(); }
    static size_t wrap(uint64_t a) { return (size_t)(a % SPACE); }

    void drive() {
        auto &t = *bench.top;
        for (int k = 0; k < 2; k++) {
            const unsigned bit = 1u << k;
            if (!(t.rd_cmd_valid_i & bit) && !rd_todo[k].empty() && rng.percent(stalls.cmd)) {
                t.rd_cmd_valid_i |= bit;
                put64(&t.rd_addr_i[2 * k], rd_todo[k].front().addr);
                ((uint32_t *)&t.rd_len_i)[k] = rd_todo[k].front().len;
            }
            if (!(t.wr_cmd_valid_i & bit) && !wr_todo[k].empty() && rng.percent(stalls.cmd)) {
                const Command c = wr_todo[k].front();
                t.wr_cmd_valid_i |= bit;
                put64(&t.wr_addr_i[2 * k], c.addr);
                ((uint32_t *)&t.wr_len_i)[k] = c.len;
                t.wr_src_off_i = (uint16_t)((t.wr_src_off_i & ~(0xFF << 8 * k)) | c.src << 8 * k);
                // the client's data: rubbish around the bytes that count
                const size_t beats = c.len ? (c.src + c.len + B - 1) / B : 0;
                Feed f = {std::vector<uint8_t>(beats * B), 0};
                for (auto &v : f.bytes)
                    v = (uint8_t)rng.next();
                for (uint32_t i = 0; i < c.len; i++)
                    image[wrap(c.addr + i)] = f.bytes[c.src + i];
                if (beats)
                    feed[k].push_back(f);
            }
            if (!(t.wr_valid_i & bit) && !feed[k].empty() && !starved[k] &&
                rng.percent(stalls.in)) {
                t.wr_valid_i |= bit;
                memcpy(&t.wr_data_i[k * B / 4], &feed[k].front().bytes[feed[k].front().at], B);
            }
            const bool take = !stuck[k] && rng.percent(stalls.out);
            t.rd_ready_i = (uint8_t)((t.rd_ready_i & ~bit) | (take ? bit : 0));
        }
        const bool address_waits = stalls.data_first && data.empty();
        t.awready_i = !address_waits && rng.percent(stalls.aw);
        t.wready_i = rng.percent(stalls.w) && data.size() < 64;
        t.arready_i = rng.percent(stalls.ar);
        if (!b_busy && !writes.empty() && rng.percent(stalls.b)) {
            b_index = stalls.shuffle ? rng.below(writes.size()) : 0;
            for (size_t k = 0; k < b_index; k++) // an id's own responses stay in order
                if (writes[k].id == writes[b_index].id) {
                    b_index = k;
                    break;
                }
            b_busy = bench.cycles >= writes[b_index].due;
            t.bid_i = (uint8_t)writes[b_index].id;
            t.bresp_i = writes[b_index].bad ? 2 : 0;
        }
        t.bvalid_i = b_busy;
        if (!r_busy && reads_left() && rng.percent(stalls.r)) {
            // in the order of the addresses, or id by id as it likes
            const bool other = !reads[r_id ^ 1].empty();
            if (reads[r_id].empty() ||
                (stalls.shuffle ? other && rng.percent(50)
                                : other && reads[r_id ^ 1].front().due < reads[r_id].front().due))
                r_id ^= 1;
            if (!reads[r_id].empty() && bench.cycles >= reads[r_id].front().due) {
                const Burst &r = reads[r_id].front();
                r_busy = true;
                memcpy(&t.rdata_i[0], &memory[wrap(r.addr + (uint64_t)r.done * B)], B);
                t.rid_i = (uint8_t)r_id;
                t.rlast_i = r.done + 1 == r.words;
                t.rresp_i = r.bad ? 2 : 0;
            }
        }
        t.rvalid_i = r_busy;
    }
    static void put64(WData *w, uint64_t v) {
        w[0] = (uint32_t)v;
        w[1] = (uint32_t)(v >> 32);
    }
    void pair() { // bursts whose address and data are both there are written
        while (!addresses.empty() && !data.empty()) {
            Burst a = addresses.front();
            const std::vector<uint8_t> d = data.front();
            addresses.pop_front();
            data.pop_front();
            if ((int)(d.size() / (2 * B)) != a.words)
                wrong("a burst has not AWLEN + 1 beats");
            for (size_t k = 0; k < d.size() / (2 * B); k++)
                for (size_t i = 0; i < B; i++) // low address bits are ignored: lanes are absolute
                    if (d[k * 2 * B + B + i])
                        memory[wrap(a.addr / B * B + k * B + i)] = d[k * 2 * B + i];
            a.due = bench.cycles + stalls.latency;
            writes.push_back(a);
        }
    }
    // What the coming edge will transfer; offers that were taken are withdrawn after it.
    void sample() {
        auto &t = *bench.top;
        done_rd_cmd = done_wr_cmd = done_wr = 0;
        for (int k = 0; k < 2; k++) {
            const unsigned bit = 1u << k;
            if (t.rd_cmd_valid_i & t.rd_cmd_ready_o & bit) {
                if (rd_todo[k].front().len)
                    rd_open[k].push_back(rd_todo[k].front());
                rd_todo[k].pop_front();
                done_rd_cmd |= bit;
            }
            if (t.wr_cmd_valid_i & t.wr_cmd_ready_o & bit) {
                wr_todo[k].pop_front();
                done_wr_cmd |= bit;
            }
            if (t.wr_valid_i & t.wr_ready_o & bit) {
                Feed &f = feed[k].front();
                f.at += B;
                if (f.at == f.bytes.size())
                    feed[k].pop_front();
                done_wr |= bit;
            }
            if (t.rd_valid_o & t.rd_ready_i & bit)
                take_read(k);
        }
        if (t.arvalid_o && t.arready_i) {
            burst_rules(t.araddr_o, t.arlen_o, t.arid_o);
            reads[t.arid_o & 1].push_back({t.araddr_o, t.arlen_o + 1, t.arid_o, 0,
                                           bench.cycles + stalls.latency, rng.percent(stalls.bad)});
            ar_bursts++;
        }
        if (t.rvalid_i && t.rready_o) {
            r_busy = false;
            if (++reads[r_id].front().done == reads[r_id].front().words)
                reads[r_id].pop_front();
        }
        if (t.wvalid_o && t.wready_i) {
            const uint8_t *d = (const uint8_t *)&t.wdata_o[0];
            burst.insert(burst.end(), d, d + B);
            for (int i = 0; i < B; i++)
                burst.push_back(t.wstrb_o >> i & 1);
            w_beats++;
            if (t.wlast_o) {
                data.push_back(burst);
                burst.clear();
            }
        }
        if (t.awvalid_o && t.awready_i) {
            burst_rules(t.awaddr_o, t.awlen_o, t.awid_o);
            addresses.push_back(
                {t.awaddr_o, t.awlen_o + 1, t.awid_o, 0, 0, rng.percent(stalls.bad)});
            aw_bursts++;
        }
        if (t.bvalid_i && t.bready_o) {
            writes.erase(writes.begin() + (long)b_index);
            b_busy = false;
        }
        pair();
        hash = (hash ^
                (t.awaddr_o * 3 + t.araddr_o * 5 + t.wdata_o[0] + t.rd_data_o[1] + t.wvalid_o)) *
               0x100000001B3u;
    }
    void burst_rules(uint64_t addr, int len, int id) {
        if (addr / 4096 != (addr / B * B + (uint64_t)(len + 1) * B - 1) / 4096)
            wrong("a burst touches two pages");
        if (len + 1 > 16 || id > 1)
            wrong("a burst is too long or has a wrong id");
    }
    void take_read(int k) {
        auto &t = *bench.top;
        if (rd_open[k].empty())
            return wrong("read data nobody asked for");
        const Command c = rd_open[k].front();
        const uint8_t *d = (const uint8_t *)&t.rd_data_o[k * B / 4];
        uint64_t keep;
        memcpy(&keep, &t.rd_keep_o[2 * k], 8);
        const size_t n = std::min((size_t)B, (size_t)c.len - rd_at[k]);
        if (keep != (n == 64 ? ~0ull : (1ull << n) - 1))
            wrong("read keep is wrong");
        for (size_t i = 0; i < n; i++)
            if (d[i] != memory[wrap(c.addr + rd_at[k] + i)])
                return wrong("read data are wrong");
        rd_at[k] += n;
        rd_beats[k]++;
        if ((t.rd_last_o >> k & 1) != (rd_at[k] == c.len))
            wrong("read last is wrong");
        if (rd_at[k] == c.len) {
            rd_open[k].pop_front();
            rd_at[k] = 0;
        }
    }
};

// Reads from the lower half, writes to the upper half, so that order between them does not matter;
// each write master has its own quarter.
Command random_read(Rng &rng, uint32_t longest) {
    return {BASE + rng.below(SPACE / 2 - longest), 1 + (uint32_t)rng.below(longest), 0};
}
Command random_write(Rng &rng, uint32_t longest, int k) {
    return {BASE + SPACE / 2 + (uint64_t)k * SPACE / 4 + rng.below(SPACE / 4 - longest),
            1 + (uint32_t)rng.below(longest), (uint8_t)rng.below(B)};
}

} // namespace

TEST_GROUP(Axi){void good(System & s, int limit){const bool ok = s.run(limit);
CHECK(ok);
CHECK_TEXT(s.memory == s.image, "memory differs from what was written");
}
}
;

// Case 24, 30: every channel stalls by itself; ids answered in any order; 1,000 short runs.
TEST(Axi, IndependentStallsOnEveryChannel) {
    for (uint64_t seed = 0; seed < 1000; seed++) {
        Rng rng(run_seed() * 1000 + seed);
        Stalls st;
        unsigned *const rates[] = {&st.aw, &st.w, &st.b, &st.ar, &st.r, &st.out, &st.in, &st.cmd};
        for (unsigned *r : rates)
            *r = rng.percent(30) ? 100 : 5 + (unsigned)rng.below(95);
        st.latency = (unsigned)rng.below(40);
        st.shuffle = rng.percent(60);
        st.data_first = rng.percent(20);
        System s(rng.next(), st);
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 3; c++) {
                const uint32_t longest = rng.percent(20) ? 5000 : 300;
                s.rd_todo[k].push_back(random_read(rng, longest));
                s.wr_todo[k].push_back(random_write(rng, longest, k));
            }
        if (!s.run(60000) || s.memory != s.image) {
            printf("run %llu of seed %llu\n", (unsigned long long)seed,
                   (unsigned long long)run_seed());
            FAIL("wrong result under stalls");
        }
    }
}

// Case 20 with data: start offsets around a page end by the lengths that matter.
TEST(Axi, PageEndsAndLengths) {
    Rng rng(run_seed());
    System s(rng.next(), Stalls{});
    for (uint32_t off = 0; off < 4096; off += 1 + (uint32_t)rng.below(60))
        for (uint32_t len :
             {1u, 63u, 64u, 65u, 127u, 129u, 300u, 4095u, 4096u, 4097u, 8191u, 8193u}) {
            if (len > 300 && rng.percent(75))
                continue;
            const int k = (int)rng.below(2);
            s.rd_todo[k].push_back({BASE + off, len, 0});
            s.wr_todo[k].push_back({BASE + SPACE / 2 + (uint64_t)k * SPACE / 4 + off % 4096, len,
                                    (uint8_t)rng.below(B)});
        }
    good(s, 1000000);
}

TEST(Axi, EveryOffsetPairOfShortCommands) {
    Rng rng(run_seed());
    System s(rng.next(), Stalls{});
    for (uint32_t dst = 0; dst < 64; dst++)
        for (uint32_t src = 0; src < 64; src++) {
            const uint32_t len = 1 + (uint32_t)rng.below(140);
            s.wr_todo[src & 1].push_back(
                {BASE + SPACE / 2 + (src & 1) * SPACE / 4 + 64 * rng.below(64) + dst, len,
                 (uint8_t)src});
            s.rd_todo[src & 1].push_back({BASE + 64 * rng.below(64) + dst, len, 0});
        }
    good(s, 200000);
}

// Case 23: words of 1, 2, 4 and 8 bytes at every byte offset; the memory ignores the low address
// bits.
TEST(Axi, SmallWordsAtEveryByteOffset) {
    Rng rng(run_seed());
    System s(rng.next(), Stalls{});
    for (uint32_t len : {1u, 2u, 4u, 8u})
        for (uint32_t off = 0; off < 64; off++)
            s.wr_todo[0].push_back({BASE + SPACE / 2 + 128 * off + off, len, 0});
    good(s, 20000);
}

TEST(Axi, LengthZeroDoesNothing) {
    System s(run_seed(), Stalls{});
    for (int c = 0; c < 10; c++) {
        s.rd_todo[0].push_back({BASE + (uint64_t)c, c % 3 == 2 ? 10u : 0u, 0});
        s.wr_todo[0].push_back({BASE + SPACE / 2 + (uint64_t)c * 64, c % 3 == 2 ? 10u : 0u, 5});
    }
    good(s, 1000);
    LONGS_EQUAL(3, s.aw_bursts);
    LONGS_EQUAL(3, s.ar_bursts);
}

// One word a cycle, over many small commands and over long ones.
TEST(Axi, FullRate) {
    const uint32_t lengths[] = {64, 128, 256, 1024, 8192};
    for (uint32_t len : lengths)
        for (int k = 0; k < 2; k++) {
            System s(run_seed(), Stalls{});
            const uint32_t n = 64 * 1024 / len;
            for (uint32_t c = 0; c < n; c++) {
                s.rd_todo[k].push_back({BASE + (uint64_t)c * len % (SPACE / 2), len, 0});
                s.wr_todo[k].push_back(
                    {BASE + SPACE / 2 + (uint64_t)k * SPACE / 4 + (uint64_t)c * len % (SPACE / 4),
                     len, 0});
            }
            good(s, 100000);
            LONGS_EQUAL(1024, s.w_beats);
            LONGS_EQUAL(1024, s.rd_beats[k]);
            if (s.bench.cycles > 1024 + 45) {
                printf("commands of %u bytes, master %d: %llu cycles for 1024 words\n", len, k,
                       (unsigned long long)s.bench.cycles);
                FAIL("not a word a cycle");
            }
        }
}

// The latencies of the documentation, one command in an idle system.
TEST(Axi, Latencies) {
    for (int k = 0; k < 2; k++) {
        System s(run_seed(), Stalls{});
        s.rd_todo[k].push_back({BASE, 64, 0});
        s.wr_todo[k].push_back({BASE + SPACE / 2, 64, 0});
        auto &t = *s.bench.top;
        uint64_t ar = 0, r = 0, out = 0, aw = 0, w = 0;
        const uint64_t start = s.bench.cycles;
        for (int c = 0; c < 20; c++) {
            s.cycle();
            // outputs after edge c + 1, hence seen by edge c + 2
            const uint64_t now = s.bench.cycles - start;
            ar = !ar && t.arvalid_o ? now : ar;
            out = !out && t.rd_valid_o ? now : out;
            aw = !aw && t.awvalid_o ? now : aw;
            w = !w && t.wvalid_o ? now : w;
            r = !r && t.rvalid_i ? now - 1 : r;
        }
        LONGS_EQUAL(1, ar);
        LONGS_EQUAL(2, out - r);
        LONGS_EQUAL(k == 0 ? 3 : 6, aw); // one of them is the arbiter's register
        LONGS_EQUAL(k == 0 ? 3 : 6, w);
    }
}

// Two masters share the port: together a word a cycle, neither below its half by much.
TEST(Axi, SharedPortIsFullAndFair) {
    System s(run_seed(), Stalls{});
    for (int k = 0; k < 2; k++)
        for (uint32_t c = 0; c < 64; c++) {
            s.rd_todo[k].push_back({BASE + c * 512, 512, 0});
            s.wr_todo[k].push_back(
                {BASE + SPACE / 2 + (uint64_t)k * SPACE / 4 + c % 32 * 512, 512, 0});
        }
    while (s.bench.cycles < 600)
        s.cycle();
    const uint64_t early = s.rd_beats[0];
    CHECK(early > 200 && early < 350);
    good(s, 100000);
    CHECK(s.bench.cycles < 1024 + 60);
}

// Case 29: a read client that never takes its data must not hold up the other one.
TEST(Axi, StuckClientDoesNotHoldThePort) {
    System s(run_seed(), Stalls{});
    s.stuck[0] = true;
    for (uint32_t c = 0; c < 40; c++)
        s.rd_todo[0].push_back({BASE + c * 512, 512, 0});
    for (uint32_t c = 0; c < 128; c++)
        s.rd_todo[1].push_back({BASE + c % 64 * 512, 512, 0});
    const bool ok = s.run(3000);
    CHECK(ok);
    LONGS_EQUAL(1024, s.rd_beats[1]);
    CHECK(s.bench.cycles < 1024 + 64 + 100); // 64 words of the other are read before it is stuck
}

TEST(Axi, StarvedWriterDoesNotHoldThePort) {
    System s(run_seed(), Stalls{});
    s.starved[1] = true; // the master that stores a burst first
    for (uint32_t c = 0; c < 4; c++)
        s.wr_todo[1].push_back({BASE + SPACE * 3 / 4 + c * 512, 512, 0});
    for (uint32_t c = 0; c < 128; c++)
        s.wr_todo[0].push_back({BASE + SPACE / 2 + c % 32 * 512, 512, 0});
    const bool ok = s.run(3000);
    CHECK(ok);
    LONGS_EQUAL(1024, s.w_beats);
    CHECK(s.bench.cycles < 1024 + 60);
}

TEST(Axi, ErrorResponsesAreKept) {
    Stalls st;
    st.bad = 100;
    System s(run_seed(), st);
    auto &t = *s.bench.top;
    LONGS_EQUAL(0, t.rd_err_o | t.wr_err_o);
    s.rd_todo[1].push_back({BASE, 100, 0});
    s.wr_todo[0].push_back({BASE + SPACE / 2, 100, 0});
    good(s, 1000);
    LONGS_EQUAL(2, t.rd_err_o);
    LONGS_EQUAL(1, t.wr_err_o);
    s.stalls.bad = 0;
    s.rd_todo[1].push_back({BASE, 100, 0});
    s.wr_todo[0].push_back({BASE + SPACE / 2, 100, 0});
    good(s, 1000);
    LONGS_EQUAL(2, t.rd_err_o);
    LONGS_EQUAL(1, t.wr_err_o);
    t.clear_i = 3;
    s.cycle();
    LONGS_EQUAL(0, t.rd_err_o | t.wr_err_o);
}

// idle_o falls with the command and rises only after the last response.
TEST(Axi, IdleMeansEverythingIsAnswered) {
    Stalls st;
    st.latency = 50;
    System s(run_seed(), st);
    s.wr_todo[0].push_back({BASE + SPACE / 2, 5000, 3});
    s.cycle();
    int cycles = 0;
    while (s.bench.top->wr_idle_o != 3 && cycles++ < 1000)
        s.cycle();
    CHECK(cycles > 78 + 50);
    CHECK(s.memory == s.image);
}

TEST(Axi, ResetInMidTransferLeavesNothingBehind) {
    Rng rng(run_seed());
    for (int round = 0; round < 30; round++) {
        Stalls st;
        st.r = st.w = st.aw = 60;
        auto s = std::make_unique<System>(rng.next(), st);
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 5; c++) {
                s->rd_todo[k].push_back(random_read(rng, 2000));
                s->wr_todo[k].push_back(random_write(rng, 2000, k));
            }
        for (uint64_t k = rng.below(150); k > 0; k--)
            s->cycle();
        auto &t = *s->bench.top;
        t.rd_cmd_valid_i = t.wr_cmd_valid_i = t.wr_valid_i = t.rvalid_i = t.bvalid_i = 0;
        s->bench.reset();
        s->bench.fired();
        LONGS_EQUAL(0, t.awvalid_o | t.wvalid_o | t.arvalid_o | t.rd_valid_o);
        LONGS_EQUAL(3, t.rd_idle_o & t.wr_idle_o);
        LONGS_EQUAL(0, t.rd_err_o | t.wr_err_o);
        s->forget();
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 3; c++) {
                s->rd_todo[k].push_back(random_read(rng, 2000));
                s->wr_todo[k].push_back(random_write(rng, 2000, k));
            }
        good(*s, 20000);
    }
}

// Case 60: noise in the registers must not show.
TEST(Axi, SameResultForEveryNoise) {
    uint64_t first = 0;
    for (uint64_t noise = 0; noise < 20; noise++) {
        System s(run_seed() + 77 * noise, Stalls{});
        s.rng = Rng(5);
        for (size_t k = 0; k < SPACE; k++)
            s.memory[k] = (uint8_t)(k * 7 + k / 256);
        s.image = s.memory;
        Rng rng(9);
        for (int k = 0; k < 2; k++)
            for (int c = 0; c < 6; c++) {
                s.rd_todo[k].push_back(random_read(rng, 700));
                s.wr_todo[k].push_back(random_write(rng, 700, k));
            }
        good(s, 10000);
        uint64_t h = s.bench.cycles;
        for (uint8_t v : s.memory)
            h = (h ^ v) * 0x100000001B3u;
        if (noise == 0)
            first = h;
        CHECK(h == first);
    }
}

// Case 62: tracing changes nothing, and the trace is a well-formed FST file.
TEST(Axi, TraceOnAndOffAgree) {
    uint64_t hashes[2];
    char path[] = "/tmp/mr_axi_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    for (int traced = 0; traced < 2; traced++) {
        System s(run_seed(), Stalls{});
        if (traced)
            s.bench.trace(path);
        Rng rng(3);
        for (int c = 0; c < 20; c++) {
            s.rd_todo[c & 1].push_back(random_read(rng, 1000));
            s.wr_todo[c & 1].push_back(random_write(rng, 1000, c & 1));
        }
        good(s, 10000);
        hashes[traced] = s.hash;
    }
    CHECK(hashes[0] == hashes[1]);
    FILE *f = fopen(path, "rb");
    CHECK(f != nullptr);
    uint8_t head[9] = {1};
    LONGS_EQUAL(9, fread(head, 1, 9, f)); // block type 0 (header) and its length, 329
    LONGS_EQUAL(0, head[0]);
    LONGS_EQUAL(329, head[7] << 8 | head[8]);
    fseek(f, 0, SEEK_END);
    CHECK(ftell(f) > 5000);
    fclose(f);
    remove(path);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
