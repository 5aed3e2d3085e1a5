/* What is around the Verilated NICs: streams, switch, windows, registers, and the end of a
 * simulator. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "host/nic/port.h"

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>
#include <CppUTest/TestHarness.h>

namespace {

uint64_t test_seed;
typedef std::vector<uint8_t> bytes;

struct link {
    explicit link(const std::string &options) {
        mr_status e = mr_nic_link_open(("sim:nic?" + options).c_str(), &l);
        CHECK_TEXT(e == MR_OK, mr_last_error());
        ops = l->ops;
    }
    link(const link &) = delete;
    ~link() {
        if (l)
            ops->close(l);
    }
    mr_nic_link *l = nullptr;
    const mr_nic_link_ops *ops = nullptr;
};

bytes frame(unsigned to, size_t size, std::mt19937_64 &rng, unsigned type = 0x0800) {
    bytes f(size);
    for (uint8_t &b : f)
        b = (uint8_t)rng();
    uint32_t ip;
    uint16_t port;
    mr_nic_default_address(to, f.data(), &ip, &port);
    f[12] = (uint8_t)(type >> 8);
    f[13] = (uint8_t)type;
    return f;
}

bytes receive(link &k, unsigned rank) {
    bytes f(MR_NIC_FRAME_MAX);
    size_t n = 0;
    CHECK(k.ops->recv(k.l, rank, f.data(), f.size(), &n) == MR_OK);
    f.resize(n);
    return f;
}

/* Random frames between all; run() in steps of `step`. What arrives, in order, and when all is
 * over. */
std::vector<bytes> traffic(const std::string &options, unsigned nodes, uint64_t step,
                           mr_nic_wire *wire, std::vector<mr_nic_stream> *streams) {
    link k(options);
    std::mt19937_64 rng(test_seed);
    std::vector<bytes> got(nodes);
    for (int i = 0; i < 100; i++) {
        unsigned from = (unsigned)(rng() % nodes);
        bytes f =
            frame((unsigned)((from + 1 + rng() % (nodes - 1)) % nodes), 60 + rng() % 2000, rng);
        CHECK(k.ops->send(k.l, from, f.data(), f.size()) == MR_OK);
    }
    while (!k.ops->idle(k.l)) {
        CHECK(k.ops->run(k.l, step) == MR_OK);
        CHECK(k.ops->cycles(k.l) < 1000000);
        for (unsigned r = 0; r < nodes; r++)
            for (bytes f; !(f = receive(k, r)).empty();)
                got[r].insert(got[r].end(), f.begin(), f.end());
    }
    k.ops->wire(k.l, wire);
    streams->resize(nodes * MR_NIC_STREAMS);
    for (unsigned r = 0; r < nodes; r++)
        CHECK(k.ops->streams(k.l, r, &(*streams)[r * MR_NIC_STREAMS]) == MR_OK);
    return got;
}

} // namespace

TEST_GROUP(cluster){};

TEST(cluster, a_run_is_the_same_in_any_steps) {
    for (const char *more :
         {"", "&loss=0.1&dup=0.1&reorder=0.2&stall=0.5", "&latency=1&stall=0.2"}) {
        std::string options = "nodes=4&seed=" + std::to_string(test_seed & 0xFFFF) + more;
        mr_nic_wire a, b;
        std::vector<mr_nic_stream> sa, sb;
        std::vector<bytes> whole = traffic(options, 4, 100000, &a, &sa);
        std::vector<bytes> cycle = traffic(options, 4, 1, &b, &sb);
        CHECK(whole == cycle);
        MEMCMP_EQUAL(&a, &b, sizeof a);
        LONGS_EQUAL(100, a.frames);
        MEMCMP_EQUAL(sa.data(), sb.data(), sa.size() * sizeof sa[0]); /* to the cycle */
    }
}

