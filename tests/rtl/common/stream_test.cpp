// Stream cells: what goes in comes out, in order, whatever the two sides do; rates, frames,
// fairness, and that no register is left without a reset that matters.
#include "bench.hpp"
#include "Vstream_tb.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace {

const int CELLS = 10;
const int IN[CELLS] = {8, 8, 8, 8, 8, 2, 8, 1, 8, 4};
const int OUT[CELLS] = {8, 8, 8, 8, 8, 8, 2, 8, 1, 8};

struct Byte {
    uint8_t value;
    bool last;
};

// One cell's two ends: frames of random bytes in, bytes compared on the way out.
struct Lane {
    std::deque<Byte> todo, expected;
    bool offered = false, done = false;
    uint64_t data = 0;
    uint8_t keep = 0;
    bool last = false;
    int in = 8, out = 8;
    size_t beats_in = 0, beats_out = 0;

    void frame(Rng &rng, size_t length) {
        for (size_t k = 0; k < length; k++) {
            const Byte b = {(uint8_t)rng.next(), k + 1 == length};
            todo.push_back(b);
            expected.push_back(b);
        }
    }
    void offer() {
        data = 0x1122334455667788u; // lanes outside keep hold rubbish
        keep = 0;
        last = false;
        for (int k = 0; k < in && !last && !todo.empty(); k++) {
            data = (data & ~(0xFFull << (8 * k))) | (uint64_t)todo.front().value << (8 * k);
            keep |= (uint8_t)(1 << k);
            last = todo.front().last;
            todo.pop_front();
        }
        offered = true;
    }
    bool accept(uint64_t got, uint8_t got_keep, bool got_last) {
        int bytes = 0;
        while (bytes < out && (got_keep >> bytes & 1))
            bytes++;
        if (bytes == 0 || (got_keep >> bytes) != 0 || (!got_last && bytes != out))
            return false;
        for (int k = 0; k < bytes; k++) {
            if (expected.empty())
                return false;
            const Byte want = expected.front();
            expected.pop_front();
            if (want.value != (uint8_t)(got >> (8 * k)) ||
                want.last != (got_last && k + 1 == bytes))
                return false;
        }
        beats_out++;
        return true;
    }
};

struct StreamBench : Bench<Vstream_tb> {
    explicit StreamBench(uint64_t noise) : Bench(noise) {
        // inputs begin with noise like everything else
        top->valid_i = top->ready_i = top->last_i = 0;
        memset(&top->keep_i[0], 0, 12);
        memset(&top->data_i[0], 0, 80);
        top->r_last_i = 0;
        top->a_cmd_valid_i = top->a_valid_i = top->a_ready_i = 0;
        top->r_valid_i = 0;
        top->r_ready_i = 0;
        top->s_cmd_valid_i = top->s_ready_i = 0;
        reset();
    }
};

uint64_t get64(const WData *w, int k) { return (uint64_t)w[2 * k + 1] << 32 | w[2 * k]; }
void set64(WData *w, int k, uint64_t v) {
    w[2 * k] = (uint32_t)v;
    w[2 * k + 1] = (uint32_t)(v >> 32);
}

} // namespace

