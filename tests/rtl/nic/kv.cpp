// The KV engines against a memory that stalls every channel on its own, answers read ids in any
// order, takes write data before or after its address, and sometimes says that it failed (cases 23,
// 24 and 30).
#include "tests/rtl/common/bench.hpp"

#include "Vkv_tb.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

namespace {

using Bytes = std::vector<uint8_t>;
const size_t BEAT = 64, PAGE = 4096, PAGES = 64, BUFFERS = 8;
const uint64_t BASE = 0x1234567000u;

struct Stalls { // chance, in percent, that a channel is ready or offers in a cycle
    unsigned aw = 100, w = 100, b = 100, ar = 100, r = 100, out = 100, fetch = 100, cmd = 100;
    unsigned ack = 50;                    // of writes that somebody waits for
    unsigned latency = 0;                 // cycles from an address to its data or response
    bool shuffle = false;                 // answer other ids first when it likes
    bool data_first = false;              // take no AW before the burst's data
    unsigned bad_write = 0, bad_read = 0; // bursts that fail
    bool reads_first = false;             // no write goes on while a read is under way
    bool writes_first = false;            // no read data while a write is under way
    bool stuck_reader = false;            // nobody takes what reader 2 has
};

struct Write {
    unsigned mem, buf, off, len;
    size_t page;
};
struct Read {
    int reader;
    size_t page;
    uint32_t len, offset;
};

uint32_t sum_of(const Bytes &b) { // RFC 1071
    uint64_t s = 0;
    for (size_t i = 0; i < b.size(); i++)
        s += i % 2 ? b[i] : (uint64_t)b[i] << 8;
    while (s >> 16)
        s = (s & 0xFFFF) + (s >> 16);
    return (uint32_t)s;
}

class System : public Bench<Vkv_tb> {
public:
    System(uint64_t noise, const Stalls &s)
        : Bench(noise), stalls(s), rng(noise), memory(PAGES * PAGE) {
        auto &t = *top;
        t.hold_i = t.kvw_valid_i = t.kvr_valid_i = t.left_valid_i = 0;
        t.cmd_ready_i = t.fetch_valid_i = t.awready_i = t.wready_i = t.bvalid_i = 0;
        t.arready_i = t.rvalid_i = t.frame_ready_i = t.data_ready_i = 0;
        reset();
        for (auto &m : memory)
            m = (uint8_t)rng.next();
        image = memory;
        for (auto &b : buffers) {
            b.resize(144 * BEAT);
            for (auto &v : b)
                v = (uint8_t)rng.next();
        }
    }
    Stalls stalls;
    Rng rng;
    Bytes memory, image; // what the memory holds; what it must hold at the end
    std::array<Bytes, BUFFERS> buffers;
    std::deque<Write> writes;
    std::deque<Read> reads;
    std::deque<unsigned> acks; // tokens that acknowledgements hold
    bool keep_acks = false;    // they stay where they are: their port is stalled
    size_t w_beats = 0, r_beats = 0, frames = 0, skipped = 0, poisoned = 0, done = 0,
           bad_writes = 0;
    size_t bad_reads = 0, most_writes = 0, most_reads = 0;
    const char *wrong = nullptr;

