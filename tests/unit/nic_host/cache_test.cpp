/* The KV cache: what it says is there is there, with the right bytes, whatever the policy evicts,
 * replicates and drains. */
#include "tests/unit/nic_host/support.h"

#include "host/kv/cache.h"

namespace {

const size_t kLayers = 2;
const uint32_t kBytes = 5000; /* two pages a layer */

/* Bytes of a block by its name alone. */
std::vector<uint8_t> content(uint64_t name, size_t layer) {
    std::mt19937_64 rng(name * 31 + layer);
    std::vector<uint8_t> v(kBytes);
    for (uint8_t &b : v)
        b = (uint8_t)rng();
    return v;
}

uint64_t prompt_ns(const void *, uint64_t tokens, uint64_t context, uint64_t, size_t members) {
    return tokens * (1000 + context) / members;
}
uint64_t ship_ns(const void *, uint64_t tokens, uint64_t keys) { return tokens * keys; }

const mr_kv_costs kCosts = {16,   kLayers *kBytes, 4096,    4096,   80, kLayers,
                            1000, prompt_ns,       ship_ns, nullptr};

struct Cache {
    mr_kv_cache *c = nullptr;
    std::vector<uint8_t> ranks;
    Cache(Cluster &cluster, const char *policy, uint64_t capacity) : ranks(cluster.ranks()) {
        mr_kv_cache_options o = {};
        o.nic = cluster.nic;
        o.job = 1;
        o.ranks = ranks.data();
        o.nodes = ranks.size();
        o.policy = mr_kv_policy_find(policy);
        o.costs = &kCosts;
        o.layers = kLayers;
        o.layer_bytes = kBytes;
        o.capacity = capacity;
        CHECK_OK(mr_kv_cache_create(&o, &c));
    }
    Cache(const Cache &) = delete;
    ~Cache() { mr_kv_cache_destroy(c); }
    mr_kv_cache_stats stats() const {
        mr_kv_cache_stats s;
        mr_kv_cache_get_stats(c, &s);
        return s;
    }
};

/* Conversations: a node of a tree is a block, its name a hash of the way to it. */
std::vector<uint64_t> conversation(std::mt19937_64 &rng, size_t blocks, unsigned branches) {
    std::vector<uint64_t> names;
    uint64_t h = 0x1234567;
    for (size_t i = 0; i < blocks; i++) {
        h = (h ^ (rng() % branches)) * 0x9E3779B97F4A7C15u + i;
        names.push_back(h);
    }
    return names;
}

void fill(mr_kv_run *run, const std::vector<uint64_t> &names) {
    for (size_t b = 0; b < names.size(); b++)
        for (size_t l = 0; !mr_kv_run_whole(run, b) && l < kLayers; l++)
            CHECK_OK(mr_kv_run_write(run, b, l, content(names[b], l).data()));
}

void verify(mr_kv_run *run, const std::vector<uint64_t> &names, std::mt19937_64 &rng,
            size_t nodes) {
    std::vector<uint8_t> got(kBytes);
    for (size_t b = 0; b < names.size(); b++) {
        size_t layer = rng() % kLayers;
        CHECK_OK(mr_kv_run_read(run, rng() % nodes, b, layer, got.data()));
        CHECK(got == content(names[b], layer));
    }
}

} // namespace

TEST_GROUP(KvCache){};

TEST(KvCache, EveryPolicyServesTheRightBytes) {
    for (const char *policy : {"mars", "no-replication", "convert", "ring", "prefix-cache"}) {
        auto rng = test_rng(90);
        Cluster c(uri(4, kFaults, test_seed));
        CHECK_OK(mr_nic_set_timers(c.nic, 1024, 0));
        c.job(1);
        uint64_t before, after;
        CHECK_OK(mr_nic_kv_free(c.nic, 2, &before));
        {
            Cache cache(c, policy, 24);
            for (int i = 0; i < 60; i++) {
                auto names = conversation(rng, 1 + rng() % 8, 2);
                size_t output = rng() % 2;
                mr_kv_run *run;
                CHECK_OK(mr_kv_cache_begin(cache.c, names.data(), names.size(),
                                           names.size() * 16 - rng() % 16, output, &run));
                CHECK_OK(mr_kv_run_spread(run));
                fill(run, names);
                if (output) {
                    names.push_back(rng());
                    CHECK_OK(mr_kv_cache_append(run, names.back()));
                    fill(run, names);
                    CHECK_STATUS(MR_LIMIT, mr_kv_cache_append(run, 1));
                }
                verify(run, names, rng, 4);
                CHECK_OK(mr_kv_cache_end(run));
                mr_kv_cache_stats s = cache.stats();
                CHECK(s.copies >= s.blocks && s.copies <= 4 * 24);
            }
            mr_kv_cache_stats s = cache.stats();
            CHECK(s.reused > 0);
            CHECK(strcmp(policy, "mars") == 0 || s.replicas == 0);
        }
        CHECK_OK(mr_nic_job_destroy(c.nic, 1));
        CHECK_OK(mr_nic_kv_free(c.nic, 2, &after));
        UNSIGNED_LONGS_EQUAL(before, after);
    }
}