TEST_GROUP(Stream) {
    Lane lanes[CELLS];

    void setup() override {
        for (int k = 0; k < CELLS; k++) {
            lanes[k].in = IN[k];
            lanes[k].out = OUT[k];
        }
    }
    // Cycles until all lanes are empty. Every cycle ready is flipped before the edge: valid must
    // not move.
    int run(StreamBench & b, Rng & rng, unsigned give, unsigned take, int limit) {
        auto &t = *b.top;
        for (int cycle = 0; cycle < limit; cycle++) {
            bool left = false;
            uint16_t valid = 0, ready = 0;
            uint8_t keeps[12] = {0};
            for (int k = 0; k < CELLS; k++) {
                Lane &l = lanes[k];
                if (!l.offered && !l.todo.empty() && rng.percent(give))
                    l.offer();
                valid |= (uint16_t)(l.offered << k);
                ready |= (uint16_t)((rng.percent(take) ? 1 : 0) << k);
                set64(t.data_i, k, l.data);
                keeps[k] = l.keep;
                t.last_i = (uint16_t)((t.last_i & ~(1 << k)) | l.last << k);
                left |= !l.expected.empty();
            }
            if (!left)
                return cycle;
            memcpy(&t.keep_i[0], keeps, sizeof keeps);
            t.valid_i = valid;
            t.ready_i = (uint16_t)~ready & 0x3FF;
            b.settle();
            const uint16_t before = t.valid_o;
            t.ready_i = ready;
            b.settle();
            LONGS_EQUAL_TEXT(before, t.valid_o, "valid follows ready within a cycle");
            const uint16_t go_in = t.valid_i & t.ready_o, go_out = t.valid_o & t.ready_i;
            for (int k = 0; k < CELLS; k++) {
                if (go_in >> k & 1) {
                    lanes[k].offered = false;
                    lanes[k].beats_in++;
                }
                if (go_out >> k & 1) {
                    const uint8_t keep = (uint8_t)(t.keep_o[k / 4] >> (8 * (k % 4)));
                    if (!lanes[k].accept(get64(t.data_o, k), keep, t.last_o >> k & 1)) {
                        printf("cell %d gives a wrong beat in cycle %d\n", k, cycle);
                        FAIL("wrong beat");
                    }
                }
            }
            b.tick();
            CHECK_TEXT(!b.fired(), "an assertion of the design fired");
        }
        FAIL("cells do not empty");
        return limit;
    }
};

TEST(Stream, FramesOfEveryLengthUnderEveryPressure) {
    Rng rng(run_seed());
    const unsigned rates[][2] = {{100, 100}, {100, 30}, {30, 100}, {50, 50}, {95, 10}, {10, 95}};
    for (auto &r : rates) {
        StreamBench b(rng.next());
        for (int k = 0; k < CELLS; k++) {
            for (size_t length = 1; length <= 40; length++)
                lanes[k].frame(rng, length);
            for (int f = 0; f < 60; f++)
                lanes[k].frame(rng, 1 + rng.below(20));
        }
        run(b, rng, r[0], r[1], 100000);
    }
}

TEST(Stream, OneBeatACycle) {
    Rng rng(run_seed());
    for (int cell = 0; cell < CELLS; cell++) {
        if (cell == 1)
            continue; // one entry: a transfer every other cycle, checked below
        StreamBench b(rng.next());
        lanes[cell].frame(rng, 4000);
        const int cycles = run(b, rng, 100, 100, 100000);
        const int narrow = std::min(IN[cell], OUT[cell]);
        CHECK(cycles <= 4000 / narrow + 3);
    }
    StreamBench b(rng.next());
    lanes[1].frame(rng, 800);
    CHECK(run(b, rng, 100, 100, 1000) <= 2 * 100 + 3);
}

TEST(Stream, ResetInMidTransferLeavesNothingBehind) {
    Rng rng(run_seed());
    StreamBench b(rng.next());
    for (int round = 0; round < 20; round++) {
        auto &t = *b.top;
        for (int k = 0; k < 12; k++) { // beats that never leave
            t.valid_i = 0x3FF;
            t.ready_i = (uint16_t)rng.below(0x400) & (uint16_t)rng.below(0x400);
            memset(&t.keep_i[0], 0xFF, 12);
            t.last_i = 0;
            b.tick();
            if (k == (int)rng.below(12))
                break;
        }
        t.valid_i = 0;
        b.reset();
        b.fired();
        b.settle();
        LONGS_EQUAL(0, t.valid_o);
        for (int k = 0; k < CELLS; k++)
            lanes[k].frame(rng, 1 + rng.below(50));
        run(b, rng, 70, 70, 10000);
    }
}

