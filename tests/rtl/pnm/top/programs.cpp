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

// Every bf16 code, NaN with all payloads among them, as high and as low half of a word: memory,
// scratchpad, another group's scratchpad and back change no bit.
TEST(PnmPrograms, Case6MovesKeepEveryCode) {
    Rng rng(run_seed() + 5);
    Chip chip(MR_SIM_PNM_PATH, "stall=20", "moves");
    enum { ROWS = 2048 }; // 65,536 codes, two a word
    Bytes image = Maker(rng, chip.base).image();
    for (uint32_t i = 0; i < 1 << 15; i++) {
        const uint32_t word = (i << 1 | 1) << 16 | i << 1;
        memcpy(&image[INPUT_AT + 4 * i], &word, 4);
    }
    Program p;
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++) {
        Desc send(MR_PNM_DESC_SEND), wait(MR_PNM_DESC_WAIT);
        PUT(send, SEND_GROUP, (g + 1) % MR_PNM_GROUPS);
        PUT(send, SEND_ROWS, ROWS);
        PUT(send, SEND_ROW, 0);
        PUT(send, SEND_TO, ROWS);
        p.add(g, transfer(MR_PNM_DESC_LOAD, ROWS, 0, chip.base + INPUT_AT));
        p.add(g, send);
        p.add(g, PUT(wait, WAIT_COUNT, 1));
        p.add(g, transfer(MR_PNM_DESC_STORE, ROWS, ROWS,
                          chip.base + OUT_AT + (uint64_t)g * OUT_BYTES));
    }
    chip.agree(p, image);
    for (unsigned g = 0; g < MR_PNM_GROUPS; g++)
        CHECK(memcmp(chip.memory() + OUT_AT + (size_t)g * OUT_BYTES, &image[INPUT_AT], 64 * ROWS) ==
              0);
    chip.finish();
}

int main(int argc, char **argv) {
    // simulators allocate in their own time: the leak detector would blame the test that came first
    MemoryLeakWarningPlugin::turnOffNewDeleteOverloads();
    run_seed();
    return CommandLineTestRunner::RunAllTests(argc, argv);
}
