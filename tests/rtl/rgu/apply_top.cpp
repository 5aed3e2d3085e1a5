// Apply jobs on the whole board wrapper, bit for bit against the golden model, and what they cost.
//   apply_top: random jobs under stalls, then the utilisation the unit promises.
//   apply_top --bench: cycles of apply against generation for batches 1..64.
// The simulator libraries are found beside the program, in ../../../lib/millrace.
#include <algorithm>
#include <ctime>
#include <memory>
#include <unistd.h>

#include "models/golden/rgu_apply.h"
#include "tests/rtl/rgu/rgu_sim.hpp"

namespace {
struct apply_job {
    size_t batch, src_off = 0, dst_off = 0, src_pad = 0, dst_pad = 0;
    int sat = 0;
    float scale = 1.0f;
    std::vector<float> x;
    apply_job(rng &r, const projection &p, size_t batch_) : batch(batch_), x(batch_ * p.d_in) {
        for (size_t b = 0; b < batch; b++) {
            uint64_t kind = r.below(8);
            for (size_t c = 0; c < p.d_in; c++)
                x[b * p.d_in + c] = kind == 0   ? 0.0f
                                    : kind == 1 ? std::ldexp(r.gain(), -120)
                                                : r.gain();
            if (kind == 2)
                x[b * p.d_in + r.below(p.d_in)] = INFINITY;
        }
    }
};

// Runs the job; true when every byte is the golden model's.
bool run(rgu_sim &s, const projection &p, const apply_job &j) {
    size_t src_stride = p.d_in * 4 + j.src_pad, dst_stride = p.d_out * 4 + j.dst_pad;
    size_t src_bytes = j.src_off + j.batch * src_stride,
           dst_bytes = j.dst_off + j.batch * dst_stride;
    std::vector<uint8_t> src(src_bytes, 0x5A), dst(dst_bytes, 0xA5), want = dst;
    for (size_t b = 0; b < j.batch; b++)
        memcpy(&src[j.src_off + b * src_stride], &j.x[b * p.d_in], p.d_in * 4);
    uint64_t at_src = 0, at_dst = 0;
    s.ok(s.ops.mem_alloc(s.sim, src_bytes, 64, &at_src));
    s.ok(s.ops.mem_alloc(s.sim, dst_bytes, 64, &at_dst));
    s.ok(s.ops.mem_write(s.sim, at_src, src.data(), src_bytes));
    s.ok(s.ops.mem_write(s.sim, at_dst, dst.data(), dst_bytes));
    tile_job t(p);
    t.sat = j.sat;
    t.scale = j.scale;
    t.stride = dst_stride;
    s.registers(p, t, at_dst + j.dst_off);
    s.reg(MR_RGU_MODE, s.read(MR_RGU_MODE) | 1u);
    s.reg(MR_RGU_SRC, at_src + j.src_off, true);
    s.reg(MR_RGU_SRC_STRIDE, src_stride);
    s.reg(MR_RGU_BATCH, j.batch);
    s.reg(MR_RGU_D_IN, p.d_in);
    s.reg(MR_RGU_D_OUT, p.d_out);
    s.go(100000000);
    s.ok(s.ops.mem_read(s.sim, at_dst, dst.data(), dst_bytes));
    s.ops.mem_free(s.sim, at_src);
    s.ops.mem_free(s.sim, at_dst);
    mr_golden_job g = golden_job(p, t);
    if (mr_golden_apply(&g, j.batch, &src[j.src_off], src_stride, &want[j.dst_off], dst_stride) !=
        0)
        s.problem = "the golden model refuses the job";
    if (s.counters.error)
        s.problem = "error register " + std::to_string(s.counters.error);
    size_t wrong = 0;
    for (size_t k = 0; k < dst_bytes; k++)
        wrong += dst[k] != want[k];
    if (wrong)
        printf("%zu of %zu bytes differ\n", wrong, dst_bytes);
    return wrong == 0 && s.problem.empty();
}

bool random_job(const sim_library &lib, rng &r) {
    std::string options = "xinit=random&seed=" + std::to_string(1 + r.below(1u << 30));
    if (r.percent(50))
        options +=
            "&stall=" + std::to_string(r.below(60)) + "&latency=" + std::to_string(r.range(1, 60));
    int n = r.percent(70) ? 8 : 10;
    size_t most = n == 8 ? 700 : 1300;
    projection p(r, n, (int)r.range(1, 4), r.range(1, most), r.range(1, most), (int)r.below(3),
                 r.percent(50));
    p.pack();
    apply_job j(r, p, r.range(1, n == 8 ? 40 : 6));
    j.src_off = r.below(64), j.dst_off = r.below(64);
    j.src_pad = r.below(200), j.dst_pad = r.below(200);
    j.sat = (int)r.below(2);
    j.scale = r.gain();
    rgu_sim s(lib, options);
    s.load(p);
    bool good = s.problem.empty() && run(s, p, j) && run(s, p, j);
    if (!good)
        printf("FAIL n %d terms %d %zux%zu batch %zu, %s: %s\n", n, p.terms, p.d_out, p.d_in,
               j.batch, options.c_str(), s.problem.c_str());
    return good;
}

// The share of the multipliers' time that a job uses.
double busy(const sim_library &lib, rng &r, int n, size_t dim, size_t batch, int terms,
            bool &good) {
    projection p(r, n, terms, dim, dim, 2, true);
    p.pack();
    rgu_sim s(lib, "");
    s.load(p);
    good = run(s, p, apply_job(r, p, batch)) && good;
    double share = (double)s.counters.mults / (32.0 * (double)s.counters.cycles);
    printf("n %2d %4zux%-4zu terms %d batch %2zu: %8llu cycles, multipliers busy %.1f %%\n", n, dim,
           dim, terms, batch, (unsigned long long)s.counters.cycles, 100 * share);
    return share;
}

// Apply against generation: the first multiplies, the second only makes the weights.
void compare(const sim_library &lib, rng &r, int n, size_t dim) {
    projection p(r, n, 1, dim, dim, 0, true);
    p.pack();
    rgu_sim s(lib, "");
    s.load(p);
    tile_job t(p);
    t.stride = t.row_bytes();
    uint64_t to = 0;
    s.ok(s.ops.mem_alloc(s.sim, t.bytes(), 64, &to));
    s.registers(p, t, to);
    s.go(100000000);
    s.ops.mem_free(s.sim, to);
    printf("n %2d %zux%zu, generate bf16: %llu cycles\n", n, dim, dim,
           (unsigned long long)s.counters.cycles);
    bool good = true;
    for (size_t batch : {1, 2, 4, 8, 16, 32, 64})
        busy(lib, r, n, dim, batch, 1, good);
}
} // namespace

std::string library(const char *name) {
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    std::string path(self, len > 0 ? (size_t)len : 0);
    return path.substr(0, path.rfind('/')) + "/../../../lib/millrace/" + name;
}

int main(int argc, char **argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    const char *given = getenv("MR_SEED");
    uint64_t seed = given ? strtoull(given, nullptr, 0) : (uint64_t)time(nullptr);
    printf("MR_SEED=%llu\n", (unsigned long long)seed);
    rng r(seed);
    sim_library fast(library("libmr_sim_rgu.so").c_str());
    if (argc > 1 && !strcmp(argv[1], "--bench")) {
        compare(fast, r, 10, 2048);
        compare(fast, r, 8, 512);
        return 0;
    }
    sim_library noisy(library("libmr_sim_rgu_debug.so").c_str());
    int passed = 0, failed = 0;
    for (int k = 0; k < 12; k++)
        ++(random_job(noisy, r) ? passed : failed);
    bool good = true;
    ++(busy(fast, r, 10, 2048, 16, 1, good) >= 0.90 ? passed : failed);
    ++(busy(fast, r, 8, 512, 16, 1, good) >= 0.85 ? passed : failed);
    ++(good ? passed : failed);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