    void fail(const char *what) {
        if (!wrong)
            printf("cycle %llu: %s\n", (unsigned long long)cycles, what);
        wrong = wrong ? wrong : what;
    }
    bool finished() const {
        bool left = !writes.empty() || !reads.empty() || !issued.empty() || !b_queue.empty();
        left |= !keep_acks && !acks.empty();
        for (int k = 0; k < (stalls.stuck_reader ? 2 : 3); k++)
            left |= !queued[k].empty() || !expected[k].empty() || !payload[k].empty();
        return !left && !(top->busy_o & (stalls.stuck_reader ? 11 : 15));
    }
    bool run(uint64_t limit) {
        for (uint64_t k = 0; k < limit && !wrong; k++) {
            if (finished())
                return true;
            cycle();
        }
        if (!wrong)
            fail("watchdog");
        return false;
    }
    void cycle() {
        offer();
        settle();
        hold();
        settle();
        sample();
        tick();
        if (fired())
            fail("an assertion of the design fired");
        settle();
        withdraw();
    }

private:
    struct Burst {
        uint64_t addr;
        size_t words, at;
        uint64_t due;
        bool bad;
        Bytes data;
    };
    struct Issued { // a write that has its token and not its response
        Write w;
        unsigned token;
        bool bad;
    };
    struct Queued { // a read that waits for its turn
        Read r;
        std::array<uint32_t, 8> hdr;
        uint64_t pushed; // in this cycle
        size_t before;   // writes issued before it
    };
    struct Frame { // what a reader must give
        std::array<uint32_t, 8> hdr;
        uint32_t len;
        uint64_t addr;
        bool last, skip, asked, complete;
        Bytes data;
    };
    struct Payload {
        Bytes data;
        size_t at;
    };
    std::deque<Issued> issued, unwritten;
    std::deque<Burst> aw_queue, b_queue, bursts[3];
    Bytes w_data;
    std::vector<uint64_t> w_strobes;
    std::deque<std::pair<Bytes, std::vector<uint64_t>>> w_done;
    std::deque<std::array<unsigned, 4>> commands, fetches; // mem, buf, beat, beats
    std::deque<Queued> queued[3];
    std::deque<Frame> expected[3];
    std::deque<Payload> payload[3];
    std::deque<uint64_t> bad_cycles;
    size_t fetch_at = 0, issues = 0;
    int reader = -1, r_id = -1; // of the read on offer; of the read data
    bool want_ack = false, took_write = false, took_read = false, took_fetch = false;

    bool reading() const { return !bursts[0].empty() || !bursts[1].empty() || !bursts[2].empty(); }
    bool writing() const {
        return !aw_queue.empty() || !w_done.empty() || !b_queue.empty() || !w_data.empty();
    }
    void set(uint8_t &port, int k, bool v) { port = (uint8_t)((port & ~(1 << k)) | v << k); }

