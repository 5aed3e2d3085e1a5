// The completed keys against a deque and a set: the last 4,096 inserted are seen and no other, for
// random keys, for the keys of real operations, and for keys that all meet in one chain.
#include "tests/rtl/common/bench.hpp"

#include "Vlate_tb.h"

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace {

const size_t LAST = 4096;
using Key = std::array<uint32_t, 4>; // 112 bits, lowest word first

Key key_of(uint32_t job, uint32_t request, uint32_t layer, uint32_t head0, uint32_t block) {
    // {job16, request32, layer16, head0_16, block32}
    return {block, layer << 16 | head0, request, job};
}

// The rule, written plainly.
class Rule {
public:
    void insert(const Key &k) {
        fifo_.push_back(k);
        count_[k]++;
        if (fifo_.size() <= LAST)
            return;
        if (!--count_[fifo_.front()])
            count_.erase(fifo_.front());
        fifo_.pop_front();
    }
    bool has(const Key &k) const { return count_.count(k) != 0; }
    size_t size() const { return fifo_.size(); }
    const Key &at(size_t k) const { return fifo_[k]; } // 0 is the oldest
    void clear() { fifo_.clear(), count_.clear(); }

private:
    std::deque<Key> fifo_;
    std::map<Key, int> count_;
};

struct LateBench : Bench<Vlate_tb> {
    explicit LateBench(uint64_t noise) : Bench(noise) {
        top->lk_valid_i = top->ins_valid_i = 0;
        put(&top->lk_key_i[0], {});
        put(&top->ins_key_i[0], {});
        reset();
    }
    template <class Words>
    static void put(Words *to, const Key &k) {
        for (int i = 0; i < 4; i++)
            to[i] = k[(size_t)i];
    }
    void cycle() {
        settle();
        looked = top->lk_valid_i && top->lk_ready_o;
        inserted = top->ins_valid_i && top->ins_ready_o;
        tick();
        settle();
        broken |= fired();
        if (looked) {
            accepted.push_back(cycles);
        }
        if (top->rsp_valid_o) {
            answers.push_back(top->rsp_seen_o != 0);
            if (accepted.empty())
                broken = true;
            else {
                const uint64_t took = cycles - accepted.front() + 1;
                fastest = took < fastest ? took : fastest;
                accepted.pop_front();
            }
        }
    }
    bool look_up(const Key &k) {
        put(&top->lk_key_i[0], k);
        top->lk_valid_i = 1;
        do
            cycle();
        while (!looked);
        top->lk_valid_i = 0;
        while (answers.empty())
            cycle();
        const bool seen = answers.front();
        answers.pop_front();
        return seen;
    }
    void insert(const Key &k) {
        put(&top->ins_key_i[0], k);
        top->ins_valid_i = 1;
        do
            cycle();
        while (!inserted);
        top->ins_valid_i = 0;
    }
    std::deque<bool> answers;
    std::deque<uint64_t> accepted;
    uint64_t fastest = 1000;
    bool looked = false, inserted = false, broken = false;
};

// Keys as hosts make them: consecutive requests of a few jobs, each over layers and head groups.
Key operation(uint64_t n) {
    const uint32_t request = (uint32_t)(n / 24), part = (uint32_t)(n % 24);
    return key_of(1 + request % 3, 0xFFFFFE00u + request / 3, part % 8, part / 8 * 8, 0);
}

Key noise(Rng &rng) {
    return {(uint32_t)rng.next(), (uint32_t)rng.next(), (uint32_t)rng.next(),
            (uint32_t)rng.below(65536)};
}

TEST_GROUP(nic_late) {
    Rng rng{run_seed()};
    Rule rule;
    void insert(LateBench & b, const Key &k) {
        b.insert(k);
        rule.insert(k);
    }
};

// Exactly the last 4,096: all of them, and none of those before, around the place where the ring
// closes.
TEST(nic_late, exactly_the_last) {
    for (const bool real : {true, false}) {
        LateBench b(rng.next());
        rule.clear();
        std::vector<Key> all;
        CHECK(!b.look_up(operation(0)));
        for (uint64_t n = 0; n < 3 * LAST; n++) {
            all.push_back(real ? operation(n) : noise(rng));
            insert(b, all.back());
            CHECK(b.look_up(all.back()));
            if (n >= LAST)
                CHECK(!b.look_up(all[n - LAST]));
            if (n + 1 >= LAST)
                CHECK(b.look_up(all[n + 1 - LAST]));
            if (n == LAST / 2 || n == LAST - 1 || n == LAST || n == 2 * LAST + 17)
                for (size_t k = 0; k < all.size(); k++)
                    CHECK_EQUAL(k + LAST > n, b.look_up(all[k]));
        }
        CHECK_EQUAL(3u, b.fastest);
        CHECK(!b.broken);
    }
}

// Inserts and look-ups in any order, of a set of keys that come back, with repeats, and a reset.
TEST(nic_late, any_order) {
    LateBench b(rng.next());
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 60000; k++) {
            const Key key = operation(rng.below(9000));
            if (rng.percent(40))
                insert(b, key);
            else
                CHECK_EQUAL(rule.has(key), b.look_up(key));
        }
        b.reset();
        for (int k = 0; k < 200; k++)
            CHECK(!b.look_up(rule.at(rng.below(rule.size()))));
        rule.clear();
    }
    CHECK(!b.broken);
}

