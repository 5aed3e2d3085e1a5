// The matrix side against the golden model: random MATVEC and WSTORE over operands of every kind.
#include "matvec_bench.hpp"

using namespace pnm;

namespace {

void fill(MatvecBench &b, Golden &golden, Rng &rng, unsigned col, unsigned columns, unsigned odd) {
    for (unsigned c = col; c < col + columns; c++) {
        uint16_t codes[4][16];
        for (unsigned pe = 0; pe < 4; pe++)
            for (unsigned l = 0; l < 16; l++)
                mr_pnm_chip_column(golden.chip, 0, pe, c)[l] = codes[pe][l] = code(rng, odd);
        b.fill(c, codes);
    }
}

void compare(const MatvecBench &b, Golden &golden, int n, const Desc &d) {
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            if (b.scratch.words[r * 16 + w] != golden.row(r)[w]) {
                char text[200];
                snprintf(text, sizeof text,
                         "descriptor %d: row %u word %u: %08X, golden %08X (kc %d m %d n %d mode "
                         "%d log %d flags %d)",
                         n, r, w, b.scratch.words[r * 16 + w], golden.row(r)[w],
                         (int)d.get(MR_PNM_D_MATVEC_KC_LSB, 16),
                         (int)d.get(MR_PNM_D_MATVEC_OUTPUTS_LSB, 16),
                         (int)d.get(MR_PNM_D_MATVEC_VECTORS_LSB, 16), (int)d.get(16, 2),
                         (int)d.get(20, 4), (int)d.get(8, 8));
                FAIL(text);
            }
}

void noise(MatvecBench &b, Golden &golden, Rng &rng, unsigned odd) {
    for (unsigned r = 0; r < MR_PNM_SCRATCH_ROWS; r++)
        for (unsigned w = 0; w < 16; w++)
            golden.row(r)[w] = b.scratch.words[r * 16 + w] = operand(rng, odd);
}

} // namespace

TEST_GROUP(Matvec){};

TEST(Matvec, RandomDescriptorsAreTheGoldenModels) {
    Rng rng(run_seed());
    MatvecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 120; n++) {
        const unsigned odd = n % 4 == 0 ? 2 : 0;
        unsigned columns;
        const Desc d = random_matvec(rng, columns);
        noise(b, golden, rng, odd);
        if (n % 4 == 1) // a vector, or some of its neighbours too, of zeros
            for (unsigned r = 0; r < d.get(MR_PNM_D_MATVEC_X_RUN_LSB, 16); r++)
                for (unsigned w = 0; w < 16; w++) {
                    const unsigned at = (unsigned)d.get(MR_PNM_D_MATVEC_X_LSB, 16) + r;
                    golden.row(at)[w] = b.scratch.words[at * 16 + w] = w % 2 << 31;
                }
        fill(b, golden, rng, (unsigned)d.get(MR_PNM_D_MATVEC_COL_LSB, 16), columns, odd);
        b.scratch.stall = n % 2 ? 0 : (unsigned)rng.below(70);
        if (rng.percent(5)) { // stopped on the way: the next one runs as ever
            const Rows before = b.scratch.words;
            b.run(d, rng, 1 + (unsigned)rng.below(200));
            b.restart();
            b.scratch.answer = false;
            b.scratch.words = before;
        }
        golden.run(d);
        b.run(d, rng);
        compare(b, golden, n, d);
        CHECK_EQUAL(golden.result.products, b.products);
        CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_NONFINITE) != 0, b.nonfinite);
        CHECK_EQUAL((golden.result.status & MR_PNM_STATUS_RANGE) != 0, b.range);
    }
}

// What WSTORE wrote is what a MATVEC with the register's exponent multiplies by.
TEST(Matvec, StoredWeights) {
    Rng rng(run_seed() + 1);
    MatvecBench b(rng.next());
    Golden golden;
    for (int n = 0; n < 60; n++) {
        const bool transposed = rng.percent(50);
        const unsigned kc = 1 + (unsigned)rng.below(5), outputs = 16 * (1 + (unsigned)rng.below(4));
        const unsigned col = (unsigned)rng.below(MR_PNM_COLUMNS - outputs / 4 * kc),
                       wreg = (unsigned)rng.below(64);
        noise(b, golden, rng, 1);
        fill(b, golden, rng, col, outputs / 4 * kc, 0);
        b.scratch.stall = (unsigned)rng.below(60);
        for (int pass = 0; pass < 2; pass++) {
            Desc d(MR_PNM_DESC_WSTORE);
            const unsigned length = transposed ? outputs : 16 * kc,
                           all = transposed ? 16 * kc : outputs;
            const unsigned first = (unsigned)rng.below(all);
            PUT(d, WSTORE_TRANSPOSED, transposed);
            PUT(d, WSTORE_RESET, pass == 0);
            PUT(d, WSTORE_WREG, wreg);
            PUT(d, WSTORE_COL, col);
            PUT(d, WSTORE_KC, kc);
            PUT(d, WSTORE_LENGTH, length);
            PUT(d, WSTORE_VECTORS, 1 + rng.below(all - first));
            PUT(d, WSTORE_X, 1000);
            PUT(d, WSTORE_X_STRIDE, (int)rng.below(7) - 3);
            PUT(d, WSTORE_FIRST, first);
            golden.run(d);
            b.run(d, rng);
        }
        Desc d(MR_PNM_DESC_MATVEC);
        PUT(d, MATVEC_USE_WREG, 1);
        PUT(d, MATVEC_WEXP, wreg);
        PUT(d, MATVEC_LOG_LENGTH, 2 + rng.below(7));
        PUT(d, MATVEC_COL, col);
        PUT(d, MATVEC_KC, kc);
        PUT(d, MATVEC_OUTPUTS, outputs);
        PUT(d, MATVEC_VECTORS, 3);
        PUT(d, MATVEC_X, 500);
        PUT(d, MATVEC_X_STRIDE, 5);
        PUT(d, MATVEC_X_RUN, kc);
        PUT(d, MATVEC_Y, 3000);
        PUT(d, MATVEC_Y_STRIDE, 5);
        golden.run(d);
        b.run(d, rng);
        compare(b, golden, n, d);
    }
}