TEST(Stream, FifoCountsItsEntries) {
    StreamBench b(run_seed());
    auto &t = *b.top;
    t.last_i = 0x3FF;
    memset(&t.keep_i[0], 0xFF, 12);
    t.valid_i = 1 << 3;
    for (int k = 0; k < 16; k++) {
        b.settle();
        LONGS_EQUAL(k, t.fill_o);
        CHECK(t.ready_o >> 3 & 1);
        b.tick();
    }
    t.valid_i = 0;
    b.settle();
    CHECK(!(t.ready_o >> 3 & 1));
    t.ready_i = 1 << 3;
    for (int k = 0; k < 20; k++) {
        b.settle();
        LONGS_EQUAL(std::max(16 - k, 0), t.fill_o);
        b.tick();
    }
    CHECK(!b.fired());
}

TEST_GROUP(Align){};

TEST(Align, EveryOffsetPairAndLength) {
    Rng rng(run_seed());
    StreamBench b(rng.next());
    auto &t = *b.top;
    struct Cmd {
        int src, dst, len;
    };
    std::deque<Cmd> todo, reading, writing;
    for (int pass = 0; pass < 2; pass++)
        for (int src = 0; src < 8; src++)
            for (int dst = 0; dst < 8; dst++)
                for (int len = 1; len <= 40; len++)
                    todo.push_back({src, dst, len});
    for (size_t k = todo.size() / 2; k > 0; k--) // the second pass in random order
        std::swap(todo[todo.size() / 2 + k - 1], todo[todo.size() / 2 + rng.below(k)]);
    std::deque<uint8_t> bytes;  // useful bytes fed and not yet seen
    int src_at = 0, dst_at = 0; // byte positions within the commands being fed and checked
    bool cmd = false, in = false;
    uint64_t data = 0;
    for (int cycle = 0; !todo.empty() || !writing.empty(); cycle++) {
        CHECK(cycle < 200000);
        const bool fast = cycle % 4000 < 2000;
        cmd = cmd || (!todo.empty() && (fast || rng.percent(50)));
        t.a_cmd_valid_i = cmd;
        if (cmd) {
            t.a_src_off_i = (uint8_t)todo.front().src;
            t.a_dst_off_i = (uint8_t)todo.front().dst;
            t.a_len_i = (uint16_t)todo.front().len;
        }
        if (!in && !reading.empty() && (fast || rng.percent(60))) {
            data = rng.next();
            in = true;
        }
        t.a_valid_i = in;
        t.a_data_i = in ? data : rng.next();
        t.a_ready_i = 0;
        b.settle();
        const bool before = t.a_valid_o;
        t.a_ready_i = fast || rng.percent(60);
        b.settle();
        CHECK_EQUAL(before, (bool)t.a_valid_o);
        const bool cmd_go = cmd && t.a_cmd_ready_o, in_go = in && t.a_ready_o;
        if (t.a_valid_o && t.a_ready_i) {
            CHECK(!writing.empty());
            const Cmd c = writing.front();
            for (int k = 0; k < 8; k++, dst_at++) {
                const bool useful = dst_at >= c.dst && dst_at < c.dst + c.len;
                CHECK_EQUAL(useful, (bool)(t.a_strb_o >> k & 1));
                if (useful) {
                    CHECK(!bytes.empty());
                    BYTES_EQUAL(bytes.front(), (uint8_t)(t.a_data_o >> (8 * k)));
                    bytes.pop_front();
                }
            }
            CHECK_EQUAL(dst_at >= c.dst + c.len, (bool)t.a_last_o);
            if (t.a_last_o) {
                writing.pop_front();
                dst_at = 0;
            }
        }
        if (in_go) {
            const Cmd c = reading.front();
            for (int k = 0; k < 8; k++, src_at++)
                if (src_at >= c.src && src_at < c.src + c.len)
                    bytes.push_back((uint8_t)(data >> (8 * k)));
            if (src_at >= c.src + c.len) {
                reading.pop_front();
                src_at = 0;
            }
            in = false;
        }
        if (cmd_go) {
            reading.push_back(todo.front());
            writing.push_back(todo.front());
            todo.pop_front();
            cmd = false;
        }
        b.tick();
        CHECK(!b.fired());
    }
    CHECK(bytes.empty());
}

TEST_GROUP(Arbiter){};