// Look-ups and inserts offered at once and held ready: what was inserted before a look-up was
// accepted is seen, what had fallen out is not. (A key that comes or goes while it is being looked
// for may be either.)
TEST(nic_late, at_once) {
    LateBench b(rng.next());
    struct Asked {
        Key key;
        bool seen;
    };
    std::deque<Asked> asked;
    Key look = operation(0), come = operation(0);
    auto &t = *b.top;
    size_t compared = 0;
    t.lk_valid_i = t.ins_valid_i = 0;
    for (int k = 0; k < 200000; k++) {
        if (!t.lk_valid_i && rng.percent(80)) {
            look = operation(rng.below(9000));
            b.put(&t.lk_key_i[0], look);
            t.lk_valid_i = 1;
        }
        if (!t.ins_valid_i && rng.percent(15)) {
            come = operation(rng.below(9000));
            b.put(&t.ins_key_i[0], come);
            t.ins_valid_i = 1;
        }
        b.cycle();
        if (b.looked) {
            asked.push_back({look, rule.has(look)});
            t.lk_valid_i = 0;
        }
        if (!b.answers.empty()) {
            const Asked a = asked.front();
            asked.pop_front();
            const bool now = rule.has(a.key);
            CHECK(b.answers.front() == a.seen || b.answers.front() == now);
            compared += a.seen == now;
            b.answers.pop_front();
        }
        if (b.inserted) {
            rule.insert(come);
            t.ins_valid_i = 0;
        }
        CHECK(asked.size() <= 4);
    }
    CHECK(compared > 50000);
    CHECK(!b.broken);
}

// Keys of one chain: the hash is linear, so they are one key and what the hash does not see.
class Chain {
public:
    explicit Chain(LateBench &b) {
        std::vector<std::pair<uint32_t, Key>> rows; // hash of a combination of single bits
        for (int bit = 0; bit < 112; bit++) {
            Key k = {};
            k[(size_t)bit / 32] = 1u << bit % 32;
            uint32_t hash = hash_of(b, k);
            for (auto &r : rows)
                if ((hash ^ r.first) < hash)
                    hash ^= r.first, k = add(k, r.second);
            if (hash)
                rows.emplace_back(hash, k);
            else
                unseen_.push_back(k);
        }
    }
    static uint32_t hash_of(LateBench &b, const Key &k) {
        b.put(&b.top->lk_key_i[0], k);
        b.settle();
        return b.top->chain_o;
    }
    Key draw(Rng &rng, const Key &like) const {
        Key k = like;
        for (auto &u : unseen_)
            if (rng.percent(50))
                k = add(k, u);
        return k;
    }
    size_t size() const { return unseen_.size(); }

private:
    static Key add(Key a, const Key &b) {
        for (size_t i = 0; i < 4; i++)
            a[i] ^= b[i];
        return a;
    }
    std::vector<Key> unseen_;
};

// One chain of all keys, among a few of others: slow, and still exact.
TEST(nic_late, one_chain) {
    LateBench b(rng.next());
    const Chain chain(b);
    CHECK(chain.size() >= 112 - 13);
    const Key like = noise(rng);
    std::vector<Key> all;
    for (size_t n = 0; n < LAST + 1500; n++) {
        all.push_back(rng.percent(95) ? chain.draw(rng, like) : noise(rng));
        insert(b, all.back());
        if (n % 100 == 0) {
            const Key &k = all[rng.below(all.size())];
            CHECK_EQUAL(rule.has(k), b.look_up(k));
        }
    }
    CHECK_EQUAL(Chain::hash_of(b, like), Chain::hash_of(b, chain.draw(rng, like)));
    for (int k = 0; k < 150; k++) {
        const Key known = all[rng.below(all.size())], other = chain.draw(rng, like);
        CHECK_EQUAL(rule.has(known), b.look_up(known));
        CHECK_EQUAL(rule.has(other), b.look_up(other));
    }
    for (size_t n = 1495; n < 1506; n++)
        CHECK_EQUAL(rule.has(all[n]), b.look_up(all[n]));
    CHECK(!b.broken);
}

// A look-up a cycle where chains are short, and what it is with a full ring of random keys.
TEST(nic_late, rate) {
    LateBench b(rng.next());
    auto &t = *b.top;
    auto rate = [&](int count) {
        const uint64_t start = b.cycles;
        t.lk_valid_i = 1;
        for (int k = 0; k < count; k++) {
            b.put(&t.lk_key_i[0], noise(rng));
            do
                b.cycle();
            while (!b.looked);
        }
        t.lk_valid_i = 0;
        const double cycles = (double)(b.cycles - start) / count;
        for (int k = 0; k < 50; k++)
            b.cycle();
        b.answers.clear();
        return cycles;
    };
    const double empty = rate(10000);
    for (size_t k = 0; k < 2 * LAST; k++)
        b.insert(noise(rng));
    const double full = rate(10000);
    printf("completed keys: %.3f cycles a look-up (asked <= 2) with 4,096 keys, %.3f with none\n",
           full, empty);
    CHECK(empty == 1.0);
    CHECK(full < 2.0); // a frame comes every 2 cycles at most
    CHECK(!b.broken);
}

} // namespace

int main(int argc, char **argv) { return bench_main(argc, argv); }
