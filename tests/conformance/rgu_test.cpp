/* RGU jobs: every back end gives the bits of the golden model, and refuses what is no job. */
#include "tests/conformance/conformance.h"

#include <cmath>
#include <cstring>

#include <CppUTest/TestHarness.h>

#include "models/golden/rgu_apply.h"

TEST_GROUP(Rgu){};

static size_t spread(std::mt19937_64 &rng, size_t low, size_t high) {
    return low + rng() % (high - low + 1);
}

/* A random window, format and address; bytes around the rows keep their value. */
static void check_tile(const Device &d, std::mt19937_64 &rng, int n, int terms, size_t d_out,
                       size_t d_in, bool scaled) {
    Projection p(rng, n, terms, d_out, d_in, scaled);
    mr_rgu_job job = p.job();
    job.format = static_cast<mr_rgu_format>(rng() % 6);
    job.saturate = rng() & 1;
    job.scale = scaled ? 1.0f
                       : std::ldexp(static_cast<float>(rng() % 2001) - 1000.0f,
                                    static_cast<int>(rng() % 20) - 14);
    job.row0 = spread(rng, 0, d_out - 1);
    job.row1 = spread(rng, job.row0 + 1, d_out);
    job.col0 = spread(rng, 0, d_in - 1);
    job.col1 = spread(rng, job.col0 + 1, d_in);
    size_t element = mr_rgu_format_bytes(job.format), rows = job.row1 - job.row0;
    job.dst_stride = (job.col1 - job.col0 + spread(rng, 0, 40)) * element;
    size_t offset = spread(rng, 0, 70) * element;
    std::vector<unsigned char> want(offset + rows * job.dst_stride + 64, 0xA5), got(want.size());
    mr_buffer *seeds = d.buffer(p.image.data(), p.image.size()),
              *dst = d.buffer(want.data(), want.size());
    mr_view scale = {nullptr, 0};
    if (scaled)
        scale.buffer = d.buffer(p.padded.data(), 4 * p.padded.size());
    mr_golden_job golden = p.golden(job);
    LONGS_EQUAL(0, mr_golden_tile(&golden, want.data() + offset, job.dst_stride));
    mr_event *event;
    CHECK_OK(mr_rgu_tile(d.queue, &job, {seeds, 0}, scale, {dst, offset}, &event));
    CHECK_OK(wait_for(event));
    CHECK_OK(mr_buffer_read(dst, 0, got.data(), got.size()));
    for (size_t i = 0; i < want.size(); i++)
        if (want[i] != got[i])
            FAIL(("n " + std::to_string(n) + " terms " + std::to_string(terms) + " format " +
                  std::to_string(job.format) + " rows " + std::to_string(job.row0) + ":" +
                  std::to_string(job.row1) + " cols " + std::to_string(job.col0) + ":" +
                  std::to_string(job.col1) + " offset " + std::to_string(offset) + ": byte " +
                  std::to_string(i) + " differs")
                     .c_str());
    CHECK_OK(mr_buffer_destroy(seeds));
    CHECK_OK(mr_buffer_destroy(dst));
    if (scaled)
        CHECK_OK(mr_buffer_destroy(scale.buffer));
}

TEST(Rgu, TilesAreTheGoldenModelsBits) {
    Device d(test_uri);
    auto rng = test_rng("tiles");
    bool simulated = d.info.caps & MR_CAP_CYCLES;
    for (int i = 0; i < (simulated ? 8 : 20); i++)
        check_tile(d, rng, 8, static_cast<int>(spread(rng, 1, i % 5 ? 3 : 32)), spread(rng, 1, 600),
                   spread(rng, 1, 600), i & 1);
    check_tile(d, rng, 10, 2, 1100, 130, true);
    check_tile(d, rng, 10, 1, 130, 1500, false);
}

