/* Shared by the tests of configuration, switch and links. */
#ifndef TESTS_UNIT_NIC_NET_SUPPORT_H
#define TESTS_UNIT_NIC_NET_SUPPORT_H

#include <cstdint>
#include <random>

extern uint64_t test_seed; /* MR_SEED, printed */

inline std::mt19937_64 random_of(uint64_t number) {
    return std::mt19937_64(test_seed * 1000003u + number);
}

#endif
