/*
 * A simulated unit that hangs, dies, breaks a rule or is killed: each is a result of its own, soon,
 * and the device comes back by a reset (cases 48, 49, 50, 52). The unit is
 * tests/conformance/fake_sim.c.
 */
#include "tests/conformance/conformance.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

#include <CppUTest/TestHarness.h>

TEST_GROUP(SimFaults){};

using Clock = std::chrono::steady_clock;
static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/* A device with one job ready. */
struct Unit {
    Device d;
    Projection p;
    mr_rgu_job job;
    mr_buffer *seeds, *dst;
    explicit Unit(const std::string &options, std::mt19937_64 rng = test_rng("unit"))
        : d("sim:rgu" + options), p(rng, 8, 1, 64, 64, false), job(p.job()),
          seeds(d.buffer(p.image.data(), p.image.size())), dst(d.buffer(64 * 64 * 2)) {}
    mr_event *start(mr_queue *queue = nullptr) {
        mr_event *event = nullptr;
        CHECK_OK(
            mr_rgu_tile(queue ? queue : d.queue, &job, {seeds, 0}, {nullptr, 0}, {dst, 0}, &event));
        return event;
    }
    /* After a loss the memory is new. */
    void works_again() {
        CHECK_OK(mr_buffer_write(seeds, 0, p.image.data(), p.image.size()));
        CHECK_OK(wait_for(start()));
        std::vector<unsigned char> want(64 * 64 * 2), got(want.size());
        mr_golden_job g = p.golden(job);
        mr_golden_tile(&g, want.data(), job.dst_stride);
        CHECK_OK(mr_buffer_read(dst, 0, got.data(), got.size()));
        MEMCMP_EQUAL(want.data(), got.data(), want.size());
    }
};

TEST(SimFaults, AHungUnitTimesOutAndAResetBringsItBack) {
    Unit u("?fault=hang");
    mr_counters counters;
    mr_event *event = u.start(), *behind = u.start();
    auto begin = Clock::now();
    CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 200000000));
    CHECK(seconds_since(begin) >= 0.2 && seconds_since(begin) < 1.2);
    CHECK_STATUS(MR_PENDING, mr_event_counters(event, &counters)); /* no cycle count */
    CHECK_STATUS(MR_PENDING, mr_event_status(event));
    CHECK_STATUS(MR_TIMEOUT, mr_queue_finish(u.d.queue, 1000000));
    /* memory is served while the unit hangs */
    std::vector<unsigned char> image(u.p.image.size());
    CHECK_OK(mr_buffer_read(u.seeds, 0, image.data(), image.size()));
    CHECK(image == u.p.image);
    CHECK_OK(mr_device_reset(u.d.device));
    CHECK_STATUS(MR_CANCELLED, mr_event_counters(event, &counters));
    CHECK_STATUS(MR_CANCELLED, wait_for(event, 0));
    CHECK_STATUS(MR_CANCELLED, wait_for(behind, 0));
    CHECK_OK(mr_buffer_read(u.seeds, 0, image.data(), image.size()));
    CHECK(image == u.p.image); /* a unit that answers keeps its memory */
    u.works_again();
}

TEST(SimFaults, AUnitThatAnswersNothingIsKilledByTheReset) {
    Unit u("?fault=stuck");
    mr_event *event = u.start();
    CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 100000000));
    auto begin = Clock::now();
    CHECK_OK(mr_device_reset(u.d.device));
    CHECK(seconds_since(begin) < 10);
    CHECK_STATUS(MR_CANCELLED, wait_for(event, 0));
}

TEST(SimFaults, AKilledSimulatorIsNoticedAtOnce) {
    Unit u("?fault=hang"), neighbour("");
    mr_event *event = u.start();
    CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 50000000));
    CHECK(u.d.info.process > 0);
    auto begin = Clock::now();
    LONGS_EQUAL(0, kill(static_cast<pid_t>(u.d.info.process), SIGKILL));
    CHECK_FAILS(MR_DEVICE_LOST, "signal 9", mr_event_wait(event, MR_FOREVER));
    CHECK(seconds_since(begin) < 2);
    mr_counters counters;
    CHECK_STATUS(MR_DEVICE_LOST, mr_event_counters(event, &counters));
    CHECK_OK(mr_event_destroy(event));
    /* everything says so from now on, and nobody else is hurt */
    mr_event *more = nullptr;
    char byte;
    CHECK_FAILS(MR_DEVICE_LOST, "lost",
                mr_rgu_tile(u.d.queue, &u.job, {u.seeds, 0}, {nullptr, 0}, {u.dst, 0}, &more));
    CHECK_STATUS(MR_DEVICE_LOST, mr_buffer_read(u.dst, 0, &byte, 1));
    neighbour.works_again();
}

