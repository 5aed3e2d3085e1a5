// Random numbers that a seed reproduces.
#ifndef MR_TESTS_RTL_COMMON_RNG_HPP
#define MR_TESTS_RTL_COMMON_RNG_HPP

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

// splitmix64
class Rng {
public:
    explicit Rng(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
    }
    uint64_t below(uint64_t n) { return next() % n; }
    bool percent(unsigned p) { return below(100) < p; }

private:
    uint64_t state_;
};

// The run's seed: MR_SEED, or a fresh one, printed once.
inline uint64_t run_seed() {
    static const uint64_t seed = [] {
        const char *text = getenv("MR_SEED");
        const uint64_t value = text ? strtoull(text, nullptr, 0) : std::random_device{}();
        printf("seed %llu (MR_SEED=%llu reproduces)\n", (unsigned long long)value,
               (unsigned long long)value);
        return value;
    }();
    return seed;
}

#endif
