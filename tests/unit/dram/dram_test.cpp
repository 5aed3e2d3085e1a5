// The DRAM timing model judged by the trace checker, the checker by traces with one wrong command,
// the configurations by their stated figures, the address maps by their inverse.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/TestHarness.h"

#include "models/cycle/dram_check.h"

static uint64_t g_seed;
static const char *const parts[] = {"m3d", "aim", "hbm_pim", "attacc"};

static std::string file_of(const std::string &part) {
    return "models/cycle/dram/" + part + ".json";
}

static mr_dram_config part(const std::string &name) {
    mr_dram_config c;
    char error[256] = "";
    if (!mr_dram_load(file_of(name).c_str(), &c, error, sizeof error))
        FAIL(error);
    return c;
}

static void record(void *user, uint64_t cycle, size_t group, int command, uint32_t banks,
                   uint32_t row, uint32_t column) {
    static_cast<std::vector<mr_dram_command> *>(user)->push_back(
        {cycle, (uint32_t)group, command, banks, row, column});
}

// Requests at random, rows seldom changed, on one group; the commands they became.
static std::vector<mr_dram_command> stream(const mr_dram_config &c, std::mt19937_64 &rng, int n) {
    std::vector<mr_dram_command> trace;
    mr_dram *d = mr_dram_create(&c, 1, record, &trace);
    uint32_t row = 0, all = (uint32_t)((1ull << c.group_banks) - 1);
    uint64_t t = 0;
    for (int i = 0; i < n; i++) {
        if (rng() % 8 == 0)
            row = (uint32_t)(rng() % c.rows);
        if (rng() % 64 == 0)
            t += rng() % (4 * mr_dram_in_cycles(&c).refi);
        t = mr_dram_request(d, 0, t + rng() % 3, rng() % 4 == 0, all, row,
                            (uint32_t)(rng() % c.columns), rng() % 16 == 0) +
            1;
    }
    mr_dram_destroy(d);
    return trace;
}

static uint64_t violations(const mr_dram_config &c, const std::vector<mr_dram_command> &trace,
                           std::string *first = nullptr) {
    mr_dram_check *k = mr_dram_check_create(&c, 1);
    for (const auto &m : trace) {
        const char *wrong = mr_dram_check_command(k, &m);
        if (wrong && first && first->empty())
            *first = wrong;
    }
    const char *end = mr_dram_check_end(k, trace.back().cycle);
    if (end && first && first->empty())
        *first = end;
    uint64_t n = mr_dram_check_violations(k);
    mr_dram_check_destroy(k);
    return n;
}

TEST_GROUP(dram){};

TEST(dram, stated_figures_come_back) {
    const double refi[] = {3900, 1900, 3900, 3900}, peak[] = {8.192e3, 14.37e3, 1.024e3, 10.65e3};
    for (int i = 0; i < 4; i++) {
        mr_dram_config c = part(parts[i]);
        STRCMP_EQUAL(parts[i], c.name);
        DOUBLES_EQUAL(refi[i], (double)mr_dram_in_cycles(&c).refi * c.clock_ns, refi[i] / 100);
        DOUBLES_EQUAL(peak[i], mr_dram_peak(&c), peak[i] / 100);
        DOUBLES_EQUAL(1000 * c.clock_ns, mr_dram_ns(&c, 1000), 1e-9);
    }
    mr_dram_config m = part("m3d");
    mr_dram_cycles t = mr_dram_in_cycles(&m);
    const uint64_t rcd[] = {3, 4, 6, 9, 12, 15, 19, 23};
    for (int i = 0; i < 8; i++)
        LONGS_EQUAL(rcd[i], t.rcd[i]);
    LONGS_EQUAL(5, t.rp);
    mr_dram_config a = part("aim");
    LONGS_EQUAL(30, mr_dram_in_cycles(&a).rcd[0]); // 17.1 ns are 30 clocks of 0.57 ns, not 31
}

TEST(dram, address_map_is_a_bijection) {
    mr_dram_config c = part("m3d");
    std::vector<bool> seen(mr_dram_capacity(&c) / c.column_bytes);
    for (uint64_t i = 0; i < seen.size(); i++) {
        mr_dram_place p = mr_dram_at(&c, i * c.column_bytes);
        CHECK(p.channel < c.channels && p.bank < c.banks && p.row < c.rows && p.column < c.columns);
        uint64_t at =
            ((uint64_t)(p.channel * c.banks + p.bank) * c.rows + p.row) * c.columns + p.column;
        CHECK(!seen[at]);
        seen[at] = true;
    }
    std::mt19937_64 rng(g_seed);
    for (const char *name : parts) { // a map with an inverse everywhere is a bijection
        c = part(name);
        for (int i = 0; i < 100000; i++) {
            uint64_t a = rng() % mr_dram_capacity(&c);
            CHECK(mr_dram_address(&c, mr_dram_at(&c, a)) == a);
        }
        uint64_t top = mr_dram_capacity(&c) - 1;
        CHECK(mr_dram_address(&c, mr_dram_at(&c, top)) == top);
    }
}

