// Seeds for the tests of the golden model, and its error against the oracle in units of the bounds.
#ifndef TESTS_UNIT_GOLDEN_SUPPORT_HPP
#define TESTS_UNIT_GOLDEN_SUPPORT_HPP

#include <cstdint>
#include <random>
#include <vector>

#include "models/golden/rgu.h"
#include "tests/unit/golden/oracle.hpp"

extern unsigned long seed_value;

enum class Parity { even, odd, mixed };

// A projection as a seed file has it.
struct Projection {
    int n, terms;
    size_t d_out, d_in;
    std::vector<int16_t> angles;
    std::vector<float> gain, row_scale;
    std::vector<uint8_t> odd;

    size_t d() const { return (size_t)1 << n; }
    size_t rows() const { return (d_out + d() - 1) / d(); } // of chunks
    size_t cols() const { return (d_in + d() - 1) / d(); }
    size_t planes() const { return (size_t)n * ((size_t)n - 1) / 2; }
    size_t at(size_t t, size_t o, size_t i) const { return (t * rows() + o) * cols() + i; }
    mr_seed seed() const;
    std::vector<uint8_t> image() const;
};

struct Maker {
    std::mt19937_64 rng{seed_value};

    double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(rng); }
    double normal() { return std::normal_distribution<double>()(rng); }
    // Random angles and gains; mixed parities come in turn, so that both are there from two terms
    // on.
    Projection make(int n, int terms, Parity parity, size_t d_out = 0, size_t d_in = 0);
};

// Chunk (o,i) before the row scale.
oracle::Matrix define(const Projection &p, size_t o, size_t i,
                      oracle::Wrong wrong = oracle::Wrong::none);

// A window as the golden model makes it, one code an element.
std::vector<uint32_t> tile(const Projection &p, int format, size_t row0, size_t row1, size_t col0,
                           size_t col1, float scale = 1.0f, int sat = 0);
std::vector<uint32_t> tile(const Projection &p, int format, float scale = 1.0f, int sat = 0);

// Worst error over bound: of a weight, and of a chunk in Frobenius norm.
struct Error {
    double weight = 0, chunk = 0;
    bool within() const { return weight <= 1 && chunk <= 1; }
};

// Every weight of every whole chunk of p in bf16 against the definition; the second takes the
// codes.
Error measure(const Projection &p, oracle::Wrong wrong = oracle::Wrong::none);
Error measure_against(const Projection &p, const std::vector<uint32_t> &codes,
                      oracle::Wrong wrong = oracle::Wrong::none);

#endif
