// Tile jobs of the whole RGU, board wrapper included, against the golden model, bit for bit.
//
// Every register and memory of the unit starts with noise (xinit=random), every assertion of the
// RTL is alive: a broken one ends the simulator and with it the test.
#include "tests/rtl/rgu/rgu_sim.hpp"

#include <random>

#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>
#include <CppUTest/TestHarness.h>

static uint64_t run_seed() {
    static const uint64_t seed = [] {
        const char *text = getenv("MR_SEED");
        uint64_t value = text ? strtoull(text, nullptr, 0) : std::random_device{}();
        printf("seed %llu (MR_SEED=%llu reproduces)\n", (unsigned long long)value,
               (unsigned long long)value);
        return value;
    }();
    return seed;
}

static sim_library &library() {
    static sim_library lib(MR_SIM_RGU_DEBUG_PATH);
    return lib;
}

static std::string noise(rng &r) { return "xinit=random&seed=" + std::to_string(r.below(1000000)); }

static const uint8_t untouched = 0xA5;
static const int formats[] = {MR_FMT_BF16,    MR_FMT_FP16, MR_FMT_FP8E4M3,
                              MR_FMT_FP8E5M2, MR_FMT_INT8, MR_FMT_FP32};

// What went wrong with a job, empty when nothing did.
static std::string differs(const projection &p, const tile_job &j, const uint8_t *got,
                           const uint8_t *want) {
    size_t bytes = mr_format_bytes(j.format);
    for (size_t row = 0; row < j.row1 - j.row0; row++)
        for (size_t b = 0; b < j.row_bytes(); b += bytes) {
            size_t at = row * j.stride + b;
            if (!memcmp(got + at, want + at, bytes))
                continue;
            uint32_t g = 0, w = 0;
            memcpy(&g, got + at, bytes);
            memcpy(&w, want + at, bytes);
            char text[200];
            snprintf(text, sizeof text,
                     "n %d terms %d %zux%zu format %d: row %zu column %zu is 0x%x, not 0x%x", p.n,
                     p.terms, p.d_out, p.d_in, j.format, j.row0 + row, j.col0 + b / bytes, g, w);
            return text;
        }
    return "";
}

// Runs a job into memory at the given offset within an allocation and compares everything in it.
static std::string run_to_memory(rgu_sim &s, const projection &p, const tile_job &j,
                                 size_t offset) {
    std::vector<uint8_t> got(offset + j.bytes() + 64), want(got.size(), untouched);
    mr_golden_job g = golden_job(p, j);
    if (mr_golden_tile(&g, want.data() + offset, j.stride))
        return "the golden model refused the job";
    uint64_t at = 0;
    s.ok(s.ops.mem_alloc(s.sim, got.size(), 64, &at));
    memset(got.data(), untouched, got.size());
    s.ok(s.ops.mem_write(s.sim, at, got.data(), got.size()));
    s.registers(p, j, at + offset);
    s.go(40000000);
    s.ok(s.ops.mem_read(s.sim, at, got.data(), got.size()));
    s.ok(s.ops.mem_free(s.sim, at));
    if (!s.problem.empty())
        return s.problem;
    if (s.counters.error)
        return "error code " + std::to_string(s.counters.error);
    if (s.counters.items_out != (j.row1 - j.row0) * (j.col1 - j.col0))
        return "the weight counter says " + std::to_string(s.counters.items_out);
    std::string why = differs(p, j, got.data() + offset, want.data() + offset);
    if (why.empty() && got != want)
        why = "bytes outside the window were written";
    return why;
}

static std::string run_all(const projection &p, const tile_job &j, const std::string &options,
                           size_t offset = 0) {
    rgu_sim s(library(), options);
    if (!s.problem.empty())
        return s.problem;
    s.load(p);
    return run_to_memory(s, p, j, offset);
}

static void expect(const std::string &why) { STRCMP_EQUAL("", why.c_str()); }

TEST_GROUP(Tile) { rng r{run_seed()}; };

