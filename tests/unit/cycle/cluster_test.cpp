/* The cluster: small cases worked out by hand, and what must hold for every policy on any trace. */
#include "tests/unit/cycle/support.h"

#include "models/cycle/cluster.h"

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <CppUTest/TestHarness.h>

namespace {

const mr_kv_policy *const policies[] = {&mr_kv_mars, &mr_kv_no_replication, &mr_kv_convert,
                                        &mr_kv_ring, &mr_kv_prefix_cache};

struct Trace {
    std::vector<mr_cluster_request> requests;
    std::vector<std::vector<uint32_t>> names;
    size_t blocks = 0;
    void add(uint64_t ns, uint32_t tokens, uint32_t output, std::vector<uint32_t> ids) {
        for (uint32_t id : ids)
            blocks = std::max(blocks, (size_t)id + 1);
        names.push_back(std::move(ids));
        requests.push_back({ns, tokens, output, nullptr});
    }
    void point() {
        for (size_t i = 0; i < requests.size(); i++)
            requests[i].block = names[i].data();
    }
};

} // namespace

TEST_GROUP(Cluster) {
    mr_machine m;
    mr_cluster_config c;
    Trace trace;
    mr_cluster_result o;
    std::vector<uint64_t> ttft;

    /* a layer takes 1000 ns and 10 ns a token; blocks of 16 tokens of 128 bytes; attention takes no
       time; a byte a nanosecond; no headers, no latency */
    void setup() override {
        m = {};
        m.layers = 2;
        m.query_heads = 4;
        m.kv_heads = 2;
        m.head_dim = 8;
        m.hidden = 32;
        m.value_bytes = 2;
        m.step_tokens = 64;
        m.flops_per_s = m.bytes_per_s = 1e30;
        m.degree = 1;
        for (uint32_t t = 1; t <= MR_MACHINE_TOKENS; t++)
            m.layer_ns[t] = 1000 + 10 * t;
        c = {};
        c.machine = &m;
        c.policy = &mr_kv_prefix_cache;
        c.nodes = 1;
        c.group = 32;
        c.capacity = 100;
        c.block_tokens = 16;
        c.step_requests = 8;
        c.byte_ps = 1000;
        c.trunk_bytes = c.trunk_ps = 1;
        c.frame_payload = 8448;
        c.kv_payload = 4096;
        c.load = 1;
    }
    void replay() {
        trace.point();
        c.request = trace.requests.data();
        c.requests = trace.requests.size();
        c.blocks = trace.blocks;
        ttft.assign(c.requests, 0);
        POINTERS_EQUAL(nullptr, mr_cluster_config_error(&c));
        CHECK_TRUE(mr_cluster_run(&c, nullptr, &o, ttft.data()));
    }
    uint64_t step(uint64_t tokens) { return mr_machine_step_ns(&m, tokens, 0, 0); }
};

TEST(Cluster, OnePromptThenOneTokenAStep) {
    trace.add(500, 40, 5, {0, 1, 2});
    replay();
    LONGS_EQUAL(1, o.finished);
    CHECK_EQUAL(step(40), ttft[0]);
    LONGS_EQUAL(4, o.decode_tokens);
    DOUBLES_EQUAL(1e-9 * (double)step(1), o.itl_mean_s, 1e-12);
    DOUBLES_EQUAL(1e-9 * (double)(step(40) + 4 * step(1)), o.seconds, 1e-12);
    LONGS_EQUAL(0, o.sent_bytes);
    LONGS_EQUAL(4, o.peak_blocks); /* three of the prompt, one for the output */
}

