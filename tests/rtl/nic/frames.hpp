// Frames of nic.md for the benches of the receiver and the transmitter: a builder whose every field
// can be bent, and a reader that says from the text of nic.md what a frame is.
#ifndef MR_TESTS_RTL_NIC_FRAMES_HPP
#define MR_TESTS_RTL_NIC_FRAMES_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include <millrace/nic_frame.h>

#include "tests/rtl/common/bench.hpp"

using Bytes = std::vector<uint8_t>;

struct Address {
    std::array<uint8_t, 6> mac;
    uint32_t ip;
    uint16_t port;
    uint64_t mac_number() const {
        uint64_t v = 0;
        for (uint8_t b : mac)
            v = v << 8 | b;
        return v;
    }
};

inline Bytes random_bytes(Rng &rng, size_t n) {
    Bytes out(n);
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t v = rng.next();
        memcpy(&out[i], &v, n - i < 8 ? n - i : 8);
    }
    return out;
}

inline void put(Bytes &to, uint64_t value, int bytes) {
    for (int k = bytes - 1; k >= 0; k--)
        to.push_back((uint8_t)(value >> 8 * k));
}
inline uint64_t big(const Bytes &from, size_t at, int bytes) {
    uint64_t v = 0;
    for (int k = 0; k < bytes; k++)
        v = v << 8 | (at + k < from.size() ? from[at + k] : 0);
    return v;
}

// RFC 1071 over a range, odd byte padded with zero; not complemented.
inline uint32_t internet_sum(const Bytes &b, size_t from, size_t count, uint64_t start = 0) {
    uint64_t sum = start;
    for (size_t i = 0; i < count; i++)
        sum += (uint64_t)b[from + i] << (i % 2 ? 0 : 8);
    while (sum > 0xFFFF)
        sum = sum % 0x10000 + sum / 0x10000;
    return (uint32_t)sum;
}

struct Millrace {
    unsigned version = 1, opcode = MR_NIC_OP_QUERY, dtype = MR_NIC_DT_BF16, flags = 0, job = 1;
    unsigned shard = 0, shards = 1, layer = 0, head0 = 0, heads = 1, dim = 1;
    uint32_t request = 0, epoch = 0, block = 0, offset = 0;
    void append(Bytes &to) const {
        put(to, version, 1);
        put(to, opcode, 1);
        put(to, dtype, 1);
        put(to, flags, 1);
        put(to, job, 2);
        put(to, shard, 1);
        put(to, shards, 1);
        put(to, request, 4);
        put(to, layer, 2);
        put(to, head0, 2);
        put(to, heads, 2);
        put(to, dim, 2);
        put(to, epoch, 4);
        put(to, block, 4);
        put(to, offset, 4);
    }
};

// A frame that is good unless told otherwise.
struct Recipe {
    Address to, from;
    bool vlan = false;
    Bytes options;       // of IP, a multiple of 4, at most 40
    Bytes datagram;      // UDP payload
    bool sum_udp = true; // else checksum 0
    size_t slack = 0;    // between the end of the UDP datagram and that of the IP packet
    size_t padding = 0;  // behind the IP packet; at least what fills 60 bytes
    int ip_len_off = 0, udp_len_off = 0; // lies about lengths
    unsigned frag = 0x4000, protocol = 17;
    uint8_t filler = 0; // of padding and slack
    Bytes build() const {
        Bytes f(to.mac.begin(), to.mac.end());
        f.insert(f.end(), from.mac.begin(), from.mac.end());
        if (vlan)
            put(f, 0x81000123, 4);
        put(f, 0x0800, 2);
        const size_t ip = f.size(), udp = ip + 20 + options.size();
        put(f, 0x45 + options.size() / 4, 1);
        put(f, 0, 1);
        put(f, 28 + options.size() + datagram.size() + slack + ip_len_off, 2);
        put(f, 0, 2);
        put(f, frag, 2);
        put(f, 64, 1);
        put(f, protocol, 1);
        put(f, 0, 2);
        put(f, from.ip, 4);
        put(f, to.ip, 4);
        f.insert(f.end(), options.begin(), options.end());
        seal_ip(f, ip);
        put(f, from.port, 2);
        put(f, to.port, 2);
        const size_t said = 8 + datagram.size() + udp_len_off;
        put(f, said, 2);
        put(f, 0, 2);
        f.insert(f.end(), datagram.begin(), datagram.end());
        f.insert(f.end(), slack, filler);
        f.insert(f.end(), padding, filler);
        while (f.size() < 60)
            f.push_back(filler);
        if (sum_udp && said >= 8 && said <= f.size() - udp)
            seal_udp(f, ip, udp, said);
        return f;
    }
    static void seal_ip(Bytes &f, size_t ip) {
        f[ip + 10] = f[ip + 11] = 0;
        const uint32_t s = ~internet_sum(f, ip, (f[ip] & 15) * 4u);
        f[ip + 10] = (uint8_t)(s >> 8);
        f[ip + 11] = (uint8_t)s;
    }
    static void seal_udp(Bytes &f, size_t ip, size_t udp, size_t said) {
        f[udp + 6] = f[udp + 7] = 0;
        uint32_t s = internet_sum(f, ip + 12, 8, 17 + (uint64_t)said);
        s = ~internet_sum(f, udp, said, s) & 0xFFFF;
        if (s == 0)
            s = 0xFFFF;
        f[udp + 6] = (uint8_t)(s >> 8);
        f[udp + 7] = (uint8_t)s;
    }
};

