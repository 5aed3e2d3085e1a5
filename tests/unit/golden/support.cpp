#include "tests/unit/golden/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "CppUTest/TestHarness.h"

mr_seed Projection::seed() const {
    mr_seed s{};
    s.n = n, s.terms = terms, s.d_out = d_out, s.d_in = d_in;
    s.angles = angles.data(), s.gain = gain.data(), s.odd = odd.data();
    s.row_scale = row_scale.empty() ? nullptr : row_scale.data();
    return s;
}

std::vector<uint8_t> Projection::image() const {
    mr_seed s = seed();
    POINTERS_EQUAL(nullptr, mr_seed_check(&s));
    std::vector<uint8_t> out(mr_rgu_image_bytes(&s));
    mr_rgu_pack(&s, out.data());
    return out;
}

Projection Maker::make(int n, int terms, Parity parity, size_t d_out, size_t d_in) {
    Projection p{n, terms, d_out, d_in, {}, {}, {}, {}};
    if (!d_out)
        p.d_out = p.d_in = p.d();
    size_t records = (size_t)terms * p.rows() * p.cols();
    for (size_t k = 0; k < records * 2 * p.planes(); k++)
        p.angles.push_back((int16_t)(uint16_t)rng());
    for (size_t k = 0; k < records; k++) {
        size_t turn = k / (p.rows() * p.cols());
        p.gain.push_back((float)normal());
        p.odd.push_back(parity == Parity::mixed ? turn & 1 : parity == Parity::odd);
    }
    return p;
}

oracle::Matrix define(const Projection &p, size_t o, size_t i, oracle::Wrong wrong) {
    oracle::Matrix w(p.d() * p.d(), 0.0);
    size_t side = p.planes(), both = 2 * side;
    auto same = [&](size_t a, size_t b) {
        return p.odd[a] == p.odd[b] &&
               std::equal(&p.angles[a * both], &p.angles[a * both] + both, &p.angles[b * both]);
    };
    std::vector<double> gain((size_t)p.terms);
    for (size_t t = 0; t < gain.size(); t++) { // terms of the same rotors count once
        size_t first = 0;
        while (!same(p.at(first, o, i), p.at(t, o, i)))
            first++;
        gain[first] += p.gain[p.at(t, o, i)];
    }
    for (size_t t = 0; t < gain.size(); t++) {
        size_t at = p.at(t, o, i);
        std::vector<long double> theta(both);
        for (size_t k = 0; k < both; k++)
            theta[k] = p.angles[at * both + k] * (acosl(-1) / 32768);
        if (gain[t] != 0)
            oracle::add_term(p.n, &theta[0], &theta[side], gain[t], p.odd[at], w, wrong);
    }
    return w;
}

std::vector<uint32_t> tile(const Projection &p, int format, size_t row0, size_t row1, size_t col0,
                           size_t col1, float scale, int sat) {
    auto image = p.image();
    mr_golden_job job{};
    job.n = p.n, job.terms = p.terms, job.d_out = p.d_out, job.d_in = p.d_in;
    job.image = image.data(), job.scale = scale, job.format = format, job.sat = sat;
    job.row_scale = p.row_scale.empty() ? nullptr : p.row_scale.data();
    job.row0 = row0, job.row1 = row1, job.col0 = col0, job.col1 = col1;
    size_t bytes = mr_format_bytes(format), cols = col1 - col0, stride = cols * bytes + 5;
    std::vector<uint8_t> raw((row1 - row0) * stride, 0xA5);
    LONGS_EQUAL(0, mr_golden_tile(&job, raw.data(), stride));
    std::vector<uint32_t> out;
    for (size_t r = 0; r < row1 - row0; r++) {
        for (size_t c = 0; c < cols; c++) {
            uint32_t code = 0;
            std::memcpy(&code, &raw[r * stride + c * bytes], bytes);
            out.push_back(code);
        }
        for (size_t k = cols * bytes; k < stride; k++)
            BYTES_EQUAL(0xA5, raw[r * stride + k]); // what lies between the rows is left alone
    }
    return out;
}

std::vector<uint32_t> tile(const Projection &p, int format, float scale, int sat) {
    return tile(p, format, 0, p.d_out, 0, p.d_in, scale, sat);
}

static double bf16(uint32_t code) {
    uint32_t bits = code << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return (double)f;
}

// Error over bound; no error needs no bound, and NaN is the worst there is.
static double ratio(double error, double bound) {
    if (error == 0)
        return 0;
    return error <= bound * 1e9 ? error / bound : INFINITY;
}

static void measure_chunk(const Projection &p, size_t o, size_t i, oracle::Wrong wrong,
                          const std::vector<uint32_t> &codes, Error &worst) {
    size_t d = p.d();
    auto w = define(p, o, i, wrong);
    double square = 0, gains = 0, error = 0, rounded = 0, scales = 0;
    bool parity_there[2] = {false, false};
    for (double v : w)
        square += v * v;
    for (size_t t = 0; t < (size_t)p.terms; t++) {
        gains += (double)p.gain[p.at(t, o, i)] * p.gain[p.at(t, o, i)];
        parity_there[p.odd[p.at(t, o, i)]] = true;
    }
    double dd = (double)d, sigma = std::sqrt(std::fmax(square / (dd * dd), gains / dd));
    for (size_t r = 0; r < d; r++) {
        double rho = p.row_scale.empty() ? 1.0 : (double)p.row_scale[o * d + r];
        scales += rho * rho;
        for (size_t c = 0; c < d; c++) {
            uint32_t code = codes[(o * d + r) * p.d_in + i * d + c];
            double want = w[r * d + c] * rho, e = bf16(code) - want;
            double nearest = oracle::nearest_bf16(want) - want;
            worst.weight =
                std::fmax(worst.weight, ratio(std::fabs(e), std::fabs(want) / 256 +
                                                                sigma * std::fabs(rho) / 2048));
            error += e * e, rounded += nearest * nearest;
            if (!parity_there[__builtin_popcountll(r ^ c) % 2] && wrong == oracle::Wrong::none)
                UNSIGNED_LONGS_EQUAL(0, code); // a structural zero is +0
        }
    }
    double bound = std::fmax(0.0020 * sigma * std::sqrt(dd * scales), 1.05 * std::sqrt(rounded));
    worst.chunk = std::fmax(worst.chunk, ratio(std::sqrt(error), bound));
}

Error measure_against(const Projection &p, const std::vector<uint32_t> &codes,
                      oracle::Wrong wrong) {
    Error worst;
    for (size_t o = 0; o < p.d_out / p.d(); o++)
        for (size_t i = 0; i < p.d_in / p.d(); i++)
            measure_chunk(p, o, i, wrong, codes, worst);
    return worst;
}

Error measure(const Projection &p, oracle::Wrong wrong) {
    return measure_against(p, tile(p, MR_FMT_BF16), wrong);
}
