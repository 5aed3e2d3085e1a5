/* Queues, events and launches. Work is what the device has: a kernel where it runs kernels, an RGU
 * job elsewhere. */
#include "tests/conformance/conformance.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <CppUTest/TestHarness.h>

TEST_GROUP(Queues){};

static const char kernel[] = "lm_gather"; /* y[t][:] = x[index[t] / div][:] */

/* One unit of work on the device that can be submitted again and again, and checked. */
struct Work {
    const Device &d;
    mr_buffer *in, *out, *extra = nullptr;
    mr_rgu_job job = {};
    std::vector<unsigned char> want;
    size_t out_bytes;
    Work(const Device &device, std::mt19937_64 &rng, int items = 256) : d(device) {
        if (d.info.caps & MR_CAP_KERNELS) {
            out_bytes = 4u * items;
            want.resize(out_bytes);
            for (auto &b : want)
                b = static_cast<unsigned char>(rng() & 0x3F);
            in = d.buffer(want.data(), out_bytes);
            out = d.buffer(out_bytes);
            return;
        }
        Projection p(rng, 8, 1, 64, 64, false);
        job = p.job();
        out_bytes = 64 * 64 * 2;
        want.resize(out_bytes);
        mr_golden_job g = p.golden(job);
        mr_golden_tile(&g, want.data(), job.dst_stride);
        in = d.buffer(p.image.data(), p.image.size());
        out = d.buffer(out_bytes);
    }
    mr_status submit(mr_queue *queue, mr_event **event) {
        if (!(d.info.caps & MR_CAP_KERNELS))
            return mr_rgu_tile(queue, &job, {in, 0}, {nullptr, 0}, {out, 0}, event);
        int items = static_cast<int>(out_bytes / 4);
        mr_arg args[] = {mr_arg_buffer(out, 0), mr_arg_buffer(in, 0), mr_arg_buffer(nullptr, 0),
                         mr_arg_i32(1),         mr_arg_i32(items),    mr_arg_i32(items)};
        size_t global[3] = {out_bytes / 4, 1, 1};
        return mr_kernel_launch(queue, kernel, args, 6, global, nullptr, event);
    }
    void poison() {
        std::vector<unsigned char> ones(out_bytes, 0xEE);
        CHECK_OK(mr_buffer_write(out, 0, ones.data(), out_bytes));
    }
    bool right() {
        std::vector<unsigned char> back(out_bytes);
        return mr_buffer_read(out, 0, back.data(), out_bytes) == MR_OK && back == want;
    }
};

TEST(Queues, WorkIsDoneAndCounted) {
    Device d(test_uri);
    auto rng = test_rng("counted");
    Work w(d, rng);
    mr_event *event = nullptr;
    mr_counters counters;
    w.poison();
    CHECK_OK(w.submit(d.queue, &event));
    CHECK_OK(mr_event_wait(event, MR_FOREVER));
    CHECK_OK(mr_event_wait(event, 0));
    CHECK_OK(mr_event_status(event));
    CHECK_OK(mr_event_counters(event, &counters));
    CHECK(counters.host_ns > 0);
    CHECK(counters.hardware == ((d.info.caps & MR_CAP_CYCLES) != 0));
    CHECK((counters.cycles > 0) == counters.hardware);
    CHECK_FAILS(MR_INVALID_ARGUMENT, "counters", mr_event_counters(event, nullptr));
    CHECK(w.right());
    CHECK_OK(mr_event_destroy(event));
    CHECK_FAILS(MR_INVALID_HANDLE, "event", mr_event_counters(event, &counters));
    CHECK_FAILS(MR_INVALID_HANDLE, "event", mr_event_destroy(event));
}

