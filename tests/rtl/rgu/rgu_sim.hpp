// Tile jobs on the simulated RGU, for tests and benches: random projections, the registers of a
// job, and the golden model's answer to compare with.
#ifndef TESTS_RTL_RGU_RGU_SIM_HPP
#define TESTS_RTL_RGU_RGU_SIM_HPP

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

#include "host/include/millrace/rgu_regs.h"
#include "models/golden/rgu.h"
#include "sim/sim.h"

// splitmix64
struct rng {
    uint64_t s;
    explicit rng(uint64_t seed) : s(seed) {}
    uint64_t next() {
        uint64_t z = (s += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t n) { return next() % n; }
    size_t range(size_t lo, size_t hi) { return lo + (size_t)below(hi - lo + 1); }
    bool percent(unsigned p) { return below(100) < p; }
    float gain() {
        float f = std::ldexp((float)(0x800000 + below(0x800000)), -24 - (int)below(6));
        return percent(50) ? -f : f;
    }
};

// A projection and its image.
struct projection {
    int n, terms;
    size_t d_out, d_in, chunks_out, chunks_in;
    std::vector<int16_t> angles;
    std::vector<float> gain, row_scale;
    std::vector<uint8_t> odd, image;

    // parity: 0 even, 1 odd, 2 mixed
    projection(rng &r, int n_, int terms_, size_t d_out_, size_t d_in_, int parity, bool scaled)
        : n(n_), terms(terms_), d_out(d_out_), d_in(d_in_) {
        size_t d = (size_t)1 << n;
        chunks_out = (d_out + d - 1) / d;
        chunks_in = (d_in + d - 1) / d;
        size_t records = (size_t)terms * chunks_out * chunks_in;
        angles.resize(records * 2 * (size_t)mr_rgu_planes(n));
        for (auto &a : angles)
            a = (int16_t)r.next();
        if (r.percent(30)) // the trap value, and exact quarter turns
            for (auto &a : angles)
                if (r.percent(5))
                    a = (int16_t)(-32768 + (int)(16384 * r.below(4)));
        gain.resize(records);
        odd.resize(records);
        for (size_t i = 0; i < records; i++) {
            gain[i] = r.percent(10) ? 0.0f : r.gain();
            odd[i] = parity == 2 ? (uint8_t)r.below(2) : (uint8_t)parity;
        }
        if (scaled) {
            row_scale.resize(d_out);
            for (auto &s : row_scale)
                s = r.percent(5) ? 0.0f : r.gain() * 8.0f;
        }
    }
    mr_seed seed() const {
        mr_seed s{};
        s.n = n;
        s.terms = terms;
        s.d_out = d_out;
        s.d_in = d_in;
        s.angles = angles.data();
        s.gain = gain.data();
        s.odd = odd.data();
        s.row_scale = row_scale.empty() ? nullptr : row_scale.data();
        return s;
    }
    void pack() {
        mr_seed s = seed();
        image.resize(mr_rgu_image_bytes(&s));
        mr_rgu_pack(&s, image.data());
    }
    bool has_odd() const { return memchr(odd.data(), 1, odd.size()) != nullptr; }
    bool has_even() const { return memchr(odd.data(), 0, odd.size()) != nullptr; }
};

struct tile_job {
    size_t row0 = 0, row1, col0 = 0, col1;
    int format = MR_FMT_BF16, sat = 0;
    float scale = 1.0f;
    size_t stride = 0; // bytes between rows
    bool stream = false;
    explicit tile_job(const projection &p) : row1(p.d_out), col1(p.d_in) {}
    size_t row_bytes() const { return (col1 - col0) * mr_format_bytes(format); }
    size_t bytes() const { return (row1 - row0 - 1) * stride + row_bytes(); }
};

struct job_counters {
    uint64_t cycles, busy, stall_in, stall_out, items_in, items_out, mults;
    uint32_t error;
};

struct sim_library {
    void *handle;
    const mr_sim_ops *ops;
    explicit sim_library(const char *path) {
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
        auto entry = (const mr_sim_ops *(*)(uint32_t))dlsym(handle, MR_SIM_ENTRY);
        ops = entry ? entry(MR_SIM_ABI) : nullptr;
        if (!ops) {
            fprintf(stderr, "%s speaks another ABI\n", path);
            exit(2);
        }
    }
};

// One simulator with a projection loaded. Every failure is a text in `problem`.
class rgu_sim {
public:
    const mr_sim_ops &ops;
    mr_sim *sim = nullptr;
    std::string problem;
    uint64_t image = 0, scales = 0, dst = 0;
    job_counters counters{};

