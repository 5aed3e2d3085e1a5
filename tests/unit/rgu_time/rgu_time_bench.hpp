/* SPDX-License-Identifier: Apache-2.0 */
// Jobs for the RGU's timing model and for the simulated unit: one description for both.
#ifndef TESTS_UNIT_RGU_TIME_RGU_TIME_BENCH_HPP
#define TESTS_UNIT_RGU_TIME_RGU_TIME_BENCH_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "host/include/millrace/rgu_regs.h"
#include "models/cycle/rgu.h"
#include "sim/sim.h"

struct Counters {
    uint64_t cycles, items_in, items_out, mults;
    uint32_t error;
    double seconds;
};

// The memory options are the unit's; nothing is stalled.
inline std::string options_of(const mr_rgu_unit &u) {
    std::ostringstream o;
    o << "latency=" << u.read_latency << "&wlatency=" << u.write_latency
      << "&bandwidth=" << u.port_bytes << "&memory=1024";
    return o.str();
}

struct Job {
    mr_rgu_descriptor d{};
    int format = 0;
    std::vector<uint8_t> odd;

    uint32_t chunks_in() const { return (d.d_in + (1u << d.n) - 1) >> d.n; }
    uint32_t chunks_out() const { return (d.d_out + (1u << d.n) - 1) >> d.n; }
    std::string text() const {
        std::ostringstream o;
        o << (d.apply ? "apply" : "tile") << " n=" << d.n << " terms=" << d.terms << " " << d.d_out
          << "x" << d.d_in << " odd=" << d.has_odd << " even=" << d.has_even;
        if (d.apply)
            o << " batch=" << d.batch << " src+" << d.src << "/" << d.src_stride;
        else
            o << " rows " << d.row0 << ":" << d.row1 << " cols " << d.col0 << ":" << d.col1
              << " format=" << format;
        o << " dst+" << d.dst << "/" << d.dst_stride << " seeds+" << d.seeds
          << " scale=" << d.row_scale << "+" << d.scales;
        return o.str();
    }
};

class Unit {
public:
    std::string problem;

