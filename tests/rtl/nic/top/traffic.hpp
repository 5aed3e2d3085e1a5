// Random traffic for one NIC: every opcode, mostly sensible, with contributions that meet, repeat,
// disagree and come late, KV reads and writes, acknowledgements of what the NIC sent, frames of the
// own host, and frames with damage.
#ifndef MR_TESTS_RTL_NIC_TOP_TRAFFIC_HPP
#define MR_TESTS_RTL_NIC_TOP_TRAFFIC_HPP

#include <algorithm>
#include <cmath>

#include "tests/rtl/nic/top/nic.hpp"

inline Address address_of(unsigned rank) {
    Address a;
    a.mac = {2, 0, 0, 0, 0, (uint8_t)rank};
    a.ip = 0x0A000001 + rank;
    a.port = (uint16_t)(19794 + (rank == 5 ? 3 : 0));
    return a;
}

inline World usual_world(unsigned rank, unsigned nodes = 10) {
    World w;
    w.rank = rank;
    for (unsigned r = 0; r < nodes; r++)
        w.nodes.push_back({address_of(r), r % 3 == 1});
    w.jobs = {{1, {0, 1, 2, 3}, rank < 4 ? rank : 0},
              {2, {0, 1, 2, 3, 4, 5, 6, 7}, 0},
              {3, {1, 4, 5}, 4},
              {700, {(uint8_t)rank}, rank},
              {9, {2, 8, 200}, 2}}; // 200 has no row in the node table
    w.entries = {{1, 0, 7, 3, 4096, 2, {2, 3}},     {1, 0, 8, 3, 3 * 4096 + 100, 1, {0, 1, 2, 3}},
                 {1, 1, 7, 0, 17, 3, {3}},          {2, 5, 0, 0xFFFFFFF0u, 65536, 2, {2, 4, 7}},
                 {2, 5, 1, 9, 20000, 6, {1, 2, 6}}, {3, 0, 0, 1, 8192, 5, {4, 5}},
                 {2, 5, 2, 9, 4095, 6, {6, 7}}};
    return w;
}

// A frame of `from` to `to` with a Millrace header and payload.
inline Bytes frame(const Address &from, const Address &to, const Millrace &m,
                   const Bytes &payload) {
    Recipe r;
    r.from = from;
    r.to = to;
    m.append(r.datagram);
    r.datagram.insert(r.datagram.end(), payload.begin(), payload.end());
    return r.build();
}

inline size_t vector_bytes(const Millrace &m, size_t stat) {
    return (m.heads * stat + 63) / 64 * 64 + (size_t)m.heads * m.dim * (m.dtype <= 2 ? 2 : 4);
}

inline void put_float(Bytes &b, size_t at, float v) {
    uint32_t u;
    memcpy(&u, &v, 4);
    for (int k = 0; k < 4; k++)
        b[at + k] = (uint8_t)(u >> (24 - 8 * k));
}

// A PARTIAL's payload: statistics like those of attention, some heads empty, the rest noise of any
// kind.
inline Bytes partial_payload(Rng &rng, const Millrace &m) {
    Bytes b = random_bytes(rng, vector_bytes(m, 8));
    for (unsigned h = 0; h < m.heads; h++) {
        float v = (float)((double)(int64_t)rng.next() / 9.2e18 * (rng.percent(50) ? 4 : 1e4));
        float d = 0.5f + (float)rng.below(1000);
        if (rng.percent(15)) {
            v = -INFINITY;
            d = 0;
        }
        if (rng.percent(1))
            v = NAN;
        put_float(b, 8 * h, v);
        put_float(b, 8 * h + 4, d);
    }
    if (rng.percent(80)) // mostly numbers of a usual size
        for (size_t at = (m.heads * 8 + 63) / 64 * 64, e = m.dtype <= 2 ? 2 : 4; at < b.size();
             at += e) {
            if (m.dtype == 2)
                b[at] = (uint8_t)((b[at] & 0x83) | 0x38);
            else
                b[at] = (uint8_t)((b[at] & 0x80) | 0x3E | (b[at] & 1));
        }
    return b;
}