TEST(Queues, WaitsEndWithTheirTimeout) {
    Device d(test_uri);
    auto rng = test_rng("waits");
    Work w(d, rng, 65536);
    std::vector<mr_event *> events;
    for (int i = 0; i < 20; i++) {
        mr_event *e;
        CHECK_OK(w.submit(d.queue, &e));
        events.push_back(e);
    }
    mr_status last = mr_event_wait(events.back(), 0);
    CHECK(last == MR_TIMEOUT || last == MR_OK);
    mr_counters counters;
    mr_status state = mr_event_status(events.back());
    if (state == MR_PENDING && mr_event_counters(events.back(), &counters) == MR_OK)
        CHECK_OK(mr_event_status(events.back())); /* figures only of work that ended */
    last = mr_queue_finish(d.queue, 1);
    CHECK(last == MR_TIMEOUT || last == MR_OK);
    CHECK_OK(mr_queue_finish(d.queue, MR_FOREVER));
    for (auto *e : events) {
        CHECK_OK(mr_event_status(e));
        CHECK_OK(mr_event_destroy(e));
    }
}

TEST(Queues, ResultsOutliveTheirBuffersAndDevices) {
    auto rng = test_rng("outlive");
    mr_event *event = nullptr, *forgotten = nullptr;
    {
        Device d(test_uri);
        Work w(d, rng);
        CHECK_OK(w.submit(d.queue, &forgotten));
        CHECK_OK(mr_event_destroy(forgotten)); /* the work goes on */
        CHECK_OK(w.submit(d.queue, &event));
        CHECK_OK(mr_buffer_destroy(w.in));
        CHECK_OK(mr_queue_finish(d.queue, MR_FOREVER));
        CHECK(w.right());
    }
    CHECK_OK(wait_for(event, 0));
}

TEST(Queues, DestroyingAQueueEndsItsWork) {
    Device d(test_uri);
    auto rng = test_rng("destroy");
    Work w(d, rng, 65536);
    for (int round = 0; round < 5; round++) {
        mr_queue *q;
        std::vector<mr_event *> events(30);
        CHECK_OK(mr_queue_create(d.device, &q));
        for (auto &e : events)
            CHECK_OK(w.submit(q, &e));
        CHECK_OK(mr_queue_destroy(q));
        for (auto *e : events) {
            mr_status status = wait_for(e, 0);
            CHECK(status == MR_OK || status == MR_CANCELLED);
        }
        mr_event *e;
        CHECK_FAILS(MR_INVALID_HANDLE, "queue", w.submit(q, &e));
    }
}

TEST(Queues, ManyQueuesAndThreadsAtOnce) {
    Device d(test_uri);
    int jobs = d.info.caps & MR_CAP_KERNELS ? 100 : 5;
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    auto rng = test_rng("threads");
    std::vector<Work *> works;
    for (int t = 0; t < 4; t++)
        works.push_back(new Work(d, rng, 1000 + t));
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&, t] {
            mr_queue *own = nullptr;
            if (mr_queue_create(d.device, &own) != MR_OK)
                wrong++;
            for (int i = 0; i < jobs; i++) {
                mr_event *e;
                mr_queue *q = i & 1 ? own : d.queue; /* a shared queue as well */
                if (works[t]->submit(q, &e) != MR_OK || mr_event_wait(e, MR_FOREVER) != MR_OK ||
                    !works[t]->right())
                    wrong++;
                mr_event_destroy(e);
            }
            mr_queue_destroy(own);
        });
    for (auto &t : threads)
        t.join();
    LONGS_EQUAL(0, wrong);
    for (auto *w : works)
        delete w;
}

TEST(Queues, DestroyFromTwoThreadsIsOneSuccess) {
    Device d(test_uri);
    for (int i = 0; i < 50; i++) {
        mr_buffer *b = d.buffer(100);
        std::atomic<int> good{0};
        auto kill = [&] { good += mr_buffer_destroy(b) == MR_OK; };
        std::thread one(kill), two(kill);
        one.join();
        two.join();
        LONGS_EQUAL(1, good);
    }
}

/* ---- Kernels ----------------------------------------------------------------------------------
 */

TEST_GROUP(Kernels){};

