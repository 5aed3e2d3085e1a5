#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "CppUTest/CommandLineTestRunner.h"
#include "tests/unit/golden/support.hpp"

unsigned long seed_value;

int main(int argc, char **argv) {
    const char *given = std::getenv("MR_SEED");
    seed_value = given ? std::strtoul(given, nullptr, 0) : (unsigned long)std::time(nullptr);
    std::printf("MR_SEED=%lu\n", seed_value);
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
