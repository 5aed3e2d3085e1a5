// The directory in RTL at its full size, filled through host/nic/tables.c: what is found, how fast,
// and that a look-up between any two descriptors sees every entry whole.
#include "tests/rtl/nic/dir_bench.hpp"

#include <map>

namespace {

mr_nic_dir_entry random_entry(Rng &rng, unsigned jobs, unsigned layers, uint32_t blocks) {
    mr_nic_dir_entry e = {};
    e.job = (uint16_t)rng.below(jobs), e.layer = (uint16_t)rng.below(layers);
    e.block = (uint32_t)rng.below(blocks);
    e.owner = (uint8_t)rng.below(32), e.named = (uint32_t)rng.next() | 1u << e.owner;
    e.epoch = (uint32_t)rng.next(), e.bytes = (uint32_t)rng.next();
    e.page = (uint32_t)rng.below(1 << 24);
    return e;
}

uint64_t key_of(const mr_nic_dir_entry &e) { return DirBench::key(e.job, e.layer, e.block); }

TEST_GROUP(nic_dir) {
    Rng rng{run_seed()};
    mr_nic_dir *dir = nullptr;
    std::map<uint64_t, Found> want;
    void setup() override { dir = mr_nic_dir_create(BUCKET_BITS); }
    void teardown() override { mr_nic_dir_destroy(dir); }

    Found expected(uint64_t key) const {
        auto at = want.find(key);
        return at == want.end() ? Found{} : at->second;
    }
    // One change of the table: a new entry, other values, or a removal. Looks `probes` up after
    // each step.
    void change(DirBench & b, const std::vector<uint64_t> &probes) {
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        size_t n = 0;
        mr_nic_dir_entry e = random_entry(rng, 4, 8, 4096);
        const bool known = mr_nic_dir_find(dir, e.job, e.layer, e.block) != nullptr;
        const bool gone = known && rng.percent(40);
        if (gone) {
            LONGS_EQUAL(MR_OK, mr_nic_dir_remove(dir, e.job, e.layer, e.block, steps[0]));
            n = 1;
        } else
            LONGS_EQUAL(MR_OK, mr_nic_dir_put(dir, &e, rng.percent(50), steps, &n));
        for (size_t i = 0; i < n; i++) {
            b.execute(steps[i]);
            for (uint64_t p : probes)
                if (p != key_of(e))
                    CHECK(b.look_up(p) == expected(p));
        }
        if (gone)
            want.erase(key_of(e));
        else
            want[key_of(e)] = found(e);
        CHECK(b.look_up(key_of(e)) == expected(key_of(e)));
    }
};

// After a reset nothing is there, whatever the memories held, and it takes 512 cycles.
TEST(nic_dir, empty_after_reset) {
    DirBench b(rng.next());
    const uint64_t start = b.cycles;
    CHECK(!b.look_up(DirBench::key(1, 2, 3)).hit);
    CHECK(b.cycles - start <= 512 + 4);
    for (int k = 0; k < 20000; k++)
        CHECK(!b.look_up(rng.next()).hit);
    for (int k = 0; k < 300; k++)
        change(b, {});
    b.reset();
    for (auto &w : want)
        CHECK(!b.look_up(w.first).hit);
    CHECK(!b.late && !b.broken);
}

// A look-up every 2 cycles, each answered after exactly 3, while all of them are right.
TEST(nic_dir, rate_and_latency) {
    DirBench b(rng.next());
    for (int k = 0; k < 3000; k++)
        change(b, {});
    std::vector<uint64_t> keys;
    for (auto &w : want)
        keys.push_back(w.first);
    std::deque<uint64_t> asked;
    b.look_up(0);
    const uint64_t start = b.cycles;
    b.top->lk_valid_i = 1;
    const int count = 20000;
    for (int k = 0; k < count; k++) {
        const uint64_t key = rng.percent(70) ? keys[rng.below(keys.size())] : rng.next();
        b.top->lk_key_i = key;
        asked.push_back(key);
        do
            b.cycle();
        while (!b.accepted);
    }
    printf(
        "directory: %.3f cycles a look-up (asked 2), latency %u cycles (asked <= 4), %u places\n",
        (double)(b.cycles - start + 1) / count, (unsigned)b.latency, 4u << BUCKET_BITS);
    CHECK_EQUAL(3u, b.latency);
    CHECK_EQUAL(2u * count - 1, b.cycles - start);
    b.top->lk_valid_i = 0;
    for (int k = 0; k < 4; k++)
        b.cycle();
    CHECK_EQUAL(asked.size(), b.answers.size());
    for (size_t k = 0; k < asked.size(); k++)
        CHECK(b.answers[k] == expected(asked[k]));
    CHECK(!b.late && !b.broken);
}

// Random changes of a dense set of keys; some entries are looked up after every descriptor.
TEST(nic_dir, changes) {
    DirBench b(rng.next());
    for (int k = 0; k < 20000; k++) {
        std::vector<uint64_t> probes;
        if (k % 8 == 0 && !want.empty())
            for (int p = 0; p < 8; p++) {
                auto at = want.lower_bound(key_of(random_entry(rng, 4, 8, 4096)));
                probes.push_back(at == want.end() ? want.begin()->first : at->first);
            }
        change(b, probes);
    }
    for (auto &w : want)
        CHECK(b.look_up(w.first) == w.second);
    CHECK(!b.late && !b.broken);
}

// Keys whose buckets are among the lowest 2^low of both tables: random members of the null space of
// the hashes' other bits.
class CrowdedKeys {
public:
    explicit CrowdedKeys(unsigned low) {
        std::vector<uint64_t> rows;
        for (int t = 0; t < 2; t++)
            for (unsigned i = low; i < BUCKET_BITS; i++)
                rows.push_back(mr_nic_dir_masks[t][i]);
        std::vector<int> pivot_of(64, -1);
        size_t rank = 0;
        for (int bit = 0; bit < 64 && rank < rows.size(); bit++) {
            size_t r = rank;
            while (r < rows.size() && !(rows[r] >> bit & 1))
                r++;
            if (r == rows.size())
                continue;
            std::swap(rows[r], rows[rank]);
            for (size_t o = 0; o < rows.size(); o++)
                if (o != rank && rows[o] >> bit & 1)
                    rows[o] ^= rows[rank];
            pivot_of[(size_t)bit] = (int)rank++;
        }
        for (int bit = 0; bit < 64; bit++) {
            if (pivot_of[(size_t)bit] >= 0)
                continue;
            uint64_t v = 1ull << bit;
            for (int p = 0; p < 64; p++)
                if (pivot_of[(size_t)p] >= 0 && rows[(size_t)pivot_of[(size_t)p]] >> bit & 1)
                    v |= 1ull << p;
            basis_.push_back(v);
        }
    }
    uint64_t draw(Rng &rng) const {
        uint64_t key = 0;
        for (uint64_t v : basis_)
            if (rng.percent(50))
                key ^= v;
        return key;
    }

private:
    std::vector<uint64_t> basis_;
};

// Entries move only when buckets are full: keys that crowd 64 places. Every entry is looked up
// after every descriptor.
TEST(nic_dir, full_buckets) {
    DirBench b(rng.next());
    const CrowdedKeys keys(4);
    size_t most = 0, refused = 0, filled = 0;
    for (int k = 0; k < 200; k++) {
        const uint64_t key = keys.draw(rng);
        mr_nic_dir_entry e = random_entry(rng, 1, 1, 1);
        e.job = (uint16_t)(key >> 48), e.layer = (uint16_t)(key >> 32), e.block = (uint32_t)key;
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        size_t n = 0;
        if (mr_nic_dir_put(dir, &e, false, steps, &n) != MR_OK) {
            // make room
            auto victim = want.lower_bound(rng.next());
            const uint64_t v = victim == want.end() ? want.begin()->first : victim->first;
            LONGS_EQUAL(MR_OK, mr_nic_dir_remove(dir, (uint16_t)(v >> 48), (uint16_t)(v >> 32),
                                                 (uint32_t)v, steps[0]));
            b.execute(steps[0]);
            want.erase(v);
            refused++;
        }
        most = n > most ? n : most;
        for (size_t i = 0; i < n; i++) {
            b.execute(steps[i]);
            for (auto &w : want)
                if (w.first != key)
                    CHECK(b.look_up(w.first) == w.second);
        }
        if (n)
            want[key] = found(e);
        filled = want.size() > filled ? want.size() : filled;
    }
    for (auto &w : want)
        CHECK(b.look_up(w.first) == w.second);
    printf("64 places: %zu filled, %zu keys refused, %zu steps at most\n", filled, refused, most);
    CHECK(most >= 2 && filled >= 52 && refused > 0);
    CHECK(!b.late && !b.broken);
}

} // namespace

int main(int argc, char **argv) { return bench_main(argc, argv); }