// Every format, parity and term count, with row scales and without, ragged shapes.
TEST(Tile, RandomProjections) {
    static const int terms[] = {1, 2, 3, 8, 32};
    rgu_sim s(library(), noise(r));
    for (int i = 0; i < 90; i++) {
        int t = terms[i % 5];
        size_t limit = t >= 8 ? 256 : 600;
        projection p(r, 8, t, r.range(1, limit), r.range(1, limit), i % 3, r.percent(50));
        p.pack();
        tile_job j(p);
        j.format = formats[(i / 3) % 6];
        j.sat = (int)r.below(2);
        j.stride = j.row_bytes();
        if (r.percent(50))
            j.scale = r.gain();
        s.load(p);
        expect(run_to_memory(s, p, j, 0));
        s.unload();
    }
}

TEST(Tile, RandomProjectionsOfTheLargeAlgebra) {
    static const int terms[] = {1, 2, 3, 1, 8, 1};
    rgu_sim s(library(), noise(r));
    for (int i = 0; i < 6; i++) {
        projection p(r, 10, terms[i], r.range(900, 1100), r.range(700, 1024), i % 3, r.percent(50));
        p.pack();
        tile_job j(p);
        j.format = formats[(i * 2 + (int)r.below(2)) % 6];
        j.stride = (j.row_bytes() + 63) & ~(size_t)63;
        s.load(p);
        expect(run_to_memory(s, p, j, 0));
        s.unload();
    }
}

TEST(Tile, ThirtyTwoTermsOfTheLargeAlgebra) {
    projection p(r, 10, 32, 40, 1024, 2, true);
    p.pack();
    tile_job j(p);
    j.stride = j.row_bytes();
    expect(run_all(p, j, noise(r)));
}

// Windows of all alignments, destinations at any byte, any stride; not a byte beside them.
TEST(Tile, Windows) {
    rgu_sim s(library(), noise(r));
    projection p(r, 8, 2, 700, 700, 2, true);
    projection q(r, 8, 1, 700, 700, 1, false);
    p.pack();
    q.pack();
    for (int i = 0; i < 80; i++) {
        const projection &use = i % 2 ? p : q;
        tile_job j(use);
        size_t rows = r.percent(50) ? r.range(1, 4) : r.range(1, 300);
        size_t cols = r.percent(50) ? r.range(1, 70) : r.range(1, 300);
        j.row0 = r.range(0, 700 - rows);
        j.row1 = j.row0 + rows;
        j.col0 = r.range(0, 700 - cols);
        j.col1 = j.col0 + cols;
        j.format = formats[r.below(6)];
        j.stride = j.row_bytes() + (r.percent(50) ? 0 : r.below(200));
        s.load(use);
        expect(run_to_memory(s, use, j, r.below(130)));
        s.unload();
    }
}

TEST(Tile, WindowsOfTheLargeAlgebra) {
    rgu_sim s(library(), noise(r));
    projection p(r, 10, 1, 1500, 1100, 0, true);
    p.pack();
    s.load(p);
    for (int i = 0; i < 3; i++) {
        tile_job j(p);
        j.row0 = r.range(0, 1400);
        j.row1 = r.range(j.row0 + 1, 1500);
        j.col0 = r.range(0, 1000);
        j.col1 = r.range(j.col0 + 1, 1100);
        j.format = formats[r.below(6)];
        j.stride = j.row_bytes() + r.below(100);
        expect(run_to_memory(s, p, j, r.below(130)));
    }
}

// Terms that cancel: rounding half up leaves crumbs of a few units, and they must be the golden
// model's. Gains of zero leave +0 everywhere, also under negative row scales.
TEST(Tile, CancellingTermsAndZeroGains) {
    for (int n = 8; n <= 10; n += 2) {
        projection p(r, n, 2, 200, 200, n == 8 ? 1 : 0, true);
        size_t half = p.angles.size() / 2;
        std::copy(p.angles.begin(), p.angles.begin() + (long)half, p.angles.begin() + (long)half);
        for (size_t i = 0; i < p.gain.size() / 2; i++)
            p.gain[i + p.gain.size() / 2] = -p.gain[i];
        p.pack();
        tile_job j(p);
        j.stride = j.row_bytes();
        expect(run_all(p, j, noise(r)));
        for (auto &g : p.gain)
            g = 0;
        p.pack();
        expect(run_all(p, j, noise(r)));
    }
}

