// The transmitter with crossbar and memories, against frames built from nic.md: headers, both
// checksums, payload from any offset, multicast, results and KV writes that are waited for, KV
// reads; rates, latency.
#include "frames.hpp"

#include "Vtx_tb.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace {

const Address OWN = {{0x02, 0x00, 0x5E, 0x10, 0x20, 0x30}, 0x0A000001, 19794};
enum { RAW, BUILD, KV };

struct Descriptor {
    int kind = BUILD;
    unsigned mem = 0, buf = 0, off = 0, len = 0;
    bool inl = false, direct = false, host = false, wait_res = false, wait_kv = false, rel = false;
    bool retrans = false;
    uint64_t pay64 = 0;
    uint32_t sum = 0;
    Bytes hdr = Bytes(32);
    unsigned rank = 0, job = 0, token = 0;
    uint32_t members = 0;
};
struct KvFrame {
    Bytes hdr, payload;
    bool last, skip;
};

void set_wide(uint32_t *to, const Bytes &top_first) {
    const size_t n = top_first.size();
    for (size_t k = 0; k < n; k++)
        ((uint8_t *)to)[k] = top_first[n - 1 - k];
}

struct TxBench : Bench<Vtx_tb> {
    explicit TxBench(uint64_t noise) : Bench(noise), rng(noise * 3 + 1) {
        top->alloc_take_i = top->wr_en_i = top->ref_valid_i = 0;
        top->ref_buf_i = 0;
        top->ref_count_i = 0;
        top->wr_mem_i = 0;
        top->txd_valid_i = top->kvf_valid_i = top->kvp_valid_i = top->ready_i = 0;
        top->rival_i = 0;
        top->res_ready_i = 0;
        memset(&top->kv_pending_i[0], 0, 32);
        memset(&top->kv_bad_i[0], 0, 32);
        top->own_valid_i = 1;
        top->own_mac_i = OWN.mac_number();
        top->own_ip_i = OWN.ip;
        top->own_port_i = OWN.port;
        for (auto &row : ranks)
            for (auto &r : row)
                r = (uint8_t)rng.next();
        for (int k = 0; k < 256; k++) {
            for (auto &b : nodes[k].mac)
                b = (uint8_t)rng.next();
            nodes[k].ip = (uint32_t)rng.next();
            nodes[k].port = (uint16_t)rng.next();
            known[k] = !rng.percent(10);
        }
        reset();
    }
    Rng rng;
    uint8_t ranks[32][32];
    Address nodes[256];
    bool known[256];
    unsigned stall = 0, kv_gap = 0, txd_gap = 0;
    bool flip = false;
    std::deque<Descriptor> todo;
    std::deque<KvFrame> kv_todo;
    std::deque<Bytes> expected, arrived;
    std::deque<unsigned> done_expected, left_expected;
    std::map<unsigned, uint32_t> res_sum;
    std::set<unsigned> bad_tokens;
    std::deque<std::pair<uint64_t, unsigned>> results_at, tokens_at; // when a wait ends
    uint64_t frames = 0, bytes = 0, resent = 0, unsent = 0;
    uint64_t first_beat = 0, last_beat = 0, beats = 0, pushed_at = 0;