TEST(Rgu, AppliedVectorsAreTheGoldenModelsBits) {
    Device d(test_uri);
    auto rng = test_rng("apply");
    for (int i = 0; i < 5; i++) {
        int n = i < 4 ? 8 : 10;
        Projection p(rng, n, static_cast<int>(spread(rng, 1, 3)), spread(rng, 1, 600),
                     spread(rng, 1, 600), i & 1);
        mr_rgu_job job = p.job();
        job.saturate = rng() & 1;
        job.batch = spread(rng, 1, 5);
        job.src_stride = 4 * (p.d_in + spread(rng, 0, 9));
        job.dst_stride = 4 * (p.d_out + spread(rng, 0, 9));
        std::vector<float> x(job.batch * job.src_stride / 4 + 3);
        int low = static_cast<int>(rng() % 5) * 50 - 150; /* from the subnormal to 2^55 */
        for (auto &v : x)
            v = std::ldexp(static_cast<float>(rng() % 20001) - 10000.0f,
                           low + static_cast<int>(rng() % 8) - 16);
        std::vector<unsigned char> want(job.batch * job.dst_stride + 8, 0xA5), got(want.size());
        mr_buffer *seeds = d.buffer(p.image.data(), p.image.size()),
                  *src = d.buffer(x.data(), 4 * x.size()),
                  *dst = d.buffer(want.data(), want.size());
        mr_view scale = {nullptr, 0};
        if (i & 1)
            scale.buffer = d.buffer(p.padded.data(), 4 * p.padded.size());
        mr_golden_job golden = p.golden(job);
        LONGS_EQUAL(0, mr_golden_apply(&golden, job.batch, x.data() + 3, job.src_stride,
                                       want.data() + 4, job.dst_stride));
        mr_event *event;
        CHECK_OK(mr_rgu_apply(d.queue, &job, {seeds, 0}, scale, {src, 12}, {dst, 4}, &event));
        CHECK_OK(wait_for(event));
        CHECK_OK(mr_buffer_read(dst, 0, got.data(), got.size()));
        MEMCMP_EQUAL(want.data(), got.data(), want.size());
    }
}

