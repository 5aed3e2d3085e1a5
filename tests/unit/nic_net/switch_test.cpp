/* The switch: its times are those of the timing-only model, its faults what they say they are. */
#include "tests/unit/nic_net/support.h"

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "models/cycle/network.h"
#include "sim/net/switch.h"

#include <CppUTest/TestHarness.h>

namespace {

typedef std::vector<uint8_t> bytes;

uint16_t sum(const bytes &f, size_t from, size_t to, uint32_t s) {
    for (size_t i = from; i < to; i++)
        s += (i - from) & 1 ? f[i] : f[i] << 8;
    while (s >> 16)
        s = (s & 0xFFFF) + (s >> 16);
    return (uint16_t)s;
}

void mac_of(unsigned port, uint8_t mac[6]) {
    uint32_t ip;
    uint16_t udp;
    mr_nic_default_address(port, mac, &ip, &udp);
}

/* A UDP frame with right checksums. */
bytes udp_frame(unsigned to, size_t payload, std::mt19937_64 &rng) {
    bytes f(42 + payload);
    for (uint8_t &b : f)
        b = (uint8_t)rng();
    mac_of(to, f.data());
    size_t total = 28 + payload, udp = 8 + payload;
    const uint8_t ip[] = {8,    0, 0x45, 0, (uint8_t)(total >> 8), (uint8_t)total, 0, 0,
                          0x40, 0, 64,   17};
    memcpy(&f[12], ip, sizeof ip);
    f[24] = f[25] = 0;
    f[38] = (uint8_t)(udp >> 8);
    f[39] = (uint8_t)udp;
    f[40] = f[41] = 0;
    uint16_t c = (uint16_t)~sum(f, 14, 34, 0);
    f[24] = (uint8_t)(c >> 8);
    f[25] = (uint8_t)c;
    c = (uint16_t)~sum(f, 34, f.size(), sum(f, 26, 34, 17 + (uint32_t)udp));
    c = c ? c : 0xFFFF;
    f[40] = (uint8_t)(c >> 8);
    f[41] = (uint8_t)c;
    return f;
}

bool checks(const bytes &f) {
    size_t udp = (size_t)f[38] << 8 | f[39];
    return sum(f, 14, 34, 0) == 0xFFFF && udp == f.size() - 34 &&
           sum(f, 34, f.size(), sum(f, 26, 34, 17 + (uint32_t)udp)) == 0xFFFF;
}

mr_switch_options options(unsigned ports) {
    mr_switch_options o = {};
    o.ports = ports;
    o.latency = 100;
    o.bandwidth = 50;
    o.seed = test_seed;
    return o;
}

struct switch_of {
    explicit switch_of(const mr_switch_options &o) : sw(mr_switch_create(&o)) {
        CHECK(sw != nullptr);
        for (unsigned i = 0; i < o.ports; i++) {
            uint8_t mac[6];
            mac_of(i, mac);
            mr_switch_address(sw, mac, i);
        }
    }
    ~switch_of() { mr_switch_destroy(sw); }
    void put(unsigned from, const bytes &f, uint64_t t) {
        mr_switch_sent(sw, from, f.size(), t);
        CHECK(mr_switch_put(sw, from, f.data(), f.size(), t));
    }
    mr_switch *sw;
};

struct arrival {
    uint64_t cycle;
    unsigned port;
    bytes data;
    bool operator==(const arrival &o) const {
        return cycle == o.cycle && port == o.port && data == o.data;
    }
};

std::vector<arrival> take(mr_switch *sw, uint64_t until) {
    std::vector<arrival> all;
    while (mr_switch_frame *f = mr_switch_take(sw, until)) {
        all.push_back({f->cycle, f->port, bytes(f->data, f->data + f->bytes)});
        free(f);
    }
    return all;
}

/* `n` frames between random ports. */
std::vector<arrival> traffic(const mr_switch_options &o, size_t n, uint64_t number,
                             mr_nic_wire *stats = nullptr, std::vector<bytes> *sent = nullptr) {
    switch_of s(o);
    std::mt19937_64 rng = random_of(number);
    std::vector<arrival> all;
    uint64_t t = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned from = (unsigned)(rng() % o.ports),
                 to = (unsigned)((from + 1 + rng() % (o.ports - 1)) % o.ports);
        t += rng() % 50;
        bytes f = udp_frame(to, 32 + rng() % 1000, rng);
        if (sent)
            sent->push_back(f);
        s.put(from, f, t);
        for (arrival &a : take(s.sw, t))
            all.push_back(std::move(a));
    }
    for (arrival &a : take(s.sw, t + 1000000))
        all.push_back(std::move(a));
    if (stats)
        *stats = *mr_switch_stats(s.sw);
    return all;
}