    // The inputs of a cycle; what is on offer stays so until it is taken.
    void offer() {
        auto &t = *top;
        if (!t.kvw_valid_i && !t.kvr_valid_i && rng.percent(stalls.cmd)) {
            // one of the two, since a frame is one of the two
            const bool write = !writes.empty() && (reads.empty() || rng.percent(50));
            if (write && t.room_o) {
                const Write &w = writes.front();
                t.kvw_mem_i = (uint8_t)w.mem, t.kvw_buf_i = (uint16_t)w.buf;
                t.kvw_off_i = (uint16_t)w.off, t.kvw_len_i = (uint16_t)w.len;
                t.kvw_addr_i = BASE + w.page * PAGE;
                t.kvw_valid_i = 1;
                want_ack = rng.percent(stalls.ack);
            } else if (!write && !reads.empty()) {
                const Read &r = reads.front();
                reader = r.reader;
                t.kvr_addr_i = BASE + r.page * PAGE;
                t.kvr_len_i = r.len, t.kvr_offset_i = r.offset, t.kvr_token_i = t.last_o;
                for (int i = 0; i < 8; i++)
                    t.kvr_hdr_i[i] = (uint32_t)rng.next();
                t.kvr_valid_i = (uint8_t)(1u << reader);
            }
        }
        // an acknowledgement leaves when its write has its response
        t.left_valid_i = 0;
        if (!keep_acks && !acks.empty() && rng.percent(50)) {
            const unsigned token = acks.front();
            if (!(t.pending_o[token / 32] >> token % 32 & 1)) {
                t.left_valid_i = (uint8_t)(1u << rng.below(3));
                t.left_token_i = token * 0x010101u;
                acks.pop_front();
            }
        }
        t.cmd_ready_i = rng.percent(stalls.cmd);
        if (!t.fetch_valid_i && !fetches.empty() && rng.percent(stalls.fetch)) {
            const auto &f = fetches.front();
            memcpy(&t.fetch_data_i[0], &buffers[f[1]][(f[2] + fetch_at) * BEAT], BEAT);
            t.fetch_valid_i = 1;
        }
        const bool hold_writes = stalls.reads_first && reading();
        const bool hold_reads = stalls.writes_first && writing();
        t.awready_i = !hold_writes && rng.percent(stalls.aw) &&
                      (!stalls.data_first || w_done.size() > aw_queue.size());
        t.wready_i = !hold_writes && rng.percent(stalls.w);
        t.bvalid_i = !hold_writes && !b_queue.empty() && b_queue.front().due <= cycles &&
                     rng.percent(stalls.b);
        t.bresp_i = t.bvalid_i && b_queue.front().bad ? 2 + (rng.next() & 1) : 0;
        t.arready_i = rng.percent(stalls.ar);
        offer_read_data(hold_reads);
        for (int k = 0; k < 3; k++) {
            const bool stuck = stalls.stuck_reader && k == 2;
            set(t.frame_ready_i, k, !stuck && rng.percent(stalls.out));
            set(t.data_ready_i, k, !stuck && rng.percent(stalls.out));
        }
    }
    void offer_read_data(bool none) {
        auto &t = *top;
        t.rvalid_i = 0;
        if (none || !rng.percent(stalls.r))
            return;
        if (r_id < 0 || bursts[r_id].empty() || (stalls.shuffle && rng.percent(20))) {
            r_id = -1;
            const int from = (int)rng.below(3);
            for (int k = 0; k < 3 && r_id < 0; k++)
                if (!bursts[(from + k) % 3].empty() && bursts[(from + k) % 3].front().due <= cycles)
                    r_id = (from + k) % 3;
        }
        if (r_id < 0)
            return;
        const Burst &b = bursts[r_id].front();
        t.rvalid_i = 1;
        t.rid_i = (uint8_t)r_id;
        memcpy(&t.rdata_i[0], &b.data[b.at * BEAT], BEAT);
        t.rlast_i = b.at + 1 == b.words;
        t.rresp_i = b.bad && b.at == b.words / 2 ? 2 : 0;
    }
    // The dispatcher pushes a waiter in the cycle in which it pushes what is waited for.
    void hold() {
        auto &t = *top;
        took_write = t.kvw_valid_i && t.kvw_ready_o;
        took_read = reader >= 0 && (t.kvr_valid_i & t.kvr_ready_o);
        t.hold_i = (took_write && want_ack) || took_read;
        t.hold_token_i = took_read ? t.kvr_token_i : t.next_o;
    }