    Unit(const char *library, const mr_rgu_unit &u) : Unit(library, options_of(u)) {}
    Unit(const char *library, const std::string &options) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        auto entry =
            handle ? (const mr_sim_ops *(*)(uint32_t))dlsym(handle, MR_SIM_ENTRY) : nullptr;
        ops_ = entry ? entry(MR_SIM_ABI) : nullptr;
        char err[256] = "";
        if (!ops_)
            problem = handle ? "another interface" : dlerror();
        else if (ops_->open(options.c_str(), &sim_, err, sizeof err))
            problem = err;
    }
    ~Unit() {
        if (ops_)
            ops_->close(sim_);
    }
    Unit(const Unit &) = delete;
    Unit &operator=(const Unit &) = delete;

    void reset() { ok(ops_->reset(sim_)); }

    // Runs the job on random angles; its addresses lie modulo 4096 where the description says.
    Counters run(const Job &j, std::mt19937_64 &rng) {
        const mr_rgu_descriptor &d = j.d;
        size_t record = (8 + 2 * (size_t)d.n * (d.n - 1) + 63) / 64 * 64;
        std::vector<uint8_t> image((size_t)j.chunks_in() * j.chunks_out() * d.terms * record);
        for (auto &b : image)
            b = (uint8_t)rng();
        for (size_t c = 0, r = 0; c < (size_t)j.chunks_in() * j.chunks_out(); c++) {
            uint32_t odd = j.odd.empty() ? (d.has_odd ? d.terms : 0) : j.odd[c];
            for (uint32_t t = 0; t < d.terms; t++, r++) {
                uint32_t head[2] = {0x100000u | (uint32_t)(t < odd) << 30, 0};
                memcpy(&image[r * record], head, sizeof head);
            }
        }
        uint64_t seeds = place(image.size() + d.seeds, image.data(), image.size(), d.seeds);
        std::vector<float> scales((size_t)j.chunks_out() << d.n, 1.5f);
        uint64_t rows =
            place(scales.size() * 4 + d.scales, scales.data(), scales.size() * 4, d.scales);
        uint64_t dst_bytes =
            d.apply ? (uint64_t)d.batch * d.dst_stride : (uint64_t)(d.row1 - d.row0) * d.dst_stride;
        uint64_t dst = place(dst_bytes + d.dst + 4096, nullptr, 0, d.dst), src = 0;
        if (d.apply) {
            std::vector<float> x((size_t)d.batch * d.src_stride / 4);
            for (auto &v : x)
                v = (float)(int)(rng() % 2001) - 1000;
            src = place(x.size() * 4 + d.src, x.data(), x.size() * 4, d.src);
        }
        uint32_t one;
        float f = 1.0f;
        memcpy(&one, &f, 4);
        wide(MR_RGU_SEEDS, seeds);
        wide(MR_RGU_ROW_SCALE, rows);
        wide(MR_RGU_DST, dst);
        wide(MR_RGU_SRC, src);
        reg(MR_RGU_DST_STRIDE, d.dst_stride);
        reg(MR_RGU_SRC_STRIDE, d.src_stride);
        reg(MR_RGU_MODE, (d.apply ? 1u : 0) | (d.row_scale ? 2u : 0) | (uint32_t)j.format << 4 |
                             d.n << 8 | d.terms << 16 | (d.has_odd ? 1u << 22 : 0) |
                             (d.has_even ? 1u << 23 : 0));
        reg(MR_RGU_CHUNKS, j.chunks_in() | j.chunks_out() << 16);
        reg(MR_RGU_ROW0, d.row0);
        reg(MR_RGU_ROW1, d.row1);
        reg(MR_RGU_COL0, d.col0);
        reg(MR_RGU_COL1, d.col1);
        reg(MR_RGU_SCALE, one);
        reg(MR_RGU_BATCH, d.apply ? d.batch : 1);
        reg(MR_RGU_D_IN, d.d_in);
        reg(MR_RGU_D_OUT, d.d_out);
        reg(MR_RGU_GIE, 1);
        reg(MR_RGU_IER, 1);
        auto begin = std::chrono::steady_clock::now();
        reg(MR_RGU_CTRL, 1);
        ok(ops_->run(sim_, 1000000000, nullptr));
        Counters c{};
        c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        reg(MR_RGU_ISR, 1);
        read(MR_RGU_CTRL);
        c.cycles = read64(MR_RGU_CYCLES);
        c.items_in = read64(MR_RGU_ITEMS_IN);
        c.items_out = read64(MR_RGU_ITEMS_OUT);
        c.mults = read64(MR_RGU_MULTS_BUSY);
        c.error = read(MR_RGU_ERROR);
        if (c.error && problem.empty())
            problem = "error register " + std::to_string(c.error);
        for (uint64_t a : live_)
            ops_->mem_free(sim_, a);
        live_.clear();
        return c;
    }

private:
    const mr_sim_ops *ops_ = nullptr;
    mr_sim *sim_ = nullptr;
    std::vector<uint64_t> live_;

    void ok(int rc) {
        if (rc && problem.empty())
            problem = ops_->error(sim_);
    }
    uint64_t place(size_t bytes, const void *data, size_t count, uint64_t offset) {
        uint64_t at = 0;
        ok(ops_->mem_alloc(sim_, bytes, 4096, &at));
        live_.push_back(at);
        if (count)
            ok(ops_->mem_write(sim_, at + offset, data, count));
        return at + offset;
    }
    void reg(uint32_t offset, uint32_t value) { ok(ops_->reg_write(sim_, offset, value)); }
    void wide(uint32_t offset, uint64_t value) {
        reg(offset, (uint32_t)value);
        reg(offset + 4, (uint32_t)(value >> 32));
    }
    uint32_t read(uint32_t offset) {
        uint32_t v = 0;
        ok(ops_->reg_read(sim_, offset, &v));
        return v;
    }
    uint64_t read64(uint32_t offset) {
        uint64_t low = read(offset);
        return low | (uint64_t)read(offset + 4) << 32;
    }
};