// The multipliers' share of the time. From two vectors on the copy of a row hides behind the
// products of the one before it (from three in the farthest tier, one with longer streams), and all
// but the first vector's loading too.
TEST(Matvec, KeepsItsMultipliersBusy) {
    static const struct {
        unsigned kc, outputs, vectors, log, tier, col;
        bool busy;
    } cases[] = {
        {4, 64, 1, 4, 0, 0, false},  {4, 64, 8, 4, 0, 0, true},   {4, 64, 64, 4, 0, 0, true},
        {16, 16, 8, 4, 0, 0, true},  {16, 16, 64, 4, 0, 0, true}, {16, 16, 64, 4, 0, 9, true},
        {16, 64, 1, 4, 0, 0, false}, {16, 64, 2, 4, 0, 0, true},  {16, 64, 8, 4, 0, 3, true},
        {16, 64, 16, 4, 7, 0, true}, {16, 64, 16, 4, 7, 5, true}, {16, 64, 16, 6, 0, 0, true},
        {16, 64, 1, 6, 0, 0, true},  {5, 80, 7, 4, 3, 14, true},  {16, 64, 4, 8, 7, 0, true},
        {31, 16, 33, 4, 0, 0, true}, {33, 16, 31, 4, 0, 1, true}, {64, 16, 16, 4, 0, 0, true},
        {64, 16, 16, 4, 7, 0, true}, {250, 16, 4, 4, 0, 0, true}, {256, 16, 4, 4, 0, 0, true},
        {32, 64, 1, 4, 7, 0, false}};
    Rng rng(1);
    MatvecBench b(rng.next());
    Golden golden;
    printf("%6s %4s %4s %4s %4s %7s %8s %7s %6s\n", "K", "M", "N", "L", "tier", "column", "cycles",
           "in use", "reads");
    for (const auto &c : cases) {
        const unsigned columns = c.outputs / 4 * c.kc;
        Desc d(MR_PNM_DESC_MATVEC);
        PUT(d, MATVEC_LOG_LENGTH, c.log);
        PUT(d, MATVEC_WEXP, 131);
        PUT(d, MATVEC_COL, c.tier * 2048 + c.col);
        PUT(d, MATVEC_KC, c.kc);
        PUT(d, MATVEC_OUTPUTS, c.outputs);
        PUT(d, MATVEC_VECTORS, c.vectors);
        PUT(d, MATVEC_X_STRIDE, c.kc);
        PUT(d, MATVEC_X_RUN, c.kc);
        PUT(d, MATVEC_Y, 3000);
        PUT(d, MATVEC_Y_STRIDE, c.outputs / 16);
        noise(b, golden, rng, 0);
        fill(b, golden, rng, c.tier * 2048 + c.col, columns, 0);
        golden.run(d);
        b.run(d, rng);
        compare(b, golden, 0, d);
        printf("%6u %4u %4u %4u %4u %7u %8llu %6.1f%% %6llu%s\n", c.kc * 16, c.outputs, c.vectors,
               1u << c.log, c.tier, c.col, (unsigned long long)b.took,
               100.0 * (double)b.stream / (double)b.took, (unsigned long long)b.reads,
               c.busy ? "" : " (one vector)");
        const unsigned slices = c.log <= 4 ? 1 : 1u << (c.log - 4);
        CHECK_EQUAL(columns * c.vectors * slices, b.stream);
        if (c.busy)
            CHECK(10 * b.stream >= 9 * b.took);
        // a row is read once and, where vectors come late, once more; and again while they are
        // loaded
        CHECK(b.reads >= columns);
        CHECK(b.reads <= 2 * columns + c.vectors * c.kc * 16 / 26);
    }
}

int main(int argc, char **argv) { return bench_main(argc, argv); }