// What nic.md says about a frame that arrived.
struct Reading {
    unsigned fate = MR_NIC_FATE_NONE;
    size_t millrace = 0; // where its header lies
    size_t payload = 0;  // bytes behind that
};

// The bytes that a header asks for, -1 where any of 1..4096 will do, -2 where none will.
inline int64_t payload_asked(const Bytes &f, size_t at) {
    const int64_t heads = (int64_t)big(f, at + 16, 2), dim = (int64_t)big(f, at + 18, 2);
    const int64_t vector = heads * dim * (f[at + 2] <= MR_NIC_DT_FP16 ? 2 : 4);
    const auto padded = [](int64_t n) { return (n + 63) / 64 * 64; };
    switch (f[at + 1]) {
    case MR_NIC_OP_KV_WRITE:
    case MR_NIC_OP_KV_DATA:
        return -1;
    case MR_NIC_OP_KV_READ:
        return 4;
    case MR_NIC_OP_QUERY:
        return vector;
    case MR_NIC_OP_PARTIAL:
        return padded(8 * heads) + vector;
    case MR_NIC_OP_MERGED:
        return padded(4 * heads) + vector;
    case MR_NIC_OP_REDUCE:
    case MR_NIC_OP_RESULT:
        return heads == 1 ? vector : -2;
    case MR_NIC_OP_NACK:
        return 8;
    default:
        return 0;
    }
}

