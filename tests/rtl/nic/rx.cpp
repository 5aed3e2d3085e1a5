// The receiver with its guard and buffers, against a reading of nic.md: fates, what is told to
// dispatch, what lies in the buffer; rates and latency; null beats and holes; buffers that run out;
// mutated bytes.
#include "frames.hpp"

#include "Vrx_tb.h"

#include <algorithm>
#include <deque>
#include <map>

namespace {

const size_t LARGEST = 144 * 64; // what a buffer holds
const Address OWN = {{0x02, 0x00, 0x5E, 0x10, 0x20, 0x30}, 0x0A000001, 19794};
const Address OTHER = {{0x02, 0x00, 0x5E, 0x77, 0x88, 0x99}, 0x0A0000FE, 20000};

struct Sent {
    Bytes bytes;
    bool hole = false;
};
struct Pulse {
    unsigned fate;
    size_t bytes;
};
struct Meta {
    unsigned src, buf, fate;
    bool nobuf;
    size_t bytes, millrace, payload;
    uint32_t sum;
    uint64_t first, mac;
    uint8_t header[32];
    Bytes content;
};

struct RxBench : Bench<Vrx_tb> {
    RxBench(uint64_t noise, bool from_host, bool in_chain)
        : Bench(noise), rng(noise * 7 + 1), host(from_host), chain(in_chain) {
        top->valid_i = top->last_i = top->meta_ready_i = top->hold_i = 0;
        top->keep_i = 0;
        top->ref_valid_i = top->rel_valid_i = top->rd_en_i = 0;
        top->ref_buf_i = top->rel_buf_i = top->rd_buf_i = 0;
        top->ref_count_i = 0;
        top->rd_beat_i = 0;
        top->host_i = host;
        top->chain_i = chain;
        set_own(true);
        reset();
        buffers = top->free_o;
    }
    void set_own(bool there) {
        own_there = there;
        top->own_valid_i = there;
        top->own_mac_i = OWN.mac_number();
        top->own_ip_i = OWN.ip;
        top->own_port_i = OWN.port;
    }

    Rng rng;
    bool host, chain, own_there = true;
    size_t buffers = 0;
    unsigned gap = 0, nulls = 0, stall = 0; // percent
    bool starved = false;                   // overruns are allowed
    uint64_t holes = 0, offered = 0, waits = 0;
    std::map<unsigned, uint64_t> seen; // fates

    // ---- one cycle ----
    void cycle() {
        if (!beat_there && !beats.empty() && !rng.percent(gap)) {
            beat = beats.front();
            beats.pop_front();
            beat_there = true;
        }
        top->valid_i = beat_there;
        if (beat_there) {
            memcpy(&top->data_i[0], beat.data, 64);
            top->keep_i = beat.keep;
            top->last_i = beat.last;
        }
        top->meta_ready_i = 0;
        top->rd_en_i = top->ref_valid_i = top->rel_valid_i = 0;
        settle();
        holes += top->hole_o;
        if (top->fate_valid_o)
            pulses.push_back({top->fate_o, top->fate_bytes_o});
        if (read_there) { // data of the read of the cycle before
            metas.back().content.insert(metas.back().content.end(), (uint8_t *)&top->rd_data_o[0],
                                        (uint8_t *)&top->rd_data_o[0] + 64);
            read_there = false;
        }
        if (reading == 0 && top->meta_valid_o && !rng.percent(stall)) {
            top->meta_ready_i = 1;
            take_meta();
        }
        if (reading > 0) {
            const Meta &m = metas.back();
            top->rd_en_i = 1;
            top->rd_buf_i = m.buf;
            top->rd_beat_i = read_at++;
            read_there = true;
            if (--reading == 0)
                finish(m.buf);
        }
        if (!refs.empty()) {
            top->ref_valid_i = 1;
            top->ref_buf_i = refs.front().first;
            top->ref_count_i = refs.front().second;
            refs.pop_front();
        }
        if (!rels.empty() && rels.front().first <= cycles) {
            top->rel_valid_i = 1;
            top->rel_buf_i = rels.front().second;
            rels.pop_front();
        }
        settle();
        if (beat_there && top->ready_o) {
            beat_there = false;
            offered++;
            last_in = beat.last ? cycles : last_in;
        } else if (beat_there) {
            waits++;
        }
        tick();
    }