TEST(Arbiter, FramesStayWholeAndEveryoneIsServed) {
    Rng rng(run_seed());
    StreamBench b(rng.next());
    auto &t = *b.top;
    uint32_t sent[5] = {0}, seen[5] = {0}, left[5] = {0};
    uint64_t waited[5] = {0};
    int owner = -1;
    uint8_t valid = 0;
    for (int cycle = 0; cycle < 40000; cycle++) {
        for (int k = 0; k < 5; k++) {
            if (!(valid >> k & 1) && (k == 0 || rng.percent(60))) { // stream 0 never pauses
                if (left[k] == 0)
                    left[k] = 1 + (uint32_t)rng.below(6);
                valid |= (uint8_t)(1 << k);
            }
            t.r_data_i[k] = (uint32_t)k << 28 | sent[k];
            t.r_last_i = (uint8_t)((t.r_last_i & ~(1 << k)) | (left[k] == 1) << k);
        }
        t.r_valid_i = valid;
        t.r_ready_i = 0;
        b.settle();
        const bool before = t.r_valid_o;
        t.r_ready_i = rng.percent(70);
        b.settle();
        CHECK_EQUAL(before, (bool)t.r_valid_o);
        CHECK_EQUAL(owner < 0 ? valid != 0 : valid >> owner & 1, (bool)t.r_valid_o);
        if (t.r_valid_o && t.r_ready_i) {
            const int k = (int)(t.r_data_o >> 28);
            LONGS_EQUAL(k, t.r_index_o);
            LONGS_EQUAL(1 << k, t.r_ready_o);
            if (owner >= 0)
                LONGS_EQUAL(owner, k);
            LONGS_EQUAL(seen[k], t.r_data_o & 0xFFFFFFF);
            seen[k]++;
            sent[k]++;
            left[k]--;
            CHECK_EQUAL(left[k] == 0, (bool)t.r_last_o);
            owner = t.r_last_o ? -1 : k;
            valid &= (uint8_t) ~(1 << k);
            if (t.r_last_o)
                for (int j = 0; j < 5; j++)
                    waited[j] = j == k ? 0 : waited[j] + (t.r_valid_i >> j & 1);
            for (int j = 0; j < 5; j++)
                CHECK_TEXT(waited[j] <= 5, "a stream waits for more than one round");
        } else {
            LONGS_EQUAL(0, t.r_ready_o);
        }
        b.tick();
        CHECK(!b.fired());
    }
    for (int k = 0; k < 5; k++)
        CHECK(seen[k] > 1000);
}

TEST_GROUP(Split){};

// Case 20: every start offset in a page by every length that matters.
TEST(Split, NoBurstTouchesTwoPages) {
    Rng rng(run_seed());
    StreamBench b(rng.next());
    auto &t = *b.top;
    std::vector<uint32_t> lengths;
    for (uint32_t k = 1; k <= 300; k++)
        lengths.push_back(k);
    for (uint32_t k : {4095u, 4096u, 4097u, 8191u, 8192u, 8193u})
        lengths.push_back(k);
    uint64_t bursts = 0;
    for (uint64_t offset = 0; offset < 4096; offset++)
        for (uint32_t length : lengths) {
            const uint64_t addr = 0x0000000ABCDE0000u + (offset & 1 ? 0xFFFFF000u : 0) + offset;
            t.s_cmd_valid_i = 1;
            t.s_addr_i = addr;
            t.s_len_i = length;
            t.s_ready_i = 0;
            b.settle();
            if (!t.s_cmd_ready_o)
                FAIL("splitter is not ready for a command");
            b.tick();
            t.s_cmd_valid_i = 0;
            t.s_ready_i = 1;
            uint64_t at = addr / 64 * 64;
            const uint64_t end = (addr + length + 63) / 64 * 64;
            while (t.s_valid_o) {
                const uint64_t words = (uint64_t)t.s_len_o + 1, last = t.s_addr_o + 64 * words - 1;
                if (t.s_addr_o != at || words > 16 || t.s_addr_o / 4096 != last / 4096 ||
                    last >= end) {
                    printf("addr %llx length %u: burst %llx of %llu words\n",
                           (unsigned long long)addr, length, (unsigned long long)t.s_addr_o,
                           (unsigned long long)words);
                    FAIL("wrong burst");
                }
                at += 64 * words;
                bursts++;
                b.tick();
            }
            if (at != end)
                FAIL("bursts do not cover the request");
        }
    CHECK(bursts > 4096 * lengths.size());
}

