// Frame buffers and crossbar: five readers see what was written, in the order of their commands,
// whatever the others do; buffers come back when the last of their readers has read them; rates,
// and a reader that stalls.
#include "frames.hpp"

#include "Vbuf_tb.h"

#include <algorithm>
#include <deque>
#include <map>

namespace {

const int READERS = 5;

struct Line {
    uint8_t byte[64];
};

struct Command {
    unsigned mem, buf, first, beats;
    bool rel;
    std::shared_ptr<std::vector<Line>> lines = nullptr; // a buffer may be used again before its
                                                        // last beats are looked at
};

struct BufBench : Bench<Vbuf_tb> {
    explicit BufBench(uint64_t noise) : Bench(noise), rng(noise + 5) {
        top->alloc_take_i = top->wr_en_i = 0;
        top->wr_mem_i = 0;
        top->wr_buf_i = 0;
        top->wr_beat_i = 0;
        top->drop_valid_i = top->ref_valid_i = 0;
        top->drop_buf_i = top->ref_buf_i = 0;
        top->ref_count_i = 0;
        top->cmd_valid_i = top->cmd_rel_i = top->ready_i = 0;
        top->cmd_mem_i = 0;
        top->cmd_buf_i = 0;
        top->cmd_beat_i = top->cmd_beats_i = 0;
        reset();
    }
    Rng rng;
    std::deque<Command> todo[READERS];
    unsigned hesitate[READERS] = {}; // percent
    unsigned stall[READERS] = {};
    uint64_t beats[READERS] = {}, first_at[READERS] = {};
    bool flip = false;

    unsigned take(int mem) {
        settle();
        CHECK(top->alloc_valid_o >> mem & 1);
        const unsigned id = (unsigned)(top->alloc_id_o >> 10 * mem) & 1023;
        top->alloc_take_i = (uint8_t)(1 << mem);
        cycle();
        top->alloc_take_i = 0;
        return id;
    }
    void fill(unsigned mem, unsigned buf, unsigned count) {
        content[mem << 10 | buf] = std::make_shared<std::vector<Line>>();
        auto &lines = *content[mem << 10 | buf];
        for (unsigned b = 0; b < count; b++) {
            Line l;
            const Bytes r = random_bytes(rng, 64);
            memcpy(l.byte, r.data(), 64);
            lines.push_back(l);
            top->wr_en_i = 1;
            top->wr_mem_i = mem;
            top->wr_buf_i = buf;
            top->wr_beat_i = b;
            memcpy(&top->wr_data_i[0], l.byte, 64);
            cycle();
            top->wr_en_i = 0;
        }
    }
    void readers(unsigned mem, unsigned buf, unsigned count) {
        top->ref_valid_i = (uint8_t)(1 << mem);
        top->ref_buf_i = buf << 10 * mem;
        top->ref_count_i = (uint16_t)(count << 4 * mem);
        cycle();
        top->ref_valid_i = 0;
    }
    void cycle() {
        for (int c = 0; c < READERS; c++) {
            if (!offered[c] && !todo[c].empty() && !rng.percent(hesitate[c])) {
                const Command &x = todo[c].front();
                offered[c] = true;
                put(top->cmd_mem_i, c, 2, x.mem);
                put64(top->cmd_buf_i, c, 10, x.buf);
                put64(top->cmd_beat_i, c, 8, x.first);
                put64(top->cmd_beats_i, c, 8, x.beats);
                put(top->cmd_rel_i, c, 1, x.rel);
            }
            put(top->cmd_valid_i, c, 1, offered[c]);
            put(top->ready_i, c, 1, !rng.percent(stall[c]));
        }
        settle();
        if (flip) { // valid must not follow ready within the cycle
            const unsigned valid = top->valid_o, ready = top->ready_i;
            top->ready_i = ~ready & 31;
            settle();
            LONGS_EQUAL(valid, top->valid_o);
            top->ready_i = (uint8_t)ready;
            settle();
        }
        const unsigned got = top->valid_o & top->ready_i,
                       taken = top->cmd_valid_i & top->cmd_ready_o;
        for (int c = 0; c < READERS; c++) {
            if (got >> c & 1)
                check_beat(c);
            if (taken >> c & 1) {
                expected[c].push_back(todo[c].front());
                const Command &x = todo[c].front();
                expected[c].back().lines = content[x.mem << 10 | x.buf];
                if (first_at[c] == 0)
                    first_at[c] = cycles;
                todo[c].pop_front();
                offered[c] = false;
            }
        }
        tick();
    }
    bool busy() const {
        for (int c = 0; c < READERS; c++)
            if (!todo[c].empty() || !expected[c].empty())
                return true;
        return false;
    }
    void run() {
        for (size_t k = 0; busy(); k++) {
            CHECK_TEXT(k < 1000000, "the crossbar hangs");
            cycle();
        }
        cycle();
        cycle();
        CHECK_FALSE(fired());
    }
    unsigned free(int mem) { return (unsigned)(top->free_o >> 11 * mem) & 2047; }