// Scales that overflow and underflow every format, both policies; zero stays +0.
TEST(Tile, OverflowAndUnderflow) {
    rgu_sim s(library(), noise(r));
    for (int f : formats)
        for (int sat = 0; sat < 2; sat++) {
            projection p(r, 8, 1, 100, 256, f & 1, true);
            for (auto &x : p.row_scale) {
                int e = (int)r.below(280) - 149;
                x = r.percent(50) ? std::ldexp(r.gain(), e > 127 ? 127 : e) : r.gain() * 1000.0f;
                if (!std::isfinite(x))
                    x = 1.0f;
            }
            p.pack();
            tile_job j(p);
            j.format = f;
            j.sat = sat;
            j.stride = j.row_bytes();
            s.load(p);
            expect(run_to_memory(s, p, j, 0));
            s.unload();
        }
}

// Random stalls on all channels, latency and bandwidth of a slow memory.
TEST(Tile, StallsEverywhere) {
    static const char *const slow[] = {
        "&stall=30",
        "&stall=60&stall_len=20&latency=90&wlatency=200",
        "&stall_w=50&stall_len=3",
        "&stall_aw=70&stall_b=70&wlatency=40",
        "&stall_ar=80&stall_r=80&latency=300",
        "&bandwidth=24&latency=20",
    };
    for (int i = 0; i < 24; i++) {
        projection p(r, 8, (int)r.range(1, 3), r.range(1, 512), r.range(1, 512), i % 3,
                     r.percent(50));
        p.pack();
        tile_job j(p);
        j.format = formats[r.below(6)];
        j.stride = j.row_bytes() + r.below(3) * 13;
        expect(run_all(p, j, noise(r) + slow[i % 6], r.below(64)));
    }
}

// Whatever the registers and memories start with, outputs and cycles are the same.
TEST(Tile, InitialValuesDoNotMatter) {
    projection p(r, 8, 2, 300, 300, 2, true);
    p.pack();
    tile_job j(p);
    j.stride = j.row_bytes();
    uint64_t cycles = 0;
    static const char *const starts[] = {"xinit=zero", "xinit=ones", "xinit=random&seed=1",
                                         "xinit=random&seed=77"};
    for (const char *start : starts) {
        rgu_sim s(library(), start);
        s.load(p);
        expect(run_to_memory(s, p, j, 5));
        if (cycles)
            LONGS_EQUAL(cycles, s.counters.cycles);
        cycles = s.counters.cycles;
    }
}

// Every frame is one row segment; together they are the window, each element once.
static std::string run_to_stream(rgu_sim &s, const projection &p, const tile_job &j) {
    size_t bytes = mr_format_bytes(j.format);
    std::vector<uint8_t> want(j.bytes()), got(j.bytes());
    std::vector<bool> seen(j.bytes());
    mr_golden_job g = golden_job(p, j);
    if (mr_golden_tile(&g, want.data(), j.stride))
        return "the golden model refused the job";
    s.registers(p, j, 0);
    s.go(40000000);
    for (;;) {
        uint8_t buf[1024];
        size_t len = 0;
        if (!s.ok(s.ops.stream_read(s.sim, buf, sizeof buf, &len)) || !len)
            break;
        uint32_t head[4];
        memcpy(head, buf, sizeof head);
        if (len != 64 + head[3] + head[2])
            return "a frame of " + std::to_string(len) + " bytes";
        if (head[0] < j.row0 || head[0] >= j.row1 || head[1] < j.col0 ||
            head[1] + head[2] / bytes > j.col1)
            return "a frame outside the window";
        size_t at = (head[0] - j.row0) * j.stride + (head[1] - j.col0) * bytes;
        for (size_t b = 0; b < head[2]; b++) {
            if (seen[at + b])
                return "a byte came twice";
            seen[at + b] = true;
            got[at + b] = buf[64 + head[3] + b];
        }
    }
    if (!s.problem.empty())
        return s.problem;
    for (size_t row = 0; row < j.row1 - j.row0; row++)
        for (size_t b = 0; b < j.row_bytes(); b++)
            if (!seen[row * j.stride + b])
                return "row " + std::to_string(row) + " is not whole";
    return differs(p, j, got.data(), want.data());
}

