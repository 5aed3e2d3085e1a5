/* What the policies decide, on views made by hand and on random ones. */
#include "tests/unit/kv/support.h"

#include "host/kv/policy.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <CppUTest/TestHarness.h>

namespace {

const mr_kv_policy *const policies[] = {&mr_kv_mars, &mr_kv_no_replication, &mr_kv_convert,
                                        &mr_kv_ring, &mr_kv_prefix_cache};

/* A token takes 100 ns shared by the members, and 1 ns for every 100 tokens it attends to. */
uint64_t prompt_ns(const void *, uint64_t tokens, uint64_t context, uint64_t shipped,
                   size_t members) {
    return tokens * (100 + (context - shipped + tokens / 2) / 100) / members;
}

uint64_t ship_ns(const void *, uint64_t tokens, uint64_t keys) { return tokens * keys / 100; }

} // namespace

TEST_GROUP(Policy) {
    mr_kv_costs costs;
    mr_kv_node node[MR_KV_NODES];
    mr_kv_view view;
    mr_kv_request request;
    std::vector<mr_kv_set> where;
    std::vector<uint32_t> uses;
    mr_kv_plan plan;

    void setup() override {
        costs = {};
        costs.block_tokens = 16;
        costs.block_bytes = 1600; /* 100 a token */
        costs.query_bytes = 200;
        costs.partial_bytes = 200;
        costs.byte_ps = 1000; /* a byte a nanosecond: a block takes as long as computing it */
        costs.layers = 10;
        costs.hop_ns = 0;
        costs.prompt_ns = prompt_ns;
        costs.ship_ns = ship_ns;
        for (mr_kv_node &n : node) {
            n = {};
            n.capacity = 100;
        }
        view = {};
        view.nodes = 4;
        view.waiting = 1;
        view.free = 15;
        view.node = node;
        view.costs = &costs;
        plan = {};
    }
    /* A prompt of so many blocks, the first ones held as given. */
    void prompt(size_t blocks, std::vector<mr_kv_set> held = {}, size_t output = 1) {
        where = held;
        where.resize(blocks, 0);
        uses.assign(blocks, 1);
        for (size_t b = 0; b < held.size(); b++)
            uses[b] = 2;
        request = {};
        request.tokens = blocks * 16;
        request.blocks = blocks;
        request.output_blocks = output;
        request.hit = held.size();
        request.where = where.data();
        request.uses = uses.data();
    }
};

TEST(Policy, NamesAreFound) {
    for (const mr_kv_policy *p : policies)
        POINTERS_EQUAL(p, mr_kv_policy_find(p->name));
    POINTERS_EQUAL(nullptr, mr_kv_policy_find("tree"));
}

TEST(Policy, AnEstimateByHand) {
    prompt(4, {1, 1}); /* 32 of 64 tokens are on node 0 */
    plan.count = 1;
    plan.member[0] = 1;
    plan.reuse = 2;
    node[1].backlog_ns = 1000;
    mr_kv_estimate(&view, &request, MR_KV_GATHER, &plan);
    CHECK_EQUAL((uint64_t)32 * 100, plan.prompt_ns); /* (32 + 16) / 100 is 0 */
    CHECK_EQUAL((uint64_t)3200, plan.wire_ns);
    CHECK_EQUAL((uint64_t)3200 + 320, plan.duration_ns);
    CHECK_EQUAL((uint64_t)1000 + 3520, plan.finish_ns);
    /* the link is busy for longer than the node */
    node[0].out_ns = 9000;
    mr_kv_estimate(&view, &request, MR_KV_GATHER, &plan);
    CHECK_EQUAL((uint64_t)9000 + 3200, plan.finish_ns);
    /* two members: each sends what it computes to the other, and node 0 its blocks to node 1 */
    node[0].out_ns = 0;
    plan.count = 2;
    plan.member[0] = 0;
    plan.member[1] = 1;
    mr_kv_estimate(&view, &request, MR_KV_GATHER, &plan);
    CHECK_EQUAL((uint64_t)1600, plan.prompt_ns);
    CHECK_EQUAL((uint64_t)3200 + 1600, plan.wire_ns);
    /* asked instead: 16 queries to node 0 and 16 partials back, and its 16 * 32 / 100 per query */
    plan.ship = 1;
    mr_kv_estimate(&view, &request, MR_KV_GATHER, &plan);
    CHECK_EQUAL((uint64_t)1600 + 3200, plan.wire_ns);
    CHECK_EQUAL((uint64_t)1600 + 32 * 32 / 100, plan.prompt_ns);
}

TEST(Policy, SourcesShareTheLoad) {
    mr_kv_sources s = {};
    std::vector<size_t> sent(4, 0);
    for (int b = 0; b < 30; b++)
        sent[mr_kv_next_source(&s, 7, 15)]++; /* 0, 1, 2 hold all, 3 lacks all */
    LONGS_EQUAL(10, sent[0]);
    LONGS_EQUAL(10, sent[1]);
    LONGS_EQUAL(10, sent[2]);
    LONGS_EQUAL(3, mr_kv_next_source(&s, 8, 7)); /* no member has it */
}