TEST(SimFaults, AKilledSimulatorStartsAnewWithAReset) {
    Unit u("");
    LONGS_EQUAL(0, kill(static_cast<pid_t>(u.d.info.process), SIGKILL));
    char byte;
    CHECK_STATUS(MR_DEVICE_LOST, mr_buffer_read(u.dst, 0, &byte, 1));
    CHECK_OK(mr_device_reset(u.d.device));
    mr_device_info info;
    CHECK_OK(mr_device_get_info(u.d.device, &info));
    CHECK(info.process > 0 && info.process != u.d.info.process);
    u.works_again();
}

TEST(SimFaults, AStoppedSimulatorIsNotWaitedForWithoutEnd) {
    Unit u("");
    LONGS_EQUAL(0, kill(static_cast<pid_t>(u.d.info.process), SIGSTOP));
    char byte;
    auto begin = Clock::now();
    CHECK_FAILS(MR_DEVICE_LOST, "did not answer", mr_buffer_read(u.dst, 0, &byte, 1));
    CHECK(seconds_since(begin) < 30);
    CHECK_OK(mr_device_reset(u.d.device));
    u.works_again();
}

TEST(SimFaults, ACrashIsALossAndNamesTheSignal) {
    Unit u("?fault=crash");
    CHECK_FAILS(MR_DEVICE_LOST, "signal 6", mr_event_wait(u.start(), MR_FOREVER));
}

TEST(SimFaults, ABrokenBusRuleIsALossAndSaysWhich) {
    Unit u("?fault=proto");
    CHECK_FAILS(MR_DEVICE_LOST, "payload not stable", mr_event_wait(u.start(), MR_FOREVER));
}

TEST(SimFaults, AJobThatTheUnitRefusesIsADeviceErrorAndTheDeviceLives) {
    Unit u("?fault=error");
    mr_counters counters;
    mr_event *event = u.start();
    CHECK_FAILS(MR_DEVICE_ERROR, "AXI write error", mr_event_wait(event, MR_FOREVER));
    CHECK_STATUS(MR_DEVICE_ERROR, mr_event_counters(event, &counters));
    CHECK_OK(mr_event_destroy(event));
    CHECK_OK(mr_device_reset(u.d.device));
    u.works_again();
}

TEST(SimFaults, AHungDeviceCanBeClosedAndAQueueOfItDestroyed) {
    auto begin = Clock::now();
    mr_event *event;
    {
        Unit u("?fault=hang");
        mr_queue *other;
        CHECK_OK(mr_queue_create(u.d.device, &other));
        mr_event *mine = u.start(other);
        CHECK_STATUS(MR_TIMEOUT, mr_event_wait(mine, 20000000));
        CHECK_OK(mr_queue_destroy(other));
        CHECK_STATUS(MR_CANCELLED, wait_for(mine, 0));
        u.works_again(); /* the fake heals by the reset that stopped the job */
    }
    {
        Unit u("?fault=hang");
        event = u.start();
        CHECK_STATUS(MR_TIMEOUT, mr_event_wait(event, 20000000));
    }
    CHECK_STATUS(MR_CANCELLED, wait_for(event, 0));
    CHECK(seconds_since(begin) < 5);
}

TEST(SimFaults, MemoryThatIsNotThereNamesTheArgument) {
    Device d("sim:rgu?memory=4");
    mr_buffer *b = nullptr, *c = nullptr;
    CHECK_FAILS(MR_OUT_OF_MEMORY, "bytes", mr_buffer_create(d.device, (4u << 20) + 1, &b));
    CHECK_OK(mr_buffer_create(d.device, 3u << 20, &b));
    CHECK_FAILS(MR_OUT_OF_MEMORY, "bytes", mr_buffer_create(d.device, 2u << 20, &c));
    CHECK_OK(mr_buffer_destroy(b));
    CHECK_OK(mr_buffer_create(d.device, 2u << 20, &c));
}