TEST(KvCache, LeastRecentlyUsedGoesFirst) {
    Cluster c(uri(1));
    c.job(1);
    Cache cache(c, "no-replication", 4);
    auto use = [&](uint64_t name) {
        mr_kv_run *run;
        CHECK_OK(mr_kv_cache_begin(cache.c, &name, 1, 16, 0, &run));
        bool there = mr_kv_run_whole(run, 0);
        fill(run, {name});
        CHECK_OK(mr_kv_cache_end(run));
        return there;
    };
    for (uint64_t name : {1, 2, 3, 4})
        CHECK(!use(name));
    CHECK(use(1));  /* now 2 is the oldest */
    CHECK(!use(5)); /* evicts 2 */
    CHECK(use(3) && use(4) && use(1) && use(5));
    CHECK(!use(2));
    UNSIGNED_LONGS_EQUAL(2, cache.stats().evicted);
}

TEST(KvCache, WhatIsPinnedStays) {
    Cluster c(uri(1));
    c.job(1);
    Cache cache(c, "no-replication", 4);
    uint64_t first[] = {1, 2, 3}, second[] = {7, 8}, many[] = {1, 2, 3, 4, 5};
    mr_kv_run *run, *other = nullptr;
    CHECK_STATUS(MR_OUT_OF_MEMORY, mr_kv_cache_begin(cache.c, many, 5, 80, 0, &other));
    CHECK_MESSAGE("can never fit");
    CHECK_OK(mr_kv_cache_begin(cache.c, first, 3, 48, 0, &run));
    CHECK_STATUS(MR_OUT_OF_MEMORY, mr_kv_cache_begin(cache.c, second, 2, 32, 0, &other));
    CHECK_MESSAGE("in use");
    CHECK(!other);
    fill(run, {1, 2, 3});
    CHECK_OK(mr_kv_cache_end(run));
    UNSIGNED_LONGS_EQUAL(3, cache.stats().copies);
    CHECK_OK(mr_kv_cache_begin(cache.c, second, 2, 32, 0, &other));
    CHECK_OK(mr_kv_cache_end(other)); /* nothing written: forgotten */
    UNSIGNED_LONGS_EQUAL(2, cache.stats().copies);
}

/* A block that everybody uses gets replicas while there is room; pressure takes them away. */
TEST(KvCache, MarsReplicatesAndDrains) {
    auto rng = test_rng(91);
    Cluster c(uri(3));
    CHECK_OK(mr_nic_set_timers(c.nic, 256, 0));
    c.job(1);
    Cache cache(c, "mars", 10);
    std::vector<uint64_t> hot = {42};
    mr_kv_run *run;
    for (int i = 0; i < 80; i++) {
        CHECK_OK(mr_kv_cache_begin(cache.c, hot.data(), 1, 17, 0, &run));
        CHECK_OK(mr_kv_run_spread(run));
        fill(run, hot);
        verify(run, hot, rng, 3);
        CHECK_OK(mr_kv_cache_end(run));
    }
    UNSIGNED_LONGS_EQUAL(2, cache.stats().replicas);
    UNSIGNED_LONGS_EQUAL(3, cache.stats().copies);
    std::vector<uint64_t> much;
    for (uint64_t i = 0; i < 26; i++)
        much.push_back(1000 + i);
    CHECK_OK(mr_kv_cache_begin(cache.c, much.data(), much.size(), 26 * 16, 0, &run));
    fill(run, much);
    verify(run, much, rng, 3);
    CHECK(cache.stats().dropped >= 1);
    CHECK_OK(mr_kv_cache_end(run));
    CHECK_OK(mr_kv_cache_begin(cache.c, hot.data(), 1, 16, 0, &run));
    fill(run, hot);
    verify(run, hot, rng, 3);
    CHECK_OK(mr_kv_cache_end(run));
}

TEST(KvCache, RefusedByName) {
    Cluster c(uri(2));
    c.job(1);
    Cache cache(c, "mars", 8);
    uint64_t twice[] = {5, 6, 5}, two[] = {1, 2};
    mr_kv_run *run = nullptr;
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_kv_cache_begin(cache.c, twice, 3, 48, 0, &run));
    CHECK_MESSAGE("names[2]");
    UNSIGNED_LONGS_EQUAL(0, cache.stats().copies);
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_kv_cache_begin(cache.c, two, 0, 48, 0, &run));
    CHECK_OK(mr_kv_cache_begin(cache.c, two, 2, 32, 0, &run));
    std::vector<uint8_t> data(kBytes);
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_kv_run_write(run, 2, 0, data.data()));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_kv_run_write(run, 0, 1, data.data()));
    CHECK_MESSAGE("in order");
    CHECK_STATUS(MR_NOT_FOUND, mr_kv_run_read(run, 0, 0, 0, data.data()));
    CHECK_OK(mr_kv_run_write(run, 0, 0, data.data()));
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_kv_run_write(run, 0, 0, data.data()));
    CHECK_OK(mr_kv_cache_end(run));
}
