/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors byte by byte as docs/nic-descriptors.md has them, and the host's copy of the
 * directory against a NIC made of an array of slots: after every single descriptor every entry is
 * found. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "host/nic/tables.h"

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>
#include <CppUTest/TestHarness.h>

static unsigned long seed_value;

using Key = std::tuple<unsigned, unsigned, unsigned>;

/* What a look-up must give. */
struct Value {
    unsigned owner, named, epoch, bytes, page;
    bool operator==(const Value &o) const {
        return owner == o.owner && named == o.named && epoch == o.epoch && bytes == o.bytes &&
               page == o.page;
    }
};

/* A NIC's directory: executes DIR descriptors, looks keys up in the four places of their hash. */
class Nic {
public:
    explicit Nic(unsigned bits) : bits_(bits), slots_((size_t)4 << bits) {}
    void execute(const uint8_t *d) {
        CHECK_EQUAL(3, d[0]);
        size_t slot = word(d, 4);
        CHECK(slot < slots_.size());
        Slot &s = slots_[slot];
        s.valid = d[2] & 1;
        clears += d[2] >> 1 & 1;
        s.key = Key(half(d, 8), half(d, 10), word(d, 12));
        s.value = Value{d[32], word(d, 24), word(d, 16), word(d, 20), word(d, 28)};
    }
    const Value *find(const Key &k) const {
        const Slot *found = nullptr;
        for (unsigned t = 0; t < 2; t++) {
            size_t bucket = 0;
            for (unsigned i = 0; i < bits_; i++)
                bucket |= (size_t)parity(k, mr_nic_dir_masks[t][i]) << i;
            for (unsigned p = 0; p < 2; p++) {
                const Slot &s = slots_[((size_t)t << (bits_ + 1)) | bucket << 1 | p];
                if (!s.valid || s.key != k)
                    continue;
                /* twice is allowed, in the middle of a move, but not with two meanings */
                if (found && !(found->value == s.value))
                    FAIL("one key, two values");
                found = &s;
            }
        }
        return found ? &found->value : nullptr;
    }
    int clears = 0;

private:
    struct Slot {
        bool valid = false;
        Key key;
        Value value = {};
    };
    static unsigned half(const uint8_t *d, int at) { return d[at] | d[at + 1] << 8; }
    static unsigned word(const uint8_t *d, int at) {
        return half(d, at) | (unsigned)half(d, at + 2) << 16;
    }
    static unsigned parity(const Key &k, uint64_t mask) {
        unsigned p = 0;
        for (int b = 0; b < 16; b++)
            p ^= (std::get<0>(k) >> b & (mask >> (48 + b)) & 1) ^
                 (std::get<1>(k) >> b & (mask >> (32 + b)) & 1);
        for (int b = 0; b < 32; b++)
            p ^= std::get<2>(k) >> b & (mask >> b) & 1;
        return p;
    }
    unsigned bits_;
    std::vector<Slot> slots_;
};

static mr_nic_dir_entry entry_of(const Key &k, const Value &v) {
    mr_nic_dir_entry e = {};
    e.job = (uint16_t)std::get<0>(k), e.layer = (uint16_t)std::get<1>(k), e.block = std::get<2>(k);
    e.owner = (uint8_t)v.owner, e.named = v.named, e.epoch = v.epoch, e.bytes = v.bytes;
    e.page = v.page;
    return e;
}

static Value random_value(std::mt19937_64 &rng) {
    Value v = {(unsigned)(rng() % 32), (unsigned)rng(), (unsigned)rng(), (unsigned)rng(),
               (unsigned)(rng() & 0xFFFFFF)};
    v.named |= 1u << v.owner;
    return v;
}

TEST_GROUP(descriptors){};

TEST(descriptors, node) {
    mr_nic_node_desc n = {};
    n.rank = 7, n.ip = 0x0A000102, n.port = 19794, n.netport = 1;
    memcpy(n.mac, "\x02\x11\x22\x33\x44\x55", 6);
    mr_nic_desc d;
    memset(d, 0xEE, sizeof d);
    mr_nic_desc_node(d, &n);
    uint8_t want[64] = {1, 7, 3, 0, 0x52, 0x4D, 0, 0, 0x02, 0x01, 0x00, 0x0A};
    memcpy(want + 16, "\x55\x44\x33\x22\x11\x02", 6);
    MEMCMP_EQUAL(want, d, 64);
    mr_nic_desc_node_remove(d, 7);
    uint8_t gone[64] = {1, 7};
    MEMCMP_EQUAL(gone, d, 64);
}

