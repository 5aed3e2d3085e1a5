/* The network's times: cases worked out by hand, then random traffic against a slow simulation. */
#include "tests/unit/cycle/support.h"

#include "models/cycle/network.h"

#include <algorithm>
#include <map>
#include <vector>

#include <CppUTest/TestHarness.h>

namespace {

mr_net_config plain(size_t endpoints) {
    mr_net_config c = {};
    c.endpoints = endpoints;
    c.host = {1, 1, 10}; /* a byte a tick, ten ticks of cable */
    c.trunk = {1, 1, 10};
    return c;
}

std::vector<mr_net_delivery> drain(mr_net *net) {
    std::vector<mr_net_delivery> all;
    mr_net_delivery d;
    uint64_t t;
    while (mr_net_next(net, &t))
        if (mr_net_poll(net, t, &d))
            all.push_back(d);
    return all;
}

void send(mr_net *net, size_t src, size_t dst, uint64_t bytes, uint64_t t, int klass = 0,
          uint64_t tag = 0) {
    CHECK_TRUE(mr_net_send(net, src, dst, bytes, t, klass, tag));
}

} // namespace

TEST_GROUP(Network) {
    mr_net *net = nullptr;
    void teardown() override { mr_net_destroy(net); }
    void make(const mr_net_config &c) {
        mr_net_destroy(net);
        net = mr_net_create(&c);
        CHECK(net != nullptr);
    }
};

TEST(Network, OneFrameStoreAndForward) {
    mr_net_config c = plain(2);
    c.switch_latency = 3;
    make(c);
    send(net, 0, 1, 100, 5, 0, 42);
    auto all = drain(net);
    LONGS_EQUAL(1, all.size());
    /* on the link until 105, at the switch 115, forwarded at 118, on the link until 218, there 228
     */
    LONGS_EQUAL(228, all[0].time);
    LONGS_EQUAL(42, all[0].tag);
    LONGS_EQUAL(5, all[0].sent);
    LONGS_EQUAL(0, mr_net_in_flight(net));
}

TEST(Network, OneFrameCutThrough) {
    mr_net_config c = plain(2);
    c.switch_latency = 3;
    c.cut_through = true;
    c.cut_bytes = 14;
    make(c);
    send(net, 0, 1, 100, 5);
    /* 14 bytes at the switch at 29, forwarded from 32, on the link until 132, there 142 */
    LONGS_EQUAL(142, drain(net)[0].time);
    /* a frame shorter than the cut is forwarded when it is whole */
    send(net, 0, 1, 6, 1000);
    LONGS_EQUAL(1000 + 6 + 10 + 3 + 6 + 10, drain(net)[0].time);
}

TEST(Network, HoldsRoundUpOnce) {
    mr_net_link l = {25, 2, 0}; /* 12.5 bytes a tick */
    LONGS_EQUAL(1, mr_net_hold(&l, 1));
    LONGS_EQUAL(1, mr_net_hold(&l, 12));
    LONGS_EQUAL(2, mr_net_hold(&l, 13));
    LONGS_EQUAL(2, mr_net_hold(&l, 25));
    mr_net_link gigabits = {1, 80, 0}; /* 100 Gbit/s in picoseconds */
    CHECK_EQUAL((uint64_t)5368709120u, mr_net_hold(&gigabits, 67108864));
    mr_net_link slow = {1, UINT32_MAX, 0};
    CHECK_EQUAL(((uint64_t)1 << 30) * UINT32_MAX, mr_net_hold(&slow, (uint64_t)1 << 30));
}

TEST(Network, TwoSendersQueueAtTheEgress) {
    make(plain(3));
    send(net, 0, 2, 100, 0, 0, 1);
    send(net, 1, 2, 100, 0, 0, 2);
    auto all = drain(net);
    LONGS_EQUAL(220, all[0].time);
    LONGS_EQUAL(1, all[0].tag);
    LONGS_EQUAL(320, all[1].time);
    LONGS_EQUAL(200, mr_net_counters(net, 2).in_peak);
    LONGS_EQUAL(200, mr_net_counters(net, 2).in_busy);
    LONGS_EQUAL(100, mr_net_counters(net, 1).out_busy);
}

TEST(Network, AFrameSentLaterMayComeFirst) {
    make(plain(3));
    send(net, 0, 2, 1000, 0, 0, 1); /* at the switch at 1010 */
    send(net, 1, 2, 10, 1, 0, 2);   /* at the switch at 21 */
    auto all = drain(net);
    LONGS_EQUAL(2, all[0].tag);
    LONGS_EQUAL(1 + 10 + 10 + 10 + 10, all[0].time);
    LONGS_EQUAL(1010 + 1000 + 10, all[1].time);
}