    // ---- frames in ----
    void send(const Bytes &f) { send(Sent{f, false}); }
    void send(const Sent &s) {
        frames.push_back(s);
        const size_t count = (s.bytes.size() + 63) / 64;
        const size_t holed = s.hole ? rng.below(count) : count;
        for (size_t b = 0; b < count; b++) {
            while (rng.percent(nulls))
                null_beat(false);
            Beat x;
            const size_t here = std::min<size_t>(64, s.bytes.size() - b * 64);
            const Bytes noise = random_bytes(rng, 64 - here);
            memcpy(x.data, &s.bytes[b * 64], here);
            if (here < 64)
                memcpy(x.data + here, noise.data(), 64 - here);
            x.keep = here == 64 ? ~0ull : (1ull << here) - 1;
            x.last = b + 1 == count;
            if (b == holed) {
                if (x.keep == 1 || (!x.last && rng.percent(30)))
                    x.keep = x.last ? 2 : 0xFFFF; // not from byte 0, or not full before the last
                else
                    x.keep &= ~1ull;
            }
            if (x.last && rng.percent(nulls)) { // TLAST on a null beat
                x.last = false;
                beats.push_back(x);
                while (rng.percent(nulls))
                    null_beat(false);
                null_beat(true);
            } else {
                beats.push_back(x);
            }
        }
        if (rng.percent(nulls) && rng.percent(20))
            null_beat(true); // a frame of nothing
    }

    // ---- the verdict: every frame sent has one outcome, in order ----
    void drain() {
        size_t quiet = 0, most = 2000000;
        while (quiet < 20 && most-- > 0) {
            cycle();
            const bool idle = beats.empty() && !beat_there && reading == 0 && !read_there &&
                              refs.empty() && rels.empty() && !top->busy_o;
            quiet = idle ? quiet + 1 : 0;
        }
        CHECK_TEXT(quiet == 20, "the receiver hangs");
        match();
        LONGS_EQUAL(buffers, top->free_o);
        CHECK_FALSE(fired());
    }
    void match() {
        uint64_t bad = 0;
        for (const Sent &s : frames) {
            if (s.hole) {
                bad++;
                continue;
            }
            const Reading r = read_frame(s.bytes, own_there ? &OWN : nullptr);
            bool on = r.fate == MR_NIC_FATE_NONE;
            bool leaves = false;
            if (host) {
                const bool mine = own_there && big(s.bytes, 0, 6) == OWN.mac_number();
                leaves = r.fate == MR_NIC_CNT_NOT_MINE || r.fate == MR_NIC_CNT_NOT_IP ||
                         ((r.fate == MR_NIC_CNT_BAD_IP_CHECKSUM || r.fate == MR_NIC_CNT_FRAGMENT) &&
                          !mine);
            } else if (chain) {
                leaves = r.fate == MR_NIC_CNT_NOT_MINE;
            }
            on = on || leaves;
            seen[on ? (leaves ? 100u : (unsigned)MR_NIC_FATE_NONE) : r.fate]++;
            if (on && (!starved || (!metas.empty() && is_of(metas.front(), s, r, leaves)))) {
                CHECK_TEXT(!metas.empty(), "a frame without its record");
                compare(metas.front(), s, r, leaves);
                metas.pop_front();
                continue;
            }
            CHECK_TEXT(!pulses.empty(), "a frame without a fate");
            LONGS_EQUAL(on ? (unsigned)MR_NIC_CNT_OVERRUN : r.fate, pulses.front().fate);
            LONGS_EQUAL(s.bytes.size(), pulses.front().bytes);
            overruns += on;
            pulses.pop_front();
        }
        CHECK(metas.empty());
        CHECK(pulses.empty());
        LONGS_EQUAL(bad, holes);
        holes = 0;
        frames.clear();
    }

