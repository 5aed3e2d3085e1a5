/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/pnm_host/pnm_host.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <climits>
#include <unistd.h>

#include <CppUTest/CommandLineTestRunner.h>

static uint64_t seed;

std::mt19937_64 pnm_rng(const char *test) {
    uint64_t hash = seed;
    for (; *test; test++)
        hash = hash * 1099511628211u + static_cast<unsigned char>(*test);
    return std::mt19937_64(hash);
}

/* The stand-in unit lies in the folder fake_pnm beside this program. */
int main(int argc, char **argv) {
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    std::string path(self, n > 0 ? static_cast<size_t>(n) : 0);
    setenv("MILLRACE_DRIVERS", (path.substr(0, path.rfind('/')) + "/fake_pnm").c_str(), 1);
    const char *given = getenv("MR_SEED");
    seed = given ? strtoull(given, nullptr, 0) : static_cast<uint64_t>(time(nullptr));
    printf("MR_SEED=%llu\n", static_cast<unsigned long long>(seed));
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