void about(double p, size_t n, uint64_t got, const char *what) {
    double sigma = std::sqrt(p * (1 - p) * (double)n);
    CHECK_TEXT(std::fabs((double)got - p * (double)n) <= 6 * sigma + 1, what);
}

} // namespace

TEST_GROUP(net_switch){};

TEST(net_switch, times_of_its_twin) {
    mr_switch_options o = options(5);
    mr_net_config c = {};
    c.endpoints = 5;
    c.host = {50, 1, 0};
    c.switch_latency = 100;
    mr_net *net = mr_net_create(&c);
    std::mt19937_64 rng = random_of(1);
    std::vector<mr_net_delivery> want;
    mr_net_delivery d;
    uint64_t t = 0;
    for (size_t i = 0; i < 2000; i++) {
        unsigned from = (unsigned)(rng() % 5), to = (unsigned)((from + 1 + rng() % 4) % 5);
        t += rng() % 50;
        bytes f = udp_frame(to, 32 + rng() % 1000, rng);
        while (mr_net_poll(net, t, &d))
            want.push_back(d);
        CHECK(mr_net_send(net, from, to, f.size() + 24, t, MR_NET_URGENT, i));
    }
    while (mr_net_poll(net, t + 1000000, &d))
        want.push_back(d);
    mr_net_destroy(net);
    std::vector<bytes> sent;
    std::vector<arrival> got = traffic(o, 2000, 1, nullptr, &sent);
    LONGS_EQUAL(want.size(), got.size());
    for (size_t i = 0; i < got.size(); i++) {
        LONGS_EQUAL(want[i].time, got[i].cycle);
        LONGS_EQUAL(want[i].dst, got[i].port);
        CHECK(sent[want[i].tag] == got[i].data);
    }
}

TEST(net_switch, every_fault_as_often_as_asked_and_the_same_again) {
    mr_switch_options o = options(4);
    o.loss = 0.1, o.dup = 0.05, o.reorder = 0.2, o.corrupt = 0.1, o.stall = 0.3;
    const size_t n = 5000;
    mr_nic_wire w, again;
    std::vector<arrival> first = traffic(o, n, 2, &w), second = traffic(o, n, 2, &again);
    CHECK(first == second);
    MEMCMP_EQUAL(&w, &again, sizeof w);
    LONGS_EQUAL(n, w.frames);
    about(0.1, n, w.lost, "loss");
    about(0.05, n - w.lost, w.duplicated, "dup");
    about(0.2, n - w.lost, w.reordered, "reorder");
    about(0.1, n - w.lost, w.corrupted + w.fcs, "corrupt");
    about(0.25, w.corrupted + w.fcs, w.fcs, "fcs");
    about(0.3, n, w.stalls, "stall");
    LONGS_EQUAL(n - w.lost + w.duplicated - w.fcs, w.delivered);
    LONGS_EQUAL(w.delivered, first.size());
    o.seed++;
    CHECK(!(traffic(o, n, 2) == first));
}