    uint64_t last_in = 0, overruns = 0, without = 0, beyond = 0;

private:
    struct Beat {
        uint8_t data[64];
        uint64_t keep;
        bool last;
    };
    std::deque<Beat> beats;
    Beat beat = {};
    bool beat_there = false, read_there = false;
    std::deque<Sent> frames;
    std::deque<Pulse> pulses;
    std::deque<Meta> metas;
    std::deque<std::pair<unsigned, unsigned>> refs;
    std::deque<std::pair<uint64_t, unsigned>> rels;
    size_t reading = 0, read_at = 0;
    unsigned readers = 0;

    void null_beat(bool last) {
        Beat x;
        memset(x.data, 0xEE, 64);
        x.keep = 0;
        x.last = last;
        beats.push_back(x);
    }
    void take_meta() {
        Meta m;
        m.src = top->meta_src_o;
        m.buf = top->meta_buf_o;
        m.fate = top->meta_fate_o;
        m.nobuf = top->meta_nobuf_o;
        m.bytes = top->meta_bytes_o;
        m.millrace = top->meta_mr_off_o;
        m.payload = top->meta_pay_len_o;
        m.sum = top->meta_sum_o;
        m.first = top->meta_pay0_o;
        m.mac = top->meta_dst_mac_o;
        for (int b = 0; b < 32; b++)
            m.header[b] = ((uint8_t *)&top->meta_hdr_o[0])[31 - b];
        metas.push_back(m);
        if (m.nobuf)
            return;
        reading = (m.bytes + 63) / 64;
        read_at = 0;
        readers = (unsigned)rng.below(starved ? 4 : 2); // one release a cycle
        if (readers > 0)
            refs.push_back({m.buf, readers});
    }
    void finish(unsigned buf) {
        if (readers == 0)
            refs.push_back({buf, 0});
        for (unsigned k = 0; k < readers; k++)
            rels.push_back({cycles + 3, buf});
    }
    static uint64_t payload_start(const Sent &s, const Reading &r) {
        return big(s.bytes, r.millrace + 32, (int)std::min<size_t>(8, r.payload))
               << 8 * (8 - std::min<size_t>(8, r.payload));
    }
    static bool is_of(const Meta &m, const Sent &s, const Reading &r, bool leaves) {
        if (m.bytes != s.bytes.size() || m.mac != big(s.bytes, 0, 6))
            return false;
        if (leaves)
            return m.fate == MR_NIC_CNT_NOT_MINE &&
                   (m.nobuf || memcmp(m.content.data(), s.bytes.data(), m.bytes) == 0);
        return m.fate == MR_NIC_FATE_NONE && memcmp(m.header, &s.bytes[r.millrace], 32) == 0 &&
               m.sum == internet_sum(s.bytes, r.millrace + 32, r.payload);
    }
    void compare(const Meta &m, const Sent &s, const Reading &r, bool leaves) {
        LONGS_EQUAL(host ? 2 : 1, m.src);
        LONGS_EQUAL(s.bytes.size(), m.bytes);
        CHECK(m.mac == big(s.bytes, 0, 6));
        LONGS_EQUAL(leaves ? (unsigned)MR_NIC_CNT_NOT_MINE : (unsigned)MR_NIC_FATE_NONE, m.fate);
        static const uint8_t nothing[32] = {};
        MEMCMP_EQUAL(leaves ? nothing : &s.bytes[r.millrace], m.header, 32);
        LONGS_EQUAL(leaves ? 0 : r.millrace, m.millrace);
        LONGS_EQUAL(leaves ? 0 : r.payload, m.payload);
        LONGS_EQUAL(leaves ? 0 : internet_sum(s.bytes, r.millrace + 32, r.payload), m.sum);
        CHECK(m.first == (leaves || r.payload == 0 ? 0 : payload_start(s, r)));
        if (s.bytes.size() > LARGEST) {
            CHECK(m.nobuf);
            beyond++;
            return;
        }
        without += m.nobuf;
        if (m.nobuf) {
            CHECK(starved);
            return;
        }
        CHECK(m.buf < buffers);
        MEMCMP_EQUAL(s.bytes.data(), m.content.data(), m.bytes);
    }
};

// A good frame with a payload of about `size`, every freedom of the format used.
Recipe good(Rng &rng, size_t size) {
    Recipe r;
    r.to = OWN;
    r.from = OTHER;
    r.vlan = rng.percent(30);
    if (rng.percent(30))
        r.options = random_bytes(rng, 4 * rng.below(11));
    size_t payload;
    const Millrace m = random_header(rng, size, payload);
    m.append(r.datagram);
    const Bytes p = random_bytes(rng, payload);
    r.datagram.insert(r.datagram.end(), p.begin(), p.end());
    r.sum_udp = !rng.percent(10);
    r.filler = (uint8_t)rng.next();
    if (rng.percent(20))
        r.slack = rng.below(20);
    if (rng.percent(20))
        r.padding = rng.below(80);
    return r;
}

size_t some_size(Rng &rng) {
    switch (rng.below(10)) {
    case 0:
        return 8900 + rng.below(68);
    case 1:
        return rng.below(8968);
    default:
        return rng.below(300);
    }
}

// A frame bent in one of many ways; its checksums are often mended so that the later checks are
// reached.
Bytes bent(Rng &rng) {
    Recipe r = good(rng, some_size(rng));
    const size_t head = 14 + 4 * r.vlan + 20 + r.options.size() + 8;
    switch (rng.below(20)) {
    case 0:
        r.to.mac[rng.below(6)] ^= (uint8_t)(1 << rng.below(8));
        break;
    case 1:
        r.to.ip ^= 1u << rng.below(32);
        break;
    case 2:
        r.to.port ^= (uint16_t)(1 << rng.below(16));
        break;
    case 3:
        r.frag = (unsigned)rng.below(65536);
        break;
    case 4:
        r.protocol = (unsigned)rng.below(256);
        break;
    case 5:
        r.ip_len_off = (int)rng.below(200) - 100;
        break;
    case 6:
        r.udp_len_off = (int)rng.below(200) - 100;
        break;
    case 7:
        r.udp_len_off = (int)rng.below(65536) - (int)r.datagram.size() - 8;
        break;
    case 8:
        r.datagram.resize(rng.below(60));
        break;
    case 9:
        r.datagram.resize(8900 + rng.below(400), 0x5A);
        break;
    case 10:
        r.datagram[rng.below(r.datagram.size() < 32 ? r.datagram.size() : 32)] =
            (uint8_t)rng.next();
        break;
    case 11:
        r.datagram.resize(r.datagram.size() + 1 + rng.below(3), 0xC3);
        break;
    case 13:
        r.datagram[0] = (uint8_t)rng.next();
        break;
    case 14:
        r.datagram[1] = (uint8_t)rng.below(16);
        break;
    case 15:
        r.datagram[rng.percent(50) ? 2 : 7] = (uint8_t)rng.next();
        break;
    case 12:
        r.padding = rng.percent(30) ? 9000 + rng.below(60000) : rng.below(300);
        break;
    default:
        break;
    }
    Bytes f = r.build();
    switch (rng.below(10)) {
    case 0:
        f[rng.below(std::min(f.size(), head + 32))] ^= (uint8_t)(1 << rng.below(8));
        break;
    case 1:
        f[rng.below(f.size())] = (uint8_t)rng.next();
        break;
    case 2:
        f.resize(1 + rng.below(f.size()));
        break;
    case 3:
        f.resize(1 + rng.below(130), 0x77);
        break;
    case 4:
        f[12] = 0x81, f[13] = 0;
        break;
    case 5:
        f[14 + 4 * (f[12] == 0x81)] = (uint8_t)rng.next();
        break;
    default:
        break;
    }
    return f;
}

} // namespace