TEST(dram, two_rows_of_a_bank_in_turn_conflict) {
    for (const char *name : parts) {
        mr_dram_config c = part(name);
        c.refresh = false;
        mr_dram *d = mr_dram_create(&c, 2, nullptr, nullptr);
        for (uint32_t i = 0; i < 100; i++)
            mr_dram_request(d, 1, 0, false, 1, i % 2, 0, false);
        mr_dram_count n = mr_dram_counters(d, 1);
        LONGS_EQUAL(99, n.conflicts);
        LONGS_EQUAL(1, n.misses);
        LONGS_EQUAL(0, n.hits);
        LONGS_EQUAL(100, n.commands[MR_DRAM_ACT]);
        char text[400];
        mr_dram_report(&c, &n, 1000, text, sizeof text);
        CHECK(strstr(text, "refresh off") && strstr(text, "DRAM clock") && strstr(text, " ns)"));
        mr_dram_destroy(d);
    }
}

TEST(dram, open_row_gives_a_column_a_cycle_and_counts_add_up) {
    mr_dram_config c = part("m3d");
    mr_dram *d = mr_dram_create(&c, 4, nullptr, nullptr);
    for (uint32_t g = 0; g < 4; g++) {
        uint64_t first = 0, last = 0;
        for (uint32_t i = 0; i < 160 * (g + 1); i++) {
            last = mr_dram_request(d, g, 0, false, 15, 128 * g, i % 16, false);
            first = i ? first : last;
        }
        LONGS_EQUAL(mr_dram_in_cycles(&c).rcd[g], first); // ACT in cycle 0
        LONGS_EQUAL(160 * (g + 1) - 1, last - first);
    }
    mr_dram_count sum = mr_dram_total(d);
    uint64_t reads = 0, bytes = 0;
    double pj = 0;
    for (uint32_t g = 0; g < 4; g++) {
        mr_dram_count n = mr_dram_counters(d, g);
        reads += n.commands[MR_DRAM_RD];
        bytes += n.bytes;
        pj += n.pj;
    }
    LONGS_EQUAL(1600, sum.commands[MR_DRAM_RD]);
    LONGS_EQUAL(reads, sum.commands[MR_DRAM_RD]);
    LONGS_EQUAL(1600 * 128, bytes);
    LONGS_EQUAL(bytes, sum.bytes);
    DOUBLES_EQUAL(pj, sum.pj, 1e-6);
    DOUBLES_EQUAL(1600 * 1024 * 0.429 + 4 * 4 * 4096 * 0.05, pj, 1e-6);
    mr_dram_destroy(d);
}

TEST(dram, every_part_keeps_its_own_table) {
    std::mt19937_64 rng(g_seed);
    for (const char *name : parts) {
        mr_dram_config c = part(name);
        for (int run = 0; run < 5; run++) {
            std::string first;
            std::vector<mr_dram_command> trace = stream(c, rng, 5000);
            LONGS_EQUAL_TEXT(0, violations(c, trace, &first), (name + (": " + first)).c_str());
            uint64_t refs = 0;
            for (const auto &m : trace)
                refs += m.command == MR_DRAM_REF;
            CHECK(refs + c.postponed >= trace.back().cycle / mr_dram_in_cycles(&c).refi);
        }
    }
}

// A checker that has never been seen to fail checks nothing: the model runs a faster part.
TEST(dram, a_faster_part_breaks_each_rule) {
    std::mt19937_64 rng(g_seed);
    const mr_dram_config m = part("m3d");
    struct {
        const char *rule;
        void (*change)(mr_dram_config *);
    } faster[] = {
        {"tRCD", [](mr_dram_config *c) { c->rcd_ns[5] -= 1; }},
        {"tRAS", [](mr_dram_config *c) { c->ras_ns[5] -= 1; }},
        {"tRP", [](mr_dram_config *c) { c->rp_ns -= 1; }},
        {"tRTP", [](mr_dram_config *c) { c->rtp_ns -= 1; }},
        {"tWR", [](mr_dram_config *c) { c->wr_ns -= 1; }},
        {"tRFC", [](mr_dram_config *c) { c->rfc_ns -= 1; }},
        {"tREFI", [](mr_dram_config *c) { c->refi_ns *= 1.5; }},
        {"tREFI", [](mr_dram_config *c) { c->refresh = false; }},
    };
    for (const auto &f : faster) {
        mr_dram_config wrong = m;
        f.change(&wrong);
        bool found = false;
        mr_dram_check *k = mr_dram_check_create(&m, 1);
        for (const auto &one : stream(wrong, rng, 20000)) {
            const char *text = mr_dram_check_command(k, &one);
            found |= text && strncmp(text, f.rule, strlen(f.rule)) == 0;
        }
        mr_dram_check_destroy(k);
        CHECK_TRUE_TEXT(found, f.rule);
    }
    mr_dram_config slow = part("hbm_pim"), fast = slow; // a column every 4 cycles there
    fast.ccd_ns -= 1;
    std::string first;
    CHECK(violations(slow, stream(fast, rng, 100), &first) > 0);
    STRNCMP_EQUAL("tCCD", first.c_str(), 4);
}