    // ---- memories ----
    unsigned take(unsigned mem) {
        settle();
        CHECK(top->alloc_valid_o >> mem & 1);
        const unsigned id = (unsigned)(top->alloc_id_o >> 10 * mem) & 1023;
        top->alloc_take_i = (uint8_t)(1 << mem);
        cycle();
        top->alloc_take_i = 0;
        return id;
    }
    void fill(unsigned mem, unsigned buf, const Bytes &content) {
        for (unsigned b = 0; b * 64 < content.size(); b++) {
            const size_t here = std::min<size_t>(64, content.size() - b * 64);
            const Bytes noise = random_bytes(rng, 64);
            top->wr_en_i = 1;
            top->wr_mem_i = mem;
            top->wr_buf_i = buf;
            top->wr_beat_i = b;
            memcpy(&top->wr_data_i[0], noise.data(), 64);
            memcpy(&top->wr_data_i[0], &content[b * 64], here);
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
    unsigned free(unsigned mem) { return (unsigned)(top->free_o >> 11 * mem) & 2047; }

    // ---- what must come out ----
    Bytes built(const Address &to, const Bytes &hdr, const Bytes &payload) {
        Recipe r;
        r.to = to;
        r.from = OWN;
        r.datagram = hdr;
        r.datagram.insert(r.datagram.end(), payload.begin(), payload.end());
        return r.build();
    }
    void expect_to(unsigned rank, Bytes hdr, const Bytes &payload, bool retrans) {
        if (!known[rank]) {
            unsent++;
            return;
        }
        hdr[3] |= retrans ? 2 : 0;
        expected.push_back(built(nodes[rank], hdr, payload));
        resent_expected += retrans;
    }
    uint64_t resent_expected = 0;
    // A descriptor for this payload, its frames expected.
    void want(Descriptor d, const Bytes &payload) {
        if (d.kind == RAW) {
            expected.push_back(payload);
        } else if (d.wait_kv && bad_tokens.count(d.token)) {
            // the write failed: nothing is sent
        } else if (d.host) {
            Bytes h = d.hdr;
            h[3] |= d.retrans ? 2 : 0;
            resent_expected += d.retrans;
            expected.push_back(built(OWN, h, payload));
        } else if (d.direct) {
            expect_to(d.rank, d.hdr, payload, d.retrans);
        } else {
            for (int k = 0; k < 32; k++)
                if (d.members >> k & 1)
                    expect_to(ranks[d.job][k], d.hdr, payload, d.retrans);
        }
        if (d.mem == 3)
            done_expected.push_back(d.buf);
        if (d.wait_kv)
            left_expected.push_back(d.token);
        todo.push_back(d);
    }
    void kv_read(unsigned rank, const std::vector<KvFrame> &answer, bool host) {
        Descriptor d;
        d.kind = KV;
        d.rank = rank;
        d.direct = !host;
        d.host = host;
        d.mem = (unsigned)rng.below(4); // not looked at
        for (const KvFrame &f : answer) {
            kv_todo.push_back(f);
            if (f.skip)
                continue;
            if (host)
                expected.push_back(built(OWN, f.hdr, f.payload));
            else
                expect_to(rank, f.hdr, f.payload, false);
        }
        todo.push_back(d);
    }

    // ---- one cycle ----
    void cycle() {
        if (!txd_there && !todo.empty() && !rng.percent(txd_gap))
            offer();
        top->txd_valid_i = txd_there;
        drive_kv();
        for (; !results_at.empty() && results_at.front().first <= cycles; results_at.pop_front())
            top->res_ready_i |= 1ull << results_at.front().second;
        for (; !tokens_at.empty() && tokens_at.front().first <= cycles; tokens_at.pop_front()) {
            const unsigned t = tokens_at.front().second;
            top->kv_pending_i[t / 32] &= ~(1u << t % 32);
        }
        top->ready_i = !rng.percent(stall);
        settle();
        top->res_sum_i = res_sum.count(top->res_slot_o) ? res_sum[top->res_slot_o] : 0xDEAD;
        settle();
        if (flip) {
            const bool valid = top->valid_o, ready = top->ready_i;
            top->ready_i = !ready;
            settle();
            LONGS_EQUAL(valid, top->valid_o);
            top->ready_i = ready;
            settle();
        }
        if (top->valid_o && top->ready_i)
            take_beat();
        if (top->sent_valid_o) {
            frames++;
            bytes += top->sent_bytes_o;
            resent += top->sent_retrans_o;
        }
        if (top->done_valid_o) {
            CHECK(!done_expected.empty());
            LONGS_EQUAL(done_expected.front(), top->done_slot_o);
            done_expected.pop_front();
        }
        if (top->kv_left_o) {
            CHECK(!left_expected.empty());
            LONGS_EQUAL(left_expected.front(), top->kv_left_token_o);
            left_expected.pop_front();
        }
        const bool txd_taken = txd_there && top->txd_ready_o;
        const bool kvf_taken = kvf_there && top->kvf_ready_o;
        const bool kvp_taken = kvp_there && top->kvp_ready_o;
        // tables answer after the edge
        const uint8_t rank =
            top->job_en_o ? ranks[top->job_row_o][top->job_idx_o] : (uint8_t)rng.next();
        const int node = top->node_en_o ? top->node_rank_o : -1;
        tick();
        if (txd_taken) {
            pushed_at = cycles;
            todo.pop_front();
            txd_there = false;
        }
        if (kvf_taken)
            kvf_there = false;
        if (kvp_taken)
            kvp_there = false;
        top->job_rank_i = rank;
        top->node_valid_i = node >= 0 ? known[node] : rng.percent(50);
        top->node_mac_i = node >= 0 ? nodes[node].mac_number() : rng.next() & 0xFFFFFFFFFFFF;
        top->node_ip_i = node >= 0 ? nodes[node].ip : (uint32_t)rng.next();
        top->node_port_i = node >= 0 ? nodes[node].port : (uint16_t)rng.next();
    }
    void drain() {
        for (size_t k = 0; !todo.empty() || txd_there || top->busy_o; k++) {
            CHECK_TEXT(k < 3000000, "the transmitter hangs");
            cycle();
        }
        for (int k = 0; k < 4; k++)
            cycle();
        LONGS_EQUAL(expected.size(), arrived.size());
        uint64_t total = 0;
        while (!expected.empty()) {
            const Bytes &want = expected.front(), &got = arrived.front();
            total += want.size();
            LONGS_EQUAL(want.size(), got.size());
            MEMCMP_EQUAL(want.data(), got.data(), want.size());
            expected.pop_front();
            arrived.pop_front();
            checked++;
        }
        LONGS_EQUAL(total, bytes);
        LONGS_EQUAL(resent_expected, resent);
        bytes = resent = resent_expected = 0;
        CHECK(done_expected.empty());
        CHECK(left_expected.empty());
        CHECK(kv_todo.empty() && kv_beats.empty());
        CHECK_FALSE(fired());
    }
    uint64_t checked = 0;

private:
    bool txd_there = false, kvf_there = false, kvp_there = false;
    std::deque<Bytes> kv_beats;
    Bytes now;

    void offer() {
        const Descriptor &d = todo.front();
        txd_there = true;
        top->kind_i = d.kind;
        top->mem_i = d.mem;
        top->buf_i = d.buf;
        top->off_i = d.off;
        top->len_i = d.len;
        top->inl_i = d.inl;
        top->pay64_i = d.pay64;
        top->sum_i = d.sum;
        set_wide(&top->hdr_i[0], d.hdr);
        top->direct_i = d.direct;
        top->rank_i = d.rank;
        top->job_i = d.job;
        top->members_i = d.members;
        top->host_i = d.host;
        top->wait_res_i = d.wait_res;
        top->wait_kv_i = d.wait_kv;
        top->token_i = d.token;
        top->rel_i = d.rel;
        top->retrans_i = d.retrans;
    }
    void drive_kv() {
        if (!kvf_there && !kv_todo.empty() && !rng.percent(kv_gap)) {
            const KvFrame &f = kv_todo.front();
            kvf_there = true;
            top->kvf_len_i = (unsigned)f.payload.size();
            top->kvf_sum_i = f.skip ? 0 : internet_sum(f.payload, 0, f.payload.size());
            set_wide(&top->kvf_hdr_i[0], f.hdr);
            top->kvf_last_i = f.last;
            top->kvf_skip_i = f.skip;
            for (size_t at = 0; at < f.payload.size() && !f.skip; at += 64) {
                Bytes beat = random_bytes(rng, 64);
                std::copy(f.payload.begin() + (long)at,
                          f.payload.begin() + (long)std::min(f.payload.size(), at + 64),
                          beat.begin());
                kv_beats.push_back(beat);
            }
            kv_todo.pop_front();
        }
        if (!kvp_there && !kv_beats.empty() && !rng.percent(kv_gap)) {
            kvp_there = true;
            memcpy(&top->kvp_data_i[0], kv_beats.front().data(), 64);
            kv_beats.pop_front();
        }
        top->kvf_valid_i = kvf_there;
        top->kvp_valid_i = kvp_there;
    }
    void take_beat() {
        if (beats++ == 0)
            first_beat = cycles;
        last_beat = cycles;
        const uint8_t *data = (const uint8_t *)&top->data_o[0];
        int here = 0;
        while (here < 64 && (top->keep_o >> here & 1))
            here++;
        for (int k = here; k < 64; k++)
            LONGS_EQUAL(0, data[k]); // nothing of another frame behind the end
        now.insert(now.end(), data, data + here);
        if (top->last_o) {
            arrived.push_back(now);
            now.clear();
        }
    }
};

Bytes inline_payload(uint64_t pay64, size_t len) {
    Bytes p;
    put(p, pay64, 8);
    p.resize(len);
    return p;
}

// One descriptor of any sort; a buffer for it is taken from memories 0 to 2.
void any_work(TxBench &b, size_t largest) {
    Rng &rng = b.rng;
    Descriptor d;
    d.hdr = random_bytes(rng, 32);
    d.retrans = rng.percent(10);
    d.job = (unsigned)rng.below(32);
    d.rank = (unsigned)rng.below(256);
    d.token = (unsigned)rng.below(256);
    switch (rng.below(5)) {
    case 0:
        d.direct = true;
        break;
    case 1:
        d.host = true;
        break;
    case 2:
        d.members = 1u << rng.below(32);
        break;
    default:
        d.members = (uint32_t)(rng.next() & rng.next()) | 1u << rng.below(32);
        break;
    }
    const unsigned way = (unsigned)rng.below(8);
    if (way == 0) { // inline, or nothing at all; perhaps it waits for a write
        d.inl = rng.percent(70);
        d.len = d.inl ? (unsigned)rng.below(3) * 4 : 0;
        d.pay64 = rng.next();
        const Bytes p = inline_payload(d.pay64, d.len);
        d.sum = internet_sum(p, 0, p.size());
        const bool waited_for =
            std::count(b.left_expected.begin(), b.left_expected.end(), d.token) > 0;
        if (rng.percent(50) && !waited_for) {
            d.wait_kv = true;
            b.top->kv_pending_i[d.token / 32] |= 1u << d.token % 32;
            b.tokens_at.push_back({b.cycles + rng.below(300), d.token});
            std::sort(b.tokens_at.begin(), b.tokens_at.end());
            if (rng.percent(20)) {
                b.bad_tokens.insert(d.token);
                b.top->kv_bad_i[d.token / 32] |= 1u << d.token % 32;
            } else {
                b.bad_tokens.erase(d.token);
                b.top->kv_bad_i[d.token / 32] &= ~(1u << d.token % 32);
            }
        }
        b.want(d, p);
        return;
    }
    if (way == 1) { // a KV read
        std::vector<KvFrame> answer;
        for (uint64_t n = 1 + rng.below(3); n > 0; n--)
            answer.push_back({random_bytes(rng, 32),
                              random_bytes(rng, 1 + rng.below(std::min<size_t>(largest, 4096))),
                              n == 1, rng.percent(15)});
        b.kv_read((unsigned)rng.below(256), answer, rng.percent(20));
        return;
    }
    const size_t size = 1 + rng.below(largest);
    const Bytes p = random_bytes(rng, size);
    d.len = (unsigned)size;
    if (way == 2) { // a result; slots are used once a batch
        d.mem = 3;
        d.buf = (unsigned)rng.below(64);
        if (b.top->res_ready_i >> d.buf & 1 || b.res_sum.count(d.buf))
            return;
        b.fill(3, d.buf, p);
        d.wait_res = true;
        d.sum = 0xBEEF; // not looked at
        b.res_sum[d.buf] = internet_sum(p, 0, size);
        b.results_at.push_back({b.cycles + rng.below(300), d.buf});
        std::sort(b.results_at.begin(), b.results_at.end());
        b.want(d, p);
        return;
    }
    d.mem = (unsigned)rng.below(3);
    if (b.free(d.mem) == 0)
        return;
    d.buf = b.take(d.mem);
    d.rel = true;
    b.readers(d.mem, d.buf, 1);
    if (way == 3) {
        d.kind = RAW;
        d.retrans = false;
        Bytes f = random_bytes(rng, 60 + size);
        d.len = (unsigned)f.size();
        d.off = 0;
        b.fill(d.mem, d.buf, f);
        b.want(d, f);
    } else {
        d.off = (unsigned)rng.below(std::min<size_t>(9216 - size, 130));
        Bytes content = random_bytes(rng, d.off);
        content.insert(content.end(), p.begin(), p.end());
        d.sum = internet_sum(p, 0, size);
        b.fill(d.mem, d.buf, content);
        b.want(d, p);
    }
}

void clear_waits(TxBench &b) {
    b.top->res_ready_i = 0;
    b.res_sum.clear();
}

} // namespace

TEST_GROUP(tx){};

TEST(tx, whatever_is_asked_for_leaves_in_order) {
    for (int way = 0; way < 6; way++) {
        TxBench b(run_seed() + way);
        b.flip = way == 1;
        b.stall = way % 3 == 0 ? 0 : way % 3 == 1 ? 40 : 85;
        b.kv_gap = way % 2 ? 50 : 0;
        b.txd_gap = way == 2 ? 80 : 0;
        if (way == 4)
            LONGS_EQUAL(0, b.take(0)); // what the rival reads
        b.top->rival_i = way == 4;
        for (int batch = 0; batch < 12; batch++) {
            for (int k = 0; k < 30; k++)
                any_work(b, b.rng.percent(90) ? 200 : 8968);
            b.drain();
            clear_waits(b);
            for (unsigned m = 0; m < 3; m++)
                LONGS_EQUAL(way == 4 && m == 0 ? 39 : 40, b.free(m));
        }
        CHECK(b.checked > 300);
        CHECK(b.unsent > 0);
    }
}

// Every payload size from every byte offset within a beat.
TEST(tx, every_size_from_every_offset) {
    TxBench b(run_seed() + 10);
    for (unsigned off = 0; off < 64; off++) {
        for (int k = 0; k < 30; k++) {
            const size_t size = k < 20 ? 1 + b.rng.below(200) : 8968 - b.rng.below(200);
            const Bytes p = random_bytes(b.rng, size);
            Descriptor d;
            d.hdr = random_bytes(b.rng, 32);
            d.host = true;
            d.mem = off % 3;
            d.buf = b.take(d.mem);
            d.off = off + 64 * (unsigned)b.rng.below(2);
            d.len = (unsigned)size;
            d.sum = internet_sum(p, 0, size);
            d.rel = true;
            b.readers(d.mem, d.buf, 1);
            Bytes content = random_bytes(b.rng, d.off);
            content.insert(content.end(), p.begin(), p.end());
            b.fill(d.mem, d.buf, content);
            b.want(d, p);
        }
        b.drain();
    }
}

// Case 32: every total length with random addresses; a UDP checksum of 0 is sent as FFFF.
TEST(tx, checksums_of_every_length) {
    const char *text = getenv("MR_TX_ADDRESSES");
    const uint64_t times = text ? strtoull(text, nullptr, 0) : 1;
    TxBench b(run_seed() + 20);
    const Bytes content = random_bytes(b.rng, 9216);
    const unsigned buf = b.take(1);
    b.fill(1, buf, content);
    uint64_t ones = 0;
    for (uint64_t t = 0; t < times; t++)
        for (size_t size = 0; size <= 8968; size += text ? 1 : 1 + b.rng.below(5)) {
            const Bytes p(content.begin() + 74, content.begin() + 74 + (long)size);
            Descriptor d;
            d.hdr = random_bytes(b.rng, 32);
            d.direct = true;
            d.rank = (unsigned)(b.todo.size() % 256); // not one that waits
            d.mem = 1;
            d.buf = buf;
            d.off = 74;
            d.len = (unsigned)size;
            d.sum = internet_sum(p, 0, size);
            b.known[d.rank] = true;
            b.nodes[d.rank].ip = (uint32_t)b.rng.next();
            b.nodes[d.rank].port = (uint16_t)b.rng.next();
            if (b.rng.percent(10)) { // the header's last two bytes make the sum come out as 0
                d.hdr[30] = d.hdr[31] = 0;
                const Bytes f = b.built(b.nodes[d.rank], d.hdr, p);
                const uint32_t sum = (uint32_t)big(f, 40, 2);
                d.hdr[30] = (uint8_t)(sum >> 8);
                d.hdr[31] = (uint8_t)sum;
                LONGS_EQUAL(0xFFFF, big(b.built(b.nodes[d.rank], d.hdr, p), 40, 2));
                ones++;
            }
            b.want(d, p);
            if (b.todo.size() > 40)
                b.drain(); // before a row changes again
        }
    b.drain();
    CHECK(ones > 50);
}

// Back to back, no gap between the first beat and the last: raw frames of one, two, three beats,
// built ones of any size, multicasts, and a mixture.
TEST(tx, a_beat_a_cycle) {
    for (int way = 0; way < 6; way++) {
        TxBench b(run_seed() + 30 + way);
        std::fill(b.known, b.known + 256, true);
        const Bytes content = random_bytes(b.rng, 9216);
        unsigned buf[3];
        for (unsigned m = 0; m < 3; m++) {
            buf[m] = b.take(m);
            b.fill(m, buf[m], content);
        }
        uint64_t beats = 0;
        for (int k = 0; k < 400; k++) {
            Descriptor d;
            d.hdr = random_bytes(b.rng, 32);
            d.direct = true;
            d.rank = (unsigned)b.rng.below(256);
            d.mem = (unsigned)b.rng.below(3);
            d.buf = buf[d.mem];
            size_t size = 0;
            switch (way) {
            case 0:
                d.kind = RAW, size = 65 + b.rng.below(64);
                break;
            case 1:
                d.kind = RAW, size = 60 + b.rng.below(5);
                break;
            case 2:
                size = b.rng.below(120);
                break;
            case 3:
                size = b.rng.below(1500);
                break;
            case 4:
                d.inl = true, size = 8, d.pay64 = b.rng.next();
                break;
            default:
                d.kind = b.rng.percent(30) ? RAW : BUILD;
                size = d.kind == RAW ? 65 + b.rng.below(300)
                                     : b.rng.below(b.rng.percent(95) ? 300 : 8968);
                d.direct = b.rng.percent(50);
                d.members = (uint32_t)b.rng.next() | 1;
                break;
            }
            d.off = d.kind == RAW || size == 0 ? 0 : (unsigned)b.rng.below(200);
            d.len = (unsigned)size;
            const Bytes p =
                d.inl ? inline_payload(d.pay64, 8)
                      : Bytes(content.begin() + d.off, content.begin() + (long)(d.off + size));
            d.sum = internet_sum(p, 0, size);
            b.want(d, p);
        }
        for (const Bytes &f : b.expected)
            beats += (f.size() + 63) / 64;
        b.drain();
        LONGS_EQUAL(beats, b.beats);
        LONGS_EQUAL(beats, b.last_beat - b.first_beat + 1);
    }
}

TEST(tx, latency) {
    uint64_t worst = 0;
    TxBench b(run_seed() + 40);
    std::fill(b.known, b.known + 256, true);
    const Bytes content = random_bytes(b.rng, 9216);
    const unsigned buf = b.take(0);
    b.fill(0, buf, content);
    for (int k = 0; k < 200; k++) {
        Descriptor d;
        d.kind = k % 4 == 0 ? RAW : BUILD;
        d.hdr = random_bytes(b.rng, 32);
        d.members = 1u << b.rng.below(32);
        d.buf = buf;
        d.off = d.kind == RAW ? 0 : (unsigned)b.rng.below(64);
        d.len = 100 + (unsigned)b.rng.below(200);
        const Bytes p(content.begin() + d.off, content.begin() + d.off + d.len);
        d.sum = internet_sum(p, 0, d.len);
        b.want(d, p);
        b.beats = 0;
        b.drain();
        worst = std::max(worst, b.first_beat - b.pushed_at);
    }
    printf("tx: first beat %llu cycles after a descriptor is at the head\n",
           (unsigned long long)worst);
    CHECK(worst <= 6);
}

// A port that never takes a beat holds what it has begun, and goes on as if nothing had been.
TEST(tx, a_port_that_stands_still) {
    TxBench b(run_seed() + 50);
    b.stall = 100;
    for (int k = 0; k < 25; k++)
        any_work(b, 300);
    for (int k = 0; k < 3000; k++)
        b.cycle();
    LONGS_EQUAL(0, b.arrived.size());
    b.stall = 0;
    b.drain();
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