TEST(Policy, AtLeastOneTokenIsComputed) {
    prompt(3, {1, 1, 1});
    request.tokens = 47;
    CHECK_EQUAL((uint64_t)46, mr_kv_reused_tokens(&view, &request, 3));
    CHECK_EQUAL((uint64_t)32, mr_kv_reused_tokens(&view, &request, 2));
}

TEST(Policy, ThePrefixIsWorthAQueueOfItsOwnLength) {
    prompt(10, std::vector<mr_kv_set>(8, 4)); /* eight of ten blocks on node 2 */
    costs.byte_ps = 100000;                   /* fetching is out of the question */
    node[2].backlog_ns = 5000;
    CHECK_TRUE(mr_kv_prefix_cache.place(&view, &request, &plan));
    LONGS_EQUAL(2, plan.root);
    LONGS_EQUAL(8, plan.reuse);
    node[2].backlog_ns = 50000;
    CHECK_TRUE(mr_kv_prefix_cache.place(&view, &request, &plan));
    LONGS_EQUAL(0, plan.root);
    LONGS_EQUAL(0, plan.reuse); /* computed again */
    costs.byte_ps = 10;         /* now fetching costs nearly nothing */
    CHECK_TRUE(mr_kv_prefix_cache.place(&view, &request, &plan));
    LONGS_EQUAL(0, plan.root);
    LONGS_EQUAL(8, plan.reuse);
    LONGS_EQUAL(1, plan.count);
}

TEST(Policy, QueriesTravelToALongPrefixAndBlocksToALongPrompt) {
    costs.byte_ps = 4000; /* the wire is what takes time */
    prompt(41, std::vector<mr_kv_set>(40, 2));
    plan.count = 1;
    plan.member[0] = 0;
    node[1].backlog_ns = 1000000;
    mr_kv_mars.begin(&view, &request, &plan); /* node 1 may join, but has the prefix anyway */
    CHECK(plan.reuse == 40);
    view.free = 0;
    plan.count = 1;
    mr_kv_mars.begin(&view, &request, &plan);
    LONGS_EQUAL(2, plan.ship); /* 16 * 400 bytes instead of 40 * 1600 */
    prompt(60, std::vector<mr_kv_set>(2, 2));
    mr_kv_mars.begin(&view, &request, &plan);
    LONGS_EQUAL(0, plan.ship);
}

TEST(Policy, FreeNodesJoinWhereThatPays) {
    prompt(40);
    plan.count = 1;
    plan.member[0] = 3;
    costs.byte_ps = 10;
    mr_kv_mars.begin(&view, &request, &plan);
    LONGS_EQUAL(4, plan.count);
    LONGS_EQUAL(3, plan.member[0]);
    costs.byte_ps = 1000000;
    plan.count = 1;
    mr_kv_mars.begin(&view, &request, &plan);
    LONGS_EQUAL(1, plan.count);
    costs.byte_ps = 10;
    view.free = 2;
    mr_kv_ring.begin(&view, &request, &plan);
    LONGS_EQUAL(2, plan.count);
    LONGS_EQUAL(1, plan.member[1]);
    plan.count = 1;
    view.waiting = 1000; /* the others' time is worth more than this one's */
    costs.byte_ps = 900; /* two are little faster than one */
    mr_kv_ring.begin(&view, &request, &plan);
    LONGS_EQUAL(1, plan.count);
}

TEST(Policy, NewBlocksStayOnTheMembersOrWhereThereIsRoom) {
    uint32_t share[MR_KV_NODES];
    prompt(12);
    plan.count = 3;
    plan.member[0] = 2;
    plan.member[1] = 0;
    plan.member[2] = 3;
    plan.root = 2;
    for (const mr_kv_policy *p : policies) {
        p->homes(&view, &request, &plan, share);
        LONGS_EQUAL(4, share[0]);
        LONGS_EQUAL(0, share[1]);
        LONGS_EQUAL(4, share[2]);
        LONGS_EQUAL(4, share[3]);
    }
    node[0].pinned = 99;
    node[2].pinned = 97; /* the root: three, of which one is for the output */
    mr_kv_mars.homes(&view, &request, &plan, share);
    LONGS_EQUAL(1, share[0]);
    LONGS_EQUAL(5, share[1]); /* it has the most room */
    LONGS_EQUAL(2, share[2]);
    LONGS_EQUAL(4, share[3]);
    mr_kv_ring.homes(&view, &request, &plan, share);
    LONGS_EQUAL(0, share[1]);
}

TEST(Policy, WhatNoNodeCanHoldNeedsSeveral) {
    prompt(150);
    CHECK_FALSE(mr_kv_prefix_cache.place(&view, &request, &plan));
    CHECK_FALSE(mr_kv_convert.place(&view, &request, &plan));
    CHECK_TRUE(mr_kv_ring.place(&view, &request, &plan));
    LONGS_EQUAL(2, plan.count);
    CHECK_TRUE(mr_kv_mars.place(&view, &request, &plan));
    prompt(500);
    for (const mr_kv_policy *p : policies)
        CHECK_FALSE(p->place(&view, &request, &plan));
}