inline Reading read_frame(const Bytes &f, const Address *own) {
    Reading r;
    const auto is = [&r](unsigned fate) {
        r.fate = fate;
        return r;
    };
    if (f.size() < 60)
        return is(MR_NIC_CNT_RUNT);
    const size_t ip = big(f, 12, 2) == 0x8100 ? 18 : 14;
    if (big(f, ip - 2, 2) != 0x0800)
        return is(MR_NIC_CNT_NOT_IP);
    const size_t header = 4u * (f[ip] & 15);
    if (f[ip] < 0x45 || f[ip] > 0x4F || ip + header > f.size() ||
        internet_sum(f, ip, header) != 0xFFFF)
        return is(MR_NIC_CNT_BAD_IP_CHECKSUM);
    if ((f[ip + 6] & 0x20) || big(f, ip + 6, 2) % 0x2000 != 0)
        return is(MR_NIC_CNT_FRAGMENT);
    const size_t udp = ip + header;
    if (own == nullptr || f[ip + 9] != 17 || udp + 8 > f.size() ||
        big(f, 0, 6) != own->mac_number() || big(f, ip + 16, 4) != own->ip ||
        big(f, udp + 2, 2) != own->port)
        return is(MR_NIC_CNT_NOT_MINE);
    const size_t ip_says = big(f, ip + 2, 2), udp_says = big(f, udp + 4, 2);
    if (ip + ip_says > f.size() || udp_says < 8 || header + udp_says > ip_says)
        return is(MR_NIC_CNT_TRUNCATED);
    const uint32_t pseudo = internet_sum(f, ip + 12, 8, 17 + (uint64_t)udp_says);
    if (big(f, udp + 6, 2) != 0 && internet_sum(f, udp, udp_says, pseudo) != 0xFFFF)
        return is(MR_NIC_CNT_BAD_UDP_CHECKSUM);
    if (udp_says - 8 < 32)
        return is(MR_NIC_CNT_TRUNCATED);
    const size_t m = udp + 8;
    const unsigned op = f[m + 1], dtype = f[m + 2], shards = f[m + 7];
    if (f[m] != 1)
        return is(MR_NIC_CNT_BAD_VERSION);
    if (op < 1 || op > 11)
        return is(MR_NIC_CNT_BAD_OPCODE);
    const bool tensor = op >= MR_NIC_OP_QUERY && op <= MR_NIC_OP_RESULT;
    if ((op <= MR_NIC_OP_RESULT && (dtype < 1 || dtype > 4)) ||
        ((op == MR_NIC_OP_QUERY || op == MR_NIC_OP_PARTIAL || op == MR_NIC_OP_MERGED) &&
         dtype == 4) ||
        shards < 1 || shards > 32 || (op == MR_NIC_OP_REDUCE && (f[m + 3] & 0x30) == 0x30) ||
        (tensor && (big(f, m + 16, 2) == 0 || big(f, m + 18, 2) == 0)))
        return is(MR_NIC_CNT_BAD_FIELD);
    if (udp_says - 8 > 9000)
        return is(MR_NIC_CNT_TOO_LONG);
    r.millrace = m;
    r.payload = udp_says - 40;
    const int64_t asked = payload_asked(f, m);
    if (asked == -1 ? r.payload < 1 || r.payload > 4096 : asked != (int64_t)r.payload)
        return is(MR_NIC_CNT_TRUNCATED);
    return r;
}

// A header and payload that belong together, about `size` bytes of payload.
inline Millrace random_header(Rng &rng, size_t size, size_t &payload) {
    Millrace m;
    m.opcode = 1 + (unsigned)rng.below(11);
    m.dtype = 1 + (unsigned)rng.below(3);
    m.flags = (unsigned)rng.below(256) & 0xCF;
    m.job = (unsigned)rng.below(65536);
    m.shard = (unsigned)rng.below(256);
    m.shards = 1 + (unsigned)rng.below(32);
    m.request = (uint32_t)rng.next();
    m.layer = (unsigned)rng.below(65536);
    m.head0 = (unsigned)rng.below(65536);
    m.epoch = (uint32_t)rng.next();
    m.block = (uint32_t)rng.next();
    m.offset = (uint32_t)rng.next();
    const size_t element = m.dtype <= 2 ? 2 : 4;
    const auto fit = [&](size_t stats) {
        m.heads = 1 + (unsigned)rng.below(40);
        while (m.heads > 1 && (m.heads * stats + 63) / 64 * 64 + m.heads * element > size)
            m.heads /= 2;
        const size_t fixed = (m.heads * stats + 63) / 64 * 64;
        m.dim = size > fixed ? (unsigned)((size - fixed) / m.heads / element) : 1;
        m.dim = m.dim < 1 ? 1 : m.dim;
        payload = fixed + (size_t)m.heads * m.dim * element;
    };
    switch (m.opcode) {
    case MR_NIC_OP_KV_WRITE:
    case MR_NIC_OP_KV_DATA:
        payload = size < 1 ? 1 : size > 4096 ? 4096 : size;
        break;
    case MR_NIC_OP_KV_READ:
        payload = 4;
        break;
    case MR_NIC_OP_NACK:
        payload = 8;
        break;
    case MR_NIC_OP_QUERY:
        fit(0);
        break;
    case MR_NIC_OP_PARTIAL:
        fit(8);
        break;
    case MR_NIC_OP_MERGED:
        fit(4);
        break;
    case MR_NIC_OP_REDUCE:
    case MR_NIC_OP_RESULT:
        m.heads = 1;
        m.dim = size < element ? 1 : (unsigned)(size / element);
        payload = m.dim * element;
        break;
    default:
        payload = 0;
        break;
    }
    return m;
}

#endif