TEST(Network, UrgentPassesWhatWaitsAndNotWhatIsOnTheLink) {
    make(plain(2));
    send(net, 0, 1, 100, 0, MR_NET_BULK, 1);
    send(net, 0, 1, 100, 0, MR_NET_BULK, 2);
    send(net, 0, 1, 10, 50, MR_NET_URGENT, 3);
    auto all = drain(net);
    LONGS_EQUAL(1, all[0].tag);
    LONGS_EQUAL(220, all[0].time);
    LONGS_EQUAL(3, all[1].tag); /* first link 100..110, second 210..220 */
    LONGS_EQUAL(230, all[1].time);
    LONGS_EQUAL(2, all[2].tag); /* first link 110..210, second 220..320 */
    LONGS_EQUAL(330, all[2].time);
}

TEST(Network, ALinkChoosesAmongAllThatIsReadyAtThatTick) {
    make(plain(2));
    send(net, 0, 1, 100, 0, MR_NET_BULK, 1);
    send(net, 0, 1, 100, 10, MR_NET_BULK, 2);
    send(net, 0, 1, 10, 100, MR_NET_URGENT, 3); /* ready at the tick at which the link frees */
    LONGS_EQUAL(3, drain(net)[1].tag);
    send(net, 0, 1, 100, 5000, MR_NET_BULK, 4); /* and on an idle link */
    send(net, 0, 1, 10, 5000, MR_NET_URGENT, 5);
    LONGS_EQUAL(5, drain(net)[0].tag);
}

TEST(Network, AFastLinkBehindASlowOneWaitsForTheLastByte) {
    mr_net_config c = plain(4);
    c.group = 2;
    c.trunk = {10, 1, 10}; /* ten times as fast */
    c.cut_through = true;
    c.cut_bytes = 10;
    make(c);
    send(net, 0, 3, 100, 0);
    /* first link 0..100, last byte in at 110; trunks end then and at 120; the last link is held for
       100 ticks from the first ten bytes at 20+1+10+1+10 = 42 on, so until 142: there 152 */
    LONGS_EQUAL(152, drain(net)[0].time);
}

TEST(Network, ThroughTheSpine) {
    mr_net_config c = plain(5);
    c.group = 2; /* leaves {0,1} {2,3} {4} */
    make(c);
    send(net, 0, 1, 50, 0, 0, 1);
    send(net, 0, 4, 50, 100, 0, 2);
    auto all = drain(net);
    LONGS_EQUAL(2 * 60, all[0].time);
    LONGS_EQUAL(100 + 4 * 60, all[1].time);
}

TEST(Network, TheTrunkIsShared) {
    mr_net_config c = plain(4);
    c.group = 2;
    make(c);
    send(net, 0, 2, 100, 0, 0, 1);
    send(net, 1, 3, 100, 0, 0, 2);
    auto all = drain(net);
    LONGS_EQUAL(440, all[0].time);
    LONGS_EQUAL(540, all[1].time);
}

TEST(Network, BadCallsAreRefused) {
    make(plain(2));
    mr_net_delivery d;
    CHECK_FALSE(mr_net_poll(net, 100, &d));
    LONGS_EQUAL(100, mr_net_now(net));
    CHECK_FALSE(mr_net_send(net, 0, 1, 10, 99, 0, 0)); /* past */
    CHECK_FALSE(mr_net_send(net, 0, 0, 10, 100, 0, 0));
    CHECK_FALSE(mr_net_send(net, 0, 2, 10, 100, 0, 0));
    CHECK_FALSE(mr_net_send(net, 2, 0, 10, 100, 0, 0));
    CHECK_FALSE(mr_net_send(net, 0, 1, 0, 100, 0, 0));
    CHECK_FALSE(mr_net_send(net, 0, 1, 10, 100, 2, 0));
    CHECK_FALSE(mr_net_send(net, 0, 1, 10, 100, -1, 0));
    LONGS_EQUAL(0, mr_net_in_flight(net));
    uint64_t t;
    CHECK_FALSE(mr_net_next(net, &t));
}

TEST(Network, BadConfigurationsAreNamed) {
    mr_net_config c = plain(0);
    STRCMP_CONTAINS("endpoints", mr_net_config_error(&c));
    POINTERS_EQUAL(nullptr, mr_net_create(&c));
    c = plain(4097);
    STRCMP_CONTAINS("endpoints", mr_net_config_error(&c));
    c = plain(4);
    c.host.ticks = 0;
    STRCMP_CONTAINS("host", mr_net_config_error(&c));
    c = plain(4);
    c.trunk.bytes = 0;
    POINTERS_EQUAL(nullptr, mr_net_config_error(&c)); /* not read */
    c.group = 2;
    STRCMP_CONTAINS("trunk", mr_net_config_error(&c));
    c = plain(4);
    c.cut_through = true;
    STRCMP_CONTAINS("cut_bytes", mr_net_config_error(&c));
}

/* ---- random traffic: tick by tick, with nothing shared but the rules ----------------------------
 */