    void sample() {
        auto &t = *top;
        if (took_write)
            issue();
        if (took_read) {
            Queued q = {reads.front(), {}, cycles, issues};
            for (size_t i = 0; i < 8; i++)
                q.hdr[i] = t.kvr_hdr_i[i];
            queued[reader].push_back(q);
            reads.pop_front();
        }
        if (t.cmd_valid_o && t.cmd_ready_i) {
            const std::array<unsigned, 4> got = {t.cmd_mem_o, t.cmd_buf_o, t.cmd_beat_o,
                                                 t.cmd_beats_o};
            if (commands.empty() || commands.front() != got || !t.cmd_rel_o)
                fail("not the beats of the write");
            else
                commands.pop_front();
            fetches.push_back(got);
        }
        took_fetch = t.fetch_valid_i && t.fetch_ready_o;
        if (took_fetch && ++fetch_at == fetches.front()[3]) {
            fetches.pop_front();
            fetch_at = 0;
        }
        sample_memory();
        if (t.done_valid_o) {
            if (issued.empty() || issued.front().token != t.done_token_o ||
                issued.front().bad != (t.done_bad_o != 0)) {
                fail("not the write that is done next");
                return;
            }
            if (t.done_bad_o) {
                if (t.bad_addr_o != BASE + issued.front().w.page * PAGE)
                    fail("not the page that failed");
                bad_cycles.push_back(cycles);
                bad_writes++;
            }
            issued.pop_front();
            done++;
        }
        for (int k = 0; k < 3; k++)
            sample_reader(k);
    }
    void issue() {
        auto &t = *top;
        const Write w = writes.front();
        writes.pop_front();
        if (!t.room_o)
            fail("a token was taken without room");
        for (unsigned a : acks)
            if (a == t.next_o)
                fail("a token is handed out that somebody holds");
        const bool bad = rng.percent(stalls.bad_write);
        issued.push_back({w, t.next_o, bad});
        unwritten.push_back(issued.back());
        commands.push_back({w.mem, w.buf, w.off / (unsigned)BEAT,
                            (unsigned)((w.off % BEAT + w.len + BEAT - 1) / BEAT)});
        if (!bad)
            memcpy(&image[w.page * PAGE], &buffers[w.buf][w.off], w.len);
        if (want_ack)
            acks.push_back(t.next_o);
        issues++;
        most_writes = std::max(most_writes, issued.size());
    }
    void sample_memory() {
        auto &t = *top;
        if (t.bvalid_i)
            b_queue.pop_front();
        if (t.awvalid_o && t.awready_i)
            aw_queue.push_back({t.awaddr_o, (size_t)t.awlen_o + 1, 0, 0, false, {}});
        if (t.wvalid_o && t.wready_i) {
            const auto *d = (const uint8_t *)&t.wdata_o[0];
            w_data.insert(w_data.end(), d, d + BEAT);
            w_strobes.push_back(t.wstrb_o);
            w_beats++;
            if (t.wlast_o) {
                w_done.emplace_back(w_data, w_strobes);
                w_data.clear(), w_strobes.clear();
            }
        }
        while (!aw_queue.empty() && !w_done.empty()) {
            // case 24: as many words as announced; case 23: the marked lanes and no other
            Burst b = aw_queue.front();
            const auto &words = w_done.front();
            const Issued &i = unwritten.front();
            if (unwritten.empty() || b.addr != BASE + i.w.page * PAGE ||
                b.words != (i.w.len + BEAT - 1) / BEAT || b.words != words.second.size()) {
                fail("a burst is not the one of its write");
                return;
            }
            b.bad = i.bad;
            for (size_t k = 0; k < words.first.size() && !b.bad; k++)
                if (words.second[k / BEAT] >> k % BEAT & 1)
                    memory[b.addr - BASE + k] = words.first[k];
            b.due = cycles + 1 + stalls.latency;
            b_queue.push_back(b);
            unwritten.pop_front();
            aw_queue.pop_front();
            w_done.pop_front();
        }
        if (t.rvalid_i) {
            Burst &b = bursts[r_id].front();
            r_beats++;
            if (++b.at == b.words) {
                for (auto &f : expected[r_id])
                    if (f.asked && !f.complete) {
                        f.complete = true;
                        break;
                    }
                bursts[r_id].pop_front();
            }
        }
        if (t.arvalid_o && t.arready_i) {
            const int k = t.arid_o;
            Frame *f = nullptr;
            for (auto &e : expected[k])
                if (!e.asked && !f)
                    f = &e;
            if (k > 2 || !f || f->addr != t.araddr_o ||
                (f->len + BEAT - 1) / BEAT != (size_t)t.arlen_o + 1) {
                fail("not the piece that is to be read next");
                return;
            }
            const size_t at = t.araddr_o - BASE, words = (size_t)t.arlen_o + 1;
            const bool bad = rng.percent(stalls.bad_read);
            bursts[k].push_back(
                {t.araddr_o, words, 0, cycles + 1 + stalls.latency, bad,
                 Bytes(memory.begin() + (long)at, memory.begin() + (long)(at + words * BEAT))});
            f->asked = true;
            f->skip = bad;
            f->data.assign(memory.begin() + (long)at, memory.begin() + (long)(at + f->len));
            bad_reads += bad;
            most_reads =
                std::max(most_reads, bursts[0].size() + bursts[1].size() + bursts[2].size());
        }
    }
    void sample_reader(int k) {
        auto &t = *top;
        if (t.left_valid_o >> k & 1)
            start(k);
        bad_reads -= t.read_bad_o >> k & 1;
        if (t.frame_valid_o >> k & t.frame_ready_i >> k & 1) {
            if (expected[k].empty() || !expected[k].front().complete) {
                fail("a frame before its piece is there");
                return;
            }
            const Frame f = expected[k].front();
            expected[k].pop_front();
            bool same = field(t.frame_len_o, 13 * k, 13) == f.len &&
                        (t.frame_last_o >> k & 1) == f.last && (t.frame_skip_o >> k & 1) == f.skip;
            same &= f.skip || field(t.frame_sum_o, 16 * k, 16) == sum_of(f.data);
            for (int i = 0; i < 8; i++)
                same &= t.frame_hdr_o[8 * k + i] == f.hdr[(size_t)i];
            if (!same)
                fail("not the frame that comes next");
            frames++;
            skipped += f.skip;
            if (!f.skip)
                payload[k].push_back({f.data, 0});
        }
        if (t.data_valid_o >> k & t.data_ready_i >> k & 1) {
            uint8_t want[BEAT] = {};
            if (payload[k].empty()) {
                fail("payload that is not owed");
                return;
            }
            Payload &p = payload[k].front();
            const size_t n = std::min(BEAT, p.data.size() - p.at);
            memcpy(want, &p.data[p.at], n);
            p.at += n;
            if (memcmp(want, &t.data_o[16 * k], BEAT) != 0 ||
                (t.data_last_o >> k & 1) != (p.at == p.data.size()))
                fail("not the payload that was read");
            if (p.at == p.data.size())
                payload[k].pop_front();
        }
    }
    // A read gets its turn: all writes before it have their response; it is answered with nothing
    // when one failed since 16 cycles before it came.
    void start(int k) {
        if (queued[k].empty() ||
            (top->left_token_o >> 8 * k & 0xFF) != (queued[k].front().before + 255) % 256) {
            fail("a read starts that is not next");
            return;
        }
        const Queued q = queued[k].front();
        queued[k].pop_front();
        if (done < q.before)
            fail("a read starts before the writes in front of it are done");
        bool poison = false;
        for (uint64_t c : bad_cycles)
            poison |= c + 16 >= q.pushed;
        poisoned += poison;
        for (uint32_t at = 0; at < q.r.len; at += (uint32_t)PAGE) {
            const uint32_t n = std::min((uint32_t)PAGE, q.r.len - at);
            const bool last = at + n == q.r.len || poison;
            // bytes 0..31 of the header are the words 7..0: flags in byte 3, offset in word 0
            Frame f = {q.hdr, n, BASE + q.r.page * PAGE + at, last, poison, poison, poison, {}};
            f.hdr[7] = (f.hdr[7] & 0xFFFFFF00u) | last;
            f.hdr[0] = q.r.offset + at;
            expected[k].push_back(f);
            if (poison)
                break;
        }
    }
    template <class Port>
    static uint32_t field(const Port &port, int lsb, int width) {
        uint32_t v = 0;
        for (int i = 0; i < width; i++)
            v |= bit(port, lsb + i) << i;
        return v;
    }
    static uint32_t bit(uint64_t port, int i) { return (uint32_t)(port >> i & 1); }
    template <size_t N>
    static uint32_t bit(const VlWide<N> &port, int i) {
        return port[i / 32] >> i % 32 & 1;
    }

