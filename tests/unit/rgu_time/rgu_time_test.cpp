/* SPDX-License-Identifier: Apache-2.0 */
// The timing model of the rotor generation unit: equal to the simulated RTL, cycle for cycle and
// counter for counter, on any job and any queue of jobs; its parameters are the RTL's; units and
// jobs that cannot be.
#include <cctype>
#include <ctime>
#include <fstream>
#include <functional>
#include <unistd.h>

extern "C" {
#include "models/cycle/rgu_part.h"
}
#include "tests/unit/rgu_time/rgu_time_bench.hpp"

#include "CppUTest/CommandLineTestRunner.h"
#include "CppUTest/MemoryLeakWarningPlugin.h"
#include "CppUTest/TestHarness.h"

static uint64_t g_seed;
static const char *const file = "models/cycle/rgu/unit.json";

static mr_rgu_unit unit() {
    mr_rgu_unit u;
    char error[512] = "";
    if (!mr_rgu_unit_load(file, &u, error, sizeof error))
        FAIL(error);
    return u;
}

static mr_rgu_timing timed(const mr_rgu_unit &u, const Job &j, mr_rgu_memory *memory = nullptr) {
    mr_rgu_timing t;
    char error[256] = "";
    mr_rgu_descriptor d = j.d;
    d.odd = j.odd.empty() ? nullptr : j.odd.data();
    if (!mr_rgu_time(&u, &d, memory, &t, error, sizeof error))
        FAIL((std::string(error) + ": " + j.text()).c_str());
    return t;
}

static void same(const Job &j, const Counters &c, const mr_rgu_timing &t) {
    auto equal = [&](const char *of, uint64_t want, uint64_t got) {
        if (want == got)
            return;
        std::string text = j.text() + ": " + of + ": RTL " + std::to_string(want) + ", model " +
                           std::to_string(got) + " (MR_SEED=" + std::to_string(g_seed) + ")";
        FAIL(text.c_str());
    };
    equal("cycles", c.cycles, t.cycles);
    equal("items in", c.items_in, t.items_in);
    equal("items out", c.items_out, t.items_out);
    equal("multiplications", c.mults, t.mults_busy);
}

using Make = std::function<Job(std::mt19937_64 &)>;

// Jobs one by one, each on a unit fresh from reset.
static void single(const mr_rgu_unit &u, uint64_t salt, int count, const Make &make) {
    std::mt19937_64 rng(g_seed * 64 + salt);
    Unit sim(MR_SIM_RGU_PATH, u);
    for (int i = 0; i < count; i++) {
        Job j = make(rng);
        sim.reset();
        Counters c = sim.run(j, rng);
        if (!sim.problem.empty())
            FAIL((j.text() + ": " + sim.problem).c_str());
        same(j, c, timed(u, j));
    }
}

static mr_rgu_unit with_memory(uint32_t latency, uint32_t wlatency, uint32_t bytes) {
    mr_rgu_unit u = unit();
    u.read_latency = latency;
    u.write_latency = wlatency;
    u.port_bytes = bytes;
    return u;
}

TEST_GROUP(rgu_time){};

TEST(rgu_time, TilesAreEqual) {
    single(unit(), 0, 30, [](std::mt19937_64 &r) { return random_tile(r, 8, 4, 4); });
    single(unit(), 1, 2, [](std::mt19937_64 &r) { return random_tile(r, 10, 1, 3); });
    single(unit(), 2, 2, [](std::mt19937_64 &r) { return random_tile(r, 8, 1, 32); });
}

TEST(rgu_time, AppliesAreEqual) {
    single(unit(), 3, 24, [](std::mt19937_64 &r) { return random_apply(r, 8, 4, 3, 18); });
    single(unit(), 4, 3, [](std::mt19937_64 &r) { return random_apply(r, 10, 2, 2, 4); });
}

TEST(rgu_time, SlowMemoriesAreFollowed) {
    const uint32_t slow[][3] = {
        {100, 100, 64}, {3, 7, 20}, {900, 2000, 64}, {1, 1, 3}, {20, 300, 50}};
    uint64_t salt = 8;
    for (const auto &m : slow) {
        mr_rgu_unit u = with_memory(m[0], m[1], m[2]);
        single(u, salt++, 3, [](std::mt19937_64 &r) { return random_tile(r, 8, 2, 3); });
        single(u, salt++, 3, [](std::mt19937_64 &r) { return random_apply(r, 8, 2, 3, 6); });
    }
}