TEST(cluster, frames_arrive_whole_in_time_and_once) {
    link k("nodes=3&latency=40&bandwidth=64");
    std::mt19937_64 rng(test_seed);
    for (size_t size = 1; size <= 300; size++) { /* the shortest go nowhere: they have no address */
        bytes f = frame(2, size < 14 ? 14 : size, rng);
        f.resize(size);
        CHECK(k.ops->send(k.l, 1, f.data(), f.size()) == MR_OK);
        uint64_t start = k.ops->cycles(k.l);
        bytes got;
        for (int i = 0; i < 100 && got.empty(); i++) {
            CHECK(k.ops->run(k.l, 1) == MR_OK);
            got = receive(k, 2);
        }
        CHECK(got == (size < 14 ? bytes() : f));
        if (size >= 14) { /* beats out, two cables, latency, beats in, each offered a cycle later */
            uint64_t beats = (size + 63) / 64, hold = (size + 24 + 63) / 64;
            LONGS_EQUAL(1 + beats - 1 + 2 * hold + 40 + 1 + beats, k.ops->cycles(k.l) - start);
        }
    }
    LONGS_EQUAL(0, receive(k, 0).size());
}

TEST(cluster, a_host_that_takes_nothing_loses_nothing) {
    link k("nodes=2");
    std::mt19937_64 rng(test_seed);
    bytes f = frame(1, 500, rng);
    CHECK(k.ops->pause_host(k.l, 1, true) == MR_OK);
    CHECK(k.ops->send(k.l, 0, f.data(), f.size()) == MR_OK);
    CHECK(k.ops->run(k.l, 2000) == MR_OK);
    LONGS_EQUAL(0, receive(k, 1).size());
    CHECK(!k.ops->idle(k.l));
    CHECK(k.ops->pause_host(k.l, 1, false) == MR_OK);
    CHECK(k.ops->run(k.l, 2000) == MR_OK);
    CHECK(receive(k, 1) == f);
    k.ops->cut(k.l, 1, true);
    CHECK(k.ops->send(k.l, 0, f.data(), f.size()) == MR_OK);
    CHECK(k.ops->run(k.l, 2000) == MR_OK);
    LONGS_EQUAL(0, receive(k, 1).size());
}

TEST(cluster, open_ports_and_streams) {
    link k("open=1");
    std::mt19937_64 rng(test_seed);
    bytes a = frame(0, 100, rng), b = frame(0, 200, rng), got(MR_NIC_FRAME_MAX);
    mr_nic_stream s[MR_NIC_STREAMS];
    CHECK(k.ops->inject(k.l, 0, 1, b.data(), b.size()) == MR_OK);
    CHECK(k.ops->send(k.l, 0, a.data(), a.size()) == MR_OK);
    CHECK(k.ops->run(k.l, 100) == MR_OK);
    unsigned port = 9, ports = 0;
    size_t n;
    for (int i = 0; i < 2; i++) {
        CHECK(k.ops->capture(k.l, 0, &port, got.data(), 10, &n) ==
              MR_INVALID_ARGUMENT); /* it stays */
        CHECK(k.ops->capture(k.l, 0, &port, got.data(), got.size(), &n) == MR_OK);
        CHECK(bytes(got.begin(), got.begin() + (long)n) == (port ? b : a));
        ports |= 1u << port;
    }
    LONGS_EQUAL(3, ports);
    CHECK(k.ops->streams(k.l, 0, s) == MR_OK);
    LONGS_EQUAL(2, s[MR_NIC_IN_HOST].beats);
    LONGS_EQUAL(1, s[MR_NIC_OUT0].frames);
    LONGS_EQUAL(4, s[MR_NIC_IN1].beats);
    LONGS_EQUAL(3, s[MR_NIC_OUT1].last - s[MR_NIC_OUT1].first);
    LONGS_EQUAL(0, s[MR_NIC_IN0].beats);
}

TEST(cluster, registers_and_memory) {
    link k("nodes=2&memory=1");
    uint64_t v = 0;
    CHECK(k.ops->counter(k.l, 1, 17, &v) == MR_OK);
    LONGS_EQUAL(17, v);
    CHECK(k.ops->counter(k.l, 1, 1000, &v) == MR_INVALID_ARGUMENT);
    uint8_t desc[3][MR_NIC_DESC_BYTES] = {{5}, {1}, {2}};
    CHECK(k.ops->command(k.l, 0, desc[0], 3) == MR_OK);
    uint32_t word = 7, back = 0;
    CHECK(k.ops->kv_write(k.l, 0, (1 << 20) - 4, &word, 4) == MR_OK);
    CHECK(k.ops->kv_read(k.l, 0, (1 << 20) - 4, &back, 4) == MR_OK);
    LONGS_EQUAL(7, back);
    CHECK(k.ops->kv_read(k.l, 1, (1 << 20) - 4, &back, 4) == MR_OK);
    LONGS_EQUAL(0, back);
    CHECK(k.ops->kv_read(k.l, 0, (1 << 20) - 3, &back, 4) == MR_INVALID_ARGUMENT);
    CHECK(k.ops->kv_read(k.l, 2, 0, &back, 4) == MR_INVALID_ARGUMENT);
    CHECK(k.ops->inject(k.l, 0, 0, desc[0], 60) == MR_UNSUPPORTED);
}