    void withdraw() {
        auto &t = *top;
        t.hold_i = 0;
        if (took_write)
            t.kvw_valid_i = 0;
        if (took_read) {
            t.kvr_valid_i = 0;
            reader = -1;
        }
        if (took_fetch)
            t.fetch_valid_i = 0;
    }
};

unsigned any_length(Rng &rng) {
    static const unsigned edges[] = {1, 2, 31, 63, 64, 65, 127, 128, 129, 4032, 4033, 4095, 4096};
    return rng.percent(50) ? edges[rng.below(sizeof edges / sizeof *edges)]
                           : 1 + (unsigned)rng.below(rng.percent(70) ? 300 : PAGE);
}

void give(System &s, size_t writes, size_t reads, int readers = 3) {
    for (size_t k = 0; k < writes; k++) {
        const unsigned len = any_length(s.rng), off = 74 + (unsigned)s.rng.below(64);
        s.writes.push_back({(unsigned)s.rng.below(3), (unsigned)s.rng.below(BUFFERS), off, len,
                            s.rng.below(PAGES)});
    }
    for (size_t k = 0; k < reads; k++) {
        const uint32_t pages = s.rng.percent(70) ? 1 : 1 + (uint32_t)s.rng.below(6);
        const size_t page = s.rng.below(PAGES - pages + 1);
        const uint32_t len = (pages - 1) * (uint32_t)PAGE + any_length(s.rng);
        s.reads.push_back({(int)s.rng.below((uint64_t)readers), page, len,
                           (uint32_t)(s.rng.below(1 << 20) * PAGE)});
    }
}

void check(System &s, uint64_t limit) {
    CHECK(s.run(limit));
    CHECK(!s.wrong);
    CHECK(s.memory == s.image);
    CHECK_EQUAL(0u, s.bad_reads); // each was told
}

TEST_GROUP(kv) { Rng rng{run_seed()}; };

// Case 24: every channel stalls on its own; many seeds, few transfers each.
TEST(kv, stalls) {
    const char *more = getenv("MR_KV_SEEDS");
    const int seeds = more ? atoi(more) : 150;
    size_t frames = 0, done = 0;
    for (int k = 0; k < seeds; k++) {
        Stalls st;
        unsigned *rates[] = {&st.aw, &st.w, &st.b, &st.ar, &st.r, &st.out, &st.fetch, &st.cmd};
        for (unsigned *r : rates)
            *r = rng.percent(30) ? 100 : 5 + (unsigned)rng.below(95);
        st.latency = (unsigned)rng.below(60);
        st.shuffle = rng.percent(50), st.data_first = rng.percent(30);
        System s(rng.next(), st);
        give(s, 12, 12);
        check(s, 200000);
        frames += s.frames, done += s.done;
        CHECK_EQUAL(12u, s.done);
    }
    printf("%d seeds: %zu writes, %zu frames read\n", seeds, done, frames);
}

// Case 23: lengths from one byte on at every offset of the source; what stands beside them stays.
TEST(kv, short_writes) {
    System s(rng.next(), Stalls{});
    for (unsigned off = 64; off < 192; off++)
        for (unsigned len : {1u, 2u, 63u, 64u, 65u})
            s.writes.push_back({0, (unsigned)s.rng.below(BUFFERS), off, len, s.rng.below(PAGES)});
    check(s, 200000);
    CHECK_EQUAL(640u, s.done);
}

// Case 30: as many under way as there can be, writes that wait for reads and reads that wait for
// writes.
TEST(kv, most_under_way) {
    for (int k = 0; k < 3; k++) {
        Stalls st;
        st.latency = 400, st.shuffle = true, st.reads_first = k == 1, st.writes_first = k == 2;
        System s(rng.next(), st);
        give(s, 200, 100);
        check(s, 400000);
        if (k == 0) {
            CHECK(s.most_writes >= 32);
            CHECK(s.most_reads >= 3);
        }
    }
}

// Failed writes are told with their page, in order; reads that waited for one are answered with
// nothing, as are pieces that memory could not read.
TEST(kv, memory_errors) {
    size_t bad_writes = 0, skipped = 0, poisoned = 0, frames = 0;
    for (int k = 0; k < 20; k++) {
        Stalls st;
        st.bad_write = k % 3 ? 0 : 10, st.bad_read = 10, st.latency = (unsigned)rng.below(60),
        st.b = 50, st.out = 70;
        System s(rng.next(), st);
        give(s, 60, 60);
        check(s, 400000);
        bad_writes += s.bad_writes, skipped += s.skipped, poisoned += s.poisoned,
            frames += s.frames;
    }
    printf("%zu failed writes; of %zu frames %zu skipped, %zu since a write had failed\n",
           bad_writes, frames, skipped, poisoned);
    CHECK(bad_writes > 10 && poisoned > 10 && skipped > poisoned + 20 && frames > skipped + 500);
}

// A transmit port that stands still for ever: the others' reads and all writes go on.
TEST(kv, stuck_port) {
    Stalls st;
    st.stuck_reader = true, st.latency = 30;
    System s(rng.next(), st);
    for (int k = 0; k < 12; k++)
        s.reads.push_back({2, 0, 5 * (uint32_t)PAGE, 0});
    give(s, 0, 0);
    for (int k = 0; k < 100; k++)
        s.cycle();
    give(s, 300, 300, 2);
    check(s, 400000);
    CHECK_EQUAL(300u, s.done);
    CHECK(s.frames >= 300);
}

// Acknowledgements that never leave: their tokens are not given out again, however many writes
// pass, and when they have left everything goes on.
TEST(kv, tokens_come_round) {
    System s(rng.next(), Stalls{});
    s.stalls.ack = 100;
    s.keep_acks = true;
    for (int k = 0; k < 1000; k++)
        s.writes.push_back({0, 0, 74, 1 + (unsigned)s.rng.below(64), s.rng.below(PAGES)});
    for (int k = 0; k < 20000; k++)
        s.cycle();
    CHECK(!s.wrong);
    CHECK_EQUAL(256u, s.acks.size()); // all there are
    CHECK_EQUAL(744u, s.writes.size());
    s.keep_acks = false;
    check(s, 100000);
    CHECK_EQUAL(1000u, s.done);
    // one that stays keeps only its generation of 64
    s.stalls.ack = 0;
    for (int k = 0; k < 1000; k++)
        s.writes.push_back({0, 0, 74, 1 + (unsigned)s.rng.below(64), s.rng.below(PAGES)});
    for (int k = 0; k < 40; k++)
        s.cycle();
    s.acks.clear();
    check(s, 100000);
    CHECK_EQUAL(2000u, s.done);
}

// A beat a cycle both ways, at the latency of a memory on the board.
TEST(kv, rates) {
    Stalls st;
    st.latency = 60, st.ack = 0;
    System w(rng.next(), st);
    for (int k = 0; k < 300; k++)
        w.writes.push_back(
            {0, (unsigned)(k % (int)BUFFERS), 74, (unsigned)PAGE, (size_t)k % PAGES});
    uint64_t start = w.cycles;
    check(w, 100000);
    const double write_rate = (double)w.w_beats / (double)(w.cycles - start);
    System r(rng.next(), st);
    for (int k = 0; k < 40; k++)
        r.reads.push_back({0, (size_t)k, 16 * (uint32_t)PAGE, 0});
    start = r.cycles;
    check(r, 100000);
    const double read_rate = (double)r.r_beats / (double)(r.cycles - start);
    printf("KV engines: %.3f beats a cycle written, %.3f read by one port (asked 1; 4,096 bytes at "
           "byte 74)\n",
           write_rate, read_rate);
    CHECK(write_rate > 0.97); // a command of unaligned bytes costs one cycle more
    CHECK(read_rate > 0.95);
}

} // namespace

int main(int argc, char **argv) { return bench_main(argc, argv); }