namespace {

struct Sent {
    uint32_t src, dst;
    uint64_t bytes, t;
    int klass;
};

/* Store-and-forward, one leaf, a byte a tick: walks every tick and looks at every queue. */
std::map<uint64_t, uint64_t> slowly(const std::vector<Sent> &sent, size_t n, uint64_t latency) {
    struct Queue {
        std::vector<std::pair<uint64_t, uint64_t>> waits; /* ready, tag */
        uint64_t busy_until = 0;
    };
    std::vector<Queue> up(n), down(n);
    std::map<uint64_t, uint64_t> out;
    for (size_t i = 0; i < sent.size(); i++)
        up[sent[i].src].waits.push_back({sent[i].t, i});
    for (uint64_t t = 0; out.size() < sent.size(); t++)
        for (int level = 0; level < 2; level++)
            for (Queue &q : level ? down : up) {
                if (q.busy_until > t)
                    continue;
                auto best = q.waits.end();
                for (auto w = q.waits.begin(); w != q.waits.end(); ++w) {
                    if (w->first > t)
                        continue;
                    auto key = [&](const std::pair<uint64_t, uint64_t> &x) {
                        return std::make_tuple(sent[x.second].klass, x.first, x.second);
                    };
                    if (best == q.waits.end() || key(*w) < key(*best))
                        best = w;
                }
                if (best == q.waits.end())
                    continue;
                uint64_t tag = best->second;
                q.waits.erase(best);
                q.busy_until = t + sent[tag].bytes;
                if (level == 0)
                    down[sent[tag].dst].waits.push_back({q.busy_until + latency, tag});
                else
                    out[tag] = q.busy_until + latency;
            }
    return out;
}

} // namespace

TEST(Network, RandomTrafficArrivesWhenTheSlowSimulationSays) {
    auto rng = test_rng(1);
    for (int round = 0; round < 60; round++) {
        size_t n = 2 + rng() % 5;
        mr_net_config c = plain(n);
        c.host.latency = 1 + rng() % 9;
        make(c);
        std::vector<Sent> sent(1 + rng() % 60);
        for (Sent &s : sent) {
            s.src = (uint32_t)(rng() % n);
            s.dst = (uint32_t)((s.src + 1 + rng() % (n - 1)) % n);
            s.bytes = 1 + rng() % 30;
            s.t = rng() % 200;
            s.klass = (int)(rng() % 2);
        }
        std::stable_sort(sent.begin(), sent.end(),
                         [](const Sent &a, const Sent &b) { return a.t < b.t; });
        for (size_t i = 0; i < sent.size(); i++)
            send(net, sent[i].src, sent[i].dst, sent[i].bytes, sent[i].t, sent[i].klass, i);
        auto want = slowly(sent, n, c.host.latency);
        auto all = drain(net);
        LONGS_EQUAL(sent.size(), all.size());
        uint64_t last = 0;
        for (auto &d : all) {
            CHECK(d.time >= last);
            last = d.time;
            LONGS_EQUAL(want[d.tag], d.time);
        }
        uint64_t out = 0, in = 0;
        for (size_t i = 0; i < n; i++) {
            out += mr_net_counters(net, i).sent_bytes;
            in += mr_net_counters(net, i).received_bytes;
        }
        CHECK_EQUAL(out, in);
    }
}

TEST(Network, PollingInStepsChangesNothing) {
    auto rng = test_rng(2);
    mr_net_config c = plain(9);
    c.group = 3;
    c.cut_through = true;
    c.cut_bytes = 8;
    c.host = {3, 2, 4};
    std::vector<Sent> sent(400);
    for (Sent &s : sent) {
        s.src = (uint32_t)(rng() % 9);
        s.dst = (uint32_t)((s.src + 1 + rng() % 8) % 9);
        s.bytes = 1 + rng() % 100;
        s.t = rng() % 3000;
        s.klass = (int)(rng() % 2);
    }
    std::sort(sent.begin(), sent.end(), [](const Sent &a, const Sent &b) { return a.t < b.t; });
    std::vector<uint64_t> at_once(sent.size());
    make(c);
    for (size_t i = 0; i < sent.size(); i++)
        send(net, sent[i].src, sent[i].dst, sent[i].bytes, sent[i].t, sent[i].klass, i);
    for (auto &d : drain(net))
        at_once[d.tag] = d.time;
    make(c); /* the same, each frame sent only when its time has come */
    size_t next = 0, seen = 0;
    mr_net_delivery d;
    for (uint64_t t = 0; seen < sent.size(); t++) {
        for (; next < sent.size() && sent[next].t == t; next++)
            send(net, sent[next].src, sent[next].dst, sent[next].bytes, t, sent[next].klass, next);
        for (; mr_net_poll(net, t, &d); seen++)
            LONGS_EQUAL(at_once[d.tag], d.time);
    }
}