TEST(Split, LengthZeroGivesNothing) {
    StreamBench b(run_seed());
    auto &t = *b.top;
    for (uint64_t offset = 0; offset < 64; offset++) {
        t.s_cmd_valid_i = 1;
        t.s_addr_i = offset;
        t.s_len_i = 0;
        b.tick();
        t.s_cmd_valid_i = 0;
        b.settle();
        CHECK(!t.s_valid_o && !t.s_busy_o && t.s_cmd_ready_o);
    }
}

// Case 60: registers start with noise that depends on the seed; after a reset nothing of it may
// show.
TEST_GROUP(Reset){static uint64_t mix(uint64_t hash, uint64_t v){return (hash ^ v) * 0x100000001B3u;
}
// hashes of all outputs that mean something, and of the planted counter
static void play(uint64_t noise, uint64_t &good, uint64_t &planted) {
    StreamBench b(noise);
    Rng rng(7);
    auto &t = *b.top;
    good = planted = 0xCBF29CE484222325u;
    memset(&t.keep_i[0], 0xFF, 12);
    t.a_ready_i = t.s_ready_i = 1;
    uint16_t taken = 0x3FF;
    bool a_cmd = true, a_in = true, s_cmd = true;
    for (int k = 0; k < 300; k++) {
        // an offer stands until it is taken, then the next one is drawn
        for (int c = 0; c < CELLS; c++)
            if (!(t.valid_i >> c & 1) || (taken >> c & 1)) {
                t.valid_i = (uint16_t)((t.valid_i & ~(1 << c)) | rng.below(2) << c);
                set64(t.data_i, c, rng.next());
            }
        t.ready_i = (uint16_t)rng.below(0x400);
        if (a_cmd) {
            t.a_cmd_valid_i = 1;
            t.a_src_off_i = (uint8_t)rng.below(8);
            t.a_dst_off_i = (uint8_t)rng.below(8);
            t.a_len_i = (uint16_t)(1 + rng.below(40));
        }
        if (a_in) {
            t.a_valid_i = 1;
            t.a_data_i = rng.next();
        }
        if (s_cmd) {
            t.s_cmd_valid_i = 1;
            t.s_addr_i = rng.next();
            t.s_len_i = (uint32_t)rng.below(10000);
        }
        b.settle();
        good = mix(good, t.valid_o);
        good = mix(good, t.ready_o);
        good = mix(good, t.fill_o);
        for (int c = 0; c < CELLS; c++)
            if (t.valid_o >> c & 1)
                good = mix(good, get64(t.data_o, c));
        good = mix(good, t.a_valid_o ? t.a_data_o ^ t.a_strb_o : 0);
        good = mix(good, t.s_valid_o ? t.s_addr_o + t.s_len_o : 0);
        good = mix(good, t.sound_o);
        planted = mix(planted, t.planted_o);
        taken = t.valid_i & t.ready_o;
        a_cmd = t.a_cmd_ready_o;
        a_in = t.a_ready_o;
        s_cmd = t.s_cmd_ready_o;
        b.tick();
    }
    CHECK(!b.fired());
}
}
;

TEST(Reset, OutputsAreTheSameForEveryNoiseAndThePlantedBugIsSeen) {
    uint64_t good0, planted0, differ = 0;
    play(run_seed(), good0, planted0);
    for (uint64_t k = 1; k < 20; k++) {
        uint64_t good, planted;
        play(run_seed() + 1000 * k, good, planted);
        CHECK(good == good0);
        differ += planted != planted0;
    }
    CHECK_TEXT(differ >= 18, "a register without reset does not show: the noise is off");
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
