// The vector side against the golden model: random descriptors over operands of every kind.
#include <algorithm>

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
    void run(const Desc &d, Rng &rng, unsigned give_up = 0, uint64_t limit = 200000) {
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
            if (cycles - from > limit)
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

// The same over all shapes: width or count to 512 rows, strides of either sign, zero, and smaller
// than a vector, so that its rows are read again; d's own rows may meet too, the later write stays.
Desc wide_desc(Rng &rng) {
    enum { AREA = 1000 };
    Desc d(MR_PNM_DESC_VEC);
    const unsigned most = 1u << rng.below(10), width = 1 + (unsigned)rng.below(most),
                   count = 1 + (unsigned)rng.below(600 / width + 1),
                   reduce = rng.percent(40) ? 1 + (unsigned)rng.below(2) : 0;
    PUT(d, VEC_FN, rng.below(4));
    PUT(d, VEC_MUL, rng.below(4));
    PUT(d, VEC_ADD, rng.below(4));
    PUT(d, VEC_NEG_MUL, rng.below(2));
    PUT(d, VEC_NEG_ADD, rng.below(2));
    PUT(d, VEC_REDUCE, reduce);
    PUT(d, VEC_COUNT, count);
    PUT(d, VEC_WIDTH, width);
    PUT(d, VEC_IMM_M, operand(rng, 10));
    PUT(d, VEC_IMM_C, operand(rng, 10));
    const int room = count > 1 ? (int)((AREA - width) / (count - 1)) : 32767;
    auto place = [&](unsigned area, unsigned row_lsb, unsigned stride_lsb) {
        const int usual[] = {0, 1, (int)width - 1, (int)width, (int)width + 1 + (int)rng.below(5)};
        int stride = usual[rng.below(5)];
        stride = (stride > room ? room : stride) * (rng.percent(40) ? -1 : 1);
        const int back = stride < 0 ? -stride * ((int)count - 1) : 0;
        d.put(row_lsb, 16, (int)area * AREA + back);
        d.put(stride_lsb, 16, count == 1 && rng.percent(50) ? (int)rng.next() : stride);
    };
    place(0, MR_PNM_D_VEC_A_LSB, MR_PNM_D_VEC_A_STRIDE_LSB);
    place(1, MR_PNM_D_VEC_B_LSB, MR_PNM_D_VEC_B_STRIDE_LSB);
    place(2, MR_PNM_D_VEC_C_LSB, MR_PNM_D_VEC_C_STRIDE_LSB);
    place(3, MR_PNM_D_VEC_D_LSB, MR_PNM_D_VEC_D_STRIDE_LSB);
    return d;
}

// Both on the same rows: what they hold, the flag and the count afterwards.
void compare(VecBench &b, Golden &golden, const Desc &d, Rng &rng, int n) {
    golden.run(d);
    b.run(d, rng, 0, 4000000);
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            if (b.scratch.words[r * 16 + w] != golden.row(r)[w]) {
                char text[250];
                snprintf(text, sizeof text,
                         "descriptor %d: row %u word %u: %08X, golden %08X (fn %d mul %d add %d "
                         "reduce %d count %d width %d strides %d %d %d %d)",
                         n, r, w, b.scratch.words[r * 16 + w], golden.row(r)[w], (int)d.get(9, 3),
                         (int)d.get(12, 2), (int)d.get(14, 2), (int)d.get(18, 2),
                         (int)d.get(32, 16), (int)d.get(48, 16), (int16_t)d.get(80, 16),
                         (int16_t)d.get(112, 16), (int16_t)d.get(144, 16), (int16_t)d.get(176, 16));
                FAIL(text);
            }
    CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_NONFINITE) != 0, b.nonfinite);
    CHECK_EQUAL(golden.result.vec_elements, b.elements);
}

void noise(VecBench &b, Golden &golden, Rng &rng, unsigned odd) {
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            golden.row(r)[w] = b.scratch.words[r * 16 + w] = operand(rng, odd);
}

} // namespace

TEST_GROUP(Vec){};

