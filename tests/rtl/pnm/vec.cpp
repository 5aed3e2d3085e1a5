// The vector side against the golden model: random descriptors over operands of every kind.
#include "Vpnm_vec.h"
#include "pnm_bench.hpp"

using namespace pnm;

namespace {

struct VecBench : Bench<Vpnm_vec> {
    Scratch<Vpnm_vec> scratch;
    uint64_t took = 0, elements = 0;
    bool nonfinite = false;
    explicit VecBench(uint64_t noise) : Bench(noise) {
        top->start_i = 0;
        reset();
    }
    void run(const Desc &d, Rng &rng, unsigned give_up = 0) {
        memcpy(top->desc_i.data(), d.bytes, sizeof d.bytes);
        const uint64_t from = cycles;
        elements = 0;
        nonfinite = false;
        for (top->start_i = 1;; top->start_i = 0) {
            scratch.before(top.get(), rng);
            top->clk_i = 0;
            settle();
            scratch.after(top.get());
            elements += top->elems_o;
            nonfinite |= top->nonfinite_o;
            const bool done = top->done_o;
            tick();
            if (done || (give_up && cycles - from >= give_up))
                break;
            if (cycles - from > 200000)
                FAIL("the vector side does not come to an end");
        }
        took = cycles - from;
    }
};

// Rows of the descriptor that are read and written do not meet but where order allows.
Desc random_desc(Rng &rng) {
    Desc d(MR_PNM_DESC_VEC);
    const unsigned width = 1 + (unsigned)rng.below(6),
                   count = 1 + (unsigned)rng.below(rng.percent(20) ? 40 : 8);
    const unsigned reduce = rng.percent(40) ? 1 + (unsigned)rng.below(2) : 0;
    PUT(d, VEC_FN, rng.below(4));
    PUT(d, VEC_MUL, rng.below(4));
    PUT(d, VEC_ADD, rng.below(4));
    PUT(d, VEC_NEG_MUL, rng.below(2));
    PUT(d, VEC_NEG_ADD, rng.below(2));
    PUT(d, VEC_REDUCE, reduce);
    PUT(d, VEC_COUNT, count);
    PUT(d, VEC_WIDTH, width);
    // four areas of 1,000 rows; a stride of either sign, at times 0 for what is read
    const int stride = (int)width + (int)rng.below(4);
    const bool down = rng.percent(30);
    auto first = [&](unsigned area) {
        return area * 1000 + (down ? (count - 1) * (unsigned)stride : 0);
    };
    const bool in_place = !reduce && rng.percent(30);
    PUT(d, VEC_D, in_place ? first(0) : first(3));
    PUT(d, VEC_D_STRIDE, down ? -stride : stride);
    PUT(d, VEC_A, first(0));
    PUT(d, VEC_A_STRIDE, !in_place && rng.percent(10) ? 0 : down ? -stride : stride);
    PUT(d, VEC_B, first(1));
    PUT(d, VEC_B_STRIDE, rng.percent(20) ? 0 : down ? -stride : stride);
    PUT(d, VEC_C, first(2));
    PUT(d, VEC_C_STRIDE, rng.percent(20) ? 0 : down ? -stride : stride);
    PUT(d, VEC_IMM_M, operand(rng, 10));
    PUT(d, VEC_IMM_C, operand(rng, 10));
    return d;
}

} // namespace

TEST_GROUP(Vec){};

TEST(Vec, RandomDescriptorsAreTheGoldenModels) {
    Rng rng(run_seed());
    VecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 400; n++) {
        const unsigned odd = n % 3 == 0 ? 30 : 1;
        for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
            for (unsigned w = 0; w < 16; w++)
                golden.row(r)[w] = b.scratch.words[r * 16 + w] = operand(rng, odd);
        const Desc d = random_desc(rng);
        b.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        if (rng.percent(5)) { // stopped on the way: the next one runs as ever
            const Rows before = b.scratch.words;
            b.run(d, rng, 1 + (unsigned)rng.below(60));
            b.reset();
            b.scratch.answer = false;
            b.scratch.words = before;
        }
        golden.run(d);
        b.run(d, rng);
        for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
            for (unsigned w = 0; w < 16; w++)
                if (b.scratch.words[r * 16 + w] != golden.row(r)[w]) {
                    char text[200];
                    snprintf(text, sizeof text,
                             "descriptor %d: row %u word %u: %08X, golden %08X (fn %d mul %d add "
                             "%d reduce %d)",
                             n, r, w, b.scratch.words[r * 16 + w], golden.row(r)[w],
                             (int)d.get(9, 3), (int)d.get(12, 2), (int)d.get(14, 2),
                             (int)d.get(18, 2));
                    FAIL(text);
                }
        CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_NONFINITE) != 0, b.nonfinite);
        CHECK_EQUAL(golden.result.vec_elements, b.elements);
    }
}

// What docs/pnm.md says of the rate, with a scratchpad that always grants.
TEST(Vec, FourElementsACycle) {
    Rng rng(1);
    VecBench b(rng.next());
    for (unsigned operands = 1; operands <= 3; operands++) {
        Desc d(MR_PNM_DESC_VEC);
        PUT(d, VEC_COUNT, 16);
        PUT(d, VEC_WIDTH, 4);
        PUT(d, VEC_D, 3000);
        PUT(d, VEC_D_STRIDE, 4);
        PUT(d, VEC_A_STRIDE, 4);
        PUT(d, VEC_B, 1000);
        PUT(d, VEC_B_STRIDE, 4);
        PUT(d, VEC_C, 2000);
        PUT(d, VEC_C_STRIDE, 4);
        PUT(d, VEC_MUL, operands > 1 ? 2 : 0);
        PUT(d, VEC_ADD, operands > 2 ? 2 : 0);
        b.run(d, rng);
        CHECK(b.took <= 16 * 4 * 4 + 16);
    }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