    rgu_sim(const sim_library &lib, const std::string &options) : ops(*lib.ops) {
        char err[256] = "";
        if (ops.open(options.c_str(), &sim, err, sizeof err))
            problem = err;
    }
    ~rgu_sim() { ops.close(sim); }
    rgu_sim(const rgu_sim &) = delete;
    rgu_sim &operator=(const rgu_sim &) = delete;

    bool ok(int rc) {
        if (rc && problem.empty())
            problem = ops.error(sim);
        return rc == 0;
    }
    void load(const projection &p) {
        if (!sim) // refused: the reason is in `problem`
            return;
        ok(ops.mem_alloc(sim, p.image.size(), 64, &image));
        ok(ops.mem_write(sim, image, p.image.data(), p.image.size()));
        scales = 0;
        if (!p.row_scale.empty()) {
            std::vector<float> padded(p.chunks_out << p.n, 1.0f);
            memcpy(padded.data(), p.row_scale.data(), p.row_scale.size() * sizeof(float));
            ok(ops.mem_alloc(sim, padded.size() * 4, 64, &scales));
            ok(ops.mem_write(sim, scales, padded.data(), padded.size() * 4));
        }
    }
    void unload() {
        ops.mem_free(sim, image);
        if (scales)
            ops.mem_free(sim, scales);
    }
    void reg(uint32_t offset, uint64_t value, bool wide = false) {
        ok(ops.reg_write(sim, offset, (uint32_t)value));
        if (wide)
            ok(ops.reg_write(sim, offset + 4, (uint32_t)(value >> 32)));
    }
    uint64_t read(uint32_t offset, bool wide = false) {
        uint32_t lo = 0, hi = 0;
        ok(ops.reg_read(sim, offset, &lo));
        if (wide)
            ok(ops.reg_read(sim, offset + 4, &hi));
        return lo | (uint64_t)hi << 32;
    }
    void registers(const projection &p, const tile_job &j, uint64_t to) {
        reg(MR_RGU_SEEDS, image, true);
        reg(MR_RGU_ROW_SCALE, scales, true);
        reg(MR_RGU_DST, to, true);
        reg(MR_RGU_DST_STRIDE, j.stride);
        reg(MR_RGU_MODE, (uint32_t)(p.row_scale.empty() ? 0 : 1) << 1 | (uint32_t)j.stream << 2 |
                             (uint32_t)j.sat << 3 | (uint32_t)j.format << 4 | (uint32_t)p.n << 8 |
                             (uint32_t)p.terms << 16 | (uint32_t)p.has_odd() << 22 |
                             (uint32_t)p.has_even() << 23);
        reg(MR_RGU_CHUNKS, p.chunks_in | p.chunks_out << 16);
        reg(MR_RGU_ROW0, j.row0);
        reg(MR_RGU_ROW1, j.row1);
        reg(MR_RGU_COL0, j.col0);
        reg(MR_RGU_COL1, j.col1);
        uint32_t bits;
        memcpy(&bits, &j.scale, 4);
        reg(MR_RGU_SCALE, bits);
    }
    // Starts the job in the registers and waits for its interrupt.
    void go(uint64_t limit) {
        reg(MR_RGU_GIE, 1);
        reg(MR_RGU_IER, 1);
        reg(MR_RGU_CTRL, 1);
        ok(ops.run(sim, limit, nullptr));
        reg(MR_RGU_ISR, 1);
        counters.cycles = read(MR_RGU_CYCLES, true);
        counters.busy = read(MR_RGU_BUSY, true);
        counters.stall_in = read(MR_RGU_STALL_IN, true);
        counters.stall_out = read(MR_RGU_STALL_OUT, true);
        counters.items_in = read(MR_RGU_ITEMS_IN, true);
        counters.items_out = read(MR_RGU_ITEMS_OUT, true);
        counters.mults = read(MR_RGU_MULTS_BUSY, true);
        counters.error = (uint32_t)read(MR_RGU_ERROR);
    }
};

inline mr_golden_job golden_job(const projection &p, const tile_job &j) {
    mr_golden_job g{};
    g.n = p.n;
    g.terms = p.terms;
    g.d_out = p.d_out;
    g.d_in = p.d_in;
    g.image = p.image.data();
    g.row_scale = p.row_scale.empty() ? nullptr : p.row_scale.data();
    g.scale = j.scale;
    g.row0 = j.row0;
    g.row1 = j.row1;
    g.col0 = j.col0;
    g.col1 = j.col1;
    g.format = j.format;
    g.sat = j.sat;
    return g;
}

#endif