TEST(Vec, RandomDescriptorsAreTheGoldenModels) {
    Rng rng(run_seed());
    VecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 400; n++) {
        const unsigned odd = n % 3 == 0 ? 30 : 1;
        noise(b, golden, rng, odd);
        const Desc d = random_desc(rng);
        b.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        if (rng.percent(5)) { // stopped on the way: the next one runs as ever
            const Rows before = b.scratch.words;
            b.run(d, rng, 1 + (unsigned)rng.below(60));
            b.reset();
            b.scratch.answer = false;
            b.scratch.words = before;
        }
        compare(b, golden, d, rng, n);
    }
}

TEST(Vec, EveryShapeAndStride) {
    Rng rng(run_seed() + 1);
    VecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < (getenv("MR_FULL") ? 3000 : 150); n++) {
        noise(b, golden, rng, n % 3 == 0 ? 30 : 1);
        b.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        compare(b, golden, wide_desc(rng), rng, n);
    }
}

// The largest counts and widths the fields and the scratchpad allow.
TEST(Vec, AsLargeAsTheScratchpad) {
    Rng rng(run_seed() + 2);
    VecBench b(rng.next());
    Golden golden;
    const unsigned all = MR_PNM_SCRATCH_ROWS, many = getenv("MR_FULL") ? 65000 : 6000;
    struct {
        unsigned count, width, a_stride, fn, reduce, d, mul;
    } cases[] = {
        {1, all, 0x8000, 1, 0, 0,
         1},                     // one vector of every row, onto itself; the stride is not used
        {all, 1, 1, 2, 0, 0, 1}, // as many vectors as rows
        {1, all, 0x7FFF, 0, 1, 17, 1},     // one sum of all there is
        {1, all, 0, 3, 2, all - 1, 1},     // and one maximum
        {many, 1, 0, 0, 1, 0, 1},          // more scalars than rows, of one row
        {6000, 1, 0, 0, 1, 1000, 3},       // and each with a scalar of its own
        {2, all / 2, all / 2, 3, 0, 0, 1}, // two halves
    };
    for (auto &c : cases) {
        Desc d(MR_PNM_DESC_VEC);
        PUT(d, VEC_FN, c.fn);
        PUT(d, VEC_REDUCE, c.reduce);
        PUT(d, VEC_COUNT, c.count);
        PUT(d, VEC_WIDTH, c.width);
        PUT(d, VEC_MUL, c.mul);
        PUT(d, VEC_IMM_M, 0x3E000000);
        PUT(d, VEC_A, c.count > all ? all - 1 : 0);
        PUT(d, VEC_A_STRIDE, c.a_stride);
        PUT(d, VEC_D, c.d);
        PUT(d, VEC_D_STRIDE, c.a_stride);
        noise(b, golden, rng, 1);
        compare(b, golden, d, rng, 0);
    }
}

