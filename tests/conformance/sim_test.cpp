/* What only a simulated unit has: cycles that can be repeated, stalls, timeouts in the middle of a
 * job, its process. */
#include "tests/conformance/conformance.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include <CppUTest/TestHarness.h>

TEST_GROUP(Simulated){};

static bool simulated() {
    return !test_uri.rfind("sim:", 0) && test_uri.find('?') == std::string::npos;
}

/* A tile of a fixed projection, checked against the golden model. */
struct Tile {
    Projection p;
    mr_rgu_job job;
    std::vector<unsigned char> want;
    explicit Tile(std::mt19937_64 rng)
        : p(rng, 8, 2, 128, 256, true), job(p.job()), want(p.d_out * job.dst_stride) {
        mr_golden_job g = p.golden(job);
        mr_golden_tile(&g, want.data(), job.dst_stride);
    }
    /* One run on the device: its event is left to the caller. */
    mr_event *start(const Device &d, mr_buffer **dst) const {
        mr_event *event = nullptr;
        mr_buffer *seeds = d.buffer(p.image.data(), p.image.size()),
                  *scale = d.buffer(p.padded.data(), 4 * p.padded.size());
        *dst = d.buffer(want.size());
        CHECK_OK(mr_rgu_tile(d.queue, &job, {seeds, 0}, {scale, 0}, {*dst, 0}, &event));
        CHECK_OK(mr_buffer_destroy(seeds)); /* the job holds them */
        CHECK_OK(mr_buffer_destroy(scale));
        return event;
    }
    mr_counters run(const Device &d) const {
        mr_buffer *dst;
        mr_counters counters;
        mr_event *event = start(d, &dst);
        CHECK_OK(mr_event_wait(event, MR_FOREVER));
        CHECK_OK(mr_event_counters(event, &counters));
        CHECK_OK(mr_event_destroy(event));
        std::vector<unsigned char> got(want.size());
        CHECK_OK(mr_buffer_read(dst, 0, got.data(), got.size()));
        MEMCMP_EQUAL(want.data(), got.data(), got.size());
        return counters;
    }
};

TEST(Simulated, CyclesRepeatForASeedAndGrowWithStalls) {
    if (!simulated())
        return;
    Tile tile(test_rng("cycles"));
    Device ideal(test_uri), one(test_uri + "?seed=7&stall=40"), same(test_uri + "?seed=7&stall=40"),
        other(test_uri + "?seed=8&stall=40");
    mr_counters fast = tile.run(ideal), a = tile.run(one), b = tile.run(same), c = tile.run(other);
    CHECK(a.cycles == b.cycles);
    CHECK(a.cycles > fast.cycles && c.cycles > fast.cycles);
    CHECK(a.cycles != c.cycles);
    CHECK(fast.items_out == tile.p.d_out * tile.p.d_in);
    CHECK(fast.busy <= fast.cycles && fast.cycles >= tile.p.d_out * tile.p.d_in / 32);
}

/* Case 48 on the unit itself: memory so slow that the job is far from done. */
TEST(Simulated, ATimeoutLeavesAUnitThatAResetBringsBack) {
    if (!simulated())
        return;
    Tile tile(test_rng("timeout"));
    Device d(test_uri + "?latency=100000");
    mr_buffer *dst;
    mr_counters counters;
    auto begin = std::chrono::steady_clock::now();
    mr_event *event = tile.start(d, &dst);
    CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 20000000));
    double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    CHECK(waited >= 0.02 && waited < 2.0);
    CHECK_STATUS(MR_PENDING, mr_event_counters(event, &counters));
    CHECK_OK(mr_device_reset(d.device));
    CHECK_STATUS(MR_CANCELLED, mr_event_counters(event, &counters));
    CHECK_STATUS(MR_CANCELLED, wait_for(event, 0));
    CHECK(tile.run(d).cycles > 100000);
}

TEST(Simulated, AKilledProcessIsALossAndAResetStartsAnother) {
    if (!simulated())
        return;
    Tile tile(test_rng("kill"));
    Device d(test_uri + "?latency=100000"), neighbour(test_uri);
    mr_buffer *dst;
    mr_event *event = tile.start(d, &dst);
    CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 5000000));
    LONGS_EQUAL(0, kill(static_cast<pid_t>(d.info.process), SIGKILL));
    CHECK_FAILS(MR_DEVICE_LOST, "signal 9", mr_event_wait(event, MR_FOREVER));
    CHECK_OK(mr_event_destroy(event));
    tile.run(neighbour);
    CHECK_OK(mr_device_reset(d.device));
    tile.run(d);
}

TEST(Simulated, BadOptionsAreTheUnitsToRefuse) {
    if (!simulated())
        return;
    mr_device *device;
    for (const char *option : {"latency=x", "stall=99", "stall=-1", "bandwidth=0", "memory=0",
                               "seed=", "Seed=1", "memory=99999999999999999999"}) {
        mr_status status = mr_device_open((test_uri + "?" + option).c_str(), &device);
        if (status == MR_OK)
            FAIL((std::string("accepted: ") + option).c_str());
        LONGS_EQUAL(MR_INVALID_ARGUMENT, status);
    }
}

TEST(Simulated, ATraceIsAFileThatGrowsAndResultsStay) {
    if (!simulated())
        return;
    char path[] = "/tmp/mr_trace_XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    Tile tile(test_rng("trace"));
    mr_device *probe;
    std::string uri = test_uri + "?trace=" + path;
    mr_status status = mr_device_open(uri.c_str(), &probe);
    if (status == MR_UNAVAILABLE) { /* the debug build of the unit was not made */
        CHECK(strstr(mr_last_error(), "debug") != nullptr);
    } else {
        LONGS_EQUAL(MR_OK, status);
        CHECK_OK(mr_device_close(probe));
        {
            Device traced(uri), plain(test_uri);
            CHECK(tile.run(traced).cycles == tile.run(plain).cycles);
        }
        struct stat info;
        LONGS_EQUAL(0, stat(path, &info));
        CHECK(info.st_size > 1000);
        CHECK_STATUS(MR_INVALID_ARGUMENT,
                     mr_device_open((test_uri + "?trace=/no/such/folder/x.fst").c_str(), &probe));
    }
    unlink(path);
}