TEST(dram, single_wrong_commands_are_named) {
    const mr_dram_config c = part("m3d");
    struct {
        std::vector<mr_dram_command> trace;
        const char *rule;
    } cases[] = {
        {{{0, 0, MR_DRAM_RD, 15, 0, 0}}, "column of a row that is not open"},
        {{{0, 0, MR_DRAM_ACT, 15, 0, 0}, {9, 0, MR_DRAM_RD, 15, 1, 0}}, "column of a row"},
        {{{0, 0, MR_DRAM_ACT, 15, 0, 0}, {40, 0, MR_DRAM_ACT, 15, 1, 0}}, "ACT: a row is open"},
        {{{0, 0, MR_DRAM_ACT, 15, 0, 0}, {99, 0, MR_DRAM_REF, 15, 0, 0}}, "REF: a row is open"},
        {{{0, 0, MR_DRAM_REF, 16, 0, 0}}, "no such bank"},
        {{{0, 1, MR_DRAM_REF, 15, 0, 0}}, "no such group"},
        {{{0, 0, MR_DRAM_ACT, 15, 1024, 0}}, "no such row"},
        {{{5, 0, MR_DRAM_ACT, 1, 0, 0}, {5, 0, MR_DRAM_ACT, 2, 0, 0}}, "two commands"},
        {{{5, 0, MR_DRAM_ACT, 1, 0, 0}, {4, 0, MR_DRAM_ACT, 2, 0, 0}}, "time goes back"},
        {{{35100, 0, MR_DRAM_REF, 15, 0, 0}}, "tREFI"},
        {{{35099, 0, MR_DRAM_REF, 15, 0, 0}}, nullptr},
        {{{0, 0, MR_DRAM_ACT, 15, 0, 0}, {3, 0, MR_DRAM_RD, 15, 0, 15}}, nullptr},
    };
    for (auto &one : cases) {
        std::string first;
        violations(c, one.trace, &first);
        if (one.rule)
            STRNCMP_EQUAL(one.rule, first.c_str(), strlen(one.rule));
        else
            STRCMP_EQUAL("", first.c_str());
    }
}

// Load `text` with one thing changed; the error must name the file and the key.
static void refused(std::string from, const std::string &to, const std::string &key) {
    FILE *f = fopen(file_of("m3d").c_str(), "r");
    std::string text(10000, 0);
    text.resize(fread(&text[0], 1, text.size(), f));
    fclose(f);
    size_t at = text.find(from);
    CHECK_TRUE_TEXT(at != std::string::npos, from.c_str());
    text.replace(at, from.size(), to);
    char name[] = "/tmp/mr_dram_XXXXXX";
    int fd = mkstemp(name);
    CHECK(write(fd, text.data(), text.size()) == (ssize_t)text.size());
    close(fd);
    mr_dram_config c;
    char error[300] = "";
    bool loaded = mr_dram_load(name, &c, error, sizeof error);
    unlink(name);
    CHECK_FALSE_TEXT(loaded, key.c_str());
    CHECK_TRUE_TEXT(strstr(error, name) && strstr(error, key.c_str()), error);
}

TEST(dram, a_wrong_file_is_refused_by_its_key) {
    refused("\"tREFI_ns\"", "\"REFI_ns\"", "REFI_ns: unknown key");
    refused("  \"tRP_ns\"", "  \"tRAS_ns\": {\"value\": [1], \"source\": \"x\"}, \"tRP_ns\"",
            "tRAS_ns: contradicts");
    refused("\"source\": \"public\"", "\"origin\": \"public\"", "tRP_ns: unknown key origin");
    refused(", \"source\": \"public\"", "", "tRP_ns: source is missing");
    refused("4.77", "\"4.77\"", "tRP_ns: must be a number");
    refused("3900.0", "70", "tREFI_ns: contradicts");
    refused("[2.29, ", "[", "tRCD_ns: must be a list of 8");
    refused("1024", "1023", "rows: contradicts tiers");
    refused("\"row\", \"channel\"", "\"row\", \"row\"", "map: must have");
    refused("true", "1", "refresh: must be true or false");
    refused("\"tiers\"", "\"banks\"", "duplicate object key");
    mr_dram_config c;
    char error[300];
    CHECK(!mr_dram_load("no/such.json", &c, error, sizeof error));
    CHECK(strstr(error, "no/such.json"));
}

int main(int argc, char **argv) {
    const char *text = getenv("MR_SEED");
    g_seed = text ? strtoull(text, nullptr, 0) : std::random_device{}();
    printf("seed %llu (MR_SEED=%llu reproduces)\n", (unsigned long long)g_seed,
           (unsigned long long)g_seed);
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