    std::map<unsigned, std::shared_ptr<std::vector<Line>>> content;
    uint64_t delay = 0;

private:
    std::deque<Command> expected[READERS];
    unsigned at[READERS] = {};
    bool offered[READERS] = {};

    template <class T>
    static void put(T &word, int index, int width, uint64_t value) {
        put64(word, index, width, value);
    }
    template <class T>
    static void put64(T &word, int index, int width, uint64_t value) {
        const uint64_t mask = ((1ull << width) - 1) << index * width;
        word = (T)((word & ~mask) | (value << index * width & mask));
    }
    void check_beat(int c) {
        CHECK_TEXT(!expected[c].empty(), "a beat that nobody asked for");
        const Command &x = expected[c].front();
        const Line &want = x.lines->at(x.first + at[c]);
        MEMCMP_EQUAL(want.byte, &top->data_o[c * 16], 64);
        const bool last = ++at[c] == x.beats;
        LONGS_EQUAL(last, top->last_o >> c & 1);
        if (beats[c]++ == 0)
            delay = cycles - first_at[c];
        if (last) {
            expected[c].pop_front();
            at[c] = 0;
        }
    }
};

} // namespace

TEST_GROUP(buf){};

TEST(buf, readers_get_what_was_written) {
    BufBench b(run_seed());
    b.flip = true;
    for (int round = 0; round < 40; round++) {
        for (int c = 0; c < READERS; c++) {
            b.hesitate[c] = (unsigned)b.rng.below(3) * 40;
            b.stall[c] = (unsigned)b.rng.below(3) * 35;
        }
        for (int k = 0; k < 25; k++) {
            const unsigned mem = (unsigned)b.rng.below(4);
            const unsigned count = 1 + (unsigned)b.rng.below(b.rng.percent(10) ? 144 : 6);
            const unsigned buf = mem == 3 ? (unsigned)(round * 25 + k) % 64 : b.take((int)mem);
            b.fill(mem, buf, count);
            const unsigned readers = (unsigned)b.rng.below(5);
            if (mem < 3)
                b.readers(mem, buf, readers);
            for (unsigned r = 0; r < readers; r++) {
                const unsigned first = (unsigned)b.rng.below(count);
                const unsigned beats = 1 + (unsigned)b.rng.below(count - first);
                const int c = (int)b.rng.below(READERS);
                if (b.rng.percent(20)) // a look that releases nothing, before the one that does
                    b.todo[c].push_back({mem, buf, 0, 1, false});
                b.todo[c].push_back({mem, buf, first, beats, true});
            }
        }
        b.run();
        for (int m = 0; m < 3; m++)
            LONGS_EQUAL(40, b.free(m));
    }
}

