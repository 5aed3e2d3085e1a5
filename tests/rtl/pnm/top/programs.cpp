// Whole chips on random programs: the simulator libraries, both builds, beside the golden model.
#include <CppUTest/CommandLineTestRunner.h>
#include <CppUTest/MemoryLeakWarningPlugin.h>

#include "program.hpp"

using namespace pnm;

namespace {

// `runs` chips of two jobs each; memory and bus are slow and stall in many ways.
void chips(const char *library, const char *more, unsigned runs, uint64_t seed) {
    Work sum = {0, 0, 0, 0};
    for (unsigned k = 0; k < runs; k++) {
        Rng rng(seed + k);
        const unsigned stall = rng.percent(50) ? 0 : 10 + (unsigned)rng.below(60);
        char options[200];
        snprintf(options, sizeof options, "seed=%llu&stall=%u&latency=%llu&bandwidth=%llu%s",
                 (unsigned long long)rng.below(1 << 30), stall,
                 (unsigned long long)(1 + rng.below(80)), 64ull >> rng.below(3), more);
        Chip chip(library, options, "run " + std::to_string(k));
        for (int job = 0; job < 2; job++) {
            Maker maker(rng, chip.base);
            const Bytes image = maker.image();
            chip.agree(maker.sound(chip, 1 + (unsigned)rng.below(6), image), image);
        }
        chip.finish();
        sum.cycles += chip.work.cycles;
        sum.descriptors += chip.work.descriptors;
        sum.products += chip.work.products;
        sum.commands += chip.work.commands;
    }
    printf(
        "%u runs of two jobs: %llu cycles, %llu descriptors, %llu products, %llu DRAM commands\n",
        runs, (unsigned long long)sum.cycles, (unsigned long long)sum.descriptors,
        (unsigned long long)sum.products, (unsigned long long)sum.commands);
    CHECK(sum.products > 1000 * (uint64_t)runs && sum.commands > 1000 * (uint64_t)runs);
}

bool full() { return getenv("MR_FULL") != nullptr; }

} // namespace

TEST_GROUP(PnmPrograms){};

TEST(PnmPrograms, RandomOnesAreTheGoldenModels) {
    chips(MR_SIM_PNM_PATH, "", full() ? 200 : 5, run_seed());
}

// The build for regression: registers and memories begin as noise.
TEST(PnmPrograms, RandomOnesAreTheGoldenModelsFromNoise) {
    chips(MR_SIM_PNM_DEBUG_PATH, "&xinit=random", full() ? 60 : 1, run_seed() + 1000000);
}

int main(int argc, char **argv) {
    // simulators allocate in their own time: the leak detector would blame the test that came first
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    run_seed();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
