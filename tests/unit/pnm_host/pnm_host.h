/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the near-memory unit's host side share. */
#ifndef TESTS_UNIT_PNM_HOST_H
#define TESTS_UNIT_PNM_HOST_H

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include "host/pnm/exec.h"
#include "host/pnm/gemv.h"
}

#include <CppUTest/TestHarness.h>

std::mt19937_64 pnm_rng(const char *test);

#define CHECK_GOOD(call)                                                                           \
    do {                                                                                           \
        mr_status status_ = (call);                                                                \
        if (status_ != MR_OK)                                                                      \
            FAIL((std::string(mr_status_name(status_)) + ": " + mr_last_error()).c_str());         \
    } while (0)

/* A failure of this status whose message has the words. */
#define CHECK_BAD(expected, words, call)                                                           \
    do {                                                                                           \
        mr_status status_ = (call);                                                                \
        STRCMP_EQUAL(mr_status_name(expected), mr_status_name(status_));                           \
        STRCMP_CONTAINS(words, mr_last_error());                                                   \
    } while (0)

inline float bf16_of(float v) { /* nearest even, written anew */
    uint32_t u;
    std::memcpy(&u, &v, 4);
    uint32_t low = u & 0xFFFF, up = u >> 16;
    up += low > 0x8000 || (low == 0x8000 && (up & 1));
    u = up << 16;
    std::memcpy(&v, &u, 4);
    return v;
}

#endif