TEST(Rgu, BadJobsNameTheField) {
    Device d(test_uri);
    auto rng = test_rng("bad jobs");
    Projection p(rng, 8, 2, 300, 200, true);
    const mr_rgu_job good = p.job();
    mr_buffer *seeds = d.buffer(p.image.data(), p.image.size()),
              *scale = d.buffer(p.padded.data(), 4 * p.padded.size());
    mr_buffer *dst = d.buffer(300 * 200 * 4), *src = d.buffer(200 * 4), *small = d.buffer(100),
              *gone = d.buffer(64);
    CHECK_OK(mr_buffer_destroy(gone));
    mr_event *event = nullptr;
    auto tile = [&](void (*change)(mr_rgu_job &)) {
        mr_rgu_job job = good;
        change(job);
        return mr_rgu_tile(d.queue, &job, {seeds, 0}, {scale, 0}, {dst, 0}, &event);
    };
    auto apply = [&](void (*change)(mr_rgu_job &)) {
        mr_rgu_job job = good;
        job.dst_stride = 1200, job.src_stride = 800;
        change(job);
        return mr_rgu_apply(d.queue, &job, {seeds, 0}, {scale, 0}, {src, 0}, {dst, 0}, &event);
    };
    struct {
        const char *word;
        void (*change)(mr_rgu_job &);
    } both[] = {
        {"job.n", [](mr_rgu_job &j) { j.n = 9; }},
        {"job.n", [](mr_rgu_job &j) { j.n = 0; }},
        {"job.terms", [](mr_rgu_job &j) { j.terms = 0; }},
        {"job.terms", [](mr_rgu_job &j) { j.terms = 33; }},
        {"job.chunks_in", [](mr_rgu_job &j) { j.chunks_in = 2; }},
        {"job.chunks_out", [](mr_rgu_job &j) { j.chunks_out = 0; }},
        {"job.d_in", [](mr_rgu_job &j) { j.d_in = 0; }},
        {"job.d_out", [](mr_rgu_job &j) { j.d_out = 0; }},
        {"job.chunks_in", [](mr_rgu_job &j) { j.d_in = 0xFFFFFFFF; }},
        {"job.has_odd", [](mr_rgu_job &j) { j.has_odd = j.has_even = false; }},
        {"job.scale", [](mr_rgu_job &j) { j.scale = INFINITY; }},
        {"job.scale", [](mr_rgu_job &j) { j.scale = NAN; }},
        {"seeds", [](mr_rgu_job &j) { j.terms = 3; }},
    };
    for (auto &b : both) {
        CHECK_FAILS(MR_INVALID_ARGUMENT, b.word, tile(b.change));
        CHECK_FAILS(MR_INVALID_ARGUMENT, b.word, apply(b.change));
    }
    struct {
        const char *word;
        void (*change)(mr_rgu_job &);
    } tiles[] = {
        {"job.format", [](mr_rgu_job &j) { j.format = static_cast<mr_rgu_format>(6); }},
        {"job.row0", [](mr_rgu_job &j) { j.row0 = j.row1; }},
        {"job.row1", [](mr_rgu_job &j) { j.row1 = 301; }},
        {"job.col0", [](mr_rgu_job &j) { j.col0 = 150, j.col1 = 149; }},
        {"job.col1", [](mr_rgu_job &j) { j.col1 = 201; }},
        {"job.dst_stride", [](mr_rgu_job &j) { j.dst_stride = 398; }},
        {"job.dst_stride", [](mr_rgu_job &j) { j.dst_stride = 401; }},
        {"dst", [](mr_rgu_job &j) { j.dst_stride = 4000; }},
    };
    for (auto &t : tiles)
        CHECK_FAILS(MR_INVALID_ARGUMENT, t.word, tile(t.change));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "job.batch", apply([](mr_rgu_job &j) { j.batch = 0; }));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "job.src_stride",
                apply([](mr_rgu_job &j) { j.src_stride = 796; }));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "job.dst_stride",
                apply([](mr_rgu_job &j) { j.dst_stride = 1202; }));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "src", apply([](mr_rgu_job &j) { j.batch = 2; }));

    auto views = [&](mr_view a, mr_view b, mr_view c) {
        return mr_rgu_tile(d.queue, &good, a, b, c, &event);
    };
    CHECK_FAILS(MR_INVALID_ARGUMENT, "seeds", views({seeds, 4}, {scale, 0}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "seeds", views({seeds, 64}, {scale, 0}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "row_scale", views({seeds, 0}, {scale, 64}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "row_scale", views({seeds, 0}, {small, 0}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "dst", views({seeds, 0}, {scale, 0}, {dst, 1}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "dst", views({seeds, 0}, {scale, 0}, {small, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "dst", views({seeds, 0}, {scale, 0}, {dst, SIZE_MAX - 1}));
    CHECK_FAILS(MR_INVALID_HANDLE, "dst", views({seeds, 0}, {scale, 0}, {gone, 0}));
    CHECK_FAILS(MR_INVALID_HANDLE, "seeds", views({nullptr, 0}, {scale, 0}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_HANDLE, "row_scale", views({seeds, 0}, {nullptr, 64}, {dst, 0}));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "job",
                mr_rgu_tile(d.queue, nullptr, {seeds, 0}, {scale, 0}, {dst, 0}, &event));
    CHECK_FAILS(MR_INVALID_ARGUMENT, "event",
                mr_rgu_tile(d.queue, &good, {seeds, 0}, {scale, 0}, {dst, 0}, nullptr));
    CHECK_FAILS(MR_INVALID_HANDLE, "queue",
                mr_rgu_tile(nullptr, &good, {seeds, 0}, {scale, 0}, {dst, 0}, &event));
    POINTERS_EQUAL(nullptr, event);
}

TEST(Rgu, FormatSizes) {
    size_t want[] = {2, 2, 1, 1, 1, 4};
    for (int f = 0; f < 6; f++)
        LONGS_EQUAL(want[f], mr_rgu_format_bytes(static_cast<mr_rgu_format>(f)));
    LONGS_EQUAL(0, mr_rgu_format_bytes(static_cast<mr_rgu_format>(6)));
}