TEST_GROUP(rx){};

TEST(rx, frames_of_every_length_back_to_back) {
    RxBench b(run_seed(), false, false);
    std::vector<size_t> lengths;
    for (size_t n = 1; n <= 9400; n++)
        lengths.push_back(n);
    for (size_t n = 20000; n < 131072; n += 17001)
        lengths.push_back(n); // beyond what any length field can say
    for (size_t k = lengths.size(); k > 1; k--)
        std::swap(lengths[k - 1], lengths[b.rng.below(k)]);
    uint64_t beats = 0, cycles = 0;
    for (size_t at = 0; at < lengths.size(); at += 200) {
        for (size_t k = at; k < std::min(lengths.size(), at + 200); k++) {
            const size_t n = lengths[k];
            beats += (n + 63) / 64;
            Recipe r = good(b.rng, 0);
            r.options.clear();
            r.vlan = false;
            r.slack = r.padding = 0;
            r.datagram.clear();
            if (n >= 75 && n <= 42 + 32 + 4096) { // a KV block can have any length
                Millrace m;
                m.opcode = MR_NIC_OP_KV_WRITE;
                m.append(r.datagram);
            }
            const Bytes rest =
                random_bytes(b.rng, n > 42 + r.datagram.size() ? n - 42 - r.datagram.size() : 0);
            r.datagram.insert(r.datagram.end(), rest.begin(), rest.end());
            if (n > 4300) {
                Millrace m;
                m.opcode = MR_NIC_OP_QUERY;
                m.dim = (unsigned)(n - 74) / 2 % 65536; // odd lengths are truncated then
                Bytes h;
                m.append(h);
                std::copy(h.begin(), h.end(), r.datagram.begin());
            }
            Bytes f = r.build();
            f.resize(n);
            b.send(f);
        }
        const uint64_t before = b.offered, start = b.cycles;
        while (b.offered - before < beats)
            b.cycle();
        cycles += b.cycles - start;
        LONGS_EQUAL(b.cycles - start, beats); // a beat a cycle, never a wait
        beats = 0;
        b.drain();
    }
    LONGS_EQUAL(0, b.waits);
    CHECK(b.seen[MR_NIC_FATE_NONE] > 6000);
    CHECK(b.seen[MR_NIC_CNT_TOO_LONG] > 100);
}