// Lanes whose operand is outside of the function's domain beside others: nothing of theirs is seen
// in the others, nor in a maximum or sum over rows without them. (A value not chosen must not
// leak.)
TEST(Vec, Case81NanStaysInItsLane) {
    Rng rng(run_seed() + 3);
    VecBench b(rng.next());
    Golden golden;
    static const uint32_t out[] = {0xBF800000, 0x7FC00000, 0x7F800001, 0xFF800000, 0x7F800000};
    for (int n = 0; n < 60; n++) {
        noise(b, golden, rng, 0);
        uint32_t mask = 0;
        for (unsigned w = 0; w < 16; w++) {
            const bool bad = rng.percent(40);
            mask |= (uint32_t)bad << w;
            for (unsigned r = 0; r < 2; r++) // all rows of the vector; the last one is clean
                golden.row(r)[w] = b.scratch.words[r * 16 + w] =
                    bad ? out[rng.below(5)]
                        : (uint32_t)((120 + rng.below(10)) << 23 | rng.below(1 << 23));
            golden.row(2)[w] = b.scratch.words[2 * 16 + w] = 0x3FC00000;
        }
        const unsigned fn = (unsigned)rng.below(4);
        Desc d(MR_PNM_DESC_VEC);
        PUT(d, VEC_FN, fn);
        PUT(d, VEC_COUNT, 3);
        PUT(d, VEC_WIDTH, 1);
        PUT(d, VEC_A_STRIDE, 1);
        PUT(d, VEC_D, 100);
        PUT(d, VEC_D_STRIDE, 1);
        compare(b, golden, d, rng, n);
        for (unsigned w = 0; w < 16; w++)
            for (unsigned r = 0; r < 3; r++) {
                const uint32_t bits = b.scratch.words[(100 + r) * 16 + w] & 0x7FFFFFFF;
                if (r == 2 || !(mask >> w & 1))
                    CHECK_TEXT(bits < 0x7F800000, "a good lane is no number");
            }
        for (unsigned reduce = 1; reduce <= 2; reduce++) {
            PUT(d, VEC_REDUCE, reduce);
            PUT(d, VEC_D, 200);
            compare(b, golden, d, rng, n);
            CHECK_TEXT((b.scratch.words[200 * 16 + 2] & 0x7FFFFFFF) < 0x7F800000,
                       "a vector without NaN has a result that is one");
        }
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

// A product just below the least normal number rounds up to it.
TEST(Vec, Case7TinyProducts) {
    Rng rng(3);
    VecBench b(rng.next());
    Golden golden;
    noise(b, golden, rng, 0);
    const uint32_t sign[] = {0, 0x80000000};
    for (unsigned w = 0; w < 16; w++) {
        golden.row(0)[w] = b.scratch.words[w] = 0x00800000 | sign[w & 1];
        golden.row(1)[w] = b.scratch.words[16 + w] =
            (w < 8 ? 0x3F7FFFFF : 0x3F7FFFFE) | sign[w >> 1 & 1];
    }
    Desc d(MR_PNM_DESC_VEC);
    PUT(d, VEC_MUL, 2);
    PUT(d, VEC_COUNT, 1);
    PUT(d, VEC_WIDTH, 1);
    PUT(d, VEC_B, 1);
    PUT(d, VEC_D, 2);
    compare(b, golden, d, rng, 0);
    for (unsigned w = 0; w < 16; w++)
        CHECK_EQUAL((w < 8 ? 0x00800000u : 0x007FFFFFu) | (sign[w & 1] ^ sign[w >> 1 & 1]),
                    b.scratch.words[32 + w]);
}

// What a descriptor costs: four elements a cycle and at most 14 cycles beside, 20 with 2^x or log2.
// With a reduction two vectors are on their way at a time: 18 cycles a vector at the least, 2 width
// + 15 (18 by table) up to eight rows, and at most 40 beside.
TEST(Vec, OverheadIsBounded) {
    Rng rng(2);
    VecBench b(rng.next());
    int64_t worst[2][2] = {{0, 0}, {0, 0}};
    for (unsigned fn = 0; fn < 4; fn++)
        for (unsigned reduce = 0; reduce < 3; reduce++)
            for (unsigned count : {1u, 2u, 16u, 100u})
                for (unsigned width : {1u, 2u, 4u, 5u, 9u}) {
                    Desc d(MR_PNM_DESC_VEC);
                    PUT(d, VEC_FN, fn);
                    PUT(d, VEC_REDUCE, reduce);
                    PUT(d, VEC_MUL, 2);
                    PUT(d, VEC_ADD, 2);
                    PUT(d, VEC_COUNT, count);
                    PUT(d, VEC_WIDTH, width);
                    PUT(d, VEC_A_STRIDE, width);
                    PUT(d, VEC_B, 1000);
                    PUT(d, VEC_B_STRIDE, width);
                    PUT(d, VEC_C, 2000);
                    PUT(d, VEC_C_STRIDE, width);
                    PUT(d, VEC_D, 3000);
                    PUT(d, VEC_D_STRIDE, width);
                    b.run(d, rng);
                    const bool table = fn == 1 || fn == 2;
                    uint64_t vector = 4 * width;
                    if (reduce)
                        vector = std::max(
                            {vector, (uint64_t)18, 2 * width + (uint64_t)(table ? 18 : 15)});
                    const uint64_t work = count * vector, most = reduce ? 40 : table ? 20 : 14;
                    CHECK(b.took <= work + most);
                    worst[reduce > 0][table] =
                        std::max(worst[reduce > 0][table], (int64_t)(b.took - work));
                }
    printf("cycles beside: %lld, by table %lld, with a reduction %lld and %lld\n",
           (long long)worst[0][0], (long long)worst[0][1], (long long)worst[1][0],
           (long long)worst[1][1]);
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
