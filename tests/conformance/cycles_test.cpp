/*
 * Case 52: open, run, close, thousands of times, and failing at each step; files, threads and
 * memory stay flat. MR_CYCLES sets the number (default: what takes a few seconds).
 */
#include "tests/conformance/conformance.h"

#include <cstdlib>
#include <cstring>

#include <CppUTest/TestHarness.h>

TEST_GROUP(Cycles){};

/* One life of a device; `stop` leaves it early, after that many steps, with everything still open.
 */
static void one_cycle(const Projection &p, int stop) {
    mr_device *device;
    mr_queue *queue;
    mr_buffer *seeds, *dst;
    mr_event *event;
    mr_rgu_job job = p.job();
    CHECK_STATUS(MR_INVALID_ARGUMENT, mr_device_open((test_uri + "?bad=1").c_str(), &device));
    CHECK_OK(mr_device_open(test_uri.c_str(), &device));
    do {
        if (stop == 1)
            break;
        CHECK_OK(mr_queue_create(device, &queue));
        CHECK_OK(mr_buffer_create(device, p.image.size(), &seeds));
        if (stop == 2)
            break;
        CHECK_OK(mr_buffer_create(device, p.d_out * job.dst_stride, &dst));
        void *host;
        CHECK_OK(mr_buffer_map(seeds, &host));
        memcpy(host, p.image.data(), p.image.size());
        CHECK_OK(mr_buffer_sync(seeds, MR_TO_DEVICE, 0, p.image.size()));
        if (stop == 3)
            break;
        CHECK_STATUS(MR_INVALID_ARGUMENT,
                     mr_rgu_tile(queue, &job, {seeds, 0}, {nullptr, 0}, {seeds, 0}, &event));
        CHECK_OK(mr_rgu_tile(queue, &job, {seeds, 0}, {nullptr, 0}, {dst, 0}, &event));
        if (stop != 4) /* or the device is closed while it works */
            CHECK_OK(mr_event_wait(event, MR_FOREVER));
        CHECK_OK(mr_event_destroy(event));
        if (stop)
            break;
        CHECK_OK(mr_buffer_destroy(dst));
        CHECK_OK(mr_buffer_destroy(seeds));
        CHECK_OK(mr_queue_destroy(queue));
    } while (false);
    CHECK_OK(mr_device_close(device));
}

TEST(Cycles, OpenRunCloseLeavesNothingBehind) {
    auto rng = test_rng("cycles");
    Projection p(rng, 8, 1, 32, 256, false);
    const char *wanted = getenv("MR_CYCLES");
    int warm_up = 20, cycles = !test_uri.rfind("cpu:", 0)   ? 2000
                               : !test_uri.rfind("sim:", 0) ? 60
                                                            : 60;
    if (wanted)
        cycles = atoi(wanted);
    for (int i = 0; i < warm_up; i++)
        one_cycle(p, i % 6);
    size_t files = open_files(), threads = live_threads(), bytes = resident_bytes();
    for (int i = 0; i < cycles; i++)
        one_cycle(p, i % 6);
    LONGS_EQUAL(files, open_files());
    LONGS_EQUAL(threads, live_threads());
    /* 4 MiB for the arenas of allocators and run times; any object lost a cycle is more than 64
     * bytes */
    size_t growth = resident_bytes() > bytes ? resident_bytes() - bytes : 0;
    size_t allowed = (4u << 20) + 64u * static_cast<size_t>(cycles);
    if (growth > allowed)
        FAIL(("memory grew by " + std::to_string(growth) + " bytes in " + std::to_string(cycles) +
              " cycles")
                 .c_str());
}
