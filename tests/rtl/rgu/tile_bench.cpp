// Rates of tile generation to memory: weights a cycle from start to done (expansion included), and
// how fast the simulator is. Every output is compared with the golden model first.
#include "tests/rtl/rgu/rgu_sim.hpp"

#include <ctime>

struct row {
    const char *what;
    int n, terms;
    size_t rows, cols;
    int parity, format;
    const char *options;
    double bound; // weights a cycle the memory allows; the share of it is shown
    double least; // required, 0: none
};

static const row rows[] = {
    {"bf16", 8, 1, 2048, 2048, 0, MR_FMT_BF16, "", 32, 30.4},
    {"bf16", 10, 1, 2048, 2048, 0, MR_FMT_BF16, "", 32, 30.4},
    {"bf16, odd", 10, 1, 2048, 2048, 1, MR_FMT_BF16, "", 32, 30.4},
    {"bf16", 8, 1, 512, 512, 0, MR_FMT_BF16, "", 32, 28.8},
    {"fp8", 8, 1, 2048, 2048, 0, MR_FMT_FP8E4M3, "", 64, 60.8},
    {"fp8", 10, 1, 2048, 2048, 0, MR_FMT_FP8E4M3, "", 64, 60.8},
    {"bf16, 4 terms", 8, 4, 1024, 1024, 0, MR_FMT_BF16, "", 32, 0},
    {"bf16, 8 terms", 8, 8, 1024, 1024, 0, MR_FMT_BF16, "", 16, 0},
    {"bf16, 2+2 terms", 8, 4, 1024, 1024, 2, MR_FMT_BF16, "", 32, 0},
    {"bf16, W stalled 30 %", 8, 1, 1024, 1024, 0, MR_FMT_BF16, "stall_w=30&seed=5", 32 * 0.70, 0},
    {"bf16, all stalled 30 %", 8, 1, 1024, 1024, 0, MR_FMT_BF16, "stall=30&seed=5", 32 * 0.70, 0},
    {"bf16, W stalled 60 %", 10, 1, 1024, 1024, 0, MR_FMT_BF16, "stall_w=60&seed=6", 32 * 0.40, 0},
    {"bf16, 32 bytes a cycle", 8, 1, 1024, 1024, 0, MR_FMT_BF16, "bandwidth=32", 16, 0},
};

// CPU time: other programs on the machine do not count.
static double seconds() {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool run(const sim_library &lib, const row &k) {
    rng r(12345);
    projection p(r, k.n, k.terms, k.rows, k.cols, k.parity == 2 ? 0 : k.parity, false);
    if (k.parity == 2) // as many odd terms as even ones
        for (size_t i = p.odd.size() / 2; i < p.odd.size(); i++)
            p.odd[i] = 1;
    p.pack();
    tile_job j(p);
    j.format = k.format;
    j.stride = j.row_bytes();
    rgu_sim s(lib, k.options);
    s.load(p);
    uint64_t at = 0;
    s.ok(s.ops.mem_alloc(s.sim, j.bytes(), 64, &at));
    s.registers(p, j, at);
    double t = seconds();
    s.go(100000000);
    t = seconds() - t;
    std::vector<uint8_t> got(j.bytes()), want(j.bytes());
    s.ok(s.ops.mem_read(s.sim, at, got.data(), got.size()));
    mr_sim_stats st;
    s.ops.stats(s.sim, &st, 0);
    mr_golden_job g = golden_job(p, j);
    bool right = s.problem.empty() && !s.counters.error &&
                 !mr_golden_tile(&g, want.data(), j.stride) && got == want;
    // what the write channel let through in this very run, whatever its random stalls were
    double weights = (double)k.rows * (double)k.cols, rate = weights / (double)s.counters.cycles;
    bool enough = rate >= k.least;
    printf("%-24s n %2d %2d terms %4zux%-4zu %8llu cycles %6.2f weights/cycle %5.1f %% of %4.1f  "
           "burst "
           "%.2f  %4.0f kcycle/s %5.1f Mweight/s%s%s\n",
           k.what, k.n, k.terms, k.rows, k.cols, (unsigned long long)s.counters.cycles, rate,
           100.0 * rate / k.bound, k.bound, (double)st.w_beats / (double)st.aw_bursts,
           (double)s.counters.cycles / t / 1e3, weights / t / 1e6, right ? "" : "  WRONG",
           enough ? "" : "  BELOW ITS BOUND");
    if (!s.problem.empty())
        printf("  %s\n", s.problem.c_str());
    return right && enough;
}

int main(int argc, char **argv) {
    sim_library lib(argc > 1 ? argv[1] : MR_SIM_RGU_PATH);
    bool good = true;
    printf(
        "RGU tile generation to a 512-bit AXI port, start to done; simulator speed in CPU time\n");
    for (const row &k : rows)
        good = run(lib, k) && good;
    return good ? 0 : 1;
}
