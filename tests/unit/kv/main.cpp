#include "tests/unit/kv/support.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <CppUTest/CommandLineTestRunner.h>

uint64_t test_seed;

int main(int argc, char **argv) {
    const char *given = getenv("MR_SEED");
    test_seed = given ? strtoull(given, nullptr, 0) : (uint64_t)time(nullptr);
    printf("MR_SEED=%llu\n", (unsigned long long)test_seed);
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