TEST(Tile, StreamDestination) {
    for (int i = 0; i < 6; i++) {
        projection p(r, 8, 1, 300, 300, i % 3, r.percent(50));
        p.pack();
        rgu_sim s(library(), noise(r) + (i % 2 ? "&stall_s=40" : ""));
        s.load(p);
        tile_job j(p);
        j.stream = true;
        j.format = formats[i];
        j.row0 = r.below(200);
        j.col0 = r.below(200);
        j.stride = j.row_bytes();
        expect(run_to_stream(s, p, j));
        mr_sim_stats st;
        s.ops.stats(s.sim, &st, 0);
        LONGS_EQUAL(0, st.w_beats);
    }
}

// A job that cannot run is done at once, says why, and touches nothing; the next one runs.
TEST(Tile, BadJobs) {
    rgu_sim s(library(), noise(r));
    projection p(r, 8, 1, 256, 512, 0, false);
    p.pack();
    s.load(p);
    tile_job j(p);
    j.stride = j.row_bytes();
    struct {
        uint32_t reg, value, error;
    } const bad[] = {
        {MR_RGU_MODE, 9u << 8 | 1u << 16 | 1u << 23, 1},
        {MR_RGU_MODE, 0u << 8 | 1u << 16 | 1u << 23, 1},
        {MR_RGU_MODE, 8u << 8 | 0u << 16 | 1u << 23, 2},
        {MR_RGU_MODE, 8u << 8 | 33u << 16 | 1u << 23, 2},
        {MR_RGU_MODE, 8u << 8 | 1u << 16, 2},
        {MR_RGU_ROW1, 257, 3},
        {MR_RGU_ROW1, 0, 3},
        {MR_RGU_COL1, 513, 3},
        {MR_RGU_COL0, 512, 3},
        {MR_RGU_ROW1, 0xFFFFFFFFu, 3},
        {MR_RGU_MODE, 6u << 4 | 8u << 8 | 1u << 16 | 1u << 23, 4},
        {MR_RGU_SCALE, 0x7F800000u, 4},
        {MR_RGU_SEEDS, (uint32_t)s.image + 32, 5},
    };
    mr_sim_stats st;
    for (const auto &b : bad) {
        s.registers(p, j, s.image);
        s.reg(b.reg, b.value);
        s.ops.stats(s.sim, &st, 1);
        s.go(200);
        expect(s.problem);
        LONGS_EQUAL(b.error, s.counters.error);
        s.ops.stats(s.sim, &st, 0);
        LONGS_EQUAL(0, st.aw_bursts + st.w_beats + st.ar_bursts);
        LONGS_EQUAL(0, s.counters.items_out);
    }
    s.reg(MR_RGU_ROW_SCALE, s.image + 4, true); // misaligned, but only an error when used
    expect(run_to_memory(s, p, j, 0));
}

// Memory that is not there: the job ends with its error, and the next one is right.
TEST(Tile, BusErrors) {
    rgu_sim s(library(), noise(r));
    projection p(r, 8, 1, 256, 256, 0, false);
    p.pack();
    s.load(p);
    tile_job j(p);
    j.stride = j.row_bytes();
    uint64_t at = 0, good = s.image;
    s.ok(s.ops.mem_alloc(s.sim, j.bytes(), 64, &at));

    s.image = 0x40;
    s.registers(p, j, at);
    s.go(1000000);
    expect(s.problem);
    LONGS_EQUAL(6, s.counters.error);

    s.image = good;
    s.registers(p, j, at + 64); // runs over the end of its allocation
    s.go(1000000);
    expect(s.problem);
    LONGS_EQUAL(7, s.counters.error);
    expect(run_to_memory(s, p, j, 0));
}

TEST(Tile, InfiniteRowScaleIsReported) {
    projection p(r, 8, 1, 256, 256, 0, true);
    p.pack();
    p.row_scale[17] = INFINITY;
    rgu_sim s(library(), noise(r));
    s.load(p);
    tile_job j(p);
    j.stride = j.row_bytes();
    uint64_t at = 0;
    s.ok(s.ops.mem_alloc(s.sim, j.bytes(), 64, &at));
    s.registers(p, j, at);
    s.go(1000000);
    expect(s.problem);
    LONGS_EQUAL(4, s.counters.error);
}

TEST_GROUP(Simulator) { rng r{run_seed()}; };