TEST(cluster, a_broken_assertion_is_the_end_and_says_so) {
    link k("nodes=2");
    std::mt19937_64 rng(test_seed);
    bytes f = frame(1, 100, rng, 0xDEAD);
    CHECK(k.ops->send(k.l, 0, f.data(), f.size()) == MR_OK);
    CHECK(k.ops->run(k.l, 5000) == MR_DEVICE_LOST);
    STRCMP_CONTAINS("NIC 1", mr_last_error());
    STRCMP_CONTAINS("nic_kernel.sv", mr_last_error());
    uint64_t v;
    size_t n;
    CHECK(k.ops->run(k.l, 1) == MR_DEVICE_LOST);
    CHECK(k.ops->counter(k.l, 0, 0, &v) == MR_DEVICE_LOST);
    CHECK(k.ops->send(k.l, 0, f.data(), f.size()) == MR_DEVICE_LOST);
    CHECK(k.ops->recv(k.l, 1, f.data(), f.size(), &n) == MR_DEVICE_LOST);
    CHECK(k.ops->command(k.l, 0, f.data(), 1) == MR_DEVICE_LOST);
    STRCMP_CONTAINS("nic_kernel.sv", mr_last_error());
    CHECK(k.ops->idle(k.l));
    link again("nodes=2"); /* another one is not touched by it */
    bytes g = frame(1, 100, rng);
    CHECK(again.ops->send(again.l, 0, g.data(), g.size()) == MR_OK);
    CHECK(again.ops->run(again.l, 5000) == MR_OK);
    CHECK(receive(again, 1) == g);
}

TEST(cluster, registers_that_do_not_answer_are_the_end) {
    link k("nodes=2");
    std::mt19937_64 rng(test_seed);
    bytes f = frame(1, 100, rng, 0xBEEF);
    CHECK(k.ops->send(k.l, 0, f.data(), f.size()) == MR_OK);
    CHECK(k.ops->run(k.l, 5000) == MR_OK);
    uint64_t v;
    CHECK(k.ops->counter(k.l, 0, 3, &v) == MR_OK);
    CHECK(k.ops->counter(k.l, 1, 3, &v) == MR_DEVICE_LOST);
    STRCMP_CONTAINS("no answer to a register write", mr_last_error());
}

TEST(cluster, options_that_are_refused) {
    mr_nic_link *l = nullptr;
    for (const char *uri :
         {"sim:nic?nodes=17", "sim:nic?nodes=0", "sim:nic?loss=1.5", "sim:nic?loss=-1",
          "sim:nic?loss=nan", "sim:nic?loss=x", "sim:nic?latency=0", "sim:nic?bandwidth=65",
          "sim:nic?seed=-1", "sim:nic?speed=1", "sim:nic?open=2", "sim:nic?xinit=maybe",
          "sim:nic?nodes=2&nodes=2", "golden?trace=x", "golden?nodes=65", "sim:rgu",
          "cpu:", "goldene"}) {
        CHECK_TEXT(mr_nic_link_open(uri, &l) == MR_INVALID_ARGUMENT, uri);
        CHECK(*mr_last_error());
    }
    CHECK(mr_nic_link_open("sim:nic?trace=x.fst", &l) ==
          MR_UNAVAILABLE); /* no debug library here */
    STRCMP_CONTAINS("libmr_sim_nic_debug.so", mr_last_error());
}

int main(int argc, char **argv) {
    const char *given = getenv("MR_SEED"), *build = getenv("BUILD");
    test_seed = given ? strtoull(given, nullptr, 0) : (uint64_t)time(nullptr);
    printf("MR_SEED=%llu\n", (unsigned long long)test_seed);
    setenv("MILLRACE_DRIVERS", (std::string(build ? build : "build") + "/lib/nic_cluster").c_str(),
           1);
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads(); /* the library has its own */
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