TEST(Kernels, DevicesWithoutKernelsSayUnsupported) {
    Device d(test_uri);
    mr_event *event;
    if (d.info.caps & MR_CAP_KERNELS)
        return;
    mr_buffer *b = d.buffer(4096);
    mr_arg args[] = {mr_arg_buffer(b, 0), mr_arg_buffer(b, 0), mr_arg_buffer(nullptr, 0),
                     mr_arg_i32(1),       mr_arg_i32(1),       mr_arg_i32(1)};
    size_t global[3] = {1, 1, 1};
    CHECK_FAILS(MR_UNSUPPORTED, "kernels",
                mr_kernel_launch(d.queue, kernel, args, 6, global, nullptr, &event));
}

TEST(Kernels, BadLaunchesNameTheArgument) {
    Device d(test_uri), other(test_uri);
    if (!(d.info.caps & MR_CAP_KERNELS))
        return;
    mr_buffer *y = d.buffer(1024), *x = d.buffer(1024), *foreign = other.buffer(1024),
              *gone = d.buffer(64);
    CHECK_OK(mr_buffer_destroy(gone));
    mr_event *event = nullptr;
    const size_t one[3] = {64, 1, 1};
    const std::vector<mr_arg> good = {
        mr_arg_buffer(y, 0), mr_arg_buffer(x, 0), mr_arg_buffer(nullptr, 0),
        mr_arg_i32(1),       mr_arg_i32(64),      mr_arg_i32(64)};
    auto launch = [&](size_t i, mr_arg a) {
        auto args = good;
        args[i] = a;
        return mr_kernel_launch(d.queue, kernel, args.data(), args.size(), one, nullptr, &event);
    };
    CHECK_FAILS(MR_NOT_FOUND, "no_such",
                mr_kernel_launch(d.queue, "no_such", good.data(), 6, one, nullptr, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "5 arguments",
                mr_kernel_launch(d.queue, kernel, good.data(), 5, one, nullptr, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "event",
                mr_kernel_launch(d.queue, kernel, good.data(), 6, one, nullptr, nullptr));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "name",
                mr_kernel_launch(d.queue, nullptr, good.data(), 6, one, nullptr, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "args",
                mr_kernel_launch(d.queue, kernel, nullptr, 6, one, nullptr, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "global",
                mr_kernel_launch(d.queue, kernel, good.data(), 6, nullptr, nullptr, &event));
    CHECK_FAILS(MR_INVALID_HANDLE, "queue",
                mr_kernel_launch(nullptr, kernel, good.data(), 6, one, nullptr, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(div)", launch(3, mr_arg_f32(1)));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(items)", launch(5, mr_arg_u32(1)));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(x)", launch(1, mr_arg_i32(1)));
    CHECK_FAILS(MR_INVALID_HANDLE, "(y)", launch(0, mr_arg_buffer(gone, 0)));
    CHECK_FAILS(MR_INVALID_HANDLE, "(x)", launch(1, mr_arg_buffer(foreign, 0)));
    CHECK_FAILS(MR_INVALID_HANDLE, "(index)", launch(2, mr_arg_buffer(nullptr, 4)));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(y)", launch(0, mr_arg_buffer(y, 1024)));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(y)", launch(0, mr_arg_buffer(y, SIZE_MAX)));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "(x)", launch(1, mr_arg_buffer(x, 2)));
    struct {
        size_t global[3], local[3];
        const char *word;
    } sizes[] = {
        {{0, 1, 1}, {1, 1, 1}, "global[0]"},   {{64, 0, 1}, {1, 1, 1}, "global[1]"},
        {{64, 1, 0}, {1, 1, 1}, "global[2]"},  {{64, 1, 1}, {0, 1, 1}, "local"},
        {{64, 1, 1}, {48, 1, 1}, "multiple"},  {{64, 2, 1}, {32, 2, 1}, "local"},
        {{2048, 1, 1}, {2048, 1, 1}, "local"}, {{SIZE_MAX, 1, 1}, {1, 1, 1}, "global[0]"},
    };
    for (auto &s : sizes)
        CHECK_FAILS(MR_INVALID_ARGUMENT, s.word,
                    mr_kernel_launch(d.queue, kernel, good.data(), 6, s.global, s.local, &event));
    POINTERS_EQUAL(nullptr, event);
    CHECK_OK(launch(3, mr_arg_i32(1)));
    CHECK_OK(wait_for(event));
}

/* Cases 64 and 68: views that start at any element, on the way in and on the way out. */
TEST(Kernels, ViewsAtEveryElementOffset) {
    Device d(test_uri);
    if (!(d.info.caps & MR_CAP_KERNELS))
        return;
    const size_t rows = 5, dim = 47, total = 1024;
    std::vector<float> x(total), y(total), want(total);
    for (size_t i = 0; i < total; i++)
        x[i] = static_cast<float>(i);
    std::vector<size_t> offsets;
    for (size_t i = 0; i < 72; i++)
        offsets.push_back(i);
    offsets.insert(offsets.end(), {255, 256, 257, 512});
    mr_buffer *in = d.buffer(x.data(), 4 * total), *out = d.buffer(4 * total);
    int32_t index[rows] = {4, 0, 3, 3, 1};
    mr_buffer *order = d.buffer(index, sizeof index);
    for (size_t o : offsets) {
        size_t p = (o * 7 + 3) % 509;
        for (size_t i = 0; i < total; i++)
            want[i] = -1.0f;
        CHECK_OK(mr_buffer_write(out, 0, want.data(), 4 * total));
        for (size_t t = 0; t < rows; t++)
            for (size_t c = 0; c < dim; c++)
                want[p + t * dim + c] = x[o + index[t] * dim + c];
        mr_arg args[] = {mr_arg_buffer(out, 4 * p), mr_arg_buffer(in, 4 * o),
                         mr_arg_buffer(order, 0),   mr_arg_i32(1),
                         mr_arg_i32(dim),           mr_arg_i32(rows * dim)};
        const size_t global[3] = {256, 1, 1}, local[3] = {32, 1, 1};
        mr_event *event;
        CHECK_OK(mr_kernel_launch(d.queue, kernel, args, 6, global, local, &event));
        CHECK_OK(wait_for(event));
        CHECK_OK(mr_buffer_read(out, 0, y.data(), 4 * total));
        for (size_t i = 0; i < total; i++)
            DOUBLES_EQUAL(want[i], y[i], 0);
    }
}

TEST(Kernels, WorkOfAQueueSeesWhatCameBefore) {
    Device d(test_uri);
    if (!(d.info.caps & MR_CAP_KERNELS))
        return;
    const int32_t dim = 1, items = 256;
    int32_t step[items];
    std::vector<float> x(items), y(items);
    for (int i = 0; i < items; i++) {
        step[i] = (i + 1) % items; /* each launch rotates by one */
        x[i] = static_cast<float>(i);
    }
    mr_buffer *a = d.buffer(x.data(), 4 * items), *b = d.buffer(4 * items),
              *s = d.buffer(step, sizeof step);
    const size_t global[3] = {items, 1, 1};
    const int rounds = 200;
    std::vector<mr_event *> events(rounds);
    for (int i = 0; i < rounds; i++) {
        mr_arg args[] = {mr_arg_buffer(i & 1 ? a : b, 0),
                         mr_arg_buffer(i & 1 ? b : a, 0),
                         mr_arg_buffer(s, 0),
                         mr_arg_i32(1),
                         mr_arg_i32(dim),
                         mr_arg_i32(items)};
        CHECK_OK(mr_kernel_launch(d.queue, kernel, args, 6, global, nullptr, &events[i]));
    }
    CHECK_OK(mr_event_wait(events.back(), MR_FOREVER));
    for (auto *e : events)
        CHECK_OK(wait_for(e, 0));
    CHECK_OK(mr_buffer_read(a, 0, y.data(), 4 * items));
    for (int i = 0; i < items; i++)
        DOUBLES_EQUAL((i + rounds) % items, y[i], 0);
}

TEST(Kernels, EveryKernelHasANameAndIsFound) {
    size_t count = 0;
    for (; mr_kernel_name(count); count++)
        CHECK(mr_kernel_exists(mr_kernel_name(count)));
    CHECK(count >= 4);
    CHECK(!mr_kernel_exists("no_such"));
    CHECK(!mr_kernel_exists(nullptr));
}