TEST(rx, lone_beats_back_to_back) {
    for (int host = 0; host < 2; host++) {
        RxBench b(run_seed() + host, host, false);
        b.starved = host; // the bench reads one a cycle, so does the port
        for (int k = 0; k < 3000; k++) {
            Recipe r = good(b.rng, 0);
            r.to = OTHER;
            r.datagram.resize(18);
            Bytes f = r.build();
            f.resize(50 + b.rng.below(15), 0xAB);
            b.send(f);
        }
        const uint64_t start = b.cycles;
        while (b.offered < 3000)
            b.cycle();
        LONGS_EQUAL(3000, b.cycles - start);
        b.drain();
    }
}

TEST(rx, latency) {
    RxBench b(run_seed() + 9, false, false);
    uint64_t worst = 0;
    for (int k = 0; k < 300; k++) {
        b.send(good(b.rng, some_size(b.rng)).build());
        while (!b.top->meta_valid_o)
            b.cycle();
        worst = std::max(worst, b.cycles - b.last_in);
        b.drain();
    }
    printf("rx: record %llu cycles after the last beat\n", (unsigned long long)worst);
    CHECK(worst <= 8);
}

// Cases 26, 29, 33, 37 and 38 of the collected failures among others: null beats and holes, frames
// beyond a buffer, padding, fragments, options, runts.
TEST(rx, bent_frames_have_the_fate_of_nic_md) {
    std::map<unsigned, uint64_t> seen;
    uint64_t beyond = 0;
    for (int way = 0; way < 6; way++) {
        RxBench b(run_seed() + 100 + way, way == 2, way == 1 || way == 4);
        b.gap = way == 3 ? 30 : 0;
        b.nulls = way >= 3 ? 20 : 0;
        b.stall = way == 5 ? 40 : 0;
        b.set_own(way != 4);
        for (int batch = 0; batch < 15; batch++) {
            for (int k = 0; k < 60; k++)
                b.send(Sent{bent(b.rng), way >= 3 && b.rng.percent(10)});
            b.starved = way == 5;
            b.drain();
        }
        for (auto &s : b.seen)
            seen[s.first] += s.second;
        beyond += b.beyond;
    }
    for (unsigned fate = MR_NIC_CNT_RUNT; fate <= MR_NIC_CNT_TOO_LONG; fate++)
        if (fate != MR_NIC_CNT_PASSED)
            CHECK_TEXT(seen[fate] >= 5, mr_nic_counter_name(fate));
    CHECK(seen[100] >= 50);
    CHECK(beyond >= 20);
}

