/* Random numbers that a printed seed reproduces. */
#ifndef TESTS_UNIT_KV_SUPPORT_H
#define TESTS_UNIT_KV_SUPPORT_H

#include <cstdint>
#include <random>

/* Of MR_SEED or of the clock; printed at the start. */
extern uint64_t test_seed;
inline std::mt19937_64 test_rng(uint64_t test) {
    return std::mt19937_64(test_seed * 1000003 + test);
}

#endif
