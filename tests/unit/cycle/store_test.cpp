/* The block store: what is evicted in which order, and that counts always add up. */
#include "tests/unit/cycle/support.h"

#include "models/cycle/store.h"

#include <algorithm>
#include <list>
#include <set>
#include <vector>

#include <CppUTest/TestHarness.h>

TEST_GROUP(Store) {
    mr_store *s = nullptr;
    void teardown() override { mr_store_destroy(s); }
    void make(size_t nodes, size_t blocks, uint64_t capacity, bool replicas_first = false) {
        mr_store_destroy(s);
        s = mr_store_create(nodes, blocks, capacity, replicas_first);
        CHECK(s != nullptr);
    }
    void copy(size_t node, uint32_t block, bool pin = false) {
        CHECK_TRUE(mr_store_reserve(s, node, 1));
        mr_store_fill(s, node, block, pin);
    }
    void expect(size_t node, std::set<uint32_t> blocks, size_t names) {
        for (uint32_t b = 0; b < names; b++)
            LONGS_EQUAL(blocks.count(b), mr_store_where(s, b) >> node & 1);
    }
};

TEST(Store, TheLeastRecentlyUsedGoesFirst) {
    make(1, 8, 3);
    copy(0, 0);
    copy(0, 1);
    copy(0, 2);
    mr_store_pin(s, 0, 0);
    mr_store_unpin(s, 0, 0); /* just used */
    copy(0, 3);
    expect(0, {0, 2, 3}, 8);
    LONGS_EQUAL(1, mr_store_evictions(s));
    copy(0, 4);
    expect(0, {0, 3, 4}, 8);
}

TEST(Store, PinnedCopiesStay) {
    make(1, 8, 2);
    copy(0, 0, true);
    copy(0, 1);
    CHECK_FALSE(mr_store_reserve(s, 0, 2));
    expect(0, {0, 1}, 8); /* nothing was changed */
    CHECK_TRUE(mr_store_reserve(s, 0, 1));
    expect(0, {0}, 8);
    CHECK_FALSE(mr_store_reserve(s, 0, 1));
    mr_store_unpin(s, 0, 0);
    CHECK_TRUE(mr_store_reserve(s, 0, 1));
    expect(0, {}, 8);
    LONGS_EQUAL(2, mr_store_held(s, 0));
    mr_store_release(s, 0, 2);
    LONGS_EQUAL(0, mr_store_held(s, 0));
}

TEST(Store, ReplicasGoBeforeLastCopies) {
    make(2, 8, 2, true);
    copy(0, 0);
    copy(1, 1);
    copy(0, 1); /* a replica, and newer than block 0 */
    copy(0, 2);
    expect(0, {0, 2}, 8);
    /* a replica whose sister has gone is one no more */
    make(2, 8, 2, true);
    copy(1, 1);
    copy(0, 1);
    copy(0, 0);
    mr_store_drop(s, 1, 1);
    copy(0, 2);
    expect(0, {1, 2}, 8); /* block 1 counts as used when that was found */
}

TEST(Store, SpareRoomIsFreeOrAReplicas) {
    make(2, 8, 2, true);
    CHECK_TRUE(mr_store_reserve_spare(s, 0));
    mr_store_fill(s, 0, 0, false);
    copy(0, 1);
    CHECK_FALSE(mr_store_reserve_spare(s, 0)); /* two last copies */
    copy(1, 3);
    CHECK_TRUE(mr_store_reserve(s, 0, 1));
    mr_store_fill(s, 0, 3, false); /* a replica of 3 in the place of 0 */
    CHECK_TRUE(mr_store_reserve_spare(s, 0));
    expect(0, {1}, 8);
}

TEST(Store, ASecondCopyOnANodeIsNone) {
    make(1, 4, 4);
    copy(0, 2);
    copy(0, 2, true);
    LONGS_EQUAL(1, mr_store_held(s, 0));
    LONGS_EQUAL(1, mr_store_pinned(s, 0));
    mr_store_drop(s, 0, 2); /* pinned: stays */
    expect(0, {2}, 4);
    mr_store_unpin(s, 0, 2);
    mr_store_drop(s, 0, 2);
    mr_store_drop(s, 0, 2);
    expect(0, {}, 4);
}

/* Against a list of lists that is searched from the front. */
TEST(Store, RandomUseMatchesASlowList) {
    struct Item {
        uint32_t block;
        int pins;
    };
    auto rng = test_rng(11);
    const size_t nodes = 3, names = 40;
    const uint64_t capacity = 9;
    make(nodes, names, capacity);
    std::vector<std::list<Item>> slow(nodes); /* oldest first */
    std::vector<uint64_t> reserved(nodes, 0);
    auto find = [&](size_t n, uint32_t b) {
        return std::find_if(slow[n].begin(), slow[n].end(),
                            [b](const Item &i) { return i.block == b; });
    };
    for (int turn = 0; turn < 20000; turn++) {
        size_t n = rng() % nodes;
        uint32_t b = (uint32_t)(rng() % names);
        auto at = find(n, b);
        switch (rng() % 5) {
        case 0: {
            uint64_t want = 1 + rng() % 3, pinned = reserved[n];
            for (auto &i : slow[n])
                pinned += i.pins > 0;
            bool ok = pinned + want <= capacity;
            LONGS_EQUAL(ok, mr_store_reserve(s, n, want));
            for (; ok && reserved[n] + slow[n].size() + want > capacity;)
                slow[n].erase(std::find_if(slow[n].begin(), slow[n].end(),
                                           [](const Item &i) { return !i.pins; }));
            reserved[n] += ok ? want : 0;
            break;
        }
        case 1:
            if (reserved[n]) {
                bool pin = rng() % 2;
                mr_store_fill(s, n, b, pin);
                reserved[n]--;
                if (at == slow[n].end())
                    at = slow[n].insert(slow[n].end(), Item{b, 0});
                at->pins += pin;
            }
            break;
        case 2:
            if (at != slow[n].end()) {
                mr_store_pin(s, n, b);
                at->pins++;
            }
            break;
        case 3:
            if (at != slow[n].end() && at->pins) {
                mr_store_unpin(s, n, b);
                if (--at->pins == 0)
                    slow[n].splice(slow[n].end(), slow[n], at);
            }
            break;
        default:
            if (reserved[n]) {
                mr_store_release(s, n, 1);
                reserved[n]--;
            }
        }
        LONGS_EQUAL(slow[n].size() + reserved[n], mr_store_held(s, n));
        CHECK(mr_store_held(s, n) <= capacity);
        for (uint32_t k = 0; k < names; k++)
            LONGS_EQUAL(find(n, k) != slow[n].end(), mr_store_where(s, k) >> n & 1);
    }
}