// Case 31. A header's unfolded sum is a multiple of 0xFFFF; each multiple that a header can have
// must pass.
TEST(rx, header_sums_with_every_carry) {
    RxBench b(run_seed() + 200, false, false);
    std::map<uint64_t, int> carries;
    const auto send = [&](Recipe &r) {
        r.to = OWN;
        const Bytes f = r.build();
        uint64_t sum = 0;
        for (size_t k = 0; k < 20 + r.options.size(); k += 2)
            sum += big(f, 14 + k, 2);
        LONGS_EQUAL(0, sum % 0xFFFF);
        carries[sum / 0xFFFF]++;
        LONGS_EQUAL(MR_NIC_FATE_NONE, read_frame(f, &OWN).fate);
        b.send(f);
        return f;
    };
    for (int ones = 0; ones <= 20; ones++) {
        for (int k = 0; k < 20; k++) {
            Recipe r = good(b.rng, 20);
            r.vlan = false;
            r.slack = r.padding = 0;
            r.from.ip =
                k % 2 ? 0xFFFFFFFF : (uint32_t)b.rng.below(4); // broadcast, or hardly anything
            r.options.assign(40, 0);
            for (int w = 0; w < 2 * ones; w++)
                r.options[(size_t)w] = 0xFF;
            if (ones == 0)
                r.options.clear();
            send(r);
        }
        b.drain();
    }
    for (uint64_t c = 2; c <= 23; c++)
        CHECK(carries[c] > 0);
    Recipe r = good(b.rng, 20);
    r.vlan = false;
    const Bytes f = send(r);
    for (size_t bit = 0; bit < 8 * (20 + r.options.size()); bit++) {
        Bytes g = f;
        g[14 + bit / 8] ^= (uint8_t)(1 << bit % 8);
        const bool length =
            bit < 4; // another IHL sums other bytes; nic.md's fate is then what it is
        if (!length)
            LONGS_EQUAL(MR_NIC_CNT_BAD_IP_CHECKSUM, read_frame(g, &OWN).fate);
        b.send(g);
    }
    b.drain();
}

// The sum that is handed on, near the ends of its range: the payload's last word makes it come out
// as wanted.
TEST(rx, payload_sums_at_their_ends) {
    RxBench b(run_seed() + 250, false, false);
    for (uint32_t want : {0x0001u, 0x0002u, 0x0100u, 0x0200u, 0x0300u, 0xFFFEu, 0xFFFFu, 0xFEFFu})
        for (int k = 0; k < 60; k++) {
            Recipe r;
            r.to = OWN;
            r.from = OTHER;
            Millrace m;
            m.opcode = MR_NIC_OP_KV_WRITE;
            m.append(r.datagram);
            const size_t size = 2 * (1 + b.rng.below(600));
            Bytes p = random_bytes(b.rng, size);
            if (k % 4 == 0)
                std::fill(p.begin(), p.end(), 0xFF);
            p[size - 2] = p[size - 1] = 0;
            const uint32_t sum = internet_sum(p, 0, size);
            const uint32_t last = (want + 0xFFFF - sum) % 0xFFFF;
            p[size - 2] = (uint8_t)(last >> 8);
            p[size - 1] = (uint8_t)last;
            r.datagram.insert(r.datagram.end(), p.begin(), p.end());
            b.send(r.build());
        }
    b.drain();
}

// Case 33. Padding is neither length nor payload, and UDP must lie within IP.
TEST(rx, short_datagrams_in_padded_frames) {
    RxBench b(run_seed() + 300, false, false);
    for (size_t n = 0; n <= 40; n++)
        for (int vlan = 0; vlan < 2; vlan++)
            for (int lie = -2; lie <= 2; lie++) {
                Recipe r;
                r.to = OWN;
                r.from = OTHER;
                r.vlan = vlan;
                Millrace m;
                m.opcode = n % 2 ? MR_NIC_OP_BARRIER : MR_NIC_OP_KV_WRITE;
                m.append(r.datagram);
                r.datagram.resize(n, 0x11);
                r.filler = 0xA7;
                r.udp_len_off = lie;
                b.send(r.build());
            }
    b.drain();
}