TEST(Cluster, APromptInSteps) {
    trace.add(0, 150, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    replay();
    CHECK_EQUAL(2 * step(64) + step(22), ttft[0]);
}

TEST(Cluster, TheSecondWaitsAndDecodeGoesAlong) {
    trace.add(0, 64, 3, {0, 1, 2, 3});
    trace.add(0, 64, 1, {4, 5, 6, 7});
    replay();
    CHECK_EQUAL(step(64), ttft[0]);
    /* its first 63 tokens share a step with the other's second token, the last one with the third
     */
    CHECK_EQUAL(step(64) + step(64) + step(2), ttft[1]);
    DOUBLES_EQUAL(1e-9 * (double)(step(64) + step(2)) / 2, o.itl_mean_s, 1e-12);
}

TEST(Cluster, ACachedPrefixIsNotComputedAgain) {
    trace.add(0, 48, 1, {0, 1, 2});
    trace.add(1000000, 60, 1, {0, 1, 2, 3});
    trace.add(2000000, 48, 1, {0, 1, 2}); /* all of it: one token is computed all the same */
    replay();
    CHECK_EQUAL(step(12), ttft[1]);
    CHECK_EQUAL(step(1), ttft[2]);
    LONGS_EQUAL(3 + 3, o.blocks_reused);
    LONGS_EQUAL(48 + 47, o.reused_tokens);
}

TEST(Cluster, AFullNodeMakesThePromptWait) {
    c.capacity = 5;
    trace.add(0, 64, 10, {0, 1, 2, 3});
    trace.add(0, 16, 1, {4});
    replay();
    CHECK_EQUAL(step(64) + 9 * step(1) + step(16), ttft[1]);
    LONGS_EQUAL(5, o.peak_blocks);
}

TEST(Cluster, WhatFitsNowhereIsRefused) {
    c.capacity = 5;
    c.nodes = 2;
    trace.add(0, 96, 1, {0, 1, 2, 3, 4, 5});
    trace.add(0, 16, 1, {6});
    replay();
    LONGS_EQUAL(1, o.refused);
    LONGS_EQUAL(1, o.finished);
    CHECK(ttft[0] == UINT64_MAX);
    /* sharded, the two together have the room */
    c.policy = &mr_kv_mars;
    replay();
    LONGS_EQUAL(0, o.refused);
}

TEST(Cluster, TwoNodesHalveAPromptWhoseTransferIsHidden) {
    c.nodes = 2;
    c.policy = &mr_kv_mars;
    c.byte_ps = 1; /* nearly no time on the wire */
    for (uint32_t t = 1; t <= MR_MACHINE_TOKENS; t++)
        m.layer_ns[t] = 10000 * t;
    trace.add(0, 128, 1, {0, 1, 2, 3, 4, 5, 6, 7});
    replay();
    /* 64 tokens each; each sends its 64 * 128 bytes once, 8.2 ns, behind the computing except for
       one of two layers */
    uint64_t wire = 64 * 128;
    LONGS_EQUAL(2 * wire, o.wire.exchange);
    LONGS_EQUAL(2 * wire, o.sent_bytes);
    CHECK(ttft[0] >= step(64) + wire / 1000 / 2);
    CHECK(ttft[0] <= step(64) + wire / 1000 + 2);
    DOUBLES_EQUAL(2, o.members_mean, 0);
}

TEST(Cluster, ConversionComesBetweenTheFirstTokenAndTheSecond) {
    c.nodes = 2;
    c.byte_ps = 10;
    for (uint32_t t = 1; t <= MR_MACHINE_TOKENS; t++)
        m.layer_ns[t] = 10000 * t;
    trace.add(0, 128, 3, {0, 1, 2, 3, 4, 5, 6, 7});
    c.policy = &mr_kv_convert;
    replay();
    uint64_t half = 4 * 16 * 128; /* bytes of the other node's blocks, 10 ps each */
    LONGS_EQUAL(half, o.wire.moved);
    LONGS_EQUAL(0, o.wire.decode);
    /* less than a frame's worth: through the switch it takes each of two links in turn */
    double gaps = 1e-9 * (double)(2 * step(1)) + 1e-12 * (double)(2 * half * 10);
    DOUBLES_EQUAL(gaps / 2, o.itl_mean_s, 1e-11);
}

/* Bytes a token are those of the queries and partials of the other shards, whatever the context. */
TEST(Cluster, DecodeBytesDoNotGrowWithContext) {
    c.nodes = 4;
    c.policy = &mr_kv_no_replication;
    c.capacity = 4096;
    c.byte_ps = 1;
    c.frame_overhead = 98;
    for (uint32_t t = 1; t <= MR_MACHINE_TOKENS; t++)
        m.layer_ns[t] = 10000 * t;
    double before = 0;
    for (uint32_t tokens = 1024; tokens <= 65536; tokens *= 4) {
        trace = Trace();
        std::vector<uint32_t> ids(tokens / 16);
        for (uint32_t i = 0; i < ids.size(); i++)
            ids[i] = i;
        trace.add(0, tokens, 9, ids);
        replay();
        LONGS_EQUAL(8, o.decode_tokens);
        DOUBLES_EQUAL(4, o.members_mean, 0);
        double a_token = (double)o.wire.decode / 8;
        /* 3 others, 2 layers, 32 values of 2 bytes; the partial has 8 bytes a head more */
        DOUBLES_EQUAL(3 * 2 * (64 + 98 + 64 + 32 + 98), a_token, 0);
        CHECK(before == 0 || a_token == before);
        before = a_token;
    }
}

/* ---- any trace, every policy ------------------------------------------------------------------
 */

namespace {

Trace random_trace(std::mt19937_64 &rng, size_t count, uint32_t most_blocks) {
    Trace t;
    std::vector<std::vector<uint32_t>> known;
    uint32_t fresh = 0;
    uint64_t ns = 0;
    for (size_t i = 0; i < count; i++) {
        std::vector<uint32_t> ids;
        if (!known.empty() && rng() % 2) {
            ids = known[rng() % known.size()];
            ids.resize(1 + rng() % ids.size());
        }
        size_t more = rng() % 6 + ids.empty();
        while (more-- && ids.size() < most_blocks)
            ids.push_back(fresh++);
        known.push_back(ids);
        ns += rng() % 60000;
        t.add(ns, (uint32_t)(16 * ids.size() - rng() % 16), 1 + (uint32_t)(rng() % 40), ids);
    }
    return t;
}

} // namespace

TEST(Cluster, WhatMustHoldForEveryPolicy) {
    auto rng = test_rng(21);
    c.byte_ps = 20;
    c.link_ns = 5;
    c.switch_ns = 7;
    c.merge_ns = 3;
    c.frame_overhead = 98;
    m.bytes_per_s = 1e12;
    m.flops_per_s = 1e12;
    for (int round = 0; round < 12; round++) {
        c.nodes = 1 + rng() % 9;
        c.group = 1 + rng() % 8;
        c.capacity = 20 + rng() % 60;
        c.load = 0.5 + (double)(rng() % 8);
        trace = random_trace(rng, 150, 16);
        for (const mr_kv_policy *p : policies) {
            c.policy = p;
            replay();
            std::string say = std::string(p->name) + " in round " + std::to_string(round);
            CHECK_EQUAL_TEXT(trace.requests.size(), o.finished, say.c_str());
            CHECK_EQUAL_TEXT(o.sent_bytes, o.received_bytes, say.c_str());
            const mr_cluster_wire &w = o.wire;
            CHECK_EQUAL_TEXT(o.sent_bytes,
                             w.exchange + w.shipped + w.pulled + w.placed + w.moved + w.spread +
                                 w.decode,
                             say.c_str());
            CHECK_TEXT(o.peak_blocks <= c.capacity, say.c_str());
            uint64_t output = 0;
            for (auto &q : trace.requests)
                output += q.output;
            CHECK_EQUAL_TEXT(output, o.output_tokens, say.c_str());
            CHECK_EQUAL_TEXT(output - trace.requests.size(), o.decode_tokens, say.c_str());
            if (p == &mr_kv_no_replication || p == &mr_kv_ring || p == &mr_kv_convert)
                LONGS_EQUAL(0, o.replica_blocks);
            if (p != &mr_kv_convert)
                LONGS_EQUAL(0, w.moved);
            if (c.nodes == 1)
                LONGS_EQUAL(0, o.sent_bytes);
            mr_cluster_result first = o;
            std::vector<uint64_t> times = ttft;
            replay(); /* the same again, to the last bit */
            CHECK_TEXT(times == ttft, say.c_str());
            CHECK_TEXT(memcmp(&first, &o, sizeof o) == 0, say.c_str());
        }
    }
}

/* With room for everything and a request at a time, every block that was ever named is a hit. */
TEST(Cluster, AnInfiniteCacheForgetsNothing) {
    auto rng = test_rng(22);
    Trace t = random_trace(rng, 300, 16);
    std::set<uint32_t> seen;
    uint64_t want = 0;
    for (size_t i = 0; i < t.requests.size(); i++) {
        t.requests[i].arrival_ns = i * 1000000000;
        bool leading = true;
        for (uint32_t id : t.names[i])
            want += (leading = leading && seen.count(id));
        seen.insert(t.names[i].begin(), t.names[i].end());
    }
    trace = t;
    c.capacity = 100000;
    c.byte_ps = 1;
    for (size_t nodes = 1; nodes <= 4; nodes += 3)
        for (const mr_kv_policy *p : policies) {
            c.policy = p;
            c.nodes = nodes;
            replay();
            /* on several nodes it may be quicker to compute a block than to fetch it */
            CHECK_TEXT(nodes > 1 || o.blocks_reused == want, p->name);
            CHECK_TEXT(o.blocks_reused <= want && o.blocks_reused > want * 9 / 10, p->name);
        }
}

TEST(Cluster, BadConfigurationsAreNamed) {
    trace.add(10, 16, 1, {0});
    replay();
    mr_cluster_config good = c;
    auto refused = [&](const char *word) {
        STRCMP_CONTAINS(word, mr_cluster_config_error(&c));
        CHECK_FALSE(mr_cluster_run(&c, nullptr, &o, nullptr));
        c = good;
    };
    c.nodes = 65;
    refused("nodes");
    c.load = NAN;
    refused("load");
    c.capacity = 0;
    refused("capacity");
    c.step_requests = 64;
    refused("step_requests");
    c.byte_ps = 0;
    refused("byte_ps");
    mr_cluster_request late[2] = {trace.requests[0], trace.requests[0]};
    late[1].arrival_ns = 9;
    c.request = late;
    c.requests = 2;
    refused("order");
    late[1].arrival_ns = 10;
    late[1].output = 0;
    c.request = late;
    c.requests = 2;
    refused("output");
}

TEST(Cluster, AStopEndsIt) {
    trace.add(0, 16, 1000, {0});
    trace.point();
    c.request = trace.requests.data();
    c.requests = 1;
    c.blocks = 1;
    volatile int stop = 1;
    CHECK_FALSE(mr_cluster_run(&c, &stop, &o, nullptr));
}