inline uint64_t pick(std::mt19937_64 &rng, uint64_t least, uint64_t most) {
    return least + rng() % (most - least + 1);
}

// A projection of at most `chunks` chunks.
inline Job random_shape(std::mt19937_64 &rng, uint32_t n, uint32_t chunks, uint32_t terms) {
    Job j;
    mr_rgu_descriptor &d = j.d;
    uint32_t edge = 1u << n, in = (uint32_t)pick(rng, 1, chunks), out = chunks / in;
    d.n = n;
    d.terms = (uint32_t)pick(rng, 1, rng() % 3 ? 2 : terms);
    d.d_in = (in - 1) * edge + (uint32_t)pick(rng, 1, edge);
    d.d_out = (out - 1) * edge + (uint32_t)pick(rng, 1, edge);
    if (rng() % 3 == 0) {
        d.d_in = in * edge;
        d.d_out = out * edge;
    }
    uint64_t parity = rng() % 3;
    d.has_odd = parity != 0;
    d.has_even = parity != 1;
    if (parity == 2) {
        j.odd.resize((size_t)in * out);
        for (auto &o : j.odd)
            o = (uint8_t)pick(rng, 0, d.terms);
    }
    d.row_scale = rng() % 2;
    d.seeds = 64 * pick(rng, 0, 63);
    d.scales = 64 * pick(rng, 0, 63);
    return j;
}

inline Job random_tile(std::mt19937_64 &rng, uint32_t n, uint32_t chunks, uint32_t terms) {
    Job j = random_shape(rng, n, chunks, terms);
    mr_rgu_descriptor &d = j.d;
    j.format = (int)pick(rng, 0, 5);
    d.item = j.format < 2 ? 2 : j.format == 5 ? 4 : 1;
    d.row1 = d.d_out;
    d.col1 = d.d_in;
    if (rng() % 2) {
        d.row0 = (uint32_t)pick(rng, 0, d.d_out - 1);
        d.row1 = (uint32_t)pick(rng, d.row0 + 1, d.d_out);
    }
    if (rng() % 2) {
        d.col0 = (uint32_t)pick(rng, 0, d.d_in - 1);
        d.col1 = (uint32_t)pick(rng, d.col0 + 1, d.d_in);
    }
    uint32_t row = (d.col1 - d.col0) * d.item;
    d.dst_stride = row;
    if (rng() % 2)
        d.dst_stride += d.item * (uint32_t)pick(rng, 0, 40);
    if (rng() % 3 == 0) {
        d.dst_stride = (row + 63) / 64 * 64;
        d.dst = 64 * pick(rng, 0, 63);
    } else {
        d.dst = d.item * pick(rng, 0, 4095 / d.item);
    }
    if (!j.odd.empty())
        d.odd = j.odd.data();
    return j;
}

inline Job random_apply(std::mt19937_64 &rng, uint32_t n, uint32_t chunks, uint32_t terms,
                        uint32_t batch) {
    Job j = random_shape(rng, n, chunks, terms);
    mr_rgu_descriptor &d = j.d;
    d.apply = true;
    d.item = 4;
    d.row1 = d.d_out;
    d.col1 = d.d_in;
    d.batch = (uint32_t)pick(rng, 1, batch);
    d.src_stride = 4 * (d.d_in + (rng() % 2 ? 0 : (uint32_t)pick(rng, 0, 40)));
    d.dst_stride = 4 * (d.d_out + (rng() % 2 ? 0 : (uint32_t)pick(rng, 0, 40)));
    d.src = 4 * pick(rng, 0, 1023);
    d.dst = 4 * pick(rng, 0, 1023);
    if (rng() % 3 == 0)
        d.src = d.dst = 0;
    return j;
}

#endif