// Cases 35 and 36.
TEST(rx, tagged_frames_of_full_length_keep_their_end) {
    RxBench b(run_seed() + 400, false, false);
    for (int vlan = 0; vlan < 2; vlan++)
        for (size_t options = 0; options <= 40; options += 4)
            for (int over = -2; over <= 1; over++) {
                Recipe r;
                r.to = OWN;
                r.from = OTHER;
                r.vlan = vlan;
                r.options = random_bytes(b.rng, options);
                Millrace m;
                m.dim = (9000 - 32) / 2;
                m.append(r.datagram);
                const Bytes p = random_bytes(b.rng, (size_t)(9000 - 32 + over));
                r.datagram.insert(r.datagram.end(), p.begin(), p.end());
                b.send(r.build());
                // two tags: not IP, dropped whole
                Bytes f = r.build();
                f.insert(f.begin() + 12, {0x81, 0, 0, 7});
                if (vlan)
                    b.send(f);
            }
    b.drain();
    LONGS_EQUAL(22, b.seen[MR_NIC_FATE_NONE]);
    LONGS_EQUAL(22, b.seen[MR_NIC_CNT_TOO_LONG]);
    LONGS_EQUAL(44, b.seen[MR_NIC_CNT_TRUNCATED]);
    LONGS_EQUAL(44, b.seen[MR_NIC_CNT_NOT_IP]);
}

// Case 29: what does not fit is dropped and counted.
TEST(rx, a_burst_without_buffers_is_dropped_whole) {
    RxBench b(run_seed() + 500, false, true);
    b.starved = true;
    b.stall = 97;
    for (int batch = 0; batch < 4; batch++) {
        for (int k = 0; k < 600; k++)
            b.send(b.rng.percent(80) ? good(b.rng, b.rng.below(400)).build() : bent(b.rng));
        b.drain();
    }
    CHECK(b.without > 50);
    CHECK(b.overruns > 50);
}

TEST(rx, a_held_port_finishes_its_frame) {
    RxBench b(run_seed() + 600, true, false);
    for (int k = 0; k < 20; k++)
        b.send(good(b.rng, 500).build());
    for (int k = 0; k < 4; k++)
        b.cycle();
    b.top->hold_i = 1;
    for (int k = 0; k < 200; k++)
        b.cycle();
    const uint64_t taken = b.offered;
    CHECK(taken < 20);
    for (int k = 0; k < 50; k++)
        b.cycle();
    LONGS_EQUAL(taken, b.offered);
    CHECK_FALSE(b.top->busy_o); // no frame is stuck half way
    b.top->hold_i = 0;
    b.drain();
}

// Random and mutated bytes: every frame has one fate, nothing hangs, no buffer is lost.
TEST(rx, mutated_bytes) {
    const char *text = getenv("MR_FUZZ_BYTES");
    const uint64_t total = text ? strtoull(text, nullptr, 0) : 20000000;
    uint64_t done = 0, frames = 0;
    for (uint64_t round = 0; done < total; round++) {
        RxBench b(run_seed() + 1000 + round, round % 3 == 2, round % 3 == 1);
        b.gap = round % 2 ? 20 : 0;
        b.nulls = round % 4 == 3 ? 10 : 0;
        b.stall = round % 5 == 4 ? 50 : 0;
        b.starved = true;
        for (int batch = 0; batch < 20 && done < total; batch++) {
            for (int k = 0; k < 60; k++) {
                Bytes f;
                switch (b.rng.below(4)) {
                case 0:
                    f = random_bytes(b.rng, 1 + b.rng.below(b.rng.percent(90) ? 200 : 10000));
                    break;
                case 1:
                    f = bent(b.rng);
                    break;
                default:
                    f = bent(b.rng);
                    for (uint64_t n = b.rng.below(6); n > 0; n--)
                        f[b.rng.below(b.rng.percent(70) ? std::min<size_t>(f.size(), 130)
                                                        : f.size())] = (uint8_t)b.rng.next();
                    break;
                }
                done += f.size();
                frames++;
                b.send(Sent{f, b.rng.percent(3)});
            }
            b.drain();
        }
    }
    printf("rx: %llu bytes in %llu frames\n", (unsigned long long)done, (unsigned long long)frames);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