TEST(descriptors, job) {
    mr_nic_job_desc j = {};
    j.row = 31, j.job = 0x1234, j.count = 32, j.root = 5, j.port1 = 0x80000001;
    uint8_t want[64] = {2, 31, 1, 32, 0x34, 0x12, 5, 0, 1, 0, 0, 0x80};
    for (int k = 0; k < 32; k++)
        want[16 + k] = j.ranks[k] = (uint8_t)(8 * k + 3);
    mr_nic_desc d;
    mr_nic_desc_job(d, &j);
    MEMCMP_EQUAL(want, d, 64);
    mr_nic_desc_job_remove(d, 31);
    uint8_t gone[64] = {2, 31};
    MEMCMP_EQUAL(gone, d, 64);
}

TEST(descriptors, options_and_pages) {
    mr_nic_options_desc o = {9, true, 0x01020304, 0x05060708, 0x1122334455667000u};
    mr_nic_desc d;
    mr_nic_desc_options(d, &o);
    uint8_t want[64] = {5, 9, 1, 0, 4, 3,    2,    1,    8,    7,    6,    5,
                        0, 0, 0, 0, 0, 0x70, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
    MEMCMP_EQUAL(want, d, 64);
    mr_nic_desc_valid_clear(d, 0x00ABCDEF, 0x00000123);
    uint8_t clear[64] = {4, 0, 0, 0, 0xEF, 0xCD, 0xAB, 0, 0x23, 1};
    MEMCMP_EQUAL(clear, d, 64);
}

TEST(descriptors, directory) {
    mr_nic_dir *dir = mr_nic_dir_create(17);
    mr_nic_dir_entry e = {0x0102,     0x0304,     0x05060708, 31,
                          0x80000001, 0x090A0B0C, 0x0D0E0F10, 0xABCDEF};
    mr_nic_desc d[MR_NIC_DIR_STEPS];
    size_t n = 0;
    LONGS_EQUAL(MR_OK, mr_nic_dir_put(dir, &e, true, d, &n));
    LONGS_EQUAL(1, n);
    uint8_t want[64] = {3,    0,    3,    0,    0,    0,    0,    0,    0x02, 0x01, 0x04,
                        0x03, 0x08, 0x07, 0x06, 0x05, 0x0C, 0x0B, 0x0A, 0x09, 0x10, 0x0F,
                        0x0E, 0x0D, 1,    0,    0,    0x80, 0xEF, 0xCD, 0xAB, 0,    31};
    memcpy(want + 4, d[0] + 4, 4); /* the slot: every other test looks entries up by it */
    MEMCMP_EQUAL(want, d[0], 64);
    mr_nic_dir_destroy(dir);
}

/* A copy and a NIC in step, and what must be in both. */
struct Pair {
    explicit Pair(unsigned bits) : dir(mr_nic_dir_create(bits)), nic(bits) {}
    ~Pair() { mr_nic_dir_destroy(dir); }
    Pair(const Pair &) = delete;
    mr_nic_dir *dir;
    Nic nic;
    std::map<Key, Value> want;
    size_t most = 0;

    void check_all(const Key *but) {
        for (auto &w : want) {
            if (but && w.first == *but)
                continue;
            const Value *got = nic.find(w.first);
            CHECK_TEXT(got, "an entry was lost");
            CHECK_TEXT(*got == w.second, "an entry has another's values");
        }
    }
    /* `every`: look at all entries after every descriptor */
    mr_status put(const Key &k, const Value &v, bool clear, bool every) {
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        size_t n = 0;
        mr_nic_dir_entry e = entry_of(k, v);
        mr_status s = mr_nic_dir_put(dir, &e, clear, steps, &n);
        if (s != MR_OK) {
            LONGS_EQUAL(0, n);
            return s;
        }
        most = n > most ? n : most;
        int clears = nic.clears;
        for (size_t i = 0; i < n; i++) {
            CHECK_EQUAL(clears, nic.clears);
            nic.execute(steps[i]);
            if (every)
                check_all(&k);
        }
        CHECK_EQUAL(clears + clear, nic.clears);
        want[k] = v;
        CHECK(nic.find(k) && *nic.find(k) == v);
        return s;
    }
    void remove(const Key &k) {
        mr_nic_desc step;
        LONGS_EQUAL(MR_OK, mr_nic_dir_remove(dir, (uint16_t)std::get<0>(k),
                                             (uint16_t)std::get<1>(k), std::get<2>(k), step));
        nic.execute(step);
        want.erase(k);
        CHECK(!nic.find(k));
    }
};

TEST_GROUP(directory){};

/* A small table, nearly full all the time: entries come, change and go, every one found at each
 * step. */
TEST(directory, every_look_up_at_every_step) {
    std::mt19937_64 rng(seed_value);
    for (unsigned bits = 1; bits <= 6; bits++) {
        Pair p(bits);
        size_t places = mr_nic_dir_places(p.dir), limits = 0;
        CHECK_EQUAL((size_t)4 << bits, places);
        for (int k = 0; k < 1500; k++) {
            Key key((unsigned)(rng() % 3), (unsigned)(rng() % 4), (unsigned)(rng() % (places / 4)));
            if (p.want.count(key) && rng() % 2)
                p.remove(key);
            else if (p.put(key, random_value(rng), rng() % 2, true) != MR_OK) {
                limits++;
                STRCMP_CONTAINS("the directory has no place for job", mr_last_error());
            }
            p.check_all(nullptr);
            CHECK_EQUAL(p.want.size(), mr_nic_dir_count(p.dir));
        }
        if (bits == 6)
            CHECK_TEXT(p.most > 2, "no entry ever had to make way");
        printf("%zu places: %zu entries at the end, %zu refused, %zu steps at most\n", places,
               p.want.size(), limits, p.most);
    }
}

/* Random keys fill 80 % of a table before one is refused. */
TEST(directory, load) {
    std::mt19937_64 rng(seed_value + 1);
    for (int round = 0; round < 4; round++) {
        Pair p(11);
        while (p.put(Key((unsigned)(rng() & 0xFFFF), (unsigned)(rng() & 0xFFFF), (unsigned)rng()),
                     random_value(rng), false, false) == MR_OK)
            ;
        double load = (double)p.want.size() / (double)mr_nic_dir_places(p.dir);
        p.check_all(nullptr);
        CHECK_EQUAL(p.want.size(), mr_nic_dir_count(p.dir));
        printf("refused at %.1f %% of the places, %zu steps at most\n", 100 * load, p.most);
        CHECK(load >= 0.8);
    }
}

/* The NIC's size holds its 262,144 entries, however they are numbered. */
TEST(directory, quarter_million) {
    std::mt19937_64 rng(seed_value + 2);
    for (unsigned layers : {0u, 1u, 32u, 80u}) { /* 0: random keys */
        mr_nic_dir *dir = mr_nic_dir_create(17);
        mr_nic_desc steps[MR_NIC_DIR_STEPS];
        size_t n = 0, most = 0;
        std::vector<mr_nic_dir_entry> all;
        for (unsigned i = 0; i < 262144; i++) {
            mr_nic_dir_entry e = {};
            e.job = layers ? 1 : (uint16_t)rng();
            e.layer = layers ? (uint16_t)(i % layers) : (uint16_t)rng();
            e.block = layers ? i / layers : (uint32_t)rng();
            e.named = 1, e.epoch = i;
            LONGS_EQUAL(MR_OK, mr_nic_dir_put(dir, &e, false, steps, &n));
            most = n > most ? n : most;
            all.push_back(e);
        }
        CHECK_EQUAL(262144u, mr_nic_dir_count(dir));
        for (auto &e : all) {
            const mr_nic_dir_entry *f = mr_nic_dir_find(dir, e.job, e.layer, e.block);
            CHECK(f && f->epoch == e.epoch);
        }
        printf("directory: 262144 entries placed (asked 262144), %s, %zu descriptors an entry at "
               "most\n",
               layers ? "layers x consecutive blocks" : "random keys", most);
        mr_nic_dir_destroy(dir);
    }
}

TEST(directory, refusals) {
    CHECK(!mr_nic_dir_create(0));
    CHECK(!mr_nic_dir_create(18));
    mr_nic_dir_destroy(nullptr);
    mr_nic_dir *dir = mr_nic_dir_create(4);
    mr_nic_desc steps[MR_NIC_DIR_STEPS];
    size_t n = 77;
    struct {
        unsigned owner, named, page;
        const char *text;
    } bad[] = {{32, 1, 0, "entry.owner 32"},
               {3, 7, 0, "entry.named 0x7 does not name the owner, member 3"},
               {0, 1, 1u << 24, "entry.page 16777216"}};
    for (auto &b : bad) {
        mr_nic_dir_entry e = {};
        e.owner = (uint8_t)b.owner, e.named = b.named, e.page = b.page;
        LONGS_EQUAL(MR_INVALID_ARGUMENT, mr_nic_dir_put(dir, &e, false, steps, &n));
        STRCMP_CONTAINS(b.text, mr_last_error());
    }
    LONGS_EQUAL(MR_NOT_FOUND, mr_nic_dir_remove(dir, 1, 2, 3, steps[0]));
    STRCMP_EQUAL("the directory has no job 1, layer 2, block 3", mr_last_error());
    CHECK(!mr_nic_dir_find(dir, 1, 2, 3));
    LONGS_EQUAL(77, n);
    CHECK_EQUAL(0u, mr_nic_dir_count(dir));
    mr_nic_dir_destroy(dir);
}

int main(int argc, char **argv) {
    const char *given = getenv("MR_SEED");
    seed_value = given ? strtoul(given, nullptr, 0) : std::random_device{}();
    printf("MR_SEED=%lu\n", seed_value);
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