TEST(Policy, ReplicasWhileHeadRoomLasts) {
    mr_kv_spare spare = {1, 8};
    CHECK(mr_kv_mars.keep(&view, &spare) == MR_KV_KEEP);
    spare.uses = 7; /* fewer than two for each of four nodes */
    CHECK(mr_kv_mars.keep(&view, &spare) == MR_KV_SPARE);
    node[1].pinned = 50;
    CHECK(mr_kv_mars.keep(&view, &spare) == MR_KV_NO);
    CHECK(mr_kv_no_replication.keep(&view, &spare) == MR_KV_NO);
    CHECK_FALSE(mr_kv_mars.drain(&view, 1));
    node[1].pinned = 76;
    CHECK_TRUE(mr_kv_mars.drain(&view, 1));
    CHECK_FALSE(mr_kv_no_replication.drain(&view, 1));
    /* copies follow the uses, to the emptiest node that has none */
    node[0].pinned = 3;
    node[2].pinned = 2;
    node[3].pinned = 1;
    LONGS_EQUAL(MR_KV_NODES, mr_kv_mars.spread(&view, 8, 15));
    LONGS_EQUAL(2, mr_kv_mars.spread(&view, 8, 16));
    LONGS_EQUAL(0, mr_kv_mars.spread(&view, 12, 32));
    LONGS_EQUAL(MR_KV_NODES, mr_kv_mars.spread(&view, 13, 1000)); /* node 1 has no head-room */
    LONGS_EQUAL(MR_KV_NODES, mr_kv_convert.spread(&view, 8, 1000));
}

/* Whatever the view: members are nodes, each once; further ones are free; the root is a member;
   every new block has one home; the same view gives the same plan. */
TEST(Policy, PlansAreSound) {
    auto rng = test_rng(1);
    for (int round = 0; round < 3000; round++) {
        view.nodes = 1 + rng() % (round % 10 ? 9 : MR_KV_NODES);
        mr_kv_set all = view.nodes == 64 ? ~(mr_kv_set)0 : ((mr_kv_set)1 << view.nodes) - 1;
        view.waiting = rng() % 20;
        view.free = rng() & all;
        costs.byte_ps = 1 + rng() % 5000;
        costs.hop_ns = rng() % 100;
        for (size_t n = 0; n < view.nodes; n++) {
            node[n].capacity = 40 + rng() % 100;
            node[n].pinned = rng() % node[n].capacity;
            node[n].backlog_ns = rng() % 3 ? rng() % 50000 : 0;
            node[n].in_ns = rng() % 4 ? 0 : rng() % 10000;
            node[n].out_ns = rng() % 4 ? 0 : rng() % 10000;
            node[n].decode_tokens = rng() % 1000;
        }
        std::vector<mr_kv_set> held(rng() % 20);
        for (mr_kv_set &h : held)
            while (!h)
                h = rng() & rng() & all;
        prompt(held.size() + 1 + rng() % 30, held, 1 + rng() % 3);
        for (const mr_kv_policy *p : policies) {
            if (!p->place(&view, &request, &plan))
                continue;
            std::string say = std::string(p->name) + " in round " + std::to_string(round);
            mr_kv_set before = mr_kv_members(&plan), again_set;
            size_t base = plan.count;
            mr_kv_plan again = plan;
            p->begin(&view, &request, &plan);
            again_set = mr_kv_members(&plan);
            LONGS_EQUAL_TEXT(plan.count, __builtin_popcountll(again_set), say.c_str());
            CHECK_TEXT(!(again_set & ~all) && (before & ~again_set) == 0, say.c_str());
            CHECK_TEXT(((again_set & ~before) & ~view.free) == 0, say.c_str());
            CHECK_TEXT(plan.count >= base && (again_set >> plan.root & 1), say.c_str());
            CHECK_TEXT(plan.reuse <= request.hit, say.c_str());
            CHECK_TEXT(!plan.ship || p->layout == MR_KV_SHARDED, say.c_str());
            if (p->exchange == MR_KV_ALONE)
                LONGS_EQUAL(1, plan.count);
            p->begin(&view, &request, &again);
            CHECK_TEXT(again.finish_ns == plan.finish_ns && again.count == plan.count &&
                           !memcmp(again.member, plan.member, plan.count),
                       say.c_str());
            uint32_t share[MR_KV_NODES];
            uint64_t sum = 0;
            p->homes(&view, &request, &plan, share);
            for (size_t n = 0; n < view.nodes; n++)
                sum += share[n];
            CHECK_EQUAL_TEXT(request.blocks - plan.reuse, sum, say.c_str());
            size_t count = plan.count;
            p->grow(&view, 1 + rng() % 500, rng() % 500, &plan);
            CHECK_TEXT(plan.count >= count, say.c_str());
            LONGS_EQUAL_TEXT(plan.count, __builtin_popcountll(mr_kv_members(&plan)), say.c_str());
        }
    }
}