TEST(rgu_time, AQueueOfJobsIsEqualJobByJob) {
    std::mt19937_64 rng(g_seed + 77);
    mr_rgu_unit u = with_memory(40, 5, 48);
    Unit sim(MR_SIM_RGU_PATH, u);
    mr_rgu_memory memory = {};
    for (int i = 0; i < 16; i++) {
        Job j = rng() % 2 ? random_apply(rng, 8, 3, 3, 8) : random_tile(rng, 8, 2, 3);
        Counters c = sim.run(j, rng);
        if (!sim.problem.empty())
            FAIL((j.text() + ": " + sim.problem).c_str());
        same(j, c, timed(u, j, &memory));
    }
}

// ---- parameters
// -----------------------------------------------------------------------------------

static std::string all_of(const std::string &name) {
    std::ifstream in(name);
    if (!in)
        FAIL((name + ": cannot be read").c_str());
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

// The number after NAME in the RTL, past "=" or "(", from `at` on; -1: none.
static long number_after(const std::string &text, const std::string &name, size_t at) {
    for (; (at = text.find(name, at)) != std::string::npos; at += name.size()) {
        size_t end = at + name.size();
        if ((at && (isalnum(text[at - 1]) || text[at - 1] == '_')) || isalnum(text[end]) ||
            text[end] == '_')
            continue;
        while (text[end] == ' ')
            end++;
        if (text[end] != '=' && text[end] != '(')
            continue;
        end++;
        while (text[end] == ' ')
            end++;
        if (isdigit(text[end]))
            return atol(text.c_str() + end);
    }
    return -1;
}

// A source "FILE: NAME" or "FILE, INSTANCE: NAME" is where the number stands in the RTL.
TEST(rgu_time, BuildParametersAreTheRtls) {
    std::string json = all_of(file);
    mr_rgu_unit u = unit();
    int found = 0;
    for (const mr_rgu_parameter *p = mr_rgu_parameters(); p->name; p++) {
        size_t at = json.find("\"" + std::string(p->name) + "\""), line = json.find('\n', at);
        std::string entry = json.substr(at, line - at);
        size_t source = entry.find("\"source\": \"") + 11, end = entry.find('"', source);
        std::string text = entry.substr(source, end - source);
        size_t colon = text.rfind(": "), comma = text.find(", ");
        std::string name = colon == std::string::npos ? "" : text.substr(colon + 2);
        bool plain = text.compare(0, 4, "rtl/") == 0 && !name.empty();
        for (char c : name)
            plain = plain && (isalnum(c) || c == '_');
        if (!plain)
            continue;
        std::string path = text.substr(0, comma < colon ? comma : colon), rtl = all_of(path);
        size_t from = 0;
        if (comma < colon) { /* the instance's parameters stand before its name */
            from = rtl.find(text.substr(comma + 2, colon - comma - 2) + " (");
            CHECK(from != std::string::npos);
            from = rtl.rfind('#', from);
        }
        uint32_t value = *(const uint32_t *)((const char *)&u + p->at);
        if (number_after(rtl, name, from) != (long)value)
            FAIL((std::string(p->name) + ": " + text + " has " +
                  std::to_string(number_after(rtl, name, from)))
                     .c_str());
        found++;
    }
    CHECK(found >= 8);
}

static bool lanes(const mr_rgu_parameter *p) { // only powers of two
    return std::string(p->name).find("lanes") != std::string::npos ||
           std::string(p->name).find("_burst") != std::string::npos;
}

// A parameter that is wrong shows in the cycles of some job: none of them is idle.
TEST(rgu_time, EveryParameterMatters) {
    std::mt19937_64 rng(5); // what matters is in these jobs, whatever the seed
    std::vector<Job> jobs;
    for (int i = 0; i < 40; i++) {
        jobs.push_back(random_tile(rng, i % 4 ? 8 : 10, 6, 32));
        jobs.push_back(random_apply(rng, 8, 4, 8, 30));
    }
    const mr_rgu_unit kinds[] = {unit(), with_memory(200, 300, 64), with_memory(3000, 1, 64),
                                 with_memory(1, 20, 24)};
    for (const mr_rgu_parameter *p = mr_rgu_parameters(); p->name; p++) {
        bool seen = p->least == p->most;
        for (const mr_rgu_unit &u : kinds) {
            uint32_t value = *(const uint32_t *)((const char *)&u + p->at);
            for (uint32_t wrong : {value - 1, value + 1, value / 2, p->least}) {
                mr_rgu_unit other = u;
                if (wrong < p->least || wrong > p->most || (lanes(p) && (wrong & (wrong - 1))))
                    continue;
                *(uint32_t *)((char *)&other + p->at) = wrong;
                for (size_t i = 0; i < jobs.size() && !seen; i++)
                    seen = timed(u, jobs[i]).cycles != timed(other, jobs[i]).cycles;
            }
        }
        if (!seen)
            printf("%s changes nothing\n", p->name);
        CHECK(seen);
    }
}

TEST(rgu_time, TheExpandersRateIsTheOneOfItsHeader) {
    rgu_feed f;
    mr_rgu_unit u = unit();
    rgu_walk w = {};
    w.terms = w.chunks_in = w.repeats = 1;
    w.d = 256;
    w.log_d = 8;
    rgu_feed_init(&f, &u, &w);
    CHECK_EQUAL(240, rgu_feed_term_cycles(&f));
    w.d = 1024;
    w.log_d = 10;
    rgu_feed_init(&f, &u, &w);
    CHECK_EQUAL(1072, rgu_feed_term_cycles(&f));
}

// ---- what cannot be
// ---------------------------------------------------------------------------------

static void refused(const std::string &text, const std::string &word) {
    char path[] = "/tmp/millrace-rgu-unit-XXXXXX", error[512] = "";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text.data(), text.size()) == (ssize_t)text.size());
    close(fd);
    mr_rgu_unit u;
    bool good = mr_rgu_unit_load(path, &u, error, sizeof error);
    unlink(path);
    CHECK_FALSE(good);
    STRCMP_CONTAINS(path, error);
    STRCMP_CONTAINS(word.c_str(), error);
}