TEST(Simulator, TwoAtOnceAreIndependent) {
    projection p(r, 8, 1, 200, 200, 0, false), q(r, 8, 2, 200, 200, 1, true);
    p.pack();
    q.pack();
    tile_job j(p), k(q);
    j.stride = j.row_bytes();
    k.stride = k.row_bytes();
    rgu_sim a(library(), noise(r)), b(library(), noise(r) + "&stall=20");
    a.load(p);
    b.load(q);
    expect(run_to_memory(a, p, j, 0));
    expect(run_to_memory(b, q, k, 0));
    expect(run_to_memory(a, p, j, 3));
}

TEST(Simulator, RefusesWhatItDoesNotKnow) {
    static const char *const bad[] = {
        "stal=3",      "stall=96", "stall=-1",    "latency=0",
        "xinit=noise", "seed=",    "bandwidth=x", "trace=",
        "=3",          "memory=0", "seed=1&&a=2", "trace=/nonexistent-folder/x.fst"};
    for (const char *options : bad) {
        mr_sim *sim = nullptr;
        char err[256] = "";
        CHECK(library().ops->open(options, &sim, err, sizeof err) != MR_SIM_OK);
        CHECK(err[0] != 0);
        POINTERS_EQUAL(nullptr, sim);
    }
    POINTERS_EQUAL(nullptr, ((const mr_sim_ops *(*)(uint32_t))dlsym(library().handle,
                                                                    MR_SIM_ENTRY))(MR_SIM_ABI + 1));
}

TEST(Simulator, MemoryKeepsItsBounds) {
    rgu_sim s(library(), "memory=1");
    uint64_t a = 0, b = 0, c = 0;
    uint8_t byte = 1;
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_alloc(s.sim, 100, 0, &a));
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_alloc(s.sim, 100, 256, &b));
    LONGS_EQUAL(MR_SIM_EINVAL, s.ops.mem_alloc(s.sim, 0, 0, &c));
    LONGS_EQUAL(MR_SIM_EINVAL, s.ops.mem_alloc(s.sim, 1, 48, &c));
    LONGS_EQUAL(MR_SIM_ENOMEM, s.ops.mem_alloc(s.sim, 2 << 20, 0, &c));
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_write(s.sim, a + 99, &byte, 1));
    LONGS_EQUAL(MR_SIM_ERANGE, s.ops.mem_write(s.sim, a + 100, &byte, 1));
    LONGS_EQUAL(MR_SIM_ERANGE, s.ops.mem_read(s.sim, 0, &byte, 1));
    LONGS_EQUAL(MR_SIM_ERANGE, s.ops.mem_read(s.sim, UINT64_MAX - 3, &byte, 8));
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_free(s.sim, a));
    LONGS_EQUAL(MR_SIM_ERANGE, s.ops.mem_free(s.sim, a));
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_alloc(s.sim, 64, 0, &a));
    byte = 7;
    LONGS_EQUAL(MR_SIM_OK, s.ops.mem_read(s.sim, a, &byte, 1));
    LONGS_EQUAL(0, byte);
    LONGS_EQUAL(MR_SIM_EINVAL, s.ops.reg_write(s.sim, 2, 0));
    LONGS_EQUAL(MR_SIM_EINVAL, s.ops.reg_write(s.sim, 4096, 0));
}

TEST(Simulator, RunsOutOfCyclesAndGoesOn) {
    projection p(r, 8, 1, 256, 256, 0, false);
    p.pack();
    rgu_sim s(library(), noise(r));
    s.load(p);
    tile_job j(p);
    j.stride = j.row_bytes();
    uint64_t at = 0, ran = 0;
    s.ok(s.ops.mem_alloc(s.sim, j.bytes(), 64, &at));
    s.registers(p, j, at);
    s.reg(MR_RGU_GIE, 1);
    s.reg(MR_RGU_IER, 1);
    s.reg(MR_RGU_CTRL, 1);
    LONGS_EQUAL(MR_SIM_TIMEOUT, s.ops.run(s.sim, 100, &ran));
    LONGS_EQUAL(100, ran);
    LONGS_EQUAL(MR_SIM_OK, s.ops.run(s.sim, 100000, &ran));
    expect(s.problem);
}

int main(int argc, char **argv) {
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