class Traffic {
public:
    Traffic(uint64_t seed, const World &w) : rng(seed), world_(w) {}
    Rng rng;
    size_t largest = 600; // payload bytes that are aimed at, with a rare full one
    unsigned damage = 6;  // per cent of frames
    unsigned drift = 4;   // per cent: requests move on

    // The next frame, and where it comes from.
    Bytes next(int &source) {
        source = rng.percent(25) ? HOST : (int)rng.below(2);
        if (rng.percent(drift))
            base_++;
        if (!answers_.empty() && rng.percent(25))
            return answer();
        if (!recent_.empty() && rng.percent(5)) {
            const std::pair<int, Bytes> again = recent_[rng.below(recent_.size())];
            source = again.first;
            return again.second;
        }
        Bytes f = make(source);
        if (rng.percent(damage))
            damage_frame(f);
        recent_.emplace_back(source, f);
        if (recent_.size() > 64)
            recent_.erase(recent_.begin());
        return f;
    }
    // What the NIC has sent: reliable results are acknowledged, or not.
    void saw(const Bytes &f) {
        if (f.size() < 74)
            return;
        const unsigned op = f[43];
        if ((op != MR_NIC_OP_MERGED && op != MR_NIC_OP_RESULT && op != MR_NIC_OP_BARRIER) ||
            !(f[45] & MR_NIC_FL_RELIABLE) || rng.percent(10))
            return;
        for (unsigned r = 0; r < world_.nodes.size(); r++)
            if (!memcmp(f.data(), world_.nodes[r].at.mac.data(), 6) && r != world_.rank)
                answers_.emplace_back(r, f);
    }

private:
    const Address &own() const { return world_.nodes[world_.rank].at; }
    Bytes answer() {
        const size_t at = rng.below(answers_.size());
        const std::pair<unsigned, Bytes> a = answers_[at];
        answers_.erase(answers_.begin() + (long)at);
        Millrace m = header_of(a.second);
        m.dtype = m.opcode;
        m.opcode = MR_NIC_OP_ACK;
        m.flags = 0;
        m.shard = a.first;
        m.heads = m.dim = 0;
        return frame(address_of(a.first), own(), m, {});
    }
    static Millrace header_of(const Bytes &f) {
        Millrace m;
        const size_t at = 42;
        m.opcode = f[at + 1];
        m.dtype = f[at + 2];
        m.flags = f[at + 3];
        m.job = (unsigned)big(f, at + 4, 2);
        m.shard = f[at + 6];
        m.shards = f[at + 7];
        m.request = (uint32_t)big(f, at + 8, 4);
        m.layer = (unsigned)big(f, at + 12, 2);
        m.head0 = (unsigned)big(f, at + 14, 2);
        m.heads = (unsigned)big(f, at + 16, 2);
        m.dim = (unsigned)big(f, at + 18, 2);
        m.epoch = (uint32_t)big(f, at + 20, 4);
        m.block = (uint32_t)big(f, at + 24, 4);
        m.offset = (uint32_t)big(f, at + 28, 4);
        return m;
    }
    size_t size() {
        if (rng.percent(2))
            return 8968;
        return 1 + rng.below(rng.percent(50) ? 100 : largest);
    }
    void shape(Millrace &m, size_t stat, uint64_t choice) {
        Rng r(choice);
        m.dtype = 1 + (unsigned)r.below(3);
        const size_t e = m.dtype <= 2 ? 2 : 4;
        const size_t want = r.percent(3) ? 8968 : 1 + r.below(largest);
        m.heads = 1 + (unsigned)r.below(9);
        const size_t fixed = (m.heads * stat + 63) / 64 * 64;
        m.dim = want > fixed ? (unsigned)((want - fixed) / m.heads / e) : 1;
        m.dim = m.dim ? m.dim : 1;
    }
    Bytes make(int source) {
        Millrace m;
        Bytes payload;
        const World::Job &job = world_.jobs[rng.below(world_.jobs.size())];
        m.job = rng.percent(1) ? 4711 : job.job;
        m.shard =
            rng.percent(2) ? (unsigned)rng.below(256) : job.members[rng.below(job.members.size())];
        if (source == HOST && rng.percent(80))
            m.shard = world_.rank;
        m.shards = (unsigned)job.members.size();
        m.request = base_ + (uint32_t)rng.below(6);
        if (rng.percent(2))
            m.request -= (uint32_t)rng.below(140);
        m.layer = (unsigned)rng.below(2);
        m.epoch = (uint32_t)rng.below(5);
        m.flags = (unsigned)rng.below(256) & 0x4C & (unsigned)rng.next();
        const unsigned kind = (unsigned)rng.below(100);
        if (kind < 55)
            contribution(m, payload);
        else if (kind < 75)
            kv(m, payload);
        else if (kind < 83)
            m.opcode = MR_NIC_OP_QUERY;
        else if (kind < 86)
            m.opcode = MR_NIC_OP_MERGED;
        else if (kind < 89)
            m.opcode = MR_NIC_OP_RESULT;
        else if (kind < 91) {
            m.opcode = MR_NIC_OP_BARRIER;
            m.flags |= MR_NIC_FL_LAST;
        } else if (kind < 93) {
            m.opcode = MR_NIC_OP_NACK;
            m.dtype = 1 + (unsigned)rng.below(9);
            payload = random_bytes(rng, 8);
        } else if (kind < 95) {
            m.opcode = MR_NIC_OP_ACK;
            m.dtype = 1 + (unsigned)rng.below(9);
        } else if (source == HOST) { // for somebody else altogether
            Bytes f = random_bytes(rng, 60 + rng.below(400));
            if (rng.percent(50))
                memcpy(f.data(), address_of((unsigned)rng.below(12)).mac.data(), 6);
            return f;
        } else {
            m.opcode = (unsigned)rng.below(13);
            payload = random_bytes(rng, size());
        }
        if (m.opcode == MR_NIC_OP_QUERY || m.opcode == MR_NIC_OP_MERGED ||
            m.opcode == MR_NIC_OP_RESULT) {
            const size_t stat = m.opcode == MR_NIC_OP_MERGED ? 4 : 0;
            shape(m, stat, rng.next());
            if (m.opcode == MR_NIC_OP_RESULT) {
                m.dim = m.dim * m.heads;
                m.heads = 1;
            }
            payload = random_bytes(rng, vector_bytes(m, stat));
        }
        Recipe r;
        r.from = address_of(source == HOST ? world_.rank : (unsigned)rng.below(10));
        r.to = source == HOST && rng.percent(15) ? address_of((unsigned)rng.below(10)) : own();
        r.vlan = rng.percent(10);
        r.options = random_bytes(rng, rng.percent(10) ? 4 * rng.below(11) : 0);
        m.append(r.datagram);
        r.datagram.insert(r.datagram.end(), payload.begin(), payload.end());
        r.sum_udp = !rng.percent(10);
        r.slack = rng.percent(5) ? rng.below(20) : 0;
        r.padding = rng.percent(5) ? rng.below(80) : 0;
        r.filler = (uint8_t)rng.next();
        return r.build();
    }
    void contribution(Millrace &m, Bytes &payload) {
        m.head0 = (unsigned)rng.below(2) * 8;
        m.block = (uint32_t)rng.below(2);
        // what the operation is follows from its key, so that contributions mostly agree
        const uint64_t choice =
            (uint64_t)m.request * 1000003 + m.job * 977 + m.layer * 31 + m.head0 * 7 + m.block;
        Rng r(choice);
        const unsigned kind = (unsigned)r.below(10);
        if (r.percent(20))
            m.shards = 1 + (unsigned)r.below(m.shards);
        if (kind < 6) {
            m.opcode = MR_NIC_OP_PARTIAL;
            shape(m, 8, choice + 1);
            payload = partial_payload(rng, m);
        } else if (kind < 9) {
            m.opcode = MR_NIC_OP_REDUCE;
            shape(m, 0, choice + 1);
            m.dim *= m.heads;
            m.heads = 1;
            if (r.percent(25) && vector_bytes(m, 0) < 4000)
                m.dtype = MR_NIC_DT_INT32;
            m.flags |= (unsigned)r.below(3) << 4;
            payload = random_bytes(rng, vector_bytes(m, 0));
        } else {
            m.opcode = MR_NIC_OP_BARRIER;
            m.dtype = 0;
            if (rng.percent(90)) {
                m.head0 = m.layer = 0;
                m.block = 0;
            }
        }
        if (rng.percent(3)) { // somebody disagrees
            m.dtype = 1 + (unsigned)rng.below(3);
            m.shards = 1 + (unsigned)rng.below(8);
        }
    }
    void kv(Millrace &m, Bytes &payload) {
        const World::Entry &e = world_.entries[rng.below(world_.entries.size())];
        if (!rng.percent(5)) {
            m.job = e.job;
            m.layer = e.layer;
            m.block = e.block;
            for (const World::Job &j : world_.jobs)
                if (j.job == e.job && !rng.percent(3))
                    m.shard = j.members[rng.below(j.members.size())];
        }
        m.epoch = rng.percent(10) ? e.epoch - 1 : rng.percent(10) ? e.epoch + 1 : e.epoch;
        m.offset = (uint32_t)rng.below(e.bytes / 4096 + 1) * 4096;
        if (rng.percent(3))
            m.offset += (uint32_t)rng.below(4096);
        m.flags &= MR_NIC_FL_RELIABLE;
        if (rng.percent(15))
            m.flags |= MR_NIC_FL_FORWARDED;
        m.dtype = 1 + (unsigned)rng.below(4);
        const unsigned kind = (unsigned)rng.below(10);
        const uint32_t left = m.offset < e.bytes ? e.bytes - m.offset : 1;
        if (kind < 5) {
            m.opcode = MR_NIC_OP_KV_WRITE;
            payload = random_bytes(rng, rng.percent(70) ? std::min<uint32_t>(4096, left)
                                                        : 1 + rng.below(4096));
        } else if (kind < 9) {
            m.opcode = MR_NIC_OP_KV_READ;
            const uint32_t n =
                rng.percent(5) ? (uint32_t)rng.below(70000) : 1 + (uint32_t)rng.below(left);
            put(payload, n, 4);
        } else {
            m.opcode = MR_NIC_OP_KV_DATA;
            m.flags &= ~MR_NIC_FL_RELIABLE;
            payload = random_bytes(rng, 1 + rng.below(std::min<uint32_t>(left, 4096)));
        }
    }
    void damage_frame(Bytes &f) {
        switch (rng.below(5)) {
        case 0: // any byte
            f[rng.below(f.size())] ^= (uint8_t)(1 + rng.below(255));
            break;
        case 1: // a header byte, checksum in order
            if (f.size() > 74) {
                f[42 + rng.below(32)] = (uint8_t)rng.next();
                if (big(f, 12, 2) == 0x0800 && f[14] == 0x45 && big(f, 38, 2) <= f.size() - 34 &&
                    big(f, 38, 2) >= 8)
                    Recipe::seal_udp(f, 14, 34, big(f, 38, 2));
            }
            break;
        case 2: // cut
            f.resize(14 + rng.below(f.size() - 13));
            break;
        case 3: // IP header byte
            f[14 + rng.below(20)] ^= (uint8_t)(1 << rng.below(8));
            if (rng.percent(50) && f[14] == 0x45)
                Recipe::seal_ip(f, 14);
            break;
        default: // grown
            f.resize(f.size() + rng.below(300), (uint8_t)rng.next());
            break;
        }
    }
    const World &world_;
    uint32_t base_ = 1000;
    std::vector<std::pair<unsigned, Bytes>> answers_;
    std::vector<std::pair<int, Bytes>> recent_;
};

#endif