static std::string changed(const std::string &from, const std::string &to) {
    std::string text = all_of(file);
    size_t at = text.find(from);
    CHECK(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

TEST(rgu_time, BadUnitsAreRefused) {
    refused("[]", "object");
    refused("{", "");
    refused(changed("\"lanes\"", "\"lains\""), "lains");
    refused(changed("{\"value\": 32, \"source\": \"rtl/rgu/rgu_pkg.sv: LANES\"}", "32"), "lanes");
    refused(changed("\"value\": 32", "\"value\": 0"), "lanes");
    refused(changed("\"value\": 16", "\"value\": 12"), "power of two");
    refused(changed("\"value\": 32", "\"value\": 32.5"), "lanes");
    refused(changed("rtl/rgu/rgu_pkg.sv: LANES", ""), "lanes");
    char error[512] = "";
    mr_rgu_unit u;
    CHECK_FALSE(mr_rgu_unit_load("models/cycle/rgu/none.json", &u, error, sizeof error));
    STRCMP_CONTAINS("none.json", error);
}

TEST(rgu_time, BadJobsAreRefused) {
    std::mt19937_64 rng(g_seed);
    mr_rgu_unit u = unit();
    const Job good = random_tile(rng, 8, 2, 2), apply = random_apply(rng, 8, 2, 2, 3);
    auto bad = [&](const Job &from, const char *word,
                   const std::function<void(mr_rgu_descriptor &)> &f) {
        mr_rgu_descriptor d = from.d;
        mr_rgu_timing t;
        char error[256] = "";
        d.odd = from.odd.empty() ? nullptr : from.odd.data();
        f(d);
        CHECK_FALSE(mr_rgu_time(&u, &d, nullptr, &t, error, sizeof error));
        STRCMP_CONTAINS(word, error);
    };
    bad(good, "n:", [](mr_rgu_descriptor &d) { d.n = 9; });
    bad(good, "terms", [](mr_rgu_descriptor &d) { d.terms = 33; });
    bad(good, "odd", [](mr_rgu_descriptor &d) { d.has_odd = d.has_even = false; });
    bad(good, "rows", [](mr_rgu_descriptor &d) { d.row1 = d.row0; });
    bad(good, "cols", [](mr_rgu_descriptor &d) { d.col1 = d.d_in + 1; });
    bad(good, "item", [](mr_rgu_descriptor &d) { d.item = 3; });
    bad(good, "seeds", [](mr_rgu_descriptor &d) { d.seeds = 8; });
    bad(good, "dst_stride", [](mr_rgu_descriptor &d) { d.dst_stride = 0; });
    bad(good, "d_out", [](mr_rgu_descriptor &d) { d.d_out = 0; });
    bad(apply, "batch", [](mr_rgu_descriptor &d) { d.batch = 0; });
    bad(apply, "src_stride", [](mr_rgu_descriptor &d) {
        d.src_stride -= 4;
        d.src_stride = 4;
        d.d_in = 9;
    });
}

int main(int argc, char **argv) {
    const char *text = getenv("MR_SEED");
    g_seed = text ? strtoull(text, nullptr, 10) : (uint64_t)time(nullptr);
    printf("MR_SEED=%llu\n", (unsigned long long)g_seed);
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads(); // the simulated unit keeps its names
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