TEST(buf, a_full_memory_gives_every_buffer_once) {
    BufBench b(run_seed() + 1);
    for (int round = 0; round < 6; round++) {
        std::vector<unsigned> ids;
        for (int k = 0; k < 40; k++)
            ids.push_back(b.take(1));
        b.settle();
        CHECK_FALSE(b.top->alloc_valid_o >> 1 & 1);
        LONGS_EQUAL(0, b.free(1));
        std::vector<unsigned> sorted = ids;
        std::sort(sorted.begin(), sorted.end());
        for (unsigned k = 0; k < 40; k++)
            LONGS_EQUAL(k, sorted[k]);
        for (size_t k = ids.size(); k > 1; k--)
            std::swap(ids[k - 1], ids[b.rng.below(k)]);
        for (size_t k = 0; k < ids.size(); k++) { // by the three ways back
            if (k % 3 == 0) {
                b.top->drop_valid_i = 2;
                b.top->drop_buf_i = ids[k] << 10;
                b.cycle();
                b.top->drop_valid_i = 0;
            } else if (k % 3 == 1) {
                b.readers(1, ids[k], 0);
            } else {
                b.fill(1, ids[k], 1);
                b.readers(1, ids[k], 1);
                b.todo[k % 5].push_back({1, ids[k], 0, 1, true});
            }
        }
        b.run();
        LONGS_EQUAL(40, b.free(1));
    }
}

// Commands of one beat and of many, one reader alone: a beat every cycle, the first after three.
TEST(buf, rates_alone_and_together) {
    BufBench b(run_seed() + 2);
    for (unsigned mem = 0; mem < 4; mem++) {
        const unsigned buf = mem == 3 ? 7 : b.take((int)mem);
        b.fill(mem, buf, 144);
    }
    for (unsigned size : {1u, 2u, 3u, 144u}) {
        for (int k = 0; k < 50; k++)
            b.todo[0].push_back({3, 7, (unsigned)b.rng.below(145 - size), size, false});
        b.beats[0] = b.first_at[0] = 0;
        const uint64_t start = b.cycles;
        b.run();
        LONGS_EQUAL(50 * size + 3, b.cycles - start - 2);
        LONGS_EQUAL(3, b.delay);
    }
    // five readers, one on each memory but two on memory 3: these two share it evenly
    for (int k = 0; k < 100; k++)
        for (int c = 0; c < READERS; c++) {
            const unsigned mem = c < 3 ? (unsigned)c : 3;
            b.todo[c].push_back(
                {mem, b.content.lower_bound(mem << 10)->first & 1023, 0, 10, false});
        }
    uint64_t before[READERS];
    for (int k = 0; k < 20; k++)
        b.cycle();
    std::copy(b.beats, b.beats + READERS, before);
    for (int k = 0; k < 800; k++)
        b.cycle();
    for (int c = 0; c < READERS; c++)
        LONGS_EQUAL(c < 3 ? 800 : 400, b.beats[c] - before[c]);
    b.run();
}

// Case 29: one reader stalls for ever, with commands pending on the memory that all the others
// read.
TEST(buf, a_stalled_reader_costs_the_others_nothing) {
    uint64_t rate[2] = {};
    for (int stalled = 0; stalled < 2; stalled++) {
        BufBench b(run_seed() + 3);
        const unsigned buf = b.take(0);
        b.fill(0, buf, 144);
        for (int c = 0; c < READERS; c++)
            for (int k = 0; k < 400; k++)
                b.todo[c].push_back(
                    {0, buf, (unsigned)b.rng.below(100), 1 + (unsigned)b.rng.below(44), false});
        if (stalled)
            b.stall[2] = 100;
        else
            b.todo[2].clear();
        for (int k = 0; k < 4000; k++)
            b.cycle();
        for (int c = 0; c < READERS; c++)
            rate[stalled] += b.beats[c];
        for (int c = 0; c < READERS; c++)
            if (c != 2)
                CHECK(b.beats[c] >= 4000 / 4 * 90 / 100);
        CHECK_FALSE(b.fired());
    }
    printf("xbar: %llu beats in 4000 cycles, %llu beside a stalled reader\n",
           (unsigned long long)rate[0], (unsigned long long)rate[1]);
    CHECK(rate[1] * 10 >= rate[0] * 9);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