TEST(net_switch, corruption_is_one_short_burst_that_a_checksum_shows) {
    mr_switch_options o = options(2);
    o.corrupt = 1;
    switch_of s(o);
    std::mt19937_64 rng = random_of(3);
    size_t seen = 0;
    for (unsigned i = 0; i < 20000; i++) {
        bytes f = udp_frame(1, 32 + rng() % 64, rng);
        s.put(0, f, i * 2000);
        for (const arrival &a : take(s.sw, i * 2000 + 1900)) {
            size_t first = 0, last = 0, bits = 0;
            LONGS_EQUAL(f.size(), a.data.size());
            for (size_t b = 0; b < 8 * f.size(); b++)
                if ((f[b / 8] ^ a.data[b / 8]) & 0x80 >> b % 8) {
                    first = bits++ ? first : b;
                    last = b;
                }
            CHECK(bits > 0);
            CHECK(last - first < 15);
            CHECK(first >= 14 * 8);
            CHECK_FALSE(checks(a.data));
            CHECK(a.data[40] || a.data[41]); /* a zero would switch the check off */
            seen++;
        }
    }
    const mr_nic_wire *w = mr_switch_stats(s.sw);
    LONGS_EQUAL(seen, w->corrupted);
    about(0.75, 20000, seen, "narrow");
}

TEST(net_switch, frames_without_a_checksum_are_left_to_the_fcs) {
    mr_switch_options o = options(2);
    o.corrupt = 1;
    switch_of s(o);
    std::mt19937_64 rng = random_of(4);
    for (unsigned i = 0; i < 400; i++) {
        bytes f = udp_frame(1, 40, rng);
        if (i & 1)
            f[40] = f[41] = 0; /* no UDP checksum */
        else
            f[12] = 0x86; /* not IPv4 */
        s.put(0, f, i * 2000);
    }
    LONGS_EQUAL(0, take(s.sw, 1000000).size());
    LONGS_EQUAL(400, mr_switch_stats(s.sw)->fcs);
}

TEST(net_switch, where_frames_go) {
    switch_of s(options(4));
    std::mt19937_64 rng = random_of(5);
    bytes f = udp_frame(9, 100, rng); /* nobody's address */
    s.put(2, f, 0);
    std::vector<arrival> got = take(s.sw, 1000);
    LONGS_EQUAL(3, got.size());
    unsigned ports = 0;
    for (const arrival &a : got)
        ports |= 1u << a.port;
    LONGS_EQUAL(0xB, ports);
    LONGS_EQUAL(1, mr_switch_stats(s.sw)->flooded);
    s.put(1, udp_frame(1, 100, rng), 2000); /* back to where it came from */
    LONGS_EQUAL(0, take(s.sw, 3000).size());
    LONGS_EQUAL(1, mr_switch_stats(s.sw)->refused);
    uint8_t mac[6];
    mac_of(9, mac);
    CHECK(mr_switch_address(s.sw, mac, 3));
    s.put(2, f, 4000);
    got = take(s.sw, 5000);
    LONGS_EQUAL(1, got.size());
    LONGS_EQUAL(3, got[0].port);
    s.put(2, f, 5900);
    mr_switch_cut(s.sw, 3, true); /* also what is on its way */
    s.put(3, udp_frame(0, 100, rng), 6000);
    s.put(0, udp_frame(3, 100, rng), 6000);
    LONGS_EQUAL(0, take(s.sw, 7000).size());
    LONGS_EQUAL(3, mr_switch_stats(s.sw)->lost);
    mr_switch_cut(s.sw, 3, false);
    s.put(0, udp_frame(3, 100, rng), 8000);
    LONGS_EQUAL(1, take(s.sw, 9000).size());
}

TEST(net_switch, a_cable_is_full_and_an_egress_overflows) {
    switch_of s(options(3));
    std::mt19937_64 rng = random_of(6);
    bytes f = udp_frame(0, 9000, rng);
    LONGS_EQUAL(0, mr_switch_ready(s.sw, 1));
    for (int i = 0; i < 4; i++)
        s.put(1, f, 0);
    CHECK(mr_switch_ready(s.sw, 1) > 300); /* four frames are 728 cycles, the cable takes 327 */
    LONGS_EQUAL(0, mr_switch_ready(s.sw, 2));
    for (unsigned i = 0; i < 1000; i++)
        s.put(1 + i % 2, f, i);
    CHECK(mr_switch_stats(s.sw)->full > 0);
    LONGS_EQUAL(1004 - mr_switch_stats(s.sw)->full, take(s.sw, 10000000).size());
    uint64_t t;
    CHECK_FALSE(mr_switch_next(s.sw, &t));
}