TEST(SimFaults, TheLimitOfOpenSimulatorsIsAClearError) {
    std::vector<mr_device *> open;
    mr_device *device;
    mr_status status;
    while ((status = mr_device_open("sim:rgu", &device)) == MR_OK && open.size() < 1000)
        open.push_back(device);
    LONGS_EQUAL(MR_LIMIT, status);
    CHECK(strstr(mr_last_error(), "limit") != nullptr);
    mr_device_info info;
    CHECK_OK(mr_device_get_info(open[0], &info));
    LONGS_EQUAL(info.max_devices, open.size());
    CHECK_OK(mr_device_close(open.back()));
    CHECK_OK(mr_device_open("sim:rgu", &open.back()));
    for (auto *d : open)
        CHECK_OK(mr_device_close(d));
}

TEST(SimFaults, UnitsAndOptionsThatDoNotExist) {
    mr_device *device;
    CHECK_FAILS(MR_NOT_FOUND, "nic9", mr_device_open("sim:nic9", &device));
    CHECK_FAILS(MR_NOT_FOUND, "''", mr_device_open("sim:", &device));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "bogus", mr_device_open("sim:rgu?bogus=1", &device));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "seed", mr_device_open("sim:rgu?seed=1%261", &device));
    /* the debug build of the unit, which the fake does not have */
    CHECK_FAILS(MR_UNAVAILABLE, "libmr_sim_rgu_debug.so",
                mr_device_open("sim:rgu?trace=x.fst", &device));
}

/* Case 49: a client is killed in the middle of a job; its simulator goes too, and the next one is
 * served. */
TEST(SimFaults, ASimulatorGoesWithItsKilledClient) {
    int pipe_fds[2];
    LONGS_EQUAL(0, pipe(pipe_fds));
    pid_t client = fork();
    if (client == 0) { /* no threads were started in this process: a child may go on as it is */
        mr_device *device = nullptr;
        mr_device_info info = {};
        mr_queue *queue = nullptr;
        mr_buffer *seeds = nullptr, *dst = nullptr;
        mr_event *event = nullptr;
        auto rng = test_rng("client");
        Projection p(rng, 8, 1, 64, 64, false);
        mr_rgu_job job = p.job();
        bool good = !mr_device_open("sim:rgu?fault=hang", &device) &&
                    !mr_queue_create(device, &queue) &&
                    !mr_buffer_create(device, p.image.size(), &seeds) &&
                    !mr_buffer_create(device, 8192, &dst) && !mr_device_get_info(device, &info) &&
                    !mr_rgu_tile(queue, &job, {seeds, 0}, {nullptr, 0}, {dst, 0}, &event) &&
                    mr_event_wait(event, 20000000) == MR_TIMEOUT;
        int64_t process = good ? info.process : 0;
        if (write(pipe_fds[1], &process, sizeof process) != sizeof process)
            _exit(1);
        pause();
    }
    int64_t process = 0;
    LONGS_EQUAL(sizeof process, read(pipe_fds[0], &process, sizeof process));
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    CHECK(process > 0);
    kill(client, SIGKILL);
    waitpid(client, nullptr, 0);
    std::string entry = "/proc/" + std::to_string(process) + "/stat";
    bool gone = false;
    for (int i = 0; i < 500 && !gone;
         i++) { /* gone, or a zombie that whoever inherited it has not collected */
        std::ifstream file(entry);
        std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        gone = text.empty() || text.find(") Z ") != std::string::npos;
        usleep(10000);
    }
    CHECK(gone);
    Unit next("");
    next.works_again();
}

/* Cycles that end in a loss or a cancelled job leave no process, file or memory behind. */
TEST(SimFaults, CyclesOfFailureLeaveNothingBehind) {
    size_t files = 0, threads = 0;
    for (int i = 0; i < 40; i++) {
        static const char *const faults[] = {"?fault=crash", "?fault=proto", "?fault=error",
                                             "?fault=hang"};
        if (i == 8) {
            files = open_files();
            threads = live_threads();
        }
        Unit u(faults[i % 4]);
        mr_event *event = u.start();
        mr_event_wait(event, 5000000);
        CHECK_OK(mr_event_destroy(event));
    }
    LONGS_EQUAL(files, open_files());
    LONGS_EQUAL(threads, live_threads());
}
